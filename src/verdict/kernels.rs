//! What the kernels around a wait say, where nothing names the operation: signatures of PyTorch's own kernels.
//!
//! Only light captures need these rules; chains and ranges are surer.

use crate::sites::neighbours::Neighbours;
use crate::vocabulary::{Copy, Direction, Kind};

/// A verdict from kernels.
pub struct Signature {
    pub rule: &'static str,
    pub pattern: &'static str,
    pub kind: Kind,
    /// Prior of the catalogue, section 4.1; the signatures come from source reading.
    pub confidence: f64,
    pub because: &'static str,
}

/// A copy to the host of some size among certain kernels.
struct Rule {
    rule: &'static str,
    pattern: &'static str,
    kind: Kind,
    confidence: f64,
    /// Sizes of the copy in bytes; empty: any.
    bytes: &'static [u64],
    fits: fn(&Near) -> bool,
    because: &'static str,
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
}

/// Kernels of factorisations, by library routine.
const FACTORISATIONS: &[&str] =
    &["getrf", "potrf", "getri", "geqrf", "syevd", "gesvd", "cusolver", "magma", "lu_factor", "trsm"];
/// Kernels that follow the count of nonzero elements.
const SELECTIONS: &[&str] =
    &["DeviceSelect", "DeviceCompactInit", "write_indices", "index_elementwise_kernel"];

/// Kernels of `isfinite(x) & x.ne(0)` beside the comparisons, and of `.abs().double().min()` and `.max()`: what
/// `_tensor_str.py` does first with a tensor of floats. A loop over `x[mask]` has neither (it was once taken for one).
const FINITE_NONZERO: &[&str] = &["AbsFunctor", "MulFunctor<bool", "BitwiseAndFunctor<bool"];
const EXTREMES: &[&str] = &["MinNanFunctor<double", "MaxNanFunctor<double"];

/// Most certain first. Numbers after a name: how many ops away it may be.
const RULES: &[Rule] = &[
    Rule {
        rule: "R12",
        pattern: "A20",
        kind: Kind::ControlFlow,
        confidence: 0.97,
        bytes: &[4],
        fits: |n| n.before("non_finite_check", 8) || n.after("amp_update_scale", 8),
        because: "the kernels around it are those of GradScaler: unscale before, scale update after; the value decides whether to step",
    },
    Rule {
        rule: "R11",
        pattern: "E01",
        kind: Kind::ErrorCheck,
        confidence: 0.9,
        bytes: &[1],
        fits: |n| FACTORISATIONS.iter().any(|k| n.before(k, 6)),
        because: "a factorisation and a reduction come before this one-byte read: the check that it succeeded",
    },
    Rule {
        rule: "R16",
        pattern: "A16",
        kind: Kind::DebugPrint,
        confidence: 0.9,
        bytes: &[4],
        fits: |n| {
            n.before("DeviceReduce", 2)
                && FINITE_NONZERO.iter().all(|k| n.before(k, 8))
                && EXTREMES.iter().all(|k| n.after(k, 8))
        },
        because: "the finite nonzero elements are selected, then their extremes taken in double precision: PyTorch formats a tensor to print it",
    },
    Rule {
        rule: "R16",
        pattern: "A16",
        kind: Kind::DebugPrint,
        confidence: 0.9,
        bytes: &[1],
        fits: |n| n.before("ceil_kernel", 3) && EXTREMES.iter().all(|k| n.before(k, 6)),
        because: "extremes in double precision, then a comparison with the values rounded up: PyTorch formats a tensor to print it",
    },
    Rule {
        rule: "R08",
        pattern: "B01",
        kind: Kind::DynamicShape,
        confidence: 0.95,
        bytes: &[4],
        fits: |n| n.before("DeviceReduce", 2) && SELECTIONS.iter().any(|k| n.after(k, 3)),
        because: "a count is reduced before it and a selection launched after it: nonzero or a mask index",
    },
    Rule {
        rule: "R09",
        pattern: "B07",
        kind: Kind::DynamicShape,
        confidence: 0.9,
        bytes: &[8],
        fits: |n| (n.before("DeviceSelect", 4) || n.before("RunLengthEncode", 4)) && n.before("RadixSort", 8),
        because: "a sort and a selection come before this count: unique",
    },
    Rule {
        rule: "R10",
        pattern: "B10",
        kind: Kind::DynamicShape,
        confidence: 0.95,
        bytes: &[1, 8],
        fits: |n| n.after("compute_cuda_kernel", 6) && (n.before("DeviceScan", 6) || n.before("scan", 6)),
        because: "a scan comes before it and repeat_interleave's own kernel after it: the output's size is read",
    },
    Rule {
        rule: "R15",
        pattern: "B12",
        kind: Kind::DynamicShape,
        confidence: 0.9,
        bytes: &[],
        fits: |n| n.after("kernelHistogram1D", 6),
        because: "a histogram kernel follows: the read gave its number of bins",
    },
];

/// The first signature that fits.
pub fn find(copy: Option<Copy>, around: &Neighbours) -> Option<Signature> {
    let Some(copy) = copy else { return barrier(around) };
    if copy.direction != Direction::DeviceToHost {
        return None;
    }
    let near = Near(around);
    let sized = |r: &&Rule| r.bytes.is_empty() || r.bytes.contains(&copy.bytes);
    let rule = RULES.iter().filter(sized).find(|r| (r.fits)(&near))?;
    let Rule { rule, pattern, kind, confidence, because, .. } = *rule;
    Some(Signature { rule, pattern, kind, confidence, because })
}

/// A barrier: a one-element all-reduce, then a bare stream synchronisation.
fn barrier(around: &Neighbours) -> Option<Signature> {
    let awaited = around.awaited.as_deref()?;
    let filled =
        around.before.iter().skip_while(|n| &***n == awaited).take(2).any(|n| n.contains("FillFunctor"));
    (awaited.contains("ncclDevKernel_AllReduce") && filled).then_some(Signature {
        rule: "R14",
        pattern: "H03",
        kind: Kind::Explicit,
        confidence: 0.9,
        because: "it waits for an all-reduce of a tensor just filled with a constant: dist.barrier()",
    })
}

fn has(names: &[std::sync::Arc<str>], needle: &str, within: usize) -> bool {
    names.iter().take(within).any(|n| n.contains(needle))
}

/// Whether an op's name is a collective of NCCL.
pub fn is_collective(name: &str) -> bool {
    name.starts_with("ncclDevKernel") || name.starts_with("ncclKernel")
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
        assert_eq!(find(read(4), &nonzero).map(|s| s.rule), Some("R08"));
        assert!(find(read(8), &nonzero).is_none());
        assert!(find(read(4), &around(&["cub::DeviceReduceKernel<x>"], &["gemm"])).is_none());
        let unique = around(
            &["DeviceSelectSweepKernel", "DeviceCompactInitKernel", "DeviceRadixSortSingleTileKernel"],
            &[],
        );
        assert_eq!(find(read(8), &unique).map(|s| s.rule), Some("R09"));
        assert!(find(read(4), &around(&["gemm"], &["gemm"])).is_none());
    }
}
