//! Opening an export and reading its columns.
//!
//! The only file that opens SQLite. Reading is the tool's main cost, so tables are read by column, once, in rowid
//! ranges that worker threads take from a counter, each over a read-only connection of its own: about 16 ns a row and
//! 22 ns a column on one core. Nothing is sorted or grouped in SQL.

use crate::error::InputError;
use crate::profile::commands;
use crate::profile::header::check_header;
use crate::profile::ids::ExportId;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row, Statement};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Rows a worker takes at a time: large enough that preparing a statement does not show (measured: 100 ranges of a
/// 100 M row table cost nothing visible), small enough that two workers end together.
const RANGE_ROWS: i64 = 1 << 15;
/// No more ranges than this, however sparse the rowids of a hostile file.
const MAX_RANGES: u64 = 4096;

/// What stands under a name instead of a table that can be read in ranges of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A view, which may compute anything.
    View,
    /// A table `WITHOUT ROWID`.
    WithoutRowid,
}

/// Hears how far a run has come: while a table is read, and while fixes are simulated.
pub trait Progress: Send + Sync {
    /// About `count` rows, or what `unit` names, come next.
    fn begins(&self, what: &str, count: u64, unit: &str);
    /// So many more are done. Told for a batch at a time: to tell each row would cost more than to read it.
    fn advance(&self, by: u64);
}

/// An export, open for reading.
pub struct Database {
    path: PathBuf,
    /// Read without locks and -wal: only when the directory forbids anything else.
    immutable: bool,
    threads: usize,
    /// Columns of each table of the file (not of its views), by table name.
    tables: FxHashMap<String, Vec<String>>,
    /// Those that cannot be read in ranges of rows, and views.
    shapes: FxHashMap<String, Shape>,
    main: Mutex<Connection>,
    progress: Option<Arc<dyn Progress>>,
}

/// Bounds on times, in ns: 73 years either way. An export with a time beyond holds damaged rows, and within them
/// neither differences nor sums of a few overflow.
pub const MAX_TIME: i64 = i64::MAX / 4;

/// A time beyond [`MAX_TIME`].
pub struct OutOfRange;

/// One row of a scan: the columns asked for, in that order; columns that the export lacks read as NULL.
pub struct Cells<'r, 's> {
    row: &'r Row<'s>,
}

impl Cells<'_, '_> {
    /// The integer in column `i`; `None` for NULL and for any other type.
    pub fn int(&self, i: usize) -> Option<i64> {
        match self.row.get_ref(i) {
            Ok(ValueRef::Integer(v)) => Some(v),
            _ => None,
        }
    }

    /// The time in column `i`; `Err` for one that no capture can hold ([`MAX_TIME`]).
    pub fn time(&self, i: usize) -> Result<Option<i64>, OutOfRange> {
        match self.int(i) {
            Some(t) if !(-MAX_TIME..=MAX_TIME).contains(&t) => Err(OutOfRange),
            t => Ok(t),
        }
    }

    /// The integer in column `i` where it fits 32 bits.
    pub fn id(&self, i: usize) -> Option<u32> {
        self.int(i).and_then(|v| u32::try_from(v).ok())
    }

    /// The same as a number of the export's, or [`ExportId::NONE`].
    pub fn export_id(&self, i: usize) -> ExportId {
        ExportId::new(self.id(i))
    }

    /// The bytes in column `i`, whatever they encode.
    pub fn bytes(&self, i: usize) -> Option<&[u8]> {
        match self.row.get_ref(i) {
            Ok(ValueRef::Text(b) | ValueRef::Blob(b)) => Some(b),
            _ => None,
        }
    }

    /// The text in column `i`; bytes that are no UTF-8 (CP1251, Latin-1 names) become U+FFFD.
    pub fn text(&self, i: usize) -> Option<Cow<'_, str>> {
        self.bytes(i).map(String::from_utf8_lossy)
    }
}

impl Database {
    /// Opens an export read-only, on `threads` worker threads.
    ///
    /// # Errors
    /// Everything that shows before the first row is read: missing, unreadable, truncated, not SQLite, not nsys.
    pub fn open(
        path: &Path,
        threads: usize,
        progress: Option<Arc<dyn Progress>>,
    ) -> Result<Self, InputError> {
        check_header(path)?;
        let (main, immutable) = match connect(path, false).and_then(probe) {
            Ok(c) => (c, false),
            Err(e) if may_be_lock(&e) => match connect(path, true).and_then(probe) {
                // A hot journal means half-written pages; ignoring it would read them as if complete.
                Ok(_) if beside(path, "-journal") => return Err(unfinished(path)),
                // Reading on would leave out its rows without a word.
                Ok(_) if beside(path, "-wal") => return Err(InputError::WalUnreadable(path.to_owned())),
                Ok(c) => (c, true),
                Err(e) => return Err(sqlite_error(path, &e)),
            },
            Err(e) => return Err(sqlite_error(path, &e)),
        };
        let tables = list_tables(&main).map_err(|e| sqlite_error(path, &e))?;
        let shapes = list_shapes(&main, tables.keys()).map_err(|e| sqlite_error(path, &e))?;
        Ok(Self {
            path: path.to_owned(),
            immutable,
            threads: threads.max(1),
            tables,
            shapes,
            main: Mutex::new(main),
            progress,
        })
    }

    fn main(&self) -> MutexGuard<'_, Connection> {
        self.main.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file that was opened.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the export has this table.
    pub fn has_table(&self, table: &str) -> bool {
        self.tables.contains_key(table)
    }

    /// What stands under this name instead of a table that can be read in ranges of rows.
    pub(super) fn shape(&self, table: &str) -> Option<Shape> {
        self.shapes.get(table).copied()
    }

    /// Whether the export has this table with this column.
    pub(super) fn has_column(&self, table: &str, column: &str) -> bool {
        self.tables.get(table).is_some_and(|c| c.iter().any(|c| c == column))
    }

    /// Names of all tables and views.
    pub(super) fn table_names(&self) -> impl Iterator<Item = &str> {
        let views = self.shapes.keys().filter(|name| !self.tables.contains_key(*name));
        self.tables.keys().chain(views).map(String::as_str)
    }

    /// Reads `columns` of `table` in rowid order; `rows` receives each row with the accumulator of its range.
    ///
    /// Returns the accumulators in rowid order: concatenated they are the table, whatever the thread count. An absent
    /// table yields none, as does one without rowid ([`super::lacks`] says so). The rowid can be asked for as a column named `rowid`.
    pub fn scan<T: Default + Send>(
        &self,
        table: &str,
        columns: &[&str],
        rows: impl Fn(&mut T, &Cells) + Sync,
    ) -> Result<Vec<T>, InputError> {
        let readable = || self.shape(table).is_none();
        let Some(select) = self.select(table, columns).filter(|_| readable()) else { return Ok(Vec::new()) };
        let (path, immutable, progress) = (&self.path, self.immutable, self.progress.as_deref());
        let run = || -> rusqlite::Result<Vec<T>> {
            let Some((first, last)) = rowid_bounds(&self.main(), table)? else { return Ok(Vec::new()) };
            let ranges = split(first, last);
            if let Some(p) = progress {
                p.begins(&format!("reading {table}"), last.abs_diff(first).saturating_add(1), "row");
            }
            let sql = format!("{select} WHERE rowid BETWEEN ?1 AND ?2");
            parallel(
                self.threads.min(ranges.len()),
                ranges.len(),
                || connect(path, immutable),
                |c, i| {
                    let mut out = T::default();
                    let mut statement = c.prepare(&sql)?;
                    let mut cursor = statement.query([ranges[i].0, ranges[i].1])?;
                    while let Some(row) = cursor.next()? {
                        rows(&mut out, &Cells { row });
                    }
                    if let Some(p) = progress {
                        p.advance(ranges[i].1.abs_diff(ranges[i].0).saturating_add(1));
                    }
                    Ok(out)
                },
            )
        };
        run().map_err(|e| sqlite_error(&self.path, &e))
    }

    /// Reads `columns` of the rows of `table` whose `key` column is one of `keys`, one indexed look-up each.
    ///
    /// `rows` gets the accumulator of its slice of `keys`, the index of the key, and the row; look-ups run in parallel
    /// slices, returned in order. `order` is appended to the statement (`ORDER BY` of a few rows, `LIMIT`).
    pub fn look_up<T: Default + Send>(
        &self,
        table: &str,
        columns: &[&str],
        key: &str,
        order: &str,
        keys: &[i64],
        rows: impl Fn(&mut T, usize, &Cells) + Sync,
    ) -> Result<Vec<T>, InputError> {
        /// Keys a worker takes at a time.
        const SLICE: usize = 4096;
        let Some(select) = self.select(table, columns) else { return Ok(Vec::new()) };
        let sql = format!("{select} WHERE {} = ?1 {order}", quote(key));
        let slices = keys.len().div_ceil(SLICE);
        let (path, immutable) = (&self.path, self.immutable);
        parallel(
            self.threads.min(slices),
            slices,
            || connect(path, immutable),
            |c, i| {
                let mut out = T::default();
                let mut statement = c.prepare(&sql)?;
                for (k, key) in keys.iter().enumerate().skip(i * SLICE).take(SLICE) {
                    let mut cursor = statement.query([key])?;
                    while let Some(row) = cursor.next()? {
                        rows(&mut out, k, &Cells { row });
                    }
                }
                Ok(out)
            },
        )
        .map_err(|e| sqlite_error(&self.path, &e))
    }

    /// Whether `column` leads an index (or is the rowid), so that [`Self::look_up`] does not scan the table per key.
    pub fn is_indexed(&self, table: &str, column: &str) -> bool {
        if column == "rowid" {
            return true;
        }
        let leads = |sql: &str| -> rusqlite::Result<bool> {
            let main = self.main();
            let mut plan = main.prepare(sql)?;
            let mut rows = plan.query([0])?;
            let Some(row) = rows.next()? else { return Ok(false) };
            Ok(row.get_ref(3)?.as_str().is_ok_and(|d| d.contains("SEARCH") && !d.contains("AUTOMATIC")))
        };
        let (t, c) = (quote(table), quote(column));
        self.has_column(table, column)
            && leads(&format!("EXPLAIN QUERY PLAN SELECT 1 FROM {t} WHERE {c} = ?1")).unwrap_or(false)
    }

    /// Reads a small table whole, on this thread.
    pub fn rows(
        &self,
        table: &str,
        columns: &[&str],
        mut each: impl FnMut(&Cells),
    ) -> Result<(), InputError> {
        let Some(select) = self.select(table, columns) else { return Ok(()) };
        let mut run = |s: rusqlite::Result<Statement>| -> rusqlite::Result<()> {
            let mut statement = s?;
            let mut cursor = statement.query([])?;
            while let Some(row) = cursor.next()? {
                each(&Cells { row });
            }
            Ok(())
        };
        let main = self.main();
        run(main.prepare(&select)).map_err(|e| sqlite_error(&self.path, &e))
    }

    fn select(&self, table: &str, columns: &[&str]) -> Option<String> {
        let have = self.tables.get(table)?;
        let list: Vec<String> = columns
            .iter()
            .map(|&c| if c == "rowid" || have.iter().any(|h| h == c) { quote(c) } else { "NULL".to_owned() })
            .collect();
        Some(format!("SELECT {} FROM {}", list.join(", "), quote(table)))
    }
}

/// Runs `work(connection, 0..jobs)` on `threads` threads and returns the results in job order.
///
/// The first error by job number wins, so that a damaged file gives the same message whatever the thread count.
fn parallel<T: Send>(
    threads: usize,
    jobs: usize,
    open: impl Fn() -> rusqlite::Result<Connection> + Sync,
    work: impl Fn(&Connection, usize) -> rusqlite::Result<T> + Sync,
) -> rusqlite::Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, rusqlite::Result<T>)>> = Mutex::new(Vec::with_capacity(jobs));
    let worker = || {
        let connection = open();
        loop {
            let job = next.fetch_add(1, Ordering::Relaxed);
            if job >= jobs {
                return;
            }
            let result = match &connection {
                Ok(c) => work(c, job),
                // The same failure for every job; which copy is reported does not matter.
                Err(_) => open().and_then(|c| work(&c, job)),
            };
            let failed = result.is_err();
            done.lock().unwrap_or_else(PoisonError::into_inner).push((job, result));
            if failed {
                return;
            }
        }
    };
    std::thread::scope(|s| {
        for _ in 1..threads {
            s.spawn(worker);
        }
        worker();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(job, _)| *job);
    done.into_iter().map(|(_, r)| r).collect()
}

fn connect(path: &Path, immutable: bool) -> rusqlite::Result<Connection> {
    // NO_MUTEX: each connection stays on one thread; 22-25 % faster than the serialised mode.
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = if immutable {
        let uri = format!("file:{}?immutable=1", percent_encode(path));
        Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)?
    } else {
        Connection::open_with_flags(path, flags)?
    };
    // What the file's schema says (views, defaults) is not trusted to call functions.
    // One read transaction: without it each of many thousand look-ups would lock and check for journals anew.
    connection.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA query_only = ON; BEGIN;")?;
    Ok(connection)
}

/// Reads the schema once: opening alone touches nothing.
fn probe(connection: Connection) -> rusqlite::Result<Connection> {
    connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))?;
    Ok(connection)
}

fn list_tables(connection: &Connection) -> rusqlite::Result<FxHashMap<String, Vec<String>>> {
    let mut names = connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table'")?;
    let names: Vec<String> = names
        .query_map([], |r| Ok(r.get_ref(0)?.as_bytes().map(|b| String::from_utf8_lossy(b).into_owned())?))?
        .collect::<Result<_, _>>()?;
    let mut tables = FxHashMap::default();
    for name in names {
        let mut info = connection.prepare(&format!("PRAGMA table_info({})", quote(&name)))?;
        let columns = info
            .query_map([], |r| {
                Ok(r.get_ref(1)?.as_bytes().map(|b| String::from_utf8_lossy(b).into_owned())?)
            })?
            .collect::<Result<_, _>>()?;
        tables.insert(name, columns);
    }
    Ok(tables)
}

/// Views, and those of the tables that have no rowid.
fn list_shapes<'a>(
    connection: &Connection,
    tables: impl Iterator<Item = &'a String>,
) -> rusqlite::Result<FxHashMap<String, Shape>> {
    let mut views = connection.prepare("SELECT name FROM sqlite_master WHERE type = 'view'")?;
    let mut shapes: FxHashMap<String, Shape> = views
        .query_map([], |r| Ok(r.get_ref(0)?.as_bytes().map(|b| String::from_utf8_lossy(b).into_owned())?))?
        .map(|name| Ok((name?, Shape::View)))
        .collect::<rusqlite::Result<_>>()?;
    let mut listed = connection.prepare("SELECT wr FROM pragma_table_list(?1) WHERE schema = 'main'")?;
    for name in tables {
        let mut rows = listed.query([name])?;
        if let Some(row) = rows.next()?
            && row.get_ref(0)?.as_i64().is_ok_and(|without_rowid| without_rowid == 1)
        {
            shapes.insert(name.clone(), Shape::WithoutRowid);
        }
    }
    Ok(shapes)
}

/// Smallest and largest rowid, in two statements: together in one they would scan the table.
fn rowid_bounds(connection: &Connection, table: &str) -> rusqlite::Result<Option<(i64, i64)>> {
    let ask = |f: &str| {
        connection.query_row(&format!("SELECT {f}(rowid) FROM {}", quote(table)), [], |r| {
            r.get::<_, Option<i64>>(0)
        })
    };
    Ok(ask("min")?.zip(ask("max")?))
}

fn split(first: i64, last: i64) -> Vec<(i64, i64)> {
    let span = last.abs_diff(first) / MAX_RANGES + 1;
    let step = i64::try_from(span).unwrap_or(i64::MAX).max(RANGE_ROWS);
    let mut ranges = Vec::new();
    let mut from = first;
    loop {
        let to = from.saturating_add(step - 1).min(last);
        ranges.push((from, to));
        if to >= last {
            return ranges;
        }
        from = to + 1;
    }
}

fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn percent_encode(path: &Path) -> String {
    path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23")
}

pub(super) fn beside(path: &Path, suffix: &str) -> bool {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    std::fs::metadata(PathBuf::from(name)).is_ok_and(|m| m.len() > 0)
}

/// Errors that opening can give for a good file in a read-only place, or one with a journal beside it.
fn may_be_lock(e: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::*;
    matches!(
        e.sqlite_error_code(),
        Some(CannotOpen | ReadOnly | DatabaseBusy | DatabaseLocked | FileLockingProtocolFailed)
    )
}

fn unfinished(path: &Path) -> InputError {
    InputError::Unfinished { path: path.to_owned(), command: commands::export(path) }
}

/// Sorts SQLite's errors by what the user can do about them.
fn sqlite_error(path: &Path, e: &rusqlite::Error) -> InputError {
    use rusqlite::ErrorCode::*;
    let (path, command) = (path.to_owned(), commands::export(path));
    match e.sqlite_error_code() {
        Some(NotADatabase) => InputError::NotSqlite { path, command: commands::some_export() },
        Some(PermissionDenied) => InputError::Permission(path),
        Some(DatabaseCorrupt) => {
            InputError::Damaged { path, reason: "a page is not what it should be".into(), command }
        }
        Some(DatabaseBusy | DatabaseLocked | ReadOnly) => InputError::Unfinished { path, command },
        Some(CannotOpen | SystemIoFailure) => InputError::Unreadable { path, reason: e.to_string() },
        _ => InputError::Damaged { path, reason: e.to_string(), command },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_every_rowid_once() {
        for (first, last) in
            [(1, 1), (1, RANGE_ROWS), (1, RANGE_ROWS + 1), (-5, 3 * RANGE_ROWS), (i64::MIN, i64::MAX)]
        {
            let ranges = split(first, last);
            assert_eq!((ranges[0].0, ranges[ranges.len() - 1].1), (first, last));
            assert!(ranges.windows(2).all(|w| w[0].1 + 1 == w[1].0), "{first}..{last}");
            assert!(ranges.len() as u64 <= MAX_RANGES + 2);
        }
    }
}
