//! Threads, and rows with holes in them.

use super::*;
use sync_report::model::Site;
use sync_report::vocabulary::ThreadRole;

/// NCCL's watchdog and autograd's thread wait for reasons of their own: both are reported, and labelled.
#[test]
fn waits_of_other_threads_carry_their_role() {
    for (name, role) in [
        ("pt_nccl_watchdg", ThreadRole::Library),
        ("pt_data_pin", ThreadRole::Library),
        ("pt_autograd_0", ThreadRole::Autograd),
        ("python3", ThreadRole::Unknown),
    ] {
        let (mut e, main) = empty();
        let other = e.thread(100, 107);
        e.name_thread(other, name).name_thread(main, "python3");
        e.launch(main, 100..110, GPU0, 120..900, "gemm");
        e.item(other, 200..1000, GPU0, 901..905);
        e.item(main, 1200..2000, GPU0, 1901..1905);
        let report = look::report(&e);
        let site = |tid| report.sites.iter().find(|s| s.thread.tid == tid).expect("a site of the thread");
        assert_eq!((site(107).thread.role, site(107).thread.main), (role, false), "{name}");
        assert_eq!((site(100).thread.role, site(100).thread.main), (ThreadRole::Python, true));
        assert_eq!(site(107).thread.name.as_deref(), Some(name));
        assert_eq!(site(107).blocks_capture, role != ThreadRole::Library);
    }
}

/// The drawing of all tests below:
///
/// ```text
///  host      [launch]  [copy][sync============]  [sync]
///            100 110   200 280 281         1000  1100 1105
///  stream 7     [gemm~~~~~~~~~~~~~~~~][copy]
///              120                 900 901 905
/// ```
fn plain() -> Export {
    let (mut e, t) = empty();
    e.launch(t, 100..110, GPU0, 120..900, "gemm");
    e.item(t, 200..1000, GPU0, 901..905);
    e.sync(t, "cudaStreamSynchronize", 1100..1105, GPU0);
    e
}

const ITEM: &str =
    "cudaStreamSynchronize 200..1000 blocked 719 device-to-host 4 pinned pending awaits 901..905 gpu 0";
const AFTER: &str = "cudaStreamSynchronize 1100..1105 blocked 5 drained gpu 0";

#[test]
fn rows_in_any_order_are_the_same_program() {
    for table in ["RUNTIME", "KERNEL", "MEMCPY", "SYNCHRONIZATION"] {
        let mut e = plain();
        shuffle(&mut e, &format!("CUPTI_ACTIVITY_KIND_{table}"));
        assert_waits(&e, &[ITEM, AFTER]);
    }
}

fn shuffle(e: &mut Export, table: &str) {
    e.sql(format!(
        "CREATE TEMP TABLE aside AS SELECT * FROM {table} ORDER BY rowid DESC;
         DELETE FROM {table}; INSERT INTO {table} SELECT * FROM aside; DROP TABLE aside;"
    ));
}

#[test]
fn rows_without_a_process_belong_to_the_only_one() {
    let all = ["KERNEL", "MEMCPY", "SYNCHRONIZATION"];
    for tables in [&all[..], &all[..1], &all[1..2], &all[2..]] {
        let mut e = plain();
        for table in tables {
            e.null(&format!("CUPTI_ACTIVITY_KIND_{table}"), "globalPid", "1");
        }
        assert_eq!(look::waits(&e), [ITEM, AFTER], "{tables:?}");
    }
}

/// Rows that name no process are given to neither of two: nothing is guessed.
#[test]
fn rows_without_a_process_are_nobodys_among_several() {
    let mut e = plain();
    let other = e.thread(200, 200);
    e.free(other, 5000..5001);
    for table in ["KERNEL", "MEMCPY", "SYNCHRONIZATION"] {
        e.null(&format!("CUPTI_ACTIVITY_KIND_{table}"), "globalPid", "1");
    }
    let waits = look::waits(&e);
    assert_eq!(waits.len(), 3, "{waits:?}");
    assert!(waits.iter().all(|w| !w.contains("awaits")), "{waits:?}");
    let report = look::report(&e);
    assert!(report.sites.iter().all(|s| s.kind.as_str() != "idle"), "{:?}", look::sites(&report));
}

/// A correlation id that is missing on both sides joins nothing: rows without an id are not all one call.
#[test]
fn rows_without_a_correlation_id_are_not_joined() {
    let (mut e, t) = empty();
    e.memcpy_blocking(t, 100..200, Copy::d2h(64, Memory::Pageable), GPU0, 120..190);
    e.memcpy_blocking(t, 300..400, Copy::h2d(8, Memory::Pinned), GPU0, 320..390);
    for table in ["RUNTIME", "MEMCPY"] {
        e.null(&format!("CUPTI_ACTIVITY_KIND_{table}"), "correlationId", "1");
    }
    let waits = look::waits(&e);
    assert_eq!(waits.len(), 2);
    assert!(waits.iter().all(|w| !w.contains(" 64 ") && !w.contains(" 8 ")), "{waits:?}");
}

/// A call that the capture's end cut is a wait of no known length; a copy without end did not happen in the capture.
#[test]
fn missing_ends_are_cut_and_counted() {
    let mut e = plain();
    e.null("CUPTI_ACTIVITY_KIND_RUNTIME", "end", "start = 1100");
    let found = look::analysed(&e);
    assert_eq!(found.profile.calls.open, 1);
    assert_eq!(look::waits(&e), [ITEM, "cudaStreamSynchronize 1100..1100 blocked 0 drained gpu 0"]);
    let mut e = plain();
    e.null("CUPTI_ACTIVITY_KIND_MEMCPY", "end", "1");
    let found = look::analysed(&e);
    assert_eq!((found.profile.ops.open, look::ops(&found)), (1, vec!["kernel 120..900".to_owned()]));
    assert_eq!(found.waits.len(), 2);
    let report = look::report(&e);
    assert!(report.warnings.iter().any(|w| w.code == "open-events"));
}

/// ```text
/// host      [item===] [synchronize, error 700]      [synchronize, error 709: the context is gone]
/// ```
#[test]
fn calls_that_fail_are_told_but_those_after_the_context() {
    let mut e = plain();
    let failing = |e: &mut Export, error: i64| {
        e.sql(format!("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET returnValue = {error} WHERE start = 1100"));
        let warnings = look::report(e).warnings;
        warnings.into_iter().filter(|w| w.code == "calls-failed").map(|w| w.message).collect::<Vec<_>>()
    };
    assert!(failing(&mut e, 709).is_empty());
    assert_eq!(
        failing(&mut e, 700),
        [
            "1 call that may wait returned an error, the first of them cudaStreamSynchronize at 0.000001100 s: error 700 of CUDA; what follows is no run in which all goes well"
        ]
    );
}

/// Times before the capture's start are negative, and nothing else.
#[test]
fn negative_times_shift_everything() {
    let mut e = plain();
    for table in ["RUNTIME", "KERNEL", "MEMCPY", "SYNCHRONIZATION"] {
        e.sql(format!("UPDATE CUPTI_ACTIVITY_KIND_{table} SET start = start - 20000, end = end - 20000"));
    }
    assert_waits(
        &e,
        &[
            "cudaStreamSynchronize -19800..-19000 blocked 719 device-to-host 4 pinned pending awaits -19099..-19095 gpu 0",
            "cudaStreamSynchronize -18900..-18895 blocked 5 drained gpu 0",
        ],
    );
}

/// 0xFFFFFFFF means "not applicable": the stream is then that of the copy, or any.
#[test]
fn sentinel_ids_say_nothing() {
    let mut e = plain();
    for column in ["deviceId", "contextId", "streamId"] {
        e.set("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", column, 0xFFFF_FFFF, "1");
    }
    let waits = look::waits(&e);
    assert_eq!(waits[0], ITEM);
    assert!(waits[1].starts_with("cudaStreamSynchronize 1100..1105 blocked 5"), "{waits:?}");
    // One of the three unknown is enough for doubt, not for another answer.
    for column in ["deviceId", "contextId"] {
        let mut e = plain();
        e.set("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", column, 0xFFFF_FFFF, "1");
        assert_eq!(look::waits(&e), [ITEM, AFTER], "{column}");
    }
}

/// Copies that the export does not hold: the wait may read a value or not, and nothing is claimed.
///
/// ```text
///  host      [launch] [cudaMemcpyAsync][cudaStreamSynchronize]
///  stream 7     [gemm~~~~~~~~]                                  no MEMCPY table
/// ```
#[test]
fn a_copy_that_is_not_recorded_is_no_proof_of_a_bare_synchronisation() {
    let mut e = plain();
    for lost in ["CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_KERNEL"] {
        e.drop_table(lost);
        let report = look::report(&e);
        let ends = |s: &&Site| s.examples.iter().any(|x| x.end_ns == 1000);
        let item = report.sites.iter().find(ends).expect("the item");
        assert_eq!(item.class.as_str(), "unknown", "{lost}: {:?}", item.evidence);
    }
}

/// A call whose name the export lost may have been a wait; the report says so instead of dropping it silently.
#[test]
fn calls_without_a_name_are_counted() {
    let mut e = plain();
    e.set("CUPTI_ACTIVITY_KIND_RUNTIME", "nameId", 999_999, "start = 1100");
    let report = look::report(&e);
    assert_eq!(report.totals.waits, 1);
    assert!(report.warnings.iter().any(|w| w.code == "damaged-names" && w.message.contains("1 calls")));
}

/// Synchronisation rows that no call explains (trimmed exports) are no waits: no thread is known to have waited.
#[test]
fn synchronisation_rows_without_a_call_are_ignored() {
    let mut e = plain();
    let t = Thread { pid: 100, tid: 100 };
    let call = e.call(t, "cudaEventQuery", 2000..2001);
    e.sync_row(call, SyncKind::Stream, GPU0, None);
    e.sql("DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE start = 2000");
    assert_waits(&e, &[ITEM, AFTER]);
}
