//! Where a value lives: on the host, on the device, or unknown. One evaluator, backwards from an expression
//! to its parts.
//!
//! Definition: an expression lives where its parts live; a name, where all values given to it live. In loops,
//! a name may be given parts of itself: the answer is then the least one that fits all expressions of such a
//! ring.
//!
//! ```text
//! total = torch.zeros(1, device="cuda")     total: device, and what the loop gives it …
//! for x in rows:
//!     total = total + x.cuda()              … lives where total lives: device
//! n = len(rows)                             host
//! ```
//! The answer does not depend on earlier questions, except for names that go through more than a hundred
//! expressions. Cost: one walk over the file for its names. Then each expression that a question reaches is
//! looked at once, those of rings a few times, and no more by later questions.

use super::facts::{self, Fact};
use super::index::Index;
use super::libraries::*;
use super::parse::{Given, Node, Path, Source, dotted, nodes, scope, split_callee, string};
use ruff_python_ast::{CmpOp, Expr, ExprCall, ExprGenerator, ExprListComp, ExprName, Operator, UnaryOp};
use ruff_text_size::Ranged;
use rustc_hash::FxHashMap;
use std::cell::{OnceCell, RefCell};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// A Python or NumPy value or a CPU tensor.
    Host,
    Device,
    /// Either.
    Unknown,
}
use Placement::{Device, Host, Unknown};

/// `None` while there is no answer.
type Sofar = Option<Placement>;

type Key = usize;

/// Depth of expressions, through names, that a question follows: deeper ones are unknown.
const MAX_DEPTH: u8 = 100;
/// Rounds after which a ring that still changes is unknown.
const MAX_ROUNDS: u8 = 8;

/// Answers for one file. Names are followed to their bindings in the same file.
pub struct Placements<'a> {
    pub file: &'a Source,
    index: OnceCell<Index<'a>>,
    known: RefCell<FxHashMap<Key, Placement>>,
    search: RefCell<Search<'a>>,
}

/// The expressions of a question, for Tarjan's algorithm for strongly connected components.
#[derive(Default)]
struct Search<'a> {
    /// Expressions being looked at, and others that depend on them, in the order reached.
    open: Vec<Open<'a>>,
    places: FxHashMap<Key, usize>,
    /// The current one, in `open`.
    at: Option<usize>,
    /// Answers so far for the ring being settled.
    ring: FxHashMap<Key, Sofar>,
    found: Vec<Key>,
    /// Something lay too deep: the answers hold for this question only.
    cut: bool,
}

struct Open<'a> {
    expr: &'a Expr,
    around: Path<'a>,
    /// The outermost open expression that this one depends on.
    low: usize,
    depth: u8,
    /// It depends on itself.
    looped: bool,
}

impl Search<'_> {
    /// Notes that the current expression depends on the open one at `place`.
    fn depends(&mut self, place: usize) {
        if let Some(at) = self.at {
            self.open[at].low = self.open[at].low.min(place);
        }
    }
}

pub fn device_text(text: &str) -> Placement {
    match text {
        t if t == "cpu" || t.starts_with("cpu:") => Host,
        t if ["cuda", "hip", "xpu"].iter().any(|device| t.starts_with(device)) => Device,
        _ => Unknown,
    }
}

impl<'a> Placements<'a> {
    pub fn new(file: &'a Source) -> Self {
        Self { file, index: OnceCell::new(), known: RefCell::default(), search: RefCell::default() }
    }

    /// Where the value of `expr` lives; `around` is a path that ends at or above it, for its scope.
    pub fn find(&self, expr: &'a Expr, around: &[Node<'a>]) -> Placement {
        self.search.take();
        let place = self.guess(expr, around, 0).unwrap_or(Unknown);
        let Search { found, cut, .. } = self.search.take();
        if cut {
            let mut known = self.known.borrow_mut();
            for key in &found {
                known.remove(key);
            }
        }
        place
    }

    fn guess(&self, expr: &'a Expr, around: &[Node<'a>], depth: u8) -> Sofar {
        let key = key(expr);
        if let Some(&known) = self.known.borrow().get(&key) {
            return Some(known);
        }
        let (place, outer) = {
            let mut search = self.search.borrow_mut();
            if let Some(&sofar) = search.ring.get(&key) {
                return sofar;
            }
            if let Some(&place) = search.places.get(&key) {
                search.open[place].looped = true;
                search.depends(place);
                return None;
            }
            if depth > MAX_DEPTH {
                search.cut = true;
                return Some(Unknown);
            }
            let place = search.open.len();
            search.places.insert(key, place);
            search.open.push(Open { expr, around: around.to_vec(), low: place, depth, looped: false });
            (place, search.at.replace(place))
        };
        let found = self.look(expr, around, depth);
        let mut search = self.search.borrow_mut();
        search.at = outer;
        let low = search.open[place].low;
        if low < place {
            search.depends(low);
            return found;
        }
        let ring = search.open.split_off(place);
        for one in &ring {
            search.places.remove(&self::key(one.expr));
        }
        drop(search);
        match &ring[..] {
            [alone] if !alone.looped => self.note(expr, found),
            _ => self.settle(ring),
        }
        self.known.borrow().get(&key).copied()
    }

    fn note(&self, expr: &Expr, place: Sofar) {
        self.known.borrow_mut().insert(key(expr), place.unwrap_or(Unknown));
        self.search.borrow_mut().found.push(key(expr));
    }

    /// Finds the least answer that fits all expressions of a ring, in rounds in source order.
    fn settle(&self, mut ring: Vec<Open<'a>>) {
        ring.sort_by_key(|one| (one.expr.start(), one.expr.end()));
        let fresh = ring.iter().map(|one| (key(one.expr), None)).collect();
        let (at, outer) = {
            let mut search = self.search.borrow_mut();
            (search.at.take(), std::mem::replace(&mut search.ring, fresh))
        };
        let mut changing = true;
        for _ in 0..MAX_ROUNDS {
            if !std::mem::take(&mut changing) {
                break;
            }
            for one in &ring {
                let place = self.look(one.expr, &one.around, one.depth);
                let before = self.search.borrow_mut().ring.insert(key(one.expr), place).flatten();
                changing |= before != place;
            }
        }
        let mut search = self.search.borrow_mut();
        search.at = at;
        let places = std::mem::replace(&mut search.ring, outer);
        drop(search);
        for one in &ring {
            let place = places.get(&key(one.expr)).copied().flatten();
            self.note(one.expr, place.filter(|_| !changing));
        }
    }

    fn look(&self, expr: &'a Expr, around: &[Node<'a>], depth: u8) -> Sofar {
        let sub = |expr: &'a Expr| self.guess(expr, around, depth + 1);
        let sure = |place: Placement| Some(place);
        match expr {
            Expr::Name(name) => self.name(name, around, depth),
            Expr::Call(call) => self.call(call, around, depth),
            Expr::Attribute(ast) => match ast.attr.as_str() {
                "grad" => sure(Device),
                attr if facts::name(attr).is(Fact::Layout) => sure(Host),
                attr if facts::name(attr).is(Fact::Property) => sub(&ast.value),
                _ if facts::module(nodes::name(&ast.value)).is(Fact::Settings) => sure(Host),
                _ => sure(Unknown),
            },
            Expr::Subscript(ast) => sub(&ast.value),
            Expr::BinOp(ast) if ast.op == Operator::Mod && string(&ast.left).is_some() => sure(Host),
            Expr::BinOp(ast) => operands(sub(&ast.left), sub(&ast.right)),
            Expr::UnaryOp(ast) if ast.op == UnaryOp::Not => sure(Host),
            Expr::UnaryOp(ast) => sub(&ast.operand),
            Expr::BoolOp(ast) => ast.values.iter().map(sub).fold(None, same),
            Expr::Compare(ast) if ast.ops.iter().any(gives_bool) => sure(Host),
            Expr::Compare(ast) if ast.comparators.iter().any(|e| string(e).is_some()) => sure(Host),
            Expr::Compare(ast) => ast.comparators.iter().map(sub).fold(sub(&ast.left), operands),
            Expr::If(ast) => same(sub(&ast.body), sub(&ast.orelse)),
            Expr::Named(ast) => sub(&ast.value),
            Expr::Await(ast) => sub(&ast.value),
            Expr::Starred(ast) => sub(&ast.value),
            Expr::List(_) | Expr::Tuple(_) => match nodes::listed(expr) {
                [] => sure(Host),
                all => all.iter().map(sub).fold(None, operands),
            },
            // The element sees the names that the comprehension binds.
            Expr::ListComp(ExprListComp { elt, .. }) | Expr::Generator(ExprGenerator { elt, .. }) => {
                self.guess(elt, &[around, &[expr.into(), (&**elt).into()]].concat(), depth + 1)
            }
            Expr::Dict(_) | Expr::Set(_) | Expr::DictComp(_) => sure(Host),
            Expr::FString(_) | Expr::Lambda(_) | Expr::Slice(_) => sure(Host),
            _ if expr.is_literal_expr() => sure(Host),
            _ => sure(Unknown),
        }
    }

    fn call(&self, call: &'a ExprCall, around: &[Node<'a>], depth: u8) -> Sofar {
        let callee = dotted(&call.func);
        let (base, name) = split_callee(&callee);
        let (root, facts) = (nodes::root(&callee), facts::name(name));
        let device = || self.device_argument(call, around);
        let sub = |expr: &'a Expr| self.guess(expr, around, depth + 1);
        let receiver = || nodes::receiver(call).map_or(Some(Unknown), sub);
        let arguments = || match &*call.arguments.args {
            [] => Some(Unknown),
            all => all.iter().map(sub).fold(None, operands),
        };
        let torch = facts::module(root).is(Fact::Torch);
        let method = !base.is_empty() && !facts::module(base).is(Fact::Torch);
        let placed = match name {
            _ if base.is_empty() && facts.is(Fact::Answer) || facts.any(&[Fact::Host, Fact::Layout]) => Host,
            _ if base.is_empty() && facts.is(Fact::Through) => return arguments(),
            "cuda" => Device,
            "to" => return device().map_or_else(receiver, Some),
            "from_numpy" => Host,
            // `math.log(n)`; a tensor may be called `dist`.
            _ if gives_host_values(root)
                && (self.file.imported(root).is_some() || facts::module(root).is(Fact::HostThrough)) =>
            {
                Host
            }
            // Only tensors have such a method: an unknown receiver is on the device.
            _ if method && facts.is(Fact::Tensor) && facts.stays() => {
                return device()
                    .map_or_else(receiver, Some)
                    .map(|place| if place == Unknown { Device } else { place });
            }
            _ if method && facts.stays() && !facts::module(base).is(Fact::Numpy) => return receiver(),
            _ if base == "torch.cuda" && name.ends_with("Tensor") => Device,
            _ if base.starts_with("torch.cuda") || base.starts_with("torch.distributed") => Host,
            _ if torch && facts.is(Fact::Stateless) => Host,
            _ if root == "torch"
                && (facts.any(&[Fact::Data, Fact::Make]) || tensor_dtype(name).is_some()) =>
            {
                let text = self.file.whole();
                let moved = text.contains("set_default_tensor_type") || text.contains("set_default_device");
                device().unwrap_or(if moved { Unknown } else { Host })
            }
            // `torch.profiler.profile()`, `torch.accelerator.device_count()`.
            _ if torch && call.arguments.args.is_empty() => Unknown,
            _ if torch => {
                return arguments().map(|place| match place {
                    Host if gives_host_values(root) => Host,
                    Host => Unknown,
                    _ => Device,
                });
            }
            _ if gives_host_values(root) => Host,
            _ => Unknown,
        };
        Some(placed)
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

    fn index(&self) -> &Index<'a> {
        self.index.get_or_init(|| Index::new(self.file.module()))
    }

    /// The function that an expression calls: the method that a name stands for, or the function that
    /// `partial` only gave a device or dtype.
    pub fn meant(&self, callee: &'a Expr, around: &[Node<'a>]) -> &'a Expr {
        let Some((value, place)) = callee.as_name_expr().and_then(|name| self.binding(name, around)) else {
            return callee;
        };
        // An object counts only in the function that binds it; a module is the same everywhere.
        let same =
            || nodes::range(nodes::function_around(&place)) == nodes::range(nodes::function_around(around));
        let module = |dotted: &str| self.file.imported(nodes::root(dotted)).is_some();
        let placing = |name: &str| name == "dtype" || facts::name(name).is(Fact::Placing);
        match value {
            Expr::Attribute(_) if module(&dotted(value)) || same() => value,
            Expr::Call(made) if nodes::name(&made.func) == "partial" => match &*made.arguments.args {
                [function]
                    if made
                        .arguments
                        .keywords
                        .iter()
                        .all(|one| one.arg.as_ref().is_some_and(|name| placing(name))) =>
                {
                    function
                }
                _ => callee,
            },
            _ => callee,
        }
    }

    fn binding(&self, name: &'a ExprName, around: &[Node<'a>]) -> Option<(&'a Expr, Vec<Node<'a>>)> {
        let (owner, all) = self.index().mentions(around, &name.id);
        if scope::parameter(owner, &name.id).is_some() {
            return None;
        }
        let only = nodes::only(all.iter().filter(|one| one.store && !one.closure))?;
        scope::value(only.path.clone())
    }

    fn name(&self, name: &'a ExprName, around: &[Node<'a>], depth: u8) -> Sofar {
        let (owner, all) = self.index().mentions(around, &name.id);
        if let Some(annotated) = annotation(owner, &name.id) {
            return Some(annotated);
        }
        let given = |path: &[Node<'a>]| {
            let of = |value: &'a Expr| self.guess(value, path, depth + 1);
            match scope::given(path) {
                Given::Value(value) => of(value),
                // Elements of a tuple differ.
                Given::Element(value) => of(value)
                    .map(|place| if place == Host && value.is_tuple_expr() { Unknown } else { place }),
                Given::Iterated(_) => scope::gone_through(path).map_or(Some(Host), of),
                Given::Other => Some(Unknown),
            }
        };
        let Some(bound) = self.index().reaching(around, name) else { return Some(Unknown) };
        let bound: Vec<Sofar> = bound.into_iter().map(given).collect();
        // `count = 0`, then `count += (a == b).sum()`: a device tensor from there on; a list of them too.
        let added = all.iter().filter(|one| !one.closure).filter_map(|one| {
            let value = match one.path[..] {
                [.., Node::StmtAugAssign(ast), _] if !one.store => &ast.value,
                [.., Node::StmtExpr(_), Node::ExprCall(call), Node::ExprAttribute(ast), _]
                    if facts::name(&ast.attr).is(Fact::Put) =>
                {
                    call.arguments.args.last()?
                }
                _ => return None,
            };
            Some(self.guess(value, &one.path, depth + 1))
        });
        let place = match &bound[..] {
            [] => Some(Unknown),
            all => added.fold(all.iter().copied().fold(None, same), operands),
        };
        let tensor = || all.iter().any(|one| one.load && used_as_tensor(&one.path));
        place.map(|place| if place == Unknown && tensor() { Device } else { place })
    }
}

fn key(expr: &Expr) -> Key {
    std::ptr::from_ref(expr).addr()
}

/// Whether a comparison gives true or false, whatever its operands are.
fn gives_bool(op: &CmpOp) -> bool {
    matches!(op, CmpOp::Is | CmpOp::IsNot | CmpOp::In | CmpOp::NotIn)
}

fn names_dtype(attribute: &str) -> bool {
    facts::name(attribute).is(Fact::Type)
        || ["float", "int", "type"].iter().any(|word| attribute.contains(word))
}

/// Usual meaning of a variable's name: `device`, `local_rank`, `gpu` the GPU; `cpu`, `cpu_device` the host.
pub fn device_name(name: &str) -> Placement {
    let name = name.to_ascii_lowercase();
    match () {
        _ if name.contains("cpu") || name.contains("host") => Host,
        _ if ["dev", "cuda", "gpu", "rank"].iter().any(|word| name.contains(word)) => Device,
        _ => Unknown,
    }
}

fn annotation(owner: &[Node<'_>], name: &str) -> Option<Placement> {
    let annotation = scope::parameter(owner, name)?.annotation()?;
    match split_callee(&dotted(annotation)).1 {
        declared if facts::name(declared).is(Fact::HostType) => Some(Host),
        _ => None,
    }
}

/// Whether a read treats the name as a tensor: `x.detach()`, `x.abs().max().item()`, `F.relu(x)`.
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

/// The first argument of a function of a torch submodule; functions of `torch` take sizes too.
fn is_input(path: &[Node<'_>]) -> bool {
    nodes::argument_of(path).is_some_and(|call| {
        let first = call.arguments.args.first().map(Ranged::range);
        let module = nodes::receiver(call).map(dotted).unwrap_or_default();
        module != "torch" && facts::module(&module).is(Fact::Torch) && first == Some(nodes::range(path))
    })
}

/// Arithmetic: one operand on the device puts the result there.
fn operands(a: Sofar, b: Sofar) -> Sofar {
    if a == Some(Device) || b == Some(Device) { Some(Device) } else { same(a, b) }
}

fn same(a: Sofar, b: Sofar) -> Sofar {
    match (a, b) {
        (Some(a), Some(b)) if a != b => Some(Unknown),
        (known, None) | (_, known) => known,
    }
}
