//! Operators that make a product of several tensors.

use crate::verdict::source::infer::libraries::Names;
use ruff_python_ast::ExprCall;

/// Products with another tensor.
const PRODUCTS: Names =
    Names("matmul bmm mm mv dot einsum tensordot addmm baddbmm linear scaled_dot_product_attention");

/// Whether a function of that name makes a product of several tensors.
pub(super) fn joins(name: &str, call: &ExprCall) -> bool {
    PRODUCTS.has(name)
        && call.arguments.args.iter().filter(|argument| !argument.is_literal_expr()).count() > 1
}

/// Whether a method of that name multiplies its tensor with another.
pub(super) fn multiplies(method: &str, call: &ExprCall) -> bool {
    PRODUCTS.has(method) && !call.arguments.args.is_empty()
}
