//! Values that a loop reads one by one to add up or to list: kept on the GPU, and read once.

use super::join::imports_torch;
use super::text::{beside, insert, replace};
use super::{COLLECTED, KEPT, WaitingExpr, Written};
use crate::model::edit::{Refusal, Replacement};
use crate::python::facts::{self, Fact};
use crate::python::parse::{Node, Occurrence, Path, Source, dotted, nodes, scope, within};
use crate::verdict::source::flow::conditions;
use crate::verdict::source::infer::{Here, Placement};
use ruff_python_ast::{Expr, ExprCall, ExprName, Operator};
use ruff_text_size::{Ranged, TextRange, TextSize};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `total += v.item()`.
    Sum,
    /// `all.append(v.item())`, `all += [v.item()]`.
    List,
}

/// Keeps on the GPU what a loop collects.
///
/// Definition: the loop's only change of a local that starts as a number or an empty list. The value goes
/// there at once, or by a name that nothing else reads. A sum stays a tensor of float64, as exact as
/// Python's. A list holds copies, because the tensor may be written to before the list is read. Both are read
/// right after the loop, and in place under conditions that hold now and then.
///
/// ```text
/// total = 0                                total = 0
/// for x in xs:                             for x in xs:
///     total += f(x).item()                     total += f(x).detach().double()
///     if i % 100 == 0: print(total)            if i % 100 == 0: print(float(total))
/// print(total / n)                         total = float(total)
///                                          print(total / n)
/// ```
/// Cost: one walk over the scope of the name.
pub fn collected<'a>(s: WaitingExpr<'_, 'a>, call: &'a ExprCall, shown: Option<String>) -> Option<Written> {
    let named = carried(s.here.path, call);
    let here = Here { path: named.as_deref().unwrap_or(s.here.path), ..s.here };
    let (name, form) = target(here)?;
    let way = if form == Form::Sum { &KEPT } else { &COLLECTED };
    let collected = Collected::of(here, name, form).ok_or(Refusal::Form);
    Some(Written::new(way, shown, collected.and_then(|collected| collected.replacements(s, call))))
}

/// The only read of the name that the statement gives the value: `v = loss.item()`.
fn carried<'a>(path: &[Node<'a>], call: &ExprCall) -> Option<Path<'a>> {
    let Node::StmtAssign(ast) = path[nodes::statement(path)?] else { return None };
    let [Expr::Name(name)] = &*ast.targets else { return None };
    let owner = scope::owner(path, &name.id);
    let mut all = scope::occurrences(&owner, &name.id).into_iter();
    let (first, read) = (all.next()?, all.next()?);
    let plain = owner.len() > 1 && first.store && read.load && !read.closure && all.next().is_none();
    (plain && ast.value.range() == call.range()).then_some(read.path)
}

/// The name that the statement adds the value at the end of the path to.
fn target<'a>(here: Here<'_, 'a>) -> Option<(&'a ExprName, Form)> {
    let value = nodes::range(here.path);
    let own = |expr: &Expr| expr.range() == value;
    let host = |expr: &'a Expr| here.find(expr) == Placement::Host;
    match here.path[nodes::statement(here.path)?] {
        Node::StmtAugAssign(ast) if ast.op == Operator::Add => {
            let form = match &*ast.value {
                // A multiple of the value: as exact on the GPU.
                Expr::BinOp(product) if product.op == Operator::Mult => {
                    let whole = own(&product.left) && host(&product.right)
                        || own(&product.right) && host(&product.left);
                    whole.then_some(Form::Sum)
                }
                Expr::List(list) => list.elts.iter().all(own).then_some(Form::List),
                value => own(value).then_some(Form::Sum),
            };
            Some((ast.target.as_name_expr()?, form?))
        }
        Node::StmtExpr(ast) => {
            let append = ast.value.as_call_expr().filter(|append| nodes::name(&append.func) == "append")?;
            let [value] = &*append.arguments.args else { return None };
            own(value).then_some((nodes::receiver(append)?.as_name_expr()?, Form::List))
        }
        _ => None,
    }
}

struct Collected<'a> {
    name: &'a str,
    form: Form,
    own: TextRange,
    all: Vec<Occurrence<'a>>,
    /// The outermost loop that the name enters empty.
    around: TextRange,
}

impl<'a> Collected<'a> {
    fn of(here: Here<'_, 'a>, name: &'a ExprName, form: Form) -> Option<Self> {
        let path = here.path;
        let at = nodes::statement(path)?;
        let owner = scope::owner(path, &name.id);
        let all = scope::occurrences(&owner, &name.id);
        let starts = || all.iter().filter(|one| one.store).map(|one| &one.path);
        let first = starts().next()?;
        // Loops that do not hold the first assignment.
        let outside = |node: &&Node<'a>| nodes::is_loop(**node) && !within(nodes::range(first), **node);
        let inner = &path[owner.len() - 1..at];
        let around = inner.iter().find(outside)?.range();
        let empty = |value: &Expr| match form {
            Form::Sum => value.is_number_literal_expr(),
            Form::List => value.as_list_expr().is_some_and(|list| list.elts.is_empty()),
        };
        let fresh = starts().all(|start| scope::value(start.clone()).is_some_and(|(value, _)| empty(value)));
        let local = all.iter().all(|one| !one.closure) && scope::parameter(&owner, &name.id).is_none();
        // A handler of an error would find the tensors.
        let tried = inner.iter().any(|node| matches!(node, Node::StmtTry(_)));
        let known = form == Form::Sum || imports_torch(here);
        let before = nodes::range(first).start() < around.start();
        let own = path[at].range();
        (before && fresh && local && known && !tried).then_some(Self {
            name: &name.id,
            form,
            own,
            all,
            around,
        })
    }

    fn replacements(&self, s: WaitingExpr<'_, 'a>, call: &ExprCall) -> Result<Vec<Replacement>, Refusal> {
        let file = s.here.file();
        let (mut made, mut behind) = (Vec::new(), false);
        for one in self.all.iter().filter(|one| !within(nodes::range(&one.path), self.own)) {
            let at = nodes::range(&one.path);
            let changes = !one.load && !one.store;
            match () {
                _ if at.start() < self.around.start() && !one.store => return Err(Refusal::Form),
                _ if at.start() >= self.around.end() => behind |= one.load || changes,
                _ if one.store || asks_length(&one.path) || clears(&one.path) => {}
                _ if changes => return Err(Refusal::Form),
                _ if self.is_rare(&one.path) && (self.form == Form::Sum || looks(&one.path)) => {
                    made.push(replace(at, self.read(&one.path)))
                }
                // A read in each iteration saves nothing.
                _ => return Err(Refusal::OnCpu),
            }
        }
        if behind {
            made.push(self.read_behind(file).ok_or(Refusal::Form)?);
        }
        let keep = if self.form == Form::Sum { "detach().double()" } else { "detach().clone()" };
        made.push(item_as(file.whole(), call, keep).ok_or(Refusal::Form)?);
        Ok(made)
    }

    /// Whether a read is under a condition that holds now and then, and the collecting is not.
    fn is_rare(&self, path: &[Node<'_>]) -> bool {
        let rare = conditions::rare(path).map(|ast| ast.range);
        rare.is_some_and(|rare| within(rare, self.around) && !within(self.own, rare))
    }

    /// A line after the loop that reads what was collected.
    fn read_behind(&self, file: &Source) -> Option<Replacement> {
        let (indent, rest, _) = beside(file, self.around);
        // Neither `for x in xs: total += x.item(); print(x)`, nor a last line without an end.
        let plain = indent.trim().is_empty() && rest.ends_with('\n') && !rest.contains(';');
        let break_ = if rest.ends_with("\r\n") { "\r\n" } else { "\n" };
        let at = self.around.end() + TextSize::of(rest);
        plain.then(|| insert(at, format!("{indent}{} = {}{break_}", self.name, self.numbers())))
    }

    fn numbers(&self) -> String {
        let name = self.name;
        match self.form {
            Form::Sum => format!("float({name})"),
            Form::List => format!("torch.stack({name}).flatten().tolist() if {name} else []"),
        }
    }

    /// `numbers`, in place of the name at the end of a path.
    fn read(&self, path: &[Node<'_>]) -> String {
        let alone = matches!(path, [.., Node::Arguments(ast), _] if ast.len() == 1);
        if self.form == Form::Sum || alone { self.numbers() } else { format!("({})", self.numbers()) }
    }
}

/// Whether a list is read for its numbers, not kept under another name, which would see later additions.
fn looks(path: &[Node<'_>]) -> bool {
    match path {
        [.., Node::ExprCall(call), Node::Arguments(_), _] => takes_numbers(nodes::name(&call.func)),
        [.., Node::Comprehension(ast), list] => within(*list, &ast.iter),
        [.., Node::ExprSubscript(ast), list] => ast.ctx.is_load() && within(*list, &*ast.value),
        [.., Node::InterpolatedElement(_), _] => true,
        _ => false,
    }
}

fn asks_length(path: &[Node<'_>]) -> bool {
    nodes::argument_of(path).is_some_and(|call| dotted(&call.func) == "len")
}

/// Whether a statement of its own empties a list: names read from the list before hold numbers.
fn clears(path: &[Node<'_>]) -> bool {
    matches!(path, [.., Node::StmtExpr(_), Node::ExprCall(_), Node::ExprAttribute(ast), _] if ast.attr.as_str() == "clear")
}

/// `.item()` as another method.
pub fn item_as(text: &str, call: &ExprCall, keep: &str) -> Option<Replacement> {
    let method = call.func.as_attribute_expr()?;
    let between = text.get(method.value.end().to_usize()..method.attr.start().to_usize())?;
    let dot = between.rfind('.')?;
    let start = method.value.end() + TextSize::of(&between[..=dot]);
    Some(replace(TextRange::new(start, call.end()), keep))
}

/// Whether a function reads a list for its numbers, and does not keep the list.
fn takes_numbers(function: &str) -> bool {
    let facts = facts::name(function);
    facts::is_pure(function) || facts.any(&[Fact::Mean, Fact::Data, Fact::JoinArrays, Fact::Text, Fact::Log])
}
