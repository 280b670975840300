//! Drain: device-idle time that a wait leaves behind.
//!
//! ```text
//!  host    [wait-----------]  launch k2
//!  s7   [k1------------]            [k2---]
//!  s13          [m1------]                       drain of the wait: from k1's end to k2's start,
//!  busy [----------------]          [-----]      but no earlier than the device ran dry: 0 here, since m1 still worked
//!                                                when k1 ended; with m1 gone it is the whole gap
//! ```
//! The gap must begin exactly where the awaited work ended, on all streams and graph launches of the device.
//! The op that ends it must have been issued after the wait returned: else something else kept the device
//! idle. Each gap goes to one wait: that of the thread that issued the next op, else the first to return. So
//! drains may be summed.

use crate::profile::Profile;
use crate::profile::ids::OpId;
use crate::profile::seek::seek;
use crate::waits::awaited::CLOCK_SLOP_NS;
use crate::waits::device::{DeviceIx, Devices};
use crate::waits::{WaitId, Waits};
use rustc_hash::FxHashMap;
use typed_index_collections::TiVec;

/// Drain of each wait in ns. Costs two short searches a wait.
pub fn drains(profile: &Profile, devices: &Devices, waits: &Waits) -> TiVec<WaitId, i64> {
    let ops = &profile.ops;
    let mut by_return: Vec<WaitId> = waits.keys().collect();
    by_return.sort_by_key(|&w| (waits[w].end, waits[w].call));
    // By gap (device, start): the wait, whether its thread ended the gap, and the gap's length.
    let mut owners: FxHashMap<(DeviceIx, i64), (WaitId, bool, i64)> = FxHashMap::default();
    let mut first = 0;
    for w in by_return {
        let wait = &waits[w];
        let Some(op) = wait.awaited else { continue };
        let device = devices.of_op(ops, op);
        let ended = ops.end(op);
        let Some(resumed) = devices.list[device].timeline.gap_from(ended) else { continue };
        let from = seek(ops.len(), &mut first, |i| ops.start(OpId::from(i)) < resumed);
        let together = (from..ops.len()).map(OpId::from).take_while(|&op| ops.start(op) == resumed);
        let mut together = together.filter(|&op| devices.of_op(ops, op) == device).peekable();
        let Some(&next) = together.peek() else { continue };
        let issued_first = together.map(|op| profile.issued_by(op)).min().unwrap_or(resumed);
        if issued_first + CLOCK_SLOP_NS < wait.end {
            continue;
        }
        let resumes = profile.issuer(next).map(|call| profile.calls.thread(call)) == Some(wait.thread);
        let owner = owners.entry((device, ended)).or_insert((w, resumes, resumed - ended));
        if resumes && !owner.1 {
            *owner = (w, true, owner.2);
        }
    }
    let mut drains: TiVec<WaitId, i64> = waits.iter().map(|_| 0).collect();
    for (wait, _, drain) in owners.into_values() {
        drains[wait] = drain;
    }
    drains
}
