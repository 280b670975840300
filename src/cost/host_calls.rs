//! Host time in calls that allocate memory or load code.
//!
//! ```text
//!  host     [cudaMalloc------------------------]  [cudaHostAlloc=====]
//!             [cuLibraryLoadData----]              nested: no call of its own; a wait inside is told as a wait
//!  counted  |---- device allocation -----------|
//! ```
//! Each family counts its busiest thread: times of parallel threads are not summed. Cost: one sort.

use crate::iterations::Iterations;
use crate::profile::Profile;
use crate::profile::host_calls::HostCall;
use crate::profile::ids::{GlobalPid, GlobalTid};
use crate::vocabulary::ApiFamily;
use crate::waits::Waits;
use crate::waits::device::Devices;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub struct HostTime {
    /// Without nested ones.
    pub calls: u64,
    /// Without waits inside.
    pub ns: i64,
    /// At start-up: before the loop or in its first iterations, else before the process' first GPU work.
    pub start_up: i64,
    /// In the process' first call, which creates the context too.
    pub first_call: i64,
    /// By function (StringIds ids).
    names: BTreeMap<i64, i64>,
}

impl HostTime {
    /// The function that takes most (StringIds id).
    pub fn name(&self) -> Option<i64> {
        self.names.iter().max_by_key(|&(&id, &ns)| (ns, Reverse(id))).map(|(&id, _)| id)
    }
}

/// For each family, the thread with most time in it within `from..to`.
pub fn longest(
    profile: &Profile,
    (devices, waits): (&Devices, &Waits),
    iterations: Option<&Iterations>,
    (from, to): (i64, i64),
) -> BTreeMap<ApiFamily, (GlobalTid, HostTime)> {
    let mut calls = profile.calls.host_calls.clone();
    calls.sort_unstable_by_key(|call| (call.tid, call.start, Reverse(call.end), call.name));
    let waited = waited(profile, waits, &calls);
    let mut times: BTreeMap<(ApiFamily, GlobalTid), HostTime> = BTreeMap::new();
    for calls in calls.chunk_by(|one, next| one.tid == next.tid) {
        let (tid, pid) = (calls[0].tid, calls[0].tid.process());
        let (settled, first) = (settled(pid, devices, iterations), first_call(profile, pid));
        let waited = waited.get(&tid).map_or(&[][..], Vec::as_slice);
        let mut until = from;
        for call in calls {
            let ns = beside(waited, call.start.max(until), call.end.min(to));
            until = until.max(call.end);
            if ns > 0 {
                let time = times.entry((call.family, tid)).or_default();
                time.calls += 1;
                time.ns += ns;
                time.start_up += if settled.is_some_and(|settled| call.start < settled) { ns } else { 0 };
                time.first_call += if Some(call.start) == first { ns } else { 0 };
                *time.names.entry(call.name).or_default() += ns;
            }
        }
    }
    let mut longest: BTreeMap<ApiFamily, (GlobalTid, HostTime)> = BTreeMap::new();
    for ((family, tid), time) in times {
        if longest.get(&family).is_none_or(|(_, known)| known.ns < time.ns) {
            longest.insert(family, (tid, time));
        }
    }
    longest
}

fn waited(profile: &Profile, waits: &Waits, calls: &[HostCall]) -> FxHashMap<GlobalTid, Vec<(i64, i64)>> {
    let mut waited: FxHashMap<GlobalTid, Vec<(i64, i64)>> =
        calls.iter().map(|call| (call.tid, Vec::new())).collect();
    for wait in waits {
        if let Some(list) = waited.get_mut(&profile.calls.threads[wait.thread]) {
            list.push((profile.calls.start(wait.call), wait.end));
        }
    }
    waited
}

fn beside(waited: &[(i64, i64)], from: i64, to: i64) -> i64 {
    let to = to.max(from);
    let first = waited.partition_point(|wait| wait.1 <= from);
    let inside = waited[first..].iter().take_while(|wait| wait.0 < to);
    let blocked: i64 = inside.map(|wait| wait.1.min(to) - wait.0.max(from)).sum();
    (to - from - blocked).max(0)
}

/// End of a process' start-up; `None` where it has neither a loop nor GPU work.
fn settled(pid: GlobalPid, devices: &Devices, iterations: Option<&Iterations>) -> Option<i64> {
    match iterations.and_then(|found| found.of(pid)) {
        Some(found) => found.spans.iter().map(|span| span.0).find(|&start| !found.only_at_start(start)),
        None => devices.work.get(&pid).map(|work| work.0),
    }
}

fn first_call(profile: &Profile, pid: GlobalPid) -> Option<i64> {
    let own = profile.calls.threads.iter().zip(&profile.calls.spans).filter(|(tid, _)| tid.process() == pid);
    own.map(|(_, span)| span.start).min()
}
