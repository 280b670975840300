//! `check`: budgets, baselines, conditions, exit codes.

use crate::cli::{Ran, command, program, ran, sample};
use crate::loops::{LOOP, Loop, read, upload};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder with a capture: two H2D copies and a read in every iteration.
struct Place {
    folder: TempDir,
    profile: PathBuf,
}

fn place() -> Place {
    let folder = tempfile::tempdir().expect("a folder");
    let lines = [upload("step", 18), upload("load", 40), read("step", 22)];
    let profile = LOOP.write(folder.path(), "run", &lines);
    Place { folder, profile }
}

impl Place {
    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn check(&self, more: &[&str]) -> Ran {
        ran(command().current_dir(self.path()).arg("check").arg(&self.profile).args(more))
    }

    fn budget(&self, text: &str) -> Ran {
        std::fs::write(self.path().join("b.toml"), text).expect("a budget");
        self.check(&["--budget", "b.toml", "--today", "2026-06-01"])
    }
}

fn breaches(ran: &Ran) -> Vec<&str> {
    if ran.code == 0 {
        Vec::new()
    } else {
        ran.stdout.lines().skip(2).take_while(|l| !l.is_empty()).collect()
    }
}

#[test]
fn a_written_budget_is_kept_by_its_profile_and_never_overwritten() {
    let place = place();
    let first = place.check(&["--init-budget"]);
    assert_eq!((first.code, &*first.stdout), (0, "wrote sync-budget.toml\n"), "{}", first.stderr);
    let text = std::fs::read_to_string(place.path().join("sync-budget.toml")).expect("a budget");
    assert!(text.contains("avoidable-waits = 2\n"), "{text}");
    assert!(text.contains("[gpu-time]   # percent of GPU time per iteration\nmin-kernels = "), "{text}");
    assert_eq!(place.check(&[]).code, 0, "it is found without --budget");
    let again = place.check(&["--init-budget"]);
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("--force"), "{}", again.stderr);
    assert_eq!(place.check(&["--init-budget", "--force"]).code, 0);
    let live: String = text
        .lines()
        .map(|l| l.strip_prefix("# ").filter(|l| l.contains('=') || l.starts_with("[[allow")).unwrap_or(l))
        .map(|l| if l.starts_with("[limits]") || l.contains("avoidable-waits = 2") { "" } else { l })
        .filter(|l| !l.contains("src/model") && !l.contains("\"forward\"") && !l.contains("nvtx"))
        .collect::<Vec<_>>()
        .join("\n");
    let live = live.replace("avoidable-waits = 0", "").replace("blocked =", "#").replace("idle-after =", "#");
    let allowed = place.budget(&live);
    assert_eq!(allowed.code, 0, "{live}\n{}", allowed.stderr);
    assert!(
        allowed.stdout.contains("allowed until 2030-01-01: train.py, function step"),
        "{}",
        allowed.stdout
    );
}

#[test]
fn limits_break_with_line_limit_actual_and_fix() {
    let place = place();
    let ran = place.budget("[limits]\nfalse-waits = 1\nwaits = 3\ndrain = \"1s\"\nblocked = \"1us\"\n");
    assert_eq!(ran.code, 1);
    let lines = breaches(&ran);
    assert_eq!(lines.len(), 2, "{}", ran.stdout);
    assert!(lines[0].starts_with("/w/train.py:"), "{}", lines[0]);
    assert!(lines[0].contains("avoidable waits per iteration: 2, limit 1; "), "{}", lines[0]);
    assert!(lines[0].contains("fix: copy with non_blocking=True"), "{}", lines[0]);
    assert!(lines[1].contains("blocked per iteration: ") && lines[1].contains("limit 1.00 µs"));
    assert!(ran.stdout.contains("failed: 2 breaches; 4 rules"), "{}", ran.stdout);
}

#[test]
fn limits_of_parts_count_only_their_sites() {
    let place = place();
    for (part, limit, code) in [
        ("path = \"train.py\"", "false-waits = 1", 1),
        ("path = \"w/*.py\"\nfunction = \"load\"", "false-waits = 1", 0),
        ("function = \"load\"", "false-waits = 0", 1),
        ("function = \"lo*\"", "false-waits = 0", 1),
        ("path = \"src/**\"", "waits = 0", 0),
        ("nvtx = \"step\"", "false-waits = 1", 1),
        ("nvtx = \"step\"\nfunction = \"load\"", "false-waits = 1", 0),
    ] {
        let ran = place.budget(&format!("[[limit]]\n{part}\n{limit}\n"));
        assert_eq!(ran.code, code, "{part}: {}{}", ran.stdout, ran.stderr);
    }
    let missing = place.budget("[[limit]]\nnvtx = \"backward\"\nwaits = 1\n");
    assert_eq!(missing.code, 2, "a range that is not there cannot be held to anything");
    assert!(missing.stderr.contains("backward"));
}

#[test]
fn allowances_count_until_they_expire() {
    let place = place();
    let budget = |expires: &str| {
        format!(
            "[limits]\nfalse-waits = 1\n[[allow]]\nfunction = \"load\"\nreason = \"see #7\"\nexpires = {expires}\n"
        )
    };
    assert_eq!(place.budget(&budget("2026-06-01")).code, 0, "its last day counts");
    let expired = place.budget(&budget("2026-05-31"));
    assert_eq!(expired.code, 1);
    let lines = breaches(&expired);
    assert_eq!(lines.len(), 2, "the allowance, and the limit that it lets down: {}", expired.stdout);
    assert!(lines[1].contains("function load (see #7): today is 2026-06-01, limit until 2026-05-31"));
    let unused = place.budget(
        "[limits]\nwaits = 9\n[[allow]]\nfunction = \"gone\"\nreason = \"x\"\nexpires = 2030-01-01\n",
    );
    assert_eq!(unused.code, 0);
    assert!(unused.stdout.contains("[unused-allowance]"), "{}", unused.stdout);
}

#[test]
fn a_baseline_lets_old_waits_be_and_new_ones_not() {
    let place = place();
    let old = place.profile.display().to_string();
    assert_eq!(place.check(&["--baseline", &old]).code, 0, "nothing is new");
    let report = program(&[&*old, "--format", "json", "--top", "0"]).stdout;
    std::fs::write(place.path().join("old.json"), report).expect("a report");
    let lines = [upload("step", 20), upload("load", 42), upload("load", 45), read("step", 24)];
    let moved = Loop { main: LOOP.main + 2, ..LOOP.seed(2) };
    let worse = moved.write(place.path(), "worse", &lines);
    for baseline in [old.as_str(), "old.json"] {
        let ran =
            ran(command().current_dir(place.path()).arg("check").arg(&worse).args(["--baseline", baseline]));
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        let lines = breaches(&ran);
        assert_eq!(lines.len(), 1, "{}", ran.stdout);
        assert!(
            lines[0].starts_with("/w/train.py:45: new avoidable waits (H2D copy): 1, limit 0"),
            "{}",
            lines[0]
        );
    }
}

#[test]
fn conditions_of_the_command_line_break_too() {
    let place = place();
    for (condition, code) in [
        ("any-false", 1),
        ("drain>99%", 0),
        ("drain>0.1%", 1),
        ("blocked>99%", 0),
        ("blocked>1us", 1),
        ("false-waits>2", 0),
        ("false-waits>1,drain>99%", 1),
        ("new-false", 2),
        ("drain>5 parsecs", 2),
        ("sometimes", 2),
    ] {
        let ran = place.check(&["--fail-on", condition]);
        assert_eq!(ran.code, code, "{condition}: {}{}", ran.stdout, ran.stderr);
    }
    let nothing = place.check(&[]);
    assert_eq!(nothing.code, 2);
    assert!(nothing.stderr.contains("nothing to check"));
}

#[test]
fn what_cannot_be_held_to_a_rule_is_wrong_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let plain = Loop { nvtx: false, iterations: 4, ..LOOP };
    let profile = plain.write(folder.path(), "plain", &[upload("step", 18)]);
    let check = |text: &str| {
        let path = folder.path().join("b.toml");
        std::fs::write(&path, text).expect("a budget");
        ran(command().arg("check").arg(&profile).arg("--budget").arg(&path))
    };
    let per_iteration = check("[limits]\nfalse-waits = 1\n");
    assert_eq!(per_iteration.code, 2);
    assert!(per_iteration.stderr.contains("per = \"run\""), "{}", per_iteration.stderr);
    assert_eq!(check("per = \"run\"\n[limits]\nfalse-waits = 4\n").code, 0);
    assert_eq!(check("per = \"run\"\n[limits]\nfalse-waits = 3\n").code, 1);
    let typo = check("[limits]\nfalse-wait = 1\n");
    assert_eq!(typo.code, 2);
    assert!(typo.stderr.contains("did you mean `false-waits`?"), "{}", typo.stderr);
}

/// Percent of GPU time per iteration: 18.5 in kernels, 31.1 idle after waits, 80.6 idle, 2.3 of it with the CPU blocked.
#[test]
fn limits_of_gpu_time_break_in_every_format() {
    let folder = tempfile::tempdir().expect("a folder");
    let budget = folder.path().join("b.toml");
    let profile = sample("train_mlp");
    let check = |text: &str, format: &str| {
        std::fs::write(&budget, format!("[gpu-time]\n{text}")).expect("a budget");
        let budget = budget.display().to_string();
        program(&["check", &profile, "--budget", &budget, "--format", format])
    };
    let kept =
        "min-kernels = \"18%\"\ncopies = \"2 %\"\ndrain = \"32%\"\nidle = \"81%\"\nidle-blocked = \"3%\"\n";
    let ran = check(kept, "table");
    assert_eq!((ran.code, ran.stdout.contains("passed: 5 rules kept")), (0, true), "{}", ran.stdout);
    for (limit, said) in [
        ("min-kernels = \"29%\"", "GPU time in kernels per iteration: 28.2 %, limit at least 29.0 %"),
        ("copies = \"0.1%\"", "GPU time in copies per iteration: "),
        (
            "idle-after = \"27%\"",
            "/workspace/train_mlp.py:30: GPU time idle after waits per iteration: 27.2 %",
        ),
        ("idle = \"70%\"", "GPU time idle per iteration: 70.5 %, limit 70.0 %"),
        ("idle-blocked = \"1%\"", "GPU time idle with the CPU blocked per iteration: 2.0 %, limit 1.0 %"),
    ] {
        let ran = check(limit, "table");
        assert_eq!(ran.code, 1, "{limit}");
        assert!(ran.stdout.contains(said), "{}", ran.stdout);
    }
    for format in ["markdown", "json", "github", "sarif", "junit"] {
        let ran = check("min-kernels = \"29%\"\n", format);
        assert_eq!(ran.code, 1, "{format}");
        assert!(ran.stdout.contains("GPU time in kernels per iteration"), "{}", ran.stdout);
        assert!(ran.stdout.contains("at least 29.0 %"), "{}", ran.stdout);
    }
}

#[test]
fn limits_of_gpu_time_that_cannot_be_held_are_wrong_use() {
    let place = place();
    for (text, words) in [
        ("idle-blocked = \"5%\"", "the budget limits `idle-blocked`, and this capture does not tell it"),
        ("idle = 5", "a share of GPU time is written as text"),
        ("idle = \"101%\"", "a share of GPU time is written as text"),
        ("kernels = \"5%\"", "did you mean `min-kernels`?"),
    ] {
        let ran = place.budget(&format!("[gpu-time]\n{text}\n"));
        assert_eq!(ran.code, 2, "{text}");
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
    assert_eq!(place.budget("per = \"run\"\n[gpu-time]\nidle = \"99%\"\n").code, 0);
}

/// Ranks wait side by side: the one that waits most counts.
#[test]
fn the_worst_rank_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    let lines = [upload("step", 18), upload("load", 40)];
    let one = LOOP.write(folder.path(), "rank0", &lines[..1]);
    let two = Loop { pid: 200, ..LOOP.seed(2) }.write(folder.path(), "rank1", &lines);
    let check = |limit: &str| ran(command().arg("check").args([&one, &two]).args(["--fail-on", limit]));
    assert_eq!(check("false-waits>2").code, 0);
    assert_eq!(check("false-waits>1").code, 1);
}

#[test]
fn the_sample_capture_fails_its_gate_in_every_format() {
    let profile = sample("train_mlp_shapes");
    let run = |format: &str| program(&["check", &profile, "--fail-on", "any-false", "--format", format]);
    for format in ["table", "markdown", "json", "github", "sarif"] {
        assert_eq!(run(format).code, 1, "{format}");
    }
    let outcome = run("json").json();
    assert_eq!(outcome["passed"], false);
    let listed = outcome["breaches"].as_array().expect("breaches");
    assert_eq!(listed.len(), breaches(&run("table")).len());
    assert!(listed.iter().all(|b| b["site"]["fix"].is_string() && b["site"]["location"]["line"].is_u64()));
    let errors = run("github").stdout;
    assert_eq!(errors.lines().filter(|l| l.starts_with("::error ")).count(), listed.len());
    assert!(run("markdown").stdout.starts_with("### ❌ sync-report check failed: "));
}

/// A limit that is no number, or a file without limits, can never fail.
#[test]
fn a_budget_that_nothing_breaks_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let budget = folder.path().join("b.toml");
    for (text, words) in [
        ("", "the budget limits nothing"),
        ("per = \"run\"\n", "the budget limits nothing"),
        ("[limits]\nfalse-waits = nan\n", "is no number of waits"),
    ] {
        std::fs::write(&budget, text).expect("a file");
        let ran = program(&["check", &sample("train_mlp_shapes"), "--budget", &budget.display().to_string()]);
        assert_eq!(ran.code, 2, "{text}");
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
    let ran = program(&["check", &sample("patterns"), "--fail-on", "drain>1us"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("`--fail-on drain>…` is per iteration"), "{}", ran.stderr);
}
