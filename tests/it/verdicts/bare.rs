//! H2D copies, bare synchronisations, frees, and undecided waits.

use super::*;

/// R01: nothing is read back. The sentence names the memory.
#[test]
fn uploads_are_false_whatever_their_size() {
    for (bytes, memory, words, pins) in [
        (8, Memory::Pageable, "an H2D copy from pageable memory", false),
        (524_288, Memory::Pageable, "an H2D copy from pageable memory", true),
        (3 << 20, Memory::Pinned, "an H2D copy from pinned memory", false),
        (64, Memory::Unknown, "an H2D copy from the host", true),
    ] {
        let scene = Scene { copy: upload(bytes, memory), before: &["gemm"], ..Scene::default() };
        let site = scene.site();
        assert_eq!(super::words(&site), "false upload C03 R01");
        // No advice to pin memory that is pinned, or a copy that the driver stages at once.
        let title = &site.fix.as_ref().expect("a fix").title;
        assert_eq!(title.contains("from pinned memory"), pins, "{title}");
        assert!(told(&site).contains(words), "{}", told(&site));
    }
}

#[test]
fn uploads_are_told_apart_by_method() {
    for (method, pattern) in [
        ("torch::autograd::THPVariable_to(_object*)", "C03"),
        ("torch::autograd::THPVariable_tensor(_object*)", "C01"),
        ("torch::autograd::THPVariable_getitem(_object*)", "C07"),
        ("torch::autograd::THPVariable_setitem(_object*)", "C06"),
        ("torch::autograd::THPVariable_copy_(_object*)", "C04"),
    ] {
        let scene = Scene { copy: upload(8, Memory::Pageable), chain: &[method], ..Scene::default() };
        assert_eq!(scene.verdict(), format!("false upload {pattern} R01"));
    }
}

#[test]
fn reads_stay_open() {
    for (bytes, chain, pattern, words) in [
        (4, &["torch::autograd::THPVariable_item(x)"][..], "A01", "4 B reach the CPU through Tensor.item"),
        (4, &["THPVariable_float_scalar(x)"], "A02", "through Tensor.__float__"),
        (1 << 20, &["torch::autograd::THPVariable_cpu(x)"], "D01", "1 MiB reach the CPU through Tensor.cpu"),
        (64, &["torch::autograd::THPVariable_tolist(x)"], "D02", "64 B reach"),
        (16, &[], "A01", "16 B reach the CPU by a copy"),
        (17, &[], "D01", "17 B reach the CPU by a copy"),
    ] {
        let site = Scene { copy: read(bytes), chain, ..Scene::default() }.site();
        assert_eq!(super::words(&site), format!("unknown value-read {pattern} R20"));
        assert!(told(&site).contains(words), "{}", told(&site));
    }
    let site = Scene { copy: read(4), thread: "pt_autograd_0", ..Scene::default() }.site();
    assert!(told(&site).contains("autograd's thread"), "{}", told(&site));
}

/// R02, R04, R05, R06 by name of the call, with nothing else around.
///
/// ```text
///  host      [launch] [first======] [second]        [launch] …  [third]
///  stream 7     [gemm~~~~~~~~]                         [gemm]
///                     R02           R04                         R05, R06 for events
/// ```
#[test]
fn bare_synchronisations_are_judged_by_the_timeline() {
    for (api, pattern, idle) in [
        ("cudaDeviceSynchronize", "F01", "R05"),
        ("cudaStreamSynchronize", "F02", "R05"),
        ("cudaEventSynchronize", "F03", "R06"),
        ("cuCtxSynchronize", "F01", "R05"),
    ] {
        let (mut e, t) = empty();
        e.launch(t, 100..110, GPU0, 120..900, "gemm");
        e.call(t, api, 200..910);
        e.call(t, api, 920..930);
        e.launch(t, 940..950, GPU0, 960..970, "gemm");
        e.call(t, api, 5000..5010);
        let report = look::report(&e);
        let mut all: Vec<String> = report.sites.iter().map(super::words).collect();
        all.sort();
        assert_eq!(
            all,
            [
                format!("false explicit {pattern} R02"),
                format!("false idle {pattern} {idle}"),
                format!("false redundant {pattern} R04"),
            ],
            "{api}"
        );
    }
}

/// R22: DDP waits for its own events, inside the model's call; the same wait elsewhere is explicit.
///
/// ```text
///  host      [launch] [cudaEventSynchronize==]      c10d::Logger
///  stream 7     [gemm~~~~~~~~~~~~~~~~~]
/// ```
#[test]
fn ddp_takes_its_own_times() {
    const TORCH: &str = "/venv/lib/python3.12/site-packages/torch/lib/libtorch_cpu.so";
    for (function, words) in [
        ("c10d::Logger::set_runtime_stats_and_log()", "false timing H05 R22"),
        ("c10d::Reducer::prepare_for_forward()", "false explicit F03 R02"),
    ] {
        let (mut e, t) = empty();
        e.launch(t, 100..110, GPU0, 120..900, "gemm");
        let call = e.call(t, "cudaEventSynchronize", 200..910);
        e.native(call, &[(function, TORCH)]);
        assert_eq!(super::words(&look::report(&e).sites[0]), words, "{function}");
    }
}

#[test]
fn waits_for_collectives_say_so() {
    let scene = Scene { before: &["gemm", "ncclDevKernel_AllGather_RING_LL(x)"], ..Scene::default() };
    let site = scene.site();
    assert_eq!(super::words(&site), "false explicit F02 R02");
    assert!(told(&site).contains("ncclDevKernel_AllGather_RING_LL"), "{}", told(&site));
}

/// R13: freeing and page-locking, whatever line of Python they happen on.
#[test]
fn the_allocator_is_to_blame_for_its_calls() {
    for (api, words) in [
        ("cudaFree", "cudaFree drains the device"),
        ("cuMemFree_v2", "cuMemFree_v2 drains the device"),
        ("cudaFreeHost", "cudaFreeHost waits for GPU work"),
        ("cudaHostAlloc", "returned right when the pending GPU work ended"),
    ] {
        let (mut e, t) = empty();
        e.launch(t, 100..110, GPU0, 120..900, "gemm");
        let call = e.call(t, api, 200..910);
        e.python(call, &[("step", "/w/train.py", 3)]);
        let report = look::report(&e);
        let site = only(&report);
        assert_eq!((site.kind.as_str(), site.evidence[0].rule.as_str()), ("allocator", "R13"), "{api}");
        assert!(told(site).contains(words), "{}", told(site));
    }
    let chain: &[&str] =
        &["cudaStreamSynchronize", "c10::cuda::CUDACachingAllocator::Native::release_cached_blocks()"];
    assert_eq!(Scene { chain, ..Scene::default() }.verdict(), "false allocator G02 R13");
    let frames: &[PythonFrame] = &[
        ("empty_cache", "/venv/lib/python3.12/site-packages/torch/cuda/memory.py", 170),
        ("f", "/w/a.py", 1),
    ];
    let empty = Scene { chain, frames, ..Scene::default() };
    assert_eq!(empty.verdict(), "false allocator G01 R13");
}

#[test]
fn a_capture_of_calls_alone_proves_nothing() {
    let (mut e, t) = empty();
    e.call(t, "cudaStreamSynchronize", 200..910);
    let report = look::report(&e);
    assert_eq!(super::words(only(&report)), "unknown unattributed - R21");
    assert!(told(only(&report)).contains("records no GPU work"));
    let said = |e: &Export| {
        let report = look::report(e);
        let said = report.warnings.iter().find(|w| w.code == "no-gpu-work").expect("a warning");
        (said.message.clone(), said.fix.clone())
    };
    let (_, fix) = said(&e);
    assert!(fix.contains("sync-report run "), "{fix}");
    e.capture_meta("CAPTURE_EVENT_TYPE", "Cuda");
    let (message, fix) = said(&e);
    assert!(message.contains("the same capture again would not") && fix.is_empty(), "{message} {fix}");
    e.diagnostic(2, "Installed CUDA driver version (12.6) is not supported by this build of Nsight Systems.");
    let (message, fix) = said(&e);
    assert!(message.contains("with a newer nsys") && fix.is_empty(), "{message} {fix}");
}

/// R03 is a read, even if the copy ended long before the wait.
///
/// ```text
///  host      [copy D2H, pinned]       …       [deviceSync]
///  stream 7    [copy]
/// ```
#[test]
fn a_wait_that_completes_a_copy_is_a_data_barrier() {
    let (mut e, t) = empty();
    e.memcpy(t, 100..110, Copy::d2h(4096, Memory::Pinned), GPU0, 120..130);
    e.device_sync(t, 900_000..900_010, 0);
    let report = look::report(&e);
    assert_eq!(super::words(only(&report)), "unknown value-read D05 R03");
}

/// A library that brings a CUDA runtime of its own starts it by a free of nothing.
///
/// ```text
///  host   [launch]  [cuInit][cudaFree=====]  [launch]  [cudaFree]      by when it happens: start, set-up, the program's own
///  s7      [gemm~]                            [gemm~~~~~~~~~~~]
/// ```
#[test]
fn a_free_that_starts_a_runtime_frees_nothing() {
    let (mut e, t) = empty();
    e.free(t, 1_000..900_000);
    e.launch(t, 1_000_000..1_001_000, GPU0, 1_002_000..1_003_000, "gemm");
    e.call(t, "cuInit", 1_100_000..1_101_000);
    e.free(t, 1_200_000..1_900_000);
    e.launch(t, 2_000_000..2_001_000, GPU0, 2_002_000..2_050_000, "gemm");
    e.free(t, 2_010_000..2_051_000);
    e.launch(t, 2_060_000..2_061_000, GPU0, 2_062_000..2_070_000, "gemm");
    e.free(t, 2_062_000..2_071_000);
    let report = look::report(&e);
    let mut said: Vec<String> =
        report.sites.iter().map(|s| format!("{} {} {}", s.waits, words(s), s.once)).collect();
    said.sort();
    let expected = [
        "1 false allocator G07 R13 true",
        "1 false allocator G08 R23 true",
        "2 false allocator G07 R13 false",
    ];
    assert_eq!(said, expected);
    let saved = report.totals.by_class.false_.recoverable_ns;
    assert!(saved.is_some_and(|ns| ns < 200_000), "neither start is a saving: {saved:?}");
}

/// ```text
///  host      [launch]  [cudaFree]              returned while the gemm ran: it did not drain
///  stream 7     [gemm~~~~~~~~~~~~~~~~~~~~]
/// ```
#[test]
#[ignore = "open question: a free that returned while its device worked on is still called a drain (R13); it may be no \
            wait at all"]
fn a_free_that_returned_while_the_device_worked_did_not_drain_it() {
    let (mut e, t) = empty();
    e.launch(t, 100..110, GPU0, 120..900_000, "gemm");
    e.call(t, "cudaFree", 200..210);
    let report = look::report(&e);
    let told: Vec<String> = report.sites.iter().map(told).collect();
    assert!(told.iter().all(|t| !t.contains("drains")), "{told:?}");
}

/// ```text
///  host      [copy][sync=====]  [launch]  [deviceSync===========]       KERNEL rows were lost, copies were not
///  stream 7   [D2H]                [gemm, not recorded]
/// ```
#[test]
#[ignore = "open question: where kernels were launched and none is recorded, a wait for them counts as redundant or \
            idle; launches are not kept, so only their number could tell"]
fn lost_kernels_prove_nothing() {
    let (mut e, t) = empty();
    e.item(t, 100..1000, GPU0, 500..510);
    e.launch(t, 2000..2010, GPU0, 2020..900_000, "gemm");
    e.device_sync(t, 3000..900_010, 0);
    e.drop_table("CUPTI_ACTIVITY_KIND_KERNEL");
    let report = look::report(&e);
    let kinds: Vec<_> = report.sites.iter().map(|s| s.kind.as_str()).collect();
    assert!(!kinds.contains(&"redundant") && !kinds.contains(&"idle"), "{kinds:?}");
}
