//! Iterations of the program's loop, by NVTX ranges that repeat: `step 12`, `iteration 3`, `ProfilerStep#4`.

use crate::error::InputError;
use crate::profile::Profile;
use crate::sites::ranges::{has_word, numbered, says_epoch, says_iteration, stable_name};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Outer levels of nesting that are looked at: iterations stand inside an epoch at most.
const LEVELS: u16 = 3;
/// Ranges read per level; loops longer than this are not profiled.
const MAX_RANGES: usize = 200_000;
/// Repetitions of a name without a number that make a loop.
const MIN_UNNUMBERED: usize = 3;

/// Of so many iterations one may be start-up: one of ten, two of twenty.
const WARM_UP: usize = 10;
/// Iterations below which none counts as start-up.
const MIN_TURNS: usize = 8;

/// Words for what comes before the loop and may repeat too.
const BEFORE_THE_LOOP: &[&str] = &["warmup", "warm", "init", "initialization", "initialisation"];

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

    /// How events at these times spread over the iterations.
    pub fn turns(&self, times: impl Iterator<Item = i64>) -> Turns {
        let mut counts = vec![0; self.spans.len()];
        times.filter_map(|time| self.at(time)).for_each(|n| counts[n] += 1);
        let some = || counts.iter().copied().filter(|&n| n > 0);
        let first = some().next();
        Turns { with: some().count(), all: counts.len(), each: first.filter(|n| some().all(|m| m == *n)) }
    }

    /// Whether what happens last at `time` is start-up: before the loop, or in its first iterations and never again. Of few
    /// iterations one cannot tell.
    pub fn only_at_start(&self, time: i64) -> bool {
        let all = self.spans.len();
        let later = self.spans.get(all.div_ceil(WARM_UP));
        all >= MIN_TURNS && later.is_some_and(|later| time < later.0)
    }

    pub fn median_ns(&self) -> i64 {
        let mut lengths: Vec<i64> = self.spans.iter().map(|s| s.1 - s.0).collect();
        lengths.sort_unstable();
        lengths.get(lengths.len() / 2).copied().unwrap_or(0)
    }
}

/// How events spread over iterations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// Iterations that hold some, of all.
    pub with: usize,
    pub all: usize,
    /// How many each of those holds, where it is the same number in all.
    pub each: Option<usize>,
}

/// Finds the loop: of the best kind, level by level from outside, the family of ranges that covers most time.
pub fn detect(profile: &mut Profile) -> Result<Option<Iterations>, InputError> {
    let mut best: Option<(Fit, Iterations)> = None;
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
        if let Some((fit, found)) = best_family(profile, &here, &texts)
            && best.as_ref().is_none_or(|b| fit < b.0)
        {
            best = Some((fit, found));
        }
        if best.as_ref().is_some_and(|b| b.0 == Fit::Turns) {
            break;
        }
    }
    Ok(best.map(|b| b.1))
}

/// What ranges that repeat are, best first: waits per epoch say less than waits per step, and those of a warm-up nothing
/// about the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Turns,
    Epochs,
    BeforeTheLoop,
}

impl Fit {
    fn of(name: &str) -> Self {
        if has_word(name, BEFORE_THE_LOOP) {
            Self::BeforeTheLoop
        } else if says_epoch(name) {
            Self::Epochs
        } else {
            Self::Turns
        }
    }
}

struct Family {
    /// Name of its ranges, `#` for the number.
    name: String,
    spans: Vec<(i64, i64)>,
    numbers: Vec<u64>,
    numbered: bool,
}

/// The thread, the name without its number, and whether there is one.
type Key = (i64, String, bool);

fn best_family(profile: &Profile, ranges: &[u32], texts: &[Option<Arc<str>>]) -> Option<(Fit, Iterations)> {
    let table = &profile.nvtx.ranges;
    let mut families: FxHashMap<Key, Family> = FxHashMap::default();
    for (&r, text) in ranges.iter().zip(texts) {
        let (Some(text), r) = (text.as_deref(), r as usize) else { continue };
        let (name, number) = match numbered(text) {
            // What is left may hold a number itself: `epoch 1 [batch`.
            Some((family, number)) => (stable_name(family), Some(number)),
            None if says_iteration(text) && !is_library(text) => (stable_name(text), None),
            None => continue,
        };
        let family = families.entry((table.tid[r], name, number.is_some())).or_insert_with(|| Family {
            name: stable_name(text),
            spans: Vec::new(),
            numbers: Vec::new(),
            numbered: number.is_some(),
        });
        family.spans.push((table.start[r], table.end[r]));
        family.numbers.extend(number);
    }
    let covered = |f: &Family| f.spans.iter().map(|s| s.1 - s.0).sum::<i64>();
    let mut loops: Vec<(Fit, Key, Family)> = families
        .into_iter()
        .filter(|(key, family)| family.is_loop() && (family.numbered || fills(profile, key.0, &family.spans)))
        .map(|(key, family)| (Fit::of(&key.1), key, family))
        .collect();
    loops.sort_by(|a, b| {
        a.0.cmp(&b.0).then_with(|| covered(&b.2).cmp(&covered(&a.2))).then_with(|| a.1.cmp(&b.1))
    });
    let (fit, (tid, ..), family) = loops.into_iter().next()?;
    Some((fit, Iterations { name: family.name, tid, spans: family.spans }))
}

/// Whether disjoint ranges hold at least half of the time in which their thread made calls. A loop does; a part of its
/// body that is called a step, without a number, does not.
fn fills(profile: &Profile, tid: i64, spans: &[(i64, i64)]) -> bool {
    let calls = &profile.calls;
    let Ok(thread) = calls.threads.binary_search(&tid) else { return false };
    let all = calls.spans[thread];
    let inside: i64 = spans.iter().map(|s| (s.1.min(all.end) - s.0.max(all.start)).max(0)).sum();
    inside >= (all.end - all.start) / 2
}

/// Ranges of PyTorch itself (`aten::batch_norm`, `Optimizer.step#AdamW.step`, `enumerate(DataLoader)#…Iter.__next__`):
/// their names speak of batches and steps, and they repeat, but they are parts of an iteration.
fn is_library(text: &str) -> bool {
    text.contains("::") || text.starts_with("Optimizer.") || text.starts_with("enumerate(DataLoader)")
}

impl Family {
    /// Several ranges one after another that count up, or repeat a name that says what it is.
    fn is_loop(&self) -> bool {
        let apart = self.spans.windows(2).all(|w| w[0].1 <= w[1].0);
        let mut distinct = self.numbers.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let counts =
            self.numbered && distinct.len() >= 2 && (says_iteration(&self.name) || distinct.len() >= 5);
        apart && (counts || (!self.numbered && self.spans.len() >= MIN_UNNUMBERED))
    }
}

#[cfg(test)]
mod tests {
    use super::Iterations;

    #[test]
    fn an_iteration_holds_what_lies_inside_of_it() {
        let spans = vec![(0, 100), (110, 210), (300, 400), (450, 460)];
        let iterations = Iterations { name: String::new(), tid: 0, spans };
        assert_eq!([0, 105, 460, 470].map(|time| iterations.at(time)), [Some(0), None, Some(3), None]);
    }
}
