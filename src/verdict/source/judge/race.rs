//! Copies without a wait whose memory the host uses meanwhile: what the source says of that.

use super::barrier::{copies_down, reads, surely_before, target};
use super::pinned::Home;
use crate::python::facts::{self, Fact};
use crate::python::parse::{
    Node, Path, Source, dotted, flag, function_scope, last, nodes, range, scope, within,
};
use crate::verdict::source::flow::Program;
use crate::verdict::source::locate::line::{Tier, runs_in, walk_line};
use ruff_python_ast::{Expr, ExprCall, ExprContext};
use ruff_text_size::{Ranged, TextRange};

/// What the host does with the memory of a copy on a line, in each turn.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    /// As written: `self.buffer`.
    pub name: String,
    /// Where it is written or read, from 1.
    pub line: u32,
}

/// The call of the line that copies without a wait; `None` where several do.
fn only<'a>(file: &'a Source, line: u32, function: &str, is: &dyn Fn(&ExprCall) -> bool) -> Option<Path<'a>> {
    let mut found: Vec<Path<'a>> = Vec::new();
    walk_line(file, file.line_range(line)?, &mut |path, tier| {
        let copies = nodes::call(path).is_some_and(|call| flag(call, "non_blocking") && is(call));
        if copies && tier == Tier::Exact && runs_in(path, function) {
            found.push(path.to_vec());
        }
    });
    found.pop().filter(|_| found.is_empty())
}

/// The write of the host to a pinned buffer that is made once, surely before each upload of it on that line.
///
/// ```text
/// buffer = torch.empty(n).pin_memory()                  made once, see [`Home::is_made_once`]
/// for x in batches:
///     buffer.copy_(x)                                   the write
///     y = buffer.to("cuda", non_blocking=True)          the line
/// ```
/// Where the trace shows that a copy of the line had not ended when the line ran again, the write in between came too early.
/// Cost: some walks over the file, and those where the buffer is made.
pub fn rewritten(program: Program<'_>, file: &Source, line: u32, function: &str) -> Option<Use> {
    let copy =
        only(file, line, function, &|call| matches!(nodes::name(&call.func), "to" | "cuda" | "copy_"))?;
    let call = nodes::call(&copy)?;
    let (buffer, whole) = from_its_start(sent(call)?)?;
    Home { program, file }.is_made_once(buffer, &copy).then_some(())?;
    let name = dotted(buffer);
    let around = nodes::function_around(&copy);
    let turn = turn(&copy);
    let writes = nodes::find(around, &mut |path| {
        let before = range(path).end() <= range(&copy).start() && within(range(path), turn);
        before
            && writes(path, &name, whole)
            && function_scope(path) + 1 == around.len()
            && runs_before(path, range(&copy))
    });
    Some(Use { line: file.line_of(range(writes.last()?).start()), name })
}

/// The read by code on the CPU of what a line copies to the host, in the same turn, with nothing in the text that waits.
///
/// ```text
/// for x in batches:
///     loss = step(x).to("cpu", non_blocking=True)       the line
///     total += loss.item()                              the read
/// ```
/// Where the trace shows no wait of the thread between two runs of the line, nothing made the read wait.
pub fn read_early(file: &Source, line: u32, function: &str) -> Option<Use> {
    let copy = only(file, line, function, &copies_down)?;
    let (target, place) = target(&copy)?;
    let name = target.as_name_expr()?.id.to_string();
    let (turn, from) = (turn(&copy), range(&copy).end());
    let around = nodes::function_around(&copy);
    let leaves = |to: TextRange| {
        nodes::any(around, &mut |path| {
            let Some(node @ (Node::StmtContinue(_) | Node::StmtBreak(_) | Node::StmtReturn(_))) = last(path)
            else {
                return false;
            };
            from <= node.start() && node.end() <= to.start()
        })
    };
    let polled = nodes::any_call(around, &|call| nodes::name(&call.func) == "query");
    let read = reads(&place, &name).into_iter().find(|read| {
        let at = range(read);
        from <= at.start()
            && within(at, turn)
            && surely_before(read, range(&copy))
            && is_number(read)
            && !leaves(at)
    })?;
    (!polled).then(|| Use { line: file.line_of(range(&read).start()), name })
}

/// What is repeated with a call: the body of the loop around, or its function.
fn turn(path: &[Node<'_>]) -> TextRange {
    scope::innermost_loop(path, range(path).start()).unwrap_or_else(|| range(nodes::function_around(path)))
}

/// What a call uploads: `b.cuda()`, `b.to(d)`, `y.copy_(b)`.
pub(super) fn sent(call: &ExprCall) -> Option<&Expr> {
    match nodes::name(&call.func) {
        "to" | "cuda" => nodes::receiver(call),
        "copy_" => call.arguments.args.first(),
        _ => None,
    }
}

/// The tensor of which an expression is the whole or a first part, and whether it is the whole: `buffer`, `buffer[:n]`.
pub(super) fn from_its_start(expr: &Expr) -> Option<(&Expr, bool)> {
    match expr {
        Expr::Name(_) => Some((expr, true)),
        Expr::Attribute(ast) => ast.value.is_name_expr().then_some((expr, true)),
        Expr::Subscript(ast) => match &*ast.slice {
            Expr::Slice(slice) if slice.lower.is_none() && slice.step.is_none() => {
                Some((from_its_start(&ast.value)?.0, slice.upper.is_none()))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Whether the last node writes to the buffer from the host: `b.copy_(x)`, `b[:n].fill_(0)`, `b[i] = x`, `f(x, out=b)`. To any part
/// only counts where all of it is sent.
pub(super) fn writes(path: &[Node<'_>], name: &str, whole: bool) -> bool {
    let is_buffer = |expr: &Expr| from_its_start(expr).is_some_and(|(buffer, _)| dotted(buffer) == name);
    match last(path) {
        Some(Node::ExprCall(call)) => {
            let method = nodes::name(&call.func);
            let in_place = method.ends_with('_') && !method.ends_with("__") && method != "pin_memory_";
            let into = call.arguments.find_keyword("out").is_some_and(|out| is_buffer(&out.value));
            let own = in_place && nodes::receiver(call).is_some_and(is_buffer);
            (own || into) && !flag(call, "non_blocking")
        }
        Some(Node::ExprSubscript(ast)) => {
            ast.ctx == ExprContext::Store
                && dotted(&ast.value) == name
                && (whole || ast.slice.as_slice_expr().is_some_and(|slice| slice.lower.is_none()))
        }
        _ => false,
    }
}

/// Whether all branches around the last node are around the other place too: then it ran when that is reached. A loop that fills a
/// buffer is taken to have a turn.
fn runs_before(path: &[Node<'_>], other: TextRange) -> bool {
    let plain: Path<'_> = path.iter().copied().filter(|node| !matches!(node, Node::StmtFor(_))).collect();
    surely_before(&plain, other)
}

/// Whether a read is computed with at once, so that its time is that of the line: not `.numpy()`, whose array may wait for its
/// reader.
fn is_number(read: &[Node<'_>]) -> bool {
    match read {
        [.., Node::ExprCall(_), Node::ExprAttribute(ast), _] => computes(&ast.attr),
        [.., Node::ExprCall(call), Node::Arguments(_), _] => {
            matches!(&*call.func, Expr::Name(name) if &*name.id == "print" || facts::name(&name.id).is(Fact::Number))
        }
        [.., Node::InterpolatedElement(_) | Node::ExprBinOp(_) | Node::ExprCompare(_), _] => true,
        _ => false,
    }
}

/// Whether a method computes with the values at once.
fn computes(method: &str) -> bool {
    use Fact::{Each, Reduce, Same, Test, Total};
    matches!(method, "item" | "tolist") || facts::name(method).any(&[Each, Test, Total, Reduce, Same])
}
