//! Strings of an export: names referred to by id, fetched once each.

use crate::error::InputError;
use crate::profile::database::Database;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Longest name kept, in bytes: StringIds also holds environment blocks and program output.
const MAX_NAME: usize = 4096;

/// The strings of `StringIds` that this run needed.
#[derive(Default)]
pub struct Strings {
    by_id: FxHashMap<i64, Arc<str>>,
}

impl Strings {
    /// Fetches those of `ids` that are not here yet.
    pub fn fetch(&mut self, db: &Database, ids: impl IntoIterator<Item = i64>) -> Result<(), InputError> {
        let mut missing: Vec<i64> = ids.into_iter().filter(|id| !self.by_id.contains_key(id)).collect();
        missing.sort_unstable();
        missing.dedup();
        let found = db.look_up::<Vec<(i64, Arc<str>)>>(
            "StringIds",
            &["value"],
            "id",
            "LIMIT 1",
            &missing,
            |out, k, row| {
                if let Some(bytes) = row.bytes(0) {
                    out.push((missing[k], clean(bytes)));
                }
            },
        )?;
        self.by_id.extend(found.into_iter().flatten());
        Ok(())
    }

    /// The string of `id`, if it was fetched and exists.
    pub fn get(&self, id: i64) -> Option<&Arc<str>> {
        self.by_id.get(&id)
    }
}

/// Bytes of a name as text: cut at the first NUL, bounded, invalid UTF-8 replaced, HTML escapes undone.
pub fn clean(bytes: &[u8]) -> Arc<str> {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len()).min(MAX_NAME);
    let text = String::from_utf8_lossy(&bytes[..end]);
    if text.contains('&') { unescape_html(&text).into() } else { text.into() }
}

/// Undoes the five escapes that nsys writes into function names (`&lt;module&gt;`). `&amp;` last, so that nothing is undone twice.
fn unescape_html(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&apos;", "'")
        .replace("&amp;", "&")
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
}
