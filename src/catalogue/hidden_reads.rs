//! A15 to A34: reads of values inside PyTorch's own code: printing, comparing, optimizers, validation.

use super::{Category::*, Pattern, STREAM_SYNC, Strategy::*, fix, torch};
use crate::vocabulary::Kind::*;

const BOOL_READ: &str = "comparison and reduction kernels, a copy of 1 byte to pinned host memory, then cudaStreamSynchronize";
const BASE: Pattern = Pattern { op: "aten::_local_scalar_dense", trace: BOOL_READ, ..Pattern::BASE };

pub(super) const PATTERNS: &[Pattern] = &[
    Pattern {
        id: "A15",
        title: "formatting a scalar tensor (f-string, format, %)",
        triggers: &["f\"{t}\"", "format(t)", "\"%f\" % t"],
        op: "Tensor.__format__ -> aten::item",
        trace: "a copy of one value to pinned host memory, then cudaStreamSynchronize",
        why: "Text needs the digits now. Where the text goes decides: a log line can be written later or less often.",
        fix: fix(
            Delay,
            "format every N steps, after the step's work is queued",
            "bar.set_description(f'loss {loss:.3f}')",
            "if step % 50 == 0:\n    bar.set_description(f'loss {loss:.3f}')",
            "",
        ),
        sources: "torch/_tensor.py",
        library: torch(&[("torch/_tensor.py", "__format__")]),
        ..BASE
    },
    Pattern {
        id: "A16",
        title: "print(), repr() or str() of a CUDA tensor",
        triggers: &["print(t)", "repr(t)", "str(t)", "logging.info(\"%s\", t)"],
        op: "torch._tensor_str",
        trace: "a burst: a selection with its count, one scalar copy and cudaStreamSynchronize per printed element (up to 1000), then a pageable copy",
        kind: Some(DebugPrint),
        why: "Formatting reads every printed element by itself, only to make text.",
        fix: fix(
            Remove,
            "drop the print, or print(t.cpu()): one wait instead of many",
            "print(loss)",
            "if step % 100 == 0:\n    print(loss.cpu())",
            "",
        ),
        sources: "torch/_tensor_str.py",
        library: torch(&[
            ("torch/_tensor_str.py", ""),
            ("torch/_tensor.py", "__repr__"),
            ("torch/_tensor.py", "__str__"),
        ]),
        ..BASE
    },
    Pattern {
        id: "A17",
        title: "torch.equal()",
        triggers: &["torch.equal(a, b)", "a.equal(b)"],
        op: "aten::equal",
        why: "It returns a Python bool, so the comparison must be finished.",
        fix: fix(
            SyncFreeApi,
            "keep the answer on the GPU: (a == b).all()",
            "same = torch.equal(a, b)",
            "same = (a == b).all()  # a CUDA tensor",
            "Shapes must agree beforehand. Branching on the tensor waits again; for an assertion use torch._assert_async.",
        ),
        sources: "PyTorch Equal.cpp",
        ..BASE
    },
    Pattern {
        id: "A18",
        title: "torch.allclose()",
        triggers: &["torch.allclose(a, b)", "a.allclose(b)"],
        op: "aten::allclose",
        why: "It returns a Python bool, so several kernels must finish first.",
        fix: fix(
            SyncFreeApi,
            "keep the answer on the GPU: torch.isclose(a, b).all()",
            "ok = torch.allclose(a, b)",
            "ok = torch.isclose(a, b).all()\ntorch._assert_async(ok)",
            "A failing _assert_async shows up at a later CUDA call and leaves the context unusable.",
        ),
        sources: "PyTorch TensorCompare.cpp",
        ..BASE
    },
    Pattern {
        id: "A19",
        title: "clip_grad_norm_(error_if_nonfinite=True)",
        triggers: &["clip_grad_norm_(params, max_norm, error_if_nonfinite=True)"],
        op: "torch.nn.utils.clip_grad_norm_",
        trace: "norm kernels over all gradients, a copy of 1 byte to pinned host memory, then cudaStreamSynchronize",
        kind: Some(ControlFlow),
        intended: true,
        why: "It raises an exception when the norm is not finite, so Python has to see the norm every step.",
        fix: fix(
            SyncFreeApi,
            "leave error_if_nonfinite at False; check now and then",
            "clip_grad_norm_(params, 1.0, error_if_nonfinite=True)",
            "norm = clip_grad_norm_(params, 1.0)\nif step % 100 == 0 and not torch.isfinite(norm):\n    raise RuntimeError('gradient norm is not finite')",
            "A bad step is applied before you notice: keep the check where that is not acceptable.",
        ),
        sources: "torch/nn/utils/clip_grad.py",
        library: torch(&[
            ("torch/nn/utils/clip_grad.py", "clip_grad_norm_"),
            ("torch/nn/utils/clip_grad.py", "_get_total_norm"),
            ("torch/nn/utils/clip_grad.py", "get_total_norm"),
        ]),
        ..BASE
    },
    Pattern {
        id: "A20",
        title: "GradScaler.step()",
        triggers: &["scaler.step(optimizer)"],
        op: "GradScaler._maybe_opt_step",
        trace: "the unscale kernel, a copy of 4 bytes to pinned host memory and cudaStreamSynchronize per device, then the optimizer's kernels or none",
        kind: Some(ControlFlow),
        why: "The CPU must know whether a gradient overflowed before it launches or skips the optimizer step.",
        fix: fix(
            SyncFreeApi,
            "use a fused optimizer, or train in bfloat16",
            "opt = torch.optim.AdamW(params)\nscaler.step(opt)",
            "opt = torch.optim.AdamW(params, fused=True)\nscaler.step(opt)  # skips the step on the GPU",
            "fused=True exists for Adam, AdamW, SGD and Adagrad. Numbers may differ in the last bits.",
        ),
        sources: "torch/amp/grad_scaler.py; NVIDIA sync-free guide, category 4",
        library: torch(&[
            ("torch/amp/grad_scaler.py", "_maybe_opt_step"),
            ("torch/amp/grad_scaler.py", "step"),
            ("torch/cuda/amp/grad_scaler.py", "_maybe_opt_step"),
            ("torch/cuda/amp/grad_scaler.py", "step"),
        ]),
        ..BASE
    },
];
