//! Writes small but real Nsight Systems exports, in the layout of several nsys versions.
//!
//! A test draws the timeline it wants and hands over the calls as it would read them off that drawing:
//!
//! ```text
//! host    |launch|        |======== cudaStreamSynchronize ========|
//! stream 7        [~~~~~~~~~~~~~~~ ampere_sgemm ~~~~~~~~~~~~~~~~]
//!         100  110        200                                 900 910
//! ```
//!
//! ```ignore
//! let mut e = Export::new(Schema::V2025_3);
//! let t = e.thread(4242, 4242);
//! e.launch(t, 100..110, GPU0, 120..900, "ampere_sgemm");
//! let wait = e.sync(t, "cudaStreamSynchronize", 200..910, GPU0);
//! e.python(wait, &[("step", "/w/train.py", 24), ("<module>", "/w/train.py", 47)]);
//! let (_dir, path) = e.write_temp();
//! ```
//!
//! Times are nanoseconds. Columns, tables and payloads that a version could not record are left out silently,
//! so that one drawing serves every schema.

mod context;
mod cuda;
pub mod folder;
mod nccl;
mod python;
pub mod schema;
#[cfg(test)]
mod tests;
pub mod trace;
mod write;

pub use cuda::{Copy, GPU0, Gpu, Memory, SyncKind};
pub use python::{NativeFrame, Payload, PythonFrame};
pub use schema::Schema;

use rusqlite::types::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;

/// "Not applicable" in device, context, stream and event columns.
pub const NOT_APPLICABLE: i64 = 0xFFFF_FFFF;

/// One row: column names with values. Columns that the schema lacks are dropped when it is written.
pub type Row = Vec<(&'static str, Value)>;

/// `row! { start: 1, end: 2 }` with anything that converts into an SQLite value.
macro_rules! row {
    ($($column:tt: $value:expr),* $(,)?) => {
        vec![$((stringify!($column), rusqlite::types::Value::from($value))),*]
    };
}
use row;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Thread {
    pub pid: i64,
    pub tid: i64,
}

impl Thread {
    /// nsys' id of the process: hardware and VM id in the top bytes, the pid in the next three, zeros below.
    pub fn global_pid(self) -> i64 {
        1 << 48 | self.pid << 24
    }

    /// nsys' id of the thread: the process's with the tid in the low three bytes.
    pub fn global_tid(self) -> i64 {
        self.global_pid() | self.tid
    }
}

/// A recorded API call, to hang GPU work, synchronisation rows and backtraces on.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub thread: Thread,
    pub correlation: i64,
    pub start: i64,
    pub end: i64,
    /// Index of its row among the RUNTIME rows.
    row: usize,
}

/// An export of the newest version with one thread, the main one.
pub fn empty() -> (Export, Thread) {
    empty_of(Schema::V2026_2)
}

pub fn empty_of(schema: Schema) -> (Export, Thread) {
    let mut e = Export::new(schema);
    let t = e.thread(100, 100);
    (e, t)
}

#[derive(Clone)]
pub struct Export {
    schema: Schema,
    rows: BTreeMap<&'static str, Vec<Row>>,
    strings: Vec<String>,
    string_ids: HashMap<String, i64>,
    threads: HashSet<Thread>,
    /// Streams by the process that used them.
    gpus: BTreeSet<(i64, Gpu)>,
    gpu_names: BTreeMap<i64, String>,
    /// `eventSyncId` of the last record of each event.
    records: HashMap<i64, i64>,
    /// Last number handed out per purpose and owner: correlation ids of a process, chains, …
    counters: HashMap<(&'static str, i64), i64>,
    /// RUNTIME row of the backtrace twin of a call's row.
    twins: HashMap<usize, usize>,
    domains: HashMap<(i64, String), i64>,
    payload: Payload,
    all_tables: bool,
    nullable: HashSet<String>,
    sql: Vec<String>,
}

impl Export {
    pub fn new(schema: Schema) -> Self {
        let mut export = Self {
            schema,
            rows: BTreeMap::new(),
            strings: Vec::new(),
            string_ids: HashMap::new(),
            threads: HashSet::new(),
            gpus: BTreeSet::new(),
            gpu_names: BTreeMap::new(),
            records: HashMap::new(),
            counters: HashMap::new(),
            twins: HashMap::new(),
            domains: HashMap::new(),
            payload: Payload::Json,
            all_tables: false,
            nullable: HashSet::new(),
            sql: Vec::new(),
        };
        export.string("/venv/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so");
        export.version_rows();
        export
    }

    /// Removes the one string that names PyTorch's library.
    pub fn without_pytorch(&mut self) -> &mut Self {
        self.strings[0] = "/usr/lib/libm.so.6".to_owned();
        self
    }

    /// A process met for the first time is called `python3`.
    pub fn thread(&mut self, pid: i64, tid: i64) -> Thread {
        let thread = Thread { pid, tid };
        if !self.threads.iter().any(|known| known.pid == pid) {
            self.process(pid, "python3");
        }
        self.threads.insert(thread);
        thread
    }

    /// One API call without GPU work. Runtime calls get the version suffix that nsys writes (`cudaFree_v3020`); a name
    /// that starts with `cu` but not `cuda` is a driver call.
    pub fn call(&mut self, thread: Thread, api: &str, at: Range<i64>) -> Call {
        let correlation = self.next("correlation", thread.pid);
        let name = self.string(&suffixed(api));
        let row = self.row(
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            row! {
                start: at.start, end: at.end, eventClass: i64::from(!api.starts_with("cuda")),
                globalTid: thread.global_tid(), correlationId: correlation, nameId: name, returnValue: 0
            },
        );
        Call { thread, correlation, start: at.start, end: at.end, row }
    }

    /// The id of a string in StringIds, which is stored as it is given.
    pub fn string(&mut self, value: &str) -> i64 {
        if let Some(&id) = self.string_ids.get(value) {
            return id;
        }
        self.strings.push(value.to_owned());
        let id = self.strings.len() as i64;
        self.string_ids.insert(value.to_owned(), id);
        id
    }

    /// Any row of any table that `schema.rs` knows; returns its index in that table.
    pub fn row(&mut self, table: &'static str, row: Row) -> usize {
        let rows = self.rows.entry(table).or_default();
        rows.push(row);
        rows.len() - 1
    }

    /// SQL to run on the finished file, after everything else and in the order given.
    pub fn sql(&mut self, statement: impl Into<String>) -> &mut Self {
        self.sql.push(statement.into());
        self
    }

    /// Counts from 1 for each purpose and owner.
    fn next(&mut self, purpose: &'static str, owner: i64) -> i64 {
        let counter = self.counters.entry((purpose, owner)).or_default();
        *counter += 1;
        *counter
    }
}

/// The runtime API's name as nsys writes it: with the CUDA version that introduced the function.
fn suffixed(api: &str) -> String {
    let has_suffix = api.rsplit_once("_v").is_some_and(|(_, digits)| digits.parse::<u32>().is_ok());
    if has_suffix || !api.starts_with("cuda") {
        return api.to_owned();
    }
    let version = match api {
        "cudaLaunchKernel" => 7000,
        "cudaGraphLaunch" | "cudaStreamIsCapturing" => 10000,
        "cudaMallocAsync" | "cudaFreeAsync" => 11020,
        "cudaLaunchKernelExC" => 11060,
        _ => 3020,
    };
    format!("{api}_v{version}")
}

/// The name without the suffix, as backtrace twins carry it.
fn unsuffixed(api: &str) -> &str {
    match api.rsplit_once("_v") {
        Some((name, digits)) if digits.len() > 3 && api.starts_with("cuda") => name,
        _ => api,
    }
}
