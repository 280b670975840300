//! What a wait waited for: the ops that had to end before it could return.
//!
//! ```text
//!  host    launch k1  launch k2   [wait------------]  launch k3
//!  s7                 [k1-----][k2-----------]              [k3]     stream, event, copy: last op issued before, on its stream
//!  s13           [m1--------------]                                  context: the same, over all streams of the device
//! ```
//! Streams work in order, so per stream the last op issued before the wait began decides: if it had ended, the wait
//! found nothing there. A context synchronisation without a recorded device may concern any device of the process,
//! but none that still ran earlier work when it returned.

use super::api::Blocking;
use super::device::{Devices, gpu_id, unknown};
use super::{Covers, Found, Wait};
use crate::profile::calls::NO_CORRELATION;
use crate::profile::ops::StreamKey;
use crate::profile::seek::Place;
use crate::profile::syncs::{NONE, SyncRow};
use crate::profile::{ISSUE_UNKNOWN, Profile};
use crate::vocabulary::Direction;
use rustc_hash::FxHashMap;

/// How far GPU and host clocks may disagree: over 1,500 stream synchronisations of 12 exports the awaited op ended at
/// most 48 ns after the host's return (WSL), mostly 1 to 6 µs before it.
pub const CLOCK_SLOP_NS: i64 = 1_000;

/// A bare synchronisation that found nothing pending returns within this time: at most 23 µs over 400 such waits of 12
/// captures, the profiler's own cost included.
const IDLE_MAX_NS: i64 = 50_000;

/// A wait returns within this time of the op it waited for: 1 to 6 µs mostly, some more with a backtrace.
const RETURN_MAX_NS: i64 = 50_000;

/// How many earlier waits of a thread are asked whether they drained a stream.
const LOOK_BACK: usize = 8;

/// Ops by stream and by call.
pub struct Queues<'a> {
    profile: &'a Profile,
    devices: &'a Devices,
    /// First op of each (process, correlation id).
    op_by_correlation: FxHashMap<(i64, u32), u32>,
    /// Streams of each process.
    streams_of: FxHashMap<i64, Vec<u32>>,
    /// Per stream: where the last look-up ended.
    places: Vec<Place>,
}

impl<'a> Queues<'a> {
    pub fn new(profile: &'a Profile, devices: &'a Devices) -> Self {
        let ops = &profile.ops;
        let mut streams_of: FxHashMap<i64, Vec<u32>> = FxHashMap::default();
        for (i, key) in (0..).zip(&ops.streams) {
            streams_of.entry(key.pid).or_default().push(i);
        }
        // Only copies and memsets are looked up by call: kernels would make the map ten times larger.
        let mut op_by_correlation = FxHashMap::default();
        for i in 0..ops.len() {
            use crate::profile::ops::OpKind::*;
            if matches!(ops.kind[i], Memcpy | Memset) && ops.correlation[i] != NO_CORRELATION {
                let pid = ops.streams[ops.stream[i] as usize].pid;
                op_by_correlation.entry((pid, ops.correlation[i])).or_insert(i as u32);
            }
        }
        let places = ops.streams.iter().map(|_| Place::default()).collect();
        Self { profile, devices, op_by_correlation, streams_of, places }
    }

    /// The copy or memset that a call issued.
    pub fn op_of_call(&self, pid: i64, call: u32) -> Option<u32> {
        self.op_by_correlation.get(&(pid, self.profile.calls.correlation[call as usize])).copied()
    }

    /// The stream that CUPTI recorded for a synchronisation.
    pub fn stream_of_sync(&self, wait: &Wait) -> Option<u32> {
        self.sync_row(wait).and_then(|row| self.stream_index(wait.pid, row.device, row.context, row.stream))
    }

    fn sync_row(&self, wait: &Wait) -> Option<&SyncRow> {
        let calls = &self.profile.calls;
        let i = wait.call as usize;
        self.profile.syncs.of(wait.pid, calls.correlation[i], calls.start[i], calls.end[i])
    }

    /// The stream of a process with these ids. Where device or context is not recorded, the only one that it can be.
    fn stream_index(&self, pid: i64, device: u32, context: u32, stream: u32) -> Option<u32> {
        let streams = &self.profile.ops.streams;
        if stream != NONE && (device == NONE || context == NONE) {
            let fits = |known: u32, id: u32| known == NONE || known == id;
            let mut candidates = self.streams_of.get(&pid)?.iter().copied().filter(|&s| {
                let key = &streams[s as usize];
                key.stream == stream && fits(device, key.device) && fits(context, key.context)
            });
            return candidates.next().filter(|_| candidates.next().is_none());
        }
        let key = StreamKey { pid, device, context, stream };
        streams.binary_search(&key).ok().map(|i| i as u32)
    }

    /// Whether two streams differ in nothing that the export records of both.
    pub fn may_be_one(&self, a: u32, b: u32) -> bool {
        let (a, b) = (&self.profile.ops.streams[a as usize], &self.profile.ops.streams[b as usize]);
        let fits = |a: u32, b: u32| a == b || a == NONE || b == NONE;
        a.pid == b.pid && fits(a.device, b.device) && fits(a.context, b.context) && fits(a.stream, b.stream)
    }

    /// Fills in what `wait` waited for; `earlier`: the waits of its thread before it.
    pub fn resolve(&self, wait: &mut Wait, earlier: &[Wait]) {
        let row = self.sync_row(wait).copied();
        if let Some(row) = &row {
            wait.stream = Some(row.stream).filter(|&s| s != NONE);
            wait.context = Some(row.context).filter(|&c| c != NONE);
            wait.device = self.device_index(wait.pid, row.device);
        }
        match wait.blocking {
            Blocking::Stream => self.resolve_stream(wait, row.as_ref()),
            Blocking::Event => self.resolve_event(wait, row.as_ref()),
            Blocking::Copy | Blocking::CopyAsync | Blocking::Memset => self.resolve_copy(wait),
            Blocking::Context | Blocking::Free | Blocking::HostFree | Blocking::HostAlloc => {
                self.resolve_context(wait)
            }
        }
        let bare = wait.copy_call.is_none()
            && matches!(wait.blocking, Blocking::Stream | Blocking::Event | Blocking::Context);
        if wait.found == Found::Nothing && bare && wait.blocked > IDLE_MAX_NS {
            self.look_further(wait);
        }
        if wait.found == Found::Nothing && self.drained_before(wait, earlier) {
            wait.found = Found::Drained;
        }
    }

    /// A wait that blocked although nothing was pending where it looked: on a stream that waits for another
    /// (`cudaStreamWaitEvent`), the op that ended right before its return is what it waited for.
    fn look_further(&self, wait: &mut Wait) {
        let ops = &self.profile.ops;
        let returned = wait.end + CLOCK_SLOP_NS;
        let streams = self.streams_of.get(&wait.pid).into_iter().flatten();
        let ended = streams.filter_map(|&s| self.last_ended(s, wait.end, wait.end, returned));
        let last = ended.max_by_key(|&op| (ops.end[op as usize], std::cmp::Reverse(op)));
        match last.filter(|&op| ops.end[op as usize] > wait.start.max(wait.end - RETURN_MAX_NS)) {
            Some(op) => {
                wait.awaited = Some(op);
                wait.found = Found::Pending;
            }
            None => wait.found = Found::Unseen,
        }
    }

    fn device_index(&self, pid: i64, ordinal: u32) -> Option<u32> {
        if unknown(ordinal) {
            return None;
        }
        let id = gpu_id(self.profile, pid, ordinal);
        self.devices.list.iter().position(|d| d.id == id).map(|i| i as u32)
    }

    fn has_ops(&self, pid: i64) -> bool {
        self.streams_of.contains_key(&pid)
    }

    fn resolve_stream(&self, wait: &mut Wait, row: Option<&SyncRow>) {
        let copy_op = wait.copy_call.and_then(|c| self.op_of_call(wait.pid, c));
        let copy_stream = copy_op.map(|op| self.profile.ops.stream[op as usize]);
        let recorded = row.and_then(|r| self.stream_index(wait.pid, r.device, r.context, r.stream));
        let Some(stream) = recorded.or(copy_stream) else {
            match row {
                // The stream is known, and nothing ever ran on it.
                Some(r) if ![r.stream, r.device, r.context].contains(&NONE) && self.has_ops(wait.pid) => {
                    wait.found = Found::Nothing;
                }
                _ => self.resolve_context(wait),
            }
            return;
        };
        self.on_stream(wait, stream, wait.start);
        if copy_op.is_some() {
            wait.awaited = copy_op;
        }
    }

    fn resolve_event(&self, wait: &mut Wait, row: Option<&SyncRow>) {
        let correlation = self.profile.calls.correlation[wait.call as usize];
        let record = row.and_then(|r| self.profile.syncs.record_of(r, correlation)).copied();
        let Some(record) = record else {
            // Which event is not recorded: it may concern any stream, but the wait ended with the last awaited op.
            return self.resolve_context(wait);
        };
        wait.stream = Some(record.stream).filter(|&s| s != NONE);
        wait.context = wait.context.or(Some(record.context).filter(|&c| c != NONE));
        wait.device = wait.device.or_else(|| self.device_index(wait.pid, record.device));
        let Some(stream) = self.stream_index(wait.pid, record.device, record.context, record.stream) else {
            wait.found = if self.has_ops(wait.pid) { Found::Nothing } else { Found::Unknown };
            return;
        };
        let recorded_at = self
            .profile
            .correlation
            .call(wait.pid, record.correlation)
            .map_or(wait.start, |c| self.profile.calls.start[c as usize]);
        self.on_stream(wait, stream, recorded_at.min(wait.start));
        wait.covers_before = recorded_at;
    }

    fn resolve_copy(&self, wait: &mut Wait) {
        let Some(op) = self.op_of_call(wait.pid, wait.call) else {
            return self.resolve_context(wait);
        };
        self.on_stream(wait, self.profile.ops.stream[op as usize], wait.start);
        wait.awaited = Some(op);
    }

    /// Waits for what was issued on one stream before `issued_before`.
    fn on_stream(&self, wait: &mut Wait, stream: u32, issued_before: i64) {
        let key = self.profile.ops.streams[stream as usize];
        wait.device = Some(self.devices.of_stream[stream as usize]);
        wait.stream = Some(key.stream).filter(|&s| s != NONE);
        wait.context = wait.context.or(Some(key.context).filter(|&c| c != NONE));
        wait.covers = Covers::Stream(stream);
        let last = self.last_issued(stream, issued_before, wait.end);
        wait.reaches = last;
        wait.found = match last {
            Some(op) if self.profile.ops.end[op as usize] > wait.start => {
                wait.awaited = Some(op);
                Found::Pending
            }
            _ => Found::Nothing,
        };
    }

    /// The last op on `stream` whose launch began before `time` and that started before `until`.
    fn last_issued(&self, stream: u32, time: i64, until: i64) -> Option<u32> {
        self.last_ended(stream, time, until, i64::MAX)
    }

    /// As [`Self::last_issued`], of those that ended by `ended_by`.
    fn last_ended(&self, stream: u32, time: i64, until: i64, ended_by: i64) -> Option<u32> {
        let (ops, list) = (&self.profile.ops, &self.devices.stream_ops[stream as usize]);
        let started = self.places[stream as usize].seek(list.len(), |i| ops.start[list[i] as usize] < until);
        // In order on a stream: those skipped were issued by other threads during the wait.
        let fits = |op: &u32| self.issued(*op) < time && ops.end[*op as usize] <= ended_by;
        list[..started].iter().rev().copied().find(fits)
    }

    /// When an op was issued; where no launch is recorded, as early as possible: it ran, so it was issued.
    fn issued(&self, op: u32) -> i64 {
        self.profile.issued[op as usize]
    }

    /// Waits for every stream of the process: of the recorded device, or of each device that it can have been.
    fn resolve_context(&self, wait: &mut Wait) {
        let ops = &self.profile.ops;
        let Some(streams) = self.streams_of.get(&wait.pid) else { return };
        let device = wait.device.or_else(|| self.only_device(wait.pid, streams));
        wait.covers = device.map_or(Covers::AnyDevice, Covers::Device);
        // An event says nothing about what was launched after it, nor a known device whose work outlasted the wait
        // (memory that is freed without draining): what ran on was not awaited, what ended on its stream before may be.
        let device_of = |op: u32| self.devices.of_stream[ops.stream[op as usize] as usize];
        let returned = wait.end + CLOCK_SLOP_NS;
        let told = device.is_some() || wait.blocking == Blocking::Event;
        let ended_by = if told { returned } else { i64::MAX };
        let mut pending: Vec<u32> = Vec::new();
        for &stream in streams {
            if device.is_some_and(|d| d != self.devices.of_stream[stream as usize]) {
                continue;
            }
            let last = self.last_ended(stream, wait.start, wait.end, ended_by);
            pending.extend(last.filter(|&op| ops.end[op as usize] > wait.start));
        }
        if !told {
            // A device that still works on earlier ops cannot be the one that was waited for.
            let runs_on = pending.iter().copied().filter(|&op| ops.end[op as usize] > returned);
            let mut busy: Vec<u32> = runs_on.map(device_of).collect();
            busy.sort_unstable();
            wait.not_for = busy.first().copied();
            pending.retain(|&op| !busy.contains(&device_of(op)));
        }
        wait.awaited =
            pending.iter().copied().max_by_key(|&op| (ops.end[op as usize], std::cmp::Reverse(op)));
        wait.found = if pending.is_empty() { Found::Nothing } else { Found::Pending };
        wait.device = device;
    }

    /// The device of a process that has used no other: no second context, no ops elsewhere.
    fn only_device(&self, pid: i64, streams: &[u32]) -> Option<u32> {
        let first = self.devices.of_stream[*streams.first()? as usize];
        let ops_elsewhere = streams.iter().any(|&s| self.devices.of_stream[s as usize] != first);
        let pid32 = super::device::pid_of(pid);
        let id = self.devices.list[first as usize].id;
        let contexts = self.profile.target.device_of_context.iter().filter(|((p, _), _)| *p == pid32);
        let contexts_elsewhere =
            contexts.clone().any(|(_, &ordinal)| gpu_id(self.profile, pid, ordinal) != id);
        let listed = contexts.count() > 0 || self.profile.target.gpu_names.len() == 1;
        (!ops_elsewhere && !contexts_elsewhere && listed).then_some(first)
    }

    /// Whether earlier waits of the thread had drained all that this one could wait for, with nothing issued since.
    ///
    /// ```text
    ///  host   launch k1  [wait A------]  [wait B]      B is redundant: k1 had ended when A returned, and nothing
    ///  GPU        [k1---------]                        was issued in between
    /// ```
    fn drained_before(&self, wait: &Wait, earlier: &[Wait]) -> bool {
        let Some(streams) = self.streams_of.get(&wait.pid) else { return false };
        let mine = streams.iter().copied().filter(|&s| match wait.covers {
            Covers::Stream(own) => s == own,
            Covers::Device(d) => self.devices.of_stream[s as usize] == d,
            Covers::AnyDevice => wait.not_for != Some(self.devices.of_stream[s as usize]),
            Covers::Nothing => false,
        });
        let mut any = false;
        for stream in mine {
            let Some(last) = self.last_issued(stream, wait.start, wait.end) else { continue };
            any = true;
            let (issued, ended) = (self.issued(last), self.profile.ops.end[last as usize]);
            let drained = earlier.iter().rev().take(LOOK_BACK).any(|w| {
                self.surely_covers(w, stream)
                    && issued != ISSUE_UNKNOWN
                    && issued < w.covers_before
                    && ended <= w.end + CLOCK_SLOP_NS
            });
            if !drained {
                return false;
            }
        }
        any
    }

    /// Whether a wait's return proves `stream` drained: not where the device it waited for is not recorded.
    fn surely_covers(&self, wait: &Wait, stream: u32) -> bool {
        wait.covers != Covers::AnyDevice && self.covers(wait, stream)
    }

    /// Whether a wait may have drained `stream`.
    fn covers(&self, wait: &Wait, stream: u32) -> bool {
        let device = self.devices.of_stream[stream as usize];
        match wait.covers {
            Covers::Stream(s) => s == stream,
            Covers::Device(d) => d == device,
            Covers::AnyDevice => wait.not_for != Some(device),
            Covers::Nothing => false,
        }
    }

    /// Gives each copy to the host that nothing waited for at once (`non_blocking=True`) to the first later wait of
    /// the issuing thread that covers its stream: that wait is a data barrier, not a stray synchronisation.
    pub fn complete_copies(&self, waits: &mut [Wait]) {
        let ops = &self.profile.ops;
        let mut own: Vec<u32> = waits.iter().filter(|w| w.copy.is_some()).filter_map(|w| w.awaited).collect();
        own.sort_unstable();
        let mut by_thread: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        for (i, w) in waits.iter().enumerate() {
            by_thread.entry(w.thread).or_default().push(i);
        }
        for op in 0..ops.len() as u32 {
            let to_host = ops.copy(op).is_some_and(|c| c.direction == Direction::DeviceToHost);
            if !to_host || own.binary_search(&op).is_ok() {
                continue;
            }
            let stream = ops.stream[op as usize];
            let pid = ops.streams[stream as usize].pid;
            let Some(call) = self.profile.correlation.call(pid, ops.correlation[op as usize]) else {
                continue;
            };
            let Some(list) = by_thread.get(&self.profile.calls.thread[call as usize]) else { continue };
            let issued = self.profile.calls.end[call as usize];
            let from = list.partition_point(|&i| waits[i].start < issued);
            /// A barrier follows its copy soon; further on it would only be chance.
            const REACH: usize = 64;
            let barrier = list[from..].iter().take(REACH).copied().find(|&i| self.covers(&waits[i], stream));
            if let Some(i) = barrier
                && waits[i].copy.is_none()
            {
                waits[i].completes.get_or_insert(op);
            }
        }
    }
}
