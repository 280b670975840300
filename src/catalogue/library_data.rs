//! L31 to L36, L55, L57, L59 to L64: accelerate, timm, training scripts, TRL, loggers, inference engines.

use super::{CTX_SYNC, Category::*, LOGGED, Pattern, Strategy::*, fix, site};
use crate::vocabulary::Kind::*;

const OPERATIONS: &str = "accelerate/utils/operations.py";

pub(super) const PATTERNS: &[Pattern] = &[
    Pattern {
        id: "L31",
        category: DeviceMovement,
        title: "accelerate: batches moved to the GPU",
        triggers: &["accelerator.prepare(loader)", "send_to_device(batch, device)"],
        op: "aten::to",
        trace: "per tensor: a copy from pageable or pinned host memory to the GPU, then cudaStreamSynchronize",
        kind: Some(Upload),
        why: "Batches are uploaded with blocking copies unless asked otherwise.",
        fix: fix(NonBlocking, "DataLoaderConfiguration(non_blocking=True)")
            .before("acc = Accelerator()\nloader = acc.prepare(DataLoader(ds))")
            .after("acc = Accelerator(dataloader_config=DataLoaderConfiguration(non_blocking=True))\nloader = acc.prepare(DataLoader(ds, pin_memory=True))")
            .mind("Only from pinned memory. Do not overwrite the CPU batch before the copy has run. With the Trainer: accelerator_config={'non_blocking': True}."),
        sources: "accelerate 1.15.0",
        library: site(
            "accelerate",
            &[(OPERATIONS, "send_to_device _send_to_device"), ("accelerate/data_loader.py", "__iter__")],
        )
        .often("every batch"),
        ..LOGGED
    },
    Pattern {
        id: "L32",
        title: "accelerate: check_trigger()",
        triggers: &["accelerator.check_trigger()"],
        trace: "a collective, a copy of 8 bytes to pinned host memory, then cudaStreamSynchronize",
        kind: Some(ControlFlow),
        why: "All ranks decide together whether to stop.",
        fix: fix(Delay, "ask every N steps")
            .before("if accelerator.check_trigger():\n    break")
            .after("if step % 50 == 0 and accelerator.check_trigger():\n    break")
            .mind("Training stops a little later."),
        sources: "accelerate 1.15.0",
        library: site("accelerate", &[("accelerate/accelerator.py", "check_trigger")]).often("every call"),
        ..LOGGED
    },
    Pattern {
        id: "L33",
        category: DynamicShapes,
        title: "accelerate: gather_object, pad_across_processes",
        triggers: &["accelerator.pad_across_processes(x)", "accelerator.gather_for_metrics(x)"],
        trace: "copies of sizes to the host, each with cudaStreamSynchronize",
        kind: Some(DynamicShape),
        why: "The sizes of the other ranks decide the padding.",
        fix: fix(Delay, "gather once after the loop")
            .before("for x in loader:\n    preds.append(accelerator.gather_for_metrics(model(x)))")
            .after("for x in loader:\n    preds.append(model(x).detach())\npreds = accelerator.gather_for_metrics(torch.cat(preds))")
            .mind("All predictions of a rank must fit in GPU memory, with equal shapes."),
        sources: "accelerate 1.15.0",
        library: site(
            "accelerate",
            &[(OPERATIONS, "_pad_across_processes pad_across_processes _gpu_gather_object gather_object gather_tensor_shape")],
        )
        .often("every call"),
        ..LOGGED
    },
    Pattern {
        id: "L34",
        title: "timm: training loss meter",
        triggers: &["losses_m.update(loss.item() * accum_steps, batch_size)"],
        fix: fix(Delay, "add up on the GPU, read at log_interval")
            .before("losses_m.update(loss.item(), n)")
            .after("loss_sum, seen = torch.zeros((), device='cuda'), 0  # once\nloss_sum += loss.detach() * n\nseen += n\nif step % log_interval == 0:\n    losses_m.update(loss_sum.item() / seen, seen)\n    loss_sum.zero_()\n    seen = 0"),
        sources: "timm 1.0.29 (train.py, validate.py)",
        library: site("timm", &[("train.py", "train_one_epoch")])
            .line("losses_m.update(loss.item()")
            .often("every micro-step"),
        ..LOGGED
    },
    Pattern {
        id: "L35",
        category: ExplicitSync,
        title: "timm: synchronize per step",
        triggers: &["torch.cuda.synchronize()"],
        op: "torch.cuda.synchronize",
        trace: "cudaDeviceSynchronize without a copy",
        kind: Some(Timing),
        intended: true,
        why: "The step time in the log is made exact by draining the device.",
        fix: fix(Remove, "leave out --synchronize-step")
            .before("torch.cuda.synchronize()\nbatch_time.update(time.time() - end)")
            .after("batch_time.update(time.time() - end)")
            .mind("Times of single steps become inexact; their mean stays right."),
        driver_api: CTX_SYNC,
        sources: "timm 1.0.29 (train.py, validate.py)",
        library: site("timm", &[("train.py", "train_one_epoch validate")])
            .line("torch.cuda.synchronize()")
            .often("every step"),
        ..LOGGED
    },
    Pattern {
        id: "L36",
        title: "timm: validation meters",
        triggers: &["losses_m.update(reduced_loss.item(), n)", "acc1.item()"],
        trace: "three copies of 4 bytes to pinned host memory, each with cudaStreamSynchronize",
        fix: fix(Coalesce, "stack loss, acc1, acc5 and read once")
            .before("losses_m.update(loss.item(), n)\ntop1_m.update(acc1.item(), n)\ntop5_m.update(acc5.item(), n)")
            .after("l, a1, a5 = torch.stack([loss, acc1, acc5]).tolist()\nlosses_m.update(l, n)\ntop1_m.update(a1, n)\ntop5_m.update(a5, n)"),
        sources: "timm 1.0.29 (train.py, validate.py)",
        library: site("timm", &[("train.py", "validate"), ("validate.py", "validate")])
            .line(".item(), ")
            .often("every validation batch"),
        ..LOGGED
    },
    Pattern {
        id: "L55",
        title: "diffusers: training examples",
        triggers: &["train_loss += avg_loss.item()", "logs = {'step_loss': loss.detach().item()}"],
        trace: "two copies of 4 bytes to pinned host memory, each with cudaStreamSynchronize",
        fix: fix(Delay, "add up on the GPU; log every N steps")
            .before("train_loss += avg_loss.item() / accumulation")
            .after("train_loss = torch.zeros((), device='cuda')  # once\ntrain_loss += avg_loss.detach() / accumulation")
            .mind("Format it only when you log."),
        sources: "diffusers 0.42.1",
        library: site(
            "diffusers",
            &[
                ("examples/text_to_image/train_text_to_image.py", "main"),
                ("examples/text_to_image/train_text_to_image_lora.py", "main"),
                ("examples/text_to_image/train_text_to_image_sdxl.py", "main"),
                ("examples/dreambooth/train_dreambooth.py", "main"),
                ("examples/controlnet/train_controlnet.py", "main"),
                ("examples/unconditional_image_generation/train_unconditional.py", "main"),
            ],
        )
        .line("loss")
        .often("every step"),
        ..LOGGED
    },
    Pattern {
        id: "L57",
        title: "TRL: metrics of GRPO and DPO",
        triggers: &["self._metrics[mode]['reward'].append(x.mean().item())"],
        trace: "8 to 12 copies of 4 bytes in a row, each with cudaStreamSynchronize, small reductions between",
        why: "Each metric is read by itself; they could be read together when they are logged.",
        fix: fix(Coalesce, "append tensors; convert them when logging")
            .before("metrics['kl'].append(kl.mean().item())")
            .after("metrics['kl'].append(kl.mean().detach())\n# after the loop: in log()\nvalue = torch.stack(metrics['kl']).mean().item()"),
        sources: "TRL 1.16.0",
        library: site(
            "trl",
            &[
                ("trl/trainer/grpo_trainer.py", "_compute_loss _generate_and_score_completions _generate"),
                ("trl/trainer/dpo_trainer.py", "_compute_loss get_batch_loss_metrics"),
            ],
        )
        .line(".item()")
        .often("every step"),
        ..LOGGED
    },
    Pattern {
        id: "L59",
        title: "nanoGPT: loss for the log",
        triggers: &["lossf = loss.item() * gradient_accumulation_steps"],
        fix: fix(Delay, "raise log_interval").before("log_interval = 1").after("log_interval = 100"),
        sources: "nanoGPT 3adf61e (train.py)",
        library: site("nanogpt", &[("train.py", "<module>")])
            .line("loss.item() * gradient_accumulation_steps")
            .often("every log_interval"),
        ..LOGGED
    },
    Pattern {
        id: "L60",
        title: "tqdm: set_postfix() with tensors",
        triggers: &["bar.set_postfix(loss=loss)"],
        op: "torch._tensor_str",
        trace: "a burst of small copies, each with cudaStreamSynchronize, as for printing a tensor",
        why: "The bar turns the tensor into text every time.",
        fix: fix(Delay, "set the postfix every N steps")
            .before("bar.set_postfix(loss=loss)")
            .after("if step % 50 == 0:\n    bar.set_postfix(loss=loss.item())"),
        sources: "tqdm 4.70.1",
        library: site("tqdm", &[("tqdm/std.py", "set_postfix format_dict")]).often("every step"),
        ..LOGGED
    },
    Pattern {
        id: "L61",
        category: DeviceMovement,
        title: "vLLM: sampled tokens to the host",
        triggers: &["sampled_token_ids.tolist()"],
        op: "Tensor.tolist, aten::copy_",
        trace: "copies between GPU and host memory with cudaStreamSynchronize or cudaEventSynchronize",
        kind: None,
        why: "The scheduler needs the tokens; newer versions copy them to pinned memory and wait on an event.",
        fix: fix(NonBlocking, "async_scheduling=True: the next step runs meanwhile")
            .before("llm = LLM(name)")
            .after("llm = LLM(name, async_scheduling=True)")
            .mind("Older versions read the tokens with a blocking copy: upgrade. Not with every kind of speculative decoding."),
        sources: "vllm#22760, vllm#41429, vllm#51458, vllm#43107, vLLM 0.33.0",
        library: site("vllm", &[("vllm/v1/worker/gpu_model_runner.py", "_to_list _bookkeeping_sync")])
            .often("every token"),
        ..LOGGED
    },
    Pattern {
        id: "L62",
        category: TensorCreation,
        title: "TensorRT-LLM, SGLang: lists uploaded per step",
        triggers: &["torch.tensor(list, device=\"cuda\")", "n_valid_blocks.to(device)"],
        op: "torch.tensor, aten::to",
        trace: "an upload from pageable memory, then cudaStreamSynchronize",
        kind: Some(Upload),
        why: "Each step uploads small lists with blocking copies, which drain the running batch.",
        fix: fix(NonBlocking, "build pinned, upload with non_blocking=True")
            .before("lens = torch.tensor(seq_lens, device='cuda')")
            .after("lens = torch.tensor(seq_lens, pin_memory=True).to('cuda', non_blocking=True)")
            .mind("Do not reuse the pinned buffer before the copy has run."),
        sources: "TensorRT-LLM#16680, sglang#35106, SGLang 0.5.10",
        library: site(
            "sglang",
            &[("sglang/srt/managers/schedule_batch.py", "prepare_for_extend prepare_for_decode")],
        )
        .often("every step"),
        ..LOGGED
    },
    Pattern {
        id: "L63",
        category: DynamicShapes,
        title: "torchvision: nms and detection heads",
        triggers: &["torchvision.ops.nms(boxes, scores, iou)"],
        op: "torchvision::nms, aten::nonzero",
        trace: "counts of nonzero (4 bytes) and copies to the host, each with cudaStreamSynchronize",
        kind: Some(DynamicShape),
        why: "How many boxes remain depends on the scores.",
        fix: fix(Delay, "keep a fixed number of boxes with topk before nms")
            .before("keep = torchvision.ops.nms(boxes, scores, 0.5)")
            .after("scores, top = scores.topk(100)\nkeep = torchvision.ops.nms(boxes[top], scores, 0.5)")
            .mind("nms still waits, on far less work; boxes beyond the first 100 are lost."),
        sources: "torchvision 0.29.2",
        library: site(
            "torchvision",
            &[
                (
                    "torchvision/ops/boxes.py",
                    "nms _batched_nms_vanilla _batched_nms_coordinate_trick remove_small_boxes",
                ),
                ("torchvision/models/detection/roi_heads.py", "postprocess_detections"),
                ("torchvision/models/detection/rpn.py", "filter_proposals"),
            ],
        )
        .often("every image"),
        ..LOGGED
    },
    Pattern {
        id: "L64",
        title: "wandb, MLflow: tensors logged directly",
        triggers: &["wandb.log({'loss': loss})", "mlflow.log_metric('loss', loss)"],
        op: "aten::item or aten::to",
        trace: "a copy of one value to host memory, then cudaStreamSynchronize",
        why: "The logger converts the tensor at once.",
        fix: fix(Delay, "log every N steps")
            .before("wandb.log({'loss': loss})")
            .after("if step % 100 == 0:\n    wandb.log({'loss': loss.item()})"),
        sources: "wandb 0.31.0, MLflow 3.18.0",
        library: site(
            "wandb",
            &[
                ("wandb/util.py", ""),
                ("wandb/sdk/data_types/utils.py", ""),
                ("wandb/sdk/wandb_run.py", "log"),
                ("mlflow/tracking/fluent.py", "log_metric"),
                ("mlflow/utils/__init__.py", ""),
            ],
        )
        .often("every log call"),
        ..LOGGED
    },
];
