//! NVTX: ranges with their nesting, and the marks that carry Python frames.
//!
//! The largest table of many exports. One scan reads times and ids only; texts and payloads are fetched afterwards,
//! by rowid, for the rows that matter.

use crate::error::InputError;
use crate::profile::database::{Cells, Database};
use crate::profile::strings::{Strings, clean};
use rustc_hash::FxHashMap;
use std::sync::Arc;

const TABLE: &str = "NVTX_EVENTS";

/// `eventType` (ENUM_NSYS_EVENT_TYPE): marks, push/pop and start/end ranges, their older forms, domain names.
const MARK: i64 = 34;
const PUSH_POP_RANGE: i64 = 59;
const START_END_RANGE: i64 = 60;
const NVTXT_RANGES: std::ops::RangeInclusive<i64> = 70..=71;
const DOMAIN_CREATE: i64 = 75;

/// Domains of Python marks: up to 2024.2 both kinds shared one name.
const ON_CUDA_CALL: &[&str] = &["Python Backtrace on CUDA"];
const PERIODIC: &[&str] = &["Python Periodic Sampling", "Python Backtrace"];

/// Marks or ranges: struct of arrays, sorted by thread, then start, outermost first.
#[derive(Default)]
pub struct Nvtx {
    pub ranges: Ranges,
    /// One mark per traced CUDA call: its start equals the start of the call's backtrace twin.
    pub call_marks: Marks,
    /// One mark per Python sample.
    pub sample_marks: Marks,
    /// Names of the domains, sorted.
    pub domains: Vec<Arc<str>>,
}

#[derive(Default)]
pub struct Ranges {
    pub tid: Vec<i64>,
    pub start: Vec<i64>,
    /// `i64::MAX` for a range that was still open.
    pub end: Vec<i64>,
    pub rowid: Vec<i64>,
    /// Index of the range around it on the same thread; `u32::MAX` for none.
    pub parent: Vec<u32>,
    pub depth: Vec<u16>,
}

#[derive(Default)]
pub struct Marks {
    pub tid: Vec<i64>,
    pub start: Vec<i64>,
    pub rowid: Vec<i64>,
}

#[derive(Default)]
struct Chunk {
    ranges: Vec<Event>,
    marks: Vec<Event>,
    domains: Vec<Event>,
}

#[derive(Clone, Copy)]
struct Event {
    tid: i64,
    start: i64,
    end: i64,
    rowid: i64,
    domain: i64,
}

impl Nvtx {
    pub fn read(db: &Database) -> Result<Self, InputError> {
        const COLUMNS: &[&str] = &["start", "end", "eventType", "globalTid", "domainId", "rowid"];
        let chunks = db.scan(TABLE, COLUMNS, read_row)?;
        let (mut ranges, mut marks, mut creates) = (Vec::new(), Vec::new(), Vec::new());
        for mut chunk in chunks {
            ranges.append(&mut chunk.ranges);
            marks.append(&mut chunk.marks);
            creates.append(&mut chunk.domains);
        }
        let names = domain_names(db, &creates)?;
        let of = |wanted: &[&str], e: &Event| {
            names.get(&(process(e.tid), e.domain)).is_some_and(|n| wanted.contains(&&**n))
        };
        let mut domains: Vec<_> = names.values().cloned().collect();
        domains.sort_unstable();
        domains.dedup();
        Ok(Self {
            call_marks: Marks::new(marks.iter().filter(|e| of(ON_CUDA_CALL, e)).copied().collect()),
            sample_marks: Marks::new(marks.iter().filter(|e| of(PERIODIC, e)).copied().collect()),
            ranges: Ranges::new(ranges),
            domains,
        })
    }

    /// Texts of the given ranges, in the order given; `None` for a range without one.
    pub fn texts(
        &self,
        db: &Database,
        strings: &mut Strings,
        ranges: &[u32],
    ) -> Result<Vec<Option<Arc<str>>>, InputError> {
        let rowids: Vec<i64> = ranges.iter().map(|&r| self.ranges.rowid[r as usize]).collect();
        texts_of(db, strings, &rowids)
    }
}

impl Ranges {
    /// Sorts, then finds each range's parent with one stack a thread.
    ///
    /// ```text
    ///   a [-----------------]      parent of b and d: a
    ///   b    [-------]             parent of c: b
    ///   c      [--]                e: none
    ///   d               [-]  [-] e
    /// ```
    /// Start/end ranges (type 60) may overlap without nesting: a range's parent is the innermost that holds it whole.
    /// Linear after the sort.
    fn new(mut events: Vec<Event>) -> Self {
        let key = |e: &Event| (e.tid, e.start, std::cmp::Reverse(e.end), e.rowid);
        if !events.is_sorted_by_key(key) {
            events.sort_by_key(key);
        }
        let mut out = Self::default();
        let mut stack: Vec<u32> = Vec::new();
        for (i, e) in (0u32..).zip(&events) {
            while stack.last().is_some_and(|&top| {
                let top = top as usize;
                out.tid[top] != e.tid || out.end[top] < e.end
            }) {
                stack.pop();
            }
            out.tid.push(e.tid);
            out.start.push(e.start);
            out.end.push(e.end);
            out.rowid.push(e.rowid);
            out.parent.push(stack.last().copied().unwrap_or(u32::MAX));
            out.depth.push(stack.len().min(usize::from(u16::MAX)) as u16);
            stack.push(i);
        }
        out
    }

    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// The innermost range that holds `time` on thread `tid`.
    pub fn innermost(&self, tid: i64, time: i64) -> Option<u32> {
        let first = self.tid.partition_point(|&t| t < tid);
        let last = first + self.tid[first..].partition_point(|&t| t == tid);
        let after = first + self.start[first..last].partition_point(|&s| s <= time);
        // The last range begun before `time`, or one around it: parents hold their children whole.
        let mut at = (after > first).then(|| after as u32 - 1)?;
        while self.end[at as usize] < time {
            at = self.parent[at as usize];
            if at == u32::MAX {
                return None;
            }
        }
        Some(at)
    }

    /// A range and those around it, innermost first.
    pub fn outwards(&self, range: Option<u32>) -> impl Iterator<Item = u32> {
        std::iter::successors(range, |&r| Some(self.parent[r as usize]).filter(|&p| p != u32::MAX))
    }
}

impl Marks {
    fn new(mut events: Vec<Event>) -> Self {
        if !events.is_sorted_by_key(|e| (e.tid, e.start)) {
            events.sort_by_key(|e| (e.tid, e.start));
        }
        Self {
            tid: events.iter().map(|e| e.tid).collect(),
            start: events.iter().map(|e| e.start).collect(),
            rowid: events.iter().map(|e| e.rowid).collect(),
        }
    }

    pub fn len(&self) -> usize {
        self.start.len()
    }

    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// The marks of one thread, as a range of indices.
    pub fn of_thread(&self, tid: i64) -> std::ops::Range<usize> {
        let first = self.tid.partition_point(|&t| t < tid);
        first..first + self.tid[first..].partition_point(|&t| t == tid)
    }

    /// The mark at exactly this time on this thread.
    pub fn at(&self, tid: i64, start: i64) -> Option<usize> {
        let thread = self.of_thread(tid);
        let i = thread.start + self.start[thread.clone()].partition_point(|&s| s < start);
        (i < thread.end && self.start[i] == start).then_some(i)
    }
}

fn read_row(out: &mut Chunk, row: &Cells) {
    let (Ok(start), Ok(end)) = (row.time(0), row.time(1)) else { return };
    let (Some(start), Some(kind)) = (start, row.int(2)) else { return };
    let end = match end {
        Some(end) if end >= start => end,
        _ => i64::MAX,
    };
    let event = Event {
        tid: row.int(3).unwrap_or(0),
        start,
        end,
        rowid: row.int(5).unwrap_or(0),
        domain: row.int(4).unwrap_or(0),
    };
    match kind {
        PUSH_POP_RANGE | START_END_RANGE => out.ranges.push(event),
        MARK => out.marks.push(event),
        DOMAIN_CREATE => out.domains.push(event),
        k if NVTXT_RANGES.contains(&k) && end != i64::MAX => out.ranges.push(event),
        _ => {}
    }
}

/// Names by (process, domain id): the number of a domain differs between processes and captures.
fn domain_names(db: &Database, creates: &[Event]) -> Result<FxHashMap<(i64, i64), Arc<str>>, InputError> {
    let rowids: Vec<i64> = creates.iter().map(|e| e.rowid).collect();
    let texts = texts_of(db, &mut Strings::default(), &rowids)?;
    Ok(creates.iter().zip(texts).filter_map(|(e, t)| Some(((process(e.tid), e.domain), t?))).collect())
}

/// Texts of rows: `text`, else the registered string `textId`.
fn texts_of(
    db: &Database,
    strings: &mut Strings,
    rowids: &[i64],
) -> Result<Vec<Option<Arc<str>>>, InputError> {
    type Found = (usize, Option<Arc<str>>, Option<i64>);
    let found =
        db.look_up::<Vec<Found>>(TABLE, &["text", "textId"], "rowid", "", rowids, |out, k, row| {
            out.push((k, row.bytes(0).map(clean), row.int(1)));
        })?;
    let found: Vec<Found> = found.into_iter().flatten().collect();
    strings.fetch(db, found.iter().filter(|f| f.1.is_none()).filter_map(|f| f.2))?;
    let mut texts = vec![None; rowids.len()];
    for (k, text, id) in found {
        texts[k] = text.or_else(|| strings.get(id?).cloned());
    }
    Ok(texts)
}

/// `globalPid` of a `globalTid`.
pub fn process(global_tid: i64) -> i64 {
    global_tid & !0xFF_FFFF
}
