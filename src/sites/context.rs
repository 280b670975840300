//! What the export knows about each wait besides its times: Python stack, native chain, NVTX range.

use crate::error::InputError;
use crate::profile::Profile;
use crate::profile::calls::NO_CHAIN;
use crate::profile::chains::{ChainTable, Chains};
use crate::profile::nvtx::process;
use crate::profile::payload::Stacks;
use crate::vocabulary::ThreadRole;
use crate::waits::Wait;
use crate::waits::device::{pid_of, tid_of};

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
