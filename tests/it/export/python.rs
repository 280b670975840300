//! Backtraces of calls (Python frames and native chains) and periodic samples.

use super::{Call, Export, Row, Schema, Thread, row};
use rusqlite::types::Value;
use std::ops::Range;

/// Function, file and line of a Python frame, as in the source: `<module>`, not `&lt;module&gt;`.
pub type PythonFrame<'a> = (&'a str, &'a str, i64);

/// Symbol and module of a native frame. A symbol that starts with `0x` is unresolved.
pub type NativeFrame<'a> = (&'a str, &'a str);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// `--include-json=true`
    Json,
    /// `--include-blobs=true`
    Blob,
    Both,
    /// Neither, the default of `nsys export`: the marks stand there without frames.
    Nothing,
}

const ON_CUDA: &str = "Python Backtrace on CUDA";
const PERIODIC: &str = "Python Periodic Sampling";
/// Both domains, in versions that export no payload.
const BEFORE_PAYLOADS: &str = "Python Backtrace";
/// How much wider a twin is than its call on either side.
const TWIN_MARGIN: i64 = 30;
/// Ids of the payload's schema and of the schema of one frame.
const PAYLOAD_SCHEMA: i64 = 4294967301;
const FRAME_SCHEMA: i64 = 4294967299;

impl Export {
    /// Sets the payload of marks made from now on.
    pub fn payload(&mut self, payload: Payload) -> &mut Self {
        self.payload = payload;
        self
    }

    /// The Python frames of a call, innermost first: its twin and a mark that starts with the twin.
    pub fn python(&mut self, call: Call, frames: &[PythonFrame<'_>]) -> &mut Self {
        self.twin(call);
        self.mark(ON_CUDA, call.thread, call.start - TWIN_MARGIN, frames)
    }

    /// The native frames of a call, innermost first: its twin and a chain. The four frames of CUPTI and the driver
    /// that precede every chain are added.
    pub fn native(&mut self, call: Call, frames: &[NativeFrame<'_>]) -> &mut Self {
        let twin = self.twin(call);
        // nsys counts these from 0, and 0 is a chain like any other.
        let id = self.next("cuda chain", 0) - 1;
        // Chains were counted from 1 until 2022.2, calls were not.
        let chain_id = id + i64::from(self.schema <= Schema::V2022_1);
        let tracer = [("0x7f01", "/opt/nvidia/nsight-systems/target-linux-x64/libcupti.so.13.0"); 3];
        let driver = [("0x7f02", "/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04")];
        let chain: Vec<_> = tracer.into_iter().chain(driver).chain(frames.iter().copied()).collect();
        self.chain("CUDA_CALLCHAINS", chain_id, &chain);
        let rows = self.rows.get_mut("CUPTI_ACTIVITY_KIND_RUNTIME").expect("the twin stands there");
        set(&mut rows[twin], "callchainId", id);
        self
    }

    /// One periodic Python sample, frames innermost first.
    pub fn sample(&mut self, thread: Thread, at: i64, frames: &[PythonFrame<'_>]) -> &mut Self {
        self.mark(PERIODIC, thread, at, frames)
    }

    pub fn cpu_sample(&mut self, thread: Thread, at: i64, frames: &[NativeFrame<'_>]) -> &mut Self {
        let id = self.next("cpu sample", 0);
        self.row(
            "COMPOSITE_EVENTS",
            row! { id: id, start: at, cpu: 0, threadState: 1, globalTid: thread.global_tid(), cpuCycles: 1 },
        );
        self.chain("SAMPLING_CALLCHAINS", id, frames);
        self
    }

    /// A call of the operating system's library, with a chain unless `frames` is empty.
    pub fn osrt(&mut self, t: Thread, api: &str, at: Range<i64>, frames: &[NativeFrame<'_>]) -> &mut Self {
        let id = if frames.is_empty() { 0 } else { self.next("osrt chain", 0) };
        let name = self.string(api);
        self.row(
            "OSRT_API",
            row! {
                start: at.start, end: at.end, eventClass: 27, globalTid: t.global_tid(), nameId: name,
                callchainId: id, nestingLevel: 0
            },
        );
        self.chain("OSRT_CALLCHAINS", id, frames);
        self
    }

    /// A stretch in which the scheduler left a thread without a CPU.
    pub fn off_cpu(&mut self, t: Thread, at: Range<i64>) -> &mut Self {
        for (start, comes) in [(at.start, 0), (at.end, 1)] {
            self.row(
                "SCHED_EVENTS",
                row! { start: start, cpu: 0, isSchedIn: comes, globalTid: t.global_tid(), threadState: 0 },
            );
        }
        self
    }

    /// The second row that a call with a backtrace has: slightly wider, without the version suffix, class 67.
    fn twin(&mut self, call: Call) -> usize {
        if let Some(&twin) = self.twins.get(&call.row) {
            return twin;
        }
        let name = self.name_of(call);
        let name = self.string(super::unsuffixed(&name));
        let twin = self.row(
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            row! {
                start: call.start - TWIN_MARGIN, end: call.end + TWIN_MARGIN, eventClass: 67, nameId: name,
                globalTid: call.thread.global_tid(), correlationId: call.correlation, callchainId: Value::Null
            },
        );
        self.twins.insert(call.row, twin);
        twin
    }

    fn name_of(&self, call: Call) -> String {
        let row = &self.rows["CUPTI_ACTIVITY_KIND_RUNTIME"][call.row];
        match row.iter().find(|(column, _)| *column == "nameId") {
            Some((_, Value::Integer(id))) => self.strings[*id as usize - 1].clone(),
            _ => unreachable!("every call has a name"),
        }
    }

    fn chain(&mut self, table: &'static str, id: i64, frames: &[NativeFrame<'_>]) {
        for (depth, (symbol, module)) in frames.iter().enumerate() {
            let unresolved = symbol.starts_with("0x").then_some(1);
            let (symbol, module) = (self.string(symbol), self.string(module));
            self.row(
                table,
                row! {
                    id: id, symbol: symbol, module: module, unresolved: unresolved,
                    originalIP: 0x7f00_0000_0000 + depth as i64, unwindMethod: 1, stackDepth: depth as i64
                },
            );
        }
    }

    fn mark(&mut self, label: &str, t: Thread, at: i64, frames: &[PythonFrame<'_>]) -> &mut Self {
        let frames: Vec<_> = frames
            .iter()
            .map(|(function, file, line)| (self.string(&escaped(function)), self.string(file), *line))
            .collect();
        let domain = self.python_domain(label, t);
        let mut mark = row! { start: at, eventType: 34, globalTid: t.global_tid(), domainId: domain, color: 4294944000i64 };
        if self.schema.exports_payloads() && !frames.is_empty() {
            mark.extend(self.payload.columns(label, &frames));
        }
        self.row("NVTX_EVENTS", mark);
        self
    }

    /// The domain's id, with its creation row and payload layout at first use.
    fn python_domain(&mut self, label: &str, t: Thread) -> i64 {
        let name = if self.schema.exports_payloads() { label } else { BEFORE_PAYLOADS };
        let fresh = !self.domains.contains_key(&(t.pid, name.to_owned()));
        let id = self.domain(t, name);
        if fresh {
            self.payload_layout(label, id);
        }
        id
    }

    /// Rows of NVTX_PAYLOAD_SCHEMAS and _ENTRIES about the blobs.
    fn payload_layout(&mut self, label: &str, domain: i64) {
        for (schema, name, entries, size) in
            [(PAYLOAD_SCHEMA, Some(label.to_owned()), 4, None), (FRAME_SCHEMA, None, 3, Some(24))]
        {
            self.row(
                "NVTX_PAYLOAD_SCHEMAS",
                row! {
                    domainId: domain, schemaId: schema, name: name, type: 2, numEntries: entries, payloadSize: size
                },
            );
        }
        let entries: [(i64, i64, &str, i64, Option<i64>); 7] = [
            (PAYLOAD_SCHEMA, 0, "Thread state ID", 18, None),
            (PAYLOAD_SCHEMA, 1, "Thread state", 4294967300, Some(8)),
            (PAYLOAD_SCHEMA, 2, "Frames count", 16, Some(12)),
            (PAYLOAD_SCHEMA, 3, "Frames", FRAME_SCHEMA, Some(16)),
            (FRAME_SCHEMA, 0, "Function", 80, None),
            (FRAME_SCHEMA, 1, "File", 80, Some(8)),
            (FRAME_SCHEMA, 2, "Line", 5, Some(16)),
        ];
        for (schema, index, name, kind, offset) in entries {
            self.row(
                "NVTX_PAYLOAD_SCHEMA_ENTRIES",
                row! {
                    domainId: domain, schemaId: schema, idx: index, type: kind, name: name.to_owned(), offset: offset
                },
            );
        }
    }

    /// Whether the version would have kept frames at all.
    pub fn keeps_payloads(&self) -> bool {
        self.schema >= Schema::V2024_6
    }
}

impl Payload {
    fn columns(self, label: &str, frames: &[(i64, i64, i64)]) -> Row {
        let json = matches!(self, Payload::Json | Payload::Both).then(|| json(label, frames));
        let blob = matches!(self, Payload::Blob | Payload::Both).then(|| blob(frames));
        row! { jsonText: json, binaryData: blob }
    }
}

/// The payload as `--include-json` writes it.
pub fn json(label: &str, frames: &[(i64, i64, i64)]) -> String {
    let listed: Vec<_> = frames
        .iter()
        .map(|(function, file, line)| format!(r#"{{"Function":{function},"File":{file},"Line":{line}}}"#))
        .collect();
    format!(
        r#"{{"{label}":{{"Thread state ID":1,"Thread state":"Running","Frames count":{},"Frames":[{}]}}}}"#,
        frames.len(),
        listed.join(",")
    )
}

/// The payload as `--include-blobs` writes it, with the four uninitialised bytes after each line.
pub fn blob(frames: &[(i64, i64, i64)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [1, PAYLOAD_SCHEMA, 16 + 24 * frames.len() as i64, 32, 1] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(1u32.to_le_bytes());
    bytes.extend((frames.len() as u32).to_le_bytes());
    for (function, file, line) in frames {
        bytes.extend(function.to_le_bytes());
        bytes.extend(file.to_le_bytes());
        bytes.extend((*line as i32).to_le_bytes());
        bytes.extend([0xFD, 0x7F, 0, 0]);
    }
    bytes
}

/// nsys escapes function names for HTML.
fn escaped(function: &str) -> String {
    function.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn set(row: &mut Row, column: &str, value: i64) {
    for (name, old) in row {
        if *name == column {
            *old = Value::Integer(value);
        }
    }
}
