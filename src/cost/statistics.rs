//! Sums and quantiles of many waits by group.

use polars::prelude::*;

/// What the waits of one group add up to, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub count: u64,
    pub sum: i64,
    pub p50: i64,
    pub p99: i64,
    pub max: i64,
    pub drain: i64,
    pub drain_p50: i64,
    pub drain_max: i64,
}

/// Summaries of `groups` groups; `group[i]`, `blocked[i]` and `drain[i]` belong to wait `i`.
///
/// Quantiles are values that occurred (nearest rank), so a median of two waits is one of them.
///
/// # Errors
/// polars refused the plan: a defect, never the data.
pub fn summarise(
    group: Vec<u32>,
    blocked: Vec<i64>,
    drain: Vec<i64>,
    groups: usize,
) -> anyhow::Result<Vec<Summary>> {
    let mut out = vec![Summary::default(); groups];
    if group.is_empty() {
        return Ok(out);
    }
    let frame = DataFrame::new_infer_height(vec![
        UInt32Chunked::from_vec("group".into(), group).into_column(),
        Int64Chunked::from_vec("blocked".into(), blocked).into_column(),
        Int64Chunked::from_vec("drain".into(), drain).into_column(),
    ])?;
    let quantile = |of: &str, q: f64| col(of).quantile(lit(q), QuantileMethod::Nearest).cast(DataType::Int64);
    let table = frame
        .lazy()
        .group_by([col("group")])
        .agg([
            len().cast(DataType::Int64).alias("count"),
            col("blocked").sum().alias("sum"),
            quantile("blocked", 0.5).alias("p50"),
            quantile("blocked", 0.99).alias("p99"),
            col("blocked").max().alias("max"),
            col("drain").sum().alias("drained"),
            quantile("drain", 0.5).alias("drain_p50"),
            col("drain").max().alias("drain_max"),
        ])
        .collect()?;
    let ids = table.column("group")?.u32()?;
    let column = |name: &str| -> anyhow::Result<Int64Chunked> { Ok(table.column(name)?.i64()?.clone()) };
    let (count, sum, p50, p99, max) =
        (column("count")?, column("sum")?, column("p50")?, column("p99")?, column("max")?);
    let (drained, drain_p50, drain_max) = (column("drained")?, column("drain_p50")?, column("drain_max")?);
    for row in 0..table.height() {
        let at = |c: &Int64Chunked| c.get(row).unwrap_or(0);
        if let Some(slot) = ids.get(row).and_then(|g| out.get_mut(g as usize)) {
            *slot = Summary {
                count: at(&count).unsigned_abs(),
                sum: at(&sum),
                // polars computes quantiles as floating point, which rounds beyond 104 days.
                p50: at(&p50).min(at(&max)),
                p99: at(&p99).min(at(&max)),
                max: at(&max),
                drain: at(&drained),
                drain_p50: at(&drain_p50),
                drain_max: at(&drain_max),
            };
        }
    }
    Ok(out)
}

/// Lower quartile, median, upper quartile by nearest rank: values that occurred. 0 of nothing.
pub fn quartiles(mut values: Vec<i64>) -> [i64; 3] {
    values.sort_unstable();
    let last = values.len().saturating_sub(1);
    [1, 2, 3].map(|q| values.get((last * q + 2) / 4).copied().unwrap_or(0))
}

/// Waits per power of two of blocked time: (upper bound in ns, exclusive; waits), ascending, empty ones between kept.
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
    fn groups_are_summed_apart() {
        let s = summarise(vec![1, 0, 1, 1], vec![10, 5, 30, 20], vec![1, 2, 3, 4], 3).expect("plan");
        assert_eq!(
            s[0],
            Summary { count: 1, sum: 5, p50: 5, p99: 5, max: 5, drain: 2, drain_p50: 2, drain_max: 2 }
        );
        assert_eq!(
            s[1],
            Summary { count: 3, sum: 60, p50: 20, p99: 30, max: 30, drain: 8, drain_p50: 3, drain_max: 4 }
        );
        assert_eq!(s[2], Summary::default());
    }

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
