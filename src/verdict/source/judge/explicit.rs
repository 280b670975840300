//! Explicit synchronisation (S15): for a clock, for a copied buffer, or for nothing.

use super::barrier::barrier;
use super::guard::guard;
use crate::model::Frame;
use crate::python::facts::{self, Fact};
use crate::python::parse::{Node, Source, nodes, statement};
use crate::rules::grade::{self, Grade};
use crate::verdict::source::infer::Here;
use crate::verdict::source::locate::line;
use crate::verdict::source::mend::is_clock;
use ruff_python_ast::Stmt;
use ruff_python_ast::helpers::is_docstring_stmt;
use ruff_text_size::Ranged;

/// Finds the purpose of the `synchronize()` call at the end of `path`.
///
/// Definition: (b) between a non-blocking D2H copy and the read of its target, the call makes the read valid
/// ([`barrier`]); or it keeps a pinned buffer from being written under its copy ([`guard`]). (a) If a
/// neighbouring statement reads a clock, or a later one asks CUDA events for the time between them, the call
/// measures. (c) Otherwise it only waits. A function that does little else is judged by its caller.
pub fn purpose(here: Here<'_, '_>, caller: Option<(&Source, &Frame)>) -> (Grade, String) {
    let (file, path) = (here.file(), here.path);
    if let Some(text) = barrier(file, path) {
        return (grade::S15_BARRIER, text);
    }
    if let Some(text) = guard(file, path) {
        return (grade::S21, text);
    }
    if let Some(clock) = clock(here, caller) {
        return clock;
    }
    let text = "nothing is copied, no clock is read next to it and no buffer waits for it: the GPU keeps its order without it";
    (grade::S15, text.to_owned())
}

/// The clock next to the statement, or next to the call of a function that does little else.
pub fn clock(here: Here<'_, '_>, caller: Option<(&Source, &Frame)>) -> Option<(Grade, String)> {
    if let Some(text) = timing(here.file(), here.path) {
        return Some((grade::S15_CLOCK, text));
    }
    let (file, frame) = caller.filter(|_| is_wrapper(here.path))?;
    let text = timing(file, &line::statement_at(file, frame)?)?;
    Some((grade::S15_CLOCK, format!("{text}, around the call on line {}", frame.line)))
}

fn is_wrapper(path: &[Node<'_>]) -> bool {
    nodes::function(nodes::function_around(path))
        .is_some_and(|ast| ast.body.iter().filter(|stmt| !is_docstring_stmt(stmt)).count() <= 2)
}

fn timing(file: &Source, path: &[Node<'_>]) -> Option<String> {
    let (block, own) = nodes::place(path)?;
    // Other synchronisations and event records belong to the measurement.
    let transparent = |stmt: &&Stmt| {
        let call = stmt.as_expr_stmt().and_then(|ast| ast.value.as_call_expr());
        call.is_none_or(|call| !facts::name(nodes::name(&call.func)).is(Fact::Order))
    };
    let before = block[..own].iter().rev().find(transparent);
    let own_statement = statement(path)?;
    let mut after = block[own + 1..].iter().chain(after_block(path, own_statement));
    let beside = before.into_iter().chain(after.find(transparent));
    if let Some(clock) = beside.flat_map(nodes::own_calls).find(|call| is_clock(file, call)) {
        let (text, line) = (file.text(clock), file.line_of(clock.start()));
        return Some(format!("`{text}` on line {line} reads a clock next to it"));
    }
    let later = block[own + 1..].iter().take(6).chain(after_block(path, own_statement));
    let call = later.flat_map(nodes::own_calls).find(|call| nodes::name(&call.func) == "elapsed_time")?;
    Some(format!("`{}` on line {} needs the events to be over", file.text(call), file.line_of(call.start())))
}

/// Where `path[at]` is in the block of a `with` or an `if`: a timer often closes right after.
fn after_block<'a>(path: &[Node<'a>], at: usize) -> impl Iterator<Item = &'a Stmt> {
    let above = at.checked_sub(1).filter(|&above| matches!(path[above], Node::StmtWith(_) | Node::StmtIf(_)));
    let rest = above.map(|above| {
        let end = path[above].end();
        nodes::block(path, above).iter().filter(move |stmt| stmt.start() >= end).take(2)
    });
    rest.into_iter().flatten()
}
