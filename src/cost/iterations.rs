//! Iterations of the program's loop, by NVTX ranges that repeat: `step 12`, `iteration 3`, `ProfilerStep#4`.

use crate::error::InputError;
use crate::profile::Profile;
use crate::sites::ranges::{numbered, says_iteration, stable_name};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Outer levels of nesting that are looked at: iterations stand inside an epoch at most.
const LEVELS: u16 = 3;
/// Ranges read per level; loops longer than this are not profiled.
const MAX_RANGES: usize = 200_000;
/// Repetitions of a name without a number that make a loop.
const MIN_UNNUMBERED: usize = 3;

/// The iterations of one thread's loop.
pub struct Iterations {
    /// Name that the ranges share, `#` for the number.
    pub name: String,
    /// `globalTid` of the thread that marked them.
    pub tid: i64,
    /// Start and end of each, disjoint, ascending, in ns.
    pub spans: Vec<(i64, i64)>,
}

impl Iterations {
    /// Index of the iteration that holds `time`.
    pub fn at(&self, time: i64) -> Option<usize> {
        let next = self.spans.partition_point(|s| s.0 <= time);
        next.checked_sub(1).filter(|&i| time <= self.spans[i].1)
    }

    pub fn median_ns(&self) -> i64 {
        let mut lengths: Vec<i64> = self.spans.iter().map(|s| s.1 - s.0).collect();
        lengths.sort_unstable();
        lengths.get(lengths.len() / 2).copied().unwrap_or(0)
    }
}

/// Finds the loop: level by level from outside, the family of ranges that covers most time.
pub fn detect(profile: &mut Profile) -> Result<Option<Iterations>, InputError> {
    for level in 0..LEVELS {
        let ranges = &profile.nvtx.ranges;
        let here: Vec<u32> = (0..ranges.start.len() as u32)
            .filter(|&r| ranges.depth[r as usize] == level && ranges.end[r as usize] != i64::MAX)
            .take(MAX_RANGES + 1)
            .collect();
        if here.len() > MAX_RANGES {
            continue;
        }
        let texts = profile.nvtx.texts(&profile.db, &mut profile.strings, &here)?;
        if let Some(found) = best_family(profile, &here, &texts) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

struct Family {
    spans: Vec<(i64, i64)>,
    numbers: Vec<u64>,
    numbered: bool,
}

fn best_family(profile: &Profile, ranges: &[u32], texts: &[Option<Arc<str>>]) -> Option<Iterations> {
    let table = &profile.nvtx.ranges;
    let mut families: FxHashMap<(i64, String), Family> = FxHashMap::default();
    for (&r, text) in ranges.iter().zip(texts) {
        let (Some(text), r) = (text.as_deref(), r as usize) else { continue };
        let (name, number) = match numbered(text) {
            Some((_, number)) => (stable_name(text), Some(number)),
            None if says_iteration(text) && !is_library(text) => (stable_name(text), None),
            None => continue,
        };
        let family = families.entry((table.tid[r], name)).or_insert_with(|| Family {
            spans: Vec::new(),
            numbers: Vec::new(),
            numbered: number.is_some(),
        });
        family.spans.push((table.start[r], table.end[r]));
        family.numbers.extend(number);
    }
    let covered = |f: &Family| f.spans.iter().map(|s| s.1 - s.0).sum::<i64>();
    let mut loops: Vec<((i64, String), Family)> =
        families.into_iter().filter(|((_, name), family)| family.is_loop(name)).collect();
    loops.sort_by(|a, b| covered(&b.1).cmp(&covered(&a.1)).then_with(|| a.0.cmp(&b.0)));
    let ((tid, name), family) = loops.into_iter().next()?;
    Some(Iterations { name, tid, spans: family.spans })
}

/// Ranges of PyTorch itself (`aten::batch_norm`, `Optimizer.step#AdamW.step`, `enumerate(DataLoader)#…Iter.__next__`):
/// their names speak of batches and steps, and they repeat, but they are parts of an iteration.
fn is_library(text: &str) -> bool {
    text.contains("::") || text.starts_with("Optimizer.") || text.starts_with("enumerate(DataLoader)")
}

impl Family {
    /// Several ranges one after another that count up, or repeat a name that says what it is.
    fn is_loop(&self, name: &str) -> bool {
        let apart = self.spans.windows(2).all(|w| w[0].1 <= w[1].0);
        let mut distinct = self.numbers.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let counts = self.numbered && distinct.len() >= 2 && (says_iteration(name) || distinct.len() >= 5);
        apart && (counts || (!self.numbered && self.spans.len() >= MIN_UNNUMBERED))
    }
}
