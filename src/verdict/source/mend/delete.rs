//! Statements that go as a whole.

use super::text::replace;
use crate::model::edit::Replacement;
use crate::verdict::source::infer::libraries::Names;
use crate::verdict::source::parse::imports::full_name;
use crate::verdict::source::parse::nodes::{self, function_scope};
use crate::verdict::source::parse::{Node, Source, dotted, split_callee};
use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::{Ranged, TextRange, TextSize};

/// What stands before and behind a statement on its lines, and where the first of them begins.
fn around(file: &Source, stmt: TextRange) -> (&str, &str, TextSize) {
    let text = file.whole();
    let (start, end) = (stmt.start().to_usize(), stmt.end().to_usize());
    let from = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let to = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
    (&text[from..start], &text[end..to], TextSize::of(&text[..from]))
}

/// Deletes the statement that the call at the end of `path` is. `None` where it is a part of one.
///
/// ```text
/// step()                       step()
/// torch.cuda.synchronize()     print(x)
/// print(x)
///
/// step(); sync()               step()
///
/// if debug:                    if debug:
///     sync()                       pass
/// ```
pub fn statement(file: &Source, path: &[Node<'_>]) -> Option<Replacement> {
    let at = nodes::statement(path)?;
    let Node::StmtExpr(own) = path[at] else { return None };
    let call = nodes::call(path).filter(|call| call.range() == own.value.range())?;
    if !call.arguments.args.iter().all(is_plain)
        || !call.arguments.keywords.iter().all(|k| is_plain(&k.value))
    {
        return None;
    }
    let (block, place) = nodes::place(path)?;
    let range = own.range;
    let (before, rest, line) = around(file, range);
    let after = rest.trim();
    match block {
        [_] => Some(replace(range, "pass")),
        _ if before.trim().is_empty() && (after.is_empty() || after.starts_with('#')) => {
            Some(replace(TextRange::new(line, range.end() + TextSize::of(rest)), ""))
        }
        // `step(); sync()`: back to the end of what stands before.
        _ if place > 0 && before.trim_end().ends_with(';') => {
            let end = block[place - 1].end();
            Some(replace(TextRange::new(end, range.end()), ""))
        }
        _ if after.starts_with(';') => {
            let next = block.get(place + 1)?.start();
            Some(replace(TextRange::new(range.start(), next), ""))
        }
        _ => None,
    }
}

/// Arguments whose evaluation does nothing.
fn is_plain(expr: &Expr) -> bool {
    match expr {
        Expr::Name(_) => true,
        Expr::Attribute(ast) => is_plain(&ast.value),
        _ => expr.is_literal_expr(),
    }
}

/// Whether the line below a statement also synchronises: with the statement gone, it would stand in its line.
pub fn is_alike_below(file: &Source, path: &[Node<'_>]) -> bool {
    let Some(at) = nodes::statement(path) else { return true };
    let next = file.line_of(path[at].end()) + 1;
    file.line_text(next).contains("synchronize(")
}

/// Whether the function around does nothing but synchronise: it is there for those who call it.
pub fn is_wrapper(path: &[Node<'_>]) -> bool {
    let Node::StmtFunctionDef(ast) = path[function_scope(path)] else { return false };
    only_synchronises(&ast.body)
}

fn only_synchronises(body: &[Stmt]) -> bool {
    body.iter().all(|stmt| match stmt {
        Stmt::Expr(ast) => match &*ast.value {
            Expr::Call(call) => matches!(nodes::name(&call.func), "synchronize" | "barrier"),
            value => value.is_literal_expr(),
        },
        Stmt::If(ast) => {
            only_synchronises(&ast.body)
                && ast.elif_else_clauses.iter().all(|clause| only_synchronises(&clause.body))
        }
        Stmt::Return(ast) => ast.value.is_none(),
        _ => matches!(stmt, Stmt::Pass(_)),
    })
}

/// Whether a call reads a clock.
pub fn is_clock(file: &Source, call: &ExprCall) -> bool {
    let callee = full_name(file, &dotted(&call.func));
    let name = split_callee(&callee).1;
    Names("perf_counter perf_counter_ns monotonic monotonic_ns process_time default_timer time_ns").has(name)
        || Names("time.time time timer datetime.now datetime.datetime.now timeit.timeit").has(&callee)
}

/// Whether the file reads a clock anywhere: what is measured around a call changes with what is awaited in it.
pub fn reads_clock(file: &Source) -> bool {
    !nodes::calls(&[file.module()], &|call| is_clock(file, call)).is_empty()
}

/// Whether events of the file are asked for the time between them, or the function ends a recording: both need the GPU's work to
/// be over.
pub fn is_measured(file: &Source, path: &[Node<'_>]) -> bool {
    let asks = |call: &ExprCall| nodes::name(&call.func) == "elapsed_time";
    let stops = |call: &ExprCall| {
        let callee = full_name(file, &dotted(&call.func));
        callee.ends_with("profiler.stop") || callee.ends_with("cudaProfilerStop")
    };
    !nodes::calls(&[file.module()], &asks).is_empty()
        || !nodes::calls(&path[..=function_scope(path)], &stops).is_empty()
}
