//! A document: the blocks of which everything that people read is made, before it is a terminal's, Markdown's or a page's.
//!
//! ```text
//!  a result tree ─▶ its document ─┬▶ terminal   wraps, aligns and colours for a width, or a line per row for a pipe
//!                                 └▶ markdown   in the size of a comment: what does not fit is counted
//! ```
//! Texts may quote names of an export: each backend escapes them for its format.

mod columns;
pub(crate) mod markdown;
mod table;
pub(crate) mod terminal;
#[cfg(test)]
mod tests;

pub(crate) use table::{Cell, Column, Place, Table};

use super::style::{Style, Tone};
use crate::text::escape_terminal;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// A piece of text that is printed in one way.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Span {
    pub text: String,
    pub tone: Option<Tone>,
    /// Whether it is code: a name, a path, a command.
    pub code: bool,
}

/// A sentence or a label.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Words(pub Vec<Span>);

impl Words {
    /// Text in a tone.
    pub(crate) fn toned(tone: Tone, text: impl Into<String>) -> Self {
        Self(vec![Span { text: text.into(), tone: Some(tone), code: false }])
    }

    /// A name, a path or a command.
    pub(crate) fn code(text: impl Into<String>) -> Self {
        Self(vec![Span { text: text.into(), tone: None, code: true }])
    }

    pub(crate) fn then(mut self, more: impl Into<Words>) -> Self {
        self.0.extend(more.into().0);
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|span| span.text.is_empty())
    }

    /// Without tones.
    fn plain(&self) -> String {
        self.0.iter().map(|span| escape_terminal(&span.text)).collect()
    }

    /// A line of code: without tones, tabs as blanks.
    fn untabbed(&self) -> String {
        self.0.iter().map(|span| escape_terminal(&span.text.replace('\t', "    ")).into_owned()).collect()
    }

    /// For a terminal, with the marks of its tones.
    fn marked(&self) -> String {
        let span = |span: &Span| {
            let text = escape_terminal(&span.text);
            span.tone.map_or_else(|| text.to_string(), |tone| tone.paint(&text))
        };
        self.0.iter().map(span).collect()
    }
}

impl<T: Into<String>> From<T> for Words {
    fn from(text: T) -> Self {
        Self(vec![Span { text: text.into(), tone: None, code: false }])
    }
}

/// A label, or none for a sentence of its own, and a text. An empty label goes on with the one before.
pub(crate) type Fact = (Option<String>, Words);

/// A part of a document.
pub(crate) enum Block {
    /// What the document says, in a line.
    Heading(Words),
    /// A title and its parts.
    Section(String, Vec<Block>),
    Paragraph(Words),
    /// Sentences, each on a line of its own.
    Lines(Vec<Words>),
    /// Labels and texts.
    Facts(Vec<Fact>),
    /// The same, but never wrapped: to be copied and found.
    Values(Vec<Fact>),
    /// Lines that stay whole, for a log.
    List(Vec<Words>),
    Table(Table),
    /// Lines of code or of a drawing: the language, and lines that are never wrapped.
    Code(&'static str, Vec<Words>),
    /// What limits the result, and the command that mends it, which may be empty.
    Warning(Words, String),
    /// Read on demand.
    Notes(Vec<Words>),
    /// What a reader opens: a line that stands for it, and the parts.
    Fold(Words, Vec<Block>),
}

impl Block {
    pub(crate) fn section(title: impl Into<String>, parts: impl IntoIterator<Item = Block>) -> Self {
        Self::Section(title.into(), parts.into_iter().collect())
    }

    pub(crate) fn lines<W: Into<Words>>(lines: impl IntoIterator<Item = W>) -> Self {
        Self::Lines(lines.into_iter().map(Into::into).collect())
    }

    pub(crate) fn notes<W: Into<Words>>(notes: impl IntoIterator<Item = W>) -> Self {
        Self::Notes(notes.into_iter().map(Into::into).collect())
    }

    /// Labels, which may be empty, and texts.
    pub(crate) fn facts<L: Into<String>, W: Into<Words>>(pairs: impl IntoIterator<Item = (L, W)>) -> Self {
        Self::Facts(facts(pairs))
    }

    pub(crate) fn values<L: Into<String>, W: Into<Words>>(pairs: impl IntoIterator<Item = (L, W)>) -> Self {
        Self::Values(facts(pairs))
    }

    /// Text as code, line by line.
    pub(crate) fn code(language: &'static str, text: &str) -> Self {
        Self::Code(language, text.lines().map(Words::from).collect())
    }

    /// Whether nothing of it would be printed.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Heading(words) | Self::Paragraph(words) | Self::Warning(words, _) => words.is_empty(),
            Self::Section(_, parts) | Self::Fold(_, parts) => parts.iter().all(Self::is_empty),
            // No line in place of another deletes it.
            Self::Code("suggestion", _) => false,
            Self::Lines(lines) | Self::List(lines) | Self::Code(_, lines) | Self::Notes(lines) => {
                lines.is_empty()
            }
            Self::Facts(facts) | Self::Values(facts) => facts.is_empty(),
            Self::Table(table) => table.rows() == 0,
        }
    }
}

/// A page gets `{section, parts}`, `{facts}`, `{code, language}`, else `{lines}`.
impl Serialize for Block {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Section(title, parts) => {
                map.serialize_entry("section", &escape_terminal(title))?;
                let parts: Vec<&Block> = parts.iter().filter(|part| !part.is_empty()).collect();
                map.serialize_entry("parts", &parts)?;
            }
            Self::Facts(facts) | Self::Values(facts) => {
                let pair = |(label, words): &Fact| {
                    let label = label.as_deref().map(escape_terminal).unwrap_or_default().into_owned();
                    (label, words.plain())
                };
                map.serialize_entry("facts", &facts.iter().map(pair).collect::<Vec<_>>())?;
            }
            Self::Code(language, lines) => {
                let lines: Vec<String> = lines.iter().map(Words::untabbed).collect();
                map.serialize_entry("code", &lines.join("\n"))?;
                map.serialize_entry("language", language)?;
            }
            Self::Lines(lines) => {
                map.serialize_entry("lines", &lines.iter().map(Words::plain).collect::<Vec<_>>())?;
            }
            block => {
                let text = terminal::text(std::slice::from_ref(block), &Style::default());
                map.serialize_entry("lines", &[text])?;
            }
        }
        map.end()
    }
}

fn facts<L: Into<String>, W: Into<Words>>(pairs: impl IntoIterator<Item = (L, W)>) -> Vec<Fact> {
    pairs.into_iter().map(|(label, words)| (Some(label.into()), words.into())).collect()
}
