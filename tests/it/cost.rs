//! What waits cost: blocked, drain, iterations, histogram, clipping.

use crate::export::{Export, GPU0, Gpu, Schema, Thread};
use crate::look::{self, options};
use sync_report::analysis::Options;
use sync_report::analysis::filter::Filter;
use sync_report::report::Report;

mod drain;
mod iterations;

const SIDE: Gpu = Gpu { device: 0, stream: 13 };

fn empty() -> (Export, Thread) {
    let mut e = Export::new(Schema::V2026_2);
    let t = e.thread(100, 100);
    (e, t)
}

fn drains(e: &Export) -> Vec<i64> {
    look::analysed(e).drains.clone()
}

/// What must hold of every report, whatever the program.
pub fn assert_sound(report: &Report) {
    let mut drain = 0;
    for gpu in report.profiles.iter().flat_map(|p| &p.gpus) {
        assert!(gpu.busy_ns >= 0 && gpu.idle_ns >= 0, "{gpu:?}");
        assert_eq!(gpu.busy_ns + gpu.idle_ns, gpu.span_ns, "{gpu:?}");
        assert!((0..=gpu.idle_ns).contains(&gpu.drain_ns), "{gpu:?}");
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
    }
}
