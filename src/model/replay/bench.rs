//! What waiting costs on one GPU, measured: the result of `sync-report bench`.

use super::constants::Constants;
use super::measured::{ReplayGpu, Spread, Way};
use crate::vocabulary::words;
use schemars::JsonSchema;
use serde::Serialize;

/// Version of the JSON; fields are added freely, never renamed.
pub const BENCH_VERSION: u32 = 1;

/// Everything that one run measured.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Bench {
    /// [`BENCH_VERSION`] of the program that wrote it.
    pub bench_version: u32,
    /// The GPU that was measured.
    pub gpu: ReplayGpu,
    /// GPUs of this machine.
    pub gpus: usize,
    /// Matrix products in a loop, with a wait after each.
    pub products: Vec<ProductCost>,
    /// Reading values, and what waits cost, one call at a time.
    pub calls: Vec<CallCost>,
    /// Large copies of every kind.
    pub copies: Vec<CopyCost>,
    /// Several streams, and several GPUs: whole loops.
    pub loops: Vec<LoopCost>,
    /// What a simulation takes from all this.
    pub constants: Constants,
    /// Sampled elements of products that were compared with a reference.
    pub checked: u64,
    /// The largest relative error found.
    pub largest_error: f64,
    /// What makes the figures doubtful, in sentences.
    pub notes: Vec<String>,
}

/// One product of square matrices, again and again.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ProductCost {
    /// Rows and columns of each matrix.
    pub size: u64,
    /// `fp16`, `bf16`, `fp32`, `tf32`, `fp64`.
    #[serde(rename = "type")]
    pub type_name: &'static str,
    /// Host time of one, with no wait but at the end of all.
    pub without: Spread,
    /// With a wait after each.
    pub with: Vec<WayCost>,
}

/// A loop of products with one kind of wait after each.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WayCost {
    /// What kind.
    pub name: Way,
    /// Host time of one product and its wait.
    pub wall: Spread,
    /// What it adds to `without`, measured round by round.
    pub added: Spread,
}

words! {
    /// A call, or a few that belong together.
    #[allow(missing_docs)]
    Call {
        Stream = "synchronise the stream",
        Event = "synchronise an event",
        SleepingEvent = "synchronise an event, sleeping",
        Context = "synchronise the context",
        Value = "read one value",
        PinnedValue = "read one value, pinned",
        Values = "read 1,000 values",
        Print = "12 reads of 3 values (a print)",
        Launch = "launch a kernel",
        Product = "launch a product",
        Upload = "enqueue a 4 KB H2D copy, pinned",
        Record = "record an event",
        Start = "launched, until its write is seen",
        Seen = "launch, poll what it writes",
    }
}

words! {
    /// What the GPU has to do when a call is made.
    #[allow(missing_docs)]
    Pending {
        Nothing = "nothing",
        Short = "a 20 µs kernel",
        Long = "a 1 ms kernel",
        Beside = "10 µs here, 200 µs beside",
    }
}

/// What a call takes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CallCost {
    /// Which call.
    pub name: Call,
    /// What the GPU has to do meanwhile.
    pub pending: Pending,
    /// Host time of the call.
    pub host: Spread,
}

words! {
    /// From where to where a large copy goes, and how.
    #[allow(missing_docs)]
    CopyWay {
        PageableUpload = "H2D copy, pageable",
        PageableUploadAsync = "H2D copy, pageable, asynchronous",
        PinnedUpload = "H2D copy, pinned",
        PinnedUploadAsync = "H2D copy, pinned, asynchronous",
        PageableRead = "read, pageable",
        PinnedRead = "read, pinned",
        PinnedReadAsync = "read, pinned, asynchronous",
        Inside = "device to device",
    }
}

/// One large copy.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CopyCost {
    /// Which.
    pub name: CopyWay,
    /// How much was copied.
    pub bytes: u64,
    /// Until the call returned.
    pub returned: Spread,
    /// Until the data was there.
    pub done: Spread,
    /// Bytes a ns until the data was there.
    pub bytes_per_ns: f64,
}

/// One loop.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LoopCost {
    /// What a pass does, in words.
    pub name: String,
    /// Host time of one pass.
    pub wall: Spread,
}
