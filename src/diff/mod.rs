//! Compares two captures, site by site.
//!
//! `snapshot` reads a side, `units` groups its sites, `matching` pairs groups across edits, `noise` finds
//! jitter, `fixed` follows avoidable waits, `comparable` finds aspects that cannot be compared.

mod comparable;
mod fixed;
mod matching;
mod noise;
mod snapshot;
mod units;

pub use snapshot::Snapshot;

use crate::cost::statistics::percent;
use crate::frame::sites;
use crate::model::diff::*;
use crate::model::{Frame, Tool};
use crate::vocabulary::{Measure, Per};
use comparable::Comparable;
use fixed::Fixed;
use matching::{Pair, Roots};
use rustc_hash::FxHashMap;
use typed_index_collections::TiVec;
use units::{Cost, KindGroup, SiteGroup, UnitIx, is_indirect};

/// Pure: the same two reports give the same result.
pub fn compare(before: &Snapshot, after: &Snapshot) -> DiffReport {
    let grain = Granularity::of(before, after);
    let roots = Roots::find(before, after);
    let comparable = comparable::check(before, after, grain, &roots);
    let (b, a) = (units::units(before, grain), units::units(after, grain));
    let pairs = match grain {
        Granularity::Call => matching::pairs_by_call(&b, &a),
        Granularity::Line | Granularity::Function => matching::pairs((before, &b), (after, &a), &roots),
    };
    let fixed = Fixed::new((before, &b), (after, &a), &pairs, &comparable);
    let mut sites = changes(&pairs, &fixed, &roots);
    sites.sort_by_cached_key(order);
    name_callers(&mut sites, |s| s.before.as_mut());
    name_callers(&mut sites, |s| s.after.as_mut());
    let count = |status| sites.iter().filter(|s: &&SiteChange| s.status == status).count();
    let counts = Counts {
        new: count(Status::New),
        gone: count(Status::Gone),
        changed: count(Status::Changed),
        moved: count(Status::Moved),
        unchanged: count(Status::Unchanged),
    };
    let run = run(before, after, comparable.costs);
    let fates: Vec<_> = sites.iter().filter_map(|s| Some((s.before.as_ref()?, s.fate.clone()?))).collect();
    let fates = fixed.all(&fates, &run);
    DiffReport {
        schema_version: 1,
        tool: Tool::default(),
        before: capture(before),
        after: capture(after),
        grain,
        costs_compared: comparable.costs,
        run,
        fates,
        counts,
        sites,
        warnings: comparable.warnings,
    }
}

/// By status, new and gone first; then by change in cost.
fn order(change: &SiteChange) -> (Status, i64, String) {
    let cost = |s: &SiteState| s.blocked_ns.saturating_add(s.drain_ns);
    let [b, a] = [&change.before, &change.after].map(|s| s.as_ref().map_or(0, cost));
    let key = change.shown().map_or(String::new(), |s| s.key.clone());
    (change.status, -(a.saturating_sub(b)).saturating_abs(), key)
}

/// Keeps the caller only for sites of one side that share their location.
fn name_callers(sites: &mut [SiteChange], side: impl Fn(&mut SiteChange) -> Option<&mut SiteState>) {
    let mut seen: FxHashMap<Location, usize> = FxHashMap::default();
    for location in sites.iter_mut().filter_map(|s| side(s)?.location.clone()) {
        *seen.entry(location).or_default() += 1;
    }
    for state in sites.iter_mut().filter_map(side) {
        if state.location.as_ref().is_none_or(|l| seen.get(l) == Some(&1)) {
            state.caller = None;
        }
    }
}

fn changes(pairs: &[Pair], fixed: &Fixed, roots: &Roots) -> Vec<SiteChange> {
    let sides = [fixed.before, fixed.after];
    let mut paired = sides.map(|(_, units)| units.iter().map(|_| false).collect::<TiVec<UnitIx, _>>());
    let mut out = Vec::new();
    let mut fates = fixed.fates();
    for pair in pairs {
        (paired[0][pair.before], paired[1][pair.after]) = (true, true);
        let change = compared(pair, fixed, roots);
        out.push(SiteChange { fate: fates.remove(&pair.before), ..change });
    }
    let left = |side: usize| {
        let (report, units) = sides[side];
        let free = units.iter_enumerated().zip(&paired[side]).filter(|(_, paired)| !**paired);
        let lines = fixed.comparable.lines;
        free.map(move |((i, unit), _)| (i, unit.per, Some(state(unit, unit.per, report, lines))))
    };
    let alone = |status, per, before, after, fate| {
        let (changed, noise) = (Vec::new(), Noise::default());
        SiteChange { status, matched: None, per, changed, before, after, noise, fate }
    };
    out.extend(left(0).map(|(i, per, before)| alone(Status::Gone, per, before, None, fates.remove(&i))));
    out.extend(left(1).map(|(_, per, after)| alone(Status::New, per, None, after, None)));
    out
}

fn compared(pair: &Pair, fixed: &Fixed, roots: &Roots) -> SiteChange {
    let (before, after) = (&fixed.before.1[pair.before], &fixed.after.1[pair.after]);
    let Comparable { costs, counts, lines, .. } = *fixed.comparable;
    // A unit in iterations on one side only is compared per run.
    let same_unit = before.per == after.per;
    let per = if same_unit { before.per } else { Per::Run };
    let samples = before.samples.min(after.samples);
    let judged = costs && same_unit;
    let floor = |b, a| noise::floor(b, a, samples, before.waits.max(after.waits)).filter(|_| judged);
    let (blocked, drain) = (floor(before.blocked, after.blocked), floor(before.drain, after.drain));
    let exceeds = |b: Cost, a: Cost, floor: Option<f64>| floor.is_some_and(|f| (a.ns - b.ns).abs() > f);
    let differs = |aspect: &Aspect| match aspect {
        Aspect::Waits => same_unit && counts && noise::waits_differ(before, after),
        Aspect::Blocked => exceeds(before.blocked, after.blocked, blocked),
        Aspect::Drain => exceeds(before.drain, after.drain, drain),
        Aspect::Verdict => lines && verdict_differs(before, after),
    };
    let changed: Vec<Aspect> = Aspect::ALL.iter().copied().filter(differs).collect();
    let (b, a) = (state(before, per, fixed.before.0, lines), state(after, per, fixed.after.0, lines));
    let place = |l: &Location| (roots.map(&l.file).into_owned(), l.function.clone(), l.line);
    let moved = match (&b.location, &a.location) {
        (Some(old), Some(new)) => place(old) != place(new),
        (old, new) => old != new,
    };
    let status = match () {
        () if !changed.is_empty() => Status::Changed,
        () if lines && moved => Status::Moved,
        () => Status::Unchanged,
    };
    let noise = Noise { blocked_ns: blocked.map(|ns| ns as i64), drain_ns: drain.map(|ns| ns as i64) };
    let (matched, before, after) = (Some(pair.how), Some(b), Some(a));
    SiteChange { status, matched, per, changed, before, after, noise, fate: None }
}

/// Verdicts are compared only on the same kind of evidence: a source available for one side only, or work
/// that happened to run nearby, may change the verdict of the same wait.
fn verdict_differs(before: &SiteGroup, after: &SiteGroup) -> bool {
    let read = |u: &SiteGroup| u.site.source.is_some();
    let verdict = |u: &SiteGroup| (u.site.class, KindGroup::of(u.site));
    let alike = read(before) == read(after) && !is_indirect(before.site) && !is_indirect(after.site);
    alike && verdict(before) != verdict(after)
}

fn state(unit: &SiteGroup, per: Per, side: &Snapshot, lines: bool) -> SiteState {
    // Amounts per run, if the other side has no iterations.
    let scale = if per == unit.per { 1.0 } else { side.turns() as f64 };
    let ns = |ns: f64| (ns * scale).round() as i64;
    // Probable lines are not shown.
    let place = |f: &Frame| Location { line: if lines { f.line } else { 0 }, ..Location::of(f) };
    let site = unit.site;
    SiteState {
        ids: unit.ids.iter().map(|id| (*id).to_owned()).collect(),
        key: site.key.clone(),
        location: unit.location().map(place),
        library: site.library_frame.as_ref().map(Location::of),
        caller: site.paths().first().and_then(|path| path.first()).map(|frame| Location::of(frame)),
        name: site.name(),
        source: site.source.clone(),
        api: site.api.clone(),
        class: site.class,
        kind: site.kind,
        pattern: site.pattern,
        waits: unit.waits * scale,
        blocked_ns: ns(unit.blocked.ns),
        drain_ns: ns(unit.drain.ns),
        recoverable_ns: unit.recoverable.map(ns),
        fix: site.fix.as_ref().map(|f| f.title.clone()),
    }
}

fn capture(side: &Snapshot) -> CaptureInfo {
    CaptureInfo {
        profiles: side.profiles.iter().map(|p| p.path.clone()).collect(),
        command: side.profiles.first().and_then(|p| p.command.clone()),
        gpus: side.gpus().into_iter().cloned().collect(),
        ranks: side.ranks(),
        iterations: side.iterations.as_ref().map(|i| i.count),
    }
}

fn run(before: &Snapshot, after: &Snapshot, costs: bool) -> RunChange {
    let per =
        if before.iterations.is_some() && after.iterations.is_some() { Per::Iteration } else { Per::Run };
    let (b, a) = (whole(before, per), whole(after, per));
    let noise = before.iterations.as_ref().zip(after.iterations.as_ref()).and_then(|(b, a)| {
        let [before, after] = [b, a].map(|i| units::typical(i.quartiles_ns, 1.0));
        noise::floor(before, after, b.count.min(a.count), 1.0)
    });
    let noise = noise.filter(|_| costs).map(|ns| ns as i64);
    let changed = noise.is_some_and(|floor| a.span_ns.saturating_sub(b.span_ns).saturating_abs() > floor);
    RunChange { per, before: b, after: a, span_noise_ns: noise, span_changed: changed }
}

fn whole(side: &Snapshot, per: Per) -> WholeRun {
    let iterations = side.iterations.as_ref().filter(|_| per == Per::Iteration);
    let ranks = side.ranks().max(1) as f64;
    // Costs of sites are means over ranks too.
    let mean = |measure| sites::sum(&side.sites, measure, per) / ranks;
    let gpus = side.profiles.iter().map(|p| p.gpus.len()).max().unwrap_or(0).max(1) as i64;
    let longest = side.profiles.iter().map(|p| p.span_ns).max().unwrap_or(0);
    let (span, busy, of) = match iterations {
        Some(i) => (i.median_ns, i.gpu_busy_ns, i.mean_ns.saturating_mul(gpus)),
        None => {
            let totals = &side.totals;
            (longest, totals.gpu_busy_ns, totals.gpu_busy_ns.saturating_add(totals.gpu_idle_ns))
        }
    };
    WholeRun {
        span_ns: span,
        gpu_busy_percent: (of > 0).then(|| percent(busy, of)),
        waits: mean(Measure::Waits),
        false_waits: mean(Measure::FalseWaits),
        blocked_ns: mean(Measure::Blocked).round() as i64,
        drain_ns: mean(Measure::Drain).round() as i64,
        recoverable_ns: side.totals.recoverable_false_joint_ns,
        run_ns: side.totals.without_profiler.map_or(longest, |alone| alone.run_ns),
    }
}
