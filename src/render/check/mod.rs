//! The gate's outcome: a line per breach for a log, Markdown, annotations, SARIF, JUnit.

pub mod junit;

use super::Paths;
use super::document::{Block, Span, Words};
use super::github::{Annotation, MOST};
use super::phrase::at_line;
use super::report::warnings;
use super::sarif::{self, Fingerprints};
use super::style::Tone;
use crate::model::check::{Breach, BreachSite, CheckReport, Rule};
use crate::text::{self, escape_terminal};
use serde_json::{Value, json};
use std::io::{self, Write};

pub(crate) fn document(report: &CheckReport) -> Vec<Block> {
    let rules = text::counted(report.rules.len() as u64, "rule");
    let outcome = match report.breaches.len() as u64 {
        0 => Words::toned(Tone::Needed, format!("sync-report check passed: {rules} kept")),
        1 => Words::toned(Tone::Avoidable, format!("sync-report check failed: 1 breach; {rules}")),
        n => Words::toned(
            Tone::Avoidable,
            format!("sync-report check failed: {} breaches; {rules}", text::count(n)),
        ),
    };
    let allowed = report.allowed.iter().map(|allowed| {
        let sites = text::counted(allowed.sites.len() as u64, "site");
        let until = match &*allowed.expires {
            "" => "allowed by a comment".to_owned(),
            day => format!("allowed until {day}"),
        };
        format!("{until}: {} ({}), {sites}", allowed.name, allowed.reason)
    });
    let broken = |rule: &String| report.breaches.iter().any(|breach| breach.breaks.as_ref() == Some(rule));
    let rule = |rule: &String| format!("{}  {rule}", if broken(rule) { "broken" } else { "kept  " });
    let looked_at = report.rules.iter().map(rule).chain(allowed);
    let mut blocks = vec![
        Block::Heading(outcome),
        Block::List(report.breaches.iter().map(line).collect()),
        Block::Fold("rules".into(), vec![Block::List(looked_at.map(Words::from).collect())]),
    ];
    blocks.extend(warnings(&report.warnings));
    blocks
}

/// `train.py:18: new avoidable waits (upload): 1, limit 0; S3 step; fix: …`
fn line(breach: &Breach) -> Words {
    let site = breach.site.as_ref();
    let place = site.map_or_else(|| "-".to_owned(), place);
    let mut line = format!(": {}: {}, limit {}", breach.what, breach.actual, breach.limit);
    if let Some(site) = site {
        line += &format!("; {}", site.id);
        line.extend(site.location.as_ref().map(|l| format!(" {}", l.function)));
        line += &library(site, " → ");
        line.extend(site.fix.as_ref().map(|fix| format!("; fix: {fix}")));
    }
    Words(vec![Span { text: place, tone: Some(Tone::Strong), code: true }]).then(line)
}

/// `/workspace/train.py:18`: the whole path, so that an editor opens it.
fn place(site: &BreachSite) -> String {
    match &site.location {
        Some(l) => at_line(&escape_terminal(&l.file), l.line),
        None => escape_terminal(&site.name).into_owned(),
    }
}

/// ` → boxes.py:48 nms`, after `sign`; empty unless a library's line waits.
fn library(site: &BreachSite, sign: &str) -> String {
    let library = site.library.as_ref().filter(|library| site.location.as_ref() != Some(library));
    library.map_or_else(String::new, |l| {
        let at = at_line(text::path_end(&l.file, 1), l.line);
        escape_terminal(&format!("{sign}{at} {}", l.function)).into_owned()
    })
}

fn finding(breach: &Breach) -> String {
    let site = breach.site.as_ref();
    let fix = site.and_then(|site| Some(format!(" Fix: {}.", site.fix.as_ref()?))).unwrap_or_default();
    let library = site.map_or_else(String::new, |site| library(site, ", waiting in "));
    format!("{}, limit {}{library}.{fix}", breach.actual, breach.limit)
}

/// Prints annotations of the first breaches; returns how many have none.
pub fn github(report: &CheckReport, paths: Paths, out: &mut dyn Write) -> io::Result<usize> {
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
        writeln!(out, "{}", annotation.command(paths))?;
    }
    Ok(report.breaches.len().saturating_sub(MOST))
}

pub fn sarif(report: &CheckReport, paths: Paths, out: &mut dyn Write) -> io::Result<()> {
    let rule = |rule: &Rule| {
        let (id, text) = (format!("gate/{rule}"), rule.help());
        json!({ "id": id, "shortDescription": { "text": text }, "defaultConfiguration": { "level": "error" } })
    };
    let rules: Vec<Value> = Rule::ALL.iter().map(rule).collect();
    let mut fingerprints = Fingerprints::default();
    let results = report.breaches.iter().map(|breach| {
        let rule = format!("gate/{}", breach.rule);
        let at = breach.site.as_ref().and_then(|s| s.location.as_ref());
        let place = at.map(|l| (paths(&l.file).unwrap_or_default(), &l.function));
        let print = fingerprints.of(&format!("{rule}|{}|{place:?}", breach.what));
        let message = format!("{}: {}", breach.what, finding(breach));
        // A breach without a line concerns the program as a whole.
        let name = breach.site.as_ref().map_or("whole program", |s| &s.name);
        let (file, function, line) =
            at.map_or((&*report.program, name, 0), |l| (&*l.file, &*l.function, l.line));
        let location = sarif::location(file, function, line, paths);
        sarif::result_of(&rule, "error", &message, &print, location)
    });
    sarif::write(&rules, &results.collect::<Vec<_>>(), &report.warnings, None, out)
}

#[cfg(test)]
mod tests;
