//! Very many of one thing: ranges that are never popped, streams, devices, threads. The same program with few of them
//! says what the result must be.

use crate::export::{Export, GPU0, Gpu, Schema, Thread, empty_of};
use crate::look;
use sync_report::model::Report;

const TURNS: i64 = 200;

/// `TURNS` launches and waits, with `before` ahead of each.
fn turns(mut before: impl FnMut(&mut Export, Thread, i64, i64)) -> Export {
    let (mut e, t) = empty_of(Schema::V2025_3);
    for i in 0..TURNS {
        let at = 100_000 * (i + 1);
        before(&mut e, t, i, at - 1_000);
        e.launch(t, at..at + 5_000, GPU0, at + 7_000..at + 60_000, "gemm");
        e.sync(t, "cudaStreamSynchronize", at + 10_000..at + 62_000, GPU0);
    }
    e
}

fn warning<'a>(report: &'a Report, code: &str) -> Option<&'a str> {
    report.warnings.iter().find(|w| w.code == code).map(|w| &*w.message)
}

/// ```text
///  NVTX   step 0 [----------------…       pushed and never popped
///  NVTX      step 1  [------------…
/// ```
#[test]
fn ranges_never_popped_end_where_the_next_of_their_name_begins() {
    let report = look::report(&turns(|e, t, i, at| {
        e.nvtx_open(t, at, &format!("step {i}"));
    }));
    assert_eq!(look::sites(&report), ["200 x cudaStreamSynchronize false timing F02 by nvtx"]);
    assert_eq!(report.sites[0].nvtx.len(), 1, "{:?}", report.sites[0].nvtx);
    // The last one is open, as in a capture that stops within an iteration.
    assert_eq!(report.iterations.as_ref().map(|i| i.count), Some(199));
    let said = warning(&report, "ranges-never-popped").expect("a warning");
    assert!(said.starts_with("never popped: 199 NVTX ranges, most of them `step #`;"), "{said}");
    assert_eq!(warning(&report, "ranges-left-out"), None);
}

/// A range inside an iteration is popped, and takes the iteration's pop: the iteration stays open.
#[test]
fn what_is_popped_stands_inside_what_is_not() {
    let report = look::report(&turns(|e, t, i, at| {
        e.nvtx_open(t, at, &format!("step {i}")).nvtx(t, at + 500..at + 90_000, "forward");
    }));
    assert_eq!(report.sites.len(), 1, "{:?}", look::sites(&report));
    let names: Vec<&str> = report.sites[0].nvtx.iter().map(|n| &**n).collect();
    assert!(matches!(names[..], [step, "forward"] if step.starts_with("step ")), "{names:?}");
}

#[test]
fn ranges_of_ever_new_names_tell_no_waits_apart() {
    let letters =
        |i: i64| ["q", "w", "e", "r", "t", "z", "u", "o"][i as usize % 8].repeat(i as usize / 8 + 1);
    let report = look::report(&turns(|e, t, i, at| {
        e.nvtx_open(t, at, &letters(i));
    }));
    assert_eq!(look::sites(&report), ["200 x cudaStreamSynchronize false explicit F02 by none"]);
    let said = warning(&report, "ranges-left-out").expect("a warning");
    assert!(said.starts_with("left out: 200 NVTX ranges,"), "{said}");
}

#[test]
fn ranges_nest_only_so_deep() {
    let report = look::report(&turns(|e, t, i, at| {
        e.nvtx(t, at..100_000 * (TURNS + 1) + TURNS - i, "visit");
    }));
    let most = report.sites.iter().map(|s| s.nvtx.len()).max();
    assert_eq!((report.sites.len(), most), (64, Some(64)));
    assert_eq!(report.totals.waits, 200);
    assert!(
        warning(&report, "ranges-left-out")
            .is_some_and(|said| said.starts_with("left out: 136 NVTX ranges,"))
    );
}

/// A capture that stops inside two ranges: both place waits, without a warning.
#[test]
fn ranges_open_at_the_end_of_the_capture_count() {
    let report = look::report(&turns(|e, t, i, at| {
        if i == 0 {
            e.nvtx_open(t, at, "run").nvtx_open(t, at + 1, "train");
        }
    }));
    assert_eq!(report.sites[0].nvtx.join(" "), "run train");
    assert_eq!((warning(&report, "ranges-never-popped"), warning(&report, "ranges-left-out")), (None, None));
}

/// ```text
///  host       [launch] [device sync]  [device sync]  [launch] [stream sync]  [device sync]  [free]
///  stream i       [gemm~~~~~~~~]          drained         [gemm~~~~]             drained
/// ```
/// Each iteration uses the next of `streams` streams; the findings do not depend on their number.
#[test]
fn waits_find_the_same_on_any_number_of_streams() {
    let found = |streams: i64, devices: i64, schema: Schema| {
        let (mut e, t) = empty_of(schema);
        for i in 0..60 {
            let gpu = Gpu { device: i % devices, stream: 7 + (i * 7) % streams };
            let side = Gpu { stream: 7 + (i * 11 + 1) % streams, ..gpu };
            let at = 1_000_000 * (i + 1);
            e.launch(t, at..at + 5_000, gpu, at + 7_000..at + 90_000, "gemm");
            e.launch(t, at + 6_000..at + 9_000, side, at + 10_000..at + 40_000, "copy");
            e.device_sync(t, at + 10_000..at + 92_000, gpu.device);
            e.device_sync(t, at + 93_000..at + 95_000, gpu.device);
            e.launch(t, at + 100_000..at + 105_000, side, at + 107_000..at + 190_000, "gemm");
            e.sync(t, "cudaStreamSynchronize", at + 110_000..at + 192_000, side);
            e.device_sync(t, at + 200_000..at + 203_000, gpu.device);
            e.launch(t, at + 300_000..at + 305_000, gpu, at + 307_000..at + 309_000, "tiny");
            e.device_sync(t, at + 400_000..at + 402_000, gpu.device);
            e.free(t, at + 500_000..at + 502_000);
            e.launch(t, at + 600_000..at + 605_000, side, at + 607_000..at + 800_000, "late");
            e.free(t, at + 610_000..at + 650_000);
            e.sync(t, "cudaStreamSynchronize", at + 700_000..at + 801_000, side);
        }
        look::waits(&e)
    };
    for schema in [Schema::V2025_3, Schema::V2026_2] {
        for devices in [1, 3] {
            let few = found(12, devices, schema);
            assert_eq!(few.len(), 480);
            // Only the newest schema records which of several devices was awaited.
            let drained = few.iter().filter(|w| w.contains(" drained")).count();
            assert_eq!(drained > 0, devices == 1 || schema == Schema::V2026_2, "{few:?}");
            assert_eq!(found(120, devices, schema), few, "{schema:?}, {devices} devices");
        }
    }
}

/// One event recorded again and again, as a loop does: the last record before each wait counts.
#[test]
fn an_event_recorded_often_stands_for_its_last_record() {
    for schema in [Schema::V2023_4, Schema::V2026_2] {
        let (mut e, t) = empty_of(schema);
        for i in 0..50 {
            let at = 100_000 * (i + 1);
            e.launch(t, at..at + 5_000, GPU0, at + 7_000..at + 60_000, "gemm");
            e.event_record(t, at + 6_000..at + 6_500, GPU0, 39);
            e.event_sync(t, at + 10_000..at + 62_000, 39);
        }
        let waits = look::waits(&e);
        for (i, wait) in waits.iter().enumerate() {
            let at = 100_000 * (i as i64 + 1);
            let awaits = format!("awaits {}..{}", at + 7_000, at + 60_000);
            assert!(wait.contains(&awaits), "{schema:?}: {wait}");
        }
    }
}
