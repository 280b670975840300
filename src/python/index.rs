//! Where each name of a file is bound and read. One walk over the file answers for all names.
//!
//! Definition: a name means the variable of the innermost scope around it that binds the name, else of the
//! module. A function, lambda, class or comprehension binds its parameters and what it assigns, except what
//! it declares `global` or `nonlocal`.
//!
//! ```text
//! total = 0                module: total ── store
//! def step(x):             step: x ── parameter
//!     global total
//!     total = total + x    module: total ── read, store (closure); step: x ── read
//! ```
//! Cost: one walk over the file, and a look at the scopes around each name.

use super::parse::scope::{Occurrence, Reach, binding, declared, occurrence, owners, parameter, seen};
use super::parse::{Node, Path, nodes};
use ruff_python_ast::ExprName;
use ruff_text_size::Ranged;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::OnceCell;

type Scope = usize;

pub struct Index<'a> {
    module: Node<'a>,
    bound: FxHashMap<Scope, FxHashSet<&'a str>>,
    /// Names that a scope declares `global` or `nonlocal`.
    foreign: FxHashMap<Scope, FxHashSet<&'a str>>,
    names: FxHashMap<Scope, FxHashMap<&'a str, Name<'a>>>,
}

#[derive(Default)]
struct Name<'a> {
    /// In source order.
    all: Vec<Occurrence<'a>>,
    reach: OnceCell<Reach>,
}

/// Limits on the assignments and occurrences of one name: only generated code has more.
const MOST_STORES: usize = 256;
const MOST_OCCURRENCES: usize = 2_000;
/// Nodes on the paths to all names, 64 MiB. A file of 100,000 lines has fewer; a larger file yields no names.
const MOST_NODES: usize = 4 << 20;

fn key(node: Node<'_>) -> Scope {
    node.as_ptr().addr().get()
}

impl<'a> Index<'a> {
    pub fn new(module: Node<'a>) -> Self {
        let mut index = Self {
            module,
            bound: FxHashMap::default(),
            foreign: FxHashMap::default(),
            names: FxHashMap::default(),
        };
        let mut found: Vec<(Path<'a>, &'a str)> = Vec::new();
        let mut room = Some(MOST_NODES);
        nodes::walk(&[module], &mut |path| {
            index.enter(path);
            let read = nodes::last(path).and_then(|node| node.expr_name()).filter(|ast| ast.ctx.is_load());
            if let Some(name) = binding(path).or(read.map(|ast| ast.id.as_str())) {
                room = room.and_then(|room| room.checked_sub(path.len()));
                match room {
                    Some(_) => found.push((path.to_vec(), name)),
                    None => found = Vec::new(),
                }
            }
            room.is_some()
        });
        for (path, name) in found {
            let owner = index.owner(&path, name);
            let one = occurrence(path, owner, name);
            let owned = index.names.entry(key(one.path[owner])).or_default();
            owned.entry(name).or_default().all.push(one);
        }
        index
    }

    fn enter(&mut self, path: &[Node<'a>]) {
        let Some(&node) = path.last() else { return };
        let parameters = match node {
            Node::StmtFunctionDef(ast) => Some(&*ast.parameters),
            Node::ExprLambda(ast) => ast.parameters.as_deref(),
            _ => None,
        };
        let names = parameters.into_iter().flat_map(|all| all.iter().map(|one| one.name().as_str()));
        self.bound.entry(key(node)).or_default().extend(names);
        if let Some(name) = binding(path) {
            for at in owners(path) {
                self.bound.entry(key(path[at])).or_default().insert(name);
            }
        }
        let declared = declared(node);
        if !declared.is_empty() {
            for at in owners(path) {
                let foreign = self.foreign.entry(key(path[at])).or_default();
                foreign.extend(declared.iter().map(|name| name.as_str()));
            }
        }
    }

    /// Index in `path` of the scope that owns `name`, as seen from the last node.
    pub fn owner(&self, path: &[Node<'a>], name: &str) -> usize {
        let has = |sets: &FxHashMap<Scope, FxHashSet<&str>>, at: usize| {
            sets.get(&key(path[at])).is_some_and(|names| names.contains(name))
        };
        let is_parameter = |at: usize| parameter(&path[..=at], name).is_some();
        let binds = |at: usize| has(&self.bound, at) && (!has(&self.foreign, at) || is_parameter(at));
        nodes::scopes(path).find(|&at| at == 0 || binds(at)).unwrap_or(0)
    }

    /// All occurrences, in source order, of the name meant at the end of `path`, and the path of its scope.
    pub fn mentions<'p>(
        &'p self,
        path: &'p [Node<'a>],
        name: &str,
    ) -> (&'p [Node<'a>], &'p [Occurrence<'a>]) {
        let owner = self.owner(path, name);
        let scope = path.get(owner).copied().unwrap_or(self.module);
        let all = self.names.get(&key(scope)).and_then(|owned| owned.get(name));
        (&path[..=owner], all.map_or(&[], |name| &name.all))
    }

    /// The assignments that a read of the name sees, or the function whose parameter it sees. `None`: too
    /// many.
    ///
    /// Cost: the occurrences of the name once, then its assignments for each read.
    pub fn reaching<'p>(&'p self, path: &'p [Node<'a>], name: &ExprName) -> Option<Vec<&'p [Node<'a>]>> {
        let owner = self.owner(path, &name.id);
        let (scope, owner) = (path.get(owner).copied().unwrap_or(self.module), &path[..=owner]);
        let Some(known) = self.names.get(&key(scope)).and_then(|owned| owned.get(name.id.as_str())) else {
            return Some(Vec::new());
        };
        let stores = known.all.iter().filter(|one| one.store).count();
        if stores > MOST_STORES || known.all.len() > MOST_OCCURRENCES {
            return None;
        }
        let at = known.all.partition_point(|one| nodes::range(&one.path).start() < name.start());
        let Some(read) = known.all.get(at).filter(|one| one.load) else { return Some(Vec::new()) };
        let reach = known.reach.get_or_init(|| Reach::new(owner, &known.all, None));
        Some(seen(reach, owner, &name.id, &known.all, read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::parse::{Source, scope};

    const PROGRAM: &str = "\
import torch as t
total, rows = 0, []
def step(x, n=3):
    global total
    total = total + x
    rows.append([y for y in x if (last := y) > n])
    def inner():
        nonlocal_free = x
        return nonlocal_free, last, total
    return inner, lambda n: n + total
class Net:
    width = total
    def forward(self, total):
        return self.width + total
for i, total in enumerate(rows):
    rows += [i]
";

    #[test]
    fn an_index_says_what_walks_say() {
        let file = Source::parse(PROGRAM.into()).expect("Python");
        let index = Index::new(file.module());
        let mut names = 0;
        for path in
            nodes::find(&[file.module()], &mut |path| matches!(nodes::last(path), Some(Node::ExprName(_))))
        {
            let Some(Node::ExprName(ast)) = nodes::last(&path) else { continue };
            let walked = scope::owner(&path, &ast.id);
            let (owner, mentions) = index.mentions(&path, &ast.id);
            assert_eq!(nodes::range(owner), nodes::range(&walked), "{}", ast.id);
            let all = scope::occurrences(&walked, &ast.id);
            let said = |all: &[Occurrence<'_>]| -> Vec<_> {
                all.iter().map(|one| (nodes::range(&one.path), one.store, one.load, one.closure)).collect()
            };
            assert_eq!(said(mentions), said(&all), "{}", ast.id);
            names += 1;
        }
        assert!(names >= 30, "{names} names");
    }
}
