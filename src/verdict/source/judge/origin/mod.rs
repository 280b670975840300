//! Values that the host knows already: a device tensor is an upload, or computed from uploads alone (S20).

mod callers;
mod calls;
mod fields;
mod names;
mod search;
mod values;

use super::reader::Case;
use crate::python::parse::{Node, dotted, last, nodes};
use crate::rules::grade;
use crate::verdict::source::infer::Placement;
use crate::verdict::source::locate::{Index, SyncExpr, tested};
use crate::vocabulary::{Kind, PatternId, PatternId::*, Verdict};
use ruff_python_ast::{Expr, ExprCall};
use search::Search;

pub(super) fn repeats(call: &ExprCall) -> Option<&Expr> {
    let torch = dotted(&call.func) == "torch.repeat_interleave";
    call.arguments.find_argument_value("repeats", usize::from(torch))
}

impl<'a> Case<'_, 'a> {
    /// Replaces the verdict that values are needed where the host had them before it uploaded them: the
    /// program need not ask the GPU.
    pub(super) fn host_knows(self, found: Verdict) -> Verdict {
        let needed =
            matches!(found.kind, Kind::CpuCompute | Kind::ControlFlow | Kind::DynamicShape | Kind::ValueRead);
        let Some((pattern, value)) = self.asked().filter(|_| needed) else { return found };
        // A whole tensor is read back as it was sent; of a number, the host's sending must be certain.
        let search = Search::new(self.site, pattern != D10);
        let Some(known) = search.origin(self.here, value) else { return found };
        // A mask of data that the GPU computed would have to be computed on the host again. A mask of sizes
        // and constants selects as many every time.
        let masked =
            pattern == B30 && matches!(self.sync, SyncExpr::Index { .. }) && known.computed && known.data;
        let Some(sent) = known.sent.filter(|_| !masked) else { return found };
        let what = match pattern {
            B30 if !known.data => {
                "waits for a size that follows from sizes and constants, which the host has; they went to the GPU"
            }
            D10 => "reads back what follows from what the host uploaded",
            B30 => "waits for a size that follows from what the host uploaded",
            _ => "asks for a number that follows from what the host uploaded",
        };
        self.says(grade::S20, pattern, &format!("{what} {sent}"))
    }

    /// The tensor whose values the expression asks for, and the pattern that fits if the host has them.
    fn asked(self) -> Option<(PatternId, &'a Expr)> {
        let call = nodes::call(self.here.path);
        let receiver = call.and_then(nodes::receiver);
        let first = call.and_then(|call| call.arguments.args.first());
        match self.sync {
            SyncExpr::Item => Some((A36, receiver?)),
            SyncExpr::Convert(_) | SyncExpr::Bool => Some((A36, receiver.or(first)?)),
            SyncExpr::ToList | SyncExpr::Download(_) | SyncExpr::Move(..) => Some((D10, receiver?)),
            SyncExpr::Truth => Some((A36, tested(self.here.path)?)),
            SyncExpr::SizeArgument => Some((A36, self.size(call?)?)),
            SyncExpr::Shape(B10) => Some((B30, repeats(call?).or(first)?)),
            SyncExpr::Shape(B11 | B12 | B01 | B07) => Some((B30, first.or(receiver)?)),
            SyncExpr::Index { what, .. } => match (what, last(self.here.path)?) {
                (Index::Mask | Index::Name, Node::ExprSubscript(ast)) => Some((B30, &*ast.slice)),
                // Bounds are numbers.
                (Index::Slice, Node::ExprSubscript(ast)) => Some((A36, &*ast.slice)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The only size argument that is no value of the host.
    fn size(self, call: &'a ExprCall) -> Option<&'a Expr> {
        let sizes = call.arguments.args.iter().flat_map(nodes::elements);
        nodes::only(sizes.filter(|&size| self.here.find(size) != Placement::Host))
    }
}
