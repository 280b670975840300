//! How much sites wait, taken together.

use crate::report::{Report, Site};
use crate::vocabulary::{Class, Per};
use std::collections::BTreeMap;

/// Per iteration or run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Amounts {
    pub waits: f64,
    pub false_waits: f64,
    pub blocked_ns: i64,
    pub drain_ns: i64,
}

impl Amounts {
    /// What one site adds.
    pub fn of(site: &Site, per: Per) -> Self {
        let (waits, blocked_ns, drain_ns) = match per {
            Per::Iteration => (
                site.per_iteration.unwrap_or(0.0),
                site.blocked_per_iteration_ns.unwrap_or(0),
                site.drain_per_iteration_ns.unwrap_or(0),
            ),
            Per::Run => (site.waits as f64, site.blocked_ns, site.drain_ns),
        };
        let false_waits = if site.class == Class::False { waits } else { 0.0 };
        Self { waits, false_waits, blocked_ns, drain_ns }
    }

    /// Of each process; of each amount the largest. Ranks wait side by side, so their sum says nothing.
    pub fn worst(report: &Report, per: Per, counts: &dyn Fn(&Site) -> bool) -> Self {
        let mut ranks: BTreeMap<(usize, u32), Self> = BTreeMap::new();
        for site in report.sites.iter().filter(|s| counts(s)) {
            let sum = ranks.entry((site.process.profile, site.process.pid)).or_default();
            let more = Self::of(site, per);
            sum.waits += more.waits;
            sum.false_waits += more.false_waits;
            sum.blocked_ns = sum.blocked_ns.saturating_add(more.blocked_ns);
            sum.drain_ns = sum.drain_ns.saturating_add(more.drain_ns);
        }
        ranks.into_values().fold(Self::default(), |a, b| Self {
            waits: a.waits.max(b.waits),
            false_waits: a.false_waits.max(b.false_waits),
            blocked_ns: a.blocked_ns.max(b.blocked_ns),
            drain_ns: a.drain_ns.max(b.drain_ns),
        })
    }
}
