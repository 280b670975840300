//! A15 to A34: reads of values inside PyTorch's own code: printing, comparing, optimizers, validation; A35: guards of the
//! program's own.

use super::{
    Category::{self, *},
    Pattern,
    Strategy::*,
    fix, torch,
};
use crate::vocabulary::Kind::{self, *};

const BOOL_READ: &str =
    "comparison and reduction kernels, a copy of 1 byte to pinned host memory, then cudaStreamSynchronize";
const BASE: Pattern = Pattern { op: "aten::_local_scalar_dense", trace: BOOL_READ, ..Pattern::BASE };

pub(super) const PATTERNS: &[Pattern] = &[
    Pattern {
        id: "A15",
        title: "formatting a scalar tensor (f-string, format, %)",
        triggers: &["f\"{t}\"", "format(t)", "\"%f\" % t"],
        op: "Tensor.__format__ -> aten::item",
        trace: "a copy of one value to pinned host memory, then cudaStreamSynchronize",
        why: "Text needs the digits now. Where the text goes decides: a log line can be written later or less often.",
        fix: fix(Delay, "format every N steps, after the step's work is queued")
            .before("bar.set_description(f'loss {loss:.3f}')")
            .after("if step % 50 == 0:\n    bar.set_description(f'loss {loss:.3f}')"),
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
        fix: fix(Remove, "print(t.cpu()) every N steps: one wait instead of many")
            .before("print(loss)")
            .after("if step % 100 == 0:\n    print(loss.cpu())")
            .or(&["drop the print"]),
        sources: "torch/_tensor_str.py",
        library: torch(&[("torch/_tensor_str.py", ""), ("torch/_tensor.py", "__repr__ __str__")]),
        ..BASE
    },
    Pattern {
        id: "A17",
        title: "torch.equal()",
        triggers: &["torch.equal(a, b)", "a.equal(b)"],
        op: "aten::equal",
        why: "It returns a Python bool, so the comparison must be finished.",
        fix: fix(SyncFreeApi, "keep the answer on the GPU: (a == b).all()")
            .before("same = torch.equal(a, b)")
            .after("same = (a == b).all()  # a CUDA tensor")
            .mind("Shapes must agree beforehand. Branching on the tensor waits again; for an assertion use torch._assert_async."),
        sources: "PyTorch Equal.cpp",
        ..BASE
    },
    Pattern {
        id: "A18",
        title: "torch.allclose()",
        triggers: &["torch.allclose(a, b)", "a.allclose(b)"],
        op: "aten::allclose",
        why: "It returns a Python bool, so several kernels must finish first.",
        fix: fix(SyncFreeApi, "keep the answer on the GPU: torch.isclose(a, b).all()")
            .before("ok = torch.allclose(a, b)")
            .after("ok = torch.isclose(a, b).all()\ntorch._assert_async(ok)")
            .mind("A failing _assert_async shows up at a later CUDA call and leaves the context unusable."),
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
        fix: fix(SyncFreeApi, "leave error_if_nonfinite at False, check every N steps")
            .before("clip_grad_norm_(params, 1.0, error_if_nonfinite=True)")
            .after("norm = clip_grad_norm_(params, 1.0)\nif step % 100 == 0 and not torch.isfinite(norm):\n    raise RuntimeError('gradient norm is not finite')")
            .mind("A bad step is applied before you notice: keep the check where that is not acceptable."),
        sources: "torch/nn/utils/clip_grad.py",
        library: torch(&[("torch/nn/utils/clip_grad.py", "clip_grad_norm_ _get_total_norm get_total_norm")]),
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
        fix: fix(SyncFreeApi, "use a fused optimizer: it skips the step on the GPU")
            .before("opt = torch.optim.AdamW(params)  # once\nscaler.step(opt)")
            .after("opt = torch.optim.AdamW(params, fused=True)  # once\nscaler.step(opt)  # skips the step on the GPU")
            .mind("fused=True exists for Adam, AdamW, SGD and Adagrad. Numbers may differ in the last bits.")
            .or(&["train in bfloat16, without a scaler"]),
        sources: "torch/amp/grad_scaler.py; NVIDIA sync-free guide, category 4",
        library: torch(&[
            ("torch/amp/grad_scaler.py", "_maybe_opt_step step"),
            ("torch/cuda/amp/grad_scaler.py", "_maybe_opt_step step"),
        ]),
        ..BASE
    },
    Pattern {
        id: "A21",
        title: "GradScaler.get_scale()",
        triggers: &["scaler.get_scale()"],
        op: "GradScaler.get_scale -> aten::item",
        trace: "a copy of 4 bytes to pinned host memory, then cudaStreamSynchronize",
        why: "The scale lives on the GPU. Reading it for a log can wait; reading it to detect a skipped step cannot.",
        fix: fix(Delay, "read the scale every N steps only")
            .before("log('scale', scaler.get_scale())")
            .after("if step % 100 == 0:\n    log('scale', scaler.get_scale())")
            .mind("Code that compares the scale before and after update() to detect a skipped step needs it every step."),
        sources: "torch/amp/grad_scaler.py",
        library: torch(&[
            ("torch/amp/grad_scaler.py", "get_scale"),
            ("torch/cuda/amp/grad_scaler.py", "get_scale"),
        ]),
        ..BASE
    },
    Pattern {
        id: "A22",
        title: "optimizer state 'step' on the GPU",
        triggers: &["optimizer.step()"],
        op: "torch.optim.optimizer._get_value -> aten::item",
        trace: "a copy of 4 bytes to pinned host memory and cudaStreamSynchronize for each parameter",
        kind: Some(RoundTrip),
        why: "A non-capturable optimizer computes its bias correction on the CPU and reads each parameter's step counter back. \
              The counters belong on the CPU; a checkpoint load often moves them to the GPU.",
        fix: fix(SyncFreeApi, "put state['step'] on the CPU")
            .before("optimizer.load_state_dict(torch.load(path, map_location='cuda'))")
            .after("optimizer.load_state_dict(torch.load(path, map_location='cpu'))\nfor state in optimizer.state.values():\n    state['step'] = state['step'].cpu()")
            .mind("With fused=True or capturable=True the counters must stay on the GPU.")
            .or(&["fused=True or capturable=True, with the counters left on the GPU"]),
        sources: "pytorch#128208, pytorch#74424, Lightning#19955",
        library: torch(&[("torch/optim/optimizer.py", "_get_value")]),
        ..BASE
    },
    Pattern {
        id: "A23",
        title: "torch.optim.LBFGS",
        triggers: &["torch.optim.LBFGS(params)"],
        op: "LBFGS.step",
        trace: "many scalar copies with cudaStreamSynchronize per step",
        kind: Some(ControlFlow),
        why: "The line search runs on the CPU and compares losses and directional derivatives at every trial.",
        fix: fix(Offload, "use a first-order optimizer")
            .before("opt = torch.optim.LBFGS(params)  # once\nopt.step(closure)")
            .after("opt = torch.optim.AdamW(params, fused=True)  # once\nclosure()\nopt.step()")
            .mind("Another optimizer converges differently."),
        sources: "torch/optim/lbfgs.py",
        library: torch(&[("torch/optim/lbfgs.py", "")]),
        ..BASE
    },
    Pattern {
        id: "A24",
        title: "ReduceLROnPlateau.step(metric)",
        triggers: &["scheduler.step(metric)"],
        op: "ReduceLROnPlateau.step -> aten::item",
        trace: "a copy of one value to pinned host memory, then cudaStreamSynchronize",
        kind: Some(CpuCompute),
        why: "The learning rate is decided on the CPU from the metric's value.",
        fix: fix(Delay, "read the value once, for log and scheduler")
            .before("print(val_loss.item())\nscheduler.step(val_loss)")
            .after("value = val_loss.item()  # one read for both\nprint(value)\nscheduler.step(value)")
            .or(&["call the scheduler once per epoch"]),
        sources: "torch/optim/lr_scheduler.py",
        library: torch(&[("torch/optim/lr_scheduler.py", "step is_better")]),
        ..BASE
    },
    Pattern {
        id: "A25",
        title: "autograd anomaly detection",
        triggers: &["torch.autograd.set_detect_anomaly(True)", "torch.autograd.detect_anomaly()"],
        op: "aten::_is_any_true after each backward op",
        trace: "isnan and reduction kernels, a copy of 1 byte and cudaStreamSynchronize after every backward op, on an autograd thread without Python frames",
        kind: Some(Kind::ErrorCheck),
        intended: true,
        why: "A debugging switch that tests the result of each backward op for NaN.",
        fix: fix(Remove, "switch anomaly detection off outside debugging")
            .before("torch.autograd.set_detect_anomaly(True)")
            .after("torch.autograd.set_detect_anomaly(args.debug)"),
        sources: "PyTorch autograd engine.cpp",
        ..BASE
    },
    Pattern {
        id: "A26",
        category: Category::ErrorCheck,
        title: "argument checks of torch.distributions",
        triggers: &["torch.distributions.Normal(loc, scale)", "dist.log_prob(value)"],
        op: "Distribution.__init__, Distribution._validate_sample",
        trace: "constraint kernels and a reduction, a copy of 1 byte to pinned host memory and cudaStreamSynchronize per parameter and per log_prob",
        kind: Some(Kind::ErrorCheck),
        why: "Parameters and samples are tested for validity, and a failed test must raise at once. On by default since 1.8.",
        fix: fix(Remove, "pass validate_args=False")
            .before("d = torch.distributions.Normal(loc, scale)")
            .after("d = torch.distributions.Normal(loc, scale, validate_args=False)")
            .mind("Invalid parameters then give NaN instead of an error. Distribution.set_default_validate_args(False) does it for all."),
        sources: "torch/distributions/distribution.py; pytorch#48743",
        library: torch(&[
            ("torch/distributions/distribution.py", "__init__ _validate_sample"),
            ("torch/distributions/distribution.py", ""),
        ]),
        ..BASE
    },
    Pattern {
        id: "A27",
        category: Category::ErrorCheck,
        title: "TransformerEncoder/Decoder without is_causal",
        triggers: &[
            "nn.TransformerEncoder(layer, n)(x, mask=m)",
            "nn.TransformerDecoder(layer, n)(x, memory, tgt_mask=m)",
        ],
        op: "_detect_is_causal_mask",
        kind: Some(Kind::ErrorCheck),
        why: "The mask is compared with a causal one to find out something that the caller knows.",
        fix: fix(SyncFreeApi, "pass is_causal=")
            .before("out = encoder(x, mask=causal_mask)")
            .after("out = encoder(x, mask=causal_mask, is_causal=True)")
            .mind("is_causal=True with a mask that is not causal gives wrong results: False for those."),
        sources: "torch/nn/modules/transformer.py",
        library: torch(&[("torch/nn/modules/transformer.py", "_detect_is_causal_mask")]),
        ..BASE
    },
    Pattern {
        id: "A28",
        category: DynamicShapes,
        title: "TransformerEncoder fast path with a padding mask",
        triggers: &["nn.TransformerEncoder(layer, n)(x, src_key_padding_mask=m)"],
        op: "aten::_nested_tensor_from_mask_left_aligned",
        trace: "mask kernels, a copy of 1 byte and cudaStreamSynchronize, then a pageable copy of the sequence lengths",
        kind: Some(DynamicShape),
        why: "In eval mode the padded batch becomes a nested tensor, whose sizes come from the mask.",
        fix: fix(SyncFreeApi, "pass enable_nested_tensor=False")
            .before("encoder = nn.TransformerEncoder(layer, 6)  # once\nout = encoder(x, src_key_padding_mask=pad)")
            .after("encoder = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)  # once\nout = encoder(x, src_key_padding_mask=pad)")
            .mind("Padding is then computed too: slower if much of the batch is padding."),
        sources: "torch/nn/modules/transformer.py",
        library: torch(&[("torch/nn/modules/transformer.py", "forward")]),
        ..BASE
    },
    Pattern {
        id: "A29",
        title: "backward of prod or cumprod",
        triggers: &["x.prod()", "x.cumprod(0)"],
        op: "prod_backward, cumprod_backward -> aten::item",
        trace: "a reduction, a copy of 8 bytes (1 for cumprod) to pinned host memory and cudaStreamSynchronize on an autograd thread",
        kind: Some(ControlFlow),
        why: "The formula depends on whether, and where, the input holds zeros.",
        fix: fix(SyncFreeApi, "use log, sum, exp where values are positive")
            .before("y = x.prod(dim=0)")
            .after("y = x.log().sum(dim=0).exp()")
            .mind("Only for positive x, and rounding differs."),
        sources: "PyTorch FunctionsManual.cpp",
        ..BASE
    },
    Pattern {
        id: "A30",
        title: "second derivative of scatter_reduce('prod')",
        triggers: &["x.scatter_reduce(0, idx, src, 'prod')"],
        op: "scatter_reduce_backward -> aten::item",
        kind: Some(ControlFlow),
        why: "The formula branches on zeros in the input, which only the GPU knows.",
        fix: fix(SyncFreeApi, "sum logarithms with scatter_add where positive")
            .before("y = base.scatter_reduce(0, idx, src, 'prod')")
            .after("y = base.log().scatter_add(0, idx, src.log()).exp()")
            .mind("Only for positive values."),
        sources: "PyTorch FunctionsManual.cpp",
        ..BASE
    },
    Pattern {
        id: "A31",
        category: Category::ErrorCheck,
        title: "torch.searchsorted(sorter=...)",
        triggers: &["torch.searchsorted(seq, v, sorter=idx)"],
        op: "aten::searchsorted",
        trace: "two reductions, each with a copy of 8 bytes to pinned host memory and cudaStreamSynchronize",
        kind: Some(Kind::ErrorCheck),
        why: "The smallest and largest entry of the sorter are read to check its range.",
        fix: fix(SyncFreeApi, "sort the sequence first, without sorter=")
            .before("pos = torch.searchsorted(seq, v, sorter=order)")
            .after("pos = torch.searchsorted(seq.gather(-1, order), v)")
            .mind("Costs a copy of the sequence."),
        sources: "PyTorch BucketizationUtils.h",
        ..BASE
    },
    Pattern {
        id: "A32",
        title: "first use of a cuDNN RNN with dropout",
        triggers: &["nn.LSTM(n, m, dropout=0.1)"],
        op: "aten::_cudnn_init_dropout_state",
        trace: "one copy of 8 bytes to pinned host memory, then cudaStreamSynchronize, once",
        why: "The dropout seed is drawn as a tensor and handed to cuDNN as a number, once per process.",
        fix: fix(Leave, "nothing to do: once at start-up"),
        sources: "PyTorch cudnn RNN.cpp",
        ..BASE
    },
    Pattern {
        id: "A33",
        title: "TensorBoard add_scalar() with a CUDA tensor",
        triggers: &["writer.add_scalar(tag, t)"],
        op: "torch.utils.tensorboard._convert_np",
        trace: "a copy of one value to pageable host memory, then cudaStreamSynchronize",
        kind: Some(Logging),
        why: "The writer converts the tensor at once, only to log it.",
        fix: fix(Delay, "log every N steps")
            .before("writer.add_scalar('loss', loss, step)")
            .after("if step % 100 == 0:\n    writer.add_scalar('loss', loss, step)")
            .or(&["collect on the GPU, and log what was collected"]),
        sources: "torch/utils/tensorboard/_convert_np.py",
        library: torch(&[("torch/utils/tensorboard/_convert_np.py", "")]),
        ..BASE
    },
    Pattern {
        id: "A34",
        category: Distributed,
        title: "torch.equal() on a DTensor",
        triggers: &["torch.equal(dtensor_a, dtensor_b)"],
        op: "aten::equal in the DTensor dispatcher",
        trace: "an upload of 8 bytes with cudaStreamSynchronize, an NCCL all-reduce, a copy of 8 bytes back with cudaStreamSynchronize",
        kind: Some(ControlFlow),
        why: "All ranks must agree on one Python bool.",
        fix: fix(Delay, "compare outside the training step")
            .before("assert torch.equal(a, b)")
            .after("if step % 1000 == 0:\n    assert torch.equal(a, b)")
            .mind("Every rank must take the same branch, or the collective hangs."),
        sources: "torch/distributed/tensor/_dispatch.py",
        library: torch(&[(
            "torch/distributed/tensor/_dispatch.py",
            "dispatch _dispatch_fast_path_python_tail",
        )]),
        ..BASE
    },
    Pattern {
        id: "A35",
        title: "NaN/inf or limit guard on a GPU value",
        triggers: &[
            "if not torch.isfinite(loss): raise RuntimeError()",
            "if torch.isnan(x).any(): sys.exit(1)",
            "assert torch.isfinite(x).all()",
        ],
        op: "aten::is_nonzero, aten::item",
        kind: Some(ControlFlow),
        why: "The program only wants to stop or complain if the value is bad, but asks at every step and waits for each answer.",
        fix: fix(Delay, "collect the flag on the GPU; look every N steps")
            .before("if not torch.isfinite(loss):\n    raise RuntimeError('diverged')")
            .after("bad = torch.zeros((), dtype=torch.bool, device=loss.device)  # once\nbad |= ~torch.isfinite(loss)\nif step % 100 == 0 and bad:\n    raise RuntimeError('diverged')")
            .mind("The failure shows up to N steps late. A guard that skips the step needs its answer at once.")
            .or(&["torch._assert_async(torch.isfinite(loss).all()) never waits; a failure ends the process's use of the GPU"]),
        sources: "PyTorch TensorCompare.cu; seen in captures",
        ..BASE
    },
];
