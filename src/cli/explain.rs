//! `sync-report explain`: the catalogue of patterns, the rules of evidence, the codes of warnings.

use super::args::ExplainArgs;
use super::output;
use anyhow::{Result, bail};
use std::path::Path;
use std::process::ExitCode;
use sync_report::formats::Setting;
use sync_report::knowledge::explain::Entries;
use sync_report::model::Code;
use sync_report::rules::Rule;
use sync_report::{catalogue, rules};

pub fn run(args: &ExplainArgs) -> Result<ExitCode> {
    let entries = entries(args)?;
    // Ids of rules have two digits or more: "S2" rather comes from a report.
    let site = args.query.as_deref().filter(|query| query.len() == 2 && query.starts_with(['S', 's']));
    if let Some(site) = site.filter(|_| !entries.rules.is_empty() && !args.shared.quiet) {
        output::say(&format!(
            "this is a rule of evidence; a report shows its site {site} with --details {site}"
        ));
    }
    output::print(args.format, &entries, Setting::default(), Path::new("-"), &args.shared)
}

fn entries(args: &ExplainArgs) -> Result<Entries> {
    let Some(query) = &args.query else {
        let every = !args.rules && !args.warnings;
        return Ok(Entries {
            listed: true,
            patterns: catalogue::all().filter(|_| every).collect(),
            rules: rules::all().filter(|_| every || args.rules).collect(),
            warnings: Code::ALL.iter().copied().filter(|_| every || args.warnings).collect(),
        });
    };
    // A code is unique as a whole; its parts may be words of patterns.
    if let Some(code) = Code::parse(&query.trim().to_ascii_lowercase()) {
        return Ok(Entries { warnings: vec![code], ..Entries::default() });
    }
    let rule = rules::by_id(query);
    // A numbered id is a rule's alone; words (`device`, `thread`) may be words of patterns.
    let is_id = rule.is_some_and(Rule::has_number);
    let patterns = if is_id || is_of_rule(query) { Vec::new() } else { catalogue::search(query) };
    if patterns.is_empty() && rule.is_none() {
        let ids = rules::all().map(|rule| rule.id.as_str());
        let ids = ids.chain(Code::ALL.iter().map(|code| code.as_str()));
        bail!("{}", nothing_fits(query, &catalogue::near(query, ids)));
    }
    Ok(Entries { patterns, rules: rule.into_iter().collect(), ..Entries::default() })
}

/// Whether a query has the form of a rule's id, of any version: S13.
fn is_of_rule(query: &str) -> bool {
    let number = query.trim().strip_prefix(['R', 'S', 'X', 'r', 's', 'x']).unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

fn nothing_fits(query: &str, near: &[&str]) -> String {
    let near = if near.is_empty() { String::new() } else { format!("near: {}; ", near.join(", ")) };
    format!(
        "no pattern, rule or warning fits `{query}`; {near}`sync-report explain` lists the patterns, `explain --rules` the rules, `explain --warnings` the codes of warnings"
    )
}
