//! Waits that make a copied buffer valid (S15b).

use super::file::Source;
use super::nature::{Nature, device_text};
use super::nodes::{
    self, Node, Path, dotted, flag, function_scope, last, split_callee, statement, string, within,
};
use super::scope::{self, Definition};
use ruff_python_ast::{Expr, ExprCall, ExprContext};
use ruff_text_size::{Ranged, TextRange, TextSize};

/// A copy and the read of its buffer that a wait stands between.
pub struct Barrier {
    /// What holds the copy.
    pub name: String,
    /// Line of the copy.
    pub copied: u32,
    /// Line of the read.
    pub read: u32,
}

/// The copy to the host that the wait at the end of `path` makes readable.
///
/// Definition: a non-blocking copy comes before the wait and a read of its target after it, in this round of the loop around
/// them or over into the next one; an attribute lasts from one call of the function to the next as it does from one round to
/// the next, and another method of the class may have started its copy. Of several waits between copy and read, those
/// on an event recorded after the copy are meant for it, else the last.
///
/// ```text
/// for x in xs:                          for x in xs:
///     torch.cuda.synchronize()  # no        torch.cuda.synchronize()  # the barrier of the last round's copy
///     host.copy_(x, non_blocking=True)      use(host)
///     ready.record()                        host.copy_(x, non_blocking=True)
///     ready.synchronize()       # yes
///     use(host)
/// ```
/// Cost: one walk over the function for each copy in it, and one over the class.
pub fn barrier(file: &Source, path: &[Node<'_>]) -> Option<Barrier> {
    let function = &path[..=function_scope(path)];
    let wait = last(path)?;
    let waits = calls_in(function, &|call| split_callee(&dotted(&call.func)).1 == "synchronize");
    let found = |copy: &Path<'_>, name: String, read: Node<'_>| Barrier {
        name,
        copied: file.line_of(last(copy).map(|copy| copy.start()).unwrap_or_default()),
        read: file.line_of(read.start()),
    };
    let own = calls_in(function, &copies_down).into_iter().rev().find_map(|copy| {
        let target = target(&copy)?;
        let name = dotted(expression(&target)?);
        let read = reads(&target, &name).into_iter().find(|read| {
            let Some(span) = Span::new(&copy, read, function) else { return false };
            span.meant(&waits, wait.range(), function).is_some_and(|meant| meant == wait.range())
        })?;
        Some(found(&copy, name, last(&read)?))
    });
    own.or_else(|| {
        let class = &path[..=nodes::class_scope(path)?];
        calls_in(class, &copies_down).into_iter().find_map(|copy| {
            if within(last(&copy)?, last(function)?) {
                return None;
            }
            let name = dotted(expression(&target(&copy)?)?);
            name.strip_prefix("self.")?;
            let read = attribute_reads(function, &name).into_iter().find(|read| {
                let nearest = waits.iter().rfind(|wait| start(wait) < start(read));
                nearest.is_some_and(|nearest| last(nearest).is_some_and(|node| node.range() == wait.range()))
            })?;
            Some(found(&copy, name, last(&read)?))
        })
    })
}

/// The way from a copy to a read.
struct Span {
    copy: TextSize,
    read: TextRange,
    /// What repeats, where the way leads into the next round of it.
    round: Option<TextRange>,
}

impl Span {
    fn new(copy: &Path<'_>, read: &Path<'_>, function: &[Node<'_>]) -> Option<Self> {
        let (from, to) = (start(copy), last(read)?.range());
        if from < to.start() {
            return Some(Self { copy: from, read: to, round: None });
        }
        let attribute = matches!(last(read), Some(Node::ExprAttribute(_))).then(|| last(function)).flatten();
        let round = scope::innermost_loop(copy, to.start()).or(attribute.map(|node| node.range()))?;
        Some(Self { copy: from, read: to, round: Some(round) })
    }

    /// The wait on the way that makes the read valid; waits that may not run only count if they are the one asked about.
    fn meant(&self, waits: &[Path<'_>], asked: TextRange, function: &[Node<'_>]) -> Option<TextRange> {
        let on_the_way = |wait: &&Path<'_>| {
            let at = start(wait);
            match self.round {
                None => self.copy < at && at < self.read.start(),
                Some(round) => round.contains(at) && (at > self.copy || at < self.read.start()),
            }
        };
        let counts = |wait: &&Path<'_>| {
            last(wait).is_some_and(|node| node.range() == asked) || surely_before(wait, self.read)
        };
        // Waits of the next round come nearer to the read than those of this one.
        let nearness = |wait: &&Path<'_>| (start(wait) < self.read.start(), start(wait));
        let all: Vec<_> = waits.iter().filter(on_the_way).filter(counts).collect();
        let own = all.iter().copied().filter(|wait| self.is_own(wait, function)).max_by_key(nearness);
        let meant = own.or_else(|| all.iter().copied().max_by_key(nearness))?;
        last(meant).map(|node| node.range())
    }

    /// Whether a wait is on an event that is recorded after the copy.
    fn is_own(&self, wait: &Path<'_>, function: &[Node<'_>]) -> bool {
        let Some(Node::ExprCall(call)) = last(wait) else { return false };
        let callee = dotted(&call.func);
        let event = split_callee(&callee).0;
        let records = calls_in(function, &|call| split_callee(&dotted(&call.func)) == (event, "record"));
        let between = |record: &Path<'_>| {
            let at = start(record);
            self.copy < at && (at < start(wait) || start(wait) < self.copy)
        };
        records.iter().any(between)
    }
}

fn start(path: &Path<'_>) -> TextSize {
    last(path).map(|node| node.start()).unwrap_or_default()
}

/// Whether all branches and loops around a wait are around the read too.
fn surely_before(wait: &Path<'_>, read: TextRange) -> bool {
    wait[function_scope(wait) + 1..].iter().all(|node| match node {
        Node::StmtIf(_)
        | Node::ElifElseClause(_)
        | Node::StmtFor(_)
        | Node::StmtWhile(_)
        | Node::StmtTry(_)
        | Node::ExceptHandlerExceptHandler(_)
        | Node::MatchCase(_) => within(read, *node),
        _ => true,
    })
}

/// Paths of the calls in a region that `wanted` picks, in source order.
fn calls_in<'a>(region: &[Node<'a>], wanted: &dyn Fn(&ExprCall) -> bool) -> Vec<Path<'a>> {
    nodes::find(region, &mut |path| matches!(last(path), Some(Node::ExprCall(call)) if wanted(call)))
}

/// Whether a call copies from the device to the host without waiting.
fn copies_down(call: &ExprCall) -> bool {
    if !flag(call, "non_blocking") {
        return false;
    }
    let Expr::Attribute(method) = &*call.func else { return false };
    let device =
        call.arguments.find_keyword("device").map(|keyword| &keyword.value).or(call.arguments.args.first());
    match method.attr.as_str() {
        "cpu" => true,
        "to" => {
            device.and_then(string).is_some_and(|device| device_text(device) == Nature::Host)
                || matches!(device, Some(Expr::Call(call)) if call.arguments.args.first().and_then(string) == Some("cpu"))
        }
        // Which way `copy_` goes, only names tell.
        "copy_" => {
            let receiver = dotted(&method.value).to_ascii_lowercase();
            !["gpu", "cuda", "dev"].iter().any(|word| receiver.contains(word))
                && ["cpu", "host", "pin", "buf", "stag", "out"].iter().any(|word| receiver.contains(word))
        }
        _ => false,
    }
}

/// Path of what holds the copy afterwards: the receiver of `copy_`, or the name that the copy is assigned to.
fn target<'a>(copy: &Path<'a>) -> Option<Path<'a>> {
    let Node::ExprCall(call) = last(copy)? else { return None };
    let Expr::Attribute(method) = &*call.func else { return None };
    let at = statement(copy)?;
    let target = match (method.attr.as_str(), copy[at]) {
        ("copy_", _) => &*method.value,
        (_, Node::StmtAssign(ast)) if within(&*ast.value, call) => ast.targets.first()?,
        _ => return None,
    };
    Some([&copy[..=at], &[Node::from(target)]].concat())
}

fn expression<'a>(target: &Path<'a>) -> Option<&'a Expr> {
    match (target.iter().rev().nth(1)?, last(target)?) {
        (Node::StmtAssign(ast), node) => {
            let receiver = match &*ast.value {
                Expr::Call(call) => match &*call.func {
                    Expr::Attribute(method) => Some(&*method.value),
                    _ => None,
                },
                _ => None,
            };
            ast.targets.iter().chain(receiver).find(|target| target.range() == node.range())
        }
        (Node::StmtExpr(ast), node) => match &*ast.value {
            Expr::Call(call) => match &*call.func {
                Expr::Attribute(method) if method.value.range() == node.range() => Some(&method.value),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// The reads of the target: of the same name as long as the copy's binding lasts, or of the same attribute in the function.
fn reads<'a>(target: &Path<'a>, name: &str) -> Vec<Path<'a>> {
    if let Some(Node::ExprName(ast)) = last(target) {
        let owner = scope::owner(target, &ast.id);
        let mut reads = scope::reached(&owner, &ast.id, &Definition::new(target));
        reads.retain(|read| !is_written(read));
        return reads;
    }
    attribute_reads(&target[..=function_scope(target)], name)
}

/// The reads of an attribute in a function.
fn attribute_reads<'a>(function: &[Node<'a>], name: &str) -> Vec<Path<'a>> {
    nodes::find(function, &mut |path| match last(path) {
        Some(Node::ExprAttribute(ast)) => {
            ast.ctx == ExprContext::Load
                && format!("{}.{}", dotted(&ast.value), ast.attr) == name
                && !is_written(path)
        }
        _ => false,
    })
}

/// Whether a buffer is only written where it is named: `host.copy_(x)`.
fn is_written(path: &[Node<'_>]) -> bool {
    let [.., above, _] = path else { return false };
    matches!(above, Node::ExprAttribute(ast)
        if matches!(ast.attr.as_str(), "copy_" | "fill_" | "zero_" | "record_stream" | "resize_"))
}
