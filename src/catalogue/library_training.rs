//! L01 to L05 and L19 to L30: Hugging Face Trainer, Lightning, torchmetrics.

use super::{Category::{self, *}, CTX_SYNC, Pattern, Strategy::*, fix, site};
use crate::vocabulary::Kind::{self, *};

const BASE: Pattern = Pattern {
    op: "aten::_local_scalar_dense",
    trace: "a copy of 4 bytes to pinned host memory, then cudaStreamSynchronize",
    kind: Some(Logging),
    why: "The value is read only to be logged.",
    ..Pattern::BASE
};

const TRAINER: &str = "transformers/trainer.py";

pub(super) const PATTERNS: &[Pattern] = &[
    Pattern {
        id: "L01",
        title: "Trainer: NaN and infinity filter of the loss",
        triggers: &["torch.isnan(tr_loss_step) or torch.isinf(tr_loss_step)"],
        trace: "two copies of 1 byte to pinned host memory, each with cudaStreamSynchronize",
        why: "Every micro-step is tested for NaN, only to keep the logged average clean. On by default.",
        fix: fix(
            Remove,
            "set logging_nan_inf_filter=False",
            "args = TrainingArguments(output_dir='out')",
            "args = TrainingArguments(output_dir='out', logging_nan_inf_filter=False)",
            "A NaN loss then shows as NaN in the log.",
        ),
        sources: "transformers#33693",
        library: site(
            "transformers",
            &[(TRAINER, "_inner_training_loop"), (TRAINER, "_run_epoch"), (TRAINER, "train")],
            "torch.isnan(tr_loss_step)",
            "every micro-step",
        ),
        ..BASE
    },
    Pattern {
        id: "L02",
        title: "Trainer: average loss for the log",
        triggers: &["nested_gather(tr_loss).mean().item()"],
        fix: fix(
            Delay,
            "raise logging_steps",
            "args = TrainingArguments(output_dir='out', logging_steps=1)",
            "args = TrainingArguments(output_dir='out', logging_steps=100)",
            "",
        ),
        sources: "transformers 5.23",
        library: site(
            "transformers",
            &[(TRAINER, "_maybe_log_save_evaluate")],
            "tr_loss_scalar",
            "every logging_steps",
        ),
        ..BASE
    },
    Pattern {
        id: "L03",
        title: "Trainer: gradient norm for the log",
        triggers: &["grad_norm.item()"],
        fix: fix(
            Delay,
            "raise logging_steps",
            "args = TrainingArguments(output_dir='out', logging_steps=1)",
            "args = TrainingArguments(output_dir='out', logging_steps=100)",
            "With DeepSpeed the norm is read in every step all the same.",
        ),
        sources: "transformers 5.23",
        library: site(
            "transformers",
            &[(TRAINER, "_maybe_log_save_evaluate"), (TRAINER, "_get_grad_norm"), (TRAINER, "_inner_training_loop")],
            "grad_norm.item()",
            "every logging_steps; every step with DeepSpeed",
        ),
        ..BASE
    },
    Pattern {
        id: "L04",
        title: "Trainer: count of input tokens",
        triggers: &["accelerator.gather(input_tokens).sum().item()"],
        trace: "an upload of 8 bytes, an NCCL gather, a copy of 8 bytes back, each with cudaStreamSynchronize",
        why: "The token counter is uploaded, gathered over all ranks and read back.",
        fix: fix(
            Remove,
            "leave include_num_input_tokens_seen off",
            "args = TrainingArguments(output_dir='out', include_num_input_tokens_seen=True)",
            "args = TrainingArguments(output_dir='out')",
            "The log no longer has the count: take it from the data.",
        ),
        sources: "transformers 5.23",
        library: site(
            "transformers",
            &[(TRAINER, "_inner_training_loop"), (TRAINER, "_track_num_input_tokens"), (TRAINER, "_run_epoch")],
            "gather(input_tokens)",
            "every step with include_num_input_tokens_seen",
        ),
        ..BASE
    },
    Pattern {
        id: "L05",
        title: "Trainer: final training loss",
        triggers: &["self._tr_loss.item()"],
        why: "The total loss is read once, at the end.",
        fix: fix(Leave, "nothing to do: once at the end", "", "", ""),
        sources: "transformers 5.23",
        library: site(
            "transformers",
            &[(TRAINER, "_finalize_training"), (TRAINER, "_inner_training_loop"), (TRAINER, "train")],
            "_tr_loss.item()",
            "once",
        ),
        ..BASE
    },
    Pattern {
        id: "L19",
        title: "Lightning: metric in the progress bar",
        triggers: &["self.log('loss', loss, prog_bar=True)"],
        why: "A metric with prog_bar=True is read every step to print it, even when the bar is switched off.",
        fix: fix(
            Remove,
            "log with prog_bar=False, or print every N steps",
            "self.log('loss', loss, prog_bar=True)",
            "self.log('loss', loss, prog_bar=self.trainer.global_step % 50 == 0)",
            "The bar shows the number more rarely.",
        ),
        sources: "Lightning#21232",
        library: site(
            "lightning",
            &[
                ("trainer/connectors/logger_connector/result.py", "metrics"),
                ("trainer/connectors/logger_connector/result.py", "update_metrics"),
            ],
            "convert_tensors_to_scalars",
            "every step and metric with prog_bar=True",
        ),
        ..BASE
    },
    Pattern {
        id: "L20",
        title: "Lightning: metrics sent to the logger",
        triggers: &["self.log('loss', loss)", "convert_tensors_to_scalars(metrics)"],
        fix: fix(
            Delay,
            "raise log_every_n_steps",
            "trainer = Trainer(log_every_n_steps=1)",
            "trainer = Trainer(log_every_n_steps=100)",
            "",
        ),
        sources: "Lightning sources",
        library: site(
            "lightning",
            &[
                ("trainer/connectors/logger_connector/logger_connector.py", "log_metrics"),
                ("fabric/utilities/apply_func.py", "to_item"),
                ("fabric/utilities/apply_func.py", "convert_tensors_to_scalars"),
            ],
            "",
            "every log_every_n_steps",
        ),
        ..BASE
    },
    Pattern {
        id: "L21",
        category: Distributed,
        title: "Lightning: SIGTERM broadcast",
        triggers: &["if sigterm_tensor.item() == 1"],
        trace: "an upload of 8 bytes with cudaStreamSynchronize, an NCCL broadcast, a copy of 8 bytes back with cudaStreamSynchronize",
        kind: Some(Kind::ErrorCheck),
        intended: true,
        why: "With several ranks each step asks rank 0 over the GPU whether a signal has arrived.",
        fix: fix(
            Delay,
            "ask every N steps (newer Lightning has a setting)",
            "# every step\nself._broadcast_sigterm_tensor()",
            "if batch_idx % 100 == 0:\n    self._broadcast_sigterm_tensor()",
            "A pre-empted job notices the signal later.",
        ),
        sources: "Lightning#21640, Lightning#21487",
        library: site(
            "lightning",
            &[
                ("loops/training_epoch_loop.py", "_broadcast_sigterm_tensor"),
                ("loops/training_epoch_loop.py", "broadcast_sigterm_tensor"),
            ],
            "",
            "every step with several ranks",
        ),
        ..BASE
    },
];
