//! Upper bounds on what removing waits saves, without simulation: their blocked time, the host's own work
//! around their calls ([`super::overhead`]), and what a fix takes off their copies.
//!
//! ```text
//!  host   [launch]··around··[copy call][wait blocked----]·around·[launch]
//!  GPU            [kernel---------------][copy]
//!  saved            ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~        at most, and the copy where it goes
//! ```
//! Cost: a binary search a wait.

use super::overhead;
use super::simulate::Program;
use crate::profile::Profile;
use crate::vocabulary::{Change, HostMemory};
use crate::waits::api::Blocking;
use crate::waits::device::Devices;
use crate::waits::{self, Wait, WaitId};

pub struct Capture<'a> {
    pub profile: &'a Profile,
    pub devices: &'a Devices,
    pub waits: &'a waits::Waits,
    pub program: &'a Program,
}

impl Capture<'_> {
    /// Upper bound of what a wait saves in the captured run, in ns.
    pub fn at_most(&self, w: WaitId, fix: Change) -> i64 {
        let wait = &self.waits[w];
        let kept = if fix == Change::NonBlocking { wait.copy_blocked } else { 0 };
        let waited = wait.blocked.saturating_sub(kept).max(0);
        waited.saturating_add(self.around(wait, fix)).saturating_add(self.shorter(wait, fix))
    }

    /// The bound besides the waiting: host time of the call and of staging the copy, device time of the copy.
    pub fn beside(&self, w: WaitId, fix: Change) -> i64 {
        let wait = &self.waits[w];
        let pageable = wait.copy.is_some_and(|copy| copy.host_memory != HostMemory::Pinned);
        let staged = if pageable && !keeps_copy(fix) { wait.copy_blocked } else { 0 };
        self.around(wait, fix).saturating_add(staged).saturating_add(self.shorter(wait, fix))
    }

    fn shorter(&self, wait: &Wait, fix: Change) -> i64 {
        let (Some(copy), false) = (wait.copy, keeps_copy(fix)) else { return 0 };
        let (program, call) = (self.program, wait.copy_call.unwrap_or(wait.call));
        // Without a step, the call's blocked time bounds the copy's length.
        let length = program.step_of(call).map_or(wait.blocked, |step| {
            program.issue.ops_of(step).map(|op| self.profile.ops.length(op)).sum()
        });
        match fix {
            Change::Drop => length + program.beside.get(&wait.call).map_or(0, |beside| beside.1),
            _ => (length - program.learned.pinned(copy.bytes, copy.direction)).max(0),
        }
    }

    /// Host time beside the wait that goes with it: around the calls, and in the copy call of a dropped read.
    fn around(&self, wait: &Wait, fix: Change) -> i64 {
        let program = self.program;
        let step = program.step_of(wait.copy_call.unwrap_or(wait.call));
        let made = step.map_or(0, |at| program.unmade(at, fix)).max(0);
        if !matches!(fix, Change::Delete | Change::GpuWait | Change::Drop | Change::OnGpu) {
            return made;
        }
        let of = |kind| overhead::most_around(kind, program.learned.pace);
        let copy = wait.copy_call.filter(|_| fix == Change::Drop);
        let length = copy.map_or(0, |c| self.profile.calls.length(c) - wait.copy_blocked);
        let beside = program.beside.get(&wait.call).filter(|_| fix == Change::Drop).map_or(0, |b| b.0);
        made + beside + of(wait.blocking) + copy.map_or(0, |_| of(Blocking::CopyAsync)) + length.max(0)
    }
}

fn keeps_copy(fix: Change) -> bool {
    matches!(fix, Change::Delete | Change::GpuWait | Change::Narrow | Change::NonBlocking)
}
