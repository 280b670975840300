//! `sync-report explain`: the catalogue of patterns, the rules of evidence, the codes of warnings.

use super::args::ExplainArgs;
use super::output;
use anyhow::{Result, bail};
use std::path::Path;
use std::process::ExitCode;
use sync_report::model::Code;
use sync_report::render::{explain, json, style::Style};
use sync_report::{catalogue, rules};

/// Entries shown whole; more matches are listed.
const SHOWN: usize = 3;

pub fn run(args: &ExplainArgs) -> Result<ExitCode> {
    output::write(Path::new("-"), &args.shared, |style, out| {
        if args.format == "json" {
            let patterns = match &args.query {
                None => catalogue::all().collect(),
                Some(query) => catalogue::search(query),
            };
            let entries: Vec<_> = patterns.into_iter().map(explain::Entry::of).collect();
            return Ok(json::write(&entries, out)?);
        }
        let text = match &args.query {
            None if args.rules => explain::list_rules(style),
            None if args.warnings => explain::list_warnings(style),
            None => explain::list(style),
            Some(query) => found(query, style)?,
        };
        Ok(write!(out, "{text}")?)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What fits a query, whole.
fn found(query: &str, style: Style) -> Result<String> {
    // A code is one word that nothing else is; the words in it may be words of patterns.
    if let Some(code) = Code::parse(&query.trim().to_ascii_lowercase()) {
        return Ok(explain::warning(code, style));
    }
    let patterns = catalogue::search(query);
    let rule = rules::by_id(query);
    // Ids of rules are ids; their words (`device`, `thread`) may be words of patterns.
    let shown = if rule.is_some_and(|rule| rule.has_number()) { &[][..] } else { &patterns };
    let mut parts: Vec<String> = shown.iter().take(SHOWN).map(|p| explain::pattern(p, style)).collect();
    let more: Vec<&str> = shown.iter().skip(SHOWN).map(|p| p.id).collect();
    if !more.is_empty() {
        parts.push(format!("Also: {}\n", more.join(", ")));
    }
    parts.extend(rule.map(|rule| explain::rule(rule, style)));
    if parts.is_empty() {
        let ids = rules::all().map(|rule| rule.id.as_str());
        let ids = ids.chain(Code::ALL.iter().map(|code| code.as_str()));
        bail!("{}", nothing_fits(query, &catalogue::near(query, ids)));
    }
    Ok(parts.join("\n"))
}

fn nothing_fits(query: &str, near: &[&str]) -> String {
    let near = if near.is_empty() { String::new() } else { format!("near: {}; ", near.join(", ")) };
    format!(
        "no pattern, rule or warning fits `{query}`; {near}`sync-report explain` lists the patterns, `explain --rules` the rules, `explain --warnings` the codes of warnings"
    )
}
