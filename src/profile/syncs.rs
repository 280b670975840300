//! What CUPTI recorded about synchronising calls, and the event records they may refer to.
//!
//! `syncType` is not read: until 2026 its numbers did not follow the enum of the same name (a stream synchronisation
//! shows as "Stream wait sync", a device synchronisation as "Event sync"). The API's name decides instead.

use crate::error::InputError;
use crate::profile::calls::NO_CORRELATION;
use crate::profile::database::{Cells, Database};

/// "Not applicable", in device, stream, context and event columns.
pub const NONE: u32 = u32::MAX;

/// One row of `CUPTI_ACTIVITY_KIND_SYNCHRONIZATION`.
#[derive(Clone, Copy, Debug)]
pub struct SyncRow {
    pub pid: i64,
    pub correlation: u32,
    pub start: i64,
    pub end: i64,
    pub device: u32,
    pub context: u32,
    pub stream: u32,
    pub event: u32,
    pub event_sync: u32,
}

/// One row of `CUPTI_ACTIVITY_KIND_CUDA_EVENT`: an event record.
#[derive(Clone, Copy, Debug)]
pub struct EventRow {
    pub pid: i64,
    pub correlation: u32,
    pub device: u32,
    pub context: u32,
    pub stream: u32,
    pub event: u32,
    pub event_sync: u32,
}

/// Synchronisation rows by (process, correlation), event records by (process, event).
#[derive(Default)]
pub struct Syncs {
    rows: Vec<SyncRow>,
    events: Vec<EventRow>,
}

impl Syncs {
    pub fn read(db: &Database) -> Result<Self, InputError> {
        const SYNC: &[&str] = &[
            "globalPid",
            "correlationId",
            "deviceId",
            "contextId",
            "streamId",
            "eventId",
            "eventSyncId",
            "start",
            "end",
        ];
        const EVENT: &[&str] =
            &["globalPid", "correlationId", "deviceId", "contextId", "streamId", "eventId", "eventSyncId"];
        let id = |row: &Cells, i| row.id(i).unwrap_or(NONE);
        let rows = db.scan("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", SYNC, |out: &mut Vec<SyncRow>, row| {
            out.push(SyncRow {
                pid: row.int(0).unwrap_or(0),
                correlation: row.id(1).unwrap_or(NO_CORRELATION),
                device: id(row, 2),
                context: id(row, 3),
                stream: id(row, 4),
                event: id(row, 5),
                event_sync: id(row, 6),
                start: row.int(7).unwrap_or(0),
                end: row.int(8).unwrap_or(0),
            });
        })?;
        let events = db.scan("CUPTI_ACTIVITY_KIND_CUDA_EVENT", EVENT, |out: &mut Vec<EventRow>, row| {
            out.push(EventRow {
                pid: row.int(0).unwrap_or(0),
                correlation: row.id(1).unwrap_or(NO_CORRELATION),
                device: id(row, 2),
                context: id(row, 3),
                stream: id(row, 4),
                event: id(row, 5),
                event_sync: id(row, 6),
            });
        })?;
        Ok(Self::new(rows.concat(), events.concat()))
    }

    fn new(mut rows: Vec<SyncRow>, mut events: Vec<EventRow>) -> Self {
        rows.sort_by_key(|r| (r.pid, r.correlation, r.start));
        events.sort_by_key(|e| (e.pid, e.event, e.correlation));
        Self { rows, events }
    }

    /// Replaces the process of rows that name none.
    pub fn set_missing_pid(&mut self, pid: i64) {
        self.rows.iter_mut().filter(|r| r.pid == 0).for_each(|r| r.pid = pid);
        self.events.iter_mut().filter(|e| e.pid == 0).for_each(|e| e.pid = pid);
        *self = Self::new(std::mem::take(&mut self.rows), std::mem::take(&mut self.events));
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Process and correlation id of each event record.
    pub fn records(&self) -> impl Iterator<Item = (i64, u32)> + '_ {
        self.events.iter().map(|e| (e.pid, e.correlation))
    }

    /// Streams told to wait for an event whose record the export holds, with that record. No other row has both a
    /// stream and an event.
    pub fn stream_waits(&self) -> impl Iterator<Item = (&SyncRow, &EventRow)> {
        let waits = self.rows.iter().filter(|r| r.stream != NONE && r.event != NONE);
        waits.filter_map(|r| Some((r, self.record_of(r, r.correlation)?)))
    }

    /// The row of a call; where one correlation id served several calls, the row that lies inside this one.
    pub fn of(&self, pid: i64, correlation: u32, start: i64, end: i64) -> Option<&SyncRow> {
        if correlation == NO_CORRELATION {
            return None;
        }
        let from = self.rows.partition_point(|r| (r.pid, r.correlation) < (pid, correlation));
        let same = self.rows[from..].iter().take_while(|r| (r.pid, r.correlation) == (pid, correlation));
        let mut best = None;
        for row in same {
            if row.start >= start && row.end <= end {
                return Some(row);
            }
            best = best.or(Some(row));
        }
        best
    }

    /// The record that an event synchronisation refers to: by `eventSyncId`; without one (older exports) the last
    /// record of that event id whose call came before, since ids are reused. `before`: the wait's correlation id.
    pub fn record_of(&self, sync: &SyncRow, before: u32) -> Option<&EventRow> {
        if sync.event == NONE {
            return None;
        }
        let from = self.events.partition_point(|e| (e.pid, e.event) < (sync.pid, sync.event));
        let same = self.events[from..].iter().take_while(|e| (e.pid, e.event) == (sync.pid, sync.event));
        if sync.event_sync != NONE {
            return same.clone().find(|e| e.event_sync == sync.event_sync);
        }
        same.take_while(|e| e.correlation < before).last()
    }
}
