//! The emitted PyTorch script: it compiles, and runs on a stand-in for PyTorch.

use super::*;
use crate::cli::{program, sample};
use crate::export::{GPU0, Schema, empty_of};
use std::process::Command;
use sync_report::replay::python;

const TORCH: &str = include_str!("torch.py");

/// `None`, with a word about it, where there is no Python.
fn python3() -> Option<Command> {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: no python3");
        return None;
    }
    Some(Command::new("python3"))
}

/// Runs a script with the stand-in beside it. Returns success, and stdout with stderr after it.
fn run(script: &str, arguments: &[&str]) -> Option<(bool, String)> {
    let mut python = python3()?;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("replay.py");
    std::fs::write(&file, script).expect("written");
    std::fs::write(folder.path().join("torch.py"), TORCH).expect("written");
    let out = python.arg("-B").arg(&file).args(arguments).output().expect("it runs");
    let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    Some((out.status.success(), text))
}

fn emitted(name: &str, more: &[&str]) -> String {
    let path = sample(name);
    let ran = program(&[&["replay", &path, "--emit-python", "-", "-q"], more].concat());
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    ran.stdout
}

#[test]
fn scripts_of_the_samples_run() {
    for name in ["train_mlp_shapes", "patterns", "pairs_h2d_pageable"] {
        let script = emitted(name, &["--host", "none"]);
        for arguments in [&[][..], &["--sync"], &["--no-sync"], &["--both", "--fixed", "1"]] {
            let arguments = [&["--rounds", "1", "--repeat", "2"], arguments].concat();
            let Some((good, text)) = run(&script, &arguments) else { return };
            assert!(good && text.contains("us a step"), "{name} {arguments:?}: {text}");
            let both = !arguments.contains(&"--sync") && !arguments.contains(&"--no-sync");
            assert_eq!(text.contains("saved"), both, "{arguments:?}: {text}");
        }
        let Some((good, text)) = run(&script, &["--help"]) else { return };
        assert!(good && text.contains("--no-sync"), "{text}");
    }
}

#[test]
fn the_script_of_an_upload() {
    let script = emitted("pairs_h2d_pageable", &[]);
    let head = script.split("\n\n\ndef fail").next().expect("a head");
    insta::assert_snapshot!(head);
}

#[test]
fn hostile_names_stay_text() {
    const EVIL: &str =
        "ampere_sgemm_128x64_tn\"),]\nimport os; os.abort() # \\\" ''' \"\"\" \u{2028}\r{x}%s\u{1f680}";
    let (mut e, t) = empty_of(Schema::V2025_3);
    for i in 0..4i64 {
        let at = i * 100_000;
        e.nvtx(t, at..at + 90_000, &format!("step\"\"\"\nraise SystemExit(7) # {i}"));
        e.launch(t, at..at + 2_000, GPU0, at + 4_000..at + 50_000, EVIL);
        e.sync(t, "cudaStreamSynchronize", at + 6_500..at + 54_000, GPU0);
    }
    e.gpu_name(0, EVIL);
    let plan = plan(&e, &site("S1"));
    assert_eq!(plan.gemms.len(), 1);
    let script = python::script(&plan);
    assert!(script.is_ascii());
    for line in script.lines() {
        let start = line.trim_start();
        assert!(!start.starts_with("import os;") && !start.starts_with("raise System"), "{line}");
    }
    let Some((good, text)) = run(&script, &["--rounds", "1", "--repeat", "1"]) else { return };
    assert!(good && text.contains("us a step"), "{text}");
}
