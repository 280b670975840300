//! Edits of calls as text: the rest stays as written.

use crate::model::edit::{Block, Replacement};
use crate::python::parse::{Source, nodes};
use ruff_python_ast::{ExprCall, Keyword};
use ruff_text_size::{Ranged, TextRange, TextSize};

/// Replacements, ascending, as whole lines.
///
/// Definition: a line that a replacement touches is in a block; consecutive lines make one block.
pub fn blocks(file: &Source, replacements: &[Replacement]) -> Vec<Block> {
    let text = file.whole();
    let mut blocks: Vec<(Block, Vec<&Replacement>)> = Vec::new();
    for one in replacements {
        // A deletion of whole lines ends where the next line begins.
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
        let mut after = apply(&text[..to], &all)?;
        Some(Block { text: after.split_off(from), ..block })
    };
    blocks.into_iter().filter_map(written).collect()
}

/// `None` where the ascending replacements overlap or leave the text.
pub fn apply(before: &str, all: &[&Replacement]) -> Option<String> {
    let (mut after, mut at) = (String::with_capacity(before.len()), 0);
    for one in all {
        let (start, end) = (one.start as usize, one.end as usize);
        after.push_str(before.get(at..start)?);
        after.push_str(&one.text);
        at = end;
    }
    after.push_str(before.get(at..)?);
    Some(after)
}

/// (text before the statement on its lines, text after it with the line break, start of the first line).
pub fn beside(file: &Source, stmt: TextRange) -> (&str, &str, TextSize) {
    let text = file.whole();
    let (start, end) = (stmt.start().to_usize(), stmt.end().to_usize());
    let from = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let to = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
    (&text[from..start], &text[end..to], TextSize::of(&text[..from]))
}

/// Whether a statement has its lines to itself, but for a comment, by the text [`beside`] it.
pub fn is_alone(before: &str, rest: &str) -> bool {
    let rest = rest.trim();
    before.trim().is_empty() && (rest.is_empty() || rest.starts_with('#'))
}

pub fn line_break(file: &Source) -> &'static str {
    if file.whole().contains("\r\n") { "\r\n" } else { "\n" }
}

pub fn replace(range: TextRange, text: impl Into<String>) -> Replacement {
    Replacement { start: range.start().to_u32(), end: range.end().to_u32(), text: text.into() }
}

pub fn insert(at: TextSize, text: impl Into<String>) -> Replacement {
    replace(TextRange::empty(at), text)
}

/// The closing bracket of a call, after all arguments; a file that does not parse may have none.
fn closing(file: &Source, call: &ExprCall) -> Option<TextSize> {
    let bracket = call.arguments.r_paren_range();
    let own = nodes::given(call).all(|one| one.end() <= bracket.start());
    (own && file.slice(bracket) == ")").then(|| bracket.start())
}

/// One more argument at the end of a call. `None` where a comment is in the way, or `**` may bring the same
/// name.
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
    let (last, closing) = (nodes::given(call).map(Ranged::end).max(), closing(file, call)?);
    let rest = file.slice(TextRange::new(last.unwrap_or(call.arguments.start()), closing));
    if rest.contains('#') {
        return None;
    }
    let Some(last) = last else { return Some(insert(closing, new)) };
    // After the brackets around the last argument.
    let end = rest.find(',').unwrap_or(rest.trim_end().len());
    Some(insert(last + TextSize::of(&rest[..end]), format!(", {new}")))
}

/// `None` where a comment is in the way.
pub fn without(file: &Source, call: &ExprCall, keyword: &Keyword) -> Option<Replacement> {
    let before = file.slice(TextRange::new(call.arguments.start(), keyword.start()));
    let trimmed = before.trim_end();
    let range = if let Some(rest) = trimmed.strip_suffix(',') {
        let comma = call.arguments.start() + TextSize::of(rest);
        TextRange::new(comma, keyword.end())
    } else if trimmed == "(" {
        let after = file.slice(TextRange::new(keyword.end(), closing(file, call)?));
        let rest = after.trim_start().strip_prefix(',').map_or("", str::trim_start);
        TextRange::new(keyword.start(), keyword.end() + TextSize::of(&after[..after.len() - rest.len()]))
    } else {
        return None;
    };
    (!file.slice(range).contains('#')).then(|| replace(range, ""))
}

/// Removes a method call from its receiver, from the dot on.
pub fn without_method(file: &Source, call: &ExprCall) -> Option<Replacement> {
    let method = call.func.as_attribute_expr()?;
    let between = file.slice(TextRange::new(method.value.end(), method.attr.start()));
    let dot = between.rfind('.').filter(|_| !between.contains('#'))?;
    Some(replace(TextRange::new(method.value.end() + TextSize::of(&between[..dot]), call.end()), ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that does not parse is read all the same.
    #[test]
    fn calls_without_a_closing_bracket_get_no_argument() {
        for (code, new) in [
            ("f(a)", Some(", n=1")),
            ("f(", None),
            ("f(a", None),
            ("f(g(a)", None),
            ("f(k=1", None),
            ("f(k=g(a)", None),
        ] {
            let file = Source::parse(code.as_bytes().to_vec()).expect("it is read");
            let calls = nodes::calls(&[file.module()], &|_| true);
            let call = nodes::call(&calls[0]).expect("a call");
            let made = with_argument(&file, call, "n=1");
            assert_eq!(made.as_ref().map(|one| &*one.text), new, "{code}");
            assert!(call.arguments.keywords.iter().all(|k| without(&file, call, k).is_none()), "{code}");
        }
    }
}
