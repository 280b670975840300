//! The target of each wait: stream, event, context, device.

use super::*;

/// ```text
///  host      [launch k1][launch k2] [sync 7==========]
///  stream 7     [k1~~~~~~~~~~~~~~~~~~~~~]
///  stream 13       [k2~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~]      runs on: not awaited
/// ```
#[test]
fn a_stream_synchronisation_awaits_the_last_op_of_its_stream() {
    let (mut e, t) = empty();
    e.launch(t, 100..110, GPU0, 120..500, "a");
    e.launch(t, 111..119, GPU0, 500..800, "b");
    e.launch(t, 121..129, SIDE, 130..2000, "c");
    e.sync(t, "cudaStreamSynchronize", 200..810, GPU0);
    e.device_sync(t, 820..2010, 0);
    assert_waits(
        &e,
        &[
            "cudaStreamSynchronize 200..810 blocked 610 pending awaits 500..800 gpu 0",
            "cudaDeviceSynchronize 820..2010 blocked 1190 pending awaits 130..2000 gpu 0",
        ],
    );
}

/// ```text
///  thread A  [launch a]  [sync==============]
///  thread B                 [launch b]               issued after the wait began: not awaited
///  stream 7     [a~~~~~~~~~~~~~~~~][b~~~~~~~~~~]
/// ```
#[test]
fn what_another_thread_submits_during_the_wait_is_not_awaited() {
    let (mut e, a) = empty();
    let b = e.thread(100, 101);
    e.launch(a, 100..110, GPU0, 120..800, "a");
    e.launch(b, 300..310, GPU0, 801..2000, "b");
    e.sync(a, "cudaStreamSynchronize", 200..810, GPU0);
    assert_waits(&e, &["cudaStreamSynchronize 200..810 blocked 610 pending awaits 120..800 gpu 0"]);
}

/// ```text
///  host      [launch]        [sync A==]   [sync B]  [launch] … [sync C]
///  stream 7     [gemm~~~~~~~~~~~~]                     [gemm]
///                                          redundant            idle: it ended by itself
/// ```
#[test]
fn a_wait_may_find_nothing_because_another_drained_or_because_all_had_ended() {
    let (mut e, t) = empty();
    e.launch(t, 100..110, GPU0, 120..900, "gemm");
    e.device_sync(t, 200..910, 0);
    e.device_sync(t, 920..930, 0);
    e.sync(t, "cudaStreamSynchronize", 932..935, GPU0);
    e.launch(t, 940..950, GPU0, 960..970, "gemm");
    e.device_sync(t, 5000..5010, 0);
    assert_waits(
        &e,
        &[
            "cudaDeviceSynchronize 200..910 blocked 710 pending awaits 120..900 gpu 0",
            "cudaDeviceSynchronize 920..930 blocked 10 drained gpu 0",
            "cudaStreamSynchronize 932..935 blocked 3 drained gpu 0",
            "cudaDeviceSynchronize 5000..5010 blocked 10 nothing gpu 0",
        ],
    );
}

/// ```text
///  thread A  [launch][sync=====]      [sync]        thread B's launch came between: not redundant, just late
///  thread B                   [launch]
///  stream 7     [a~~~~~]          [b]
/// ```
#[test]
fn work_of_another_thread_makes_the_second_wait_more_than_redundant() {
    let (mut e, a) = empty();
    let b = e.thread(100, 101);
    e.launch(a, 100..110, GPU0, 120..500, "a");
    e.device_sync(a, 200..510, 0);
    e.launch(b, 5000..5010, GPU0, 5020..5030, "b");
    e.device_sync(a, 9000..9010, 0);
    let waits = look::waits(&e);
    assert_eq!(waits[1], "cudaDeviceSynchronize 9000..9010 blocked 10 nothing gpu 0");
}

/// ```text
///  host      [launch 0][launch 1]  [A: deviceSync=====] [B: deviceSync]   [C: deviceSync]
///  GPU 0        [k~~~~~~~~~~~~~~~~~~~~~~~~~~~~]
///  GPU 1             [k~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~]
/// ```
/// CUDA 13 leaves out the rows of device synchronisations and cudaSetDevice is not traced: A cannot have waited for
/// GPU 1, which worked on; B returned while GPU 1 worked and GPU 0 did not; C found both idle.
#[test]
fn a_device_synchronisation_without_a_row_is_not_for_a_device_that_works_on() {
    let (mut e, t) = empty_of(Schema::V2025_3);
    e.launch(t, 1000..1010, GPU0, 1020..50_000, "k");
    e.launch(t, 1011..1019, GPU1, 1030..900_000, "k");
    e.device_sync(t, 2000..50_010, 0);
    e.device_sync(t, 60_000..60_010, 0);
    e.device_sync(t, 950_000..950_010, 0);
    assert_waits(
        &e,
        &[
            "cudaDeviceSynchronize 2000..50010 blocked 48010 pending awaits 1020..50000 not gpu 1",
            "cudaDeviceSynchronize 60000..60010 blocked 10 nothing not gpu 1",
            "cudaDeviceSynchronize 950000..950010 blocked 10 nothing",
        ],
    );
    let report = look::report(&e);
    let told: Vec<&str> =
        report.sites.iter().flat_map(|s| &s.evidence).map(|evidence| &*evidence.text).collect();
    assert!(
        told.iter().any(|t| t.starts_with("1 of 2 returned while a device still worked")),
        "the numbers are in the words: {told:?}"
    );
    assert!(report.warnings.iter().any(|w| w.code == "sync-device-unknown"));
}

/// As above, with the rows that other versions write.
#[test]
fn a_device_synchronisation_with_a_row_is_for_that_device() {
    let (mut e, t) = empty();
    e.launch(t, 1000..1010, GPU0, 1020..50_000, "k");
    e.launch(t, 1011..1019, GPU1, 1030..900_000, "k");
    e.device_sync(t, 2000..50_010, 0);
    e.device_sync(t, 60_000..900_010, 1);
    assert_waits(
        &e,
        &[
            "cudaDeviceSynchronize 2000..50010 blocked 48010 pending awaits 1020..50000 gpu 0",
            "cudaDeviceSynchronize 60000..900010 blocked 840010 pending awaits 1030..900000 gpu 1",
        ],
    );
}

/// ```text
///  host      [launch a][record][launch b]  [eventSync=====]
///  stream 7     [a~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~][b~~~~~~~~~~~~~]
/// ```
/// The wait is for what was launched before the record: `a`, although `b` was launched before the wait, too.
#[test]
fn an_event_synchronisation_awaits_what_came_before_the_record() {
    for schema in [Schema::V2024_6, Schema::V2025_3, Schema::V2026_2] {
        let (mut e, t) = empty_of(schema);
        e.launch(t, 100..110, GPU0, 120..5000, "a");
        e.event_record(t, 111..115, GPU0, 39);
        e.launch(t, 116..119, GPU0, 5000..90_000, "b");
        e.event_sync(t, 200..5010, 39);
        e.event_sync(t, 5020..5025, 39);
        assert_waits(
            &e,
            &[
                "cudaEventSynchronize 200..5010 blocked 4810 pending awaits 120..5000 gpu 0",
                "cudaEventSynchronize 5020..5025 blocked 5 nothing gpu 0",
            ],
        );
    }
}

/// ```text
///  host      [launch a][record 39][launch b on 13][record 39 on 13] [eventSync 39]
/// ```
/// The second record of event 39 counts: by `eventSyncId`, else as the last record before the wait. A third
/// record after the wait does not.
#[test]
fn a_reused_event_means_its_last_record() {
    for schema in [Schema::V2023_4, Schema::V2025_3, Schema::V2026_2] {
        let (mut e, t) = empty_of(schema);
        e.launch(t, 100..110, GPU0, 120..50_000, "a");
        e.event_record(t, 111..115, GPU0, 39);
        e.launch(t, 116..119, SIDE, 130..9000, "b");
        e.event_record(t, 120..125, SIDE, 39);
        e.event_sync(t, 200..9010, 39);
        e.event_record(t, 9020..9025, GPU0, 39);
        let waits = look::waits(&e);
        assert_eq!(
            waits,
            ["cudaEventSynchronize 200..9010 blocked 8810 pending awaits 130..9000 gpu 0"],
            "{schema:?}"
        );
    }
}

/// ```text
///  host      [copy D2H][record][eventSync]      recording lies between copy and wait; it is an event's wait
/// ```
/// And a record between the two calls of an `.item()` does not part them.
#[test]
fn a_record_between_copy_and_synchronisation_does_not_part_them() {
    let (mut e, t) = empty();
    e.memcpy(t, 200..220, Copy::d2h(4, Memory::Pinned), GPU0, 230..240);
    e.event_record(t, 221..223, GPU0, 39);
    e.sync(t, "cudaStreamSynchronize", 225..250, GPU0);
    let one =
        "cudaStreamSynchronize 200..250 blocked 25 device-to-host 4 pinned nothing awaits 230..240 gpu 0";
    assert_waits(&e, &[one]);
}

/// ```text
///  host      [launch a][launch b]  [eventSync===]     no record of the event in the export (the default)
///  stream 7     [a~~~~~~~~~~~~~~~~~~~~~~~~~~~]
///  stream 13       [b~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~]     ran on: the wait was not for it
/// ```
#[test]
fn an_event_synchronisation_without_a_record_does_not_await_what_ran_on() {
    let (mut e, t) = empty();
    e.launch(t, 100..110, GPU0, 120..5000, "a");
    e.launch(t, 111..119, SIDE, 130..90_000, "b");
    e.event_sync(t, 200..5010, 39);
    assert_waits(&e, &["cudaEventSynchronize 200..5010 blocked 4810 pending awaits 120..5000 gpu 0"]);
}

/// A synchronisation whose stream never ran anything found nothing; without its row it may be for any stream.
#[test]
fn a_stream_synchronisation_without_a_row_may_be_for_any_stream() {
    let (mut e, t) = empty();
    e.launch(t, 100..110, GPU0, 120..500, "a");
    e.launch(t, 111..119, SIDE, 130..900, "b");
    e.sync(t, "cudaStreamSynchronize", 200..910, Gpu { device: 0, stream: 99 });
    assert_waits(&e, &["cudaStreamSynchronize 200..910 blocked 710 nothing gpu 0"]);
    without_sync_rows(&mut e);
    assert_waits(&e, &["cudaStreamSynchronize 200..910 blocked 710 pending awaits 130..900 gpu 0"]);
}

/// One correlation id served two calls (seen in a real file): the row that lies inside the call is its own.
#[test]
fn a_correlation_id_used_twice_is_told_apart_by_time() {
    let (mut e, t) = empty();
    e.launch(t, 100..110, GPU0, 120..500, "a");
    e.launch(t, 111..119, SIDE, 130..900, "b");
    let first = e.sync(t, "cudaStreamSynchronize", 200..510, GPU0);
    let second = e.sync(t, "cudaStreamSynchronize", 600..910, SIDE);
    for table in ["RUNTIME", "SYNCHRONIZATION"] {
        let table = format!("CUPTI_ACTIVITY_KIND_{table}");
        let same = format!("correlationId = {}", second.correlation);
        e.set(&table, "correlationId", first.correlation, &same);
    }
    assert_waits(
        &e,
        &[
            "cudaStreamSynchronize 200..510 blocked 310 pending awaits 120..500 gpu 0",
            "cudaStreamSynchronize 600..910 blocked 310 pending awaits 130..900 gpu 0",
        ],
    );
}

/// ```text
///  rank 0    [item: copy and sync]       correlation ids 1, 2 on its stream 7
///  rank 1    [item: copy and sync]       the same ids, its own stream 7, on the same GPU
/// ```
#[test]
fn processes_share_correlation_ids_but_nothing_else() {
    let mut e = Export::new(Schema::V2026_2);
    let (a, b) = (e.thread(10, 10), e.thread(20, 20));
    e.item(a, 100..1000, GPU0, 500..510);
    e.item(b, 100..3000, GPU0, 2500..2510);
    let mut waits = look::waits(&e);
    waits.sort();
    assert_eq!(
        waits,
        [
            "cudaStreamSynchronize 100..1000 blocked 809 device-to-host 4 pinned nothing awaits 500..510 gpu 0",
            "cudaStreamSynchronize 100..3000 blocked 2609 device-to-host 4 pinned nothing awaits 2500..2510 gpu 0",
        ]
    );
    let report = look::report(&e);
    let pids: Vec<_> = report.profiles[0].processes.iter().map(|p| p.pid).collect();
    assert_eq!(pids, [10, 20]);
    assert_eq!(report.sites.len(), 2, "one site a process");
}
