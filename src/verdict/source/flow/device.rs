//! Values that go back to the device: as they came, or after the CPU has made a product of them.

use super::value::{Next, Sink, Value, What, ends};
use crate::python::facts::{self, Fact};
use ruff_python_ast::ExprCall;

pub(super) fn carried(value: &Value) -> Next {
    if value.joined {
        return ends(Sink::Compute, "multiplied on the CPU, before it is copied back");
    }
    ends(Sink::Device, "copied back to the device")
}

/// Numbers have no such method: on the way, the value was combined with a tensor or an array.
pub(super) fn combined(method: &str) -> Next {
    if facts::name(method).is(Fact::OfNumber) {
        return Next::Up(2);
    }
    let what = What::Joined(format!("combined with what `.{method}()` is called on"));
    ends(Sink::Device, what)
}

pub(super) fn joins(name: &str, call: &ExprCall) -> bool {
    facts::name(name).is(Fact::Product)
        && call.arguments.args.iter().filter(|argument| !argument.is_literal_expr()).count() > 1
}

pub(super) fn multiplies(method: &str, call: &ExprCall) -> bool {
    facts::name(method).is(Fact::Product) && !call.arguments.args.is_empty()
}
