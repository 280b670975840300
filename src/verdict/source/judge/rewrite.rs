//! The same expression without the wait, where that can be written safely.

use super::join::joined;
use crate::verdict::source::flow::tracer::Tracer;
use crate::verdict::source::flow::value::{Sink, Use, Value};
use crate::verdict::source::infer::placement::{Here, is_filled};
use crate::verdict::source::locate::sync_expr::{Index, SyncExpr};
use crate::verdict::source::parse::{Node, Source, last, nodes};
use crate::vocabulary::Kind;
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

/// Rewrites the expression at the end of `path`, given what it was found to be. `None` where a rewrite needs to know more than
/// the line shows.
pub fn rewrite(here: Here<'_, '_>, sync: SyncExpr, kind: Kind) -> Option<String> {
    let file = here.file();
    let (call, upload) = (nodes::call(here.path), kind == Kind::Upload);
    match sync {
        SyncExpr::Move("to" | "cuda", _) if upload && nodes::receiver(call?).is_some_and(is_filled) => {
            filled(file, call?)
        }
        SyncExpr::Move("to" | "cuda" | "copy_", _) if upload => {
            Some(with_argument(file, call?, "non_blocking=True"))
        }
        SyncExpr::Create("tensor" | "as_tensor" | "asarray") if upload => created(file, call?),
        SyncExpr::Item if matches!(kind, Kind::Logging | Kind::RoundTrip) => read(here, call?),
        SyncExpr::Shape("repeat_interleave", _) => Some(with_argument(file, call?, "output_size=...")),
        SyncExpr::Shape("one_hot", _) => Some(with_argument(file, call?, "num_classes=...")),
        SyncExpr::Check(op) => checked(file, call?, op),
        SyncExpr::Download("type") => cast(file, call?),
        SyncExpr::Index { what: Index::Constant, store: true } if upload => {
            let value = assigned(here.path).filter(|value| value.is_literal_expr())?;
            Some(format!("{}.fill_({})", here.text(last(here.path)?), here.text(value)))
        }
        _ => None,
    }
}

/// A read whose value the CPU does not need at once. Without `.item()` the value stays on the device where what becomes of it
/// waits for nothing: where it is collected for later, and in arithmetic with tensors. Text made from it would wait all the
/// same: then the reads nearby can only be joined.
fn read<'a>(here: Here<'_, 'a>, call: &'a ExprCall) -> Option<String> {
    let mut tracer = Tracer::new(here.placements);
    tracer.follow(here.path, Value::new(here.path, false));
    let stays = |used: &Use| match used.sink {
        _ if used.value.arrays => false,
        _ if used.sink.is_decisive() => used.can_wait(),
        Sink::Device => {
            ["combined with", "added to", "stored in"].iter().any(|what| used.what.starts_with(what))
        }
        Sink::Log | Sink::Returned => {
            used.what.starts_with("collected in")
                || used.value.collected.is_some() && (used.deferred || used.rare)
        }
        _ => false,
    };
    if !tracer.uses.is_empty() && tracer.uses.iter().all(stays) {
        return Some(format!("{}.detach()", here.text(nodes::receiver(call)?)));
    }
    let shown = tracer.uses.iter().all(|used| used.sink == Sink::Log);
    if shown { joined(here, call) } else { None }
}

/// The arguments of a call but for the keyword of that name.
fn without(file: &Source, call: &ExprCall, name: &str) -> Vec<String> {
    let keywords = call.arguments.keywords.iter();
    let kept = keywords.filter(|keyword| keyword.arg.as_ref().is_none_or(|id| id.as_str() != name));
    let positional = call.arguments.args.iter().map(|value| file.text(value));
    positional.chain(kept.map(|keyword| file.text(keyword))).collect()
}

/// The call with one more argument, in place of one of that name.
fn with_argument(file: &Source, call: &ExprCall, argument: &str) -> String {
    let mut arguments = without(file, call, argument.split('=').next().unwrap_or(argument));
    arguments.push(argument.to_owned());
    format!("{}({})", file.text(&*call.func), arguments.join(", "))
}

/// `torch.randn(n).to(d)` filled on the device.
fn filled(file: &Source, moved: &ExprCall) -> Option<String> {
    let made = nodes::receiver(moved)?.as_call_expr()?;
    let device = match (nodes::name(&moved.func), &*moved.arguments.args, &*moved.arguments.keywords) {
        ("cuda", [], []) => "'cuda'".to_owned(),
        ("to", [device], []) => file.text(device),
        ("to", [], [device]) if device.arg.as_ref().is_some_and(|arg| arg == "device") => {
            file.text(&device.value)
        }
        _ => return None,
    };
    Some(with_argument(file, made, &format!("device={device}")))
}

/// `torch.tensor(v, device=d)` made on the host and sent without waiting.
fn created(file: &Source, call: &ExprCall) -> Option<String> {
    let place = file.text(&call.arguments.find_keyword("device")?.value);
    let (function, arguments) = (file.text(&*call.func), without(file, call, "device").join(", "));
    Some(format!("{function}({arguments}).to({place}, non_blocking=True)"))
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
    Some(format!("{}.to(torch.{dtype})", file.text(nodes::receiver(call)?)))
}

/// The value that the assignment around the last node gives to it.
fn assigned<'a>(path: &[Node<'a>]) -> Option<&'a Expr> {
    match path.iter().rev().find(|node| node.is_statement())? {
        Node::StmtAssign(ast) => Some(&ast.value),
        _ => None,
    }
}
