//! Dependencies across streams and threads.
//!
//! **Streams.** `cudaStreamWaitEvent` is recorded with its event. If the export also holds the event's
//! record, the next op on the waiting stream follows the last one before the record. Most captures hold no
//! event records. There, an op that starts late, right at the end of an op of another stream of its process,
//! follows that op:
//!
//! ```text
//!  stream 7    [backward----]                    launched long ago, its own stream idle, and yet it starts here:
//!  stream 20                 ·[all-reduce]       it follows the backward op (an event, or the GPU was full)
//! ```
//!
//! **Threads.** PyTorch's autograd thread runs while the main thread is in `backward()`:
//!
//! ```text
//!  main      [launch]···[launch]························[launch]       no call while the other runs
//!  autograd                   ··[launch]·[launch]·[wait]··
//!                             ^ follows main's last launch  ^ main goes on after autograd's last call
//! ```
//! Threads whose calls overlap run side by side and hand nothing over. A thread that comes after long pauses
//! serves a busier one (callbacks, a logger): it follows the busier one, which does not wait.

use super::issue::Issue;
use super::step::{Rank, StepIx, UNEXPLAINED_NS};
use crate::profile::Profile;
use crate::profile::ids::{GlobalPid, GlobalTid, OpId, StreamIx, ThreadIx};
use crate::profile::ops::StreamKey;
use crate::profile::syncs::EventRow;
use crate::sites::thread::is_autograd;
use crate::waits::device::Devices;
use crate::waits::held::FOLLOWS_NS;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use typed_index_collections::TiVec;

const LOOK_BACK: usize = 32;
/// Threads run side by side if more than one of so many switches overlaps.
const SIDE_BY_SIDE: u32 = 20;
/// Calls of its process in a pause, after which a thread is taken to serve a busier one.
const PAUSE: usize = 20;
/// Calls of an average burst from which a thread without a telling name is handed work.
const BURST: u32 = 2;

/// Ends of all ops; empty with a single stream.
pub struct Ends {
    /// (end, rank), ascending.
    ends: Vec<(i64, Rank)>,
}

impl Ends {
    pub(super) fn new(profile: &Profile, issue: &Issue) -> Self {
        let ops = &profile.ops;
        if ops.streams.len() < 2 {
            return Self { ends: Vec::new() };
        }
        let mut ends: Vec<(i64, Rank)> = ops.ids().map(|op| (ops.end(op), issue.order.rank(op))).collect();
        ends.sort_unstable();
        Self { ends }
    }

    /// The op of another stream of the process that ended just before `rank` started and was issued before it.
    pub fn followed(&self, profile: &Profile, issue: &Issue, rank: Rank) -> Option<Rank> {
        let ops = &profile.ops;
        let op = issue.order.op(rank);
        let (start, stream) = (ops.start(op), ops.stream(op));
        right_before(&self.ends, start).find(|&followed| {
            let other = ops.stream(issue.order.op(followed));
            let pid = |s: StreamIx| ops.streams[s].pid;
            followed < rank && other != stream && pid(other) == pid(stream)
        })
    }
}

/// Ops that ended right before `start`, the last first; `ends` is ascending.
fn right_before<T: Copy>(ends: &[(i64, T)], start: i64) -> impl Iterator<Item = T> {
    let until = ends.partition_point(|e| e.0 <= start);
    let near = ends[..until].iter().rev().take(LOOK_BACK);
    near.take_while(move |e| start - e.0 <= FOLLOWS_NS).map(|e| e.1)
}

/// Ops that follow another by a recorded event, with that op.
pub fn recorded(profile: &Profile, devices: &Devices, issue: &Issue) -> FxHashMap<Rank, Rank> {
    let ranks = recorded_ops(profile, devices).map(|(op, f)| (issue.order.rank(op), issue.order.rank(f)));
    ranks.filter(|(op, followed)| followed < op).collect()
}

fn recorded_ops<'a>(profile: &'a Profile, devices: &'a Devices) -> impl Iterator<Item = (OpId, OpId)> + 'a {
    stream_waits(profile, devices).filter_map(|wait| {
        let next = devices.issued_before(profile, wait.stream, wait.start);
        Some((*devices.stream_ops[wait.stream].get(next)?, wait.after?))
    })
}

/// `cudaStreamWaitEvent` with an event whose record is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamWait {
    pub start: i64,
    pub end: i64,
    pub stream: StreamIx,
    pub from: StreamIx,
    /// Last op before the record; `None` if there is none.
    pub after: Option<OpId>,
}

pub fn stream_waits<'a>(profile: &'a Profile, devices: &'a Devices) -> impl Iterator<Item = StreamWait> + 'a {
    let find = |pid, &EventRow { device, context, stream, .. }: &EventRow| {
        profile.ops.streams.binary_search(&StreamKey { pid, device, context, stream }).ok()
    };
    profile.syncs.stream_waits().filter_map(move |(wait, record)| {
        let (stream, from) = (find(wait.pid, wait)?, find(wait.pid, record)?);
        let before = devices.issued_before(profile, from, profile.calls.start(record.call?));
        let after = before.checked_sub(1).map(|at| devices.stream_ops[from][at]);
        Some(StreamWait { start: wait.start, end: wait.end, stream, from, after })
    })
}

/// Ops of `list` (in order of issue) that follow one of another stream, with that one: by a recorded event,
/// else because they start late and right at its end.
pub fn within(profile: &Profile, devices: &Devices, list: &[OpId]) -> FxHashMap<OpId, OpId> {
    let ops = &profile.ops;
    let stream = |op: OpId| ops.stream(op);
    if list.windows(2).all(|w| stream(w[0]) == stream(w[1])) {
        return FxHashMap::default();
    }
    let rank: FxHashMap<OpId, usize> = list.iter().enumerate().map(|(rank, &op)| (op, rank)).collect();
    let earlier = |(op, f): &(OpId, OpId)| rank.get(f).zip(rank.get(op)).is_some_and(|(f, op)| f < op);
    let mut edges: FxHashMap<OpId, OpId> = recorded_ops(profile, devices).filter(earlier).collect();
    let mut ends: Vec<(i64, OpId)> = list.iter().map(|&op| (ops.end(op), op)).collect();
    ends.sort_unstable();
    let mut previous: FxHashMap<StreamIx, i64> = FxHashMap::default();
    for &op in list {
        let (start, issued) = (ops.start(op), profile.issued(op));
        let ready = previous.insert(stream(op), ops.end(op)).unwrap_or(i64::MIN).max(issued);
        if start.saturating_sub(ready) <= UNEXPLAINED_NS || edges.contains_key(&op) {
            continue;
        }
        let followed = right_before(&ends, start).find(|&f| stream(f) != stream(op) && earlier(&(op, f)));
        edges.extend(followed.map(|f| (op, f)));
    }
    edges
}

pub struct HandOver {
    pub step: StepIx,
    pub from: ThreadIx,
    /// Host time since the last call of `from`.
    pub gap: i64,
}

/// Finds the thread that handed over to each burst of a thread; `beside`: threads that run side by side.
/// Costs a few steps of a search tree a burst.
pub fn hand_over(profile: &Profile, issue: &Issue, beside: &Pairs) -> Vec<HandOver> {
    let (calls, mut found) = (&profile.calls, Vec::new());
    let mut places: FxHashMap<GlobalPid, usize> = FxHashMap::default();
    let mut place = |tid: &GlobalTid| {
        let next = places.len();
        *places.entry(tid.process()).or_insert(next)
    };
    let process_of: TiVec<ThreadIx, usize> = calls.threads.iter().map(&mut place).collect();
    if places.len() == calls.threads.len() {
        return found;
    }
    // Calls of each process, and their number at each thread's last call.
    let mut made: Vec<usize> = vec![0; places.len()];
    let mut seen: TiVec<ThreadIx, usize> = calls.threads.iter().map(|_| 0).collect();
    let mut last: TiVec<ThreadIx, Option<i64>> = calls.threads.iter().map(|_| None).collect();
    // By process: the thread that called last, and all others by the end of their last call.
    let mut current: Vec<Option<ThreadIx>> = vec![None; places.len()];
    let mut ended: Vec<BTreeSet<(i64, ThreadIx)>> = vec![BTreeSet::new(); places.len()];
    for (step, entry) in issue.entries().enumerate() {
        let Some(call) = entry.call else { continue };
        let (start, end, thread) = (calls.start(call), calls.end(call), calls.thread(call));
        let place = process_of[thread];
        let (current, ended) = (&mut current[place], &mut ended[place]);
        let own = last[thread];
        if let Some(before) = current.replace(thread).filter(|before| *before != thread) {
            ended.extend(last[before].map(|end| (end, before)));
            own.map(|own| ended.remove(&(own, thread)));
            let since = (own.unwrap_or(i64::MIN).saturating_add(1), ThreadIx::from(0));
            let paused = made[place] - seen[thread] >= PAUSE;
            let apart = |o: ThreadIx| o != thread && !beside.contains(&pair(o, thread));
            let serves = |o: ThreadIx| paused && calls.spans[o].calls > calls.spans[thread].calls;
            let mut others = ended.range(since..).rev();
            if let Some(&(ended, from)) = others.find(|(end, o)| serves(*o) || *end <= start && apart(*o)) {
                found.push(HandOver { step: StepIx::from(step), from, gap: (start - ended).max(0) });
            }
        }
        made[place] += 1;
        seen[thread] = made[place];
        last[thread] = Some(end);
    }
    found
}

fn pair(a: ThreadIx, b: ThreadIx) -> (ThreadIx, ThreadIx) {
    (a.min(b), a.max(b))
}

pub type Pairs = FxHashSet<(ThreadIx, ThreadIx)>;

/// Threads that run side by side: their calls overlap, or one never has a burst of its own. Exempt is a
/// thread that only comes when the other is done, as a profiler's that synchronises when it stops.
pub fn side_by_side(profile: &Profile, issue: &Issue) -> Pairs {
    let calls = &profile.calls;
    let mut switches: FxHashMap<(ThreadIx, ThreadIx), (u32, u32)> = FxHashMap::default();
    let mut bursts: TiVec<ThreadIx, (u32, u32)> = calls.threads.iter().map(|_| (0, 0)).collect();
    let mut current: FxHashMap<GlobalPid, (ThreadIx, i64)> = FxHashMap::default();
    for call in issue.entries().filter_map(|entry| entry.call) {
        let (start, end, thread) = (calls.start(call), calls.end(call), calls.thread(call));
        let pid = calls.threads[thread].process();
        bursts[thread].0 += 1;
        match current.get_mut(&pid) {
            Some((before, until)) if *before != thread => {
                let seen = switches.entry(pair(*before, thread)).or_default();
                seen.0 += 1;
                seen.1 += u32::from(start < *until);
                bursts[thread].1 += 1;
                (*before, *until) = (thread, end.max(*until));
            }
            Some((_, until)) => *until = end.max(*until),
            None => {
                current.insert(pid, (thread, end));
                bursts[thread].1 += 1;
            }
        }
    }
    let autograd =
        |t: ThreadIx| profile.target.thread_names.get(&calls.threads[t]).is_some_and(|n| is_autograd(n));
    let bursty = |t: ThreadIx| bursts[t].0 >= BURST * bursts[t].1;
    let apart = |(a, b): (ThreadIx, ThreadIx)| !(autograd(a) || autograd(b) || (bursty(a) && bursty(b)));
    switches
        .into_iter()
        .filter(|&(p, (times, overlaps))| overlaps * SIDE_BY_SIDE > times || times > 1 && apart(p))
        .map(|(p, _)| p)
        .collect()
}
