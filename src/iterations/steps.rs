//! The loop around the optimizer's steps: of nested loops the program's own.
//!
//! ```text
//!  sequence     e e e e f b S f b S f b S f b S   e e e e f b S f b S f b S f b S   …     e: environment, S: optimizer
//!  gaps                     2     2     2         6           2     2     2               most of all in the long ones
//!  iterations  [0-----------------------------]  [1-----------------------------]  …
//!
//!  sequence     f b S   f b S   f b g S   f b S   f b S   f b g S   …                     g: a grid, every third step
//!  gaps              2       2         3       2       2            in all of them
//!  iterations  [0----] [1----] [2------] [3----] [4----] [5------]  …
//! ```
//! A *gap* is the number of other events between two kernels of the optimizer. Summing gaps from the longest
//! down, the gap that reaches half of the total is typical, and gaps of at least half its length separate
//! iterations. These gaps are the work between phases of steps, where that is most of the program's work,
//! else the work between steps. Gaps inside a step (clipping), or between steps of a phase, are shorter. The
//! longest gaps are left out if they separate fewer turns than make a loop.
//!
//! A loop found otherwise stays if each of its turns holds one of these steps. Else these iterations are the
//! loop, if nearly all are alike and cover at least half of the process's events. They may be less alike than
//! turns found by likeness alone: every step may take another way through the model.

use super::found::{FEWEST, Finder, Kind, Loop, Turn};

const ALIKE: f64 = 0.5;
/// Steps of ten that must have a turn of their own.
const MOST: usize = 9;

impl Finder<'_> {
    /// The loop around the optimizer's steps, and loops beside it; `None` if one of `known` is that loop.
    pub(super) fn around_steps(&mut self, known: &[Loop]) -> Option<Vec<Loop>> {
        let steps = self.steps()?;
        let one_each = |turns: &[Turn]| {
            turns.len() == steps.len() && turns.iter().zip(&steps).all(|(t, &at)| t.from <= at && at < t.to)
        };
        if known.iter().any(|found| one_each(&found.turns)) {
            return None;
        }
        self.alike = ALIKE;
        let found = self.turns(&steps, &[(0, self.symbols.len())]);
        let loops = (found.turns.len() >= FEWEST).then(|| self.with_others(found))?;
        let turns = &loops[0].turns;
        let covered: usize = turns.iter().map(|turn| turn.to - turn.from).sum();
        (10 * turns.len() >= MOST * steps.len() && 2 * covered >= self.symbols.len()).then_some(loops)
    }

    /// The optimizer's first kernel in each iteration.
    fn steps(&self) -> Option<Vec<usize>> {
        let is_step = |at: &usize| self.kinds[self.symbols[*at] as usize] == Kind::Step;
        let all: Vec<usize> = (0..self.symbols.len()).filter(is_step).collect();
        let mut gaps: Vec<usize> = all.windows(2).map(|pair| pair[1] - pair[0] - 1).collect();
        gaps.sort_unstable_by(|a, b| b.cmp(a));
        let mut longest = 0;
        loop {
            let half = gaps[longest..].iter().sum::<usize>().div_ceil(2);
            let mut sum = 0;
            let typical = *gaps[longest..].iter().filter(|&&gap| gap > 0).find(|&&gap| {
                sum += gap;
                sum >= half
            })?;
            let parts = |gap: usize| 2 * gap >= typical;
            longest = gaps.partition_point(|&gap| parts(gap));
            if longest + 1 >= FEWEST {
                let apart = |pair: &[usize]| parts(pair[1] - pair[0] - 1).then_some(pair[1]);
                return Some(all.iter().take(1).copied().chain(all.windows(2).filter_map(apart)).collect());
            }
        }
    }
}
