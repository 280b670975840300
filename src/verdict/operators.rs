//! What the operation behind a wait says: operators and methods that the native chain or the NVTX ranges name.
//!
//! Sources: PyTorch 2.6 and 2.15 (the catalogue's entries cite files), chains of real captures.

use crate::vocabulary::Kind;

/// An operator that decides, or that names the pattern without deciding.
pub struct Operator {
    /// Name as in `at::_ops::NAME` and `aten::NAME`; overloads (`_Tensor`, `_self_Tensor`) match too where `overloads`.
    pub name: &'static str,
    pub overloads: bool,
    pub pattern: &'static str,
    /// `None`: the use of the value decides.
    pub kind: Option<Kind>,
    /// Why it waits, for the evidence.
    pub because: &'static str,
}

const fn op(
    name: &'static str,
    overloads: bool,
    pattern: &'static str,
    kind: Option<Kind>,
    because: &'static str,
) -> Operator {
    Operator { name, overloads, pattern, kind, because }
}

const SHAPE: Option<Kind> = Some(Kind::DynamicShape);
const CHECK: Option<Kind> = Some(Kind::ErrorCheck);
const BRANCH: Option<Kind> = Some(Kind::ControlFlow);

/// Searched in this order over all operators of a chain: specific ones before the general ones that they call.
pub const OPERATORS: &[Operator] = &[
    op(
        "_linalg_check_errors",
        false,
        "E01",
        CHECK,
        "it raises if the factorisation failed: a validity check",
    ),
    op("repeat_interleave", true, "B10", SHAPE, "the size of its output is the sum of the repeats"),
    op("bincount", false, "B12", SHAPE, "the number of bins is the largest value plus one"),
    op("histc", true, "B13", Some(Kind::CpuCompute), "the range of the bins is read from the data"),
    op("one_hot", false, "B11", SHAPE, "the number of classes is the largest index plus one"),
    op("_unique2", false, "B07", SHAPE, "how many distinct values there are decides its output's size"),
    op("_unique", false, "B07", SHAPE, "how many distinct values there are decides its output's size"),
    op("unique_consecutive", false, "B07", SHAPE, "how many runs there are decides its output's size"),
    op("unique_dim", true, "B09", SHAPE, "how many distinct rows there are decides its output's size"),
    op(
        "isin",
        true,
        "B15",
        Some(Kind::RoundTrip),
        "it sorts through unique, although its result has a fixed shape",
    ),
    op(
        "combinations",
        false,
        "B14",
        Some(Kind::RoundTrip),
        "it selects by a mask, although its size is known beforehand",
    ),
    op("masked_select", true, "B02", SHAPE, "how many elements the mask selects decides its output's size"),
    op("argwhere", false, "B01", SHAPE, "how many elements are nonzero decides its output's size"),
    op("nonzero", false, "B01", SHAPE, "how many elements are nonzero decides its output's size"),
    op(
        "_coalesce",
        false,
        "B16",
        SHAPE,
        "how many distinct indices there are decides the sparse tensor's size",
    ),
    op(
        "coalesce",
        false,
        "B16",
        SHAPE,
        "how many distinct indices there are decides the sparse tensor's size",
    ),
    op("segment_reduce", true, "B26", CHECK, "it checks its lengths"),
    op("normal", true, "E05", CHECK, "it checks that no standard deviation is negative"),
    op("cov", false, "E09", CHECK, "it checks its weights and warns where too few observations are left"),
    op("istft", false, "E10", CHECK, "it checks that the windows leave no gap"),
    op(
        "fake_quantize_per_channel_affine",
        true,
        "E11",
        CHECK,
        "it checks that the zero points lie in the quantised range",
    ),
    op("searchsorted", true, "A31", CHECK, "it checks the range of its sorter"),
    op("linalg_matrix_exp", false, "B23", BRANCH, "the norm chooses the degree of the approximation"),
    op("matrix_exp", false, "B23", BRANCH, "the norm chooses the degree of the approximation"),
    op(
        "ctc_loss",
        true,
        "B21",
        Some(Kind::RoundTrip),
        "it needs the lengths on the host, where they came from",
    ),
    op("masked_fill", true, "A12", Some(Kind::RoundTrip), "the value read goes straight back to the GPU"),
    op("masked_fill_", true, "A12", Some(Kind::RoundTrip), "the value read goes straight back to the GPU"),
    op("index_fill_", true, "A12", Some(Kind::RoundTrip), "the value read goes straight back to the GPU"),
    op("allclose", false, "A18", None, "Python gets the outcome of a comparison"),
    op("equal", false, "A17", None, "Python gets the outcome of a comparison"),
    op("is_nonzero", false, "A03", BRANCH, "Python asks for a tensor's truth to decide where to go"),
];

/// Finds the first operator of the table among `names`.
pub fn find<'a>(names: &[&'a str]) -> Option<(&'static Operator, &'a str)> {
    OPERATORS.iter().find_map(|o| {
        names.iter().find(|n| **n == o.name || (o.overloads && overload(n, o.name))).map(|n| (o, *n))
    })
}

/// `repeat_interleave_self_Tensor` is an overload of `repeat_interleave`: its suffix has a capital.
fn overload(name: &str, base: &str) -> bool {
    name.strip_prefix(base)
        .and_then(|r| r.strip_prefix('_'))
        .is_some_and(|r| r.contains(|c: char| c.is_ascii_uppercase()))
}

/// What a Python method reads, where the method alone does not decide: (method, pattern).
const READS: &[(&str, &str)] = &[
    ("item", "A01"),
    ("float_scalar", "A02"),
    ("integral_scalar", "A02"),
    ("complex_scalar", "A02"),
    ("invert", "A02"),
    ("tolist", "D02"),
    ("cpu", "D01"),
    ("to", "D01"),
    ("numpy", "D01"),
    ("type", "D03"),
    ("copy_", "D04"),
    ("equal", "A17"),
    ("allclose", "A18"),
    ("contains", "A06"),
];

/// Pattern of a read by its Python method.
pub fn read_pattern(method: Option<&str>) -> Option<&'static str> {
    READS.iter().find(|(m, _)| Some(*m) == method).map(|(_, p)| *p)
}

/// Pattern of an upload by its Python method.
pub fn upload_pattern(method: Option<&str>) -> &'static str {
    match method {
        Some(
            "tensor" | "as_tensor" | "new_tensor" | "asarray" | "from_numpy" | "pynew" | "legacy_tensor_ctor",
        ) => "C01",
        Some("getitem") => "C07",
        Some("setitem") => "C06",
        Some("copy_") => "C04",
        Some("where") => "C09",
        _ => "C03",
    }
}

/// Operators that a native chain names, innermost first.
pub fn of_chain<S: AsRef<str>>(chain: &[S]) -> Vec<&str> {
    chain
        .iter()
        .filter_map(|s| s.as_ref().split_once("at::_ops::").and_then(|(_, rest)| rest.split("::").next()))
        .collect()
}

/// Operators that NVTX ranges name, innermost first (`ranges`: outermost first).
pub fn of_ranges<S: AsRef<str>>(ranges: &[S]) -> Vec<&str> {
    ranges
        .iter()
        .rev()
        .filter_map(|r| r.as_ref().strip_prefix("aten::"))
        .map(|r| r.split(", ").next().unwrap_or(r))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overloads_match_but_namesakes_do_not() {
        let pattern = |names: &[&str]| find(names).map(|(o, _)| o.pattern);
        assert_eq!(pattern(&["item", "repeat_interleave_self_Tensor"]), Some("B10"));
        assert_eq!(pattern(&["nonzero", "index_Tensor"]), Some("B01"));
        assert_eq!(pattern(&["nonzero_static"]), None);
        assert_eq!(pattern(&["masked_fill__Scalar"]), Some("A12"));
        assert_eq!(pattern(&["item", "is_nonzero"]), Some("A03"));
        assert_eq!(pattern(&["_local_scalar_dense", "item", "normal_Tensor_Tensor"]), Some("E05"));
        assert_eq!(pattern(&["item", "equal", "cov"]), Some("E09"));
        assert_eq!(pattern(&["item", "normal_"]), None);
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
