//! Placing waits by samples: honest about what a sample can tell.
//!
//! ```text
//!   wait      [----]                 [-------------------]
//!   samples      s1          s2                 s3              about one a millisecond
//! ```
//! A sample inside a wait (s1, s3) shows its line. A wait between two samples shows only what ran shortly before or
//! after: the function that those samples share, not the line. A bundle's samples are counted together, and the report
//! says how many agree.

use super::frames::PathRules;
use super::{Bundle, native};
use crate::error::InputError;
use crate::profile::Profile;
use crate::profile::chains::{ChainTable, Chains};
use crate::profile::payload::{PyFrame, Stacks};
use crate::profile::samples::{self, Sample};
use crate::vocabulary::Attribution;
use crate::waits::Wait;
use rustc_hash::FxHashMap;

/// A sample further from a wait than this many sampling periods tells nothing about it.
const REACH_PERIODS: i64 = 2;
/// Waits looked at per bundle: enough for a vote.
const WAITS_PER_BUNDLE: usize = 4096;

/// Gives bundles that have neither stack nor chain the Python stack that their samples agree on.
pub fn place(
    profile: &mut Profile,
    waits: &[Wait],
    rules: &PathRules,
    bundles: &mut [Bundle],
) -> Result<(), InputError> {
    if profile.nvtx.sample_marks.is_empty() {
        return Ok(());
    }
    let period = typical_period(profile);
    let open: Vec<usize> =
        (0..bundles.len()).filter(|&i| bundles[i].frames.is_empty() && bundles[i].chain.is_empty()).collect();
    let votes: Vec<Votes> =
        open.iter().map(|&i| Votes::collect(profile, waits, &bundles[i], period)).collect();
    let mut marks: Vec<usize> = votes.iter().flat_map(|v| v.inside.iter().chain(&v.near)).copied().collect();
    marks.sort_unstable();
    marks.dedup();
    let rowids: Vec<i64> = marks.iter().map(|&m| profile.nvtx.sample_marks.rowid[m]).collect();
    let mut stacks = Stacks::default();
    let read = stacks.read(&profile.db, &mut profile.strings, &rowids)?;
    let stack_of: FxHashMap<usize, u32> =
        marks.iter().zip(read.stack).filter_map(|(&m, s)| Some((m, s?))).collect();
    for (i, votes) in open.into_iter().zip(votes) {
        votes.decide(&stack_of, &stacks, rules, &mut bundles[i]);
    }
    Ok(())
}

/// Marks (by index) inside the waits of one bundle, and next to those that hold none.
struct Votes {
    inside: Vec<usize>,
    near: Vec<usize>,
}

impl Votes {
    fn collect(profile: &Profile, waits: &[Wait], bundle: &Bundle, period: i64) -> Self {
        let marks = &profile.nvtx.sample_marks;
        let mut votes = Self { inside: Vec::new(), near: Vec::new() };
        for &w in bundle.waits.iter().take(WAITS_PER_BUNDLE) {
            let wait = &waits[w as usize];
            let thread = marks.of_thread(profile.calls.threads[wait.thread as usize]);
            let at = |time: i64| thread.start + marks.start[thread.clone()].partition_point(|&s| s < time);
            let (from, to) = (at(wait.start), at(wait.end.saturating_add(1)));
            votes.inside.extend(from..to);
            if from == to {
                let before = from.checked_sub(1).filter(|&m| m >= thread.start);
                let distance = |m: &usize| (marks.start[*m] - wait.start).abs();
                let near = before.into_iter().chain((to < thread.end).then_some(to)).min_by_key(distance);
                votes.near.extend(near.filter(|m| distance(m) <= REACH_PERIODS * period));
            }
        }
        votes
    }

    fn decide(
        self,
        stack_of: &FxHashMap<usize, u32>,
        stacks: &Stacks,
        rules: &PathRules,
        bundle: &mut Bundle,
    ) {
        let stacks_of = |marks: &[usize]| -> Vec<&[PyFrame]> {
            marks.iter().filter_map(|m| stack_of.get(m)).map(|&s| &stacks.stacks[s as usize][..]).collect()
        };
        let (inside, near) = (stacks_of(&self.inside), stacks_of(&self.near));
        let (votes, exact) = if inside.is_empty() { (near, false) } else { (inside, true) };
        let Some((stack, agree)) = majority(&votes, rules, exact) else { return };
        let total = votes.len();
        bundle.attribution = Attribution::PythonSample;
        bundle.note = if exact {
            format!("{agree} of {total} samples inside its waits agree on the line")
        } else {
            format!(
                "no sample fell inside its waits: {agree} of the {total} nearest agree on the function; its line is not known"
            )
        };
        bundle.user = rules.user_index(&stack);
        bundle.frames = stack;
        if let (false, Some(user)) = (exact, bundle.user) {
            // Further in and at that line something else ran: only the function is known.
            bundle.frames.drain(..user);
            bundle.frames[0].line = 0;
            bundle.user = Some(0);
        }
    }
}

/// The stack that most samples share: by the user's line where samples are exact, else by the user's function.
fn majority(votes: &[&[PyFrame]], rules: &PathRules, exact: bool) -> Option<(Vec<PyFrame>, usize)> {
    let mut counts: Vec<(String, u32, usize, &[PyFrame])> = Vec::new();
    for stack in votes {
        let Some(user) = rules.user_index(stack) else { continue };
        let frame = &stack[user];
        let name = format!("{}\0{}", frame.file, frame.function);
        let line = if exact { frame.line } else { 0 };
        match counts.iter_mut().find(|c| c.0 == name && c.1 == line) {
            Some(c) => c.2 += 1,
            None => counts.push((name, line, 1, stack)),
        }
    }
    counts.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| (&a.0, a.1).cmp(&(&b.0, b.1))));
    counts.first().map(|c| (c.3.to_vec(), c.2))
}

/// Median distance of neighbouring samples of a thread, in ns.
fn typical_period(profile: &Profile) -> i64 {
    let marks = &profile.nvtx.sample_marks;
    let mut gaps: Vec<i64> = (1..marks.len())
        .filter(|&i| marks.tid[i] == marks.tid[i - 1])
        .map(|i| marks.start[i] - marks.start[i - 1])
        .collect();
    gaps.sort_unstable();
    gaps.get(gaps.len() / 2).copied().unwrap_or(0)
}

/// Gives bundles placed by nothing better than ranges the native chain of a CPU sample or blocking system call inside
/// their waits, where one names the Python method.
pub fn place_natively(
    profile: &mut Profile,
    waits: &[Wait],
    bundles: &mut [Bundle],
) -> Result<(), InputError> {
    let weak =
        |b: &Bundle| b.chain.is_empty() && matches!(b.attribution, Attribution::Nvtx | Attribution::None);
    if !bundles.iter().any(weak) {
        return Ok(());
    }
    let sources = [
        (ChainTable::Osrt, samples::os_calls(&profile.db)?, "system calls"),
        (ChainTable::Sampling, samples::cpu_samples(&profile.db)?, "CPU samples"),
    ];
    for (table, samples, what) in sources {
        if samples.is_empty() {
            continue;
        }
        let found: Vec<(&mut Bundle, Vec<u32>)> = bundles
            .iter_mut()
            .filter(|b| weak(b))
            .map(|bundle| {
                let inside = inside(profile, waits, bundle, &samples);
                (bundle, inside)
            })
            .collect();
        // All at once: where the export has no index, each fetch scans the table.
        let mut chains = Chains::default();
        let ids = found.iter().flat_map(|(_, inside)| inside.iter().copied());
        chains.fetch(&profile.db, &mut profile.strings, table, ids)?;
        for (bundle, inside) in found {
            name_method(profile, bundle, &chains, &inside, what);
        }
    }
    Ok(())
}

/// Chain ids of samples inside a bundle's waits; a few suffice for a vote.
fn inside(profile: &Profile, waits: &[Wait], bundle: &Bundle, samples: &[Sample]) -> Vec<u32> {
    /// Chains read per bundle.
    const VOTES: usize = 32;
    let mut chains = Vec::new();
    for &w in &bundle.waits {
        let wait = &waits[w as usize];
        let tid = profile.calls.threads[wait.thread as usize];
        chains.extend(samples::within(samples, tid, wait.start, wait.end).iter().map(|s| s.chain));
        if chains.len() >= VOTES {
            break;
        }
    }
    chains.truncate(VOTES);
    chains
}

fn name_method(profile: &Profile, bundle: &mut Bundle, chains: &Chains, found: &[u32], what: &str) {
    let mut votes: Vec<(String, usize, Vec<std::sync::Arc<str>>)> = Vec::new();
    for &id in found {
        let chain: Vec<_> = chains.get(id).iter().filter_map(|&s| profile.strings.get(s).cloned()).collect();
        let Some(method) = native::method(&chain).map(str::to_owned) else { continue };
        match votes.iter_mut().find(|v| v.0 == method) {
            Some(v) => v.1 += 1,
            None => votes.push((method, 1, chain)),
        }
    }
    votes.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    if let Some((_, agree, chain)) = votes.into_iter().next() {
        bundle.attribution = Attribution::Native;
        bundle.note = format!("{agree} of {} {what} inside its waits agree", found.len());
        bundle.chain = chain;
    }
}
