//! Reads of values that the function has read already, themselves or as their sum (S20).

use super::barrier::surely_before;
use super::origin::repeats;
use super::reader::Case;
use crate::python::facts::{self, Fact};
use crate::python::parse::{Node, Path, Valued, dotted, last, nodes, scope, split_callee};
use crate::rules::grade;
use crate::verdict::source::infer::{changes, function_of};
use crate::verdict::source::locate::{Index, SyncExpr};
use crate::vocabulary::{Class, Kind, PatternId, PatternId::*, Verdict};
use ruff_python_ast::{Expr, ExprCall, UnaryOp};
use ruff_text_size::{Ranged, TextRange};

/// Names and methods followed to what they are made of.
const MAX_STEPS: u8 = 6;

/// Values that the host gets: of a name by the assignments that a read sees, or their sum.
#[derive(PartialEq, Eq)]
struct Values {
    owner: TextRange,
    name: String,
    stores: Vec<TextRange>,
    sum: bool,
}

impl Case<'_, '_> {
    /// Replaces the verdict on a read of what another line of the function reads, unless it is avoidable.
    ///
    /// Definition: both read the same values, or their sum, in whatever shape. All reshapes of a tensor have
    /// one sum, which is also the last element of its cumulated sums.
    ///
    /// ```text
    /// longest = lengths.max()
    /// mask = ids.new_zeros((n, longest))             reads it …
    /// mask[:, :longest] = 1                          … and so does this
    /// y = bias.repeat_interleave(counts, dim=0)      waits for the sum of counts …
    /// rest = len(x) - int(counts.cumsum(0)[-1])      … which this line reads: output_size=
    /// ```
    /// Cost: one walk over the function.
    pub(super) fn read_anyway(self, found: Verdict) -> Verdict {
        if found.class == Class::False {
            return found;
        }
        let open = found.class == Class::Unknown || found.kind == Kind::DynamicShape;
        let Some((line, pattern)) = self.read_elsewhere(open) else { return found };
        let what = match pattern {
            B10 => format!("waits for a total that line {line} reads anyway: pass it as `output_size=`"),
            _ => format!("reads a number that line {line} has read already"),
        };
        self.says(grade::S20, pattern, &what)
    }

    /// The line that reads it, with the pattern. Unless `open`, only a total counts.
    fn read_elsewhere(self, open: bool) -> Option<(u32, PatternId)> {
        let path = self.here.path;
        let call = nodes::call(path);
        let sized = matches!(self.sync, SyncExpr::Shape(B10));
        let wanted = match (self.sync, last(path)?) {
            (SyncExpr::Shape(B10), _) => vec![values(path, repeats(call?)?, true, 0).ok()?],
            (SyncExpr::Item, _) => vec![values(path, nodes::receiver(call?)?, false, 0).ok()?],
            (SyncExpr::Convert("int" | "float"), _) => {
                vec![values(path, call?.arguments.args.first()?, false, 0).ok()?]
            }
            (SyncExpr::Index { what: Index::Slice, .. }, Node::ExprSubscript(ast)) => {
                let bounds = bounds(&ast.slice).into_iter();
                bounds.map(|bound| values(path, bound, false, 0).ok()).collect::<Option<Vec<_>>>()?
            }
            _ => return None,
        };
        let own = nodes::range(path);
        let others =
            nodes::calls(nodes::function_around(path), &|other| sized || other.start() < own.start());
        let read = |wanted: &Values| {
            others.iter().find(|other| {
                !nodes::within(own, nodes::range(other))
                    && surely_before(other, own)
                    && reads(other).iter().any(|read| read.gives(wanted))
            })
        };
        let found =
            wanted.iter().filter(|wanted| open || wanted.sum).map(read).collect::<Option<Vec<_>>>()?;
        let line = self.here.file().line_of(nodes::range(found.first()?).start());
        Some((line, if sized { B10 } else { A39 }))
    }
}

impl Values {
    /// Whether a reader of `self` has `other` too: all elements give their sum.
    fn gives(&self, other: &Self) -> bool {
        (&self.name, self.owner, &self.stores) == (&other.name, other.owner, &other.stores)
            && (!self.sum || other.sum)
    }
}

enum Lost {
    /// Something writes to the values: they may differ from read to read.
    Changed,
    Made,
}

/// The values that an expression holds, in whatever shape, or whose `sum` it is.
fn values<'a>(path: &[Node<'a>], expr: &'a Expr, sum: bool, steps: u8) -> Result<Values, Lost> {
    let further = |expr: Option<&'a Expr>, sum| values(path, expr.ok_or(Lost::Made)?, sum, steps + 1);
    match expr {
        _ if steps > MAX_STEPS => Err(Lost::Made),
        Expr::Name(name) => {
            let owner = scope::owner(path, &name.id);
            if scope::occurrences(&owner, &name.id).iter().any(|one| changes(&one.path)) {
                return Err(Lost::Changed);
            }
            let made = scope::assigned(path, name);
            match made.map(|(value, place)| values(&place, value, sum, steps + 1)) {
                None | Some(Err(Lost::Made)) => {
                    let stores =
                        scope::reaching(path, name).iter().map(|store| nodes::range(store)).collect();
                    Ok(Values { owner: nodes::range(&owner), name: name.id.to_string(), stores, sum })
                }
                Some(told) => told,
            }
        }
        Expr::Call(call) => match nodes::name(&call.func) {
            "sum" if !sum => further(input(call), true),
            "int" | "float" if call.func.is_name_expr() => further(call.arguments.args.first(), sum),
            name if name == "item" || facts::name(name).keeps_elements() => {
                further(nodes::receiver(call), sum)
            }
            _ => Err(Lost::Made),
        },
        Expr::Attribute(ast) if facts::name(&ast.attr).is(Fact::Property) => further(Some(&ast.value), sum),
        Expr::Subscript(ast) if !sum && is_last(&ast.slice) => {
            let (input, at) = cumulated(path, &ast.value).ok_or(Lost::Made)?;
            values(&at, input, true, steps + 1)
        }
        _ => Err(Lost::Made),
    }
}

/// The tensor that `cumsum` adds up, with the place.
fn cumulated<'a>(path: &[Node<'a>], expr: &'a Expr) -> Option<Valued<'a>> {
    let (value, at) = match expr {
        Expr::Name(name) => scope::assigned(path, name)?,
        value => (value, path.to_vec()),
    };
    let call = value.as_call_expr().filter(|call| nodes::name(&call.func) == "cumsum")?;
    let torch = function_of(call, Fact::Torch).is_some();
    let input = if torch { call.arguments.args.first()? } else { nodes::receiver(call)? };
    Some((input, at))
}

/// The argument of `torch.sum(x)` and `sum(x)`, the receiver of `x.sum()`; `None` where a dimension is named.
fn input(call: &ExprCall) -> Option<&Expr> {
    match (split_callee(&dotted(&call.func)).0, &*call.arguments.args, call.arguments.keywords.is_empty()) {
        ("" | "torch", [only], true) => Some(only),
        ("" | "torch", ..) => None,
        (_, [], true) => nodes::receiver(call),
        _ => None,
    }
}

fn reads(path: &Path<'_>) -> Vec<Values> {
    let Some(call) = nodes::call(path) else { return Vec::new() };
    let arguments = &*call.arguments.args;
    let parts: Vec<&Expr> = match split_callee(&dotted(&call.func)) {
        ("", "int" | "float" | "range") => arguments.first().into_iter().collect(),
        (base, "item" | "tolist" | "cpu") if !base.is_empty() => nodes::receiver(call).into_iter().collect(),
        (_, name) if facts::name(name).is(Fact::Size) => arguments.iter().flat_map(terms).collect(),
        _ => Vec::new(),
    };
    parts.into_iter().filter_map(|part| values(path, part, false, 0).ok()).collect()
}

/// The elements of a tuple of sizes, and the terms of each.
fn terms(size: &Expr) -> Vec<&Expr> {
    match size {
        Expr::Tuple(_) | Expr::List(_) => nodes::listed(size).iter().flat_map(terms).collect(),
        Expr::BinOp(ast) => [&*ast.left, &*ast.right].into_iter().flat_map(terms).collect(),
        _ => vec![size],
    }
}

/// Without literals.
fn bounds(index: &Expr) -> Vec<&Expr> {
    nodes::bounds(index).filter(|bound| !bound.is_literal_expr()).collect()
}

fn is_last(index: &Expr) -> bool {
    let Expr::UnaryOp(ast) = index else { return false };
    ast.op == UnaryOp::USub && nodes::int(&ast.operand) == Some(1)
}
