//! The values that a name may have: all that the file gives it, through parameters to the calls in the file.

use crate::python::facts::{self, Fact};
use crate::python::parse::{
    Given, Node, Source, Valued, argument_for, dotted, full_callee, nodes, scope, split_callee,
};
use crate::verdict::source::infer::{Objects, Placement, changes, device_text, sends};
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

/// Names followed, one after the other.
const MAX_STEPS: u8 = 5;

/// All values that a name or an attribute may have; `None` where one is unknown.
///
/// Definition: the values that assignments give; of a parameter, those that all calls of its function in the
/// file pass. A function that is not called here, or is handed on, may get anything.
/// Cost: a walk over the file for each name.
fn values<'a>(file: &'a Source, expr: &'a Expr, path: &[Node<'a>]) -> Option<Vec<Valued<'a>>> {
    if let Expr::Name(name) = expr
        && scope::is_parameter(path, &name.id)
    {
        let owner = scope::owner(path, &name.id);
        return passed(file, &owner, &name.id);
    }
    let values = Objects::new(file).values_of(expr, path);
    (!values.is_empty()).then_some(values)
}

/// The values that calls of a plain function give to a parameter that nothing else binds.
fn passed<'a>(file: &'a Source, owner: &[Node<'a>], name: &str) -> Option<Vec<Valued<'a>>> {
    let function = nodes::function(owner)?;
    let rebound = scope::stores(owner, name).next().is_some();
    let method = matches!(nodes::above(owner, 1), Some(Node::StmtClassDef(_)));
    if rebound || method || !function.decorator_list.is_empty() {
        return None;
    }
    function.parameters.find(name)?;
    let passed = nodes::named(file.module(), &function.name).into_iter().map(|mut path| {
        path.pop();
        let call = nodes::call(&path).filter(|call| !nodes::unpacks(call))?;
        Some((argument_for(owner, call, name)?, path))
    });
    let values: Vec<Valued<'a>> = passed.collect::<Option<_>>()?;
    (!values.is_empty()).then_some(values)
}

/// Whether a device expression surely names the GPU, or its stand-in as long as the program runs:
/// `torch.device("cuda" if torch.cuda.is_available() else "cpu")`.
pub fn names_gpu<'a>(file: &'a Source, expr: &'a Expr, path: &[Node<'a>]) -> bool {
    fixed(file, expr, path, 0) == Some(true)
}

/// Whether the GPU is among the devices of an expression; `None` where constants do not tell all of them.
fn fixed<'a>(file: &'a Source, expr: &'a Expr, path: &[Node<'a>], steps: u8) -> Option<bool> {
    let sub = |expr: &'a Expr, path: &[Node<'a>]| fixed(file, expr, path, steps + 1);
    match expr {
        _ if steps > MAX_STEPS => None,
        Expr::StringLiteral(text) => Some(device_text(text.value.to_str()) == Placement::Device),
        Expr::FString(_) => {
            let text = file.slice(expr.range()).trim_start_matches(['f', 'F', '"', '\'']);
            text.starts_with("cuda").then_some(true)
        }
        Expr::NumberLiteral(_) => Some(true),
        Expr::If(ast) => Some(sub(&ast.body, path)? | sub(&ast.orelse, path)?),
        Expr::Call(call) => match full_callee(file, call).as_str() {
            "torch.device" => sub(call.arguments.args.first()?, path),
            "torch.cuda.current_device" | "torch.accelerator.current_accelerator" => Some(true),
            _ => None,
        },
        Expr::Name(_) | Expr::Attribute(_) => values(file, expr, path)?
            .iter()
            .try_fold(false, |gpu, (value, place)| Some(gpu | sub(value, place)?)),
        _ => None,
    }
}

/// The loop whose iterations give a name that is uploaded at the end of `path`: only uploads bind it besides.
///
/// ```text
/// for i, (x, y) in enumerate(loader):     the loop
///     x = x.to(device)                    the upload
/// ```
pub fn iterated<'a>(expr: &'a Expr, path: &[Node<'a>]) -> Option<Valued<'a>> {
    let Expr::Name(name) = expr else { return None };
    let occurrences = scope::mentions(path, &name.id);
    if occurrences.iter().any(|one| !one.load && !one.store || is_written(&one.path)) {
        return None;
    }
    let statement = path[nodes::statement(path)?].range();
    let sent = |one: &scope::Occurrence<'a>| {
        // In another branch: `x = x.cuda(0)`.
        let Given::Value(Expr::Call(call)) = scope::given(&one.path) else { return false };
        sends(call, &name.id)
    };
    let others = occurrences
        .into_iter()
        .filter(|one| one.store && !nodes::within(nodes::range(&one.path), statement) && !sent(one));
    let first = nodes::only(others)?;
    let Given::Iterated(source) = scope::given(&first.path) else { return None };
    match source {
        Expr::Call(call) if dotted(&call.func) == "enumerate" => {
            Some((call.arguments.args.first()?, first.path))
        }
        source => Some((source, first.path)),
    }
}

/// Whether an occurrence may write to the tensor, or gives it another name: `x.clamp_(0)`, `x[i] = v`,
/// `f_(x)`, `out=x`, an array of its memory, `y = x`.
fn is_written(path: &[Node<'_>]) -> bool {
    changes(path)
        || match path {
            [.., Node::ExprAttribute(ast), _] => facts::name(&ast.attr).is(Fact::Share),
            [.., Node::StmtAssign(ast), name] => ast.value.range() == name.range(),
            _ => false,
        }
}

/// The calls that make an expression's data loaders; `None` where it may be something else.
pub fn loaders<'a>(file: &'a Source, expr: &'a Expr, path: &[Node<'a>]) -> Option<Vec<&'a ExprCall>> {
    let mut found: Vec<&ExprCall> = Vec::new();
    let mut open = vec![(expr, path.to_vec(), 0)];
    while let Some((expr, path, steps)) = open.pop() {
        match expr {
            _ if steps > MAX_STEPS => return None,
            Expr::Call(call) => {
                let full = full_callee(file, call);
                if !full.starts_with("torch.utils.data") || split_callee(&full).1 != "DataLoader" {
                    return None;
                }
                if !found.iter().any(|known| known.range() == call.range()) {
                    found.push(call);
                }
            }
            _ => {
                let values = values(file, expr, &path)?.into_iter().rev();
                open.extend(values.map(|(value, place)| (value, place, steps + 1)));
            }
        }
    }
    Some(found)
}
