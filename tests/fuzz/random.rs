//! Random numbers that a seed repeats (splitmix64).

use std::cell::Cell;

pub struct Random(Cell<u64>);

impl Random {
    /// The sequence of a seed; each target has its own.
    pub fn new(target: &str, seed: u64) -> Self {
        let name = target.bytes().fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
        Self(Cell::new(name ^ seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    }

    pub fn next(&self) -> u64 {
        let state = self.0.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.0.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `n`; 0 where there is none.
    pub fn below(&self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// True with probability 1 / `n`.
    pub fn one_in(&self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    pub fn byte(&self) -> u8 {
        self.next() as u8
    }

    /// A number at which arithmetic goes wrong, if anywhere.
    pub fn extreme(&self) -> i64 {
        let bits = 1_i64 << self.below(63);
        let fixed = [
            0,
            1,
            -1,
            i64::MAX,
            i64::MIN,
            i64::MAX - 1,
            i64::MAX / 4,
            -(i64::MAX / 4),
            u32::MAX.into(),
            i32::MAX.into(),
        ];
        match self.below(4) {
            0 => bits,
            1 => -bits,
            2 => self.next() as i64,
            _ => self.pick(&fixed),
        }
    }
}
