//! The iterations of a long loop that are simulated: evenly spread, some of them tell what all would.
//!
//! ```text
//!  recorded    load  1 2 3 4 5 6 7 8 9 … 9993 … 9998 9999  validate
//!  simulated   load  1 2 3 ──── 7 8 9 ── … ──── 9998 9999  validate        stretches of as many iterations each
//! ```
//! After a stretch a run goes on as if the next one followed at once: a step's times follow from the steps
//! before it, so nothing has to be made up. The loop's result is scaled by the recorded time of its simulated
//! part. Steps outside the loop are all simulated. A run costs at most [`STEPS`] of the loop. Skipped steps
//! are not kept: ops issued there count as done.

use super::issue::Steps;
use super::step::StepIx;
use crate::iterations::Iterations;
use crate::profile::calls::Calls;
use crate::profile::ids::ThreadIx;
use std::ops::Range;

/// Steps of a loop that are simulated, of at least twice as many: a run over them takes two milliseconds.
pub const STEPS: usize = 200_000;
/// Stretches that the steps are divided into: a run's changes are seen at so many moments.
const STRETCHES: usize = 16;

#[derive(Default)]
pub struct Sample {
    left_out: Vec<LeftOut>,
    /// Simulated iterations; `None` if all are.
    pub count: Option<u64>,
    /// Recorded time of the loop's simulated part, and of the loop.
    time: (i64, i64),
}

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

pub struct Loop<'a> {
    pub iterations: &'a Iterations,
    pub thread: Option<ThreadIx>,
    /// Steps to simulate, of at least twice as many.
    pub steps: usize,
}

impl<'a> Loop<'a> {
    pub fn new(calls: &Calls, iterations: &'a Iterations, steps: usize) -> Self {
        Self { iterations, thread: calls.threads.binary_search(&iterations.tid).ok(), steps }
    }

    fn first_step(&self, calls: &Calls, steps: &Steps, iteration: usize) -> Option<StepIx> {
        let (own, time) = (&calls.by_thread[self.thread?], self.iterations.spans.get(iteration)?.0);
        let from = own.partition_point(|&call| calls.start(call) < time);
        own[from..].iter().find_map(|&call| steps.of(call))
    }

    pub(super) fn laps(&self, calls: &Calls, steps: &Steps) -> Option<Laps> {
        let count = self.iterations.spans.len().checked_sub(1)?;
        let (first, last) = (self.first_step(calls, steps, 0)?, self.first_step(calls, steps, count)?);
        Some(Laps { first, last, count: count as i64 }).filter(|laps| laps.first < laps.last)
    }

    /// Chooses iterations with about `self.steps` steps, if the loop has at least twice as many.
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

/// Whether each of some ascending places is in one of these stretches.
pub fn inside(stretches: &[Range<usize>]) -> impl FnMut(usize) -> bool {
    let mut stretches = stretches.iter().peekable();
    move |at| {
        while stretches.next_if(|places| places.end <= at).is_some() {}
        stretches.peek().is_some_and(|places| places.start <= at)
    }
}

impl Sample {
    pub(super) fn is_whole(&self) -> bool {
        self.left_out.is_empty()
    }

    pub(super) fn stretches(&self, steps: usize) -> Vec<(Range<usize>, i64)> {
        let ends = self.left_out.iter().map(|left| left.steps.start).chain([steps]);
        let begins = self.left_out.iter().map(|left| (left.steps.end, left.ns));
        [(0, 0)].into_iter().chain(begins).zip(ends).map(|((from, ns), to)| (from..to, ns)).collect()
    }

    /// Scales a result of the loop's simulated part to the whole loop.
    pub fn whole(&self, simulated: i64) -> i64 {
        let (part, all) = self.time;
        let whole = || (i128::from(simulated) * i128::from(all) / i128::from(part)) as i64;
        if part > 0 { whole() } else { simulated }
    }
}
