//! A document as Markdown, in the size of a comment: what does not fit is left out and counted.

use super::table::{Cell, Holds, Table};
use super::{Block, Fact, Span, Words};
use crate::render::markdown_text::{self as md, Limited};
use crate::render::style::Tone;
use crate::text::counted;

/// Characters kept free for the sentence on what is left out.
const RESERVE: usize = 300;

/// The document in at most `limit` characters. Rows and folded parts are left out where they do not fit;
/// notes at the end always stay.
pub(crate) fn text(blocks: &[Block], limit: usize) -> String {
    let (blocks, last) = match blocks {
        [blocks @ .., Block::Notes(notes)] => (blocks, self::notes(notes)),
        blocks => (blocks, String::new()),
    };
    let mut page = Page {
        text: Limited::new(limit, RESERVE + last.chars().count()),
        rows: None,
        folds: 0,
        noun: "part",
    };
    blocks.iter().filter(|block| !block.is_empty()).for_each(|block| page.add(block));
    let left = page.left_out().map(|words| words + "\n\n").unwrap_or_default();
    page.text.close(&(left + &last)).trim_end().to_owned() + "\n"
}

struct Page {
    text: Limited,
    /// Rows left out, and their noun.
    rows: Option<(usize, &'static str)>,
    /// Folded parts that are left out.
    folds: usize,
    /// Their noun: "site".
    noun: &'static str,
}

impl Page {
    fn add(&mut self, block: &Block) {
        match block {
            Block::Table(table) => self.table(table, "", "\n"),
            Block::Fold(words, parts) if let [Block::Table(table)] = &parts[..] => {
                self.table(table, &opened(words), "\n</details>\n\n");
            }
            block => {
                let left = !self.text.add(&written(block, 0));
                self.folds += usize::from(left && matches!(block, Block::Fold(..)));
            }
        }
    }

    fn table(&mut self, table: &Table, open: &str, close: &str) {
        let [head, rows @ ..] = &self::rows(table)[..] else { return };
        self.noun = table.noun;
        let left = self.text.section(&format!("{open}{head}"), rows, close);
        if left > 0 {
            self.rows = Some((self.rows.map_or(0, |(rows, _)| rows) + left, table.noun));
        }
    }

    /// "3 more sites not listed, details of 7 left out: there is no more room; `--format json` has all."
    fn left_out(&self) -> Option<String> {
        let rows = self
            .rows
            .map(|(rows, noun)| format!("{} not listed", counted(rows as u64, &format!("more {noun}"))));
        let folds = (self.folds > 0)
            .then(|| format!("details of {} left out", counted(self.folds as u64, self.noun)));
        let both: Vec<String> = [rows, folds].into_iter().flatten().collect();
        let why = "there is no more room; `--format json` has all";
        (!both.is_empty()).then(|| format!("{}: {why}.", both.join(", ")))
    }
}

fn written(block: &Block, depth: usize) -> String {
    if block.is_empty() {
        return String::new();
    }
    let ended = |text: String| text + "\n\n";
    match block {
        Block::Heading(words) => ended(format!("### {}{}", outcome(words), plain(words))),
        Block::Section(title, parts) => {
            let title = if depth == 0 { format!("#### {}", md::plain(title)) } else { md::plain(title) };
            ended(title) + &parts.iter().map(|part| written(part, depth + 1)).collect::<String>()
        }
        Block::Fold(words, parts) => {
            let parts: String = parts.iter().map(|part| written(part, depth + 1)).collect();
            format!("{}{parts}</details>\n\n", opened(words))
        }
        Block::Paragraph(words) => ended(plain(words)),
        Block::Lines(lines) => lines.iter().map(|words| ended(plain(words))).collect(),
        Block::Facts(facts) | Block::Values(facts) => facts.iter().map(fact).collect::<String>() + "\n",
        Block::List(lines) => {
            lines.iter().map(|words| format!("- {}\n", plain(words))).collect::<String>() + "\n"
        }
        Block::Table(table) => rows(table).concat() + "\n",
        Block::Code("suggestion", lines) => md::suggestion(&bare(lines).join("\n")) + "\n",
        Block::Code(language, lines) => md::block(language, &bare(lines)) + "\n",
        Block::Warning(words, command) => {
            let command = Some(md::code(command)).filter(|code| !code.is_empty());
            let command = command.map(|code| format!("\n>\n> {code}")).unwrap_or_default();
            ended(format!("> ⚠️ {}{command}", plain(words)))
        }
        Block::Notes(notes) => self::notes(notes),
    }
}

fn opened(words: &Words) -> String {
    format!("<details><summary>{}</summary>\n\n", html(words))
}

fn notes(notes: &[Words]) -> String {
    notes.iter().map(|words| format!("<sub>{}</sub>\n\n", plain(words))).collect()
}

fn fact((label, words): &Fact) -> String {
    match label.as_deref() {
        None | Some("") => format!("- {}\n", plain(words)),
        Some(label) => format!("- {}: {}\n", md::plain(label), plain(words)),
    }
}

fn bare(lines: &[Words]) -> Vec<String> {
    lines.iter().map(|words| words.0.iter().map(|span| &*span.text).collect()).collect()
}

fn plain(words: &Words) -> String {
    let span = |Span { text, code, .. }: &Span| if *code { md::code(text) } else { md::plain(text) };
    words.0.iter().map(span).collect()
}

fn html(words: &Words) -> String {
    let span = |Span { text, code, .. }: &Span| {
        let text = md::html(text);
        if *code { format!("<code>{text}</code>") } else { text }
    };
    words.0.iter().map(span).collect()
}

/// The head of a table and its rows. A value below another on a terminal shares its cell.
fn rows(table: &Table) -> Vec<String> {
    let columns = table.filled(u8::MAX);
    let mut titles: Vec<String> = Vec::new();
    let mut over = Holds::Words;
    for &(column, under) in &columns {
        match titles.last_mut().filter(|_| under) {
            // Text below a place needs no title.
            Some(_) if over == Holds::Places || column.title.is_empty() => {}
            Some(title) => *title += &format!("<br>{}", column.title),
            None => {
                over = column.holds;
                titles.push(format!("{}{}", if over == Holds::Numbers { ">" } else { "" }, column.title));
            }
        }
    }
    let mut all = vec![md::header(&titles)];
    for row in 0..table.rows() {
        let mut cells: Vec<String> = Vec::new();
        for &(column, under) in &columns {
            let cell = column.cells.get(row).map(|cell| self::cell(cell, under)).unwrap_or_default();
            match cells.last_mut().filter(|_| under) {
                Some(over) if cell.is_empty() || over.is_empty() => *over += &cell,
                Some(over) => *over += &format!("<br>{cell}"),
                None => cells.push(cell),
            }
        }
        all.push(md::row(&cells));
    }
    all
}

fn cell(cell: &Cell, under: bool) -> String {
    let words = |words: &Words| {
        let sign = words.0.first().and_then(|span| span.tone).filter(|_| !under).map_or("", sign);
        let span = |span: &Span| if span.code { md::code_cell(&span.text) } else { md::plain(&span.text) };
        format!("{sign}{}", words.0.iter().map(span).collect::<String>())
    };
    match cell {
        Cell::Words(one) => words(one),
        Cell::Place(place) => md::code_cell(&place.whole()),
        Cell::Notes(notes) => md::plain(&notes.join(", ")),
        Cell::Stack(stack) => {
            stack.iter().map(words).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("<br>")
        }
    }
}

/// The tone of a heading says whether something passed.
fn outcome(heading: &Words) -> &'static str {
    match heading.0.first().and_then(|span| span.tone) {
        Some(Tone::Needed) => "✅ ",
        Some(Tone::Avoidable) => "❌ ",
        _ => "",
    }
}

const fn sign(tone: Tone) -> &'static str {
    match tone {
        Tone::Avoidable => "🔴 ",
        Tone::Unsure => "🟡 ",
        Tone::Needed => "⚪ ",
        Tone::Faint | Tone::Strong => "",
    }
}
