//! From API calls to waits: pick the blocking calls, merge nested rows, give each synchronisation its copy.

use super::api::{Blocking, INIT, classify};
use super::awaited::{self, Queues};
use super::device::Devices;
use super::{Covers, Found, Guards, Wait, WaitId};
use crate::profile::Profile;
use crate::profile::database::MAX_TIME;
use crate::profile::ids::{CallId, ExportId, NameIx, OpId, ThreadIx};
use crate::vocabulary::{Copy, Direction, HostMemory};
use typed_index_collections::{TiSlice, TiVec};

/// Gap within PyTorch's copy-then-synchronise pair: median 0.6 µs, at most 4 µs over 296 pairs of five
/// exports. Recording a backtrace takes longer, so captures with twins have no limit.
const MAX_PAIR_GAP_NS: i64 = 20_000;

/// A D2D copy or memset counts as a wait only if the GPU held the call longer than this, and the call
/// returned within this time of the op's end. A shorter call outlasts a short op by chance.
const BY_ITSELF_NS: i64 = 50_000;

/// A host allocation counts as a wait only if it returned within this time of the work it would have waited for.
const DRAIN_RETURN_NS: i64 = 20_000;

/// All waits of an export, in order of their calls. Linear in the calls plus, per wait, a binary search per
/// stream it may concern.
pub fn find(profile: &Profile, devices: &Devices) -> TiVec<WaitId, Wait> {
    let queues = Queues::new(profile, devices);
    let kinds: TiVec<NameIx, Option<Blocking>> =
        profile.calls.names.iter().map(|n| classify(&n.base)).collect();
    let records: TiVec<NameIx, bool> =
        profile.calls.names.iter().map(|n| n.base.contains("EventRecord")).collect();
    let mut waits: Vec<Wait> = Vec::new();
    for (thread, calls) in profile.calls.by_thread.iter_enumerated() {
        let finder = Finder { profile, queues: &queues, kinds: &kinds, records: &records, thread };
        finder.of_thread(calls, &mut waits);
    }
    let by_thread = awaited::by_thread(&waits);
    queues.complete_copies(&mut waits, &by_thread);
    queues.guard_copies(&mut waits, &by_thread);
    queues.find_timed(&mut waits, &by_thread);
    waits.sort_unstable_by_key(|w| w.call);
    waits.shrink_to_fit();
    TiVec::from(waits)
}

#[derive(Clone, Copy)]
struct Previous {
    call: CallId,
    /// Time not covered by earlier calls, in ns. Rows of one thread overlap only in damaged exports.
    length: i64,
}

struct Finder<'a> {
    profile: &'a Profile,
    queues: &'a Queues<'a>,
    kinds: &'a TiSlice<NameIx, Option<Blocking>>,
    /// Names that record an event: such a call does not part a copy from its synchronisation.
    records: &'a TiSlice<NameIx, bool>,
    thread: ThreadIx,
}

impl Finder<'_> {
    /// ```text
    ///   cudaMemcpyAsync [---]                                   kept as `previous`
    ///   cudaStreamSynchronize   [------------]                  a wait, with the copy
    ///     cuStreamSynchronize     [--------]                    nested: the same wait
    /// ```
    fn of_thread(&self, calls: &[CallId], waits: &mut Vec<Wait>) {
        let (table, first) = (&self.profile.calls, waits.len());
        let mut previous: Option<Previous> = None;
        let mut covered_until = -MAX_TIME; // before every call
        let mut after = 0;
        for (at, &call) in calls.iter().enumerate() {
            // Most calls are launches, which matter only directly before a wait.
            let Some(blocking) = self.kinds[table.name(call)] else { continue };
            let times = |call: CallId| (table.start(call), table.end(call));
            let nested = |(start, end): (i64, i64)| end <= covered_until && start < covered_until;
            let (start, end) = times(call);
            if nested((start, end)) {
                continue; // in the call before
            }
            let overlap = |start: i64| (covered_until - start).max(0);
            let previous_of = |(call, (start, end)): (CallId, (i64, i64))| {
                let length = end - start - overlap(start).min(end - start);
                Previous { call, length }
            };
            let before = calls[after..at].iter().rev().filter(|call| !self.records[table.name(**call)]);
            let before = before.map(|&call| (call, times(call))).find(|&(_, times)| !nested(times));
            previous = before.map(previous_of).or(previous);
            let (own, overlap) = (previous_of((call, (start, end))), overlap(start));
            // A synchronisation nested in a launch still counts.
            (covered_until, after) = (covered_until.max(end), at + 1);
            let mut wait = self.wait(call, blocking, previous);
            wait.starts = blocking == Blocking::Free && self.follows_init(&calls[..at]);
            // Rows overlap in damaged exports: no time is counted twice.
            wait.blocked -= overlap.min(wait.blocked);
            if let Some(copy) = wait.copy_call {
                // A pageable copy, so far a wait of its own, now belongs to its synchronisation.
                waits.pop_if(|w| w.call == copy);
            }
            self.queues.resolve(&mut wait, &waits[first..]);
            if self.counts(&wait) {
                waits.push(wait);
            }
            previous = Some(own);
        }
    }

    fn wait(&self, call: CallId, blocking: Blocking, previous: Option<Previous>) -> Wait {
        let table = &self.profile.calls;
        let pid = table.threads[self.thread].process();
        let duration = table.length(call);
        let mut wait = Wait {
            call,
            copy_call: None,
            blocking,
            thread: self.thread,
            pid,
            start: table.start(call),
            end: table.end(call),
            blocked: duration,
            copy_blocked: 0,
            copy: None,
            device: None,
            stream: ExportId::NONE,
            context: ExportId::NONE,
            found: Found::Unknown,
            awaited: None,
            reaches: None,
            not_for: None,
            completes: None,
            guards: Guards::Nothing,
            timed: false,
            starts: false,
            covers: Covers::Nothing,
            covers_before: table.end(call),
        };
        match blocking {
            Blocking::Stream => {
                if let Some((p, copy)) = previous.and_then(|p| Some((p, self.paired_copy(p.call, &wait)?))) {
                    wait.copy_call = Some(p.call);
                    wait.copy = copy;
                    wait.start = table.start(p.call);
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
        wait
    }

    /// Whether the last of these calls starts the driver. Calls that ask for something, or allocate, are not among them.
    fn follows_init(&self, calls: &[CallId]) -> bool {
        let table = &self.profile.calls;
        calls.last().is_some_and(|&call| &*table.names[table.name(call)].base == INIT)
    }

    /// The copy that a stream synchronisation completes: the call just before it on the thread, on the same stream,
    /// from or to the host. `Some(None)`: the export lacks the copy.
    fn paired_copy(&self, previous: CallId, wait: &Wait) -> Option<Option<Copy>> {
        let table = &self.profile.calls;
        if self.kinds[table.name(previous)] != Some(Blocking::CopyAsync) {
            return None;
        }
        let near = wait.start - table.end(previous) <= MAX_PAIR_GAP_NS;
        if !near && table.twin(previous).is_none() {
            return None;
        }
        let Some(op) = self.queues.op_of_call(wait.pid, previous) else { return Some(None) };
        let copy = self.profile.ops.copy(op)?;
        let stream = self.queues.stream_of_sync(wait);
        let same = stream.is_none_or(|s| self.queues.may_be_one(s, self.profile.ops.stream(op)));
        match copy.direction {
            _ if !same => None,
            Direction::HostToDevice | Direction::DeviceToHost => Some(Some(copy)),
            Direction::DeviceToDevice | Direction::HostToHost => None,
            Direction::Other => Some(None),
        }
    }

    /// Whether the GPU kept a call until its op had ended: with work that was pending before, or with the op itself.
    fn kept(&self, wait: &Wait, op: OpId) -> bool {
        let ops = &self.profile.ops;
        let from = if wait.found == Found::Pending { wait.start } else { ops.start(op).max(wait.start) };
        let returned = wait.end - ops.end(op);
        ops.end(op) - from > BY_ITSELF_NS && (0..=BY_ITSELF_NS).contains(&returned)
    }

    fn counts(&self, wait: &Wait) -> bool {
        let ops = &self.profile.ops;
        let op = self.queues.op_of_call(wait.pid, wait.call);
        let outlasted = op.is_some_and(|op| wait.end >= ops.end(op));
        match wait.blocking {
            Blocking::Stream | Blocking::Event | Blocking::Context | Blocking::Free | Blocking::HostFree => {
                true
            }
            // A D2D copy or memset does not synchronise the host, unless the trace shows it.
            Blocking::Copy if wait.copy.is_none_or(|c| c.direction != Direction::DeviceToDevice) => true,
            Blocking::Copy | Blocking::Memset => op.is_some_and(|op| self.kept(wait, op)),
            Blocking::CopyAsync => {
                let (Some(copy), Some(op)) = (wait.copy, op) else { return false };
                let still_in_call = wait.end > ops.start(op);
                match (copy.host_memory, copy.direction) {
                    (HostMemory::Pageable, Direction::DeviceToHost) => outlasted,
                    (HostMemory::Pageable, Direction::HostToDevice) => !copy.is_taken_over() && still_in_call,
                    _ => false,
                }
            }
            Blocking::HostAlloc => {
                let drained = wait.awaited.map(|op| wait.end - ops.end(op));
                wait.found == Found::Pending && drained.is_some_and(|d| (0..=DRAIN_RETURN_NS).contains(&d))
            }
        }
    }
}
