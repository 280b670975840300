//! What can be typed, and what it does to the output.

use super::*;
use std::io::Read;
use sync_report::replay::constants::{CONSTANTS_VERSION, Constants};

const TRAIN: &str = "train_mlp_shapes";

#[test]
fn help_and_version_are_on_stdout() {
    let short = program(&["-h"]);
    let long = program(&["--help"]);
    for help in [&short, &long] {
        assert_eq!((help.code, &*help.stderr), (0, ""));
        for word in ["PROFILE", "--format", "--details", "doctor", "completions", "Exit codes"] {
            assert!(help.stdout.contains(word), "{word}: {}", help.stdout);
        }
    }
    assert!(short.stdout.lines().count() <= 60, "a screen: {}", short.stdout);
    let name = concat!("sync-report ", env!("CARGO_PKG_VERSION"), "\n");
    let (short, long) = (program(&["-V"]), program(&["--version"]));
    assert_eq!((short.code, &*short.stdout), (0, name));
    assert!(long.code == 0 && long.stdout.starts_with(name), "{}", long.stdout);
}

#[test]
fn a_mistyped_command_gets_the_nearest() {
    program(&["doctr", "a.sqlite"]).refused("did you mean `sync-report doctor`?");
    program(&["wholly", "a.sqlite"]).refused("wholly: no such file; give the path");
}

#[test]
fn wrong_usage_exits_with_2() {
    let path = sample(TRAIN);
    for arguments in [
        &[][..],
        &["--no-such-option", &path],
        &["--format", "xml", &path],
        &["--top", "-1", &path],
        &["--from", "soon", &path],
        &["--width", "10", &path],
        &["--threads", "0", &path],
        &["--details", "S1", "--format", "json", &path],
        &["--class", "maybe", &path],
        &["doctor"],
        &["doctor", "--format", "csv", &path],
    ] {
        let ran = program(arguments);
        assert_eq!((ran.code, &*ran.stdout), (2, ""), "{arguments:?}");
        assert!(
            ran.stderr.starts_with("error:") || ran.stderr.contains("Usage"),
            "{arguments:?}: {}",
            ran.stderr
        );
    }
}

#[test]
fn completions_and_manual_come_from_the_same_definitions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = program(&["completions", shell]);
        assert_eq!((ran.code, &*ran.stderr), (0, ""));
        assert!(ran.stdout.contains("sync-report") && ran.stdout.contains("library-path"), "{shell}");
    }
    let man = program(&["man"]);
    assert!(man.code == 0 && man.stdout.contains(".TH sync-report") && man.stdout.contains("Exit codes"));
    let listed = man.stdout.lines().filter_map(|l| l.strip_prefix("sync\\-report\\-")?.strip_suffix("(1)"));
    for command in listed {
        let page = program(&["man", command]);
        assert!(page.code == 0 && page.stdout.contains(&format!(".TH sync-report-{command} 1")), "{command}");
    }
    assert_eq!(program(&["man", "nothing"]).code, 2);
}

/// The reader closed the pipe (`sync-report … | head -1`): no error.
#[test]
fn a_closed_pipe_is_success() {
    let path = sample("patterns");
    for arguments in [
        &[&*path][..],
        &["--format", "json", "--top", "0", &path],
        &["--format", "csv", &path],
        &["--details", "S1", &path],
        &["doctor", &path],
        &["explain"],
        &["explain", "A01"],
        &["completions", "bash"],
        &["man"],
        &["--help"],
    ] {
        let mut child =
            command().args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        drop(child.stdout.take());
        let mut told = String::new();
        child.stderr.take().expect("stderr").read_to_string(&mut told).expect("text");
        let code = child.wait().expect("an end").code();
        assert_eq!((code, &*told), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error() {
    for format in ["table", "json", "csv"] {
        let ran = program(&[&sample(TRAIN), "--format", format, "-o", "/dev/full"]);
        assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1), "{format}: {}", ran.stderr);
    }
}

#[test]
#[cfg(unix)]
fn a_closed_stderr_is_no_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    let cases = hostile::odd_exports(folder.path());
    let (_, path) = cases.iter().find(|(n, _)| n == "json cut short").expect("the case");
    let mut child =
        command().arg(path).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it runs");
    drop(child.stderr.take());
    assert_eq!(child.wait().expect("an end").code(), Some(2));
}

#[test]
fn a_file_holds_what_stdout_would() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.csv");
    let path = sample(TRAIN);
    let direct = program(&[&path, "--format", "csv"]);
    let ran = ran(command().args([&path, "--format", "csv", "-o"]).arg(&file));
    assert_eq!((ran.code, &*ran.stdout, &*ran.stderr), (0, "", ""));
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), direct.stdout);
    let nowhere = program(&[&path, "-o", "/nowhere/report.txt"]);
    assert_eq!((nowhere.code, nowhere.stderr.lines().count()), (2, 1), "{}", nowhere.stderr);
}

/// `-o` with the export's own name would destroy it.
#[test]
fn the_report_never_overwrites_an_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = hostile::good(folder.path());
    let before = state(&path);
    let named = [path.clone(), folder.path().join(".").join("good.sqlite")];
    for output in &named {
        let ran = ran(command().arg(&path).arg("-o").arg(output));
        assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1), "{}", ran.stderr);
        assert_eq!(state(&path), before, "-o {}", output.display());
    }
    #[cfg(unix)]
    {
        let link = folder.path().join("link");
        std::fs::hard_link(&path, &link).expect("a link");
        let ran = ran(command().arg(&path).arg("-o").arg(&link));
        assert_eq!((ran.code, state(&path)), (2, before), "{}", ran.stderr);
    }
}

#[test]
fn a_failed_run_leaves_the_output_file_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.txt");
    std::fs::write(&file, "yesterday").expect("a file");
    for arguments in [&["--details", "S99", &*sample(TRAIN)][..], &["/nowhere.sqlite"]] {
        let ran = ran(command().args(arguments).arg("-o").arg(&file));
        assert_eq!(ran.code, 2);
        assert_eq!(std::fs::read_to_string(&file).expect("the file"), "yesterday", "{arguments:?}");
    }
}

/// Neither is written, and no GPU is asked for first.
#[test]
fn what_is_saved_and_what_is_printed_are_two_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("measured.json");
    for arguments in [&["replay", &*sample(TRAIN)][..], &["bench"]] {
        let ran = ran(command().args(arguments).arg("--save").arg(&file).arg("-o").arg(&file));
        assert_eq!(ran.code, 2, "{arguments:?}");
        assert!(ran.stderr.contains("--save and -o name one file"), "{}", ran.stderr);
        assert!(!file.exists());
    }
}

#[test]
fn details_show_one_site_or_say_which_there_are() {
    let path = sample(TRAIN);
    for site in ["S2", "s2", " S2", "train_mlp.py:18", "/workspace/train_mlp.py:18"] {
        let ran = program(&[&path, "--details", site]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        for words in
            ["train_mlp.py:18", "why it is avoidable", "blocked time of a wait", "examples", "what to do"]
        {
            assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
        }
    }
    for site in ["S8", "S0", "", "1", "S-1", "S1 or 2", "mlp.py:18", "train_mlp.py:17", ":18"] {
        program(&[&path, "--details", site]).refused("S1 (avoidable), S2 (avoidable), ");
    }
    // `--top` does not limit `--details`.
    assert_eq!(program(&[&path, "--details", "S7", "--top", "1"]).code, 0);
}

fn json(arguments: &[&str]) -> serde_json::Value {
    program(&[&[&*sample(TRAIN), "--format", "json"], arguments].concat()).good().json()
}

#[test]
fn filters_leave_what_they_name() {
    let waits = |arguments: &[&str]| json(arguments)["totals"]["waits"].as_u64().expect("a number");
    let pid = json(&[])["profiles"][0]["processes"][0]["pid"].to_string();
    let tid = json(&[])["sites"][0]["thread"]["tid"].to_string();
    for (arguments, expected) in [
        (&["--class", "false"][..], 92),
        (&["--class", "unknown"], 120),
        (&["--class", "false,unknown"], 212),
        (&["--class", "true"], 0),
        (&["--nvtx", "iteration 3"], 7),
        (&["--nvtx", "iteration"], 210),
        (&["--nvtx", "aten::item"], 120),
        (&["--process", &pid], 212),
        (&["--process", "1"], 0),
        (&["--thread", &tid], 212),
        (&["--thread", "no such thread"], 0),
        (&["--device", "0"], 212),
        (&["--device", "7"], 0),
        (&["--from", "-1", "--to", "100"], 212),
        (&["--from", "100"], 0),
        (&["--to=-1s"], 0),
    ] {
        assert_eq!(waits(arguments), expected, "{arguments:?}");
    }
    // A name mistyped must not read as "nothing waits there".
    let mistyped = program(&[&*sample(TRAIN), "--nvtx", "iterations"]);
    assert_eq!((mistyped.code, mistyped.stderr.lines().count()), (2, 1), "{}", mistyped.stderr);
    assert!(mistyped.stderr.contains("iteration #"), "{}", mistyped.stderr);
    let half = json(&["--to", "100ms"]);
    assert!((1..212).contains(&half["totals"]["waits"].as_u64().expect("a number")));
    // Rates are per iteration of that window.
    let each = |site: &serde_json::Value| site["waits"].as_f64().zip(half["iterations"]["count"].as_f64());
    assert!(half["iterations"]["count"].as_u64() < Some(30), "{}", half["iterations"]);
    let (waits, count) = each(&half["sites"][0]).expect("numbers");
    assert!((waits / count - 1.0).abs() < 0.3, "{waits} waits in {count} iterations");
    for format in ["table", "json", "csv"] {
        let none = program(&[&*sample(TRAIN), "--from", "100", "--format", format]);
        assert_eq!((none.code, &*none.stderr), (0, ""), "a report on nothing");
    }
}

#[test]
fn times_of_the_report_can_be_given_back() {
    let report = json(&[]);
    let example = &report["sites"][0]["examples"][0];
    let time = |field: &str| format!("{}ns", example[field]);
    let one = json(&["--from", &time("start_ns"), "--to", &time("end_ns")]);
    assert_eq!(one["totals"]["waits"], 1);
    assert_eq!(one["sites"][0]["examples"][0]["start_ns"], example["start_ns"]);
}

#[test]
fn sites_are_ranked_and_cut_as_asked() {
    let field = |sort: &str, name: &str| -> Vec<i64> {
        let report = json(&["--sort", sort]);
        report["sites"]
            .as_array()
            .expect("sites")
            .iter()
            .map(|s| s[name].as_i64().expect("a number"))
            .collect()
    };
    for (sort, name) in
        [("drain", "drain_ns"), ("blocked", "blocked_ns"), ("waits", "waits"), ("max", "blocked_max_ns")]
    {
        let values = field(sort, name);
        assert!(values.is_sorted_by(|a, b| a >= b), "{sort}: {values:?}");
    }
    let lines: Vec<i64> = json(&["--sort", "location"])["sites"]
        .as_array()
        .expect("sites")
        .iter()
        .map(|s| s["user_frame"]["line"].as_i64().expect("a line"))
        .collect();
    assert_eq!(lines, [18, 19, 22, 30, 31, 38, 38]);
    let cut = json(&["--top", "2"]);
    assert_eq!((cut["sites"].as_array().map(Vec::len), &cut["sites_omitted"]), (Some(2), &5.into()));
    assert_eq!(cut["totals"]["waits"], 212, "totals are of all sites");
}

#[test]
fn machine_formats_hold_all_sites() {
    let path = sample("patterns");
    let sites = |arguments: &[&str]| {
        let text = program(&[&[&*path, "--format", "json"], arguments].concat()).stdout;
        let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        (report["sites"].as_array().map_or(0, Vec::len), report["sites_omitted"].as_u64())
    };
    let all = sites(&[]);
    assert!(all.0 > sync_report::formats::TOP && all.1 == Some(0), "{all:?}");
    assert_eq!(sites(&["--top", "0"]), all);
    assert_eq!(sites(&["--top", "3"]).0, 3);
    let rows = |arguments: &[&str]| {
        program(&[&[&*path, "--format", "csv"], arguments].concat()).stdout.lines().count() - 1
    };
    assert_eq!((rows(&[]), rows(&["--top", "3"])), (all.0, 3));
    assert!(program(&[&path]).stdout.contains("--top 0 shows all"), "the table is for people");
}

/// Options before a command are the command's; an unknown one is refused in the command's words.
#[test]
fn options_may_come_before_the_command() {
    let path = sample(TRAIN);
    let plan = |arguments: &[&str]| program(arguments).stdout;
    let told = plan(&["-q", "replay", &path, "--plan"]);
    assert_eq!(told, plan(&["replay", "-q", &path, "--plan"]));
    assert!(told.starts_with('{'), "{told}");
    let ran = program(&["--fail-on", "any-false", "replay", &path]);
    assert!(ran.code == 2 && ran.stderr.contains("'--fail-on'"), "{}", ran.stderr);
    assert!(ran.stderr.contains("sync-report replay"), "{}", ran.stderr);
}

/// Nothing in a pipe unless it was asked for; quick work says nothing even then.
#[test]
fn progress_is_shown_where_someone_looks() {
    let path = sample(TRAIN);
    for arguments in [&[&*path][..], &["--progress", "plain", &path], &["--progress", "never", &path]] {
        let ran = program(arguments);
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{arguments:?}");
    }
    assert_eq!(program(&["--progress", "plain", "-q", &path]).code, 2, "they contradict each other");
}

#[test]
fn codes_of_warnings_are_listed_and_explained() {
    use sync_report::model::Code;
    let all = program(&["explain", "--warnings", "--width", "200"]);
    for code in Code::ALL {
        for text in [code.as_str(), code.help(), code.advice()] {
            assert!(!text.is_empty() && all.stdout.contains(text), "{code}: {text}");
        }
        let one = program(&["explain", code.as_str(), "--width", "200"]);
        assert!(one.code == 0 && one.stdout.contains(code.help()), "{code}: {}", one.stderr);
    }
    let ran = program(&["explain", "event-lost"]);
    assert!(ran.code == 2 && ran.stderr.contains("near: events-lost"), "{}", ran.stderr);
}

#[test]
fn colours_only_where_asked() {
    let path = sample(TRAIN);
    let escapes = |ran: &Ran| ran.stdout.contains('\u{1b}');
    assert!(!escapes(&program(&[&path])), "into a pipe");
    assert!(escapes(&program(&[&*path, "--color", "always"])));
    assert!(!escapes(&program(&[&*path, "--color", "never"])));
    assert!(!escapes(&ran(command().env("NO_COLOR", "1").arg(&path))));
    assert!(!escapes(&ran(command().env("NO_COLOR", "1").env("CLICOLOR_FORCE", "1").arg(&path))));
    assert!(
        escapes(&ran(command().env("NO_COLOR", "1").args(["--color", "always", &path]))),
        "the flag wins"
    );
    for format in ["json", "csv"] {
        assert!(!escapes(&program(&[&*path, "--color", "always", "--format", format])), "{format}");
    }
}

#[test]
fn the_table_fits_its_width() {
    for name in [TRAIN, "patterns", "train_mlp_python_sampling", "pairs_h2d_pageable"] {
        for width in [50usize, 60, 80, 100, 132, 200] {
            let ran = program(&[&*sample(name), "--width", &width.to_string(), "--top", "0"]);
            let text = |l: &&str| !l.contains("sync-report run ");
            for line in ran.stdout.lines().filter(text) {
                let columns = sync_report::text::width(line);
                assert!(columns <= width, "{name} at {width}: {columns} columns: {line}");
            }
        }
    }
}

/// Constants of `bench --save` replace what the capture does not show: here a bus half as fast.
#[test]
fn constants_replace_what_is_assumed() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("constants.json");
    let measured = Constants {
        constants_version: CONSTANTS_VERSION,
        pinned_upload: 27.0,
        pinned_read: 26.0,
        pageable_upload: 9.0,
        pageable_read: 9.0,
        ..Constants::default()
    };
    std::fs::write(&file, serde_json::to_string(&measured).expect("JSON")).expect("written");
    let (path, file) = (sample("pairs_h2d_pageable"), file.display().to_string());
    let saved = |more: &[&str]| {
        let ran = program(&[&[&*path, "--format", "json"], more].concat());
        let report = ran.json();
        let warned = ran.stdout.contains("bandwidth-assumed");
        (report["totals"]["recoverable_false_joint_ns"].as_i64().expect("simulated"), warned)
    };
    let ((assumed, said), (with, still)) = (saved(&[]), saved(&["--constants", &file]));
    assert!(said && !still);
    // 100 H2D copies of 32 MiB take 0.62 ms more each.
    assert!((40_000_000..70_000_000).contains(&(assumed - with)), "{assumed} {with}");
    for bad in ["/no/such.json", &path] {
        let ran = program(&[&path, "--constants", bad]);
        assert_eq!(ran.code, 2);
        assert!(ran.stderr.contains("sync-report bench --save"), "{}", ran.stderr);
    }
}

#[test]
fn rules_are_explained() {
    let run = |arguments: &[&str]| {
        let ran = command().args(arguments).output().expect("it runs");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (ran.status.success(), text(ran.stdout), text(ran.stderr))
    };
    for (id, part) in [("R05", "stream 7"), ("s07", "x.norm().item()"), ("X11", "log_metrics")] {
        let (success, told, _) = run(&["explain", id]);
        assert!(success && told.starts_with(&id.to_uppercase()) && told.contains(part), "{told}");
    }
    for (typed, id) in [("s7", "S07"), ("S7", "S07"), ("r5", "R05"), ("x011", "X11")] {
        assert!(run(&["explain", typed]).1.starts_with(id), "{typed}");
    }
    let (_, all, _) = run(&["explain", "--rules"]);
    for id in ["R05", "S07", "X11", "undecided"] {
        assert!(all.contains(id), "{all}");
    }
    let (success, _, complaint) = run(&["explain", "R055"]);
    assert!(!success && complaint.contains("near: R05"), "{complaint}");
}
