//! Costs of waits: host time blocked, device time drained, per iteration.

pub mod blocked;
pub mod drain;
pub mod gpu_time;
pub mod host_calls;
pub mod host_work;
pub mod most;
pub mod overhead;
mod plan;
pub mod price;
pub mod prices;
pub mod range;
mod settle;
pub mod simulate;
pub mod statistics;
pub mod together;
