//! GPU time of a capture and of its loop in parts.

use super::results::Sites;
use crate::analysis::{Judged, Read};
use crate::cost::gpu_time;
use crate::iterations::Iterations;
use crate::model::gpu_time::GpuTime;
use crate::profile::ISSUE_UNKNOWN;
use crate::profile::ids::StreamIx;
use crate::waits::device::{Device, DeviceIx};
use typed_index_collections::TiVec;

impl Sites<'_> {
    /// Time of the GPUs that work in the loop. The host may run ahead: the window then begins where work
    /// issued before the loop ends, and ends with the loop's own work.
    ///
    /// ```text
    ///  host   [load][0][1][2][3]·············[synchronize]
    ///  GPU        [load-----][0-----][1-----][2-----][3-----]
    ///  window                [------------------------------]
    /// ```
    ///
    /// Also returns the most kernel time of one stream, in ns: the loop cannot be shorter.
    pub(super) fn gpu_time_of_loop(&self, found: &Iterations) -> (GpuTime, i64) {
        let (Some(first), Some(last)) = (found.spans.first(), found.spans.last()) else {
            return Default::default();
        };
        let window = |device: &Device| {
            let (from, to) = device.timeline.span().unwrap_or((0, 0));
            if first.0 < to && from < last.1 { (first.0, last.1) } else { (0, 0) }
        };
        let mut windows: TiVec<DeviceIx, (i64, i64)> = self.found.devices.list.iter().map(window).collect();
        let busiest = self.follow_work(&mut windows);
        let mut sum = GpuTime::default();
        self.gpu_time(&windows).iter().for_each(|time| sum.add(time));
        (sum, busiest)
    }

    /// Moves windows to the work issued in them. Returns the most kernel time of one stream in the windows
    /// given. Cost: a pass over the ops.
    fn follow_work(&self, windows: &mut TiVec<DeviceIx, (i64, i64)>) -> i64 {
        let Read { profile, devices, .. } = &***self.found;
        let (ops, issued_in) = (&profile.ops, windows.clone());
        let mut begun: TiVec<DeviceIx, bool> = windows.iter().map(|_| false).collect();
        let mut kernels: TiVec<StreamIx, i64> = ops.streams.iter().map(|_| 0).collect();
        for op in ops.ids() {
            let device = devices.of_op(ops, op);
            let ((from, to), end) = (issued_in[device], ops.end(op));
            if ops.is_kernel(op) && from <= ops.start(op) && end <= to {
                kernels[ops.stream(op)] += ops.length(op);
            }
            if end <= from || (begun[device] && end <= to) {
                continue;
            }
            let issued = profile.issued(op);
            if issued == ISSUE_UNKNOWN {
                continue;
            }
            if issued < from && !begun[device] {
                windows[device].0 = windows[device].0.max(end);
            }
            begun[device] |= issued >= from;
            if (from..to).contains(&issued) {
                windows[device].1 = windows[device].1.max(end);
            }
        }
        kernels.into_iter().max().unwrap_or_default()
    }

    pub(super) fn gpu_time(&self, windows: &TiVec<DeviceIx, (i64, i64)>) -> TiVec<DeviceIx, GpuTime> {
        let Judged { waits, drains, .. } = &**self.found;
        let Read { profile, devices, collectives, blocked, .. } = &***self.found;
        let gaps = waits.iter().zip(drains.iter()).filter_map(|(wait, &drain)| {
            let op = wait.awaited.filter(|_| drain > 0)?;
            let from = profile.ops.end(op);
            Some((devices.of_op(&profile.ops, op), from, from + drain))
        });
        gpu_time::of(profile, devices, collectives, gaps, blocked.as_ref(), windows)
    }
}
