//! The catalogue: every known synchronising pattern, as data.
//!
//! One file per subject (`scalar.toml`, …) holds the entries, `build.rs` turns them into [`Pattern`]s, `lookup` finds them.

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

/// A synchronising pattern of PyTorch or of a library built on it.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    pub id: PatternId,
    pub category: Category,
    /// E.g. "Tensor.item()".
    pub title: &'static str,
    /// Python expressions, the plainest first.
    pub triggers: &'static [&'static str],
    /// ATen operator or library function that waits.
    pub op: &'static str,
    /// Copies, their size and host memory, syncs, kernels around them.
    pub trace: &'static str,
    /// `None` where only the use of the value decides.
    pub kind: Option<Kind>,
    /// `None` without a read value.
    pub reads: Option<Reads>,
    /// Entries with better advice in a case; the first case that holds counts.
    instead: &'static [(Case, PatternId)],
    /// A helper shows what is done (wait, read, format, convert) but not why: its caller in a library says
    /// more.
    pub wraps: bool,
    /// More general entries, which only the line of Python tells apart from this one.
    pub case_of: &'static [PatternId],
    /// The wait is wanted for its own sake (timing, debugging, memory throttle): do not delete blindly.
    pub intended: bool,
    /// A library's own set-up: paid at start or end, it costs no more however long the program runs.
    pub sets_up: bool,
    pub why: &'static str,
    pub fix: Fix,
    /// Of PyTorch or the library; empty: all.
    pub versions: &'static str,
    pub driver_api: &'static str,
    /// Empty if only [`READ_IN`] applies.
    sources: &'static str,
    library: LibrarySite,
}

/// How to get rid of a wait.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Fix {
    /// Place in the order of fixes.
    #[serde(skip)]
    pub strategy: Strategy,
    /// The advice in a few words.
    pub title: &'static str,
    /// Python code that waits.
    pub before: &'static str,
    /// Python code to write instead.
    pub after: &'static str,
    /// Cases in which the fix is unsafe or changes what the program does; empty where there are none.
    pub caveat: &'static str,
    /// Other ways, for where the first does not fit.
    pub alternatives: &'static [&'static str],
    /// Title for users of an installed library, if `title` rewrites the library's line; empty: `title`.
    #[serde(skip)]
    pub installed: &'static str,
    /// The uploaded data is pinned right there: the CPU copies it once more.
    #[serde(skip)]
    pub pins: bool,
    /// Advice where the source is pinned already; empty: the same.
    #[serde(skip)]
    pub of_pinned: &'static str,
    /// The simulated change, where the kind of wait does not decide it.
    #[serde(skip)]
    pub change: Option<Change>,
}

impl Pattern {
    /// `None` if only the user's own lines do it.
    pub fn library(&self) -> Option<&LibrarySite> {
        Some(&self.library).filter(|site| !site.frames.is_empty())
    }

    /// The entry with the advice: of the first case that holds, else itself.
    pub fn in_case(&'static self, holds: impl Fn(Case) -> bool) -> &'static Pattern {
        self.instead.iter().find(|(case, _)| holds(*case)).map_or(self, |(_, other)| entry(*other))
    }

    /// Places where another entry's fix is the title, each with that fix.
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

    /// Issues and sources that confirm the entry.
    pub fn confirmed_by(&self) -> &'static str {
        let file = self.library.first_file();
        let read = READ_IN.iter().find(|(folder, _)| self.sources.is_empty() && file.starts_with(folder));
        read.map_or(self.sources, |(_, version)| version)
    }
}

/// The version in which each library was read, by folder. Entries read in another version say so.
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
    /// The nine categories of synchronising code, and further ones.
    Category {
        /// The program calls `synchronize()` or the like.
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
        /// Validity checks inside operators, outside the nine.
        ErrorCheck: "Validity checks",
        /// The memory allocator, outside the nine.
        Allocator: "Memory allocator",
        /// Calls that look like waits but do not wait.
        NotAWait: "Looks like a wait and is none",
    }
}

impl Category {
    /// Number of categories of NVIDIA's guide to sync-free code, the first of [`Self::ALL`].
    pub const OF_GUIDE: usize = 9;
}

/// The subject of a read: it decides the advice once the use is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    Number,
    Tensors,
}

/// A case in which another entry has better advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// The wait is of that kind: reads that steer the program need other advice than reads for a log.
    Is(Kind),
    /// As `Is`, if one number is read, whatever the line calls: `loss.cpu().item()`.
    NumberIs(Kind),
    /// The driver takes each copy over at once: so small a copy needs no pinned memory.
    TakenOver,
    /// A copy from pageable memory that the driver does not take over: only pinned memory avoids blocking.
    Staged,
    /// A frame around the wait is of this file and one of these functions: the caller decides the advice.
    Through(&'static str, &'static str),
    /// The native chain has a function whose name contains this.
    Native(&'static str),
    /// The line is in a `for` loop whose head contains this.
    LoopOver(&'static str),
}

/// Advice for a read by the use of its value. Entries whose pattern alone decides the kind have their own advice.
const OF_NUMBER: &[(Case, PatternId)] = &[
    (Case::Is(Kind::ControlFlow), A42),
    (Case::Is(Kind::CpuCompute), A43),
    (Case::Is(Kind::DynamicShape), A07),
    (Case::Is(Kind::RoundTrip), A37),
];
#[derive(Clone, Copy, Debug)]
pub struct LibrarySite {
    /// The library's name, where it is not the folder of its first file.
    package: &'static str,
    /// The innermost library frame decides: (end of the file's path, function names separated by blanks;
    /// empty: any function). A bare file name is that of a script, which people copy into their own code. A
    /// path that ends with `/` is a folder of the file; `*_validation` is any function whose name ends so.
    frames: &'static [(&'static str, &'static str)],
    /// A distinctive part of the line; empty where file and function suffice.
    pub line_text: &'static str,
    /// E.g. "every step"; empty where unknown.
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

    /// (file, function) of each frame.
    pub fn places(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.frames.iter().flat_map(|&(file, functions)| functions.split(' ').map(move |name| (file, name)))
    }
}

include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));

/// The entry that says the same in CUDA's terms; `pattern` where only the driver's terms exist.
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
