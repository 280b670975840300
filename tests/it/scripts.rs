//! The scripts for users: what they run, write and refuse.

use crate::export::{Export, GPU0, Schema, empty_of};
use crate::look;
use rusqlite::Connection;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn count(database: &Path, query: &str) -> i64 {
    let db = Connection::open(database).expect("the database opens");
    db.query_row(query, [], |row| row.get(0)).expect("one number")
}

/// Runs one of our scripts; `None` without Python.
fn python(script: &str, arguments: &[&std::ffi::OsStr]) -> Option<Output> {
    let run = Command::new("python3").arg(root().join("scripts").join(script)).args(arguments).output();
    if run.is_err() {
        eprintln!("skipped: {script} needs python3");
    }
    run.ok()
}

/// The catalogue's pairs are Python: whole with their set-ups, and a broken one is named.
#[test]
fn pairs_of_the_catalogue_are_python() {
    let listed =
        Command::new(env!("CARGO_BIN_EXE_sync-report")).args(["explain", "--format", "json"]).output();
    let listing = text(&listed.expect("it runs").stdout);
    let folder = tempfile::tempdir().expect("a folder");
    let check = |listing: &str| {
        let file = folder.path().join("listing.json");
        fs::write(&file, listing).expect("the listing");
        python("run_pairs.py", &[file.as_ref(), "--syntax".as_ref()])
    };
    let Some(whole) = check(&listing) else { return };
    assert!(whole.status.success(), "{}{}", text(&whole.stdout), text(&whole.stderr));
    for (right, wrong, told) in [
        ("loss_sum += loss.item()", "loss_sum += (loss.item()", "A01  failed"),
        ("loss_sum += loss.item()", "loss_sum += lost.item()", "nothing gives lost"),
        ("\"id\": \"A01\"", "\"id\": \"A99\"", "neither a set-up nor a reason for A99"),
    ] {
        assert!(listing.contains(right), "{right}");
        let refused = check(&listing.replacen(right, wrong, 1)).expect("it ran before");
        let said = text(&refused.stdout) + &text(&refused.stderr);
        assert!(!refused.status.success() && said.contains(told), "{told}: {said}");
    }
}

#[test]
fn an_export_can_be_repeated() {
    let folder = tempfile::tempdir().expect("a folder");
    let (input, output) =
        (root().join("sample-profiles/train_mlp_shapes.sqlite"), folder.path().join("x3.sqlite"));
    let arguments = [input.as_ref(), output.as_ref(), "3".as_ref(), "--renumber".as_ref()];
    let Some(done) = python("repeat_export.py", &arguments) else { return };
    assert!(done.status.success(), "{}", text(&done.stderr));
    for table in [
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        "CUPTI_ACTIVITY_KIND_KERNEL",
        "CUDA_CALLCHAINS",
        "SAMPLING_CALLCHAINS",
    ] {
        let query = format!("SELECT count(*) FROM {table}");
        assert_eq!(count(&output, &query), 3 * count(&input, &query), "{table}");
    }
    // One row of NVTX_EVENTS creates a domain, before the capture began.
    let nvtx = "SELECT count(*) FROM NVTX_EVENTS";
    assert_eq!(count(&output, nvtx), 3 * (count(&input, nvtx) - 1) + 1);
    assert_eq!(
        count(&output, "SELECT count(DISTINCT text) FROM NVTX_EVENTS WHERE text LIKE 'iteration %'"),
        90
    );
    let ids = "SELECT count(*) - count(DISTINCT correlationId) FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE eventClass < 2";
    assert_eq!(count(&output, ids), 0);
    let chains = "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE callchainId NOT IN (SELECT id FROM CUDA_CALLCHAINS)";
    assert_eq!(count(&output, chains), 0);
    let joined = "SELECT count(*) FROM NVTX_EVENTS JOIN CUPTI_ACTIVITY_KIND_RUNTIME USING (start, globalTid)
                  WHERE eventType = 34 AND eventClass = 67";
    assert_eq!(count(&output, joined), 3 * count(&input, joined));

    let refused = python("repeat_export.py", &arguments).expect("Python ran before");
    assert!(!refused.status.success() && text(&refused.stderr).contains("exists"));
}

#[test]
fn exports_with_many_of_one_thing_can_be_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let kinds = [
        ("threads", 160, 1),
        ("streams", 160, 2),
        ("devices", 160, 2),
        ("open", 80, 1),
        ("unlike", 80, 1),
        ("nested", 80, 64),
        ("sites", 80, 80),
        ("turns", 80, 1),
    ];
    for (kind, waits, sites) in kinds {
        let output = folder.path().join(format!("{kind}.sqlite"));
        let arguments = [kind.as_ref(), "80".as_ref(), output.as_ref()];
        let Some(done) = python("grow_export.py", &arguments) else { return };
        assert!(done.status.success(), "{}", text(&done.stderr));
        let report = look::report_on(&output, &look::options());
        assert_eq!(report.totals.waits, waits, "{kind}");
        assert!(
            report.sites.len() >= sites && report.sites.len() <= sites + 1,
            "{kind}: {:?}",
            look::sites(&report)
        );
    }
}

#[test]
fn exports_of_many_ranks_can_be_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("runs");
    let Some(done) = python("grow_ranks.py", &["9".as_ref(), output.as_ref()]) else { return };
    assert!(done.status.success(), "{}", text(&done.stderr));
    let paths: Vec<PathBuf> = (0..9).map(|rank| output.join(format!("rank_{rank}.sqlite"))).collect();
    let report = sync_report::report::run(&paths, &look::options()).expect("a report");
    let ranks = report.ranks.expect("several ranks");
    let late: Vec<_> = ranks.late.iter().map(|late| (late.rank, late.times, late.of)).collect();
    assert_eq!((ranks.list.len(), late), (9, vec![(3, 30, 30)]));
    let wait = ranks.late[0].wait.as_ref().map(|wait| wait.place.as_str());
    assert_eq!(wait, Some("train.py:41 train"));
}

#[test]
fn an_export_can_be_made_fit_to_share() {
    let mut e = Export::new(Schema::V2025_3);
    let (t, other) = (e.thread(4242, 4242), e.thread(77, 77));
    e.process(77, "/usr/bin/secret-daemon").name_thread(other, "secret-thread").name_thread(t, "python3");
    let wait = e.sync(t, "cudaStreamSynchronize", 10..20, GPU0);
    e.python(wait, &[("step", "/home/jane/work/train.py", 3)]);
    e.native(wait, &[("at::native::item(at::Tensor const&)", "/home/jane/venv/libtorch_cpu.so")]);
    e.capture_meta("PROCESS_0:ENVIRONMENT:API_KEY", "abc")
        .export_meta("EXPORT_USER", "jane")
        .export_meta("EXPORT_HOST", "gpu-box-7");
    e.string("HF_TOKEN=abc\0HOSTNAME=gpu-box-7");
    e.nvtx(t, 0..30, "on gpu-box-7").command(&["python", "/home/jane/work/train.py"]);
    let (folder, input) = e.write_temp();
    let output = folder.path().join("shared.sqlite");
    let rename = "/home/jane/work=/w";
    let Some(done) = python(
        "sanitize_export.py",
        &[input.as_ref(), output.as_ref(), "--rename".as_ref(), rename.as_ref()],
    ) else {
        return;
    };
    assert!(done.status.success(), "{}", text(&done.stderr));
    let bytes = fs::read(&output).expect("the output");
    let holds = |word: &str| bytes.windows(word.len()).any(|window| window == word.as_bytes());
    for word in ["jane", "gpu-box-7", "API_KEY", "HF_TOKEN", "secret"] {
        assert!(!holds(word), "{word}");
    }
    for word in ["/w/train.py", "/home/user/venv/libtorch_cpu.so", "at::native::item", "step", "on host"] {
        assert!(holds(word), "{word}");
    }
}

#[test]
fn what_looks_like_a_credential_is_reported_but_not_shown() {
    let (mut e, t) = empty_of(Schema::V2025_3);
    e.nvtx(t, 0..1, "api_key=hunter2");
    let (folder, input) = e.write_temp();
    let Some(done) =
        python("sanitize_export.py", &[input.as_ref(), folder.path().join("out.sqlite").as_ref()])
    else {
        return;
    };
    assert_eq!(done.status.code(), Some(1));
    let message = text(&done.stderr);
    assert!(message.contains("NVTX_EVENTS.text: 1 rows") && !message.contains("hunter2"), "{message}");
}
