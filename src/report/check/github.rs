//! The outcome as GitHub annotations: an error per breach.

use super::{CheckReport, table};
use crate::report::github::{Annotation, MOST};
use crate::repository::Repository;
use std::io::{self, Write};

/// Prints annotations of the first breaches; returns how many have none.
pub fn render(report: &CheckReport, repository: &Repository, out: &mut dyn Write) -> io::Result<usize> {
    for breach in report.breaches.iter().take(MOST) {
        let site = breach.site.as_ref();
        let location = site.and_then(|s| s.location.as_ref());
        let fix = site.and_then(|s| s.fix.as_ref()).map_or(String::new(), |f| format!(" Fix: {f}."));
        let place = match site {
            Some(site) if location.is_none() => format!("{}: ", table::place(site)),
            _ => String::new(),
        };
        let annotation = Annotation {
            level: "error",
            file: location.map(|l| l.file.as_str()),
            line: location.map_or(0, |l| l.line),
            title: breach.what.clone(),
            message: format!("{place}{}, limit {}.{fix}", breach.actual, breach.limit),
        };
        writeln!(out, "{}", annotation.command(repository))?;
    }
    Ok(report.breaches.len().saturating_sub(MOST))
}
