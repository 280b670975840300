//! What the rules of the trace judge, and the entry of the catalogue that it has by what it does alone.

use super::operators;
use crate::python::parse::SourceTree;
use crate::sites::Bundle;
use crate::sites::program::Toolkit;
use crate::vocabulary::{Direction, NUMBER_BYTES, PatternId, PatternId::*};
use crate::waits::api::Blocking;

/// A bundle and what its waits add up to.
pub struct Subject<'a> {
    pub bundle: &'a Bundle,
    /// Where the lines of library code may be read.
    pub sources: &'a SourceTree,
    /// What the process is made with, if that is not PyTorch.
    pub toolkit: Option<Toolkit>,
    /// What shows that its host may see what kernels write without a copy.
    pub shared: Option<&'a str>,
    /// Waits that returned while a device still worked: it was not that device they waited for.
    pub other_device: usize,
    /// Whether which device the waits were for is not recorded.
    pub device_unknown: bool,
    /// Host time inside the waits, and the part of it during which the op awaited last ran, in ns.
    pub blocked_ns: i64,
    pub awaited_ns: i64,
}

/// Catalogue entry of a bare synchronisation.
pub const fn bare_pattern(blocking: Blocking) -> PatternId {
    match blocking {
        Blocking::Stream => F02,
        Blocking::Event => F03,
        _ => F01,
    }
}

/// Catalogue entry of a wait by what it does, where nothing names the place.
pub fn generic(b: &Bundle) -> PatternId {
    let Some(copy) = b.copy else { return bare_pattern(b.blocking) };
    let by_size = if copy.bytes <= NUMBER_BYTES { A01 } else { D01 };
    operators::by_method(b.method(), Direction::DeviceToHost, &b.chain).unwrap_or(by_size)
}
