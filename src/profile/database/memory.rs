//! Tables made in memory from a trace's events, with the rows and columns that an export has.

use super::column::{Column, NO_TEXT, Row};
use super::{Cells, Each, Parts, ReadPart, Source};
use crate::error::InputError;
use indexmap::IndexSet;
use polars_arrow::array::{MutablePrimitiveArray, PrimitiveArray};
use polars_parquet::read::Filter;
use rustc_hash::{FxBuildHasher, FxHashMap};

/// Rows a worker takes at a time; as with SQLite.
const PART_ROWS: usize = 1 << 15;

#[derive(Default)]
pub struct Tables {
    tables: FxHashMap<&'static str, Table>,
}

/// Columns of one length.
struct Table {
    columns: Vec<(&'static str, Column)>,
    rows: usize,
}

pub enum Growing {
    Int(MutablePrimitiveArray<i64>),
    /// Each row's index into the distinct texts.
    Text(Vec<u32>, IndexSet<Box<[u8]>, FxBuildHasher>),
}

#[derive(Clone, Copy)]
pub enum Value<'v> {
    Null,
    Int(i64),
    Text(&'v [u8]),
}

impl Value<'_> {
    pub fn number(self) -> Option<i64> {
        if let Self::Int(value) = self { Some(value) } else { None }
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<u32> for Value<'_> {
    fn from(value: u32) -> Self {
        Self::Int(value.into())
    }
}

impl From<Option<i64>> for Value<'_> {
    fn from(value: Option<i64>) -> Self {
        value.map_or(Self::Null, Self::Int)
    }
}

impl From<Option<u32>> for Value<'_> {
    fn from(value: Option<u32>) -> Self {
        value.map(i64::from).into()
    }
}

impl<'v> From<&'v str> for Value<'v> {
    fn from(value: &'v str) -> Self {
        Self::Text(value.as_bytes())
    }
}

pub struct Rows {
    name: &'static str,
    columns: Vec<(&'static str, Growing)>,
    rows: usize,
}

impl Rows {
    /// `ints`, then `texts`: names of columns separated by blanks, in the order of a row's values.
    pub fn new(name: &'static str, ints: &[&'static str], texts: &'static str) -> Self {
        let ints = ints.iter().flat_map(|names| names.split_whitespace());
        let ints = ints.map(|column| (column, Growing::Int(MutablePrimitiveArray::new())));
        let text = |column| (column, Growing::Text(Vec::new(), IndexSet::default()));
        Self { name, columns: ints.chain(texts.split_whitespace().map(text)).collect(), rows: 0 }
    }

    pub fn of<'v>(
        name: &'static str,
        ints: &'static str,
        texts: &'static str,
        rows: impl IntoIterator<Item = Vec<Value<'v>>>,
    ) -> Self {
        let mut table = Self::new(name, &[ints], texts);
        rows.into_iter().for_each(|row| table.push(&row));
        table
    }

    /// Moves the times, which are in the first `columns` columns, earlier by `origin`.
    pub fn begin_at(&mut self, origin: i64, columns: usize) {
        for (_, column) in &mut self.columns[..columns] {
            if let Growing::Int(times) = column {
                times.values_mut_slice().iter_mut().for_each(|time| *time -= origin);
            }
        }
    }

    /// Columns without a value are NULL, as are values of another type than their column.
    pub fn push(&mut self, row: &[Value]) {
        for (i, (_, column)) in self.columns.iter_mut().enumerate() {
            let value = row.get(i).copied().unwrap_or(Value::Null);
            match column {
                Growing::Int(values) => {
                    values.push(if let Value::Int(value) = value { Some(value) } else { None })
                }
                Growing::Text(rows, texts) => {
                    let mut place = |text: &[u8]| {
                        texts.get_index_of(text).unwrap_or_else(|| texts.insert_full(text.into()).0) as u32
                    };
                    rows.push(if let Value::Text(text) = value { place(text) } else { NO_TEXT });
                }
            }
        }
        self.rows += 1;
    }
}

impl Tables {
    /// As in an export, a table without rows is absent.
    pub fn add(&mut self, rows: Rows) {
        let Rows { name, columns, rows } = rows;
        if rows == 0 {
            return;
        }
        let done = |(name, column)| match column {
            Growing::Int(values) => (name, Column::new(&PrimitiveArray::from(values), false)),
            Growing::Text(rows, texts) => (name, Column::Shared(rows.into(), texts.into_iter().collect())),
        };
        self.tables.insert(name, Table { columns: columns.into_iter().map(done).collect(), rows });
    }

    pub(super) fn columns(&self) -> FxHashMap<String, Vec<String>> {
        let names = |table: &Table| table.columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        self.tables.iter().map(|(name, table)| ((*name).to_owned(), names(table))).collect()
    }

    /// `None` where there is no such table.
    pub(super) fn scan(&self, table: &str, columns: &[&str]) -> Option<Scan> {
        let table = self.tables.get(table)?;
        let column = |name: &&str| match *name {
            "rowid" => Column::numbers(0, &Filter::Range(0..table.rows)),
            name => table.column(name).cloned().unwrap_or(Column::Nothing),
        };
        Some(Scan { columns: columns.iter().map(column).collect(), rows: table.rows })
    }

    /// Passes on the first `most` rows of each of `keys`, with the key's index, in the order of the keys.
    pub(super) fn find(
        &self,
        (table, columns): (&str, &[&str]),
        (key, most): (&str, usize),
        keys: &[i64],
        each: Each,
    ) {
        let Some((scan, table)) = self.scan(table, columns).zip(self.tables.get(table)) else { return };
        let mut found: Vec<(usize, usize)> = Vec::new();
        if key == "rowid" {
            let row = |&key: &i64| usize::try_from(key).ok()?.checked_sub(1).filter(|&row| row < table.rows);
            found.extend(keys.iter().enumerate().filter_map(|(k, key)| Some((k, row(key)?))));
        } else if let Some(column) = table.column(key) {
            let mut sorted: Vec<(i64, usize)> = keys.iter().copied().zip(0..).collect();
            sorted.sort_unstable();
            column.rows_with(&sorted, |row, k| found.push((k, row)));
            found.sort_unstable();
        }
        for rows in found.chunk_by(|a, b| a.0 == b.0) {
            for &(k, row) in rows.iter().take(most) {
                each(k, &Cells(Source::Columns(Row::new(&scan.columns, row))));
            }
        }
    }
}

impl Table {
    fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|(column, _)| *column == name).map(|(_, column)| column)
    }
}

pub(super) struct Scan {
    columns: Vec<Column>,
    pub rows: usize,
}

impl Parts for Scan {
    type Error = InputError;

    fn len(&self) -> usize {
        self.rows.div_ceil(PART_ROWS)
    }

    fn reader(&self) -> Result<Box<dyn ReadPart<InputError> + '_>, InputError> {
        Ok(Box::new(self))
    }
}

impl ReadPart<InputError> for &Scan {
    fn read(&mut self, part: usize, each: &mut dyn FnMut(&Cells)) -> Result<u64, InputError> {
        let rows = part * PART_ROWS..self.rows.min((part + 1) * PART_ROWS);
        rows.clone().for_each(|row| each(&Cells(Source::Columns(Row::new(&self.columns, row)))));
        Ok(rows.len() as u64)
    }
}
