//! NVTX and calls away from waits: read when something asks, with a further scan of the table.

use super::calls::BACKTRACE;
use super::database::{Cells, Database};
use super::ids::{GlobalPid, GlobalTid};
use super::nvtx::{MARK, TABLE, range_times};
use crate::error::InputError;
use rustc_hash::{FxHashMap, FxHashSet};

/// A numbered range, in ns.
#[derive(Clone, Copy, Debug)]
pub struct Sequenced {
    pub number: u64,
    pub tid: GlobalTid,
    pub start: i64,
    /// `i64::MAX` for a range that was still open.
    pub end: i64,
}

/// Ranges for whose text `number` returns a number.
pub fn sequenced(
    db: &Database,
    number: impl Fn(&[u8]) -> Option<u64> + Sync,
) -> Result<Vec<Sequenced>, InputError> {
    const COLUMNS: &[&str] = &["start", "end", "eventType", "globalTid", "text"];
    db.scan(TABLE, COLUMNS, |row| {
        let (start, end) = range_times(row)?;
        let tid = row.global_tid(3).unwrap_or(GlobalTid::NONE);
        Some(Sequenced { number: row.bytes(4).and_then(&number)?, tid, start, end })
    })
}

/// A call by its name alone, kept or not; start in ns.
#[derive(Clone, Copy, Debug)]
pub struct NamedCall {
    pub tid: GlobalTid,
    pub start: i64,
    /// StringIds id.
    pub name: i64,
}

pub fn calls_named(db: &Database, names: &FxHashSet<i64>) -> Result<Vec<NamedCall>, InputError> {
    const COLUMNS: &[&str] = &["start", "globalTid", "nameId", "eventClass"];
    db.scan("CUPTI_ACTIVITY_KIND_RUNTIME", COLUMNS, |row| {
        let name = row.int(2).filter(|name| names.contains(name) && row.int(3) != Some(BACKTRACE))?;
        let start = row.time(0).ok().flatten()?;
        Some(NamedCall { tid: row.global_tid(1).unwrap_or(GlobalTid::NONE), start, name })
    })
}

/// A time in a process, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    pub process: GlobalPid,
    pub time: i64,
}

/// A mark, which may carry a Python stack; start in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    pub start: i64,
    /// Row of NVTX_EVENTS with the payload.
    pub rowid: i64,
    pub tid: GlobalTid,
}

pub struct LastMarks {
    /// Sorted; one mark a thread of the process.
    before: Vec<(Asked, Vec<Mark>)>,
}

impl LastMarks {
    /// The last mark before each time asked, on each thread of its process.
    ///
    /// ```text
    ///  marks of a thread   a    b   c        d
    ///  asked                  1         2          1: a, 2: c
    /// ```
    /// The scan keeps, for each time, the last mark since the time before. A thread without one takes the
    /// mark of the time before. Linear in the rows, and in times by threads.
    pub fn read(db: &Database, mut asked: Vec<Asked>) -> Result<Self, InputError> {
        const COLUMNS: &[&str] = &["start", "eventType", "globalTid", "rowid"];
        asked.sort_unstable();
        asked.dedup();
        let last = |out: &mut FxHashMap<(usize, GlobalTid), Mark>, row: &Cells| {
            let (Ok(Some(start)), Some(MARK)) = (row.time(0), row.int(1)) else { return };
            let (tid, rowid) = (row.global_tid(2).unwrap_or(GlobalTid::NONE), row.int(3).unwrap_or(0));
            let next = asked.partition_point(|a| (a.process, a.time) <= (tid.process(), start));
            if asked.get(next).is_some_and(|a| a.process == tid.process()) {
                let mark = Mark { start, rowid, tid };
                let last = out.entry((next, tid)).or_insert(mark);
                *last = mark.max(*last);
            }
        };
        let mut found: Vec<((usize, GlobalTid), Mark)> = db.gather(TABLE, COLUMNS, &[], last, Vec::extend)?;
        found.sort_unstable_by_key(|&((at, _), mark)| (at, mark));
        let mut found = found.into_iter().peekable();
        let mut before: Vec<(Asked, Vec<Mark>)> = Vec::with_capacity(asked.len());
        for (at, asked) in asked.into_iter().enumerate() {
            let carried = before.last().filter(|last| last.0.process == asked.process);
            let mut marks = carried.map_or_else(Vec::new, |last| last.1.clone());
            while let Some((_, mark)) = found.next_if(|((next, _), _)| *next == at) {
                marks.retain(|earlier| earlier.tid != mark.tid);
                marks.push(mark);
            }
            before.push((asked, marks));
        }
        Ok(Self { before })
    }

    /// Ascending, each once.
    pub fn rowids(&self) -> Vec<i64> {
        let mut rowids: Vec<i64> = self.before.iter().flat_map(|(_, marks)| marks).map(|m| m.rowid).collect();
        rowids.sort_unstable();
        rowids.dedup();
        rowids
    }

    /// Empty for a time that was not asked for.
    pub fn before(&self, asked: Asked) -> &[Mark] {
        self.before.binary_search_by_key(&asked, |b| b.0).map_or(&[], |at| &self.before[at].1)
    }
}
