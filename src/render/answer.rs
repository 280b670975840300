//! The answer of a report: the rank that comes late, and what fixes save.

use super::ranks;
use super::saving::{self, Finding};
use crate::model::Report;

/// In parts.
pub fn finding(report: &Report) -> Option<Finding> {
    let saved = saving::finding(&report.totals);
    let Some(late) = report.ranks.as_ref().and_then(ranks::latest) else { return saved };
    // The rank that comes late limits a program of many ranks.
    Some(Finding { late: Some(late), limit: None, ..saved.unwrap_or_default() })
}

/// The answer and its basis: the first sentence, and the rest.
pub fn in_two(report: &Report) -> Option<(String, String)> {
    let (lead, rest) = finding(report)?.words();
    let basis = saving::basis(&report.totals).map(|words| format!(" {words}")).unwrap_or_default();
    Some((lead, rest + &basis))
}

/// [`in_two`] as one text.
pub fn of_all(report: &Report) -> Option<String> {
    in_two(report).map(|(lead, rest)| lead + &rest)
}
