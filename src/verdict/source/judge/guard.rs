//! Waits that keep a pinned buffer from being written during a copy of it (S21).

use super::barrier::Span;
use crate::python::parse::{Node, Source, dotted, flag, nodes, range};
use ruff_python_ast::{Expr, ExprCall, ExprContext};

/// The write to a pinned buffer that the wait at the end of `path` holds back until the buffer's copy has
/// ended.
///
/// Definition: the buffer is uploaded without blocking, and the host writes to it later, in this iteration of
/// the loop or the next. Of the waits in between this one is meant, as in [`super::barrier::barrier`]. The
/// file gives the buffer pinned memory, or does not show what it gives it.
///
/// ```text
/// for x in batches:
///     sent.synchronize()                      yes
///     buffer.copy_(x)
///     y = buffer.to("cuda", non_blocking=True)
///     sent.record()
/// ```
/// Cost: some walks over the function for each copy in it, and one over the file.
pub fn guard(file: &Source, path: &[Node<'_>]) -> Option<String> {
    let function = nodes::function_around(path);
    let waits = nodes::calls(function, &|call| nodes::name(&call.func) == "synchronize");
    nodes::calls(function, &|call| flag(call, "non_blocking")).into_iter().find_map(|copy| {
        let buffer = buffer(sent(nodes::call(&copy)?)?)?;
        let name = dotted(buffer);
        let writes = nodes::find(function, &mut |path| writes(path, &name));
        let write = writes.into_iter().find(|write| {
            let span = Span::new(&copy, write, function, buffer.is_attribute_expr());
            span.and_then(|span| span.meant(&waits, range(path), function)) == Some(range(path))
        })?;
        let (sent, written) = (file.line_of(range(&copy).start()), file.line_of(range(&write).start()));
        may_be_pinned(file, &name).then(|| {
            format!(
                "the pinned `{name}` is uploaded without blocking on line {sent} and written on line {written}: this wait keeps the write from coming before the copy has ended"
            )
        })
    })
}

/// `b.cuda()`, `b.to(d)`, `y.copy_(b)`.
fn sent(call: &ExprCall) -> Option<&Expr> {
    match nodes::name(&call.func) {
        "to" | "cuda" => nodes::receiver(call),
        "copy_" => call.arguments.args.first(),
        _ => None,
    }
}

/// The buffer, or the list of buffers, of an expression: `buffer`, `self.buffer[:n]`, `pair[i]`.
fn buffer(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Name(_) => Some(expr),
        Expr::Attribute(ast) => ast.value.is_name_expr().then_some(expr),
        Expr::Subscript(ast) => buffer(&ast.value),
        _ => None,
    }
}

/// Whether the host writes to the buffer, or a part of it: `b.copy_(x)`, `b[i] = x`, `f(x, out=b)`.
fn writes(path: &[Node<'_>], name: &str) -> bool {
    let is_buffer = |expr: &Expr| buffer(expr).is_some_and(|buffer| dotted(buffer) == name);
    match nodes::last(path) {
        Some(Node::ExprCall(call)) => {
            let method = nodes::name(&call.func);
            let in_place = method.ends_with('_') && !method.ends_with("__") && method != "pin_memory_";
            let into = call.arguments.find_keyword("out").is_some_and(|out| is_buffer(&out.value));
            let own = in_place && nodes::receiver(call).is_some_and(is_buffer);
            (own || into) && !flag(call, "non_blocking")
        }
        Some(Node::ExprSubscript(ast)) => ast.ctx == ExprContext::Store && is_buffer(&ast.value),
        _ => false,
    }
}

/// The file gives the name pinned memory, or nothing.
fn may_be_pinned(file: &Source, name: &str) -> bool {
    let (mut given, mut pinned) = (false, false);
    nodes::walk(&[file.module()], &mut |path| {
        if let Some(Node::StmtAssign(ast)) = nodes::last(path)
            && ast.targets.iter().any(|target| dotted(target) == name)
        {
            given = true;
            pinned |= file.text(&*ast.value).contains("pin_memory");
        }
        true
    });
    pinned || !given
}
