//! The words that every room of the program shares: classes and kinds of verdicts, copies, attribution.
//!
//! Each enum prints as the word that the JSON contract uses, in every format.

mod rule_id;

pub use rule_id::RuleId;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares a fieldless enum whose `as_str`, `Display` and JSON form are one word: the value's own name, or the one given.
/// What a value means may follow its word, for `--help` too.
macro_rules! words {
    (@word $variant:ident) => { stringify!($variant) };
    (@word $variant:ident $word:literal) => { $word };
    ($(#[$meta:meta])* $name:ident {
        $($(#[$vmeta:meta])* $variant:ident $(= $word:literal)? $(: $help:literal)?),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash,
            serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        pub enum $name { $($(#[$vmeta])* $(#[doc = $help])? $(#[serde(rename = $word)])? $variant),+ }

        impl $name {
            /// Every value, in declaration order.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The word used in reports and JSON.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $crate::vocabulary::words!(@word $variant $($word)?)),+ }
            }

            /// What `--help` says of it; empty where the word says all.
            pub const fn help(self) -> &'static str {
                match self { $($name::$variant => concat!($($help)?)),+ }
            }

            /// The value of that word.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}
pub(crate) use words;

words! {
    /// Whether the CPU needed the GPU's result.
    Class {
        /// No: the wait can go without changing what the program computes.
        False = "false",
        /// Yes: a branch, a size or CPU arithmetic depends on it.
        True = "true",
        /// The evidence does not say.
        Unknown = "unknown",
    }
}

words! {
    /// Why a wait is of its class.
    Kind {
        // false
        /// A `synchronize()` that nothing explains.
        Explicit = "explicit",
        /// A wait right before it had drained the GPU already.
        Redundant = "redundant",
        /// Nothing was pending.
        Idle = "idle",
        /// A copy to the GPU from host data.
        Upload = "upload",
        /// A tensor is printed or formatted.
        DebugPrint = "debug-print",
        /// The value is only shown or written to a log.
        Logging = "logging",
        /// An operator validates its input or result.
        ErrorCheck = "error-check",
        /// Device or pinned memory is allocated or freed.
        Allocator = "allocator",
        /// The value goes back to the GPU.
        RoundTrip = "round-trip",
        /// The value follows from what the host uploaded.
        HostKnown = "host-known",
        /// It makes a clock or an event measure GPU work.
        Timing = "timing",
        // true
        /// Python branches on the value.
        ControlFlow = "control-flow",
        /// The value is the size of a tensor.
        DynamicShape = "dynamic-shape",
        /// The CPU computes with the value.
        CpuCompute = "cpu-compute",
        /// It keeps ranks or processes together.
        Barrier = "barrier",
        // unknown
        /// A value is read; what becomes of it is not known.
        ValueRead = "value-read",
        /// Nothing tells what it was for.
        Unattributed = "unattributed",
    }
}

impl Kind {
    /// The class that this kind belongs to.
    pub const fn class(self) -> Class {
        use Kind::*;
        match self {
            Explicit | Redundant | Idle | Upload | DebugPrint | Logging | ErrorCheck | Allocator
            | RoundTrip | HostKnown | Timing => Class::False,
            ControlFlow | DynamicShape | CpuCompute | Barrier => Class::True,
            ValueRead | Unattributed => Class::Unknown,
        }
    }
}

words! {
    /// What amounts are of: each iteration, or the whole run.
    #[derive(Default)]
    Per {
        /// Each turn of the program's loop, on average.
        #[default]
        Iteration = "iteration",
        /// The whole capture.
        Run = "run",
    }
}

words! {
    /// What is measured of waits.
    Measure {
        /// Number of waits.
        Waits = "waits",
        /// Number of waits of class false.
        FalseWaits = "false-waits",
        /// Host time inside waits.
        Blocked = "blocked",
        /// GPU idle time after waits.
        Drain = "drain",
    }
}

words! {
    /// Direction of a copy.
    Direction {
        /// An upload.
        HostToDevice = "host-to-device",
        /// A readback.
        DeviceToHost = "device-to-host",
        /// On one GPU or between two.
        DeviceToDevice = "device-to-device",
        /// Through CUDA, but no GPU memory.
        HostToHost = "host-to-host",
        /// CUPTI names another kind, or none.
        Other = "other",
    }
}

words! {
    /// What kind of host memory a copy reads or writes.
    HostMemory {
        /// Ordinary memory: the driver stages the copy, and the call blocks.
        Pageable = "pageable",
        /// Page-locked: the GPU copies by itself.
        Pinned = "pinned",
        /// Unified memory, which the driver migrates.
        Managed = "managed",
        /// Not recorded, or a kind that CUPTI does not know.
        Unknown = "unknown",
    }
}

words! {
    /// How a wait was put on its line, best first.
    Attribution {
        /// The Python frames recorded at this very call.
        PythonBacktrace = "python-backtrace",
        /// Periodic Python samples inside or next to the wait.
        PythonSample = "python-sample",
        /// The line that called `backward()`, for waits on autograd's thread: the last stack recorded before of the thread
        /// that was in there meanwhile.
        Backward = "backward",
        /// The C++ call chain: names the PyTorch method, not the line.
        Native = "native",
        /// Enclosing NVTX ranges.
        Nvtx = "nvtx",
        /// Nothing but the API and its neighbours.
        None = "none",
    }
}

impl Attribution {
    /// The sign of a place that is not from the Python frames of the call itself.
    pub const fn mark(self) -> Option<&'static str> {
        match self {
            Self::PythonBacktrace | Self::None => None,
            Self::PythonSample => Some("~sampled"),
            Self::Backward => Some("~backward"),
            Self::Native => Some("~native"),
            Self::Nvtx => Some("~nvtx"),
        }
    }
}

words! {
    /// What the thread that waited is for.
    ThreadRole {
        /// A thread that runs the user's Python.
        Python = "python",
        /// PyTorch's autograd engine (`pt_autograd_N`): backward code, without Python frames of its own.
        Autograd = "autograd",
        /// A thread of a library (NCCL watchdog, pin-memory, data loader): not the main program waiting.
        Library = "library",
        /// No name or frames tell.
        Unknown = "unknown",
    }
}

words! {
    /// The driver call behind a wait.
    DriverApi {
        /// Waits for one stream.
        StreamSynchronize = "cuStreamSynchronize",
        /// Waits for a recorded event.
        EventSynchronize = "cuEventSynchronize",
        /// Waits for all streams of the context.
        CtxSynchronize = "cuCtxSynchronize",
        /// A synchronous copy.
        Memcpy = "cuMemcpy",
        /// An asynchronous copy that blocked all the same, as with pageable memory.
        MemcpyAsync = "cuMemcpyAsync",
        /// A synchronous fill.
        Memset = "cuMemset",
        /// Frees device memory.
        MemFree = "cuMemFree",
        /// Allocates pinned memory.
        HostAlloc = "cuMemHostAlloc",
        /// Frees pinned memory.
        HostFree = "cuMemFreeHost",
    }
}

words! {
    /// A change that can be simulated.
    ///
    /// ```text
    ///                     [copy call][wait-------------]
    ///  Delete             [copy call]                       the synchronisation is gone
    ///  GpuWait            [copy call]                       likewise, but what this thread launches next waits on the GPU
    ///  Narrow             [copy call][wait---]              only for the one copy or stream that the code needs
    ///  NonBlocking        [floor]                           the copy is only enqueued; the host goes on, later ops wait
    ///  Pinned             [floor]                           likewise, and the copy runs at the speed of pinned memory
    ///  Drop                                                 copy and wait are gone
    ///  Delay              [floor]            … [wait]       one wait at the iteration's end for all of it
    ///  Coalesce           [floor]  [floor]  [floor][wait]   the last of several in a row waits for all
    /// ```
    #[derive(Default)]
    Change {
        /// Nothing changes.
        #[default]
        Keep = "keep",
        /// The synchronisation is gone.
        Delete = "delete",
        /// The GPU waits in the host's place: a stream waits for an event.
        GpuWait = "gpu-wait",
        /// It waits for less: for the one copy or stream that is needed.
        Narrow = "narrow",
        /// The copy is only enqueued.
        NonBlocking = "non-blocking",
        /// The copy is only enqueued, from pinned memory.
        Pinned = "pinned",
        /// Copy and wait are gone.
        Drop = "drop",
        /// What is read or uploaded is on the GPU and stays there: one more op in the place of the copy, and no wait.
        OnGpu = "on-gpu",
        /// One wait at the end of the iteration.
        Delay = "delay",
        /// Waits in a row become one.
        Coalesce = "coalesce",
    }
}

impl Change {
    /// Whether later ops of the thread stay behind what was awaited, on whichever stream: they use its result.
    pub fn keeps_order(self) -> bool {
        matches!(self, Self::GpuWait | Self::NonBlocking | Self::Pinned)
    }
}

words! {
    /// What limits a run.
    BoundBy {
        /// The GPU runs dry: calls and Python take longer.
        Host = "host",
        /// The host is ahead of the GPU.
        Gpu = "gpu",
    }
}

words! {
    /// What a capture recorded of where waits come from, and so how much it slowed the host.
    Backtraces {
        /// Backtraces of calls, with Python frames.
        Python = "python",
        /// Backtraces of calls without.
        Native = "native",
        /// Periodic Python samples.
        Sampled = "sampled",
        /// None of these.
        None = "none",
    }
}

words! {
    /// What a sample of a site's costs is.
    #[derive(Default)]
    Sample {
        /// What its waits in one iteration add up to.
        #[default]
        Iteration = "iteration",
        /// One wait.
        Wait = "wait",
    }
}

/// A site within one run of the tool: what the rooms of that run know it by. Across runs sites are told by their key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteIx {
    /// Index of the export among those given.
    pub profile: usize,
    /// Index of the site in the analysis of that export.
    pub site: usize,
}

/// The copy that a wait completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Copy {
    /// From where to where.
    pub direction: Direction,
    /// Size in bytes.
    pub bytes: u64,
    /// How the host side of it is allocated.
    pub host_memory: HostMemory,
}

/// One reason for a verdict, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The rule that gives the reason.
    pub rule: RuleId,
    /// The reason as a sentence, with the site's own numbers.
    pub text: String,
}

impl Evidence {
    /// A reason of that rule.
    pub fn new(rule: RuleId, text: impl Into<String>) -> Self {
        Self { rule, text: text.into() }
    }
}

/// Class, kind and how sure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Whether the CPU needed the GPU's result.
    pub class: Class,
    /// Why it is of that class.
    pub kind: Kind,
    /// How sure it is, 0 to 1: the figure of the rule that decided (its `Grade`), which an author expected to be the
    /// share of right verdicts, lowered for each further guess on the way. How many verdicts of the rule were right on
    /// labelled captures stands beside it in the table of rules; it is not computed from that.
    pub confidence: f64,
    /// Id of the catalogue entry (`A01`, `C03`, `L19`, …).
    pub pattern: Option<&'static str>,
    /// Reasons, the deciding one first.
    pub evidence: Vec<Evidence>,
}
