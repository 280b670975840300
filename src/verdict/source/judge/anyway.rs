//! Reads of what the program reads anyway: a total or a number that another line asks for, and a guard on a value that is
//! logged.

use super::barrier::surely_before;
use super::origin::repeats;
use super::reader::Case;
use super::rules::GUARD;
use crate::model::Frame;
use crate::python::facts::{self, Fact};
use crate::python::parse::{Node, Path, dotted, last, nodes, scope, split_callee};
use crate::rules::grade;
use crate::verdict::source::flow::{Program, Sink, Tracer, Use, Value, conditions::is_about_nan};
use crate::verdict::source::infer::{Here, Objects, changes, function_of};
use crate::verdict::source::locate::{Index, SyncExpr};
use crate::vocabulary::{Class, Kind, PatternId, PatternId::*, Verdict};
use ruff_python_ast::{Expr, ExprCall, ExprName, Operator, Stmt, UnaryOp};
use ruff_text_size::{Ranged, TextRange};

/// Names followed to what they are assigned.
const MAX_STEPS: u8 = 6;

impl<'a> Case<'_, 'a> {
    /// The verdict on a read that another line of the program makes superfluous, in place of one that says it is needed.
    pub(super) fn read_anyway(self, found: Verdict) -> Verdict {
        let told = match found.class {
            Class::True => {
                let bounds = || self.same_number().filter(|_| found.kind == Kind::DynamicShape);
                self.same_total()
                    .or_else(|| self.kept_total())
                    .or_else(|| self.logged(&found))
                    .or_else(bounds)
            }
            Class::Unknown => self.same_number(),
            Class::False => None,
        };
        let Some((pattern, what)) = told else { return found };
        self.says(grade::S20_ANYWAY, Kind::HostKnown, pattern, &what)
    }

    /// A size or a number that is the sum of values whose sum another line of the function reads.
    ///
    /// Definition: the sum of a tensor is the same for all its reshapes, and the last element of its cumulated sums is it.
    ///
    /// ```text
    /// ends = counts.cumsum(0)
    /// y = bias.repeat_interleave(counts, dim=0)      waits for the sum of counts …
    /// rest = len(x) - int(ends[-1])                  … which this line reads: output_size=
    /// ```
    /// Cost: one walk over the function.
    fn same_total(self) -> Option<(PatternId, String)> {
        let path = self.here.path;
        let call = nodes::call(path)?;
        let sized = matches!(self.sync, SyncExpr::Shape(B10));
        let wanted = match self.sync {
            SyncExpr::Shape(B10) => values(path, repeats(call)?, 0)?,
            SyncExpr::Item => total(path, nodes::receiver(call)?, 0)?,
            SyncExpr::Convert("int" | "float") => total(path, call.arguments.args.first()?, 0)?,
            _ => return None,
        };
        let own = nodes::range(path);
        let others =
            nodes::calls(nodes::function_around(path), &|other| sized || other.start() < own.start());
        let other = others.iter().find(|other| {
            nodes::range(other) != own
                && surely_before(other, own)
                && hands_over(other).as_ref() == Some(&wanted)
        })?;
        let line = self.here.file().line_of(nodes::range(other).start());
        Some(if sized {
            (B10, format!("waits for a total that line {line} reads anyway: pass it as `output_size=`"))
        } else {
            (A39, format!("reads a total that line {line} has read already"))
        })
    }

    /// A total that a batch of graphs keeps as a number: of PyTorch Geometric's, where each graph starts is in `ptr`; DGL's is
    /// asked for it.
    ///
    /// ```text
    /// torch.repeat_interleave(w, batch.ptr[1:] - batch.ptr[:-1])      as many as batch.num_nodes
    /// torch.repeat_interleave(w, g.batch_num_nodes())                 as many as g.num_nodes()
    /// ```
    fn kept_total(self) -> Option<(PatternId, String)> {
        let path = self.here.path;
        let SyncExpr::Shape(B10) = self.sync else { return None };
        let counts = repeats(nodes::call(path)?)?;
        let given = nodes::only(Objects::new(self.here.file()).values_of(counts, path));
        let text = self.here.text(given.map_or(counts, |(value, _)| value));
        let total = match text.split_once(".ptr") {
            Some((batch, rest)) if rest == ".diff()" || rest == format!("[1:] - {batch}.ptr[:-1]") => {
                format!("{batch}.num_nodes")
            }
            _ => format!("{}.num_nodes()", text.strip_suffix(".batch_num_nodes()")?),
        };
        Some((B30, format!("waits for a total that the batch keeps: pass `output_size={total}`")))
    }

    /// A number that an earlier line of the function reads as well: by `item()` and its kin, or as a size.
    ///
    /// ```text
    /// longest = lengths.max()
    /// mask = ids.new_zeros((n, longest))       reads it …
    /// mask[:, :longest] = 1                    … and so does this
    /// ```
    /// Cost: one walk over the function.
    fn same_number(self) -> Option<(PatternId, String)> {
        let path = self.here.path;
        let call = nodes::call(path);
        let wanted: Vec<&Expr> = match (self.sync, last(path)?) {
            (SyncExpr::Item, _) => vec![nodes::receiver(call?)?],
            (SyncExpr::Convert("int" | "float"), _) => vec![call?.arguments.args.first()?],
            (SyncExpr::Index { what: Index::Slice, .. }, Node::ExprSubscript(ast)) => bounds(&ast.slice),
            _ => return None,
        };
        let own = nodes::range(path);
        let others = nodes::calls(nodes::function_around(path), &|other| other.start() < own.start());
        let earlier = |wanted: &Expr| {
            let wanted = values(path, Some(wanted).filter(|one| one.is_name_expr())?, 0)?;
            others.iter().find(|other| surely_before(other, own) && numbers(other).contains(&wanted))
        };
        let read = wanted.into_iter().map(earlier).collect::<Option<Vec<_>>>()?;
        let line = self.here.file().line_of(nodes::range(read.first()?).start());
        Some((A39, format!("reads a number that line {line} has read already")))
    }

    /// A guard that looks for NaN or infinity in what is logged anyway.
    fn logged(self, found: &Verdict) -> Option<(PatternId, String)> {
        if found.pattern != Some(GUARD) || !is_about_nan(self.text) {
            return None;
        }
        let node = last(self.here.path)?;
        // One that leaves the loop spares the rest of the turn.
        let Node::StmtIf(ast) = self.here.path[nodes::statement(self.here.path)?] else { return None };
        if ast.body.iter().any(Stmt::is_break_stmt) {
            return None;
        }
        let tensor = nodes::only(read(node).filter(|name| !facts::module(&name.id).is(Fact::Numeric)))?;
        let frame = self.site.frames.first()?;
        let what = self.shown(self.here, frame, 0, tensor, ast.range)?;
        Some((A39, format!("guards a value that is {what} anyway: test the number that is read there")))
    }

    /// What shows a tensor, or the values that it was added up from, on the host: in its function, or in that of a caller which
    /// passes it.
    fn shown<'b>(
        self,
        here: Here<'_, 'b>,
        frame: &Frame,
        inner: usize,
        tensor: &'b ExprName,
        guard: TextRange,
    ) -> Option<String> {
        let lines = here.file().line_of(guard.start())..=here.file().line_of(guard.end());
        let program = Program { tree: self.site.tree, recorded: &frame.file, depth: 0 };
        for (name, path) in with_terms(here.path, tensor) {
            for store in scope::reaching(&path, name) {
                let mut tracer = Tracer::new(here.placements, Some(program));
                tracer.name(&store, &name.id, Value::new(&store, true));
                let told = |used: &&Use| used.sink == Sink::Log && !lines.contains(&used.line);
                if let Some(used) = tracer.uses.iter().find(told) {
                    return Some(used.told());
                }
            }
        }
        if inner > 0 {
            return None;
        }
        self.site.with_argument(here, inner, tensor, &|here, caller, argument| {
            self.shown(here, caller.frame, caller.at, argument.as_name_expr()?, TextRange::default())
        })
    }
}

/// Values of the program: a name, and the assignments of it that a read sees.
#[derive(PartialEq, Eq)]
struct Values {
    owner: TextRange,
    name: String,
    stores: Vec<TextRange>,
}

/// The values that an expression holds, in whatever shape.
fn values<'a>(path: &[Node<'a>], expr: &'a Expr, steps: u8) -> Option<Values> {
    match expr {
        _ if steps > MAX_STEPS => None,
        Expr::Name(name) => {
            let owner = scope::owner(path, &name.id);
            if scope::occurrences(&owner, &name.id).iter().any(|one| changes(&one.path)) {
                return None;
            }
            let stores = scope::reaching(path, name);
            let further =
                scope::assigned(path, name).and_then(|(value, place)| values(&place, value, steps + 1));
            further.or_else(|| {
                let stores = stores.iter().map(|store| nodes::range(store)).collect();
                Some(Values { owner: nodes::range(&owner), name: name.id.to_string(), stores })
            })
        }
        Expr::Call(call) if facts::name(nodes::name(&call.func)).keeps_elements() => {
            values(path, nodes::receiver(call)?, steps + 1)
        }
        Expr::Attribute(ast) if facts::name(&ast.attr).is(Fact::Property) => {
            values(path, &ast.value, steps + 1)
        }
        _ => None,
    }
}

/// The values that an expression is the sum of.
fn total<'a>(path: &[Node<'a>], expr: &'a Expr, steps: u8) -> Option<Values> {
    match expr {
        _ if steps > MAX_STEPS => None,
        Expr::Name(name) => {
            let (value, place) = scope::assigned(path, name)?;
            total(&place, value, steps + 1)
        }
        Expr::Call(call) => match nodes::name(&call.func) {
            "sum" => values(path, input(call)?, steps + 1),
            "int" | "float" if call.func.is_name_expr() => {
                total(path, call.arguments.args.first()?, steps + 1)
            }
            name if name == "item" || facts::name(name).keeps_elements() => {
                total(path, nodes::receiver(call)?, steps + 1)
            }
            _ => None,
        },
        Expr::Subscript(ast) if is_last(&ast.slice) => {
            let (cumulated, at) = match &*ast.value {
                Expr::Name(name) => scope::assigned(path, name)?,
                value => (value, path.to_vec()),
            };
            let call = cumulated.as_call_expr().filter(|call| nodes::name(&call.func) == "cumsum")?;
            let torch = function_of(call, Fact::Torch).is_some();
            let input = if torch { call.arguments.args.first()? } else { nodes::receiver(call)? };
            values(&at, input, steps + 1)
        }
        _ => None,
    }
}

/// The only argument of `torch.sum(x)` and `sum(x)`, the receiver of `x.sum()`; none where a dimension is named.
fn input(call: &ExprCall) -> Option<&Expr> {
    match (split_callee(&dotted(&call.func)).0, &*call.arguments.args, call.arguments.keywords.is_empty()) {
        ("" | "torch", [only], true) => Some(only),
        ("" | "torch", ..) => None,
        (_, [], true) => nodes::receiver(call),
        _ => None,
    }
}

fn is_last(index: &Expr) -> bool {
    let Expr::UnaryOp(ast) = index else { return false };
    ast.op == UnaryOp::USub && nodes::int(&ast.operand) == Some(1)
}

/// The values whose sum a call hands to Python.
fn hands_over(path: &Path<'_>) -> Option<Values> {
    let call = nodes::call(path)?;
    let first = call.arguments.args.first();
    match split_callee(&dotted(&call.func)) {
        ("", "int" | "float" | "range") | ("torch", "arange" | "zeros" | "empty" | "ones") => {
            total(path, first?, 0)
        }
        (base, "item") if !base.is_empty() => total(path, nodes::receiver(call)?, 0),
        (base, "tolist" | "cpu") if !base.is_empty() => values(path, nodes::receiver(call)?, 0),
        _ => None,
    }
}

/// The bounds of slices in an index, other than those that are written out.
fn bounds(index: &Expr) -> Vec<&Expr> {
    let slices = nodes::elements(index).iter().filter_map(Expr::as_slice_expr);
    let bounds = slices.flat_map(|slice| [&slice.lower, &slice.upper, &slice.step]).flatten();
    bounds.map(|bound| &**bound).filter(|bound| !bound.is_literal_expr()).collect()
}

/// The names whose values a call reads as numbers.
fn numbers(path: &Path<'_>) -> Vec<Values> {
    let Some(call) = nodes::call(path) else { return Vec::new() };
    let arguments = &*call.arguments.args;
    let parts: Vec<&Expr> = match split_callee(&dotted(&call.func)) {
        ("", "int" | "float") => arguments.first().into_iter().collect(),
        (base, "item") if !base.is_empty() => nodes::receiver(call).into_iter().collect(),
        (_, name) if facts::name(name).is(Fact::Size) => arguments.iter().flat_map(terms).collect(),
        _ => Vec::new(),
    };
    parts.into_iter().filter(|part| part.is_name_expr()).filter_map(|part| values(path, part, 0)).collect()
}

/// The sizes in an argument: of a tuple of them, and the terms of each.
fn terms(size: &Expr) -> Vec<&Expr> {
    match size {
        Expr::Tuple(_) | Expr::List(_) => nodes::listed(size).iter().flat_map(terms).collect(),
        Expr::BinOp(ast) => [&*ast.left, &*ast.right].into_iter().flat_map(terms).collect(),
        _ => vec![size],
    }
}

/// A tensor, and the names that it was added up from: `losses = sum(parts.values())`, `loss = a + b`.
fn with_terms<'a>(path: &[Node<'a>], tensor: &'a ExprName) -> Vec<(&'a ExprName, Path<'a>)> {
    let mut found = vec![(tensor, path.to_vec())];
    if let Some((value, place)) = scope::assigned(path, tensor) {
        let sums = match value {
            Expr::Call(call) => nodes::name(&call.func) == "sum",
            Expr::BinOp(ast) => ast.op == Operator::Add,
            _ => false,
        };
        let terms = read(Node::from(value)).filter(|name| !matches!(&*name.id, "sum" | "torch"));
        found.extend(terms.filter(|_| sums).map(|name| (name, place.clone())));
    }
    found
}

/// The names that are read at and below a node.
fn read<'a>(node: Node<'a>) -> impl Iterator<Item = &'a ExprName> {
    nodes::names(node).into_iter().filter(|name| name.ctx.is_load())
}
