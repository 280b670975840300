//! What waiting costs on one GPU, measured: the result of `sync-report bench`.

use super::constants::Constants;
use super::measured::{ReplayGpu, Spread};
use super::plan::{Compute, Element};
use serde::Serialize;

/// Version of the JSON; fields are added freely, never renamed.
pub const BENCH_VERSION: u32 = 1;

/// Everything that one run measured.
#[derive(Clone, Debug, Serialize)]
pub struct Bench {
    pub bench_version: u32,
    pub gpu: ReplayGpu,
    /// GPUs of this machine.
    pub gpus: usize,
    /// Matrix products in a loop, with a wait after each.
    pub products: Vec<ProductCost>,
    /// Reading values, and what waits cost, one call at a time.
    pub calls: Vec<CallCost>,
    pub copies: Vec<CopyCost>,
    /// Several streams, and several GPUs: whole loops.
    pub loops: Vec<LoopCost>,
    pub constants: Constants,
    /// Sampled elements of products that were compared with a reference, and the largest relative error found.
    pub checked: u64,
    pub largest_error: f64,
    pub notes: Vec<String>,
}

/// One product of square matrices, again and again.
#[derive(Clone, Debug, Serialize)]
pub struct ProductCost {
    pub size: u64,
    /// `fp16`, `bf16`, `fp32`, `tf32`, `fp64`.
    #[serde(rename = "type")]
    pub type_name: &'static str,
    /// Host time of one, with no wait but at the end of all.
    pub without: Spread,
    /// With a wait after each.
    pub with: Vec<WayCost>,
}

#[derive(Clone, Debug, Serialize)]
pub struct WayCost {
    /// `stream synchronised`, `one value read`, …, and `CUDA graph`, which does not wait.
    pub name: &'static str,
    pub wall: Spread,
    /// What it adds to `without`, measured round by round.
    pub added: Spread,
}

/// One call, or a few that belong together.
#[derive(Clone, Debug, Serialize)]
pub struct CallCost {
    pub name: &'static str,
    /// What the GPU has to do when it is called.
    pub pending: &'static str,
    /// Host time of the call.
    pub host: Spread,
}

/// One large copy.
#[derive(Clone, Debug, Serialize)]
pub struct CopyCost {
    pub name: &'static str,
    pub bytes: u64,
    /// Until the call returned, and until the data was there.
    pub returned: Spread,
    pub done: Spread,
    /// Bytes a ns until the data was there.
    pub bytes_per_ns: f64,
}

/// One loop.
#[derive(Clone, Debug, Serialize)]
pub struct LoopCost {
    pub name: String,
    /// Host time of one pass.
    pub wall: Spread,
}

/// Element type and precision, by the name that people give them.
pub const TYPES: [(&str, Element, Compute); 5] = [
    ("fp16", Element::F16, Compute::F32),
    ("bf16", Element::Bf16, Compute::F32),
    ("fp32", Element::F32, Compute::F32),
    ("tf32", Element::F32, Compute::Tf32),
    ("fp64", Element::F64, Compute::F64),
];
