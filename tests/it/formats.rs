//! Formats for other programs: Markdown, GitHub annotations, SARIF, traces; plain captures and hostile ones.

use crate::cli::{command, program, ran, sample};
use crate::export::{GPU0, Payload, empty};
use crate::loops::{LOOP, upload};
use serde_json::Value;
use std::path::{Path, PathBuf};
use sync_report::formats::REPORT;

mod parquet;
pub mod schema;

const SOURCES: &str = concat!("/workspace=", env!("CARGO_MANIFEST_DIR"), "/sample-profiles/programs");
const SAMPLES: [&str; 4] =
    ["train_mlp_shapes", "patterns", "train_mlp_python_sampling", "pairs_h2d_pageable"];

fn output(profile: &str, format: &str, more: &[&str]) -> String {
    let ran = ran(command()
        .env_remove("GITHUB_STEP_SUMMARY")
        .env("GITHUB_WORKSPACE", env!("CARGO_MANIFEST_DIR"))
        .args([profile, "--format", format, "--source-root", SOURCES])
        .args(more));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.stdout
}

/// All formats but those that write a folder: a new format is held to the same tests.
fn printed() -> impl Iterator<Item = &'static str> {
    REPORT.iter().filter(|format| format.folder.is_none()).map(|format| format.name)
}

#[test]
fn every_format_is_documented() {
    let page = include_str!("../../docs/formats.md");
    for format in REPORT {
        assert!(page.contains(&format!("`{}`", format.name)), "{}: a row in docs/formats.md", format.name);
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// Names that attack whatever prints them: markup, commands of a log, terminals, addresses.
const HOSTILE: [&str; 9] = [
    "x\n::error file=a::owned\n::stop-commands::t",
    "a|b\\|c`d``e",
    "<img src=x onerror=alert(1)>@ada #1",
    "[click](javascript:alert(1)) ![i](http://x)",
    "</code></summary></details><script>alert(1)</script>",
    "\u{1b}[2J\u{202e}evil\u{0}%0A%25,:",
    "```\n# title\n```",
    "{0} %s \"quoted\" 'single'",
    "../../etc/passwd",
];

fn hostile(folder: &Path) -> PathBuf {
    let (mut e, t) = empty();
    e.payload(Payload::Json).process(100, HOSTILE[0]).name_thread(t, HOSTILE[2]).gpu_name(0, HOSTILE[4]);
    e.command(&HOSTILE);
    for (i, name) in (0..).zip(HOSTILE) {
        let at = 1_000_000 * i;
        e.nvtx(t, at..at + 900_000, name);
        e.launch(t, at + 100..at + 5_000, GPU0, at + 6_000..at + 90_000, name);
        let (copy, wait) = e.item(t, at + 10_000..at + 100_000, GPU0, at + 91_000..at + 92_000);
        let file = format!("/w/{name}.py");
        for call in [copy, wait] {
            e.python(call, &[(name, &file, 3), ("main", &file, 9)]);
        }
    }
    let path = folder.join("hostile.sqlite");
    e.write(&path);
    path
}

#[test]
fn sarif_is_what_the_schema_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = hostile(folder.path()).display().to_string();
    let profiles = SAMPLES.map(sample);
    for profile in profiles.iter().chain([&bad]) {
        let log = parsed(&output(profile, "sarif", &[]));
        let gate = program(&["check", profile, "--fail-on", "any-false", "--format", "sarif"]);
        for log in [log, parsed(&gate.stdout)] {
            assert_eq!(schema::errors(&log), [] as [String; 0], "{profile}");
            // GitHub refuses a log with a single result that lacks one of these.
            for result in log["runs"][0]["results"].as_array().expect("results") {
                let at = &result["locations"][0]["physicalLocation"];
                assert!(
                    at["artifactLocation"]["uri"].as_str().is_some_and(|uri| !uri.is_empty()),
                    "{result}"
                );
                assert!(at["region"]["startLine"].as_u64().is_some_and(|line| line > 0), "{result}");
            }
        }
    }
}

#[test]
fn sarif_results_are_the_sites_that_may_go() {
    let report = parsed(&output(&sample("train_mlp_shapes"), "json", &["--top", "0"]));
    let log = parsed(&output(&sample("train_mlp_shapes"), "sarif", &[]));
    let results = log["runs"][0]["results"].as_array().expect("results");
    let sites = report["sites"].as_array().expect("sites");
    assert_eq!(results.len(), sites.iter().filter(|s| s["class"] != "true").count());
    let rules: Vec<&Value> = log["runs"][0]["tool"]["driver"]["rules"]
        .as_array()
        .expect("rules")
        .iter()
        .map(|r| &r["id"])
        .collect();
    for result in results {
        let at = &result["locations"][0]["physicalLocation"];
        assert_eq!(at["artifactLocation"]["uri"], "sample-profiles/programs/train_mlp.py");
        let site = sites.iter().find(|s| s["id"] == result["properties"]["site"]).expect("its site");
        assert_eq!(at["region"]["startLine"], site["user_frame"]["line"]);
        assert_eq!(result["level"], if site["class"] == "false" { "warning" } else { "note" });
        assert!(rules.contains(&&result["ruleId"]), "{}", result["ruleId"]);
        let frames = site["frames"].as_array().expect("frames").len();
        assert_eq!(result["relatedLocations"].as_array().map_or(0, Vec::len), frames - 1);
    }
}

/// Neither an edit above nor another run opens new alerts.
#[test]
fn fingerprints_know_no_lines_and_no_times() {
    let folder = tempfile::tempdir().expect("a folder");
    let prints = |name: &str, seed: i64, by: i64| -> Vec<String> {
        let lines = [upload("step", 17 + by), upload("step", 18 + by), upload("load", 50 + by)];
        let how = crate::loops::Loop { main: 90 + by, ..LOOP.seed(seed) };
        let profile = how.write(folder.path(), name, &lines).display().to_string();
        let log = parsed(&output(&profile, "sarif", &[]));
        let results = log["runs"][0]["results"].as_array().expect("results").clone();
        let print = |r: &Value| {
            let line = r["locations"][0]["physicalLocation"]["region"]["startLine"].as_i64().expect("a line");
            (line - by, r["partialFingerprints"]["primaryLocationLineHash"].as_str().unwrap_or("").to_owned())
        };
        let mut all: Vec<(i64, String)> = results.iter().map(print).collect();
        all.sort();
        all.into_iter().map(|p| p.1).collect()
    };
    let first = prints("first", 1, 0);
    assert_eq!(first.len(), 3);
    assert!(first.iter().all(|p| first.iter().filter(|q| *q == p).count() == 1), "{first:?}");
    assert_eq!(prints("again", 2, 0), first);
    assert_eq!(prints("moved", 3, 40), first);
}

#[test]
fn annotations_are_ten_of_a_level_and_the_rest_is_in_the_summary() {
    let profile = sample("patterns");
    let folder = tempfile::tempdir().expect("a folder");
    let summary = folder.path().join("summary.md");
    std::fs::write(&summary, "before\n").expect("a file");
    let ran = ran(command()
        .env("GITHUB_WORKSPACE", env!("CARGO_MANIFEST_DIR"))
        .env("GITHUB_STEP_SUMMARY", &summary)
        .args([&*profile, "--format", "github", "--source-root", SOURCES]));
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    let of = |level: &str| ran.stdout.lines().filter(|l| l.starts_with(&format!("::{level} "))).count();
    let report = parsed(&output(&profile, "json", &["--top", "0"]));
    let sites = report["sites"].as_array().expect("sites");
    let count = |class: &str| sites.iter().filter(|s| s["class"] == class).count();
    assert_eq!((of("warning"), of("notice")), (count("false").min(10), count("unknown").min(10)));
    assert_eq!(ran.stdout.lines().count(), of("warning") + of("notice"), "nothing else is on stdout");
    let first = ran.stdout.lines().next().expect("a line");
    assert!(first.contains("file=sample-profiles/programs/patterns.py,line="), "{first}");
    let text = std::fs::read_to_string(&summary).expect("the summary");
    assert!(text.starts_with("before\n### sync-report: "), "it is appended");
    assert_eq!(text.matches("<details>").count(), sites.len());
    // Without a summary, the output counts the sites left out.
    let plain = output(&profile, "github", &[]);
    let left = count("false").saturating_sub(10) + count("unknown").saturating_sub(10);
    assert_eq!(plain.contains("more without an annotation"), left > 0);
}

/// A step's summary holds 1 MiB; the step's other writes count too.
#[test]
fn summaries_stay_below_their_limit() {
    const LIMIT: u64 = 1 << 20;
    let folder = tempfile::tempdir().expect("a folder");
    for there in [0, LIMIT - 20_000, LIMIT - 10, LIMIT] {
        let summary = folder.path().join(format!("{there}.md"));
        std::fs::write(&summary, vec![b'x'; there as usize]).expect("a file");
        let ran = ran(command().env("GITHUB_STEP_SUMMARY", &summary).args([
            &*sample("patterns"),
            "--format",
            "github",
            "--source-root",
            SOURCES,
        ]));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let now = summary.metadata().expect("the summary").len();
        assert!(now <= LIMIT, "{now}");
        assert_eq!(now > there, there + 1_000 < LIMIT, "{there}: {now}");
    }
}

/// Lines that a log takes for commands (white space before them counts for nothing).
fn commands(text: &str) -> Vec<&str> {
    text.lines().map(str::trim_start).filter(|l| l.starts_with("::") || l.starts_with("##[")).collect()
}

#[test]
fn hostile_names_command_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = hostile(folder.path()).display().to_string();
    for format in printed().filter(|name| *name != "github") {
        let text = output(&bad, format, &["--top", "0"]);
        assert_eq!(commands(&text), [] as [&str; 0], "{format}");
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\0', '\u{7}']) || format == "json", "{format}");
    }
    let all = output(&bad, "github", &[]);
    for line in commands(&all) {
        assert!(line.starts_with("::warning ") || line.starts_with("::notice "), "{line}");
        let properties = line.split("::").nth(1).expect("properties");
        let keys: Vec<&str> = properties
            .split_once(' ')
            .map_or("", |p| p.1)
            .split(',')
            .filter_map(|p| p.split('=').next())
            .collect();
        assert!(keys.iter().all(|k| ["file", "line", "title"].contains(k)), "{line}");
    }
    assert_eq!(commands(&all).len(), all.lines().count());
}

#[test]
fn hostile_names_stay_inside_their_markdown() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = hostile(folder.path()).display().to_string();
    let compared = program(&["diff", &bad, &sample("train_mlp_shapes"), "--format", "markdown"]).stdout;
    for text in [output(&bad, "markdown", &["--top", "0"]), compared] {
        let mut fence: Option<usize> = None;
        let mut bare = String::new();
        for line in text.lines() {
            let ticks = line.chars().take_while(|&c| c == '`').count();
            match fence {
                Some(open) if ticks >= open && line.len() == ticks => fence = None,
                Some(_) => continue,
                None if ticks >= 3 && !line[ticks..].contains('`') => fence = Some(ticks),
                None => bare += &outside(line),
            }
        }
        assert_eq!(fence, None, "every block is closed");
        let tags = |tag: &str| bare.matches(tag).count();
        assert_eq!(tags("<details>"), tags("</details>"));
    }
}

/// Checks a line outside of code blocks: cells as many as the table's, no markup outside of code spans.
/// Returns the line without code spans.
fn outside(line: &str) -> String {
    // Neither a code span nor <code> holds markup, links or mentions.
    let mut bare = without_code(line);
    while let (Some(from), Some(to)) = (bare.find("<code>"), bare.find("</code>")) {
        assert!(from < to && !bare[from + 6..to].contains('<'), "a tag inside <code>: {line}");
        bare.replace_range(from..to + 7, "");
    }
    // A character after a backslash is literal.
    let mut rest = bare.chars();
    let mut plain = String::new();
    while let Some(c) = rest.next() {
        plain.extend(if c == '\\' { rest.next().map(|_| ' ') } else { Some(c) });
    }
    for sign in ["<img", "<script", "](", "@ada", "![", "http:"] {
        assert!(!plain.contains(sign), "{sign} in {line}");
    }
    if line.starts_with('|') {
        let (mut bars, mut slashes) = (0, 0);
        for c in line.chars() {
            bars += usize::from(c == '|' && slashes % 2 == 0);
            slashes = if c == '\\' { slashes + 1 } else { 0 };
        }
        assert!([10, 9, 8, 5].contains(&bars), "{bars} bars in {line}");
    }
    plain
}

/// The line without code spans, as Markdown reads them: from a run of backticks to the next of the same length.
fn without_code(line: &str) -> String {
    let (mut out, mut rest) = (String::new(), line);
    while let Some(at) = rest.find('`') {
        let escaped = rest[..at].ends_with('\\');
        let run = rest[at..].chars().take_while(|&c| c == '`').count();
        out.push_str(&rest[..at]);
        let after = &rest[at + run..];
        let ticks = "`".repeat(run);
        let close = (0..after.len()).filter(|&i| after.is_char_boundary(i)).find(|&i| {
            after[i..].starts_with(&ticks) && !after[..i].ends_with('`') && !after[i + run..].starts_with('`')
        });
        rest = match close.filter(|_| !escaped) {
            Some(i) => &after[i + run..],
            None => after,
        };
    }
    out + rest
}

#[test]
fn markdown_fits_a_comment_and_counts_what_it_leaves_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let many: Vec<_> = (0..400).map(|i| upload("step", 100 + i)).collect();
    let how = crate::loops::Loop { iterations: 3, ..LOOP };
    let profile = how.write(folder.path(), "many", &many).display().to_string();
    let text = output(&profile, "markdown", &["--top", "0"]);
    assert!(text.chars().count() < 65_536, "{}", text.chars().count());
    assert!(text.chars().count() > 60_000, "it uses what it has");
    let rows = text.lines().filter(|l| l.starts_with("| S")).count();
    let sites = text.matches("<details>").count();
    let said = format!("details of {} sites left out", 400 - sites);
    let rows_said = format!("{} more sites not listed", 400 - rows);
    assert!(text.contains(&said), "{said}");
    assert!(rows == 400 || text.contains(&rows_said), "{rows_said}");
    assert!(output(&sample("train_mlp_shapes"), "markdown", &[]).contains("</details>"));
}

/// Slices nest on their tracks, and every arrow begins and ends at one.
#[test]
fn traces_are_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = hostile(folder.path()).display().to_string();
    for profile in SAMPLES.map(sample).iter().chain([&bad]) {
        let trace = parsed(&output(profile, "perfetto", &[]));
        let report = parsed(&output(profile, "json", &["--top", "0"]));
        let events = trace["traceEvents"].as_array().expect("events");
        let time = |v: &Value| (v.as_f64().expect("a number") * 1_000.0).round() as i64;
        let track = |e: &Value| (e["pid"].as_u64(), e["tid"].as_u64());
        let mut slices: std::collections::BTreeMap<_, Vec<(i64, i64)>> = Default::default();
        for e in events.iter().filter(|e| e["ph"] == "X") {
            slices.entry(track(e)).or_default().push((time(&e["ts"]), time(&e["ts"]) + time(&e["dur"])));
        }
        for list in slices.values_mut() {
            list.sort_by_key(|s| (s.0, -s.1));
            let mut open: Vec<i64> = Vec::new();
            for &(start, end) in list.iter() {
                open.retain(|&until| until > start);
                assert!(open.last().is_none_or(|&until| end <= until), "{profile}: slices cross");
                open.push(end);
            }
        }
        let waits =
            events.iter().filter(|e| e["cat"].as_str().is_some_and(|c| c.starts_with("wait,"))).count();
        assert_eq!(waits as u64, report["totals"]["waits"].as_u64().expect("a number"), "{profile}");
        // The innermost slice at an arrow's end, by its start.
        let bound = |e: &Value| {
            let at = time(&e["ts"]);
            let list = slices.get(&track(e)).into_iter().flatten();
            let holding = list.filter(|s| s.0 <= at && (at < s.1 || s.0 == s.1)).map(|s| s.0).max();
            holding.unwrap_or_else(|| panic!("{profile}: an arrow hangs in the air: {e}"))
        };
        let of = |phase: &str| -> Vec<&Value> { events.iter().filter(|e| e["ph"] == phase).collect() };
        let (from, to) = (of("s"), of("f"));
        assert!(!from.is_empty() && from.len() == to.len(), "{profile}");
        for (number, (from, to)) in (1..).zip(from.into_iter().zip(to)) {
            // ui.perfetto.dev drops arrows without a number, and reverses arrows that end at an earlier slice.
            assert_eq!((from["id"].as_u64(), to["id"].as_u64()), (Some(number), Some(number)));
            assert!(
                bound(from) <= bound(to) && time(&from["ts"]) <= time(&to["ts"]),
                "{profile}: {from} {to}"
            );
        }
    }
}

#[test]
fn large_traces_keep_what_is_around_waits() {
    let (_folder, path) = LOOP.export(&[upload("step", 18), upload("load", 40)]).write_temp();
    let (report, whole) = sync_report::report::run_whole(&[path], &crate::look::options()).expect("a report");
    let mut out = Vec::new();
    let left = sync_report::perfetto::render(&report, &whole, 90, &mut out).expect("a Vec takes everything");
    let trace = parsed(&String::from_utf8(out).expect("UTF-8"));
    let slices = trace["traceEvents"].as_array().expect("events").iter().filter(|e| e["ph"] == "X");
    let (mut all, mut waits) = (0, Vec::new());
    for e in slices {
        all += 1;
        if e["cat"] == "wait,false" {
            waits.push(e["args"]["site"].as_str().unwrap_or("").to_owned());
        }
    }
    assert!(all <= 90, "{all} slices");
    assert!(waits.contains(&"S1".to_owned()) && waits.contains(&"S2".to_owned()), "{waits:?}");
    let note = trace["otherData"]["note"].as_str().expect("a note");
    assert!(note.contains("leaves out") && note.contains(" wait") && left.as_deref() == Some(note), "{note}");
}

#[test]
fn odd_exports_survive_every_format() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = crate::hostile::good(folder.path()).display().to_string();
    for (name, path) in crate::hostile::odd_exports(folder.path()) {
        let path = path.display().to_string();
        let plain = program(&[&*path, "--format", "json"]).code;
        for format in printed().filter(|name| *name != "json") {
            let ran = program(&[&*path, "--format", format, "-q"]);
            assert_eq!(ran.code, plain, "{name} as {format}: {}", ran.stderr);
            if plain == 0 && ["sarif", "perfetto"].contains(&format) {
                parsed(&ran.stdout);
            }
        }
        for format in ["table", "markdown", "json"] {
            let ran = program(&["diff", &good, &path, "--format", format]);
            assert_eq!(ran.code, plain, "{name}: {}", ran.stderr);
        }
        let gate = program(&["check", &path, "--fail-on", "drain>100%,any-false"]);
        assert!(if plain == 0 { gate.code < 2 } else { gate.code == 2 }, "{name}: {}", gate.stderr);
    }
}
