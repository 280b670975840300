//! Formats and the doctor.

use super::*;
use crate::export::{Export, GPU0, Payload, Schema, empty_of};
use serde_json::Value;

/// The contract: keys of objects, by place.
const CONTRACT: &[(&str, &str)] = &[
    ("", "schema_version tool profiles totals iterations sites sites_omitted waits_filtered_out warnings"),
    ("/tool", "name version"),
    ("/profiles/0", "path export_version schema span_ns gpus processes command"),
    ("/profiles/0/gpus/0", "id name"),
    ("/profiles/0/processes/0", "pid name"),
    (
        "/totals",
        "waits sites blocked_ns gpu_busy_ns gpu_idle_ns drain_ns by_class recoverable_false_joint_ns recoverable_low_ns \
         recoverable_high_ns simulation_error",
    ),
    ("/totals/by_class/false", "waits sites blocked_ns drain_ns recoverable_ns"),
    ("/totals/by_class/true", "waits sites blocked_ns drain_ns recoverable_ns"),
    ("/totals/by_class/unknown", "waits sites blocked_ns drain_ns recoverable_ns"),
    (
        "/sites/0",
        "id key api driver_api class kind confidence pattern evidence attribution frames user_frame native nvtx source \
         thread process device stream copy waits per_iteration blocked_ns blocked_p50_ns blocked_p99_ns blocked_max_ns \
         drain_ns recoverable fix",
    ),
    ("/sites/0/evidence/0", "rule text"),
];

#[test]
fn json_holds_the_contract() {
    for name in ["train_mlp_shapes", "patterns", "train_mlp_python_sampling", "pairs_h2d_pageable"] {
        let tree = program(&[&*sample(name), "--format", "json"]).json();
        for (place, keys) in CONTRACT {
            let object =
                tree.pointer(place).and_then(Value::as_object).unwrap_or_else(|| panic!("no {place}"));
            for key in keys.split_whitespace() {
                assert!(object.contains_key(key), "{name}: no {key} at {place:?}");
            }
        }
        assert_eq!(tree["schema_version"], 1);
        for site in tree["sites"].as_array().expect("sites") {
            let confidence = site["confidence"].as_f64().expect("a number");
            assert!((0.0..=1.0).contains(&confidence));
            assert!(["false", "true", "unknown"].map(Value::from).contains(&site["class"]));
            let user = &site["user_frame"];
            assert!(user.is_null() || site["frames"].as_array().is_some_and(|f| f.contains(user)));
        }
    }
}

#[test]
fn csv_has_a_row_a_site_and_the_agreed_columns() {
    let ran = program(&[&*sample("train_mlp_shapes"), "--format", "csv"]);
    let mut lines = ran.stdout.lines();
    let header = lines.next().expect("a header");
    assert!(
        header.starts_with("id,key,class,kind,confidence,pattern,file,line,function,source,attribution,")
    );
    for column in ["waits", "blocked_ns", "drain_ns", "copy_direction", "pid", "profile", "fix_title"] {
        assert!(header.split(',').any(|c| c == column), "{column}");
    }
    assert_eq!(lines.count(), 7);
}

#[test]
fn several_exports_make_one_report() {
    let (a, b) = (sample("train_mlp_shapes"), sample("train_mlp_python_sampling"));
    let tree = program(&[&*a, &b, "--format", "json", "--top", "0"]).json();
    assert_eq!(tree["totals"]["waits"], 212 + 420);
    assert_eq!(tree["profiles"].as_array().map(Vec::len), Some(2));
    let sites = tree["sites"].as_array().expect("sites");
    let of = |profile: u64| sites.iter().filter(|s| s["process"]["profile"] == profile).count();
    assert_eq!((of(0), of(1)), (7, 6));
    let mut ids: Vec<&str> = sites.iter().filter_map(|s| s["id"].as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), sites.len());
}

#[test]
fn the_title_is_the_same_however_many_sites_are_listed() {
    for (profile, says) in
        [("ranks", "Rank 1 comes last"), ("train_mlp_shapes.sqlite", "3 avoidable lines together cost")]
    {
        let path = format!("{}/sample-profiles/{profile}", env!("CARGO_MANIFEST_DIR"));
        let title = |top: &str| {
            let ran = program(&[&path, "--format", "markdown", "--top", top]);
            ran.stdout.lines().next().unwrap_or_default().to_owned()
        };
        assert!(title("0").contains(says), "{profile}: {}", title("0"));
        assert_eq!(title("1"), title("0"), "{profile}");
    }
}

#[test]
fn the_doctor_finds_a_good_capture_good() {
    let ran = program(&["doctor", &sample("train_mlp_shapes")]);
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    assert!(ran.stdout.contains("212 of 212 waits"), "{}", ran.stdout);
    assert!(!ran.stdout.contains(" -- "), "{}", ran.stdout);
}

/// (what is wrong with the capture, words of the advice)
#[test]
fn the_doctor_names_what_is_missing_and_the_command() {
    type Spoil = fn(&mut Export) -> &mut Export;
    const THRESHOLD: &str = "CUDA_BACKTRACE_OPTIONS:SYNCHRONIZATION_BACKTRACES_THRESHOLD_NS";
    let cases: [(Spoil, &str); 6] = [
        (|e| e.sql("UPDATE NVTX_EVENTS SET jsonText = NULL, binaryData = NULL"), "--include-json=true"),
        (|e| e.sql("DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE eventClass = 67"), "sync-report run "),
        (
            |e| e.drop_table("CUPTI_ACTIVITY_KIND_KERNEL").drop_table("CUPTI_ACTIVITY_KIND_MEMCPY"),
            "no kernel or copy is recorded",
        ),
        (|e| e.diagnostic(2, "Not all CUDA events might have been collected."), "\"Not all CUDA events"),
        (
            |e| e.capture_meta(THRESHOLD, "80000").sql("DELETE FROM NVTX_EVENTS WHERE eventType = 34"),
            "backtrace threshold of 80",
        ),
        (|e| e.sql("DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME"), "holds no CUDA API calls"),
    ];
    for (spoil, words) in cases {
        let (mut e, t) = empty_of(Schema::V2025_3);
        e.command(&["python", "train.py"]).payload(Payload::Json);
        e.launch(t, 100..110, GPU0, 120..900, "gemm");
        let (copy, wait) = e.item(t, 200..1000, GPU0, 901..905);
        for call in [copy, wait] {
            e.python(call, &[("step", "/w/train.py", 24)]);
        }
        spoil(&mut e);
        let (_folder, path) = e.write_temp();
        let ran = ran(command().arg("doctor").arg(&path));
        assert!(ran.stdout.contains(words), "{words}: {} {}", ran.stdout, ran.stderr);
        let code = if words.contains("no CUDA API") { 2 } else { 0 };
        assert_eq!(ran.code, code, "{words}");
        let json = self::ran(command().args(["doctor", "--format", "json"]).arg(&path));
        let tree: Value = serde_json::from_str(&json.stdout).expect("JSON");
        let capture = &tree["captures"][0];
        assert_eq!((json.code, capture["usable"] == false), (code, code == 2), "{words}: {}", json.stdout);
        let said =
            [&capture["refused"], &capture["warnings"]].map(|said| said.to_string().replace("\\\"", "\""));
        assert!(said.iter().any(|said| said.contains(words)), "{words}: {}", json.stdout);
    }
}

/// nsys says so of every range after which the program runs on; for a whole program it is a warning.
#[test]
fn what_is_said_of_every_range_is_no_warning() {
    const RANGE: &str = "Profiling started due to cudaProfilerStart API invoked in the application.";
    let doctor = |began: &str| {
        let (mut e, t) = empty_of(Schema::V2025_3);
        e.command(&["python", "train.py"]);
        e.capture_meta("CAPTURE_EVENT_TYPE", "CuBLAS");
        e.capture_meta("COLLECT_GPU_MEMORY_USAGE", "true");
        e.launch(t, 100..110, GPU0, 120..900, "gemm");
        e.item(t, 200..1000, GPU0, 901..905);
        e.diagnostic(1, began).diagnostic(2, "Not all CUDA events might have been collected.");
        let (_folder, path) = e.write_temp();
        ran(command().arg("doctor").arg(&path)).stdout
    };
    let ranged = doctor(RANGE);
    assert!(!ranged.contains("nsys says"), "{ranged}");
    // The next capture is made as this one was.
    for option in [
        "--nsys=--trace=cuda,nvtx,cublas ",
        "--range cudaProfilerApi",
        "--nsys=--cuda-memory-usage=true",
        "-- python train.py",
    ] {
        assert!(ranged.contains(option), "{option}: {ranged}");
    }
    assert!(!ranged.contains("Bracket the steps"), "they are: {ranged}");
    let whole = doctor("Profiling has started.");
    assert!(whole.contains("nsys says") && !whole.contains("--range cudaProfilerApi --"), "{whole}");
}

/// A graph traced as a whole, and launches that block until their kernel has ended.
#[test]
fn the_doctor_sees_modes_that_distort() {
    let (mut e, t) = empty_of(Schema::V2025_3);
    for at in (0..60).map(|i| i * 1000) {
        e.launch(t, at..at + 500, GPU0, at + 100..at + 490, "gemm");
    }
    e.graph_launch(t, 100_000..100_010, GPU0, 100_100..100_900);
    e.device_sync(t, 100_200..101_000, 0);
    let (_folder, path) = e.write_temp();
    let ran = ran(command().arg("doctor").arg(&path));
    assert!(ran.stdout.contains("CUDA_LAUNCH_BLOCKING=1"), "{}", ran.stdout);
    assert!(ran.stdout.contains("--cuda-graph-trace=node"), "{}", ran.stdout);
}
