//! Strings of an export: names referred to by id, fetched once each.

use crate::error::InputError;
use crate::profile::database::{Cells, Database};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Longest name kept, in bytes: StringIds also holds environment blocks and program output.
const MAX_NAME: usize = 4096;

const TABLE: &str = "StringIds";

#[derive(Default)]
pub struct Strings {
    /// `None` for an id that the export lacks, so that it is not looked up again.
    by_id: FxHashMap<i64, Option<Arc<str>>>,
    access: Option<Access>,
}

enum Access {
    Key,
    /// The row of each id: copied tables (trimmed exports) have no key, and each look-up would scan them.
    Rows(FxHashMap<i64, i64>),
}

impl Access {
    fn new(db: &Database) -> Result<Self, InputError> {
        if db.is_indexed(TABLE, "id") {
            return Ok(Self::Key);
        }
        let rows = db.scan(TABLE, &["id", "rowid"], |row| row.int(0).zip(row.int(1)))?;
        // The first row of an id counts.
        Ok(Self::Rows(rows.into_iter().rev().collect()))
    }
}

impl Strings {
    /// Skips ids that are here already.
    pub fn fetch(&mut self, db: &Database, ids: impl IntoIterator<Item = i64>) -> Result<(), InputError> {
        let mut missing: Vec<i64> = ids.into_iter().filter(|id| !self.by_id.contains_key(id)).collect();
        missing.sort_unstable();
        missing.dedup();
        if missing.is_empty() {
            return Ok(());
        }
        let access = match self.access.take() {
            Some(access) => access,
            None => Access::new(db)?,
        };
        // Ids with their look-up keys.
        let (column, keys): (&str, Vec<(i64, i64)>) = match self.access.insert(access) {
            Access::Key => ("id", missing.iter().map(|&id| (id, id)).collect()),
            Access::Rows(row_of) => {
                ("rowid", missing.iter().filter_map(|id| Some((*id, *row_of.get(id)?))).collect())
            }
        };
        let (ids, keys): (Vec<i64>, Vec<i64>) = keys.into_iter().unzip();
        type Texts = Vec<(i64, Option<Arc<str>>)>;
        let text = |out: &mut Texts, k: usize, row: &Cells| {
            out.extend(row.bytes(0).map(|bytes| (ids[k], Some(clean(bytes)))));
        };
        let found: Texts = db.look_up(TABLE, &["value"], (column, 1), &keys, text, Vec::extend)?;
        self.by_id.extend(missing.into_iter().map(|id| (id, None)).chain(found));
        Ok(())
    }

    /// `None` if it was not fetched or does not exist.
    pub fn get(&self, id: i64) -> Option<&Arc<str>> {
        self.by_id.get(&id)?.as_ref()
    }
}

pub type Test<'a> = &'a (dyn Fn(&[u8]) -> bool + Sync);

/// For each test the ids of the strings that pass, by one scan that keeps no text.
pub fn ids_of(db: &Database, tests: &[Test]) -> Result<Vec<FxHashSet<i64>>, InputError> {
    let passed = |row: &Cells| {
        let (id, value) = (row.int(0)?, row.bytes(1)?);
        let tests: Vec<usize> = (0..tests.len()).filter(|&i| tests[i](value)).collect();
        (!tests.is_empty()).then_some((id, tests))
    };
    let mut ids = vec![FxHashSet::default(); tests.len()];
    for (id, passed) in db.scan(TABLE, &["id", "value"], passed)? {
        passed.into_iter().for_each(|test| _ = ids[test].insert(id));
    }
    Ok(ids)
}

/// Bytes of a name as text: cut at the first NUL, bounded, invalid UTF-8 replaced, HTML escapes undone.
pub fn clean(bytes: &[u8]) -> Arc<str> {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len()).min(MAX_NAME);
    let text = String::from_utf8_lossy(&bytes[..end]);
    if text.contains('&') { unescape_html(&text).into() } else { text.into() }
}

/// Undoes five escapes that nsys writes into function names. `&amp;` last, so that nothing is undone twice.
fn unescape_html(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&apos;", "'")
        .replace("&amp;", "&")
}

/// The API's name without suffixes of version and linkage: `_v3020`, `_ptsz`, `_ptds`.
///
/// A driver call's `_v2` stays: it tells two different entry points apart.
pub fn base_name(name: &str) -> &str {
    let name = name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds")).unwrap_or(name);
    let name = match name.rsplit_once("_v") {
        Some((base, digits))
            if (4..=5).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit()) =>
        {
            base
        }
        _ => name,
    };
    name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds")).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_out_as_they_were_written() {
        assert_eq!(&*clean(b"&lt;module&gt;"), "<module>");
        assert_eq!(&*clean(b"a&amp;lt;b"), "a&lt;b");
        assert_eq!(&*clean(b"Gei\xe1"), "Gei\u{fffd}");
        assert_eq!(&*clean(b"PATH=/bin\0SECRET=1"), "PATH=/bin");
    }

    #[test]
    fn suffixes_of_version_and_linkage_go() {
        for (name, base) in [
            ("cudaStreamSynchronize_v3020", "cudaStreamSynchronize"),
            ("cudaStreamSynchronize_ptsz_v7000", "cudaStreamSynchronize"),
            ("cudaStreamSynchronize_v7000_ptsz", "cudaStreamSynchronize"),
            ("cudaGraphLaunch_v10000", "cudaGraphLaunch"),
            ("cuStreamSynchronize_ptsz", "cuStreamSynchronize"),
            ("cuMemcpyDtoH_v2", "cuMemcpyDtoH_v2"),
            ("cudaDeviceSynchronize", "cudaDeviceSynchronize"),
            ("_v3020", ""),
            ("", ""),
        ] {
            assert_eq!(base_name(name), base);
        }
    }
}
