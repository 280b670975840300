//! Synchronisations that end what a range measures: the last call of most NVTX ranges of one name.
//!
//! ```text
//!  NVTX  [forward                         ] [loss ]  [forward                         ] [loss ]
//!  host    [launch][launch][deviceSync====]  [launch]   [launch][launch][deviceSync===]  [launch]
//! ```
//! Without the wait, the range would be as long as its launches take.

use crate::error::InputError;
use crate::profile::Profile;
use crate::profile::ids::{GlobalTid, RangeId};
use crate::sites::ranges::{is_of_torch, stable_name};
use crate::waits::{Wait, WaitId, Waits};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Fewer ranges of a name say nothing.
const FEW: usize = 3;
/// Ranges of one depth of a thread whose names are read; more say nothing new.
const MANY: usize = 4096;

/// The name of the ranges that a wait ends, if most ranges of that name end so.
///
/// Cost: two searches a synchronisation, and the names of at most [`MANY`] ranges for each thread and depth
/// where one ends a range.
pub fn find(profile: &mut Profile, waits: &Waits) -> Result<FxHashMap<WaitId, Arc<str>>, InputError> {
    let ending = |(at, wait): (WaitId, &Wait)| Some((at, ended(profile, wait)?));
    let ending: Vec<(WaitId, RangeId)> = waits.iter_enumerated().filter_map(ending).collect();
    let place = |profile: &Profile, range| (profile.nvtx.ranges.tid(range), profile.nvtx.ranges.depth[range]);
    let places: BTreeSet<(GlobalTid, u16)> = ending.iter().map(|end| place(profile, end.1)).collect();
    let mut found = FxHashMap::default();
    for of in places {
        let ranges = &profile.nvtx.ranges;
        let all: Vec<RangeId> =
            ranges.closed_at(of.1).filter(|&r| ranges.tid(r) == of.0).take(MANY).collect();
        let texts = ranges.texts(&profile.db, &mut profile.strings, &all)?;
        let named = all.into_iter().zip(texts).filter_map(|(range, text)| Some((range, text?)));
        let named = named.filter(|one| !is_of_torch(&one.1)).map(|(range, text)| (range, stable_name(&text)));
        let names: FxHashMap<RangeId, String> = named.collect();
        let count = |ranges: &mut dyn Iterator<Item = RangeId>| {
            let mut counts: FxHashMap<&str, usize> = FxHashMap::default();
            ranges.filter_map(|r| names.get(&r)).for_each(|name| *counts.entry(name).or_default() += 1);
            counts
        };
        let (all, ended) =
            (count(&mut names.keys().copied()), count(&mut ending.iter().map(|&(_, range)| range)));
        let most = |name: &str| ended[name] >= FEW && ended[name] * 2 > all[name];
        for (at, range) in &ending {
            if let Some(name) = names.get(range).filter(|name| most(name)) {
                found.insert(*at, name.as_str().into());
            }
        }
    }
    Ok(found)
}

/// The range that a synchronisation ends as the last call there, and not the only one.
fn ended(profile: &Profile, wait: &Wait) -> Option<RangeId> {
    let bare = wait.blocking.synchronises() && wait.copy_call.is_none();
    let calls = &profile.calls;
    let range = profile.nvtx.ranges.innermost(calls.threads[wait.thread], wait.start).filter(|_| bare)?;
    let (from, to) = (profile.nvtx.ranges.start(range), profile.nvtx.ranges.end(range));
    let of_thread = &calls.by_thread[wait.thread];
    let next = of_thread.partition_point(|&call| calls.start(call) < wait.end);
    let first = of_thread.partition_point(|&call| calls.start(call) < from);
    let last = of_thread.get(next).is_none_or(|&call| calls.start(call) > to);
    (last && wait.end <= to && of_thread.get(first).is_some_and(|&call| calls.start(call) < wait.start))
        .then_some(range)
}
