//! Folders of parquet files, and changes that spoil a file's bytes or columns.

use crate::random::Random;
use polars::prelude::{Column, DataFrame, DataType, NamedFrom, Series};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use sync_report::frame::parquet::{self, Layout};

pub fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a new folder");
    for path in files(from) {
        fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("a copy");
    }
}

/// In the order of their names.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

pub fn spoil(files: &[PathBuf], r: &Random) {
    for _ in 0..r.pick(&[1, 1, 1, 2, 3]) {
        let path = &files[r.below(files.len())];
        match r.below(8) {
            0 => fs::remove_file(path).unwrap_or_default(),
            1 => drop(fs::copy(&files[r.below(files.len())], path)),
            2..5 => spoil_columns(path, r),
            _ => spoil_bytes(path, r),
        }
    }
}

fn spoil_bytes(path: &Path, r: &Random) {
    let Ok(mut bytes) = fs::read(path) else { return };
    for _ in 0..r.pick(&[1, 1, 1, 2, 4, 10]) {
        let length = bytes.len();
        if length < 12 {
            break;
        }
        let end: [u8; 4] = bytes[length - 8..length - 4].try_into().expect("four bytes");
        let footer = (u32::from_le_bytes(end) as usize).min(length - 8);
        let start = length - 8 - footer;
        let at = start + r.below(footer);
        match r.below(10) {
            0..3 => bytes[at] = r.byte(),
            3 => bytes[at] ^= 1 << r.below(8),
            4 => bytes[at] = r.pick(&[0xFF, 0x80, 0x7F, 0, 0x15, 0x19, 0x1C]),
            5 => bytes[at..length.min(at + 9)].fill(0xFF),
            6 => {
                for _ in 0..r.pick(&[1, 3, 30]) {
                    let at = r.below(start);
                    bytes[at] = r.byte();
                }
            }
            7 => {
                let length = r.pick(&[0, 1, footer as u32 + 1, 1 << 31, u32::MAX, r.below(length) as u32]);
                bytes.splice(bytes.len() - 8..bytes.len() - 4, length.to_le_bytes());
            }
            8 => bytes.truncate(r.below(length)),
            _ => bytes.extend_from_within(start..),
        }
    }
    fs::write(path, bytes).expect("written");
}

fn spoil_columns(path: &Path, r: &Random) {
    let Ok(mut table) = parquet::read(path, None) else { return };
    for _ in 0..r.pick(&[1, 1, 2, 4]) {
        if table.width() > 0 {
            table = changed(table, r);
        }
    }
    let layout = Layout { snappy: r.one_in(2), group: r.pick(&[1, 3, 1000]) };
    parquet::write(&table, File::create(path).expect("a file"), layout, None).expect("a table");
}

/// One column dropped, renamed, of another type or with other values; or other rows.
fn changed(table: DataFrame, r: &Random) -> DataFrame {
    let columns = table.columns();
    let at = r.below(columns.len());
    let mut columns: Vec<Column> = columns.to_vec();
    match r.below(8) {
        0 => drop(columns.remove(at)),
        1 => {
            columns[at].rename(format!("renamed {}", r.next()).into());
        }
        2 => {
            let other = columns[r.below(columns.len())].name().clone();
            let values = columns[at].clone().with_name(other.clone());
            columns.retain(|column| *column.name() != other);
            columns.push(values);
        }
        3 => {
            let kind = r.pick(&[0, 1, 2, 3, 4, 5, 6, 7]);
            let kinds = [
                DataType::Int32,
                DataType::Int64,
                DataType::UInt32,
                DataType::UInt64,
                DataType::Float64,
                DataType::String,
                DataType::Binary,
                DataType::Boolean,
            ];
            // Values that do not fit the type become NULL.
            if let Ok(cast) = columns[at].cast(&kinds[kind]) {
                columns[at] = cast;
            }
        }
        4 => return table.head(Some(r.below(3))),
        5 => return table.vstack(&table).expect("the same columns"),
        _ => columns[at] = other_values(&columns[at], r),
    }
    let rows = columns.first().map_or(0, Column::len);
    DataFrame::new(rows, columns).expect("columns of one length")
}

fn other_values(column: &Column, r: &Random) -> Column {
    const TEXTS: [&str; 8] =
        ["", "{}", "[", "null", "\u{1b}[31m\n", "<script>", "99999999999999999999", "café\u{202e}"];
    let every = 1 + r.below(3);
    let name = column.name().clone();
    let series = match column.dtype() {
        DataType::Int64 => {
            let old = column.i64().expect("integers").iter().enumerate();
            let new =
                old.map(|(i, old)| if i % every == 0 { (!r.one_in(4)).then(|| r.extreme()) } else { old });
            Series::new(name, new.collect::<Vec<_>>())
        }
        DataType::UInt64 => {
            let old = column.u64().expect("integers").iter().enumerate();
            let new = old.map(|(i, old)| if i % every == 0 { (!r.one_in(4)).then(|| r.next()) } else { old });
            Series::new(name, new.collect::<Vec<_>>())
        }
        DataType::Float64 => {
            let old = column.f64().expect("numbers").iter().enumerate();
            let odd = [f64::NAN, f64::INFINITY, -1.0, 1e300, -0.0];
            let new =
                old.map(|(i, old)| if i % every == 0 { (!r.one_in(4)).then(|| r.pick(&odd)) } else { old });
            Series::new(name, new.collect::<Vec<_>>())
        }
        DataType::String => {
            let old = column.str().expect("texts").iter().enumerate();
            let new =
                old.map(|(i, old)| if i % every == 0 { (!r.one_in(4)).then(|| r.pick(&TEXTS)) } else { old });
            Series::new(name, new.collect::<Vec<_>>())
        }
        _ => return column.clone(),
    };
    series.into()
}
