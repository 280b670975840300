//! `sync-report bench`, run as it is called.

use super::stubs::Stubs;
use crate::cli::{Ran, command, ran, sample};
use std::process::{Command, Stdio};
use sync_report::replay::constants::Constants;

fn quick(stubs: &Stubs) -> Command {
    let mut program = command();
    program
        .args(["bench", "--sizes", "16", "--types", "fp16", "--rounds", "1", "--lib-dir"])
        .arg(stubs.folder());
    program
}

fn good(ran: &Ran) {
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
}

#[test]
fn it_measures_and_saves_constants() {
    let Some(stubs) = Stubs::get() else { return };
    let folder = tempfile::tempdir().expect("temporary folder");
    let (constants, results) = (folder.path().join("constants.json"), folder.path().join("bench.json"));
    let mut program = quick(stubs);
    program.args(["--format", "json", "--save"]).arg(&constants).arg("-o").arg(&results);
    let ran = ran(&mut program);
    good(&ran);
    assert_eq!(ran.stdout, "");
    let constants = Constants::read(&constants).expect("they are valid");
    assert!(constants.pinned_upload > 0.0 && constants.launch_call_ns > 0, "{constants:?}");
    assert_eq!(constants.gpu.name, "Stub GPU 0");
    let bench: serde_json::Value =
        serde_json::from_slice(&std::fs::read(results).expect("it is there")).expect("it is JSON");
    assert_eq!(bench["products"][0]["size"], 16);
    assert_eq!(bench["products"][0]["with"].as_array().map(Vec::len), Some(3));
}

#[test]
fn it_prints_tables() {
    let Some(stubs) = Stubs::get() else { return };
    let ran = ran(&mut quick(stubs));
    good(&ran);
    for words in
        ["GPU 0: Stub GPU 0", "what a wait after each adds", "by value read", "Constants for simulations"]
    {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
}

#[test]
fn the_self_test_says_what_works() {
    let Some(stubs) = Stubs::get() else { return };
    for (tick, clock) in [("32", "the GPU's nanosecond timer"), ("1024", "the multiprocessors' clock")] {
        let mut program = command();
        program.args(["bench", "--self-test", "--lib-dir"]).arg(stubs.folder());
        let ran = ran(program.env("STUB_TICK", tick));
        good(&ran);
        for words in ["80 products in 5 types run", "copies to the GPU", clock] {
            assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = folder.path().join("one").display().to_string();
    for arguments in [
        vec!["--types", "fp7"],
        vec!["--sizes", "0"],
        vec!["--rounds", "0"],
        vec!["--self-test", "--save", "x"],
        vec!["--save", &file, "-o", &file],
    ] {
        let ran = ran(command().arg("bench").args(&arguments));
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{arguments:?}");
    }
    assert!(!folder.path().join("one").exists());
}

/// Whether a process has put a handler in for Ctrl-C (signal 2), as Linux says; elsewhere it is given time to.
#[cfg(unix)]
fn catches_ctrl_c(pid: u32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else {
        std::thread::sleep(std::time::Duration::from_millis(1500));
        return true;
    };
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 0b10 != 0)
}

#[test]
#[cfg(unix)]
fn ctrl_c_ends_it() {
    let Some(stubs) = Stubs::get() else { return };
    let mut program = command();
    program.args(["bench", "--sizes", "256", "--rounds", "1000", "--lib-dir"]).arg(stubs.folder());
    let child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    (0..1200)
        .take_while(|_| !catches_ctrl_c(child.id()))
        .for_each(|_| std::thread::sleep(std::time::Duration::from_millis(50)));
    let pressed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(pressed.success());
    let out = child.wait_with_output().expect("it ends");
    assert_eq!(out.status.code(), Some(130));
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert_eq!(stderr, "sync-report: interrupted: nothing was finished\n");
    assert!(out.stdout.is_empty());
}

#[test]
#[cfg(unix)]
fn the_script_for_gpu_machines_runs_everything() {
    let Some(stubs) = Stubs::get() else { return };
    let folder = tempfile::tempdir().expect("temporary folder");
    let script = || {
        let mut script = Command::new(format!("{}/scripts/gpu_check.sh", env!("CARGO_MANIFEST_DIR")));
        script.arg("--binary").arg(assert_cmd::cargo::cargo_bin!("sync-report"));
        script.arg("--lib-dir").arg(stubs.folder()).arg("-o").arg(folder.path().join("out"));
        script.args(["--rounds", "1", "--sizes", "16", "--seconds", "1"]).arg(sample("pairs_h2d_pageable"));
        script
    };
    let out = ran(&mut script());
    good(&out);
    for (file, words) in [
        ("self-test.txt", "products in 5 types run"),
        ("bench.md", "#### Constants for simulations"),
        ("constants.json", "pinned_upload"),
        ("replay-pairs_h2d_pageable-recorded.md", "as recorded"),
        ("replay-pairs_h2d_pageable-recorded.json", "results_version"),
        ("replay-pairs_h2d_pageable-unprofiled.md", "and left out"),
    ] {
        let text = std::fs::read_to_string(folder.path().join("out").join(file)).expect("it is kept");
        assert!(text.contains(words), "{file}: {text}");
        assert!(file.ends_with(".json") || out.stdout.contains(text.trim_end()), "{file}");
    }
    // Only missing results are measured again.
    let replay = folder.path().join("out/replay-pairs_h2d_pageable-unprofiled.md");
    std::fs::remove_file(&replay).expect("it was there");
    std::fs::write(folder.path().join("out/bench.md"), "measured before\n").expect("written");
    let again = ran(&mut script());
    good(&again);
    assert!(replay.exists() && again.stdout.contains("measured before"), "{}", again.stdout);
    // A GPU that copies wrong is measured no further.
    let out = ran(script().env("STUB_WRONG", "1"));
    assert_eq!(out.code, 1);
    assert!(out.stderr.contains("this GPU copies wrong") && !out.stdout.contains("what a wait costs"));
}
