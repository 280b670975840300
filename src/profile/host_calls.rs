//! Calls that take host time without any wait: they allocate memory or load code. They issue no work, so [`super::calls`] keeps
//! none of them.

use crate::profile::ids::GlobalTid;
use crate::vocabulary::ApiFamily;

/// A shorter call found the code loaded. PyTorch asks for the kernel's function at each launch: these are most of the rows.
const LOADS_NS: i64 = 10_000;

/// A call of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCall {
    /// The thread that called.
    pub tid: GlobalTid,
    /// In ns.
    pub start: i64,
    /// In ns.
    pub end: i64,
    /// StringIds id of its name.
    pub name: i64,
    /// What it does.
    pub family: ApiFamily,
}

impl HostCall {
    /// Whether it is long enough to count.
    pub fn counts(&self) -> bool {
        self.family != ApiFamily::ModuleLoading || self.end - self.start >= LOADS_NS
    }
}

/// The family of the function with this name (version suffix gone).
pub fn family(name: &str) -> Option<ApiFamily> {
    use ApiFamily::*;
    const PINNED: [&str; 6] = [
        "cudaHostAlloc",
        "cudaMallocHost",
        "cudaHostRegister",
        "cuMemHostAlloc",
        "cuMemAllocHost",
        "cuMemHostRegister",
    ];
    // `cuMemCreate` and `cuMemMap` are what a segment of PyTorch's allocator grows by.
    const DEVICE: [&str; 5] = ["cudaMalloc", "cuMemAlloc", "cuMemCreate", "cuMemMap", "cuMemSetAccess"];
    // Where code is loaded lazily, the first question about a kernel loads it.
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
        () if begins(&PINNED) => Some(HostAllocation),
        () if begins(&DEVICE) => Some(DeviceAllocation),
        () if begins(&LOADS) => Some(ModuleLoading),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{ApiFamily::*, family};

    #[test]
    fn names_decide() {
        for (names, expected) in [
            ("cudaHostAlloc cudaMallocHost cuMemHostAlloc cuMemHostRegister_v2", Some(HostAllocation)),
            ("cudaMalloc cudaMalloc3D cudaMallocManaged cuMemAlloc_v2 cuMemCreate", Some(DeviceAllocation)),
            ("cuModuleLoadData cuLibraryLoadData cudaFuncGetAttributes", Some(ModuleLoading)),
            ("cudaFree cudaFreeHost cuLibraryUnload cuKernelGetName cudaLaunchKernel", None),
        ] {
            names.split(' ').for_each(|name| assert_eq!(family(name), expected, "{name}"));
        }
    }
}
