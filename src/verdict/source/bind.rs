//! Following a value through assignments, containers, attributes and the functions of the file.

use super::flow::Tracer;
use super::nature::Nature;
use super::nodes::{Node, Path, dotted, last, split_callee, string, within};
use super::scope::{self, Definition};
use super::sinks;
use super::value::{Fate, Sink, Step, Value, constant_step};
use ruff_python_ast::{Expr, ExprCall, ExprContext, ExprList, ExprTuple};
use ruff_text_size::Ranged;

impl<'a> Tracer<'a, '_> {
    /// `xs.append(value)`: the receiver holds it from here on. A name that collects figures is taken at its word where the
    /// file does not show what becomes of it (S04).
    pub(super) fn keep(&mut self, path: &[Node<'a>], at: usize, value: &Value) {
        let Some(Node::ExprCall(call)) = path.get(at).copied() else { return };
        let Expr::Attribute(method) = &*call.func else { return };
        let place = &path[..=at];
        if value.data && self.is_set(&method.value, place) {
            let set = self.file.text(&*method.value);
            return self.sink(place, value, Sink::Compute, format!("gathered in the set `{set}`"));
        }
        let held =
            if method.attr.as_str() == "update" { value.clone() } else { value.clone().held(Step::Any) };
        let held = held.collected(place, false);
        self.store(place, &method.value, held);
    }

    /// Whether an expression names a set: what it holds is compared one by one on the CPU.
    fn is_set(&self, expr: &'a Expr, path: &[Node<'a>]) -> bool {
        let made = |value: &Expr| match value {
            Expr::Call(call) => dotted(&call.func) == "set",
            Expr::Set(_) | Expr::SetComp(_) => true,
            _ => false,
        };
        let values = self.objects.values_of(expr, path);
        !values.is_empty() && values.iter().all(|(value, _)| made(value))
    }

    /// A container changes: later reads of it see the value. A container that is named after the figures it collects is taken
    /// at its word (S04), unless its reads here tell otherwise.
    fn store(&mut self, place: &[Node<'a>], container: &'a Expr, value: Value) {
        let name = dotted(container);
        let shown = sinks::is_metric(&name) || sinks::is_logger(&name);
        let before = self.fates.len();
        self.bind(place, container, value.clone());
        let open = |fate: &Fate| {
            matches!(fate.sink, Sink::Unknown | Sink::Stored | Sink::Dropped | Sink::Returned | Sink::Log)
        };
        if shown && self.fates[before..].iter().all(open) {
            self.fates.truncate(before);
            self.sink(place, &value, Sink::Log, format!("collected in `{name}`"));
        }
    }

    /// A function of the same file gets the value: follow the parameter.
    pub(super) fn local_call(&mut self, path: &[Node<'a>], at: usize, value: &mut Value) -> Option<usize> {
        let Some(Node::ExprCall(call)) = path.get(at).copied() else { return None };
        let callee = dotted(&call.func);
        let unknown = format!("an argument of {}", self.file.text(&*call.func));
        let Some((function, parameter)) = self.parameter(path, at) else {
            self.sink(path, value, Sink::Unknown, unknown);
            return None;
        };
        let Some(Node::StmtFunctionDef(ast)) = last(&function) else { return None };
        if !self.seen.insert((ast.range, format!("{callee}({parameter}"))) {
            return None;
        }
        let first = ast.body.first().map(Ranged::start).unwrap_or_default();
        let before = self.fates.len();
        // What is called inside the loop runs inside the loop, wherever it stands.
        let collected = value.collected.filter(|collected| !collected.region.contains(call.start()));
        let inner = Value { name: Some(parameter.clone()), hops: value.hops + 1, collected, ..value.clone() };
        for read in scope::reached(&function, &parameter, &Definition::parameter(&function, first)) {
            self.follow(&read, inner.clone());
        }
        let fates = self.fates.split_off(before);
        let mut returned = false;
        for fate in fates {
            if fate.sink == Sink::Returned { returned = true } else { self.fates.push(fate) }
        }
        if returned { Some(path.len() - 1 - at) } else { None }
    }

    /// The method that a call means where the object's class is in the file; of an object that is called itself, `__call__`
    /// or a module's `forward`.
    pub(super) fn method_called(&self, path: &[Node<'a>], call: &'a ExprCall) -> Option<Path<'a>> {
        let named = match &*call.func {
            Expr::Attribute(ast) => self
                .objects
                .class_of(&ast.value, path)
                .and_then(|class| self.objects.method(&class, ast.attr.as_str())),
            _ => None,
        };
        named.or_else(|| {
            let class = self.objects.class_of(&call.func, path)?;
            ["__call__", "forward"].iter().find_map(|name| self.objects.method(&class, name))
        })
    }

    /// The function that a call means: the method of the object's class, else the only function of that name in the file.
    fn callee(&self, path: &[Node<'a>], call: &'a ExprCall) -> Option<Path<'a>> {
        let callee = dotted(&call.func);
        let (base, name) = split_callee(&callee);
        if let Some(method) = self.method_called(path, call) {
            return Some(method);
        }
        if !matches!(base, "" | "self" | "cls") {
            return None;
        }
        let mut functions = scope::functions(self.file.module(), name);
        functions.pop().filter(|_| functions.is_empty())
    }

    /// The function that the call at `path[at]` means and the parameter that the argument becomes.
    fn parameter(&self, path: &[Node<'a>], at: usize) -> Option<(Path<'a>, String)> {
        let Node::ExprCall(call) = path[at] else { return None };
        let argument = last(path)?.range();
        let function = self.callee(path, call)?;
        let Some(Node::StmtFunctionDef(ast)) = last(&function) else { return None };
        let free = ast.decorator_list.iter().any(|decorator| dotted(&decorator.expression) == "staticmethod");
        let method = usize::from(!free && matches!(function[..], [.., Node::StmtClassDef(_), _]));
        let named = call.arguments.keywords.iter().find(|keyword| within(argument, &keyword.value));
        let parameter = match named {
            Some(keyword) => keyword.arg.as_ref()?.as_str(),
            None => {
                let position = call.arguments.args.iter().position(|value| within(argument, value))?;
                let mut all = ast.parameters.posonlyargs.iter().chain(&ast.parameters.args);
                all.nth(position + method)?.parameter.name.as_str()
            }
        };
        Some((function, parameter.to_owned()))
    }

    /// A target gets the value; `place` is the path of the statement or expression that assigns.
    pub(super) fn bind(&mut self, place: &[Node<'a>], target: &'a Expr, mut value: Value) {
        let path = [place, &[Node::from(target)]].concat();
        match target {
            Expr::Name(name) => self.name(&path, &name.id, value),
            Expr::Starred(ast) => self.bind(place, &ast.value, value),
            Expr::Tuple(_) | Expr::List(_) => {
                let (Expr::Tuple(ExprTuple { elts, .. }) | Expr::List(ExprList { elts, .. })) = target else {
                    return;
                };
                let starred = elts.iter().any(|element| matches!(element, Expr::Starred(_)));
                let chosen = match value.steps.pop() {
                    Some(Step::Index(index)) if !starred && index < elts.len() => Some(index),
                    _ => None,
                };
                for (at, element) in elts.iter().enumerate() {
                    if chosen.is_none_or(|chosen| chosen == at) {
                        self.bind(&path, element, value.clone());
                    }
                }
            }
            Expr::Attribute(ast) if is_rate(ast.attr.as_str()) => {
                self.sink(&path, &value, Sink::Rate, format!("the new value of `{}`", self.file.text(ast)))
            }
            Expr::Attribute(ast) => self.attribute(&path, ast, value),
            Expr::Subscript(ast) if string(&ast.slice).is_some_and(is_rate) => {
                self.sink(&path, &value, Sink::Rate, format!("the new value of `{}`", self.file.text(ast)));
            }
            Expr::Subscript(ast) if self.natures.of(&ast.value, place) == Nature::Device => {
                self.sink(
                    &path,
                    &value,
                    Sink::Device,
                    format!("stored in the tensor `{}`", self.file.text(&*ast.value)),
                );
            }
            Expr::Subscript(ast) => {
                let value = value.held(constant_step(&ast.slice).unwrap_or(Step::Any));
                self.store(&path, &ast.value, value);
            }
            _ => self.sink(&path, &value, Sink::Stored, format!("stored in `{}`", self.file.text(target))),
        }
    }

    /// A name holds the value: follow the reads that see it.
    pub(super) fn name(&mut self, path: &[Node<'a>], name: &str, value: Value) {
        if !self.seen.insert((last(path).map(|node| node.range()).unwrap_or_default(), name.to_owned())) {
            return;
        }
        let owner = scope::owner(path, name);
        let reads = scope::reached(&owner, name, &Definition::new(path));
        let own = last(path).map(|node| node.range()).unwrap_or_default();
        let value = value.named(name);
        let before = self.fates.len();
        for read in reads.iter().filter(|read| last(read).is_some_and(|node| node.range() != own)) {
            self.follow(read, value.clone());
        }
        let mutated = matches!(last(path), Some(Node::ExprName(ast)) if ast.ctx == ExprContext::Load);
        let class = matches!(last(&owner), Some(Node::StmtClassDef(_)));
        let local = owner.len() > 1 && scope::binds(&owner, name);
        if class || mutated && !(local && is_fresh(&owner, name)) {
            self.sink(path, &value, Sink::Stored, format!("kept in `{name}`, which others read"));
        } else if self.fates.len() == before
            && reads.iter().all(|read| last(read).is_some_and(|node| node.range() == own))
        {
            // Further on the way, a value that goes nowhere is more likely one that the way has lost.
            let sink = if value.hops <= 2 { Sink::Dropped } else { Sink::Unknown };
            self.sink(path, &value, sink, "never read");
        }
    }
}

/// Whether an assignment reads its own target: `total = total + v`.
pub(super) fn reads_target(ast: &ruff_python_ast::StmtAssign) -> bool {
    let [target] = ast.targets.as_slice() else { return false };
    let Expr::BinOp(sum) = &*ast.value else { return false };
    let wanted = dotted(target);
    wanted != "?" && (dotted(&sum.left) == wanted || dotted(&sum.right) == wanted)
}

fn is_rate(name: &str) -> bool {
    matches!(name, "lr" | "learning_rate" | "weight_decay" | "momentum")
}

/// Whether a local name only ever means containers made in its function: what they hold leaves through the name alone.
fn is_fresh(owner: &[Node<'_>], name: &str) -> bool {
    let made = |value: &Expr| match value {
        Expr::Call(call) => {
            let callee = dotted(&call.func);
            let maker = split_callee(&callee).1;
            matches!(maker, "list" | "dict" | "set" | "defaultdict" | "deque" | "OrderedDict" | "Counter")
        }
        Expr::List(_)
        | Expr::Dict(_)
        | Expr::Set(_)
        | Expr::ListComp(_)
        | Expr::DictComp(_)
        | Expr::SetComp(_) => true,
        Expr::BinOp(_) => true,
        _ => false,
    };
    let mut stores =
        scope::occurrences(owner, name).into_iter().filter(|occurrence| occurrence.store).peekable();
    stores.peek().is_some()
        && stores.all(|store| matches!(scope::given(&store.path), scope::Given::Value(value) if made(value)))
}
