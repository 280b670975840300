//! L31 to L36, L55, L57, L59 to L64: accelerate, timm, training scripts, TRL, loggers, inference engines.

use super::{CTX_SYNC, Category::*, LOGGED as BASE, Pattern, Strategy::*};
use crate::vocabulary::Kind::*;

const OPERATIONS: &str = "accelerate/utils/operations.py";

pub(super) const PATTERNS: &[Pattern] = &[
    BASE.of_kind("L31", "accelerate: batches moved to the GPU", Upload)
        .triggers(&["accelerator.prepare(loader)", "send_to_device(batch, device)"])
        .op("aten::to")
        .trace("per tensor: a copy from pageable or pinned host memory to the GPU, then cudaStreamSynchronize")
        .why("Batches are uploaded with blocking copies unless asked otherwise.")
        .fix(NonBlocking, "DataLoaderConfiguration(non_blocking=True)")
        .before("acc = Accelerator()\nloader = acc.prepare(DataLoader(ds))")
        .after("acc = Accelerator(dataloader_config=DataLoaderConfiguration(non_blocking=True))\nloader = acc.prepare(DataLoader(ds, pin_memory=True))")
        .mind("Only from pinned memory. Do not overwrite the CPU batch before the copy has run. With the Trainer: accelerator_config={'non_blocking': True}.")
        .site(&[(OPERATIONS, "send_to_device _send_to_device"), ("accelerate/data_loader.py", "__iter__")])
        .often("every batch"),
    BASE.of_kind("L32", "accelerate: check_trigger()", ControlFlow)
        .triggers(&["accelerator.check_trigger()"])
        .trace("a collective, a copy of 8 bytes to pinned host memory, then cudaStreamSynchronize")
        .why("All ranks decide together whether to stop.")
        .fix(Delay, "ask every N steps")
        .before("if accelerator.check_trigger():\n    break")
        .after("if step % 50 == 0 and accelerator.check_trigger():\n    break")
        .mind("Training stops a little later.")
        .site(&[("accelerate/accelerator.py", "check_trigger")])
        .often("every call"),
    BASE.of_kind("L33", "accelerate: gather_object, pad_across_processes", DynamicShape)
        .triggers(&["accelerator.pad_across_processes(x)", "accelerator.gather_for_metrics(x)"])
        .trace("copies of sizes to the host, each with cudaStreamSynchronize")
        .why("The sizes of the other ranks decide the padding.")
        .fix(Delay, "gather once after the loop")
        .before("for x in loader:\n    preds.append(accelerator.gather_for_metrics(model(x)))")
        .after("for x in loader:\n    preds.append(model(x).detach())\npreds = accelerator.gather_for_metrics(torch.cat(preds))")
        .mind("All predictions of a rank must fit in GPU memory, with equal shapes. Samples that pad the last batch are no longer dropped, and come rank by rank: cut to the data set's length.")
        .site(&[(OPERATIONS, "_pad_across_processes pad_across_processes _gpu_gather_object gather_object gather_tensor_shape")])
        .often("every call"),
    BASE.entry("L34", "timm: training loss meter")
        .triggers(&["losses_m.update(loss.item() * accum_steps, batch_size)"])
        .fix(Delay, "add up on the GPU, read at log_interval")
        .before("losses_m.update(loss.item() * accum_steps, n)")
        .after("loss_sum, seen = torch.zeros((), device='cuda'), 0  # once\nloss_sum += loss.detach() * accum_steps * n\nseen += n\nif step % log_interval == 0 or step == last:\n    losses_m.update(loss_sum.item() / seen, seen)\n    loss_sum.zero_()\n    seen = 0")
        .sources("timm 1.0.29 (train.py, validate.py)")
        .site(&[("train.py", "train_one_epoch")])
        .package("timm")
        .line("losses_m.update(loss.item()")
        .often("every micro-step"),
    BASE.of_kind("L35", "timm: synchronize per step", Timing)
        .triggers(&["torch.cuda.synchronize()"])
        .op("torch.cuda.synchronize")
        .trace("cudaDeviceSynchronize without a copy")
        .intended()
        .why("The step time in the log is made exact by draining the device.")
        .fix(Remove, "leave out --synchronize-step")
        .before("torch.cuda.synchronize()\nbatch_time.update(time.time() - end)")
        .after("batch_time.update(time.time() - end)")
        .mind("Times of single steps become inexact; their mean stays right.")
        .driver_api(CTX_SYNC)
        .sources("timm 1.0.29 (train.py, validate.py)")
        .site(&[("train.py", "train_one_epoch")])
        .package("timm")
        .line("torch.cuda.synchronize()")
        .often("every step"),
    BASE.entry("L36", "timm: validation meters")
        .triggers(&["losses_m.update(reduced_loss.item(), n)", "acc1.item()"])
        .trace("three copies of 4 bytes to pinned host memory, each with cudaStreamSynchronize")
        .fix(Coalesce, "stack loss, acc1, acc5 and read once")
        .before("losses_m.update(reduced_loss.item(), n)\ntop1_m.update(acc1.item(), n)\ntop5_m.update(acc5.item(), n)")
        .after("l, a1, a5 = torch.stack([reduced_loss, acc1, acc5]).tolist()\nlosses_m.update(l, n)\ntop1_m.update(a1, n)\ntop5_m.update(a5, n)")
        .sources("timm 1.0.29 (train.py, validate.py)")
        .site(&[("train.py", "validate"), ("validate.py", "validate")])
        .package("timm")
        .line(".item(), ")
        .often("every validation batch"),
    BASE.entry("L55", "diffusers: training examples")
        .triggers(&["train_loss += avg_loss.item()", "logs = {'step_loss': loss.detach().item()}"])
        .trace("two copies of 4 bytes to pinned host memory, each with cudaStreamSynchronize")
        .fix(Delay, "add up on the GPU; log every N steps")
        .before("train_loss += avg_loss.item() / accumulation")
        .after("train_loss = torch.zeros((), device='cuda')  # once\ntrain_loss += avg_loss.detach() / accumulation")
        .mind("Trackers drop tensors without a word: log train_loss.item().")
        .sources("diffusers 0.42.1")
        .site(&[
                ("examples/text_to_image/train_text_to_image.py", "main"),
                ("examples/text_to_image/train_text_to_image_lora.py", "main"),
                ("examples/text_to_image/train_text_to_image_sdxl.py", "main"),
                ("examples/dreambooth/train_dreambooth.py", "main"),
                ("examples/controlnet/train_controlnet.py", "main"),
                ("examples/unconditional_image_generation/train_unconditional.py", "main"),
            ])
        .package("diffusers")
        .line("loss")
        .often("every step"),
    BASE.entry("L57", "TRL: metrics of GRPO and DPO")
        .triggers(&["self._metrics[mode]['reward'].append(x.mean().item())"])
        .trace("8 to 12 copies of 4 bytes in a row, each with cudaStreamSynchronize, small reductions between")
        .why("Each metric is read by itself; they could be read together when they are logged.")
        .fix(Coalesce, "append tensors; convert them when logging")
        .before("metrics['kl'].append(kl.mean().item())")
        .after("metrics['kl'].append(kl.mean().detach())\n# after the loop: in log()\nvalue = torch.stack(metrics['kl']).mean().item()")
        .sources("TRL 1.16.0")
        .site(&[
                ("trl/trainer/grpo_trainer.py", "_compute_loss _generate_and_score_completions _generate"),
                ("trl/trainer/dpo_trainer.py", "_compute_loss get_batch_loss_metrics"),
            ])
        .line(".item()")
        .often("every step"),
    BASE.entry("L59", "nanoGPT: loss for the log")
        .triggers(&["lossf = loss.item() * gradient_accumulation_steps"])
        .fix(Delay, "raise log_interval")
        .before("log_interval = 1")
        .after("log_interval = 100")
        .sources("nanoGPT 3adf61e (train.py)")
        .site(&[("train.py", "<module>")])
        .package("nanogpt")
        .line("loss.item() * gradient_accumulation_steps")
        .often("every log_interval"),
    BASE.entry("L60", "tqdm: set_postfix() with tensors")
        .triggers(&["bar.set_postfix(loss=loss)"])
        .op("torch._tensor_str")
        .trace("a burst of small copies, each with cudaStreamSynchronize, as for printing a tensor")
        .why("The bar turns the tensor into text every time.")
        .fix(Delay, "set the postfix every N steps")
        .before("bar.set_postfix(loss=loss)")
        .after("if step % 50 == 0:\n    bar.set_postfix(loss=loss.item())")
        .sources("tqdm 4.70.1")
        .site(&[("tqdm/std.py", "set_postfix format_dict")])
        .often("every step"),
    BASE.entry("L61", "vLLM: sampled tokens to the host")
        .category(DeviceMovement)
        .triggers(&["sampled_token_ids.tolist()"])
        .op("Tensor.tolist, aten::copy_")
        .trace("copies between GPU and host memory with cudaStreamSynchronize or cudaEventSynchronize")
        .by_use()
        .why("The scheduler needs the tokens; newer versions copy them to pinned memory and wait on an event.")
        .fix(NonBlocking, "leave async_scheduling to vLLM: on where it works")
        .before("llm = LLM(name, async_scheduling=False)")
        .after("llm = LLM(name)")
        .mind("Where it is off all the same, the log says why: some speculative decoding, pipeline parallelism, the executor. Asking for it there is an error. Older versions read with a blocking copy: upgrade.")
        .sources("vllm#22760, vllm#41429, vllm#51458, vllm#43107, vLLM 0.33.0")
        .site(&[("vllm/v1/worker/gpu_model_runner.py", "_to_list _bookkeeping_sync")])
        .often("every token"),
    BASE.of_kind("L62", "TensorRT-LLM, SGLang: lists uploaded per step", Upload)
        .category(TensorCreation)
        .triggers(&["torch.tensor(list, device=\"cuda\")", "n_valid_blocks.to(device)"])
        .op("torch.tensor, aten::to")
        .trace("an upload from pageable memory, then cudaStreamSynchronize")
        .why("Each step uploads small lists with blocking copies, which drain the running batch.")
        .fix(NonBlocking, "build pinned, upload with non_blocking=True")
        .before("lens = torch.tensor(seq_lens, device='cuda')")
        .after("lens = torch.tensor(seq_lens, pin_memory=True).to('cuda', non_blocking=True)")
        .mind("Do not reuse the pinned buffer before the copy has run.")
        .versions("SGLang 0.5.10 uploads from pinned memory: upgrade")
        .sources("TensorRT-LLM#16680, sglang#35106, SGLang 0.5.10")
        .site(&[("sglang/srt/managers/schedule_batch.py", "prepare_for_extend prepare_for_decode")])
        .often("every step"),
    BASE.of_kind("L63", "torchvision: nms and detection heads", DynamicShape)
        .triggers(&["torchvision.ops.nms(boxes, scores, iou)"])
        .op("torchvision::nms, aten::nonzero")
        .trace("counts of nonzero (4 bytes) and copies to the host, each with cudaStreamSynchronize")
        .why("How many boxes remain depends on the scores.")
        .fix(Delay, "keep a fixed number of boxes with topk before nms")
        .before("keep = torchvision.ops.nms(boxes, scores, 0.5)")
        .after("top = scores.topk(min(100, len(scores))).indices\nkeep = top[torchvision.ops.nms(boxes[top], scores[top], 0.5)]")
        .mind("nms still waits, on far less work; boxes beyond the first 100 are lost. In torchvision's models: box_score_thresh, rpn_pre_nms_top_n_train and _test.")
        .site(&[
                (
                    "torchvision/ops/boxes.py",
                    "nms _batched_nms_vanilla _batched_nms_coordinate_trick remove_small_boxes",
                ),
                ("torchvision/models/detection/roi_heads.py", "postprocess_detections"),
                ("torchvision/models/detection/rpn.py", "filter_proposals"),
            ])
        .often("every image"),
    BASE.entry("L64", "wandb, MLflow: tensors logged directly")
        .triggers(&["wandb.log({'loss': loss})", "mlflow.log_metric('loss', loss)"])
        .op("aten::item or aten::to")
        .trace("a copy of one value to host memory, then cudaStreamSynchronize")
        .why("The logger converts the tensor at once.")
        .fix(Delay, "log every N steps")
        .before("wandb.log({'loss': loss})")
        .after("if step % 100 == 0:\n    wandb.log({'loss': loss.item()}, step=step)")
        .sources("wandb 0.31.0, MLflow 3.18.0")
        .site(&[
                ("wandb/util.py", ""),
                ("wandb/sdk/data_types/utils.py", ""),
                ("wandb/sdk/wandb_run.py", "log"),
                ("mlflow/tracking/fluent.py", "log_metric"),
                ("mlflow/utils/__init__.py", ""),
            ])
        .often("every log call"),
];
