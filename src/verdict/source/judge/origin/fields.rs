//! Fields of the program's own objects: what the class assigns them, keeps as a buffer or changes in place.

use super::search::{OnHost, Scene, all};
use crate::python::facts::{self, Fact};
use crate::python::parse::{Node, Path, nodes, string};
use crate::verdict::source::flow::{Step, constant_step};
use crate::verdict::source::infer::{Objects, changes, function_of};
use ruff_python_ast::{Expr, ExprCall, ExprContext};

impl<'a> Scene<'_, 'a> {
    /// A field of an object of `class` is known if all its values are: what is assigned, what a module keeps
    /// as a buffer, what methods do to it in place. `others`: where the file names a field so.
    ///
    /// ```text
    /// self.register_buffer("steps", torch.tensor(0))    0, which goes to the GPU with the module
    /// self.steps += 1                                   … and 1: a counter of Python does as well
    /// if self.steps >= self.until:                      known
    /// ```
    pub(super) fn kept(self, class: &Path<'a>, others: &[Path<'a>], steps: &[Step]) -> Option<OnHost> {
        let field = nodes::attribute(others.first()?)?.attr.as_str();
        let own = (nodes::range(class), field.to_owned());
        if self.search.fields.borrow().contains(&own) {
            return Some(OnHost::default()); // a field adds nothing to itself
        }
        let objects = Objects::new(self.here.file());
        let ours = |path: &Path<'a>| {
            let of = nodes::attribute(path).and_then(|ast| objects.class_of(&ast.value, path));
            of.map(|of| nodes::range(&of) == nodes::range(class))
        };
        let buffers = nodes::calls(class, &|call| is_buffer(call, field));
        if !buffers.is_empty() && others.iter().any(|path| is_handed_over(path)) {
            return None;
        }
        let made = buffers.iter().map(|path| self.at(path).buffer(nodes::call(path)?, steps));
        let given = others.iter().filter(|path| is_written(path)).filter_map(|path| {
            let ours = match ours(path) {
                Some(false) => return None,
                ours => ours.is_some() && nodes::within(nodes::range(path), nodes::range(class)),
            };
            // Code of others may write whenever it likes.
            Some(match ours {
                false => None,
                true if changes(whole(path)) => self.changed(whole(path), steps),
                true => self.bound(path, steps.to_vec()),
            })
        });
        self.search.fields.borrow_mut().push(own);
        let known = all(made.chain(given));
        self.search.fields.borrow_mut().pop();
        known
    }

    /// What a module keeps as a buffer. The numbers of `torch.tensor` are the host's, whoever passed them.
    fn buffer(self, call: &'a ExprCall, steps: &[Step]) -> Option<OnHost> {
        let value = call.arguments.args.get(1)?;
        let numbers =
            || value.as_call_expr().and_then(|call| function_of(call, Fact::Torch)) == Some("tensor");
        let known = self.find(value, steps.to_vec()).or_else(|| numbers().then_some(OnHost::DATA))?;
        Some(OnHost { sent: known.sent.or_else(|| Some(self.place(call))), ..known })
    }

    /// What a change in place puts into a field.
    fn changed(self, path: &[Node<'a>], steps: &[Step]) -> Option<OnHost> {
        let put = |value: &'a Expr| self.at(path).find(value, Vec::new()).map(OnHost::computed);
        match path[..] {
            [.., Node::StmtAugAssign(ast), _] => put(&ast.value),
            [.., Node::StmtExpr(_), Node::ExprCall(call), Node::ExprAttribute(method), _]
                if sets(method.attr.as_str()) =>
            {
                all(nodes::given(call).map(put).chain([Some(OnHost::default())]))
            }
            [.., above, Node::ExprSubscript(ast), _] => {
                let at = constant_step(&ast.slice);
                match (at, steps.last(), above) {
                    (Some(Step::Index(at)), Some(Step::Index(wanted)), _) if at != *wanted => {
                        Some(OnHost::default())
                    }
                    (.., Node::StmtAssign(ast)) => put(&ast.value),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

pub(super) fn is_written(path: &Path<'_>) -> bool {
    changes(whole(path)) || nodes::attribute(path).is_some_and(|ast| ast.ctx != ExprContext::Load)
}

/// The path to a field, or to its data: `self.steps.data.add_(1)` changes the field.
fn whole<'p, 'a>(path: &'p [Node<'a>]) -> &'p [Node<'a>] {
    match path {
        [upper @ .., _] if nodes::attribute(upper).is_some_and(|ast| ast.attr.as_str() == "data") => upper,
        _ => path,
    }
}

/// Whether the new value follows from the tensor and the arguments: `add_`, not `normal_`.
fn sets(method: &str) -> bool {
    let name = method.strip_suffix('_').unwrap_or_default();
    matches!(name, "copy" | "fill" | "zero") || facts::is_pure(name)
}

fn is_handed_over(path: &[Node<'_>]) -> bool {
    nodes::argument_of(whole(path)).is_some_and(|call| !facts::is_pure(nodes::name(&call.func)))
}

fn is_buffer(call: &ExprCall, field: &str) -> bool {
    nodes::name(&call.func) == "register_buffer"
        && call.arguments.args.first().and_then(string) == Some(field)
}
