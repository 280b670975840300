//! Following a value that the CPU read to what becomes of it.

use super::conditions::{self, is_about_nan, is_asserted, is_guard, is_type_tested};
use super::device::{carried, combined, multiplies};
use super::program::Files;
use super::value::{Next, Sink, Step, Use, Value, What, constant_step, element, ends};
use crate::python::facts::{self, Fact};
use crate::python::parse::{Node, Source, dotted, nodes, string, within};
use crate::verdict::source::infer::{Objects, Placement, Placements, sinks, tells_form};
use ruff_python_ast::{
    DictItem, Expr, ExprAttribute, ExprCall, ExprContext, Operator, StmtAssign, StmtIf, UnaryOp,
};
use ruff_text_size::{Ranged, TextRange};
use std::collections::HashSet;

/// Bindings followed per value; the rest counts as unknown.
const BUDGET: usize = 60;
/// Uses of a value: each costs a look through its function. Hand-written code has fewer.
const MOST_USES: usize = 500;
/// Names and calls between the read and the use.
const MAX_HOPS: u8 = 12;

/// Follows values through one file.
///
/// Definition: from the expression that reads the device, go up the syntax tree. Arithmetic, conversions,
/// formatting and containers pass the value on. An assignment moves it to a name, whose reads that the
/// binding reaches ([`reached`](crate::python::parse::scope::reached)) are followed in turn. Attributes are
/// followed through their class, arguments through the parameter. Everything else is a sink and ends the way.
///
/// ```text
/// lossf = loss.item()               → name `lossf`
/// total = total + lossf             → name `total`, collected by the loop
/// logger.info(f"{lossf:.3f}")       → sink: Log
/// return total / n                  → sink: Returned, deferred
/// ```
/// Cost: one walk over the scope per binding followed, at most [`BUDGET`] of them.
pub struct Tracer<'a, 'n> {
    pub file: &'a Source,
    pub placements: &'n Placements<'a>,
    pub objects: Objects<'a>,
    pub uses: Vec<Use>,
    pub(super) program: Option<Files<'n>>,
    pub(super) seen: HashSet<(TextRange, String)>,
    /// The uses by which functions hand back a parameter.
    pub(super) returned: Vec<Entered>,
}

pub(super) struct Entered {
    /// (range of the function, parameter).
    pub parameter: (TextRange, String),
    /// The containers around the value in the parameter.
    pub steps: Vec<Step>,
    pub returned: Vec<Use>,
}

impl<'a, 'n> Tracer<'a, 'n> {
    /// `program`: its other files, where they may be read.
    pub fn new(placements: &'n Placements<'a>, program: Option<Files<'n>>) -> Self {
        let file = placements.file;
        let (objects, uses, seen) = (Objects::new(file), Vec::new(), HashSet::new());
        Self { file, placements, objects, uses, program, seen, returned: Vec::new() }
    }

    pub fn follow(&mut self, path: &[Node<'a>], mut value: Value) {
        if value.hops > MAX_HOPS || self.seen.len() > BUDGET {
            return self.sink(path, &value, Sink::Unknown, "a chain of names too long to follow");
        }
        if self.uses.len() > MOST_USES {
            return self.sink(path, &value, Sink::Unknown, "used in too many places to follow");
        }
        let mut end = path.len();
        while end > 1 {
            match self.step(&path[..end], &mut value) {
                Next::Up(levels) => end = end.saturating_sub(levels.max(1)),
                Next::Done => return,
                Next::End(sink, what) => return self.sink(&path[..end], &value, sink, what),
            }
        }
    }

    pub fn sink(&mut self, path: &[Node<'a>], value: &Value, sink: Sink, what: impl Into<What>) {
        let at = nodes::range(path).start();
        let deferred = value.collected.is_some_and(|collected| !collected.region.contains(at));
        let line = self.file.line_of(at);
        let away = |branch: Option<&StmtIf>| branch.is_some_and(|ast| !ast.range.contains(value.origin));
        let sink = if value.vague && sink.is_decisive() { Sink::Unknown } else { sink };
        self.uses.push(Use {
            metered: false,
            sink,
            what: what.into(),
            file: None,
            line,
            name: value.name.clone(),
            deferred,
            given: None,
            rare: away(conditions::rare(path)),
            seldom: away(conditions::under(path, conditions::takes_turns)),
            fork: conditions::fork(path),
            value: value.clone(),
        });
    }

    fn step(&mut self, path: &[Node<'a>], value: &mut Value) -> Next {
        let [.., parent, node] = path else { return Next::Done };
        let (node, above) = (*node, &path[..path.len() - 1]);
        match *parent {
            Node::InterpolatedElement(_) | Node::InterpolatedStringFormatSpec(_) => value.becomes_text(),
            Node::FString(_) | Node::ExprFString(_) | Node::ExprStarred(_) => {}
            Node::ExprAwait(_) | Node::WithItem(_) => {}
            Node::ExprUnaryOp(ast) => value.bulk &= ast.op != UnaryOp::Not,
            Node::ExprBinOp(ast) => {
                let text = ast.op == Operator::Mod && string(&ast.left).is_some();
                let other = if within(node, &*ast.left) { &ast.right } else { &ast.left };
                value.joined |= value.bulk && ast.op == Operator::MatMult;
                return self.arithmetic(path, value, (!text).then_some(&**other));
            }
            Node::ExprCompare(ast) => return self.compared(path, value, ast),
            Node::ExprBoolOp(ast) => self.and_or(path, value, ast),
            Node::ExprIf(ast) if within(node, &*ast.test) => {
                if self.chooses_words(above, value, ast) {
                    return Next::Done;
                }
                return self.branch(path, value, "the condition of an `… if … else …`");
            }
            Node::ExprIf(_) => {}
            Node::ExprNamed(ast) => {
                if let Expr::Name(name) = &*ast.target {
                    let target = [above, &[Node::from(&*ast.target)]].concat();
                    self.name(&target, &name.id, value.clone());
                }
            }
            Node::ExprTuple(_) | Node::ExprList(_) | Node::ExprSet(_) | Node::ExprDict(_) => {
                return self.container(path, value);
            }
            Node::ExprDictComp(ast) if ast.key.as_deref().is_some_and(|key| within(node, key)) => {
                return ends(Sink::Index, "a key of a dict");
            }
            Node::ExprDictComp(_) => value.steps.push(Step::Entry),
            Node::ExprListComp(_) | Node::ExprSetComp(_) | Node::ExprGenerator(_) => {
                value.steps.push(Step::Any);
            }
            Node::Comprehension(ast) if within(node, &ast.iter) => {
                return self.iterated(above, &ast.target, value);
            }
            Node::Comprehension(_) => return self.filter(path, value),
            Node::ExprLambda(_) => return returned_by_lambda(above, value),
            Node::ExprYield(_) if is_plain_function(path) => {
                value.steps.push(Step::Any);
                return ends(Sink::Returned, "yielded to whoever iterates");
            }
            Node::ExprYield(_) | Node::ExprYieldFrom(_) => {
                return ends(Sink::Unknown, "yielded to whoever iterates");
            }
            Node::ExprSlice(_) if value.text => return Next::Done,
            Node::ExprSlice(_) => return ends(Sink::Size, "the bound of a slice"),
            Node::ExprSubscript(ast) => return self.subscript(path, value, within(node, &*ast.slice)),
            Node::ExprAttribute(ast) => return self.attribute_of(path, value, ast),
            Node::Arguments(_) | Node::Keyword(_) => return self.argument(path, value),
            _ => return self.statement(path, value),
        }
        Next::Up(1)
    }

    fn iterated(&mut self, place: &[Node<'a>], target: &'a Expr, value: &Value) -> Next {
        if let Some(element) = element(value.clone()) {
            self.bind(place, target, element);
        }
        Next::Done
    }

    fn container(&mut self, path: &[Node<'a>], value: &mut Value) -> Next {
        let [.., grand, parent, node] = path else { return Next::Done };
        let position =
            |elements: &[Expr]| elements.iter().position(|element| element.range() == node.range());
        let step = match parent {
            Node::ExprTuple(ast) => {
                if matches!(grand, Node::ExprSubscript(subscript) if within(*parent, &*subscript.slice)) {
                    // The whole index counts.
                    return Next::Up(1);
                }
                position(&ast.elts).map_or(Step::Any, Step::Index)
            }
            Node::ExprList(ast) => position(&ast.elts).map_or(Step::Any, Step::Index),
            Node::ExprDict(ast) => {
                match ast.items.iter().find(|item| item.value.range() == node.range()) {
                    None => return ends(Sink::Index, "a key of a dict"),
                    // `{**metrics}` keeps the keys.
                    Some(DictItem { key: None, .. }) => return Next::Up(1),
                    Some(DictItem { key: Some(key), .. }) => {
                        string(key).map_or(Step::Entry, |key| Step::Key(key.to_owned()))
                    }
                }
            }
            _ => Step::Any,
        };
        if matches!(node, Node::ExprStarred(_)) {
            return Next::Up(1);
        }
        // A row of the run.
        value.figure |= sinks::speaks_of_run(&self.file.text(*parent));
        value.steps.push(step);
        Next::Up(1)
    }

    /// `value[…]` or `x[value]`.
    fn subscript(&mut self, path: &[Node<'a>], value: &mut Value, index: bool) -> Next {
        let Some(Node::ExprSubscript(ast)) = nodes::above(path, 1) else { return Next::Done };
        if index {
            let device = self.placements.find(&ast.value, path) == Placement::Device;
            let sink = if device { Sink::Size } else { Sink::Index };
            return ends(sink, format!("an index of `{}`", self.file.text(&*ast.value)));
        }
        if ast.ctx != ExprContext::Load {
            return Next::Done;
        }
        let chosen = match &*ast.slice {
            Expr::Slice(_) => return Next::Up(1),
            slice => constant_step(slice),
        };
        match (value.steps.pop(), chosen) {
            (Some(Step::Index(a) | Step::Field(_, Some(a))), Some(Step::Index(b))) if a != b => Next::Done,
            (Some(Step::Key(a) | Step::Field(a, _) | Step::Meter(Some(a))), Some(Step::Key(b))) if a != b => {
                Next::Done
            }
            _ => Next::Up(1),
        }
    }

    /// `value.name`, `value.method(…)`.
    fn attribute_of(&mut self, path: &[Node<'a>], value: &mut Value, ast: &'a ExprAttribute) -> Next {
        let call = nodes::call(&path[..path.len() - 2]);
        let name = ast.attr.as_str();
        let number = value.number && value.steps.is_empty();
        if !value.is_given_by(name) {
            return Next::Done;
        }
        if let Some(Step::Field(field, _)) = value.steps.last() {
            if call.is_some() {
                let what = format!("kept in an object that is asked for `.{name}()`");
                return ends(Sink::Unknown, what);
            }
            let own = field == name;
            value.steps.truncate(value.steps.len() - usize::from(own));
            return if own { Next::Up(1) } else { Next::Done };
        }
        let Some(call) = call else {
            return match name {
                // `sorted(scores, key=scores.get)`.
                "get" | "__getitem__" if is_key(nodes::above(path, 2)) => {
                    ends(Sink::BRANCH, "the key of a sort")
                }
                _ if tells_form(name, None) => Next::Done,
                // A dict whose keys are attributes.
                _ => match value.key().map(|key| key == name) {
                    Some(false) => Next::Done,
                    Some(true) => {
                        value.steps.pop();
                        Next::Up(1)
                    }
                    None => Next::Up(1),
                },
            };
        };
        if tells_form(name, Some(call)) || number && is_type_tested(path, self.file) {
            return Next::Done;
        }
        if facts::name(name).is(Fact::Export) {
            // Data or a result, or figures to look at later.
            let sink = if !value.data && value.is_figure() { Sink::Log } else { Sink::Write };
            return ends(sink, format!("written out by `.{name}()`"));
        }
        if number {
            return combined(name);
        }
        self.method_of(path, value, call, name)
    }

    fn method_of(&mut self, path: &[Node<'a>], value: &mut Value, call: &'a ExprCall, name: &str) -> Next {
        match name {
            "to" if self.placements.device_argument(call, path) == Some(Placement::Device) => {
                return carried(value);
            }
            "cuda" => return carried(value),
            _ if value.bulk && multiplies(name, call) => value.joined = true,
            "tolist" => value.tensor = false,
            "numpy" => value.arrays = true,
            "backward" => return ends(Sink::Device, "used by the backward pass"),
            _ if name == "item" || facts::name(name).any(&[Fact::Total, Fact::Reduce]) => {
                value.summed |= name != "item";
                value.steps.clear();
                // Along a dimension an array stays one.
                if name == "item" || !nodes::along(call, 0) {
                    (value.bulk, value.data) = (false, false);
                }
            }
            _ if value.steps.is_empty() => {}
            "sort" if value.data && !call.arguments.is_empty() => {
                return ends(Sink::BRANCH, "the key of a sort");
            }
            _ if facts::name(name).is(Fact::Alter) => return Next::Done,
            "keys" | "index" | "count" | "__len__" => return Next::Done,
            "values" | "items" | "get" | "pop" => {
                let key = call.arguments.args.first().and_then(constant_step);
                if matches!((value.steps.pop(), key), (Some(Step::Key(a)), Some(Step::Key(b))) if a != b) {
                    return Next::Done;
                }
                match name {
                    "values" => value.steps.push(Step::Any),
                    "items" => value.steps.extend([Step::Index(1), Step::Any]),
                    _ => {}
                }
            }
            _ => {}
        }
        Next::Up(2)
    }

    fn statement(&mut self, path: &[Node<'a>], value: &Value) -> Next {
        let [.., parent, node] = path else { return Next::Done };
        let above = &path[..path.len() - 1];
        match *parent {
            Node::StmtAssign(ast) => {
                let (sum, joins) = (reads_target(ast), joins_target(ast));
                for target in &ast.targets {
                    let value = value.clone();
                    let held = if sum || joins { value.collected(above, target, sum) } else { value };
                    self.bind(above, target, held);
                }
                Next::Done
            }
            Node::StmtAnnAssign(ast) => {
                self.bind(above, &ast.target, value.clone());
                Next::Done
            }
            Node::StmtAugAssign(ast) => {
                if !value.bulk && self.placements.find(&ast.target, above) == Placement::Device {
                    let what = format!("added to the tensor `{}`", self.file.text(&*ast.target));
                    return ends(Sink::Device, What::Joined(what));
                }
                // Lists are concatenated.
                let list = value.bulk && !value.tensor;
                let held = value.clone().collected(above, &ast.target, value.steps.is_empty() && !list);
                self.bind(above, &ast.target, held);
                Next::Done
            }
            Node::StmtFor(ast) if within(*node, &*ast.iter) => self.iterated(above, &ast.target, value),
            Node::StmtIf(_) => self.branch(path, value, "the test of an `if`"),
            Node::ElifElseClause(_) => self.branch(path, value, "the test of an `elif`"),
            Node::StmtWhile(_) => self.branch(path, value, "the test of a `while`"),
            Node::StmtMatch(_) | Node::MatchCase(_) => self.branch(path, value, "the subject of a `match`"),
            Node::StmtAssert(ast) if within(*node, &*ast.test) => self.branch(path, value, "an `assert`"),
            Node::StmtAssert(_) | Node::StmtRaise(_) => ends(Sink::Error, "the text of an error"),
            Node::StmtReturn(_) => match nodes::function_name(path) {
                "__str__" | "__repr__" | "__format__" | "extra_repr" => {
                    ends(Sink::Log, "part of how the object prints")
                }
                // Figures of a checkpoint are written now and then.
                "state_dict" if !value.data => ends(Sink::Log, "part of a checkpoint"),
                _ => ends(Sink::Returned, "returned"),
            },
            Node::StmtExpr(_) if value.name.is_none() => ends(Sink::Dropped, "thrown away"),
            // `with ctx(v) as c:` counts as handing the value on.
            Node::StmtWith(ast) => {
                let item = ast.items.iter().find(|item| within(*node, item.range));
                if let Some(target) = item.and_then(|item| item.optional_vars.as_deref()) {
                    self.bind(above, target, value.clone());
                }
                Next::Done
            }
            Node::StmtExpr(_) | Node::StmtDelete(_) => Next::Done,
            _ => ends(Sink::Unknown, UNKNOWN),
        }
    }

    /// A condition that leaves out missing or infinite values is part of computing a mean.
    fn filter(&mut self, path: &[Node<'a>], value: &Value) -> Next {
        let test = path.last().map(|node| self.file.text(node).to_ascii_lowercase()).unwrap_or_default();
        if is_about_nan(&test) || test.contains("none") {
            return Next::Done;
        }
        self.branch(path, value, "the condition of a comprehension")
    }

    /// Whether a list is empty does not depend on its elements. The look of text decides about more text.
    fn branch(&mut self, path: &[Node<'a>], value: &Value, what: &str) -> Next {
        if value.text || !value.steps.is_empty() {
            return Next::Done;
        }
        if conditions::only_shows(path) {
            return ends(Sink::Log, "whether something is shown");
        }
        let sink = Sink::Branch { guard: is_guard(path, self.file), assert: is_asserted(path) };
        ends(sink, what)
    }
}

pub(super) const UNKNOWN: &str = "used in a way that the tool does not know";

/// The lambda's result is a sort's key, a filter's test or an element that `map` gives; else the caller's.
fn returned_by_lambda(path: &[Node<'_>], value: &mut Value) -> Next {
    match nodes::argument_of(path).map_or("", |call| nodes::name(&call.func)) {
        _ if is_key(nodes::above(path, 1)) => ends(Sink::BRANCH, "the key of a sort"),
        "filter" => ends(Sink::BRANCH, "the test of a filter"),
        "map" | "tree_map" => {
            value.steps.push(Step::Any);
            Next::Up(3)
        }
        _ => ends(Sink::Returned, "returned by a lambda"),
    }
}

fn is_key(node: Option<Node<'_>>) -> bool {
    matches!(node, Some(Node::Keyword(ast)) if ast.arg.as_ref().is_some_and(|name| name == "key"))
}

/// `total = total + v`.
fn reads_target(ast: &StmtAssign) -> bool {
    let [target] = ast.targets.as_slice() else { return false };
    let Expr::BinOp(sum) = &*ast.value else { return false };
    let wanted = dotted(target);
    wanted != "?" && (dotted(&sum.left) == wanted || dotted(&sum.right) == wanted)
}

/// `all = np.append(all, part)`.
fn joins_target(ast: &StmtAssign) -> bool {
    let ([target], Expr::Call(call)) = (ast.targets.as_slice(), &*ast.value) else { return false };
    let wanted = dotted(target);
    let parts = call.arguments.args.first().map_or(&[][..], nodes::listed);
    facts::name(nodes::name(&call.func)).is(Fact::JoinArrays)
        && parts.iter().any(|part| dotted(part) == wanted)
}

/// A decorator could make something else of what the function yields.
fn is_plain_function(path: &[Node<'_>]) -> bool {
    nodes::function(nodes::function_around(path)).is_some_and(|ast| ast.decorator_list.is_empty())
}
