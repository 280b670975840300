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

/// `globalPid`: a process of the machine that was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GlobalPid(i64);

/// `globalTid`: a host thread, and in its upper bits the process that it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GlobalTid(i64);

impl GlobalPid {
    /// That of rows which name no process.
    pub const NONE: Self = Self(0);

    /// What stands in a cell.
    pub const fn new(number: i64) -> Self {
        Self(number)
    }

    /// As the export has it.
    pub fn number(self) -> i64 {
        self.0
    }

    /// Process id: bits 24 to 47.
    pub fn pid(self) -> u32 {
        ((self.0 >> 24) & 0xFF_FFFF) as u32
    }

    /// The thread that the process began with: its thread id is the process id.
    pub fn main_thread(self) -> GlobalTid {
        GlobalTid(self.0 | i64::from(self.pid()))
    }
}

impl GlobalTid {
    /// That of rows which name no thread.
    pub const NONE: Self = Self(0);

    /// What stands in a cell.
    pub const fn new(number: i64) -> Self {
        Self(number)
    }

    /// As the export has it.
    pub fn number(self) -> i64 {
        self.0
    }

    /// The process that it is of.
    pub fn process(self) -> GlobalPid {
        GlobalPid(self.0 & !0xFF_FFFF)
    }

    /// Process id, as [`GlobalPid::pid`].
    pub fn pid(self) -> u32 {
        self.process().pid()
    }

    /// Thread id: the low 24 bits.
    pub fn tid(self) -> u32 {
        (self.0 & 0xFF_FFFF) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_tells_its_process() {
        let [process, main, other] = [0, 100, 105].map(|tid| 7 << 48 | 100 << 24 | tid);
        let (process, main, other) = (GlobalPid::new(process), GlobalTid::new(main), GlobalTid::new(other));
        assert_eq!([main.process(), other.process()], [process; 2]);
        assert_eq!((process.pid(), other.pid(), other.tid()), (100, 100, 105));
        assert_eq!(process.main_thread(), main);
    }
}
