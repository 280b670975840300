//! Host time that allocates memory or loads code, with advice where it is much of the run.

use super::notes::WORTH_SAYING;
use crate::analysis::{Priced, Read};
use crate::cost::host_calls::{HostTime, longest};
use crate::model::{Code, HostCalls, ProfileInfo, Warning};
use crate::profile::ids::GlobalTid;
use crate::profile::strings::base_name;
use crate::text;
use crate::vocabulary::ApiFamily;

/// Families with any time within `span`.
pub fn all(found: &Priced, span: (i64, i64)) -> Vec<HostCalls> {
    let Read { profile, devices, iterations, .. } = &***found;
    let waits = &found.waits;
    let families = longest(profile, (devices, waits), iterations.as_ref(), span);
    let name = |id: Option<i64>| profile.strings.get(id?).map(|name| base_name(name).to_owned());
    let row = |(family, (thread, time)): (ApiFamily, (GlobalTid, HostTime))| HostCalls {
        family,
        api: name(time.name()).unwrap_or_default(),
        pid: thread.pid(),
        tid: thread.tid(),
        calls: time.calls,
        ns: time.ns,
        start_up_ns: time.start_up,
        first_call_ns: time.first_call,
    };
    families.into_iter().map(row).collect()
}

pub fn warnings(profile: &ProfileInfo) -> Vec<Warning> {
    let much = |calls: &&HostCalls| calls.ns as f64 >= WORTH_SAYING * profile.span_ns.max(1) as f64;
    profile.host_calls.iter().filter(much).map(|calls| warning(calls, profile.span_ns)).collect()
}

fn warning(calls: &HostCalls, span: i64) -> Warning {
    let (code, what, advice) = match calls.family {
        ApiFamily::HostAllocation => (
            Code::HostAllocation,
            "allocating pinned memory of the host",
            "allocate pinned buffers once and reuse them",
        ),
        ApiFamily::DeviceAllocation => (
            Code::DeviceAllocation,
            "allocating memory of the device",
            "take it from a pool: PyTorch's caching allocator without `empty_cache()` (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True where sizes vary), cudaMallocAsync elsewhere",
        ),
        ApiFamily::ModuleLoading => (
            Code::ModuleLoading,
            "loading code of kernels",
            "warm up: run each kernel once before what you time; CUDA_MODULE_LOADING=LAZY loads only kernels that run",
        ),
    };
    let (time, run, share) = (text::duration(calls.ns), text::duration(span), text::share(calls.ns, span));
    let (times, api) = (text::counted(calls.calls, "call"), text::escape_terminal(&calls.api));
    let when = if calls.start_up_ns == calls.ns { ", all at start-up" } else { "" };
    let advice = match calls.first_call_ns > calls.ns / 2 {
        true => "most of it is the process' first CUDA call, which creates the context too",
        false => advice,
    };
    let message = format!(
        "{what} takes {time} of the run of {run}, {share} ({times} on one thread, most time in {api}{when}); {advice}"
    );
    Warning::new(code, message, "")
}
