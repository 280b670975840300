//! The range around a computed saving.
//!
//! ```text
//!       LEAST × value          value           MOST × value
//!          |·····················|··················|
//!   |–––···|·····················|··················|–––––|– work –|
//!  low     (the furthest of) least, most, value ± unseen      high      never below 0, nor above the run
//! ```
//! **The model.** A capture lacks part of a program without its waits: caches, clocks, the library's work
//! around a call. [`LEAST`] and [`MOST`] are measured with and without waits, as shares of a computed saving.
//! `least` and `most` are the estimate's own ends: the profiler's time ([`super::overhead`]), and the power
//! limit, at which between none and all of it is won. The furthest end counts.
//!
//! **What no capture shows.** Other work in Python and the library goes with a fix, or comes with it: in
//! public programs some percent of the iteration (`UNSEEN`) where the host limits them, less where the GPU
//! does. A fix may also spare host work before uploads and behind reads ([`super::host_work`]). The estimate
//! only holds the time of bytes whose filling the source shows ([`super::simulate::beside`]). Both ends move
//! by the measured [`BEYOND`].
//!
//! **The scatter.** Half the distance between the quartiles of iterations' lengths is the typical deviation;
//! that of all together grows with the root of their number. The scatter is independent of the model's error:
//! their squares add up. Only iterations with equal numbers of calls are compared: short and long steps may
//! alternate.

use super::host_work::HostWork;
use super::statistics::{quartiles, share};
use crate::iterations::Iterations;
pub use crate::model::limits::{BEYOND, LEAST, MOST};
use crate::profile::Profile;
use crate::vocabulary::BoundBy;
use std::collections::BTreeMap;

/// Share of an iteration or run by which more may be saved than simulated, where the host limits the fixed
/// program; half of it where the GPU does. The lower end moves half as far.
const UNSEEN: f64 = 0.025;
/// Upper limit of it for each wait: with less, ranges of programs with few waits an iteration no longer hold.
pub(super) const UNSEEN_EACH_NS: i64 = 200_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Margin {
    /// Scatter of all iterations together, in ns; 0 where none are known.
    pub scatter: i64,
    /// At the power limit nothing may be won.
    pub limited: bool,
    pub unseen: i64,
    /// Host work that a fix may spare, in ns.
    pub work: i64,
    /// Distance by which both ends move, in ns.
    pub beyond: i64,
}

impl Margin {
    pub(super) fn new(profile: &Profile, iterations: Option<&Iterations>, limited: bool) -> Self {
        let lengths = |i: &Iterations| -> Vec<(i64, usize)> {
            let thread = profile.calls.threads.binary_search(&i.tid).ok();
            let calls = thread.map_or(&[][..], |t| &profile.calls.by_thread[t]);
            let before = |time: i64| calls.partition_point(|&c| profile.calls.start(c) < time);
            i.spans.iter().map(|s| (s.1.saturating_sub(s.0), before(s.1) - before(s.0))).collect()
        };
        Self { scatter: iterations.map_or(0, |i| scatter(&lengths(i))), limited, ..Self::default() }
    }

    /// The margin of a run or an iteration of `length` ns; `along` limits `unseen` and `beyond`.
    pub(super) fn of(self, length: i64, along: i64, work: HostWork, bound: BoundBy) -> Self {
        let (unseen, work) = match bound {
            BoundBy::Gpu => (share(length, UNSEEN / 2.0), 0),
            BoundBy::Host => (share(length, UNSEEN), work.spared(length)),
        };
        Self { unseen: unseen.min(along), work, beyond: share(length, BEYOND).min(along), ..self }
    }

    /// Cuts the upper end `high` to what waits block and their calls cost, `most`, and the host work that
    /// goes with them.
    pub(super) fn above(self, value: i64, most: i64, high: i64) -> i64 {
        high.min(most.saturating_add(self.work).saturating_add(self.beyond(value)))
    }

    /// 0 where nothing is saved, which is no estimate that could be off.
    fn beyond(self, value: i64) -> i64 {
        if value > 0 { self.beyond } else { 0 }
    }

    /// Lower and upper end of a saving of about `value`, between `least` and `most`.
    pub fn around(self, value: i64, least: i64, most: i64) -> (i64, i64) {
        let unseen = |ns: i64| value.saturating_add(ns);
        let least =
            if self.limited { 0 } else { least.min(share(value, LEAST)).min(unseen(-self.unseen / 2)) };
        let most = most.max(share(value, MOST)).max(unseen(self.unseen));
        let beyond = self.beyond(value);
        let far = |end: i64| (value.saturating_sub(end) as f64).hypot(self.scatter as f64) as i64;
        let high = value.saturating_add(far(most)).saturating_add(self.work).saturating_add(beyond);
        (value.saturating_sub(far(least)).saturating_sub(beyond).max(0), high)
    }
}

/// Half the distance between the quartiles of deviations, times the root of their number. A deviation is from
/// the median of iterations with as many calls.
fn scatter(lengths: &[(i64, usize)]) -> i64 {
    let mut kinds: BTreeMap<usize, Vec<i64>> = BTreeMap::new();
    lengths.iter().for_each(|&(length, calls)| kinds.entry(calls).or_default().push(length));
    let alike = kinds.into_values().filter(|kind| kind.len() > 1);
    let off: Vec<i64> = alike
        .flat_map(|kind| {
            let [_, middle, _] = quartiles(kind.clone());
            kind.into_iter().map(move |length| length.saturating_sub(middle))
        })
        .collect();
    let root = (off.len() as f64).sqrt();
    let [low, _, high] = quartiles(off);
    (high.saturating_sub(low) as f64 / 2.0 * root) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One length of 900 was disturbed: half of 130 − 110, times the root of five.
    #[test]
    fn scatter_is_half_of_what_quartiles_differ() {
        let alike = |lengths: &[i64]| scatter(&lengths.iter().map(|&ns| (ns, 7)).collect::<Vec<_>>());
        assert_eq!(alike(&[100, 110, 900, 120, 130]), 22);
        assert_eq!(alike(&[100; 8]), 0);
        assert_eq!(alike(&[]), 0);
    }

    #[test]
    fn only_alike_iterations_are_compared() {
        assert_eq!(scatter(&[(100, 3), (900, 9), (100, 3), (900, 9)]), 0);
        assert_eq!(scatter(&[(100, 3), (900, 9)]), 0);
    }

    #[test]
    fn ranges_hold_the_value_and_nothing_below_zero() {
        let margin = Margin { scatter: 50, ..Margin::default() };
        assert_eq!(margin.around(1_000, 1_000, 1_000), (746, 1_403));
        assert_eq!(margin.around(10, 10, 10), (0, 60));
        assert_eq!(Margin::default().around(0, 0, 0), (0, 0));
        assert_eq!(margin.around(i64::MAX, i64::MAX, i64::MAX).1, i64::MAX);
    }

    #[test]
    fn the_further_end_counts() {
        assert_eq!(Margin::default().around(1_000, 900, 1_600), (750, 1_600));
        assert_eq!(Margin::default().around(1_000, 400, 1_100), (400, 1_400));
    }

    /// The host's work lies on top, and only if the host limits the program. [`BEYOND`] widens both ends.
    #[test]
    fn what_is_not_seen_widens_small_savings() {
        let work = |before| HostWork { before, behind: 0 };
        let around = |bound, value| {
            Margin::default().of(10_000, 1_000, work(1_000), bound).around(value, value, value)
        };
        assert_eq!(around(BoundBy::Host, 100), (0, 350 + 400 + 150));
        assert_eq!(around(BoundBy::Host, 2_000), (1_500 - 150, 2_800 + 400 + 150));
        assert_eq!(around(BoundBy::Gpu, 300), (225 - 150, 425 + 150));
        assert_eq!(Margin::default().of(1_000, 1_000, work(1_000), BoundBy::Host).work, 100);
        assert_eq!(
            Margin::default().of(1_000, 1_000, HostWork { before: 50, behind: 300 }, BoundBy::Host).work,
            320
        );
        assert_eq!(Margin::default().of(10_000, 60, work(0), BoundBy::Host).unseen, 60);
    }

    #[test]
    fn at_the_power_limit_nothing_is_certain() {
        assert_eq!(Margin { limited: true, ..Margin::default() }.around(157, 157, 1_000), (0, 1_000));
    }
}
