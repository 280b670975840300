//! The knowledge base: every synchronising pattern that the tool knows, as data.

use crate::vocabulary::Kind;

/// One synchronising pattern of PyTorch or of a library built on it.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// Stable id: `A01`..`H14` patterns of PyTorch, `L01`.. library sites, `N01`.. look-alikes that do not wait.
    pub id: &'static str,
    /// Which of the nine categories it belongs to.
    pub category: Category,
    /// Short name, e.g. "Tensor.item()".
    pub title: &'static str,
    /// Python expressions that trigger it, the plainest first.
    pub triggers: &'static [&'static str],
    /// ATen operator or library function that waits.
    pub op: &'static str,
    /// What a trace shows: copies, their size and host memory, syncs, kernels around them.
    pub trace: &'static str,
    /// What the wait is where the pattern alone decides; `None` where only the use of the value does.
    pub kind: Option<Kind>,
    /// True where the wait is wanted for its own sake (timing, debugging, memory throttle): report, do not delete blindly.
    pub intended: bool,
    /// Why the CPU waits, in one or two sentences.
    pub why: &'static str,
    pub fix: Fix,
    /// Which PyTorch (or library) versions it concerns; empty: all.
    pub versions: &'static str,
    /// The driver call that blocks.
    pub driver_api: &'static str,
    /// Issues and sources that confirm it.
    pub sources: &'static str,
    /// Where library code holds it; `None` for patterns of PyTorch itself.
    pub library: Option<LibrarySite>,
}

/// How to get rid of a wait.
#[derive(Clone, Copy, Debug)]
pub struct Fix {
    pub strategy: Strategy,
    /// One short line for the report's "what to do" column.
    pub title: &'static str,
    /// Python before.
    pub before: &'static str,
    /// Python after.
    pub after: &'static str,
    /// When the fix is unsafe or changes behaviour; empty: nothing to mind.
    pub caveat: &'static str,
}

/// Fixes in the order in which to try them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strategy {
    Remove,
    NonBlocking,
    SyncFreeApi,
    Delay,
    Coalesce,
    Offload,
    ExcludeFromCapture,
    /// Nothing to do: harmless, or once at start-up.
    Leave,
}

/// The nine categories of synchronising code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    ExplicitSync,
    DeviceMovement,
    TensorCreation,
    DataDependentControlFlow,
    Indexing,
    Slicing,
    DynamicShapes,
    EmbeddingBackward,
    Distributed,
    /// Outside the nine: validity checks inside operators.
    ErrorCheck,
    /// Outside the nine: the allocator.
    Allocator,
    /// Calls that look like waits and are none.
    NotAWait,
}

/// Where a library's own code waits.
#[derive(Clone, Copy, Debug)]
pub struct LibrarySite {
    /// "transformers", "torch", …
    pub library: &'static str,
    /// The innermost library frame decides: (file path ends with, function name; empty = any function).
    pub frames: &'static [(&'static str, &'static str)],
    /// Text of the line, a distinctive part; empty where the file and function suffice.
    pub line_text: &'static str,
    pub frequency: &'static str,
}

pub fn library_site(_: &[(&str, &str)], _: Option<&str>) -> Option<&'static Pattern> {
    None
}

pub fn by_id(_: &str) -> Option<&'static Pattern> {
    None
}
