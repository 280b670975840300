//! Folders of parquet files say what the SQLite export of the same report says.

use crate::cli::program;
use crate::export::{Export, Schema, folder};
use crate::look::{self, options};
use crate::{hostile, schemas};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use sync_report::analysis::Options;
use sync_report::profile::database::{Cells, Database, Reading};

/// Few rows a group, so that a table has many.
const SMALL: usize = 3;

fn report(path: &Path, threads: usize) -> String {
    look::everything(&look::report_on(path, &Options { threads, ..options() }))
}

#[test]
fn every_version_says_the_same_in_both() {
    for schema in Schema::ALL {
        let (_home, file, folder) = schemas::program(schema).write_both(SMALL);
        assert_eq!(report(&folder, 1), report(&file, 1), "{schema:?}");
    }
}

#[test]
fn samples_say_the_same_on_any_number_of_threads() {
    for name in ["train_mlp_shapes", "patterns", "train_mlp_python_sampling"] {
        let file = PathBuf::from(crate::cli::sample(name));
        let expected = report(&file, 2);
        for (group, threads) in [(folder::GROUP, 1), (folder::GROUP, 3), (folder::LARGE, 2)] {
            let home = tempfile::tempdir().expect("a folder");
            let folder = home.path().join("run_pqtdir");
            folder::to_folder(&file, &folder, group);
            assert_eq!(report(&folder, threads), expected, "{name} on {threads} threads");
        }
    }
}

#[test]
fn missing_parts_and_nonsense_say_the_same() {
    let schema = Schema::V2025_3;
    let without = |table: &str, column: &str| {
        let mut e = schemas::program(schema);
        e.all_tables().drop_column(table, column);
        e
    };
    let mut cases: Vec<Export> = [
        ("CUPTI_ACTIVITY_KIND_RUNTIME", "correlationId"),
        ("CUPTI_ACTIVITY_KIND_MEMCPY", "srcKind"),
        ("NVTX_EVENTS", "end"),
        ("CUDA_CALLCHAINS", "symbol"),
    ]
    .map(|(table, column)| without(table, column))
    .into();
    for table in ["NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_KERNEL", "PROCESSES"] {
        let mut e = schemas::program(schema);
        e.drop_table(table);
        cases.push(e);
    }
    for e in cases {
        let (_home, file, folder) = e.write_both(SMALL);
        assert_eq!(report(&folder, 1), report(&file, 1));
    }
    let home = tempfile::tempdir().expect("a folder");
    for (name, file) in hostile::odd_exports(home.path()) {
        let folder = PathBuf::from(format!("{}_pqtdir", file.with_extension("").display()));
        folder::to_folder(&file, &folder, SMALL);
        let (a, b) = (program(&[&file]), program(&[&folder]));
        // The advised export keeps the type of each.
        let named = |text: &str| {
            let text = text.replace(&*folder.to_string_lossy(), &file.to_string_lossy());
            text.replace("--type parquetdir", "--type sqlite")
        };
        // A value of the wrong type is NULL in a column of one type.
        if name != "values of the wrong type" {
            assert_eq!((b.code, named(&b.stdout)), (a.code, a.stdout), "{name}");
        }
        assert!(matches!(b.code, 0 | 2), "{name}: {}", b.stderr);
    }
}

/// A table of every type, as it is read from a file and from a folder: rows, NULLs, numbers beyond the signed ones, bytes
/// that are no UTF-8; in more than one part, on any number of threads.
#[test]
fn rows_are_the_same_by_either_reader() {
    const COLUMNS: [&str; 6] = ["id", "globalTid", "gridX", "text", "missing", "rowid"];
    let home = tempfile::tempdir().expect("a folder");
    let file = hostile::good(home.path());
    let db = rusqlite::Connection::open(&file).expect("an export");
    db.execute_batch(
        "CREATE TABLE wide (id INTEGER, globalTid INTEGER, gridX INTEGER, text TEXT);
         INSERT INTO wide WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 299999)
           SELECT i / 3, CASE i % 7 WHEN 0 THEN NULL WHEN 1 THEN -1 - i ELSE 281474976710656 + i END,
             CASE i % 5 WHEN 0 THEN NULL ELSE -i END,
             CASE i % 4 WHEN 0 THEN NULL WHEN 1 THEN CAST(x'ea00ff' AS TEXT) ELSE 'range ' || (i % 97) END FROM n;
         CREATE INDEX by_id ON wide(id)",
    )
    .expect("a table");
    drop(db);
    let folders = [("small", folder::GROUP), ("large", folder::LARGE)].map(|(name, group)| {
        let folder = home.path().join(name);
        folder::to_folder(&file, &folder, group);
        folder
    });
    let open = |path: &Path, threads| {
        Database::open(path, Reading { threads, ..Reading::default() }).expect("an export")
    };
    let seen = |row: &Cells| -> Vec<(Option<i64>, Option<Vec<u8>>)> {
        (0..COLUMNS.len()).map(|i| (row.int(i), row.bytes(i).map(<[u8]>::to_vec))).collect()
    };
    let keys: Vec<i64> = (0..9000).map(|i| (i * 7919) % 100_100 - 50).chain([5, 5, i64::MAX]).collect();
    let found = |db: &Database, key: &str| {
        let found = |out: &mut Vec<_>, k: usize, row: &Cells| out.push((k, seen(row)));
        db.look_up("wide", &COLUMNS, (key, 2), &keys, found, Vec::extend).expect("rows")
    };
    let of_file = open(&file, 1);
    let expected = of_file.scan("wide", &COLUMNS, |row| Some(seen(row))).expect("rows");
    assert_eq!(expected.len(), 300_000);
    let by_key = ["rowid", "id"].map(|key| (key, found(&of_file, key)));
    assert!(by_key.iter().all(|(_, found)| found.len() > 1000));
    for (folder, threads) in folders.iter().flat_map(|folder| [(folder, 1), (folder, 4)]) {
        let db = open(folder, threads);
        assert!(db.scan("wide", &COLUMNS, |row| Some(seen(row))).expect("rows") == expected, "{folder:?}");
        let mut row = expected.iter();
        db.rows("wide", &COLUMNS, |r| assert_eq!(Some(&seen(r)), row.next())).expect("rows");
        assert_eq!(row.len(), 0);
        for (key, expected) in &by_key {
            assert!(db.is_indexed("wide", key) && !db.is_indexed("wide", "globalTid"));
            assert!(found(&db, key) == *expected, "{folder:?} by {key} on {threads} threads");
        }
    }
    let db = open(&promises_less(&folders[1].join("wide.parquet"), 300_000), 2);
    let said = db.scan("wide", &COLUMNS, |row| row.int(0)).expect_err("a damaged table").to_string();
    assert!(said.contains("300000 rows where 299999 are promised"), "{said}");
}

/// Makes a table's footer promise one row too few; returns the folder.
fn promises_less(table: &Path, rows: u64) -> PathBuf {
    let mut bytes = fs::read(table).expect("a table");
    let end = bytes.len() - 8;
    let length = u32::from_le_bytes(bytes[end..end + 4].try_into().expect("four bytes"));
    let footer = &mut bytes[end - length as usize..end];
    // As Thrift writes them: twice the number, seven bits a byte.
    let written =
        |rows: u64| [0, 7, 14].map(|bit| ((2 * rows) >> bit) as u8 & 0x7F | if bit < 14 { 0x80 } else { 0 });
    let places: Vec<usize> =
        (0..footer.len() - 3).filter(|&at| footer[at..at + 3] == written(rows)).collect();
    assert!(places.len() > 2, "of the file, of the group, of its columns");
    places.into_iter().for_each(|at| footer[at..at + 3].copy_from_slice(&written(rows - 1)));
    fs::write(table, bytes).expect("a changed table");
    table.parent().expect("a folder").to_owned()
}

/// One sentence each, that names what is wrong and how to export again.
#[test]
fn what_is_no_export_gets_one_sentence() {
    let home = tempfile::tempdir().expect("a folder");
    let whole = home.path().join("whole");
    folder::to_folder(&hostile::good(home.path()), &whole, SMALL);
    let copy = |name: &str, change: &dyn Fn(&Path)| {
        let to = home.path().join(name);
        fs::create_dir(&to).expect("a new folder");
        for file in fs::read_dir(&whole).expect("the tables").flatten() {
            fs::copy(file.path(), to.join(file.file_name())).expect("a copy");
        }
        change(&to);
        to
    };
    let runtime = "CUPTI_ACTIVITY_KIND_RUNTIME.parquet";
    let with = |bytes: &'static dyn Fn(Vec<u8>) -> Vec<u8>| {
        move |folder: &Path| {
            let file = folder.join(runtime);
            fs::write(&file, bytes(fs::read(&file).expect("a table"))).expect("a changed table");
        }
    };
    let again = "nsys export --type parquetdir --include-json=true --force-overwrite=true";
    for (name, change, said) in [
        (
            "empty",
            &(|folder: &Path| {
                fs::remove_dir_all(folder).and_then(|()| fs::create_dir(folder)).expect("an empty folder")
            }) as &dyn Fn(&Path),
            ["without StringIds.parquet", "nsys export --type sqlite"],
        ),
        (
            "strings",
            &|folder| fs::remove_file(folder.join("StringIds.parquet")).expect("it is there"),
            ["without StringIds.parquet", "nsys export"],
        ),
        ("no-file_pqtdir", &with(&|_| Vec::new()), [runtime, again]),
        ("half_pqtdir", &with(&|bytes| bytes[..bytes.len() / 2].to_vec()), [runtime, again]),
        ("text_pqtdir", &with(&|_| b"start,end\n1,2\n".to_vec()), [runtime, again]),
        (
            "zeros_pqtdir",
            &with(&|mut bytes| {
                bytes[4..400].fill(0);
                bytes
            }),
            [runtime, again],
        ),
        ("deep_pqtdir", &with(&|_| folder::nested(10_000)), [runtime, again]),
        (
            "rows_pqtdir",
            &|folder| folder::repeated(&folder.join(runtime), 3 << 20),
            [runtime, "3145728 rows in"],
        ),
        (
            "pipe_pqtdir",
            &|folder| {
                let pipe = Command::new("mkfifo").arg(folder.join("pipe.parquet")).status();
                assert!(pipe.expect("mkfifo runs").success());
            },
            ["pipe.parquet", "no regular file"],
        ),
    ] {
        let folder = copy(name, change);
        let ran = program(&[&folder]);
        said.into_iter().for_each(|said| ran.refused(said));
    }
    let events = copy("events", &|folder| {
        for file in fs::read_dir(folder).expect("the tables").flatten() {
            if file.file_name() != "StringIds.parquet" {
                fs::remove_file(file.path()).expect("it is there");
            }
        }
    });
    let ran = program(&[&events]);
    assert!(ran.code == 2 && ran.stderr.contains("not an Nsight Systems export"), "{}", ran.stderr);
}

/// macOS puts a file of attributes beside each file on a foreign disk.
#[test]
fn hidden_files_are_no_tables() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join("run_pqtdir");
    folder::to_folder(&hostile::good(home.path()), &folder, SMALL);
    let before = program(&[&folder]).good().stdout.clone();
    fs::write(folder.join("._StringIds.parquet"), [0, 5, 22, 7]).expect("a file");
    assert_eq!(program(&[&folder]).good().stdout, before);
}

#[test]
fn damaged_tables_never_panic() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join("run_pqtdir");
    folder::to_folder(&hostile::good(home.path()), &folder, SMALL);
    let mut state: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize % below
    };
    let (mut read, mut refused) = (0, 0);
    for table in ["CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_MEMCPY", "StringIds", "NVTX_EVENTS"] {
        let file = folder.join(format!("{table}.parquet"));
        let whole = fs::read(&file).expect("a table");
        for _ in 0..75 {
            let mut bytes = whole.clone();
            let at = random(bytes.len());
            bytes[at] = random(256) as u8;
            fs::write(&file, &bytes).expect("a changed table");
            let path = [folder.clone()];
            match std::panic::catch_unwind(|| sync_report::report::run(&path, &options()).is_ok()) {
                Ok(true) => read += 1,
                Ok(false) => refused += 1,
                Err(_) => panic!("{table}: byte {at} of {} is {}", bytes.len(), bytes[at]),
            }
        }
        fs::write(&file, &whole).expect("the table");
    }
    assert!(read > 0 && refused > 0, "{read} read, {refused} refused");
}
