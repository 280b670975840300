//! The knowledge base: every synchronising pattern that the tool knows, as data.
//!
//! One file per subject holds the entries; `lookup` finds them, `quick` orders them by NVIDIA's nine categories,
//! `explain` prints them.

use crate::vocabulary::Kind;

mod allocator;
mod checks;
mod distributed;
pub mod explain;
mod explicit;
mod hidden_reads;
mod highlight;
mod library_data;
mod library_models;
mod library_parallel;
mod library_training;
mod lookalikes;
mod lookup;
pub mod quick;
mod readback;
mod scalar;
mod shape;
mod sparse;
#[cfg(test)]
mod tests;
mod upload;

pub use lookup::{all, by_id, library_site, search};

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
    /// How to get rid of it.
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

impl Pattern {
    /// What an entry says unless it says otherwise: most waits are `cuStreamSynchronize` after a scalar copy.
    const BASE: Pattern = Pattern {
        id: "",
        category: Category::DataDependentControlFlow,
        title: "",
        triggers: &[],
        op: "",
        trace: "",
        kind: None,
        intended: false,
        why: "",
        fix: fix(Strategy::Leave, "", "", "", ""),
        versions: "",
        driver_api: STREAM_SYNC,
        sources: "",
        library: None,
    };
}

/// Driver calls as the entries name them.
const STREAM_SYNC: &str = "cuStreamSynchronize";
const EVENT_SYNC: &str = "cuEventSynchronize";
const CTX_SYNC: &str = "cuCtxSynchronize";

/// A value that a library reads only to log it: what most library entries start from.
const LOGGED: Pattern = Pattern {
    op: "aten::_local_scalar_dense",
    trace: "a copy of 4 bytes to pinned host memory, then cudaStreamSynchronize",
    kind: Some(Kind::Logging),
    why: "The value is read only to be logged.",
    ..Pattern::BASE
};

/// A fix in the order strategy, title, before, after, caveat: entries stay short.
const fn fix(
    strategy: Strategy,
    title: &'static str,
    before: &'static str,
    after: &'static str,
    caveat: &'static str,
) -> Fix {
    Fix { strategy, title, before, after, caveat }
}

/// Frames of PyTorch's own Python files that hold a pattern.
const fn torch(frames: &'static [(&'static str, &'static str)]) -> Option<LibrarySite> {
    site("torch", frames, "", "")
}

/// A place in a library: name, frames, distinctive text of the line, how often it runs.
const fn site(
    library: &'static str,
    frames: &'static [(&'static str, &'static str)],
    line_text: &'static str,
    frequency: &'static str,
) -> Option<LibrarySite> {
    Some(LibrarySite { library, frames, line_text, frequency })
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

impl Category {
    /// Every category: the nine in their order, then those outside them.
    pub const ALL: [Category; 12] = [
        Category::ExplicitSync,
        Category::DeviceMovement,
        Category::TensorCreation,
        Category::DataDependentControlFlow,
        Category::Indexing,
        Category::Slicing,
        Category::DynamicShapes,
        Category::EmbeddingBackward,
        Category::Distributed,
        Category::ErrorCheck,
        Category::Allocator,
        Category::NotAWait,
    ];

    /// The category as a heading.
    pub const fn name(self) -> &'static str {
        match self {
            Category::ExplicitSync => "Explicit synchronisation",
            Category::DeviceMovement => "Device movement",
            Category::TensorCreation => "Tensor creation",
            Category::DataDependentControlFlow => "Data-dependent control flow",
            Category::Indexing => "Indexing",
            Category::Slicing => "Slicing",
            Category::DynamicShapes => "Dynamic shapes",
            Category::EmbeddingBackward => "Embedding backward",
            Category::Distributed => "Distributed",
            Category::ErrorCheck => "Validity checks",
            Category::Allocator => "Memory allocator",
            Category::NotAWait => "Looks like a wait and is none",
        }
    }
}

impl Strategy {
    /// The strategy in a few words.
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::Remove => "remove it",
            Strategy::NonBlocking => "make the copy asynchronous",
            Strategy::SyncFreeApi => "use a form that does not wait",
            Strategy::Delay => "wait later or less often",
            Strategy::Coalesce => "join several waits into one",
            Strategy::Offload => "move the work elsewhere",
            Strategy::ExcludeFromCapture => "keep it out of the measured region",
            Strategy::Leave => "leave it",
        }
    }
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
