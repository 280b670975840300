//! Ranks: each has a file of its own, and one report comes at the end.

use super::{Bench, text};
use crate::cli::sample;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A launcher that starts two ranks, with torchrun's variables.
const FAKE_LAUNCHER: &str = r#"#!/bin/bash
while [ "${1##*/}" != sync-report ]; do shift; done
for rank in $(seq 0 $((${RANKS:-2} - 1))); do RANK=$rank WORLD_SIZE=${RANKS:-2} "$@" & done
wait
"#;

/// An installation with a launcher, and the `PATH` on which it is.
fn with_torchrun() -> (Bench, String) {
    let bench = Bench::new(Some("nsys-rep"));
    bench.fake("sample", &sample("train_mlp"));
    bench.program("bin/torchrun", FAKE_LAUNCHER);
    let path = format!("{}:{}", bench.path("bin").display(), std::env::var("PATH").expect("a PATH"));
    (bench, path)
}

#[test]
fn every_rank_has_a_file_of_its_own() {
    let bench = Bench::new(Some("nsys-rep"));
    bench.captured(&["-o", "rank_%q{RANK}_%%.sqlite", "python", "train.py"]);
    assert_eq!(bench.files(), ["rank_3_%.nsys-rep", "rank_3_%.sqlite"]);
}

/// ```text
///  run -- torchrun train.py          torchrun --no-python run -o ranks/rank_%r -- python train.py
///  torchrun --no-python run …        each rank writes ranks/rank_N.sqlite; rank 0 waits, and reports
/// ```
#[test]
fn a_launcher_has_a_file_for_each_rank_and_one_report() {
    let (bench, path) = with_torchrun();
    let expected = ["rank_0.nsys-rep", "rank_0.sqlite", "rank_1.nsys-rep", "rank_1.sqlite"];
    let launched = |arguments: &[&str]| {
        let mut command = bench.run();
        let done = command.env_remove("RANK").env("PATH", &path).args(arguments).output().expect("it runs");
        (done.status.code(), text(&done.stdout), text(&done.stderr))
    };
    let (code, printed, said) =
        launched(&["-o", "behind", "--", "torchrun", "--nproc-per-node", "2", "train.py"]);
    assert_eq!((code, bench.files_in("behind")), (Some(0), expected.map(str::to_owned).to_vec()), "{said}");
    assert!(printed.contains("train_mlp.py:18") && printed.contains("2 ranks"), "{printed}{said}");
    // Files of an earlier run stay, and say so.
    let (code, printed, said) = launched(&["-o", "behind", "--", "torchrun", "train.py"]);
    assert_eq!((code, printed.as_str()), (Some(2), ""), "{said}");
    assert!(said.contains("behind/rank_0.sqlite exists (--force replaces the ranks' files)"), "{said}");
    let own = assert_cmd::cargo::cargo_bin!("sync-report");
    let mut before = Command::new(bench.path("bin/torchrun"));
    before.arg("--no-python").arg(own).args(["run", "-o", "before", "--", "python", "train.py"]);
    before.current_dir(bench.folder.path()).env("NSYS", bench.path("host/target-linux-x64/nsys"));
    let done = before.output().expect("it runs");
    assert_eq!(bench.files_in("before"), expected, "{}", text(&done.stderr));
    assert!(text(&done.stdout).contains("train_mlp.py:18"), "{}", text(&done.stderr));
}

/// mpirun in a batch script of Slurm: the script's own rank is passed on to all. A name with the job's number is one folder.
#[test]
fn the_innermost_launcher_says_the_rank() {
    let (bench, path) = with_torchrun();
    bench.program(
        "bin/mpirun",
        &FAKE_LAUNCHER.replace("RANK=$rank WORLD_SIZE", "OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE"),
    );
    let mut command = Command::new(bench.path("bin/mpirun"));
    command.arg(assert_cmd::cargo::cargo_bin!("sync-report")).args([
        "run",
        "-o",
        "n_%q{SLURM_JOB_ID}",
        "--",
        "python",
        "t.py",
    ]);
    command
        .current_dir(bench.folder.path())
        .env("NSYS", bench.path("host/target-linux-x64/nsys"))
        .env("PATH", path);
    let done = command.envs([("SLURM_PROCID", "0"), ("SLURM_JOB_ID", "7")]).output().expect("it runs");
    let expected = ["rank_0.nsys-rep", "rank_0.sqlite", "rank_1.nsys-rep", "rank_1.sqlite"];
    assert_eq!(bench.files_in("n_7"), expected, "{}", text(&done.stderr));
    assert!(text(&done.stdout).contains("2 ranks"), "{}", text(&done.stderr));
}

/// A rank whose capture fails is not waited for, and the others have their report.
#[test]
fn a_rank_that_failed_is_not_waited_for() {
    for failed in ["0", "1"] {
        a_rank_fails(failed, if failed == "0" { "1" } else { "0" });
    }
}

fn a_rank_fails(failed: &str, other: &str) {
    let (bench, path) = with_torchrun();
    bench.program(&format!("runs/rank_{failed}.sqlite"), "old");
    let start = Instant::now();
    let mut command = Command::new(bench.path("bin/torchrun"));
    command
        .arg(assert_cmd::cargo::cargo_bin!("sync-report"))
        .args(["run", "-o", "runs", "--", "python", "t.py"]);
    command
        .current_dir(bench.folder.path())
        .env("NSYS", bench.path("host/target-linux-x64/nsys"))
        .env("PATH", path);
    let done = command.output().expect("it runs");
    let said = text(&done.stderr);
    assert!(
        said.contains("1 of 2 ranks have written")
            && said.contains(&format!("runs/rank_{failed}.sqlite exists")),
        "{said}"
    );
    assert!(
        text(&done.stdout).contains("train_mlp.py:18") && start.elapsed() < Duration::from_secs(200),
        "{said}"
    );
    let mut files =
        ["rank_0.sqlite".to_owned(), "rank_1.sqlite".to_owned(), format!("rank_{other}.nsys-rep")];
    files.sort();
    assert_eq!(bench.files_in("runs"), files);
}

/// A launcher ends its ranks once one has failed, also the one that waits.
#[test]
fn a_rank_that_is_ended_while_it_waits_reports() {
    let (bench, _) = with_torchrun();
    let mut command = bench.run();
    command.env("RANK", "0").env("WORLD_SIZE", "2").args(["-o", "runs", "--", "python", "t.py"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let start = Instant::now();
    while !bench.path("runs/rank_0.nsys-rep").exists() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(500));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
    let done = child.wait_with_output().expect("it ends");
    let (printed, said) = (text(&done.stdout), text(&done.stderr));
    assert!(printed.contains("train_mlp.py:18") && said.contains("1 of 2 ranks"), "{printed}{said}");
    assert_eq!(bench.files_in("runs"), ["rank_0.nsys-rep", "rank_0.sqlite"]);
}

/// Ranks of an earlier, larger run are named, and not in the report; a rank that never wrote is told.
#[test]
fn ranks_of_an_earlier_run_do_not_count() {
    let (bench, path) = with_torchrun();
    let launched = |ranks: &str, more: &[&str]| {
        let mut command = bench.run();
        command.env_remove("RANK").env_remove("WORLD_SIZE").env("PATH", &path).env("RANKS", ranks);
        let done = command
            .args(more)
            .args(["-o", "runs_%h", "--", "torchrun", "train.py"])
            .output()
            .expect("it runs");
        (text(&done.stdout), text(&done.stderr))
    };
    assert!(launched("3", &[]).0.contains("3 ranks"));
    let (printed, said) = launched("2", &["--force"]);
    assert!(
        printed.contains("2 ranks") && said.contains("rank_2.sqlite of an earlier capture"),
        "{printed}{said}"
    );
}
