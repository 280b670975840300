//! Forms bundles of waits that are alike.

use super::backward;
use super::chain::Signatures;
use super::context::{Backward, Context};
use super::frames::PathRules;
use super::neighbours::{self, Neighbours};
use super::{Bundle, Freed, native, ranges, sampled};
use crate::catalogue;
use crate::error::InputError;
use crate::profile::Profile;
use crate::profile::ids::{GlobalPid, NameIx, OpId, RangeId};
use crate::profile::payload::{PyFrame, StackIx};
use crate::vocabulary::{Attribution, Direction, HostMemory, NUMBER_BYTES, ThreadRole};
use crate::waits::api::Blocking;
use crate::waits::device::Devices;
use crate::waits::{Found, Guards, Wait, WaitId, Waits};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;
use typed_index_collections::TiVec;

/// Chains sampled per bundle of one Python stack. If these agree, so do the others (one line, one copy size,
/// one outcome). If not, every chain is read and the bundle split.
const CHAINS_PER_STACK: usize = 8;

/// Evidence for a wait's place, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Anchor {
    Stack(StackIx),
    Chain(u32),
    /// Path of NVTX range names, and the ops before the wait.
    Ranges(u32, u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    pid: GlobalPid,
    role: ThreadRole,
    api: NameIx,
    place: Anchor,
    copy: Option<(Direction, HostMemory, SizeClass)>,
    found: Option<u8>,
    completes: bool,
    guards: Guards,
    copy_lost: bool,
    freed: Freed,
    /// Native chain: one Python stack may do different things.
    signature: Option<u32>,
    backward: Option<Backward>,
}

/// Bytes of a copy: exact where it may be one number, in powers of two above.
type SizeClass = u64;

fn size_class(bytes: u64) -> SizeClass {
    if bytes <= NUMBER_BYTES { bytes } else { bytes.next_power_of_two() }
}

/// Groups all waits into bundles, in order of their first wait.
pub fn form(
    profile: &mut Profile,
    devices: &Devices,
    waits: &Waits,
    context: &mut Context,
    rules: &PathRules,
) -> Result<Vec<Bundle>, InputError> {
    let mut signatures = Signatures::default();
    backward::place(profile, waits, context, rules)?;
    let groups = group(profile, devices, waits, context, &mut signatures)?;
    let around: Vec<_> =
        groups.iter().map(|(_, w)| neighbours::around(profile, devices, &waits[typical(w, waits)])).collect();
    let neighbours = neighbours::names(profile, &around)?;
    let middle = |w: &[WaitId]| context.range[w[w.len() / 2]];
    let texts = ranges::texts_outwards(profile, groups.iter().map(|(_, w)| middle(w)))?;
    let former = Former { profile, waits, context, rules, signatures: &signatures };
    let mut bundles: Vec<Bundle> = groups
        .into_iter()
        .zip(neighbours)
        .map(|((key, w), neighbours)| {
            let outwards = profile.nvtx.ranges.outwards(middle(&w));
            let mut ranges: Vec<Arc<str>> = outwards.filter_map(|r| texts.get(&r).cloned()).collect();
            ranges.reverse();
            former.bundle(key, w, neighbours, ranges)
        })
        .collect();
    sampled::place(profile, waits, rules, &mut bundles)?;
    sampled::place_natively(profile, waits, &context.programs, &mut bundles)?;
    guard_lines(&mut bundles);
    Ok(bundles)
}

/// A line that waits for a copy's event guards memory each time, also before the first record of the event.
fn guard_lines(bundles: &mut [Bundle]) {
    let line = |b: &Bundle| {
        let exact = b.attribution == Attribution::PythonBacktrace && b.copy.is_none();
        exact.then(|| (b.pid, b.api.clone(), b.inside().to_vec(), b.user_frame().cloned()))
    };
    let own = bundles.iter().filter(|b| b.guards == Guards::Own).filter_map(line);
    let own: FxHashSet<_> = own.collect();
    for bundle in bundles.iter_mut().filter(|_| !own.is_empty()) {
        if line(bundle).is_some_and(|line| own.contains(&line)) {
            bundle.guards = Guards::Own;
        }
    }
}

/// The example wait of a bundle: from the middle on the first with an awaited op, else the middle.
fn typical(members: &[WaitId], waits: &Waits) -> WaitId {
    let middle = members[members.len() / 2];
    let awaiting = |w: &&WaitId| waits[**w].awaited.is_some();
    members[members.len() / 2..].iter().find(awaiting).copied().unwrap_or(middle)
}

fn group(
    profile: &mut Profile,
    devices: &Devices,
    waits: &Waits,
    context: &mut Context,
    signatures: &mut Signatures,
) -> Result<Vec<(Key, Vec<WaitId>)>, InputError> {
    let unplaced: Vec<WaitId> = waits.keys().filter(|&w| context.stack[w].is_none()).collect();
    context.fetch_chains(profile, unplaced.iter().copied())?;
    let mut places: TiVec<WaitId, Option<Anchor>> =
        context.stack.iter().map(|s| s.map(Anchor::Stack)).collect();
    for &w in &unplaced {
        places[w] = signatures.intern(&context.chains, &profile.strings, context.chain[w]).map(Anchor::Chain);
    }
    let rest: Vec<WaitId> = unplaced.into_iter().filter(|&w| places[w].is_none()).collect();
    for (w, place) in by_ranges(profile, devices, waits, context, &rest)? {
        places[w] = Some(place);
    }
    let mut groups: FxHashMap<Key, Vec<WaitId>> = FxHashMap::default();
    for ((w, wait), place) in waits.iter_enumerated().zip(places) {
        let Some(place) = place else { continue };
        let key = Key {
            pid: wait.pid,
            role: context.role[w],
            api: profile.calls.name(wait.call),
            place,
            copy: wait.copy.map(|c| (c.direction, c.host_memory, size_class(c.bytes))),
            // With a copy, the copy is what was waited for; bare synchronisations differ by what they found.
            found: wait.copy.is_none().then_some(wait.found as u8),
            completes: wait.completes.is_some(),
            guards: if wait.copy.is_none() { wait.guards } else { Guards::Nothing },
            copy_lost: wait.copy_lost(),
            freed: Freed::of(wait, devices),
            signature: None,
            backward: context.backward.get(&w).copied(),
        };
        groups.entry(key).or_default().push(w);
    }
    let mut groups = split_by_chain(profile, context, signatures, groups)?;
    groups.sort_by_key(|(_, w)| w[0]);
    Ok(groups)
}

/// Splits the waits of one stack that did different things: `repeat_interleave` reads a total, then checks a sign.
fn split_by_chain(
    profile: &mut Profile,
    context: &mut Context,
    signatures: &mut Signatures,
    groups: FxHashMap<Key, Vec<WaitId>>,
) -> Result<Vec<(Key, Vec<WaitId>)>, InputError> {
    let mut groups: Vec<(Key, Vec<WaitId>)> = groups.into_iter().collect();
    groups.sort_unstable();
    let sample = |w: &[WaitId]| -> Vec<WaitId> {
        w.iter().copied().step_by(w.len().div_ceil(CHAINS_PER_STACK).max(1)).collect()
    };
    let on_stack = |k: &Key| matches!(k.place, Anchor::Stack(_));
    let first = groups.iter().filter(|(k, _)| on_stack(k)).flat_map(|(_, w)| sample(w));
    context.fetch_chains(profile, first)?;
    let mut out = Vec::new();
    let mut mixed = Vec::new();
    for (key, w) in groups {
        let mut seen = sample(&w)
            .into_iter()
            .map(|w| signatures.intern(&context.chains, &profile.strings, context.chain[w]));
        let signature = seen.next().flatten();
        if seen.all(|s| s == signature) || !on_stack(&key) {
            out.push((Key { signature, ..key }, w));
        } else {
            mixed.push((key, w));
        }
    }
    context.fetch_chains(profile, mixed.iter().flat_map(|(_, w)| w.iter().copied()))?;
    for (key, list) in mixed {
        let mut parts: BTreeMap<Option<u32>, Vec<WaitId>> = BTreeMap::new();
        for w in list {
            let signature = signatures.intern(&context.chains, &profile.strings, context.chain[w]);
            parts.entry(signature).or_default().push(w);
        }
        out.extend(parts.into_iter().map(|(signature, w)| (Key { signature, ..key }, w)));
    }
    Ok(out)
}

/// Places waits by their NVTX ranges and the ops before them. By range alone, one iteration range would join
/// all its waits, and the kernels around one would speak for all.
fn by_ranges(
    profile: &mut Profile,
    devices: &Devices,
    waits: &Waits,
    context: &Context,
    rest: &[WaitId],
) -> Result<Vec<(WaitId, Anchor)>, InputError> {
    let mut paths: FxHashMap<Option<RangeId>, u32> = FxHashMap::default();
    let mut names: FxHashMap<Vec<String>, u32> = FxHashMap::default();
    let texts = ranges::texts_outwards(profile, rest.iter().map(|&w| context.range[w]))?;
    // Samples are few: the finer the groups, the fewer of them agree on a line.
    let distance = if profile.nvtx.sample_marks.is_empty() { 2 } else { 1 };
    Ok(rest
        .iter()
        .map(|&w| {
            let path = *paths.entry(context.range[w]).or_insert_with_key(|&range| {
                let outwards = profile.nvtx.ranges.outwards(range);
                let path = outwards.filter_map(|r| Some(ranges::stable_name(texts.get(&r)?))).collect();
                let next = names.len() as u32;
                *names.entry(path).or_insert(next)
            });
            let before = ops_before(profile, devices, &waits[w], distance);
            (w, Anchor::Ranges(path, before))
        })
        .collect())
}

/// A hash of up to `distance` (at most two) ops before a wait on its stream. The kernel that counts a mask's
/// elements is the same for all masks; the kernel that made the mask is not.
fn ops_before(profile: &Profile, devices: &Devices, wait: &Wait, distance: usize) -> u64 {
    let around = neighbours::around(profile, devices, wait);
    let number = |&op: &OpId| {
        let name = profile.ops.kernel(op).unwrap_or(0);
        1 + profile.ops.kind(op) as u64 + (u64::from(name) << 2)
    };
    around.before.iter().take(distance).fold(0, |all, op| (all << 32) ^ number(op))
}

struct Former<'a> {
    profile: &'a Profile,
    waits: &'a Waits,
    context: &'a Context,
    rules: &'a PathRules,
    signatures: &'a Signatures,
}

impl Former<'_> {
    fn bundle(
        &self,
        key: Key,
        members: Vec<WaitId>,
        neighbours: Neighbours,
        ranges: Vec<Arc<str>>,
    ) -> Bundle {
        let first = &self.waits[members[0]];
        let symbols = |s| self.signatures.symbols(&self.profile.strings, s);
        let chain = key.signature.map_or_else(Vec::new, symbols);
        let (mut frames, mut attribution) = self.placed(&key.place, &chain, &ranges);
        let stack = |s: StackIx| &self.context.stacks.stacks[s];
        let own = frames.len();
        let calls_backward = key.backward.and_then(|b| b.caller).map(stack);
        let mut meanwhile = "";
        if let Some(caller) = calls_backward {
            // Helper frames say nothing, and must not pass for code that waits.
            frames.extend(caller.iter().skip_while(|f| catalogue::is_helper(&f.file)).cloned());
            // The user's own code on autograd's thread (a function's `backward`, a hook) waits by itself.
            if self.rules.user_index(&frames[..own]).is_none() {
                (attribution, meanwhile) = (Attribution::Backward, "its thread was in there meanwhile");
            }
        }
        let forward = key.backward.and_then(|b| b.forward).map(stack);
        let same_bytes =
            members.iter().all(|&w| self.waits[w].copy.map(|c| c.bytes) == first.copy.map(|c| c.bytes));
        Bundle {
            pid: key.pid,
            role: key.role,
            api: self.profile.calls.base_name(first.call).clone(),
            blocking: first.blocking,
            attribution,
            note: meanwhile.to_owned(),
            user: self.rules.user_index(&frames),
            own: calls_backward.map_or(usize::MAX, |_| own),
            forward: forward.and_then(|s| s.get(self.rules.user_index(s).unwrap_or(0))).cloned(),
            frames,
            chain,
            ranges,
            copy: first.copy,
            same_bytes,
            found: if key.found.is_some() || first.blocking == Blocking::Stream {
                first.found
            } else {
                Found::Pending
            },
            completes: key.completes,
            guards: key.guards,
            copy_lost: key.copy_lost,
            freed: key.freed,
            neighbours,
            waits: members,
        }
    }

    fn placed(&self, place: &Anchor, chain: &[Arc<str>], ranges: &[Arc<str>]) -> (Vec<PyFrame>, Attribution) {
        // A tensor subclass only forwards its caller's operator.
        let carries_on = |f: &&PyFrame| f.function.rsplit('.').next() == Some("__torch_function__");
        let names_operator = |r: &Arc<str>| r.starts_with("aten::") || r.starts_with("c10d::");
        match *place {
            Anchor::Stack(s) => {
                let frames = self.context.stacks.stacks[s].iter().skip_while(carries_on);
                let frames: Vec<PyFrame> = frames.cloned().collect();
                let place = self.rules.user_index(&frames).unwrap_or(0);
                let has_line = frames.get(place).is_none_or(|frame| frame.line > 0 || frame.first == 0);
                (frames, if has_line { Attribution::PythonBacktrace } else { Attribution::PythonFunction })
            }
            // A chain without a Python method yields to a range that names the operator.
            Anchor::Chain(_)
                if native::method(chain).is_none() && ranges.last().is_some_and(names_operator) =>
            {
                (Vec::new(), Attribution::Nvtx)
            }
            Anchor::Chain(_) => (Vec::new(), Attribution::Native),
            Anchor::Ranges(..) if !ranges.is_empty() => (Vec::new(), Attribution::Nvtx),
            Anchor::Ranges(..) => (Vec::new(), Attribution::None),
        }
    }
}
