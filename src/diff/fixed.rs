//! Judges fixes: the outcome of BEFORE's avoidable waits, and of the predicted saving.
//!
//! ```text
//!  before  [···[wait A 85 µs]······[wait B  3 µs]····]
//!  after   [·······················[wait B 80 µs]····]      A is gone, and its waiting has moved to B
//! ```
//! A wait has moved if another wait of the same thread grew by at least [`MOST`] of the time the first one
//! blocked, and by more than jitter. Of several, the nearest one after it counts, in the iteration or the
//! next. Cost: a sort of the pairs of gone and grown waits.

use super::comparable::Comparable;
use super::matching::Pair;
use super::noise;
use super::snapshot::Snapshot;
use super::units::{SiteGroup, UnitIx};
use crate::model::diff::{Became, Fate, Fates, Location, MovedTo, Prediction, RunChange, SiteState};
use crate::model::{Recoverable, Site};
use crate::vocabulary::Per;
use rustc_hash::{FxHashMap, FxHashSet};
use typed_index_collections::TiSlice;

const MOST: f64 = 0.5;

pub(super) struct Fixed<'a> {
    pub before: (&'a Snapshot, &'a TiSlice<UnitIx, SiteGroup<'a>>),
    pub after: (&'a Snapshot, &'a TiSlice<UnitIx, SiteGroup<'a>>),
    /// The paired unit of the other side.
    after_of: FxHashMap<UnitIx, &'a SiteGroup<'a>>,
    before_of: FxHashMap<UnitIx, &'a SiteGroup<'a>>,
    pub comparable: &'a Comparable,
}

impl<'a> Fixed<'a> {
    pub fn new(
        before: (&'a Snapshot, &'a TiSlice<UnitIx, SiteGroup<'a>>),
        after: (&'a Snapshot, &'a TiSlice<UnitIx, SiteGroup<'a>>),
        pairs: &[Pair],
        comparable: &'a Comparable,
    ) -> Self {
        let after_of = pairs.iter().map(|p| (p.before, &after.1[p.after])).collect();
        let before_of = pairs.iter().map(|p| (p.after, &before.1[p.before])).collect();
        Self { before, after, after_of, before_of, comparable }
    }

    pub fn fates(&self) -> FxHashMap<UnitIx, Fate> {
        let avoidable = |(_, unit): &(UnitIx, &SiteGroup)| is_avoidable(unit.site);
        let units = || self.before.1.iter_enumerated().filter(avoidable);
        let became: FxHashMap<UnitIx, Became> = units().map(|(i, unit)| (i, self.became(i, unit))).collect();
        let mut moved = self.moved(|i| became.get(&i).is_some_and(|became| *became != Became::Still));
        let fate = |(i, became): (UnitIx, Became)| {
            let moved_to = moved.remove(&i);
            (i, Fate { became: if moved_to.is_some() { Became::Moved } else { became }, moved_to })
        };
        became.into_iter().map(fate).collect()
    }

    fn became(&self, i: UnitIx, unit: &SiteGroup) -> Became {
        match self.after_of.get(&i) {
            None => Became::Gone,
            // Left or entered the loop.
            Some(after) if after.per != unit.per => {
                let turns = self.before.0.turns() as f64;
                let fewer = unit.per == Per::Iteration && after.waits < unit.waits * turns;
                if fewer { Became::Fewer } else { Became::Still }
            }
            Some(after) if after.waits < unit.waits && noise::waits_differ(unit, after) => Became::Fewer,
            Some(_) => Became::Still,
        }
    }

    /// The wait that took over each unit's lost time. A wait's growth is given out once, nearest first.
    fn moved(&self, some: impl Fn(UnitIx) -> bool) -> FxHashMap<UnitIx, MovedTo> {
        let given_up = |i: UnitIx| {
            let unit = &self.before.1[i];
            let left = self.after_of.get(&i).filter(|after| after.per == unit.per);
            unit.blocked.ns - left.map_or(0.0, |after| after.blocked.ns)
        };
        let mut growths: FxHashMap<UnitIx, f64> = FxHashMap::default();
        let mut pairs: Vec<(f64, UnitIx, UnitIx)> = Vec::new();
        for to in self.after.1.keys().filter(|_| self.comparable.costs) {
            let Some(growth) = self.growth(to) else { continue };
            growths.insert(to, growth);
            let from = self.before.1.keys().filter(|&i| some(i) && given_up(i) > 0.0);
            pairs.extend(from.filter_map(|i| Some((self.behind(i, to)?, i, to))));
        }
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        let mut moved = FxHashMap::default();
        for (_, i, to) in pairs {
            let left = growths.entry(to).or_default();
            if !moved.contains_key(&i) && *left >= MOST * given_up(i) {
                moved.insert(i, self.moved_to(to));
                *left -= given_up(i);
            }
        }
        moved
    }

    /// Growth of a wait of AFTER, in ns, if above jitter.
    fn growth(&self, to: UnitIx) -> Option<f64> {
        let after = &self.after.1[to];
        let was = self.before_of.get(&to).filter(|was| was.per == after.per);
        let (was, samples) =
            was.map_or((Default::default(), after.samples), |was| (was.blocked, was.samples));
        let floor = noise::floor(was, after.blocked, samples.min(after.samples), after.waits)?;
        Some(after.blocked.ns - was.ns).filter(|growth| *growth > floor)
    }

    /// Distance from a wait of BEFORE to one of AFTER, in iterations (1 if unknown); `None` for other
    /// threads.
    fn behind(&self, from: UnitIx, to: UnitIx) -> Option<f64> {
        let (before, after) = (&self.before.1[from], &self.after.1[to]);
        let thread = |unit: &SiteGroup| (unit.site.thread.role, unit.site.thread.main, unit.per);
        let was = self.before_of.get(&to);
        let at = was.map_or_else(|| place(after, self.after.0), |was| place(was, self.before.0));
        let distance =
            place(before, self.before.0).zip(at).map_or(1.0, |(from, to)| (to - from).rem_euclid(1.0));
        (thread(before) == thread(after)).then_some(distance)
    }

    fn moved_to(&self, to: UnitIx) -> MovedTo {
        let unit = &self.after.1[to];
        MovedTo {
            ids: unit.ids.iter().map(|id| (*id).to_owned()).collect(),
            key: unit.site.key.clone(),
            location: unit.location().map(Location::of),
            name: unit.site.name(),
            grown_ns: self.growth(to).unwrap_or(0.0) as i64,
        }
    }

    /// Counts of outcomes, and whether the prediction for the gone waits came true.
    pub fn all(&self, fates: &[(&SiteState, Fate)], run: &RunChange) -> Option<Fates> {
        let count = |became| fates.iter().filter(|(_, fate)| fate.became == became).count();
        let ids = fates.iter().filter(|(_, fate)| matches!(fate.became, Became::Gone | Became::Moved));
        let gone: FxHashSet<&str> = ids.flat_map(|(state, _)| state.ids.iter().map(String::as_str)).collect();
        (!fates.is_empty()).then(|| Fates {
            gone: count(Became::Gone),
            moved: count(Became::Moved),
            fewer: count(Became::Fewer),
            still: count(Became::Still),
            prediction: self.prediction(&gone, run),
        })
    }

    fn prediction(&self, gone: &FxHashSet<&str>, run: &RunChange) -> Option<Prediction> {
        let (before, after) = (self.before.0, self.after.0);
        let sites: Vec<&Site> = before.sites.iter().filter(|s| gone.contains(&*s.id)).collect();
        let (saved_ns, low_ns, high_ns) = predicted(before, &sites, run.per)?;
        let measured_ns = Some(shorter(before, after, run)).filter(|_| self.comparable.costs);
        let slowed = before.profiles.iter().chain(&after.profiles).any(|p| p.slowed);
        let jitter = run.span_noise_ns.filter(|_| !slowed);
        let held = jitter.zip(measured_ns).and_then(|(jitter, measured)| {
            let near = low_ns.saturating_sub(jitter)..=high_ns.saturating_add(jitter);
            let inside = (low_ns..=high_ns).contains(&measured);
            (inside || !near.contains(&measured)).then_some(inside)
        });
        Some(Prediction { saved_ns, low_ns, high_ns, measured_ns, slowed, held })
    }
}

/// Ns by which an iteration is shorter, without the profiler's estimated time; else the captured span. A
/// backtrace disappears with its wait, but was not predicted.
fn shorter(before: &Snapshot, after: &Snapshot, run: &RunChange) -> i64 {
    let iterations = before.totals.iteration.zip(after.totals.iteration);
    match iterations.filter(|_| run.per == Per::Iteration) {
        Some((before, after)) => before.ns.saturating_sub(after.ns),
        None => run.before.span_ns.saturating_sub(run.after.span_ns),
    }
}

/// Whether a fix should remove the site: avoidable, and not paid once.
fn is_avoidable(site: &Site) -> bool {
    site.is_avoidable() && !site.once
}

/// Position of a unit's wait in an iteration, as a share.
fn place(unit: &SiteGroup, side: &Snapshot) -> Option<f64> {
    let length = side.iterations.as_ref()?.median_ns;
    (length > 0).then_some(unit.site.offset_ns? as f64 / length as f64)
}

/// Predicted saving of fixing sites, per iteration or run: simulated for all avoidable sites and for sets
/// that go together, else from the best site's least saving to the sum of all. The figure is `None` if only a
/// range is known.
fn predicted(side: &Snapshot, sites: &[&Site], per: Per) -> Option<(Option<i64>, i64, i64)> {
    let totals = &side.totals;
    let all = side.sites.iter().filter(|s| is_avoidable(s));
    let whole = sites.len() == all.count();
    let known = |saved: i64, low: i64, high: i64| Some((Some(saved), low, high));
    match (per, totals.iteration, totals.without_profiler) {
        (Per::Iteration, Some(i), _) if whole => return known(i.saved_ns, i.low_ns, i.high_ns),
        (Per::Run, _, Some(run)) if whole => return known(run.saved_ns, run.low_ns, run.high_ns),
        _ => {}
    }
    let together = side.together.iter().find(|set| {
        set.per_iteration == (per == Per::Iteration)
            && set.sites.len() == sites.len()
            && sites.iter().all(|site| set.sites.contains(&site.id))
    });
    if let Some(set) = together {
        return known(set.saved_ns, set.low_ns, set.high_ns);
    }
    let ranks = side.ranks().max(1) as i64;
    let of = match per {
        Per::Iteration => side.turns() as i64,
        Per::Run => 1,
    };
    let savings = || sites.iter().filter_map(|site| site.recoverable.as_ref());
    let sum = |of: &dyn Fn(&Recoverable) -> i64| savings().map(of).fold(0, i64::saturating_add) / ranks;
    let low = savings().map(|r| r.low_ns / of).max()?;
    let saved = sum(&|r| if per == Per::Iteration { r.per_iteration_ns.unwrap_or(0) } else { r.alone_ns });
    let simulated = savings().all(|r| r.simulated);
    let high = sum(&|r| r.high_ns / of);
    Some((simulated.then_some(saved), low.min(high), high))
}
