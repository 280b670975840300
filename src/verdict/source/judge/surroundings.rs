//! What surrounds a read: other reads next to it (S17), and conditions that make it rare (S18); what comes before an upload (S22).

use super::callers::MAX_CALLERS;
use super::reader::Case;
use crate::text::shorten_end;
use crate::verdict::source::flow::conditions;
use crate::verdict::source::infer::libraries::JOINS;
use crate::verdict::source::infer::placement::{Here, is_filled};
use crate::verdict::source::locate::line;
use crate::verdict::source::mend::neighbours::{reads, run};
use crate::verdict::source::parse::scope::{self, Definition};
use crate::verdict::source::parse::{Node, Source, dotted, nodes, split_callee};
use crate::vocabulary::{Evidence, RuleId};
use ruff_python_ast::{Expr, StmtIf};
use ruff_text_size::{Ranged, TextSize};

/// S17: how many values are read one by one around the last node, in its statement and the neighbours in its block.
pub fn coalescable(here: Here<'_, '_>) -> Option<Evidence> {
    const REMEDY: &str = "one `torch.stack(...).tolist()` reads them in one wait";
    let calls = run(here.path).iter().flat_map(reads);
    let lines: Vec<u32> = calls.map(|call| here.file().line_of(call.start())).collect();
    let text = match (lines.iter().min()?, lines.iter().max()?, lines.len()) {
        (_, _, 1) if here.path.iter().any(|node| nodes::is_comprehension(*node)) => {
            format!("a comprehension reads the values one by one: {REMEDY}")
        }
        (_, _, 1) => return None,
        (first, last, n) if first == last => {
            format!("{n} values are read one by one on line {first}: {REMEDY}")
        }
        (first, last, n) => format!("{n} values are read one by one on lines {first} to {last}: {REMEDY}"),
    };
    Some(Evidence::new(RuleId::S17, text))
}

impl Case<'_, '_> {
    /// S18: the condition that lets the line run only now and then, or only in one process: around it, or around a call on the
    /// way to it; and whether it holds every so many turns of the loop that the line runs in.
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

/// Whether a loop of the function around the last node stands behind `from` and around the node.
fn loops(path: &[Node<'_>], from: TextSize) -> bool {
    let own = path[nodes::function_scope(path)..].iter();
    own.rev().any(|node| matches!(node, Node::StmtFor(_) | Node::StmtWhile(_)) && node.start() > from)
}

fn seldom(file: &Source, ast: &StmtIf, verb: &str) -> Evidence {
    let line = file.line_of(ast.start());
    Evidence::new(RuleId::S18, format!("{verb} under `if {}` (line {line})", file.text(&*ast.test)))
}

/// S22: what is moved to the GPU is filled or joined on the host right before, each time, and nothing reads it in between.
///
/// ```text
/// for views, _ in loader:
///     images = torch.cat(views)        54 MiB of fresh memory, which no loader has pinned
///     images = images.to(device)
/// ```
pub fn made<'a>(here: Here<'_, 'a>, moved: &'a Expr) -> Option<Evidence> {
    let made = match moved {
        Expr::Name(name) => {
            let [store] = &*scope::reaching(here.path, name) else { return None };
            let (value, place) = scope::value(store.clone())?;
            let from = nodes::range(&place).end();
            let loops = here.path.iter().filter(|node| matches!(node, Node::StmtFor(_) | Node::StmtWhile(_)));
            let reads = scope::reached(&scope::owner(here.path, &name.id), &name.id, &Definition::new(store));
            let mut between = reads.iter().map(|read| nodes::range(read).start());
            let used = between.any(|at| (from..name.start()).contains(&at));
            let (mut loops, anew) = (loops, |one: &Node<'_>| one.range().contains(from));
            Some(value).filter(|_| !used && loops.all(anew))?
        }
        made => made,
    };
    let callee = made.as_call_expr().map(|call| dotted(&call.func)).unwrap_or_default();
    let joins = matches!(split_callee(&callee), ("torch", name) if JOINS.has(name));
    let what = match made {
        _ if joins => {
            "joins its parts on the CPU, in fresh memory that is not pinned even where they are: move the parts with non_blocking=True, join them on the GPU"
        }
        _ if fills(made) => "fills it on the CPU: with device= there the CPU makes nothing",
        _ => return None,
    };
    let (text, line) = (here.text(made), here.file().line_of(made.start()));
    Some(Evidence::new(RuleId::S22, format!("`{}` on line {line} {what}", shorten_end(&text, LONGEST))))
}

/// Characters of an expression that are shown.
const LONGEST: usize = 60;

/// Whether a value is a tensor of no data, perhaps times a number.
fn fills(expr: &Expr) -> bool {
    match expr {
        Expr::BinOp(ast) => {
            let number = match &*ast.right {
                Expr::UnaryOp(sign) => &sign.operand,
                right => right,
            };
            number.is_number_literal_expr() && fills(&ast.left)
        }
        _ => is_filled(expr),
    }
}
