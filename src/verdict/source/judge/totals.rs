//! Selections used only for totals: how many elements they have decides nothing (S11).

use super::reader::Case;
use crate::python::facts::{self, Fact};
use crate::python::parse::{Node, Path, dotted, last, nodes, scope, string};
use crate::rules::grade;
use crate::verdict::source::infer::{Here, Placement, changes, function_of};
use crate::verdict::source::locate::{Index, SyncExpr};
use crate::vocabulary::{Class, PatternId::*, Verdict};
use ruff_python_ast::{CmpOp, Expr, ExprCall, ExprName};
use ruff_text_size::{Ranged, TextRange};

const MAX_NAMES: u8 = 4;

impl<'a> Case<'_, 'a> {
    /// Replaces the verdict that a selection's size is needed, where only totals are made of it.
    ///
    /// Definition: the selection goes through elementwise operators and names to `sum`, `mean`, `any`, `all`
    /// over all elements, or to a count that Python only shows. Other operands are numbers, or selections by
    /// the same mask: their sizes agree at full shape too. A needed total that is read at once waits there
    /// anyway.
    ///
    /// ```text
    /// hits = pred[mask] == gold[mask]      waits for the size of each …
    /// return hits.sum()                    … of which nothing depends: what it leaves out is set to false
    /// ```
    /// Cost: one walk over the scope for each name on the way.
    pub(super) fn only_totals(self) -> Option<Verdict> {
        let path = self.here.path;
        let (mask, pattern, instead) = match (self.sync, last(path)?) {
            (SyncExpr::Shape(pattern @ B02), _) => (mask(nodes::call(path)?), pattern, MASKED),
            (SyncExpr::Index { what: Index::Mask | Index::Name, store: false }, Node::ExprSubscript(ast))
                if !ast.slice.is_tuple_expr() =>
            {
                (Some(&*ast.slice), B02, MASKED)
            }
            // `where` gives a tuple: its length is no count.
            (SyncExpr::Shape(pattern @ B01), _) if nodes::callee(path) != "where" => {
                (None, pattern, "`count_nonzero()` counts on the GPU")
            }
            _ => return None,
        };
        let mask = mask.map(|mask| Mask::of(self.here, path, mask));
        if !self.ends_in_totals(path, mask.as_ref(), MAX_NAMES) {
            return None;
        }
        let what =
            format!("is only used for totals, so its size decides nothing: {instead}, and does not wait");
        Some(self.says(grade::S11_TOTAL, pattern, &what))
    }

    /// Whether the CPU does not need the number that it gets at the end of `path`.
    fn is_shown(self, path: &[Node<'a>]) -> bool {
        self.at(path).value(A01, false).class == Class::False
    }

    fn ends_in_totals(self, path: &[Node<'a>], mask: Option<&Mask>, names: u8) -> bool {
        let Some((node, parent)) = last(path).zip(nodes::above(path, 1)) else { return false };
        let up = |levels: usize| self.ends_in_totals(&path[..path.len() - levels], mask, names);
        match (parent, nodes::above(path, 2)) {
            (Node::ExprAttribute(ast), Some(Node::ExprCall(call))) => match ast.attr.as_str() {
                "numel" => self.is_shown(&path[..path.len() - 2]),
                name if facts::name(name).is(Fact::Total) => is_whole(call, 0) && self.is_total(path),
                name => self.is_elementwise(name, call, node, mask) && up(2),
            },
            (Node::Arguments(_), Some(Node::ExprCall(call))) => match function_of(call, Fact::Torch) {
                None if dotted(&call.func) == "len" => self.is_shown(&path[..path.len() - 2]),
                Some(name) if facts::name(name).is(Fact::Total) => is_whole(call, 1) && self.is_total(path),
                _ if facts::name(nodes::name(&call.func)).is(Fact::Distance) => {
                    is_reduced(call) && self.all_fit(call, node, mask)
                }
                // The receiver of a method is another operand.
                None => nodes::receiver(call).is_some_and(|other| {
                    self.fits(other, path, mask)
                        && self.is_elementwise(nodes::name(&call.func), call, node, mask)
                        && up(2)
                }),
                Some(name) => self.is_elementwise(name, call, node, mask) && up(2),
            },
            (Node::ExprBinOp(ast), _) => {
                let other = if nodes::within(node, &*ast.left) { &*ast.right } else { &*ast.left };
                self.fits(other, path, mask) && up(1)
            }
            (Node::ExprCompare(ast), _) => {
                let ([op], [right]) = (&*ast.ops, &*ast.comparators) else { return false };
                let other = if nodes::within(node, &*ast.left) { right } else { &*ast.left };
                !matches!(op, CmpOp::Is | CmpOp::IsNot | CmpOp::In | CmpOp::NotIn)
                    && self.fits(other, path, mask)
                    && up(1)
            }
            (Node::ExprUnaryOp(_), _) => up(1),
            (Node::StmtAssign(ast), _) if names > 0 => {
                let [target @ Expr::Name(name)] = ast.targets.as_slice() else { return false };
                let target = [&path[..path.len() - 1], &[Node::from(target)]].concat();
                let reads = scope::reads(&target, &name.id);
                let total = |read: &Path<'a>| !changes(read) && self.ends_in_totals(read, mask, names - 1);
                !reads.is_empty() && reads.iter().all(total)
            }
            _ => false,
        }
    }

    /// False where the total is read at once and needed.
    fn is_total(self, path: &[Node<'a>]) -> bool {
        let total = &path[..path.len() - 2];
        let read = match nodes::method_of(total) {
            Some((_, "item")) => &total[..total.len() - 2],
            _ if nodes::argument_of(total)
                .is_some_and(|call| facts::name(nodes::name(&call.func)).is(Fact::Number)) =>
            {
                &total[..total.len() - 2]
            }
            _ => return true,
        };
        self.is_shown(read)
    }

    /// One element for each element, and the other operands fit.
    fn is_elementwise(self, name: &str, call: &'a ExprCall, node: Node<'a>, mask: Option<&Mask>) -> bool {
        let facts = facts::name(name);
        let formed = facts.is(Fact::Form) && mask.is_some();
        formed
            || facts.any(&[Fact::Each, Fact::Test, Fact::Type, Fact::Same])
                && call.arguments.keywords.is_empty()
                && self.all_fit(call, node, mask)
    }

    fn all_fit(self, call: &'a ExprCall, node: Node<'a>, mask: Option<&Mask>) -> bool {
        let mut others = call.arguments.args.iter().filter(|other| other.range() != node.range());
        others.all(|other| self.fits(other, self.here.path, mask))
    }

    /// Whether an operand fits the selection at full shape: a number, or a selection by the same mask.
    fn fits(self, other: &'a Expr, path: &[Node<'a>], wanted: Option<&Mask>) -> bool {
        let same = |mask: &'a Expr| wanted.is_some_and(|wanted| *wanted == Mask::of(self.here, path, mask));
        match other {
            Expr::Call(call) if nodes::name(&call.func) == "masked_select" => mask(call).is_some_and(same),
            Expr::Call(call) if facts::name(nodes::name(&call.func)).is(Fact::Form) => {
                nodes::receiver(call).is_some_and(|other| self.fits(other, path, wanted))
            }
            Expr::Subscript(ast) if same(&ast.slice) => true,
            Expr::Name(name) => scope::assigned(path, name).is_some_and(|(value, place)| {
                matches!(value, Expr::Call(_) | Expr::Subscript(_)) && self.fits(value, &place, wanted)
            }),
            Expr::UnaryOp(ast) => self.fits(&ast.operand, path, wanted),
            _ => other.is_number_literal_expr() && self.here.find(other) == Placement::Host,
        }
    }
}

/// A mask as written, and the assignments and changes that its names see.
#[derive(PartialEq)]
struct Mask {
    text: String,
    given: Vec<TextRange>,
}

impl Mask {
    fn of<'a>(here: Here<'_, 'a>, path: &[Node<'a>], mask: &'a Expr) -> Self {
        let seen = |name: &'a ExprName| {
            let changed = scope::mentions(path, &name.id).into_iter().map(|one| one.path);
            let changed = changed.filter(|path| changes(path) && nodes::range(path).start() < name.start());
            scope::reaching(path, name).into_iter().chain(changed)
        };
        let names = nodes::names(Node::from(mask)).into_iter();
        Self { text: here.text(mask), given: names.flat_map(seen).map(|path| nodes::range(&path)).collect() }
    }
}

const MASKED: &str =
    "`a.masked_fill(~mask, 0).sum()` has the same sum, divided by `mask.sum()` the same mean";

fn mask(call: &ExprCall) -> Option<&Expr> {
    let torch = dotted(&call.func) == "torch.masked_select";
    call.arguments.find_argument_value("mask", usize::from(torch))
}

/// Over all elements: no dimension is named.
fn is_whole(call: &ExprCall, arguments: usize) -> bool {
    let dtype = |name: &ruff_python_ast::Identifier| name.as_str() == "dtype";
    call.arguments.args.len() == arguments
        && call.arguments.keywords.iter().all(|keyword| keyword.arg.as_ref().is_some_and(dtype))
}

/// Whether a loss adds up the distances of all elements, or takes their mean.
fn is_reduced(call: &ExprCall) -> bool {
    let keywords = &call.arguments.keywords;
    call.arguments.args.len() == 2
        && keywords.iter().all(|keyword| {
            let name = keyword.arg.as_ref().map(|name| name.as_str());
            name == Some("reduction") && matches!(string(&keyword.value), Some("sum" | "mean"))
        })
}
