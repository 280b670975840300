//! What is a change, and what only jitter.
//!
//! Each capture says itself how far a cost strays from iteration to iteration (its quartiles; for what lies outside
//! iterations, from wait to wait). A difference of medians counts where it exceeds all of
//!
//! - [`SIGMAS`] standard errors of the two medians together. Neighbouring iterations are not independent (clocks drift, a
//!   neighbour is busy for a while), so only one sample in [`DEPENDENT`] is taken for a new one;
//! - [`SHARE`] of the larger cost: runs differ as wholes too, which one capture cannot show;
//! - [`LEAST_NS`]: what the profiler itself adds to a wait varies by as much;
//!
//! and where each side has [`LEAST_SAMPLES`] samples to tell. Nothing is drawn at random: the same captures give the
//! same answer.

use super::units::{Cost, Unit};

/// Of a normal distribution, 0.3 % lie further out.
const SIGMAS: f64 = 3.0;
/// The median of n normal samples strays by this many times σ / √n.
const OF_MEDIAN: f64 = 1.2533;
const DEPENDENT: f64 = 10.0;
/// Four programs of scripts/pairs captured twice on an H200 differed by up to 10 % in what a typical iteration blocks or
/// drains; this is half as much again.
const SHARE: f64 = 0.15;
/// In those captures, costs of less than 15 µs differed by up to 0.8 µs.
const LEAST_NS: f64 = 2_000.0;
/// Quartiles of fewer samples say nothing.
const LEAST_SAMPLES: u64 = 5;

/// The difference that jitter makes, in ns, if both sides have `samples` at least; `None` where it cannot be told.
pub fn floor(before: Cost, after: Cost, samples: u64) -> Option<f64> {
    if samples < LEAST_SAMPLES {
        return None;
    }
    let independent = (samples as f64 / DEPENDENT).max(1.0);
    let strays = SIGMAS * OF_MEDIAN * before.sigma.hypot(after.sigma) / independent.sqrt();
    Some(strays.max(SHARE * before.ns.max(after.ns)).max(LEAST_NS))
}

/// Whether the number of waits differs by more than where a capture begins and ends explains.
pub fn waits_differ(before: &Unit, after: &Unit) -> bool {
    // Rates are quotients: equal ones may differ in the last bit.
    const ROUNDING: f64 = 1e-9;
    (before.waits - after.waits).abs() > before.waits_slack + after.waits_slack + ROUNDING
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_grows_with_the_spread_and_falls_with_samples() {
        let cost = |sigma| Cost { ns: 100_000.0, sigma };
        let floor = |sigma, samples| floor(cost(sigma), cost(sigma), samples).map(|ns| ns as i64);
        assert_eq!(floor(0.0, 100), Some(15_000), "runs differ as wholes");
        assert!(floor(20_000.0, 100) > floor(0.0, 100));
        assert!(floor(20_000.0, 10) > floor(20_000.0, 1_000));
        assert_eq!(floor(20_000.0, 4), None);
        assert_eq!(super::floor(Cost::default(), Cost::default(), 50), Some(2_000.0));
    }
}
