//! What the capture shows around a few waits of a bundle: the facts that weak rules look at.
//!
//! ```text
//!  host      [copy][sync===]······[launch]        ···  until the next call: the host computes
//!  stream 7  [gemm~~][D2H]        [kernel~~]           what follows: by name and size, wait by wait
//!  iteration 3 ├───────────[adam]───┤ this wait ├──┤   after the optimizer, no matrix product to come
//! ```
//! Cost: at most [`SAMPLED_WAITS`] waits a bundle, a few binary searches each; once a capture, one pass over the ops (what
//! ends a step) and, where the export has it, one over the operating-system calls.

use super::closing;
use super::steps::Steps;
use crate::error::InputError;
use crate::iterations::{IterationCounts, Iterations};
use crate::profile::Profile;
use crate::profile::ids::OpId;
use crate::profile::ops::{OpKind, Ops};
use crate::profile::os_calls::Kind as OsCall;
use crate::sites::Bundle;
use crate::sites::neighbours;
use crate::vocabulary::{Copy, Direction};
use crate::waits::device::Devices;
use crate::waits::{Wait, WaitId, Waits};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Waits of a bundle that are looked at, spread evenly.
pub const SAMPLED_WAITS: usize = 16;
/// Later waits of the thread searched for an upload of the value read.
const LATER_WAITS: usize = 4;
/// Host time within which it comes, in ns: a little arithmetic in between.
const BACK_NS: i64 = 5_000_000;
/// Host time within which something counts as happening soon after a wait.
const SOON_NS: i64 = 1_000_000;
/// Ops between two reads of one run, and how long each may be: enough for a mean over a batch.
const FEW_OPS: usize = 8;
const SHORT_NS: i64 = 10_000;
/// Reads of a run counted either way: more tell nothing more.
const LONGEST_RUN: usize = 500;

/// Facts of one bundle.
#[derive(Default)]
pub struct Observed {
    pub seen: Vec<Seen>,
    /// Over all its waits; `None` without iterations of its process.
    pub in_iterations: Option<IterationCounts>,
    /// Scalar reads in a row that hold a wait from the middle.
    pub run: usize,
    /// The name of the ranges that most of its waits end: [`closing`].
    pub closes: Option<Arc<str>>,
    /// Whether most of its waits end what two events measure.
    pub timed: bool,
    /// Whether what it awaits runs on another stream than most of the process's work.
    pub beside: bool,
}

/// Facts of one wait.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Names of the ops that follow on its stream, nearest first.
    pub after: Vec<Arc<str>>,
    /// Size of the first of them: blocks of a kernel's grid, bytes of a copy.
    pub size_after: Option<u64>,
    /// Host time to the thread's next CUDA call, in ns.
    pub until_call: Option<i64>,
    /// Whether as many bytes are uploaded soon after, on the same thread.
    pub sent_back: bool,
    /// Whether the optimizer's step is done and no layer of the model has begun or follows: [`Steps`].
    pub step_done: bool,
    /// Whether the thread wrote to a file or socket right after.
    pub wrote: bool,
    /// Whether the thread read a clock right before or after.
    pub clocked: bool,
}

/// Looks at bundles of one capture.
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

    /// The facts of one bundle.
    ///
    /// # Errors
    /// Names could not be read.
    pub fn look(&mut self, profile: &mut Profile, bundle: &Bundle) -> Result<Observed, InputError> {
        let iterations = self.iterations.and_then(|i| i.of(bundle.pid));
        let step = bundle.waits.len().div_ceil(SAMPLED_WAITS).max(1);
        let sample: Vec<WaitId> = bundle.waits.iter().copied().step_by(step).collect();
        let around: Vec<_> =
            sample.iter().map(|&w| neighbours::around(profile, self.devices, &self.waits[w])).collect();
        let names = neighbours::names(profile, &around)?;
        if self.steps.is_none() {
            self.steps = Some(Steps::new(profile, self.iterations)?);
        }
        let closes = if bundle.synchronises() { self.closes(profile, &sample)? } else { None };
        let seen = sample.iter().zip(names).zip(&around).map(|((&w, n), around)| Seen {
            after: n.after,
            size_after: around.after.first().and_then(|&op| size(&profile.ops, op)),
            ..self.one(profile, w, iterations)
        });
        Ok(Observed {
            seen: seen.collect(),
            in_iterations: iterations.map(|i| i.counts(bundle.waits.iter().map(|&w| self.waits[w].start))),
            run: self.run_of_reads(&profile.ops, bundle.waits[bundle.waits.len() / 2]),
            closes,
            timed: sample.iter().filter(|&&w| self.waits[w].timed).count() * 2 > sample.len(),
            beside: self.beside(profile, sample[sample.len() / 2]),
        })
    }

    /// The name of the ranges that most of these waits end.
    fn closes(&mut self, profile: &mut Profile, sample: &[WaitId]) -> Result<Option<Arc<str>>, InputError> {
        let known = self.closing.take().map_or_else(|| closing::find(profile, self.waits), Ok)?;
        let closing = self.closing.insert(known);
        let names: Vec<&Arc<str>> = sample.iter().filter_map(|wait| closing.get(wait)).collect();
        Ok(names.first().filter(|_| names.len() * 2 > sample.len()).map(|&name| name.clone()))
    }

    fn one(&self, profile: &Profile, at: WaitId, iterations: Option<&Iterations>) -> Seen {
        let wait = &self.waits[at];
        let calls = &profile.calls;
        let of_thread = &calls.by_thread[wait.thread];
        let next = of_thread.partition_point(|&c| calls.start(c) < wait.end);
        let until_call = of_thread.get(next).map(|&c| calls.start(c).saturating_sub(wait.end));
        let tid = calls.threads[wait.thread];
        let os = |kind, from: i64, to: i64| profile.os_calls.any(kind, tid, from, to);
        let soon = |time: i64| time.saturating_add(SOON_NS);
        Seen {
            until_call,
            sent_back: self.sent_back(at),
            step_done: self.steps.as_ref().is_some_and(|steps| match iterations {
                Some(iterations) => steps.done(iterations, wait),
                None => steps.just_done(profile, self.devices, wait),
            }),
            wrote: os(OsCall::Write, wait.end, soon(wait.end)),
            clocked: os(OsCall::Clock, wait.start.saturating_sub(SOON_NS), wait.start)
                || os(OsCall::Clock, wait.end, soon(wait.end)),
            ..Seen::default()
        }
    }

    /// Whether one of the thread's next waits uploads just as many bytes as this one read.
    fn sent_back(&self, at: WaitId) -> bool {
        let wait = &self.waits[at];
        let Some(read) = wait.copy.filter(|c| c.direction == Direction::DeviceToHost) else { return false };
        let soon = |w: &&Wait| w.start.saturating_sub(wait.end) < BACK_NS;
        let later = self.waits.raw[at.index() + 1..].iter().take_while(soon);
        let mut copies = later.filter(|w| w.thread == wait.thread).take(LATER_WAITS).filter_map(|w| w.copy);
        copies.any(|c| c.direction == Direction::HostToDevice && c.bytes == read.bytes)
    }

    /// How many scalar reads in a row, on its thread, hold the wait `at`: with no more work between two than it takes to
    /// compute a scalar.
    fn run_of_reads(&self, ops: &Ops, at: WaitId) -> usize {
        let (waits, at) = (&self.waits.raw, at.index());
        let is_read = |w: &Wait| w.copy.is_some_and(Copy::reads_number);
        let follows = |a: &Wait, b: &Wait| {
            a.thread == b.thread
                && is_read(a)
                && is_read(b)
                && b.start.saturating_sub(a.end) < SOON_NS
                && self.little_between(ops, a, b)
        };
        if !is_read(&waits[at]) {
            return 0;
        }
        let follow = |[a, b]: &&[Wait; 2]| follows(a, b);
        let before = waits[..=at].array_windows().rev().take(LONGEST_RUN).take_while(follow).count();
        before + 1 + waits[at..].array_windows().take(LONGEST_RUN).take_while(follow).count()
    }

    /// Whether the GPU did but a few short things between the copies of two waits.
    fn little_between(&self, ops: &Ops, a: &Wait, b: &Wait) -> bool {
        let (Some(from), Some(to)) = (a.awaited, b.awaited) else { return false };
        let stream = ops.stream(to);
        let list = &self.devices.stream_ops[stream];
        let after = |op: OpId| list.partition_point(|&o| (ops.start(o), o) <= (ops.start(op), op));
        let (first, last) = (after(from), after(to).saturating_sub(1));
        ops.stream(from) == stream
            && first <= last
            && last - first <= FEW_OPS
            && list[first..last].iter().all(|&o| ops.length(o) < SHORT_NS)
    }

    fn beside(&self, profile: &Profile, at: WaitId) -> bool {
        let Some(op) = self.waits[at].awaited else { return false };
        let (own, streams) = (profile.ops.stream(op), &profile.ops.streams);
        let of_process = streams.keys().filter(|&s| streams[s].pid == streams[own].pid);
        of_process.max_by_key(|&s| (self.devices.stream_ops[s].len(), std::cmp::Reverse(s))) != Some(own)
    }
}

/// Blocks of a kernel's grid along its first side, or bytes of a copy.
pub(super) fn size(ops: &Ops, op: OpId) -> Option<u64> {
    match ops.kind(op) {
        OpKind::Kernel => Some(u64::from(ops.grid(op))).filter(|&g| g > 0),
        _ => ops.copy(op).map(|c| c.bytes),
    }
}
