//! Conditions that make a read rare (S18), around it or around what leads to it.

use super::callers::MAX_CALLERS;
use super::reader::Case;
use crate::python::parse::{Node, Source, nodes};
use crate::verdict::source::flow::conditions;
use crate::verdict::source::locate::line;
use crate::vocabulary::{Evidence, RuleId};
use ruff_python_ast::StmtIf;
use ruff_text_size::{Ranged, TextSize};

impl Case<'_, '_> {
    /// S18: the condition, around the line or a call on the way to it, that lets the line run only now and
    /// then, or only in one process; and whether it holds every so many iterations of the line's loop.
    pub(super) fn amortised(self) -> Option<(Evidence, bool)> {
        if let Some(ast) = conditions::rare(self.here.path) {
            let turns = conditions::takes_turns(&ast.test) && !loops(self.here.path, ast.start());
            return Some((seldom(self.here.file(), ast, "only runs"), turns));
        }
        let mut outer = (!loops(self.here.path, TextSize::default())).then_some(0);
        for _ in 0..MAX_CALLERS {
            let caller = self.site.caller(outer?, "")?;
            let call = line::statement_at(&caller.file, caller.frame)?;
            if let Some(ast) = conditions::under(&call, conditions::takes_turns) {
                let turns = !loops(&call, ast.start());
                return turns.then(|| (seldom(&caller.file, ast, "is only called"), true));
            }
            outer = (!loops(&call, TextSize::default())).then_some(caller.at);
        }
        None
    }
}

/// Whether a loop of the function starts after `from` and is around the last node.
fn loops(path: &[Node<'_>], from: TextSize) -> bool {
    let own = path[nodes::function_scope(path)..].iter();
    own.rev().any(|node| nodes::is_loop(*node) && node.start() > from)
}

fn seldom(file: &Source, ast: &StmtIf, verb: &str) -> Evidence {
    let line = file.line_of(ast.start());
    Evidence::new(RuleId::S18, format!("{verb} under `if {}` (line {line})", file.text(&*ast.test)))
}
