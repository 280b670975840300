//! Drain: device-idle time that a wait leaves behind.
//!
//! ```text
//!  host    [wait-----------]  launch k2
//!  s7   [k1------------]            [k2---]
//!  s13          [m1------]                       drain of the wait: from k1's end to k2's start,
//!  busy [----------------]          [-----]      but no earlier than the device ran dry: 0 here, since m1 still worked
//!                                                when k1 ended; with m1 gone it is the whole gap
//! ```
//! The gap must begin exactly where the awaited work ended (all streams and graph launches of the device counted), and
//! the op that ends it must have been issued after the wait returned: else something other than the wait kept the
//! device idle. Each gap is given to one wait: of the thread that then issued the next op, else the first to return;
//! gaps do not overlap, so drains may be summed.

use crate::profile::{ISSUE_UNKNOWN, Profile};
use crate::waits::Wait;
use crate::waits::awaited::CLOCK_SLOP_NS;
use crate::waits::device::Devices;
use rustc_hash::FxHashMap;

/// Drain of each wait in ns, in the waits' order. Costs one binary search a wait.
pub fn drains(profile: &Profile, devices: &Devices, waits: &[Wait]) -> Vec<i64> {
    let mut by_return: Vec<usize> = (0..waits.len()).collect();
    by_return.sort_by_key(|&i| (waits[i].end, waits[i].call));
    // By gap (device, start): the wait, whether its thread ended the gap, and the gap's length.
    let mut owners: FxHashMap<(u32, i64), (usize, bool, i64)> = FxHashMap::default();
    for i in by_return {
        let wait = &waits[i];
        let Some(op) = wait.awaited else { continue };
        let device = devices.of_stream[profile.ops.stream[op as usize] as usize];
        let ended = profile.ops.end[op as usize];
        let Some((resumed, next)) = devices.list[device as usize].timeline.gap_from(ended) else { continue };
        if issued_first(profile, devices, device, next) + CLOCK_SLOP_NS < wait.end {
            continue;
        }
        let resumes = issuing_thread(profile, next) == Some(wait.thread);
        let owner = owners.entry((device, ended)).or_insert((i, resumes, resumed - ended));
        if resumes && !owner.1 {
            *owner = (i, true, owner.2);
        }
    }
    let mut drains = vec![0; waits.len()];
    for (wait, _, drain) in owners.into_values() {
        drains[wait] = drain;
    }
    drains
}

/// The thread whose call issued an op.
fn issuing_thread(profile: &Profile, op: u32) -> Option<u32> {
    let pid = profile.ops.streams[profile.ops.stream[op as usize] as usize].pid;
    let call = profile.correlation.call(pid, profile.ops.correlation[op as usize])?;
    Some(profile.calls.thread[call as usize])
}

/// When the first of the ops that end a gap together was issued; `next`: one of them that starts first.
fn issued_first(profile: &Profile, devices: &Devices, device: u32, next: u32) -> i64 {
    let ops = &profile.ops;
    let start = ops.start[next as usize];
    (next as usize..ops.len())
        .take_while(|&op| ops.start[op] == start)
        .filter(|&op| devices.of_stream[ops.stream[op] as usize] == device)
        .map(|op| if profile.issued[op] == ISSUE_UNKNOWN { start } else { profile.issued[op] })
        .min()
        .unwrap_or(start)
}
