//! Meters: objects that are told figures, show them, and may be asked for them later.

use super::flow::Tracer;
use super::nodes::{self, Node, last, within};
use super::rules::can_wait;
use super::scope;
use super::value::{Sink, Step, Value};
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

/// How sure a name like `meter` makes that its figures are only shown, where all its reads can be seen.
const SEEN: f64 = 0.85;
/// Where others can read it too.
const SHARED: f64 = 0.75;

impl<'a> Tracer<'a, '_> {
    /// `meter.update(value)`: a meter's name is taken at its word, unless its reads in the function or class decide something.
    pub(super) fn tracked(&mut self, path: &[Node<'a>], at: usize, value: &Value) {
        let Some(Node::ExprCall(call)) = path.get(at).copied() else { return };
        let Expr::Attribute(method) = &*call.func else { return };
        let place = &path[..=at];
        let mut held = value.clone();
        let key = match held.steps.pop() {
            Some(Step::Key(key)) => Some(key),
            Some(step) => {
                held.steps.push(step);
                None
            }
            None => keyword(call, path),
        };
        let before = self.fates.len();
        self.bind(place, &method.value, held.held(Step::Meter(key)).collected(place, true));
        let found = self.fates.split_off(before);
        let stored = found.iter().any(|fate| fate.sink == Sink::Stored);
        let shared = match &*method.value {
            Expr::Name(name) => is_parameter(&scope::owner(place, &name.id), &name.id),
            _ => stored,
        };
        let limit = if shared { SHARED } else { SEEN };
        for mut fate in found {
            let returned = fate.sink == Sink::Returned && !fate.value.vague && can_wait(&fate);
            if is_decisive(&fate.sink) || fate.sink == Sink::Unknown && fate.value.vague || returned {
                fate.limit = limit;
                self.fates.push(fate);
            }
        }
        self.sink(path, value, Sink::Log, format!("an argument of {}", self.file.text(&*call.func)));
        if let Some(log) = self.fates.last_mut() {
            log.limit = limit;
        }
    }
}

/// The keyword by which the call gets the last node of `path`.
fn keyword(call: &ExprCall, path: &[Node<'_>]) -> Option<String> {
    let argument = last(path)?.range();
    let named = call.arguments.keywords.iter().find(|keyword| within(argument, &keyword.value));
    named?.arg.as_ref().map(|name| name.to_string())
}

fn is_parameter(owner: &[Node<'_>], name: &str) -> bool {
    matches!(nodes::last(owner), Some(Node::StmtFunctionDef(ast))
        if ast.parameters.iter().any(|parameter| parameter.name().as_str() == name))
}

/// Whether a sink needs the value at once.
pub(super) fn is_decisive(sink: &Sink) -> bool {
    matches!(sink, Sink::Branch { .. } | Sink::Size | Sink::Index | Sink::Rate | Sink::Compute)
}

/// Whether an attribute or method of a meter gives the value back, which it then stands for; true for all other values.
pub(super) fn asks(value: &mut Value, name: &str) -> bool {
    let Some(Step::Meter(key)) = value.steps.last().cloned() else { return true };
    match name {
        "update"
        | "record"
        | "track"
        | "set"
        | "write"
        | "add"
        | "append"
        | "reset"
        | "clear"
        | "close"
        | "flush"
        | "keys"
        | "synchronize_between_processes"
        | "count"
        | "n"
        | "num"
        | "steps"
        | "step"
        | "name"
        | "enabled"
        | "disable"
        | "total_count"
        | "closed"
        | "print"
        | "log"
        | "log_every"
        | "device"
        | "to" => return false,
        "avg" | "average" | "val" | "value" | "mean" | "sum" | "max" | "min" | "best" | "last" | "median"
        | "global_avg" | "smoothed" | "ema" | "compute" | "result" | "get_avg" | "get_value" | "item"
        | "peek" | "latest" => {
            value.steps.pop();
        }
        "meters" | "items" | "values" | "get" | "pop" | "metrics" | "history" => {
            value.steps.pop();
            value.steps.push(key.map_or(Step::Any, Step::Key));
        }
        _ if key.as_deref() == Some(name) => {
            value.steps.pop();
        }
        // Of another figure.
        _ if key.is_some() => return false,
        _ => {
            value.steps.pop();
            value.vague = true;
        }
    }
    true
}
