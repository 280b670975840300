//! Which iterations of a long loop are simulated: some of them, evenly spread, tell what all would.
//!
//! ```text
//!  recorded    load  1 2 3 4 5 6 7 8 9 … 9993 … 9998 9999  validate
//!  simulated   load  1 2 3 ──── 7 8 9 ── … ──── 9998 9999  validate        stretches of as many iterations each
//! ```
//! A run goes on after a stretch as if the next one followed at once: a step's times are told by what came before it, so
//! nothing has to be made up. What the loop comes to stands for all of it, in proportion to the recorded time of what
//! was simulated. What lies outside the loop is simulated whole. Costs nothing; a run no more than [`STEPS`] of the loop.

use super::model::Program;
use super::step::StepIx;
use crate::iterations::Iterations;
use crate::profile::calls::Calls;
use crate::profile::ids::ThreadIx;
use crate::vocabulary::SiteIx;
use std::ops::Range;
use typed_index_collections::TiVec;

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

/// Whole iterations, their steps, and their recorded time.
struct LeftOut {
    iterations: Range<usize>,
    steps: Range<usize>,
    ns: i64,
}

impl Program {
    /// Chooses iterations of a loop of at least twice so many steps that have about so many.
    pub(super) fn sample(
        &mut self,
        calls: &Calls,
        iterations: &Iterations,
        thread: Option<ThreadIx>,
        steps: usize,
    ) {
        self.sample = Sample::default();
        // When ranks join a collective is asked of all that there are.
        let Some(laps) = self.laps.filter(|_| self.late.is_empty()) else { return };
        let (spans, count) = (&iterations.spans, iterations.spans.len() - 1);
        let length = (count * steps / (laps.last.index() - laps.first.index())).div_ceil(STRETCHES);
        if 2 * length * STRETCHES > count {
            return;
        }
        let begin = |stretch: usize| stretch * (count - length) / (STRETCHES - 1);
        let first = |at: usize| self.first_step(calls, thread, spans[at].0).map(StepIx::index);
        let between = (1..STRETCHES).filter_map(|stretch| {
            let (from, to) = (begin(stretch - 1) + length, begin(stretch));
            Some(LeftOut {
                iterations: from..to,
                steps: first(from)?..first(to)?,
                ns: spans[to].0 - spans[from].0,
            })
        });
        let left_out: Vec<LeftOut> = between.collect();
        let (all, left) = (spans[count].0 - spans[0].0, left_out.iter().map(|left| left.ns).sum::<i64>());
        self.sample = Sample { left_out, count: Some((length * STRETCHES) as u64), time: (all - left, all) };
    }

    /// How many steps and ops a run goes over.
    pub fn size(&self) -> usize {
        let op = |step: usize| match step < self.steps.len() {
            true => self.steps.get(StepIx::from(step)).first_op.index(),
            false => self.ops.len(),
        };
        let stretches = self.sample.stretches(self.steps.len());
        stretches.map(|(steps, _)| steps.len() + op(steps.end) - op(steps.start)).sum()
    }

    /// Whether runs come by each site.
    pub fn reached(&self) -> TiVec<SiteIx, bool> {
        let mut reached = TiVec::from(vec![self.sample.is_whole(); self.sites]);
        for at in self.sample.stretches(self.steps.len()).flat_map(|(steps, _)| steps).map(StepIx::from) {
            // What is kept in short is no site's.
            if let Some(site) = self.steps.short(at).is_none().then(|| self.steps.get(at).site).flatten() {
                reached[site] = true;
            }
        }
        reached
    }
}

impl Sample {
    /// Whether nothing is left out.
    fn is_whole(&self) -> bool {
        self.left_out.is_empty()
    }

    /// The steps that are simulated, of so many, each stretch with the recorded time that was left out before it.
    pub fn stretches(&self, steps: usize) -> impl Iterator<Item = (Range<usize>, i64)> {
        let ends = self.left_out.iter().map(|left| left.steps.start).chain([steps]);
        let begins = self.left_out.iter().map(|left| (left.steps.end, left.ns));
        [(0, 0)].into_iter().chain(begins).zip(ends).map(|((from, ns), to)| (from..to, ns))
    }

    /// Whether a step is simulated.
    pub fn holds(&self, step: StepIx) -> bool {
        let after = self.left_out.partition_point(|left| left.steps.end <= step.index());
        self.left_out.get(after).is_none_or(|left| step.index() < left.steps.start)
    }

    /// The iterations that are simulated, of so many, each stretch with the one before it.
    pub(super) fn iterations(&self, count: usize) -> Vec<Range<usize>> {
        let ends = self.left_out.iter().map(|left| left.iterations.start).chain([count]);
        let begins = self.left_out.iter().map(|left| left.iterations.end - 1);
        [0].into_iter().chain(begins).zip(ends).map(|(from, to)| from..to).collect()
    }

    /// What comes to this in the simulated part of the loop, in all of it.
    pub fn whole(&self, simulated: i64) -> i64 {
        let (part, all) = self.time;
        let whole = || (i128::from(simulated) * i128::from(all) / i128::from(part)) as i64;
        if part > 0 { whole() } else { simulated }
    }
}
