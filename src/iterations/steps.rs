//! The loop around the optimizer's steps: of loops within loops the one that the program is.
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
//! A *gap* is how many other events lie between two kernels of the optimizer. Going from the longest down, the gap with
//! which half of all that lies in gaps is reached is typical, and gaps of at least half its length part iterations: what a
//! program does between phases of steps, where that is most of what it does, else what it does between steps. Gaps inside a
//! step (clipping), or between steps of a phase, are shorter. The longest gaps
//! are left out if they part fewer turns than make a loop.
//!
//! A loop found otherwise stands if each of its turns holds one of these steps. Else the iterations are these, if nearly all
//! are alike and they are at least half of what the process did. They may be less alike than turns that nothing but likeness
//! makes turns: every step may take another way through the model.

use super::found::{FEWEST, Finder, Kind, Loop, Turn};

/// Common symbols of most iterations and the typical one, over all of both.
const ALIKE: f64 = 0.5;
/// Steps that have a turn of their own, of ten.
const MOST: usize = 9;

impl Finder<'_> {
    /// The loop around the optimizer's steps, and those beside it; none where one of those `known` is it.
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

    /// The first of the optimizer's kernels of each iteration.
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
