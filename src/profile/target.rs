//! Metadata of an export: versions, GPUs, processes, threads, the capture's flags.

use crate::error::InputError;
use crate::profile::database::Database;
use crate::profile::ids::{GlobalPid, GlobalTid};
use crate::profile::strings::{Strings, clean};
use crate::vocabulary::Recorder;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Everything may be absent: trimmed and old exports lack most of it.
#[derive(Default)]
pub struct Target {
    pub recorder: Recorder,
    /// Version of the nsys that wrote the export (not of the one that captured), e.g. "2025.3.2.0".
    pub export_version: Option<String>,
    pub schema_version: Option<String>,
    /// UTC at the export's time 0, in ns since 1970. Absent before 2022.
    pub started_utc_ns: Option<i64>,
    /// By GPU id.
    pub gpu_names: FxHashMap<u32, Arc<str>>,
    /// Major compute capability, by GPU id.
    pub gpu_major: FxHashMap<u32, i64>,
    /// (pid, CUDA ordinal) to GPU id.
    pub gpu_of: FxHashMap<(u32, u32), u32>,
    /// (pid, context) to CUDA ordinal.
    pub device_of_context: FxHashMap<(u32, u32), u32>,
    /// (pid, context, stream) to its part in the legacy default stream's ordering.
    pub ordering: FxHashMap<(u32, u32, u32), Ordering>,
    pub process_names: FxHashMap<GlobalPid, Arc<str>>,
    pub thread_names: FxHashMap<GlobalTid, Arc<str>>,
    pub host: Option<String>,
    /// Rank by the program's environment, of which nothing else is kept: it holds secrets.
    pub rank: Option<u32>,
    pub command: Option<String>,
    /// No process that calls CUDA is a Python program, as far as known: found later, from its kernels.
    pub without_python: bool,
    pub capture: Capture,
    pub diagnostics: Vec<Diagnostic>,
}

/// How the capture was made, as far as META_DATA_CAPTURE says.
#[derive(Default, Debug)]
pub struct Capture {
    /// Backtraces of waits were asked for.
    pub cuda_backtrace: Option<bool>,
    pub python_backtrace: Option<bool>,
    /// Waits shorter than this got no backtrace.
    pub sync_threshold_ns: Option<i64>,
    /// CUDA graphs were traced as a whole: their kernels are not recorded.
    pub graph_level: bool,
    /// Values of `-t`; empty for nsys's own choice, or where the export does not say.
    pub traced: Vec<String>,
    /// `-t cuda` was on, as far as the export says.
    pub cuda: bool,
    /// Options for the next capture. The export records neither an NVTX range nor what ends a range.
    pub kept: Vec<&'static str>,
    /// Steps of the optimizer, `A:B`, that `sync-report run --steps` recorded.
    pub steps: Option<String>,
    /// Only a range of the program was captured, that it or the user marked.
    pub ranged: bool,
}

/// A stream's part in the ordering of the legacy default stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordering {
    /// It is that stream: its work waits for all blocking streams, and theirs for it.
    Default,
    /// Created without `cudaStreamNonBlocking`.
    Blocking,
}

/// Settings worth having in the next capture: name, value, option.
const KEPT: &[(&str, &str, &str)] = &[
    ("CUDA_GRAPH_TRACE_OPTIONS:MODE", "Node", "--cuda-graph-trace=node"),
    ("COLLECT_GPU_MEMORY_USAGE", "true", "--cuda-memory-usage=true"),
    ("COLLECT_UVM_CPU_PAGE_FAULTS", "true", "--cuda-um-cpu-page-faults=true"),
    ("COLLECT_UVM_GPU_PAGE_FAULTS", "true", "--cuda-um-gpu-page-faults=true"),
];

/// Set by torchrun, Slurm, Open MPI, MPICH.
const RANK_VARIABLES: [&str; 4] = ["RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"];

/// The rank that a setting names: `ENVIRONMENT:RANK` with its value, or a line of the environment.
fn rank_in(key: &str, value: &str) -> Option<u32> {
    let (name, value) = value.split_once('=').or(key.rsplit_once(':').map(|(_, name)| (name, value)))?;
    RANK_VARIABLES.contains(&name).then(|| value.parse().ok()).flatten()
}

/// Traced APIs, as named by META_DATA_CAPTURE and by `-t`.
const TRACES: &[(&str, &str)] = &[
    ("Cuda", "cuda"),
    ("NvtxEvents", "nvtx"),
    ("CuBLAS", "cublas"),
    ("CuDNN", "cudnn"),
    ("OSRuntime", "osrt"),
    ("Graphics", "opengl"),
];

const USUAL: [&str; 4] = ["cuda", "nvtx", "osrt", "opengl"];

/// Values of `-t`; empty for what nsys traces without.
fn traced(types: &[String]) -> Vec<String> {
    let there = TRACES.iter().filter(|(name, _)| types.iter().any(|t| t == name));
    let typed: Vec<&str> = there.map(|trace| trace.1).collect();
    if typed == USUAL { Vec::new() } else { typed.into_iter().map(str::to_owned).collect() }
}

/// One row of DIAGNOSTIC_EVENT.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// ENUM_DIAGNOSTIC_SEVERITY_LEVEL: 1 information, 2 warning, 3 error.
    pub severity: i64,
    pub text: Arc<str>,
}

impl Target {
    /// Warnings and errors (not information) of the profiler with one of `about`, cut to their first line.
    pub fn profiler_messages(&self, about: &[&str]) -> Vec<String> {
        let mut said: Vec<String> = self
            .diagnostics
            .iter()
            .filter(|d| matches!(d.severity, 2 | 3) && about.iter().any(|a| d.text.contains(a)))
            .map(|d| crate::text::shorten_end(d.text.lines().next().unwrap_or("").trim(), 160).into_owned())
            .collect();
        said.dedup();
        said
    }

    pub(super) fn read(db: &Database, strings: &mut Strings) -> Result<Self, InputError> {
        let recorder = if db.is_cut_trace().is_some() { Recorder::TorchProfiler } else { Recorder::Nsys };
        let mut target = Self { recorder, ..Self::default() };
        target.read_versions(db)?;
        db.rows("TARGET_INFO_SESSION_START_TIME", &["utcEpochNs"], |row| target.started_utc_ns = row.int(0))?;
        db.rows("TARGET_INFO_SYSTEM_ENV", &["name", "value"], |row| {
            if row.text(0).is_some_and(|name| name.eq_ignore_ascii_case("hostname")) {
                target.host = row.bytes(1).map(|b| clean(b).to_string()).filter(|host| !host.is_empty());
            }
        })?;
        target.read_gpus(db)?;
        target.read_contexts(db)?;
        target.read_streams(db)?;
        target.read_names(db, strings)?;
        target.read_capture(db)?;
        db.rows("DIAGNOSTIC_EVENT", &["severity", "text"], |row| {
            let said = row.int(0).zip(row.bytes(1));
            target
                .diagnostics
                .extend(said.map(|(severity, text)| Diagnostic { severity, text: clean(text) }));
        })?;
        target.read_range();
        Ok(target)
    }

    /// No setting says that only a range was captured, but nsys says how it began.
    fn read_range(&mut self) {
        let began = |by: &str| {
            let text = format!("Profiling started due to {by}");
            self.diagnostics.iter().any(|d| d.text.starts_with(&text))
        };
        let (any, api) = (began(""), began("cudaProfilerStart"));
        self.capture.ranged = any;
        self.capture.kept.extend(api.then_some("--capture-range=cudaProfilerApi"));
    }

    fn read_versions(&mut self, db: &Database) -> Result<(), InputError> {
        for table in ["META_DATA_EXPORT", "EXPORT_META_DATA"] {
            db.rows(table, &["name", "value"], |row| {
                let value = || row.bytes(1).map(|b| clean(b).to_string());
                match row.text(0).as_deref() {
                    Some("EXPORT_PRODUCT_VERSION") => self.export_version = value(),
                    Some("EXPORT_SCHEMA_VERSION") => self.schema_version = value(),
                    _ => {}
                }
            })?;
        }
        Ok(())
    }

    /// TARGET_INFO_GPU numbered adapters by `deviceId` in 2020 and 2021, by `id` since.
    fn read_gpus(&mut self, db: &Database) -> Result<(), InputError> {
        db.rows("TARGET_INFO_GPU", &["id", "deviceId", "name", "computeMajor"], |row| {
            let Some(id) = row.id(0).or(row.id(1)) else { return };
            self.gpu_names.extend(row.bytes(2).map(|name| (id, clean(name))));
            self.gpu_major.extend(row.int(3).map(|major| (id, major)));
        })?;
        db.rows("TARGET_INFO_CUDA_DEVICE", &["pid", "cudaId", "gpuId"], |row| {
            self.gpu_of.extend(row.id(0).zip(row.id(1)).zip(row.id(2)));
        })
    }

    fn read_contexts(&mut self, db: &Database) -> Result<(), InputError> {
        for table in ["TARGET_INFO_CUDA_CONTEXT_INFO", "TARGET_INFO_CUDA_NULL_STREAM"] {
            db.rows(table, &["processId", "contextId", "deviceId"], |row| {
                self.device_of_context.extend(row.id(0).zip(row.id(1)).zip(row.id(2)));
            })?;
        }
        Ok(())
    }

    /// `flag` is CUPTI's (ENUM_CUPTI_STREAM_TYPE): 1 created blocking, 2 not blocking, 3 the null stream.
    fn read_streams(&mut self, db: &Database) -> Result<(), InputError> {
        db.rows("TARGET_INFO_CUDA_STREAM", &["processId", "contextId", "streamId", "flag"], |row| {
            let (Some(pid), Some(context), Some(stream)) = (row.id(0), row.id(1), row.id(2)) else { return };
            let ordering = match row.int(3) {
                Some(1) => Ordering::Blocking,
                Some(3) => Ordering::Default,
                _ => return,
            };
            self.ordering.insert((pid, context, stream), ordering);
        })
    }

    fn read_names(&mut self, db: &Database, strings: &mut Strings) -> Result<(), InputError> {
        db.rows("PROCESSES", &["globalPid", "name"], |row| {
            self.process_names.extend(row.global_pid(0).zip(row.bytes(1).map(clean)));
        })?;
        let mut threads = Vec::new();
        db.rows("ThreadNames", &["globalTid", "nameId"], |row| {
            threads.extend(row.global_tid(0).zip(row.int(1)))
        })?;
        strings.fetch(db, threads.iter().map(|t| t.1))?;
        self.thread_names
            .extend(threads.iter().filter_map(|&(tid, id)| Some((tid, strings.get(id)?.clone()))));
        Ok(())
    }

    fn read_capture(&mut self, db: &Database) -> Result<(), InputError> {
        let mut words: Vec<(u32, String)> = Vec::new();
        let mut types: Vec<String> = Vec::new();
        let capture = &mut self.capture;
        db.rows("META_DATA_CAPTURE", &["name", "value"], |row| {
            let (Some(name), Some(value)) = (row.text(0), row.bytes(1).map(clean)) else { return };
            let on = Some(&*value == "true");
            // Since 2026.1 most settings stand outside `PROCESS_n:`.
            let key =
                name.split_once(':').filter(|(p, _)| p.starts_with("PROCESS_")).map_or(&*name, |(_, k)| k);
            match key {
                "COMMAND" => words.push((0, value.to_string())),
                "CAPTURE_EVENT_TYPE" => types.push(value.to_string()),
                _ if key.contains("ENVIRONMENT") => {
                    self.rank = self.rank.or(rank_in(key, &value));
                    let steps = value.strip_prefix("SYNC_REPORT_STEPS=").map(|steps| steps.trim_matches('"'));
                    let is_range = |steps: &&str| steps.bytes().all(|b| b.is_ascii_digit() || b == b':');
                    capture.steps = capture.steps.take().or(steps.filter(is_range).map(str::to_owned));
                }
                "CUDA_GRAPH_TRACE_OPTIONS:MODE" if &*value == "Graph" => capture.graph_level = true,
                "CUDA_BACKTRACE_OPTIONS:COLLECT_PYTHON_BACKTRACES" => capture.python_backtrace = on,
                "CUDA_BACKTRACE_OPTIONS:COLLECT_SYNCHRONOIZATION_BACKTRACES" // nsys spells it so
                | "CUDA_BACKTRACE_OPTIONS:COLLECT_SYNCHRONIZATION_BACKTRACES" => capture.cuda_backtrace = on,
                "CUDA_BACKTRACE_OPTIONS:SYNCHRONOIZATION_BACKTRACES_THRESHOLD_NS"
                | "CUDA_BACKTRACE_OPTIONS:SYNCHRONIZATION_BACKTRACES_THRESHOLD_NS" => {
                    capture.sync_threshold_ns = value.parse().ok();
                }
                _ => {
                    let option = KEPT.iter().find(|(setting, ..)| *setting == key);
                    let option = option.filter(|(_, on, _)| **on == *value).map(|kept| kept.2);
                    capture.kept.extend(option.filter(|option| !capture.kept.contains(option)));
                    if let Some(n) = key.strip_prefix("ARGUMENT_").and_then(|n| n.parse::<u32>().ok()) {
                        words.push((n.saturating_add(1), value.to_string()));
                    }
                }
            }
        })?;
        self.capture.traced = traced(&types);
        self.capture.cuda = types.iter().any(|t| t == "Cuda");
        words.sort();
        words.dedup_by_key(|w| w.0);
        if words.first().is_some_and(|w| w.0 == 0) {
            let words: Vec<String> = words.iter().map(|(_, w)| crate::text::shell_quote(w)).collect();
            self.command = Some(words.join(" "));
        }
        Ok(())
    }
}
