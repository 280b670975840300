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
use crate::cost::simulate::follow::{self, StreamWait};
use crate::profile::ids::{OpId, StreamIx};
use rustc_hash::{FxHashMap, FxHashSet};

#[derive(Debug, Default)]
pub struct Order {
    /// Recorded, by time; each after an op of the stretch.
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
        self.found.devices.issued_before(&self.found.profile, stream, time)
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
        let (first, end) = (
            self.issued_before(stream, self.stretch.from_ns),
            self.issued_before(stream, self.stretch.to_ns),
        );
        let here = if at < first { end.checked_sub(first - at).filter(|i| *i >= first)? } else { at };
        (here < end).then(|| list[here])
    }

    /// Recorded waits of this stretch and the one before, by time, and what each one follows of this one.
    fn recorded(&self) -> Vec<StreamWait> {
        let inside = self.before()..self.stretch.to_ns;
        let is_own =
            |w: &StreamWait| w.stream != w.from && [w.stream, w.from].iter().all(|&s| self.is_here(s));
        let waits = follow::stream_waits(&self.found.profile, &self.found.devices);
        let waits = waits.filter(|w| inside.contains(&w.start) && is_own(w));
        let repeated = |w: StreamWait| StreamWait { after: w.after.and_then(|op| self.repeated(op)), ..w };
        let mut waits: Vec<_> = waits.map(repeated).collect();
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
