//! Traces of torch.profiler: spoiled bytes, and well-formed events that say impossible things.

use crate::export::trace::{MAIN, Trace};
use crate::random::Random;
use crate::{printed, runner};
use serde_json::{Value, json};
use std::fs;
use sync_report::analysis::Options;

#[test]
fn traces() {
    runner::run("traces", 0..60, &[], case);
}

/// Steps with a launch, a read and a wait on autograd's thread.
fn drawn(steps: u32) -> Trace {
    let mut t = Trace::new();
    let main = t.python("train.py(40): main", 0.0..1e6, 0, "");
    for i in 0..steps {
        let (at, id) = (f64::from(i) * 1000.0, i64::from(i) * 10);
        t.annotation(&format!("step {i}"), at + 5.0..at + 900.0);
        let step = t.python("train.py(10): step", at + 10.0..at + 800.0, main, "train.py:44");
        t.numbered("aten::index", MAIN, at + 18.0..at + 30.0, id);
        t.call("cudaLaunchKernel", at + 20.0..at + 26.0, id + 1).kernel(
            "gemm",
            at + 40.0..at + 130.0,
            id + 1,
        );
        t.python(
            "<built-in method item of Tensor object at 0x7f>",
            at + 98.0..at + 155.0,
            step,
            "train.py:14",
        );
        t.op("aten::item", at + 99.0..at + 154.0);
        t.call("cudaMemcpyAsync", at + 100.0..at + 104.0, id + 2);
        t.memcpy("DtoH (Device -> Pinned)", 4, at + 131.0..at + 133.0, id + 2);
        t.call("cudaStreamSynchronize", at + 105.0..at + 150.0, id + 3)
            .stream_sync(at + 106.0..at + 149.0, id + 3);
        t.numbered("autograd::engine::evaluate_function: IndexBackward0", 101, at + 200.0..at + 300.0, id);
        t.call_on(101, "cudaDeviceSynchronize", at + 210.0..at + 220.0, id + 4);
    }
    t.stop(f64::from(steps) * 1000.0);
    t
}

fn case(r: &Random) -> Result<(), String> {
    let mut trace = drawn(6);
    for _ in 0..r.below(40) {
        let at = r.below(trace.events.len());
        let event = &mut trace.events[at];
        let within = if r.one_in(2) { &mut event["args"] } else { event };
        let keys: Vec<String> = within.as_object().into_iter().flat_map(|map| map.keys().cloned()).collect();
        if let Some(key) = keys.get(r.below(keys.len())) {
            within[key] = odd(r);
        }
    }
    let mut bytes = trace.text().into_bytes();
    if r.one_in(3) {
        for _ in 0..r.below(8) {
            let at = r.below(bytes.len());
            bytes[at] = r.byte();
        }
    }
    if r.one_in(4) {
        bytes.truncate(r.below(bytes.len()));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json");
    fs::write(&path, bytes).expect("a copy");
    let options =
        Options { threads: 1, capture: r.one_in(4).then(|| "step".to_owned()), ..Options::default() };
    printed::in_some_format(&[path], &options, r)
}

fn odd(r: &Random) -> Value {
    match r.below(8) {
        0 => Value::Null,
        1 => json!(r.extreme()),
        2 => json!(r.extreme() as f64 * 1.5),
        3 => json!("train.py(4294967296): \u{202e}<script>\u{1b}[2J"),
        4 => json!(["x", {"y": [1]}]),
        5 => json!(r.below(300)),
        6 => json!(-1),
        _ => json!("cudaStreamSynchronize"),
    }
}
