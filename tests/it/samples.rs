//! Figures of the sample captures, through the program.

use crate::cli::{program, sample};
use crate::look;
use serde_json::Value;
use std::collections::BTreeMap;

fn report(name: &str) -> Value {
    report_of(name, &[])
}

fn report_of(name: &str, options: &[&str]) -> Value {
    let capture = sample(name);
    let out = program(&[&[&*capture, "--format", "json", "--top", "0"], options].concat());
    assert_eq!((out.code, &*out.stderr), (0, ""));
    out.json()
}

fn sites(report: &Value) -> &[Value] {
    report["sites"].as_array().map_or(&[], Vec::as_slice)
}

fn waits_by(report: &Value, field: impl Fn(&Value) -> String) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for site in sites(report) {
        *counts.entry(field(site)).or_default() += site["waits"].as_u64().expect("a number");
    }
    counts
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("-").to_owned()
}

fn counts<const N: usize>(pairs: [(&str, u64); N]) -> BTreeMap<String, u64> {
    pairs.map(|(k, v)| (k.to_owned(), v)).into()
}

#[test]
fn the_training_loop_has_its_waits_on_their_lines() {
    let report = report("train_mlp_shapes");
    assert_eq!(report["totals"]["waits"], 212);
    let apis = waits_by(&report, |s| text(&s["api"]));
    assert_eq!(apis, counts([("cudaStreamSynchronize", 180), ("cudaDeviceSynchronize", 32)]));
    let attributions = waits_by(&report, |s| text(&s["attribution"]));
    assert_eq!(attributions, counts([("python-backtrace", 212)]));
    let lines = waits_by(&report, |s| {
        format!("{} {} {} {}", s["user_frame"]["function"], s["user_frame"]["line"], s["class"], s["kind"])
            .replace('"', "")
    });
    assert_eq!(
        lines,
        counts([
            ("step 18 false upload", 30),
            ("step 19 false upload", 30),
            ("step 22 unknown value-read", 30),
            ("step 30 unknown value-read", 90),
            ("step 31 false redundant", 30),
            ("main 38 false timing", 2),
        ])
    );
    assert_eq!(report["iterations"]["count"], 29);
    assert!(
        sites(&report).iter().all(|s| s["spread"]["samples"].as_u64() > Some(0)),
        "JSON has how costs vary"
    );
    let read = sites(&report).iter().find(|s| s["user_frame"]["line"] == 22).expect("the read");
    assert_eq!((&read["copy"]["bytes"], &read["copy"]["direction"]), (&4.into(), &"device-to-host".into()));
}

fn labels() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/sample-profiles/patterns.labels.json");
    serde_json::from_slice(&std::fs::read(path).expect("the labels")).expect("JSON")
}

/// Every function has the waits of its label in each of ten calls; a function labelled `none` has no wait. No
/// labelled kind is contradicted.
#[test]
fn each_pattern_has_the_waits_of_its_label() {
    let report = report("patterns");
    assert_eq!(report["totals"]["waits"], 380);
    let labels = labels();
    let found = waits_by(&report, |s| text(&s["user_frame"]["function"]));
    let mut expected = BTreeMap::new();
    for (function, label) in labels["sites"].as_object().expect("labels") {
        let syncs = label["syncs"].as_u64().expect("a number");
        if syncs > 0 {
            expected.insert(function.clone(), syncs * 10);
        }
        assert_eq!(label["class"] == "none", syncs == 0, "{function}");
    }
    assert_eq!(found, expected);
    let programs = concat!(env!("CARGO_MANIFEST_DIR"), "/sample-profiles/programs");
    let read = report_of("patterns", &["--source-root", programs]);
    // The trace does not tell whether the host had the total, whether the branch only guards, or whether a
    // size is the same in all ten calls.
    let open = [
        "p_repeat_interleave",
        "p_if_any",
        "p_python_max",
        "p_mask_index",
        "p_nonzero",
        "p_masked_select",
        "p_slice_cuda_bounds",
    ];
    let by_trace = sites(&report).iter().filter(|site| site["class"] != "unknown");
    for site in by_trace.chain(sites(&read)) {
        let function = text(&site["user_frame"]["function"]);
        let label = &labels["sites"][&function];
        assert_eq!(site["class"], label["class"], "{function}");
        // The timeline shows more of an explicit synchronisation (idle, redundant) than its label.
        if let Some(kind) = label["kind"].as_str().filter(|k| !k.starts_with("explicit")) {
            assert_eq!(site["kind"], kind, "{function}");
        }
    }
    for site in sites(&report) {
        let function = text(&site["user_frame"]["function"]);
        let same = site["class"] == labels["sites"][&function]["class"];
        assert!(same || site["class"] == "unknown" && open.contains(&&*function), "{function}");
    }
}

#[test]
fn rules_are_counted_on_the_patterns_as_committed() {
    let labels = labels();
    let programs = concat!(env!("CARGO_MANIFEST_DIR"), "/sample-profiles/programs");
    let mut decided = look::Decided::new();
    for report in [report_of("patterns", &["--source-root", programs]), report("patterns")] {
        for site in sites(&report) {
            let (function, said) = (text(&site["user_frame"]["function"]), text(&site["class"]));
            let label = text(&labels["sites"][&function]["class"]);
            if said != "unknown" && label != "unknown" {
                let right = said == label;
                decided.insert((text(&site["evidence"][0]["case"]), function, said, right));
            }
        }
    }
    look::assert_counted("own", &decided);
}

#[test]
fn a_sampled_capture_says_what_samples_can_tell() {
    let report = report("train_mlp_python_sampling");
    assert_eq!(report["totals"]["waits"], 420);
    let attributions = waits_by(&report, |s| text(&s["attribution"]));
    assert_eq!(attributions, counts([("python-sample", 420)]));
    for site in sites(&report) {
        assert_eq!(site["user_frame"]["function"], "step");
        assert!(text(&site["attribution_note"]).contains("agree"), "{}", site["attribution_note"]);
    }
    let codes: Vec<_> = report["warnings"].as_array().expect("warnings").iter().map(|w| &w["code"]).collect();
    assert!(codes.contains(&&"sampling-only".into()), "{codes:?}");
}

#[test]
fn uploads_between_gemms_are_told() {
    let report = report("pairs_h2d_pageable");
    let kinds = waits_by(&report, |s| text(&s["kind"]));
    assert_eq!(kinds, counts([("explicit", 1), ("upload", 100)]));
    assert_eq!(report["iterations"]["count"], 100);
}

#[test]
fn numbers_agree() {
    for name in ["train_mlp_shapes", "patterns", "train_mlp_python_sampling", "pairs_h2d_pageable"] {
        let report = report(name);
        let number = |v: &Value| v.as_i64().unwrap_or_else(|| panic!("{v} is no integer"));
        let sum = |field: &str| sites(&report).iter().map(|s| number(&s[field])).sum::<i64>();
        for field in ["waits", "blocked_ns", "drain_ns"] {
            let totals = &report["totals"];
            assert_eq!(number(&totals[field]), sum(field), "{name}: {field}");
            let classes = ["false", "true", "unknown"].map(|c| number(&totals["by_class"][c][field]));
            assert_eq!(classes.iter().sum::<i64>(), sum(field), "{name}: {field} by class");
        }
        for gpu in report["profiles"][0]["gpus"].as_array().expect("gpus") {
            assert_eq!(number(&gpu["busy_ns"]) + number(&gpu["idle_ns"]), number(&gpu["span_ns"]));
            assert!(number(&gpu["drain_ns"]) <= number(&gpu["idle_ns"]));
            assert_eq!(number(&gpu["drain_ns"]), sum("drain_ns"), "{name}: one GPU has it all");
        }
        let csv = program(&[&sample(name), "--format", "csv", "--top", "0"]).stdout;
        assert_eq!(csv.lines().count(), 1 + sites(&report).len());
    }
}

/// One copy of a hundred is already pinned: the fix still applies to the others.
#[test]
fn a_pinned_copy_among_pageable_ones_changes_little() {
    let sample = sample("pairs_h2d_pageable");
    let saved = |pinned: &str| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("mixed.sqlite");
        std::fs::copy(&sample, &path).expect("a copy");
        let db = rusqlite::Connection::open(&path).expect("the copy");
        let uploads = "SELECT rowid FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind = 1";
        db.execute_batch(&format!(
            "UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET srcKind = 1 WHERE rowid IN ({uploads} {pinned})"
        ))
        .expect("an update");
        drop(db);
        let report = look::report_on(&path, &look::options());
        report.totals.recoverable_false_joint_ns.expect("a price")
    };
    let (all, mixed) = (saved("LIMIT 0"), saved("ORDER BY rowid LIMIT 1 OFFSET 50"));
    assert!(mixed as f64 > 0.95 * all as f64, "{mixed} of {all}");
}
