//! The capture as a program that can be run again: steps of host threads and the ops that they issue.

use super::issue::{Order, Steps};
use super::learn::Learned;
use super::packed::{OpRow, Packed, StepRow};
use super::sample::Sample;
use super::step::{CopyIx, GroupIx, HostThread, Part, Rank, Role, StepIx};
use crate::iterations::Iterations;
use crate::profile::Profile;
use crate::profile::calls::Calls;
use crate::profile::database::Progress;
use crate::profile::ids::{CallId, OpId, StreamIx, ThreadIx};
use crate::profile::seek::seek;
use crate::vocabulary::SiteIx;
use crate::waits::collectives::Collectives;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use typed_index_collections::{TiSlice, TiVec};

/// A capture, ready to be simulated. Times are ns since its first event.
#[derive(Default)]
pub struct Program {
    /// Calls of all threads, in recorded order.
    pub steps: Packed<StepIx, StepRow>,
    /// Ops, in the order in which calls issued them.
    pub ops: Packed<Rank, OpRow>,
    pub(super) reach: TiVec<StreamIx, Reach>,
    pub(in crate::cost) group: TiVec<StreamIx, GroupIx>,
    pub(in crate::cost) groups: usize,
    pub(in crate::cost) part: TiVec<StreamIx, Part>,
    /// Contexts in which that ordering means anything.
    pub barriers: usize,
    /// Host threads, the unknown one included.
    pub threads: usize,
    /// Start of the capture on its own clock.
    pub origin: i64,
    /// Recorded last end.
    pub recorded: i64,
    /// Duration from or to pinned memory, of copies that a fix may change.
    pub pinned: TiVec<CopyIx, i64>,
    /// Latencies and copy speeds of this capture; assumed ones where it shows none.
    pub learned: Learned,
    /// Step of each outermost call.
    pub(in crate::cost) step_of_call: Steps,
    /// Ops that started late for a reason that is not known.
    pub unexplained: u64,
    /// The op of each rank.
    pub(super) order: Order,
    /// Kernels that waited for another process, by rank.
    pub(in crate::cost) late: Vec<Late>,
    /// What waits are for that wait for less.
    pub(in crate::cost) narrower: FxHashMap<StepIx, Rank>,
    /// Host and device time that goes with waits whose reads are dropped, besides them, by call.
    pub(in crate::cost) beside: FxHashMap<CallId, (i64, i64)>,
    /// Host time in which what a call uploads is made, of calls whose advice is to make it elsewhere.
    pub(super) made: FxHashMap<StepIx, i64>,
    /// Sites that [`Program::mark`] was given.
    pub sites: usize,
    /// Is told how many simulations are done; `None` where nobody looks.
    pub progress: Option<Arc<dyn Progress>>,
    /// Whether iterations are marked.
    pub iterations: bool,
    /// The loop: the first steps of its first and of its last iteration, and how many iterations lie between.
    pub laps: Option<Laps>,
    /// Which of their steps a run passes over.
    pub(in crate::cost) sample: Sample,
    /// Whether calls carry backtraces whose cost was learned.
    pub backtraces: bool,
}

/// A collective kernel that ran until another process had joined in, and then as long as the collective takes.
///
/// ```text
///  rank 0   [all-reduce, waits ~~~~~~~|~~~~]      ends `tail` after the start of `last`,
///  rank 1                             [~~~~]      whenever that is
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cost) struct Late {
    pub rank: Rank,
    /// The kernel of the process that came last.
    pub last: Rank,
    pub tail: i64,
}

/// How far back the ops of a stream are looked at, so that no more of their ends have to be kept.
#[derive(Clone, Copy, Default)]
pub(super) struct Reach {
    /// How many ops it has.
    pub ops: u32,
    /// How many of them, of those issued until then, by what waits for one of them.
    pub back: u32,
}

/// From the start of the first iteration to the start of the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Laps {
    pub first: StepIx,
    pub last: StepIx,
    pub count: i64,
}

impl Program {
    pub(super) fn empty(learned: Learned) -> Self {
        Self { learned, threads: 1, ..Self::default() }
    }

    /// A column with an entry for each host thread.
    pub fn by_thread<T: Clone>(&self, value: T) -> TiVec<HostThread, T> {
        TiVec::from(vec![value; self.threads])
    }

    /// Stands for the thread that issued an op without a recorded launch.
    pub fn unknown_thread(&self) -> HostThread {
        HostThread::from(self.threads - 1)
    }

    /// Step of a call.
    pub fn step_of(&self, call: CallId) -> Option<StepIx> {
        self.step_of_call.of(call)
    }

    /// Says that something looks back at an op, with all ops before `next` issued.
    pub(super) fn looks_back(&mut self, next: Rank, at: Rank) {
        let back = &mut self.reach[self.ops.get(at).stream].back;
        *back = (*back).max((next.index() - at.index()) as u32);
    }

    /// Says which waits are one site's, by call and copy call.
    pub fn mark(&mut self, sites: &TiSlice<SiteIx, Vec<(CallId, Option<CallId>)>>) {
        self.sites = sites.len();
        for (site, waits) in sites.iter_enumerated() {
            for &(call, copy) in waits {
                self.mark_step(Some(call), site, Role::Wait);
                self.mark_step(copy, site, Role::Copy);
            }
        }
        self.mark_runs();
    }

    /// Lets collectives wait for the ranks that they met (`Late`).
    pub fn meet(&mut self, profile: &Profile, collectives: &Collectives) {
        let ops = &profile.ops;
        let late: Vec<(OpId, OpId)> =
            collectives.met().filter(|&(op, last)| ops.start(op) < ops.start(last)).collect();
        let rank = self.ranks(late.iter().flat_map(|&(op, last)| [op, last]));
        let known = |&(op, last): &(OpId, OpId)| {
            let tail = ops.end(op) - ops.start(last);
            Some(Late { rank: *rank.get(&op)?, last: *rank.get(&last)?, tail })
        };
        self.late = late.iter().filter_map(known).collect();
        self.late.sort_unstable_by_key(|late| late.rank);
        // When the last ranks joined is asked at the end of a pass.
        let end = self.ops.next_key();
        for at in 0..self.late.len() {
            self.looks_back(end, self.late[at].last);
        }
    }

    /// Says for what less some waits could be: their calls, with the last op that is needed.
    pub fn narrow(&mut self, waits: &[(CallId, OpId)]) {
        let rank = self.ranks(waits.iter().map(|w| w.1));
        let step = |&(call, op): &(CallId, OpId)| {
            let (step, rank) = (self.step_of(call)?, *rank.get(&op)?);
            (rank < self.steps.get(step).first_op).then_some((step, rank))
        };
        self.narrower = waits.iter().filter_map(step).collect();
        for (&step, &rank) in &self.narrower.clone() {
            self.looks_back(self.steps.get(step).next_op(), rank);
        }
    }

    /// The ranks of some ops.
    fn ranks(&self, some: impl Iterator<Item = OpId>) -> FxHashMap<OpId, Rank> {
        some.map(|op| (op, self.order.rank(op))).collect()
    }

    fn mark_step(&mut self, call: Option<CallId>, site: SiteIx, role: Role) {
        let step = call.and_then(|call| self.step_of(call));
        if let Some(step) = step.filter(|step| self.sample.holds(*step)) {
            self.steps.change(step, |step| (step.site, step.role) = (Some(site), role));
        }
    }

    /// The last of each run of waits of one site that nothing but the site's own copies parts.
    fn mark_runs(&mut self) {
        let mut next = self.by_thread(None);
        let stretches: Vec<_> = self.sample.stretches(self.steps.len()).collect();
        for at in stretches.into_iter().rev().flat_map(|(steps, _)| steps.rev()).map(StepIx::from) {
            // What is kept in short is no wait.
            if self.steps.short(at).is_some() {
                continue;
            }
            let mut step = self.steps.get(at);
            if step.role == Role::Wait {
                let following = &mut next[step.thread];
                step.last = *following != step.site || step.flush;
                *following = step.site;
                self.steps.set(at, step);
            }
        }
    }

    /// Marks the loop, chooses what is simulated of it ([`super::sample`]: of so many steps or twice as many), and marks there
    /// the first step of each thread after the end of each iteration. `thread`: whose the loop is.
    pub fn mark_iterations(
        &mut self,
        calls: &Calls,
        iterations: &Iterations,
        thread: Option<ThreadIx>,
        steps: usize,
    ) {
        let spans = &iterations.spans;
        self.iterations = !spans.is_empty();
        let first = |span: &(i64, i64)| self.first_step(calls, thread, span.0);
        let laps = spans.first().zip(spans.last()).and_then(|(from, to)| {
            let (first, last) = (first(from)?, first(to)?);
            Some(Laps { first, last, count: spans.len() as i64 - 1 }).filter(|l| l.first < l.last)
        });
        self.laps = laps;
        self.sample(calls, iterations, thread, steps);
        for own in &calls.by_thread {
            for stretch in self.sample.iterations(spans.len()) {
                self.mark_ends(calls, own, &spans[stretch]);
            }
        }
    }

    fn mark_ends(&mut self, calls: &Calls, own: &[CallId], spans: &[(i64, i64)]) {
        let (mut at, mut from) = (0, 0);
        while let Some(span) = spans.get(at) {
            seek(own.len(), &mut from, |n| calls.start(own[n]) < span.1);
            let next = |call: usize| Some((call, self.step_of(own[call])?));
            let Some((call, step)) = (from..own.len()).find_map(next) else { break };
            self.steps.change(step, |step| step.flush = true);
            from = call;
            seek(spans.len(), &mut at, |n| spans[n].1 <= calls.start(own[call]));
        }
    }

    /// The first step of a thread from a time on.
    pub(super) fn first_step(&self, calls: &Calls, thread: Option<ThreadIx>, time: i64) -> Option<StepIx> {
        let own = &calls.by_thread[thread?];
        let from = own.partition_point(|&call| calls.start(call) < time);
        own[from..].iter().find_map(|&call| self.step_of(call))
    }
}
