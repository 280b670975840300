//! Calls that take host time without a wait: they allocate memory or load code. They issue no work, so
//! [`super::calls`] lists them apart.

use crate::profile::ids::GlobalTid;
use crate::vocabulary::ApiFamily;

/// A shorter call found the code loaded: most rows, as PyTorch asks for the kernel's function at each launch.
const LOADS_NS: i64 = 10_000;

/// Times in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCall {
    pub tid: GlobalTid,
    pub start: i64,
    pub end: i64,
    /// StringIds id.
    pub name: i64,
    pub family: ApiFamily,
}

impl HostCall {
    pub fn counts(&self) -> bool {
        self.family != ApiFamily::ModuleLoading || self.end - self.start >= LOADS_NS
    }
}
