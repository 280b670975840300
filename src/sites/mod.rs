//! Call sites: waits grouped by the line of Python (or the best substitute) that caused them.
//!
//! Grouping has two steps. A *bundle* holds waits alike in everything that a verdict may rest on: process, thread
//! role, API, stack, copy, what was found on the GPU, and the operation that the native chain names. Bundles are
//! judged one by one; then those of one user line with the same verdict join into a *site*.

pub mod backward;
pub mod bundle;
pub mod chain;
pub mod context;
pub mod frames;
pub mod native;
pub mod neighbours;
pub mod program;
pub mod ranges;
pub mod sampled;
pub mod set_up;
pub mod thread;

use crate::profile::ids::GlobalPid;
use crate::profile::payload::PyFrame;
use crate::vocabulary::{Attribution, Copy, Direction, Operand, ThreadRole};
use crate::waits::api::Blocking;
use crate::waits::device::Devices;
use crate::waits::{Found, Guards, Wait, WaitId};
use neighbours::Neighbours;
use std::sync::Arc;

/// When in the life of its process a wait frees memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Freed {
    /// Among its kernels; all that frees nothing, too.
    AtWork,
    /// Nothing is freed: the call starts a CUDA runtime.
    ToStart,
    /// Before its first kernel.
    Before,
    /// After its last kernel: the program takes down what it has.
    After,
}

impl Freed {
    fn of(wait: &Wait, devices: &Devices) -> Self {
        let frees = matches!(wait.blocking, Blocking::Free | Blocking::HostFree);
        match devices.work.get(&wait.pid).filter(|_| frees) {
            _ if wait.starts => Self::ToStart,
            Some(work) if wait.end <= work.0 => Self::Before,
            Some(work) if wait.start >= work.1 => Self::After,
            _ => Self::AtWork,
        }
    }
}

/// Waits alike in everything that a verdict may rest on.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// Ascending.
    pub waits: Vec<WaitId>,
    /// The process.
    pub pid: GlobalPid,
    /// What the waiting thread does in the program.
    pub role: ThreadRole,
    /// Name without version suffix.
    pub api: Arc<str>,
    /// What the call blocks for.
    pub blocking: Blocking,
    /// How the place in the source was found.
    pub attribution: Attribution,
    /// How far to trust the attribution; empty where exact.
    pub note: String,
    /// Python frames, innermost first.
    pub frames: Vec<PyFrame>,
    /// How many of them, from the innermost, are of the waiting calls themselves: further ones are of the thread that was in
    /// `backward()` meanwhile.
    pub own: usize,
    /// Index of the innermost user frame.
    pub user: Option<usize>,
    /// Of waits on autograd's thread, the line of the forward pass whose operator they undo, where ranges tell.
    pub forward: Option<PyFrame>,
    /// Native symbols of an example, innermost first.
    pub chain: Vec<Arc<str>>,
    /// Texts of the NVTX ranges around an example, outermost first.
    pub ranges: Vec<Arc<str>>,
    /// The copy, where all waits have one of the same direction and memory; `bytes` of the first.
    pub copy: Option<Copy>,
    /// Whether all copies have that size.
    pub same_bytes: bool,
    /// What they found on the GPU.
    pub found: Found,
    /// Whether the waits complete an earlier copy to the host.
    pub completes: bool,
    /// Whether the host relies on them for memory that copies read or write.
    pub guards: Guards,
    /// Whether a copy came with the waits that the export does not hold.
    pub copy_lost: bool,
    /// When memory is freed.
    pub freed: Freed,
    /// Names of the ops around an example.
    pub neighbours: Neighbours,
}

impl Bundle {
    /// Whether a copy from the host comes with its waits.
    pub fn uploads(&self) -> bool {
        self.copy.is_some_and(|copy| copy.direction == Direction::HostToDevice)
    }

    /// The tensor that an example copies or reads, where the innermost range says it.
    pub fn operand(&self) -> Option<Operand> {
        self.ranges.last().and_then(|text| Operand::read(text))
    }

    /// Whether its waits are surely synchronisations, without copies of their own.
    pub fn synchronises(&self) -> bool {
        self.blocking.synchronises() && self.copy.is_none() && !self.copy_lost
    }

    /// The frames from the user's line outwards: what bundles of one site share.
    pub fn user_stack(&self) -> &[PyFrame] {
        &self.frames[self.user.unwrap_or(0)..]
    }

    /// The frames of library code that waits, below the user's line.
    pub fn inside(&self) -> &[PyFrame] {
        &self.frames[..self.user.unwrap_or(self.frames.len()).min(self.own)]
    }

    /// The innermost user frame; `None` where all frames are a library's.
    pub fn user_frame(&self) -> Option<&PyFrame> {
        self.user.and_then(|u| self.frames.get(u))
    }

    /// Whether a backtrace of the wait itself names a line; one of another thread, or samples, only make a line probable.
    pub fn has_own_line(&self) -> bool {
        (self.attribution.is_of_line() || self.attribution == Attribution::Backward)
            && self.frames.iter().take(self.own).any(|frame| frame.line > 0)
    }

    /// The tensor method that waits, or whose backward does, read from the native chain.
    pub fn method(&self) -> Option<&str> {
        native::method(&self.chain).or_else(|| match self.node()? {
            "IndexBackward0" => Some("getitem"),
            "IndexPutBackward0" => Some("setitem"),
            _ => None,
        })
    }

    /// The node of autograd's graph that a wait is in: `IndexBackward0`.
    pub fn node(&self) -> Option<&str> {
        let of_range = || self.ranges.iter().find_map(|range| backward::node(range));
        native::node(&self.chain).or_else(of_range).filter(|_| self.role == ThreadRole::Autograd)
    }
}
