//! The sites as CSV, one line each, for spreadsheets and scripts.

use super::{Bounds, Report, Site, phrase};
use crate::text::escape_terminal;
use std::fmt::Display;
use std::io::{self, Write};

/// A cell's value; text is quoted and made harmless, numbers are printed as they are.
enum Value<'a> {
    Text(&'a str),
    Number(String),
    Empty,
}

impl<'a> Value<'a> {
    fn number(number: impl Display) -> Self {
        Value::Number(number.to_string())
    }

    fn numbered(number: Option<impl Display>) -> Self {
        number.map_or(Value::Empty, Value::number)
    }

    fn float(number: f64) -> Self {
        if number.is_finite() { Value::number(number) } else { Value::Empty }
    }

    fn text(text: Option<&'a str>) -> Self {
        text.map_or(Value::Empty, Value::Text)
    }
}

type Getter = for<'a> fn(&'a Report, &'a Site) -> Value<'a>;

/// Name and content of each column. Append only: scripts count on the order.
const COLUMNS: &[(&str, Getter)] = &[
    ("id", |_, s| Value::Text(&s.id)),
    ("key", |_, s| Value::Text(&s.key)),
    ("class", |_, s| Value::Text(s.class.as_str())),
    ("kind", |_, s| Value::Text(s.kind.as_str())),
    ("confidence", |_, s| Value::float(s.confidence)),
    ("pattern", |_, s| Value::text(s.pattern.as_deref())),
    ("file", |_, s| Value::text(phrase::location(s).map(|frame| frame.file.as_str()))),
    ("line", |_, s| Value::numbered(phrase::location(s).map(|frame| frame.line))),
    ("function", |_, s| Value::text(phrase::location(s).map(|frame| frame.function.as_str()))),
    ("source", |_, s| Value::text(s.source.as_deref())),
    ("attribution", |_, s| Value::Text(s.attribution.as_str())),
    ("attribution_note", |_, s| Value::Text(&s.attribution_note)),
    ("native", |_, s| Value::text(s.native.first().map(String::as_str))),
    ("nvtx", |_, s| Value::text(s.nvtx.last().map(String::as_str))),
    ("api", |_, s| Value::Text(&s.api)),
    ("driver_api", |_, s| Value::Text(s.driver_api.as_str())),
    ("copy_direction", |_, s| Value::text(s.copy.map(|copy| copy.direction.as_str()))),
    ("copy_bytes", |_, s| Value::numbered(s.copy.map(|copy| copy.bytes))),
    ("copy_host_memory", |_, s| Value::text(s.copy.map(|copy| copy.host_memory.as_str()))),
    ("waits", |_, s| Value::number(s.waits)),
    ("per_iteration", |_, s| s.per_iteration.map_or(Value::Empty, Value::float)),
    ("blocked_per_iteration_ns", |_, s| Value::numbered(s.blocked_per_iteration_ns)),
    ("found_idle", |_, s| Value::number(s.found_idle)),
    ("blocked_ns", |_, s| Value::number(s.blocked_ns)),
    ("blocked_p50_ns", |_, s| Value::number(s.blocked_p50_ns)),
    ("blocked_p99_ns", |_, s| Value::number(s.blocked_p99_ns)),
    ("blocked_max_ns", |_, s| Value::number(s.blocked_max_ns)),
    ("blocked_percent", |_, s| Value::float(s.blocked_percent)),
    ("drain_ns", |_, s| Value::number(s.drain_ns)),
    ("drain_p50_ns", |_, s| Value::number(s.drain_p50_ns)),
    ("drain_max_ns", |_, s| Value::number(s.drain_max_ns)),
    ("drain_percent", |_, s| Value::float(s.drain_percent)),
    ("recoverable_alone_ns", |_, s| Value::numbered(s.recoverable.as_ref().map(|r| r.alone_ns))),
    ("recoverable_joint_ns", |_, s| Value::numbered(s.recoverable.as_ref().map(|r| r.joint_ns))),
    ("recoverable_low_ns", |_, s| Value::numbered(s.recoverable.as_ref().map(|r| r.low_ns))),
    ("recoverable_high_ns", |_, s| Value::numbered(s.recoverable.as_ref().map(|r| r.high_ns))),
    ("thread", |_, s| Value::text(s.thread.name.as_deref())),
    ("tid", |_, s| Value::number(s.thread.tid)),
    ("thread_role", |_, s| Value::Text(s.thread.role.as_str())),
    ("threads", |_, s| Value::number(s.thread.count)),
    ("process", |_, s| Value::text(s.process.name.as_deref())),
    ("pid", |_, s| Value::number(s.process.pid)),
    ("profile", |r, s| Value::text(r.profiles.get(s.process.profile).map(|profile| profile.path.as_str()))),
    ("device", |_, s| Value::numbered(s.device)),
    ("stream", |_, s| Value::numbered(s.stream)),
    ("blocks_capture", |_, s| Value::number(s.blocks_capture)),
    ("fix_title", |_, s| Value::text(s.fix.as_ref().map(|fix| fix.title.as_str()))),
    ("start_up", |_, s| Value::number(s.start_up.is_some())),
    ("bound_each_high_ns", |_, s| Value::numbered(bounds(s).map(|b| b.each_high_ns))),
    ("bound_each_low_ns", |_, s| Value::numbered(bounds(s).map(|b| b.each_low_ns))),
    ("bound_together_high_ns", |_, s| Value::numbered(bounds(s).map(|b| b.together_high_ns))),
    ("bound_beside_ns", |_, s| Value::numbered(bounds(s).map(|b| b.beside_ns))),
    ("replayed_saving_ns", |_, s| Value::numbered(s.replayed.as_ref().map(|r| r.saving_ns))),
    ("replayed_saving_low_ns", |_, s| Value::numbered(s.replayed.as_ref().map(|r| r.saving_low_ns))),
    ("replayed_saving_high_ns", |_, s| Value::numbered(s.replayed.as_ref().map(|r| r.saving_high_ns))),
    ("replayed_stretch_ns", |_, s| Value::numbered(s.replayed.as_ref().map(|r| r.stretch_ns))),
    ("replayed_percent", |_, s| s.replayed.as_ref().map_or(Value::Empty, |r| Value::float(r.percent))),
    ("replayed_gpu", |_, s| Value::text(s.replayed.as_ref().map(|r| r.gpu.as_str()))),
];

fn bounds(site: &Site) -> Option<Bounds> {
    site.recoverable.as_ref().map(|r| r.bounds)
}

/// Prints a line of column names and a line per site (RFC 4180 quoting, lines end in LF). Control and bidi
/// characters come out escaped, so that a site stays on its line and a terminal is safe.
pub fn render(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    writeln!(out, "{}", names.join(","))?;
    for site in &report.sites {
        let cells: Vec<String> = COLUMNS.iter().map(|(_, value)| cell(&value(report, site))).collect();
        writeln!(out, "{}", cells.join(","))?;
    }
    Ok(())
}

fn cell(value: &Value<'_>) -> String {
    match value {
        Value::Empty => String::new(),
        Value::Number(number) => number.clone(),
        Value::Text(text) => quoted(&harmless(text)),
    }
}

/// Spreadsheets run a cell that begins like a formula; an apostrophe in front makes it text. The test is on the
/// raw text, because tab and carriage return count and are escaped afterwards.
fn harmless(text: &str) -> String {
    let escaped = escape_terminal(text);
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠']);
    if formula { format!("'{escaped}") } else { escaped.into_owned() }
}

fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) || text.starts_with(' ') || text.ends_with(' ') {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    fn rendered() -> String {
        let mut out = Vec::new();
        render(&sample::sample(), &mut out).expect("a Vec takes everything");
        String::from_utf8(out).expect("renderers write UTF-8")
    }

    #[test]
    fn all_sites() {
        insta::assert_snapshot!(rendered());
    }

    #[test]
    fn what_a_replay_measured_has_its_columns() {
        let mut report = sample::sample();
        report.sites[0].replayed = Some(sample::replayed());
        let mut out = Vec::new();
        render(&report, &mut out).expect("a Vec takes everything");
        let text = String::from_utf8(out).expect("renderers write UTF-8");
        let last: Vec<&str> = text.lines().filter_map(|line| line.rsplit(',').next()).collect();
        assert_eq!(last[..3], ["replayed_gpu", "NVIDIA \\x1b[31mH200", ""]);
        assert!(
            text.lines().nth(1).is_some_and(|line| line.contains(",58200,55200,61200,4620000,1.26,")),
            "{text}"
        );
    }

    #[test]
    fn each_site_is_one_line_of_all_columns() {
        let text = rendered();
        assert_eq!(text.lines().count(), 1 + sample::sample().sites.len());
        for line in text.lines() {
            let mut inside = false;
            let commas = line.chars().filter(|&c| {
                inside ^= c == '"';
                c == ',' && !inside
            });
            assert_eq!(commas.count() + 1, COLUMNS.len(), "{line}");
        }
    }

    #[test]
    fn formulas_become_text() {
        for (text, written) in [
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@sum(a)", "'@sum(a)"),
            ("\tx", "'\\tx"),
            ("\rx", "'\\rx"),
            ("say \"a, b\"", "\"say \"\"a, b\"\"\""),
            ("two\nlines", "two\\nlines"),
            (" padded", "\" padded\""),
            ("plain", "plain"),
        ] {
            assert_eq!(cell(&Value::Text(text)), written);
        }
    }
}
