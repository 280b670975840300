//! Host work that a fix removes beside the wait, or adds.

use super::*;
use crate::export::{Copy, Memory};
use sync_report::cost::simulate::run;
use sync_report::cost::simulate::run::Variant;
use sync_report::vocabulary::Change;

/// A fix that makes the data elsewhere also removes the host's making of it: a time per byte, at most the gap
/// before the copy. Pinning first adds host time, at most as long as the copy's call.
///
/// ```text
///  host      [launch]···3 ms: torch.cat~~~~~~~~~[copy=====][sync]        4 MiB at 0.25 ns: 1.05 ms
///  on GPU    [launch]··············[copy]
///  pinned    [launch]···3 ms~~~~~~~~~~~~~~~~~~~~pin~~~[copy]             0.025 + 0.15 ms
/// ```
#[test]
fn what_is_made_for_an_upload_goes_with_it() {
    let drawn = |gap: i64, rate: Option<f64>| {
        let (mut e, t) = empty();
        e.launch(t, 0..5_000, GPU0, 7_000..50_000, "a");
        let at = 5_000 + gap;
        e.memcpy(t, at..at + 200_000, Copy::h2d(4 << 20, Memory::Pageable), GPU0, at + 20_000..at + 210_000);
        e.sync(t, "cudaStreamSynchronize", at + 201_000..at + 214_000, GPU0);
        let found = look::analysed(&e);
        let wait = found.waits.iter().next().expect("a wait");
        let (plain, mut marked) = (look::program(&found), look::program(&found));
        let waits = [(wait.call, wait.copy_call)];
        match rate {
            Some(rate) => marked.mark_made(&found.profile, &waits, rate),
            None => marked.mark_pinned(&found.profile, &waits),
        }
        move |fix: Change| {
            let variant = Variant { fixes: vec![fix].into(), around: 100, ..Variant::default() };
            run(&plain, &variant).end - run(&marked, &variant).end
        }
    };
    let made = drawn(3_000_000, Some(0.25));
    for fix in [Change::Pinned, Change::OnGpu, Change::Drop] {
        assert_eq!(made(fix), 1 << 20);
    }
    assert_eq!(made(Change::NonBlocking), 0);
    assert_eq!(drawn(200_000, Some(0.25))(Change::OnGpu), 160_500);
    let pinned = drawn(3_000_000, None);
    assert_eq!(pinned(Change::Pinned), -(25_000 + 150_994));
    assert_eq!([Change::OnGpu, Change::Drop, Change::NonBlocking].map(pinned), [0; 3]);
}

/// ```text
///  x[mask]  host  [is]··20··[count][count][copy][sync]··[init][select][indices]··20··[index]      a step of 124 µs
///  where    host  [is]··20··                                                         [index]      what is left of it
/// ```
/// A dropped read of a mask's size takes the count and the selection along; among other kernels it takes only
/// its copy. The unasked report gives that as the most that may be saved.
#[test]
fn a_mask_that_keeps_the_shape_is_not_counted() {
    let saved = |select: [&str; 2]| {
        let (mut e, t) = empty();
        let mut at = 0;
        let launch = |e: &mut Export, at: &mut i64, gap: i64, kernel: &str| {
            let call = *at + gap..*at + gap + 5_000;
            *at = call.end;
            e.launch(t, call.clone(), GPU0, call.end + 2_000..call.end + 3_000, kernel);
        };
        for i in 0..20 {
            e.nvtx(t, at..at + 1, &format!("step {i}"));
            launch(&mut e, &mut at, 20_000, "CompareFunctor");
            launch(&mut e, &mut at, 20_000, "cub::DeviceReduceKernel");
            launch(&mut e, &mut at, 2_000, "cub::DeviceReduceSingleTileKernel");
            let copy = Copy::d2h(4, Memory::Pinned);
            e.memcpy(t, at + 2_000..at + 7_000, copy, GPU0, at + 8_000..at + 9_000);
            e.sync(t, "cudaStreamSynchronize", at + 7_500..at + 13_500, GPU0);
            at += 13_500;
            launch(&mut e, &mut at, 10_000, select[0]);
            launch(&mut e, &mut at, 2_000, select[1]);
            launch(&mut e, &mut at, 20_000, "index_elementwise_kernel");
        }
        let most = look::report(&e).sites[0].recoverable.as_ref().map(|r| r.high_ns);
        let report = look::report_with(&e, &look::asking(&[("S1", Change::Drop)]));
        super::assert_sound(&report);
        (report.totals.iteration.expect("a loop").saved_ns, most.expect("priced") / 20)
    };
    // Two launches that count, two that select with 12 µs before them, 20 µs before the index; the read itself.
    let gone = 10_000 + 10_000 + 12_000 + 20_000;
    let (masked, most) = saved(["cub::DeviceCompactInitKernel", "cub::DeviceSelectSweepKernel"]);
    let (other, _) = saved(["gemm", "gemm"]);
    // The read takes its copy call, its wait and the time around them along.
    assert!(
        (gone + 11_000..gone + 20_000).contains(&masked) && (11_000..20_000).contains(&other),
        "{masked} {other}"
    );
    assert!(most >= masked, "{most} {masked}");
}

/// ```text
///  checked  host  [is]··20··[compare]··10··[all]··2··[copy][sync]··20··[gemm]      a step of 92 µs
///  not      host  [is]··20··                                     ··20··[gemm]
/// ```
/// A removed check of a factorisation takes its comparison along; earlier work, and the time before the
/// comparison, stay.
#[test]
fn a_check_that_is_switched_off_compares_nothing() {
    let saved = |test: &str| {
        let (mut e, t) = empty();
        let mut at = 0;
        for i in 0..20 {
            e.nvtx(t, at..at + 1, &format!("step {i}"));
            for (gap, kernel) in [(10_000, "getrf"), (20_000, test), (10_000, "at::native::and_kernel_cuda")]
            {
                let call = at + gap..at + gap + 5_000;
                at = call.end;
                e.launch(t, call.clone(), GPU0, call.end + 2_000..call.end + 3_000, kernel);
            }
            let copy = Copy::d2h(1, Memory::Pinned);
            e.memcpy(t, at + 2_000..at + 7_000, copy, GPU0, at + 8_000..at + 9_000);
            e.sync(t, "cudaStreamSynchronize", at + 7_500..at + 13_500, GPU0);
            e.launch(t, at + 33_500..at + 38_500, GPU0, at + 40_000..at + 41_000, "gemm");
            at += 38_500;
        }
        let report = look::report(&e);
        super::assert_sound(&report);
        assert_eq!(report.sites[0].kind, sync_report::vocabulary::Kind::ErrorCheck);
        report.totals.iteration.expect("a loop").saved_ns
    };
    // Two launches with 10 µs between them, against one with the time before it kept.
    let (both, one) = (saved("CompareEqFunctor<float>"), saved("gemm"));
    assert_eq!(both - one, 15_000, "{both} {one}");
}
