//! Following a value that an attribute holds: to its reads in the file, and through methods that return it.

use super::tracer::Tracer;
use super::value::{Sink, Step, Use, Value};
use crate::python::facts::{self, Fact};
use crate::python::parse::{Given, Node, Path, dotted, last, nodes, scope, split_callee};
use crate::verdict::source::infer::{Whose, sinks};
use ruff_python_ast::{Expr, ExprAttribute};
use ruff_text_size::TextRange;

impl<'a> Tracer<'a, '_> {
    /// An attribute holds the value: follow its reads.
    ///
    /// Definition: a read is ours if its object is of the same class (or called by the same name). A read
    /// from an unknown object can only leave the question open, unless it shows the value. A read from
    /// another class's object does not count. What a method returns goes to its callers, one level. Where
    /// nothing reads the attribute, code outside the file may.
    ///
    /// ```text
    /// self.trend = 0.9 * self.trend + 0.1 * v   # in Task.feed
    /// def ready(self): return self.trend < 0.2  # ours, returned: its callers
    /// if self.task.ready(): …                   # `self.task = Task()`: ours, a branch
    /// ```
    /// Cost: one walk over the file, and one for each method that returns it.
    pub(super) fn attribute(&mut self, path: &[Node<'a>], target: &'a ExprAttribute, value: Value) {
        let name = self.file.text(target);
        // An attribute that keeps a part of itself goes nowhere else: `self.returns = self.returns[-100:]`.
        let trims = matches!(scope::given(path), Given::Value(Expr::Subscript(part)) if self.file.text(&*part.value) == name);
        if trims || !self.seen.insert((target.range, name.clone())) {
            return;
        }
        let value = value.named(name.clone());
        let before = self.uses.len();
        let reads = self.reads_of(path, target);
        if let Some(field) = constructed(path, target)
            && reads.iter().all(|(whose, _)| *whose == Whose::Unclear)
        {
            return self.sink(path, &value.held(field), Sink::Returned, "kept in the object");
        }
        for (whose, read) in reads {
            let own = self.uses.len();
            self.follow(&read, value.clone());
            let uses = self.uses.split_off(own);
            self.elsewhere(path, &read, uses, whose);
        }
        if self.uses.len() == before {
            let recorded = match recorder(path) {
                Some(function) => Some(format!("kept in `{name}` by {function}")),
                None => value.text.then(|| format!("kept as text in `{name}`")),
            };
            let Some(what) = recorded else {
                return self.sink(path, &value, Sink::Stored, format!("stored in `{name}`"));
            };
            self.sink(path, &value, Sink::Log, what);
        }
    }

    /// The reads of the attribute that `target` at the end of `path` assigns or changes, and whose they are.
    fn reads_of(&self, path: &[Node<'a>], target: &'a ExprAttribute) -> Vec<(Whose, Path<'a>)> {
        let class = self.objects.class_of(&target.value, path);
        let base = dotted(&target.value);
        let whose = |read: &Path<'a>| {
            let other = nodes::attribute(read).filter(|ast| ast.range != target.range && ast.ctx.is_load());
            let Some(ast) = other else { return Whose::Theirs };
            let called = matches!(nodes::above(read, 1), Some(Node::ExprCall(_)));
            let own = dotted(&ast.value) == base && function(read) == function(path);
            match () {
                // Numbers and containers are not called: a call is of a method of the same name.
                _ if called => Whose::Theirs,
                _ if own => Whose::Ours,
                _ => self.objects.whose(&ast.value, read, class.as_ref(), split_callee(&base).1),
            }
        };
        let reads = nodes::attributes(&path[..1], &target.attr).into_iter();
        reads.map(|read| (whose(&read), read)).filter(|(whose, _)| *whose != Whose::Theirs).collect()
    }

    fn elsewhere(&mut self, path: &[Node<'a>], read: &Path<'a>, uses: Vec<Use>, whose: Whose) {
        for mut used in uses {
            let away = function(read) != function(path);
            if used.sink == Sink::Returned && away {
                // The trace has the callers of the reading function, not of another that returns the value.
                if whose == Whose::Ours && self.handed_out(read, &used) {
                    continue;
                }
                used.sink = Sink::Stored;
                // A container that keeps values in the host's form keeps them for code of the host.
                let accessor = nodes::function_name(read);
                if facts::name(accessor).is(Fact::Part) && is_of_host(&used.value) {
                    used.what = format!("kept as an array or a list, which `{accessor}` hands out").into();
                    used.sink = Sink::Compute;
                }
                // A figure that a framework asks a metric for is only shown.
                if used.value.summed && !used.value.data && sinks::is_metric(accessor) {
                    used.sink = Sink::Log;
                }
            }
            if whose == Whose::Unclear {
                // A use that only shows the value changes nothing, whoever's it is.
                if matches!(used.sink, Sink::Log | Sink::Error | Sink::Dropped) {
                    continue;
                }
                used.sink = Sink::Stored;
            }
            self.uses.push(used);
        }
    }

    /// Follows what the method around `read` returns to its callers in the file; false where it finds none.
    pub(super) fn handed_out(&mut self, read: &Path<'a>, returned: &Use) -> bool {
        let at = nodes::function_scope(read);
        let Node::StmtFunctionDef(ast) = read[at] else { return false };
        let name = ast.name.as_str();
        if name.starts_with("__") {
            return false;
        }
        if !self.seen.insert((ast.range, format!("{name}()"))) {
            return true;
        }
        let class = nodes::class_around(&read[..=at]).map(<[_]>::to_vec);
        let property = ast.decorator_list.iter().any(nodes::is_property);
        let calls = nodes::find(&read[..1], &mut |path| match last(path) {
            Some(Node::ExprAttribute(ast)) => property && ast.attr.as_str() == name,
            Some(Node::ExprCall(call)) => !property && nodes::name(&call.func) == name,
            _ => false,
        });
        let mut found = false;
        for place in calls.iter().filter(|place| function(place) != ast.range) {
            let call = nodes::call(place);
            let object = match call {
                Some(call) => nodes::receiver(call),
                None => nodes::attribute(place).map(|ast| &*ast.value),
            };
            let whose = match (object, &class) {
                (Some(object), Some(_)) => self.objects.whose(object, place, class.as_ref(), "?"),
                (None, None) if call.is_some_and(|call| call.func.is_name_expr()) => Whose::Ours,
                _ => Whose::Theirs,
            };
            if whose == Whose::Theirs {
                continue;
            }
            found = true;
            let own = self.uses.len();
            self.follow(place, returned.value.clone().named(format!("{name}()")));
            for used in &mut self.uses[own..] {
                if whose == Whose::Unclear || used.sink == Sink::Returned {
                    used.sink = Sink::Stored;
                }
            }
        }
        found
    }
}

/// The function around, if its name says that it records its arguments, and it returns nothing: `add_scalar`,
/// `log_metrics`, `set_postfix`.
fn recorder<'a>(path: &[Node<'a>]) -> Option<&'a str> {
    let name = Some(nodes::function_name(path)).filter(|name| sinks::is_log_name(name))?;
    let answers = &mut |path: &[Node<'_>]| matches!(last(path), Some(Node::StmtReturn(ast)) if ast.value.as_deref().is_some_and(|value| !value.is_none_literal_expr()));
    (!nodes::any(nodes::function_around(path), answers)).then_some(name)
}

/// Whether the value is many numbers in a NumPy array or a Python list.
fn is_of_host(value: &Value) -> bool {
    value.many && value.data && !value.text && !value.summed && (value.arrays || !value.tensor)
}

/// The field that a constructor fills by `self.name = value`: the maker of the object holds it.
fn constructed(path: &[Node<'_>], target: &ExprAttribute) -> Option<Step> {
    let own = nodes::function_name(path) == "__init__" && dotted(&target.value) == "self";
    own.then(|| Step::Field(target.attr.to_string(), None))
}

pub(super) fn function(path: &[Node<'_>]) -> TextRange {
    nodes::range(nodes::function_around(path))
}
