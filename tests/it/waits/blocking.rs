//! Which calls block, for how long, and with which copy.

use super::*;

/// ```text
///  host      [launch]  [memcpyAsync][sync===========]      one wait from 200 to 1000; only the sync blocked
///            100 110   200       280 281         1000
///  stream 7     [gemm~~~~~~~~~~~~~~~~~~~~~~][copy]
///              120                       900 901 905
/// ```
#[test]
fn an_item_is_one_wait_with_its_copy() {
    let (mut e, t) = empty();
    e.launch(t, 100..110, GPU0, 120..900, "gemm");
    e.item(t, 200..1000, GPU0, 901..905);
    let one =
        "cudaStreamSynchronize 200..1000 blocked 719 device-to-host 4 pinned pending awaits 901..905 gpu 0";
    assert_waits(&e, &[one]);
}

/// ```text
///  host      [memcpyAsync====][sync=====]
///            200           600 601   1000
///  stream 7                      [copy]
/// ```
/// From pageable memory the copy call blocks too; from pinned memory it only enqueues.
#[test]
fn the_copy_call_of_a_pageable_upload_counts_as_blocked() {
    for (memory, blocked) in [(Memory::Pageable, 400 + 399), (Memory::Pinned, 399)] {
        let (mut e, t) = empty();
        e.memcpy(t, 200..600, Copy::h2d(4096, memory), GPU0, 700..900);
        e.sync(t, "cudaStreamSynchronize", 601..1000, GPU0);
        let kind = if memory == Memory::Pageable { "pageable" } else { "pinned" };
        let wait = format!(
            "cudaStreamSynchronize 200..1000 blocked {blocked} host-to-device 4096 {kind} nothing awaits 700..900 gpu 0"
        );
        assert_waits(&e, &[&wait]);
    }
}

/// ```text
///  host      [memcpyAsync][sync on stream 13]        another stream: not the copy's wait
///  stream 7      [copy]
///  stream 13  [kernel~~~~~~~]
/// ```
#[test]
fn a_copy_belongs_only_to_a_wait_for_its_own_stream() {
    let (mut e, t) = empty();
    e.launch(t, 100..110, SIDE, 120..900, "gemm");
    e.memcpy(t, 200..220, Copy::d2h(4, Memory::Pinned), GPU0, 230..240);
    e.sync(t, "cudaStreamSynchronize", 221..1000, SIDE);
    assert_waits(&e, &["cudaStreamSynchronize 221..1000 blocked 779 pending awaits 120..900 gpu 0"]);
}

/// ```text
///  host      [memcpyAsync] … 30 µs of Python … [sync]     without backtraces a pair stands closer
/// ```
/// The wait completes the copy: data may be read, so it is no bare synchronisation.
#[test]
fn a_copy_far_before_the_wait_is_completed_by_it() {
    let (mut e, t) = empty();
    e.launch(t, 100..110, GPU0, 120..60_000, "gemm");
    e.memcpy(t, 200..220, Copy::d2h(4, Memory::Pinned), GPU0, 60_001..60_010);
    e.sync(t, "cudaStreamSynchronize", 30_000..61_000, GPU0);
    let wait = "cudaStreamSynchronize 30000..61000 blocked 31000 pending awaits 60001..60010 completes 60001..60010 gpu 0";
    assert_waits(&e, &[wait]);
}

/// ```text
///  host      [cudaMemcpy=======]        blocks by itself, for the whole call
///  stream 7        [copy~~~~]
/// ```
#[test]
fn a_synchronous_copy_is_a_wait_unless_both_sides_are_on_the_device() {
    let cases = [
        (Copy::d2h(64, Memory::Pageable), "device-to-host 64 pageable"),
        (Copy::h2d(64, Memory::Pageable), "host-to-device 64 pageable"),
        (Copy::h2d(64, Memory::Pinned), "host-to-device 64 pinned"),
    ];
    for (copy, words) in cases {
        let (mut e, t) = empty();
        e.memcpy_blocking(t, 100..500, copy, GPU0, 200..490);
        let wait = format!("cudaMemcpy 100..500 blocked 400 {words} nothing awaits 200..490 gpu 0");
        assert_waits(&e, &[&wait]);
    }
    let (mut e, t) = empty();
    e.memcpy_blocking(t, 100..110, Copy::d2d(64), GPU0, 200..490);
    assert_waits(&e, &[]);
}

/// ```text
///  host      [cudaMemcpy, cudaMemset]           some microseconds, in which a short operation is done by chance
///  stream 7        [copy]
///
///  host      [cudaMemcpy===================]    the GPU kept it: with earlier work, or with the operation itself
///  stream 7  …gemm~~~~~~~~~~~~~~~~~~~][copy]
/// ```
#[test]
fn a_call_that_outlasts_its_operation_by_chance_is_no_wait() {
    let memset = |e: &mut Export, t, call, op| {
        let call = e.memset(t, call, 64, GPU0, op);
        let name = e.string("cudaMemset_v3020");
        e.set(
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            "nameId",
            name,
            &format!("correlationId = {}", call.correlation),
        );
    };
    let copy = |e: &mut Export, t, call, op| {
        e.memcpy_blocking(t, call, Copy::d2d(64), GPU0, op);
    };
    type Draw = fn(&mut Export, Thread, std::ops::Range<i64>, std::ops::Range<i64>);
    for draw in [memset as Draw, copy as Draw] {
        let waits = |queued: bool, call, op| {
            let (mut e, t) = empty();
            if queued {
                e.launch(t, 100..110, GPU0, 120..500_000, "gemm");
            }
            draw(&mut e, t, call, op);
            look::waits(&e).len()
        };
        assert_eq!(waits(false, 1_000..21_000, 3_000..5_000), 0, "short");
        assert_eq!(waits(false, 1_000..300_000, 290_000..292_000), 0, "the host took its time first");
        assert_eq!(waits(false, 1_000..300_000, 3_000..5_000), 0, "and afterwards");
        assert_eq!(waits(false, 1_000..201_000, 3_000..200_000), 1, "kept by the operation");
        assert_eq!(waits(true, 1_000..503_000, 500_100..502_000), 1, "kept by the queue");
        assert_eq!(waits(true, 1_000..21_000, 500_100..502_000), 0, "returned before");
    }
}

/// ```text
///  host      [memcpyAsync=====]  [launch]     returned after the copy ended: it waited
///  stream 7       [copy~~~~]
///
///  host      [memcpyAsync]  [launch]          returned before: it only queued
///  stream 7                     [copy]
/// ```
#[test]
fn an_asynchronous_copy_is_a_wait_where_pageable_memory_made_it_block() {
    let big = 8 << 20;
    let blocking = [
        (Copy::d2h(4, Memory::Pageable), 200..490, "device-to-host 4 pageable"),
        (Copy::d2h(big, Memory::Pageable), 200..490, "device-to-host 8388608 pageable"),
        // Staged in pieces: the call may return before the last piece has arrived.
        (Copy::h2d(big, Memory::Pageable), 200..600, "host-to-device 8388608 pageable"),
    ];
    for (copy, op, words) in blocking {
        let (mut e, t) = empty();
        let end = op.end;
        e.memcpy(t, 100..500, copy, GPU0, op);
        let wait = format!("cudaMemcpyAsync 100..500 blocked 400 {words} nothing awaits 200..{end} gpu 0");
        assert_waits(&e, &[&wait]);
    }
    let queued = [
        (Copy::h2d(4096, Memory::Pageable), 200..490),
        (Copy::h2d(big, Memory::Pinned), 200..490),
        (Copy::d2h(big, Memory::Pinned), 200..490),
        (Copy::d2h(big, Memory::Pageable), 600..900),
        (Copy::h2d(big, Memory::Pageable), 600..900),
        (Copy::d2d(big), 200..490),
    ];
    for (copy, op) in queued {
        let (mut e, t) = empty();
        e.memcpy(t, 100..500, copy, GPU0, op);
        assert_waits(&e, &[]);
    }
}

/// ```text
///  host      [memcpyAsync=====][sync]         a blocking pageable copy and the sync after it: one wait
/// ```
#[test]
fn a_blocking_copy_joins_the_synchronisation_after_it() {
    let (mut e, t) = empty();
    e.memcpy(t, 100..500, Copy::d2h(1 << 20, Memory::Pageable), GPU0, 200..490);
    e.sync(t, "cudaStreamSynchronize", 501..505, GPU0);
    let one = "cudaStreamSynchronize 100..505 blocked 404 device-to-host 1048576 pageable nothing awaits 200..490 gpu 0";
    assert_waits(&e, &[one]);
}

/// ```text
///  host      [launch=================]  [eventQuery] [streamWaitEvent] [eventRecord] [streamQuery] [malloc]
/// ```
/// A launch that takes long only found its queue full.
#[test]
fn queries_and_full_queues_are_no_waits() {
    let (mut e, t) = empty();
    e.launch(t, 100..900_000, GPU0, 1000..800_000, "gemm");
    e.event_record(t, 900_010..900_020, GPU0, 39);
    e.event_query(t, 900_030..900_040, 39);
    e.stream_wait(t, 900_050..900_060, SIDE, 39);
    for (i, api) in [
        "cudaStreamQuery",
        "cudaMalloc",
        "cudaMemsetAsync",
        "cudaFreeAsync",
        "cudaGetDevice",
        "cuEventQuery",
        "cudaEventDestroy",
    ]
    .into_iter()
    .enumerate()
    {
        e.call(t, api, 900_100 + i as i64 * 10..900_105 + i as i64 * 10);
    }
    assert_waits(&e, &[]);
}

/// All spellings of the three synchronisations, with the suffixes that versions and linkage add.
#[test]
fn the_name_decides_whatever_its_suffix() {
    for api in [
        "cudaStreamSynchronize",
        "cudaStreamSynchronize_ptsz_v7000",
        "cudaDeviceSynchronize",
        "cudaThreadSynchronize",
        "cudaEventSynchronize",
        "cuStreamSynchronize",
        "cuStreamSynchronize_ptsz",
        "cuCtxSynchronize",
        "cuEventSynchronize",
    ] {
        let (mut e, t) = empty();
        e.launch(t, 100..110, GPU0, 120..900, "gemm");
        e.call(t, api, 200..910);
        let waits = look::waits(&e);
        assert_eq!(waits.len(), 1, "{api}");
        assert!(waits[0].contains("200..910 blocked 710 pending awaits 120..900"), "{}", waits[0]);
    }
}

/// ```text
///  twin      [------------------]        eventClass 67: the same call
///  host       [cudaStreamSync==]
///  driver       [cuStreamSync]           a row of its own inside
/// ```
#[test]
fn twins_and_nested_driver_rows_are_the_same_wait() {
    let (mut e, t) = empty();
    e.launch(t, 100..110, GPU0, 120..900, "gemm");
    let call = e.sync(t, "cudaStreamSynchronize", 200..910, GPU0);
    e.python(call, &[("step", "/w/train.py", 3)]);
    e.call(t, "cuStreamSynchronize", 210..905);
    e.call(t, "cuStreamSynchronize", 920..930);
    assert_waits(
        &e,
        &[
            "cudaStreamSynchronize 200..910 blocked 710 pending awaits 120..900 gpu 0",
            "cuStreamSynchronize 920..930 blocked 10 drained gpu 0",
        ],
    );
}

/// A driver row with the same times as its runtime row, written before it, is nested too.
#[test]
fn a_nested_row_of_equal_extent_is_the_same_wait() {
    let (mut e, t) = empty();
    e.launch(t, 100..110, GPU0, 120..900, "gemm");
    e.call(t, "cuCtxSynchronize", 200..910);
    e.call(t, "cudaDeviceSynchronize", 200..910);
    let waits = look::waits(&e);
    assert_eq!(waits.len(), 1, "{waits:?}");
}

/// Rows of one thread that overlap without nesting are damage: no nanosecond is counted twice.
///
/// ```text
///  host      [sync 200……600]
///                 [sync 400……900]
/// ```
#[test]
fn overlapping_rows_share_their_time() {
    let (mut e, t) = empty();
    e.launch(t, 100..110, GPU0, 120..850, "gemm");
    e.call(t, "cudaDeviceSynchronize", 200..600);
    e.call(t, "cudaDeviceSynchronize", 400..900);
    let found = look::analysed(&e);
    assert_eq!(found.waits.iter().map(|w| w.blocked).collect::<Vec<_>>(), [400, 300]);
}

/// ```text
///  host      [cudaFree========]  [cudaFreeHost]
///  stream 7   [gemm~~~~~~~~~]
/// ```
#[test]
fn freeing_is_a_wait() {
    let (mut e, t) = empty();
    e.launch(t, 100..110, GPU0, 120..900, "gemm");
    e.free(t, 200..910);
    e.call(t, "cudaFreeHost", 920..930);
    assert_waits(
        &e,
        &[
            "cudaFree 200..910 blocked 710 pending awaits 120..900 gpu 0",
            "cudaFreeHost 920..930 blocked 10 drained gpu 0",
        ],
    );
}

/// ```text
///  host      [cudaHostAlloc===]         returned 10 ns after the gemm: it drained
///  stream 7   [gemm~~~~~~~~~]
///
///  host      [cudaHostAlloc======…==]   returned 50 µs after it: slow for reasons of its own
///  stream 7   [gemm~~~~~~~~~]
///
///  host      [cudaHostAlloc===]         returned while the gemm ran
///  stream 7   [gemm~~~~~~~~~~~~~~~~~]
/// ```
#[test]
fn allocating_host_memory_is_a_wait_only_where_it_drained() {
    for (end, waits) in [(910, 1), (50_900, 0), (500, 0)] {
        let (mut e, t) = empty();
        e.launch(t, 100..110, GPU0, 120..900, "gemm");
        e.call(t, "cudaHostAlloc", 200..end);
        assert_eq!(look::waits(&e).len(), waits, "{end}");
    }
}

/// ```text
///  host      [memcpyAsync to pinned] [launch] [sync]       `to("cpu", non_blocking=True)`, then synchronize()
///  stream 7     [copy]               [gemm~~~~~]
/// ```
#[test]
fn a_copy_to_the_host_that_nothing_awaited_is_completed_by_the_next_wait_of_its_stream() {
    let (mut e, t) = empty();
    e.memcpy(t, 100..110, Copy::d2h(4096, Memory::Pinned), GPU0, 120..200);
    e.launch(t, 120..130, GPU0, 210..900, "gemm");
    e.sync(t, "cudaStreamSynchronize", 140..150, SIDE);
    e.device_sync(t, 160..910, 0);
    e.device_sync(t, 920..930, 0);
    assert_waits(
        &e,
        &[
            "cudaStreamSynchronize 140..150 blocked 10 nothing gpu 0",
            "cudaDeviceSynchronize 160..910 blocked 750 pending awaits 210..900 completes 120..200 gpu 0",
            "cudaDeviceSynchronize 920..930 blocked 10 drained gpu 0",
        ],
    );
    let report = look::report(&e);
    let kinds: Vec<_> = report.sites.iter().map(|s| s.kind.as_str()).collect();
    assert!(kinds.contains(&"value-read"), "what reads the buffer is not in the trace: {kinds:?}");
    assert!(!kinds.contains(&"explicit"), "{kinds:?}");
}
