//! Reads of values beside each other.

use crate::python::facts::{self, Fact};
use crate::python::parse::{Node, nodes};
use ruff_python_ast::{ExprCall, Stmt};
use ruff_text_size::Ranged;

const MAX_NEIGHBOURS: usize = 20;

/// The statement around the last node and its neighbours in the block that read values too, without a gap.
pub fn run<'a>(path: &[Node<'a>]) -> &'a [Stmt] {
    let Some((block, own)) = nodes::place(path) else { return &[] };
    let reading = |stmt: &&Stmt| !reads(stmt).is_empty();
    let before = block[..own].iter().rev().take(MAX_NEIGHBOURS).take_while(reading).count();
    let after = block[own + 1..].iter().take(MAX_NEIGHBOURS).take_while(reading).count();
    &block[own - before..=own + after]
}

/// The reads of one value each in a statement, without those in the blocks below it.
pub fn reads(stmt: &Stmt) -> Vec<&ExprCall> {
    let mut calls = nodes::own_calls(stmt);
    calls.retain(|call| call.arguments.is_empty() && facts::name(nodes::name(&call.func)).is(Fact::Read));
    // `x.cpu().tolist()` reads once.
    let part_of = |call: &ExprCall, other: &ExprCall| {
        call.start() == other.start() && nodes::within(call, &*other.func)
    };
    let all = calls.clone();
    calls.retain(|call| !all.iter().any(|other| part_of(call, other)));
    calls
}
