//! Reads of one element after the other in a loop, which one read before the loop replaces.

use super::reader::Case;
use crate::python::facts::{self, Fact};
use crate::python::parse::{Given, Node, Path, dotted, last, nodes, scope};
use crate::verdict::source::infer::{Here, Placement, changes, function_of};
use crate::verdict::source::locate::{SyncExpr, tested};
use ruff_python_ast::{Expr, ExprCall, ExprName};

impl Case<'_, '_> {
    /// Whether the value is one element of what a loop goes through, here or in a caller. `Some(true)`: that
    /// is one tensor, and the loop only looks at it.
    ///
    /// ```text
    /// for i in tokens:            every turn waits for one number …
    ///     if i == end: …
    /// for i in range(len(t)):     … here too; t.tolist() before the loop waits once
    ///     if t[i] > 0: …
    /// ```
    /// Cost: a walk over the loop, and one over the scope for the name.
    pub(super) fn is_element(self) -> Option<bool> {
        let call = nodes::call(self.here.path);
        let asked = match self.sync {
            SyncExpr::Truth => tested(self.here.path),
            SyncExpr::Item => call.and_then(nodes::receiver),
            SyncExpr::Convert(_) => call.and_then(|call| call.arguments.args.first()),
            _ => None,
        };
        let operands: Vec<&Expr> = match asked? {
            Expr::Compare(ast) => std::iter::once(&*ast.left).chain(&ast.comparators).collect(),
            Expr::BinOp(ast) => vec![&ast.left, &ast.right],
            asked => vec![asked],
        };
        let found: Vec<_> = operands.iter().map(|one| (one, self.taken(self.here, 0, one))).collect();
        // The other operands must not be read from the device.
        let others = found.iter().filter(|(_, element)| element.is_none());
        let known = others.clone().all(|(one, _)| self.here.find(one) != Placement::Device);
        found.iter().filter_map(|(_, element)| *element).reduce(|a, b| a && b).map(|sure| sure && known)
    }

    /// As `is_element`, of an expression of the frame `inner`.
    fn taken<'a>(self, here: Here<'_, 'a>, inner: usize, expr: &'a Expr) -> Option<bool> {
        let sure = |turn: &[Node<'a>], held: &'a Expr| {
            is_idle(turn) && self.is_tensor(Here { path: turn, ..here }, inner, held, 0)
        };
        match expr {
            Expr::Name(name) => {
                let mut stores = scope::bindings(here.path, &name.id).into_iter();
                match stores.find_map(|store| Some((scope::gone_through(&store)?, store))) {
                    Some((held, path)) => {
                        let turn = around(&path);
                        let changed = is_changed(turn, &dotted(held)) || is_written(turn, &name.id);
                        (!changed).then(|| sure(turn, held))
                    }
                    None => self.site.with_argument(here, inner, name, &|here, caller, given| {
                        given.is_name_expr().then(|| self.taken(here, caller.at, given)).flatten()
                    }),
                }
            }
            Expr::Subscript(ast) => {
                let turn = &here.path[..=loop_over(here.path, nodes::elements(&ast.slice))?];
                let held = dotted(&ast.value);
                (!held.contains(['(', '[', '?']) && !is_changed(turn, &held)).then(|| sure(turn, &ast.value))
            }
            _ => None,
        }
    }

    fn is_tensor<'a>(self, here: Here<'_, 'a>, inner: usize, expr: &'a Expr, names: u8) -> bool {
        let several = |call: &ExprCall| facts::name(nodes::name(&call.func)).is(Fact::Several);
        match expr {
            Expr::Call(call) => {
                let (facts, torch) = (facts::name(nodes::name(&call.func)), function_of(call, Fact::Torch));
                let method = facts.stays() && !facts.any(&[Fact::Shared, Fact::Total]);
                !facts.any(&[Fact::List, Fact::Several]) && (torch.is_some() || method)
            }
            Expr::Subscript(ast) => {
                ast.value.as_call_expr().is_some_and(several)
                    || self.is_tensor(here, inner, &ast.value, names)
            }
            Expr::Name(name) if names < MAX_NAMES => {
                let given = |path: &Path<'a>| match scope::given(path) {
                    Given::Value(value) => self.is_tensor(Here { path, ..here }, inner, value, names + 1),
                    Given::Element(value) => value.as_call_expr().is_some_and(several),
                    Given::Iterated(_) => false,
                    Given::Other => self
                        .site
                        .with_argument(here, inner, name, &|here, caller, given| {
                            self.is_tensor(here, caller.at, given, names + 1).then_some(())
                        })
                        .is_some(),
                };
                let all = scope::reaching(here.path, name);
                !all.is_empty() && all.iter().all(given)
            }
            _ => false,
        }
    }
}

const MAX_NAMES: u8 = 8;

fn loop_over(path: &[Node<'_>], indices: &[Expr]) -> Option<usize> {
    let names = indices.iter().filter_map(|index| match index {
        Expr::Name(name) => Some(name),
        Expr::BinOp(ast) if ast.right.is_number_literal_expr() => ast.left.as_name_expr(),
        _ => None,
    });
    let names: Vec<&ExprName> = names.collect();
    let gives = |target: &Expr| {
        let mut targets = nodes::elements(target).iter().filter_map(Expr::as_name_expr);
        targets.any(|target| names.iter().any(|name| name.id == target.id))
    };
    (nodes::function_scope(path)..path.len()).rev().find(|&at| match path[at] {
        Node::StmtFor(ast) => gives(&ast.target),
        Node::ExprListComp(ast) => ast.generators.iter().any(|one| gives(&one.target)),
        Node::ExprGenerator(ast) => ast.generators.iter().any(|one| gives(&one.target)),
        _ => false,
    })
}

fn around<'p, 'a>(path: &'p [Node<'a>]) -> &'p [Node<'a>] {
    let turn =
        path.iter().rposition(|node| matches!(node, Node::StmtFor(_)) || nodes::is_comprehension(*node));
    &path[..=turn.unwrap_or(path.len() - 1)]
}

/// Whether the loop calls no function of torch: it only looks at what was computed before. Between other
/// work, how soon each iteration needs its number is unknown.
fn is_idle(turn: &[Node<'_>]) -> bool {
    !nodes::any_call(turn, &|call| facts::module(nodes::root(&dotted(&call.func))).is(Fact::Torch))
}

/// Whether the loop changes the element that a name stands for, a part of the tensor.
fn is_written(turn: &[Node<'_>], element: &str) -> bool {
    nodes::any(turn, &mut |path| {
        matches!(last(path), Some(Node::ExprName(ast)) if ast.id == element && ast.ctx.is_load())
            && changes(path)
    })
}

/// Whether the loop assigns or changes what is called so, or hands it to a function that may.
fn is_changed(turn: &[Node<'_>], held: &str) -> bool {
    nodes::any(turn, &mut |path| {
        let context = match last(path) {
            Some(Node::ExprName(ast)) if ast.id == held => ast.ctx,
            Some(Node::ExprAttribute(ast)) if format!("{}.{}", dotted(&ast.value), ast.attr) == held => {
                ast.ctx
            }
            _ => return false,
        };
        let handed = || nodes::argument_of(path).is_some_and(|call| !leaves(nodes::name(&call.func)));
        !context.is_load() || changes(path) || handed()
    })
}

fn leaves(function: &str) -> bool {
    let facts = facts::name(function);
    facts::is_pure(function) || facts.any(&[Fact::Builtin, Fact::Wrap, Fact::Neutral, Fact::Text])
}
