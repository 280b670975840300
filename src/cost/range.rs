//! How far a saving may be from what is computed.
//!
//! ```text
//!       LEAST × value          value           MOST × value
//!          |·····················|··················|
//!   |–––···|·····················|··················|–––––|– work –|
//!  low     (the furthest of) least, most, value ± unseen      high      never below 0, nor above the run
//! ```
//! **The model.** A capture does not hold all that a program without its waits would do: caches, clocks, what the
//! library does around a call. [`LEAST`] and [`MOST`] are how much of a computed saving was found in programs measured
//! with and without their waits. `least` and `most` are ends that an estimate has of its own: what the profiler may take
//! ([`super::overhead`]), and the power limit, at which between none and all of it is won. Whichever lies further out
//! counts.
//!
//! **What no capture shows.** Other work goes with a fix, or comes with it: what Python and the library do around a call. Of
//! public programs it was some percent of the iteration (`UNSEEN`) where the host limits them, less where the GPU does.
//! And what is uploaded was made before, on the host, and what is read is worked on behind ([`super::host_work`]): a fix may spare
//! that too. Where the source shows that an upload is filled or joined there, the estimate holds what its bytes take
//! ([`super::simulate::beside`]). The rest is only in the upper end. Both ends are moved by [`BEYOND`] more, which is measured.
//!
//! **The scatter.** Iterations of one capture differ among themselves, and so would two captures. Half the distance
//! between the quartiles of their lengths is how far one typically lies from the middle; what all of them together are off
//! by grows with the root of their number. It has nothing to do with the model's error: their squares add up. Only alike
//! iterations are compared: where steps alternate (short and long, with and without an optimizer's update), those with equal
//! numbers of calls are.

use super::host_work::HostWork;
use super::statistics::{quartiles, share};
use crate::iterations::Iterations;
pub use crate::model::limits::{BEYOND, LEAST, MOST};
use crate::profile::Profile;
use crate::vocabulary::BoundBy;
use std::collections::BTreeMap;

/// Share of an iteration, or of the run, by which more may be saved than is simulated where the host limits the fixed program;
/// half of it where the GPU does, and half as much less.
const UNSEEN: f64 = 0.025;
/// And of each wait at most: with less, ranges of those programs that have few waits an iteration no longer hold.
pub(super) const UNSEEN_EACH_NS: i64 = 200_000;

/// What widens the savings of one capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Margin {
    /// By how much the capture's iterations scatter, all of them together, in ns; 0 where none are known.
    pub scatter: i64,
    /// At the power limit nothing may be won.
    pub limited: bool,
    /// What the estimate does not see, in ns.
    pub unseen: i64,
    /// What a fix may spare of the host's work beside its waits, in ns.
    pub work: i64,
    /// The distance by which both ends are moved, in ns.
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

    /// Of a run or an iteration of `length` ns, whose waits take `along` ns with them at most, and beside which the host does that
    /// work.
    pub(super) fn of(self, length: i64, along: i64, work: HostWork, bound: BoundBy) -> Self {
        let (unseen, work) = match bound {
            BoundBy::Gpu => (share(length, UNSEEN / 2.0), 0),
            BoundBy::Host => (share(length, UNSEEN), work.spared(length)),
        };
        Self { unseen: unseen.min(along), work, beyond: share(length, BEYOND).min(along), ..self }
    }

    /// The upper end `high` of a saving of `value` cut to what the waits block and their calls cost, `most`, and the host work that
    /// goes with them.
    pub(super) fn above(self, value: i64, most: i64, high: i64) -> i64 {
        high.min(most.saturating_add(self.work).saturating_add(self.beyond(value)))
    }

    /// How far both ends are moved; not where nothing is saved, which is no estimate that could be off.
    fn beyond(self, value: i64) -> i64 {
        if value > 0 { self.beyond } else { 0 }
    }

    /// The range of a saving that is estimated to be `value`, between `least` and `most`.
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

/// Half the distance between the quartiles of how far iterations lie from the median of those with as many calls, times
/// the root of their number.
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

    /// Lengths 100, 110, 120, 130 and one of 900 that something else disturbed: half of 130 − 110, times the root of five.
    #[test]
    fn scatter_is_half_of_what_quartiles_differ() {
        let alike = |lengths: &[i64]| scatter(&lengths.iter().map(|&ns| (ns, 7)).collect::<Vec<_>>());
        assert_eq!(alike(&[100, 110, 900, 120, 130]), 22);
        assert_eq!(alike(&[100; 8]), 0);
        assert_eq!(alike(&[]), 0);
    }

    /// Short and long steps by turns scatter as little as either kind does.
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

    /// An end of the estimate's own counts where it lies further out, and not on top.
    #[test]
    fn the_further_end_counts() {
        assert_eq!(Margin::default().around(1_000, 900, 1_600), (750, 1_600));
        assert_eq!(Margin::default().around(1_000, 400, 1_100), (400, 1_400));
    }

    /// The unseen part counts if it lies further out. The host's work lies on top, and only if the host limits the program.
    /// [`BEYOND`] lies on top of both ends.
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

    /// At the power limit: from none to all of the idle time that goes.
    #[test]
    fn at_the_power_limit_nothing_is_certain() {
        assert_eq!(Margin { limited: true, ..Margin::default() }.around(157, 157, 1_000), (0, 1_000));
    }
}
