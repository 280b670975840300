//! Arguments that name exports, and exports with defects.

use super::*;
use crate::cli::{command, ran};
use crate::export::empty_of;

fn copies(folder: &Path, names: &[&str]) {
    for name in names {
        fs::copy(sample("pairs_h2d_pageable"), folder.join(name)).expect("a copy");
    }
}

fn list(report: &Value) -> Vec<String> {
    let ranks = report["ranks"]["list"].as_array().expect("ranks");
    let name =
        |rank: &Value| rank["profile"].as_str().and_then(|p| p.rsplit('/').next()).unwrap_or("").to_owned();
    ranks.iter().map(|rank| format!("{} {}", rank["rank"], name(rank))).collect()
}

#[test]
fn folders_patterns_and_the_first_n_stand_for_their_exports() {
    let folder = tempfile::tempdir().expect("a folder");
    let names = ["rank_10.sqlite", "rank_9.sqlite", "rank_1.sqlite", ".rank_3.sqlite"];
    copies(folder.path(), &names);
    // A report beside its export, and a light capture: the same rank.
    fs::write(folder.path().join("rank_9.nsys-rep"), b"NVIDIA Tegra Profiler Report 2024@6").expect("a file");
    copies(folder.path(), &["rank_1.light.sqlite"]);
    fs::write(folder.path().join("notes.txt"), b"").expect("a file");
    let all = ["1 rank_1.sqlite", "9 rank_9.sqlite", "10 rank_10.sqlite"];
    let path = folder.path().display();
    let asked = |what: String| program(&[what.as_str(), "--format", "json", "-q"]).good().json();
    assert_eq!(list(&asked(format!("{path}/"))), all);
    assert_eq!(list(&asked(format!("{path}:2"))), all[..2]);
    assert_eq!(list(&asked(format!("{path}/rank_*[0-9].sqlite"))), all);
    assert_eq!(list(&asked(format!("{path}/rank_*[0-9].sqlite:2"))), all[..2]);
    assert_eq!(list(&asked(format!("{path}/*.sqlite"))), all);
    assert_eq!(list(&asked(format!("{path}/rank_?.sqlite"))), all[..2]);
}

#[test]
fn numbers_come_from_the_best_sign() {
    let folder = tempfile::tempdir().expect("a folder");
    copies(folder.path(), &["prof_0.sqlite", "prof_2.sqlite"]);
    let found = report(folder.path());
    assert_eq!(list(&found), ["0 prof_0.sqlite", "2 prof_2.sqlite"]);
    assert_eq!((codes(&found), &found["ranks"]["missing"]), (vec!["ranks-missing"], &serde_json::json!([1])));
    let folder = tempfile::tempdir().expect("a folder");
    for (name, rank) in [("host-a.4711", 1), ("host-b.4242", 0)] {
        let mut e = Export::new(Schema::V2026_2);
        steps(&mut e, 100, GPU0, 0, 100_000, 100_000, 24);
        e.capture_meta("PROCESS_0:ENVIRONMENT:TOKEN", "hunter2");
        match rank {
            0 => e.capture_meta("PROCESS_0:ENVIRONMENT:SLURM_PROCID", "0"),
            rank => e.capture_meta("PROCESS_0:ENVIRONMENT_4", &format!("RANK={rank}")),
        };
        e.write(&folder.path().join(format!("{name}.sqlite")));
    }
    let found = report(folder.path());
    assert_eq!(list(&found), ["0 host-b.4242.sqlite", "1 host-a.4711.sqlite"]);
    assert_eq!(found["ranks"]["list"][0]["named_by"], "environment");
    assert!(!found.to_string().contains("hunter2"));
}

/// Runs of other programs are no ranks of one: a sentence says so, and all are reported. A launcher is no program.
#[test]
fn a_folder_of_different_programs_is_called_that() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |rank: usize, command: &[&str]| {
        let mut e = Export::new(Schema::V2026_2);
        steps(&mut e, 100, GPU0, 0, 100_000, 100_000, 24);
        e.command(command);
        let path = folder.path().join(format!("rank_{rank}.sqlite"));
        drop(fs::remove_file(&path));
        e.write(&path);
    };
    let said = || {
        let ran = program(&[folder.path().as_os_str(), "--format".as_ref(), "json".as_ref()]);
        let found = ran.json();
        assert_eq!(list(&found).len(), 3);
        (ran.code, ran.stderr)
    };
    write(0, &["python", "-m", "torch.distributed.run", "--nproc-per-node", "2", "train.py"]);
    write(1, &["python", "/w/train.py"]);
    write(2, &["torchrun", "train.py", "--rank", "2"]);
    assert_eq!(said(), (0, String::new()));
    write(2, &["python", "-m", "pkg.serve", "--port", "80"]);
    let (code, stderr) = said();
    assert!(code == 2 && stderr.lines().count() == 1, "{stderr}");
    assert!(stderr.contains("rank_2.sqlite (rank 2) is of pkg.serve, other ranks of train.py: "), "{stderr}");
    write(1, &["python", "eval.py"]);
    let (code, stderr) = said();
    assert!(code == 2 && stderr.lines().count() == 1, "{stderr}");
    assert!(stderr.contains("the ranks are of 3 programs, eval.py, pkg.serve, train.py: "), "{stderr}");
}

#[test]
fn what_is_wrong_with_some_is_said_and_the_rest_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    copies(folder.path(), &["a_rank_0.sqlite", "b_rank_0.sqlite"]);
    let twice = program(&[folder.path().as_os_str(), "--format".as_ref(), "json".as_ref()]);
    assert_eq!((twice.code, twice.stderr.lines().count()), (2, 1), "{}", twice.stderr);
    assert!(twice.stderr.contains("both name rank 0"), "{}", twice.stderr);
    let found = twice.json();
    assert_eq!((codes(&found), list(&found).len()), (vec!["rank-twice"], 2));
    fs::rename(at("b_rank_0.sqlite"), at("b_rank_1.sqlite")).expect("a name");
    assert_eq!(codes(&report(folder.path())), Vec::<&str>::new());

    let whole = fs::read(at("b_rank_1.sqlite")).expect("an export");
    fs::write(at("b_rank_1.sqlite"), &whole[..whole.len() / 2]).expect("a cut copy");
    let (mut e, t) = empty_of(Schema::V2023_4);
    e.launch(t, 0..5_000, GPU0, 10_000..400_000, "k");
    e.device_sync(t, 6_000..403_000, 0);
    e.command(&["python", "eval.py"]);
    e.write(&at("c_rank_2.sqlite"));
    let ran = program(&[folder.path().as_os_str(), "--format".as_ref(), "json".as_ref()]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.starts_with("sync-report: left out: ") && ran.stderr.contains("cut short"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.stderr.lines().count(), 3, "{}", ran.stderr);
    let found = ran.json();
    let said = ["rank-unreadable", "ranks-of-programs", "ranks-of-versions", "ranks-missing"];
    assert_eq!(codes(&found), said);
    assert_eq!(list(&found), ["0 a_rank_0.sqlite", "2 c_rank_2.sqlite"]);
}

#[test]
fn where_nothing_can_be_reported_one_sentence_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, said) in [("", "is a folder without exports"), ("*.sqlite", "no such file")] {
        program(&[folder.path().join(name)]).refused(said);
    }
    for name in ["rank0.sqlite", "rank1.sqlite"] {
        fs::write(folder.path().join(name), b"step,loss\n").expect("a file");
    }
    program(&[folder.path()]).refused("rank0.sqlite: is no SQLite database");
}

#[test]
#[cfg(unix)]
fn a_report_that_cannot_be_exported_is_left_out() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("nsys"), "#!/bin/sh\necho 'no importer' >&2; exit 1\n").expect("a program");
    fs::set_permissions(at("nsys"), fs::Permissions::from_mode(0o755)).expect("its mode");
    fs::create_dir(at("runs")).expect("a folder");
    copies(&at("runs"), &["rank_0.sqlite", "rank_2.sqlite"]);
    fs::write(at("runs/rank_1.nsys-rep"), b"NVIDIA Tegra Profiler Report 2024@6").expect("a file");
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap_or_default());
    let ran = ran(command().env("PATH", &path).args(["-q", "--format", "json"]).arg(at("runs")));
    assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("rank_1.nsys-rep: nsys could not export this report (no importer)"),
        "{}",
        ran.stderr
    );
    let found = ran.json();
    assert_eq!(list(&found), ["0 rank_0.sqlite", "2 rank_2.sqlite"]);
    assert_eq!(codes(&found), ["ranks-missing", "rank-unreadable"]);
    let runs = ["rank_0.sqlite", "rank_1.nsys-rep", "rank_2.sqlite"].map(|name| at("runs").join(name));
    for words in [&["fix"][..], &["check", "--init-budget"]] {
        let mut command = command();
        command.env("PATH", &path).args(words).arg("-q").args(&runs).current_dir(folder.path());
        let ran = crate::cli::ran(&mut command);
        assert_eq!((ran.code, ran.stderr.contains("left out")), (2, true), "{words:?}: {}", ran.stderr);
    }
}

/// Limits on NVTX ranges and prices of chosen fixes read files side by side too, and leave out those that are damaged.
#[test]
fn limits_and_chosen_fixes_are_of_all_that_can_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    world(folder.path(), 4, 2);
    let at = |name: &str| folder.path().join(name);
    let budget = "per = \"run\"\n[[limit]]\nnvtx = \"step\"\nblocked = \"1us\"\n";
    fs::write(at("budget.toml"), budget).expect("a budget");
    let whole = fs::read(at("rank_0.sqlite")).expect("an export");
    fs::write(at("rank_0.sqlite"), &whole[..whole.len() / 2]).expect("a cut copy");
    let (path, budget) = (folder.path().display().to_string(), at("budget.toml").display().to_string());
    for words in
        [&["check", &path, "--budget", &budget][..], &[&path, "--fix", "S1=delete", "--format", "json"]]
    {
        let run = |threads: &str| ran(command().args(words).args(["-q", "--threads", threads]));
        let (one, four) = (run("1"), run("4"));
        assert_eq!((one.code, four.code), (2, 2), "{}", one.stderr);
        assert!(one.stderr.contains("left out") && one.stderr.contains("rank_0.sqlite"), "{}", one.stderr);
        assert!(!one.stdout.is_empty() && one.stdout == four.stdout, "{}", one.stdout);
        let chosen = |site: &Value| site["id"] == "S1" && site["recoverable"]["change"] == "delete";
        let changed = |found: Value| found["sites"].as_array().is_some_and(|sites| sites.iter().any(chosen));
        assert!(serde_json::from_str(&one.stdout).map_or(words[0] == "check", changed), "{}", one.stdout);
    }
}

#[test]
fn folders_go_everywhere() {
    let folder = tempfile::tempdir().expect("a folder");
    world(folder.path(), 4, 2);
    let path = folder.path().display().to_string();
    let one = program(&[path.as_str(), "--format", "json", "--threads", "1"]);
    for more in [&["--threads", "4"][..], &["--threads", "3", "--memory", "1MiB"]] {
        let again = program(&[&[path.as_str(), "--format", "json"], more].concat());
        assert_eq!((again.code, again.stdout == one.stdout), (0, true), "{more:?}");
    }
    let gate = ran(command().args(["check", &path, "--fail-on", "blocked>2ms"]));
    assert_eq!(gate.code, 1, "{}{}", gate.stdout, gate.stderr);
    assert!(
        gate.stdout.contains("3.13 ms on rank 0") && gate.stdout.contains("train.py:50"),
        "{}",
        gate.stdout
    );
    let two = format!("{path}:2");
    let compared = ran(command().args(["diff", &path, &two, "--format", "json"]));
    let found = compared.good().json();
    assert_eq!(codes(&found), ["other-ranks"]);
    let pair = (&found["before"]["ranks"], &found["after"]["ranks"]);
    assert_eq!(pair, (&4.into(), &2.into()));
}
