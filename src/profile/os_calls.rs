//! Traced operating-system calls that say what a thread does with a value: it writes, or it reads a clock.

use crate::error::InputError;
use crate::profile::database::{Cells, Database};
use crate::profile::ids::GlobalTid;
use rustc_hash::FxHashMap;

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Writes to a file, a socket or a terminal.
    Write,
    /// Reads a clock.
    Clock,
}

/// Such calls, sorted.
#[derive(Default)]
pub struct OsCalls(Vec<(Kind, GlobalTid, i64)>);

const TABLE: &str = "OSRT_API";
const WRITES: &[&str] =
    &["write", "fwrite", "writev", "pwrite", "pwrite64", "send", "sendto", "sendmsg", "fputs", "puts"];
const CLOCKS: &[&str] = &["clock_gettime", "gettimeofday", "time", "clock"];

/// Reads them; none where the export does not hold operating-system calls. Two scans: names, calls.
pub fn read(db: &Database) -> Result<OsCalls, InputError> {
    if !db.has_table(TABLE) {
        return Ok(OsCalls::default());
    }
    let names = db.scan("StringIds", &["id", "value"], |row| {
        let name = row.bytes(1)?;
        let is_one_of = |(_, list): &(Kind, &[&str])| list.iter().any(|n| n.as_bytes() == name);
        let kind = [(Kind::Write, WRITES), (Kind::Clock, CLOCKS)].into_iter().find(is_one_of)?;
        Some((row.int(0)?, kind.0))
    })?;
    let names: FxHashMap<i64, Kind> = names.into_iter().collect();
    if names.is_empty() {
        return Ok(OsCalls::default());
    }
    let call = |row: &Cells| Some((*names.get(&row.int(2)?)?, row.global_tid(0)?, row.int(1)?));
    let mut calls = db.scan(TABLE, &["globalTid", "start", "nameId"], call)?;
    calls.sort_unstable();
    Ok(OsCalls(calls))
}

impl OsCalls {
    /// Whether `tid` made such a call within `from..=to`.
    pub fn any(&self, kind: Kind, tid: GlobalTid, from: i64, to: i64) -> bool {
        let first = self.0.partition_point(|&call| call < (kind, tid, from));
        self.0.get(first).is_some_and(|&(k, t, start)| k == kind && t == tid && start <= to)
    }
}
