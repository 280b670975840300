//! What fixing sites saves: simulated runs with nothing fixed, with all false sites fixed, and for each site with only it
//! fixed and with all false sites but it.
//!
//! ```text
//!  alone  = T(nothing fixed)             − T(only this site fixed)
//!  joint  = T(all false but this fixed)  − T(all false fixed)          the share that is this site's in the whole
//!  total  = T(nothing fixed)             − T(all false fixed)
//! ```
//! T is of the program *without the profiler*, whose estimated host time ([`super::overhead`]) is left out of every run:
//! under it a program may be bound by its host which alone is bound by its GPU, and then its waits look empty. One pair
//! of runs keeps all of it, for the figure of the captured run; pairs with less and more of it left out give the range.
//! Where it is known what an iteration takes without a profiler, as much is left out as that takes.
//!
//! What repeats is counted by the iteration: from the first one's start to the last one's, divided by their number
//! (`Laps`). What happens at start-up only is no part of the total.
//!
//! First the run is simulated as recorded; its distance from the recorded end is the error that is printed. Savings do
//! not add: a wait that goes alone often only moves its time into the next one. A capture that the simulation cannot
//! reproduce within 10 % gets bounds only.
//!
//! No saving of the run is above what the waits block in the run that it is of, what goes with their calls, and what their
//! copies get shorter by; of the captured run the bounds of [`super::bounds`] hold too. A value above would be a mistake: it
//! is cut, and counted ([`Price::cut`], [`Prices::cut`]), as is a whole that comes out less than its best part. Every run is
//! monotone (a fix only takes constraints away, or lets things start earlier), so that the whole is worth its best part
//! without help. Captures and programs as a machine runs them need no cut.

use super::bounds::{self, Bounds, Waits};
use super::overhead::{self, Clock};
use super::range::Margin;
use super::settle::Settling;
use super::simulate::run::{PASSES, Variant};
use super::simulate::{Outcome, Program, Scratch, run};
use super::together::{self, Together};
use crate::iterations::Iterations;
use crate::vocabulary::{BoundBy, Change};
use crate::waits::WaitId;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Share of the span by which the simulated run may miss the recorded one.
pub const TOLERANCE: f64 = 0.1;
/// Steps simulated for one report, over all variants: about a second of one core.
const BUDGET: usize = 120_000_000;
/// Variants of a small capture: more sites than this do not fit a screen.
const MOST_VARIANTS: usize = 400;

/// A site to be priced.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Settles ties, whatever the order of sites.
    pub key: String,
    /// The waits that the fix removes.
    pub waits: Vec<WaitId>,
    /// What the fix does to them.
    pub fix: Change,
    /// Counts towards the total: its verdict is false, and it waits after start-up too.
    pub counted: bool,
    /// Would count if it were avoidable, which is not decided.
    pub open: bool,
    /// Fixed already in what everything is compared with.
    pub assumed: bool,
}

/// What fixing one site saves without the profiler, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// Saved where only this site is fixed.
    pub alone: i64,
    /// Its share where all false sites are fixed: lost if only it is not.
    pub joint: i64,
    /// Lower end of the range of the saving.
    pub low: i64,
    /// Upper end of the range of the saving.
    pub high: i64,
    /// What `alone` is of one iteration; `None` where no loop is known, or nothing was simulated.
    pub iteration: Option<i64>,
    /// What removing the waits of the captured run saves at least and at most.
    pub bounds: Bounds,
    /// What was taken to change.
    pub fix: Change,
    /// Part of the saving of the whole.
    pub counted: bool,
    /// From a simulation; else the lower bound stands for the value.
    pub simulated: bool,
    /// The site whose waits take most of the time that this one gives up.
    pub moves_to: Option<usize>,
    /// By how much the simulated saving lay outside its bounds: it was cut.
    pub cut: i64,
}

/// The prices of one capture.
#[derive(Clone, Debug, Default)]
pub struct Prices {
    /// |simulated − recorded| / recorded span, nothing fixed; `None` until priced.
    pub error: Option<f64>,
    /// The same with usual latencies in place of the recorded distances.
    pub usual_error: Option<f64>,
    /// Recorded span, from the first event to the last end, in ns.
    pub recorded: i64,
    /// The same span as simulated with nothing fixed, in ns.
    pub simulated: i64,
    /// One price a subject, in the order given.
    pub sites: Vec<Price>,
    /// The run without the profiler, all false sites fixed; of the captured run, and bounds, where nothing was simulated.
    pub run: Saving,
    /// The same of an iteration; `None` where no loop is known, or nothing was simulated.
    pub iteration: Option<Saving>,
    /// The captured run, and its saving by simulation.
    pub captured: Saving,
    /// An iteration of the captured run.
    pub captured_iteration: Option<Saving>,
    /// What limits the run once all false sites are fixed; `None` until priced.
    pub bound_by: Option<BoundBy>,
    /// Sites with bounds only, because simulating each would take too long.
    pub unsimulated: usize,
    /// Whether the GPU's power limit takes part of the savings.
    pub clock: Clock,
    /// Speed of pinned uploads in GB/s where the capture shows none.
    pub assumed_bandwidth: Option<f64>,
    /// How long launches take here, beside the host that the profiler's known figures are from.
    pub pace: f64,
    /// How many sites the saving is of.
    pub counted: u64,
    /// Whether what an iteration takes without a profiler could be used; `None` where it was not given.
    pub step_known: Option<bool>,
    /// Whether part of that is of backtraces.
    pub backtraces: bool,
    /// By how much iterations scatter, all of them together: part of the range of the run.
    pub scatter: i64,
    /// Sites that save something only together.
    pub together: Vec<Together>,
    /// The most by which a simulated value lay outside its bounds or above the whole, in ns: it was cut.
    pub cut: i64,
}

/// How long a run or an iteration takes, and what fixing all false sites saves of it, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saving {
    /// With nothing fixed.
    pub length: i64,
    /// Saved.
    pub saved: i64,
    /// Lower end of the range of the saving.
    pub low: i64,
    /// Upper end of the range of the saving.
    pub high: i64,
    /// Saved on top of that if all that is undecided can go too.
    pub open: i64,
}

/// How a capture is to be priced.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// Worker threads, whose number changes nothing of the result.
    pub threads: usize,
    /// Prices the run as captured, the profiler's time in it.
    pub as_captured: bool,
    /// What an iteration takes without a profiler, in ns, where that is known.
    pub step: Option<i64>,
}

impl Prices {
    /// Whether nothing was priced.
    pub fn is_empty(&self) -> bool {
        self.recorded == 0
    }
    /// Whether the simulated run is close enough to the recorded one ([`TOLERANCE`]) to price with.
    pub fn usable(&self) -> bool {
        self.error.is_some_and(|error| error <= TOLERANCE)
    }
}

/// Prices `subjects`.
pub fn price(
    capture: &Waits,
    program: &Program,
    subjects: &[Subject],
    iterations: Option<&Iterations>,
    terms: Terms,
) -> Prices {
    let (all, whole) = bounds_of(capture, program, subjects, terms.threads);
    let recorded = program.recorded.max(1);
    let fixes = vec![Change::Keep; subjects.len()];
    let replayed = [false, true].map(|usual| Variant { usual, fixes: fixes.clone(), ..Variant::default() });
    let mut known = divided(2, terms.threads, |i, scratch: &mut Scratch| run(program, &replayed[i], scratch));
    let off = |outcome: &Outcome| (outcome.end - recorded).abs() as f64 / recorded as f64;
    let (plain, error, usual_error) = (known[0].end, Some(off(&known[0])), Some(off(&known[1])));
    let clock = overhead::clock(capture.profile, capture.devices);
    let sites: Vec<Price> = subjects.iter().zip(&all).map(|(s, b)| bounded(s, *b)).collect();
    let high = whole.high().min(recorded);
    let low = low_of(subjects, &sites).min(high);
    let bounds_only = Saving { length: recorded, low, high, ..Saving::default() };
    let mut prices = Prices {
        error,
        usual_error,
        recorded,
        simulated: plain,
        sites,
        run: bounds_only,
        iteration: None,
        captured: bounds_only,
        captured_iteration: None,
        bound_by: None,
        unsimulated: 0,
        clock,
        assumed_bandwidth: Some(program.learned.pinned_upload).filter(|b| !b.learned).map(|b| b.bytes_per_ns),
        pace: program.learned.pace,
        counted: subjects.iter().filter(|s| s.counted).count() as u64,
        step_known: terms.step.map(|_| false),
        backtraces: program.backtraces,
        scatter: 0,
        together: Vec::new(),
        cut: 0,
    };
    let margin = Margin::new(capture.profile, iterations, clock.limited.is_some());
    if prices.usable() {
        let (left_out, step_known) = left_out(program, terms);
        prices.step_known = terms.step.map(|_| step_known);
        prices.scatter = margin.scatter;
        let range = ends(left_out, program.backtraces, step_known);
        let plan = Plan::new(program, subjects, &all, (left_out, range));
        let outcomes = all_of(program, &plan.variants, (&replayed[0], known.swap_remove(0)), terms.threads);
        let beside = |s: &Subject| bounds::beside(capture, program, s.waits.iter().map(|&w| (w, s.fix)));
        let beside: Vec<i64> = subjects.iter().map(beside).collect();
        let settling = Settling { program, subjects, outcomes: &outcomes, clock, margin, terms };
        settling.settle(&plan, &beside, &mut prices);
        let mut scratch = Scratch::default();
        let fixed = |sites: &[usize]| run(program, &plan.with(sites, subjects), &mut scratch);
        let runs = plan.room.min(together::RUNS);
        prices.together = together::find(&settling, &plan, &beside, runs, fixed);
    }
    if margin.limited {
        // At the power limit kernels may slow down by all that idle time was given up.
        let savings = prices.iteration.iter_mut().chain([&mut prices.run]);
        savings.for_each(|s| s.low = 0);
        prices.sites.iter_mut().for_each(|p| p.low = 0);
    }
    prices
}

/// Percent of the profiler's estimated time to leave out: all of it, or as much as makes an iteration as long as it is
/// without a profiler, and whether that could be reached. The simulated run gets no longer as more is left out, so halving
/// finds it.
fn left_out(program: &Program, terms: Terms) -> (i64, bool) {
    const MOST: i64 = 800;
    let Some((step, laps)) = terms.step.zip(program.laps) else {
        return (if terms.as_captured { 0 } else { 100 }, false);
    };
    let mut scratch = Scratch::default();
    let mut lap = |left_out: i64| {
        let outcome = run(program, &Variant { left_out, ..Variant::default() }, &mut scratch);
        outcome.laps.map_or(0, |ns| ns / laps.count)
    };
    let (mut low, mut high) = (0, MOST);
    while low < high {
        let middle = (low + high) / 2;
        if lap(middle) > step { low = middle + 1 } else { high = middle }
    }
    let reached = lap(low);
    (low, (reached - step).abs() <= step / 10)
}

/// What is certain of all false sites together: as much as of the best one.
fn low_of(subjects: &[Subject], prices: &[Price]) -> i64 {
    subjects.iter().zip(prices).filter(|(s, _)| s.counted).map(|(_, p)| p.low).max().unwrap_or(0)
}

/// Each subject's bounds, and those of all counted ones together, divided between the threads.
fn bounds_of(
    capture: &Waits,
    program: &Program,
    subjects: &[Subject],
    threads: usize,
) -> (Vec<Bounds>, Bounds) {
    let gone = |subject: &Subject| -> Vec<(WaitId, Change)> {
        let fix = if subject.fix == Change::Keep { Change::Coalesce } else { subject.fix };
        subject.waits.iter().map(|&w| (w, fix)).collect()
    };
    let together = || subjects.iter().filter(|s| s.counted).flat_map(gone).collect();
    let of = |i: usize| bounds::of_all(capture, program, &subjects.get(i).map_or_else(together, gone));
    // The whole costs as much as its parts: it comes first.
    let last = subjects.len();
    let mut bounds = divided(last + 1, threads, |i, (): &mut ()| of(last - i));
    bounds.reverse();
    let whole = bounds.pop().unwrap_or_default();
    (bounds, whole)
}

/// Without a simulation. A site that cannot go has a range from nothing to what moving or merging its waits may give.
fn bounded(subject: &Subject, bounds: Bounds) -> Price {
    let low = if subject.counted { bounds.low() } else { 0 };
    Price {
        alone: low,
        joint: 0,
        low,
        high: bounds.high(),
        bounds,
        fix: subject.fix,
        counted: subject.counted,
        iteration: None,
        simulated: false,
        moves_to: None,
        cut: 0,
    }
}

/// Which variants are run: nothing fixed and all false fixed, for each share of the profiler's time that is left out, then
/// two for each site that is simulated.
pub(super) struct Plan {
    variants: Vec<Variant>,
    /// Subject, variant with only it, variant with all but it (of a false site).
    pub singles: Vec<(usize, usize, Option<usize>)>,
    pub unsimulated: usize,
    /// Runs that the budget leaves.
    pub room: usize,
}

/// Percent of the profiler's time that is left out, and of the time around removed calls that goes with them.
type Shares = (i64, i64);
/// Of the captured run.
const CAPTURED: Shares = (0, 100);
/// Pairs of variants before all others: the estimate, the captured run, the ends of the estimate's range.
pub(super) const PAIRS: usize = 5;
/// The variant with all false and all undecided sites fixed.
pub(super) const OPEN: usize = 2 * PAIRS;

/// The estimate's range. What backtraces cost is learned to within some 10 % of what they take ([`super::overhead`]): twice
/// that is allowed for, and 10 % where the iteration's length is known. What tracing costs is known from other programs:
/// between none and twice of it, although some programs showed more.
fn ends(left_out: i64, backtraces: bool, step_known: bool) -> [Shares; PAIRS - 2] {
    match (backtraces, step_known) {
        (_, true) => [(left_out * 9 / 10, 0), (left_out * 11 / 10, 0), (left_out * 11 / 10, 100)],
        (true, false) => [(left_out * 4 / 5, 0), (left_out * 6 / 5, 0), (left_out * 6 / 5, 100)],
        (false, false) => [(0, 0), (left_out * 2, 0), (left_out * 2, 200)],
    }
}

impl Plan {
    fn new(
        program: &Program,
        subjects: &[Subject],
        all: &[Bounds],
        (left_out, ends): (i64, [Shares; PAIRS - 2]),
    ) -> Self {
        let base: Vec<Change> =
            subjects.iter().map(|s| if s.assumed { s.fix } else { Change::Keep }).collect();
        let counted = |s: &Subject| s.counted || s.assumed;
        let joint: Vec<Change> =
            subjects.iter().map(|s| if counted(s) { s.fix } else { Change::Keep }).collect();
        let variant = |fixes: &[Change], (left_out, around)| {
            // With all calls in their place nothing around one goes: some variants come to the same.
            let around = if fixes.iter().all(|fix| *fix == Change::Keep) { 0 } else { around };
            Variant { fixes: fixes.to_vec(), left_out, around, usual: false }
        };
        let alone = (left_out, 100);
        let shares = [alone, CAPTURED].into_iter().chain(ends);
        let mut variants: Vec<Variant> =
            shares.flat_map(|p| [variant(&base, p), variant(&joint, p)]).collect();
        let open = |(s, fix): (&Subject, &Change)| if s.open { s.fix } else { *fix };
        variants.push(variant(&subjects.iter().zip(&joint).map(open).collect::<Vec<_>>(), alone));
        let mut wanted: Vec<usize> = (0..subjects.len())
            .filter(|&i| subjects[i].fix != Change::Keep && !subjects[i].assumed)
            .collect();
        // False sites first, then by what they can give at most.
        let order = |&i: &usize| (!subjects[i].counted, std::cmp::Reverse(all[i].high()), &subjects[i].key);
        wanted.sort_by(|a, b| order(a).cmp(&order(b)));
        let passes = if program.late.is_empty() { 1 } else { PASSES };
        let cost = (program.steps.len() + program.ops.len()) * passes;
        let most = (BUDGET / cost.max(1)).clamp(OPEN + 1, MOST_VARIANTS);
        let (mut singles, mut unsimulated) = (Vec::new(), 0);
        for i in wanted {
            let needs = if subjects[i].counted { 2 } else { 1 };
            if variants.len() + needs > most {
                unsimulated += 1;
                continue;
            }
            let mut only = base.clone();
            only[i] = subjects[i].fix;
            variants.push(variant(&only, alone));
            let single = variants.len() - 1;
            let without = subjects[i].counted.then(|| {
                let mut all_but = joint.clone();
                all_but[i] = Change::Keep;
                variants.push(variant(&all_but, alone));
                variants.len() - 1
            });
            singles.push((i, single, without));
        }
        let room = most.saturating_sub(variants.len());
        Self { variants, singles, unsimulated, room }
    }

    /// Some sites fixed, nothing else changed of the variant that estimates.
    fn with(&self, sites: &[usize], subjects: &[Subject]) -> Variant {
        let mut variant = self.variants[0].clone();
        sites.iter().for_each(|&i| variant.fixes[i] = subjects[i].fix);
        variant
    }
}

/// What all variants come to, each run once; `known`: one of them that has been run.
fn all_of(
    program: &Program,
    variants: &[Variant],
    known: (&Variant, Outcome),
    threads: usize,
) -> Vec<Outcome> {
    let mut distinct = vec![known.0.clone()];
    for variant in variants {
        if !distinct.contains(variant) {
            distinct.push(variant.clone());
        }
    }
    let outcomes: Vec<Outcome> =
        std::iter::once(known.1).chain(simulate(program, &distinct[1..], threads)).collect();
    let place = |variant: &Variant| distinct.iter().position(|other| other == variant);
    variants.iter().filter_map(|variant| Some(outcomes[place(variant)?].clone())).collect()
}

/// Runs variants, each whole on one thread.
fn simulate(program: &Program, variants: &[Variant], threads: usize) -> Vec<Outcome> {
    program.progress.iter().for_each(|p| p.begins("simulating fixes", variants.len() as u64, "simulation"));
    divided(variants.len(), threads, |i, scratch: &mut Scratch| {
        let outcome = run(program, &variants[i], scratch);
        program.progress.iter().for_each(|p| p.advance(1));
        outcome
    })
}

/// Does jobs on some threads, each with something of its own that it keeps from job to job; the results in their order.
fn divided<W: Default, T: Send>(
    jobs: usize,
    threads: usize,
    job: impl Fn(usize, &mut W) -> T + Sync,
) -> Vec<T> {
    let (workers, next) = (threads.clamp(1, jobs.max(1)), AtomicUsize::new(0));
    let work = || {
        let mut own = W::default();
        let mine = std::iter::from_fn(|| Some(next.fetch_add(1, Relaxed)).filter(|i| *i < jobs));
        mine.map(|i| (i, job(i, &mut own))).collect::<Vec<_>>()
    };
    let mut done: Vec<(usize, T)> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let joined =
            running.into_iter().map(|w| w.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().collect()
    });
    done.sort_unstable_by_key(|(i, _)| *i);
    done.into_iter().map(|(_, result)| result).collect()
}
