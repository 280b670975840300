//! An index of the host, uploaded once where it is made rather than at every use.

use super::join::imports_torch;
use super::text::insert;
use super::{INDEXED, Subject, Written};
use crate::model::edit::{Refusal, Replacement};
use crate::verdict::source::infer::{Names, Placement};
use crate::verdict::source::parse::{Node, Path, Source, dotted, full_callee, last, nodes, scope, within};
use ruff_python_ast::{Expr, ExprName, Identifier};
use ruff_text_size::{Ranged, TextRange, TextSize};

/// Functions that make arrays of integers on the host; those of torch unless they are told a device.
const INTEGERS: Names = Names(
    "numpy.arange numpy.random.permutation numpy.random.randint torch.arange torch.randperm torch.randint",
);
/// Names followed, one after the other.
const MAX_STEPS: u8 = 4;

/// `x[i]` with an array of integers that the host makes.
///
/// Definition: the array has one assignment, and does nothing but index tensors that live on the device by the source; one of them
/// is bound in a block around that assignment, and says where to send it.
///
/// ```text
/// i = inds[start:end]                      i = torch.as_tensor(inds[start:end]).to(x.device, non_blocking=True)
/// a, b = x[i], y[i]                        a, b = x[i], y[i]
/// ```
/// Cost: one walk over the scope of the name, and one for each tensor.
pub fn once(s: Subject<'_, '_>) -> Option<Written> {
    let Node::ExprSubscript(ast) = last(s.here.path)? else { return None };
    let name = ast.slice.as_name_expr()?;
    let replacements = uploaded(s, name).ok_or(Refusal::Form);
    Some(Written::new(&INDEXED, None, replacements))
}

fn uploaded<'a>(s: Subject<'_, 'a>, name: &'a ExprName) -> Option<Vec<Replacement>> {
    let file = s.here.file();
    let (made, place) = scope::only_value(s.here.path, name)?;
    let all = scope::mentions(s.here.path, &name.id);
    let used = all.iter().filter(|one| !one.store && !asks_length(&one.path));
    let indexed = used.map(|one| match one.path[..] {
        [.., Node::ExprSubscript(ast), name] if ast.slice.range() == name.range() && !one.closure => {
            Some((&*ast.value, &one.path))
        }
        _ => None,
    });
    let indexed: Vec<(&Expr, &Path<'a>)> = indexed.collect::<Option<_>>()?;
    let on_device =
        |&(tensor, path): &(&'a Expr, &Path<'a>)| s.here.placements.find(tensor, path) == Placement::Device;
    if !is_integers(file, made, &place, 0) || !indexed.iter().all(on_device) || !imports_torch(s.here) {
        return None;
    }
    let bound_before = |&&(tensor, path): &&(&'a Expr, &Path<'a>)| {
        let bound = tensor.as_name_expr().and_then(|name| only_binding(path, name));
        bound.is_some_and(|(block, at)| at < made.start() && within(made, block))
    };
    let tensor = indexed.iter().find(bound_before).map(|(tensor, _)| file.text(*tensor))?;
    Some(vec![
        insert(made.start(), "torch.as_tensor("),
        insert(made.end(), format!(").to({tensor}.device, non_blocking=True)")),
    ])
}

/// Whether the last node is only asked for its length.
pub fn asks_length(path: &[Node<'_>]) -> bool {
    nodes::argument_of(path).is_some_and(|call| dotted(&call.func) == "len")
}

/// The block that holds the one binding of a name, and where that ends.
fn only_binding(path: &[Node<'_>], name: &ExprName) -> Option<(TextRange, TextSize)> {
    let (value, place) = scope::only_value(path, name)?;
    let at = nodes::statement(&place)?;
    Some((place[at.checked_sub(1)?].range(), value.end()))
}

/// Whether an expression is surely such an array, or a slice of one.
fn is_integers<'a>(file: &'a Source, expr: &'a Expr, path: &[Node<'a>], steps: u8) -> bool {
    match expr {
        _ if steps > MAX_STEPS => false,
        Expr::Call(call) => {
            let plain = |name: &Option<Identifier>| {
                name.as_ref().is_some_and(|name| matches!(name.as_str(), "size" | "generator"))
            };
            call.arguments.keywords.iter().all(|one| plain(&one.arg))
                && INTEGERS.has(&full_callee(file, call))
        }
        Expr::Subscript(ast) if ast.slice.is_slice_expr() => is_integers(file, &ast.value, path, steps + 1),
        Expr::Name(name) => scope::only_value(path, name)
            .is_some_and(|(value, place)| is_integers(file, value, &place, steps + 1)),
        _ => false,
    }
}
