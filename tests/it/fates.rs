//! Two captures around a fix: what became of each avoidable wait, and of what was predicted.

use crate::cli::{program, sample};
use crate::diff::{compare, fates, side};
use crate::look::options;
use crate::loops::{LOOP, Loop, Waits, read, upload};
use sync_report::analysis::Options;
use sync_report::analysis::pricing::Scenario;
use sync_report::diff::Snapshot;
use sync_report::model::Report;
use sync_report::report;
use sync_report::vocabulary::Change;

/// The next wait that grew as much has taken over a fixed wait's time; a wait further on may not.
///
/// ```text
///  before   [upload 18 ====][read 22 =][upload 40 ====][read 60 =][upload 70 ====][upload 80 ==== every time]
///  after                    [read 22 ======]           [read 60 ======][upload 70 ====][upload 80 ==== every 4th]
/// ```
#[test]
fn fixed_waits_are_gone_or_moved() {
    let short = |line| Waits { ns: 10_000, ..read("step", line) };
    let long = |line| Waits { ns: 60_000, ..read("step", line) };
    let uploads = [18, 40, 70, 80].map(|line| upload("step", line));
    let before = [uploads[0], short(22), uploads[1], short(60), uploads[2], uploads[3]];
    let rare = Waits { every: 4, ..uploads[3] };
    let kept = [uploads[2], rare];
    let moved = compare(
        &side(&LOOP, &before, None),
        &side(&LOOP.seed(2), &[&[long(22), long(60)][..], &kept].concat(), None),
    );
    assert_eq!(fates(&moved), ["18 Moved 22", "40 Moved 60", "70 Still", "80 Fewer"]);
    let gone = compare(
        &side(&LOOP, &before, None),
        &side(&LOOP.seed(2), &[&[short(22), short(60)][..], &kept].concat(), None),
    );
    assert_eq!(fates(&gone), ["18 Gone", "40 Gone", "70 Still", "80 Fewer"]);
    let counts = gone.fates.as_ref().map(|f| (f.gone, f.moved, f.fewer, f.still));
    assert_eq!(counts, Some((2, 0, 1, 1)));
    let prediction = gone.fates.and_then(|f| f.prediction).expect("a prediction");
    assert!(!prediction.slowed, "{prediction:?}");
    assert!(
        prediction.low_ns <= prediction.high_ns && prediction.measured_ns > Some(50_000),
        "{prediction:?}"
    );
    let elsewhere = Loop { gpu: "NVIDIA A100", ..LOOP.seed(2) };
    let other = compare(&side(&LOOP, &before, None), &side(&elsewhere, &kept, None));
    let prediction = other.fates.and_then(|f| f.prediction).expect("a prediction");
    assert!(prediction.measured_ns.is_none(), "on another GPU nothing is measured: {prediction:?}");
}

/// Light captures tell whether a prediction came true.
///
/// ```text
///  before   [upload ====][read =]              predicted: the upload's wait
///  after                 [read =]···           shorter by that, by hardly more, by much more, or no shorter
/// ```
#[test]
fn predictions_are_held_against_what_came_of_them() {
    let light = Loop { frames: false, ..LOOP };
    let before = [upload("step", 18), read("step", 22)];
    let held = |ns| {
        let after = side(&light.clone().seed(2), &[Waits { ns, ..before[1] }], None);
        let report = compare(&side(&light, &before, None), &after);
        let prediction = report.fates.expect("fates").prediction.expect("a prediction");
        prediction.held
    };
    let expected = [Some(true), None, Some(false), Some(false)];
    assert_eq!([102_000, 80_000, 20_000, 200_000].map(held), expected);
}

/// A wait that `--fix` removes has a fate like an avoidable one, also in a report read back from JSON.
#[test]
fn what_was_chosen_has_a_fate() {
    let before = [upload("step", 18), read("step", 22)];
    let (_folder, path) = LOOP.export(&before).write_temp();
    let kept = |fixes: Vec<(String, Change)>| {
        let scenario = Scenario { fixes, ..Scenario::default() };
        let report = report::run(std::slice::from_ref(&path), &Options { scenario, ..options() });
        let json = serde_json::to_string(&report.expect("a report")).expect("JSON");
        serde_json::from_str::<Report>(&json).expect("a report")
    };
    let plain = kept(Vec::new());
    let site = plain.sites.iter().find(|s| s.location().is_some_and(|at| at.line == 22)).expect("the read");
    let chosen = kept(vec![(site.key.clone(), Change::Drop)]);
    let after = side(&LOOP.seed(2), &before[..1], None);
    let of = |report: &Report| fates(&compare(&Snapshot::of(report.clone(), false), &after));
    assert_eq!(
        (of(&plain), of(&chosen)),
        (vec!["18 Still".to_owned()], vec!["18 Still".to_owned(), "22 Gone".to_owned()])
    );
}

/// A capture fixed by hand shows exactly these lines gone; only its gate passes.
fn fixed_by_hand(before: &str, after: &str, gone: &[u64]) {
    let ran = program(&["diff", before, after, "--format", "json"]);
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    let report = ran.json();
    let sites = report["sites"].as_array().expect("sites");
    let of = |status: &str| sites.iter().filter(|s| s["status"] == status).collect::<Vec<_>>();
    assert_eq!(of("new").len(), 0, "{}", ran.stdout);
    let mut lines: Vec<u64> =
        of("gone").iter().filter_map(|s| s["before"]["location"]["line"].as_u64()).collect();
    lines.sort_unstable();
    assert_eq!(lines, gone);
    for (profile, code) in [(before, 1), (after, 0)] {
        let gate = program(&["check", profile, "--fail-on", "any-false", "-q"]);
        assert_eq!(gate.code, code, "{}{}", gate.stdout, gate.stderr);
    }
}

#[test]
fn fixed_lines_are_gone_and_the_gate_passes() {
    let folder = tempfile::tempdir().expect("a folder");
    let before = [upload("step", 18), upload("step", 19), read("step", 22)];
    // Pinning took two more lines above.
    let after = [read("step", 24)];
    let path =
        |name, how: &Loop, lines: &[Waits]| how.write(folder.path(), name, lines).display().to_string();
    let fixed = Loop { main: LOOP.main + 2, ..LOOP.seed(2) };
    fixed_by_hand(&path("before", &LOOP, &before), &path("after", &fixed, &after), &[18, 19]);
}

/// The training loop and the same loop fixed by hand, both captured on one machine: exactly the fixed lines are gone.
#[test]
fn a_real_fix_shows_as_what_it_fixed() {
    let (before, after) = (sample("fixed/before"), sample("fixed/after"));
    let root = |folder: &str| format!("{}/sample-profiles/{folder}", env!("CARGO_MANIFEST_DIR"));
    let (old, new) = (root("programs"), root("fixed"));
    let sources = ["--before-source-root", &old, "--source-root", &new];
    let ran = program(&[&["diff", &before, &after, "--format", "json"][..], &sources].concat());
    let report = ran.json();
    let sites = report["sites"].as_array().expect("sites");
    let of = |change: &str| -> Vec<i64> {
        let those = sites.iter().filter(|s| s["status"] == change);
        let mut lines: Vec<i64> = those.filter_map(|s| s["before"]["location"]["line"].as_i64()).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(
        (of("gone"), of("new"), of("changed")),
        (vec![18, 19, 30, 31], vec![], vec![]),
        "{}",
        ran.stdout
    );

    let folder = tempfile::tempdir().expect("a folder");
    let budget = folder.path().join("budget.toml");
    let text = "[limits]\nfalse-waits = 0\n[[allow]]\npath = \"train_mlp.py\"\nfunction = \"main\"\n\
                reason = \"the profiler's own start-up\"\nexpires = 2099-12-31\n";
    std::fs::write(&budget, text).expect("written");
    let budget = budget.display().to_string();
    let check = |capture: &str, sources: &str| {
        program(&["check", capture, "--budget", &budget, "--source-root", sources]).code
    };
    assert_eq!((check(&before, &old), check(&after, &new)), (1, 0));
}
