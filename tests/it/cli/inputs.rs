//! Inputs that are bad, damaged or odd: a report or one sentence, never a panic, never a change.

use super::*;
use crate::export::{GPU0, empty};

/// One sentence per problem: each line begins with the program's name, names the file, and has no other lines below.
fn assert_sentences(ran: &Ran, what: &str) {
    assert!(!ran.stderr.trim().is_empty(), "{what}: exit 2 without a word");
    for line in ran.stderr.lines() {
        assert!(line.starts_with("sync-report: "), "{what}: {line}");
        assert!(line.contains(".sqlite") || line.contains(".nsys-rep"), "{what}: {line}");
        assert!(!line.contains("rusqlite") && !line.contains("Error code"), "{what}: {line}");
        assert!(!line.chars().any(char::is_control), "{what}: {line:?}");
    }
}

fn check(name: &str, path: &Path, codes: &[i32]) -> Ran {
    let before = state(path);
    let ran = program(&[path]);
    assert!(codes.contains(&ran.code), "{name}: exit {} {}", ran.code, ran.stderr);
    if ran.code == 2 {
        assert_sentences(&ran, name);
    } else {
        assert_eq!(ran.stderr, "", "{name}");
        assert!(!ran.stdout.is_empty(), "{name}");
    }
    assert_eq!(state(path), before, "{name}: the input changed");
    let doctor = self::ran(command().arg("doctor").arg(path));
    assert!(codes.contains(&doctor.code), "doctor on {name}: {}", doctor.code);
    assert_ne!(doctor.stdout.lines().count(), 1, "a heading of nothing: {}", doctor.stdout);
    let json = self::ran(command().args(["--format", "json"]).arg(path));
    assert_eq!(json.code, ran.code, "{name}");
    if !json.stdout.is_empty() {
        serde_json::from_str::<serde_json::Value>(&json.stdout).expect("JSON, or nothing");
    }
    assert_eq!(state(path), before, "{name}: the input changed");
    ran
}

#[test]
fn what_is_no_export_gets_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, path) in hostile::not_exports(folder.path()) {
        let ran = check(&name, &path, &[2]);
        assert_eq!(ran.stderr.lines().count(), 1, "{name}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{name}");
    }
}

/// (a name, its bytes, words of the sentence, a word that it must not have)
#[test]
fn a_file_that_is_no_export_is_called_what_it_is() {
    const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    const REPORT: &[u8] = b"NVIDIA Tegra Profiler Report 2021@1@2";
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes, words, not) in [
        ("run.sqlite", POINTER, "git lfs pull --include=run.sqlite", "SQLite database"),
        ("my run.nsys-rep", POINTER, "git lfs pull --include='my run.nsys-rep'", "SQLite database"),
        ("old.qdrep", REPORT, "old.qdrep", "nsys-rep"),
        ("notes.sqlite", b"step,loss\n", "no SQLite database", "force-overwrite"),
        ("run.nsys-rep", b"step,loss\n", "no report of nsys, nor an SQLite export", "nsys export"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("a file");
        let ran = ran(command().env("PATH", folder.path()).arg("-q").arg(&path));
        assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1), "{}", ran.stderr);
        assert!(ran.stderr.contains(words) && !ran.stderr.contains(not), "{}", ran.stderr);
    }
}

/// Somebody's database: nothing that is advised may overwrite it.
#[test]
fn a_foreign_database_is_left_to_its_owner() {
    let folder = tempfile::tempdir().expect("a folder");
    let cases = hostile::not_exports(folder.path());
    let (_, path) = cases.iter().find(|(name, _)| name == "other database").expect("the case");
    let ran = program(&[path]);
    assert!(ran.stderr.contains("not an Nsight Systems export"), "{}", ran.stderr);
    let name = path.file_name().expect("a name").to_string_lossy();
    let command = ran.stderr.split("nsys export").nth(1).expect("a command");
    assert!(!command.contains("force-overwrite") && !command.contains(&*name), "{}", ran.stderr);
}

/// Cut off, or with a page of garbage: a sentence, unless what was hit does not matter.
#[test]
fn damaged_exports_are_reported_or_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, path) in hostile::damaged(folder.path()) {
        let codes: &[i32] = if name.starts_with("cut") { &[2] } else { &[0, 2] };
        check(&name, &path, codes);
    }
}

/// SQLite without its check of cells reads on past a page, and the length of the path moves what lies there.
#[test]
fn a_damaged_file_gets_one_answer_whatever_its_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let cases = hostile::past_the_page(folder.path());
    assert!(cases.len() > 20, "{} pages", cases.len());
    for (name, path) in cases {
        let answers = [20, 37, 150].map(|length| {
            let called = "p".repeat(length);
            let copy = folder.path().join(format!("{called}.sqlite"));
            std::fs::copy(&path, &copy).expect("a copy");
            let ran = ran(command().args(["--format", "json"]).arg(&copy));
            (ran.code, ran.stdout.replace(&called, "NAME"), ran.stderr.replace(&called, "NAME"))
        });
        assert_eq!(answers[0], answers[1], "{name}");
        assert_eq!(answers[1], answers[2], "{name}");
    }
}

#[test]
fn an_export_cut_anywhere_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = std::fs::read(sample("pairs_h2d_pageable")).expect("a sample");
    for tenth in 0..10 {
        let path = folder.path().join("cut.sqlite");
        let length = bytes.len() * tenth / 10 + usize::from(tenth == 0) * 50;
        std::fs::write(&path, &bytes[..length]).expect("a copy");
        let ran = check(&format!("cut at {length}"), &path, &[2]);
        assert!(ran.stderr.contains("cut short"), "{}", ran.stderr);
    }
}

#[test]
fn odd_exports_are_reported_as_far_as_they_go() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, path) in hostile::odd_exports(folder.path()) {
        check(&name, &path, &[0, 2]);
    }
}

/// JSON cut short, a false frame count, chain cycles, ids and times out of range: exit code 2 with a
/// sentence, and the rest reported.
#[test]
fn damage_inside_is_told_and_exits_with_2() {
    let folder = tempfile::tempdir().expect("a folder");
    let cases = hostile::odd_exports(folder.path());
    for name in [
        "json cut short",
        "json is no object",
        "blob claims too many frames",
        "blob claims a frame too many",
        "times at the extremes",
        "ids out of range",
    ] {
        let (_, path) = cases.iter().find(|(n, _)| n == name).expect("the case");
        let ran = program(&[path]);
        assert_eq!(ran.code, 2, "{name}");
        assert_sentences(&ran, name);
    }
}

#[test]
fn hostile_names_print_harmlessly() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("names.sqlite");
    let (mut e, t) = empty();
    let name = "\u{1b}[31m\u{1b}]0;x\u{7}\u{202e}\n\r\0";
    e.process(100, name).name_thread(t, name).gpu_name(0, name).command(&["python", name]);
    e.diagnostic(3, &format!("Not all {name}")).nvtx(t, 0..5000, name);
    e.launch(t, 100..110, GPU0, 120..900, name);
    let (copy, wait) = e.item(t, 200..1000, GPU0, 901..905);
    for call in [copy, wait] {
        e.python(call, &[(name, name, 3)]).native(call, &[(name, name)]);
    }
    e.write(&path);
    for arguments in
        [&[][..], &["--details", "S1"], &["--format", "csv"], &["--format", "json"], &["--width", "60"]]
    {
        let ran = ran(command().arg(&path).args(arguments));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        let json = arguments.contains(&"json");
        let text = if json { ran.stdout.replace('\u{202e}', "") } else { ran.stdout };
        assert!(!text.chars().any(bad), "{arguments:?}: {text:?}");
        assert!(!ran.stderr.chars().any(bad));
    }
    let doctor = ran(command().arg("doctor").arg(&path));
    assert!(!doctor.stdout.contains('\u{1b}') && !doctor.stdout.contains('\u{202e}'), "{:?}", doctor.stdout);
}

#[test]
#[cfg(unix)]
fn hostile_paths_print_harmlessly() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().expect("a folder");
    let names: [&[u8]; 5] =
        [b"\x1b[2J.sqlite", b"a\nb.sqlite", b"\xff\xfe.sqlite", b"100%?#.sqlite", b"-o.sqlite"];
    for name in names {
        let path = folder.path().join(OsStr::from_bytes(name));
        let missing = program(&[&path]);
        assert_eq!((missing.code, missing.stderr.lines().count()), (2, 1), "{:?}", missing.stderr);
        assert!(!missing.stderr.contains('\u{1b}'));
        std::fs::copy(hostile::good(folder.path()), &path).expect("a copy");
        for arguments in [&[][..], &["--format", "csv"], &["--format", "json"]] {
            let good = ran(command().args(arguments).arg(&path));
            assert_eq!(good.code, 0, "{}", good.stderr);
            assert!(!good.stdout.contains('\u{1b}'));
        }
        let relative = ran(command().current_dir(folder.path()).arg("--").arg(OsStr::from_bytes(name)));
        assert_eq!(relative.code, 0, "{}", relative.stderr);
    }
}

#[test]
fn one_bad_export_among_several_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let ran = program(&[&good(folder.path()), "/nowhere/rank1.sqlite"]);
    assert_eq!((ran.code, &*ran.stdout), (2, ""));
    assert!(ran.stderr.contains("rank1.sqlite"), "{}", ran.stderr);
}

#[test]
#[cfg(unix)]
fn devices_and_pipes_are_refused() {
    let ran = program(&["/dev/null"]);
    assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1), "{}", ran.stderr);
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe.sqlite");
    if Command::new("mkfifo").arg(&pipe).status().is_ok_and(|s| s.success()) {
        let ran = program(&[&pipe]);
        assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1), "{}", ran.stderr);
        let report = folder.path().join("pipe.nsys-rep");
        std::fs::rename(&pipe, &report).expect("a name");
        let mut child = command().arg(&report).stderr(Stdio::null()).spawn().expect("the program runs");
        let mut ended = None;
        // A minute: other work on the machine may keep it from starting.
        for _ in 0..1200 {
            ended = child.try_wait().expect("its state");
            if ended.is_some() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        if ended.is_none() {
            child.kill().expect("an end");
        }
        assert_eq!(ended.and_then(|e| e.code()), Some(2), "it hung on a pipe named .nsys-rep");
    }
}
