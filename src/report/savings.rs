//! Prices in the report's own structs.

use crate::analysis::Priced;
use crate::analysis::pricing::ResolvedScenario;
use crate::cost::prices::{Price, Prices, Saving};
use crate::cost::statistics::percent;
use crate::frame::sites::sums;
use crate::model::{
    CapturedRun, Code, IterationSaving, Recoverable, Report, Site, Together, Warning, WithoutProfiler,
};
use crate::verdict::site::Site as FoundSite;
use crate::vocabulary::{Class, ProfileIx, SiteId};
use rustc_hash::FxHashSet;

pub fn of_sites(found: &Priced, sites: Vec<Site>) -> Vec<Site> {
    if found.prices.is_empty() {
        return sites;
    }
    let iterations = found.iterations.as_ref().and_then(|i| i64::try_from(i.spans.len()).ok());
    let priced = |(site, (judged, price)): (Site, (&FoundSite, &Price))| {
        let own = site.per_iteration.is_some_and(|each| each > 0.0) && in_loop(found, judged);
        let recoverable = Recoverable {
            alone_ns: price.alone,
            joint_ns: price.joint,
            low_ns: price.low,
            high_ns: price.high,
            per_iteration_ns: price.iteration.filter(|_| own),
            per_iteration_high_ns: iterations.filter(|_| own).map(|n| price.high / n.max(1)),
            percent: percent(price.alone, found.prices.run.length),
            change: price.fix,
            simulated: price.simulated,
            chosen: price.counted && site.class != Class::False,
            moves_to: None,
        };
        Site { recoverable: Some(recoverable), ..site }
    };
    sites.into_iter().zip(found.sites.iter().zip(&found.prices.sites)).map(priced).collect()
}

/// Keys of the sites in the totals, listed or not: several ranks share one.
#[derive(Default)]
pub struct Keys {
    repeating: FxHashSet<String>,
    chosen: FxHashSet<String>,
    once: FxHashSet<String>,
    after_loop: FxHashSet<String>,
    /// Largest saving of an export, with undecided and rewritable waits.
    most: Option<i64>,
}

impl Keys {
    fn add(&mut self, sites: &[Site], prices: &Prices) {
        for (site, price) in sites.iter().zip(&prices.sites) {
            let chosen = site.recoverable.as_ref().is_some_and(|saving| saving.chosen);
            let sets = [
                (price.counted, &mut self.repeating),
                (chosen, &mut self.chosen),
                (site.once, &mut self.once),
                (site.once && site.after_loop, &mut self.after_loop),
            ];
            sets.into_iter().filter(|set| set.0).for_each(|set| _ = set.1.insert(site.key.clone()));
        }
    }
}

/// Adds the saving of an export with all avoidable `sites` fixed, listed or not. `keys` holds earlier
/// exports. Ranks run side by side: the largest saving counts, not the sum.
///
/// `busiest_ns` is [`crate::model::Iterations::busiest_stream_ns`] of the export.
pub fn of_run(found: &Priced, sites: &[Site], busiest_ns: i64, keys: &mut Keys, report: &mut Report) {
    let (prices, totals) = (&found.prices, &mut report.totals);
    totals.collectives += found.collectives.count;
    totals.savings_unknown |= !found.profile.can_price();
    if found.sites.is_empty() || prices.is_empty() {
        return;
    }
    let run = &prices.run;
    keys.add(sites, prices);
    totals.repeating_false_sites = keys.repeating.len() as u64;
    totals.chosen_sites = keys.chosen.len() as u64;
    let once = || sites.iter().filter(|site| site.once);
    let (all, after) = (sums(once()), sums(once().filter(|site| site.after_loop)));
    let once = &mut totals.once;
    (once.sites, once.after_loop_sites) = (keys.once.len() as u64, keys.after_loop.len() as u64);
    once.blocked_ns = once.blocked_ns.saturating_add(all.blocked_ns);
    once.after_loop_blocked_ns = once.after_loop_blocked_ns.saturating_add(after.blocked_ns);
    let worth = [run.high, run.rewritten, run.open].into_iter().fold(0, i64::saturating_add);
    let larger = keys.most < Some(worth);
    if larger {
        keys.most = Some(worth);
        (totals.recoverable_low_ns, totals.recoverable_high_ns) = (Some(run.low), Some(run.high));
    }
    let worse = |known: Option<f64>, error: Option<f64>| known.into_iter().chain(error).reduce(f64::max);
    totals.simulation_error = worse(totals.simulation_error, prices.error);
    totals.usual_latency_error = worse(totals.usual_latency_error, prices.usual_error);
    if !prices.usable() {
        return;
    }
    if larger {
        totals.recoverable_false_joint_ns = Some(run.saved);
        totals.by_class.false_.recoverable_ns = Some(run.saved).filter(|_| totals.chosen_sites == 0);
        totals.sampled_iterations = prices.sampled;
        totals.range_scatter_ns = found.iterations.as_ref().map(|_| prices.scatter);
        let Saving { length: run_ns, saved: saved_ns, low: low_ns, high: high_ns, rewritten, open } =
            prices.run;
        (totals.rewritable_ns, totals.undecided_ns) = (Some(rewritten), Some(open));
        let open = found.sites.iter().zip(&prices.sites).filter(|(_, price)| price.open);
        totals.rewritable_sites = open.filter(|(site, _)| site.verdict.class == Class::True).count() as u64;
        totals.without_profiler = Some(WithoutProfiler { run_ns, saved_ns, low_ns, high_ns });
        let captured = &prices.captured;
        totals.captured = Some(CapturedRun { run_ns: captured.length, saved_ns: captured.saved });
        totals.iteration = iteration(found, busiest_ns);
        totals.recoverable_percent = Some(percent(saved_ns, run_ns));
        totals.bound_by = prices.bound_by;
    }
}

/// Whether a counted site waits in the loop; true if no site counts.
fn looped(found: &Priced) -> bool {
    let counted = || found.sites.iter().zip(&found.prices.sites).filter(|(_, price)| price.counted);
    counted().next().is_none() || counted().any(|(site, _)| in_loop(found, site))
}

/// `None` without a loop, without prices, or if nothing is saved in the loop.
pub fn iteration(found: &Priced, busiest_ns: i64) -> Option<IterationSaving> {
    let prices = Some(&found.prices).filter(|prices| prices.usable() && looped(found))?;
    let (alone, captured) = prices.iteration.zip(prices.captured_iteration)?;
    // A host ahead of its GPU starts iterations faster than the GPU ends them.
    let captured_ns = found.iterations.as_ref()?.start_to_start_ns().max(alone.length);
    // Kernels of one stream run one after the other: their time cannot be saved. If the profiler takes more
    // than a tenth, the length is too unsure to limit the range.
    let sure = captured_ns.saturating_sub(alone.length) <= alone.length / 10;
    let most = alone.length.saturating_sub(busiest_ns).max(alone.saved);
    Some(IterationSaving {
        ns: alone.length,
        saved_ns: alone.saved,
        low_ns: alone.low,
        high_ns: if sure { alone.high.min(most) } else { alone.high },
        rewritable_ns: alone.rewritten,
        undecided_ns: alone.open,
        captured_ns,
        captured_saved_ns: captured.saved,
    })
}

/// Whether a site waits between the starts of the loop's first and last iteration, whose mean distance is an
/// iteration's length. Waits between iterations and of other processes count. Waits in the last iteration do
/// not, unlike in [`Priced::waits_in_loop`]. Other loops may lie outside.
fn in_loop(found: &Priced, site: &FoundSite) -> bool {
    let spans = found.iterations.as_ref().map_or(&[][..], |i| &i.spans);
    let Some((first, last)) = spans.first().zip(spans.last()) else { return false };
    site.bundle.waits.iter().any(|&w| (first.0..last.0).contains(&found.waits[w].start))
}

/// Pairs of a site and the site to which most of its waiting moves.
pub fn moves(found: &Priced, profile: ProfileIx) -> impl Iterator<Item = (SiteId, SiteId)> {
    let ix = move |site| SiteId { profile, site };
    found.prices.sites.iter_enumerated().filter_map(move |(n, p)| Some((ix(n), ix(p.moves_to?))))
}

pub fn together(found: &Priced, profile: ProfileIx) -> impl Iterator<Item = (Vec<SiteId>, Together)> {
    let per_iteration = found.prices.iteration.is_some();
    found.prices.together.iter().map(move |set| {
        let Saving { saved: saved_ns, low: low_ns, high: high_ns, .. } = set.saving;
        let ixs = set.sites.iter().map(|&site| SiteId { profile, site }).collect();
        let (sites, alone_ns) = (Vec::new(), set.alone.clone());
        (ixs, Together { sites, per_iteration, saved_ns, low_ns, high_ns, alone_ns })
    })
}

/// Takes sites assumed fixed out of the report, with a warning. The others keep their ids.
pub fn leave_out_assumed(report: &mut Report, scenario: &ResolvedScenario) {
    let (gone, left): (Vec<Site>, Vec<Site>) =
        std::mem::take(&mut report.sites).into_iter().partition(|s| scenario.assumed.contains(&s.ix));
    report.sites = left;
    if !gone.is_empty() {
        let ids = gone.iter().map(|s| s.id.as_str()).collect::<Vec<_>>().join(", ");
        let said = format!(
            "taken as fixed: {ids}; savings are what comes on top of that, other times are as recorded"
        );
        report.warnings.push(Warning::new(Code::AssumedFixed, said, ""));
    }
}
