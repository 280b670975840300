//! Steps of host threads and the ops that they issue.

use crate::profile::ids::{StreamIx, ThreadIx, index};
use crate::vocabulary::SiteIx;

/// An op that starts later than its launch and its stream explain by more than this has another cause.
pub const UNEXPLAINED_NS: i64 = 20_000;

index! {
    /// A step: its place in [`Program::steps`].
    StepIx

    /// An op: its place in the order of issue, and so in [`Program::ops`].
    Rank

    /// All streams of one process on one device.
    GroupIx

    /// A host thread, or what stands for the unknown one of ops without a launch.
    HostThread

    /// A context with a legacy default stream.
    ContextIx

    /// A copy that a fix may change: its place in [`Program::pinned`].
    CopyIx
}

impl std::ops::Add<usize> for Rank {
    type Output = Self;

    fn add(self, ops: usize) -> Self {
        Self::from(self.index() + ops)
    }
}

impl From<ThreadIx> for HostThread {
    fn from(thread: ThreadIx) -> Self {
        Self::from(thread.index())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// Goes on after its length, with its ops enqueued. `Some` for a single copy.
    Launch(Option<CopyIx>),
    /// A copy that returns `back` after its op's end, when it is done or staged.
    Copy(Option<CopyIx>),
    /// Waits for all that was issued on a stream.
    Stream(StreamIx),
    /// Waits for all that the process issued to a device.
    Device(GroupIx),
    Op(Rank),
    /// An op without a recorded launch: it starts no earlier than recorded.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Free,
    Default(ContextIx),
    Blocking(ContextIx),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    None,
    /// The copy before the synchronisation.
    Copy,
    /// The synchronisation, or the blocking copy or free.
    Wait,
    /// A launch that goes with a dropped read ([`super::beside`]).
    Count,
    /// As [`Self::Count`], with the time before it.
    Select,
    /// Stays, without the time before it.
    Index,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Host time since the step before it on thread `after`.
    pub gap: i64,
    /// Host time in the call that nothing on the GPU explains.
    pub length: i64,
    /// From the end of the awaited work to the wait's return.
    pub back: i64,
    /// Consecutive in issue order.
    pub first_op: Rank,
    pub ops: u32,
    pub site: Option<SiteIx>,
    /// Host time of `gap`, and of a launch's `length`, estimated to be the profiler's.
    pub overhead: u32,
    /// Host time around the call that goes with it: the library's (`around`), the profiler's (`traced`).
    pub around: u32,
    pub traced: u32,
    pub thread: HostThread,
    /// Its own thread, or the one that handed over to it.
    pub after: HostThread,
    pub kind: StepKind,
    pub role: Role,
    /// An iteration has ended: delayed waits end before this step.
    pub flush: bool,
    /// Last of a run of waits of its site.
    pub last: bool,
    /// A copy from or to pageable host memory: the call moves it piece by piece.
    pub staged: bool,
}

impl Step {
    /// Ops without a call, from `first_op` on; callers fill in what a call adds.
    #[inline]
    pub(super) fn given(first_op: Rank, ops: u32, thread: HostThread) -> Self {
        Self {
            gap: 0,
            length: 0,
            back: 0,
            first_op,
            ops,
            site: None,
            overhead: 0,
            around: 0,
            traced: 0,
            thread,
            after: thread,
            kind: StepKind::Given,
            role: Role::None,
            flush: false,
            last: false,
            staged: false,
        }
    }

    pub fn ranks(&self) -> impl Iterator<Item = Rank> + use<> {
        (self.first_op.index()..self.next_op().index()).map(Rank::from)
    }

    pub(super) fn next_op(&self) -> Rank {
        self.first_op + self.ops as usize
    }
}

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
    /// [`super::learn::kind_index`].
    pub kind: u8,
    pub follows: Option<Rank>,
    /// Index on its stream: queued when the op [`super::learn::Learned::depth`] places before has ended.
    pub place: u32,
    /// No earlier than this after the other side of the legacy default stream ([`super::legacy`]).
    pub after_barrier: i32,
}
