//! The page's data, in the words of the other formats.

use super::ranks::{self, RanksView};
use super::site::{self, PageSite};
use crate::model::timeline::Timeline;
use crate::model::{Class, Report, Warning};
use crate::render::{facts, head, phrase, ranks as words, report as screen, saving, view};
use crate::text;
use serde::Serialize;
use std::borrow::Cow;

/// Text as it is to be read; numbers where the page sorts or draws.
#[derive(Serialize)]
pub(super) struct Page<'a, Body> {
    /// "report" or "diff".
    pub kind: &'static str,
    pub title: String,
    pub version: Cow<'static, str>,
    /// The program, its GPUs and its iterations: "train_mlp.py · NVIDIA H200 · 30 iterations of 1.80 ms"; empty for a comparison.
    pub what: String,
    pub headline: String,
    /// The rest of the head: labels, which may be empty, and texts.
    pub lines: Vec<(String, String)>,
    pub facts: Vec<(String, String)>,
    #[serde(flatten)]
    pub body: Body,
    pub notes: Vec<String>,
    /// A command is empty where an earlier warning has it.
    pub warnings: Vec<Warning>,
    pub timelines: Vec<TimelineView<'a>>,
}

#[derive(Serialize)]
pub(super) struct ReportData {
    pub gpu_time: Vec<head::Part>,
    pub classes: Vec<ClassView>,
    pub sites: Vec<PageSite>,
    pub ranks: Option<RanksView>,
    pub graph: Option<GraphView>,
    pub nothing: Option<String>,
}

/// Causes besides waits that keep a range from being captured as a CUDA graph.
#[derive(Serialize)]
pub(super) struct GraphView {
    pub columns: [&'static str; 4],
    pub rows: Vec<[String; 4]>,
}

#[derive(Serialize)]
pub(super) struct ClassView {
    pub class: Class,
    pub sites: String,
    pub waits: String,
    pub blocked: String,
    pub drain: String,
    pub recoverable: Option<String>,
}

#[derive(Serialize)]
pub(super) struct TimelineView<'a> {
    pub label: String,
    /// 0 is BEFORE, 1 AFTER.
    pub side: usize,
    #[serde(flatten)]
    pub timeline: &'a Timeline,
}

pub(super) fn report_page(report: &Report) -> Page<'_, ReportData> {
    let (names, views) = (phrase::exports(report), view::Views::of(report));
    let (headline, lines) = head_of(report);
    let classes = Class::LISTED.iter().map(|&class| class_view(report, class));
    Page {
        kind: "report",
        title: title(&names),
        version: report.tool.version.clone(),
        what: head::title(report),
        headline,
        lines,
        facts: facts::facts(report),
        body: ReportData {
            gpu_time: head::gpu_time_parts(report),
            classes: classes.collect(),
            sites: report.sites.iter().map(|site| site::page_site(report, site, &views)).collect(),
            ranks: report.ranks.as_ref().map(ranks::view),
            graph: graph(report),
            nothing: report.sites.is_empty().then(|| nothing(report)),
        },
        notes: saving::basis(&report.totals)
            .into_iter()
            .chain(screen::signs(report, true))
            .chain(report.ranks.iter().flat_map(words::signs))
            .collect(),
        warnings: view::warnings(&report.warnings),
        timelines: drawn(&report.timelines, 0, &names),
    }
}

fn graph(report: &Report) -> Option<GraphView> {
    let escaped = |row: [String; 4]| row.map(|text| text::escape_terminal(&text).into_owned());
    let rows: Vec<_> = screen::graph_rows(report).into_iter().map(escaped).collect();
    let view = GraphView { columns: screen::GRAPH_COLUMNS, rows };
    (!view.rows.is_empty()).then_some(view)
}

fn title(names: &[String]) -> String {
    match names {
        [] => "sync-report".to_owned(),
        [only] => format!("{only} · sync-report"),
        [first, rest @ ..] => format!("{first} and {} more · sync-report", rest.len()),
    }
}

/// The finding, and the rest of the head without GPU time, which is drawn.
fn head_of(report: &Report) -> (String, Vec<(String, String)>) {
    let (first, lines) = head::parted(report);
    let lines = lines.into_iter().filter(|(label, _)| *label != head::GPU_TIME);
    let lines = lines.map(|(label, words)| (label.to_owned(), words)).collect();
    (first.unwrap_or_else(|| found(report)), lines)
}

/// The headline where no saving is known.
fn found(report: &Report) -> String {
    let totals = &report.totals;
    if report.sites.is_empty() {
        return nothing(report);
    }
    let (waits, sites) = (text::counted(totals.waits, "wait"), text::counted(totals.sites, "site"));
    format!("{waits} at {sites}, {} of them avoidable", text::count(totals.by_class.false_.waits))
}

/// The sentence in place of sites; sites of merged ranks are in the ranks' own reports.
fn nothing(report: &Report) -> String {
    let Some(ranks) = &report.ranks else { return screen::nothing(report) };
    let [ranks, sites] = [(ranks.list.len(), "rank"), (ranks.sites.len() + ranks.sites_omitted, "site")]
        .map(|(n, noun)| text::counted(n as u64, noun));
    format!("{ranks} wait at {sites}.")
}

fn class_view(report: &Report, class: Class) -> ClassView {
    let totals = screen::of_class(&report.totals, class);
    let [sites, waits] = [totals.sites, totals.waits].map(text::count);
    let [blocked, drain] = [totals.blocked_ns, totals.drain_ns].map(text::duration);
    let recoverable = saving::of_class(totals);
    ClassView { class, sites, waits, blocked, drain, recoverable }
}

/// `side` as in [`TimelineView`]; `names` are of the exports.
pub(super) fn drawn<'a>(timelines: &'a [Timeline], side: usize, names: &[String]) -> Vec<TimelineView<'a>> {
    let name = |timeline: &Timeline| names.get(timeline.profile.index()).cloned().unwrap_or_default();
    timelines.iter().map(|timeline| TimelineView { label: name(timeline), side, timeline }).collect()
}
