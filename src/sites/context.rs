//! The Python stack, native chain and NVTX range of each wait.

use super::program::Programs;
use crate::error::InputError;
use crate::profile::Profile;
use crate::profile::chains::{ChainTable, Chains};
use crate::profile::ids::{CallId, ExportId, GlobalPid, GlobalTid, RangeId, ThreadIx};
use crate::profile::payload::{StackIx, Stacks};
use crate::vocabulary::{HostMemory, ThreadRole};
use crate::waits::{Wait, WaitId, Waits};
use rustc_hash::{FxHashMap, FxHashSet};
use typed_index_collections::TiVec;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Backward {
    /// Stack of the thread that is in `backward()` meanwhile.
    pub caller: Option<StackIx>,
    /// Stack of the forward operator's last call.
    pub forward: Option<StackIx>,
}

/// Places of waits; texts and frames are fetched for waits only.
#[derive(Default)]
pub struct Context {
    pub stacks: Stacks,
    /// `None` where no Python stack was recorded.
    pub stack: TiVec<WaitId, Option<StackIx>>,
    pub chain: TiVec<WaitId, ExportId>,
    /// Innermost NVTX range.
    pub range: TiVec<WaitId, Option<RangeId>>,
    pub role: TiVec<WaitId, ThreadRole>,
    pub programs: Programs,
    pub main: TiVec<ThreadIx, bool>,
    /// Only waits on autograd's threads without a user line; see [`super::backward`].
    pub backward: FxHashMap<WaitId, Backward>,
    pub chains: Chains,
    pub marked: u64,
    /// Marks without payload.
    pub missing: u64,
    /// Marks with an unreadable payload.
    pub broken: u64,
}

impl Context {
    /// Looks up stacks of all waits. Chains are fetched later, only where needed.
    pub fn read(profile: &mut Profile, waits: &Waits) -> Result<Self, InputError> {
        let mut context = Self::default();
        let mut marks: Vec<(WaitId, i64)> = Vec::new();
        for (w, wait) in waits.iter_enumerated() {
            let tid = profile.calls.threads[wait.thread];
            let (mark, chain) = backtrace(profile, wait);
            marks.extend(mark.map(|m| (w, m)));
            context.chain.push(chain);
            context.range.push(profile.nvtx.ranges.innermost(tid, wait.start));
        }
        let rowids: Vec<i64> = marks.iter().map(|m| m.1).collect();
        let read = context.stacks.read(profile, &rowids)?;
        context.stack = waits.iter().map(|_| None).collect();
        for ((w, _), stack) in marks.iter().zip(read.stack) {
            context.stack[*w] = stack;
        }
        (context.marked, context.missing, context.broken) = (marks.len() as u64, read.missing, read.broken);
        context.roles(profile, waits);
        let python =
            waits.iter().zip(&context.stack).filter(|(_, stack)| stack.is_some()).map(|(w, _)| w.pid);
        let sampled = profile.nvtx.sample_marks.rows.iter().map(|mark| mark.tid.process());
        context.programs = Programs::read(profile, &python.chain(sampled).collect())?;
        // The next capture should ask for Python frames only where there is Python.
        let compiled = |tid: &GlobalTid| context.programs.is_compiled(tid.process());
        profile.target.without_python =
            !profile.calls.threads.is_empty() && profile.calls.threads.iter().all(compiled);
        Ok(context)
    }

    fn roles(&mut self, profile: &Profile, waits: &Waits) {
        let threads = profile.calls.threads.keys();
        let mut has_python: TiVec<ThreadIx, bool> = threads.clone().map(|_| false).collect();
        for (wait, stack) in waits.iter().zip(&self.stack) {
            has_python[wait.thread] |= stack.is_some();
        }
        self.main = main_threads(profile);
        let roles: TiVec<ThreadIx, ThreadRole> = threads
            .map(|t| {
                let name = profile.target.thread_names.get(&profile.calls.threads[t]).map(|n| &**n);
                super::thread::role(name, self.main[t], has_python[t])
            })
            .collect();
        self.role = waits.iter().map(|w| roles[w.thread]).collect();
    }

    /// Synchronisations whose copy another line started: `buf.copy_(x, non_blocking=True)`, then
    /// `stream.synchronize()` further on. With backtraces, which take long, only the stacks decide. A few
    /// pairs per stack are compared, and all if one differs.
    pub fn copied_elsewhere(
        &mut self,
        profile: &mut Profile,
        waits: &Waits,
    ) -> Result<FxHashSet<WaitId>, InputError> {
        let pinned = |w: &Wait| w.copy.is_some_and(|c| c.host_memory == HostMemory::Pinned);
        let mut groups: FxHashMap<StackIx, Vec<WaitId>> = FxHashMap::default();
        for (w, wait) in waits.iter_enumerated() {
            if let (Some(stack), Some(_), true) = (self.stack[w], wait.copy_call, pinned(wait)) {
                groups.entry(stack).or_default().push(w);
            }
        }
        let mut groups: Vec<Vec<WaitId>> = groups.into_values().collect();
        groups.sort_unstable();
        let sample = |g: &Vec<WaitId>| vec![g[0], g[g.len() / 2], g[g.len() - 1]];
        let samples: Vec<WaitId> = groups.iter().flat_map(sample).collect();
        let unrelated = self.unrelated_copies(profile, waits, &samples)?;
        if unrelated.is_empty() {
            return Ok(unrelated);
        }
        let differs = |g: &Vec<WaitId>| sample(g).iter().any(|w| unrelated.contains(w));
        let suspects: Vec<WaitId> = groups.into_iter().filter(differs).flatten().collect();
        self.unrelated_copies(profile, waits, &suspects)
    }

    /// Waits whose copy call has another Python stack than their synchronisation.
    fn unrelated_copies(
        &mut self,
        profile: &mut Profile,
        waits: &Waits,
        of: &[WaitId],
    ) -> Result<FxHashSet<WaitId>, InputError> {
        let mark = |&w: &WaitId| Some((w, mark_of(profile, waits[w].copy_call?)?));
        let marks: Vec<(WaitId, i64)> = of.iter().filter_map(mark).collect();
        let rowids: Vec<i64> = marks.iter().map(|m| m.1).collect();
        let read = self.stacks.read(profile, &rowids)?;
        let stacks = &self.stacks.stacks;
        let differs = |w: WaitId, copy: StackIx| self.stack[w].is_some_and(|own| stacks[own] != stacks[copy]);
        let pairs = marks.iter().zip(read.stack).filter_map(|(&(w, _), copy)| Some((w, copy?)));
        Ok(pairs.filter(|&(w, copy)| differs(w, copy)).map(|(w, _)| w).collect())
    }

    pub fn fetch_chains(
        &mut self,
        profile: &mut Profile,
        waits: impl Iterator<Item = WaitId>,
    ) -> Result<(), InputError> {
        let ids: Vec<ExportId> = waits.map(|w| self.chain[w]).collect();
        self.chains.fetch(&profile.db, &mut profile.strings, ChainTable::Cuda, ids)
    }
}

/// Each process's first thread (thread id = process id), or where that made no call, the one with most calls.
fn main_threads(profile: &Profile) -> TiVec<ThreadIx, bool> {
    let calls = &profile.calls;
    let rank = |t: ThreadIx| {
        let tid = calls.threads[t];
        (tid == tid.process().main_thread(), calls.spans[t].calls, std::cmp::Reverse(t))
    };
    let mut best: FxHashMap<GlobalPid, ThreadIx> = FxHashMap::default();
    for t in calls.threads.keys() {
        let main = best.entry(calls.threads[t].process()).or_insert(t);
        if rank(t) > rank(*main) {
            *main = t;
        }
    }
    calls.threads.keys().map(|t| best[&calls.threads[t].process()] == t).collect()
}

/// Rowid of a call's Python mark.
pub fn mark_of(profile: &Profile, call: CallId) -> Option<i64> {
    let calls = &profile.calls;
    Some(profile.nvtx.call_marks.at(calls.tid(call), calls.twins.start[calls.twin(call)?])?.rowid)
}

/// Rowid of a wait's Python mark and id of its native chain: its synchronisation's, else its copy's.
fn backtrace(profile: &Profile, wait: &Wait) -> (Option<i64>, ExportId) {
    let calls = &profile.calls;
    let (mut mark, mut chain) = (None, ExportId::NONE);
    for call in std::iter::once(wait.call).chain(wait.copy_call) {
        mark = mark.or_else(|| mark_of(profile, call));
        let of_twin = calls.twin(call).map_or(ExportId::NONE, |twin| calls.twins.chain[twin]);
        chain = chain.or(of_twin).or(calls.chain.get(&call).copied().unwrap_or(ExportId::NONE));
    }
    (mark, chain)
}
