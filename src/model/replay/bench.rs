//! What waiting costs on one GPU, measured: the result of `sync-report bench`.

use super::constants::Constants;
use super::measured::{ReplayGpu, Spread};
use crate::vocabulary::words;
use schemars::JsonSchema;
use serde::Serialize;

/// Version of the JSON; fields are added freely, never renamed.
pub const BENCH_VERSION: u32 = 2;

/// Everything that one run measured.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Bench {
    /// [`BENCH_VERSION`] of the program that wrote it.
    pub bench_version: u32,
    /// The GPU that was measured.
    pub gpu: ReplayGpu,
    /// Matrix products in a loop, with a wait after each.
    pub products: Vec<ProductCost>,
    /// What a simulation takes from the measurements.
    pub constants: Constants,
    /// What makes the figures doubtful, in sentences.
    pub notes: Vec<String>,
}

/// One product of square matrices, again and again.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ProductCost {
    /// Rows and columns of each matrix.
    pub size: u64,
    /// `fp16`, `bf16`, `fp32`, `tf32`, `fp64`.
    #[serde(rename = "type")]
    pub type_name: &'static str,
    /// Host time of one, with no wait but at the end of all.
    pub without: Spread,
    /// With a wait after each.
    pub with: Vec<WayCost>,
}

/// A loop of products with one kind of wait after each.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WayCost {
    /// What kind.
    pub name: Way,
    /// Host time of one product and its wait.
    pub wall: Spread,
    /// What it adds to `without`, measured round by round.
    pub added: Spread,
}

words! {
    /// A way to wait for a product.
    Way {
        Stream = "stream synchronised": "A stream synchronisation.",
        Event = "event synchronised": "An event and its synchronisation.",
        /// A copy of four bytes to pageable memory and a stream synchronisation, as `.item()`.
        Value = "one value read",
    }
}
