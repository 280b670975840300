//! `sync-report explain`: the catalogue of patterns, the rules of evidence, the codes of warnings.

use super::args::{ExplainArgs, ExplainFormat};
use super::output;
use anyhow::{Result, bail};
use std::path::Path;
use std::process::ExitCode;
use sync_report::catalogue::Pattern;
use sync_report::model::Code;
use sync_report::render::{explain, json, knowledge, style::Style};
use sync_report::rules::Rule;
use sync_report::{catalogue, rules};

/// Entries shown whole; more matches are listed.
const SHOWN: usize = 3;

pub fn run(args: &ExplainArgs) -> Result<ExitCode> {
    let found = Entries::of(args)?;
    output::write(Path::new("-"), &args.shared, |style, out| match args.format {
        ExplainFormat::Json => {
            Ok(json::write(&knowledge::tree(&found.patterns, &found.rules, &found.warnings), out)?)
        }
        ExplainFormat::Text if args.rules => Ok(write!(out, "{}", explain::list_rules(style))?),
        ExplainFormat::Text if args.warnings => Ok(write!(out, "{}", explain::list_warnings(style))?),
        ExplainFormat::Text if args.query.is_none() => Ok(write!(out, "{}", explain::list(style))?),
        ExplainFormat::Text => Ok(write!(out, "{}", found.whole(style))?),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What was asked for.
struct Entries {
    patterns: Vec<&'static Pattern>,
    rules: Vec<&'static Rule>,
    warnings: Vec<Code>,
}

impl Entries {
    fn of(args: &ExplainArgs) -> Result<Self> {
        let Some(query) = &args.query else {
            let every = !args.rules && !args.warnings;
            return Ok(Self {
                patterns: catalogue::all().filter(|_| every).collect(),
                rules: rules::all().filter(|_| every || args.rules).collect(),
                warnings: Code::ALL.iter().copied().filter(|_| every || args.warnings).collect(),
            });
        };
        // A code is one word that nothing else is; the words in it may be words of patterns.
        if let Some(code) = Code::parse(&query.trim().to_ascii_lowercase()) {
            return Ok(Self { patterns: Vec::new(), rules: Vec::new(), warnings: vec![code] });
        }
        let rule = rules::by_id(query);
        // Ids of rules are ids; their words (`device`, `thread`) may be words of patterns.
        let is_id = rule.is_some_and(Rule::has_number);
        let patterns = if is_id { Vec::new() } else { catalogue::search(query) };
        if patterns.is_empty() && rule.is_none() {
            let ids = rules::all().map(|rule| rule.id.as_str());
            let ids = ids.chain(Code::ALL.iter().map(|code| code.as_str()));
            bail!("{}", nothing_fits(query, &catalogue::near(query, ids)));
        }
        Ok(Self { patterns, rules: rule.into_iter().collect(), warnings: Vec::new() })
    }

    /// The entries as text; of many patterns, the first.
    fn whole(&self, style: Style) -> String {
        let mut parts: Vec<String> =
            self.patterns.iter().take(SHOWN).map(|p| explain::pattern(p, style)).collect();
        let more: Vec<&str> = self.patterns.iter().skip(SHOWN).map(|p| p.id).collect();
        if !more.is_empty() {
            parts.push(format!("Also: {}\n", more.join(", ")));
        }
        parts.extend(self.rules.iter().map(|rule| explain::rule(rule, style)));
        parts.extend(self.warnings.iter().map(|&code| explain::warning(code, style)));
        parts.join("\n")
    }
}

fn nothing_fits(query: &str, near: &[&str]) -> String {
    let near = if near.is_empty() { String::new() } else { format!("near: {}; ", near.join(", ")) };
    format!(
        "no pattern, rule or warning fits `{query}`; {near}`sync-report explain` lists the patterns, `explain --rules` the rules, `explain --warnings` the codes of warnings"
    )
}
