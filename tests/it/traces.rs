//! Traces of torch.profiler, through the program.

use crate::cli::{Ran, program};
use crate::export::trace::{MAIN, Trace, write};
use crate::export::{GPU0, empty};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::Path;
use tempfile::TempDir;

fn report(path: &Path, options: &[&str]) -> Value {
    let path = path.to_str().expect("a path");
    let out = program(&[&[path, "--format", "json", "--top", "0", "-q"], options].concat());
    out.good().json()
}

fn sites(report: &Value) -> &[Value] {
    report["sites"].as_array().map_or(&[], Vec::as_slice)
}

/// Each site: class, place, how the place is known, waits.
fn places(report: &Value) -> Vec<String> {
    let place = |site: &Value| {
        let frame = &site["user_frame"];
        let (file, line, function) = (
            frame["file"].as_str().unwrap_or("-"),
            &frame["line"],
            frame["function"].as_str().unwrap_or("-"),
        );
        let how = site["attribution"].as_str().unwrap_or("-");
        format!("{} {file}:{line} {function} {how} {}", site["class"].as_str().unwrap_or("-"), site["waits"])
    };
    sites(report).iter().map(place).collect()
}

fn codes(report: &Value) -> Vec<&str> {
    report["warnings"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|warning| warning["code"].as_str())
        .collect()
}

/// A loop that reads a value in each of ten steps; from a line where `lines`.
///
/// ```text
///  python  [main                                            ]
///            [step                                        ]
///                      [item                  ]
///  op                   [aten::item          ]
///  host      |launch|    |memcpy||sync       |                 ten times, 1000 µs apart
///  stream 7     [gemm             ][copy]
///          0 10 20 40   100 110 112        150
/// ```
pub fn reading_loop(lines: bool) -> Trace {
    let mut t = Trace::new();
    let from = |line: &str| if lines { format!("train.py:{line}") } else { String::new() };
    let main = t.python("train.py(40): main", 0.0..11_000.0, 0, "");
    for i in 0..10 {
        let (at, id) = (f64::from(i) * 1000.0, i64::from(i) * 10);
        t.annotation(&format!("ProfilerStep#{i}"), at + 5.0..at + 900.0);
        let step = t.python("train.py(10): step", at + 10.0..at + 800.0, main, &from("44"));
        t.call("cudaLaunchKernel", at + 20.0..at + 26.0, id + 1).kernel(
            "gemm",
            at + 40.0..at + 130.0,
            id + 1,
        );
        t.python(
            "<built-in method item of Tensor object at 0x7f0767dbcb40>",
            at + 98.0..at + 155.0,
            step,
            &from("14"),
        );
        t.op("aten::item", at + 99.0..at + 154.0).op("aten::_local_scalar_dense", at + 99.5..at + 153.0);
        t.call("cudaMemcpyAsync", at + 100.0..at + 104.0, id + 2);
        t.memcpy("DtoH (Device -> Pinned)", 4, at + 131.0..at + 133.0, id + 2);
        t.call("cudaStreamSynchronize", at + 105.0..at + 150.0, id + 3)
            .stream_sync(at + 106.0..at + 149.0, id + 3);
    }
    t.stop(10_900.0);
    t
}

const SOURCE: &str = "import torch\n\n\ndef other(x):\n    return x.item()\n\n\n\n\ndef step(model, x):\n    y = model(x)\n    y = y + 1\n    if x.shape[0] > 3:\n        print(y.item())\n    return y\n";

#[test]
fn a_wait_has_its_line_its_function_and_its_operators() {
    let (_dir, path) = reading_loop(true).write();
    let found = report(&path, &[]);
    assert_eq!(places(&found), ["unknown train.py:14 step python-backtrace 10"]);
    let site = &sites(&found)[0];
    assert_eq!((&site["copy"]["host_memory"], &site["copy"]["bytes"]), (&json!("pinned"), &json!(4)));
    assert_eq!(site["per_iteration"], 1.0);
    assert_eq!(site["pattern"], "A01");
    let frames = site["frames"].as_array().expect("frames");
    let lines: Vec<String> =
        frames.iter().map(|f| format!("{}:{}", f["function"], f["line"]).replace('"', "")).collect();
    assert_eq!(lines, ["step:14", "main:44"]);
    assert_eq!(found["profiles"][0]["recorder"], "torch.profiler");
    assert_eq!(found["profiles"][0]["gpus"][0]["name"], "GPU");
    assert_eq!(found["iterations"]["count"], 10);
}

/// ```text
///  python  [nn.Module: Net_3                          ]
///  op         [aten::copy_                     ]        of a float64 tensor; non_blocking as given
///  host        |memcpy =====|   |sync===|
///  stream 7        [copy, pageable  ]
///          0   10  20       60   70      90
/// ```
#[test]
fn a_copy_says_what_is_copied_and_in_which_module() {
    for (given, title) in [
        ("False", "copy with non_blocking=True from pinned memory"),
        ("True", "pin the tensor it copies: non_blocking=True is there"),
    ] {
        let mut t = Trace::new();
        for i in 0..4 {
            let (at, id) = (f64::from(i) * 100.0, i64::from(i) * 10);
            let forward = t.python("net.py(10): forward", at..at + 95.0, 0, "");
            t.python("nn.Module: Net_3", at + 1.0..at + 94.0, forward, "");
            t.given(
                "aten::copy_",
                at + 5.0..at + 92.0,
                [
                    json!([[64, 2048], [64, 2048], []]),
                    json!(["float", "double", "Scalar"]),
                    json!(["", "", given]),
                ],
            );
            t.call("cudaMemcpyAsync", at + 10.0..at + 60.0, id + 1);
            t.memcpy("HtoD (Pageable -> Device)", 1 << 20, at + 20.0..at + 62.0, id + 1);
            t.call("cudaStreamSynchronize", at + 70.0..at + 90.0, id + 2);
        }
        let (_dir, path) = t.stop(500.0).write();
        let found = report(&path, &[]);
        let site = &sites(&found)[0];
        let operand = json!({"dtype": "float64", "sizes": [64, 2048], "non_blocking": given == "True"});
        assert_eq!(site["operand"], operand);
        assert_eq!(site["nvtx"], json!(["nn.Module::Net", "aten::copy_"]));
        assert_eq!(site["fix"]["title"], title);
        let out = program(&[path.to_str().expect("a path"), "--details", "S1"]);
        let said = format!("tensor     float64 [64, 2048], non_blocking={given}");
        assert!(out.good().stdout.contains(&said), "{}", out.stdout);
    }
}

/// PyTorch before 2.14 records the first line of a function, and no other.
#[test]
fn without_lines_the_function_is_named_and_its_one_line_found() {
    let (dir, path) = reading_loop(false).write();
    let found = report(&path, &[]);
    assert_eq!(places(&found), ["unknown train.py:0 step python-function 10"]);
    assert!(codes(&found).contains(&"functions-only"), "{:?}", codes(&found));
    fs::write(dir.path().join("train.py"), SOURCE).expect("written");
    let root = dir.path().to_str().expect("a path");
    let found = report(&path, &["--source-root", root]);
    assert_eq!(places(&found), ["false train.py:14 step python-found 10"]);
    // A second line that reads a value: either may be the one.
    fs::write(dir.path().join("train.py"), SOURCE.replace("y = y + 1", "z = x.item()")).expect("written");
    let found = report(&path, &["--source-root", root]);
    assert_eq!(places(&found), ["unknown train.py:0 step python-function 10"]);
}

#[test]
fn packed_bare_and_old_traces_say_the_same() {
    let trace = reading_loop(true);
    let (_dir, path) = trace.write();
    let expected = places(&report(&path, &[]));
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(trace.text().as_bytes()).expect("packed");
    let old = trace
        .text()
        .replace("cuda_runtime", "Runtime")
        .replace("\"kernel\"", "\"Kernel\"")
        .replace("gpu_memcpy", "Memcpy");
    let old = old.replace("cpu_op", "Operator");
    let bare = Value::from(trace.events.clone()).to_string();
    // ROCm has names of its own for calls.
    let hip = trace
        .text()
        .replace("\"cuda", "\"hip")
        .replace("hip_runtime", "cuda_runtime")
        .replace("hip_sync", "cuda_sync");
    for (name, text) in [
        ("a.pt.trace.json.gz", packed.finish().expect("packed")),
        ("old.json", old.into_bytes()),
        ("bare.json", bare.into_bytes()),
        ("hip.json", hip.into_bytes()),
    ] {
        let (_dir, path) = write(name, &text);
        assert_eq!(places(&report(&path, &[])), expected, "{name}");
    }
}

#[test]
fn a_trace_that_was_cut_is_read_to_where_it_ends() {
    let text = reading_loop(true).text();
    // Keys of an object stand in the order of their names: the header comes first.
    let sixth = text.match_indices("ProfilerStep#6").next().expect("there").0;
    let (_dir, path) = write("cut.json", &text.as_bytes()[..sixth]);
    let found = report(&path, &[]);
    assert_eq!(places(&found), ["unknown train.py:14 step python-backtrace 6"]);
    assert!(codes(&found).contains(&"unreadable-table"), "{:?}", codes(&found));
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text.as_bytes()).expect("packed");
    let packed = packed.finish().expect("packed");
    let (_dir, path) = write("cut.json.gz", &packed[..packed.len() / 2]);
    assert!(codes(&report(&path, &[])).contains(&"unreadable-table"));
}

/// A wait on autograd's thread is placed on the line that called `backward()`, and names the line whose
/// operator it undoes.
///
/// ```text
///  main      step  [aten::index, 6]  line 12        [backward() line 14 ..................]
///  autograd                                           [IndexBackward0, 6   [sync======]  ]
///                  20          40                     100     110          120       150  160
/// ```
#[test]
fn a_backward_wait_names_the_forward_line() {
    let mut t = Trace::new();
    let step = t.python("train.py(10): step", 0.0..200.0, 0, "");
    t.python("<built-in method index of type object at 0x7f>", 19.0..41.0, step, "train.py:12");
    t.numbered("aten::index", MAIN, 20.0..40.0, 6);
    t.call("cudaLaunchKernel", 22.0..26.0, 1).kernel("index", 30.0..60.0, 1);
    t.call("cudaMemcpyAsync", 44.0..46.0, 4).memcpy("HtoD (Pinned -> Device)", 64, 61.0..62.0, 4);
    let backward = t.python("torch/autograd/__init__.py(250): backward", 95.0..170.0, step, "train.py:14");
    t.python(
        "<built-in method run_backward of torch._C._EngineBase object at 0x7f>",
        96.0..169.0,
        backward,
        "torch/autograd/__init__.py:360",
    );
    t.numbered("autograd::engine::evaluate_function: IndexBackward0", 101, 100.0..160.0, 6);
    t.call_on(101, "cudaLaunchKernel", 105.0..108.0, 2).kernel("sort", 109.0..148.0, 2);
    t.call_on(101, "cudaStreamSynchronize", 120.0..150.0, 3).stream_sync(121.0..149.0, 3);
    let (_dir, path) = t.stop(180.0).write();
    let found = report(&path, &[]);
    assert_eq!(places(&found), ["false train.py:14 step backward 1"]);
    let backward = &sites(&found)[0]["backward"];
    assert_eq!((&backward["node"], &backward["forward"]["line"]), (&json!("IndexBackward0"), &json!(12)));
}

/// Kineto synchronises the device when it stops: no wait of the program's.
#[test]
fn the_profilers_own_wait_is_no_wait() {
    let mut t = Trace::new();
    t.call("cudaLaunchKernel", 20.0..26.0, 1).kernel("gemm", 40.0..130.0, 1).stop(200.0);
    let (_dir, path) = t.write();
    assert_eq!(report(&path, &[])["totals"]["waits"], 0);
    // The same call in the middle is the program's.
    t.call("cudaDeviceSynchronize", 50.0..131.0, 2);
    let (_dir, path) = t.write();
    assert_eq!(report(&path, &[])["totals"]["waits"], 1);
}

#[test]
fn what_is_no_trace_is_refused_in_one_line() {
    let whole = reading_loop(true).text();
    let broken = whole.replacen("{\"args\"", "{\"args\" 7", 1);
    let cut = whole.find("\"cuda_runtime\"").map(|first| &whole[..first]).expect("calls");
    let cpu = json!({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]});
    for (name, text, why) in [
        ("a.json", "{}", "no trace of torch.profiler"),
        ("a.json", "[]", "no trace of torch.profiler"),
        ("a.json", "{\"traceEvents\": 7}", "the trace is damaged"),
        ("a.json", &*broken, "the trace is damaged"),
        ("a.json", "hello", "no JSON"),
        ("a.json.gz", "hello", "no JSON"),
        ("a.json", "", "is empty"),
        ("a.json", &*cpu.to_string(), "holds no CUDA API calls; record again: with sync_report.profile"),
        ("a.json", cut, "holds no CUDA API calls before the place where it is cut off; record again"),
    ] {
        let (_dir, path) = write(name, text.as_bytes());
        program(&[path.to_str().expect("a path")]).refused(why);
    }
}

/// Any field may have any value: at worst the program ends with a sentence.
#[test]
fn odd_values_are_no_values() {
    let mut t = reading_loop(true);
    let odd = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!("x"),
        json!([1]),
        json!({"a": 1}),
        json!(u64::MAX),
    ];
    for key in ["ph", "cat", "name", "pid", "tid", "ts", "dur"] {
        for value in &odd {
            let mut event = t.events[3].clone();
            event[key] = value.clone();
            t.events.push(event);
        }
    }
    for key in
        ["correlation", "device", "context", "stream", "bytes", "CallFrom", "Python id", "Python parent id"]
    {
        for value in &odd {
            let mut event = t.events[5].clone();
            event["args"][key] = value.clone();
            t.events.push(event);
        }
    }
    let (_dir, path) = t.write();
    assert!(report(&path, &[])["totals"]["waits"].as_u64() >= Some(10));
}

#[test]
fn a_folder_of_traces_is_a_trace_a_rank() {
    let dir = TempDir::new().expect("a folder");
    // Other JSON is no rank.
    fs::write(dir.path().join("config.json"), r#"{"lr": 0.1}"#).expect("written");
    for rank in 0..2 {
        let mut trace = reading_loop(true);
        trace.header["distributedInfo"] = json!({"backend": "nccl", "rank": rank, "world_size": 2});
        let path = dir.path().join(format!("host_{rank}.pt.trace.json"));
        fs::write(path, trace.text()).expect("written");
    }
    let found = report(dir.path(), &[]);
    let ranks: Vec<&Value> =
        found["profiles"].as_array().expect("profiles").iter().map(|p| &p["rank"]).collect();
    assert_eq!(ranks, [0, 1]);
    assert_eq!(found["ranks"]["sites"].as_array().map(Vec::len), Some(1));
    // The same by the results of each rank; one alone is no report over ranks.
    let results: Vec<String> = (0..2)
        .map(|rank| {
            let [trace, out] = [format!("host_{rank}.pt.trace.json"), format!("out_{rank}")];
            let [trace, out] =
                [trace, out].map(|name| dir.path().join(name).to_str().expect("a path").to_owned());
            program(&[&*trace, "--format", "parquet", "-o", &out, "-q"]).good();
            out
        })
        .collect();
    let merged = program(&["merge", &results[0], &results[1], "--format", "json", "-q"]).good().json();
    assert_eq!(merged["ranks"]["sites"].as_array().map(Vec::len), Some(1));
    program(&["merge", &results[0], "-q"]).refused("one rank is no report over ranks");
}

fn run(arguments: &[&str]) -> Ran {
    let out = program(arguments);
    out.good();
    out
}

/// The sample's trace and its nsys capture are of one program.
#[test]
fn every_command_takes_a_trace() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/sample-profiles/train_mlp_torch.json.gz");
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/sample-profiles/train_mlp.sqlite");
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/sample-profiles/programs");
    let found = report(Path::new(trace), &["--source-root", sources]);
    assert_eq!(found["totals"]["waits"], 211);
    let lines: Vec<u64> =
        sites(&found).iter().filter_map(|site| site["user_frame"]["line"].as_u64()).collect();
    assert!([18, 19, 31].iter().all(|line| lines.contains(line)), "{lines:?}");
    assert!(run(&["doctor", trace]).stdout.contains("PyTorch 2.14 and later record lines"));
    assert!(run(&["diff", trace, trace]).stdout.contains("train_mlp"));
    assert!(run(&["diff", capture, trace]).stdout.contains("train_mlp"));
    assert!(run(&["fix", trace, "--source-root", sources]).stdout.contains("non_blocking=True"));
    assert_eq!(program(&["check", trace, "--fail-on", "any-avoidable"]).code, 1);
    assert!(
        run(&["replay", trace, "--site", "train_mlp.py:18", "--source-root", sources, "--plan"])
            .stdout
            .contains("sizes of the operator's NVTX range")
    );
    for format in ["csv", "markdown", "html", "sarif", "github", "perfetto"] {
        assert!(!run(&[trace, "--format", format, "-q"]).stdout.is_empty(), "{format}");
    }
    // The program's own trace for Perfetto is none of torch.profiler.
    let (_dir, path) = write("p.json", run(&[trace, "--format", "perfetto", "-q"]).stdout.as_bytes());
    program(&[path.to_str().expect("a path")]).refused("");
}

/// PyTorch 2.15 records the line of each call, of a method in C too.
#[test]
fn pytorch_2_15_tells_lines() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/data/torch2.15.json");
    let found = report(Path::new(trace), &[]);
    assert_eq!(places(&found), ["unknown <stdin>:6 helper python-backtrace 2"]);
}

/// Calls that a CUDA graph cannot hold are in the range and outside of it.
///
/// ```text
///  range     [forward                                                     ]
///  host        |launch|  |cudaMalloc| |query| |memcpy, pinned| |launch|      |cudaMalloc|
///  stream 7     [gemm]                          [copy]
///  stream 9                                                      [side]
///             0 10  20   30          40      50              60  70     90   100
/// ```
#[test]
fn what_keeps_a_range_from_being_a_graph_is_listed_with_its_lines() {
    let mut t = Trace::new();
    let step = t.python("train.py(10): step", 0.0..200.0, 0, "");
    t.annotation("forward", 1.0..90.0);
    t.call("cudaLaunchKernel", 10.0..14.0, 1).kernel("gemm", 15.0..20.0, 1);
    t.python("<built-in method empty of type object at 0x7f>", 29.0..36.0, step, "train.py:12");
    t.call("cudaMalloc", 30.0..35.0, 2);
    t.python("<built-in method query of Event object at 0x7f>", 39.0..43.0, step, "train.py:13");
    t.call("cudaEventQuery", 40.0..42.0, 3);
    t.python("<built-in method copy_ of Tensor object at 0x7f>", 49.0..56.0, step, "train.py:14");
    t.call("cudaMemcpyAsync", 50.0..54.0, 4).memcpy("HtoD (Pinned -> Device)", 4096, 55.0..58.0, 4);
    t.call("cudaLaunchKernel", 60.0..64.0, 5).kernel("side", 70.0..80.0, 5);
    t.events.last_mut().expect("a kernel")["args"]["stream"] = json!(9);
    t.call("cudaLaunchKernel", 65.0..68.0, 6).kernel("gemm", 70.0..80.0, 6);
    let (_dir, path) = t.call("cudaMalloc", 100.0..105.0, 7).stop(180.0).write();
    let found = report(&path, &["--graph-ready", "forward"]);
    let row = |one: &Value| {
        format!("{} {} {}", one["kind"].as_str().unwrap_or(""), one["user_frame"]["line"], one["calls"])
    };
    let rows: Vec<String> = found["graph_breaks"].as_array().expect("a list").iter().map(row).collect();
    assert_eq!(rows, ["allocation 12 1", "cpu-tensor 14 1", "query 13 1", "other-stream null 1"]);
    let shown =
        program(&[path.to_str().expect("a path"), "--graph-ready", "forward", "-q"]).good().stdout.clone();
    assert!(shown.starts_with("3 places that are no wait keep `forward` from being captured"), "{shown}");
    assert!(shown.contains("train.py:12 step"), "{shown}");
    assert_eq!(report(&path, &[])["graph_breaks"], Value::Null);
}

/// As above, in a capture of nsys with backtraces of all calls.
///
/// ```text
///  range     [forward                      ]
///  host        |launch|  |cudaMalloc|           |cudaMalloc|
/// ```
#[test]
fn a_capture_of_nsys_lists_them_too() {
    let (mut e, thread) = empty();
    e.nvtx(thread, 0..1_000, "forward");
    e.launch(thread, 100..140, GPU0, 150..300, "gemm");
    let call = e.call(thread, "cudaMalloc", 400..500);
    e.python(call, &[("step", "/w/train.py", 24)]);
    e.call(thread, "cudaMalloc", 2_000..2_100);
    let wait = e.sync(thread, "cudaStreamSynchronize", 600..700, GPU0);
    e.python(wait, &[("step", "/w/train.py", 30)]);
    let (_dir, path) = e.write_temp();
    let found = report(&path, &["--graph-ready", "forward"]);
    let breaks = found["graph_breaks"].as_array().expect("a list");
    assert_eq!(breaks.len(), 1);
    assert_eq!((&breaks[0]["kind"], &breaks[0]["user_frame"]["line"]), (&json!("allocation"), &json!(24)));
}
