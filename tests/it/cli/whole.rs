//! Written files are whole or as before; a closed pipe changes no verdict, and few threads no report.

use super::*;
use crate::export::{GPU0, empty};
use rusqlite::Connection;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::ExitStatus;

const PROGRAM: &str = env!("CARGO_BIN_EXE_sync-report");

/// Exit code of a run whose reader is gone before the first byte.
fn unread(arguments: &[&str]) -> Option<i32> {
    let mut child = command()
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    drop(child.stdout.take());
    child.wait().expect("it ends").code()
}

#[test]
fn a_gate_keeps_its_verdict_behind_a_closed_pipe() {
    let capture = sample("train_mlp");
    for format in ["table", "json", "markdown", "github", "sarif", "junit"] {
        let broken = ["check", &capture, "--fail-on", "any-false", "--format", format];
        assert_eq!(unread(&broken), Some(1), "{format}");
        let kept = ["check", &capture, "--fail-on", "blocked>10s", "--format", format];
        assert_eq!(unread(&kept), Some(0), "{format}");
    }
}

#[test]
fn a_report_behind_a_closed_pipe_is_success_unless_the_capture_is_damaged() {
    assert_eq!(unread(&[&sample("train_mlp"), "--format", "json"]), Some(0));
    assert_eq!(unread(&["diff", &sample("fixed/before"), &sample("fixed/after")]), Some(0));
    let folder = tempfile::tempdir().expect("a folder");
    let (mut e, t) = empty();
    e.launch(t, 0..5_000, GPU0, 7_000..50_000, "k");
    e.device_sync(t, 10_000..i64::MAX / 2, 0);
    let path = folder.path().join("damaged.sqlite");
    e.write(&path);
    assert_eq!(unread(&[&path.display().to_string()]), Some(2));
}

/// Runs the program with files limited to `blocks` KiB. With a `trap` it gets an error as of a full disk,
/// else it is killed while writing.
fn limited(blocks: u32, trap: &str, arguments: &[&str]) -> (ExitStatus, String) {
    let script = format!("{trap} ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let out =
        Command::new("bash").args(["-c", &script, PROGRAM]).args(arguments).output().expect("bash runs");
    (out.status, String::from_utf8_lossy(&out.stderr).into_owned())
}

const FULL: &str = "trap '' XFSZ;";
const KILLED: &str = "";

#[test]
fn a_full_disk_or_a_kill_leaves_the_old_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.json");
    let named = file.display().to_string();
    for old in [None, Some("the report of yesterday")] {
        old.iter().for_each(|text| fs::write(&file, text).expect("a file"));
        let now = || fs::read_to_string(&file).ok();
        let arguments = [&*sample("train_mlp"), "-q", "--format", "json", "-o", &named];
        let (ended, said) = limited(4, FULL, &arguments);
        assert_eq!((ended.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains("report.json: cannot be written"), "{said}");
        assert_eq!(now().as_deref(), old);
        assert_eq!(names(folder.path()).len(), usize::from(old.is_some()), "nothing is left beside it");
        let (ended, _) = limited(4, KILLED, &arguments);
        assert_eq!((ended.code(), now().as_deref()), (None, old));
        names(folder.path()).iter().filter(|name| name.starts_with(".sync-report-")).for_each(|name| {
            fs::remove_file(folder.path().join(name)).expect("what the kill left");
        });
    }
}

#[test]
fn links_modes_and_other_names_stay() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("real.json"), "old").expect("a file");
    fs::set_permissions(at("real.json"), fs::Permissions::from_mode(0o640)).expect("a mode");
    fs::hard_link(at("real.json"), at("twin.json")).expect("a hard link");
    symlink("real.json", at("link.json")).expect("a link");
    let ran =
        program(&[&sample("train_mlp"), "--format", "json", "-o", &at("link.json").display().to_string()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("hard links"), "{}", ran.stderr);
    assert!(at("link.json").is_symlink());
    let meta = fs::metadata(at("real.json")).expect("the file");
    assert_eq!((meta.mode() & 0o777, meta.len() > 3), (0o640, true));
    assert_eq!(fs::read_to_string(at("twin.json")).expect("the other name"), "old");
    // A dangling link: its target is created.
    symlink("new.json", at("dangling.json")).expect("a link");
    let to = at("dangling.json").display().to_string();
    program(&[&sample("train_mlp"), "--format", "json", "-o", &to]).good();
    assert!(at("dangling.json").is_symlink() && at("new.json").is_file());
    // A device is written as it is.
    program(&[&*sample("train_mlp"), "-o", "/dev/null"]).good();
}

fn of_two_files(folder: &Path) -> PathBuf {
    let path = folder.join("two.sqlite");
    fs::copy(sample("train_mlp"), &path).expect("a copy");
    let db = Connection::open(&path).expect("a database");
    db.execute_batch("BEGIN; INSERT INTO StringIds SELECT max(id) + 1, '/workspace/zz.py' FROM StringIds")
        .expect("a name");
    let id: i64 = db.query_row("SELECT max(id) FROM StringIds", [], |row| row.get(0)).expect("its id");
    let rows: Vec<(i64, String)> = db
        .prepare("SELECT rowid, jsonText FROM NVTX_EVENTS WHERE eventType = 34 AND jsonText IS NOT NULL")
        .and_then(|mut q| q.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .expect("payloads");
    for (row, text) in rows {
        let mut payload: Value = serde_json::from_str(&text).expect("JSON");
        for frames in payload.as_object_mut().expect("an object").values_mut() {
            for frame in frames["Frames"].as_array_mut().into_iter().flatten().filter(|f| f["Line"] == 31) {
                frame["File"] = id.into();
            }
        }
        db.execute(
            "UPDATE NVTX_EVENTS SET jsonText = ?, binaryData = NULL WHERE rowid = ?",
            (payload.to_string(), row),
        )
        .expect("an update");
    }
    db.execute_batch("COMMIT").expect("written");
    path
}

/// Two files are edited; the second does not fit the disk.
#[test]
fn edits_of_several_files_are_written_all_or_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let capture = of_two_files(folder.path()).display().to_string();
    let root = folder.path().join("src");
    fs::create_dir(&root).expect("a folder");
    let text =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/sample-profiles/programs/train_mlp.py"));
    let text = text.expect("the program");
    let long = format!("{text}\n{}", "# a comment that goes on and on\n".repeat(8_000));
    fs::write(root.join("train_mlp.py"), &text).expect("a file");
    fs::write(root.join("zz.py"), &long).expect("a file");
    let named = root.display().to_string();
    let arguments = ["fix", &*capture, "--source-root", &named, "--repository", &named, "--apply"];
    let (ended, said) = limited(64, FULL, &arguments);
    assert_eq!(ended.code(), Some(2), "{said}");
    assert!(said.contains("zz.py: cannot be written"), "{said}");
    assert_eq!(fs::read_to_string(root.join("train_mlp.py")).expect("the file"), text);
    assert_eq!(fs::read_to_string(root.join("zz.py")).expect("the file"), long);
    assert_eq!(names(&root), ["train_mlp.py", "zz.py"]);
    program(&arguments).good();
    assert!(fs::read_to_string(root.join("zz.py")).expect("the file") != long);
    assert!(fs::read_to_string(root.join("train_mlp.py")).expect("the file") != text);
}

/// A limit on processes: with three threads beside the first the report is the same, without it is one sentence.
#[test]
fn too_few_threads_are_a_sentence_and_few_make_the_same_report() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("a folder for all");
    let copy = |from: &str, name: &str| {
        let path = folder.path().join(name);
        fs::copy(from, &path).expect("a copy");
        path
    };
    let (program, capture) = (copy(PROGRAM, "program"), copy(&sample("train_mlp"), "run.sqlite"));
    // No limit holds for root. A user without other processes stands in for it.
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let run = |most: &str| {
        let mut command = Command::new(if is_root { "setpriv" } else { "env" });
        if is_root {
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        }
        command.args(["prlimit", most]).arg(&program).arg(&capture).args(["--format", "json"]);
        ran(&mut command)
    };
    run("--nproc=1").refused("too few threads");
    if is_root {
        let (few, all) = (run("--nproc=4"), ran(command().arg(&capture).args(["--format", "json"])));
        assert_eq!((few.code, &few.stdout, &few.stderr), (0, &all.stdout, &all.stderr));
    }
}
