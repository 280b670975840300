//! GPUs: which ops ran on which, when each was busy, and the gaps between.

use crate::profile::Profile;
use crate::profile::syncs::NONE;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// One physical GPU of one export.
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
    /// Disjoint, ascending, in ns.
    pub busy: Vec<(i64, i64)>,
    /// For each busy interval: the op that began it.
    pub first_op: Vec<u32>,
    /// For each busy interval: busy time before it, so that any window's is known at once.
    before: Vec<i64>,
    pub busy_ns: i64,
}

/// All devices of an export, and which of them each stream belongs to.
#[derive(Default)]
pub struct Devices {
    pub list: Vec<Device>,
    /// For each stream of [`crate::profile::ops::Ops::streams`]: index into `list`.
    pub of_stream: Vec<u32>,
    /// Ops of each stream, in start order.
    pub stream_ops: Vec<Vec<u32>>,
    /// When each stream worked; empty for one that has its device to itself.
    of_its_own: Vec<Timeline>,
}

impl Devices {
    /// Linear in the ops, which are sorted by start.
    pub fn new(profile: &Profile) -> Self {
        let ops = &profile.ops;
        let mut devices = Self::default();
        let mut index: FxHashMap<u32, u32> = FxHashMap::default();
        let mut ids: Vec<u32> = ops.streams.iter().map(|s| gpu_id(profile, s.pid, s.device)).collect();
        for &id in &ids {
            index.insert(id, 0);
        }
        let mut distinct: Vec<u32> = index.keys().copied().collect();
        distinct.sort_unstable();
        for (i, id) in (0..).zip(&distinct) {
            index.insert(*id, i);
        }
        devices.of_stream = ids.drain(..).map(|id| index[&id]).collect();
        devices.list = distinct
            .into_iter()
            .map(|id| Device {
                id,
                name: profile.target.gpu_names.get(&id).cloned(),
                timeline: Timeline::default(),
            })
            .collect();
        devices.stream_ops = vec![Vec::new(); ops.streams.len()];
        devices.of_its_own = vec![Timeline::default(); ops.streams.len()];
        let mut streams_on = vec![0u32; devices.list.len()];
        devices.of_stream.iter().for_each(|&device| streams_on[device as usize] += 1);
        for i in 0..ops.len() {
            let stream = ops.stream[i] as usize;
            devices.stream_ops[stream].push(i as u32);
            let device = &mut devices.list[devices.of_stream[stream] as usize];
            device.timeline.add(i as u32, ops.start[i], ops.end[i]);
            if streams_on[devices.of_stream[stream] as usize] > 1 {
                devices.of_its_own[stream].add(i as u32, ops.start[i], ops.end[i]);
            }
        }
        devices
    }

    /// When a stream worked.
    pub fn timeline_of(&self, stream: u32) -> &Timeline {
        let own = &self.of_its_own[stream as usize];
        if own.busy.is_empty() { &self.list[self.of_stream[stream as usize] as usize].timeline } else { own }
    }
}

/// GPU of a process's CUDA ordinal. With `CUDA_VISIBLE_DEVICES` two ranks both call theirs 0: the export's map tells.
pub fn gpu_id(profile: &Profile, global_pid: i64, ordinal: u32) -> u32 {
    let pid = pid_of(global_pid);
    profile.target.gpu_of.get(&(pid, ordinal)).copied().unwrap_or(ordinal)
}

/// Process id of a `globalPid` or `globalTid`: bits 24 to 47.
pub fn pid_of(global: i64) -> u32 {
    ((global >> 24) & 0xFF_FFFF) as u32
}

/// Thread id of a `globalTid`: the low 24 bits.
pub fn tid_of(global: i64) -> u32 {
    (global & 0xFF_FFFF) as u32
}

/// Whether a device number says nothing.
pub fn unknown(device: u32) -> bool {
    device == NONE
}

impl Timeline {
    /// Adds an op that starts no earlier than those before it.
    fn add(&mut self, op: u32, start: i64, end: i64) {
        match self.busy.last_mut() {
            Some(last) if start <= last.1 => {
                self.busy_ns += (end - last.1).max(0);
                last.1 = last.1.max(end);
            }
            _ => {
                self.busy.push((start, end));
                self.first_op.push(op);
                self.before.push(self.busy_ns);
                self.busy_ns += end - start;
            }
        }
    }

    /// First start and last end.
    pub fn span(&self) -> Option<(i64, i64)> {
        Some((self.busy.first()?.0, self.busy.last()?.1))
    }

    /// The gap that begins exactly at `time`: its end and the op that ends it. `None` while the device works on, and
    /// after its last op.
    pub fn gap_from(&self, time: i64) -> Option<(i64, u32)> {
        let next = self.busy.partition_point(|b| b.0 <= time);
        let before = self.busy.get(next.checked_sub(1)?)?;
        if before.1 != time {
            return None;
        }
        Some((self.busy.get(next)?.0, self.first_op[next]))
    }

    /// Busy time within `from..to`, in ns. Costs two binary searches, however long that is.
    pub fn busy_within(&self, from: i64, to: i64) -> i64 {
        (self.busy_until(to) - self.busy_until(from)).max(0)
    }

    fn busy_until(&self, time: i64) -> i64 {
        let begun = self.busy.partition_point(|b| b.0 < time);
        begun
            .checked_sub(1)
            .map_or(0, |last| self.before[last] + self.busy[last].1.min(time) - self.busy[last].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ```text
    ///   s0  [0---10]        [30---40]
    ///   s1       [5---20]
    ///   busy [0-------20]   [30---40]
    /// ```
    #[test]
    fn gaps_are_those_of_all_streams_together() {
        let mut t = Timeline::default();
        for (op, start, end) in [(0, 0, 10), (1, 5, 20), (2, 30, 40)] {
            t.add(op, start, end);
        }
        assert_eq!(t.busy, [(0, 20), (30, 40)]);
        assert_eq!(t.gap_from(20), Some((30, 2)));
        assert_eq!(t.gap_from(10), None, "stream 1 still works");
        assert_eq!(t.gap_from(40), None, "nothing follows");
        assert_eq!(t.busy_within(10, 35), 15);
        assert_eq!(t.busy_within(-5, 3), 3);
        assert_eq!(t.busy_within(20, 30), 0, "between two");
        assert_eq!(t.busy_within(35, 90), 5);
        assert_eq!(t.busy_within(12, 10), 0, "no window at all");
        assert_eq!(t.busy_ns, 30);
        assert_eq!(t.span(), Some((0, 40)));
    }
}
