//! The result: one tree of plain structs, which every renderer prints and none computes.
//!
//! All times are integer nanoseconds of the capture's clock. The JSON format is this tree as it stands. The tree is at
//! the ground: every room may name it, and it names none but [`crate::vocabulary`].

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
// The types of the tree's fields, so that renderers need no other room.
pub use crate::vocabulary::{
    Attribution, BoundBy, Change, Class, Copy, Direction, DriverApi, Evidence, HostMemory, Kind, PatternId,
    Per, ProfileIx, Recorder, Strategy, ThreadRole,
};

/// The version of a report's layout: what is written, and what is read back.
pub const SCHEMA_VERSION: u32 = 1;

/// What one run of the tool found, over all exports given.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Version of this tree's layout: fields may be added, never renamed.
    pub schema_version: u32,
    /// What wrote it.
    pub tool: Tool,
    /// The exports, in the order given.
    pub profiles: Vec<ProfileInfo>,
    /// All sites together, listed or not.
    pub totals: Totals,
    /// The loop of the program, where one is known.
    pub iterations: Option<Iterations>,
    /// Ranked as `--sort` says; with `--top` cut, `sites_omitted` counts the rest.
    pub sites: Vec<Site>,
    /// Sites that save something only together.
    #[serde(default)]
    pub together: Vec<Together>,
    /// Sites that are not listed.
    #[serde(default)]
    pub sites_omitted: usize,
    /// Waits of the exports that the filters leave out of `sites` and `totals`: none shown is not none there.
    #[serde(default)]
    pub waits_filtered_out: u64,
    /// Causes besides waits that keep the range of `--graph-ready` from being captured as a CUDA graph.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub graph_breaks: Vec<Breaks>,
    /// The same over ranks, where the exports hold several; `sites` has each rank's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<Ranks>,
    /// What limits the report.
    pub warnings: Vec<Warning>,
    /// The captures drawn, in the order of `profiles`; none unless asked for. No part of the contract.
    #[serde(skip)]
    pub timelines: Vec<Timeline>,
}

impl Report {
    /// The first site of that name: see [`Site::is_named`].
    pub fn site(&self, name: &str) -> Option<&Site> {
        self.sites.iter().find(|site| site.is_named(name))
    }

    /// Where the time of its GPUs goes, less what the profiler takes, as its savings are: of the loop, else of the whole capture.
    pub fn gpu_time(&self) -> GpuTime {
        let known = &self.totals.gpu_time;
        if known.whole_ns() > 0 { known.clone() } else { self.gpu_time_of_run() }
    }

    /// The same of the whole capture.
    pub fn gpu_time_of_run(&self) -> GpuTime {
        let mut sum = GpuTime::default();
        self.profiles.iter().flat_map(|profile| &profile.gpus).for_each(|gpu| sum.add(&gpu.time));
        // Each of several exports has a profiler's time of its own.
        let [only] = &self.profiles[..] else { return sum };
        sum.without_profiler(self.totals.without_profiler.map(|run| (only.span_ns, run.run_ns)))
    }

    /// The file that stands for what has none: the script that was profiled, else the capture.
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

/// Sites whose saving exists only jointly: fixing one of them moves its waiting into another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Together {
    /// Ids, in the order of the report.
    pub sites: Vec<String>,
    /// Whether the figures are of an iteration; else of the run.
    pub per_iteration: bool,
    /// What fixing all of them saves without the profiler, estimated.
    pub saved_ns: i64,
    /// Lower end of its range.
    pub low_ns: i64,
    /// Upper end.
    pub high_ns: i64,
    /// What each of `sites` saves alone.
    pub alone_ns: Vec<i64>,
}

/// The tool itself.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its version.
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
    /// As it was given.
    pub path: String,
    /// The profiler that made the capture.
    #[serde(default)]
    pub recorder: Recorder,
    /// Version of the nsys that wrote the export, e.g. "2025.3.2.0"; `None` before 2022.
    pub export_version: Option<String>,
    /// Schema version, e.g. "3.20.3".
    pub schema: Option<String>,
    /// When the clock of the export's times stood at 0, in ns since 1970 (UTC): what puts captures of several machines on
    /// one clock. `None` before 2022.
    #[serde(default)]
    pub started_utc_ns: Option<i64>,
    /// The machine, where recorded.
    #[serde(default)]
    pub host: Option<String>,
    /// Iterations of its loop, without start-up; 0 where none is known.
    #[serde(default)]
    pub iterations: u64,
    /// Iterations before those, left out as start-up.
    #[serde(default)]
    pub start_up: u64,
    /// Median length of one, in ns.
    #[serde(default)]
    pub iteration_ns: Option<i64>,
    /// Rank that the environment of its program names, where that was recorded.
    #[serde(default)]
    pub rank: Option<u32>,
    /// Which ranks its processes are, where NCCL says so.
    #[serde(default)]
    pub members: Vec<Member>,
    /// First call or op to last.
    pub span_ns: i64,
    /// GPUs that worked.
    pub gpus: Vec<Gpu>,
    /// Processes that called CUDA.
    pub processes: Vec<Process>,
    /// The command line that was profiled, as far as the export holds it.
    pub command: Option<String>,
    /// What the capture recorded of where waits come from, and so how much it slowed the host: "python" (backtraces of
    /// calls with Python frames), "native" (backtraces without), "sampled" (Python samples), "none".
    pub backtraces: Backtraces,
    /// Whether launches carry backtraces too, not waits alone: the captured host is several times slower then.
    #[serde(default)]
    pub slowed: bool,
    /// How long the host takes to launch a kernel, traced as here: the lower quartile. `None` where it launches few.
    pub launch_ns: Option<i64>,
    /// Host time that goes into memory and code, neither of which is a wait: a row each family of calls.
    #[serde(default)]
    pub host_calls: Vec<HostCalls>,
}

/// Calls of one family on the thread where they take longest: of several threads times may overlap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostCalls {
    /// The sort of work that they do.
    pub family: ApiFamily,
    /// The function that takes most of the time.
    pub api: String,
    /// The process that calls.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// How many calls, without those inside another of them.
    pub calls: u64,
    /// Host time inside them, without waits.
    pub ns: i64,
    /// The part of it at start-up: before the loop or in its first iterations; without a loop, before the process' first kernel.
    pub start_up_ns: i64,
    /// The part of it in the process' first CUDA call, which creates the context too.
    pub first_call_ns: i64,
}

/// A process as a rank of NCCL's largest communicator in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Member {
    /// Process id.
    pub pid: u32,
    /// Hash of the communicator, in hexadecimal: all its ranks have the same.
    pub communicator: String,
    /// How many ranks it has.
    pub ranks: u32,
    /// Which one the process is, from 0.
    pub rank: u32,
}

/// A GPU of an export.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Gpu {
    /// Number that the report's `device` columns use.
    pub id: u32,
    /// Product name, where recorded.
    pub name: Option<String>,
    /// First to last op of this device and the waits on it.
    pub span_ns: i64,
    /// Union of all ops, graph launches included.
    pub busy_ns: i64,
    /// The rest of `span_ns`.
    pub idle_ns: i64,
    /// The part of `idle_ns` that is drain: it follows a wait.
    pub drain_ns: i64,
    /// The whole span in parts.
    #[serde(default)]
    pub time: GpuTime,
}

impl Gpu {
    /// Several as one, without a name.
    pub fn together<'a>(gpus: impl Iterator<Item = &'a Self>) -> Self {
        gpus.fold(Self::default(), |sum, gpu| Self {
            span_ns: sum.span_ns.saturating_add(gpu.span_ns),
            busy_ns: sum.busy_ns.saturating_add(gpu.busy_ns),
            idle_ns: sum.idle_ns.saturating_add(gpu.idle_ns),
            drain_ns: sum.drain_ns.saturating_add(gpu.drain_ns),
            ..sum
        })
    }

    /// Its span as the sum of its parts.
    pub fn whole_ns(&self) -> i64 {
        self.busy_ns.saturating_add(self.idle_ns)
    }
}

/// A process of an export.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Name of the program, where recorded.
    pub name: Option<String>,
    /// Index of its export in `profiles`.
    #[serde(default)]
    #[schemars(with = "usize")]
    pub profile: ProfileIx,
}

impl Process {
    /// What tells it from the other processes of a report: ranks of a program run side by side.
    pub fn rank(&self) -> (ProfileIx, u32) {
        (self.profile, self.pid)
    }
}

/// Turns of the program's loop.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Iterations {
    /// Index in `profiles` of the export that they are of: of several with a loop the one whose iterations take longest, since the
    /// others wait for it.
    #[serde(default)]
    #[schemars(with = "usize")]
    pub profile: ProfileIx,
    /// What they were recognised by, e.g. "NVTX ranges `iteration N`" or "repeating launches".
    pub source: String,
    /// Where no ranges mark them: of the launches, copies and waits between first and last, the share that each has.
    #[serde(default)]
    pub confidence: Option<f64>,
    /// How many.
    pub count: u64,
    /// How many before the first of them are left out as start-up.
    #[serde(default)]
    pub start_up: u64,
    /// Their median length.
    pub median_ns: i64,
    /// Their mean length.
    pub mean_ns: i64,
    /// Mean time from the start of one to the start of the next, which savings of an average iteration are of. Above the
    /// median where some are longer, as the first, or where something else comes between them.
    #[serde(default)]
    pub start_to_start_ns: i64,
    /// Lower quartile, median, upper quartile of their lengths.
    pub quartiles_ns: [i64; 3],
    /// Time inside iterations in which GPUs worked, divided by iterations; summed over the export's GPUs.
    pub gpu_busy_ns: i64,
    /// Time of the GPUs from the start of the first iteration to the end of the last.
    #[serde(default)]
    pub gpu_time: GpuTime,
    /// Kernels of the stream that has most of them, of one: no iteration can be shorter, whatever is fixed.
    #[serde(default)]
    pub busiest_stream_ns: i64,
    /// Waits inside iterations divided by iterations, of all processes that share the loop.
    #[serde(serialize_with = "finite")]
    pub waits_per_iteration: f64,
}

/// JSON knows neither NaN nor infinity: serde_json writes `null`, where the contract says number.
fn finite<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(or_zero(*number))
}

/// The pattern of an id; `None` also for one that only another version of the program has, in a report that it wrote.
fn known<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PatternId>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.and_then(|id| PatternId::parse(&id)))
}

/// A number, or 0 where it is none.
pub(crate) fn or_zero(number: f64) -> f64 {
    if number.is_finite() { number } else { 0.0 }
}
