//! The gate: does a report keep what was agreed?
//!
//! Three kinds of rules: a [`budget`] file, conditions from the command line ([`fail_on`]), and a baseline to compare
//! with. Each breach says what, where, the limit, the actual value and the fix. Pure: reports in, verdict out.

pub mod amounts;
pub mod budget;
pub mod fail_on;
pub mod init;

use crate::diff::{self, Side};
use crate::report::check::{Allowed, Breach, BreachSite, CheckReport, Rule, Unit};
use crate::report::diff::{Aspect, SiteChange, Status};
use crate::report::{Report, Site, Tool, Warning, sarif};
use crate::text;
use crate::vocabulary::{Class, Per};
use amounts::Amounts;
use budget::{Allow, Budget, Limits, PartLimit};
use chrono::NaiveDate;
use fail_on::{Bound, FailOn, Measure};
use std::collections::BTreeMap;
use thiserror::Error;

/// Why a gate cannot be judged: wrong use, not a breach.
#[derive(Debug, Error)]
pub enum CheckError {
    #[error(
        "the budget is per iteration, and this capture has none; wrap the loop's body in NVTX ranges `step N`, or write per = \"run\" into the budget"
    )]
    NoIterations,
    #[error(
        "`{0}` is per iteration, and this capture has none; wrap the loop's body in NVTX ranges `step N`, or write a limit in percent (drain>5%)"
    )]
    NoIterationsFor(String),
    #[error(
        "nothing to check: the budget limits nothing; write [limits] into it, or begin with --init-budget"
    )]
    NoRules,
    #[error("--fail-on new-false needs --baseline: what is new shows only beside an earlier report")]
    NoBaseline,
}

/// Warnings on what fixes would save, which no rule asks for.
const OF_SAVINGS: &[&str] = &[
    "not-simulated",
    "simulation-off",
    "profiler-overhead",
    "prices-partly-bounds",
    "bandwidth-assumed",
    "collectives-as-recorded",
];

/// All that a report is held against.
pub struct Rules<'a> {
    pub budget: Option<&'a Budget>,
    pub fail_on: &'a [FailOn],
    pub baseline: Option<&'a Side>,
    /// The day on which allowances are looked at.
    pub today: NaiveDate,
}

/// A time with its unit, in ns: "200us".
fn duration(text: &str) -> Result<i64, String> {
    let bare = text.trim().ends_with(|c: char| c.is_ascii_digit());
    let ns = text::parse_time(text.trim()).ok().filter(|ns| !bare && *ns >= 0);
    ns.ok_or_else(|| format!("`{text}` is no time; write a number with a unit (200us, 1.5ms)"))
}

/// Holds a report against the rules. `ranges` has a report of each NVTX range that the budget names.
///
/// # Errors
/// [`CheckError`] where a rule cannot be applied to this capture.
pub fn check(
    report: &Report,
    ranges: &BTreeMap<String, Report>,
    rules: &Rules,
) -> anyhow::Result<CheckReport> {
    let mut gate = Gate::new(report, rules);
    if let Some(budget) = rules.budget {
        gate.budget(budget, ranges)?;
    }
    for condition in rules.fail_on {
        gate.condition(*condition, rules.baseline)?;
    }
    if gate.rules.is_empty() && gate.allowed.is_empty() && gate.breaches.is_empty() {
        return Err(CheckError::NoRules.into());
    }
    // The same site may break several conditions in the same words.
    let mut breaches: Vec<Breach> = Vec::new();
    for breach in gate.breaches {
        if !breaches.contains(&breach) {
            breaches.push(breach);
        }
    }
    Ok(CheckReport {
        schema_version: 1,
        tool: Tool { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION") },
        profiles: report.profiles.iter().map(|p| p.path.clone()).collect(),
        program: sarif::program(report),
        passed: breaches.is_empty(),
        rules: gate.rules,
        breaches,
        allowed: gate.allowed,
        warnings: gate.warnings,
    })
}

/// What the budget lets wait, today.
#[derive(Clone, Copy)]
struct Excuses<'a> {
    list: &'a [Allow],
    today: NaiveDate,
}

impl Excuses<'_> {
    fn hold(&self, site: &Site) -> bool {
        self.list.iter().any(|a| a.expires >= self.today && a.holds(site))
    }
}

/// Rules applied so far.
struct Gate<'a> {
    report: &'a Report,
    excuses: Excuses<'a>,
    rules: Vec<String>,
    breaches: Vec<Breach>,
    allowed: Vec<Allowed>,
    warnings: Vec<Warning>,
}

impl<'a> Gate<'a> {
    fn new(report: &'a Report, rules: &Rules<'a>) -> Self {
        let limits = report.warnings.iter().filter(|w| !OF_SAVINGS.contains(&w.code));
        Self {
            report,
            excuses: Excuses { list: rules.budget.map_or(&[], |b| &b.allow), today: rules.today },
            rules: Vec::new(),
            breaches: Vec::new(),
            allowed: Vec::new(),
            warnings: limits.cloned().collect(),
        }
    }

    fn budget(&mut self, budget: &Budget, ranges: &BTreeMap<String, Report>) -> anyhow::Result<()> {
        let limited = budget.limits != Limits::default() || !budget.limit.is_empty();
        if limited && budget.per == Per::Iteration && self.report.iterations.is_none() {
            return Err(CheckError::NoIterations.into());
        }
        self.limits(self.report, budget.per, &budget.limits, None);
        for limit in &budget.limit {
            let report = limit.nvtx.as_ref().map_or(Some(self.report), |range| ranges.get(range));
            if let Some(report) = report {
                self.limits(report, budget.per, &limit.limits(), Some(limit));
            }
        }
        for allow in &budget.allow {
            let sites: Vec<&Site> = self.report.sites.iter().filter(|s| allow.holds(s)).collect();
            if allow.expires < self.excuses.today {
                self.breaches.push(Breach {
                    rule: Rule::AllowExpired,
                    what: format!("allowance of {} ({})", allow.name(), allow.reason),
                    limit: format!("until {}", allow.expires),
                    actual: format!("today is {}", self.excuses.today),
                    unit: Unit::Date,
                    limit_value: None,
                    actual_value: None,
                    site: sites.first().map(|s| BreachSite::of(s)),
                });
                continue;
            }
            if sites.is_empty() {
                self.warnings.push(Warning {
                    code: "unused-allowance",
                    message: format!("the budget allows {}, where nothing waits any more", allow.name()),
                    fix: "take the entry out of the budget".to_owned(),
                });
            }
            self.allowed.push(Allowed {
                name: allow.name(),
                reason: allow.reason.clone(),
                expires: allow.expires.to_string(),
                sites: sites.iter().map(|s| s.id.clone()).collect(),
            });
        }
        Ok(())
    }

    /// The limits of the whole program or of a part of it.
    fn limits(&mut self, report: &Report, per: Per, limits: &Limits, part: Option<&PartLimit>) {
        let excuses = self.excuses;
        let counts = |s: &Site| part.is_none_or(|p| p.holds(s)) && !excuses.hold(s);
        let now = Amounts::worst(report, per, &counts);
        let place = part.map_or_else(String::new, |p| format!(" {}", p.name()));
        let all: [(Measure, Option<f64>, f64, Unit); 4] = [
            (Measure::Waits, limits.waits, now.waits, Unit::Count),
            (Measure::FalseWaits, limits.false_waits, now.false_waits, Unit::Count),
            (Measure::Blocked, limits.blocked.map(|ns| ns as f64), now.blocked_ns as f64, Unit::Ns),
            (Measure::Drain, limits.drain.map(|ns| ns as f64), now.drain_ns as f64, Unit::Ns),
        ];
        for (measure, limit, actual, unit) in all {
            let Some(limit) = limit else { continue };
            let what = format!("{} per {}{place}", words(measure), per.as_str());
            self.rules.push(format!("{what} ≤ {}", unit.print(limit)));
            // Rates are quotients: what equals the limit on paper may exceed it in the last bit.
            if actual > limit + 1e-9 {
                let most = most(report, measure, per, &counts);
                self.breaches.push(over(Rule::Limit, what, unit, limit, actual, most));
            }
        }
    }

    fn condition(&mut self, condition: FailOn, baseline: Option<&Side>) -> anyhow::Result<()> {
        match condition {
            FailOn::AnyFalse => {
                self.rules.push("no avoidable wait".to_owned());
                let sites: Vec<&Site> = self
                    .report
                    .sites
                    .iter()
                    .filter(|s| s.class == Class::False && !self.excuses.hold(s))
                    .collect();
                self.breaches.extend(sites.into_iter().map(|s| {
                    over(
                        Rule::AnyFalse,
                        format!("avoidable waits ({})", s.kind),
                        Unit::Count,
                        0.0,
                        s.waits as f64,
                        Some(s),
                    )
                }));
            }
            FailOn::NewFalse => self.new_false(baseline.ok_or(CheckError::NoBaseline)?)?,
            FailOn::Over(measure, bound) => self.over(measure, bound)?,
        }
        Ok(())
    }

    /// Sites that the baseline lacks, that became avoidable, or that wait more often than they did.
    fn new_false(&mut self, baseline: &Side) -> anyhow::Result<()> {
        self.rules.push("no avoidable wait that the baseline lacks".to_owned());
        // The baseline's sources are read from the same files as the report's: see `Side::sources_are_its_own`.
        let difference = diff::compare(baseline, &Side::of(self.report, true)?);
        for change in &difference.sites {
            let Some((what, before)) = worse(change) else { continue };
            let Some(after) = &change.after else { continue };
            let site = after.ids.first().and_then(|id| self.report.site(id));
            if site.is_some_and(|s| self.excuses.hold(s)) {
                continue;
            }
            self.breaches.push(over(Rule::NewFalse, what, Unit::Count, before, after.waits, site));
        }
        self.warnings.extend(difference.warnings);
        Ok(())
    }

    fn over(&mut self, measure: Measure, bound: Bound) -> anyhow::Result<()> {
        let excuses = self.excuses;
        let counts = |s: &Site| !excuses.hold(s);
        let per = Per::Iteration;
        let (what, unit, limit, actual) = match bound {
            Bound::Percent(limit) => {
                let (what, actual) = match measure {
                    Measure::Drain => ("drain of the GPUs' time", drain_percent(self.report, &counts)),
                    _ => ("blocked of the thread's time", blocked_percent(self.report, &counts)),
                };
                (what.to_owned(), Unit::Percent, limit, actual)
            }
            Bound::Count(_) | Bound::Time(_) if self.report.iterations.is_none() => {
                return Err(CheckError::NoIterationsFor(format!("--fail-on {}>…", measure.as_str())).into());
            }
            Bound::Count(limit) => {
                let now = Amounts::worst(self.report, per, &counts);
                let actual = if measure == Measure::Waits { now.waits } else { now.false_waits };
                (format!("{} per iteration", words(measure)), Unit::Count, limit, actual)
            }
            Bound::Time(limit) => {
                let now = Amounts::worst(self.report, per, &counts);
                let actual = if measure == Measure::Drain { now.drain_ns } else { now.blocked_ns };
                (format!("{} per iteration", words(measure)), Unit::Ns, limit as f64, actual as f64)
            }
        };
        self.rules.push(format!("{what} ≤ {}", unit.print(limit)));
        if actual > limit + 1e-9 {
            let most = most(self.report, measure, per, &counts);
            self.breaches.push(over(Rule::FailOn, what, unit, limit, actual, most));
        }
        Ok(())
    }
}

fn words(measure: Measure) -> &'static str {
    match measure {
        Measure::FalseWaits => "avoidable waits",
        measure => measure.as_str(),
    }
}

/// Why a change breaks `new-false`, and how often the site waited before.
fn worse(change: &SiteChange) -> Option<(String, f64)> {
    let after = change.after.as_ref().filter(|s| s.class == Class::False)?;
    let Some(before) = &change.before else {
        return (change.status == Status::New)
            .then(|| (format!("new avoidable waits ({})", after.kind), 0.0));
    };
    if change.changed.contains(&Aspect::Verdict) && before.class != Class::False {
        return Some((format!("waits that became avoidable ({})", after.kind), 0.0));
    }
    let more = change.changed.contains(&Aspect::Waits) && after.waits > before.waits;
    more.then(|| (format!("more avoidable waits ({})", after.kind), before.waits))
}

fn over(rule: Rule, what: String, unit: Unit, limit: f64, actual: f64, site: Option<&Site>) -> Breach {
    Breach {
        rule,
        what,
        limit: unit.print(limit),
        actual: unit.print(actual),
        unit,
        limit_value: Some(limit),
        actual_value: Some(actual),
        site: site.map(BreachSite::of),
    }
}

/// The site that adds most.
fn most<'r>(
    report: &'r Report,
    measure: Measure,
    per: Per,
    counts: &dyn Fn(&Site) -> bool,
) -> Option<&'r Site> {
    let amount = |s: &Site| {
        let of = Amounts::of(s, per);
        match measure {
            Measure::Waits => of.waits,
            Measure::FalseWaits => of.false_waits,
            Measure::Blocked => of.blocked_ns as f64,
            Measure::Drain => of.drain_ns as f64,
        }
    };
    let sites = report.sites.iter().filter(|s| counts(s));
    sites.max_by(|a, b| amount(a).total_cmp(&amount(b)).then_with(|| b.key.cmp(&a.key)))
}

/// Drain of the sites that count, in percent of the time of all GPUs.
fn drain_percent(report: &Report, counts: &dyn Fn(&Site) -> bool) -> f64 {
    let drain: i64 =
        report.sites.iter().filter(|s| counts(s)).map(|s| s.drain_ns).fold(0, i64::saturating_add);
    let span = report.profiles.iter().flat_map(|p| &p.gpus).map(|g| g.span_ns).fold(0, i64::saturating_add);
    if span > 0 { drain as f64 / span as f64 * 100.0 } else { 0.0 }
}

/// Of the thread that waits for the largest share of its time.
fn blocked_percent(report: &Report, counts: &dyn Fn(&Site) -> bool) -> f64 {
    let mut threads: BTreeMap<(usize, u32, u32), f64> = BTreeMap::new();
    for site in report.sites.iter().filter(|s| counts(s)) {
        let thread = (site.process.profile, site.process.pid, site.thread.tid);
        *threads.entry(thread).or_default() += site.blocked_percent;
    }
    threads.into_values().fold(0.0, f64::max)
}
