//! What the export knows about each wait besides its times: Python stack, native chain, NVTX range.

use crate::error::InputError;
use crate::profile::Profile;
use crate::profile::calls::NO_CHAIN;
use crate::profile::chains::{ChainTable, Chains};
use crate::profile::nvtx::process;
use crate::profile::payload::Stacks;
use crate::vocabulary::{HostMemory, ThreadRole};
use crate::waits::Wait;
use crate::waits::device::{pid_of, tid_of};
use rustc_hash::{FxHashMap, FxHashSet};

/// Per wait (by index) what places it; texts and frames fetched for waits only.
#[derive(Default)]
pub struct Context {
    pub stacks: Stacks,
    /// Python stack of the call, where one was recorded.
    pub stack: Vec<Option<u32>>,
    /// Id of the native chain, [`NO_CHAIN`] for none.
    pub chain: Vec<u32>,
    /// Innermost NVTX range.
    pub range: Vec<Option<u32>>,
    pub role: Vec<ThreadRole>,
    /// By thread index: whether it is the main thread of its process.
    pub main: Vec<bool>,
    pub chains: Chains,
    /// Waits that have a Python mark at all.
    pub marked: u64,
    /// Marks of waits without payload, and with one that cannot be understood.
    pub missing: u64,
    pub broken: u64,
}

impl Context {
    /// Looks up stacks of all waits. Chains are fetched later, for those that need them.
    pub fn read(profile: &mut Profile, waits: &[Wait]) -> Result<Self, InputError> {
        let mut context = Self::default();
        let mut marks: Vec<(usize, i64)> = Vec::new();
        for (i, wait) in waits.iter().enumerate() {
            let tid = profile.calls.threads[wait.thread as usize];
            let (mark, chain) = backtrace(profile, wait, tid);
            marks.extend(mark.map(|m| (i, m)));
            context.chain.push(chain);
            context.range.push(profile.nvtx.ranges.innermost(tid, wait.start));
        }
        let rowids: Vec<i64> = marks.iter().map(|m| m.1).collect();
        let read = context.stacks.read(&profile.db, &mut profile.strings, &rowids)?;
        context.stack = vec![None; waits.len()];
        for ((i, _), stack) in marks.iter().zip(read.stack) {
            context.stack[*i] = stack;
        }
        (context.marked, context.missing, context.broken) = (marks.len() as u64, read.missing, read.broken);
        context.roles(profile, waits);
        Ok(context)
    }

    fn roles(&mut self, profile: &Profile, waits: &[Wait]) {
        let threads = profile.calls.threads.len();
        let mut has_python = vec![false; threads];
        for (wait, stack) in waits.iter().zip(&self.stack) {
            has_python[wait.thread as usize] |= stack.is_some();
        }
        self.main = (0..threads).map(|t| is_main(profile, t)).collect();
        let roles: Vec<ThreadRole> = (0..threads)
            .map(|t| {
                let name = profile.target.thread_names.get(&profile.calls.threads[t]).map(|n| &**n);
                super::thread::role(name, self.main[t], has_python[t])
            })
            .collect();
        self.role = waits.iter().map(|w| roles[w.thread as usize]).collect();
    }

    /// Parts synchronisations from copies that another line started: `buf.copy_(x, non_blocking=True)`, then
    /// `stream.synchronize()` further on. Without backtraces the time between the two calls tells; with them, each call
    /// takes so long that only the stacks do. A few pairs of each stack are compared, and all of them if those differ.
    pub fn part_strangers(&mut self, profile: &mut Profile, waits: &mut [Wait]) -> Result<(), InputError> {
        let pinned = |w: &Wait| w.copy.is_some_and(|c| c.host_memory == HostMemory::Pinned);
        let mut groups: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        for (i, wait) in waits.iter().enumerate() {
            if let (Some(stack), Some(_), true) = (self.stack[i], wait.copy_call, pinned(wait)) {
                groups.entry(stack).or_default().push(i);
            }
        }
        let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
        groups.sort_unstable();
        let sample = |g: &Vec<usize>| vec![g[0], g[g.len() / 2], g[g.len() - 1]];
        let samples: Vec<usize> = groups.iter().flat_map(sample).collect();
        let strange = self.strangers(profile, waits, &samples)?;
        if strange.is_empty() {
            return Ok(());
        }
        let suspects: Vec<usize> =
            groups.into_iter().filter(|g| sample(g).iter().any(|i| strange.contains(i))).flatten().collect();
        for i in self.strangers(profile, waits, &suspects)? {
            waits[i].part(&profile.calls, &profile.ops);
        }
        Ok(())
    }

    /// Those of the waits whose copy call has another Python stack than their synchronisation.
    fn strangers(
        &mut self,
        profile: &mut Profile,
        waits: &[Wait],
        of: &[usize],
    ) -> Result<FxHashSet<usize>, InputError> {
        let mut marks: Vec<(usize, i64)> = Vec::new();
        for &i in of {
            let tid = profile.calls.threads[waits[i].thread as usize];
            let mark = waits[i].copy_call.and_then(|call| call_mark(profile, waits[i].thread, tid, call));
            marks.extend(mark.map(|m| (i, m)));
        }
        let rowids: Vec<i64> = marks.iter().map(|m| m.1).collect();
        let read = self.stacks.read(&profile.db, &mut profile.strings, &rowids)?;
        let frames = |stack: u32| &self.stacks.stacks[stack as usize];
        let differs = |i: usize, copy: u32| self.stack[i].is_some_and(|own| frames(own) != frames(copy));
        let pairs = marks.iter().zip(read.stack).filter_map(|(&(i, _), copy)| Some((i, copy?)));
        Ok(pairs.filter(|&(i, copy)| differs(i, copy)).map(|(i, _)| i).collect())
    }

    /// Fetches the CUDA call chains of some waits.
    pub fn fetch_chains(
        &mut self,
        profile: &mut Profile,
        waits: impl Iterator<Item = u32>,
    ) -> Result<(), InputError> {
        let ids: Vec<u32> = waits.map(|w| self.chain[w as usize]).collect();
        self.chains.fetch(&profile.db, &mut profile.strings, ChainTable::Cuda, ids)
    }
}

/// The process's first thread (its id is the process's); where that made no call, the one with most calls.
fn is_main(profile: &Profile, thread: usize) -> bool {
    let calls = &profile.calls;
    let tid = calls.threads[thread];
    let mine = |t: &usize| process(calls.threads[*t]) == process(tid);
    let first = (0..calls.threads.len()).filter(mine).find(|&t| tid_of(calls.threads[t]) == pid_of(tid));
    let busiest = || {
        (0..calls.threads.len()).filter(mine).max_by_key(|&t| (calls.spans[t].calls, std::cmp::Reverse(t)))
    };
    first.or_else(busiest) == Some(thread)
}

/// Rowid of the Python mark of one call.
fn call_mark(profile: &Profile, thread: u32, tid: i64, call: u32) -> Option<i64> {
    let (calls, i) = (&profile.calls, call as usize);
    let twin = calls.twins.of(thread, calls.start[i], calls.correlation[i])?;
    let mark = profile.nvtx.call_marks.at(tid, calls.twins.start[twin])?;
    Some(profile.nvtx.call_marks.rowid[mark])
}

/// Rowid of the Python mark and id of the native chain of a wait: those of its synchronisation, else of its copy.
fn backtrace(profile: &Profile, wait: &Wait, tid: i64) -> (Option<i64>, u32) {
    let calls = &profile.calls;
    let (mut mark, mut chain) = (None, NO_CHAIN);
    for call in [Some(wait.call), wait.copy_call].into_iter().flatten() {
        let i = call as usize;
        let twin = calls.twins.of(wait.thread, calls.start[i], calls.correlation[i]);
        if mark.is_none()
            && let Some(twin) = twin
        {
            let at = profile.nvtx.call_marks.at(tid, calls.twins.start[twin]);
            mark = at.map(|m| profile.nvtx.call_marks.rowid[m]);
        }
        if chain == NO_CHAIN {
            chain = twin.map_or(NO_CHAIN, |t| calls.twins.chain[t]);
        }
        if chain == NO_CHAIN {
            chain = calls.chain[i];
        }
    }
    (mark, chain)
}
