//! The outcome for people: a line per breach, to be read in a log.

use super::{Breach, BreachSite, CheckReport};
use crate::report::phrase::at_line;
use crate::report::style::{Style, Tone};
use crate::report::table::{warnings, wrap};
use crate::text::{self, escape_terminal};
use std::io::{self, Write};

/// Prints each breach on one line, never wrapped; then what passed.
pub fn render(report: &CheckReport, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let mut parts: Vec<String> = Vec::new();
    if !report.breaches.is_empty() {
        parts.push(report.breaches.iter().map(line).collect::<Vec<_>>().join("\n"));
    }
    let rules = text::counted(report.rules.len() as u64, "rule");
    let verdict = match report.breaches.len() as u64 {
        0 => Tone::Needed.paint(format!("passed: {rules} kept")),
        1 => Tone::Avoidable.paint(format!("failed: 1 breach; {rules}")),
        n => Tone::Avoidable.paint(format!("failed: {} breaches; {rules}", text::count(n))),
    };
    let mut said = vec![verdict];
    said.extend(report.rules.iter().map(|rule| Tone::Faint.paint(format!("  {}", escape_terminal(rule)))));
    for allowed in &report.allowed {
        let line = format!(
            "  allowed until {}: {} ({}), {}",
            allowed.expires,
            escape_terminal(&allowed.name),
            escape_terminal(&allowed.reason),
            text::counted(allowed.sites.len() as u64, "site")
        );
        said.extend(wrap(&line, style, 0).into_iter().map(|l| Tone::Faint.paint(l)));
    }
    parts.push(said.join("\n"));
    parts.extend(warnings(&report.warnings, style));
    writeln!(out, "{}", style.finish(&parts.join("\n\n")))
}

/// `train.py:18: new avoidable waits (upload): 1, limit 0; S3 step; fix: …`
fn line(breach: &Breach) -> String {
    let site = breach.site.as_ref();
    let place = Tone::Strong.paint(site.map_or_else(|| "-".to_owned(), place));
    let mut line = format!(
        "{place}: {}: {}, limit {}",
        escape_terminal(&breach.what),
        escape_terminal(&breach.actual),
        escape_terminal(&breach.limit)
    );
    if let Some(site) = site {
        line += &format!("; {}", escape_terminal(&site.id));
        line += &site
            .location
            .as_ref()
            .map_or_else(String::new, |l| format!(" {}", escape_terminal(&l.function)));
        line += &site.fix.as_ref().map_or_else(String::new, |fix| format!("; fix: {}", escape_terminal(fix)));
    }
    line
}

/// `/workspace/train.py:18`, whole, so that an editor opens it.
pub fn place(site: &BreachSite) -> String {
    match &site.location {
        Some(l) => at_line(&escape_terminal(&l.file), l.line),
        None => escape_terminal(&site.name).into_owned(),
    }
}
