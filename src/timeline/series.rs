//! A site over the run: blocked time by iteration, or by slice of time where there are no iterations.

use crate::analysis::Priced;
use crate::model::timeline::Series;
use crate::verdict::site::Site;

/// Points of a series: one per column of its small drawing.
const POINTS: usize = 120;

/// The series of a site over `from..to` of the export's clock. Linear in its waits.
pub(super) fn series(found: &Priced, site: &Site, from: i64, to: i64) -> Series {
    let waits = || site.bundle.waits.iter().map(|&w| &found.waits[w]);
    let sums = |points: usize, at: &dyn Fn(i64) -> Option<usize>| {
        let mut sums = vec![0i64; points];
        for (at, blocked) in waits().filter_map(|wait| Some((at(wait.start)?, wait.blocked))) {
            sums[at] = sums[at].saturating_add(blocked);
        }
        sums
    };
    // If all waits lie outside the loop, its iterations show nothing.
    let Some(iterations) = found.loop_of(site).filter(|_| found.waits_in_loop(site)) else {
        let span = i128::from(to.saturating_sub(from)).max(1);
        let blocked_ns = sums(POINTS, &|start| {
            let at = i128::from(start.saturating_sub(from)) * POINTS as i128 / span;
            Some(at.clamp(0, POINTS as i128 - 1) as usize)
        });
        return Series { iterations_each: 0, iterations: 0, blocked_ns };
    };
    let count = iterations.spans.len();
    let each = count.div_ceil(POINTS).max(1);
    let mut blocked_ns = sums(count.div_ceil(each), &|start| Some(iterations.at(start)? / each));
    for (i, point) in blocked_ns.iter_mut().enumerate() {
        *point /= each.min(count - i * each).max(1) as i64;
    }
    Series { iterations_each: each, iterations: count, blocked_ns }
}
