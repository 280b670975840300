//! The collectives of one export as a table, a row for each kernel of NCCL in which all ranks wait for all.
//!
//! ```text
//!  thread   [wait w==========] host work [launch]
//!  stream 20                                [all-reduce~~~~~~]
//!           wait_start       wait_end    launch start       end
//! ```
//! `wait_*` is the last wait of the launching thread or of the process' main thread that ended before the
//! launch: it made this rank late. Waits too short to explain a delay do not count.

use crate::analysis::Priced;
use crate::profile::ids::{OpId, ThreadIx};
use crate::sites::native;
use crate::waits::WaitId;
use crate::waits::collectives::{END_APART_NS, all_for_all};
use polars::prelude::*;
use rustc_hash::FxHashMap;

/// Times are on the export's own clock.
pub(super) fn table(found: &Priced) -> PolarsResult<DataFrame> {
    let (profile, waits) = (&found.profile, &found.waits);
    let name = |op: OpId| profile.kernel_name(op).filter(|name| all_for_all(name));
    let ops: Vec<OpId> = found.collectives.all(profile).filter(|&op| name(op).is_some()).collect();
    let sites = found.site_of_waits();
    let mut ended: FxHashMap<ThreadIx, Vec<WaitId>> = FxHashMap::default();
    if !ops.is_empty() {
        let long = waits.iter_enumerated().filter(|(_, wait)| wait.blocked >= END_APART_NS);
        long.for_each(|(id, wait)| ended.entry(wait.thread).or_default().push(id));
    }
    let launch =
        |op: OpId| profile.issuer(op).map(|call| (profile.calls.start(call), profile.calls.thread(call)));
    let before = |op: OpId| -> Option<WaitId> {
        let (launched, thread) = launch(op)?;
        let threads = &profile.calls.threads;
        let main =
            threads.keys().filter(|&t| found.context.main[t] && threads[t].process() == profile.ops.pid(op));
        let last = main.chain([thread]).filter_map(|thread| {
            let waits_of = ended.get(&thread)?;
            let at = waits_of.partition_point(|&w| waits[w].end <= launched).checked_sub(1)?;
            Some(waits_of[at])
        });
        last.max_by_key(|&w| (waits[w].end, w))
    };
    let waited: Vec<Option<WaitId>> = ops.iter().map(|&op| before(op)).collect();
    let key = |w: &Option<WaitId>| Some(found.sites[sites[(*w)?]?].key.as_str());
    let of = |time: fn(&crate::waits::Wait) -> i64| -> Vec<Option<i64>> {
        waited.iter().map(|w| w.map(|w| time(&waits[w]))).collect()
    };
    let each = |of: &dyn Fn(OpId) -> i64| -> Vec<i64> { ops.iter().map(|&op| of(op)).collect() };
    let communicator = |op| Some(format!("{:#x}", found.collectives.communicator(op)?));
    let device = |op| i64::from(found.devices.list[found.devices.of_op(&profile.ops, op)].id);
    df![
        "pid" => each(&|op| i64::from(profile.ops.pid(op).pid())),
        "device" => each(&device),
        "name" => ops.iter().map(|&op| name(op).map(|n| native::short(n))).collect::<Vec<_>>(),
        "communicator" => ops.iter().map(|&op| communicator(op)).collect::<Vec<_>>(),
        "start_ns" => each(&|op| profile.ops.start(op)),
        "end_ns" => each(&|op| profile.ops.end(op)),
        "launch_ns" => ops.iter().map(|&op| launch(op).map(|l| l.0)).collect::<Vec<_>>(),
        "wait_key" => waited.iter().map(key).collect::<Vec<_>>(),
        "wait_start_ns" => of(|w| w.start),
        "wait_end_ns" => of(|w| w.end),
    ]
}
