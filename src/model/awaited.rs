//! What the waits of a site waited for.

use super::Process;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the waits of a site waited for, added up over them; times in ns of host time.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Awaited {
    /// Streams that had work pending, the longest first; a few of them.
    pub streams: Vec<AwaitedStream>,
    /// How many more there are.
    pub streams_left_out: u64,
    /// What ran meanwhile, each op behind the one before, the longest first; a few of them.
    pub operations: Vec<AwaitedOperation>,
    /// How many more there are.
    pub operations_left_out: u64,
    /// Blocked time in which nothing of it ran: calls that found nothing, gaps, the way back to the host.
    pub idle_ns: i64,
    /// Less that would do, where the trace knows of something.
    pub narrow: Option<Narrow>,
    /// Waits for a GPU that had nothing to do, while another worked.
    pub idle_gpu: Option<IdleGpu>,
    /// Time behind collectives.
    pub collectives: Option<BehindCollectives>,
}

/// A stream that waits waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AwaitedStream {
    /// GPU that it is on.
    pub device: u32,
    /// CUPTI stream id.
    pub stream: u32,
    /// Waits that found work on it.
    pub waits: u64,
    /// Blocked time until its work was done.
    pub pending_ns: i64,
    /// Of that, after the work of all other streams was done: a wait without this stream is so much shorter.
    pub only_ns: i64,
    /// Waits that complete a copy to the host on it. With none, nothing of it is read there at these waits.
    pub read: u64,
}

/// An operation that ran while waits blocked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AwaitedOperation {
    /// Kernel, or `[memcpy]`, `[memset]`, `[graph]`.
    pub name: String,
    /// GPU that it ran on.
    pub device: u32,
    /// CUPTI stream id.
    pub stream: u32,
    /// How many.
    pub count: u64,
    /// Blocked time during which they ran.
    pub blocked_ns: i64,
}

/// Less that waits could be for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Narrow {
    /// Waits of which that is known.
    pub waits: u64,
    /// Of these, waits that complete a copy to the host; the others would be for the stream that their thread launched to last.
    pub copies: u64,
    /// The streams with what would do; a few of them.
    pub streams: Vec<u32>,
    /// How much shorter all of them would have been.
    pub shorter_ns: i64,
}

/// Waits for a GPU that had nothing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleGpu {
    /// How many waits.
    pub waits: u64,
    /// The GPUs that they were for, as far as that is recorded.
    pub gpus: Vec<u32>,
    /// GPUs of the process that worked on meanwhile.
    pub busy: Vec<u32>,
}

/// Time of waits that passed behind collectives (kernels of NCCL).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BehindCollectives {
    /// The kernel that most of it passed behind.
    pub name: String,
    /// Blocked time during which collectives ran.
    pub blocked_ns: i64,
    /// Of that, in collectives whose other ranks are in the capture too.
    pub met_ns: i64,
    /// Of that, until the last rank had arrived: no saving here, whatever is done about the wait.
    pub late_ns: i64,
    /// The ranks that came last, the latest first.
    pub late: Vec<LateRank>,
}

/// A rank that others waited for.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LateRank {
    /// Its process.
    pub process: Process,
    /// GPU of its collectives.
    pub device: u32,
    /// Blocked time until it arrived.
    pub late_ns: i64,
}

impl LateRank {
    /// "python3 112 on GPU 1".
    pub fn name(&self) -> String {
        let name = self.process.name.as_deref().unwrap_or("process");
        format!("{name} {} on GPU {}", self.process.pid, self.device)
    }
}
