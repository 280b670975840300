//! The answer of a report: the rank that comes late, and what fixes save.

use super::ranks;
use super::saving::{self, Finding};
use crate::model::Report;
use crate::vocabulary::BoundBy;

/// The share of an iteration below which waits are not worth a look.
const LEAST_SHARE: f64 = 0.01;

/// In parts.
pub fn finding(report: &Report) -> Option<Finding> {
    let saved = saving::finding(&report.totals);
    let Some(late) = report.ranks.as_ref().and_then(ranks::latest) else {
        return saved.map(|found| Finding { limit: limit(report), ..found });
    };
    // The rank that comes late limits a program of many ranks.
    Some(Finding { late: Some(late), ..saved.unwrap_or_default() })
}

/// Says whether the GPU, the CPU, copies or collectives limit the program once its waits are fixed.
fn limit(report: &Report) -> Option<String> {
    const CPU: &str = "the CPU limits: fewer, larger launches (CUDA graphs, torch.compile)";
    let (time, totals) = (report.gpu_time(), &report.totals);
    let mostly = |ns: i64| time.share(ns) > 0.5;
    // The copies of avoidable lines may become shorter by as much.
    let saved = totals.headline().map_or(0.0, |of| of.share());
    let what = match totals.bound_by {
        _ if time.share(time.copies_ns()) > 0.5 + saved => {
            "copies fill the GPU's time: copy less, or while kernels run"
        }
        _ if mostly(time.collectives_ns) => "collectives fill the GPU's time: overlap them with kernels",
        Some(BoundBy::Host) => CPU,
        None if mostly(time.idle_otherwise_ns) => CPU,
        Some(BoundBy::Gpu) => "the GPU limits: faster kernels, or less work",
        None => return None,
    };
    let matters = totals.headline().is_none() || saved >= LEAST_SHARE;
    let lead = if matters { "without these waits" } else { "waits cost little;" };
    Some(format!("{lead} {what}"))
}
