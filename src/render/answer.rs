//! The answer of a report: the rank that comes late, and what fixes save.

use super::ranks;
use super::saving::{self, Finding};
use crate::model::gpu_time::GpuTime;
use crate::model::{BoundBy, Report};

/// The share of an iteration below which waits are not worth a look.
const LEAST_SHARE: f64 = 0.01;

pub fn finding(report: &Report) -> Option<Finding> {
    let saved = saving::finding(&report.totals);
    let Some(late) = report.ranks.as_ref().and_then(ranks::latest) else {
        return saved.map(|found| Finding { limit: limit(report), ..found });
    };
    // The late rank limits a program of many ranks; rewritings and undecided waits come later.
    let saved = saved.unwrap_or_default();
    Some(Finding { late: Some(late), rewriting: None, undecided: None, ..saved })
}

/// The answer where there is no finding.
pub fn without_waits(report: &Report) -> Finding {
    Finding { limit: is_blocked(&report.gpu_time()).then(|| BLOCKED.to_owned()), ..Finding::default() }
}

const BLOCKED: &str =
    "the CPU sleeps or waits for others (data loader, files, locks): more workers, prefetch";

/// Whether GPUs are idle most of the time since the CPU is blocked.
fn is_blocked(time: &GpuTime) -> bool {
    time.share(time.idle_ns().0) > 0.5
}

/// Says whether the GPU, the CPU, copies or collectives limit the program once its waits are fixed.
fn limit(report: &Report) -> Option<String> {
    const CPU: &str = "the CPU limits: fewer, larger launches (CUDA graphs, torch.compile)";
    let (time, totals) = (report.gpu_time(), &report.totals);
    let mostly = |ns: i64| time.share(ns) > 0.5;
    // The copies of avoidable lines may become shorter by as much.
    let saved = totals.headline().map_or(0.0, |of| of.share());
    let (blocked, busy) = time.idle_ns();
    let cpu = if blocked > busy { BLOCKED } else { CPU };
    let what = match totals.bound_by {
        _ if time.share(time.copies_ns()) > 0.5 + saved => {
            "copies fill the GPU's time: copy less, or while kernels run"
        }
        _ if mostly(time.collectives_ns) => "collectives fill the GPU's time: overlap them with kernels",
        _ if is_blocked(&time) => BLOCKED,
        // A GPU that works most of the time is no sign of a slow CPU.
        Some(BoundBy::Host) if mostly(time.all_idle_ns()) => cpu,
        None if mostly(time.idle_otherwise_ns) => cpu,
        Some(BoundBy::Gpu) => "the GPU limits: faster kernels, or less work",
        Some(BoundBy::Host) | None => return None,
    };
    let matters = totals.headline().is_none() || saved >= LEAST_SHARE;
    let lead = if matters { "without these waits" } else { "waits cost little;" };
    Some(format!("{lead} {what}"))
}
