//! A site as the page shows it: a row, and what a click opens.

use crate::model::{Example, ProfileIx, Report, Site, Snippet};
use crate::render::details;
use crate::render::document::Block;
use crate::render::view::{self, FrameView, SiteView, Views};
use crate::text::{self, escape_terminal, shorten_symbol};
use serde::Serialize;

/// Frames shown: a recursive program has thousands.
const MOST_FRAMES: usize = 60;
/// Columns of a native function or an awaited kernel.
const LONG_SYMBOL: usize = 160;

#[derive(Serialize)]
pub(super) struct PageSite {
    #[serde(flatten)]
    pub row: SiteView,
    pub sort: SortBy,
    /// What follows is read when the site is opened.
    pub api: String,
    /// Why it has its verdict, and who calls it.
    pub reasons: Vec<Block>,
    /// Outermost first.
    pub stack: Vec<FrameView>,
    /// Frames left out of the stack's middle.
    pub frames_left_out: usize,
    pub snippet: Option<Snippet>,
    /// The number of the user's line.
    pub line: u32,
    pub native: Vec<String>,
    /// What it costs, what it waited for, where else it can be placed.
    pub about: Vec<Block>,
    /// Upper bound in ns, waits.
    pub histogram: Vec<(i64, u64)>,
    /// The advice.
    pub fix: Option<Block>,
    pub examples: Vec<ExampleView>,
    /// Index of the export, and so of the drawing.
    pub profile: ProfileIx,
}

/// A row's numbers.
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
    // The innermost say what happened, the outermost where from.
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
