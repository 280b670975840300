//! How a site's waits and costs vary within one capture: what tells a change from jitter.

use crate::cost::iterations::Iterations;
use crate::cost::statistics::quartiles;
use crate::profile::Profile;
use crate::report::Spread;

/// One wait: when it began, how long it blocked, how much drain followed, in ns.
pub type Sample = (i64, i64, i64);

/// Quartiles over iterations that hold a wait of the site, or over its waits where none lies in an iteration.
///
/// ```text
///  iteration  [0----------][1----------][2----------][3----------]
///  waits         w    w                    w    w       w    w       3 samples of 2 waits each
/// ```
/// Iterations without a wait are left out: of a line that logs every tenth step they would make the median 0.
/// Costs a sort of the site's waits.
pub fn of(waits: &[Sample], iterations: Option<&Iterations>) -> Spread {
    let mut sums: Vec<(usize, [i64; 3])> = Vec::new();
    for &(start, blocked, drain) in waits {
        let Some(at) = iterations.and_then(|i| i.at(start)) else { continue };
        match sums.last_mut() {
            Some((last, sum)) if *last == at => {
                *sum = [sum[0] + 1, sum[1].saturating_add(blocked), sum[2].saturating_add(drain)];
            }
            _ => sums.push((at, [1, blocked, drain])),
        }
    }
    let (per, samples): (_, Vec<[i64; 3]>) = if sums.is_empty() {
        ("wait", waits.iter().map(|w| [1, w.1, w.2]).collect())
    } else {
        ("iteration", sums.into_iter().map(|s| s.1).collect())
    };
    let of = |column: usize| quartiles(samples.iter().map(|s| s[column]).collect());
    Spread {
        per,
        samples: samples.len() as u64,
        waits: of(0).map(|n| n.unsigned_abs()),
        blocked_ns: of(1),
        drain_ns: of(2),
    }
}

/// Calls looked at for a quartile: enough, evenly spread over the capture.
const ENOUGH_CALLS: usize = 100_000;
/// Fewer say nothing.
const FEWEST_CALLS: usize = 50;

/// How long the host takes to launch a kernel, in ns: the lower quartile of all such calls, since some of them wait for
/// room in the GPU's queue. `None` where there are too few.
pub fn launch(profile: &Profile) -> Option<i64> {
    let calls = &profile.calls;
    let launches = |i: u32| {
        let name = calls.base_name(i);
        name.starts_with("cudaLaunchKernel") || name.starts_with("cuLaunchKernel")
    };
    let step = calls.len().div_ceil(ENOUGH_CALLS).max(1);
    // Equal steps might meet the same call of every iteration; a prime moves them about.
    let looked_at = (0..calls.len() / step).map(|n| n * step + n * 7_919 % step);
    let times = looked_at.filter(|&i| launches(i as u32));
    let times: Vec<i64> = times.map(|i| calls.end[i].saturating_sub(calls.start[i])).collect();
    (times.len() >= FEWEST_CALLS).then(|| quartiles(times)[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iterations() -> Iterations {
        let spans = (0..4).map(|i| (i * 100, i * 100 + 99)).collect();
        Iterations { name: "step #".to_owned(), tid: 0, spans }
    }

    #[test]
    fn samples_are_iterations_that_wait() {
        let waits = [(10, 5, 1), (20, 7, 0), (210, 6, 2), (320, 9, 4), (330, 1, 4)];
        let spread = of(&waits, Some(&iterations()));
        assert_eq!((spread.per, spread.samples, spread.waits), ("iteration", 3, [2, 2, 2]));
        assert_eq!((spread.blocked_ns, spread.drain_ns), ([10, 10, 12], [2, 2, 8]));
    }

    #[test]
    fn outside_iterations_each_wait_is_a_sample() {
        let waits = [(1_000, 5, 1), (1_020, 7, 0)];
        for known in [None, Some(&iterations())] {
            let spread = of(&waits, known);
            assert_eq!((spread.per, spread.samples, spread.blocked_ns), ("wait", 2, [5, 7, 7]));
        }
        assert_eq!(of(&[], None).blocked_ns, [0; 3]);
    }
}
