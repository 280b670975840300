//! Files beside the export, directories that cannot be written, and reports that nsys must export first.

use super::*;
use rusqlite::Connection;
use std::fs;
use std::path::PathBuf;

const MORE: &str = "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME
    SELECT start + 100000, end + 100000, eventClass, globalTid, correlationId + 1000, nameId, returnValue, callchainId
    FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE eventClass = 0";

fn waits(path: &Path) -> u64 {
    let report = ran(command().args(["--format", "json"]).arg(path)).good().json();
    report["totals"]["waits"].as_u64().expect("a number")
}

/// An export in WAL mode, rows that were not checkpointed yet in the `-wal` beside it.
fn with_wal(folder: &Path) -> PathBuf {
    let (source, path) = (folder.join("live.sqlite"), folder.join("copy.sqlite"));
    fs::copy(hostile::good(folder), &source).expect("a copy");
    let db = Connection::open(&source).expect("the export");
    db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).expect("WAL mode");
    db.execute_batch("PRAGMA wal_autocheckpoint = 0").expect("no checkpoints");
    db.execute_batch(MORE).expect("rows");
    copy_open(&source, &path, "-wal");
    path
}

/// An export whose writer died in the middle of a transaction.
fn with_hot_journal(folder: &Path) -> PathBuf {
    let (source, path) = (folder.join("writing.sqlite"), folder.join("hot.sqlite"));
    fs::copy(hostile::good(folder), &source).expect("a copy");
    let db = Connection::open(&source).expect("the export");
    // Pages reach the file before the commit, as in a transaction larger than the cache.
    db.execute_batch(&format!("PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN; {MORE}; {MORE};"))
        .expect("rows");
    for _ in 0..8 {
        db.execute_batch("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT * FROM CUPTI_ACTIVITY_KIND_RUNTIME")
            .expect("rows");
    }
    copy_open(&source, &path, "-journal");
    let journal = state(&folder.join("hot.sqlite-journal"));
    assert!(journal.is_some_and(|s| s.0.len() > 512 && s.0[0] != 0), "the journal is hot");
    path
}

/// Copies an export, and the file of that ending beside it, while SQLite has both open.
fn copy_open(source: &Path, path: &Path, suffix: &str) {
    for suffix in ["", suffix] {
        let of = |p: &Path| format!("{}{suffix}", p.display());
        fs::copy(of(source), of(path)).expect("a copy while it is open");
    }
}

#[test]
fn rows_in_a_wal_are_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    let plain = waits(&hostile::good(folder.path()));
    let path = with_wal(folder.path());
    let wal = folder.path().join("copy.sqlite-wal");
    let before = (state(&path), state(&wal));
    assert!(waits(&path) > plain);
    assert_eq!((state(&path), state(&wal)), before, "neither is checkpointed nor deleted");
}

/// In a directory that cannot be written SQLite cannot open a WAL: leaving its rows out silently would be worse than a
/// sentence.
#[test]
#[cfg(unix)]
fn a_wal_in_a_read_only_directory_is_not_left_out_silently() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let plain = waits(&hostile::good(folder.path()));
    let path = with_wal(folder.path());
    let set =
        |mode| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).expect("permissions");
    set(0o555);
    let ran = ran(command().args(["--format", "json"]).arg(&path));
    set(0o755);
    if ran.code == 0 {
        let report = ran.json();
        assert!(report["totals"]["waits"].as_u64() > Some(plain), "its rows are missing");
    } else {
        assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1), "{}", ran.stderr);
    }
}

#[test]
fn a_hot_journal_means_an_unfinished_export() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = with_hot_journal(folder.path());
    let journal = folder.path().join("hot.sqlite-journal");
    let before = (state(&path), state(&journal));
    let ran = program(&[&path]);
    assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1), "{}", ran.stderr);
    assert!(ran.stderr.contains("unfinished"), "{}", ran.stderr);
    assert_eq!((state(&path), state(&journal)), before);
}

/// SQLite writes its journals beside the file, not beside a link to it.
#[test]
#[cfg(unix)]
fn a_link_leads_to_the_journals_of_its_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("elsewhere/deep")).expect("folders");
    let path = with_wal(folder.path());
    let whole = waits(&path);
    let links = [("absolute.sqlite", path.clone()), ("deep/relative.sqlite", "../../copy.sqlite".into())];
    for (name, target) in links {
        let link = at("elsewhere").join(name);
        std::os::unix::fs::symlink(target, &link).expect("a link");
        assert_eq!(waits(&link), whole, "{name}");
        assert_eq!(waits(&at("elsewhere/deep/../..").join("elsewhere").join(name)), whole, "{name}");
    }
    // Half of a transaction is refused through a link, too.
    let hot = with_hot_journal(folder.path());
    std::os::unix::fs::symlink(&hot, at("elsewhere/hot.sqlite")).expect("a link");
    let ran = program(&[&at("elsewhere/hot.sqlite")]);
    assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1), "{}", ran.stderr);
    assert!(ran.stderr.contains("unfinished"), "{}", ran.stderr);
}

/// An empty journal belongs to a finished transaction.
#[test]
fn an_empty_journal_is_no_matter() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = hostile::good(folder.path());
    let plain = waits(&path);
    for suffix in ["-journal", "-wal"] {
        fs::write(format!("{}{suffix}", path.display()), b"").expect("an empty file");
    }
    assert_eq!(waits(&path), plain);
}

#[test]
#[cfg(unix)]
fn a_read_only_directory_is_enough() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let path = hostile::good(folder.path());
    let plain = waits(&path);
    let set = |p: &Path, mode| fs::set_permissions(p, fs::Permissions::from_mode(mode)).expect("permissions");
    set(&path, 0o444);
    set(folder.path(), 0o555);
    let seen = waits(&path);
    set(folder.path(), 0o755);
    assert_eq!(seen, plain);
    assert_eq!(names(folder.path()), ["good.sqlite"], "nothing is left beside it");
}

#[cfg(unix)]
mod reports {
    //! `.nsys-rep` arguments, with an `nsys` on PATH that copies a prepared export.

    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    struct Workshop {
        folder: tempfile::TempDir,
        report: PathBuf,
    }

    /// A report, and an `nsys` that logs its calls; `body` is the rest of the script.
    fn workshop(body: &str) -> Workshop {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for dir in ["bin", "run"] {
            fs::create_dir(at(dir)).expect("a folder");
        }
        hostile::good(folder.path());
        let nsys = at("bin").join("nsys");
        let log = at("log");
        let script = format!("#!/bin/sh\necho \"$@\" >> '{}'\n{body}\n", log.display());
        fs::write(&nsys, script).expect("a script");
        fs::set_permissions(&nsys, fs::Permissions::from_mode(0o755)).expect("permissions");
        let report = at("run").join("my run.nsys-rep");
        fs::write(&report, b"NVIDIA Tegra Profiler Report 2025@3@2@367-253235705296v0\0\0\0")
            .expect("a report");
        Workshop { folder, report }
    }

    const COPIES: &str = r#"while [ $# -gt 1 ]; do [ "$1" = -o ] && out=$2; shift; done; cp "$(dirname "$0")/../good.sqlite" "$out""#;

    impl Workshop {
        fn run(&self, arguments: &[&str]) -> Ran {
            let path = format!("{}:/usr/bin:/bin", self.folder.path().join("bin").display());
            ran(command().env("PATH", path).arg(&self.report).args(arguments))
        }

        fn calls(&self) -> usize {
            fs::read_to_string(self.folder.path().join("log")).map_or(0, |log| log.lines().count())
        }
    }

    #[test]
    fn a_report_is_exported_once_and_kept_beside_it() {
        let w = workshop(COPIES);
        let first = w.run(&["--format", "csv"]);
        assert_eq!(first.code, 0, "{}", first.stderr);
        assert_eq!(first.stderr.lines().count(), 1, "what takes long is announced: {}", first.stderr);
        assert!(first.stdout.lines().count() > 1);
        let second = w.run(&["--format", "csv"]);
        assert_eq!((second.code, second.stdout == first.stdout, w.calls()), (0, true, 1));
        assert_eq!(second.stderr, "");
        let log = fs::read_to_string(w.folder.path().join("log")).expect("the log");
        assert!(log.contains("--include-json=true") && log.contains("--type sqlite"), "{log}");
        let left = names(&w.folder.path().join("run"));
        assert_eq!(left.len(), 2, "the report and its export: {left:?}");
        // Another report under the same name is exported anew, and the export of the old one goes.
        let mine = w.folder.path().join("run/.my run.notes.sqlite");
        fs::write(&mine, b"").expect("a file of the user's");
        fs::write(&w.report, b"NVIDIA Tegra Profiler Report 2025@3@2@367-253235705296v0 longer")
            .expect("a report");
        assert_eq!((w.run(&["-q"]).code, w.calls()), (0, 2));
        let now = names(&w.folder.path().join("run"));
        assert_eq!(now.len(), 3, "{now:?}");
        assert!(mine.exists() && left.iter().filter(|name| now.contains(name)).count() == 1, "{now:?}");
    }

    /// A link in place of the export, as somebody else may plant it in a shared folder, is not read.
    #[test]
    fn a_planted_export_is_not_trusted() {
        let w = workshop(COPIES);
        w.run(&["-q"]).good();
        let run = w.folder.path().join("run");
        let export = names(&run).into_iter().find(|name| name.starts_with('.')).expect("the export");
        fs::rename(run.join(&export), w.folder.path().join("other.sqlite")).expect("moved");
        std::os::unix::fs::symlink(w.folder.path().join("other.sqlite"), run.join(&export)).expect("a link");
        w.run(&["-q"]).good();
        assert_eq!(w.calls(), 2, "exported anew");
        assert!(!run.join(&export).is_symlink());
    }

    /// Ctrl-C, or a scheduler's signal, in the middle: nsys ends too, and nothing is left. The next run
    /// removes a kill's remains.
    #[test]
    fn an_export_that_is_cut_short_leaves_nothing() {
        let w = workshop("echo $$ > \"$(dirname \"$0\")/../pid\"; exec sleep 60");
        let run = w.folder.path().join("run");
        let path = format!("{}:/usr/bin:/bin", w.folder.path().join("bin").display());
        let mut start = command();
        let start = start.env("PATH", &path).arg("-q").arg(&w.report);
        for (signal, code, left) in [("TERM", Some(130), 1), ("KILL", None, 2)] {
            let pid = w.folder.path().join("pid");
            let _ = fs::remove_file(&pid);
            let mut child = start.stderr(Stdio::null()).spawn().expect("the program runs");
            let nsys = loop {
                let said = fs::read_to_string(&pid).unwrap_or_default();
                if said.ends_with('\n') {
                    break said.trim().to_owned();
                }
                std::thread::sleep(std::time::Duration::from_millis(5));
            };
            let kill =
                |signal: &str, pid: &str| Command::new("kill").args([&format!("-{signal}"), pid]).status();
            kill(signal, &child.id().to_string()).expect("a signal");
            assert_eq!(child.wait().expect("it ends").code(), code);
            assert_eq!(names(&run).len(), left, "{signal}: {:?}", names(&run));
            let goes_on = Path::new("/proc").join(&nsys).exists();
            assert_eq!(goes_on, signal == "KILL", "nsys after {signal}");
            kill("KILL", &nsys).expect("a signal");
        }
        let nsys = w.folder.path().join("bin/nsys");
        fs::write(&nsys, format!("#!/bin/sh\n{COPIES}\n")).expect("a script");
        w.run(&["-q"]).good();
        assert_eq!(names(&run).len(), 2, "the report and its export: {:?}", names(&run));
    }

    /// Not by the hidden export beside it.
    #[test]
    fn a_report_goes_by_its_own_name() {
        let w = workshop(COPIES);
        let shown = w.report.display().to_string();
        let json = w.run(&["-q", "--format", "json"]).json();
        assert_eq!(json["profiles"][0]["path"], *shown);
        let table = w.run(&["-q", "--wide"]).stdout;
        assert!(table.contains("my run.nsys-rep") && !table.contains(".my run."), "{table}");
        let path = format!("{}:/usr/bin:/bin", w.folder.path().join("bin").display());
        let doctor = ran(command().env("PATH", path).args(["doctor", "-q"]).arg(&w.report)).stdout;
        assert!(doctor.starts_with(&shown) && !doctor.contains(".my run."), "{doctor}");
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_left_alone() {
        let w = workshop(COPIES);
        let run = w.folder.path().join("run");
        fs::set_permissions(&run, fs::Permissions::from_mode(0o555)).expect("permissions");
        let binds = tempfile::tempdir_in(&run).is_err();
        let code = w.run(&["-q"]).code;
        fs::set_permissions(&run, fs::Permissions::from_mode(0o755)).expect("permissions");
        assert_eq!(code, 0);
        if binds {
            assert_eq!(names(&run), ["my run.nsys-rep"]);
        }
    }

    #[test]
    fn without_nsys_one_sentence_tells_the_command() {
        let w = workshop(COPIES);
        fs::remove_file(w.folder.path().join("bin/nsys")).expect("no nsys");
        let ran = ran(command().env("PATH", w.folder.path().join("bin")).arg("-q").arg(&w.report));
        assert_eq!((ran.code, ran.stderr.lines().count(), &*ran.stdout), (2, 1, ""), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("nsys export") && ran.stderr.contains("--include-json=true"),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains("my run.nsys-rep'"), "quoted for the shell: {}", ran.stderr);
        assert_eq!(names(&w.folder.path().join("run")), ["my run.nsys-rep"]);
    }

    #[test]
    fn an_nsys_that_fails_is_quoted() {
        let w = workshop("echo 'cannot open this report' >&2; exit 1");
        let ran = w.run(&["-q"]);
        assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1), "{}", ran.stderr);
        assert!(ran.stderr.contains("cannot open this report"), "{}", ran.stderr);
        assert_eq!(names(&w.folder.path().join("run")), ["my run.nsys-rep"], "no half export is left");
        let silent = workshop("exit 0").run(&["-q"]);
        assert_eq!((silent.code, silent.stderr.contains("wrote no file")), (2, true), "{}", silent.stderr);
    }

    /// nsys up to 2024.2 does not know `--include-json`: tried again without.
    #[test]
    fn an_old_nsys_is_asked_without_payloads() {
        let old = r#"case "$*" in *include-json*) echo "unrecognised option '--include-json=true'" >&2; exit 1;; esac"#;
        let w = workshop(&format!("{old}\n{COPIES}"));
        let ran = w.run(&["-q"]);
        assert_eq!((ran.code, w.calls()), (0, 2), "{}", ran.stderr);
    }

    #[test]
    fn a_false_report_is_refused() {
        let w = workshop(COPIES);
        fs::write(&w.report, b"step,loss\n").expect("a file");
        let ran = w.run(&["-q"]);
        assert_eq!((ran.code, ran.stderr.lines().count(), w.calls()), (2, 1, 0), "{}", ran.stderr);
        fs::remove_file(&w.report).expect("no report");
        let ran = w.run(&["-q"]);
        assert_eq!((ran.code, ran.stderr.contains("no such file")), (2, true), "{}", ran.stderr);
    }
}
