//! What is replayed: a pure value, printable as JSON, built without a GPU.
//!
//! One host thread runs the ops of a variant in order, [`Plan::repeat`] times in a row, then waits for the device: a
//! fix lets the host run ahead into the next stretch, which a single one would hide. Times are those of the whole row
//! divided by its number of stretches. Calls of several recorded threads are merged by time, since threads of a
//! PyTorch program mostly hand over to one another.
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

    /// A product: its place in [`Plan::gemms`].
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(from = "usize", into = "usize")]
    GemmIx

    /// A site whose waits are replayed: its place in [`Plan::sites`].
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(from = "usize", into = "usize")]
    PlannedSiteIx
}

/// A workload, in all its variants. Times are integer ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// [`PLAN_VERSION`] of the program that wrote it.
    pub plan_version: u32,
    /// File name of the export.
    pub profile: String,
    /// GPU that the workload was recorded on.
    pub gpu: GpuModel,
    /// The sites whose waits are in the workload; [`ReplayOp::Sync`] and [`ReplayOp::Copy`] point here.
    #[schemars(with = "Vec<PlannedSite>")]
    pub sites: TiVec<PlannedSiteIx, PlannedSite>,
    /// The part of the capture that is replayed.
    pub stretch: Stretch,
    /// Stretches in a row that one timed run consists of.
    pub repeat: usize,
    /// What the times of [`ReplayOp::Host`] are.
    pub host: HostTime,
    /// How products of [`Certainty::DurationMatched`] are fitted to the GPU at hand.
    pub matching: Matching,
    /// How many streams the ops use, numbered from 0.
    pub streams: usize,
    /// How many events the ops use, numbered from 0.
    pub events: usize,
    /// Distinct matrix products, which [`ReplayOp::Gemm`] points to.
    #[schemars(with = "Vec<Gemm>")]
    pub gemms: TiVec<GemmIx, Gemm>,
    /// As recorded, first; then each change.
    pub variants: Vec<Variant>,
    /// What the plan leaves out or assumes, in sentences.
    pub notes: Vec<String>,
}

/// A GPU as an export describes it; what the export does not say is `None`: old ones have its name only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GpuModel {
    /// As the driver names it, e.g. "NVIDIA H200".
    pub name: Option<String>,
    /// Major and minor.
    pub compute_capability: Option<(u32, u32)>,
    /// Streaming multiprocessors (SMs).
    pub multiprocessors: Option<u32>,
    /// Clock of the SMs, in Hz.
    pub clock_hz: Option<u64>,
    /// Peak memory bandwidth, in bytes a second.
    pub memory_bandwidth: Option<u64>,
}

/// A site of the report whose waits are in the stretch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedSite {
    /// `S3`, as in the report.
    pub id: String,
    /// The stable key of the site.
    pub key: String,
    /// `train.py:31 (step)`, or the best substitute.
    pub place: String,
    /// The CUDA call that waits.
    pub api: String,
    /// Class of its verdict.
    pub class: Class,
    /// Kind of its verdict.
    pub kind: Kind,
    /// What its fix changes, as in `--fix`.
    pub fix: Change,
}

/// The recorded stretch that is replayed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stretch {
    /// Its begin on the capture's clock, in ns.
    pub from_ns: i64,
    /// Its end on the capture's clock, in ns.
    pub to_ns: i64,
    /// Index of the iteration, where the stretch is one.
    pub iteration: Option<usize>,
    /// How many iterations the capture has.
    pub iterations: usize,
    /// Time in it during which the device worked, in ns.
    pub gpu_busy_ns: i64,
    /// How the stretch was chosen, in a sentence.
    pub chosen: String,
}

words! {
    /// How well the shape of a product is known.
    Certainty {
        Exact = "exact": "From the operator's recorded shapes.",
        TileRounded = "tile-rounded": "From the kernel's tile and grid; K from its duration.",
        DurationMatched = "duration-matched": "Of a size that takes as long as the recorded one.",
    }
}

/// How long the host works between two calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostTime {
    /// As long as recorded.
    #[default]
    Recorded,
    /// As recorded, less what is estimated to be the profiler's.
    Unprofiled,
    /// As recorded, times this; 0: not at all.
    Scaled(f64),
}

impl HostTime {
    /// How long the host works in place of a recorded time, of which a part is the profiler's; in ns.
    pub fn replayed(self, ns: i64, profiler: i64) -> i64 {
        match self {
            Self::Recorded => ns,
            Self::Unprofiled => ns - profiler,
            Self::Scaled(by) => (ns as f64 * by) as i64,
        }
    }
}

words! {
    /// What a product whose shape is unknown should take on the GPU at hand.
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
    /// Its shape, as far as the capture tells it.
    #[serde(flatten)]
    pub shape: Shape,
    /// How well the shape is known.
    pub certainty: Certainty,
    /// Median recorded duration of its kernel(s), in ns.
    pub recorded_ns: i64,
    /// Demangled name of the (longest) kernel.
    pub kernel: String,
    /// What the shape rests on, in a few words.
    pub basis: String,
}

/// One thing the host does. Streams and events are numbered as in [`Plan::streams`] and [`Plan::events`], sites are
/// indices into [`Plan::sites`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "act")]
pub enum ReplayOp {
    /// Computes for this long (a busy wait): the recorded time between two calls.
    Host {
        /// How long.
        ns: i64,
    },
    /// Launches a matrix product.
    Gemm {
        /// Index into [`Plan::gemms`].
        gemm: GemmIx,
        /// Where it runs.
        stream: PlanStream,
    },
    /// Launches a kernel of one block that only takes time.
    Spin {
        /// How long.
        ns: i64,
        /// Where it runs.
        stream: PlanStream,
    },
    /// Copies; a `blocking` one is the synchronous API, others are `…Async` (which stages pageable memory in the call).
    Copy {
        /// Between host and device, or inside one.
        direction: Direction,
        /// How much.
        bytes: u64,
        /// Kind of the host's end.
        memory: HostMemory,
        /// Where it runs.
        stream: PlanStream,
        /// The synchronous API.
        blocking: bool,
        /// The site that waits for it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        site: Option<PlannedSiteIx>,
    },
    /// Sets device memory.
    Memset {
        /// How much.
        bytes: u64,
        /// Where it runs.
        stream: PlanStream,
    },
    /// Records an event.
    Record {
        /// Which.
        event: PlanEvent,
        /// Behind whose work.
        stream: PlanStream,
    },
    /// Makes a stream wait for an event, as `cudaStreamWaitEvent`.
    StreamWait {
        /// What it waits for.
        event: PlanEvent,
        /// The stream that waits.
        stream: PlanStream,
    },
    /// A host wait.
    Sync {
        /// What it waits for.
        target: Target,
        /// The site that waits.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        site: Option<PlannedSiteIx>,
    },
}

impl ReplayOp {
    /// The stream that it gives something to do, unless it only orders.
    pub fn works_on(&self) -> Option<PlanStream> {
        match *self {
            Self::Gemm { stream, .. }
            | Self::Spin { stream, .. }
            | Self::Copy { stream, .. }
            | Self::Memset { stream, .. } => Some(stream),
            Self::Host { .. } | Self::Record { .. } | Self::StreamWait { .. } | Self::Sync { .. } => None,
        }
    }

    /// The product that it launches.
    pub fn gemm(&self) -> Option<GemmIx> {
        if let Self::Gemm { gemm, .. } = self { Some(*gemm) } else { None }
    }
}

/// What a host wait is for.
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
    /// `as recorded`, `S3 fixed`, `all avoidable lines fixed`.
    pub name: String,
    /// Indices of the sites that are fixed in it.
    pub fixed: Vec<PlannedSiteIx>,
    /// Whether those are all false sites of the stretch, whatever their number.
    pub all_false: bool,
    /// What the host does in one stretch, in order.
    #[serde(rename = "acts")]
    pub ops: Vec<ReplayOp>,
    /// What the simulation says it saves of one stretch, in ns; `None` for the variant as recorded, and where nothing
    /// was simulated.
    pub predicted_saving_ns: Option<i64>,
}
