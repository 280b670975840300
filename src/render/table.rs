//! The report for people: what was captured, the sites ranked, totals by class, warnings.

mod sites;

pub use super::style::Style;

use super::answer;
use super::grid::{self, Column};
use super::saving::{self, Finding};
use super::style::Tone;
use super::{Setting, phrase, ranks, view};
use crate::model::{ClassTotals, Gpu, ProfileInfo, Report, Totals, Warning};
use crate::text::{self, escape_terminal};
use crate::vocabulary::{Attribution, Class};
use std::io::{self, Write};

/// Exports and GPUs named one by one; more are summed up.
const MOST_NAMED: usize = 2;

/// Prints the report, and in front of it the answer to `--graph-ready`.
pub(super) fn answer(report: &Report, with: &Setting, out: &mut dyn Write) -> io::Result<()> {
    if let Some(range) = &with.capture {
        let range = escape_terminal(range);
        match report.totals.sites {
            0 => writeln!(out, "No wait keeps `{range}` from being captured as a CUDA graph.\n")?,
            n => {
                let places = text::counted(n, "place");
                writeln!(out, "{places} of waiting keep `{range}` from being captured as a CUDA graph:\n")?;
            }
        }
    }
    render(report, &with.style, out)
}

/// Prints the report as tables for a terminal or a pipe.
pub fn render(report: &Report, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let mut parts = vec![style.labelled("", &facts(report))];
    if let Some(over) = &report.ranks {
        parts.push(ranks::table(over, style));
        let late: Vec<String> = ranks::more_late(over).map(|words| style.hang("late  ", &words)).collect();
        parts.extend((!late.is_empty()).then(|| late.join("\n")));
        parts.push(style.faint(&ranks::signs(over)));
    } else if report.sites.is_empty() {
        parts.push(nothing(report));
    } else {
        parts.push(sites::table(report, style));
        parts.push(style.faint(&signs(report)));
        parts.push(totals(&report.totals, style));
    }
    parts.extend(warnings(&report.warnings, style));
    if let Some(first) = report.sites.first() {
        let over = report.ranks.as_ref().and_then(|ranks| ranks.sites.first());
        let id = escape_terminal(over.map_or(&first.id, |over| &over.id));
        let whole = format!("--details {id} shows a site whole: stack, evidence, times, fix.");
        parts.push(style.faint(&[whole]));
    }
    writeln!(out, "{}", style.finish(&parts.join("\n\n")))
}

/// What was captured, and how busy the GPU was: labels and texts.
pub(crate) fn facts(report: &Report) -> Vec<(String, String)> {
    let mut lines: Vec<(String, String)> = Vec::new();
    let mut previous = None;
    for profile in report.profiles.iter().take(MOST_NAMED) {
        let label = if previous.is_none() { "profile" } else { "" };
        lines.push((label.to_owned(), profile_line(profile, previous)));
        previous = Some(profile);
    }
    let more = report.profiles.len().saturating_sub(MOST_NAMED);
    lines.extend((more > 0).then(|| (String::new(), format!("and {more} more"))));
    lines.extend(report.ranks.iter().flat_map(ranks::facts));
    lines.extend(gpu_lines(report));
    lines.extend(iterations_line(report).map(|line| ("iterations".to_owned(), line)));
    let totals = &report.totals;
    if totals.waits > 0 {
        let waits = format!("{} at {}", text::count(totals.waits), text::counted(totals.sites, "site"));
        lines.push(("waits".to_owned(), waits));
    }
    lines.extend(findings(report));
    lines.extend(report.together.iter().map(|set| ("together".to_owned(), saving::together(set))));
    lines
}

/// The answer, in a few short lines.
fn findings(report: &Report) -> Vec<(String, String)> {
    let Some(found) = answer::finding(report) else { return Vec::new() };
    let Finding { late, lead, rest, rewriting, undecided, limit, once } = found;
    let lines = [
        ("late", late.map(|words| words.join(" "))),
        ("saves", Some(lead + &rest).filter(|words| !words.is_empty())),
        ("rewriting", rewriting),
        ("undecided", undecided),
        ("then", limit.map(str::to_owned)),
        ("once", once),
    ];
    lines.into_iter().filter_map(|(label, words)| Some((label.to_owned(), words?))).collect()
}

/// Path, span, and what the export before does not say already.
fn profile_line(profile: &ProfileInfo, previous: Option<&ProfileInfo>) -> String {
    let mut parts = vec![view::escaped(&profile.path), text::duration(profile.span_ns)];
    let version = profile.export_version.as_deref();
    if previous.is_none_or(|previous| previous.export_version.as_deref() != version) {
        parts.extend(version.map(|version| format!("nsys {}", escape_terminal(version))));
    }
    let command = profile.command.as_deref().filter(|command| !command.is_empty());
    if previous.is_none_or(|previous| previous.command.as_deref() != command) {
        const LONG_ENOUGH: usize = 120;
        let short = |command| text::shorten_end(&escape_terminal(command), LONG_ENOUGH).into_owned();
        parts.extend(command.map(short));
    }
    parts.join(", ")
}

fn gpu_lines(report: &Report) -> Vec<(String, String)> {
    let gpus: Vec<&Gpu> = report.profiles.iter().flat_map(|profile| &profile.gpus).collect();
    if gpus.len() <= MOST_NAMED {
        let line =
            |gpu: &&Gpu| (format!("GPU {}", gpu.id), format!("{}: {}", gpu_name(gpu), phrase::busy(gpu)));
        return gpus.iter().map(line).collect();
    }
    let all: Vec<String> = gpus.iter().map(|gpu| gpu_name(gpu)).collect();
    let count = |name: &String| all.iter().filter(|other| *other == name).count();
    let names = text::distinct(all.iter()).into_iter().map(|name| format!("{} × {name}", count(name)));
    let names: Vec<String> = names.collect();
    vec![("GPUs".to_owned(), format!("{}: {}", names.join(", "), phrase::busy(&report.totals.gpus())))]
}

fn gpu_name(gpu: &Gpu) -> String {
    gpu.name.as_deref().map_or_else(|| "name not recorded".to_owned(), view::escaped)
}

fn iterations_line(report: &Report) -> Option<String> {
    let iterations = report.iterations.as_ref()?;
    let share = iterations.confidence.map(|share| format!(", {} alike", text::confidence(share)));
    let (count, share) = (text::iterations(iterations.count, iterations.start_up), share.unwrap_or_default());
    let (source, length) = (escape_terminal(&iterations.source), phrase::iteration_length(iterations));
    let (waits, of) = (phrase::waits(iterations.waits_per_iteration), phrase::looping(report, iterations));
    Some(format!("{count} by {source}{share}{of}, {length}, {waits} each"))
}

/// The sentence in place of an empty table.
pub(crate) fn nothing(report: &Report) -> String {
    match report.waits_filtered_out {
        0 => {}
        1 => return "The one wait there is does not pass the filters.".to_owned(),
        n => return format!("None of the {} waits passes the filters.", text::count(n)),
    }
    let doubt = if report.warnings.is_empty() { "" } else { " The capture may hide some; see below." };
    format!("No waits: nothing in this capture makes the CPU wait for the GPU.{doubt}")
}

/// How many sites are left out, and what the table's signs and words mean.
pub(crate) fn signs(report: &Report) -> Vec<String> {
    let mut notes: Vec<String> = ranks::not_shown(report.sites_omitted).into_iter().collect();
    let marked =
        |attribution: &&Attribution| report.sites.iter().any(|site| site.attribution == **attribution);
    let meanings = Attribution::ALL.iter().filter(marked);
    notes.extend(meanings.filter_map(|&attribution| phrase::mark_meaning(attribution)).map(str::to_owned));
    const COSTS: &str =
        "blocked: host time inside waits, summed over threads, not a saving. drain: GPU idle after them.";
    notes.push(COSTS.to_owned());
    notes.extend(saving::above_blocked(&report.sites).map(str::to_owned));
    notes
}

/// Classes as the totals list them, and what they mean.
pub(crate) const ORDER: [(Class, &str); 3] =
    [(Class::False, "avoidable"), (Class::Unknown, "open"), (Class::True, "needed")];

pub(crate) fn of_class(totals: &Totals, class: Class) -> &ClassTotals {
    match class {
        Class::False => &totals.by_class.false_,
        Class::True => &totals.by_class.true_,
        Class::Unknown => &totals.by_class.unknown,
    }
}

/// Waits and costs by class.
fn totals(totals: &Totals, style: &Style) -> String {
    let column = |value: &dyn Fn(&ClassTotals) -> String| -> Vec<Vec<String>> {
        ORDER.iter().map(|&(class, _)| vec![value(of_class(totals, class))]).collect()
    };
    let names = ORDER.iter().map(|&(class, meaning)| {
        let (class, meaning) = (Tone::of(class).paint(class.as_str()), format!("({meaning})"));
        vec![format!("{class} {}", Tone::Faint.paint(meaning))]
    });
    let mut columns = vec![
        Column::left(&["class"], names.collect()),
        Column::right(&["sites"], column(&|class| text::count(class.sites))),
        Column::right(&["waits"], column(&|class| text::count(class.waits))),
        Column::right(&["blocked"], column(&|class| text::duration(class.blocked_ns))),
        Column::right(&["drain"], column(&|class| text::duration(class.drain_ns))),
    ];
    // The sentence below says it too.
    const LEAST: usize = 64;
    let fits = style.width.is_none_or(|width| width >= LEAST);
    let known = |&(class, _): &(Class, _)| saving::of_class(of_class(totals, class)).is_some();
    if fits && ORDER.iter().any(known) {
        let saved = |class: &ClassTotals| saving::of_class(class).unwrap_or_default();
        columns.push(Column::right(&["recoverable"], column(&saved)));
    }
    let measured = totals.replayed.as_ref().map(saving::replayed_in_words);
    let measured = measured.map(|words| format!("Measured, all false sites fixed: {words}."));
    let sentences = saving::basis(totals).into_iter().chain(measured);
    let mut parts = vec![grid::set(&columns, style.width.is_some(), false)];
    parts.extend(sentences.map(|words| style.hang("", &words)));
    parts.join("\n\n")
}

/// What limits the report; commands on lines of their own, never wrapped, to be copied.
pub(crate) fn warnings(list: &[Warning], style: &Style) -> Option<String> {
    let mut lines: Vec<String> = Vec::new();
    for warning in view::warnings(list) {
        let words = format!("{} [{}]", warning.message, warning.code);
        lines.push(warned(&words, style));
        lines.extend((!warning.fix.is_empty()).then(|| format!("    {}", warning.fix)));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// A sentence to mind.
pub(crate) fn warned(words: &str, style: &Style) -> String {
    style.hang(&format!("{} ", Tone::Unsure.paint("!")), words)
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
