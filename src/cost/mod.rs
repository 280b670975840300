//! What waits cost: host time blocked, device time drained, per iteration.

pub mod bounds;
pub mod drain;
pub mod overhead;
pub mod price;
pub mod range;
mod settle;
pub mod simulate;
pub mod statistics;
pub mod together;
