//! N01 to N07: calls that look like waits and are none. They must not be reported.

use super::{Category::*, Pattern, PatternId::*, Strategy::*};

const BASE: Pattern = Pattern::BASE
    .category(NotAWait)
    .trace("kernels only")
    .driver_api("none")
    .sources("PyTorch sources, test_sync_warning")
    .fix(Leave, "nothing to do: does not wait");

pub(super) const PATTERNS: &[Pattern] = &[
    BASE.entry(N01, "tensors created on the GPU")
        .triggers(&[
            "torch.zeros(n, device='cuda')",
            "torch.ones(n, device='cuda')",
            "torch.empty(n, device='cuda')",
            "torch.full((n,), 1.0, device='cuda')",
            "torch.randn(n, device='cuda')",
            "torch.arange(n, device='cuda')",
        ])
        .op("aten::fill_, aten::arange")
        .trace("a fill kernel")
        .why("The values are computed on the GPU; nothing is uploaded."),
    BASE.entry(N02, "indexing with GPU tensors, slices and numbers")
        .triggers(&[
            "x[idx_gpu]",
            "x.index_select(0, idx)",
            "x.gather(1, idx)",
            "x.scatter_(1, idx, src)",
            "x.masked_fill_(m, 0)",
            "x[1:3] = 0",
        ])
        .op("aten::index, aten::scatter_, aten::masked_fill_")
        .why("Indices are on the GPU already and the result's size is known."),
    BASE.entry(N03, "selection and reduction that stay on the GPU")
        .triggers(&[
            "torch.where(cond, x, 0)",
            "t.any()",
            "t.all()",
            "t.max()",
            "t.sum()",
            "torch.isnan(x).any()",
        ])
        .op("aten::where, aten::any, aten::max")
        .why("The result is a tensor; only turning it into a Python value waits."),
    BASE.entry(N04, "ops with a size known beforehand")
        .triggers(&[
            "torch.topk(x, k)",
            "torch.sort(x)",
            "torch.randperm(n, device='cuda')",
            "torch.multinomial(p, 1)",
            "F.one_hot(i, num_classes=C)",
            "torch.repeat_interleave(x, r, output_size=N)",
            "torch.nonzero_static(x, size=N)",
            "x.masked_scatter_(m, src)",
        ])
        .op("aten::topk, aten::sort, aten::multinomial")
        .why("The output's size is an argument or follows from the input's shape.")
        .versions("torch.multinomial waited before PyTorch 2.6: E16"),
    BASE.entry(N05, "a CPU scalar tensor in arithmetic with a CUDA tensor")
        .triggers(&["x_gpu * cpu_scalar"])
        .op("TensorIterator")
        .why("The value is on the CPU already and is passed as a kernel argument."),
    BASE.entry(N06, "gradient clipping and fused optimizers")
        .triggers(&[
            "clip_grad_norm_(params, 1.0)",
            "clip_grad_value_(params, 1.0)",
            "torch.optim.AdamW(params, fused=True)",
        ])
        .op("aten::_foreach_norm, aten::_fused_adamw_")
        .why("Norm, scale and update stay on the GPU."),
    BASE.entry(N07, "queries, stream ordering, full launch queue")
        .triggers(&["cudaStreamWaitEvent", "cudaEventQuery", "cudaEventRecord", "cudaLaunchKernel"])
        .op("CUDA runtime calls")
        .trace("short calls; a long cudaLaunchKernel means that the queue is full")
        .why("None of them waits for a result. A full launch queue shows a CPU well ahead of the GPU."),
];
