//! A document for a terminal or a pipe.

use super::columns;
use super::{Block, Fact, Words};
use crate::render::style::{GAP, Style, Tone};
use crate::text::{self, escape_terminal};

const INDENT: usize = 2;

/// Ends in no line break.
pub(crate) fn text(blocks: &[Block], style: &Style) -> String {
    style.finish(&all(blocks, style, Tone::Strong))
}

/// Blocks as marked text; all labels share a column.
fn all(blocks: &[Block], style: &Style, title: Tone) -> String {
    let facts = blocks.iter().flat_map(|block| match block {
        Block::Facts(facts) | Block::Values(facts) => &facts[..],
        _ => &[],
    });
    let labels = facts.filter_map(|(label, _)| label.as_deref());
    let column = labels.map(|label| text::width(&escape_terminal(label))).max().unwrap_or(0) + GAP;
    let mut out = String::new();
    let mut before: Option<&Block> = None;
    for block in blocks.iter().filter(|block| !block.is_empty()) {
        let close = matches!((before, block), (Some(Block::Warning(..)), Block::Warning(..)));
        if before.is_some() {
            out += if close { "\n" } else { "\n\n" };
        }
        out += &one(block, style, title, column);
        before = Some(block);
    }
    out
}

fn one(block: &Block, style: &Style, title: Tone, column: usize) -> String {
    let wrapped = |lines: &[Words]| -> Vec<String> {
        lines.iter().map(|words| style.hang("", &words.marked())).collect()
    };
    let whole = |lines: &[Words]| lines.iter().map(Words::marked).collect::<Vec<_>>().join("\n");
    match block {
        Block::Heading(words) => strong(words, style),
        Block::Section(name, parts) => section(&escape_terminal(name), parts, style, title),
        Block::Fold(words, parts) => section(&words.marked(), parts, style, title),
        Block::Paragraph(words) => style.hang("", &words.marked()),
        Block::Lines(lines) => wrapped(lines).join("\n"),
        Block::Notes(notes) => {
            let notes = notes.iter().map(|words| painted(&words.marked(), style, Tone::Faint));
            notes.collect::<Vec<_>>().join("\n")
        }
        Block::Facts(facts) => labelled(facts, style, column),
        Block::Values(facts) => labelled(facts, &Style { width: None, ..*style }, column),
        Block::List(lines) | Block::Code(_, lines) => whole(lines),
        Block::Table(table) => columns::set(table, style),
        Block::Warning(words, command) => {
            let said = style.hang(&format!("{} ", Tone::Unsure.paint("!")), &words.marked());
            // A command has a line of its own, never wrapped, to be copied.
            let command = (!command.is_empty()).then(|| format!("\n    {}", escape_terminal(command)));
            said + &command.unwrap_or_default()
        }
    }
}

/// Bold, unless a part has a tone of its own.
fn strong(words: &Words, style: &Style) -> String {
    if words.0.iter().any(|span| span.tone.is_some()) {
        return style.hang("", &words.marked());
    }
    painted(&words.marked(), style, Tone::Strong)
}

fn painted(words: &str, style: &Style, tone: Tone) -> String {
    style.wrap(words, 0).iter().map(|line| tone.paint(line)).collect::<Vec<_>>().join("\n")
}

fn section(name: &str, parts: &[Block], style: &Style, title: Tone) -> String {
    let inner = Style { width: style.width.map(|width| width.saturating_sub(INDENT)), ..*style };
    let parts = all(parts, &inner, Tone::Faint);
    let lines = parts.lines().map(|line| match line {
        "" => "\n".to_owned(),
        line => format!("\n{:INDENT$}{line}", ""),
    });
    painted(name, style, title) + &lines.collect::<String>()
}

fn labelled(facts: &[Fact], style: &Style, column: usize) -> String {
    let line = |(label, words): &Fact| {
        let words = words.marked();
        let Some(label) = label else { return style.hang("", &words) };
        let label = escape_terminal(label);
        let pad = " ".repeat(column - text::width(&label));
        style.hang(&format!("{}{pad}", Tone::Faint.paint(label)), &words)
    };
    facts.iter().map(line).collect::<Vec<_>>().join("\n")
}
