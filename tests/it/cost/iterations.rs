//! Iterations of the program's loop, and waits per iteration.

use super::*;

/// Four steps of 100 µs, each with one `.item()`, and one wait after the loop.
///
/// ```text
///  NVTX      [step 0--------][step 1--------][step 2--------][step 3--------]
///  host       [launch][item]  [launch][item]  [launch][item]  [launch][item]   [item]
/// ```
fn steps(name: impl Fn(i64) -> String) -> (Export, Thread) {
    let (mut e, t) = empty();
    for i in 0..4 {
        let at = i * 100_000;
        e.nvtx(t, at..at + 99_000, &name(i));
        e.launch(t, at + 100..at + 110, GPU0, at + 120..at + 30_000, "gemm");
        e.item(t, at + 1000..at + 31_000, GPU0, at + 30_001..at + 30_010);
    }
    e.item(t, 500_000..501_000, GPU0, 500_500..500_510);
    (e, t)
}

#[test]
fn ranges_that_count_up_are_iterations() {
    for (first, family) in [
        ("step 0", "step #"),
        ("iteration 0", "iteration #"),
        ("ProfilerStep#0", "ProfilerStep#"),
        ("iter_0", "iter_#"),
        ("batch [0]", "batch [#]"),
        ("iter0", "iter#"),
        ("step0", "step#"),
        ("trainBatch0", "trainBatch#"),
        ("epoch 1 [batch 0]", "epoch # [batch #]"),
    ] {
        let (e, _) = steps(|i| first.replace('0', &i.to_string()));
        let report = look::report(&e);
        let it = report.iterations.as_ref().unwrap_or_else(|| panic!("{first}: no iterations"));
        assert_eq!(it.source, format!("NVTX ranges `{family}`"));
        assert_eq!((it.count, it.median_ns), (4, 100_000));
        assert!((it.waits_per_iteration - 1.0).abs() < 1e-9);
        let rates: Vec<f64> = report.sites.iter().filter_map(|s| s.per_iteration).collect();
        assert!((rates.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{rates:?}");
    }
}

#[test]
fn ranges_of_one_name_are_iterations_if_the_name_says_so() {
    for (name, found) in [
        ("train_step", true),
        ("training batch", true),
        ("TrainStep", true),
        ("forward", false),
        ("criterion", false),
        ("writer", false),
        ("optimizer step", false),
    ] {
        let (e, _) = steps(|_| name.to_owned());
        assert_eq!(look::report(&e).iterations.is_some(), found, "{name}");
    }
}

/// ```text
///  NVTX      [epoch 0--------------------------------------------------------]
///             [step 0-------][step 1-------]…
/// ```
#[test]
fn steps_inside_an_epoch_are_found() {
    let (mut e, t) = steps(|i| format!("step {i}"));
    e.nvtx(t, -10..450_000, "epoch 0");
    let report = look::report(&e);
    assert_eq!(report.iterations.map(|i| (i.source, i.count)), Some(("NVTX ranges `step #`".into(), 4)));
}

/// Numbers that belong to a name count nothing, though they count up.
#[test]
fn layers_are_no_iterations() {
    let (mut e, t) = empty();
    for i in 0..8 {
        let at = i * 100_000;
        e.nvtx(t, at..at + 99_000, &format!("layer{i}"));
        e.item(t, at + 1000..at + 31_000, GPU0, at + 30_001..at + 30_010);
    }
    assert_eq!(look::report(&e).iterations.map(|i| i.source), None);
}

/// Numbers that restart in each pass, or that other layers share, count no iterations; steps restart in each epoch.
///
/// ```text
///  NVTX      [Identity_0][Identity_1] … [Identity_4]  [Identity_0][Identity_1] … [Identity_4]
///  NVTX      [Conv_0][Relu_1][Conv_2][Conv_3][Relu_4] …
/// ```
#[test]
fn numbers_of_iterations_go_on() {
    let found = |name: fn(i64) -> String| {
        let (mut e, t) = empty();
        for i in 0..20 {
            let at = i * 100_000;
            e.nvtx(t, at..at + 99_000, &name(i));
            e.item(t, at + 1000..at + 31_000, GPU0, at + 30_001..at + 30_010);
        }
        look::report(&e).iterations.filter(|i| i.source.starts_with("NVTX")).map(|i| i.count)
    };
    assert_eq!(found(|i| format!("Identity_{}", i % 10)), None);
    assert_eq!(found(|i| format!("{}_{i}", if i * i % 5 == 1 { "Relu" } else { "Conv" })), None);
    assert_eq!(found(|i| format!("frame {}", 10 * i)), Some(20));
    assert_eq!(found(|i| format!("step {}", i % 10)), Some(20));
}

/// Ranges of one name inside the loop's body are a part of it, whatever they are called.
///
/// ```text
///  NVTX      [sub step]          [sub step]          [sub step]
///  host       [item]    [item]    [item]    [item]    [item]    [item]
/// ```
#[test]
fn ranges_of_one_name_must_fill_the_run() {
    let (mut e, t) = empty();
    for at in (0..4).map(|i| i * 100_000) {
        e.nvtx(t, at..at + 40_000, "sub step");
        e.item(t, at + 1000..at + 31_000, GPU0, at + 30_001..at + 30_010);
        e.item(t, at + 61_000..at + 91_000, GPU0, at + 90_001..at + 90_010);
    }
    assert_eq!(look::report(&e).iterations.map(|i| i.source), None);
}

/// ```text
///  NVTX      [warmup 0][warmup 1]  [epoch 0------------------][epoch 1------------------]
///                                   [step 0][step 1]           [step 2][step 3]
/// ```
#[test]
fn steps_come_before_epochs_and_epochs_before_a_warm_up() {
    let draw = |names: &[&str]| {
        let (mut e, t) = empty();
        let mut range = |at: std::ops::Range<i64>, name: String| {
            if names.iter().any(|n| name.starts_with(n)) {
                e.nvtx(t, at, &name);
            }
        };
        for i in 0..2 {
            range(i * 500_000..i * 500_000 + 490_000, format!("warmup iter {i}"));
            range(1_000_000 + i * 200_000..1_199_000 + i * 200_000, format!("epoch {i}"));
        }
        for i in 0..4 {
            range(1_000_100 + i * 100_000..1_090_000 + i * 100_000, format!("step {i}"));
        }
        for i in 0..14 {
            let at = i * 100_000 + 1000;
            e.item(t, at..at + 31_000, GPU0, at + 30_001..at + 30_010);
        }
        look::report(&e).iterations.map(|i| i.source)
    };
    let found = |names: &[&str]| draw(names).unwrap_or_default();
    assert_eq!(found(&["warmup", "epoch", "step"]), "NVTX ranges `step #`");
    assert_eq!(found(&["warmup", "epoch"]), "NVTX ranges `epoch #`");
    assert_eq!(found(&["warmup"]), "NVTX ranges `warmup iter #`");
}

/// Waits that only ranges place are one site, not one for each iteration.
#[test]
fn a_number_without_separator_does_not_part_sites() {
    for name in ["step0", "step 0"] {
        let (e, _) = steps(|i| name.replace('0', &i.to_string()));
        let report = look::report(&e);
        let inside: Vec<u64> = report.sites.iter().filter(|s| !s.nvtx.is_empty()).map(|s| s.waits).collect();
        assert_eq!(inside, [4], "{name}");
    }
}

/// Names of PyTorch's operators contain "batch" and "step", but mark no loop.
#[test]
fn operators_of_pytorch_are_no_iterations() {
    for name in [
        "aten::batch_norm, op_id = 12",
        "aten::_batch_norm_impl_index, seq = 4",
        "Optimizer.step#AdamW.step",
        "Optimizer.zero_grad#AdamW.zero_grad",
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        "autograd::engine::evaluate_function: NativeBatchNormBackward0",
    ] {
        let (e, _) = steps(|_| name.to_owned());
        let report = look::report(&e);
        assert_eq!(report.iterations.map(|i| i.source), None, "{name}");
    }
}

#[test]
fn iterations_belong_to_their_process() {
    let (mut e, _) = steps(|i| format!("step {i}"));
    let other = e.thread(200, 200);
    e.item(other, 1000..31_000, GPU0, 30_001..30_010);
    let report = look::report(&e);
    for site in &report.sites {
        assert_eq!(site.per_iteration.is_some(), site.process.pid == 100);
    }
}

#[test]
fn an_open_range_is_not_counted() {
    let (mut e, t) = steps(|i| format!("step {i}"));
    e.nvtx_open(t, 490_000, "step 4");
    let report = look::report(&e);
    assert_eq!(report.iterations.map(|i| i.count), Some(4));
}

#[test]
fn filters_by_range_keep_the_waits_inside() {
    let (e, _) = steps(|i| format!("step {i}"));
    let (_dir, path) = e.write_temp();
    let with = |range: &str| {
        let filter = Filter { nvtx: Some(range.to_owned()), ..Filter::default() };
        let report = sync_report::report::run(std::slice::from_ref(&path), &Options { filter, ..options() });
        report.map(|r| r.totals.waits).map_err(|e| e.to_string())
    };
    assert_eq!([with("step"), with("step #"), with("step 2")], [Ok(4), Ok(4), Ok(1)]);
    // A name mistyped must not read as "nothing waits there".
    for wrong in ["step 9", "ste", ""] {
        let said = with(wrong).expect_err("no such range");
        assert!(said.contains("there are: step #"), "{said}");
    }
}

/// Sums of hostile times neither panic nor turn negative.
///
/// ```text
///  ten threads, each in a wait from the smallest to the largest time that a capture may hold
/// ```
#[test]
fn enormous_waits_do_not_overflow() {
    let far = i64::MAX / 4;
    let (mut e, _) = empty();
    for tid in 0..10 {
        let t = e.thread(100, 100 + tid);
        e.device_sync(t, -far..far, 0);
        e.launch(t, -far..-far + 1, Gpu { device: tid, stream: 7 }, -far..far, "gemm");
    }
    let report = look::report(&e);
    assert!(report.totals.blocked_ns > 0, "{}", report.totals.blocked_ns);
    assert!(report.totals.gpu_busy_ns > 0, "{}", report.totals.gpu_busy_ns);
    assert_sound(&report);
}

/// Host time before the loop belongs to no iteration.
///
/// ```text
///  NVTX                                       [step 0--------][step 1--------] … [step 9--------]
///  host  [launch]      50 ms of loading        [launch][item]  [launch][item]     [launch][item]
/// ```
#[test]
fn the_way_to_the_loop_is_no_part_of_an_iteration() {
    let (mut e, t) = empty();
    e.launch(t, 0..10, GPU0, 20..1_000, "gemm");
    for i in 0..10 {
        let at = 50_000_000 + i * 100_000;
        e.nvtx(t, at..at + 99_000, &format!("step {i}"));
        e.launch(t, at + 100..at + 110, GPU0, at + 120..at + 30_000, "gemm");
        e.item(t, at + 1000..at + 31_000, GPU0, at + 30_001..at + 30_010);
    }
    let totals = look::report(&e).totals;
    let iteration = totals.iteration.expect("a loop");
    assert!((90_000..110_000).contains(&iteration.ns), "{}", iteration.ns);
}
