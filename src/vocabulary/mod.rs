//! The words that every room of the program shares: classes and kinds of verdicts, copies, attribution.
//!
//! Each enum prints as the word that the JSON contract uses, in every format.

mod in_words;
pub mod operand;
mod pattern_id;
mod rule_id;

pub use operand::Operand;
pub use pattern_id::PatternId;
pub use rule_id::RuleId;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares a fieldless enum whose `as_str`, `Display` and JSON form are one word: the value's own name, or the one given.
/// A value's meaning may follow its word, for `--help` too.
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

            /// Text for `--help`; empty where the word says all.
            pub const fn help(self) -> &'static str {
                match self { $($name::$variant => concat!($($help)?)),+ }
            }

            /// The value of a word.
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

/// Makes a method for each text of a row, which replaces the row's initial text.
macro_rules! texts {
    ($row:ident: $($name:ident($text:ty) => $($field:ident).+;)+) => {
        impl $row {$(
            const fn $name(mut self, text: $text) -> Self {
                self.$($field).+ = text;
                self
            }
        )+}
    };
}
pub(crate) use texts;

words! {
    /// Whether the CPU needed the GPU's result.
    Class {
        False = "false": "No: the wait can go without changing what the program computes.",
        True = "true": "Yes: a branch, a size or CPU arithmetic depends on it.",
        Unknown = "unknown": "The evidence does not say.",
    }
}

words! {
    /// Reason for a wait's class.
    Kind {
        // false
        Explicit = "explicit": "A `synchronize()` that nothing explains.",
        Redundant = "redundant": "A wait right before it had drained the GPU already.",
        Idle = "idle": "Nothing was pending.",
        Upload = "upload": "A copy to the GPU from host data.",
        DebugPrint = "debug-print": "A tensor is printed or formatted.",
        Logging = "logging": "The value is only shown or written to a log.",
        ErrorCheck = "error-check": "An operator validates its input or result.",
        Allocator = "allocator": "Device or pinned memory is allocated or freed.",
        RoundTrip = "round-trip": "The value goes back to the GPU.",
        HostKnown = "host-known": "The value follows from what the host uploaded.",
        Timing = "timing": "It makes a clock or an event measure GPU work.",
        // true
        ControlFlow = "control-flow": "Python branches on the value.",
        DynamicShape = "dynamic-shape": "The value is the size of a tensor.",
        CpuCompute = "cpu-compute": "The CPU computes with the value.",
        Barrier = "barrier": "It keeps ranks or processes together.",
        // unknown
        ValueRead = "value-read": "A value is read; what becomes of it is not known.",
        Unattributed = "unattributed": "Nothing tells what it was for.",
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
    /// Base of amounts: an iteration or the whole run.
    #[derive(Default)]
    Per {
        /// An average iteration of the program's loop.
        #[default]
        Iteration = "iteration",
        Run = "run": "The whole capture.",
    }
}

words! {
    /// Measure of waits.
    Measure {
        Waits = "waits": "Number of waits.",
        FalseWaits = "false-waits": "Number of waits of class false.",
        Blocked = "blocked": "Host time inside waits.",
        Drain = "drain": "GPU idle time after waits.",
    }
}

words! {
    /// Direction of a copy.
    Direction {
        HostToDevice = "host-to-device": "An upload.",
        DeviceToHost = "device-to-host": "A readback.",
        DeviceToDevice = "device-to-device": "On one GPU or between two.",
        HostToHost = "host-to-host": "Through CUDA, but no GPU memory.",
        Other = "other": "CUPTI names another kind, or none.",
    }
}

words! {
    /// Kind of host memory that a copy reads or writes.
    HostMemory {
        Pageable = "pageable": "Ordinary memory: the driver stages the copy, and the call blocks.",
        Pinned = "pinned": "Page-locked: the GPU copies by itself.",
        Managed = "managed": "Unified memory, which the driver migrates.",
        Unknown = "unknown": "Not recorded, or a kind that CUPTI does not know.",
    }
}

words! {
    /// Method that attributed a wait to its line, best first.
    Attribution {
        PythonBacktrace = "python-backtrace": "The Python frames recorded at this very call.",
        PythonFound = "python-found": "The Python function recorded at this very call, and the one line of it that waits in this way, by its source.",
        PythonFunction = "python-function": "The Python function recorded at this very call, without its line.",
        PythonSample = "python-sample": "Periodic Python samples inside or next to the wait.",
        /// The line that called `backward()`, for waits on autograd's thread, by the last stack recorded
        /// before.
        Backward = "backward",
        Native = "native": "The C++ call chain: names the PyTorch method, not the line.",
        Nvtx = "nvtx": "Enclosing NVTX ranges.",
        None = "none": "Nothing but the API and its neighbours.",
    }
}

impl Attribution {
    /// Whether the line is the call's own, not one nearby or of a function around the call.
    pub const fn is_of_line(self) -> bool {
        matches!(self, Self::PythonBacktrace | Self::PythonFound)
    }

    /// Mark of a place that is not from the Python frames of the call itself.
    pub const fn mark(self) -> Option<&'static str> {
        match self {
            Self::PythonBacktrace | Self::None => None,
            Self::PythonFound => Some("~found"),
            Self::PythonFunction => Some("~function"),
            Self::PythonSample => Some("~sampled"),
            Self::Backward => Some("~backward"),
            Self::Native => Some("~native"),
            Self::Nvtx => Some("~nvtx"),
        }
    }
}

words! {
    /// The profiler that made a capture.
    #[derive(Default)]
    Recorder {
        #[default]
        Nsys = "nsys": "Nsight Systems.",
        TorchProfiler = "torch.profiler": "PyTorch's own profiler, Kineto.",
    }
}

words! {
    /// Role of the thread that waited.
    ThreadRole {
        Python = "python": "A thread that runs the user's Python.",
        /// PyTorch's autograd engine (`pt_autograd_N`): backward code, without Python frames of its own.
        Autograd = "autograd",
        /// A thread of a library (NCCL watchdog, pin-memory, data loader), not the main program.
        Library = "library",
        Unknown = "unknown": "No name or frames tell.",
    }
}

words! {
    /// The driver call behind a wait.
    DriverApi {
        StreamSynchronize = "cuStreamSynchronize": "Waits for one stream.",
        EventSynchronize = "cuEventSynchronize": "Waits for a recorded event.",
        CtxSynchronize = "cuCtxSynchronize": "Waits for all streams of the context.",
        Memcpy = "cuMemcpy": "A synchronous copy.",
        MemcpyAsync = "cuMemcpyAsync": "An asynchronous copy that blocked all the same, as with pageable memory.",
        Memset = "cuMemset": "A synchronous fill.",
        MemFree = "cuMemFree": "Frees device memory.",
        HostAlloc = "cuMemHostAlloc": "Allocates pinned memory.",
        HostFree = "cuMemFreeHost": "Frees pinned memory.",
    }
}

words! {
    /// Work of an API call that takes host time without waiting.
    ApiFamily {
        HostAllocation = "host-allocation": "Allocates or registers pinned memory of the host.",
        DeviceAllocation = "device-allocation": "Allocates memory of a device.",
        ModuleLoading = "module-loading": "Loads code of kernels, at once or as they are first used.",
    }
}

words! {
    /// A change that can be simulated.
    ///
    /// ```text
    ///                     [copy call][wait-------------]
    ///  Delete             [copy call]                       the synchronisation is gone
    ///  GpuWait            [copy call]                       likewise, but this thread's next launches wait on the GPU
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
        Delete = "delete": "The synchronisation is gone.",
        GpuWait = "gpu-wait": "The GPU waits in the host's place: a stream waits for an event.",
        Narrow = "narrow": "It waits for less: for the one copy or stream that is needed.",
        NonBlocking = "non-blocking": "The copy is only enqueued.",
        Pinned = "pinned": "The copy is only enqueued, from pinned memory.",
        Drop = "drop": "Copy and wait are gone.",
        /// The value stays on the GPU: one more op in place of the copy, and no wait.
        OnGpu = "on-gpu",
        Delay = "delay": "One wait at the end of the iteration.",
        Coalesce = "coalesce": "Waits in a row become one.",
    }
}

impl Change {
    /// Whether a change avoids waits, by their verdict or because `--fix` asks. Keeping a wait never does.
    pub fn avoids(self, class: Class, asked: bool) -> bool {
        (class == Class::False || asked) && self != Self::Keep
    }

    /// Whether later ops of the thread, on any stream, stay behind the awaited work: they use its result.
    pub fn keeps_order(self) -> bool {
        matches!(self, Self::GpuWait | Self::NonBlocking | Self::Pinned)
    }
}

words! {
    /// Ways to get rid of a wait, in the order in which to try them.
    #[derive(Default)]
    Strategy {
        Remove = "remove it": "Delete the call: nothing needs it.",
        NonBlocking = "make the copy asynchronous": "`non_blocking=True`, from pinned memory: the copy is only enqueued.",
        SyncFreeApi = "use a form that does not wait": "Another call or argument with the same result, computed on the GPU alone.",
        Fill = "fill it on the GPU": "What is uploaded is filled in by a kernel of the GPU.",
        Delay = "wait later or less often": "Read the value later, or in fewer iterations.",
        Coalesce = "join several waits into one": "One copy for values that are read one by one.",
        Offload = "move the work elsewhere": "Another design: dense tensors, a CPU backend (gloo), no offload to the CPU.",
        ExcludeFromCapture = "keep it out of the measured region": "It belongs to set-up or measuring: leave it outside the captured region.",
        /// Nothing to do: harmless, or once at start-up. Also read for a strategy of another version.
        #[default]
        #[serde(other)]
        Leave = "leave it",
    }
}

words! {
    /// Bottleneck of a run.
    BoundBy {
        Host = "host": "The GPU runs dry: calls and Python take longer.",
        Gpu = "gpu": "The host is ahead of the GPU.",
    }
}

words! {
    /// Recorded origin of waits, which also determines how much the profiler slowed the host.
    Backtraces {
        Python = "python": "Backtraces of calls, with Python frames.",
        Native = "native": "Backtraces of calls without.",
        Sampled = "sampled": "Periodic Python samples.",
        None = "none": "None of these.",
    }
}

words! {
    /// Kind of sample of a site's costs.
    #[derive(Default)]
    Sample {
        /// Sum over the site's waits in one iteration.
        #[default]
        Iteration = "iteration",
        Wait = "wait": "One wait.",
    }
}

/// Makes indices of columns and lists, of 32 bits also in an `Option`.
macro_rules! index {
    ($($(#[$meta:meta])* $name:ident)+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(std::num::NonZeroU32);

        impl $name {
            /// Position in the columns, from 0.
            pub fn index(self) -> usize {
                self.0.get() as usize - 1
            }
        }

        impl From<usize> for $name {
            fn from(index: usize) -> Self {
                let index = u32::try_from(index).unwrap_or(u32::MAX);
                Self(std::num::NonZeroU32::MIN.saturating_add(index))
            }
        }

        impl Default for $name {
            fn default() -> Self {
                0.into()
            }
        }

        impl From<$name> for usize {
            fn from(index: $name) -> Self {
                index.index()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.index().fmt(f)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{} {self}", stringify!($name))
            }
        }
    )+};
}
pub(crate) use index;

index! {
    /// An export of a report: its place in [`crate::model::Report::profiles`], without unreadable exports.
    #[derive(Serialize, Deserialize)]
    #[serde(from = "usize", into = "usize")]
    ProfileIx

    /// A site of one export: its place in the analysis.
    SiteIx
}

/// Identity of a site within one run of the tool. Across runs, sites are identified by key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteId {
    pub profile: ProfileIx,
    pub site: SiteIx,
}

/// The copy that a wait completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Copy {
    /// Direction of the copy.
    pub direction: Direction,
    /// Size in bytes.
    pub bytes: u64,
    /// Kind of host memory.
    pub host_memory: HostMemory,
}

/// The largest copy that reads one number: a complex128.
pub const NUMBER_BYTES: u64 = 16;

impl Copy {
    /// Largest copy from pageable memory, in bytes, that the driver takes over at once. Larger ones wait for queued work
    /// (CUDA driver API, "API synchronization behavior").
    pub const TAKEN_OVER: u64 = 64 << 10;

    /// Whether the driver takes the data over before the call returns, so that only a synchronisation waits for the copy.
    pub fn is_taken_over(self) -> bool {
        self.host_memory == HostMemory::Pageable && self.bytes <= Self::TAKEN_OVER
    }

    pub fn reads_number(self) -> bool {
        self.direction == Direction::DeviceToHost && self.bytes <= NUMBER_BYTES
    }
}

/// One reason for a verdict, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The rule that gives the reason.
    pub rule: RuleId,
    /// Case of the rule, as `explain RULE` lists it; absent from remarks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// The reason as a sentence, with the site's own numbers.
    pub text: String,
}

impl Evidence {
    pub fn new(rule: RuleId, text: impl Into<String>) -> Self {
        Self { rule, case: None, text: text.into() }
    }
}

/// Class, kind and confidence of a verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    pub class: Class,
    pub kind: Kind,
    /// 0 to 1: the share of right verdicts of the deciding rule's case on labelled programs, shrunk towards
    /// the rule's and the class's share where cases are few. 0.5 for an undecided class.
    pub confidence: f64,
    pub pattern: Option<PatternId>,
    /// The deciding one first.
    pub evidence: Vec<Evidence>,
    /// Of an upload; the evidence says so too.
    #[serde(skip)]
    pub made: Option<Made>,
}

/// How the host makes a tensor right before uploading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// Fills or joins fresh memory.
    Filled,
    /// Draws random numbers.
    Drawn,
    /// Converts a list, element by element.
    Listed,
    /// Not at all: the loop gives it.
    Elsewhere,
}

impl Verdict {
    /// Sets `made` and adds its evidence.
    pub fn makes(&mut self, made: Option<(Made, String)>) {
        let Some((made, text)) = made else { return };
        self.made = Some(made);
        let rule = match made {
            Made::Filled => RuleId::S22,
            Made::Drawn => RuleId::S23,
            Made::Listed => RuleId::S24,
            Made::Elsewhere => return,
        };
        self.evidence.push(Evidence::new(rule, text));
    }
}
