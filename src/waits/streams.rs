//! The streams of each process: when each worked, and the ops issued to each before a time.

use super::Wait;
use super::device::{DeviceIx, Devices};
use super::overlap::Overlaps;
use crate::profile::Profile;
use crate::profile::ids::{GlobalPid, OpId, StreamIx};
use crate::profile::seek::Remembered;
use rustc_hash::FxHashMap;
use typed_index_collections::TiVec;

/// Most streams of a process that are looked up one by one.
pub const FEW_STREAMS: usize = 16;

pub struct Streams<'a> {
    pub(super) profile: &'a Profile,
    pub(super) devices: &'a Devices,
    /// Streams of each process, by first op.
    pub(super) of_process: FxHashMap<GlobalPid, Vec<StreamIx>>,
    /// `None` unless a process has many streams.
    overlaps: Option<Overlaps>,
    places: TiVec<StreamIx, Remembered>,
}

impl<'a> Streams<'a> {
    /// Linear in the streams; also in the ops, where a process has many streams.
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

    /// Empty where the export holds no work of the process.
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

    /// As [`Self::last_issued`], among ops that ended by `ended_by`.
    pub(super) fn last_ended(&self, stream: StreamIx, time: i64, until: i64, ended_by: i64) -> Option<OpId> {
        let (ops, list) = (&self.profile.ops, &self.devices.stream_ops[stream]);
        let started = self.places[stream].seek(list.len(), |i| ops.start(list[i]) < until);
        // Streams work in order: skipped ops were issued by other threads during the wait.
        let fits = |op: &OpId| self.profile.issued(*op) < time && ops.end(*op) <= ended_by;
        list[..started].iter().rev().copied().find(fits)
    }

    /// The last op per stream pending when the wait began and ended by `ended_by`, on `device` or any device.
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

    pub(super) fn latest(&self, ops: impl Iterator<Item = OpId>) -> Option<OpId> {
        ops.max_by_key(|&op| (self.profile.ops.end(op), std::cmp::Reverse(op)))
    }
}
