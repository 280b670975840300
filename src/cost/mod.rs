//! What waits cost: host time blocked, device time drained, per iteration.

pub mod drain;
pub mod iterations;
pub mod statistics;
