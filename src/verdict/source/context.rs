//! What surrounds a read: other reads next to it (S17), and conditions that make it rare (S18).

use super::file::Source;
use super::nodes::{self, Node, dotted, function_scope, last, split_callee, statement};
use crate::vocabulary::Evidence;
use ruff_python_ast::{Expr, ExprCall, Operator, Stmt, StmtIf};
use ruff_text_size::Ranged;

/// Reads of one value each, which could be read together.
const READS: &[&str] = &["item", "tolist", "cpu"];

/// Statements looked at on either side.
const MAX_NEIGHBOURS: usize = 20;

/// S17: how many values are read one by one around the last node, in its statement and the neighbours in its block.
pub fn coalescable(file: &Source, path: &[Node<'_>]) -> Option<Evidence> {
    let lines: Vec<u32> =
        run(path).iter().flat_map(|stmt| reads(stmt)).map(|call| file.line_of(call.start())).collect();
    let looped = path.iter().any(|node| nodes::is_comprehension(*node));
    let (first, last) = (lines.iter().min()?, lines.iter().max()?);
    if lines.len() > 1 {
        let place = if first == last { format!("line {first}") } else { format!("lines {first} to {last}") };
        let text = format!(
            "{} values are read one by one on {place}: one `torch.stack(...).tolist()` reads them in one wait",
            lines.len()
        );
        return Some(Evidence::new("S17", text));
    }
    looped.then(|| Evidence::new("S17", "a comprehension reads the values one by one: one `torch.stack(...).tolist()` reads them in one wait"))
}

/// The statement around the last node and the neighbours in its block that read values too, without a gap.
pub fn run<'a>(path: &[Node<'a>]) -> &'a [Stmt] {
    let Some(at) = statement(path) else { return &[] };
    let block = nodes::block(path, at);
    let Some(own) = block.iter().position(|stmt| stmt.range() == path[at].range()) else { return &[] };
    let reading = |stmt: &&Stmt| !reads(stmt).is_empty();
    let before = block[..own].iter().rev().take(MAX_NEIGHBOURS).take_while(reading).count();
    let after = block[own + 1..].iter().take(MAX_NEIGHBOURS).take_while(reading).count();
    &block[own - before..=own + after]
}

/// The reads of one value each in a statement, those in the blocks below it left out.
fn reads(stmt: &Stmt) -> Vec<&ExprCall> {
    let mut found = Vec::new();
    nodes::walk(&[Node::from(stmt)], &mut |path| {
        match last(path) {
            Some(Node::ExprCall(call))
                if call.arguments.is_empty() && READS.contains(&split_callee(&dotted(&call.func)).1) =>
            {
                found.push(call);
            }
            Some(node) if path.len() > 1 && node.is_statement() => return false,
            _ => {}
        }
        true
    });
    found
}

/// S18: the condition around that lets the line run only now and then, or only in one process.
pub fn amortised(file: &Source, path: &[Node<'_>]) -> Option<Evidence> {
    let ast = rare(path)?;
    let text =
        format!("only runs under `if {}` (line {})", file.text(&*ast.test), file.line_of(ast.range.start()));
    Some(Evidence::new("S18", text))
}

/// The innermost `if` of the function that lets the last node run only now and then.
pub fn rare<'a>(path: &[Node<'a>]) -> Option<&'a StmtIf> {
    let function = function_scope(path);
    let own = last(path)?.range();
    path[function..].iter().rev().find_map(|node| {
        let Node::StmtIf(ast) = node else { return None };
        let inside = ast.body.iter().any(|stmt| stmt.range().contains_range(own));
        (inside && is_rare(&ast.test)).then_some(*ast)
    })
}

/// `step % n == 0`, `rank == 0`, `is_main_process`.
fn is_rare(test: &Expr) -> bool {
    let mut rare = false;
    nodes::walk(&[Node::from(test)], &mut |path| {
        match last(path) {
            Some(Node::ExprBinOp(ast)) if ast.op == Operator::Mod && !is_one(&ast.right) => rare = true,
            Some(Node::ExprName(ast)) => rare |= is_rank(&ast.id),
            Some(Node::ExprAttribute(ast)) => rare |= is_rank(&ast.attr),
            _ => {}
        }
        true
    });
    rare
}

/// `i % 1` is always 0.
fn is_one(expr: &Expr) -> bool {
    matches!(expr, Expr::NumberLiteral(number) if matches!(&number.value, ruff_python_ast::Number::Int(int) if int.as_u8() == Some(1)))
}

fn is_rank(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with("rank")
        || name.contains("main_process")
        || name.contains("is_master")
        || name.contains("is_main")
}
