//! A builder of traces as torch.profiler writes them. Times are µs.

use serde_json::{Value, json};
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use tempfile::TempDir;

/// The process, its main thread, and the GPU's stream of all events.
const PID: i64 = 100;
pub const MAIN: i64 = 100;
const STREAM: i64 = 7;

pub struct Trace {
    pub events: Vec<Value>,
    pub header: Value,
    python: i64,
}

impl Trace {
    pub fn new() -> Self {
        let gpu = json!([{"id": 0, "name": "GPU", "computeMajor": 9, "computeMinor": 0, "numSms": 132}]);
        let header = json!({"deviceProperties": gpu, "baseTimeNanoseconds": 1_790_857_026_000_000_000_i64});
        Self { events: Vec::new(), header, python: 0 }
    }

    fn event(&mut self, cat: &str, name: &str, tid: i64, at: Range<f64>, args: Value) -> &mut Self {
        let duration = at.end - at.start;
        let event = json!({"ph": "X", "cat": cat, "name": name, "pid": PID, "tid": tid, "ts": at.start, "dur": duration, "args": args});
        self.events.push(event);
        self
    }

    pub fn call(&mut self, name: &str, at: Range<f64>, correlation: i64) -> &mut Self {
        self.event("cuda_runtime", name, MAIN, at, json!({"correlation": correlation}))
    }

    pub fn call_on(&mut self, tid: i64, name: &str, at: Range<f64>, correlation: i64) -> &mut Self {
        self.event("cuda_runtime", name, tid, at, json!({"correlation": correlation}))
    }

    /// An operator, or autograd's node of it.
    pub fn numbered(&mut self, name: &str, tid: i64, at: Range<f64>, sequence: i64) -> &mut Self {
        self.event("cpu_op", name, tid, at, json!({"Sequence number": sequence}))
    }

    fn on_gpu(correlation: i64, more: &Value) -> Value {
        let mut args = json!({"device": 0, "context": 1, "stream": STREAM, "correlation": correlation});
        let more = more.as_object().into_iter().flatten();
        args.as_object_mut()
            .expect("an object")
            .extend(more.map(|(key, value)| (key.clone(), value.clone())));
        args
    }

    pub fn kernel(&mut self, name: &str, at: Range<f64>, correlation: i64) -> &mut Self {
        let args = Self::on_gpu(correlation, &json!({"grid": [64, 1, 1], "block": [128, 1, 1]}));
        self.event("kernel", name, STREAM, at, args)
    }

    /// `how`: "DtoH (Device -> Pinned)".
    pub fn memcpy(&mut self, how: &str, bytes: i64, at: Range<f64>, correlation: i64) -> &mut Self {
        let args = Self::on_gpu(correlation, &json!({"bytes": bytes}));
        self.event("gpu_memcpy", &format!("Memcpy {how}"), STREAM, at, args)
    }

    pub fn stream_sync(&mut self, at: Range<f64>, correlation: i64) -> &mut Self {
        self.event(
            "cuda_sync",
            "Stream Sync",
            STREAM,
            at,
            Self::on_gpu(correlation, &json!({"cuda_sync_kind": "Stream Sync"})),
        )
    }

    pub fn op(&mut self, name: &str, at: Range<f64>) -> &mut Self {
        self.event("cpu_op", name, MAIN, at, json!({"External id": 1}))
    }

    pub fn given(&mut self, name: &str, at: Range<f64>, tensors: [Value; 3]) -> &mut Self {
        let [sizes, types, values] = tensors;
        let args = json!({"Input Dims": sizes, "Input type": types, "Concrete Inputs": values});
        self.event("cpu_op", name, MAIN, at, args)
    }

    pub fn annotation(&mut self, name: &str, at: Range<f64>) -> &mut Self {
        self.event("user_annotation", name, MAIN, at, json!({}))
    }

    /// A Python function or a method in C, called from `from` unless empty; returns its number.
    pub fn python(&mut self, name: &str, at: Range<f64>, parent: i64, from: &str) -> i64 {
        self.python += 1;
        let mut args = json!({"Python id": self.python, "Python parent id": parent});
        if !from.is_empty() {
            args["CallFrom"] = from.into();
        }
        self.event("python_function", name, MAIN, at, args);
        self.python
    }

    /// Kineto stops, and synchronises the device.
    pub fn stop(&mut self, at: f64) -> &mut Self {
        self.call("cudaDeviceSynchronize", at..at + 4.0, 999_999)
    }

    pub fn text(&self) -> String {
        let mut all = self.header.clone();
        all["traceEvents"] = self.events.clone().into();
        all.to_string()
    }

    pub fn write(&self) -> (TempDir, PathBuf) {
        write("trace.json", self.text().as_bytes())
    }
}

pub fn write(name: &str, bytes: &[u8]) -> (TempDir, PathBuf) {
    let dir = TempDir::new().expect("a folder");
    let path = dir.path().join(name);
    fs::write(&path, bytes).expect("written");
    (dir, path)
}
