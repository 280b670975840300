//! NVTX ranges that are pushed and never popped.
//!
//! The export has no end for them: each would hold all that comes after it, and a loop's ranges would nest as
//! deep as it iterates. Where the next range of the name begins on the thread, the one before was left
//! behind:
//!
//! ```text
//!  recorded   step 0 [-------------------------------…        one rule: it ends where the next of its name begins
//!             step 1         [-----------------------…
//!  taken as   step 0 [------][------] step 1
//! ```
//! The last range of each name stays open: a capture that stops inside a range has such ranges too.

use crate::error::InputError;
use crate::profile::ids::GlobalTid;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// End of a range that was still open.
pub(super) const OPEN: i64 = i64::MAX;

/// Deeper ranges are left out. Ten times the deepest of 26 captures, so that a recursion does not make each
/// of its levels a site of its own, nor the sites of n waits take n² names.
pub(super) const MAX_DEPTH: usize = 64;

#[derive(Clone, Copy)]
pub(super) struct Event {
    pub tid: GlobalTid,
    pub start: i64,
    pub end: i64,
    pub rowid: i64,
}

#[derive(Default)]
pub struct Unclosed {
    /// The ends that were given, by row.
    ends: FxHashMap<i64, i64>,
    /// Ranges that got one.
    pub ended: u64,
    /// Their most frequent name.
    pub name: String,
    /// Ranges left out: their thread has more names open at once than ranges nest.
    pub left_out: u64,
}

impl Unclosed {
    /// Gives ranges an end, or leaves them out. `name`: the part of a text that a range's repetitions share.
    pub(super) fn mend(
        ranges: &mut Vec<Event>,
        name: fn(&str) -> String,
        texts: impl FnOnce(&[i64]) -> Result<Vec<Option<Arc<str>>>, InputError>,
    ) -> Result<Self, InputError> {
        let mut open: Vec<usize> = (0..ranges.len()).filter(|&i| ranges[i].end == OPEN).collect();
        open.sort_unstable_by_key(|&i| (ranges[i].tid, ranges[i].start, ranges[i].rowid));
        let alone = open.chunk_by(|&a, &b| ranges[a].tid == ranges[b].tid).all(|thread| thread.len() < 2);
        let mut mended = Self::default();
        if alone {
            return Ok(mended);
        }
        let rowids: Vec<i64> = open.iter().map(|&i| ranges[i].rowid).collect();
        let named =
            |(i, text): (usize, Option<Arc<str>>)| (ranges[i].tid, i, name(text.as_deref().unwrap_or("")));
        let named: Vec<(GlobalTid, usize, String)> =
            open.into_iter().zip(texts(&rowids)?).map(named).collect();
        let mut counts: FxHashMap<&str, u64> = FxHashMap::default();
        let mut gone: FxHashSet<i64> = FxHashSet::default();
        for thread in named.chunk_by(|a, b| a.0 == b.0) {
            let mut next: FxHashMap<&str, i64> = FxHashMap::default();
            for (_, i, name) in thread.iter().rev() {
                let range = &mut ranges[*i];
                if let Some(next) = next.insert(name, range.start) {
                    range.end = next;
                    mended.ends.insert(range.rowid, next);
                    *counts.entry(name).or_default() += 1;
                }
            }
            if next.len() > MAX_DEPTH {
                let open = thread.iter().map(|t| &ranges[t.1]).filter(|r| r.end == OPEN);
                gone.extend(open.map(|r| r.rowid));
            }
        }
        (mended.ended, mended.left_out) = (mended.ends.len() as u64, gone.len() as u64);
        let most = counts.into_iter().max_by_key(|&(name, n)| (n, std::cmp::Reverse(name)));
        mended.name = most.map_or_else(String::new, |(name, _)| name.to_owned());
        if !gone.is_empty() {
            ranges.retain(|r| !gone.contains(&r.rowid));
        }
        Ok(mended)
    }

    /// As recorded, else as given.
    pub(super) fn end(&self, rowid: i64, recorded: i64) -> i64 {
        if recorded == OPEN { self.ends.get(&rowid).copied().unwrap_or(OPEN) } else { recorded }
    }
}
