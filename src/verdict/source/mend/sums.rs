//! A sum that a loop reads value by value, added up on the GPU and read once.

use super::text::{insert, replace};
use super::{KEPT, Subject, Written};
use crate::model::edit::{Refusal, Replacement};
use crate::verdict::source::flow::conditions;
use crate::verdict::source::infer::placement::Placement;
use crate::verdict::source::parse::scope::{self, Occurrence};
use crate::verdict::source::parse::{Node, Path, nodes, within};
use ruff_python_ast::{Expr, ExprCall, Operator, StmtAugAssign};
use ruff_text_size::{Ranged, TextRange, TextSize};

/// Adds up on the GPU what a loop reads to add it up.
///
/// Definition: `total += v.item()`, the only change of a local `total` in the loop, which starts as a number that stands there.
/// The sum stays a tensor of float64, as exact as Python's; reads of it become `float(total)`: those under a condition that holds
/// now and then where they are, all behind the loop together right after it.
///
/// ```text
/// total = 0                                total = 0
/// for x in xs:                             for x in xs:
///     total += f(x).item()                     total += f(x).detach().double()
///     if i % 100 == 0: print(total)            if i % 100 == 0: print(float(total))
/// print(total / n)                         total = float(total)
///                                          print(total / n)
/// ```
/// Cost: one walk over the scope of the name.
pub fn added_up<'a>(s: Subject<'_, 'a>, call: &'a ExprCall, shown: String) -> Written {
    let replacements = sum(s, call).ok_or(Refusal::Form).and_then(|sum| sum.replacements(s, call));
    Written::new(&KEPT, Some(shown), replacements)
}

/// The name, its occurrences and the loop.
struct Sum<'a> {
    name: &'a str,
    own: TextRange,
    all: Vec<Occurrence<'a>>,
    /// The outermost loop that the name comes into as a number.
    around: TextRange,
}

fn sum<'a>(s: Subject<'_, 'a>, call: &'a ExprCall) -> Option<Sum<'a>> {
    let path = s.here.path;
    let at = nodes::statement(path)?;
    let Node::StmtAugAssign(ast) = path[at] else { return None };
    let name = ast.target.as_name_expr().filter(|_| ast.op == Operator::Add)?;
    if !adds(s, ast, call) {
        return None;
    }
    let owner = scope::owner(path, &name.id);
    let all = scope::occurrences(&owner, &name.id);
    let starts: Vec<&Path<'a>> = all.iter().filter(|one| one.store).map(|one| &one.path).collect();
    let first = starts.first()?;
    // Loops that the first value comes into from outside.
    let outside = |node: &&Node<'a>| {
        matches!(node, Node::StmtFor(_) | Node::StmtWhile(_)) && !within(nodes::range(first), **node)
    };
    let around = path[owner.len() - 1..at].iter().find(outside)?.range();
    let plain = all.iter().all(|one| !one.closure) && scope::parameter(&owner, &name.id).is_none();
    let numbers = starts
        .iter()
        .all(|start| scope::value(start.to_vec()).is_some_and(|(value, _)| value.is_number_literal_expr()));
    let before = nodes::range(first).start() < around.start() && plain && numbers;
    before.then_some(Sum { name: &name.id, own: ast.range, all, around })
}

/// Whether what is added is the value itself, or so many times it: that is as exact on the GPU.
fn adds<'a>(s: Subject<'_, 'a>, ast: &'a StmtAugAssign, call: &ExprCall) -> bool {
    let own = |expr: &Expr| expr.range() == call.range();
    match &*ast.value {
        Expr::BinOp(product) if product.op == Operator::Mult => {
            let host = |expr: &'a Expr| s.here.find(expr) == Placement::Host;
            own(&product.left) && host(&product.right) || own(&product.right) && host(&product.left)
        }
        value => own(value),
    }
}

impl<'a> Sum<'a> {
    fn replacements(&self, s: Subject<'_, 'a>, call: &ExprCall) -> Result<Vec<Replacement>, Refusal> {
        let file = s.here.file();
        let (mut made, mut behind) = (Vec::new(), false);
        for one in self.all.iter().filter(|one| !within(nodes::range(&one.path), self.own)) {
            let at = nodes::range(&one.path);
            let changes = !one.load && !one.store;
            match () {
                _ if at.start() < self.around.start() && !one.store => return Err(Refusal::Form),
                _ if at.start() >= self.around.end() => behind |= one.load || changes,
                _ if one.store => {}
                _ if changes => return Err(Refusal::Form),
                _ if conditions::rare(&one.path)
                    .is_some_and(|ast| within(ast.range, self.around) && !within(self.own, ast.range)) =>
                {
                    made.push(replace(at, format!("float({})", self.name)));
                }
                // Read in each turn: then nothing is won.
                _ => return Err(Refusal::OnCpu),
            }
        }
        if behind {
            made.push(self.read_behind(file.whole()).ok_or(Refusal::Form)?);
        }
        made.push(kept(file.whole(), call).ok_or(Refusal::Form)?);
        Ok(made)
    }

    /// A line behind the loop that reads the sum.
    fn read_behind(&self, text: &str) -> Option<Replacement> {
        let start = self.around.start().to_usize();
        let indent = &text[text[..start].rfind('\n').map_or(0, |at| at + 1)..start];
        let end = self.around.end().to_usize();
        let line = text[end..].find('\n').map_or(text.len(), |at| end + at);
        // `for x in xs: total += x.item(); print(x)`, and a last line without an end.
        let plain = indent.trim().is_empty() && line < text.len() && !text[end..line].contains(';');
        let break_ = if text[..line].ends_with('\r') { "\r\n" } else { "\n" };
        let at = TextSize::of(&text[..=line]);
        plain.then(|| insert(at, format!("{indent}{0} = float({0}){break_}", self.name)))
    }
}

/// `.item()` as `.detach().double()`.
fn kept(text: &str, call: &ExprCall) -> Option<Replacement> {
    let method = call.func.as_attribute_expr()?;
    let between = text.get(method.value.end().to_usize()..method.attr.start().to_usize())?;
    let dot = between.rfind('.')?;
    let start = method.value.end() + TextSize::of(&between[..=dot]);
    Some(replace(TextRange::new(start, call.end()), "detach().double()"))
}
