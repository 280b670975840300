//! Prices from the runs of a plan: differences, cut to their bounds, with ranges.

use super::host_work::HostWork;
use super::overhead::Clock;
use super::plan::{OPEN, PAIRS, Plan, REWRITTEN};
use super::prices::{Price, PricedSite, Prices, Saving, Terms};
use super::range::{Margin, UNSEEN_EACH_NS};
use super::simulate::{Outcome, Program};
use crate::vocabulary::{BoundBy, Change, SiteIx};
use typed_index_collections::{TiSlice, TiVec};

/// Busy share of a device from which the GPU limits the run.
const GPU_BOUND: f64 = 0.85;

/// Limit of the run's loop where one is known: loading does not limit a program. `recorded`: busy time of a
/// device in the recorded loop, as a simulated run counts too little for streams that work side by side.
fn bound_by(run: &Outcome, recorded: i64) -> BoundBy {
    let busy = run.busy.iter().copied().max().unwrap_or(0);
    let (busy, of) = run.laps.map_or((busy, run.end), |laps| (run.busy_in_laps.max(recorded), laps));
    if busy as f64 >= GPU_BOUND * of.max(1) as f64 { BoundBy::Gpu } else { BoundBy::Host }
}

pub(super) struct Settling<'a> {
    pub program: &'a Program,
    pub subjects: &'a TiSlice<SiteIx, PricedSite>,
    /// One for each variant.
    pub outcomes: &'a [Outcome],
    /// Bound of each subject's saving besides waiting.
    pub beside: TiVec<SiteIx, i64>,
    pub work: TiVec<SiteIx, HostWork>,
    /// Busy time of the busiest device from the first iteration's start to the last one's; 0 without a loop.
    pub busy: i64,
    pub clock: Clock,
    pub margin: Margin,
    pub terms: Terms,
}

impl Settling<'_> {
    pub fn settle(&self, plan: &Plan, prices: &mut Prices) {
        let (base, joint) = (&self.outcomes[0], &self.outcomes[1]);
        let bound = bound_by(joint, self.busy);
        prices.bound_by = Some(bound);
        for &(i, single, without) in &plan.singles {
            let (price, only) = (&mut prices.sites[i], &self.outcomes[single]);
            // Left in alone, a wait takes over what others gave up: that is not its share.
            let share = without.map(|w| self.outcomes[w].end - joint.end);
            let margin = self.margin.of(base.end, 0, self.work[i], bound);
            price.settle(base.end - only.end, share, self.most(i), self.clock, margin);
            price.iteration =
                self.lap(base).zip(self.lap(only)).map(|(a, b)| self.clock.keeps((a - b).max(0)));
            price.moves_to = self.moved(i, only);
            prices.cut = prices.cut.max(price.cut);
        }
        if self.program.backtraces && !self.terms.as_captured {
            self.settle_needed(prices);
        }
        let counted = || self.subjects.keys().filter(|&i| self.subjects[i].counted);
        let work = counted().map(|i| self.work[i]).fold(HostWork::default(), HostWork::plus);
        let waits = |i: SiteIx| (self.subjects[i].waits.len() as i64).saturating_mul(UNSEEN_EACH_NS);
        let along = counted().map(waits).fold(0i64, i64::saturating_add);
        let most_of = |is: fn(&PricedSite) -> bool| {
            let those = self.subjects.keys().filter(|&i| is(&self.subjects[i]));
            those.map(|i| self.most(i)).fold(0i64, i64::saturating_add)
        };
        let most = most_of(|s| s.counted);
        let reach = self.reach();
        let best = counted().map(|i| prices.sites[i].alone).max().unwrap_or(0);
        let margin = self.margin.of(base.end, along, work, bound);
        let run = self.saving(|o| Some(o.end), margin).unwrap_or_default();
        let (saved, above) = within(run.saved, 0, most);
        let (saved, short) = within(saved, best, i64::MAX);
        prices.cut = prices.cut.max(above).max(short);
        let high = margin.above(run.saved, reach, run.high).max(saved);
        let (rewritten, open) = (most_of(|s| s.open && s.needed), most_of(|s| s.open && !s.needed));
        prices.run = Saving {
            saved,
            low: run.low.min(saved),
            high,
            rewritten: run.rewritten.min(rewritten),
            open: run.open.min(open),
            ..run
        };
        for price in &mut prices.sites {
            price.joint = price.joint.min(prices.run.saved);
        }
        let count = self.program.laps.map_or(1, |l| l.count.max(1));
        prices.iteration = self.lap(base).and_then(|length| {
            let margin = Margin { scatter: self.margin.scatter / count, ..self.margin };
            let margin = margin.of(length, along / count, work.each(count), bound);
            let lap = self.saving(|o| self.lap(o), margin)?;
            let high = margin.above(lap.saved, reach / count, lap.high).max(lap.saved);
            let (rewritten, open) = (lap.rewritten.min(rewritten / count), lap.open.min(open / count));
            Some(Saving { high, rewritten, open, ..lap })
        });
        let captured = |of: &dyn Fn(&Outcome) -> Option<i64>| {
            let (length, fixed) = (of(&self.outcomes[2])?, of(&self.outcomes[3])?);
            let saved = self.clock.keeps((length - fixed).max(0));
            Some(Saving { length, saved, low: saved, high: saved, ..Saving::default() })
        };
        prices.captured = captured(&|o| Some(o.end)).unwrap_or_default();
        prices.captured_iteration = captured(&|o| self.lap(o));
        prices.unsimulated = plan.unsimulated;
    }

    /// Under backtraces waits look empty: a wait that stays may block longer without them.
    fn settle_needed(&self, prices: &mut Prices) {
        let stays = |i: SiteIx| self.subjects[i].fix == Change::Keep && !self.subjects[i].kept;
        for (i, price) in prices.sites.iter_mut_enumerated().filter(|(i, _)| stays(*i)) {
            price.high = price.high.max(self.outcomes[0].waited[i]);
        }
    }

    /// The most that all counted waits block in the runs of a range, and what goes with their calls.
    fn reach(&self) -> i64 {
        let runs = || (0..PAIRS).filter(|&pair| pair != 1).map(|pair| &self.outcomes[2 * pair].waited);
        let blocked = |i: SiteIx| runs().map(|waited| waited[i]).max().unwrap_or(0);
        let counted = self.subjects.keys().filter(|&i| self.subjects[i].counted);
        counted.fold(0, |sum: i64, i| sum.saturating_add(blocked(i)).saturating_add(self.beside[i]))
    }

    pub(super) fn lap(&self, outcome: &Outcome) -> Option<i64> {
        Some(outcome.laps? / self.program.laps?.count.max(1))
    }

    /// The estimate from the first pair of runs, its range from the others and the margin.
    fn saving(&self, of: impl Fn(&Outcome) -> Option<i64>, margin: Margin) -> Option<Saving> {
        let pair = |n: usize| Some((of(&self.outcomes[2 * n])?, of(&self.outcomes[2 * n + 1])?));
        let ends = (2..PAIRS).filter_map(|n| pair(n).map(|(base, joint)| (base - joint).max(0)));
        let (length, fixed) = pair(0)?;
        let whole = (length - fixed).max(0);
        let (least, most) = ends.fold((whole, whole), |(least, most), ns| (ns.min(least), ns.max(most)));
        let saved = self.clock.keeps(whole);
        let (low, high) = margin.around(saved, least.min(saved), most);
        let with_rewritten = of(&self.outcomes[REWRITTEN])?.min(fixed);
        let rewritten = self.clock.keeps(fixed - with_rewritten);
        let open = self.clock.keeps((with_rewritten - of(&self.outcomes[OPEN])?).max(0));
        Some(Saving { length, saved, low, high: high.min(length), rewritten, open })
    }

    /// The site whose waits grew most with only `i` fixed, if they took over half of what it gave up.
    fn moved(&self, i: SiteIx, only: &Outcome) -> Option<SiteIx> {
        let (taken_over, by) = self.most_grown(only, self.subjects.keys().filter(|&s| s != i))?;
        let given_up = self.outcomes[0].waited[i] - only.waited[i];
        (given_up > 0 && taken_over * 2 >= given_up).then_some(by)
    }

    pub(super) fn most_grown(
        &self,
        run: &Outcome,
        sites: impl Iterator<Item = SiteIx>,
    ) -> Option<(i64, SiteIx)> {
        let grown = sites.map(|i| (run.waited[i] - self.outcomes[0].waited[i], i));
        grown.max_by_key(|&(ns, i)| (ns, std::cmp::Reverse(&self.subjects[i].key)))
    }

    pub(super) fn most(&self, site: SiteIx) -> i64 {
        self.outcomes[0].waited[site].saturating_add(self.beside[site])
    }
}

impl Price {
    /// `alone`: saved with only this fixed. `share`: its share of the whole; `None` if it does not count.
    fn settle(&mut self, alone: i64, share: Option<i64>, most: i64, clock: Clock, margin: Margin) {
        let (alone, cut) = within(alone, 0, most);
        let least = share.map_or(alone, |share| share.clamp(0, most).min(alone));
        let share = share.unwrap_or(0).clamp(0, most);
        (self.alone, self.joint, self.cut) = (clock.keeps(alone), clock.keeps(share), cut);
        let (low, high) = margin.around(self.alone, clock.keeps(least), alone.max(share));
        (self.low, self.high) = (low, margin.above(self.alone, most, high).max(self.alone));
        self.simulated = true;
    }
}

fn within(value: i64, low: i64, high: i64) -> (i64, i64) {
    let inside = value.max(low).min(high);
    (inside, (value - inside).abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A simulated run counts too little busy time for streams that work side by side.
    #[test]
    fn the_recorded_loop_tells_how_long_a_device_works() {
        let run =
            |laps| Outcome { end: 1_000, busy: vec![500], laps, busy_in_laps: 400, ..Outcome::default() };
        assert_eq!(bound_by(&run(Some(600)), 590), BoundBy::Gpu);
        assert_eq!(bound_by(&run(Some(600)), 400), BoundBy::Host);
        assert_eq!(bound_by(&run(Some(450)), 0), BoundBy::Gpu);
        assert_eq!(bound_by(&run(None), 0), BoundBy::Host);
    }
}
