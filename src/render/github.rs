//! GitHub annotations: workflow commands on stdout, the rest in the step's summary.
//!
//! A step may have ten warnings and ten notices; GitHub drops more without a word. So the ten worst avoidable waits
//! are warnings and the ten worst undecided ones notices. The Markdown report goes into `$GITHUB_STEP_SUMMARY`.

use super::Paths;
use super::{phrase, saving};
use crate::model::{Class, Frame, Report, Site};
use crate::text::{self, escape_terminal};
use std::io::{self, Write};

/// Annotations of one level that a step may have.
pub const MOST: usize = 10;
/// Bytes that a step's summary may have ("supports content up to a size of 1024k").
pub const SUMMARY: u64 = 1 << 20;

pub struct Annotation<'a> {
    /// "error", "warning" or "notice".
    pub level: &'static str,
    /// As recorded.
    pub file: Option<&'a str>,
    /// From 1; 0 where not known.
    pub line: u32,
    pub title: String,
    pub message: String,
}

impl Annotation<'_> {
    /// `::warning file=src/train.py,line=18,title=…::…`
    pub fn command(&self, paths: Paths) -> String {
        let found = self.file.and_then(paths);
        let line = if self.line > 0 { format!("line={},", self.line) } else { String::new() };
        let at = found.as_ref().map(|path| format!("file={},{line}", property(path))).unwrap_or_default();
        // The message names a file outside the checkout.
        let outside = self.file.filter(|_| found.is_none());
        let place = outside.map(|file| format!("{}: ", phrase::at_line(file, self.line))).unwrap_or_default();
        let message = data(&format!("{place}{}", self.message));
        format!("::{} {at}title={}::{message}", self.level, property(&self.title))
    }
}

/// Escapes a workflow command's message: a line break would end it, and start a command of its own.
fn data(text: &str) -> String {
    escape_terminal(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property, which a comma or a colon would end.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// Prints annotations of the worst sites; returns how many sites have none.
pub fn render(report: &Report, paths: Paths, out: &mut dyn Write) -> io::Result<usize> {
    let mut left = 0;
    for (class, level) in [(Class::False, "warning"), (Class::Unknown, "notice")] {
        let open = |s: &&Site| s.class == class && s.is_finding();
        let sites: Vec<&Site> = report.sites.iter().filter(open).collect();
        for site in sites.iter().take(MOST) {
            writeln!(out, "{}", annotation(site, level).command(paths))?;
        }
        left += sites.len().saturating_sub(MOST);
    }
    Ok(left + report.sites_omitted)
}

fn annotation<'a>(site: &'a Site, level: &'static str) -> Annotation<'a> {
    let frame = site.location();
    let what = if site.class == Class::False { "avoidable wait" } else { "wait, perhaps avoidable" };
    Annotation {
        level,
        file: frame.map(|f| f.file.as_str()),
        line: frame.map_or(0, |f| f.line),
        title: format!("{what}: {} ({})", site.kind.in_words(), phrase::call(site)),
        message: message(site),
    }
}

pub fn message(site: &Site) -> String {
    let idle = match site.drain_ns {
        0 => String::new(),
        drain => format!("; the GPU is then idle for {}", text::duration(drain)),
    };
    let (times, blocked) = (text::counted(site.waits, "time"), text::duration(site.blocked_ns));
    let place = inside(site);
    let waits = format!("The CPU waits for the GPU here {times}{place}, blocked for {blocked} in all{idle}.");
    let mut parts = vec![waits];
    parts.extend(site.evidence.first().map(|e| format!("Why: {}.", e.text.trim_end_matches('.'))));
    parts.extend(site.fix.as_ref().map(|f| format!("Fix: {}.", f.title)));
    parts.extend(saving::short(site).filter(|_| site.class != Class::True).map(|s| format!("Saves {s}.")));
    parts.join(" ")
}

/// Where below the line it waits: in a library, or in the backward pass that the line starts.
fn inside(site: &Site) -> String {
    let at = |f: &Frame| format!("{} {}", phrase::at_line(text::path_end(&f.file, 1), f.line), f.function);
    if let Some(frame) = &site.library_frame {
        return format!(", inside {} ({})", site.library.as_deref().unwrap_or_default(), at(frame));
    }
    let Some(backward) = &site.backward else { return String::new() };
    let of = backward.forward.as_ref().map(|forward| format!("of {}", at(forward)));
    let what: Vec<String> = backward.node.clone().into_iter().chain(of).collect();
    format!(", in the backward pass ({})", what.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample;

    #[test]
    fn all_sites() {
        let repository = crate::repository::Repository::new("/nowhere".into(), Vec::new());
        let paths: Paths = &|file| repository.path(file);
        let mut out = Vec::new();
        let left = render(&sample::sample(), paths, &mut out).expect("a Vec takes everything");
        assert_eq!(left, 5, "those that the report omits");
        insta::assert_snapshot!(String::from_utf8(out).expect("renderers write UTF-8"));
    }

    #[test]
    fn commands_end_where_they_should() {
        assert_eq!(data("50 %\n::error::x"), "50 %25\\n::error::x");
        assert_eq!(property("a:b,c%"), "a%3Ab%2Cc%25");
    }
}
