//! The sites as CSV, one line each, for spreadsheets and scripts.

use crate::model::columns::{COLUMNS, Values};
use crate::model::{Report, Site};
use crate::text::escape_terminal;
use std::io::{self, Write};

/// Prints a line of column names and a line per site (RFC 4180 quoting, lines end in LF). Control and bidi
/// characters come out escaped, so that a site stays on its line and a terminal is safe.
pub fn render(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    writeln!(out, "{}", names.join(","))?;
    for site in &report.sites {
        let cells: Vec<String> = COLUMNS.iter().map(|(_, values)| cell(values, report, site)).collect();
        writeln!(out, "{}", cells.join(","))?;
    }
    Ok(())
}

/// Text is quoted and made harmless; a number that is not finite stays empty.
fn cell(values: &Values, report: &Report, site: &Site) -> String {
    match values {
        Values::Text(of) => of(report, site).map_or_else(String::new, text),
        Values::Whole(of) => of(report, site).map_or_else(String::new, |n| n.to_string()),
        Values::Float(of) => {
            of(report, site).filter(|n| n.is_finite()).map_or_else(String::new, |n| n.to_string())
        }
        Values::Flag(of) => of(report, site).to_string(),
    }
}

/// Spreadsheets run a cell that begins like a formula; an apostrophe in front makes it text. The test is on
/// the raw text: tab and carriage return count, and are escaped afterwards.
fn text(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠']);
    let text = format!("{}{}", if formula { "'" } else { "" }, escape_terminal(text));
    let parts = text.contains(['"', ',']) || text.starts_with(' ') || text.ends_with(' ');
    if parts { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample;

    fn rendered() -> String {
        sample::printed(|out| render(&sample::sample(), out))
    }

    #[test]
    fn all_sites() {
        insta::assert_snapshot!(rendered());
    }

    #[test]
    fn what_a_replay_measured_has_its_columns() {
        let mut report = sample::sample();
        report.sites[0].replayed = Some(sample::replayed());
        let text = sample::printed(|out| render(&report, out));
        let measured = ",58200,55200,61200,4620000,1.26,NVIDIA \\x1b[31mH200,";
        assert!(text.lines().nth(1).is_some_and(|line| line.contains(measured)), "{text}");
        assert!(text.lines().nth(2).is_some_and(|line| !line.contains("H200")), "{text}");
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
            assert_eq!(super::text(text), written);
        }
    }
}
