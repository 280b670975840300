//! Which iterations of a long loop are simulated: some of them, evenly spread, tell what all would.
//!
//! ```text
//!  recorded    load  1 2 3 4 5 6 7 8 9 … 9993 … 9998 9999  validate
//!  simulated   load  1 2 3 ──── 7 8 9 ── … ──── 9998 9999  validate        stretches of as many iterations each
//! ```
//! A run goes on after a stretch as if the next one followed at once: a step's times are told by what came before it, so
//! nothing has to be made up. What the loop comes to stands for all of it, in proportion to the recorded time of what
//! was simulated. What lies outside the loop is simulated whole. Costs nothing; a run no more than [`STEPS`] of the loop. What is
//! passed over is not kept either: what was issued there counts as done.

use super::issue::Steps;
use super::step::StepIx;
use crate::iterations::Iterations;
use crate::profile::calls::Calls;
use crate::profile::ids::ThreadIx;
use std::ops::Range;

/// Steps of a loop that are simulated, of twice as many or more: a run over them takes two milliseconds.
pub const STEPS: usize = 200_000;
/// Into how many stretches they are divided: whatever changes in the course of a run is seen at so many of its moments.
const STRETCHES: usize = 16;

/// What runs pass over; of most captures nothing.
#[derive(Default)]
pub struct Sample {
    left_out: Vec<LeftOut>,
    /// How many iterations are simulated, where some are not.
    pub count: Option<u64>,
    /// Recorded time of what is simulated of the loop, and of all of it.
    time: (i64, i64),
}

/// Steps of whole iterations, and their recorded time.
struct LeftOut {
    steps: Range<usize>,
    ns: i64,
}

/// From the start of the first iteration to the start of the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Laps {
    pub(in crate::cost) first: StepIx,
    pub(in crate::cost) last: StepIx,
    pub(in crate::cost) count: i64,
}

/// The program's loop.
pub struct Loop<'a> {
    /// Its iterations.
    pub iterations: &'a Iterations,
    /// The thread that runs it, where it called anything.
    pub thread: Option<ThreadIx>,
    /// How many of its steps are simulated, of twice as many or more.
    pub steps: usize,
}

impl<'a> Loop<'a> {
    /// Iterations of a capture.
    pub fn new(calls: &Calls, iterations: &'a Iterations, steps: usize) -> Self {
        Self { iterations, thread: calls.threads.binary_search(&iterations.tid).ok(), steps }
    }

    /// Its first step from the start of an iteration on.
    fn first_step(&self, calls: &Calls, steps: &Steps, iteration: usize) -> Option<StepIx> {
        let (own, time) = (&calls.by_thread[self.thread?], self.iterations.spans.get(iteration)?.0);
        let from = own.partition_point(|&call| calls.start(call) < time);
        own[from..].iter().find_map(|&call| steps.of(call))
    }

    /// The first steps of its first and of its last iteration.
    pub(super) fn laps(&self, calls: &Calls, steps: &Steps) -> Option<Laps> {
        let count = self.iterations.spans.len().checked_sub(1)?;
        let (first, last) = (self.first_step(calls, steps, 0)?, self.first_step(calls, steps, count)?);
        Some(Laps { first, last, count: count as i64 }).filter(|laps| laps.first < laps.last)
    }

    /// Chooses iterations of a loop of at least twice so many steps that have about so many.
    pub(super) fn sample(&self, calls: &Calls, steps: &Steps, laps: Laps) -> Sample {
        let (spans, count) = (&self.iterations.spans, laps.count as usize);
        let length = (count * self.steps / (laps.last.index() - laps.first.index())).div_ceil(STRETCHES);
        if 2 * length * STRETCHES > count {
            return Sample::default();
        }
        let begin = |stretch: usize| stretch * (count - length) / (STRETCHES - 1);
        let first = |at: usize| self.first_step(calls, steps, at).map(StepIx::index);
        let between = (1..STRETCHES).filter_map(|stretch| {
            let (from, to) = (begin(stretch - 1) + length, begin(stretch));
            Some(LeftOut { steps: first(from)?..first(to)?, ns: spans[to].0 - spans[from].0 })
        });
        let left_out: Vec<LeftOut> = between.collect();
        let (all, left) = (spans[count].0 - spans[0].0, left_out.iter().map(|left| left.ns).sum::<i64>());
        Sample { left_out, count: Some((length * STRETCHES) as u64), time: (all - left, all) }
    }
}

/// Whether each of some places, asked for in ascending order, is in one of these stretches.
pub fn inside(stretches: &[Range<usize>]) -> impl FnMut(usize) -> bool {
    let mut stretches = stretches.iter().peekable();
    move |at| {
        while stretches.next_if(|places| places.end <= at).is_some() {}
        stretches.peek().is_some_and(|places| places.start <= at)
    }
}

impl Sample {
    /// Whether nothing is left out.
    pub(super) fn is_whole(&self) -> bool {
        self.left_out.is_empty()
    }

    /// The steps that are simulated, of so many, each stretch with the recorded time that was left out before it.
    pub(super) fn stretches(&self, steps: usize) -> Vec<(Range<usize>, i64)> {
        let ends = self.left_out.iter().map(|left| left.steps.start).chain([steps]);
        let begins = self.left_out.iter().map(|left| (left.steps.end, left.ns));
        [(0, 0)].into_iter().chain(begins).zip(ends).map(|((from, ns), to)| (from..to, ns)).collect()
    }

    /// What comes to this in the simulated part of the loop, in all of it.
    pub fn whole(&self, simulated: i64) -> i64 {
        let (part, all) = self.time;
        let whole = || (i128::from(simulated) * i128::from(all) / i128::from(part)) as i64;
        if part > 0 { whole() } else { simulated }
    }
}
