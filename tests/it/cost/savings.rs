//! Savings in the report: of real captures with known truth, and with sites assumed fixed.

use super::*;
use crate::export::{Copy, Memory};
use sync_report::analysis::pricing::Scenario;
use sync_report::model::Site;
use sync_report::render::saving;
use sync_report::report;
use sync_report::verdict::source::SourceRoot;
use sync_report::vocabulary::{BoundBy, Change, Class};

fn alone(site: &Site) -> i64 {
    site.recoverable.as_ref().map_or(0, |r| r.alone_ns)
}

/// Measured without the profiler in the session of the capture: 5332 µs a step with the pageable upload (windows of 4982 to
/// 6076 µs), 1799 µs from pinned memory, which saves 66 % of it.
#[test]
fn the_upload_saves_what_was_measured() {
    let report = on("pairs_h2d_pageable.sqlite", &options());
    assert_sound(&report);
    let error = report.totals.simulation_error.expect("simulated");
    assert!(error < 0.03, "{error}");
    let step = report.totals.iteration.expect("a loop");
    let percent = 100 * step.saved_ns / step.ns;
    assert!((61..=71).contains(&percent), "{percent} % saved, measured 66 %");
    assert_eq!(report.totals.bound_by, Some(BoundBy::Gpu));
    let saving = report.sites[0].recoverable.as_ref().expect("priced");
    assert_eq!((saving.change, saving.simulated), (Change::Pinned, true));
    assert!(report.warnings.iter().any(|w| w.code == "bandwidth-assumed"));
}

#[test]
fn samples_are_reproduced() {
    for name in ["patterns.sqlite", "train_mlp_shapes.sqlite", "train_mlp_python_sampling.sqlite"] {
        let report = on(name, &options());
        assert_sound(&report);
        let error = report.totals.simulation_error.expect("simulated");
        assert!(error < 0.03, "{name}: {error}");
    }
}

#[test]
fn the_simulation_keeps_to_the_bounds() {
    for name in [
        "patterns.sqlite",
        "train_mlp_shapes.sqlite",
        "train_mlp_python_sampling.sqlite",
        "pairs_h2d_pageable.sqlite",
    ] {
        let found = look::priced(&sample(name));
        assert_eq!(found.prices.cut, 0, "{name}: {:?}", found.prices.sites);
        assert!(found.prices.usual_error.is_some_and(|error| error < 0.03), "{name}");
    }
}

/// ```text
///  host      [launch][sync==]  60 times, then 10 times  [launch][sync=====================]
///  stream 7         [k~~]                                                           [k~~]     300 µs late: why is not known
/// ```
/// The simulation starts the late ones at once and misses the run by more than a tenth: bounds only, with a
/// warning.
#[test]
fn a_capture_that_cannot_be_reproduced_gets_bounds_only() {
    let drawn = |late: i64| {
        let (mut e, t) = empty();
        let mut at = 0;
        for i in 0..70 {
            let start = at + 7_000 + if i < 60 { 0 } else { late };
            e.launch(t, at..at + 5_000, GPU0, start..start + 10_000, "k");
            e.sync(t, "cudaStreamSynchronize", at + 6_000..start + 13_000, GPU0);
            at = start + 23_000;
        }
        look::report(&e)
    };
    let (whole, missed) = (drawn(0), drawn(300_000));
    assert!(whole.totals.simulation_error.is_some_and(|e| e < 0.01), "{:?}", whole.totals);
    assert!(whole.totals.recoverable_false_joint_ns.is_some() && whole.totals.bound_by.is_some());
    let totals = &missed.totals;
    assert!(totals.simulation_error.is_some_and(|e| e > 0.1), "{totals:?}");
    assert_eq!((totals.recoverable_false_joint_ns, totals.bound_by), (None, None));
    assert!(totals.recoverable_high_ns > Some(0));
    assert!(missed.sites.iter().filter_map(|s| s.recoverable.as_ref()).all(|r| !r.simulated));
    assert!(missed.warnings.iter().any(|w| w.code == "simulation-off"));
    let said = look::table(&missed, None);
    assert!(said.contains("\n1 avoidable line costs between") && said.contains("no closer figure"), "{said}");
}

#[test]
fn prices_do_not_depend_on_threads() {
    let one = look::everything(&on("train_mlp_shapes.sqlite", &options()));
    for threads in [2, 5] {
        assert_eq!(look::everything(&on("train_mlp_shapes.sqlite", &Options { threads, ..options() })), one);
    }
}

#[test]
fn assumed_sites_are_gone() {
    let all = on("train_mlp_shapes.sqlite", &options());
    let gone = all.sites.iter().find(|s| s.class == Class::False).expect("a false site").id.clone();
    let scenario = Scenario { assume_fixed: vec![gone.clone()], fixes: Vec::new() };
    let left = on("train_mlp_shapes.sqlite", &Options { scenario, ..options() });
    assert_sound(&left);
    let ids: Vec<&str> = left.sites.iter().map(|s| s.id.as_str()).collect();
    let expected: Vec<&str> = all.sites.iter().map(|s| s.id.as_str()).filter(|id| *id != gone).collect();
    assert_eq!(ids, expected);
    assert!(left.totals.recoverable_false_joint_ns < all.totals.recoverable_false_joint_ns);
    assert_eq!(left.totals.sites + 1, all.totals.sites);
    assert!(left.warnings.iter().any(|w| w.code == "assumed-fixed" && w.message.contains(&gone)));
}

/// ```text
///  host      [launch][copy 4 B][sync==============][host work][launch][copy 4 KiB][sync===========][host work]
///  stream 7          [k~~~~~~~~~~~~~~~~~~~~][c]                       [k~~~~~~~~~~~~~~~~~~~~~][c]
/// ```
/// Both reads have one place without frames, yet are two sites: a change asked of one leaves the other.
#[test]
fn sites_of_one_place_are_asked_for_apart() {
    let (mut e, t) = empty();
    for i in 0..20 {
        for (half, bytes) in [(0, 4), (300_000, 4096)] {
            let at = i * 600_000 + half;
            e.launch(t, at..at + 5_000, GPU0, at + 7_000..at + 107_000, "k");
            let copy = Copy::d2h(bytes, Memory::Pinned);
            e.memcpy(t, at + 6_000..at + 10_000, copy, GPU0, at + 108_000..at + 109_000);
            e.sync(t, "cudaStreamSynchronize", at + 11_000..at + 112_000, GPU0);
        }
    }
    let asked = |fixes: &[(&str, Change)]| look::report_with(&e, &look::asking(fixes));
    let plain = asked(&[]);
    assert_eq!(plain.sites.len(), 2);
    assert_ne!(plain.sites[0].key, plain.sites[1].key);
    let joint = |report: &Report| report.totals.recoverable_false_joint_ns;
    let one = asked(&[("S1", Change::Drop)]);
    assert!(joint(&one) > joint(&plain), "{:?}", one.totals);
    let kept = asked(&[("S1", Change::Drop), ("S2", Change::Keep)]);
    assert_eq!(joint(&kept), joint(&one));
    // Only the read that is asked to stay saves nothing; both are undecided.
    let range =
        |report: &Report| report.sites[1].recoverable.as_ref().map(|r| [r.alone_ns, r.low_ns, r.high_ns]);
    assert_eq!(range(&kept), Some([0; 3]));
    assert!(range(&one) > Some([0; 3]), "{:?}", range(&one));
    assert_eq!(saving::short(&kept.sites[1]).as_deref(), Some("0 ns/iter"));
    let by_key = asked(&[(&plain.sites[0].key, Change::Drop), (&plain.sites[1].key, Change::Keep)]);
    assert_eq!(joint(&by_key), joint(&one));
}

/// ```text
///  host   [launch][copy][sync~~~]···a metric, 5 ms···[launch][copy][sync~~~]···
/// ```
/// It is undecided whether the CPU needs the value. A dropped read may also save the computation on its
/// value, unless that is a number.
#[test]
fn what_is_computed_with_a_read_may_go_with_it() {
    let read = |bytes: i64| {
        let (mut e, t) = empty();
        for at in (0..20).map(|i| i * 5_120_000) {
            e.launch(t, at..at + 5_000, GPU0, at + 7_000..at + 107_000, "k");
            let copy = Copy::d2h(bytes, Memory::Pinned);
            e.memcpy(t, at + 6_000..at + 10_000, copy, GPU0, at + 108_000..at + 109_000);
            e.sync(t, "cudaStreamSynchronize", at + 11_000..at + 112_000, GPU0);
        }
        e
    };
    let high = |bytes: i64, fixes: &[(&str, Change)]| {
        let report = look::report_with(&read(bytes), &look::asking(fixes));
        look::only(&report).recoverable.as_ref().expect("priced").high_ns
    };
    let dropped = |bytes: i64| high(bytes, &[("S1", Change::Drop)]);
    let (plain, number, dropped) = (high(4_096, &[]), dropped(4), dropped(4_096));
    assert!(number < 20 * 200_000, "{number}");
    assert!(plain < 20 * 200_000, "{plain}");
    assert!((18 * 3_900_000..20 * 4_200_000).contains(&dropped), "{dropped}");
}

#[test]
fn a_change_can_be_asked_for() {
    let report = on("pairs_h2d_pageable.sqlite", &look::asking(&[("S1", Change::NonBlocking)]));
    let pinned = on("pairs_h2d_pageable.sqlite", &options());
    assert_eq!(report.sites[0].recoverable.as_ref().map(|r| r.change), Some(Change::NonBlocking));
    assert!(alone(&report.sites[0]) * 10 < alone(&pinned.sites[0]), "staging stays");
}

#[test]
fn a_site_that_is_not_there_is_an_error() {
    let scenario = Scenario { assume_fixed: vec!["S99".into()], fixes: Vec::new() };
    let options = Options { scenario, ..options() };
    let error = report::run(&[sample("train_mlp_shapes.sqlite")], &options).expect_err("no such site");
    assert!(error.to_string().contains("S99"), "{error}");
}

/// A needed site has a range and no saving.
#[test]
fn needed_waits_promise_nothing() {
    let report = on("patterns.sqlite", &Options { top: 0, ..options() });
    let needed = report.sites.iter().filter(|s| s.class == Class::True);
    for saving in needed.filter_map(|s| s.recoverable.as_ref()) {
        assert_eq!((saving.alone_ns, saving.joint_ns, saving.low_ns), (0, 0, 0));
    }
}

/// ```text
///  host      [launch a]  [stream sync==] [device sync]···[launch b]     the second takes over what the first gives up
/// ```
#[test]
fn where_the_time_moves_is_named() {
    let (mut e, t) = empty();
    for at in (0..5i64).map(|i| i * 100_000) {
        e.launch(t, at..at + 5_000, GPU0, at + 7_000..at + 50_000, "a");
        e.sync(t, "cudaStreamSynchronize", at + 10_000..at + 53_000, GPU0);
        e.device_sync(t, at + 54_000..at + 56_000, 0);
    }
    let report = look::report(&e);
    let of = |api: &str| report.sites.iter().find(|s| s.api == api).expect("a site");
    let moved = of("cudaStreamSynchronize").recoverable.as_ref().expect("priced").moves_to.clone();
    assert_eq!(moved.as_ref(), Some(&of("cudaDeviceSynchronize").id));
}

/// The last of several waits in a row takes over the others' time: one by one they save nothing, together the
/// idle time after them. The report names their ids.
///
/// ```text
///  host      [launch a]  [stream sync==] [device sync] [device sync]···[launch b]
///  GPU            [a 43 µs~~~~~~~~~~~~~]                                  [b~~]
/// ```
#[test]
fn what_must_go_together_is_a_set() {
    for rest in [false, true] {
        let (mut e, t) = empty();
        for i in 0..30i64 {
            let at = i * 100_000;
            e.nvtx(t, at..at + 99_000, &format!("step {i}"));
            e.launch(t, at..at + 5_000, GPU0, at + 7_000..at + 50_000, "a");
            e.sync(t, "cudaStreamSynchronize", at + 10_000..at + 53_000, GPU0);
            e.device_sync(t, at + 54_000..at + 56_000, 0);
            if rest {
                e.nvtx(t, at + 56_500..at + 59_500, "rest");
                e.device_sync(t, at + 57_000..at + 59_000, 0);
            }
            e.launch(t, at + 80_000..at + 85_000, GPU0, at + 87_000..at + 90_000, "b");
        }
        let report = look::report(&e);
        let [set] = &report.together[..] else { panic!("one set: {:?}", report.together) };
        assert_eq!((set.sites.len(), report.sites.len()), (2 + usize::from(rest), 2 + usize::from(rest)));
        let alone: i64 = set.alone_ns.iter().sum();
        assert!(set.per_iteration && set.saved_ns > 30_000 && alone < 12_000, "{set:?}");
        assert!(set.low_ns <= set.saved_ns && set.saved_ns <= set.high_ns, "{set:?}");
        let said = look::table(&report, None);
        assert!(said.contains("together save about") && said.contains("of an iteration"), "{said}");
    }
}

/// Waits that save by themselves are no set, however many there are.
///
/// ```text
///  host      [launch a]  [stream sync==]···[launch b]  [device sync==]···
/// ```
#[test]
fn what_saves_by_itself_is_no_set() {
    let (mut e, t) = empty();
    for i in 0..30i64 {
        let at = i * 200_000;
        e.nvtx(t, at..at + 199_000, &format!("step {i}"));
        e.launch(t, at..at + 5_000, GPU0, at + 7_000..at + 50_000, "a");
        e.sync(t, "cudaStreamSynchronize", at + 10_000..at + 53_000, GPU0);
        e.launch(t, at + 100_000..at + 105_000, GPU0, at + 107_000..at + 150_000, "b");
        e.device_sync(t, at + 110_000..at + 153_000, 0);
    }
    assert_eq!(look::report(&e).together, []);
}

/// ```text
///  host      [launch a] [sync]··············[launch b]··[sync=============]·[launch a]
///                       13 µs   150 µs                   180 µs            20 µs
///  stream 7     [a~~~~~~~~]                   [b~~~~~~~~~~~~~~~~~~~~~~~~~~]
/// ```
/// Wait by wait at most 13 + 20 µs are saved: the second takes over the first's time. Together they save the
/// 50 µs that the GPU idles each time.
#[test]
fn waits_that_go_together_are_bounded_together() {
    let (mut e, t) = empty();
    for at in (0..5i64).map(|i| i * 373_000) {
        e.launch(t, at..at + 5_000, GPU0, at + 7_000..at + 20_000, "a");
        e.sync(t, "cudaStreamSynchronize", at + 10_000..at + 23_000, GPU0);
        e.launch(t, at + 40_000..at + 45_000, GPU0, at + 47_000..at + 350_000, "b");
        e.sync(t, "cudaStreamSynchronize", at + 173_000..at + 353_000, GPU0);
    }
    let report = look::report(&e);
    assert_sound(&report);
    let joint = report.totals.recoverable_false_joint_ns.expect("simulated");
    assert!((170_000..=290_000).contains(&joint), "{joint}");
}

/// A host-bound program runs shorter without the profiler, and the estimate has a range.
#[test]
fn the_run_without_the_profiler_is_estimated() {
    let options = Options { as_captured: false, ..options() };
    for name in ["train_mlp_shapes.sqlite", "pairs_h2d_pageable.sqlite"] {
        let report = on(name, &options);
        let alone = report.totals.without_profiler.expect("simulated");
        assert!(alone.low_ns <= alone.saved_ns && alone.saved_ns <= alone.high_ns, "{alone:?}");
        let span = report.profiles[0].span_ns;
        assert!(0 < alone.run_ns && alone.run_ns < span, "{alone:?} {span}");
    }
    // Its GPU is busy: the profiler's time is hidden behind its work.
    let totals = on("pairs_h2d_pageable.sqlite", &options).totals;
    let alone = totals.without_profiler.expect("simulated").saved_ns;
    let joint = totals.captured.expect("simulated").saved_ns;
    assert!((alone - joint).abs() * 20 < joint, "{alone} {joint}");
}

/// Ranges hold the figure, and widen with the scatter of iterations; the report names their basis.
///
/// ```text
///  step #     [0    100 µs][1    100 µs][2       120 µs  ][3    100 µs] …          every third is longer
/// ```
#[test]
fn ranges_widen_as_iterations_scatter() {
    let drawn = |longer: i64| {
        let (mut e, t) = empty();
        let mut at = 0;
        for i in 0..30i64 {
            let length = 100_000 + if i % 3 == 0 { longer } else { 0 };
            e.nvtx(t, at..at + length, &format!("step {i}"));
            e.launch(t, at + 1_000..at + 6_000, GPU0, at + 8_000..at + 50_000, "k");
            e.sync(t, "cudaStreamSynchronize", at + 10_000..at + 53_000, GPU0);
            at += length + 1_000;
        }
        e.launch(t, at..at + 5_000, GPU0, at + 7_000..at + 50_000, "k");
        look::report(&e).totals
    };
    let (even, uneven) = (drawn(0), drawn(20_000));
    assert_eq!((even.range_scatter_ns, uneven.range_scatter_ns), (Some(0), Some(54_772)));
    let joint = even.recoverable_false_joint_ns.expect("simulated");
    let share = |share: f64| Some((joint as f64 * share) as i64);
    assert!(joint > 500_000, "{joint}");
    // Each wait is saved whole; the margin for what no capture shows is 1.5 % of the run.
    let beyond = |totals: &sync_report::model::Totals| {
        (totals.without_profiler.expect("simulated").run_ns as f64 * 0.015) as i64
    };
    let [low, high] = [even.recoverable_low_ns, even.recoverable_high_ns].map(|end| end.expect("a range"));
    assert_eq!((Some(low + beyond(&even)), high - beyond(&even)), (share(0.75), joint));
    let joint = uneven.recoverable_false_joint_ns.expect("simulated");
    let down = (joint as f64 * 0.25).hypot(54_772.0) as i64;
    assert!(
        (uneven.recoverable_low_ns.unwrap_or(0) - (joint - down - beyond(&uneven))).abs() <= 1,
        "{joint} {uneven:?}"
    );
    let said = sync_report::render::saving::basis(&uneven).expect("a sentence");
    assert!(
        said.contains(
            "0.75 to 1.4 times the figure, 1.5 % on either side as in measured programs, and ± 54.8 µs"
        ),
        "{said}"
    );
    let said = sync_report::render::saving::basis(&even).expect("a sentence");
    assert!(said.contains("as in measured programs.") && !said.contains('±'), "{said}");
}

/// Host work before an H2D copy widens a range upwards by two fifths of its time above a millisecond. Other
/// host work does not, nor a loop that yields the data.
///
/// ```text
///  made    step # [launch a]···3 ms···[copy][sync]·········[launch b]
///  other   step # [launch a]·[copy][sync]······4 ms········[launch b]
/// ```
#[test]
fn what_is_made_for_an_upload_may_go_too() {
    const FILE: &str = "/w/train.py";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = "for x in loader:\n    x = x.cuda()\n\nwhile True:\n    x = draw()\n    x = x.cuda()\n";
    std::fs::write(folder.path().join("train.py"), program).expect("a written file");
    let root = SourceRoot { old: Some("/w".into()), new: folder.path().to_owned() };
    let options = Options { source_roots: vec![root], ..options() };
    let drawn = |before: i64, line: i64| {
        let (mut e, t) = empty();
        for i in 0..20i64 {
            let at = i * 50_000_000;
            let (copy, later) = (at + before + 15_000, at + 4_000_000);
            e.nvtx(t, at..at + 49_999_000, &format!("step {i}"));
            e.launch(t, at..at + 5_000, GPU0, at + 7_000..at + 12_000, "a");
            let upload = Copy::h2d(131_072, Memory::Pageable);
            let sent = e.memcpy(t, copy..copy + 10_000, upload, GPU0, copy + 4_000..copy + 9_000);
            let waits = e.sync(t, "cudaStreamSynchronize", copy + 11_000..copy + 14_000, GPU0);
            e.launch(t, later..later + 5_000, GPU0, later + 7_000..later + 15_000, "b");
            e.python(sent, &[("<module>", FILE, line)]).python(waits, &[("<module>", FILE, line)]);
        }
        look::report_with(&e, &options).totals.iteration.expect("a loop")
    };
    let (made, other) = (drawn(3_000_000, 6), drawn(0, 6));
    let more = made.high_ns - other.high_ns;
    assert!((790_000..=805_000).contains(&more), "{made:?} {other:?}");
    assert_eq!(made.low_ns, other.low_ns);
    let (given, other) = (drawn(3_000_000, 2), drawn(0, 2));
    assert_eq!([given.low_ns, given.high_ns], [other.low_ns, other.high_ns]);
}

/// ```text
///  stream 7   [gemm 1000 µs]··[gemm 1002]··[gemm 1004]·· … [gemm 1118]     the same grid takes longer and longer
/// ```
#[test]
fn only_runs_of_one_grid_that_slow_down_hint_at_the_power_limit() {
    let named = |kernel: &str, length: fn(i64) -> i64, grid: fn(i64) -> i64| {
        let (mut e, t) = empty();
        let mut at = 0;
        for i in 0..60 {
            let end = at + 3_000 + length(i);
            let call = e.launch(t, at + 1_000..at + 2_000, GPU0, at + 3_000..end, kernel);
            let this = format!("correlationId = {}", call.correlation);
            e.set("CUPTI_ACTIVITY_KIND_KERNEL", "gridY", grid(i), &this);
            e.sync(t, "cudaStreamSynchronize", at + 2_100..end + 1_000, GPU0);
            at = end + 20_000;
        }
        let warnings = look::report(&e).warnings;
        let hint = warnings.iter().find(|w| w.code == "power-limited");
        hint.inspect(|w| assert!(w.message.contains("`gemm`"), "{w:?}")).is_some()
    };
    let hinted = |length, grid| named("gemm", length, grid);
    let (slower, twice) = (|i| 1_000_000 + 2_000 * i, |i| if i < 30 { 1_000_000 } else { 1_200_000 });
    assert!(hinted(slower, |_| 1));
    assert!(hinted(twice, |_| 1));
    assert!(!hinted(twice, |i| 1 + i / 30), "other work");
    assert!(!hinted(|i| 1_000_000 + i % 2 * 200_000, |_| 1), "two sizes, by turns");
    assert!(!hinted(|i| 1_200_000 - 2_000 * i, |_| 1), "faster and faster");
    assert!(!named("ncclDevKernel_AllReduce", slower, |_| 1), "it waits for other ranks");
    assert!(!hinted(|i| if i < 30 { 1_000_000 } else { 2_100_000 }, |_| 1), "no clock falls so far");
}
