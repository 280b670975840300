//! CUDA API calls of host threads: the rows of `CUPTI_ACTIVITY_KIND_RUNTIME`.
//!
//! Calls that may wait, issued an op or recorded an event are kept. Getters, half of the table, only count
//! towards their thread's span.

use crate::error::InputError;
use crate::profile::chains;
use crate::profile::coded::{Codes, Dictionary};
use crate::profile::database::{Cells, Database};
use crate::profile::getters::nine_of_ten;
use crate::profile::host_calls::HostCall;
use crate::profile::ids::{CallId, ExportId, GlobalTid, NameIx, ThreadIx, TwinIx};
use crate::profile::issued::IssuedBy;
use crate::profile::seek::Remembered;
use crate::profile::strings::{Strings, base_name};
use crate::profile::tally::Tally;
use crate::profile::times::Times;
use crate::profile::wanted::Names;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::ops::Deref;
use std::sync::Arc;
use typed_index_collections::{TiSlice, TiVec};

/// `eventClass` of CUDA runtime and driver calls, and of the twin that carries a call's backtrace
/// (ENUM_NSYS_EVENT_CLASS, the same in every version).
const RUNTIME: i64 = 0;
const DRIVER: i64 = 1;
pub(super) const BACKTRACE: i64 = 67;
/// `returnValue` of calls that worked or came after their context, as at a program's end: success,
/// CUDA_ERROR_DEINITIALIZED, INVALID_CONTEXT, CONTEXT_IS_DESTROYED (cuda.h; the runtime's are the same).
const HARMLESS: &[i64] = &[0, 4, 201, 709];

/// Runtime and driver calls, sorted by start, outermost first.
#[derive(Default)]
pub struct Calls {
    pub times: Times<CallId>,
    /// CUPTI correlation id, shared with the ops and synchronisation rows of the call.
    pub correlation: TiVec<CallId, ExportId>,
    /// Index into `callers`.
    caller: Codes<CallId>,
    callers: Vec<(ThreadIx, NameIx)>,
    /// Call chain of the row itself, for calls that may wait; newer exports put it on the twin.
    pub chain: FxHashMap<CallId, ExportId>,
    /// Ascending.
    pub threads: TiVec<ThreadIx, GlobalTid>,
    pub names: TiVec<NameIx, ApiName>,
    /// In start order.
    pub by_thread: TiVec<ThreadIx, Vec<CallId>>,
    /// Over all calls of a thread, those not kept included.
    pub spans: TiVec<ThreadIx, Span>,
    pub twins: Twins,
    /// Whether at least half of a name's calls carry a backtrace: nsys takes one for each call of some
    /// functions and none for others.
    pub backtraced: TiVec<NameIx, bool>,
    /// Kept calls whose end was missing or before their start.
    pub open: u64,
    /// Rows left out because a time was out of range.
    pub out_of_range: u64,
    /// Calls whose name the export does not hold.
    pub unnamed: u64,
    /// Calls that may wait and returned an error.
    pub failed: Failures,
    /// Calls that launch a kernel, whether or not it is recorded.
    pub launches: u64,
    /// Calls that copy, likewise.
    pub copies: u64,
    /// 90th percentile of calls whose duration is tracer overhead only, in ns.
    pub getter: Option<i64>,
    /// Calls that allocate or load, in no order.
    pub host_calls: Vec<HostCall>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Failures {
    pub calls: u64,
    /// The earliest: its start in ns, the StringIds id of its name, the error (cudaError_t, CUresult).
    pub first: Option<(i64, i64, i64)>,
}

/// First start and last end of a thread's calls, in ns, and their number.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    pub start: i64,
    pub end: i64,
    pub calls: u64,
}

#[derive(Clone, Debug)]
pub struct ApiName {
    /// StringIds id of the name as recorded.
    pub id: i64,
    /// "cudaStreamSynchronize" for `cudaStreamSynchronize_v3020` and `cudaStreamSynchronize_ptsz`.
    pub base: Arc<str>,
}

impl ApiName {
    /// Not a graph, nor a host function.
    pub fn launches_kernel(&self) -> bool {
        launches_kernel(&self.base)
    }
}

fn launches_kernel(base: &str) -> bool {
    base.starts_with("cudaLaunchKernel") || base.starts_with("cuLaunchKernel")
}

pub fn copies(base: &str) -> bool {
    base.starts_with("cudaMemcpy") || base.starts_with("cuMemcpy")
}

/// Backtrace twins (eventClass 67): the same call, a little wider, with its chain; by thread and start.
#[derive(Default)]
pub struct Twins {
    pub thread: TiVec<TwinIx, ThreadIx>,
    /// In ns; a little before the call's own start.
    pub start: TiVec<TwinIx, i64>,
    pub correlation: TiVec<TwinIx, ExportId>,
    pub chain: TiVec<TwinIx, ExportId>,
    place: Remembered,
}

#[derive(Clone, Copy)]
struct Raw {
    start: i64,
    end: i64,
    tid: GlobalTid,
    name: i64,
    correlation: ExportId,
    chain: ExportId,
}

/// Counts over all rows, also calls that are not kept.
#[derive(Default)]
struct Counts {
    spans: Tally<GlobalTid, Span>,
    /// Rows by name id.
    names: Tally<i64, u64>,
    /// Rows with a call chain by name id: twins, or in older exports calls themselves.
    chains: Tally<i64, u64>,
    /// Getters by their length in ns.
    getters: Tally<i64, u64>,
    host_calls: Vec<HostCall>,
    open: u64,
    out_of_range: u64,
    failed: Failures,
}

#[derive(Default)]
struct Chunk {
    calls: Vec<Raw>,
    twins: Vec<Raw>,
    counts: Counts,
}

/// Calls that matter, packed as they are read; threads and names are numbered by first appearance.
#[derive(Default)]
pub struct Rows {
    /// Without threads, names and counts, which are known at the end.
    calls: Calls,
    callers: Dictionary<(ThreadIx, NameIx)>,
    counts: Counts,
    /// Name ids of calls that matter.
    kept: Tally<i64, ()>,
    twins: Vec<Raw>,
    /// In the order of `counts.spans`.
    by_thread: TiVec<ThreadIx, Vec<CallId>>,
}

pub struct Interest<'a> {
    pub names: &'a Names,
    /// Correlation ids of ops and event records.
    pub issued: &'a IssuedBy,
}

impl Rows {
    pub fn read(db: &Database, interest: &Interest) -> Result<Self, InputError> {
        const TIMES: [&str; 2] = ["start", "end"];
        const CALL: [&str; 4] = ["eventClass", "globalTid", "correlationId", "nameId"];
        let columns = [&TIMES[..], &CALL, &["callchainId", "returnValue"]].concat();
        let read = |out: &mut Chunk, row: &Cells| read_row(out, row, interest.names, interest.issued);
        let rows = db.gather("CUPTI_ACTIVITY_KIND_RUNTIME", &columns, &[], read, Self::join)?;
        Ok(rows.in_order())
    }

    fn join(&mut self, chunk: Chunk) {
        self.counts.join(&chunk.counts);
        self.twins.extend(chunk.twins);
        chunk.calls.iter().for_each(|call| self.push(call));
    }

    fn push(&mut self, r: &Raw) {
        let thread = ThreadIx::from(self.counts.spans.place(r.tid, || Span::EMPTY));
        let name = NameIx::from(self.kept.place(r.name, || ()));
        let call = self.calls.times.push(r.start, r.end);
        self.calls.caller.push(self.callers.insert_full((thread, name)).0 as u32);
        self.calls.correlation.push(r.correlation);
        if !r.chain.is_none() {
            self.calls.chain.insert(call, r.chain);
        }
        if self.by_thread.len() <= thread.index() {
            self.by_thread.resize_with(thread.index() + 1, Vec::new);
        }
        self.by_thread[thread].push(call);
    }

    /// Outermost first: a call around another starts no later and ends no earlier. Row order must not decide
    /// ties of threads. Most tables are sorted: the check costs a thousandth of sorting.
    fn in_order(self) -> Self {
        let order = |r: &Raw| (r.start, Reverse(r.end), r.tid, r.correlation, r.name);
        if self.calls.ids().map(|call| self.raw(call)).is_sorted_by_key(|r| order(&r)) {
            return self;
        }
        let mut rows: Vec<Raw> = self.calls.ids().map(|call| self.raw(call)).collect();
        rows.sort_by_key(order);
        let Self { counts, twins, .. } = self;
        let mut sorted = Self { counts, twins, ..Self::default() };
        rows.iter().for_each(|r| sorted.push(r));
        sorted
    }

    fn raw(&self, call: CallId) -> Raw {
        let (start, end) = self.calls.times.get(call);
        let (thread, name) = self.callers[self.calls.caller.get(call) as usize];
        let (tid, name) = (self.counts.spans.keys()[thread.index()], self.kept.keys()[name.index()]);
        let chain = self.calls.chain.get(&call).copied().unwrap_or(ExportId::NONE);
        Raw { start, end, tid, name, correlation: self.calls.correlation[call], chain }
    }
}

impl Deref for Calls {
    type Target = Times<CallId>;

    fn deref(&self) -> &Times<CallId> {
        &self.times
    }
}

impl Calls {
    /// Calls that start within `from..to`.
    pub fn starting(&self, from: i64, to: i64) -> impl ExactSizeIterator<Item = CallId> + Clone + use<> {
        (self.first_from(from)..self.first_from(to)).map(CallId::from)
    }

    #[inline]
    pub fn thread(&self, call: CallId) -> ThreadIx {
        self.callers[self.caller.get(call) as usize].0
    }

    #[inline]
    pub fn name(&self, call: CallId) -> NameIx {
        self.callers[self.caller.get(call) as usize].1
    }

    pub fn base_name(&self, call: CallId) -> &Arc<str> {
        &self.names[self.name(call)].base
    }

    pub fn tid(&self, call: CallId) -> GlobalTid {
        self.threads[self.thread(call)]
    }

    pub fn twin(&self, call: CallId) -> Option<TwinIx> {
        self.twins.of(self.thread(call), self.start(call), self.correlation[call])
    }

    pub fn new(rows: Rows, db: &Database, strings: &mut Strings) -> Result<Self, InputError> {
        let Rows { mut calls, callers, counts, kept, mut twins, mut by_thread } = rows;
        let Counts { spans, names, chains, getters, host_calls, .. } = counts;
        calls.host_calls = host_calls;
        (calls.open, calls.out_of_range, calls.failed) = (counts.open, counts.out_of_range, counts.failed);
        calls.getter = nine_of_ten(&getters);
        calls.names = kept.keys().map(|&id| ApiName { id, base: "".into() }).collect();
        calls.threads = spans.keys().copied().collect();
        calls.threads.raw.sort_unstable();
        // From places in `spans` to sorted threads.
        let thread_of: TiVec<ThreadIx, ThreadIx> =
            spans.keys().map(|tid| position(&calls.threads, *tid)).collect();
        let caller = |&(thread, name): &(ThreadIx, NameIx)| (thread_of[thread], name);
        calls.callers = callers.iter().map(caller).collect();
        calls.spans = calls.threads.iter().map(|tid| spans.get(tid).copied().unwrap_or_default()).collect();
        calls.by_thread = calls.threads.iter().map(|_| Vec::new()).collect();
        for (list, &thread) in by_thread.iter_mut().zip(&thread_of) {
            list.shrink_to_fit();
            calls.by_thread[thread] = std::mem::take(list);
        }
        calls.times.shrink();
        calls.caller.shrink();
        calls.correlation.shrink_to_fit();
        let id_of = |call: CallId| calls.names[calls.name(call)].id;
        let of_calls = calls.chain.iter().filter_map(|(call, chain)| Some((chain.known()?, id_of(*call))));
        let of_twins = twins.iter().filter_map(|r| Some((r.chain.known()?, r.name)));
        let offset = chains::offset(db, strings, of_calls.chain(of_twins).collect())?;
        calls.chain.retain(|_, chain| {
            *chain = chain.plus(offset);
            !chain.is_none()
        });
        twins.iter_mut().for_each(|r| r.chain = r.chain.plus(offset));
        calls.twins = Twins::new(twins, &calls.threads);
        calls.resolve_names(db, strings, &names, &chains)?;
        Ok(calls)
    }

    /// Includes calls that were not kept.
    pub fn total(&self) -> u64 {
        self.spans.iter().map(|s| s.calls).sum()
    }

    fn resolve_names(
        &mut self,
        db: &Database,
        strings: &mut Strings,
        rows: &Tally<i64, u64>,
        chains: &Tally<i64, u64>,
    ) -> Result<(), InputError> {
        strings.fetch(db, rows.keys().chain(chains.keys()).copied())?;
        for name in &mut self.names {
            let full = strings.get(name.id).map_or("", |s| s);
            name.base = base_name(full).into();
        }
        // A twin's name has no suffix, the call's has: they meet in the base name.
        let mut of_base: FxHashMap<&str, [u64; 2]> = FxHashMap::default();
        for (counts, which) in [(rows, 0), (chains, 1)] {
            for (id, count) in counts.iter() {
                of_base.entry(strings.get(*id).map_or("", |s| base_name(s))).or_default()[which] += count;
            }
        }
        let issued =
            |is: fn(&str) -> bool| of_base.iter().filter(|(base, _)| is(base)).map(|(_, n)| n[0]).sum();
        (self.launches, self.copies) = (issued(launches_kernel), issued(copies));
        let half = |[rows, chains]: [u64; 2]| chains > 0 && 2 * chains >= rows;
        self.backtraced = self.names.iter().map(|name| half(of_base[&*name.base])).collect();
        self.unnamed = rows.iter().filter(|(id, _)| strings.get(**id).is_none()).map(|(_, n)| n).sum();
        Ok(())
    }
}

impl Twins {
    fn new(mut rows: Vec<Raw>, threads: &TiSlice<ThreadIx, GlobalTid>) -> Self {
        if !rows.is_sorted_by_key(|r| (r.tid, r.start)) {
            rows.sort_by_key(|r| (r.tid, r.start));
        }
        let mut thread_of = Tally::default();
        let mut thread = |r: &Raw| *thread_of.of(r.tid, || position(threads, r.tid));
        Self {
            thread: rows.iter().map(&mut thread).collect(),
            start: rows.iter().map(|r| r.start).collect(),
            correlation: rows.iter().map(|r| r.correlation).collect(),
            chain: rows.iter().map(|r| r.chain).collect(),
            place: Remembered::default(),
        }
    }

    pub(super) fn starts(&self, thread: ThreadIx) -> &[i64] {
        let first = self.thread.partition_point(|&t| t < thread);
        &self.start.raw[first.index()..self.thread.partition_point(|&t| t <= thread).index()]
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
    fn of(&self, thread: ThreadIx, start: i64, correlation: ExportId) -> Option<TwinIx> {
        /// Twins of calls that began in between (a nested driver call) come first; never more than a few.
        const LOOK_BACK: usize = 4;
        let at = |i: usize| (self.thread.raw[i], self.start.raw[i]);
        let after = self.place.seek(self.start.len(), |i| at(i) <= (thread, start));
        let mut near = (0..after).rev().take(LOOK_BACK).map(TwinIx::from);
        let found = near.find(|&i| self.correlation[i] == correlation)?;
        (self.thread[found] == thread).then_some(found)
    }
}

fn read_row(out: &mut Chunk, row: &Cells, names: &Names, issued: &IssuedBy) {
    let (Some(class), name) = (row.int(2), row.int(5).unwrap_or(-1)) else { return };
    let waits = names.waiting.contains(&name);
    let chain = row.export_id(6);
    let counts = &mut out.counts;
    if !chain.is_none() {
        counts.chains.add(name, 1);
    }
    if class == BACKTRACE && !waits {
        return; // the twin of a launch
    }
    let (Ok(start), Ok(end)) = (row.time(0), row.time(1)) else {
        counts.out_of_range += 1;
        return;
    };
    let Some(start) = start else { return };
    // A call whose end is missing was cut by the capture's end: its length is unknown.
    let (end, cut) = match end {
        Some(end) if end >= start => (end, false),
        _ => (start, true),
    };
    let raw = Raw {
        start,
        end,
        tid: row.global_tid(3).unwrap_or(GlobalTid::NONE),
        correlation: row.export_id(4),
        name,
        chain: if waits { chain } else { ExportId::NONE },
    };
    match class {
        RUNTIME | DRIVER => {
            counts.spans.of(raw.tid, || Span::EMPTY).add(&Span { start, end, calls: 1 });
            counts.names.add(name, 1);
            if names.getters.contains(&name) {
                counts.getters.add(end - start, 1);
            }
            let of = |&family| HostCall { tid: raw.tid, start, end, name, family };
            counts.host_calls.extend(names.families.get(&name).map(of).filter(HostCall::counts));
            let failed = row.int(7).filter(|code| waits && !HARMLESS.contains(code));
            if let Some(code) = failed {
                counts.failed.add(Failures { calls: 1, first: Some((start, name, code)) });
            }
            if waits || issued.issued(raw.tid.process(), raw.correlation) {
                counts.open += u64::from(cut);
                out.calls.push(raw);
            }
        }
        BACKTRACE => out.twins.push(raw),
        _ => {}
    }
}

impl Counts {
    fn join(&mut self, part: &Self) {
        part.spans.iter().for_each(|(tid, span)| self.spans.of(*tid, || Span::EMPTY).add(span));
        self.names.join(&part.names);
        self.chains.join(&part.chains);
        self.getters.join(&part.getters);
        self.host_calls.extend_from_slice(&part.host_calls);
        self.open += part.open;
        self.out_of_range += part.out_of_range;
        self.failed.add(part.failed);
    }
}

impl Failures {
    fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.first = self.first.into_iter().chain(other.first).min();
    }
}

impl Span {
    const EMPTY: Self = Self { start: i64::MAX, end: i64::MIN, calls: 0 };

    fn add(&mut self, other: &Self) {
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
        self.calls += other.calls;
    }
}

fn position(sorted: &TiSlice<ThreadIx, GlobalTid>, tid: GlobalTid) -> ThreadIx {
    sorted.binary_search(&tid).unwrap_or(ThreadIx::from(0))
}
