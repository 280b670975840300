//! Drain: device-idle time that a wait leaves behind.

use super::*;

/// ```text
///  host      [launch]  [sync============]  [launch]
///            1000      2000         50010  60000
///  stream 7     [gemm~~~~~~~~~~~~~~~]         [gemm~~~]        drain: 50000 to 62000
///              1020             50000        62000
/// ```
fn simple() -> (Export, Thread) {
    let (mut e, t) = empty();
    e.launch(t, 1000..1010, GPU0, 1020..50_000, "gemm");
    e.sync(t, "cudaStreamSynchronize", 2000..50_010, GPU0);
    e.launch(t, 60_000..60_010, GPU0, 62_000..90_000, "gemm");
    (e, t)
}

#[test]
fn a_wait_drains_until_the_next_op_starts() {
    let (e, _) = simple();
    assert_eq!(drains(&e), [12_000]);
    let report = look::report(&e);
    let gpu = &report.profiles[0].gpus[0];
    assert_eq!((gpu.span_ns, gpu.busy_ns, gpu.idle_ns, gpu.drain_ns), (88_980, 76_980, 12_000, 12_000));
    let site = &report.sites[0];
    assert_eq!((site.drain_ns, site.blocked_ns), (12_000, 48_010));
    assert!((site.drain_percent - 100.0 * 12_000.0 / 88_980.0).abs() < 1e-9);
    assert!((site.blocked_percent - 100.0 * 48_010.0 / 59_010.0).abs() < 1e-9);
    assert_sound(&report);
}

/// ```text
///  stream 7     [gemm~~~~~~~~~~~~~~~]         [gemm~~~]
///  stream 13        [copy~~~~~~~~~~~~~~~~~~~~~~~~~~]       the device worked on: no drain
/// ```
#[test]
fn another_stream_that_works_leaves_no_drain() {
    let (mut e, t) = simple();
    e.launch(t, 1011..1019, SIDE, 1500..63_000, "comm");
    assert_eq!(drains(&e), [0]);
    assert_sound(&look::report(&e));
}

/// The same for a CUDA graph, of which only the launch is recorded.
#[test]
fn a_graph_that_runs_leaves_no_drain() {
    let (mut e, t) = simple();
    e.graph_launch(t, 1011..1019, SIDE, 1500..63_000);
    assert_eq!(drains(&e), [0]);
    assert_sound(&look::report(&e));
}

/// ```text
///  thread A  [launch]  [sync============]
///  thread B                   [launch]            long before the wait returned: not held up by it
///  stream 7     [gemm~~~~~~~~~~~~~~~]         [gemm~~~]
/// ```
#[test]
fn an_op_launched_before_the_wait_ended_was_not_held_up_by_it() {
    let (mut e, t) = empty();
    let other = e.thread(100, 101);
    e.launch(t, 1000..1010, GPU0, 1020..50_000, "gemm");
    e.sync(t, "cudaStreamSynchronize", 2000..50_010, GPU0);
    e.launch(other, 30_000..30_010, SIDE, 62_000..90_000, "gemm");
    assert_eq!(drains(&e), [0]);
    assert_sound(&look::report(&e));
}

/// ```text
///  thread A   [sync================]    [launch]     both waited for the gemm: A, which went on to launch, has the gap
///  thread B     [sync==================]
///  stream 7  [gemm~~~~~~~~~~~~~~~~]        [gemm]
/// ```
#[test]
fn a_gap_belongs_to_one_wait() {
    let (mut e, _) = simple();
    let other = e.thread(100, 101);
    e.sync(other, "cudaStreamSynchronize", 2500..50_005, GPU0);
    let found = look::analysed(&e);
    let by_end: Vec<(i64, i64)> =
        found.waits.iter().zip(found.drains.iter()).map(|(w, d)| (w.end, *d)).collect();
    assert_eq!(by_end, [(50_010, 12_000), (50_005, 0)]);
    assert_sound(&look::report(&e));
}

#[test]
fn after_the_last_op_there_is_no_drain() {
    let (mut e, t) = simple();
    e.device_sync(t, 70_000..90_010, 0);
    assert_eq!(drains(&e), [12_000, 0]);
}

/// ```text
///  host      [launch a][launch b] [eventSync (of a)]  …   [launch c]
///  stream 7     [a~~~~~~~~~~~~~~~~~~~~~~~~~~~~][b~~~~~]      [c]       idle after b, which nobody waited for
/// ```
#[test]
fn the_gap_after_work_that_was_not_awaited_is_nobodys() {
    for recorded in [true, false] {
        let (mut e, t) = empty();
        e.launch(t, 1000..1010, GPU0, 1020..50_000, "a");
        if recorded {
            e.event_record(t, 1011..1012, GPU0, 5);
        }
        e.launch(t, 1013..1019, GPU0, 50_000..80_000, "b");
        e.event_sync(t, 2000..50_010, 5);
        e.launch(t, 90_000..90_010, GPU0, 92_000..99_000, "c");
        assert_eq!(drains(&e), [0], "record in the export: {recorded}");
        assert_sound(&look::report(&e));
    }
}

/// A kernel whose launch the export does not hold (trimmed): it counts as issued when it ran.
#[test]
fn an_op_without_a_launch_counts_from_its_start() {
    let (mut e, _) = simple();
    e.sql("DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE start = 60000");
    assert_eq!(drains(&e), [12_000]);
}

/// ```text
///  GPU 0     [gemm~~~~~]            [gemm]     drain of the wait for GPU 0
///  GPU 1        [gemm~~~~~~~~~~~~~~~~~~]       another device does not fill it
/// ```
#[test]
fn another_device_does_not_fill_the_gap() {
    let (mut e, t) = simple();
    e.launch(t, 1011..1019, Gpu { device: 1, stream: 7 }, 1500..99_000, "gemm");
    let report = look::report(&e);
    let drain: Vec<i64> = report.profiles[0].gpus.iter().map(|g| g.drain_ns).collect();
    assert_eq!(drain, [12_000, 0]);
    assert_sound(&report);
}

/// ```text
///  host      [sync========]      [launch]
///  stream 7  [gemm~~~~]             [gemm~~~]
///                     50000        62000
///                  --to 55000 ^                   the window holds 5000 of the 12000 idle ns
/// ```
#[test]
fn a_window_of_time_clips_everything() {
    let (e, _) = simple();
    let window = |from, to| {
        let filter = Filter { from, to, ..Filter::default() };
        look::report_with(&e, &Options { filter, ..options() })
    };
    let all = window(Some(1000), Some(90_000));
    assert_eq!((all.totals.waits, all.totals.drain_ns), (1, 12_000));
    let cut = window(None, Some(55_000));
    assert_sound(&cut);
    let gpu = &cut.profiles[0].gpus[0];
    assert_eq!((gpu.span_ns, gpu.idle_ns, gpu.drain_ns), (53_980, 5000, 5000));
    assert_eq!(cut.totals.drain_ns, 5000);
    let before = window(None, Some(50_009));
    assert_eq!((before.totals.waits, before.totals.drain_ns), (0, 0), "the wait ends after it");
    let after = window(Some(2001), None);
    assert_eq!(after.totals.waits, 0, "the wait begins before it");
    for empty in [window(Some(5_000_000), None), window(Some(50_000), Some(10)), window(None, Some(-5))] {
        assert_sound(&empty);
        assert_eq!((empty.totals.waits, empty.profiles[0].span_ns), (0, 0));
    }
}

/// The wait that owns a gap keeps it when a filter hides it: its neighbour does not inherit it.
#[test]
fn a_hidden_wait_keeps_its_gap() {
    let (mut e, _) = simple();
    let other = e.thread(100, 101);
    e.sync(other, "cudaStreamSynchronize", 2500..50_005, GPU0);
    let filter = Filter { thread: Some(other.tid.to_string()), ..Filter::default() };
    let report = look::report_with(&e, &Options { filter, ..options() });
    assert_eq!((report.totals.waits, report.totals.drain_ns), (1, 0));
}

#[test]
fn quantiles_and_histogram_are_of_the_waits() {
    let (mut e, t) = empty();
    e.launch(t, 10..20, GPU0, 30..40, "gemm");
    for (start, length) in [(1_000_000, 1_000), (2_000_000, 3_000), (3_000_000, 40_000)] {
        e.device_sync(t, start..start + length, 0);
    }
    let report = look::report(&e);
    assert_eq!(report.sites.len(), 2, "{:?}", look::sites(&report));
    assert_eq!(report.totals.blocked_ns, 44_000);
    let all: Vec<(i64, u64)> =
        report.sites.iter().flat_map(|s| s.histogram.iter().copied()).filter(|h| h.1 > 0).collect();
    let mut sorted = all.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [(1024, 1), (4096, 1), (1 << 16, 1)]);
    assert_sound(&report);
}

/// ```text
///  host       [launch a on 13][streamWaitEvent 7][streamSync 7=======]   blocks, though nothing ever ran on stream 7
///  stream 13     [a~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~]
/// ```
#[test]
fn a_wait_through_another_stream_is_no_idle_wait() {
    let (mut e, t) = empty();
    e.launch(t, 10..20, GPU0, 30..40, "warm");
    e.launch(t, 1000..1010, SIDE, 1020..900_000, "long");
    e.sync(t, "cudaStreamSynchronize", 2000..900_010, GPU0);
    let found = look::analysed(&e);
    assert_eq!(found.sites.raw[0].verdict.kind, sync_report::vocabulary::Kind::Explicit);
    // Nothing ended when it returned: the awaited work is not in the export.
    let (mut e, t) = empty();
    e.launch(t, 10..20, GPU0, 30..40, "warm");
    e.sync(t, "cudaStreamSynchronize", 2000..900_010, GPU0);
    let found = look::analysed(&e);
    assert_eq!(found.sites.raw[0].verdict.kind, sync_report::vocabulary::Kind::Unattributed);
    assert!(
        found.sites.raw[0].verdict.evidence[0].text.contains("898 µs"),
        "{:?}",
        found.sites.raw[0].verdict.evidence
    );
}
