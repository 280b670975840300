//! What a synchronising expression does, told from its text.

use super::nature::{Nature, Natures};
use super::nodes::{self, Node, argument, dotted, flag, last, split_callee, string, within};
use super::sinks;
use ruff_python_ast::{CmpOp, Expr, ExprCall, ExprContext, ExprSubscript, Operator, UnaryOp};
use ruff_text_size::Ranged;

/// What an expression that may wait does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// `.item()`.
    Item,
    /// `float(t)`, `int(t)`, `math.sqrt(t)`, …
    Convert(&'static str),
    /// `bool(t)`, `torch.is_nonzero(t)`.
    Bool,
    /// `torch.equal`, `torch.allclose`.
    Same(&'static str),
    /// A tensor where Python wants true or false.
    Truth,
    /// `max(a, b)`, `sorted(ts)`: comparisons by Python.
    Order,
    /// `x in t`.
    Contains,
    /// `.tolist()`.
    ToList,
    /// `.cpu()`, `.to("cpu")`, `.numpy()` of a device tensor, `.type(torch.FloatTensor)`.
    Download(&'static str),
    /// `.cuda()`, `.to(device)`, `.copy_()`: a copy whose direction the trace knows.
    Move(&'static str, Nature),
    /// `torch.tensor(…, device=…)` and its kin.
    Create(&'static str),
    /// The same of a list or tuple of tensors, which are read one by one.
    Elements,
    /// `x[…]`, load or store.
    Index { what: Index, store: bool },
    /// An operator whose output size depends on values, with its pattern.
    Shape(&'static str, &'static str),
    /// An operator that checks for errors on the host.
    Check(&'static str),
    /// `clip_grad_norm_`.
    ClipGrad,
    /// `GradScaler.step`.
    ScalerStep,
    /// `scaler.get_scale()`.
    GetScale,
    /// `scheduler.step(metric)`.
    SchedulerStep,
    /// Text made from a tensor: `print(t)`, `f"{t}"`, `logger.info("%s", t)`.
    Format,
    /// `synchronize()`.
    Explicit,
    /// `torch.cuda.empty_cache()`.
    EmptyCache,
    /// `dist.barrier()`.
    Barrier,
    /// A tensor where a size is wanted: `range(t)`, `torch.zeros(t)`.
    SizeArgument,
    /// `torch.save`.
    Save,
    /// Any other call or protocol use; stands for what happens inside it.
    Other,
}

/// What a subscript's index looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// `x[a > b]`, `x[~m]`, `x[mask]`.
    Mask,
    /// `x[i:j]`.
    Slice,
    /// `x[[0, 2]]`, a list or CPU tensor.
    List,
    /// `x[0]`, constants only.
    Constant,
    /// `x[i]`.
    Name,
}

/// An act with how plainly the text shows that it waits: 3 plainly, 2 probably, 1 perhaps, 0 only if the trace says so.
pub type Guess = (Act, u8);

/// The acts that the last node of `path` can be.
pub fn acts<'a>(path: &[Node<'a>], natures: &Natures<'a>) -> Vec<Guess> {
    let mut acts = Vec::new();
    match last(path) {
        Some(Node::ExprCall(call)) => acts.extend(call_acts(call, path, natures)),
        Some(Node::ExprSubscript(ast)) => acts.extend(subscript(ast, path, natures)),
        Some(Node::ExprCompare(ast)) if ast.ops.iter().any(|op| matches!(op, CmpOp::In | CmpOp::NotIn)) => {
            acts.push((Act::Contains, 1));
        }
        Some(Node::StmtFor(_) | Node::StmtWith(_) | Node::Comprehension(_)) => acts.push((Act::Other, 0)),
        _ => {}
    }
    if let Some(node) = last(path)
        && let Some(expr) = tested(path)
        && node.is_expression()
    {
        match natures.of(expr, path) {
            Nature::Host => {}
            Nature::Device => acts.push((Act::Truth, 2)),
            Nature::Unknown => acts.push((Act::Truth, 1)),
        }
    }
    if let Some(expr) = formatted(path)
        && natures.of(expr, path) != Nature::Host
    {
        acts.push((Act::Format, 1));
    }
    acts
}

/// The acts of a call.
fn call_acts<'a>(call: &'a ExprCall, path: &[Node<'a>], natures: &Natures<'a>) -> Vec<Guess> {
    let callee = dotted(&call.func);
    let (base, name) = split_callee(&callee);
    let receiver = match &*call.func {
        Expr::Attribute(ast) => Some(&*ast.value),
        _ => None,
    };
    let on_host = |expr: &'a Expr| natures.of(expr, path) == Nature::Host;
    let host_arguments = || !call.arguments.is_empty() && call.arguments.args.iter().all(on_host);
    let mut acts = vec![(Act::Other, 0)];
    match name {
        // `.item()` of a NumPy or CPU value copies nothing, but the guess that it is one gives way to a trace that names it.
        "item" => acts.extend(receiver.map(|expr| (Act::Item, if on_host(expr) { 0 } else { 3 }))),
        "tolist" => acts.extend(receiver.map(|expr| (Act::ToList, if on_host(expr) { 0 } else { 3 }))),
        "float" | "int" | "complex" if base.is_empty() && !host_arguments() => {
            acts.push((Act::Convert(intern(name)), 2));
        }
        "bool" if base.is_empty() && !host_arguments() => acts.push((Act::Bool, 2)),
        "is_nonzero" => acts.push((Act::Bool, 3)),
        "equal" | "allclose" if !matches!(base, "np" | "numpy" | "jnp") => {
            acts.push((Act::Same(intern(name)), 3))
        }
        "max" | "min" | "sorted" | "any" | "all" if base.is_empty() && !host_arguments() => {
            acts.push((Act::Order, 2))
        }
        "round" | "abs" | "sum" | "divmod" | "pow" if base.is_empty() && !host_arguments() => {
            acts.push((Act::Convert("round"), 1))
        }
        _ if matches!(base, "math" | "np" | "numpy") && !host_arguments() => {
            acts.push((Act::Convert("math"), 1))
        }
        "range" if base.is_empty() && !host_arguments() => acts.push((Act::SizeArgument, 1)),
        "synchronize" => acts.push((Act::Explicit, 3)),
        "empty_cache" => acts.push((Act::EmptyCache, 3)),
        "barrier" | "monitored_barrier" | "wait_for_everyone" => acts.push((Act::Barrier, 3)),
        "clip_grad_norm_" => acts.push((Act::ClipGrad, if flag(call, "error_if_nonfinite") { 3 } else { 1 })),
        "step" if base.to_ascii_lowercase().contains("scaler") => acts.push((Act::ScalerStep, 3)),
        "get_scale" => acts.push((Act::GetScale, 3)),
        "step" if sinks::is_scheduler(base) => acts.push((Act::SchedulerStep, 1)),
        "save" if base == "torch" => acts.push((Act::Save, 2)),
        _ => acts.extend(tensor_acts(call, name, base, receiver, path, natures)),
    }
    acts
}

/// The acts of calls that move, create or shape tensors.
fn tensor_acts<'a>(
    call: &'a ExprCall,
    name: &str,
    base: &str,
    receiver: Option<&'a Expr>,
    path: &[Node<'a>],
    natures: &Natures<'a>,
) -> Vec<Guess> {
    let blocking = !flag(call, "non_blocking");
    match name {
        "cpu" if receiver.is_some() => vec![(Act::Download("cpu"), 3)],
        "numpy" if receiver.is_some_and(|expr| natures.of(expr, path) != Nature::Host) => {
            vec![(Act::Download("numpy"), 1)]
        }
        "cuda" if receiver.is_some() && blocking => vec![(Act::Move("cuda", Nature::Device), 3)],
        "to" if receiver.is_some() => match natures.device_argument(call, path) {
            Some(Nature::Host) => vec![(Act::Download("to"), 3)],
            // With `non_blocking=True` the copy itself may still block, from pageable memory.
            Some(place) => vec![(Act::Move("to", place), if blocking { 3 } else { 0 })],
            None => vec![(Act::Move("to", Nature::Unknown), if blocking { 1 } else { 0 })],
        },
        "type" if receiver.is_some() => {
            let cpu = call.arguments.args.first().is_some_and(|argument| {
                let text = string(argument).map_or_else(|| dotted(argument), str::to_owned);
                text.starts_with("torch.") && text.ends_with("Tensor") && !text.contains("cuda")
            });
            vec![if cpu { (Act::Download("type"), 3) } else { (Act::Move("type", Nature::Unknown), 1) }]
        }
        "copy_" => vec![(Act::Move("copy_", Nature::Unknown), if blocking { 2 } else { 0 })],
        "load_state_dict" => vec![(Act::Move("load_state_dict", Nature::Device), 1)],
        "tensor" | "as_tensor" | "asarray" | "from_numpy" | "scalar_tensor"
            if matches!(base, "torch" | "") =>
        {
            let device = natures.device_argument(call, path);
            let known = matches!(device, Some(Nature::Device | Nature::Unknown));
            let mut acts = vec![(Act::Create(intern(name)), if known { 3 } else { 1 })];
            acts.extend(of_elements(call, path, natures).then_some((Act::Elements, 2)));
            acts
        }
        "new_tensor" => {
            let mut acts = vec![(Act::Create("new_tensor"), 2)];
            acts.extend(of_elements(call, path, natures).then_some((Act::Elements, 2)));
            acts
        }
        _ if base == "torch.cuda" && name.ends_with("Tensor") => vec![(Act::Create("legacy_tensor"), 3)],
        _ => shape_acts(call, name, base, receiver.is_some()),
    }
}

/// Whether a tensor is made of several values, one of which may be a tensor on the device.
fn of_elements<'a>(call: &'a ExprCall, path: &[Node<'a>], natures: &Natures<'a>) -> bool {
    let Some(data) = call.arguments.args.first() else { return false };
    let several = matches!(data, Expr::List(_) | Expr::Tuple(_) | Expr::ListComp(_) | Expr::Name(_));
    several && natures.of(data, path) != Nature::Host
}

/// The acts of operators with a value-dependent size, and of those that check for errors.
fn shape_acts(call: &ExprCall, name: &str, base: &str, method: bool) -> Vec<Guess> {
    let torch = matches!(base, "torch" | "F" | "torch.nn.functional" | "torch.functional" | "nn.functional");
    let given = |name: &str, position: usize| argument(&call.arguments, name, position).is_some();
    let shape = |name: &'static str, pattern: &'static str| vec![(Act::Shape(name, pattern), 3)];
    if matches!(base, "np" | "numpy" | "pd") {
        return Vec::new();
    }
    match name {
        "nonzero" => shape("nonzero", "B01"),
        "argwhere" => shape("argwhere", "B01"),
        "where" if call.arguments.len() == 1 => shape("where", "B01"),
        "masked_select" => shape("masked_select", "B02"),
        "unique" => shape("unique", "B07"),
        "unique_consecutive" => shape("unique_consecutive", "B07"),
        "repeat_interleave" if call.arguments.find_keyword("output_size").is_none() => {
            shape("repeat_interleave", "B10")
        }
        "one_hot" if !given("num_classes", 1) => shape("one_hot", "B11"),
        "bincount" => shape("bincount", "B12"),
        "histc" if !given("min", 2) => shape("histc", "B13"),
        "coalesce" | "to_sparse" => shape("coalesce", "B16"),
        "tensor_split" => vec![(Act::Shape("tensor_split", "B24"), 1)],
        "inv" | "cholesky" | "solve" | "lu_factor" | "eigh" | "eigvalsh" | "svd" | "svdvals"
        | "ldl_factor" | "lstsq" | "pinv" | "inverse" | "pinverse" | "matrix_rank"
            if torch
                || base.contains("linalg")
                || method && matches!(name, "inverse" | "cholesky" | "svd" | "pinverse") =>
        {
            vec![(Act::Check(intern_check(name)), 3)]
        }
        // A number as the standard deviation is checked on the host.
        "normal"
            if torch && argument(&call.arguments, "std", 1).is_some_and(|std| !std.is_literal_expr()) =>
        {
            vec![(Act::Check("normal"), 2)]
        }
        "cov" | "corrcoef" if torch || method => vec![(Act::Check(intern_check(name)), 2)],
        "istft" if torch || method => vec![(Act::Check("istft"), 3)],
        _ if sinks::takes_sizes(name) => vec![(Act::SizeArgument, 0)],
        _ => Vec::new(),
    }
}

/// Names as static text, for the acts that carry them.
fn intern(name: &str) -> &'static str {
    const KNOWN: &[&str] = &[
        "float",
        "int",
        "complex",
        "equal",
        "allclose",
        "tensor",
        "as_tensor",
        "asarray",
        "from_numpy",
        "scalar_tensor",
    ];
    KNOWN.iter().find(|known| **known == name).copied().unwrap_or("tensor")
}

fn intern_check(name: &str) -> &'static str {
    const KNOWN: &[&str] = &[
        "inv",
        "cholesky",
        "solve",
        "lu_factor",
        "eigh",
        "eigvalsh",
        "svd",
        "svdvals",
        "ldl_factor",
        "lstsq",
        "pinv",
        "inverse",
        "pinverse",
        "matrix_rank",
        "cov",
        "corrcoef",
    ];
    KNOWN.iter().find(|known| **known == name).copied().unwrap_or("inv")
}

/// The acts of `x[…]`.
fn subscript<'a>(ast: &'a ExprSubscript, path: &[Node<'a>], natures: &Natures<'a>) -> Vec<Guess> {
    if natures.of(&ast.value, path) == Nature::Host && !matches!(&*ast.slice, Expr::Name(_))
        || string(&ast.slice).is_some()
    {
        return Vec::new();
    }
    let store = ast.ctx == ExprContext::Store;
    let what = index(&ast.slice, path, natures);
    let strength = match what {
        Index::Mask => 3,
        Index::List | Index::Slice => 2,
        Index::Constant if store => 1,
        Index::Constant => return Vec::new(),
        Index::Name => 1,
    };
    vec![(Act::Index { what, store }, strength)]
}

fn index<'a>(expr: &'a Expr, path: &[Node<'a>], natures: &Natures<'a>) -> Index {
    match expr {
        Expr::Tuple(tuple) => {
            let each: Vec<Index> = tuple.elts.iter().map(|element| index(element, path, natures)).collect();
            let first = [Index::Mask, Index::List, Index::Slice, Index::Name]
                .into_iter()
                .find(|kind| each.contains(kind));
            first.unwrap_or(Index::Constant)
        }
        Expr::Slice(slice) => {
            let constant = |bound: &Option<Box<Expr>>| bound.as_deref().is_none_or(is_constant);
            if constant(&slice.lower) && constant(&slice.upper) && constant(&slice.step) {
                Index::Constant
            } else {
                Index::Slice
            }
        }
        Expr::Compare(_) => Index::Mask,
        Expr::UnaryOp(ast) if matches!(ast.op, UnaryOp::Invert) => Index::Mask,
        Expr::BinOp(ast) if matches!(ast.op, Operator::BitAnd | Operator::BitOr | Operator::BitXor) => {
            Index::Mask
        }
        Expr::List(_) => Index::List,
        Expr::Name(name) if mask_name(&name.id) => Index::Mask,
        Expr::Attribute(ast) if mask_name(&ast.attr) => Index::Mask,
        Expr::Name(_) if natures.of(expr, path) == Nature::Host => Index::List,
        _ if is_constant(expr) => Index::Constant,
        _ => Index::Name,
    }
}

fn mask_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["mask", "keep", "valid", "is_", "cond", "select"].iter().any(|word| name.contains(word))
}

fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::UnaryOp(ast) => is_constant(&ast.operand),
        _ => expr.is_literal_expr(),
    }
}

/// The last node, where Python asks it for true or false: tests, operands of `not`, `and`, `or`, and chained comparisons.
fn tested<'a>(path: &[Node<'a>]) -> Option<&'a Expr> {
    let [.., parent, node] = path else { return None };
    let own = |expr: &'a Expr| (expr.range() == node.range()).then_some(expr);
    // The operands are asked, not the operator that asks them.
    if matches!(node, Node::ExprBoolOp(_)) || matches!(node, Node::ExprUnaryOp(ast) if ast.op == UnaryOp::Not)
    {
        return None;
    }
    match parent {
        Node::StmtIf(ast) => own(&ast.test),
        Node::StmtWhile(ast) => own(&ast.test),
        Node::StmtAssert(ast) => own(&ast.test),
        Node::ExprIf(ast) => own(&ast.test),
        Node::ElifElseClause(ast) => ast.test.as_ref().and_then(own),
        Node::Comprehension(ast) => ast.ifs.iter().find_map(own),
        Node::MatchCase(ast) => ast.guard.as_deref().and_then(own),
        Node::ExprUnaryOp(ast) if ast.op == UnaryOp::Not => own(&ast.operand),
        Node::ExprBoolOp(ast) => {
            let at = ast.values.iter().position(|value| value.range() == node.range())?;
            let asked = at + 1 < ast.values.len() || bool_op_tested(&path[..path.len() - 1]);
            asked.then(|| &ast.values[at])
        }
        _ => None,
    }
}

/// Whether the result of the `and`/`or` at the end of `path` is itself asked for true or false.
fn bool_op_tested(path: &[Node<'_>]) -> bool {
    let [.., parent, node] = path else { return false };
    match parent {
        Node::ExprBoolOp(ast) => {
            ast.values.last().is_some_and(|value| value.range() != node.range())
                || bool_op_tested(&path[..path.len() - 1])
        }
        Node::ExprUnaryOp(ast) => ast.op == UnaryOp::Not,
        Node::StmtIf(ast) => within(node, &*ast.test),
        Node::StmtWhile(ast) => within(node, &*ast.test),
        Node::StmtAssert(ast) => within(node, &*ast.test),
        Node::ExprIf(ast) => within(node, &*ast.test),
        Node::ElifElseClause(ast) => ast.test.as_ref().is_some_and(|test| within(node, test)),
        Node::Comprehension(ast) => ast.ifs.iter().any(|test| within(node, test)),
        Node::MatchCase(ast) => ast.guard.as_deref().is_some_and(|test| within(node, test)),
        _ => false,
    }
}

/// The last node, where it is turned into text: in an f-string, as an argument of `print`, `str`, a logger, or of the `%` and
/// `.format` of a string.
fn formatted<'a>(path: &[Node<'a>]) -> Option<&'a Expr> {
    let node = last(path).filter(|node| node.is_expression() && !literal(*node))?;
    let above = |levels: usize| path.len().checked_sub(levels + 1).map(|at| path[at]);
    let own = |expr: &&'a Expr| expr.range() == node.range();
    let text_call = |node: Option<Node<'a>>| matches!(node, Some(Node::ExprCall(call)) if makes_text(call));
    let percent = |node: Option<Node<'a>>| matches!(node, Some(Node::ExprBinOp(ast)) if ast.op == Operator::Mod && string(&ast.left).is_some());
    match above(1)? {
        Node::InterpolatedElement(ast) => Some(&*ast.expression).filter(own),
        Node::ExprBinOp(ast) if percent(above(1)) => Some(&*ast.right).filter(own),
        Node::ExprTuple(ast) if percent(above(2)) => ast.elts.iter().find(own),
        Node::Arguments(ast) if text_call(above(2)) => ast.args.iter().find(own),
        Node::Keyword(ast) if text_call(above(3)) => {
            let file = ast
                .arg
                .as_ref()
                .is_some_and(|id| matches!(id.as_str(), "file" | "end" | "sep" | "flush" | "exc_info"));
            Some(&ast.value).filter(own).filter(|_| !file)
        }
        // `log_dict({"loss": loss})`, `print([a, b])`.
        Node::ExprDict(ast) if text_call(above(3)) => ast.items.iter().map(|item| &item.value).find(own),
        Node::ExprList(ast) if text_call(above(3)) => ast.elts.iter().find(own),
        _ => None,
    }
}

fn literal(node: Node<'_>) -> bool {
    nodes::is_comprehension(node)
        || matches!(
            node,
            Node::ExprStringLiteral(_)
                | Node::ExprFString(_)
                | Node::ExprNumberLiteral(_)
                | Node::ExprBooleanLiteral(_)
                | Node::ExprNoneLiteral(_)
                | Node::ExprDict(_)
                | Node::ExprList(_)
        )
}

fn makes_text(call: &ExprCall) -> bool {
    let callee = dotted(&call.func);
    matches!(callee.as_str(), "str" | "repr" | "format" | "''.format") || sinks::is_log(call)
}
