//! Objects of the file's own classes: the class of a value, and where its attributes are read.

use crate::python::facts::{self, Fact};
use crate::python::parse::{Node, Path, Source, Valued, dotted, nodes, scope, split_callee};
use ruff_python_ast::{Expr, ExprContext, Stmt, StmtClassDef};
use std::cell::Cell;

/// Names and attributes looked up in a row for the class of one expression.
const MAX_STEPS: u8 = 4;
/// Walks over the file per traced value, after which classes are unknown.
const BUDGET: u32 = 100;

pub struct Objects<'a> {
    file: &'a Source,
    budget: Cell<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The object asked about, or another of its class.
    Ours,
    Theirs,
    Unclear,
}

impl<'a> Objects<'a> {
    pub fn new(file: &'a Source) -> Self {
        Self { file, budget: Cell::new(BUDGET) }
    }

    /// Path of the class in the file whose object `expr` names; `path` ends at or above it.
    ///
    /// Definition: `self` is of the class around; a call of a class gives its object; a name or an attribute
    /// is of the class that all its assignments agree on, or that its parameter's annotation names. All else
    /// is `None`.
    pub fn class_of(&self, expr: &'a Expr, path: &[Node<'a>]) -> Option<Path<'a>> {
        self.find_class(expr, path, 0)
    }

    fn find_class(&self, expr: &'a Expr, path: &[Node<'a>], steps: u8) -> Option<Path<'a>> {
        if steps > MAX_STEPS {
            return None;
        }
        match expr {
            Expr::Name(name) if matches!(name.id.as_str(), "self" | "cls") => {
                nodes::class_around(path).map(<[_]>::to_vec)
            }
            Expr::Name(name) => {
                let owner = scope::owner(path, &name.id);
                if let Some(parameter) = scope::parameter(&owner, &name.id) {
                    return self.class_named(split_callee(&dotted(parameter.annotation()?)).1);
                }
                self.agreed(self.bound(&owner, &name.id)?, steps)
            }
            Expr::Attribute(ast) => {
                let holder = self.find_class(&ast.value, path, steps + 1);
                let region = holder.unwrap_or_else(|| vec![self.file.module()]);
                self.agreed(self.assigned(&region, ast.attr.as_str()), steps)
            }
            Expr::Call(call) => match &*call.func {
                Expr::Name(name) => self.class_named(&name.id),
                Expr::Attribute(ast) if facts::name(&ast.attr).is(Fact::Own) => {
                    self.find_class(&ast.value, path, steps + 1)
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn agreed(&self, values: Vec<Valued<'a>>, steps: u8) -> Option<Path<'a>> {
        let told = values.into_iter().filter(|(value, _)| !value.is_none_literal_expr());
        let mut classes = told.map(|(value, place)| self.find_class(value, &place, steps + 1));
        let first = classes.next()??;
        classes.all(|class| class.is_some_and(|class| same(&class, &first))).then_some(first)
    }

    /// All values that the file gives to a name or an attribute; none where one is unknown.
    pub fn values_of(&self, expr: &'a Expr, path: &[Node<'a>]) -> Vec<Valued<'a>> {
        match expr {
            Expr::Name(name) => self.bound(&scope::owner(path, &name.id), &name.id).unwrap_or_default(),
            Expr::Attribute(ast) => {
                let holder = self.class_of(&ast.value, path).unwrap_or_else(|| vec![self.file.module()]);
                self.assigned(&holder, ast.attr.as_str())
            }
            _ => Vec::new(),
        }
    }

    /// False where the file gives it no value.
    pub fn is_always(&self, expr: &'a Expr, path: &[Node<'a>], is: impl Fn(&Expr) -> bool) -> bool {
        let values = self.values_of(expr, path);
        !values.is_empty() && values.iter().all(|(value, _)| is(value))
    }

    /// Whether all values that the file gives are dicts, as far as it tells of an attribute.
    pub fn is_dict(&self, expr: &'a Expr, path: &[Node<'a>]) -> bool {
        let values: Vec<Valued<'a>> = match expr {
            Expr::Attribute(ast) => {
                let holder = self.class_of(&ast.value, path);
                let stores = holder.map(|holder| stores(&holder, &ast.attr)).unwrap_or_default();
                stores.into_iter().filter_map(scope::value).collect()
            }
            _ => self.values_of(expr, path),
        };
        let told = || values.iter().filter(|(value, _)| !value.is_none_literal_expr());
        told().next().is_some() && told().all(|(value, _)| makes_dict(value))
    }

    /// `None` where the name is bound in another way too.
    fn bound(&self, owner: &[Node<'a>], name: &str) -> Option<Vec<Valued<'a>>> {
        self.spend()?;
        scope::stores(owner, name).map(scope::value).collect()
    }

    fn assigned(&self, region: &[Node<'a>], attribute: &str) -> Vec<Valued<'a>> {
        let values = || stores(region, attribute).into_iter().map(scope::value).collect();
        self.spend().and_then(|()| values()).unwrap_or_default()
    }

    pub fn class_named(&self, name: &str) -> Option<Path<'a>> {
        self.only_class(&|class| *class.name == *name)
    }

    fn only_class(&self, is: &dyn Fn(&StmtClassDef) -> bool) -> Option<Path<'a>> {
        self.spend()?;
        nodes::only(nodes::find(&[self.file.module()], &mut |path| nodes::class(path).is_some_and(is)))
    }

    fn spend(&self) -> Option<()> {
        self.budget.set(self.budget.get().checked_sub(1)?);
        Some(())
    }

    /// Whether the classes are the same, or one is derived from the other in the file.
    fn related(&self, a: &[Node<'a>], b: &[Node<'a>]) -> bool {
        same(a, b) || self.derived(a, b, 0) || self.derived(b, a, 0)
    }

    fn derived(&self, class: &[Node<'a>], base: &[Node<'a>], steps: u8) -> bool {
        let mut bases = self.bases(class);
        steps <= MAX_STEPS && bases.any(|one| same(&one, base) || self.derived(&one, base, steps + 1))
    }

    fn bases(&self, class: &[Node<'a>]) -> impl Iterator<Item = Path<'a>> {
        let bases = nodes::class(class).into_iter().flat_map(StmtClassDef::bases);
        bases.filter_map(|base| self.class_named(split_callee(&dotted(base)).1))
    }

    /// Its own method, else that of a base class in the file.
    pub fn method(&self, class: &[Node<'a>], name: &str) -> Option<Path<'a>> {
        own_method(class, name).or_else(|| self.bases(class).find_map(|base| own_method(&base, name)))
    }

    /// Whose member `base.…` at the end of `path` is, when asked about objects of `class` called `name` (the
    /// last name of `self.model.user` is `user`).
    pub fn whose(&self, base: &'a Expr, path: &[Node<'a>], class: Option<&Path<'a>>, name: &str) -> Whose {
        let called = dotted(base);
        let called = split_callee(&called).1;
        match (self.class_of(base, path), class) {
            (Some(theirs), Some(ours)) if self.related(&theirs, ours) => Whose::Ours,
            (Some(_), Some(_)) => Whose::Theirs,
            _ if called == name && !matches!(name, "self" | "cls" | "?") => Whose::Ours,
            (None, Some(ours)) if nodes::class(ours).is_some_and(|ours| is_named_after(called, ours)) => {
                Whose::Ours
            }
            _ => Whose::Unclear,
        }
    }
}

fn stores<'a>(region: &[Node<'a>], attribute: &str) -> Vec<Path<'a>> {
    let mut all = nodes::attributes(region, attribute);
    all.retain(|path| nodes::attribute(path).is_some_and(|ast| ast.ctx == ExprContext::Store));
    all
}

fn makes_dict(value: &Expr) -> bool {
    match value {
        Expr::Call(call) => {
            let name = nodes::name(&call.func);
            facts::name(name).is(Fact::Dict)
        }
        _ => value.is_dict_expr() || value.is_dict_comp_expr(),
    }
}

fn own_method<'a>(class: &[Node<'a>], name: &str) -> Option<Path<'a>> {
    let mut own = nodes::class(class)?.body.iter().filter_map(Stmt::as_function_def_stmt);
    Some([class, &[own.find(|ast| &*ast.name == name)?.into()]].concat())
}

fn same(a: &[Node<'_>], b: &[Node<'_>]) -> bool {
    nodes::range(a) == nodes::range(b)
}

/// `loss_meter` for a `LossMeter`.
fn is_named_after(name: &str, class: &StmtClassDef) -> bool {
    let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
    name.len() > 2 && plain(&class.name) == plain(name)
}
