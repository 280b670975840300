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

use super::stretch::{Chosen, Window};
use crate::analysis::Analysed;
use crate::cost::simulate::follow;
use rustc_hash::{FxHashMap, FxHashSet};

/// `cudaStreamWaitEvent` with an event whose record is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamWait {
    pub start: i64,
    pub end: i64,
    /// Of the export: the stream that waits.
    pub stream: u32,
    /// Op of the stretch after which the event is recorded.
    pub after: u32,
}

/// The order of one stretch.
#[derive(Debug, Default)]
pub struct Order {
    /// Recorded, by time.
    pub waits: Vec<StreamWait>,
    /// Concluded from times: op, and the op of the stretch that it follows.
    pub follows: FxHashMap<u32, u32>,
}

impl Order {
    /// `ops` of the stretch in the order of their issue. Linear in them and in all recorded stream waits.
    pub fn new(found: &Analysed, chosen: &Chosen, window: &Window, ops: &[u32]) -> Self {
        let stretch = InStretch::new(found, chosen, window);
        let recorded = stretch.recorded();
        // Ops that a recorded wait holds back are explained, be it one at the end of the stretch before.
        let held: FxHashSet<u32> =
            recorded.iter().filter_map(|(wait, _)| stretch.next_on(wait.stream, wait.start)).collect();
        let here_waits = recorded.into_iter().filter(|(wait, _)| wait.start >= window.from);
        let waits =
            here_waits.filter_map(|(wait, after)| Some(StreamWait { after: after?, ..wait })).collect();
        let mut list = stretch.ops_before();
        let here: FxHashSet<u32> = ops.iter().copied().collect();
        list.extend(ops);
        let follows = follow::within(&found.profile, &found.devices, &list);
        let of_here = follows.into_iter().filter(|(op, _)| here.contains(op) && !held.contains(op));
        let follows = of_here.filter_map(|(op, f)| Some((op, stretch.repeated(f)?))).collect();
        Self { waits, follows }
    }

    /// Ops after which an event is recorded.
    pub fn followed(&self) -> impl Iterator<Item = u32> + '_ {
        self.waits.iter().map(|w| w.after).chain(self.follows.values().copied())
    }
}

struct InStretch<'a> {
    found: &'a Analysed,
    pid: i64,
    device: Option<u32>,
    from: i64,
    to: i64,
}

impl<'a> InStretch<'a> {
    fn new(found: &'a Analysed, chosen: &Chosen, window: &Window) -> Self {
        Self { found, pid: chosen.pid, device: chosen.device, from: window.from, to: window.to }
    }

    /// Streams of the replayed process and device.
    fn is_here(&self, stream: usize) -> bool {
        self.found.profile.ops.streams[stream].pid == self.pid
            && Some(self.found.devices.of_stream[stream]) == self.device
    }

    /// Ops of a stream that were issued before `time`.
    fn issued_before(&self, stream: u32, time: i64) -> usize {
        let list = &self.found.devices.stream_ops[stream as usize];
        list.partition_point(|&op| self.found.profile.issued[op as usize] < time)
    }

    /// The first op of the stretch that a stream runs after `time`.
    fn next_on(&self, stream: u32, time: i64) -> Option<u32> {
        let at = self.issued_before(stream, time);
        let next = at < self.issued_before(stream, self.to);
        next.then(|| self.found.devices.stream_ops[stream as usize][at])
    }

    /// An op, or the one of the stretch that stands for it in the stretch before.
    fn repeated(&self, op: u32) -> Option<u32> {
        let stream = self.found.profile.ops.stream[op as usize];
        let list = &self.found.devices.stream_ops[stream as usize];
        let at = list.binary_search(&op).ok()?;
        self.at(stream, at)
    }

    /// The same of the op at `at` of a stream.
    fn at(&self, stream: u32, at: usize) -> Option<u32> {
        let list = &self.found.devices.stream_ops[stream as usize];
        let (first, end) = (self.issued_before(stream, self.from), self.issued_before(stream, self.to));
        let here = if at < first { end.checked_sub(first - at).filter(|i| *i >= first)? } else { at };
        (here < end).then(|| list[here])
    }

    /// Recorded waits of this stretch and the one before, by time, and what each one follows.
    fn recorded(&self) -> Vec<(StreamWait, Option<u32>)> {
        let profile = &self.found.profile;
        let streams = &profile.ops.streams;
        let find = |device, context, id| {
            let key = (self.pid, device, context, id);
            let at = streams.iter().position(|k| (k.pid, k.device, k.context, k.stream) == key)?;
            self.is_here(at).then_some(at as u32)
        };
        let inside = |time: i64| (self.before()..self.to).contains(&time);
        let rows = profile.syncs.stream_waits().filter(|(w, _)| w.pid == self.pid && inside(w.start));
        let waits = rows.filter_map(|(wait, record)| {
            let from = find(record.device, record.context, record.stream)?;
            let stream = find(wait.device, wait.context, wait.stream)?;
            let call = profile.correlation.call(wait.pid, record.correlation)?;
            let before = self.issued_before(from, profile.calls.start[call as usize]);
            let after = before.checked_sub(1).and_then(|at| self.at(from, at));
            let wait = StreamWait { start: wait.start, end: wait.end, stream, after: 0 };
            (from != stream).then_some((wait, after))
        });
        let mut waits: Vec<_> = waits.collect();
        waits.sort_unstable_by_key(|(w, after)| (w.start, w.stream, *after));
        waits
    }

    /// Where the stretch before begins.
    fn before(&self) -> i64 {
        self.from.saturating_sub(self.to.saturating_sub(self.from))
    }

    /// Ops that were issued within the stretch's length before it, in that order.
    fn ops_before(&self) -> Vec<u32> {
        let since = self.before();
        let streams = (0..self.found.devices.stream_ops.len()).filter(|&s| self.is_here(s));
        let mut ops: Vec<u32> = streams
            .flat_map(|s| {
                let within = self.issued_before(s as u32, since)..self.issued_before(s as u32, self.from);
                self.found.devices.stream_ops[s][within].iter().copied()
            })
            .collect();
        ops.sort_unstable_by_key(|&op| (self.found.profile.issued[op as usize], op));
        ops
    }
}
