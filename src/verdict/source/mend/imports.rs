//! Imports that nothing uses any more.

use super::delete::CLOCKS;
use crate::verdict::source::parse::{Node, Source, called, last, nodes};
use ruff_python_ast::Stmt;
use ruff_text_size::{TextRange, TextSize};

/// Lines of `after` with an import of one name that `before` uses and `after` does not, in order.
///
/// Only `from torch.cuda import synchronize`, `import time` and the like go: alone on its line, without a comment (it may say why it
/// is kept), at the top of a file that does not list what it exports. Other modules may be imported for what that does.
pub fn unused(before: &Source, after: &Source) -> Vec<TextRange> {
    let used = |file: &Source, name: &str| {
        nodes::any(&[file.module()], &mut |path| match last(path) {
            Some(Node::ExprName(ast)) => ast.id == name || ast.id == "__all__",
            Some(Node::StringLiteral(ast)) => &*ast.value == name,
            _ => false,
        })
    };
    let Node::ModModule(module) = after.module() else { return Vec::new() };
    let single = module.body.iter().filter_map(|stmt| match stmt {
        Stmt::ImportFrom(import) => match (&*import.names, import.module.as_deref()) {
            ([one], Some(from)) if from.starts_with("torch") || CLOCKS.has(from) => Some((import.range, one)),
            _ => None,
        },
        Stmt::Import(import) => match &*import.names {
            [one] if CLOCKS.has(&one.name) => Some((import.range, one)),
            _ => None,
        },
        _ => None,
    });
    let gone = single.filter(|(_, alias)| used(before, called(alias)) && !used(after, called(alias)));
    let lines = gone.filter_map(|(import, _)| {
        let line = after.line_range(after.line_of(import.start()))?;
        let whole = after.slice(line).trim() == after.slice(import);
        let rest = &after.whole()[line.end().to_usize()..];
        let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
        whole.then(|| TextRange::new(line.start(), line.end() + TextSize::of(&rest[..end])))
    });
    lines.collect()
}
