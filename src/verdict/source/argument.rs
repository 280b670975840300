//! Arguments of calls, and branches: the two ways in which most values end.

use super::file::Source;
use super::flow::{Next, Sink, Step, Tracer, Value};
use super::nodes::{Node, dotted, split_callee};
use super::sinks::{self, Role};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

impl<'a> Tracer<'a, '_> {
    /// The last node of `path` is an argument of a call.
    pub(super) fn argument(&mut self, path: &[Node<'a>], value: &mut Value) -> Next {
        let above = &path[..path.len() - 1];
        let Some(at) = above.iter().rposition(|node| matches!(node, Node::ExprCall(_))) else {
            return self.end(path, value, Sink::Unknown, "used in a way that the tool does not know");
        };
        let (Node::ExprCall(call), node) = (path[at], path[path.len() - 1]) else { return Next::Done };
        let callee = self.file.text(&*call.func);
        let levels = path.len() - 1 - at;
        match sinks::role(call, node.range(), value.bulk) {
            Role::Log => self.end(path, value, Sink::Log, format!("an argument of {callee}")),
            Role::Write => self.end(path, value, Sink::Write, format!("written out by {callee}")),
            Role::Size => {
                let loop_bound = callee == "range"
                    && at > 0
                    && matches!(path[at - 1], Node::StmtFor(_) | Node::Comprehension(_));
                let branch = Sink::Branch { guard: false, assert: false };
                let (sink, what) = if loop_bound {
                    (branch, "the bound of a loop".into())
                } else {
                    (Sink::Size, format!("a size for {callee}"))
                };
                self.end(path, value, sink, what)
            }
            Role::Decide(what) => self.end(
                path,
                value,
                Sink::Branch { guard: false, assert: false },
                format!("{what} ({callee})"),
            ),
            Role::Rate => {
                self.end(path, value, Sink::Rate, format!("what {callee} sets the learning rate by"))
            }
            Role::Compute => self.end(path, value, Sink::Compute, format!("an argument of {callee}")),
            Role::Device => {
                self.end(path, value, Sink::Device, format!("an argument of {callee} on the device"))
            }
            Role::Text => {
                value.becomes_text();
                Next::Up(levels)
            }
            Role::Through => {
                let (base, name) = split_callee(&callee);
                if matches!(name, "float" | "int" | "len" | "sum" | "min" | "max" | "mean" | "bool") {
                    value.bulk = false;
                }
                if !matches!(name, "list" | "tuple" | "zip" | "sorted" | "reversed" | "deepcopy" | "dict")
                    || !base.is_empty()
                {
                    value.steps.clear();
                }
                if name == "enumerate" || name == "zip" {
                    value.steps.push(Step::Any);
                }
                Next::Up(levels)
            }
            Role::Keep => {
                self.keep(path, at, value);
                Next::Done
            }
            Role::Unknown => self.local_call(path, at, value).map_or(Next::Done, Next::Up),
        }
    }
}

/// Whether the branch that the last node of `path` decides only stops or complains (S02): its body raises, exits, warns or logs;
/// leaving a loop or the function counts where the test looks for NaN or infinity.
pub fn is_guard(path: &[Node<'_>], file: &Source) -> bool {
    let Some(parent) = path.len().checked_sub(2).map(|at| path[at]) else { return false };
    let (test, body) = match parent {
        Node::StmtIf(ast) => (ast.test.range(), &ast.body),
        Node::ElifElseClause(ast) => match &ast.test {
            Some(test) => (test.range(), &ast.body),
            None => return false,
        },
        Node::ExprBoolOp(_) | Node::ExprUnaryOp(_) => return is_guard(&path[..path.len() - 1], file),
        Node::StmtAssert(_) => return true,
        _ => return false,
    };
    let test = file.slice(test).to_ascii_lowercase();
    let nan = ["nan", "inf", "finite"].iter().any(|word| test.contains(word));
    body.iter().all(|stmt| match stmt {
        Stmt::Raise(_) | Stmt::Assert(_) | Stmt::Pass(_) => true,
        Stmt::Expr(ast) => match &*ast.value {
            Expr::Call(call) => sinks::is_log(call) || stops(&dotted(&call.func)),
            _ => false,
        },
        Stmt::Break(_) | Stmt::Continue(_) | Stmt::Return(_) => nan,
        _ => false,
    }) && !body.iter().all(|stmt| matches!(stmt, Stmt::Pass(_)))
}

fn stops(callee: &str) -> bool {
    matches!(split_callee(callee).1, "exit" | "_exit" | "abort" | "set_trace" | "breakpoint" | "warn")
}
