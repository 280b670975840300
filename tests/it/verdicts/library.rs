//! Library code that several entries of the catalogue share: told apart by its lines, where they can be read.

use super::{Scene, read, words};
use crate::export::{Copy, Memory};
use crate::look;
use crate::snippets::marker;
use sync_report::analysis::Options;
use sync_report::model::{Fix, Report, Site};
use sync_report::verdict::source::SourceRoot;
use sync_report::vocabulary::PatternId;

const TRAINER: &str = "/venv/lib/python3.12/site-packages/transformers/trainer.py";

/// Text of a file in `library.py`, by the start of its name, and its marked (line, expected words).
fn file(name: &str) -> (String, Vec<(i64, String)>) {
    let mut files = marker::parse(include_str!("library.py")).into_iter();
    let file = files.find(|file| file.name.starts_with(name)).expect("a file of that name");
    let marks = file.marks.into_iter().map(|mark| (mark.line as i64, mark.operation));
    (file.lines.join("\n"), marks.collect())
}

/// `frames` are (function, file, line); `files` are (path, text).
fn site(frames: &[(&str, &str, i64)], files: &[(&str, &str)]) -> Site {
    site_of(Scene { copy: read(4), frames, ..Scene::default() }, files)
}

fn site_of(scene: Scene, files: &[(&str, &str)]) -> Site {
    report_of(scene, files).sites[0].clone()
}

pub fn report_of(scene: Scene, files: &[(&str, &str)]) -> Report {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (path, text) in files {
        let path = folder.path().join(path.trim_start_matches('/'));
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        std::fs::write(path, text).expect("a written file");
    }
    let root = SourceRoot { old: Some("/".into()), new: folder.path().to_owned() };
    let options = Options { source_roots: vec![root], ..look::options() };
    look::report_with(&scene.export(), &options)
}

fn in_loop(line: i64, files: &[(&str, &str)]) -> Site {
    site(&[("_inner_training_loop", TRAINER, line), ("main", "/w/run.py", 3)], files)
}

#[test]
fn the_line_chooses_among_the_entries_of_a_function() {
    let (text, marks) = file("transformers");
    for (line, said) in marks {
        assert_eq!(words(&in_loop(line, &[(TRAINER, &text)])), said, "line {line}");
    }
}

/// Class and kind, which the entries share, remain, with the advice for any read.
#[test]
fn without_the_line_none_is_picked() {
    let site = in_loop(6, &[]);
    assert_eq!(words(&site), "false logging A01 R17");
    assert!(site.evidence[0].text.contains("is not at hand"), "{:?}", site.evidence);
    // Another version of the file is at hand: the line is in another function.
    let moved = file("transformers").0.replace("_inner_training_loop", "_run_epoch");
    assert_eq!(words(&in_loop(6, &[(TRAINER, &moved)])), "false logging A01 R17");
    let generate = "/venv/lib/python3.12/site-packages/transformers/generation/utils.py";
    let sample = |function| self::site(&[(function, generate, 9), ("main", "/w/run.py", 3)], &[]);
    assert_eq!(words(&sample("_sample")), "true control-flow A01 R17");
    assert_eq!(words(&sample("_beam_search")), "true control-flow L06 R17");
}

/// A copied script is the user's own code: the source decides, and the line only selects the advice.
#[test]
fn a_copied_script_gets_its_own_advice() {
    let script = "/w/train.py";
    let (text, marks) = file("a copied script");
    for (line, said) in marks {
        let site = site(&[("train_one_epoch", script, line)], &[(script, &text)]);
        let own = site.pattern == Some(PatternId::L34);
        let found = if own { format!("{} L34", site.kind) } else { "another".to_owned() };
        assert_eq!(found, said, "{:?}", site.evidence);
    }
    let unread = site(&[("train_one_epoch", script, 4)], &[]);
    assert_ne!(unread.pattern, Some(PatternId::L34));
}

/// Lightning's progress bar, in either of its packages: the row is the user's line, the advice the option of the library.
#[test]
fn a_library_has_its_entry_under_every_name_of_its_package() {
    const PACKAGES: &str = "/venv/lib/python3.12/site-packages/";
    for [fabric, pytorch] in
        [["lightning/fabric", "lightning/pytorch"], ["lightning_fabric", "pytorch_lightning"]]
    {
        let file = |path: &str| format!("{PACKAGES}{path}");
        let read = file(&format!("{fabric}/utilities/apply_func.py"));
        let apply = file("lightning_utilities/core/apply_func.py");
        let metrics = file(&format!("{pytorch}/trainer/connectors/logger_connector/result.py"));
        let bar = file(&format!("{pytorch}/callbacks/progress/rich_progress.py"));
        let frames = [
            ("to_item", &*read, 134),
            ("apply_to_collection", &*apply, 64),
            ("metrics", &*metrics, 492),
            ("get_metrics", &*bar, 683),
            ("<module>", "/w/fit.py", 43),
        ];
        let site = site(&frames, &[]);
        assert_eq!(words(&site), "false logging L19 R17", "{pytorch}");
        assert_eq!(site.fix.as_ref().map(|fix| &*fix.title), Some("log with prog_bar=False"));
    }
}

/// Values sent to Lightning's loggers get the logger's option, at the line that sends the metrics.
#[test]
fn a_converter_hides_no_option() {
    const PACKAGES: &str = "/venv/lib/python3.12/site-packages/lightning/";
    let file = |path: &str| format!("{PACKAGES}{path}");
    let read = file("fabric/utilities/apply_func.py");
    let logger = file("pytorch/trainer/connectors/logger_connector/logger_connector.py");
    let frames = [
        ("to_item", &*read, 134),
        ("convert_tensors_to_scalars", &*read, 140),
        ("log_metrics", &*logger, 118),
        ("<module>", "/w/fit.py", 43),
    ];
    let site = site(&frames, &[]);
    assert_eq!(words(&site), "false logging L20 R17");
    assert_eq!(site.fix.as_ref().map(|fix| &*fix.title), Some("raise log_every_n_steps"));
    assert_eq!(site.library_frame.as_ref().map(|frame| &*frame.function), Some("log_metrics"));
}

/// An H2D copy is avoidable whoever issues it (R01); a known place names the option.
#[test]
fn an_upload_in_a_library_has_the_librarys_option() {
    let file = "/venv/lib/python3.12/site-packages/lightning_fabric/utilities/apply_func.py";
    let frames = [("batch_to", file, 104), ("<module>", "/w/fit.py", 43)];
    let copy = Some(Copy::h2d(1 << 20, Memory::Pageable));
    let site = Scene { copy, frames: &frames, ..Scene::default() }.site();
    assert_eq!(words(&site), "false upload L65 R01");
    assert!(site.fix.is_some_and(|fix| fix.title.contains("pin_memory=True")));
}

/// A library's waiting line is read like a user's, and its value is followed along the stack. No edit of the
/// user's line is proposed.
///
/// ```text
///  run.py:1 main → fancyrl/agent.py:10 learn → torch/…/_contextlib.py → agent.py:4 train → .item()
/// ```
#[test]
fn the_line_of_a_library_that_waits_is_read() {
    const AGENT: &str = "/venv/lib/python3.12/site-packages/fancyrl/agent.py";
    const WRAPPER: &str = "/venv/lib/python3.12/site-packages/torch/utils/_contextlib.py";
    let ((agent, marks), (wrapper, _)) = (file("an agent"), file("torch: a wrapper"));
    let files = [(AGENT, &*agent), (WRAPPER, &*wrapper), ("/w/run.py", "agent.learn()\n")];
    let stack = |function, line, called| {
        [
            (function, AGENT, line),
            ("decorate_context", WRAPPER, 2),
            ("learn", AGENT, called),
            ("<module>", "/w/run.py", 1),
        ]
    };
    let logged = site(&stack("train", 4, 10), &files);
    assert_eq!(words(&logged), marks[0].1);
    assert!(
        logged.evidence[0].text.starts_with("in agent.py, `loss.item()` is only"),
        "{:?}",
        logged.evidence
    );
    assert_eq!(logged.source.as_deref(), Some("agent.learn()"));
    let proposal = serde_json::to_string(&logged.proposal).expect("JSON");
    assert!(proposal.contains("\"library\""), "{proposal}");
    assert_eq!(words(&site(&stack("act", 6, 9), &files)), marks[1].1);
    // Without the library's file nothing of it is known.
    let unread = site(&stack("train", 4, 10), &files[2..]);
    assert_eq!(words(&unread), "unknown value-read A01 S19");
}

/// A function compiled by TorchScript has no Python frames: a calling line that copies nothing does not make
/// the source stale.
#[test]
fn what_a_scripted_function_does_stands_on_no_line() {
    let chain: &[&str] = &[
        "at::_ops::item::call(at::Tensor const&)",
        "torch::jit::InterpreterStateImpl::runTemplate<true>(std::vector<c10::IValue>&)",
        "torch::jit::runAndInsertCall(torch::jit::Function&)",
    ];
    let frames = [("step", "/w/run.py", 2)];
    let site = |chain| {
        let scene = Scene { copy: read(8), frames: &frames, chain, ..Scene::default() };
        site_of(scene, &[("/w/run.py", &file("a scripted function").0)])
    };
    let told = |site: Site| site.evidence.iter().any(|e| e.text.contains("is not what ran"));
    assert_eq!([&chain[..1], chain].map(|chain| told(site(chain))), [true, false]);
}

const PACKAGES: &str = "/venv/lib/python3.12/site-packages/";

/// `frames` are (function, file of a library), above a line of the user.
fn fix_in(frames: &[(&str, &str)]) -> Fix {
    let files: Vec<_> = frames.iter().map(|(_, file)| format!("{PACKAGES}{file}")).collect();
    let inner = frames.iter().zip(&files).map(|((function, _), file)| (*function, &**file, 7));
    let frames: Vec<_> = inner.chain([("main", "/w/run.py", 3)]).collect();
    site(&frames, &[]).fix.expect("a fix")
}

#[test]
fn the_title_names_the_option_of_the_library() {
    const CURVE: &str = "torchmetrics/functional/classification/precision_recall_curve.py";
    for (frames, title) in [
        (&[("_binary_clf_curve", CURVE)][..], "thresholds=100: the curve has fixed points"),
        (&[("compute", "torchmetrics/retrieval/base.py")], "update() with CPU tensors: no query waits"),
        (
            &[("_reduce_auroc", "torchmetrics/functional/classification/auroc.py")],
            "average='none', then .nanmean() on the GPU",
        ),
        (
            &[("_get_coco_format", "torchmetrics/detection/helpers.py")],
            "update() with CPU tensors: one copy a tensor, not a box",
        ),
        (
            &[("linear_cg", "linear_operator/utils/linear_cg.py")],
            "raise gpytorch.settings.cg_tolerance or max_cholesky_size",
        ),
        (
            &[("_psd_safe_cholesky", "linear_operator/utils/cholesky.py")],
            "linear_operator.settings.trace_mode(True)",
        ),
        (
            &[("remove_self_loops", "torch_geometric/utils/loop.py")],
            "add_self_loops=False, loops added by the data set",
        ),
        (
            &[("_improvement_message", "lightning/pytorch/callbacks/early_stopping.py")],
            "a subclass whose _improvement_message() returns ''",
        ),
    ] {
        assert_eq!(fix_in(frames).title, title);
    }
}

/// The title is another entry's if the caller rules out the entry's own fix.
#[test]
fn a_fix_that_its_caller_rules_out_is_not_the_title() {
    const MASKS: (&str, &str) = ("_ignore_causal_mask_sdpa", "transformers/masking_utils.py");
    const STOP: (&str, &str) =
        ("_evaluate_stopping_criteria", "lightning/pytorch/callbacks/early_stopping.py");
    const SAVE: (&str, &str) = ("_save", "torch/serialization.py");
    const COUNT: (&str, &str) = ("_bincount", "torchmetrics/utilities/data.py");
    const SIZE: (&str, &str) = ("scatter", "torch_geometric/utils/_scatter.py");
    const SCALE: (&str, &str) = ("get_scale", "torch/amp/grad_scaler.py");
    for (inner, caller, title) in [
        (MASKS, ("forward", "transformers/models/gpt2/modeling_gpt2.py"), "pass attention_mask=None"),
        (
            MASKS,
            ("generate", "transformers/generation/utils.py"),
            "cache_implementation='static': read at the prompt only",
        ),
        (STOP, ("on_validation_end", STOP.1), "check at the end of epochs only"),
        (STOP, ("on_train_epoch_end", STOP.1), "check_finite=False: one read a check, not two"),
        (
            SAVE,
            ("_save_checkpoint", "lightning/pytorch/callbacks/model_checkpoint.py"),
            "ModelCheckpoint: raise every_n_epochs, or lower save_top_k",
        ),
        (SAVE, ("_save_checkpoint", "transformers/trainer.py"), "raise save_steps, or save_strategy='epoch'"),
        (COUNT, ("_flexible_bincount", COUNT.1), "update() with CPU tensors: no query waits"),
        (
            SIZE,
            ("topk", "torch_geometric/nn/pool/select/topk.py"),
            "no option: how many nodes remain depends on scores",
        ),
        (SCALE, ("step", "accelerate/optimizer.py"), "upgrade accelerate: 0.22 counts the optimizer's calls"),
    ] {
        assert_eq!(fix_in(&[inner, caller]).title, title, "{inner:?} {caller:?}");
    }
    // Batches of the Trainer are moved by accelerate, whose option the Trainer has under another name.
    let send = format!("{PACKAGES}accelerate/utils/operations.py");
    let trainer = format!("{PACKAGES}transformers/trainer.py");
    let frames =
        [("send_to_device", &*send, 160), ("get_batch_samples", &*trainer, 9), ("main", "/w/run.py", 3)];
    let copy = Some(Copy::h2d(1 << 20, Memory::Pageable));
    let site = |frames| Scene { copy, frames, ..Scene::default() }.site();
    let title = |frames| site(frames).fix.map(|fix| fix.title);
    assert_eq!(title(&frames).as_deref(), Some("accelerator_config={'non_blocking': True}"));
    assert_eq!(title(&[frames[0], frames[2]]).as_deref(), Some("DataLoaderConfiguration(non_blocking=True)"));
}

/// The user of an installed library is told what to call; its maintainers are told how to write its line.
#[test]
fn the_rewrite_of_a_librarys_line_is_for_its_maintainers() {
    let fix = fix_in(&[("_bincount", "torchmetrics/utilities/data.py")]);
    assert_eq!(fix.title, "one update() for many batches: it waits once each");
    assert!(fix.before.is_empty() && fix.after.is_empty() && fix.here.is_none(), "{fix:?}");
    let last = fix.alternatives.last().map(String::as_str);
    let own = "for the maintainers of torchmetrics: count with scatter_add_ into a fixed number of bins";
    assert_eq!(last, Some(own));
}

/// Each line of a loop over a model's own experts has one advice: sort, and read once.
#[test]
fn the_lines_of_a_loop_over_experts_have_one_advice() {
    const MODEL: &str = "/w/moe.py";
    let text = "import torch\n\ndef forward(self, x, top, weight, y):\n    for i, expert in enumerate(self.experts):\n\
                \x20       mask = top == i\n        if mask.any():\n            rows = mask.any(-1).nonzero().flatten()\n\
                \x20           y.index_add_(0, rows, expert(x[rows]))\n    return y\n";
    let title = |text: &str, line| {
        let site = site(&[("forward", MODEL, line), ("main", "/w/run.py", 3)], &[(MODEL, text)]);
        site.fix.map(|fix| fix.title).unwrap_or_default()
    };
    let advice = "sort tokens by expert, read the counts once a layer";
    assert_eq!((title(text, 6), title(text, 7)), (advice.to_owned(), advice.to_owned()));
    let other = text.replace("self.experts", "self.heads").replace("expert", "head");
    assert_ne!(title(&other, 6), advice);
}

/// thrust and TensorRT wait for their callers, whose line asks for no synchronisation.
#[test]
fn a_wait_inside_a_native_library_has_that_librarys_advice() {
    let title = |chain: &[&str]| {
        let site = Scene { chain, frames: &[("main", "/w/run.py", 3)], ..Scene::default() }.site();
        site.fix.map(|fix| fix.title).unwrap_or_default()
    };
    let sort = ["cudaStreamSynchronize", "thrust::cuda_cub::synchronize(thrust::cuda_cub::par_t&)", "main"];
    assert_eq!(title(&sort), "thrust::cuda::par_nosync; of CuPy, a newer version");
}
