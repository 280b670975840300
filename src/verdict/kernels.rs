//! What the kernels around a wait say, where nothing names the operation: signatures of PyTorch's own kernels.
//!
//! Only light captures need these rules; chains and ranges are surer.

use crate::profile::ops::is_collective;
use crate::rules::grade::{self, Grade};
use crate::sites::neighbours::Neighbours;
use crate::vocabulary::PatternId::{self, *};
use crate::vocabulary::{Copy, Direction};
use std::sync::Arc;

/// A verdict from the kernels around a copy to the host.
pub struct Signature {
    pub grade: Grade,
    pub pattern: PatternId,
    /// Sizes of the copy in bytes; empty: any.
    bytes: &'static [u64],
    fits: fn(&Near) -> bool,
    pub because: &'static str,
}

const fn copies(
    bytes: &'static [u64],
    (grade, pattern): (Grade, PatternId),
    fits: fn(&Near) -> bool,
    because: &'static str,
) -> Signature {
    Signature { grade, pattern, bytes, fits, because }
}

/// Names near a wait.
struct Near<'a>(&'a Neighbours);

impl Near<'_> {
    fn before(&self, needle: &str, within: usize) -> bool {
        has(&self.0.before, needle, within)
    }

    fn after(&self, needle: &str, within: usize) -> bool {
        has(&self.0.after, needle, within)
    }

    /// The smallest or the largest value was asked for.
    fn extreme(&self) -> bool {
        self.before("MinNanFunctor", 2) || self.before("MaxNanFunctor", 2)
    }

    /// A one-element all-reduce is awaited.
    fn all_reduced(&self) -> bool {
        let Some(awaited) = self.0.awaited.as_deref() else { return false };
        let mut earlier = self.0.before.iter().skip_while(|n| &***n == awaited).take(2);
        is_collective(awaited) && awaited.contains("AllReduce") && earlier.any(|n| n.contains("FillFunctor"))
    }
}

/// Kernels of factorisations, by library routine.
const FACTORISATIONS: &[&str] = &["getrf", "potrf", "getri", "cusolver", "magma", "lu_factor", "trsm"];
/// The same of those that have no form without a check.
const DECOMPOSITIONS: &[&str] = &["syevd", "syevj", "gesvd", "geqrf"];
/// Kernels that follow the count of nonzero elements.
const SELECTIONS: &[&str] =
    &["DeviceSelect", "DeviceCompactInit", "write_indices", "index_elementwise_kernel"];

/// Kernels of `isfinite(x) & x.ne(0)` beside the comparisons, and of `.abs().double().min()` and `.max()`: what
/// `_tensor_str.py` does first with a tensor of floats. A loop over `x[mask]` has neither (it was once taken for one).
const FINITE_NONZERO: &[&str] = &["AbsFunctor", "MulFunctor<bool", "BitwiseAndFunctor<bool"];
const EXTREMES: &[&str] = &["MinNanFunctor<double", "MaxNanFunctor<double"];

/// `histc` counts in the type of its input (SummaryOps.cu); `bincount` takes integers only.
const OF_FLOATS: &[&str] = &["kernelHistogram1D<float, float", "kernelHistogram1D<double, double"];

/// Most certain first. Numbers after a name: how many ops away it may be.
const SIGNATURES: &[Signature] = &[
    copies(
        &[4],
        (grade::R12, A20),
        |n| n.before("non_finite_check", 8) || n.after("amp_update_scale", 8),
        "the kernels around it are those of GradScaler: unscale before, scale update after; the value decides whether to step",
    ),
    copies(
        &[1],
        (grade::R11, E15),
        |n| DECOMPOSITIONS.iter().any(|k| n.before(k, 6)),
        "an eigenvalue, singular value or QR decomposition and a reduction come before this one-byte read: the check that it succeeded",
    ),
    copies(
        &[1],
        (grade::R11, E01),
        |n| FACTORISATIONS.iter().any(|k| n.before(k, 6)),
        "a factorisation and a reduction come before this one-byte read: the check that it succeeded",
    ),
    copies(
        &[4],
        (grade::R16, A16),
        |n| {
            n.before("DeviceReduce", 2)
                && FINITE_NONZERO.iter().all(|k| n.before(k, 8))
                && EXTREMES.iter().all(|k| n.after(k, 8))
        },
        "the finite nonzero elements are selected, then their extremes taken in double precision: PyTorch formats a tensor to print it",
    ),
    copies(
        &[1],
        (grade::R16, A16),
        |n| n.before("ceil_kernel", 3) && EXTREMES.iter().all(|k| n.before(k, 6)),
        "extremes in double precision, then a comparison with the values rounded up: PyTorch formats a tensor to print it",
    ),
    copies(
        &[4],
        (grade::R08, B01),
        |n| n.before("DeviceReduce", 2) && SELECTIONS.iter().any(|k| n.after(k, 3)),
        "a count is reduced before it and a selection launched after it: nonzero or a mask index",
    ),
    copies(
        &[8],
        (grade::R09, B07),
        |n| (n.before("DeviceSelect", 4) || n.before("RunLengthEncode", 4)) && n.before("RadixSort", 8),
        "a sort and a selection come before this count: unique",
    ),
    copies(
        &[1, 8],
        (grade::R10, B10),
        |n| n.after("compute_cuda_kernel", 6) && (n.before("DeviceScan", 6) || n.before("scan", 6)),
        "a scan comes before it and repeat_interleave's own kernel after it: the output's size is read",
    ),
    copies(
        &[],
        (grade::R24, B13),
        |n| n.extreme() && OF_FLOATS.iter().any(|kernel| n.after(kernel, 6)),
        "a histogram of floating-point values follows: the read gave the range of its bins",
    ),
    copies(
        &[],
        (grade::R15, B12),
        |n| n.extreme() && n.after("kernelHistogram1D", 6),
        "a histogram kernel follows: the read gave its number of bins",
    ),
];

/// A bare stream synchronisation.
const BARRIER: Signature = copies(
    &[],
    (grade::R14, H03),
    |n| n.all_reduced(),
    "it waits for an all-reduce of a tensor just filled with a constant: dist.barrier()",
);

/// The first signature that fits.
pub fn find(copy: Option<Copy>, around: &Neighbours) -> Option<&'static Signature> {
    let fits = |one: &&Signature| (one.fits)(&Near(around));
    match copy {
        None => Some(&BARRIER).filter(fits),
        Some(copy) if copy.direction == Direction::DeviceToHost => {
            SIGNATURES.iter().filter(|s| s.bytes.is_empty() || s.bytes.contains(&copy.bytes)).find(fits)
        }
        Some(_) => None,
    }
}

fn has(names: &[Arc<str>], needle: &str, within: usize) -> bool {
    names.iter().take(within).any(|n| n.contains(needle))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::HostMemory;

    fn around(before: &[&str], after: &[&str]) -> Neighbours {
        let names = |l: &[&str]| l.iter().map(|&s| s.into()).collect();
        Neighbours { before: names(before), after: names(after), awaited: None }
    }

    fn read(bytes: u64) -> Option<Copy> {
        Some(Copy { direction: Direction::DeviceToHost, bytes, host_memory: HostMemory::Pinned })
    }

    #[test]
    fn signatures_need_both_sides() {
        let nonzero = around(
            &["cub::DeviceReduceKernel<x>"],
            &["cub::DeviceCompactInitKernel", "cub::DeviceSelectSweepKernel"],
        );
        assert_eq!(find(read(4), &nonzero).map(|s| s.grade), Some(grade::R08));
        assert!(find(read(8), &nonzero).is_none());
        assert!(find(read(4), &around(&["cub::DeviceReduceKernel<x>"], &["gemm"])).is_none());
        let unique = around(
            &["DeviceSelectSweepKernel", "DeviceCompactInitKernel", "DeviceRadixSortSingleTileKernel"],
            &[],
        );
        assert_eq!(find(read(8), &unique).map(|s| s.grade), Some(grade::R09));
        assert!(find(read(4), &around(&["gemm"], &["gemm"])).is_none());
    }
}
