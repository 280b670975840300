//! What waits cost: blocked, drain, iterations, histogram, clipping.

use crate::export::{Export, GPU0, Gpu, Schema, Thread, empty};
use crate::look::{self, options};
use std::path::PathBuf;
use sync_report::analysis::Options;
use sync_report::analysis::filter::Filter;
use sync_report::model::Report;
use sync_report::report;
use sync_report::vocabulary::Class;

mod beside;
mod collectives;
mod drain;
mod gpu_time;
mod host_calls;
mod iterations;
mod machine;
mod once;
mod profiler;
mod sample;
mod savings;
mod simulation;
mod streams;

fn sample(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("sample-profiles").join(name)
}

fn on(name: &str, options: &Options) -> Report {
    report::run(&[sample(name)], options).expect("a report")
}

const SIDE: Gpu = Gpu { device: 0, stream: 13 };

fn drains(e: &Export) -> Vec<i64> {
    look::analysed(e).drains.raw.clone()
}

/// All savings lie inside their ranges; the whole saves at least its best part.
fn assert_priced(report: &Report) {
    let totals = &report.totals;
    let mut best = 0;
    for saving in report.sites.iter().filter_map(|s| s.recoverable.as_ref()) {
        assert!(saving.simulated || saving.alone_ns == 0, "{saving:?}");
        assert!((0.0..=100.0).contains(&saving.percent), "{saving:?}");
        assert!(0 <= saving.low_ns && saving.low_ns <= saving.alone_ns, "{saving:?}");
        assert!(saving.alone_ns <= saving.high_ns && saving.joint_ns <= saving.high_ns, "{saving:?}");
    }
    for site in report.sites.iter().filter(|s| s.class == Class::False && !s.once) {
        best = best.max(site.recoverable.as_ref().filter(|r| r.simulated).map_or(0, |r| r.alone_ns));
    }
    if let Some(alone) = totals.without_profiler {
        assert!(
            0 <= alone.low_ns && alone.low_ns <= alone.saved_ns && alone.saved_ns <= alone.high_ns,
            "{alone:?}"
        );
    }
    if let Some(joint) = totals.recoverable_false_joint_ns {
        let (low, high) = (totals.recoverable_low_ns.unwrap_or(0), totals.recoverable_high_ns.unwrap_or(0));
        assert!(low <= joint && joint <= high, "{totals:?}");
        assert!(report.profiles.len() > 1 || report.sites_omitted > 0 || best <= joint, "{best} {totals:?}");
    }
}

/// Invariants of every report.
pub fn assert_sound(report: &Report) {
    assert_priced(report);
    let mut drain = 0;
    for gpu in report.profiles.iter().flat_map(|p| &p.gpus) {
        assert!(gpu.busy_ns >= 0 && gpu.idle_ns >= 0, "{gpu:?}");
        assert_eq!(gpu.busy_ns + gpu.idle_ns, gpu.span_ns, "{gpu:?}");
        assert!((0..=gpu.idle_ns).contains(&gpu.drain_ns), "{gpu:?}");
        let time = &gpu.time;
        assert_eq!(time.whole_ns(), gpu.span_ns, "{gpu:?}");
        assert_eq!(
            time.kernels_ns + time.collectives_ns + time.copies_ns() + time.memsets_ns,
            gpu.busy_ns,
            "{gpu:?}"
        );
        assert_eq!(time.idle_after_waits_ns, gpu.drain_ns, "{gpu:?}");
        let blocked = time.idle_blocked_ns.unwrap_or_default();
        assert!((0..=time.idle_otherwise_ns).contains(&blocked), "{gpu:?}");
        assert_eq!(time.blocked_in.iter().map(|time| time.ns).sum::<i64>(), blocked, "{gpu:?}");
        drain += gpu.drain_ns;
    }
    assert!(report.totals.drain_ns <= drain, "{} of {drain}", report.totals.drain_ns);
    for site in &report.sites {
        for percent in [site.blocked_percent, site.drain_percent] {
            assert!((0.0..=100.0).contains(&percent), "{percent}");
        }
        assert!(site.blocked_p50_ns <= site.blocked_p99_ns && site.blocked_p99_ns <= site.blocked_max_ns);
        assert!(site.blocked_max_ns <= site.blocked_ns);
        assert_eq!(site.histogram.iter().map(|h| h.1).sum::<u64>(), site.waits);
        let Some(awaited) = &site.awaited else { continue };
        assert!((0..=site.blocked_ns).contains(&awaited.idle_ns), "{awaited:?}");
        for stream in &awaited.streams {
            assert!((0..=stream.pending_ns).contains(&stream.only_ns), "{stream:?}");
            assert!(stream.waits <= site.waits && stream.read <= stream.waits, "{stream:?}");
        }
        for one in awaited.collectives.iter() {
            assert!(0 <= one.late_ns && one.late_ns <= one.met_ns && one.met_ns <= one.blocked_ns, "{one:?}");
        }
    }
}
