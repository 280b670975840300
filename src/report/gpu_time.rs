//! GPU time of a capture and of its loop in parts.

use super::results::Sites;
use crate::analysis::CaptureAnalysis;
use crate::cost::gpu_time;
use crate::iterations::Iterations;
use crate::model::gpu_time::GpuTime;
use crate::waits::device::{Device, DeviceIx};
use typed_index_collections::TiVec;

impl Sites<'_> {
    /// Time of the GPUs that work in the loop, from the start of its first iteration to the end of its last.
    pub(super) fn gpu_time_of_loop(&self, found: &Iterations) -> GpuTime {
        let (Some(first), Some(last)) = (found.spans.first(), found.spans.last()) else {
            return GpuTime::default();
        };
        let window = |device: &Device| {
            let (from, to) = device.timeline.span().unwrap_or((0, 0));
            if first.0 < to && from < last.1 { (first.0, last.1) } else { (0, 0) }
        };
        let windows = self.found.devices.list.iter().map(window).collect();
        let mut sum = GpuTime::default();
        self.gpu_time(&windows).iter().for_each(|time| sum.add(time));
        sum
    }

    /// Time of each GPU within its window.
    pub(super) fn gpu_time(&self, windows: &TiVec<DeviceIx, (i64, i64)>) -> TiVec<DeviceIx, GpuTime> {
        let CaptureAnalysis { profile, devices, collectives, waits, drains, blocked, .. } = self.found;
        let gaps = waits.iter().zip(drains).filter_map(|(wait, &drain)| {
            let op = wait.awaited.filter(|_| drain > 0)?;
            let from = profile.ops.end(op);
            Some((devices.of_op(&profile.ops, op), from, from + drain))
        });
        gpu_time::of(profile, devices, collectives, gaps, blocked.as_ref(), windows)
    }
}
