//! The gate's outcome as JUnit XML: a test per rule that is kept, a failure per breach.

use super::super::Paths;
use super::{finding, place};
use crate::model::check::{Breach, CheckReport};
use crate::text::escape_terminal;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use std::io::{self, Write};

pub fn write(report: &CheckReport, paths: Paths, out: &mut dyn Write) -> io::Result<()> {
    let broken = |rule: &String| report.breaches.iter().any(|b| b.breaks.as_ref() == Some(rule));
    let kept = report.rules.iter().filter(|rule| !broken(rule));
    let mut suite = TestSuite::new(&*escape_terminal(&report.program));
    suite.add_test_cases(kept.map(|rule| TestCase::new(&*escape_terminal(rule), TestCaseStatus::success())));
    suite.add_test_cases(report.breaches.iter().map(|breach| failure(breach, paths)));
    let mut tests = Report::new("sync-report");
    tests.add_test_suite(suite);
    tests.serialize(&mut *out).map_err(io::Error::other)?;
    writeln!(out)
}

/// The test has the rule's name (as in a pass) and the class of its place; GitLab links to `file`.
fn failure(breach: &Breach, paths: Paths) -> TestCase {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    let message = format!("{}: {}", breach.what, finding(breach));
    status.set_type(breach.rule.as_str()).set_message(&*escape_terminal(&message));
    let mut case = TestCase::new(&*escape_terminal(breach.breaks.as_ref().unwrap_or(&breach.what)), status);
    if let Some(site) = &breach.site {
        case.set_classname(&*escape_terminal(&place(site)));
    }
    if let Some(at) = breach.site.as_ref().and_then(|site| site.location.as_ref()) {
        let file = paths(&at.file).unwrap_or_else(|| at.file.clone());
        case.extra.insert("file".into(), (&*escape_terminal(&file)).into());
        case.extra.insert("line".into(), at.line.to_string().into());
    }
    case
}
