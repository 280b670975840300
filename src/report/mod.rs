//! The result: one tree of plain structs, which every renderer prints and none computes.
//!
//! All times are integer nanoseconds of the capture's clock. The JSON format is this tree as it stands.

pub mod bench;
pub mod check;
pub mod csv;
pub mod details;
pub mod diff;
pub mod github;
pub mod html;
pub mod json;
pub mod markdown;
pub(crate) mod markdown_text;
pub(crate) mod phrase;
pub mod replay;
pub mod sarif;
pub mod saving;
pub mod style;
pub mod table;

#[cfg(test)]
pub(crate) mod sample;

use crate::timeline::Timeline;
use crate::vocabulary::{Attribution, Class, Copy, DriverApi, Evidence, Kind, ThreadRole};
use serde::{Deserialize, Serialize};

/// What one run of the tool found, over all exports given.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Version of this tree's layout: fields may be added, never renamed.
    pub schema_version: u32,
    pub tool: Tool,
    pub profiles: Vec<ProfileInfo>,
    pub totals: Totals,
    pub iterations: Option<Iterations>,
    /// Ranked as `--sort` says; with `--top` cut, `sites_omitted` counts the rest.
    pub sites: Vec<Site>,
    pub sites_omitted: usize,
    /// Waits of the exports that the filters (range, time, process, thread, device, class) leave out of `sites` and
    /// `totals`: none shown is not none there.
    pub waits_filtered_out: u64,
    pub warnings: Vec<Warning>,
    /// The captures drawn, in the order of `profiles`; none unless asked for. No part of the contract.
    #[serde(skip)]
    pub timelines: Vec<Timeline>,
}

impl Report {
    /// The site of that id ("S1", "s1").
    pub fn site(&self, id: &str) -> Option<&Site> {
        self.sites.iter().find(|site| site.id.eq_ignore_ascii_case(id.trim()))
    }

    /// Keeps the first `top` sites; all for 0.
    pub fn cut(&mut self, top: usize) {
        if top > 0 && self.sites.len() > top {
            self.sites_omitted += self.sites.len() - top;
            self.sites.truncate(top);
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Tool {
    pub name: &'static str,
    pub version: &'static str,
}

/// One export.
#[derive(Clone, Debug, Serialize)]
pub struct ProfileInfo {
    pub path: String,
    /// Version of the nsys that wrote the export, e.g. "2025.3.2.0"; `None` before 2022.
    pub export_version: Option<String>,
    /// Schema version, e.g. "3.20.3".
    pub schema: Option<String>,
    /// First call or op to last.
    pub span_ns: i64,
    pub gpus: Vec<Gpu>,
    pub processes: Vec<Process>,
    /// The command line that was profiled, as far as the export holds it.
    pub command: Option<String>,
    /// What the capture recorded of where waits come from, and so how much it slowed the host: "python" (backtraces of
    /// calls with Python frames), "native" (backtraces without), "sampled" (Python samples), "none".
    pub backtraces: &'static str,
    /// How long the host takes to launch a kernel, traced as here: the lower quartile. `None` where it launches few.
    pub launch_ns: Option<i64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Gpu {
    /// Number that the report's `device` columns use.
    pub id: u32,
    pub name: Option<String>,
    /// First to last op of this device and the waits on it.
    pub span_ns: i64,
    /// Union of all ops, graph launches included.
    pub busy_ns: i64,
    pub idle_ns: i64,
    /// The part of `idle_ns` that is drain: it follows a wait.
    pub drain_ns: i64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Process {
    pub pid: u32,
    pub name: Option<String>,
    /// Index of its export in `profiles`.
    pub profile: usize,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Totals {
    pub waits: u64,
    pub sites: u64,
    /// Host time inside waits, summed over threads: not a saving.
    pub blocked_ns: i64,
    pub gpu_busy_ns: i64,
    pub gpu_idle_ns: i64,
    /// Idle time of all devices that follows waits.
    pub drain_ns: i64,
    pub by_class: ByClass,
    /// Simulated saving of fixing every false site; `None` until simulated.
    pub recoverable_false_joint_ns: Option<i64>,
    pub recoverable_low_ns: Option<i64>,
    pub recoverable_high_ns: Option<i64>,
    /// `recoverable_false_joint_ns` in percent of the capture's span.
    pub recoverable_percent: Option<f64>,
    /// What limits the run once all false sites are fixed: "host" or "gpu".
    pub bound_by: Option<&'static str>,
    /// |simulated − recorded| / recorded span with nothing fixed. Over 0.1 there are bounds only.
    pub simulation_error: Option<f64>,
    /// The same with usual latencies in place of the recorded distances between dependent events: a harder test of
    /// which event depends on which.
    pub usual_latency_error: Option<f64>,
    /// What the scatter of the capture's iterations adds to either end of the ranges; `None` without iterations.
    pub range_scatter_ns: Option<i64>,
    /// GPU work that waits for other processes (NCCL kernels) and so keeps its recorded length in every simulation.
    pub collectives: u64,
    /// All else here is of the captured run, which the profiler slows; this is estimated without it.
    pub without_profiler: Option<WithoutProfiler>,
    /// What fixing all false sites saved in a replay on a GPU, where results of one were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Replayed>,
}

/// The program without the profiler, and what fixing every false site saves of that: an estimate with its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WithoutProfiler {
    pub run_ns: i64,
    pub saved_ns: i64,
    pub low_ns: i64,
    pub high_ns: i64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct ByClass {
    #[serde(rename = "false")]
    pub false_: ClassTotals,
    #[serde(rename = "true")]
    pub true_: ClassTotals,
    pub unknown: ClassTotals,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct ClassTotals {
    pub waits: u64,
    pub sites: u64,
    pub blocked_ns: i64,
    pub drain_ns: i64,
    pub recoverable_ns: Option<i64>,
}

/// Repeated NVTX ranges that divide the capture into iterations.
#[derive(Clone, Debug, Serialize)]
pub struct Iterations {
    /// What they were recognised by, e.g. "NVTX ranges `iteration N`".
    pub source: String,
    pub count: u64,
    pub median_ns: i64,
    pub mean_ns: i64,
    /// Lower quartile, median, upper quartile of their lengths.
    pub quartiles_ns: [i64; 3],
    /// Time inside iterations in which GPUs worked, divided by iterations; summed over the export's GPUs.
    pub gpu_busy_ns: i64,
    /// Waits inside iterations divided by iterations.
    pub waits_per_iteration: f64,
}

/// All waits that share API, Python stack (or the best substitute) and process role.
#[derive(Clone, Debug, Serialize)]
pub struct Site {
    /// Rank in this report: "S1" is the first.
    pub id: String,
    /// Stable over runs: made of file, function, line, API.
    pub key: String,
    /// Runtime or driver name without its version suffix.
    pub api: String,
    pub driver_api: DriverApi,
    pub class: Class,
    pub kind: Kind,
    pub confidence: f64,
    /// Catalogue entry.
    pub pattern: Option<String>,
    pub evidence: Vec<Evidence>,
    pub attribution: Attribution,
    /// How far to trust the attribution, e.g. "31 of 40 samples agree"; empty where exact.
    pub attribution_note: String,
    /// Innermost first.
    pub frames: Vec<Frame>,
    pub user_frame: Option<Frame>,
    /// The nearest caller that tells this site from another at the same user line.
    pub caller: Option<Frame>,
    /// C++ chain, innermost first, demangled; interpreter frames left out.
    pub native: Vec<String>,
    /// Enclosing NVTX ranges of an example, outermost first.
    pub nvtx: Vec<String>,
    /// Text of the user line, where the source was at hand.
    pub source: Option<String>,
    /// That line and those around it.
    pub snippet: Option<Snippet>,
    pub thread: Thread,
    pub process: Process,
    /// Device waited for, where one is known.
    pub device: Option<u32>,
    /// CUPTI stream id, where all waits share one.
    pub stream: Option<u32>,
    /// The copy of each wait; its `bytes` are the smallest of them.
    pub copy: Option<Copy>,
    /// Largest copy in bytes, where they differ.
    pub copy_bytes_max: Option<u64>,
    pub waits: u64,
    pub per_iteration: Option<f64>,
    /// Blocked time inside iterations divided by iterations.
    pub blocked_per_iteration_ns: Option<i64>,
    /// Drain of the waits inside iterations divided by iterations.
    pub drain_per_iteration_ns: Option<i64>,
    /// How waits and costs vary within the capture; `None` where no reader was to need it.
    pub spread: Option<Spread>,
    pub blocked_ns: i64,
    pub blocked_p50_ns: i64,
    pub blocked_p99_ns: i64,
    pub blocked_max_ns: i64,
    /// `blocked_ns` in percent of the thread's span.
    pub blocked_percent: f64,
    /// Device-idle time between the end of the awaited work and the next op.
    pub drain_ns: i64,
    pub drain_p50_ns: i64,
    pub drain_max_ns: i64,
    /// `drain_ns` in percent of the device's span (of all devices' where several).
    pub drain_percent: f64,
    /// Waits that found nothing pending on the GPU.
    pub found_idle: u64,
    /// Set where it waits only before the loop or in its first iterations. Ranked after the others: it is paid once.
    pub start_up: Option<StartUp>,
    /// Whether this wait would make a CUDA graph capture fail.
    pub blocks_capture: bool,
    pub recoverable: Option<Recoverable>,
    /// What fixing it saved in a replay on a GPU, where results of one were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Replayed>,
    pub fix: Option<Fix>,
    /// Blocked times in powers of two: (upper bound in ns, waits).
    pub histogram: Vec<(i64, u64)>,
    /// Waits to look at in the nsys GUI: longest first, then the first of the capture.
    pub examples: Vec<Example>,
}

/// Waits only at start-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StartUp {
    /// Iterations that hold some, 0 where all come before the loop.
    pub with: usize,
    /// Iterations of the capture.
    pub iterations: usize,
}

/// Lower quartile, median and upper quartile of a site's samples. Robust against the few samples that something else
/// disturbed; what a difference between two captures has to exceed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// A sample is what the waits of one "iteration" add up to, where they lie in iterations; else one "wait".
    pub per: &'static str,
    /// Iterations with a wait of this site, or its waits.
    pub samples: u64,
    pub waits: [u64; 3],
    pub blocked_ns: [i64; 3],
    pub drain_ns: [i64; 3],
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    pub function: String,
    pub file: String,
    pub line: u32,
    /// Outside the standard library, PyTorch and installed packages.
    pub user: bool,
}

/// Lines of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Snippet {
    /// Number of the first line, from 1.
    pub first_line: u32,
    pub lines: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Thread {
    pub tid: u32,
    pub name: Option<String>,
    pub role: ThreadRole,
    /// The process's first thread; where that made no call, the one with most calls.
    pub main: bool,
    /// Of how many threads the site's waits are.
    pub count: usize,
}

/// What the whole run would save.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Recoverable {
    /// With only this site fixed. 0 where its waits are needed: those have a range, no promise.
    pub alone_ns: i64,
    /// The share that is this site's with all false sites fixed.
    pub joint_ns: i64,
    pub low_ns: i64,
    pub high_ns: i64,
    /// `alone_ns` of one iteration, where iterations are known.
    pub per_iteration_ns: Option<i64>,
    /// `alone_ns` in percent of the capture's span.
    pub percent: f64,
    /// The change that was simulated: "delete", "gpu-wait", "non-blocking", "pinned", "drop", "delay", "coalesce", "keep".
    pub change: &'static str,
    /// From a simulation; else `alone_ns` is the lower bound.
    pub simulated: bool,
    /// The site into whose waits most of the time moves.
    pub moves_to: Option<String>,
    /// What the saving can be at all, without a simulation.
    pub bounds: Bounds,
}

/// Bounds of a saving, summed over a site's waits. `alone_ns` is no more than `together_high_ns` and `beside_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bounds {
    /// Each wait by itself, at most: the shortest of its blocked time, the time until the thread's next wait, and the time
    /// that the device idles from its start to that next wait.
    pub each_high_ns: i64,
    /// Each wait by itself, for certain: what the call takes where it finds nothing to wait for.
    pub each_low_ns: i64,
    /// The waiting, at most, with all of the waits gone: where they follow each other on a thread, their blocked time
    /// together, the host's work between them, or the device's idle time. It can be more than `each_high_ns`: a wait
    /// that is gone too cannot take over what another gives up.
    pub together_high_ns: i64,
    /// What can be saved on top: the host's own work for calls that go, staging, shorter copies.
    pub beside_ns: i64,
}

/// What a replay of one stretch of the capture saved.
#[derive(Clone, Debug, Serialize)]
pub struct Replayed {
    /// Name of the GPU that it ran on.
    pub gpu: String,
    /// The stretch with nothing fixed, in ns; `saving_ns` is of it.
    pub stretch_ns: i64,
    pub saving_ns: i64,
    pub saving_low_ns: i64,
    pub saving_high_ns: i64,
    /// `saving_ns` in percent of `stretch_ns`.
    pub percent: f64,
    /// What the simulation says of the same stretch.
    pub predicted_ns: Option<i64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Fix {
    /// Which of the seven ways it is, in the order in which to try them: 1 remove, 2 non_blocking, 3 sync-free API,
    /// 4 delay, 5 coalesce, 6 offload to the GPU, 7 exclude from capture; 8 leave as it is.
    pub order: u8,
    pub strategy: String,
    pub title: String,
    pub why: String,
    pub before: String,
    pub after: String,
    pub caveat: String,
    /// The site's own expression and its rewriting without the wait, where the source was at hand.
    pub here: Option<Rewrite>,
    /// How to confirm that the wait is gone.
    pub confirm: String,
}

/// An expression of the program and what to write instead.
#[derive(Clone, Debug, Serialize)]
pub struct Rewrite {
    pub before: String,
    pub after: String,
}

/// One wait of a site.
#[derive(Clone, Debug, Serialize)]
pub struct Example {
    /// On the export's clock, as the nsys GUI shows it.
    pub start_ns: i64,
    pub end_ns: i64,
    pub blocked_ns: i64,
    pub drain_ns: i64,
    /// Which of the awaited ops ended last, e.g. "ampere_sgemm_128x64_tn on stream 7".
    pub awaited: Option<String>,
}

/// Something that limits what this report can say, with the command that mends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// Stable word: "python-payload-missing", "events-lost", …
    pub code: &'static str,
    pub message: String,
    /// The exact command, or an empty string where nothing can be done.
    pub fix: String,
}
