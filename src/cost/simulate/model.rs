//! The capture as a program that can be run again: steps of host threads and the ops that they issue.

use super::follow::HandOver;
use super::issue::Issue;
use super::learn::Learned;
use super::packed::{OpRow, Packed, StepRow};
use super::sample::{Laps, Sample};
use super::step::{CopyIx, GroupIx, HostThread, Part, Rank, Role, StepIx};
use crate::profile::calls::Calls;
use crate::profile::database::Progress;
use crate::profile::ids::{CallId, OpId, StreamIx};
use crate::vocabulary::SiteIx;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;
use typed_index_collections::{TiSlice, TiVec};

/// A capture, ready to be simulated. Times are ns since its first event.
#[derive(Default)]
pub struct Program {
    /// Calls of all threads, in recorded order: those that are simulated.
    pub steps: Packed<StepIx, StepRow>,
    /// Their ops, in the order in which calls issued them.
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
    /// Steps and ops of the whole capture.
    pub(in crate::cost) issue: Issue,
    /// Bursts that another thread handed over, of the whole capture too.
    pub(super) handed: Vec<HandOver>,
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

impl Program {
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
        self.issue.steps.of(call)
    }

    /// Host time before a step's call without the profiler's, and in it: of what is not simulated as recorded.
    pub(super) fn host_time(&self, calls: &Calls, at: StepIx, call: CallId) -> (i64, i64) {
        if let Some(step) = self.steps.get(at) {
            return (step.gap - i64::from(step.overhead), step.length);
        }
        let (own, start) = (&calls.by_thread[calls.thread(call)], calls.start(call));
        let mut before = own[..own.partition_point(|&other| other < call)].iter().rev();
        let last = before.find(|&&other| self.step_of(other).is_some());
        let ended = last.map_or(self.origin, |&last| calls.end(last));
        let handed = self.handed.binary_search_by_key(&at, |handed| handed.step);
        let gap = handed.map_or(start - ended, |place| self.handed[place].gap);
        (gap.max(0), (calls.end(call) - start.max(ended)).max(0))
    }

    /// Says that something looks back at an op of a stream, with all ops before `next` issued.
    pub(super) fn looks_back(&mut self, stream: StreamIx, next: Rank, at: Rank) {
        let back = &mut self.reach[stream].back;
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

    /// Says for what less some waits could be: their calls, with the last op that is needed.
    pub fn narrow(&mut self, waits: &[(CallId, OpId)]) {
        self.narrower.clear();
        for &(call, op) in waits {
            let rank = self.issue.order.rank(op);
            let step = self.step_of(call).and_then(|at| Some((at, self.steps.get(at)?)));
            if let Some((at, step)) = step.filter(|(_, step)| rank < step.first_op) {
                self.narrower.insert(at, rank);
                if let Some(op) = self.ops.get(rank) {
                    self.looks_back(op.stream, step.next_op(), rank);
                }
            }
        }
    }

    fn mark_step(&mut self, call: Option<CallId>, site: SiteIx, role: Role) {
        if let Some(step) = call.and_then(|call| self.step_of(call)) {
            self.steps.change(step, |step| (step.site, step.role) = (Some(site), role));
        }
    }

    /// The last of each run of waits of one site that nothing but the site's own copies parts.
    fn mark_runs(&mut self) {
        let mut next = self.by_thread(None);
        for (steps, _) in self.stretches().into_iter().rev() {
            for at in steps.rev().map(StepIx::from) {
                self.steps.change_in_full(at, |step| {
                    if step.role == Role::Wait {
                        let following = &mut next[step.thread];
                        step.last = *following != step.site || step.flush;
                        *following = step.site;
                    }
                });
            }
        }
    }

    /// How many steps and ops a run goes over.
    pub fn size(&self) -> usize {
        self.steps.len() + self.ops.len()
    }

    /// Stretches of steps that are simulated, each with the recorded time that was left out before it.
    pub(in crate::cost) fn stretches(&self) -> Vec<(Range<usize>, i64)> {
        self.sample.stretches(self.issue.steps.len())
    }

    /// Whether runs come by each site.
    pub fn reached(&self) -> TiVec<SiteIx, bool> {
        let mut reached = TiVec::from(vec![self.sample.is_whole(); self.sites]);
        self.steps.in_full().filter_map(|step| step.site).for_each(|site| reached[site] = true);
        reached
    }
}
