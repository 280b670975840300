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
    /// The sort of work that it does.
    pub family: ApiFamily,
}

impl HostCall {
    /// Whether it is long enough to count.
    pub fn counts(&self) -> bool {
        self.family != ApiFamily::ModuleLoading || self.end - self.start >= LOADS_NS
    }
}
