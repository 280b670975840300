//! Whether an act is what the trace saw.

use super::Observed;
use super::act::{Act, Index};
use super::nature::Nature;
use crate::vocabulary::{Copy, Direction, HostMemory};

/// The largest copy that a scalar read makes: one complex128.
const SCALAR_BYTES: u64 = 16;

/// How well an act fits, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    No,
    /// Nothing speaks against it.
    Open,
    /// The operator that the trace names is one that the act calls.
    Operator,
    /// The trace names this very method or library function.
    Named,
}

/// What kind of waiting the API and the copy amount to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// A synchronisation that completes no copy.
    Bare,
    Down(u64),
    Up,
    /// Allocating or freeing memory.
    Memory,
    /// Too little is known.
    Any,
}

fn wait(observed: &Observed<'_>) -> Wait {
    let api = observed.api;
    if ["Free", "Alloc", "Unmap", "HostRegister"].iter().any(|word| api.contains(word)) {
        return Wait::Memory;
    }
    if ["DeviceSync", "CtxSync", "EventSync"].iter().any(|word| api.contains(word)) {
        return Wait::Bare;
    }
    match observed.copy {
        Some(Copy { direction: Direction::DeviceToHost, bytes, .. }) => Wait::Down(bytes),
        Some(Copy { direction: Direction::HostToDevice, .. }) => Wait::Up,
        Some(_) => Wait::Any,
        None if api.contains("StreamSync")
            && observed.method.is_none_or(names_sync)
            && observed.operator.is_none() =>
        {
            Wait::Bare
        }
        None => Wait::Any,
    }
}

fn names_sync(method: &str) -> bool {
    method.to_ascii_lowercase().contains("synchronize")
}

/// Whether the copy says device to host (`Some(true)`), host to device (`Some(false)`) or nothing.
pub fn downward(observed: &Observed<'_>) -> Option<bool> {
    match wait(observed) {
        Wait::Down(_) => Some(true),
        Wait::Up => Some(false),
        _ => None,
    }
}

/// Whether the wait allocates or frees memory.
pub fn is_memory(observed: &Observed<'_>) -> bool {
    wait(observed) == Wait::Memory
}

/// Whether the kind of host memory speaks for the act: since PyTorch 2.3 scalar reads land in pinned memory and bulk reads in
/// pageable memory. Older versions use pageable memory for both, so this only chooses between acts that fit otherwise.
pub fn memory_agrees(act: Act, observed: &Observed<'_>) -> bool {
    let Some(Copy { direction: Direction::DeviceToHost, host_memory, .. }) = observed.copy else {
        return true;
    };
    match host_memory {
        HostMemory::Pinned => scalar(act),
        HostMemory::Pageable => !scalar(act),
        _ => true,
    }
}

/// Whether an act reads one value.
fn scalar(act: Act) -> bool {
    matches!(
        act,
        Act::Item
            | Act::Convert(_)
            | Act::Bool
            | Act::Same(_)
            | Act::Truth
            | Act::Order
            | Act::Contains
            | Act::Index { .. }
            | Act::Shape(..)
            | Act::Check(_)
            | Act::ClipGrad
            | Act::ScalerStep
            | Act::GetScale
            | Act::SchedulerStep
            | Act::SizeArgument
            | Act::Elements
    )
}

/// Fits an act to the trace: by library frame where there is one, else by method, else by operator, and always by direction
/// and size of the copy.
pub fn fit(act: Act, callee: &str, observed: &Observed<'_>) -> Fit {
    if !direction_fits(act, wait(observed)) {
        return Fit::No;
    }
    if let Some((file, function)) = observed.through {
        return through(act, callee, file, function);
    }
    if let Some(method) = observed.method {
        return by_method(act, callee, method);
    }
    match (act, observed.operator) {
        // Any line can make the allocator return memory.
        (Act::Other, _) if is_memory(observed) => Fit::Open,
        (Act::Other, _) => Fit::No,
        (_, Some(operator)) => by_operator(act, operator),
        (_, None) => Fit::Open,
    }
}

fn direction_fits(act: Act, wait: Wait) -> bool {
    match (act, wait) {
        (Act::Other, _) | (_, Wait::Any) => true,
        (Act::EmptyCache, Wait::Memory | Wait::Bare) => true,
        (Act::Explicit | Act::Barrier, wait) => wait == Wait::Bare,
        // Thrust and MAGMA wait on their own, without a copy of PyTorch's.
        (Act::Shape(..) | Act::Check(_), Wait::Bare) => true,
        (_, Wait::Bare | Wait::Memory) | (Act::EmptyCache, _) => false,
        (Act::Move(..) | Act::Create(_) | Act::Format | Act::Index { .. }, _) => true,
        (Act::Shape(..), Wait::Down(_)) => true,
        (act, Wait::Down(bytes)) => !scalar(act) || bytes <= SCALAR_BYTES,
        (act, Wait::Up) => matches!(act, Act::Shape(..)),
    }
}

/// The library frame decides: C functions leave no frame, so an act that calls none of a library's Python does not fit.
fn through(act: Act, callee: &str, file: &str, function: &str) -> Fit {
    let file = file.replace('\\', "/");
    let in_file = |end: &str| file.ends_with(end);
    let name = callee.rsplit('.').next().unwrap_or("");
    let named = match act {
        Act::Format => {
            in_file("torch/_tensor_str.py")
                || in_file("torch/_tensor.py") && matches!(function, "__format__" | "__repr__" | "__str__")
                || file.contains("/logging/")
        }
        Act::Contains => function == "__contains__",
        Act::Explicit => function == "synchronize",
        Act::EmptyCache => function == "empty_cache",
        Act::ClipGrad => file.contains("clip_grad"),
        Act::ScalerStep => file.contains("grad_scaler") && function != "get_scale",
        Act::GetScale => file.contains("grad_scaler") && matches!(function, "get_scale" | "_get_scale_async"),
        Act::SchedulerStep => file.contains("lr_scheduler"),
        Act::Barrier => function.contains("barrier"),
        Act::Save => file.contains("serialization"),
        Act::Move("load_state_dict", _) => function.contains("load"),
        // torch/functional.py: unique, unique_consecutive; boolean_dispatch wraps them in torch/_jit_internal.py.
        Act::Shape(op, _) => {
            file.contains("/torch/")
                && (function.contains(op)
                    || in_file("torch/_jit_internal.py")
                    || in_file("torch/functional.py"))
        }
        Act::Check(_) => file.contains("/torch/") && function.contains(name),
        _ => false,
    };
    match act {
        _ if named => Fit::Named,
        Act::Other => Fit::Open,
        _ => Fit::No,
    }
}

fn by_method(act: Act, callee: &str, method: &str) -> Fit {
    let name = callee.rsplit('.').next().unwrap_or("");
    let any = |methods: &[&str]| methods.contains(&method);
    let named = match act {
        Act::Item => any(&["item", "_local_scalar_dense"]),
        Act::Convert("int") => any(&["integral_scalar", "index_scalar"]),
        Act::Convert("float") => any(&["float_scalar"]),
        Act::Convert("complex") => any(&["complex_scalar", "float_scalar"]),
        Act::Convert(_) => {
            any(&["float_scalar", "integral_scalar", "index_scalar", "is_nonzero", "bool_scalar"])
        }
        Act::Bool | Act::Truth | Act::Order => any(&["is_nonzero", "bool_scalar"]),
        Act::Same(op) => method == op,
        Act::ToList => any(&["tolist"]),
        Act::Download(op) => method == op || op == "numpy" && any(&["cpu"]),
        Act::Move(op, _) => method == op,
        Act::Create(op) => {
            method == op || any(&["legacy_tensor_ctor", "pynew", "tensor", "new_tensor", "as_tensor"])
        }
        Act::Elements => {
            any(&["float_scalar", "integral_scalar", "index_scalar", "complex_scalar", "is_nonzero"])
        }
        Act::Index { what: Index::Slice | Index::Name, .. } => {
            any(&["getitem", "setitem", "index_scalar", "integral_scalar"])
        }
        Act::Index { store, .. } => method == if store { "setitem" } else { "getitem" },
        Act::Shape(op, _) => plain(method) == op || op == "coalesce" && method.contains("sparse"),
        Act::Check(op) => {
            plain(method) == op
                || method.contains("linalg") && method.ends_with(op)
                || (op, method) == ("corrcoef", "cov")
        }
        Act::Explicit => names_sync(method),
        Act::EmptyCache => method.to_ascii_lowercase().contains("emptycache"),
        Act::SizeArgument => method == "index_scalar" || method == name,
        Act::Other => method == name || plain(method) == name.trim_end_matches('_'),
        // These have Python frames of a library, which the trace may lack; then the method is one of these.
        Act::Format => {
            return if any(&["item", "is_nonzero", "masked_select", "cpu", "tolist"]) {
                Fit::Open
            } else {
                Fit::No
            };
        }
        Act::ClipGrad | Act::Contains => {
            return if any(&["is_nonzero", "item"]) { Fit::Open } else { Fit::No };
        }
        Act::ScalerStep | Act::GetScale | Act::SchedulerStep => {
            return if any(&["item", "float_scalar"]) { Fit::Open } else { Fit::No };
        }
        Act::Barrier => return if names_sync(method) || any(&["barrier"]) { Fit::Open } else { Fit::No },
        Act::Save => return if any(&["cpu", "to"]) { Fit::Open } else { Fit::No },
    };
    if named { Fit::Named } else { Fit::No }
}

/// An operator's plain name: `_unique2` is `unique`, `linalg_inv` is `inv`.
fn plain(method: &str) -> &str {
    let method = method.trim_start_matches('_').trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
    method.strip_prefix("linalg_").unwrap_or(method)
}

fn by_operator(act: Act, operator: &str) -> Fit {
    let reads = matches!(operator, "_local_scalar_dense" | "item" | "is_nonzero");
    let copies = matches!(operator, "copy_" | "_to_copy" | "to");
    let counts = matches!(operator, "nonzero" | "index" | "masked_select");
    let fits = match act {
        Act::Truth | Act::Bool | Act::Order => reads,
        Act::Item
        | Act::Convert(_)
        | Act::Contains
        | Act::ClipGrad
        | Act::ScalerStep
        | Act::GetScale
        | Act::SchedulerStep
        | Act::SizeArgument
        | Act::Elements => reads && operator != "is_nonzero",
        Act::Format => reads || counts || copies,
        Act::Same(op) => reads || operator == op,
        Act::ToList | Act::Download(_) | Act::Move(..) | Act::Create(_) | Act::Save => copies,
        Act::Index { what: Index::Slice, .. } => reads,
        Act::Index { what: Index::Name, .. } => reads || counts || copies || operator.starts_with("index"),
        Act::Index { what: Index::Mask, .. } => counts || operator.starts_with("index"),
        Act::Index { .. } => copies || operator.starts_with("index"),
        Act::Shape(op, _) => {
            reads
                || plain(operator) == op
                || counts && matches!(op, "nonzero" | "argwhere" | "where" | "masked_select")
                || copies
        }
        Act::Check(op) => reads || plain(operator) == op || operator.contains("linalg"),
        Act::Explicit | Act::EmptyCache | Act::Barrier => false,
        Act::Other => false,
    };
    let known = reads || copies || counts;
    match fits {
        true if plain(operator) == name_of(act) => Fit::Named,
        true => Fit::Operator,
        // An operator that this table does not know speaks for no act and against none.
        false if !known && !matches!(act, Act::Explicit | Act::EmptyCache | Act::Barrier) => Fit::Open,
        false => Fit::No,
    }
}

fn name_of(act: Act) -> &'static str {
    match act {
        Act::Shape(op, _) | Act::Check(op) | Act::Same(op) => op,
        _ => "",
    }
}

/// What the device argument says, where the trace does not: `Some(true)` for a copy to the host.
pub fn reads_device(act: Act, observed: &Observed<'_>) -> Option<bool> {
    downward(observed).or(match act {
        Act::Move(_, Nature::Host) | Act::Download(_) => Some(true),
        Act::Move(_, Nature::Device) | Act::Create(_) => Some(false),
        _ => None,
    })
}
