//! A guess at where a value lives, from the text alone: on the host, on the device, or no idea.

use super::libraries::*;
use super::made::unformed;
use super::objects::Objects;
use crate::python::facts::{self, Fact};
use crate::python::parse::{Given, Node, Source, dotted, nodes, scope, split_callee, string};
use ruff_python_ast::{CmpOp, Expr, ExprCall, ExprGenerator, ExprListComp, ExprName, Operator, UnaryOp};
use ruff_text_size::Ranged;
use std::cell::Cell;

/// Where a value lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// A Python or NumPy value or a CPU tensor.
    Host,
    /// A tensor on the device.
    Device,
    Unknown,
}
use Placement::{Device, Host, Unknown};

/// Names looked up per call site before the answer is `Unknown`.
const BUDGET: u32 = 60;

/// Answers for one file; names are followed to their bindings in the same file.
pub struct Placements<'a> {
    pub file: &'a Source,
    budget: Cell<u32>,
}

/// A node of a file, and what the file's text says of the values around it.
#[derive(Clone, Copy)]
pub struct Here<'p, 'a> {
    pub placements: &'p Placements<'a>,
    /// Path of the node.
    pub path: &'p [Node<'a>],
}

impl<'a> Here<'_, 'a> {
    pub fn file(self) -> &'a Source {
        self.placements.file
    }

    /// Text of an expression or another node on one line.
    pub fn text(self, node: impl Ranged) -> String {
        self.placements.file.text(node)
    }

    /// See [`Placements::find`].
    pub fn find(self, expr: &'a Expr) -> Placement {
        self.placements.find(expr, self.path)
    }

    /// See [`Placements::device_argument`].
    pub fn device_argument(self, call: &'a ExprCall) -> Option<Placement> {
        self.placements.device_argument(call, self.path)
    }
}

/// Whether a member of a tensor, asked as an attribute or called, tells nothing of what the tensor holds: `x.shape`, `x.dim()`,
/// `x.type()` without arguments.
pub fn tells_form(name: &str, call: Option<&ExprCall>) -> bool {
    match call {
        None => facts::name(name).is(Fact::Layout),
        Some(call) => facts::name(name).is(Fact::Layout) || name == "type" && call.arguments.is_empty(),
    }
}

/// Whether a call sends what `name` names to a device: `x.to(device)`, `x.cuda()`.
pub fn sends(call: &ExprCall, name: &str) -> bool {
    nodes::receiver(call).and_then(Expr::as_name_expr).is_some_and(|ast| ast.id == name)
        && matches!(nodes::name(&call.func), "to" | "cuda")
}

/// Whether a field is moved that a module has had, unchanged, since it was made: `self.table` of `self.table.expand(b, -1)`.
pub fn is_kept<'a>(here: Here<'_, 'a>, moved: &'a Expr) -> bool {
    let expanded = moved.as_call_expr().filter(|call| nodes::name(&call.func) == "expand");
    let moved = expanded.and_then(nodes::receiver).unwrap_or(moved);
    Objects::new(here.file()).is_kept(unformed(moved), here.path)
}

/// Place that a device argument names.
pub fn device_text(text: &str) -> Placement {
    match text {
        t if t == "cpu" || t.starts_with("cpu:") => Host,
        t if ["cuda", "hip", "xpu"].iter().any(|device| t.starts_with(device)) => Device,
        _ => Unknown,
    }
}

impl<'a> Placements<'a> {
    pub fn new(file: &'a Source) -> Self {
        Self { file, budget: Cell::new(BUDGET) }
    }

    /// Where the value of `expr` lives; `around` is a path that ends at or above it, for its scope.
    pub fn find(&self, expr: &'a Expr, around: &[Node<'a>]) -> Placement {
        self.guess(expr, around, 0)
    }

    fn guess(&self, expr: &'a Expr, around: &[Node<'a>], depth: u8) -> Placement {
        if depth > 12 {
            return Unknown;
        }
        let sub = |expr: &'a Expr| self.guess(expr, around, depth + 1);
        match expr {
            Expr::Name(name) => self.name(name, around, depth),
            Expr::Call(call) => self.call(call, around, depth),
            Expr::Attribute(ast) => match ast.attr.as_str() {
                "grad" => Device,
                attr if facts::name(attr).is(Fact::Layout) => Host,
                attr if facts::name(attr).keeps_elements() || facts::name(attr).is(Fact::Each) => {
                    sub(&ast.value)
                }
                _ if facts::module(nodes::name(&ast.value)).is(Fact::Settings) => Host,
                _ => Unknown,
            },
            Expr::Subscript(ast) => sub(&ast.value),
            Expr::BinOp(ast) if ast.op == Operator::Mod && string(&ast.left).is_some() => Host,
            Expr::BinOp(ast) => operands(sub(&ast.left), sub(&ast.right)),
            Expr::UnaryOp(ast) if ast.op == UnaryOp::Not => Host,
            Expr::UnaryOp(ast) => sub(&ast.operand),
            Expr::BoolOp(ast) => ast.values.iter().map(sub).reduce(same).unwrap_or(Unknown),
            Expr::Compare(ast) if ast.ops.iter().any(gives_bool) => Host,
            Expr::Compare(ast) if ast.comparators.iter().any(|e| string(e).is_some()) => Host,
            Expr::Compare(ast) => ast.comparators.iter().map(sub).fold(sub(&ast.left), operands),
            Expr::If(ast) => same(sub(&ast.body), sub(&ast.orelse)),
            Expr::Named(ast) => sub(&ast.value),
            Expr::Await(ast) => sub(&ast.value),
            Expr::Starred(ast) => sub(&ast.value),
            Expr::List(_) | Expr::Tuple(_) => {
                nodes::listed(expr).iter().map(sub).reduce(operands).unwrap_or(Host)
            }
            // The element sees the names that the comprehension binds.
            Expr::ListComp(ExprListComp { elt, .. }) | Expr::Generator(ExprGenerator { elt, .. }) => {
                self.guess(elt, &[around, &[expr.into(), (&**elt).into()]].concat(), depth + 1)
            }
            Expr::Dict(_) | Expr::Set(_) | Expr::DictComp(_) => Host,
            Expr::FString(_) | Expr::Lambda(_) | Expr::Slice(_) => Host,
            _ if expr.is_literal_expr() => Host,
            _ => Unknown,
        }
    }

    fn call(&self, call: &'a ExprCall, around: &[Node<'a>], depth: u8) -> Placement {
        let callee = dotted(&call.func);
        let (base, name) = split_callee(&callee);
        let root = nodes::root(&callee);
        let device = || self.device_argument(call, around);
        let receiver = || nodes::receiver(call).map_or(Unknown, |expr| self.guess(expr, around, depth + 1));
        if base.is_empty() && facts::name(name).is(Fact::Answer)
            || facts::name(name).is(Fact::Host)
            || facts::name(name).is(Fact::Layout)
        {
            return Host;
        }
        let arguments = || {
            let values = call.arguments.args.iter().map(|argument| self.guess(argument, around, depth + 1));
            values.reduce(operands).unwrap_or(Unknown)
        };
        let method = !base.is_empty() && !facts::module(base).is(Fact::Torch);
        match name {
            _ if base.is_empty() && facts::name(name).is(Fact::Through) => {
                return arguments();
            }
            "cuda" => return Device,
            "to" => return device().unwrap_or_else(receiver),
            "from_numpy" => return Host,
            _ if method && facts::name(name).is(Fact::Tensor) && facts::name(name).stays() => {
                return match device().unwrap_or_else(receiver) {
                    Unknown => Device,
                    known => known,
                };
            }
            _ if method && facts::name(name).stays() && !facts::module(base).is(Fact::Numpy) => {
                return receiver();
            }
            _ => {}
        }
        match root {
            "torch" if base == "torch.cuda" && name.ends_with("Tensor") => Device,
            "torch" if base.starts_with("torch.cuda") || base.starts_with("torch.distributed") => Host,
            root if facts::module(root).is(Fact::Torch) && facts::name(name).is(Fact::Stateless) => Host,
            "torch"
                if makes_tensor(name) || facts::name(name).is(Fact::Make) || tensor_dtype(name).is_some() =>
            {
                let text = self.file.whole();
                let moved = text.contains("set_default_tensor_type") || text.contains("set_default_device");
                device().unwrap_or(if moved { Unknown } else { Host })
            }
            "torch" if facts::name(name).is(Fact::Join) => self.gathered(call, around, depth),
            root if facts::module(root).is(Fact::Torch) && arguments() != Host => Device,
            root if gives_host_values(root) => Host,
            _ => Unknown,
        }
    }

    /// Tensors joined into one: those of the host stay there, unless the list of them was empty at first and got others.
    fn gathered(&self, call: &'a ExprCall, around: &[Node<'a>], depth: u8) -> Placement {
        let Some(list) = call.arguments.args.first() else { return Unknown };
        if let Expr::Name(name) = list
            && let Some((Expr::List(made), _)) = self.binding(name, around)
            && made.elts.is_empty()
        {
            let appended = scope::mentions(around, &name.id);
            let mut given = appended.iter().filter_map(|read| {
                let (call, _) = nodes::method_of(&read.path).filter(|(_, method)| *method == "append")?;
                Some(self.guess(call.arguments.args.first()?, &read.path, depth + 2))
            });
            return if given.any(|nature| nature != Host) { Device } else { Unknown };
        }
        if self.guess(list, around, depth + 1) == Host { Unknown } else { Device }
    }

    /// The place that a call's `device=` or first positional argument names: `None` where it names none.
    pub fn device_argument(&self, call: &'a ExprCall, around: &[Node<'a>]) -> Option<Placement> {
        let keyword = call.arguments.find_keyword("device").map(|keyword| &keyword.value);
        let positional = || call.arguments.args.first().filter(|_| nodes::name(&call.func) == "to");
        keyword.or_else(positional).and_then(|expr| self.device(expr, around, 0))
    }

    /// The place that an expression used as a device names; `None` for a dtype or another tensor.
    fn device(&self, expr: &'a Expr, around: &[Node<'a>], depth: u8) -> Option<Placement> {
        match expr {
            Expr::StringLiteral(literal) => Some(device_text(literal.value.to_str())),
            Expr::NumberLiteral(_) => Some(Device),
            Expr::FString(_) => {
                Some(device_text(self.file.text(expr).trim_start_matches(['f', 'F', '"', '\''])))
            }
            Expr::Call(call) if dotted(&call.func).ends_with("device") => {
                let named = call.arguments.args.first();
                named.and_then(|argument| self.device(argument, around, depth + 1)).or(Some(Unknown))
            }
            Expr::If(ast) => self.device(&ast.body, around, depth + 1),
            Expr::Attribute(ast) if names_dtype(&ast.attr) => None,
            Expr::Name(name) if name.id.contains("dtype") => None,
            Expr::Name(name) => {
                let bound = if depth < 4 { self.binding(name, around) } else { None };
                let known = bound.and_then(|(value, place)| self.device(value, &place, depth + 1));
                Some(known.unwrap_or_else(|| device_name(name.id.as_str())))
            }
            Expr::Attribute(ast) => Some(device_name(ast.attr.as_str())),
            _ => Some(Unknown),
        }
    }

    /// The only expression that a name is assigned, with the place of the assignment.
    fn binding(&self, name: &'a ExprName, around: &[Node<'a>]) -> Option<(&'a Expr, Vec<Node<'a>>)> {
        self.spend()?;
        let owner = scope::owner(around, &name.id);
        let stores = scope::occurrences(&owner, &name.id).into_iter().filter(|o| o.store && !o.closure);
        scope::value(nodes::only(stores)?.path)
    }

    fn name(&self, name: &'a ExprName, around: &[Node<'a>], depth: u8) -> Placement {
        if self.spend().is_none() {
            return Unknown;
        }
        let owner = scope::owner(around, &name.id);
        if let Some(annotated) = annotation(&owner, &name.id) {
            return annotated;
        }
        let all = scope::occurrences(&owner, &name.id);
        let given = |path: &[Node<'a>]| {
            let of = |value: &'a Expr| self.guess(value, path, depth + 2);
            match scope::given(path) {
                Given::Value(value) => of(value),
                // A tuple of unlike things.
                Given::Element(value) => match of(value) {
                    Host if value.is_tuple_expr() => Unknown,
                    other => other,
                },
                Given::Iterated(_) => scope::gone_through(path).map_or(Host, of),
                Given::Other => Unknown,
            }
        };
        let stores = all.iter().filter(|o| o.store && !o.closure);
        let mut bound = stores.map(|store| given(&store.path)).reduce(same);
        // `count = 0`, and then `count += (a == b).sum()`: a tensor of the device from there on.
        for added in all.iter().filter(|o| !o.store && !o.load && !o.closure) {
            if let Some(Node::StmtAugAssign(ast)) = nodes::above(&added.path, 1) {
                let nature = self.guess(&ast.value, &added.path, depth + 2);
                bound = bound.map(|known| operands(known, nature));
            }
        }
        match bound {
            Some(Unknown) | None if all.iter().any(|o| o.load && used_as_tensor(&o.path)) => Device,
            Some(nature) => nature,
            None => Unknown,
        }
    }

    fn spend(&self) -> Option<()> {
        self.budget.set(self.budget.get().checked_sub(1)?);
        Some(())
    }
}

/// Whether a comparison gives true or false, whatever its operands are.
fn gives_bool(op: &CmpOp) -> bool {
    matches!(op, CmpOp::Is | CmpOp::IsNot | CmpOp::In | CmpOp::NotIn)
}

fn names_dtype(attribute: &str) -> bool {
    facts::name(attribute).is(Fact::Type)
        || ["float", "int", "type"].iter().any(|word| attribute.contains(word))
}

/// What a variable called so usually names: `device`, `local_rank`, `gpu` the GPU; `cpu`, `cpu_device` the host.
fn device_name(name: &str) -> Placement {
    let name = name.to_ascii_lowercase();
    match () {
        _ if name.contains("cpu") || name.contains("host") => Host,
        _ if ["dev", "cuda", "gpu", "rank"].iter().any(|word| name.contains(word)) => Device,
        _ => Unknown,
    }
}

/// Where a parameter's annotation says it lives.
fn annotation(owner: &[Node<'_>], name: &str) -> Option<Placement> {
    let annotation = scope::parameter(owner, name)?.annotation()?;
    match split_callee(&dotted(annotation)).1 {
        declared if facts::name(declared).is(Fact::HostType) => Some(Host),
        _ => None,
    }
}

/// Whether a read of a name treats it as only tensors are: `x.detach()`, `x.abs().max().item()`, `F.relu(x)`.
fn used_as_tensor(path: &[Node<'_>]) -> bool {
    let mut end = path.len();
    while let Some((_, method)) = nodes::method_of(&path[..end]) {
        if facts::name(method).is(Fact::Tensor) || !facts::name(method).stays() {
            return facts::name(method).is(Fact::Tensor);
        }
        end -= 2;
    }
    is_input(path)
}

/// Whether the last node is what a function of a module of torch works on: its first argument. Those of torch itself take sizes too.
fn is_input(path: &[Node<'_>]) -> bool {
    nodes::argument_of(path).is_some_and(|call| {
        let first = call.arguments.args.first().map(Ranged::range);
        let module = nodes::receiver(call).map(dotted).unwrap_or_default();
        module != "torch" && facts::module(&module).is(Fact::Torch) && first == Some(nodes::range(path))
    })
}

/// Arithmetic: one operand on the device puts the result there.
fn operands(a: Placement, b: Placement) -> Placement {
    if a == Device || b == Device { Device } else { same(a, b) }
}

/// One value or the other.
fn same(a: Placement, b: Placement) -> Placement {
    if a == b { a } else { Unknown }
}
