//! In which order calls issued which ops.

use super::NONE;
use crate::profile::Profile;

/// Calls in recorded order and the ops that each issued.
pub struct Issue {
    /// Outermost calls and ops without a call, by start: (call or [`NONE`], first op rank, number of ops).
    pub entries: Vec<(u32, u32, u32)>,
    /// Op of each rank.
    pub order: Vec<u32>,
    /// Rank of each op.
    pub rank: Vec<u32>,
}

impl Issue {
    /// Linear in calls and ops. Calls nested in another hand their ops to it.
    ///
    /// ```text
    ///  cudaLaunchKernelExC [-----------]     one step, with the kernel
    ///    cuLaunchKernelEx    [-------]       nested
    /// ```
    pub fn new(profile: &Profile) -> Self {
        let (calls, ops) = (&profile.calls, &profile.ops);
        let outer = outermost(profile);
        let mut of_op = vec![NONE; ops.len()];
        let mut count = vec![0u32; calls.len() + 1];
        for (op, slot) in of_op.iter_mut().enumerate() {
            let pid = ops.streams[ops.stream[op] as usize].pid;
            if let Some(call) = profile.correlation.call(pid, ops.correlation[op]) {
                *slot = outer[call as usize];
                count[*slot as usize] += 1;
            }
        }
        let orphans = orphans(profile, &of_op);
        let mut next_orphan = orphans.iter().copied().peekable();
        let mut entries = Vec::with_capacity(calls.len() + orphans.len());
        let mut first = vec![0u32; calls.len()];
        let mut rank = vec![0u32; ops.len()];
        let mut at = 0u32;
        for call in 0..calls.len() {
            if outer[call] != call as u32 {
                continue;
            }
            while let Some((_, op)) = next_orphan.next_if(|o| o.0 <= calls.start[call]) {
                rank[op as usize] = at;
                entries.push((NONE, at, 1));
                at += 1;
            }
            first[call] = at;
            entries.push((call as u32, at, count[call]));
            at += count[call];
        }
        for (_, op) in next_orphan {
            rank[op as usize] = at;
            entries.push((NONE, at, 1));
            at += 1;
        }
        let mut order = vec![0u32; ops.len()];
        for op in 0..ops.len() {
            if of_op[op] != NONE {
                let slot = &mut first[of_op[op] as usize];
                rank[op] = *slot;
                *slot += 1;
            }
            order[rank[op] as usize] = op as u32;
        }
        Self { entries, order, rank }
    }
}

/// Ops whose launch is not recorded, by when they were issued at the latest: they ran before later ops of their stream,
/// so they were issued before those.
///
/// ```text
///  capture      |  [launch b]                    a was launched before the capture began
///  stream 7     |               [a------][b--]   and counts as issued just before b
/// ```
fn orphans(profile: &Profile, of_op: &[u32]) -> Vec<(i64, u32)> {
    let ops = &profile.ops;
    let mut next = vec![i64::MAX; ops.streams.len()];
    let mut found = Vec::new();
    for op in (0..ops.len()).rev() {
        let next = &mut next[ops.stream[op] as usize];
        match of_op[op] {
            NONE => {
                *next = (*next).min(ops.start[op]);
                found.push((*next, op as u32));
            }
            call => *next = (*next).min(profile.calls.start[call as usize]),
        }
    }
    found.sort_unstable();
    found
}

/// The outermost call around each call, itself for most.
fn outermost(profile: &Profile) -> Vec<u32> {
    let calls = &profile.calls;
    let mut open = vec![(i64::MIN, NONE); calls.threads.len()];
    (0..calls.len())
        .map(|i| {
            let (until, call) = &mut open[calls.thread[i] as usize];
            if calls.end[i] > *until || calls.start[i] >= *until {
                *call = i as u32;
            }
            *until = calls.end[i].max(*until);
            *call
        })
        .collect()
}
