//! The gate: does a report keep what was agreed?
//!
//! Three kinds of rules: a [`budget`] file, conditions from the command line ([`fail_on`]), and a baseline to compare
//! with. Each breach says what, where, the limit, the actual value and the fix. Pure: reports in, verdict out.

pub mod budget;
pub mod fail_on;
pub mod gpu_time;
pub mod init;
pub mod measured;

use crate::diff::{self, Snapshot};
use crate::frame::sites::{self, Largest};
use crate::model::check::{Allowed, Breach, BreachSite, CheckReport, Rule, Unit};
use crate::model::diff::{Aspect, SiteChange, Status};
use crate::model::{Code, Report, Site, Warning};
use crate::text;
use crate::vocabulary::{Class, Measure, Per, ProfileIx};
use budget::{Budget, Limits};
use chrono::NaiveDate;
use fail_on::FailOn;
use std::collections::BTreeMap;
use thiserror::Error;

/// Rates are quotients: a value that equals its limit on paper may differ from it in the last bit.
const LAST_BIT: f64 = 1e-9;

/// Why a gate cannot be judged: wrong use, not a breach.
#[derive(Debug, Error)]
pub enum CheckError {
    #[error(
        "the budget is per iteration, and this capture has none; wrap the loop's body in NVTX ranges `step N`, or write per = \"run\" into the budget"
    )]
    NoIterations,
    #[error(
        "`{0}` is per iteration, and this capture has none; wrap the loop's body in NVTX ranges `step N`, or write a limit in percent (idle-after>5%)"
    )]
    NoIterationsFor(String),
    #[error(
        "nothing to check: the budget limits nothing; write [limits] into it, or begin with --init-budget"
    )]
    NoRules,
    #[error("the budget limits `{0}`, and this capture does not tell it; {1}")]
    NoShare(&'static str, &'static str),
    #[error("--fail-on new-avoidable needs --baseline: what is new shows only beside an earlier report")]
    NoBaseline,
    #[error("--fail-on slower needs --measured, the result of `sync-report try`")]
    NoTrial,
    #[error("{0} needs a PROFILE")]
    NoProfile(&'static str),
    #[error("this trial measured nothing: {0}")]
    NothingMeasured(&'static str),
}

pub struct Rules<'a> {
    /// `None` where no file was given.
    pub budget: Option<&'a Budget>,
    pub fail_on: &'a [FailOn],
    pub baseline: Option<&'a Snapshot>,
    pub today: NaiveDate,
}

/// A time with its unit, in ns: "200us".
pub fn duration(text: &str) -> Result<i64, String> {
    let bare = text.trim().ends_with(|c: char| c.is_ascii_digit());
    let ns = text::parse_time(text.trim()).ok().filter(|ns| !bare && *ns >= 0);
    ns.ok_or_else(|| format!("`{text}` is no time; write a number with a unit (200us, 1.5ms)"))
}

/// `ranges`: a report of each NVTX range that the budget names.
///
/// # Errors
/// [`CheckError`] where a rule cannot be applied to this capture.
pub fn check(
    report: &Report,
    ranges: &BTreeMap<String, Report>,
    rules: &Rules,
) -> anyhow::Result<CheckReport> {
    let warnings = report.warnings.iter().filter(|w| !w.known().is_some_and(Code::is_of_savings));
    let out = CheckReport {
        schema_version: 1,
        profiles: report.profiles.iter().map(|p| p.path.clone()).collect(),
        program: report.program().to_owned(),
        warnings: warnings.cloned().collect(),
        ..CheckReport::default()
    };
    let mut gate = Gate { report, rules, out };
    if let Some(budget) = rules.budget {
        gate.budget(budget, ranges)?;
    }
    for condition in rules.fail_on {
        gate.condition(*condition)?;
    }
    let mut out = gate.out;
    if out.rules.is_empty() && out.allowed.is_empty() && out.breaches.is_empty() {
        return Err(CheckError::NoRules.into());
    }
    out.allowed.extend(report.sites.iter().filter_map(by_comment));
    Ok(CheckReport { passed: out.breaches.is_empty(), ..out })
}

fn by_comment(site: &Site) -> Option<Allowed> {
    let (reason, sites) = (site.allowed.clone()?, vec![site.id.clone()]);
    Some(Allowed { name: site.place(), reason, expires: String::new(), sites })
}

impl Rules<'_> {
    /// Whether the budget of today, or a comment in the source, allows a site.
    fn excuse(&self, site: &Site) -> bool {
        site.allowed.is_some()
            || self.budget.iter().flat_map(|b| &b.allow).any(|a| a.expires >= self.today && a.holds(site))
    }
}

struct Gate<'a> {
    report: &'a Report,
    rules: &'a Rules<'a>,
    out: CheckReport,
}

impl Gate<'_> {
    fn budget(&mut self, budget: &Budget, ranges: &BTreeMap<String, Report>) -> anyhow::Result<()> {
        let limited = !budget.limits.is_empty() || !budget.limit.is_empty();
        if limited && budget.per == Per::Iteration && self.report.iterations.is_none() {
            return Err(CheckError::NoIterations.into());
        }
        for limits in std::iter::once(&budget.limits).chain(&budget.limit) {
            let report = limits.nvtx.as_ref().map_or(Some(self.report), |range| ranges.get(range));
            if let Some(report) = report {
                self.limits(report, budget.per, limits);
            }
        }
        self.shares(budget)?;
        for allow in &budget.allow {
            let sites: Vec<&Site> = self.report.sites.iter().filter(|s| allow.holds(s)).collect();
            if allow.expires < self.rules.today {
                self.breach(Breach {
                    rule: Rule::AllowExpired,
                    breaks: None,
                    what: format!("allowance of {} ({})", allow.name(), allow.reason),
                    limit: format!("until {}", allow.expires),
                    actual: format!("today is {}", self.rules.today),
                    unit: Unit::Date,
                    limit_value: None,
                    actual_value: None,
                    rank: None,
                    site: sites.first().map(|s| BreachSite::of(s)),
                });
                continue;
            }
            if sites.is_empty() {
                let said = format!("the budget allows {}, where nothing waits any more", allow.name());
                let unused = Warning::new(Code::UnusedAllowance, said, "take the entry out of the budget");
                self.out.warnings.push(unused);
            }
            self.out.allowed.push(Allowed {
                name: allow.name(),
                reason: allow.reason.clone(),
                expires: allow.expires.to_string(),
                sites: sites.iter().map(|s| s.id.clone()).collect(),
            });
        }
        Ok(())
    }

    fn limits(&mut self, report: &Report, per: Per, limits: &Limits) {
        let rules = self.rules;
        let counts = |s: &&Site| limits.holds(s) && !rules.excuse(s);
        let own: Vec<&Site> = report.sites.iter().filter(counts).collect();
        let place = limits.place().map_or_else(String::new, |place| format!(" {place}"));
        for &measure in Measure::ALL {
            if let Some(limit) = limits.of(measure) {
                self.over(Rule::Limit, &own, (measure, per), &place, limit);
            }
        }
    }

    fn shares(&mut self, budget: &Budget) -> Result<(), CheckError> {
        let (time, per) = gpu_time::limited(self.report, budget.per);
        for part in gpu_time::PARTS {
            let Some(limit) = (part.limit)(&budget.gpu_time) else { continue };
            let Some(actual) = part.percent(&time) else {
                let help = match time.whole_ns() {
                    0 => "it holds no GPU operations",
                    _ => "capture with `-t cuda,nvtx,osrt`, or leave the limit out",
                };
                return Err(CheckError::NoShare(part.key, help));
            };
            let what = format!("GPU time {}{per}", part.what);
            if part.least {
                self.hold_least(what, limit, actual);
                continue;
            }
            let own: Vec<&Site> = self.report.sites.iter().collect();
            let actual = (actual, None);
            let most = part.made_by.and_then(|of| sites::most(&own, of, Per::Iteration, actual));
            self.hold(Rule::Limit, what, Unit::Percent, limit, actual, most);
        }
        Ok(())
    }

    /// Holds the process that waits most against a limit.
    fn over(&mut self, rule: Rule, own: &[&Site], (measure, per): (Measure, Per), place: &str, limit: f64) {
        let (what, unit) = words(measure);
        let worst = sites::worst(own, measure, per);
        let most = sites::most(own, measure, per, worst);
        self.hold(rule, format!("{what} per {per}{place}"), unit, limit, worst, most);
    }

    fn condition(&mut self, condition: FailOn) -> anyhow::Result<()> {
        let rules = self.rules;
        let own: Vec<&Site> = self.report.sites.iter().filter(|s| !rules.excuse(s)).collect();
        match condition {
            FailOn::AnyFalse => {
                self.out.rules.push("no avoidable wait".to_owned());
                for site in own.into_iter().filter(|s| s.class == Class::False && s.is_avoidable()) {
                    let what = format!("avoidable waits ({})", site.kind.in_words());
                    let waits = (site.waits as f64, Some(site.process.rank()));
                    self.exceeded(Rule::AnyFalse, what, Unit::Count, 0.0, waits, Some(site));
                }
            }
            FailOn::NewFalse => self.new_false(rules.baseline.ok_or(CheckError::NoBaseline)?),
            FailOn::Share(measure, limit) => {
                let (what, share) = match measure {
                    Measure::Drain => {
                        ("idle after waits, of the GPUs' time", (drain_percent(self.report, &own), None))
                    }
                    _ => ("blocked of the thread's time", sites::blocked_percent(&own)),
                };
                let most = sites::most(&own, measure, Per::Iteration, share);
                self.hold(Rule::FailOn, what.to_owned(), Unit::Percent, limit, share, most);
            }
            // The trial is held against it, not a capture.
            FailOn::Slower(_) => {}
            FailOn::Over(measure, _) if self.report.iterations.is_none() => {
                return Err(CheckError::NoIterationsFor(format!("--fail-on {measure}>…")).into());
            }
            FailOn::Over(measure, limit) => {
                self.over(Rule::FailOn, &own, (measure, Per::Iteration), "", limit);
            }
        }
        Ok(())
    }

    /// Sites that the baseline lacks, that became avoidable, or that wait more often than they did.
    fn new_false(&mut self, baseline: &Snapshot) {
        self.out.rules.push("no avoidable wait that the baseline lacks".to_owned());
        // The baseline's sources are read from the same files as the report's: see `Snapshot::sources_are_its_own`.
        let difference = diff::compare(baseline, &Snapshot::of(self.report.clone(), true));
        for change in &difference.sites {
            let Some((what, before)) = worse(change) else { continue };
            let Some(after) = &change.after else { continue };
            let site = after.ids.first().and_then(|id| self.report.site(id));
            if !site.is_some_and(|s| self.rules.excuse(s)) {
                self.exceeded(Rule::NewFalse, what, Unit::Count, before, (after.waits, None), site);
            }
        }
        self.out.warnings.extend(difference.warnings);
    }

    /// `most`: the site that adds most.
    fn hold(
        &mut self,
        rule: Rule,
        what: String,
        unit: Unit,
        limit: f64,
        actual: Largest,
        most: Option<&Site>,
    ) {
        self.out.rules.push(format!("{what} ≤ {}", unit.print(limit)));
        if actual.0 > limit + LAST_BIT {
            self.exceeded(rule, what, unit, limit, actual, most);
        }
    }

    fn hold_least(&mut self, what: String, limit: f64, actual: f64) {
        let (unit, said) = (Unit::Percent, Unit::Percent.print(limit));
        let rule = format!("{what} ≥ {said}");
        self.out.rules.push(rule.clone());
        if actual < limit - LAST_BIT {
            self.breach(Breach {
                rule: Rule::Limit,
                breaks: Some(rule),
                what,
                limit: format!("at least {said}"),
                actual: unit.print(actual),
                unit,
                limit_value: Some(limit),
                actual_value: Some(actual),
                rank: None,
                site: None,
            });
        }
    }

    /// Adds a breach of the last rule.
    fn exceeded(
        &mut self,
        rule: Rule,
        what: String,
        unit: Unit,
        limit: f64,
        (actual, process): Largest,
        site: Option<&Site>,
    ) {
        let rank = process.and_then(|process| self.rank(process));
        let on = rank.map(|rank| format!(" on rank {rank}")).unwrap_or_default();
        self.breach(Breach {
            rule,
            breaks: self.out.rules.last().cloned(),
            what,
            limit: unit.print(limit),
            actual: unit.print(actual) + &on,
            unit,
            limit_value: Some(limit),
            actual_value: Some(actual),
            rank,
            site: site.map(BreachSite::of),
        });
    }

    /// `None` without several ranks.
    fn rank(&self, (profile, pid): (ProfileIx, u32)) -> Option<u32> {
        let path = &self.report.profiles.get(profile.index())?.path;
        let list = &self.report.ranks.as_ref()?.list;
        list.iter().find(|rank| rank.pid == pid && rank.profile == *path).map(|rank| rank.rank)
    }

    /// Equal breaches count once: a site may break several conditions in the same words.
    fn breach(&mut self, breach: Breach) {
        if !self.out.breaches.contains(&breach) {
            self.out.breaches.push(breach);
        }
    }
}

fn words(measure: Measure) -> (&'static str, Unit) {
    match measure {
        Measure::Waits => ("waits", Unit::Count),
        Measure::FalseWaits => ("avoidable waits", Unit::Count),
        Measure::Blocked => ("blocked", Unit::Ns),
        Measure::Drain => ("idle after", Unit::Ns),
    }
}

/// Why a change breaks `new-false`, and how often the site waited before.
fn worse(change: &SiteChange) -> Option<(String, f64)> {
    let after = change.after.as_ref().filter(|s| s.class == Class::False)?;
    let Some(before) = &change.before else {
        return (change.status == Status::New)
            .then(|| (format!("new avoidable waits ({})", after.kind.in_words()), 0.0));
    };
    if change.changed.contains(&Aspect::Verdict) && before.class != Class::False {
        return Some((format!("waits that became avoidable ({})", after.kind.in_words()), 0.0));
    }
    let more = change.changed.contains(&Aspect::Waits) && after.waits > before.waits;
    more.then(|| (format!("more avoidable waits ({})", after.kind.in_words()), before.waits))
}

/// GPU idle time after counted sites, in percent of all GPUs' time without the profiler.
fn drain_percent(report: &Report, own: &[&Site]) -> f64 {
    let own = sites::sum(own.iter().copied(), Measure::Drain, Per::Run);
    let all = sites::sum(&report.sites, Measure::Drain, Per::Run);
    let time = report.gpu_time_of_run();
    if all > 0.0 { own / all * time.share(time.idle_after_waits_ns) * 100.0 } else { 0.0 }
}
