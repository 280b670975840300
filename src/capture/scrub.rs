//! Takes the secrets out of an export.
//!
//! nsys keeps the program's environment in its report, and that of other processes: as NUL-separated blocks among its strings,
//! with `;` between entries, and as `NAME="value"`; and the program's arguments. Values of six characters and more go
//! wherever they occur, also as JSON writes them; shorter ones where they stand behind their name. Costs one pass over
//! every text.

use super::environment::{Environment, replaced};
use super::secrets::{is_named, is_unmistakable, within};
use crate::text::sql_quote;
use aho_corasick::{AhoCorasick, Input, MatchKind};
use anyhow::{Context, Result};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, params};
use std::collections::{BTreeMap, BTreeSet};
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
        let mut before = Bytes::new();
        for row in
            rows(db, "SELECT name, value FROM META_DATA_CAPTURE WHERE value IS NOT NULL ORDER BY rowid")?
        {
            let [name, value] = &row[..] else { continue };
            if name.ends_with(b":ENVIRONMENT_VARIABLE") {
                if let Some((name, value)) = parted(value) {
                    let bare = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
                    self.note(name, bare.unwrap_or(value));
                }
            } else if memchr::memmem::find(name, b":ARGUMENT_").is_some() {
                self.argument(value, &before);
                before.clone_from(value);
            }
        }
        Ok(())
    }

    /// `--api-key=VALUE`, `API_KEY=VALUE`, `--api-key VALUE`, or a value that tells by itself.
    fn argument(&mut self, argument: &[u8], before: &[u8]) {
        const NAME: &[u8] = b"an argument of the program";
        for secret in within(argument) {
            self.hide(secret, NAME);
        }
        let name = |word: &[u8]| -> Bytes {
            let word = &word[word.iter().take_while(|&&byte| byte == b'-').count()..];
            word.iter().map(|&byte| if byte == b'-' { b'_' } else { byte }).collect()
        };
        if let Some((option, value)) = parted(argument) {
            if is_named(&name(option), value) && !value.is_empty() {
                self.hide(value, NAME);
                let hidden = [option, b"=***"].concat();
                self.entries.insert(argument.to_vec(), (hidden, NAME.to_vec()));
            }
        } else if before.starts_with(b"-") && !before.contains(&b'=') && is_named(&name(before), argument) {
            self.hide(argument, NAME);
        }
    }

    /// Removes a value wherever it occurs, if nothing else can be meant.
    fn hide(&mut self, secret: &[u8], name: &[u8]) {
        if !is_unmistakable(secret) {
            return;
        }
        self.anywhere.insert(secret.to_vec(), name.to_vec());
        let json = std::str::from_utf8(secret).ok().and_then(|text| serde_json::to_string(text).ok());
        if let Some(inner) = json.as_deref().and_then(|json| json.strip_prefix('"')?.strip_suffix('"')) {
            self.anywhere.insert(inner.as_bytes().to_vec(), name.to_vec());
        }
    }

    fn note(&mut self, name: &[u8], value: &[u8]) {
        let mut found = within(value);
        if is_named(name, value) {
            found.push(value);
        }
        let mut hidden = value.to_vec();
        for secret in found.into_iter().filter(|secret| !secret.is_empty()) {
            self.hide(secret, name);
            hidden = replaced(&hidden, secret);
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

    /// Replaces them in every text and blob: the names of what was removed.
    fn replace(&self, db: &Connection) -> Result<BTreeSet<Bytes>> {
        let mut removed = BTreeSet::new();
        let (entries, anywhere) = (Finder::new(self.entries.keys())?, Finder::new(self.anywhere.keys())?);
        for table in rows(db, "SELECT name FROM sqlite_master WHERE type = 'table'")?.concat() {
            let table = sql_quote(&String::from_utf8_lossy(&table));
            for column in rows(db, &format!("SELECT name FROM pragma_table_info({table})"))?.concat() {
                let column = sql_quote(&String::from_utf8_lossy(&column));
                let mut changed: Vec<(i64, bool, Bytes)> = Vec::new();
                let mut all = db.prepare(&format!(
                    "SELECT rowid, {column} FROM {table} WHERE typeof({column}) IN ('text', 'blob')"
                ))?;
                let mut found = all.query([])?;
                while let Some(row) = found.next()? {
                    let value = row.get_ref(1)?;
                    let text = bytes(value);
                    let new = entries.replace(text, |found, from, to| {
                        let ends = |byte: Option<&u8>| byte.is_none_or(|byte| matches!(byte, 0 | b';'));
                        let whole =
                            ends(from.checked_sub(1).and_then(|at| text.get(at))) && ends(text.get(to));
                        let (new, name) = self.entries.get(found).filter(|_| whole)?;
                        removed.insert(name.clone());
                        Some(new.clone())
                    });
                    let new = anywhere.replace(&new, |found, _, _| {
                        removed.insert(self.anywhere.get(found)?.clone());
                        Some(b"***".to_vec())
                    });
                    if new != text {
                        changed.push((row.get(0)?, matches!(value, ValueRef::Text(_)), new));
                    }
                }
                for (row, text, new) in changed {
                    let kind = if text { "TEXT" } else { "BLOB" };
                    let update = format!("UPDATE {table} SET {column} = CAST(?1 AS {kind}) WHERE rowid = ?2");
                    db.execute(&update, params![new, row])?;
                }
            }
        }
        Ok(removed)
    }
}

/// Finds any of some texts, of those that begin alike the longest.
struct Finder(Option<AhoCorasick>);

impl Finder {
    fn new<'a>(texts: impl Iterator<Item = &'a Bytes>) -> Result<Self> {
        let texts: Vec<&Bytes> = texts.collect();
        let build = || AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&texts);
        let built = (!texts.is_empty()).then(build).transpose();
        Ok(Self(built.context("the environment has too many secrets to look for")?))
    }

    /// `new`: what comes in the place of a text that was found, from and to there; `None` leaves it.
    fn replace(&self, text: &[u8], mut new: impl FnMut(&[u8], usize, usize) -> Option<Bytes>) -> Bytes {
        let Some(finder) = &self.0 else { return text.to_vec() };
        let (mut out, mut kept, mut from) = (Bytes::new(), 0, 0);
        while let Some(found) = finder.find(Input::new(text).range(from..)) {
            let (start, end) = (found.start(), found.end());
            from = start + 1;
            if let Some(new) = new(&text[start..end], start, end) {
                out.extend_from_slice(&text[kept..start]);
                out.extend(new);
                (kept, from) = (end, end);
            }
        }
        out.extend_from_slice(&text[kept..]);
        out
    }
}

/// Name and value of `NAME=VALUE`.
fn parted(entry: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(b'=', entry)?;
    Some((&entry[..at], &entry[at + 1..]))
}
