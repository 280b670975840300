//! Arguments of calls: how most values end.

use super::calls::is_array;
use super::conditions::Fork;
use super::device::joins;
use super::tracer::{Tracer, UNKNOWN};
use super::value::{Next, Sink, Step, Value, ends};
use crate::python::facts::{self, Fact, Facts};
use crate::python::parse::{
    Node, Path, Source, dotted, full_callee, nodes, scope, split_callee, string, within,
};
use crate::text::package;
use crate::verdict::source::infer::{
    Objects, makes_tensor,
    roles::{self, Role},
    sinks,
};
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::{Ranged, TextRange};

impl<'a> Tracer<'a, '_> {
    /// Whether text written to `handle` is an output: the program opens the file anew, or its caller chose
    /// it, and the file is not called a log. Such text may be a result.
    fn is_output(&self, call: &'a ExprCall, handle: &'a Expr, path: &[Node<'a>]) -> bool {
        let Expr::Name(name) = handle else { return false };
        let anew = |opened: &Expr| {
            mode(opened).is_some_and(|mode| mode.starts_with('w'))
                && !sinks::speaks_of_log(&self.file.text(opened))
        };
        !sinks::speaks_of_log(&name.id)
            && if scope::is_parameter(path, &name.id) {
                nodes::name(&call.func) == "print"
            } else {
                self.objects.is_always(handle, path, anew)
            }
    }

    /// The call at the end of `path` writes its argument to a file. Data is a result. Text is one in an
    /// output file. Numbers are one unless they are figures of the run, or kept in a checkpoint.
    fn written(&self, path: &[Node<'a>], value: &Value) -> Next {
        let Some(call) = nodes::call(path) else { return Next::Done };
        let callee = self.file.text(&*call.func);
        let checkpoint = matches!(&*callee, "torch.save" | "yaml.dump");
        let result = match sinks::handle(call) {
            _ if value.data || value.bulk => return ends(Sink::Write, format!("written out by {callee}")),
            Some(handle) => value.text && self.is_output(call, handle, path),
            None => !checkpoint && !value.is_figure(),
        };
        match result {
            true => ends(Sink::Write, format!("written out by {callee}")),
            false => ends(Sink::Log, format!("an argument of {callee}")),
        }
    }

    fn is_asked(&self, path: &[Node<'a>], call: &'a ExprCall) -> bool {
        !nodes::is_dropped(path) && !self.callees(path, call).is_empty()
    }

    /// Follows the value into a function at hand that is named like a logger: to what it decides by the value
    /// (`own`: itself), and what it hands to the GPU. False where it does neither. A guard may log as well;
    /// what a library does there is its own business.
    fn does_more(&mut self, path: &[Node<'a>], at: usize, value: &Value, own: bool) -> bool {
        let (before, seen) = (self.uses.len(), self.seen.clone());
        let call = nodes::call(&path[..=at]).filter(|_| own);
        let callees = call.map(|call| self.callees(&path[..path.len() - 1], call));
        let lines = |function: &Path<'a>| {
            let range = nodes::range(function);
            self.file.line_of(range.start())..=self.file.line_of(range.end())
        };
        let lines: Vec<_> = callees.iter().flatten().map(lines).collect();
        self.entered(path, at, value);
        self.seen = seen;
        let mut found = self.uses.split_off(before);
        found.retain(|used| match &used.sink {
            _ if used.file.as_deref().is_some_and(|file| package(file).is_some()) => false,
            _ if own && (used.file.is_some() || !lines.iter().any(|lines| lines.contains(&used.line))) => {
                false
            }
            // A branch that only chooses what is shown, or keeps the largest, decides nothing.
            Sink::Branch { guard, .. } => !guard && !used.metered && used.fork != Fork::Chooses,
            sink => sink.is_decisive() || *sink == Sink::Device,
        });
        self.uses.append(&mut found);
        self.uses.len() > before
    }

    /// Whether the call tells a figure to an object whose class, here or in a file at hand, keeps the mean.
    fn is_meter(&self, path: &[Node<'a>], call: &'a ExprCall) -> bool {
        if let Some((_, file, class)) = self.object_abroad(path, call) {
            let objects = Objects::new(&file);
            return objects.class_named(&class).is_some_and(|class| is_average(&objects, &class));
        }
        let class = nodes::receiver(call).and_then(|object| self.objects.class_of(object, path));
        class.is_some_and(|class| is_average(&self.objects, &class))
    }

    pub(super) fn argument(&mut self, path: &[Node<'a>], value: &mut Value) -> Next {
        let above = &path[..path.len() - 1];
        let Some(at) = above.iter().rposition(|node| matches!(node, Node::ExprCall(_))) else {
            return ends(Sink::Unknown, UNKNOWN);
        };
        let (Node::ExprCall(call), node) = (path[at], path[path.len() - 1]) else { return Next::Done };
        let callee = self.file.text(&*call.func);
        let role = match roles::role(&path[..=at], node.range(), value.bulk) {
            Role::Unknown => {
                let full = full_callee(self.file, call);
                let data = value.data || value.bulk;
                roles::imported_role(&full, (data, value.text), nodes::is_dropped(&path[..=at]))
            }
            role => role,
        };
        // The call makes something for a log: the value is shown, unless the callee is at hand and decides by it.
        if matches!(role, Role::Unknown | Role::Write) && is_for_log(&path[..=at], value.bulk) {
            return match self.does_more(path, at, value, false) {
                true => Next::Done,
                false => ends(Sink::Log, format!("what {callee} makes of it is shown")),
            };
        }
        match role {
            Role::Log | Role::Track if value.data && roles::writes(call) => {
                return ends(Sink::Write, format!("written out by {callee}"));
            }
            Role::Write => return self.written(&path[..=at], value),
            Role::Log if value.text && sinks::handle(call).is_some() => {
                return self.written(&path[..=at], value);
            }
            Role::Words => {
                // The program makes these words, rather than reports by them.
                value.tensor = false;
                return ends(Sink::Compute, format!("an argument of {callee}"));
            }
            Role::Log if self.is_asked(&path[..=at], call) => {
                return self.given(Role::Unknown, path, at, value);
            }
            Role::Report => return ends(Sink::Log, format!("an argument of {callee}")),
            Role::Log if self.does_more(path, at, value, false) => return Next::Done,
            Role::Log => return ends(Sink::Log, format!("an argument of {callee}")),
            Role::Compute => return ends(Sink::Compute, format!("an argument of {callee}")),
            Role::Device => return ends(Sink::Device, format!("an argument of {callee} on the device")),
            Role::Rate => return ends(Sink::Rate, format!("what {callee} sets the learning rate by")),
            Role::Key => return ends(Sink::Index, format!("a key for {callee}")),
            Role::Decide(what) => return ends(Sink::BRANCH, format!("{what} ({callee})")),
            Role::Size => return sized(path, at, &callee),
            Role::Neutral => return Next::Done,
            Role::Track | Role::Keep | Role::Unknown => return self.given(role, path, at, value),
            Role::Text => value.becomes_text(),
            // No known tensor operation has that name.
            Role::Through if value.bulk && is_numpys_own(self.file, call) => {
                return ends(Sink::Compute, format!("an argument of {callee}"));
            }
            Role::Through => through(self.file, call, node.range(), value),
        }
        Next::Up(path.len() - 1 - at)
    }

    /// A meter, a container or a function gets the value: only its definition tells what becomes of it.
    fn given(&mut self, role: Role, path: &[Node<'a>], at: usize, value: &mut Value) -> Next {
        let (Node::ExprCall(call), above) = (path[at], &path[..path.len() - 1]) else { return Next::Done };
        match role {
            // The method is at hand and does more with the value than readers of the meter do.
            Role::Track if self.does_more(path, at, value, true) => {}
            Role::Track => self.tracked(path, at, value),
            // A method of the file by that name is followed there; arrays are in no set.
            Role::Keep
                if !(is_array(value) && nodes::name(&call.func) == "add")
                    && self.method_called(above, call).is_none()
                    && self.object_abroad(above, call).is_none() =>
            {
                self.keep(path, at, value);
            }
            Role::Keep if self.is_meter(above, call) => self.tracked(path, at, value),
            _ => return self.handed(path, at, value).map_or(Next::Done, Next::Up),
        }
        Next::Done
    }
}

/// Whether the call at the end of `path` is made for what a call around it shows: `writer.add_image("x", plot(v))`.
fn is_for_log(path: &[Node<'_>], bulk: bool) -> bool {
    let within = path.iter().rposition(|node| node.is_statement() || matches!(node, Node::ExprLambda(_)));
    let mut calls = (within.unwrap_or(0)..path.len() - 1).filter(|&at| matches!(path[at], Node::ExprCall(_)));
    calls.any(|at| roles::role(&path[..=at], nodes::range(path), bulk) == Role::Log)
}

/// Whether a class keeps a mean by its sum and count: an `AverageMeter`, whatever it is called.
fn is_average(objects: &Objects<'_>, class: &Path<'_>) -> bool {
    let keeps = |names| has_field(class, names);
    keeps(Fact::SumField)
        && keeps(Fact::CountField)
        && (keeps(Fact::MeanField) || objects.method(class, "avg").is_some())
}

fn has_field(class: &[Node<'_>], fact: Fact) -> bool {
    nodes::any(class, &mut |path| {
        nodes::attribute(path)
            .is_some_and(|ast| dotted(&ast.value) == "self" && facts::name(&ast.attr).is(fact))
    })
}

/// Whether the call is of a NumPy function whose name no known tensor operation has.
fn is_numpys_own(file: &Source, call: &ExprCall) -> bool {
    let full = full_callee(file, call);
    let (module, function) = split_callee(&full);
    facts::module(nodes::root(module)).is(Fact::Numpy) && facts::name(function) == Facts::default()
}

fn mode(opened: &Expr) -> Option<&str> {
    let call = opened.as_call_expr().filter(|call| nodes::name(&call.func) == "open")?;
    string(call.arguments.find_argument_value("mode", 1)?)
}

/// A size, or the bound of a loop: `for i in range(n)`.
fn sized(path: &[Node<'_>], call: usize, callee: &str) -> Next {
    let above = nodes::last(&path[..call]);
    if callee == "range" && matches!(above, Some(Node::StmtFor(_) | Node::Comprehension(_))) {
        return ends(Sink::BRANCH, "the bound of a loop");
    }
    ends(Sink::Size, format!("a size for {callee}"))
}

/// What a host function makes of its argument at `at`: `enumerate` pairs it with a number, `zip` with other things.
fn through(file: &Source, call: &ExprCall, at: TextRange, value: &mut Value) {
    // The containers tell whether it is a figure, before they are gone.
    value.figure = value.is_figure();
    let callee = dotted(&call.func);
    let (base, name) = split_callee(&callee);
    match (base, name) {
        (_, name) if facts::name(name).is(Fact::Dict) && !base.starts_with("torch") => {
            match nodes::keyword(call, at) {
                Some(keyword) => {
                    value.steps.extend(keyword.arg.as_ref().map(|name| Step::Key(name.to_string())))
                }
                // The second of a pair is the value.
                None if matches!(value.steps[..], [.., Step::Index(1), Step::Index(_) | Step::Any]) => {
                    value.steps.truncate(value.steps.len() - 2);
                    value.steps.push(Step::Entry);
                }
                None => {}
            }
        }
        ("", "sorted") | (_, "deepcopy" | "copy") => {}
        ("", name) if facts::name(name).is(Fact::Wrap) => {}
        ("", "enumerate") => {
            value.bulk &= value.steps.pop().is_some();
            value.steps.extend([Step::Index(1), Step::Any]);
        }
        ("", "zip") => {
            let position = call.arguments.args.iter().position(|argument| within(at, argument));
            let starred = position.is_some_and(|position| call.arguments.args[position].is_starred_expr());
            // `zip(*columns)`: the place among the columns is the place in each row.
            let row = if starred { value.steps.pop() } else { position.map(Step::Index) };
            value.bulk &= value.steps.pop().is_some();
            value.steps.extend([row.unwrap_or(Step::Any), Step::Any]);
        }
        (_, name) if facts::name(name).any(&[Fact::Number, Fact::Total, Fact::Reduce, Fact::Mean]) => {
            value.summed |= !value.steps.is_empty() && !facts::name(name).is(Fact::Number);
            value.steps.clear();
            // Along a dimension an array stays one; the builtins take none.
            if base.is_empty() || !nodes::along(call, 1) {
                (value.bulk, value.data) = (false, false);
            }
        }
        _ => value.steps.clear(),
    }
    value.joined |= value.bulk && joins(name, call);
    let array = facts::module(nodes::root(&full_callee(file, call))).is(Fact::Numpy) || makes_tensor(name);
    value.arrays |= array;
    // NumPy's numbers have the methods of arrays, and tables those of tables.
    value.number &= !array && !matches!(base, "pd" | "pandas");
}
