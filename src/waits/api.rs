//! API calls that make the host wait, by name.
//!
//! Names decide, never `syncType`: its numbers meant other things before 2026, and queries have rows too.
//! Sources: CUDA runtime and driver API, "API synchronization behavior"; the behaviour of each class is stated below.

use crate::profile::calls::copies;
use crate::vocabulary::{ApiFamily, DriverApi};

/// How a call may block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blocking {
    /// Until all earlier work of one stream has ended.
    Stream,
    /// Until one recorded event has been reached.
    Event,
    /// Until all earlier work of every stream of a context has ended.
    Context,
    /// A copy without a stream argument: until it is done, unless both sides are device memory.
    Copy,
    /// A copy on a stream: only from or to pageable memory.
    CopyAsync,
    /// A memset without a stream argument: only on host or managed memory.
    Memset,
    /// Frees device memory: the driver synchronises the device first.
    Free,
    /// Frees, registers or unregisters host memory: waits for work that may use it.
    HostFree,
    /// Allocates page-locked host memory: waits only where the driver happens to drain.
    HostAlloc,
}

/// Starts the driver. A CUDA runtime calls it, and cudaFree behind it makes the context.
pub const INIT: &str = "cuInit";

/// Whether a call with this name may block, or starts the driver.
pub fn may_wait(name: &str) -> bool {
    classify(name).is_some() || name == INIT
}

/// How the call with this name (version suffix gone) may block; `None` for one that never does: queries,
/// `StreamWaitEvent`, event records, launches that only fill the queue.
pub fn classify(name: &str) -> Option<Blocking> {
    use Blocking::*;
    let name = name.strip_suffix("_v2").unwrap_or(name);
    Some(match name {
        "cudaStreamSynchronize" | "cuStreamSynchronize" => Stream,
        "cudaEventSynchronize" | "cuEventSynchronize" => Event,
        "cudaDeviceSynchronize" | "cudaThreadSynchronize" | "cuCtxSynchronize" => Context,
        "cudaFree" | "cudaFreeArray" | "cudaFreeMipmappedArray" | "cuMemFree" | "cuArrayDestroy" => Free,
        "cudaFreeHost" | "cudaHostUnregister" | "cuMemFreeHost" | "cuMemHostUnregister" => HostFree,
        "cudaHostAlloc" | "cudaMallocHost" | "cudaHostRegister" | "cuMemHostAlloc" | "cuMemAllocHost"
        | "cuMemHostRegister" => HostAlloc,
        _ if is_copy(name) && name.ends_with("Async") => CopyAsync,
        _ if is_copy(name) => Copy,
        _ if is_memset(name) => Memset,
        _ => return None,
    })
}

/// `None` for calls that neither allocate nor load.
pub fn family(name: &str) -> Option<ApiFamily> {
    // PyTorch's expandable segments grow by `cuMemCreate` and `cuMemMap`.
    const DEVICE: [&str; 5] = ["cudaMalloc", "cuMemAlloc", "cuMemCreate", "cuMemMap", "cuMemSetAccess"];
    // With lazy loading, the first question about a kernel loads it.
    const LOADS: [&str; 11] = [
        "cuModuleLoad",
        "cuModuleGetFunction",
        "cuLibraryLoad",
        "cuLibraryGetKernel",
        "cuLink",
        "cuKernelGetFunction",
        "cuKernelSetAttribute",
        "cuFuncLoad",
        "cudaLibraryLoad",
        "cudaFuncGetAttributes",
        "cudaFuncSetAttribute",
    ];
    let begins = |all: &[&str]| all.iter().any(|begin| name.starts_with(begin));
    match () {
        () if classify(name) == Some(Blocking::HostAlloc) => Some(ApiFamily::HostAllocation),
        () if begins(&DEVICE) => Some(ApiFamily::DeviceAllocation),
        () if begins(&LOADS) => Some(ApiFamily::ModuleLoading),
        () => None,
    }
}

fn is_copy(name: &str) -> bool {
    // Batched copies take a stream and never block by themselves; nor do copies between devices, by name.
    const NEVER: [&str; 6] = ["Batch", "DtoD", "DtoA", "AtoD", "AtoA", "Peer"];
    copies(name) && !NEVER.iter().any(|part| name.contains(part))
}

fn is_memset(name: &str) -> bool {
    (name.starts_with("cudaMemset") || name.starts_with("cuMemset")) && !name.ends_with("Async")
}

impl Blocking {
    pub const fn synchronises(self) -> bool {
        matches!(self, Self::Stream | Self::Event | Self::Context)
    }

    pub const fn is_of_device(self) -> bool {
        matches!(self, Self::Context | Self::Free | Self::HostFree | Self::HostAlloc)
    }

    pub const fn driver_api(self) -> DriverApi {
        match self {
            Self::Stream => DriverApi::StreamSynchronize,
            Self::Event => DriverApi::EventSynchronize,
            Self::Context => DriverApi::CtxSynchronize,
            Self::Copy => DriverApi::Memcpy,
            Self::CopyAsync => DriverApi::MemcpyAsync,
            Self::Memset => DriverApi::Memset,
            Self::Free => DriverApi::MemFree,
            Self::HostFree => DriverApi::HostFree,
            Self::HostAlloc => DriverApi::HostAlloc,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Blocking::*, classify, family};
    use crate::vocabulary::ApiFamily::*;

    #[test]
    fn names_tell_what_allocates_and_loads() {
        for (names, expected) in [
            ("cudaHostAlloc cudaMallocHost cuMemHostAlloc cuMemHostRegister_v2", Some(HostAllocation)),
            ("cudaMalloc cudaMalloc3D cudaMallocManaged cuMemAlloc_v2 cuMemCreate", Some(DeviceAllocation)),
            ("cuModuleLoadData cuLibraryLoadData cudaFuncGetAttributes", Some(ModuleLoading)),
            ("cudaFree cudaFreeHost cuLibraryUnload cuKernelGetName cudaLaunchKernel", None),
        ] {
            names.split(' ').for_each(|name| assert_eq!(family(name), expected, "{name}"));
        }
    }

    #[test]
    fn names_decide() {
        for (names, blocking) in [
            ("cudaStreamSynchronize cuStreamSynchronize", Some(Stream)),
            ("cudaEventSynchronize", Some(Event)),
            ("cuCtxSynchronize cuCtxSynchronize_v2", Some(Context)),
            ("cudaMemcpy cudaMemcpy2D cudaMemcpyToSymbol cuMemcpyDtoH_v2", Some(Copy)),
            ("cuMemcpyHtoDAsync_v2 cudaMemcpyAsync", Some(CopyAsync)),
            (
                "cudaMemcpyBatchAsync cuMemcpyDtoD_v2 cudaMemcpyPeer cudaMemsetAsync cudaFreeAsync cudaMalloc cudaEventQuery cudaStreamQuery cudaStreamWaitEvent cudaEventRecord cudaLaunchKernel cudaGraphLaunch",
                None,
            ),
            ("", None),
            ("cudaMemset cuMemsetD8_v2", Some(Memset)),
            ("cudaFree cuMemFree_v2", Some(Free)),
            ("cudaFreeHost", Some(HostFree)),
            ("cudaHostAlloc", Some(HostAlloc)),
        ] {
            names.split(' ').for_each(|name| assert_eq!(classify(name), blocking, "{name}"));
        }
    }
}
