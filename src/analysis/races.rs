//! Copies without a wait whose memory the host used before they had ended: trace and source together show it.

use crate::error::InputError;
use crate::profile::Profile;
use crate::profile::ids::{CallId, ThreadIx};
use crate::profile::payload::StackIx;
use crate::sites::context::{Context, mark_of};
use crate::sites::frames::PathRules;
use crate::verdict::source::{SourceTree, Use, raced};
use crate::vocabulary::{Direction, HostMemory};
use crate::waits::Waits;
use crate::waits::api::{Blocking, classify};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use typed_index_collections::TiVec;

/// By which times of host and GPU may be apart: nsys relates both clocks to some microseconds.
const CLOCKS_NS: i64 = 20_000;

/// Copies looked at whose line may have run again too early. What a program does, it does often.
const MOST: usize = 1_000;

/// Later copies among which the next of the line is looked for: the other lines of a loop that copy.
const NEAR: usize = 8;

/// A line whose copies were used too early.
#[derive(Clone, Debug)]
pub struct Race {
    /// As recorded.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// How many, of those that were looked at.
    pub copies: u64,
    /// Whether they go to the GPU, from a buffer that was written again; else they were read.
    pub up: bool,
    /// The write or read.
    pub used: Use,
}

/// A copy, and later ones of its thread before which it had surely not been waited for.
pub struct Suspect {
    call: CallId,
    up: bool,
    later: Vec<CallId>,
}

/// The copies from and to pinned memory that are no wait's own, with those after which the host may have used their memory too early.
///
/// Definition: an upload is suspect if it had not ended when a later one of its thread was called; a copy to the host, if its thread
/// waited for nothing before a later one.
///
/// ```text
///  host  [write][copy]      [write][copy]        the second write came while the first copy was under way
///  GPU     ~~~~~~~~~~~~~~~~~~~~~~~[copy~]
/// ```
/// Cost: linear in the operations, and a sort of those copies.
pub fn suspects(profile: &Profile, waits: &Waits) -> Vec<Suspect> {
    let (ops, calls) = (&profile.ops, &profile.calls);
    let mut own: TiVec<CallId, bool> = vec![false; calls.len()].into();
    for call in waits.iter().flat_map(|wait| [Some(wait.call), wait.copy_call]).flatten() {
        own[call] = true;
    }
    let mut copies: Vec<(ThreadIx, bool, i64, CallId, i64)> = Vec::new();
    for op in ops.ids() {
        let Some(copy) = ops.copy(op).filter(|copy| copy.host_memory == HostMemory::Pinned) else { continue };
        let up = match copy.direction {
            Direction::HostToDevice => true,
            Direction::DeviceToHost => false,
            _ => continue,
        };
        let asynchronous = |call: &CallId| classify(calls.base_name(*call)) == Some(Blocking::CopyAsync);
        let Some(call) = profile.issuer(op).filter(|&call| !own[call]).filter(asynchronous) else {
            continue;
        };
        copies.push((calls.thread(call), up, calls.start(call), call, ops.end(op)));
    }
    copies.sort_unstable();
    let mut waited: FxHashMap<ThreadIx, Vec<i64>> = FxHashMap::default();
    waits.iter().for_each(|wait| waited.entry(wait.thread).or_default().push(wait.end));
    waited.values_mut().for_each(|ends| ends.sort_unstable());
    let mut found = Vec::new();
    for (i, &(thread, up, start, call, ended)) in copies.iter().enumerate() {
        let until = if up {
            ended - CLOCKS_NS
        } else {
            let ends = waited.get(&thread).map_or(&[][..], Vec::as_slice);
            // What ends after the call may have waited for it.
            ends.get(ends.partition_point(|&end| end <= start)).copied().unwrap_or(i64::MAX)
        };
        let near = copies[i + 1..].iter().take(NEAR);
        let later: Vec<CallId> = near
            .take_while(|next| (next.0, next.1) == (thread, up) && next.2 < until)
            .map(|next| next.3)
            .collect();
        if !later.is_empty() && ended > calls.end(call) && found.len() < MOST {
            found.push(Suspect { call, up, later });
        }
    }
    found
}

/// The races among them: where a line runs again, and its source shows that the host used the memory in between.
///
/// # Errors
/// Stacks could not be read.
pub fn find(
    profile: &mut Profile,
    context: &mut Context,
    sources: &SourceTree,
    rules: &PathRules,
    suspects: &[Suspect],
) -> Result<Vec<Race>, InputError> {
    let calls: BTreeSet<CallId> =
        suspects.iter().flat_map(|one| one.later.iter().chain([&one.call])).copied().collect();
    let marks: Vec<(CallId, i64)> =
        calls.iter().filter_map(|&call| Some((call, mark_of(profile, call)?))).collect();
    let rowids: Vec<i64> = marks.iter().map(|mark| mark.1).collect();
    let read = context.stacks.read(profile, &rowids)?;
    let line = |stack: StackIx| {
        let frames = &context.stacks.stacks[stack];
        rules.user_index(frames).map(|at| &frames[at])
    };
    let of: FxHashMap<CallId, _> =
        marks.iter().zip(read.stack).filter_map(|(mark, stack)| Some((mark.0, line(stack?)?))).collect();
    let mut copies: BTreeMap<(&str, u32, &str, bool), u64> = BTreeMap::new();
    for one in suspects {
        let Some(frame) = of.get(&one.call) else { continue };
        if one.later.iter().any(|call| of.get(call) == Some(frame)) {
            *copies.entry((&frame.file, frame.line, &frame.function, one.up)).or_default() += 1;
        }
    }
    let race = |((file, line, function, up), copies)| {
        let used = raced(sources, file, line, function, up)?;
        Some(Race { file: String::from(file), line, copies, up, used })
    };
    Ok(copies.into_iter().filter_map(race).collect())
}
