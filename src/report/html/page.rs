//! What the page shows, in the words of the other formats.

use super::site::{SiteView, Words};
use crate::report::table;
use crate::report::{ClassTotals, Gpu, Report, Warning, phrase, saving};
use crate::text::{self, escape_terminal};
use crate::timeline::Timeline;
use crate::vocabulary::Class;
use serde::Serialize;

/// The page's data: text as it is to be read, numbers where it sorts or draws.
#[derive(Serialize)]
pub(super) struct Page<'a> {
    /// What the program is to show: "report".
    pub kind: &'static str,
    pub title: String,
    pub version: &'static str,
    /// The figure, and how sure it is; where savings are not known, what was found.
    pub headline: (String, String),
    /// Labels and texts.
    pub facts: Vec<(String, String)>,
    pub gpus: Vec<GpuView>,
    pub classes: Vec<ClassView>,
    pub sites: Vec<SiteView>,
    /// The sentence in place of an empty table.
    pub nothing: Option<String>,
    pub notes: Vec<String>,
    pub warnings: Vec<WarningView>,
    pub timelines: Vec<TimelineView<'a>>,
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
    /// "avoidable".
    pub meaning: &'static str,
    pub sites: String,
    pub waits: String,
    pub blocked: String,
    pub drain: String,
    pub recoverable: Option<String>,
}

#[derive(Serialize)]
pub(super) struct WarningView {
    pub code: &'static str,
    pub message: String,
    /// Command; empty where it was said before.
    pub fix: String,
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

impl<'a> Page<'a> {
    pub fn of(report: &'a Report) -> Self {
        let words = Words::of(report);
        Self {
            kind: "report",
            title: title(report),
            version: report.tool.version,
            headline: headline(report),
            facts: table::facts(report),
            gpus: report.profiles.iter().flat_map(|p| &p.gpus).map(gpu).collect(),
            classes: table::ORDER
                .iter()
                .map(|&(class, meaning)| class_view(report, class, meaning))
                .collect(),
            sites: report.sites.iter().map(|site| words.site(site)).collect(),
            nothing: report.sites.is_empty().then(|| table::nothing(report)),
            notes: table::signs(report),
            warnings: warnings(&report.warnings),
            timelines: timelines(report),
        }
    }
}

/// The names of the exports, the folders left out where they do not tell them apart.
fn profile_names(report: &Report) -> Vec<String> {
    let names = phrase::FileNames::new(report.profiles.iter().map(|p| p.path.as_str()));
    report.profiles.iter().map(|p| names.get(&p.path)).collect()
}

fn title(report: &Report) -> String {
    match profile_names(report).as_slice() {
        [] => "sync-report".to_owned(),
        [only] => format!("{only} · sync-report"),
        [first, rest @ ..] => format!("{first} and {} more · sync-report", rest.len()),
    }
}

fn headline(report: &Report) -> (String, String) {
    let totals = &report.totals;
    if report.sites.is_empty() {
        return (table::nothing(report), String::new());
    }
    saving::in_two(totals).unwrap_or_else(|| {
        let sites = text::counted(totals.sites, "site");
        let lead = format!("{} at {sites}.", text::counted(totals.waits, "wait"));
        let avoidable = text::count(totals.by_class.false_.waits);
        (lead, format!(" Avoidable: {avoidable} of them; what that saves is not known."))
    })
}

fn gpu(gpu: &Gpu) -> GpuView {
    let name = gpu.name.as_deref().map(|name| format!(" · {}", escape_terminal(name))).unwrap_or_default();
    let drain_ns = gpu.drain_ns.clamp(0, gpu.idle_ns.max(0));
    let idle_ns = gpu.idle_ns.max(0) - drain_ns;
    let span = gpu.busy_ns.saturating_add(gpu.idle_ns);
    GpuView {
        label: format!("GPU {}{name}", gpu.id),
        busy_ns: gpu.busy_ns.max(0),
        drain_ns,
        idle_ns,
        shares: [gpu.busy_ns, drain_ns, idle_ns].map(|part| text::share(part, span)),
    }
}

fn class_view(report: &Report, class: Class, meaning: &'static str) -> ClassView {
    let totals: &ClassTotals = table::of_class(&report.totals, class);
    ClassView {
        class,
        meaning,
        sites: text::count(totals.sites),
        waits: text::count(totals.waits),
        blocked: text::duration(totals.blocked_ns),
        drain: text::duration(totals.drain_ns),
        recoverable: totals.recoverable_ns.map(text::duration),
    }
}

pub(super) fn warnings(all: &[Warning]) -> Vec<WarningView> {
    let mut said: Vec<&str> = Vec::new();
    let mut views = Vec::new();
    for warning in all {
        let new = !warning.fix.is_empty() && !said.contains(&warning.fix.as_str());
        views.push(WarningView {
            code: warning.code,
            message: escape_terminal(&warning.message).into_owned(),
            fix: if new { escape_terminal(&warning.fix).into_owned() } else { String::new() },
        });
        said.push(&warning.fix);
    }
    views
}

fn timelines(report: &Report) -> Vec<TimelineView<'_>> {
    let names = profile_names(report);
    let name = |timeline: &Timeline| names.get(timeline.profile).cloned().unwrap_or_default();
    report
        .timelines
        .iter()
        .map(|timeline| TimelineView { label: name(timeline), side: 0, timeline })
        .collect()
}
