//! The comparison as Markdown, to be pasted into a pull request.

use super::{DiffReport, SiteChange, SiteState, Status, words};
use crate::report::markdown_text::{self as md, Limited};
use crate::report::phrase::FileNames;
use crate::text;
use crate::vocabulary::Per;
use std::io::{self, Write};

/// Kept free for the sentence on what is left out.
const RESERVE: usize = 300;

/// Prints headline, the run as a table, the sites that differ, and collapsed the rest.
pub fn render(report: &DiffReport, out: &mut dyn Write) -> io::Result<()> {
    let files = words::files(report);
    let mut text = Limited::new(md::COMMENT, RESERVE);
    text.add(&format!("### {}\n\n", md::plain(&words::headline(report))));
    text.add(&run(report));
    for warning in &report.warnings {
        text.add(&format!("> ⚠️ {}\n\n", md::plain(&warning.message)));
    }
    let of = |unchanged: bool| -> Vec<String> {
        let chosen = report.sites.iter().filter(|s| (s.status == Status::Unchanged) == unchanged);
        chosen.map(|s| row(s, &files, report.run.per)).collect()
    };
    let titles = ["change", "verdict", "where", ">waits", ">blocked", ">drain", ">saves"];
    let (differ, same) = (of(false), of(true));
    let mut left = 0;
    if !differ.is_empty() {
        left += text.section(&md::header(&titles), &differ, "\n");
    }
    if !same.is_empty() {
        let summary = text::counted(same.len() as u64, "unchanged site");
        let open = format!("<details><summary>{summary}</summary>\n\n{}", md::header(&titles));
        left += text.section(&open, &same, "\n</details>\n");
    }
    let per = report.run.per;
    let mut tail =
        format!("\n<sub>Waits, blocked and drain per {per} and rank; {}.</sub>\n", words::counts(report));
    if left > 0 {
        let sites = text::counted(left as u64, "more site");
        tail =
            format!("\n{sites} not listed: a GitHub comment holds no more. `--format json` has all.\n{tail}");
    }
    write!(out, "{}", text.close(&tail))
}

fn run(report: &DiffReport) -> String {
    let per = format!("per {}", report.run.per);
    let head = md::header(&[&per, ">before", ">after", ">difference"]);
    let rows: String = words::run(report).iter().map(|row| md::row(row)).collect();
    head + &rows + "\n"
}

fn row(change: &SiteChange, files: &FileNames<'_>, per: Per) -> String {
    let time = |ns: i64| text::duration(ns);
    let mut place = change.shown().map_or(String::new(), |s| md::code_cell(&words::place(s, files)));
    if let Some(origin) = words::origin(change, files) {
        place += &format!("<br><sub>{}</sub>", md::plain(&origin));
    }
    if let Some(fix) =
        change.shown().and_then(|s: &SiteState| s.fix.as_ref()).filter(|_| change.status == Status::New)
    {
        place += &format!("<br><sub>→ {}</sub>", md::plain(fix));
    }
    let status = match change.status {
        Status::New => "🔴 new",
        Status::Gone => "🟢 gone",
        Status::Changed => "🟡 changed",
        Status::Moved => "moved",
        Status::Unchanged => "same",
    };
    // Most amounts are per iteration; what lies outside of iterations happens once a run.
    let of = if change.per == per { "" } else { " a run" };
    md::row(&[
        status.to_owned(),
        words::verdict(change),
        place,
        words::both(change, |s| Some(s.waits), text::rate) + of,
        words::both(change, |s| Some(s.blocked_ns), time),
        words::both(change, |s| Some(s.drain_ns), time),
        words::both(change, |s| s.recoverable_ns, time),
    ])
}
