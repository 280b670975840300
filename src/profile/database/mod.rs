//! An export's tables, column by column.
//!
//! Reading is the tool's main cost: tables are read once, in parts that worker threads take from a counter,
//! and nothing is sorted or grouped on the way. `pages` reads large tables of an ordinary file. `sqlite`
//! reads the others, tables that `pages` cannot explain, and rows by a key that is not the rowid. `parquet`
//! reads a folder. `trace` makes the tables of a torch.profiler trace, in `memory`.

mod btree;
mod column;
pub mod memory;
mod pages;
mod parquet;
mod record;
mod sqlite;
#[cfg(test)]
mod tests;
mod trace;

use crate::error::InputError;
use crate::profile::header::{check_header, io_error};
use crate::profile::ids::{ExportId, GlobalPid, GlobalTid};
use crate::profile::parallel::joined;
use crate::text::sql_quote;
use crate::vocabulary::words;
use pages::Pages;
use parquet::Folder;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use rustc_hash::FxHashMap;
use sqlite::{connect, sqlite_error};
use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trace::Trace;
pub use trace::begins_like_trace;

words! {
    /// What reads large tables: the rows are the same.
    #[derive(Default)]
    Reader {
        #[default]
        Pages = "pages": "The pages of the file themselves, where they are as SQLite documents them",
        Sqlite = "sqlite": "SQLite's statements",
    }
}

#[derive(Clone, Default)]
pub struct Reading {
    /// Worker threads; 0 counts as 1.
    pub threads: usize,
    pub reader: Reader,
    pub progress: Option<Arc<dyn Progress>>,
}

/// A table that cannot be read in ranges of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A view, which may compute anything.
    View,
    WithoutRowid,
}

/// Progress of a run: while a table is read, and while fixes are simulated.
pub trait Progress: Send + Sync {
    /// About `count` rows, or what `unit` names, come next.
    fn begins(&self, what: &str, count: u64, unit: &str);
    /// Called once a batch: a call for each row would cost more than to read it.
    fn advance(&self, by: u64);
    /// Adds to the run's cost, for callers that count it.
    fn costs(&self, _work: Work, _by: u64) {}
}

words! {
    /// What a run's cost is counted in: the same for the same input, whatever the machine.
    Work {
        Rows = "rows": "Rows of tables that were read whole",
        Bytes = "bytes": "Bytes read of their pages or columns, and for rows by key",
        LookUps = "look_ups": "Rows looked up by key",
        Steps = "steps": "Calls and GPU operations simulated",
    }
}

pub struct Database {
    path: PathBuf,
    reading: Reading,
    /// Columns of each table (not of views), by table name.
    tables: FxHashMap<String, Vec<String>>,
    /// Tables that cannot be read in ranges of rows, and views.
    shapes: FxHashMap<String, Shape>,
    store: Store,
}

enum Store {
    File(SqliteFile),
    Folder(Folder),
    Trace(Trace),
}

struct SqliteFile {
    /// The path, with links resolved.
    file: PathBuf,
    /// Read without locks and -wal: only where the directory forbids anything else.
    immutable: bool,
    /// `None` where SQLite reads everything.
    pages: Option<Pages>,
    main: Mutex<Connection>,
}

impl SqliteFile {
    fn main(&self) -> MutexGuard<'_, Connection> {
        self.main.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bound on times, in ns: 73 years either way. A time beyond means a damaged row; within, neither differences
/// nor sums of a few overflow.
pub const MAX_TIME: i64 = i64::MAX / 4;

/// A time beyond [`MAX_TIME`].
pub struct OutOfRange;

/// One row of a scan: the columns asked for, in that order; columns that the export lacks are NULL.
pub struct Cells<'r>(Source<'r>);

enum Source<'r> {
    Page(record::Row<'r>),
    Columns(column::Row<'r>),
    Sqlite(&'r rusqlite::Row<'r>),
}

impl Cells<'_> {
    /// The integer in column `i`; `None` for NULL and for any other type.
    #[inline(always)]
    pub fn int(&self, i: usize) -> Option<i64> {
        match self.0 {
            Source::Page(row) => row.int(i),
            Source::Columns(row) => row.int(i),
            Source::Sqlite(row) => sqlite::int(row, i),
        }
    }

    /// The time in column `i`; `Err` for one that no capture can hold ([`MAX_TIME`]).
    #[inline]
    pub fn time(&self, i: usize) -> Result<Option<i64>, OutOfRange> {
        match self.int(i) {
            Some(t) if !(-MAX_TIME..=MAX_TIME).contains(&t) => Err(OutOfRange),
            t => Ok(t),
        }
    }

    #[inline]
    pub fn id(&self, i: usize) -> Option<u32> {
        self.int(i).and_then(|v| u32::try_from(v).ok())
    }

    /// [`ExportId::NONE`] for NULL and numbers beyond 32 bits.
    #[inline]
    pub fn export_id(&self, i: usize) -> ExportId {
        ExportId::new(self.id(i))
    }

    #[inline]
    pub fn global_pid(&self, i: usize) -> Option<GlobalPid> {
        self.int(i).map(GlobalPid::new)
    }

    #[inline]
    pub fn global_tid(&self, i: usize) -> Option<GlobalTid> {
        self.int(i).map(GlobalTid::new)
    }

    /// The bytes of a text or blob, of any encoding.
    pub fn bytes(&self, i: usize) -> Option<&[u8]> {
        match self.0 {
            Source::Page(row) => row.bytes(i),
            Source::Columns(row) => row.bytes(i),
            Source::Sqlite(row) => match row.get_ref(i) {
                Ok(ValueRef::Text(b) | ValueRef::Blob(b)) => Some(b),
                _ => None,
            },
        }
    }

    /// The bytes in `seldom` column `i`; `None` where they must be looked up by rowid.
    pub fn at_hand(&self, i: usize) -> Option<Option<&[u8]>> {
        match self.0 {
            Source::Page(row) => row.seldom(i),
            Source::Columns(_) | Source::Sqlite(_) => None,
        }
    }

    /// The text in column `i`; bytes that are no UTF-8 (CP1251, Latin-1 names) become U+FFFD.
    pub fn text(&self, i: usize) -> Option<Cow<'_, str>> {
        self.bytes(i).map(String::from_utf8_lossy)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let read = match &self.store {
            Store::File(file) => file.pages.as_ref().map_or(0, Pages::bytes),
            Store::Folder(folder) => folder.bytes(),
            Store::Trace(_) => 0,
        };
        self.reading.progress.iter().for_each(|p| p.costs(Work::Bytes, read));
    }
}

impl Database {
    /// # Errors
    /// Whatever shows before the first row is read: missing, unreadable, truncated, not SQLite.
    pub fn open(path: &Path, reading: Reading) -> Result<Self, InputError> {
        if path.is_dir() {
            let folder = Folder::open(path, reading.threads)?;
            let (path, tables, shapes) = (path.to_owned(), folder.columns(), FxHashMap::default());
            return Ok(Self { path, reading, tables, shapes, store: Store::Folder(folder) });
        }
        let file = fs::canonicalize(path).map_err(|e| io_error(path, &e))?;
        if trace::is_trace(&file) {
            let trace = trace::read(path, &file)?;
            let (path, tables, shapes) = (path.to_owned(), trace.tables.columns(), FxHashMap::default());
            return Ok(Self { path, reading, tables, shapes, store: Store::Trace(trace) });
        }
        check_header(path, &file)?;
        let (main, immutable) = sqlite::open(path, &file)?;
        let tables = sqlite::list_tables(&main).map_err(|e| sqlite_error(path, &e))?;
        let shapes = sqlite::list_shapes(&main, tables.keys()).map_err(|e| sqlite_error(path, &e))?;
        let pages = if reading.reader == Reader::Pages { Pages::open(&file) } else { None };
        let store = Store::File(SqliteFile { file, immutable, pages, main: Mutex::new(main) });
        Ok(Self { path: path.to_owned(), reading, tables, shapes, store })
    }

    /// Whether a trace of torch.profiler is cut off; `None` for an export of nsys.
    pub fn is_cut_trace(&self) -> Option<bool> {
        if let Store::Trace(trace) = &self.store { Some(trace.cut) } else { None }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub fn has_table(&self, table: &str) -> bool {
        self.tables.contains_key(table)
    }

    pub(super) fn shape(&self, table: &str) -> Option<Shape> {
        self.shapes.get(table).copied()
    }

    pub(super) fn has_column(&self, table: &str, column: &str) -> bool {
        self.tables.get(table).is_some_and(|c| c.iter().any(|c| c == column))
    }

    /// Views included.
    pub(super) fn table_names(&self) -> impl Iterator<Item = &str> {
        let views = self.shapes.keys().filter(|name| !self.tables.contains_key(*name));
        self.tables.keys().chain(views).map(String::as_str)
    }

    /// Results of `take` in rowid order, whatever the thread count. An absent table yields nothing, as does
    /// one without rowid ([`super::lacks`] says so). The rowid can be asked for as a column named `rowid`.
    pub fn scan<T: Send>(
        &self,
        table: &str,
        columns: &[&str],
        take: impl Fn(&Cells) -> Option<T> + Sync,
    ) -> Result<Vec<T>, InputError> {
        let rows = |out: &mut Vec<T>, row: &Cells| out.extend(take(row));
        self.gather(table, columns, &[], rows, Vec::extend)
    }

    /// As [`Self::scan`]; `rows` gets each row with the accumulator of its part. `join` adds the accumulators
    /// in rowid order, while other parts are read. `seldom` columns are for few rows ([`Cells::at_hand`]).
    pub fn gather<T: Default + Send, S: Default + Send>(
        &self,
        table: &str,
        columns: &[&str],
        seldom: &[&str],
        rows: impl Fn(&mut T, &Cells) + Sync,
        join: impl Fn(&mut S, T) + Sync,
    ) -> Result<S, InputError> {
        let file = match &self.store {
            Store::File(file) => file,
            Store::Folder(folder) => {
                let Some(scan) = folder.scan(table, columns) else { return Ok(S::default()) };
                self.begins(table, scan.rows());
                return self.read(&scan, &rows, &join);
            }
            Store::Trace(trace) => {
                let Some(scan) = trace.tables.scan(table, columns) else { return Ok(S::default()) };
                self.begins(table, scan.rows as u64);
                return self.read(&scan, &rows, &join);
            }
        };
        let readable = || self.shape(table).is_none();
        let Some(select) = self.select(table, columns).filter(|_| readable()) else {
            return Ok(S::default());
        };
        let bounds = sqlite::rowid_bounds(&file.main(), table).map_err(|e| sqlite_error(&self.path, &e))?;
        let Some((first, last)) = bounds else { return Ok(S::default()) };
        self.begins(table, last.abs_diff(first).saturating_add(1));
        let pages = file.pages.as_ref().and_then(|pages| pages.table(&file.main(), table, columns, seldom));
        // SQLite says what is wrong with a damaged table.
        if let Some(pages) = pages
            && let Ok(read) = pages.parts().and_then(|parts| self.read(&parts, &rows, &join))
        {
            return Ok(read);
        }
        let sql = format!("{select} WHERE rowid BETWEEN ?1 AND ?2");
        let ranges = sqlite::split(first, last);
        let parts = sqlite::Ranges { path: &file.file, immutable: file.immutable, sql, ranges };
        self.read(&parts, &rows, &join).map_err(|e| sqlite_error(&self.path, &e))
    }

    fn begins(&self, table: &str, rows: u64) {
        if let Some(progress) = &self.reading.progress {
            progress.begins(&format!("reading {table}"), rows, "row");
        }
    }

    fn read<P: Parts, T: Default + Send, S: Default + Send>(
        &self,
        parts: &P,
        rows: impl Fn(&mut T, &Cells) + Sync,
        join: impl Fn(&mut S, T) + Sync,
    ) -> Result<S, P::Error> {
        let read = |reader: &mut Box<dyn ReadPart<P::Error> + '_>, part: usize| {
            let mut out = T::default();
            let count = reader.read(part, &mut |row| rows(&mut out, row))?;
            if let Some(progress) = &self.reading.progress {
                progress.advance(count);
                progress.costs(Work::Rows, count);
            }
            Ok(out)
        };
        joined(self.reading.threads, parts.len(), || parts.reader(), read, join)
    }

    /// Reads the first `most` rows of each of `keys` in column `key`, one indexed look-up each. `rows` gets
    /// the accumulator of its slice of `keys`, the index of the key, and the row; look-ups run in parallel
    /// slices, joined in order.
    pub fn look_up<T: Default + Send, S: Default + Send>(
        &self,
        table: &str,
        columns: &[&str],
        (key, most): (&str, usize),
        keys: &[i64],
        rows: impl Fn(&mut T, usize, &Cells) + Sync,
        join: impl Fn(&mut S, T) + Sync,
    ) -> Result<S, InputError> {
        let threads = self.reading.threads;
        self.reading.progress.iter().for_each(|p| p.costs(Work::LookUps, keys.len() as u64));
        let file = match &self.store {
            Store::File(file) => file,
            Store::Folder(folder) => {
                let Some(search) = folder.look_up(table, columns, (key, most)) else {
                    return Ok(S::default());
                };
                let find = |(): &mut (), keys: &[i64], each: Each| search(keys, each);
                return in_slices(threads, keys, || Ok(()), find, &rows, &join);
            }
            Store::Trace(trace) => {
                let find = |(): &mut (), keys: &[i64], each: Each| {
                    trace.tables.find((table, columns), (key, most), keys, each);
                    Ok(())
                };
                return in_slices(threads, keys, || Ok(()), find, &rows, &join);
            }
        };
        let Some(select) = self.select(table, columns) else { return Ok(S::default()) };
        let asked = [columns, &[key]].concat();
        let pages = file.pages.as_ref().and_then(|pages| pages.table(&file.main(), table, &asked, &[]));
        if let Some(pages) = pages.filter(|pages| pages.is_rowid(columns.len())) {
            let find = |reader: &mut pages::Reader, keys: &[i64], each: Each| {
                let mut numbered = keys.iter().enumerate();
                numbered.try_for_each(|(k, &key)| reader.look_up(key, &mut |row| each(k, row)))
            };
            if let Ok(found) = in_slices(threads, keys, || Ok(pages.reader()), find, &rows, &join) {
                return Ok(found);
            }
        }
        let sql = format!("{select} WHERE {} = ?1 LIMIT {most}", sql_quote(key));
        let find = |c: &mut Connection, keys: &[i64], each: Each| {
            let mut statement = c.prepare(&sql)?;
            let mut keys = keys.iter().enumerate();
            keys.try_for_each(|(k, key)| sqlite::rows(statement.query([key])?, |row| each(k, row)))
        };
        in_slices(threads, keys, || connect(&file.file, file.immutable), find, &rows, &join)
            .map_err(|e| sqlite_error(&self.path, &e))
    }

    /// Whether `column` leads an index (or is the rowid, or the rows are in its order), so that
    /// [`Self::look_up`] does not scan the table per key.
    pub fn is_indexed(&self, table: &str, column: &str) -> bool {
        if column == "rowid" {
            return true;
        }
        let file = match &self.store {
            Store::File(file) => file,
            Store::Folder(folder) => return folder.is_sorted(table, column),
            Store::Trace(_) => return self.has_column(table, column),
        };
        let plan = || sqlite::plan(&file.main(), table, column);
        self.has_column(table, column)
            && plan().is_ok_and(|plan| plan.contains("SEARCH") && !plan.contains("AUTOMATIC"))
    }

    /// Reads a small table whole, on this thread.
    pub fn rows(&self, table: &str, columns: &[&str], each: impl FnMut(&Cells)) -> Result<(), InputError> {
        let file = match &self.store {
            Store::File(file) => file,
            Store::Folder(folder) => {
                let Some(scan) = folder.scan(table, columns) else { return Ok(()) };
                return all(&scan, each);
            }
            Store::Trace(trace) => {
                let Some(scan) = trace.tables.scan(table, columns) else { return Ok(()) };
                return all(&scan, each);
            }
        };
        let Some(select) = self.select(table, columns) else { return Ok(()) };
        let main = file.main();
        let read = main.prepare(&select).and_then(|mut all| sqlite::rows(all.query([])?, each));
        read.map_err(|e| sqlite_error(&self.path, &e))
    }

    fn select(&self, table: &str, columns: &[&str]) -> Option<String> {
        let have = self.tables.get(table)?;
        let list: Vec<String> =
            columns
                .iter()
                .map(|&c| {
                    if c == "rowid" || have.iter().any(|h| h == c) { sql_quote(c) } else { "NULL".to_owned() }
                })
                .collect();
        Some(format!("SELECT {} FROM {}", list.join(", "), sql_quote(table)))
    }
}

/// A table whose parts can be read in parallel.
trait Parts: Sync {
    type Error: Send;
    /// Parts are in the order of their rows.
    fn len(&self) -> usize;
    /// One for each thread.
    fn reader(&self) -> Result<Box<dyn ReadPart<Self::Error> + '_>, Self::Error>;
}

trait ReadPart<E> {
    /// Passes on each row; returns about how many there were.
    fn read(&mut self, part: usize, each: &mut dyn FnMut(&Cells)) -> Result<u64, E>;
}

fn all<P: Parts>(parts: &P, mut each: impl FnMut(&Cells)) -> Result<(), P::Error> {
    let mut reader = parts.reader()?;
    (0..parts.len()).try_for_each(|part| reader.read(part, &mut each).map(drop))
}

/// Takes the rows of a search, each with the index of its key.
type Each<'a> = &'a mut dyn FnMut(usize, &Cells);

/// Searches `keys` slice by slice on `threads` threads; `find` passes on the rows of a slice.
fn in_slices<W, T: Default + Send, S: Default + Send, E: Send>(
    threads: usize,
    keys: &[i64],
    open: impl Fn() -> Result<W, E> + Sync,
    find: impl Fn(&mut W, &[i64], Each) -> Result<(), E> + Sync,
    rows: &(impl Fn(&mut T, usize, &Cells) + Sync),
    join: &(impl Fn(&mut S, T) + Sync),
) -> Result<S, E> {
    const SLICE: usize = 4096;
    let slices: Vec<&[i64]> = keys.chunks(SLICE).collect();
    let work = |finder: &mut W, i: usize| {
        let mut out = T::default();
        find(finder, slices[i], &mut |k, row| rows(&mut out, i * SLICE + k, row))?;
        Ok(out)
    };
    joined(threads, slices.len(), open, work, join)
}
