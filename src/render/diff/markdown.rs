//! The comparison as Markdown, to be pasted into a pull request.

use super::words;
use crate::model::diff::{DiffReport, SiteChange, Status};
use crate::render::markdown_text::{self as md, Limited};
use crate::render::phrase::FileNames;
use crate::text;
use std::io::{self, Write};

/// Kept free for the sentence on what is left out.
const RESERVE: usize = 300;

/// Prints headline, the run as a table, the sites that differ, and collapsed the rest.
pub fn render(report: &DiffReport, out: &mut dyn Write) -> io::Result<()> {
    let files = words::files(report);
    let mut text = Limited::new(md::COMMENT, RESERVE);
    text.add(&format!("### {}\n\n", md::plain(&words::headline(report))));
    words::fates(report).iter().for_each(|fates| text.sentence(fates));
    text.add(&run(report));
    text.warnings(&report.warnings);
    let of = |unchanged: bool| -> Vec<String> {
        let chosen = report.sites.iter().filter(|s| (s.status == Status::Unchanged) == unchanged);
        chosen.map(|s| row(s, &files, report)).collect()
    };
    const TITLES: [&str; 7] = ["change", "verdict", "where", ">waits", ">blocked", ">idle after", ">saves"];
    let same = of(true);
    let mut left = text.table(&TITLES, of(false).into_iter());
    if !same.is_empty() {
        let summary = text::counted(same.len() as u64, "unchanged site");
        let open = format!("<details><summary>{summary}</summary>\n\n{}", md::header(&TITLES));
        left += text.section(&open, &same, "\n</details>\n");
    }
    let per = report.run.per;
    let tail = format!(
        "\n<sub>Waits, blocked and idle after per {per} and rank; {}.</sub>\n",
        words::counts(report, "sites: ")
    );
    let sites = text::counted(left as u64, "more site");
    let more = (left > 0)
        .then(|| format!("\n{sites} not listed: a GitHub comment holds no more. `--format json` has all.\n"));
    write!(out, "{}", text.close(&(more.unwrap_or_default() + &tail)))
}

fn run(report: &DiffReport) -> String {
    let per = format!("per {}", report.run.per);
    let head = md::header(&[&per, ">before", ">after", ">difference"]);
    let rows: String = words::run(report).iter().map(|row| md::row(row)).collect();
    head + &rows + "\n"
}

fn row(change: &SiteChange, files: &FileNames<'_>, report: &DiffReport) -> String {
    let mut place = change.shown().map_or(String::new(), |s| md::code_cell(&words::place(s, files)));
    let origin = words::origin(change, files).into_iter().chain(words::became(change, files));
    let origin = origin.map(|words| md::plain(&words));
    let advice = words::advice(change).map(|fix| format!("→ {}", md::plain(fix)));
    place.extend(origin.chain(advice).map(|line| format!("<br><sub>{line}</sub>")));
    let status = match change.status {
        Status::New => "🔴 new",
        Status::Gone => "🟢 gone",
        Status::Changed => "🟡 changed",
        Status::Moved => "moved",
        Status::Unchanged => "same",
    };
    let [waits, blocked, drain, saves] = words::amounts(change).map(|amount| amount.text);
    let waits = waits + words::of_run(change, report);
    md::row(&[status.to_owned(), words::verdict(change), place, waits, blocked, drain, saves])
}
