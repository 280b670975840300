//! What followed what across streams and threads.
//!
//! **Streams.** `cudaStreamWaitEvent` is recorded with its event; where the event's record is in the export too, the
//! next op on the waiting stream follows the last one before the record. Most captures hold no event records. There,
//! an op that starts late, and right at the end of an op of another stream of its process, follows that one:
//!
//! ```text
//!  stream 7    [backward----]                    launched long ago, its own stream idle, and yet it starts here:
//!  stream 20                 ·[all-reduce]       it follows the backward op (an event, or the GPU was full)
//! ```
//!
//! **Threads.** PyTorch's autograd thread runs while the main thread stands in `backward()`:
//!
//! ```text
//!  main      [launch]···[launch]························[launch]       no call while the other runs
//!  autograd                   ··[launch]·[launch]·[wait]··
//!                             ^ follows main's last launch  ^ main goes on after autograd's last call
//! ```
//! Threads whose calls overlap in time run side by side and hand nothing over.

use super::NONE;
use super::issue::Issue;
use super::model::Program;
use crate::profile::Profile;
use crate::profile::nvtx::process;
use crate::waits::device::Devices;
use rustc_hash::{FxHashMap, FxHashSet};

/// How soon after another op's end an op must start to count as its follower.
pub const FOLLOWS_NS: i64 = 10_000;
/// Ops looked at before giving up.
const LOOK_BACK: usize = 32;
/// Switches between two threads of which one overlaps: more, and they run side by side.
const SIDE_BY_SIDE: u32 = 20;
/// Calls of a burst, on average, from which a thread without a telling name is one that work is handed to.
const BURST: u32 = 2;

/// Ends of all ops in order, where there is more than one stream.
pub struct Ends {
    /// (end, rank), ascending.
    ends: Vec<(i64, u32)>,
}

impl Ends {
    pub fn new(profile: &Profile, issue: &Issue) -> Self {
        let ops = &profile.ops;
        if ops.streams.len() < 2 {
            return Self { ends: Vec::new() };
        }
        let mut ends: Vec<(i64, u32)> = (0..ops.len()).map(|op| (ops.end[op], issue.rank[op])).collect();
        ends.sort_unstable();
        Self { ends }
    }

    /// The op of another stream of the process that ended just before `rank` started and was issued before it.
    pub fn followed(&self, profile: &Profile, issue: &Issue, rank: u32) -> Option<u32> {
        let ops = &profile.ops;
        let op = issue.order[rank as usize] as usize;
        let (start, stream) = (ops.start[op], ops.stream[op]);
        let until = self.ends.partition_point(|e| e.0 <= start);
        let near = self.ends[..until].iter().rev().take(LOOK_BACK);
        near.take_while(|e| start - e.0 <= FOLLOWS_NS)
            .find(|e| {
                let other = ops.stream[issue.order[e.1 as usize] as usize];
                let pid = |s: u32| ops.streams[s as usize].pid;
                e.1 < rank && other != stream && pid(other) == pid(stream)
            })
            .map(|e| e.1)
    }
}

/// Ops that follow another by a recorded event: rank of the op, rank of the one it follows.
pub fn recorded(profile: &Profile, devices: &Devices, issue: &Issue) -> FxHashMap<u32, u32> {
    let mut edges = FxHashMap::default();
    let ops = &profile.ops;
    let issued_before = |stream: u32, time: i64| {
        let list = &devices.stream_ops[stream as usize];
        list.partition_point(|&op| profile.issued[op as usize] < time)
    };
    for (wait, record) in profile.syncs.stream_waits() {
        let find = |device, context, id| {
            ops.streams
                .iter()
                .position(|k| (k.pid, k.device, k.context, k.stream) == (wait.pid, device, context, id))
        };
        let (Some(from), Some(to)) = (
            find(record.device, record.context, record.stream),
            find(wait.device, wait.context, wait.stream),
        ) else {
            continue;
        };
        let Some(call) = profile.correlation.call(wait.pid, record.correlation) else { continue };
        let before = issued_before(from as u32, profile.calls.start[call as usize]);
        let next = issued_before(to as u32, wait.start);
        let op = devices.stream_ops[to].get(next);
        let followed = before.checked_sub(1).map(|i| devices.stream_ops[from][i]);
        if let (Some(&op), Some(followed)) = (op, followed)
            && issue.rank[followed as usize] < issue.rank[op as usize]
        {
            edges.insert(issue.rank[op as usize], issue.rank[followed as usize]);
        }
    }
    edges
}

/// A thread as far as handing over goes.
#[derive(Clone, Copy)]
struct Last {
    end: i64,
}

/// Finds, for the first step of each burst of a thread, the thread that handed over to it.
///
/// Linear in the steps; threads of one process are few.
pub fn hand_over(profile: &Profile, issue: &Issue, program: &mut Program) {
    let mut members: FxHashMap<i64, Vec<u16>> = FxHashMap::default();
    for (t, &tid) in (0u16..).zip(&profile.calls.threads) {
        members.entry(process(tid)).or_default().push(t);
    }
    members.retain(|_, threads| threads.len() > 1);
    if members.is_empty() {
        return;
    }
    let beside = side_by_side(profile, issue, program);
    let mut last: Vec<Option<Last>> = vec![None; program.threads];
    let mut current: FxHashMap<i64, u16> = FxHashMap::default();
    for (i, &(call, ..)) in (0u32..).zip(&issue.entries) {
        if call == NONE {
            continue;
        }
        let (start, end) = (profile.calls.start[call as usize], profile.calls.end[call as usize]);
        let thread = profile.calls.thread[call as usize] as u16;
        let pid = process(profile.calls.threads[thread as usize]);
        if let Some(threads) = members.get(&pid)
            && current.insert(pid, thread).is_some_and(|before| before != thread)
        {
            let own = last[thread as usize].map_or(i64::MIN, |l| l.end);
            let from = threads
                .iter()
                .filter(|&&o| o != thread && !beside.contains(&pair(o, thread)))
                .filter_map(|&o| Some((last[o as usize]?, o)))
                .filter(|(l, _)| l.end > own && l.end <= start)
                .max_by_key(|(l, o)| (l.end, *o));
            if let Some((before, other)) = from {
                let step = &mut program.steps[i as usize];
                (step.after, step.gap) = (other, start - before.end);
            }
        }
        last[thread as usize] = Some(Last { end });
    }
}

fn pair(a: u16, b: u16) -> (u16, u16) {
    (a.min(b), a.max(b))
}

/// Pairs of threads that run side by side: their calls overlap, or one never has a burst of its own.
fn side_by_side(profile: &Profile, issue: &Issue, program: &Program) -> FxHashSet<(u16, u16)> {
    let mut switches: FxHashMap<(u16, u16), (u32, u32)> = FxHashMap::default();
    let mut bursts: Vec<(u32, u32)> = vec![(0, 0); program.threads];
    let mut current: FxHashMap<i64, (u16, i64)> = FxHashMap::default();
    for &(call, ..) in issue.entries.iter().filter(|e| e.0 != NONE) {
        let (start, end) = (profile.calls.start[call as usize], profile.calls.end[call as usize]);
        let thread = profile.calls.thread[call as usize] as u16;
        let pid = process(profile.calls.threads[thread as usize]);
        bursts[thread as usize].0 += 1;
        match current.get_mut(&pid) {
            Some((before, until)) if *before != thread => {
                let seen = switches.entry(pair(*before, thread)).or_default();
                seen.0 += 1;
                seen.1 += u32::from(start < *until);
                bursts[thread as usize].1 += 1;
                (*before, *until) = (thread, end.max(*until));
            }
            Some((_, until)) => *until = end.max(*until),
            None => {
                current.insert(pid, (thread, end));
                bursts[thread as usize].1 += 1;
            }
        }
    }
    let autograd = |t: u16| {
        let tid = profile.calls.threads[t as usize];
        profile.target.thread_names.get(&tid).is_some_and(|n| n.starts_with("pt_autograd"))
    };
    let bursty = |t: u16| bursts[t as usize].0 >= BURST * bursts[t as usize].1;
    let apart = |(a, b): (u16, u16)| !(autograd(a) || autograd(b) || (bursty(a) && bursty(b)));
    switches
        .into_iter()
        .filter(|&(p, (times, overlaps))| overlaps * SIDE_BY_SIDE > times || apart(p))
        .map(|(p, _)| p)
        .collect()
}
