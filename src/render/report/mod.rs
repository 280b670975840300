//! The report for people: the head, the sites, and on demand what was captured, totals and warnings.

mod sites;
#[cfg(test)]
mod tests;

use super::document::{Block, Column, Table, Words};
use super::head;
use super::style::Tone;
use super::view::{self, SiteView, Views};
use super::{details, facts, phrase, ranks, saving};
use crate::model::{Attribution, Breaks, Class, ClassTotals, GraphBreak, Report, Totals, Warning};
use crate::text;

/// Warnings below the sites of a screen; others are counted.
const MOST_WARNED: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The finding, the sites, the first warnings.
    Screen,
    /// All columns, totals and warnings.
    Wide,
    /// All columns, and each site's details, folded.
    Review,
}

/// `capture` names the NVTX ranges that are to become a CUDA graph.
pub(crate) fn document(report: &Report, form: Form, capture: Option<&str>) -> Vec<Block> {
    let wide = form != Form::Screen;
    let mut blocks: Vec<Block> = capture.map(|range| capturable(report, range)).into_iter().collect();
    blocks.extend(if form == Form::Review { review_head(report) } else { head(report) });
    blocks.extend((form == Form::Wide).then(|| Block::facts(facts::facts(report))));
    let views = Views::of(report);
    let rows: Vec<SiteView> = report.sites.iter().map(|site| views.site(site)).collect();
    if let Some(over) = &report.ranks {
        blocks.push(Block::Table(ranks::table(over)));
        blocks.push(Block::facts(ranks::more_late(over).map(|words| ("late", words))));
        blocks.push(Block::notes(ranks::signs(over)));
    } else if rows.is_empty() {
        blocks.push(Block::Paragraph(nothing(report).into()));
    } else {
        blocks.extend(sites::tables(&rows, report.iterations.is_some(), wide));
        blocks.push(Block::notes(signs(report, wide)));
        blocks.extend((form == Form::Wide).then(|| Block::Table(classes(&report.totals))));
        blocks.extend(wide.then(|| basis(&report.totals)));
    }
    blocks.extend(graph_breaks(report));
    let most = if wide { usize::MAX } else { MOST_WARNED };
    let shown = &report.warnings[..report.warnings.len().min(most)];
    blocks.extend(warnings(shown));
    if form == Form::Review {
        blocks.extend(opened(report, &views, &rows));
        return blocks;
    }
    let left = (report.warnings.len() - shown.len()) as u64;
    let more = (left > 0).then(|| format!("{} with --wide.", text::counted(left, "more warning")));
    blocks.push(Block::notes(more.into_iter().chain(hint(report, wide))));
    blocks
}

/// The answer to `--graph-ready`.
fn capturable(report: &Report, range: &str) -> Block {
    let range = Words::code(format!("`{range}`"));
    let other =
        report.graph_breaks.iter().filter(|breaks| breaks.kind != GraphBreak::CpuTensor).count() as u64;
    let sites = report.totals.sites;
    let waits = (sites > 0).then(|| format!("{} of waiting", text::counted(sites, "place")));
    let others = (other > 0).then(|| {
        let be = if other == 1 { "is" } else { "are" };
        format!("{} that {be} no wait", text::counted(other, "place"))
    });
    let places: Vec<String> = waits.into_iter().chain(others).collect();
    let (keep, end) = match sites + other {
        0 => ("No wait keeps ".to_owned(), "."),
        1 => (format!("{} keeps ", text::and(&places)), ":"),
        _ => (format!("{} keep ", text::and(&places)), ":"),
    };
    Block::Paragraph(Words::from(keep).then(range).then(format!(" from being captured as a CUDA graph{end}")))
}

pub(crate) const GRAPH_COLUMNS: [&str; 4] = ["where", "calls", "problem", "what to do"];

/// Calls and operations besides waits that are in the way of a CUDA graph, a row each.
pub(crate) fn graph_rows(report: &Report) -> Vec<[String; 4]> {
    let place = |breaks: &Breaks| match &breaks.user_frame {
        Some(frame) => {
            format!("{} {}", phrase::at_line(text::path_end(&frame.file, 1), frame.line), frame.function)
        }
        None => breaks.api.clone(),
    };
    let row = |breaks: &Breaks| {
        [place(breaks), text::count(breaks.calls), breaks.kind.help().to_owned(), breaks.fix.clone()]
    };
    report.graph_breaks.iter().map(row).collect()
}

fn graph_breaks(report: &Report) -> Vec<Block> {
    let rows = graph_rows(report);
    let cells = |column: usize| rows.iter().map(move |row| row[column].clone());
    let [place, calls, problem, fix] = GRAPH_COLUMNS;
    let columns = [
        Column::places(place, cells(0).map(Into::into)),
        Column::numbers(calls, cells(1)),
        Column::prose(problem, cells(2)),
        Column::prose(fix, cells(3)),
    ];
    if rows.is_empty() {
        return Vec::new();
    }
    vec![
        Block::Heading("no waits, but in the way of a CUDA graph".into()),
        Block::Table(Table::new("place", columns)),
    ]
}

fn head(report: &Report) -> Vec<Block> {
    let label = |label: &str| (!label.is_empty()).then(|| label.to_owned());
    let lines = head::lines(report).into_iter().map(|(name, words)| (label(name), words.into()));
    vec![Block::Heading(head::title(report).into()), Block::Facts(lines.collect())]
}

fn review_head(report: &Report) -> Vec<Block> {
    let (finding, lines) = head::parted(report);
    let sites = || text::counted(report.totals.sites, "site");
    let finding = finding.unwrap_or_else(|| match (report.totals.sites, report.totals.avoidable_sites) {
        _ if report.sites.is_empty() && report.ranks.is_some() => "waits over ranks".to_owned(),
        (0, _) => "nothing makes the CPU wait for the GPU".to_owned(),
        (_, 0) => format!("no avoidable wait at {}", sites()),
        (_, n) => format!("{n} of {} avoidable", sites()),
    });
    let ranks = report.ranks.iter().flat_map(ranks::facts);
    let left_out = text::counted(report.waits_filtered_out, "wait");
    let filtered = (report.waits_filtered_out > 0).then(|| format!("{left_out} left out by filters"));
    let lines = lines.into_iter().map(|(label, words)| (label.to_owned(), words)).chain(ranks);
    vec![
        Block::Heading(format!("sync-report: {finding}").into()),
        Block::Paragraph(head::title(report).into()),
        Block::facts(lines.chain(filtered.map(|words| (String::new(), words)))),
    ]
}

pub(crate) fn nothing(report: &Report) -> String {
    match report.waits_filtered_out {
        0 => {}
        1 => return "The one wait there is does not pass the filters.".to_owned(),
        n => return format!("None of the {} waits passes the filters.", text::count(n)),
    }
    let doubt = if report.warnings.is_empty() { "" } else { " The capture may hide some; see below." };
    format!("No waits: nothing in this capture makes the CPU wait for the GPU.{doubt}")
}

/// How many sites are left out, and the meaning of the table's signs and words.
pub(crate) fn signs(report: &Report, wide: bool) -> Vec<String> {
    let mut notes: Vec<String> = ranks::not_shown(report.sites_omitted).into_iter().collect();
    let marked =
        |attribution: &&Attribution| report.sites.iter().any(|site| site.attribution == **attribution);
    let meanings = Attribution::ALL.iter().filter(marked);
    notes.extend(meanings.filter_map(|&attribution| phrase::mark_meaning(attribution)).map(str::to_owned));
    if wide {
        notes.push(phrase::COSTS.to_owned());
        notes.extend(saving::above_blocked(&report.sites).map(str::to_owned));
    }
    notes
}

pub(crate) fn of_class(totals: &Totals, class: Class) -> &ClassTotals {
    match class {
        Class::False => &totals.by_class.false_,
        Class::True => &totals.by_class.true_,
        Class::Unknown => &totals.by_class.unknown,
    }
}

fn classes(totals: &Totals) -> Table {
    let of = |value: fn(&ClassTotals) -> String| Class::LISTED.map(|class| value(of_class(totals, class)));
    Table::new(
        "class",
        [
            Column::words("class", Class::LISTED.map(|class| Tone::of(class).cell(class.in_words()))),
            Column::numbers("sites", of(|class| text::count(class.sites))),
            Column::numbers("waits", of(|class| text::count(class.waits))),
            Column::numbers("blocked", of(|class| text::duration(class.blocked_ns))),
            Column::numbers("idle after", of(|class| text::duration(class.drain_ns))),
            Column::numbers("recoverable", of(|class| saving::of_class(class).unwrap_or_default())).spare(1),
        ],
    )
}

fn basis(totals: &Totals) -> Block {
    let measured = totals.replayed.as_ref().map(saving::replayed_in_words);
    let measured = measured.map(|words| format!("Measured, all avoidable sites fixed: {words}."));
    Block::lines(saving::basis(totals).into_iter().chain(measured))
}

pub(crate) fn warnings(list: &[Warning]) -> impl Iterator<Item = Block> + use<> {
    let coded = |warning: Warning| {
        Block::Warning(format!("{} [{}]", warning.message, warning.code).into(), warning.fix)
    };
    view::warnings(list).into_iter().map(coded)
}

fn hint(report: &Report, wide: bool) -> Option<String> {
    let over = report.ranks.as_ref().and_then(|ranks| ranks.sites.first());
    let id = over.map_or(&report.sites.first()?.id, |over| &over.id);
    let more = if wide || report.ranks.is_some() { "" } else { "; --wide: blocked, p99, idle after, totals" };
    Some(format!("--details {id}: stack, evidence, times, fix of a site{more}"))
}

fn opened<'a>(
    report: &'a Report,
    views: &'a Views<'a>,
    rows: &'a [SiteView],
) -> impl Iterator<Item = Block> + 'a {
    let listed =
        |id: &str| report.ranks.as_ref().is_none_or(|ranks| ranks.sites.iter().any(|over| over.id == id));
    let sites = report.sites.iter().zip(rows).filter(move |(site, _)| listed(&site.id));
    sites.map(|(site, row)| {
        let lead = format!("{} {}, {}, ", row.id, row.verdict, row.kind);
        let summary = Words::from(lead).then(Words::code(row.place.both()));
        Block::Fold(summary, details::for_review(report, site, views))
    })
}
