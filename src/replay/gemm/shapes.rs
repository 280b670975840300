//! Exact sizes of a product, from the text of the operator's NVTX range.
//!
//! ```text
//!  aten::addmm, seq = 51, op_id = 13, sizes = [[2048], [256, 512], [512, 2048], [], []], input_op_ids = […]
//!                                               bias    A           B
//! ```
//! Sizes are logical and row-major: `R (rows × columns) = A (rows × depth) · B (depth × columns)`. cuBLAS
//! computes the transposed product of the transposed matrices: its m is `columns`, its n is `rows`.

use crate::vocabulary::operand::sizes;

/// Rows, columns, depth, and pairs of matrices: as PyTorch sees a product.
pub type Sizes = (u64, u64, u64, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operator {
    /// The operator is exactly one product: mm, addmm, bmm, … but not linear or matmul, which call those.
    pub innermost: bool,
    pub batched: bool,
    pub product: Option<Sizes>,
}

/// Elements of the largest tensor.
const LARGEST: u64 = 1 << 40;

/// `None` for an operator that is no product.
pub fn read(text: &str) -> Option<Operator> {
    let name = text.split(", ").next().unwrap_or(text);
    let name = name.strip_prefix("aten::")?;
    let sizes = sizes(text);
    let of = |first: usize| {
        let [a, b] = sizes.get(first..first + 2)? else { return None };
        matmul(a, b)
    };
    // `x (…, depth)` times the transposed `w (columns, depth)`.
    let linear = || {
        let (x, &[columns, depth]) = (sizes.first()?, sizes.get(1)?.as_slice()) else { return None };
        matmul(x, &[depth, columns])
    };
    // Additions name the addend first.
    let (innermost, batched, product) = match name {
        "mm" | "_scaled_mm" | "_int_mm" | "mv" | "dot" | "vdot" => (true, false, of(0)),
        "addmm" | "_addmm_activation" | "addmv" => (true, false, of(1)),
        "bmm" => (true, true, of(0)),
        "baddbmm" => (true, true, of(1)),
        "linear" => (false, false, linear()),
        "matmul" => (false, false, of(0)),
        _ => return None,
    };
    Some(Operator { innermost, batched, product: product.filter(is_sane) })
}

fn is_sane(&(rows, columns, depth, batch): &Sizes) -> bool {
    let of = |x: u64, y: u64| x.checked_mul(y)?.checked_mul(batch);
    let fits = |x, y| of(x, y).is_some_and(|elements| (1..=LARGEST).contains(&elements));
    fits(rows, columns) && fits(rows, depth) && fits(depth, columns)
}

/// Equal leading dimensions are batches; before a plain matrix on the right they fold into the rows.
fn matmul(a: &[u64], b: &[u64]) -> Option<Sizes> {
    let (rows, last, other, columns, batch) = match (a, b) {
        (&[last], &[other]) => (1, last, other, 1, 1),
        (&[rows, last], &[other]) => (rows, last, other, 1, 1),
        (&[ref leading @ .., last], &[other, columns]) => (all(leading)?, last, other, columns, 1),
        (&[ref outer @ .., rows, last], &[ref others @ .., other, columns]) if outer == others => {
            (rows, last, other, columns, all(outer)?)
        }
        _ => return None,
    };
    (last == other).then_some((rows, columns, last, batch))
}

fn all(dimensions: &[u64]) -> Option<u64> {
    dimensions.iter().try_fold(1u64, |product, &d| product.checked_mul(d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_emit_nvtx_give_sizes() {
        for (operator, sizes, expected) in [
            ("addmm, seq = 51, op_id = 13", "[2048], [256, 512], [512, 2048], [], []", (256, 2048, 512, 1)),
            ("mm, op_id = 54", "[256, 10], [10, 2048]", (256, 2048, 10, 1)),
            ("mm, op_id = 12", "[128, 784], [784, 512]", (128, 512, 784, 1)),
            ("linear, seq = 50, op_id = 9", "[256, 512], [2048, 512], [2048]", (256, 2048, 512, 1)),
            ("linear, op_id = 9", "[8, 128, 512], [1000, 512], []", (1024, 1000, 512, 1)),
            ("bmm, op_id = 3", "[96, 128, 64], [96, 64, 128]", (128, 128, 64, 96)),
            (
                "baddbmm, op_id = 3",
                "[96, 128, 128], [96, 128, 64], [96, 64, 128], [], []",
                (128, 128, 64, 96),
            ),
            ("matmul, op_id = 3", "[8, 12, 128, 64], [8, 12, 64, 128]", (128, 128, 64, 96)),
            ("matmul, op_id = 3", "[8, 128, 64], [64, 32]", (1024, 32, 64, 1)),
            ("matmul, op_id = 3", "[128, 64], [64]", (128, 1, 64, 1)),
            ("_scaled_mm, op_id = 3", "[16, 32], [32, 64], [], [], [], [], []", (16, 64, 32, 1)),
            ("mv, op_id = 3", "[100, 50], [50]", (100, 1, 50, 1)),
            ("dot, op_id = 3", "[50], [50]", (1, 1, 50, 1)),
        ] {
            for more in ["", ", input_op_ids = [(0,-1), (1,0)]"] {
                let text = format!("aten::{operator}, sizes = [{sizes}]{more}");
                assert_eq!(read(&text).and_then(|o| o.product), Some(expected), "{text}");
            }
        }
    }

    #[test]
    fn what_is_no_product_gives_none() {
        for text in [
            "iteration 3",
            "aten::add, op_id = 3, sizes = [[3, 4], [4, 5]]",
            "AddmmBackward0, seq = 57, op_id = 50, sizes = [[256, 10]]",
            "",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn damaged_sizes_are_none() {
        for text in [
            "aten::mm, op_id = 3",
            "aten::mm",
            "aten::mm, sizes = [[3, 4], [5, 6]]",
            "aten::mm, sizes = [[0, 4], [4, 6]]",
            "aten::mm, sizes = [[-3, 4], [4, 6]]",
            "aten::mm, sizes = [[99999999999999999999, 4], [4, 6]]",
            "aten::mm, sizes = [[1000000000, 4], [4, 1000000000]]",
            "aten::mm, sizes = [[3, 4], [4",
            "aten::mm, sizes = [[[3, 4], [4, 5]], []]",
            "aten::linear, sizes = [[], []]",
            "aten::matmul, sizes = [[18446744073, 18446744073, 4], [4, 4]]",
        ] {
            let operator = read(text).unwrap_or_else(|| panic!("{text} is an operator"));
            assert_eq!(operator.product, None, "{text}");
        }
        assert!(read("aten::bmm, op_id = 3").is_some_and(|o| o.batched && o.innermost));
    }
}
