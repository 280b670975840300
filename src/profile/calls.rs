//! CUDA API calls of host threads: the rows of `CUPTI_ACTIVITY_KIND_RUNTIME`.
//!
//! Kept are calls that may wait, calls that issued an op and recorded events; getters, which are half of the table,
//! only count towards their thread's span.

use crate::error::InputError;
use crate::profile::correlation::IssuedBy;
use crate::profile::database::{Cells, Database};
use crate::profile::nvtx::process;
use crate::profile::seek::Place;
use crate::profile::strings::Strings;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// `eventClass` of CUDA runtime and driver calls, and of the twin that carries a call's backtrace
/// (ENUM_NSYS_EVENT_CLASS, the same in every version).
const RUNTIME: i64 = 0;
const DRIVER: i64 = 1;
const BACKTRACE: i64 = 67;

/// Correlation id of a row that has none.
pub const NO_CORRELATION: u32 = u32::MAX;

/// Chain id of a row that has none. 0 is an id like any other: that of a capture's first call, though some versions
/// store no frames for it.
pub const NO_CHAIN: u32 = u32::MAX;

/// Runtime and driver calls, sorted by start, outermost first; one entry of each column a call.
#[derive(Default)]
pub struct Calls {
    pub start: Vec<i64>,
    pub end: Vec<i64>,
    /// Index into [`Calls::threads`].
    pub thread: Vec<u32>,
    pub correlation: Vec<u32>,
    /// Index into [`Calls::names`].
    pub name: Vec<u32>,
    /// Call chain of the row itself, [`NO_CHAIN`] for none (older exports have no twins).
    pub chain: Vec<u32>,
    /// `globalTid` of each thread, ascending.
    pub threads: Vec<i64>,
    pub names: Vec<ApiName>,
    /// Calls of each thread, in start order.
    pub by_thread: Vec<Vec<u32>>,
    /// Of each thread: first start and last end over all its calls, in ns, and how many there were.
    pub spans: Vec<Span>,
    pub twins: Twins,
    /// Rows whose end was missing or before their start.
    pub open: u64,
    /// Rows left out because a time was out of range.
    pub out_of_range: u64,
    /// Calls whose name the export does not hold.
    pub unnamed: u64,
}

/// The stretch of a thread's calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    pub start: i64,
    pub end: i64,
    pub calls: u64,
}

/// A call's name, as recorded and without version suffix.
#[derive(Clone, Debug)]
pub struct ApiName {
    pub id: i64,
    /// "cudaStreamSynchronize" for `cudaStreamSynchronize_v3020` and `cudaStreamSynchronize_ptsz`.
    pub base: Arc<str>,
}

/// Backtrace twins (eventClass 67): the same call, a little wider, with its call chain; sorted by thread and start.
#[derive(Default)]
pub struct Twins {
    pub thread: Vec<u32>,
    pub start: Vec<i64>,
    pub correlation: Vec<u32>,
    pub chain: Vec<u32>,
    place: Place,
}

#[derive(Clone, Copy)]
struct Raw {
    start: i64,
    end: i64,
    tid: i64,
    name: i64,
    correlation: u32,
    chain: u32,
}

#[derive(Default)]
struct Chunk {
    calls: Vec<Raw>,
    twins: Vec<Raw>,
    /// By `globalTid`, in order of appearance: threads are few.
    spans: Vec<(i64, Span)>,
    /// Rows by name id, in order of appearance.
    names: Vec<(i64, u64)>,
    last_thread: usize,
    last_name: usize,
    open: u64,
    out_of_range: u64,
}

/// Which calls matter.
pub struct Interest<'a> {
    /// Whether a call of this name (suffix gone) may wait.
    pub may_wait: fn(&str) -> bool,
    pub issued: &'a IssuedBy,
}

impl Calls {
    pub fn len(&self) -> usize {
        self.start.len()
    }

    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// Name of call `i` without version suffix.
    pub fn base_name(&self, i: u32) -> &Arc<str> {
        &self.names[self.name[i as usize] as usize].base
    }

    /// Reads the calls that matter.
    pub fn read(db: &Database, strings: &mut Strings, interest: &Interest) -> Result<Self, InputError> {
        const COLUMNS: &[&str] =
            &["start", "end", "eventClass", "globalTid", "correlationId", "nameId", "callchainId"];
        let waiting = waiting_names(db, interest.may_wait)?;
        let chunks = db.scan("CUPTI_ACTIVITY_KIND_RUNTIME", COLUMNS, |out, row| {
            read_row(out, row, &waiting, interest.issued);
        })?;
        let mut calls = Self::default();
        let (mut raw, mut twins) = (Vec::new(), Vec::new());
        let (mut spans, mut names) = (FxHashMap::<i64, Span>::default(), FxHashMap::<i64, u64>::default());
        for mut chunk in chunks {
            raw.append(&mut chunk.calls);
            twins.append(&mut chunk.twins);
            calls.open += chunk.open;
            calls.out_of_range += chunk.out_of_range;
            for (tid, span) in &chunk.spans {
                spans.entry(*tid).and_modify(|known| known.add(span)).or_insert(*span);
            }
            chunk.names.iter().for_each(|(id, rows)| *names.entry(*id).or_default() += rows);
        }
        // Exports up to 2025.3 are in start order; looking first costs a thousandth of sorting. A call that holds
        // another starts no later and ends no earlier: outermost first. Calls of several threads may begin and end at
        // once: their order must not be that of the rows.
        let key = |r: &Raw| (r.start, std::cmp::Reverse(r.end), r.tid, r.correlation, r.name);
        if !raw.is_sorted_by_key(key) {
            raw.sort_by_key(key);
        }
        calls.threads = spans.keys().copied().collect();
        calls.threads.sort_unstable();
        calls.spans = calls.threads.iter().map(|t| spans[t]).collect();
        calls.fill(raw);
        calls.twins = Twins::new(twins, &calls.threads);
        calls.resolve_names(db, strings, &names)?;
        Ok(calls)
    }

    /// How many calls the export holds, those of no interest included.
    pub fn total(&self) -> u64 {
        self.spans.iter().map(|s| s.calls).sum()
    }

    fn fill(&mut self, raw: Vec<Raw>) {
        let ids = distinct(raw.iter().map(|r| r.name));
        let index: FxHashMap<i64, u32> = ids.iter().zip(0..).map(|(&id, i)| (id, i)).collect();
        self.names = ids.iter().map(|&id| ApiName { id, base: "".into() }).collect();
        self.by_thread = vec![Vec::new(); self.threads.len()];
        let mut thread_of = Memo::new(|tid| position(&self.threads, tid));
        let mut name_of = Memo::new(|id| index.get(&id).copied().unwrap_or(0));
        for (i, r) in (0u32..).zip(&raw) {
            let thread = thread_of.get(r.tid);
            self.start.push(r.start);
            self.end.push(r.end);
            self.thread.push(thread);
            self.correlation.push(r.correlation);
            self.name.push(name_of.get(r.name));
            self.chain.push(r.chain);
            self.by_thread[thread as usize].push(i);
        }
    }

    fn resolve_names(
        &mut self,
        db: &Database,
        strings: &mut Strings,
        rows: &FxHashMap<i64, u64>,
    ) -> Result<(), InputError> {
        strings.fetch(db, rows.keys().copied())?;
        for name in &mut self.names {
            let full = strings.get(name.id).map_or("", |s| s);
            name.base = base_name(full).into();
        }
        self.unnamed = rows.iter().filter(|(id, _)| strings.get(**id).is_none()).map(|(_, n)| n).sum();
        Ok(())
    }
}

impl Twins {
    fn new(mut raw: Vec<Raw>, threads: &[i64]) -> Self {
        if !raw.is_sorted_by_key(|r| (r.tid, r.start)) {
            raw.sort_by_key(|r| (r.tid, r.start));
        }
        let mut thread_of = Memo::new(|tid| position(threads, tid));
        Self {
            thread: raw.iter().map(|r| thread_of.get(r.tid)).collect(),
            start: raw.iter().map(|r| r.start).collect(),
            correlation: raw.iter().map(|r| r.correlation).collect(),
            chain: raw.iter().map(|r| r.chain).collect(),
            place: Place::default(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// The twin of a call: the last on its thread that starts no later and has its correlation id.
    ///
    /// ```text
    ///   twin   [--------------]   eventClass 67, no suffix, call chain
    ///   call    [------------]    0.03 to 0.5 µs narrower on both sides
    /// ```
    pub fn of(&self, thread: u32, start: i64, correlation: u32) -> Option<usize> {
        /// Twins of calls that began in between (a nested driver call) stand closer; never more than a few.
        const LOOK_BACK: usize = 4;
        let after = self.place.seek(self.start.len(), |i| (self.thread[i], self.start[i]) <= (thread, start));
        let found = (0..after).rev().take(LOOK_BACK).find(|&i| self.correlation[i] == correlation)?;
        (self.thread[found] == thread).then_some(found)
    }
}

fn read_row(out: &mut Chunk, row: &Cells, waiting: &FxHashSet<i64>, issued: &IssuedBy) {
    let (Some(class), name) = (row.int(2), row.int(5).unwrap_or(-1)) else { return };
    let waits = waiting.contains(&name);
    if class == BACKTRACE && !waits {
        return; // the twin of a launch
    }
    let (Ok(start), Ok(end)) = (row.time(0), row.time(1)) else {
        out.out_of_range += 1;
        return;
    };
    let Some(start) = start else { return };
    // A call whose end is missing was cut by the capture's end: nothing is known of its length.
    let (end, cut) = match end {
        Some(end) if end >= start => (end, false),
        _ => (start, true),
    };
    let raw = Raw {
        start,
        end,
        tid: row.int(3).unwrap_or(0),
        correlation: row.id(4).unwrap_or(NO_CORRELATION),
        name,
        chain: if waits { row.id(6).unwrap_or(NO_CHAIN) } else { NO_CHAIN },
    };
    match class {
        RUNTIME | DRIVER => {
            out.count(&raw);
            if waits || issued.issued(process(raw.tid), raw.correlation) {
                out.open += u64::from(cut);
                out.calls.push(raw);
            }
        }
        BACKTRACE => out.twins.push(raw),
        _ => {}
    }
}

impl Chunk {
    fn count(&mut self, raw: &Raw) {
        let span = Span { start: raw.start, end: raw.end, calls: 1 };
        let same = |at: usize, spans: &[(i64, Span)]| spans.get(at).is_some_and(|s| s.0 == raw.tid);
        if !same(self.last_thread, &self.spans) {
            self.last_thread = self.spans.iter().position(|s| s.0 == raw.tid).unwrap_or(self.spans.len());
        }
        match self.spans.get_mut(self.last_thread) {
            Some(known) => known.1.add(&span),
            None => self.spans.push((raw.tid, span)),
        }
        if self.names.get(self.last_name).is_none_or(|n| n.0 != raw.name) {
            self.last_name = self.names.iter().position(|n| n.0 == raw.name).unwrap_or(self.names.len());
        }
        match self.names.get_mut(self.last_name) {
            Some(known) => known.1 += 1,
            None => self.names.push((raw.name, 1)),
        }
    }
}

impl Span {
    fn add(&mut self, other: &Self) {
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
        self.calls += other.calls;
    }
}

/// Ids of the strings that name a call that may wait, with and without suffix.
fn waiting_names(db: &Database, may_wait: fn(&str) -> bool) -> Result<FxHashSet<i64>, InputError> {
    let chunks = db.scan("StringIds", &["id", "value"], |out: &mut Vec<i64>, row| {
        let name = row.bytes(1).filter(|b| b.starts_with(b"cu")).and_then(|b| std::str::from_utf8(b).ok());
        if name.is_some_and(|n| may_wait(base_name(n))) {
            out.extend(row.int(0));
        }
    })?;
    Ok(chunks.into_iter().flatten().collect())
}

/// The API's name without what its version and linkage add: `_v3020`, `_ptsz`, `_ptds`.
///
/// A driver call's `_v2` stays: it tells two different entry points apart.
pub fn base_name(name: &str) -> &str {
    let name = name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds")).unwrap_or(name);
    let name = match name.rsplit_once("_v") {
        Some((base, digits))
            if (4..=5).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit()) =>
        {
            base
        }
        _ => name,
    };
    name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds")).unwrap_or(name)
}

/// Distinct values, in order of first appearance.
fn distinct(values: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut seen = rustc_hash::FxHashSet::default();
    let mut out = Vec::new();
    let mut last = None;
    for v in values {
        if last != Some(v) && seen.insert(v) {
            out.push(v);
        }
        last = Some(v);
    }
    out
}

fn position(sorted: &[i64], value: i64) -> u32 {
    sorted.binary_search(&value).unwrap_or(0) as u32
}

/// Remembers the last look-up: neighbouring rows mostly ask the same.
struct Memo<F> {
    look_up: F,
    last: Option<(i64, u32)>,
}

impl<F: Fn(i64) -> u32> Memo<F> {
    fn new(look_up: F) -> Self {
        Self { look_up, last: None }
    }

    fn get(&mut self, key: i64) -> u32 {
        match self.last {
            Some((k, v)) if k == key => v,
            _ => {
                let v = (self.look_up)(key);
                self.last = Some((key, v));
                v
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::base_name;

    #[test]
    fn suffixes_of_version_and_linkage_go() {
        for (name, base) in [
            ("cudaStreamSynchronize_v3020", "cudaStreamSynchronize"),
            ("cudaStreamSynchronize_ptsz_v7000", "cudaStreamSynchronize"),
            ("cudaStreamSynchronize_v7000_ptsz", "cudaStreamSynchronize"),
            ("cudaGraphLaunch_v10000", "cudaGraphLaunch"),
            ("cuStreamSynchronize_ptsz", "cuStreamSynchronize"),
            ("cuMemcpyDtoH_v2", "cuMemcpyDtoH_v2"),
            ("cudaDeviceSynchronize", "cudaDeviceSynchronize"),
            ("_v3020", ""),
            ("", ""),
        ] {
            assert_eq!(base_name(name), base);
        }
    }
}
