//! Drawn exports: what each recorded call becomes, and what each fix makes of it.

use super::*;
use crate::export::{Copy, GPU0, Gpu, Memory, Schema, empty_of};
use sync_report::replay::plan::{Certainty, HostTime};
use sync_report::vocabulary::{Change, Kind};

const GEMM: &str = "ampere_sgemm_128x64_tn";
const KERNEL: &str = "void at::native::elementwise_kernel<128, 2>(int)";
const SIDE: Gpu = Gpu { device: 0, stream: 13 };

/// Three iterations of one upload that waits, two kernels and a read that waits; the middle one is the longest.
///
/// ```text
///  host    [copy H2D][sync==]···[launch gemm]···[launch]·[copy D2H][sync======]
///  GPU         [copy]                [gemm-------][k--]      [copy]
///  µs      0         5     10     12          14     20 22  23   24           90
/// ```
fn training() -> Export {
    let (mut e, t) = empty_of(Schema::V2025_3);
    for i in 0..3i64 {
        let at = 1_000_000 + i * 200_000;
        let end = at + [100_000, 180_000, 120_000][i as usize];
        e.nvtx(t, at..end, &format!("step {i}"));
        e.memcpy(t, at..at + 5_000, Copy::h2d(4096, Memory::Pageable), GPU0, at + 3_000..at + 5_500);
        e.sync(t, "cudaStreamSynchronize", at + 5_200..at + 10_000, GPU0);
        e.nvtx(t, at + 11_000..at + 16_000, "aten::mm, op_id = 5, sizes = [[256, 512], [512, 2048]]");
        e.launch(t, at + 12_000..at + 14_000, GPU0, at + 15_000..at + 65_000, GEMM);
        e.launch(t, at + 20_000..at + 22_000, GPU0, at + 66_000..at + 70_000, KERNEL);
        e.memcpy(t, at + 23_000..at + 24_000, Copy::d2h(4, Memory::Pinned), GPU0, at + 71_000..at + 72_000);
        e.sync(t, "cudaStreamSynchronize", at + 24_500..at + 75_000, GPU0);
    }
    e
}

fn ids(plan: &Plan) -> (String, String) {
    let id = |kind| plan.sites.iter().find(|s| s.kind == kind).expect("a site").id.clone();
    (id(Kind::Upload), id(Kind::ValueRead))
}

/// The stretch is the iteration of median length, in all its variants.
#[test]
fn an_iteration_becomes_acts() {
    let plan = plan(&training(), &ReplayRequest::default());
    let (upload, read) = ids(&plan);
    assert_eq!((plan.stretch.iteration, plan.stretch.iterations), (Some(2), 3));
    assert_eq!((plan.stretch.from_ns, plan.stretch.to_ns), (1_400_000, 1_520_000));
    assert_eq!((plan.streams, plan.events, plan.repeat), (1, 0, 833));
    assert_eq!(
        acts(&plan, "as recorded"),
        [
            &format!("copy host-to-device 4096 pageable {upload}"),
            "host 200",
            &format!("sync stream 0 {upload}"),
            "host 2000",
            "gemm 0",
            "host 6000",
            "spin 4000",
            "host 1000",
            &format!("copy device-to-host 4 pinned {read}"),
            "host 500",
            &format!("sync stream 0 {read}"),
            "host 45000",
        ]
    );
    assert_eq!(
        acts(&plan, &format!("{upload} fixed"))[..3],
        [&format!("copy host-to-device 4096 pageable {upload}"), "host 800", "gemm 0"],
        "with the synchronisation goes half of the 200 ns before it, and 1300 of the 2000 after it, the most that may be the profiler's"
    );
    assert_eq!(plan.variants.len(), 2, "there is only one false site");
    let gemm = &plan.gemms.raw[0];
    assert_eq!(
        (gemm.shape.m, gemm.shape.n, gemm.shape.k, gemm.certainty),
        (2048, 256, 512, Certainty::Exact)
    );
    assert_eq!(plan.variants[0].predicted_saving_ns, None);
    assert!(plan.variants[1].predicted_saving_ns.is_some());
}

/// A delayed read is done at the iteration's end: from pinned memory, behind an event.
#[test]
fn a_delayed_read_waits_at_the_end() {
    let e = training();
    let (_, read) = ids(&plan(&e, &ReplayRequest::default()));
    let stays = acts(&plan(&e, &site(&read)), &format!("{read} fixed"));
    assert_eq!(stays[7..], ["host 1000", &format!("copy device-to-host 4 pinned {read}"), "host 43500"]);
    let fixes = vec![(read.clone(), Change::Delay)];
    let plan = plan(&e, &ReplayRequest { fixes, ..site(&read) });
    let fixed = acts(&plan, &format!("{read} fixed"));
    assert_eq!(
        fixed[7..],
        [
            "host 1000",
            &format!("copy device-to-host 4 pinned {read}"),
            "host 500",
            "record 0",
            "host 45000",
            &format!("sync event 0 {read}"),
        ]
    );
    assert_eq!(plan.events, 1);
    assert_eq!(plan.variants.last().map(|v| v.name.as_str()), Some("all avoidable lines fixed"));
}

/// A delayed value is read one stretch later if there are no iterations: the event is the last stretch's.
#[test]
fn without_iterations_a_delayed_read_is_read_one_later() {
    let (mut e, t) = empty_of(Schema::V2025_3);
    for at in (0..4i64).map(|i| i * 100_000) {
        e.launch(t, at..at + 2_000, GPU0, at + 4_000..at + 50_000, KERNEL);
        e.memcpy(t, at + 5_000..at + 6_000, Copy::d2h(4, Memory::Pinned), GPU0, at + 51_000..at + 52_000);
        e.sync(t, "cudaStreamSynchronize", at + 6_500..at + 54_000, GPU0);
    }
    let fixes = vec![("S1".to_owned(), Change::Delay)];
    let plan = plan(&e, &ReplayRequest { fixes, ..site("S1") });
    assert_eq!(plan.stretch.iteration, None);
    let fixed = acts(&plan, "S1 fixed");
    assert_eq!(
        fixed,
        [
            "host 46000",
            "spin 46000",
            "host 3000",
            "copy device-to-host 4 pinned S1",
            "host 500",
            "sync event 0 S1",
            "record 0"
        ]
    );
}

#[test]
fn host_times_are_scaled() {
    let e = training();
    let host = |host| {
        let plan = plan(&e, &ReplayRequest { host, ..ReplayRequest::default() });
        let times = plan.variants[0]
            .ops
            .iter()
            .filter_map(|a| if let ReplayOp::Host { ns } = a { Some(*ns) } else { None });
        (times.sum::<i64>(), plan.notes)
    };
    let recorded = host(HostTime::Recorded);
    assert_eq!(
        (recorded.0, host(HostTime::Scaled(0.5)).0, host(HostTime::Scaled(0.0)).0),
        (54_700, 27_350, 0)
    );
    let unprofiled = host(HostTime::Unprofiled);
    assert!(unprofiled.0 > 0 && unprofiled.0 < recorded.0, "{}", unprofiled.0);
    assert!(recorded.1.iter().any(|n| n.contains("--host unprofiled")), "{:?}", recorded.1);
    assert!(unprofiled.1.iter().any(|n| n.contains("left out")), "{:?}", unprofiled.1);
}

/// ```text
///  main      [launch a]··················[sync=======]
///  autograd             ··[launch b]
/// ```
#[test]
fn threads_are_merged_by_time() {
    let (mut e, t) = empty_of(Schema::V2025_3);
    let other = e.thread(100, 101);
    e.name_thread(other, "pt_autograd_0");
    for at in (0..3i64).map(|i| i * 100_000) {
        e.launch(t, at..at + 2_000, GPU0, at + 4_000..at + 20_000, KERNEL);
        e.launch(other, at + 5_000..at + 7_000, GPU0, at + 21_000..at + 22_000, KERNEL);
        e.device_sync(t, at + 10_000..at + 26_000, 0);
    }
    let plan = plan(&e, &site("S1"));
    assert_eq!(
        acts(&plan, "as recorded"),
        ["host 74000", "spin 16000", "host 3000", "spin 1000", "host 3000", "sync context S1"]
    );
}

/// An op follows another stream's op by an event, as recorded.
#[test]
fn streams_wait_for_one_another() {
    let (mut e, t) = empty_of(Schema::V2025_3);
    for at in (0..3i64).map(|i| i * 200_000) {
        e.launch(t, at..at + 2_000, GPU0, at + 4_000..at + 40_000, KERNEL);
        e.event_record(t, at + 3_000..at + 4_000, GPU0, 1);
        e.stream_wait(t, at + 5_000..at + 6_000, SIDE, 1);
        e.launch(t, at + 7_000..at + 8_000, SIDE, at + 41_000..at + 60_000, KERNEL);
        e.sync(t, "cudaStreamSynchronize", at + 10_000..at + 63_000, SIDE);
    }
    let plan = plan(&e, &site("S1"));
    assert_eq!(
        order(&plan, "as recorded"),
        ["spin 36000", "record 0", "stream-wait 0 on 1", "spin 19000 on 1", "sync stream 1 S1"]
    );
    // The other stream waits in the host's place.
    assert_eq!(plan.sites.raw[0].fix, Change::GpuWait);
    assert_eq!(order(&plan, "S1 fixed")[3..], ["spin 19000 on 1", "record 1 on 1", "stream-wait 1"]);
    assert_eq!((plan.streams, plan.events), (2, 2));
}

fn order(plan: &Plan, variant: &str) -> Vec<String> {
    acts(plan, variant).into_iter().filter(|a| !a.starts_with("host")).collect()
}

/// The copy of each step follows the kernel of the step before: by an event recorded at that step's end, or as times
/// show.
///
/// ```text
///  step      [copy][sync==]·[launch]·[record e]·[wait e]   | [copy]…
///  GPU 13       [copy-----]                                |               [copy-----]
///  GPU 7                       [kernel---------------------|--------------]
/// ```
#[test]
fn an_order_goes_round_the_stretch() {
    let drawn = |recorded: bool| {
        let (mut e, t) = empty_of(Schema::V2025_3);
        for i in 0..5i64 {
            let at = i * 100_000;
            e.nvtx(t, at..at + 99_000, &format!("step {i}"));
            let start = at + if i == 0 { 5_000 } else { 31_000 };
            e.memcpy(t, at..at + 2_000, Copy::h2d(1 << 20, Memory::Pinned), SIDE, start..start + 20_000);
            e.sync(t, "cudaStreamSynchronize", at + 3_000..start + 22_000, SIDE);
            e.launch(t, at + 60_000..at + 62_000, GPU0, at + 64_000..at + 130_000, KERNEL);
            if recorded {
                e.event_record(t, at + 70_000..at + 71_000, GPU0, 1);
                e.stream_wait(t, at + 72_000..at + 73_000, SIDE, 1);
            }
        }
        plan(&e, &site("S1"))
    };
    let copy = "copy host-to-device 1048576 pinned S1";
    let recorded = drawn(true);
    assert_eq!(
        order(&recorded, "as recorded"),
        [copy, "sync stream 0 S1", "spin 66000 on 1", "record 0 on 1", "stream-wait 0"]
    );
    assert_eq!(
        order(&recorded, "S1 fixed"),
        [copy, "record 1", "stream-wait 1 on 1", "spin 66000 on 1", "record 0 on 1", "stream-wait 0"]
    );
    assert_eq!(
        order(&drawn(false), "as recorded"),
        ["stream-wait 0", copy, "sync stream 0 S1", "spin 66000 on 1", "record 0 on 1"]
    );
}

/// An event that was recorded longer ago than the stretch lasts has long passed.
#[test]
fn an_old_event_orders_nothing() {
    let (mut e, t) = empty_of(Schema::V2025_3);
    e.launch(t, 0..2_000, GPU0, 4_000..40_000, KERNEL);
    e.event_record(t, 3_000..4_000, GPU0, 1);
    for i in 1..5i64 {
        let at = i * 100_000;
        e.nvtx(t, at..at + 99_000, &format!("step {i}"));
        e.stream_wait(t, at + 1_000..at + 2_000, SIDE, 1);
        e.launch(t, at + 3_000..at + 4_000, SIDE, at + 5_000..at + 9_000, KERNEL);
        e.sync(t, "cudaStreamSynchronize", at + 5_000..at + 10_000, SIDE);
        e.launch(t, at + 20_000..at + 22_000, GPU0, at + 24_000..at + 50_000, KERNEL);
    }
    let acts = order(&plan(&e, &site("S1")), "as recorded");
    assert!(!acts.iter().any(|a| a.starts_with("stream-wait")), "{acts:?}");
}

#[test]
fn a_long_iteration_gives_way_to_a_repetition_inside_it() {
    let drawn = |inner: &str| {
        let (mut e, t) = empty_of(Schema::V2025_3);
        for i in 0..3i64 {
            let window = i * 100_000_000;
            e.nvtx(t, window..window + 90_000_000, &format!("epoch {i}"));
            for k in 0..9i64 {
                let at = window + k * 10_000_000;
                e.nvtx(t, at..at + 9_900_000, &inner.replace('#', &k.to_string()));
                e.launch(t, at + 2_000..at + 4_000, GPU0, at + 6_000..at + 5_000_000, KERNEL);
                e.sync(t, "cudaStreamSynchronize", at + 8_000..at + 5_002_000, GPU0);
            }
        }
        plan(&e, &site("S1")).stretch
    };
    let nested = drawn("turn #");
    assert_eq!((nested.to_ns - nested.from_ns, nested.iterations), (10_000_000, 27), "{nested:?}");
    assert!(nested.chosen.contains("(`turn #`)"), "{}", nested.chosen);
    let around = drawn("aten::linear, op_id = #");
    assert_eq!((around.to_ns - around.from_ns, around.iteration), (10_000_000, None), "{around:?}");
}

/// A change that was asked for takes the place of the advised one, and makes its site count.
#[test]
fn a_change_can_be_asked_for() {
    let e = training();
    let (upload, read) = ids(&plan(&e, &ReplayRequest::default()));
    let fixes = vec![(read.clone(), Change::Drop), (upload.clone(), Change::Delete)];
    let plan = plan(&e, &ReplayRequest { fixes, ..ReplayRequest::default() });
    let fix = |id: &str| plan.sites.iter().find(|s| s.id == id).map(|s| s.fix.as_str());
    assert_eq!((fix(&read), fix(&upload)), (Some("drop"), Some("delete")));
    let all = order(&plan, "all avoidable lines fixed");
    assert_eq!(all, [&format!("copy host-to-device 4096 pageable {upload}"), "gemm 0", "spin 4000"]);
    let request = ReplayRequest { fixes: vec![("S9".to_owned(), Change::Drop)], ..ReplayRequest::default() };
    assert!(try_plan(&e, &request).expect_err("no such site").contains("no site S9"));
}

/// An op that starts right where another stream's ended follows it, without recorded events.
#[test]
fn streams_that_follow_one_another_are_seen() {
    let (mut e, t) = empty_of(Schema::V2025_3);
    for at in (0..3i64).map(|i| i * 200_000) {
        e.launch(t, at..at + 2_000, GPU0, at + 4_000..at + 40_000, KERNEL);
        e.launch(t, at + 7_000..at + 8_000, SIDE, at + 41_000..at + 60_000, KERNEL);
        e.sync(t, "cudaStreamSynchronize", at + 10_000..at + 63_000, SIDE);
    }
    let plan = plan(&e, &site("S1"));
    assert!(acts(&plan, "as recorded").contains(&"stream-wait 0 on 1".to_owned()));
}

#[test]
fn an_event_wait_waits_for_its_event() {
    let (mut e, t) = empty_of(Schema::V2025_3);
    for at in (0..3i64).map(|i| i * 200_000) {
        e.launch(t, at..at + 2_000, GPU0, at + 4_000..at + 40_000, KERNEL);
        e.event_record(t, at + 3_000..at + 4_000, GPU0, 1);
        e.launch(t, at + 5_000..at + 6_000, GPU0, at + 41_000..at + 90_000, KERNEL);
        e.event_sync(t, at + 10_000..at + 43_000, 1);
    }
    let plan = plan(&e, &site("S1"));
    assert_eq!(order(&plan, "as recorded"), ["spin 36000", "record 0", "spin 49000", "sync event 0 S1"]);
}

/// Blocking copies, frees, memsets, graph launches, collectives, copies inside the device, a product of 8-bit numbers.
#[test]
fn every_kind_of_call_has_its_act() {
    let (mut e, t) = empty_of(Schema::V2025_3);
    for i in 0..3i64 {
        let at = i * 1_000_000;
        e.nvtx(t, at..at + 900_000, &format!("step {i}"));
        e.memset(t, at..at + 1_000, 1 << 20, GPU0, at + 2_000..at + 3_000);
        e.graph_launch(t, at + 5_000..at + 6_000, GPU0, at + 7_000..at + 57_000);
        e.launch(
            t,
            at + 8_000..at + 9_000,
            GPU0,
            at + 58_000..at + 60_000,
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        );
        e.launch(
            t,
            at + 10_000..at + 11_000,
            GPU0,
            at + 61_000..at + 63_000,
            "nvjet_sm90_qqtst_128x256_128x4_2x1_v_bz_TNT",
        );
        e.memcpy(t, at + 12_000..at + 13_000, Copy::d2d(64), GPU0, at + 64_000..at + 65_000);
        e.memcpy_blocking(
            t,
            at + 14_000..at + 90_000,
            Copy::d2h(8, Memory::Pageable),
            GPU0,
            at + 66_000..at + 88_000,
        );
        e.free(t, at + 100_000..at + 110_000);
    }
    let plan = plan(&e, &ReplayRequest::default());
    let id = |api: &str| plan.sites.iter().find(|s| s.api == api).expect("a site").id.clone();
    assert_eq!(
        order(&plan, "as recorded"),
        [
            "memset 1048576",
            "spin 50000",
            "spin 2000",
            "spin 2000",
            "copy device-to-device 64 unknown",
            &format!("copy device-to-host 8 pageable blocking {}", id("cudaMemcpy")),
            &format!("sync context {}", id("cudaFree")),
        ]
    );
    for word in ["graph launches", "collective", "8-bit", "free or allocate"] {
        assert!(plan.notes.iter().any(|n| n.contains(word)), "{word}: {:?}", plan.notes);
    }
}

#[test]
fn one_gpu_is_replayed() {
    let (mut e, t) = empty_of(Schema::V2025_3);
    let far = Gpu { device: 1, stream: 7 };
    for at in (0..3i64).map(|i| i * 200_000) {
        e.launch(t, at..at + 2_000, GPU0, at + 4_000..at + 40_000, KERNEL);
        e.launch(t, at + 3_000..at + 4_000, far, at + 5_000..at + 150_000, KERNEL);
        e.sync(t, "cudaStreamSynchronize", at + 10_000..at + 43_000, GPU0);
        e.sync(t, "cudaStreamSynchronize", at + 50_000..at + 153_000, far);
    }
    let plan = plan(&e, &ReplayRequest::default());
    let spins =
        variant_of(&plan, "as recorded").ops.iter().filter(|a| matches!(a, ReplayOp::Spin { .. })).count();
    assert_eq!((spins, plan.streams), (1, 1));
    assert!(plan.notes.iter().any(|n| n.contains("other GPUs")), "{:?}", plan.notes);
}

/// cuBLAS clears four bytes before some products, and does so in the replay too.
#[test]
fn memsets_of_cublas_are_left_to_it() {
    let (mut e, t) = empty_of(Schema::V2025_3);
    for at in (0..3i64).map(|i| i * 200_000) {
        e.memset(t, at..at + 1_000, 4, GPU0, at + 2_000..at + 3_000);
        e.launch(t, at + 1_200..at + 2_000, GPU0, at + 4_000..at + 40_000, GEMM);
        e.memset(t, at + 3_000..at + 4_000, 4, GPU0, at + 41_000..at + 42_000);
        e.launch(t, at + 4_200..at + 5_000, GPU0, at + 43_000..at + 44_000, KERNEL);
        e.sync(t, "cudaStreamSynchronize", at + 10_000..at + 47_000, GPU0);
    }
    let order = order(&plan(&e, &site("S1")), "as recorded");
    assert_eq!(order, ["gemm 0", "memset 4", "spin 1000", "sync stream 0 S1"]);
}

#[test]
fn captures_without_a_plan_say_why() {
    let (mut e, t) = empty_of(Schema::V2025_3);
    e.call(t, "cudaMalloc", 0..1_000);
    let error = try_plan(&e, &ReplayRequest::default()).expect_err("no waits");
    assert!(error.contains("no host thread waits"), "{error}");
    e.sync(t, "cudaStreamSynchronize", 2_000..900_000, GPU0);
    let error = try_plan(&e, &site("S1")).expect_err("no kernels");
    assert!(error.contains("holds no GPU operations"), "{error}");
    let error = try_plan(&training(), &site("S77")).expect_err("no such site");
    assert!(error.contains("no site S77") && error.contains("S1 ("), "{error}");
}

#[test]
fn long_stretches_are_cut() {
    let (mut e, t) = empty_of(Schema::V2025_3);
    for at in (0..30_000i64).map(|i| i * 1_000) {
        e.launch(t, at..at + 500, GPU0, at + 600..at + 900, KERNEL);
    }
    e.sync(t, "cudaStreamSynchronize", 30_000_000..30_001_000, GPU0);
    let plan = plan(&e, &site("S1"));
    assert!(variant_of(&plan, "as recorded").ops.len() < 41_000);
    assert!(plan.notes.iter().any(|n| n.contains("only 20000 around the wait")), "{:?}", plan.notes);
    assert!(acts(&plan, "as recorded").iter().any(|a| a.contains("S1")));
}

#[test]
fn damaged_times_do_no_harm() {
    let (mut e, t) = empty_of(Schema::V2025_3);
    const FAR: i64 = i64::MAX / 4;
    e.launch(t, -FAR..-FAR + 5, GPU0, -FAR + 6..FAR - 10, GEMM);
    e.sync(t, "cudaStreamSynchronize", 0..FAR, GPU0);
    e.launch(t, 5..FAR, GPU0, 7..8, KERNEL);
    e.sync(t, "cudaStreamSynchronize", 3..4, GPU0);
    for request in [site("S1"), ReplayRequest { host: HostTime::Scaled(1000.0), ..site("S1") }] {
        let plan = plan(&e, &request);
        assert!(!plan.variants[0].ops.is_empty());
    }
}
