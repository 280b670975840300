//! The outcome of the gate: the result structs and their renderers.

pub mod github;
pub mod json;
pub mod markdown;
pub mod sarif;
pub mod table;

use super::diff::Location;
use super::{Site, Tool, Warning};
use crate::text;
use crate::vocabulary::{Class, Kind};
use serde::Serialize;

/// What one check found.
#[derive(Clone, Debug, Serialize)]
pub struct CheckReport {
    /// Version of this tree's layout: fields may be added, never renamed.
    pub schema_version: u32,
    pub tool: Tool,
    pub profiles: Vec<String>,
    /// The file that stands for what has none.
    #[serde(skip)]
    pub program: String,
    pub passed: bool,
    /// What was looked at, one sentence each.
    pub rules: Vec<String>,
    pub breaches: Vec<Breach>,
    /// What the budget lets wait.
    pub allowed: Vec<Allowed>,
    pub warnings: Vec<Warning>,
}

/// A rule that is broken.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Breach {
    pub rule: Rule,
    /// What is measured, and where: "drain per iteration in src/**".
    pub what: String,
    pub limit: String,
    pub actual: String,
    pub unit: Unit,
    /// `limit` and `actual` as numbers in `unit`, where they are.
    pub limit_value: Option<f64>,
    pub actual_value: Option<f64>,
    /// The site that breaks it, or that adds most to what does.
    pub site: Option<BreachSite>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// A limit of the budget.
    Limit,
    AllowExpired,
    AnyFalse,
    NewFalse,
    /// A limit of `--fail-on`.
    FailOn,
}

impl Rule {
    pub const ALL: [(Self, &'static str, &'static str); 5] = [
        (Self::Limit, "limit", "A limit of the budget is exceeded."),
        (Self::AllowExpired, "allow-expired", "An allowance of the budget has expired."),
        (Self::AnyFalse, "any-false", "A wait could go without changing what the program computes."),
        (Self::NewFalse, "new-false", "An avoidable wait that the baseline does not have."),
        (Self::FailOn, "fail-on", "A limit given with --fail-on is exceeded."),
    ];

    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|r| r.0 == self).map_or("", |r| r.1)
    }
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    Count,
    Ns,
    Percent,
    Date,
}

impl Unit {
    pub fn print(self, number: f64) -> String {
        match self {
            Self::Ns => text::duration(number as i64),
            Self::Percent => text::percent(number),
            Self::Count | Self::Date => text::rate(number),
        }
    }
}

/// An allowance that still counts.
#[derive(Clone, Debug, Serialize)]
pub struct Allowed {
    pub name: String,
    pub reason: String,
    pub expires: String,
    /// Ids of the sites that it is about.
    pub sites: Vec<String>,
}

/// What of a site a breach needs; the rest is in the report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BreachSite {
    pub id: String,
    pub key: String,
    pub location: Option<Location>,
    /// What it is called without a location.
    pub name: String,
    pub class: Class,
    pub kind: Kind,
    pub pattern: Option<String>,
    pub fix: Option<String>,
}

impl BreachSite {
    pub fn of(site: &Site) -> Self {
        let at = super::phrase::location(site);
        let name = super::phrase::native_method(&site.native).or_else(|| site.nvtx.last().cloned());
        Self {
            id: site.id.clone(),
            key: site.key.clone(),
            location: at.map(|f| Location {
                file: f.file.clone(),
                function: f.function.clone(),
                line: f.line,
            }),
            name: name.unwrap_or_else(|| site.api.clone()),
            class: site.class,
            kind: site.kind,
            pattern: site.pattern.clone(),
            fix: site.fix.as_ref().map(|f| f.title.clone()),
        }
    }
}

#[cfg(test)]
mod tests;
