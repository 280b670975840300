//! Plan of a replay: a pure value, printable as JSON, built without a GPU.
//!
//! One host thread runs the ops of a variant in order, [`Plan::repeat`] times in a row, then waits for the device: a
//! fix lets the host run ahead into the next stretch, which a single one would hide. Times of a row are divided by
//! its number of stretches. Calls of several recorded threads are merged by time, since threads of a PyTorch program
//! mostly hand over to one another.
//!
//! ```text
//!  host   [Host 40 us][Gemm][Gemm][Host 5 us][Copy to host][Sync stream 0]…        ops, in order
//!  GPU                [gemm----][gemm----]     [copy]
//! ```

use super::product::Shape;
use crate::vocabulary::{Change, Class, Direction, HostMemory, Kind, index, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use typed_index_collections::TiVec;

/// Version of the JSON; fields are added freely, never renamed.
pub const PLAN_VERSION: u32 = 1;

index! {
    /// A stream of a plan, one of [`Plan::streams`].
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(from = "usize", into = "usize")]
    PlanStream

    /// An event of a plan, one of [`Plan::events`].
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(from = "usize", into = "usize")]
    PlanEvent

    /// A product, one of [`Plan::gemms`].
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(from = "usize", into = "usize")]
    GemmIx

    /// A site whose waits are replayed, one of [`Plan::sites`].
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(from = "usize", into = "usize")]
    PlannedSiteIx
}

/// A workload in all its variants. Times are integer ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// [`PLAN_VERSION`] of the program that wrote the plan.
    pub plan_version: u32,
    /// File name of the export.
    pub profile: String,
    /// The recorded GPU.
    pub gpu: GpuModel,
    /// Sites whose waits are in the workload. [`ReplayOp::Sync`] and [`ReplayOp::Copy`] hold their index.
    #[schemars(with = "Vec<PlannedSite>")]
    pub sites: TiVec<PlannedSiteIx, PlannedSite>,
    /// The part of the capture that is replayed.
    pub stretch: Stretch,
    /// Number of stretches in a row in one timed run.
    pub repeat: usize,
    /// Meaning of the times of [`ReplayOp::Host`].
    pub host: HostTime,
    /// How products of [`Certainty::DurationMatched`] are fitted to the GPU at hand.
    pub matching: Matching,
    /// Number of streams that the ops use, numbered from 0.
    pub streams: usize,
    /// Number of events that the ops use, numbered from 0.
    pub events: usize,
    /// Distinct matrix products. [`ReplayOp::Gemm`] points to them by index.
    #[schemars(with = "Vec<Gemm>")]
    pub gemms: TiVec<GemmIx, Gemm>,
    /// The variant as recorded, then one for each change.
    pub variants: Vec<Variant>,
    /// Omissions and assumptions of the plan, one sentence each.
    pub notes: Vec<String>,
}

/// A GPU as an export describes it. Unknown values are null: old exports hold only the name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GpuModel {
    /// Name, as the driver reports it, e.g. "NVIDIA H200".
    pub name: Option<String>,
    /// Compute capability, major and minor.
    pub compute_capability: Option<(u32, u32)>,
    /// Streaming multiprocessors (SMs).
    pub multiprocessors: Option<u32>,
    /// Clock of the SMs, in Hz.
    pub clock_hz: Option<u64>,
    /// Peak memory bandwidth, in bytes per second.
    pub memory_bandwidth: Option<u64>,
}

/// A site of the report whose waits are in the stretch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedSite {
    /// Id of the site in the report, e.g. `S3`.
    pub id: String,
    /// Stable key of the site.
    pub key: String,
    /// Place of the site, e.g. `train.py:31 (step)`.
    pub place: String,
    /// The CUDA call that waits.
    pub api: String,
    /// Class of the verdict.
    pub class: Class,
    /// Kind of the verdict.
    pub kind: Kind,
    /// Change that fixes the site, as in `--fix`.
    pub fix: Change,
}

/// The recorded stretch that is replayed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stretch {
    /// Start on the capture's clock.
    pub from_ns: i64,
    /// End on the capture's clock.
    pub to_ns: i64,
    /// Index of the iteration; null where the stretch is none.
    pub iteration: Option<usize>,
    /// Number of iterations in the capture.
    pub iterations: usize,
    /// GPU busy time in the stretch.
    pub gpu_busy_ns: i64,
    /// How the stretch was chosen, in a sentence.
    pub chosen: String,
}

words! {
    /// Certainty of a product's shape.
    Certainty {
        Exact = "exact": "From the operator's recorded shapes.",
        TileRounded = "tile-rounded": "From the kernel's tile and grid; K from its duration.",
        DurationMatched = "duration-matched": "Of a size that takes as long as the recorded one.",
    }
}

/// Host time between two calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostTime {
    /// As long as recorded.
    #[default]
    Recorded,
    /// As recorded, less the profiler's estimated time.
    Unprofiled,
    /// As recorded, times this factor; 0 for none.
    Scaled(f64),
}

impl HostTime {
    /// Host time to replay, in ns, for a recorded `ns` that includes the profiler's estimated time.
    pub fn replayed(self, ns: i64, profiler: i64) -> i64 {
        match self {
            Self::Recorded => ns,
            Self::Unprofiled => ns - profiler,
            Self::Scaled(by) => (ns as f64 * by) as i64,
        }
    }
}

words! {
    /// Target duration of a product of unknown shape on the GPU at hand.
    #[derive(Default)]
    Matching {
        #[default]
        Peak = "peak": "As long as recorded, scaled by the two GPUs' peaks",
        Duration = "duration": "As long as recorded",
    }
}

/// A recorded matrix product.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Gemm {
    /// Shape, as far as the capture shows it.
    #[serde(flatten)]
    pub shape: Shape,
    /// Certainty of the shape.
    pub certainty: Certainty,
    /// Median recorded duration of its kernel(s), in ns.
    pub recorded_ns: i64,
    /// Demangled name of the (longest) kernel.
    pub kernel: String,
    /// Basis of the shape, in a few words.
    pub basis: String,
}

/// One operation of the host. Streams, events and sites are indices, as in [`Plan::streams`],
/// [`Plan::events`] and [`Plan::sites`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "act")]
pub enum ReplayOp {
    /// Keeps the host busy: the recorded time between two calls.
    Host {
        /// Duration.
        ns: i64,
    },
    /// Launches a matrix product.
    Gemm {
        /// Index into [`Plan::gemms`].
        gemm: GemmIx,
        /// Stream of the product.
        stream: PlanStream,
    },
    /// Launches a kernel of one block that only takes time.
    Spin {
        /// Duration.
        ns: i64,
        /// Stream of the kernel.
        stream: PlanStream,
    },
    /// Copies, by the synchronous API if `blocking`, else by `…Async`, which stages pageable memory in the call.
    Copy {
        /// Direction of the copy.
        direction: Direction,
        /// Size in bytes.
        bytes: u64,
        /// Kind of host memory.
        memory: HostMemory,
        /// Stream of the copy.
        stream: PlanStream,
        /// Whether the API is the synchronous one.
        blocking: bool,
        /// Site that waits for the copy; absent where none does.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        site: Option<PlannedSiteIx>,
    },
    /// Sets device memory.
    Memset {
        /// Size in bytes.
        bytes: u64,
        /// Stream of the memset.
        stream: PlanStream,
    },
    /// Records an event.
    Record {
        /// The event.
        event: PlanEvent,
        /// Stream whose work the event marks.
        stream: PlanStream,
    },
    /// Makes a stream wait for an event, as `cudaStreamWaitEvent`.
    StreamWait {
        /// Event to wait for.
        event: PlanEvent,
        /// Stream that waits.
        stream: PlanStream,
    },
    /// A host wait.
    Sync {
        /// Target of the wait.
        target: Target,
        /// Site of the wait; absent where unknown.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        site: Option<PlannedSiteIx>,
    },
}

impl ReplayOp {
    /// The stream that gets work; `None` for an op that only orders work or waits.
    pub fn works_on(&self) -> Option<PlanStream> {
        match *self {
            Self::Gemm { stream, .. }
            | Self::Spin { stream, .. }
            | Self::Copy { stream, .. }
            | Self::Memset { stream, .. } => Some(stream),
            Self::Host { .. } | Self::Record { .. } | Self::StreamWait { .. } | Self::Sync { .. } => None,
        }
    }

    /// The launched product.
    pub fn gemm(&self) -> Option<GemmIx> {
        if let Self::Gemm { gemm, .. } = self { Some(*gemm) } else { None }
    }
}

/// Target of a host wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// A stream, as cudaStreamSynchronize.
    Stream(PlanStream),
    /// An event, as cudaEventSynchronize.
    Event(PlanEvent),
    /// The whole context, as cudaDeviceSynchronize.
    Context,
}

/// One way to run the stretch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Variant {
    /// Name of the variant: `as recorded`, `S3 fixed`, `all avoidable lines fixed`.
    pub name: String,
    /// Indices into [`Plan::sites`] of the fixed sites.
    pub fixed: Vec<PlannedSiteIx>,
    /// Whether `fixed` holds every avoidable site of the stretch.
    pub all_false: bool,
    /// Operations of the host in one stretch, in order.
    #[serde(rename = "acts")]
    pub ops: Vec<ReplayOp>,
    /// Simulated saving per stretch; null for the variant as recorded, and where nothing was simulated.
    pub predicted_saving_ns: Option<i64>,
}
