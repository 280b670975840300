//! The calls of a line that may have run the frame inside, to follow a returned value into its caller.

use super::line::{Tier, runs_in, walk_line};
use crate::model::Frame;
use crate::python::facts::{self, Fact};
use crate::python::parse::{Given, Node, Path, Source, dotted, last, nodes, scope, split_callee};
use crate::verdict::source::infer::{Objects, sinks};
use ruff_python_ast::{Expr, ExprCall, ExprContext, Parameters};

#[derive(Clone, Copy)]
pub struct Callee<'a> {
    /// Empty where it has none.
    pub name: &'a str,
    /// Called by naming it.
    property: bool,
    /// A function inside another, as decorators make them: callers may use the name of the wrapped function.
    closure: bool,
    parameters: Option<&'a Parameters>,
    /// Callers do not give its first parameter.
    method: bool,
}

impl<'a> Callee<'a> {
    pub fn around(path: &[Node<'a>]) -> Self {
        let at = nodes::function_scope(path);
        let (name, property, parameters) = match path.get(at) {
            Some(Node::StmtFunctionDef(ast)) => {
                let property = ast.decorator_list.iter().any(nodes::is_property);
                (ast.name.as_str(), property, Some(&*ast.parameters))
            }
            Some(Node::ExprLambda(ast)) => (given_name(&path[..=at]), false, ast.parameters.as_deref()),
            _ => ("", false, None),
        };
        let closure = path[..at].iter().any(|node| matches!(node, Node::StmtFunctionDef(_)));
        let method = at > 0 && matches!(path[at - 1], Node::StmtClassDef(_));
        Self { name, property, closure, parameters, method }
    }

    fn takes(&self, call: &ExprCall) -> bool {
        let Some(parameters) = self.parameters else { return true };
        let all = parameters.posonlyargs.iter().chain(&parameters.args).chain(&parameters.kwonlyargs);
        let needed = all.filter(|parameter| parameter.default.is_none()).count();
        nodes::unpacks(call) || call.arguments.len() + usize::from(self.method) >= needed
    }
}

fn given_name<'a>(path: &[Node<'a>]) -> &'a str {
    match nodes::above(path, 1) {
        Some(Node::StmtAssign(ast)) => ast.targets.first().map_or("", nodes::name),
        Some(Node::Keyword(ast)) => ast.arg.as_ref().map_or("", |name| name.as_str()),
        _ => "",
    }
}

/// (paths of calls, whether they are by name).
type Calls<'a> = (Vec<Path<'a>>, bool);

/// The calls that the line of `frame` can mean.
///
/// Definition: the calls by the function's name. Without one, the function may have another name there (a
/// lambda, a callback, a decorated function): it is the line's only call that does not name something else,
/// if the frame inside is `direct`ly what the line calls.
pub fn calls<'a>(file: &'a Source, frame: &Frame, callee: &Callee<'_>, direct: bool) -> Calls<'a> {
    let Some(line) = file.line_range(frame.line) else { return (Vec::new(), false) };
    let (mut named, mut others): (Vec<(Tier, Path<'a>)>, Vec<_>) = (Vec::new(), Vec::new());
    walk_line(file, line, &mut |path, tier| {
        let called = match last(path) {
            Some(Node::ExprAttribute(ast)) => callee.property && ast.attr.as_str() == callee.name,
            Some(Node::ExprCall(call)) if !callee.property => {
                nodes::name(&call.func) == callee.name || is_partial(file, path, &call.func, callee.name)
            }
            Some(Node::ExprSubscript(ast)) => callee.name == "__getitem__" && ast.ctx == ExprContext::Load,
            _ => false,
        };
        if !runs_in(path, &frame.function) {
            return;
        }
        let other = |call| callee.takes(call) && !names_another(file, path, call, callee);
        if called && !callee.name.is_empty() {
            named.push((tier, path.to_vec()));
        } else if nodes::call(path).is_some_and(other) {
            others.push((tier, path.to_vec()));
        }
    });
    let by_name = !named.is_empty();
    let special = callee.name.starts_with("__") && callee.name != "__call__";
    // A module's `forward` is called by the name of the module.
    let forwards = matches!(callee.name, "forward" | "__call__");
    if named.is_empty() && !special && !callee.property && (direct || forwards) {
        others.retain(|(tier, _)| *tier != Tier::Statement);
        named = others;
        if named.len() > 1 {
            // `loss = criterion(model(x), y)`: which call it was is unknown.
            return (Vec::new(), false);
        }
    }
    let most = named.iter().map(|(tier, _)| *tier).max();
    named.retain(|(tier, _)| Some(*tier) == most);
    (named.into_iter().map(|(_, path)| path).collect(), by_name)
}

/// `f = functools.partial(name, 2)`: a call of `f` runs `name`.
fn is_partial<'a>(file: &'a Source, path: &[Node<'a>], called: &'a Expr, name: &str) -> bool {
    let values = Objects::new(file).values_of(called, path);
    let [(Expr::Call(made), _)] = values.as_slice() else { return false };
    nodes::name(&made.func) == "partial"
        && made.arguments.args.first().is_some_and(|of| nodes::name(of) == name)
}

/// Whether a call surely is of something else: a builtin, a library, a container, another function here.
fn names_another<'a>(file: &'a Source, path: &[Node<'a>], call: &'a ExprCall, called: &Callee<'_>) -> bool {
    let callee = dotted(&call.func);
    let (base, name) = split_callee(&callee);
    let root = nodes::root(&callee);
    let own = || {
        let functions = scope::functions(file.module(), name);
        let known = matches!(base, "" | "self")
            && (!called.closure || base.is_empty() && functions.iter().all(|path| is_plain(file, path)));
        known && !functions.is_empty()
    };
    let logs = || sinks::is_log(call, nodes::is_dropped(path));
    // `self.update(*args, **kwargs)` and `agent.update(batch, step)` are no container's.
    let args = &call.arguments.args;
    let hands_on = args.iter().any(Expr::is_starred_expr)
        && call.arguments.keywords.iter().any(|keyword| keyword.arg.is_none())
        || args.len() > 1 && matches!(name, "append" | "extend" | "update" | "add");
    match &*call.func {
        Expr::Name(_) if facts::name(name).is(Fact::Builtin) || logs() => true,
        Expr::Attribute(_) if is_known(name) && !hands_on || logs() => true,
        Expr::Name(_) => own() && !is_rebound(path, name),
        _ => facts::module(root).is(Fact::Numeric) || matches!(root, "os" | "time") || own(),
    }
}

/// Whether a function's name means the function itself: nothing wraps it.
fn is_plain(file: &Source, function: &[Node<'_>]) -> bool {
    let Some(ast) = nodes::function(function) else { return false };
    ast.decorator_list.is_empty() && scope::stores(&[file.module()], &ast.name).count() <= 1
}

/// Then the name does not mean the file's function.
fn is_rebound(path: &[Node<'_>], name: &str) -> bool {
    let owner = scope::owner(path, name);
    owner.len() > 1 && scope::stores(&owner, name).any(|store| !matches!(scope::given(&store), Given::Other))
        || scope::parameter(&owner, name).is_some()
}

fn is_known(method: &str) -> bool {
    use Fact::{Layout, Method, Part, Put, Read, Tensor};
    let facts = facts::name(method);
    facts.stays() || facts.any(&[Fact::Move, Read, Layout, Tensor, Put, Part, Method])
}
