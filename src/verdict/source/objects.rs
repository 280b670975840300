//! Objects of the file's own classes: which class an expression's value is of, and where its attributes are read.

use super::file::Source;
use super::nodes::{self, Node, Path, dotted, last, split_callee};
use super::scope;
use ruff_python_ast::{Expr, ExprContext, ExprName, Stmt, StmtClassDef};
use ruff_text_size::Ranged;

/// Names and attributes looked up, one after the other, for the class of one expression.
const MAX_STEPS: u8 = 4;
/// Methods that give back the object that they are called on.
const SAME_OBJECT: &[&str] =
    &["to", "cuda", "cpu", "eval", "train", "half", "float", "bfloat16", "requires_grad_", "compile"];

/// Path of the class in the file whose object `expr` names; `path` ends at or above it.
///
/// Definition: `self` is of the class around; a call of a class gives an object of it; a name or an attribute is of the class
/// that all its assignments in the file agree on, or that its parameter's annotation names. Everything else: `None`.
pub fn class_of<'a>(file: &'a Source, expr: &'a Expr, path: &[Node<'a>]) -> Option<Path<'a>> {
    find_class(file, expr, path, 0)
}

fn find_class<'a>(file: &'a Source, expr: &'a Expr, path: &[Node<'a>], steps: u8) -> Option<Path<'a>> {
    if steps > MAX_STEPS {
        return None;
    }
    match expr {
        Expr::Name(name) if matches!(name.id.as_str(), "self" | "cls") => {
            nodes::class_scope(path).map(|at| path[..=at].to_vec())
        }
        Expr::Name(name) => of_name(file, name, path, steps),
        Expr::Attribute(ast) => {
            let holder = find_class(file, &ast.value, path, steps + 1);
            let region = holder.unwrap_or_else(|| vec![file.module()]);
            agreed(assigned(&region, ast.attr.as_str()), file, steps)
        }
        Expr::Call(call) => match &*call.func {
            Expr::Name(name) => class_named(file, &name.id),
            Expr::Attribute(ast) if SAME_OBJECT.contains(&ast.attr.as_str()) => {
                find_class(file, &ast.value, path, steps + 1)
            }
            _ => None,
        },
        _ => None,
    }
}

fn of_name<'a>(file: &'a Source, name: &'a ExprName, path: &[Node<'a>], steps: u8) -> Option<Path<'a>> {
    let owner = scope::owner(path, &name.id);
    if let Some(Node::StmtFunctionDef(function)) = last(&owner)
        && let Some(parameter) =
            function.parameters.iter().find(|one| one.name().as_str() == name.id.as_str())
    {
        return class_named(file, split_callee(&dotted(parameter.annotation()?)).1);
    }
    agreed(bound(&owner, &name.id)?, file, steps)
}

/// All values that a name is given; `None` where it is bound in another way too.
fn bound<'a>(owner: &[Node<'a>], name: &str) -> Option<Vec<(&'a Expr, Path<'a>)>> {
    let stores = scope::occurrences(owner, name).into_iter().filter(|occurrence| occurrence.store);
    let value = |store: scope::Occurrence<'a>| match scope::given(&store.path) {
        scope::Given::Value(value) => Some((value, store.path)),
        _ => None,
    };
    stores.map(value).collect()
}

/// All values that the file gives to a name or an attribute, with the places; none where one of them is not told.
pub fn values_of<'a>(file: &'a Source, expr: &'a Expr, path: &[Node<'a>]) -> Vec<(&'a Expr, Path<'a>)> {
    match expr {
        Expr::Name(name) => bound(&scope::owner(path, &name.id), &name.id).unwrap_or_default(),
        Expr::Attribute(ast) => {
            let holder = class_of(file, &ast.value, path).unwrap_or_else(|| vec![file.module()]);
            assigned(&holder, ast.attr.as_str())
        }
        _ => Vec::new(),
    }
}

/// The class that all values are of.
fn agreed<'a>(values: Vec<(&'a Expr, Path<'a>)>, file: &'a Source, steps: u8) -> Option<Path<'a>> {
    let mut classes = values
        .into_iter()
        .filter(|(value, _)| !value.is_none_literal_expr())
        .map(|(value, place)| find_class(file, value, &place, steps + 1));
    let first = classes.next()??;
    classes.all(|class| class.is_some_and(|class| same(&class, &first))).then_some(first)
}

/// What the attribute of that name is assigned in a region, with the places.
fn assigned<'a>(region: &[Node<'a>], attribute: &str) -> Vec<(&'a Expr, Path<'a>)> {
    let wanted = |path: &[Node<'a>]| {
        matches!(last(path), Some(Node::ExprAttribute(ast))
            if ast.ctx == ExprContext::Store && ast.attr.as_str() == attribute)
    };
    let stores = nodes::find(region, &mut |path| wanted(path));
    let value = |path: Path<'a>| match scope::given(&path) {
        scope::Given::Value(value) => Some((value, path)),
        _ => None,
    };
    stores.into_iter().filter_map(value).collect()
}

/// The only class of that name in the file.
fn class_named<'a>(file: &'a Source, name: &str) -> Option<Path<'a>> {
    let is =
        |path: &[Node<'a>]| matches!(last(path), Some(Node::StmtClassDef(ast)) if ast.name.as_str() == name);
    let mut found = nodes::find(&[file.module()], &mut |path| is(path));
    found.pop().filter(|_| found.is_empty())
}

fn definition<'a>(class: &Path<'a>) -> Option<&'a StmtClassDef> {
    match last(class)? {
        Node::StmtClassDef(ast) => Some(ast),
        _ => None,
    }
}

fn same(a: &Path<'_>, b: &Path<'_>) -> bool {
    last(a).map(|node| node.range()) == last(b).map(|node| node.range())
}

/// Whether an object of one class may be one of the other: the same, or one derived from the other in the file.
pub fn related<'a>(a: &Path<'a>, b: &Path<'a>, file: &'a Source) -> bool {
    same(a, b) || derived(a, b, file, 0) || derived(b, a, file, 0)
}

fn derived<'a>(class: &Path<'a>, base: &Path<'a>, file: &'a Source, steps: u8) -> bool {
    let mut bases = bases(class, file);
    steps <= MAX_STEPS && bases.any(|one| same(&one, base) || derived(&one, base, file, steps + 1))
}

fn bases<'a>(class: &Path<'a>, file: &'a Source) -> impl Iterator<Item = Path<'a>> {
    let arguments = definition(class).and_then(|ast| ast.arguments.as_deref());
    let bases = arguments.into_iter().flat_map(|arguments| arguments.args.iter());
    bases.filter_map(|base| class_named(file, split_callee(&dotted(base)).1))
}

/// The method that an object of the class answers with: its own, else that of a base class in the file.
pub fn method<'a>(class: &Path<'a>, name: &str, file: &'a Source) -> Option<Path<'a>> {
    let own = definition(class)?.body.iter().find_map(|stmt| match stmt {
        Stmt::FunctionDef(ast) if ast.name.as_str() == name => Some(Node::from(ast)),
        _ => None,
    });
    match own {
        Some(found) => Some([class.as_slice(), &[found]].concat()),
        None => bases(class, file).filter(|base| !same(base, class)).find_map(|base| {
            let own = definition(&base)?.body.iter().find_map(|stmt| match stmt {
                Stmt::FunctionDef(ast) if ast.name.as_str() == name => Some(Node::from(ast)),
                _ => None,
            })?;
            Some([base.as_slice(), &[own]].concat())
        }),
    }
}

/// Whose attribute a read is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Of the object asked about, or of another of its class.
    Ours,
    /// Of an object of another class.
    Theirs,
    /// Not told.
    Unclear,
}

/// Whose member `base.…` at the end of `path` is, when asked about objects of `class` that are called `name` (the last name of
/// `self.model.user` is `user`).
pub fn whose<'a>(
    file: &'a Source,
    base: &'a Expr,
    path: &[Node<'a>],
    class: Option<&Path<'a>>,
    name: &str,
) -> Whose {
    let called = dotted(base);
    let called = split_callee(&called).1;
    match (class_of(file, base, path), class) {
        (Some(theirs), Some(ours)) if related(&theirs, ours, file) => Whose::Ours,
        (Some(_), Some(_)) => Whose::Theirs,
        _ if called == name && !matches!(name, "self" | "cls" | "?") => Whose::Ours,
        (None, Some(ours)) if is_named_after(called, ours) => Whose::Ours,
        _ => Whose::Unclear,
    }
}

/// Whether a name is that of the class, other than by a letter or two: `loss_meter` for a `LossMeter`.
fn is_named_after(name: &str, class: &Path<'_>) -> bool {
    name.len() > 2 && definition(class).is_some_and(|ast| plain(&ast.name) == plain(name))
}

fn plain(name: &str) -> String {
    name.chars().filter(|c| *c != '_').map(|c| c.to_ascii_lowercase()).collect()
}
