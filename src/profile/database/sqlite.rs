//! Everything that is asked of SQLite: opening, the schema, rows by range and by key, and its errors.

use super::{Cells, Parts, ReadPart, Shape, Source};
use crate::error::InputError;
use crate::profile::commands;
use crate::profile::header::beside;
use crate::text::sql_quote;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use rustc_hash::FxHashMap;
use std::path::Path;

/// Rows a worker takes at a time: large enough that preparing a statement does not show (measured: 100 ranges
/// of a 100 M row table cost nothing visible), small enough that two workers end together.
const RANGE_ROWS: i64 = 1 << 15;
/// No more ranges than this, however sparse the rowids of a hostile file.
const MAX_RANGES: u64 = 4096;

/// The flag says whether the file is read without locks and -wal: only where the directory forbids anything
/// else. `path`: as given; `file`: with links resolved.
///
/// # Errors
/// [`InputError`]: SQLite cannot read it, or not all of it.
pub(super) fn open(path: &Path, file: &Path) -> Result<(Connection, bool), InputError> {
    match connect(file, false).and_then(probe) {
        Ok(c) => Ok((c, false)),
        Err(e) if may_be_lock(&e) => match connect(file, true).and_then(probe) {
            // A hot journal means half-written pages; ignoring it would read them as if complete.
            Ok(_) if beside(file, "-journal") => Err(unfinished(path)),
            // Reading on would silently leave out its rows.
            Ok(_) if beside(file, "-wal") => Err(InputError::WalUnreadable(path.to_owned())),
            Ok(c) => Ok((c, true)),
            Err(e) => Err(sqlite_error(path, &e)),
        },
        Err(e) => Err(sqlite_error(path, &e)),
    }
}

pub(super) fn connect(path: &Path, immutable: bool) -> rusqlite::Result<Connection> {
    // NO_MUTEX: each connection stays on one thread; 22-25 % faster than the serialised mode.
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = if immutable {
        let uri = format!("file:{}?immutable=1", percent_encode(path));
        Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)?
    } else {
        Connection::open_with_flags(path, flags)?
    };
    // Views and defaults of the file's schema may call no functions. A cell outside its page is an error:
    // else the report would depend on what lies in memory there. One read transaction: else each of many
    // thousand look-ups would lock and check for journals anew.
    connection.execute_batch(
        "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA query_only = ON; BEGIN;",
    )?;
    Ok(connection)
}

/// Reads the schema once: opening alone touches nothing.
fn probe(connection: Connection) -> rusqlite::Result<Connection> {
    connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))?;
    Ok(connection)
}

pub(super) fn list_tables(connection: &Connection) -> rusqlite::Result<FxHashMap<String, Vec<String>>> {
    let columns = |name: String| {
        let columns = texts(connection, &format!("PRAGMA table_info({})", sql_quote(&name)), 1)?;
        Ok((name, columns))
    };
    let names = texts(connection, "SELECT name FROM sqlite_master WHERE type = 'table'", 0)?;
    names.into_iter().map(columns).collect()
}

fn texts(connection: &Connection, sql: &str, column: usize) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(sql)?;
    let text = |r: &rusqlite::Row| Ok(String::from_utf8_lossy(r.get_ref(column)?.as_bytes()?).into_owned());
    statement.query_map([], text)?.collect()
}

/// Views, and tables without rowid.
pub(super) fn list_shapes<'a>(
    connection: &Connection,
    tables: impl Iterator<Item = &'a String>,
) -> rusqlite::Result<FxHashMap<String, Shape>> {
    let views = texts(connection, "SELECT name FROM sqlite_master WHERE type = 'view'", 0)?;
    let mut shapes: FxHashMap<_, _> = views.into_iter().map(|name| (name, Shape::View)).collect();
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

pub(super) struct Ranges<'a> {
    pub path: &'a Path,
    pub immutable: bool,
    /// With two parameters: the first and the last rowid of a range.
    pub sql: String,
    pub ranges: Vec<(i64, i64)>,
}

impl Parts for Ranges<'_> {
    type Error = rusqlite::Error;

    fn len(&self) -> usize {
        self.ranges.len()
    }

    fn reader(&self) -> rusqlite::Result<Box<dyn ReadPart<rusqlite::Error> + '_>> {
        Ok(Box::new((self, connect(self.path, self.immutable)?)))
    }
}

impl ReadPart<rusqlite::Error> for (&Ranges<'_>, Connection) {
    fn read(&mut self, part: usize, each: &mut dyn FnMut(&Cells)) -> rusqlite::Result<u64> {
        let (first, last) = self.0.ranges[part];
        rows(self.1.prepare(&self.0.sql)?.query([first, last])?, each)?;
        Ok(last.abs_diff(first).saturating_add(1))
    }
}

pub(super) fn rows(mut cursor: rusqlite::Rows, mut each: impl FnMut(&Cells)) -> rusqlite::Result<()> {
    while let Some(row) = cursor.next()? {
        each(&Cells(Source::Sqlite(row)));
    }
    Ok(())
}

pub(super) fn int(row: &rusqlite::Row, i: usize) -> Option<i64> {
    match row.get_ref(i) {
        Ok(ValueRef::Integer(v)) => Some(v),
        _ => None,
    }
}

/// How SQLite would look up a row of `table` by `column`, in its own words.
pub(super) fn plan(connection: &Connection, table: &str, column: &str) -> rusqlite::Result<String> {
    let sql =
        format!("EXPLAIN QUERY PLAN SELECT 1 FROM {} WHERE {} = ?1", sql_quote(table), sql_quote(column));
    let mut plan = connection.prepare(&sql)?;
    let mut rows = plan.query([0])?;
    let Some(row) = rows.next()? else { return Ok(String::new()) };
    Ok(String::from_utf8_lossy(row.get_ref(3)?.as_bytes()?).into_owned())
}

/// Smallest and largest rowid, in two statements: together in one they would scan the table.
pub(super) fn rowid_bounds(connection: &Connection, table: &str) -> rusqlite::Result<Option<(i64, i64)>> {
    let ask = |f: &str| {
        connection.query_row(&format!("SELECT {f}(rowid) FROM {}", sql_quote(table)), [], |r| {
            r.get::<_, Option<i64>>(0)
        })
    };
    Ok(ask("min")?.zip(ask("max")?))
}

pub(super) fn split(first: i64, last: i64) -> Vec<(i64, i64)> {
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

fn percent_encode(path: &Path) -> String {
    path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23")
}

/// Errors of opening a good file in a read-only place, or one with a journal beside it.
fn may_be_lock(e: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::*;
    matches!(
        e.sqlite_error_code(),
        Some(CannotOpen | ReadOnly | DatabaseBusy | DatabaseLocked | FileLockingProtocolFailed)
    )
}

fn unfinished(path: &Path) -> InputError {
    InputError::Unfinished(path.to_owned(), commands::export(path))
}

/// Sorts SQLite's errors by what the user can do about them.
pub(super) fn sqlite_error(path: &Path, e: &rusqlite::Error) -> InputError {
    use rusqlite::ErrorCode::*;
    let (path, command) = (path.to_owned(), commands::export(path));
    match e.sqlite_error_code() {
        Some(NotADatabase) => InputError::NotSqlite(path, commands::some_export()),
        Some(PermissionDenied) => InputError::Permission(path),
        Some(DatabaseCorrupt) => {
            InputError::Damaged { path, reason: "a page is not what it should be".into(), command }
        }
        Some(DatabaseBusy | DatabaseLocked | ReadOnly) => InputError::Unfinished(path, command),
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
