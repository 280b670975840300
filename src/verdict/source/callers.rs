//! Values that leave their function: what the callers do with them.

use super::attribute;
use super::file::Source;
use super::flow::Tracer;
use super::judge::Bench;
use super::locate;
use super::nature::Natures;
use super::nodes::{self, Node, Path, dotted, last, split_callee};
use super::rules::{can_wait, judge};
use super::scope;
use super::value::{Fate, Sink, Value};
use crate::vocabulary::{Class, Verdict};

/// Callers looked into, one after the other, for a returned value.
const MAX_CALLERS: usize = 3;

impl Bench<'_> {
    /// The verdict on a value read by the last node of `path`, its callers included.
    pub(super) fn value<'a>(
        &self,
        file: &'a Source,
        natures: &Natures<'a>,
        path: &[Node<'a>],
        subject: &str,
        pattern: &'static str,
        bulk: bool,
    ) -> Verdict {
        let mut tracer = Tracer::new(file, natures);
        tracer.follow(path, Value { tensor: pattern == "D01", ..Value::new(path, bulk) });
        let (late, late_hops) = self.decided_late(file, &tracer.fates, path);
        let (mut fates, hops) = self.callers_of(file, tracer.fates, path, 0);
        fates.extend(late);
        // A meter is taken at its word unless a caller is seen to decide by it.
        fates.retain(|fate| fate.sink != Sink::Returned || fate.limit >= 1.0);
        let hops = hops.max(late_hops);
        let mut verdict = judge(subject, pattern, &fates);
        if verdict.class != Class::Unknown && hops > 0 {
            verdict.confidence *= 0.95_f64.powi(hops);
        }
        verdict
    }

    /// The branches (and learning rates) of callers that depend on what a loop has collected and its function returns. Where
    /// there are none, what is returned is taken for a report.
    fn decided_late(&self, file: &Source, fates: &[Fate], path: &[Node<'_>]) -> (Vec<Fate>, i32) {
        let wanted = |fate: &&Fate| fate.sink == Sink::Returned && can_wait(fate) && !fate.value.tensor;
        let returned: Vec<Fate> = fates.iter().filter(wanted).cloned().collect();
        let Some(collected) = returned.first().and_then(|fate| fate.value.collected) else {
            return (Vec::new(), 0);
        };
        let now = returned.into_iter().map(|fate| Fate { deferred: false, ..fate }).collect();
        let (found, hops) = self.callers_of(file, now, path, 0);
        let late: Vec<Fate> = found
            .into_iter()
            .filter(|fate| matches!(fate.sink, Sink::Branch { .. } | Sink::Rate))
            .filter(|fate| fate.value.collected.is_none())
            .map(|fate| Fate {
                deferred: true,
                value: Value { collected: Some(collected), ..fate.value },
                ..fate
            })
            .collect();
        if late.is_empty() { (late, 0) } else { (late, hops) }
    }

    /// Replaces "returned" by what the caller does with it, as far as the frames (or the only use in the file) show.
    fn callers_of(
        &self,
        file: &Source,
        fates: Vec<Fate>,
        path: &[Node<'_>],
        depth: usize,
    ) -> (Vec<Fate>, i32) {
        let (returned, mut kept): (Vec<_>, Vec<_>) =
            fates.into_iter().partition(|fate| fate.sink == Sink::Returned && !can_wait(fate));
        let Some(first) = returned.first() else { return (kept, 0) };
        let name = function_name(path);
        let caller = self.frames.get(depth + 1).and_then(|frame| Some((self.tree.open(&frame.file)?, frame)));
        let found = match &caller {
            Some((file, frame)) if depth < MAX_CALLERS => {
                let calls = locate::calls(file, frame, &name, is_property(path));
                let fates = follow_calls(file, &calls, &returned);
                fates.map(|fates| (calls.first().cloned(), fates)).map(|(path, fates)| {
                    let path = path.unwrap_or_default();
                    self.callers_of(file, fates, &path, depth + 1)
                })
            }
            // No stack: the calls in the file, where all of them use the value alike.
            None if self.frames.len() == 1 && depth == 0 => {
                let calls = only_calls(file, &name, path);
                follow_calls(file, &calls, &returned).filter(|fates| alike(fates)).map(|fates| (fates, 1))
            }
            _ => None,
        };
        match found {
            Some((fates, hops)) => {
                kept.extend(fates);
                (kept, hops + 1)
            }
            None => {
                kept.push(first.clone());
                (kept, 0)
            }
        }
    }
}

/// The name by which callers call the function around the last node.
fn function_name(path: &[Node<'_>]) -> String {
    match path.get(nodes::function_scope(path)) {
        Some(Node::StmtFunctionDef(ast)) => ast.name.to_string(),
        _ => String::new(),
    }
}

/// Whether the function around the last node is a property.
fn is_property(path: &[Node<'_>]) -> bool {
    matches!(path.get(nodes::function_scope(path)), Some(Node::StmtFunctionDef(ast))
        if ast.decorator_list.iter().any(attribute::is_property))
}

/// What callers do with the returned values: the fates of every call; `None` where there is no call to follow.
fn follow_calls(file: &Source, calls: &[Path<'_>], returned: &[Fate]) -> Option<Vec<Fate>> {
    if calls.is_empty() {
        return None;
    }
    let natures = Natures::new(file);
    let mut fates = Vec::new();
    for call in calls {
        for fate in returned {
            let mut tracer = Tracer::new(file, &natures);
            let Value { steps, bulk, tensor, .. } = fate.value.clone();
            let value = Value { steps, tensor, ..Value::new(call, bulk) };
            tracer.follow(call, value);
            fates.append(&mut tracer.fates);
        }
    }
    Some(fates)
}

/// All calls of a function in its file, other than its own.
fn only_calls<'a>(file: &'a Source, name: &str, path: &[Node<'_>]) -> Vec<Path<'a>> {
    if name.is_empty() || scope::functions(file.module(), name).len() != 1 {
        return Vec::new();
    }
    let own = path[nodes::function_scope(path)];
    nodes::find(&[file.module()], &mut |path| match last(path) {
        Some(Node::ExprCall(call)) => {
            let callee = dotted(&call.func);
            let (base, called) = split_callee(&callee);
            called == name && matches!(base, "" | "self") && !nodes::within(call, own)
        }
        _ => false,
    })
}

/// Whether all fates are of one sort.
fn alike(fates: &[Fate]) -> bool {
    fates
        .windows(2)
        .all(|pair| std::mem::discriminant(&pair[0].sink) == std::mem::discriminant(&pair[1].sink))
}
