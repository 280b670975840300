//! The gate's outcome: a line per breach for a log, Markdown, annotations, SARIF, JUnit.

pub mod junit;

use super::github::{Annotation, MOST};
use super::markdown_text::{self as md, Limited};
use super::phrase::at_line;
use super::sarif::{self, Fingerprints};
use super::style::{Style, Tone};
use super::table::warnings;
use crate::model::check::{Breach, BreachSite, CheckReport, Rule};
use crate::repository::Repository;
use crate::text::{self, escape_terminal};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Prints each breach on one line, never wrapped, to be read in a log; then what passed.
pub fn table(report: &CheckReport, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let breaches: Vec<String> = report.breaches.iter().map(line).collect();
    let mut parts: Vec<String> = (!breaches.is_empty()).then(|| breaches.join("\n")).into_iter().collect();
    let rules = text::counted(report.rules.len() as u64, "rule");
    let mut said = vec![match report.breaches.len() as u64 {
        0 => Tone::Needed.paint(format!("passed: {rules} kept")),
        1 => Tone::Avoidable.paint(format!("failed: 1 breach; {rules}")),
        n => Tone::Avoidable.paint(format!("failed: {} breaches; {rules}", text::count(n))),
    }];
    said.extend(report.rules.iter().map(|rule| Tone::Faint.paint(format!("  {}", escape_terminal(rule)))));
    said.extend(report.allowed.iter().map(|allowed| {
        let [name, reason] = [&allowed.name, &allowed.reason].map(|text| escape_terminal(text));
        let sites = text::counted(allowed.sites.len() as u64, "site");
        style.faint(&[format!("  allowed until {}: {name} ({reason}), {sites}", allowed.expires)])
    }));
    parts.push(said.join("\n"));
    parts.extend(warnings(&report.warnings, style));
    writeln!(out, "{}", style.finish(&parts.join("\n\n")))
}

/// `train.py:18: new avoidable waits (upload): 1, limit 0; S3 step; fix: …`
fn line(breach: &Breach) -> String {
    let site = breach.site.as_ref();
    let place = Tone::Strong.paint(site.map_or_else(|| "-".to_owned(), place));
    let [what, actual, limit] =
        [&breach.what, &breach.actual, &breach.limit].map(|text| escape_terminal(text));
    let mut line = format!("{place}: {what}: {actual}, limit {limit}");
    if let Some(site) = site {
        line += &format!("; {}", escape_terminal(&site.id));
        line.extend(site.location.as_ref().map(|l| format!(" {}", escape_terminal(&l.function))));
        line += &library(site, " → ");
        line.extend(site.fix.as_ref().map(|fix| format!("; fix: {}", escape_terminal(fix))));
    }
    line
}

/// `/workspace/train.py:18`, whole, so that an editor opens it.
fn place(site: &BreachSite) -> String {
    match &site.location {
        Some(l) => at_line(&escape_terminal(&l.file), l.line),
        None => escape_terminal(&site.name).into_owned(),
    }
}

/// ` → boxes.py:48 nms`, with that sign in front: the library's line that waits, if it is in one.
fn library(site: &BreachSite, sign: &str) -> String {
    let library = site.library.as_ref().filter(|library| site.location.as_ref() != Some(library));
    library.map_or_else(String::new, |l| {
        let at = at_line(text::path_end(&l.file, 1), l.line);
        escape_terminal(&format!("{sign}{at} {}", l.function)).into_owned()
    })
}

/// Kept free for the sentence on what is left out.
const RESERVE: usize = 200;

/// The verdict, the breaches as a table, and collapsed what was looked at, for a pull request or a step's summary; in at
/// most `limit` characters.
pub fn markdown(report: &CheckReport, limit: usize) -> String {
    let mut text = Limited::new(limit, RESERVE);
    let outcome = match report.breaches.len() {
        0 => "✅ sync-report: passed".to_owned(),
        1 => "❌ sync-report: 1 breach".to_owned(),
        n => format!("❌ sync-report: {n} breaches"),
    };
    text.add(&format!("### {outcome}\n\n"));
    let left = text.table(&["where", "what", ">actual", ">limit", "fix"], report.breaches.iter().map(row));
    text.warnings(&report.warnings);
    let rules = report.rules.iter().map(|r| format!("- {}\n", md::plain(r)));
    let allowed = report.allowed.iter().map(|a| {
        let (reason, name) = (md::plain(&a.reason), md::code(&a.name));
        format!("- allowed until {}: {reason} ({name})\n", a.expires)
    });
    let summary = text::counted(report.rules.len() as u64, "rule");
    let open = format!("<details><summary>{summary}</summary>\n\n");
    text.section(&open, &rules.chain(allowed).collect::<Vec<_>>(), "\n</details>\n");
    text.close(&match left {
        0 => String::new(),
        n => format!("\n{n} more breaches not listed: there is no more room. `--format json` has all.\n"),
    })
}

fn row(breach: &Breach) -> String {
    let site = breach.site.as_ref();
    let place = site.map(|s| md::code_cell(&(place(s) + &library(s, " → ")))).unwrap_or_default();
    let fix = site.and_then(|s| s.fix.as_deref()).unwrap_or_default();
    let [what, actual, limit, fix] = [&breach.what, &breach.actual, &breach.limit, fix].map(md::plain);
    md::row(&[place, what, actual, limit, fix])
}

/// What was measured, what is allowed, and what to do.
fn finding(breach: &Breach) -> String {
    let site = breach.site.as_ref();
    let fix = site.and_then(|site| Some(format!(" Fix: {}.", site.fix.as_ref()?))).unwrap_or_default();
    let library = site.map_or_else(String::new, |site| library(site, ", waiting in "));
    format!("{}, limit {}{library}.{fix}", breach.actual, breach.limit)
}

/// Prints annotations of the first breaches; returns how many have none.
pub fn github(report: &CheckReport, repository: &Repository, out: &mut dyn Write) -> io::Result<usize> {
    for breach in report.breaches.iter().take(MOST) {
        let location = breach.site.as_ref().and_then(|s| s.location.as_ref());
        let unplaced = breach.site.as_ref().filter(|_| location.is_none());
        let place = unplaced.map_or_else(String::new, |site| format!("{}: ", place(site)));
        let annotation = Annotation {
            level: "error",
            file: location.map(|l| l.file.as_str()),
            line: location.map_or(0, |l| l.line),
            title: breach.what.clone(),
            message: format!("{place}{}", finding(breach)),
        };
        writeln!(out, "{}", annotation.command(repository))?;
    }
    Ok(report.breaches.len().saturating_sub(MOST))
}

/// Prints the outcome as SARIF 2.1.0: one run, an error per breach.
pub fn sarif(report: &CheckReport, repository: &Repository, out: &mut dyn Write) -> io::Result<()> {
    let rule = |rule: &Rule| {
        let (id, text) = (format!("gate/{rule}"), rule.help());
        json!({ "id": id, "shortDescription": { "text": text }, "defaultConfiguration": { "level": "error" } })
    };
    let rules: Vec<Value> = Rule::ALL.iter().map(rule).collect();
    let mut fingerprints = Fingerprints::default();
    let results = report.breaches.iter().map(|breach| {
        let rule = format!("gate/{}", breach.rule);
        let at = breach.site.as_ref().and_then(|s| s.location.as_ref());
        let place = at.map(|l| (repository.path(&l.file).unwrap_or_default(), &l.function));
        let print = fingerprints.of(&format!("{rule}|{}|{place:?}", breach.what));
        let message = format!("{}: {}", breach.what, finding(breach));
        // What has no line is a matter of the program as a whole.
        let name = breach.site.as_ref().map_or("whole program", |s| &s.name);
        let (file, function, line) =
            at.map_or((&*report.program, name, 0), |l| (&*l.file, &*l.function, l.line));
        let location = sarif::location(file, function, line, repository);
        sarif::result_of(&rule, "error", &message, &print, location)
    });
    sarif::write(&rules, &results.collect::<Vec<_>>(), &report.warnings, None, out)
}

#[cfg(test)]
mod tests;
