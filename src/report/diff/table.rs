//! The comparison for people: the run, then the sites that differ.

use super::{CaptureInfo, DiffReport, SiteChange, Status, words};
use crate::report::phrase::FileNames;
use crate::report::style::{Style, Tone};
use crate::report::table::grid::{self, Column};
use crate::report::table::{labelled, warnings, wrap};
use crate::text::{self, escape_terminal};
use crate::vocabulary::Per;
use std::io::{self, Write};

/// Prints what differs; `all` lists unchanged sites too.
pub fn render(report: &DiffReport, all: bool, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let mut parts = vec![header(report, style), Tone::Strong.paint(words::headline(report))];
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
    let run = &report.run;
    let change = |b: String, a: String| words::arrow(&b, &a);
    let mut span = change(text::duration(run.before.span_ns), text::duration(run.after.span_ns));
    if let Some(noise) = run.span_noise_ns {
        let relative = words::relative(run.before.span_ns, run.after.span_ns);
        span += &format!(", {relative}; jitter ± {}", text::duration(noise));
    }
    let (before, after) = (&run.before, &run.after);
    let mut lines = vec![
        ("before".to_owned(), capture(&report.before)),
        ("after".to_owned(), capture(&report.after)),
        (run.per.to_string(), span),
    ];
    if let (Some(b), Some(a)) = (before.gpu_busy_percent, after.gpu_busy_percent) {
        lines.push(("GPU busy".to_owned(), change(text::percent(b), text::percent(a))));
    }
    let waits = change(text::rate(before.waits), text::rate(after.waits));
    let avoidable = change(text::rate(before.false_waits), text::rate(after.false_waits));
    lines.push(("waits".to_owned(), format!("{waits} per {}, {avoidable} of them avoidable", run.per)));
    lines.push((
        "blocked".to_owned(),
        change(text::duration(before.blocked_ns), text::duration(after.blocked_ns)),
    ));
    lines.push(("drain".to_owned(), change(text::duration(before.drain_ns), text::duration(after.drain_ns))));
    if let (Some(b), Some(a)) = (words::recoverable(before), words::recoverable(after)) {
        lines.push(("recoverable".to_owned(), format!("{} (all false sites fixed)", change(b, a))));
    }
    labelled(lines, style)
}

pub(crate) fn capture(info: &CaptureInfo) -> String {
    let mut parts: Vec<String> =
        info.profiles.first().map(|p| escape_terminal(p).into_owned()).into_iter().collect();
    if info.profiles.len() > 1 {
        parts.push(format!("and {} more", info.profiles.len() - 1));
    }
    parts.extend(info.iterations.map(|n| text::counted(n, "iteration")));
    if info.ranks > 1 {
        parts.push(text::counted(info.ranks as u64, "rank"));
    }
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
    let mixed = shown.iter().any(|s| s.per != report.run.per);
    let of = |s: &SiteChange, cell: String| {
        if mixed && s.per == Per::Run { format!("{cell} a run") } else { cell }
    };
    let time = |ns: i64| text::duration(ns);
    let mut columns = vec![
        Column::left(&["change"], column(&|s| tone(s.status).paint(words::status(s.status)))),
        Column::left(&["verdict"], column(&words::verdict)),
        Column::left(&["where"], places),
        Column::right(&["waits"], column(&|s| of(s, words::both(s, |x| Some(x.waits), text::rate)))),
        Column::right(&["blocked"], column(&|s| words::both(s, |x| Some(x.blocked_ns), time))),
        Column::right(&["drain"], column(&|s| words::both(s, |x| Some(x.drain_ns), time))),
    ];
    if shown.iter().any(|s| s.shown().is_some_and(|x| x.recoverable_ns.is_some())) {
        columns.push(Column::right(&["saves"], column(&|s| words::both(s, |x| x.recoverable_ns, time))));
    }
    columns
}

/// Where it is, and below that where it was, what differs and what to do about a new site; a pipe (`None`) gets one line.
fn places(change: &SiteChange, files: &FileNames<'_>, longest: Option<usize>) -> Vec<String> {
    let Some(shown) = change.shown() else { return Vec::new() };
    let mut lines = vec![words::place(shown, files)];
    lines.extend(words::origin(change, files));
    if !change.changed.is_empty() {
        let aspects: Vec<&str> = change.changed.iter().map(|a| words::aspect(*a)).collect();
        lines.push(format!("differs in {}", aspects.join(", ")));
    }
    if change.status == Status::New {
        lines.extend(shown.fix.as_ref().map(|fix| format!("→ {}", escape_terminal(fix))));
    }
    let Some(longest) = longest else { return vec![lines.join("; ")] };
    if longest == 0 {
        return Vec::new();
    }
    let cut = |(i, line): (usize, &String)| match i {
        0 => text::shorten_middle(line, longest).into_owned(),
        _ => Tone::Faint.paint(text::shorten_end(line, longest)),
    };
    lines.iter().enumerate().map(cut).collect()
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
    let mut notes = vec![words::counts(report)];
    if !all && report.counts.unchanged > 0 {
        notes.push(format!(
            "{} not listed; --all lists them.",
            text::counted(report.counts.unchanged as u64, "unchanged site")
        ));
    }
    let per = report.run.per;
    notes.push(format!(
        "waits, blocked, drain: per {per} and rank{}.",
        if report.run.per == Per::Iteration { ", of a typical one" } else { "" }
    ));
    let lines = notes.iter().flat_map(|note| wrap(note, style, 0));
    lines.map(|line| Tone::Faint.paint(line)).collect::<Vec<_>>().join("\n")
}
