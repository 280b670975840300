//! The size of a result that the host knows, because it made the tensor that says it.

use super::text::with_argument;
use super::{OUTPUT_SIZE, Subject, Written};
use crate::model::edit::Refusal;
use crate::verdict::source::infer::{Here, Placement, makes_tensor, sinks};
use crate::verdict::source::parse::{Node, dotted, nodes, range, scope, within};
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

/// `output_size=` for `repeat_interleave`, whose repeats are a tensor of a list that the host still has.
///
/// Definition: the repeats are `torch.tensor(counts)` or its kin, moved or not, in place or by a name; both names are given once,
/// one behind the other in one block, and after that neither is changed, kept elsewhere or handed on. One number of repeats may
/// stand for all elements: then the size is not their sum, and is left open.
///
/// ```text
/// counts = [len(s) for s in batch]
/// repeats = torch.tensor(counts).cuda()
/// x = x.repeat_interleave(repeats, dim=0)
/// x = x.repeat_interleave(repeats, dim=0, output_size=sum(map(int, counts)) if len(counts) > 1 else None)
/// ```
/// Cost: a walk over the scope of either name.
pub fn output<'a>(s: Subject<'_, 'a>, call: &'a ExprCall) -> Option<Written> {
    if call.arguments.find_keyword("output_size").is_some() {
        return None;
    }
    let counts = match repeats(call)? {
        Expr::Name(name) => scope::only_value(s.here.path, name).and_then(|(value, place)| {
            let changed = scope::mentions(s.here.path, &name.id).iter().any(|one| is_changed(&one.path));
            uploaded(s.here, value, &place).filter(|_| !changed)
        }),
        value => uploaded(s.here, value, s.here.path),
    };
    let size = counts.map(|name| format!("output_size=sum(map(int, {name})) if len({name}) > 1 else None"));
    let all = size.and_then(|size| with_argument(s.here.file(), call, &size)).map(|one| vec![one]);
    Some(Written::new(&OUTPUT_SIZE, None, all.ok_or(Refusal::Sizes)))
}

/// How often a call of repeat_interleave repeats each element.
pub fn repeats(call: &ExprCall) -> Option<&Expr> {
    let torch = dotted(&call.func) == "torch.repeat_interleave";
    call.arguments.find_argument_value("repeats", usize::from(torch))
}

/// The list of the host that an upload at the end of `path` is made of: a name that holds the same numbers ever after.
fn uploaded<'a>(here: Here<'_, 'a>, value: &'a Expr, path: &[Node<'a>]) -> Option<&'a str> {
    let Expr::Call(call) = value else { return None };
    if !makes_tensor(nodes::name(&call.func)) {
        let moved = matches!(nodes::name(&call.func), "to" | "cuda" | "long");
        return uploaded(here, nodes::receiver(call).filter(|_| moved)?, path);
    }
    let Some(Expr::Name(counts)) = call.arguments.args.first() else { return None };
    let (list, place) = scope::only_value(path, counts)?;
    let made = matches!(list, Expr::List(_) | Expr::ListComp(_));
    let made = made && here.placements.find(list, &place) == Placement::Host;
    let block = |path: &[Node<'a>]| nodes::place(path).map(|(block, at)| (block.as_ptr(), at));
    let beside = block(&place).zip(block(path)).is_some_and(|(a, b)| a.0 == b.0 && a.1 < b.1);
    let used = scope::mentions(path, &counts.id);
    let local = scope::owner(path, &counts.id).len() > 1;
    let asked = used.iter().all(|one| one.store || is_asked(&one.path) || within(range(&one.path), call));
    (made && local && beside && asked).then_some(counts.id.as_str())
}

/// Whether a list is only looked at: `len(counts)`, `sum(counts)`, `for n in counts`, `counts[i]`.
fn is_asked(path: &[Node<'_>]) -> bool {
    match path {
        [.., Node::ExprCall(call), Node::Arguments(_), _] => sinks::LOOK_AT.has(&dotted(&call.func)),
        [.., Node::ExprSubscript(ast), name] => ast.ctx.is_load() && ast.value.range() == name.range(),
        [.., Node::StmtFor(ast), name] => ast.iter.range() == name.range(),
        [.., Node::Comprehension(ast), name] => ast.iter.range() == name.range(),
        _ => false,
    }
}

/// Whether an occurrence of a tensor's name is none of its assignment, of an argument of what makes a result, or of a question.
fn is_changed(path: &[Node<'_>]) -> bool {
    match path {
        [.., Node::StmtAssign(ast), name] => ast.value.range() == name.range(),
        [.., Node::ExprCall(call), Node::Arguments(_), _]
        | [.., Node::ExprCall(call), Node::Arguments(_), Node::Keyword(_), _] => {
            nodes::name(&call.func) != "repeat_interleave"
        }
        [.., Node::ExprAttribute(ast), _] => {
            !matches!(ast.attr.as_str(), "sum" | "max" | "shape" | "device" | "dtype" | "size")
        }
        _ => true,
    }
}
