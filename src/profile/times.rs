//! Start and end of rows, in eight and a half bytes a row: two columns of whole times take sixteen.
//!
//! ```text
//!  rows    [since, length][since, length] … sixteen of them     32 bits each: since the mark, and for how long, in ns
//!  marks   └ start of the first of them                         64 bits
//!  whole   start and end of rows that 32 bits cannot say: two seconds or more from their mark, or four seconds long
//! ```
//! A start or end costs two loads, and a look into a map for a row kept whole. Any two times can be kept in
//! any order. Rows far from sorted by start, or pauses of seconds between all of them, take more room.

use rustc_hash::FxHashMap;
use std::marker::PhantomData;

/// Rows between marks.
pub const STRIDE: usize = 16;

/// Start and end of each row, in ns.
#[derive(Clone, Debug)]
pub struct Times<I> {
    rows: Vec<Row>,
    marks: Vec<i64>,
    whole: FxHashMap<usize, (i64, i64)>,
    of: PhantomData<fn(I)>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    /// Since its mark; negative for a row that began before the mark.
    since: i32,
    /// Or [`WHOLE`].
    length: u32,
}

/// The row is in `whole`.
const WHOLE: u32 = u32::MAX;

impl<I> Default for Times<I> {
    fn default() -> Self {
        Self { rows: Vec::new(), marks: Vec::new(), whole: FxHashMap::default(), of: PhantomData }
    }
}

impl<I: From<usize>> Times<I>
where
    usize: From<I>,
{
    pub fn with_capacity(count: usize) -> Self {
        let (rows, marks) = (Vec::with_capacity(count), Vec::with_capacity(count.div_ceil(STRIDE)));
        Self { rows, marks, ..Self::default() }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + Clone + use<I> {
        (0..self.len()).map(I::from)
    }

    pub fn iter(&self) -> impl Iterator<Item = (i64, i64)> + Clone {
        (0..self.len()).map(|at| self.at(at))
    }

    pub fn push(&mut self, start: i64, end: i64) -> I {
        let at = self.rows.len();
        if at.is_multiple_of(STRIDE) {
            self.marks.push(start);
        }
        let row = self.row(at, (start, end));
        self.rows.push(row);
        I::from(at)
    }

    pub fn set_last_end(&mut self, end: i64) {
        if let Some(at) = self.rows.len().checked_sub(1) {
            self.rows[at] = self.row(at, (self.at(at).0, end));
        }
    }

    fn row(&mut self, at: usize, (start, end): (i64, i64)) -> Row {
        let since = start.checked_sub(self.marks[at / STRIDE]).and_then(|ns| i32::try_from(ns).ok());
        let length = end.checked_sub(start).and_then(|ns| u32::try_from(ns).ok()).filter(|ns| *ns != WHOLE);
        if let (Some(since), Some(length)) = (since, length) {
            return Row { since, length };
        }
        self.whole.insert(at, (start, end));
        Row { since: 0, length: WHOLE }
    }

    #[inline]
    fn at(&self, at: usize) -> (i64, i64) {
        let row = self.rows[at];
        if row.length == WHOLE {
            return self.in_full(at);
        }
        let start = self.marks[at / STRIDE] + i64::from(row.since);
        (start, start + i64::from(row.length))
    }

    #[cold]
    fn in_full(&self, at: usize) -> (i64, i64) {
        self.whole[&at]
    }

    #[inline]
    pub fn get(&self, id: I) -> (i64, i64) {
        self.at(id.into())
    }

    #[inline]
    pub fn start(&self, id: I) -> i64 {
        self.get(id).0
    }

    #[inline]
    pub fn end(&self, id: I) -> i64 {
        self.get(id).1
    }

    #[inline]
    pub fn length(&self, id: I) -> i64 {
        let (start, end) = self.get(id);
        end - start
    }

    /// Upper bound of all lengths together, in ns: rows not in `whole` count as the longest that fits.
    pub fn total_at_most(&self) -> i64 {
        let whole = |sum: i64, row: &(i64, i64)| sum.saturating_add(row.1.saturating_sub(row.0));
        self.whole.values().fold(self.len() as i64 * i64::from(WHOLE), whole)
    }

    /// The first row that starts at `from` or later, of rows sorted by start.
    pub fn first_from(&self, from: i64) -> usize {
        let marked = self.marks.partition_point(|&mark| mark < from);
        let near = marked.saturating_sub(1) * STRIDE..self.len().min(marked * STRIDE);
        near.start + near.take_while(|&at| self.at(at).0 < from).count()
    }

    /// Start of every [`STRIDE`]-th row.
    pub fn marks(&self) -> &[i64] {
        &self.marks
    }

    pub fn shrink(&mut self) {
        self.rows.shrink_to_fit();
        self.marks.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    proptest! {
        /// Whatever times: neighbours, pauses of centuries, rows out of order or that end before they begin.
        #[test]
        fn what_is_kept_comes_back(rows in vec((0u32..64, any::<i64>(), 0u32..64, any::<i64>()), 0..100), last in any::<i64>()) {
            let near = |bits: u32, value: i64| value >> bits;
            let mut expected: Vec<(i64, i64)> =
                rows.iter().map(|&(a, start, b, length)| (near(a, start), near(a, start).wrapping_add(near(b, length)))).collect();
            let mut times = Times::<usize>::default();
            for &(start, end) in &expected {
                times.push(start, end);
            }
            prop_assert_eq!(times.iter().collect::<Vec<_>>(), expected.clone());
            if let Some(row) = expected.last_mut() {
                row.1 = last;
            }
            times.set_last_end(last);
            prop_assert_eq!(times.iter().collect::<Vec<_>>(), expected.clone());
        }

        /// The first of sorted rows from any time on.
        #[test]
        fn sorted_rows_are_found_by_their_start(pauses in vec((0u32..40, any::<u32>()), 0..100), near in -3i64..3) {
            let mut times = Times::<usize>::default();
            let mut now = 0;
            for (bits, pause) in pauses {
                now += i64::from(pause) << 8 >> bits;
                times.push(now, now);
            }
            let starts: Vec<i64> = times.iter().map(|row| row.0).collect();
            for from in starts.iter().map(|start| start + near) {
                prop_assert_eq!(times.first_from(from), starts.partition_point(|&start| start < from));
            }
        }
    }
}
