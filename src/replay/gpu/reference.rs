//! What the operands of a product hold, and what its result must be.
//!
//! Operands are views of one endless periodic sequence of pseudo-random values, so that any element of them, and by it
//! any element of a product, can be computed without holding a matrix:
//!
//! ```text
//!  memory   [v0 v1 v2 … v(P-1)][v0 v1 v2 … v(P-1)][v0 …        P prime: rows of no matrix repeat
//!                  [A, from element a ---------][B, from element b ----…
//!  A(row, column) = v((a + index of (row, column)) mod P)
//! ```

use crate::replay::product::{Compute, Element, Shape};
use half::{bf16, f16};
use std::sync::OnceLock;

/// Length of the sequence: prime, so that no leading dimension divides it.
pub const PERIOD: u64 = 1_000_003;

/// Value `index` of the sequence: evenly spread over (−1, 1), a multiple of the element's precision below 1, so that
/// it is exact in that type.
pub fn value(element: Element, index: u64) -> f64 {
    let steps = (1u64 << element.digits()) - 1;
    let random = mix(index % PERIOD);
    let magnitude = ((random >> 1) % (steps + 1)) as f64 / (steps + 1) as f64;
    if random & 1 == 0 { magnitude } else { -magnitude }
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): well mixed, the same everywhere.
pub fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// One period of the sequence, as the GPU holds it; made once.
pub fn period(element: Element) -> &'static [u8] {
    static PERIODS: [OnceLock<Vec<u8>>; 4] = [const { OnceLock::new() }; 4];
    PERIODS[element as usize].get_or_init(|| encoded(element))
}

fn encoded(element: Element) -> Vec<u8> {
    let values = (0..PERIOD).map(|i| value(element, i));
    match element {
        Element::F16 => values.flat_map(|v| f16::from_f64(v).to_le_bytes()).collect(),
        Element::Bf16 => values.flat_map(|v| bf16::from_f64(v).to_le_bytes()).collect(),
        Element::F32 => values.flat_map(|v| (v as f32).to_le_bytes()).collect(),
        Element::F64 => values.flat_map(f64::to_le_bytes).collect(),
    }
}

/// The number that bytes of device memory are.
pub fn decode(element: Element, bytes: [u8; 8]) -> f64 {
    let [a, b, c, d, ..] = bytes;
    match element {
        Element::F16 => f16::from_le_bytes([a, b]).to_f64(),
        Element::Bf16 => bf16::from_le_bytes([a, b]).to_f64(),
        Element::F32 => f64::from(f32::from_le_bytes([a, b, c, d])),
        Element::F64 => f64::from_le_bytes(bytes),
    }
}

/// What one element of a product must be, and how far from it the GPU may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    pub value: f64,
    pub tolerance: f64,
    /// How large it could be as well: the root of the summed squares of its terms.
    pub scale: f64,
}

/// Element (`row`, `column`) of product `batch` whose operands begin at elements `a` and `b` of the sequence.
pub fn expected(shape: &Shape, a: u64, b: u64, batch: u64, row: u64, column: u64) -> Expected {
    let a = a + batch * shape.m * shape.k;
    let b = b + batch * shape.k * shape.n;
    let (mut sum, mut squares) = (0.0, 0.0);
    for p in 0..shape.k {
        let at_a = if shape.transpose_a { p + row * shape.k } else { row + p * shape.m };
        let at_b = if shape.transpose_b { column + p * shape.n } else { p + column * shape.k };
        let term = value(shape.element, a + at_a) * value(shape.element, b + at_b);
        sum += term;
        squares += term * term;
    }
    let scale = f64::sqrt(squares);
    Expected { value: sum, tolerance: tolerance(shape, sum, scale), scale }
}

/// How far a right result may be from the reference. Three things part them, for a sum of `k` products of random sign
/// whose root of summed squares is `r` (partial sums, and the result, are of magnitude r):
///
/// - the result is rounded to the element type: half a unit of its last digit; two are allowed;
/// - sums are kept in single (or double) precision, on tensor cores cut off instead of rounded: each of at most `k`
///   additions errs by 2⁻²³ r. 64 more allow for the terms of one instruction, which are aligned to the largest;
/// - tf32 keeps 10 digits of the fraction of each operand, cut off or rounded: each product errs by up to 2⁻¹⁰ of
///   itself with a common bias, so 2⁻⁹ of the result, and the rest is random: 8 standard deviations of 2⁻¹⁰ r.
///
/// A product of wrong operands, or one that was not computed, differs by r and more.
fn tolerance(shape: &Shape, value: f64, r: f64) -> f64 {
    let rounded = 2.0 * 2f64.powi(-shape.element.digits()) * value.abs();
    let kept = if shape.element == Element::F64 { 2f64.powi(-52) } else { 2f64.powi(-23) };
    let added = (shape.k + 64) as f64 * kept * r;
    let cut = if (shape.element, shape.compute) == (Element::F32, Compute::Tf32) {
        2f64.powi(-9) * value.abs() + 8.0 * 2f64.powi(-10) * r
    } else {
        0.0
    };
    rounded + added + cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::product::{FP32, FP64};

    const ELEMENTS: [Element; 4] = [Element::F16, Element::Bf16, Element::F32, Element::F64];

    #[test]
    fn values_are_exact_in_their_type() {
        for element in ELEMENTS {
            let bytes = period(element);
            let size = element.bytes() as usize;
            assert_eq!(bytes.len() as u64, PERIOD * size as u64);
            for index in (0..PERIOD).step_by(997) {
                let mut word = [0; 8];
                word[..size].copy_from_slice(&bytes[index as usize * size..][..size]);
                assert_eq!(decode(element, word), value(element, index), "{element:?} {index}");
            }
            let mean = (0..PERIOD).map(|i| value(element, i)).sum::<f64>() / PERIOD as f64;
            assert!(mean.abs() < 0.003, "{element:?}: {mean}");
        }
    }

    #[test]
    fn a_reference_knows_transposes_and_batches() {
        let mut shape = Shape { m: 3, n: 2, k: 4, batch: 2, ..Shape::square(1, FP64) };
        for (ta, tb) in [(false, false), (true, false), (false, true), (true, true)] {
            (shape.transpose_a, shape.transpose_b) = (ta, tb);
            let v = |i| value(Element::F64, i);
            let (row, column, batch) = (2, 1, 1);
            let a = |p: u64| if ta { v(100 + 12 + p + row * 4) } else { v(100 + 12 + row + p * 3) };
            let b = |p: u64| if tb { v(500 + 8 + column + p * 2) } else { v(500 + 8 + p + column * 4) };
            let sum: f64 = (0..4).map(|p| a(p) * b(p)).sum();
            assert_eq!(expected(&shape, 100, 500, batch, row, column).value, sum);
        }
    }

    /// Single precision, as a GPU sums it, lies inside; a sum that misses one term, or has another's sign, does not.
    #[test]
    fn the_tolerance_parts_rounding_from_mistakes() {
        for k in [1, 17, 512, 8192] {
            let shape = Shape { k, ..Shape::square(64, FP32) };
            let (mut single, mut worst) = (0f32, f64::MAX);
            for p in 0..k {
                let term = value(Element::F32, 5 + p * 64) * value(Element::F32, 9_000 + 3 * k + p);
                single += term as f32;
                worst = worst.min(if term.abs() > 0.1 { term.abs() } else { f64::MAX });
            }
            let right = expected(&shape, 0, 9_000, 0, 5, 3);
            assert!((f64::from(single) - right.value).abs() <= right.tolerance, "{k}");
            assert!(worst > right.tolerance, "{k}: {worst} {right:?}");
        }
    }
}
