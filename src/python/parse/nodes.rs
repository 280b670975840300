//! Walking the syntax tree with ancestors, and small questions about nodes.

use ruff_python_ast::helpers::is_const_true;
use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, TraversalSignal, walk_node};
use ruff_python_ast::{
    Alias, AnyNodeRef, Comprehension, Decorator, Expr, ExprAttribute, ExprCall, ExprName, Keyword, Number,
    Stmt, StmtClassDef, StmtFunctionDef,
};
use ruff_text_size::{Ranged, TextRange};

pub type Node<'a> = AnyNodeRef<'a>;

/// A node with its ancestors: the module first, the node itself last.
pub type Path<'a> = Vec<Node<'a>>;

/// Calls `visit` with the path of every node at and below the last node of `path`, in source order. `visit`
/// answers whether to go below the node. Cost: the nodes visited.
pub fn walk<'a>(path: &[Node<'a>], visit: &mut dyn FnMut(&[Node<'a>]) -> bool) {
    let Some((root, above)) = path.split_last() else { return };
    walk_node(&mut Walker { path: above.to_vec(), visit }, *root);
}

struct Walker<'a, 'v> {
    path: Path<'a>,
    visit: &'v mut dyn FnMut(&[Node<'a>]) -> bool,
}

impl<'a> SourceOrderVisitor<'a> for Walker<'a, '_> {
    fn enter_node(&mut self, node: AnyNodeRef<'a>) -> TraversalSignal {
        self.path.push(node);
        if (self.visit)(&self.path) { TraversalSignal::Traverse } else { TraversalSignal::Skip }
    }

    fn leave_node(&mut self, _: AnyNodeRef<'a>) {
        self.path.pop();
    }
}

fn each<'a, T>(path: &[Node<'a>], of: &mut dyn FnMut(&[Node<'a>]) -> Option<T>) -> Vec<T> {
    let mut found = Vec::new();
    walk(path, &mut |path| {
        found.extend(of(path));
        true
    });
    found
}

/// Paths at and below the last node of `path`, in source order.
pub fn find<'a>(path: &[Node<'a>], wanted: &mut dyn FnMut(&[Node<'a>]) -> bool) -> Vec<Path<'a>> {
    each(path, &mut |path| wanted(path).then(|| path.to_vec()))
}

/// Paths of the function's own nodes that `wanted` picks, without those of nested functions.
pub fn own<'a>(function: &[Node<'a>], wanted: fn(Node<'a>) -> bool) -> Vec<Path<'a>> {
    let is_own = |path: &[Node<'a>]| function_scope(path) + 1 == function.len();
    find(function, &mut |path| last(path).is_some_and(wanted) && is_own(path))
}

pub fn returns<'a>(function: &[Node<'a>]) -> Vec<Path<'a>> {
    own(function, |node| matches!(node, Node::StmtReturn(_)))
}

pub fn any<'a>(path: &[Node<'a>], wanted: &mut dyn FnMut(&[Node<'a>]) -> bool) -> bool {
    let mut found = false;
    walk(path, &mut |path| {
        found = found || wanted(path);
        !found
    });
    found
}

pub fn any_call(path: &[Node<'_>], wanted: &dyn Fn(&ExprCall) -> bool) -> bool {
    any(path, &mut |path| call(path).is_some_and(wanted))
}

/// `None` where there are several or none.
pub fn only<T>(all: impl IntoIterator<Item = T>) -> Option<T> {
    let mut all = all.into_iter();
    all.next().filter(|_| all.next().is_none())
}

pub fn calls<'a>(path: &[Node<'a>], wanted: &dyn Fn(&ExprCall) -> bool) -> Vec<Path<'a>> {
    find(path, &mut |path| call(path).is_some_and(wanted))
}

/// Expressions at and below the node, in source order.
pub fn named<'a>(node: Node<'a>, name: &str) -> Vec<Path<'a>> {
    find(&[node], &mut |path| matches!(last(path), Some(Node::ExprName(ast)) if ast.id == name))
}

pub fn attributes<'a>(path: &[Node<'a>], name: &str) -> Vec<Path<'a>> {
    find(path, &mut |path| attribute(path).is_some_and(|ast| ast.attr.as_str() == name))
}

/// `None` for an empty path, which no walk makes.
pub fn last<'a>(path: &[Node<'a>]) -> Option<Node<'a>> {
    path.last().copied()
}

pub fn call<'a>(path: &[Node<'a>]) -> Option<&'a ExprCall> {
    last(path)?.expr_call()
}

/// The last name of the callee; empty where the path ends at no call.
pub fn callee<'a>(path: &[Node<'a>]) -> &'a str {
    call(path).map_or("", |call| name(&call.func))
}

pub fn attribute<'a>(path: &[Node<'a>]) -> Option<&'a ExprAttribute> {
    last(path)?.expr_attribute()
}

pub fn function<'a>(path: &[Node<'a>]) -> Option<&'a StmtFunctionDef> {
    last(path)?.stmt_function_def()
}

pub fn class<'a>(path: &[Node<'a>]) -> Option<&'a StmtClassDef> {
    last(path)?.stmt_class_def()
}

/// The call that the last node is a positional argument of.
pub fn argument_of<'a>(path: &[Node<'a>]) -> Option<&'a ExprCall> {
    if let [.., Node::ExprCall(call), Node::Arguments(_), _] = path { Some(call) } else { None }
}

/// The method call on the last node, and the method's name: `x.sum()` of `x`.
pub fn method_of<'a>(path: &[Node<'a>]) -> Option<(&'a ExprCall, &'a str)> {
    if let [.., Node::ExprCall(call), Node::ExprAttribute(ast), _] = path {
        Some((call, &ast.attr))
    } else {
        None
    }
}

pub fn above<'a>(path: &[Node<'a>], levels: usize) -> Option<Node<'a>> {
    path.iter().rev().nth(levels).copied()
}

pub fn range(path: &[Node<'_>]) -> TextRange {
    last(path).map(|node| node.range()).unwrap_or_default()
}

pub fn within(inner: impl Ranged, outer: impl Ranged) -> bool {
    outer.range().contains_range(inner.range())
}

/// Index in `path` of the function, lambda, class, comprehension or module whose code holds the last node.
///
/// Decorators, default values, annotations and base classes run in the scope around, and so does the first iterable of a
/// comprehension: `[f(x) for x in g()]` calls `g` outside.
pub fn scope(path: &[Node<'_>]) -> usize {
    (0..path.len().saturating_sub(1)).rev().find(|&at| opens_scope(path, at)).unwrap_or(0)
}

/// The scopes around the last node (see [`scope`]), from the innermost to the module.
pub fn scopes(path: &[Node<'_>]) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(scope(path)), |&at| (at > 0).then(|| scope(&path[..=at])))
}

fn opens_scope(path: &[Node<'_>], at: usize) -> bool {
    let below = path[at + 1];
    match path[at] {
        Node::ModModule(_) => true,
        Node::StmtFunctionDef(_) | Node::StmtClassDef(_) => below.is_statement(),
        Node::ExprLambda(lambda) => within(below, &*lambda.body),
        node => {
            generators(node).is_some_and(|loops| !loops.iter().take(1).any(|l| within(range(path), &l.iter)))
        }
    }
}

/// `None` for other nodes than comprehensions and generator expressions.
fn generators<'a>(node: Node<'a>) -> Option<&'a [Comprehension]> {
    match node {
        Node::ExprListComp(ast) => Some(&ast.generators),
        Node::ExprSetComp(ast) => Some(&ast.generators),
        Node::ExprDictComp(ast) => Some(&ast.generators),
        Node::ExprGenerator(ast) => Some(&ast.generators),
        _ => None,
    }
}

pub fn is_loop(node: Node<'_>) -> bool {
    matches!(node, Node::StmtFor(_) | Node::StmtWhile(_))
}

pub fn is_comprehension(node: Node<'_>) -> bool {
    generators(node).is_some()
}

/// Index of the innermost function, lambda or module around the last node, past comprehensions and classes.
pub fn function_scope(path: &[Node<'_>]) -> usize {
    let is_function =
        |&at: &usize| at == 0 || matches!(path[at], Node::StmtFunctionDef(_) | Node::ExprLambda(_));
    scopes(path).find(is_function).unwrap_or(0)
}

pub fn function_around<'p, 'a>(path: &'p [Node<'a>]) -> &'p [Node<'a>] {
    &path[..=function_scope(path)]
}

/// Empty for a lambda or the module.
pub fn function_name<'a>(path: &[Node<'a>]) -> &'a str {
    function(function_around(path)).map_or("", |ast| ast.name.as_str())
}

/// The path of the innermost class around the last node, functions in between allowed.
pub fn class_around<'p, 'a>(path: &'p [Node<'a>]) -> Option<&'p [Node<'a>]> {
    path.iter().rposition(|node| matches!(node, Node::StmtClassDef(_))).map(|at| &path[..=at])
}

pub fn names<'a>(node: Node<'a>) -> Vec<&'a ExprName> {
    each(&[node], &mut |path| last(path)?.expr_name())
}

/// The calls in a simple statement or a compound one's header, in source order.
pub fn own_calls(stmt: &Stmt) -> Vec<&ExprCall> {
    let mut found = Vec::new();
    walk(&[Node::from(stmt)], &mut |path| {
        found.extend(call(path));
        path.len() == 1 || !last(path).is_some_and(|node| node.is_statement())
    });
    found
}

/// Index of the statement that directly holds the last node.
pub fn statement(path: &[Node<'_>]) -> Option<usize> {
    path.iter().rposition(|node| node.is_statement())
}

pub fn block<'a>(path: &[Node<'a>], at: usize) -> &'a [Stmt] {
    let stmt = path[at].range();
    // Only a block's own statements lie in its span.
    let holds = |body: &&'a [Stmt]| match body {
        [] => false,
        [first, ..] => {
            first.start() <= stmt.start() && body.last().is_some_and(|last| stmt.end() <= last.end())
        }
    };
    at.checked_sub(1).and_then(|above| bodies(path[above]).into_iter().find(holds)).unwrap_or_default()
}

/// The block that holds the statement around the last node, and the statement's place in it.
pub fn place<'a>(path: &[Node<'a>]) -> Option<(&'a [Stmt], usize)> {
    let at = statement(path)?;
    let block = block(path, at);
    Some((block, block.iter().position(|stmt| stmt.range() == path[at].range())?))
}

pub fn bodies(node: Node<'_>) -> Vec<&[Stmt]> {
    match node {
        Node::ModModule(ast) => vec![&ast.body],
        Node::StmtFunctionDef(ast) => vec![&ast.body],
        Node::StmtClassDef(ast) => vec![&ast.body],
        Node::StmtFor(ast) => vec![&ast.body, &ast.orelse],
        Node::StmtWhile(ast) => vec![&ast.body, &ast.orelse],
        Node::StmtIf(ast) => vec![&ast.body],
        Node::ElifElseClause(ast) => vec![&ast.body],
        Node::StmtWith(ast) => vec![&ast.body],
        Node::StmtTry(ast) => vec![&ast.body, &ast.orelse, &ast.finalbody],
        Node::ExceptHandlerExceptHandler(ast) => vec![&ast.body],
        Node::MatchCase(ast) => vec![&ast.body],
        _ => Vec::new(),
    }
}

/// The dotted text of a callee: `torch.cuda.synchronize`, `self.meters[].update`, `get_logger().info`, `''.join`.
pub fn dotted(expr: &Expr) -> String {
    match expr {
        Expr::Name(name) => name.id.to_string(),
        Expr::Attribute(attribute) => format!("{}.{}", dotted(&attribute.value), attribute.attr),
        Expr::Call(call) => format!("{}()", dotted(&call.func)),
        Expr::Subscript(subscript) => format!("{}[]", dotted(&subscript.value)),
        Expr::StringLiteral(_) | Expr::FString(_) => "''".to_owned(),
        Expr::Await(ast) => dotted(&ast.value),
        _ => "?".to_owned(),
    }
}

/// (all before the last name, the last name).
pub fn split_callee(dotted: &str) -> (&str, &str) {
    dotted.rsplit_once('.').unwrap_or(("", dotted))
}

/// Either may be empty.
pub fn joined([before, name]: [&str; 2]) -> String {
    if before.is_empty() || name.is_empty() { [before, name].concat() } else { format!("{before}.{name}") }
}

/// The name that an import binds.
pub fn called(alias: &Alias) -> &str {
    alias.asname.as_ref().unwrap_or(&alias.name).as_str()
}

/// `np` of `np.array().sum`.
pub fn root(dotted: &str) -> &str {
    dotted.split(['.', '(', '[']).next().unwrap_or("")
}

/// `item` of `loss.mean().item`; empty where there is none.
pub fn name(callee: &Expr) -> &str {
    match callee {
        Expr::Name(ast) => &ast.id,
        Expr::Attribute(ast) => &ast.attr,
        Expr::Await(ast) => name(&ast.value),
        _ => "",
    }
}

/// Whether nothing uses the value of the expression at the end of a path: it is a statement, alone or in a
/// list comprehension, or is assigned to `_`.
pub fn is_dropped(path: &[Node<'_>]) -> bool {
    let [.., parent, node] = path else { return false };
    let above = &path[..path.len() - 1];
    match parent {
        Node::StmtExpr(_) => true,
        Node::StmtAssign(ast) => ast.targets.iter().all(|target| name(target) == "_"),
        Node::ExprIf(ast) => !within(*node, &*ast.test) && is_dropped(above),
        Node::ExprBoolOp(ast) => {
            ast.values.last().is_some_and(|last| within(*node, last)) && is_dropped(above)
        }
        Node::ExprAwait(_) | Node::ExprListComp(_) => is_dropped(above),
        _ => false,
    }
}

pub fn receiver(call: &ExprCall) -> Option<&Expr> {
    call.func.as_attribute_expr().map(|ast| &*ast.value)
}

pub fn is_property(decorator: &Decorator) -> bool {
    dotted(&decorator.expression).ends_with("property")
}

/// Whether a call works along a dimension, given at `position` or by name: `x.mean(0)`, `np.sum(x, axis=1)`.
pub fn along(call: &ExprCall, position: usize) -> bool {
    let mut told =
        ["dim", "axis"].iter().filter_map(|name| call.arguments.find_argument_value(name, position));
    told.any(|at| !at.is_none_literal_expr())
}

/// Positional arguments, then keyword arguments.
pub fn given(call: &ExprCall) -> impl Iterator<Item = &Expr> + Clone {
    call.arguments.args.iter().chain(call.arguments.keywords.iter().map(|keyword| &keyword.value))
}

/// The keyword argument that holds the range `at`.
pub fn keyword(call: &ExprCall, at: TextRange) -> Option<&Keyword> {
    call.arguments.keywords.iter().find(|keyword| within(at, &keyword.value))
}

/// `f(*args)` or `f(**kwargs)`.
pub fn unpacks(call: &ExprCall) -> bool {
    call.arguments.args.iter().any(Expr::is_starred_expr)
        || call.arguments.keywords.iter().any(|keyword| keyword.arg.is_none())
}

pub fn flag(call: &ExprCall, name: &str) -> bool {
    call.arguments.find_keyword(name).is_some_and(|keyword| is_const_true(&keyword.value))
}

pub fn string(expr: &Expr) -> Option<&str> {
    expr.as_string_literal_expr().map(|literal| literal.value.to_str())
}

/// A literal, perhaps with a sign.
pub fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::UnaryOp(ast) => ast.operand.is_number_literal_expr(),
        expr => expr.is_number_literal_expr(),
    }
}

pub fn int(expr: &Expr) -> Option<i64> {
    if let Number::Int(int) = &expr.as_number_literal_expr()?.value { int.as_i64() } else { None }
}

/// The bounds and steps of the slices in an index.
pub fn bounds(index: &Expr) -> impl Iterator<Item = &Expr> {
    let slices = elements(index).iter().filter_map(Expr::as_slice_expr);
    slices.flat_map(|slice| [&slice.lower, &slice.upper, &slice.step]).flatten().map(|bound| &**bound)
}

/// The elements of a tuple; any other expression alone.
pub fn elements(expr: &Expr) -> &[Expr] {
    expr.as_tuple_expr().map_or(std::slice::from_ref(expr), |tuple| &tuple.elts)
}

/// The elements of a list or tuple; any other expression alone.
pub fn listed(expr: &Expr) -> &[Expr] {
    expr.as_list_expr().map_or_else(|| elements(expr), |list| &list.elts)
}

/// Whether the two ranges share a character or touch.
pub fn overlaps(a: TextRange, b: TextRange) -> bool {
    a.start() <= b.end() && b.start() <= a.end()
}
