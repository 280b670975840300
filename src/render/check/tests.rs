//! One outcome in every format.

use super::{document, github, junit, sarif};
use crate::check::budget::Budget;
use crate::check::fail_on::FailOn;
use crate::check::{Rules, check};
use crate::model::check::CheckReport;
use crate::model::sample;
use crate::render::Paths;
use crate::render::document::{markdown, terminal};
use crate::render::json;
use crate::render::markdown_text::COMMENT;
use crate::render::style::Style;
use crate::repository::Repository;
use chrono::NaiveDate;

const BUDGET: &str = "[limits]\nfalse-waits = 0\ndrain = \"9ms\"\nwaits = 99\n\
    [[allow]]\npath = \"train_mlp.py\"\nreason = \"see #7\"\nexpires = 2026-01-01\n\
    [[allow]]\nfunction = \"log_*\"\nreason = \"a progress bar | in *Markdown*\"\nexpires = 2027-01-01\n";

fn sample() -> CheckReport {
    let budget = Budget::parse(BUDGET).expect("a budget");
    let today = NaiveDate::from_ymd_opt(2026, 6, 1).expect("a date");
    let rules = Rules { budget: Some(&budget), fail_on: &[FailOn::AnyFalse], baseline: None, today };
    check(&sample::sample(), &Default::default(), &rules).expect("an outcome")
}

/// Names come from the profiled program: none may reorder or hide its neighbours.
#[test]
fn junit_shows_what_would_not_be_seen() {
    let mut report = sample();
    let hidden = "\u{202e}\u{200b}\u{2066}";
    report.program += hidden;
    report.rules.iter_mut().for_each(|rule| *rule += hidden);
    for breach in &mut report.breaches {
        breach.what += hidden;
        breach.breaks.iter_mut().for_each(|rule| *rule += hidden);
        if let Some(at) = breach.site.as_mut().and_then(|site| site.location.as_mut()) {
            at.file += hidden;
            at.function += hidden;
        }
    }
    let repository = Repository::new("/nowhere".into(), Vec::new());
    let paths: Paths = &|file| repository.path(file);
    let said = sample::printed(|out| junit::write(&report, paths, out));
    assert!(!said.contains(['\u{202e}', '\u{200b}', '\u{2066}']) && said.contains(r"\u{202e}"), "{said}");
}

#[test]
fn for_people() {
    let document = document(&sample());
    let printed = [terminal::text(&document, &Style::default()), markdown::text(&document, COMMENT)];
    insta::assert_snapshot!(printed.join("\n"));
}

#[test]
fn as_json() {
    insta::assert_snapshot!(sample::printed(|out| json::write(&sample(), out)));
}

#[test]
fn as_annotations_sarif_and_junit() {
    let repository = Repository::new("/nowhere".into(), Vec::new());
    let paths: Paths = &|file| repository.path(file);
    insta::assert_snapshot!(sample::printed(|out| {
        assert_eq!(github(&sample(), paths, out)?, 0);
        sarif(&sample(), paths, out)?;
        junit::write(&sample(), paths, out)
    }));
}
