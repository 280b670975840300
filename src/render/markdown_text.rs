//! Markdown that hostile names cannot break out of, and that fits into a comment.

use crate::text::escape_terminal;

/// GitHub's limit for a comment (65,536 characters), less a reserve: GitHub may count differently.
pub const COMMENT: usize = 65_000;

/// A name as a code span: nothing in it is markup, a mention or a link.
pub fn code(name: &str) -> String {
    let name = escape_terminal(name);
    if name.trim().is_empty() {
        return String::new();
    }
    let fence = "`".repeat(longest_run(&name) + 1);
    let pad = if name.starts_with('`') || name.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{name}{pad}{fence}")
}

/// [`code`] inside a table, where a bar would end the cell even in code. Backslashes before a bar are
/// doubled: an even number would leave the bar unescaped.
pub fn code_cell(name: &str) -> String {
    let mut out = String::new();
    let mut slashes = 0;
    for c in code(name).chars() {
        match c {
            '\\' => slashes += 1,
            '|' => {
                out.push_str(&"\\".repeat(slashes + 1));
                slashes = 0;
            }
            _ => slashes = 0,
        }
        out.push(c);
    }
    out
}

pub fn plain(sentence: &str) -> String {
    let mut out = String::new();
    let sentence = escape_terminal(sentence);
    let mut rest = sentence.chars().peekable();
    while let Some(c) = rest.next() {
        out.push_str(match c {
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '|' | '~' | '&' => "\\",
            // No link.
            ':' if rest.peek() == Some(&'/') => "\\",
            _ => "",
        });
        out.push(c);
        // GitHub looks for mentions in the rendered text: only a tag separates sign and name.
        if c == '@' || (c == '#' && rest.peek().is_some_and(char::is_ascii_digit)) {
            out.push_str("<!-- -->");
        }
    }
    out
}

/// Text inside an HTML tag.
pub fn html(text: &str) -> String {
    const SIGNS: [(char, &str); 5] =
        [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;"), ('\'', "&#39;")];
    let text = escape_terminal(text).into_owned();
    SIGNS.iter().fold(text, |text, (sign, written)| text.replace(*sign, written))
}

pub fn block(language: &str, lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|l| escape_terminal(l).into_owned() + "\n").collect();
    fenced(language, &lines.concat())
}

/// Whole lines that replace the lines under a review comment; an empty text deletes them.
pub fn suggestion(lines: &str) -> String {
    let end = if lines.is_empty() || lines.ends_with('\n') { "" } else { "\n" };
    fenced("suggestion", &format!("{lines}{end}"))
}

fn fenced(language: &str, lines: &str) -> String {
    let fence = "`".repeat(longest_run(lines).max(2) + 1);
    format!("{fence}{language}\n{lines}{fence}\n")
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Cells are escaped already.
pub fn row(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// `>` in front of a title aligns its column to the right.
pub fn header(titles: &[impl AsRef<str>]) -> String {
    let titles = || titles.iter().map(|title| title.as_ref());
    let names = titles().map(|title| title.trim_start_matches('>').to_owned());
    let rules = titles().map(|title| if title.starts_with('>') { "---:" } else { "---" }.to_owned());
    row(&names.collect::<Vec<_>>()) + &row(&rules.collect::<Vec<_>>())
}

/// Text that grows piece by piece up to a limit, and then only counts what did not fit.
pub struct Limited {
    text: String,
    left: usize,
}

impl Limited {
    /// `reserve` characters stay free for [`Limited::close`].
    pub fn new(limit: usize, reserve: usize) -> Self {
        Self { text: String::new(), left: limit.saturating_sub(reserve) }
    }

    /// Adds a piece whole, or not at all.
    pub fn add(&mut self, piece: &str) -> bool {
        let length = piece.chars().count();
        let fits = length <= self.left;
        if fits {
            self.text.push_str(piece);
            self.left -= length;
        }
        fits
    }

    /// Adds pieces until one does not fit; returns how many are left out.
    pub fn add_all(&mut self, pieces: &[String]) -> usize {
        let added = pieces.iter().take_while(|piece| self.add(piece)).count();
        pieces.len() - added
    }

    /// Adds as many pieces as fit between two ends; without room for both ends, nothing. Returns how many are left out.
    pub fn section(&mut self, open: &str, pieces: &[String], close: &str) -> usize {
        let end = close.chars().count();
        if open.chars().count() + end > self.left {
            return pieces.len();
        }
        self.left -= end;
        self.add(open);
        let left = self.add_all(pieces);
        self.text.push_str(close);
        left
    }

    pub fn close(mut self, last: &str) -> String {
        self.text.push_str(last);
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_keeps_backticks_inside() {
        assert_eq!(code("a"), "`a`");
        assert_eq!(code("`a``b"), "``` `a``b ```");
        assert_eq!(code("a\nb"), "`a\\nb`");
        assert_eq!(code(" "), "");
    }

    /// Counts cells as GitHub does: a bar after an odd number of backslashes ends none.
    fn cells(row: &str) -> usize {
        let (mut cells, mut slashes) = (0, 0);
        for c in row.chars() {
            cells += usize::from(c == '|' && slashes % 2 == 0);
            slashes = if c == '\\' { slashes + 1 } else { 0 };
        }
        cells - 1
    }

    #[test]
    fn bars_stay_in_their_cell() {
        for name in ["a|b", "a\\|b", "a\\\\|b", "|", "\\", "`|`", "a\\\\\\|||\\"] {
            assert_eq!(cells(&row(&[code_cell(name), code_cell("x")])), 2, "{name}");
            assert_eq!(cells(&row(&[plain(name), plain("x")])), 2, "{name}");
        }
    }

    #[test]
    fn sentences_hold_no_markup() {
        let said =
            plain("<img src=x onerror=alert(1)> @ada [a](javascript:b) **x** ![i](u) a|b https://x #12");
        // A character after a backslash is literal.
        let mut bare = String::new();
        let mut rest = said.chars();
        while let Some(c) = rest.next() {
            bare.extend(if c == '\\' { rest.next().map(|_| ' ') } else { Some(c) });
        }
        for sign in ["<img", "@ada", "[a]", "](", "**", "![", " a|b", "https:", "#12"] {
            assert!(!bare.contains(sign), "{sign} in {said}");
        }
        assert_eq!(html("<b>\"&'"), "&lt;b&gt;&quot;&amp;&#39;");
    }

    #[test]
    fn blocks_end_where_they_should() {
        assert_eq!(block("", &["```".into(), "x".into()]), "````\n```\nx\n````\n");
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let mut text = Limited::new(18, 4);
        assert!(text.add("1234"));
        assert_eq!(text.add_all(&["12".into(), "12345678901".into(), "1".into()]), 2);
        assert_eq!(text.section("<", &["a".into(), "b".into(), "123456".into()], "/>"), 1);
        assert_eq!(text.section("<<<", &["a".into()], "/>"), 1, "no room for its ends");
        assert_eq!(text.close("wxyz"), "123412<ab/>wxyz");
    }
}
