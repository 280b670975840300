//! What the capture shows around a few waits of a bundle, for the weak rules.
//!
//! ```text
//!  iteration 3 ├───────────[adam]───┤ this wait ├──┤   after the optimizer, no matrix product to come
//!  host        [clock_gettime] [sync===] [clock_gettime]
//! ```
//! Cost: at most [`SAMPLED_WAITS`] waits a bundle, a few binary searches each. Once a capture: one pass over
//! the ops (ends of steps) and, where exported, one over the operating-system calls.

use super::closing;
use super::steps::Steps;
use crate::error::InputError;
use crate::iterations::Iterations;
use crate::profile::Profile;
use crate::profile::ids::OpId;
use crate::profile::ops::{OpKind, Ops};
use crate::profile::os_calls::Kind as OsCall;
use crate::sites::Bundle;
use crate::waits::device::Devices;
use crate::waits::{WaitId, Waits};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Waits of a bundle looked at, spread evenly.
pub const SAMPLED_WAITS: usize = 16;
/// Host time within which something counts as next to a wait.
const SOON_NS: i64 = 1_000_000;

#[derive(Default)]
pub struct Observed {
    pub seen: Vec<Seen>,
    /// The name of the ranges that most of its waits end (see [`closing`]).
    pub closes: Option<Arc<str>>,
    pub timed: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Whether the optimizer's step is done and no layer of the model has begun or follows (see [`Steps`]).
    pub step_done: bool,
    pub clocked: bool,
}

pub struct Observer<'a> {
    pub waits: &'a Waits,
    pub devices: &'a Devices,
    pub iterations: Option<&'a Iterations>,
    steps: Option<Steps>,
    closing: Option<FxHashMap<WaitId, Arc<str>>>,
}

impl<'a> Observer<'a> {
    pub fn new(waits: &'a Waits, devices: &'a Devices, iterations: Option<&'a Iterations>) -> Self {
        Self { waits, devices, iterations, steps: None, closing: None }
    }

    /// # Errors
    /// Names could not be read.
    pub fn look(&mut self, profile: &mut Profile, bundle: &Bundle) -> Result<Observed, InputError> {
        let iterations = self.iterations.and_then(|i| i.of(bundle.pid));
        let step = bundle.waits.len().div_ceil(SAMPLED_WAITS).max(1);
        let sample: Vec<WaitId> = bundle.waits.iter().copied().step_by(step).collect();
        if self.steps.is_none() {
            self.steps = Some(Steps::new(profile, self.iterations)?);
        }
        let closes = if bundle.synchronises() { self.closes(profile, &sample)? } else { None };
        Ok(Observed {
            seen: sample.iter().map(|&wait| self.one(profile, wait, iterations)).collect(),
            closes,
            timed: sample.iter().filter(|&&w| self.waits[w].timed).count() * 2 > sample.len(),
        })
    }

    fn closes(&mut self, profile: &mut Profile, sample: &[WaitId]) -> Result<Option<Arc<str>>, InputError> {
        let known = self.closing.take().map_or_else(|| closing::find(profile, self.waits), Ok)?;
        let closing = self.closing.insert(known);
        let names: Vec<&Arc<str>> = sample.iter().filter_map(|wait| closing.get(wait)).collect();
        Ok(names.first().filter(|_| names.len() * 2 > sample.len()).map(|&name| name.clone()))
    }

    fn one(&self, profile: &Profile, at: WaitId, iterations: Option<&Iterations>) -> Seen {
        let wait = &self.waits[at];
        let tid = profile.calls.threads[wait.thread];
        let clock = |from: i64, to: i64| profile.os_calls.any(OsCall::Clock, tid, from, to);
        Seen {
            step_done: self.steps.as_ref().is_some_and(|steps| match iterations {
                Some(iterations) => steps.done(iterations, wait),
                None => steps.just_done(profile, self.devices, wait),
            }),
            clocked: clock(wait.start.saturating_sub(SOON_NS), wait.start)
                || clock(wait.end, wait.end.saturating_add(SOON_NS)),
        }
    }
}

/// Blocks of a kernel's grid along its first side, or bytes of a copy.
pub(super) fn size(ops: &Ops, op: OpId) -> Option<u64> {
    match ops.kind(op) {
        OpKind::Kernel => Some(u64::from(ops.grid(op))).filter(|&g| g > 0),
        _ => ops.copy(op).map(|c| c.bytes),
    }
}
