//! Causes besides waits that keep a range from being captured as a CUDA graph.

use super::Frame;
use crate::vocabulary::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words! {
    /// Cause, other than a wait, that keeps work from being captured as a CUDA graph. Tried on an H200 with
    /// CUDA 13 and PyTorch 2.11 in all capture modes: only the relaxed one permits allocations and event
    /// queries.
    GraphBreak {
        Allocation = "allocation": "allocates GPU memory from the driver, which a capture forbids",
        PageableCopy = "pageable-copy": "copies from or to a pageable CPU tensor, which PyTorch refuses while it captures",
        CpuTensor = "cpu-tensor": "copies from a CPU tensor: each replay reads the same address again",
        Query = "query": "asks whether work has ended, which a capture forbids",
        OtherStream = "other-stream": "works on another stream: without events that join it, it is no part of the graph",
        Callback = "callback": "calls a function of the host at each replay",
    }
}

impl GraphBreak {
    /// Advice for the cause.
    pub const fn fix(self) -> &'static str {
        match self {
            Self::Allocation => {
                "run the range twice before the capture: the graph then has a pool of its own"
            }
            Self::PageableCopy => "copy into a static GPU tensor before the graph: static.copy_(batch)",
            Self::CpuTensor => "refill that tensor before each replay, or copy before the graph",
            Self::Query => "keep event.query() and new pinned buffers out of the range",
            Self::OtherStream => "side.wait_stream(main) before the work, main.wait_stream(side) after it",
            Self::Callback => "take the host's part out of the range",
        }
    }
}

/// Calls of one line, other than waits, that keep a range from being captured as a CUDA graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Breaks {
    /// The cause.
    pub kind: GraphBreak,
    /// Name of the CUDA function.
    pub api: String,
    /// Number of calls.
    pub calls: u64,
    /// The user's line; null without a backtrace.
    pub user_frame: Option<Frame>,
    /// The advice.
    pub fix: String,
}
