//! What fixing sites saves: one simulated run as recorded, one with all false sites fixed, and for each site one with
//! only it fixed and one with all false sites but it.
//!
//! ```text
//!  alone  = T(nothing fixed)             − T(only this site fixed)
//!  joint  = T(all false but this fixed)  − T(all false fixed)          the share that is this site's in the whole
//!  total  = T(nothing fixed)             − T(all false fixed)
//! ```
//! All of these are of the *captured* run, which the profiler slows. What the program saves without the profiler is a
//! second pair of runs, from which the profiler's estimated host time ([`super::overhead`]) is left out, with ends of
//! none and twice the estimate. How far all of it may be off is [`super::range`]'s.
//!
//! First the run is simulated as recorded; its distance from the recorded end is the error that is printed. Savings do
//! not add: a wait that goes alone often only moves its time into the next one. A capture that the simulation cannot
//! reproduce within 10 % gets bounds only.
//!
//! A value outside the bounds of [`super::bounds`] would be a mistake of one of the two: it is cut, and counted
//! ([`Price::cut`], [`Prices::cut`]), as is a whole that comes out less than its best part. Every run is monotone (a fix
//! only takes constraints away, or lets things start earlier), so that the whole is worth its best part without help.
//! Captures and programs as a machine runs them need no cut.

use super::bounds::{self, Bounds, Waits};
use super::iterations::Iterations;
use super::overhead::{self, Clock};
use super::range::Margin;
use super::simulate::run::Variant;
use super::simulate::{Fix, Outcome, Program, Scratch, run};

/// Share of the span by which the simulated run may miss the recorded one.
pub const TOLERANCE: f64 = 0.1;
/// Steps simulated for one report, over all variants: about a second of one core.
const BUDGET: usize = 120_000_000;
/// Variants of a small capture: more sites than this do not fit a screen.
const MOST_VARIANTS: usize = 400;
/// Busy share of a device from which it is what bounds the run.
const GPU_BOUND: f64 = 0.85;

/// A site to be priced.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Settles ties, whatever the order of sites.
    pub key: String,
    /// Indices into the waits given.
    pub waits: Vec<u32>,
    pub fix: Fix,
    /// Counts towards the total: its verdict is false.
    pub counted: bool,
    /// Fixed already in what everything is compared with.
    pub assumed: bool,
}

/// What fixing one site saves, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    pub alone: i64,
    pub joint: i64,
    pub low: i64,
    pub high: i64,
    pub bounds: Bounds,
    pub fix: Fix,
    /// From a simulation; else the lower bound stands for the value.
    pub simulated: bool,
    /// The site whose waits take most of the time that this one gives up.
    pub moves_to: Option<usize>,
    /// By how much the simulated saving lay outside its bounds: it was cut.
    pub cut: i64,
}

/// What limits the run once all false sites are fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundBy {
    Host,
    Gpu,
}

/// The prices of one capture.
#[derive(Clone, Debug)]
pub struct Prices {
    /// |simulated − recorded| / recorded span, nothing fixed; `None` where nothing was simulated.
    pub error: Option<f64>,
    /// The same with usual latencies in place of the recorded distances.
    pub usual_error: Option<f64>,
    pub recorded: i64,
    pub simulated: i64,
    pub sites: Vec<Price>,
    pub joint: i64,
    pub low: i64,
    pub high: i64,
    pub bound_by: Option<BoundBy>,
    /// Sites with bounds only, because simulating each would take too long.
    pub unsimulated: usize,
    pub clock: Clock,
    /// Speed of pinned uploads in GB/s where the capture shows none.
    pub assumed_bandwidth: Option<f64>,
    /// How long launches take here, beside the host that the profiler's known figures are from.
    pub pace: f64,
    /// What the program takes and saves without the profiler.
    pub unprofiled: Option<Unprofiled>,
    /// By how much iterations scatter: part of every range that a simulation gave.
    pub scatter: i64,
    /// The most by which a simulated value lay outside its bounds or above the whole, in ns: it was cut.
    pub cut: i64,
}

/// The program without the profiler, estimated, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unprofiled {
    pub run: i64,
    pub saved: i64,
    pub low: i64,
    pub high: i64,
}

impl Prices {
    pub fn usable(&self) -> bool {
        self.error.is_some_and(|error| error <= TOLERANCE)
    }
}

/// Prices `subjects` on up to `threads` threads, whose number changes nothing of the result.
pub fn price(
    capture: &Waits,
    program: &Program,
    subjects: &[Subject],
    iterations: Option<&Iterations>,
    threads: usize,
) -> Prices {
    let (all, whole) = bounds_of(capture, program, subjects, threads);
    let recorded = program.recorded.max(1);
    let replayed = |usual| {
        let variant = Variant { usual, ..Variant::default() };
        program.wanted.then(|| run(program, &variant, &mut Scratch::default()).end)
    };
    let off = |end: i64| (end - recorded).abs() as f64 / recorded as f64;
    let plain = replayed(false);
    let (error, usual_error) = (plain.map(off), replayed(true).map(off));
    let clock =
        if program.wanted { overhead::clock(capture.profile, capture.devices) } else { Clock::default() };
    let margin = Margin::new(iterations, clock.limited.is_some());
    let mut prices = Prices {
        error,
        usual_error,
        recorded,
        simulated: plain.unwrap_or(0),
        sites: subjects.iter().zip(&all).map(|(s, b)| bounded(s, *b)).collect(),
        joint: 0,
        low: 0,
        high: whole.high().min(recorded),
        bound_by: None,
        unsimulated: 0,
        clock,
        assumed_bandwidth: Some(program.learned.pinned_upload).filter(|b| !b.learned).map(|b| b.bytes_per_ns),
        pace: program.learned.pace,
        unprofiled: None,
        scatter: margin.scatter,
        cut: 0,
    };
    if prices.usable() {
        let plan = Plan::new(program, subjects, &all);
        let outcomes = simulate(program, &plan.variants, threads);
        plan.settle(subjects, &outcomes, margin, &mut prices);
    } else {
        prices.low = low_of(subjects, &prices.sites).min(prices.high);
    }
    if margin.limited {
        // At the power limit kernels may slow down by all that idle time was given up.
        prices.low = 0;
        prices.sites.iter_mut().for_each(|p| p.low = 0);
    }
    prices
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
    let gone = |subject: &Subject| -> Vec<(u32, Fix)> {
        let fix = if subject.fix == Fix::Keep { Fix::Coalesce } else { subject.fix };
        subject.waits.iter().map(|&w| (w, fix)).collect()
    };
    let together = || subjects.iter().filter(|s| s.counted).flat_map(gone).collect();
    let of = |i: usize| bounds::of_all(capture, program, &subjects.get(i).map_or_else(together, gone));
    let workers = threads.clamp(1, subjects.len() + 1);
    let mut bounds = vec![Bounds::default(); subjects.len() + 1];
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..workers)
            .map(|worker| {
                // The whole costs as much as its parts: it comes first.
                let mine = (worker..=subjects.len()).step_by(workers).map(|i| subjects.len() - i);
                scope.spawn(move || mine.map(|i| (i, of(i))).collect::<Vec<_>>())
            })
            .collect();
        for worker in running {
            for (i, bound) in worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
                bounds[i] = bound;
            }
        }
    });
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
        simulated: false,
        moves_to: None,
        cut: 0,
    }
}

/// Which variants are run: nothing fixed, all false fixed, both again for each share of the profiler's time that is
/// left out, then two for each site that is simulated.
struct Plan {
    variants: Vec<Variant>,
    /// Subject, variant with only it, variant with all but it (of a false site).
    singles: Vec<(usize, usize, Option<usize>)>,
    left_out: usize,
}

/// Percent of the profiler's estimated time that is left out, and of the time around removed calls that goes with them:
/// the estimates, then the ends of their range.
const ALONE: [(i64, i64); 4] = [(100, 100), (0, 0), (200, 0), (200, 200)];
const FIRST_SINGLE: usize = 2 + 2 * ALONE.len();

impl Plan {
    fn new(program: &Program, subjects: &[Subject], all: &[Bounds]) -> Self {
        let base: Vec<Fix> = subjects.iter().map(|s| if s.assumed { s.fix } else { Fix::Keep }).collect();
        let counted = |s: &Subject| s.counted || s.assumed;
        let joint: Vec<Fix> = subjects.iter().map(|s| if counted(s) { s.fix } else { Fix::Keep }).collect();
        let variant = |fixes: &[Fix], (left_out, around)| Variant {
            fixes: fixes.to_vec(),
            left_out,
            around,
            usual: false,
        };
        const CAPTURED: (i64, i64) = (0, 100);
        let mut variants = vec![variant(&base, CAPTURED), variant(&joint, CAPTURED)];
        variants.extend(ALONE.iter().flat_map(|&p| [variant(&base, p), variant(&joint, p)]));
        let mut wanted: Vec<usize> =
            (0..subjects.len()).filter(|&i| subjects[i].fix != Fix::Keep && !subjects[i].assumed).collect();
        // False sites first, then by what they can give at most.
        let order = |&i: &usize| (!subjects[i].counted, std::cmp::Reverse(all[i].high()), &subjects[i].key);
        wanted.sort_by(|a, b| order(a).cmp(&order(b)));
        let cost = program.steps.len() + program.ops.len();
        let most = (BUDGET / cost.max(1)).clamp(FIRST_SINGLE, MOST_VARIANTS);
        let (mut singles, mut left_out) = (Vec::new(), 0);
        for i in wanted {
            let needs = if subjects[i].counted { 2 } else { 1 };
            if variants.len() + needs > most {
                left_out += 1;
                continue;
            }
            let mut only = base.clone();
            only[i] = subjects[i].fix;
            variants.push(variant(&only, CAPTURED));
            let alone = variants.len() - 1;
            let without = subjects[i].counted.then(|| {
                let mut all_but = joint.clone();
                all_but[i] = Fix::Keep;
                variants.push(variant(&all_but, CAPTURED));
                variants.len() - 1
            });
            singles.push((i, alone, without));
        }
        Self { variants, singles, left_out }
    }

    fn settle(&self, subjects: &[Subject], outcomes: &[Outcome], margin: Margin, prices: &mut Prices) {
        let (base, joint) = (&outcomes[0], &outcomes[1]);
        let clock = prices.clock;
        let most = prices.high;
        let (whole, mut cut) = within(base.end - joint.end, 0, most);
        prices.joint = clock.keeps(whole);
        for &(i, alone, without) in &self.singles {
            let (price, only) = (&mut prices.sites[i], &outcomes[alone]);
            // Left in alone, a wait takes over what others gave up: that is not its share.
            let share = without.map_or(0, |w| outcomes[w].end - joint.end);
            price.settle(base.end - only.end, share, clock, margin);
            price.moves_to = moved(subjects, i, base, only);
            cut = cut.max(price.cut);
        }
        // A whole is worth no less than its best part.
        let best = self.singles.iter().filter(|s| subjects[s.0].counted).map(|s| prices.sites[s.0].alone);
        let (best, short) = within(prices.joint, best.max().unwrap_or(0), i64::MAX);
        prices.joint = best;
        for price in &mut prices.sites {
            price.joint = price.joint.min(prices.joint);
        }
        prices.cut = cut.max(short);
        let (low, high) = margin.around(prices.joint, prices.joint, whole);
        (prices.low, prices.high) = (low, high.min(prices.recorded).max(prices.joint));
        prices.unsimulated = self.left_out;
        prices.unprofiled = Some(unprofiled(&outcomes[2..FIRST_SINGLE], clock, margin));
        let busy = joint.busy.iter().copied().max().unwrap_or(0);
        let bound =
            if busy as f64 >= GPU_BOUND * joint.end.max(1) as f64 { BoundBy::Gpu } else { BoundBy::Host };
        prices.bound_by = Some(bound);
    }
}

impl Price {
    /// Takes what a simulation says: what is saved with only this fixed, and its share of the whole (0 of a site that
    /// does not count). The range stays inside the bounds, and begins no higher than what is certain.
    fn settle(&mut self, alone: i64, share: i64, clock: Clock, margin: Margin) {
        let most = self.bounds.high();
        let (alone, cut) = within(alone, 0, most);
        let share = share.clamp(0, most);
        (self.alone, self.joint, self.cut) = (clock.keeps(alone), clock.keeps(share), cut);
        let (low, high) = margin.around(self.alone, self.alone.min(self.joint), alone.max(share));
        (self.low, self.high) = (low.min(self.bounds.low()), high.min(most));
        self.simulated = true;
    }
}

/// A value inside its limits, and how far it lay outside.
fn within(value: i64, low: i64, high: i64) -> (i64, i64) {
    let inside = value.max(low).min(high);
    (inside, (value - inside).abs())
}

/// From pairs of runs, nothing and all fixed, one pair for each share of the profiler's time left out.
fn unprofiled(pairs: &[Outcome], clock: Clock, margin: Margin) -> Unprofiled {
    let all: Vec<i64> = pairs.chunks_exact(2).map(|p| (p[0].end - p[1].end).max(0)).collect();
    let (least, most) = all.iter().fold((i64::MAX, 0), |(least, most), &ns| (ns.min(least), ns.max(most)));
    let (run, saved) = (pairs[0].end, clock.keeps(all[0]));
    let (low, high) = margin.around(saved, least, most);
    Unprofiled { run, saved, low, high: high.min(run) }
}

/// The site whose waits grew most when only site `i` was fixed, if they took over half of what it gave up or more.
fn moved(subjects: &[Subject], i: usize, base: &Outcome, only: &Outcome) -> Option<usize> {
    let given_up = base.waited.get(i)? - only.waited.get(i)?;
    let grown = |s: usize| only.waited[s] - base.waited[s];
    let most = (0..subjects.len())
        .filter(|&s| s != i)
        .max_by_key(|&s| (grown(s), std::cmp::Reverse(&subjects[s].key)))?;
    (given_up > 0 && grown(most) * 2 >= given_up).then_some(most)
}

/// Runs all variants, each whole on one thread.
fn simulate(program: &Program, variants: &[Variant], threads: usize) -> Vec<Outcome> {
    let workers = threads.clamp(1, variants.len().max(1));
    let mut outcomes = vec![Outcome::default(); variants.len()];
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..workers)
            .map(|worker| {
                scope.spawn(move || {
                    let mut scratch = Scratch::default();
                    let mine = (worker..variants.len()).step_by(workers);
                    mine.map(|v| (v, run(program, &variants[v], &mut scratch))).collect::<Vec<_>>()
                })
            })
            .collect();
        for worker in running {
            for (v, outcome) in worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
                outcomes[v] = outcome;
            }
        }
    });
    outcomes
}
