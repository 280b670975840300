//! The data of a comparison's page.

use super::page::{self, Page};
use crate::model::diff::{DiffReport, SiteChange, SiteState};
use crate::model::timeline::Timeline;
use crate::render::diff::{words, words::Amount};
use crate::render::phrase::FileNames;
use crate::render::view::{self, escaped};
use crate::text;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Changes {
    /// "iteration" or "run": the unit of amounts.
    pub per: &'static str,
    /// Rows of name, before, after, difference.
    pub run: Vec<[String; 4]>,
    pub changes: Vec<ChangeView>,
}

#[derive(Serialize)]
pub(super) struct ChangeView {
    pub id: String,
    pub status: &'static str,
    pub verdict: String,
    /// Class of the side that is shown.
    pub class: &'static str,
    pub place: String,
    /// Where it was, what became of it, what differs.
    pub more: Vec<String>,
    /// Ids of its sites on either side, as in the drawings.
    pub sites: [Vec<String>; 2],
    /// Waits, blocked, drain, saves.
    pub amounts: [Amount; 4],
    /// Differences of blocked time and idle time up to this are jitter; empty where it is unknown.
    pub jitter: [String; 2],
    pub sides: [Option<Vec<(&'static str, String)>>; 2],
}

pub(super) fn diff_page<'a>(report: &DiffReport, drawings: [&'a [Timeline]; 2]) -> Page<'a, Changes> {
    let files = words::files(report);
    let per = report.run.per.as_str();
    let facts = [
        ("before", Some(escaped(&words::capture(&report.before)))),
        ("after", Some(escaped(&words::capture(&report.after)))),
        ("sites", Some(words::counts(report, ""))),
        ("fixes", words::fates(report)),
    ];
    let facts = facts.into_iter().filter_map(|(label, text)| Some((label.to_owned(), text?)));
    let drawings = drawings.into_iter().zip(["before", "after"]).zip([&report.before, &report.after]);
    let timelines = drawings.enumerate().flat_map(|(side, ((timelines, word), info))| {
        let files = FileNames::new(info.profiles.iter().map(String::as_str));
        let names: Vec<_> = info.profiles.iter().map(|p| format!("{word}: {}", files.get(p))).collect();
        page::drawn(timelines, side, &names)
    });
    let (headline, rest) = words::answer(report).into();
    Page {
        kind: "diff",
        title: "before and after · sync-report".to_owned(),
        version: report.tool.version.clone(),
        what: String::new(),
        headline,
        lines: vec![(String::new(), rest)],
        facts: facts.collect(),
        body: Changes {
            per,
            run: words::run(report),
            changes: (1..).zip(&report.sites).map(|(i, s)| change(report, s, i, &files)).collect(),
        },
        notes: vec![format!("waits, blocked, idle after: per {per} and rank.")],
        warnings: view::warnings(&report.warnings),
        timelines: timelines.collect(),
    }
}

fn change(report: &DiffReport, change: &SiteChange, number: usize, files: &FileNames) -> ChangeView {
    let shown = change.shown();
    let sides = [&change.before, &change.after].map(Option::as_ref);
    let of_run = words::of_run(change, report);
    let jitter = |ns: Option<i64>| ns.map(text::duration).unwrap_or_default();
    ChangeView {
        id: format!("C{number}"),
        status: words::status(change.status),
        verdict: words::verdict(change),
        class: shown.map_or("unknown", |s| s.class.as_str()),
        place: shown.map_or_else(String::new, |s| words::place(s, files)),
        more: words::remarks(change, files),
        sites: sides.map(|state| state.map_or_else(Vec::new, |s| s.ids.clone())),
        amounts: words::amounts(change).map(|amount| Amount { text: amount.text + of_run, ..amount }),
        jitter: [change.noise.blocked_ns, change.noise.drain_ns].map(jitter),
        sides: sides.map(|state| state.map(|s| said(s, files))),
    }
}

fn said(state: &SiteState, files: &FileNames) -> Vec<(&'static str, String)> {
    let mut pairs = vec![("where", words::place(state, files))];
    pairs.extend(state.source.as_deref().map(|source| ("line", escaped(source.trim()))));
    pairs.push(("verdict", format!("{}, {}", state.class.in_words(), state.kind.in_words())));
    pairs.push(("call", escaped(&state.api)));
    pairs.extend(state.pattern.map(|pattern| ("pattern", pattern.to_string())));
    pairs.extend(state.fix.as_deref().map(|fix| ("fix", escaped(fix))));
    pairs.push(("sites", state.ids.iter().map(|id| escaped(id)).collect::<Vec<_>>().join(", ")));
    pairs
}
