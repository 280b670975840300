//! Writes the tables of an SQLite export as `nsys export --type parquetdir` does: a file per table that has
//! rows, in row groups of nsys' sizes, with nsys' types.

use super::Export;
use polars::prelude::{Column, DataFrame, NamedFrom, Series};
use rusqlite::Connection;
use rusqlite::types::{Value, ValueRef};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use sync_report::frame::parquet::{self, Layout};
use tempfile::TempDir;

/// Rows of a row group, as nsys 2024.2 writes them.
pub const GROUP: usize = 2000;
/// As nsys 2025.3 does, with Snappy.
pub const LARGE: usize = 1 << 20;

impl Export {
    pub fn write_both(&self, group: usize) -> (TempDir, PathBuf, PathBuf) {
        let (home, file) = self.write_temp();
        let folder = home.path().join("profile_pqtdir");
        to_folder(&file, &folder, group);
        (home, file, folder)
    }
}

pub fn to_folder(file: &Path, folder: &Path, group: usize) {
    fs::create_dir(folder).expect("a new folder");
    let db = Connection::open(file).expect("an export");
    for table in texts(&db, "SELECT name FROM sqlite_master WHERE type = 'table'") {
        let mut columns: Vec<Column> = Vec::new();
        for name in texts(&db, &format!("SELECT name FROM pragma_table_info('{table}')")) {
            let kind = format!("SELECT type FROM pragma_table_info('{table}') WHERE name = '{name}'");
            columns.push(column(&name, &texts(&db, &kind)[0], values(&db, &table, &name)));
        }
        let rows = columns.first().map_or(0, |column| column.len());
        if rows > 0 {
            let mut frame = DataFrame::new(rows, columns).expect("columns of one length");
            write(&mut frame, &folder.join(format!("{table}.parquet")), group);
        }
    }
}

pub fn write(frame: &mut DataFrame, path: &Path, group: usize) {
    let file = File::create(path).expect("a file");
    parquet::write(frame, file, Layout { snappy: group == LARGE, group }, None).expect("a table");
}

fn texts(db: &Connection, sql: &str) -> Vec<String> {
    let mut rows = db.prepare(sql).expect("a statement");
    rows.query_map([], |row| row.get(0)).expect("rows").collect::<Result<_, _>>().expect("texts")
}

fn values(db: &Connection, table: &str, column: &str) -> Vec<Value> {
    let mut rows = db.prepare(&format!("SELECT \"{column}\" FROM \"{table}\"")).expect("a statement");
    let value = |row: &rusqlite::Row<'_>| {
        Ok(match row.get_ref(0)? {
            ValueRef::Text(bytes) => Value::Blob(bytes.to_vec()),
            _ => row.get(0)?,
        })
    };
    rows.query_map([], value).expect("rows").collect::<Result<_, _>>().expect("values")
}

/// A column of nsys' type; values of other types are NULL, since a parquet column has one type.
fn column(name: &str, kind: &str, values: Vec<Value>) -> Column {
    let ints = || values.iter().map(|v| if let Value::Integer(v) = v { Some(*v) } else { None });
    let series = match (kind, name) {
        ("TEXT" | "BLOB", _) => {
            let bytes = values.iter().map(|v| if let Value::Blob(v) = v { Some(&v[..]) } else { None });
            Series::new(name.into(), bytes.collect::<Vec<Option<&[u8]>>>())
        }
        ("REAL", _) => {
            let reals = values.iter().map(|v| if let Value::Real(v) = v { Some(*v) } else { None });
            Series::new(name.into(), reals.collect::<Vec<_>>())
        }
        (_, "unresolved" | "isDiscrete") => {
            Series::new(name.into(), ints().map(|v| Some(v? != 0)).collect::<Vec<_>>())
        }
        (_, "globalTid" | "globalPid" | "nameId" | "demangledName" | "contextId" | "streamId" | "bytes") => {
            Series::new(name.into(), ints().map(|v| Some(v? as u64)).collect::<Vec<_>>())
        }
        (_, "gridX" | "severity" | "stackDepth") if ints().flatten().all(|v| i32::try_from(v).is_ok()) => {
            Series::new(name.into(), ints().map(|v| Some(v? as i32)).collect::<Vec<_>>())
        }
        _ => Series::new(name.into(), ints().collect::<Vec<_>>()),
    };
    series.into()
}

/// A parquet file of no rows, whose only column is `levels` levels deep.
pub fn nested(levels: usize) -> Vec<u8> {
    const GROUP: &[u8] = &[0x35, 2, 0x18, 1, b'a', 0x15, 2, 0];
    const LEAF: &[u8] = &[0x15, 4, 0x25, 2, 0x18, 1, b'x', 0];
    let count = (0..3).map(|i| ((levels + 1) >> (7 * i)) as u8 & 0x7F | if i < 2 { 0x80 } else { 0 });
    let mut footer = vec![0x15, 2, 0x19, 0xFC];
    footer.extend(count);
    footer.extend(GROUP.repeat(levels));
    footer.extend([LEAF, &[0x16, 0, 0x19, 0x0C, 0]].concat());
    let length = u32::try_from(footer.len()).expect("a small footer").to_le_bytes();
    [b"PAR1", &footer[..], &length, b"PAR1"].concat()
}

pub fn repeated(path: &Path, rows: usize) {
    let column = |name: &str| Column::from(Series::new(name.into(), vec![7_i64; rows]));
    let columns = ["start", "end", "correlationId"].map(column).into();
    write(&mut DataFrame::new(rows, columns).expect("columns of one length"), path, LARGE);
}
