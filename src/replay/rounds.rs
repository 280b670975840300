//! Fair measurements of several ways: interleaved, so that a drifting clock hits all of them.
//!
//! ```text
//!              interleaved        paired with A
//!  warm-up     A B C              A B C
//!  round 1     A B C C B A        A B B A  A C C A      one value per way: the mean of its two runs, of one middle
//!  round 2     A B C C B A        A B B A  A C C A
//! ```
//! A drift that is linear within a round adds the same to each value: it cancels in differences.

use super::error::ReplayError;
use super::interrupt;
use super::measured::Spread;
use crate::cost::statistics::{QUARTILES_APART, quartiles};
use std::time::{Duration, Instant};

/// Times of one run, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    pub wall: i64,
    pub gpu: i64,
}

fn mean(a: Sample, b: Sample) -> Sample {
    Sample { wall: (a.wall + b.wall) / 2, gpu: (a.gpu + b.gpu) / 2 }
}

/// Runs ways `0..ways` in `rounds` rounds after a warm-up; for each way a sample a round.
pub fn interleaved(
    ways: usize,
    rounds: u32,
    mut run: impl FnMut(usize) -> Result<Sample, ReplayError>,
) -> Result<Vec<Vec<Sample>>, ReplayError> {
    let mut run = |way| interrupt::check().and_then(|()| run(way));
    (0..ways).try_for_each(|way| run(way).map(drop))?;
    let mut samples = vec![Vec::with_capacity(rounds as usize); ways];
    for _ in 0..rounds {
        let there = (0..ways).map(&mut run).collect::<Result<Vec<_>, _>>()?;
        let back = (0..ways).rev().map(&mut run).collect::<Result<Vec<_>, _>>()?;
        for ((list, first), second) in samples.iter_mut().zip(there).zip(back.into_iter().rev()) {
            list.push(mean(first, second));
        }
    }
    Ok(samples)
}

#[derive(Clone, Debug, Default)]
pub struct Paired {
    /// Way 0 beside it.
    pub base: Vec<Sample>,
    pub own: Vec<Sample>,
}

impl Paired {
    pub fn saved(&self) -> impl Iterator<Item = i64> {
        saved(&self.base, &self.own)
    }

    /// Error of the median saving, as a share of way 0's time.
    fn error(&self) -> f64 {
        let base = wall(&self.base).median_ns;
        error_of_median(self.saved().collect()) / base.max(1) as f64
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    pub fewest: u32,
    pub most: u32,
    /// When to stop after `fewest` rounds; earlier if medians are known well enough. `None`: after `most`.
    pub until: Option<Instant>,
}

impl Effort {
    /// With fewer rounds a median says nothing of its own scatter.
    pub const FEWEST: u32 = 3;
    /// A hundredth more rounds changes nothing.
    const MOST: u32 = 100;
    /// Rounds from which their scatter is looked at.
    const MANY: u32 = 10;
    /// Error of a median saving at which rounds end, as a share of the first way's time.
    const EXACT: f64 = 0.0025;

    pub const fn exactly(rounds: u32) -> Self {
        Self { fewest: rounds, most: rounds, until: None }
    }

    pub const fn until(time: Instant) -> Self {
        Self { fewest: Self::FEWEST, most: Self::MOST, until: Some(time) }
    }

    /// `last`: time of the last of `made` rounds.
    fn is_enough(&self, made: u32, last: Duration, pairs: &[Paired]) -> bool {
        let Some(until) = self.until else { return made >= self.most };
        let late = Instant::now() + last > until;
        let known = || made >= Self::MANY && pairs.iter().all(|p| p.error() <= Self::EXACT);
        made >= self.most || (made >= self.fewest && (late || known()))
    }
}

/// Compares each way from 1 on with way 0, in pairs A B B A, after `warm` warm-ups: differences of a percent
/// drown in the clock in rounds of many ways. Returns all samples of way 0, and the pairs of the others.
pub fn paired(
    ways: usize,
    effort: &Effort,
    warm: u32,
    mut run: impl FnMut(usize) -> Result<Sample, ReplayError>,
) -> Result<(Vec<Sample>, Vec<Paired>), ReplayError> {
    let mut run = |way| interrupt::check().and_then(|()| run(way));
    for _ in 0..warm {
        (0..ways).try_for_each(|way| run(way).map(drop))?;
    }
    let mut alone = Vec::new();
    let mut pairs = vec![Paired::default(); ways.saturating_sub(1)];
    let (mut made, mut last) = (0, Duration::ZERO);
    while !effort.is_enough(made, last, &pairs) {
        let start = Instant::now();
        if ways == 1 {
            alone.push(mean(run(0)?, run(0)?));
        }
        for (index, pair) in pairs.iter_mut().enumerate() {
            let way = index + 1;
            let [first, second, third, fourth] = [run(0)?, run(way)?, run(way)?, run(0)?];
            pair.base.push(mean(first, fourth));
            pair.own.push(mean(second, third));
        }
        (made, last) = (made + 1, start.elapsed());
    }
    let base = alone.into_iter().chain(pairs.iter().flat_map(|pair| pair.base.iter().copied())).collect();
    Ok((base, pairs))
}

/// Standard error of the median, by quartiles: 1.2533 × standard deviation / √n of normal values.
fn error_of_median(values: Vec<i64>) -> f64 {
    let count = values.len().max(1) as f64;
    let [low, _, high] = quartiles(values);
    1.2533 / QUARTILES_APART * high.saturating_sub(low) as f64 / count.sqrt()
}

/// Median and the middle eight tenths; of up to ten values, all.
pub fn spread(values: impl IntoIterator<Item = i64>) -> Spread {
    let mut values: Vec<i64> = values.into_iter().collect();
    values.sort_unstable();
    let Some(last) = values.len().checked_sub(1) else { return Spread::default() };
    let (median_ns, cut) = ((values[last / 2] + values[values.len() / 2]) / 2, last / 10);
    Spread { median_ns, low_ns: values[cut], high_ns: values[last - cut], runs: values.len() as u32 }
}

pub fn wall(samples: &[Sample]) -> Spread {
    spread(samples.iter().map(|s| s.wall))
}

pub fn gpu(samples: &[Sample]) -> Spread {
    spread(samples.iter().map(|s| s.gpu))
}

/// Per round, how much less `other` took than `base`.
pub fn saved(base: &[Sample], other: &[Sample]) -> impl Iterator<Item = i64> {
    base.iter().zip(other).map(|(b, o)| b.wall - o.wall)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_drift_cancels() {
        let mut clock = 0;
        let samples = interleaved(3, 4, |way| {
            clock += 7;
            Ok(Sample { wall: 1000 * (way as i64 + 1) + clock, gpu: 1 })
        })
        .expect("runs");
        assert_eq!(clock, 7 * (3 + 4 * 6));
        assert_eq!(
            spread(saved(&samples[2], &samples[0])),
            Spread { median_ns: 2000, low_ns: 2000, high_ns: 2000, runs: 4 }
        );
    }

    #[test]
    fn pairs_cancel_a_drift_that_a_way_between_them_makes() {
        let (mut clock, mut runs) = (0, 0);
        let (base, pairs) = paired(3, &Effort::exactly(4), 1, |way| {
            (clock, runs) = (clock + 7, runs + 1);
            Ok(Sample { wall: 1000 * (way as i64 + 1) + clock, gpu: 1 })
        })
        .expect("runs");
        assert_eq!(runs, 3 + 4 * 2 * 4);
        let savings: Vec<i64> = pairs.iter().map(|p| spread(p.saved()).median_ns).collect();
        assert_eq!(savings, [-1000, -2000]);
        assert!(pairs.iter().all(|p| p.base.len() == 4 && p.own.len() == 4));
        assert_eq!(base.len(), 8);
        let (base, pairs) =
            paired(1, &Effort::exactly(3), 0, |_| Ok(Sample { wall: 5, gpu: 1 })).expect("runs");
        assert_eq!((base.len(), base[0].wall, pairs.len()), (3, 5, 0));
    }

    #[test]
    fn rounds_end_when_their_median_is_known() {
        let rounds = |effort: Effort, apart: i64| {
            let mut runs = 0;
            let scattering = |way: usize| {
                runs += 1;
                let off = if runs / 4 % 2 == 0 { apart } else { -apart };
                Ok(Sample { wall: 10_000 - 1000 * way as i64 + way as i64 * off, gpu: 1 })
            };
            paired(2, &effort, 0, scattering).expect("runs").1[0].own.len() as u32
        };
        let later = Effort::until(Instant::now() + Duration::from_secs(3600));
        assert_eq!(rounds(later, 0), Effort::MANY);
        // 0.929 × 160 / √n of 10,000 is a quarter of a percent at n = 36.
        assert!((30..=40).contains(&rounds(later, 80)), "{}", rounds(later, 80));
        assert_eq!(rounds(later, 5_000), Effort::MOST);
        assert_eq!(rounds(Effort::until(Instant::now()), 5_000), Effort::FEWEST);
        assert_eq!(rounds(Effort::exactly(2), 5_000), 2);
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
        let result = interleaved(2, 5, |_| {
            runs += 1;
            if runs == 3 { Err(ReplayError::NoDevice) } else { Ok(Sample::default()) }
        });
        assert!(result.is_err() && runs == 3);
    }
}
