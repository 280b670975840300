//! Conditions around a value: guards (S02, S03), choices, and those that hold now and then (S18).

use crate::python::facts::{self, Fact};
use crate::python::parse::{Node, Source, function_scope, last, nodes, within};
use crate::verdict::source::infer::sinks;
use ruff_python_ast::helpers::any_over_expr;
use ruff_python_ast::{ElifElseClause, Expr, ExprCall, Operator, Stmt, StmtIf};
use ruff_text_size::Ranged;

pub fn is_about_nan(test: &str) -> bool {
    let test = test.to_ascii_lowercase();
    ["nan", "inf", "finite"].iter().any(|word| test.contains(word))
}

/// Whether the branch that the last node decides is a guard (S02): its body only raises, exits, warns or
/// logs. Ending the loop counts where the test looks for NaN or infinity. Skipping a step needs the answer
/// first.
pub fn is_guard(path: &[Node<'_>], file: &Source) -> bool {
    let (test, body) = match nodes::above(whole_test(path), 1) {
        Some(Node::StmtIf(ast)) => (Some(&*ast.test), &ast.body),
        Some(Node::ElifElseClause(ast)) => (ast.test.as_ref(), &ast.body),
        parent => return matches!(parent, Some(Node::StmtAssert(_))),
    };
    let Some(test) = test else { return false };
    let nan = is_about_nan(file.slice(test.range()));
    body.iter().all(|stmt| match stmt {
        Stmt::Raise(_) | Stmt::Assert(_) | Stmt::Pass(_) => true,
        Stmt::Expr(ast) => {
            ast.value.as_call_expr().is_some_and(|call| sinks::is_log(call, true) || stops(call))
        }
        Stmt::Break(_) => nan,
        _ => false,
    }) && !body.iter().all(|stmt| matches!(stmt, Stmt::Pass(_)))
}

/// Whether the branch only shows something: neither its test nor what it shows has another effect.
pub fn only_shows(path: &[Node<'_>]) -> bool {
    let test = whole_test(path);
    let (Some(Node::StmtIf(ast)), own) = (nodes::above(test, 1), nodes::range(path)) else { return false };
    let does = |call: &ExprCall| {
        let (name, reads) = (nodes::name(&call.func), &[Fact::Read, Fact::Text, Fact::Number, Fact::Layout]);
        !within(call, own) && !facts::is_pure(name) && !facts::name(name).any(reads)
    };
    let shows = |stmt: &Stmt| {
        let call = stmt.as_expr_stmt().and_then(|ast| ast.value.as_call_expr());
        call.is_some_and(|call| {
            let does = |inner: &ExprCall| inner.range() != call.range() && does(inner);
            sinks::is_log(call, true) && !nodes::any_call(&[call.into()], &does)
        })
    };
    ast.elif_else_clauses.is_empty()
        && !nodes::any_call(&[Node::from(&*ast.test)], &does)
        && ast.body.iter().all(shows)
}

/// Whether the last node only chooses between computed values: `a if test else b`, an `if` whose bodies
/// assign expressions to names. `torch.where` can do that. A call for its effect, a jump or a Python flag
/// needs the answer.
pub fn is_choice(path: &[Node<'_>]) -> bool {
    let [.., parent, node] = path else { return false };
    match parent {
        Node::ExprIf(ast) => within(*node, &*ast.test) && computes(&ast.body) && computes(&ast.orelse),
        Node::StmtIf(ast) if keeps_extreme(ast) => true,
        Node::StmtIf(ast) => {
            let bodies = ast.elif_else_clauses.iter().map(|clause| &clause.body);
            ast.elif_else_clauses.iter().all(|clause| clause.test.is_none())
                && std::iter::once(&ast.body).chain(bodies).flatten().all(assigns_computed)
        }
        _ => false,
    }
}

/// `if v > self.most: self.most = v`: what `max` does.
fn keeps_extreme(ast: &StmtIf) -> bool {
    let (Expr::Compare(test), [Stmt::Assign(kept)]) = (&*ast.test, &*ast.body) else { return false };
    let ([other], [target]) = (&*test.comparators, &*kept.targets) else { return false };
    let (one, other) = (nodes::dotted(&test.left), nodes::dotted(other));
    let pair = (nodes::dotted(&kept.value), nodes::dotted(target));
    ast.elif_else_clauses.is_empty() && (pair == (one.clone(), other.clone()) || pair == (other, one))
}

/// What a test leads to: each needs another way to go without the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    /// It ends the loop around it: a late answer only adds iterations.
    Stops,
    /// It chooses between tensors, as `torch.where` can.
    Chooses,
    Counts,
    /// Whatever it decides needs the answer.
    Other,
}

/// The last node of `path` is the test, or an operand of it.
///
/// A test of the loop's element may not come late: it looks for one of the elements.
pub fn fork(path: &[Node<'_>]) -> Fork {
    let [above @ .., node] = path else { return Fork::Other };
    match above {
        [.., Node::ExprBoolOp(_) | Node::ExprUnaryOp(_)] if !mentions_turn(path) => fork(above),
        [.., Node::StmtWhile(ast)] if within(*node, &*ast.test) => Fork::Stops,
        [.., Node::StmtFor(_) | Node::Comprehension(_), Node::ExprCall(call), Node::Arguments(_)]
            if nodes::name(&call.func) == "range" =>
        {
            Fork::Counts
        }
        _ if is_choice(path) => Fork::Chooses,
        [.., Node::StmtIf(ast)] if ast.elif_else_clauses.is_empty() && ast.body.iter().all(fills) => {
            Fork::Chooses
        }
        [.., Node::StmtIf(StmtIf { body, .. }) | Node::ElifElseClause(ElifElseClause { body, .. })]
            if !mentions_turn(path) && body.iter().any(|stmt| stops_loop(stmt, path)) =>
        {
            Fork::Stops
        }
        _ => Fork::Other,
    }
}

fn around<'a>(path: &[Node<'a>]) -> Option<Node<'a>> {
    path[function_scope(path)..].iter().rev().copied().find(|node| nodes::is_loop(*node))
}

fn mentions_turn(path: &[Node<'_>]) -> bool {
    last(path).is_some_and(|node| names_turn(node, path))
}

fn names_turn(node: Node<'_>, path: &[Node<'_>]) -> bool {
    let Some(Node::StmtFor(ast)) = around(path) else { return false };
    let turn = nodes::names(Node::from(&*ast.target));
    nodes::names(node).iter().any(|name| turn.iter().any(|own| own.id == name.id))
}

/// Whether a statement leaves the loop around, or sets a flag named so. A function that returns true or false
/// has looked for something.
fn stops_loop(stmt: &Stmt, path: &[Node<'_>]) -> bool {
    const FLAGS: [&str; 5] = ["stop", "done", "converge", "finish", "terminat"];
    let flag = |target: &Expr| {
        let name = nodes::name(target).to_ascii_lowercase();
        FLAGS.iter().any(|flag| name.contains(flag))
    };
    around(path).is_some()
        && match stmt {
            Stmt::Break(_) => true,
            Stmt::Return(ast) => ast
                .value
                .as_deref()
                .is_none_or(|value| !value.is_boolean_literal_expr() && !names_turn(Node::from(value), path)),
            Stmt::Assign(ast) => ast.value.is_boolean_literal_expr() && ast.targets.iter().any(flag),
            _ => false,
        }
}

/// `logits[i, :n] = -inf`: only a tensor or an array is indexed so.
fn fills(stmt: &Stmt) -> bool {
    let sliced = |target: &Expr| {
        let parts = target.as_subscript_expr().and_then(|ast| ast.slice.as_tuple_expr());
        parts.is_some_and(|parts| parts.iter().any(Expr::is_slice_expr))
    };
    matches!(stmt, Stmt::Assign(ast)
        if ast.targets.iter().all(sliced) && (computes(&ast.value) || ast.value.is_number_literal_expr()))
}

fn assigns_computed(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Assign(ast) => ast.targets.iter().all(Expr::is_name_expr) && computes(&ast.value),
        Stmt::AugAssign(ast) => ast.target.is_name_expr() && computes(&ast.value),
        // `x.scatter_(…)` computes in place.
        Stmt::Expr(ast) => ast.value.as_call_expr().is_some_and(|call| {
            nodes::name(&call.func).ends_with('_') && nodes::receiver(call).is_some_and(Expr::is_name_expr)
        }),
        _ => false,
    }
}

/// Literals are as often flags and settings of Python's.
const fn computes(value: &Expr) -> bool {
    matches!(value, Expr::Name(_) | Expr::Attribute(_) | Expr::Subscript(_) | Expr::BinOp(_))
        || matches!(value, Expr::UnaryOp(_) | Expr::Call(_) | Expr::FString(_))
}

pub fn is_asserted(path: &[Node<'_>]) -> bool {
    matches!(whole_test(path), [.., Node::StmtAssert(ast), node] if within(*node, &*ast.test))
}

/// Path of the test that the last node is, or is an operand of.
fn whole_test<'p, 'a>(path: &'p [Node<'a>]) -> &'p [Node<'a>] {
    match path {
        [above @ .., _] if matches!(last(above), Some(Node::ExprBoolOp(_) | Node::ExprUnaryOp(_))) => {
            whole_test(above)
        }
        _ => path,
    }
}

/// Whether the last node is only used under a type test that fails for a number: `if hasattr(v, "item")`.
pub fn is_type_tested(path: &[Node<'_>], file: &Source) -> bool {
    let Some(name) = path.last().map(|node| file.text(node)) else { return false };
    let asks = |test: &Expr| {
        let text = file.text(test);
        ["hasattr", "is_tensor", "isinstance"].iter().any(|test| text.contains(&format!("{test}({name}")))
    };
    let own = nodes::range(path);
    path.iter().any(|node| match node {
        Node::StmtIf(ast) => !within(own, ast.test.range()) && asks(&ast.test),
        Node::ElifElseClause(ast) => ast.test.as_ref().is_some_and(asks),
        Node::ExprIf(ast) => asks(&ast.test),
        Node::ExprBoolOp(ast) => asks(&ast.values[0]),
        _ => false,
    })
}

fn stops(call: &ExprCall) -> bool {
    facts::name(nodes::name(&call.func)).is(Fact::Stop)
}

/// The innermost `if` of the function that lets the last node run only now and then.
pub fn rare<'a>(path: &[Node<'a>]) -> Option<&'a StmtIf> {
    under(path, |test| takes_turns(test) || any_over_expr(test, is_rank))
}

pub fn under<'a>(path: &[Node<'a>], wanted: fn(&Expr) -> bool) -> Option<&'a StmtIf> {
    let own = last(path)?.range();
    path[function_scope(path)..].iter().rev().find_map(|node| {
        let Node::StmtIf(ast) = node else { return None };
        let inside = ast.body.iter().any(|stmt| stmt.range().contains_range(own));
        (inside && wanted(&ast.test)).then_some(*ast)
    })
}

/// Every so many iterations: `step % n == 0`; `i % 1` is always 0.
pub fn takes_turns(test: &Expr) -> bool {
    any_over_expr(
        test,
        |expr| matches!(expr, Expr::BinOp(ast) if ast.op == Operator::Mod && nodes::int(&ast.right) != Some(1)),
    )
}

/// `rank == 0`, `is_main_process`.
fn is_rank(expr: &Expr) -> bool {
    let name = nodes::name(expr).to_ascii_lowercase();
    name.ends_with("rank") || ["main_process", "is_master", "is_main"].iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_do_what_their_markers_say() {
        let programs = include_str!("conditions.py").split("\n# ---\n").skip(1);
        for code in programs {
            let file = Source::parse(code.as_bytes().to_vec()).expect("it parses");
            let flags = nodes::named(file.module(), "flag");
            let flag = flags.last().expect("it has the test");
            let marker = code.split_once("  #! ").and_then(|(_, rest)| rest.lines().next());
            match marker.expect("a marker") {
                "chooses values" => assert!(is_choice(flag), "{code}"),
                "acts" => assert!(!is_choice(flag), "{code}"),
                wanted => assert_eq!(format!("{:?}", fork(flag)), wanted, "{code}"),
            }
        }
    }
}
