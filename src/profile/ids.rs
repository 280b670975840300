//! Typed numbers of rows, threads and streams: a column of one type cannot be read with another's number.

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

/// A number of the export: a correlation, device, context, stream, event or call chain. 0 is like any other.
///
/// The value for "none" is CUPTI's own. An `Option` would take twice the room. Rows without a number sort
/// last, as in the export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExportId(u32);

impl ExportId {
    /// Stands for NULL in the export.
    pub const NONE: Self = Self(u32::MAX);

    pub fn new(id: Option<u32>) -> Self {
        id.map_or(Self::NONE, Self)
    }

    pub fn known(self) -> Option<u32> {
        (self != Self::NONE).then_some(self.0)
    }

    /// As exported, CUPTI's "none" included.
    pub fn number(self) -> u32 {
        self.0
    }

    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// None stays none.
    pub fn plus(self, offset: u32) -> Self {
        Self::new(self.known().and_then(|id| id.checked_add(offset)))
    }

    pub fn or(self, other: Self) -> Self {
        if self.is_none() { other } else { self }
    }

    /// Whether both may be the same number, as far as recorded.
    pub fn may_be(self, other: Self) -> bool {
        self == other || self.is_none() || other.is_none()
    }
}

impl From<u32> for ExportId {
    fn from(id: u32) -> Self {
        Self(id)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GlobalPid(i64);

/// `globalTid`: a host thread, with its process in the upper bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GlobalTid(i64);

impl GlobalPid {
    /// Rows that name no process have it.
    pub const NONE: Self = Self(0);

    pub const fn new(number: i64) -> Self {
        Self(number)
    }

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
    /// Rows that name no thread have it.
    pub const NONE: Self = Self(0);

    pub const fn new(number: i64) -> Self {
        Self(number)
    }

    pub fn number(self) -> i64 {
        self.0
    }

    pub fn process(self) -> GlobalPid {
        GlobalPid(self.0 & !0xFF_FFFF)
    }

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
