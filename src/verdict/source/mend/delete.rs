//! Statements that go as a whole, and what speaks against it.

use super::text::{beside, is_alone, replace};
use crate::model::edit::Replacement;
use crate::python::facts::{self, Fact};
use crate::python::parse::{Node, Source, full_callee, nodes, split_callee};
use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::{Ranged, TextRange, TextSize};

/// Deletes the statement that is the call at the end of `path`. `None` where the call is a part of one.
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
    let (block, place) = nodes::place(path).filter(|_| nodes::given(call).all(is_plain))?;
    let range = own.range;
    let (before, rest, _) = beside(file, range);
    match block {
        [_] => Some(replace(range, "pass")),
        _ if is_alone(before, rest) => whole_line(file, path),
        // `step(); sync()`: back to the end of the statement before.
        _ if place > 0 && before.trim_end().ends_with(';') => {
            Some(replace(TextRange::new(block[place - 1].end(), range.end()), ""))
        }
        _ if rest.trim().starts_with(';') => {
            Some(replace(TextRange::new(range.start(), block.get(place + 1)?.start()), ""))
        }
        _ => None,
    }
}

/// Deletes the statement around the last node, where its lines hold nothing else.
fn whole_line(file: &Source, path: &[Node<'_>]) -> Option<Replacement> {
    let stmt = path[nodes::statement(path)?].range();
    let (before, rest, line) = beside(file, stmt);
    is_alone(before, rest).then(|| replace(TextRange::new(line, stmt.end() + TextSize::of(rest)), ""))
}

/// Arguments whose evaluation does nothing.
fn is_plain(expr: &Expr) -> bool {
    match expr {
        Expr::Name(_) => true,
        Expr::Attribute(ast) => is_plain(&ast.value),
        _ => expr.is_literal_expr(),
    }
}

/// Whether the line below also synchronises: with the statement gone, it would be on its line.
pub fn is_alike_below(file: &Source, path: &[Node<'_>]) -> bool {
    let Some(at) = nodes::statement(path) else { return true };
    let next = file.line_of(path[at].end()) + 1;
    file.line_text(next).contains("synchronize(")
}

/// Whether the function around does nothing but synchronise: it is there for its callers.
pub fn is_wrapper(path: &[Node<'_>]) -> bool {
    nodes::function(nodes::function_around(path)).is_some_and(|ast| only_synchronises(&ast.body))
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

pub fn is_clock(file: &Source, call: &ExprCall) -> bool {
    let callee = full_callee(file, call);
    let name = split_callee(&callee).1;
    facts::name(name).is(Fact::Clock) && name != "time" && name != "timer"
        || facts::name(&callee).is(Fact::Clock)
}

/// What is measured around a call changes with what is awaited in it.
pub fn reads_clock(file: &Source) -> bool {
    nodes::any_call(&[file.module()], &|call| is_clock(file, call))
}

/// Whether the file times by events, or the function ends a recording: both need finished GPU work.
pub fn is_measured(file: &Source, path: &[Node<'_>]) -> bool {
    let asks = |call: &ExprCall| nodes::name(&call.func) == "elapsed_time";
    let stops = |call: &ExprCall| {
        let callee = full_callee(file, call);
        callee.ends_with("profiler.stop") || callee.ends_with("cudaProfilerStop")
    };
    nodes::any_call(&[file.module()], &asks) || nodes::any_call(nodes::function_around(path), &stops)
}
