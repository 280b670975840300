//! One outcome in every format.

use super::{github, junit, markdown, sarif, table};
use crate::check::budget::Budget;
use crate::check::fail_on::FailOn;
use crate::check::{Rules, check};
use crate::model::check::CheckReport;
use crate::model::sample;
use crate::render::json;
use crate::render::markdown_text::COMMENT;
use crate::render::style::Style;
use crate::repository::Repository;
use chrono::NaiveDate;
use std::io::Write;

const BUDGET: &str = "[limits]\nfalse-waits = 0\ndrain = \"9ms\"\nwaits = 99\n\
    [[allow]]\npath = \"train_mlp.py\"\nreason = \"see #7\"\nexpires = 2026-01-01\n\
    [[allow]]\nfunction = \"log_*\"\nreason = \"a progress bar | in *Markdown*\"\nexpires = 2027-01-01\n";

fn sample() -> CheckReport {
    let budget = Budget::parse(BUDGET).expect("a budget");
    let today = NaiveDate::from_ymd_opt(2026, 6, 1).expect("a date");
    let rules = Rules { budget: Some(&budget), fail_on: &[FailOn::AnyFalse], baseline: None, today };
    check(&sample::sample(), &Default::default(), &rules).expect("an outcome")
}

/// In a pipe and as Markdown.
#[test]
fn for_people() {
    insta::assert_snapshot!(sample::printed(|out| {
        table(&sample(), &Style::default(), out)?;
        write!(out, "{}", markdown(&sample(), COMMENT))
    }));
}

#[test]
fn as_json() {
    insta::assert_snapshot!(sample::printed(|out| json::write(&sample(), out)));
}

#[test]
fn as_annotations_sarif_and_junit() {
    let repository = Repository::new("/nowhere".into(), Vec::new());
    insta::assert_snapshot!(sample::printed(|out| {
        assert_eq!(github(&sample(), &repository, out)?, 0);
        sarif(&sample(), &repository, out)?;
        junit::write(&sample(), &repository, out)
    }));
}
