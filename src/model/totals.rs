//! Totals of a report's sites and of their savings.

use super::gpu_time::GpuTime;
use super::{Gpu, Once, ProfileInfo, Replayed};
use crate::vocabulary::BoundBy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Totals over all sites of the report.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Waits that passed the filters.
    pub waits: u64,
    /// Number of sites. Sites of several ranks that share a key count once.
    pub sites: u64,
    /// Host time inside waits, summed over threads: not a saving.
    pub blocked_ns: i64,
    /// GPU busy time, summed over the GPUs of all exports.
    pub gpu_busy_ns: i64,
    /// GPU idle time, summed over the GPUs of all exports.
    pub gpu_idle_ns: i64,
    /// GPU idle time after waits, summed over GPUs.
    pub drain_ns: i64,
    /// Totals of each class.
    pub by_class: ByClass,
    /// Simulated saving of fixing every repeating avoidable site, in the run. Of several exports, the largest
    /// counts. Null where nothing was simulated.
    pub recoverable_false_joint_ns: Option<i64>,
    /// Lower end of the range of `recoverable_false_joint_ns`.
    pub recoverable_low_ns: Option<i64>,
    /// Upper end of the range of `recoverable_false_joint_ns`.
    pub recoverable_high_ns: Option<i64>,
    /// `recoverable_false_joint_ns` in percent of the run without the profiler.
    pub recoverable_percent: Option<f64>,
    /// Bottleneck once every avoidable site is fixed: "host" or "gpu".
    pub bound_by: Option<BoundBy>,
    /// Error of simulating the capture unchanged: |simulated − recorded| / recorded span. Above 0.1, there
    /// are bounds only.
    pub simulation_error: Option<f64>,
    /// `simulation_error` with usual latencies between dependent events: a harder test of the dependencies.
    pub usual_latency_error: Option<f64>,
    /// Number of evenly spread iterations simulated in place of all; null where all were.
    #[serde(default)]
    pub sampled_iterations: Option<u64>,
    /// Scatter of the capture's iterations, which widens the ranges at both ends; null without iterations.
    pub range_scatter_ns: Option<i64>,
    /// Number of NCCL kernels, which wait for other processes. In simulations a kernel keeps its recorded
    /// length where the capture lacks those processes.
    pub collectives: u64,
    /// The run without the profiler, estimated: the base of the savings.
    pub without_profiler: Option<WithoutProfiler>,
    /// The captured run, which the profiler slows.
    #[serde(default)]
    pub captured: Option<CapturedRun>,
    /// Saving per iteration; null where no loop is known or nothing was simulated.
    #[serde(default)]
    pub iteration: Option<IterationSaving>,
    /// Further saving of the run by rewriting needed sites that have a form without the wait.
    #[serde(default)]
    pub rewritable_ns: Option<i64>,
    /// Further saving of the run if all undecided sites are avoidable, after all other fixes.
    #[serde(default)]
    pub undecided_ns: Option<i64>,
    /// Repeating needed sites with a form that does not wait, e.g. `torch.where` for an assignment by mask.
    #[serde(default)]
    pub rewritable_sites: u64,
    /// Repeating undecided sites whose Python line was not at hand.
    #[serde(default)]
    pub unread_sites: u64,
    /// Sites that a fix avoids, by verdict or `--fix`. Sites of several ranks that share a key count once.
    #[serde(default)]
    pub avoidable_sites: u64,
    /// Sites of `recoverable_false_joint_ns`: avoidable or chosen by `--fix`, and not in `once`. Sites that
    /// share a key count once.
    #[serde(default)]
    pub repeating_false_sites: u64,
    /// Part of `repeating_false_sites` that only `--fix` makes count as avoidable.
    #[serde(default)]
    pub chosen_sites: u64,
    /// Whether savings were not computed, because the export lacks data for them.
    #[serde(default)]
    pub savings_unknown: bool,
    /// Waits paid once in this capture: context creation, loading, tear-down, work after the loop.
    #[serde(default)]
    pub once: Once,
    /// GPU time by kind of work, without the profiler's estimated time. `iterations.gpu_time` and
    /// `gpus[].time` are as captured.
    #[serde(default)]
    pub gpu_time: GpuTime,
    /// Measured saving of fixing every avoidable site in a replay on a GPU; absent without replay results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Replayed>,
}

impl Totals {
    /// Sets the GPU times of all exports. Sums saturate, as all sums here: damaged times may be enormous.
    pub fn add_gpus(&mut self, profiles: &[ProfileInfo]) {
        let all = Gpu::together(profiles.iter().flat_map(|profile| &profile.gpus));
        (self.gpu_busy_ns, self.gpu_idle_ns) = (all.busy_ns, all.idle_ns);
    }

    /// Saving of fixing every avoidable site: of an average iteration where a loop is known, else of the run.
    /// `None` where nothing was simulated.
    pub fn headline(&self) -> Option<Headline> {
        let WithoutProfiler { run_ns: length_ns, saved_ns, low_ns, high_ns } = self.without_profiler?;
        let of_run = Headline {
            of_iteration: false,
            length_ns,
            saved_ns,
            low_ns,
            high_ns,
            rewritable_ns: self.rewritable_ns.unwrap_or(0),
            undecided_ns: self.undecided_ns.unwrap_or(0),
        };
        let of_iteration = self.iteration.map(|one| Headline {
            of_iteration: true,
            length_ns: one.ns,
            saved_ns: one.saved_ns,
            low_ns: one.low_ns,
            high_ns: one.high_ns,
            rewritable_ns: one.rewritable_ns,
            undecided_ns: one.undecided_ns,
        });
        Some(of_iteration.unwrap_or(of_run))
    }

    /// The GPUs of all exports as one.
    pub fn gpus(&self) -> Gpu {
        let (busy_ns, idle_ns, drain_ns) = (self.gpu_busy_ns, self.gpu_idle_ns, self.drain_ns);
        Gpu { busy_ns, idle_ns, drain_ns, ..Gpu::default() }
    }

    /// Adds waits and their times.
    pub fn add_waits(&mut self, waits: u64, blocked_ns: i64, drain_ns: i64) {
        self.waits = self.waits.saturating_add(waits);
        self.blocked_ns = self.blocked_ns.saturating_add(blocked_ns);
        self.drain_ns = self.drain_ns.saturating_add(drain_ns);
    }
}

/// The estimated run without the profiler, and the saving of fixing every avoidable site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WithoutProfiler {
    /// Length of the run.
    pub run_ns: i64,
    /// Saving of fixing every avoidable site.
    pub saved_ns: i64,
    /// Lower end of the range of `saved_ns`.
    pub low_ns: i64,
    /// Upper end of the range of `saved_ns`.
    pub high_ns: i64,
}

/// The captured run as simulated, and the saving of fixing every avoidable site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapturedRun {
    /// Length of the run.
    pub run_ns: i64,
    /// Saving of fixing every avoidable site.
    pub saved_ns: i64,
}

/// One iteration, from start to start, and the saving of fixing every avoidable site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IterationSaving {
    /// Estimated length without the profiler.
    pub ns: i64,
    /// Part of `ns` saved.
    pub saved_ns: i64,
    /// Lower end of the range of `saved_ns`.
    pub low_ns: i64,
    /// Upper end of the range of `saved_ns`.
    pub high_ns: i64,
    /// Further saving by rewriting needed sites, as [`Totals::rewritable_ns`].
    #[serde(default)]
    pub rewritable_ns: i64,
    /// Further saving by undecided sites, as [`Totals::undecided_ns`].
    pub undecided_ns: i64,
    /// Length as captured.
    pub captured_ns: i64,
    /// Part of `captured_ns` saved.
    pub captured_saved_ns: i64,
}

/// Saving of fixing every avoidable site, of an iteration or of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headline {
    /// Whether times are of an average iteration, else of the run.
    pub of_iteration: bool,
    /// Estimated length without the profiler.
    pub length_ns: i64,
    /// Part of `length_ns` saved.
    pub saved_ns: i64,
    /// Lower end of the range of `saved_ns`.
    pub low_ns: i64,
    /// Upper end of the range of `saved_ns`.
    pub high_ns: i64,
    /// Further saving by rewriting needed sites, as [`Totals::rewritable_ns`].
    pub rewritable_ns: i64,
    /// Further saving by undecided sites, as [`Totals::undecided_ns`].
    pub undecided_ns: i64,
}

impl Headline {
    /// All possible savings as a share of the length, 0 to 1; of needed waits, only rewritable ones count.
    pub fn share(&self) -> f64 {
        let all = self.saved_ns.saturating_add(self.rewritable_ns).saturating_add(self.undecided_ns);
        all as f64 / self.length_ns.max(1) as f64
    }
}

/// Totals of each class.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ByClass {
    /// Avoidable waits.
    #[serde(rename = "false")]
    pub false_: ClassTotals,
    /// Needed waits.
    #[serde(rename = "true")]
    pub true_: ClassTotals,
    /// Undecided waits.
    pub unknown: ClassTotals,
}

/// Totals of one class.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClassTotals {
    /// Number of waits.
    pub waits: u64,
    /// Number of sites.
    pub sites: u64,
    /// Host time inside the waits.
    pub blocked_ns: i64,
    /// GPU idle time after the waits.
    pub drain_ns: i64,
    /// Simulated saving of fixing every avoidable site; null in other classes, with `--fix`, or without a
    /// simulation.
    pub recoverable_ns: Option<i64>,
}
