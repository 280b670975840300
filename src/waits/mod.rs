//! Host waits: every blocking of one host thread on the GPU.

pub mod api;
pub mod awaited;
pub mod collectives;
pub mod device;
pub mod find;
mod guards;
pub mod held;
mod overlap;
pub mod streams;
mod timed;

use crate::profile::calls::Calls;
use crate::profile::ids::{CallId, ExportId, GlobalPid, OpId, StreamIx, ThreadIx, index};
use crate::profile::ops::Ops;
use crate::vocabulary::{Copy, Direction};
use api::Blocking;
use device::DeviceIx;
use typed_index_collections::TiSlice;

index! {
    /// A wait of one capture: its place in the list of all that are reported.
    WaitId
}

/// Waits of one capture, in order of their calls.
pub type Waits = TiSlice<WaitId, Wait>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Pending,
    /// Nothing: all earlier work had ended by itself.
    Nothing,
    /// Nothing, because an earlier wait of this thread had drained it and no work was submitted since.
    Drained,
    /// Nothing recorded is pending, yet the call blocked: a host function, another process, or lost events.
    Unseen,
    /// The export records no GPU work of this process.
    Unknown,
}

impl Found {
    pub fn is_nothing(self) -> bool {
        matches!(self, Self::Nothing | Self::Drained)
    }
}

/// Whether the host relies on a wait before it reads or reuses the memory of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Guards {
    Nothing,
    /// The wait covers such a copy, among other work.
    Perhaps,
    /// The awaited event was recorded right after such a copy.
    Own,
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
    pub call: CallId,
    /// The preceding copy call that this wait completes. If `copy` is `None`, the export lacks the copy.
    pub copy_call: Option<CallId>,
    pub blocking: Blocking,
    pub thread: ThreadIx,
    pub pid: GlobalPid,
    /// Start of the copy call if there is one, else of the call, in ns.
    pub start: i64,
    pub end: i64,
    /// Host time in the call, and in the copy call where that one blocked, in ns.
    pub blocked: i64,
    pub copy_blocked: i64,
    /// `None`: no copy, or one the export lacks.
    pub copy: Option<Copy>,
    /// `None` where the export does not say which GPU.
    pub device: Option<DeviceIx>,
    pub stream: ExportId,
    pub context: ExportId,
    pub found: Found,
    pub awaited: Option<OpId>,
    /// The last op of the one stream it covers, ended or not.
    pub reaches: Option<OpId>,
    /// A device still busy when the wait returned: the wait was not for that device.
    pub not_for: Option<DeviceIx>,
    /// D2H copy, started earlier without waiting, that this wait completes; the last to end of several.
    pub completes: Option<OpId>,
    pub guards: Guards,
    /// Whether it ends a stretch timed by two events.
    pub timed: bool,
    /// Whether the call is the `cudaFree` with which a CUDA runtime starts, as in cuBLAS or cuRAND.
    pub starts: bool,
    pub covers: Covers,
    /// Only work issued before this time (ns) is covered: an event proves nothing about later launches.
    pub covers_before: i64,
}

impl Wait {
    /// Whether the export lacks the copy of this wait (trimmed, or lost by the profiler).
    pub fn copy_lost(&self) -> bool {
        self.copy_call.is_some() && self.copy.is_none()
    }

    /// Detaches the copy, which was started elsewhere: this synchronisation only completes the copy.
    pub fn split_copy(&mut self, calls: &Calls, ops: &Ops) {
        let start = calls.start(self.call);
        let to_host = self.copy.is_some_and(|c| c.direction == Direction::DeviceToHost);
        self.completes = self.awaited.filter(|_| to_host);
        let pending = self.awaited.is_some_and(|op| ops.end(op) > start);
        self.found = if pending { Found::Pending } else { Found::Nothing };
        self.blocked -= self.copy_blocked;
        (self.copy_call, self.copy, self.copy_blocked, self.start) = (None, None, 0, start);
    }
}

/// Streams whose earlier work a wait's return proves ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covers {
    Stream(StreamIx),
    Device(DeviceIx),
    /// The device is not recorded.
    AnyDevice,
    Nothing,
}
