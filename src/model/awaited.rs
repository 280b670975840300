//! Work that a site's waits waited for.

use super::Process;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Work that a site's waits waited for, summed over the waits. Times are host time.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Awaited {
    /// Streams with pending work, the longest first; eight at most.
    pub streams: Vec<AwaitedStream>,
    /// Number of further streams.
    pub streams_left_out: u64,
    /// Operations that held the host, each queued behind the one before; the longest first, eight at most.
    pub operations: Vec<AwaitedOperation>,
    /// Number of further kinds of operation.
    pub operations_left_out: u64,
    /// Blocked time in which no awaited operation ran: empty waits, gaps, the return to the host.
    pub idle_ns: i64,
    /// A smaller wait that would suffice; null where the trace shows none.
    pub narrow: Option<Narrow>,
    /// Waits for a GPU without work while another GPU worked; null where there are none.
    pub idle_gpu: Option<IdleGpu>,
    /// Blocked time behind collectives; null where there is none.
    pub collectives: Option<BehindCollectives>,
}

/// A stream that waits waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AwaitedStream {
    /// Number of the stream's GPU.
    pub device: u32,
    /// CUPTI stream id.
    pub stream: u32,
    /// Waits that found pending work on the stream.
    pub waits: u64,
    /// Blocked time until the stream's work was done.
    pub pending_ns: i64,
    /// Part of `pending_ns` after all other streams were done: a wait without this stream is so much shorter.
    pub only_ns: i64,
    /// Waits that complete a D2H copy on the stream. At 0, these waits read nothing from the stream.
    pub read: u64,
}

/// An operation that ran while waits blocked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AwaitedOperation {
    /// Name of the kernel, or `[memcpy]`, `[memset]`, `[graph]`.
    pub name: String,
    /// Number of the operation's GPU.
    pub device: u32,
    /// CUPTI stream id.
    pub stream: u32,
    /// Number of such operations.
    pub count: u64,
    /// Blocked time while these operations ran.
    pub blocked_ns: i64,
}

/// A smaller wait that would suffice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Narrow {
    /// Waits for which a smaller one is known.
    pub waits: u64,
    /// Part of `waits` that needs only its D2H copy. Others need only the stream last launched to by their
    /// thread.
    pub copies: u64,
    /// CUPTI ids of the streams that suffice; eight at most.
    pub streams: Vec<u32>,
    /// Blocked time that the smaller waits would save in all.
    pub shorter_ns: i64,
}

/// Waits for a GPU without work while another GPU worked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleGpu {
    /// Number of these waits.
    pub waits: u64,
    /// Numbers of the GPUs waited for, as far as recorded.
    pub gpus: Vec<u32>,
    /// Numbers of the process's GPUs that worked meanwhile.
    pub busy: Vec<u32>,
}

/// Blocked time behind collectives (NCCL kernels).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BehindCollectives {
    /// Name of the collective kernel that held the waits longest.
    pub name: String,
    /// Blocked time during which collectives ran.
    pub blocked_ns: i64,
    /// Part of `blocked_ns` in collectives whose other ranks the capture holds too.
    pub met_ns: i64,
    /// Part of `met_ns` until the last rank arrived. No fix of this site saves that time.
    pub late_ns: i64,
    /// Ranks that arrived last, the longest awaited first; eight at most.
    pub late: Vec<LateRank>,
}

/// A rank that others waited for.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LateRank {
    /// Process of the rank.
    pub process: Process,
    /// Number of the GPU that ran the rank's collectives.
    pub device: u32,
    /// Blocked time until the rank arrived.
    pub late_ns: i64,
}

impl LateRank {
    /// "python3 112 on GPU 1".
    pub fn name(&self) -> String {
        let name = self.process.name.as_deref().unwrap_or("process");
        format!("{name} {} on GPU {}", self.process.pid, self.device)
    }
}
