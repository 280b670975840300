//! The streams of each process: which worked when, and what was issued to each before a time.

use super::Wait;
use super::device::{DeviceIx, Devices};
use super::overlap::Overlaps;
use crate::profile::Profile;
use crate::profile::ids::{GlobalPid, OpId, StreamIx};
use crate::profile::seek::Remembered;
use rustc_hash::FxHashMap;
use typed_index_collections::TiVec;

/// Streams of a process that are asked one by one. Of more, only those are that worked meanwhile.
pub const FEW_STREAMS: usize = 16;

/// Ops by stream, for look-ups in time order.
pub struct Streams<'a> {
    pub(super) profile: &'a Profile,
    pub(super) devices: &'a Devices,
    /// Streams of each process, the one that worked first first.
    pub(super) of_process: FxHashMap<GlobalPid, Vec<StreamIx>>,
    /// All ops, where a process has many streams.
    overlaps: Option<Overlaps>,
    /// Where the last look-up ended.
    places: TiVec<StreamIx, Remembered>,
}

impl<'a> Streams<'a> {
    /// Of an export. Linear in the streams; in the ops too, where a process has many streams.
    pub fn new(profile: &'a Profile, devices: &'a Devices) -> Self {
        let ops = &profile.ops;
        let mut of_process: FxHashMap<GlobalPid, Vec<StreamIx>> = FxHashMap::default();
        for (stream, key) in ops.streams.iter_enumerated() {
            of_process.entry(key.pid).or_default().push(stream);
        }
        for streams in of_process.values_mut() {
            streams.sort_by_key(|&s| devices.stream_ops[s].first());
        }
        let many = of_process.values().any(|streams| streams.len() > FEW_STREAMS);
        let overlaps = many.then(|| Overlaps::new(ops));
        let places = ops.streams.iter().map(|_| Remembered::default()).collect();
        Self { profile, devices, of_process, overlaps, places }
    }

    /// Streams of a process; none where the export holds no work of it.
    pub(super) fn of(&self, pid: GlobalPid) -> &[StreamIx] {
        self.of_process.get(&pid).map_or(&[], Vec::as_slice)
    }

    /// Streams of a process that may have worked between `from` and `until`.
    pub(super) fn working(&self, pid: GlobalPid, from: i64, until: i64) -> Vec<StreamIx> {
        let (streams, ops) = (self.of(pid), &self.profile.ops);
        match &self.overlaps {
            Some(overlaps) if streams.len() > FEW_STREAMS => {
                let streams = overlaps.between(ops, from, until).into_iter().map(|op| ops.stream(op));
                let mut streams: Vec<StreamIx> = streams.filter(|&s| ops.streams[s].pid == pid).collect();
                streams.sort_unstable();
                streams.dedup();
                streams
            }
            _ => streams.to_vec(),
        }
    }

    /// The last op on `stream` whose launch began before `time` and that started before `until`.
    pub(super) fn last_issued(&self, stream: StreamIx, time: i64, until: i64) -> Option<OpId> {
        self.last_ended(stream, time, until, i64::MAX)
    }

    /// As [`Self::last_issued`], of those that ended by `ended_by`.
    pub(super) fn last_ended(&self, stream: StreamIx, time: i64, until: i64, ended_by: i64) -> Option<OpId> {
        let (ops, list) = (&self.profile.ops, &self.devices.stream_ops[stream]);
        let started = self.places[stream].seek(list.len(), |i| ops.start(list[i]) < until);
        // In order on a stream: those skipped were issued by other threads during the wait.
        let fits = |op: &OpId| self.profile.issued(*op) < time && ops.end(*op) <= ended_by;
        list[..started].iter().rev().copied().find(fits)
    }

    /// What had been issued when a wait began and had not ended then, but by `ended_by`: the last op of each stream of its
    /// process, of one device if it is for that.
    pub(super) fn pending(
        &self,
        wait: &Wait,
        device: Option<DeviceIx>,
        ended_by: i64,
    ) -> impl Iterator<Item = OpId> {
        let working = self.working(wait.pid, wait.start, wait.end).into_iter();
        let on = working.filter(move |&stream| device.is_none_or(|d| d == self.devices.of_stream[stream]));
        let (start, end) = (wait.start, wait.end);
        let last = on.filter_map(move |stream| self.last_ended(stream, start, end, ended_by));
        last.filter(move |&op| self.profile.ops.end(op) > start)
    }

    /// The one of some ops that ended last.
    pub(super) fn latest(&self, ops: impl Iterator<Item = OpId>) -> Option<OpId> {
        ops.max_by_key(|&op| (self.profile.ops.end(op), std::cmp::Reverse(op)))
    }
}
