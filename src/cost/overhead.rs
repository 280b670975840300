//! What the profiler and the GPU's power limit do to the times of a capture.
//!
//! **The profiler** slows each traced call, inside it and after it. Its own records (`PROFILER_OVERHEAD`) hold its
//! start-up and its flushes, not this. Known figures are used instead, from programs measured with and without it:
//!
//! ```text
//!  alone      [sync][launch][sync][launch]                       20 µs a step
//!  captured   [sync]~~~~~[launch]~~~~[sync]~~~~~[launch]         49 µs a step     ~ : host time after traced calls
//! ```
//!
//! **The clock.** A GPU at its power limit clocks down as its idle time goes, so not all of that time is won. It shows
//! in the capture as one kernel that takes more and more time while little else changes:
//!
//! ```text
//!  [gemm 1407 µs]··[gemm 1407]··  …  [gemm 1610]··  …  [gemm 1640]··
//! ```

use super::iterations::Iterations;
use super::simulate::model::Act;
use super::simulate::{Outcome, Program};
use crate::profile::Profile;
use crate::profile::calls::ApiName;
use crate::profile::nvtx::process;
use crate::profile::ops::OpKind;
use crate::waits::api::{Blocking, classify};
use crate::waits::device::Devices;
use rustc_hash::FxHashMap;

/// Host time that the profiler adds after a call, in ns: measured on an H200 host under `nsys profile -t cuda,nvtx`
/// (h200-measurements.md: 20 µs a step alone, 49 µs captured).
const AFTER_LAUNCH_NS: i64 = 9_000;
const AFTER_SYNC_NS: i64 = 13_000;
/// After a long wait its buffers are flushed and caches are cold.
const AFTER_LONG_SYNC_NS: i64 = 60_000;
const LONG_SYNC_NS: i64 = 200_000;
/// Per traced call and NVTX range, inside and outside, for the statement about the whole capture.
const LAUNCH_NS: i64 = 10_500;
const SYNC_NS: i64 = 10_000;
const GETTER_NS: i64 = 300;
const RANGE_NS: i64 = 6_000;
/// A backtrace of a call, native and Python: some 10 to 100 µs.
const BACKTRACE_NS: i64 = 30_000;
/// No more of a host segment is taken for the profiler's: the rest is the program's own.
const MOST_OF_GAP: f64 = 0.65;

/// Busy share with kernels from which a slowing kernel means the power limit.
const LOADED: f64 = 0.8;
/// Slowest tenth of a kernel's runs over its fastest tenth.
const SLOWED: f64 = 1.06;
/// Runs of a kernel that show a trend.
const MANY_RUNS: usize = 20;
/// Share of won idle time that remains at the power limit: gemm8192 on an H200, where 97 µs of idle time a step came
/// with kernels of 1640 µs and none with kernels of 1690 µs.
const REMAINS: f64 = 0.5;

/// What the host did before a segment of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// A call that only enqueued.
    Launch,
    /// A wait that took this long, in ns.
    Wait(i64),
}

/// The part of a host segment of `gap` ns that is estimated to be the profiler's.
pub fn in_gap(before: Before, gap: i64) -> i64 {
    let cost = match before {
        Before::Launch => AFTER_LAUNCH_NS,
        Before::Wait(took) if took >= LONG_SYNC_NS => AFTER_LONG_SYNC_NS,
        Before::Wait(_) => AFTER_SYNC_NS,
    };
    cost.min((gap.max(0) as f64 * MOST_OF_GAP) as i64)
}

/// Marks each step with the host time before it that is estimated to be the profiler's.
pub fn mark(program: &mut Program) {
    // By thread: what its last step was, and when that began.
    let mut last: Vec<(Act, i64)> = vec![(Act::Given, 0); program.threads];
    for (step, &start) in program.steps.iter_mut().zip(&program.started) {
        let (act, began) = last[step.after as usize];
        let cost = match act {
            Act::Given => 0,
            Act::Launch => in_gap(Before::Launch, step.gap),
            _ => in_gap(Before::Wait(start - step.gap - began), step.gap),
        };
        step.overhead = u32::try_from(cost).unwrap_or(0);
        last[step.thread as usize] = (step.act, start);
    }
}

/// Host time of the busiest thread that is estimated to be the profiler's, all calls and NVTX ranges counted.
pub fn of_main_thread(profile: &Profile) -> i64 {
    let Some(thread) = busiest(profile) else { return 0 };
    estimate(profile, thread, i64::MIN, i64::MAX)
}

/// As [`of_main_thread`], of the median iteration.
pub fn within(profile: &Profile, iterations: &Iterations) -> i64 {
    let Some(thread) = profile.calls.threads.iter().position(|&t| t == iterations.tid) else { return 0 };
    let middle = iterations.spans.len() / 2;
    iterations.spans.get(middle).map_or(0, |&(from, to)| estimate(profile, thread, from, to))
}

/// Host time of all threads of a process (`globalPid`) within `from..to` that is estimated to be the profiler's for
/// what [`in_gap`] does not count: backtraces, NVTX ranges, getters.
pub fn besides_calls(profile: &Profile, pid: i64, from: i64, to: i64) -> i64 {
    let threads = &profile.calls.threads;
    let mine = (0..threads.len()).filter(|&t| process(threads[t]) == pid);
    mine.map(|t| parts(profile, t, from, to).1).fold(0, i64::saturating_add)
}

fn busiest(profile: &Profile) -> Option<usize> {
    (0..profile.calls.threads.len()).max_by_key(|&t| (profile.calls.spans[t].calls, std::cmp::Reverse(t)))
}

fn estimate(profile: &Profile, thread: usize, from: i64, to: i64) -> i64 {
    let (calls, rest) = parts(profile, thread, from, to);
    calls.saturating_add(rest)
}

/// What the profiler takes for calls, and for all else. Kept calls are counted by kind; the rest of the table (getters)
/// by its share of the span.
fn parts(profile: &Profile, thread: usize, from: i64, to: i64) -> (i64, i64) {
    let calls = &profile.calls;
    let (mut cost, mut kept, mut inside) = (0i64, 0u64, 0u64);
    let traced = if calls.twins.is_empty() { 0 } else { BACKTRACE_NS };
    let waits = |name: &ApiName| classify(&name.base).is_some_and(|b| b != Blocking::CopyAsync);
    let waits: Vec<bool> = calls.names.iter().map(waits).collect();
    for &call in &calls.by_thread[thread] {
        let call = call as usize;
        kept += 1;
        if (from..=to).contains(&calls.start[call]) {
            inside += 1;
            let length = if waits[calls.name[call] as usize] { SYNC_NS } else { LAUNCH_NS };
            cost = cost.saturating_add(length);
        }
    }
    let others = calls.spans[thread].calls.saturating_sub(kept) as f64 * inside as f64 / kept.max(1) as f64;
    let ranges = &profile.nvtx.ranges;
    let tid = calls.threads[thread];
    let mine = |&r: &usize| ranges.tid[r] == tid && (from..=to).contains(&ranges.start[r]);
    let ranges = (0..ranges.start.len()).filter(mine).count() as i64;
    let traces = traced.saturating_mul(i64::try_from(inside).unwrap_or(i64::MAX));
    let rest = traces.saturating_add((others * GETTER_NS as f64) as i64);
    (cost, rest.saturating_add(ranges.saturating_mul(RANGE_NS)))
}

/// What the GPU's clock does to savings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Fast and slow run of the kernel that shows the limit, in ns.
    pub limited: Option<(i64, i64)>,
}

impl Clock {
    /// What remains of a saving that leaves the GPU busy all the time.
    pub fn keeps(self, saved: i64, after: &Outcome) -> i64 {
        let busy = after.busy.iter().copied().max().unwrap_or(0);
        let loaded = busy as f64 >= LOADED * after.end.max(1) as f64;
        if self.limited.is_some() && loaded { (saved as f64 * REMAINS) as i64 } else { saved }
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
