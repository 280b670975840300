//! Selections of which only a total is used: how many elements they have decides nothing (S11).

use super::reader::Case;
use crate::python::facts::{self, Fact};
use crate::python::parse::{Node, Path, dotted, last, nodes, scope};
use crate::rules::{grade, says};
use crate::verdict::source::flow::{Step, constant_step};
use crate::verdict::source::infer::{Placement, changes, function_of};
use crate::verdict::source::locate::{Index, SyncExpr};
use crate::vocabulary::{Class, Kind, PatternId, PatternId::*, Verdict};
use ruff_python_ast::{CmpOp, Expr, ExprCall, UnaryOp};
use ruff_text_size::Ranged;

/// Names followed between the selection and its totals.
const MAX_NAMES: u8 = 4;

/// What is asked of the elements that a mask, or an operator, selects.
#[derive(Default)]
struct Asked<'a> {
    /// Text of the mask; `None` where there is none.
    mask: Option<String>,
    /// Whether a mean is taken.
    mean: bool,
    /// Whether some total is of numbers, rather than of what is true or false.
    numbers: bool,
    /// A total is that of distances, which this makes.
    distance: Option<&'a str>,
    /// Whether there may be another number of rows than was selected.
    formed: bool,
    /// How many names were followed.
    names: u8,
    /// Where Python asks how many there are.
    counts: Vec<Path<'a>>,
    /// Where a total is read at once.
    read: Vec<Path<'a>>,
}

impl<'a> Asked<'a> {
    /// Notes a count, two levels above the last node of `path`, where the way ends.
    fn count(&mut self, path: &[Node<'a>]) -> Option<usize> {
        self.counts.push(path[..path.len() - 2].to_vec());
        Some(0)
    }

    /// Notes a total, which the call at the end of `path` makes.
    fn total(&mut self, name: &str, tested: bool, path: &[Node<'a>]) {
        self.mean |= name == "mean";
        self.numbers |= !tested && matches!(name, "sum" | "mean");
        let read = match path {
            [.., Node::ExprCall(_), Node::ExprAttribute(ast), _] => &*ast.attr == "item",
            [.., Node::ExprCall(call), Node::Arguments(_), _] => {
                call.func.as_name_expr().is_some_and(|name| facts::name(&name.id).is(Fact::Number))
            }
            _ => false,
        };
        self.read.extend(read.then(|| path[..path.len() - 2].to_vec()));
    }
}

impl<'a> Case<'_, 'a> {
    /// The verdict on a selection of which only totals and figures are made, in place of one that says that its size is needed.
    ///
    /// Definition: what is selected goes through operators on single elements, and names, to `sum`, `any`, `all`, `mean` over all
    /// of them, to a loss that adds up distances, or to a count that Python only shows. Other operands are numbers, or selections by
    /// the same mask: their sizes agree at full shape too. A total that is read at once, and needed, waits there anyway. Of numbers it is less sure: what is
    /// filled in for the others must do no harm. To gradients it does none that the selection does not: either gives the others zeros.
    ///
    /// ```text
    /// hits = pred[mask] == gold[mask]      waits for the size of each …
    /// return hits.sum()                    … of which nothing depends: what it leaves out is set to false
    /// ```
    /// A mask in brackets may have fewer dimensions than what it selects from, which an assignment by it takes as well; that of
    /// `masked_select` is broadcast, as by `&` and `masked_fill`.
    ///
    /// Cost: one walk over the scope for each name on the way.
    pub(super) fn only_totals(self) -> Option<Verdict> {
        let path = self.here.path;
        let (mask, pattern, count) = match (self.sync, last(path)?) {
            (SyncExpr::Shape(pattern @ B02), _) => {
                (Some(self.here.text(mask(nodes::call(path)?)?)), pattern, "`mask.sum()`")
            }
            (SyncExpr::Index { what: Index::Mask | Index::Name, store: false }, Node::ExprSubscript(ast))
                if !ast.slice.is_tuple_expr() =>
            {
                (Some(self.here.text(&*ast.slice)), B02, "`mask.sum()`")
            }
            // `where` gives a tuple: its length is no count.
            (SyncExpr::Shape(pattern @ B01), _) if nodes::callee(path) != "where" => {
                (None, pattern, "`count_nonzero()`")
            }
            (SyncExpr::Shape(pattern @ B07), _) => {
                let sorted = nodes::callee(path) == "unique";
                let values = if sorted { "the sorted values" } else { "the values" };
                (None, pattern, &*format!("a sum over the changes in {values}"))
            }
            _ => return None,
        };
        let mut asked = Asked { mask, ..Asked::default() };
        if !self.ends_in_totals(path, &mut asked, is_test(path)) {
            return None;
        }
        let counted: Vec<_> = asked.counts.iter().map(|path| self.number(path)).collect();
        if asked.formed && !counted.is_empty()
            || counted.iter().any(|one| one.class != Class::False)
            || asked.read.iter().any(|path| self.number(path).class == Class::True)
        {
            return None;
        }
        let mut verdict = self.without_size(&asked, pattern, (!counted.is_empty()).then_some(count));
        for one in counted {
            verdict.confidence = verdict.confidence.min(one.confidence);
            verdict.evidence.extend(one.evidence);
        }
        Some(verdict)
    }

    /// What makes the same totals at full shape; `count`: what counts on the GPU, where Python asks how many there are.
    fn without_size(self, asked: &Asked<'_>, pattern: PatternId, count: Option<&str>) -> Verdict {
        let what = &self.text;
        let of_mean =
            if asked.mean { ", divided by `mask.sum() * (a.numel() // mask.numel())`," } else { "" };
        let filled = |broadcast: &str, value: &str| match self.sync {
            SyncExpr::Shape(_) => format!("`{broadcast}.sum()`"),
            _ => format!("`a[~mask] = {value}` in a copy `a` of all of it, and `a.sum()`"),
        };
        let (grade, text) = if let Some(distance) = asked.distance {
            let set = match self.sync {
                SyncExpr::Shape(_) => "`a.masked_fill(~mask, 0)`",
                _ => "`a[~mask] = 0` in a copy `a`",
            };
            let text = format!(
                "only `{distance}` of what `{what}` selects is used: {set} of each operand adds nothing to the sum{of_mean} and does not wait"
            );
            (grade::S11_NUMBERS, text)
        } else if asked.numbers {
            let sum = filled("a.masked_fill(~mask, 0)", "0");
            let text = format!(
                "only a total of `{what}` is used: {sum}{of_mean} does not wait (a product with the mask keeps NaN)"
            );
            (grade::S11_NUMBERS, text)
        } else if let Some(count) = count {
            let text = format!("`{what}` is only counted, for what is shown: {count} counts on the GPU");
            (grade::S11_TOTAL, text)
        } else {
            let sum = filled("(a & mask)", "False");
            let text = format!(
                "only a total of what is true in `{what}` is used, so its size decides nothing: {sum}{of_mean} does not wait"
            );
            (grade::S11_TOTAL, text)
        };
        says(grade, Kind::RoundTrip, pattern, text)
    }

    /// What becomes of a count or a total that the CPU gets at the end of `path`.
    fn number(self, path: &Path<'a>) -> Verdict {
        self.at(path).value(A01, false)
    }

    /// Whether all that the last node of `path` comes to are totals and counts, which are noted.
    /// `tested` where they are true or false.
    fn ends_in_totals(self, path: &[Node<'a>], asked: &mut Asked<'a>, mut tested: bool) -> bool {
        match self.onward(path, asked, &mut tested) {
            Some(0) => true,
            Some(levels) => self.ends_in_totals(&path[..path.len() - levels], asked, tested),
            None => false,
        }
    }

    /// How many levels up what the last node of `path` is goes on, 0 where it has come to its totals; `None` where it is used
    /// otherwise.
    fn onward(self, path: &[Node<'a>], asked: &mut Asked<'a>, tested: &mut bool) -> Option<usize> {
        let node = last(path)?;
        match (nodes::above(path, 1)?, nodes::above(path, 2)) {
            (Node::ExprAttribute(ast), Some(Node::ExprCall(call))) => {
                let number = matches!(ast.attr.as_str(), "numel" | "size");
                match number && (asked.mask.is_none() || names_no_other(call)) {
                    true => asked.count(path),
                    false => self.called(call, 0, path, asked, tested),
                }
            }
            (Node::ExprAttribute(ast), Some(Node::ExprSubscript(index)))
                if ast.attr.as_str() == "shape" && is_first(&index.slice) =>
            {
                asked.count(path)
            }
            (Node::Arguments(_), Some(Node::ExprCall(call))) => {
                if dotted(&call.func) == "len" {
                    return asked.count(path);
                }
                // Of a method, the receiver is another operand.
                let (torch, receiver) = (function_of(call, Fact::Torch).is_some(), nodes::receiver(call));
                let fits = torch || receiver.is_none_or(|other| self.fits(other, path, asked));
                let onward = self.called(call, usize::from(torch), path, asked, tested);
                onward.filter(|_| fits && receiver.is_some())
            }
            (Node::ExprBinOp(ast), _) => {
                let other = if nodes::within(node, &*ast.left) { &*ast.right } else { &*ast.left };
                self.fits(other, path, asked).then_some(1)
            }
            (Node::ExprCompare(ast), _) => {
                let told = |op: &CmpOp| !matches!(op, CmpOp::Is | CmpOp::IsNot | CmpOp::In | CmpOp::NotIn);
                let ([op], [right]) = (&*ast.ops, &*ast.comparators) else { return None };
                let other = if nodes::within(node, &*ast.left) { right } else { &*ast.left };
                *tested = true;
                (told(op) && self.fits(other, path, asked)).then_some(1)
            }
            (Node::ExprUnaryOp(ast), _) if ast.op != UnaryOp::Not => Some(1),
            (Node::StmtAssign(ast), _) if asked.names < MAX_NAMES => {
                asked.names += 1;
                let [target @ Expr::Name(name)] = ast.targets.as_slice() else { return None };
                let target = [&path[..path.len() - 1], &[Node::from(target)]].concat();
                let reads = scope::reads(&target, &name.id);
                let over = |read: &Path<'a>, asked: &mut Asked<'a>| {
                    !changes(read) && self.ends_in_totals(read, asked, *tested)
                };
                (!reads.is_empty() && reads.iter().all(|read| over(read, asked))).then_some(0)
            }
            _ => None,
        }
    }

    /// The same for a call of which the last node of `path` is the receiver, or an argument; a total has so many of those.
    fn called(
        self,
        call: &'a ExprCall,
        arguments: usize,
        path: &[Node<'a>],
        asked: &mut Asked<'a>,
        tested: &mut bool,
    ) -> Option<usize> {
        let name = nodes::name(&call.func);
        if facts::name(name).is(Fact::Total) && whole(call, arguments) {
            asked.total(name, *tested, &path[..path.len() - 2]);
            return Some(0);
        }
        if facts::name(name).is(Fact::Form) && arguments == 0 {
            asked.formed = true;
            return Some(2);
        }
        if facts::name(name).is(Fact::Distance) && arguments == 1 {
            let [one, two] = &*call.arguments.args else { return None };
            let other = if nodes::within(last(path)?, one) { two } else { one };
            let total = reduction(call).filter(|_| self.fits(other, path, asked))?;
            asked.distance = Some(name);
            asked.total(total, false, &path[..path.len() - 2]);
            return Some(0);
        }
        if !facts::name(name).any(&[Fact::Each, Fact::Test, Fact::Type, Fact::Same])
            || !self.all_fit(call, last(path)?, asked)
        {
            return None;
        }
        *tested |= facts::name(name).is(Fact::Test);
        Some(2)
    }

    /// Whether all arguments of a call other than the one that holds `node` fit a selection.
    fn all_fit(self, call: &'a ExprCall, node: Node<'a>, asked: &Asked<'a>) -> bool {
        let mut others = call.arguments.args.iter().filter(|other| other.range() != node.range());
        call.arguments.keywords.is_empty() && others.all(|other| self.fits(other, self.here.path, asked))
    }

    /// Whether an operand fits the selection at full shape as well: a number, or what the same mask selects.
    fn fits(self, other: &'a Expr, path: &[Node<'a>], asked: &Asked<'a>) -> bool {
        let same = |mask: &Expr| asked.mask.as_ref() == Some(&self.here.text(mask));
        match other {
            Expr::Call(call) if nodes::name(&call.func) == "masked_select" => mask(call).is_some_and(same),
            Expr::Call(call) if facts::name(nodes::name(&call.func)).is(Fact::Form) => {
                nodes::receiver(call).is_some_and(|other| self.fits(other, path, asked))
            }
            Expr::Subscript(ast) if same(&ast.slice) => true,
            Expr::Name(name) => scope::assigned(path, name).is_some_and(|(value, place)| {
                matches!(value, Expr::Call(_) | Expr::Subscript(_)) && self.fits(value, &place, asked)
            }),
            Expr::UnaryOp(ast) => self.fits(&ast.operand, path, asked),
            _ => other.is_number_literal_expr() && self.here.find(other) == Placement::Host,
        }
    }
}

/// Whether what the last node of `path` selects from is a comparison: `pred.eq(gold)[mask]`.
fn is_test(path: &[Node<'_>]) -> bool {
    let from = match last(path) {
        Some(Node::ExprSubscript(ast)) => Some(&*ast.value),
        Some(Node::ExprCall(call)) if dotted(&call.func) == "torch.masked_select" => {
            call.arguments.args.first()
        }
        Some(Node::ExprCall(call)) => nodes::receiver(call),
        _ => None,
    };
    match from {
        Some(Expr::Call(call)) => facts::name(nodes::name(&call.func)).is(Fact::Test),
        from => from.is_some_and(Expr::is_compare_expr),
    }
}

/// The mask of a call of `masked_select`.
fn mask(call: &ExprCall) -> Option<&Expr> {
    let torch = dotted(&call.func) == "torch.masked_select";
    call.arguments.find_argument_value("mask", usize::from(torch))
}

/// Whether a total is over all elements: no dimension is named.
fn whole(call: &ExprCall, arguments: usize) -> bool {
    let dtype = |name: &ruff_python_ast::Identifier| name.as_str() == "dtype";
    call.arguments.args.len() == arguments
        && call.arguments.keywords.iter().all(|keyword| keyword.arg.as_ref().is_some_and(dtype))
}

/// What a loss makes of the distances of all elements; `None` where it keeps them, or weighs them.
fn reduction(call: &ExprCall) -> Option<&str> {
    let scales = |name: &str| matches!(name, "reduction" | "beta" | "delta");
    let keywords = &call.arguments.keywords;
    keywords.iter().all(|keyword| keyword.arg.as_ref().is_some_and(|name| scales(name))).then_some(())?;
    match call.arguments.find_keyword("reduction").map(|keyword| &keyword.value) {
        None => Some("mean"),
        Some(Expr::StringLiteral(text)) => {
            Some(text.value.to_str()).filter(|text| matches!(*text, "sum" | "mean"))
        }
        Some(_) => None,
    }
}

/// Whether a size asked for is that of the dimension that was selected: `.numel()`, `.size(0)`.
fn names_no_other(call: &ExprCall) -> bool {
    match &*call.arguments.args {
        [] => nodes::name(&call.func) == "numel",
        [only] => is_first(only),
        _ => false,
    }
}

fn is_first(index: &Expr) -> bool {
    constant_step(index) == Some(Step::Index(0))
}
