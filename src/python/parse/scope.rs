//! Where a name's value can be read: occurrences, blocks, and the occurrences that a binding reaches.

use super::blocks::{Block, blocks, exclusive, leaves, loops};
use super::nodes::{self, Node, Path, find, function_scope, scope, statement, within};
use crate::python::facts::{self, Fact};
use ruff_python_ast::{AnyParameterRef, Expr, ExprName, Identifier, Stmt, StmtIf};
use ruff_text_size::{Ranged, TextRange, TextSize};
use rustc_hash::FxHashMap;

pub struct Occurrence<'a> {
    pub path: Path<'a>,
    /// Binds the name (`x = …`, `for x in …`, `import x`). `x += …` replaces nothing: it is neither.
    pub store: bool,
    pub load: bool,
    /// In a function inside the scope, which runs at an unknown time.
    pub closure: bool,
    /// Where a binding takes effect, or where a read happens.
    at: TextSize,
}

/// Path of the scope that owns `name` as seen from the last node of `path`.
pub fn owner<'a>(path: &[Node<'a>], name: &str) -> Path<'a> {
    let at = nodes::scopes(path).find(|&at| at == 0 || binds(&path[..=at], name));
    path[..=at.unwrap_or(0)].to_vec()
}

pub fn parameter<'a>(function: &[Node<'a>], name: &str) -> Option<AnyParameterRef<'a>> {
    nodes::function(function)?.parameters.iter().find(|parameter| parameter.name().as_str() == name)
}

pub fn is_parameter(path: &[Node<'_>], name: &str) -> bool {
    parameter(&owner(path, name), name).is_some()
}

/// Whether a function, lambda, class or comprehension binds the name itself.
pub fn binds(scope_path: &[Node<'_>], name: &str) -> bool {
    let Some(node) = nodes::last(scope_path) else { return false };
    let parameters = match node {
        Node::StmtFunctionDef(ast) => Some(&*ast.parameters),
        Node::ExprLambda(ast) => ast.parameters.as_deref(),
        _ => None,
    };
    if parameters.is_some_and(|all| all.includes(name)) {
        return true;
    }
    let depth = scope_path.len() - 1;
    let (mut bound, mut foreign) = (false, false);
    nodes::walk(scope_path, &mut |path| {
        let own = || owners(path).any(|at| at == depth);
        let declared = nodes::last(path).map_or(&[][..], declared);
        foreign |= declared.iter().any(|id| id.as_str() == name) && own();
        bound |= path.len() > depth + 1 && binding(path) == Some(name) && own();
        !foreign
    });
    bound && !foreign
}

/// Indices of the scopes that own what the last node binds; a walrus in a comprehension has two.
pub(in crate::python) fn owners(path: &[Node<'_>]) -> impl Iterator<Item = usize> {
    let walrus = matches!(nodes::above(path, 1), Some(Node::ExprNamed(_)));
    let innermost = scope(path);
    let function = Some(function_scope(path)).filter(|&at| walrus && at != innermost);
    std::iter::once(innermost).chain(function)
}

pub(in crate::python) fn declared<'a>(node: Node<'a>) -> &'a [Identifier] {
    match node {
        Node::StmtGlobal(ast) => &ast.names,
        Node::StmtNonlocal(ast) => &ast.names,
        _ => &[],
    }
}

pub(in crate::python) fn binding<'a>(path: &[Node<'a>]) -> Option<&'a str> {
    let bound = match nodes::last(path) {
        Some(Node::ExprName(ast)) => return ast.ctx.is_store().then_some(ast.id.as_str()),
        Some(Node::StmtFunctionDef(ast)) => Some(&ast.name),
        Some(Node::StmtClassDef(ast)) => Some(&ast.name),
        Some(Node::Alias(ast)) => ast.asname.as_ref().or(Some(&ast.name)),
        Some(Node::ExceptHandlerExceptHandler(ast)) => ast.name.as_ref(),
        Some(Node::PatternMatchAs(ast)) => ast.name.as_ref(),
        _ => None,
    };
    bound.map(|id| id.as_str())
}

/// `owner` is the index in `path` of the scope that owns the name.
pub(in crate::python) fn occurrence<'a>(path: Path<'a>, owner: usize, name: &str) -> Occurrence<'a> {
    let range = nodes::range(&path);
    let store = path.len() > owner + 1 && binding(&path) == Some(name);
    let augmented = statement(&path)
        .is_some_and(|s| matches!(path[s], Node::StmtAugAssign(ast) if ast.target.range() == range));
    let load = matches!(nodes::last(&path), Some(Node::ExprName(ast)) if ast.ctx.is_load());
    let closure = function_scope(&path) > owner;
    let at = if store { effective(&path) } else { range.start() };
    Occurrence { store: store && !augmented, load, closure, at, path }
}

/// Occurrences of `name` that mean this scope's variable, in source order; not in functions that rebind it.
pub fn occurrences<'a>(scope_path: &[Node<'a>], name: &str) -> Vec<Occurrence<'a>> {
    let depth = scope_path.len() - 1;
    let mut all = Vec::new();
    nodes::walk(scope_path, &mut |path| {
        let Some(node) = nodes::last(path) else { return false };
        let inner = path.len() > depth + 1;
        let opens = matches!(node, Node::StmtFunctionDef(_) | Node::ExprLambda(_) | Node::StmtClassDef(_))
            || nodes::is_comprehension(node);
        let read = || matches!(node, Node::ExprName(ast) if ast.id == name && ast.ctx.is_load());
        if inner && binding(path) == Some(name) || read() {
            all.push(occurrence(path.to_vec(), depth, name));
        }
        // Default values and decorators of an inner function that rebinds the name are rare enough to lose.
        !(inner && opens && binds(path, name))
    });
    all
}

pub fn stores<'a>(owner: &[Node<'a>], name: &str) -> impl Iterator<Item = Path<'a>> {
    occurrences(owner, name).into_iter().filter(|one| one.store).map(|one| one.path)
}

pub fn bindings<'a>(path: &[Node<'a>], name: &str) -> Vec<Path<'a>> {
    stores(&owner(path, name), name).collect()
}

pub fn mentions<'a>(path: &[Node<'a>], name: &str) -> Vec<Occurrence<'a>> {
    occurrences(&owner(path, name), name)
}

/// Where a binding takes effect: `x = f(x)` binds after the right side is read.
fn effective(path: &[Node<'_>]) -> TextSize {
    let Some(node) = nodes::last(path) else { return TextSize::default() };
    let above =
        path.iter().rev().skip(1).find(|node| node.is_statement() || matches!(node, Node::ExprNamed(_)));
    match above {
        Some(Node::StmtFor(ast)) if within(node, &*ast.target) => ast.iter.end(),
        Some(Node::StmtAssign(_) | Node::StmtAnnAssign(_) | Node::StmtAugAssign(_) | Node::ExprNamed(_)) => {
            above.map_or(node.end(), |above| above.end())
        }
        _ => node.end(),
    }
}

pub struct Definition<'a> {
    pub path: Path<'a>,
    pub at: TextSize,
}

impl<'a> Definition<'a> {
    pub fn new(path: &[Node<'a>]) -> Self {
        Self { path: path.to_vec(), at: effective(path) }
    }

    /// A parameter of the function or lambda at the end of a path: bound before its body.
    pub fn parameter(function: &[Node<'a>]) -> Self {
        let first: Option<Node<'a>> = match nodes::last(function) {
            Some(Node::StmtFunctionDef(ast)) => ast.body.first().map(Node::from),
            Some(Node::ExprLambda(ast)) => Some(Node::from(&*ast.body)),
            _ => None,
        };
        let at = first.map_or(nodes::range(function).start(), |first| first.start());
        Self { path: function.iter().copied().chain(first).collect(), at }
    }
}

pub fn reads<'a>(path: &[Node<'a>], name: &str) -> Vec<Path<'a>> {
    reached(&owner(path, name), name, None, &Definition::new(path))
}

/// The assignments that a read of the name sees, or the function whose parameter it sees.
pub fn reaching<'a>(path: &[Node<'a>], name: &ExprName) -> Vec<Path<'a>> {
    let owner = owner(path, &name.id);
    let all = occurrences(&owner, &name.id);
    let is_read = |one: &&Occurrence<'a>| one.load && nodes::range(&one.path) == name.range();
    let Some(read) = all.iter().find(is_read) else { return Vec::new() };
    let seen = seen(&Reach::new(&owner, &all, None), &owner, &name.id, &all, read);
    seen.into_iter().map(<[Node<'a>]>::to_vec).collect()
}

/// As [`reaching`], among all occurrences of the name.
pub(in crate::python) fn seen<'p, 'a>(
    reach: &Reach,
    owner: &'p [Node<'a>],
    name: &str,
    all: &'p [Occurrence<'a>],
    read: &Occurrence<'a>,
) -> Vec<&'p [Node<'a>]> {
    let parameter = parameter(owner, name).map(|_| (Definition::parameter(owner), owner));
    let stores = all.iter().filter(|one| one.store).map(|one| (Definition::new(&one.path), &*one.path));
    let all = parameter.into_iter().chain(stores);
    all.filter(|(definition, _)| reach.sees(definition)(read)).map(|(_, path)| path).collect()
}

/// The reads of `name` that can see the value bound by `definition`, in source order. With a `key`, the name
/// is a dict's: putting another value under the key hides the first one too.
///
/// Definition: a read sees the value when some run goes from the binding to the read without passing another
/// binding of the name. Blocks are taken as structured code, without solving equations. Another binding hides
/// the value from a later read when it surely runs before that read (in a block around the read), or when
/// every arm of an `if … else` holds one. A read *before* the binding sees the value through a loop around
/// both, unless a binding surely runs in between.
///
/// ```text
/// loss = a.item()      # the binding
/// print(loss)          # read
/// loss = f(x)          # hides it from here on
/// if loss > 3: …       # not a read of a.item()
///
/// info["loss"] = v     # the binding, of `info` under "loss"
/// info["loss"] = w     # hides it
/// ```
/// Cost: one walk over the scope, then the bindings between each read and the one that hides the value.
pub fn reached<'a>(
    scope_path: &[Node<'a>],
    name: &str,
    key: Option<&str>,
    definition: &Definition<'a>,
) -> Vec<Path<'a>> {
    let all = occurrences(scope_path, name);
    let reach = Reach::new(scope_path, &all, key);
    let sees = reach.sees(definition);
    all.iter().filter(|one| one.load && sees(one)).map(|one| one.path.clone()).collect()
}

pub(in crate::python) struct Reach {
    /// Sorted by the place where each takes effect.
    kills: Vec<Kill>,
    depth: usize,
    /// The element of a comprehension precedes the loop that binds its names, and no name is bound twice.
    comprehension: bool,
}

/// A binding that hides earlier ones. An `if` all of whose arms bind counts as a binding at its end.
struct Kill {
    at: TextSize,
    blocks: Vec<Block>,
    /// Range of the binding, which hides no value that it makes itself.
    node: TextRange,
    is_if: bool,
}

impl Kill {
    fn hides(&self, definition: &Definition<'_>) -> bool {
        match self.is_if {
            true => !self.node.contains_inclusive(definition.at),
            false => self.at != definition.at && self.node != nodes::range(&definition.path),
        }
    }
}

impl Reach {
    /// `all`: occurrences of a name in the scope. With a `key`, the value under the key of a dict is meant.
    pub(in crate::python) fn new(scope_path: &[Node<'_>], all: &[Occurrence<'_>], key: Option<&str>) -> Self {
        let depth = scope_path.len() - 1;
        let kills = kills(all, key, depth);
        Self { kills, depth, comprehension: nodes::is_comprehension(scope_path[depth]) }
    }

    fn sees(&self, definition: &Definition<'_>) -> impl Fn(&Occurrence<'_>) -> bool {
        let depth = self.depth;
        let from = blocks(&definition.path, depth);
        let foreign = self.comprehension || function_scope(&definition.path) != depth;
        move |read| {
            if read.closure || foreign {
                return true;
            }
            let to = blocks(&read.path, depth);
            let hidden = |low: TextSize, high: TextSize, place: &[Block]| {
                let kills = &self.kills[self.kills.partition_point(|kill| kill.at <= low)..];
                let mut between = kills.iter().take_while(|kill| kill.at <= high);
                between.any(|kill| place.starts_with(&kill.blocks) && kill.hides(definition))
            };
            let again = read.at < definition.at || exclusive(&from, &to);
            if !again && !leaves(&definition.path, depth, &to) && !hidden(definition.at, read.at, &to) {
                return true;
            }
            again
                && loops(&definition.path, depth).any(|(around, repeated)| {
                    repeated.contains_range(TextRange::empty(read.at))
                        && !hidden(around.start(), read.at, &to)
                        && !hidden(definition.at, around.end() - TextSize::from(1), &from)
                })
        }
    }
}

fn kills(all: &[Occurrence<'_>], key: Option<&str>, depth: usize) -> Vec<Kill> {
    let kill = |one: &Occurrence<'_>| {
        let at = if one.store { Some(one.at) } else { overwritten(&one.path, key?) }?;
        Some(Kill { at, blocks: blocks(&one.path, depth), node: nodes::range(&one.path), is_if: false })
    };
    let mut kills: Vec<_> = all.iter().filter(|one| !one.closure).filter_map(kill).collect();
    let around = all.iter().flat_map(|occurrence| &occurrence.path);
    let mut ifs: Vec<&StmtIf> = around.filter_map(|node| node.stmt_if()).collect();
    // Inner ones first, so that an outer `if` finds them.
    ifs.sort_by_key(|ast| (ast.range.len(), ast.range.start()));
    ifs.dedup_by_key(|ast| ast.range);
    let arm_of = |kill: &Kill| kill.blocks.last().copied();
    let mut bound: FxHashMap<Block, usize> =
        kills.iter().enumerate().filter_map(|(at, kill)| Some((arm_of(kill)?, at))).collect();
    for ast in ifs {
        let clauses = &ast.elif_else_clauses;
        let open = clauses.last().is_none_or(|clause| clause.test.is_some());
        let mut arms = std::iter::once(&*ast.body).chain(clauses.iter().map(|clause| &*clause.body));
        let binds = |body: &[Stmt]| {
            bound.get(&Block { statement: ast.range, arm: body.first()?.range(), apart: true }).copied()
        };
        let Some(first) = binds(&ast.body).filter(|_| !open && arms.all(|body| binds(body).is_some())) else {
            continue;
        };
        let around = kills[first].blocks.split_last().map(|(_, around)| around.to_vec()).unwrap_or_default();
        let kill = Kill { at: ast.range.end(), blocks: around, node: ast.range, is_if: true };
        bound.extend(arm_of(&kill).map(|arm| (arm, kills.len())));
        kills.push(kill);
    }
    kills.sort_by_key(|kill| kill.at);
    kills
}

/// Another value under `key` of the dict that the last node names: `name[key] = v`, `name.update({key: v})`.
fn overwritten(path: &[Node<'_>], key: &str) -> Option<TextSize> {
    match *path {
        [.., Node::StmtAssign(_), Node::ExprSubscript(ast), name] => {
            let stores = ast.ctx.is_store() && within(name, &*ast.value);
            (stores && nodes::string(&ast.slice) == Some(key)).then(|| effective(path))
        }
        [.., Node::StmtExpr(_), Node::ExprCall(call), Node::ExprAttribute(ast), _]
            if ast.attr.as_str() == "update" =>
        {
            let Some(Expr::Dict(dict)) = call.arguments.args.first() else { return None };
            let mut keys = dict.items.iter().filter_map(|item| item.key.as_ref());
            keys.any(|one| nodes::string(one) == Some(key)).then(|| call.end())
        }
        _ => None,
    }
}

/// The innermost loop whose repeated part (body, and a `while`'s test) holds the last node and `origin`.
pub fn innermost_loop(path: &[Node<'_>], origin: TextSize) -> Option<TextRange> {
    let place = path.last()?.start();
    let repeated = |node: &Node<'_>| match node {
        Node::StmtFor(ast) => Some(TextRange::new(ast.body.first()?.start(), ast.body.last()?.end())),
        Node::StmtWhile(ast) => Some(TextRange::new(ast.test.start(), ast.body.last()?.end())),
        _ => None,
    };
    let mut inner = path[function_scope(path)..].iter().rev().filter_map(repeated);
    inner.find(|body| body.contains(place) && body.contains(origin))
}

/// What gives the name at the end of `path` its value.
pub enum Given<'a> {
    /// `x = value`, `with value as x`.
    Value(&'a Expr),
    /// `x, y = value`: one element.
    Element(&'a Expr),
    /// `for x in value`.
    Iterated(&'a Expr),
    Other,
}

pub fn given<'a>(path: &[Node<'a>]) -> Given<'a> {
    let Some(name) = nodes::last(path) else { return Given::Other };
    for node in path.iter().rev().skip(1) {
        match node {
            Node::ExprTuple(_) | Node::ExprList(_) | Node::ExprStarred(_) => {}
            Node::ExprNamed(ast) => return Given::Value(&ast.value),
            Node::StmtAssign(ast) => {
                let whole = ast.targets.iter().any(|target| target.range() == name.range());
                let paired = || ast.targets.iter().find_map(|target| paired(target, &ast.value, name));
                return match whole {
                    true => Given::Value(&ast.value),
                    false => paired().map_or(Given::Element(&ast.value), Given::Value),
                };
            }
            Node::StmtAnnAssign(ast) => return ast.value.as_deref().map_or(Given::Other, Given::Value),
            // Files and most others return themselves.
            Node::WithItem(ast)
                if ast.optional_vars.as_ref().is_some_and(|target| target.range() == name.range()) =>
            {
                return Given::Value(&ast.context_expr);
            }
            Node::StmtFor(ast) if within(name, &*ast.target) => return Given::Iterated(&ast.iter),
            Node::Comprehension(ast) if within(name, &ast.target) => return Given::Iterated(&ast.iter),
            _ => return Given::Other,
        }
    }
    Given::Other
}

/// The iterable that gives the name at the end of a path its values, by its place in the tuples of the
/// target: `xs` for the x of `for i, (x, y) in enumerate(zip(xs, ys))`. `None` where there is none, or it
/// counts.
pub fn gone_through<'a>(path: &[Node<'a>]) -> Option<&'a Expr> {
    let Given::Iterated(mut iterated) = given(path) else { return None };
    let place = |pair: &[Node<'a>]| match pair {
        [Node::ExprTuple(ast), node] => Some(ast.elts.iter().position(|one| one.range() == node.range())),
        _ => None,
    };
    let inwards: Vec<_> = path.windows(2).rev().map_while(place).collect::<Option<_>>()?;
    let mut places = inwards.into_iter().rev();
    while let Expr::Call(call) = iterated {
        let mut rest = places.clone();
        let (at, unpacks) = match (nodes::name(&call.func), rest.next()) {
            ("range" | "trange", _) | ("enumerate", Some(0)) => return None,
            ("enumerate", Some(1)) => (0, true),
            ("zip", Some(at)) => (at, true),
            (name, _) if facts::name(name).is(Fact::Wrap) => (0, false),
            _ => break,
        };
        match call.arguments.args.get(at) {
            None | Some(Expr::Starred(_)) => break,
            Some(argument) => iterated = argument,
        }
        if unpacks {
            places = rest;
        }
    }
    Some(iterated)
}

/// A value, and the place where it is given.
pub type Valued<'a> = (&'a Expr, Path<'a>);

/// The value given to the name at the end of a path, with the path; `None` where it is given otherwise.
pub fn value<'a>(path: Path<'a>) -> Option<Valued<'a>> {
    if let Given::Value(value) = given(&path) { Some((value, path)) } else { None }
}

/// The value of the name's only binding, if that is a plain assignment.
pub fn only_value<'a>(path: &[Node<'a>], name: &'a ExprName) -> Option<Valued<'a>> {
    let owner = owner(path, &name.id);
    let all = occurrences(&owner, &name.id);
    let plain = all.iter().all(|one| one.load || one.store) && parameter(&owner, &name.id).is_none();
    let only = nodes::only(all.into_iter().filter(|one| one.store)).filter(|_| plain)?;
    let assigned = matches!(only.path[..], [.., Node::StmtAssign(_), _]);
    value(only.path).filter(|_| assigned)
}

/// The only value that a name can have where it is read, with the place.
pub fn assigned<'a>(path: &[Node<'a>], name: &ExprName) -> Option<Valued<'a>> {
    // A parameter is the function itself, which is given nothing.
    value(nodes::only(reaching(path, name))?)
}

/// The value that an element of a tuple of targets gets from a tuple of values: `y, n = f(x), 0`.
fn paired<'a>(target: &'a Expr, value: &'a Expr, name: Node<'a>) -> Option<&'a Expr> {
    let (targets, values) = (&target.as_tuple_expr()?.elts, &value.as_tuple_expr()?.elts);
    if targets.len() != values.len() || targets.iter().chain(values).any(Expr::is_starred_expr) {
        return None;
    }
    values.get(targets.iter().position(|one| one.range() == name.range())?)
}

pub fn functions<'a>(module: Node<'a>, name: &str) -> Vec<Path<'a>> {
    find(&[module], &mut |path| nodes::function(path).is_some_and(|ast| ast.name.as_str() == name))
}

pub fn only_function<'a>(module: Node<'a>, name: &str) -> Option<Path<'a>> {
    nodes::only(functions(module, name))
}
