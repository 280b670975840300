//! L37 to L53: Megatron-LM and DeepSpeed.

use super::{CTX_SYNC, Category::*, EVENT_SYNC, LOGGED as BASE, Pattern, Strategy::*};
use crate::vocabulary::Kind::{self, *};

const ZERO: &str = "deepspeed/runtime/zero/stage_1_and_2.py";
const ZERO3: &str = "deepspeed/runtime/zero/stage3.py";
const DISPATCHER: &str = "megatron/core/transformer/moe/token_dispatcher.py";
const TRAINING: &str = "megatron/training/training.py";

pub(super) const PATTERNS: &[Pattern] = &[
    BASE.of_kind("L37", "Megatron-LM: did a gradient overflow?", ControlFlow)
        .triggers(&["self.found_inf.item() > 0"])
        .trace("an NCCL all-reduce, a copy of 4 bytes to pinned host memory, then cudaStreamSynchronize")
        .why("With loss scaling the step is skipped if a gradient overflowed.")
        .fix(Remove, "train in bfloat16: no loss scaling")
        .before("args = ['--fp16']")
        .after("args = ['--bf16']")
        .mind("bfloat16 has fewer digits than float16.")
        .site(&[("megatron/core/optimizer/optimizer.py", "_unscale_main_grads_and_check_for_nan")])
        .often("every step with fp16"),
    BASE.entry("L38", "Megatron-LM: gradient norm and zero count")
        .triggers(&["total_norm.item() ** (1.0 / norm_type)", "total_num_zeros.item()"])
        .fix(SyncFreeApi, "install Transformer Engine: the norm stays on the GPU")
        .before("norm = total_norm.item() ** 0.5\nclip = max_norm / (norm + 1e-6)")
        .after("norm = total_norm ** 0.5\nclip = (max_norm / (norm + 1e-6)).clamp(max=1.0)\ntorch._foreach_mul_(grads, clip)")
        .mind("Older versions branch on the norm. count_zeros_fp32 reads its count all the same: leave --log-num-zeros-in-grad out.")
        .why("The norm is read to compute a factor and to log it; the factor could stay on the GPU.")
        .sources("Megatron-LM#836, Megatron core 0.19.2")
        .site(&[(
                "megatron/core/optimizer/clip_grads.py",
                "get_grad_norm_fp32 count_zeros_fp32 clip_grad_by_total_norm_fp32",
            )])
        .often("every step"),
    BASE.entry("L39", "Megatron-LM: logical and over all ranks")
        .category(Distributed)
        .triggers(&["logical_and_across_model_parallel_group(flag)"])
        .trace("an upload of 4 bytes, an NCCL all-reduce and a copy of 4 bytes back, each with cudaStreamSynchronize")
        .by_use()
        .why("A Python bool is uploaded, reduced and read back. The upload needs no wait; the answer may steer the step.")
        .fix(Delay, "reduce a GPU flag and read it one step late")
        .before("ok = logical_and_across_model_parallel_group(ok)")
        .after("done.synchronize()  # torch.cuda.Event(): no wait before its first record\nok = bool(ok_host)  # of the step before; pinned, True at first\ndist.all_reduce(ok_gpu, op=dist.ReduceOp.MIN, group=group)\nok_host.copy_(ok_gpu, non_blocking=True)\ndone.record()")
        .mind("A bad step is noticed one step later.")
        .sources("Megatron-LM#7076, Megatron-LM 0.20.0")
        .site(&[
                ("megatron/training/utils/common_utils.py", "logical_and_across_model_parallel_group"),
                ("megatron/training/utils.py", "logical_and_across_model_parallel_group"),
            ])
        .often("2 to 4 per step"),
    BASE.of_kind("L40", "Megatron-LM: validation of results (rerun machine)", Kind::ErrorCheck)
        .triggers(&["rerun_state_machine.validate_result(result)"])
        .trace("a copy of 1 byte to pinned host memory and cudaStreamSynchronize, also on the autograd thread")
        .intended()
        .why("Losses and gradients are tested for NaN and spikes in every bucket.")
        .fix(Remove, "pass --no-check-for-nan-in-loss-and-grad")
        .before("args = ['--check-for-spiky-loss']")
        .after("args = ['--no-check-for-nan-in-loss-and-grad']")
        .mind("NaN and faulty hardware are then not noticed by this check. --rerun-mode disabled alone keeps the test.")
        .sources("Megatron-LM#7076: 74 of 142 waits per iteration, Megatron core 0.19.2")
        .site(&[("megatron/core/rerun_state_machine.py", "")])
        .often("every gradient bucket"),
    BASE.entry("L41", "Megatron-LM: loss scale for the log")
        .triggers(&["optimizer.get_loss_scale().item()"])
        .why("The first read after the step, for the log: it drains the whole queue.")
        .fix(Delay, "read the loss scale at log intervals only")
        .before("loss_scale = optimizer.get_loss_scale().item()")
        .after("if iteration % args.log_interval == 0:\n    loss_scale = optimizer.get_loss_scale().item()")
        .sources("Megatron-LM#6725, Megatron-LM 0.20.0")
        .site(&[(TRAINING, "train")])
        .line("get_loss_scale().item()")
        .often("every step"),
    BASE.entry("L42", "Megatron-LM: losses for the log")
        .triggers(&["total_loss_dict[key].item()"])
        .trace("a copy of 4 bytes to pinned host memory and cudaStreamSynchronize per loss")
        .fix(Coalesce, "stack the losses and read them once")
        .before("avg = {k: v.item() / n for k, v in losses.items()}")
        .after("values = torch.stack(list(losses.values())).tolist()\navg = {k: v / n for k, v in zip(losses, values)}")
        .site(&[(TRAINING, "training_log")])
        .often("every log_interval"),
    BASE.of_kind("L43", "Megatron-LM: timers", Timing)
        .triggers(&["timers('forward').start()"])
        .op("torch.cuda.synchronize")
        .trace("cudaDeviceSynchronize at start and stop")
        .intended()
        .why("Each timer drains the device before it reads the clock.")
        .fix(Remove, "pass --timing-log-level 0")
        .before("args = ['--timing-log-level', '2']")
        .after("args = ['--timing-log-level', '0']")
        .driver_api(CTX_SYNC)
        .site(&[("megatron/core/timers.py", "start stop")])
        .often("every timer at the chosen level"),
    BASE.entry("L44", "Megatron-LM: point-to-point exchange of stages")
        .category(Distributed)
        .triggers(&["recv_prev_shape_tensor.tolist()"])
        .op("torch.cuda.synchronize, Tensor.tolist")
        .trace("cudaDeviceSynchronize, and with variable lengths a pageable copy of 24 bytes with cudaStreamSynchronize")
        .by_use()
        .why("A device-wide wait guards against an old race in batched sends; shapes are read to allocate the input.")
        .fix(Remove, "set batch_p2p_sync=False")
        .before("config = ModelParallelConfig(variable_seq_lengths=True)")
        .after("config = ModelParallelConfig(batch_p2p_sync=False, variable_seq_lengths=False)")
        .mind("The race exists with old PyTorch. Fixed lengths need padding.")
        .or(&["overlap_p2p_comm"])
        .driver_api("cuCtxSynchronize or cuStreamSynchronize")
        .site(&[("megatron/core/pipeline_parallel/p2p_communication.py", "_communicate_shapes _communicate")])
        .often("every microbatch"),
    BASE.of_kind("L45", "Megatron-LM: token counts of the dispatcher", DynamicShape)
        .triggers(&["self.d2h_event.synchronize()"])
        .op("torch.cuda.Event.synchronize")
        .trace("a copy to pinned host memory on a side stream, then cudaEventSynchronize")
        .why("Split sizes are needed on the CPU. The copy already overlaps with other work.")
        .fix(SyncFreeApi, "drop and pad to a fixed expert capacity")
        .before("config = TransformerConfig(moe_token_dispatcher_type='alltoall')")
        .after("config = TransformerConfig(moe_token_dispatcher_type='alltoall',\n                           moe_expert_capacity_factor=1.0, moe_pad_expert_input_to_capacity=True)")
        .mind("Tokens over the capacity are dropped: training changes.")
        .driver_api(EVENT_SYNC)
        .site(&[(DISPATCHER, "_maybe_dtoh_and_synchronize")])
        .often("every mixture-of-experts layer"),
    BASE.of_kind("L46", "Megatron-LM: number of routed tokens", DynamicShape)
        .triggers(&["tokens_per_expert.sum().item()"])
        .trace("a copy of 8 bytes to pinned host memory, then cudaStreamSynchronize")
        .why("The number of tokens sizes the next buffer.")
        .fix(SyncFreeApi, "pad experts to a fixed capacity")
        .before("config = TransformerConfig(moe_token_dispatcher_type='allgather')")
        .after("config = TransformerConfig(moe_token_dispatcher_type='alltoall',\n                           moe_expert_capacity_factor=1.0, moe_pad_expert_input_to_capacity=True)")
        .mind("Tokens over the capacity are dropped: training changes.")
        .site(&[(DISPATCHER, "")])
        .line("tokens_per_expert.sum().item()")
        .often("every mixture-of-experts layer"),
    BASE.of_kind("L47", "DeepSpeed ZeRO: did a gradient overflow?", ControlFlow)
        .triggers(&["overflow = overflow_gpu[0].item()"])
        .trace("an NCCL all-reduce, a copy of 1 byte to pinned host memory, then cudaStreamSynchronize")
        .why("With loss scaling the step is skipped if a gradient overflowed.")
        .fix(Remove, "train in bfloat16: no loss scaling")
        .before("config = {'fp16': {'enabled': True}}")
        .after("config = {'bf16': {'enabled': True, 'check_grad_overflow': False}}")
        .mind("bfloat16 has fewer digits than float16, and steps with NaN or infinity in gradients are then made. Stage 3 does not look with bf16.")
        .versions("one read per tensor before DeepSpeed#5115")
        .sources("DeepSpeed#5115, DeepSpeed 0.19.6")
        .site(&[
                (ZERO, "has_overflow"),
                (ZERO3, "has_overflow"),
                ("deepspeed/runtime/utils.py", "has_overflow check_using_norm"),
                (ZERO, "_has_inf_or_nan"),
                (ZERO3, "_has_inf_or_nan"),
                ("deepspeed/runtime/utils.py", "_has_inf_or_nan"),
            ])
        .often("every step with fp16"),
    BASE.of_kind("L48", "DeepSpeed ZeRO: gradient norm with CPU offload", RoundTrip)
        .triggers(&["total_norm += param_norm.item()**2"])
        .trace("a copy of 4 bytes to pinned host memory and cudaStreamSynchronize per parameter")
        .why("Norms are summed in Python one by one, and the sum is uploaded again.")
        .fix(Leave, "no option: the norm is summed in Python")
        .sources("DeepSpeed#4974, DeepSpeed#5125, DeepSpeed#4436, DeepSpeed 0.19.6")
        .site(&[
                (ZERO, "complete_grad_norm_calculation_for_cpu_offload"),
                (ZERO3, "complete_grad_norm_calculation_for_cpu_offload"),
            ])
        .often("every step with CPU offload"),
    BASE.of_kind("L49", "DeepSpeed ZeRO: device wait with overlap_comm", Explicit)
        .triggers(&["get_accelerator().synchronize()"])
        .op("torch.cuda.synchronize")
        .trace("cudaDeviceSynchronize without a copy, in backward")
        .intended()
        .why("It orders the reduction stream after backward; stream order would do, but the area had races before.")
        .fix(Remove, "overlap_comm: false, where communication is short")
        .before("config = {'zero_optimization': {'stage': 2, 'overlap_comm': True}}")
        .after("config = {'zero_optimization': {'stage': 2, 'overlap_comm': False}}")
        .mind("Communication then does not overlap backward: measure both. The wait itself guards against races (DeepSpeed#2500, DeepSpeed#7371): leave it in.")
        .driver_api(CTX_SYNC)
        .versions("in average_tensor() before DeepSpeed 0.8.0")
        .sources("DeepSpeed#2463, DeepSpeed#2500, DeepSpeed#7371, DeepSpeed 0.19.6")
        .site(&[
                (ZERO, "reduce_independent_p_g_buckets_and_remove_grads independent_gradient_partition_epilogue reduce_ipg_grads allreduce_and_copy average_tensor _allreduce_noncontiguous_bucket_preserving_fp32"),
                (ZERO3, "independent_gradient_partition_epilogue"),
            ])
        .often("every reduced bucket"),
    BASE.of_kind("L50", "DeepSpeed ZeRO-3: limit of buckets in flight", Explicit)
        .triggers(&["self.param_reduce_events.popleft().synchronize()"])
        .op("torch.cuda.Event.synchronize")
        .trace("cudaEventQuery polls, then cudaEventSynchronize")
        .intended()
        .why("The CPU is held back so that not too many gathered or reduced parameters occupy memory.")
        .fix(Leave, "wanted: larger buckets make it rarer")
        .before("config = {'zero_optimization': {'stage': 3}}")
        .after("config = {'zero_optimization': {'stage': 3, 'reduce_bucket_size': 1_000_000_000}}")
        .mind("Peak memory rises. Of fetches two are in flight, whatever the buckets.")
        .driver_api(EVENT_SYNC)
        .site(&[
                (ZERO3, "__reduce_and_partition_ipg_grads"),
                ("deepspeed/runtime/zero/partitioned_param_coordinator.py", "_fetch_sub_module_impl fetch_sub_module"),
            ])
        .often("every bucket or fetch"),
    BASE.of_kind("L51", "DeepSpeed: timers", Timing)
        .triggers(&["ThroughputTimer", "SynchronizedWallClockTimer"])
        .op("torch.cuda.synchronize")
        .trace("cudaDeviceSynchronize or cudaEventSynchronize per step")
        .intended()
        .why("The timers drain the device before they read the clock.")
        .fix(Remove, "timers.throughput.synchronized=false in the config")
        .before("config = {'wall_clock_breakdown': True}")
        .after("config = {'wall_clock_breakdown': False, 'timers': {'throughput': {'synchronized': False}}}")
        .mind("Throughput in the log is then less exact.")
        .driver_api("cuCtxSynchronize or cuEventSynchronize")
        .site(&[("deepspeed/utils/timer.py", "")])
        .often("every step"),
    BASE.of_kind("L52", "DeepSpeed: tokens per expert as a list", DynamicShape)
        .triggers(&["num_tokens_per_expert.tolist()"])
        .op("Tensor.tolist")
        .trace("a pageable copy of 8 bytes per expert, then cudaStreamSynchronize")
        .why("Tokens are split by expert, so the counts must be Python ints.")
        .fix(SyncFreeApi, "use_grouped_mm: true")
        .before("config = {'expert_parallel': {'use_grouped_mm': False}}")
        .after("config = {'expert_parallel': {'use_grouped_mm': True}}")
        .mind("Needs a GPU and dtype that torch's grouped matrix product supports.")
        .site(&[("deepspeed/moe/ep_experts.py", "")])
        .often("every mixture-of-experts layer"),
    BASE.entry("L53", "DeepSpeed: pipeline loss and point-to-point waits")
        .triggers(&["loss_value.item()"])
        .trace("a copy of 4 bytes with cudaStreamSynchronize for the log; cudaDeviceSynchronize after sends")
        .fix(Delay, "raise steps_per_print")
        .before("config = {'steps_per_print': 1}")
        .after("config = {'steps_per_print': 100}")
        .mind("The device-wide wait after a send stays.")
        .driver_api("cuStreamSynchronize or cuCtxSynchronize")
        .site(&[("deepspeed/runtime/pipe/engine.py", "train_batch"), ("deepspeed/runtime/pipe/p2p.py", "")])
        .often("every log; every send"),
];
