//! What the trace saw of a wait.

use crate::vocabulary::Copy;
use crate::waits::api::{Blocking, classify};

/// What the trace saw at one call site; the expression found in the source must fit it.
#[derive(Clone, Debug, Default)]
pub struct Observed<'a> {
    /// Runtime or driver name without suffix: "cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaMemcpyAsync", "cudaFree", …
    pub api: &'a str,
    pub copy: Option<Copy>,
    /// Python-level method that the native chain names, prefix stripped: "item", "to", "cuda", "cpu", "tolist", "getitem",
    /// "setitem", "is_nonzero", "index_scalar", "tensor", "nonzero", "masked_select", "synchronize", …; `None` without chains.
    pub method: Option<&'a str>,
    /// Innermost ATen operator of the chain that names the operation: "nonzero", "_local_scalar_dense", "copy_", "_unique2", …
    pub operator: Option<&'a str>,
    /// (file, function) of the library frame that the user's line called, where the wait happened inside a Python library:
    /// ("…/torch/cuda/__init__.py", "synchronize"), ("…/torch/_tensor.py", "__format__"), ("…/torch/_tensor_str.py", "__init__").
    pub through: Option<(&'a str, &'a str)>,
    /// The site's largest copy, in bytes.
    pub largest: u64,
    /// Reads of one value in a row without GPU work in between, where the number is always the same.
    pub burst: Option<u32>,
    pub beside: Beside,
}

impl Observed<'_> {
    /// `None` where nothing tells the call.
    pub fn blocking(&self) -> Option<Blocking> {
        classify(self.api)
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Beside {
    pub streams: usize,
    pub devices: bool,
    /// It copies from or to pinned memory without a wait for each copy.
    pub in_flight: bool,
}
