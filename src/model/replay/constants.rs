//! Constants that a bench measured, for simulations.

use super::measured::ReplayGpu;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the file; fields are added freely, never renamed.
pub const CONSTANTS_VERSION: u32 = 1;

/// Measured by `sync-report bench --save`; times in ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Constants {
    /// [`CONSTANTS_VERSION`] of the program that wrote them.
    pub constants_version: u32,
    /// The GPU that was measured.
    pub gpu: ReplayGpu,
    /// From the end of a launch call to the start of its kernel on an idle GPU.
    pub after_call_ns: i64,
    /// Between two kernels of a full queue.
    pub after_previous_ns: i64,
    /// From the end of the awaited work to the return of a stream synchronisation.
    pub stream_return_ns: i64,
    /// The same of an event synchronisation.
    pub event_return_ns: i64,
    /// The same of a context synchronisation.
    pub context_return_ns: i64,
    /// A stream synchronisation that finds nothing to wait for.
    pub stream_floor_ns: i64,
    /// An event synchronisation that finds nothing to wait for.
    pub event_floor_ns: i64,
    /// A context synchronisation that finds nothing to wait for.
    pub context_floor_ns: i64,
    /// Host time of a kernel launch.
    pub launch_call_ns: i64,
    /// Host time of launching a cuBLAS product.
    pub product_call_ns: i64,
    /// Host time of enqueueing a small copy from pinned memory.
    pub async_copy_call_ns: i64,
    /// Reading one value when nothing is pending: a copy to pageable memory and its wait.
    pub value_read_ns: i64,
    /// Time that a copy from pinned memory takes besides its bytes.
    pub copy_overhead_ns: i64,
    /// Bytes a ns, of large copies from pinned memory.
    pub pinned_upload: f64,
    /// The same to pinned memory.
    pub pinned_read: f64,
    /// The same from pageable memory.
    pub pageable_upload: f64,
    /// The same to pageable memory.
    pub pageable_read: f64,
    /// Launches that a stream takes before the next one blocks; `None` where none did.
    pub queue_depth: Option<u32>,
}
