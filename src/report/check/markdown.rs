//! The outcome as Markdown, for a pull request or a step's summary.

use super::{Breach, CheckReport, table};
use crate::report::markdown_text::{self as md, Limited};
use crate::text;
use std::io::{self, Write};

/// Kept free for the sentence on what is left out.
const RESERVE: usize = 200;

/// Prints the verdict, the breaches as a table, and collapsed what was looked at.
pub fn render(report: &CheckReport, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{}", text_of(report, md::COMMENT))
}

/// The same in at most `limit` characters.
pub fn text_of(report: &CheckReport, limit: usize) -> String {
    let mut text = Limited::new(limit, RESERVE);
    let verdict = match report.breaches.len() {
        0 => "✅ sync-report: passed".to_owned(),
        1 => "❌ sync-report: 1 breach".to_owned(),
        n => format!("❌ sync-report: {n} breaches"),
    };
    text.add(&format!("### {verdict}\n\n"));
    let rows: Vec<String> = report.breaches.iter().map(row).collect();
    let mut left = 0;
    if !rows.is_empty() {
        left = text.section(&md::header(&["where", "what", ">actual", ">limit", "fix"]), &rows, "\n");
    }
    for warning in &report.warnings {
        text.add(&format!("> ⚠️ {}\n\n", md::plain(&warning.message)));
    }
    let rules: Vec<String> = report.rules.iter().map(|r| format!("- {}\n", md::plain(r))).collect();
    let allowed = report.allowed.iter().map(|a| {
        let until = format!("until {}: {}", a.expires, md::plain(&a.reason));
        format!("- allowed {until} ({})\n", md::code(&a.name))
    });
    let rules: Vec<String> = rules.into_iter().chain(allowed).collect();
    let summary = text::counted(report.rules.len() as u64, "rule");
    text.section(&format!("<details><summary>{summary}</summary>\n\n"), &rules, "\n</details>\n");
    let tail = match left {
        0 => String::new(),
        n => format!("\n{n} more breaches not listed: there is no more room. `--format json` has all.\n"),
    };
    text.close(&tail)
}

fn row(breach: &Breach) -> String {
    let site = breach.site.as_ref();
    let fix = site.and_then(|s| s.fix.as_ref());
    md::row(&[
        site.map_or_else(String::new, |s| md::code_cell(&table::place(s))),
        md::plain(&breach.what),
        md::plain(&breach.actual),
        md::plain(&breach.limit),
        fix.map_or_else(String::new, |f| md::plain(f)),
    ])
}
