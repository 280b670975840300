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
    /// Simulated calls of all threads, in recorded order.
    pub steps: Packed<StepIx, StepRow>,
    pub ops: Packed<Rank, OpRow>,
    pub(super) reach: TiVec<StreamIx, Reach>,
    pub(in crate::cost) group: TiVec<StreamIx, GroupIx>,
    pub(in crate::cost) groups: usize,
    pub(in crate::cost) part: TiVec<StreamIx, Part>,
    /// Contexts with a default and a blocking stream.
    pub barriers: usize,
    /// Includes the unknown one.
    pub threads: usize,
    /// Start of the capture on its own clock.
    pub origin: i64,
    /// Recorded last end.
    pub recorded: i64,
    /// Duration from or to pinned memory, of copies that a fix may change.
    pub pinned: TiVec<CopyIx, i64>,
    /// Assumed values where the capture shows none.
    pub learned: Learned,
    pub(in crate::cost) issue: Issue,
    /// Bursts that another thread handed over, of the whole capture.
    pub(super) handed: Vec<HandOver>,
    /// By rank.
    pub(in crate::cost) late: Vec<Late>,
    /// The last op needed, for waits that could wait for less.
    pub(in crate::cost) narrower: FxHashMap<StepIx, Rank>,
    /// Host and device time besides the waits that goes with dropped reads, by call.
    pub(in crate::cost) beside: FxHashMap<CallId, (i64, i64)>,
    /// Host time that a fix of an upload spares; below 0 if it adds some.
    pub(super) made: FxHashMap<StepIx, i64>,
    pub sites: usize,
    pub progress: Option<Arc<dyn Progress>>,
    pub iterations: bool,
    pub laps: Option<Laps>,
    pub(in crate::cost) sample: Sample,
    /// Whether calls carry backtraces whose cost was learned.
    pub backtraces: bool,
}

/// A collective kernel that ran until another process joined, and then as long as the collective takes.
///
/// ```text
///  rank 0   [all-reduce, waits ~~~~~~~|~~~~]      ends `tail` after the start of `last`,
///  rank 1                             [~~~~]      whenever that is
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cost) struct Late {
    pub rank: Rank,
    pub last: Rank,
    pub tail: i64,
}

/// How far back a stream's ops are looked at: older ends need not be kept.
#[derive(Clone, Copy, Default)]
pub(super) struct Reach {
    pub ops: u32,
    /// Largest distance in ranks from an op to what looks back at it.
    pub back: u32,
}

impl Program {
    pub fn by_thread<T: Clone>(&self, value: T) -> TiVec<HostThread, T> {
        TiVec::from(vec![value; self.threads])
    }

    pub fn unknown_thread(&self) -> HostThread {
        HostThread::from(self.threads - 1)
    }

    pub fn step_of(&self, call: CallId) -> Option<StepIx> {
        self.issue.steps.of(call)
    }

    /// Host time before a step's call without the profiler's, and in the call; as recorded if not simulated.
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

    /// Notes that something looks back at op `at` when all ops before `next` are issued.
    pub(super) fn looks_back(&mut self, stream: StreamIx, next: Rank, at: Rank) {
        let back = &mut self.reach[stream].back;
        *back = (*back).max((next.index() - at.index()) as u32);
    }

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

    /// Notes waits that could wait for less: their calls, with the last op that is needed.
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

    /// Marks the last of each run of one site's waits on a thread.
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

    pub fn size(&self) -> usize {
        self.steps.len() + self.ops.len()
    }

    /// Stretches that are simulated, each with the recorded time left out before it.
    pub(in crate::cost) fn stretches(&self) -> Vec<(Range<usize>, i64)> {
        self.sample.stretches(self.issue.steps.len())
    }

    pub fn reached(&self) -> TiVec<SiteIx, bool> {
        let mut reached = TiVec::from(vec![self.sample.is_whole(); self.sites]);
        self.steps.in_full().filter_map(|step| step.site).for_each(|site| reached[site] = true);
        reached
    }
}
