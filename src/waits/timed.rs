//! Waits that end a stretch timed by two events.
//!
//! ```text
//!  host   [record a][launch][record b][sync b====]     cudaEventElapsedTime(a, b): no export holds that call
//!  s7                 [gemm~~~~~~~~~~~~~~~~~~]
//! ```
//! Nothing waits for `a` or queries it: `a` only takes a time.

use super::Wait;
use super::awaited::{ByThread, Queues};
use crate::profile::ids::{StreamIx, ThreadIx};
use crate::profile::syncs::EventRow;
use rustc_hash::FxHashMap;

struct Record<'a> {
    row: &'a EventRow,
    stream: StreamIx,
    at: i64,
    /// Whether nothing waits for the event or queries it.
    stamps: bool,
}

impl Queues<'_> {
    /// Definition: before the wait, and after all work issued to its stream, the thread recorded an event b
    /// (the awaited one, where the wait is for an event). Before b and some of that work the thread recorded
    /// another event a on that stream, which nothing ever waits for or queries. Cost: a sort of the event
    /// records, and a binary search per wait.
    pub fn find_timed(&self, waits: &mut [Wait], by_thread: &ByThread) {
        let records = self.records_by_thread();
        for (thread, of_thread) in by_thread {
            let Some(records) = records.get(thread) else { continue };
            for &i in of_thread {
                waits[i].timed = waits[i].blocking.synchronises() && self.is_timed(&waits[i], records);
            }
        }
    }

    /// Event records, in order, of the threads that record some event only to take the time.
    fn records_by_thread(&self) -> FxHashMap<ThreadIx, Vec<Record<'_>>> {
        let (syncs, calls) = (&self.profile.syncs, &self.profile.calls);
        let mut records: FxHashMap<ThreadIx, Vec<Record>> = FxHashMap::default();
        let called =
            |parts: &[&str]| calls.names.iter().any(|name| parts.iter().any(|p| name.base.contains(p)));
        // If the export does not name events, every event would seem to serve timing only.
        if syncs.records().next().is_none()
            || called(&["EventSynchronize", "EventQuery"]) && !syncs.names_events_of_host()
            || called(&["StreamWaitEvent"]) && !syncs.names_events_of_streams()
        {
            return records;
        }
        for (row, used) in syncs.used() {
            let stream = self.stream_index(row.pid, row.device, row.context, row.stream);
            if let (Some(stream), Some(call)) = (stream, row.call) {
                let record = Record { row, stream, at: calls.start(call), stamps: !used };
                records.entry(calls.thread(call)).or_default().push(record);
            }
        }
        records.retain(|_, records| records.iter().any(|record| record.stamps));
        records.values_mut().for_each(|records| records.sort_unstable_by_key(|record| record.at));
        records
    }

    fn is_timed(&self, wait: &Wait, records: &[Record]) -> bool {
        let start = self.profile.calls.start(wait.call);
        let issued = |stream, before| self.streams.last_issued(stream, before, i64::MAX);
        let before = &records[..records.partition_point(|record| record.at < start)];
        let Some((b, before)) = before.split_last() else { return false };
        let awaited = self.sync_row(wait).filter(|row| !row.event.is_none());
        let last = issued(b.stream, b.at);
        if wait.copy_call.is_some()
            || awaited.is_some_and(|row| row.event != b.row.event)
            || last != issued(b.stream, start)
        {
            return false;
        }
        let a = before.iter().rev().find(|a| a.stream == b.stream && a.row.event != b.row.event);
        a.is_some_and(|a| a.stamps && issued(a.stream, a.at) != last)
    }
}
