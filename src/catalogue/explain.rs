//! The catalogue as text: the list of all entries, and one entry whole.

use super::highlight::python;
use super::{Category, LibrarySite, Pattern, Strategy, all, lookup::plain, quick, search};
use crate::vocabulary::Class;
use anstyle::{AnsiColor, Effects, Style as Ansi};
use std::io::{self, Write};

/// How to print.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub color: bool,
    /// Columns of the output; prose is wrapped to it.
    pub width: usize,
}

/// Narrower than this, wrapping makes text worse.
const MIN_WIDTH: usize = 40;
/// Column where the text of a field begins.
const INDENT: usize = 12;

const BOLD: Ansi = Ansi::new().effects(Effects::BOLD);
const DIM: Ansi = AnsiColor::BrightBlack.on_default();
const RED: Ansi = AnsiColor::Red.on_default();
const GREEN: Ansi = AnsiColor::Green.on_default();

impl Style {
    fn width(self) -> usize {
        self.width.max(MIN_WIDTH)
    }

    /// The text in that style, or plain without colour.
    fn paint(self, ansi: Ansi, text: &str) -> String {
        if self.color { format!("{ansi}{text}{ansi:#}") } else { text.to_owned() }
    }

    /// Padded to `columns` first: escape sequences have no width.
    fn cell(self, ansi: Ansi, text: &str, columns: usize) -> String {
        self.paint(ansi, &format!("{text:<columns$}"))
    }
}

/// Every entry under its category, then the quick reference.
pub fn list(out: &mut dyn Write, style: Style) -> io::Result<()> {
    for category in Category::ALL {
        let number = quick::CATEGORIES.iter().find(|row| row.category == category).map(|row| row.number);
        let heading = match number {
            Some(n) => format!("{n}. {}", category.name()),
            None => category.name().to_owned(),
        };
        writeln!(out, "{}", style.paint(BOLD, &heading))?;
        for pattern in all().filter(|p| p.category == category) {
            list_entry(out, style, pattern)?;
        }
        writeln!(out)?;
    }
    quick_reference(out, style)
}

/// One row: id, class, title, and the fix, which moves to a line of its own where the width is too small.
fn list_entry(out: &mut dyn Write, style: Style, p: &Pattern) -> io::Result<()> {
    let id = style.cell(BOLD, p.id, 5);
    let class = style.cell(class_colour(p), class_word(p), 9);
    let room = style.width() / 2 - 10;
    if p.title.len() <= room && 16 + room + 1 + p.fix.title.len() <= style.width() {
        return writeln!(out, "  {id}{class}{:<room$} {}", p.title, style.paint(DIM, p.fix.title));
    }
    field_lines(out, style.width(), &format!("  {id}{class}"), 16, p.title)?;
    for line in wrap(p.fix.title, style.width().saturating_sub(18)) {
        writeln!(out, "{:18}{}", "", style.paint(DIM, &line))?;
    }
    Ok(())
}

fn quick_reference(out: &mut dyn Write, style: Style) -> io::Result<()> {
    writeln!(out, "{}", style.paint(BOLD, "Quick reference: what waits, what to write instead"))?;
    let columns = quick::ROWS.iter().map(|r| r.waits.len()).max().unwrap_or(0);
    let mut group = "";
    for row in quick::ROWS {
        if row.group != group {
            group = row.group;
            writeln!(out, "  {}", style.paint(DIM, group))?;
        }
        let before = style.cell(RED, row.waits, columns);
        let id = style.cell(BOLD, row.pattern, 5);
        writeln!(out, "    {id}{before}  {}", style.paint(GREEN, row.instead))?;
    }
    Ok(())
}

/// One entry whole.
pub fn show(p: &Pattern, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let title = wrap(p.title, style.width() - 5);
    for (i, line) in title.iter().enumerate() {
        writeln!(out, "{}", style.paint(BOLD, &format!("{:<5}{line}", if i == 0 { p.id } else { "" })))?;
    }
    writeln!(out)?;
    field(out, style, "category", p.category.name())?;
    field(out, style, "class", &class_sentence(p))?;
    items(out, style, "written as", p.triggers.iter().map(|t| (*t).to_owned()))?;
    field(out, style, "why", p.why)?;
    field(out, style, "in a trace", p.trace)?;
    field(out, style, "operator", p.op)?;
    field(out, style, "driver call", p.driver_api)?;
    field(out, style, "versions", p.versions)?;
    if let Some(site) = &p.library {
        library(out, style, site)?;
    }
    field(out, style, "sources", p.sources)?;
    writeln!(out)?;
    field(out, style, "fix", p.fix.title)?;
    if p.fix.strategy != Strategy::Leave {
        field(out, style, "strategy", p.fix.strategy.name())?;
    }
    if !p.fix.before.is_empty() {
        writeln!(out)?;
        code(out, style, style.paint(RED, "-"), p.fix.before)?;
        code(out, style, style.paint(GREEN, "+"), p.fix.after)?;
    }
    if !p.fix.caveat.is_empty() {
        writeln!(out)?;
        field(out, style, "mind", p.fix.caveat)?;
    }
    Ok(())
}

fn library(out: &mut dyn Write, style: Style, site: &LibrarySite) -> io::Result<()> {
    field(out, style, "library", site.library)?;
    let frames =
        site.frames.iter().map(|(file, function)| format!("{file} {function}").trim_end().to_owned());
    items(out, style, "code in", frames)?;
    field(out, style, "line with", site.line_text)?;
    field(out, style, "how often", site.frequency)
}

/// A name and one line per item.
fn items(
    out: &mut dyn Write,
    style: Style,
    name: &str,
    items: impl Iterator<Item = String>,
) -> io::Result<()> {
    for (i, item) in items.enumerate() {
        field(out, style, if i == 0 { name } else { "" }, &item)?;
    }
    Ok(())
}

/// A name and its wrapped text; nothing where the text is empty.
fn field(out: &mut dyn Write, style: Style, name: &str, text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    field_lines(out, style.width(), &style.cell(DIM, name, INDENT), INDENT, text)
}

/// `text` wrapped behind `head`, which takes `indent` columns.
fn field_lines(out: &mut dyn Write, width: usize, head: &str, indent: usize, text: &str) -> io::Result<()> {
    for (i, line) in wrap(text, width.saturating_sub(indent)).iter().enumerate() {
        if i == 0 {
            writeln!(out, "{head}{line}")?;
        } else {
            writeln!(out, "{:indent$}{line}", "")?;
        }
    }
    Ok(())
}

/// Python with a gutter sign in front of each line. Code is never wrapped: it would no longer be code to copy.
fn code(out: &mut dyn Write, style: Style, gutter: String, source: &str) -> io::Result<()> {
    for line in source.lines() {
        let text: String = python(line).into_iter().map(|(ansi, piece)| style.paint(ansi, piece)).collect();
        writeln!(out, "  {gutter} {text}")?;
    }
    Ok(())
}

/// Greedy wrapping at spaces; a word longer than the width stands alone.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn class_word(p: &Pattern) -> &'static str {
    match (p.category, p.kind) {
        (Category::NotAWait, _) => "no wait",
        (_, Some(kind)) => kind.class().as_str(),
        (_, None) => "depends",
    }
}

fn class_colour(p: &Pattern) -> Ansi {
    match (p.category, p.kind.map(|k| k.class())) {
        (Category::NotAWait, _) => DIM,
        (_, Some(Class::False)) => RED,
        (_, Some(Class::True)) => GREEN,
        _ => AnsiColor::Yellow.on_default(),
    }
}

/// Class and kind in words.
fn class_sentence(p: &Pattern) -> String {
    let Some(kind) = p.kind else {
        return match p.category {
            Category::NotAWait => "none: the CPU does not wait".to_owned(),
            _ => "depends on what the program does with the value".to_owned(),
        };
    };
    let meaning = match kind.class() {
        Class::False => "the CPU does not need the GPU's result here",
        Class::True => "the CPU needs the GPU's result",
        Class::Unknown => "the evidence does not say",
    };
    let wanted = if p.intended { "; usually there on purpose" } else { "" };
    format!("{} ({kind}): {meaning}{wanted}", kind.class())
}

/// The entries for a query, or the nearest ids and trigger names where nothing matches.
pub fn find_or_suggest(query: &str) -> Result<Vec<&'static Pattern>, Vec<&'static str>> {
    let found = search(query);
    if !found.is_empty() {
        return Ok(found);
    }
    let wanted = plain(query);
    let mut near: Vec<(usize, &'static str)> = all()
        .flat_map(|p| std::iter::once(p.id).chain(p.triggers.iter().copied().flat_map(identifiers)))
        .map(|name| (distance(&wanted, &name.to_lowercase()), name))
        .filter(|(d, name)| *d <= 1 + name.len() / 4)
        .collect();
    near.sort_unstable();
    near.dedup();
    Err(near.into_iter().map(|(_, name)| name).take(5).collect())
}

/// Names in an expression that are long enough to be mistyped recognisably.
fn identifiers(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|n| n.len() > 2)
}

/// Levenshtein distance, one row at a time.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(ca != *cb)).min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::by_id;

    fn printed(f: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        f(&mut out).expect("writing to memory");
        String::from_utf8(out).expect("text")
    }

    fn page(id: &str, style: Style) -> String {
        let pattern = by_id(id).expect("a known id");
        printed(|out| show(pattern, out, style))
    }

    #[test]
    fn one_entry_has_all_its_parts() {
        let text = page("C03", Style { color: false, width: 80 });
        for part in [
            "C03",
            "Device movement",
            "false (upload)",
            "cuStreamSynchronize",
            "  - loader",
            "  + loader",
            "mind",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(!text.contains('\x1b'));
        assert!(page("C03", Style { color: true, width: 80 }).contains("\x1b["));
    }

    #[test]
    fn prose_keeps_to_the_width() {
        for p in all() {
            for width in [60, 100] {
                let text = page(p.id, Style { color: false, width });
                let too_long = text.lines().find(|l| {
                    let prose = !l.starts_with("  - ") && !l.starts_with("  + ");
                    // A file name longer than the width stands alone.
                    prose && l.len() > width && l.get(INDENT..).is_some_and(|text| text.contains(' '))
                });
                assert_eq!(too_long, None, "{}", p.id);
            }
        }
    }

    #[test]
    fn the_list_has_every_entry_and_the_quick_reference() {
        let text = printed(|out| list(out, Style { color: false, width: 120 }));
        for p in all() {
            assert!(text.contains(p.id) && text.contains(p.title), "{}", p.id);
        }
        assert!(text.starts_with("1. Explicit synchronisation"));
        assert!(text.contains("Quick reference"));
    }

    #[test]
    fn a_slip_of_the_keyboard_gets_a_suggestion() {
        assert!(find_or_suggest("item").is_ok_and(|v| v.len() == 1));
        assert!(find_or_suggest("nonzeroo").err().is_some_and(|s| s.contains(&"nonzero")));
        assert!(find_or_suggest("tolsit").err().is_some_and(|s| s.contains(&"tolist")));
        assert_eq!(find_or_suggest("xyzzyxyzzy").err(), Some(Vec::new()));
    }
}
