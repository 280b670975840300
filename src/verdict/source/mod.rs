//! Reading the Python source of a call site: which expression waits, and where its value goes.

use crate::vocabulary::{Copy, Verdict};

/// What the trace saw at one call site; the expression found in the source must fit it.
#[derive(Clone, Debug, Default)]
pub struct Observed<'a> {
    /// Runtime or driver name without suffix: "cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaMemcpyAsync", "cudaFree", …
    pub api: &'a str,
    /// The copy that the wait completed.
    pub copy: Option<Copy>,
    /// Python-level method that the native chain names, prefix stripped: "item", "to", "cuda", "cpu", "tolist", "getitem",
    /// "setitem", "is_nonzero", "index_scalar", "tensor", "nonzero", "masked_select", "synchronize", …; `None` without chains.
    pub method: Option<&'a str>,
    /// Innermost ATen operator of the chain that names the operation: "nonzero", "_local_scalar_dense", "copy_", "_unique2", …
    pub operator: Option<&'a str>,
    /// (file, function) of the library frame that the user's line called, where the wait happened inside a Python library:
    /// ("…/torch/cuda/__init__.py", "synchronize"), ("…/torch/_tensor.py", "__format__"), ("…/torch/_tensor_str.py", "__init__").
    pub through: Option<(&'a str, &'a str)>,
}

/// What the source says about a call site.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// No file could be read.
    NoSource,
    /// A file was read, but its line does not hold what the trace saw.
    Stale { line_text: String, reason: String },
    /// The line holds the synchronising expression.
    Read(Reading),
}

/// The synchronising expression and what becomes of its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Text of the recorded line, trimmed.
    pub line_text: String,
    /// The expression that waits, as written: `loss.item()`.
    pub expression: String,
    /// `Class::Unknown`/`Kind::ValueRead` where the source does not decide.
    pub verdict: Verdict,
    /// The same expression rewritten without the wait, where the tool can write it; for the fix column.
    pub rewritten: Option<String>,
}
