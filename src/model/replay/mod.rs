//! Plans of replays, and the results of replays and benches.

pub mod bench;
pub mod constants;
pub mod measured;
pub mod plan;
pub mod product;
