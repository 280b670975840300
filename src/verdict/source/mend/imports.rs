//! Imports that nothing uses any more.

use crate::verdict::source::parse::{Node, Source, last, nodes};
use ruff_python_ast::Alias;
use ruff_text_size::{Ranged, TextRange, TextSize};

/// Lines of `after` with an import of one name that `before` uses and `after` does not, in order.
///
/// Only `from torch.cuda import synchronize` and the like go: alone on its line, without a comment (it may say why it is kept), at
/// the top of a file that does not list what it exports. A module may be imported for what that does, a name is not.
pub fn unused(before: &Source, after: &Source) -> Vec<TextRange> {
    let used = |file: &Source, name: &str| {
        let mut found = false;
        nodes::walk(&[file.module()], &mut |path| {
            found |= match last(path) {
                Some(Node::ExprName(ast)) => ast.id == name || ast.id == "__all__",
                Some(Node::StringLiteral(ast)) => &*ast.value == name,
                _ => false,
            };
            !found
        });
        found
    };
    let Node::ModModule(module) = after.module() else { return Vec::new() };
    let imports = module.body.iter().filter_map(|stmt| stmt.as_import_from_stmt());
    let single = imports.filter_map(|import| match &*import.names {
        [one] if import.module.as_ref().is_some_and(|module| module.starts_with("torch")) => {
            Some((import, one))
        }
        _ => None,
    });
    let called = |alias: &Alias| alias.asname.as_ref().unwrap_or(&alias.name).to_string();
    let gone = single.filter(|(_, alias)| used(before, &called(alias)) && !used(after, &called(alias)));
    let lines = gone.filter_map(|(import, _)| {
        let line = after.line_range(after.line_of(import.start()))?;
        let whole = after.slice(line).trim() == after.slice(import.range());
        let rest = &after.whole()[line.end().to_usize()..];
        let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
        whole.then(|| TextRange::new(line.start(), line.end() + TextSize::of(&rest[..end])))
    });
    lines.collect()
}
