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
use super::build::UNEXPLAINED_NS;
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
    let ranks =
        recorded_ops(profile, devices).map(|(op, f)| (issue.rank[op as usize], issue.rank[f as usize]));
    ranks.filter(|(op, followed)| followed < op).collect()
}

/// As [`recorded`]: op, the op it follows, in the order of the waits.
fn recorded_ops<'a>(profile: &'a Profile, devices: &'a Devices) -> impl Iterator<Item = (u32, u32)> + 'a {
    let ops = &profile.ops;
    let issued_before = |stream: usize, time: i64| {
        let list = &devices.stream_ops[stream];
        list.partition_point(|&op| profile.issued[op as usize] < time)
    };
    profile.syncs.stream_waits().filter_map(move |(wait, record)| {
        let find = |device, context, id| {
            ops.streams
                .iter()
                .position(|k| (k.pid, k.device, k.context, k.stream) == (wait.pid, device, context, id))
        };
        let from = find(record.device, record.context, record.stream)?;
        let to = find(wait.device, wait.context, wait.stream)?;
        let call = profile.correlation.call(wait.pid, record.correlation)?;
        let before = issued_before(from, profile.calls.start[call as usize]);
        let op = *devices.stream_ops[to].get(issued_before(to, wait.start))?;
        Some((op, devices.stream_ops[from][before.checked_sub(1)?]))
    })
}

/// Among some ops, in the order of their issue: which follow one of another stream, by a recorded event, else because
/// they start late and right at its end.
pub fn within(profile: &Profile, devices: &Devices, list: &[u32]) -> FxHashMap<u32, u32> {
    let ops = &profile.ops;
    let stream = |op: u32| ops.stream[op as usize];
    if list.windows(2).all(|w| stream(w[0]) == stream(w[1])) {
        return FxHashMap::default();
    }
    let rank: FxHashMap<u32, usize> = list.iter().enumerate().map(|(rank, &op)| (op, rank)).collect();
    let earlier = |(op, f): &(u32, u32)| rank.get(f).zip(rank.get(op)).is_some_and(|(f, op)| f < op);
    let mut edges: FxHashMap<u32, u32> = recorded_ops(profile, devices).filter(earlier).collect();
    let mut ends: Vec<(i64, u32)> = list.iter().map(|&op| (ops.end[op as usize], op)).collect();
    ends.sort_unstable();
    let mut previous: FxHashMap<u32, i64> = FxHashMap::default();
    for &op in list {
        let (start, issued) = (ops.start[op as usize], profile.issued[op as usize]);
        let ready = previous.insert(stream(op), ops.end[op as usize]).unwrap_or(i64::MIN).max(issued);
        if start.saturating_sub(ready) <= UNEXPLAINED_NS || edges.contains_key(&op) {
            continue;
        }
        let until = ends.partition_point(|e| e.0 <= start);
        let near = ends[..until].iter().rev().take(LOOK_BACK).take_while(|e| start - e.0 <= FOLLOWS_NS);
        let followed = near.map(|e| e.1).find(|&f| stream(f) != stream(op) && earlier(&(op, f)));
        edges.extend(followed.map(|f| (op, f)));
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
