//! The knowledge base: every synchronising pattern that the tool knows, as data.
//!
//! One file per subject holds the entries; `lookup` finds them.

use crate::vocabulary::Kind;
use serde::Serialize;

mod allocator;
mod checks;
mod cuda;
mod distributed;
mod explicit;
mod hidden_reads;
mod host_known;
mod library_data;
mod library_engines;
mod library_knobs;
mod library_models;
mod library_parallel;
mod library_training;
mod lookalikes;
mod lookup;
mod pairs;
mod readback;
mod scalar;
mod shape;
mod sparse;
#[cfg(test)]
mod tests;
mod upload;

pub use cuda::in_cuda_terms;
pub use lookup::{Known, all, by_id, is_helper, library_site, near, script_site, search};
pub use pairs::{Measured, NotRun, Outcome, Run, Values, run_of};

/// One synchronising pattern of PyTorch or of a library built on it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Pattern {
    /// Stable id: `A01`..`H14` patterns of PyTorch, `K01`.. of programs without it, `L01`.. library sites, `N01`.. look-alikes that do not wait.
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
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Fix {
    /// Its place in the order of fixes.
    pub strategy: Strategy,
    /// One short line for the report's "what to do" column.
    pub title: &'static str,
    /// Python before.
    pub before: &'static str,
    /// Python after.
    pub after: &'static str,
    /// When the fix is unsafe or changes behaviour; empty: nothing to mind.
    pub caveat: &'static str,
    /// Other ways, one each, for where the first does not fit.
    pub alternatives: &'static [&'static str],
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
    Fix { strategy, title, before, after, caveat, alternatives: &[] }
}

impl Fix {
    /// The same with other ways to offer.
    const fn or(self, alternatives: &'static [&'static str]) -> Self {
        Self { alternatives, ..self }
    }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Delete the call: nothing needs it.
    Remove,
    /// `non_blocking=True`, from pinned memory: the copy is only enqueued.
    NonBlocking,
    /// Another call or argument with the same result, computed on the GPU alone.
    SyncFreeApi,
    /// Read the value later, or in fewer iterations.
    Delay,
    /// One copy for values that are read one by one.
    Coalesce,
    /// Another design: dense tensors, a CPU backend (gloo), no offload to the CPU.
    Offload,
    /// It belongs to set-up or measuring: leave it outside the captured region.
    ExcludeFromCapture,
    /// Nothing to do: harmless, or once at start-up.
    Leave,
}

/// The nine categories of synchronising code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// The program calls `synchronize()` or a like of it.
    ExplicitSync,
    /// A tensor is moved between host and device: `.cpu()`, `.to()`.
    DeviceMovement,
    /// A device tensor is made from Python or host data.
    TensorCreation,
    /// Python reads a value: `.item()`, `if tensor`.
    DataDependentControlFlow,
    /// A CUDA scalar is an index, or an index or an assigned value is uploaded.
    Indexing,
    /// A tensor is the bound of a slice.
    Slicing,
    /// The size of the output depends on values: `nonzero`, `unique`.
    DynamicShapes,
    /// Gradients of embeddings that count or sort their indices.
    EmbeddingBackward,
    /// Between ranks: collectives, barriers.
    Distributed,
    /// Outside the nine: validity checks inside operators.
    ErrorCheck,
    /// Outside the nine: the allocator.
    Allocator,
    /// Calls that look like waits and are none.
    NotAWait,
}

impl Category {
    /// How many of [`Self::ALL`] are categories of NVIDIA's guide to sync-free code.
    pub const OF_GUIDE: usize = 9;

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
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LibrarySite {
    /// "transformers", "torch", …
    pub library: &'static str,
    /// The innermost library frame decides: (file path ends with, function name; empty = any function). A bare file name
    /// is that of a script, which people copy into their own code. A path that ends with `/` is a folder that the file
    /// lies in; `*_validation` is any function whose name ends so.
    pub frames: &'static [(&'static str, &'static str)],
    /// Text of the line, a distinctive part; empty where the file and function suffice.
    pub line_text: &'static str,
    /// How often it runs: "every step"; empty where that is not known.
    pub frequency: &'static str,
}
