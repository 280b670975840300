//! Waits that guard host memory: only a wait shows the host that the GPU is done with pinned memory.
//!
//! ```text
//!  host   [sync e][write a][copy a][record e]  [launch…]  [item===]   [sync e][write a][copy a][record e]
//!  s7                                           [gemm~~~~~~~~][D2H]
//!  s13                       [a~~~]                                                      [a~~~]
//! ```
//! The second `sync e` found nothing pending: an earlier wait had drained all streams. Without `sync e` the
//! write would come too early once the GPU is late.

use super::api::{Blocking, classify};
use super::awaited::{ByThread, Queues, REACH};
use super::{Covers, Guards, Wait};
use crate::profile::ids::{CallId, OpId, StreamIx};
use crate::vocabulary::{Copy, Direction, HostMemory};
use rustc_hash::{FxHashMap, FxHashSet};

#[derive(Default)]
struct Events {
    /// Copies followed by an event record that the host waits for or queries.
    behind: FxHashSet<OpId>,
    /// Number of other records on each stream that the host only queries: PyTorch's host allocator records
    /// one per returned block, and queries it before it reuses the block.
    given_back: FxHashMap<StreamIx, usize>,
}

impl Queues<'_> {
    /// Definition: an event guards a copy if its record comes next on the copy's stream, before any wait
    /// covered the copy. A copy without such an event may be guarded by the thread's first wait that covers
    /// the copy, and by waits for events recorded until then. Where the awaited event is not recorded, the
    /// next such wait counts. Streams are excluded where an allocator got back about as much memory as was
    /// copied: the allocator waits by itself. Cost: as [`Self::complete_copies`], and a search per event
    /// record.
    pub fn guard_copies(&self, waits: &mut [Wait], by_thread: &ByThread) {
        let (ops, calls) = (&self.profile.ops, &self.profile.calls);
        let events = self.events(waits);
        let mut of_event: FxHashMap<OpId, Vec<usize>> = FxHashMap::default();
        for (i, wait) in waits.iter().enumerate().filter(|(_, wait)| wait.blocking == Blocking::Event) {
            wait.reaches.into_iter().for_each(|op| of_event.entry(op).or_default().push(i));
        }
        let mut perhaps: FxHashMap<StreamIx, (usize, Vec<usize>)> = FxHashMap::default();
        for op in ops.ids().filter(|&op| ops.copy(op).is_some_and(|copy| touches_host(&copy))) {
            let asynchronous = |&call: &CallId| classify(calls.base_name(call)) == Some(Blocking::CopyAsync);
            let Some(call) = self.profile.issuer(op).filter(asynchronous) else { continue };
            let stream = ops.stream(op);
            let list = by_thread.get(&calls.thread(call)).map_or(&[][..], Vec::as_slice);
            let issued = calls.end(call);
            let from = list.partition_point(|&i| calls.start(waits[i].call) < issued);
            let covers = |&i: &usize| self.covers(&waits[i], stream) && issued <= waits[i].covers_before;
            let mut near = list[from..].iter().take(REACH).copied().filter(covers);
            let first = near.next();
            let until = first.map_or(i64::MAX, |i| calls.start(waits[i].call));
            let in_time = |&i: &usize| waits[i].covers_before <= until;
            let own: Vec<usize> = of_event.get(&op).into_iter().flatten().copied().filter(in_time).collect();
            if own.is_empty() && !events.behind.contains(&op) {
                let (copies, guards) = perhaps.entry(stream).or_default();
                guards.extend(first);
                // A copy completed by its own synchronisation needs no other wait.
                if first.is_none_or(|i| waits[i].copy_call != Some(call)) {
                    *copies += 1;
                    guards.extend(near.filter(is_for(waits, until)));
                }
            }
            own.into_iter().for_each(|i| waits[i].guards = Guards::Own);
        }
        for (stream, (copies, guards)) in perhaps {
            let given_back = events.given_back.get(&stream).copied().unwrap_or_default();
            // The last blocks may be given back after the capture.
            let left = copies.saturating_sub(given_back) * 10 > copies;
            for i in guards.into_iter().filter(|_| left) {
                waits[i].guards = waits[i].guards.max(Guards::Perhaps);
            }
        }
    }

    fn events(&self, waits: &[Wait]) -> Events {
        let of_event = waits.iter().filter(|wait| wait.blocking == Blocking::Event);
        let awaited = of_event.filter_map(|wait| self.sync_row(wait)).map(|row| (row.pid, row.event));
        let awaited: FxHashSet<_> = awaited.collect();
        let mut events = Events::default();
        for record in self.profile.syncs.asked() {
            let stream = self.stream_index(record.pid, record.device, record.context, record.stream);
            let (Some(stream), Some(call)) = (stream, record.call) else { continue };
            let last = self.streams.last_issued(stream, self.profile.calls.start(call), i64::MAX);
            match last.filter(|&op| self.profile.ops.copy(op).is_some_and(|copy| touches_host(&copy))) {
                Some(copy) => _ = events.behind.insert(copy),
                None if awaited.contains(&(record.pid, record.event)) => {}
                None => *events.given_back.entry(stream).or_default() += 1,
            }
        }
        events
    }
}

/// Whether a wait is for an event that was recorded before `until`, or may have been.
fn is_for(waits: &[Wait], until: i64) -> impl Fn(&usize) -> bool + use<'_> {
    move |&i| {
        let known = matches!(waits[i].covers, Covers::Stream(_));
        waits[i].blocking == Blocking::Event && (!known || waits[i].covers_before <= until)
    }
}

/// Whether the GPU may access host memory on its own during a copy.
fn touches_host(copy: &Copy) -> bool {
    copy.host_memory != HostMemory::Pageable
        && matches!(copy.direction, Direction::HostToDevice | Direction::DeviceToHost)
}
