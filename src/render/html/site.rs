//! A site's row on the page, and its details.

use crate::model::{Example, ProfileIx, Report, Site, Snippet};
use crate::render::details;
use crate::render::document::Block;
use crate::render::view::{self, FrameView, SiteView, Views};
use crate::text::{self, escape_terminal, shorten_symbol};
use serde::Serialize;

/// Frames shown: a recursive program has thousands.
const MOST_FRAMES: usize = 60;
const LONG_SYMBOL: usize = 160;

#[derive(Serialize)]
pub(super) struct PageSite {
    #[serde(flatten)]
    pub row: SiteView,
    pub sort: SortBy,
    /// This and the fields below are read when the site is opened.
    pub api: String,
    pub reasons: Vec<Block>,
    /// Outermost first.
    pub stack: Vec<FrameView>,
    pub frames_left_out: usize,
    pub snippet: Option<Snippet>,
    pub line: u32,
    pub native: Vec<String>,
    pub about: Vec<Block>,
    /// Upper bounds in ns, and waits up to each.
    pub histogram: Vec<(i64, u64)>,
    pub fix: Option<Block>,
    pub examples: Vec<ExampleView>,
    /// Also the index of the drawing.
    pub profile: ProfileIx,
}

#[derive(Serialize)]
pub(super) struct SortBy {
    pub confidence: f64,
    pub waits: u64,
    pub saves_ns: i64,
    pub blocked_ns: i64,
    pub p99_ns: i64,
    pub drain_ns: i64,
}

#[derive(Serialize)]
pub(super) struct ExampleView {
    pub start_ns: i64,
    pub end_ns: i64,
    pub drain_ns: i64,
    /// As the nsys GUI shows it.
    pub at: String,
    pub blocked: String,
    pub drain: String,
    pub awaited: String,
}

pub(super) fn page_site(report: &Report, site: &Site, views: &Views) -> PageSite {
    let (stack, frames_left_out) = stack(site);
    let there = |block: &Block| !block.is_empty();
    PageSite {
        row: views.site(site),
        sort: SortBy {
            confidence: site.finite_confidence(),
            waits: site.waits,
            saves_ns: site.saves_ns(),
            blocked_ns: site.blocked_ns,
            p99_ns: site.blocked_p99_ns,
            drain_ns: site.drain_ns,
        },
        api: details::api(site),
        reasons: details::reasons(site, views).into_iter().filter(there).collect(),
        stack,
        frames_left_out,
        snippet: site.snippet.as_ref().map(|s| Snippet {
            first_line: s.first_line,
            lines: s.lines.iter().map(|line| code(line)).collect(),
        }),
        line: site.user_frame.as_ref().map_or(0, |f| f.line),
        native: site.native.iter().rev().map(|f| symbol(f)).collect(),
        about: details::about(report, site).into_iter().filter(there).collect(),
        histogram: site.histogram.clone(),
        fix: site.fix.as_ref().map(details::advice),
        examples: site.examples.iter().map(example).collect(),
        profile: site.process.profile,
    }
}

/// Source text: escaped line by line, tabs as blanks.
fn code(text: &str) -> String {
    let lines = text.lines().map(|line| escape_terminal(&line.replace('\t', "    ")).into_owned());
    lines.collect::<Vec<_>>().join("\n")
}

fn symbol(function: &str) -> String {
    shorten_symbol(&escape_terminal(function), LONG_SYMBOL).into_owned()
}

/// Outermost first, and how many are left out of the middle.
fn stack(site: &Site) -> (Vec<FrameView>, usize) {
    let frames = view::stack(site);
    let left_out = frames.len().saturating_sub(MOST_FRAMES);
    // Inner frames say what happened, outer ones where from.
    let inner = frames.len().min(MOST_FRAMES) / 2;
    let kept = frames.iter().enumerate().filter(|(i, _)| *i < inner || *i >= inner + left_out);
    let views = kept.map(|(_, frame)| FrameView::of(site, frame)).rev();
    (views.collect(), left_out)
}

fn example(example: &Example) -> ExampleView {
    ExampleView {
        start_ns: example.start_ns,
        end_ns: example.end_ns,
        drain_ns: example.drain_ns,
        at: text::timestamp(example.start_ns),
        blocked: text::duration(example.blocked_ns),
        drain: text::duration(example.drain_ns),
        awaited: example.awaited.as_deref().map(symbol).unwrap_or_default(),
    }
}
