//! Sums over the sites of a report (totals, a gate's amounts, a comparison's runs), and their table: the
//! columns of CSV, then origin, place and savings. `sites.parquet` is that table.
//!
//! ```text
//!  id  key  class  …  waits  per_iteration  blocked_ns  drain_ns  …  pid  device  …  capture  once   export
//!  S1  K    false         8            4.0        6000       720     435       0     a|host|0  false       0
//!  S2  L    true          1              –          90         0     451       –     a|host|0  true        0
//! ```
//! Sites belong to a report, not to an export: a report kept as JSON has them too.

use crate::model::columns::{COLUMNS, Values};
use crate::model::{ProfileInfo, Report, Site};
use crate::vocabulary::{Attribution, Class, Measure, Per, ProfileIx};
use polars::prelude::{Column, DataFrame, NamedFrom, PolarsResult, Series};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteSums {
    /// Sites of several ranks that share a key count once.
    pub sites: u64,
    pub waits: u64,
    pub blocked_ns: i64,
    pub drain_ns: i64,
    /// Undecided sites of the repeating work whose line of Python was not at hand.
    pub unread: u64,
}

/// The largest amount, and the process ([`crate::model::Process::rank`]) that has it.
pub type Largest = (f64, Option<(ProfileIx, u32)>);

/// Identifies an export: path, machine and start.
pub fn capture(profile: &ProfileInfo) -> String {
    let host = profile.host.as_deref().unwrap_or_default();
    format!("{}|{host}|{}", profile.path, profile.started_utc_ns.unwrap_or_default())
}

pub fn column<T>(name: &str, values: impl Iterator<Item = T>) -> Column
where
    Series: NamedFrom<Vec<T>, [T]>,
{
    Series::new(name.into(), values.collect::<Vec<T>>()).into()
}

/// A row per site, in the report's order.
///
/// # Errors
/// polars refused the columns: a defect, never the data.
pub fn table(report: &Report) -> PolarsResult<DataFrame> {
    let rows = || report.sites.iter();
    // Keeps sums from overflowing; only damaged times come near.
    let longest = i64::MAX / report.sites.len().max(1) as i64;
    let whole = |n: Option<i64>| n.map(|n| n.min(longest));
    let of = |(name, values): &(&str, Values)| match values {
        Values::Text(of) => column(name, rows().map(|s| of(report, s))),
        Values::Whole(of) => column(name, rows().map(|s| whole(of(report, s)))),
        Values::Float(of) => column(name, rows().map(|s| of(report, s))),
        Values::Flag(of) => column(name, rows().map(|s| of(report, s))),
    };
    let more = [
        column("capture", rows().map(|s| report.profiles.get(s.process.profile.index()).map(capture))),
        column("place", rows().map(Site::place)),
        column("saves_ns", rows().map(Site::saves_ns)),
        column("once", rows().map(|s| s.once)),
        column("after_loop", rows().map(|s| s.after_loop)),
        column("chosen", rows().map(|s| s.recoverable.as_ref().is_some_and(|saving| saving.chosen))),
        column("unread", rows().map(is_unread)),
        column("drain_per_iteration_ns", rows().map(|s| whole(s.drain_per_iteration_ns))),
        column("export", rows().map(|s| s.process.profile.index() as i64)),
        column("saves_per_iteration_ns", rows().map(|s| whole(s.saves().1))),
        column("saves_at_most", rows().map(|s| s.saves_at_most())),
    ];
    DataFrame::new(report.sites.len(), COLUMNS.iter().map(of).chain(more).collect())
}

/// Whether a repeating site is undecided for want of its line. A sample's line is never read.
fn is_unread(site: &Site) -> bool {
    let has_line = site.user_frame.is_some() && site.attribution != Attribution::PythonSample;
    site.class == Class::Unknown && has_line && site.source.is_none() && !site.once
}

pub fn sums<'s>(sites: impl IntoIterator<Item = &'s Site>) -> SiteSums {
    let mut keys: BTreeSet<&str> = BTreeSet::new();
    let mut sums = SiteSums::default();
    for site in sites {
        keys.insert(&site.key);
        sums.waits += site.waits;
        sums.blocked_ns = sums.blocked_ns.saturating_add(site.blocked_ns);
        sums.drain_ns = sums.drain_ns.saturating_add(site.drain_ns);
        sums.unread += u64::from(is_unread(site));
    }
    SiteSums { sites: keys.len() as u64, ..sums }
}

pub fn sum<'s>(sites: impl IntoIterator<Item = &'s Site>, measure: Measure, per: Per) -> f64 {
    sites.into_iter().fold(0.0, |sum, site| sum + amount(site, measure, per))
}

/// The largest sum of a process: ranks wait side by side, so that a sum over ranks says nothing.
pub fn worst(sites: &[&Site], measure: Measure, per: Per) -> Largest {
    largest(sites, |site| (site.process.rank(), 0), |site| amount(site, measure, per))
}

/// The largest blocked share of a thread, in percent.
pub fn blocked_percent(sites: &[&Site]) -> Largest {
    largest(sites, |site| (site.process.rank(), site.thread.tid), |site| site.blocked_percent)
}

/// A process, and one of its threads or 0.
type Owner = ((ProfileIx, u32), u32);

/// The largest sum over sites of one owner: the first owner of equals, `None` if all sums are 0.
fn largest(sites: &[&Site], owner: impl Fn(&Site) -> Owner, amount: impl Fn(&Site) -> f64) -> Largest {
    let mut sums: BTreeMap<Owner, f64> = BTreeMap::new();
    sites.iter().for_each(|site| *sums.entry(owner(site)).or_default() += amount(site));
    let most = sums.into_iter().filter(|(_, sum)| *sum > 0.0);
    let most = most.min_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    most.map_or((0.0, None), |((process, _), sum)| (sum, Some(process)))
}

/// The site with most in the process of [`Largest`]; the first key of equals.
pub fn most<'s>(sites: &[&'s Site], measure: Measure, per: Per, (_, process): Largest) -> Option<&'s Site> {
    let own = sites.iter().filter(|site| process.is_none_or(|process| site.process.rank() == process));
    let amount = |site: &Site| amount(site, measure, per);
    own.min_by(|a, b| amount(b).total_cmp(&amount(a)).then(a.key.cmp(&b.key))).copied()
}

/// The measure of one site, as a count or in ns.
fn amount(site: &Site, measure: Measure, per: Per) -> f64 {
    let ns = |run: i64, iteration: Option<i64>| match per {
        Per::Iteration => iteration.map_or(0.0, |ns| ns as f64),
        Per::Run => run as f64,
    };
    match measure {
        Measure::FalseWaits if site.class != Class::False => 0.0,
        Measure::Waits | Measure::FalseWaits => match per {
            Per::Iteration => site.per_iteration.unwrap_or_default(),
            Per::Run => site.waits as f64,
        },
        Measure::Blocked => ns(site.blocked_ns, site.blocked_per_iteration_ns),
        Measure::Drain => ns(site.drain_ns, site.drain_per_iteration_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample;
    use std::cmp::Reverse;

    #[test]
    fn classes_and_processes_are_summed_apart() {
        let report = sample::sample();
        let of = |class: Class| report.sites.iter().filter(move |site| site.class == class);
        for &class in Class::ALL {
            let blocked: i64 = of(class).map(|site| site.blocked_ns).sum();
            assert_eq!(sums(of(class)).blocked_ns, blocked, "{class}");
        }
        let all: Vec<&Site> = report.sites.iter().collect();
        let (most, process) = worst(&all, Measure::Blocked, Per::Run);
        let of = |rank| -> i64 {
            all.iter().filter(|site| site.process.rank() == rank).map(|site| site.blocked_ns).sum()
        };
        let ranks = all.iter().map(|site| site.process.rank());
        assert_eq!(Some(most as i64), ranks.clone().map(of).max());
        assert_eq!(process, ranks.max_by_key(|&rank| (of(rank), Reverse(rank))));
    }

    #[test]
    fn nothing_waits_in_no_process() {
        assert_eq!(worst(&[], Measure::FalseWaits, Per::Iteration), (0.0, None));
        assert_eq!(sum([], Measure::Drain, Per::Run), 0.0);
    }
}
