//! Answers about a Python program do not depend on earlier questions.

use ruff_python_ast::Expr;
use std::fs;
use std::path::Path;
use sync_report::python::parse::{Node, Source, nodes};
use sync_report::python::place::Placements;

/// Expressions of a file, each with the path of the node that holds it.
fn expressions(file: &Source) -> Vec<(&Expr, nodes::Path<'_>)> {
    let mut all = Vec::new();
    nodes::walk(&[file.module()], &mut |path| {
        let parts: Vec<&Expr> = match nodes::last(path) {
            Some(Node::StmtAssign(ast)) => vec![&ast.value],
            Some(Node::StmtAugAssign(ast)) => vec![&ast.value, &ast.target],
            Some(Node::StmtReturn(ast)) => ast.value.as_deref().into_iter().collect(),
            Some(Node::ExprAttribute(ast)) => vec![&ast.value],
            Some(Node::ExprBinOp(ast)) => vec![&ast.left, &ast.right],
            Some(Node::Arguments(ast)) => ast.args.iter().collect(),
            _ => Vec::new(),
        };
        all.extend(parts.into_iter().map(|expr| (expr, path.to_vec())));
        true
    });
    all
}

/// Places of all expressions, asked from `from` on by `step`, which is coprime to their number.
fn asked(file: &Source, all: &[(&Expr, nodes::Path<'_>)], from: usize, step: usize) -> Vec<String> {
    let placements = Placements::new(file);
    let mut found = vec![String::new(); all.len()];
    for turn in 0..all.len() {
        let at = (from + turn * step) % all.len();
        found[at] = format!("{:?}", placements.find(all[at].0, &all[at].1));
    }
    found
}

#[test]
fn places_do_not_depend_on_what_was_asked_before() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/reading");
    let (mut programs, mut questions) = (0, 0);
    for entry in fs::read_dir(folder).expect("the fixtures") {
        let text = fs::read_to_string(entry.expect("a fixture").path()).expect("a fixture");
        // One file holds a hundred snippets, so its names have many meanings.
        let file = Source::parse(text.into_bytes()).expect("Python");
        let all = expressions(&file);
        let Some(most) = all.len().checked_sub(1).filter(|most| *most > 0) else { continue };
        let first = asked(&file, &all, 0, 1);
        // A step coprime to the number goes through all.
        let steps = (1..).filter(|step| gcd(*step, all.len()) == 1);
        for (turn, step) in [most].into_iter().chain(steps.skip(1).step_by(97).take(3)).enumerate() {
            let again = asked(&file, &all, most - turn, step);
            let other = (0..all.len()).find(|&at| first[at] != again[at]);
            let said = other.map(|at| (file.text(all[at].0), &first[at], &again[at]));
            assert_eq!(said, None);
        }
        programs += 1;
        questions += all.len();
    }
    assert!(programs > 5 && questions > 5_000, "{programs} programs, {questions} questions");
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
