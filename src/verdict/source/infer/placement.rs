//! A node, what its file says of where values live, and questions about members of tensors.

use crate::python::facts::{self, Fact};
use crate::python::parse::{Node, Source, nodes};
pub use crate::python::place::{Placement, Placements, device_name, device_text};
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

#[derive(Clone, Copy)]
pub struct Here<'p, 'a> {
    pub placements: &'p Placements<'a>,
    pub path: &'p [Node<'a>],
}

impl<'a> Here<'_, 'a> {
    pub fn file(self) -> &'a Source {
        self.placements.file
    }

    pub fn text(self, node: impl Ranged) -> String {
        self.placements.file.text(node)
    }

    pub fn find(self, expr: &'a Expr) -> Placement {
        self.placements.find(expr, self.path)
    }

    pub fn meant(self, call: &'a ExprCall) -> &'a Expr {
        self.placements.meant(&call.func, self.path)
    }

    pub fn device_argument(self, call: &'a ExprCall) -> Option<Placement> {
        self.placements.device_argument(call, self.path)
    }
}

/// A tensor's member that tells nothing of its elements: `x.shape`, `x.dim()`, `x.type()`.
pub fn tells_form(name: &str, call: Option<&ExprCall>) -> bool {
    facts::name(name).is(Fact::Layout) || name == "type" && call.is_some_and(|call| call.arguments.is_empty())
}

/// `x.to(device)`, `x.cuda()`.
pub fn sends(call: &ExprCall, name: &str) -> bool {
    nodes::receiver(call).and_then(Expr::as_name_expr).is_some_and(|ast| ast.id == name)
        && matches!(nodes::name(&call.func), "to" | "cuda")
}
