//! Busy share of each time slice, drawn where single spans are too small or not kept.

use crate::model::timeline::Packed;

/// Time slices of equal length over `from..from + span`.
pub(super) struct Bins {
    from: i64,
    span: i64,
    /// Busy time of each slice that spans cover in part, in ns.
    part: Vec<i64>,
    /// Change, from the slice before, of the number of spans that cover a slice whole.
    whole: Vec<i32>,
}

impl Bins {
    pub fn new(from: i64, span: i64, count: usize) -> Self {
        Self { from, span: span.max(1), part: vec![0; count], whole: vec![0; count + 1] }
    }

    fn edge(&self, bin: usize) -> i64 {
        (i128::from(self.span) * bin as i128 / self.part.len() as i128) as i64
    }

    /// The last slice whose edge, rounded down, is no later.
    fn bin(&self, time: i64) -> usize {
        let count = self.part.len();
        let bin = ((i128::from(time) + 1) * count as i128 - 1) / i128::from(self.span);
        (bin as usize).min(count - 1)
    }

    /// Adds a span in constant time. Parts outside are cut off.
    pub fn add(&mut self, start: i64, end: i64) {
        let from = start.saturating_sub(self.from).clamp(0, self.span);
        let to = end.saturating_sub(self.from).clamp(0, self.span);
        if from >= self.span || (to <= from && start != end) {
            return;
        }
        let (first, last) = (self.bin(from), self.bin(to.max(from + 1) - 1));
        // A span of no length still shows.
        let to = to.max(from + 1);
        if first == last {
            self.busy(first, to - from);
            return;
        }
        self.busy(first, self.edge(first + 1) - from);
        self.busy(last, to - self.edge(last));
        self.whole[first + 1] += 1;
        self.whole[last] -= 1;
    }

    fn busy(&mut self, bin: usize, ns: i64) {
        self.part[bin] = self.part[bin].saturating_add(ns);
    }

    /// Each slice's busy share in 255ths, at least 1 where busy at all. A 0 or 255 is followed by the number
    /// of its further repetitions.
    pub fn pack(&self) -> Packed {
        let mut covering = 0i64;
        let level = |bin: usize| {
            covering += i64::from(self.whole[bin]);
            let width = (self.edge(bin + 1) - self.edge(bin)).max(1);
            let busy = if covering > 0 { width } else { self.part[bin].min(width) };
            let level = (i128::from(busy) * 255).div_euclid(i128::from(width)) as u8;
            if busy > 0 { level.max(1) } else { 0 }
        };
        let levels: Vec<u8> = (0..self.part.len()).map(level).collect();
        let is_end = |level: u8| matches!(level, 0 | 255);
        let mut packed = Packed::default();
        for run in levels.chunk_by(|a, b| a == b && is_end(*a)) {
            packed.push_byte(run[0]);
            if is_end(run[0]) {
                packed.push(run.len() as i64 - 1);
            }
        }
        packed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ```text
    ///  bins    |    |    |    |    |    |     of 10
    ///  spans     [-----------]     . [-----------
    ///           4           27    40 45
    /// ```
    #[test]
    fn a_bin_knows_how_much_of_it_was_busy() {
        let mut bins = Bins::new(100, 50, 5);
        bins.add(104, 127);
        bins.add(140, 140);
        bins.add(145, 900);
        bins.add(0, 90);
        // 6 of 10, all, 7 of 10, none, 6 of 10
        assert_eq!(bins.pack().bytes(), [153, 255, 0, 178, 0, 0, 153]);
    }

    #[test]
    fn runs_are_counted() {
        let mut bins = Bins::new(0, 4_000, 4_000);
        assert_eq!(bins.pack().bytes(), [0, 0x9f, 0x1f]);
        bins.add(1_000, 3_000);
        assert_eq!(bins.pack().bytes(), [0, 0xe7, 0x07, 255, 0xcf, 0x0f, 0, 0xe7, 0x07]);
    }

    #[test]
    fn damaged_times_do_no_harm() {
        let mut bins = Bins::new(i64::MIN / 2, i64::MAX, 3);
        bins.add(i64::MIN, i64::MAX);
        bins.add(i64::MAX, i64::MAX);
        bins.add(5, 3);
        assert_eq!(bins.pack().bytes()[0], 255);
    }
}
