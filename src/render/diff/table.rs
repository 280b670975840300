//! The comparison for people: the run, then the sites that differ.

use super::words;
use crate::model::diff::{CaptureInfo, DiffReport, RunChange, SiteChange, Status};
use crate::render::grid::{self, Column};
use crate::render::phrase::FileNames;
use crate::render::style::{Style, Tone};
use crate::render::table::warnings;
use crate::render::view::escaped;
use crate::text;
use crate::vocabulary::Per;
use std::io::{self, Write};

/// Prints what differs; `all` lists unchanged sites too.
pub fn render(report: &DiffReport, all: bool, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let mut parts = vec![header(report, style), Tone::Strong.paint(words::headline(report))];
    parts.extend(words::fates(report).map(|words| style.hang("", &words)));
    let shown: Vec<&SiteChange> =
        report.sites.iter().filter(|s| all || s.status != Status::Unchanged).collect();
    if !shown.is_empty() {
        parts.push(sites(report, &shown, style));
    }
    parts.push(notes(report, all, style));
    parts.extend(warnings(&report.warnings, style));
    writeln!(out, "{}", style.finish(&parts.join("\n\n")))
}

fn header(report: &DiffReport, style: &Style) -> String {
    let RunChange { per, before, after, span_noise_ns, .. } = &report.run;
    let rows = words::run(report);
    let change = |name: &str| {
        let [_, before, after, _] = rows.iter().find(|row| row[0] == name)?;
        Some(words::arrow(before, after))
    };
    let jitter = span_noise_ns.map(|noise| {
        let relative = text::relative(before.span_ns, after.span_ns);
        format!(", {relative}; jitter ± {}", text::duration(noise))
    });
    let avoidable = change("avoidable waits").unwrap_or_default();
    let lines = [
        ("before", Some(capture(&report.before))),
        ("after", Some(capture(&report.after))),
        (per.as_str(), change("span").map(|span| span + &jitter.unwrap_or_default())),
        ("GPU busy", change("GPU busy")),
        ("waits", change("waits").map(|all| format!("{all} per {per}, {avoidable} of them avoidable"))),
        ("blocked", change("blocked")),
        ("idle after", change("idle after")),
        ("recoverable", change("recoverable").map(|all| all + " (all avoidable sites fixed)")),
    ];
    let lines = lines.into_iter().filter_map(|(label, words)| Some((label, words?)));
    style.labelled("", &lines.collect::<Vec<_>>())
}

pub(crate) fn capture(info: &CaptureInfo) -> String {
    let mut parts: Vec<String> = info.profiles.iter().take(1).map(|p| escaped(p)).collect();
    parts.extend((info.profiles.len() > 1).then(|| format!("and {} more", info.profiles.len() - 1)));
    parts.extend(info.iterations.map(|n| text::counted(n, "iteration")));
    parts.extend((info.ranks > 1).then(|| text::counted(info.ranks as u64, "rank")));
    parts.join(", ")
}

/// Columns that a place takes at least and at most; in a pipe it stays whole.
const PLACE: std::ops::RangeInclusive<usize> = 30..=72;

fn sites(report: &DiffReport, shown: &[&SiteChange], style: &Style) -> String {
    let files = words::files(report);
    let columns = |longest: Option<usize>| {
        let places = shown.iter().map(|s| places(s, &files, longest)).collect();
        columns(report, shown, places)
    };
    let Some(width) = style.width else { return grid::set(&columns(None), false, false) };
    let others = grid::width(&columns(Some(0)));
    let longest = width.saturating_sub(others).clamp(*PLACE.start(), *PLACE.end());
    let parted = shown.iter().any(|s| places(s, &files, Some(longest)).len() > 1);
    grid::set(&columns(Some(longest)), true, parted)
}

fn columns(report: &DiffReport, shown: &[&SiteChange], places: Vec<Vec<String>>) -> Vec<Column> {
    let column = |cell: &dyn Fn(&SiteChange) -> String| -> Vec<Vec<String>> {
        shown.iter().map(|s| vec![cell(s)]).collect()
    };
    let amount = |nth: usize| column(&|s| words::amounts(s)[nth].text.clone());
    let waits = column(&|s| format!("{}{}", words::amounts(s)[0].text, words::of_run(s, report)));
    let mut columns = vec![
        Column::left(&["change"], column(&|s| tone(s.status).paint(words::status(s.status)))),
        Column::left(&["verdict"], column(&words::verdict)),
        Column::left(&["where"], places),
        Column::right(&["waits"], waits),
        Column::right(&["blocked"], amount(1)),
        Column::right(&["idle after"], amount(2)),
    ];
    if shown.iter().any(|s| s.shown().is_some_and(|x| x.recoverable_ns.is_some())) {
        columns.push(Column::right(&["saves"], amount(3)));
    }
    columns
}

/// Where it is, and below that where it was, what differs and what to do about a new site; a pipe (`None`) gets one line.
fn places(change: &SiteChange, files: &FileNames<'_>, longest: Option<usize>) -> Vec<String> {
    let Some(shown) = change.shown() else { return Vec::new() };
    let remarks = words::remarks(change, files);
    let Some(longest) = longest else {
        return vec![[vec![words::place(shown, files)], remarks].concat().join("; ")];
    };
    if longest == 0 {
        return Vec::new();
    }
    let [place, library] = words::places(shown, files);
    let library = (!library.is_empty()).then(|| format!("in {library}"));
    let lines = std::iter::once(place).chain(library).chain(remarks);
    let cut = |(i, line): (usize, String)| match i {
        0 => text::shorten_middle(&line, longest).into_owned(),
        _ => Tone::Faint.paint(text::shorten_end(&line, longest)),
    };
    lines.enumerate().map(cut).collect()
}

fn tone(status: Status) -> Tone {
    match status {
        Status::New => Tone::Avoidable,
        Status::Gone => Tone::Needed,
        Status::Changed => Tone::Unsure,
        Status::Moved | Status::Unchanged => Tone::Faint,
    }
}

fn notes(report: &DiffReport, all: bool, style: &Style) -> String {
    let mut notes = vec![words::counts(report, "sites: ")];
    let same = report.counts.unchanged;
    let left = text::counted(same as u64, "unchanged site");
    notes.extend((!all && same > 0).then(|| format!("{left} not listed; --all lists them.")));
    let per = report.run.per;
    let typical = if per == Per::Iteration { ", of a typical one" } else { "" };
    notes.push(format!("waits, blocked, idle after: per {per} and rank{typical}."));
    style.faint(&notes)
}
