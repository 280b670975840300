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
//! device idle. Each gap is given to one wait, the first to return; gaps do not overlap, so drains may be summed.

use crate::profile::{ISSUE_UNKNOWN, Profile};
use crate::waits::Wait;
use crate::waits::awaited::CLOCK_SLOP_NS;
use crate::waits::device::Devices;
use rustc_hash::FxHashSet;

/// Drain of each wait in ns, in the waits' order. Costs one binary search a wait.
pub fn drains(profile: &Profile, devices: &Devices, waits: &[Wait]) -> Vec<i64> {
    let mut by_return: Vec<usize> = (0..waits.len()).collect();
    by_return.sort_by_key(|&i| (waits[i].end, waits[i].call));
    let mut taken: FxHashSet<(u32, i64)> = FxHashSet::default();
    let mut drains = vec![0; waits.len()];
    for i in by_return {
        let wait = &waits[i];
        let Some(op) = wait.awaited else { continue };
        let device = devices.of_stream[profile.ops.stream[op as usize] as usize];
        let ended = profile.ops.end[op as usize];
        let Some((resumed, next)) = devices.list[device as usize].timeline.gap_from(ended) else { continue };
        let issued = match profile.issued[next as usize] {
            ISSUE_UNKNOWN => profile.ops.start[next as usize],
            issued => issued,
        };
        if issued + CLOCK_SLOP_NS >= wait.end && taken.insert((device, ended)) {
            drains[i] = resumed - ended;
        }
    }
    drains
}
