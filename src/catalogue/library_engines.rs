//! L80 to L92, L94: engines of training and inference, with the option that the user can turn.

use super::library_knobs::entry;
use super::{Pattern, Strategy::*};
use crate::vocabulary::Kind;

const CHECKPOINTING: &str = "deepspeed/runtime/activation_checkpointing/checkpointing.py";
const RUNNER: &str = "vllm/v1/worker/gpu_model_runner.py";
const SGLANG_RESULTS: &str = "sglang/srt/managers/scheduler_output_processor_mixin.py";
const SGLANG_BATCH_RESULTS: &str = "sglang/srt/managers/scheduler_components/batch_result_processor.py";
const MEGATRON_TRAINING: &str = "megatron/training/training.py";

pub(super) const PATTERNS: &[Pattern] = &[
    entry("L80", "DeepSpeed: activation checkpointing", Kind::Explicit)
        .triggers(&["'synchronize_checkpoint_boundary': True"])
        .at(CHECKPOINTING, "forward backward non_reentrant_checkpoint checkpoint_unpack after_backward_hook")
        .line("synchronize()")
        .often("every checkpointed block")
        .why("A debugging option drains the device around each block.")
        .fix(Remove, "synchronize_checkpoint_boundary: false")
        .before("config = {'activation_checkpointing': {'synchronize_checkpoint_boundary': True}}")
        .after("config = {'activation_checkpointing': {'synchronize_checkpoint_boundary': False}}"),
    entry("L81", "DeepSpeed: communication logger", Kind::Timing)
        .triggers(&["'comms_logger': {'enabled': True}"])
        .at("deepspeed/comm/comm.py", "log_wrapper")
        .often("every collective")
        .why("Each collective is followed by a wait for the device, so that its time is right.")
        .fix(Remove, "comms_logger: enabled false")
        .before("config = {'comms_logger': {'enabled': True}}")
        .after("config = {'comms_logger': {'enabled': False}}"),
    entry("L82", "DeepSpeed: shapes between pipeline stages", Kind::DynamicShape)
        .triggers(&["PipelineModule(layers, dynamic_shape=True)"])
        .at("deepspeed/runtime/pipe/engine.py", "_recv_tensor_meta")
        .often("every microbatch")
        .why("A stage reads the shape of what it receives, number by number.")
        .fix(Remove, "leave dynamic_shape at False; pad to one length")
        .before("model = PipelineModule(layers, num_stages=4, dynamic_shape=True)")
        .after("model = PipelineModule(layers, num_stages=4)")
        .mind("Then shapes are exchanged once: all microbatches must have the same."),
    entry("L83", "DeepSpeed: norm of gradients in Python", Kind::RoundTrip)
        .triggers(&["total_norm_cuda[0].item()"])
        .at("deepspeed/runtime/utils.py", "get_flattened_grad_norm get_weight_norm get_norm_with_moe_layers get_norm_with_moe_layers_fast")
        .often("every step")
        .why("The norm is read to compute a factor by which gradients on the GPU are scaled.")
        .fix(Leave, "no option leaves the norm on the GPU"),
    entry("L84", "Megatron-LM: rotary embedding of packed sequences", Kind::DynamicShape)
        .triggers(&["_apply_rotary_pos_emb_thd(t, cu_seqlens, freqs)"])
        .at("megatron/core/models/common/embeddings/rope_utils.py", "_apply_rotary_pos_emb_thd")
        .often("every layer")
        .why("Lengths of the packed sequences are read to cut the batch.")
        .fix(SyncFreeApi, "apply_rope_fusion=True")
        .before("config = TransformerConfig(apply_rope_fusion=False)")
        .after("config = TransformerConfig(apply_rope_fusion=True)")
        .mind("Needs Transformer Engine or Apex; not for every kind of rotary embedding."),
    entry("L85", "Megatron-LM: exit by the clock", Kind::ControlFlow)
        .triggers(&["args.exit_duration_in_mins"])
        .at(MEGATRON_TRAINING, "checkpoint_and_decide_exit")
        .line("done_cuda.item()")
        .often("every step")
        .why("All ranks agree in every step whether the time is over.")
        .fix(Remove, "--exit-interval N: the CPU counts")
        .before("args = ['--exit-duration-in-mins', '230']")
        .after("args = ['--exit-interval', '20000']")
        .mind("It counts iterations. --exit-signal-handler asks all ranks in every step as well."),
    entry("L86", "Megatron-LM: synchronisation of training", Kind::Explicit)
        .triggers(&["args.train_sync_interval"])
        .at(MEGATRON_TRAINING, "post_training_step_callbacks")
        .line("torch.cuda.synchronize()")
        .often("every train_sync_interval")
        .why("An option keeps the CPU from running far ahead.")
        .fix(Remove, "leave --train-sync-interval out")
        .before("args = ['--train-sync-interval', '1']")
        .after("args = []")
        .or(&["raise it"]),
    entry("L87", "Megatron-LM: norm of parameters for the log", Kind::Logging)
        .triggers(&["norm_2.item() ** 0.5"])
        .at("megatron/training/utils/common_utils.py", "calc_params_l2_norm calc_dtensor_params_l2_norm")
        .often("every step with --log-params-norm")
        .why("The norm is computed and read in every step.")
        .fix(Remove, "leave --log-params-norm out")
        .before("args = ['--log-params-norm']")
        .after("args = []"),
    entry("L88", "torchtitan: losses and norm for the log", Kind::Logging)
        .triggers(&["float(accumulated_loss.item())", "float(grad_norm.item())"])
        .at("torchtitan/trainer.py", "train_step")
        .at("torchtitan/distributed/utils.py", "_dist_reduce")
        .line(".item()")
        .often("every metrics.log_freq")
        .why("They are read one by one where the step is logged.")
        .fix(Delay, "raise metrics.log_freq")
        .before("args = ['--metrics.log-freq', '1']")
        .after("args = ['--metrics.log-freq', '50']")
        .mind("A loss that is not finite is noticed where it is logged.")
        .sources("torchtitan 0.3.0"),
    entry("L89", "vLLM: results of a step", Kind::CpuCompute)
        .triggers(&["LLM(name).generate(prompts)"])
        .at(RUNNER, "get_output")
        .at("vllm/v1/worker/gpu/async_utils.py", "get_output")
        .often("every step")
        .why("The scheduler needs the tokens; with async_scheduling it waits while the next step runs.")
        .fix(Leave, "nothing to do: the next step runs meanwhile"),
    entry("L90", "vLLM: count of NaN in the logits", Kind::ErrorCheck)
        .triggers(&["VLLM_COMPUTE_NANS_IN_LOGITS=1"])
        .at(RUNNER, "_get_nans_in_logits")
        .often("every step")
        .why("A debugging variable asks for it.")
        .fix(Remove, "unset VLLM_COMPUTE_NANS_IN_LOGITS")
        .before("os.environ['VLLM_COMPUTE_NANS_IN_LOGITS'] = '1'")
        .after("os.environ.pop('VLLM_COMPUTE_NANS_IN_LOGITS', None)"),
    entry("L91", "vLLM: start-up and recording of graphs", Kind::Explicit)
        .triggers(&["LLM(name)"])
        .at(RUNNER, "capture_model _capture_cudagraphs _warmup_and_capture profile_cudagraph_memory _dummy_sampler_run")
        .at("vllm/v1/worker/gpu/cudagraph_utils.py", "capture")
        .at("vllm/v1/worker/gpu/warmup.py", "_warmup_kernels")
        .often("once, at the start")
        .why("Memory is measured and CUDA graphs are recorded before the first request.")
        .fix(ExcludeFromCapture, "begin the capture after the engine is up")
        .before("torch.cuda.profiler.start()\nllm = LLM(name)")
        .after("llm = LLM(name)\ntorch.cuda.profiler.start()")
        .mind("enforce_eager=True records no graphs, and slows each step."),
    entry("L92", "SGLang, TensorRT-LLM: tokens of a step to the host", Kind::CpuCompute)
        .triggers(&["result.copy_done.synchronize()", "state.sampler_event.synchronize()"])
        .at(SGLANG_RESULTS, "process_batch_result_decode process_batch_result_prefill")
        .at(SGLANG_BATCH_RESULTS, "process_batch_result_decode process_batch_result_prefill")
        .at("tensorrt_llm/_torch/pyexecutor/", "*update_requests")
        .often("every step")
        .why("The scheduler needs the tokens; with overlap it reads them while the next batch runs.")
        .fix(Remove, "keep overlap on: no disable_overlap_schedule(r)")
        .before("engine = sglang.Engine(model_path=name, disable_overlap_schedule=True)")
        .after("engine = sglang.Engine(model_path=name)")
        .mind("In TensorRT-LLM the option is disable_overlap_scheduler.")
        .sources("SGLang 0.5.10, TensorRT-LLM main of 2026.11"),
    entry("L94", "DeepSpeed: loss of every microbatch", Kind::Logging)
        .triggers(&["self.losses += loss.mean().item()"])
        .at("deepspeed/runtime/engine.py", "backward")
        .line("loss.mean().item()")
        .often("every microbatch")
        .why("The loss is read in every backward pass, monitor or not.")
        .fix(Remove, "upgrade DeepSpeed: 0.13.3 reads it for a monitor only")
        .before("pip install deepspeed==0.13.2")
        .after("pip install -U deepspeed")
        .sources("DeepSpeed 0.13.2, DeepSpeed#5135")
        .versions("before DeepSpeed 0.13.3"),
];
