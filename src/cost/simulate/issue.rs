//! The order in which calls issued ops.

use super::step::{Rank, StepIx};
use crate::profile::Profile;
use crate::profile::coded::Codes;
use crate::profile::ids::{CallId, OpId, StreamIx, ThreadIx};
use typed_index_collections::TiVec;

/// Steps that share one count of the ops before them.
const MARKED: usize = 64;

#[derive(Default)]
pub struct Issue {
    /// Outermost calls and ops without a call, by start.
    pub steps: Steps,
    /// Ops that each step issued; they follow those of the step before.
    counts: Codes<StepIx>,
    /// Ops before every [`MARKED`]th step.
    marks: Vec<u32>,
    pub order: Order,
}

#[derive(Clone, Copy)]
pub struct Entry {
    pub call: Option<CallId>,
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
        let nested = Nested::new(profile);
        let call_of = |op: OpId| profile.issuer(op).map(|call| nested.outermost(call));
        // First the number of ops of each call, then the rank of the next of them.
        let mut count: TiVec<CallId, u32> = TiVec::from(vec![0; calls.len()]);
        ops.ids().filter_map(call_of).for_each(|call| count[call] += 1);
        let orphans = orphans(profile, call_of);
        let (mut steps, mut counts) = (Steps::default(), Codes::default());
        let mut at = Rank::from(0);
        let mut rank: TiVec<OpId, Rank> = TiVec::from(vec![at; ops.len()]);
        let mut next_orphan = orphans.iter().copied().peekable();
        // After the last call come the ops that are left.
        for call in calls.ids().map(Some).chain([None]) {
            if call.is_some_and(|call| nested.outermost(call) != call) {
                steps.push_nested();
                continue;
            }
            let begins = call.map_or(i64::MAX, |call| calls.start(call));
            while let Some((_, op)) = next_orphan.next_if(|o| o.0 <= begins) {
                steps.push_op();
                counts.push(1);
                rank[op] = at;
                at = at + 1;
            }
            let Some(call) = call else { break };
            steps.push_call();
            let ops = std::mem::replace(&mut count[call], at.index() as u32);
            counts.push(ops);
            at = at + ops as usize;
        }
        for op in ops.ids() {
            if let Some(call) = call_of(op) {
                rank[op] = Rank::from(count[call] as usize);
                count[call] += 1;
            }
        }
        let mut before = 0;
        let mark = |step: usize| {
            let own = step..(step + MARKED).min(steps.len());
            before += own.map(|step| counts.get(StepIx::from(step))).sum::<u32>();
            before
        };
        let marks = [0].into_iter().chain((0..steps.len()).step_by(MARKED).map(mark)).collect();
        Self { steps, counts, marks, order: Order::new(rank) }
    }

    /// The first op issued by `step` or a later one; `step` may be the number of steps.
    pub fn first_op(&self, step: usize) -> Rank {
        let marked = step / MARKED;
        let between = (marked * MARKED..step).map(|step| self.counts.get(StepIx::from(step)));
        Rank::from((self.marks.get(marked).copied().unwrap_or(0) + between.sum::<u32>()) as usize)
    }

    pub fn ops_of(&self, step: StepIx) -> impl Iterator<Item = OpId> {
        let first = self.first_op(step.index());
        (0..self.counts.get(step) as usize).map(move |op| self.order.op(first + op))
    }

    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        let calls = self.steps.calls().zip(0..);
        calls.map(|(call, step)| Entry { call, ops: self.counts.get(StepIx::from(step)) })
    }

    pub fn ops(&self) -> impl Iterator<Item = (Rank, OpId, Option<CallId>)> {
        let calls = self.entries().flat_map(|entry| std::iter::repeat_n(entry.call, entry.ops as usize));
        calls.zip(0..).map(|(call, rank)| (Rank::from(rank), self.order.op(Rank::from(rank)), call))
    }
}

/// Calls with a step of their own, in a bit each.
///
/// ```text
///  calls     [launch 0][launch 1 [nested 2]][wait 3]         bits 1101, and of the op without a launch the call after it
///  steps     0         1          op   2    3
/// ```
#[derive(Default)]
pub struct Steps {
    /// For each 64 calls: a bit for each with a step, and how many with a step come before.
    words: Vec<(u64, u32)>,
    calls: usize,
    own: u32,
    /// The call that follows each step without a call.
    ops: Vec<CallId>,
}

impl Steps {
    fn push_call(&mut self) {
        self.push_nested();
        if let Some(word) = self.words.last_mut() {
            word.0 |= 1 << ((self.calls - 1) % 64);
            self.own += 1;
        }
    }

    fn push_nested(&mut self) {
        if self.calls.is_multiple_of(64) {
            self.words.push((0, self.own));
        }
        self.calls += 1;
    }

    fn push_op(&mut self) {
        self.ops.push(CallId::from(self.calls));
    }

    pub fn len(&self) -> usize {
        self.own as usize + self.ops.len()
    }

    pub fn of(&self, call: CallId) -> Option<StepIx> {
        let (at, bit) = (call.index() / 64, call.index() % 64);
        let &(word, before) = self.words.get(at)?;
        let earlier = (word & ((1 << bit) - 1)).count_ones();
        let ops = self.ops.partition_point(|next| *next <= call);
        (word >> bit & 1 == 1).then(|| StepIx::from((before + earlier) as usize + ops))
    }

    /// The call of each step; `None` for an op without a call.
    pub fn calls(&self) -> impl Iterator<Item = Option<CallId>> {
        let (mut next, mut ops) = (0, self.ops.iter().peekable());
        std::iter::from_fn(move || {
            while next < self.calls && self.words[next / 64].0 >> (next % 64) & 1 == 0 {
                next += 1;
            }
            if ops.next_if(|after| after.index() <= next).is_some() {
                return Some(None);
            }
            (next < self.calls).then(|| {
                next += 1;
                Some(CallId::from(next - 1))
            })
        })
    }
}

/// Empty where ops are issued in the order of their starts.
#[derive(Default)]
pub struct Order {
    op: TiVec<Rank, OpId>,
    rank: TiVec<OpId, Rank>,
}

impl Order {
    fn new(rank: TiVec<OpId, Rank>) -> Self {
        if rank.iter_enumerated().all(|(op, rank)| op.index() == rank.index()) {
            return Self::default();
        }
        let mut op: TiVec<Rank, OpId> = TiVec::from(vec![OpId::from(0); rank.len()]);
        rank.iter_enumerated().for_each(|(at, &rank)| op[rank] = at);
        Self { op, rank }
    }

    #[inline]
    pub fn op(&self, rank: Rank) -> OpId {
        self.op.get(rank).copied().unwrap_or_else(|| OpId::from(rank.index()))
    }

    #[inline]
    pub fn rank(&self, op: OpId) -> Rank {
        self.rank.get(op).copied().unwrap_or_else(|| Rank::from(op.index()))
    }
}

/// Ops without a recorded launch, each with the latest time of its issue: they ran, and so were issued,
/// before later ops of their stream.
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
        let next = &mut next[ops.stream(op)];
        match call_of(op) {
            None => {
                *next = (*next).min(ops.start(op));
                found.push((*next, op));
            }
            Some(call) => *next = (*next).min(profile.calls.start(call)),
        }
    }
    found.sort_unstable();
    found
}

/// Nested calls, each with the outermost call around it.
struct Nested(Vec<(CallId, CallId)>);

impl Nested {
    fn new(profile: &Profile) -> Self {
        let calls = &profile.calls;
        let mut open: TiVec<ThreadIx, Option<(i64, CallId)>> = calls.threads.iter().map(|_| None).collect();
        let around = |call: CallId| {
            let (start, end) = (calls.start(call), calls.end(call));
            let open = &mut open[calls.thread(call)];
            let inside = open.filter(|(until, _)| end <= *until && start < *until);
            *open = inside.or(Some((end, call)));
            Some((call, inside?.1))
        };
        Self(calls.ids().filter_map(around).collect())
    }

    fn outermost(&self, call: CallId) -> CallId {
        let at = self.0.binary_search_by_key(&call, |nested| nested.0);
        at.map_or(call, |at| self.0[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::{prop_assert_eq, proptest};

    proptest! {
        /// Steps of calls, nested calls and ops without a call, in any order.
        #[test]
        fn each_call_has_its_step(kinds in vec(0u8..5, 0..300)) {
            let (mut steps, mut expected, mut of) = (Steps::default(), Vec::new(), Vec::new());
            for kind in kinds {
                match kind {
                    0 => {
                        steps.push_op();
                        expected.push(None);
                    }
                    1 => {
                        steps.push_nested();
                        of.push(None);
                    }
                    _ => {
                        steps.push_call();
                        of.push(Some(StepIx::from(expected.len())));
                        expected.push(Some(CallId::from(of.len() - 1)));
                    }
                }
            }
            prop_assert_eq!(steps.len(), expected.len());
            prop_assert_eq!(steps.calls().collect::<Vec<_>>(), expected);
            prop_assert_eq!((0..of.len()).map(|call| steps.of(CallId::from(call))).collect::<Vec<_>>(), of);
        }
    }
}
