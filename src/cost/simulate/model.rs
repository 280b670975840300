//! The capture as a program that can be run again: steps of host threads and the ops that they issue.

use super::learn::Learned;
use super::packed::{OpRow, Packed, StepRow};
use crate::iterations::Iterations;
use crate::profile::Profile;
use crate::profile::calls::Calls;
use crate::profile::database::Progress;
use crate::profile::ids::{CallId, OpId, StreamIx, ThreadIx, index};
use crate::waits::collectives::Collectives;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use typed_index_collections::TiVec;

/// An op that starts later than its launch and its stream explain by more than this has another cause.
pub const UNEXPLAINED_NS: i64 = 20_000;

index! {
    /// A step: its place in [`Program::steps`].
    StepIx

    /// An op: its place in the order of issue, and so in [`Program::ops`].
    Rank

    /// All streams of one process on one device.
    GroupIx

    /// A context with a legacy default stream.
    ContextIx

    /// A copy that a fix may change: its place in [`Program::pinned`].
    CopyIx

    /// A site that [`Program::mark`] was given.
    SubjectIx
}

impl std::ops::Add<usize> for Rank {
    type Output = Self;

    fn add(self, ops: usize) -> Self {
        Self::from(self.index() + ops)
    }
}

/// A host thread, or what stands for the unknown one of ops without a launch. Of 16 bits, so that a step takes no more
/// than a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HostThread(u16);

impl From<usize> for HostThread {
    fn from(index: usize) -> Self {
        Self(index as u16)
    }
}

impl From<HostThread> for usize {
    fn from(thread: HostThread) -> Self {
        Self::from(thread.0)
    }
}

impl From<ThreadIx> for HostThread {
    fn from(thread: ThreadIx) -> Self {
        Self::from(thread.index())
    }
}

/// What a step makes the host do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// Goes on after its length, having enqueued its ops. Of a single copy: which one.
    Launch(Option<CopyIx>),
    /// A copy that returns when it is done, or has been staged: `back` after its op's end.
    Copy(Option<CopyIx>),
    /// Waits for all that was issued on a stream.
    Stream(StreamIx),
    /// Waits for all that was issued to a device by the process.
    Device(GroupIx),
    /// Waits for an op.
    Op(Rank),
    /// No call: an op whose launch is not recorded, no earlier than it was.
    Given,
}

impl StepKind {
    pub fn waits(self) -> bool {
        matches!(self, Self::Stream(_) | Self::Device(_) | Self::Op(_))
    }

    /// Whether it is a copy that the host stays for.
    pub fn is_copy(self) -> bool {
        matches!(self, Self::Copy(_))
    }
}

/// A stream's part in the ordering by the legacy default stream of its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Free,
    Default(ContextIx),
    Blocking(ContextIx),
}

/// What a step is to the wait of its site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    None,
    /// The copy before the synchronisation.
    Copy,
    /// The synchronisation, or the blocking copy or free.
    Wait,
    /// A launch that goes with a read that is dropped ([`super::selection`]).
    Count,
    /// As [`Self::Count`], the time before it too.
    Select,
    /// Stays, without the time before it.
    Index,
}

/// One API call of a thread, outermost, in recorded order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Host time since the step before it on thread `after`.
    pub gap: i64,
    /// Host time in the call that nothing on the GPU explains.
    pub length: i64,
    /// From the end of what a wait awaits to its return.
    pub back: i64,
    /// Its ops, consecutive in issue order.
    pub first_op: Rank,
    pub ops: u32,
    /// Site of the wait it belongs to.
    pub site: Option<SubjectIx>,
    /// Host time of `gap`, and of a launch's `length`, that is estimated to be the profiler's.
    pub overhead: u32,
    /// Host time around the call that goes with it: the library's own, and the profiler's.
    pub around: u32,
    pub traced: u32,
    pub thread: HostThread,
    /// Thread whose last step it follows: its own, or the one that handed over to it.
    pub after: HostThread,
    pub kind: StepKind,
    pub role: Role,
    /// Delayed waits end before it: an iteration has ended.
    pub flush: bool,
    /// Last of a run of waits of its site.
    pub last: bool,
    /// A copy from or to host memory that is not pinned: the call moves it, piece by piece.
    pub staged: bool,
}

impl Step {
    /// Its ops.
    pub fn ranks(&self) -> impl Iterator<Item = Rank> + use<> {
        (self.first_op.index()..self.next_op().index()).map(Rank::from)
    }

    /// The one after its last op.
    pub(super) fn next_op(&self) -> Rank {
        self.first_op + self.ops as usize
    }
}

/// One op, in issue order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    pub duration: i64,
    /// No earlier than this after its call's end (its start for [`StepKind::Copy`]).
    pub after_call: i64,
    /// No earlier than this after the op before it on its stream.
    pub after_previous: i64,
    /// No earlier than this after op `follows`.
    pub after_followed: i64,
    pub stream: StreamIx,
    /// Op of another stream that it follows.
    pub follows: Option<Rank>,
    /// Which of its stream's it is. The queue takes it when the one [`Learned::depth`] places before has ended.
    pub place: u32,
    /// No earlier than this after the other side of the legacy default stream ([`super::legacy`]).
    pub after_barrier: i32,
}

/// A capture, ready to be simulated. Times are ns since its first event.
#[derive(Default)]
pub struct Program {
    /// Calls of all threads, in recorded order.
    pub steps: Packed<StepIx, StepRow>,
    /// Ops, in the order in which calls issued them.
    pub ops: Packed<Rank, OpRow>,
    /// [`super::learn::kind_index`].
    pub(in crate::cost) kind: TiVec<Rank, u8>,
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
    pub(in crate::cost) step_of_call: TiVec<CallId, Option<StepIx>>,
    /// Ops that started late for a reason that is not known.
    pub unexplained: u64,
    /// The op of each rank.
    pub(super) order: TiVec<Rank, OpId>,
    /// Kernels that waited for another process, by rank.
    pub(in crate::cost) late: Vec<Late>,
    /// What waits are for that wait for less.
    pub(in crate::cost) narrower: FxHashMap<StepIx, Rank>,
    /// Host and device time that goes with waits whose reads are dropped, besides them, by call.
    pub(in crate::cost) selections: FxHashMap<CallId, (i64, i64)>,
    /// Sites that [`Program::mark`] was given.
    pub sites: usize,
    /// Is told how many simulations are done; `None` where nobody looks.
    pub progress: Option<Arc<dyn Progress>>,
    /// Whether iterations are marked.
    pub iterations: bool,
    /// The loop: the first steps of its first and of its last iteration, and how many iterations lie between.
    pub laps: Option<Laps>,
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
        self.step_of_call.get(call).copied().flatten()
    }

    /// Says that something looks back at an op, with all ops before `next` issued.
    pub(super) fn looks_back(&mut self, next: Rank, at: Rank) {
        let back = &mut self.reach[self.ops.get(at).stream].back;
        *back = (*back).max((next.index() - at.index()) as u32);
    }

    /// Says which waits are one site's: site `i` has the waits `sites[i]`, by call and copy call.
    pub fn mark(&mut self, sites: &[Vec<(CallId, Option<CallId>)>]) {
        self.sites = sites.len();
        for (site, waits) in sites.iter().enumerate() {
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
            collectives.met().filter(|&(op, last)| ops.start[op] < ops.start[last]).collect();
        let rank = self.ranks(late.iter().flat_map(|&(op, last)| [op, last]));
        let known = |&(op, last): &(OpId, OpId)| {
            let tail = ops.end[op] - ops.start[last];
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

    /// The ranks of some ops. Linear in all ops.
    fn ranks(&self, some: impl Iterator<Item = OpId>) -> FxHashMap<OpId, Rank> {
        let some: FxHashSet<OpId> = some.collect();
        if some.is_empty() {
            return FxHashMap::default();
        }
        let all = self.order.iter_enumerated().map(|(rank, &op)| (op, rank));
        all.filter(|(op, _)| some.contains(op)).collect()
    }

    fn mark_step(&mut self, call: Option<CallId>, site: usize, role: Role) {
        if let Some(step) = call.and_then(|call| self.step_of(call)) {
            self.steps.change(step, |step| (step.site, step.role) = (Some(SubjectIx::from(site)), role));
        }
    }

    /// The last of each run of waits of one site that nothing but the site's own copies parts.
    fn mark_runs(&mut self) {
        let mut next = self.by_thread(None);
        for at in self.steps.keys().rev() {
            let mut step = self.steps.get(at);
            if step.role == Role::Wait {
                let following = &mut next[step.thread];
                step.last = *following != step.site || step.flush;
                *following = step.site;
                self.steps.set(at, step);
            }
        }
    }

    /// Marks the first step of each thread after the end of each iteration, and the loop as a whole; `thread`: whose it is.
    pub fn mark_iterations(&mut self, calls: &Calls, iterations: &Iterations, thread: Option<ThreadIx>) {
        let spans = &iterations.spans;
        self.iterations = !spans.is_empty();
        let mut at = self.by_thread(0usize);
        for (call, step) in self.step_of_call.iter_enumerated() {
            let (Some(step), at) = (*step, &mut at[HostThread::from(calls.thread[call])]) else { continue };
            let passed = spans[*at..].iter().take_while(|s| s.1 <= calls.start[call]).count();
            if passed > 0 {
                self.steps.change(step, |step| step.flush = true);
            }
            *at += passed;
        }
        let own = thread.map_or(&[][..], |thread| &calls.by_thread[thread]);
        let first_from = |time: i64| {
            let from = own.partition_point(|&call| calls.start[call] < time);
            own[from..].iter().find_map(|&call| self.step_of(call))
        };
        self.laps = spans.first().zip(spans.last()).and_then(|(first, last)| {
            let (first, last) = (first_from(first.0)?, first_from(last.0)?);
            Some(Laps { first, last, count: spans.len() as i64 - 1 }).filter(|l| l.first < l.last)
        });
    }
}
