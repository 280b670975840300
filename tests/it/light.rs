//! Two captures of a program side by side, as `scripts/capture.sh --both` leaves them: lines from the one with
//! backtraces, times from the light one, in every command alike.
//!
//! ```text
//!  run.sqlite        step 0 |---- .item() train.py:22 ----|    backtraces: each wait twice as long
//!  run.light.sqlite  step 0 |-- .item() --|                    another process, no lines
//! ```

use crate::cli::{Ran, command, program, ran};
use crate::export::{Copy, Export, GPU0, Memory, Payload, Schema, folder};
use crate::loops::{LOOP, Loop, Waits, read, upload};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tempfile::TempDir;

const FULL: i64 = 100_000;
const LIGHT: i64 = 50_000;

fn lines(ns: i64) -> [Waits; 2] {
    [Waits { ns, ..upload("load", 40) }, Waits { ns, ..read("step", 22) }]
}

fn bare() -> Loop {
    Loop { frames: false, pid: 200, ..LOOP }.seed(2)
}

/// A folder with both captures of a run.
struct Place {
    folder: TempDir,
}

impl Place {
    fn empty() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn new() -> Self {
        let place = Self::empty();
        place.both("run");
        place
    }

    fn both(&self, name: &str) {
        LOOP.write(self.folder.path(), name, &lines(FULL));
        bare().write(self.folder.path(), &format!("{name}.light"), &lines(LIGHT));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        ran(command().current_dir(self.folder.path()).arg("-q").args(arguments))
    }

    /// Of `report` or another command, as JSON.
    fn command(&self, arguments: &[&str]) -> Ran {
        ran(command().current_dir(self.folder.path()).args(arguments))
    }

    fn report(&self, arguments: &[&str]) -> Value {
        let ran = self.run(&[&["--format", "json", "--top", "0"], arguments].concat());
        assert_eq!((ran.code, &*ran.stderr), (0, ""));
        ran.json()
    }
}

fn blocked(report: &Value) -> i64 {
    report["totals"]["blocked_ns"].as_i64().expect("a time")
}

fn warning<'v>(of: &'v Value, code: &str) -> Option<&'v str> {
    let all = of["warnings"].as_array().expect("warnings");
    all.iter().find(|w| w["code"] == code).and_then(|w| w["message"].as_str())
}

fn state(path: &Path) -> (Vec<u8>, SystemTime) {
    let changed = path.metadata().and_then(|m| m.modified()).expect("a file");
    (std::fs::read(path).expect("a file"), changed)
}

#[test]
fn a_report_takes_times_from_the_light_capture_beside() {
    let place = Place::new();
    let before = state(&place.path("run.light.sqlite"));
    let report = place.report(&["run.sqlite"]);
    let (light, own) =
        (place.report(&["run.light.sqlite"]), place.report(&["run.sqlite", "--timing", "none"]));
    assert_eq!(blocked(&report), blocked(&light));
    assert!(
        blocked(&own) > blocked(&light) * 3 / 2,
        "backtraces slow: {} {}",
        blocked(&own),
        blocked(&light)
    );
    for site in report["sites"].as_array().expect("sites") {
        assert!(site["user_frame"]["line"].as_u64() > Some(0), "{site}");
    }
    let said = warning(&report, "timing-matched").expect("said");
    for part in ["times are from run.light.sqlite, sites from run.sqlite", "80 of 80", "--timing none"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let table = place.run(&["run.sqlite"]).stdout;
    assert!(table.contains("\n· times are from run.light.sqlite"), "it limits nothing: {table}");
    assert!(table.starts_with("profile     run.sqlite, times of run.light.sqlite, "), "{table}");
    assert_eq!(
        (&report["profiles"][0]["sites_from"], &own["profiles"][0]["sites_from"]),
        (&"run.sqlite".into(), &Value::Null)
    );
    assert_eq!((warning(&own, "timing-matched"), warning(&light, "timing-matched")), (None, None));
    assert_eq!(report["totals"], place.report(&["run.sqlite", "--timing", "run.light.sqlite"])["totals"]);
    assert_eq!(state(&place.path("run.light.sqlite")), before, "it is only read");
    assert_eq!(std::fs::read_dir(place.folder.path()).expect("the folder").count(), 2);
}

#[test]
fn every_command_has_the_same_times() {
    let place = Place::new();
    let report = place.report(&["run.sqlite"]);
    std::fs::write(place.path("kept.json"), report.to_string()).expect("a report");
    let budget = "[[limit]]\nnvtx = \"step\"\nblocked = \"150us\"\n[limits]\nblocked = \"150us\"\n";
    std::fs::write(place.path("b.toml"), budget).expect("a budget");
    let check =
        |more: &[&str]| place.command(&[&["check", "run.sqlite", "--budget", "b.toml"], more].concat());
    let kept = check(&[]);
    assert_eq!(kept.code, 0, "{}{}", kept.stdout, kept.stderr);
    assert!(kept.stdout.contains("[timing-matched]"), "{}", kept.stdout);
    let slow = check(&["--timing", "none"]);
    assert_eq!((slow.code, slow.stdout.matches("blocked").count() >= 2), (1, true), "{}", slow.stdout);

    let diff = |more: &[&str]| {
        place
            .command(&[&["diff", "kept.json", "run.sqlite", "--format", "json"], more].concat())
            .good()
            .json()
    };
    let same = diff(&[]);
    assert_eq!(same["run"]["before"]["blocked_ns"], same["run"]["after"]["blocked_ns"]);
    assert!(warning(&same, "timing-matched").is_some() && warning(&same, "other-flags").is_none(), "{same}");
    assert!(warning(&diff(&["--timing", "none"]), "other-flags").is_some(), "one side was slowed");
    assert_eq!(place.command(&["diff", "kept.json", "run.sqlite", "--timing", "run.light.sqlite"]).code, 2);

    let plan = |more: &[&str]| {
        place.command(&[&["replay", "run.sqlite", "--plan", "-q"], more].concat()).good().json()
    };
    let planned = plan(&[]);
    assert_eq!(planned["profile"], "run.light.sqlite");
    assert!(planned["notes"][0].as_str().is_some_and(|n| n.starts_with("times are from")), "{planned}");
    assert_eq!(plan(&["--timing", "none"])["profile"], "run.sqlite");
}

#[test]
fn a_light_capture_is_never_overwritten() {
    let place = Place::new();
    let before = state(&place.path("run.light.sqlite"));
    for arguments in [
        &["run.sqlite"][..],
        &["run.sqlite", "--timing", "none"],
        &["check", "run.sqlite", "--fail-on", "any-false"],
        &["diff", "run.sqlite", "run.sqlite"],
        &["replay", "run.sqlite", "--plan"],
    ] {
        let ran = place.command(&[arguments, &["-o", "run.light.sqlite"]].concat());
        assert!(ran.code == 2 && ran.stderr.contains("is an input"), "{arguments:?}: {}", ran.stderr);
    }
    assert_eq!(state(&place.path("run.light.sqlite")), before);
    let other = place.path("other.sqlite");
    std::fs::copy(place.path("run.sqlite"), &other).expect("a copy");
    let before = state(&other);
    let ran = place.command(&["run.sqlite", "-o", "other.sqlite"]);
    assert!(ran.code == 2 && ran.stderr.contains("is an SQLite database"), "{}", ran.stderr);
    assert_eq!(state(&other), before);
}

#[test]
fn each_rank_has_its_own() {
    let place = Place::new();
    place.both("rank1");
    LOOP.write(place.folder.path(), "rank2", &lines(FULL));
    let report = place.report(&["run.sqlite", "rank1.sqlite", "rank2.sqlite"]);
    let own = place.report(&["rank2.sqlite"]);
    let light = place.report(&["run.light.sqlite"]);
    assert_eq!(blocked(&report), blocked(&own) + 2 * blocked(&light));
    // Whoever writes *.sqlite would count the waits of a run twice.
    let twice = place.run(&["run.light.sqlite", "run.sqlite"]);
    assert_eq!(twice.code, 2);
    assert!(
        twice.stderr.contains("run.light.sqlite: run.sqlite takes its times from there"),
        "{}",
        twice.stderr
    );
    assert_eq!(place.run(&["run.light.sqlite", "run.sqlite", "--timing", "none"]).code, 0);
}

#[test]
fn folders_are_paired_as_files_are() {
    let place = Place::new();
    let timed = blocked(&place.report(&["run.sqlite"]));
    for name in ["run", "run.light"] {
        let to = place.path(&format!("{name}_pqtdir"));
        folder::to_folder(&place.path(&format!("{name}.sqlite")), &to, folder::GROUP);
    }
    assert_eq!(blocked(&place.report(&["run_pqtdir"])), timed, "by the file");
    std::fs::remove_file(place.path("run.light.sqlite")).expect("it is there");
    assert_eq!(blocked(&place.report(&["run_pqtdir"])), timed, "by the folder");
    assert_ne!(blocked(&place.report(&["run_pqtdir", "--timing", "none"])), timed);
}

/// A light capture may have run for fewer iterations than the one with lines, marked or not.
///
/// ```text
///  run        [0][1][2] … [39]
///  run.light  [0][1] … [23]           a wait of iteration n is that of iteration n
///
///  run        [0][1] … [23]
///  run.light  [0][1] … [23][24] … [39]     what goes on repeats the last
/// ```
#[test]
fn it_may_be_of_fewer_iterations_or_of_more() {
    for (nvtx, full, light) in [(true, 40, 24), (false, 40, 24), (true, 24, 40), (false, 24, 40)] {
        let place = Place::empty();
        let of = |run: Loop, iterations| Loop { nvtx, iterations, ..run };
        of(LOOP, full).write(place.folder.path(), "run", &lines(FULL));
        of(bare(), light).write(place.folder.path(), "run.light", &lines(LIGHT));
        let report = place.report(&["run.sqlite"]);
        assert_eq!(warning(&report, "timing-unused"), None, "marked: {nvtx}");
        let waits: Vec<_> = report["sites"].as_array().into_iter().flatten().map(|s| &s["waits"]).collect();
        assert_eq!(waits, [light, light], "marked: {nvtx}");
    }
}

#[test]
fn one_that_does_not_fit_is_left_with_a_word() {
    let place = Place::empty();
    LOOP.write(place.folder.path(), "run", &lines(FULL));
    let own = place.report(&["run.sqlite"]);
    let left = |reason: &str, more: &[&str]| {
        let report = place.report(&[&["run.sqlite"], more].concat());
        let said = warning(&report, "timing-unused").unwrap_or_else(|| panic!("{reason}: {report}"));
        assert!(said.starts_with("times are from run.sqlite itself") && said.contains(reason), "{said}");
        (blocked(&report), report["sites"].as_array().map(Vec::len))
    };
    let all = (blocked(&own), own["sites"].as_array().map(Vec::len));
    bare().write(place.folder.path(), "run.light", &[upload("load", 40)]);
    assert_eq!(left("not the same program", &[]), all);
    assert_eq!(
        place.run(&["run.sqlite", "--timing", "run.light.sqlite"]).code,
        2,
        "asked for, it is an error"
    );
    std::fs::write(place.path("run.light.sqlite"), "no database").expect("a file");
    assert_eq!(left("run.light.sqlite", &[]), all);
    std::fs::remove_file(place.path("run.light.sqlite")).expect("it is there");
    bare().write(place.folder.path(), "run.light", &lines(LIGHT));
    assert_eq!(left("its own clock", &["--from", "0"]), all);
    assert_eq!(left("its own clock", &["--process", "100"]), all);
    std::fs::write(place.path("b.toml"), "[[limit]]\nnvtx = \"step\"\nwaits = 2\n").expect("a budget");
    let check = place.command(&["check", "run.sqlite", "--budget", "b.toml", "--to", "1"]);
    assert!(check.code == 0 && check.stdout.contains("[timing-unused]"), "{}{}", check.stdout, check.stderr);
}

/// One warning: what is open, and the command for the capture that answers it.
#[test]
fn a_light_capture_alone_says_what_its_lines_would_take() {
    let place = Place::new();
    let report = place.report(&["run.light.sqlite"]);
    let warnings = report["warnings"].as_array().expect("warnings");
    let said: Vec<&Value> = warnings.iter().filter(|w| w["code"] == "no-python-backtraces").collect();
    assert_eq!(said.len(), 1, "{warnings:?}");
    let message = said[0]["message"].as_str().expect("words");
    for part in ["1 of 2 sites undecided", "sync-report profile.nsys-rep --timing run.light.sqlite"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let command = said[0]["fix"].as_str().expect("a command");
    for part in ["--cudabacktrace=all:0 --python-backtrace=cuda", "python train.py"] {
        assert!(command.contains(part), "{part}: {command}");
    }
    assert!(
        warning(&place.report(&["run.sqlite"]), "no-python-backtraces").is_none(),
        "the other one answers"
    );
    let doctor = program(&["doctor".as_ref(), place.path("run.light.sqlite").as_os_str()]);
    assert!(doctor.stdout.contains("1 of 2 sites undecided"), "{}", doctor.stdout);
}

/// ```text
///  host  [upload · kernels · read] 4 times, then [kernels · read] 4 times, and again     the found loop is one of the two
/// ```
/// Waits of the other loop, between its iterations, go on like those of the last ones, too.
#[test]
fn loops_that_take_turns_go_on_longer_in_the_light_capture() {
    let place = Place::empty();
    let write = |name: &str, pid: i64, rounds: i64, frames: bool| {
        let mut e = Export::new(Schema::V2026_2);
        let t = e.thread(pid, pid);
        let mut now = 1_000_000;
        for _ in 0..rounds {
            for (kernels, line) in
                [(&["act", "norm"][..], 10), (&["gemm", "gelu", "loss", "gemm'", "adam"], 20)]
            {
                for _ in 0..4 {
                    for kernel in kernels {
                        e.launch(t, now..now + 1_000, GPU0, now + 1_500..now + 1_900, kernel);
                        now += 2_000;
                    }
                    let copied = e.memcpy(
                        t,
                        now..now + 800,
                        Copy::d2h(line, Memory::Pinned),
                        GPU0,
                        now + 900..now + 1_200,
                    );
                    let waited = e.sync(t, "cudaStreamSynchronize", now + 850..now + 1_500, GPU0);
                    if frames {
                        let stack = [("step", "/w/train.py", line)];
                        e.python(copied, &stack).python(waited, &stack);
                    }
                    now += 3_000;
                }
            }
        }
        let end = e.sync(t, "cudaDeviceSynchronize", now + 20_000_000..now + 20_010_000, GPU0);
        if frames {
            e.python(end, &[("main", "/w/train.py", 30)]);
        }
        e.command(&["python", "train.py"])
            .payload(Payload::Json)
            .write(&place.path(&format!("{name}.sqlite")));
    };
    write("run", 100, 12, true);
    write("run.light", 200, 40, false);
    let report = place.report(&["run.sqlite"]);
    assert_eq!(warning(&report, "timing-unused"), None);
    let mut waits: Vec<_> = report["sites"].as_array().into_iter().flatten().map(|s| &s["waits"]).collect();
    waits.sort_by_key(|n| n.as_u64());
    assert_eq!(waits, [1, 160, 160]);
}
