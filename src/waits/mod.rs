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

/// Whether a wait tells the host that a copy has left its memory free, or filled it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Guards {
    /// No copy that another wait does not cover.
    Nothing,
    /// It covers such a copy, among other work.
    Perhaps,
    /// Its event was recorded right after such a copy.
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
    /// The copy call before it that this wait completes. Without a `copy`: what was copied is not recorded.
    pub copy_call: Option<CallId>,
    /// What the call blocks for.
    pub blocking: Blocking,
    /// The thread that waits.
    pub thread: ThreadIx,
    /// The process.
    pub pid: GlobalPid,
    /// Start of the copy call if there is one, else of the call, in ns.
    pub start: i64,
    /// End of the call, in ns.
    pub end: i64,
    /// Host time in the call, and in the copy call where that one blocked, in ns.
    pub blocked: i64,
    /// The part of `blocked` that is the copy call's.
    pub copy_blocked: i64,
    /// What was copied, where a copy is part of the wait.
    pub copy: Option<Copy>,
    /// The GPU waited for; `None` where the export does not tell.
    pub device: Option<DeviceIx>,
    /// CUPTI stream id.
    pub stream: ExportId,
    /// CUPTI context id.
    pub context: ExportId,
    /// What it found on the GPU.
    pub found: Found,
    /// The awaited op that ended last.
    pub awaited: Option<OpId>,
    /// The last op of the one stream it covers, ended or not.
    pub reaches: Option<OpId>,
    /// A device that still worked when the wait returned: it cannot have waited for that one.
    pub not_for: Option<DeviceIx>,
    /// Copy to the host, started earlier without waiting, that this wait completes; of several the one that ended last.
    pub completes: Option<OpId>,
    /// Whether the host relies on it for memory that a copy reads or writes.
    pub guards: Guards,
    /// Whether it ends what two events measure.
    pub timed: bool,
    /// Whether it is the free by which a CUDA runtime starts: that of a library which brings one of its own, as cuBLAS and cuRAND do.
    pub starts: bool,
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

    /// Takes the copy away again: it was started elsewhere, and this synchronisation completes it later on.
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
    /// One stream.
    Stream(StreamIx),
    /// Every stream of the process on one device.
    Device(DeviceIx),
    /// Every stream of the process, on whichever device: which one is not recorded.
    AnyDevice,
    /// Nothing that the export records.
    Nothing,
}
