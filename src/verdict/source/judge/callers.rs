//! Values that leave their function: what the callers do with them.

use super::reader::Case;
use super::rules::judge;
use crate::rules::grade::PER_CALLER;
use crate::verdict::source::flow::tracer::Tracer;
use crate::verdict::source::flow::value::{Sink, Use, Value};
use crate::verdict::source::infer::placement::Placements;
use crate::verdict::source::locate::line;
use crate::verdict::source::parse::{Node, Path, Source, dotted, nodes, scope, split_callee};
use crate::vocabulary::{Class, Verdict};

/// Callers looked into, one after the other, for a returned value.
const MAX_CALLERS: usize = 3;

impl Case<'_, '_> {
    /// The verdict on a value read by the expression, its callers included.
    pub(super) fn value(self, pattern: &'static str, bulk: bool) -> Verdict {
        let path = self.here.path;
        let mut tracer = Tracer::new(self.here.placements);
        tracer.follow(path, Value { tensor: pattern == "D01", ..Value::new(path, bulk) });
        let file = self.here.file();
        let (late, late_hops) = self.decided_late(file, &tracer.uses);
        let (mut uses, hops) = self.callers_of(file, tracer.uses, path, 0);
        uses.extend(late);
        // What a meter by its name is told counts as shown, unless a caller is seen to decide by it.
        uses.retain(|used| used.sink != Sink::Returned || used.limit >= 1.0);
        let mut verdict = judge(self.text, pattern, &uses);
        if verdict.class != Class::Unknown {
            verdict.confidence *= PER_CALLER.powi(hops.max(late_hops));
        }
        verdict
    }

    /// The branches (and learning rates) of callers that depend on what a loop has collected and its function returns. Where
    /// there are none, what is returned is taken for a report.
    fn decided_late(self, file: &Source, uses: &[Use]) -> (Vec<Use>, i32) {
        let wanted = |used: &&Use| used.sink == Sink::Returned && used.can_wait() && !used.value.tensor;
        let returned: Vec<Use> = uses.iter().filter(wanted).cloned().collect();
        let Some(collected) = returned.first().and_then(|used| used.value.collected) else {
            return (Vec::new(), 0);
        };
        let now = returned.into_iter().map(|used| Use { deferred: false, ..used }).collect();
        let (mut late, hops) = self.callers_of(file, now, self.here.path, 0);
        late.retain(|used| {
            matches!(used.sink, Sink::Branch { .. } | Sink::Rate) && used.value.collected.is_none()
        });
        for used in &mut late {
            (used.deferred, used.value.collected) = (true, Some(collected));
        }
        let hops = if late.is_empty() { 0 } else { hops };
        (late, hops)
    }

    /// Replaces "returned" by what the caller does with it, as far as the frames (or the only use in the file) show.
    fn callers_of(self, file: &Source, uses: Vec<Use>, path: &[Node<'_>], depth: usize) -> (Vec<Use>, i32) {
        let (returned, mut kept): (Vec<_>, Vec<_>) =
            uses.into_iter().partition(|used| used.sink == Sink::Returned && !used.can_wait());
        let Some(first) = returned.first() else { return (kept, 0) };
        let (name, property) = function(path);
        let found = match self.site.caller(depth + 1) {
            Some((file, frame)) if depth < MAX_CALLERS => {
                let calls = line::calls(&file, frame, name, property);
                let path = calls.first().cloned().unwrap_or_default();
                follow_calls(&file, &calls, &returned)
                    .map(|uses| self.callers_of(&file, uses, &path, depth + 1))
            }
            // No stack: the calls in the file, where all of them use the value alike.
            None if self.site.frames.len() == 1 && depth == 0 => {
                let uses = follow_calls(file, &only_calls(file, name, path), &returned);
                uses.filter(|uses| alike(uses)).map(|uses| (uses, 1))
            }
            _ => None,
        };
        let Some((uses, hops)) = found else {
            kept.push(first.clone());
            return (kept, 0);
        };
        kept.extend(uses);
        (kept, hops + 1)
    }
}

/// The name by which callers call the function around the last node, and whether it is a property.
fn function<'a>(path: &[Node<'a>]) -> (&'a str, bool) {
    match path.get(nodes::function_scope(path)) {
        Some(Node::StmtFunctionDef(ast)) => {
            (ast.name.as_str(), ast.decorator_list.iter().any(nodes::is_property))
        }
        _ => ("", false),
    }
}

/// What callers do with the returned values: the uses of every call; `None` where there is no call to follow.
fn follow_calls(file: &Source, calls: &[Path<'_>], returned: &[Use]) -> Option<Vec<Use>> {
    if calls.is_empty() {
        return None;
    }
    let placements = Placements::new(file);
    let mut uses = Vec::new();
    for (call, used) in calls.iter().flat_map(|call| returned.iter().map(move |used| (call, used))) {
        let mut tracer = Tracer::new(&placements);
        let Value { steps, bulk, tensor, .. } = used.value.clone();
        tracer.follow(call, Value { steps, tensor, ..Value::new(call, bulk) });
        uses.append(&mut tracer.uses);
    }
    Some(uses)
}

/// All calls of a function in its file, other than its own.
fn only_calls<'a>(file: &'a Source, name: &str, path: &[Node<'_>]) -> Vec<Path<'a>> {
    if name.is_empty() || scope::functions(file.module(), name).len() != 1 {
        return Vec::new();
    }
    let own = path[nodes::function_scope(path)];
    nodes::calls(&[file.module()], &|call| {
        let callee = dotted(&call.func);
        let (base, called) = split_callee(&callee);
        called == name && matches!(base, "" | "self") && !nodes::within(call, own)
    })
}

/// Whether all uses are of one sort.
fn alike(uses: &[Use]) -> bool {
    uses.windows(2).all(|pair| std::mem::discriminant(&pair[0].sink) == std::mem::discriminant(&pair[1].sink))
}
