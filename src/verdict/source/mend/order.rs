//! A wait of the host for a stream, as a wait of the GPU.

use super::text::{beside, line_break, replace};
use super::{Subject, WAIT_STREAM, Written};
use crate::model::edit::{Refusal, Replacement};
use crate::verdict::source::infer::{Names, Placement, TORCH};
use crate::verdict::source::parse::{Node, Source, full_callee, full_name, nodes, scope, within};
use ruff_python_ast::{Expr, ExprCall, ExprName, Stmt, StmtWith};
use ruff_text_size::Ranged;

/// `side.synchronize()` as a wait of the current stream.
///
/// Definition: `side` is the only stream that the file makes. What runs on it stands in `with` statements before the wait, in its
/// block, and only makes tensors, each under a name of the function. Those that are read elsewhere are recorded on the current stream:
/// their memory may not go to other work of `side` before that has read them.
///
/// ```text
/// with torch.cuda.stream(side):            with torch.cuda.stream(side):
///     y = a @ b                                y = a @ b
/// side.synchronize()                       torch.cuda.current_stream().wait_stream(side)
///                                          y.record_stream(torch.cuda.current_stream())
/// z = y + 1                                z = y + 1
/// ```
/// Cost: one walk over the file, and one over the function for each tensor.
pub fn waited<'a>(s: Subject<'_, 'a>, call: &'a ExprCall) -> Option<Written> {
    let file = s.here.file();
    let side = nodes::receiver(call)?.as_name_expr()?;
    makes_stream(file, s.here.path, side).then_some(())?;
    let replacements = replacements(s, call, side).ok_or(Refusal::Crossing);
    Some(Written::new(&WAIT_STREAM, None, replacements))
}

/// Whether a name is given one value, the only stream that the file makes.
fn makes_stream<'a>(file: &'a Source, path: &[Node<'a>], side: &'a ExprName) -> bool {
    let is_stream = |call: &ExprCall| full_callee(file, call) == "torch.cuda.Stream";
    let made = nodes::calls(&[file.module()], &|call| nodes::name(&call.func).ends_with("Stream"));
    let only = scope::only_value(path, side).and_then(|(value, _)| value.as_call_expr());
    made.len() == 1 && only.is_some_and(is_stream)
}

fn replacements<'a>(s: Subject<'_, 'a>, call: &'a ExprCall, side: &ExprName) -> Option<Vec<Replacement>> {
    let (file, path) = (s.here.file(), s.here.path);
    let (block, own) = nodes::place(path)?;
    let Stmt::Expr(stmt) = &block[own] else { return None };
    let (indent, ..) = beside(file, stmt.range);
    let whole = stmt.value.range() == call.range() && call.arguments.is_empty() && indent.trim().is_empty();
    let function = nodes::function_around(path);
    let below = path.iter().any(|node| matches!(node, Node::StmtWith(ast) if stream(file, ast).is_some()));
    if !whole || below || full_name(file, "torch.cuda") != "torch.cuda" {
        return None;
    }
    let mut on_side: Vec<&StmtWith> = Vec::new();
    for used in scope::mentions(path, &side.id).into_iter().filter(|one| !one.store) {
        match used.path[..] {
            [.., Node::ExprAttribute(ast), _] if Names("wait_stream synchronize").has(&ast.attr) => {}
            [.., Node::StmtWith(ast), Node::WithItem(_), Node::ExprCall(_), Node::Arguments(_), _] => {
                on_side.push(ast);
            }
            _ => return None,
        }
    }
    let before = |ast: &&StmtWith| {
        let here = block[..own].iter().any(|stmt| stmt.range() == ast.range);
        here && stream(file, ast).is_some_and(|name| name.id == side.id)
    };
    if on_side.is_empty() || !on_side.iter().all(before) {
        return None;
    }
    let mut lines = format!("torch.cuda.current_stream().wait_stream({})", side.id);
    let mut known: Vec<&str> = Vec::new();
    for stmt in on_side.iter().flat_map(|ast| &ast.body) {
        let name = tensor(s, stmt).filter(|name| scope::parameter(function, name).is_none())?;
        let mut elsewhere = scope::occurrences(function, name);
        elsewhere.retain(|one| !on_side.iter().any(|ast| within(nodes::range(&one.path), ast.range)));
        if elsewhere.iter().any(|one| !one.load) {
            return None;
        }
        if !known.contains(&name) && !elsewhere.is_empty() {
            known.push(name);
            lines += &format!("\n{indent}{name}.record_stream(torch.cuda.current_stream())");
        }
    }
    Some(vec![replace(stmt.range, lines.replace('\n', line_break(file)))])
}

/// The stream that a `with` makes the current one; `None` where it does something else too.
fn stream<'a>(file: &Source, ast: &'a StmtWith) -> Option<&'a ExprName> {
    let [item] = &*ast.items else { return None };
    let call = item.context_expr.as_call_expr()?;
    let [Expr::Name(name)] = &*call.arguments.args else { return None };
    (full_callee(file, call) == "torch.cuda.stream").then_some(name)
}

/// The name that a statement gives a tensor on the GPU, where it does nothing else.
fn tensor<'a>(s: Subject<'_, 'a>, stmt: &'a Stmt) -> Option<&'a str> {
    let Stmt::Assign(ast) = stmt else { return None };
    let [Expr::Name(name)] = &*ast.targets else { return None };
    let writes = nodes::any_call(&[Node::from(stmt)], &|call| nodes::name(&call.func).ends_with('_'));
    let tensor = s.here.find(&ast.value) == Placement::Device && is_tensor(&ast.value);
    (tensor && !writes).then_some(&*name.id)
}

/// Whether an expression surely is one tensor: arithmetic, and functions of torch that give no tuple of them.
fn is_tensor(expr: &Expr) -> bool {
    const ONE: Names = Names(
        "tensor as_tensor zeros ones empty full rand randn arange cat stack matmul mm bmm add sub mul div exp log sqrt abs relu \
         sigmoid tanh softmax where linear",
    );
    const KEEPS: Names =
        Names("to cuda float half double long bfloat16 contiguous clone detach view reshape");
    match expr {
        Expr::BinOp(_) => true,
        Expr::Call(call) => match nodes::receiver(call) {
            Some(Expr::Name(name)) if TORCH.has(&name.id) => ONE.has(nodes::name(&call.func)),
            Some(value) => KEEPS.has(nodes::name(&call.func)) && is_tensor(value),
            None => false,
        },
        _ => false,
    }
}
