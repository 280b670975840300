//! Whether a tensor on the device is a copy of what the host has: reading it back is a round trip.

use super::file::Source;
use super::nature::{Nature, Natures};
use super::nodes::{self, Node, Path, dotted, last, split_callee, string};
use super::objects::Objects;
use super::scope;
use ruff_python_ast::{Expr, ExprContext};
use ruff_text_size::Ranged;

/// Line on which the host uploaded what `expr`, read by the last node of `path`, names.
///
/// Definition: the expression is an upload (`.cuda()`, `.to(device)` of what does not surely live there, a tensor made of host
/// values for the device), or a name whose only value is one and that nothing changes in place, or the entry of a dict under a
/// key that the file only ever gives uploads.
pub fn uploaded<'a>(
    file: &'a Source,
    natures: &Natures<'a>,
    expr: &'a Expr,
    path: &[Node<'a>],
) -> Option<u32> {
    let line = |expr: &Expr| file.line_of(expr.start());
    match expr {
        Expr::Call(_) => is_upload(natures, expr, path).then(|| line(expr)),
        Expr::Name(name) => {
            let owner = scope::owner(path, &name.id);
            if scope::occurrences(&owner, &name.id).iter().any(|one| changes(&one.path)) {
                return None;
            }
            match Objects::new(file).values_of(expr, path).as_slice() {
                [(value, place)] if is_upload(natures, value, place) => Some(line(value)),
                _ => None,
            }
        }
        Expr::Subscript(ast) => {
            let values = entries(file, string(&ast.slice)?);
            let all =
                !values.is_empty() && values.iter().all(|(value, path)| is_upload(natures, value, path));
            all.then(|| line(values[0].0))
        }
        _ => None,
    }
}

fn is_upload<'a>(natures: &Natures<'a>, expr: &'a Expr, path: &[Node<'a>]) -> bool {
    let Expr::Call(call) = expr else { return false };
    let callee = dotted(&call.func);
    let (base, name) = split_callee(&callee);
    let to_device = || natures.device_argument(call, path) == Some(Nature::Device);
    match (name, &*call.func) {
        ("cuda", Expr::Attribute(ast)) => natures.of(&ast.value, path) != Nature::Device,
        ("to", Expr::Attribute(ast)) => to_device() && natures.of(&ast.value, path) != Nature::Device,
        ("tensor" | "as_tensor" | "from_numpy" | "asarray", _) if base == "torch" => {
            let first = call.arguments.args.first();
            to_device() && first.is_some_and(|value| natures.of(value, path) == Nature::Host)
        }
        _ => false,
    }
}

/// Whether an occurrence of a name changes the tensor: `x.clamp_(0)`, `x[i] = v`, `x += 1`.
fn changes(path: &Path<'_>) -> bool {
    let [.., above, _] = path[..] else { return false };
    match above {
        Node::ExprAttribute(ast) => ast.attr.ends_with('_') && !ast.attr.ends_with("__"),
        Node::ExprSubscript(ast) => ast.ctx != ExprContext::Load,
        Node::StmtAugAssign(_) => true,
        _ => false,
    }
}

/// What the file's dicts hold under a key.
fn entries<'a>(file: &'a Source, key: &str) -> Vec<(&'a Expr, Path<'a>)> {
    let mut found = Vec::new();
    nodes::walk(&[file.module()], &mut |path| {
        match last(path) {
            Some(Node::ExprDict(ast)) => {
                let named = ast.items.iter().filter(|item| item.key.as_ref().and_then(string) == Some(key));
                found.extend(named.map(|item| (&item.value, path.to_vec())));
            }
            Some(Node::ExprSubscript(ast))
                if ast.ctx == ExprContext::Store && string(&ast.slice) == Some(key) =>
            {
                if let scope::Given::Value(value) = scope::given(path) {
                    found.push((value, path.to_vec()));
                }
            }
            _ => {}
        }
        true
    });
    found
}
