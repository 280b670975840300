//! Following a value into functions and lambdas of the file, functions of other files, and constructors.

use super::program::{Files, FoundFile, MAX_FILES, has_class, has_function};
use super::tracer::{Entered, Tracer};
use super::value::{Sink, Step, Steps, Use, Value};
use crate::python::facts::{self, Fact};
use crate::python::parse::{
    Definition, Import, Node, Path, dotted, nodes, scope, signature, split_callee, string, within,
};
use crate::verdict::source::infer::{Objects, Placements, roles, sinks};
use ruff_python_ast::{Expr, ExprCall, Stmt, StmtClassDef};
use ruff_text_size::{Ranged, TextRange};

impl<'a> Tracer<'a, '_> {
    /// Follows the value into an unknown call. `Some`: the call's result holds the value, so many levels up.
    pub(super) fn handed(&mut self, path: &[Node<'a>], at: usize, value: &mut Value) -> Option<usize> {
        let call = nodes::call(&path[..=at])?;
        let up = Some(path.len() - 1 - at);
        if value.data && hands_to_writer(call) {
            return self.lost(path, at, value);
        }
        if let Some(field) = self.field(path, call) {
            value.steps.push(field);
            return up;
        }
        let Some(returned) = self.entered(path, at, value) else { return self.lost(path, at, value) };
        let first = returned.first()?;
        if returned.iter().all(|used| used.value.steps == first.value.steps) {
            let inner = first.value.clone();
            (value.steps, value.text, value.number) = (inner.steps, inner.text, inner.number);
            value.summed |= inner.summed;
            value.joined |= inner.joined;
        }
        up
    }

    /// The uses that hand the value back; `None` where the callee is not known.
    pub(super) fn entered(&mut self, path: &[Node<'a>], at: usize, value: &Value) -> Option<Vec<Use>> {
        let call = nodes::call(&path[..=at])?;
        let callees = self.callees(&path[..path.len() - 1], call);
        let mut returned = Vec::new();
        for function in &callees {
            let before = self.uses.len();
            let (parameter, steps) = parameter(function, call, nodes::range(path), &value.steps)?;
            // A callee of the loop runs inside the loop, wherever its code is.
            let collected = value.collected.filter(|collected| !collected.region.contains(call.start()));
            returned.extend(self.inside(function, &parameter, Value { steps, collected, ..value.clone() }));
            self.given_back(before, function, &path[..=at]);
        }
        if !callees.is_empty() {
            return Some(returned);
        }
        // The call itself tells as much of an array as a file in which its way is lost.
        let before = self.uses.len();
        let found = self.abroad(path, at, value);
        let open = |used: &Use| matches!(used.sink, Sink::Unknown | Sink::Stored);
        let lost = is_array(value) && self.uses[before..].iter().all(open);
        let found = found.filter(|uses| !uses.is_empty() || !lost);
        if found.is_none() {
            self.uses.truncate(before);
        }
        found
    }

    /// The callee is not at hand. NumPy has no device: a callee that gets an array works on the CPU, unless
    /// its name says that it shows it. A figure for a logger, or for what saves the run's state, is recorded.
    fn lost(&mut self, path: &[Node<'a>], at: usize, value: &Value) -> Option<usize> {
        let call = nodes::call(&path[..=at])?;
        let callee = self.file.text(&*call.func);
        let dropped = nodes::is_dropped(&path[..=at]);
        let (sink, what) = if !value.data && sinks::may_record(call, dropped) {
            (Sink::Log, format!("an argument of {callee}"))
        } else if value.data && (roles::is_writer(nodes::name(&call.func)) || hands_to_writer(call)) {
            (Sink::Write, format!("written out by {callee}"))
        } else if is_array(value) && !value.text && !sinks::may_show(&callee) {
            (Sink::Compute, format!("an array of NumPy for {callee}"))
        } else {
            (Sink::Unknown, format!("an argument of {callee}"))
        };
        self.sink(path, value, sink, what);
        None
    }

    /// The uses that hand the parameter back.
    fn inside(&mut self, function: &Path<'a>, parameter: &str, value: Value) -> Vec<Use> {
        let entered = (nodes::range(function), parameter.to_owned());
        if !self.seen.insert(entered.clone()) {
            // Another call: what it hands back goes on from there as well.
            let same = |one: &&Entered| one.parameter == entered && one.steps == value.steps;
            return self.returned.iter().find(same).map(|one| one.returned.clone()).unwrap_or_default();
        }
        let steps = value.steps.clone();
        let before = self.uses.len();
        let inner = Value { name: Some(parameter.to_owned()), hops: value.hops + 1, ..value };
        for read in scope::reached(function, parameter, inner.key(), &Definition::parameter(function)) {
            self.read(&read, inner.clone(), nodes::range(function));
        }
        let found = self.uses.split_off(before);
        let (returned, others): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|used| used.sink == Sink::Returned);
        self.uses.extend(others);
        self.returned.push(Entered { parameter: entered, steps, returned: returned.clone() });
        returned
    }

    /// An imported function or class, or a method of such a class, gets the value, and its file is at hand.
    fn abroad(&mut self, path: &[Node<'a>], at: usize, value: &Value) -> Option<Vec<Use>> {
        let call = nodes::call(&path[..=at])?;
        let program = self.program.filter(|program| program.depth < MAX_FILES)?;
        let callee = dotted(&call.func);
        let object = self.object_abroad(&path[..path.len() - 1], call);
        let method = if object.is_some() { nodes::name(&call.func) } else { "__init__" };
        let (recorded, file, name) = match (object, Import::of(self.file, &callee)) {
            (Some(class), _) => class,
            (None, Some(import)) => {
                program.find(&import, has_function).or_else(|| program.find(&import, has_class))?
            }
            (None, None) if !callee.contains('.') && !self.binds(path, &callee) => {
                program.starred(self.file, &callee)?
            }
            (None, None) => return None,
        };
        let objects = Objects::new(&file);
        let function = match objects.class_named(&name) {
            Some(class) => objects.method(&class, method)?,
            None => scope::only_function(file.module(), &name)?,
        };
        let (parameter, steps) = parameter(&function, call, nodes::range(path), &value.steps)?;
        let placements = Placements::new(&file);
        let program = Files { recorded: &recorded, depth: program.depth + 1, ..program };
        let mut tracer = Tracer::new(&placements, Some(program));
        let mut returned =
            tracer.inside(&function, &parameter, Value { steps, collected: None, ..value.clone() });
        let deferred = value.collected.is_some_and(|collected| !collected.region.contains(call.start()));
        for used in tracer.uses.iter_mut().chain(&mut returned) {
            (used.deferred, used.value.collected) = (deferred, value.collected);
            used.given = used.given.filter(|given| *given == nodes::range(&function));
            used.lies_in(&recorded);
        }
        let before = self.uses.len();
        self.uses.append(&mut tracer.uses);
        self.given_back(before, &function, &path[..=at]);
        Some(returned)
    }

    /// The class of the receiver, where an import names it and its file is at hand.
    ///
    /// ```text
    /// from engine.scheduler import Scheduler
    /// self.scheduler = Scheduler(config)           # all that the file gives to it
    /// self.scheduler.postprocess(seqs, token_ids)  # its method
    /// ```
    pub(super) fn object_abroad(&self, path: &[Node<'a>], call: &'a ExprCall) -> Option<FoundFile> {
        let values = self.objects.values_of(nodes::receiver(call)?, path);
        let mut made = values.iter().map(|(value, _)| value).filter(|value| !value.is_none_literal_expr());
        let class = dotted(&made.next()?.as_call_expr()?.func);
        let alike = made.all(|value| value.as_call_expr().is_some_and(|other| dotted(&other.func) == class));
        let program = self.program.filter(|program| alike && program.depth < MAX_FILES)?;
        program.find(&Import::of(self.file, &class)?, has_class)
    }

    fn binds(&self, path: &[Node<'a>], name: &str) -> bool {
        let owner = scope::owner(path, name);
        owner.len() > 1 || scope::occurrences(&owner, name).iter().any(|one| one.store)
    }

    /// The method, if the object's class is in the file; a called object's `__call__` or `forward`.
    pub(super) fn method_called(&self, path: &[Node<'a>], call: &'a ExprCall) -> Option<Path<'a>> {
        let of = |object| self.objects.class_of(object, path);
        let class = nodes::receiver(call).and_then(of);
        let named = class.and_then(|class| self.objects.method(&class, nodes::name(&call.func)));
        named.or_else(|| {
            let class = of(&call.func)?;
            ["__call__", "forward"].iter().find_map(|name| self.objects.method(&class, name))
        })
    }

    /// The functions that a call may mean: the object's method, a class's `__init__`, entries of a table
    /// (`table[key](…)`), the lambda of that name, else the only function of that name in the file.
    pub(super) fn callees(&self, path: &[Node<'a>], call: &'a ExprCall) -> Vec<Path<'a>> {
        if let Expr::Subscript(table) = &*call.func {
            return self.listed(&table.value, path);
        }
        let callee = dotted(&call.func);
        let (base, name) = split_callee(&callee);
        if let Some(method) = self.method_called(path, call) {
            return vec![method];
        }
        if !matches!(base, "" | "self" | "cls") {
            return Vec::new();
        }
        if let Some(class) = self.objects.class_named(name) {
            return self.objects.method(&class, "__init__").into_iter().collect();
        }
        let mut functions = scope::functions(self.file.module(), name);
        // A method is not called by its bare name.
        functions.retain(|path| !base.is_empty() || !matches!(path[..], [.., Node::StmtClassDef(_), _]));
        match functions.len() {
            0 => self.lambda(&call.func, path).into_iter().collect(),
            1 => functions,
            _ => Vec::new(),
        }
    }

    /// The functions in the dict that is the only value of `table`; none where one is not in the file.
    fn listed(&self, table: &'a Expr, path: &[Node<'a>]) -> Vec<Path<'a>> {
        let values = self.objects.values_of(table, path);
        let [(Expr::Dict(dict), place)] = values.as_slice() else { return Vec::new() };
        let named = |value: &'a Expr| {
            let callee = dotted(value);
            let (base, name) = split_callee(&callee);
            let class = match base {
                "self" => self.objects.class_of(value.as_attribute_expr().map(|ast| &*ast.value)?, place),
                "" => None,
                _ => return None,
            };
            let method = class.and_then(|class| self.objects.method(&class, name));
            method.or_else(|| scope::only_function(self.file.module(), name))
        };
        dict.items.iter().map(|item| named(&item.value)).collect::<Option<_>>().unwrap_or_default()
    }

    fn lambda(&self, callee: &'a Expr, path: &[Node<'a>]) -> Option<Path<'a>> {
        let values = self.objects.values_of(callee, path);
        let [(Expr::Lambda(lambda), place)] = values.as_slice() else { return None };
        Some([&place[..place.len() - 1], &[Node::from(lambda)]].concat())
    }

    /// The field that the last node of `path` becomes in the object made: that of a dataclass or named tuple
    /// at hand, or the keyword where the callee is only named like a class.
    fn field(&self, path: &[Node<'a>], call: &'a ExprCall) -> Option<Step> {
        let name = nodes::name(&call.func);
        let argument = nodes::range(path);
        let position = call.arguments.args.iter().position(|value| within(argument, value));
        let keyword = nodes::keyword(call, argument).and_then(|keyword| keyword.arg.as_ref());
        let of = |fields: Vec<&str>, unpacks: bool| {
            let at = match keyword {
                Some(keyword) => fields.iter().position(|field| *field == keyword.as_str()),
                None => position,
            };
            let field =
                at.and_then(|at| fields.get(at)).copied().or(keyword.map(|keyword| keyword.as_str()))?;
            Some(Step::Field(field.to_owned(), at.filter(|_| unpacks)))
        };
        if let Some(class) = self.objects.class_named(name) {
            return declared(&self.objects, &class).and_then(|(fields, unpacks)| of(fields, unpacks));
        }
        if let [(Expr::Call(made), _)] = self.objects.values_of(&call.func, path).as_slice()
            && nodes::name(&made.func) == "namedtuple"
        {
            return of(made.arguments.args.get(1).map(named).unwrap_or_default(), true);
        }
        if !name.starts_with(char::is_uppercase) || !name.contains(char::is_lowercase) {
            return None;
        }
        let import = Import::of(self.file, &dotted(&call.func));
        let abroad = import.and_then(|import| self.program?.find(&import, has_class));
        let Some((_, file, name)) = abroad else { return of(Vec::new(), false) };
        let objects = Objects::new(&file);
        let class = objects.class_named(&name)?;
        declared(&objects, &class).and_then(|(fields, unpacks)| of(fields, unpacks))
    }
}

/// `pool.submit(torch.save, state, path)`: another thread writes.
fn hands_to_writer(call: &ExprCall) -> bool {
    let target = call.arguments.find_keyword("target").map(|keyword| &keyword.value);
    let first = || call.arguments.args.iter().find(|argument| !argument.is_none_literal_expr());
    facts::name(nodes::name(&call.func)).is(Fact::Elsewhere)
        && target.or_else(first).is_some_and(|target| roles::is_writer(nodes::name(target)))
}

/// An array of the host, of more than a few numbers.
pub(super) const fn is_array(value: &Value) -> bool {
    value.many && value.data && value.arrays && value.steps.is_empty()
}

/// (declared fields, whether the objects can be unpacked); `None` where the class has a constructor.
fn declared<'a>(objects: &Objects<'a>, class: &Path<'a>) -> Option<(Vec<&'a str>, bool)> {
    let Some(Node::StmtClassDef(ast)) = class.last() else { return None };
    let unpacks = ast.bases().iter().any(|base| nodes::name(base) == "NamedTuple");
    objects.method(class, "__init__").is_none().then(|| (fields(ast).collect(), unpacks))
}

/// `namedtuple` takes a list or one text.
fn named(names: &Expr) -> Vec<&str> {
    match names {
        Expr::List(_) | Expr::Tuple(_) => {
            nodes::listed(names).iter().map(|one| string(one).unwrap_or_default()).collect()
        }
        _ => {
            let names = string(names).unwrap_or_default().split([',', ' ']);
            names.filter(|name| !name.is_empty()).collect()
        }
    }
}

fn fields(class: &StmtClassDef) -> impl Iterator<Item = &str> {
    class.body.iter().filter_map(|stmt| match stmt {
        Stmt::AnnAssign(ast) => Some(ast.target.as_name_expr()?.id.as_str()),
        _ => None,
    })
}

/// The parameter that the argument becomes, and how the value lies in it.
fn parameter(
    function: &Path<'_>,
    call: &ExprCall,
    argument: TextRange,
    steps: &[Step],
) -> Option<(String, Steps)> {
    let (parameters, method) = signature(function)?;
    let mut steps = steps.to_vec();
    if let Some(keyword) = nodes::keyword(call, argument) {
        // `f(**values)`: the value under a key becomes the parameter of that name.
        let key = |step| if let Step::Key(key) = step { Some(key) } else { None };
        let name = match &keyword.arg {
            Some(name) => name.to_string(),
            None => steps.pop().and_then(key)?,
        };
        if parameters.find(&name).is_some() {
            return Some((name, steps));
        }
        steps.push(Step::Key(name));
        return Some((parameters.kwarg.as_ref()?.name.to_string(), steps));
    }
    let mut position = call.arguments.args.iter().position(|value| within(argument, value))?;
    if call.arguments.args[position].is_starred_expr() {
        let Some(Step::Index(index)) = steps.pop() else { return None };
        position += index;
    }
    let mut all = parameters.posonlyargs.iter().chain(&parameters.args);
    let position = position + usize::from(method);
    if let Some(named) = all.clone().nth(position) {
        return Some((named.parameter.name.to_string(), steps));
    }
    steps.push(Step::Index(position - all.by_ref().count()));
    Some((parameters.vararg.as_ref()?.name.to_string(), steps))
}
