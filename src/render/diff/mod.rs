//! The comparison: the finding, the whole program before and after, then the sites that differ.

pub(crate) mod words;

#[cfg(test)]
mod tests;

use super::document::{Block, Cell, Column, Table, Words};
use super::phrase::FileNames;
use super::report::warnings;
use super::style::Tone;
use crate::model::Per;
use crate::model::diff::{DiffReport, SiteChange, Status};
use crate::text;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unchanged {
    Left,
    Listed,
    Folded,
}

pub(crate) fn document(report: &DiffReport, unchanged: Unchanged) -> Vec<Block> {
    let files = words::files(report);
    let is_same = |change: &&SiteChange| change.status == Status::Unchanged;
    let listed = unchanged == Unchanged::Listed;
    let shown: Vec<&SiteChange> = report.sites.iter().filter(|s| listed || !is_same(s)).collect();
    let [sites_said, time] = words::answer(report);
    let captures = [("before", &report.before), ("after", &report.after)];
    let mut blocks = vec![
        Block::Heading(sites_said.into()),
        Block::lines(std::iter::once(time).chain(words::fates(report))),
        Block::facts(captures.map(|(side, info)| (side, words::capture(info)))),
        Block::Table(run(report)),
        Block::Table(sites(report, &shown, &files)),
    ];
    if unchanged == Unchanged::Folded {
        let same: Vec<&SiteChange> = report.sites.iter().filter(is_same).collect();
        let summary = text::counted(same.len() as u64, "unchanged site");
        blocks.push(Block::Fold(summary.into(), vec![Block::Table(sites(report, &same, &files))]));
    }
    blocks.extend(warnings(&report.warnings));
    blocks.push(Block::notes(notes(report, unchanged)));
    blocks
}

fn run(report: &DiffReport) -> Table {
    let rows: Vec<Vec<String>> = words::run(report).into_iter().map(Vec::from).collect();
    Table::sheet(&["", "before", "after", "difference"], 1, &rows)
}

fn sites(report: &DiffReport, shown: &[&SiteChange], files: &FileNames<'_>) -> Table {
    let of = |value: &dyn Fn(&SiteChange) -> String| shown.iter().map(|s| value(s)).collect::<Vec<_>>();
    let amount = |nth: usize| of(&|s| words::amounts(s)[nth].text.clone());
    let place = |change: &SiteChange| {
        let [place, library] = change.shown().map(|shown| words::places(shown, files)).unwrap_or_default();
        let library = (!library.is_empty()).then(|| Words::from(format!("in {library}")));
        (Cell::place(place), library)
    };
    let places: Vec<_> = shown.iter().map(|s| place(s)).collect();
    let below = shown.iter().zip(&places).map(|(change, (_, library))| {
        let remarks = words::remarks(change, files);
        let faint = remarks.into_iter().map(|words| Words::toned(Tone::Faint, words));
        Cell::Stack(library.clone().into_iter().chain(faint).collect())
    });
    let columns = [
        Column::words("change", shown.iter().map(|s| tone(s.status).cell(words::status(s.status)))),
        Column::words("verdict", of(&words::verdict)),
        Column::places("where", places.iter().map(|(place, _)| place.clone())),
        Column::words("remarks", below).under(),
        Column::numbers(
            "waits",
            of(&|s| format!("{}{}", words::amounts(s)[0].text, words::of_run(s, report))),
        ),
        Column::numbers("blocked", amount(1)),
        Column::numbers("idle after", amount(2)).spare(1),
        Column::numbers("saves", amount(3)),
        Column::prose("what to do", of(&|s| words::advice(s).unwrap_or_default().to_owned())),
    ];
    Table { parted: true, ..Table::new("site", columns) }
}

fn tone(status: Status) -> Tone {
    match status {
        Status::New => Tone::Avoidable,
        Status::Gone => Tone::Needed,
        Status::Changed => Tone::Unsure,
        Status::Moved | Status::Unchanged => Tone::Faint,
    }
}

fn notes(report: &DiffReport, unchanged: Unchanged) -> Vec<String> {
    let mut notes = vec![words::counts(report, "sites: ")];
    let same = report.counts.unchanged;
    let left = text::counted(same as u64, "unchanged site");
    let hidden = unchanged == Unchanged::Left && same > 0;
    notes.extend(hidden.then(|| format!("{left} not listed; --all lists them.")));
    let per = report.run.per;
    let typical = if per == Per::Iteration { ", of a typical one" } else { "" };
    notes.push(format!("waits, blocked, idle after: per {per} and rank{typical}."));
    notes
}
