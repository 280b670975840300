//! The trace's part of a wait, from the words of markers.

use sync_report::verdict::source::Observed;
use sync_report::vocabulary::{Copy, Direction, HostMemory};

const NAMES: &[(&str, &str)] = &[
    ("item", "read item 4"),
    ("truth", "read is_nonzero 1"),
    ("float", "read float_scalar 4"),
    ("int", "read integral_scalar 8"),
    ("index", "read index_scalar 8"),
    ("allclose", "read allclose 1"),
    ("inv", "read linalg_inv 1"),
    ("repeat-interleave", "read repeat_interleave 8"),
    ("contains", "read item 4 in /v/torch/_tensor.py:__contains__"),
    ("format", "read item 4 in /v/torch/_tensor.py:__format__"),
    ("print", "read masked_select 4 in /v/torch/_tensor_str.py:__init__"),
    ("scaler-step", "read item 4 in /v/torch/amp/grad_scaler.py:_maybe_opt_step"),
    ("plateau", "read float_scalar 4 in /v/torch/optim/lr_scheduler.py:step"),
    ("get-mask", "count getitem"),
    ("set-mask", "count setitem"),
    ("cpu", "copy cpu"),
    ("tolist", "copy tolist"),
    ("save", "copy cpu in /v/torch/serialization.py:_save"),
    ("to", "upload to"),
    ("cuda", "upload cuda"),
    ("tensor", "upload tensor"),
    ("get-list", "upload getitem"),
    ("set-scalar", "upload setitem"),
    ("sync", "cudaDeviceSynchronize in /v/torch/cuda/__init__.py:synchronize"),
    ("stream-sync", "cudaStreamSynchronize in /v/torch/cuda/streams.py:synchronize"),
    ("event-sync", "cudaEventSynchronize in /v/torch/cuda/streams.py:synchronize"),
    ("empty-cache", "cudaFree in /v/torch/cuda/memory.py:empty_cache"),
    ("realloc", "cudaFree"),
];

/// A short name, or one of these, with ` in FILE:FUNCTION` for the library frame that the line called:
///
/// ```text
/// read METHOD BYTES     a read into pinned memory: `.item()` and its kin
/// pageable METHOD BYTES the same before PyTorch 2.3
/// count METHOD          a read of how many elements of a mask are set
/// copy METHOD           a read of an array into pageable memory
/// upload METHOD [BYTES] a copy from pageable memory
/// pinned METHOD [BYTES] a copy from pinned memory
/// lost METHOD           a copy that the profiler has lost
/// API                   a call that completes no copy
/// ```
pub fn observed(text: &str) -> Observed<'_> {
    let text = NAMES.iter().find(|(name, _)| *name == text).map_or(text, |(_, words)| words);
    let (what, through) = match text.split_once(" in ") {
        Some((what, through)) => (what, through.rsplit_once(':')),
        None => (text, None),
    };
    let words: Vec<&str> = what.split(' ').collect();
    let bytes = |default| words.get(2).map_or(default, |bytes| bytes.parse().expect("a number of bytes"));
    let copy = |direction, bytes, host_memory| Some(Copy { direction, bytes, host_memory });
    let down = Direction::DeviceToHost;
    let (copy, operator) = match words[0] {
        "read" => (copy(down, bytes(4), HostMemory::Pinned), "_local_scalar_dense"),
        "pageable" => (copy(down, bytes(4), HostMemory::Pageable), "_local_scalar_dense"),
        "count" => (copy(down, bytes(4), HostMemory::Pinned), "nonzero"),
        "copy" => (copy(down, bytes(4096), HostMemory::Pageable), "copy_"),
        "upload" => (copy(Direction::HostToDevice, bytes(4096), HostMemory::Pageable), "copy_"),
        "pinned" => (copy(Direction::HostToDevice, bytes(4096), HostMemory::Pinned), "copy_"),
        "lost" => (None, "copy_"),
        api => return Observed { api, through, ..Observed::default() },
    };
    let method = words.get(1).copied();
    let largest = copy.map_or(0, |copy| copy.bytes);
    let operator = Some(operator);
    Observed { api: "cudaStreamSynchronize", copy, method, operator, through, largest, ..Observed::default() }
}
