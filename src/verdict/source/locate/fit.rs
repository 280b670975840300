//! Whether an expression does what the trace saw.

use super::observed::Observed;
use super::sync_expr::{Index as What, SyncExpr, SyncExpr::*};
use crate::text;
use crate::verdict::operators::{self, COPIES, READS, SELECTS};
use crate::verdict::source::infer::{Placement, sinks};
use crate::vocabulary::{Copy, Direction, HostMemory, NUMBER_BYTES, PatternId, PatternId::*};
use crate::waits::api::Blocking;

/// How well an expression fits, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    No,
    /// Nothing contradicts it.
    Open,
    /// The expression calls the operator that the trace names.
    Operator,
    /// The trace names this very method or library function.
    Named,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// A synchronisation that completes no copy.
    Bare,
    Down(u64),
    Up,
    Memory,
    /// Too little is known.
    Any,
}

fn wait(observed: &Observed<'_>) -> Wait {
    match (observed.blocking(), observed.copy) {
        (Some(Blocking::Free | Blocking::HostFree | Blocking::HostAlloc), _) => Wait::Memory,
        (Some(Blocking::Context | Blocking::Event), _) => Wait::Bare,
        (_, Some(Copy { direction: Direction::DeviceToHost, bytes, .. })) => Wait::Down(bytes),
        (_, Some(Copy { direction: Direction::HostToDevice, .. })) => Wait::Up,
        (Some(Blocking::Stream), None)
            if observed.method.is_none_or(names_sync) && observed.operator.is_none() =>
        {
            Wait::Bare
        }
        _ => Wait::Any,
    }
}

fn names_sync(method: &str) -> bool {
    method.to_ascii_lowercase().contains("synchronize")
}

/// Whether the copy is device to host (`Some(true)`) or host to device (`Some(false)`).
pub fn downward(observed: &Observed<'_>) -> Option<bool> {
    match wait(observed) {
        Wait::Down(_) => Some(true),
        Wait::Up => Some(false),
        _ => None,
    }
}

pub fn is_memory(observed: &Observed<'_>) -> bool {
    wait(observed) == Wait::Memory
}

/// Whether the kind of host memory agrees with the expression. Since PyTorch 2.3 scalar reads land in pinned
/// memory and bulk reads in pageable memory. Older versions use pageable memory for both, so this only
/// chooses between expressions that fit otherwise.
pub fn memory_agrees(sync: SyncExpr, observed: &Observed<'_>) -> bool {
    let Some(Copy { direction: Direction::DeviceToHost, host_memory, .. }) = observed.copy else {
        return true;
    };
    match host_memory {
        HostMemory::Pinned => scalar(sync),
        HostMemory::Pageable => !scalar(sync),
        _ => true,
    }
}

/// Whether it reads one value, rather than a tensor or nothing.
fn scalar(sync: SyncExpr) -> bool {
    !matches!(sync, ToList | Download(_) | Move(..) | Create(_) | Save | Format)
        && !matches!(sync, Explicit | EmptyCache | Barrier | Other)
}

/// Fits by library frame, else by method, else by operator, and always by the copy's direction and size.
pub fn fit(sync: SyncExpr, name: &str, observed: &Observed<'_>) -> Fit {
    if !direction_fits(sync, wait(observed)) {
        return Fit::No;
    }
    if let Some((file, function)) = observed.through {
        return through(sync, name, file, function);
    }
    if let Some(method) = observed.method {
        return by_method(sync, name, method);
    }
    match (sync, observed.operator) {
        // Any line can make the allocator return memory.
        (Other, _) if is_memory(observed) => Fit::Open,
        (Other, _) => Fit::No,
        (_, Some(operator)) => by_operator(sync, name, operator),
        (_, None) => Fit::Open,
    }
}

fn direction_fits(sync: SyncExpr, wait: Wait) -> bool {
    match (sync, wait) {
        (Other, _) | (_, Wait::Any) => true,
        (EmptyCache, Wait::Memory | Wait::Bare) => true,
        (Explicit | Barrier, wait) => wait == Wait::Bare,
        // Thrust and MAGMA wait on their own, without a copy of PyTorch's.
        (Shape(_) | Check(_), Wait::Bare) => true,
        (_, Wait::Bare | Wait::Memory) | (EmptyCache, _) => false,
        (Move(..) | Create(_) | Format | Index { .. }, _) => true,
        (Shape(_), Wait::Down(_)) => true,
        (sync, Wait::Down(bytes)) => !scalar(sync) || bytes <= NUMBER_BYTES,
        (sync, Wait::Up) => matches!(sync, Shape(_)),
    }
}

pub fn is_scaler(file: &str) -> bool {
    file.ends_with("grad_scaler.py")
}

/// The library frame decides. C functions leave none: an expression without its Python does not fit.
fn through(sync: SyncExpr, name: &str, file: &str, function: &str) -> Fit {
    let file = file.replace('\\', "/");
    let in_file = |end: &str| file.ends_with(end);
    let of_torch = || text::package(&file) == Some("torch");
    let named = match sync {
        Format => sinks::formats(&file, function),
        Contains => function == "__contains__",
        Explicit => function == "synchronize",
        EmptyCache => function == "empty_cache",
        ClipGrad => file.contains("clip_grad"),
        ScalerStep => is_scaler(&file) && function != "get_scale",
        GetScale => is_scaler(&file) && matches!(function, "get_scale" | "_get_scale_async"),
        SchedulerStep => file.contains("lr_scheduler"),
        Barrier => function.contains("barrier"),
        Save => file.contains("serialization"),
        Move("load_state_dict", _) => function.contains("load"),
        // torch/functional.py: unique, unique_consecutive; boolean_dispatch wraps them in torch/_jit_internal.py.
        Shape(_) => {
            of_torch()
                && (function.contains(name)
                    || in_file("torch/_jit_internal.py")
                    || in_file("torch/functional.py"))
        }
        Check(_) => of_torch() && function.contains(name),
        _ => false,
    };
    match sync {
        _ if named => Fit::Named,
        Other => Fit::Open,
        _ => Fit::No,
    }
}

fn by_method(sync: SyncExpr, name: &str, method: &str) -> Fit {
    let reads = |call: &str| operators::read(call).is_some_and(|row| row.methods.has(method));
    let is_it = match sync {
        Item => reads("item"),
        Convert("math" | "round") | Elements => makes_number(method) || reads("bool"),
        Convert(op) => reads(op),
        Bool | Truth | Order => reads("bool"),
        ToList => reads("tolist"),
        Contains => reads("in"),
        Download("numpy") => matches!(method, "cpu" | "numpy"),
        Create(op) => method == op || copied(method, Direction::HostToDevice) == Some(C01),
        Same(op) | Download(op) | Move(op, _) => method == op,
        Index { what: What::Slice | What::Name, .. } => {
            matches!(method, "getitem" | "setitem") || reads("int")
        }
        Index { store, .. } => method == if store { "setitem" } else { "getitem" },
        Shape(pattern) => plain(method) == name || pattern == B16 && method.contains("sparse"),
        Check(_) => {
            plain(method) == name
                || method.contains("linalg") && method.ends_with(name)
                || (name, method) == ("corrcoef", "cov")
        }
        Explicit => names_sync(method),
        EmptyCache => method.to_ascii_lowercase().contains("emptycache"),
        SizeArgument => method == name || method == "index_scalar",
        Other => method == name || plain(method) == name.trim_end_matches('_'),
        _ => false,
    };
    // Methods seen where the trace lacks the Python frames of the library.
    let inside = || match sync {
        Format if method == "masked_select" => true,
        Format | ClipGrad | Contains | ScalerStep | GetScale | SchedulerStep | Save => {
            copied(method, Direction::DeviceToHost).is_some() || reads("bool")
        }
        Barrier => method == "barrier" || names_sync(method),
        Other => makes_number(method),
        _ => false,
    };
    match () {
        () if is_it => Fit::Named,
        () if inside() => Fit::Open,
        () => Fit::No,
    }
}

fn copied(method: &str, way: Direction) -> Option<PatternId> {
    operators::by_method(Some(method), way, &[""; 0])
}

/// `_unique2` is `unique`, `linalg_inv` is `inv`.
fn plain(method: &str) -> &str {
    let method = method.trim_start_matches('_').trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
    method.strip_prefix("linalg_").unwrap_or(method)
}

/// Whether Python asks a tensor for a number by that method, as code without frames does:
/// `message(ids=tokens)`, `struct.pack("f", x)`.
pub fn makes_number(method: &str) -> bool {
    matches!(copied(method, Direction::DeviceToHost), Some(A02 | A08))
}

fn by_operator(sync: SyncExpr, name: &str, operator: &str) -> Fit {
    let is_read = READS.has(operator);
    let reads = is_read || operator == "is_nonzero";
    let (copies, counts) = (COPIES.has(operator), SELECTS.has(operator));
    let is_called = || plain(operator) == name || name == "to_sparse" && plain(operator) == "coalesce";
    let fits = match sync {
        Truth | Bool | Order => reads,
        Item | Convert(_) | Contains | ClipGrad | ScalerStep | GetScale | SchedulerStep | SizeArgument
        | Elements => is_read,
        Format => reads || counts || copies,
        Same(op) => reads || operator == op,
        ToList | Download(_) | Move(..) | Create(_) | Save => copies,
        Index { what: What::Slice, .. } => reads,
        Index { what: What::Name, .. } => reads || counts || copies || operator.starts_with("index"),
        Index { what: What::Mask, .. } => counts || operator.starts_with("index"),
        Index { .. } => copies || operator.starts_with("index"),
        Shape(pattern) => reads || is_called() || counts && matches!(pattern, B01 | B02) || copies,
        Check(_) => reads || is_called() || operator.contains("linalg"),
        Explicit | EmptyCache | Barrier | Other => false,
    };
    let known = reads || copies || counts;
    match fits {
        true if matches!(sync, Shape(_) | Check(_) | Same(_)) && is_called() => Fit::Named,
        true => Fit::Operator,
        // An operator outside this table speaks for nothing and against nothing.
        false if !known && !matches!(sync, Explicit | EmptyCache | Barrier) => Fit::Open,
        false => Fit::No,
    }
}

/// `Some(true)` for a copy to the host: by the trace, else by the device argument.
pub fn reads_device(sync: SyncExpr, observed: &Observed<'_>) -> Option<bool> {
    downward(observed).or(match sync {
        Move(_, Placement::Host) | Download(_) => Some(true),
        Move(_, Placement::Device) | Create(_) => Some(false),
        _ => None,
    })
}
