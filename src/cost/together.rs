//! Sites whose saving exists only jointly.
//!
//! ```text
//!  host   [launch a][stream sync======][device sync]···[launch b]      the GPU is drained until b comes
//!  one    [launch a]·[device sync=====]···[launch b]                   the other takes over all of the wait: saves nothing
//!  both   [launch a]···[launch b]                                      saves the drain
//! ```
//! A set begins with a site that saves much more with all others fixed than alone. The site that took over
//! most of the waiting joins, as long as one did; then sites leave that change nothing. A set saves at least
//! `MORE` percent of what its sites save alone. Each step costs one run: at most `RUNS`, fewer where the
//! budget is spent.

use super::plan::Plan;
use super::prices::{Saving, Together};
use super::range::Margin;
use super::settle::Settling;
use super::simulate::Outcome;
use crate::vocabulary::SiteIx;
use rustc_hash::FxHashMap;

pub(super) const RUNS: usize = 12;
/// Sites of a set: nobody fixes more at once as a trial.
const MEMBERS: usize = 5;
const SETS: usize = 3;
/// Percent that a set's saving must reach of the sum of its sites' savings alone. Pairs of estimates of one
/// capture differ by less than half.
const MORE: i64 = 150;
/// A smaller part of the whole is printed as less than 0.1 %.
const WORTH: i64 = 1_000;
/// Percent of a set's saving that must remain without a site for it to leave.
const ENOUGH: i64 = 90;

/// Looks for sets, with at most `runs` runs. `simulate` fixes these sites on top of the baseline.
pub(super) fn find(
    settling: &Settling,
    plan: &Plan,
    runs: usize,
    simulate: impl FnMut(&[SiteIx]) -> Outcome,
) -> Vec<Together> {
    let mut search = Search { settling, left: runs, simulate };
    let base = &settling.outcomes[0];
    let worth = (search.length(base) / WORTH).max(1);
    let alone = |single: usize| search.saved(&settling.outcomes[single]);
    let joint = &settling.outcomes[1];
    let mut seeds: Vec<(i64, SiteIx, usize)> = (plan.singles.iter())
        .filter_map(|&(i, single, without)| {
            let share = search.length(&settling.outcomes[without?]) - search.length(joint);
            Some((share - alone(single), alone(single), i, single))
        })
        .filter(|&(more, alone, ..)| more >= worth && is_more(more + alone, alone))
        .map(|(more, _, i, single)| (more, i, single))
        .collect();
    seeds.sort_by_key(|&(more, i, _)| (std::cmp::Reverse(more), &settling.subjects[i].key));
    let mut sets: Vec<Together> = Vec::new();
    for (_, i, single) in seeds {
        if sets.len() < SETS && sets.iter().all(|set| !set.sites.contains(&i)) {
            sets.extend(search.grow(plan, i, &settling.outcomes[single], worth));
        }
    }
    sets
}

fn is_more(saved: i64, alone: i64) -> bool {
    saved.saturating_mul(100) >= alone.saturating_mul(MORE)
}

struct Search<'a, F> {
    settling: &'a Settling<'a>,
    left: usize,
    simulate: F,
}

impl<F: FnMut(&[SiteIx]) -> Outcome> Search<'_, F> {
    /// Per iteration where a loop is known, else of the run.
    fn length(&self, outcome: &Outcome) -> i64 {
        self.settling.lap(outcome).unwrap_or(outcome.end)
    }

    /// 1 without a loop.
    fn laps(&self, outcome: &Outcome) -> i64 {
        self.settling.lap(outcome).and(self.settling.program.laps).map_or(1, |laps| laps.count.max(1))
    }

    fn saved(&self, outcome: &Outcome) -> i64 {
        (self.length(&self.settling.outcomes[0]) - self.length(outcome)).max(0)
    }

    fn run(&mut self, sites: &[SiteIx]) -> Option<Outcome> {
        self.left = self.left.checked_sub(1)?;
        Some((self.simulate)(sites))
    }

    fn grow(&mut self, plan: &Plan, seed: SiteIx, only: &Outcome, worth: i64) -> Option<Together> {
        let alone = |single: usize| self.saved(&self.settling.outcomes[single]);
        let known = plan.singles.iter().map(|&(i, single, _)| (i, alone(single)));
        let known: FxHashMap<SiteIx, i64> = known.collect();
        let (mut set, mut now) = (vec![seed], only.clone());
        while let Some(next) = self.next(plan, &set, &now, worth).filter(|_| set.len() < MEMBERS) {
            let more = [&set[..], &[next]].concat();
            let Some(fixed) = self.run(&more) else { break };
            (set, now) = (more, fixed);
        }
        let (saved, alone) = (self.saved(&now), set.iter().map(|i| known[i]).sum::<i64>());
        if set.len() < 2 || saved - alone < worth || !is_more(saved, alone) {
            return None;
        }
        let members = set.clone();
        for &member in &members[1..] {
            if set.len() == 2 {
                break; // neither comes to as much alone
            }
            let fewer: Vec<SiteIx> = set.iter().copied().filter(|&i| i != member).collect();
            let Some(without) = self.run(&fewer) else { break };
            if self.saved(&without).saturating_mul(100) >= saved.saturating_mul(ENOUGH) {
                (set, now) = (fewer, without);
            }
        }
        set.sort_unstable();
        let alone = set.iter().map(|i| self.settling.clock.keeps(known[i])).collect();
        Some(Together { saving: self.range(&set, &now), alone, sites: set })
    }

    /// The counted site whose waits took over most of the waiting, if that is worth something.
    fn next(&self, plan: &Plan, set: &[SiteIx], now: &Outcome, worth: i64) -> Option<SiteIx> {
        let others = plan.singles.iter().map(|single| single.0).filter(|i| !set.contains(i));
        let counted = others.filter(|&i| self.settling.subjects[i].counted);
        let (grown, site) = self.settling.most_grown(now, counted)?;
        (grown / self.laps(now) >= worth).then_some(site)
    }

    fn range(&self, set: &[SiteIx], fixed: &Outcome) -> Saving {
        let Settling { outcomes, clock, margin, .. } = self.settling;
        let laps = self.laps(fixed);
        let most = set.iter().map(|&i| self.settling.most(i)).fold(0, i64::saturating_add) / laps;
        let whole = self.saved(fixed).min(most);
        let saved = clock.keeps(whole);
        let margin = Margin { scatter: margin.scatter / laps, ..*margin };
        let (low, high) = margin.around(saved, saved, whole);
        let low = if margin.limited { 0 } else { low };
        Saving {
            length: self.length(&outcomes[0]),
            saved,
            low,
            high: high.min(most).max(saved),
            ..Saving::default()
        }
    }
}
