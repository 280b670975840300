//! What an occurrence of a tensor does to it.

use crate::python::facts::{self, Fact};
use crate::python::parse::{Node, dotted, nodes};
use ruff_python_ast::ExprContext;
use ruff_text_size::Ranged;

/// Whether an occurrence of a name or an attribute changes the tensor: `x.clamp_(0)`, `x[i] = v`, `x += 1`,
/// `dist.all_reduce(x)`, `torch.exp(y, out=x)`.
pub fn changes(path: &[Node<'_>]) -> bool {
    let [.., above, _] = path[..] else { return false };
    match above {
        Node::ExprAttribute(ast) => ast.attr.ends_with('_') && !ast.attr.ends_with("__"),
        Node::ExprSubscript(ast) => {
            ast.ctx != ExprContext::Load && nodes::within(nodes::range(path), &*ast.value)
        }
        Node::StmtAugAssign(ast) => ast.target.range() == nodes::range(path),
        Node::Keyword(ast) => ast.arg.as_ref().is_some_and(|name| name.as_str() == "out"),
        Node::Arguments(_) => {
            let call = nodes::call(&path[..path.len() - 2]).map(|call| dotted(&call.func));
            let name = call.as_deref().map_or("", |callee| nodes::split_callee(callee).1);
            facts::name(name).is(Fact::Change) || name.ends_with('_')
        }
        _ => false,
    }
}
