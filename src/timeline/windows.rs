//! Windows in which every span is kept: around the example waits, then outwards while the budget lasts.
//!
//! ```text
//!  events   ¦ ¦¦¦ ¦  ¦¦¦¦¦     ¦  ¦¦¦¦¦¦¦¦ ¦    ¦
//!  cells   |     |     |          |    |      |      as many events each: a burst costs no more than a pause
//!  example          ▲
//!  first         ├─────┤                             the cells of the examples,
//!  then    ├────────────────┤                        then one more on either side of each window, and so on
//! ```

/// Cells per budget: more cells follow the examples closer, fewer grow faster.
const CELLS_IN_BUDGET: usize = 512;
/// Cells kept at each end of an example that covers more: a long wait's awaited work is at its end.
const CELLS_OF_EXAMPLE: usize = 4;

/// Time windows that hold at most about `budget` of the events, disjoint, ascending, within `from..=to`.
///
/// `first` and `second`: ascending starts of all events. `examples`: spans that must be inside, most
/// interesting first. Linear in the events.
pub(super) fn choose(
    (first, second): (&[i64], &[i64]),
    examples: &[(i64, i64)],
    (from, to): (i64, i64),
    budget: usize,
) -> Vec<(i64, i64)> {
    let total = first.len() + second.len();
    if total <= budget {
        return vec![(from, to)];
    }
    let size = (budget / CELLS_IN_BUDGET).max(1);
    let edges = edges(first, second, size);
    let mut kept = vec![false; edges.len()];
    let mut left = budget / size;
    let cell = |time: i64| edges.partition_point(|&e| e <= time).saturating_sub(1);
    for &(start, end) in examples {
        let (a, b) = (cell(start).saturating_sub(1), (cell(end) + 1).min(edges.len() - 1));
        let inner = |c: &usize| *c < a + CELLS_OF_EXAMPLE || *c + CELLS_OF_EXAMPLE > b;
        for c in (a..=b).filter(inner) {
            if left > 0 && !kept[c] {
                kept[c] = true;
                left -= 1;
            }
        }
    }
    if !kept.contains(&true) {
        kept[0] = true;
    }
    grow(&mut kept, left);
    let mut windows: Vec<(i64, i64)> = Vec::new();
    for c in (0..kept.len()).filter(|&c| kept[c]) {
        let start = if c == 0 { from } else { edges[c] };
        let end = edges.get(c + 1).copied().unwrap_or(to).max(start);
        match windows.last_mut() {
            Some(last) if last.1 == start => last.1 = end,
            _ => windows.push((start, end)),
        }
    }
    windows
}

fn edges(first: &[i64], second: &[i64], size: usize) -> Vec<i64> {
    // Two ascending runs: sorting merges them.
    let mut starts = [first, second].concat();
    starts.sort();
    let mut edges: Vec<i64> = starts.into_iter().step_by(size).collect();
    edges.dedup();
    edges
}

/// Adds a cell at both ends of every run, repeatedly, until `left` is used or all cells are kept.
fn grow(kept: &mut [bool], mut left: usize) {
    while left > 0 {
        let at_edge = |c: usize| !kept[c] && ((c > 0 && kept[c - 1]) || (c + 1 < kept.len() && kept[c + 1]));
        let next: Vec<usize> = (0..kept.len()).filter(|&c| at_edge(c)).take(left).collect();
        if next.is_empty() {
            return;
        }
        left -= next.len();
        next.into_iter().for_each(|c| kept[c] = true);
    }
}

/// For spans in start order: whether each touches a window.
pub(super) struct Touching<'a> {
    windows: &'a [(i64, i64)],
    at: usize,
}

impl<'a> Touching<'a> {
    pub fn new(windows: &'a [(i64, i64)]) -> Self {
        Self { windows, at: 0 }
    }

    pub fn touches(&mut self, start: i64, end: i64) -> bool {
        while self.windows.get(self.at).is_some_and(|w| w.1 < start) {
            self.at += 1;
        }
        self.windows.get(self.at).is_some_and(|w| w.0 <= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_kept_whole() {
        assert_eq!(choose((&[1, 2], &[3]), &[], (0, 9), 3), [(0, 9)]);
    }

    #[test]
    fn windows_grow_around_examples() {
        let events: Vec<i64> = (0..10_000).collect();
        let windows = choose((&events, &[]), &[(7_000, 7_001), (2_000, 2_010)], (0, 10_000), 1_024);
        assert_eq!(windows.len(), 2);
        let kept: i64 = windows.iter().map(|w| w.1 - w.0).sum();
        assert!((1_000..=1_024).contains(&kept), "{windows:?}");
        assert!(windows[0].0 < 2_000 && windows[0].1 > 2_010 && windows[1].0 < 7_000 && windows[1].1 > 7_001);
    }

    #[test]
    fn a_long_example_keeps_its_ends() {
        let events: Vec<i64> = (0..100_000).collect();
        let windows =
            choose((&events[..50_000], &events[50_000..]), &[(10_000, 90_000)], (0, 100_000), 1_024);
        let holds = |t: i64| windows.iter().any(|w| w.0 <= t && t < w.1);
        assert!(holds(10_000) && holds(90_000) && !holds(50_000), "{windows:?}");
    }

    #[test]
    fn spans_that_reach_into_a_window_touch_it() {
        let windows = [(10, 20), (40, 50)];
        let mut touching = Touching::new(&windows);
        let spans = [(0, 9), (1, 10), (15, 16), (20, 22), (21, 39), (30, 60), (51, 70)];
        let kept: Vec<bool> = spans.iter().map(|s| touching.touches(s.0, s.1)).collect();
        assert_eq!(kept, [false, true, true, true, false, true, false]);
    }
}
