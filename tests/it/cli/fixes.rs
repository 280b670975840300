//! `fix`: the patch of a capture, what it leaves alone, and a second run that changes nothing.

use super::*;
use crate::export::{Copy, Export, GPU0, Gpu, Memory, Schema, empty};
use std::fs;
use std::path::PathBuf;
use sync_report::verdict::source::parses;
use tempfile::TempDir;

const TRAIN: &str = "train_mlp_shapes";

const PATCH: &str = r#"@@ -16,7 +16,7 @@
 
 def step(x, t, i):
     x = x.to("cuda")
-    t = t.cuda()
+    t = t.cuda(non_blocking=True)
     out = model(x)
     loss = lossf(out, t)
     if loss.item() > 1e4:
@@ -27,8 +27,8 @@
     opt.step()
     acc = (out.argmax(1) == t).float().mean()
     if i % 1 == 0:
-        print(f"step {i} loss {loss.item():.4f} acc {acc.item():.3f} gnorm {gnorm.item():.3f}")
-    torch.cuda.synchronize()
+        loss_value, acc_value, gnorm_value = torch.stack([v.reshape(()) for v in (loss, acc, gnorm)]).tolist()
+        print(f"step {i} loss {loss_value:.4f} acc {acc_value:.3f} gnorm {gnorm_value:.3f}")
 
 
 def main():
"#;

fn checkout() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("train_mlp.py");
    fs::copy(format!("{}/sample-profiles/programs/train_mlp.py", env!("CARGO_MANIFEST_DIR")), &file)
        .expect("a copy");
    (folder, file)
}

fn fix(capture: &str, folder: &Path, more: &[&str]) -> Ran {
    let root = folder.display().to_string();
    let given = ["fix", capture, "--source-root", &root, "--repository", &root];
    program(&[&given, more].concat())
}

#[test]
fn the_patch_of_the_sample() {
    let (folder, file) = checkout();
    let before = state(&file);
    let ran = fix(&sample(TRAIN), folder.path(), &[]);
    assert_eq!((ran.code, &*ran.stdout), (0, &*format!("--- a/train_mlp.py\n+++ b/train_mlp.py\n{PATCH}")));
    assert_eq!(state(&file), before, "nothing is written");
    let said: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(said[0], "sync-report: 3 edits proposed in 1 file for 3 sites; 3 without");
    assert!(said[1].starts_with("sync-report: S2 train_mlp.py:18 (non-blocking): its source is pageable"));
    assert_eq!(said[2], "sync-report: S1 train_mlp.py:38: the wait is inside a library");
    assert_eq!(said[3], "sync-report: S7 train_mlp.py:38: the wait is inside a library");
    assert_eq!(said.len(), 4);
}

#[test]
fn what_is_written_parses_and_is_not_changed_again() {
    let (folder, file) = checkout();
    let ran = fix(&sample(TRAIN), folder.path(), &["--apply"]);
    assert_eq!((ran.code, &*ran.stdout), (0, ""));
    assert!(ran.stderr.contains("3 edits written in 1 file"), "{}", ran.stderr);
    let after = fs::read_to_string(&file).expect("the file");
    assert!(parses(&after) && !after.contains("synchronize"), "{after}");
    let again = fix(&sample(TRAIN), folder.path(), &["--apply", "--unsafe-fixes"]);
    assert_eq!((again.code, fs::read_to_string(&file).expect("the file")), (0, after));
    let third = fix(&sample(TRAIN), folder.path(), &["--unsafe-fixes"]);
    assert_eq!(third.stdout, "");
    let why = "train_mlp.py: the file at hand is not what ran at S5: it was edited since, perhaps by an earlier `fix`; capture again.";
    assert!(third.stderr.contains(why), "{}", third.stderr);
    assert_eq!(names(folder.path()), ["train_mlp.py"]);
}

#[test]
fn one_site_is_edited_alone() {
    let (folder, _) = checkout();
    let ran = fix(&sample(TRAIN), folder.path(), &["--site", "s3", "-q"]);
    let changed: Vec<&str> = ran.stdout.lines().skip(2).filter(|line| line.starts_with(['+', '-'])).collect();
    assert_eq!(changed, ["-    t = t.cuda()", "+    t = t.cuda(non_blocking=True)"]);
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    let ran = fix(&sample(TRAIN), folder.path(), &["--site", "S99"]);
    assert_eq!((ran.code, &*ran.stdout), (2, ""));
    assert!(ran.stderr.contains("no site S99"), "{}", ran.stderr);
}

#[test]
fn sites_without_a_line_are_counted() {
    let (folder, _) = checkout();
    let (mut e, t) = empty();
    e.launch(t, 0..5_000, GPU0, 7_000..50_000, "k");
    e.device_sync(t, 10_000..53_000, 0);
    let (_kept, path) = e.write_temp();
    let ran = fix(&path.display().to_string(), folder.path(), &[]);
    let said: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(said[0], "sync-report: 0 edits proposed in 0 files for 0 sites; 1 without");
    assert_eq!(said[1], "sync-report: S1: no line of yours is known");
}

/// A line more at the top: none of the recorded lines is the one that ran.
#[test]
fn a_file_that_is_not_what_ran_is_left_alone() {
    for (what, change) in [
        (
            "the file at hand is not what ran",
            (|text: String| format!("import os\n{text}")) as fn(String) -> String,
        ),
        ("the file at hand is not what ran", |text| text.replace("def main():", "\n\ndef main():")),
        ("the file is not plain UTF-8", |text| format!("\u{feff}{text}")),
        ("the file would not parse", |text| format!("{text}\ndef broken(:\n")),
    ] {
        let (folder, file) = checkout();
        let text = change(fs::read_to_string(&file).expect("the file"));
        fs::write(&file, &text).expect("written");
        let ran = fix(&sample(TRAIN), folder.path(), &["--apply"]);
        assert!(ran.code == 0 && ran.stderr.contains(what), "{what}: {}", ran.stderr);
        assert!(ran.stderr.contains("0 edits"), "{}", ran.stderr);
        assert_eq!(fs::read_to_string(&file).expect("the file"), text);
    }
}

#[test]
fn ends_of_lines_stay() {
    let (folder, file) = checkout();
    let text = fs::read_to_string(&file).expect("the file");
    fix(&sample(TRAIN), folder.path(), &["--apply"]);
    let plain = fs::read_to_string(&file).expect("the file");
    fs::write(&file, text.replace('\n', "\r\n")).expect("written");
    fix(&sample(TRAIN), folder.path(), &["--apply"]);
    assert_eq!(fs::read_to_string(&file).expect("the file"), plain.replace('\n', "\r\n"));
}

#[test]
fn without_sources_there_is_nothing_to_edit() {
    program(&["fix", &sample(TRAIN)]).refused("no source of this program is at hand");
}

/// A capture can name any file of this machine.
#[test]
fn files_outside_are_not_edited() {
    let (mut e, folder) = (Export::new(Schema::V2026_2), tempfile::tempdir().expect("a folder"));
    let file = folder.path().join("train.py");
    fs::write(&file, STEP).expect("written");
    turns(&mut e, &file.display().to_string());
    let (_folder, path) = e.write_temp();
    let path = path.display().to_string();
    program(&["fix", &path, "--apply"]).refused("--source-root DIR");
    let ran = program(&["fix", &path, "--apply", "--recorded-sources"]);
    assert!(ran.stderr.contains("below no --source-root"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(&file).expect("the file"), STEP);
    let ran = program(&["fix", &path, "--apply", "--repository", &folder.path().display().to_string()]);
    assert!(ran.stderr.contains("1 edit written"), "{}", ran.stderr);
}

/// Line 6 goes, and line 1 with it, if the trace shows no purpose of the wait.
const STEP: &str = include_str!("fixes/step.py");

/// Three iterations of a loop; each ends with a synchronisation.
///
/// ```text
///  host      [launch] [cudaDeviceSynchronize======]
///  stream 7     [gemm~~~~~~~~~~~~~~~~~~~~~~~~~~~~]
/// ```
fn turns(e: &mut Export, file: &str) {
    e.process(100, "python");
    e.command(&["python", file]);
    let t = e.thread(100, 100);
    for at in [0, 10_000, 20_000] {
        let launch = e.launch(t, at + 100..at + 110, GPU0, at + 120..at + 900, "gemm");
        e.python(launch, &[("step", file, 5)]);
        let wait = e.device_sync(t, at + 200..at + 910, 0);
        let inside = ("synchronize", "/v/lib/python3.12/site-packages/torch/cuda/__init__.py", 1083);
        e.python(wait, &[inside, ("step", file, 6)]);
    }
}

fn stray(more: impl FnOnce(&mut Export)) -> (TempDir, String) {
    let mut e = Export::new(Schema::V2026_2);
    turns(&mut e, "/w/train.py");
    more(&mut e);
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("train.py"), STEP).expect("written");
    let path = folder.path().join("profile.sqlite");
    e.write(&path);
    let path = path.display().to_string();
    (folder, path)
}

/// Other work in the trace decides whether the wait may have a purpose.
#[test]
fn a_stray_synchronisation_goes_where_the_trace_shows_nothing_that_it_is_for() {
    let (folder, path) = stray(|_| ());
    let ran = fix(&path, folder.path(), &[]);
    let changed: Vec<&str> = ran.stdout.lines().skip(2).filter(|line| line.starts_with(['+', '-'])).collect();
    assert_eq!(changed, ["-    synchronize()"], "{}", ran.stderr);
    let second = Gpu { stream: 13, ..GPU0 };
    type More = fn(&mut Export, Gpu);
    let cases: [(More, &str); 2] = [
        (
            |e, second| {
                let t = e.thread(100, 100);
                e.launch(t, 30_000..30_010, second, 30_020..30_900, "gemm");
            },
            "work runs on several streams",
        ),
        (
            |e, _| {
                let t = e.thread(100, 100);
                e.memcpy(t, 30_000..30_010, Copy::h2d(4096, Memory::Pinned), GPU0, 30_020..30_900);
            },
            "copies of pinned memory are under way",
        ),
    ];
    for (more, why) in cases {
        let (folder, path) = stray(|e| more(e, second));
        let ran = fix(&path, folder.path(), &["--unsafe-fixes"]);
        assert!(ran.stdout.is_empty() && ran.stderr.contains(why), "{why}: {}", ran.stderr);
    }
}

#[test]
fn a_line_that_is_needed_elsewhere_is_not_edited() {
    let (folder, path) = stray(|e| {
        let t = e.thread(100, 100);
        let (copy, wait) = e.item(t, 30_000..30_900, GPU0, 30_500..30_600);
        for call in [copy, wait] {
            e.python(call, &[("step", "/w/train.py", 6)]);
        }
    });
    let ran = fix(&path, folder.path(), &[]);
    assert!(ran.stdout.is_empty() && ran.stderr.contains("needs it"), "{}", ran.stderr);
    let titles = titles(&path, folder.path(), "false");
    assert!(!titles.is_empty());
    assert!(
        titles.iter().all(|title| title.starts_with("only if the line's other waits may go too: ")),
        "{titles:?}"
    );
}

fn titles(capture: &str, folder: &Path, class: &str) -> Vec<String> {
    let root = folder.display().to_string();
    let report = program(&[capture, "--format", "json", "--source-root", &root]).stdout;
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    let sites = report["sites"].as_array().expect("sites").iter();
    let wanted = sites.filter(|site| site["class"] == class);
    wanted.filter_map(|site| site["fix"]["title"].as_str()).map(str::to_owned).collect()
}

#[test]
fn titles_say_what_the_shown_line_does() {
    let (folder, _) = checkout();
    let titles = titles(&sample(TRAIN), folder.path(), "false");
    for wanted in [
        "copy without blocking: t.cuda(non_blocking=True)",
        "read the values in one copy: torch.stack([loss, acc, gnorm]).tolist()",
    ] {
        assert!(titles.iter().any(|title| title == wanted), "{titles:?}");
    }
}

#[test]
fn a_wait_beside_a_clock_is_not_to_be_deleted() {
    let (folder, path) = stray(|_| ());
    let timed = STEP.replace("\n\n\n", "\nimport time\n\n").replace("return y", "return time.perf_counter()");
    fs::write(folder.path().join("train.py"), timed).expect("written");
    assert_eq!(titles(&path, folder.path(), "false"), ["time with CUDA events, read after the loop"]);
}

/// A wait after the write would guard nothing.
#[test]
fn a_wait_that_guards_a_buffer_is_not_to_come_later() {
    let (folder, path) = stray(|_| ());
    fs::write(folder.path().join("train.py"), include_str!("fixes/guarded.py")).expect("written");
    let said = titles(&path, folder.path(), "true");
    assert_eq!(said, ["two buffers in turn, each with an event: then it seldom waits"]);
}

#[test]
fn reviews_get_the_same_edits() {
    let (folder, _) = checkout();
    let root = folder.path().display().to_string();
    let render = |format: &str| {
        program(&[&*sample(TRAIN), "--format", format, "--source-root", &root, "--repository", &root]).stdout
    };
    let markdown = render("markdown");
    assert!(
        markdown
            .contains("`train_mlp.py`, line 19:\n\n```suggestion\n    t = t.cuda(non_blocking=True)\n```\n")
    );
    assert!(markdown.contains("`train_mlp.py`, line 31:\n\n```suggestion\n```\n"), "a line that goes");
    let log: serde_json::Value = serde_json::from_str(&render("sarif")).expect("JSON");
    let fixes: Vec<_> = log["runs"][0]["results"].as_array().expect("results").iter().collect();
    let fixes: Vec<_> =
        fixes.iter().filter_map(|result| result["fixes"][0]["artifactChanges"][0].as_object()).collect();
    assert_eq!(fixes.len(), 3);
    let uris: Vec<_> = fixes.iter().map(|change| &change["artifactLocation"]["uri"]).collect();
    assert_eq!(uris, ["train_mlp.py"; 3]);
    let deleted = fixes.iter().find(|change| change["replacements"][0]["insertedContent"]["text"] == "");
    assert_eq!(deleted.expect("the deletion")["replacements"][0]["deletedRegion"]["startLine"], 31);
}
