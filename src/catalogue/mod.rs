//! The knowledge base: every synchronising pattern that the tool knows, as data.
//!
//! One file per subject (`scalar.toml`, …) holds the entries, `build.rs` makes them what [`Pattern`] says, `lookup` finds them.

use crate::vocabulary::{Change, Kind, PatternId, PatternId::*, Strategy, words};
use schemars::JsonSchema;
use serde::Serialize;

mod lookup;
mod pairs;
#[cfg(test)]
mod tests;

pub use lookup::{
    KnownPlace, all, by_id, entry, is_at, is_helper, is_logger, library_site, near, option, script_site,
    search,
};
pub use pairs::{Measured, NotRun, Outcome, Run, Values, run_of};

/// One synchronising pattern of PyTorch or of a library built on it.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// Stable id.
    pub id: PatternId,
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
    /// What of the GPU Python reads by it; `None` of what is no read of a value.
    pub reads: Option<Reads>,
    /// Entries that say better what to do in a case, the first that holds.
    instead: &'static [(Case, PatternId)],
    /// It says of a helper's code what it does (wait, read, format, convert) but not why: a caller inside a library says more.
    pub wraps: bool,
    /// Entries that it is a case of: what only the line of Python tells apart.
    pub case_of: &'static [PatternId],
    /// True where the wait is wanted for its own sake (timing, debugging, memory throttle): report, do not delete blindly.
    pub intended: bool,
    /// A library's own set-up: what is paid while the program starts or ends costs no more however long it runs.
    pub sets_up: bool,
    /// Why the CPU waits, in one or two sentences.
    pub why: &'static str,
    /// How to get rid of it.
    pub fix: Fix,
    /// Which PyTorch (or library) versions it concerns; empty: all.
    pub versions: &'static str,
    /// The driver call that blocks.
    pub driver_api: &'static str,
    /// What confirms it, where that is more than the version in which its library was read.
    sources: &'static str,
    library: LibrarySite,
}

/// How to get rid of a wait.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Fix {
    /// Its place in the order of fixes.
    #[serde(skip)]
    pub strategy: Strategy,
    /// What to do, in few words.
    pub title: &'static str,
    /// Python that waits.
    pub before: &'static str,
    /// Python to write instead.
    pub after: &'static str,
    /// When the fix is unsafe or changes what the program does; empty: nothing to mind.
    pub caveat: &'static str,
    /// Other ways, one each, for where the first does not fit.
    pub alternatives: &'static [&'static str],
    /// The title for those who have the library installed, where `title` rewrites the library's own line; empty: `title` is for them.
    #[serde(skip)]
    pub installed: &'static str,
    /// What is uploaded is pinned right there: the CPU copies it once more.
    #[serde(skip)]
    pub pins: bool,
    /// What to do where the source is pinned already; empty: the same.
    #[serde(skip)]
    pub of_pinned: &'static str,
    /// The change that is simulated, where the kind of wait does not say it.
    #[serde(skip)]
    pub change: Option<Change>,
}

impl Pattern {
    /// Where library code holds it; `None` for what only the user's own lines do.
    pub fn library(&self) -> Option<&LibrarySite> {
        Some(&self.library).filter(|site| !site.frames.is_empty())
    }

    /// The entry that says what to do: its own, or that of the first case that holds.
    pub fn in_case(&'static self, holds: impl Fn(Case) -> bool) -> &'static Pattern {
        self.instead.iter().find(|(case, _)| holds(*case)).map_or(self, |(_, other)| entry(*other))
    }

    /// Places in which another entry's fix is the title, each with that fix.
    pub fn elsewhere(&self) -> impl Iterator<Item = String> {
        self.instead.iter().filter_map(|(case, other)| {
            let place = match case {
                Case::Through(file, functions) => format!("below {file} {functions}"),
                Case::Native(part) => format!("below functions of {}", part.trim_end_matches(':')),
                Case::LoopOver(part) => format!("in a loop over {part}"),
                Case::Is(_) | Case::NumberIs(_) | Case::TakenOver | Case::Staged => return None,
            };
            Some(format!("{}: {} ({other})", place.trim_end(), entry(*other).fix.title))
        })
    }

    /// Issues and sources that confirm it.
    pub fn confirmed_by(&self) -> &'static str {
        let file = self.library.first_file();
        let read = READ_IN.iter().find(|(folder, _)| self.sources.is_empty() && file.starts_with(folder));
        read.map_or(self.sources, |(_, version)| version)
    }
}

/// The version in which each library was read, by where its files lie. Entries that were read in another say so.
const READ_IN: [(&str, &str); 16] = [
    ("accelerate/", "accelerate 1.15.0"),
    ("deepspeed/", "DeepSpeed 0.19.6"),
    ("diffusers/", "diffusers 0.42.1"),
    ("gpytorch/", "GPyTorch 1.15.2"),
    ("lightly/", "lightly 1.6.0"),
    ("lightning/", "Lightning 2.6.6"),
    ("linear_operator/", "linear_operator 0.6.1"),
    ("megatron/core/", "Megatron core 0.19.2"),
    ("megatron/training/", "Megatron-LM 0.20.0"),
    ("models/", "transformers 5.23.0"),
    ("pyro/", "Pyro 1.9.1"),
    ("torch_geometric/", "PyG 2.8.1"),
    ("torchmetrics/", "torchmetrics 1.9.0"),
    ("torchvision/", "torchvision 0.29.2"),
    ("transformers/", "transformers 5.23.0"),
    ("vllm/", "vLLM 0.33.0"),
];

words! {
    /// The nine categories of synchronising code, and what is outside them.
    Category {
        /// The program calls `synchronize()` or a like of it.
        ExplicitSync: "Explicit synchronisation",
        /// A tensor is moved between host and device: `.cpu()`, `.to()`.
        DeviceMovement: "Device movement",
        /// A device tensor is made from Python or host data.
        TensorCreation: "Tensor creation",
        /// Python reads a value: `.item()`, `if tensor`.
        DataDependentControlFlow: "Data-dependent control flow",
        /// A CUDA scalar is an index, or an index or an assigned value is uploaded.
        Indexing: "Indexing",
        /// A tensor is the bound of a slice.
        Slicing: "Slicing",
        /// The size of the output depends on values: `nonzero`, `unique`.
        DynamicShapes: "Dynamic shapes",
        /// Gradients of embeddings that count or sort their indices.
        EmbeddingBackward: "Embedding backward",
        /// Between ranks: collectives, barriers.
        Distributed: "Distributed",
        /// Outside the nine: validity checks inside operators.
        ErrorCheck: "Validity checks",
        /// Outside the nine.
        Allocator: "Memory allocator",
        /// Calls that look like waits and are none.
        NotAWait: "Looks like a wait and is none",
    }
}

impl Category {
    /// How many of [`Self::ALL`] are categories of NVIDIA's guide to sync-free code.
    pub const OF_GUIDE: usize = 9;
}

/// What is read, which decides what to write instead once the use of it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// One value.
    Number,
    /// Tensors as they are.
    Tensors,
}

/// A case in which another entry says better what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// The wait turned out to be of that kind: a read that steers the program wants another advice than one in a log.
    Is(Kind),
    /// The same, where one number is read, whatever the line calls: `loss.cpu().item()`.
    NumberIs(Kind),
    /// The driver takes each copy over at once: what is so small needs no pinned memory.
    TakenOver,
    /// A copy from pageable memory that it does not take over: only from pinned memory it is sent without blocking.
    Staged,
    /// A frame around the wait is of that file and one of these functions: the caller decides what can be done.
    Through(&'static str, &'static str),
    /// The native chain has a function whose name contains that.
    Native(&'static str),
    /// The line stands in a `for` loop whose head contains that.
    LoopOver(&'static str),
}

/// What to do about a read by what it is for. Only the use of a value decides that: an entry of a certain kind has its own advice.
const OF_NUMBER: &[(Case, PatternId)] = &[
    (Case::Is(Kind::ControlFlow), A42),
    (Case::Is(Kind::CpuCompute), A43),
    (Case::Is(Kind::DynamicShape), A07),
    (Case::Is(Kind::RoundTrip), A37),
];
/// Where a library's own code waits.
#[derive(Clone, Copy, Debug)]
pub struct LibrarySite {
    /// The library's name, where it is not the folder that its first file lies in.
    package: &'static str,
    /// The innermost library frame decides: (file path ends with, names of functions with blanks between them; empty = any
    /// function). A bare file name is that of a script, which people copy into their own code. A path that ends with `/` is
    /// a folder that the file lies in; `*_validation` is any function whose name ends so.
    frames: &'static [(&'static str, &'static str)],
    /// Text of the line, a distinctive part; empty where the file and function suffice.
    pub line_text: &'static str,
    /// How often it runs: "every step"; empty where that is not known.
    pub frequency: &'static str,
}

impl LibrarySite {
    /// "transformers", "torch", …
    pub fn library(&self) -> &'static str {
        let folder = || self.first_file().split('/').next().unwrap_or_default();
        if self.package.is_empty() { folder() } else { self.package }
    }

    fn first_file(&self) -> &'static str {
        self.frames.first().map_or("", |(file, _)| file)
    }

    /// File and function of each frame.
    pub fn places(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.frames.iter().flat_map(|&(file, functions)| functions.split(' ').map(move |name| (file, name)))
    }
}

include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));

/// The entry that says the same as `pattern` in CUDA's terms; the same where that is in nobody's terms but the driver's.
pub fn in_cuda_terms(pattern: PatternId, kind: Kind) -> PatternId {
    match (pattern.letter(), pattern, kind) {
        ('F', _, Kind::Timing) => K07,
        (_, F02, _) => K02,
        (_, F03, _) => K03,
        (_, E07, _) => K06,
        ('L', ..) | (_, E13 | H13 | G07 | G08, _) => pattern,
        ('C', ..) => K04,
        ('G', _, Kind::Allocator) => G07,
        ('F', ..) | ('H', _, Kind::Explicit | Kind::Redundant | Kind::Idle | Kind::Barrier) => K01,
        _ => K05,
    }
}
