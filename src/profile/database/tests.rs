//! Both readers read the same: tables of every kind that SQLite can hold, and damaged files.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// A value of a cell, as a literal of SQL.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => any::<i64>().prop_map(|v| v.to_string()),
        4 => (0u32..64, any::<bool>()).prop_map(|(bits, minus)| if minus { -(1i64 << bits.min(62)) } else { (1i64 << bits.min(62)) - 1 }.to_string()),
        2 => Just("NULL".to_owned()),
        1 => (-1e9..1e9).prop_map(|v: f64| format!("{v:?}")),
        2 => "[a-zé\u{1F980}]{0,12}".prop_map(|text| format!("'{text}'")),
        1 => (0usize..9000).prop_map(|length| format!("'{}'", "long ".repeat(length / 5))),
        1 => vec(any::<u8>(), 0..40).prop_map(|bytes| format!("x'{}'", bytes.iter().map(|b| format!("{b:02x}")).collect::<String>())),
    ]
}

const KINDS: [&str; 8] =
    ["INTEGER", "INT", "TEXT", "BLOB", "", "NUMERIC", "REAL", "INTEGER NOT NULL DEFAULT 7"];

#[derive(Clone, Debug)]
struct Written {
    page_size: u32,
    encoding: &'static str,
    vacuum: &'static str,
    /// Defines a key column, unless empty.
    key: &'static str,
    columns: Vec<&'static str>,
    rows: Vec<(i64, Vec<String>)>,
    /// Rows deleted again, of ten.
    deleted: u8,
    /// A column added afterwards.
    added: Option<&'static str>,
    vacuumed: bool,
}

/// A rowid, mostly near the others, and so many values.
fn row(columns: usize) -> impl Strategy<Value = (i64, Vec<String>)> {
    (prop_oneof![1 => any::<i64>(), 9 => 0i64..2000], vec(value(), columns))
}

prop_compose! {
    fn written()(columns in vec(select(&KINDS[..7]), 1..7))(
        page_size in (9u32..=16).prop_map(|bits| 1 << bits),
        encoding in select(&["UTF-8", "UTF-16le", "UTF-16be"][..]),
        vacuum in select(&["NONE", "FULL", "INCREMENTAL"][..]),
        key in select(&["", "k INTEGER PRIMARY KEY", "k INTEGER PRIMARY KEY DESC", "k INT PRIMARY KEY"][..]),
        rows in vec(row(columns.len()), 0..300),
        deleted in 0u8..8,
        added in select(&[None, Some("INTEGER"), Some("INTEGER DEFAULT 41"), Some("TEXT DEFAULT 'x'"), Some("TEXT DEFAULT 5")][..]),
        vacuumed in any::<bool>(),
        columns in Just(columns),
    ) -> Written {
        Written { page_size, encoding, vacuum, key, columns, rows, deleted, added, vacuumed }
    }
}

impl Written {
    fn write(&self, path: &Path) {
        let c = Connection::open(path).expect("a file");
        let Self { page_size, encoding, vacuum, .. } = self;
        c.execute_batch(&format!(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA page_size={page_size}; PRAGMA encoding='{encoding}'; PRAGMA auto_vacuum={vacuum};"
        ))
        .expect("set");
        let columns = self.columns.iter().enumerate().map(|(i, kind)| format!("c{i} {kind}"));
        let all: Vec<String> =
            Some(self.key.to_owned()).filter(|k| !k.is_empty()).into_iter().chain(columns).collect();
        c.execute_batch(&format!("CREATE TABLE t ({}); BEGIN;", all.join(", "))).expect("a table");
        for (rowid, values) in &self.rows {
            let names: Vec<String> = (0..values.len()).map(|i| format!("c{i}")).collect();
            c.execute_batch(&format!(
                "INSERT OR REPLACE INTO t (rowid, {}) VALUES ({rowid}, {})",
                names.join(", "),
                values.join(", ")
            ))
            .expect("a row");
        }
        c.execute_batch(&format!("DELETE FROM t WHERE abs(rowid % 10) < {}; COMMIT;", self.deleted))
            .expect("deleted");
        if let Some(kind) = self.added {
            c.execute_batch(&format!(
                "ALTER TABLE t ADD COLUMN late {kind}; INSERT INTO t (late) VALUES (5)"
            ))
            .expect("added");
        }
        if self.vacuumed {
            c.execute_batch("VACUUM").expect("vacuumed");
        }
    }

    /// All columns, one that is absent, the rowid.
    fn asked(&self) -> Vec<String> {
        let columns = (0..self.columns.len()).map(|i| format!("c{i}"));
        columns.chain(["k", "late", "absent", "rowid"].map(str::to_owned)).collect()
    }
}

type Seen = Vec<(Option<i64>, Option<Vec<u8>>)>;

fn read(path: &Path, reader: Reader, columns: &[String]) -> Result<(Vec<Seen>, Vec<Seen>), InputError> {
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let db = Database::open(path, Reading { threads: 2, reader, progress: None })?;
    let see = |row: &Cells| {
        (0..columns.len()).map(|i| (row.int(i), row.bytes(i).map(<[u8]>::to_vec))).collect::<Seen>()
    };
    // Seldom columns that are at hand hold the same bytes.
    let see_both = |out: &mut Vec<Seen>, row: &Cells| {
        let at_hand = |i: usize| row.at_hand(i).is_none_or(|bytes| bytes == row.bytes(i));
        assert!((0..columns.len()).all(at_hand));
        out.push(see(row));
    };
    let all: Vec<Seen> = db.gather("t", &columns, &columns, see_both, Vec::extend)?;
    let ids: Vec<i64> = all.iter().filter_map(|row| row.last()?.0).chain([0, 1, -1, i64::MAX]).collect();
    let row = |out: &mut Vec<Seen>, _, row: &Cells| out.push(see(row));
    Ok((all, db.look_up("t", &columns, ("rowid", 1), &ids, row, Vec::extend)?))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Types, sizes, overflow pages, deleted rows, freed pages, encodings, keys and added columns.
    #[test]
    fn both_readers_read_the_same(written in written()) {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("t.sqlite");
        written.write(&path);
        let asked = written.asked();
        let pages = read(&path, Reader::Pages, &asked).expect("read by pages");
        prop_assert_eq!(&pages, &read(&path, Reader::Sqlite, &asked).expect("read by SQLite"));
        // The pages are read unless SQLite has to.
        let (db, columns) = (Database::open(&path, Reading::default()).expect("opens"), asked.iter().map(String::as_str).collect::<Vec<_>>());
        let Store::File(file) = &db.store else { unreachable!("a file") };
        let table = file.pages.as_ref().and_then(|pages| pages.table(&file.main(), "t", &columns, &[]));
        let left = written.encoding != "UTF-8" || written.columns.contains(&"REAL") || written.added.is_some_and(|added| added.starts_with("TEXT DEFAULT"));
        prop_assert_eq!(table.is_some(), !left);
        if let Some(table) = table {
            let count = |n: &mut usize, _: &Cells| *n += 1;
            let rows = table.parts().and_then(|parts| db.read(&parts, count, |all: &mut usize, part| *all += part));
            prop_assert_eq!(rows.expect("sound pages"), pages.0.len());
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever a page says, both readers read the same rows or refuse the file.
    #[test]
    fn both_readers_agree_on_damaged_pages(written in written(), bytes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..20), cut in any::<Option<prop::sample::Index>>()) {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("t.sqlite");
        written.write(&path);
        let mut file = std::fs::read(&path).expect("its bytes");
        for (at, byte) in bytes {
            let at = 100 + at.index(file.len() - 100);
            file[at] = byte;
        }
        let kept = cut.map_or(file.len(), |cut| cut.index(file.len()) + 1);
        std::fs::write(&path, &file[..kept]).expect("written");
        let [pages, sqlite] = [Reader::Pages, Reader::Sqlite].map(|reader| read(&path, reader, &written.asked()).ok());
        prop_assert_eq!(pages, sqlite);
    }
}

/// Pages that name each other as children, or one that no file has: SQLite says what is wrong.
#[test]
fn a_child_that_is_none_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("t.sqlite");
    let c = Connection::open(&path).expect("a file");
    c.execute_batch("PRAGMA page_size=512; CREATE TABLE t (c0 INTEGER);").expect("a table");
    c.execute_batch("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) INSERT INTO t SELECT i FROM n").expect("rows");
    let root: u32 = c.query_row("SELECT rootpage FROM sqlite_master", [], |r| r.get(0)).expect("its root");
    drop(c);
    let mut file = std::fs::read(&path).expect("its bytes");
    let at = (root as usize - 1) * 512;
    assert_eq!(file[at], 5, "an interior page");
    let first = at + usize::from(u16::from_be_bytes([file[at + 12], file[at + 13]]));
    for child in [root, 0, u32::MAX] {
        file[first..first + 4].copy_from_slice(&child.to_be_bytes());
        std::fs::write(&path, &file).expect("written");
        assert!(read(&path, Reader::Pages, &["c0".into(), "rowid".into()]).is_err(), "{child}");
    }
}

/// The error names an export that another program cuts while it is read.
#[test]
fn a_file_that_shrinks_is_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("t.sqlite");
    let c = Connection::open(&path).expect("a file");
    c.execute_batch("CREATE TABLE t (c0 INTEGER)").expect("a table");
    c.execute_batch("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000) INSERT INTO t SELECT i FROM n").expect("rows");
    drop(c);
    let db = Database::open(&path, Reading::default()).expect("opens");
    std::fs::File::options().write(true).open(&path).expect("a file").set_len(8192).expect("cut");
    let read = db.scan("t", &["c0"], |_| Some(()));
    let said = read.expect_err("most rows are gone").to_string();
    assert!(said.contains("t.sqlite") && said.contains("nsys export"), "{said}");
}

/// Rows that no sound page has: both give SQLite's answer.
#[test]
fn both_readers_agree_on_odd_rows() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("t.sqlite");
    let c = Connection::open(&path).expect("a file");
    c.execute_batch(
        "PRAGMA page_size=512; CREATE TABLE t (c0 TEXT); INSERT INTO t VALUES ('one'), ('two'), ('six')",
    )
    .expect("rows");
    drop(c);
    let sound = std::fs::read(&path).expect("its bytes");
    // The second page: a header of 8 bytes, slots of two; a cell is length, rowid, header size, type, text.
    let slot = |n: usize| 512 + 8 + 2 * n;
    let cell = 512 + usize::from(u16::from_be_bytes([sound[slot(1)], sound[slot(1) + 1]]));
    assert_eq!(sound[cell..cell + 4], [5, 2, 2, 19]);
    for (name, at, bytes) in [
        ("a header without columns", cell + 2, &[1][..]),
        ("a text that ends before its payload", cell + 3, &[17]),
        ("a text that ends after it", cell + 3, &[21]),
        ("rowids out of order", cell + 1, &[9]),
        ("a cell among the slots", slot(1), &[0, 9]),
        ("a cell on the last byte", slot(1), &[1, 255]),
    ] {
        let mut file = sound.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        std::fs::write(&path, &file).expect("written");
        let asked = ["c0".into(), "rowid".into()];
        let [pages, sqlite] = [Reader::Pages, Reader::Sqlite].map(|reader| read(&path, reader, &asked).ok());
        assert_eq!(pages, sqlite, "{name}");
    }
}
