//! Meters of the file that are told numbers: told tensors instead, they read the GPU where they are shown.

use super::sums::item_as;
use super::text::insert;
use super::{METER, Subject, Written};
use crate::model::edit::{Refusal, Replacement};
use crate::verdict::source::infer::{Objects, SETTINGS, TORCH, function_of, sinks};
use crate::verdict::source::parse::{Import, Node, Path, Source, dotted, last, nodes, scope, string, within};
use ruff_python_ast::helpers::is_docstring_stmt;
use ruff_python_ast::{
    Expr, ExprAttribute, ExprCall, ExprContext, ExprName, Operator, Stmt, StmtFunctionDef,
};
use ruff_text_size::Ranged;

/// `losses.update(loss.item(), n)` with a tensor.
///
/// Definition: the meter is a local of a class of the file whose method only adds up and divides; what it keeps is read to be
/// formatted, to be a number of something (`float(…)`), or from this meter, where `float(…)` is written around. The
/// meter is handed to nothing but classes and functions of the file, which then read it likewise.
///
/// ```text
/// losses.update(loss.item(), len(x))       losses.update(loss.detach().double().squeeze(), len(x))
/// if i % 100 == 0: print(losses)           if i % 100 == 0: print(losses)
/// return losses.avg                        return float(losses.avg)
/// ```
/// Cost: one walk over the file.
pub fn told<'a>(s: Subject<'_, 'a>, call: &'a ExprCall) -> Option<Written> {
    let Node::StmtExpr(stmt) = s.here.path[nodes::statement(s.here.path)?] else { return None };
    let telling = stmt.value.as_call_expr()?;
    let position = telling.arguments.args.iter().position(|value| value.range() == call.range())?;
    let name = nodes::receiver(telling)?.as_name_expr()?;
    let meter = Meter::of(s, name, telling, position)?;
    let replacements = meter.replacements(s).ok_or(Refusal::Meter).and_then(|mut all| {
        all.push(item_as(s.here.file().whole(), call, "detach().double().squeeze()").ok_or(Refusal::Form)?);
        Ok(all)
    });
    Some(Written::new(&METER, None, replacements))
}

struct Meter<'a> {
    name: &'a ExprName,
    /// The scope that the name is a local of.
    owner: Path<'a>,
    class: Path<'a>,
    method: &'a StmtFunctionDef,
    /// The parameter that gets the value.
    told: &'a str,
    objects: Objects<'a>,
}

impl<'a> Meter<'a> {
    fn of(s: Subject<'_, 'a>, name: &'a ExprName, telling: &ExprCall, position: usize) -> Option<Self> {
        let objects = Objects::new(s.here.file());
        let owner = scope::owner(s.here.path, &name.id);
        let only = nodes::only(scope::stores(&owner, &name.id)).filter(|_| owner.len() > 1)?;
        let (Expr::Call(made), _) = scope::value(only)? else { return None };
        let class = objects.class_named(&made.func.as_name_expr()?.id)?;
        let ast = nodes::class(&class)?;
        let plain = ast.decorator_list.is_empty()
            && ast.keywords().is_empty()
            && ast.bases().iter().all(|base| dotted(base) == "object")
            && !telling.arguments.args.iter().any(Expr::is_starred_expr)
            && !asks_by_name(s.here.file());
        let method = objects.method(&class, nodes::name(&telling.func))?;
        let method = nodes::function(&method).filter(|ast| plain && ast.decorator_list.is_empty())?;
        let told = method.parameters.iter_non_variadic_params().nth(position + 1)?.name().as_str();
        Some(Self { name, owner, class, method, told, objects })
    }

    fn replacements(&self, s: Subject<'_, 'a>) -> Option<Vec<Replacement>> {
        let file = s.here.file();
        let kept = self.kept(file)?;
        let uses = scope::occurrences(&self.owner, &self.name.id);
        if !uses.iter().filter(|one| one.load).all(|one| self.is_ours(file, &one.path)) {
            return None;
        }
        let reads = nodes::find(&[file.module()], &mut |path| {
            nodes::attribute(path).is_some_and(|ast| {
                ast.ctx == ExprContext::Load && (kept.contains(&&*ast.attr) || &*ast.attr == "__dict__")
            })
        });
        let mut made = Vec::new();
        for read in &reads {
            let ast = nodes::attribute(read)?;
            let this = ast.value.as_name_expr().is_some_and(|name| {
                name.id == self.name.id
                    && nodes::range(&scope::owner(read, &name.id)) == nodes::range(&self.owner)
            });
            // Numbers are not called: that is a method of the same name.
            let called = matches!(nodes::above(read, 1), Some(Node::ExprCall(_)));
            match self.objects.class_of(&ast.value, read) {
                Some(class) if nodes::range(&class) != nodes::range(&self.class) => {}
                None if Import::of(file, &dotted(&ast.value)).is_some() => {}
                _ if called || is_number_of(read) || self.is_computed(read) => {}
                // Of another meter of the class, which is told what it was.
                Some(_) if !this && is_local(&ast.value, read) => {}
                _ if this && &*ast.attr != "__dict__" => {
                    made.extend([insert(ast.start(), "float("), insert(ast.end(), ")")]);
                }
                _ => return None,
            }
        }
        Some(made)
    }

    /// The attributes that hold something of what the method is told; `None` where it does something else than compute them.
    fn kept(&self, file: &Source) -> Option<Vec<&'a str>> {
        let mut kept: Vec<&str> = Vec::new();
        // As often as one may follow from another.
        for _ in 0..=self.method.body.len() {
            for stmt in &self.method.body {
                if is_docstring_stmt(stmt) {
                    continue;
                }
                let (target, value) = assigned(stmt.into())?;
                let attribute = own(target)?;
                let mut holds = false;
                computes(value, &mut |name, of_self| {
                    holds |= if of_self { kept.contains(&name) } else { name == self.told };
                })?;
                if holds && !kept.contains(&attribute) {
                    kept.push(attribute);
                }
            }
        }
        let odd = ["getattr", "vars(", "!r", "!s", "%s"];
        let text = file.slice(nodes::range(&self.class));
        let plain = !odd.iter().any(|word| text.contains(word)) && !self.is_shared(&kept);
        (plain && !kept.is_empty()).then_some(kept)
    }

    /// Whether one of these attributes is the same tensor as something else: what is added to it would be added there too.
    fn is_shared(&self, kept: &[&str]) -> bool {
        let added = |target: &Expr| {
            let mut added = self.method.body.iter().filter_map(Stmt::as_aug_assign_stmt);
            let name = own(target).filter(|name| kept.contains(name));
            name.is_some() && added.any(|ast| own(&ast.target) == name)
        };
        nodes::any(&self.class, &mut |path| {
            let Some(Node::StmtAssign(ast)) = last(path) else { return false };
            let bare = matches!(&*ast.value, Expr::Name(_) | Expr::Attribute(_));
            bare && ast.targets.iter().any(added) || added(&ast.value)
        })
    }

    /// Whether a read of the meter's name asks it for something, or hands it to code of this file.
    fn is_ours(&self, file: &Source, path: &[Node<'a>]) -> bool {
        let mut end = path.len() - 1;
        if matches!(path[end - 1], Node::ExprAttribute(_)) {
            return true;
        }
        while matches!(path[end - 1], Node::ExprList(_) | Node::ExprTuple(_) | Node::Keyword(_)) {
            end -= 1;
        }
        let [.., Node::ExprCall(call), Node::Arguments(_)] = path[..end] else { return false };
        let Some(callee) = call.func.as_name_expr() else { return false };
        sinks::SHOW_OBJECTS.has(&callee.id)
            || self.objects.class_named(&callee.id).is_some()
            || !scope::functions(file.module(), &callee.id).is_empty()
    }

    /// Whether a read of an attribute is part of an assignment to one of the same object that only computes.
    fn is_computed(&self, path: &[Node<'a>]) -> bool {
        let Some((target, value)) = nodes::statement(path).and_then(|at| assigned(path[at])) else {
            return false;
        };
        // What that attribute holds then is found where the method computes it too.
        let name = own(target);
        let known = || {
            self.method.body.iter().any(|stmt| match stmt {
                Stmt::Assign(ast) => ast.targets.iter().any(|target| own(target) == name),
                Stmt::AugAssign(ast) => own(&ast.target) == name,
                _ => false,
            })
        };
        within(nodes::range(path), nodes::range(&self.class))
            && computes(value, &mut |_, _| ()).is_some()
            && name.is_some()
            && known()
    }
}

/// Whether the file asks objects for attributes by their names as text: `getattr(meter, name)`, `vars(meter)`.
fn asks_by_name(file: &Source) -> bool {
    let asks = |call: &ExprCall| {
        let name = call.arguments.args.first().and_then(Expr::as_name_expr);
        let theirs = |name: &ExprName| {
            SETTINGS.has(&name.id) || name.id == "self" || Import::of(file, &name.id).is_some()
        };
        matches!(&*dotted(&call.func), "getattr" | "vars") && !name.is_some_and(theirs)
    };
    nodes::any_call(&[file.module()], &asks)
}

/// Whether an expression is a name that its scope gives a value.
fn is_local(expr: &Expr, path: &[Node<'_>]) -> bool {
    let name = expr.as_name_expr().filter(|name| name.id != "self");
    name.is_some_and(|name| !scope::is_parameter(path, &name.id))
}

/// The attribute of `self.NAME`.
fn own(expr: &Expr) -> Option<&str> {
    let ExprAttribute { value, attr, .. } = expr.as_attribute_expr()?;
    (dotted(value) == "self").then_some(attr.as_str())
}

/// What a statement assigns to, and what is assigned or added to it.
fn assigned<'a>(stmt: Node<'a>) -> Option<(&'a Expr, &'a Expr)> {
    match stmt {
        Node::StmtAssign(ast) => Some((nodes::only(&ast.targets)?, &ast.value)),
        Node::StmtAugAssign(ast) if is_arithmetic(ast.op) => Some((&ast.target, &ast.value)),
        _ => None,
    }
}

const fn is_arithmetic(op: Operator) -> bool {
    matches!(op, Operator::Add | Operator::Sub | Operator::Mult | Operator::Div)
}

/// Names each name and attribute of `self` that an expression adds, multiplies or divides; `None` where it does something else.
fn computes<'a>(expr: &'a Expr, found: &mut dyn FnMut(&'a str, bool)) -> Option<()> {
    match expr {
        Expr::NumberLiteral(_) => {}
        Expr::Name(name) => found(&name.id, false),
        Expr::Attribute(_) => found(own(expr)?, true),
        Expr::BinOp(ast) if is_arithmetic(ast.op) => {
            computes(&ast.left, found)?;
            computes(&ast.right, found)?;
        }
        _ => return None,
    }
    Some(())
}

/// Whether a value becomes text in a format of numbers, or an element of a new tensor: those take a tensor of one number alike.
fn is_number_of(path: &[Node<'_>]) -> bool {
    let by_text = |value: &Expr| string(value).is_some() || value.is_name_expr();
    let named = |call: &ExprCall| match nodes::name(&call.func) {
        "format" => nodes::receiver(call).is_some_and(by_text),
        name => name == "float",
    };
    match path {
        [.., Node::InterpolatedElement(ast), _] => ast.conversion.is_none(),
        [.., Node::ExprCall(call), Node::Arguments(_), _]
        | [.., Node::ExprCall(call), Node::Arguments(_), Node::Keyword(_), _] => named(call),
        [.., Node::ExprCall(call), Node::Arguments(_), Node::ExprList(_), _] => {
            function_of(call, TORCH) == Some("tensor")
        }
        _ => false,
    }
}
