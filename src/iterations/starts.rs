//! Finds where turns begin: their anchor may lie anywhere in them.
//!
//! ```text
//!  sequence   w w u a b c d s a b c d s a b c d s v
//!  anchor d               |         |         |
//!  before           . a b c d   s a b c d            three alike, and the fourth is not: the first turn begins with a
//! ```
//! As far as the sequence after a run continues like the beginning of a turn, turns may as well begin later.
//! Of all such places the first after a wait is taken, else the earliest. A wait after an H2D copy, or before
//! another wait, does not count.
//!
//! ```text
//!  run        s [a b c s][a b c s][a b c s] v      or [s a b c][s a b c][s a b c] s v
//! ```
//! Cost: linear in the sequence.

use super::found::{Finder, Kind, Loop, SAMPLE, Stretch, Turn, Typical};

impl Finder<'_> {
    /// Moves turns from their anchors to their beginnings, and adds incomplete turns: the first of a run, if
    /// its anchor has another symbol before it, or the last. `others`: turns of other loops.
    pub(super) fn set_starts(&mut self, found: &mut Loop, others: &[Stretch]) {
        let turns = std::mem::take(&mut found.turns);
        let len = found.typical.len;
        let (runs, back) = (runs(&turns), self.steps_back(&turns, len, others));
        let end = self.symbols.len();
        let moved = |at: usize| at.saturating_add_signed(-back).min(end);
        // Extra events of some turns may also end the last turn of a run.
        let tails = turns.iter().filter(|turn| turn.goes_on && turn.to - turn.from > len).take(SAMPLE);
        let tails: Vec<Stretch> = tails.map(|turn| (moved(turn.from + len), moved(turn.to))).collect();
        self.needs(&found.typical);
        for (i, &(first, last)) in runs.iter().enumerate() {
            let floor =
                end_before(others, turns[first].from).max(found.turns.last().map_or(0, |turn| turn.to));
            let next = runs.get(i + 1).map_or(end, |next| moved(turns[next.0].from));
            let ceiling = start_after(others, turns[first].from).min(next);
            let mut start = moved(turns[first].from).max(floor);
            // Work before the loop may lie between its first anchor and the start of the next turn.
            let (until, whole) = (moved(turns[first].to), turns[first].goes_on);
            if whole
                && until > start + len
                && self.compare(until - len, until, len).0 > self.compare(start, until, len).0
            {
                start = until - len;
            }
            // The first of all may lack its beginning.
            let nth_before =
                |n: usize| (start.saturating_sub(n * len).max(floor), start.saturating_sub((n - 1) * len));
            let lacking = (1..).map_while(|n| {
                let (from, to) = nth_before(n);
                (from < to && self.compare(from, to, len).0 >= self.alike).then_some((from, to))
            });
            let mut lacking: Vec<Stretch> = lacking.collect();
            lacking.reverse();
            found.turns.extend(lacking.into_iter().map(|(from, to)| Turn { from, to, goes_on: true }));
            for turn in &turns[first..=last] {
                let from = moved(turn.from).max(start);
                let to = if turn.goes_on { moved(turn.to) } else { (from + len).min(ceiling) };
                found.turns.push(Turn { from, to: to.max(from), goes_on: turn.goes_on });
            }
            while let Some(turn) = found.turns.last_mut() {
                let (from, to) = (turn.to, (turn.to + len).min(ceiling));
                if from >= to || self.compare(from, to, len).0 < self.alike {
                    let common = tails.iter().map(|tail| self.alike(*tail, (from, ceiling.max(from))));
                    turn.to += common.max().filter(|_| !turn.goes_on).unwrap_or(0);
                    break;
                }
                turn.goes_on = true;
                found.turns.push(Turn { from, to, goes_on: false });
            }
        }
        self.needs(&Typical::default());
    }

    /// Length of the common prefix of two stretches.
    fn alike(&self, one: Stretch, other: Stretch) -> usize {
        let (one, other) = (&self.symbols[one.0..one.1], &self.symbols[other.0..other.1]);
        one.iter().zip(other).take_while(|(a, b)| a == b).count()
    }

    /// Events from a turn's beginning to its anchor; negative if the anchor comes first.
    fn steps_back(&self, turns: &[Turn], len: usize, others: &[Stretch]) -> isize {
        let runs = runs(turns);
        let before = self.before(turns, len);
        // The symbol `back` events before the anchor, wrapping around the turn.
        let typical = |back: isize| before.get((back - 1).rem_euclid(len as isize) as usize);
        let most = |agree: usize| 2 * agree > runs.len();
        let floor = |first: usize| {
            let own = first.checked_sub(1).map_or(0, |i| turns[i].to);
            own.max(end_before(others, turns[first].from))
        };
        let firsts: Vec<Stretch> = runs.iter().map(|run| (floor(run.0), turns[run.0].from)).collect();
        let begins = |back: &usize| {
            let same = |at: usize| typical(*back as isize) == Some(&self.symbols[at - back]);
            most(firsts.iter().filter(|&&(floor, at)| at >= floor + back && same(at)).count())
        };
        let back = (1..len).take_while(begins).count() as isize;
        let goes_on = |more: &isize| {
            let ends = |run: &Stretch| (turns[run.1].from + len).checked_add_signed(more - back);
            let same = |run: &&Stretch| ends(run).and_then(|at| self.symbols.get(at)) == typical(back - more);
            most(runs.iter().filter(same).count())
        };
        let more = (0..len as isize - 1).take_while(goes_on).count() as isize;
        let kind = |back: isize| typical(back).map(|&symbol| self.kinds[symbol as usize]);
        let after_wait = |at: &isize| {
            let [first, last, before] = [0, 1, 2].map(|back| kind(at + back));
            last == Some(Kind::Wait) && first != last && before != Some(Kind::Upload)
        };
        (back - more..=back).rev().find(after_wait).unwrap_or(back)
    }

    /// Symbols one, two, … events before the anchor, in most turns that follow another.
    fn before(&self, turns: &[Turn], len: usize) -> Vec<u32> {
        let following = turns.windows(2).filter(|pair| pair[0].to == pair[1].from).map(|pair| pair[1].from);
        let following: Vec<usize> = following.collect();
        let every = following.len().div_ceil(SAMPLE).max(1);
        let common = |back: usize| {
            let here = |&from: &usize| from.checked_sub(back).map(|at| self.symbols[at]);
            let mut list: Vec<u32> = following.iter().step_by(every).filter_map(here).collect();
            list.sort_unstable();
            let common = list.chunk_by(|a, b| a == b).max_by_key(|same| same.len())?;
            (2 * common.len() >= list.len()).then_some(common[0])
        };
        (1..=len).map_while(common).collect()
    }
}

/// First and last of turns that follow one another.
fn runs(turns: &[Turn]) -> Vec<(usize, usize)> {
    let mut runs = Vec::new();
    let mut first = 0;
    for i in 0..turns.len() {
        if turns.get(i + 1).is_none_or(|next| turns[i].to != next.from) {
            runs.push((first, i));
            first = i + 1;
        }
    }
    runs
}

fn end_before(stretches: &[Stretch], at: usize) -> usize {
    let next = stretches.partition_point(|s| s.0 < at);
    next.checked_sub(1).map_or(0, |i| stretches[i].1)
}

fn start_after(stretches: &[Stretch], at: usize) -> usize {
    let next = stretches.partition_point(|s| s.0 < at);
    stretches.get(next).map_or(usize::MAX, |s| s.0)
}
