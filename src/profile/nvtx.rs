//! NVTX: ranges with their nesting, and the marks that carry Python frames.
//!
//! The largest table of many exports. One scan reads times and ids only, and keeps rows that concern a call
//! that may wait: ranges around it or around many calls, which may be iterations, and marks at a backtrace
//! twin. Texts and payloads are fetched afterwards, by rowid. Where ranges of a name are wanted, the scan
//! reads texts too, and keeps those ranges apart: one chain of parents cannot hold overlapping ranges.

use crate::error::InputError;
use crate::profile::call_times::{CallTimes, Cursor};
use crate::profile::calls::Calls;
use crate::profile::database::{Cells, Database};
use crate::profile::ids::{GlobalPid, GlobalTid, MarkIx, RangeId};
use crate::profile::payload::{self, Payloads};
use crate::profile::seek::Remembered;
use crate::profile::strings::{Strings, clean};
use crate::profile::tally::Tally;
use crate::profile::unclosed::{Event, MAX_DEPTH, OPEN, Unclosed};
use crate::profile::wanted::Wanted;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use typed_index_collections::TiVec;

pub(super) const TABLE: &str = "NVTX_EVENTS";

/// `eventType` (ENUM_NSYS_EVENT_TYPE): marks, push/pop and start/end ranges, their older forms, domain names.
pub(super) const MARK: i64 = 34;
const PUSH_POP_RANGE: i64 = 59;
const START_END_RANGE: i64 = 60;
const NVTXT_RANGES: std::ops::RangeInclusive<i64> = 70..=71;
const DOMAIN_CREATE: i64 = 75;

/// Sorted by thread, then start, outermost first.
#[derive(Default)]
pub struct Nvtx {
    /// Push/pop and start/end ranges.
    pub ranges: Ranges,
    /// One mark per traced CUDA call: its start equals the start of the call's backtrace twin.
    pub call_marks: Marks,
    /// One mark per Python sample: all marks of a capture without twins; their payload tells which it was.
    pub sample_marks: Marks,
    /// Payloads of call marks that were at hand.
    pub payloads: Payloads,
    /// Texts of ranges around waits, as far as asked for; `None` for a range without one.
    pub texts: FxHashMap<RangeId, Option<Arc<str>>>,
    /// How many ranges each thread opened, those not kept included.
    pub opened: FxHashMap<GlobalTid, u64>,
    pub unclosed: Unclosed,
    /// Rows that name domains.
    domains: Vec<i64>,
    /// By name.
    pub wanted: FxHashMap<String, Instances>,
}

#[derive(Default)]
pub struct Ranges {
    /// As read: millions, which are not to be held twice.
    rows: TiVec<RangeId, Event>,
    parent: TiVec<RangeId, Option<RangeId>>,
    /// Number of ranges around.
    pub depth: TiVec<RangeId, u16>,
    pub too_deep: u64,
    place: Remembered,
}

#[derive(Default)]
pub struct Marks {
    /// By thread and start.
    pub rows: TiVec<MarkIx, Mark>,
    place: Remembered,
}

/// Ordered by thread, then start in ns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    pub tid: GlobalTid,
    pub start: i64,
    /// Row of NVTX_EVENTS with the payload.
    pub rowid: i64,
}

/// Times at which ranges of one name were open in a process, on any thread, whatever else overlapped them.
#[derive(Default)]
pub struct Instances {
    /// Disjoint, ascending.
    spans: FxHashMap<GlobalPid, Vec<(i64, i64)>>,
}

#[derive(Default)]
struct Chunk {
    ranges: Vec<Event>,
    /// With the index of their wanted name.
    wanted: Vec<(usize, Event)>,
    marks: Vec<Mark>,
    domains: Vec<i64>,
    payloads: Payloads,
    opened: Tally<GlobalTid, u64>,
    place: Cursor,
}

impl Chunk {
    fn join(&mut self, mut next: Self) {
        self.ranges.append(&mut next.ranges);
        self.wanted.append(&mut next.wanted);
        self.domains.append(&mut next.domains);
        self.marks.append(&mut next.marks);
        self.payloads.join_some(next.payloads);
        self.opened.join(&next.opened);
    }
}

impl Nvtx {
    /// `registered`: for each wanted range, ids of the strings that are its text.
    pub fn read(
        db: &Database,
        calls: &Calls,
        wanted: &Wanted,
        registered: &[FxHashSet<i64>],
    ) -> Result<Self, InputError> {
        const COLUMNS: &[&str] = &["start", "end", "eventType", "globalTid", "rowid"];
        let times = CallTimes::new(calls);
        let names: Vec<_> = wanted.ranges.iter().zip(registered).enumerate().collect();
        let read = |out: &mut Chunk, row: &Cells| {
            let Some(range) = read_row(out, row, &times) else { return };
            let is_named = |(name, ids): (&String, &FxHashSet<i64>)| match row.bytes(5) {
                Some(text) => (wanted.is_named)(text, name),
                None => row.int(6).is_some_and(|id| ids.contains(&id)),
            };
            let named = names.iter().filter(|(_, name)| is_named(*name));
            out.wanted.extend(named.map(|(name, _)| (*name, range)));
        };
        let columns = [COLUMNS, if names.is_empty() { &[] } else { &["text", "textId"] }].concat();
        let Chunk { mut ranges, wanted: instances, marks, domains, payloads, opened, .. } =
            db.gather(TABLE, &columns, payload::COLUMNS, read, Chunk::join)?;
        let texts = |rowids: &[i64]| texts_of(db, &mut Strings::default(), rowids);
        let unclosed = Unclosed::mend(&mut ranges, wanted.name, texts)?;
        let mut spans = vec![Vec::new(); names.len()];
        for (name, Event { tid, start, end, rowid }) in instances {
            spans[name].push((tid.process(), start, unclosed.end(rowid, end)));
        }
        let spans = spans.into_iter().map(Instances::new);
        let (call_marks, sample_marks) =
            if times.has_twins { (marks, Vec::new()) } else { (Vec::new(), marks) };
        Ok(Self {
            ranges: Ranges::new(ranges),
            call_marks: Marks::new(call_marks),
            sample_marks: Marks::new(sample_marks),
            payloads,
            texts: FxHashMap::default(),
            opened: opened.iter().map(|(&tid, &count)| (tid, count)).collect(),
            unclosed,
            domains,
            wanted: wanted.ranges.iter().cloned().zip(spans).collect(),
        })
    }

    pub fn has_domain(&self, db: &Database, name: &str) -> Result<bool, InputError> {
        let names = texts_of(db, &mut Strings::default(), &self.domains)?;
        Ok(names.iter().flatten().any(|other| **other == *name))
    }

    /// All ranges around calls at these times, by thread, whether or not the calls may wait. Scans the table
    /// once more: [`Nvtx::read`] keeps too little of a capture with backtraces.
    pub fn around(&self, db: &Database, calls: &[(GlobalTid, i64)]) -> Result<Ranges, InputError> {
        const COLUMNS: &[&str] = &["start", "end", "eventType", "globalTid", "rowid"];
        let mut calls = calls.to_vec();
        calls.sort_unstable();
        let starts: Vec<i64> = calls.iter().map(|c| c.1).collect();
        let times = CallTimes::of(&calls, &starts);
        let last = calls.iter().map(|c| c.1).max().unwrap_or(i64::MIN);
        let first = calls.iter().map(|c| c.1).min().unwrap_or(i64::MAX);
        let read = |out: &mut Chunk, row: &Cells| {
            // Times alone rule out most rows.
            if row.int(0).is_none_or(|start| start > last) || row.int(1).is_some_and(|end| end < first) {
                return;
            }
            let Some((start, end)) = range_times(row) else { return };
            let (tid, rowid) = (row.global_tid(3).unwrap_or(GlobalTid::NONE), row.int(4).unwrap_or(0));
            let end = self.unclosed.end(rowid, end);
            if times.matters(&mut out.place, tid, start, end) {
                out.ranges.push(Event { tid, start, end, rowid });
            }
        };
        let Chunk { ranges, .. } = db.gather(TABLE, COLUMNS, &[], read, Chunk::join)?;
        Ok(Ranges::new(ranges))
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
    /// Start/end ranges (type 60) may overlap without nesting: a range's parent is the innermost that holds
    /// it whole. Linear after the sort. Ranges deeper than [`MAX_DEPTH`] are left out: their calls count for
    /// the range above.
    fn new(mut events: Vec<Event>) -> Self {
        let key = |e: &Event| (e.tid, e.start, std::cmp::Reverse(e.end), e.rowid);
        if !events.is_sorted_by_key(key) {
            events.sort_unstable_by_key(key);
        }
        let count = events.len();
        let mut out = Self {
            parent: TiVec::with_capacity(count),
            depth: TiVec::with_capacity(count),
            ..Self::default()
        };
        let mut stack: Vec<(RangeId, Event)> = Vec::new();
        events.retain(|e| {
            while stack.pop_if(|(_, top)| top.tid != e.tid || top.end < e.end).is_some() {}
            if stack.len() >= MAX_DEPTH {
                out.too_deep += 1;
                return false;
            }
            let range = out.parent.push_and_get_key(stack.last().map(|top| top.0));
            out.depth.push(stack.len() as u16);
            stack.push((range, *e));
            true
        });
        events.shrink_to_fit();
        Self { rows: events.into(), ..out }
    }

    /// By thread and start.
    pub fn ids(&self) -> impl Iterator<Item = RangeId> + use<> {
        self.rows.keys()
    }

    pub fn tid(&self, range: RangeId) -> GlobalTid {
        self.rows[range].tid
    }

    pub fn start(&self, range: RangeId) -> i64 {
        self.rows[range].start
    }

    /// `i64::MAX` for a range that was still open.
    pub fn end(&self, range: RangeId) -> i64 {
        self.rows[range].end
    }

    /// In the order of `ranges`; `None` for a range without text.
    pub fn texts(
        &self,
        db: &Database,
        strings: &mut Strings,
        ranges: &[RangeId],
    ) -> Result<Vec<Option<Arc<str>>>, InputError> {
        let rowids: Vec<i64> = ranges.iter().map(|&r| self.rows[r].rowid).collect();
        texts_of(db, strings, &rowids)
    }

    /// The innermost range that holds `time` on thread `tid`.
    pub fn innermost(&self, tid: GlobalTid, time: i64) -> Option<RangeId> {
        let rows = &self.rows.raw;
        let after = self.place.seek(rows.len(), |i| (rows[i].tid, rows[i].start) <= (tid, time));
        // The last range begun before `time`, or one around it: parents hold their children whole.
        let last = after.checked_sub(1).map(RangeId::from).filter(|&r| self.tid(r) == tid);
        self.outwards(last).find(|&r| self.end(r) >= time)
    }

    /// A range and those around it, innermost first.
    pub fn outwards(&self, range: Option<RangeId>) -> impl Iterator<Item = RangeId> {
        std::iter::successors(range, |&r| self.parent[r])
    }

    /// Only ranges that ended within the capture.
    pub fn closed_at(&self, depth: u16) -> impl Iterator<Item = RangeId> {
        self.ids().filter(move |&r| self.depth[r] == depth && self.end(r) != OPEN)
    }
}

impl Instances {
    /// Merges overlapping rows: process, start and end, in any order.
    fn new(mut rows: Vec<(GlobalPid, i64, i64)>) -> Self {
        rows.sort_unstable();
        let mut spans: FxHashMap<GlobalPid, Vec<(i64, i64)>> = FxHashMap::default();
        for (pid, start, end) in rows {
            let list = spans.entry(pid).or_default();
            match list.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => list.push((start, end)),
            }
        }
        Self { spans }
    }

    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    pub fn hold(&self, pid: GlobalPid, time: i64) -> bool {
        self.spans.get(&pid).is_some_and(|list| {
            let after = list.partition_point(|s| s.0 <= time);
            after.checked_sub(1).is_some_and(|i| time <= list[i].1)
        })
    }
}

impl Marks {
    fn new(mut rows: Vec<Mark>) -> Self {
        if !rows.is_sorted() {
            rows.sort_unstable();
        }
        rows.shrink_to_fit();
        Self { rows: rows.into(), place: Remembered::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn of_thread(&self, tid: GlobalTid) -> std::ops::Range<usize> {
        let rows = &self.rows.raw;
        rows.partition_point(|mark| mark.tid < tid)..rows.partition_point(|mark| mark.tid <= tid)
    }

    /// The mark at exactly this time on this thread.
    pub fn at(&self, tid: GlobalTid, start: i64) -> Option<&Mark> {
        let rows = &self.rows.raw;
        let at = self.place.seek(rows.len(), |i| (rows[i].tid, rows[i].start) < (tid, start));
        rows.get(at).filter(|mark| (mark.tid, mark.start) == (tid, start))
    }
}

/// Columns: `start`, `end`, `eventType`, `globalTid`, `rowid`. Returns the range, if it is one.
fn read_row(out: &mut Chunk, row: &Cells, times: &CallTimes) -> Option<Event> {
    let tid = row.global_tid(3).unwrap_or(GlobalTid::NONE);
    let event = |start, end| Event { tid, start, end, rowid: row.int(4).unwrap_or(0) };
    let kind = row.int(2);
    if kind == Some(MARK) {
        let start = row.time(0).ok().flatten()?;
        if times.has_twins {
            if !times.is_twin(&mut out.place, tid, start) {
                return None;
            }
            if let (Some(rowid), Some(json), Some(blob)) = (row.int(4), row.at_hand(0), row.at_hand(1)) {
                out.payloads.see(rowid, json, blob);
            }
        }
        out.marks.push(Mark { tid, start, rowid: row.int(4).unwrap_or(0) });
        return None;
    }
    let Some((start, end)) = times_of(kind, row) else {
        out.domains.extend(row.int(4).filter(|_| kind == Some(DOMAIN_CREATE)));
        return None;
    };
    out.opened.add(tid, 1);
    if times.matters(&mut out.place, tid, start, end) {
        out.ranges.push(event(start, end));
    }
    Some(event(start, end))
}

/// The first columns are `start`, `end`, `eventType`; the end is `i64::MAX` for a range that was still open.
pub(super) fn range_times(row: &Cells) -> Option<(i64, i64)> {
    times_of(row.int(2), row)
}

#[inline]
fn times_of(kind: Option<i64>, row: &Cells) -> Option<(i64, i64)> {
    let (Ok(Some(start)), Ok(end)) = (row.time(0), row.time(1)) else { return None };
    let end = end.filter(|&end| end >= start);
    match kind? {
        PUSH_POP_RANGE | START_END_RANGE => Some((start, end.unwrap_or(OPEN))),
        // The older forms have no kind for a mark: it is a range without an end.
        kind if NVTXT_RANGES.contains(&kind) => Some((start, end?)),
        _ => None,
    }
}

/// Texts of rows: `text`, else the registered string `textId`.
fn texts_of(
    db: &Database,
    strings: &mut Strings,
    rowids: &[i64],
) -> Result<Vec<Option<Arc<str>>>, InputError> {
    type Texts = Vec<(usize, Option<Arc<str>>, Option<i64>)>;
    let text = |out: &mut Texts, k: usize, row: &Cells| out.push((k, row.bytes(0).map(clean), row.int(1)));
    let found: Texts = db.look_up(TABLE, &["text", "textId"], ("rowid", 1), rowids, text, Vec::extend)?;
    strings.fetch(db, found.iter().filter(|f| f.1.is_none()).filter_map(|f| f.2))?;
    let mut texts = vec![None; rowids.len()];
    for (k, text, id) in found {
        texts[k] = text.or_else(|| strings.get(id?).cloned());
    }
    Ok(texts)
}
