//! Steps of host threads and the ops that they issue: what a program that can be run again consists of.

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
    /// A launch that goes with a read that is dropped ([`super::beside`]).
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
    pub site: Option<SiteIx>,
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
    /// Ops without a call, from `first_op` on: what a thread's call comes to is filled in.
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
    /// [`super::learn::kind_index`].
    pub kind: u8,
    /// Op of another stream that it follows.
    pub follows: Option<Rank>,
    /// Which of its stream's it is. The queue takes it when the one [`super::learn::Learned::depth`] places before has ended.
    pub place: u32,
    /// No earlier than this after the other side of the legacy default stream ([`super::legacy`]).
    pub after_barrier: i32,
}
