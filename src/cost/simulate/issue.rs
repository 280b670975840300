//! In which order calls issued which ops.

use super::step::Rank;
use crate::profile::Profile;
use crate::profile::ids::{CallId, OpId, StreamIx, ThreadIx};
use typed_index_collections::TiVec;

/// Calls in recorded order and the ops that each issued.
pub struct Issue {
    /// Outermost calls and ops without a call, by start.
    pub entries: Vec<Entry>,
    pub order: TiVec<Rank, OpId>,
    pub rank: TiVec<OpId, Rank>,
}

/// One outermost call, or an op without one.
#[derive(Clone, Copy)]
pub struct Entry {
    pub call: Option<CallId>,
    /// How many ops it issued: those that follow the ones of the entry before.
    pub ops: u32,
}

impl Issue {
    /// Linear in calls and ops. Calls nested in another hand their ops to it.
    ///
    /// ```text
    ///  cudaLaunchKernelExC [-----------]     one step, with the kernel
    ///    cuLaunchKernelEx    [-------]       nested
    /// ```
    pub fn new(profile: &Profile) -> Self {
        let (calls, ops) = (&profile.calls, &profile.ops);
        let outer = outermost(profile);
        let call_of = |op: OpId| profile.issuer(op).map(|call| outer[call]);
        // Ops of each call; then, once a call has its entry, the rank of the next of them.
        let mut count: TiVec<CallId, u32> = TiVec::from(vec![0; calls.len()]);
        ops.ids().filter_map(call_of).for_each(|call| count[call] += 1);
        let orphans = orphans(profile, call_of);
        let mut next_orphan = orphans.iter().copied().peekable();
        let mut entries = Vec::with_capacity(calls.len() + orphans.len());
        let mut at = Rank::from(0);
        let mut rank: TiVec<OpId, Rank> = TiVec::from(vec![at; ops.len()]);
        let mut place_orphan = |op: OpId, at: &mut Rank, entries: &mut Vec<Entry>| {
            rank[op] = *at;
            entries.push(Entry { call: None, ops: 1 });
            *at = *at + 1;
        };
        for call in calls.ids().filter(|&call| outer[call] == call) {
            while let Some((_, op)) = next_orphan.next_if(|o| o.0 <= calls.start[call]) {
                place_orphan(op, &mut at, &mut entries);
            }
            let ops = std::mem::replace(&mut count[call], at.index() as u32);
            entries.push(Entry { call: Some(call), ops });
            at = at + ops as usize;
        }
        next_orphan.for_each(|(_, op)| place_orphan(op, &mut at, &mut entries));
        let mut order: TiVec<Rank, OpId> = TiVec::from(vec![OpId::from(0); ops.len()]);
        for op in ops.ids() {
            if let Some(call) = call_of(op) {
                rank[op] = Rank::from(count[call] as usize);
                count[call] += 1;
            }
            order[rank[op]] = op;
        }
        Self { entries, order, rank }
    }

    /// All ops in the order of their issue, each with the call that issued it.
    pub fn ops(&self) -> impl Iterator<Item = (Rank, OpId, Option<CallId>)> {
        let calls = self.entries.iter().flat_map(|entry| std::iter::repeat_n(entry.call, entry.ops as usize));
        self.order.iter_enumerated().zip(calls).map(|((rank, &op), call)| (rank, op, call))
    }
}

/// Ops whose launch is not recorded, by when they were issued at the latest: they ran before later ops of their stream,
/// so they were issued before those.
///
/// ```text
///  capture      |  [launch b]                    a was launched before the capture began
///  stream 7     |               [a------][b--]   and counts as issued just before b
/// ```
fn orphans(profile: &Profile, call_of: impl Fn(OpId) -> Option<CallId>) -> Vec<(i64, OpId)> {
    let ops = &profile.ops;
    let mut next: TiVec<StreamIx, i64> = ops.streams.iter().map(|_| i64::MAX).collect();
    let mut found = Vec::new();
    for op in ops.ids().rev() {
        let next = &mut next[ops.stream[op]];
        match call_of(op) {
            None => {
                *next = (*next).min(ops.start[op]);
                found.push((*next, op));
            }
            Some(call) => *next = (*next).min(profile.calls.start[call]),
        }
    }
    found.sort_unstable();
    found
}

/// The outermost call around each call, itself for most.
fn outermost(profile: &Profile) -> TiVec<CallId, CallId> {
    let calls = &profile.calls;
    let mut open: TiVec<ThreadIx, Option<(i64, CallId)>> = calls.threads.iter().map(|_| None).collect();
    let around = |call: CallId| {
        let (start, end) = (calls.start[call], calls.end[call]);
        let open = &mut open[calls.thread[call]];
        let (until, outer) = open.filter(|(until, _)| end <= *until && start < *until).unwrap_or((end, call));
        *open = Some((until.max(end), outer));
        outer
    };
    calls.ids().map(around).collect()
}
