//! What a replay measured.

use super::plan::{GemmIx, PlannedSiteIx};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use typed_index_collections::TiVec;

/// Version of the JSON (`--replay-results` reads it back); fields are added freely, never renamed.
pub const RESULTS_VERSION: u32 = 1;

/// Median and range of repeated measurements of one thing, in ns: of more than ten, the middle eight tenths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MeasuredSpread")] // a report has another Spread
pub struct Spread {
    /// The median.
    pub median_ns: i64,
    /// The lower end of the range.
    pub low_ns: i64,
    /// The upper end of the range.
    pub high_ns: i64,
    /// How many were taken.
    pub runs: u32,
}

/// The GPU that the replay ran on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayGpu {
    /// As the driver names it.
    pub name: String,
    /// Its number, as CUDA counts devices.
    pub device: usize,
    /// Major and minor version.
    pub compute_capability: (u32, u32),
    /// CUDA version of the driver, as cuDriverGetVersion has it.
    pub driver: i32,
    /// Version of cuBLAS, as cublasGetVersion has it.
    pub cublas: i32,
}

/// One variant of the timeline: one stretch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredVariant {
    /// That of the plan's variant.
    pub name: String,
    /// Which of [`Measured::sites`] are fixed in it.
    pub fixed: Vec<PlannedSiteIx>,
    /// Whether those are all false sites of the stretch, whatever their number.
    pub all_false: bool,
    /// Host time of one stretch of the row: from before the first op until everything has ended, by their number.
    pub wall: Spread,
    /// GPU time between an event before the first op of the row and one after the last, likewise.
    pub gpu: Spread,
    /// Per round, wall time saved against the variant as recorded of the same round (paired, so that clocks cancel);
    /// `None` for that variant itself.
    pub saving: Option<Spread>,
    /// What the simulation says it saves of one stretch, in ns.
    pub predicted_saving_ns: Option<i64>,
}

/// What ran for one product of the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredProduct {
    /// Index in the plan.
    pub gemm: GemmIx,
    /// Rows of what ran: the plan's shape, or one that was matched or had to be made smaller.
    pub m: u64,
    /// Columns.
    pub n: u64,
    /// Depth.
    pub k: u64,
    /// Products of one call.
    pub batch: u64,
    /// What the recorded one took, in ns.
    pub recorded_ns: i64,
    /// What it should take here: the recorded time, by the two GPUs' peaks.
    pub wanted_ns: i64,
    /// What it takes here in a full queue.
    pub took_ns: i64,
}

/// Everything that one replay measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// [`RESULTS_VERSION`] of the program that wrote it.
    pub results_version: u32,
    /// File name of the export.
    pub profile: String,
    /// Name of the GPU that the export is of.
    pub recorded_gpu: Option<String>,
    /// The GPU that the replay ran on.
    pub gpu: ReplayGpu,
    /// Key and id of each site that a variant fixes, in the plan's order.
    #[schemars(with = "Vec<(String, String)>")]
    pub sites: TiVec<PlannedSiteIx, (String, String)>,
    /// The variants of the plan, in its order.
    pub variants: Vec<MeasuredVariant>,
    /// Stretches in a row of each run: those of the plan, or as many as there was time for.
    #[serde(default)]
    pub repeat: usize,
    /// Recorded length of the stretch, to compare the variant as recorded with, in ns.
    pub recorded_ns: i64,
    /// What ran for the plan's products.
    #[serde(default)]
    pub products: Vec<MeasuredProduct>,
    /// What was scaled, left out or differs from the capture, in sentences.
    pub notes: Vec<String>,
}

/// `13000` as `13.0`.
pub fn cuda_version(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}
