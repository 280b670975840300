//! Following a value through assignments, containers, attributes and the functions of the file.

use super::attribute::function;
use super::tracer::Tracer;
use super::value::{Sink, Step, Use, Value, What, constant_step};
use crate::python::facts::{self, Fact};
use crate::python::parse::{Definition, Node, Path, dotted, last, nodes, scope, split_callee, string};
use crate::verdict::source::infer::{Placement, function_of, sinks};
use ruff_python_ast::{Expr, ExprContext, ExprList, ExprTuple};
use ruff_text_size::{Ranged, TextRange};

impl<'a> Tracer<'a, '_> {
    /// `xs.append(value)`: the receiver holds the value from here on. A container named after the figures
    /// that it collects counts as shown (S04) where the file does not show its use.
    pub(super) fn keep(&mut self, path: &[Node<'a>], at: usize, value: &Value) {
        let Some(call) = nodes::call(&path[..=at]) else { return };
        let Expr::Attribute(method) = &*call.func else { return };
        let place = &path[..=at];
        let update = method.attr.as_str() == "update";
        let held = if update { value.clone() } else { value.clone().held(Step::Any) };
        self.store(place, &method.value, held.collected(place, &method.value, false));
    }

    /// A container changes: later reads of it see the value. A container named after the figures that it
    /// collects counts as shown (S04), unless its reads here tell otherwise.
    fn store(&mut self, place: &[Node<'a>], container: &'a Expr, value: Value) {
        let name = dotted(container);
        let shown = !value.data && (sinks::is_metric(&name) || sinks::is_logger(&name));
        let before = self.uses.len();
        self.bind(place, container, value.clone());
        let open = |used: &Use| {
            matches!(used.sink, Sink::Unknown | Sink::Stored | Sink::Dropped | Sink::Returned | Sink::Log)
        };
        if shown && self.uses[before..].iter().all(open) {
            // Callers may still decide by it.
            let mut returned = self.uses.split_off(before);
            let arrays = value.arrays || returned.iter().any(|used| used.value.arrays);
            returned.retain(|used| used.sink == Sink::Returned && !used.value.vague);
            for used in &mut returned {
                used.metered = true;
            }
            self.uses.append(&mut returned);
            self.sink(place, &Value { arrays, ..value }, Sink::Log, What::Collected(name));
        }
    }

    /// From the use `from` on, follows what a called function put into containers that the call at the end of
    /// `place` gives it.
    pub(super) fn given_back(&mut self, from: usize, function: &[Node<'_>], place: &[Node<'a>]) {
        for used in self.uses.split_off(from) {
            match nodes::call(place).and_then(|call| used.container(function, call)) {
                Some(container) => self.put(place, container, used),
                None => self.uses.push(used),
            }
        }
    }

    /// A call at the end of `place` has put a value into `container`. Where nothing here takes the value out,
    /// the function may, in its next call.
    pub fn put(&mut self, place: &[Node<'a>], container: &'a Expr, mut used: Use) {
        let before = self.uses.len();
        self.store(place, container, used.value.clone().collected(place, container, false));
        if self.uses[before..].iter().all(|own| own.sink == Sink::Dropped) {
            self.uses.truncate(before);
            used.given = None;
            self.uses.push(used);
        }
    }

    /// `meter.update(value)`: an object named like a meter shows its figures, unless its reads in the
    /// function or class decide something.
    pub(super) fn tracked(&mut self, path: &[Node<'a>], at: usize, value: &Value) {
        let Some(call) = nodes::call(&path[..=at]) else { return };
        let Expr::Attribute(method) = &*call.func else { return };
        let place = &path[..=at];
        let mut held = value.clone();
        let named = || Some(nodes::keyword(call, nodes::range(path))?.arg.as_ref()?.to_string());
        let plain = held.steps.is_empty();
        let key = match held.steps.pop_if(|step| matches!(step, Step::Key(_))) {
            Some(Step::Key(key)) => Some(key),
            _ => named().filter(|_| plain),
        };
        let before = self.uses.len();
        self.bind(place, &method.value, held.held(Step::Meter(key)).collected(place, &method.value, true));
        let found = self.uses.split_off(before);
        for mut used in found {
            let returned = used.sink == Sink::Returned && !used.value.vague && used.can_wait();
            if used.sink.is_decisive() || used.sink == Sink::Unknown && used.value.vague || returned {
                used.metered = true;
                self.uses.push(used);
            }
        }
        let what = format!("an argument of {}", self.file.text(&*call.func));
        self.sink(path, value, Sink::Log, what);
    }

    /// A target gets the value; `place` is the path of the statement or expression that assigns.
    pub(super) fn bind(&mut self, place: &[Node<'a>], target: &'a Expr, mut value: Value) {
        let path = [place, &[Node::from(target)]].concat();
        match target {
            Expr::Name(name) => self.name(&path, &name.id, value),
            Expr::Starred(ast) => self.bind(place, &ast.value, value),
            Expr::Tuple(ExprTuple { elts, .. }) | Expr::List(ExprList { elts, .. }) => {
                let chosen = unpacked(elts, &mut value);
                for (at, element) in elts.iter().enumerate() {
                    if chosen.is_none_or(|chosen| chosen == at) {
                        self.bind(&path, element, value.clone());
                    }
                }
            }
            _ if is_rate(target) => {
                let what = format!("the new value of `{}`", self.file.text(target));
                self.sink(&path, &value, Sink::Rate, what);
            }
            Expr::Attribute(ast) => self.attribute(&path, ast, value),
            // `table.setdefault(key, []).append(v)`: an entry of the table.
            Expr::Call(call) if nodes::name(&call.func) == "setdefault" => {
                if let Some(table) = nodes::receiver(call) {
                    self.store(&path, table, value.held(Step::Entry));
                }
            }
            Expr::Subscript(ast) if self.placements.find(&ast.value, place) == Placement::Device => {
                let what = format!("stored in the tensor `{}`", self.file.text(&*ast.value));
                self.sink(&path, &value, Sink::Device, What::Joined(what));
            }
            Expr::Subscript(ast) => {
                let slot = || if self.objects.is_dict(&ast.value, place) { Step::Entry } else { Step::Any };
                let step = constant_step(&ast.slice).unwrap_or_else(slot);
                let made = self.objects.values_of(&ast.value, place);
                for call in made.iter().filter_map(|(made, _)| made.as_call_expr()) {
                    value.arrays |= function_of(call, Fact::Arrays).is_some();
                    // NumPy gathers the values, where the device could not.
                    value.tensor &= function_of(call, Fact::Numpy).is_none();
                }
                self.store(&path, &ast.value, value.held(step));
            }
            _ => self.sink(&path, &value, Sink::Stored, format!("stored in `{}`", self.file.text(target))),
        }
    }

    /// A name holds the value: follow the reads that see it.
    pub fn name(&mut self, path: &[Node<'a>], name: &str, value: Value) {
        let own = nodes::range(path);
        if !self.seen.insert((own, name.to_owned())) {
            return;
        }
        let owner = scope::owner(path, name);
        let mut reads = scope::reached(&owner, name, value.key(), &Definition::new(path));
        let mutated = matches!(last(path), Some(Node::ExprName(ast)) if ast.ctx == ExprContext::Load);
        if mutated {
            reads.extend(aliases(&owner, name));
        }
        reads.retain(|read| nodes::range(read) != own);
        let value = value.named(name);
        let before = self.uses.len();
        for read in &reads {
            self.read(read, value.clone(), function(path));
        }
        // `show(locals())` passes on all names of the function.
        let own_call = |call: &Path<'a>| nodes::function_scope(call) + 1 == owner.len() && owner.len() > 1;
        let mut all = nodes::calls(&owner, &|call| nodes::dotted(&call.func) == "locals");
        all.retain(own_call);
        for call in &all {
            self.read(call, value.clone().held(Step::Key(name.to_owned())), function(path));
        }
        let class = matches!(last(&owner), Some(Node::StmtClassDef(_)));
        let local = owner.len() > 1 && scope::binds(&owner, name);
        // Made elsewhere, and shown or returned here. Arrays in it may be what the program makes.
        let array = value.tensor && value.data && !sinks::is_metric(name);
        let given = !array && self.uses.len() > before;
        let owned = local && is_fresh(&owner, name).unwrap_or(given);
        let passes_on = || {
            let mut own = self.uses[before..].iter();
            scope::parameter(&owner, name).is_some() && own.any(|used| used.sink == Sink::Returned)
        };
        if class || mutated && !owned && !passes_on() {
            self.sink(path, &value, Sink::Stored, format!("kept in `{name}`, which others read"));
            let given = scope::parameter(&owner, name).map(|_| nodes::range(&owner));
            self.uses.last_mut().into_iter().for_each(|used| used.given = given);
        } else if self.uses.len() == before && reads.is_empty() && all.is_empty() {
            // Far on the way, such a value was more likely lost by the analysis, unless it came with others.
            match nodes::above(path, 1) {
                _ if value.hops <= 2 => self.sink(path, &value, Sink::Dropped, What::NeverRead),
                Some(Node::ExprTuple(_)) => {}
                _ => self.sink(path, &value, Sink::Unknown, What::NeverRead),
            }
        }
    }

    /// Follows a value from one read of its name, which `home` bound. What an inner function returns goes to
    /// its own callers, not to the callers in the trace.
    pub(super) fn read(&mut self, read: &Path<'a>, value: Value, home: TextRange) {
        let before = self.uses.len();
        self.follow(read, value);
        if function(read) == home {
            return;
        }
        for mut used in self.uses.split_off(before) {
            if used.sink == Sink::Returned {
                if self.handed_out(read, &used) {
                    continue;
                }
                (used.sink, used.what) = (Sink::Unknown, "returned by a function inside".into());
            }
            self.uses.push(used);
        }
    }
}

/// Index of the target that gets the value in an unpacking; `None` where any may.
fn unpacked(targets: &[Expr], value: &mut Value) -> Option<usize> {
    let starred = targets.iter().position(Expr::is_starred_expr).unwrap_or(targets.len());
    match value.steps.pop()? {
        Step::Index(index) | Step::Field(_, Some(index)) if index < starred => Some(index),
        // `first, *rest = values`: the rest is a list.
        Step::Index(index) if starred + 1 == targets.len() => {
            value.steps.push(Step::Index(index - starred));
            Some(starred)
        }
        step => {
            value.vague |= matches!(step, Step::Field(..));
            None
        }
    }
}

/// The reads of a name that give its object another name, which sees what is stored in it later: `best = metrics`.
fn aliases<'a>(owner: &Path<'a>, name: &str) -> impl Iterator<Item = Path<'a>> {
    let all = scope::occurrences(owner, name).into_iter().filter(|one| one.load).map(|one| one.path);
    all.filter(|read| {
        matches!(nodes::above(read, 1), Some(Node::StmtAssign(ast)) if ast.value.range() == nodes::range(read))
    })
}

fn is_rate(target: &Expr) -> bool {
    let name = match target {
        Expr::Attribute(ast) => Some(ast.attr.as_str()),
        Expr::Subscript(ast) => string(&ast.slice),
        _ => None,
    };
    name.is_some_and(|name| facts::name(name).is(Fact::Rate))
}

fn same_form(method: &str) -> bool {
    let facts = facts::name(method);
    facts.keeps_elements() || facts.is(Fact::Read)
}

/// Whether a local name only ever means containers made in its function: what they hold leaves through the
/// name alone. `None` where calls made some of them.
fn is_fresh(owner: &[Node<'_>], name: &str) -> Option<bool> {
    let is_same = |value: &Expr| {
        let forms = |rest: &str| {
            rest.split('.').all(|call| call.is_empty() || same_form(call.trim_end_matches("()")))
        };
        dotted(value).strip_prefix(name).is_some_and(forms)
    };
    fn made(value: &Expr) -> Option<bool> {
        match value {
            Expr::Call(call) => {
                let callee = dotted(&call.func);
                let (base, name) = split_callee(&callee);
                let own = facts::name(name).is(Fact::Dict)
                    || facts::name(name).is(Fact::Container)
                    || facts::module(base).is(Fact::Encoding) && facts::name(name).is(Fact::Decode)
                    || facts::module(base).is(Fact::Arrays)
                        && (facts::name(name).any(&[Fact::Make, Fact::Like])
                            || facts::name(name).is(Fact::JoinArrays));
                match nodes::receiver(call) {
                    _ if own || facts::name(name).is(Fact::Part) => Some(own),
                    Some(same) if same_form(name) => made(same),
                    _ => None,
                }
            }
            Expr::If(ast) => both(made(&ast.body), made(&ast.orelse)),
            _ => Some(
                matches!(value, Expr::List(_) | Expr::Dict(_) | Expr::Set(_) | Expr::BinOp(_))
                    || matches!(value, Expr::ListComp(_) | Expr::DictComp(_) | Expr::SetComp(_)),
            ),
        }
    }
    fn both(one: Option<bool>, other: Option<bool>) -> Option<bool> {
        if one == Some(false) || other == Some(false) { Some(false) } else { one.and(other) }
    }
    let fresh = scope::stores(owner, name).filter_map(|store| match scope::given(&store) {
        // Nothing is there yet.
        scope::Given::Value(Expr::NoneLiteral(_)) => None,
        scope::Given::Value(value) if is_same(value) => None,
        scope::Given::Value(value) => Some(made(value)),
        scope::Given::Element(value) if value.is_call_expr() => Some(None),
        _ => Some(Some(false)),
    });
    fresh.reduce(both).unwrap_or(Some(false))
}
