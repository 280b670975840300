//! The knowledge base: every synchronising pattern that the tool knows, as data.
//!
//! One file per subject holds the entries; `lookup` finds them.

use crate::vocabulary::{Change, Kind, PatternId, PatternId::*, Strategy, texts, words};
use schemars::JsonSchema;
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
mod library_options;
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
pub use lookup::{
    Known, all, by_id, entry, is_at, is_helper, is_logger, library_site, near, option, script_site, search,
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
        Some(&self.library).filter(|site| !site.frames[0].0.is_empty())
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
        let file = self.library.frames[0].0;
        let read = READ_IN.iter().find(|(folder, _)| self.sources.is_empty() && file.starts_with(folder));
        read.map_or(self.sources, |(_, version)| version)
    }

    /// What an entry says unless it says otherwise: most waits are `cuStreamSynchronize` after a scalar copy.
    const BASE: Pattern = Pattern {
        id: PatternId::A01,
        category: Category::DataDependentControlFlow,
        title: "",
        triggers: &[],
        op: "",
        trace: "",
        kind: None,
        reads: None,
        instead: &[],
        wraps: false,
        case_of: &[],
        intended: false,
        sets_up: false,
        why: "",
        fix: Fix {
            strategy: Strategy::Leave,
            title: "",
            before: "",
            after: "",
            caveat: "",
            alternatives: &[],
            installed: "",
            pins: false,
            of_pinned: "",
            change: None,
        },
        versions: "",
        driver_api: STREAM_SYNC,
        sources: "",
        library: LibrarySite { package: "", frames: [("", ""); MOST_PLACES], line_text: "", frequency: "" },
    };
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

/// Driver calls as the entries name them.
const STREAM_SYNC: &str = "cuStreamSynchronize";
const EVENT_SYNC: &str = "cuEventSynchronize";
const CTX_SYNC: &str = "cuCtxSynchronize";

/// A value that a library reads only to log it: what most library entries start from.
const LOGGED: Pattern = Pattern::BASE
    .kind(Kind::Logging)
    .op("aten::_local_scalar_dense")
    .trace("a copy of 4 bytes to pinned host memory, then cudaStreamSynchronize")
    .why("The value is read only to be logged.");

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
const OF_TENSORS: &[(Case, PatternId)] = &[(Case::Is(Kind::ControlFlow), A42)];
/// The same, of calls that move whole tensors and may be there for a number in a log.
const OF_MOVED: &[(Case, PatternId)] = &[(Case::NumberIs(Kind::Logging), A01), OF_TENSORS[0]];

/// Files that an entry names at most.
const MOST_PLACES: usize = 12;

/// Where a library's own code waits.
#[derive(Clone, Copy, Debug)]
pub struct LibrarySite {
    /// The library's name, where it is not the folder that its first file lies in.
    package: &'static str,
    /// The innermost library frame decides: (file path ends with, names of functions with blanks between them; empty = any
    /// function). A bare file name is that of a script, which people copy into their own code. A path that ends with `/` is
    /// a folder that the file lies in; `*_validation` is any function whose name ends so.
    frames: [(&'static str, &'static str); MOST_PLACES],
    /// Text of the line, a distinctive part; empty where the file and function suffice.
    pub line_text: &'static str,
    /// How often it runs: "every step"; empty where that is not known.
    pub frequency: &'static str,
}

impl LibrarySite {
    /// "transformers", "torch", …
    pub fn library(&self) -> &'static str {
        let folder = || self.frames[0].0.split('/').next().unwrap_or_default();
        if self.package.is_empty() { folder() } else { self.package }
    }

    /// File and function of each frame.
    pub fn places(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let frames = self.frames.iter().take_while(|(file, _)| !file.is_empty());
        frames.flat_map(|&(file, functions)| functions.split(' ').map(move |name| (file, name)))
    }
}

texts! {
    Pattern:
    category(Category) => category;
    triggers(&'static [&'static str]) => triggers;
    op(&'static str) => op;
    trace(&'static str) => trace;
    why(&'static str) => why;
    versions(&'static str) => versions;
    driver_api(&'static str) => driver_api;
    sources(&'static str) => sources;
    before(&'static str) => fix.before;
    after(&'static str) => fix.after;
    mind(&'static str) => fix.caveat;
    case_of(&'static [PatternId]) => case_of;
    or(&'static [&'static str]) => fix.alternatives;
    installed(&'static str) => fix.installed;
    of_pinned(&'static str) => fix.of_pinned;
    instead(&'static [(Case, PatternId)]) => instead;
    package(&'static str) => library.package;
    line(&'static str) => library.line_text;
    often(&'static str) => library.frequency;
}

impl Pattern {
    /// An entry that starts from this one.
    const fn entry(self, id: PatternId, title: &'static str) -> Self {
        Self { id, title, ..self }
    }

    /// The same of what is of one kind, whatever the value is used for.
    const fn of_kind(self, id: PatternId, title: &'static str, kind: Kind) -> Self {
        self.kind(kind).entry(id, title)
    }

    /// What the wait is, whatever the value is used for. That is also the category of most.
    const fn kind(self, kind: Kind) -> Self {
        let category = match (kind, self.category) {
            (Kind::ErrorCheck, _) => Category::ErrorCheck,
            (Kind::DynamicShape, _) => Category::DynamicShapes,
            (Kind::Upload, Category::DataDependentControlFlow) => Category::DeviceMovement,
            (Kind::Explicit | Kind::Timing, Category::DataDependentControlFlow) => Category::ExplicitSync,
            (Kind::Allocator, _) => Category::Allocator,
            (_, category) => category,
        };
        Self { kind: Some(kind), category, instead: &[], ..self }
    }

    /// Python reads that.
    const fn reads(self, what: Reads) -> Self {
        let instead = match (self.kind, what) {
            (Some(_), _) => self.instead,
            (None, Reads::Number) => OF_NUMBER,
            (None, Reads::Tensors) => OF_TENSORS,
        };
        Self { reads: Some(what), instead, ..self }
    }

    /// The use of the value decides.
    const fn by_use(self) -> Self {
        Self { kind: None, ..self }
    }

    /// A helper's code.
    const fn wraps(self) -> Self {
        Self { wraps: true, ..self }
    }

    /// That is simulated.
    const fn simulated(self, change: Change) -> Self {
        Self { fix: Fix { change: Some(change), ..self.fix }, ..self }
    }

    /// Usually there on purpose.
    const fn intended(self) -> Self {
        Self { intended: true, ..self }
    }

    /// A library's set-up.
    const fn sets_up(self) -> Self {
        Self { sets_up: true, ..self }
    }

    /// The fix pins in the line itself.
    const fn pins(self) -> Self {
        Self { fix: Fix { pins: true, ..self.fix }, ..self }
    }

    /// Where library code waits: one more file, and functions there.
    const fn at(mut self, file: &'static str, functions: &'static str) -> Self {
        let mut next = 0;
        while !self.library.frames[next].0.is_empty() {
            next += 1;
        }
        self.library.frames[next] = (file, functions);
        self
    }

    /// How to get rid of it.
    const fn fix(self, strategy: Strategy, title: &'static str) -> Self {
        Self { fix: Fix { strategy, title, ..self.fix }, ..self }
    }
}
