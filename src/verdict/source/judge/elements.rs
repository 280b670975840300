//! Reads of one element after the other of what a loop goes through, which one read before the loop gives as well.

use super::reader::Case;
use crate::python::facts::{self, Fact};
use crate::python::parse::{Given, Node, Path, dotted, last, nodes, scope};
use crate::verdict::source::infer::{Here, Placement, changes, function_of};
use crate::verdict::source::locate::{SyncExpr, tested};
use ruff_python_ast::{Expr, ExprCall, ExprName};

/// Names followed to what they are given.
const MAX_STEPS: u8 = 8;

impl Case<'_, '_> {
    /// Whether the value is one element of what a loop goes through, here or in a caller, and whether that is surely one tensor.
    ///
    /// ```text
    /// for i in tokens:            every turn waits for one number …
    ///     if i == end: …
    /// for i in range(len(t)):     … here too; t.tolist() before the loop waits once
    ///     if t[i] > 0: …
    /// ```
    /// Cost: a walk over the loop, and one over the scope for each name on the way.
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
        // What else it is held against must not be read from the device.
        let others = found.iter().filter(|(_, element)| element.is_none());
        let known = others.clone().all(|(one, _)| self.here.find(one) != Placement::Device);
        let sure = found.iter().filter_map(|(_, element)| *element).reduce(|a, b| a && b)?;
        Some(sure && known)
    }

    /// The same of an expression of the frame `inner`.
    fn taken<'a>(self, here: Here<'_, 'a>, inner: usize, expr: &'a Expr) -> Option<bool> {
        let sure = |path: &[Node<'a>], held| self.is_tensor(Here { path, ..here }, inner, held, 0);
        match expr {
            Expr::Name(name) => {
                let mut stores = scope::bindings(here.path, &name.id).into_iter();
                match stores.find_map(|store| Some((scope::gone_through(&store)?, store))) {
                    Some((held, path)) => Some(sure(&path, held) && is_idle(around(&path))),
                    None => self.site.with_argument(here, inner, name, &|here, caller, given| {
                        given.is_name_expr().then(|| self.taken(here, caller.at, given)).flatten()
                    }),
                }
            }
            Expr::Subscript(ast) => {
                let turn = &here.path[..=loop_over(here.path, nodes::elements(&ast.slice))?];
                let held = dotted(&ast.value);
                let same = !held.contains(['(', '[', '?']) && !is_changed(turn, &held);
                // A method that the loop calls may give an attribute something else.
                let own =
                    ast.value.is_name_expr() && (ast.slice.is_tuple_expr() || sure(here.path, &ast.value));
                same.then(|| own && is_idle(turn))
            }
            _ => None,
        }
    }

    /// Whether an expression is one tensor, by what it is made with or asked for.
    fn is_tensor<'a>(self, here: Here<'_, 'a>, inner: usize, expr: &'a Expr, steps: u8) -> bool {
        let sub = |expr: &'a Expr| steps < MAX_STEPS && self.is_tensor(here, inner, expr, steps + 1);
        match expr {
            Expr::Name(name) => {
                let asked = |path: &Path<'a>| nodes::method_of(path).is_some_and(|one| gives_tensor(one.1));
                let tensor = |path: &Path<'a>| self.is_given_tensor(here, inner, name, path, steps + 1);
                let given = || Some(scope::reaching(here.path, name)).filter(|all| !all.is_empty());
                scope::mentions(here.path, &name.id).iter().any(|one| one.load && asked(&one.path))
                    || steps < MAX_STEPS && given().is_some_and(|all| all.iter().all(tensor))
            }
            Expr::Call(call) => {
                let (name, torch) = (nodes::name(&call.func), function_of(call, Fact::Torch).is_some());
                !facts::name(name).is(Fact::List)
                    && !facts::name(name).is(Fact::Several)
                    && (torch || gives_tensor(name) && nodes::receiver(call).is_some())
            }
            Expr::Attribute(ast) => matches!(ast.attr.as_str(), "data" | "T") && sub(&ast.value),
            Expr::Subscript(ast) => match &*ast.value {
                Expr::Call(call) if facts::name(nodes::name(&call.func)).is(Fact::Several) => true,
                value => ast.slice.is_tuple_expr() || sub(value),
            },
            Expr::BinOp(ast) => sub(&ast.left) || sub(&ast.right),
            Expr::UnaryOp(ast) => sub(&ast.operand),
            Expr::Compare(ast) => sub(&ast.left) || ast.comparators.iter().any(sub),
            _ => false,
        }
    }

    /// Whether what a name is given at the end of `path` is a tensor: the assignment, or the function whose parameter it is.
    fn is_given_tensor<'a>(
        self,
        here: Here<'_, 'a>,
        inner: usize,
        name: &'a ExprName,
        path: &Path<'a>,
        steps: u8,
    ) -> bool {
        let sub = |expr| self.is_tensor(Here { path, ..here }, inner, expr, steps);
        match scope::given(path) {
            Given::Value(value) | Given::Iterated(value) => sub(value),
            Given::Element(value) => value
                .as_call_expr()
                .is_some_and(|call| facts::name(nodes::name(&call.func)).is(Fact::Several)),
            Given::Other => {
                let passed = self.site.with_argument(here, inner, name, &|here, caller, given| {
                    Some(self.is_tensor(here, caller.at, given, steps))
                });
                passed == Some(true)
            }
        }
    }
}

/// The innermost loop or comprehension around the end of a path that gives one of the indices its values.
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

/// The path of the loop or comprehension that gives the name at the end of a path its values.
fn around<'p, 'a>(path: &'p [Node<'a>]) -> &'p [Node<'a>] {
    let turn =
        path.iter().rposition(|node| matches!(node, Node::StmtFor(_)) || nodes::is_comprehension(*node));
    &path[..=turn.unwrap_or(path.len() - 1)]
}

/// Whether the loop at the end of a path gives the device nothing to do by functions of torch: it only looks at what was
/// computed before. Between other work, how soon each turn needs its number is not told.
fn is_idle(turn: &[Node<'_>]) -> bool {
    let torch = |call: &ExprCall| facts::module(nodes::root(&dotted(&call.func))).is(Fact::Torch);
    !nodes::any_call(turn, &torch)
}

/// Whether something in the loop at the end of a path assigns or changes what is called so.
fn is_changed(turn: &[Node<'_>], held: &str) -> bool {
    nodes::any(turn, &mut |path| {
        let context = match last(path) {
            Some(Node::ExprName(ast)) if ast.id == held => ast.ctx,
            Some(Node::ExprAttribute(ast)) if format!("{}.{}", dotted(&ast.value), ast.attr) == held => {
                ast.ctx
            }
            _ => return false,
        };
        !context.is_load() || changes(path)
    })
}

/// Whether only a tensor has a method of that name, or it gives one; arrays of the host have some of them, for which nobody waits.
fn gives_tensor(method: &str) -> bool {
    let facts = facts::name(method);
    facts.stays() && !facts.any(&[Fact::Shared, Fact::Total])
}
