//! A sheet as Markdown: tables with pipes, names escaped so that none becomes markup.

use super::{Part, Sheet};
use crate::text::escape_terminal;
use std::io::{self, Write};

pub(super) fn render(sheet: &Sheet, out: &mut dyn Write) -> io::Result<()> {
    for line in &sheet.head {
        writeln!(out, "{}  ", plain(line))?;
    }
    for part in &sheet.parts {
        writeln!(out, "\n**{}**\n", plain(part.title))?;
        table(part, out)?;
        for line in &part.below {
            writeln!(out, "\n{}", plain(line))?;
        }
    }
    if !sheet.notes.is_empty() {
        writeln!(out)?;
    }
    for note in &sheet.notes {
        writeln!(out, "- {}", plain(note))?;
    }
    Ok(())
}

fn table(part: &Part, out: &mut dyn Write) -> io::Result<()> {
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    writeln!(out, "{}", line(part.titles.iter().map(|t| plain(t)).collect()))?;
    let rule = |i: usize| if i < part.left { "---" } else { "---:" };
    writeln!(out, "{}", line((0..part.titles.len()).map(|i| rule(i).to_owned()).collect()))?;
    for row in &part.rows {
        writeln!(out, "{}", line(row.iter().map(|c| plain(c)).collect()))?;
    }
    Ok(())
}

/// Text that Markdown shows as it is: on one line, every character that could begin markup escaped.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in escape_terminal(text).chars() {
        if "\\`*_{}[]<>()#|!~&$".contains(c) {
            out.push('\\');
        }
        out.push(if c == '\n' { ' ' } else { c });
    }
    out
}
