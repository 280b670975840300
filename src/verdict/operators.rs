//! What the operation behind a wait says: operators and methods that the native chain or the NVTX ranges name.
//!
//! Sources: PyTorch 2.6 and 2.15 (the catalogue's entries cite files), chains of real captures.

use crate::vocabulary::PatternId::{self, *};

/// Operators that decide, or that name the pattern without deciding.
pub struct Operators {
    /// Names as in `at::_ops::NAME` and `aten::NAME`, with blanks between them; overloads (`_Tensor`, `_self_Tensor`)
    /// match too where `overloads`.
    names: &'static str,
    overloads: bool,
    /// Entry of the catalogue: it says of which kind such a wait is, or that the use of the value decides.
    pub pattern: PatternId,
    /// Why they wait, for the evidence.
    pub because: &'static str,
}

/// Named as they are.
const fn op(names: &'static str, pattern: PatternId, because: &'static str) -> Operators {
    Operators { names, overloads: false, pattern, because }
}

/// Named with their overloads.
const fn ops(names: &'static str, pattern: PatternId, because: &'static str) -> Operators {
    Operators { overloads: true, ..op(names, pattern, because) }
}

const COMPARED: &str = "Python gets the outcome of a comparison";

/// Searched in this order over all operators of a chain: specific ones before the general ones that they call.
const OPERATORS: &[Operators] = &[
    op(
        "_linalg_svd _linalg_eigh linalg_lstsq linalg_eig _linalg_eigvals",
        E15,
        "it raises if the factorisation failed, and has no form that does not look",
    ),
    op("_linalg_check_errors", E01, "it raises if the factorisation failed: a validity check"),
    ops("repeat_interleave", B10, "the size of its output is the sum of the repeats"),
    op("bincount", B12, "the number of bins is the largest value plus one"),
    ops("histc", B13, "the range of the bins is read from the data"),
    op("one_hot", B11, "the number of classes is the largest index plus one"),
    op("_unique2 _unique", B07, "how many distinct values there are decides its output's size"),
    op("unique_consecutive", B07, "how many runs there are decides its output's size"),
    ops("unique_dim", B09, "how many distinct rows there are decides its output's size"),
    ops("isin", B15, "it sorts through unique, although its result has a fixed shape"),
    op("combinations", B14, "it selects by a mask, although its size is known beforehand"),
    ops("masked_select", B02, "how many elements the mask selects decides its output's size"),
    op("argwhere nonzero", B01, "how many elements are nonzero decides its output's size"),
    op("_coalesce coalesce", B16, "how many distinct indices there are decides the sparse tensor's size"),
    ops("segment_reduce", B26, "it checks its lengths"),
    ops("normal", E05, "it checks that no standard deviation is negative"),
    op("cov", E09, "it checks its weights and warns where too few observations are left"),
    op("istft", E10, "it checks that the windows leave no gap"),
    ops("fake_quantize_per_channel_affine", E11, "it checks that the zero points lie in the quantised range"),
    ops("searchsorted", A31, "it checks the range of its sorter"),
    op("linalg_matrix_exp matrix_exp", B23, "the norm chooses the degree of the approximation"),
    ops("ctc_loss", B21, "it needs the lengths on the host, where they came from"),
    ops("masked_fill masked_fill_ index_fill_", A12, "the value read goes straight back to the GPU"),
    op("allclose", A18, COMPARED),
    op("equal", A17, COMPARED),
    op("is_nonzero", A03, "Python asks for a tensor's truth to decide where to go"),
];

/// Finds the first operator of the table among `names`.
pub fn find<'a>(names: &[&'a str]) -> Option<(&'static Operators, &'a str)> {
    let mut rows = OPERATORS.iter().flat_map(|row| row.names.split(' ').map(move |known| (row, known)));
    rows.find_map(|(row, known)| {
        let is = |name: &&&str| **name == known || row.overloads && overload(name, known);
        Some((row, *names.iter().find(is)?))
    })
}

/// `repeat_interleave_self_Tensor` is an overload of `repeat_interleave`: its suffix has a capital.
fn overload(name: &str, base: &str) -> bool {
    name.strip_prefix(base)
        .and_then(|r| r.strip_prefix('_'))
        .is_some_and(|r| r.contains(|c: char| c.is_ascii_uppercase()))
}

/// Pattern of a read by its Python method, where the method alone does not decide.
pub fn read_pattern(method: Option<&str>) -> Option<PatternId> {
    Some(match method? {
        "item" => A01,
        "float_scalar" | "integral_scalar" | "complex_scalar" | "invert" => A02,
        "tolist" => D02,
        "cpu" | "to" | "numpy" => D01,
        "type" => D03,
        "copy_" => D04,
        "equal" => A17,
        "allclose" => A18,
        "contains" => A06,
        _ => return None,
    })
}

/// Pattern of an upload by its Python method and its native chain.
pub fn upload_pattern<S: AsRef<str>>(method: Option<&str>, chain: &[S]) -> PatternId {
    // Lists and tensors as indices; a single element is written by a copy.
    let indexed =
        || chain.iter().any(|s| ["index_put", "applySlicing"].iter().any(|part| s.as_ref().contains(part)));
    match method.unwrap_or_default() {
        "tensor" | "as_tensor" | "new_tensor" | "asarray" | "from_numpy" | "pynew" => C01,
        "legacy_tensor_ctor" => C01,
        "getitem" => C07,
        "setitem" if indexed() => C05,
        "setitem" => C06,
        "copy_" => C04,
        "where" => C09,
        _ => C03,
    }
}

/// Operators that a native chain names, innermost first.
pub fn of_chain<S: AsRef<str>>(chain: &[S]) -> Vec<&str> {
    let functions = chain.iter().filter_map(|s| s.as_ref().split_once("at::_ops::"));
    functions.filter_map(|(_, rest)| rest.split("::").next()).collect()
}

/// Operators that NVTX ranges name, innermost first (`ranges`: outermost first).
pub fn of_ranges<S: AsRef<str>>(ranges: &[S]) -> Vec<&str> {
    let operators = ranges.iter().rev().filter_map(|r| r.as_ref().strip_prefix("aten::"));
    operators.map(|r| r.split(", ").next().unwrap_or(r)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overloads_match_but_namesakes_do_not() {
        let pattern = |names: &[&str]| find(names).map(|(o, _)| o.pattern);
        assert_eq!(pattern(&["item", "repeat_interleave_self_Tensor"]), Some(B10));
        assert_eq!(pattern(&["nonzero", "index_Tensor"]), Some(B01));
        assert_eq!(pattern(&["nonzero_static"]), None);
        assert_eq!(pattern(&["masked_fill__Scalar"]), Some(A12));
        assert_eq!(pattern(&["item", "is_nonzero"]), Some(A03));
        assert_eq!(pattern(&["_local_scalar_dense", "item", "normal_Tensor_Tensor"]), Some(E05));
        assert_eq!(pattern(&["item", "equal", "cov"]), Some(E09));
        assert_eq!(pattern(&["item", "normal_"]), None);
        assert_eq!(pattern(&["item", "_linalg_check_errors", "_linalg_svd", "linalg_svd"]), Some(E15));
        assert_eq!(pattern(&["copy_", "item"]), None);
    }

    #[test]
    fn names_come_from_chains_and_ranges() {
        assert_eq!(of_chain(&["at::_ops::item::call(at::Tensor const&)", "x"]), ["item"]);
        assert_eq!(
            of_ranges(&["iteration 1", "aten::is_nonzero, op_id = 3", "aten::item, op_id = 4"]),
            ["item", "is_nonzero"]
        );
    }
}
