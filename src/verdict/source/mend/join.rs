//! One wait for several reads: `torch.stack([loss, acc]).tolist()`.

use super::neighbours;
use super::text::{beside, insert, line_break, replace};
use super::{READ_ONCE, READ_TOGETHER, WaitingExpr, Written};
use crate::model::edit::{Refusal, Replacement};
use crate::python::facts::{self, Fact};
use crate::python::parse::{Node, dotted, full_name, last, nodes, scope, statement};
use crate::verdict::source::infer::{Here, Placement, sinks};
use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::{Ranged, TextRange};

/// How many values are read on the last node's line.
pub fn on_line(s: WaitingExpr<'_, '_>) -> Option<usize> {
    let (block, at) = nodes::place(s.here.path)?;
    let line = |call: &ExprCall| s.here.file().line_of(call.start());
    let wanted = line(nodes::call(s.here.path)?);
    Some(reads(&block[at]).into_iter().filter(|call| line(call) == wanted).count())
}

struct Reads<'a> {
    stmts: &'a [Stmt],
    calls: Vec<&'a ExprCall>,
    /// Each once, as written.
    names: Vec<String>,
}

/// Reads all values around `call`, the last node of the path, in one wait: on the consecutive lines that
/// read, else in its own statement. `None` where there is one read, or where reading together could change a
/// value.
pub fn together<'a>(s: WaitingExpr<'_, 'a>, call: &'a ExprCall) -> Option<Written> {
    let here = s.here;
    let own = here.path[statement(here.path)?].range();
    let run = neighbours::run(here.path);
    let alone = run.iter().position(|stmt| stmt.range() == own)?;
    let found = |stmts: &'a [Stmt]| Reads::of(here, stmts, call).filter(|reads| reads.calls.len() > 1);
    let reads = found(run).or_else(|| found(&run[alone..=alone]))?;
    let (way, shown) = match &*reads.names {
        [_] => (&READ_ONCE, None),
        names => (&READ_TOGETHER, Some(format!("torch.stack([{}]).tolist()", names.join(", ")))),
    };
    Some(Written { way, shown, lines: reads.lines(here), replacements: reads.joined(here) })
}

impl<'a> Reads<'a> {
    fn of(here: Here<'_, 'a>, stmts: &'a [Stmt], own: &ExprCall) -> Option<Self> {
        let simple = |stmt: &Stmt| {
            matches!(stmt, Stmt::Assign(_) | Stmt::AnnAssign(_) | Stmt::AugAssign(_) | Stmt::Expr(_))
        };
        let bound = Some(bound(stmts)).filter(|_| stmts.iter().all(simple))?;
        let calls: Vec<&ExprCall> = stmts.iter().flat_map(reads).collect();
        let mut names = Vec::new();
        for call in &calls {
            let value = nodes::receiver(call)?;
            if !is_plain(value, &bound) || here.find(value) == Placement::Host {
                return None;
            }
            let name = here.text(value);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        calls.iter().any(|call| call.range() == own.range()).then_some(Self { stmts, calls, names })
    }

    /// Ascending.
    fn lines(&self, here: Here<'_, 'a>) -> Vec<u32> {
        let mut lines: Vec<u32> = self.calls.iter().map(|call| here.file().line_of(call.start())).collect();
        lines.dedup();
        lines
    }

    /// `meter.update(v)` before `meter.avg.item()`: the call may change what is read.
    fn tells(&self, call: &ExprCall) -> bool {
        let told = tells(nodes::name(&call.func));
        let object = nodes::receiver(call).filter(|_| told).map(dotted);
        let holds = |object: &str, name: &str| {
            name.strip_prefix(object).is_some_and(|rest| rest.starts_with(['.', '[']))
        };
        object.is_some_and(|object| self.names.iter().any(|name| holds(&object, name)))
    }

    /// The edit: a reading line before, and names in place of the reads.
    fn joined(&self, here: Here<'_, 'a>) -> Result<Vec<Replacement>, Refusal> {
        let file = here.file();
        let dropped = |call: &ExprCall| {
            let mut alone = self.stmts.iter().filter_map(Stmt::as_expr_stmt);
            alone.any(|ast| ast.value.range() == call.range())
        };
        let harmless = |call: &&ExprCall| {
            let own = self.calls.iter().any(|read| nodes::within(call.range(), read.range()));
            own || (sinks::is_log(call, dropped(call)) || is_harmless(nodes::name(&call.func)))
                && !self.tells(call)
        };
        let others = self.stmts.iter().flat_map(nodes::own_calls);
        let first = self.stmts.first().map(Ranged::start).ok_or(Refusal::Form)?;
        let (indent, ..) = beside(file, TextRange::empty(first));
        let torch = full_name(file, "torch.stack") == "torch.stack" && imports_torch(here);
        let torch = torch || self.names.len() == 1;
        if !torch || !indent.trim().is_empty() || !others.clone().all(|call| harmless(&call)) {
            return Err(Refusal::Form);
        }
        let variables = variables(here, &self.names).ok_or(Refusal::Form)?;
        let read = match &*self.names {
            [name] => format!("{name}.item()"),
            names => format!("torch.stack([v.reshape(()) for v in ({})]).tolist()", names.join(", ")),
        };
        let read = format!("{} = {read}{}{indent}", variables.join(", "), line_break(file));
        let mut all = vec![insert(first, read)];
        for call in &self.calls {
            let name = nodes::receiver(call).map(|value| here.text(value)).unwrap_or_default();
            let at = self.names.iter().position(|known| *known == name).ok_or(Refusal::Form)?;
            all.push(replace(call.range(), variables[at].clone()));
        }
        Ok(all)
    }
}

/// Whether `torch` is the file's import.
pub fn imports_torch(here: Here<'_, '_>) -> bool {
    let bound = scope::bindings(here.path, "torch");
    !bound.is_empty() && bound.iter().all(|store| matches!(last(store), Some(Node::Alias(_))))
}

/// Names for the reads that are new in the file: `loss_value`.
fn variables(here: Here<'_, '_>, names: &[String]) -> Option<Vec<String>> {
    let mut all = Vec::new();
    for name in names {
        let mut words = name.split(|c: char| !c.is_alphanumeric() && c != '_');
        let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
        let stem = words.find(|word| !matches!(*word, "" | "self") && !is_number(word))?;
        let name = format!("{}_value", stem.trim_start_matches('_'));
        if here.file().whole().contains(&name) || all.contains(&name) {
            return None;
        }
        all.push(name);
    }
    Some(all)
}

/// The calls of `.item()` that surely run, once each.
fn reads(stmt: &Stmt) -> Vec<&ExprCall> {
    let is_read = |call: &&ExprCall| {
        call.arguments.is_empty() && nodes::receiver(call).is_some() && nodes::name(&call.func) == "item"
    };
    let mut found = Vec::new();
    nodes::walk(&[Node::from(stmt)], &mut |path| match last(path) {
        Some(Node::ExprLambda(_) | Node::ExprIf(_) | Node::ExprBoolOp(_)) => false,
        Some(node) if nodes::is_comprehension(node) => false,
        _ => {
            found.extend(nodes::call(path).filter(is_read));
            true
        }
    });
    found
}

/// A name that the statements bind may stand for different tensors before and after.
fn bound(stmts: &[Stmt]) -> Vec<&str> {
    let names = stmts.iter().flat_map(|stmt| nodes::names(Node::from(stmt)));
    names.filter(|name| !name.ctx.is_load()).map(|name| name.id.as_str()).collect()
}

/// Names, attributes, constant subscripts and calls of pure methods with constant arguments.
fn is_plain(expr: &Expr, bound: &[&str]) -> bool {
    match expr {
        Expr::Name(name) => !bound.contains(&name.id.as_str()),
        Expr::Attribute(ast) => is_plain(&ast.value, bound),
        Expr::Subscript(ast) => ast.slice.is_literal_expr() && is_plain(&ast.value, bound),
        Expr::Call(call) => {
            nodes::given(call).all(Expr::is_literal_expr)
                && facts::is_pure(nodes::name(&call.func))
                && nodes::receiver(call).is_some_and(|value| is_plain(value, bound))
        }
        _ => false,
    }
}

/// `meter.update(v)`, `losses.append(v)`.
fn tells(method: &str) -> bool {
    method == "update" || facts::name(method).is(Fact::Put)
}

/// Whether a call may stay between joined reads: it writes to no tensor.
fn is_harmless(called: &str) -> bool {
    let facts = facts::name(called);
    let computes = facts::is_pure(called) && !facts.any(&[Fact::Change, Fact::Alter]);
    computes || tells(called) || facts.is(Fact::Text)
}
