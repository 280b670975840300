//! A measured change, held against the gate.
//!
//! ```text
//!            edited program slower ◀── 0 ──▶ faster
//!  broken    [─── interval ───]   │
//!  kept               [─── interval ───]     neither is sure
//! ```
//! Slower breaks only where the whole interval lies beyond the limit.

use super::CheckError;
use super::fail_on::FailOn;
use crate::model::check::{Breach, CheckReport, Rule, Unit};
use crate::model::trial::{TRIAL_VERSION, Trial, TrialDifference};

/// The outcome of a gate that has read no capture.
pub fn alone(trial: &Trial) -> CheckReport {
    let program = trial.program.clone();
    CheckReport { schema_version: 1, program, passed: true, ..CheckReport::default() }
}

/// Adds what a trial keeps and breaks.
///
/// # Errors
/// [`CheckError`] where there is no capture or no trial for a condition, or the trial measured nothing.
pub fn hold(trial: &Trial, fail_on: &[FailOn], out: &mut CheckReport) -> Result<(), CheckError> {
    if trial.trial_version != TRIAL_VERSION || trial.unedited_ns <= 0 && trial.failed.is_none() {
        return Err(CheckError::NothingMeasured("it is of another version of sync-report, or empty"));
    }
    let tried = trial.edits.iter().filter(|edit| edit.left_out.is_none());
    if trial.failed.is_none()
        && tried.clone().count() == tried.filter(|edit| edit.loaded == Some(false)).count()
    {
        return Err(CheckError::NothingMeasured("the program imports no edited file"));
    }
    let mut held =
        |rule: String, what: &str, broken: Option<(String, Option<f64>)>, limit: f64, unit: Unit| {
            out.rules.push(rule.clone());
            out.breaches.extend(broken.map(|(actual, value)| Breach {
                rule: Rule::Measured,
                breaks: Some(rule),
                what: what.to_owned(),
                limit: unit.print(limit),
                actual,
                unit,
                limit_value: Some(limit),
                actual_value: value,
                rank: None,
                site: None,
            }));
        };
    let said = trial.failed.as_ref().and_then(|said| said.lines().last());
    let failed = said.map(|said| (format!("1 ({said})"), Some(1.0)));
    held(
        "the edited program does not fail".to_owned(),
        "failures of the edited program",
        failed,
        0.0,
        Unit::Count,
    );
    if let Some(printed) = &trial.printed {
        let differs =
            printed.differs.as_ref().map(|first| (format!("1 or more ({})", in_words(first)), None));
        let rule = format!("the {} numbers that it prints are those of the unedited one", printed.compared);
        held(rule, "printed numbers that differ", differs, 0.0, Unit::Count);
    }
    if trial.failed.is_none() {
        let (Some(saved), Some(low), Some(high)) = (trial.saved_ns, trial.low_ns, trial.high_ns) else {
            return Err(CheckError::NothingMeasured("two pairs of runs are needed"));
        };
        let cost = |ns: i64| -100.0 * ns as f64 / trial.unedited_ns.max(1) as f64;
        let measured = format!("{:.1} % ({:.1} to {:.1})", cost(saved), cost(high), cost(low));
        let limits =
            fail_on.iter().filter_map(|on| if let FailOn::Slower(most) = on { Some(*most) } else { None });
        let limit = limits.reduce(f64::min).unwrap_or(0.0);
        let what = format!("longer {}", trial.unit.as_str());
        let rule = format!("{what} ≤ {}; measured: {measured}", Unit::Percent.print(limit));
        let slower = (cost(high) > limit).then(|| (measured, Some(cost(saved))));
        held(rule, &what, slower, limit, Unit::Percent);
    }
    out.passed = out.breaches.is_empty();
    Ok(())
}

fn in_words(first: &TrialDifference) -> String {
    let shown = |n: Option<f64>| n.map_or_else(|| "none".to_owned(), |n| n.to_string());
    let [edited, low, high] = [first.edited, first.unedited_low, first.unedited_high].map(shown);
    format!("number {} is {edited}, unedited {low} to {high}", first.number)
}
