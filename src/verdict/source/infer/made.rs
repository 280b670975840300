//! What a tensor is made of, by the text alone: no data, sizes and numbers alone, what Python counts.

use crate::python::facts::{self, Fact};
use crate::python::libraries::*;
use crate::python::parse::{Given, Node, Path, Source, dotted, full_callee, nodes, scope, split_callee};
use ruff_python_ast::{Expr, ExprCall, ExprName};
use ruff_text_size::Ranged;

/// A tensor of no data, which the device could make itself: `torch.randn(64, 20)`.
pub fn is_filled(expr: &Expr) -> bool {
    expr.as_call_expr().is_some_and(|call| {
        function_of(call, Fact::Torch).is_some_and(|name| facts::name(name).is(Fact::Make))
            && !call
                .arguments
                .keywords
                .iter()
                .any(|one| one.arg.as_ref().is_some_and(|name| facts::name(name).is(Fact::Placing)))
    })
}

/// `torch.cat(parts)`.
pub fn joins(expr: &Expr) -> bool {
    expr.as_call_expr()
        .and_then(|call| function_of(call, Fact::Torch))
        .is_some_and(|name| facts::name(name).is(Fact::Join))
}

/// The expression without methods that only change its form: `x` of `x.view(1, n).float()`.
pub(super) fn unformed(expr: &Expr) -> &Expr {
    let formed = expr.as_call_expr().filter(|call| {
        facts::name(nodes::name(&call.func)).any(&[Fact::Form, Fact::Type, Fact::Same, Fact::Tile])
    });
    formed.and_then(nodes::receiver).map_or(expr, unformed)
}

/// The call that makes a tensor of no data, in any form: `torch.zeros(n).unsqueeze(0)`. An expanded tensor is
/// none: moved, it has memory for each element.
pub fn filled(expr: &Expr) -> Option<&ExprCall> {
    Some(unformed(expr)).filter(|expr| is_filled(expr)).and_then(Expr::as_call_expr)
}

/// Whether an expression makes a tensor of no data in any way: in another form, of an array, as old programs
/// write it, perhaps times a number.
///
/// ```text
/// torch.zeros(n).unsqueeze(0)          torch.FloatTensor(np.zeros((n, m)))
/// torch.ones(n) * -1                   Variable(torch.FloatTensor(n, m).zero_())
/// torch.LongTensor(range(n))           torch.tensor(list(range(n)))
/// ```
pub fn fills(expr: &Expr) -> bool {
    match unformed(expr) {
        Expr::BinOp(ast) => nodes::is_number(&ast.right) && fills(&ast.left),
        made @ Expr::Call(call) => is_filled(made) || fills_in_words(call),
        _ => false,
    }
}

/// The name's only value, made anew each time, and not read before, where it might be written to.
pub fn unread<'a>(path: &[Node<'a>], name: &ExprName) -> Option<&'a Expr> {
    let [store] = &*scope::reaching(path, name) else { return None };
    let (value, place) = scope::value(store.clone())?;
    let from = nodes::range(&place).end();
    let mut loops = path.iter().filter(|node| nodes::is_loop(**node));
    let reads = scope::reads(store, &name.id);
    let mut before = reads.iter().map(|read| nodes::range(read).start());
    let used = before.any(|at| (from..name.start()).contains(&at));
    Some(value).filter(|_| !used && loops.all(|one| one.range().contains(from)))
}

const MAX_NAMES: u8 = 6;

/// Whether an expression surely is one array or tensor of long integers, or a slice of one, through names.
/// Other NumPy functions give tuples, scalars and other types, which PyTorch takes otherwise as indices.
///
/// ```text
/// rows = np.arange(n)
/// x[rows[a:b]]
/// ```
pub fn is_array<'a>(file: &'a Source, path: &[Node<'a>], expr: &'a Expr) -> bool {
    fn array<'a>(file: &'a Source, path: &[Node<'a>], expr: &'a Expr, names: u8) -> bool {
        match expr {
            Expr::Call(call) => match nodes::name(&call.func) {
                "long" => nodes::receiver(call).is_some(),
                "arange" | "permutation" | "argsort" => {
                    call.arguments.keywords.is_empty() && full_callee(file, call).starts_with("numpy.")
                }
                _ => false,
            },
            Expr::Subscript(ast) => ast.slice.is_slice_expr() && array(file, path, &ast.value, names),
            Expr::Name(name) if names > 0 => {
                let given = |store: &Path<'a>| match scope::given(store) {
                    Given::Value(value) => array(file, store, value, names - 1),
                    _ => false,
                };
                let stores = scope::reaching(path, name);
                !stores.is_empty() && stores.iter().all(given)
            }
            _ => false,
        }
    }
    array(file, path, expr, MAX_NAMES)
}

/// Whether the expression is another form of what a loop yields: the loop makes it, waited for or not.
///
/// ```text
/// for i, batch in enumerate(loader):
///     x = torch.from_numpy(batch["x"].astype("float32"))
///     y = batch["y"].view(-1)
/// ```
pub fn is_iterated<'a>(path: &[Node<'a>], expr: &'a Expr) -> bool {
    fn iterated<'a>(path: &[Node<'a>], expr: &'a Expr, names: u8) -> bool {
        let of = |part: &'a Expr| iterated(path, part, names);
        match unformed(expr) {
            Expr::Name(name) if names > 0 => {
                nodes::only(scope::reaching(path, name)).is_some_and(|store| match scope::given(&store) {
                    Given::Value(value) | Given::Element(value) => iterated(&store, value, names - 1),
                    Given::Iterated(_) => {
                        let statement = nodes::statement(&store).map(|at| store[at]);
                        statement.is_some_and(nodes::is_loop) && scope::gone_through(&store).is_some()
                    }
                    Given::Other => false,
                })
            }
            Expr::Subscript(ast) => of(&ast.value),
            Expr::Attribute(ast) => of(&ast.value),
            Expr::Call(call) => match nodes::name(&call.func) {
                "next" => true,
                "astype" => nodes::receiver(call).is_some_and(of),
                "from_numpy" | "as_tensor" | "Variable" => call.arguments.args.first().is_some_and(of),
                _ => false,
            },
            _ => false,
        }
    }
    iterated(path, expr, MAX_NAMES)
}

/// Whether [`fills`] holds with random numbers.
pub fn draws(expr: &Expr) -> bool {
    let drawn = |call: &ExprCall| facts::name(nodes::name(&call.func)).is(Fact::Random);
    match unformed(expr) {
        Expr::BinOp(ast) => draws(&ast.left),
        made @ Expr::Call(call) => {
            fills(made)
                && (drawn(call) || call.arguments.args.iter().filter_map(Expr::as_call_expr).any(drawn))
        }
        _ => false,
    }
}

/// Numbers that Python counts one by one, perhaps expanded: `torch.LongTensor(range(n))`.
pub fn counts(expr: &Expr) -> bool {
    unformed(expr).as_call_expr().is_some_and(|made| match nodes::name(&made.func) {
        "expand" | "expand_as" => nodes::receiver(made).is_some_and(counts),
        name => (makes_tensor(name) || is_typed(made)) && made.arguments.args.first().is_some_and(is_range),
    })
}

/// `range(n)`, `list(range(n))`.
fn is_range(data: &Expr) -> bool {
    data.as_call_expr().is_some_and(|call| match (&*dotted(&call.func), &*call.arguments.args) {
        ("range", _) => true,
        ("list" | "tuple", [data]) => is_range(data),
        _ => false,
    })
}

/// `torch.FloatTensor(…)`, `LongTensor(…)`.
fn is_typed(made: &ExprCall) -> bool {
    let callee = dotted(&made.func);
    let (base, name) = split_callee(&callee);
    matches!(base, "" | "torch") && tensor_dtype(name).is_some()
}

fn fills_in_words(call: &ExprCall) -> bool {
    let array = |data: &Expr| {
        data.as_call_expr()
            .and_then(|data| function_of(data, Fact::Numpy))
            .is_some_and(|name| facts::name(name).is(Fact::Make))
    };
    match (nodes::name(&call.func), &*call.arguments.args) {
        (name, values) if facts::name(name).is(Fact::Fill) => {
            let plain = call.arguments.find_keyword("generator").is_none()
                && (name != "fill_" || values.iter().all(nodes::is_number));
            let made = nodes::receiver(call).filter(|_| plain);
            made.is_some_and(|made| made.as_call_expr().is_some_and(is_typed) || fills(made))
        }
        ("Variable", [data]) => fills(data),
        (name, [data]) => (makes_tensor(name) || is_typed(call)) && (array(data) || is_range(data)),
        // Several numbers are sizes.
        (_, [_, _, ..]) => is_typed(call),
        _ => false,
    }
}
