//! Bounds on what removing a wait can save, without simulating anything.
//!
//! ```text
//!  host   launch k1 [wait A-------------]···launch k2···[wait B--]
//!                    blocked W               D to the next wait
//!  GPU       [k1-----------------------]        [k2-----------]
//!                                       idle
//! ```
//! With wait and host work one after the other the run takes W + D, side by side the longer of the two: no more than
//! min(W, D) is saved, and no more than the device idles between A's start and B's, since its work remains. A copy
//! that a fix makes shorter, or whose staging it takes from the host, adds what it gives up. Sums are over waits, not
//! of means: Σ min(Wᵢ, Dᵢ) is never more than n · min(mean W, mean D).
//!
//! Costs a binary search a wait.

use super::simulate::{Fix, Program};
use crate::profile::Profile;
use crate::vocabulary::HostMemory;
use crate::waits::Wait;
use crate::waits::device::Devices;

/// What a wait's removal saves at least and at most, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    pub low: i64,
    pub high: i64,
}

/// Time from each wait's end to the start of its thread's next wait, or to the thread's last call.
pub fn until_next(profile: &Profile, waits: &[Wait]) -> Vec<i64> {
    let mut next: Vec<i64> = profile.calls.spans.iter().map(|s| s.end).collect();
    let mut out = vec![0; waits.len()];
    for (i, wait) in waits.iter().enumerate().rev() {
        let next = &mut next[wait.thread as usize];
        out[i] = (*next - wait.end).max(0);
        *next = wait.start;
    }
    out
}

/// Bounds of one wait under one fix. `until`: its entry of [`until_next`].
pub fn of(
    profile: &Profile,
    devices: &Devices,
    program: &Program,
    wait: &Wait,
    until: i64,
    fix: Fix,
) -> Bound {
    if fix == Fix::Keep {
        return Bound::default();
    }
    let (given_up, shorter) = copy_gain(program, wait, fix);
    let blocked = wait.blocked.max(0);
    let waited = (blocked - given_up).max(0);
    let kept = if fix == Fix::NonBlocking { wait.copy_blocked } else { 0 };
    let host = (waited - kept).max(0).min(until).saturating_add(given_up);
    let idle = idle(profile, devices, wait, until).saturating_add(shorter);
    let high = host.min(idle).max(0);
    Bound { low: program.learned.floor(wait.blocking).min(high), high }
}

/// Host time in the copy call that a fix spares, and device time of the copy itself.
fn copy_gain(program: &Program, wait: &Wait, fix: Fix) -> (i64, i64) {
    let Some(copy) = wait.copy else { return (0, 0) };
    let op = wait.copy_call.unwrap_or(wait.call);
    // Without steps, the call's blocked time stands for the copy's: the bound is wider, never too low.
    let length = program.step_of(op).map_or(wait.blocked, |s| {
        let step = &program.steps[s as usize];
        (step.first_op..step.first_op + step.ops).map(|r| program.ops[r as usize].duration).sum::<i64>()
    });
    let shorter = match fix {
        Fix::Drop => length,
        Fix::Delete | Fix::NonBlocking => 0,
        _ => (length - program.learned.pinned(copy.bytes, copy.direction)).max(0),
    };
    let staged = copy.host_memory != HostMemory::Pinned && !matches!(fix, Fix::Delete | Fix::NonBlocking);
    (if staged { wait.copy_blocked } else { 0 }, shorter)
}

/// Idle time of the awaited device from the wait's start to the next wait; of all devices where none is known.
fn idle(profile: &Profile, devices: &Devices, wait: &Wait, until: i64) -> i64 {
    let (from, to) = (wait.start, wait.end.saturating_add(until));
    let idle_of = |d: u32| {
        let timeline = &devices.list[d as usize].timeline;
        (to - from) - timeline.busy_within(from, to)
    };
    let awaited = wait.awaited.map(|op| devices.of_stream[profile.ops.stream[op as usize] as usize]);
    match awaited.or(wait.device) {
        Some(device) => idle_of(device),
        None => (0..devices.list.len() as u32).map(idle_of).max().unwrap_or(to - from),
    }
}
