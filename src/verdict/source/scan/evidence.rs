//! Expressions that wait, and the certainty that they do.

use super::heat::{Heats, is_step};
use crate::model::lint::{Certainty, Heat};
use crate::python::facts::{self, Fact};
use crate::python::parse::{
    Given, Node, Source, dotted, flag, full_callee, last, nodes, scope, split_callee, string,
};
use crate::verdict::source::infer::{Here, Placement, device_name, is_array, sinks};
use crate::verdict::source::judge::stores_number;
use crate::verdict::source::locate::{Index, SyncExpr, formatted, guesses, tested};
use ruff_python_ast::{CmpOp, Expr, ExprCall};

use Certainty::{Certain, Probable};
use Placement::{Device, Host, Unknown};

#[derive(Clone, Copy, Debug)]
pub struct Wait<'a> {
    pub sync: SyncExpr<'a>,
    pub certainty: Certainty,
}

/// The file imports PyTorch or a library over it, or moves something to the GPU.
pub fn works_with_tensors(file: &Source) -> bool {
    let over_torch = |name: &str| {
        let root = nodes::root(name);
        root.contains("torch") || facts::module(root).is(Fact::Framework)
    };
    let imports = nodes::any(&[file.module()], &mut |path| match last(path) {
        Some(Node::StmtImport(ast)) => ast.names.iter().any(|alias| over_torch(&alias.name)),
        Some(Node::StmtImportFrom(ast)) => ast.module.as_ref().is_some_and(|name| over_torch(name)),
        _ => false,
    });
    imports || file.whole().contains(".cuda()")
}

/// Whether nothing below the last node counts: the text of an error is made once, and tests assert.
pub fn is_passed_over(path: &[Node<'_>]) -> bool {
    let text = |node: Node<'_>| matches!(nodes::above(path, 1), Some(Node::StmtAssert(ast)) if ast.msg.as_ref().is_some_and(|text| nodes::within(node, &**text)));
    last(path).is_some_and(|node| match node {
        Node::StmtRaise(_) => true,
        Node::StmtAssert(_) => nodes::function_name(path).starts_with("test"),
        node => node.is_expression() && text(node),
    })
}

/// Whether a node is code of a data set, which loads on the host: it waits only where it says so.
fn loads(node: Node<'_>) -> bool {
    let data = |name: &str| name.ends_with("Dataset") || name.ends_with("Sampler");
    match node {
        Node::StmtClassDef(ast) => ast.bases().iter().any(|base| data(nodes::name(base))),
        Node::StmtFunctionDef(ast) => {
            ast.name.contains("collate") || &ast.name == "__getitem__" || &ast.name == "__repr__"
        }
        _ => false,
    }
}

/// The wait of the last node of a path, as its text shows it; `None` where the node does not wait, or only may.
pub fn of<'a>(here: Here<'_, 'a>, heats: &Heats<'_>) -> Option<Wait<'a>> {
    let mut guesses = guesses(here);
    // The answer is a Python value: a test or a text asks nothing more of it.
    let answers =
        |sync| matches!(sync, SyncExpr::Same(_) | SyncExpr::Bool | SyncExpr::Item | SyncExpr::Convert(_));
    if guesses.iter().any(|(sync, strength)| answers(*sync) && *strength > 1) {
        guesses.retain(|(sync, _)| answers(*sync));
    }
    let found = guesses.into_iter().filter_map(|(sync, strength)| {
        let (sync, certainty) = Look { here, heats }.at(sync, strength)?;
        Some(Wait { sync, certainty })
    });
    let says = |sync| matches!(sync, SyncExpr::Move(..) | SyncExpr::Create(_) | SyncExpr::Explicit);
    let wait = found.min_by_key(|wait| wait.certainty)?;
    Some(wait).filter(|wait| says(wait.sync) || !here.path.iter().any(|node| loads(*node)))
}

struct Look<'c, 'a> {
    here: Here<'c, 'a>,
    heats: &'c Heats<'c>,
}

impl<'a> Look<'_, 'a> {
    fn at(&self, sync: SyncExpr<'a>, strength: u8) -> Option<(SyncExpr<'a>, Certainty)> {
        let path = self.here.path;
        let (call, plain) = (nodes::call(path), strength == 3);
        let certainty = match sync {
            SyncExpr::Truth => self.truth(tested(path)?)?,
            SyncExpr::Format => self.shown(formatted(path)?)?,
            SyncExpr::Contains => self.contains()?,
            SyncExpr::Index { what, store } => {
                let certainty = self.index(what, store)?;
                let what = if what == Index::Name { Index::List } else { what };
                return Some((SyncExpr::Index { what, store }, certainty));
            }
            SyncExpr::Item => self.read(nodes::receiver(call?)?)?,
            SyncExpr::ToList => self.listed(nodes::receiver(call?)?)?,
            SyncExpr::Download(name) => self.download(name, call?)?,
            SyncExpr::Move("copy_", _) if plain || strength > 0 => return self.copied(call?),
            SyncExpr::Move("to", Unknown) if plain => {
                let certainty = self.upload(call?).filter(|_| self.names_device(call))?;
                return Some((SyncExpr::Move("to", Device), certainty.max(Probable)));
            }
            SyncExpr::Move("to" | "cuda", Device) if plain => self.upload(call?)?,
            SyncExpr::Create(name) => self.created(name, call?)?,
            SyncExpr::Elements if strength > 0 => self.elements(call?.arguments.args.first()?)?,
            SyncExpr::Convert("math") => self.given(call?).filter(|_| !self.is_numpy(call))?,
            SyncExpr::Convert("round") => return None,
            SyncExpr::SizeArgument if strength == 0 => return None,
            SyncExpr::Convert(_) | SyncExpr::Bool | SyncExpr::Order | SyncExpr::SizeArgument => {
                self.given(call?)?
            }
            SyncExpr::Same(_) | SyncExpr::Check(_) | SyncExpr::Shape(_) if plain => self.computed(call?)?,
            SyncExpr::SchedulerStep => self.given(call?)?,
            SyncExpr::ClipGrad | SyncExpr::EmptyCache if plain => Certain,
            SyncExpr::ScalerStep | SyncExpr::GetScale | SyncExpr::Barrier | SyncExpr::Save => Probable,
            SyncExpr::Explicit => self.explicit(call?),
            _ => return None,
        };
        Some((sync, certainty))
    }

    fn find(&self, expr: &'a Expr) -> Placement {
        self.here.find(expr)
    }

    fn certain(&self, expr: &'a Expr) -> Option<Certainty> {
        (self.find(expr) == Device).then_some(Certain)
    }

    /// A tensor of the device by itself: a list of tensors has a length, which Python asks for.
    fn alone(&self, expr: &'a Expr) -> Option<Certainty> {
        self.certain(expr).filter(|_| !self.is_container(expr))
    }

    /// A test by Python of a device tensor, or of `any()` or `all()` in a file without arrays.
    fn truth(&self, expr: &'a Expr) -> Option<Certainty> {
        let asks = |call: &ExprCall| matches!(nodes::name(&call.func), "all" | "any" | "isfinite");
        let answer = expr.as_call_expr().filter(|call| asks(call)).and_then(nodes::receiver);
        let unknown = |tensor: &&'a Expr| {
            !self.has_arrays() && self.find(tensor) == Unknown && !self.is_imported(tensor)
        };
        self.alone(expr).or_else(|| answer.filter(unknown).map(|_| Probable))
    }

    /// Text of a tensor that is made at once: meters and loggers of values make text later, or never.
    fn shown(&self, expr: &'a Expr) -> Option<Certainty> {
        let call = self.here.path.iter().rev().skip(1).take(3).find_map(|node| node.expr_call());
        let name = call.map_or("", |call| nodes::name(&call.func));
        let text = matches!(name, "print" | "str" | "repr" | "format")
            || matches!(name, "info" | "debug" | "warning" | "error");
        let inside = !matches!(
            nodes::above(self.here.path, 1),
            Some(Node::Arguments(_) | Node::Keyword(_) | Node::ExprDict(_) | Node::ExprList(_))
        );
        self.certain(expr).filter(|_| text || inside)
    }

    fn has_arrays(&self) -> bool {
        let file = self.here.file();
        ["np", "numpy", "pd", "pandas"].iter().any(|name| file.imported(name).is_some())
    }

    fn is_imported(&self, expr: &Expr) -> bool {
        self.here.file().imported(nodes::root(&dotted(expr))).is_some()
    }

    /// By the device's name, wherever it is set.
    fn names_device(&self, call: Option<&'a ExprCall>) -> bool {
        let name = call.and_then(device).map_or("", nodes::name);
        device_name(name) == Device
    }

    fn is_container(&self, expr: &'a Expr) -> bool {
        let makes = |value: &Expr| {
            matches!(value, Expr::List(_) | Expr::Tuple(_) | Expr::ListComp(_) | Expr::Dict(_) | Expr::Set(_))
                || value.as_call_expr().is_some_and(|call| {
                    facts::name(nodes::name(&call.func)).any(&[Fact::Container, Fact::Dict])
                })
        };
        let given =
            |store: &nodes::Path<'a>| matches!(scope::given(store), Given::Value(value) if makes(value));
        makes(expr)
            || expr.as_name_expr().is_some_and(|name| scope::reaching(self.here.path, name).iter().any(given))
    }

    fn given(&self, call: &'a ExprCall) -> Option<Certainty> {
        call.arguments.args.iter().find_map(|argument| self.certain(argument))
    }

    fn is_numpy(&self, call: Option<&ExprCall>) -> bool {
        call.is_some_and(|call| full_callee(self.here.file(), call).starts_with("numpy"))
    }

    fn contains(&self) -> Option<Certainty> {
        let Some(Node::ExprCompare(ast)) = last(self.here.path) else { return None };
        let asked =
            ast.ops.iter().zip(&ast.comparators).filter(|(op, _)| matches!(op, CmpOp::In | CmpOp::NotIn));
        let text = string(&ast.left).is_some();
        asked.filter(|_| !text).find_map(|(_, whole)| self.alone(whole))
    }

    /// A method that only tensors and arrays have.
    fn read(&self, tensor: &'a Expr) -> Option<Certainty> {
        let of_arrays = || facts::module(nodes::root(&dotted(tensor))).is(Fact::HostFromHost);
        match self.find(tensor) {
            Device => Some(Certain),
            Unknown => Some(Probable).filter(|_| !of_arrays()),
            Host => None,
        }
    }

    /// Arrays and tables have the method as well: in a file with them, the name must speak for a tensor.
    fn listed(&self, tensor: &'a Expr) -> Option<Certainty> {
        let arrays = self.has_arrays() || self.heats.of_path(self.here.path) == Heat::Once;
        let speaks = || dotted(tensor).split('.').any(|name| sinks::has_word(name, Fact::TensorWord));
        self.read(tensor).filter(|certainty| *certainty == Certain || !arrays || speaks())
    }

    fn download(&self, name: &str, call: &'a ExprCall) -> Option<Certainty> {
        let tensor = nodes::receiver(call)?;
        // An array of a device tensor raises an error.
        if name == "numpy" || flag(call, "non_blocking") || self.is_module(tensor) {
            return None;
        }
        self.read(tensor)
    }

    /// `a.copy_(b)` between the device and the host.
    fn copied(&self, call: &'a ExprCall) -> Option<(SyncExpr<'a>, Certainty)> {
        let place = match (self.find(nodes::receiver(call)?), self.find(call.arguments.args.first()?)) {
            (Device, Host) => Device,
            (Host, Device) => Host,
            _ => return None,
        };
        Some((SyncExpr::Move("copy_", place), Certain))
    }

    /// `x.to(device)` of what the host made, or a loop gives; all else may be there already.
    fn upload(&self, call: &'a ExprCall) -> Option<Certainty> {
        let moved = nodes::receiver(call)?;
        if self.is_module(moved) {
            return None;
        }
        if self.find(moved) == Host {
            return Some(Certain);
        }
        let hot = self.heats.of_path(self.here.path) != Heat::Once;
        (hot && !self.is_beside_tensor(call) && self.is_loaded(moved)).then_some(Probable)
    }

    /// Whether the named device is another tensor's, which may be on the host as well.
    fn is_beside_tensor(&self, call: &ExprCall) -> bool {
        device(call).and_then(Expr::as_attribute_expr).is_some_and(|ast| {
            let owner = nodes::name(&ast.value);
            ast.attr.as_str() == "device"
                && !facts::module(owner).is(Fact::Settings)
                && !matches!(owner, "self" | "accelerator" | "model")
        })
    }

    /// Whether an expression comes from a loop over a loader, or is named like what does.
    fn is_loaded(&self, expr: &'a Expr) -> bool {
        let Expr::Name(name) = innermost(expr) else { return false };
        let stores = scope::reaching(self.here.path, name);
        let from_loop = |store: &nodes::Path<'a>| match scope::given(store) {
            Given::Iterated(_) => scope::gone_through(store)
                .is_some_and(|all| !matches!(innermost(all), Expr::Name(one) if one.id == "self")),
            Given::Value(value) | Given::Element(value) => {
                matches!(value, Expr::Call(call) if nodes::name(&call.func) == "next")
            }
            Given::Other => false,
        };
        let function = nodes::function_name(self.here.path);
        let said = sinks::has_word(&name.id, Fact::Loaded) || function.contains("train") || is_step(function);
        stores.iter().any(from_loop)
            || function != "forward" && said && scope::is_parameter(self.here.path, &name.id)
    }

    /// Whether an expression is a model, which is moved once, as a whole.
    fn is_module(&self, expr: &'a Expr) -> bool {
        let named =
            |name: &str| sinks::has_word(name, Fact::Net) || name.to_ascii_lowercase().ends_with("net");
        let makes = |value: &Expr| {
            value.as_call_expr().is_some_and(|call| {
                let name = nodes::name(&call.func);
                name == "from_pretrained"
                    || named(name)
                    || name.starts_with(char::is_uppercase) && !name.ends_with("Tensor") && name != "Variable"
            })
        };
        let given =
            |store: &nodes::Path<'a>| matches!(scope::given(store), Given::Value(value) if makes(value));
        match expr {
            Expr::Name(name) => named(&name.id) || scope::reaching(self.here.path, name).iter().any(given),
            Expr::Attribute(ast) => named(&ast.attr),
            _ => makes(expr),
        }
    }

    fn created(&self, name: &str, call: &'a ExprCall) -> Option<Certainty> {
        let data = call.arguments.args.first()?;
        let certainty = match name {
            "new_tensor" => self.read(nodes::receiver(call)?)?,
            "legacy_tensor" if !data.is_list_expr() => return None,
            "legacy_tensor" => Certain,
            _ if self.is_beside_tensor(call) => Probable,
            _ if self.here.device_argument(call) == Some(Device) => Certain,
            _ if self.names_device(Some(call)) && call.arguments.find_keyword("device").is_some() => Probable,
            _ => return None,
        };
        match self.find(data) {
            Host => Some(certainty),
            Unknown => Some(Probable),
            Device => None,
        }
    }

    fn elements(&self, data: &'a Expr) -> Option<Certainty> {
        self.certain(data).filter(|_| self.is_container(data))
    }

    fn index(&self, what: Index, store: bool) -> Option<Certainty> {
        let Some(Node::ExprSubscript(ast)) = last(self.here.path) else { return None };
        let base = self.find(&ast.value);
        let each = nodes::elements(&ast.slice);
        let on_device = |expr: &'a Expr| self.find(expr) == Device;
        match what {
            // A number stored through a mask is filled in, without a count.
            Index::Mask if store && each.len() == 1 && stores_number(self.here.path) => None,
            Index::Mask => {
                (base != Host && (base == Device || each.iter().any(on_device))).then_some(Certain)
            }
            Index::List | Index::Name => {
                let (file, path) = (self.here.file(), self.here.path);
                let list = |expr: &Expr| match expr {
                    Expr::BinOp(ast) => ast.right.is_list_expr() || ast.left.is_list_expr(),
                    _ => expr.is_list_expr() || expr.is_list_comp_expr(),
                };
                let several = |expr: &'a Expr| list(expr) || is_array(file, path, expr);
                (base == Device && each.iter().any(several)).then_some(Certain)
            }
            Index::Slice => nodes::bounds(&ast.slice).any(on_device).then_some(Certain),
            Index::Constant => None,
        }
    }

    /// A PyTorch function, or a method of a device value. Of an unknown value, a method that arrays lack, in
    /// a file without arrays.
    fn computed(&self, call: &'a ExprCall) -> Option<Certainty> {
        let callee = dotted(&call.func);
        let (base, name) = split_callee(&callee);
        let torch =
            facts::module(base).is(Fact::Torch) || full_callee(self.here.file(), call).starts_with("torch.");
        let (tensor, rest) = match torch {
            true => (call.arguments.args.first()?, call.arguments.args.get(1)),
            false => (nodes::receiver(call)?, call.arguments.args.first()),
        };
        // A Python number as the repeats needs no read.
        if name == "repeat_interleave" && !rest.is_some_and(|repeats| self.find(repeats) == Device) {
            return None;
        }
        match self.find(tensor) {
            Device => Some(Certain),
            Unknown if torch => Some(Probable),
            Unknown if !self.is_imported(&call.func) => self.listed(tensor),
            _ => None,
        }
    }

    fn explicit(&self, call: &'a ExprCall) -> Certainty {
        let callee = full_callee(self.here.file(), call).to_ascii_lowercase();
        let known = ["torch", "cuda", "stream", "event"].iter().any(|word| callee.contains(word));
        if known { Certain } else { Probable }
    }
}

fn device(call: &ExprCall) -> Option<&Expr> {
    call.arguments.find_argument_value("device", 0)
}

/// `batch` of `batch["x"].float()`.
fn innermost(expr: &Expr) -> &Expr {
    match expr {
        Expr::Call(call) => nodes::receiver(call).map_or(expr, innermost),
        Expr::Attribute(ast) => innermost(&ast.value),
        Expr::Subscript(ast) => innermost(&ast.value),
        _ => expr,
    }
}
