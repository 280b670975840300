//! Whether a tensor on the device is a copy of what the host has: reading it back is a round trip.

use crate::verdict::source::infer::libraries::makes_tensor;
use crate::verdict::source::infer::objects::Objects;
use crate::verdict::source::infer::placement::{Here, Placement};
use crate::verdict::source::parse::{Node, Path, Source, dotted, last, nodes, scope, split_callee, string};
use ruff_python_ast::{Expr, ExprContext};
use ruff_text_size::Ranged;

/// Line on which the host uploaded what `expr`, read by the last node of `path`, names.
///
/// Definition: the expression is an upload (`.cuda()`, `.to(device)` of what does not surely live there, a tensor made of host
/// values for the device), or a name whose only value is one and that nothing changes in place, or the entry of a dict under a
/// key that the file only ever gives uploads.
pub fn uploaded<'a>(here: Here<'_, 'a>, expr: &'a Expr) -> Option<u32> {
    let Here { placements, path } = here;
    let uploads = |(value, path): &(&'a Expr, Path<'a>)| is_upload(Here { placements, path }, value);
    let value = match expr {
        Expr::Call(_) => is_upload(here, expr).then_some(expr),
        Expr::Name(name) => {
            let owner = scope::owner(path, &name.id);
            if scope::occurrences(&owner, &name.id).iter().any(|one| changes(&one.path)) {
                return None;
            }
            let values = Objects::new(here.file()).values_of(expr, path);
            (values.len() == 1 && uploads(&values[0])).then(|| values[0].0)
        }
        Expr::Subscript(ast) => {
            let values = entries(here.file(), string(&ast.slice)?);
            values.iter().all(uploads).then_some(values.first()?.0)
        }
        _ => None,
    };
    value.map(|value| here.file().line_of(value.start()))
}

fn is_upload<'a>(here: Here<'_, 'a>, expr: &'a Expr) -> bool {
    let Expr::Call(call) = expr else { return false };
    let callee = dotted(&call.func);
    let (base, name) = split_callee(&callee);
    let to_device = || here.device_argument(call) == Some(Placement::Device);
    let from_host = |value| here.find(value) == Placement::Host;
    match (name, &*call.func) {
        ("cuda", Expr::Attribute(ast)) => here.find(&ast.value) != Placement::Device,
        ("to", Expr::Attribute(ast)) => to_device() && here.find(&ast.value) != Placement::Device,
        _ if makes_tensor(name) && base == "torch" => {
            to_device() && call.arguments.args.first().is_some_and(from_host)
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
                found.extend(scope::value(path.to_vec()));
            }
            _ => {}
        }
        true
    });
    found
}
