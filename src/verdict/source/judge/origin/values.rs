//! Expressions: what an operator, a display or an element read makes of known values.

use super::fields::is_written;
use super::search::{OnHost, Scene, all};
use crate::python::facts::{self, Fact};
use crate::python::parse::{Node, Path, dotted, nodes, scope, string};
use crate::verdict::source::flow::{Step, Steps, constant_step};
use crate::verdict::source::infer::Objects;
use ruff_python_ast::{Expr, ExprAttribute, ExprSubscript};

impl<'a> Scene<'_, 'a> {
    /// Where the host has `expr` from; of a container, the value behind `steps`.
    pub(super) fn find(self, expr: &'a Expr, steps: Steps) -> Option<OnHost> {
        let found = self.search.deeper(|| self.expression(expr, steps));
        found.or_else(|| (self.is_own(expr) && self.is_host(expr)).then_some(OnHost::DATA))
    }

    fn expression(self, expr: &'a Expr, mut steps: Steps) -> Option<OnHost> {
        match expr {
            Expr::Name(name) => self.name(name, steps),
            Expr::Call(call) => self.call(call, steps),
            Expr::Attribute(ast) => self.attribute(ast, steps),
            Expr::Subscript(ast) => self.element(ast, steps),
            Expr::Tuple(_) | Expr::List(_) => self.display(nodes::listed(expr), steps),
            Expr::Dict(ast) => {
                let step = steps.pop();
                let wanted = |key: Option<&Expr>| match &step {
                    Some(Step::Key(wanted)) => key.and_then(string).is_none_or(|key| key == wanted),
                    _ => true,
                };
                let values = ast.items.iter().filter(|item| wanted(item.key.as_ref()));
                all(values.map(|item| match item.key {
                    Some(_) => self.find(&item.value, steps.clone()),
                    None => None,
                }))
            }
            Expr::ListComp(ast) => self.inner(Node::from(ast), &ast.elt, steps),
            Expr::Generator(ast) => self.inner(Node::from(ast), &ast.elt, steps),
            Expr::DictComp(ast) => self.inner(Node::from(ast), &ast.value, steps),
            Expr::Slice(_) => {
                let bounds = nodes::bounds(expr).map(|one| self.find(one, Vec::new()));
                all(std::iter::once(Some(OnHost::default())).chain(bounds))
            }
            Expr::BinOp(ast) => self.each([&*ast.left, &ast.right]).map(OnHost::computed),
            Expr::UnaryOp(ast) => self.each([&*ast.operand]).map(OnHost::computed),
            Expr::Compare(ast) => {
                self.each(std::iter::once(&*ast.left).chain(&ast.comparators)).map(OnHost::computed)
            }
            // The host has decided which of them it is.
            Expr::If(ast) => {
                all([&ast.body, &ast.orelse].into_iter().map(|arm| self.find(arm, steps.clone())))
            }
            Expr::Named(ast) => self.find(&ast.value, steps),
            _ if expr.is_literal_expr() => Some(OnHost::default()),
            _ => None,
        }
    }

    /// The elements of a comprehension, which sees the names that it binds.
    fn inner(self, comprehension: Node<'a>, element: &'a Expr, mut steps: Steps) -> Option<OnHost> {
        steps.pop();
        let path: Path<'a> = [self.here.path, &[comprehension, Node::from(element)]].concat();
        self.at(&path).find(element, steps)
    }

    /// The element asked for, else all of them.
    fn display(self, elements: &'a [Expr], mut steps: Steps) -> Option<OnHost> {
        if elements.is_empty() {
            return Some(OnHost::default());
        }
        if elements.iter().any(Expr::is_starred_expr) {
            return None;
        }
        match steps.pop() {
            Some(Step::Index(index)) => self.find(elements.get(index)?, steps),
            Some(Step::Key(_) | Step::Field(..)) => None,
            _ => all(elements.iter().map(|element| self.find(element, steps.clone()))),
        }
    }

    /// `value[index]` is known only if the index is.
    fn element(self, ast: &'a ExprSubscript, mut steps: Steps) -> Option<OnHost> {
        match (constant_step(&ast.slice), &*ast.slice) {
            (Some(step), _) => steps.push(step),
            (None, Expr::Slice(slice)) => {
                for bound in nodes::bounds(&ast.slice) {
                    self.find(bound, Vec::new())?;
                }
                let from = slice.lower.as_deref().map_or(Some(Step::Index(0)), constant_step);
                match (steps.pop(), from, &slice.step) {
                    // `batch[2:][1]` is `batch[3]`.
                    (Some(Step::Index(index)), Some(Step::Index(from)), None) => {
                        steps.push(from.checked_add(index).map_or(Step::Any, Step::Index));
                    }
                    (Some(Step::Index(_)), ..) => steps.push(Step::Any),
                    (step, ..) => steps.extend(step),
                }
            }
            (None, index) if is_plain(index) || self.find(index, Vec::new()).is_some() => {
                steps.push(Step::Any);
            }
            _ => return None,
        }
        self.find(&ast.value, steps)
    }

    fn attribute(self, ast: &'a ExprAttribute, steps: Steps) -> Option<OnHost> {
        let attribute = ast.attr.as_str();
        if facts::module(&dotted(&ast.value)).is(Fact::Numeric) || attribute == "shape" {
            return Some(OnHost::default());
        }
        if is_same(attribute) {
            let steps = if attribute == "data" { steps } else { Vec::new() };
            return self.find(&ast.value, steps);
        }
        let file = self.here.file();
        let others = nodes::attributes(&[file.module()], attribute);
        match Objects::new(file).class_of(&ast.value, self.here.path) {
            Some(class) => self.kept(&class, &others, &steps),
            // A field of what was given, as long as nothing assigns it.
            None if others.iter().any(is_written) => None,
            None => self.find(&ast.value, steps),
        }
    }

    pub(super) fn each(self, values: impl IntoIterator<Item = &'a Expr>) -> Option<OnHost> {
        all(values.into_iter().map(|value| self.find(value, Vec::new())))
    }

    /// Whether an expression is the host's by what it is, not by its operands: `len(x)`, `x.shape`,
    /// `x.item()`, a parameter declared a number.
    fn is_own(self, expr: &'a Expr) -> bool {
        match expr {
            Expr::Call(call) => super::calls::gives_own(nodes::name(&call.func)),
            Expr::Attribute(ast) => !is_same(&ast.attr),
            Expr::Name(name) => scope::is_parameter(self.here.path, &name.id),
            Expr::FString(_) => true,
            _ => false,
        }
    }
}

/// A number or several of them as written: `0`, `-1`, `..., 0`.
fn is_plain(index: &Expr) -> bool {
    match index {
        Expr::UnaryOp(ast) => is_plain(&ast.operand),
        Expr::Tuple(ast) => ast.elts.iter().all(|one| is_plain(one) || is_whole(one)),
        _ => index.is_literal_expr(),
    }
}

/// `:`, with literal bounds or none.
fn is_whole(index: &Expr) -> bool {
    index.is_slice_expr() && nodes::bounds(index).all(is_plain)
}

/// The same tensor, or another part of what a reduction gives.
fn is_same(attribute: &str) -> bool {
    facts::name(attribute).any(&[Fact::Property, Fact::Part])
}
