//! Kernels that work together with other processes: they keep their recorded length, and the report says so.

use super::*;
use std::path::PathBuf;
use sync_report::cost::simulate::run::Variant;
use sync_report::cost::simulate::{Assumed, Draft, run};
use sync_report::report;
use sync_report::vocabulary::Change;
use tempfile::TempDir;
use typed_index_collections::TiVec;

const ALL_REDUCE: &str = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
const STEPS: i64 = 6;

/// Steps of one rank. The collective takes 80 µs where this rank comes first and waits for the other, 20 µs else.
///
/// ```text
///  host      [launch k] [sync======]···[launch all-reduce] [device sync=======]
///  stream 7       [k~~~~~~~~~~~]             [all-reduce, waiting ~~~~~~~]
/// ```
fn rank(e: &mut Export, pid: i64, gpu: Gpu, length: i64) {
    let t = e.thread(pid, pid);
    for at in (0..STEPS).map(|i| i * 300_000) {
        e.launch(t, at..at + 5_000, gpu, at + 7_000..at + 50_000, "k");
        e.sync(t, "cudaStreamSynchronize", at + 10_000..at + 53_000, gpu);
        e.launch(t, at + 93_000..at + 98_000, gpu, at + 100_000..at + 100_000 + length, ALL_REDUCE);
        e.device_sync(t, at + 99_000..at + 103_000 + length, gpu.device);
    }
}

const OTHER: Gpu = Gpu { device: 1, stream: 7 };

fn outcome(e: &Export, gone: impl Fn(u32, &str) -> bool) -> (i64, Vec<i64>) {
    let found = look::analysed(e);
    let mut draft = Draft::new(&found.profile, &found.devices, &found.waits, &Assumed::default());
    draft.meet(&found.profile, &found.collectives);
    let mut program = draft.place(&found.profile, &found.devices, &found.waits, None);
    program.mark(&found.waits.iter().map(|w| vec![(w.call, w.copy_call)]).collect::<TiVec<_, _>>());
    let fixes = found.waits.iter().map(|w| match gone(w.pid.pid(), found.profile.calls.base_name(w.call)) {
        true => Change::Delete,
        false => Change::Keep,
    });
    let variant = Variant { fixes: fixes.collect(), ..Variant::default() };
    let outcome = run(&program, &variant);
    (outcome.end, outcome.busy)
}

#[test]
fn collectives_keep_their_recorded_length() {
    let mut e = Export::new(Schema::V2026_2);
    rank(&mut e, 100, GPU0, 80_000);
    rank(&mut e, 200, OTHER, 20_000);
    let (end, busy) = outcome(&e, |_, _| false);
    assert_eq!(busy, [STEPS * (43_000 + 80_000), STEPS * (43_000 + 20_000)]);
    // The rank that waited for the other comes even earlier: a real one would wait there for longer.
    let (faster, same) = outcome(&e, |pid, _| pid == 100);
    assert_eq!(same, busy);
    assert!(faster < end - 50_000, "{faster} {end}");
    let (both, same) = outcome(&e, |_, api| api == "cudaStreamSynchronize");
    assert_eq!(same, busy);
    assert!(both < end, "{both} {end}");
}

/// Steps of a rank that works for `work` before each collective, which ends at 180 µs for both.
///
/// ```text
///  rank 0   [k~~~][all-reduce, waits ~~~~~|~~~]            first, and waits for the other
///  rank 1   [k~~~~~~~~~~~~~~~~~~~~~~~~~~~~][~~]            late
/// ```
fn together(e: &mut Export, pid: i64, gpu: Gpu, work: i64) {
    let t = e.thread(pid, pid);
    for at in (0..STEPS).map(|i| i * 300_000) {
        e.launch(t, at..at + 5_000, gpu, at + 7_000..at + work, "k");
        e.sync(t, "cudaStreamSynchronize", at + 10_000..at + work + 3_000, gpu);
        let launch = at + work + 43_000;
        e.launch(t, launch..launch + 5_000, gpu, launch + 7_000..at + 180_000, ALL_REDUCE);
        e.device_sync(t, launch + 6_000..at + 183_000, gpu.device);
    }
}

/// A faster early rank only waits longer: nothing is saved. A faster late rank saves time.
#[test]
fn a_faster_rank_waits_for_the_late_one() {
    let mut e = Export::new(Schema::V2026_2);
    together(&mut e, 100, GPU0, 50_000);
    together(&mut e, 200, OTHER, 110_000);
    let (end, busy) = outcome(&e, |_, _| false);
    assert_eq!(busy, [STEPS * (43_000 + 80_000), STEPS * (103_000 + 20_000)]);
    let stray = |api: &str| api == "cudaStreamSynchronize";
    let (first, longer) = outcome(&e, |pid, api| pid == 100 && stray(api));
    assert_eq!(first, end, "nothing is won");
    assert!(longer[0] > busy[0] + STEPS * 20_000, "{longer:?} {busy:?}");
    let (late, shorter) = outcome(&e, |pid, api| pid == 200 && stray(api));
    assert!(late < end - STEPS * 30_000, "{late} {end}");
    assert!(shorter[0] < busy[0] - STEPS * 30_000, "{shorter:?} {busy:?}");
    let (both, _) = outcome(&e, |_, api| stray(api));
    assert!(both <= late, "{both} {late}");
}

fn ranks() -> (Vec<TempDir>, Vec<PathBuf>) {
    [(100, GPU0, 80_000), (200, OTHER, 20_000)]
        .map(|(pid, gpu, length)| {
            let mut e = Export::new(Schema::V2026_2);
            rank(&mut e, pid, gpu, length);
            e.write_temp()
        })
        .into_iter()
        .unzip()
}

#[test]
fn the_report_marks_them() {
    let (_folders, paths) = ranks();
    let report = report::run(&paths, &options()).expect("a report");
    assert_sound(&report);
    assert_eq!(report.totals.collectives, 2 * STEPS as u64);
    let marked = |w: &&sync_report::model::Warning| w.code == "collectives-as-recorded";
    let said = report.warnings.iter().find(marked).expect("said");
    assert!(said.message.starts_with("6 collective kernels (NCCL) keep their recorded length"), "{said:?}");
    let mut json = Vec::new();
    sync_report::render::json::write(&report, &mut json).expect("a Vec takes everything");
    let tree: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(tree["totals"]["collectives"], 2 * STEPS);
    // Ranks run side by side: the whole is the slower one's saving, not the sum.
    let alone = paths.iter().map(|path| look::report_on(path, &options()).totals.recoverable_false_joint_ns);
    assert_eq!(report.totals.recoverable_false_joint_ns, alone.max().flatten());
}

#[test]
fn without_collectives_nothing_is_said() {
    let (mut e, t) = empty();
    e.launch(t, 0..5_000, GPU0, 7_000..50_000, "gemm_next_to_nccl");
    e.sync(t, "cudaStreamSynchronize", 10_000..53_000, GPU0);
    let report = look::report(&e);
    assert_eq!(report.totals.collectives, 0);
    assert!(report.warnings.iter().all(|w| w.code != "collectives-as-recorded"));
}
