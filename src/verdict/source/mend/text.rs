//! Edits of calls as text: what is not touched stays as it is written.

use crate::model::edit::{Block, Replacement};
use crate::verdict::source::parse::{Source, nodes};
use ruff_python_ast::{ExprCall, Keyword};
use ruff_text_size::{Ranged, TextRange, TextSize};

/// Replacements, ascending, as whole lines.
///
/// Definition: a line goes where a replacement touches it; lines that follow each other make a block.
pub fn blocks(file: &Source, replacements: &[Replacement]) -> Vec<Block> {
    let text = file.whole();
    let mut blocks: Vec<(Block, Vec<&Replacement>)> = Vec::new();
    for one in replacements {
        // A deletion of whole lines ends where the next one begins.
        let whole = one.end > one.start && text[..one.end as usize].ends_with('\n');
        let first = file.line_of(one.start.into());
        let last = file.line_of((one.end - u32::from(whole)).into());
        match blocks.last_mut().filter(|(block, _)| first <= block.last + 1) {
            Some((block, all)) => {
                block.last = block.last.max(last);
                all.push(one);
            }
            None => blocks.push((Block { first, last, text: String::new() }, vec![one])),
        }
    }
    let written = |(block, all): (Block, Vec<&Replacement>)| {
        let from = file.line_range(block.first)?.start().to_usize();
        let last = file.line_range(block.last)?.end().to_usize();
        let to = text[last..].find('\n').map_or(text.len(), |at| last + at + 1);
        let (mut after, mut at) = (String::new(), from);
        for one in all {
            after += text.get(at..one.start as usize)?;
            after += &one.text;
            at = one.end as usize;
        }
        after += text.get(at..to)?;
        Some(Block { text: after, ..block })
    };
    blocks.into_iter().filter_map(written).collect()
}

/// What stands before and behind a statement on its lines, with the line break, and where the first of them begins.
pub fn beside(file: &Source, stmt: TextRange) -> (&str, &str, TextSize) {
    let text = file.whole();
    let (start, end) = (stmt.start().to_usize(), stmt.end().to_usize());
    let from = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let to = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
    (&text[from..start], &text[end..to], TextSize::of(&text[..from]))
}

/// Whether a statement has its lines for itself, but for a comment, by what stands [`beside`] it.
pub fn is_alone(before: &str, rest: &str) -> bool {
    let rest = rest.trim();
    before.trim().is_empty() && (rest.is_empty() || rest.starts_with('#'))
}

/// How the lines of a file end.
pub fn line_break(file: &Source) -> &'static str {
    if file.whole().contains("\r\n") { "\r\n" } else { "\n" }
}

/// Text in place of a range.
pub fn replace(range: TextRange, text: impl Into<String>) -> Replacement {
    Replacement { start: range.start().to_u32(), end: range.end().to_u32(), text: text.into() }
}

/// Text at a place.
pub fn insert(at: TextSize, text: impl Into<String>) -> Replacement {
    replace(TextRange::empty(at), text)
}

/// The place of the closing bracket of a call.
fn closing(call: &ExprCall) -> TextSize {
    call.arguments.range.end() - TextSize::from(1)
}

/// One more argument at the end of a call. `None` where a comment stands in the way, or `**` may bring one of that name.
///
/// ```text
/// f()           f(new)
/// f(a, b)       f(a, b, new)
/// f(            f(
///     a,            a, new,
/// )             )
/// ```
pub fn with_argument(file: &Source, call: &ExprCall, new: &str) -> Option<Replacement> {
    if call.arguments.keywords.iter().any(|keyword| keyword.arg.is_none()) {
        return None;
    }
    let last = nodes::given(call).map(Ranged::end).max();
    let rest = file.slice(TextRange::new(last.unwrap_or(call.arguments.start()), closing(call)));
    if rest.contains('#') {
        return None;
    }
    let Some(last) = last else { return Some(insert(closing(call), new)) };
    // Behind the brackets that the argument itself stands in.
    let end = rest.find(',').unwrap_or(rest.trim_end().len());
    Some(insert(last + TextSize::of(&rest[..end]), format!(", {new}")))
}

/// A call without one of its keywords. `None` where a comment stands in the way.
pub fn without(file: &Source, call: &ExprCall, keyword: &Keyword) -> Option<Replacement> {
    let before = file.slice(TextRange::new(call.arguments.start(), keyword.start()));
    let trimmed = before.trim_end();
    let range = if let Some(rest) = trimmed.strip_suffix(',') {
        let comma = call.arguments.start() + TextSize::of(rest);
        TextRange::new(comma, keyword.end())
    } else if trimmed == "(" {
        let after = file.slice(TextRange::new(keyword.end(), closing(call)));
        let rest = after.trim_start().strip_prefix(',').map_or("", str::trim_start);
        TextRange::new(keyword.start(), keyword.end() + TextSize::of(&after[..after.len() - rest.len()]))
    } else {
        return None;
    };
    (!file.slice(range).contains('#')).then(|| replace(range, ""))
}

/// A method call taken off its receiver: from the dot on.
pub fn without_method(file: &Source, call: &ExprCall) -> Option<Replacement> {
    let method = call.func.as_attribute_expr()?;
    let between = file.slice(TextRange::new(method.value.end(), method.attr.start()));
    let dot = between.rfind('.').filter(|_| !between.contains('#'))?;
    Some(replace(TextRange::new(method.value.end() + TextSize::of(&between[..dot]), call.end()), ""))
}
