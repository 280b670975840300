//! Uploads: without blocking, or made on the device in the first place.

use super::join::imports_torch;
use super::text::{insert, replace, with_argument, without, without_method};
use super::{FILLED, INDEXED, NON_BLOCKING, WRITTEN, WaitingExpr, Written, values};
use crate::model::edit::{Refusal, Replacement};
use crate::python::facts::{self, Fact};
use crate::python::parse::{Node, Source, dotted, last, nodes, scope};
use crate::verdict::source::infer::{
    Placement, filled as filled_by, function_of, is_array, joins, tensor_dtype,
};
use crate::verdict::source::locate::SyncExpr;
use crate::vocabulary::{Copy, HostMemory};
use ruff_python_ast::{Expr, ExprCall, Number};
use ruff_text_size::{Ranged, TextRange};

pub fn source<'a>(s: WaitingExpr<'_, 'a>) -> Option<&'a Expr> {
    let call = nodes::call(s.here.path)?;
    match s.sync {
        SyncExpr::Move("copy_", _) | SyncExpr::Create(_) => call.arguments.args.first(),
        _ => nodes::receiver(call),
    }
}

pub fn memory(s: WaitingExpr<'_, '_>) -> Option<HostMemory> {
    s.observed.copy.map(|Copy { host_memory, .. }| host_memory)
}

pub fn is_staged(s: WaitingExpr<'_, '_>) -> bool {
    s.observed.copy.is_some_and(|copy| Copy { bytes: s.observed.largest, ..copy }.is_taken_over())
}

fn on_host<'a>(s: WaitingExpr<'_, 'a>, expr: &'a Expr) -> bool {
    let made_of_host =
        matches!(s.sync, SyncExpr::Create(_)) && (expr.is_list_comp_expr() || expr.is_list_expr());
    made_of_host || s.here.find(expr) == Placement::Host
}

/// Whether the copy goes to the GPU in every run: its destination is the GPU, or its source is on the host.
pub fn arrives(s: WaitingExpr<'_, '_>) -> bool {
    let Some(call) = nodes::call(s.here.path) else { return false };
    let place = match nodes::name(&call.func) {
        "cuda" => return true,
        "copy_" => None,
        "to" => call.arguments.find_argument_value("device", 0),
        _ => call.arguments.find_keyword("device").map(|keyword| &keyword.value),
    };
    place.is_some_and(|place| values::names_gpu(s.here.file(), place, s.here.path))
        || source(s).is_some_and(|source| on_host(s, source))
}

pub fn is_joined(s: WaitingExpr<'_, '_>) -> bool {
    let value = match source(s) {
        Some(Expr::Name(name)) => scope::only_value(s.here.path, name).map(|(value, _)| value),
        value => value,
    };
    value.is_some_and(joins)
}

/// The data loaders, if all are in sight, that yield what is uploaded; nothing else writes to it.
pub fn loaders<'a>(s: WaitingExpr<'_, 'a>) -> Option<Vec<&'a ExprCall>> {
    let (batches, place) = values::iterated(source(s)?, s.here.path)?;
    values::loaders(s.here.file(), batches, &place)
}

/// The edits that make these loaders pin their data; `None` where one has another `pin_memory=`.
pub fn pins(s: WaitingExpr<'_, '_>) -> Option<Vec<Replacement>> {
    loaders(s)?.into_iter().map(|loader| turned_on(s.here.file(), loader, "pin_memory")).collect()
}

/// The edit that gives a call `name=True`; `None` where it gives something else than `False`.
fn turned_on(file: &Source, call: &ExprCall, name: &str) -> Option<Replacement> {
    match call.arguments.find_keyword(name).map(|keyword| &keyword.value) {
        None => with_argument(file, call, &format!("{name}=True")),
        Some(Expr::BooleanLiteral(flag)) if !flag.value => Some(replace(flag.range, "True")),
        Some(_) => None,
    }
}

/// `x.to(device)`, `x.cuda()`, `a.copy_(b)` with `non_blocking=True`.
pub fn moved(s: WaitingExpr<'_, '_>, call: &ExprCall) -> Written {
    let file = s.here.file();
    let positional = if nodes::name(&call.func) == "to" { 2 } else { 1 };
    let flagged = call.arguments.args.len() > positional
        || call.arguments.args.iter().any(Expr::is_boolean_literal_expr);
    let own = if flagged { None } else { turned_on(file, call, "non_blocking") };
    // A copy that the driver takes over at once needs no pinned memory.
    let pinned = if is_staged(s) { None } else { pins(s) };
    let replacements = own.map(|own| pinned.unwrap_or_default().into_iter().chain([own]).collect());
    let shown = (!flagged).then(|| called(file, call, "non_blocking", Some("non_blocking=True")));
    Written::new(&NON_BLOCKING, shown, replacements.ok_or(Refusal::Form))
}

/// `torch.tensor(v, device=d)`: a constant is filled in on the device; all else is made on the host and sent
/// without blocking.
pub fn created(s: WaitingExpr<'_, '_>, call: &ExprCall) -> Written {
    let file = s.here.file();
    let device = call.arguments.find_keyword("device");
    let text = device.map(|device| file.text(&device.value));
    if let Some(text) = text.as_ref().filter(|_| is_literal(call)) {
        let replacements = constant(file, call).ok_or(Refusal::Form);
        return Written::new(&FILLED, full(file, call, &format!("device={text}")), replacements);
    }
    let replacements = device.filter(|_| !is_special(call)).and_then(|device| {
        let sent = format!(".to({}, non_blocking=True)", file.slice(device.value.range()));
        Some(vec![without(file, call, device)?, insert(call.end(), sent)])
    });
    let pin = if is_staged(s) || memory(s) == Some(HostMemory::Pinned) { "" } else { ".pin_memory()" };
    let shown = text.map(|place| {
        let plain = called(file, call, "device", None);
        format!("{plain}{pin}.to({place}, non_blocking=True)")
    });
    Written::new(&NON_BLOCKING, shown, replacements.ok_or(Refusal::Form))
}

fn rest(file: &Source, call: &ExprCall, name: &str) -> Vec<String> {
    let others =
        |keyword: &&ruff_python_ast::Keyword| keyword.arg.as_ref().is_none_or(|id| id.as_str() != name);
    call.arguments.keywords.iter().filter(others).map(|keyword| file.text(keyword)).collect()
}

/// The call on one line, without the keyword `name`, perhaps with one more argument.
fn called(file: &Source, call: &ExprCall, name: &str, argument: Option<&str>) -> String {
    let positional = call.arguments.args.iter().map(|value| file.text(value));
    let all = positional.chain(rest(file, call, name)).chain(argument.map(str::to_owned));
    format!("{}({})", file.text(&*call.func), all.collect::<Vec<_>>().join(", "))
}

/// A `torch.full` call in place of one that makes a tensor of one number, on a device.
fn full(file: &Source, call: &ExprCall, device: &str) -> Option<String> {
    let arguments = rest(file, call, "device").into_iter().chain([device.to_owned()]);
    Some(format!("torch.full({}, {})", filling(file, call)?, arguments.collect::<Vec<_>>().join(", ")))
}

/// The call whose result is moved at once: it fills a tensor, or makes one of a constant.
fn made(moved: &Expr) -> Option<&ExprCall> {
    filled_by(moved).or_else(|| moved.as_call_expr().filter(|_| is_constant(moved)))
}

/// `torch.randn(n).to(d)`, `torch.tensor(0.5).cuda()`: made on the device.
pub fn filled<'a>(s: WaitingExpr<'_, 'a>, moved: &'a ExprCall) -> Written {
    let file = s.here.file();
    let in_text = s.here.path.iter().any(|node| matches!(node, Node::InterpolatedElement(_)));
    let device = match (nodes::name(&moved.func), &*moved.arguments.args, &*moved.arguments.keywords) {
        // Before Python 3.12 a string in an f-string has other quotes.
        ("cuda", [], []) if !in_text => Some("\"cuda\"".to_owned()),
        // `.to` of a tensor takes a type as well as a device.
        ("to", [device], []) if is_device(s, device) => Some(file.text(device)),
        ("to", [], [device]) if device.arg.as_ref().is_some_and(|arg| arg == "device") => {
            Some(file.text(&device.value))
        }
        _ => None,
    };
    let written = nodes::receiver(moved).zip(device).and_then(|(whole, device)| {
        let made = made(whole)?;
        let argument = format!("device={device}");
        let literal = is_literal(made);
        let mut all = vec![with_argument(file, made, &argument)?, without_method(file, moved)?];
        if literal {
            all.extend(constant(file, made)?);
        }
        let shown = match literal {
            true => full(file, made, &argument)?,
            false => called(file, made, "device", Some(&argument)),
        };
        let around = [(whole.start(), made.start()), (made.end(), whole.end())];
        let [before, after] = around.map(|(from, to)| file.text(TextRange::new(from, to)));
        Some((before + &shown + &after, Some(all).filter(|_| !is_special(made))))
    });
    let (shown, replacements) = written.unzip();
    Written::new(&FILLED, shown, replacements.flatten().ok_or(Refusal::Form))
}

/// Whether a call asks for more than a tensor's values.
fn is_special(call: &ExprCall) -> bool {
    ["requires_grad", "pin_memory"].iter().any(|name| call.arguments.find_keyword(name).is_some())
}

/// By form or name.
fn is_device<'a>(s: WaitingExpr<'_, 'a>, expr: &'a Expr) -> bool {
    let name = nodes::name(expr).to_ascii_lowercase();
    ["device", "gpu", "cuda"].iter().any(|word| name.contains(word))
        || values::names_gpu(s.here.file(), expr, s.here.path)
}

/// Whether the GPU makes the same values: neither random numbers nor numbers that it rounds itself.
pub fn gives_the_same(s: WaitingExpr<'_, '_>) -> bool {
    let Some(call) = nodes::call(s.here.path) else { return false };
    let made = nodes::receiver(call).and_then(made).unwrap_or(call);
    // From 0 in steps of 1: nothing to round.
    let counts = nodes::name(&made.func) == "arange"
        && made.arguments.args.len() == 1
        && ["start", "end", "step"].iter().all(|name| made.arguments.find_keyword(name).is_none());
    counts || is_literal(made) || facts::name(nodes::name(&made.func)).is(Fact::Exact)
}

/// A tensor of a constant, with no device given.
pub fn is_constant(expr: &Expr) -> bool {
    let placed = |call: &ExprCall| call.arguments.find_keyword("device").is_some();
    expr.as_call_expr().is_some_and(|call| is_literal(call) && !placed(call))
}

/// A tensor of one number as written: `torch.tensor(0.5)`, `torch.FloatTensor([0.5])`.
pub fn is_literal(call: &ExprCall) -> bool {
    let made = || {
        function_of(call, Fact::Torch).is_some_and(|name| name == "tensor" || tensor_dtype(name).is_some())
    };
    call.arguments.args.len() == 1 && number(call).is_some() && made()
}

/// The number, and whether it is in a list. A tensor type needs the list: a bare number is a size.
fn number(call: &ExprCall) -> Option<(&Expr, bool)> {
    fn is_number(expr: &Expr) -> bool {
        match expr {
            Expr::UnaryOp(ast) => is_number(&ast.operand),
            Expr::NumberLiteral(number) => !matches!(number.value, Number::Complex { .. }),
            _ => expr.is_boolean_literal_expr(),
        }
    }
    let (number, listed) = match call.arguments.args.first()? {
        Expr::List(list) => (nodes::only(&list.elts)?, true),
        _ if tensor_dtype(nodes::name(&call.func)).is_some() => return None,
        one => (one, false),
    };
    is_number(number).then_some((number, listed))
}

/// Size, value and type, as `torch.full` takes them.
fn filling(file: &Source, call: &ExprCall) -> Option<String> {
    let (number, listed) = number(call)?;
    let dtype = tensor_dtype(nodes::name(&call.func)).map(|dtype| format!(", dtype={dtype}"));
    let size = if listed { "(1,)" } else { "()" };
    Some(format!("{size}, {}{}", file.text(number), dtype.unwrap_or_default()))
}

/// `torch.tensor(0.5, …)` as `torch.full((), 0.5, …)`.
fn constant(file: &Source, call: &ExprCall) -> Option<Vec<Replacement>> {
    let name = call.func.as_attribute_expr()?.attr.range();
    let value = call.arguments.args.first()?.range();
    Some(vec![replace(name, "full"), replace(value, filling(file, call)?)])
}

/// `x[rows]` by an array of the host as `x[torch.as_tensor(rows).to(x.device, non_blocking=True)]`.
pub fn indexed(s: WaitingExpr<'_, '_>) -> Option<Written> {
    let (file, Node::ExprSubscript(ast)) = (s.here.file(), last(s.here.path)?) else { return None };
    let plain = |part: &&Expr| !part.is_slice_expr() && !part.is_ellipsis_literal_expr();
    let rows = nodes::only(nodes::elements(&ast.slice).iter().filter(plain))?;
    // The edit asks the tensor for its device: naming the tensor must be no work.
    let named = !dotted(&ast.value).contains(['?', '(', '[', '\'']);
    if !named || !is_array(file, s.here.path, rows) || !imports_torch(s.here) {
        return None;
    }
    // A store may upload its value instead.
    let number =
        matches!(nodes::above(s.here.path, 1), Some(Node::StmtAssign(ast)) if nodes::is_number(&ast.value));
    if ast.ctx.is_store() && !number {
        return None;
    }
    let end = format!(").to({}.device, non_blocking=True)", file.text(&*ast.value));
    let [before, after] = [(ast.start(), rows.start()), (rows.end(), ast.end())]
        .map(|(from, to)| file.text(TextRange::new(from, to)));
    let shown = format!("{before}torch.as_tensor({}{end}{after}", file.text(rows));
    let replacements = vec![insert(rows.start(), "torch.as_tensor("), insert(rows.end(), end)];
    Some(Written::new(&INDEXED, Some(shown), Ok(replacements)))
}

/// `x[3] = 1.0` as `x[3].fill_(1.0)`.
pub fn written(s: WaitingExpr<'_, '_>) -> Option<Written> {
    let Node::StmtAssign(assigned) = s.here.path[nodes::statement(s.here.path)?] else { return None };
    let target = last(s.here.path)?;
    nodes::only(&assigned.targets)
        .filter(|only| only.range() == target.range() && nodes::is_number(&assigned.value))?;
    let file = s.here.file();
    let value = assigned.value.range();
    let between = TextRange::new(target.end(), value.start());
    let replacements = vec![replace(between, ".fill_("), insert(value.end(), ")")];
    let shown = Some(format!("{}.fill_({})", file.text(target), file.text(&*assigned.value)));
    let plain = file.slice(between).trim() == "=";
    Some(Written::new(&WRITTEN, shown, Some(replacements).filter(|_| plain).ok_or(Refusal::Form)))
}
