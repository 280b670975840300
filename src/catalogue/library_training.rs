//! L01 to L05 and L19 to L30: Hugging Face Trainer, Lightning, torchmetrics.

use super::{
    CTX_SYNC,
    Category::{self, *},
    LOGGED, Pattern,
    Strategy::*,
};
use crate::vocabulary::Kind::{self, *};

const TRAINER: &str = "transformers/trainer.py";

pub(super) const PATTERNS: &[Pattern] = &[
    LOGGED
        .entry("L01", "Trainer: NaN and infinity filter of the loss")
        .triggers(&["torch.isnan(tr_loss_step) or torch.isinf(tr_loss_step)"])
        .trace("two copies of 1 byte to pinned host memory, each with cudaStreamSynchronize")
        .why("Every micro-step is tested for NaN, only to keep the logged average clean. On by default.")
        .fix(Remove, "set logging_nan_inf_filter=False")
        .before("args = TrainingArguments(output_dir='out')")
        .after("args = TrainingArguments(output_dir='out', logging_nan_inf_filter=False)")
        .mind("A NaN loss then shows as NaN in the log, in all later averages too, and a NaN batch makes eval_loss NaN, by which the best model and early stopping go.")
        .sources("transformers#33693, transformers 5.23.0")
        .site("transformers", &[(TRAINER, "_inner_training_loop _run_epoch train")])
        .line("torch.isnan(tr_loss_step)")
        .often("every micro-step"),
    LOGGED
        .entry("L02", "Trainer: average loss for the log")
        .triggers(&["nested_gather(tr_loss).mean().item()"])
        .fix(Delay, "raise logging_steps")
        .before("args = TrainingArguments(output_dir='out', logging_steps=1)")
        .after("args = TrainingArguments(output_dir='out', logging_steps=100)")
        .mind("eval_steps follows logging_steps where it is not given: give it (early stopping, best model).")
        .sources("transformers 5.23.0")
        .site("transformers", &[(TRAINER, "_maybe_log_save_evaluate")])
        .line("tr_loss_scalar")
        .often("every logging_steps"),
    LOGGED
        .entry("L03", "Trainer: gradient norm for the log")
        .triggers(&["grad_norm.item()"])
        .fix(Delay, "raise logging_steps")
        .before("args = TrainingArguments(output_dir='out', logging_steps=1)")
        .after("args = TrainingArguments(output_dir='out', logging_steps=100)")
        .mind("With DeepSpeed the norm is read in every step all the same. eval_steps follows logging_steps where it is not given.")
        .sources("transformers 5.23.0")
        .site("transformers", &[(TRAINER, "_maybe_log_save_evaluate _get_grad_norm _inner_training_loop")])
        .line("grad_norm.item()")
        .often("every logging_steps; every step with DeepSpeed"),
    LOGGED
        .entry("L04", "Trainer: count of input tokens")
        .triggers(&["accelerator.gather(input_tokens).sum().item()"])
        .trace("an upload of 8 bytes, an NCCL gather, a copy of 8 bytes back, each with cudaStreamSynchronize")
        .why("The token counter is uploaded, gathered over all ranks and read back.")
        .fix(Remove, "leave include_num_input_tokens_seen off")
        .before("args = TrainingArguments(output_dir='out', include_num_input_tokens_seen=True)")
        .after("args = TrainingArguments(output_dir='out')")
        .mind("The log no longer has the count: take it from the data.")
        .sources("transformers 5.23.0")
        .site("transformers", &[(TRAINER, "_inner_training_loop _track_num_input_tokens _run_epoch")])
        .line("gather(input_tokens)")
        .often("every step with include_num_input_tokens_seen"),
    LOGGED
        .entry("L05", "Trainer: final training loss")
        .triggers(&["self._tr_loss.item()"])
        .why("The total loss is read once, at the end.")
        .fix(Leave, "nothing to do: once at the end")
        .sources("transformers 5.23.0")
        .site("transformers", &[(TRAINER, "_finalize_training _inner_training_loop train")])
        .line("tr_loss.item()")
        .often("once"),
    LOGGED
        .entry("L19", "Lightning: metric in the progress bar")
        .triggers(&["self.log('loss', loss, prog_bar=True)"])
        .why("A metric with prog_bar=True is read every step to print it, even when the bar is switched off.")
        .fix(Remove, "log with prog_bar=False")
        .before("self.log('loss', loss, prog_bar=True)")
        .after("self.log('loss', loss)")
        .mind("The bar no longer shows it, the logger does, every log_every_n_steps. prog_bar must not change from step to step.")
        .sources("Lightning#21232, Lightning 2.6.6")
        .site(
            "lightning",
            &[("lightning/pytorch/trainer/connectors/logger_connector/result.py", "metrics update_metrics")],
        )
        .line("convert_tensors_to_scalars")
        .often("every step and metric with prog_bar=True"),
    LOGGED
        .entry("L20", "Lightning: metrics sent to the logger")
        .triggers(&["self.log('loss', loss)", "convert_tensors_to_scalars(metrics)"])
        .fix(Delay, "raise log_every_n_steps")
        .before("trainer = Trainer(log_every_n_steps=1)")
        .after("trainer = Trainer(log_every_n_steps=100)")
        .sources("Lightning 2.6.6")
        .site(
            "lightning",
            &[
                ("lightning/pytorch/trainer/connectors/logger_connector/logger_connector.py", "log_metrics"),
                ("lightning/fabric/utilities/apply_func.py", "to_item convert_tensors_to_scalars"),
            ],
        )
        .often("every log_every_n_steps"),
    LOGGED
        .entry("L21", "Lightning: SIGTERM broadcast")
        .category(Distributed)
        .triggers(&["if sigterm_tensor.item() == 1"])
        .trace("an upload of 8 bytes with cudaStreamSynchronize, an NCCL broadcast, a copy of 8 bytes back with cudaStreamSynchronize")
        .kind(Kind::ErrorCheck)
        .intended()
        .why("With several ranks each step asks rank 0 over the GPU whether a signal has arrived.")
        .fix(Delay, "ask every N steps: wrap the loop's method")
        .before("trainer.fit(model)")
        .after("from lightning.pytorch.loops.training_epoch_loop import _TrainingEpochLoop as Loop\nask = Loop._broadcast_sigterm_tensor\ndef rarely(self):\n    if self.batch_idx % 100 == 0:\n        ask(self)\nLoop._broadcast_sigterm_tensor = rarely\ntrainer.fit(model)")
        .mind("A pre-empted job notices the signal later.")
        .sources("Lightning#21640, Lightning#21487, Lightning 2.6.6")
        .site(
            "lightning",
            &[(
                "lightning/pytorch/loops/training_epoch_loop.py",
                "_broadcast_sigterm_tensor broadcast_sigterm_tensor",
            )],
        )
        .often("every step with several ranks"),
    LOGGED
        .entry("L22", "Lightning: EarlyStopping")
        .triggers(&["EarlyStopping(monitor='val_loss')"])
        .trace("copies of 1 byte to pinned host memory, each with cudaStreamSynchronize")
        .kind(ControlFlow)
        .why("Whether training stops is decided on the CPU.")
        .fix(Delay, "check at the end of epochs only")
        .before("cb = EarlyStopping('val_loss', check_on_train_epoch_end=False)")
        .after("cb = EarlyStopping('val_loss', check_on_train_epoch_end=True)")
        .mind("Patience then counts epochs. Not with check_val_every_n_epoch above 1; with one validation an epoch it changes nothing.")
        .sources("Lightning 2.6.6")
        .site(
            "lightning",
            &[(
                "lightning/pytorch/callbacks/early_stopping.py",
                "_evaluate_stopping_criteria _run_early_stopping_check",
            )],
        )
        .often("every validation"),
    LOGGED
        .entry("L23", "Lightning: ModelCheckpoint")
        .triggers(&["ModelCheckpoint(monitor='val_loss')"])
        .trace("copies of 1 byte to pinned host memory, each with cudaStreamSynchronize, after a collective")
        .kind(ControlFlow)
        .why("Whether a checkpoint is written is decided on the CPU.")
        .fix(Delay, "check for checkpoints more rarely")
        .before("cb = ModelCheckpoint(monitor='val_loss', every_n_train_steps=10)")
        .after("cb = ModelCheckpoint(monitor='val_loss', every_n_epochs=1)")
        .mind("Other checkpoints are kept, and a resumed run does not take over which were best.")
        .sources("Lightning 2.6.6")
        .site(
            "lightning",
            &[(
                "lightning/pytorch/callbacks/model_checkpoint.py",
                "check_monitor_top_k _update_best_and_save",
            )],
        )
        .often("every checkpoint check"),
    LOGGED
        .entry("L24", "Lightning: detect_anomaly")
        .triggers(&["Trainer(detect_anomaly=True)"])
        .trace("a copy of 1 byte to pinned host memory, then cudaStreamSynchronize")
        .kind(Kind::ErrorCheck)
        .intended()
        .category(Category::ErrorCheck)
        .why("A debugging switch: autograd tests every gradient for NaN.")
        .fix(Remove, "leave detect_anomaly off")
        .before("trainer = Trainer(detect_anomaly=True)")
        .after("trainer = Trainer()")
        .versions("the loss as well in older versions")
        .sources("Lightning 2.6.6")
        .site("lightning", &[("lightning/pytorch/loops/utilities.py", "check_finite_loss")])
        .often("every step with detect_anomaly"),
    LOGGED
        .entry("L25", "Lightning: ThroughputMonitor")
        .category(ExplicitSync)
        .triggers(&["ThroughputMonitor(batch_size_fn)"])
        .op("torch.cuda.synchronize")
        .trace("cudaDeviceSynchronize without a copy")
        .kind(Timing)
        .intended()
        .why("The callback drains the device to measure throughput.")
        .fix(Remove, "remove the callback outside measurements")
        .before("trainer = Trainer(callbacks=[ThroughputMonitor(batch_size_fn=len)])")
        .after("trainer = Trainer()")
        .driver_api(CTX_SYNC)
        .sources("Lightning 2.6.6")
        .site("lightning", &[("lightning/pytorch/callbacks/throughput_monitor.py", "")])
        .often("every step"),
    LOGGED
        .entry("L26", "Lightning: rich progress bar")
        .triggers(&["RichProgressBar()"])
        .why("Metrics are read to print them, in every batch: refresh_rate of this bar is of its drawing only.")
        .fix(Delay, "TQDMProgressBar(refresh_rate=50)")
        .before("trainer = Trainer(callbacks=[RichProgressBar()])")
        .after("trainer = Trainer(callbacks=[TQDMProgressBar(refresh_rate=50)])")
        .mind("Metrics with prog_bar=True are read in every batch all the same: log them without.")
        .or(&["enable_progress_bar=False"])
        .sources("Lightning 2.6.6")
        .site("lightning", &[("lightning/pytorch/callbacks/progress/rich_progress.py", "")])
        .often("every refresh"),
    LOGGED
        .entry("L27", "torchmetrics: validation of classification targets")
        .category(Category::ErrorCheck)
        .triggers(&["MulticlassAccuracy(num_classes=10)", "torch.unique(target)"])
        .op("aten::_unique2, aten::is_nonzero")
        .trace("unique with its count (8 bytes) and a copy of 1 byte, each with cudaStreamSynchronize")
        .kind(Kind::ErrorCheck)
        .why("Every update looks for unexpected label values.")
        .fix(Remove, "pass validate_args=False")
        .before("acc = MulticlassAccuracy(num_classes=10)")
        .after("acc = MulticlassAccuracy(num_classes=10, validate_args=False)")
        .mind("Wrong labels are no longer reported.")
        .sources("torchmetrics 1.9.0")
        .site("torchmetrics", &[("torchmetrics/functional/classification/", "*_tensor_validation")])
        .often("every update"),
    LOGGED
        .entry("L28", "torchmetrics: NaN check of MeanMetric, SumMetric")
        .category(Category::ErrorCheck)
        .triggers(&["MeanMetric()", "SumMetric()"])
        .trace("one or two copies of 1 byte to pinned host memory, each with cudaStreamSynchronize")
        .kind(Kind::ErrorCheck)
        .why("Every update tests for NaN and branches on the answer.")
        .fix(Remove, "pass nan_strategy='disable'")
        .before("m = MeanMetric()")
        .after("m = MeanMetric(nan_strategy='disable')")
        .mind("NaN values then reach the mean.")
        .sources("torchmetrics#2943, torchmetrics 1.9.0")
        .site("torchmetrics", &[("torchmetrics/aggregation.py", "_cast_and_nan_check_input")])
        .often("every update"),
    LOGGED
        .entry("L29", "torchmetrics: bincount")
        .category(DynamicShapes)
        .triggers(&["torchmetrics.utilities.data._bincount(x)"])
        .op("aten::bincount, aten::_unique2")
        .trace("the waits of unique and of bincount, one after the other")
        .kind(DynamicShape)
        .why("The number of bins is taken from the data when it is not given, and bincount reads its range anyway.")
        .fix(SyncFreeApi, "count with scatter_add_ into a fixed number of bins")
        .before("n = _bincount(x)")
        .after("n = torch.zeros(C, dtype=torch.long, device='cuda').scatter_add_(0, x, torch.ones_like(x))")
        .mind("Values must lie in 0..C-1.")
        .sources("torchmetrics#1413, torchmetrics#2638, torchmetrics 1.9.0")
        .site("torchmetrics", &[("torchmetrics/utilities/data.py", "_bincount")])
        .often("every update"),
    LOGGED
        .entry("L30", "torchmetrics: gathering tensors of unequal shape")
        .category(DynamicShapes)
        .triggers(&["gather_all_tensors(x)"])
        .trace("a copy of 8 bytes to pinned host memory and cudaStreamSynchronize per dimension")
        .kind(DynamicShape)
        .why("The other ranks' shapes decide the padding.")
        .fix(SyncFreeApi, "keep metric states of equal shape on all ranks")
        .before("self.add_state('preds', default=[], dist_reduce_fx='cat')")
        .after("self.add_state('total', default=torch.tensor(0.0), dist_reduce_fx='sum')")
        .mind("Only where the metric can be computed from sums.")
        .sources("torchmetrics 1.9.0")
        .site("torchmetrics", &[("torchmetrics/utilities/distributed.py", "gather_all_tensors")])
        .often("every sync"),
];
