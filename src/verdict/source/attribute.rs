//! Following a value that an attribute holds: to the reads of the attribute anywhere in the file, and through methods that only
//! hand it out to those who ask them.

use super::flow::Tracer;
use super::nodes::{self, Node, Path, dotted, last, split_callee, within};
use super::objects::Whose;
use super::sinks;
use super::value::{Fate, Sink, Value};
use ruff_python_ast::{Decorator, Expr, ExprAttribute, ExprContext};
use ruff_text_size::Ranged;

impl<'a> Tracer<'a, '_> {
    /// An attribute holds the value: follow its reads.
    ///
    /// Definition: a read is ours if its object is of the same class (or called by the same name); one whose object is not known
    /// can only leave the question open, unless it shows the value; one of another class's object is none. What a method returns
    /// goes to the callers of that method, one level. Where nothing reads the attribute, whoever else may is not in this file.
    ///
    /// ```text
    /// self.trend = 0.9 * self.trend + 0.1 * v   # in Task.feed
    /// def ready(self): return self.trend < 0.2  # ours, returned: its callers
    /// if self.task.ready(): …                   # `self.task = Task()`: ours, a branch
    /// ```
    /// Cost: one walk over the file, and one for each method that hands it out.
    pub(super) fn attribute(&mut self, path: &[Node<'a>], target: &'a ExprAttribute, value: Value) {
        let name = self.file.text(target);
        if !self.seen.insert((target.range, name.clone())) {
            return;
        }
        let value = value.named(name.clone());
        let before = self.fates.len();
        for (read, whose) in self.reads_of(path, target) {
            let own = self.fates.len();
            self.follow(&read, value.clone());
            let fates = self.fates.split_off(own);
            self.elsewhere(path, &read, fates, whose);
        }
        if self.fates.len() == before {
            let recorded = match recorder(path) {
                Some(function) => Some(format!("kept in `{name}` by {function}")),
                None => value.text.then(|| format!("kept as text in `{name}`")),
            };
            let Some(what) = recorded else {
                return self.sink(path, &value, Sink::Stored, format!("stored in `{name}`"));
            };
            self.sink(path, &value, Sink::Log, what);
            if let Some(fate) = self.fates.last_mut() {
                fate.limit = RECORDED;
            }
        }
    }

    /// The reads of the attribute that `target` at the end of `path` assigns or changes, with whose they are.
    fn reads_of(&self, path: &[Node<'a>], target: &'a ExprAttribute) -> Vec<(Path<'a>, Whose)> {
        let class = self.objects.class_of(&target.value, path);
        let base = dotted(&target.value);
        let reads = nodes::find(&path[..1], &mut |path| {
            matches!(last(path), Some(Node::ExprAttribute(ast))
                if ast.ctx == ExprContext::Load && ast.attr.as_str() == target.attr.as_str() && ast.range != target.range)
        });
        let whose = |read: &Path<'a>| {
            let Some(Node::ExprAttribute(ast)) = last(read) else { return Whose::Theirs };
            let called = matches!(read.len().checked_sub(2).map(|at| read[at]),
                Some(Node::ExprCall(call)) if within(ast, &*call.func));
            let own = dotted(&ast.value) == base && function(read) == function(path);
            match () {
                // Numbers and containers are not called: that is a method of the same name.
                _ if called => Whose::Theirs,
                _ if own => Whose::Ours,
                _ => self.objects.whose(&ast.value, read, class.as_ref(), split_callee(&base).1),
            }
        };
        let reads = reads.into_iter().map(|read| (whose(&read), read));
        reads.filter(|(whose, _)| *whose != Whose::Theirs).map(|(whose, read)| (read, whose)).collect()
    }

    /// Takes the fates of one read of an attribute that `path` assigns.
    fn elsewhere(&mut self, path: &[Node<'a>], read: &Path<'a>, fates: Vec<Fate>, whose: Whose) {
        for mut fate in fates {
            let away = function(read) != function(path);
            if fate.sink == Sink::Returned && away {
                // The callers in the trace are those of the function that read the value, not of another that returns it.
                let handed = whose == Whose::Ours && self.handed_out(read, &fate);
                if handed {
                    continue;
                }
                fate.sink = Sink::Stored;
            }
            match whose {
                Whose::Unclear if is_shown(&fate.sink) => continue,
                Whose::Unclear => fate.sink = Sink::Stored,
                _ => {}
            }
            self.fates.push(fate);
        }
    }

    /// Follows what the method around `read` returns to its callers in the file; false where there are none to be found.
    fn handed_out(&mut self, read: &Path<'a>, returned: &Fate) -> bool {
        let at = nodes::function_scope(read);
        let Node::StmtFunctionDef(ast) = read[at] else { return false };
        let name = ast.name.as_str();
        if name.starts_with("__") {
            return false;
        }
        if !self.seen.insert((ast.range, format!("{name}()"))) {
            return true;
        }
        let class = nodes::class_scope(&read[..=at]).map(|at| read[..=at].to_vec());
        let property = ast.decorator_list.iter().any(is_property);
        let uses = nodes::find(&read[..1], &mut |path| match last(path) {
            Some(Node::ExprAttribute(ast)) => property && ast.attr.as_str() == name,
            Some(Node::ExprCall(call)) => !property && split_callee(&dotted(&call.func)).1 == name,
            _ => false,
        });
        let mut found = false;
        for used in uses.iter().filter(|used| function(used) != ast.range) {
            let whose = match (last(used), &class) {
                (Some(Node::ExprAttribute(ast)), Some(_)) => {
                    self.objects.whose(&ast.value, used, class.as_ref(), "?")
                }
                (Some(Node::ExprCall(call)), class) => match (&*call.func, class) {
                    (Expr::Attribute(ast), Some(_)) => {
                        self.objects.whose(&ast.value, used, class.as_ref(), "?")
                    }
                    (Expr::Name(_), None) => Whose::Ours,
                    _ => Whose::Theirs,
                },
                _ => Whose::Theirs,
            };
            if whose == Whose::Theirs {
                continue;
            }
            found = true;
            let own = self.fates.len();
            self.follow(used, returned.value.clone().named(format!("{name}()")));
            for fate in &mut self.fates[own..] {
                if whose == Whose::Unclear || fate.sink == Sink::Returned {
                    fate.sink = Sink::Stored;
                }
            }
        }
        found
    }
}

/// Whether a use only shows the value: whoever's it is, it says nothing against its being shown.
fn is_shown(sink: &Sink) -> bool {
    matches!(sink, Sink::Log | Sink::Error | Sink::Dropped)
}

/// How sure it is that text, and what a method called like a logger's keeps, is only shown: others may read it.
const RECORDED: f64 = 0.75;

/// The function around, if its name says that it records what it is given: `add_scalar`, `log_metrics`, `set_postfix`.
fn recorder<'a>(path: &[Node<'a>]) -> Option<&'a str> {
    match path[nodes::function_scope(path)] {
        Node::StmtFunctionDef(ast) if sinks::is_log_name(&ast.name) => Some(ast.name.as_str()),
        _ => None,
    }
}

fn function(path: &[Node<'_>]) -> ruff_text_size::TextRange {
    path[nodes::function_scope(path)].range()
}

/// Whether a decorator makes a method a property.
pub fn is_property(decorator: &Decorator) -> bool {
    dotted(&decorator.expression).ends_with("property")
}
