//! Values that the host knows already: a tensor on the device is what the host uploaded, or was computed from that alone
//! (S20).

use super::reader::Case;
use crate::rules::grade;
use crate::verdict::source::infer::libraries::{Names, makes_tensor};
use crate::verdict::source::infer::objects::Objects;
use crate::verdict::source::infer::placement::{Here, Placement};
use crate::verdict::source::locate::sync_expr::{Index, SyncExpr};
use crate::verdict::source::parse::scope::{self, Given};
use crate::verdict::source::parse::{Node, Path, Source, dotted, last, nodes, split_callee, string};
use crate::vocabulary::{Kind, Verdict};
use ruff_python_ast::{Expr, ExprAttribute, ExprCall, ExprContext};
use ruff_text_size::Ranged;

/// Names and calls between the value and the upload.
const MAX_STEPS: u8 = 8;
/// Methods and functions whose result follows from their tensors alone.
const PURE: Names = Names(
    "max min sum mean prod any all amax amin argmax argmin cumsum diff abs neg long int float double bool half clone \
     detach view reshape flatten squeeze unsqueeze contiguous t transpose permute expand repeat flip sort unique \
     cat stack concat clamp eq ne lt le gt ge logical_and logical_or logical_not maximum minimum where item data",
);
/// Functions of torch that make a tensor of numbers that the program names.
const CONSTANT: Names = Names("zeros ones full arange linspace eye");
/// What changes the tensors that it is given.
const CHANGES: Names = Names("all_reduce broadcast reduce recv irecv scatter all_gather_into_tensor");

impl<'a> Case<'_, 'a> {
    /// The verdict on a read or a size whose values the host had before it uploaded them, in place of one that says that the
    /// program needs them: it does, but need not ask the GPU.
    pub(super) fn host_knows(self, found: Verdict) -> Verdict {
        let needed =
            matches!(found.kind, Kind::CpuCompute | Kind::ControlFlow | Kind::DynamicShape | Kind::ValueRead);
        let Some((pattern, value)) = self.asked().filter(|_| needed) else { return found };
        // A whole tensor is read back as it was sent; of a number, that it was sent must be plain.
        let origin = Origin { file: self.here.file(), plain: pattern != "D10" };
        let Some(line) = origin.of(self.here, value, 0) else { return found };
        let what = match pattern {
            "D10" => "reads back what follows from what the host uploaded",
            "B30" => "waits for a size that follows from what the host uploaded",
            _ => "asks for a number that follows from what the host uploaded",
        };
        self.says(grade::S20, Kind::HostKnown, pattern, &format!("{what} on line {line}"))
    }

    /// The tensor whose values the expression asks for, and the pattern that fits if the host has them.
    fn asked(self) -> Option<(&'static str, &'a Expr)> {
        let call = nodes::call(self.here.path);
        let receiver = call.and_then(nodes::receiver);
        let first = call.and_then(|call| call.arguments.args.first());
        match self.sync {
            SyncExpr::Item => Some(("A36", receiver?)),
            SyncExpr::Convert(_) | SyncExpr::Bool => Some(("A36", receiver.or(first)?)),
            SyncExpr::ToList | SyncExpr::Download(_) | SyncExpr::Move(..) => Some(("D10", receiver?)),
            SyncExpr::Truth => match last(self.here.path)? {
                Node::ExprCall(ast) => Some(("A36", nodes::receiver(ast)?)),
                _ => None,
            },
            SyncExpr::Shape("repeat_interleave", _) => {
                let torch =
                    call.is_some_and(|call| matches!(&*dotted(&call.func), "torch.repeat_interleave"));
                let repeats = call?.arguments.find_argument_value("repeats", usize::from(torch));
                Some(("B30", repeats.or(first)?))
            }
            SyncExpr::Shape("one_hot" | "bincount" | "nonzero" | "unique", _) => {
                Some(("B30", first.or(receiver)?))
            }
            SyncExpr::Index { what: Index::Mask | Index::Name, .. } => match last(self.here.path)? {
                Node::ExprSubscript(ast) => Some(("B30", &*ast.slice)),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Follows a tensor back to the host.
#[derive(Clone, Copy)]
struct Origin<'a> {
    file: &'a Source,
    /// Whether what is uploaded must surely live on the host.
    plain: bool,
}

impl<'a> Origin<'a> {
    /// Line on which the host uploaded what `expr`, read at `here`, names.
    ///
    /// Definition: the expression is an upload (`.cuda()`, `.to(device)` of what does not live there, a tensor made of host
    /// values for the device), a name all of whose values are and that nothing changes in place, the entry of a dict under a key
    /// that the file only ever gives uploads, or a [`PURE`] function of such and of host values.
    ///
    /// ```text
    /// lens = torch.tensor(sizes, device='cuda')      the upload
    /// longest = (lens + 1).max().item()              known: max, +, lens
    /// dist.all_reduce(lens)                          … but for this line, which changes lens
    /// ```
    /// Cost: one walk over the scope of each name on the way.
    fn of(self, here: Here<'_, 'a>, expr: &'a Expr, steps: u8) -> Option<u32> {
        if steps > MAX_STEPS {
            return None;
        }
        let next = |expr: &'a Expr| self.of(here, expr, steps + 1);
        match expr {
            Expr::Call(call) if self.uploads(here, call) => Some(here.file().line_of(call.start())),
            Expr::Call(call) => {
                let name = nodes::name(&call.func);
                let torch = Names("torch F").has(split_callee(&dotted(&call.func)).0);
                let receiver = nodes::receiver(call).filter(|_| !torch);
                let keywords = call.arguments.keywords.iter().map(|keyword| &keyword.value);
                let parts: Vec<&Expr> =
                    receiver.into_iter().chain(&call.arguments.args).chain(keywords).collect();
                PURE.has(name).then(|| self.all(here, &parts, steps)).flatten()
            }
            Expr::Name(name) => {
                let owner = scope::owner(here.path, &name.id);
                if scope::occurrences(&owner, &name.id).iter().any(|one| changes(&one.path)) {
                    return None;
                }
                let values = Objects::new(self.file).values_of(expr, here.path);
                self.every(here, &values, Some(&name.id), steps)
            }
            Expr::Subscript(ast) => match string(&ast.slice) {
                Some(key) => self.every(here, &entries(self.file, key), None, steps),
                None => next(&ast.value).filter(|_| here.find(&ast.slice) == Placement::Host),
            },
            Expr::Attribute(ast) if PURE.has(&ast.attr) => next(&ast.value),
            Expr::Attribute(ast) => self.field(here, ast),
            Expr::BinOp(ast) => self.all(here, &[&ast.left, &ast.right], steps),
            Expr::UnaryOp(ast) => next(&ast.operand),
            Expr::Compare(ast) => {
                let parts: Vec<&Expr> = std::iter::once(&*ast.left).chain(&ast.comparators).collect();
                self.all(here, &parts, steps)
            }
            Expr::List(ast) => self.all(here, &ast.elts.iter().collect::<Vec<_>>(), steps),
            Expr::Tuple(ast) => self.all(here, &ast.elts.iter().collect::<Vec<_>>(), steps),
            _ => None,
        }
    }

    /// A field of a batch that a loop uploads whole and that nothing assigns: `for batch in loader: batch = batch.to(device)`.
    /// Where the loader's batches live is not told, so only what is read back as it was sent counts.
    fn field(self, here: Here<'_, 'a>, read: &'a ExprAttribute) -> Option<u32> {
        let name = &read.value.as_name_expr().filter(|_| !self.plain)?.id;
        let (mut looped, mut line) = (false, None);
        let owner = scope::owner(here.path, name);
        for store in scope::occurrences(&owner, name).into_iter().filter(|one| one.store) {
            match scope::given(&store.path) {
                Given::Iterated(_) => looped = true,
                Given::Value(Expr::Call(call)) if sends(call, Some(name)) => {
                    line = Some(here.file().line_of(call.start()));
                }
                _ => return None,
            }
        }
        let line = line.filter(|_| looped)?;
        let assigned = nodes::find(&[self.file.module()], &mut |path| {
            let other = nodes::attribute(path).filter(|ast| ast.ctx != ExprContext::Load);
            other.is_some_and(|ast| ast.attr == read.attr)
        });
        assigned.is_empty().then_some(line)
    }

    /// Of several operands: all uploads or the host's, and an upload among them.
    fn all(self, here: Here<'_, 'a>, parts: &[&'a Expr], steps: u8) -> Option<u32> {
        let mut line = None;
        for part in parts {
            match self.of(here, part, steps + 1) {
                Some(found) => line = line.or(Some(found)),
                None if here.find(part) == Placement::Host => {}
                None => return None,
            }
        }
        line
    }

    /// Of all values that something is given: each an upload, or what the host has until `x = x.to(device)` sends it.
    fn every(
        self,
        here: Here<'_, 'a>,
        values: &[(&'a Expr, Path<'a>)],
        name: Option<&str>,
        steps: u8,
    ) -> Option<u32> {
        let mut line = None;
        for (value, path) in values {
            let here = Here { path, ..here };
            let sent = value.as_call_expr().is_some_and(|call| sends(call, name)) && values.len() > 1;
            match self.of(here, value, steps + 1) {
                Some(found) => line = line.or(Some(found)),
                None if sent => line = line.or(Some(here.file().line_of(value.start()))),
                None if values.len() > 1 && here.find(value) == Placement::Host => {}
                None => return None,
            }
        }
        line
    }

    /// Whether a call sends the host's data to the device.
    fn uploads(self, here: Here<'_, 'a>, call: &'a ExprCall) -> bool {
        let callee = dotted(&call.func);
        let (base, name) = split_callee(&callee);
        let to_device = || here.device_argument(call) == Some(Placement::Device);
        let sent = |value| match here.find(value) {
            Placement::Host => true,
            Placement::Device => false,
            Placement::Unknown => !self.plain,
        };
        let known = |value| here.find(value) == Placement::Host;
        match (name, nodes::receiver(call)) {
            ("cuda", Some(tensor)) => sent(tensor),
            ("to", Some(tensor)) => to_device() && sent(tensor),
            _ if makes_tensor(name) && base == "torch" => {
                to_device() && call.arguments.args.first().is_some_and(known)
            }
            _ if CONSTANT.has(name) && base == "torch" => {
                to_device() && call.arguments.args.iter().all(known)
            }
            _ => false,
        }
    }
}

/// Whether a call sends what `name` names to a device: `x.to(device)`, `x.cuda()`.
fn sends(call: &ExprCall, name: Option<&str>) -> bool {
    let receiver = nodes::receiver(call).and_then(Expr::as_name_expr);
    receiver.is_some_and(|receiver| Some(receiver.id.as_str()) == name)
        && Names("to cuda").has(nodes::name(&call.func))
}

/// Whether an occurrence of a name changes the tensor: `x.clamp_(0)`, `x[i] = v`, `x += 1`, `dist.all_reduce(x)`.
fn changes(path: &Path<'_>) -> bool {
    let [.., above, _] = path[..] else { return false };
    match above {
        Node::ExprAttribute(ast) => ast.attr.ends_with('_') && !ast.attr.ends_with("__"),
        Node::ExprSubscript(ast) => ast.ctx != ExprContext::Load,
        Node::StmtAugAssign(_) => true,
        Node::Arguments(_) => {
            let call = nodes::call(&path[..path.len() - 2]).map(|call| nodes::name(&call.func));
            call.is_some_and(|name| CHANGES.has(name) || name.ends_with('_'))
        }
        _ => false,
    }
}

/// What the file's dicts hold under a key.
fn entries<'a>(file: &'a Source, key: &str) -> Vec<(&'a Expr, Path<'a>)> {
    let mut found = Vec::new();
    nodes::walk(&[file.module()], &mut |path| {
        match last(path) {
            Some(Node::ExprDict(ast)) => {
                let named = ast.items.iter().filter(|item| item.key.as_ref().and_then(string) == Some(key));
                found.extend(named.map(|item| (&item.value, path.to_vec())));
            }
            Some(Node::ExprSubscript(ast))
                if ast.ctx == ExprContext::Store && string(&ast.slice) == Some(key) =>
            {
                found.extend(scope::value(path.to_vec()));
            }
            _ => {}
        }
        true
    });
    found
}
