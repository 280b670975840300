//! Operators on a value's way: they compare it, choose by it or compute with it.

use super::conditions::{is_asserted, is_guard};
use super::tracer::Tracer;
use super::value::{Next, Sink, Step, Use, Value, What, ends};
use crate::python::parse::{Node, within};
use crate::verdict::source::infer::Placement;
use ruff_python_ast::{BoolOp, CmpOp, Expr, ExprBoolOp, ExprCompare, ExprIf};
use ruff_text_size::Ranged;

impl<'a> Tracer<'a, '_> {
    pub(super) fn compared(&mut self, path: &[Node<'a>], value: &mut Value, ast: &'a ExprCompare) -> Next {
        let [.., node] = path else { return Next::Done };
        if ast.ops.iter().all(|op| matches!(op, CmpOp::Is | CmpOp::IsNot)) {
            return Next::Done;
        }
        // `name in metrics` looks a key up, whatever lies under it.
        let holds =
            !within(*node, &*ast.left) && ast.ops.iter().all(|op| matches!(op, CmpOp::In | CmpOp::NotIn));
        if holds && matches!(value.steps.last(), Some(Step::Key(_) | Step::Entry | Step::Meter(_))) {
            return Next::Done;
        }
        value.steps.clear();
        let mut operands = std::iter::once(&*ast.left).chain(&ast.comparators);
        self.arithmetic(path, value, operands.find(|other| !within(*node, *other)))
    }

    /// An operand of `and`, `or`: all but the last one decide.
    pub(super) fn and_or(&mut self, path: &[Node<'a>], value: &Value, ast: &ExprBoolOp) {
        // `logs or {}` replaces a missing container, `total or 1.0` a zero.
        let stands_in =
            |value: &Expr| value.is_dict_expr() || value.is_list_expr() || value.is_number_literal_expr();
        let default = ast.op == BoolOp::Or && ast.values[1..].iter().all(stands_in);
        let decides = value.steps.is_empty() && !value.text && !default;
        let at = path.last().map(|node| node.range());
        if decides && ast.values.last().is_some_and(|value| Some(value.range()) != at) {
            let sink = Sink::Branch { guard: is_guard(path, self.file), assert: is_asserted(path) };
            self.sink(path, value, sink, "an operand of `and`/`or`");
        }
    }

    /// Whether the value only chooses between two shown constants: `print("high" if v > 3 else "")`. Their
    /// uses are then the value's.
    pub(super) fn chooses_words(&mut self, conditional: &[Node<'a>], value: &Value, ast: &ExprIf) -> bool {
        if !ast.body.is_literal_expr() || !ast.orelse.is_literal_expr() {
            return false;
        }
        let before = self.uses.len();
        self.follow(conditional, Value { steps: Vec::new(), bulk: false, ..value.clone() });
        let shown = |used: &Use| matches!(used.sink, Sink::Log | Sink::Error);
        if self.uses.len() > before && self.uses[before..].iter().all(shown) {
            return true;
        }
        self.uses.truncate(before);
        false
    }

    /// `value op other`: computed where the other operand lives.
    pub(super) fn arithmetic(&self, path: &[Node<'a>], value: &mut Value, other: Option<&'a Expr>) -> Next {
        match other {
            None => value.becomes_text(),
            Some(other) if !value.bulk && self.placements.find(other, path) == Placement::Device => {
                let what = format!("combined with the tensor `{}`", self.file.text(other));
                return ends(Sink::Device, What::Joined(what));
            }
            Some(_) => {}
        }
        Next::Up(1)
    }
}
