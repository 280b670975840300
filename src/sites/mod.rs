//! Call sites: waits grouped by the line of Python (or the best substitute) that caused them.
//!
//! Grouping has two steps. A *bundle* holds waits alike in everything that a verdict may rest on: process,
//! thread role, API, stack, copy, what was found on the GPU, and the operation that the native chain names.
//! Bundles are judged one by one; then bundles of one user line with the same verdict join into a *site*.

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
    /// Among its kernels, or nothing is freed.
    AtWork,
    /// Nothing is freed: the call starts a CUDA runtime.
    ToStart,
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

#[derive(Clone, Debug)]
pub struct Bundle {
    /// Ascending.
    pub waits: Vec<WaitId>,
    pub pid: GlobalPid,
    pub role: ThreadRole,
    /// Name without version suffix.
    pub api: Arc<str>,
    pub blocking: Blocking,
    pub attribution: Attribution,
    /// How far to trust the attribution; empty where exact.
    pub note: String,
    /// Innermost first.
    pub frames: Vec<PyFrame>,
    /// Number of innermost frames of the waiting calls; further frames are of the thread in `backward()`.
    pub own: usize,
    pub user: Option<usize>,
    /// On autograd's thread: the forward line whose operator the waits undo, where ranges tell.
    pub forward: Option<PyFrame>,
    /// Native symbols of an example, innermost first.
    pub chain: Vec<Arc<str>>,
    /// Texts of the NVTX ranges around an example, outermost first.
    pub ranges: Vec<Arc<str>>,
    /// `Some` if all waits have a copy of the same direction and memory; `bytes` of the first.
    pub copy: Option<Copy>,
    /// Whether all copies have that size.
    pub same_bytes: bool,
    pub found: Found,
    /// Whether the waits complete an earlier D2H copy.
    pub completes: bool,
    pub guards: Guards,
    /// Whether the export lacks the waits' copies.
    pub copy_lost: bool,
    pub freed: Freed,
    pub neighbours: Neighbours,
}

impl Bundle {
    pub fn uploads(&self) -> bool {
        self.copy.is_some_and(|copy| copy.direction == Direction::HostToDevice)
    }

    /// The tensor that an example copies or reads, if the innermost range names it.
    pub fn operand(&self) -> Option<Operand> {
        self.ranges.last().and_then(|text| Operand::read(text))
    }

    /// Whether the waits are surely synchronisations without copies of their own.
    pub fn synchronises(&self) -> bool {
        self.blocking.synchronises() && self.copy.is_none() && !self.copy_lost
    }

    /// Frames from the user's line outwards, shared by bundles of one site.
    pub fn user_stack(&self) -> &[PyFrame] {
        &self.frames[self.user.unwrap_or(0)..]
    }

    /// Frames of waiting library code, below the user's line.
    pub fn inside(&self) -> &[PyFrame] {
        &self.frames[..self.user.unwrap_or(self.frames.len()).min(self.own)]
    }

    pub fn user_frame(&self) -> Option<&PyFrame> {
        self.user.and_then(|u| self.frames.get(u))
    }

    /// Whether the wait's own backtrace names a line; samples and other threads' backtraces only suggest one.
    pub fn has_own_line(&self) -> bool {
        (self.attribution.is_of_line() || self.attribution == Attribution::Backward)
            && self.frames.iter().take(self.own).any(|frame| frame.line > 0)
    }

    /// The tensor method that waits, or whose backward waits.
    pub fn method(&self) -> Option<&str> {
        native::method(&self.chain).or_else(|| match self.node()? {
            "IndexBackward0" => Some("getitem"),
            "IndexPutBackward0" => Some("setitem"),
            _ => None,
        })
    }

    /// The autograd node that the waits are in, e.g. `IndexBackward0`.
    pub fn node(&self) -> Option<&str> {
        let of_range = || self.ranges.iter().find_map(|range| backward::node(range));
        native::node(&self.chain).or_else(of_range).filter(|_| self.role == ThreadRole::Autograd)
    }
}
