//! What a replay is to run, and what replays and benches measured.

pub mod bench;
pub mod constants;
pub mod measured;
pub mod plan;
pub mod product;
