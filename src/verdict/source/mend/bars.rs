//! Progress bars that are told a number of the GPU in every turn of a loop: told in every tenth.

use super::join::HARMLESS;
use super::text::{beside, insert, is_alone, line_break};
use super::{RARER, Subject, Written};
use crate::model::edit::{Refusal, Replacement};
use crate::verdict::source::flow::conditions;
use crate::verdict::source::infer::{Names, sinks};
use crate::verdict::source::parse::{Node, dotted, nodes, scope};
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

/// What else may be called for an argument of it: it only answers.
const ASKS: Names = Names("item detach get_last_lr memory_allocated max_memory_allocated memory_reserved");
/// A bar draws itself ten times a second at most (tqdm, `mininterval`); of steps of 10 ms and more each tenth is seen.
const EVERY: u32 = 10;

/// `bar.set_postfix(loss=loss.item())` under a condition on the counter of the loop.
///
/// Definition: the statement is that call, on a line of its own, right in the body of a `for … in enumerate(…)` whose counter
/// nothing else binds, and under no condition that holds now and then; what it calls for its arguments does nothing else.
///
/// ```text
/// for i, x in enumerate(bar):              for i, x in enumerate(bar):
///     loss = step(x)                           loss = step(x)
///     bar.set_postfix(loss=loss.item())        if i % 10 == 0:
///                                                  bar.set_postfix(loss=loss.item())
/// ```
pub fn rarer(s: Subject<'_, '_>) -> Option<Written> {
    let Node::StmtExpr(stmt) = s.here.path[nodes::statement(s.here.path)?] else { return None };
    let told = stmt.value.as_call_expr().filter(|_| conditions::rare(s.here.path).is_none())?;
    nodes::receiver(told).filter(|_| sinks::TELLS.has(nodes::name(&told.func)))?;
    Some(Written::new(&RARER, None, conditioned(s, told).ok_or(Refusal::Form)))
}

fn conditioned(s: Subject<'_, '_>, told: &ExprCall) -> Option<Vec<Replacement>> {
    let own = nodes::statement(s.here.path)?;
    let Node::StmtFor(around) = s.here.path[own.checked_sub(1)?] else { return None };
    let (Expr::Tuple(target), Expr::Call(counted)) = (&*around.target, &*around.iter) else { return None };
    let counter = target.elts.first()?.as_name_expr()?;
    let changed = scope::mentions(s.here.path, &counter.id).iter().any(|one| {
        let at = nodes::range(&one.path);
        nodes::within(at, around.range) && !one.load && at != counter.range
    });
    let (indent, rest, _) = beside(s.here.file(), told.range());
    let idle = |call: &ExprCall| {
        let name = nodes::name(&call.func);
        call.range() == told.range() || HARMLESS.has(name) || ASKS.has(name)
    };
    if nodes::any_call(&[told.into()], &|call| !idle(call))
        || dotted(&counted.func) != "enumerate"
        || changed
        || !is_alone(indent, rest)
        || s.here.file().slice(told.range()).contains('\n')
    {
        return None;
    }
    let step = if indent.contains('\t') { "\t" } else { "    " };
    let end = line_break(s.here.file());
    Some(vec![insert(told.start(), format!("if {} % {EVERY} == 0:{end}{indent}{step}", counter.id))])
}
