//! Iterations by NVTX ranges that repeat: `step 12`, `iteration 3`, `ProfilerStep#4`, or `forward`, `backward` and
//! `optimizer` in turn.
//!
//! ```text
//!  ranges      [step 0--]  [step 1--]  [step 2--]                              [step 3--]  [step 4--]
//!  host        forward..   callback    callback      validation                            callback
//!  iterations  [0---------][1---------][2-------]                              [3---------][4-------]
//! ```
//! An iteration lasts from start to start: callbacks between two ranges belong to it.

use super::Iterations;
use crate::error::InputError;
use crate::profile::Profile;
use crate::profile::ids::{CallId, GlobalTid, OpId, RangeId};
use crate::sites::ranges::{
    has_word, is_named, is_of_torch, no_range, numbered, says_epoch, says_iteration, stable_name,
};
use crate::text::Names;
use crate::vocabulary::Direction;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

/// Outer nesting levels that are searched: iterations are inside an epoch at most.
const LEVELS: u16 = 3;
/// Most ranges read per level: an export of 50 GB had 339,000 iterations of 4.5 ms.
const MAX_RANGES: usize = 500_000;
/// Repetitions of a name without a number that make a loop.
const MIN_UNNUMBERED: usize = 3;

/// Words for work before the loop, which may repeat too.
const BEFORE_THE_LOOP: Names = Names("warmup warm init initialization initialisation");
/// Words for an iteration's start, and for what follows.
const FORWARD: Names = Names("forward fwd");
const AFTER_FORWARD: Names = Names("backward bwd optimizer optim");

/// Finds the loop: level by level from outside, the best kind's family of ranges that covers most time.
/// `waiting`: calls that waited.
pub fn detect(profile: &mut Profile, waiting: &[CallId]) -> Result<Option<(Fit, Iterations)>, InputError> {
    let mut best: Option<(Fit, Iterations)> = None;
    for level in 0..LEVELS {
        let here: Vec<RangeId> = profile.nvtx.ranges.closed_at(level).take(MAX_RANGES + 1).collect();
        if here.len() > MAX_RANGES {
            continue;
        }
        let texts = profile.nvtx.ranges.texts(&profile.db, &mut profile.strings, &here)?;
        if let Some((fit, found)) = best_family(profile, &here, &texts, waiting)
            && best.as_ref().is_none_or(|b| fit < b.0)
        {
            best = Some((fit, found));
        }
        if best.as_ref().is_some_and(|b| b.0 == Fit::Iterations) {
            break;
        }
    }
    Ok(best)
}

/// Kinds of ranges that repeat, best first: waits per epoch say less than waits per step, a warm-up's waits
/// say nothing about the run, and layers are no iterations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    Iterations,
    /// Parts of an iteration, in the same order each time.
    Phases,
    Epochs,
    BeforeTheLoop,
    /// Parts of one pass.
    Layers,
}

impl Fit {
    fn of(name: &str) -> Self {
        if has_word(name, &|word| BEFORE_THE_LOOP.has(word)) {
            Self::BeforeTheLoop
        } else if says_epoch(name) {
            Self::Epochs
        } else {
            Self::Iterations
        }
    }
}

struct Family {
    name: String,
    spans: Vec<(i64, i64)>,
    numbers: Vec<u64>,
}

/// The thread, the name without its number, and whether there is one.
type Key = (GlobalTid, String, bool);

fn best_family(
    profile: &Profile,
    ranges: &[RangeId],
    texts: &[Option<Arc<str>>],
    waiting: &[CallId],
) -> Option<(Fit, Iterations)> {
    let table = &profile.nvtx.ranges;
    let mut families: FxHashMap<Key, Family> = FxHashMap::default();
    for (&r, text) in ranges.iter().zip(texts) {
        let Some(text) = text.as_deref() else { continue };
        let (name, number) = match numbered(text) {
            // The rest may hold a number itself: `epoch 1 [batch`.
            Some((family, number)) => (stable_name(family), Some(number)),
            None if says_iteration(text) && !is_of_torch(text) => (stable_name(text), None),
            None => continue,
        };
        let new = || Family { name: stable_name(text), spans: Vec::new(), numbers: Vec::new() };
        let family = families.entry((table.tid(r), name, number.is_some())).or_insert_with(new);
        family.spans.push((table.start(r), table.end(r)));
        family.numbers.extend(number);
    }
    // Lazy: most names alone decide the fit.
    let contacts = LazyCell::new(|| contacts(profile, waiting));
    let covered = |f: &Family| f.spans.iter().map(|s| s.1 - s.0).fold(0, i64::saturating_add);
    let mut loops: Vec<(Fit, Key, Family)> = families
        .into_iter()
        .filter_map(|(key, family)| Some((family.fit(key.2, &contacts)?, key, family)))
        .filter(|(_, key, family)| key.2 || fills(profile, key.0, &family.spans))
        .collect();
    loops.extend(phases(profile, ranges, texts).map(|(key, family)| (Fit::Phases, key, family)));
    loops.sort_by(|a, b| {
        a.0.cmp(&b.0).then_with(|| covered(&b.2).cmp(&covered(&a.2))).then_with(|| a.1.cmp(&b.1))
    });
    let mut loops = loops.into_iter();
    let (fit, key, family) = loops.next()?;
    let same = |(other, (_, name, numbered), _): &(Fit, Key, Family)| {
        *other == fit && (name, *numbered) == (&key.1, key.2)
    };
    let ranks = loops.filter(same).map(|(_, (tid, ..), family)| (tid, family.spans));
    let of_processes = one_each(std::iter::once((key.0, family.spans)).chain(ranks));
    let found = of_processes.map(|(tid, spans)| iterations(family.name.clone(), tid, &spans));
    Some((fit, Iterations::of_job(found)?))
}

type OfThread = (GlobalTid, Vec<(i64, i64)>);

fn one_each(threads: impl Iterator<Item = OfThread>) -> impl Iterator<Item = OfThread> {
    let mut known = FxHashSet::default();
    threads.filter(move |(tid, _)| known.insert(tid.process()))
}

/// The loop of ranges with the wanted name, at the outermost level with any, on the thread with most.
///
/// # Errors
/// [`InputError::NoRange`] where no range matches.
pub fn named(profile: &mut Profile, wanted: &str) -> Result<Iterations, InputError> {
    let levels = profile.nvtx.ranges.depth.iter().max().map_or(0, |deepest| deepest.saturating_add(1));
    for level in 0..levels {
        let here: Vec<RangeId> = profile.nvtx.ranges.closed_at(level).collect();
        let texts = profile.nvtx.ranges.texts(&profile.db, &mut profile.strings, &here)?;
        let table = &profile.nvtx.ranges;
        let mut threads: BTreeMap<GlobalTid, Vec<(i64, i64)>> = BTreeMap::new();
        for (&r, _) in
            here.iter().zip(&texts).filter(|(_, text)| text.as_deref().is_some_and(|t| is_named(t, wanted)))
        {
            let spans = threads.entry(table.tid(r)).or_default();
            // Overlapping ranges are not iterations of one loop: the first counts.
            if spans.last().is_none_or(|last| last.1 <= table.start(r)) {
                spans.push((table.start(r), table.end(r)));
            }
        }
        let mut threads: Vec<OfThread> = threads.into_iter().collect();
        threads.sort_by_key(|(_, spans)| std::cmp::Reverse(spans.len()));
        let of_processes = one_each(threads.into_iter());
        let found = of_processes.map(|(tid, spans)| iterations(wanted.to_owned(), tid, &spans));
        if let Some(found) = Iterations::of_job(found) {
            return Ok(found);
        }
    }
    Err(no_range(profile, wanted)?)
}

fn iterations(name: String, tid: GlobalTid, ranges: &[(i64, i64)]) -> Iterations {
    Iterations::marked(name, tid, with_rest(ranges))
}

/// Repetitions, each extended to the start of the next, unless the gap is long: over half of the repetition,
/// and over twice the usual gap.
///
/// ```text
///  ranges     [step 3    ]··[step 4    ]··[step 5    ]················[step 6    ]
///  repeated   [3           ][4           ][5         ]                [6         ]
/// ```
pub fn with_rest(spans: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut between: Vec<i64> = spans.windows(2).map(|w| w[1].0.saturating_sub(w[0].1)).collect();
    between.sort_unstable();
    let usual = between.get(between.len().saturating_sub(1) / 2).map_or(0, |ns| ns.saturating_mul(2));
    let next = spans.iter().skip(1).map(Some).chain([None]);
    let whole = |(&(from, to), next): (&(i64, i64), Option<&(i64, i64)>)| match next {
        Some(next) if next.0.saturating_sub(to) <= (to.saturating_sub(from) / 2).max(usual) => (from, next.0),
        _ => (from, to),
    };
    spans.iter().zip(next).map(whole).collect()
}

/// Ranges `forward`, `backward` and `optimizer` of a thread: an iteration lasts from `forward` to `forward`.
///
/// ```text
///  ranges      [forward][backward][optimizer]  [forward][backward][optimizer]
///  iterations  [0----------------------------][1----------------------------]
/// ```
fn phases(profile: &Profile, ranges: &[RangeId], texts: &[Option<Arc<str>>]) -> Option<(Key, Family)> {
    let table = &profile.nvtx.ranges;
    /// Iterations, and starts of any with a phase after the forward pass.
    type Turns = (Vec<(i64, i64)>, BTreeSet<i64>);
    let mut threads: BTreeMap<GlobalTid, Turns> = BTreeMap::new();
    for (&r, text) in ranges.iter().zip(texts) {
        let Some(text) = text.as_deref().filter(|text| !is_of_torch(text)) else { continue };
        let (turns, whole) = threads.entry(table.tid(r)).or_default();
        if has_word(text, &|word| FORWARD.has(word)) {
            turns.push((table.start(r), table.end(r)));
        } else if has_word(text, &|word| AFTER_FORWARD.has(word))
            && let Some(turn) = turns.last_mut()
        {
            turn.1 = turn.1.max(table.end(r));
            whole.insert(turn.0);
        }
    }
    let found = threads.into_iter().find(|(tid, (turns, whole))| {
        let apart = turns.windows(2).all(|w| w[0].1 <= w[1].0);
        apart
            && turns.len() >= MIN_UNNUMBERED
            && whole.len() + 1 >= turns.len()
            && fills(profile, *tid, turns)
    });
    let (tid, (spans, _)) = found?;
    let name = "forward … optimizer".to_owned();
    let key = (tid, name.clone(), false);
    Some((key, Family { name, spans, numbers: Vec::new() }))
}

/// Whether disjoint ranges cover at least half of the span of their thread's calls. A loop does; an
/// unnumbered part of its body that is called a step does not.
fn fills(profile: &Profile, tid: GlobalTid, spans: &[(i64, i64)]) -> bool {
    let calls = &profile.calls;
    let Ok(thread) = calls.threads.binary_search(&tid) else { return false };
    let all = calls.spans[thread];
    let inside = spans.iter().map(|s| (s.1.min(all.end) - s.0.max(all.start)).max(0));
    let inside = inside.fold(0, i64::saturating_add);
    inside >= (all.end - all.start) / 2
}

/// Start times of calls that wait or copy from or to the host, in order.
fn contacts(profile: &Profile, waiting: &[CallId]) -> Vec<i64> {
    let with_host = |op: &OpId| {
        let direction = profile.ops.copy(*op).map(|copy| copy.direction);
        matches!(direction, Some(Direction::HostToDevice | Direction::DeviceToHost))
    };
    let copies = profile.ops.ids().filter(with_host).filter_map(|op| profile.issuer(op));
    let mut times: Vec<i64> =
        waiting.iter().copied().chain(copies).map(|call| profile.calls.start(call)).collect();
    times.sort_unstable();
    times
}

impl Family {
    /// Disjoint ranges that count up, or repeat a name, by kind. Numbers without a word for iterations must
    /// count evenly, and most of the ranges must wait or copy from or to the host. Numbered ranges that
    /// mostly do neither are layers, whose numbers may restart in each pass, or leave some out:
    ///
    /// ```text
    ///  [Conv_0][Relu_1][Conv_2][Conv_3][Relu_4] … [Conv_0][Relu_1][Conv_2][Conv_3][Relu_4] …
    /// ```
    fn fit(&self, numbered: bool, contacts: &impl Deref<Target = Vec<i64>>) -> Option<Fit> {
        let apart = self.spans.windows(2).all(|w| w[0].1 <= w[1].0);
        let steps: Vec<Option<u64>> = self.numbers.windows(2).map(|w| w[1].checked_sub(w[0])).collect();
        let evenly = || steps.len() >= 4 && steps[0] > Some(0) && steps.iter().all(|step| *step == steps[0]);
        let several = steps.iter().any(|step| *step != Some(0));
        let meets = |span: &&(i64, i64)| {
            contacts.get(contacts.partition_point(|&at| at < span.0)).is_some_and(|&at| at <= span.1)
        };
        let meet_host = || 2 * self.spans.iter().filter(meets).count() >= self.spans.len();
        let counts = numbered && several && (says_iteration(&self.name) || evenly() && meet_host());
        if apart && (counts || (!numbered && self.spans.len() >= MIN_UNNUMBERED)) {
            return Some(Fit::of(&self.name));
        }
        (numbered && !says_iteration(&self.name) && !meet_host()).then_some(Fit::Layers)
    }
}

#[cfg(test)]
mod tests {
    use super::with_rest;

    #[test]
    fn a_repetition_goes_up_to_the_next_unless_that_is_far() {
        let spans = [(0, 100), (110, 210), (300, 400), (410, 510)];
        assert_eq!(with_rest(&spans), [(0, 110), (110, 210), (300, 410), (410, 510)]);
        let spans = [(0, 100), (300, 400), (600, 700), (1_300, 1_400), (1_610, 1_700)];
        assert_eq!(with_rest(&spans), [(0, 300), (300, 600), (600, 700), (1_300, 1_610), (1_610, 1_700)]);
        assert_eq!(with_rest(&[(5, 9)]), [(5, 9)]);
    }
}
