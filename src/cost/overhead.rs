//! What the profiler and the GPU's power limit do to the times of a capture.
//!
//! **The profiler** slows each traced call, inside it and after it. Its own records (`PROFILER_OVERHEAD`) hold its
//! start-up and its flushes, not this. Known figures are used instead, from loops of one call each, timed alone and
//! under the profiler:
//!
//! ```text
//!  alone      [sync][launch][sync][launch]                       19 µs a step
//!  captured   [sync]~~[launch]~~~[sync]~~[launch]                26 µs a step     ~ : host time after traced calls
//! ```
//! A slower host has a slower profiler: figures are scaled by how long a launch takes in the capture.
//!
//! **The clock.** A GPU at its power limit clocks down as its idle time goes, so not all of that time is won. It shows
//! in the capture as one kernel that takes more and more time while little else changes:
//!
//! ```text
//!  [gemm 1407 µs]··[gemm 1407]··  …  [gemm 1610]··  …  [gemm 1640]··
//! ```

use super::iterations::Iterations;
use super::simulate::{NONE, Program};
use crate::profile::Profile;
use crate::profile::ops::OpKind;
use crate::waits::api::{Blocking, classify};
use crate::waits::device::Devices;
use rustc_hash::FxHashMap;

/// What the profiler adds to a traced call, in ns, whatever it does: measured on an H200 host under
/// `nsys profile -t cuda,nvtx` by scripts/pairs/overhead.py (median of 3 windows of 400 rounds under the profiler less
/// the median of 9 alone, by traced calls a round: 2.5 µs for a launch and its getter, 2.4 for an event record and its
/// getter, 1.5, 1.0 and 0.8 for a synchronisation of device, stream and event). A copy takes more: 3.1 µs with its
/// synchronisation, 4.3 with a getter.
const CALL_NS: i64 = 1_200;
const COPY_NS: i64 = 2_500;
/// In a program, whose caches the profiler displaces, calls cost more than in a loop. Of factors from 1 to 3 tried on the
/// programs of scripts/pairs, 3 brings the run length nearest on six of them (gemm512, h2d_pinned, inference_cpu,
/// many_small, mlp, two_streams); the middle between that and the loops' 1 is taken. It was chosen with the other six in
/// sight, so they are no hold-out. The saving hardly depends on it: medians of 1.8 to 3.6 % of the step with any of them.
const IN_PROGRAMS: i64 = 2;
/// An NVTX range, opened and closed from Python, which alone would do neither.
const RANGE_NS: i64 = 800;
/// A backtrace of a call, native and Python: some 10 to 100 µs.
const BACKTRACE_NS: i64 = 30_000;
/// No more of a host segment is taken for the profiler's: the rest is the program's own.
const MOST_OF_GAP: f64 = 0.65;

/// Host time around a synchronising call that goes with it, in ns, from the same loops: a round alone less some 0.5 µs for
/// the call, whose own length is not known without the profiler; for `.item()` a round under the profiler less its two
/// calls. `torch.cuda.synchronize()` looks up the device in Python; streams and events are one C call; `.item()` goes
/// through the dispatcher.
const AROUND_DEVICE_SYNC_NS: i64 = 3_300;
const AROUND_SYNC_NS: i64 = 400;
const AROUND_COPY_NS: i64 = 1_400;
/// Half of the host segments on both sides is the most that can go with a call.
pub const AROUND_OF_GAPS: i64 = 2;

/// Busy share with kernels from which a slowing kernel means the power limit.
const LOADED: f64 = 0.8;
/// Slowest tenth of a kernel's runs over its fastest tenth.
const SLOWED: f64 = 1.06;
/// Runs of a kernel that show a trend.
const MANY_RUNS: usize = 20;
/// Share of won idle time that remains at the power limit. If a kernel takes its energy, a run at the limit takes as long
/// as all its energy does at full power, and what is won is the energy that idling took: an H200 draws 110 W at rest
/// (nvidia-smi, lowest clock; more between kernels) of its 700 W. Weakly supported: it was preferred to one half because
/// that missed gemm8192 of one session by 2.4 points; in another session about 0.6 remained, within the scatter of the
/// windows. Hence the range from none to all of it.
const REMAINS: f64 = 110.0 / 700.0;

/// The profiler's cost of calls, for one capture.
pub struct Costs {
    pace: f64,
    /// Per kept call of each thread: its getters and NVTX ranges.
    beside: Vec<i64>,
    backtrace: i64,
}

impl Costs {
    /// `pace`: how much slower this host is than the one that the figures are from.
    pub fn new(profile: &Profile, pace: f64) -> Self {
        let calls = &profile.calls;
        let beside = |t: usize| {
            let kept = calls.by_thread[t].len() as u64;
            let others = calls.spans[t].calls.saturating_sub(kept) as f64;
            let ranges = profile.nvtx.opened.get(&calls.threads[t]).map_or(0.0, |&n| n as f64);
            ((others * traced(None) as f64 + ranges * RANGE_NS as f64) * pace / kept.max(1) as f64) as i64
        };
        Self {
            pace,
            beside: (0..calls.threads.len()).map(beside).collect(),
            backtrace: if calls.twins.is_empty() { 0 } else { BACKTRACE_NS },
        }
    }

    /// How much slower this host is than the one that the figures are from.
    pub fn pace(&self) -> f64 {
        self.pace
    }

    /// Of a call itself.
    pub fn of_call(&self, kind: Option<Blocking>) -> i64 {
        scaled(traced(kind), self.pace) + self.backtrace
    }

    /// Of a host segment of `gap` ns on thread `thread`, `of_call` being that of the call before it.
    pub fn in_gap(&self, thread: usize, of_call: i64, gap: i64) -> i64 {
        let cost = of_call + self.beside.get(thread).copied().unwrap_or(0);
        cost.clamp(0, most_of(gap))
    }
}

/// What of a host segment the profiler takes at most.
pub fn most_of(gap: i64) -> i64 {
    (gap.max(0) as f64 * MOST_OF_GAP) as i64
}

fn scaled(ns: i64, pace: f64) -> i64 {
    (ns as f64 * pace) as i64
}

fn traced(kind: Option<Blocking>) -> i64 {
    match kind {
        Some(Blocking::CopyAsync | Blocking::Copy) => IN_PROGRAMS * COPY_NS,
        _ => IN_PROGRAMS * CALL_NS,
    }
}

/// Host time around a call that goes with it.
fn around(kind: Option<Blocking>) -> i64 {
    match kind {
        Some(Blocking::Context) => AROUND_DEVICE_SYNC_NS,
        Some(Blocking::Copy | Blocking::CopyAsync) => AROUND_COPY_NS,
        Some(_) => AROUND_SYNC_NS,
        None => 0,
    }
}

/// Host time that goes with a call at most, the call itself aside. The profiler's backtrace does not count: nobody
/// wants to be told that time is saved which only the capture took.
pub fn most_around(kind: Blocking, pace: f64) -> i64 {
    scaled(around(Some(kind)) + traced(Some(kind)), pace)
}

/// Host time that goes with a call, without what the profiler adds to it.
pub fn around_call(kind: Blocking, pace: f64) -> i64 {
    scaled(around(Some(kind)), pace)
}

/// Marks each step with the host time before it that is estimated to be the profiler's, and what goes with its call.
/// Linear in the steps.
pub fn mark(profile: &Profile, program: &mut Program) {
    let calls = &profile.calls;
    let costs = Costs::new(profile, program.learned.pace);
    let kinds: Vec<Option<Blocking>> = calls.names.iter().map(|n| classify(&n.base)).collect();
    // By thread: its last step, and of which kind it was.
    let mut last: Vec<Option<(usize, Option<Blocking>)>> = vec![None; program.threads];
    for (call, step) in (0..).zip(&program.step_of_call).filter(|(_, s)| **s != NONE) {
        let (at, kind) = (*step as usize, kinds[calls.name[call] as usize]);
        let step = &mut program.steps[at];
        let (gap, thread) = (step.gap.max(0), step.thread as usize);
        let before = last[step.after as usize];
        let cost = before.map_or(0, |(_, kind)| costs.of_call(kind));
        step.overhead = fit(costs.in_gap(thread, cost, gap), gap);
        step.around = fit(scaled(around(kind), costs.pace), gap / AROUND_OF_GAPS);
        last[thread] = Some((at, kind));
        if let Some((previous, kind)) = before {
            program.steps[previous].traced = fit(scaled(traced(kind), costs.pace), most_of(gap));
        }
    }
}

fn fit(ns: i64, most: i64) -> u32 {
    u32::try_from(ns.clamp(0, most.max(0))).unwrap_or(u32::MAX)
}

/// Host time of the busiest thread that is estimated to be the profiler's, all calls and NVTX ranges counted.
pub fn of_main_thread(profile: &Profile, pace: f64) -> i64 {
    let Some(thread) = busiest(profile) else { return 0 };
    estimate(profile, pace, thread, i64::MIN, i64::MAX)
}

/// As [`of_main_thread`], of the median iteration.
pub fn within(profile: &Profile, pace: f64, iterations: &Iterations) -> i64 {
    let Some(thread) = profile.calls.threads.iter().position(|&t| t == iterations.tid) else { return 0 };
    let middle = iterations.spans.len() / 2;
    iterations.spans.get(middle).map_or(0, |&(from, to)| estimate(profile, pace, thread, from, to))
}

fn busiest(profile: &Profile) -> Option<usize> {
    (0..profile.calls.threads.len()).max_by_key(|&t| (profile.calls.spans[t].calls, std::cmp::Reverse(t)))
}

fn estimate(profile: &Profile, pace: f64, thread: usize, from: i64, to: i64) -> i64 {
    let calls = &profile.calls;
    let costs = Costs::new(profile, pace);
    let of_name: Vec<i64> = calls.names.iter().map(|n| costs.of_call(classify(&n.base))).collect();
    let inside = calls.by_thread[thread].iter().filter(|&&c| (from..=to).contains(&calls.start[c as usize]));
    inside.fold(0, |sum: i64, &call| {
        sum.saturating_add(of_name[calls.name[call as usize] as usize] + costs.beside[thread])
    })
}

/// What the GPU's clock does to savings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Fast and slow run of the kernel that shows the limit, in ns.
    pub limited: Option<(i64, i64)>,
}

impl Clock {
    /// What remains of a saving. Every run of a capture at the limit is counted alike, so that a whole stays worth its
    /// best part.
    pub fn keeps(self, saved: i64) -> i64 {
        if self.limited.is_some() { (saved as f64 * REMAINS) as i64 } else { saved }
    }
}

/// Whether the busiest device ran at its power limit: kernels fill it, and the one that takes most time slowed down.
pub fn clock(profile: &Profile, devices: &Devices) -> Clock {
    let ops = &profile.ops;
    let Some((from, to)) = devices.list.iter().filter_map(|d| d.timeline.span()).max_by_key(|s| s.1 - s.0)
    else {
        return Clock::default();
    };
    let mut runs: FxHashMap<(u32, u32), i64> = FxHashMap::default();
    let kernels = || (0..ops.len()).filter(|&op| ops.kind[op] == OpKind::Kernel);
    let mut busy = 0i64;
    for op in kernels() {
        let took = ops.end[op] - ops.start[op];
        busy = busy.saturating_add(took);
        *runs.entry((ops.detail[op], ops.stream[op])).or_default() += took;
    }
    if (busy as f64) < LOADED * (to - from) as f64 {
        return Clock::default();
    }
    let Some((&main, &most)) = runs.iter().max_by_key(|(key, ns)| (**ns, **key)) else {
        return Clock::default();
    };
    let mut lengths: Vec<i64> = kernels()
        .filter(|&op| (ops.detail[op], ops.stream[op]) == main)
        .map(|op| ops.end[op] - ops.start[op])
        .collect();
    if lengths.len() < MANY_RUNS || most * 2 < busy {
        return Clock::default();
    }
    lengths.sort_unstable();
    let (fast, slow) = (lengths[lengths.len() / 10], lengths[lengths.len() * 9 / 10]);
    let limited = slow as f64 >= SLOWED * fast as f64;
    Clock { limited: limited.then_some((fast, slow)) }
}
