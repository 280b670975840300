//! From API calls to waits: pick the blocking calls, merge nested rows, give each synchronisation its copy.

use super::api::{Blocking, classify};
use super::awaited::Queues;
use super::device::Devices;
use super::{Covers, Found, Wait};
use crate::profile::Profile;
use crate::profile::database::MAX_TIME;
use crate::profile::nvtx::process;
use crate::vocabulary::{Copy, Direction, HostMemory};

/// Between the two calls of PyTorch's copy-then-synchronise pair: median 0.6 µs, at most 4 µs over 296 pairs of five
/// exports. Recording a backtrace takes longer, so captures with twins have no limit.
const MAX_PAIR_GAP_NS: i64 = 20_000;

/// "Transfers from pageable host memory to device memory of a block of 64 KB or less" return once staged (CUDA runtime
/// API, API synchronization behavior).
const STAGED_BYTES: u64 = 64 * 1024;

/// A host allocation counts as a wait only if it returned within this time of the work it would have waited for.
const DRAIN_RETURN_NS: i64 = 20_000;

/// Finds all waits of an export, in order of their calls.
///
/// Linear in the calls plus, per wait, a binary search per stream it may concern.
pub fn find(profile: &Profile, devices: &Devices) -> Vec<Wait> {
    let queues = Queues::new(profile, devices);
    let kinds: Vec<Option<Blocking>> = profile.calls.names.iter().map(|n| classify(&n.base)).collect();
    let records: Vec<bool> = profile.calls.names.iter().map(|n| n.base.contains("EventRecord")).collect();
    let mut waits: Vec<Wait> = Vec::new();
    for (thread, calls) in (0u32..).zip(&profile.calls.by_thread) {
        let finder = Finder { profile, queues: &queues, kinds: &kinds, records: &records, thread };
        waits.extend(finder.of_thread(calls));
    }
    queues.complete_copies(&mut waits);
    waits.sort_by_key(|w| w.call);
    waits
}

/// The call before a wait on its thread.
#[derive(Clone, Copy)]
struct Previous {
    call: u32,
    /// What no call before it covers, in ns: rows of one thread overlap in damaged exports only.
    length: i64,
}

struct Finder<'a> {
    profile: &'a Profile,
    queues: &'a Queues<'a>,
    /// By name index.
    kinds: &'a [Option<Blocking>],
    /// By name index: calls that record an event. One between a copy and its synchronisation does not part them.
    records: &'a [bool],
    thread: u32,
}

impl Finder<'_> {
    /// ```text
    ///   cudaMemcpyAsync [---]                                   kept as `previous`
    ///   cudaStreamSynchronize   [------------]                  a wait, with the copy
    ///     cuStreamSynchronize     [--------]                    nested: the same wait
    /// ```
    fn of_thread(&self, calls: &[u32]) -> Vec<Wait> {
        let table = &self.profile.calls;
        let mut waits: Vec<Wait> = Vec::new();
        let mut previous: Option<Previous> = None;
        let mut covered_until = -MAX_TIME; // before every call
        for &call in calls {
            let (start, end) = (table.start[call as usize], table.end[call as usize]);
            if end <= covered_until && start < covered_until {
                continue; // nested in the call before
            }
            let overlap = (covered_until - start).max(0);
            let blocking = self.kinds[table.name[call as usize] as usize];
            if blocking.is_some() {
                // A launch around a synchronisation does not make it part of the launch.
                covered_until = covered_until.max(end);
            }
            if let Some(blocking) = blocking
                && let Some(mut wait) = self.wait(call, blocking, previous)
            {
                // Rows of one thread do not overlap, but for damaged exports: no time is counted twice.
                wait.blocked -= overlap.min(wait.blocked);
                if let Some(copy) = wait.copy_call {
                    // A pageable copy that stood as a wait of its own now belongs to its synchronisation.
                    waits.pop_if(|w| w.call == copy);
                }
                self.queues.resolve(&mut wait, &waits);
                if self.counts(&wait) {
                    waits.push(wait);
                }
            }
            if !self.records[table.name[call as usize] as usize] {
                previous = Some(Previous { call, length: end - start - overlap.min(end - start) });
            }
        }
        waits
    }

    fn wait(&self, call: u32, blocking: Blocking, previous: Option<Previous>) -> Option<Wait> {
        let table = &self.profile.calls;
        let i = call as usize;
        let pid = process(table.threads[self.thread as usize]);
        let duration = table.end[i] - table.start[i];
        let mut wait = Wait {
            call,
            copy_call: None,
            blocking,
            thread: self.thread,
            pid,
            start: table.start[i],
            end: table.end[i],
            blocked: duration,
            copy_blocked: 0,
            copy: None,
            device: None,
            stream: None,
            context: None,
            found: Found::Unknown,
            awaited: None,
            reaches: None,
            not_for: None,
            completes: None,
            covers: Covers::Nothing,
            covers_before: table.end[i],
        };
        match blocking {
            Blocking::Stream => {
                if let Some((p, copy)) = previous.and_then(|p| Some((p, self.paired_copy(p.call, &wait)?))) {
                    wait.copy_call = Some(p.call);
                    wait.copy = copy;
                    wait.start = table.start[p.call as usize];
                    // Enqueueing from pinned memory is a launch; from pageable memory the call itself blocks.
                    let blocks = copy.is_some_and(|c| c.host_memory != HostMemory::Pinned);
                    wait.copy_blocked = if blocks { p.length } else { 0 };
                    wait.blocked = duration + wait.copy_blocked;
                }
            }
            Blocking::Copy | Blocking::CopyAsync => {
                wait.copy = self.queues.op_of_call(pid, call).and_then(|op| self.profile.ops.copy(op));
                wait.copy_blocked = duration;
            }
            _ => {}
        }
        Some(wait)
    }

    /// The copy that a stream synchronisation completes: the call just before it on the thread, on the same stream,
    /// from or to the host. `Some(None)` where the export does not hold what it copied.
    fn paired_copy(&self, previous: u32, wait: &Wait) -> Option<Option<Copy>> {
        let table = &self.profile.calls;
        let p = previous as usize;
        if self.kinds[table.name[p] as usize] != Some(Blocking::CopyAsync) {
            return None;
        }
        let near = wait.start - table.end[p] <= MAX_PAIR_GAP_NS;
        let traced = table.twins.of(self.thread, table.start[p], table.correlation[p]).is_some();
        if !near && !traced {
            return None;
        }
        let Some(op) = self.queues.op_of_call(wait.pid, previous) else { return Some(None) };
        let copy = self.profile.ops.copy(op)?;
        let stream = self.queues.stream_of_sync(wait);
        let same = stream.is_none_or(|s| self.queues.may_be_one(s, self.profile.ops.stream[op as usize]));
        match copy.direction {
            _ if !same => None,
            Direction::HostToDevice | Direction::DeviceToHost => Some(Some(copy)),
            Direction::DeviceToDevice | Direction::HostToHost => None,
            Direction::Other => Some(None),
        }
    }

    /// Whether a call that may block did: calls that block by definition always count.
    fn counts(&self, wait: &Wait) -> bool {
        let ops = &self.profile.ops;
        let op = self.queues.op_of_call(wait.pid, wait.call);
        let outlasted = op.is_some_and(|op| wait.end >= ops.end[op as usize]);
        match wait.blocking {
            Blocking::Stream | Blocking::Event | Blocking::Context | Blocking::Free | Blocking::HostFree => {
                true
            }
            // Between two places in device memory the host is not synchronised, unless it shows.
            Blocking::Copy => wait.copy.is_none_or(|c| c.direction != Direction::DeviceToDevice) || outlasted,
            Blocking::Memset => outlasted,
            Blocking::CopyAsync => {
                let (Some(copy), Some(op)) = (wait.copy, op) else { return false };
                let still_in_call = wait.end > ops.start[op as usize];
                match (copy.host_memory, copy.direction) {
                    (HostMemory::Pageable, Direction::DeviceToHost) => outlasted,
                    (HostMemory::Pageable, Direction::HostToDevice) => {
                        copy.bytes > STAGED_BYTES && still_in_call
                    }
                    _ => false,
                }
            }
            Blocking::HostAlloc => {
                let drained = wait.awaited.map(|op| wait.end - ops.end[op as usize]);
                wait.found == Found::Pending && drained.is_some_and(|d| (0..=DRAIN_RETURN_NS).contains(&d))
            }
        }
    }
}
