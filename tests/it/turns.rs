//! Loops that no NVTX range marks: found from the launches, copies and waits that repeat; and [`marked`] ones.

mod marked;
mod steps;

use crate::export::{Copy, Export, GPU0, Memory, Schema, Thread};
use crate::look::{self, options};
use sync_report::analysis::Options;
use sync_report::analysis::filter::Filter;
use sync_report::diff::Snapshot;
use sync_report::model::{Iterations, Report};

/// A program as it goes on: each call 2 µs after the one before.
struct Program {
    e: Export,
    main: Thread,
    autograd: Thread,
    now: i64,
}

impl Program {
    fn new() -> Self {
        let mut e = Export::new(Schema::V2026_2);
        let (main, autograd) = (e.thread(100, 100), e.thread(100, 101));
        Self { e, main, autograd, now: 1_000_000 }
    }

    fn on(&mut self, thread: Thread, kernel: &str) {
        let at = self.now;
        self.e.launch(thread, at..at + 1000, GPU0, at + 1500..at + 1900, kernel);
        self.now += 2000;
    }

    fn launch(&mut self, kernels: &[&str]) {
        kernels.iter().for_each(|kernel| self.on(self.main, kernel));
    }

    fn upload(&mut self) {
        let at = self.now;
        self.e.memcpy(self.main, at..at + 1000, Copy::h2d(4096, Memory::Pinned), GPU0, at + 1200..at + 1400);
        self.now += 2000;
    }

    fn item(&mut self) {
        let at = self.now;
        self.e.item(self.main, at..at + 1800, GPU0, at + 1000..at + 1400);
        self.now += 2000;
    }

    fn idle(&mut self, ns: i64) {
        self.now += ns;
    }

    /// One training step: 2 H2D copies, 12 launches of two threads, one wait; 30 to 33 µs.
    fn step(&mut self, number: i64) {
        self.upload();
        self.forward();
        for kernel in ["loss'", "gemm'", "gelu'", "gemm'"] {
            self.on(self.autograd, kernel);
        }
        self.launch(&["adam", "adam"]);
        self.item();
        self.idle(number * 7919 % 3000);
    }

    fn forward(&mut self) {
        self.upload();
        self.launch(&["gemm", "gelu", "gemm", "norm", "softmax", "loss"]);
    }

    /// A range of the main thread that ends with its last call.
    fn mark(&mut self, from: i64, name: &str) {
        self.e.nvtx(self.main, from..self.now - 100, name);
    }

    fn report(&self) -> Report {
        look::report(&self.e)
    }

    fn found(&self) -> Option<Iterations> {
        self.report().iterations
    }
}

fn assert_found(found: Option<&Iterations>, count: u64, about_ns: i64, waits: f64) {
    let found = found.expect("a loop");
    assert_eq!(found.count, count, "{found:?}");
    assert!((found.median_ns - about_ns).abs() <= about_ns / 20, "{found:?}");
    assert!((found.waits_per_iteration - waits).abs() < 1e-9, "{found:?}");
    assert!(found.confidence.is_some_and(|sure| sure > 0.8), "{found:?}");
    assert!(found.source.starts_with("repeating launches"), "{found:?}");
}

/// ```text
///  main      [copy] [init ×5]   [copy copy gemm … loss]          [adam adam item][copy copy gemm … loss]
///  autograd                                             [loss' …]                                        [loss' …]
///  found                        [0-----------------------------------------------][1---------------------…
/// ```
#[test]
fn a_training_loop_is_found_after_its_start_up() {
    let mut p = Program::new();
    (0..9).for_each(|_| p.upload());
    p.launch(&["normal", "uniform", "normal", "uniform"]);
    let (main, at) = (p.main, p.now);
    p.e.device_sync(main, at..at + 1000, 0);
    p.idle(2000);
    p.launch(&["fill"]);
    let began = p.now;
    (0..20).for_each(|i| p.step(i));
    let report = p.report();
    assert_found(report.iterations.as_ref(), 20, 31_500, 1.0);
    let spans = look::analysed(&p.e).iterations.as_ref().map(|i| i.spans.clone()).unwrap_or_default();
    assert_eq!(spans[0].0, began, "the first iteration begins with its first call");
    assert!(spans.windows(2).all(|pair| pair[0].1 == pair[1].0), "from start to start");
    // The wait before the loop is start-up.
    let early: Vec<u64> = report.sites.iter().filter(|s| s.start_up.is_some()).map(|s| s.waits).collect();
    assert_eq!(early, [1]);
}

/// Rare work is part of an iteration, not its end.
///
/// ```text
///  found   [0 · · · ·][1 · · · ·][2 · · · · log][3 · · · ·]      every 5th iteration logs, every 8th has other kernels
/// ```
#[test]
fn logs_and_other_kernels_now_and_then_do_not_part_it() {
    let mut p = Program::new();
    for i in 0..40 {
        p.step(i);
        if i % 5 == 4 {
            p.launch(&["mean"]);
            p.item();
        }
        if i % 8 == 7 {
            p.launch(&["nonzero", "scan"]);
        }
    }
    assert_found(p.found().as_ref(), 40, 31_500, 1.2);
}

/// Batches of differing length: the library multiplies each with another kernel.
///
/// ```text
///  found   [0 copy gemm_128x64 gelu … adam item][1 copy gemm_256x128 gelu … adam item][2 …
/// ```
#[test]
fn kernels_picked_by_length_do_not_hide_it() {
    let mut p = Program::new();
    for i in 0..20 {
        let [to, from] = [i * 7 % 20, i * 11 % 20].map(|n| format!("nvjet_tst_{}x{}_TNT", 64 + n, 320 - n));
        p.upload();
        p.launch(&[&to, "gelu", &from, "norm", "softmax", "loss"]);
        for kernel in ["loss'", &from, "gelu'", &to] {
            p.on(p.autograd, kernel);
        }
        p.launch(&["adam", "adam"]);
        p.item();
    }
    assert_found(p.found().as_ref(), 20, 28_000, 1.0);
}

/// Sentences of differing length: a decoder launches the same kernels for each word.
///
/// ```text
///  found   [0 copy embed (gemm gelu)×6 loss … adam item][1 copy embed (gemm gelu)×31 loss … adam item][2 …
/// ```
#[test]
fn a_decoder_goes_from_word_to_word() {
    let mut p = Program::new();
    for i in 0..20 {
        let words = 6 + i * 7 % 40;
        p.upload();
        p.launch(&["embed", "norm"]);
        (0..words).for_each(|_| p.launch(&["gemm", "gelu", "softmax"]));
        p.launch(&["loss"]);
        (0..words)
            .for_each(|_| ["softmax'", "gelu'", "gemm'"].iter().for_each(|kernel| p.on(p.autograd, kernel)));
        p.launch(&["adam", "adam"]);
        p.item();
    }
    let found = p.found().expect("a loop");
    assert_eq!((found.count, found.waits_per_iteration), (20, 1.0), "{found:?}");
}

/// ```text
///  program  [gemm_0 gelu gemm_7][gemm_3 gemm_1 norm gelu][loss gemm_4]…     as many products, nothing that repeats
/// ```
#[test]
fn products_alone_make_no_loop() {
    let mut p = Program::new();
    let mut state = 1u32;
    for _ in 0..300 {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        let gemm = format!("nvjet_tst_{}x64_TNT", state >> 26);
        let names = [&gemm, "gelu", &gemm, "norm", "softmax", "loss", &gemm, "adam"];
        p.launch(&[names[(state >> 16) as usize % 8]]);
    }
    assert!(p.found().is_none(), "{:?}", p.found());
}

/// ```text
///  program  [train ×8][validate ×6][train ×8][validate ×6][train ×8][validate ×6]
///  found    [0]…[7]                [8]…[15]               [16]…[23]              and 18 others
/// ```
#[test]
fn validation_between_epochs_is_a_loop_of_its_own() {
    let mut p = Program::new();
    for epoch in 0..3 {
        (0..8).for_each(|i| p.step(epoch + i));
        for _ in 0..6 {
            p.upload();
            p.forward();
            p.launch(&["argmax", "eq", "sum"]);
            p.item();
        }
    }
    let found = p.found();
    assert_found(found.as_ref(), 24, 31_500, 1.0);
    assert_eq!(found.map(|f| f.source), Some("repeating launches beside another loop of 18".to_owned()));
}

/// A fix may change other repetitions; the most frequent stays the loop, and its waits are compared.
#[test]
fn found_loops_compare_whatever_is_beside_them() {
    let [alone, beside] = [0, 18].map(|others| {
        let mut p = Program::new();
        (0..24).for_each(|i| p.step(i));
        for _ in 0..others {
            p.upload();
            p.forward();
            p.launch(&["argmax", "eq", "sum"]);
            p.item();
        }
        let report = p.report();
        (report.iterations.as_ref().map(|i| i.source.clone()), Snapshot::of(report, false))
    });
    assert_ne!(alone.0, beside.0);
    let report = crate::diff::compare(&alone.1, &beside.1);
    assert!(report.warnings.iter().all(|w| w.code != "other-iterations"), "{:?}", report.warnings);
}

/// Epochs repeat, too, and so do layers: the iteration is the step.
///
/// ```text
///  epoch  [step                                                          ][step …      ×4] ×6
///  step   [copy embed (q k v attention out norm up down norm)×12 head item]
/// ```
#[test]
fn steps_are_found_between_layers_and_epochs() {
    let mut p = Program::new();
    for _ in 0..6 {
        for _ in 0..4 {
            p.upload();
            p.launch(&["embed"]);
            for _ in 0..12 {
                p.launch(&["q", "k", "v", "attention", "out", "norm", "up", "down", "norm"]);
            }
            p.launch(&["final", "head", "argmax", "stop"]);
            p.item();
        }
        p.launch(&["checkpoint"]);
        p.item();
    }
    let found = p.found();
    assert_eq!(found.as_ref().map(|f| f.count), Some(24), "{found:?}");
}

/// Tokens of sentences that end early: the iteration is the token, however many there are.
#[test]
fn a_generation_of_varying_length_is_found_by_its_tokens() {
    let mut p = Program::new();
    let mut tokens = 0;
    for length in [9, 4, 17, 6, 12] {
        p.upload();
        p.launch(&["embed", "attention", "attention", "head"]);
        for _ in 0..length {
            p.launch(&["gather", "decode", "mlp", "decode", "mlp", "logits", "sample"]);
            p.item();
        }
        tokens += length;
    }
    assert_found(p.found().as_ref(), tokens, 16_000, 1.0);
}

/// A step on a preferred answer and another, with four figures read:
/// ```text
///  a step   [forward][forward] [mean item]×4 [backward][backward] [adam]
///  found    [0---------------------------------------------------------][1-----…      not one for each of two passes, or four figures
/// ```
#[test]
fn a_step_of_several_passes_is_one() {
    let mut p = Program::new();
    let kernels =
        |of: &str, count: usize| -> Vec<String> { (0..count).map(|n| format!("{of} {n}")).collect() };
    let (forward, backward) = (kernels("forward", 20), kernels("backward", 40));
    let pass = |p: &mut Program, kernels: &[String]| {
        p.upload();
        kernels.iter().for_each(|kernel| p.launch(&[kernel]));
    };
    for _ in 0..30 {
        (0..2).for_each(|_| pass(&mut p, &forward));
        for _ in 0..4 {
            p.launch(&["mean"]);
            p.item();
        }
        (0..2).for_each(|_| pass(&mut p, &backward));
        p.launch(&["adam"]);
    }
    assert_found(p.found().as_ref(), 30, 266_000, 4.0);
}

/// A solver in C++ has a loop, and nothing else does.
#[test]
fn a_solver_iterates_and_a_list_of_kernels_does_not() {
    let mut p = Program::new();
    for _ in 0..50 {
        p.launch(&["jacobi", "swap", "residual"]);
        p.item();
    }
    assert_found(p.found().as_ref(), 50, 8_000, 1.0);

    // Kernels in an order that repeats nowhere, with waits between.
    let mut p = Program::new();
    let mut state = 1u64;
    for _ in 0..2000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match state >> 33 & 15 {
            0 => p.item(),
            n => p.launch(&[["a", "b", "c", "d", "e", "f", "g", "h"][n as usize / 2]]),
        }
    }
    assert_eq!(p.found().map(|f| f.count), None);

    // Once through a program: each kernel in a loop of its own length.
    let mut p = Program::new();
    for (kernel, times) in [("a", 3), ("b", 50), ("c", 7), ("d", 20), ("e", 4)] {
        (0..times).for_each(|_| p.launch(&[kernel]));
        p.item();
    }
    assert_eq!(p.found().map(|f| f.count), None);
}

#[test]
fn layers_of_a_few_passes_are_no_iterations() {
    let mut p = Program::new();
    for _ in 0..4 {
        p.upload();
        p.launch(&["embed", "mask"]);
        for _ in 0..12 {
            p.launch(&["norm", "q", "k", "v", "attention", "out", "norm", "up", "down"]);
        }
        p.launch(&["final", "head", "softmax", "nll"]);
        p.item();
    }
    (0..9).for_each(|_| p.item());
    assert_eq!(p.found().map(|f| f.count), None);
}

#[test]
fn rows_in_another_order_give_the_same_loop() {
    let mut p = Program::new();
    (0..20).for_each(|i| p.step(i));
    let before = p.found().map(|f| (f.count, f.median_ns, f.confidence.map(f64::to_bits)));
    for table in ["CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL"] {
        p.e.sql(format!("CREATE TABLE turned AS SELECT * FROM {table} ORDER BY start DESC"));
        p.e.sql(format!("DROP TABLE {table}")).sql(format!("ALTER TABLE turned RENAME TO {table}"));
    }
    assert_eq!(p.found().map(|f| (f.count, f.median_ns, f.confidence.map(f64::to_bits))), before);
}

#[test]
fn captures_show_their_loop_without_their_ranges() {
    for name in [
        "train_mlp_shapes.sqlite",
        "train_mlp_python_sampling.sqlite",
        "pairs_h2d_pageable.sqlite",
        "fixed/before.sqlite",
        "fixed/after.sqlite",
    ] {
        let sample = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-profiles").join(name);
        let folder = tempfile::tempdir().expect("a folder");
        let bare = folder.path().join("bare.sqlite");
        std::fs::copy(&sample, &bare).expect("a copy");
        let db = rusqlite::Connection::open(&bare).expect("an export");
        // Marks stay: the Python frames of calls hang on them.
        db.execute("DELETE FROM NVTX_EVENTS WHERE eventType IN (59, 60)", []).expect("no ranges");
        drop(db);
        let of = |path| look::report_on(path, &options()).iterations.expect("iterations");
        let (marked, found) = (of(&sample), of(&bare));
        assert_eq!(marked.confidence, None, "{name}");
        assert_found(Some(&found), marked.count, marked.median_ns, marked.waits_per_iteration);
    }
}

/// Long iterations part the mean from the median; the report labels both. A wait in another loop alone saves
/// time of the run, not of an iteration.
///
/// ```text
///  [step 0 · · · long · · ·][step 1] … [step 10 · · · long · · ·] … [step 19]   [eval 0][eval 1] … [eval 9]
///                                                                                item    item       item
/// ```
#[test]
fn figures_are_of_what_they_say() {
    let mut p = Program::new();
    for i in 0..20 {
        p.step(i);
        p.idle(if i % 10 == 0 { 300_000 } else { 0 });
    }
    let evaluated = |p: &mut Program| {
        p.upload();
        let (main, at) = (p.main, p.now);
        p.e.event_record(main, at..at + 500, crate::export::GPU0, 9);
        p.e.event_query(main, at + 600..at + 700, 9);
        p.idle(800);
        p.launch(&["gemm", "argmax", "equal", "sum", "gather", "scatter"]);
        let at = p.now;
        p.e.device_sync(main, at..at + 1800, 0);
        p.idle(2000);
    };
    (0..10).for_each(|_| evaluated(&mut p));
    let report = p.report();
    let found = report.iterations.as_ref().expect("a loop");
    assert!(found.source.ends_with("beside another loop of 10"), "{found:?}");
    assert!(found.start_to_start_ns > found.median_ns + 20_000, "{found:?}");
    let site = report.sites.iter().find(|s| s.api == "cudaDeviceSynchronize").expect("a site");
    assert_eq!(site.per_iteration, Some(0.0));
    assert_eq!(site.recoverable.as_ref().and_then(|r| r.per_iteration_ns), None);
    let table = look::table(&report, None);
    assert!(table.contains("/run"), "{table}");
    assert!(report.totals.iteration.is_none() && table.contains("of the run of"), "{table}");
}
