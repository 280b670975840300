//! Waits that keep a pinned buffer from being written while a copy of it is under way (S21).

use super::barrier::Span;
use super::pinned::Home;
use super::race::{from_its_start, sent, writes};
use crate::python::parse::{Node, dotted, flag, nodes, range};
use ruff_python_ast::{Expr, ExprCall};

/// The write to a pinned buffer that the wait at the end of `path` holds back until a copy of the buffer has ended.
///
/// Definition: the buffer is uploaded without blocking, the host writes to it later on, in this round of the loop or the next, and of
/// the waits in between this one is meant, as [`super::barrier::barrier`] has it. The file gives the buffer pinned memory, or another one of the program does.
///
/// ```text
/// for x in batches:
///     sent.synchronize()                      yes
///     buffer.copy_(x)
///     y = buffer.to("cuda", non_blocking=True)
///     sent.record()
/// ```
/// Cost: some walks over the function for each copy in it, and one over each file.
pub fn guard(home: Home<'_>, path: &[Node<'_>]) -> Option<String> {
    let file = home.file;
    let function = nodes::function_around(path);
    let waits = nodes::calls(function, &|call| nodes::name(&call.func) == "synchronize");
    nodes::calls(function, &|call| flag(call, "non_blocking")).into_iter().find_map(|copy| {
        let buffer = buffer(nodes::call(&copy)?)?;
        let name = dotted(buffer);
        let writes = nodes::find(function, &mut |path| writes(path, &name, true) || is_element(path, &name));
        let write = writes.into_iter().find(|write| {
            let span = Span::new(&copy, write, function);
            span.and_then(|span| span.meant(&waits, range(path), function)) == Some(range(path))
        })?;
        let (sent, written) = (file.line_of(range(&copy).start()), file.line_of(range(&write).start()));
        (is_given(home, &name) || home.is_made_once(buffer, path)).then(|| {
            format!(
                "the pinned `{name}` is uploaded without blocking on line {sent} and written on line {written}: this wait keeps the write from coming before the copy has ended"
            )
        })
    })
}

/// The buffer, or the list of buffers, of which a call uploads: `b.cuda()`, `y.copy_(b[:n])`, `pair[i].to(d)`.
fn buffer(call: &ExprCall) -> Option<&Expr> {
    let sent = sent(call)?;
    let element = || from_its_start(&sent.as_subscript_expr()?.value);
    Some(from_its_start(sent).or_else(element)?.0)
}

/// Whether the last node writes to one of a list of buffers in place: `pair[i].copy_(x)`.
fn is_element(path: &[Node<'_>], name: &str) -> bool {
    let element = |on: &Expr| matches!(on, Expr::Subscript(ast) if dotted(&ast.value) == name);
    nodes::call(path).is_some_and(|call| {
        nodes::name(&call.func).ends_with('_')
            && !flag(call, "non_blocking")
            && nodes::receiver(call).is_some_and(element)
    })
}

/// Whether an assignment of the file gives the name pinned memory, or several buffers of it.
fn is_given(home: Home<'_>, name: &str) -> bool {
    let made = |call: &ExprCall| home.makes_pinned(call, 0);
    nodes::any(&[home.file.module()], &mut |path| {
        let Some(Node::StmtAssign(ast)) = nodes::last(path) else { return false };
        ast.targets.iter().any(|target| dotted(target) == name)
            && (home.file.text(&*ast.value).contains("pin_memory")
                || nodes::any_call(&[Node::from(&*ast.value)], &made))
    })
}
