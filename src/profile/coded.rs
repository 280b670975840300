//! A column with few distinct values: each row has a code of two bytes, or four once two do not suffice.
//!
//! ```text
//!  codes    0 1 2 0 1 2 0 1 3 …        a row each
//!  values   [stream 7, gemm, 64 blocks][stream 7, relu, 8 blocks][stream 14, copy of 4 bytes] …
//! ```

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;
use std::marker::PhantomData;

pub struct Codes<I> {
    short: Vec<u16>,
    /// All codes, once one does not fit 16 bits.
    long: Vec<u32>,
    of: PhantomData<fn(I)>,
}

impl<I> Default for Codes<I> {
    fn default() -> Self {
        Self { short: Vec::new(), long: Vec::new(), of: PhantomData }
    }
}

impl<I> Codes<I>
where
    usize: From<I>,
{
    pub fn with_capacity(count: usize) -> Self {
        Self { short: Vec::with_capacity(count), ..Self::default() }
    }

    #[inline]
    pub fn push(&mut self, code: u32) {
        match u16::try_from(code) {
            Ok(code) if self.long.is_empty() => self.short.push(code),
            _ => self.push_long(code),
        }
    }

    fn push_long(&mut self, code: u32) {
        self.long.extend(std::mem::take(&mut self.short).into_iter().map(u32::from));
        self.long.push(code);
    }

    #[inline]
    pub fn get(&self, id: I) -> u32 {
        let at = usize::from(id);
        self.short.get(at).map_or_else(|| self.long[at], |&code| u32::from(code))
    }

    pub fn shrink(&mut self) {
        self.short.shrink_to_fit();
        self.long.shrink_to_fit();
    }
}

/// Values by their codes, which count up in order of first appearance.
pub type Dictionary<T> = IndexSet<T, FxBuildHasher>;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::{ProptestConfig, prop_assert_eq, proptest};

    proptest! {
        // Each case has 65,500 values and more.
        #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

        /// Also where more values than two bytes can tell appear, at whatever row.
        #[test]
        fn rows_have_the_value_that_they_were_given(few in vec(0u64..9, 0..50), many in 65_500u64..65_600, more in vec(0u64..99_999, 0..50)) {
            let (mut codes, mut values) = (Codes::<usize>::default(), Dictionary::default());
            let rows: Vec<u64> = few.into_iter().chain(0..many).chain(more).collect();
            for &row in &rows {
                codes.push(values.insert_full(row).0 as u32);
            }
            codes.shrink();
            let kept: Vec<u64> = (0..rows.len()).map(|at| values[codes.get(at) as usize]).collect();
            prop_assert_eq!(kept, rows);
        }
    }
}
