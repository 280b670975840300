//! The shape of a matrix product: its sizes, transposes and types.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Type of matrix elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Element {
    /// IEEE half precision.
    F16,
    /// Single precision cut to 16 bits.
    Bf16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
}

impl Element {
    /// Bytes of one element.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

/// Precision of a product's multiplications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Compute {
    /// Single precision, also for 16-bit products, which accumulate in it.
    F32,
    /// Single precision with operands cut to 10 digits of the fraction, on tensor cores.
    Tf32,
    /// Double precision.
    F64,
}

/// Type of a product's elements, and precision of its multiplications.
pub type Types = (Element, Compute);

/// Half precision, summed in single.
pub const FP16: Types = (Element::F16, Compute::F32);
/// bfloat16, summed in single.
pub const BF16: Types = (Element::Bf16, Compute::F32);
/// Single precision.
pub const FP32: Types = (Element::F32, Compute::F32);
/// Single precision, multiplied in TF32.
pub const TF32: Types = (Element::F32, Compute::Tf32);
/// Double precision.
pub const FP64: Types = (Element::F64, Compute::F64);

/// All types that are replayed.
pub const TYPES: [Types; 5] = [FP16, BF16, FP32, TF32, FP64];

/// `fp16`, `bf16`, `fp32`, `tf32`, `fp64`.
pub const fn type_name(types: Types) -> &'static str {
    match types {
        (Element::F16, _) => "fp16",
        (Element::Bf16, _) => "bf16",
        (Element::F32, Compute::Tf32) => "tf32",
        (Element::F32, _) => "fp32",
        (Element::F64, _) => "fp64",
    }
}

/// A matrix product as cuBLAS takes it, column-major: `C (m×n) = op(A) (m×k) · op(B) (k×n)`, `batch` times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Shape {
    /// Rows of the result.
    pub m: u64,
    /// Columns of the result.
    pub n: u64,
    /// Depth: columns of op(A), rows of op(B).
    pub k: u64,
    /// Number of products of this size in one call.
    pub batch: u64,
    /// Whether op(A) is the transpose of A.
    pub transpose_a: bool,
    /// Whether op(B) is the transpose of B.
    pub transpose_b: bool,
    /// Type of all three matrices.
    pub element: Element,
    /// Precision of the multiplications.
    pub compute: Compute,
}

impl Shape {
    /// A square product, not transposed.
    pub const fn square(size: u64, (element, compute): Types) -> Self {
        let (transpose_a, transpose_b) = (false, false);
        Self { m: size, n: size, k: size, batch: 1, transpose_a, transpose_b, element, compute }
    }

    /// Types of elements and multiplications.
    pub const fn types(&self) -> Types {
        (self.element, self.compute)
    }

    /// Elements of A, B and C, of all products of the batch.
    pub fn elements(&self) -> [u64; 3] {
        let of = |rows: u64, columns: u64| rows.saturating_mul(columns).saturating_mul(self.batch);
        [of(self.m, self.k), of(self.k, self.n), of(self.m, self.n)]
    }

    /// Bytes of both operands and the result.
    pub fn bytes(&self) -> u64 {
        self.elements().into_iter().fold(0, u64::saturating_add).saturating_mul(self.element.bytes())
    }

    /// Half the product: half the batch, or half the longest side. `None` where nothing is left to halve.
    pub fn halved(mut self) -> Option<Self> {
        let longest = self.m.max(self.n).max(self.k);
        let side = match self {
            Self { batch: 2.., .. } => &mut self.batch,
            Self { k, .. } if k == longest => &mut self.k,
            Self { m, .. } if m == longest => &mut self.m,
            _ => &mut self.n,
        };
        *side /= 2;
        (*side > 0).then_some(self)
    }
}

/// `8192×8192×8192 fp16`; m×n×k, batches in front, transposed operands behind.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.batch > 1 {
            write!(f, "{} × ", self.batch)?;
        }
        write!(f, "{}×{}×{} {}", self.m, self.n, self.k, type_name(self.types()))?;
        match (self.transpose_a, self.transpose_b) {
            (false, false) => Ok(()),
            (true, false) => f.write_str(" Aᵀ"),
            (false, true) => f.write_str(" Bᵀ"),
            (true, true) => f.write_str(" Aᵀ Bᵀ"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halving_ends() {
        let mut shape = Shape { batch: 6, m: 5, ..Shape::square(9, FP16) };
        let mut last = shape.bytes();
        while let Some(smaller) = shape.halved() {
            assert!(smaller.bytes() < last);
            (shape, last) = (smaller, smaller.bytes());
        }
        assert_eq!((shape.m, shape.n, shape.k, shape.batch), (1, 1, 1, 1));
    }
}
