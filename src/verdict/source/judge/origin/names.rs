//! Names: the assignments that reach a read, and what each gives.

use super::search::{Answer, OnHost, Parameter, Scene, Sent, all};
use crate::python::facts::{self, Fact};
use crate::python::parse::{Given, Node, Path, nodes, scope};
use crate::verdict::source::flow::{Step, Steps};
use crate::verdict::source::infer::changes;
use ruff_python_ast::{Expr, ExprCall, ExprName};
use ruff_text_size::Ranged;

impl<'a> Scene<'_, 'a> {
    /// All that the assignments which reach this read give the name.
    pub(super) fn name(self, name: &'a ExprName, steps: Steps) -> Option<OnHost> {
        let owner = scope::owner(self.here.path, &name.id);
        let occurrences = scope::occurrences(&owner, &name.id);
        // Another name of the same tensor or list may change it too.
        let aliases = occurrences.iter().filter_map(|one| alias(&one.path));
        let renamed = aliases.flat_map(|alias| scope::occurrences(&owner, &alias.id));
        let spoils = |path: &Path<'a>| changes(path) && added(path).is_none() && !self.on_host(path);
        if occurrences.iter().any(|one| spoils(&one.path) || fills(&one.path) == Some(None))
            || renamed.into_iter().any(|one| changes(&one.path) || fills(&one.path).is_some())
        {
            return None;
        }
        // A parameter's path is the function itself.
        let given =
            scope::reaching(self.here.path, name).into_iter().map(|store| match store.len() == owner.len() {
                true => self.parameter(&owner, &name.id, steps.clone()),
                false => self.bound(&store, steps.clone()),
            });
        let put = |value: &'a Expr, path: &Path<'a>| self.at(path).find(value, Vec::new());
        let appended = occurrences.iter().filter_map(|one| Some(put(fills(&one.path)??, &one.path)));
        let sums = occurrences
            .iter()
            .filter_map(|one| Some(put(added(&one.path)?, &one.path).map(OnHost::computed)));
        all(given.chain(appended).chain(sums))
    }

    /// What the target at the end of a path is given, through the tuples that it is unpacked from.
    pub(super) fn bound(self, target: &Path<'a>, mut steps: Steps) -> Option<OnHost> {
        let mut at = target.len() - 1;
        let place = loop {
            let above = *target.get(at.checked_sub(1)?)?;
            let elements = match above {
                Node::ExprTuple(ast) => &ast.elts,
                Node::ExprList(ast) => &ast.elts,
                _ => break above,
            };
            if elements.iter().any(Expr::is_starred_expr) {
                return None;
            }
            let own = target[at].range();
            steps.push(Step::Index(elements.iter().position(|element| element.range() == own)?));
            at -= 1;
        };
        let (value, step) = match place {
            Node::StmtAssign(ast) => (&*ast.value, None),
            Node::StmtAnnAssign(ast) => (ast.value.as_deref()?, None),
            Node::ExprNamed(ast) => (&*ast.value, None),
            Node::StmtFor(ast) if !ast.is_async => (&*ast.iter, Some(Step::Any)),
            Node::Comprehension(ast) if !ast.is_async => (&ast.iter, Some(Step::Any)),
            _ => return None,
        };
        steps.extend(step);
        self.at(target).find(value, steps)
    }

    /// What the caller passes, else the default value.
    fn parameter(self, owner: &Path<'a>, name: &str, steps: Steps) -> Option<OnHost> {
        let function = nodes::function(owner)?;
        if nodes::range(owner) != self.function {
            // A setting of an object: `def __init__(self, size=2 ** 20, until=None)`.
            let default = scope::parameter(owner, name)?.default()?;
            let host = default.is_literal_expr() || self.is_host(default);
            return (function.name.as_str() == "__init__" && host).then(OnHost::default);
        }
        let class = match owner[..] {
            [.., Node::StmtClassDef(class), _] => Some(class.name.as_str()),
            _ => None,
        };
        if class.is_some() && matches!(name, "self" | "cls") {
            return None;
        }
        match (self.outside)(&Parameter { function, class, name, steps }) {
            Answer::OnHost(known) => Some(known),
            Answer::Default => {
                let default = scope::parameter(owner, name)?.default()?;
                default.is_literal_expr().then(OnHost::default)
            }
            Answer::Unknown => None,
        }
    }

    pub(super) fn place(self, call: &ExprCall) -> Sent {
        let own = self.search.site.frames.first().map(|frame| frame.file.as_str());
        let file = (own != Some(self.recorded)).then(|| crate::text::path_end(self.recorded, 1).to_owned());
        Sent { line: self.here.file().line_of(call.start()), file }
    }

    /// Whether an occurrence changes a tensor of the host, by all assignments that it sees: what is put there
    /// is the host's as well, whatever is uploaded of it later.
    fn on_host(self, path: &Path<'a>) -> bool {
        let Some(Node::ExprName(name)) = nodes::last(path) else { return false };
        let given = scope::reaching(path, name);
        let host = |store: &Path<'a>| match scope::given(store) {
            Given::Value(value) => self.at(store).is_host(value),
            _ => false,
        };
        !given.is_empty() && given.iter().all(host)
    }
}

/// `other` of `other = name`.
fn alias<'a>(path: &Path<'a>) -> Option<&'a ExprName> {
    let [.., Node::StmtAssign(ast), _] = path[..] else { return None };
    let [Expr::Name(name)] = ast.targets.as_slice() else { return None };
    (ast.value.range() == nodes::range(path)).then_some(name)
}

/// What is added to a name, or taken from it, in place: `steps += 1`.
fn added<'a>(path: &Path<'a>) -> Option<&'a Expr> {
    match nodes::above(path, 1) {
        Some(Node::StmtAugAssign(ast)) if changes(path) => Some(&ast.value),
        _ => None,
    }
}

/// What `xs.append(v)` puts into the container; `Some(None)` where that is unknown.
fn fills<'a>(path: &Path<'a>) -> Option<Option<&'a Expr>> {
    match nodes::method_of(path)? {
        (call, "append") => Some(call.arguments.args.first()),
        (_, method) => (method == "update" || facts::name(method).is(Fact::Put)).then_some(None),
    }
}
