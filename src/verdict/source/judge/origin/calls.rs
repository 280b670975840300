//! Calls: moves of a value, functions of it alone, and functions of the program with what they return.

use super::search::{OnHost, Parameter, Scene, all};
use crate::python::facts::{self, Fact};
use crate::python::parse::{
    Import, Node, Path, Source, dotted, last, nodes, scope, split_callee, split_root,
};
use crate::verdict::source::flow::{Files, Step, Steps, constant_step, has_class, has_function};
use crate::verdict::source::infer::{Here, Objects, Placement, Placements, makes_tensor};
use ruff_python_ast::helpers::map_callable;
use ruff_python_ast::{Expr, ExprCall, ExprName};
use ruff_text_size::{Ranged, TextRange};
use std::sync::Arc;

enum Callee<'a> {
    /// In the same file.
    Here(Path<'a>),
    /// In another one, by its name; under `class` if it is a method.
    There { recorded: String, file: Arc<Source>, class: Option<String>, name: String },
}

impl<'a> Scene<'_, 'a> {
    pub(super) fn call(self, call: &'a ExprCall, steps: Steps) -> Option<OnHost> {
        let callee = dotted(&call.func);
        let (base, name) = split_callee(&callee);
        let torch = facts::module(base).is(Fact::Torch);
        let device = self.here.device_argument(call);
        match (name, nodes::receiver(call)) {
            ("cuda", Some(tensor)) => return self.moved(call, tensor, steps),
            ("to", Some(_)) if device == Some(Placement::Host) => return Some(OnHost::DATA),
            ("to", Some(tensor)) if device == Some(Placement::Device) => {
                return self.moved(call, tensor, steps);
            }
            // The lengths are the packed sequence's own, on the host.
            ("pad_packed_sequence", _) if steps.last() == Some(&Step::Index(1)) => {
                return Some(OnHost::default());
            }
            _ if torch && (makes_tensor(name) || facts::name(name).is(Fact::Named)) => {
                return self.made(call, device == Some(Placement::Device));
            }
            _ => {}
        }
        match self.callee(call) {
            Some(Callee::Here(path)) => {
                return self.enter(call, Here { path: &path, ..self.here }, self.recorded, steps);
            }
            Some(Callee::There { recorded, file, class, name }) => {
                let path = &defined(&file, class.as_deref(), &name)?;
                let placements = &Placements::new(&file);
                return self.enter(call, Here { placements, path }, &recorded, steps);
            }
            None if !is_library(self.here, &call.func) => return None,
            None => {}
        }
        match (name, nodes::receiver(call)) {
            ("range" | "len", None) | ("size" | "numel" | "dim", Some(_)) => Some(OnHost::default()),
            _ if facts::name(name).any(&[Fact::Part, Fact::Pair])
                || !torch && facts::name(name).is(Fact::Wrap)
                || name.ends_with("DataLoader") =>
            {
                self.handed_on(call, steps)
            }
            // `type(batch)(send(x) for x in batch)`: of the same kind.
            _ if callee == "type()" => self.find(call.arguments.args.first()?, steps),
            // A type or another tensor says nothing of the value.
            ("to" | "type", Some(tensor)) => self.find(tensor, steps),
            (_, receiver) if facts::is_pure(name) => {
                let receiver = receiver.filter(|_| !torch && !facts::module(base).is(Fact::Numeric));
                self.each(receiver.into_iter().chain(nodes::given(call))).map(OnHost::computed)
            }
            _ => None,
        }
    }

    /// A tensor made of numbers: `torch.tensor(sizes, device=…)`, `torch.arange(n)`.
    fn made(self, call: &'a ExprCall, on_device: bool) -> Option<OnHost> {
        let (name, arguments) = (nodes::name(&call.func), &call.arguments);
        // A trained tensor does not keep its values.
        if arguments.find_keyword("requires_grad").is_some() {
            return None;
        }
        // Sizes and bounds are read by the host, whatever they were.
        let sized = facts::name(name).is(Fact::Named) && name != "full";
        let named = ["fill_value", "data"].iter().filter_map(|name| arguments.find_keyword(name));
        let values = arguments.args.iter().chain(named.map(|keyword| &keyword.value));
        let known = if sized { OnHost::default() } else { self.each(values)? };
        Some(OnHost { sent: known.sent.or_else(|| on_device.then(|| self.place(call))), ..known })
    }

    /// Calls that pass on parts of their argument or receiver: loops, entries of dicts, loader batches.
    fn handed_on(self, call: &'a ExprCall, mut steps: Steps) -> Option<OnHost> {
        let (name, receiver, arguments) =
            (nodes::name(&call.func), nodes::receiver(call), &call.arguments.args);
        let looped = steps.last() == Some(&Step::Any);
        match (name, receiver) {
            // Workers of a loader have no GPU: they collate tensors of the host.
            _ if name.ends_with("DataLoader") => looped.then_some(OnHost::DATA),
            ("enumerate", None) if looped => {
                steps.pop();
                self.second(arguments.first()?, steps, Step::Any)
            }
            ("zip", None) if looped && !arguments.iter().any(Expr::is_starred_expr) => {
                steps.pop();
                let Step::Index(index) = steps.pop()? else { return None };
                self.find(arguments.get(index)?, with(steps, Step::Any))
            }
            ("items", Some(table)) if looped => {
                steps.pop();
                self.second(table, steps, Step::Entry)
            }
            ("values", Some(table)) if looped => self.find(table, steps),
            ("get" | "pop", Some(table)) => self.find(table, with(steps, constant_step(arguments.first()?)?)),
            ("next", None) => self.find(arguments.first()?, with(steps, Step::Any)),
            _ if facts::name(name).is(Fact::Wrap) => self.find(arguments.first()?, steps),
            _ => None,
        }
    }

    /// The element of a pair: a number or a key, or what `held` holds behind `step`.
    fn second(self, held: &'a Expr, mut steps: Steps, step: Step) -> Option<OnHost> {
        match steps.pop()? {
            Step::Index(0) => Some(OnHost::default()),
            Step::Index(1) => self.find(held, with(steps, step)),
            _ => None,
        }
    }

    /// `tensor.to(device)`: known if the tensor is. A tensor of unknown place counts as sent, unless `plain`.
    fn moved(self, call: &'a ExprCall, tensor: &'a Expr, steps: Steps) -> Option<OnHost> {
        let place = || Some(self.place(call));
        match self.find(tensor, steps) {
            Some(known) => Some(OnHost { sent: known.sent.or_else(place), ..known }),
            None if !self.search.plain
                && self.here.find(tensor) == Placement::Unknown
                && !self.makes_object(tensor) =>
            {
                Some(OnHost { sent: place(), ..OnHost::DATA })
            }
            None => None,
        }
    }

    /// The program's function that a call means; `None` where it is none, or unknown.
    fn callee(self, call: &'a ExprCall) -> Option<Callee<'a>> {
        let here = self.here;
        let program = Files { tree: self.search.site.tree, recorded: self.recorded, depth: 0 };
        let imported = || {
            let import = only_import(here, &dotted(&call.func))?;
            let (recorded, file, name) = program.find(&import, has_function)?;
            Some(Callee::There { recorded, file, class: None, name })
        };
        match &*call.func {
            Expr::Name(name) => {
                let only = nodes::only(scope::bindings(here.path, &name.id))?;
                match last(&only)? {
                    Node::StmtFunctionDef(_) => Some(Callee::Here(only)),
                    _ => imported(),
                }
            }
            Expr::Attribute(ast) => {
                let name = ast.attr.to_string();
                if let Some(object) = self.object.filter(|object| same_object(here, object.expr, &ast.value))
                {
                    let file = self.search.site.tree.open(object.recorded)?;
                    let (recorded, class) = (object.recorded.to_owned(), Some(object.class.to_owned()));
                    return Some(Callee::There { recorded, file, class, name });
                }
                let objects = Objects::new(here.file());
                if let Some(class) = objects.class_of(&ast.value, here.path) {
                    return objects.method(&class, &name).map(Callee::Here);
                }
                if let [(Expr::Call(made), _)] = objects.values_of(&ast.value, here.path).as_slice()
                    && let import = only_import(here, &dotted(&made.func))?
                    && let Some((recorded, file, class)) = program.find(&import, has_class)
                {
                    return Some(Callee::There { recorded, file, class: Some(class), name });
                }
                imported()
            }
            _ => None,
        }
    }

    fn enter<'b>(
        self,
        call: &'a ExprCall,
        here: Here<'_, 'b>,
        recorded: &str,
        mut steps: Steps,
    ) -> Option<OnHost> {
        let function = here.path;
        let ast = nodes::function(function)?;
        // `no_grad` of `@torch.no_grad()`.
        let mut decorators = ast.decorator_list.iter().map(|one| nodes::name(map_callable(&one.expression)));
        if ast.is_async || !decorators.all(|name| facts::name(name).is(Fact::Transparent)) {
            return None;
        }
        let entered = (nodes::range(function), recorded.to_owned());
        if self.recorded == recorded
            && nodes::within(call, entered.0)
            && self.search.functions.borrow().contains(&entered)
        {
            // Part after part of the function's input: `{k: send(v, device) for k, v in batch.items()}`.
            let parts = call.arguments.args.iter().filter(|part| !nodes::name(part).contains("device"));
            return self.each(parts);
        }
        let outside = |parameter: &Parameter<'_>| self.passed(call, parameter);
        let inner = Scene {
            here,
            recorded,
            function: entered.0,
            outside: &outside,
            object: None,
            search: self.search,
        };
        let yields = nodes::own(function, |node| matches!(node, Node::ExprYield(_) | Node::ExprYieldFrom(_)));
        if !yields.is_empty() && steps.pop() != Some(Step::Any) {
            return None;
        }
        let given = if yields.is_empty() { nodes::returns(function) } else { yields };
        let value = |path: &Path<'b>| match last(path)? {
            Node::StmtReturn(ast) => ast.value.as_deref(),
            Node::ExprYield(ast) => ast.value.as_deref(),
            _ => None,
        };
        // A tuple too short for the element is not the one that came.
        let came = |path: &&Path<'b>| match (value(path), steps.last()) {
            (Some(Expr::Tuple(ast)), Some(Step::Index(index))) => {
                *index < ast.elts.len() || ast.elts.iter().any(Expr::is_starred_expr)
            }
            _ => true,
        };
        self.search.functions.borrow_mut().push(entered);
        let known =
            all(given.iter().filter(came).map(|path| inner.at(path).find(value(path)?, steps.clone())));
        self.search.functions.borrow_mut().pop();
        known
    }

    /// Whether it is an object of a class, or called like a module: its fields are no part of what is sent.
    fn makes_object(self, expr: &'a Expr) -> bool {
        let is_object = |value: &Expr| {
            let class = value.as_call_expr().map_or("", |call| nodes::name(&call.func));
            class.starts_with(|first: char| first.is_ascii_uppercase())
        };
        let called = |name: &ExprName| {
            let is_call = |path: &Path<'a>| matches!(path[..], [.., Node::ExprCall(call), callee] if call.func.range() == callee.range());
            scope::mentions(self.here.path, &name.id).iter().any(|one| is_call(&one.path))
        };
        let values = Objects::new(self.here.file()).values_of(expr, self.here.path);
        is_object(expr)
            || expr.as_name_expr().is_some_and(called)
            || values.iter().any(|(value, _)| is_object(value))
    }
}

/// Whether a function's result is the host's, whatever its arguments are.
pub(super) fn gives_own(name: &str) -> bool {
    let facts = facts::name(name);
    facts.any(&[Fact::Read, Fact::Layout, Fact::Number]) || !(facts::is_pure(name) || facts.is(Fact::Wrap))
}

fn with(mut steps: Steps, step: Step) -> Steps {
    steps.push(step);
    steps
}

/// The import, if it is the name's only binding.
fn only_import(here: Here<'_, '_>, dotted: &str) -> Option<Import> {
    let root = split_root(dotted).0;
    let owner = scope::owner(here.path, root);
    let only = nodes::only(scope::stores(&owner, root))?;
    let imported = matches!(last(&only), Some(Node::Alias(_))) && scope::parameter(&owner, root).is_none();
    imported.then(|| Import::of(here.file(), dotted))?
}

/// A builtin, a method of a value, or of a library whose functions do what they are called.
fn is_library(here: Here<'_, '_>, callee: &Expr) -> bool {
    let callee = dotted(callee);
    let (root, rest) = split_root(&callee);
    let owner = scope::owner(here.path, root);
    let bound = scope::parameter(&owner, root).is_some() || scope::stores(&owner, root).next().is_some();
    match only_import(here, &callee) {
        Some(import) => facts::module(split_root(&import.full).0).is(Fact::WellNamed),
        None => !rest.is_empty() || !bound,
    }
}

/// At the top of the file, or a method of the class there; `None` where the name has several meanings.
fn defined<'a>(file: &'a Source, class: Option<&str>, name: &str) -> Option<Path<'a>> {
    if let Some(class) = class {
        let objects = Objects::new(file);
        return objects.method(&objects.class_named(class)?, name);
    }
    nodes::only(scope::stores(&[file.module()], name)).filter(|only| nodes::function(only).is_some())
}

/// Whether two expressions name one object: the same assignments reach both.
fn same_object<'a>(here: Here<'_, 'a>, one: &'a Expr, other: &'a Expr) -> bool {
    let (Expr::Name(first), Expr::Name(second)) = (one, other) else {
        return dotted(one) == dotted(other) && one.is_attribute_expr();
    };
    let given = |name: &'a ExprName| -> Vec<TextRange> {
        scope::reaching(here.path, name).iter().map(|store| nodes::range(store)).collect()
    };
    first.id == second.id && given(first) == given(second)
}
