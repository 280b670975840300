//! One comparison in every format.

use super::{Unchanged, document};
use crate::diff::{Snapshot, compare};
use crate::model::diff::DiffReport;
use crate::model::sample;
use crate::render::document::{markdown, terminal};
use crate::render::json;
use crate::render::markdown_text::COMMENT;
use crate::render::style::Style;

/// The upload is gone, the branch moved and blocks longer, the sampled site is as it was, the hostile one is new.
fn sample() -> DiffReport {
    let mut before = sample::single();
    let mut after = sample::single();
    for site in before.sites.iter_mut().chain(&mut after.sites) {
        // Sampled lines would make the comparison go by function.
        site.attribution = crate::model::Attribution::PythonBacktrace;
    }
    let hostile = sample::sample().sites.remove(6);
    after.sites.remove(0);
    after.sites.push(crate::model::Site { process: after.sites[0].process.clone(), ..hostile });
    let moved = &mut after.sites[0];
    if let Some(spread) = &mut moved.spread {
        spread.blocked_ns = [7_800_000, 7_910_000, 8_050_000];
    }
    for frame in moved.frames.iter_mut().chain(&mut moved.user_frame) {
        frame.line += 40;
    }
    if let Some(iterations) = &mut after.iterations {
        (iterations.median_ns, iterations.quartiles_ns) = (18_000_000, [17_900_000, 18_000_000, 18_400_000]);
    }
    after.profiles[0].gpus[0].name = before.profiles[0].gpus[0].name.clone();
    before.profiles[0].path = "/data/runs/before.sqlite".to_owned();
    let side = |report| Snapshot::of(report, false);
    compare(&side(before), &side(after))
}

/// (launch before, launch after, whether times may be judged)
#[test]
fn a_slower_host_is_said_and_its_times_are_not_judged() {
    for (before, after, judged) in [
        (Some(5_000), Some(5_700), true),
        (Some(5_000), Some(5_800), false),
        (Some(5_800), Some(5_000), false),
        (None, Some(5_000), true),
        (Some(0), Some(5_000), true),
    ] {
        let side = |launch| {
            let mut report = sample::single();
            report.profiles[0].launch_ns = launch;
            Snapshot::of(report, false)
        };
        let report = compare(&side(before), &side(after));
        assert_eq!(report.costs_compared, judged, "{before:?} {after:?}");
        assert_eq!(report.warnings.iter().any(|w| w.code == "other-host"), !judged);
        assert_eq!(report.run.span_noise_ns.is_some(), judged);
    }
}

/// On 120 columns, in a pipe with all sites, as Markdown.
#[test]
fn for_people() {
    let style = Style { width: Some(120), color: false };
    let printed = [
        terminal::text(&document(&sample(), Unchanged::Left), &style),
        terminal::text(&document(&sample(), Unchanged::Listed), &Style::default()),
        markdown::text(&document(&sample(), Unchanged::Folded), COMMENT),
    ];
    insta::assert_snapshot!(printed.join("\n"));
}

#[test]
fn as_json() {
    insta::assert_snapshot!(sample::printed(|out| json::write(&sample(), out)));
}
