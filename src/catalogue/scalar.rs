//! A01 to A14: reads of single values that the user's own line asks for.

use super::{Category::*, Pattern, Strategy::*, fix};
use crate::vocabulary::Kind::*;

const READ: &str = "copy of one value (1 to 16 bytes) to pinned host memory, then cudaStreamSynchronize; no kernel of its own";
const BASE: Pattern = Pattern {
    op: "aten::_local_scalar_dense",
    trace: READ,
    versions: "the host side of the copy is pageable memory before PyTorch 2.3",
    ..Pattern::BASE
};

pub(super) const PATTERNS: &[Pattern] = &[
    Pattern {
        id: "A01",
        title: "Tensor.item()",
        triggers: &[".item()"],
        op: "aten::item, aten::_local_scalar_dense",
        why: "One value goes to the CPU, which waits until the GPU has computed it. Whether that is needed depends on \
              what happens to the value.",
        fix: fix(
            Delay,
            "keep the scalar on the GPU; read it when you log",
            "loss_sum += loss.item()",
            "loss_sum += loss.detach()\nif step % 100 == 0:\n    print(loss_sum.item() / 100)\n    loss_sum.zero_()",
            "loss_sum must be a tensor on the GPU. A value that steers the program (if, size, learning rate) cannot be read late.",
        ),
        sources: "PyTorch CUDAScalar.cu; pytorch#119202; seen in captures",
        ..BASE
    },
    Pattern {
        id: "A02",
        title: "float(), int(), complex() of a tensor",
        triggers: &["float(t)", "int(t)", "complex(t)"],
        why: "Python's conversion functions call item(): the same wait under another name.",
        fix: fix(
            Delay,
            "keep the scalar on the GPU; convert when you log",
            "history.append(float(loss))",
            "history.append(loss.detach())\n# after the loop: one wait for all\nvalues = torch.stack(history).tolist()",
            "Keeping many small tensors alive costs a little GPU memory.",
        ),
        sources: "PyTorch python_variable_methods.cpp",
        ..BASE
    },
    Pattern {
        id: "A03",
        title: "truth value of a tensor (if, while, not, and, assert)",
        triggers: &["if t:", "while t:", "not t", "t and u", "assert t", "bool(t)", "a < t < b"],
        op: "aten::is_nonzero",
        trace: "a comparison kernel, a copy of 1 byte to pinned host memory (the value's size if nothing is compared), then cudaStreamSynchronize",
        kind: Some(ControlFlow),
        why: "Python takes a branch, so it must know the value before it can go on.",
        fix: fix(
            SyncFreeApi,
            "select with torch.where; guard with torch._assert_async",
            "if (x > limit).any():\n    x = x.clamp(max=limit)",
            "x = torch.where(x > limit, limit, x)",
            "Both sides are computed. torch._assert_async reports a failure only at a later CUDA call.",
        ),
        sources: "PyTorch test_sync_warning",
        ..BASE
    },
    Pattern {
        id: "A04",
        title: "torch.is_nonzero()",
        triggers: &["torch.is_nonzero(t)"],
        op: "aten::is_nonzero",
        kind: Some(ControlFlow),
        why: "The answer is a Python bool, so the CPU waits for it.",
        fix: fix(
            SyncFreeApi,
            "compare on the GPU and select with torch.where",
            "y = a if torch.is_nonzero(flag) else b",
            "y = torch.where(flag != 0, a, b)",
            "Both a and b are computed, and must have shapes that broadcast.",
        ),
        sources: "PyTorch native_functions",
        ..BASE
    },
    Pattern {
        id: "A05",
        title: "Python builtins over tensors (max, min, sorted, math.*)",
        triggers: &["max(a, b)", "min(a, b)", "sorted(tensors)", "math.sqrt(t)", "round(t)"],
        op: "aten::is_nonzero or aten::item",
        trace: "a comparison kernel, a copy of 1 byte to pinned host memory and cudaStreamSynchronize for each comparison",
        kind: Some(ControlFlow),
        why: "Python orders the tensors itself and asks the GPU for the outcome of every comparison.",
        fix: fix(
            SyncFreeApi,
            "use torch.maximum, torch.stack(..).max(), torch.sqrt",
            "worst = max(loss_a, loss_b)\nnorm = math.sqrt(total)",
            "worst = torch.maximum(loss_a, loss_b)\nnorm = torch.sqrt(total)",
            "The results are tensors, not Python numbers.",
        ),
        sources: "NVIDIA sync-free guide, category 4",
        ..BASE
    },
    Pattern {
        id: "A06",
        title: "value in tensor",
        triggers: &["x in t"],
        op: "Tensor.__contains__",
        trace: "an equality kernel and a reduction, a copy of 1 byte to pinned host memory, then cudaStreamSynchronize",
        kind: Some(ControlFlow),
        why: "`in` must answer with a Python bool.",
        fix: fix(
            SyncFreeApi,
            "keep the answer as a GPU mask: (t == x).any()",
            "done = eos_id in tokens",
            "done = (tokens == eos_id).any()  # stays on the GPU",
            "A Python branch on the mask waits again.",
        ),
        sources: "torch/_tensor.py",
        library: super::torch(&[("torch/_tensor.py", "__contains__")]),
        ..BASE
    },
    Pattern {
        id: "A07",
        category: DynamicShapes,
        title: "a CUDA tensor used as a size, a range or a list index",
        triggers: &["range(t)", "lst[t]", "torch.zeros(t)", "x.view(t, -1)", "x.repeat(t)"],
        op: "Tensor.__index__",
        trace: "a copy of 8 bytes to pinned host memory, then cudaStreamSynchronize",
        kind: Some(DynamicShape),
        why: "Sizes and loop bounds are Python ints: the CPU cannot allocate or launch without them.",
        fix: fix(
            SyncFreeApi,
            "keep sizes as Python ints, or pad to a fixed maximum",
            "n = lengths.max()\nbuf = torch.zeros(n, device='cuda')",
            "n = max(host_lengths)  # the data loader knows them\nbuf = torch.zeros(n, device='cuda')",
            "",
        ),
        sources: "PyTorch python_arg_parser.h",
        ..BASE
    },
    Pattern {
        id: "A08",
        category: Slicing,
        title: "slice with CUDA tensors as bounds",
        triggers: &["x[i:j]"],
        op: "Tensor.__index__",
        trace: "a copy of 8 bytes to pinned host memory and cudaStreamSynchronize for each bound: two for x[i:j], four for x[i:j, i:j]",
        kind: Some(DynamicShape),
        why: "A slice needs its bounds as Python ints, and each one is read from the GPU by itself.",
        fix: fix(
            SyncFreeApi,
            "carry bounds as ints, or index_select(arange(n) + i)",
            "window = x[i:j]",
            "idx = torch.arange(n, device='cuda') + i\nwindow = x.index_select(0, idx)",
            "n = j - i must be known on the host, and i + n must not pass the end. The result is a copy, not a view. \
             torch.arange(i, j) with CUDA bounds would wait as well.",
        ),
        sources: "PyTorch python_variable_indexing.h; NVIDIA sync-free guide, category 6",
        ..BASE
    },
];
