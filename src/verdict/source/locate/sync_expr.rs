//! What a synchronising expression does, by its text.

use crate::catalogue;
use crate::python::facts::{self, Fact};
use crate::python::parse::{Given, Node, dotted, flag, last, nodes, scope, split_callee, string, within};
use crate::verdict::operators::{self, By};
use crate::verdict::source::infer::{Here, Objects, Placement, makes_tensor, roles, sinks, tensor_dtype};
use crate::vocabulary::{Kind, PatternId};
use ruff_python_ast::{CmpOp, Expr, ExprCall, ExprContext, ExprName, ExprSubscript, Operator, UnaryOp};
use ruff_text_size::Ranged;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncExpr<'a> {
    /// `.item()`.
    Item,
    /// `float(t)`, `int(t)`, `math.sqrt(t)`, …
    Convert(&'a str),
    /// `bool(t)`, `torch.is_nonzero(t)`.
    Bool,
    /// `torch.equal`, `torch.allclose`.
    Same(&'a str),
    /// A tensor where Python wants true or false.
    Truth,
    /// `max(a, b)`, `sorted(ts)`: comparisons by Python.
    Order,
    /// `x in t`.
    Contains,
    /// `.tolist()`.
    ToList,
    /// `.cpu()`, `.to("cpu")`, `.numpy()` of a device tensor, `.type(torch.FloatTensor)`.
    Download(&'a str),
    /// `.cuda()`, `.to(device)`, `.copy_()`: a copy whose direction the trace knows.
    Move(&'a str, Placement),
    /// `torch.tensor(…, device=…)` and its kin.
    Create(&'a str),
    /// The same for a list or tuple of tensors, which are read one by one.
    Elements,
    /// `x[…]`, load or store.
    Index { what: Index, store: bool },
    /// An operator whose output size depends on values, with its pattern.
    Shape(PatternId),
    /// An operator that checks for errors on the host, with its pattern.
    Check(PatternId),
    /// `clip_grad_norm_`.
    ClipGrad,
    /// `GradScaler.step`.
    ScalerStep,
    /// `scaler.get_scale()`.
    GetScale,
    /// `scheduler.step(metric)`.
    SchedulerStep,
    /// Text made from a tensor: `print(t)`, `f"{t}"`, `logger.info("%s", t)`.
    Format,
    /// `synchronize()`.
    Explicit,
    /// `torch.cuda.empty_cache()`.
    EmptyCache,
    /// `dist.barrier()`.
    Barrier,
    /// A tensor where a size is wanted: `range(t)`, `torch.zeros(t)`.
    SizeArgument,
    /// `torch.save`.
    Save,
    /// Any other call or protocol use, for what happens inside it.
    Other,
}

/// The look of a subscript's index; in a tuple, the first of these counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Index {
    /// `x[a > b]`, `x[~m]`, `x[mask]`.
    Mask,
    /// `x[[0, 2]]`, a list or CPU tensor.
    List,
    /// `x[i:j]`.
    Slice,
    /// `x[i]`.
    Name,
    /// `x[0]`, constants only.
    Constant,
}

/// How plainly the text shows that it waits: 3 plainly, 2 probably, 1 perhaps, 0 only if the trace says so.
pub type Guess<'a> = (SyncExpr<'a>, u8);

pub fn guesses<'a>(here: Here<'_, 'a>) -> Vec<Guess<'a>> {
    let path = here.path;
    let Some(node) = last(path) else { return Vec::new() };
    let mut guesses = match node {
        Node::ExprCall(call) => Called::new(call, here).guesses(),
        Node::ExprSubscript(ast) => {
            let guess = subscript_guess(ast, here);
            // `x[mask] += 1` reads before it writes.
            let read = guess.and_then(|(sync, strength)| match (sync, nodes::above(path, 1)?) {
                (SyncExpr::Index { what, store: true }, Node::StmtAugAssign(_)) => {
                    Some((SyncExpr::Index { what, store: false }, strength))
                }
                _ => None,
            });
            guess.into_iter().chain(read).collect()
        }
        Node::ExprCompare(ast) if ast.ops.iter().any(|op| matches!(op, CmpOp::In | CmpOp::NotIn)) => {
            vec![(SyncExpr::Contains, 1)]
        }
        Node::StmtFor(_) | Node::StmtWith(_) | Node::Comprehension(_) => vec![(SyncExpr::Other, 0)],
        _ => Vec::new(),
    };
    match tested(path).filter(|_| node.is_expression()).map(|expr| here.find(expr)) {
        Some(Placement::Device) => guesses.push((SyncExpr::Truth, 2)),
        Some(Placement::Unknown) => guesses.push((SyncExpr::Truth, 1)),
        Some(Placement::Host) | None => {}
    }
    if formatted(path).is_some_and(|expr| here.find(expr) != Placement::Host) {
        guesses.push((SyncExpr::Format, 1));
    }
    guesses
}

struct Called<'c, 'a> {
    call: &'a ExprCall,
    /// All before the last name of the callee.
    base: String,
    name: &'a str,
    receiver: Option<&'a Expr>,
    here: Here<'c, 'a>,
}

impl<'c, 'a> Called<'c, 'a> {
    fn new(call: &'a ExprCall, here: Here<'c, 'a>) -> Self {
        let callee = here.meant(call);
        let base = split_callee(&dotted(callee)).0.to_owned();
        let receiver = callee.as_attribute_expr().map(|ast| &*ast.value);
        let name = nodes::name(callee);
        Self { call, base, name, receiver, here }
    }

    fn on_host(&self, expr: &'a Expr) -> bool {
        self.here.find(expr) == Placement::Host
    }

    fn takes_tensors(&self) -> bool {
        let arguments = &self.call.arguments;
        arguments.is_empty() || !arguments.args.iter().all(|expr| self.on_host(expr))
    }

    fn guesses(&self) -> Vec<Guess<'a>> {
        let (name, base) = (self.name, &*self.base);
        let builtin = |is: bool| base.is_empty() && is && self.takes_tensors();
        let sure = |surely: bool, or: u8| if surely { 3 } else { or };
        let read = |sync| self.receiver.map(|expr| (sync, sure(!self.on_host(expr), 0)));
        let guess = match name {
            // `.item()` of a host value copies nothing; this guess gives way to a trace that names it.
            "item" => read(SyncExpr::Item),
            "tolist" => read(SyncExpr::ToList),
            _ if builtin(matches!(name, "float" | "int" | "complex")) => Some((SyncExpr::Convert(name), 2)),
            _ if builtin(name == "bool") => Some((SyncExpr::Bool, 2)),
            "is_nonzero" => Some((SyncExpr::Bool, 3)),
            "equal" | "allclose" if !facts::module(base).is(Fact::Numpy) && base != "jnp" => {
                Some((SyncExpr::Same(name), 3))
            }
            _ if builtin(facts::name(name).is(Fact::Compares)) => Some((SyncExpr::Order, 2)),
            _ if builtin(name == "round") => Some((SyncExpr::Convert("round"), 1)),
            _ if (base == "math" || facts::module(base).is(Fact::Numpy)) && self.takes_tensors() => {
                Some((SyncExpr::Convert("math"), 1))
            }
            _ if builtin(name == "range") => Some((SyncExpr::SizeArgument, 1)),
            // A function of the program's own, by its sync-report.toml.
            _ if facts::name(name).is(Fact::Read) && !facts::name(name).is(Fact::Host) => {
                Some((SyncExpr::Convert(name), 3))
            }
            "synchronize" => Some((SyncExpr::Explicit, 3)),
            "empty_cache" => Some((SyncExpr::EmptyCache, 3)),
            "barrier" | "monitored_barrier" | "wait_for_everyone" => Some((SyncExpr::Barrier, 3)),
            "clip_grad_norm_" => Some((SyncExpr::ClipGrad, sure(flag(self.call, "error_if_nonfinite"), 1))),
            "step" if base.to_ascii_lowercase().contains("scaler") => Some((SyncExpr::ScalerStep, 3)),
            "get_scale" => Some((SyncExpr::GetScale, 3)),
            "step" if roles::is_scheduler(base) => Some((SyncExpr::SchedulerStep, 1)),
            "save" if base == "torch" => Some((SyncExpr::Save, 2)),
            _ if matches!(base, "torch" | "") && (makes_tensor(name) || tensor_dtype(name).is_some())
                || name == "new_tensor" =>
            {
                let made = self.moved().unwrap_or_else(|| self.created());
                return [(SyncExpr::Other, 0), made].into_iter().chain(self.of_elements()).collect();
            }
            _ => self.moved().or_else(|| self.shaped()),
        };
        std::iter::once((SyncExpr::Other, 0)).chain(guess).collect()
    }

    fn moved(&self) -> Option<Guess<'a>> {
        let (blocking, receiver) = (!flag(self.call, "non_blocking"), self.receiver);
        let unless_flagged = |strength| if blocking { strength } else { 0 };
        Some(match self.name {
            "cpu" if receiver.is_some() => (SyncExpr::Download("cpu"), 3),
            "numpy" if receiver.is_some_and(|expr| !self.on_host(expr)) => (SyncExpr::Download("numpy"), 1),
            "cuda" if receiver.is_some() && blocking => (SyncExpr::Move("cuda", Placement::Device), 3),
            "to" if receiver.is_some() => match self.here.device_argument(self.call) {
                Some(Placement::Host) => (SyncExpr::Download("to"), 3),
                // With `non_blocking=True` the copy itself may still block, from pageable memory.
                Some(place) => (SyncExpr::Move("to", place), unless_flagged(3)),
                None => (SyncExpr::Move("to", Placement::Unknown), unless_flagged(1)),
            },
            "type" if receiver.is_some() => {
                let cpu = self.call.arguments.args.first().is_some_and(|argument| {
                    let text = string(argument).map_or_else(|| dotted(argument), str::to_owned);
                    text.starts_with("torch.") && text.ends_with("Tensor") && !text.contains("cuda")
                });
                match cpu {
                    true => (SyncExpr::Download("type"), 3),
                    false => (SyncExpr::Move("type", Placement::Unknown), 1),
                }
            }
            "type_as" if receiver.is_some() => (SyncExpr::Move("type_as", Placement::Unknown), 1),
            "copy_" => (SyncExpr::Move("copy_", Placement::Unknown), unless_flagged(2)),
            "load_state_dict" => (SyncExpr::Move("load_state_dict", Placement::Device), 1),
            // In other modules, or by a bare name, the type may be one of the device.
            name if tensor_dtype(name).is_some() => {
                (SyncExpr::Create("legacy_tensor"), if self.base == "torch.cuda" { 3 } else { 1 })
            }
            _ => return None,
        })
    }

    fn created(&self) -> Guess<'a> {
        let device = || self.here.device_argument(self.call);
        let strength = match self.name {
            "new_tensor" => 2,
            _ if matches!(device(), Some(Placement::Device | Placement::Unknown)) => 3,
            _ => 1,
        };
        (SyncExpr::Create(self.name), strength)
    }

    /// Whether a tensor is made of several values, one of which may be on the device.
    fn of_elements(&self) -> Option<Guess<'a>> {
        let data = self.call.arguments.args.first()?;
        let host = self.on_host(data);
        let several = match data {
            Expr::List(_) | Expr::Tuple(_) | Expr::ListComp(_) => !host,
            // A list is the host's, whatever it is filled with.
            Expr::Name(_) => true,
            _ => false,
        };
        several.then_some((SyncExpr::Elements, if host { 0 } else { 2 }))
    }

    fn shaped(&self) -> Option<Guess<'a>> {
        let (name, base, arguments) = (self.name, &*self.base, &self.call.arguments);
        let given = |name: &str, position: usize| arguments.find_argument_value(name, position);
        let torch = facts::module(base).is(Fact::Torch);
        let found = operators::called(name).filter(|known| {
            let fits = match known.call.0 {
                By::Any => name != "where" || arguments.len() == 1,
                By::Dot => self.receiver.is_some(),
                By::Linalg => torch || base.contains("linalg"),
                // A number as the standard deviation is checked on the host.
                By::Torch => torch && given("std", 1).is_some_and(|std| !std.is_literal_expr()),
                By::Read => false,
            };
            fits && known.spared.is_none_or(|(argument, place, _)| given(argument, place).is_none())
        });
        match found {
            _ if facts::module(base).is(Fact::Numpy) || base == "pd" => None,
            Some(known) if catalogue::entry(known.pattern).kind == Some(Kind::DynamicShape) => {
                Some((SyncExpr::Shape(known.pattern), known.call.2))
            }
            Some(known) => Some((SyncExpr::Check(known.pattern), known.call.2)),
            None => facts::name(name).is(Fact::Size).then_some((SyncExpr::SizeArgument, 0)),
        }
    }
}

fn subscript_guess<'a>(ast: &'a ExprSubscript, here: Here<'_, 'a>) -> Option<Guess<'a>> {
    let store = ast.ctx == ExprContext::Store;
    // A tensor of the device may be stored in one of the host.
    let given = nodes::above(here.path, 1).and_then(|node| node.stmt_assign()).filter(|_| store);
    let stays = given.is_none_or(|ast| here.find(&ast.value) == Placement::Host);
    if stays && here.find(&ast.value) == Placement::Host && !matches!(&*ast.slice, Expr::Name(_))
        || string(&ast.slice).is_some()
        || Objects::new(here.file()).is_dict(&ast.value, here.path)
    {
        return None;
    }
    let what = index(&ast.slice, here);
    let strength = match what {
        Index::Mask => 3,
        Index::List | Index::Slice => 2,
        Index::Constant if !store => return None,
        Index::Constant | Index::Name => 1,
    };
    Some((SyncExpr::Index { what, store }, strength))
}

fn index<'a>(expr: &'a Expr, here: Here<'_, 'a>) -> Index {
    match expr {
        Expr::Tuple(tuple) => {
            let each = tuple.elts.iter().map(|element| index(element, here));
            each.min().unwrap_or(Index::Constant)
        }
        Expr::Slice(_) if nodes::bounds(expr).all(is_constant) => Index::Constant,
        Expr::Slice(_) => Index::Slice,
        Expr::Compare(_) => Index::Mask,
        Expr::UnaryOp(ast) if ast.op == UnaryOp::Invert => Index::Mask,
        Expr::BinOp(ast) if matches!(ast.op, Operator::BitAnd | Operator::BitOr | Operator::BitXor) => {
            Index::Mask
        }
        Expr::List(_) => Index::List,
        Expr::Name(name) if mask_name(&name.id) => Index::Mask,
        Expr::Attribute(ast) if mask_name(&ast.attr) => Index::Mask,
        Expr::Name(name) if counts(name, here.path) => Index::Constant,
        Expr::Name(_) if here.find(expr) == Placement::Host => Index::List,
        // A Python number, whoever had to wait for it.
        Expr::Call(call) if matches!(&*dotted(&call.func), "int" | "len" | "ord") => Index::Constant,
        _ if is_constant(expr) => Index::Constant,
        _ => Index::Name,
    }
}

fn mask_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["mask", "keep", "valid", "is_", "cond", "select"].iter().any(|word| name.contains(word))
}

/// Whether a name is only ever a Python number that a loop counts.
fn counts(name: &ExprName, path: &[Node<'_>]) -> bool {
    let stores = scope::bindings(path, &name.id);
    let counted = |path: &nodes::Path<'_>| {
        matches!(scope::given(path), Given::Iterated(_)) && scope::gone_through(path).is_none()
    };
    !stores.is_empty() && stores.iter().all(counted)
}

fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::UnaryOp(ast) => is_constant(&ast.operand),
        _ => expr.is_literal_expr(),
    }
}

/// The last node, where Python asks it for true or false: tests, operands of `not`, `and`, `or`, and chained comparisons.
pub fn tested<'a>(path: &[Node<'a>]) -> Option<&'a Expr> {
    let [.., parent, node] = path else { return None };
    // The operands are asked, not their operator.
    if matches!(node, Node::ExprBoolOp(_)) || matches!(node, Node::ExprUnaryOp(ast) if ast.op == UnaryOp::Not)
    {
        return None;
    }
    let own = |expr: &&'a Expr| expr.range() == node.range();
    match parent {
        Node::ExprBoolOp(ast) => ast.values.iter().find(own).filter(|_| is_tested(path)),
        _ => tests(*parent).into_iter().find(own),
    }
}

fn is_tested(path: &[Node<'_>]) -> bool {
    let [above @ .., node] = path else { return false };
    match above {
        [.., Node::ExprBoolOp(ast)] => {
            ast.values.last().is_some_and(|value| value.range() != node.range()) || is_tested(above)
        }
        [.., parent] => tests(*parent).into_iter().any(|test| within(node, test)),
        [] => false,
    }
}

fn tests<'a>(node: Node<'a>) -> Vec<&'a Expr> {
    match node {
        Node::StmtIf(ast) => vec![&ast.test],
        Node::StmtWhile(ast) => vec![&ast.test],
        Node::StmtAssert(ast) => vec![&ast.test],
        Node::ExprIf(ast) => vec![&ast.test],
        Node::ExprUnaryOp(ast) if ast.op == UnaryOp::Not => vec![&ast.operand],
        Node::ElifElseClause(ast) => ast.test.iter().collect(),
        Node::Comprehension(ast) => ast.ifs.iter().collect(),
        Node::MatchCase(ast) => ast.guard.as_deref().into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Path of the call's first argument that may be a tensor: code without frames can ask it for a number.
/// Torch's functions have guesses of their own.
pub fn converted<'a>(here: Here<'_, 'a>) -> Option<nodes::Path<'a>> {
    let told = |callee: &str| callee.starts_with("torch.") || facts::name(callee).is(Fact::Neutral);
    let call = nodes::call(here.path).filter(|call| !told(&dotted(&call.func)))?;
    let all = &call.arguments;
    let named = all.keywords.iter().map(|one| (Some(Node::from(one)), &one.value));
    let mut values = all.args.iter().map(|value| (None, value)).chain(named);
    let (keyword, value) = values.find(|(_, value)| here.find(value) != Placement::Host)?;
    let below = [Some(all.into()), keyword, Some(value.into())];
    Some(here.path.iter().copied().chain(below.into_iter().flatten()).collect())
}

/// The last node, where it is turned into text: in an f-string, as an argument of `print`, `str`, a logger, or of the `%` and
/// `.format` of a string.
pub fn formatted<'a>(path: &[Node<'a>]) -> Option<&'a Expr> {
    let several = |node: &Node<'a>| matches!(node, Node::ExprList(_)) || nodes::is_comprehension(*node);
    let node = last(path).filter(|node| node.is_expression() && !several(node))?;
    let above = |levels: usize| nodes::above(path, levels);
    let text_call = |levels: usize| {
        let Some(path) = path.len().checked_sub(levels).map(|end| &path[..end]) else { return false };
        nodes::call(path).is_some_and(|call| sinks::makes_text(call, nodes::is_dropped(path)))
    };
    let own = |expr: &&'a Expr| expr.range() == node.range();
    let percent = |node: Option<Node<'a>>| matches!(node, Some(Node::ExprBinOp(ast)) if ast.op == Operator::Mod && string(&ast.left).is_some());
    match above(1)? {
        Node::InterpolatedElement(ast) => Some(&*ast.expression).filter(own),
        Node::ExprBinOp(ast) if percent(above(1)) => Some(&*ast.right).filter(own),
        Node::ExprTuple(ast) if percent(above(2)) => ast.elts.iter().find(own),
        Node::Arguments(ast) if text_call(2) => ast.args.iter().find(own),
        Node::Keyword(ast) if text_call(3) => {
            let shown = ast.arg.as_ref().is_none_or(|id| !facts::name(id).is(Fact::Unshown));
            Some(&ast.value).filter(own).filter(|_| shown)
        }
        // `log_dict({"loss": loss})`, `print([a, b])`.
        Node::ExprDict(ast) if text_call(3) => ast.items.iter().map(|item| &item.value).find(own),
        Node::ExprList(ast) if text_call(3) => ast.elts.iter().find(own),
        _ => None,
    }
}
