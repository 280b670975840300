//! One wait for several reads: `torch.stack([loss, acc]).tolist()`.

use super::surroundings;
use crate::verdict::source::infer::placement::{Here, Placement};
use crate::verdict::source::parse::nodes::{self, statement};
use crate::verdict::source::parse::{Node, last};
use ruff_python_ast::{Expr, ExprCall, ExprContext, Stmt};
use ruff_text_size::Ranged;

/// Methods that give the same tensor again and change nothing.
const PURE: &[&str] = &[
    "abs", "all", "amax", "amin", "any", "detach", "double", "exp", "float", "log", "max", "mean", "median",
    "min", "norm", "prod", "sqrt", "square", "squeeze", "std", "sum", "var",
];

/// All values that are read around `call`, the last node of `path`, in one wait: those of the consecutive lines that read, else
/// those of its own statement. `None` where there is one, or where reading them together could change what is read.
pub fn joined<'a>(here: Here<'_, 'a>, call: &'a ExprCall) -> Option<String> {
    let own = here.path[statement(here.path)?].range();
    let run = surroundings::run(here.path);
    let alone = run.iter().position(|stmt| stmt.range() == own)?;
    let together = |stmts: &'a [Stmt]| {
        let names = values(here, stmts, call)?;
        (names.len() > 1).then(|| format!("torch.stack([{}]).tolist()", names.join(", ")))
    };
    together(run).or_else(|| together(&run[alone..=alone]))
}

/// What the statements read, each once, in source order.
fn values<'a>(here: Here<'_, 'a>, stmts: &'a [Stmt], own: &ExprCall) -> Option<Vec<String>> {
    let simple = |stmt: &Stmt| {
        matches!(stmt, Stmt::Assign(_) | Stmt::AnnAssign(_) | Stmt::AugAssign(_) | Stmt::Expr(_))
    };
    if !stmts.iter().all(simple) {
        return None;
    }
    let bound = bound(stmts);
    let (mut names, mut found) = (Vec::new(), false);
    for call in stmts.iter().flat_map(reads) {
        let value = nodes::receiver(call)?;
        if !is_plain(value, &bound) || here.find(value) == Placement::Host {
            return None;
        }
        found |= call.range() == own.range();
        let name = here.text(value);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    found.then_some(names)
}

/// The calls of `.item()` that surely run, once each.
fn reads(stmt: &Stmt) -> Vec<&ExprCall> {
    let mut found = Vec::new();
    nodes::walk(&[Node::from(stmt)], &mut |path| match last(path) {
        Some(Node::ExprLambda(_) | Node::ExprIf(_) | Node::ExprBoolOp(_)) => false,
        Some(node) if nodes::is_comprehension(node) => false,
        Some(Node::ExprCall(call)) if call.arguments.is_empty() && nodes::receiver(call).is_some() => {
            found.extend((nodes::name(&call.func) == "item").then_some(call));
            true
        }
        _ => true,
    });
    found
}

/// The names that the statements bind: what stands for a tensor before may stand for another one after.
fn bound(stmts: &[Stmt]) -> Vec<&str> {
    let mut names = Vec::new();
    for stmt in stmts {
        nodes::walk(&[Node::from(stmt)], &mut |path| {
            if let Some(Node::ExprName(ast)) = last(path) {
                names.extend((ast.ctx != ExprContext::Load).then_some(ast.id.as_str()));
            }
            true
        });
    }
    names
}

/// Names, attributes, constant subscripts and calls of [`PURE`] methods with constant arguments.
fn is_plain(expr: &Expr, bound: &[&str]) -> bool {
    match expr {
        Expr::Name(name) => !bound.contains(&name.id.as_str()),
        Expr::Attribute(ast) => is_plain(&ast.value, bound),
        Expr::Subscript(ast) => ast.slice.is_literal_expr() && is_plain(&ast.value, bound),
        Expr::Call(call) => {
            let constant = call.arguments.args.iter().all(Expr::is_literal_expr)
                && call.arguments.keywords.iter().all(|keyword| keyword.value.is_literal_expr());
            constant
                && PURE.contains(&nodes::name(&call.func))
                && nodes::receiver(call).is_some_and(|value| is_plain(value, bound))
        }
        _ => false,
    }
}
