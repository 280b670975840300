//! The outcome of the gate.

use super::diff::Location;
use super::{Site, Tool, Warning};
use crate::text;
use crate::vocabulary::{Class, Kind, PatternId, words};
use schemars::JsonSchema;
use serde::Serialize;

/// Result of one check.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct CheckReport {
    /// Version of this tree's layout: fields may be added, never renamed.
    pub schema_version: u32,
    /// The program that wrote the result.
    pub tool: Tool,
    /// Paths of the captures.
    pub profiles: Vec<String>,
    /// File to name for findings without one.
    #[serde(skip)]
    pub program: String,
    /// Whether no rule is broken.
    pub passed: bool,
    /// The rules that were checked, one sentence each.
    pub rules: Vec<String>,
    /// The broken rules.
    pub breaches: Vec<Breach>,
    /// The waits that the budget or a comment in the source allows.
    pub allowed: Vec<Allowed>,
    /// Limits of the capture.
    pub warnings: Vec<Warning>,
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Breach {
    /// Kind of the rule.
    pub rule: Rule,
    /// The broken sentence of `rules`; null for an expired allowance.
    pub breaks: Option<String>,
    /// Measure and place, e.g. "idle after per iteration in src/**".
    pub what: String,
    /// The limit, as text with its unit.
    pub limit: String,
    /// The value found, as text with its unit.
    pub actual: String,
    /// Unit of `limit_value` and `actual_value`.
    pub unit: Unit,
    /// The limit as a number in `unit`; null for a date.
    pub limit_value: Option<f64>,
    /// The value found as a number in `unit`; null for a date.
    pub actual_value: Option<f64>,
    /// Rank with the largest value; absent without several ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Site that breaks the rule, or that adds most to the value; null where none is known.
    pub site: Option<BreachSite>,
}

words! {
    /// Kind of a rule that can be broken.
    Rule {
        Limit = "limit": "A limit of the budget is exceeded.",
        AllowExpired = "allow-expired": "An allowance of the budget has expired.",
        AnyFalse = "any-false": "A wait could go without changing what the program computes.",
        NewFalse = "new-false": "An avoidable wait that the baseline does not have.",
        FailOn = "fail-on": "A limit given with --fail-on is exceeded.",
        Measured = "measured": "The edited program of a trial fails, prints other numbers, or is slower.",
    }
}

words! {
    /// Unit of a value.
    Unit {
        Count = "count": "Waits.",
        Ns = "ns": "Time in nanoseconds.",
        Percent = "percent": "Part of a span, 0 to 100.",
        Date = "date": "A calendar day; the texts say which, there is no number.",
    }
}

impl Unit {
    /// Text of a number in this unit.
    pub fn print(self, number: f64) -> String {
        match self {
            Self::Ns => text::duration(number as i64),
            Self::Percent => text::percent(number),
            Self::Count | Self::Date => text::rate(number),
        }
    }
}

/// An allowance that has not expired.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Allowed {
    /// What the budget allows, or the place of the allowed wait.
    pub name: String,
    /// Reason that the budget or the comment gives.
    pub reason: String,
    /// Last day of the allowance; empty for a comment, which does not expire.
    pub expires: String,
    /// Ids of the allowed sites.
    pub sites: Vec<String>,
}

/// Summary of a site; the report has the rest.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BreachSite {
    /// Id of the site in the report, e.g. "S3".
    pub id: String,
    /// Key of the site in the report.
    pub key: String,
    /// The user's line, else the innermost; null where none is known.
    pub location: Option<Location>,
    /// The waiting line of a library that `location` calls; null where `location` itself waits.
    pub library: Option<Location>,
    /// Name to show without a location: PyTorch method, NVTX range or API.
    pub name: String,
    /// Whether the wait can go.
    pub class: Class,
    /// Reason for the class, as a word.
    pub kind: Kind,
    /// Id of the catalogue entry; null where none fits.
    #[schemars(with = "Option<String>")]
    pub pattern: Option<PatternId>,
    /// Title of the advice; null where there is none.
    pub fix: Option<String>,
}

impl BreachSite {
    /// Summary of a site of the report.
    pub fn of(site: &Site) -> Self {
        Self {
            id: site.id.clone(),
            key: site.key.clone(),
            location: site.location().map(Location::of),
            library: site.library_frame.as_ref().map(Location::of),
            name: site.name(),
            class: site.class,
            kind: site.kind,
            pattern: site.pattern,
            fix: site.fix.as_ref().map(|f| f.title.clone()),
        }
    }
}
