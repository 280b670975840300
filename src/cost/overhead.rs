//! What the profiler and the GPU's power limit do to the times of a capture.
//!
//! **The profiler** slows each traced call, inside it and after it. Its own records (`PROFILER_OVERHEAD`) hold its
//! start-up and its flushes, not this.
//!
//! *A backtrace* is by far the dearest. nsys takes it after the call, so nearly all of its time lies in the gap behind it.
//!
//! ```text
//!  without  [launch]·own·[wait]·own·[launch]                     own: host work of the program, 1 to 30 µs
//!  with     [launch]·own·[wait]~~~~~~~~·own·[launch]              ~ : unwinding, 15 to 130 µs
//! ```
//! libunwind keeps what it knows of 128 places in the code. A call from a line that was unwound just before costs little,
//! a call from another line three times as much: [`EventCosts`] has both. The capture shows how fast this host unwinds: a few
//! waits are followed at once by the next call, so the shortest gaps behind waits are unwinding and little else.
//!
//! Where launches carry backtraces too, every line is new to libunwind and gaps scatter far. Two thirds of a thread's gaps are no
//! longer than `UNWOUND` says; that length is taken for unwinding, in every gap that is long enough. Costs one pass over the
//! calls.
//!
//! *The tracing itself* is taken from known figures, from loops of one call each, timed alone and under the profiler:
//!
//! ```text
//!  alone      [sync][launch][sync][launch]                       19 µs a step
//!  captured   [sync]~~[launch]~~~[sync]~~[launch]                26 µs a step     ~ : host time after traced calls
//! ```
//! A slower host, and a program that leaves the tracer no caches, have a slower profiler: figures are scaled by what the capture
//! shows of it, the length of a getter that PyTorch calls before each launch and that does next to nothing by itself, at its
//! ninth decile (130 to 420 ns); where none is recorded, by how long a launch takes.
//!
//! ```text
//!  warm caches   [get][launch]        82 ns        in a loop
//!  cold ones     [get~~~][launch~]    180 ns       in a large program
//! ```
//! Where calls follow each other at once, the time lies inside them: a launch takes 7 µs under the profiler and 2 to 3 without.
//!
//! **The clock.** A GPU at its power limit clocks down as its idle time goes, so not all of that time is won. It shows
//! in the capture as one kernel of one grid that takes more and more time while little else changes:
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

/// The host time that recording one event of a kind takes, in ns, on the host and in the loops that the figures are from.
/// Recorders other than nsys have tables of their own.
#[derive(Clone, Copy, Debug)]
pub struct EventCosts {
    /// A call.
    pub call: i64,
    /// A call that copies.
    pub copy: i64,
    /// An NVTX range, opened and closed.
    pub range: i64,
    /// The backtrace of a call from the line of the thread's last backtrace.
    pub backtrace_again: i64,
    /// The backtrace of a call from another line.
    pub backtrace_anew: i64,
}

/// Calls and copies: measured on an H200 host under `nsys profile -t cuda,nvtx` by scripts/pairs/overhead.py (median of 3
/// windows of 400 rounds under the profiler less the median of 9 alone, by traced calls a round: 2.5 µs for a launch and its
/// getter, 2.4 for an event record and its getter, 1.5, 1.0 and 0.8 for a synchronisation of device, stream and event). A copy
/// takes more: 3.1 µs with its synchronisation, 4.3 with a getter. Backtraces: 1,075 and 774 waits of two programs (data_pipeline,
/// moe_router), wait by wait against a capture without backtraces: medians of 17 and 11 µs again, 45 and 28 µs anew.
pub const NSYS: EventCosts =
    EventCosts { call: 1_200, copy: 2_500, range: 800, backtrace_again: 15_000, backtrace_anew: 45_000 };
/// The time that torch.profiler takes to record one operator and one Python function, in ns. Its calls go through CUPTI as those of nsys
/// do, so [`NSYS`] has their prices.
///
/// Both were chosen among 27 settings on 13 traces of six programs (docs/history/traces.md): iterations are then 10 % off those timed
/// alone in the median, 13 % on average.
pub const KINETO_OPERATOR: i64 = 1_500;
/// The same of a Python function.
pub const KINETO_PYTHON: i64 = 2_200;
/// No more than this share of what lies between two calls is the recording of operators and functions: some of it is they themselves.
const OF_RECORDED: f64 = 0.8;
/// In a program, whose caches the profiler displaces, calls cost more than in a loop, and the more, the more the program
/// does between them. Of factors from 3 to 20 and shares from 0.25 to 0.65 tried on 40 public programs of seven sessions
/// (docs/history/savings.md), with these two 32 iterations are within 15 % of those timed alone, 6 % off in the median; with 3
/// and 0.65, as it was, 28 and 7 %. Whichever session is left out, the others choose nearly alike. 0.5 to 1.9 times as much would
/// meet the iterations of those that the host limits, mostly 0.85 to 1.5; the lengths of getters tell something of which
/// ([`GETTER_NS`]), those of launches and how many calls nsys leaves out (gaps in the correlation ids) do not.
const IN_PROGRAMS: i64 = 5;
/// The length of a getter ([`Calls::getter`]) with which tracing takes as long as these figures say: of 36 public programs of six
/// sessions, four of which come out far off whatever is taken, it puts 27 within 15 % of the iterations timed alone, 7.7 %
/// off in the median; scaling by the length of launches, as where no getter is recorded, 24 and 9.8 %. From 140 to 210 ns
/// it is 25 to 27, and any quantile from 75 to 99 does as well. Lengths are alike in full captures.
const GETTER_NS: f64 = 173.0;
/// The factor for a call that a fix takes away: on pairs of programs measured under the profiler (docs/history/savings.md) 2 and 3
/// did best.
const WITH_CALL: i64 = 3;
/// No more than this share of what lies between two calls is tracing's; of a launch [`most_of`] it.
const OF_GAP: f64 = 0.4;
/// Gaps of a thread that tell what a backtrace costs there; of fewer none is known, and none is left out.
const FEWEST_GAPS: usize = 16;
/// Gaps looked at per thread: a quantile of more is no better.
const MOST_GAPS: usize = 20_000;
/// Share of them that are no longer than what is taken for unwinding. Of 39 public programs captured both ways, iterations of
/// the full capture are then 13 % off in the median, 20 within 15 %; with the median 28 % and 11; with three quarters 13 % and
/// 22, but those that the host limits come out shorter than from their light captures.
const UNWOUND: f64 = 0.65;
/// Share of the gaps behind waits that are unwinding and little else: in the two programs of [`NSYS`] the twentieth part is 16
/// and 19 µs long, and 4 and 12 µs without backtraces.
const SHORTEST: f64 = 0.05;
/// Bounds of a host's unwinding, by that of [`NSYS`]: the slowest host seen took 1.5 times as long, the fastest 0.8 times, and either
/// bound leaves some room. Gaps that say otherwise hold work of the program.
const UNWINDING: [f64; 2] = [0.6, 1.6];
/// What a program does between two calls at least: the 5th percentile of gaps after launches in the light captures of
/// vae and imagenet is 0.3 to 2.4 µs.
const LEAST_GAP_NS: i64 = 1_500;

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
/// Above that it is taken to wait, or to work on more: a judgement. An H200 at its limit of 700 W takes 1.02 to 1.17 times as long
/// for a gemm of 8192.
const SLOWED_AT_MOST: f64 = 2.0;
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
    /// How much slower tracing is, by what the capture shows of it.
    tracing: f64,
    kinds: TiVec<NameIx, Option<Blocking>>,
    /// Per kept call of each thread: its getters and NVTX ranges.
    beside: TiVec<ThreadIx, i64>,
    backtrace: TiVec<ThreadIx, Unwinding>,
}

/// The cost of the backtraces of a thread's calls, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Unwinding {
    /// No call has one; or all have, and too few to learn from.
    None,
    /// All calls have one: what two thirds of the gaps after them do not exceed.
    EveryCall(i64),
    /// Waits have one: of the same line again, of another line.
    Waits { again: i64, anew: i64 },
}

impl Unwinding {
    /// The time that unwinding takes after a call with a backtrace. `again`: the thread's last backtrace was of the same line.
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
    /// `pace`: how much slower this host is than the one that the figures are from.
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

    /// How much slower this host is than the one that the figures are from.
    pub fn pace(&self) -> f64 {
        self.pace
    }

    /// Whether launches carry backtraces too, and what those cost is known.
    pub fn slow_every_call(&self) -> bool {
        self.backtrace.iter().any(|unwinding| matches!(unwinding, Unwinding::EveryCall(_)))
    }

    /// Of a host segment of `gap` ns that follows a call, and of the launch of `launch` ns after it: what does not fit
    /// between two calls lies inside them. `again`: the thread's last backtrace was of the same line.
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

    /// Marks each step that is simulated with the host time before it that is estimated to be the profiler's, and what goes with
    /// its call. Linear in the steps.
    pub fn mark(&self, profile: &Profile, program: &mut Program) {
        let calls = &profile.calls;
        // The last step of each thread, and the site of its last backtrace.
        let mut last: TiVec<HostThread, Option<Before>> = program.by_thread(None);
        let mut unwound: TiVec<HostThread, Option<SiteIx>> = program.by_thread(None);
        // The calls stay as they are.
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
            // Only what a fix may take away has something that goes with it.
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

/// The last step of a thread.
#[derive(Clone, Copy)]
struct Before {
    step: StepIx,
    site: Option<SiteIx>,
    call: CallId,
    /// Whether the backtrace before that of `call` was of the same site.
    again: bool,
}

/// Learns from a thread's gaps how long unwinding takes there.
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

/// The length that this share of a thread's gaps after calls with a backtrace do not exceed; `None` of few.
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

/// The time that tracing a call takes on the host that the figures are from.
fn traced(kind: Option<Blocking>) -> i64 {
    match kind {
        Some(Blocking::CopyAsync | Blocking::Copy) => NSYS.copy,
        _ => NSYS.call,
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
    scaled(around(Some(kind)) + WITH_CALL * traced(Some(kind)), pace)
}

/// Host time that goes with a call, without what the profiler adds to it.
pub fn around_call(kind: Blocking, pace: f64) -> i64 {
    scaled(around(Some(kind)), pace)
}

fn fit(ns: i64, most: i64) -> u32 {
    u32::try_from(ns.clamp(0, most.max(0))).unwrap_or(u32::MAX)
}

/// What the GPU's clock does to savings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// A run of the kernel that shows the limit; how long a fast and a slow one take, in ns.
    pub limited: Option<(OpId, [i64; 2])>,
}

impl Clock {
    /// What remains of a saving. Every run of a capture at the limit is counted alike, so that a whole stays worth its
    /// best part.
    pub fn keeps(self, saved: i64) -> i64 {
        if self.limited.is_some() { (saved as f64 * REMAINS) as i64 } else { saved }
    }
}

/// Whether the busiest device may have run at its power limit: kernels fill it, and of the one that takes most time runs
/// of one grid slowed down. One that waits for other ranks says nothing about a clock.
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
    // The export's columns hold one side of a grid: the others are read only where it matters.
    let launches = Details::read(profile, &main).map(|details| details.launches).unwrap_or_default();
    let mut alike: FxHashMap<Option<&LaunchSize>, Vec<OpId>> = FxHashMap::default();
    main.iter().for_each(|op| alike.entry(launches.get(op)).or_default().push(*op));
    let alike = alike.into_values().filter(|ops| ops.len() * 2 > main.len());
    let clocked = |[fast, slow]: &[i64; 2]| *slow as f64 <= SLOWED_AT_MOST * *fast as f64;
    let limited = alike.filter_map(|ops| Some((ops[0], slowed(profile, &ops).filter(clocked)?))).next();
    Clock { limited }
}

/// A fast and a slow run of a kernel whose runs, in their order, took longer and longer.
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
    // Of runs that differ by turns, the fast ones are as fast at the end.
    let fastest = |runs: &[OpId]| sorted(runs)[quarter / 10];
    let slows_down = slower(fastest(&runs[..quarter]), fastest(&runs[runs.len() - quarter..]));
    let (fast, slow) = (all[all.len() / 10], all[all.len() * 9 / 10]);
    (slower(fast, slow) && slows_down).then_some([fast, slow])
}
