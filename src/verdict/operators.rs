//! PyTorch's operations that wait, in one table: the names of each in native chains, NVTX ranges, Python and
//! kernels around a copy, and its entry of the catalogue. The entry says whether the wait is for a size, a
//! check or a value.
//!
//! Sources: PyTorch 2.6 and 2.15 (the catalogue's entries cite files), chains of real captures.

use super::kernels::*;
use crate::rules::{self, grade, grade::Grade};
use crate::sites::neighbours::Neighbours;
use crate::text::Names;
use crate::vocabulary::{Copy, Direction, PatternId, PatternId::*, Verdict};

pub struct Operation {
    /// The catalogue's entry gives the kind of the wait, or says that the use of the value decides.
    pub pattern: PatternId,
    pub because: &'static str,
    /// Cases for a chain or range that names it, and for a line that calls it.
    pub grades: (Grade, Grade),
    /// The case where it needs a count or a number and no size is seen to change.
    unseen: Option<Grade>,
    /// Python methods under which it is another entry: (method, entry, text).
    pub under: &'static [(&'static str, PatternId, &'static str)],
    /// The argument that makes it not wait: (name, place, text).
    pub spared: Option<(&'static str, usize, &'static str)>,
    /// As in `at::_ops::NAME` and `aten::NAME`; with a `*`, overloads (`_Tensor`, `_self_Tensor`) match too.
    native: Names,
    /// As in `THPVariable_NAME`: methods that copy this way, with a function below whose name has a part of
    /// `below` (empty: any).
    pub methods: Names,
    way: Option<Direction>,
    below: Names,
    /// What Python calls, and how plainly a call shows that it waits (as in `Guess`).
    pub call: (By, Names, u8),
    kernels: &'static [Signature],
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    Any,
    Dot,
    /// A torch module, or one of linear algebra.
    Linalg,
    Torch,
    /// Anything; the method, builtin or operator reads a value.
    Read,
}

impl Operation {
    const NONE: Self = Self {
        pattern: A01,
        because: "",
        grades: (grade::R18, grade::S11),
        unseen: None,
        under: &[],
        spared: None,
        native: Names(""),
        methods: Names(""),
        way: None,
        below: Names(""),
        call: (By::Any, Names(""), 0),
        kernels: &[],
    };

    const fn called(self, by: By, names: &'static str, plainly: u8) -> Self {
        Self { call: (by, Names(names), plainly), ..self }
    }

    const fn kernels(self, kernels: &'static [Signature]) -> Self {
        Self { kernels, ..self }
    }

    const fn graded(self, native: Grade, line: Grade) -> Self {
        Self { grades: (native, line), ..self }
    }

    const fn unseen(self, grade: Grade) -> Self {
        Self { unseen: Some(grade), ..self }
    }

    const fn spared(self, argument: &'static str, place: usize, how: &'static str) -> Self {
        Self { spared: Some((argument, place, how)), ..self }
    }

    const fn below(self, parts: &'static str) -> Self {
        Self { below: Names(parts), ..self }
    }

    fn is_made<S: AsRef<str>>(&self, method: Option<&str>, chain: &[S]) -> bool {
        let is = |part: &str| chain.iter().any(|symbol| symbol.as_ref().contains(part));
        (self.methods.0.is_empty() || method.is_some_and(|method| self.methods.has(method)))
            && (self.below.0.is_empty() || self.below.iter().any(is))
    }

    const fn reads(self, methods: &'static str, python: &'static str) -> Self {
        let row = self.called(By::Read, python, 0);
        Self { methods: Names(methods), way: Some(Direction::DeviceToHost), ..row }
    }
}

/// Named by chains and ranges.
const fn op(native: &'static str, pattern: PatternId, because: &'static str) -> Operation {
    Operation { native: Names(native), pattern, because, ..Operation::NONE }
}

/// Known by the row's other columns.
const fn as_entry(pattern: PatternId) -> Operation {
    op("", pattern, "")
}

const fn uploads(pattern: PatternId, methods: &'static str) -> Operation {
    Operation { way: Some(Direction::HostToDevice), methods: Names(methods), ..as_entry(pattern) }
}

/// Operators below the named ones: in chains and ranges of many rows, each only tells how the wait comes
/// about. These hand over a number.
pub const READS: Names = Names("_local_scalar_dense item");
/// These copy a tensor.
pub const COPIES: Names = Names("copy_ _to_copy to to_device to_dtype to_dtype_layout to_other");
/// These select by a mask, and count for it.
pub const SELECTS: Names = Names("nonzero index masked_select");

const COMPARED: &str = "Python gets the outcome of a comparison";

/// Searched in this order over all operators of a chain: specific ones before the general ones that they call.
const OPERATIONS: &[Operation] = &[
    op(
        "_linalg_svd _linalg_eigh linalg_lstsq linalg_eig _linalg_eigvals",
        E15,
        "it raises if the factorisation failed, and has no form that does not look",
    )
    .called(By::Linalg, "eigh eigvalsh svdvals lstsq pinv matrix_rank", 3)
    .kernels(&[DECOMPOSED]),
    as_entry(E15).called(By::Dot, "svd pinverse", 3),
    op("_linalg_check_errors", E01, "it raises if the factorisation failed: a validity check")
        .called(By::Linalg, "inv solve lu_factor ldl_factor", 3)
        .kernels(&[FACTORISED]),
    as_entry(E01).called(By::Dot, "inverse cholesky", 3),
    op("repeat_interleave*", B10, "the size of its output is the sum of the repeats")
        .called(By::Any, "repeat_interleave", 3)
        .spared("output_size", usize::MAX, "; `output_size=` removes the wait where the total is known")
        .graded(grade::R18_OPEN, grade::S11_REPEATS)
        .kernels(&[REPEATED]),
    op("bincount", B12, "the number of bins is the largest value plus one")
        .called(By::Any, "bincount", 3)
        .kernels(&[COUNTED]),
    op("histc*", B13, "the range of the bins is read from the data")
        .called(By::Any, "histc", 3)
        .spared("min", 2, "; `min=` and `max=` remove the wait")
        .kernels(&[BINNED]),
    op("one_hot", B11, "the number of classes is the largest index plus one")
        .called(By::Any, "one_hot", 3)
        .spared("num_classes", 1, "; `num_classes=` removes the wait"),
    op("_unique2 _unique", B07, "how many distinct values there are decides its output's size")
        .called(By::Any, "unique", 3)
        .kernels(&[SORTED]),
    op("unique_consecutive", B07, "how many runs there are decides its output's size").called(
        By::Any,
        "unique_consecutive",
        3,
    ),
    op("unique_dim*", B09, "how many distinct rows there are decides its output's size"),
    op("isin*", B15, "it sorts through unique, although its result has a fixed shape"),
    op("combinations", B14, "it selects by a mask, although its size is known beforehand"),
    op("masked_select*", B02, "how many elements the mask selects decides its output's size")
        .called(By::Any, "masked_select", 3)
        .unseen(grade::R18),
    Operation {
        under: &[
            ("getitem", B02, ", under an index with a mask"),
            ("setitem", B03, ", under an assignment through a mask"),
        ],
        ..op("argwhere nonzero", B01, "how many elements are nonzero decides its output's size")
    }
    .called(By::Any, "nonzero argwhere where", 3)
    .unseen(grade::R18)
    .kernels(&[SELECTED]),
    op("_coalesce coalesce", B16, "how many distinct indices there are decides the sparse tensor's size")
        .called(By::Any, "coalesce to_sparse", 3),
    as_entry(B24).called(By::Any, "tensor_split", 1),
    op("segment_reduce*", B26, "it checks its lengths"),
    op("multinomial", E16, "it tests the probabilities, for whose answer PyTorch before 2.6 waits"),
    op("normal*", E05, "it checks that no standard deviation is negative").called(By::Torch, "normal", 2),
    op("cov", E09, "it checks its weights and warns where too few observations are left").called(
        By::Dot,
        "cov corrcoef",
        2,
    ),
    op("istft", E10, "it checks that the windows leave no gap").called(By::Dot, "istft", 3),
    op("fake_quantize_per_channel_affine*", E11, "it checks that the zero points lie in the quantised range"),
    op("searchsorted*", A31, "it checks the range of its sorter"),
    op("linalg_matrix_exp matrix_exp", B23, "the norm chooses the degree of the approximation")
        .graded(grade::R19, grade::S11),
    op("ctc_loss_IntList", B33, "it copies the targets to the host, where they came from"),
    op("ctc_loss*", B21, "it needs the lengths on the host, where they came from"),
    op("masked_fill* masked_fill_* index_fill_*", A12, "the value read goes straight back to the GPU"),
    op("allclose", A18, COMPARED).reads("allclose", "allclose"),
    op("equal", A17, COMPARED).reads("equal", "equal"),
    op("is_nonzero", A03, "Python asks for a tensor's truth to decide where to go")
        .graded(grade::R19_OPEN, grade::S01),
    as_entry(A20).kernels(&[SCALED]),
    as_entry(A16).kernels(&[FORMATTED, ROUNDED]),
    as_entry(H03).kernels(&[REDUCED]),
    as_entry(A01).reads("item", "item"),
    as_entry(A02).reads("float_scalar", "float"),
    as_entry(A02).reads("integral_scalar index_scalar", "int"),
    as_entry(A02).reads("complex_scalar float_scalar", "complex"),
    as_entry(A02).reads("invert", ""),
    // A chain's operator tells more.
    Operation { way: None, ..as_entry(A04).reads("is_nonzero bool_scalar", "bool") },
    as_entry(A05).called(By::Read, "math round", 0),
    as_entry(A06).reads("contains", "in"),
    as_entry(A21).called(By::Read, "get_scale", 0),
    as_entry(D01).reads("cpu to numpy", "cpu to numpy"),
    as_entry(D02).reads("tolist", "tolist"),
    as_entry(D03).reads("type", ""),
    as_entry(D04).reads("copy_", ""),
    // Inside `backward()`: the gradient of a copy to the CPU.
    uploads(C21, "").below("ToCopyBackward"),
    // C++ code in operators that makes a tensor of its own values, or moves its arguments.
    uploads(C22, "").below("at::detail::tensor_backend native::ctc_loss"),
    uploads(C01, "tensor as_tensor new_tensor asarray from_numpy pynew legacy_tensor_ctor"),
    uploads(C04, "copy_"),
    // Lists and tensors as indices; a single element is written by a copy.
    uploads(C05, "setitem").below("index_put applySlicing"),
    uploads(C06, "setitem"),
    uploads(C07, "getitem"),
    uploads(C09, "where"),
];

/// Where Python asks a tensor for a number: the first row whose method and functions a chain names.
const CONVERSIONS: &[Operation] = &[
    // A number that becomes an element of a tensor is only read.
    as_entry(A01).reads("index_scalar", "").below("store_scalar"),
    op("", A08, "names THPVariable_index_scalar: a tensor serves as an index, bound or size, which Python needs as a number")
        .reads("index_scalar", "")
        .unseen(grade::R18_OPEN),
    op("", A07, "names THPVariable_arange, which converts a GPU tensor into a Python number: the value decides how many elements the range has")
        .reads("arange", "")
        .below("PythonArgs::scalar")
        .unseen(grade::R18_OPEN),
    op("", A11, "converts a GPU tensor into a Python number argument: the value goes straight back to the GPU")
        .reads("", "")
        .below("PythonArgs::scalar")
        .graded(grade::R18_ARGUMENT, grade::S11),
];

/// The first row that names one of these operators, and the name.
pub fn find<'a>(names: &[&'a str]) -> Option<(&'static Operation, &'a str)> {
    let mut rows = OPERATIONS.iter().flat_map(|row| row.native.iter().map(move |known| (row, known)));
    rows.find_map(|(row, known)| {
        let all = known.strip_suffix('*');
        let is = |name: &&&str| **name == all.unwrap_or(known) || all.is_some_and(|of| overload(name, of));
        Some((row, *names.iter().find(is)?))
    })
}

/// `repeat_interleave_self_Tensor` is an overload of `repeat_interleave`: its suffix has a capital.
fn overload(name: &str, base: &str) -> bool {
    name.strip_prefix(base)
        .and_then(|r| r.strip_prefix('_'))
        .is_some_and(|r| r.contains(|c: char| c.is_ascii_uppercase()))
}

/// The entry of a copy in that direction, where its Python method and its native chain tell.
pub fn by_method<S: AsRef<str>>(method: Option<&str>, way: Direction, chain: &[S]) -> Option<PatternId> {
    CONVERSIONS
        .iter()
        .chain(OPERATIONS)
        .find(|row| row.way == Some(way) && row.is_made(method, chain))
        .map(|row| row.pattern)
}

/// The case of a verdict that needs a count or a number by the operator's name alone, where no size is seen
/// to change; `None` for other verdicts.
pub fn unseen(verdict: &Verdict) -> Option<Grade> {
    let (pattern, rule) = (verdict.pattern?, verdict.evidence.first()?.rule);
    let is = |row: &&Operation| row.pattern == pattern || row.under.iter().any(|under| under.1 == pattern);
    let unseen = CONVERSIONS.iter().chain(OPERATIONS).filter(is).find_map(|row| row.unseen);
    unseen.filter(|grade| grade.rule == rule)
}

/// What needs the number that a method, or a function below it, makes of a tensor; `None` for mere reads.
pub fn converting<S: AsRef<str>>(method: Option<&str>, chain: &[S]) -> Option<&'static Operation> {
    CONVERSIONS.iter().find(|row| row.is_made(method, chain)).filter(|row| row.pattern != A01)
}

/// The operation that Python calls by that name, where it waits to learn a size or whether it failed.
pub fn called(name: &str) -> Option<&'static Operation> {
    OPERATIONS.iter().find(|row| row.call.0 != By::Read && row.call.1.has(name))
}

/// The value that Python reads by that name.
pub fn read(name: &str) -> Option<&'static Operation> {
    OPERATIONS.iter().find(|row| row.call.0 == By::Read && row.call.1.has(name))
}

/// The entry that the kernels around a wait show; the one of the earliest rule where several fit.
pub fn around(copy: Option<Copy>, around: &Neighbours) -> Option<(PatternId, &'static Signature)> {
    let all = OPERATIONS.iter().flat_map(|row| row.kernels.iter().map(|sign| (row.pattern, sign)));
    let place = |sign: &Signature| rules::all().position(|rule| rule.id == sign.grade.rule);
    all.filter(|(_, sign)| sign.is(copy, around)).min_by_key(|(_, sign)| place(sign))
}

/// Operators that NVTX ranges name, innermost first (`ranges`: outermost first).
pub fn of_ranges<S: AsRef<str>>(ranges: &[S]) -> Vec<&str> {
    let operators = ranges.iter().rev().filter_map(|r| r.as_ref().strip_prefix("aten::"));
    operators.map(|r| r.split(", ").next().unwrap_or(r)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sites::native;
    use crate::vocabulary::HostMemory;

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
        assert_eq!(pattern(&["_local_scalar_dense", "item", "multinomial"]), Some(E16));
        assert_eq!(pattern(&["item", "normal_"]), None);
        assert_eq!(pattern(&["item", "_linalg_check_errors", "_linalg_svd", "linalg_svd"]), Some(E15));
        assert_eq!(pattern(&["copy_", "item"]), None);
    }

    #[test]
    fn names_come_from_chains_and_ranges() {
        let chain = ["at::_ops::item::call(at::Tensor const&)", "x"];
        assert!(native::operators(&chain).eq(["item"]));
        assert_eq!(
            of_ranges(&["iteration 1", "aten::is_nonzero, op_id = 3", "aten::item, op_id = 4"]),
            ["item", "is_nonzero"]
        );
    }

    fn near(before: &[&str], after: &[&str]) -> Neighbours {
        let names = |l: &[&str]| l.iter().map(|&s| s.into()).collect();
        Neighbours { before: names(before), after: names(after), awaited: None }
    }

    fn read(bytes: u64) -> Option<Copy> {
        Some(Copy { direction: Direction::DeviceToHost, bytes, host_memory: HostMemory::Pinned })
    }

    #[test]
    fn signatures_need_both_sides() {
        let nonzero = near(
            &["cub::DeviceReduceKernel<x>"],
            &["cub::DeviceCompactInitKernel", "cub::DeviceSelectSweepKernel"],
        );
        assert_eq!(around(read(4), &nonzero).map(|(_, s)| s.grade), Some(grade::R08));
        assert!(around(read(8), &nonzero).is_none());
        assert!(around(read(4), &near(&["cub::DeviceReduceKernel<x>"], &["gemm"])).is_none());
        let unique = near(
            &["DeviceSelectSweepKernel", "DeviceCompactInitKernel", "DeviceRadixSortSingleTileKernel"],
            &[],
        );
        assert_eq!(around(read(8), &unique).map(|(_, s)| s.grade), Some(grade::R09));
        assert!(around(read(4), &near(&["gemm"], &["gemm"])).is_none());
    }
}
