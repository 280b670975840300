//! The waits of sources that were never captured: a table, annotations, SARIF.

use super::Paths;
use super::document::{Block, Cell, Column, Place, Table, Words};
use super::github::{Annotation, MOST};
use super::phrase::at_line;
use super::report::warnings;
use super::sarif::{self, Describe, Fingerprints};
use super::style::Tone;
use crate::model::lint::{Heat, LintFinding, LintReport};
use crate::model::{Class, or_zero};
use crate::text;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

const EXPRESSION: usize = 48;

pub(crate) fn document(report: &LintReport) -> Vec<Block> {
    let open: Vec<&LintFinding> = report.open().collect();
    let mut blocks = vec![Block::Heading(heading(report, open.len()))];
    blocks.extend((!open.is_empty()).then(|| Block::Table(table(&open))));
    let allowed = report.findings.iter().filter_map(|one| {
        let reason = one.allowed.as_ref()?;
        Some(Words::from(format!("{}: allowed: {reason}", at_line(&one.file, one.line))))
    });
    blocks.push(Block::List(allowed.collect()));
    let fixable = open.iter().filter(|one| one.edit.is_some()).count() as u64;
    let fixable = (fixable > 0)
        .then(|| format!("`--fix` makes the safe edits of {}.", text::counted(fixable, "finding")));
    blocks.push(Block::notes(fixable.into_iter().chain(report.unknown.iter().cloned())));
    blocks.extend(warnings(&report.warnings));
    blocks
}

fn heading(report: &LintReport, open: usize) -> Words {
    let files = format!("{} read", text::counted(report.files as u64, "file"));
    let fixed = match report.fixed as u64 {
        0 => String::new(),
        fixed => format!("; {} fixed", text::counted(fixed, "wait")),
    };
    if open == 0 {
        return Words::toned(Tone::Needed, format!("no line waits: {files}{fixed}"));
    }
    let class = |class: Class| (class, report.count(class));
    let classes = [Class::False, Class::Unknown, Class::True].map(class).into_iter().filter(|one| one.1 > 0);
    let classes: Vec<String> =
        classes.map(|(class, count)| format!("{} {}", text::count(count), class.in_words())).collect();
    let tone = if report.passed { Tone::Strong } else { Tone::Avoidable };
    let waits = if open == 1 { "line waits" } else { "lines wait" };
    let open = text::count(open as u64);
    Words::toned(tone, format!("{open} {waits}: {}; {files}{fixed}", classes.join(", ")))
}

fn table(open: &[&LintFinding]) -> Table {
    let place = |one: &&LintFinding| {
        let file = Some(at_line(&text::escape_terminal(&one.file), one.line));
        let name = text::escape_terminal(&one.function).into_owned();
        Cell::Place(Place { file, name, mark: None })
    };
    let advice = |one: &&LintFinding| {
        let fix = one.fix.as_ref();
        let here = fix.and_then(|fix| fix.here.as_ref()).map(|here| format!(": {here}"));
        fix.map_or_else(String::new, |fix| format!("{}{}", fix.title, here.unwrap_or_default()))
    };
    let expression = |one: &&LintFinding| text::shorten_end(&one.expression, EXPRESSION).into_owned();
    let id = |one: &&LintFinding| one.pattern.map_or("", |pattern| pattern.as_str());
    Table::new(
        "line",
        [
            Column::words("verdict", open.iter().map(|one| Tone::of(one.class).cell(one.class.in_words()))),
            Column::words("waits", open.iter().map(|one| Tone::Faint.cell(one.certainty.as_str()))).under(),
            Column::places("where", open.iter().map(place)),
            Column::words("expression", open.iter().map(expression)).under(),
            Column::words("runs", open.iter().map(|one| often(one.heat))).spare(1),
            Column::words("pattern", open.iter().map(id)).under().spare(2),
            Column::prose("what to do", open.iter().map(advice)),
        ],
    )
}

const fn often(heat: Heat) -> &'static str {
    match heat {
        Heat::Loop => "in a loop",
        Heat::Step => "each step",
        Heat::Called => "called in a loop",
        Heat::Once => "",
    }
}

fn message(one: &LintFinding) -> String {
    let sure = format!("The CPU waits for the GPU at `{}` ({}).", one.expression, one.certainty);
    let why = one.evidence.first().map(|evidence| format!(" Why: {}.", evidence.text.trim_end_matches('.')));
    let fix = one.fix.as_ref().map(|fix| format!(" Fix: {}.", fix.title));
    format!("{sure}{}{}", why.unwrap_or_default(), fix.unwrap_or_default())
}

fn reviewed(report: &LintReport, class: Class) -> Vec<&LintFinding> {
    report.open().filter(|one| one.class == class).collect()
}

/// Prints annotations of the hottest findings; returns how many have none.
pub fn github(report: &LintReport, paths: Paths, out: &mut dyn Write) -> io::Result<usize> {
    let mut left = 0;
    for (class, level) in [(Class::False, "warning"), (Class::Unknown, "notice")] {
        let all = reviewed(report, class);
        for one in all.iter().take(MOST) {
            let what = if class == Class::False { "avoidable wait" } else { "wait, perhaps avoidable" };
            let annotation = Annotation {
                level,
                file: Some(&one.file),
                line: one.line,
                title: format!("{what}: {}", one.kind.in_words()),
                message: message(one),
            };
            writeln!(out, "{}", annotation.command(paths))?;
        }
        left += all.len().saturating_sub(MOST);
    }
    Ok(left)
}

pub fn sarif(report: &LintReport, paths: Paths, describe: Describe, out: &mut dyn Write) -> io::Result<()> {
    let all: Vec<&LintFinding> = report.open().filter(|one| one.class != Class::True).collect();
    let shown = &all[..all.len().min(sarif::MOST)];
    let left = all.len() - shown.len();
    let more = (left > 0).then(|| format!("{left} more lines are left out; --format json has all"));
    let mut rules = BTreeMap::new();
    let mut prints = Fingerprints::default();
    let result = |one: &&LintFinding| {
        let id = sarif::rule_id(one.pattern, one.kind);
        let rule = || sarif::rule(one.pattern, one.kind, one.class, id, describe);
        rules.entry(id).or_insert_with(rule);
        let path = paths(&one.file).unwrap_or_else(|| one.file.clone());
        let source: String = one.source.split_whitespace().collect();
        let print = prints.of(&format!("lint|{id}|{path}|{}|{source}", one.function));
        let mut place = sarif::location(&one.file, &one.function, one.line, paths);
        place["physicalLocation"]["region"]["snippet"] =
            json!({ "text": text::escape_terminal(&one.source) });
        let mut result = sarif::result_of(id, sarif::level(one.class), &message(one), &print, place);
        if let Some(fixes) = one.edit.as_ref().and_then(|edit| sarif::fixes(edit, &one.file, paths)) {
            result["fixes"] = fixes;
        }
        result["properties"] = json!({
            "class": one.class, "kind": one.kind, "certainty": one.certainty, "heat": one.heat, "confidence": or_zero(one.confidence),
        });
        result
    };
    let results: Vec<Value> = shown.iter().map(result).collect();
    sarif::write(&rules.into_values().collect::<Vec<_>>(), &results, &report.warnings, more, out)
}
