//! Bounds on what removing waits can save, without simulating anything.
//!
//! ```text
//!  host   launch k1 [wait A-------------]···launch k2···[wait B--]
//!                    blocked W               D to the next wait
//!  GPU       [k1-----------------------]        [k2-----------]
//!                                       idle
//! ```
//! **Each wait alone.** With wait and host work one after the other the run takes W + D, side by side the longer of the
//! two: no more than min(W, D) is saved, and no more than the device idles between A's start and B's, since its work
//! remains. The call's own return, as short as calls return that found nothing, is saved for certain.
//!
//! **Together.** Where B goes too, it cannot take over what A gives up, so waits that follow each other on a thread and
//! all go are one *run*: of all of it no more than min(ΣW, ΣD) is saved, D with the return of A, the host's own work on
//! B's copy and the way of the next launch to the GPU, which idles meanwhile. The sum of bounds of each is no bound of a
//! run: with waits of 0 and 100 µs before host work of 100 and 0 µs, Σ min(W, D) is nothing, and yet both together give
//! 100 µs. Nor are min(W, D) and the device's idle time where it has several streams, whose work can run side by side
//! without A: there D counts what is launched to other streams than A's, and not the device's idle time counts but that
//! of the stream that idles most; and where B does not wait for all that A does, only that nothing happens earlier by
//! more than what A blocked: ΣW.
//!
//! **Beside** the waiting: a copy that a fix makes shorter, or whose staging it takes from the host, adds what it gives
//! up; so does what goes with the call ([`super::overhead`]), and a call that found nothing to wait for.
//!
//! Sums are over instances, not of means. Costs a few binary searches a wait.

use super::overhead;
use super::simulate::{Fix, Program};
use crate::profile::{ISSUE_UNKNOWN, Profile};
use crate::vocabulary::HostMemory;
use crate::waits::api::Blocking;
use crate::waits::device::Devices;
use crate::waits::{Covers, Wait};

/// What removing some waits saves at least and at most, in ns, summed over them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Of each wait by itself: certain, and at most.
    pub each_low: i64,
    pub each_high: i64,
    /// Of the waiting, at most, with all of the waits gone.
    pub together_high: i64,
    /// What can be saved on top of that, other than waiting.
    pub beside: i64,
}

impl Bounds {
    /// The most that all of it can save.
    pub fn high(&self) -> i64 {
        self.together_high.saturating_add(self.beside)
    }

    /// What is certain, of fixes that leave some of the waiting too.
    pub fn low(&self) -> i64 {
        self.each_low.min(self.high())
    }

    fn add(&mut self, run: Self) {
        let add = |sum: &mut i64, time: i64| *sum = sum.saturating_add(time);
        add(&mut self.each_low, run.each_low);
        add(&mut self.each_high, run.each_high);
        add(&mut self.together_high, run.together_high);
        add(&mut self.beside, run.beside);
    }
}

/// How a thread goes on after a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Next {
    /// Time from the wait's end to the start of its thread's next wait, or to the thread's last call.
    pub after: i64,
    /// Of the next wait, what the host does before it waits: enqueueing or staging its copy.
    pub ahead: i64,
    /// When its thread next stood waiting for work, or made its last call: what comes sooner comes to nothing there.
    pub stands: i64,
    /// The next wait would wait for all that this one does.
    pub takes_over: bool,
}

/// What follows each wait; `waits`: all of a capture.
pub fn following(profile: &Profile, waits: &[Wait]) -> Vec<Next> {
    let one_stream = profile.ops.streams.len() < 2;
    // By thread: where the next wait starts, and it; where the next one that found work waits.
    let mut next: Vec<(i64, Option<&Wait>, i64)> =
        profile.calls.spans.iter().map(|s| (s.end, None, s.end)).collect();
    let mut out = vec![Next::default(); waits.len()];
    for (i, wait) in waits.iter().enumerate().rev() {
        let (start, following, stands) = &mut next[wait.thread as usize];
        let takes_over = match following {
            Some(next) => covers(next, wait) || (one_stream && may_cover(next, wait)),
            None => one_stream,
        };
        let ahead_of = following.map_or(0, |next| ahead(profile, next));
        out[i] = Next { after: (*start - wait.end).max(0), ahead: ahead_of, stands: *stands, takes_over };
        (*start, *following) = (wait.start, Some(wait));
        if !wait.found.is_nothing() {
            *stands = wait.start.saturating_add(ahead(profile, wait));
        }
    }
    out
}

/// Whether, of all work being on one stream, a wait covers what another does.
fn may_cover(next: &Wait, wait: &Wait) -> bool {
    let apart = next.device.zip(wait.device).is_some_and(|(a, b)| a != b);
    next.covers != Covers::Nothing && !apart
}

/// From a wait's start to where it waits: for its copy to run where the copy call blocks, else in its synchronisation.
fn ahead(profile: &Profile, wait: &Wait) -> i64 {
    let calls = &profile.calls;
    if wait.copy_blocked == 0 {
        return (calls.start[wait.call as usize] - wait.start).max(0);
    }
    let copy = wait.awaited.filter(|&op| profile.ops.copy(op).is_some());
    copy.map_or(wait.copy_blocked, |op| {
        (profile.ops.start[op as usize] - wait.start).clamp(0, wait.copy_blocked)
    })
}

/// Whether a wait waits for all that an earlier one of its thread does.
fn covers(next: &Wait, wait: &Wait) -> bool {
    let all = matches!(next.covers, Covers::Device(_) | Covers::AnyDevice) && next.device == wait.device;
    // An event stands for what was launched before its record.
    next.covers_before >= wait.end && (all || next.covers == wait.covers) && wait.covers != Covers::Nothing
}

/// What the bounds are of: waits of a capture, with what follows each on its thread ([`following`]).
pub struct Waits<'a> {
    pub profile: &'a Profile,
    pub devices: &'a Devices,
    pub waits: &'a [Wait],
    pub next: &'a [Next],
}

/// Bounds of removing all of `gone` at once: indices of waits and how each is fixed, in any order.
pub fn of_all(all: &Waits, program: &Program, gone: &[(u32, Fix)]) -> Bounds {
    let mut gone = gone.to_vec();
    gone.sort_by_key(|&(w, _)| (all.waits[w as usize].thread, all.waits[w as usize].start, w));
    let mut sum = Bounds::default();
    gone.chunk_by(|a, b| all.meet(a.0, b.0)).for_each(|run| sum.add(of_run(all, program, run)));
    sum
}

impl Waits<'_> {
    /// Whether no other wait of the thread lies between these two.
    fn meet(&self, a: u32, b: u32) -> bool {
        let (first, second) = (&self.waits[a as usize], &self.waits[b as usize]);
        first.thread == second.thread && second.start <= first.end.saturating_add(self.next[a as usize].after)
    }
}

/// The bounds of one wait alone, whatever is done about it: certain, and at most.
fn of_one(all: &Waits, program: &Program, w: u32) -> (i64, i64) {
    let wait = &all.waits[w as usize];
    let alone = [(w, Fix::Keep)];
    let window = window(all, &alone);
    let idle = idle(all, &alone, window, |device| of_device(all, device, window));
    let high = wait.blocked.min(all.next[w as usize].after).min(idle).max(0);
    (program.learned.floor(wait.blocking).clamp(0, high), high)
}

/// Bounds of waits of one thread between which no other wait lies.
fn of_run(all: &Waits, program: &Program, run: &[(u32, Fix)]) -> Bounds {
    let learned = &program.learned;
    let (mut waited, mut worked, mut given_up, mut shorter) = (0i64, 0i64, 0i64, 0i64);
    let mut bounds = Bounds::default();
    let add = |sum: &mut i64, time: i64| *sum = sum.saturating_add(time);
    for &(w, fix) in run.iter().filter(|(_, fix)| *fix != Fix::Keep) {
        let wait = &all.waits[w as usize];
        let (spared, less) = copy_gain(program, wait, fix);
        let kept = if fix == Fix::NonBlocking { wait.copy_blocked } else { 0 };
        let own = (wait.blocked.max(0) - spared - kept).max(0);
        // A call that found nothing to wait for is host work: it moves nowhere.
        add(if wait.found.is_nothing() { &mut given_up } else { &mut waited }, own);
        let next = &all.next[w as usize];
        add(&mut worked, next.after.saturating_add(next.ahead));
        // The GPU idles from the end of the work to the wait's return, and again until the next launch arrives.
        add(&mut worked, back(all, program, wait));
        add(&mut worked, learned.after_call[0].max(0));
        add(&mut worked, launched_beside(all, wait, next.after));
        add(&mut given_up, spared);
        add(&mut given_up, around(all, program, wait, fix));
        add(&mut shorter, less);
        let (low, high) = of_one(all, program, w);
        add(&mut bounds.each_low, low);
        add(&mut bounds.each_high, high);
    }
    // What goes with the first call may stand before it, and what was launched last starts after its launch.
    let lead = run.first().map_or(0, |&(w, fix)| around(all, program, &all.waits[w as usize], fix));
    let (from, to) = window(all, run);
    let to = run.last().map_or(to, |&(w, _)| to.max(all.next[w as usize].stands));
    let window = (from.saturating_sub(lead), to.saturating_add(learned.after_call[0].max(0)));
    let idle = idle(all, run, window, |device| of_stream(all, device, window));
    let mut most = waited.saturating_add(given_up).saturating_add(shorter);
    bounds.together_high = waited.max(0);
    if run.iter().all(|&(w, _)| all.next[w as usize].takes_over) {
        let host = waited.min(worked).max(0);
        bounds.together_high = host.min(idle);
        // Neither host nor device gives up more than it has, whatever the other could.
        most = host.saturating_add(given_up).min(idle.saturating_add(shorter));
    }
    bounds.beside = most.saturating_sub(bounds.together_high).max(0);
    bounds
}

/// Work launched to other streams than the awaited one from a wait to the next: with the wait gone it can run beside what
/// was awaited.
fn launched_beside(all: &Waits, wait: &Wait, until: i64) -> i64 {
    let (profile, ops) = (all.profile, &all.profile.ops);
    if ops.streams.len() < 2 {
        return 0;
    }
    let own = wait.awaited.map(|op| ops.stream[op as usize]);
    let issued = |op: u32| match profile.issued[op as usize] {
        ISSUE_UNKNOWN => ops.start[op as usize],
        time => time,
    };
    let until = wait.end.saturating_add(until);
    let others = (0u32..).zip(&all.devices.stream_ops).filter(|(stream, _)| Some(*stream) != own);
    let inside = others.flat_map(|(_, list)| {
        let first = list.partition_point(|&op| issued(op) < wait.end);
        list[first..].iter().take_while(|&&op| issued(op) <= until)
    });
    inside.fold(0, |sum: i64, &op| sum.saturating_add(ops.end[op as usize] - ops.start[op as usize]))
}

/// From the end of what a wait awaited to its return, as recorded; the usual time where that is longer or none is known.
fn back(all: &Waits, program: &Program, wait: &Wait) -> i64 {
    let recorded = wait.awaited.map_or(0, |op| wait.end.saturating_sub(all.profile.ops.end[op as usize]));
    recorded.max(program.learned.back(wait.blocking)).max(0)
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
        Fix::Delete | Fix::GpuWait | Fix::NonBlocking => 0,
        _ => (length - program.learned.pinned(copy.bytes, copy.direction)).max(0),
    };
    let staged = copy.host_memory != HostMemory::Pinned
        && !matches!(fix, Fix::Delete | Fix::GpuWait | Fix::NonBlocking);
    (if staged { wait.copy_blocked } else { 0 }, shorter)
}

/// Host time beside the wait that goes with it: what stands around the calls, and the copy call of a dropped read.
fn around(all: &Waits, program: &Program, wait: &Wait, fix: Fix) -> i64 {
    if !matches!(fix, Fix::Delete | Fix::GpuWait | Fix::Drop) {
        return 0;
    }
    let of = |kind| overhead::most_around(kind, program.learned.pace);
    let calls = &all.profile.calls;
    let copy = wait.copy_call.filter(|_| fix == Fix::Drop).map(|c| c as usize);
    let length = copy.map_or(0, |c| calls.end[c] - calls.start[c] - wait.copy_blocked);
    of(wait.blocking) + copy.map_or(0, |_| of(Blocking::CopyAsync)) + length.max(0)
}

/// From the first wait's start to the wait after the last.
fn window(all: &Waits, run: &[(u32, Fix)]) -> (i64, i64) {
    let (Some(first), Some(last)) = (run.first(), run.last()) else { return (0, 0) };
    let to = all.waits[last.0 as usize].end.saturating_add(all.next[last.0 as usize].after);
    (all.waits[first.0 as usize].start, to)
}

/// What is left of a window when the work of a device is taken off: of the one that idles most of those that the waits'
/// process has work on, since what its threads launch next may be for any of them.
fn idle(all: &Waits, run: &[(u32, Fix)], (from, to): (i64, i64), busy: impl Fn(u32) -> i64) -> i64 {
    let pid = run.first().map(|first| all.waits[first.0 as usize].pid);
    let mut devices: Vec<u32> = Vec::new();
    for (key, &device) in all.profile.ops.streams.iter().zip(&all.devices.of_stream) {
        if Some(key.pid) == pid && !devices.contains(&device) {
            devices.push(device);
        }
    }
    let span = to.saturating_sub(from);
    devices.into_iter().map(|device| span - busy(device)).max().unwrap_or(span).max(0)
}

/// When a device worked, on any stream.
fn of_device(all: &Waits, device: u32, (from, to): (i64, i64)) -> i64 {
    all.devices.list[device as usize].timeline.busy_within(from, to)
}

/// When the stream of a device worked that did least, of those that have work in the window or after it: it may be the
/// one that the run then has to wait for, whatever the others did meanwhile.
fn of_stream(all: &Waits, device: u32, (from, to): (i64, i64)) -> i64 {
    let streams = (0u32..).zip(&all.devices.of_stream).filter(|(_, d)| **d == device);
    let timelines = streams.map(|(stream, _)| all.devices.timeline_of(stream));
    let working = timelines.filter(|t| t.span().is_some_and(|(_, end)| end > from));
    working.map(|t| t.busy_within(from, to)).min().unwrap_or(0)
}
