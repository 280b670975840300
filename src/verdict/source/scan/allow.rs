//! Comments that allow a line to wait: `# sync-report: allow REASON`, on the line or on a line of its own above.

use crate::model::Frame;
use crate::python::parse::{Source, SourceTree, last};
use crate::verdict::source::locate::line::statement_at;
use ruff_text_size::Ranged;

/// The words after the `#`. Blanks and a reason follow; without a reason the comment allows nothing.
const MARK: &str = "sync-report: allow";

pub fn allowance(file: &Source, lines: impl IntoIterator<Item = u32>) -> Option<String> {
    let above = |line: u32| file.line_text(line.saturating_sub(1));
    lines.into_iter().find_map(|line| {
        let own = Some(above(line)).filter(|text| text.starts_with('#'));
        reason(file.line_text(line)).or_else(|| reason(own?)).map(str::to_owned)
    })
}

/// Looks at the recorded line, and at the line where its statement begins.
pub fn allowed(tree: &SourceTree, recorded: &str, line: u32) -> Option<String> {
    let file = tree.open(recorded)?;
    if !file.whole().contains(MARK) {
        return None;
    }
    let frame = Frame { function: String::new(), file: recorded.to_owned(), line, user: true };
    let statement = statement_at(&file, &frame);
    let first = statement.as_deref().and_then(last).map(|node| file.line_of(node.start()));
    allowance(&file, [line, first.unwrap_or(line)])
}

/// The reason ends where another comment begins.
fn reason(line: &str) -> Option<&str> {
    let said = line.split('#').skip(1).find_map(|comment| comment.trim_start().strip_prefix(MARK))?;
    let said = said.strip_prefix(':').unwrap_or(said);
    Some(said.trim()).filter(|reason| said.starts_with(char::is_whitespace) && !reason.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_allows_with_a_reason() {
        for (line, expected) in [
            ("x.item()  # sync-report: allow shown once a day", Some("shown once a day")),
            ("x.item()  # noqa  # sync-report: allow: asked for  # fmt: skip", Some("asked for")),
            ("# sync-report: allow the reader waits", Some("the reader waits")),
            ("x.item()  # sync-report: allow", None),
            ("x.item()  # sync-report: allowed", None),
            ("sync-report: allow this", None),
        ] {
            assert_eq!(reason(line), expected, "{line}");
        }
    }
}
