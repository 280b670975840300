//! Walking the syntax tree with ancestors, and small questions about nodes.

use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, TraversalSignal, walk_node};
use ruff_python_ast::{AnyNodeRef, Arguments, Expr, ExprCall, Stmt};
use ruff_text_size::{Ranged, TextRange};

/// A node of the syntax tree.
pub type Node<'a> = AnyNodeRef<'a>;

/// A node with its ancestors: the module first, the node itself last.
pub type Path<'a> = Vec<Node<'a>>;

/// Calls `visit` with the path of every node at and below the last node of `path`, in source order; `visit` answers whether to
/// go below the node. Cost: the nodes visited.
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

/// Paths of all nodes at and below the last node of `path` that `wanted` picks.
pub fn find<'a>(path: &[Node<'a>], wanted: &mut dyn FnMut(&[Node<'a>]) -> bool) -> Vec<Path<'a>> {
    let mut found = Vec::new();
    walk(path, &mut |path| {
        if wanted(path) {
            found.push(path.to_vec());
        }
        true
    });
    found
}

/// The last node of a path. A path is never empty; the module stands in where one would be.
pub fn last<'a>(path: &[Node<'a>]) -> Option<Node<'a>> {
    path.last().copied()
}

/// Whether a node lies inside another's range.
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

fn opens_scope(path: &[Node<'_>], at: usize) -> bool {
    let below = path[at + 1];
    match path[at] {
        Node::ModModule(_) => true,
        Node::StmtFunctionDef(_) | Node::StmtClassDef(_) => below.is_statement(),
        Node::ExprLambda(lambda) => within(below, &*lambda.body),
        Node::ExprListComp(ast) => !first_iterable(path, at, &ast.generators),
        Node::ExprSetComp(ast) => !first_iterable(path, at, &ast.generators),
        Node::ExprDictComp(ast) => !first_iterable(path, at, &ast.generators),
        Node::ExprGenerator(ast) => !first_iterable(path, at, &ast.generators),
        _ => false,
    }
}

fn first_iterable(path: &[Node<'_>], at: usize, generators: &[ruff_python_ast::Comprehension]) -> bool {
    let Some(last) = path.last() else { return false };
    generators.first().is_some_and(|first| at + 1 < path.len() && within(last, &first.iter))
}

/// Whether the node is a comprehension or generator expression.
pub fn is_comprehension(node: Node<'_>) -> bool {
    matches!(
        node,
        Node::ExprListComp(_) | Node::ExprSetComp(_) | Node::ExprDictComp(_) | Node::ExprGenerator(_)
    )
}

/// Index of the innermost function, lambda or module around the last node: comprehensions and classes are passed over.
pub fn function_scope(path: &[Node<'_>]) -> usize {
    let mut end = path.len();
    loop {
        let at = scope(&path[..end]);
        if at == 0 || matches!(path[at], Node::StmtFunctionDef(_) | Node::ExprLambda(_)) {
            return at;
        }
        end = at + 1;
    }
}

/// Index of the innermost class around the last node, functions in between allowed.
pub fn class_scope(path: &[Node<'_>]) -> Option<usize> {
    path.iter().rposition(|node| matches!(node, Node::StmtClassDef(_)))
}

/// Index of the statement that directly holds the last node.
pub fn statement(path: &[Node<'_>]) -> Option<usize> {
    path.iter().rposition(|node| node.is_statement())
}

/// The statements of the block that holds `path[at]`, a statement.
pub fn block<'a>(path: &[Node<'a>], at: usize) -> &'a [Stmt] {
    let stmt = path[at].range();
    let holds = |body: &&'a [Stmt]| body.iter().any(|s| s.range() == stmt);
    at.checked_sub(1).and_then(|above| bodies(path[above]).into_iter().find(holds)).unwrap_or_default()
}

/// The blocks that a node holds directly: body, else, finally.
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

/// Splits a dotted callee into what stands before the last name, and the last name.
pub fn split_callee(dotted: &str) -> (&str, &str) {
    dotted.rsplit_once('.').unwrap_or(("", dotted))
}

/// The value of `name=…` or of the positional argument at `position`.
pub fn argument<'a>(arguments: &'a Arguments, name: &str, position: usize) -> Option<&'a Expr> {
    arguments.find_argument_value(name, position)
}

/// Whether the call passes `name=True`.
pub fn flag(call: &ExprCall, name: &str) -> bool {
    call.arguments
        .find_keyword(name)
        .is_some_and(|keyword| matches!(&keyword.value, Expr::BooleanLiteral(ast) if ast.value))
}

/// The text of a string literal.
pub fn string(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::StringLiteral(literal) => Some(literal.value.to_str()),
        _ => None,
    }
}

/// Whether the two ranges share a character or touch.
pub fn overlaps(a: TextRange, b: TextRange) -> bool {
    a.start() <= b.end() && b.start() <= a.end()
}
