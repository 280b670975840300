//! The ops that had to end before a wait could return.
//!
//! ```text
//!  host    launch k1  launch k2   [wait------------]  launch k3
//!  s7                 [k1-----][k2-----------]              [k3]     stream, event, copy: last op issued before, on its stream
//!  s13           [m1--------------]                                  context: the same, over all streams of the device
//! ```
//! Streams work in order, so per stream the last op issued before the wait began decides: if it had ended, the wait
//! found nothing there. A context synchronisation without a recorded device may concern any device of the process,
//! but none that still ran earlier work when the wait returned.

use super::api::Blocking;
use super::device::{DeviceIx, Devices, gpu_id};
use super::streams::{FEW_STREAMS, Streams};
use super::{Covers, Found, Wait};
use crate::profile::ids::{CallId, ExportId, GlobalPid, OpId, StreamIx, ThreadIx};
use crate::profile::ops::{OpKind, StreamKey};
use crate::profile::syncs::SyncRow;
use crate::profile::{ISSUE_UNKNOWN, Profile};
use crate::vocabulary::Direction;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// How far GPU and host clocks may disagree: over 1,500 stream synchronisations of 12 exports the awaited op ended at
/// most 48 ns after the host's return (WSL), mostly 1 to 6 µs before it.
pub const CLOCK_SLOP_NS: i64 = 1_000;

/// A bare synchronisation that found nothing pending returns within this time: at most 23 µs over 400 such waits of 12
/// captures, the profiler's own cost included.
const IDLE_MAX_NS: i64 = 50_000;

/// A wait returns within this time of the op it waited for: 1 to 6 µs mostly, some more with a backtrace.
const RETURN_MAX_NS: i64 = 50_000;

/// Earlier waits of a thread that are checked for a drained stream.
const LOOK_BACK: usize = 8;
/// Number of following waits of a thread that may complete a copy; a later match would be chance.
pub(super) const REACH: usize = 64;

pub(super) struct Queues<'a> {
    pub(super) profile: &'a Profile,
    devices: &'a Devices,
    /// First op of each (process, correlation id).
    op_by_correlation: FxHashMap<(GlobalPid, ExportId), OpId>,
    pub(super) streams: Streams<'a>,
    only_device: FxHashMap<GlobalPid, DeviceIx>,
    issued: FxHashMap<(GlobalPid, DeviceIx), Vec<Issued>>,
}

struct Issued {
    at: i64,
    op: OpId,
    /// Last end of the ops issued so far.
    ended: i64,
}

impl<'a> Queues<'a> {
    pub fn new(profile: &'a Profile, devices: &'a Devices) -> Self {
        let ops = &profile.ops;
        // Only copies and memsets are looked up by call: kernels would make the map ten times larger.
        let mut op_by_correlation = FxHashMap::default();
        for op in ops.ids().filter(|&op| matches!(ops.kind(op), OpKind::Memcpy | OpKind::Memset)) {
            if !ops.correlation[op].is_none() {
                op_by_correlation.entry((ops.pid(op), ops.correlation[op])).or_insert(op);
            }
        }
        let streams = Streams::new(profile, devices);
        let only_device = only_devices(profile, devices, &streams.of_process);
        let issued = in_order_of_issue(&streams);
        Self { profile, devices, op_by_correlation, streams, only_device, issued }
    }

    pub fn op_of_call(&self, pid: GlobalPid, call: CallId) -> Option<OpId> {
        self.op_by_correlation.get(&(pid, self.profile.calls.correlation[call])).copied()
    }

    pub fn stream_of_sync(&self, wait: &Wait) -> Option<StreamIx> {
        self.sync_row(wait).and_then(|row| self.stream_index(wait.pid, row.device, row.context, row.stream))
    }

    pub(super) fn sync_row(&self, wait: &Wait) -> Option<&SyncRow> {
        let calls = &self.profile.calls;
        let call = wait.call;
        self.profile.syncs.of(wait.pid, calls.correlation[call], calls.start(call), calls.end(call))
    }

    /// The stream with these ids. Without a recorded device or context, the only stream that fits.
    pub(super) fn stream_index(
        &self,
        pid: GlobalPid,
        device: ExportId,
        context: ExportId,
        stream: ExportId,
    ) -> Option<StreamIx> {
        let streams = &self.profile.ops.streams;
        if !stream.is_none() && (device.is_none() || context.is_none()) {
            let fits = |known: ExportId, id: ExportId| known.is_none() || known == id;
            let mut candidates = self.streams.of(pid).iter().copied().filter(|&s| {
                let key = &streams[s];
                key.stream == stream && fits(device, key.device) && fits(context, key.context)
            });
            return candidates.next().filter(|_| candidates.next().is_none());
        }
        streams.binary_search(&StreamKey { pid, device, context, stream }).ok()
    }

    /// Whether the ids recorded for both streams agree.
    pub fn may_be_one(&self, a: StreamIx, b: StreamIx) -> bool {
        let (a, b) = (&self.profile.ops.streams[a], &self.profile.ops.streams[b]);
        a.pid == b.pid
            && a.device.may_be(b.device)
            && a.context.may_be(b.context)
            && a.stream.may_be(b.stream)
    }

    /// Fills in what `wait` waited for; `earlier`: the waits of its thread before it.
    pub fn resolve(&self, wait: &mut Wait, earlier: &[Wait]) {
        let row = self.sync_row(wait).copied();
        if let Some(row) = &row {
            wait.stream = row.stream;
            wait.context = row.context;
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
        let bare = wait.copy_call.is_none() && wait.blocking.synchronises();
        if wait.found == Found::Nothing && bare && wait.blocked > IDLE_MAX_NS {
            self.look_further(wait);
        }
        if wait.found == Found::Nothing && self.drained_before(wait, earlier) {
            wait.found = Found::Drained;
        }
    }

    /// Handles a wait that blocked with nothing pending on its stream. The stream may wait for another
    /// (`cudaStreamWaitEvent`): the op that ended right before the return was awaited.
    fn look_further(&self, wait: &mut Wait) {
        let ops = &self.profile.ops;
        let (soon, returned) = (wait.start.max(wait.end - RETURN_MAX_NS), wait.end + CLOCK_SLOP_NS);
        let streams = self.streams.working(wait.pid, soon, wait.end).into_iter();
        let ended = streams.filter_map(|s| self.streams.last_ended(s, wait.end, wait.end, returned));
        let last = self.streams.latest(ended).filter(|&op| ops.end(op) > soon);
        wait.found = if last.is_some() { Found::Pending } else { Found::Unseen };
        wait.awaited = last.or(wait.awaited);
    }

    fn device_index(&self, pid: GlobalPid, ordinal: ExportId) -> Option<DeviceIx> {
        if ordinal.is_none() {
            return None;
        }
        self.devices.with_id(gpu_id(self.profile, pid, ordinal))
    }

    fn has_ops(&self, pid: GlobalPid) -> bool {
        !self.streams.of(pid).is_empty()
    }

    fn resolve_stream(&self, wait: &mut Wait, row: Option<&SyncRow>) {
        let copy_op = wait.copy_call.and_then(|c| self.op_of_call(wait.pid, c));
        let copy_stream = copy_op.map(|op| self.profile.ops.stream(op));
        let recorded = row.and_then(|r| self.stream_index(wait.pid, r.device, r.context, r.stream));
        let Some(stream) = recorded.or(copy_stream) else {
            let known = row.is_some_and(|r| ![r.stream, r.device, r.context].contains(&ExportId::NONE));
            if known && self.has_ops(wait.pid) {
                // No op ran on this stream.
                wait.found = Found::Nothing;
            } else {
                self.resolve_context(wait);
            }
            return;
        };
        self.on_stream(wait, stream, wait.start);
        if copy_op.is_some() {
            wait.awaited = copy_op;
        }
    }

    fn resolve_event(&self, wait: &mut Wait, row: Option<&SyncRow>) {
        let correlation = self.profile.calls.correlation[wait.call];
        let record = row.and_then(|r| self.profile.syncs.record_of(r, correlation)).copied();
        let Some(record) = record else {
            // The event is not recorded, so any stream may be meant. The wait ended with the last awaited op.
            return self.resolve_context(wait);
        };
        wait.stream = record.stream;
        wait.context = wait.context.or(record.context);
        wait.device = wait.device.or_else(|| self.device_index(wait.pid, record.device));
        let Some(stream) = self.stream_index(wait.pid, record.device, record.context, record.stream) else {
            wait.found = if self.has_ops(wait.pid) { Found::Nothing } else { Found::Unknown };
            return;
        };
        let recorded_at = record.call.map_or(wait.start, |c| self.profile.calls.start(c));
        self.on_stream(wait, stream, recorded_at.min(wait.start));
        wait.covers_before = recorded_at;
    }

    fn resolve_copy(&self, wait: &mut Wait) {
        let Some(op) = self.op_of_call(wait.pid, wait.call) else {
            return self.resolve_context(wait);
        };
        self.on_stream(wait, self.profile.ops.stream(op), wait.start);
        wait.awaited = Some(op);
    }

    /// Resolves to the ops issued on one stream before `issued_before`.
    fn on_stream(&self, wait: &mut Wait, stream: StreamIx, issued_before: i64) {
        let key = self.profile.ops.streams[stream];
        wait.device = Some(self.devices.of_stream[stream]);
        wait.stream = key.stream;
        wait.context = wait.context.or(key.context);
        wait.covers = Covers::Stream(stream);
        let last = self.streams.last_issued(stream, issued_before, wait.end);
        wait.reaches = last;
        let pending = last.filter(|&op| self.profile.ops.end(op) > wait.start);
        wait.found = if pending.is_some() { Found::Pending } else { Found::Nothing };
        wait.awaited = pending.or(wait.awaited);
    }

    /// Resolves to every stream of the process, on the recorded device or each possible device.
    fn resolve_context(&self, wait: &mut Wait) {
        let ops = &self.profile.ops;
        if !self.has_ops(wait.pid) {
            return;
        }
        let device = wait.device.or_else(|| self.only_device.get(&wait.pid).copied());
        wait.covers = device.map_or(Covers::AnyDevice, Covers::Device);
        // Work that outlasted the wait was not awaited, but earlier ops of its stream may have been: an event
        // does not cover later launches, and memory may be freed without draining a known device.
        let device_of = |op: OpId| self.devices.of_op(ops, op);
        let returned = wait.end + CLOCK_SLOP_NS;
        let told = device.is_some() || wait.blocking == Blocking::Event;
        let ended_by = if told { returned } else { i64::MAX };
        let mut pending: Vec<OpId> = self.streams.pending(wait, device, ended_by).collect();
        if !told {
            // A device still busy with earlier ops was not waited for.
            let runs_on = pending.iter().copied().filter(|&op| ops.end(op) > returned);
            let busy: BTreeSet<DeviceIx> = runs_on.map(device_of).collect();
            wait.not_for = busy.first().copied();
            pending.retain(|&op| !busy.contains(&device_of(op)));
        }
        wait.awaited = self.streams.latest(pending.iter().copied());
        wait.found = if pending.is_empty() { Found::Nothing } else { Found::Pending };
        wait.device = device;
    }

    /// Whether earlier waits of the thread drained everything this wait covers, and nothing was issued since.
    ///
    /// ```text
    ///  host   launch k1  [wait A------]  [wait B]      B is redundant: k1 had ended when A returned, and nothing
    ///  GPU        [k1---------]                        was issued in between
    /// ```
    fn drained_before(&self, wait: &Wait, earlier: &[Wait]) -> bool {
        let earlier = &earlier[earlier.len().saturating_sub(LOOK_BACK)..];
        if let Covers::Stream(own) = wait.covers {
            return self.stream_drained(own, wait, earlier) == Some(true);
        }
        if let Some(drained) = self.device_drained(wait, earlier) {
            return drained;
        }
        let begun = |stream: StreamIx| {
            let first = self.devices.stream_ops[stream].first();
            first.is_none_or(|&op| self.profile.ops.start(op) < wait.end)
        };
        // Streams are sorted by first op.
        let begun = self.streams.of(wait.pid).iter().copied().take_while(|&stream| begun(stream));
        let covered = begun.filter(|&stream| self.covers(wait, stream));
        let mut drained = covered.filter_map(|stream| self.stream_drained(stream, wait, earlier)).peekable();
        drained.peek().is_some() && drained.all(|drained| drained)
    }

    /// Whether earlier waits had drained one stream; `None` where nothing was issued to it.
    fn stream_drained(&self, stream: StreamIx, wait: &Wait, earlier: &[Wait]) -> Option<bool> {
        let last = self.streams.last_issued(stream, wait.start, wait.end)?;
        let (issued, ended) = (self.profile.issued(last), self.profile.ops.end(last));
        Some(earlier.iter().any(|w| {
            // A wait for an unrecorded device proves nothing.
            w.covers != Covers::AnyDevice
                && self.covers(w, stream)
                && issued != ISSUE_UNKNOWN
                && issued < w.covers_before
                && ended <= w.end + CLOCK_SLOP_NS
        }))
    }

    /// As [`Self::drained_before`], for a device with many streams. After a wait that drained the device,
    /// only later ops are checked. `None` where that is inconclusive.
    fn device_drained(&self, wait: &Wait, earlier: &[Wait]) -> Option<bool> {
        let Covers::Device(device) = wait.covers else { return None };
        let issued = self.issued.get(&(wait.pid, device))?;
        let whole = earlier.iter().rev().find(|w| w.covers == wait.covers)?;
        let before = |time| issued.partition_point(|i| i.at < time);
        let (until, since) = (before(wait.start), before(whole.covers_before.min(wait.start)));
        if since > 0 && issued[since - 1].ended > whole.end + CLOCK_SLOP_NS {
            return None;
        }
        let streams: BTreeSet<StreamIx> =
            issued[since..until].iter().map(|i| self.profile.ops.stream(i.op)).collect();
        let pending = |s: StreamIx| self.stream_drained(s, wait, earlier) == Some(false);
        Some(until > 0 && !streams.into_iter().any(pending))
    }

    pub(super) fn covers(&self, wait: &Wait, stream: StreamIx) -> bool {
        let device = self.devices.of_stream[stream];
        match wait.covers {
            Covers::Stream(s) => s == stream,
            Covers::Device(d) => d == device,
            Covers::AnyDevice => wait.not_for != Some(device),
            Covers::Nothing => false,
        }
    }

    /// Gives each D2H copy without a wait of its own (`non_blocking=True`) to the issuing thread's first
    /// later wait that covers its stream: that wait is a data barrier, not a stray synchronisation.
    pub fn complete_copies(&self, waits: &mut [Wait], by_thread: &ByThread) {
        let ops = &self.profile.ops;
        let mut own: Vec<OpId> =
            waits.iter().filter(|w| w.copy.is_some()).filter_map(|w| w.awaited).collect();
        own.sort_unstable();
        for op in ops.ids() {
            let to_host = ops.copy(op).is_some_and(|c| c.direction == Direction::DeviceToHost);
            if !to_host || own.binary_search(&op).is_ok() {
                continue;
            }
            let Some(call) = self.profile.issuer(op) else { continue };
            let Some(list) = by_thread.get(&self.profile.calls.thread(call)) else { continue };
            let (stream, issued) = (ops.stream(op), self.profile.calls.end(call));
            let from = list.partition_point(|&i| waits[i].start < issued);
            let barrier = list[from..].iter().take(REACH).copied().find(|&i| self.covers(&waits[i], stream));
            if let Some(i) = barrier
                && waits[i].copy.is_none()
                && waits[i].completes.is_none_or(|other| ops.end(other) < ops.end(op))
            {
                waits[i].completes = Some(op);
            }
        }
    }
}

/// Indices of each thread's waits, in order.
pub(super) type ByThread = FxHashMap<ThreadIx, Vec<usize>>;

pub(super) fn by_thread(waits: &[Wait]) -> ByThread {
    let mut by_thread = ByThread::default();
    for (i, wait) in waits.iter().enumerate() {
        by_thread.entry(wait.thread).or_default().push(i);
    }
    by_thread
}

/// Ops of processes with many streams, unless launches of the process and device are unrecorded.
fn in_order_of_issue(streams: &Streams) -> FxHashMap<(GlobalPid, DeviceIx), Vec<Issued>> {
    let (profile, devices, ops) = (streams.profile, streams.devices, &streams.profile.ops);
    let mut issued: FxHashMap<(GlobalPid, DeviceIx), Vec<Issued>> = FxHashMap::default();
    if streams.of_process.values().all(|streams| streams.len() <= FEW_STREAMS) {
        return issued;
    }
    for op in ops.ids().filter(|&op| streams.of(ops.pid(op)).len() > FEW_STREAMS) {
        let list = issued.entry((ops.pid(op), devices.of_op(ops, op))).or_default();
        list.push(Issued { at: profile.issued(op), op, ended: ops.end(op) });
    }
    issued.retain(|_, list| list.iter().all(|issued| issued.at != ISSUE_UNKNOWN));
    for list in issued.values_mut() {
        list.sort_unstable_by_key(|issued| (issued.at, issued.op));
        let mut ended = i64::MIN;
        for issued in list {
            ended = ended.max(issued.ended);
            issued.ended = ended;
        }
    }
    issued
}

/// The device of each process that has used no other: no second context, no ops elsewhere.
fn only_devices(
    profile: &Profile,
    devices: &Devices,
    streams_of: &FxHashMap<GlobalPid, Vec<StreamIx>>,
) -> FxHashMap<GlobalPid, DeviceIx> {
    let target = &profile.target;
    let mut ordinals: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    for (&(pid, _), &ordinal) in &target.device_of_context {
        ordinals.entry(pid).or_default().push(ordinal);
    }
    let only = |(&pid, streams): (&GlobalPid, &Vec<StreamIx>)| {
        let first = devices.of_stream[*streams.first()?];
        let ordinals = ordinals.get(&pid.pid()).map_or(&[][..], Vec::as_slice);
        let ops_elsewhere = streams.iter().any(|&s| devices.of_stream[s] != first);
        let is_first = |&o: &u32| gpu_id(profile, pid, o.into()) == devices.list[first].id;
        let listed = !ordinals.is_empty() || target.gpu_names.len() == 1;
        (!ops_elsewhere && ordinals.iter().all(is_first) && listed).then_some((pid, first))
    };
    streams_of.iter().filter_map(only).collect()
}
