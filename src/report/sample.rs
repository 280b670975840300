//! One report for the tests of all renderers: every way to place a wait, every class, names that attack.

use super::*;
use crate::vocabulary::{Direction, HostMemory};

const TORCH: &str = "/opt/conda/lib/python3.12/site-packages/torch";

/// Two ranks; seven sites, ranked.
pub(crate) fn sample() -> Report {
    Report {
        schema_version: 1,
        tool: Tool { name: "sync-report", version: "0.1.0" },
        profiles: vec![profile("rank0.sqlite", 0), profile("rank1.sqlite", 1)],
        totals: totals(),
        iterations: Some(Iterations {
            source: "NVTX ranges `iteration N`".to_owned(),
            count: 100,
            median_ns: 24_100_000,
            mean_ns: 24_300_000,
            quartiles_ns: [23_900_000, 24_100_000, 24_600_000],
            gpu_busy_ns: 14_700_000,
            waits_per_iteration: 12.34,
        }),
        sites: vec![upload(), control_flow(), sampled(), native(), autograd(), nvtx(), hostile()],
        sites_omitted: 5,
        waits_filtered_out: 0,
        warnings: vec![
            Warning {
                code: "python-payload-missing",
                message:
                    "12 % of the waits have no Python frames: the capture did not ask for them at every call."
                        .to_owned(),
                fix:
                    "nsys profile --python-backtrace=cuda --cudabacktrace=sync:0 -t cuda,nvtx,osrt -o better \
                      python train_mlp.py"
                        .to_owned(),
            },
            Warning { code: "events-lost", message: "nsys lost 3 events.".to_owned(), fix: String::new() },
        ],
        timelines: Vec::new(),
    }
}

/// One profile, one process, the main thread: what most users see.
pub(crate) fn single() -> Report {
    let mut report = sample();
    report.profiles.truncate(1);
    report.sites = vec![upload(), control_flow(), sampled()];
    report.sites_omitted = 0;
    report.warnings.clear();
    for site in &mut report.sites {
        site.recoverable = None;
        site.device = Some(0);
        site.process = Process { pid: 4242, name: Some("python".to_owned()), profile: 0 };
        site.thread.tid = 4242;
    }
    report.totals.recoverable_false_joint_ns = None;
    (report.totals.recoverable_low_ns, report.totals.recoverable_high_ns) = (None, None);
    report.totals.by_class.false_.recoverable_ns = None;
    report
}

/// A capture without waits.
pub(crate) fn empty() -> Report {
    let mut report = single();
    report.sites.clear();
    report.iterations = None;
    report.totals = Totals { gpu_busy_ns: 1_000, gpu_idle_ns: 0, ..Totals::default() };
    report
}

fn profile(path: &str, index: u32) -> ProfileInfo {
    ProfileInfo {
        path: format!("/data/runs/{path}"),
        export_version: Some("2025.3.2.0".to_owned()),
        schema: Some("3.20.3".to_owned()),
        span_ns: 12_412_000_000,
        gpus: vec![Gpu {
            id: index,
            name: Some("NVIDIA H200".to_owned()),
            span_ns: 12_400_000_000,
            busy_ns: 7_588_800_000,
            idle_ns: 4_811_200_000,
            drain_ns: 3_430_000_000,
        }],
        processes: vec![Process {
            pid: 4242 + index,
            name: Some("python".to_owned()),
            profile: index as usize,
        }],
        command: Some("python train_mlp.py --steps 100".to_owned()),
        backtraces: "python",
        launch_ns: Some(5_200),
    }
}

fn totals() -> Totals {
    let class = |waits, sites, blocked_ns, drain_ns, recoverable_ns| ClassTotals {
        waits,
        sites,
        blocked_ns,
        drain_ns,
        recoverable_ns,
    };
    Totals {
        waits: 1_234,
        sites: 12,
        blocked_ns: 4_120_000_000,
        gpu_busy_ns: 15_177_600_000,
        gpu_idle_ns: 9_622_400_000,
        drain_ns: 6_860_000_000,
        by_class: ByClass {
            false_: class(733, 6, 2_210_000_000, 3_900_000_000, Some(1_620_000_000)),
            true_: class(301, 4, 1_400_000_000, 2_560_000_000, None),
            unknown: class(200, 2, 510_000_000, 400_000_000, None),
        },
        recoverable_false_joint_ns: Some(1_620_000_000),
        recoverable_low_ns: Some(1_100_000_000),
        recoverable_high_ns: Some(2_050_000_000),
        recoverable_percent: Some(13.1),
        bound_by: Some("gpu"),
        simulation_error: Some(0.021),
        usual_latency_error: Some(0.034),
        range_scatter_ns: Some(210_000_000),
        collectives: 0,
        without_profiler: Some(WithoutProfiler {
            run_ns: 11_900_000_000,
            saved_ns: 1_580_000_000,
            low_ns: 1_490_000_000,
            high_ns: 1_660_000_000,
        }),
        replayed: None,
    }
}

/// What a replay measured, on a GPU whose name is hostile.
pub fn replayed() -> Replayed {
    Replayed {
        gpu: "NVIDIA \u{1b}[31mH200".to_owned(),
        stretch_ns: 4_620_000,
        saving_ns: 58_200,
        saving_low_ns: 55_200,
        saving_high_ns: 61_200,
        percent: 1.26,
        predicted_ns: Some(61_635),
    }
}

fn frame(function: &str, file: &str, line: u32, user: bool) -> Frame {
    Frame { function: function.to_owned(), file: file.to_owned(), line, user }
}

/// A site with middling numbers, to vary.
fn site(id: &str, class: Class, kind: Kind, confidence: f64) -> Site {
    debug_assert_eq!(kind.class(), class);
    let blocked_ns = 412_000_000;
    Site {
        id: id.to_owned(),
        key: format!("{id}-key"),
        api: "cudaStreamSynchronize".to_owned(),
        driver_api: DriverApi::StreamSynchronize,
        class,
        kind,
        confidence,
        pattern: None,
        evidence: Vec::new(),
        attribution: Attribution::PythonBacktrace,
        attribution_note: String::new(),
        frames: Vec::new(),
        user_frame: None,
        caller: None,
        native: Vec::new(),
        nvtx: Vec::new(),
        source: None,
        snippet: None,
        thread: Thread {
            tid: 4242,
            name: Some("python".to_owned()),
            role: ThreadRole::Python,
            main: true,
            count: 1,
        },
        process: Process { pid: 4242, name: Some("python".to_owned()), profile: 0 },
        device: Some(0),
        stream: Some(7),
        copy: None,
        copy_bytes_max: None,
        waits: 100,
        per_iteration: Some(1.0),
        blocked_per_iteration_ns: Some(4_120_000),
        drain_per_iteration_ns: Some(3_010_000),
        spread: Some(Spread {
            per: "iteration",
            samples: 100,
            waits: [1; 3],
            blocked_ns: [3_800_000, 3_910_000, 4_050_000],
            drain_ns: [2_850_000, 2_900_000, 3_000_000],
        }),
        blocked_ns,
        blocked_p50_ns: 3_910_000,
        blocked_p99_ns: 9_120_000,
        blocked_max_ns: 14_200_000,
        blocked_percent: 3.32,
        drain_ns: 301_000_000,
        drain_p50_ns: 2_900_000,
        drain_max_ns: 9_100_000,
        drain_percent: 2.43,
        found_idle: 0,
        start_up: None,
        blocks_capture: true,
        recoverable: None,
        replayed: None,
        fix: None,
        histogram: Vec::new(),
        examples: Vec::new(),
    }
}

fn copy(direction: Direction, bytes: u64, host_memory: HostMemory) -> Option<Copy> {
    Some(Copy { direction, bytes, host_memory })
}

fn fix(title: &str) -> Option<Fix> {
    Some(Fix {
        order: 2,
        strategy: "make the copy asynchronous".to_owned(),
        title: title.to_owned(),
        why: "A copy from pageable memory goes through a staging buffer, so the call returns only when the GPU is \
              done with everything before it."
            .to_owned(),
        before: "x = batch.to(\"cuda\")".to_owned(),
        after: "batch = batch.pin_memory()\nx = batch.to(\"cuda\", non_blocking=True)".to_owned(),
        caveat: "Do not write to the pinned tensor before the copy has ended.".to_owned(),
        here: Some(Rewrite {
            before: "batch.to(\"cuda\")".to_owned(),
            after: "batch.to(\"cuda\", non_blocking=True)".to_owned(),
        }),
        confirm: "torch.cuda.set_sync_debug_mode(\"warn\")".to_owned(),
    })
}

fn upload() -> Site {
    let user = frame("step", "/home/ada/mlp/train_mlp.py", 18, true);
    Site {
        key: "train_mlp.py:step:x = batch.to(\"cuda\"):cudaMemcpyAsync".to_owned(),
        pattern: Some("B02".to_owned()),
        evidence: vec![
            Evidence::new("R03", "the source line uploads `batch` and never reads it back on the CPU"),
            Evidence::new(
                "S04",
                "all 100 copies of 512 KiB come from pageable memory, followed by a stream sync",
            ),
        ],
        frames: vec![user.clone(), frame("<module>", "/home/ada/mlp/train_mlp.py", 88, true)],
        user_frame: Some(user),
        native: vec![
            "at::native::copy_kernel_cuda(at::TensorIterator&, bool)".to_owned(),
            "torch::autograd::THPVariable_to(_object*, _object*, _object*)".to_owned(),
        ],
        nvtx: vec!["iteration 41".to_owned(), "forward".to_owned()],
        source: Some("    x = batch.to(\"cuda\")".to_owned()),
        snippet: Some(Snippet {
            first_line: 17,
            lines: ["def step(batch, i):", "    x = batch.to(\"cuda\")", "    loss = model(x)"]
                .map(str::to_owned)
                .to_vec(),
        }),
        copy: copy(Direction::HostToDevice, 524_288, HostMemory::Pageable),
        blocked_ns: 1_534_000_000,
        blocked_percent: 12.36,
        drain_ns: 1_003_000_000,
        drain_percent: 8.09,
        found_idle: 3,
        recoverable: Some(Recoverable {
            alone_ns: 912_000_000,
            joint_ns: 930_000_000,
            low_ns: 600_000_000,
            high_ns: 1_003_000_000,
            per_iteration_ns: Some(912_000),
            percent: 7.35,
            change: "pinned",
            simulated: true,
            moves_to: Some("S2".to_owned()),
            bounds: Bounds {
                each_high_ns: 871_000_000,
                each_low_ns: 1_300_000,
                together_high_ns: 954_000_000,
                beside_ns: 49_000_000,
            },
        }),
        fix: fix("Pin the batch and copy with non_blocking=True"),
        histogram: vec![(1_048_576, 2), (2_097_152, 0), (4_194_304, 61), (8_388_608, 31), (16_777_216, 6)],
        examples: vec![
            Example {
                start_ns: 5_123_456_789,
                end_ns: 5_137_656_789,
                blocked_ns: 14_200_000,
                drain_ns: 9_100_000,
                awaited: Some("ampere_sgemm_128x64_tn on stream 7".to_owned()),
            },
            Example {
                start_ns: 1_234_567_890,
                end_ns: 1_238_567_890,
                blocked_ns: 4_000_000,
                drain_ns: 0,
                awaited: None,
            },
        ],
        ..site("S1", Class::False, Kind::Upload, 0.953)
    }
}

fn control_flow() -> Site {
    let user = frame("training_loop_with_early_stopping", "/home/ada/mlp/utils/loop.py", 204, true);
    Site {
        attribution: Attribution::PythonBacktrace,
        frames: vec![frame("__bool__", &format!("{TORCH}/_tensor.py"), 42, false), user.clone()],
        user_frame: Some(user),
        copy: copy(Direction::DeviceToHost, 1, HostMemory::Pageable),
        process: Process { pid: 4243, name: Some("python".to_owned()), profile: 1 },
        thread: Thread { tid: 4243, name: None, role: ThreadRole::Python, main: true, count: 1 },
        device: Some(1),
        fix: fix("Test every 50 steps, or keep the decision on the GPU with torch.where"),
        ..site("S2", Class::True, Kind::ControlFlow, 0.88)
    }
}

fn sampled() -> Site {
    let user = frame("log_metrics", "/home/ada/mlp/eval/loop.py", 31, true);
    Site {
        attribution: Attribution::PythonSample,
        attribution_note: "31 of 40 samples agree".to_owned(),
        frames: vec![user.clone()],
        user_frame: Some(user),
        copy: copy(Direction::DeviceToHost, 4, HostMemory::Pageable),
        waits: 33,
        per_iteration: Some(0.33),
        blocked_percent: 0.04,
        blocked_ns: 4_980_000,
        drain_ns: 0,
        drain_percent: 0.0,
        fix: fix("See what becomes of the value; delay the read by a step"),
        ..site("S3", Class::Unknown, Kind::ValueRead, 0.4)
    }
}

fn native() -> Site {
    Site {
        attribution: Attribution::Native,
        api: "cudaMemcpyAsync".to_owned(),
        native: vec![
            "void at::native::nonzero_cuda_out_impl<float>(at::Tensor const&, at::Tensor&)".to_owned(),
            "at::native::nonzero_cuda(at::Tensor const&)".to_owned(),
        ],
        copy: copy(Direction::DeviceToHost, 8, HostMemory::Unknown),
        waits: 200,
        per_iteration: Some(2.0),
        fix: fix("Use a mask of fixed size in place of nonzero()"),
        ..site("S4", Class::True, Kind::DynamicShape, 0.97)
    }
}

fn autograd() -> Site {
    Site {
        attribution: Attribution::Native,
        native: vec!["torch::autograd::generated::EmbeddingBackward0::apply(variable_list&&)".to_owned()],
        thread: Thread {
            tid: 4310,
            name: Some("pt_autograd_0".to_owned()),
            role: ThreadRole::Autograd,
            main: false,
            count: 2,
        },
        api: "cudaFree".to_owned(),
        driver_api: DriverApi::MemFree,
        waits: 4,
        per_iteration: Some(0.004),
        blocked_ns: 88_000_000,
        ..site("S5", Class::False, Kind::Allocator, 0.7)
    }
}

fn nvtx() -> Site {
    Site {
        attribution: Attribution::Nvtx,
        nvtx: vec!["iteration 7".to_owned(), "模型 🚀 forward".to_owned()],
        api: "cudaDeviceSynchronize".to_owned(),
        driver_api: DriverApi::CtxSynchronize,
        waits: 1_048_576,
        per_iteration: None,
        device: None,
        stream: None,
        ..site("S6", Class::False, Kind::Explicit, 1.0)
    }
}

/// Names of a program that attacks terminal and spreadsheet.
fn hostile() -> Site {
    let user = frame("=HYPERLINK(\"http://x\")", "/tmp/\u{1b}[2Ja\u{202e}yp.b\n.py", 1, true);
    Site {
        frames: vec![user.clone()],
        user_frame: Some(user),
        nvtx: vec!["\u{9b}31m".to_owned()],
        source: Some("@evil(\"\u{1b}]0;owned\u{7}\")".to_owned()),
        thread: Thread {
            tid: 77,
            name: Some("\u{1b}c".to_owned()),
            role: ThreadRole::Library,
            main: false,
            count: 1,
        },
        ..site("S7", Class::Unknown, Kind::Unattributed, f64::NAN)
    }
}
