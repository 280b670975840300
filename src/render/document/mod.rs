//! A document: the blocks of everything that people read, before it is a terminal's, Markdown's or a page's.
//!
//! ```text
//!  a result tree ─▶ its document ─┬▶ terminal   wraps, aligns and colours for a width, or a line per row for a pipe
//!                                 └▶ markdown   in the size of a comment: what does not fit is counted
//! ```
//! Each backend escapes texts for its format: they may quote names of an export.

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

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Span {
    pub text: String,
    pub tone: Option<Tone>,
    /// A name, a path, a command.
    pub code: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Words(pub Vec<Span>);

impl Words {
    pub(crate) fn toned(tone: Tone, text: impl Into<String>) -> Self {
        Self(vec![Span { text: text.into(), tone: Some(tone), code: false }])
    }

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

    fn plain(&self) -> String {
        self.0.iter().map(|span| escape_terminal(&span.text)).collect()
    }

    /// A line of code: tabs become blanks.
    fn untabbed(&self) -> String {
        self.0.iter().map(|span| escape_terminal(&span.text.replace('\t', "    ")).into_owned()).collect()
    }

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

/// A fact without a label is a sentence of its own. An empty label continues the fact before.
pub(crate) type Fact = (Option<String>, Words);

pub(crate) enum Block {
    /// The document's statement, in a line.
    Heading(Words),
    Section(String, Vec<Block>),
    Paragraph(Words),
    /// Sentences, each on a line of its own.
    Lines(Vec<Words>),
    Facts(Vec<Fact>),
    /// As `Facts`, but never wrapped: to be copied and found.
    Values(Vec<Fact>),
    /// Lines that stay whole, for a log.
    List(Vec<Words>),
    Table(Table),
    /// A language, and lines of code or of a drawing that are never wrapped.
    Code(&'static str, Vec<Words>),
    /// A limit of the result, and the command that mends it, which may be empty.
    Warning(Words, String),
    /// Read on demand.
    Notes(Vec<Words>),
    /// A summary line, and the parts that a reader opens.
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

    /// Labels may be empty.
    pub(crate) fn facts<L: Into<String>, W: Into<Words>>(pairs: impl IntoIterator<Item = (L, W)>) -> Self {
        Self::Facts(facts(pairs))
    }

    pub(crate) fn values<L: Into<String>, W: Into<Words>>(pairs: impl IntoIterator<Item = (L, W)>) -> Self {
        Self::Values(facts(pairs))
    }

    pub(crate) fn code(language: &'static str, text: &str) -> Self {
        Self::Code(language, text.lines().map(Words::from).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Heading(words) | Self::Paragraph(words) | Self::Warning(words, _) => words.is_empty(),
            Self::Section(_, parts) | Self::Fold(_, parts) => parts.iter().all(Self::is_empty),
            // A suggestion without lines deletes the lines it replaces.
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
