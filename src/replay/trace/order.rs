//! Order between streams: which op, or which wait of a stream, follows which op of another stream.
//!
//! A stretch is repeated, so what stands before it is its own end:
//!
//! ```text
//!  recorded    …[gemm a][gemm b][record e] | [stream-wait e][copy]…[gemm a][gemm b][record e'] | …
//!  replayed                                  [stream-wait e'][copy]…[gemm a][gemm b][record e']     repeated
//! ```
//! An op before the stretch is the one of its stream that has as many behind it in the stretch. One further back than
//! the stretch is long ended before, and nothing needs to wait for it.

use super::Scene;
use crate::cost::simulate::follow;
use crate::profile::ids::{ExportId, OpId, StreamIx};
use crate::profile::ops::StreamKey;
use rustc_hash::{FxHashMap, FxHashSet};

/// `cudaStreamWaitEvent` with an event whose record is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamWait {
    pub start: i64,
    pub end: i64,
    /// Of the export: the stream that waits.
    pub stream: StreamIx,
    /// Op of the stretch after which the event is recorded; none where that is long ended before.
    pub after: Option<OpId>,
}

#[derive(Debug, Default)]
pub struct Order {
    /// Recorded, by time.
    pub waits: Vec<StreamWait>,
    /// Concluded from times: op, and the op of the stretch that it follows.
    pub follows: FxHashMap<OpId, OpId>,
}

impl Order {
    /// Linear in the ops of the stretch and in all recorded stream waits.
    pub fn new(scene: &Scene) -> Self {
        let recorded = scene.recorded();
        // Ops that a recorded wait holds back are explained, be it one at the end of the stretch before.
        let held: FxHashSet<OpId> =
            recorded.iter().filter_map(|wait| scene.next_on(wait.stream, wait.start)).collect();
        let is_here = |wait: &StreamWait| wait.start >= scene.stretch.from_ns && wait.after.is_some();
        let waits = recorded.into_iter().filter(is_here).collect();
        let mut list = scene.ops_before();
        let here: FxHashSet<OpId> = scene.recording.ops().collect();
        list.extend(scene.recording.ops());
        let follows = follow::within(&scene.found.profile, &scene.found.devices, &list);
        let of_here = follows.into_iter().filter(|(op, _)| here.contains(op) && !held.contains(op));
        let follows = of_here.filter_map(|(op, f)| Some((op, scene.repeated(f)?))).collect();
        Self { waits, follows }
    }

    /// Ops after which an event is recorded.
    pub fn followed(&self) -> impl Iterator<Item = OpId> + '_ {
        self.waits.iter().filter_map(|w| w.after).chain(self.follows.values().copied())
    }
}

impl Scene<'_> {
    /// Streams of the replayed process and device.
    fn is_here(&self, stream: StreamIx) -> bool {
        self.found.profile.ops.streams[stream].pid == self.chosen.pid
            && self.found.devices.of_stream[stream] == self.chosen.device
    }

    /// Ops of a stream that were issued before `time`.
    fn issued_before(&self, stream: StreamIx, time: i64) -> usize {
        let list = &self.found.devices.stream_ops[stream];
        list.partition_point(|&op| self.found.profile.issued(op) < time)
    }

    /// The first op of the stretch that a stream runs after `time`.
    fn next_on(&self, stream: StreamIx, time: i64) -> Option<OpId> {
        let at = self.issued_before(stream, time);
        let next = at < self.issued_before(stream, self.stretch.to_ns);
        next.then(|| self.found.devices.stream_ops[stream][at])
    }

    /// An op, or the one of the stretch that stands for it in the stretch before.
    fn repeated(&self, op: OpId) -> Option<OpId> {
        let stream = self.found.profile.ops.stream(op);
        let list = &self.found.devices.stream_ops[stream];
        let at = list.binary_search(&op).ok()?;
        self.at(stream, at)
    }

    /// The same of the op at `at` of a stream.
    fn at(&self, stream: StreamIx, at: usize) -> Option<OpId> {
        let list = &self.found.devices.stream_ops[stream];
        let (first, end) = (
            self.issued_before(stream, self.stretch.from_ns),
            self.issued_before(stream, self.stretch.to_ns),
        );
        let here = if at < first { end.checked_sub(first - at).filter(|i| *i >= first)? } else { at };
        (here < end).then(|| list[here])
    }

    /// Recorded waits of this stretch and the one before, by time, and what each one follows.
    fn recorded(&self) -> Vec<StreamWait> {
        let profile = &self.found.profile;
        let streams = &profile.ops.streams;
        let find = |device: ExportId, context: ExportId, stream: ExportId| {
            let at =
                streams.binary_search(&StreamKey { pid: self.chosen.pid, device, context, stream }).ok()?;
            self.is_here(at).then_some(at)
        };
        let inside = |time: i64| (self.before()..self.stretch.to_ns).contains(&time);
        let rows = profile.syncs.stream_waits().filter(|(w, _)| w.pid == self.chosen.pid && inside(w.start));
        let waits = rows.filter_map(|(wait, record)| {
            let from = find(record.device, record.context, record.stream)?;
            let stream = find(wait.device, wait.context, wait.stream)?;
            let call = record.call?;
            let before = self.issued_before(from, profile.calls.start(call));
            let after = before.checked_sub(1).and_then(|at| self.at(from, at));
            (from != stream).then_some(StreamWait { start: wait.start, end: wait.end, stream, after })
        });
        let mut waits: Vec<_> = waits.collect();
        waits.sort_unstable_by_key(|w| (w.start, w.stream, w.after));
        waits
    }

    /// Where the stretch before begins.
    fn before(&self) -> i64 {
        self.stretch.from_ns.saturating_sub(self.stretch.to_ns.saturating_sub(self.stretch.from_ns))
    }

    /// Ops that were issued within the stretch's length before it, in that order.
    fn ops_before(&self) -> Vec<OpId> {
        let since = self.before();
        let streams = self.found.devices.stream_ops.iter_enumerated().filter(|(s, _)| self.is_here(*s));
        let mut ops: Vec<OpId> = streams
            .flat_map(|(s, list)| {
                let within = self.issued_before(s, since)..self.issued_before(s, self.stretch.from_ns);
                list[within].iter().copied()
            })
            .collect();
        ops.sort_unstable_by_key(|&op| (self.found.profile.issued(op), op));
        ops
    }
}
