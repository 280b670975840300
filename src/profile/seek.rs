//! Searching sorted columns from where the last search ended.
//!
//! Waits, marks and ranges are looked up in time order, so the next answer is mostly a few steps on. A full
//! binary search over millions of rows would cost twenty cache misses.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Partition point of `0..len` for `before` (true, then false), searched from `from` in doubling steps.
pub fn seek(len: usize, from: &mut usize, before: impl Fn(usize) -> bool) -> usize {
    let start = (*from).min(len);
    let (mut low, mut high) = (0, len);
    let mut step = 1;
    if start < len && before(start) {
        low = start + 1;
        while low < high {
            let probe = (low + step).min(high) - 1;
            if !before(probe) {
                high = probe;
                break;
            }
            low = probe + 1;
            step *= 2;
        }
    } else {
        high = start;
        while low < high {
            let probe = high - step.min(high - low);
            if before(probe) {
                low = probe + 1;
                break;
            }
            high = probe;
            step *= 2;
        }
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *from = low;
    low
}

/// A remembered position, for look-ups through `&self`. Remembering changes the cost, never the answer.
#[derive(Default)]
pub struct Remembered(AtomicUsize);

impl Remembered {
    pub fn seek(&self, len: usize, before: impl Fn(usize) -> bool) -> usize {
        let mut from = self.0.load(Relaxed);
        let found = seek(len, &mut from, before);
        self.0.store(from, Relaxed);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeking_from_anywhere_finds_the_partition_point() {
        let times: Vec<i64> = (0..100).map(|i| i * i).collect();
        for from in [0, 1, 2, 37, 50, 98, 99, 100, 500] {
            for time in [-1, 0, 1, 2, 3, 2500, 2501, 9800, 9801, 9802] {
                let mut at = from;
                let expected = times.partition_point(|&t| t < time);
                assert_eq!(seek(times.len(), &mut at, |i| times[i] < time), expected, "{from} {time}");
                assert_eq!(at, expected);
            }
        }
        assert_eq!(seek(0, &mut 3, |_| true), 0);
    }
}
