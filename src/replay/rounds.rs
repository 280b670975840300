//! Measuring several ways of one thing fairly: interleaved, so that a clock that drifts hits all of them.
//!
//! ```text
//!              interleaved        paired with A
//!  warm-up     A B C              A B C
//!  round 1     A B C C B A        A B B A  A C C A      one value per way: the mean of its two runs, of one middle
//!  round 2     A B C C B A        A B B A  A C C A
//! ```
//! A drift that is straight within a round adds the same to each of its values, so differences within a round are free
//! of it.

use super::error::ReplayError;
use super::interrupt;
use super::measured::Spread;

/// Host and GPU time of one run, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    pub wall: i64,
    pub gpu: i64,
}

/// Runs ways `0..ways` in `rounds` rounds after warming each up `warm` times; per way a sample for each round.
pub fn interleaved(
    ways: usize,
    rounds: u32,
    warm: u32,
    mut run: impl FnMut(usize) -> Result<Sample, ReplayError>,
) -> Result<Vec<Vec<Sample>>, ReplayError> {
    let mut run = |way| {
        interrupt::check()?;
        run(way)
    };
    for _ in 0..warm {
        for way in 0..ways {
            run(way)?;
        }
    }
    let mut samples = vec![Vec::with_capacity(rounds as usize); ways];
    for _ in 0..rounds {
        let mut sums = vec![Sample::default(); ways];
        for way in (0..ways).chain((0..ways).rev()) {
            let one = run(way)?;
            sums[way].wall += one.wall;
            sums[way].gpu += one.gpu;
        }
        for (list, sum) in samples.iter_mut().zip(sums) {
            list.push(Sample { wall: sum.wall / 2, gpu: sum.gpu / 2 });
        }
    }
    Ok(samples)
}

/// What the pairs of one way were.
#[derive(Clone, Debug, Default)]
pub struct Paired {
    /// Way 0 beside it, round by round.
    pub base: Vec<Sample>,
    pub own: Vec<Sample>,
}

impl Paired {
    /// Per round, how much less this way took than way 0.
    pub fn saving(&self) -> Spread {
        savings(&self.base, &self.own)
    }
}

/// Compares each way from 1 on with way 0, in pairs A B B A, after warming all up `warm` times: for differences of a
/// percent, which in rounds of many ways drown in the clock. Returns all samples of way 0, and the pairs of the others.
pub fn paired(
    ways: usize,
    rounds: u32,
    warm: u32,
    mut run: impl FnMut(usize) -> Result<Sample, ReplayError>,
) -> Result<(Vec<Sample>, Vec<Paired>), ReplayError> {
    let mut run = |way| {
        interrupt::check()?;
        run(way)
    };
    for _ in 0..warm {
        (0..ways).try_for_each(|way| run(way).map(drop))?;
    }
    let mean = |a: Sample, b: Sample| Sample { wall: (a.wall + b.wall) / 2, gpu: (a.gpu + b.gpu) / 2 };
    if ways == 1 {
        let base = (0..rounds).map(|_| Ok(mean(run(0)?, run(0)?))).collect::<Result<_, ReplayError>>()?;
        return Ok((base, Vec::new()));
    }
    let mut pairs = vec![Paired::default(); ways.saturating_sub(1)];
    for _ in 0..rounds {
        for (index, pair) in pairs.iter_mut().enumerate() {
            let way = index + 1;
            let [first, second, third, fourth] = [run(0)?, run(way)?, run(way)?, run(0)?];
            pair.base.push(mean(first, fourth));
            pair.own.push(mean(second, third));
        }
    }
    let base = pairs.iter().flat_map(|pair| pair.base.iter().copied()).collect();
    Ok((base, pairs))
}

/// Median and the middle eight tenths; of ten and fewer, all.
pub fn spread(values: impl IntoIterator<Item = i64>) -> Spread {
    let mut values: Vec<i64> = values.into_iter().collect();
    values.sort_unstable();
    let Some(last) = values.len().checked_sub(1) else { return Spread::default() };
    let middle = values.len() / 2;
    let median =
        if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2 };
    let cut = values.len().saturating_sub(1) / 10;
    Spread { median_ns: median, low_ns: values[cut], high_ns: values[last - cut], runs: values.len() as u32 }
}

/// Per round, how much less `other` took than `base`.
pub fn savings(base: &[Sample], other: &[Sample]) -> Spread {
    spread(base.iter().zip(other).map(|(b, o)| b.wall - o.wall))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_drift_cancels() {
        let mut clock = 0;
        let samples = interleaved(3, 4, 1, |way| {
            clock += 7;
            Ok(Sample { wall: 1000 * (way as i64 + 1) + clock, gpu: 1 })
        })
        .expect("runs");
        assert_eq!(clock, 7 * (3 + 4 * 6));
        assert_eq!(
            savings(&samples[2], &samples[0]),
            Spread { median_ns: 2000, low_ns: 2000, high_ns: 2000, runs: 4 }
        );
    }

    #[test]
    fn pairs_cancel_a_drift_that_a_way_between_them_makes() {
        let (mut clock, mut runs) = (0, 0);
        let (base, pairs) = paired(3, 4, 1, |way| {
            (clock, runs) = (clock + 7, runs + 1);
            Ok(Sample { wall: 1000 * (way as i64 + 1) + clock, gpu: 1 })
        })
        .expect("runs");
        assert_eq!(runs, 3 + 4 * 2 * 4);
        let savings: Vec<i64> = pairs.iter().map(|p| p.saving().median_ns).collect();
        assert_eq!(savings, [-1000, -2000]);
        assert!(pairs.iter().all(|p| p.base.len() == 4 && p.own.len() == 4));
        assert_eq!(base.len(), 8);
        let (base, pairs) = paired(1, 3, 0, |_| Ok(Sample { wall: 5, gpu: 1 })).expect("runs");
        assert_eq!((base.len(), base[0].wall, pairs.len()), (3, 5, 0));
    }

    #[test]
    fn a_spread_leaves_tails_out_where_there_are_many() {
        assert_eq!(spread([]), Spread::default());
        assert_eq!(spread([5]), Spread { median_ns: 5, low_ns: 5, high_ns: 5, runs: 1 });
        assert_eq!(spread([4, 1, 9, 2]), Spread { median_ns: 3, low_ns: 1, high_ns: 9, runs: 4 });
        assert_eq!(spread(0..=20), Spread { median_ns: 10, low_ns: 2, high_ns: 18, runs: 21 });
    }

    #[test]
    fn an_error_ends_it() {
        let mut runs = 0;
        let result = interleaved(2, 5, 0, |_| {
            runs += 1;
            if runs == 3 { Err(ReplayError::NoDevice) } else { Ok(Sample::default()) }
        });
        assert!(result.is_err() && runs == 3);
    }
}
