//! Programs that are not PyTorch's, and libraries that set themselves up.

use super::*;
use crate::export::{Gpu, Thread};
use sync_report::vocabulary::{Class, PatternId};

/// A process of that name that runs one kernel, uploads and waits for its device.
///
/// ```text
///  host      [launch] [cudaMemcpy H2D] [launch] [cudaDeviceSynchronize==]
///  stream 7     [kernel~~~~]  [copy]       [kernel~~~~~~~~~~~~~~~~~~~~]
/// ```
fn program(name: &str, kernel: &str) -> (Export, Thread, Call) {
    let mut e = Export::new(Schema::V2026_2);
    e.process(100, name);
    let t = e.thread(100, 100);
    e.launch(t, 100..110, GPU0, 120..900, kernel);
    e.memcpy_blocking(t, 1000..1900, Copy::h2d(4 << 20, Memory::Pageable), GPU0, 1100..1800);
    e.launch(t, 2000..2010, GPU0, 2100..2900, kernel);
    let wait = e.device_sync(t, 2020..2910, 0);
    e.launch(t, 3000..3010, GPU0, 3100..3900, kernel);
    (e, t, wait)
}

fn said(report: &Report) -> Option<String> {
    let mut said = report.warnings.iter().filter(|w| w.code == "not-python");
    let first = said.next().map(|w| w.message.clone());
    assert!(said.next().is_none(), "it is said once");
    first
}

#[test]
fn a_program_is_known_by_what_it_leaves_in_the_capture() {
    for (name, kernel, toolkit) in [
        ("./jacobi", "main_42_gpu", Some("OpenACC")),
        ("/usr/bin/julia", "partial_mapreduce_grid", Some("Julia")),
        ("python3", "loop_add_fusion_3", Some("JAX or XLA")),
        ("python3", "void tensorflow::functor::FillKernel<float>(int)", Some("TensorFlow")),
        ("./saxpy", "saxpy(double *, double *, int)", Some("C++")),
        ("./infer", "void at::native::vectorized_elementwise_kernel<4>()", None),
        ("python3", "gemm", None),
        ("torchrun", "gemm", None),
    ] {
        let (e, ..) = program(name, kernel);
        let report = look::report(&e);
        let said = said(&report);
        assert_eq!(said.is_some(), toolkit.is_some(), "{name} {kernel}: {said:?}");
        assert!(toolkit.is_none_or(|toolkit| said.unwrap_or_default().contains(toolkit)), "{name} {kernel}");
        let patterns: Vec<_> = report.sites.iter().filter_map(|s| s.pattern).collect();
        assert_eq!(patterns.iter().all(|p| p.letter() == 'K'), toolkit.is_some(), "{name}: {patterns:?}");
    }
}

/// Python programs without ATen's kernels and PyTorch's names get CUDA advice. A wait without a place stays
/// undecided, because their libraries wait too.
#[test]
fn python_is_not_pytorch() {
    let of = |kernel: &str, pytorch: bool, place: bool| {
        let (mut e, _, wait) = program("python3", kernel);
        if !pytorch {
            e.without_pytorch();
        }
        if place {
            e.python(wait, &[("solve", "/w/solve.py", 12)]);
        }
        let report = look::report(&e);
        let sync = report.sites.iter().find(|s| s.api == "cudaDeviceSynchronize").expect("the wait");
        let advised = format!("{:?}", report.sites.iter().map(|s| &s.fix).collect::<Vec<_>>());
        let of_torch = ["torch", "non_blocking", "pin_memory"].iter().any(|word| advised.contains(word));
        let name = said(&report).unwrap_or_default();
        let name = name.split_once('(').map(|(_, rest)| rest.split(')').next().unwrap_or("").to_owned());
        (name.unwrap_or_default(), super::words(sync), of_torch)
    };
    let open = "unknown value-read K01 R02".to_owned();
    for (kernel, toolkit) in [
        ("cupy_copy__float32_float32", "CuPy"),
        ("cudapy::__main__::step[abi:v1]", "Numba"),
        ("void phi::funcs::Fill<float>()", "PaddlePaddle"),
        ("void raft::linalg::mapKernel<float>()", "RAPIDS"),
        ("updateNeuronsKernel(float)", "Python without PyTorch"),
    ] {
        assert_eq!(of(kernel, false, false), (toolkit.to_owned(), open.clone(), false), "{kernel}");
    }
    let placed = "false explicit K01 R02".to_owned();
    assert_eq!(of("cupy_copy__float32_float32", false, true), ("CuPy".to_owned(), placed, false));
    // Libraries that PyTorch also calls tell nothing; PyTorch's name anywhere tells enough.
    for (kernel, pytorch) in [("sm80_xmma_gemm_f32f32", false), ("updateNeuronsKernel(float)", true)] {
        assert_eq!(of(kernel, pytorch, false).0, "", "{kernel}");
    }
}

#[test]
fn a_renamed_python_process_stays_pythons() {
    let (mut e, ..) = program("worker_main", "gemm");
    e.command(&["bash", "-c", "torchrun --nproc-per-node 2 train.py"]);
    assert_eq!(said(&look::report(&e)), None);
}

#[test]
fn nothing_of_pytorch_is_advised_to_a_compiled_program() {
    let (e, ..) = program("./jacobi", "main_42_gpu");
    let report = look::report(&e);
    let mut all: Vec<String> = report.sites.iter().map(super::words).collect();
    all.sort();
    assert_eq!(all, ["false explicit K01 R02", "false upload K04 R01"]);
    for site in &report.sites {
        let fix = site.fix.as_ref().expect("a fix");
        let text = format!("{fix:?}");
        for word in ["torch", "non_blocking", "pin_memory", "DataLoader", "python"] {
            assert!(!text.contains(word), "{word} in {text}");
        }
        assert!(fix.confirm.contains("sync-report run -o fixed -- ./your_program"));
    }
    assert!(!report.warnings.iter().any(|w| w.code == "no-python-backtraces"));
}

/// The host reads managed memory without a copy: the trace cannot tell a synchronisation's purpose.
#[test]
fn managed_memory_leaves_synchronisations_open() {
    let (mut e, ..) = program("./jacobi", "main_42_gpu");
    e.string("cudaMallocManaged_v6000");
    let report = look::report(&e);
    let sync = report.sites.iter().find(|s| s.api == "cudaDeviceSynchronize").expect("the synchronisation");
    assert_eq!(super::words(sync), "unknown value-read K01 R02");
    assert!(told(sync).contains("cudaMallocManaged"), "{}", told(sync));
    // Also in a process of PyTorch's; a call that its libraries make says nothing.
    let said = |name: &str| {
        let (mut e, ..) = program("python3", "void at::native::vectorized_elementwise_kernel<4>()");
        e.string(name);
        let report = look::report(&e);
        let sync =
            report.sites.iter().find(|s| s.api == "cudaDeviceSynchronize").expect("the synchronisation");
        super::words(sync)
    };
    assert_eq!(said("cudaMallocManaged_v6000"), "unknown value-read F01 R02");
    assert_eq!(said("cudaHostGetDevicePointer_v3020"), "false explicit F01 R02");
}

/// The allocation may precede the capture; copies of kinds 11 to 13 show that unified memory moves.
#[test]
fn unified_memory_that_moves_leaves_synchronisations_open() {
    for kernel in ["main_42_gpu", "void at::native::vectorized_elementwise_kernel<4>()"] {
        for (kind, class) in
            [(11, Class::Unknown), (12, Class::Unknown), (13, Class::Unknown), (8, Class::False)]
        {
            let (e, ..) = program("python3", kernel);
            let (_kept, path) = e.write_temp();
            let db = rusqlite::Connection::open(&path).expect("the export");
            db.execute(
                "UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET copyKind = ?1, srcKind = 7, dstKind = 7",
                [kind],
            )
            .expect("an update");
            let report = sync_report::report::run(&[path], &look::options()).expect("a report");
            let sync = report.sites.iter().find(|s| s.api == "cudaDeviceSynchronize");
            assert_eq!(sync.expect("the synchronisation").class, class, "{kernel} {kind}");
        }
    }
}

/// JAX has Python lines: its captures still advise recording them, without PyTorch's words.
#[test]
fn other_python_toolkits_keep_their_lines() {
    let (mut e, _, wait) = program("python3", "loop_add_fusion_3");
    e.python(wait, &[("train", "/w/train.py", 12)]);
    let report = look::report(&e);
    let said = said(&report).expect("a warning");
    assert!(said.contains("JAX") && !said.contains("native chains"), "{said}");
    let sync = report.sites.iter().find(|s| s.api == "cudaDeviceSynchronize").expect("the synchronisation");
    assert_eq!(sync.user_frame.as_ref().map(|f| f.line), Some(12));
    let fix = sync.fix.as_ref().expect("a fix");
    assert!(fix.confirm.contains("sync-report run -o fixed -- python your_script.py"), "{}", fix.confirm);
    assert_eq!(sync.pattern, Some(PatternId::K01));
}

/// A clock read beside a synchronisation, in code that says that it measures, makes it timing in any language
/// (R25).
#[test]
fn a_clock_beside_the_wait_is_timed_by_events() {
    let (mut e, t, _) = program("./jacobi", "main_42_gpu");
    e.nvtx(t, 1990..2950, "benchmark");
    e.osrt(t, "clock_gettime", 1995..1996, &[]).osrt(t, "clock_gettime", 2911..2912, &[]);
    let report = look::report(&e);
    let sync = report.sites.iter().find(|s| s.api == "cudaDeviceSynchronize").expect("the synchronisation");
    assert_eq!((sync.kind.as_str(), sync.pattern), ("timing", Some(PatternId::K07)));
}

/// Chains of system calls inside a wait place it if CUDA calls have none, past CUDA's own functions.
#[test]
fn a_system_call_inside_the_wait_places_it() {
    let (mut e, t, _) = program("./jacobi", "main_42_gpu");
    let chain = [
        ("sem_wait", "libc.so.6"),
        ("0x7f12", "libcuda.so.580"),
        ("cudaDeviceSynchronize", "libcudart.so.13"),
        ("solve(double*, int)", "jacobi"),
        ("main", "jacobi"),
    ];
    e.osrt(t, "sem_wait", 2100..2900, &chain);
    let report = look::report(&e);
    let sync = report.sites.iter().find(|s| s.api == "cudaDeviceSynchronize").expect("the synchronisation");
    assert_eq!(sync.native_method().as_deref(), Some("solve"));
}

#[test]
fn set_up_is_known_by_functions_and_ranges() {
    for (chain, range, words) in [
        ("cudnnFindConvolutionForwardAlgorithmEx", "step", "false timing E07 R23"),
        ("cudnn_frontend::time_sorted_plan(x)", "step", "false timing E07 R23"),
        ("nvinfer1::IBuilder::buildSerializedNetwork(x)", "step", "false timing E13 R23"),
        ("ncclCommInitRankConfig", "step", "true barrier H13 R23"),
        ("ncclCommDestroy", "step", "false allocator G08 R23"),
        ("f()", "ncclCommInitRank", "true barrier H13 R23"),
        ("cudnnConvolutionForward", "step", "false explicit F02 R02"),
    ] {
        let scene = Scene { before: &["gemm"], chain: &[chain], ranges: &[range], ..Scene::default() };
        assert_eq!(scene.verdict(), words, "{chain} {range}");
    }
}

/// Waits once per process, at its start or end, get no advice: here 3 frees after the last kernel.
///
/// ```text
///  host      [launch]   [cudaFree] [launch] [cudaFree] [launch]             [cudaFree] [cudaFree] [cudaFree]
///  stream 7     [kernel]              [kernel]            [kernel~~~~~]
/// ```
#[test]
fn tear_down_wants_no_fix() {
    let (mut e, t, _) = program("./jacobi", "main_42_gpu");
    for at in [1910, 2920, 5000, 6000, 7000] {
        e.free(t, at..at + 50);
    }
    let report = look::report(&e);
    let frees: Vec<_> = report.sites.iter().filter(|s| s.api == "cudaFree").collect();
    assert_eq!(frees.iter().map(|s| (s.waits, s.once)).collect::<Vec<_>>(), [(2, false), (3, true)]);
    assert_eq!(frees[1].fix.as_ref().map(|fix| &*fix.title), Some("nothing to do: it happens once"));
}

/// A command without Python also tells, if nothing names PyTorch: Windows exports name no process.
///
/// ```text
///  host      [cudaMemcpy H2D]
///  stream 7       [copy]
/// ```
#[test]
fn a_command_tells_where_no_process_has_a_name() {
    for (command, pytorch, compiled) in [
        (".\\build\\run.exe", false, true),
        (".\\build\\run.exe", true, false),
        ("python train.py", false, false),
    ] {
        let mut e = Export::new(Schema::V2026_2);
        if !pytorch {
            e.without_pytorch();
        }
        e.command(&[command]).process(100, "");
        let t = e.thread(100, 100);
        e.memcpy_blocking(t, 1000..1900, Copy::h2d(4 << 20, Memory::Pageable), GPU0, 1100..1800);
        let report = look::report(&e);
        assert_eq!(said(&report).is_some_and(|said| said.contains("C++")), compiled, "{command} {pytorch}");
    }
}

/// A single stream has no other to wait in the CPU's place.
///
/// ```text
///  host      [launch] [cudaDeviceSynchronize==] [launch]
///  stream 7     [kernel~~~~~~~~~~~~~~~~~~~~~]      [kernel]
///  stream 13                                                   in the second program only
/// ```
#[test]
fn one_stream_has_nothing_to_wait_for_another() {
    for (more, title) in [
        (false, "delete it where no code on the CPU needs the result"),
        (true, "let the GPU wait: cudaStreamWaitEvent"),
    ] {
        let (mut e, t, _) = program("./jacobi", "main_42_gpu");
        if more {
            e.launch(t, 4000..4010, Gpu { device: 0, stream: 13 }, 4100..4200, "main_42_gpu");
        }
        let report = look::report(&e);
        let sync =
            report.sites.iter().find(|s| s.api == "cudaDeviceSynchronize").expect("the synchronisation");
        assert_eq!(sync.fix.as_ref().map(|fix| &*fix.title), Some(title));
    }
}
