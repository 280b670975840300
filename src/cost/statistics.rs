//! Shares, quartiles and histograms of plain numbers; [`crate::frame`] sums waits.

/// A share of a time in ns; a negative time counts as 0.
pub fn share(ns: i64, of: f64) -> i64 {
    (ns.max(0) as f64 * of) as i64
}

/// Percent; 0 of an empty whole. Clamped to 100: not for savings that may be losses, nor for idle time of
/// several GPUs.
pub fn percent(part: i64, whole: i64) -> f64 {
    if whole <= 0 { 0.0 } else { (part as f64 / whole as f64 * 100.0).clamp(0.0, 100.0) }
}

/// Index of the quantile `part / of` in sorted values that end at `last`: the nearest, of two the later.
pub fn nearest_rank(last: i64, part: i64, of: i64) -> i64 {
    (last * part + of / 2) / of
}

/// Lower quartile, median, upper quartile by nearest rank; 0 without values.
pub fn quartiles(mut values: Vec<i64>) -> [i64; 3] {
    values.sort_unstable();
    let last = values.len() as i64 - 1;
    [1, 2, 3].map(|q| values.get(nearest_rank(last, q, 4) as usize).copied().unwrap_or(0))
}

/// Quartiles of a normal distribution lie this many standard deviations apart.
pub const QUARTILES_APART: f64 = 1.349;

/// Waits per power of two of blocked time: (exclusive upper bound in ns, waits), ascending, without gaps.
pub fn histogram(blocked: impl Iterator<Item = i64>) -> Vec<(i64, u64)> {
    let mut bins = [0u64; 63];
    for ns in blocked {
        let bin = 64 - ns.max(0).leading_zeros() as usize;
        bins[bin.min(62)] += 1;
    }
    let (Some(first), Some(last)) = (bins.iter().position(|&n| n > 0), bins.iter().rposition(|&n| n > 0))
    else {
        return Vec::new();
    };
    (first..=last).map(|b| (1i64 << b, bins[b])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_powers_of_two() {
        assert_eq!(
            histogram([0, 1, 2, 3, 900, 1024].into_iter()),
            [
                (1, 1),
                (2, 1),
                (4, 2),
                (8, 0),
                (16, 0),
                (32, 0),
                (64, 0),
                (128, 0),
                (256, 0),
                (512, 0),
                (1024, 1),
                (2048, 1)
            ]
        );
        assert!(histogram(std::iter::empty()).is_empty());
    }

    #[test]
    fn quartiles_occur() {
        assert_eq!(quartiles((0..=100).collect()), [25, 50, 75]);
        assert_eq!(quartiles(vec![3]), [3; 3]);
        assert_eq!(quartiles(vec![4, 1, 3, 2]), [2, 3, 3]);
    }
}
