//! One comparison in every format.

use super::{Unchanged, document};
use crate::diff::{Snapshot, compare};
use crate::model::diff::DiffReport;
use crate::model::sample;
use crate::render::document::{markdown, terminal};
use crate::render::json as tree_json;
use crate::render::markdown_text::COMMENT;
use crate::render::style::Style;
use serde_json::{Value, json};

/// The copy is gone, the branch moved and blocks longer, the sampled site is unchanged, the hostile one is new.
fn sample() -> DiffReport {
    let mut before = sample::single();
    let mut after = sample::single();
    for site in before.sites.iter_mut().chain(&mut after.sites) {
        // With sampled lines, sites would be compared by function.
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

/// (launch ns before, launch ns after, whether times may be judged)
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

/// For 120 columns, in a pipe with all sites, as Markdown.
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
    let report = sample();
    let printed = sample::printed(|out| tree_json::write(&report, out));
    let tree: Value = serde_json::from_str(&printed).expect("JSON");
    let sites = tree["sites"].as_array().expect("sites");
    assert_eq!(sites.len(), report.sites.len());
    let of = |status: &str| sites.iter().filter(|site| site["status"] == status).count();
    assert_eq!((of("gone"), of("new")), (1, 1));
    for (place, expected) in [
        ("/schema_version", json!(1)),
        ("/before/profiles/0", json!("/data/runs/before.sqlite")),
        ("/after/iterations", json!(100)),
        ("/grain", json!("line")),
        ("/costs_compared", json!(true)),
        ("/run/per", json!("iteration")),
        ("/run/before/span_ns", json!(24_100_000)),
        ("/run/after/span_ns", json!(18_000_000)),
        ("/run/span_noise_ns", json!(3_615_000)),
        ("/run/span_changed", json!(true)),
    ] {
        assert_eq!(tree.pointer(place), Some(&expected), "{place}");
    }
    let moved =
        sites.iter().find(|site| site["before"].is_object() && site["after"].is_object()).expect("a pair");
    let line = |side: &str| moved[side]["location"]["line"].as_u64().expect("a line");
    assert_eq!(line("after"), line("before") + 40);
}
