//! What must hold to rewrite a line, by the source or the trace.

use super::upload::{self, is_staged, memory};
use super::{WaitingExpr, delete, join};
use crate::model::edit::Refusal;
use crate::python::facts::{self, Fact};
use crate::python::parse::{Node, dotted, last, nodes};
use crate::verdict::source::locate::fit;
use crate::vocabulary::{HostMemory, Kind};
use ruff_python_ast::{Expr, StmtImport};

pub fn holds(need: Refusal, s: WaitingExpr<'_, '_>) -> bool {
    let (file, path, pinned) = (s.here.file(), s.here.path, memory(s) == Some(HostMemory::Pinned));
    match need {
        Refusal::Direction => fit::downward(s.observed) == Some(false),
        Refusal::Joined => pinned || is_staged(s) || !upload::is_joined(s),
        Refusal::Pageable => pinned || is_staged(s) || upload::pins(s).is_some(),
        // From pageable memory, the driver has taken its copy when the call returns.
        Refusal::Reused => memory(s) == Some(HostMemory::Pageable) || upload::loaders(s).is_some(),
        Refusal::Streams => s.observed.beside.streams < 2 && !names(s, Fact::Stream),
        Refusal::Devices => !s.observed.beside.devices,
        Refusal::InFlight => !s.observed.beside.in_flight,
        Refusal::Barrier => s.kind != Kind::Barrier,
        Refusal::Clock => s.kind != Kind::Timing && !delete::reads_clock(file),
        Refusal::Tried => !is_tried(path),
        Refusal::Wrapper => !delete::is_wrapper(path),
        Refusal::Foreign => !is_shared(s),
        Refusal::Measured => {
            let timed = s.kind == Kind::Timing && delete::reads_clock(file);
            !timed && !delete::is_measured(file, path)
        }
        Refusal::Alike => !delete::is_alike_below(file, path),
        Refusal::Destination => upload::arrives(s),
        Refusal::Random => upload::gives_the_same(s),
        Refusal::Advanced => is_basic(s),
        // A float or a half: a joined read would make floats of integers, which 8 bytes may be.
        Refusal::Numbers => {
            s.observed.copy.is_some_and(|copy| matches!(copy.bytes, 2 | 4)) && !names(s, Fact::Narrow)
        }
        Refusal::Reads => {
            s.observed.burst.is_some_and(|burst| join::on_line(s) == usize::try_from(burst).ok())
        }
        // Some other accelerators that the file may run on have no float64.
        Refusal::Float64 => !names(s, Fact::Backend),
        _ => false,
    }
}

/// Whether a `try` of the function handles errors of the statement.
fn is_tried(path: &[Node<'_>]) -> bool {
    path[nodes::function_scope(path)..].array_windows().any(|[above, below]| {
        above.stmt_try().is_some_and(|ast| {
            !ast.handlers.is_empty() && ast.body.iter().any(|stmt| nodes::within(*below, stmt))
        })
    })
}

/// Whether the file names other readers of GPU memory: CUDA libraries, addresses, other processes.
fn is_shared(s: WaitingExpr<'_, '_>) -> bool {
    let module = |name: &str| name.split('.').any(|part| facts::module(part).is(Fact::Foreign));
    nodes::any(&[s.here.file().module()], &mut |path| match last(path) {
        Some(Node::StmtImport(StmtImport { names, .. })) => names.iter().any(|alias| module(&alias.name)),
        Some(Node::StmtImportFrom(ast)) => ast.module.as_ref().is_some_and(|name| module(name)),
        Some(Node::ExprAttribute(ast)) => facts::name(&ast.attr).is(Fact::Foreign),
        _ => false,
    })
}

/// As an attribute, an import or a text.
fn names(s: WaitingExpr<'_, '_>, wanted: Fact) -> bool {
    let is = |name: &str| facts::name(name).is(wanted);
    nodes::any(&[s.here.file().module()], &mut |path| match last(path) {
        Some(Node::ExprAttribute(ast)) => is(&ast.attr),
        Some(Node::Alias(ast)) => is(&ast.name),
        Some(Node::StringLiteral(ast)) => is(&ast.value),
        _ => false,
    })
}

/// Whether the subscript written to addresses a part of the tensor itself, by numbers and slices.
fn is_basic(s: WaitingExpr<'_, '_>) -> bool {
    let Some(Node::ExprSubscript(ast)) = last(s.here.path) else { return false };
    let basic = |expr: &Expr| match expr {
        Expr::Slice(_) | Expr::Name(_) => true,
        _ => nodes::is_number(expr) || expr.is_none_literal_expr() || expr.is_ellipsis_literal_expr(),
    };
    nodes::elements(&ast.slice).iter().all(basic) && !dotted(&ast.value).contains('?')
}
