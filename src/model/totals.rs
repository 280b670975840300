//! What all sites of a report come to, and what fixing them saves.

use super::gpu_time::GpuTime;
use super::{Gpu, Once, ProfileInfo, Replayed};
use crate::vocabulary::BoundBy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All sites of the report together.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Waits that passed the filters.
    pub waits: u64,
    /// Sites that they form; one for those of several ranks that share a key.
    pub sites: u64,
    /// Host time inside waits, summed over threads: not a saving.
    pub blocked_ns: i64,
    /// Summed over the GPUs of all exports.
    pub gpu_busy_ns: i64,
    /// Likewise.
    pub gpu_idle_ns: i64,
    /// Idle time of all devices that follows waits.
    pub drain_ns: i64,
    /// The same by class.
    pub by_class: ByClass,
    /// Simulated saving of fixing every false site; `None` until simulated.
    pub recoverable_false_joint_ns: Option<i64>,
    /// Lower end of its range.
    pub recoverable_low_ns: Option<i64>,
    /// Upper end.
    pub recoverable_high_ns: Option<i64>,
    /// `recoverable_false_joint_ns` in percent of the run without the profiler.
    pub recoverable_percent: Option<f64>,
    /// What limits the run once all false sites are fixed: "host" or "gpu".
    pub bound_by: Option<BoundBy>,
    /// |simulated − recorded| / recorded span with nothing fixed. Over 0.1 there are bounds only.
    pub simulation_error: Option<f64>,
    /// The same with usual latencies in place of the recorded distances between dependent events: a harder test of
    /// which event depends on which.
    pub usual_latency_error: Option<f64>,
    /// Iterations that were simulated, evenly spread, for all that there are; `None` where each was.
    #[serde(default)]
    pub sampled_iterations: Option<u64>,
    /// What the scatter of the capture's iterations adds to either end of the ranges; `None` without iterations.
    pub range_scatter_ns: Option<i64>,
    /// GPU work that waits for other processes (NCCL kernels). Where the capture does not hold those, it keeps its recorded
    /// length in every simulation.
    pub collectives: u64,
    /// The run without the profiler, estimated: what the savings here are of.
    pub without_profiler: Option<WithoutProfiler>,
    /// The captured run, which the profiler slows.
    #[serde(default)]
    pub captured: Option<CapturedRun>,
    /// One iteration; `None` where no loop is known or nothing was simulated.
    #[serde(default)]
    pub iteration: Option<IterationSaving>,
    /// Rewriting the needed sites that have a form without the wait saves so much of the run, on top of `recoverable_false_joint_ns`.
    #[serde(default)]
    pub rewritable_ns: Option<i64>,
    /// The undecided sites save so much of the run on top of both, if all are avoidable.
    #[serde(default)]
    pub undecided_ns: Option<i64>,
    /// Needed sites of the repeating work that another form does without waiting: `torch.where` in place of an assignment through a
    /// mask, a guard that looks every N steps.
    #[serde(default)]
    pub rewritable_sites: u64,
    /// Undecided sites of the repeating work whose line of Python was not at hand.
    #[serde(default)]
    pub unread_sites: u64,
    /// Sites about which something can be done; one for those of several ranks that share a key.
    #[serde(default)]
    pub avoidable_sites: u64,
    /// Sites that the saving is of: false ones, or with a change that was asked for, that are no part of `once`; counted as
    /// `avoidable_sites`.
    #[serde(default)]
    pub repeating_false_sites: u64,
    /// How many of them are not false: a change of theirs was asked for.
    #[serde(default)]
    pub chosen_sites: u64,
    /// The export lacks what savings rest on: none is computed.
    #[serde(default)]
    pub savings_unknown: bool,
    /// Sites that wait once in this capture: context creation, loading, tear-down; and after the loop.
    #[serde(default)]
    pub once: Once,
    /// Where GPU time goes, without the profiler: what the first lines of a report say. `iterations.gpu_time` and `gpus[].time` are as
    /// captured.
    #[serde(default)]
    pub gpu_time: GpuTime,
    /// What fixing all false sites saved in a replay on a GPU, where results of one were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Replayed>,
}

impl Totals {
    /// Adds the GPUs of all exports. Times of several lie side by side, and damaged ones may be enormous: so below.
    pub fn add_gpus(&mut self, profiles: &[ProfileInfo]) {
        let all = Gpu::together(profiles.iter().flat_map(|profile| &profile.gpus));
        (self.gpu_busy_ns, self.gpu_idle_ns) = (all.busy_ns, all.idle_ns);
    }

    /// What fixing all false sites saves of what matters most: an average iteration where a loop is known, else the run.
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

    /// Adds so many waits.
    pub fn add_waits(&mut self, waits: u64, blocked_ns: i64, drain_ns: i64) {
        self.waits = self.waits.saturating_add(waits);
        self.blocked_ns = self.blocked_ns.saturating_add(blocked_ns);
        self.drain_ns = self.drain_ns.saturating_add(drain_ns);
    }
}

/// The program without the profiler, and what fixing every false site saves of that: an estimate with its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WithoutProfiler {
    /// Length of the run.
    pub run_ns: i64,
    /// Saving of fixing every false site.
    pub saved_ns: i64,
    /// Lower end of its range.
    pub low_ns: i64,
    /// Upper end.
    pub high_ns: i64,
}

/// The captured run as simulated, and what fixing every false site saves of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapturedRun {
    /// Length of the run.
    pub run_ns: i64,
    /// Saving of fixing every false site.
    pub saved_ns: i64,
}

/// One iteration, from start to start, and what fixing every false site saves of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IterationSaving {
    /// Its length without the profiler, estimated.
    pub ns: i64,
    /// Saved of that.
    pub saved_ns: i64,
    /// Lower end of the range of the saving.
    pub low_ns: i64,
    /// Upper end.
    pub high_ns: i64,
    /// Saved on top of that by rewriting needed sites, as [`Totals::rewritable_ns`].
    #[serde(default)]
    pub rewritable_ns: i64,
    /// Saved on top of both by what is undecided, as [`Totals::undecided_ns`].
    pub undecided_ns: i64,
    /// Its length as captured.
    pub captured_ns: i64,
    /// Saved of that.
    pub captured_saved_ns: i64,
}

/// What fixing every false site saves of an iteration or of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headline {
    /// Whether it is of an average iteration.
    pub of_iteration: bool,
    /// How long that takes without the profiler, estimated.
    pub length_ns: i64,
    /// Saved of that.
    pub saved_ns: i64,
    /// Lower end of its range.
    pub low_ns: i64,
    /// Upper end.
    pub high_ns: i64,
    /// Saved on top of that by rewriting needed sites, as [`Totals::rewritable_ns`].
    pub rewritable_ns: i64,
    /// Saved on top of both by what is undecided, as [`Totals::undecided_ns`].
    pub undecided_ns: i64,
}

impl Headline {
    /// All that its waits may cost, needed ones that cannot be rewritten apart, as a share of the length, 0 to 1.
    pub fn share(&self) -> f64 {
        let all = self.saved_ns.saturating_add(self.rewritable_ns).saturating_add(self.undecided_ns);
        all as f64 / self.length_ns.max(1) as f64
    }
}

/// Totals of each class.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ByClass {
    /// Waits that can go.
    #[serde(rename = "false")]
    pub false_: ClassTotals,
    /// Waits that are needed.
    #[serde(rename = "true")]
    pub true_: ClassTotals,
    /// Waits that the evidence leaves open.
    pub unknown: ClassTotals,
}

/// Totals of one class.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClassTotals {
    /// Waits.
    pub waits: u64,
    /// Sites.
    pub sites: u64,
    /// Host time inside the waits.
    pub blocked_ns: i64,
    /// Idle time of GPUs after them.
    pub drain_ns: i64,
    /// Saving with all false sites fixed; `None` until simulated.
    pub recoverable_ns: Option<i64>,
}
