//! Measured costs of waiting on one GPU: the result of `sync-report bench`.

use super::constants::Constants;
use super::measured::{ReplayGpu, Spread};
use crate::vocabulary::words;
use schemars::JsonSchema;
use serde::Serialize;

/// Version of the JSON; fields are added freely, never renamed.
pub const BENCH_VERSION: u32 = 2;

/// Results of one `sync-report bench`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Bench {
    /// [`BENCH_VERSION`] of the program that wrote the result.
    pub bench_version: u32,
    /// The GPU that was measured.
    pub gpu: ReplayGpu,
    /// Matrix products in a loop, with a wait after each.
    pub products: Vec<ProductCost>,
    /// Measured costs that simulations use.
    pub constants: Constants,
    /// Doubts about the figures, one sentence each.
    pub notes: Vec<String>,
}

/// A product of square matrices, in a loop.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ProductCost {
    /// Rows and columns of each matrix.
    pub size: u64,
    /// Type of the elements: `fp16`, `bf16`, `fp32`, `tf32`, `fp64`.
    #[serde(rename = "type")]
    pub type_name: &'static str,
    /// Host time of one product, with a single wait after all.
    pub without: Spread,
    /// Costs with a wait after each product, by kind of wait.
    pub with: Vec<WayCost>,
}

/// A loop of products with one kind of wait after each.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WayCost {
    /// Kind of wait.
    pub name: Way,
    /// Host time of one product and its wait.
    pub wall: Spread,
    /// Host time added to `without`, measured round by round.
    pub added: Spread,
}

words! {
    /// Kind of wait for a product.
    Way {
        Stream = "stream synchronised": "A stream synchronisation.",
        Event = "event synchronised": "An event and its synchronisation.",
        /// A copy of four bytes to pageable memory and a stream synchronisation, as `.item()`.
        Value = "one value read",
    }
}
