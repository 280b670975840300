//! The gate of a measured change.

use crate::cli::command;
use std::fs;
use sync_report::model::trial::{Trial, TrialDifference, TrialEdit, TrialNumbers, TrialUnit};
use tempfile::TempDir;

/// Iterations of 1 ms; `interval` of what the edits save, in ns.
fn trial(interval: [i64; 3]) -> Trial {
    let edit = TrialEdit {
        site: String::new(),
        file: "train.py".to_owned(),
        line: 0,
        left_out: None,
        loaded: Some(true),
    };
    Trial {
        trial_version: 1,
        program: "python train.py".to_owned(),
        unit: TrialUnit::Iteration,
        timed: 100,
        runs: Vec::new(),
        unedited_ns: 1_000_000,
        saved_ns: Some(interval[0]),
        low_ns: Some(interval[1]),
        high_ns: Some(interval[2]),
        resolved: true,
        predicted: None,
        agrees: None,
        printed: Some(TrialNumbers { compared: 3, differs: None }),
        failed: None,
        edits: vec![edit],
        notes: Vec::new(),
    }
}

/// Exit code, stdout and stderr.
fn checked(trial: &Trial, words: &[&str]) -> (Option<i32>, String, String) {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("trial.json");
    fs::write(&file, serde_json::to_vec(trial).expect("JSON")).expect("written");
    let done = command().arg("check").arg("--measured").arg(file).args(words).output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (done.status.code(), text(done.stdout), text(done.stderr))
}

/// ```text
///                 slower ◀── 0 ──▶ faster
///  broken  [-30, -20 µs]   │
///  kept               [-20, 5 µs]
///  kept                        [10, 20 µs]
/// ```
#[test]
fn only_what_is_slower_for_sure_is_broken() {
    let slower = trial([-25_000, -30_000, -20_000]);
    let (code, printed, said) = checked(&slower, &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(printed.contains("longer iteration: 2.5 % (2.0 to 3.0), limit 0 %"), "{printed}");
    assert_eq!(checked(&slower, &["--fail-on", "slower>1.9%"]).0, Some(1));
    assert_eq!(checked(&slower, &["--fail-on", "slower>2.1%"]).0, Some(0));
    assert_eq!(checked(&slower, &["--fail-on", "slower>5%,slower>1%"]).0, Some(1), "the strictest holds");
    for interval in [[-8_000, -20_000, 5_000], [15_000, 10_000, 20_000]] {
        let (code, printed, said) = checked(&trial(interval), &[]);
        assert_eq!(code, Some(0), "{printed}{said}");
        assert!(printed.contains("passed: 3 rules kept"), "{printed}");
    }
}

#[test]
fn a_program_that_fails_or_prints_other_numbers_is_broken() {
    let mut failed = trial([0; 3]);
    failed.failed = Some("exit status: 1\nNameError: x\u{1b}[31m".to_owned());
    (failed.saved_ns, failed.low_ns, failed.high_ns, failed.printed) = (None, None, None, None);
    failed.edits[0].loaded = Some(false);
    let (code, printed, _) = checked(&failed, &[]);
    assert_eq!(code, Some(1));
    assert!(printed.contains("failures of the edited program: 1 (NameError: x"), "{printed}");
    assert!(!printed.contains('\u{1b}'), "what a program says is escaped: {printed:?}");
    let mut other = trial([15_000, 10_000, 20_000]);
    let differs =
        TrialDifference { number: 2, unedited_low: Some(0.5), unedited_high: Some(0.5), edited: Some(0.75) };
    other.printed = Some(TrialNumbers { compared: 3, differs: Some(differs) });
    let (code, printed, _) = checked(&other, &["--format", "junit"]);
    assert_eq!(code, Some(1));
    assert!(printed.contains("number 2 is 0.75, unedited 0.5 to 0.5"), "{printed}");
    for format in ["table", "markdown", "json", "github", "sarif"] {
        assert_eq!(checked(&other, &["--format", format]).0, Some(1), "{format}");
    }
}

#[test]
fn a_gate_that_cannot_be_judged_says_so() {
    let mut idle = trial([0; 3]);
    idle.edits[0].loaded = Some(false);
    let mut short = trial([0; 3]);
    (short.saved_ns, short.low_ns, short.high_ns) = (None, None, None);
    let mut other = trial([0; 3]);
    other.trial_version = 2;
    for (trial, words, message) in [
        (&other, &[][..], "another version of sync-report"),
        (&idle, &[], "this trial measured nothing: the program imports no edited file"),
        (&short, &[], "two pairs of runs are needed"),
        (&trial([0; 3]), &["--fail-on", "any-avoidable"], "--fail-on needs a PROFILE"),
        (&trial([0; 3]), &["--baseline", "old.json"], "--baseline needs a PROFILE"),
    ] {
        let (code, printed, said) = checked(trial, words);
        assert_eq!((code, printed.as_str()), (Some(2), ""), "{said}");
        assert!(said.contains(message), "{said}");
    }
    let sample = crate::cli::sample("train_mlp");
    let done = command().args(["check", &sample, "--fail-on", "slower>1%"]).output().expect("it runs");
    assert!(String::from_utf8_lossy(&done.stderr).contains("--fail-on slower needs --measured"));
    let done = command().args(["check", "--measured", &sample]).output().expect("it runs");
    assert!(String::from_utf8_lossy(&done.stderr).contains("no result of `sync-report try`"));
    // A capture and a trial are judged together.
    let (code, printed, _) = checked(&trial([0; 3]), &[&sample, "--fail-on", "any-avoidable"]);
    assert_eq!(code, Some(1));
    assert!(printed.contains("no avoidable wait") && printed.contains("longer iteration"), "{printed}");
}
