//! Results of a replay.

use super::plan::{GemmIx, PlannedSiteIx};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use typed_index_collections::TiVec;

/// Version of the JSON (`--replay-results` reads it back); fields are added freely, never renamed.
pub const RESULTS_VERSION: u32 = 1;

/// Median and range of repeated measurements. Of more than ten, the range holds the middle 80 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MeasuredSpread")] // a report has another Spread
pub struct Spread {
    /// Median.
    pub median_ns: i64,
    /// Lower end of the range.
    pub low_ns: i64,
    /// Upper end of the range.
    pub high_ns: i64,
    /// Number of measurements.
    pub runs: u32,
}

/// The GPU that the replay ran on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayGpu {
    /// Name, as the driver reports it.
    pub name: String,
    /// CUDA device number.
    pub device: usize,
    /// Compute capability, major and minor.
    pub compute_capability: (u32, u32),
    /// CUDA version of the driver, as cuDriverGetVersion returns it.
    pub driver: i32,
    /// Version of cuBLAS, as cublasGetVersion returns it.
    pub cublas: i32,
}

/// Measured times of one variant, per stretch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredVariant {
    /// Name of the plan's variant.
    pub name: String,
    /// Indices into [`Measured::sites`] of the fixed sites.
    pub fixed: Vec<PlannedSiteIx>,
    /// Whether `fixed` holds every avoidable site of the stretch.
    pub all_false: bool,
    /// Host time per stretch: from before a run's first operation until all work has ended.
    pub wall: Spread,
    /// GPU time per stretch: from an event before a run's first operation to one after the last.
    pub gpu: Spread,
    /// Host time saved against the variant as recorded, paired by round so that clocks cancel; else null.
    pub saving: Option<Spread>,
    /// Simulated saving per stretch; null where nothing was simulated.
    pub predicted_saving_ns: Option<i64>,
}

/// The product that ran in place of one of the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredProduct {
    /// Index of the product in the plan.
    pub gemm: GemmIx,
    /// Rows of the product that ran: the plan's shape, or one matched or made smaller.
    pub m: u64,
    /// Columns of the product that ran.
    pub n: u64,
    /// Depth of the product that ran.
    pub k: u64,
    /// Number of products in one call.
    pub batch: u64,
    /// Recorded duration.
    pub recorded_ns: i64,
    /// Target duration on this GPU, by the plan's `matching`.
    pub wanted_ns: i64,
    /// Measured duration in a full queue.
    pub took_ns: i64,
}

/// Results of one replay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// [`RESULTS_VERSION`] of the program that wrote the file.
    pub results_version: u32,
    /// File name of the export.
    pub profile: String,
    /// Name of the recorded GPU; null where unknown.
    pub recorded_gpu: Option<String>,
    /// The GPU that the replay ran on.
    pub gpu: ReplayGpu,
    /// Key and id of each site of the plan, in its order.
    #[schemars(with = "Vec<(String, String)>")]
    pub sites: TiVec<PlannedSiteIx, (String, String)>,
    /// The variants of the plan, in its order.
    pub variants: Vec<MeasuredVariant>,
    /// Stretches in a row in each run: the plan's number, or fewer for lack of time.
    #[serde(default)]
    pub repeat: usize,
    /// Recorded length of the stretch.
    pub recorded_ns: i64,
    /// Products that ran in place of the plan's.
    #[serde(default)]
    pub products: Vec<MeasuredProduct>,
    /// Scaled, omitted and deviating parts, one sentence each.
    pub notes: Vec<String>,
}

/// `13000` as `13.0`.
pub fn cuda_version(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}
