//! The subject of the trace's rules, and the catalogue entry implied by the operation alone.

use super::operators;
use crate::python::parse::SourceTree;
use crate::sites::Bundle;
use crate::sites::program::Toolkit;
use crate::vocabulary::{Direction, NUMBER_BYTES, PatternId, PatternId::*};
use crate::waits::api::Blocking;

/// A bundle and the sums over its waits.
pub struct Subject<'a> {
    pub bundle: &'a Bundle,
    pub sources: &'a SourceTree,
    /// What the process is made with, if that is not PyTorch.
    pub toolkit: Option<Toolkit>,
    /// What lets the host see what kernels write without a copy.
    pub shared: Option<&'a str>,
    /// Waits that returned while a device still worked: they were for another device.
    pub other_device: usize,
    /// Whether the device of the waits is not recorded.
    pub device_unknown: bool,
    /// Host time inside the waits, and the part of it during which the op awaited last ran, in ns.
    pub blocked_ns: i64,
    pub awaited_ns: i64,
}

pub const fn bare_pattern(blocking: Blocking) -> PatternId {
    match blocking {
        Blocking::Stream => F02,
        Blocking::Event => F03,
        _ => F01,
    }
}

/// Catalogue entry implied by the operation alone, where nothing names the place.
pub fn generic(b: &Bundle) -> PatternId {
    let Some(copy) = b.copy else { return bare_pattern(b.blocking) };
    let by_size = if copy.bytes <= NUMBER_BYTES { A01 } else { D01 };
    operators::by_method(b.method(), Direction::DeviceToHost, &b.chain).unwrap_or(by_size)
}
