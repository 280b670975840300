//! `sync-report replay` as it is called: plans of the samples, errors, and whole runs on stub libraries.

use crate::cli::{Ran, program, sample};
use crate::replay::stubs::Stubs;
use serde_json::{Value, json};
use std::path::Path;

const SAMPLES: [&str; 4] =
    ["train_mlp_shapes", "train_mlp_python_sampling", "patterns", "pairs_h2d_pageable"];

fn plan(name: &str, more: &[&str]) -> Value {
    let path = sample(name);
    let ran = program(&[&["replay", &path, "--plan", "-q"], more].concat());
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{name}");
    ran.json()
}

/// Every product of the training loop, in launch order: m, n, k as cuBLAS takes them, from the operators' ranges.
#[test]
fn the_training_loop_has_exact_sizes() {
    let plan = plan("train_mlp_shapes", &[]);
    let gemms: Vec<_> = plan["gemms"].as_array().expect("a list").iter().collect();
    let sizes: Vec<[u64; 4]> =
        gemms.iter().map(|g| ["m", "n", "k", "batch"].map(|k| g[k].as_u64().expect("a number"))).collect();
    assert_eq!(
        sizes,
        [
            [2048, 256, 512, 1],  // forward: x (256×512) · W1ᵀ
            [2048, 256, 2048, 1], // W2
            [10, 256, 2048, 1],   // W3
            [2048, 256, 10, 1],   // backward: of W3's input
            [2048, 10, 256, 1],   // of W3
            [2048, 256, 2048, 1], // of W2's input
            [2048, 2048, 256, 1], // of W2
            [512, 2048, 256, 1],  // of W1
        ]
    );
    assert!(
        gemms.iter().all(|g| g["certainty"] == "exact" && g["element"] == "f32" && g["compute"] == "f32")
    );
    let transposed: Vec<_> =
        gemms.iter().map(|g| (g["transpose_a"] == true, g["transpose_b"] == true)).collect();
    let (tn, nn, nt) = ((true, false), (false, false), (false, true));
    assert_eq!(transposed, [tn, tn, tn, nn, nt, nn, nt, nt]);
}

/// The plan of the training loop: products by the sizes of their ranges, what runs between, and what each variant leaves out.
#[test]
fn the_plan_of_the_training_loop() {
    let plan = plan("train_mlp_shapes", &[]);
    let sizes: Vec<[u64; 3]> = plan["gemms"]
        .as_array()
        .expect("products")
        .iter()
        .map(|gemm| ["m", "n", "k"].map(|side| gemm[side].as_u64().expect("a size")))
        .collect();
    let [batch, hidden, wide, classes] = [256, 2048, 512, 10];
    let forward = [[hidden, batch, wide], [hidden, batch, hidden], [classes, batch, hidden]];
    let backward = [
        [hidden, batch, classes],
        [hidden, classes, batch],
        [hidden, batch, hidden],
        [hidden, hidden, batch],
        [wide, hidden, batch],
    ];
    assert_eq!(sizes, [&forward[..], &backward[..]].concat());
    for (place, expected) in [
        ("/gemms/0/certainty", json!("exact")),
        ("/gemms/0/basis", json!("sizes of the operator's NVTX range")),
        ("/gpu/name", json!("NVIDIA H200")),
        ("/stretch/iteration", json!(4)),
        ("/stretch/iterations", json!(29)),
        ("/streams", json!(1)),
        ("/sites/0/fix", json!("pinned")),
        ("/sites/4/fix", json!("delete")),
    ] {
        assert_eq!(plan.pointer(place), Some(&expected), "{place}");
    }
    let variants: Vec<(&str, &Value)> = plan["variants"]
        .as_array()
        .expect("variants")
        .iter()
        .map(|variant| (variant["name"].as_str().expect("a name"), &variant["acts"]))
        .collect();
    let names: Vec<&str> = variants.iter().map(|variant| variant.0).collect();
    assert_eq!(names, ["as recorded", "S2 fixed", "S6 fixed", "S3 fixed", "all avoidable lines fixed"]);
    let count = |acts: &Value, what: &str| {
        acts.as_array().expect("a list").iter().filter(|act| act["act"] == what).count()
    };
    let counts = |acts| ["gemm", "copy", "sync", "memset"].map(|what| count(acts, what));
    assert_eq!(counts(variants[0].1), [8, 6, 7, 1]);
    // A copy that no longer waits, and a synchronisation that is gone: the rest stays.
    assert_eq!(counts(variants[4].1), [8, 6, 4, 1]);
}

#[test]
fn plans_do_not_depend_on_threads() {
    for name in SAMPLES {
        let path = sample(name);
        let with = |threads| program(&["replay", &path, "--plan", "--threads", threads]).stdout;
        let one = with("1");
        assert!(one.len() > 1_000, "{one}");
        for threads in ["2", "7"] {
            assert!(with(threads) == one, "{name} {threads}");
        }
    }
}

#[test]
fn plans_are_consistent() {
    for name in SAMPLES {
        let plan = plan(name, &[]);
        let count = |key: &str| plan[key].as_u64().expect("a number");
        let length = |key: &str| plan[key].as_array().expect("a list").len() as u64;
        let limits = [
            ("stream", count("streams")),
            ("event", count("events")),
            ("gemm", length("gemms")),
            ("site", length("sites")),
        ];
        for variant in plan["variants"].as_array().expect("a list") {
            let acts = variant["acts"].as_array().expect("a list");
            assert!(!acts.is_empty());
            for act in acts {
                for (key, limit) in limits {
                    let value = act.get(key).or_else(|| act["target"].get(key)).and_then(Value::as_u64);
                    assert!(value.is_none_or(|v| v < limit), "{name}: {act}");
                }
                assert!(act["ns"].as_i64().is_none_or(|ns| ns > 0), "{name}: {act}");
            }
        }
    }
}

#[test]
fn a_site_can_be_named_by_id_or_key() {
    let by_id = plan("train_mlp_shapes", &["--site", "s5"]);
    let site = |p: &Value| p["variants"][1]["name"].as_str().expect("a name").to_owned();
    assert_eq!(site(&by_id), "S5 fixed");
    let sites = by_id["sites"].as_array().expect("a list");
    let key = sites.iter().find(|s| s["id"] == "S5").and_then(|s| s["key"].as_str()).expect("a key");
    assert_eq!(plan("train_mlp_shapes", &["--site", key]), by_id);
}

fn fails(arguments: &[&str], words: &[&str]) {
    let ran = program(arguments);
    assert_eq!((ran.code, &*ran.stdout), (2, ""), "{arguments:?}");
    for word in words {
        assert!(ran.stderr.contains(word), "{word}: {}", ran.stderr);
    }
}

#[test]
fn wrong_usage_and_bad_input_exit_with_2() {
    let path = sample("train_mlp_shapes");
    fails(&["replay"], &["PROFILE"]);
    fails(&["replay", &path, "--plan", "--format", "json"], &["--plan"]);
    fails(&["replay", &path, "--plan", "--emit-python", "x.py"], &["--emit-python"]);
    fails(&["replay", &path, "--host", "fast"], &["recorded, unprofiled, none or a factor"]);
    fails(&["replay", &path, "--plan", "--site", "S99"], &["no site S99", "S3 (avoidable)"]);
    fails(&["replay", "/no/such.sqlite", "--plan"], &["no such file"]);
    fails(&["replay", &path, "-o", &path, "--plan"], &["is an input"]);
    fails(&["replay", &path, "--emit-python", &path], &["is an input"]);
    fails(&["replay", &path, "--emit-python", "/no/such/folder/x.py"], &["cannot be written"]);
    fails(&[&path, "--replay-results", "/no/such.json"], &["/no/such.json: cannot be read"]);
    fails(&[&path, "--replay-results", &path], &["holds no results of a replay"]);
}

fn replay(stubs: &Stubs, name: &str, more: &[&str]) -> Ran {
    let folder = stubs.folder().display().to_string();
    let path = sample(name);
    program(&[&["replay", &path, "--rounds", "2", "--lib-dir", &folder, "-q"], more].concat())
}

/// Runs each part from a capture to measured values in its report, on a stub GPU; figures are not checked.
#[test]
fn a_replay_goes_into_the_report() {
    let Some(stubs) = Stubs::get() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let results = folder.path().join("results.json");
    let file = results.display().to_string();
    let ran = replay(stubs, "train_mlp_shapes", &["--host", "none", "--format", "json", "-o", &file]);
    assert_eq!((ran.code, &*ran.stderr, &*ran.stdout), (0, "", ""));
    let measured: Value = serde_json::from_slice(&std::fs::read(&results).expect("results")).expect("JSON");
    let names: Vec<_> = measured["variants"].as_array().expect("a list").iter().map(|v| &v["name"]).collect();
    assert_eq!(names, ["as recorded", "S2 fixed", "S6 fixed", "S3 fixed", "all avoidable lines fixed"]);
    assert_eq!(measured["products"].as_array().map(Vec::len), Some(8));

    let path = sample("train_mlp_shapes");
    let report = program(&[&path, "--replay-results", &file, "--format", "json"]).json();
    for site in report["sites"].as_array().expect("a list") {
        let replayed = ["S2", "S3", "S6"].contains(&site["id"].as_str().expect("an id"));
        assert_eq!(site.get("replayed").is_some(), replayed, "{}", site["id"]);
    }
    let saving = &measured["variants"][2]["saving"]["median_ns"];
    assert_eq!(&report["sites"][1]["replayed"]["saving_ns"], saving);
    assert!(report["totals"]["replayed"]["stretch_ns"].as_i64() > Some(0));
    let table = program(&[&path, "--replay-results", &file, "--width", "120", "--wide"]).stdout;
    assert!(table.contains("measured") && table.contains("Measured, all avoidable sites fixed"), "{table}");
    let details = program(&[&path, "--replay-results", &file, "--details", "S3"]).stdout;
    assert!(details.contains("measured") && details.contains("predicted: "), "{details}");
    fails(&[&sample("patterns"), "--replay-results", &file], &["none of whose sites are in this report"]);
}

#[test]
fn results_print_for_people() {
    let Some(stubs) = Stubs::get() else { return };
    for (format, words) in [
        ("table", &["timeline, times of one stretch", "predicted", "2048 × 256 × 512 tn", "exact"][..]),
        ("markdown", &["| variant | host |", "| --- | ---: |"][..]),
    ] {
        let ran = replay(stubs, "train_mlp_shapes", &["--host", "none", "--format", format]);
        assert_eq!((ran.code, &*ran.stderr), (0, ""));
        for word in words {
            assert!(ran.stdout.contains(word), "{word}: {}", ran.stdout);
        }
    }
}

#[test]
fn without_a_gpu_it_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    if Path::new("/dev/nvidia0").exists() {
        return;
    }
    let ran =
        program(&["replay", &sample("train_mlp_shapes"), "--lib-dir", &folder.path().display().to_string()]);
    ran.refused("sync-report: no CUDA driver");
}
