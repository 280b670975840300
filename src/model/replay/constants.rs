//! Constants that a bench measured, for simulations.

use super::measured::ReplayGpu;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the file; fields are added freely, never renamed.
pub const CONSTANTS_VERSION: u32 = 1;

/// Costs that `sync-report bench --save` measured, for simulations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Constants {
    /// [`CONSTANTS_VERSION`] of the program that wrote the file.
    pub constants_version: u32,
    /// The GPU that was measured.
    pub gpu: ReplayGpu,
    /// Time from the end of a launch call to the start of its kernel on an idle GPU.
    pub after_call_ns: i64,
    /// Gap between two kernels of a full queue.
    pub after_previous_ns: i64,
    /// Time from the end of the awaited work to the return of a stream synchronisation.
    pub stream_return_ns: i64,
    /// Time from the end of the awaited work to the return of an event synchronisation.
    pub event_return_ns: i64,
    /// Time from the end of the awaited work to the return of a context synchronisation.
    pub context_return_ns: i64,
    /// Host time of a stream synchronisation with nothing pending.
    pub stream_floor_ns: i64,
    /// Host time of an event synchronisation with nothing pending.
    pub event_floor_ns: i64,
    /// Host time of a context synchronisation with nothing pending.
    pub context_floor_ns: i64,
    /// Host time of a kernel launch.
    pub launch_call_ns: i64,
    /// Host time of launching a cuBLAS product.
    pub product_call_ns: i64,
    /// Host time of enqueueing a small copy from pinned memory.
    pub async_copy_call_ns: i64,
    /// Host time of reading one value with nothing pending: a copy to pageable memory and its wait.
    pub value_read_ns: i64,
    /// Fixed time of a copy from pinned memory, besides its bytes.
    pub copy_overhead_ns: i64,
    /// Bandwidth of large H2D copies from pinned memory, in bytes per ns.
    pub pinned_upload: f64,
    /// Bandwidth of large D2H copies to pinned memory, in bytes per ns.
    pub pinned_read: f64,
    /// Bandwidth of large H2D copies from pageable memory, in bytes per ns.
    pub pageable_upload: f64,
    /// Bandwidth of large D2H copies to pageable memory, in bytes per ns.
    pub pageable_read: f64,
    /// Launches that a stream queues before the next one blocks; null where none blocked.
    pub queue_depth: Option<u32>,
}
