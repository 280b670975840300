//! The profiler's and the GPU power limit's effects on captured times.
//!
//! **The profiler** slows each traced call, inside it and after it. Its own records (`PROFILER_OVERHEAD`)
//! hold only its start-up and its flushes.
//!
//! *A backtrace* costs most. nsys takes it after the call: nearly all of its time lies in the gap behind.
//!
//! ```text
//!  without  [launch]·own·[wait]·own·[launch]                     own: host work of the program, 1 to 30 µs
//!  with     [launch]·own·[wait]~~~~~~~~·own·[launch]              ~ : unwinding, 15 to 130 µs
//! ```
//! libunwind caches 128 places in the code: a call from the line unwound last costs a third of one from
//! another line ([`EventCosts`]). A few waits are followed at once by the next call, so the shortest gaps
//! behind waits show how fast this host unwinds.
//!
//! Where launches carry backtraces too, every line is new to libunwind and gaps scatter widely. The `UNWOUND`
//! quantile of a thread's gaps then counts as unwinding, in every gap that is long enough. Cost: one pass
//! over the calls.
//!
//! *The tracing itself* has known figures, from loops of one call each, timed alone and under the profiler:
//!
//! ```text
//!  alone      [sync][launch][sync][launch]                       19 µs a step
//!  captured   [sync]~~[launch]~~~[sync]~~[launch]                26 µs a step     ~ : host time after traced calls
//! ```
//! A slower host, or a program that displaces the tracer's caches, slows the profiler. The ninth decile of a
//! getter's length therefore scales the figures (130 to 420 ns): PyTorch calls it before each launch, and it
//! does next to nothing. Where no getter is recorded, the length of a launch scales them.
//!
//! ```text
//!  warm caches   [get][launch]        82 ns        in a loop
//!  cold ones     [get~~~][launch~]    180 ns       in a large program
//! ```
//! Where calls follow at once, the time lies in them: a launch takes 7 µs under the profiler, 2 to 3 without.
//!
//! **The clock.** A GPU at its power limit clocks down as its idle time goes, so not all of that time is won.
//! The capture then holds one kernel of one grid that slows down more and more while little else changes:
//!
//! ```text
//!  [gemm 1407 µs]··[gemm 1407]··  …  [gemm 1610]··  …  [gemm 1640]··
//! ```

use super::simulate::Program;
use super::simulate::run::most_of;
use super::simulate::sample;
use super::simulate::step::{HostThread, StepIx, StepKind};
use crate::profile::Profile;
use crate::profile::calls::{ApiName, Calls};
use crate::profile::details::{Details, LaunchSize};
use crate::profile::ids::{CallId, NameIx, OpId, StreamIx, ThreadIx};
use crate::profile::ops::is_collective;
use crate::vocabulary::{Recorder, SiteIx};
use crate::waits::api::{Blocking, classify};
use crate::waits::device::Devices;
use rustc_hash::FxHashMap;
use typed_index_collections::TiVec;

/// Host time to record one event, in ns, on the host and in the loops of the figures.
#[derive(Clone, Copy, Debug)]
pub struct EventCosts {
    pub call: i64,
    pub copy: i64,
    /// A range, opened and closed.
    pub range: i64,
    /// A call from the line of the thread's last backtrace.
    pub backtrace_again: i64,
    /// A call from another line.
    pub backtrace_anew: i64,
}

/// Calls and copies: by scripts/pairs/overhead.py on an H200 host under `nsys profile -t cuda,nvtx`, median
/// of 3 windows of 400 rounds less the median of 9 alone, by traced calls a round: 2.5 µs for a launch and
/// its getter, 2.4 for an event record and its getter, 1.5, 1.0 and 0.8 for a synchronisation of device,
/// stream and event, 3.1 for a copy with its synchronisation. Backtraces: 1,075 and 774 waits of
/// data_pipeline and moe_router, each against a capture without them: medians of 17 and 11 µs again, 45 and
/// 28 µs anew.
pub const NSYS: EventCosts =
    EventCosts { call: 1_200, copy: 2_500, range: 800, backtrace_again: 15_000, backtrace_anew: 45_000 };
/// In ns, under torch.profiler. CUPTI traces its calls too, so [`NSYS`] has their prices.
///
/// This and [`KINETO_PYTHON`] are the best of 27 settings on 13 traces of six programs
/// (docs/history/traces.md): iterations are 10 % off those timed alone in the median, 13 % on average.
pub const KINETO_OPERATOR: i64 = 1_500;
pub const KINETO_PYTHON: i64 = 2_200;
/// Largest share of a gap that counts as recording operators and functions: the rest is their own work.
const OF_RECORDED: f64 = 0.8;
/// Calls cost more in a program than in a loop, as the profiler displaces the program's caches. Among factors
/// from 3 to 20 and shares from 0.25 to 0.65, this one with `OF_GAP` puts 32 of 40 public programs within 15
/// % of iterations timed alone, 6 % off in the median (docs/history/savings.md). Leaving out any of seven
/// sessions changes little. Programs that the host limits need 0.5 to 1.9 times as much, mostly 0.85 to 1.5:
/// [`GETTER_NS`] partly tells which.
const IN_PROGRAMS: i64 = 5;
/// The length of a getter ([`Calls::getter`]) at which tracing takes as long as these figures say. It puts 27
/// of 36 public programs within 15 % of iterations timed alone, 7.7 % off in the median; the length of
/// launches gives 24 and 9.8 %. Values from 140 to 210 ns give 25 to 27.
const GETTER_NS: f64 = 173.0;
/// Factor for a removed call: 2 and 3 did best on pairs under the profiler (docs/history/savings.md).
const WITH_CALL: i64 = 3;
/// Tracing takes at most this share of the gap between two calls, and [`most_of`] a launch.
const OF_GAP: f64 = 0.4;
const FEWEST_GAPS: usize = 16;
/// Gaps looked at per thread: a quantile of more is no better.
const MOST_GAPS: usize = 20_000;
/// Share of gaps no longer than the unwinding. Full captures of 39 public programs are then 13 % off in the
/// median, and 28 % with the median gap. Three quarters make iterations too short where the host limits.
const UNWOUND: f64 = 0.65;
/// Share of gaps behind waits that are little but unwinding: 16 and 19 µs long in the two programs of
/// [`NSYS`], 4 and 12 µs without backtraces.
const SHORTEST: f64 = 0.05;
/// Bounds of a host's unwinding relative to [`NSYS`]: hosts took 0.8 to 1.5 times as long.
const UNWINDING: [f64; 2] = [0.6, 1.6];
/// Least work between two calls: the 5th percentile after launches in vae and imagenet is 0.3 to 2.4 µs.
const LEAST_GAP_NS: i64 = 1_500;

/// Host time around a synchronising call that goes with it, in ns, from the same loops, without the call.
/// `torch.cuda.synchronize()` looks up the device in Python; streams and events are one C call; `.item()`
/// goes through the dispatcher.
const AROUND_DEVICE_SYNC_NS: i64 = 3_300;
const AROUND_SYNC_NS: i64 = 400;
const AROUND_COPY_NS: i64 = 1_400;
/// At most half of the host segments on both sides goes with a call.
pub const AROUND_OF_GAPS: i64 = 2;

/// Share of time with kernels from which a slowing kernel means the power limit.
const LOADED: f64 = 0.8;
/// Slowest tenth of a kernel's runs over its fastest tenth.
const SLOWED: f64 = 1.06;
/// Above this ratio the kernel is taken to wait, or to work on more: a judgement. An H200 at its limit of 700
/// W takes 1.02 to 1.17 times as long for a gemm of 8192.
const SLOWED_AT_MOST: f64 = 2.0;
const MANY_RUNS: usize = 20;
/// Share of won idle time that remains at the power limit. A kernel bound by energy then takes as long as all
/// its energy at full power, so only the energy of idling is won: an H200 at rest draws 110 W of its 700 W
/// (nvidia-smi). Weakly supported: one half missed gemm8192 of one session by 2.4 points; in another about
/// 0.6 remained, within the scatter. Hence the range from none to all of it.
const REMAINS: f64 = 110.0 / 700.0;

pub struct Costs {
    pace: f64,
    /// Slowdown of tracing in this capture.
    tracing: f64,
    kinds: TiVec<NameIx, Option<Blocking>>,
    /// Getters and NVTX ranges per kept call of each thread, in ns.
    beside: TiVec<ThreadIx, i64>,
    backtrace: TiVec<ThreadIx, Unwinding>,
}

/// The cost of the backtraces of a thread's calls, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Unwinding {
    /// No call has one, or all have and too few to learn from.
    None,
    /// All calls have one; `UNWOUND` of the gaps after them are no longer.
    EveryCall(i64),
    /// Waits have one, from the same line again or from another.
    Waits { again: i64, anew: i64 },
}

impl Unwinding {
    /// `again`: the thread's last backtrace was of the same line.
    fn after(self, again: bool) -> i64 {
        match self {
            Self::None => 0,
            Self::EveryCall(ns) => ns,
            Self::Waits { again: ns, .. } if again => ns,
            Self::Waits { anew, .. } => anew,
        }
    }
}

impl Costs {
    /// `pace`: slowdown of this host against the host of the figures.
    pub fn new(profile: &Profile, pace: f64) -> Self {
        let calls = &profile.calls;
        let tracing = calls.getter.map_or(pace, |ns| ns as f64 / GETTER_NS);
        let beside = |t: ThreadIx| {
            let kept = calls.by_thread[t].len() as u64;
            let others = calls.spans[t].calls.saturating_sub(kept) as f64;
            let opened = profile.nvtx.opened.get(&calls.threads[t]).filter(|_| profile.recorded.is_empty());
            let ranges = opened.map_or(0.0, |&n| n as f64);
            ((others * (IN_PROGRAMS * NSYS.call) as f64 + ranges * NSYS.range as f64) * tracing
                / kept.max(1) as f64) as i64
        };
        let launches = |(name, &has): (&ApiName, &bool)| has && name.launches_kernel();
        let every_call = calls.names.iter().zip(&calls.backtraced).any(launches);
        Self {
            pace,
            tracing,
            kinds: calls.names.iter().map(|n| classify(&n.base)).collect(),
            beside: calls.threads.keys().map(beside).collect(),
            backtrace: calls
                .threads
                .keys()
                .map(|t| match profile.target.recorder {
                    Recorder::Nsys => unwinding(calls, t, every_call, tracing),
                    Recorder::TorchProfiler => Unwinding::None,
                })
                .collect(),
        }
    }

    pub fn pace(&self) -> f64 {
        self.pace
    }

    /// Whether launches carry backtraces too, at a known cost.
    pub fn slow_every_call(&self) -> bool {
        self.backtrace.iter().any(|unwinding| matches!(unwinding, Unwinding::EveryCall(_)))
    }

    /// The profiler's part of a host segment of `gap` ns after a call and of the next launch of `launch` ns:
    /// time that does not fit between the calls lies inside them.
    pub fn after(&self, profile: &Profile, call: CallId, again: bool, gap: i64, launch: i64) -> i64 {
        let calls = &profile.calls;
        let (name, thread) = (calls.name(call), calls.thread(call));
        let traced = scaled(IN_PROGRAMS * traced(self.kinds[name]), self.tracing) + self.beside[thread];
        let unwinding = if calls.backtraced[name] { self.backtrace[thread].after(again) } else { 0 };
        let unwound = unwinding.min(gap - LEAST_GAP_NS).max(0) + self.recording(profile, call, gap);
        let between = ((gap - unwound).max(0) as f64 * OF_GAP) as i64;
        unwound + traced.clamp(0, between.saturating_add(most_of(launch)))
    }

    /// The time that torch.profiler takes to record what begins and ends within `gap` ns after a call.
    fn recording(&self, profile: &Profile, call: CallId, gap: i64) -> i64 {
        let Some(recorded) = profile.recorded.get(&profile.calls.tid(call)) else { return 0 };
        let end = profile.calls.end(call);
        let [operators, python] = recorded.between(end, end.saturating_add(gap)).map(|n| n as i64);
        let each = (operators * KINETO_OPERATOR + python * KINETO_PYTHON) / 2;
        scaled(each, self.tracing).min((gap as f64 * OF_RECORDED) as i64)
    }

    /// Sets each simulated step's profiler time and what goes with its call. Linear in the steps.
    pub fn mark(&self, profile: &Profile, program: &mut Program) {
        let calls = &profile.calls;
        let mut last: TiVec<HostThread, Option<Before>> = program.by_thread(None);
        let mut unwound: TiVec<HostThread, Option<SiteIx>> = program.by_thread(None);
        let simulated: Vec<_> = program.stretches().into_iter().map(|(steps, _)| steps).collect();
        let mut is_simulated = sample::inside(&simulated);
        let steps = std::mem::take(&mut program.issue.steps);
        let calls_of_steps = steps.calls().enumerate().filter(|(at, _)| is_simulated(*at));
        for (at, call) in calls_of_steps.map(|(at, call)| (StepIx::from(at), call)) {
            let Some((call, step)) = call.zip(program.steps.get(at)) else { continue };
            let gap = step.gap.max(0);
            let before = last[step.after];
            let launch = if matches!(step.kind, StepKind::Launch(_)) { step.length } else { 0 };
            let taken = before.map_or(0, |b| self.after(profile, b.call, b.again, gap, launch));
            program.steps.set_overhead(at, fit(taken, gap.saturating_add(launch)));
            if step.site.is_some() {
                let around = scaled(around(self.kinds[calls.name(call)]), self.pace);
                program.steps.change(at, |step| step.around = fit(around, gap / AROUND_OF_GAPS));
            }
            let carries = calls.backtraced[calls.name(call)];
            let again = carries && step.site.is_some() && unwound[step.thread] == step.site;
            if carries {
                unwound[step.thread] = step.site;
            }
            last[step.thread] = Some(Before { step: at, site: step.site, call, again });
            if let Some(Before { step: previous, site: Some(_), call, .. }) = before {
                let traced = scaled(WITH_CALL * traced(self.kinds[calls.name(call)]), self.pace);
                program.steps.change(previous, |step| step.traced = fit(traced, most_of(gap)));
            }
        }
        program.issue.steps = steps;
        program.backtraces = self.slow_every_call();
    }
}

#[derive(Clone, Copy)]
struct Before {
    step: StepIx,
    site: Option<SiteIx>,
    call: CallId,
    /// Whether the backtrace before that of `call` was of the same site.
    again: bool,
}

fn unwinding(calls: &Calls, thread: ThreadIx, every_call: bool, tracing: f64) -> Unwinding {
    let share = if every_call { UNWOUND } else { SHORTEST };
    let gap = gap_after_backtrace(calls, thread, share);
    match gap {
        None if every_call || !calls.backtraced.contains(&true) => Unwinding::None,
        Some(ns) if every_call => Unwinding::EveryCall(ns),
        gap => {
            let usual = |ns: i64| scaled(ns, tracing) as f64;
            let shortest = gap.map_or(usual(NSYS.backtrace_again), |ns| (ns - LEAST_GAP_NS) as f64);
            let pace = (shortest / NSYS.backtrace_again as f64).clamp(UNWINDING[0], UNWINDING[1]);
            let [again, anew] = [NSYS.backtrace_again, NSYS.backtrace_anew].map(|ns| scaled(ns, pace));
            Unwinding::Waits { again, anew }
        }
    }
}

/// The quantile `share` of a thread's gaps after calls with a backtrace; `None` if there are few.
fn gap_after_backtrace(calls: &Calls, thread: ThreadIx, share: f64) -> Option<i64> {
    let list = &calls.by_thread[thread];
    let (mut gaps, mut last) = (Vec::new(), None::<CallId>);
    let stride = list.len() / MOST_GAPS + 1;
    for (n, &call) in list.iter().enumerate() {
        // A nested call ends no later than the one around it, which is the one with the backtrace.
        if last.is_some_and(|outer| calls.start(call) < calls.end(outer)) {
            continue;
        }
        if let Some(before) = last.filter(|&c| calls.backtraced[calls.name(c)])
            && n % stride == 0
        {
            gaps.push(calls.start(call) - calls.end(before));
        }
        last = Some(call);
    }
    if gaps.len() < FEWEST_GAPS {
        return None;
    }
    let at = (gaps.len() as f64 * share) as usize;
    Some(*gaps.select_nth_unstable(at).1)
}

fn scaled(ns: i64, pace: f64) -> i64 {
    (ns as f64 * pace) as i64
}

/// In ns, on the host of the figures.
fn traced(kind: Option<Blocking>) -> i64 {
    match kind {
        Some(Blocking::CopyAsync | Blocking::Copy) => NSYS.copy,
        _ => NSYS.call,
    }
}

fn around(kind: Option<Blocking>) -> i64 {
    match kind {
        Some(Blocking::Context) => AROUND_DEVICE_SYNC_NS,
        Some(Blocking::Copy | Blocking::CopyAsync) => AROUND_COPY_NS,
        Some(_) => AROUND_SYNC_NS,
        None => 0,
    }
}

/// Upper bound of host time that goes with a call, besides the call. The profiler's backtrace does not count:
/// only the capture took it.
pub fn most_around(kind: Blocking, pace: f64) -> i64 {
    scaled(around(Some(kind)) + WITH_CALL * traced(Some(kind)), pace)
}

/// Host time that goes with a call, without the profiler's part.
pub fn around_call(kind: Blocking, pace: f64) -> i64 {
    scaled(around(Some(kind)), pace)
}

fn fit(ns: i64, most: i64) -> u32 {
    u32::try_from(ns.clamp(0, most.max(0))).unwrap_or(u32::MAX)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// A run of the kernel that shows the limit, and its fast and slow length in ns.
    pub limited: Option<(OpId, [i64; 2])>,
}

impl Clock {
    /// Every run of a capture at the limit is scaled alike, so that a whole stays worth its best part.
    pub fn keeps(self, saved: i64) -> i64 {
        if self.limited.is_some() { (saved as f64 * REMAINS) as i64 } else { saved }
    }
}

/// Whether the busiest device may have run at its power limit: kernels fill it, and runs of one grid of its
/// longest kernel slowed down. A kernel that waits for other ranks says nothing about a clock.
pub fn clock(profile: &Profile, devices: &Devices) -> Clock {
    let ops = &profile.ops;
    let Some((from, to)) = devices.list.iter().filter_map(|d| d.timeline.span()).max_by_key(|s| s.1 - s.0)
    else {
        return Clock::default();
    };
    let key = |op| Some((ops.kernel(op)?, ops.stream(op), ops.grid(op)));
    let kernels = || ops.ids().filter_map(|op| Some((op, key(op)?)));
    let mut runs: FxHashMap<(u32, StreamIx, u32), i64> = FxHashMap::default();
    let mut busy = 0i64;
    for (op, key) in kernels() {
        busy = busy.saturating_add(ops.length(op));
        let run = runs.entry(key).or_default();
        *run = run.saturating_add(ops.length(op));
    }
    if (busy as f64) < LOADED * (to - from) as f64 {
        return Clock::default();
    }
    let Some((&main, &most)) = runs.iter().max_by_key(|(key, ns)| (**ns, **key)) else {
        return Clock::default();
    };
    let main: Vec<OpId> = kernels().filter(|k| k.1 == main).map(|(op, _)| op).collect();
    let waits = || profile.kernel_name(main[0]).is_some_and(|name| is_collective(name));
    if most < busy / 2 || slowed(profile, &main).is_none() || waits() {
        return Clock::default();
    }
    // The export's columns hold one side of a grid; the others are read only where needed.
    let launches = Details::read(profile, &main).map(|details| details.launches).unwrap_or_default();
    let mut alike: FxHashMap<Option<&LaunchSize>, Vec<OpId>> = FxHashMap::default();
    main.iter().for_each(|op| alike.entry(launches.get(op)).or_default().push(*op));
    let alike = alike.into_values().filter(|ops| ops.len() * 2 > main.len());
    let clocked = |[fast, slow]: &[i64; 2]| *slow as f64 <= SLOWED_AT_MOST * *fast as f64;
    let limited = alike.filter_map(|ops| Some((ops[0], slowed(profile, &ops).filter(clocked)?))).next();
    Clock { limited }
}

/// A fast and a slow length of a kernel, if its runs got slower over time.
fn slowed(profile: &Profile, runs: &[OpId]) -> Option<[i64; 2]> {
    if runs.len() < MANY_RUNS {
        return None;
    }
    let sorted = |runs: &[OpId]| {
        let mut lengths: Vec<i64> = runs.iter().map(|&op| profile.ops.length(op)).collect();
        lengths.sort_unstable();
        lengths
    };
    let slower = |fast: i64, slow: i64| slow as f64 >= SLOWED * fast as f64;
    let (all, quarter) = (sorted(runs), runs.len() / 4);
    // Where fast and slow runs alternate, the fast stay as fast.
    let fastest = |runs: &[OpId]| sorted(runs)[quarter / 10];
    let slows_down = slower(fastest(&runs[..quarter]), fastest(&runs[runs.len() - quarter..]));
    let (fast, slow) = (all[all.len() / 10], all[all.len() * 9 / 10]);
    (slower(fast, slow) && slows_down).then_some([fast, slow])
}
