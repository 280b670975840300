//! Values that leave their function: what the callers do with them.

use super::reader::{Case, SiteReader};
use super::rules::judge;
use crate::model::Frame;
use crate::python::parse::{Node, Path, Source, argument_for, dotted, last, nodes, scope};
use crate::verdict::source::flow::{Files, Sink, Tracer, Use, Value};
use crate::verdict::source::infer::{Here, Placements};
use crate::verdict::source::locate::{Callee, callee};
use crate::vocabulary::{NUMBER_BYTES, PatternId, PatternId::*, Verdict};
use ruff_python_ast::{Expr, ExprName};
use std::mem::discriminant;
use std::sync::Arc;

/// User callers to look into, one after the other, for a returned value.
pub(super) const MAX_CALLERS: usize = 8;

pub(super) struct Caller<'s> {
    pub file: Arc<Source>,
    pub frame: &'s Frame,
    pub at: usize,
    /// Whether its line calls the frame inside: nothing is between, or only code that calls on.
    pub direct: bool,
}

impl<'s> SiteReader<'s> {
    /// The next frame outside `inner` whose file is at hand, libraries' included, and that does not only call
    /// on. `None` once a user's frame has no file.
    ///
    /// `function` is the one that the value leaves. Before Python 3.12 a comprehension had a frame of its
    /// own: the next one is then that of the function around, which the value has left as well.
    pub(super) fn caller(self, inner: usize, function: &str) -> Option<Caller<'s>> {
        let comprehension = |frame: &Frame| {
            matches!(frame.function.as_str(), "<listcomp>" | "<setcomp>" | "<dictcomp>" | "<genexpr>")
        };
        let left = |at: usize| {
            comprehension(&self.frames[at - 1])
                && self.frames[at].file == self.frames[at - 1].file
                && self.frames[at].function.rsplit('.').next() == Some(function)
        };
        let mut direct = true;
        for (at, frame) in self.frames.iter().enumerate().skip(inner + 1) {
            if direct && at == inner + 1 && left(at) {
                return self.caller(at, function);
            }
            if calls_on(frame) {
                continue;
            }
            if let Some(file) = self.tree.open(&frame.file) {
                return Some(Caller { file, frame, at, direct });
            }
            if frame.user {
                return None;
            }
            direct = false;
        }
        None
    }

    /// Asks `look` about the argument that the caller of the frame `inner` passes for `name`.
    pub(super) fn with_argument<T>(
        self,
        here: Here<'_, '_>,
        inner: usize,
        name: &ExprName,
        look: &dyn for<'p, 'c> Fn(Here<'p, 'c>, &Caller<'s>, &'c Expr) -> Option<T>,
    ) -> Option<T> {
        let callee = Callee::around(here.path);
        let caller = self.caller(inner, callee.name).filter(|_| inner < MAX_CALLERS)?;
        let (calls, _) = callee::calls(&caller.file, caller.frame, &callee, caller.direct);
        let [path] = calls.as_slice() else { return None };
        let argument = match last(path)? {
            Node::ExprSubscript(ast) => &*ast.slice,
            _ => argument_for(&scope::owner(here.path, &name.id), nodes::call(path)?, &name.id)?,
        };
        let placements = Placements::new(&caller.file);
        look(Here { placements: &placements, path }, &caller, argument)
    }

    pub(super) fn program(self) -> Option<Files<'s>> {
        Some(Files { tree: self.tree, recorded: &self.frames.first()?.file, depth: 0 })
    }
}

/// Whether a library's frame only passes calls and results on: modules, `torch.no_grad` as a decorator.
pub(super) fn calls_on(frame: &Frame) -> bool {
    const WRAPPERS: [&str; 4] =
        ["torch/nn/modules/module.py", "torch/utils/_contextlib.py", "torch/_dynamo/", "/contextlib.py"];
    let file = frame.file.replace('\\', "/");
    WRAPPERS.iter().any(|wrapper| file.contains(wrapper))
}

impl Case<'_, '_> {
    pub(super) fn value(self, pattern: PatternId, bulk: bool) -> Verdict {
        let path = self.here.path;
        let mut tracer = Tracer::new(self.here.placements, self.site.program());
        let many = bulk && self.site.observed.largest > NUMBER_BYTES;
        tracer.follow(path, Value { many, tensor: pattern == D01, ..Value::new(path, bulk) });
        let file = self.here.file();
        let late = self.decided_late(file, &tracer.uses);
        let mut uses = self.callers_of(file, tracer.uses, path, 0, 0);
        uses.extend(late);
        // What a meter by its name gets counts as shown, unless a caller is seen to decide by it.
        uses.retain(|used| used.sink != Sink::Returned || !used.metered);
        judge(self.text, pattern, &uses)
    }

    /// The branches (and learning rates) of callers that depend on what a loop has collected and its function
    /// returns. Without any, the returned value counts as a report.
    fn decided_late(self, file: &Source, uses: &[Use]) -> Vec<Use> {
        let wanted = |used: &&Use| {
            used.sink == Sink::Returned && !used.value.tensor && (used.can_wait() || used.metered)
        };
        let returned: Vec<Use> = uses.iter().filter(wanted).cloned().collect();
        let Some(first) = returned.first() else { return Vec::new() };
        let collected = first.value.collected;
        let now = returned.into_iter().map(|used| Use { deferred: false, ..used }).collect();
        let mut late = self.callers_of(file, now, self.here.path, 0, 0);
        late.retain(|used| {
            matches!(used.sink, Sink::Branch { .. } | Sink::Rate) && used.value.collected.is_none()
        });
        for used in &mut late {
            (used.deferred, used.value.collected) = (collected.is_some(), collected);
        }
        late
    }

    /// Replaces "returned" by what the caller does with it, as far as the frames (or the only use in the
    /// file) show. `inner` is the frame that returns, `depth` how many user callers were looked into before.
    fn callers_of(
        self,
        file: &Source,
        uses: Vec<Use>,
        path: &[Node<'_>],
        inner: usize,
        depth: usize,
    ) -> Vec<Use> {
        let function = path.get(..=nodes::function_scope(path)).unwrap_or_default();
        let own = nodes::range(function);
        let leaves = |used: &Use| used.given == Some(own) || used.sink == Sink::Returned && !used.can_wait();
        let (left, mut kept): (Vec<_>, Vec<_>) = uses.into_iter().partition(leaves);
        if left.is_empty() {
            return kept;
        }
        let callee = Callee::around(path);
        let found = match self.site.caller(inner, callee.name) {
            Some(caller) if depth < MAX_CALLERS => {
                let (calls, named) = callee::calls(&caller.file, caller.frame, &callee, caller.direct);
                let path = calls.first().cloned().unwrap_or_default();
                let user = usize::from(caller.frame.user);
                self.follow_calls(&caller.file, caller.frame, &calls, function, &left).map(|mut uses| {
                    // A caller of anything drops any result: that says nothing of this one.
                    for used in uses.iter_mut().filter(|used| !named && used.sink == Sink::Dropped) {
                        used.sink = Sink::Unknown;
                    }
                    self.callers_of(&caller.file, uses, &path, caller.at, depth + user)
                })
            }
            // No stack: the calls in the file, if all use the value alike.
            None if self.site.frames.len() == 1 && inner == 0 => {
                let calls = only_calls(file, callee.name, path);
                let uses = self.follow_calls(file, &self.site.frames[0], &calls, function, &left);
                uses.filter(|uses| alike(uses))
            }
            _ => None,
        };
        let Some(uses) = found else {
            let (given, returned): (Vec<_>, Vec<_>) = left.into_iter().partition(|used| used.given.is_some());
            kept.extend(given);
            kept.extend(returned.into_iter().next());
            return kept;
        };
        kept.extend(uses);
        kept
    }

    /// The uses of every call; `None` where there is no call to follow.
    fn follow_calls(
        self,
        file: &Source,
        frame: &Frame,
        calls: &[Path<'_>],
        function: &[Node<'_>],
        left: &[Use],
    ) -> Option<Vec<Use>> {
        if calls.is_empty() {
            return None;
        }
        let placements = Placements::new(file);
        let program = Files { tree: self.site.tree, recorded: &frame.file, depth: 0 };
        let mut uses = Vec::new();
        for (call, used) in calls.iter().flat_map(|call| left.iter().map(move |used| (call, used))) {
            let mut tracer = Tracer::new(&placements, Some(program));
            let value = used.value.returned_to(call);
            match nodes::call(call).and_then(|call| used.container(function, call)) {
                Some(container) => tracer.put(call, container, Use { value, ..used.clone() }),
                None if used.given.is_some() => uses.push(Use { given: None, ..used.clone() }),
                None => tracer.follow(call, value),
            }
            uses.append(&mut tracer.uses);
        }
        if self.site.frames.first().is_some_and(|own| own.file != frame.file) {
            uses.iter_mut().for_each(|used| used.lies_in(&frame.file));
        }
        Some(uses)
    }
}

/// Without calls from the function itself.
fn only_calls<'a>(file: &'a Source, name: &str, path: &[Node<'_>]) -> Vec<Path<'a>> {
    if name.is_empty() || scope::functions(file.module(), name).len() != 1 {
        return Vec::new();
    }
    let own = nodes::range(nodes::function_around(path));
    nodes::calls(&[file.module()], &|call| {
        let callee = dotted(&call.func);
        callee.strip_prefix("self.").unwrap_or(&callee) == name && !nodes::within(call, own)
    })
}

fn alike(uses: &[Use]) -> bool {
    uses.array_windows().all(|[one, other]| discriminant(&one.sink) == discriminant(&other.sink))
}
