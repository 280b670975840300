//! Which row, thread or stream a number stands for. What has a column of its own type cannot be read with another's.

pub(crate) use crate::vocabulary::index;

index! {
    /// A kept CUDA API call: its place in the columns of [`super::calls::Calls`].
    CallId

    /// A GPU operation: its place in the columns of [`super::ops::Ops`].
    OpId

    /// A host thread: its place in [`super::calls::Calls::threads`].
    ThreadIx

    /// A stream of one process: its place in [`super::ops::Ops::streams`]. Not CUPTI's stream id.
    StreamIx

    /// The name of calls: its place in [`super::calls::Calls::names`].
    NameIx

    /// The backtrace twin of a call: its place in the columns of [`super::calls::Twins`].
    TwinIx

    /// A mark: its place in the columns of [`super::nvtx::Marks`].
    MarkIx

    /// An NVTX range: its place in the columns of [`super::nvtx::Ranges`].
    RangeId
}

/// A number that the export gives: a correlation, device, context, stream, event or call chain. 0 is one like any other.
///
/// "None" is CUPTI's own value for it. An `Option` would take twice the room, and rows without a number sort last, as
/// they do in the export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExportId(u32);

impl ExportId {
    /// No id, where the export has NULL.
    pub const NONE: Self = Self(u32::MAX);

    /// The id of a cell; `None` becomes [`Self::NONE`].
    pub fn new(id: Option<u32>) -> Self {
        id.map_or(Self::NONE, Self)
    }

    /// The number, where there is one.
    pub fn known(self) -> Option<u32> {
        (self != Self::NONE).then_some(self.0)
    }

    /// As the export has it, also where that is CUPTI's "none".
    pub fn number(self) -> u32 {
        self.0
    }

    /// Whether the export had none.
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// The id so much higher; none stays none.
    pub fn plus(self, offset: u32) -> Self {
        Self::new(self.known().and_then(|id| id.checked_add(offset)))
    }

    /// This one, else another.
    pub fn or(self, other: Self) -> Self {
        if self.is_none() { other } else { self }
    }

    /// Whether both may be the same number, as far as they are recorded.
    pub fn may_be(self, other: Self) -> bool {
        self == other || self.is_none() || other.is_none()
    }
}

impl From<u32> for ExportId {
    fn from(id: u32) -> Self {
        Self(id)
    }
}

/// `globalPid` of a `globalTid`.
pub fn process(global_tid: i64) -> i64 {
    global_tid & !0xFF_FFFF
}

/// Process id of a `globalPid` or `globalTid`: bits 24 to 47.
pub fn pid_of(global: i64) -> u32 {
    ((global >> 24) & 0xFF_FFFF) as u32
}

/// Thread id of a `globalTid`: the low 24 bits.
pub fn tid_of(global: i64) -> u32 {
    (global & 0xFF_FFFF) as u32
}
