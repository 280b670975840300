//! The outcome as SARIF 2.1.0: an error per breach.

use super::{CheckReport, Rule};
use crate::report::Frame;
use crate::report::sarif::{Fingerprints, location, nowhere, result_of, write};
use crate::repository::Repository;
use serde_json::{Value, json};
use std::io::{self, Write};

/// Prints the outcome as one run.
pub fn render(report: &CheckReport, repository: &Repository, out: &mut dyn Write) -> io::Result<()> {
    let rules: Vec<Value> = Rule::ALL
        .iter()
        .map(|(_, id, text)| {
            let level = json!({ "level": "error" });
            json!({ "id": format!("gate/{id}"), "shortDescription": { "text": text }, "defaultConfiguration": level })
        })
        .collect();
    let mut fingerprints = Fingerprints::default();
    let mut results = Vec::new();
    for breach in &report.breaches {
        let rule = format!("gate/{}", breach.rule.as_str());
        let site = breach.site.as_ref();
        let at = site.and_then(|s| s.location.as_ref());
        let place = at.map(|l| (repository.path(&l.file).unwrap_or_default(), &l.function));
        let print = fingerprints.of(&format!("{rule}|{}|{place:?}", breach.what));
        let fix = site.and_then(|s| s.fix.as_ref()).map_or(String::new(), |f| format!(" Fix: {f}."));
        let message = format!("{}: {}, limit {}.{fix}", breach.what, breach.actual, breach.limit);
        let mut result = result_of(&rule, "error", &message, &print);
        let location = match at {
            Some(l) => {
                let (file, function) = (l.file.clone(), l.function.clone());
                location(&Frame { function, file, line: l.line, user: true }, repository)
            }
            None => nowhere(&report.program, site.map_or("whole program", |s| &s.name), repository),
        };
        result["locations"] = json!([location]);
        results.push(result);
    }
    let notes: Vec<String> = report.warnings.iter().map(|w| w.message.clone()).collect();
    write(&rules, &results, &notes, out)
}
