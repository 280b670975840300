//! What the page of a comparison shows.

use super::page::{TimelineView, WarningView, warnings};
use crate::report::diff::{DiffReport, SiteChange, SiteState, Status, table, words};
use crate::report::phrase::FileNames;
use crate::text::{self, escape_terminal};
use crate::timeline::Timeline;
use crate::vocabulary::Per;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Page<'a> {
    /// What the program is to show.
    pub kind: &'static str,
    pub title: String,
    pub version: &'static str,
    pub headline: (String, String),
    pub facts: Vec<(String, String)>,
    /// "iteration" or "run", which amounts refer to.
    pub per: &'static str,
    /// The whole program: name, before, after, difference.
    pub run: Vec<[String; 4]>,
    pub changes: Vec<ChangeView>,
    pub notes: Vec<String>,
    pub warnings: Vec<WarningView>,
    pub timelines: Vec<TimelineView<'a>>,
}

/// A site of one side or of both.
#[derive(Serialize)]
pub(super) struct ChangeView {
    pub id: String,
    pub status: &'static str,
    pub verdict: String,
    /// Class of the side that is shown.
    pub class: &'static str,
    pub place: String,
    /// Where it was, what differs, what to do.
    pub more: Vec<String>,
    /// Ids of its sites on either side, as the drawings have them.
    pub sites: [Vec<String>; 2],
    /// Waits, blocked, drain, saves.
    pub amounts: [Amount; 4],
    /// Differences of blocked time and drain up to these are jitter; empty where that cannot be told.
    pub jitter: [String; 2],
    /// What either side says of it.
    pub sides: [Option<Vec<(&'static str, String)>>; 2],
}

#[derive(Serialize)]
pub(super) struct Amount {
    /// "64.4 µs → 12.1 µs".
    pub text: String,
    /// After less before; what is not there counts as nothing.
    pub difference: f64,
}

impl<'a> Page<'a> {
    pub fn of(report: &DiffReport, drawings: [&'a [Timeline]; 2]) -> Self {
        let files = words::files(report);
        let per = report.run.per.as_str();
        let headline = words::headline(report);
        let (lead, rest) = headline.split_once("; ").unwrap_or((&headline, ""));
        let facts = [
            ("before", table::capture(&report.before)),
            ("after", table::capture(&report.after)),
            ("sites", words::counts(report).trim_start_matches("sites: ").to_owned()),
        ];
        Self {
            kind: "diff",
            title: "before and after · sync-report".to_owned(),
            version: report.tool.version,
            headline: (lead.to_owned(), rest.to_owned()),
            facts: facts.map(|(label, text)| (label.to_owned(), text)).to_vec(),
            per,
            run: words::run(report),
            changes: (1..).zip(&report.sites).map(|(i, s)| change(report, s, i, &files)).collect(),
            notes: vec![format!("waits, blocked, drain: per {per} and rank.")],
            warnings: warnings(&report.warnings),
            timelines: timelines(report, drawings),
        }
    }
}

fn timelines<'a>(report: &DiffReport, drawings: [&'a [Timeline]; 2]) -> Vec<TimelineView<'a>> {
    let sides = [("before", &report.before), ("after", &report.after)];
    let mut views = Vec::new();
    for (side, (timelines, (word, info))) in drawings.into_iter().zip(sides).enumerate() {
        let names = FileNames::new(info.profiles.iter().map(String::as_str));
        views.extend(timelines.iter().map(|timeline| {
            let name = info.profiles.get(timeline.profile).map(|path| names.get(path)).unwrap_or_default();
            TimelineView { label: format!("{word}: {name}"), side, timeline }
        }));
    }
    views
}

fn change(report: &DiffReport, change: &SiteChange, number: usize, files: &FileNames) -> ChangeView {
    let shown = change.shown();
    let mut more: Vec<String> = words::origin(change, files).into_iter().collect();
    if !change.changed.is_empty() {
        let aspects: Vec<&str> = change.changed.iter().map(|a| words::aspect(*a)).collect();
        more.push(format!("differs in {}", aspects.join(", ")));
    }
    if change.status == Status::New {
        more.extend(shown.and_then(|s| s.fix.as_ref()).map(|fix| format!("→ {}", escape_terminal(fix))));
    }
    let ids = |state: &Option<SiteState>| state.as_ref().map_or_else(Vec::new, |s| s.ids.clone());
    let time = |ns: f64| text::duration(ns as i64);
    let jitter = |ns: Option<i64>| ns.map(text::duration).unwrap_or_default();
    ChangeView {
        id: format!("C{number}"),
        status: words::status(change.status),
        verdict: words::verdict(change),
        class: shown.map_or("unknown", |s| s.class.as_str()),
        place: shown.map_or_else(String::new, |s| words::place(s, files)),
        more,
        sites: [ids(&change.before), ids(&change.after)],
        amounts: [
            amount(report, change, |s| Some(s.waits), text::rate),
            amount(report, change, |s| Some(s.blocked_ns as f64), time),
            amount(report, change, |s| Some(s.drain_ns as f64), time),
            amount(report, change, |s| s.recoverable_ns.map(|ns| ns as f64), time),
        ],
        jitter: [jitter(change.noise.blocked_ns), jitter(change.noise.drain_ns)],
        sides: [&change.before, &change.after].map(|state| state.as_ref().map(|s| said(s, files))),
    }
}

fn amount(
    report: &DiffReport,
    change: &SiteChange,
    value: impl Fn(&SiteState) -> Option<f64>,
    print: impl Fn(f64) -> String,
) -> Amount {
    let of = |state: &Option<SiteState>| state.as_ref().and_then(&value).unwrap_or(0.0);
    let difference = of(&change.after) - of(&change.before);
    let mut text = words::both(change, &value, &print);
    if change.per != report.run.per && change.per == Per::Run {
        text.push_str(" a run");
    }
    Amount { text, difference: if difference.is_finite() { difference } else { 0.0 } }
}

/// What one side says of a site.
fn said(state: &SiteState, files: &FileNames) -> Vec<(&'static str, String)> {
    let escaped = |text: &str| escape_terminal(text).into_owned();
    let mut pairs = vec![("where", words::place(state, files))];
    pairs.extend(state.source.as_deref().map(|source| ("line", escaped(source.trim()))));
    pairs.push(("verdict", format!("{} {}", state.class, state.kind)));
    pairs.push(("call", escaped(&state.api)));
    pairs.extend(state.pattern.as_deref().map(|pattern| ("pattern", escaped(pattern))));
    pairs.extend(state.fix.as_deref().map(|fix| ("fix", escaped(fix))));
    pairs.push(("sites", state.ids.iter().map(|id| escaped(id)).collect::<Vec<_>>().join(", ")));
    pairs
}
