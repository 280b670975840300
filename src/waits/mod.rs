//! Host waits: every blocking of one host thread on the GPU.

pub mod api;
pub mod awaited;
pub mod device;
pub mod find;

use crate::profile::calls::Calls;
use crate::profile::ops::Ops;
use crate::vocabulary::{Copy, Direction};
use api::Blocking;

/// What the wait found on the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Work that had to end first.
    Pending,
    /// Nothing: all earlier work had ended by itself.
    Nothing,
    /// Nothing, because an earlier wait of this thread had drained it and no work was submitted since.
    Drained,
    /// Nothing that the export records, and yet it blocked too long for that: a host function, another process, or
    /// lost events.
    Unseen,
    /// The export records no GPU work of this process, so it cannot tell.
    Unknown,
}

impl Found {
    /// Whether all that it would have waited for had ended.
    pub fn is_nothing(self) -> bool {
        matches!(self, Self::Nothing | Self::Drained)
    }
}

/// One blocking of one host thread: a synchronising call together with the copy it completes, or a blocking copy or
/// free by itself.
///
/// ```text
///  host   [cudaMemcpyAsync]  [cudaStreamSynchronize------]        one wait: start of the copy to end of the sync
///  GPU      [gemm-----------------------][copy]                   awaited: the copy (and, before it, the gemm)
/// ```
#[derive(Clone, Debug)]
pub struct Wait {
    /// The synchronising call, or the blocking copy or free.
    pub call: u32,
    /// The copy call before it that this wait completes. Without a `copy`: what was copied is not recorded.
    pub copy_call: Option<u32>,
    pub blocking: Blocking,
    /// Index into [`crate::profile::calls::Calls::threads`].
    pub thread: u32,
    /// `globalPid`.
    pub pid: i64,
    /// Start of the copy call if there is one, else of the call, in ns.
    pub start: i64,
    pub end: i64,
    /// Host time in the call, and in the copy call where that one blocked, in ns.
    pub blocked: i64,
    /// The part of `blocked` that is the copy call's.
    pub copy_blocked: i64,
    pub copy: Option<Copy>,
    /// Index into [`device::Devices::list`].
    pub device: Option<u32>,
    /// CUPTI stream id.
    pub stream: Option<u32>,
    pub context: Option<u32>,
    pub found: Found,
    /// The awaited op that ended last.
    pub awaited: Option<u32>,
    /// The last op of the one stream it covers, ended or not.
    pub reaches: Option<u32>,
    /// A device that still worked when the wait returned: it cannot have waited for that one.
    pub not_for: Option<u32>,
    /// Copy to the host, started earlier without waiting, that this wait completes.
    pub completes: Option<u32>,
    /// Which streams its end proves drained.
    pub covers: Covers,
    /// Of the work on those streams: what was issued before this time, in ns. An event proves nothing about what was
    /// launched after its record.
    pub covers_before: i64,
}

impl Wait {
    /// Whether a copy came with it that the export does not hold (trimmed, or lost by the profiler).
    pub fn copy_lost(&self) -> bool {
        self.copy_call.is_some() && self.copy.is_none()
    }
}

/// Streams whose earlier work a wait's return proves ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covers {
    /// One stream: index into [`crate::profile::ops::Ops::streams`].
    Stream(u32),
    /// Every stream of the process on one device.
    Device(u32),
    /// Every stream of the process, on whichever device: which one is not recorded.
    AnyDevice,
    /// Nothing that the export records.
    Nothing,
}

impl Wait {
    /// Takes the copy away again: it was started elsewhere, and this synchronisation completes it later on.
    pub fn part(&mut self, calls: &Calls, ops: &Ops) {
        let start = calls.start[self.call as usize];
        let to_host = self.copy.is_some_and(|c| c.direction == Direction::DeviceToHost);
        self.completes = self.awaited.filter(|_| to_host);
        let pending = self.awaited.is_some_and(|op| ops.end[op as usize] > start);
        self.found = if pending { Found::Pending } else { Found::Nothing };
        self.blocked -= self.copy_blocked;
        (self.copy_call, self.copy, self.copy_blocked, self.start) = (None, None, 0, start);
    }
}
