//! How a report for people is printed: its width and its colours.
//!
//! Cells are measured, cut and aligned before they are coloured, and escape codes would spoil the measuring.
//! So text carries *marks* while it is laid out: characters without width, which [`escape_terminal`] keeps out
//! of every name of an export. `Style::finish` turns them into escape codes, or into nothing.
//!
//! [`escape_terminal`]: crate::text::escape_terminal

use crate::model::Class;
use crate::text;
use anstyle::{AnsiColor, Effects};

/// Blanks between two columns.
pub(crate) const GAP: usize = 2;

#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// Columns of the terminal; `None` for a pipe: nothing is wrapped or cut, one line per site.
    pub width: Option<usize>,
    /// Decided once, by the command line.
    pub color: bool,
}

/// What a piece of text means, which decides how it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Avoidable,
    Unsure,
    Needed,
    Faint,
    /// Titles, and the frames of the user.
    Strong,
}

const TONES: [Tone; 5] = [Tone::Avoidable, Tone::Unsure, Tone::Needed, Tone::Faint, Tone::Strong];

/// Deprecated format characters of Unicode: no width, no legitimate use.
const MARKS: [char; 5] = ['\u{206a}', '\u{206b}', '\u{206c}', '\u{206d}', '\u{206e}'];
const END: char = '\u{206f}';

impl Tone {
    pub(crate) const fn of(class: Class) -> Self {
        match class {
            Class::False => Tone::Avoidable,
            Class::Unknown => Tone::Unsure,
            Class::True => Tone::Needed,
        }
    }

    /// `text` marked to be printed in this tone. It must not be wrapped afterwards.
    pub(crate) fn paint(self, text: impl AsRef<str>) -> String {
        let text = text.as_ref();
        if text.is_empty() {
            return String::new();
        }
        format!("{}{text}{END}", MARKS[self as usize])
    }

    const fn ansi(self) -> anstyle::Style {
        let plain = anstyle::Style::new();
        match self {
            Tone::Avoidable => AnsiColor::Red.on_default(),
            Tone::Unsure => AnsiColor::Yellow.on_default(),
            Tone::Needed => AnsiColor::Green.on_default().effects(Effects::DIMMED),
            Tone::Faint => plain.effects(Effects::DIMMED),
            Tone::Strong => plain.effects(Effects::BOLD),
        }
    }
}

impl Style {
    /// Turns the marks of `text` into escape codes, or removes them.
    pub(crate) fn finish(&self, text: &str) -> String {
        let mut open = anstyle::Style::new();
        let mut out = String::with_capacity(text.len());
        for character in text.chars() {
            match MARKS.iter().position(|&mark| mark == character) {
                Some(_) if !self.color => {}
                Some(tone) => {
                    open = TONES[tone].ansi();
                    out += &open.render().to_string();
                }
                None if character != END => out.push(character),
                None if self.color => out += &open.render_reset().to_string(),
                None => {}
            }
        }
        out
    }
}

/// Least columns of a text, however deep its indent.
const LEAST: usize = 20;

/// A pipe gets one line for each text.
impl Style {
    /// `words` in lines that fit beside an indent.
    pub(crate) fn wrap(&self, words: &str, indent: usize) -> Vec<String> {
        match self.width {
            Some(width) => text::wrap(words, width.saturating_sub(indent).max(LEAST)),
            None => vec![words.to_owned()],
        }
    }

    /// `words` behind a lead; later lines are indented as deep.
    pub fn hang(&self, lead: &str, words: &str) -> String {
        let indent = text::width(lead);
        format!("{lead}{}", self.wrap(words, indent).join(&format!("\n{:indent$}", "")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{escape_terminal, width};

    #[test]
    fn marks_have_no_width_and_become_codes() {
        let text = format!("a {} b", Tone::Avoidable.paint("red"));
        assert_eq!(width(&text), "a red b".len());
        assert_eq!(Style::default().finish(&text), "a red b");
        let colored = Style { width: None, color: true }.finish(&text);
        assert_eq!(colored, "a \u{1b}[31mred\u{1b}[0m b");
    }

    #[test]
    fn tones_are_in_the_order_of_their_marks() {
        for (index, tone) in TONES.into_iter().enumerate() {
            assert_eq!(tone as usize, index);
        }
    }

    #[test]
    fn names_cannot_forge_marks() {
        for mark in MARKS.into_iter().chain([END]) {
            assert!(escape_terminal(&mark.to_string()).is_ascii());
        }
    }
}
