//! The words that every room of the program shares: classes and kinds of verdicts, copies, attribution.
//!
//! Each enum prints as the word that the JSON contract uses, in every format.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Declares a fieldless enum whose `as_str`, `Display` and JSON form are one word.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$vmeta])* #[serde(rename = $word)] $variant),+ }

        impl $name {
            /// Every value, in declaration order.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The word used in reports and JSON.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

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
        Explicit = "explicit",
        Redundant = "redundant",
        Idle = "idle",
        Upload = "upload",
        DebugPrint = "debug-print",
        Logging = "logging",
        ErrorCheck = "error-check",
        Allocator = "allocator",
        RoundTrip = "round-trip",
        Timing = "timing",
        // true
        ControlFlow = "control-flow",
        DynamicShape = "dynamic-shape",
        CpuCompute = "cpu-compute",
        Barrier = "barrier",
        // unknown
        ValueRead = "value-read",
        Unattributed = "unattributed",
    }
}

impl Kind {
    /// The class that this kind belongs to.
    pub const fn class(self) -> Class {
        use Kind::*;
        match self {
            Explicit | Redundant | Idle | Upload | DebugPrint | Logging | ErrorCheck | Allocator
            | RoundTrip | Timing => Class::False,
            ControlFlow | DynamicShape | CpuCompute | Barrier => Class::True,
            ValueRead | Unattributed => Class::Unknown,
        }
    }
}

words! {
    /// What amounts are of: each iteration, or the whole run.
    #[derive(Default)]
    Per {
        #[default]
        Iteration = "iteration",
        Run = "run",
    }
}

words! {
    /// Direction of a copy.
    Direction {
        HostToDevice = "host-to-device",
        DeviceToHost = "device-to-host",
        DeviceToDevice = "device-to-device",
        HostToHost = "host-to-host",
        Other = "other",
    }
}

words! {
    /// What kind of host memory a copy reads or writes.
    HostMemory {
        Pageable = "pageable",
        Pinned = "pinned",
        Managed = "managed",
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
        /// The C++ call chain: names the PyTorch method, not the line.
        Native = "native",
        /// Enclosing NVTX ranges.
        Nvtx = "nvtx",
        /// Nothing but the API and its neighbours.
        None = "none",
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
        StreamSynchronize = "cuStreamSynchronize",
        EventSynchronize = "cuEventSynchronize",
        CtxSynchronize = "cuCtxSynchronize",
        Memcpy = "cuMemcpy",
        MemcpyAsync = "cuMemcpyAsync",
        Memset = "cuMemset",
        MemFree = "cuMemFree",
        HostAlloc = "cuMemHostAlloc",
        HostFree = "cuMemFreeHost",
    }
}

/// The copy that a wait completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Copy {
    pub direction: Direction,
    /// Size in bytes.
    pub bytes: u64,
    pub host_memory: HostMemory,
}

/// One reason for a verdict, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Rule id of the catalogue (`R01`, `S04`, `L19`, …).
    pub rule: &'static str,
    /// The reason as a sentence, with the site's own numbers.
    pub text: String,
}

impl Evidence {
    pub fn new(rule: &'static str, text: impl Into<String>) -> Self {
        Self { rule, text: text.into() }
    }
}

/// Class, kind and how sure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    pub class: Class,
    pub kind: Kind,
    /// Calibrated share of right verdicts among those printed at this value, 0 to 1.
    pub confidence: f64,
    /// Id of the catalogue entry (`A01`, `C03`, `L19`, …).
    pub pattern: Option<&'static str>,
    pub evidence: Vec<Evidence>,
}
