//! The outcome of the gate.

use super::diff::Location;
use super::{Site, Tool, Warning};
use crate::text;
use crate::vocabulary::{Class, Kind, PatternId, words};
use schemars::JsonSchema;
use serde::Serialize;

/// What one check found.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct CheckReport {
    /// Version of this tree's layout: fields may be added, never renamed.
    pub schema_version: u32,
    /// What wrote it.
    pub tool: Tool,
    /// Paths of the captures.
    pub profiles: Vec<String>,
    /// The file that stands for what has none.
    #[serde(skip)]
    pub program: String,
    /// Whether no rule is broken.
    pub passed: bool,
    /// What was looked at, one sentence each.
    pub rules: Vec<String>,
    /// What breaks the gate.
    pub breaches: Vec<Breach>,
    /// The waits that the budget or a comment in the source allows.
    pub allowed: Vec<Allowed>,
    /// What limits the capture.
    pub warnings: Vec<Warning>,
}

/// A rule that is broken.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Breach {
    /// Which rule.
    pub rule: Rule,
    /// The sentence of `rules` that it breaks; none of an allowance.
    pub breaks: Option<String>,
    /// What is measured, and where: "drain per iteration in src/**".
    pub what: String,
    /// What is allowed, for people.
    pub limit: String,
    /// What was found, for people.
    pub actual: String,
    /// Unit of the two values.
    pub unit: Unit,
    /// `limit` and `actual` as numbers in `unit`, where they are.
    pub limit_value: Option<f64>,
    /// What was found.
    pub actual_value: Option<f64>,
    /// The rank that has most, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// The site that breaks it, or that adds most to what does.
    pub site: Option<BreachSite>,
}

words! {
    /// What can be broken.
    Rule {
        Limit = "limit": "A limit of the budget is exceeded.",
        AllowExpired = "allow-expired": "An allowance of the budget has expired.",
        AnyFalse = "any-false": "A wait could go without changing what the program computes.",
        NewFalse = "new-false": "An avoidable wait that the baseline does not have.",
        FailOn = "fail-on": "A limit given with --fail-on is exceeded.",
    }
}

words! {
    /// What a number counts.
    Unit {
        Count = "count": "Waits.",
        Ns = "ns": "Time in nanoseconds.",
        Percent = "percent": "Part of a span, 0 to 100.",
        Date = "date": "A calendar day; the texts say which, there is no number.",
    }
}

impl Unit {
    /// A number in this unit, for people.
    pub fn print(self, number: f64) -> String {
        match self {
            Self::Ns => text::duration(number as i64),
            Self::Percent => text::percent(number),
            Self::Count | Self::Date => text::rate(number),
        }
    }
}

/// An allowance that still counts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Allowed {
    /// What it allows.
    pub name: String,
    /// Why, as the budget or the comment says.
    pub reason: String,
    /// Its last day; empty of a comment, which does not expire.
    pub expires: String,
    /// Ids of the sites that it is about.
    pub sites: Vec<String>,
}

/// What of a site a breach needs; the rest is in the report.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BreachSite {
    /// Rank in the report.
    pub id: String,
    /// As in the report.
    pub key: String,
    /// The line, where one is known.
    pub location: Option<Location>,
    /// The library's line that waits, where that one calls a library.
    pub library: Option<Location>,
    /// What it is called without a location.
    pub name: String,
    /// Whether the wait can go.
    pub class: Class,
    /// Why it is of that class.
    pub kind: Kind,
    /// Catalogue entry.
    #[schemars(with = "Option<String>")]
    pub pattern: Option<PatternId>,
    /// Title of the fix.
    pub fix: Option<String>,
}

impl BreachSite {
    /// From a site of the report.
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
