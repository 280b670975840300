//! Arguments of calls, and branches: the two ways in which most values end.

use super::file::Source;
use super::flow::{Next, Tracer};
use super::nodes::{Node, dotted, split_callee, within};
use super::sinks::{self, Role};
use super::value::{Sink, Step, Value};
use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::{Ranged, TextRange};

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
            Role::Log | Role::Track if value.data && sinks::writes(call) => {
                self.end(path, value, Sink::Write, format!("written out by {callee}"))
            }
            Role::Log => self.end(path, value, Sink::Log, format!("an argument of {callee}")),
            Role::Track => {
                self.tracked(path, at, value);
                Next::Done
            }
            Role::Write => self.end(path, value, Sink::Write, format!("written out by {callee}")),
            Role::Size => {
                let (sink, what) = sized(path, at, &callee);
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
                through(call, node.range(), value);
                Next::Up(levels)
            }
            Role::Key => self.end(path, value, Sink::Index, format!("a key for {callee}")),
            Role::Neutral => Next::Done,
            // What a class of the file calls so is followed there.
            Role::Keep if self.method_called(above, call).is_some() => {
                self.local_call(path, at, value).map_or(Next::Done, Next::Up)
            }
            Role::Keep => {
                self.keep(path, at, value);
                Next::Done
            }
            Role::Unknown => self.local_call(path, at, value).map_or(Next::Done, Next::Up),
        }
    }
}

/// A size, or the bound of a loop: `for i in range(n)`.
fn sized(path: &[Node<'_>], call: usize, callee: &str) -> (Sink, String) {
    let above = call.checked_sub(1).map(|above| path[above]);
    if callee == "range" && matches!(above, Some(Node::StmtFor(_) | Node::Comprehension(_))) {
        (Sink::Branch { guard: false, assert: false }, "the bound of a loop".into())
    } else {
        (Sink::Size, format!("a size for {callee}"))
    }
}

/// What a host function makes of its argument at `at`: `enumerate` pairs it with a number, `zip` with other things.
fn through(call: &ExprCall, at: TextRange, value: &mut Value) {
    let callee = dotted(&call.func);
    let (base, name) = split_callee(&callee);
    match (base, name) {
        ("", "list" | "tuple" | "sorted" | "reversed" | "iter" | "dict") | (_, "deepcopy" | "copy") => {}
        ("", "enumerate") => {
            value.bulk &= value.steps.pop().is_some();
            value.steps.extend([Step::Index(1), Step::Any]);
        }
        ("", "zip") => {
            value.bulk &= value.steps.pop().is_some();
            let position = call.arguments.args.iter().position(|argument| within(at, argument));
            value.steps.extend([position.map_or(Step::Any, Step::Index), Step::Any]);
        }
        (_, "float" | "int" | "sum" | "min" | "max" | "mean" | "bool") => {
            value.steps.clear();
            (value.bulk, value.data) = (false, false);
        }
        _ => value.steps.clear(),
    }
    // NumPy's numbers have the methods of arrays.
    value.number &=
        !base.contains("np") && !base.contains("numpy") && !matches!(name, "tensor" | "as_tensor");
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

/// Whether the last node of `path` is the test of an `assert`, or an operand of it.
pub fn is_asserted(path: &[Node<'_>]) -> bool {
    let [.., parent, node] = path else { return false };
    match parent {
        Node::StmtAssert(ast) => within(*node, &*ast.test),
        Node::ExprBoolOp(_) | Node::ExprUnaryOp(_) => is_asserted(&path[..path.len() - 1]),
        _ => false,
    }
}

fn stops(callee: &str) -> bool {
    matches!(split_callee(callee).1, "exit" | "_exit" | "abort" | "set_trace" | "breakpoint" | "warn")
}
