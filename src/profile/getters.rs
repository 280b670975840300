//! The tracer's own time: how long a call that does next to nothing takes in a capture, on this machine and
//! with the caches that this program leaves it.
//!
//! ```text
//!  lengths   82 82 83 … 141 … 246 | … 900      nine of ten lie before the line
//! ```
//! Lengths are counted, not kept, so that parts of a table add up in any order.

use super::tally::Tally;

/// A call that does nothing but read a field; PyTorch's launches make one each.
pub const GETTER: &str = "cuKernelGetName";
/// With fewer calls there is no figure.
const FEWEST: u64 = 100;

/// The 90th percentile, in ns; `getters`: calls by length.
pub(super) fn nine_of_ten(getters: &Tally<i64, u64>) -> Option<i64> {
    let mut lengths: Vec<(i64, u64)> = getters.iter().map(|(&ns, &calls)| (ns, calls)).collect();
    lengths.sort_unstable();
    let count: u64 = lengths.iter().map(|(_, calls)| calls).sum();
    let mut left = count - count / 10;
    let last = lengths.into_iter().find(|(_, calls)| {
        left = left.saturating_sub(*calls);
        left == 0
    });
    last.filter(|_| count >= FEWEST).map(|(ns, _)| ns)
}
