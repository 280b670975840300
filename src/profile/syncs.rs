//! CUPTI's rows about synchronising calls, and the event records they may refer to.
//!
//! `syncType` is not read: until 2026 its numbers did not follow its enum (a stream synchronisation shows as
//! "Stream wait sync", a device synchronisation as "Event sync"). The API's name decides instead.

use crate::error::InputError;
use crate::profile::correlation::Correlation;
use crate::profile::database::{Cells, Database};
use crate::profile::ids::{CallId, ExportId, GlobalPid};
use crate::profile::seek::Remembered;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Deref;

/// One row of `CUPTI_ACTIVITY_KIND_SYNCHRONIZATION`; times in ns.
#[derive(Clone, Copy, Debug)]
pub struct SyncRow {
    /// `correlation` is that of the synchronising call; `call` is `None`.
    waits_for: EventRow,
    pub start: i64,
    pub end: i64,
}

impl SyncRow {
    /// Whether the host waits for an event, or asks about it.
    fn is_of_host(&self) -> bool {
        self.stream.is_none() && !self.event.is_none()
    }

    /// Whether a stream waits for an event.
    fn is_of_stream(&self) -> bool {
        !self.stream.is_none() && !self.event.is_none()
    }
}

impl Deref for SyncRow {
    type Target = EventRow;

    fn deref(&self) -> &EventRow {
        &self.waits_for
    }
}

/// One row of `CUPTI_ACTIVITY_KIND_CUDA_EVENT`: an event record.
#[derive(Clone, Copy, Debug)]
pub struct EventRow {
    pub pid: GlobalPid,
    /// CUPTI correlation id of the call that recorded the event.
    pub correlation: ExportId,
    pub device: ExportId,
    pub context: ExportId,
    /// Stream that the event was recorded on.
    pub stream: ExportId,
    pub event: ExportId,
    /// `eventSyncId`: tells records of one event apart (newer exports).
    pub event_sync: ExportId,
    /// The call that recorded it; `None` where that is not kept.
    pub call: Option<CallId>,
}

/// Synchronisation rows by (process, correlation), event records by (process, event).
#[derive(Default)]
pub struct Syncs {
    rows: Vec<SyncRow>,
    events: Vec<EventRow>,
    /// First record of each (process, event, `eventSyncId`), by its place in `events`.
    by_sync: FxHashMap<(GlobalPid, ExportId, ExportId), usize>,
    place: Remembered,
}

impl Syncs {
    pub fn read(db: &Database) -> Result<Self, InputError> {
        const RECORD: [&str; 7] =
            ["globalPid", "correlationId", "deviceId", "contextId", "streamId", "eventId", "eventSyncId"];
        let sync = [&RECORD[..], &["start", "end"]].concat();
        let row = |row: &Cells| {
            let (start, end) = (row.int(7).unwrap_or(0), row.int(8).unwrap_or(0));
            Some(SyncRow { waits_for: record(row), start, end })
        };
        let rows = db.scan("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", &sync, row)?;
        let events = db.scan("CUPTI_ACTIVITY_KIND_CUDA_EVENT", &RECORD, |row| Some(record(row)))?;
        Ok(Self::new(rows, events))
    }

    fn new(mut rows: Vec<SyncRow>, mut events: Vec<EventRow>) -> Self {
        rows.sort_by_key(|r| (r.pid, r.correlation, r.start));
        events.sort_by_key(|e| (e.pid, e.event, e.correlation));
        rows.shrink_to_fit();
        events.shrink_to_fit();
        let mut by_sync = FxHashMap::default();
        for (at, e) in events.iter().enumerate() {
            by_sync.entry((e.pid, e.event, e.event_sync)).or_insert(at);
        }
        Self { rows, events, by_sync, place: Remembered::default() }
    }

    pub fn set_missing_pid(&mut self, pid: GlobalPid) {
        let all = self.rows.iter_mut().map(|row| &mut row.waits_for).chain(&mut self.events);
        all.filter(|row| row.pid == GlobalPid::NONE).for_each(|row| row.pid = pid);
        *self = Self::new(std::mem::take(&mut self.rows), std::mem::take(&mut self.events));
    }

    pub(super) fn find_calls(&mut self, correlation: &Correlation) {
        self.events.iter_mut().for_each(|e| e.call = correlation.call(e.pid, e.correlation));
    }

    pub fn records(&self) -> impl Iterator<Item = (GlobalPid, ExportId)> + '_ {
        self.events.iter().map(|e| (e.pid, e.correlation))
    }

    /// Records of events that the host waits for or asks about, at whatever time.
    pub fn asked(&self) -> impl Iterator<Item = &EventRow> {
        let asked = self.events_of(SyncRow::is_of_host);
        self.events.iter().filter(move |record| asked.contains(&(record.pid, record.event)))
    }

    /// All event records, each with whether host or stream waits for its event or asks about it.
    pub fn used(&self) -> impl Iterator<Item = (&EventRow, bool)> {
        let used = self.events_of(|_| true);
        self.events.iter().map(move |record| (record, used.contains(&(record.pid, record.event))))
    }

    /// Whether rows name the events that the host waits for or asks about.
    pub fn names_events_of_host(&self) -> bool {
        self.rows.iter().any(SyncRow::is_of_host)
    }

    pub fn names_events_of_streams(&self) -> bool {
        self.rows.iter().any(SyncRow::is_of_stream)
    }

    fn events_of(&self, which: impl Fn(&SyncRow) -> bool) -> FxHashSet<(GlobalPid, ExportId)> {
        self.rows.iter().filter(|row| which(row)).map(|row| (row.pid, row.event)).collect()
    }

    /// Waits of streams for an event, with its record, if known. No other row has both a stream and an event.
    pub fn stream_waits(&self) -> impl Iterator<Item = (&SyncRow, &EventRow)> {
        self.rows
            .iter()
            .filter(|r| r.is_of_stream())
            .filter_map(|r| Some((r, self.record_of(r, r.correlation)?)))
    }

    /// Keeps only waits of streams: once the host's waits are found, their rows are not needed again.
    pub fn forget_host_waits(&mut self) {
        self.rows.retain(SyncRow::is_of_stream);
        self.rows.shrink_to_fit();
    }

    /// The row of a call; where one correlation id served several calls, the row that lies inside this one.
    pub fn of(&self, pid: GlobalPid, correlation: ExportId, start: i64, end: i64) -> Option<&SyncRow> {
        if correlation.is_none() {
            return None;
        }
        let key = |row: &SyncRow| (row.pid, row.correlation);
        let from = self.place.seek(self.rows.len(), |i| key(&self.rows[i]) < (pid, correlation));
        let same = self.rows[from..].iter().take_while(|r| key(r) == (pid, correlation));
        let mut best = None;
        for row in same {
            if row.start >= start && row.end <= end {
                return Some(row);
            }
            best = best.or(Some(row));
        }
        best
    }

    /// The record of an event synchronisation: by `eventSyncId`; without one (older exports) the last record
    /// of that event id whose call came before, since ids are reused. `before`: the wait's correlation id.
    pub fn record_of(&self, sync: &SyncRow, before: ExportId) -> Option<&EventRow> {
        if sync.event.is_none() {
            return None;
        }
        if !sync.event_sync.is_none() {
            let at = self.by_sync.get(&(sync.pid, sync.event, sync.event_sync))?;
            return self.events.get(*at);
        }
        let until =
            self.events.partition_point(|e| (e.pid, e.event, e.correlation) < (sync.pid, sync.event, before));
        let last = self.events.get(until.checked_sub(1)?)?;
        ((last.pid, last.event) == (sync.pid, sync.event)).then_some(last)
    }
}

/// From the first columns of a row of either table.
fn record(row: &Cells) -> EventRow {
    EventRow {
        pid: row.global_pid(0).unwrap_or(GlobalPid::NONE),
        correlation: row.export_id(1),
        device: row.export_id(2),
        context: row.export_id(3),
        stream: row.export_id(4),
        event: row.export_id(5),
        event_sync: row.export_id(6),
        call: None,
    }
}
