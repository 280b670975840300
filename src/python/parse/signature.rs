//! Parameters of functions, and the arguments that calls give for them.

use super::nodes::{self, Node};
use ruff_python_ast::{Expr, ExprCall, Parameters};

/// The parameters of a function or lambda, and whether callers leave out the first.
pub fn signature<'a>(function: &[Node<'a>]) -> Option<(&'a Parameters, bool)> {
    Some(match *function.last()? {
        Node::StmtFunctionDef(ast) => {
            let mut decorators =
                ast.decorator_list.iter().map(|decorator| nodes::dotted(&decorator.expression));
            let free = decorators.any(|decorator| decorator == "staticmethod");
            (&ast.parameters, !free && matches!(function[..], [.., Node::StmtClassDef(_), _]))
        }
        Node::ExprLambda(ast) => (ast.parameters.as_deref()?, false),
        _ => return None,
    })
}

pub fn argument_for<'a>(function: &[Node<'_>], call: &'a ExprCall, name: &str) -> Option<&'a Expr> {
    let (parameters, method) = signature(function)?;
    let mut all = parameters.posonlyargs.iter().chain(&parameters.args);
    let position = all.position(|one| one.name().as_str() == name);
    // A keyword-only parameter has no position.
    let position = position.map_or(Some(usize::MAX), |at| at.checked_sub(usize::from(method)))?;
    call.arguments.find_argument_value(name, position)
}
