//! Loops that NVTX ranges mark, beside what repeats; which iterations are start-up, and where one ends.

use super::*;

/// NVTX ranges overrule found loops, and `--iteration-marker` overrules ranges.
///
/// ```text
///  epoch # [------------------------------][------------------------------]
///  pass    [-----] [-----] [-----] [-----]  [-----] [-----] [-----] [-----]    two steps in each
/// ```
#[test]
fn ranges_overrule_what_is_found_and_the_marker_both() {
    let mut p = Program::new();
    for epoch in 0..3 {
        let began = p.now;
        for i in 0..4 {
            let from = p.now;
            p.step(2 * i);
            p.step(2 * i + 1);
            p.mark(from, "pass");
        }
        let (main, until) = (p.main, p.now - 50);
        p.e.nvtx(main, began..until, &format!("epoch {epoch}"));
    }
    let with = |marker: Option<&str>| {
        let options = Options { iteration_marker: marker.map(str::to_owned), ..options() };
        look::report_with(&p.e, &options).iterations.map(|i| (i.count, i.source))
    };
    assert_eq!(with(None), Some((3, "NVTX ranges `epoch #`".to_owned())));
    assert_eq!(with(Some("pass")), Some((12, "NVTX ranges `pass`".to_owned())));
    assert_eq!(with(Some("epoch")), Some((3, "NVTX ranges `epoch`".to_owned())));
    let (_folder, path) = p.e.write_temp();
    let options = Options { iteration_marker: Some("pas".to_owned()), ..options() };
    let said = sync_report::report::run(&[path], &options).expect_err("no such range").to_string();
    assert!(said.contains("epoch #, pass"), "{said}");
}

#[test]
fn a_marked_warm_up_is_not_the_loop() {
    let mut p = Program::new();
    for i in 0..20 {
        let from = p.now;
        p.step(i);
        if i < 3 {
            p.mark(from, &format!("warm-up step {i}"));
        }
    }
    assert_found(p.found().as_ref(), 20, 31_500, 1.0);
}

/// The marked warm-up of two loops is not the program's loop, however long it takes.
///
/// ```text
///  NVTX   [warm-up step 0---------][warm-up step 1---------] …
///  found  [0                      ][1                      ] …   beside it: [0   ][1   ][2   ] …
/// ```
#[test]
fn of_two_loops_the_marked_warm_up_is_the_other() {
    let run = |marked: bool| {
        let mut p = Program::new();
        for i in 0..6 {
            let from = p.now;
            p.step(i);
            p.idle(300_000);
            if marked {
                p.mark(from, &format!("warm-up step {i}"));
            }
        }
        for _ in 0..10 {
            p.forward();
            p.item();
        }
        p.found().map(|found| (found.count, found.source))
    };
    assert_eq!(run(true), Some((10, "repeating launches beside another loop of 6".to_owned())));
    assert_eq!(run(false), Some((6, "repeating launches beside another loop of 10".to_owned())));
}

/// A host that runs ahead starts an iteration each 32 µs; the GPU takes 900 µs for it, with or without the profiler.
///
/// ```text
///  host   [step 0][step 1][step 2] …                             [synchronize]
///  GPU     [k · · · · · · · · · ·][k · · · · · · · · · ·][k · ·
/// ```
#[test]
fn without_the_profiler_no_iteration_is_longer() {
    let mut p = Program::new();
    for i in 0..10 {
        let (main, at) = (p.main, p.now);
        p.e.nvtx(main, at..at + 30_000, &format!("step {i}"));
        let free = 1_010_000 + 900_000 * i;
        p.e.launch(main, at..at + 1000, GPU0, free..free + 899_000, "k");
        p.idle(32_000);
    }
    let main = p.main;
    p.e.device_sync(main, p.now..10_100_000, 0);
    let of = look::report_with(&p.e, &Options { as_captured: false, ..options() }).totals.iteration;
    let of = of.expect("a loop");
    assert!(of.ns > 800_000 && of.ns <= of.captured_ns, "{of:?}");
}

/// The first iteration of a process loads libraries; it counts if a later one is as long.
///
/// ```text
///  [0 · · · · · · · · · · · · ·][1 · · · ·][2 · · · ·] …            left out: 0
///  [0 · · · · · · · · · · · · ·][1 · · · ·][2 · · · · · · · · · · · · · · · ·] …     none
/// ```
#[test]
fn a_first_iteration_that_starts_the_process_up_is_left_out() {
    let run = |later: i64| {
        let mut p = Program::new();
        for i in 0..20 {
            let from = p.now;
            p.step(i);
            p.idle([(0, 400_000), (11, later)].iter().filter(|(at, _)| *at == i).map(|(_, ns)| ns).sum());
            p.mark(from, &format!("step {i}"));
        }
        p
    };
    let of = |report: Report| {
        let found = report.iterations.expect("iterations");
        (found.count, found.start_up, found.start_to_start_ns > 40_000)
    };
    let p = run(0);
    assert_eq!(of(p.report()), (19, 1, false));
    assert_eq!(of(run(500_000).report()), (20, 0, true));
    // Also of few iterations, if three are left.
    let few = |count: i64| {
        let mut p = Program::new();
        for i in 0..count {
            let from = p.now;
            p.step(i);
            p.idle(if i == 0 { 400_000 } else { 0 });
            p.mark(from, &format!("step {i}"));
        }
        of(p.report())
    };
    assert_eq!((few(5), few(4), few(3)), ((4, 1, false), (3, 1, false), (3, 0, true)));
    // A window that begins later has no start-up.
    let filter = Filter { from: Some(p.now - 200_000), ..Filter::default() };
    let (count, start_up, _) = of(look::report_with(&p.e, &Options { filter, ..options() }));
    assert!(count < 10 && start_up == 0, "{count}, {start_up}");
}

/// Ranges that count up under one range are layers, unless most meet the host. Launches that repeat with them
/// are layers too, and so is one repeating kernel.
///
/// ```text
///  NVTX   [forward                                               ]
///          [layer_0        ][layer_1        ][layer_2        ] …
///  host     gemm gelu norm   gemm gelu norm   gemm gelu norm  …   item
/// ```
#[test]
fn layers_of_one_pass_are_no_iterations() {
    let count = |kernels: &[&str], named: &str, overlap: i64, reads: bool| {
        let mut p = Program::new();
        let began = p.now;
        for i in 0..24 {
            let from = p.now;
            p.launch(kernels);
            if reads {
                p.item();
            }
            let main = p.main;
            p.e.nvtx(main, from..p.now - 100 + overlap, &format!("{named}{i}"));
        }
        p.item();
        p.mark(began, "forward");
        p.found().map(|found| found.count)
    };
    let layer = ["gemm", "gelu", "norm"];
    for (named, overlap) in [("layer_", 0), ("DecoderLayer[", 0), ("h.", 0), ("layer_", 300)] {
        assert_eq!(count(&layer, named, overlap, false), None, "{named} {overlap}");
        assert_eq!(count(&["gelu"], named, overlap, false), None, "one kernel, {named} {overlap}");
    }
    assert_eq!(count(&layer, "sample ", 0, true), Some(24));
    assert_eq!(count(&layer, "step ", 0, false), Some(24), "the name says it");
}

/// ```text
///  NVTX   [forward][backward][optimizer]  [forward][backward][optimizer]
///  found  [0----------------------------][1----------------------------]
/// ```
#[test]
fn forward_backward_and_optimizer_are_an_iteration_together() {
    let mut p = Program::new();
    for _ in 0..6 {
        let began = p.now;
        p.forward();
        let (main, passed) = (p.main, p.now);
        p.launch(&["gemm'", "gelu'"]);
        let back = p.now;
        p.launch(&["adam"]);
        p.item();
        p.e.nvtx(main, began..passed - 100, "forward");
        p.e.nvtx(main, passed..back - 100, "backward");
        p.e.nvtx(main, back..p.now - 100, "optimizer step");
        p.idle(1000);
    }
    let found = p.found().expect("iterations");
    assert_eq!((found.count, found.median_ns), (6, 23_000), "{found:?}");
    assert!((found.waits_per_iteration - 1.0).abs() < 1e-9, "{found:?}");
}

/// Callbacks between two ranges belong to the iteration before; a validation between epochs does not.
///
/// ```text
///  NVTX   [step 0][read][step 1][read][step 2]  [read read read …   ][step 3][read]
///  found  [0-----------][1-----------][2-----]                       [3-----]
/// ```
#[test]
fn an_iteration_lasts_to_the_next_unless_that_is_far() {
    let mut p = Program::new();
    for i in 0..12 {
        let from = p.now;
        p.launch(&["gemm", "gelu", "gemm"]);
        p.mark(from, &format!("step {i}"));
        p.item();
        if i == 5 {
            (0..9).for_each(|_| p.item());
            let (main, at) = (p.main, p.now);
            p.e.device_sync(main, at..at + 1800, 0);
            p.idle(2000);
        }
    }
    let report = p.report();
    // A wait in the validation saves time of the run only, though the loop goes on after it.
    let site = report.sites.iter().find(|s| s.api == "cudaDeviceSynchronize").expect("a site");
    assert_eq!(site.per_iteration, Some(0.0));
    assert_eq!(site.recoverable.as_ref().map(|r| r.per_iteration_ns), Some(None));
    let found = report.iterations.expect("iterations");
    // The reads after the sixth range and the last lie outside.
    assert_eq!((found.count, found.median_ns), (12, 8_000), "{found:?}");
    assert!((found.waits_per_iteration - 10.0 / 12.0).abs() < 1e-9, "{found:?}");
}
