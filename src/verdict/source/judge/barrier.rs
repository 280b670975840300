//! Waits that make a copied buffer valid (S15b).

use crate::python::facts::{self, Fact};
use crate::python::parse::{
    Node, Path, Source, Valued, dotted, flag, function_scope, last, nodes, range, scope, split_callee,
    statement, string, within,
};
use crate::verdict::source::infer::{Placement, device_text};
use ruff_python_ast::{Expr, ExprCall, StmtAssign, StmtExpr};
use ruff_text_size::{Ranged, TextRange, TextSize};

/// The copy to the host that the wait at the end of `path` makes readable.
///
/// Definition: a non-blocking copy precedes the wait and a read of its target follows, in this iteration of
/// the loop around them or over into the next. An attribute lasts from one call of the function to the next
/// as from one iteration to the next; another method of the class may have started its copy. Of several waits
/// between copy and read, those on an event recorded after the copy are meant, else the last.
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
pub fn barrier(file: &Source, path: &[Node<'_>]) -> Option<String> {
    let function = nodes::function_around(path);
    let wait = range(path);
    let waits = nodes::calls(function, &|call| nodes::name(&call.func) == "synchronize");
    let found = |copy: &Path<'_>, name: &str, read: &Path<'_>| {
        let (copied, read) = (file.line_of(range(copy).start()), file.line_of(range(read).start()));
        format!(
            "`{name}` is copied to the host without blocking on line {copied} and read on line {read}: this wait makes the read valid"
        )
    };
    let own = nodes::calls(function, &copies_down).into_iter().rev().find_map(|copy| {
        let (target, place) = target(&copy)?;
        let name = dotted(target);
        let read = reads(&place, &name).into_iter().find(|read| {
            let span = Span::new(&copy, read, function, nodes::attribute(read).is_some());
            span.and_then(|span| span.meant(&waits, wait, function)) == Some(wait)
        })?;
        Some(found(&copy, &name, &read))
    });
    own.or_else(|| {
        nodes::calls(nodes::class_around(path)?, &copies_down).into_iter().find_map(|copy| {
            if within(range(&copy), range(function)) {
                return None;
            }
            let name = dotted(target(&copy)?.0);
            name.strip_prefix("self.")?;
            let read = attribute_reads(function, &name).into_iter().find(|read| {
                let nearest =
                    waits.iter().map(|wait| range(wait)).rfind(|wait| wait.start() < range(read).start());
                nearest == Some(wait)
            })?;
            Some(found(&copy, &name, &read))
        })
    })
}

pub(super) struct Span {
    copy: TextSize,
    read: TextRange,
    /// What repeats, where the way leads into its next iteration.
    round: Option<TextRange>,
}

impl Span {
    /// `lasts`: the target lasts from one call of the function to the next.
    pub fn new(copy: &Path<'_>, read: &Path<'_>, function: &[Node<'_>], lasts: bool) -> Option<Self> {
        let (from, to) = (range(copy).start(), range(read));
        if from < to.start() {
            return Some(Self { copy: from, read: to, round: None });
        }
        let call = lasts.then(|| range(function));
        let round = scope::innermost_loop(copy, to.start()).or(call)?;
        Some(Self { copy: from, read: to, round: Some(round) })
    }

    /// The wait that makes the read valid; waits that may not run only count if they are the one asked about.
    pub fn meant(&self, waits: &[Path<'_>], asked: TextRange, function: &[Node<'_>]) -> Option<TextRange> {
        let on_the_way = |wait: &&Path<'_>| {
            let at = range(wait).start();
            match self.round {
                None => self.copy < at && at < self.read.start(),
                Some(round) => round.contains(at) && (at > self.copy || at < self.read.start()),
            }
        };
        let counts = |wait: &&Path<'_>| range(wait) == asked || surely_before(wait, self.read);
        // The copy's own event comes first; of alike waits, the next iteration's are nearer to the read.
        let nearness = |wait: &&Path<'_>| {
            let at = range(wait).start();
            (self.is_own(wait, function), at < self.read.start(), at)
        };
        waits.iter().filter(on_the_way).filter(counts).max_by_key(nearness).map(|wait| range(wait))
    }

    /// Whether a wait is on an event that is recorded after the copy.
    fn is_own(&self, wait: &Path<'_>, function: &[Node<'_>]) -> bool {
        let Some(call) = nodes::call(wait) else { return false };
        let callee = dotted(&call.func);
        let (event, wait) = (split_callee(&callee).0, call.start());
        nodes::any_call(function, &|call| {
            let after = self.copy < call.start() && (call.start() < wait || wait < self.copy);
            after && split_callee(&dotted(&call.func)) == (event, "record")
        })
    }
}

/// Whether all branches and loops around a wait are around the read too.
pub(super) fn surely_before(wait: &Path<'_>, read: TextRange) -> bool {
    wait[function_scope(wait) + 1..].iter().all(|node| match node {
        Node::StmtIf(_) | Node::StmtFor(_) | Node::StmtWhile(_) | Node::StmtTry(_) => within(read, *node),
        Node::ElifElseClause(_) | Node::ExceptHandlerExceptHandler(_) | Node::MatchCase(_) => {
            within(read, *node)
        }
        _ => true,
    })
}

/// From the device to the host, without waiting.
pub(super) fn copies_down(call: &ExprCall) -> bool {
    if !flag(call, "non_blocking") {
        return false;
    }
    let Expr::Attribute(method) = &*call.func else { return false };
    match method.attr.as_str() {
        "cpu" => true,
        "to" => match call.arguments.find_argument_value("device", 0) {
            Some(Expr::Call(call)) => call.arguments.args.first().and_then(string) == Some("cpu"),
            device => device.and_then(string).is_some_and(|device| device_text(device) == Placement::Host),
        },
        // Only names tell the direction of `copy_`.
        "copy_" => {
            let receiver = dotted(&method.value).to_ascii_lowercase();
            !["gpu", "cuda", "dev"].iter().any(|word| receiver.contains(word))
                && ["cpu", "host", "pin", "buf", "stag", "out"].iter().any(|word| receiver.contains(word))
        }
        _ => false,
    }
}

/// What holds the copy afterwards: the receiver of `copy_`, or the name that the copy is assigned to.
pub(super) fn target<'a>(copy: &Path<'a>) -> Option<Valued<'a>> {
    let call = nodes::call(copy)?;
    let Expr::Attribute(method) = &*call.func else { return None };
    let at = statement(copy)?;
    let target = match (method.attr.as_str(), copy[at]) {
        ("copy_", Node::StmtExpr(StmtExpr { value, .. }) | Node::StmtAssign(StmtAssign { value, .. }))
            if value.range() == call.range() =>
        {
            &*method.value
        }
        ("cpu" | "to", Node::StmtAssign(ast)) if within(&*ast.value, call) => ast.targets.first()?,
        _ => return None,
    };
    Some((target, [&copy[..=at], &[Node::from(target)]].concat()))
}

/// Reads of the same name as long as the copy's binding lasts, or of the same attribute in the function.
pub(super) fn reads<'a>(target: &Path<'a>, name: &str) -> Vec<Path<'a>> {
    if let Some(Node::ExprName(ast)) = last(target) {
        let mut reads = scope::reads(target, &ast.id);
        reads.retain(|read| !is_written(read));
        return reads;
    }
    attribute_reads(nodes::function_around(target), name)
}

fn attribute_reads<'a>(function: &[Node<'a>], name: &str) -> Vec<Path<'a>> {
    let attribute = split_callee(name).1;
    let mut reads = nodes::attributes(function, attribute);
    reads.retain(|path| {
        let read = nodes::attribute(path).filter(|ast| ast.ctx.is_load());
        read.is_some_and(|ast| format!("{}.{attribute}", dotted(&ast.value)) == name) && !is_written(path)
    });
    reads
}

/// `host.copy_(x)` only writes the buffer.
fn is_written(path: &[Node<'_>]) -> bool {
    matches!(nodes::above(path, 1), Some(Node::ExprAttribute(ast))
        if matches!(ast.attr.as_str(), "copy_" | "record_stream" | "resize_") || facts::name(&ast.attr).is(Fact::Fill))
}
