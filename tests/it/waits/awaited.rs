//! The awaited streams, operations and collectives of a site; and narrower waits that would do.

use super::*;
use sync_report::model::{Awaited, Report, Site};
use sync_report::vocabulary::Change;

fn at(report: &Report, line: u32) -> &Site {
    let here = |site: &&Site| site.user_frame.as_ref().is_some_and(|frame| frame.line == line);
    report.sites.iter().find(here).expect("a site of the line")
}

/// `7: 2 waits 3000 only 0 read 2` for each stream.
fn streams(awaited: &Awaited) -> Vec<String> {
    let words = awaited.streams.iter().map(|s| {
        format!("{}: {} waits {} only {} read {}", s.stream, s.waits, s.pending_ns, s.only_ns, s.read)
    });
    words.collect()
}

/// `gemm on 7: 1 x 300` for each operation.
fn operations(awaited: &Awaited) -> Vec<String> {
    let words = awaited.operations.iter();
    words.map(|o| format!("{} on {}: {} x {}", o.name, o.stream, o.count, o.blocked_ns)).collect()
}

fn told(site: &Site) -> String {
    site.evidence.iter().map(|e| e.text.as_str()).collect::<Vec<_>>().join("\n")
}

const STEP: i64 = 2_000_000;
const STEPS: i64 = 6;

/// ```text
///  host      [launch k][launch m][copy c, non_blocking] [device sync================================]··
///  stream 7    [k~~~~~~~~~~~~~~~~~~~~~~~~~~~~~][c~~]    ¦            ¦                               ¦
///             10                             300 320   100          320                             1210
///  stream 13              [m~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~]
///                        20                                                                     1200 µs
/// ```
fn two_streams() -> Export {
    let (mut e, t) = empty();
    for at in (0..STEPS).map(|i| i * STEP) {
        e.launch(t, at..at + 5_000, GPU0, at + 10_000..at + 300_000, "k");
        e.launch(t, at + 6_000..at + 11_000, SIDE, at + 20_000..at + 1_200_000, "m");
        let copy = Copy::d2h(4096, Memory::Pinned);
        e.memcpy(t, at + 12_000..at + 17_000, copy, GPU0, at + 300_000..at + 320_000);
        let sync = e.device_sync(t, at + 100_000..at + 1_210_000, 0);
        e.python(sync, &[("step", "/w/train.py", 24)]);
        e.launch(t, at + 1_250_000..at + 1_255_000, GPU0, at + 1_260_000..at + 1_300_000, "next");
    }
    e
}

#[test]
fn a_device_synchronisation_says_how_long_each_stream_held_it() {
    let report = look::report(&two_streams());
    let site = at(&report, 24);
    let awaited = site.awaited.as_ref().expect("asked for");
    assert_eq!(
        streams(awaited),
        ["13: 6 waits 6600000 only 5280000 read 0", "7: 6 waits 1320000 only 0 read 6"]
    );
    assert_eq!(operations(awaited), ["m on 13: 6 x 6600000"]);
    assert_eq!(awaited.idle_ns, 6 * 10_000);
    let narrow = awaited.narrow.as_ref().expect("the copy would do");
    assert_eq!(
        (narrow.waits, narrow.copies, &narrow.streams[..], narrow.shorter_ns),
        (6, 6, &[7][..], 5_280_000)
    );
    let json = serde_json::to_value(awaited).expect("JSON");
    let read: Awaited = serde_json::from_value(json.clone()).expect("what was written");
    assert_eq!(serde_json::to_value(&read).expect("JSON"), json);
}

/// The price of a wait for the copy alone: the next launch comes 880 µs sooner, beside `m`, not in its place.
#[test]
fn a_narrower_wait_has_a_price() {
    let e = two_streams();
    let priced = |change| {
        let report = look::report_with(&e, &look::asking(&[("S1", change)]));
        let saving = report.sites[0].recoverable.clone().expect("a price");
        assert_eq!((saving.change, saving.simulated), (change, true));
        saving.alone_ns
    };
    let (narrow, deleted) = (priced(Change::Narrow), priced(Change::Delete));
    // Each step is 880 µs shorter for the host, until m of the step before has to end first: 1180 µs a step at least.
    assert!(narrow > 5 * 500_000, "{narrow}");
    assert!(narrow <= deleted, "{narrow} {deleted}");
}

/// A read has no narrower wait: asking for one saves nothing.
#[test]
fn a_read_waits_for_its_own_copy_only() {
    let (mut e, t) = empty();
    for at in (0..STEPS).map(|i| i * 100_000) {
        e.launch(t, at..at + 5_000, GPU0, at + 7_000..at + 40_000, "k");
        let (copy, sync) = e.item(t, at + 10_000..at + 45_000, GPU0, at + 41_000..at + 42_000);
        for call in [copy, sync] {
            e.python(call, &[("step", "/w/train.py", 24)]);
        }
    }
    let report = look::report_with(&e, &look::asking(&[("S1", Change::Narrow)]));
    assert_eq!(report.sites[0].awaited.as_ref().expect("asked for").narrow, None);
    assert_eq!(report.sites[0].recoverable.as_ref().expect("a price").alone_ns, 0);
}

/// Work behind the copy on its own stream is not needed either.
///
/// ```text
///  host      [copy c][launch k]  [stream sync=================]
///  stream 7    [c~~~~~~~~~~~~~~~~~~~][k~~~~~~~~~~~~~~~~~~~~]
///             10                    50                    90 µs
/// ```
#[test]
fn a_copy_ahead_of_other_work_needs_less() {
    let (mut e, t) = empty();
    e.memcpy(t, 0..5_000, Copy::d2h(4096, Memory::Pinned), GPU0, 10_000..50_000);
    e.launch(t, 6_000..11_000, GPU0, 50_000..90_000, "k");
    let sync = e.sync(t, "cudaStreamSynchronize", 40_000..95_000, GPU0);
    e.python(sync, &[("step", "/w/train.py", 24)]);
    let report = look::report(&e);
    let awaited = at(&report, 24).awaited.as_ref().expect("asked for");
    assert_eq!(operations(awaited), ["k on 7: 1 x 40000", "[memcpy] on 7: 1 x 10000"]);
    assert_eq!(awaited.narrow.as_ref().map(|n| n.shorter_ns), Some(40_000));
}

/// An H2D copy is no value for the host, and the host's part of the copy is no GPU work.
///
/// ```text
///  host      [memcpyAsync========][stream sync]
///  stream 7           [copy~~~~~]                  staged by the host first
/// ```
#[test]
fn an_upload_is_not_read() {
    let (mut e, t) = empty();
    e.memcpy(t, 0..30_000, Copy::h2d(1 << 20, Memory::Pageable), GPU0, 10_000..29_000);
    let sync = e.sync(t, "cudaStreamSynchronize", 30_500..32_000, GPU0);
    e.python(sync, &[("step", "/w/train.py", 24)]);
    let report = look::report(&e);
    let awaited = at(&report, 24).awaited.as_ref().expect("asked for");
    assert_eq!(streams(awaited), ["7: 1 waits 29000 only 29000 read 0"]);
    assert_eq!(
        (&operations(awaited)[..], awaited.idle_ns),
        (&["[memcpy] on 7: 1 x 19000".to_owned()][..], 12_500)
    );
}

/// ```text
///  host     [launch k on GPU 0] [device sync of GPU 1]
///  GPU 0        [k~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~]
///  GPU 1    [a]                                              long done
/// ```
#[test]
fn a_wait_for_an_idle_gpu_says_so() {
    let (mut e, t) = empty();
    e.launch(t, 0..5_000, GPU1, 6_000..8_000, "a");
    e.launch(t, 10_000..15_000, GPU0, 20_000..900_000, "k");
    let sync = e.device_sync(t, 30_000..33_000, 1);
    e.python(sync, &[("step", "/w/train.py", 24)]);
    let report = look::report(&e);
    let site = at(&report, 24);
    let idle = site.awaited.as_ref().and_then(|a| a.idle_gpu.as_ref()).expect("an idle GPU");
    assert_eq!((idle.waits, &idle.gpus[..], &idle.busy[..]), (1, &[1][..], &[0][..]));
    assert!(
        told(site).contains("returned while a device still worked: it was not that device"),
        "{}",
        told(site)
    );
}

const ALL_REDUCE: &str = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";

/// A rank's step: a kernel of its own, an all-reduce on a stream of its own, a kernel that waits for it, and a read.
///
/// ```text
///  host       [launches]  [item=========================================================]
///  stream 7   [k~~~~~~]                                    (event) [scale~~][copy]
///             10   `until`                                        182    190  192 µs
///  stream 20            [all-reduce, waiting for the other rank~~~]
///                     until + 2                                 180
/// ```
fn rank(e: &mut Export, pid: i64, gpu: Gpu, until: i64, line: i64) {
    let t = e.thread(pid, pid);
    for at in (0..STEPS).map(|i| i * 300_000) {
        e.launch(t, at..at + 5_000, gpu, at + 10_000..at + until, "k");
        let nccl = Gpu { stream: 20, ..gpu };
        e.launch(t, at + 6_000..at + 11_000, nccl, at + until + 2_000..at + 180_000, ALL_REDUCE);
        e.launch(t, at + 12_000..at + 17_000, gpu, at + 182_000..at + 190_000, "scale");
        let (copy, sync) = e.item(t, at + 20_000..at + 196_000, gpu, at + 191_000..at + 192_000);
        for call in [copy, sync] {
            e.python(call, &[("step", "/w/train.py", line)]);
        }
    }
}

/// Rank 100 is done after 50 µs, rank 200 after 150 µs: in each step the first waits 100 µs for the second.
#[test]
fn a_read_behind_a_late_rank_says_which() {
    let mut e = Export::new(Schema::V2026_2);
    rank(&mut e, 100, GPU0, 50_000, 24);
    rank(&mut e, 200, GPU1, 150_000, 25);
    let report = look::report(&e);
    let early = at(&report, 24);
    let awaited = early.awaited.as_ref().expect("asked for");
    // The host is blocked from 38 µs on.
    assert_eq!(
        operations(awaited)[..3],
        [
            format!("{ALL_REDUCE} on 20: 6 x {}", 6 * 128_000),
            "k on 7: 6 x 74394".to_owned(),
            "scale on 7: 6 x 48000".to_owned()
        ]
    );
    let behind = awaited.collectives.as_ref().expect("behind a collective");
    assert_eq!(
        (behind.name.as_str(), behind.blocked_ns),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 6 * 128_000)
    );
    assert_eq!((behind.met_ns, behind.late_ns), (6 * 128_000, 6 * 100_000));
    let late: Vec<_> = behind.late.iter().map(|l| (l.process.pid, l.device, l.late_ns)).collect();
    assert_eq!(late, [(200, 1, 600_000)]);
    assert!(
        told(early).contains("600 µs of that before python3 200 on GPU 1 had arrived"),
        "{}",
        told(early)
    );
    let advice = early.fix.as_ref().map(|fix| fix.title.as_str());
    assert_eq!(advice, Some("nothing to do here: find what makes python3 200 on GPU 1 late"));
    let late = at(&report, 25);
    assert_eq!(late.awaited.as_ref().and_then(|a| a.collectives.as_ref()).map(|c| c.late_ns), Some(0));
    assert!(!late.fix.as_ref().is_some_and(|fix| fix.title.contains("late")), "{:?}", late.fix);
}

#[test]
fn with_one_process_nobody_is_called_late() {
    let mut e = Export::new(Schema::V2026_2);
    rank(&mut e, 100, GPU0, 50_000, 24);
    let report = look::report(&e);
    let site = at(&report, 24);
    let behind = site.awaited.as_ref().and_then(|a| a.collectives.as_ref()).expect("behind a collective");
    assert_eq!((behind.blocked_ns, behind.met_ns, behind.late_ns), (6 * 128_000, 0, 0));
    assert!(behind.late.is_empty());
    assert!(told(site).contains("the capture does not tell"), "{}", told(site));
}

/// Kernels of one name that do not run together are no collective of these two processes.
#[test]
fn ranks_that_never_overlap_do_not_meet() {
    let mut e = Export::new(Schema::V2026_2);
    rank(&mut e, 100, GPU0, 50_000, 24);
    let t = e.thread(200, 200);
    for at in (0..STEPS).map(|i| i * 300_000) {
        e.launch(t, at + 200_000..at + 205_000, GPU1, at + 210_000..at + 230_000, ALL_REDUCE);
    }
    let report = look::report(&e);
    let behind = at(&report, 24).awaited.as_ref().and_then(|a| a.collectives.clone()).expect("a collective");
    assert_eq!((behind.met_ns, behind.late_ns), (0, 0));
    assert_eq!(look::analysed(&e).collectives.alone(), 12);
}
