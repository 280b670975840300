//! What the kernels around a wait show where nothing names the operation: signatures of PyTorch's own
//! kernels.
//!
//! Only light captures need these rules; chains and ranges are more certain.

use crate::profile::ops::is_collective;
use crate::rules::grade::{self, Grade};
use crate::sites::neighbours::Neighbours;
use crate::vocabulary::{Copy, Direction};
use std::sync::Arc;

/// Kernels around a D2H copy, or around a synchronisation without a copy. The number after a kernel's name is
/// how many operations away it may be.
pub struct Signature {
    pub grade: Grade,
    /// Sizes of the copy in bytes; empty: any size; `None`: there is no copy.
    bytes: Option<&'static [u64]>,
    fits: fn(&Near) -> bool,
    pub because: &'static str,
}

impl Signature {
    pub fn is(&self, copy: Option<Copy>, around: &Neighbours) -> bool {
        let sized = match (copy, self.bytes) {
            (None, None) => true,
            (Some(Copy { direction: Direction::DeviceToHost, bytes, .. }), Some(known)) => {
                known.is_empty() || known.contains(&bytes)
            }
            _ => false,
        };
        sized && (self.fits)(&Near(around))
    }
}

struct Near<'a>(&'a Neighbours);

impl Near<'_> {
    fn before(&self, parts: &str, within: usize) -> bool {
        has(&self.0.before, parts, within)
    }

    fn after(&self, parts: &str, within: usize) -> bool {
        has(&self.0.after, parts, within)
    }

    /// An all-reduce of a tensor just filled is awaited.
    fn all_reduced(&self) -> bool {
        let Some(awaited) = self.0.awaited.as_deref() else { return false };
        let mut earlier = self.0.before.iter().skip_while(|n| &***n == awaited).take(2);
        is_collective(awaited) && awaited.contains("AllReduce") && earlier.any(|n| n.contains("FillFunctor"))
    }
}

/// Kernels of `isfinite(x) & x.ne(0)` beside the comparisons, and of `.abs().double().min()` and `.max()`:
/// `_tensor_str.py` runs them first on a tensor of floats. A loop over `x[mask]` has neither.
const FINITE_NONZERO: &[&str] = &["AbsFunctor", "MulFunctor<bool", "BitwiseAndFunctor<bool"];
const EXTREMES: &[&str] = &["MinNanFunctor<double", "MaxNanFunctor<double"];
/// The kernels of a selection, `x[mask]` or `nonzero()`: some count, some select, one takes the elements.
pub const COUNTING: &str = "DeviceReduce";
pub const SELECTING: &str = "DeviceCompactInit|DeviceSelect|write_indices";
pub const TAKING: &str = "index_elementwise_kernel";
const EXTREME: &str = "MinNanFunctor|MaxNanFunctor";

pub const SCALED: Signature = Signature {
    bytes: Some(&[4]),
    grade: grade::R12,
    fits: |n| n.before("non_finite_check", 8) || n.after("amp_update_scale", 8),
    because: "the kernels around it are those of GradScaler: unscale before, scale update after; the value decides whether to step",
};
pub const DECOMPOSED: Signature = Signature {
    bytes: Some(&[1]),
    grade: grade::R11,
    fits: |n| n.before("syevd|syevj|gesvd|geqrf", 6),
    because: "an eigenvalue, singular value or QR decomposition and a reduction come before this one-byte read: the check that it succeeded",
};
pub const FACTORISED: Signature = Signature {
    bytes: Some(&[1]),
    grade: grade::R11,
    fits: |n| n.before("getrf|potrf|getri|cusolver|magma|lu_factor|trsm", 6),
    because: "a factorisation and a reduction come before this one-byte read: the check that it succeeded",
};
pub const FORMATTED: Signature = Signature {
    bytes: Some(&[4]),
    grade: grade::R16,
    fits: |n| {
        n.before(COUNTING, 2)
            && FINITE_NONZERO.iter().all(|k| n.before(k, 8))
            && EXTREMES.iter().all(|k| n.after(k, 8))
    },
    because: "the finite nonzero elements are selected, then their extremes taken in double precision: PyTorch formats a tensor to print it",
};
pub const ROUNDED: Signature = Signature {
    bytes: Some(&[1]),
    grade: grade::R16,
    fits: |n| n.before("ceil_kernel", 3) && EXTREMES.iter().all(|k| n.before(k, 6)),
    because: "extremes in double precision, then a comparison with the values rounded up: PyTorch formats a tensor to print it",
};
pub const SELECTED: Signature = Signature {
    bytes: Some(&[4]),
    grade: grade::R08,
    fits: |n| n.before(COUNTING, 2) && (n.after(SELECTING, 3) || n.after(TAKING, 3)),
    because: "a count is reduced before it and a selection launched after it: nonzero or a mask index",
};
pub const SORTED: Signature = Signature {
    bytes: Some(&[8]),
    grade: grade::R09,
    fits: |n| n.before("DeviceSelect|RunLengthEncode", 4) && n.before("RadixSort", 8),
    because: "a sort and a selection come before this count: unique",
};
pub const REPEATED: Signature = Signature {
    bytes: Some(&[1, 8]),
    grade: grade::R10,
    fits: |n| n.after("compute_cuda_kernel", 6) && n.before("DeviceScan|scan", 6),
    because: "a scan comes before it and repeat_interleave's own kernel after it: the output's size is read",
};
/// `histc` counts in the type of its input (SummaryOps.cu); `bincount` takes integers only.
pub const BINNED: Signature = Signature {
    bytes: Some(&[]),
    grade: grade::R24,
    fits: |n| {
        n.before(EXTREME, 2) && n.after("kernelHistogram1D<float, float|kernelHistogram1D<double, double", 6)
    },
    because: "a histogram of floating-point values follows: the read gave the range of its bins",
};
pub const COUNTED: Signature = Signature {
    bytes: Some(&[]),
    grade: grade::R15,
    fits: |n| n.before(EXTREME, 2) && n.after("kernelHistogram1D", 6),
    because: "a histogram kernel follows: the read gave its number of bins",
};
/// A bare stream synchronisation.
pub const REDUCED: Signature = Signature {
    bytes: None,
    grade: grade::R14,
    fits: |n| n.all_reduced(),
    because: "it waits for an all-reduce of a tensor just filled with a constant: dist.barrier()",
};

fn has(names: &[Arc<str>], parts: &str, within: usize) -> bool {
    names.iter().take(within).any(|name| has_part(name, parts))
}

/// `parts` are separated by `|`.
pub fn has_part(name: &str, parts: &str) -> bool {
    parts.split('|').any(|part| name.contains(part))
}
