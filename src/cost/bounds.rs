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
use super::simulate::Program;
use crate::model::Bounds;
use crate::profile::Profile;
use crate::profile::ids::{GlobalPid, OpId, StreamIx, ThreadIx};
use crate::vocabulary::{Change, HostMemory};
use crate::waits::api::Blocking;
use crate::waits::device::{DeviceIx, Devices};
use crate::waits::streams::FEW_STREAMS;
use crate::waits::{self, Covers, Wait, WaitId};
use typed_index_collections::{TiSlice, TiVec};

impl Bounds {
    /// The most that all of it can save.
    pub fn high(&self) -> i64 {
        self.together_high_ns.saturating_add(self.beside_ns)
    }

    /// What is certain, of fixes that leave some of the waiting too.
    pub fn low(&self) -> i64 {
        self.each_low_ns.min(self.high())
    }

    fn add(&mut self, run: Self) {
        let add = |sum: &mut i64, time: i64| *sum = sum.saturating_add(time);
        add(&mut self.each_low_ns, run.each_low_ns);
        add(&mut self.each_high_ns, run.each_high_ns);
        add(&mut self.together_high_ns, run.together_high_ns);
        add(&mut self.beside_ns, run.beside_ns);
    }
}

/// How a thread goes on after a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Next {
    /// Time from the wait's end to the start of its thread's next wait, or to the thread's last call.
    pub after: i64,
    /// Of the next wait, what the host does before it waits: enqueueing or staging its copy.
    pub ahead: i64,
    /// When its thread next stood waiting for work, or made its last call: what the thread reaches sooner than
    /// recorded only makes it stand there longer.
    pub stands: i64,
    /// The next wait would wait for all that this one does.
    pub takes_over: bool,
}

/// What follows each wait, and the most that it saves by itself, whatever is done about it, in ns. Neighbours may give up
/// the same time: no sum of them is a saving. `waits`: all of a capture.
pub fn following(
    profile: &Profile,
    devices: &Devices,
    waits: &waits::Waits,
) -> (TiVec<WaitId, Next>, TiVec<WaitId, i64>) {
    let one_stream = profile.ops.streams.len() < 2;
    // Where the next wait starts, and it; where the next one that found work waits.
    let mut next: TiVec<ThreadIx, (i64, Option<&Wait>, i64)> =
        profile.calls.spans.iter().map(|s| (s.end, None, s.end)).collect();
    let mut out: TiVec<WaitId, Next> = waits.iter().map(|_| Next::default()).collect();
    let (mut most, mut near): (TiVec<WaitId, i64>, _) = (vec![0; waits.len()].into(), 0);
    for (w, wait) in waits.iter_enumerated().rev() {
        let (start, following, stands) = &mut next[wait.thread];
        let takes_over = match following {
            Some(next) => covers(next, wait) || (one_stream && may_cover(next, wait)),
            None => one_stream,
        };
        let ahead_of = following.map_or(0, |next| ahead(profile, next));
        let after = (*start - wait.end).max(0);
        most[w] = alone_at_most(devices, wait, after, &mut near);
        out[w] = Next { after, ahead: ahead_of, stands: *stands, takes_over };
        (*start, *following) = (wait.start, Some(wait));
        if !wait.found.is_nothing() {
            *stands = wait.start.saturating_add(ahead(profile, wait));
        }
    }
    (out, most)
}

/// The most that a wait saves by itself before host work of `after` ns; `near`: where the search for the last one's device
/// time ended.
fn alone_at_most(devices: &Devices, wait: &Wait, after: i64, near: &mut usize) -> i64 {
    let window = (wait.start, wait.end.saturating_add(after));
    let busy = |device: DeviceIx| devices.list[device].timeline.busy_near(window.0, window.1, near);
    wait.blocked.min(after).min(idle(devices, wait.pid, window, busy)).max(0)
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
        return (calls.start(wait.call) - wait.start).max(0);
    }
    let copy = wait.awaited.filter(|&op| profile.ops.copy(op).is_some());
    copy.map_or(wait.copy_blocked, |op| (profile.ops.start(op) - wait.start).clamp(0, wait.copy_blocked))
}

/// Whether a wait waits for all that an earlier one of its thread does.
fn covers(next: &Wait, wait: &Wait) -> bool {
    let all = matches!(next.covers, Covers::Device(_) | Covers::AnyDevice) && next.device == wait.device;
    // An event stands for what was launched before its record.
    next.covers_before >= wait.end && (all || next.covers == wait.covers) && wait.covers != Covers::Nothing
}

/// What the bounds are of: waits of a capture, with what follows each on its thread ([`following`]).
pub struct Bounded<'a> {
    /// The export.
    pub profile: &'a Profile,
    /// Busy times of its GPUs.
    pub devices: &'a Devices,
    /// Every wait of the export.
    pub waits: &'a waits::Waits,
    /// What follows each of the waits on its thread.
    pub next: &'a TiSlice<WaitId, Next>,
    /// The most that each saves by itself, in ns.
    pub alone_at_most: &'a TiSlice<WaitId, i64>,
    /// What was launched when.
    pub launched: &'a Launched,
    /// The capture, to be run again.
    pub program: &'a Program,
}

/// How much work was issued by when, on all streams and on each: where there are many.
pub struct Launched {
    all: Work,
    of_stream: TiVec<StreamIx, Work>,
}

/// Times of issue, ascending, and the length of the work issued before each.
#[derive(Default)]
struct Work {
    issued: Vec<i64>,
    before: Vec<i64>,
}

impl Launched {
    /// Of an export; empty where it has few streams.
    pub fn new(profile: &Profile, devices: &Devices) -> Self {
        let ops = &profile.ops;
        if ops.streams.len() <= FEW_STREAMS {
            return Self { all: Work::default(), of_stream: TiVec::new() };
        }
        let work = |list: &mut dyn Iterator<Item = OpId>| {
            Work::new(list.map(|op| (profile.issued_by(op), ops.length(op))).collect())
        };
        let of_stream = devices.stream_ops.iter().map(|list| work(&mut list.iter().copied())).collect();
        Self { all: work(&mut ops.ids()), of_stream }
    }

    /// The length of what was issued from `from` to `until` to other streams than `own`.
    fn beside(&self, own: Option<StreamIx>, from: i64, until: i64) -> i64 {
        let own = own.and_then(|own| self.of_stream.get(own)).map_or(0, |work| work.within(from, until));
        self.all.within(from, until).saturating_sub(own).max(0)
    }
}

impl Work {
    fn new(mut work: Vec<(i64, i64)>) -> Self {
        work.sort_unstable();
        let mut before = vec![0i64];
        before.extend(work.iter().scan(0i64, |sum, w| {
            *sum = sum.saturating_add(w.1);
            Some(*sum)
        }));
        Self { issued: work.iter().map(|w| w.0).collect(), before }
    }

    fn within(&self, from: i64, until: i64) -> i64 {
        let first = self.issued.partition_point(|&t| t < from);
        let last = self.issued.partition_point(|&t| t <= until).max(first);
        self.before
            .get(last)
            .zip(self.before.get(first))
            .map_or(0, |(last, first)| last.saturating_sub(*first))
    }
}

/// Bounds of removing all of `gone` at once: waits and how each is fixed, in any order.
pub fn of_all(all: &Bounded, gone: &[(WaitId, Change)]) -> Bounds {
    let mut gone = gone.to_vec();
    gone.sort_by_key(|&(w, _)| (all.waits[w].thread, all.waits[w].start, w));
    let (mut sum, mut near) = (Bounds::default(), 0);
    gone.chunk_by(|a, b| all.meet(a.0, b.0)).for_each(|run| sum.add(of_run(all, run, &mut near)));
    sum
}

/// What some waits save at most besides the waiting: host time that goes with their calls, device time of their copies.
pub fn beside(all: &Bounded, gone: impl Iterator<Item = (WaitId, Change)>) -> i64 {
    let of = |(w, fix): (WaitId, Change)| {
        let wait = &all.waits[w];
        let (spared, shorter) = copy_gain(all, wait, fix);
        around(all, wait, fix).saturating_add(spared).saturating_add(shorter)
    };
    gone.map(of).fold(0, i64::saturating_add)
}

impl Bounded<'_> {
    /// Whether no other wait of the thread lies between these two.
    fn meet(&self, a: WaitId, b: WaitId) -> bool {
        let (first, second) = (&self.waits[a], &self.waits[b]);
        first.thread == second.thread && second.start <= first.end.saturating_add(self.next[a].after)
    }
}

/// Bounds of waits of one thread between which no other wait lies.
fn of_run(all: &Bounded, run: &[(WaitId, Change)], near: &mut usize) -> Bounds {
    let [(first, of_first), ..] = *run else { return Bounds::default() };
    let last = run[run.len() - 1].0;
    let learned = &all.program.learned;
    let (mut waited, mut worked, mut given_up, mut shorter) = (0i64, 0i64, 0i64, 0i64);
    let mut bounds = Bounds::default();
    let add = |sum: &mut i64, time: i64| *sum = sum.saturating_add(time);
    for &(w, fix) in run.iter().filter(|(_, fix)| *fix != Change::Keep) {
        let wait = &all.waits[w];
        let (spared, less) = copy_gain(all, wait, fix);
        let kept = if fix == Change::NonBlocking { wait.copy_blocked } else { 0 };
        let own = (wait.blocked.max(0) - spared - kept).max(0);
        // A call that found nothing to wait for is host work: it moves nowhere.
        match wait.found.is_nothing() {
            true if fix == Change::Narrow => {}
            true => add(&mut given_up, own),
            false => add(&mut waited, own),
        }
        let next = &all.next[w];
        add(&mut worked, next.after.saturating_add(next.ahead));
        // The GPU idles from the end of the work to the wait's return, and again until the next launch arrives.
        add(&mut worked, back(all, wait));
        add(&mut worked, learned.after_call[0].max(0));
        add(&mut worked, launched_beside(all, wait, next.after));
        add(&mut given_up, spared);
        add(&mut given_up, around(all, wait, fix));
        add(&mut shorter, less);
        let high = all.alone_at_most[w];
        // What is certain: the bare call, where that goes.
        let certain = if fix == Change::Narrow { 0 } else { learned.floor(wait.blocking) };
        add(&mut bounds.each_low_ns, certain.clamp(0, high));
        add(&mut bounds.each_high_ns, high);
    }
    // What goes with the first call may stand before it, and what was launched last starts after its launch.
    let (lead, next) = (around(all, &all.waits[first], of_first), &all.next[last]);
    let to = all.waits[last].end.saturating_add(next.after).max(next.stands);
    let from = all.waits[first].start.saturating_sub(lead);
    let window = (from, to.saturating_add(learned.after_call[0].max(0)));
    let idle = idle(all.devices, all.waits[first].pid, window, |device| of_stream(all, device, window, near));
    let mut most = waited.saturating_add(given_up).saturating_add(shorter);
    bounds.together_high_ns = waited.max(0);
    if run.iter().all(|&(w, _)| all.next[w].takes_over) {
        let host = waited.min(worked).max(0);
        bounds.together_high_ns = host.min(idle);
        // Neither host nor device gives up more than it has, whatever the other could.
        most = host.saturating_add(given_up).min(idle.saturating_add(shorter));
    }
    bounds.beside_ns = most.saturating_sub(bounds.together_high_ns).max(0);
    bounds
}

/// Work launched to other streams than the awaited one from a wait to the next: with the wait gone it can run beside what
/// was awaited.
fn launched_beside(all: &Bounded, wait: &Wait, until: i64) -> i64 {
    let (profile, ops) = (all.profile, &all.profile.ops);
    if ops.streams.len() < 2 {
        return 0;
    }
    let own = wait.awaited.map(|op| ops.stream(op));
    let until = wait.end.saturating_add(until);
    if ops.streams.len() > FEW_STREAMS {
        return all.launched.beside(own, wait.end, until);
    }
    let others = all.devices.stream_ops.iter_enumerated().filter(|(stream, _)| Some(*stream) != own);
    let inside = others.flat_map(|(_, list)| {
        let first = list.partition_point(|&op| profile.issued_by(op) < wait.end);
        list[first..].iter().take_while(|&&op| profile.issued_by(op) <= until)
    });
    inside.fold(0, |sum: i64, &op| sum.saturating_add(ops.length(op)))
}

/// From the end of what a wait awaited to its return, as recorded; the usual time where that is longer or none is known.
fn back(all: &Bounded, wait: &Wait) -> i64 {
    let recorded = wait.awaited.map_or(0, |op| wait.end.saturating_sub(all.profile.ops.end(op)));
    recorded.max(all.program.learned.back(wait.blocking)).max(0)
}

/// Host time in the copy call that a fix spares, and device time of the copy itself.
fn copy_gain(all: &Bounded, wait: &Wait, fix: Change) -> (i64, i64) {
    let Some(copy) = wait.copy else { return (0, 0) };
    let (program, call) = (all.program, wait.copy_call.unwrap_or(wait.call));
    // Without steps, the call's blocked time stands for the copy's: the bound is wider, never too low.
    let length = program
        .step_of(call)
        .map_or(wait.blocked, |step| program.issue.ops_of(step).map(|op| all.profile.ops.length(op)).sum());
    let shorter = match fix {
        Change::Drop => length + program.beside.get(&wait.call).map_or(0, |beside| beside.1),
        Change::Delete | Change::GpuWait | Change::Narrow | Change::NonBlocking => 0,
        _ => (length - program.learned.pinned(copy.bytes, copy.direction)).max(0),
    };
    let staged = copy.host_memory != HostMemory::Pinned
        && !matches!(fix, Change::Delete | Change::GpuWait | Change::Narrow | Change::NonBlocking);
    (if staged { wait.copy_blocked } else { 0 }, shorter)
}

/// Host time beside the wait that goes with it: what stands around the calls, and the copy call of a dropped read.
fn around(all: &Bounded, wait: &Wait, fix: Change) -> i64 {
    let program = all.program;
    let step = program.step_of(wait.copy_call.unwrap_or(wait.call));
    let made = step.map_or(0, |at| program.unmade(at, fix)).max(0);
    if !matches!(fix, Change::Delete | Change::GpuWait | Change::Drop | Change::OnGpu) {
        return made;
    }
    let of = |kind| overhead::most_around(kind, program.learned.pace);
    let calls = &all.profile.calls;
    let copy = wait.copy_call.filter(|_| fix == Change::Drop);
    let length = copy.map_or(0, |c| calls.length(c) - wait.copy_blocked);
    let beside = program.beside.get(&wait.call).filter(|_| fix == Change::Drop).map_or(0, |b| b.0);
    made + beside + of(wait.blocking) + copy.map_or(0, |_| of(Blocking::CopyAsync)) + length.max(0)
}

/// What is left of a window when the work of a device is taken off: of the one that idles most of those that the waits'
/// process has work on, since what its threads launch next may be for any of them.
fn idle(
    devices: &Devices,
    pid: GlobalPid,
    (from, to): (i64, i64),
    mut busy: impl FnMut(DeviceIx) -> i64,
) -> i64 {
    let span = to.saturating_sub(from);
    let mut most = None;
    for &device in devices.of_process.get(&pid).into_iter().flatten() {
        most = most.max(Some(span - busy(device)));
        if most == Some(span) {
            break; // none can idle longer
        }
    }
    most.unwrap_or(span).max(0)
}

/// When the stream of a device worked that did least, of those that have work in the window or after it: it may be the
/// one that the run then has to wait for, whatever the others did meanwhile.
fn of_stream(all: &Bounded, device: DeviceIx, (from, to): (i64, i64), near: &mut usize) -> i64 {
    let mut least = None;
    for &stream in &all.devices.latest_streams[device] {
        let timeline = all.devices.timeline_of(stream);
        if timeline.span().is_none_or(|(_, end)| end <= from) || least == Some(0) {
            break; // nor have the others, which ended sooner; nor do they less than nothing
        }
        let busy = timeline.busy_near(from, to, near);
        least = Some(least.map_or(busy, |least: i64| least.min(busy)));
    }
    least.unwrap_or(0)
}
