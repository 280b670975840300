//! Prices in the report's own structs.

use super::Analysed;
use super::pricing::Wishes;
use crate::cost::price::{BoundBy, Price};
use crate::report::{Bounds, Recoverable, Report, Site, Totals, Warning, WithoutProfiler};
use crate::waits::device::pid_of;

/// Gives each site its price; the next site is named by key until ids are known.
pub fn of_sites(found: &Analysed, sites: Vec<Site>) -> Vec<Site> {
    let keys: Vec<String> = sites.iter().map(|s| s.key.clone()).collect();
    let priced = sites.into_iter().zip(&found.prices.sites);
    priced
        .map(|(site, price)| {
            let recoverable = Some(recoverable(found, price, &site, &keys));
            Site { recoverable, ..site }
        })
        .collect()
}

fn recoverable(found: &Analysed, price: &Price, site: &Site, keys: &[String]) -> Recoverable {
    let span = found.prices.recorded.max(1);
    let own = found.iterations.as_ref().filter(|i| pid_of(i.tid) == site.process.pid);
    // Of what is saved, as much falls into iterations as waits do.
    let each = own.and_then(|i| {
        let inside = site.per_iteration? * i.spans.len() as f64 / site.waits.max(1) as f64;
        Some((price.alone as f64 * inside.min(1.0) / i.spans.len().max(1) as f64) as i64)
    });
    Recoverable {
        alone_ns: price.alone,
        joint_ns: price.joint,
        low_ns: price.low,
        high_ns: price.high,
        per_iteration_ns: each,
        percent: (price.alone as f64 / span as f64 * 100.0).clamp(0.0, 100.0),
        change: price.fix.as_str(),
        simulated: price.simulated,
        moves_to: price.moves_to.and_then(|s| keys.get(s).cloned()),
        bounds: Bounds {
            each_high_ns: price.bounds.each_high,
            each_low_ns: price.bounds.each_low,
            together_high_ns: price.bounds.together_high,
            beside_ns: price.bounds.beside,
        },
    }
}

/// Adds what fixing all false sites of an export saves. Ranks run side by side: the slowest to gain counts, not a sum.
pub fn of_run(found: &Analysed, totals: &mut Totals) {
    let prices = &found.prices;
    totals.collectives += found.collectives;
    if found.sites.is_empty() {
        return;
    }
    let most = |known: &mut Option<i64>, ns: i64| *known = Some(known.map_or(ns, |k| k.max(ns)));
    let first = totals.recoverable_high_ns.is_none();
    let larger = first || totals.recoverable_high_ns.is_some_and(|h| prices.high > h);
    most(&mut totals.recoverable_low_ns, prices.low);
    most(&mut totals.recoverable_high_ns, prices.high);
    if let Some(error) = prices.error {
        totals.simulation_error = Some(totals.simulation_error.map_or(error, |e| e.max(error)));
    }
    if let Some(error) = prices.usual_error {
        totals.usual_latency_error = Some(totals.usual_latency_error.map_or(error, |e| e.max(error)));
    }
    if !prices.usable() {
        return;
    }
    most(&mut totals.recoverable_false_joint_ns, prices.joint);
    most(&mut totals.by_class.false_.recoverable_ns, prices.joint);
    if larger {
        totals.range_scatter_ns = found.iterations.as_ref().map(|_| prices.scatter);
        totals.without_profiler = prices.unprofiled.map(|u| WithoutProfiler {
            run_ns: u.run,
            saved_ns: u.saved,
            low_ns: u.low,
            high_ns: u.high,
        });
        let percent = prices.joint as f64 / prices.recorded.max(1) as f64 * 100.0;
        totals.recoverable_percent = Some(percent.clamp(0.0, 100.0));
        totals.bound_by = prices.bound_by.map(|b| match b {
            BoundBy::Host => "host",
            BoundBy::Gpu => "gpu",
        });
    }
}

/// Replaces keys of next sites by ids.
pub fn name_next(sites: &mut [Site]) {
    let ids: Vec<(usize, String, String)> =
        sites.iter().map(|s| (s.process.profile, s.key.clone(), s.id.clone())).collect();
    for site in sites {
        let profile = site.process.profile;
        if let Some(saving) = &mut site.recoverable
            && let Some(key) = saving.moves_to.take()
        {
            let next = ids.iter().find(|(p, k, _)| *p == profile && *k == key);
            saving.moves_to = next.map(|(_, _, id)| id.clone());
        }
    }
}

/// Takes the sites that are assumed fixed out of the report, and says so. The others keep their ids.
pub fn leave_out_assumed(report: &mut Report, wishes: &Wishes) {
    let (gone, left): (Vec<Site>, Vec<Site>) = std::mem::take(&mut report.sites)
        .into_iter()
        .partition(|s| wishes.assumes(s.process.profile, &s.key));
    report.sites = left;
    if !gone.is_empty() {
        let ids: Vec<&str> = gone.iter().map(|s| s.id.as_str()).collect();
        report.warnings.push(Warning {
            code: "assumed-fixed",
            message: format!(
                "taken as fixed: {}; savings are what comes on top of that, other times are as recorded",
                ids.join(", ")
            ),
            fix: String::new(),
        });
    }
}
