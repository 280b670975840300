//! Frequency of lines, by their file alone.

use crate::model::lint::Heat;
use crate::python::facts::{self, Fact};
use crate::python::parse::{Node, Source, nodes};
use rustc_hash::{FxHashMap, FxHashSet};

/// The functions of a file that loops or steps call, directly or through others.
pub struct Heats<'a> {
    called: FxHashSet<&'a str>,
}

impl<'a> Heats<'a> {
    /// One walk over the file. Functions are told apart by name.
    pub fn of(file: &'a Source) -> Self {
        let mut calls: FxHashMap<&str, Vec<&str>> = FxHashMap::default();
        let mut hot: Vec<&str> = Vec::new();
        nodes::walk(&[file.module()], &mut |path| {
            let callee = nodes::callee(path);
            if !callee.is_empty() {
                let caller = nodes::function_name(path);
                match is_repeated(path) || is_step(caller) {
                    true => hot.push(callee),
                    false => calls.entry(caller).or_default().push(callee),
                }
            }
            true
        });
        let mut called = FxHashSet::default();
        while let Some(function) = hot.pop() {
            if called.insert(function) {
                hot.extend(calls.remove(function).unwrap_or_default());
            }
        }
        Self { called }
    }

    pub fn of_path(&self, path: &[Node<'_>]) -> Heat {
        let function = nodes::function_name(path);
        match function {
            _ if is_repeated(path) => Heat::Loop,
            _ if is_step(function) => Heat::Step,
            _ if self.called.contains(function) => Heat::Called,
            _ => Heat::Once,
        }
    }
}

/// Whether a loop or a comprehension of its function repeats the last node. An iterable is evaluated once.
fn is_repeated(path: &[Node<'_>]) -> bool {
    let within = |at: usize| path.get(at + 1).copied();
    (nodes::function_scope(path)..path.len()).any(|at| match path[at] {
        Node::StmtFor(ast) => within(at).is_some_and(|below| {
            below.is_statement() && !ast.orelse.iter().any(|own| nodes::within(below, own))
        }),
        Node::StmtWhile(ast) => {
            within(at).is_some_and(|below| !ast.orelse.iter().any(|own| nodes::within(below, own)))
        }
        node if nodes::is_comprehension(node) => match (within(at), path.get(at + 2)) {
            (Some(Node::Comprehension(one)), Some(below)) => !nodes::within(*below, &one.iter),
            (below, _) => below.is_some(),
        },
        _ => false,
    })
}

/// Whether a framework calls a method of that name for each batch.
pub fn is_step(function: &str) -> bool {
    function == "forward"
        || function.ends_with("_step")
        || function == "step"
        || facts::name(function).is(Fact::Hook)
}
