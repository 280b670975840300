//! Sources that are read: the current repository's and installed packages', nothing else that a capture names.

use super::*;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

const SECRET: &str = "hunter2";

/// A repository with the program in it, and a folder of it to be in.
fn repository() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let within = folder.path().join("docs/deep");
    fs::create_dir_all(&within).expect("folders");
    fs::create_dir(folder.path().join(".git")).expect("a folder");
    fs::write(folder.path().join("train_mlp.py"), program_text()).expect("the program");
    (folder, within)
}

fn program_text() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/sample-profiles/programs/train_mlp.py");
    fs::read_to_string(path).expect("the program")
}

fn within(folder: &Path, arguments: &[&str]) -> Ran {
    ran(command().current_dir(folder).args(arguments))
}

fn sites(report: &Value, class: &str) -> usize {
    report["sites"].as_array().map_or(0, |all| all.iter().filter(|site| site["class"] == class).count())
}

#[test]
fn the_repository_that_one_is_in_has_the_sources() {
    let (_kept, folder) = repository();
    let capture = sample("train_mlp");
    let classes = |more: &[&str]| {
        let report = within(&folder, &[&[&*capture, "--format", "json"], more].concat()).json();
        [sites(&report, "true"), sites(&report, "unknown")]
    };
    assert_eq!(classes(&[]), [1, 0]);
    assert_eq!(classes(&["--no-source"]), [0, 2]);
    let elsewhere = tempfile::tempdir().expect("a folder");
    let report = within(elsewhere.path(), &[&capture, "--format", "json"]).json();
    assert_eq!(sites(&report, "unknown"), 2);
    let fixed = within(&folder, &["fix", &capture]);
    assert!(fixed.good().stdout.contains("+    t = t.cuda(non_blocking=True)"), "{}", fixed.stdout);
    within(elsewhere.path(), &["fix", &capture]).refused("--source-root DIR");
}

fn recorded_at(file: &Path, folder: &Path) -> String {
    let path = folder.join("capture.sqlite");
    fs::copy(sample("train_mlp"), &path).expect("a copy");
    let db = rusqlite::Connection::open(&path).expect("a database");
    let named = file.display().to_string();
    db.execute("UPDATE StringIds SET value = ?1 WHERE value = '/workspace/train_mlp.py'", [named])
        .expect("a name");
    path.display().to_string()
}

#[test]
fn what_a_capture_names_elsewhere_is_not_read_unasked() {
    let (folder, elsewhere) =
        (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let file = folder.path().join("settings.py");
    fs::write(&file, program_text().replace("out = model(x)", &format!("out = model(x)  # {SECRET}")))
        .expect("a file");
    let capture = recorded_at(&file, folder.path());
    for format in ["table", "json", "markdown", "html", "sarif"] {
        let shown = |more: &[&str]| {
            within(elsewhere.path(), &[&[&*capture, "--format", format], more].concat())
                .stdout
                .contains(SECRET)
        };
        assert!(!shown(&[]), "{format}");
    }
    let json =
        |more: &[&str]| within(elsewhere.path(), &[&[&*capture, "--format", "json"], more].concat()).json();
    assert_eq!([sites(&json(&[]), "true"), sites(&json(&["--recorded-sources"]), "true")], [0, 1]);
    // An installed package is read where it is; a path that only looks like one is not.
    let package = folder.path().join("site-packages/program.py");
    fs::create_dir(folder.path().join("site-packages")).expect("a folder");
    fs::write(&package, program_text()).expect("a file");
    let user = folder.path().display().to_string();
    let at = |path: &Path| {
        let capture = recorded_at(path, folder.path());
        sites(
            &within(elsewhere.path(), &[&*capture, "--format", "json", "--user-path", &user]).json(),
            "true",
        )
    };
    assert_eq!(at(&package), 1);
    assert_eq!(at(&folder.path().join("site-packages/../settings.py")), 0);
}
