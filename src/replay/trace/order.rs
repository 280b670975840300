//! Order between streams: the op, or the wait of a stream, that follows an op of another stream.
//!
//! A stretch is repeated, so its own end comes before it:
//!
//! ```text
//!  recorded    …[gemm a][gemm b][record e] | [stream-wait e][copy]…[gemm a][gemm b][record e'] | …
//!  replayed                                  [stream-wait e'][copy]…[gemm a][gemm b][record e']     repeated
//! ```
//! An op before the stretch is the one of its stream with as many behind it in the stretch. An op further
//! back than the stretch has long ended: nothing waits for it.

use super::Scene;
use crate::cost::simulate::follow::{self, StreamWait};
use crate::profile::ids::{OpId, StreamIx};
use rustc_hash::{FxHashMap, FxHashSet};

#[derive(Debug, Default)]
pub struct Order {
    /// Recorded, by time, each after an op of the stretch.
    pub waits: Vec<StreamWait>,
    /// Concluded from times: op, and the op of the stretch that it follows.
    pub follows: FxHashMap<OpId, OpId>,
}

impl Order {
    /// Linear in the ops of the stretch and in all recorded stream waits.
    pub fn new(scene: &Scene) -> Self {
        let recorded = scene.recorded();
        // A recorded wait explains the ops it holds back, also a wait at the end of the stretch before.
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

    pub fn followed(&self) -> impl Iterator<Item = OpId> + '_ {
        self.waits.iter().filter_map(|w| w.after).chain(self.follows.values().copied())
    }
}

impl Scene<'_> {
    fn is_here(&self, stream: StreamIx) -> bool {
        self.found.profile.ops.streams[stream].pid == self.chosen.pid
            && self.found.devices.of_stream[stream] == self.chosen.device
    }

    fn issued_before(&self, stream: StreamIx, time: i64) -> usize {
        self.found.devices.issued_before(&self.found.profile, stream, time)
    }

    /// The first op of the stretch that a stream runs after `time`.
    fn next_on(&self, stream: StreamIx, time: i64) -> Option<OpId> {
        let at = self.issued_before(stream, time);
        let next = at < self.issued_before(stream, self.stretch.to_ns);
        next.then(|| self.found.devices.stream_ops[stream][at])
    }

    /// The op, or the op of the stretch that stands for one of the stretch before.
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

    /// Recorded waits of this stretch and the one before, by time, with the op of this one that each follows.
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

    fn before(&self) -> i64 {
        self.stretch.from_ns.saturating_sub(self.stretch.to_ns.saturating_sub(self.stretch.from_ns))
    }

    /// In order of issue, within the stretch's length before it.
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
