//! Rules for every entry, and how frames and words find entries.

use super::*;
use crate::vocabulary::Kind;

const SITE: &str = "/venv/lib/python3.12/site-packages/";

fn found(frames: &[(&str, &str)], text: Option<&str>) -> Option<&'static str> {
    let full: Vec<_> = frames.iter().map(|&(file, function)| (format!("{SITE}{file}"), function)).collect();
    let frames: Vec<_> = full.iter().map(|(file, function)| (file.as_str(), *function)).collect();
    known(&frames, text).map(|known| known.entries[0].id.as_str())
}

fn known(frames: &[(&str, &str)], text: Option<&str>) -> Option<KnownPlace> {
    library_site(frames, &|depth| text.filter(|_| depth == 0).map(str::to_owned))
}

fn ids(query: &str) -> Vec<&'static str> {
    search(query).iter().map(|p| p.id.as_str()).collect()
}

/// A case leads to an entry with other advice and without that case.
#[test]
fn cases_lead_to_other_advice() {
    for p in all() {
        for (case, other) in p.instead.iter().map(|(case, id)| (case, entry(*id))) {
            assert_ne!(p.fix.title, other.fix.title, "{} {case:?}", p.id);
            let nested = other.instead.iter().any(|(again, _)| again == case);
            assert!(!nested, "{} {case:?} leads to {}, which has it too", p.id, other.id);
        }
    }
}

/// An entry that rewrites a library's line has other advice for the library's users.
#[test]
fn titles_for_users_are_of_libraries() {
    for p in all().filter(|p| !p.fix.installed.is_empty()) {
        assert!(p.id.letter() == 'L' && p.fix.installed != p.fix.title, "{}", p.id);
        assert!(p.fix.installed.chars().count() <= 60 && !p.fix.installed.ends_with('.'), "{}", p.id);
    }
}

/// Also if the verdict's entry says only what the line does. An entry that needs its line has none without the line.
#[test]
fn places_of_libraries_have_options() {
    let at = |file: &str, function, line: Option<&str>| {
        let path = format!("{SITE}{file}");
        let text = |depth| line.filter(|_| depth == 0).map(str::to_owned);
        option(&[(&path, function)], &text, |_| true).map(|p| p.id.as_str())
    };
    for (file, function, id) in [
        ("torchmetrics/functional/classification/roc.py", "_binary_roc_compute", "L111"),
        ("torchmetrics/functional/retrieval/reciprocal_rank.py", "retrieval_reciprocal_rank", "L113"),
        ("linear_operator/utils/linear_cg.py", "linear_cg", "L116"),
        ("linear_operator/functions/_inv_quad_logdet.py", "forward", "L117"),
        ("gpytorch/kernels/kernel.py", "covar_dist", "L118"),
        ("lightning/pytorch/callbacks/lr_monitor.py", "_extract_stats", "L109"),
        ("pytorch_lightning/core/module.py", "__to_tensor", "L110"),
        ("fla/ops/utils/index.py", "prepare_chunk_indices", "L127"),
        ("dgl/graphbolt/impl/neighbor_sampler.py", "sample_subgraphs", "L128"),
        ("torchrec/sparse/jagged_tensor.py", "_maybe_compute_length_per_key", "L129"),
        ("ultralytics/utils/ops.py", "time", "L131"),
        ("cupy/_sorting/sort.py", "argsort", "L136"),
    ] {
        assert_eq!(at(file, function, None), Some(id), "{file} {function}");
    }
    let encode = ("sentence_transformers/SentenceTransformer.py", "encode");
    assert_eq!(at(encode.0, encode.1, None), None);
    assert_eq!(at(encode.0, encode.1, Some("embeddings = embeddings.cpu()")), Some("L125"));
    let attention = "transformer_engine/pytorch/attention/dot_product_attention/dot_product_attention.py";
    let longest = "max_seqlen_q = int((seqlens_q.max().item() + 63) // 64 * 64)";
    assert_eq!(at(attention, "forward", Some(longest)), Some("L130"));
    let dense = ("torch_geometric/utils/_to_dense_batch.py", "to_dense_batch");
    assert_eq!(at(dense.0, dense.1, Some("max_num_nodes = int(num_nodes.max())")), Some("L126"));
    assert_eq!(at(dense.0, dense.1, Some("batch_size = int(batch.max()) + 1")), Some("L56"));
}

/// The advice that maintainers gave where the catalogue said otherwise.
#[test]
fn entries_say_what_maintainers_did() {
    let says = |id: &str| {
        let p = by_id(id).expect("an entry");
        format!("{} {} {} {}", p.fix.title, p.fix.caveat, p.versions, p.fix.alternatives.join(" "))
    };
    for (id, part) in [
        ("F03", "torch.cuda.Event(blocking=True)"),
        ("D05", "torch.cuda.Event(blocking=True)"),
        ("F01", "breaks no graph that another thread captures"),
        ("K05", "holds up launches of other threads"),
        ("K09", "enqueueV3 on a stream of one's own"),
        ("E16", "before PyTorch 2.6"),
        ("N04", "E16"),
        ("A03", "`is not None`"),
        ("A01", "gather once where it is logged"),
        ("A48", "count the optimizer's calls"),
        ("B35", "read the counts once a layer"),
        ("L18", "grid_thw"),
        ("L39", "read it at the log line"),
        ("L57", "gather them once in log()"),
    ] {
        assert!(says(id).contains(part), "{id}: {}", says(id));
    }
}

#[test]
fn entries_are_complete() {
    for p in all() {
        let id = p.id;
        for (name, text) in [("title", p.title), ("op", p.op), ("trace", p.trace), ("why", p.why)] {
            assert!(!text.is_empty(), "{id} has no {name}");
        }
        assert!(!p.triggers.is_empty() && !p.driver_api.is_empty(), "{id}");
        assert!(p.title.chars().count() <= 72, "{id}: {}", p.title);
        assert!((id.letter() == 'L') == p.library().is_some_and(|l| l.library() != "torch"), "{id}");
        assert!(p.category != Category::NotAWait || p.kind.is_none(), "{id}");
        for text in [p.why, p.fix.caveat] {
            assert!(text.is_empty() || text.ends_with('.'), "{id}: {text}");
            assert!(!text.contains("  "), "{id}: {text}");
        }
    }
}

#[test]
fn fixes_fit_a_column_and_show_code() {
    for Pattern { id, fix, .. } in all() {
        assert!((1..=60).contains(&fix.title.chars().count()), "{id}: {}", fix.title);
        assert!(!fix.title.ends_with('.'), "{id}");
        assert!(fix.strategy == Strategy::Leave || !fix.before.is_empty(), "{id}");
        assert_eq!(fix.before.is_empty(), fix.after.is_empty(), "{id}");
        assert!(fix.before.is_empty() || fix.before != fix.after, "{id}");
        for code in [fix.before, fix.after] {
            assert!(code.lines().count() <= 8 && !code.contains("..."), "{id}: {code}");
        }
    }
}

/// As in `scripts/run_pairs.py`.
fn checksum(before: &str, after: &str) -> String {
    format!("{:016x}", crate::text::fnv1a(format!("{before}\0{after}").as_bytes()))
}

/// Run a changed pair again: `scripts/run_pairs.py LISTING --only ID -o src/catalogue/pairs.json` on a GPU.
#[test]
fn every_pair_was_run_as_it_stands_or_says_why_not() {
    let runs: Vec<Run> = serde_json::from_str(include_str!("pairs.json")).expect("the table is of `Run`s");
    let pairs: Vec<_> = all().filter(|p| !p.fix.before.is_empty()).collect();
    let ids = |mut ids: Vec<PatternId>| {
        ids.sort_unstable();
        ids
    };
    let ran = ids(runs.iter().filter_map(|run| by_id(&run.id)).map(|p| p.id).collect());
    assert_eq!(ran, ids(pairs.iter().map(|p| p.id).collect()));
    for &Pattern { id, fix, .. } in pairs {
        let run = run_of(id).unwrap_or_else(|| panic!("{id} has no row"));
        assert_eq!(run.snippets, checksum(fix.before, fix.after), "{id} has changed since it was run");
    }
}

#[test]
fn no_pair_broke_its_promise() {
    for run in all().filter_map(|p| run_of(p.id)) {
        let id = &run.id;
        let Some(m) = &run.measured else {
            assert!(run.outcome == Outcome::NotRun && run.reason.is_some() && !run.why.is_empty(), "{id}");
            continue;
        };
        let ([waits, waits_after], [blocked, blocked_after]) = (m.waits, m.blocked_us);
        let kept = match run.outcome {
            Outcome::Fewer => waits_after < waits,
            Outcome::Later => 2 * blocked_after < blocked,
            Outcome::NoWaitBefore => waits == 0 && !run.why.is_empty(),
            Outcome::NotRun => false,
        };
        assert!(kept, "{id}: {run:?}");
        assert!(m.values == Values::Equal || !run.why.is_empty(), "{id}: why are values not compared?");
        assert!(m.steps > 0 && !m.torch.is_empty() && !m.gpu.is_empty(), "{id}");
    }
}

/// The labelled programs rely on these kinds.
#[test]
fn kinds_of_labelled_patterns() {
    use Kind::*;
    for (kind, ids) in [
        (None, "A01 A02 A15 A17 A18 D01 D02"),
        (Some(ControlFlow), "A03 A05 A19 A35"),
        (Some(DynamicShape), "A08 B01 B02 B07 B10 B12"),
        (Some(DebugPrint), "A16"),
        (Some(Upload), "C01 C03 C06 C07"),
        (Some(ErrorCheck), "E01"),
        (Some(Explicit), "F01 F03"),
        (Some(Allocator), "G07"),
    ] {
        for id in ids.split(' ') {
            assert_eq!(by_id(id).map(|p| p.kind), Some(kind), "{id}");
        }
    }
}

#[test]
fn torch_frames_name_their_pattern() {
    for (file, function, id) in [
        ("torch/_tensor_str.py", "_str_intern", "A16"),
        ("torch/_tensor.py", "__format__", "A15"),
        ("torch/_tensor.py", "__contains__", "A06"),
        ("torch/utils/tensorboard/_convert_np.py", "_prepare_pytorch", "A33"),
        ("torch/distributions/distribution.py", "_validate_sample", "A26"),
        ("torch/nn/utils/clip_grad.py", "clip_grad_norm_", "A19"),
        ("torch/amp/grad_scaler.py", "_maybe_opt_step", "A20"),
        ("torch/amp/grad_scaler.py", "get_scale", "A21"),
        ("torch/optim/lr_scheduler.py", "step", "A24"),
        ("torch/optim/optimizer.py", "_get_value", "A22"),
        ("torch/optim/_adafactor.py", "_multi_tensor_adafactor", "A41"),
        ("torch/optim/asgd.py", "_multi_tensor_asgd", "A46"),
        ("torch/optim/swa_utils.py", "update_parameters", "A47"),
        ("torch/nn/modules/transformer.py", "_detect_is_causal_mask", "A27"),
        ("torch/nn/modules/_functions.py", "forward", "H11"),
        ("torch/serialization.py", "_save", "D07"),
        ("torch/distributed/distributed_c10d.py", "_object_to_tensor", "C10"),
        ("torch/distributed/distributed_c10d.py", "barrier", "H03"),
        ("torch/cuda/memory.py", "empty_cache", "G01"),
        ("torch/nn/utils/rnn.py", "pack_padded_sequence", "B20"),
        ("torch/nn/utils/rnn.py", "pad_packed_sequence", "B28"),
        ("torch/nn/functional.py", "gaussian_nll_loss", "E12"),
        ("torch/nn/modules/adaptive.py", "forward", "B29"),
        ("torch/cuda/__init__.py", "synchronize", "F01"),
        ("torch/cuda/streams.py", "synchronize", "F02"),
        ("torch/cuda/streams.py", "Stream.synchronize", "F02"),
        ("torch/cuda/streams.py", "Event.synchronize", "F03"),
        ("triton/testing.py", "do_bench", "F10"),
    ] {
        assert_eq!(found(&[(file, function)], None), Some(id), "{file} {function}");
    }
}

#[test]
fn paths_match_by_whole_components() {
    assert!(known(&[("/home/me/my_torch/_tensor_str.py", "_str_intern")], None).is_none());
    assert!(known(&[("_tensor_str.py", "_str_intern")], None).is_none());
    assert!(known(&[("C:\\py\\Lib\\site-packages\\torch\\_tensor_str.py", "_str")], None).is_some());
}

#[test]
fn a_caller_in_a_library_says_more_than_a_wrapper() {
    let sync = ("torch/cuda/__init__.py", "synchronize");
    assert_eq!(found(&[sync, ("megatron/core/timers.py", "stop")], None), Some("L43"));
    let event = ("torch/cuda/streams.py", "synchronize");
    let rate_limiter = ("torch/distributed/fsdp/_runtime_utils.py", "_unshard");
    assert_eq!(found(&[event, rate_limiter], None), Some("H08"));
    let read = ("torch/optim/optimizer.py", "_get_value");
    assert_eq!(found(&[read, ("torch/optim/asgd.py", "_single_tensor_asgd")], None), Some("A46"));
    assert_eq!(found(&[read, ("torch/optim/adam.py", "_single_tensor_adam")], None), Some("A22"));
    let print = ("torch/_tensor_str.py", "_str");
    assert_eq!(
        found(&[print, ("torch/_tensor.py", "__repr__"), ("tqdm/std.py", "set_postfix")], None),
        Some("L60")
    );
    let apply = ("lightning_utilities/core/apply_func.py", "apply_to_collection");
    for [fabric, pytorch] in
        [["lightning/fabric", "lightning/pytorch"], ["lightning_fabric", "pytorch_lightning"]]
    {
        let (read, bar) = (
            format!("{fabric}/utilities/apply_func.py"),
            format!("{pytorch}/trainer/connectors/logger_connector/result.py"),
        );
        let read = (&*read, "to_item");
        assert_eq!(found(&[read, apply, (&*bar, "metrics")], None), Some("L19"), "{pytorch}");
        assert_eq!(found(&[read, apply], None), Some("L20"), "{fabric}");
    }
    let wrapper = ("deepspeed/accelerator/cuda_accelerator.py", "synchronize");
    assert_eq!(found(&[sync, wrapper, ("deepspeed/comm/comm.py", "log_wrapper")], None), Some("L81"));
    assert_eq!(
        found(&[sync, ("triton/testing.py", "do_bench"), ("triton/runtime/autotuner.py", "_bench")], None),
        Some("E14")
    );
}

/// The total loss of transformers 4 and 5.
#[test]
fn a_line_may_be_written_in_several_ways() {
    let trainer = ("transformers/trainer.py", "_inner_training_loop");
    for line in ["self._total_loss_scalar += tr_loss.item()", "train_loss = self._tr_loss.item()"] {
        assert_eq!(found(&[trainer], Some(line)), Some("L05"), "{line}");
    }
}

#[test]
fn converters_of_libraries_are_looked_through() {
    let to_text = [
        ("transformers/utils/generic.py", "<lambda>"),
        ("transformers/utils/generic.py", "to_py_obj"),
        ("transformers/tokenization_utils_base.py", "decode"),
    ];
    assert_eq!(found(&to_text, None), Some("L95"));
    let recorded = [
        ("fastai/torch_core.py", "_inner"),
        ("fastai/torch_core.py", "to_detach"),
        ("fastai/learner.py", "accumulate"),
    ];
    assert_eq!(found(&recorded, None), Some("L99"));
}

/// A folder matches every file below, an ending every function that ends so.
#[test]
fn folders_and_endings_stand_for_many() {
    let of = |file, function| found(&[(file, function)], None);
    assert_eq!(of("diffusers/schedulers/scheduling_new.py", "index_for_timestep"), Some("L54"));
    assert_eq!(of("diffusers/pipelines/wan/pipeline_wan.py", "_get_t5_prompt_embeds"), Some("L74"));
    assert_eq!(of("my_diffusers/schedulers/scheduling_new.py", "index_for_timestep"), None);
    let hinge = "torchmetrics/functional/classification/hinge.py";
    assert_eq!(of(hinge, "_binary_hinge_loss_tensor_validation"), Some("L27"));
    assert_eq!(of(hinge, "_binary_hinge_loss_arg_validation"), None);
}

/// Copied scripts have no version.
#[test]
fn entries_of_libraries_say_their_version() {
    let digit = |c: char| c.is_ascii_digit();
    let version = |word: &str| {
        word.split_once('.')
            .is_some_and(|(major, rest)| major.parse::<u32>().is_ok() && rest.starts_with(digit))
    };
    for (p, site) in all().filter_map(|p| Some((p, p.library()?))).filter(|(p, _)| p.id.letter() == 'L') {
        let installed = site.places().all(|(file, _)| file.contains('/') && !file.starts_with("examples/"));
        assert!(
            !installed || p.confirmed_by().split([' ', ',']).any(version),
            "{}: {}",
            p.id,
            p.confirmed_by()
        );
    }
}

#[test]
fn frames_outside_the_innermost_caller_do_not_count() {
    let user = ("/home/me/model.py", "training_step");
    let trainer = (&*format!("{SITE}transformers/trainer.py"), "_inner_training_loop");
    assert!(known(&[user, trainer], None).is_none());
    let encoder = (&*format!("{SITE}torch/nn/modules/transformer.py"), "forward");
    let linear = (&*format!("{SITE}torch/nn/modules/linear.py"), "forward");
    assert!(known(&[linear, encoder, user], None).is_none());
    assert!(known(&[trainer], None).is_some_and(|known| !known.sure));
}

#[test]
fn the_line_chooses_among_entries() {
    let frame = [("transformers/trainer.py", "_maybe_log_save_evaluate")];
    assert_eq!(found(&frame, Some("logs['grad_norm'] = grad_norm.item()")), Some("L03"));
    assert_eq!(found(&frame, Some("tr_loss_scalar = nested_gather(tr_loss).mean().item()")), Some("L02"));
    assert_eq!(found(&frame, Some("self.evaluate()")), None);
    // A script's bare file name is too little without the line.
    assert!(known(&[("/home/me/train.py", "train_one_epoch")], None).is_none());
    let line = "losses_m.update(loss.item() * accum_steps, batch_size)";
    let timm = script_site("/home/me/timm/train.py", "train_one_epoch", line);
    assert_eq!(timm.map(|p| p.id), Some(PatternId::L34));
}

/// A wait in an entry's file, function and line gets that entry; without the class, a function name fits several.
#[test]
fn every_library_entry_can_be_returned() {
    for (p, site) in all().filter_map(|p| Some((p, p.library()?))) {
        for (file, function) in site.places() {
            let function = if function.is_empty() { "f" } else { function.trim_start_matches('*') };
            let line = Some(site.line_text).filter(|text| !text.is_empty());
            let inside = if file.ends_with('/') { "x.py" } else { "" };
            let path = format!("{SITE}{file}{inside}");
            let known =
                known(&[(&path, function)], line).unwrap_or_else(|| panic!("{} {file} {function}", p.id));
            assert!(known.entries.iter().any(|entry| entry.id == p.id), "{} {file} {function}", p.id);
            assert!(known.sure || known.entries.len() > 1, "{} {file} {function}", p.id);
        }
    }
}

#[test]
fn without_its_line_an_entry_is_one_of_several() {
    let path = format!("{SITE}transformers/trainer.py");
    let frame = [(&*path, "_inner_training_loop")];
    let ids = |text| -> Vec<&str> {
        known(&frame, text).map_or_else(Vec::new, |k| k.entries.iter().map(|p| p.id.as_str()).collect())
    };
    assert_eq!(ids(None), ["L01", "L03", "L04", "L05"]);
    assert_eq!(ids(Some("grad_norm = grad_norm.item()")), ["L03"]);
    assert_eq!(ids(Some("self._total_loss_scalar += self._tr_loss.item()")), ["L05"]);
    assert!(ids(Some("if step % args.logging_steps == 0:")).is_empty());
}

#[test]
fn search_by_id_trigger_and_words() {
    assert_eq!(ids("a01"), ["A01"]);
    assert_eq!(ids("item"), ["A01"]);
    assert_eq!(ids(".cpu()"), ["D01"]);
    assert_eq!(ids("synchronize")[..3], ["F01", "F02", "F03"]);
    assert_eq!(ids("nonzero").first(), Some(&"B01"));
    assert_eq!(ids("torch.unique(x)"), ["B07"]);
    assert_eq!(ids("cudaFree").first(), Some(&"G07"));
    assert_eq!(ids("guard").first(), Some(&"A35"));
    assert!(ids("deepspeed").len() > 5);
    assert!(search("").is_empty() && search("no such thing").is_empty());
}

#[test]
fn a_slip_of_the_keyboard_gets_a_suggestion() {
    let near = |query| near(query, ["R05"].into_iter());
    assert!(near("nonzeroo").contains(&"nonzero"));
    assert!(near("tolsit").contains(&"tolist"));
    assert!(near("R005").contains(&"R05"));
    assert!(near("xyzzyxyzzy").is_empty());
}
