//! Two captures compared: edits, jitter, and what cannot be compared.

use crate::cli::{program, ran, sample};
use crate::look::options;
use crate::loops::{LOOP, Loop, Waits, read, source, upload};
use serde_json::Value;
use std::path::Path;
use sync_report::analysis::Options;
use sync_report::diff::{self, Snapshot};
use sync_report::model::diff::{DiffReport, Location, SiteChange, Status};
use sync_report::render::json;
use sync_report::report;
use sync_report::verdict::source::SourceRoot;

/// A capture of the loop as a side, its sources below `sources` where there are any.
pub fn side(how: &Loop, lines: &[Waits], sources: Option<&Path>) -> Snapshot {
    let (_folder, path) = how.export(lines).write_temp();
    let roots = sources.map(|new| SourceRoot { old: Some("/w".to_owned()), new: new.to_owned() });
    let options = Options { source_roots: roots.into_iter().collect(), ..options() };
    let report = report::run(&[path], &options).expect("a report");
    Snapshot::of(report, sources.is_some())
}

fn said(report: &DiffReport) -> Vec<String> {
    let line = |s: &sync_report::model::diff::SiteChange| {
        let at = |state: &Option<sync_report::model::diff::SiteState>| {
            let of = |s: &sync_report::model::diff::SiteState| match &s.location {
                Some(l) => format!("{}:{}", l.function, l.line),
                None => s.name.clone(),
            };
            state.as_ref().map_or("-".to_owned(), of)
        };
        let mut words = format!("{:?} {} -> {}", s.status, at(&s.before), at(&s.after));
        if let Some(how) = s.matched {
            words += &format!(" by {how:?}");
        }
        for aspect in &s.changed {
            words += &format!(" {aspect:?}");
        }
        words
    };
    let mut all: Vec<String> = report.sites.iter().map(line).collect();
    all.sort();
    all
}

pub fn compare(before: &Snapshot, after: &Snapshot) -> DiffReport {
    diff::compare(before, after)
}

fn of_texts(before: (&[(usize, &str)], &[Waits]), after: (&[(usize, &str)], &[Waits])) -> DiffReport {
    let [before, after] = [(LOOP, before), (LOOP.seed(2), after)].map(|(how, (texts, waits))| {
        let folder = tempfile::tempdir().expect("a folder");
        source(folder.path(), "train.py", texts);
        side(&how, waits, Some(folder.path()))
    });
    compare(&before, &after)
}

/// Lines by what became of their avoidable waits, as `18 Moved 22`.
pub fn fates(report: &DiffReport) -> Vec<String> {
    let line = |l: &Option<Location>| l.as_ref().map_or(0, |l| l.line);
    let told = |s: &SiteChange| {
        let fate = s.fate.as_ref()?;
        let to = fate.moved_to.as_ref().map_or_else(String::new, |to| format!(" {}", line(&to.location)));
        Some(format!("{} {:?}{to}", line(&s.before.as_ref()?.location), fate.became))
    };
    let mut all: Vec<String> = report.sites.iter().filter_map(told).collect();
    all.sort();
    all
}

fn codes(report: &DiffReport) -> Vec<&str> {
    report.warnings.iter().map(|w| &*w.code).collect()
}

const STEP: [Waits; 3] = [
    Waits { function: "step", line: 17, ..READ },
    Waits { function: "step", line: 30, ..READ },
    Waits { function: "load", line: 50, what: crate::loops::What::Upload, ..READ },
];
const READ: Waits = Waits { function: "", line: 0, what: crate::loops::What::Read, ns: 50_000, every: 1 };

fn shifted(lines: &[Waits], by: i64) -> Vec<Waits> {
    lines.iter().map(|l| Waits { line: l.line + by, ..*l }).collect()
}

#[test]
fn the_same_program_run_again_has_not_changed() {
    let before = side(&LOOP, &STEP, None);
    for seed in 2..8 {
        let report = compare(&before, &side(&LOOP.seed(seed), &STEP, None));
        assert_eq!(report.counts.unchanged, 3, "{:?}", said(&report));
        assert!(!report.run.span_changed);
        assert_eq!(codes(&report), [] as [&str; 0]);
    }
}

#[test]
fn sites_move_with_their_lines() {
    let below = Loop { main: LOOP.main + 40, ..LOOP.seed(2) };
    let report = compare(&side(&LOOP, &STEP, None), &side(&below, &shifted(&STEP, 40), None));
    assert_eq!(
        said(&report),
        [
            "Moved load:50 -> load:90 by Line",
            "Moved step:17 -> step:57 by Line",
            "Moved step:30 -> step:70 by Line",
        ]
    );
}

#[test]
fn an_edit_in_the_middle_of_a_function_moves_what_is_below() {
    let below = [read("step", 17), read("step", 36), read("step", 41)];
    let before = [read("step", 17), read("step", 30), read("step", 35)];
    let report = compare(&side(&LOOP, &before, None), &side(&LOOP.seed(2), &below, None));
    let expected = [
        "Moved step:30 -> step:36 by Line",
        "Moved step:35 -> step:41 by Line",
        "Unchanged step:17 -> step:17 by Line",
    ];
    assert_eq!(said(&report), expected);
}

/// The text of a line goes before its number: the two reads changed places.
#[test]
fn text_tells_lines_that_changed_places() {
    let old = [(16, "def step(a, b):"), (17, "    x = a.item()"), (18, "    y = b.item()")];
    let new = [(16, "def step(a, b):"), (17, "    y = b.item()"), (18, "    x = a.item( )")];
    let lines = [read("step", 17), read("step", 18)];
    let slow = [Waits { ns: 90_000, ..lines[0] }, lines[1]];
    let swapped = [lines[0], Waits { ns: 90_000, ..lines[1] }];
    // Idle time at an iteration's end belongs to its last wait.
    assert_eq!(
        said(&of_texts((&old, &slow), (&new, &swapped))),
        ["Changed step:17 -> step:18 by Text Drain", "Changed step:18 -> step:17 by Text Drain"],
        "and neither blocks longer than it did"
    );
}

/// Reads that were edited are known by the names of their lines, though one has changed places with another.
///
/// ```text
///  before   17 losses.append(loss.item())       after   16 loss_value, norm_value = …(loss, norm)
///           18 print(loss.item(), norm.item())          19 losses = torch.stack(losses).tolist()      behind the loop
///           30 print(hits.item())                       31 show(hits.item())
/// ```
#[test]
fn edited_lines_are_known_by_what_they_name() {
    let old = [
        (15, "def step(a, b):"),
        (17, "    losses.append(loss.item())"),
        (18, "    print(loss.item(), norm.item())"),
        (30, "    print(hits.item())"),
    ];
    let new = [
        (14, "def step(a, b):"),
        (16, "    loss_value, norm_value = torch.stack([v for v in (loss, norm)]).tolist()"),
        (19, "    losses = torch.stack(losses).tolist()"),
        (31, "    show(hits.item())"),
    ];
    let before = [17, 18, 30].map(|line| read("step", line));
    let after = [read("step", 16), Waits { every: 99, ..read("step", 19) }, read("step", 31)];
    let report = of_texts((&old, &before), (&new, &after));
    let places: Vec<String> =
        said(&report).iter().map(|line| line.split(" by ").next().unwrap_or_default().to_owned()).collect();
    let expected = ["Changed step:17 -> step:19", "Changed step:18 -> step:16", "Changed step:30 -> step:31"];
    assert_eq!(places, expected);
    assert!(fates(&report).contains(&"17 Fewer".to_owned()), "{:?}", fates(&report));
}

/// Reads without texts keep their order: two moved up by six lines, so 20 is a new site between them.
///
/// ```text
///  before          10     14            30
///  after    8                20     24
/// ```
#[test]
fn lines_keep_their_order() {
    let before = [10, 14, 30].map(|line| read("step", line));
    let after = [8, 20, 24].map(|line| read("step", line));
    let report = compare(&side(&LOOP, &before, None), &side(&LOOP.seed(2), &after, None));
    let expected = [
        "Gone step:10 -> -",
        "Moved step:14 -> step:8 by Line",
        "Moved step:30 -> step:24 by Line",
        "New - -> step:20",
    ];
    assert_eq!(said(&report), expected);
}

/// Two lines as far apart as two others are not paired: their texts differ, and they are far away.
#[test]
fn a_chance_distance_pairs_nothing() {
    let old = [(16, "def step(a, b):"), (17, "    x = a.item()"), (30, "    y = b.item()")];
    let new = [(16, "def step(a, b):"), (61, "    p = c.item()"), (74, "    q = d.item()")];
    let [before, after] = [[17, 30], [61, 74]].map(|lines| lines.map(|line| read("step", line)));
    assert_eq!(
        said(&of_texts((&old, &before), (&new, &after))),
        ["Gone step:17 -> -", "Gone step:30 -> -", "New - -> step:61", "New - -> step:74"]
    );
}

#[test]
fn a_renamed_function_keeps_its_sites() {
    let renamed: Vec<Waits> = STEP
        .iter()
        .map(|l| if l.function == "step" { Waits { function: "train_step", ..*l } } else { *l })
        .collect();
    let expected = [
        "Moved step:17 -> train_step:17 by FunctionRenamed",
        "Moved step:30 -> train_step:30 by FunctionRenamed",
        "Unchanged load:50 -> load:50 by Line",
    ];
    let report = compare(&side(&LOOP, &STEP, None), &side(&LOOP.seed(2), &renamed, None));
    assert_eq!(said(&report), expected);
    // Moved as well: only the lines' text tells, which needs the old file.
    let old = [(10, "def step(a):"), (17, "    log(a.item())")];
    let new = [(50, "def train_step(a):"), (57, "    log(a.item())")];
    let report = of_texts((&old, &[read("step", 17)]), (&new, &[read("train_step", 57)]));
    assert_eq!(said(&report), ["Moved step:17 -> train_step:57 by FunctionRenamed"]);
}

#[test]
fn another_root_is_no_move_and_another_file_is_one() {
    let elsewhere = Loop { file: "/home/ci/build/train.py", ..LOOP.seed(2) };
    let report = compare(&side(&LOOP, &STEP, None), &side(&elsewhere, &STEP, None));
    assert_eq!(report.counts.unchanged, 3, "{:?}", said(&report));
    assert_eq!(codes(&report), ["other-root"]);
    let renamed = Loop { file: "/w/loop.py", ..LOOP.seed(2) };
    let report = compare(&side(&LOOP, &STEP, None), &side(&renamed, &STEP, None));
    assert_eq!(
        said(&report),
        [
            "Moved load:50 -> load:50 by FileMoved",
            "Moved step:17 -> step:17 by FileMoved",
            "Moved step:30 -> step:30 by FileMoved",
        ]
    );
}

#[test]
fn what_came_went_and_changed_is_told_apart() {
    let after = [
        STEP[0],
        Waits { ns: 150_000, ..STEP[2] },
        read("evaluate", 70),
        Waits { every: 4, ..read("log", 80) },
    ];
    let before = [STEP[0], STEP[1], STEP[2], read("log", 80)];
    let report = compare(&side(&LOOP, &before, None), &side(&LOOP.seed(2), &after, None));
    assert_eq!(
        said(&report),
        [
            "Changed load:50 -> load:50 by Line Blocked",
            "Changed log:80 -> log:80 by Line Waits Blocked Drain",
            "Gone step:30 -> -",
            "New - -> evaluate:70",
            "Unchanged step:17 -> step:17 by Line",
        ]
    );
    let order: Vec<Status> = report.sites.iter().map(|s| s.status).collect();
    assert!(order.is_sorted(), "{order:?}");
}

/// A line that logs every eighth step: its rate depends on where the capture begins and ends.
#[test]
fn other_numbers_of_iterations_are_no_change() {
    let lines = [read("step", 17), Waits { every: 8, ..read("log", 40) }];
    let longer = Loop { iterations: 61, ..LOOP.seed(2) };
    let report = compare(&side(&LOOP, &lines, None), &side(&longer, &lines, None));
    assert_eq!(report.counts.unchanged, 2, "{:?}", said(&report));
}

#[test]
fn captures_that_differ_say_so_and_are_not_judged_by_time() {
    let before = side(&LOOP, &STEP, None);
    let slower: Vec<Waits> = STEP.iter().map(|l| Waits { ns: 400_000, ..*l }).collect();
    let cases = [
        (Loop { gpu: "NVIDIA A100", ..LOOP }, vec!["other-gpu"]),
        (Loop { frames: false, ..LOOP }, vec!["other-flags", "no-lines"]),
        (Loop { nvtx: false, ..LOOP }, vec!["other-iterations"]),
        (Loop { range: "batch", ..LOOP }, vec!["other-iterations"]),
    ];
    for (how, expected) in cases {
        let report = compare(&before, &side(&how, &slower, None));
        assert_eq!(codes(&report), expected);
        assert_eq!((report.counts.new, report.counts.gone), (0, 0), "{:?}", said(&report));
        assert_eq!(report.counts.changed, 0, "{expected:?}: {:?}", said(&report));
        assert!(!report.costs_compared && !report.run.span_changed);
    }
}

/// The first wait of a capture without frames, its copy lost by the profiler: another site in the report, not here.
#[test]
fn a_lost_copy_at_start_up_is_no_new_site() {
    let light = Loop { frames: false, ..LOOP };
    let lines = [read("step", 17), upload("load", 50)];
    let mut e = light.export(&lines);
    e.sql("DELETE FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE start = (SELECT min(start) FROM CUPTI_ACTIVITY_KIND_MEMCPY)");
    let (_folder, path) = e.write_temp();
    let report = report::run(&[path], &options()).expect("a report");
    let before = side(&light.clone().seed(2), &lines, None);
    let after = Snapshot::of(report, false);
    assert_eq!((before.sites.len(), after.sites.len()), (2, 3));
    let compared = compare(&before, &after);
    assert_eq!(compared.counts.unchanged, compared.sites.len(), "{:?}", said(&compared));
}

/// One rank before, two after: means over ranks, no site twice.
#[test]
fn ranks_are_taken_together() {
    let two = [LOOP.seed(2), Loop { pid: 200, ..LOOP.seed(3) }].map(|how| how.export(&STEP).write_temp());
    let paths = two.each_ref().map(|(_, path)| path.clone());
    let report = report::run(&paths, &options()).expect("a report");
    let report = compare(&side(&LOOP, &STEP, None), &Snapshot::of(report, false));
    assert_eq!(report.counts.unchanged, 3, "{:?}", said(&report));
    assert_eq!(codes(&report), ["other-ranks"]);
    let waits: Vec<f64> = report.sites.iter().filter_map(|s| s.after.as_ref()).map(|s| s.waits).collect();
    assert_eq!(waits, [1.0; 3]);
}

#[test]
fn a_report_kept_as_json_stands_for_its_capture() {
    let (_folder, path) = LOOP.export(&STEP).write_temp();
    let report = report::run(&[path], &options()).expect("a report");
    let mut bytes = Vec::new();
    json::write(&report, &mut bytes).expect("a Vec takes everything");
    let after = side(&LOOP.seed(2), &[STEP[0], STEP[2], upload("load", 55)], None);
    let kept = compare(&Snapshot::from_json(&bytes).expect("a side"), &after);
    let fresh = compare(&Snapshot::of(report.clone(), true), &after);
    let text = |r: &DiffReport| serde_json::to_string(r).expect("JSON");
    assert_eq!(text(&kept), text(&fresh));
    assert_eq!((kept.counts.new, kept.counts.gone), (1, 1), "{:?}", said(&kept));
    let some = report.sites.iter().find_map(|site| site.pattern).expect("a pattern");
    let other = String::from_utf8(bytes).expect("text").replace(&format!("\"{some}\""), "\"Z99\"");
    let other =
        Snapshot::from_json(other.as_bytes()).expect("a side, also with a pattern of another version");
    assert!(
        other.sites.iter().all(|site| site.pattern != Some(some)),
        "one that this version does not know is none"
    );
}

#[test]
fn bad_sides_are_refused_with_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let cut = program(&[&*sample("train_mlp_shapes"), "--format", "json", "--top", "2"]).stdout;
    for (path, words) in [
        (write("other.json", "{\"a\": 1}"), "is no report of sync-report"),
        (write("cut.json", "{"), "is no report of sync-report"),
        (write("new.json", "{\"schema_version\": 2}"), "schema version 2"),
        (write("top.json", &cut), "5 sites are missing"),
        (write("text.txt", "hello"), "no SQLite database"),
        (folder.path().join("none.sqlite").display().to_string(), "no such file"),
    ] {
        let ran = program(&["diff", &path, &sample("train_mlp_shapes")]);
        assert_eq!((ran.code, &*ran.stdout), (2, ""), "{path}");
        assert!(ran.stderr.contains(words) && ran.stderr.lines().count() == 1, "{}", ran.stderr);
    }
}

fn edited(folder: &Path) -> String {
    let path = folder.join("edited.sqlite");
    std::fs::copy(sample("train_mlp_shapes"), &path).expect("a copy");
    let db = rusqlite::Connection::open(&path).expect("a database");
    let id: i64 = db
        .query_row("SELECT id FROM StringIds WHERE value = '/workspace/train_mlp.py'", [], |row| row.get(0))
        .expect("the program's name");
    let rows: Vec<(i64, String)> = db
        .prepare("SELECT rowid, jsonText FROM NVTX_EVENTS WHERE eventType = 34 AND jsonText IS NOT NULL")
        .and_then(|mut q| q.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .expect("payloads");
    db.execute_batch("BEGIN").expect("a transaction");
    for (row, text) in rows {
        let mut payload: Value = serde_json::from_str(&text).expect("JSON");
        for frames in payload.as_object_mut().expect("an object").values_mut() {
            for frame in frames["Frames"].as_array_mut().into_iter().flatten() {
                if frame["File"].as_i64() == Some(id) {
                    frame["Line"] = (frame["Line"].as_i64().expect("a line") + 40).into();
                }
            }
        }
        db.execute(
            "UPDATE NVTX_EVENTS SET jsonText = ?, binaryData = NULL WHERE rowid = ?",
            (payload.to_string(), row),
        )
        .expect("an update");
    }
    db.execute_batch("UPDATE StringIds SET value = 'train_step' WHERE value = 'step'; COMMIT")
        .expect("a name");
    path.display().to_string()
}

#[test]
fn a_real_capture_is_known_again_after_an_edit() {
    let folder = tempfile::tempdir().expect("a folder");
    let (before, after) = (sample("train_mlp_shapes"), edited(folder.path()));
    let ran = program(&["diff", &before, &after, "--format", "json"]);
    let report = ran.json();
    assert_eq!(report["counts"]["moved"], 6, "{}", ran.stdout);
    for site in report["sites"].as_array().expect("sites") {
        let [old, new] = ["before", "after"].map(|side| &site[side]["location"]);
        assert_eq!(old["line"].as_i64().map(|l| l + 40), new["line"].as_i64());
        let renamed = old["function"] == "step";
        assert_eq!(site["matched"], if renamed { "function-renamed" } else { "line" });
    }
}

#[test]
fn sample_captures_compare() {
    let report = program(&["diff", &sample("patterns"), &sample("patterns"), "--format", "json"]).json();
    assert_eq!(report["counts"]["unchanged"], report["sites"].as_array().expect("sites").len());
    // The same loop with exact frames and with samples; the line that starts the profiler is of the first only.
    let (exact, sampled) = (sample("train_mlp_shapes"), sample("train_mlp_python_sampling"));
    let other = program(&["diff", &exact, &sampled, "--format", "json"]);
    let report = other.json();
    assert_eq!((&report["grain"], &report["costs_compared"]), (&"function".into(), &false.into()));
    assert_eq!((&report["counts"]["gone"], &report["counts"]["unchanged"]), (&1.into(), &3.into()));
    // The same bytes again, and on one thread.
    let again =
        ran(crate::cli::command().args(["diff", &exact, &sampled, "--format", "json", "--threads", "1"]));
    assert_eq!(again.stdout, other.stdout);
}
