//! NVTX away from calls that may wait: read when something asks, with a further scan of the table.

use super::calls::BACKTRACE;
use super::database::{Cells, Database};
use super::ids::{GlobalPid, GlobalTid};
use super::nvtx::{MARK, TABLE, range_times};
use crate::error::InputError;
use rustc_hash::{FxHashMap, FxHashSet};

/// A range that carries a number.
#[derive(Clone, Copy, Debug)]
pub struct Sequenced {
    /// The number.
    pub number: u64,
    /// The thread.
    pub tid: GlobalTid,
    /// In ns.
    pub start: i64,
    /// `i64::MAX` for a range that was still open.
    pub end: i64,
}

/// All ranges to whose text `number` gives a number.
///
/// # Errors
/// [`InputError`]: the table cannot be read.
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

/// A call by its name alone, whether or not it is kept.
#[derive(Clone, Copy, Debug)]
pub struct NamedCall {
    /// The thread.
    pub tid: GlobalTid,
    /// In ns.
    pub start: i64,
    /// StringIds id of its name.
    pub name: i64,
}

/// All calls whose name is one of `names`.
///
/// # Errors
/// [`InputError`]: the table cannot be read.
pub fn calls_named(db: &Database, names: &FxHashSet<i64>) -> Result<Vec<NamedCall>, InputError> {
    const COLUMNS: &[&str] = &["start", "globalTid", "nameId", "eventClass"];
    db.scan("CUPTI_ACTIVITY_KIND_RUNTIME", COLUMNS, |row| {
        let name = row.int(2).filter(|name| names.contains(name) && row.int(3) != Some(BACKTRACE))?;
        let start = row.time(0).ok().flatten()?;
        Some(NamedCall { tid: row.global_tid(1).unwrap_or(GlobalTid::NONE), start, name })
    })
}

/// A time in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    /// The process.
    pub process: GlobalPid,
    /// In ns.
    pub time: i64,
}

/// A mark, which may carry a Python stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// In ns.
    pub start: i64,
    /// Row of NVTX_EVENTS, from which the payload is read.
    pub rowid: i64,
    /// The thread.
    pub tid: GlobalTid,
}

/// The last marks before some times.
pub struct LastMarks {
    /// Sorted; one mark a thread of the process.
    before: Vec<(Asked, Vec<Mark>)>,
}

impl LastMarks {
    /// Of each time that is asked for, the last mark of each thread of its process before it.
    ///
    /// ```text
    ///  marks of a thread   a    b   c        d
    ///  asked                  1         2          1: a, 2: c
    /// ```
    /// A scan keeps the last mark ahead of each time; what a time has none of, the one before it has. Linear in the rows,
    /// and in times by threads.
    ///
    /// # Errors
    /// [`InputError`]: the table cannot be read.
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

    /// Rows of all of them, each once.
    pub fn rowids(&self) -> Vec<i64> {
        let mut rowids: Vec<i64> = self.before.iter().flat_map(|(_, marks)| marks).map(|m| m.rowid).collect();
        rowids.sort_unstable();
        rowids.dedup();
        rowids
    }

    /// The last one of each thread before a time that was asked for.
    pub fn before(&self, asked: Asked) -> &[Mark] {
        self.before.binary_search_by_key(&asked, |b| b.0).map_or(&[], |at| &self.before[at].1)
    }
}
