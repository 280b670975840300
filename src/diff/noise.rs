//! Separates change from jitter.
//!
//! Each capture shows how far a cost strays from iteration to iteration (quartiles; outside iterations, from
//! wait to wait). A difference of medians counts if it exceeds all of
//!
//! - [`SIGMAS`] standard errors of both medians together. Neighbouring iterations are dependent (clocks drift, a
//!   neighbour is busy for a while), so only one sample in [`DEPENDENT`] counts as new;
//! - [`SHARE`] of the larger cost: whole runs differ too, which one capture cannot show;
//! - [`EACH_NS`] per wait: the profiler's own cost per wait varies as much;
//!
//! and if each side has [`LEAST_SAMPLES`] samples. Nothing is random: the same captures give the same answer.

use super::units::{Cost, SiteGroup};

/// 0.3 % of a normal distribution lie further out.
const SIGMAS: f64 = 3.0;
/// The median of n normal samples strays by this many times σ / √n.
const OF_MEDIAN: f64 = 1.2533;
/// In twenty captures, 1 to 31 consecutive iterations were worth one (sum of rank autocorrelations): they
/// drift.
const DEPENDENT: f64 = 10.0;
/// Four programs of scripts/pairs captured twice on an H200 differed by up to 10 % in a typical iteration's
/// blocked and idle time; this is half as much again.
const SHARE: f64 = 0.15;
/// Seven programs captured on two machines of one kind differed by up to 1.8 µs per wait of a few µs.
const EACH_NS: f64 = 2_000.0;
/// Quartiles of fewer samples say nothing.
const LEAST_SAMPLES: u64 = 5;

/// Jitter of the cost of `waits` waits, in ns, given each side's least `samples`; `None` for too few.
pub fn floor(before: Cost, after: Cost, samples: u64, waits: f64) -> Option<f64> {
    if samples < LEAST_SAMPLES {
        return None;
    }
    let independent = (samples as f64 / DEPENDENT).max(1.0);
    let strays = SIGMAS * OF_MEDIAN * before.sigma.hypot(after.sigma) / independent.sqrt();
    Some(strays.max(SHARE * before.ns.max(after.ns)).max(EACH_NS * waits.max(1.0)))
}

/// Whether the number of waits differs by more than the capture's edges explain.
pub fn waits_differ(before: &SiteGroup, after: &SiteGroup) -> bool {
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
        let floor = |sigma, samples| floor(cost(sigma), cost(sigma), samples, 1.0).map(|ns| ns as i64);
        assert_eq!(floor(0.0, 100), Some(15_000), "runs differ as wholes");
        assert!(floor(20_000.0, 100) > floor(0.0, 100));
        assert!(floor(20_000.0, 10) > floor(20_000.0, 1_000));
        assert_eq!(floor(20_000.0, 4), None);
        for (waits, least) in [(0.1, 2_000.0), (3.0, 6_000.0)] {
            assert_eq!(super::floor(Cost::default(), Cost::default(), 50, waits), Some(least));
        }
    }
}
