//! What a replay measured.

use serde::{Deserialize, Serialize};

/// Version of the JSON (`--replay-results` reads it back); fields are added freely, never renamed.
pub const RESULTS_VERSION: u32 = 1;

/// Median and range of repeated measurements of one thing, in ns: of more than ten, the middle eight tenths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    pub median_ns: i64,
    pub low_ns: i64,
    pub high_ns: i64,
    /// How many were taken.
    pub runs: u32,
}

/// The GPU that the replay ran on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReplayGpu {
    pub name: String,
    pub device: usize,
    pub compute_capability: (u32, u32),
    /// CUDA version of the driver, as cuDriverGetVersion has it.
    pub driver: i32,
    pub cublas: i32,
}

/// One variant of the timeline: one stretch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredVariant {
    pub name: String,
    /// Host time of one stretch of the row: from before the first act until everything has ended, by their number.
    pub wall: Spread,
    /// GPU time between an event before the first op of the row and one after the last, likewise.
    pub gpu: Spread,
    /// Per round, wall time saved against the variant as recorded of the same round (paired, so that clocks cancel);
    /// `None` for that variant itself.
    pub saving: Option<Spread>,
    pub predicted_saving_ns: Option<i64>,
}

/// One way to run the sequence of GEMMs alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredAlone {
    /// `async`, `stream synchronised`, `context synchronised`, `event synchronised`, `one value read`, `CUDA graph`.
    pub name: String,
    /// Host and GPU time of the sequence once.
    pub wall: Spread,
    pub gpu: Spread,
    /// What it adds to the wall time of `async`, pair by pair; `None` for that one itself.
    #[serde(default)]
    pub added: Option<Spread>,
}

/// What ran for one product of the plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeasuredProduct {
    /// Index in the plan.
    pub gemm: usize,
    /// The shape that ran: the plan's, or one that was matched or had to be made smaller.
    pub m: u64,
    pub n: u64,
    pub k: u64,
    pub batch: u64,
    pub recorded_ns: i64,
    /// What it should take here: the recorded time, by the two GPUs' peaks.
    pub wanted_ns: i64,
    /// What it takes here in a full queue.
    pub took_ns: i64,
}

/// Everything that one replay measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub results_version: u32,
    pub profile: String,
    pub recorded_gpu: Option<String>,
    pub gpu: ReplayGpu,
    /// Key and id of each site that a variant fixes, in the plan's order.
    pub sites: Vec<(String, String)>,
    pub alone: Vec<MeasuredAlone>,
    pub variants: Vec<MeasuredVariant>,
    /// Stretches in a row of each run: those of the plan, or as many as there was time for.
    #[serde(default)]
    pub repeat: usize,
    /// Recorded length of the stretch, to compare the variant as recorded with, in ns.
    pub recorded_ns: i64,
    #[serde(default)]
    pub products: Vec<MeasuredProduct>,
    /// Sampled elements of products that were compared with a reference, and the largest relative error found.
    pub checked: u64,
    pub largest_error: f64,
    /// What was scaled, left out or differs from the capture, in sentences.
    pub notes: Vec<String>,
}
