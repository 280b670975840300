//! Colours for one line of Python: keywords, strings, comments, numbers. Just enough for the examples.

use anstyle::{AnsiColor, Style};

const KEYWORDS: [&str; 28] = [
    "and", "as", "assert", "break", "class", "continue", "def", "del", "elif", "else", "except", "False",
    "for", "from", "if", "import", "in", "is", "lambda", "None", "not", "or", "pass", "raise", "return",
    "True", "while", "with",
];

/// Pieces of a line of Python with the style of each; together they are the line.
pub(super) fn python(line: &str) -> Vec<(Style, &str)> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let (style, length) = piece(first, rest);
        let (text, tail) = rest.split_at(length);
        pieces.push((style, text));
        rest = tail;
    }
    pieces
}

/// Style and length in bytes of the piece that `rest` begins with.
fn piece(first: char, rest: &str) -> (Style, usize) {
    let colour = |c: AnsiColor| c.on_default();
    match first {
        '#' => (colour(AnsiColor::BrightBlack), rest.len()),
        '\'' | '"' => (colour(AnsiColor::Yellow), string_length(first, rest)),
        c if c.is_ascii_digit() => {
            (colour(AnsiColor::Cyan), span(rest, |c| c.is_alphanumeric() || "._".contains(c)))
        }
        c if is_name(c) => {
            let length = span(rest, is_name);
            let keyword = KEYWORDS.contains(&&rest[..length]);
            (if keyword { colour(AnsiColor::Magenta) } else { Style::new() }, length)
        }
        _ => (Style::new(), span(rest, |c| !is_name(c) && !"#'\"".contains(c))),
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn span(text: &str, inside: impl Fn(char) -> bool) -> usize {
    text.find(|c| !inside(c)).unwrap_or(text.len())
}

/// Up to and with the closing quote, or the whole rest where there is none.
fn string_length(quote: char, text: &str) -> usize {
    text[1..].find(quote).map_or(text.len(), |i| i + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_up_the_line() {
        for p in crate::catalogue::all() {
            for line in p.fix.before.lines().chain(p.fix.after.lines()) {
                assert_eq!(python(line).iter().map(|(_, t)| *t).collect::<String>(), line);
            }
        }
    }

    #[test]
    fn keywords_strings_numbers_comments() {
        let coloured: Vec<_> = python("if x1 == 'a#b': y = 1e-3  # why")
            .into_iter()
            .filter(|(s, _)| *s != Style::new())
            .collect();
        let texts: Vec<_> = coloured.iter().map(|(_, t)| *t).collect();
        assert_eq!(texts, ["if", "'a#b'", "1e", "3", "# why"]);
        assert_eq!(python("x = 'open").last().map(|(_, t)| *t), Some("'open"));
    }
}
