//! Tables of ranks: written apart, merged in any order and any number of steps.

use super::*;
use crate::export::folder::{GROUP, write};
use polars::prelude::{DataType, NamedFrom, Series};
use sync_report::frame::parquet;

/// A folder of tables per rank, in a folder made with the first, as with `srun`.
fn tables(folder: &Path, ranks: usize) -> Vec<PathBuf> {
    world(folder, ranks, 2);
    let write = |rank: usize| {
        let to = folder.join("parts").join(format!("rank{rank}"));
        let from = folder.join(format!("rank_{rank}.sqlite"));
        let ran = program(&[
            from.as_os_str(),
            "--format".as_ref(),
            "parquet".as_ref(),
            "-o".as_ref(),
            to.as_os_str(),
        ]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        to
    };
    (0..ranks).map(write).collect()
}

fn merged<P: AsRef<Path>>(folders: &[P], more: &[&str]) -> Ran {
    let folders = folders.iter().map(|folder| folder.as_ref().display().to_string());
    let words: Vec<String> =
        ["merge".to_owned()].into_iter().chain(folders).chain(more.iter().map(|w| (*w).to_owned())).collect();
    program(&words)
}

#[test]
fn merging_is_separate_from_reading() {
    let folder = tempfile::tempdir().expect("a folder");
    let all = tables(folder.path(), 4);
    let [mut direct, mut apart] = [report(folder.path()), merged(&all, &["--format", "json"]).good().json()];
    for report in [&mut direct, &mut apart] {
        // Ids are those of a report's own sites.
        for site in report["ranks"]["sites"].as_array_mut().expect("sites") {
            site["id"] = Value::Null;
        }
        report["ranks"]["late"][0]["wait"]["id"] = Value::Null;
    }
    assert_eq!(direct["ranks"], apart["ranks"]);
    assert_eq!(direct["profiles"], apart["profiles"]);
    let named =
        |text: &str| text.contains("train.py:41 step") && text.contains("Rank 2 comes last to 10 of 10");
    for format in ["table", "markdown", "html"] {
        let text = merged(&all, &["--format", format]).stdout;
        assert!(
            named(&text.split_whitespace().collect::<Vec<_>>().join(" ").replace('\\', "")),
            "{format}: {text}"
        );
    }
}

#[test]
fn merging_is_associative() {
    let folder = tempfile::tempdir().expect("a folder");
    let all = tables(folder.path(), 4);
    let at = |name: &str| folder.path().join(name);
    let into = |folders: &[&PathBuf], name: &str| {
        let ran = merged(folders, &["--format", "parquet", "-o", &at(name).display().to_string()]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        at(name)
    };
    let once = into(&[&all[0], &all[1], &all[2], &all[3]], "once");
    let (odd, even) = (into(&[&all[3], &all[1]], "odd"), into(&[&all[2], &all[0]], "even"));
    let twice = into(&[&odd, &even], "twice");
    for name in ["ranks.parquet", "sites.parquet", "collectives.parquet"] {
        assert!(
            fs::read(once.join(name)).expect("a table") == fs::read(twice.join(name)).expect("a table"),
            "{name}"
        );
    }
    let said = merged(&[&all[3], &all[0], &all[2], &all[1]], &["--format", "json"]).stdout;
    assert_eq!(said, merged(&[&twice], &["--format", "json"]).stdout);
    assert_eq!(said, merged(&[&even, &odd], &["--format", "json"]).stdout);
    let parent = tempfile::tempdir().expect("a folder");
    for (to, from) in ["a", "b", "c", "d"].iter().zip(&all) {
        fs::rename(from, parent.path().join(to)).expect("a new place");
    }
    assert_eq!(said, merged(&[parent.path()], &["--format", "json"]).stdout, "a folder of results");
}

#[test]
fn bad_results_get_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let all = tables(folder.path(), 3);
    merged(&[&all[0], &all[1], &all[0]], &[]).refused("give each result once");
    fs::write(all[1].join("sites.parquet"), b"PAR1").expect("a damaged table");
    let ran = merged(&all, &["--format", "json"]);
    assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1), "{}", ran.stderr);
    assert!(ran.stderr.contains("left out") && ran.stderr.contains("sites.parquet"), "{}", ran.stderr);
    let found = ran.json();
    assert_eq!(found["ranks"]["missing"], serde_json::json!([1]));
    let ran = merged(&[folder.path().join("nowhere")], &[]);
    assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1), "{}", ran.stderr);
    let empty = tempfile::tempdir().expect("a folder");
    merged(&[empty.path()], &[]).refused("");
}

#[test]
fn damaged_tables_never_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    let all = tables(folder.path(), 2);
    for table in ["ranks", "sites", "collectives"] {
        let file = all[1].join(format!("{table}.parquet"));
        let whole = fs::read(&file).expect("a table");
        // Most of what can go wrong is in the footer, at the end.
        for at in (0..12).map(|i| i * whole.len() / 12).chain((1..14).map(|i| whole.len() - 23 * i)) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x15;
            fs::write(&file, &bytes).expect("a changed table");
            let ran = merged(&all, &["--format", "json", "-q"]);
            assert!(matches!(ran.code, 0 | 2), "{table}, byte {at}: {}", ran.stderr);
        }
        fs::write(&file, &whole).expect("the table");
    }
}

/// Tables rewritten by another program: types that polars cannot read are refused first.
#[test]
fn columns_of_foreign_types_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let all = tables(folder.path(), 1);
    for table in ["ranks", "sites", "collectives"] {
        let file = all[0].join(format!("{table}.parquet"));
        let whole = fs::read(&file).expect("a table");
        let rows = parquet::read(&file, None).expect("rows");
        let bytes: Vec<&[u8]> = vec![b"x"; rows.height()];
        let pids = rows.column("pid").expect("a column").cast(&DataType::UInt64).expect("numbers");
        for column in [pids, Series::new("more".into(), bytes).into()] {
            let mut changed = rows.clone();
            let name = column.name().to_string();
            changed.with_column(column).expect("a column of one length");
            write(&mut changed, &file, GROUP);
            let to = folder.path().join("merged");
            let ran = merged(&all, &["--format", "parquet", "-o", &to.display().to_string()]);
            ran.refused(&format!(
                "{table}.parquet: is no table of sync-report (its column `{name}` is of type"
            ));
        }
        fs::write(&file, &whole).expect("the table");
    }
}
