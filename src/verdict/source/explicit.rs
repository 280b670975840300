//! Explicit synchronisation (S15): a clock, a barrier before reading a copied buffer, or for nothing.

use super::barrier::{Barrier, barrier};
use super::file::Source;
use super::locate;
use super::nodes::{self, Node, dotted, function_scope, last, split_callee, statement};
use crate::report::Frame;
use crate::vocabulary::{Evidence, Kind};
use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::Ranged;

/// What an explicit synchronisation is for, how sure, and why.
pub struct Purpose {
    pub kind: Kind,
    pub confidence: f64,
    pub evidence: Evidence,
}

/// Finds the purpose of the `synchronize()` call at the end of `path`.
///
/// Definition: (b) if the call stands between a non-blocking copy to the host and the read of its target, it is the barrier that
/// makes the read valid ([`barrier`]); (a) if a neighbouring statement reads a clock, or a later one asks CUDA events
/// for the time between them, it is there to measure; (c) otherwise it only waits. A function that does little else than
/// synchronise is judged by its caller.
pub fn purpose<'a>(file: &'a Source, path: &[Node<'a>], caller: Option<(&Source, &Frame)>) -> Purpose {
    if let Some(Barrier { name, copied, read }) = barrier(file, path) {
        let text = format!(
            "`{name}` is copied to the host without blocking on line {copied} and read on line {read}: this wait makes the read valid"
        );
        return Purpose { kind: Kind::Barrier, confidence: 0.8, evidence: Evidence::new("S15", text) };
    }
    if let Some(text) = timing(file, path) {
        return Purpose { kind: Kind::Timing, confidence: 0.9, evidence: Evidence::new("S15", text) };
    }
    if is_wrapper(path)
        && let Some((file, frame)) = caller
        && let Some(statement) = locate::statement_at(file, frame)
        && let Some(text) = timing(file, &statement)
    {
        let text = format!("{text}, around the call on line {}", frame.line);
        return Purpose { kind: Kind::Timing, confidence: 0.85, evidence: Evidence::new("S15", text) };
    }
    let text = "nothing is copied, no clock is read next to it and no buffer waits for it: the GPU keeps its order without it";
    Purpose { kind: Kind::Explicit, confidence: 0.9, evidence: Evidence::new("S15", text) }
}

/// Whether the function around holds at most two statements besides its docstring.
fn is_wrapper(path: &[Node<'_>]) -> bool {
    let docstring = |stmt: &&Stmt| !matches!(stmt, Stmt::Expr(ast) if ast.value.is_string_literal_expr());
    matches!(path[function_scope(path)], Node::StmtFunctionDef(ast) if ast.body.iter().filter(docstring).count() <= 2)
}

/// The sentence about the clock that stands next to the statement, if one does.
fn timing(file: &Source, path: &[Node<'_>]) -> Option<String> {
    let at = statement(path)?;
    let block = nodes::block(path, at);
    let own = block.iter().position(|stmt| stmt.range() == path[at].range())?;
    // Other synchronisations and event records belong to the measurement.
    let transparent = |stmt: &&Stmt| {
        !only_calls(stmt, &["synchronize", "record", "empty_cache", "reset_peak_memory_stats", "barrier"])
    };
    let before = block[..own].iter().rev().find(transparent);
    let after = block[own + 1..].iter().find(transparent);
    for stmt in before.into_iter().chain(after) {
        if let Some(clock) = first_call(stmt, |call| is_clock(file, call)) {
            return Some(format!(
                "`{}` on line {} reads a clock next to it",
                file.text(clock),
                file.line_of(clock.start())
            ));
        }
    }
    let within_six = block[own + 1..].iter().take(6).chain(after_block(path, at));
    for stmt in within_six {
        if let Some(call) = first_call(stmt, |call| split_callee(&dotted(&call.func)).1 == "elapsed_time") {
            let line = file.line_of(call.start());
            return Some(format!("`{}` on line {line} needs the events to be over", file.text(call)));
        }
    }
    None
}

/// The statements right after the block that holds `path[at]`, where that is a `with` or an `if`: a timer often closes there.
fn after_block<'a>(path: &[Node<'a>], at: usize) -> impl Iterator<Item = &'a Stmt> {
    let above = at.checked_sub(1).filter(|&above| matches!(path[above], Node::StmtWith(_) | Node::StmtIf(_)));
    let rest = above.map(|above| {
        let block = nodes::block(path, above);
        let end = path[above].end();
        block.iter().filter(move |stmt| stmt.start() >= end).take(2)
    });
    rest.into_iter().flatten()
}

fn is_clock(file: &Source, call: &ExprCall) -> bool {
    let callee = dotted(&call.func);
    let callee = file.imported(&callee).unwrap_or(callee);
    matches!(
        split_callee(&callee).1,
        "perf_counter"
            | "perf_counter_ns"
            | "monotonic"
            | "monotonic_ns"
            | "process_time"
            | "default_timer"
            | "time_ns"
    ) || matches!(
        callee.as_str(),
        "time.time" | "time" | "timer" | "datetime.now" | "datetime.datetime.now" | "timeit.timeit"
    )
}

/// Whether a statement is a call of one of the names.
fn only_calls(stmt: &Stmt, names: &[&str]) -> bool {
    let Stmt::Expr(ast) = stmt else { return false };
    matches!(&*ast.value, Expr::Call(call) if names.contains(&split_callee(&dotted(&call.func)).1))
}

/// The first call in a simple statement (or a compound one's header) that `wanted` picks.
fn first_call(stmt: &Stmt, wanted: impl Fn(&ExprCall) -> bool) -> Option<&ExprCall> {
    let mut found = None;
    nodes::walk(&[Node::from(stmt)], &mut |path| {
        match last(path) {
            Some(Node::ExprCall(call)) if found.is_none() && wanted(call) => found = Some(call),
            Some(node) if path.len() > 1 && node.is_statement() => return false,
            _ => {}
        }
        found.is_none()
    });
    found
}
