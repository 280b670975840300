//! Places waits by samples.
//!
//! ```text
//!   wait      [----]                 [-------------------]
//!   samples      s1          s2                 s3              about one a millisecond
//! ```
//! A sample inside a wait (s1, s3) shows the wait's line. A wait without one shows, by its nearest sample,
//! only the function that ran shortly before or after. The samples of a bundle vote, and the report says how
//! many agree.

use super::frames::PathRules;
use super::program::Programs;
use super::{Bundle, native, set_up};
use crate::error::InputError;
use crate::profile::Profile;
use crate::profile::chains::{ChainTable, Chains};
use crate::profile::ids::{ExportId, MarkIx};
use crate::profile::payload::{PyFrame, StackIx, Stacks};
use crate::profile::samples::{self, Sample};
use crate::vocabulary::Attribution;
use crate::waits::Waits;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Most sampling periods between a wait and a sample that counts.
const REACH_PERIODS: i64 = 2;
/// Waits looked at per bundle: enough for a vote.
const WAITS_PER_BUNDLE: usize = 4096;

/// Gives bundles that have neither stack nor chain the Python stack that their samples agree on.
pub fn place(
    profile: &mut Profile,
    waits: &Waits,
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
    let marks: BTreeSet<_> = votes.iter().flat_map(|v| v.inside.iter().chain(&v.near)).copied().collect();
    let rowids: Vec<i64> = marks.iter().map(|&m| profile.nvtx.sample_marks.rows[m].rowid).collect();
    let mut stacks = Stacks::default();
    let read = stacks.read(profile, &rowids)?;
    let stack_of: FxHashMap<MarkIx, StackIx> =
        marks.iter().zip(read.stack).filter_map(|(&m, s)| Some((m, s?))).collect();
    for (i, votes) in open.into_iter().zip(votes) {
        votes.decide(&stack_of, &stacks, rules, &mut bundles[i]);
    }
    Ok(())
}

/// Marks inside the waits of a bundle, and nearest to waits without one.
struct Votes {
    inside: Vec<MarkIx>,
    near: Vec<MarkIx>,
}

impl Votes {
    fn collect(profile: &Profile, waits: &Waits, bundle: &Bundle, period: i64) -> Self {
        let marks = &profile.nvtx.sample_marks;
        let mut votes = Self { inside: Vec::new(), near: Vec::new() };
        for &w in bundle.waits.iter().take(WAITS_PER_BUNDLE) {
            let wait = &waits[w];
            let thread = marks.of_thread(profile.calls.threads[wait.thread]);
            let own = &marks.rows.raw[thread.clone()];
            let at = |time: i64| thread.start + own.partition_point(|mark| mark.start < time);
            let (from, to) = (at(wait.start), at(wait.end.saturating_add(1)));
            votes.inside.extend((from..to).map(MarkIx::from));
            if from == to {
                let before = from.checked_sub(1).filter(|&m| m >= thread.start);
                let distance = |m: &MarkIx| (marks.rows[*m].start - wait.start).abs();
                let after = (to < thread.end).then_some(to);
                let near = before.into_iter().chain(after).map(MarkIx::from).min_by_key(distance);
                votes.near.extend(near.filter(|m| distance(m) <= REACH_PERIODS * period));
            }
        }
        votes
    }

    fn decide(
        self,
        stack_of: &FxHashMap<MarkIx, StackIx>,
        stacks: &Stacks,
        rules: &PathRules,
        bundle: &mut Bundle,
    ) {
        let stacks_of = |marks: &[MarkIx]| -> Vec<&[PyFrame]> {
            marks.iter().filter_map(|m| stack_of.get(m)).map(|&s| &stacks.stacks[s][..]).collect()
        };
        let (inside, near) = (stacks_of(&self.inside), stacks_of(&self.near));
        let (votes, exact) = if inside.is_empty() { (near, false) } else { (inside, true) };
        let total = votes.len();
        let place = |stack: &&[PyFrame]| {
            // By the user's line where samples are exact, else by the user's function.
            let frame = &stack[rules.user_index(stack)?];
            let line = if exact { frame.line } else { 0 };
            Some((format!("{}\0{}", frame.file, frame.function), line))
        };
        let votes = votes.into_iter().filter_map(|stack| Some((place(&stack)?, stack)));
        let Some((stack, agree)) = majority(votes) else { return };
        bundle.attribution = Attribution::PythonSample;
        bundle.note = if exact {
            format!("{agree} of {total} samples inside its waits agree on the line")
        } else {
            format!(
                "no sample fell inside its waits: {agree} of the {total} nearest agree on the function; its line is not known"
            )
        };
        bundle.user = rules.user_index(stack);
        bundle.frames = stack.to_vec();
        if let (false, Some(user)) = (exact, bundle.user) {
            // Only the function is known: the line and inner frames are not the wait's.
            bundle.frames.drain(..user);
            bundle.frames[0].line = 0;
            bundle.user = Some(0);
        }
    }
}

/// The first vote of the most frequent key, and the key's count; of equals the smallest key.
fn majority<K: Ord, V>(votes: impl Iterator<Item = (K, V)>) -> Option<(V, usize)> {
    let mut counts: BTreeMap<K, (V, usize)> = BTreeMap::new();
    for (key, vote) in votes {
        counts.entry(key).or_insert((vote, 0)).1 += 1;
    }
    counts.into_values().rev().max_by_key(|(_, agree)| *agree)
}

/// Median distance of neighbouring samples of a thread, in ns.
fn typical_period(profile: &Profile) -> i64 {
    let pairs = profile.nvtx.sample_marks.rows.raw.windows(2).filter(|pair| pair[0].tid == pair[1].tid);
    let mut gaps: Vec<i64> = pairs.map(|pair| pair[1].start - pair[0].start).collect();
    gaps.sort_unstable();
    gaps.get(gaps.len() / 2).copied().unwrap_or(0)
}

/// Gives bundles placed by ranges at best the native chain of a CPU sample or blocking system call in their
/// waits. The chain must name the Python method or a library's set-up; without Python, any function.
pub fn place_natively(
    profile: &mut Profile,
    waits: &Waits,
    programs: &Programs,
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
        let open = bundles.iter_mut().filter(|b| weak(b));
        let found: Vec<(Vec<ExportId>, &mut Bundle)> =
            open.map(|bundle| (inside(profile, waits, bundle, &samples), bundle)).collect();
        // All at once: where the export has no index, each fetch scans the table.
        let mut chains = Chains::default();
        let ids = found.iter().flat_map(|(inside, _)| inside.iter().copied());
        chains.fetch(&profile.db, &mut profile.strings, table, ids)?;
        for (inside, bundle) in found {
            let any = programs.is_compiled(bundle.pid);
            name_function(profile, bundle, &chains, &inside, (what, any));
        }
    }
    Ok(())
}

fn inside(profile: &Profile, waits: &Waits, bundle: &Bundle, samples: &[Sample]) -> Vec<ExportId> {
    const VOTES: usize = 32;
    let inside =
        bundle.waits.iter().map(|&w| &waits[w]).flat_map(|wait| {
            samples::within(samples, profile.calls.threads[wait.thread], wait.start, wait.end)
        });
    inside.map(|sample| sample.chain).take(VOTES).collect()
}

/// `any`: whether a chain without a Python method may place the waits.
fn name_function(
    profile: &Profile,
    bundle: &mut Bundle,
    chains: &Chains,
    found: &[ExportId],
    (what, any): (&str, bool),
) {
    let votes = found.iter().filter_map(|&id| {
        let chain: Vec<_> = chains.get(id).iter().filter_map(|&s| profile.strings.get(s).cloned()).collect();
        let set_up = || Some(set_up::find(&chain, &[])?.1);
        let name = native::method(&chain).or_else(set_up).map(str::to_owned);
        let function = || native::caller(&chain).filter(|_| any);
        Some((name.or_else(function)?, chain))
    });
    if let Some((chain, agree)) = majority(votes) {
        bundle.attribution = Attribution::Native;
        bundle.note = format!("{agree} of {} {what} inside its waits agree", found.len());
        bundle.chain = chain;
    }
}
