//! A node of a file, with what the file says of where values live, and small questions about tensors' members.

use crate::python::facts::{self, Fact};
use crate::python::parse::{Node, Source, nodes};
pub use crate::python::place::{Placement, Placements, device_name, device_text};
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

/// A node of a file, and what the file's text says of the values around it.
#[derive(Clone, Copy)]
pub struct Here<'p, 'a> {
    pub placements: &'p Placements<'a>,
    /// Path of the node.
    pub path: &'p [Node<'a>],
}

impl<'a> Here<'_, 'a> {
    pub fn file(self) -> &'a Source {
        self.placements.file
    }

    /// Text of an expression or another node on one line.
    pub fn text(self, node: impl Ranged) -> String {
        self.placements.file.text(node)
    }

    /// See [`Placements::find`].
    pub fn find(self, expr: &'a Expr) -> Placement {
        self.placements.find(expr, self.path)
    }

    /// See [`Placements::meant`].
    pub fn meant(self, call: &'a ExprCall) -> &'a Expr {
        self.placements.meant(&call.func, self.path)
    }

    /// See [`Placements::device_argument`].
    pub fn device_argument(self, call: &'a ExprCall) -> Option<Placement> {
        self.placements.device_argument(call, self.path)
    }
}

/// Whether a member of a tensor, asked as an attribute or called, tells nothing of what the tensor holds: `x.shape`, `x.dim()`,
/// `x.type()` without arguments.
pub fn tells_form(name: &str, call: Option<&ExprCall>) -> bool {
    facts::name(name).is(Fact::Layout) || name == "type" && call.is_some_and(|call| call.arguments.is_empty())
}

/// Whether a call sends what `name` names to a device: `x.to(device)`, `x.cuda()`.
pub fn sends(call: &ExprCall, name: &str) -> bool {
    nodes::receiver(call).and_then(Expr::as_name_expr).is_some_and(|ast| ast.id == name)
        && matches!(nodes::name(&call.func), "to" | "cuda")
}
