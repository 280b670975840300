//! Verdicts that need no data flow: the expression and the trace decide.

use super::reader::Case;
use crate::catalogue;
use crate::python::facts;
use crate::python::parse::{Node, dotted, last, nodes};
use crate::rules::{grade, says, says_of};
use crate::verdict::operators::{self, READS, SELECTS};
use crate::verdict::source::infer::Placement;
use crate::verdict::source::locate::{Index, SyncExpr, converted, fit};
use crate::vocabulary::{Class, Kind, NUMBER_BYTES, PatternId, PatternId::*, Verdict};
use ruff_python_ast::Expr;
use ruff_text_size::Ranged;

impl<'a> Case<'_, 'a> {
    /// The verdict on an expression that is the same whatever becomes of its result.
    pub(super) fn settled(self) -> Verdict {
        let (grade, pattern, what) = match self.sync {
            SyncExpr::Index { what, store } => {
                return self.only_totals().unwrap_or_else(|| self.index(what, store));
            }
            SyncExpr::Shape(pattern) => {
                let pattern = if pattern == B02 { self.masked() } else { pattern };
                return self.only_totals().unwrap_or_else(|| self.shape(pattern));
            }
            SyncExpr::Check(pattern) => {
                let text = format!("`{}` waits only to see whether it failed", nodes::callee(self.here.path));
                return says(grade::R11_LINE, pattern, text);
            }
            SyncExpr::ClipGrad => {
                let text = "clip_grad_norm_ branches on the norm to raise on NaN or infinity: \
                            `error_if_nonfinite=False` does not wait";
                return says_of(grade::R17_CALLED, Kind::ControlFlow, A19, text);
            }
            SyncExpr::ScalerStep => {
                let text = "GradScaler.step skips the optimizer when it finds an infinity: \
                            a fused optimizer decides on the GPU";
                return says(grade::R12_LINE, A20, text);
            }
            SyncExpr::Download(_) => {
                // Arrays and code of the host need the tensor there, whatever the line was written for.
                let used = self.value(D01, true);
                if used.class == Class::True {
                    return used;
                }
                (grade::S10, D03, "names a CPU tensor type where a dtype was meant")
            }
            SyncExpr::Order => {
                // The picked value goes on as a tensor: if it stays on the device, the comparison can too.
                let picked = self.value(A05, false);
                if picked.kind == Kind::RoundTrip {
                    return picked;
                }
                (grade::S14, A05, "compares tensors in Python, one wait a comparison")
            }
            SyncExpr::SchedulerStep => (grade::S06_RATE, A24, "computes the learning rate on the CPU"),
            SyncExpr::EmptyCache => (grade::S16, G01, "waits to give memory back to the driver"),
            SyncExpr::Barrier => {
                (grade::R14_LINE, H03, "makes the ranks wait for each other; no value is read")
            }
            SyncExpr::SizeArgument => (grade::S06_SIZE, A07, "takes a tensor's value as a size or bound"),
            SyncExpr::Save => (grade::S06_WRITE, D07, "writes tensors to a file"),
            _ => (grade::S19_OPEN, A01, "waits for a reason that the tool does not know"),
        };
        self.says(grade, pattern, what)
    }

    fn index(self, what: Index, store: bool) -> Verdict {
        let size = |grade, pattern, whose: &str| {
            let text = format!("the size of `{}` depends on the {whose}'s values", self.text);
            says(grade, pattern, text)
        };
        match (fit::downward(self.site.observed), what) {
            (Some(false), _) => {
                let (pattern, what) = match (store, what) {
                    (true, Index::Constant) if stores_number(self.here.path) => (C06, "the value"),
                    (true, _) if self.fills() => (C05, "the value or the index"),
                    (true, _) => (C17, "the value or the index"),
                    (false, _) => (self.listed(), "the index"),
                };
                self.says(grade::S12, pattern, &format!("uploads {what} and waits for it"))
            }
            (_, Index::Mask) if store => {
                let text = format!(
                    "`{} = …` counts the mask's ones on the CPU, though no shape depends on it: `torch.where` or `masked_scatter_` do not wait",
                    self.text
                );
                says(grade::S11, self.masked(), text)
            }
            (_, Index::Mask) => size(grade::S11, self.masked(), "mask"),
            (Some(true), _) if store && self.site.observed.largest > NUMBER_BYTES => self.stored_down(),
            (Some(true), Index::Slice | Index::Name) if self.picks() => {
                let what = if store {
                    "reads its index from the device to write to a tensor there: `index_fill_` and `index_copy_` take it there"
                } else {
                    "reads its index from the device to pick from a tensor: `index_select` takes it there, and one read before the loop fetches all"
                };
                self.says(grade::S07, A09, what)
            }
            (_, Index::Slice) => {
                let text = format!("the bounds of `{}` are read from the device", self.text);
                says(grade::S06_SIZE, if store { A45 } else { A08 }, text)
            }
            (Some(true), Index::Name) if self.counts() => size(grade::S11_NAME, self.masked(), "index"),
            (Some(true), Index::Name) => self.says(grade::S11_NAME, A09, "reads its index from the device"),
            (None, Index::List) => self.says(grade::S12, self.listed(), "uploads its index"),
            _ => self.says(grade::S11_OPEN, A09, "may read or upload its index"),
        }
    }

    fn parts(self) -> &'a [Expr] {
        match last(self.here.path) {
            Some(Node::ExprSubscript(ast)) => nodes::elements(&ast.slice),
            _ => &[],
        }
    }

    /// The entry of a selection by host indices: a list of consecutive numbers is a slice.
    fn listed(self) -> PatternId {
        let index = |part: &&Expr| !part.is_slice_expr() && !part.is_ellipsis_literal_expr();
        let list = nodes::only(self.parts().iter().filter(index)).and_then(Expr::as_list_expr);
        let numbers = list.and_then(|list| list.elts.iter().map(nodes::int).collect::<Option<Vec<i64>>>());
        let follow = |numbers: &[i64]| numbers.array_windows().all(|[one, next]| next - one == 1);
        if numbers.is_some_and(|numbers| !numbers.is_empty() && follow(&numbers)) { C18 } else { C07 }
    }

    /// Whether one number is stored at the indices of one dimension, as `index_fill_` does.
    fn fills(self) -> bool {
        let one = nodes::only(self.parts().iter().filter(|part| !part.is_slice_expr()));
        stores_number(self.here.path) && one.is_some_and(|one| !dotted(one).contains("mask"))
    }

    /// `x[mask] += value`: read and written by the mask.
    fn is_augmented(self) -> bool {
        matches!(self.here.path, [.., Node::StmtAugAssign(ast), own] if nodes::within(*own, &*ast.target))
    }

    /// The entry of a selection by a mask, or of a store there. A selection that goes on unchanged is not
    /// reduced at once.
    fn masked(self) -> PatternId {
        match self.here.path {
            _ if self.is_augmented() => B31,
            _ if self.is_stored_alike() => B34,
            [.., Node::ExprSubscript(ast)] if ast.ctx.is_store() => B03,
            [.., Node::StmtAssign(_) | Node::StmtReturn(_) | Node::ExprList(_) | Node::ExprTuple(_), _] => {
                B32
            }
            _ => B02,
        }
    }

    /// `x[mask] = y[mask].clone()`, either side: what is selected is stored at the same places.
    fn is_stored_alike(self) -> bool {
        let assigned = |node: &Node<'a>| if let Node::StmtAssign(ast) = node { Some(*ast) } else { None };
        let Some(ast) = self.here.path.iter().rev().find_map(assigned) else { return false };
        let [Expr::Subscript(to)] = ast.targets.as_slice() else { return false };
        let mut value = Some(&*ast.value);
        while let Some(Expr::Call(call)) = value
            && facts::name(nodes::name(&call.func)).keeps_elements()
        {
            value = nodes::receiver(call);
        }
        let Some(Expr::Subscript(from)) = value else { return false };
        let own = nodes::range(self.here.path);
        (own == to.range() || own == from.range())
            && self.here.text(&*to.slice) == self.here.text(&*from.slice)
    }

    /// A device tensor is stored in one of the host: its use decides.
    fn stored_down(self) -> Verdict {
        let [above @ .., Node::StmtAssign(ast), _] = self.here.path else {
            return self.says(grade::S06_OPEN, D01, "stores in a tensor of the CPU");
        };
        let path = [above, &[Node::from(*ast), Node::from(&*ast.value)]].concat();
        self.at(&path).value(D01, true)
    }

    /// Whether the trace says that a number of the device is an index itself. Python asks for bounds of
    /// slices and indices of lists by `__index__`.
    fn picks(self) -> bool {
        let Some(Node::ExprSubscript(ast)) = last(self.here.path) else { return false };
        let site = self.site.observed;
        matches!(site.method, Some("getitem" | "setitem"))
            && site.operator.is_some_and(|operator| READS.has(operator))
            && site.copy.is_some_and(|copy| copy.bytes > 1)
            && self.parts().iter().any(|part| !part.is_slice_expr() && !part.is_literal_expr())
            && self.here.find(&ast.value) != Placement::Host
    }

    /// Whether the trace counted elements of a mask, and did not ask for a number.
    fn counts(self) -> bool {
        let counting = |operator| SELECTS.has(operator) || operator == "index_put_";
        self.site.observed.operator.is_some_and(counting)
            || self.site.observed.copy.is_some_and(|copy| copy.bytes == 4)
                && !self.site.observed.method.is_some_and(fit::makes_number)
    }

    fn shape(self, pattern: PatternId) -> Verdict {
        if fit::downward(self.site.observed) == Some(false) {
            return self.says(grade::R01_LINE, pattern, "uploads an argument");
        }
        let op = nodes::callee(self.here.path);
        let known = operators::called(op);
        let why = known.and_then(|known| known.spared).map_or("", |(.., how)| how);
        let text = format!("the output size of `{op}` depends on values{why}");
        let grade = known.map_or(grade::S11, |known| known.grades.1);
        says(grade, pattern, text)
    }

    pub(super) fn inside(self) -> Verdict {
        let (observed, text) = (self.site.observed, self.text);
        if fit::is_memory(observed) {
            let what = format!("made PyTorch's allocator call {}", observed.api);
            return self.says(grade::S19, G02, &what);
        }
        if fit::downward(observed) == Some(false) {
            return self.says(grade::R01_LINE, C03, "uploads: no GPU value reaches the CPU");
        }
        let Some((file, function)) = observed.through else {
            // What the call does with the number decides.
            let asked = observed.method.filter(|method| fit::makes_number(method));
            if let Some(path) = asked.and_then(|_| converted(self.here)) {
                return self.at(&path).value(A02, false);
            }
            let number = observed.operator.is_some_and(|operator| READS.has(operator));
            let mut arguments = nodes::call(self.here.path).into_iter().flat_map(|call| &call.arguments.args);
            if number && arguments.any(|argument| self.here.find(argument) == Placement::Device) {
                let what = "reads a number from the device to hand it back: pass the tensor where a tensor is accepted";
                return self.says(grade::S07, A11, what);
            }
            return says(grade::S19_OPEN, A11, format!("the wait is inside `{text}`"));
        };
        let file = file.replace('\\', "/");
        // The scaler's scale is a value like any other.
        if fit::is_scaler(&file) && matches!(function, "state_dict" | "get_scale") {
            return self.value(A21, false);
        }
        let name = file.rsplit('/').next().unwrap_or(&file);
        let text = format!("the wait is in `{function}` of {name}");
        let known = catalogue::library_site(&[(&file, function)], &|_| None)
            .filter(|known| known.sure && !known.wraps);
        let entry = known.and_then(|known| known.entries.first().copied());
        match entry.and_then(|entry| Some((entry, entry.kind?))) {
            Some((entry, kind)) => {
                says_of(grade::R17_CALLED, kind, entry.id, format!("{text}: {}", entry.title))
            }
            None => says(grade::S19_OPEN, A01, text),
        }
    }
}

pub fn stores_number(path: &[Node<'_>]) -> bool {
    matches!(path, [.., Node::StmtAssign(ast), Node::ExprSubscript(_)] if is_number(&ast.value))
}

/// A Python number: `-1`, `-np.inf`, `float("-inf")`.
fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::UnaryOp(ast) => is_number(&ast.operand),
        Expr::Attribute(ast) => matches!(ast.attr.as_str(), "inf" | "nan" | "pi"),
        Expr::Call(call) => matches!(dotted(&call.func).as_str(), "float" | "int"),
        _ => expr.is_number_literal_expr() || expr.is_boolean_literal_expr(),
    }
}
