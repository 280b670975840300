//! Finding the synchronising expressions of a line.

use super::fit::{self, Fit, fit};
use super::observed::Observed;
use super::sync_expr::{SyncExpr, converted, guesses};
use crate::model::Frame;
use crate::python::facts::{self, Fact};
use crate::python::parse::{
    Node, Path, Source, last,
    nodes::{self, scope},
};
use crate::verdict::source::infer::{Here, Placement, Placements};
use ruff_text_size::{Ranged, TextRange, TextSize};

/// Expressions judged per line. A line with more is generated, and these settle its verdict.
const MAX_CANDIDATES: usize = 32;

#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    pub path: Path<'a>,
    pub sync: SyncExpr<'a>,
    pub fit: Fit,
    /// How plainly the text waits, see [`super::sync_expr::Guess`].
    strength: u8,
    tier: Tier,
}

impl Candidate<'_> {
    /// Whether it may call a C function, which a Python profiler sees.
    pub fn calls_c(&self) -> bool {
        let call = nodes::call(&self.path);
        call.is_some_and(|call| !facts::name(nodes::name(&call.func)).is(Fact::Class))
    }

    /// Whether the expression waits plainly, or as the trace names it, and a capture would record this line for it.
    pub fn is_plain_at_its_line(&self) -> bool {
        self.tier == Tier::Exact && (self.fit == Fit::Named || self.strength == 3)
    }
}

/// How the recorded line relates to the expression, best last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// The statement (or the header of a compound one) spans it.
    Statement,
    /// The expression spans it.
    Expression,
    /// The line that CPython records: where the expression starts, or the method's name in a broken chain.
    Exact,
}

/// The expressions of the frame's line that fit the trace, all of them equally well. `Err`: why the line does
/// not hold what the trace saw.
///
/// Definition: every node whose statement spans the line is asked what it can do ([`guesses`]). A guess stays
/// if it runs in the frame's function and fits the trace ([`fit()`]). The best survive, in this order: named
/// by the trace over open; on the line that CPython records over merely spanning it; plainly waiting over
/// perhaps waiting. The rest is a tie, and the caller judges all of it.
///
/// ```text
/// 30  print(f"loss {loss.item():.4f} acc {acc.item():.3f}")
///     method "item", 4 bytes: both `.item()` calls fit by name; printing and formatting only fit openly.
/// ```
/// Cost: one walk over the statements that span the line.
pub fn locate<'a>(
    frame: &Frame,
    observed: &Observed<'_>,
    placements: &Placements<'a>,
) -> Result<Vec<Candidate<'a>>, String> {
    let file = placements.file;
    let Some(line) = file.line_range(frame.line) else {
        return Err(format!("the file has {} lines", file.line_count()));
    };
    let mut found = Vec::new();
    let mut elsewhere = None;
    walk_line(file, line, &mut |path, tier| {
        let here = Here { placements, path };
        let guesses = guesses(here);
        if guesses.is_empty() {
            return;
        }
        if !runs_in(path, &frame.function) {
            elsewhere = Some(name_of(path[scope(path)]).to_owned());
            return;
        }
        let name = nodes::call(path).map_or("", |call| nodes::name(here.meant(call)));
        for (sync, strength) in guesses {
            let fit = fit(sync, name, observed);
            // The trace must say what the text does not show.
            let number = || {
                let asked = sync == SyncExpr::Other && observed.method.is_some_and(fit::makes_number);
                asked && converted(here).is_some()
            };
            let said =
                || fit == Fit::Named || observed.through.is_some() || fit::is_memory(observed) || number();
            if fit != Fit::No && (strength > 0 || said()) {
                found.push(Candidate { path: path.to_vec(), sync, fit, strength, tier });
            }
        }
    });
    if found.is_empty() {
        return Err(match elsewhere {
            Some(other) => format!("the line is in `{other}`, the trace says `{}`", frame.function),
            None => format!("nothing on the line {}", describe(observed)),
        });
    }
    Ok(best(found, observed))
}

fn best<'a>(mut found: Vec<Candidate<'a>>, observed: &Observed<'_>) -> Vec<Candidate<'a>> {
    let told = |one: &Candidate<'_>| one.sync != SyncExpr::Other;
    if found.iter().any(told) {
        // The inside of a call is only guessed at where nothing on the line explains the wait.
        let named = found.iter().any(|one| told(one) && one.fit == Fit::Named);
        found.retain(|one| told(one) || one.fit == Fit::Named && !named);
    }
    keep_max(&mut found, |one| one.fit);
    keep_max(&mut found, |one| one.tier);
    keep_max(&mut found, |one| one.strength.min(1));
    if found[0].fit != Fit::Named {
        // "Probably" stays beside "plainly": either may be the one.
        keep_max(&mut found, |one| one.strength.min(2));
        keep_max(&mut found, |one| fit::memory_agrees(one.sync, observed));
        if found.iter().any(|one| one.strength == 3) {
            found.retain(|one| one.strength == 3 || one.sync == SyncExpr::Truth);
        }
    }
    // Which of nested calls waited is unknown: the outermost stands for all.
    found.truncate(if found.iter().any(told) { MAX_CANDIDATES } else { 1 });
    // Only one part of `x.to(device).to(dtype)` sends anything.
    let sends = |candidate: &Candidate<'_>| matches!(candidate.sync, SyncExpr::Move(_, Placement::Device));
    if found.iter().any(sends) {
        found.retain(|candidate| !matches!(candidate.sync, SyncExpr::Move(_, Placement::Unknown)));
    }
    drop_nested(found)
}

fn keep_max<T: Ord>(found: &mut Vec<Candidate<'_>>, key: impl Fn(&Candidate<'_>) -> T) {
    if let Some(most) = found.iter().map(&key).max() {
        found.retain(|candidate| key(candidate) == most);
    }
}

/// A truth test of an expression whose parts fit as well is the outcome of the parts: `if x.item() > 3`.
fn drop_nested(mut found: Vec<Candidate<'_>>) -> Vec<Candidate<'_>> {
    let parts = found.iter().filter(|one| one.sync != SyncExpr::Truth);
    let parts: Vec<TextRange> = parts.map(|candidate| nodes::range(&candidate.path)).collect();
    let holds_part =
        |outer: TextRange| parts.iter().any(|part| *part != outer && outer.contains_range(*part));
    found.retain(|one| {
        one.sync != SyncExpr::Truth || one.fit == Fit::Named || !holds_part(nodes::range(&one.path))
    });
    found
}

/// Visits the nodes that the line can mean, each with its relation to the line: nodes of every simple
/// statement, and of the header of every compound statement, that spans the line.
pub fn walk_line<'a>(file: &'a Source, line: TextRange, visit: &mut dyn FnMut(&[Node<'a>], Tier)) {
    nodes::walk(&[file.module()], &mut |path| {
        let Some(node) = last(path) else { return false };
        if matches!(node, Node::ModModule(_)) {
            return true;
        }
        if node.is_statement() && !nodes::overlaps(node.range(), line) {
            return false;
        }
        let clause = path.iter().rposition(|node| is_clause(*node)).unwrap_or(0);
        if nodes::overlaps(header(file, path[clause]), line) {
            visit(path, tier(file, node, line));
        }
        true
    });
}

/// A statement, or the part of a compound one that has a header and a body of its own.
fn is_clause(node: Node<'_>) -> bool {
    node.is_statement()
        || matches!(node, Node::ElifElseClause(_) | Node::MatchCase(_))
        || matches!(node, Node::ExceptHandlerExceptHandler(_) | Node::ModModule(_))
}

/// All of a simple statement; the part before the block of a compound one.
fn header(file: &Source, clause: Node<'_>) -> TextRange {
    let block = match clause {
        Node::StmtMatch(ast) => ast.cases.first().map(Ranged::start),
        _ => nodes::bodies(clause).first().and_then(|body| body.first()).map(Ranged::start),
    };
    let text = file.slice(TextRange::new(clause.start(), block.unwrap_or(clause.end())));
    TextRange::at(clause.start(), TextSize::of(text.trim_end()))
}

fn tier(file: &Source, node: Node<'_>, line: TextRange) -> Tier {
    let method = || node.expr_call()?.func.as_attribute_expr().map(|ast| ast.attr.start());
    let number = file.line_of(line.start());
    let starts = |start| file.line_of(start) == number;
    if starts(node.start()) || method().is_some_and(starts) {
        Tier::Exact
    } else if nodes::overlaps(node.range(), line) {
        Tier::Expression
    } else {
        Tier::Statement
    }
}

pub fn holds(file: &Source, line: u32, function: &str) -> bool {
    let Some(line) = file.line_range(line) else { return false };
    let mut found = false;
    walk_line(file, line, &mut |path, _| found |= runs_in(path, function));
    found
}

/// The last line of the function of that name that begins, or whose decorators begin, at line `first`; the
/// file's last line for `<module>`.
pub fn last_of(file: &Source, first: u32, function: &str) -> Option<u32> {
    let wanted = function.rsplit('.').next().unwrap_or(function);
    if wanted == "<module>" {
        return Some(file.line_count());
    }
    let mut last_line = None;
    nodes::walk(&[file.module()], &mut |path| {
        let Some(function) = nodes::function(path).filter(|function| function.name.as_str() == wanted) else {
            return true;
        };
        if file.line_of(function.start()) == first {
            last_line = Some(file.line_of(function.end()));
        }
        true
    });
    last_line
}

/// Whether the last node runs in the code object that the frame names. Comprehensions count for the function around them too:
/// since Python 3.12 they have no frame of their own.
pub fn runs_in(path: &[Node<'_>], function: &str) -> bool {
    let wanted = function.rsplit('.').next().unwrap_or(function);
    let mut scopes = nodes::scopes(path).map(|at| path[at]);
    let own = scopes.find(|scope| name_of(*scope) == wanted || !nodes::is_comprehension(*scope));
    wanted.is_empty() || own.is_some_and(|scope| name_of(scope) == wanted)
}

fn name_of<'a>(node: Node<'a>) -> &'a str {
    match node {
        Node::StmtFunctionDef(ast) => ast.name.as_str(),
        Node::StmtClassDef(ast) => ast.name.as_str(),
        Node::ExprLambda(_) => "<lambda>",
        Node::ExprListComp(_) => "<listcomp>",
        Node::ExprSetComp(_) => "<setcomp>",
        Node::ExprDictComp(_) => "<dictcomp>",
        Node::ExprGenerator(_) => "<genexpr>",
        _ => "<module>",
    }
}

/// What the trace saw, as the end of "nothing on the line …".
fn describe(observed: &Observed<'_>) -> String {
    if let Some((file, function)) = observed.through {
        return format!("calls into `{function}` of {}", file.rsplit('/').next().unwrap_or(file));
    }
    if let Some(method) = observed.method {
        return format!("makes the `{method}` call that the trace saw");
    }
    match fit::downward(observed) {
        Some(true) => "copies from the device".to_owned(),
        Some(false) => "copies to the device".to_owned(),
        None => format!("can lead to {}", observed.api),
    }
}

pub fn statement_at<'a>(file: &'a Source, frame: &Frame) -> Option<Path<'a>> {
    let mut found = None;
    walk_line(file, file.line_range(frame.line)?, &mut |path, _| {
        if last(path).is_some_and(|node| node.is_statement()) {
            found = Some(path.to_vec());
        }
    });
    found
}
