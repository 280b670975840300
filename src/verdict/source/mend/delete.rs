//! Statements that go as a whole, and imports that nothing uses any more.

use super::text::{beside, is_alone, replace};
use crate::model::edit::Replacement;
use crate::python::facts::{self, Fact};
use crate::python::parse::{
    Node, Path, Source, called, full_callee, function_scope, last, nodes, scope, split_callee,
};
use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::{Ranged, TextRange, TextSize};

/// Deletes the statement that the call at the end of `path` is. `None` where it is a part of one.
///
/// ```text
/// step()                       step()
/// torch.cuda.synchronize()     print(x)
/// print(x)
///
/// step(); sync()               step()
///
/// if debug:                    if debug:
///     sync()                       pass
/// ```
pub fn statement(file: &Source, path: &[Node<'_>]) -> Option<Replacement> {
    let at = nodes::statement(path)?;
    let Node::StmtExpr(own) = path[at] else { return None };
    let call = nodes::call(path).filter(|call| call.range() == own.value.range())?;
    let (block, place) = nodes::place(path).filter(|_| nodes::given(call).all(is_plain))?;
    let range = own.range;
    let (before, rest, _) = beside(file, range);
    match block {
        [_] => Some(replace(range, "pass")),
        _ if is_alone(before, rest) => whole_line(file, path),
        // `step(); sync()`: back to the end of what stands before.
        _ if place > 0 && before.trim_end().ends_with(';') => {
            Some(replace(TextRange::new(block[place - 1].end(), range.end()), ""))
        }
        _ if rest.trim().starts_with(';') => {
            Some(replace(TextRange::new(range.start(), block.get(place + 1)?.start()), ""))
        }
        _ => None,
    }
}

/// What the deleted statement leaves behind, as statements that go with it: of its function, times that nothing looks at, and of its
/// own event the making and the recording.
///
/// ```text
/// done = torch.cuda.Event()
/// y = model(x)                             y = model(x)
/// done.record()
/// done.synchronize()
/// ended = time.time()
/// return y                                 return y
/// ```
/// Cost: one walk over the function for each of its names.
pub fn left_over(file: &Source, path: &[Node<'_>]) -> Vec<Replacement> {
    let at = function_scope(path);
    let Node::StmtFunctionDef(_) = path[at] else { return Vec::new() };
    let event = nodes::call(path).and_then(nodes::receiver).and_then(Expr::as_name_expr);
    let own = nodes::range(path);
    let assigned = nodes::find(
        &path[..=at],
        &mut |path| matches!(path, [.., Node::StmtAssign(ast), name] if matches!(&*ast.targets, [Expr::Name(only)] if only.range == name.range())),
    );
    let deleted = nodes::any(&path[..=at], &mut |path| matches!(last(path), Some(Node::StmtDelete(_))));
    let mut gone: Vec<Path<'_>> = Vec::new();
    for target in assigned {
        let (Some(Node::ExprName(name)), Some((Expr::Call(made), _))) =
            (last(&target), scope::value(target.clone()))
        else {
            continue;
        };
        let owner = scope::owner(&target, &name.id);
        if nodes::range(&owner) != path[at].range() || deleted {
            continue;
        }
        let reads = scope::occurrences(&owner, &name.id).into_iter().filter(|one| !one.store);
        let reads: Vec<Path<'_>> =
            reads.map(|one| one.path).filter(|read| !nodes::within(nodes::range(read), own)).collect();
        let timer = is_clock(file, made) && made.arguments.is_empty() && reads.is_empty();
        let waited =
            event.is_some_and(|event| event.id == name.id) && full_callee(file, made) == "torch.cuda.Event";
        if timer || waited && reads.iter().all(|read| is_recording(read)) {
            gone.extend(reads);
            gone.push(target);
        }
    }
    let goes = |stmt: &Stmt| {
        gone.iter().any(|path| nodes::within(nodes::range(path), stmt)) || nodes::within(own, stmt)
    };
    let emptied = |path: &Path<'_>| nodes::place(path).is_none_or(|(block, _)| block.iter().all(goes));
    if gone.iter().any(emptied) {
        return Vec::new();
    }
    gone.iter().map(|path| whole_line(file, path)).collect::<Option<_>>().unwrap_or_default()
}

/// Whether a name is read to record the event that it stands for, in a statement of its own: `done.record()`.
fn is_recording(read: &[Node<'_>]) -> bool {
    matches!(read, [.., Node::StmtExpr(_), Node::ExprCall(call), Node::ExprAttribute(ast), _]
        if ast.attr.as_str() == "record" && call.arguments.args.iter().all(is_plain) && call.arguments.keywords.is_empty())
}

/// Deletes the statement around the last node, where it has its lines for itself.
fn whole_line(file: &Source, path: &[Node<'_>]) -> Option<Replacement> {
    let stmt = path[nodes::statement(path)?].range();
    let (before, rest, line) = beside(file, stmt);
    is_alone(before, rest).then(|| replace(TextRange::new(line, stmt.end() + TextSize::of(rest)), ""))
}

/// Arguments whose evaluation does nothing.
fn is_plain(expr: &Expr) -> bool {
    match expr {
        Expr::Name(_) => true,
        Expr::Attribute(ast) => is_plain(&ast.value),
        _ => expr.is_literal_expr(),
    }
}

/// Whether the line below a statement also synchronises: with the statement gone, it would stand in its line.
pub fn is_alike_below(file: &Source, path: &[Node<'_>]) -> bool {
    let Some(at) = nodes::statement(path) else { return true };
    let next = file.line_of(path[at].end()) + 1;
    file.line_text(next).contains("synchronize(")
}

/// Whether the function around does nothing but synchronise: it is there for those who call it.
pub fn is_wrapper(path: &[Node<'_>]) -> bool {
    nodes::function(nodes::function_around(path)).is_some_and(|ast| only_synchronises(&ast.body))
}

fn only_synchronises(body: &[Stmt]) -> bool {
    body.iter().all(|stmt| match stmt {
        Stmt::Expr(ast) => match &*ast.value {
            Expr::Call(call) => matches!(nodes::name(&call.func), "synchronize" | "barrier"),
            value => value.is_literal_expr(),
        },
        Stmt::If(ast) => {
            only_synchronises(&ast.body)
                && ast.elif_else_clauses.iter().all(|clause| only_synchronises(&clause.body))
        }
        Stmt::Return(ast) => ast.value.is_none(),
        _ => matches!(stmt, Stmt::Pass(_)),
    })
}

/// Whether a call reads a clock.
pub fn is_clock(file: &Source, call: &ExprCall) -> bool {
    let callee = full_callee(file, call);
    let name = split_callee(&callee).1;
    facts::name(name).is(Fact::Clock) && name != "time" && name != "timer"
        || facts::name(&callee).is(Fact::Clock)
}

/// Whether the file reads a clock anywhere, but for what goes with the statement ([`left_over`]): what is measured around a call
/// changes with what is awaited in it.
pub fn reads_clock(file: &Source, path: &[Node<'_>]) -> bool {
    let clocks = nodes::calls(&[file.module()], &|call| is_clock(file, call));
    if clocks.is_empty() {
        return false;
    }
    let gone = left_over(file, path);
    let goes = |one: &Replacement, clock: &Path<'_>| {
        let range = nodes::range(clock);
        one.start <= range.start().to_u32() && range.end().to_u32() <= one.end
    };
    clocks.iter().any(|clock| !gone.iter().any(|one| goes(one, clock)))
}

/// Whether events of the file are asked for the time between them, or the function ends a recording: both need the GPU's work to
/// be over.
pub fn is_measured(file: &Source, path: &[Node<'_>]) -> bool {
    let asks = |call: &ExprCall| nodes::name(&call.func) == "elapsed_time";
    let stops = |call: &ExprCall| {
        let callee = full_callee(file, call);
        callee.ends_with("profiler.stop") || callee.ends_with("cudaProfilerStop")
    };
    nodes::any_call(&[file.module()], &asks) || nodes::any_call(nodes::function_around(path), &stops)
}

/// Lines of `after` with an import of one name that `before` uses and `after` does not, in order.
///
/// Only `from torch.cuda import synchronize`, `import time` and the like go: alone on its line, without a comment (it may say why it
/// is kept), at the top of a file that does not list what it exports. Other modules may be imported for what that does.
pub fn unused_imports(before: &Source, after: &Source) -> Vec<TextRange> {
    let used = |file: &Source, name: &str| {
        nodes::any(&[file.module()], &mut |path| match last(path) {
            Some(Node::ExprName(ast)) => ast.id == name || ast.id == "__all__",
            Some(Node::StringLiteral(ast)) => &*ast.value == name,
            _ => false,
        })
    };
    let Node::ModModule(module) = after.module() else { return Vec::new() };
    let single = module.body.iter().filter_map(|stmt| match stmt {
        Stmt::ImportFrom(import) => match (&*import.names, import.module.as_deref()) {
            ([one], Some(from)) if from.starts_with("torch") || facts::module(from).is(Fact::Clocks) => {
                Some((import.range, one))
            }
            _ => None,
        },
        Stmt::Import(import) => match &*import.names {
            [one] if facts::module(&one.name).is(Fact::Clocks) => Some((import.range, one)),
            _ => None,
        },
        _ => None,
    });
    let gone = single.filter(|(_, alias)| used(before, called(alias)) && !used(after, called(alias)));
    let lines = gone.filter_map(|(import, _)| {
        let line = after.line_range(after.line_of(import.start()))?;
        let whole = after.slice(line).trim() == after.slice(import);
        let rest = &after.whole()[line.end().to_usize()..];
        let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
        whole.then(|| TextRange::new(line.start(), line.end() + TextSize::of(&rest[..end])))
    });
    lines.collect()
}
