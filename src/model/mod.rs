//! The result: one tree of plain structs, which every renderer prints and none computes.
//!
//! All times are integer nanoseconds of the capture's clock. The JSON format is this tree. Every room may name
//! the model; the model names only [`crate::vocabulary`] and [`crate::text`].

mod awaited;
pub mod check;
pub(crate) mod columns;
pub mod diff;
pub mod doctor;
pub mod edit;
pub mod gpu_time;
mod graph_breaks;
pub mod limits;
pub mod lint;
mod named;
mod native;
pub mod packed;
pub mod patch;
pub mod ranks;
pub mod replay;
mod site;
pub mod timeline;
mod totals;
pub mod trial;
mod warning;

#[cfg(test)]
pub(crate) mod sample;

use crate::vocabulary::{ApiFamily, Backtraces};
use ranks::Ranks;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use timeline::Timeline;

pub use awaited::{Awaited, AwaitedOperation, AwaitedStream, BehindCollectives, IdleGpu, LateRank, Narrow};
use gpu_time::GpuTime;
pub use graph_breaks::{Breaks, GraphBreak};
pub use native::{binding, own_function};
pub use site::{
    Backward, CallPath, Example, Fix, Frame, Once, Recoverable, Replayed, Rewrite, Site, Snippet, Spread,
    StartUp, Thread,
};
pub use totals::{ByClass, CapturedRun, ClassTotals, Headline, IterationSaving, Totals, WithoutProfiler};
pub use warning::{Code, Warning};
// Types of the tree's fields: renderers need no other room.
pub use crate::vocabulary::{
    Attribution, BoundBy, Change, Class, Copy, Direction, DriverApi, Evidence, HostMemory, Kind, PatternId,
    Per, ProfileIx, Recorder, Strategy, ThreadRole,
};

/// Version of a report's layout.
pub const SCHEMA_VERSION: u32 = 1;

/// Findings of one run of the program, over all exports given.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Version of this tree's layout: fields may be added, never renamed.
    pub schema_version: u32,
    /// The program that wrote the report.
    pub tool: Tool,
    /// The exports, in the order given.
    pub profiles: Vec<ProfileInfo>,
    /// Sums over all sites, listed or not.
    pub totals: Totals,
    /// The program's loop; null where none is known.
    pub iterations: Option<Iterations>,
    /// Sites, ranked as `--sort` says. `--top` may cut the list; `sites_omitted` counts the rest.
    pub sites: Vec<Site>,
    /// Sets of sites that save more together than alone.
    #[serde(default)]
    pub together: Vec<Together>,
    /// Number of sites that `--top` cut from `sites`.
    #[serde(default)]
    pub sites_omitted: usize,
    /// Waits that the filters left out of `sites` and `totals`.
    #[serde(default)]
    pub waits_filtered_out: u64,
    /// Causes besides waits that keep the range of `--graph-ready` from being captured as a CUDA graph.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub graph_breaks: Vec<Breaks>,
    /// The report over ranks; absent for fewer than two. `sites` lists each rank's own sites.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<Ranks>,
    /// Limits of the report.
    pub warnings: Vec<Warning>,
    /// Drawings of the captures, in the order of `profiles`; empty unless asked for. Not in the JSON.
    #[serde(skip)]
    pub timelines: Vec<Timeline>,
}

impl Report {
    /// The first site of that name: see [`Site::is_named`].
    pub fn site(&self, name: &str) -> Option<&Site> {
        self.sites.iter().find(|site| site.is_named(name))
    }

    /// GPU time by kind of work, without the profiler's estimated time: of the loop, else of the capture.
    pub fn gpu_time(&self) -> GpuTime {
        let known = &self.totals.gpu_time;
        if known.whole_ns() > 0 { known.clone() } else { self.gpu_time_of_run() }
    }

    /// GPU time of the capture by kind of work; of a single export, without the profiler's estimated time.
    pub fn gpu_time_of_run(&self) -> GpuTime {
        let mut sum = GpuTime::default();
        self.profiles.iter().flat_map(|profile| &profile.gpus).for_each(|gpu| sum.add(&gpu.time));
        // Several exports have no profiler's time in common.
        let [only] = &self.profiles[..] else { return sum };
        sum.without_profiler(self.totals.without_profiler.map(|run| (only.span_ns, run.run_ns)))
    }

    /// File to name for findings without one: the profiled script, else the capture.
    pub fn program(&self) -> &str {
        let Some(profile) = self.profiles.first() else { return "capture" };
        let words = profile.command.iter().flat_map(|c| c.split_whitespace());
        let script = words.map(|w| w.trim_matches(['"', '\''])).find(|w| w.ends_with(".py"));
        script.unwrap_or(&profile.path)
    }

    /// Keeps the first `top` sites; all for 0.
    pub fn cut(&mut self, top: usize) {
        if top == 0 {
            return;
        }
        self.sites_omitted += self.sites.len().saturating_sub(top);
        self.sites.truncate(top);
        if let Some(ranks) = &mut self.ranks {
            ranks.sites_omitted += ranks.sites.len().saturating_sub(top);
            ranks.sites.truncate(top);
        }
    }
}

/// Sites that save more together than alone: where one is fixed, another takes over its wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Together {
    /// Ids of the sites, in the order of the report.
    pub sites: Vec<String>,
    /// Whether the times are per iteration; else per run.
    pub per_iteration: bool,
    /// Estimated saving of fixing all these sites, without the profiler.
    pub saved_ns: i64,
    /// Lower end of the range of `saved_ns`.
    pub low_ns: i64,
    /// Upper end of the range of `saved_ns`.
    pub high_ns: i64,
    /// Saving of fixing each of `sites` alone.
    pub alone_ns: Vec<i64>,
}

/// The program that wrote a result.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Name of the program.
    pub name: Cow<'static, str>,
    /// Version of the program.
    pub version: Cow<'static, str>,
}

impl Default for Tool {
    fn default() -> Self {
        Self { name: env!("CARGO_PKG_NAME").into(), version: env!("CARGO_PKG_VERSION").into() }
    }
}

/// One export.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProfileInfo {
    /// Path of the export, as given.
    pub path: String,
    /// The profiler that made the capture.
    #[serde(default)]
    pub recorder: Recorder,
    /// Version of the nsys that wrote the export, e.g. "2025.3.2.0"; null before 2022.
    pub export_version: Option<String>,
    /// Version of the export's own schema, e.g. "3.20.3".
    pub schema: Option<String>,
    /// Time 0 of the export's clock, in ns since 1970 (UTC), to align several machines; null before 2022.
    #[serde(default)]
    pub started_utc_ns: Option<i64>,
    /// Name of the machine; null where not recorded.
    #[serde(default)]
    pub host: Option<String>,
    /// Iterations of the loop, without start-up; 0 where no loop is known.
    #[serde(default)]
    pub iterations: u64,
    /// Leading iterations left out as start-up.
    #[serde(default)]
    pub start_up: u64,
    /// Median length of an iteration.
    #[serde(default)]
    pub iteration_ns: Option<i64>,
    /// Rank that the program's environment names; null where not recorded.
    #[serde(default)]
    pub rank: Option<u32>,
    /// Ranks of the processes, where NCCL recorded them.
    #[serde(default)]
    pub members: Vec<Member>,
    /// Time from the first CUDA call or GPU operation to the last.
    pub span_ns: i64,
    /// GPUs with operations in the capture.
    pub gpus: Vec<Gpu>,
    /// Processes that called CUDA.
    pub processes: Vec<Process>,
    /// The profiled command line, as far as the export holds it.
    pub command: Option<String>,
    /// Recorded origin of waits, which also determines how much the profiler slowed the host: "python"
    /// (backtraces with Python frames), "native" (without), "sampled" (Python samples), "none".
    pub backtraces: Backtraces,
    /// Whether launches carry backtraces too, which slows the captured host several times.
    #[serde(default)]
    pub slowed: bool,
    /// Host time of a kernel launch under this profiler, lower quartile; null for few launches.
    pub launch_ns: Option<i64>,
    /// Host time of allocations and module loading, which are no waits: one row for each family of calls.
    #[serde(default)]
    pub host_calls: Vec<HostCalls>,
}

/// Calls of one family on the thread where they take longest. Times of several threads may overlap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostCalls {
    /// Kind of work of the calls.
    pub family: ApiFamily,
    /// Name of the function that takes most of the time.
    pub api: String,
    /// Id of the calling process.
    pub pid: u32,
    /// Id of the calling thread.
    pub tid: u32,
    /// Number of calls, without nested ones.
    pub calls: u64,
    /// Host time inside the calls, without waits.
    pub ns: i64,
    /// Part of `ns` before the loop or in its first iterations; without a loop, before the first kernel.
    pub start_up_ns: i64,
    /// Part of `ns` in the process's first CUDA call, which also creates the context.
    pub first_call_ns: i64,
}

/// Rank of a process in its largest NCCL communicator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Member {
    /// Process id.
    pub pid: u32,
    /// Hash of the communicator in hexadecimal, the same on all its ranks.
    pub communicator: String,
    /// Number of ranks in the communicator.
    pub ranks: u32,
    /// Rank of the process, from 0.
    pub rank: u32,
}

/// A GPU of an export.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Gpu {
    /// Number of the GPU, as `device` fields use it.
    pub id: u32,
    /// Product name; null where not recorded.
    pub name: Option<String>,
    /// Time from the GPU's first operation to its last.
    pub span_ns: i64,
    /// Time in which at least one operation ran, graph launches included.
    pub busy_ns: i64,
    /// `span_ns` less `busy_ns`.
    pub idle_ns: i64,
    /// Part of `idle_ns` that follows a wait.
    pub drain_ns: i64,
    /// `span_ns` by kind of work.
    #[serde(default)]
    pub time: GpuTime,
}

impl Gpu {
    /// Sum of several GPUs, without a name.
    pub fn together<'a>(gpus: impl Iterator<Item = &'a Self>) -> Self {
        gpus.fold(Self::default(), |sum, gpu| Self {
            span_ns: sum.span_ns.saturating_add(gpu.span_ns),
            busy_ns: sum.busy_ns.saturating_add(gpu.busy_ns),
            idle_ns: sum.idle_ns.saturating_add(gpu.idle_ns),
            drain_ns: sum.drain_ns.saturating_add(gpu.drain_ns),
            ..sum
        })
    }

    /// Sum of busy and idle time.
    pub fn whole_ns(&self) -> i64 {
        self.busy_ns.saturating_add(self.idle_ns)
    }
}

/// A process of an export.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Name of the program; null where not recorded.
    pub name: Option<String>,
    /// Index in `profiles` of the process's export.
    #[serde(default)]
    #[schemars(with = "usize")]
    pub profile: ProfileIx,
}

impl Process {
    /// Identity of a process among all exports of a report.
    pub fn rank(&self) -> (ProfileIx, u32) {
        (self.profile, self.pid)
    }
}

/// Iterations of the program's loop.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Iterations {
    /// Index in `profiles` of the export with this loop. Of several exports, the one with the longest
    /// iterations counts: the others wait for it.
    #[serde(default)]
    #[schemars(with = "usize")]
    pub profile: ProfileIx,
    /// Sign by which iterations were recognised, e.g. "NVTX ranges `iteration #`" or "repeating launches".
    pub source: String,
    /// Share of the loop's launches, copies and waits that every iteration has, 0 to 1; null where NVTX
    /// ranges mark the iterations.
    #[serde(default)]
    pub confidence: Option<f64>,
    /// Number of iterations, without start-up.
    pub count: u64,
    /// Leading iterations left out as start-up.
    #[serde(default)]
    pub start_up: u64,
    /// Median length of an iteration.
    pub median_ns: i64,
    /// Mean length of an iteration.
    pub mean_ns: i64,
    /// Mean time from the start of one iteration to the start of the next; 0 for a single iteration. Longer
    /// than the median where some iterations are longer or other work lies between them.
    #[serde(default)]
    pub start_to_start_ns: i64,
    /// Lower quartile, median and upper quartile of the iterations' lengths.
    pub quartiles_ns: [i64; 3],
    /// Mean GPU busy time of an iteration, summed over the export's GPUs.
    pub gpu_busy_ns: i64,
    /// GPU time of the whole loop by kind of work, as captured.
    #[serde(default)]
    pub gpu_time: GpuTime,
    /// Mean kernel time of an iteration on the busiest stream. No fix makes an iteration shorter.
    #[serde(default)]
    pub busiest_stream_ns: i64,
    /// Waits inside iterations, divided by the iterations of all processes that share the loop.
    #[serde(serialize_with = "finite")]
    pub waits_per_iteration: f64,
}

/// JSON knows neither NaN nor infinity: serde_json writes `null`, where the contract says number.
fn finite<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(or_zero(*number))
}

/// The pattern of an id; `None` for an id that only another version of the program has.
fn known<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PatternId>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.and_then(|id| PatternId::parse(&id)))
}

/// The number, or 0 for NaN and infinity.
pub(crate) fn or_zero(number: f64) -> f64 {
    if number.is_finite() { number } else { 0.0 }
}
