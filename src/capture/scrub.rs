//! Takes the secrets out of an export.
//!
//! nsys keeps the program's environment in its report, and that of processes that the user may read: as NUL-separated blocks among
//! its strings, with `;` between entries, and as `NAME="value"`. Values of [`LONG`] characters and more go wherever they occur;
//! shorter ones where they stand behind their name. Costs one pass over every column of text.

use super::environment::{Environment, replaced};
use super::secrets::{LONG, is_named, within};
use anyhow::{Context, Result};
use regex::bytes::{Captures, Regex};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, params};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

type Bytes = Vec<u8>;

#[derive(Default)]
struct Secrets {
    unset: BTreeSet<Bytes>,
    /// Values that are removed wherever they occur, and the names of their variables.
    anywhere: BTreeMap<Bytes, Bytes>,
    /// `NAME=VALUE`, to the text in its place and the name.
    entries: BTreeMap<Bytes, (Bytes, Bytes)>,
}

/// Removes secrets from an export that nobody else reads yet: the names of their variables.
///
/// # Errors
/// The export is no SQLite file, or cannot be written.
pub fn scrub(export: &Path, environment: &Environment) -> Result<Vec<String>> {
    let db = Connection::open_with_flags(export, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    db.execute_batch("PRAGMA secure_delete = ON; PRAGMA journal_mode = MEMORY; BEGIN;")?;
    let unset = environment.withheld.iter().map(|name| name.as_bytes().to_vec()).collect();
    let mut secrets = Secrets { unset, ..Secrets::default() };
    secrets.collect(&db, environment)?;
    let removed = secrets.replace(&db)?;
    db.execute_batch("COMMIT")?;
    if !removed.is_empty() {
        db.execute_batch("VACUUM")?;
    }
    db.close().map_err(|(_, error)| error)?;
    Ok(removed.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// The rows of a query, as bytes; none where older exports lack the table.
fn rows(db: &Connection, query: &str) -> Result<Vec<Vec<Bytes>>> {
    let Ok(mut statement) = db.prepare(query) else { return Ok(Vec::new()) };
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| {
        (0..columns)
            .map(|column| Ok(bytes(row.get_ref(column)?).to_vec()))
            .collect::<rusqlite::Result<Vec<_>>>()
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn bytes(value: ValueRef<'_>) -> &[u8] {
    match value {
        ValueRef::Text(text) | ValueRef::Blob(text) => text,
        _ => &[],
    }
}

impl Secrets {
    fn collect(&mut self, db: &Connection, environment: &Environment) -> Result<()> {
        for (name, value) in &environment.all {
            self.note(name.as_bytes(), value.as_bytes());
        }
        let mut blocks = rows(db, "SELECT value FROM StringIds WHERE instr(CAST(value AS BLOB), x'00')")?;
        blocks.extend(rows(db, "SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name LIKE '%Environment%'")?);
        for block in blocks.iter().flatten() {
            let by = if block.contains(&0) { 0 } else { b';' };
            for (name, value) in block.split(|&byte| byte == by).filter_map(parted) {
                self.note(name, value);
            }
        }
        for row in rows(db, "SELECT name, value FROM META_DATA_CAPTURE WHERE value IS NOT NULL")? {
            let [name, value] = &row[..] else { continue };
            if name.ends_with(b":ENVIRONMENT_VARIABLE") {
                if let Some((name, value)) = parted(value) {
                    let value = value
                        .strip_prefix(b"\"")
                        .and_then(|value| value.strip_suffix(b"\""))
                        .unwrap_or(value);
                    self.note(name, value);
                }
            } else if memchr::memmem::find(name, b":ARGUMENT_").is_some() {
                self.note(b"an argument of the program", value);
            }
        }
        Ok(())
    }

    fn note(&mut self, name: &[u8], value: &[u8]) {
        let mut found = within(value);
        if is_named(name, value) {
            found.push(value);
        }
        let mut hidden = value.to_vec();
        for secret in found {
            if secret.len() >= LONG && !Path::new(OsStr::from_bytes(secret)).exists() {
                self.anywhere.insert(secret.to_vec(), name.to_vec());
            }
            if !secret.is_empty() {
                hidden = replaced(&hidden, secret);
            }
        }
        if self.unset.contains(name) {
            hidden = b"***".to_vec();
        }
        if hidden != value {
            let entry = |quote: &[u8], value: &[u8]| [name, b"=", quote, value, quote].concat();
            for quote in [&b""[..], b"\""] {
                self.entries.insert(entry(quote, value), (entry(quote, &hidden), name.to_vec()));
            }
        }
    }

    /// Replaces them in every column of text: the names of what was removed.
    fn replace(&self, db: &Connection) -> Result<BTreeSet<Bytes>> {
        let mut removed = BTreeSet::new();
        if self.entries.is_empty() && self.anywhere.is_empty() {
            return Ok(removed);
        }
        let part = one_of(self.anywhere.keys())?;
        for table in rows(db, "SELECT name FROM sqlite_master WHERE type = 'table'")?.concat() {
            let table = quoted(&String::from_utf8_lossy(&table));
            let columns =
                rows(db, &format!("SELECT name FROM pragma_table_info({table}) WHERE upper(type) = 'TEXT'"))?;
            for column in columns.concat() {
                let column = quoted(&String::from_utf8_lossy(&column));
                let mut changed: Vec<(i64, Bytes)> = Vec::new();
                let mut all = db.prepare(&format!(
                    "SELECT rowid, {column} FROM {table} WHERE typeof({column}) = 'text'"
                ))?;
                let mut found = all.query([])?;
                while let Some(row) = found.next()? {
                    let text = bytes(row.get_ref(1)?);
                    let new = self.without(text, part.as_ref(), &mut removed);
                    if new != text {
                        changed.push((row.get(0)?, new));
                    }
                }
                let mut update =
                    db.prepare(&format!("UPDATE {table} SET {column} = CAST(?1 AS TEXT) WHERE rowid = ?2"))?;
                for (row, text) in changed {
                    update.execute(params![text, row])?;
                }
            }
        }
        Ok(removed)
    }

    fn without(&self, text: &[u8], part: Option<&Regex>, removed: &mut BTreeSet<Bytes>) -> Bytes {
        // Entries are whole between NUL or `;`; a value with `;` in it is whole between NUL.
        let mut out = self.entries_of(text, 0, removed);
        out = self.entries_of(&out, b';', removed);
        let Some(part) = part else { return out };
        let new = part.replace_all(&out, |found: &Captures<'_>| {
            removed.extend(self.anywhere.get(&found[0]).cloned());
            b"***".to_vec()
        });
        new.into_owned()
    }

    fn entries_of(&self, text: &[u8], by: u8, removed: &mut BTreeSet<Bytes>) -> Bytes {
        let mut parts: Vec<&[u8]> = text.split(|&byte| byte == by).collect();
        for part in &mut parts {
            if let Some((new, name)) = self.entries.get(*part) {
                removed.insert(name.clone());
                *part = new;
            }
        }
        parts.join(&by)
    }
}

/// Name and value of `NAME=VALUE`.
fn parted(entry: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(b'=', entry)?;
    Some((&entry[..at], &entry[at + 1..]))
}

/// Finds any of some texts, the longest first.
fn one_of<'a>(texts: impl Iterator<Item = &'a Bytes>) -> Result<Option<Regex>> {
    let mut texts: Vec<&Bytes> = texts.collect();
    texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
    if texts.is_empty() {
        return Ok(None);
    }
    let escaped =
        texts.iter().map(|text| text.iter().map(|byte| format!("\\x{byte:02x}")).collect::<String>());
    let pattern = format!("(?-u){}", escaped.collect::<Vec<_>>().join("|"));
    Ok(Some(Regex::new(&pattern).context("the environment's secrets are too many")?))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
