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

/// The first signature that fits.
pub fn find(copy: Option<Copy>, around: &Neighbours) -> Option<Signature> {
    let before = |needle: &str, within: usize| has(&around.before, needle, within);
    let after = |needle: &str, within: usize| has(&around.after, needle, within);
    let Some(copy) = copy else { return barrier(around) };
    if copy.direction != Direction::DeviceToHost {
        return None;
    }
    let sign = |rule, pattern, kind, confidence, because| {
        Some(Signature { rule, pattern, kind, confidence, because })
    };
    let bytes = copy.bytes;
    if bytes == 4 && (before("non_finite_check", 8) || after("amp_update_scale", 8)) {
        return sign(
            "R12",
            "A20",
            Kind::ControlFlow,
            0.97,
            "the kernels around it are those of GradScaler: unscale before, scale update after; the value decides whether to step",
        );
    }
    if bytes == 1
        && ["getrf", "potrf", "getri", "geqrf", "syevd", "gesvd", "cusolver", "magma", "lu_factor", "trsm"]
            .iter()
            .any(|k| before(k, 6))
    {
        return sign(
            "R11",
            "E01",
            Kind::ErrorCheck,
            0.9,
            "a factorisation and a reduction come before this one-byte read: the check that it succeeded",
        );
    }
    if bytes == 4
        && before("DeviceReduce", 2)
        && ["DeviceSelect", "DeviceCompactInit", "write_indices", "index_elementwise_kernel"]
            .iter()
            .any(|k| after(k, 3))
    {
        return sign(
            "R08",
            "B01",
            Kind::DynamicShape,
            0.95,
            "a count is reduced before it and a selection launched after it: nonzero or a mask index",
        );
    }
    if bytes == 8 && (before("DeviceSelect", 4) || before("RunLengthEncode", 4)) && before("RadixSort", 8) {
        return sign(
            "R09",
            "B07",
            Kind::DynamicShape,
            0.9,
            "a sort and a selection come before this count: unique",
        );
    }
    if matches!(bytes, 1 | 8)
        && (after("compute_cuda_kernel", 6) && (before("DeviceScan", 6) || before("scan", 6)))
    {
        return sign(
            "R10",
            "B10",
            Kind::DynamicShape,
            0.95,
            "a scan comes before it and repeat_interleave's own kernel after it: the output's size is read",
        );
    }
    if after("kernelHistogram1D", 6) {
        return sign(
            "R15",
            "B12",
            Kind::DynamicShape,
            0.9,
            "a histogram kernel follows: the read gave its number of bins",
        );
    }
    None
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
