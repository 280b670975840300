//! The program without the profiler: the cost of backtraces is learned, a known step scales it, costs paid
//! once are apart.

use super::*;
use crate::export::{Copy, Memory};
use sync_report::model::IterationSaving;

/// Thirty steps of three launches and a read; under the profiler each call is followed by a backtrace.
///
/// ```text
///  light   host  [l]10[l]10[l]10[sync------]10        GPU busy 90 of 100 µs: the wait takes what the GPU needs
///          GPU       [k 30 ][k 30 ][k 30 ]
///  full    host  [l]~~60~~10[l]~~60~~10[l]~~60~~10[sync]~~60~~10      the GPU waits for the host, the wait finds little
///          GPU       [k 30 ]       [k 30 ]       [k 30 ]
/// ```
fn drawn(unwinding: i64) -> (Export, Thread) {
    let (mut e, t) = empty();
    let gap = 10_000 + unwinding;
    let (mut at, mut free) = (0, 0);
    for i in 0..30 {
        e.nvtx(t, at..at + 1, &format!("step {i}"));
        for _ in 0..3 {
            let call = at..at + 5_000;
            let start = free.max(call.end + 2_000);
            free = start + 30_000;
            let launch = e.launch(t, call.clone(), GPU0, start..free, "k");
            if unwinding > 0 {
                e.native(launch, &[("launch", "/opt/libtorch.so")]);
            }
            at = call.end + gap;
        }
        let end = (at + 3_000).max(free + 3_000);
        let sync = e.sync(t, "cudaStreamSynchronize", at..end, GPU0);
        if unwinding > 0 {
            e.native(sync, &[("sync", "/opt/libtorch.so")]);
        }
        at = end + gap;
    }
    (e, t)
}

fn priced(e: &Export, step: Option<i64>) -> Report {
    look::report_with(e, &Options { as_captured: false, step, ..look::options() })
}

/// Backtraces of 60 µs hide that the GPU limits the program: without them, the iteration is the light capture's.
#[test]
fn backtraces_are_learned_and_left_out() {
    let [light, full] = [0, 60_000].map(|unwinding| priced(&drawn(unwinding).0, None).totals);
    let [light, full] = [light, full].map(|t| t.iteration.expect("a loop"));
    assert!(full.captured_ns > 2 * light.captured_ns, "{full:?} {light:?}");
    assert!((full.ns - light.ns).abs() * 10 < light.ns, "{full:?} {light:?}");
    assert!(full.captured_saved_ns * 3 < light.saved_ns * 2, "{full:?} {light:?}");
    assert!(full.low_ns <= light.saved_ns && light.saved_ns <= full.high_ns, "{full:?} {light:?}");
}

/// An iteration of thirty steps of twenty launches and a synchronisation; the arguments are lengths in ns.
fn traced(launch: i64, sync: i64, gap: i64) -> IterationSaving {
    let (mut e, t) = empty();
    let mut at = 0;
    for i in 0..30 {
        e.nvtx(t, at..at + 1, &format!("step {i}"));
        for _ in 0..20 {
            e.launch(t, at..at + launch, GPU0, at + launch + 800..at + launch + 1_300, "k");
            at += launch + gap;
        }
        e.sync(t, "cudaStreamSynchronize", at..at + sync, GPU0);
        at += sync + gap;
    }
    priced(&e, None).totals.iteration.expect("a loop")
}

/// Tracing costs time inside calls without gaps: some 2.5 of 7 µs a launch are the program's.
///
/// ```text
///  host  [launch][launch] … [launch][sync]      no gap to take it from
/// ```
#[test]
fn tracing_inside_calls_is_left_out() {
    let iteration = traced(7_000, 5_000, 100);
    assert_eq!(iteration.captured_ns, 20 * 7_100 + 5_100);
    assert!(iteration.ns * 2 < iteration.captured_ns && iteration.ns > 20 * 2_000, "{iteration:?}");
}

/// Tracing takes its usual time between calls, but never most of a gap: dense launches stay the program's.
///
/// ```text
///  dense  host  [launch]·5·[launch]·5· … [sync]·5·           40 % of each gap and 65 % of each launch
///  apart  host  [launch]····40····[launch]···· … [sync]····   6 µs each
/// ```
#[test]
fn tracing_between_calls_is_a_part_of_the_gap() {
    for (gap, taken) in [(5_000, (20 * (2_000 + 2_730) + 2_000) / 21), (40_000, 6_000)] {
        let iteration = traced(4_200, 4_000, gap);
        let each = (iteration.captured_ns - iteration.ns) / 21;
        assert!((each - taken).abs() < 100, "{gap}: {each}");
    }
}

#[test]
fn a_known_step_is_met() {
    let (e, _) = drawn(60_000);
    let unused = |report: &Report| report.warnings.iter().any(|w| w.code == "step-time-unused");
    let met = priced(&e, Some(150_000));
    let iteration = met.totals.iteration.expect("a loop");
    assert!((iteration.ns - 150_000).abs() < 15_000 && !unused(&met), "{iteration:?}");
    let figures = |report: &Report| format!("{:?} {:?}", report.totals, report.sites);
    let without = figures(&priced(&e, None));
    for step in [1_000, 10_000_000] {
        let report = priced(&e, Some(step));
        assert!(unused(&report), "{step}");
        assert_eq!(figures(&report), without, "{step}");
    }
}

/// Waits before and after the loop are listed last and are no part of the saving.
///
/// ```text
///  host  [upload 9 ms]  [step 0][step 1] … [step 29]  [device sync]
/// ```
#[test]
fn what_is_paid_once_is_apart() {
    let (mut e, t) = drawn(0);
    e.memcpy_blocking(
        t,
        -20_000_000..-11_000_000,
        Copy::h2d(1 << 26, Memory::Pageable),
        GPU0,
        -19_000_000..-11_000_100,
    );
    e.sync(t, "cudaDeviceSynchronize", 900_000_000..900_050_000, GPU0);
    let report = priced(&e, None);
    let once: Vec<(bool, bool)> = report.sites.iter().map(|s| (s.once, s.after_loop)).collect();
    assert_eq!(once, [(false, false), (true, true), (true, false)], "{:?}", report.sites);
    assert_eq!((report.totals.once.sites, report.totals.repeating_false_sites), (2, 1));
    let saved = report.totals.recoverable_false_joint_ns.expect("simulated");
    assert!(saved < 5_000_000, "{saved}: the upload is no part of it");
    let said = crate::look::table(&report, None);
    assert!(
        said.contains("1 avoidable line costs")
            && said.contains("1 site at start or end, 9.00 ms of waiting; ")
            && said.contains("; 1 site after the loop, 50.0 µs of waiting: not counted above"),
        "{said}"
    );
}

/// A library creates its handle in the step that calls it first: 9 µs that no other step pays. Nothing is to
/// be done, so the reads are all that is saved.
///
/// ```text
///  host  [step 0][step 1] … [step 7 [cudaFree]] … [step 29]
/// ```
#[test]
fn what_is_to_be_left_saves_nothing() {
    let (mut e, t) = drawn(0);
    let at = 7 * 110_000;
    e.free(t, at + 6_000..at + 15_000);
    let report = priced(&e, None);
    let free = report.sites.iter().find(|s| s.api == "cudaFree").expect("a site");
    assert_eq!(free.fix.as_ref().map(|fix| &*fix.title), Some("nothing to do: it happens once"));
    assert!(free.once && free.promise().is_none(), "{free:?}");
    assert_eq!(free.fix.as_ref().map(|fix| &*fix.confirm), Some(""), "nothing was done");
    let markdown = crate::look::printed(&report, "markdown", &Default::default());
    assert!(markdown.starts_with("### sync-report: 1 avoidable line costs"), "{markdown}");
    assert_eq!((report.totals.once.sites, report.totals.repeating_false_sites), (1, 1));
    assert_eq!(sync_report::render::saving::short(free).as_deref(), Some("0 ns once"));
}

/// A needed wait blocks longer without backtraces than behind them.
///
/// ```text
///  captured   [launch]·unwinding·[launch]·unwinding·[launch]·unwinding·[copy][wait]        the GPU is done long before
///  alone      [launch][launch][launch][copy][wait-----------------------]
/// ```
#[test]
fn a_needed_wait_may_block_for_longer_without_backtraces() {
    const LIBRARY: &str = "/opt/libtorch.so";
    let (mut e, t) = empty();
    for i in 0..30 {
        let mut at = i * 400_000;
        e.nvtx(t, at..at + 1, &format!("step {i}"));
        for _ in 0..3 {
            let launch = e.launch(t, at..at + 5_000, GPU0, at + 7_000..at + 47_000, "k");
            e.native(launch, &[("launch", LIBRARY)]);
            at += 75_000;
        }
        let copy = e.memcpy(t, at..at + 5_000, Copy::d2h(4, Memory::Pinned), GPU0, at + 6_000..at + 7_000);
        let sync = e.sync(t, "cudaStreamSynchronize", at + 6_000..at + 10_000, GPU0);
        for call in [copy, sync] {
            e.native(
                call,
                &[
                    ("cudaStreamSynchronize", LIBRARY),
                    ("at::_ops::bincount::call(at::Tensor const&)", LIBRARY),
                    ("THPVariable_bincount(x)", LIBRARY),
                ],
            );
        }
    }
    let report = priced(&e, None);
    let site = &report.sites[0];
    let saving = site.recoverable.as_ref().expect("priced");
    assert_eq!(
        (site.class, saving.change),
        (Class::True, sync_report::vocabulary::Change::Keep),
        "{:?}",
        site.evidence
    );
    assert!(saving.high_ns > 2 * site.blocked_ns, "{saving:?}");
}

/// A capture with a backtrace of every call advises a capture that prices closer.
#[test]
fn backtraces_of_every_call_are_said_with_a_better_capture() {
    let (e, _) = drawn(60_000);
    let report = priced(&e, None);
    assert!(report.profiles[0].slowed);
    let said = report.warnings.iter().find(|w| w.code == "profiler-overhead").expect("said");
    assert!(said.message.contains("every call has a backtrace"), "{}", said.message);
    assert!(said.fix.contains("sync-report run "), "{}", said.fix);
}
