//! GPUs: the ops of each, when each was busy, and the gaps between.

use super::Wait;
use crate::profile::Profile;
use crate::profile::ids::{ExportId, GlobalPid, OpId, StreamIx, index};
use crate::profile::ops::{OpKind, Ops, StreamKey};
use crate::profile::seek::seek;
use crate::profile::times::{STRIDE, Times};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use typed_index_collections::TiVec;

index! {
    /// A GPU that worked: its place in [`Devices::list`].
    DeviceIx
}

#[derive(Clone, Debug)]
pub struct Device {
    /// GPU id of the export, or the CUDA ordinal where the export does not map one to the other.
    pub id: u32,
    pub name: Option<Arc<str>>,
    pub timeline: Timeline,
}

/// When a device worked: the union of its ops.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Disjoint, ascending.
    busy: Times<usize>,
    /// Busy time before each [`STRIDE`]-th interval, so that any window's sum is found fast. One entry per
    /// interval would double the memory.
    before: Vec<i64>,
    pub busy_ns: i64,
}

#[derive(Default)]
pub struct Devices {
    /// By id.
    pub list: TiVec<DeviceIx, Device>,
    pub of_stream: TiVec<StreamIx, DeviceIx>,
    /// In start order.
    pub stream_ops: TiVec<StreamIx, Vec<OpId>>,
    /// From the start of each process' first kernel to the end of its last, in ns.
    pub work: FxHashMap<GlobalPid, (i64, i64)>,
    pub of_process: FxHashMap<GlobalPid, BTreeSet<DeviceIx>>,
}

impl Devices {
    /// Linear in the ops, which are sorted by start.
    pub fn new(profile: &Profile) -> Self {
        let ops = &profile.ops;
        let id = |key: &StreamKey| gpu_id(profile, key.pid, key.device);
        let ids: BTreeSet<u32> = ops.streams.iter().map(id).collect();
        let device = |id: u32| Device {
            id,
            name: profile.target.gpu_names.get(&id).cloned(),
            timeline: Timeline::default(),
        };
        let mut devices = Self {
            list: ids.iter().copied().map(device).collect(),
            stream_ops: ops.streams.iter().map(|_| Vec::new()).collect(),
            ..Self::default()
        };
        devices.of_stream =
            ops.streams.iter().map(|key| devices.with_id(id(key)).unwrap_or(DeviceIx::from(0))).collect();
        for op in ops.ids().filter(|&op| matches!(ops.kind(op), OpKind::Kernel | OpKind::GraphLaunch)) {
            let (start, end) = (ops.start(op), ops.end(op));
            let work = devices.work.entry(ops.streams[ops.stream(op)].pid).or_insert((start, end));
            *work = (work.0.min(start), work.1.max(end));
        }
        for (stream, key) in ops.streams.iter_enumerated() {
            devices.of_process.entry(key.pid).or_default().insert(devices.of_stream[stream]);
        }
        for op in ops.ids() {
            let stream = ops.stream(op);
            devices.stream_ops[stream].push(op);
            devices.list[devices.of_stream[stream]].timeline.add(ops.start(op), ops.end(op));
        }
        devices.list.iter_mut().for_each(|device| device.timeline.busy.shrink());
        devices.stream_ops.iter_mut().for_each(Vec::shrink_to_fit);
        devices
    }

    pub fn with_id(&self, id: u32) -> Option<DeviceIx> {
        self.list.raw.binary_search_by_key(&id, |device| device.id).ok().map(DeviceIx::from)
    }

    pub fn of_wait(&self, ops: &Ops, wait: &Wait) -> Option<DeviceIx> {
        wait.device.or_else(|| wait.awaited.map(|op| self.of_op(ops, op)))
    }

    pub fn of_op(&self, ops: &Ops, op: OpId) -> DeviceIx {
        self.of_stream[ops.stream(op)]
    }

    pub fn issued_before(&self, profile: &Profile, stream: StreamIx, time: i64) -> usize {
        self.stream_ops[stream].partition_point(|&op| profile.issued(op) < time)
    }

    /// Devices of the process busy as a wait returned that found nothing: the wait was for another device.
    pub fn working_beside(&self, wait: &Wait) -> Vec<DeviceIx> {
        let mine = self.of_process.get(&wait.pid).filter(|_| wait.found.is_nothing());
        let worked = |&device: &DeviceIx| {
            let until = wait.end.saturating_add(1);
            Some(device) != wait.device && self.list[device].timeline.busy_within(wait.end, until) > 0
        };
        match wait.device {
            Some(_) => mine.into_iter().flatten().copied().filter(worked).collect(),
            None => wait.not_for.filter(|_| wait.found.is_nothing()).into_iter().collect(),
        }
    }
}

/// GPU id of a CUDA ordinal. With `CUDA_VISIBLE_DEVICES` two ranks may both say 0: the export's map decides.
pub fn gpu_id(profile: &Profile, process: GlobalPid, ordinal: ExportId) -> u32 {
    let (pid, ordinal) = (process.pid(), ordinal.number());
    profile.target.gpu_of.get(&(pid, ordinal)).copied().unwrap_or(ordinal)
}

impl Timeline {
    /// Adds an op; ops come in order of start.
    fn add(&mut self, start: i64, end: i64) {
        let next = self.busy.len();
        match next.checked_sub(1).map(|last| self.busy.get(last)) {
            Some((_, until)) if start <= until => {
                if end > until {
                    self.busy_ns += end - until;
                    self.busy.set_last_end(end);
                }
            }
            _ => {
                if next.is_multiple_of(STRIDE) {
                    self.before.push(self.busy_ns);
                }
                self.busy.push(start, end);
                self.busy_ns += end - start;
            }
        }
    }

    pub fn span(&self) -> Option<(i64, i64)> {
        let last = self.busy.len().checked_sub(1)?;
        Some((self.busy.start(0), self.busy.end(last)))
    }

    /// Number of intervals begun before `time`; `marked`: where the search for the mark begins, and ended.
    fn begun(&self, time: i64, marked: &mut usize) -> usize {
        let marks = self.busy.marks();
        let marked = seek(marks.len(), marked, |i| marks[i] < time);
        let known = marked.saturating_sub(1) * STRIDE;
        let near = known..self.busy.len().min(marked * STRIDE);
        known + near.take_while(|&at| self.busy.start(at) < time).count()
    }

    /// The end of the gap that begins exactly at `time`. `None` while the device works on, and after its last op.
    pub fn gap_from(&self, time: i64) -> Option<i64> {
        let next = self.busy.first_from(time + 1);
        let ends = self.busy.end(next.checked_sub(1)?) == time;
        (ends && next < self.busy.len()).then(|| self.busy.start(next))
    }

    /// Idle stretches within `from..to`, also before the first op and after the last. Cost: a search and a
    /// step per op.
    pub fn idle_within(&self, from: i64, to: i64) -> impl Iterator<Item = (i64, i64)> {
        let ended = |i: usize| i.checked_sub(1).map_or(i64::MIN, |before| self.busy.end(before));
        let starts = |i: usize| if i < self.busy.len() { self.busy.start(i) } else { i64::MAX };
        let gaps = (self.busy.first_from(from)..=self.busy.len()).map(move |i| (ended(i), starts(i)));
        let inside = gaps.take_while(move |gap| gap.0 < to).map(move |gap| (gap.0.max(from), gap.1.min(to)));
        inside.filter(|gap| gap.0 < gap.1)
    }

    /// Busy time within `from..to`, in ns. Costs two short searches; the second begins where the first ended.
    pub fn busy_within(&self, from: i64, to: i64) -> i64 {
        let mut near = self.busy.marks().partition_point(|mark| *mark < from);
        let before = self.busy_until(from, &mut near);
        (self.busy_until(to, &mut near) - before).max(0)
    }

    fn busy_until(&self, time: i64, marked: &mut usize) -> i64 {
        let Some(last) = self.begun(time, marked).checked_sub(1) else { return 0 };
        let known = last - last % STRIDE;
        let length = |(start, end): (i64, i64)| end - start;
        let since: i64 = (known..last).map(|at| length(self.busy.get(at))).sum();
        let (start, end) = self.busy.get(last);
        self.before[last / STRIDE] + since + length((start, end.min(time)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    /// ```text
    ///   s0  [0---10]        [30---40]
    ///   s1       [5---20]
    ///   busy [0-------20]   [30---40]
    /// ```
    #[test]
    fn gaps_are_those_of_all_streams_together() {
        let mut t = Timeline::default();
        for (start, end) in [(0, 10), (5, 20), (30, 40)] {
            t.add(start, end);
        }
        assert_eq!(t.busy.iter().collect::<Vec<_>>(), [(0, 20), (30, 40)]);
        let gap = |time| t.gap_from(time);
        assert_eq!(gap(20), Some(30));
        assert_eq!(gap(10), None, "stream 1 still works");
        assert_eq!(gap(40), None, "nothing follows");
        assert_eq!(t.busy_within(10, 35), 15);
        assert_eq!(t.busy_within(-5, 3), 3);
        assert_eq!(t.busy_within(20, 30), 0, "between two");
        assert_eq!(t.busy_within(35, 90), 5);
        assert_eq!(t.busy_within(12, 10), 0, "no window at all");
        assert_eq!(t.idle_within(5, 45).collect::<Vec<_>>(), [(20, 30), (40, 45)]);
        assert_eq!(t.idle_within(-5, 25).collect::<Vec<_>>(), [(-5, 0), (20, 25)]);
        assert_eq!(t.idle_within(22, 24).collect::<Vec<_>>(), [(22, 24)], "between two");
        assert_eq!(t.idle_within(31, 40).count(), 0);
        assert_eq!(t.busy_ns, 30);
        assert_eq!(t.span(), Some((0, 40)));
    }

    proptest! {
        /// Packed and unpacked times agree, for ops and pauses of up to 2^37 ns.
        #[test]
        fn busy_time_is_that_of_all_ops(
            ops in vec((0u32..37, any::<i64>(), 0u32..37, any::<i64>()), 1..120),
            windows in vec((any::<usize>(), -5i64..5, any::<usize>(), -5i64..5), 20),
        ) {
            let (mut t, mut now, mut busy) = (Timeline::default(), 0i64, Vec::<(i64, i64)>::new());
            for (pause, more, length, longer) in ops {
                let of = |bits: u32, value: i64| value & ((1 << bits) - 1);
                now += of(pause, more);
                let end = now + of(length, longer);
                t.add(now, end);
                match busy.last_mut() {
                    Some(last) if now <= last.1 => last.1 = last.1.max(end),
                    _ => busy.push((now, end)),
                }
            }
            prop_assert_eq!(t.busy.iter().collect::<Vec<_>>(), busy.clone());
            prop_assert_eq!(t.busy_ns, busy.iter().map(|b| b.1 - b.0).sum::<i64>());
            for (a, before, b, after) in windows {
                let (from, to) = (busy[a % busy.len()].1 + before, busy[b % busy.len()].0 + after);
                let within = busy.iter().map(|b| (b.1.min(to) - b.0.max(from)).max(0)).sum::<i64>();
                prop_assert_eq!(t.busy_within(from, to), within);
                let gap = busy.iter().position(|b| b.1 == from).and_then(|i| Some(busy.get(i + 1)?.0));
                prop_assert_eq!(t.gap_from(from), gap);
            }
        }
    }
}
