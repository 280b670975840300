//! Copies without a wait whose memory the host uses meanwhile: what the source says of that.

use super::barrier::{copies_down, expression, reads, surely_before, target};
use crate::verdict::source::infer::libraries::Names;
use crate::verdict::source::locate::line::{Tier, runs_in, walk_line};
use crate::verdict::source::parse::nodes::{self, flag, function_scope, range};
use crate::verdict::source::parse::scope;
use crate::verdict::source::parse::{Node, Path, Source, dotted, last, within};
use ruff_python_ast::{Expr, ExprCall, ExprContext};
use ruff_text_size::{Ranged, TextRange};

/// Functions looked at, one calling the other, for whether a line runs once.
const MAX_CALLERS: u8 = 5;

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
/// buffer = torch.empty(n).pin_memory()                  made once: in no loop, of no function that may run twice
/// for x in batches:
///     buffer.copy_(x)                                   the write
///     y = buffer.to("cuda", non_blocking=True)          the line
/// ```
/// Where the trace shows that a copy of the line had not ended when the line ran again, the write in between came too early.
/// Cost: some walks over the file.
pub fn rewritten(file: &Source, line: u32, function: &str) -> Option<Use> {
    let copy = only(file, line, function, &|call| Names("to cuda copy_").has(nodes::name(&call.func)))?;
    let call = nodes::call(&copy)?;
    let sent = if nodes::name(&call.func) == "copy_" {
        call.arguments.args.first()?
    } else {
        nodes::receiver(call)?
    };
    let (buffer, whole) = from_its_start(sent)?;
    is_made_once(file, buffer, &copy).then_some(())?;
    let name = dotted(buffer);
    let around = &copy[..=function_scope(&copy)];
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
    let target = target(&copy)?;
    let name = expression(&target).and_then(Expr::as_name_expr)?.id.to_string();
    let (turn, from) = (turn(&copy), range(&copy).end());
    let around = &copy[..=function_scope(&copy)];
    let leaves = |to: TextRange| {
        let between = |path: &[Node<'_>]| from <= range(path).start() && range(path).end() <= to.start();
        !nodes::find(around, &mut |path| {
            let ends =
                matches!(last(path), Some(Node::StmtContinue(_) | Node::StmtBreak(_) | Node::StmtReturn(_)));
            ends && between(path)
        })
        .is_empty()
    };
    let polled = !nodes::calls(around, &|call| nodes::name(&call.func) == "query").is_empty();
    let read = reads(&target, &name).into_iter().find(|read| {
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
    scope::innermost_loop(path, range(path).start()).unwrap_or_else(|| range(&path[..=function_scope(path)]))
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
                && (whole || is_buffer_start(&ast.slice))
        }
        _ => false,
    }
}

fn is_buffer_start(slice: &Expr) -> bool {
    matches!(slice, Expr::Slice(slice) if slice.lower.is_none())
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
    const COMPUTE: Names = Names("item tolist sum mean max min argmax argmin any all abs clone");
    match read {
        [.., Node::ExprCall(call), Node::ExprAttribute(ast), _] if call.func.range() == ast.range => {
            COMPUTE.has(&ast.attr)
        }
        [.., Node::ExprCall(call), Node::Arguments(_), _] => {
            matches!(&*call.func, Expr::Name(name) if Names("float int bool print").has(&name.id))
        }
        [.., Node::InterpolatedElement(_) | Node::ExprBinOp(_) | Node::ExprCompare(_), _] => true,
        _ => false,
    }
}

/// Whether the buffer is pinned memory that is made in one place, which runs once in the process.
fn is_made_once<'a>(file: &'a Source, buffer: &'a Expr, path: &[Node<'a>]) -> bool {
    let made = match buffer {
        Expr::Name(name) => {
            let owner = scope::owner(path, &name.id);
            let all = scope::occurrences(&owner, &name.id);
            let mut stores = all.into_iter().filter(|one| one.store || !one.load);
            let Some(one) = stores.next().filter(|_| stores.next().is_none()) else { return false };
            let once = scope::parameter(&owner, &name.id).is_none() && runs_once(file, &owner, 0);
            scope::value(one.path).filter(|_| once)
        }
        Expr::Attribute(ast) => own_attribute(file, ast.attr.as_str(), path),
        _ => None,
    };
    made.is_some_and(|(value, place)| is_pinned(value) && !is_repeated(&place))
}

/// What `__init__` gives to an attribute of the class around, of which the file makes one object, and nobody else does.
fn own_attribute<'a>(file: &'a Source, attribute: &str, path: &[Node<'a>]) -> Option<(&'a Expr, Path<'a>)> {
    let class = path[..=nodes::class_scope(path)?].to_vec();
    let Some(Node::StmtClassDef(ast)) = last(&class) else { return None };
    let mut stores = nodes::find(&[file.module()], &mut |path| {
        nodes::attribute(path)
            .is_some_and(|one| one.attr.as_str() == attribute && one.ctx != ExprContext::Load)
    })
    .into_iter();
    let store = stores.next().filter(|_| stores.next().is_none())?;
    let in_init =
        nodes::function(&store[..=function_scope(&store)]).is_some_and(|f| f.name.as_str() == "__init__");
    let own = nodes::class_scope(&store).is_some_and(|at| range(&store[..=at]) == range(&class));
    let value = match store.get(store.len().checked_sub(2)?)? {
        Node::StmtAssign(ast) => &*ast.value,
        Node::StmtAnnAssign(ast) => ast.value.as_deref()?,
        _ => return None,
    };
    (in_init && own && is_called_once(file, &ast.name, 0)).then_some((value, store))
}

/// Whether a value is made as pinned memory.
fn is_pinned(value: &Expr) -> bool {
    let Expr::Call(call) = value else { return false };
    nodes::name(&call.func) == "pin_memory"
        || flag(call, "pin_memory") && dotted(&call.func).starts_with("torch.")
}

/// Whether a loop or a comprehension of its function holds the last node.
fn is_repeated(path: &[Node<'_>]) -> bool {
    path[function_scope(path)..]
        .iter()
        .any(|&node| matches!(node, Node::StmtFor(_) | Node::StmtWhile(_)) || nodes::is_comprehension(node))
}

/// Whether the code of the module or function at the end of a path runs once: its only mention in the file is a call that does.
fn runs_once(file: &Source, owner: &[Node<'_>], callers: u8) -> bool {
    let Some(function) = nodes::function(owner) else { return owner.len() == 1 };
    let method = matches!(nodes::above(owner, 1), Some(Node::StmtClassDef(_)));
    !method && function.decorator_list.is_empty() && is_called_once(file, &function.name, callers)
}

fn is_called_once(file: &Source, name: &str, callers: u8) -> bool {
    let mut named = nodes::find(
        &[file.module()],
        &mut |path| matches!(last(path), Some(Node::ExprName(ast)) if ast.id.as_str() == name),
    )
    .into_iter();
    let Some(only) = named.next().filter(|_| named.next().is_none()) else { return false };
    let at = range(&only);
    let called = matches!(nodes::above(&only, 1), Some(Node::ExprCall(call)) if call.func.range() == at);
    called
        && callers < MAX_CALLERS
        && !is_repeated(&only)
        && runs_once(file, &only[..=function_scope(&only)], callers + 1)
}
