//! A matrix product apart from any GPU: its size, its operands' values, and what its result must be.
//!
//! Operands are views of one endless periodic sequence of pseudo-random values, so that any element of them, and by it
//! any element of a product, can be computed without holding a matrix:
//!
//! ```text
//!  memory   [v0 v1 v2 … v(P-1)][v0 v1 v2 … v(P-1)][v0 …        P prime: rows of no matrix repeat
//!                  [A, from element a ---------][B, from element b ----…
//!  A(row, column) = v((a + index of (row, column)) mod P)
//! ```

use super::plan::{Compute, Element, Gemm};
use std::fmt;
use std::sync::OnceLock;

/// Length of the sequence: prime, so that no leading dimension divides it.
pub const PERIOD: u64 = 1_000_003;

/// Dimensions and types of a product, as [`Gemm`] has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    pub m: u64,
    pub n: u64,
    pub k: u64,
    pub batch: u64,
    pub transpose_a: bool,
    pub transpose_b: bool,
    pub element: Element,
    pub compute: Compute,
}

impl From<&Gemm> for Shape {
    fn from(gemm: &Gemm) -> Self {
        Self {
            m: gemm.m,
            n: gemm.n,
            k: gemm.k,
            batch: gemm.batch,
            transpose_a: gemm.transpose_a,
            transpose_b: gemm.transpose_b,
            element: gemm.element,
            compute: gemm.compute,
        }
    }
}

impl Shape {
    /// A square product, not transposed.
    pub fn square(size: u64, element: Element, compute: Compute) -> Self {
        let (transpose_a, transpose_b) = (false, false);
        Self { m: size, n: size, k: size, batch: 1, transpose_a, transpose_b, element, compute }
    }

    pub fn elements_a(&self) -> u64 {
        self.m.saturating_mul(self.k).saturating_mul(self.batch)
    }

    pub fn elements_b(&self) -> u64 {
        self.k.saturating_mul(self.n).saturating_mul(self.batch)
    }

    pub fn elements_c(&self) -> u64 {
        self.m.saturating_mul(self.n).saturating_mul(self.batch)
    }

    /// Bytes of both operands and the result.
    pub fn bytes(&self) -> u64 {
        let elements = [self.elements_a(), self.elements_b(), self.elements_c()];
        elements.iter().fold(0u64, |sum, &n| sum.saturating_add(n)).saturating_mul(size(self.element))
    }

    /// Half of it: the batch, or the longest side. `None` where nothing is left to halve.
    pub fn halved(mut self) -> Option<Self> {
        let longest = self.m.max(self.n).max(self.k);
        let side = if self.batch > 1 {
            &mut self.batch
        } else if self.k == longest {
            &mut self.k
        } else if self.m == longest {
            &mut self.m
        } else {
            &mut self.n
        };
        if *side < 2 {
            return None;
        }
        *side /= 2;
        Some(self)
    }
}

/// `8192×8192×8192 fp16`; m×n×k, batches in front, transposed operands behind.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.batch > 1 {
            write!(f, "{} × ", self.batch)?;
        }
        write!(f, "{}×{}×{} {}", self.m, self.n, self.k, type_name(self.element, self.compute))?;
        match (self.transpose_a, self.transpose_b) {
            (false, false) => Ok(()),
            (true, false) => f.write_str(" Aᵀ"),
            (false, true) => f.write_str(" Bᵀ"),
            (true, true) => f.write_str(" Aᵀ Bᵀ"),
        }
    }
}

/// `fp16`, `bf16`, `fp32`, `tf32`, `fp64`.
pub fn type_name(element: Element, compute: Compute) -> &'static str {
    match (element, compute) {
        (Element::F16, _) => "fp16",
        (Element::Bf16, _) => "bf16",
        (Element::F32, Compute::Tf32) => "tf32",
        (Element::F32, _) => "fp32",
        (Element::F64, _) => "fp64",
    }
}

/// Bytes of one element.
pub fn size(element: Element) -> u64 {
    match element {
        Element::F16 | Element::Bf16 => 2,
        Element::F32 => 4,
        Element::F64 => 8,
    }
}

/// Binary digits of an element's significand, the hidden one included.
fn digits(element: Element) -> i32 {
    match element {
        Element::F16 => 11,
        Element::Bf16 => 8,
        Element::F32 => 24,
        Element::F64 => 53,
    }
}

/// Value `index` of the sequence: evenly spread over (−1, 1), a multiple of the element's precision below 1, so that
/// it is exact in that type.
pub fn value(element: Element, index: u64) -> f64 {
    let steps = (1u64 << digits(element)) - 1;
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
        Element::F16 => values.flat_map(|v| half(v as f32).to_le_bytes()).collect(),
        Element::Bf16 => values.flat_map(|v| (((v as f32).to_bits() >> 16) as u16).to_le_bytes()).collect(),
        Element::F32 => values.flat_map(|v| (v as f32).to_le_bytes()).collect(),
        Element::F64 => values.flat_map(f64::to_le_bytes).collect(),
    }
}

/// Half precision of a number that is exact in it: zero, or of magnitude 2⁻¹⁴ to 1.
fn half(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    if value == 0.0 {
        return sign;
    }
    let exponent = ((bits >> 23) & 0xff) as u16 - (127 - 15);
    sign | (exponent << 10) | ((bits >> 13) & 0x3ff) as u16
}

/// The number that bytes of device memory are.
pub fn decode(element: Element, bytes: [u8; 8]) -> f64 {
    let short = u16::from_le_bytes([bytes[0], bytes[1]]);
    let word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    match element {
        Element::F16 => {
            let (exponent, fraction) = (i32::from(short >> 10 & 0x1f), f64::from(short & 0x3ff));
            let magnitude = match exponent {
                0 => fraction * 2f64.powi(-24),
                31 if fraction == 0.0 => f64::INFINITY,
                31 => f64::NAN,
                e => (1024.0 + fraction) * 2f64.powi(e - 25),
            };
            if short & 0x8000 == 0 { magnitude } else { -magnitude }
        }
        Element::Bf16 => f64::from(f32::from_bits(u32::from(short) << 16)),
        Element::F32 => f64::from(f32::from_bits(word)),
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
    let rounded = 2.0 * 2f64.powi(-digits(shape.element)) * value.abs();
    let kept = if shape.element == Element::F64 { 2f64.powi(-52) } else { 2f64.powi(-23) };
    let added = (shape.k + 64) as f64 * kept * r;
    let cut = if shape.element == Element::F32 && shape.compute == Compute::Tf32 {
        2f64.powi(-9) * value.abs() + 8.0 * 2f64.powi(-10) * r
    } else {
        0.0
    };
    rounded + added + cut
}

#[cfg(test)]
mod tests {
    use super::*;

    const ELEMENTS: [Element; 4] = [Element::F16, Element::Bf16, Element::F32, Element::F64];

    #[test]
    fn values_are_exact_in_their_type() {
        for element in ELEMENTS {
            let bytes = period(element);
            let size = size(element) as usize;
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
    fn half_precision_reads_every_kind_of_number() {
        let read = |bits: u16| decode(Element::F16, u64::from(bits).to_le_bytes());
        for (bits, value) in [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 2f64.powi(-24)),
            (0x0400, 2f64.powi(-14)),
            (0x7c00, f64::INFINITY),
            (0xfc00, f64::NEG_INFINITY),
        ] {
            assert_eq!(read(bits), value, "{bits:#x}");
        }
        assert!(read(0xffff).is_nan());
    }

    #[test]
    fn a_reference_knows_transposes_and_batches() {
        let mut shape = Shape { m: 3, n: 2, k: 4, batch: 2, ..Shape::square(1, Element::F64, Compute::F64) };
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
            let shape = Shape { k, ..Shape::square(64, Element::F32, Compute::F32) };
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

    #[test]
    fn halving_ends() {
        let mut shape = Shape { batch: 6, m: 5, ..Shape::square(9, Element::F16, Compute::F32) };
        let mut last = shape.bytes();
        while let Some(smaller) = shape.halved() {
            assert!(smaller.bytes() < last);
            (shape, last) = (smaller, smaller.bytes());
        }
        assert_eq!((shape.m, shape.n, shape.k, shape.batch), (1, 1, 1, 1));
    }
}
