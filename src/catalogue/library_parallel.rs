//! L37 to L53: Megatron-LM and DeepSpeed.

use super::{CTX_SYNC, Category::{self, *}, EVENT_SYNC, Pattern, Strategy::*, fix, site};
use crate::vocabulary::Kind::{self, *};

const BASE: Pattern = Pattern {
    op: "aten::_local_scalar_dense",
    trace: "a copy of 4 bytes to pinned host memory, then cudaStreamSynchronize",
    kind: Some(Logging),
    why: "The value is read only to be logged.",
    ..Pattern::BASE
};

const ZERO: &str = "deepspeed/runtime/zero/stage_1_and_2.py";
const ZERO3: &str = "deepspeed/runtime/zero/stage3.py";
const DISPATCHER: &str = "megatron/core/transformer/moe/token_dispatcher.py";
const TRAINING: &str = "megatron/training/training.py";

pub(super) const PATTERNS: &[Pattern] = &[
    Pattern {
        id: "L37",
        title: "Megatron-LM: did a gradient overflow?",
        triggers: &["self.found_inf.item() > 0"],
        trace: "an NCCL all-reduce, a copy of 4 bytes to pinned host memory, then cudaStreamSynchronize",
        kind: Some(ControlFlow),
        why: "With loss scaling the step is skipped if a gradient overflowed.",
        fix: fix(
            Remove,
            "train in bfloat16: no loss scaling",
            "args = ['--fp16']",
            "args = ['--bf16']",
            "bfloat16 has fewer digits than float16.",
        ),
        sources: "Megatron-LM sources",
        library: site(
            "megatron",
            &[("megatron/core/optimizer/optimizer.py", "_unscale_main_grads_and_check_for_nan")],
            "",
            "every step with fp16",
        ),
        ..BASE
    },
    Pattern {
        id: "L38",
        title: "Megatron-LM: gradient norm and zero count",
        triggers: &["total_norm.item() ** (1.0 / norm_type)", "total_num_zeros.item()"],
        fix: fix(
            SyncFreeApi,
            "install Transformer Engine: the norm stays on the GPU",
            "norm = total_norm.item() ** 0.5\nclip = max_norm / (norm + 1e-6)",
            "norm = total_norm ** 0.5\nclip = (max_norm / (norm + 1e-6)).clamp(max=1.0)\ntorch._foreach_mul_(grads, clip)",
            "Older versions branch on the norm.",
        ),
        why: "The norm is read to compute a factor and to log it; the factor could stay on the GPU.",
        sources: "Megatron-LM#836",
        library: site(
            "megatron",
            &[
                ("megatron/core/optimizer/clip_grads.py", "get_grad_norm_fp32"),
                ("megatron/core/optimizer/clip_grads.py", "count_zeros_fp32"),
                ("megatron/core/optimizer/clip_grads.py", "clip_grad_by_total_norm_fp32"),
            ],
            "",
            "every step",
        ),
        ..BASE
    },
    Pattern {
        id: "L39",
        category: Distributed,
        title: "Megatron-LM: logical and over all ranks",
        triggers: &["logical_and_across_model_parallel_group(flag)"],
        trace: "an upload of 4 bytes, an NCCL all-reduce and a copy of 4 bytes back, each with cudaStreamSynchronize",
        kind: None,
        why: "A Python bool is uploaded, reduced and read back. The upload needs no wait; the answer may steer the step.",
        fix: fix(
            Delay,
            "reduce a GPU flag and read it one step late",
            "ok = logical_and_across_model_parallel_group(ok)",
            "dist.all_reduce(ok_gpu, op=dist.ReduceOp.MIN, group=group)\nok_host.copy_(ok_gpu, non_blocking=True)  # pinned; read in the next step\ndone.record()",
            "A bad step is noticed one step later; wait for the event before reading.",
        ),
        sources: "Megatron-LM#7076",
        library: site(
            "megatron",
            &[
                ("megatron/training/utils/common_utils.py", "logical_and_across_model_parallel_group"),
                ("megatron/training/utils.py", "logical_and_across_model_parallel_group"),
            ],
            "",
            "2 to 4 per step",
        ),
        ..BASE
    },
    Pattern {
        id: "L40",
        category: Category::ErrorCheck,
        title: "Megatron-LM: validation of results (rerun machine)",
        triggers: &["rerun_state_machine.validate_result(result)"],
        trace: "a copy of 1 byte to pinned host memory and cudaStreamSynchronize, also on the autograd thread",
        kind: Some(Kind::ErrorCheck),
        intended: true,
        why: "Losses and gradients are tested for NaN and spikes in every bucket.",
        fix: fix(
            Remove,
            "pass --rerun-mode disabled",
            "args = ['--rerun-mode', 'validate_results']",
            "args = ['--rerun-mode', 'disabled']",
            "Faulty hardware is then not noticed by this check.",
        ),
        sources: "Megatron-LM#7076: 74 of 142 waits per iteration",
        library: site("megatron", &[("megatron/core/rerun_state_machine.py", "")], "", "every gradient bucket"),
        ..BASE
    },
    Pattern {
        id: "L41",
        title: "Megatron-LM: loss scale for the log",
        triggers: &["optimizer.get_loss_scale().item()"],
        why: "The first read after the step, for the log: it drains the whole queue.",
        fix: fix(
            Delay,
            "read the loss scale at log intervals only",
            "loss_scale = optimizer.get_loss_scale().item()",
            "if iteration % args.log_interval == 0:\n    loss_scale = optimizer.get_loss_scale().item()",
            "",
        ),
        sources: "Megatron-LM#6725",
        library: site("megatron", &[(TRAINING, "train")], "get_loss_scale().item()", "every step"),
        ..BASE
    },
    Pattern {
        id: "L42",
        title: "Megatron-LM: losses for the log",
        triggers: &["total_loss_dict[key].item()"],
        trace: "a copy of 4 bytes to pinned host memory and cudaStreamSynchronize per loss",
        fix: fix(
            Coalesce,
            "stack the losses and read them once",
            "avg = {k: v.item() / n for k, v in losses.items()}",
            "values = torch.stack(list(losses.values())).tolist()\navg = {k: v / n for k, v in zip(losses, values)}",
            "",
        ),
        sources: "Megatron-LM sources",
        library: site("megatron", &[(TRAINING, "training_log")], "", "every log_interval"),
        ..BASE
    },
    Pattern {
        id: "L43",
        category: ExplicitSync,
        title: "Megatron-LM: timers",
        triggers: &["timers('forward').start()"],
        op: "torch.cuda.synchronize",
        trace: "cudaDeviceSynchronize at start and stop",
        kind: Some(Timing),
        intended: true,
        why: "Each timer drains the device before it reads the clock.",
        fix: fix(
            Remove,
            "pass --timing-log-level 0",
            "args = ['--timing-log-level', '2']",
            "args = ['--timing-log-level', '0']",
            "",
        ),
        driver_api: CTX_SYNC,
        sources: "Megatron-LM sources",
        library: site(
            "megatron",
            &[("megatron/core/timers.py", "start"), ("megatron/core/timers.py", "stop")],
            "",
            "every timer at the chosen level",
        ),
        ..BASE
    },
];
