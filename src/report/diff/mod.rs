//! What changed between two captures: the result structs and their renderers.

pub mod json;
pub mod markdown;
pub mod table;
pub(crate) mod words;

use super::{Tool, Warning};
use crate::diff::matching::How;
use crate::diff::units::Grain;
use crate::vocabulary::{Class, Kind, Per};
use serde::Serialize;

/// What one comparison found.
#[derive(Clone, Debug, Serialize)]
pub struct DiffReport {
    /// Version of this tree's layout: fields may be added, never renamed.
    pub schema_version: u32,
    pub tool: Tool,
    pub before: CaptureInfo,
    pub after: CaptureInfo,
    /// What sites are compared by: line, function or call.
    pub grain: Grain,
    /// Whether times were judged; else they are only shown, and a warning says why.
    pub costs_compared: bool,
    pub run: RunChange,
    pub counts: Counts,
    /// New, gone, changed, moved, unchanged; within each, those first whose cost differs most.
    pub sites: Vec<SiteChange>,
    pub warnings: Vec<Warning>,
}

/// One side.
#[derive(Clone, Debug, Serialize)]
pub struct CaptureInfo {
    pub profiles: Vec<String>,
    pub command: Option<String>,
    pub gpus: Vec<String>,
    /// Processes that waited.
    pub ranks: usize,
    pub iterations: Option<u64>,
}

/// The whole program on both sides.
#[derive(Clone, Debug, Serialize)]
pub struct RunChange {
    pub per: Per,
    pub before: WholeRun,
    pub after: WholeRun,
    /// Below this, a difference of `span_ns` is jitter; `None` where that cannot be told.
    pub span_noise_ns: Option<i64>,
    pub span_changed: bool,
}

/// Amounts per iteration (of the median one for the span, else means) or per run; waits and costs are means over ranks.
#[derive(Clone, Debug, Serialize)]
pub struct WholeRun {
    pub span_ns: i64,
    pub gpu_busy_percent: Option<f64>,
    pub waits: f64,
    pub false_waits: f64,
    pub blocked_ns: i64,
    pub drain_ns: i64,
    /// Simulated saving of fixing every false site, of the whole run.
    pub recoverable_ns: Option<i64>,
    /// The whole run's span.
    pub run_ns: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub new: usize,
    pub gone: usize,
    pub changed: usize,
    pub moved: usize,
    pub unchanged: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    New,
    Gone,
    /// In waits, costs or verdict.
    Changed,
    /// In its place alone.
    Moved,
    Unchanged,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aspect {
    Waits,
    Blocked,
    Drain,
    Verdict,
}

/// A site of one side or of both.
#[derive(Clone, Debug, Serialize)]
pub struct SiteChange {
    pub status: Status,
    /// By what the two sides were recognised as one.
    pub matched: Option<How>,
    /// What the amounts refer to.
    pub per: Per,
    pub changed: Vec<Aspect>,
    pub before: Option<SiteState>,
    pub after: Option<SiteState>,
    pub noise: Noise,
}

/// Differences below these are jitter; `None` where that cannot be told (too few samples, captures that differ).
#[derive(Clone, Debug, Default, Serialize)]
pub struct Noise {
    pub blocked_ns: Option<i64>,
    pub drain_ns: Option<i64>,
}

/// A site as one side has it.
#[derive(Clone, Debug, Serialize)]
pub struct SiteState {
    /// Ids in the report of that side; several where the comparison takes sites together.
    pub ids: Vec<String>,
    pub key: String,
    pub location: Option<Location>,
    /// The nearest caller of the user's, where another site of that side has the same location.
    pub caller: Option<Location>,
    /// What it is called without a location: PyTorch method, NVTX range or API.
    pub name: String,
    pub source: Option<String>,
    pub api: String,
    pub class: Class,
    pub kind: Kind,
    pub pattern: Option<String>,
    pub waits: f64,
    /// Of a typical iteration: the median of those that wait, times their share; or of the run.
    pub blocked_ns: i64,
    pub drain_ns: i64,
    pub recoverable_ns: Option<i64>,
    pub fix: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Location {
    pub file: String,
    pub function: String,
    pub line: u32,
}

impl SiteChange {
    /// The side that shows it: AFTER, as long as there is one.
    pub fn shown(&self) -> Option<&SiteState> {
        self.after.as_ref().or(self.before.as_ref())
    }
}

#[cfg(test)]
mod tests;
