//! What the page shows, in the words of the other formats.

use super::ranks::{self, RanksView};
use super::site::{self, PageSite};
use crate::model::timeline::Timeline;
use crate::model::{Gpu, Report, Warning};
use crate::render::{answer, phrase, ranks as words, saving, table, view};
use crate::text::{self, escape_terminal};
use crate::vocabulary::Class;
use serde::Serialize;
use std::borrow::Cow;

/// A page's data: text as it is to be read, numbers where it sorts or draws.
#[derive(Serialize)]
pub(super) struct Page<'a, Body> {
    /// What the program is to show: "report", "diff".
    pub kind: &'static str,
    pub title: String,
    pub version: Cow<'static, str>,
    /// The figure, and how sure it is; where savings are not known, what was found.
    pub headline: (String, String),
    /// Labels and texts.
    pub facts: Vec<(String, String)>,
    #[serde(flatten)]
    pub body: Body,
    pub notes: Vec<String>,
    /// The command of each empty where it was said before.
    pub warnings: Vec<Warning>,
    pub timelines: Vec<TimelineView<'a>>,
}

/// What only the page of a report has.
#[derive(Serialize)]
pub(super) struct Found {
    pub gpus: Vec<GpuView>,
    pub classes: Vec<ClassView>,
    pub sites: Vec<PageSite>,
    pub ranks: Option<RanksView>,
    /// The sentence in place of an empty table.
    pub nothing: Option<String>,
}

#[derive(Serialize)]
pub(super) struct GpuView {
    pub label: String,
    pub busy_ns: i64,
    pub drain_ns: i64,
    pub idle_ns: i64,
    /// Of the span: busy, idle after waits, otherwise idle.
    pub shares: [String; 3],
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

/// One drawing and its name.
#[derive(Serialize)]
pub(super) struct TimelineView<'a> {
    pub label: String,
    /// Which capture of a comparison: 0 BEFORE, 1 AFTER.
    pub side: usize,
    #[serde(flatten)]
    pub timeline: &'a Timeline,
}

pub(super) fn report_page(report: &Report) -> Page<'_, Found> {
    let (names, views) = (phrase::exports(report), view::Views::of(report));
    let classes = Class::LISTED.iter().map(|&class| class_view(report, class));
    Page {
        kind: "report",
        title: title(&names),
        version: report.tool.version.clone(),
        headline: headline(report),
        facts: table::facts(report),
        body: Found {
            gpus: gpus(report),
            classes: classes.collect(),
            sites: report.sites.iter().map(|site| site::page_site(report, site, &views)).collect(),
            ranks: report.ranks.as_ref().map(ranks::view),
            nothing: report.sites.is_empty().then(|| nothing(report)),
        },
        notes: table::signs(report, true)
            .into_iter()
            .chain(report.ranks.iter().flat_map(words::signs))
            .collect(),
        warnings: view::warnings(&report.warnings),
        timelines: drawn(&report.timelines, 0, &names),
    }
}

fn title(names: &[String]) -> String {
    match names {
        [] => "sync-report".to_owned(),
        [only] => format!("{only} · sync-report"),
        [first, rest @ ..] => format!("{first} and {} more · sync-report", rest.len()),
    }
}

fn headline(report: &Report) -> (String, String) {
    let totals = &report.totals;
    if report.sites.is_empty() {
        let late = report.ranks.as_ref().and_then(words::latest);
        return (nothing(report), late.map(|words| words.join(" ")).unwrap_or_default());
    }
    answer::in_two(report).unwrap_or_else(|| {
        let sites = text::counted(totals.sites, "site");
        let lead = format!("{} at {sites}.", text::counted(totals.waits, "wait"));
        let avoidable = text::count(totals.by_class.false_.waits);
        (lead, format!(" Avoidable: {avoidable} of them; what that saves is not known."))
    })
}

/// The sentence in place of sites; those of merged ranks are in the reports of each.
fn nothing(report: &Report) -> String {
    let Some(ranks) = &report.ranks else { return table::nothing(report) };
    let [ranks, sites] = [(ranks.list.len(), "rank"), (ranks.sites.len() + ranks.sites_omitted, "site")]
        .map(|(n, noun)| text::counted(n as u64, noun));
    format!("{ranks} wait at {sites}.")
}

/// How GPUs spent their time: each, or, of many ranks, all together.
fn gpus(report: &Report) -> Vec<GpuView> {
    const MOST: usize = 4;
    let each = || report.profiles.iter().flat_map(|profile| &profile.gpus);
    match each().count() {
        ..=MOST => each().map(gpu).collect(),
        n => {
            let label = format!("all {} GPUs", text::count(n as u64));
            vec![GpuView { label, ..gpu(&Gpu::together(each())) }]
        }
    }
}

fn gpu(gpu: &Gpu) -> GpuView {
    let name = gpu.name.as_deref().map(|name| format!(" · {}", escape_terminal(name))).unwrap_or_default();
    let [busy_ns, drain_ns, idle_ns] = gpu.parts();
    let span = gpu.whole_ns();
    GpuView {
        label: format!("GPU {}{name}", gpu.id),
        busy_ns,
        drain_ns,
        idle_ns,
        shares: [gpu.busy_ns, drain_ns, idle_ns].map(|part| text::share(part, span)),
    }
}

fn class_view(report: &Report, class: Class) -> ClassView {
    let totals = table::of_class(&report.totals, class);
    let [sites, waits] = [totals.sites, totals.waits].map(text::count);
    let [blocked, drain] = [totals.blocked_ns, totals.drain_ns].map(text::duration);
    let recoverable = saving::of_class(totals);
    ClassView { class, sites, waits, blocked, drain, recoverable }
}

/// The drawings of one side, under these names of its exports.
pub(super) fn drawn<'a>(timelines: &'a [Timeline], side: usize, names: &[String]) -> Vec<TimelineView<'a>> {
    let name = |timeline: &Timeline| names.get(timeline.profile.index()).cloned().unwrap_or_default();
    timelines.iter().map(|timeline| TimelineView { label: name(timeline), side, timeline }).collect()
}
