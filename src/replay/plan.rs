//! What is replayed: a pure value, printable as JSON, built without a GPU.
//!
//! One host thread runs the acts of a variant in order, [`Plan::repeat`] times in a row, then waits for the device: a
//! fix lets the host run ahead into the next stretch, which a single one would hide. Times are those of the whole row
//! divided by its number of stretches. Calls of several recorded threads are merged by time, since threads of a
//! PyTorch program mostly hand over to one another.
//!
//! ```text
//!  host   [Host 40 us][Gemm][Gemm][Host 5 us][Copy to host][Sync stream 0]…        acts, in order
//!  GPU                [gemm----][gemm----]     [copy]
//! ```

use crate::vocabulary::{Direction, HostMemory};
use serde::{Deserialize, Serialize};

/// Version of the JSON; fields are added freely, never renamed.
pub const PLAN_VERSION: u32 = 1;

/// A workload, in all its variants. Times are integer ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub plan_version: u32,
    /// File name of the export.
    pub profile: String,
    /// GPU that the workload was recorded on.
    pub gpu: RecordedGpu,
    /// The sites whose waits are in the workload; [`Act::Sync`] and [`Act::Copy`] point here.
    pub sites: Vec<PlannedSite>,
    pub stretch: Stretch,
    /// Stretches in a row that one timed run consists of.
    pub repeat: usize,
    /// What the times of [`Act::Host`] are.
    pub host: HostTime,
    /// How products of [`Certainty::DurationMatched`] are fitted to the GPU at hand.
    pub matching: Matching,
    /// Streams and events that the acts use: 0 to these.
    pub streams: usize,
    pub events: usize,
    /// Distinct matrix products, which [`Act::Gemm`] points to.
    pub gemms: Vec<Gemm>,
    /// The awaited products in launch order and where the recorded waits stood: what the loops of GEMMs alone run.
    pub alone: Vec<Alone>,
    /// As recorded, first; then each change.
    pub variants: Vec<Variant>,
    /// What the plan leaves out or assumes, in sentences.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordedGpu {
    pub name: Option<String>,
    pub compute_capability: Option<(u32, u32)>,
    pub multiprocessors: Option<u32>,
    /// Clock of the multiprocessors, in Hz.
    pub clock_hz: Option<u64>,
    /// Peak memory bandwidth, in bytes a second.
    pub memory_bandwidth: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedSite {
    /// `S3`, as in the report.
    pub id: String,
    /// The stable key of the site.
    pub key: String,
    /// `train.py:31 (step)`, or the best substitute.
    pub place: String,
    pub api: String,
    pub class: String,
    pub kind: String,
    /// What its fix changes, as in `--fix`.
    pub fix: String,
}

/// The recorded stretch that is replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stretch {
    /// On the capture's clock, in ns.
    pub from_ns: i64,
    pub to_ns: i64,
    /// Index of the iteration, where the stretch is one, and how many there are.
    pub iteration: Option<usize>,
    pub iterations: usize,
    /// Time in it during which the device worked, in ns.
    pub gpu_busy_ns: i64,
    /// How the stretch was chosen, in a sentence.
    pub chosen: String,
}

/// How well the shape of a product is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// From the operator's recorded shapes.
    Exact,
    /// From the kernel's tile and grid; K from its duration.
    TileRounded,
    /// Of a size that takes as long as the recorded one.
    DurationMatched,
}

/// How long the host works between two calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostTime {
    #[default]
    Recorded,
    /// As recorded, less what is estimated to be the profiler's.
    Unprofiled,
    /// As recorded, times this; 0: not at all.
    Scaled(f64),
}

/// What a product whose shape is unknown should take on the GPU at hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Matching {
    /// The recorded time, scaled by the ratio of the two GPUs' peaks for the product's types.
    #[default]
    Peak,
    /// The recorded time.
    Duration,
}

/// Type of matrix elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Element {
    F16,
    Bf16,
    F32,
    F64,
}

/// Precision of a product's multiplications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compute {
    F32,
    Tf32,
    F64,
}

/// A matrix product as cuBLAS takes it, column-major: `C (m×n) = op(A) (m×k) · op(B) (k×n)`, `batch` times.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Gemm {
    pub m: u64,
    pub n: u64,
    pub k: u64,
    pub batch: u64,
    pub transpose_a: bool,
    pub transpose_b: bool,
    pub element: Element,
    pub compute: Compute,
    pub certainty: Certainty,
    /// Median recorded duration of its kernel(s), in ns.
    pub recorded_ns: i64,
    /// Demangled name of the (longest) kernel.
    pub kernel: String,
    /// What the shape rests on, in a few words.
    pub basis: String,
}

/// One element of the sequence of GEMMs alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Alone {
    Gemm(usize),
    /// A recorded wait stood here.
    Wait,
}

/// One thing the host does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "act")]
pub enum Act {
    /// Computes for this long (a busy wait): the recorded time between two calls.
    Host {
        ns: i64,
    },
    /// Launches product `gemm`.
    Gemm {
        gemm: usize,
        stream: usize,
    },
    /// Launches a kernel that only takes time, and where there are several streams the recorded one's place.
    Spin {
        ns: i64,
        stream: usize,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        place: Option<Footprint>,
    },
    /// Copies; a `blocking` one is the synchronous API, others are `…Async` (which stages pageable memory in the call).
    Copy {
        direction: Direction,
        bytes: u64,
        memory: HostMemory,
        stream: usize,
        blocking: bool,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        site: Option<usize>,
    },
    Memset {
        bytes: u64,
        stream: usize,
    },
    Record {
        event: usize,
        stream: usize,
    },
    StreamWait {
        event: usize,
        stream: usize,
    },
    /// A host wait.
    Sync {
        target: Target,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        site: Option<usize>,
    },
}

/// What a kernel takes of a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footprint {
    pub blocks: u64,
    /// Of a block.
    pub threads: u32,
    /// Of a thread.
    pub registers: u32,
    /// Bytes of shared memory of a block.
    pub shared: u32,
}

impl Act {
    /// The stream that it gives something to do, unless it only orders.
    pub fn works_on(&self) -> Option<usize> {
        match *self {
            Self::Gemm { stream, .. }
            | Self::Spin { stream, .. }
            | Self::Copy { stream, .. }
            | Self::Memset { stream, .. } => Some(stream),
            Self::Host { .. } | Self::Record { .. } | Self::StreamWait { .. } | Self::Sync { .. } => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    Stream(usize),
    Event(usize),
    /// The whole context, as cudaDeviceSynchronize.
    Context,
}

/// One way to run the stretch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// `as recorded`, `S3 fixed`, `all false sites fixed`.
    pub name: String,
    /// Indices of the sites that are fixed in it.
    pub fixed: Vec<usize>,
    pub acts: Vec<Act>,
    /// What the simulation says it saves of one stretch, in ns; `None` for the variant as recorded, and where nothing
    /// was simulated.
    pub predicted_saving_ns: Option<i64>,
}
