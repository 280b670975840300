//! The same expression without the wait, where that can be written safely.

use super::act::{Act, Index};
use super::file::Source;
use super::flow::Tracer;
use super::join::joined;
use super::nature::Natures;
use super::nodes::{Node, last};
use super::value::{Fate, Sink, Value};
use crate::vocabulary::Kind;
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

/// Rewrites the expression at the end of `path`, given what it was found to be. `None` where a rewrite needs to know more than
/// the line shows.
pub fn rewrite<'a>(
    file: &'a Source,
    natures: &Natures<'a>,
    path: &[Node<'a>],
    act: Act,
    kind: Kind,
) -> Option<String> {
    let node = last(path)?;
    match (act, node) {
        (Act::Move("to" | "cuda" | "copy_", _), Node::ExprCall(call)) if kind == Kind::Upload => {
            Some(with_argument(file, call, "non_blocking=True"))
        }
        (Act::Create("tensor" | "as_tensor" | "asarray"), Node::ExprCall(call)) if kind == Kind::Upload => {
            created(file, call)
        }
        (Act::Item, Node::ExprCall(call)) if matches!(kind, Kind::Logging | Kind::RoundTrip) => {
            read(file, natures, path, call)
        }
        (Act::Shape("repeat_interleave", _), Node::ExprCall(call)) => {
            Some(with_argument(file, call, "output_size=..."))
        }
        (Act::Shape("one_hot", _), Node::ExprCall(call)) => {
            Some(with_argument(file, call, "num_classes=..."))
        }
        (Act::Check(op), Node::ExprCall(call)) => checked(file, call, op),
        (Act::Download("type"), Node::ExprCall(call)) => cast(file, call),
        (Act::Index { what: Index::Constant, store: true }, Node::ExprSubscript(ast))
            if kind == Kind::Upload =>
        {
            let value = assigned(path)?;
            value.is_literal_expr().then(|| format!("{}.fill_({})", file.text(ast), file.text(value)))
        }
        _ => None,
    }
}

/// A read whose value the CPU does not need at once. Without `.item()` the value stays on the device where what becomes of it
/// waits for nothing: where it is collected for later, and in arithmetic with tensors. Text made from it would wait all the
/// same: then the reads nearby can only be joined.
fn read<'a>(
    file: &'a Source,
    natures: &Natures<'a>,
    path: &[Node<'a>],
    call: &'a ExprCall,
) -> Option<String> {
    let mut tracer = Tracer::new(file, natures);
    tracer.follow(path, Value::new(path, false));
    let stays = |fate: &Fate| match fate.sink {
        Sink::Device => {
            ["combined with", "added to", "stored in"].iter().any(|what| fate.what.starts_with(what))
        }
        Sink::Log | Sink::Returned => {
            fate.what.starts_with("collected in")
                || fate.value.collected.is_some() && (fate.deferred || fate.rare)
        }
        _ => false,
    };
    if !tracer.fates.is_empty() && tracer.fates.iter().all(stays) {
        return Some(format!("{}.detach()", file.text(receiver(call)?)));
    }
    let shown = tracer.fates.iter().all(|fate| fate.sink == Sink::Log);
    if shown { joined(file, natures, path, call) } else { None }
}

pub(super) fn receiver(call: &ExprCall) -> Option<&Expr> {
    match &*call.func {
        Expr::Attribute(ast) => Some(&ast.value),
        _ => None,
    }
}

/// The call with one more argument, in place of one of that name.
fn with_argument(file: &Source, call: &ExprCall, argument: &str) -> String {
    let name = argument.split('=').next().unwrap_or(argument);
    let mut arguments: Vec<String> = call.arguments.args.iter().map(|value| file.text(value)).collect();
    let kept = call
        .arguments
        .keywords
        .iter()
        .filter(|keyword| keyword.arg.as_ref().is_none_or(|id| id.as_str() != name));
    arguments.extend(kept.map(|keyword| file.text(keyword)));
    arguments.push(argument.to_owned());
    format!("{}({})", file.text(&*call.func), arguments.join(", "))
}

/// `torch.tensor(v, device=d)` made on the host and sent without waiting.
fn created(file: &Source, call: &ExprCall) -> Option<String> {
    let device = call.arguments.find_keyword("device")?;
    let positional = call.arguments.args.iter().map(|value| file.text(value));
    let others = call
        .arguments
        .keywords
        .iter()
        .filter(|keyword| keyword.range() != device.range())
        .map(|keyword| file.text(keyword));
    let arguments: Vec<String> = positional.chain(others).collect();
    let place = file.text(&device.value);
    Some(format!("{}({}).to({place}, non_blocking=True)", file.text(&*call.func), arguments.join(", ")))
}

/// The `_ex` variant, which leaves the error code on the device.
fn checked(file: &Source, call: &ExprCall, op: &str) -> Option<String> {
    let result = match op {
        "inv" => "inverse",
        "cholesky" => "L",
        "solve" => "result",
        _ => return None,
    };
    let function = file.text(&*call.func);
    let arguments = file.slice(call.arguments.range());
    function.contains("linalg.").then(|| format!("{function}_ex{arguments}.{result}"))
}

/// `.type(torch.LongTensor)`: the dtype was meant, not the CPU.
fn cast(file: &Source, call: &ExprCall) -> Option<String> {
    let argument = file.text(call.arguments.args.first()?);
    let dtype = match argument.trim_matches(['"', '\'']).strip_prefix("torch.")?.strip_suffix("Tensor")? {
        "Long" => "long",
        "Float" => "float",
        "Int" => "int",
        "Bool" => "bool",
        "Half" => "half",
        "Double" => "double",
        "Byte" => "uint8",
        _ => return None,
    };
    Some(format!("{}.to(torch.{dtype})", file.text(receiver(call)?)))
}

/// The value that the assignment around the last node gives to it.
fn assigned<'a>(path: &[Node<'a>]) -> Option<&'a Expr> {
    match path.iter().rev().find(|node| node.is_statement())? {
        Node::StmtAssign(ast) => Some(&ast.value),
        _ => None,
    }
}
