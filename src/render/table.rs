//! The report for people: what was captured, the sites ranked, totals by class, warnings.

mod sites;

pub use super::style::Style;

use super::grid::{self, Column};
use super::head;
use super::saving;
use super::style::Tone;
use super::{Setting, phrase, ranks, view};
use crate::model::{ClassTotals, Gpu, ProfileInfo, Report, Totals, Warning};
use crate::text::{self, escape_terminal};
use crate::vocabulary::{Attribution, Class};
use std::io::{self, Write};

/// Exports and GPUs named one by one; more are summed up.
const MOST_NAMED: usize = 2;

/// Warnings that stand below the sites; the rest is counted.
const MOST_WARNED: usize = 3;

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
    render(report, with.wide, &with.style, out)
}

/// Prints the report for a terminal or a pipe: the head and the sites; where it is `wide`, also their other columns, what was captured,
/// totals and all warnings.
pub fn render(report: &Report, wide: bool, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let mut parts = vec![head(report, style)];
    parts.extend(wide.then(|| style.labelled("", &facts(report))));
    if let Some(over) = &report.ranks {
        parts.push(ranks::table(over, style));
        let late: Vec<String> = ranks::more_late(over).map(|words| style.hang("late  ", &words)).collect();
        parts.extend((!late.is_empty()).then(|| late.join("\n")));
        parts.push(style.faint(&ranks::signs(over)));
    } else if report.sites.is_empty() {
        parts.push(nothing(report));
    } else {
        parts.push(sites::table(report, wide, style));
        parts.push(style.faint(&signs(report, wide)));
        parts.retain(|part| !part.is_empty());
        parts.extend(wide.then(|| totals(&report.totals, style)));
    }
    let most = if wide { usize::MAX } else { MOST_WARNED };
    parts.extend(warnings(&report.warnings[..report.warnings.len().min(most)], style));
    let left = report.warnings.len().saturating_sub(most) as u64;
    parts.extend(
        (left > 0).then(|| style.faint(&[format!("{} with --wide.", text::counted(left, "more warning"))])),
    );
    if let Some(first) = report.sites.first() {
        let over = report.ranks.as_ref().and_then(|ranks| ranks.sites.first());
        let id = escape_terminal(over.map_or(&first.id, |over| &over.id));
        let more =
            if wide || report.ranks.is_some() { "" } else { "; --wide: blocked, p99, idle after, totals" };
        parts.push(style.faint(&[format!("--details {id}: stack, evidence, times, fix of a site{more}")]));
    }
    writeln!(out, "{}", style.finish(&parts.join("\n\n")))
}

/// The program and its iterations, the answer, and where the GPU's time goes.
fn head(report: &Report, style: &Style) -> String {
    let title = style.wrap(&head::title(report), 0).join("\n");
    let labelled = |(label, words): head::Line| match label {
        "" => style.hang("", &words),
        label => style.hang(&format!("{}  ", Tone::Faint.paint(format!("{label:8}"))), &words),
    };
    let lines: Vec<String> = head::lines(report).into_iter().map(labelled).collect();
    [Tone::Strong.paint(title), lines.join("\n")]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n")
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
    lines.extend(report.together.iter().skip(1).map(|set| ("together".to_owned(), saving::together(set))));
    lines
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
pub(crate) fn signs(report: &Report, wide: bool) -> Vec<String> {
    let mut notes: Vec<String> = ranks::not_shown(report.sites_omitted).into_iter().collect();
    let marked =
        |attribution: &&Attribution| report.sites.iter().any(|site| site.attribution == **attribution);
    let meanings = Attribution::ALL.iter().filter(marked);
    notes.extend(meanings.filter_map(|&attribution| phrase::mark_meaning(attribution)).map(str::to_owned));
    if wide {
        const COSTS: &str = "blocked: CPU time inside waits, summed over threads, not a saving. idle after: GPU idle time that follows them.";
        notes.push(COSTS.to_owned());
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

/// Waits and costs by class.
fn totals(totals: &Totals, style: &Style) -> String {
    let column = |value: &dyn Fn(&ClassTotals) -> String| -> Vec<Vec<String>> {
        Class::LISTED.iter().map(|&class| vec![value(of_class(totals, class))]).collect()
    };
    let names = Class::LISTED.iter().map(|&class| vec![Tone::of(class).paint(class.in_words())]);
    let mut columns = vec![
        Column::left(&["class"], names.collect()),
        Column::right(&["sites"], column(&|class| text::count(class.sites))),
        Column::right(&["waits"], column(&|class| text::count(class.waits))),
        Column::right(&["blocked"], column(&|class| text::duration(class.blocked_ns))),
        Column::right(&["idle after"], column(&|class| text::duration(class.drain_ns))),
    ];
    // The sentence below says it too.
    const LEAST: usize = 64;
    let fits = style.width.is_none_or(|width| width >= LEAST);
    let known = |&class: &Class| saving::of_class(of_class(totals, class)).is_some();
    if fits && Class::LISTED.iter().any(known) {
        let saved = |class: &ClassTotals| saving::of_class(class).unwrap_or_default();
        columns.push(Column::right(&["recoverable"], column(&saved)));
    }
    let measured = totals.replayed.as_ref().map(saving::replayed_in_words);
    let measured = measured.map(|words| format!("Measured, all avoidable sites fixed: {words}."));
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
