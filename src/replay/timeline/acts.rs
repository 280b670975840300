//! The recorded calls, lined up as the acts of one host thread.
//!
//! ```text
//!  calls      [launch k1]····[memcpyAsync][streamSync------]··[launch k2]
//!  acts       Gemm   Host(gap) Copy        Sync             Host(gap) Spin
//! ```
//! Threads are merged by time. The time between calls is the host's own; calls that have no act of their own (event
//! records, allocations) count as such. What follows an op of another stream ([`super::order`]) waits for an event that
//! is recorded right after that op.

use super::order::{Order, StreamWait};
use super::record::{Call, Recording};
use super::stretch::{Chosen, Window};
use crate::analysis::Analysed;
use crate::cost::overhead;
use crate::profile::ops::OpKind;
use crate::replay::gemm::{Found as Product, Products};
use crate::replay::plan::{Act, HostTime, Target};
use crate::text;
use crate::vocabulary::Direction;
use crate::waits::api::{Blocking, classify};
use crate::waits::{Covers, Wait};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// What an act is to the wait of its site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Other,
    /// The copy before the synchronisation.
    Copy,
    /// The synchronisation, or the copy that waits by itself.
    Wait,
}

/// Host time that goes with a call, in ns: the library's own before it, the profiler's after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Goes {
    pub around: i64,
    pub traced: i64,
}

/// An act with what a fix needs to know of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    pub act: Act,
    /// Index into [`Line::sites`].
    pub site: Option<usize>,
    pub role: Role,
    /// Of a wait: the next wait is not of its site.
    pub last: bool,
    /// Of a wait and its copy.
    pub goes: Goes,
    /// Stream that a wait is for.
    pub stream: usize,
}

/// The stretch as recorded.
pub struct Line {
    pub placed: Vec<Placed>,
    /// Indices into [`Analysed::sites`] of the sites that wait in the stretch, by first wait.
    pub sites: Vec<usize>,
    /// Waits of each.
    pub waits: Vec<u64>,
    pub streams: usize,
    pub events: usize,
    pub notes: Vec<String>,
}

impl Line {
    pub fn new(
        found: &Analysed,
        chosen: &Chosen,
        recording: &Recording,
        products: &Products,
        window: &Window,
        host: HostTime,
    ) -> Self {
        let mut builder = Builder::new(found, chosen, recording, products, window, host);
        let waits = std::mem::take(&mut builder.order.waits);
        let mut waits = waits.iter().peekable();
        for call in &recording.calls {
            let start = found.profile.calls.start[call.call as usize];
            while let Some(wait) = waits.next_if(|w| w.start < start) {
                builder.stream_wait(wait);
            }
            builder.call(call);
        }
        waits.for_each(|wait| builder.stream_wait(wait));
        builder.gap(window.to);
        builder.finish()
    }

    /// Share of a site's waits that are in the stretch.
    pub fn share_of(&self, found: &Analysed, site: usize) -> f64 {
        let all = found.sites[site].bundle.waits.len().max(1) as f64;
        self.sites.iter().position(|&s| s == site).map_or(0.0, |i| self.waits[i] as f64 / all)
    }
}

/// What the plan leaves out or replaces, counted by reason.
#[derive(Default)]
struct Counts(BTreeMap<&'static str, u64>);

impl Counts {
    fn see(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }
}

const GRAPHS: &str = "CUDA graph launches are replayed as one kernel of their recorded length";
const COLLECTIVES: &str = "collective kernels keep their recorded length: they wait for other GPUs";
const OTHER_DEVICE: &str = "operations on other GPUs are left out; waits for them are host time";
const UNSUPPORTED: &str = "matrix products of types that are not replayed (8-bit, integer, complex) are kernels of their recorded length";
const CUBLAS: &str =
    "memsets of a few bytes before matrix products are left to cuBLAS, which makes them itself";
const FREES: &str =
    "calls that free or allocate memory and wait are replayed as synchronisations of the device";

/// Bytes that cuBLAS clears before a product (a counter: 4), and how soon after that it launches the product.
const FEW_BYTES: u64 = 16;
const RIGHT_BEFORE_NS: i64 = 5_000;
const RIGHT_BEFORE_TRACED_NS: i64 = 60_000;

struct Builder<'a> {
    found: &'a Analysed,
    chosen: &'a Chosen,
    products: FxHashMap<u32, Product>,
    collective: FxHashMap<u32, bool>,
    recording: &'a Recording,
    host: HostTime,
    /// By wait: index into the analysis' sites.
    site_of: FxHashMap<u32, usize>,
    /// By copy call: the wait that it belongs to.
    copy_of: FxHashMap<u32, u32>,
    order: Order,
    /// Event recorded after an op.
    event_after: FxHashMap<u32, usize>,
    /// Streams of the export by their number in the plan.
    streams: FxHashMap<u32, usize>,
    out: Line,
    counts: Counts,
    /// End of the last call that has an act.
    at: i64,
    /// The call before, if one has been.
    before: Option<u32>,
    costs: overhead::Costs,
    /// Host segments: their act, length, and the profiler's part of it.
    gaps: Vec<(usize, i64, i64)>,
    /// Memsets that cuBLAS makes itself before a product.
    own_memsets: FxHashSet<u32>,
    /// Event recorded before the first act.
    first_event: Option<usize>,
}

impl<'a> Builder<'a> {
    fn new(
        found: &'a Analysed,
        chosen: &'a Chosen,
        recording: &'a Recording,
        products: &Products,
        window: &Window,
        host: HostTime,
    ) -> Self {
        let mut site_of = FxHashMap::default();
        let mut copy_of = FxHashMap::default();
        for (i, site) in found.sites.iter().enumerate() {
            for &w in site.bundle.waits.iter().filter(|&&w| window.holds(&found.waits[w as usize])) {
                site_of.insert(w, i);
                copy_of.extend(found.waits[w as usize].copy_call.map(|c| (c, w)));
            }
        }
        let launches = recording.launches.iter().zip(&products.found);
        let collective = recording.launches.iter().map(|(op, l)| (*op, l.name.starts_with("nccl")));
        let mut builder = Self {
            found,
            chosen,
            products: launches.map(|((op, _), found)| (*op, *found)).collect(),
            collective: collective.collect(),
            recording,
            host,
            site_of,
            copy_of,
            order: Order::new(found, chosen, window, &ops_of(recording)),
            event_after: FxHashMap::default(),
            streams: FxHashMap::default(),
            out: Line {
                placed: Vec::new(),
                sites: Vec::new(),
                waits: Vec::new(),
                streams: 0,
                events: 0,
                notes: Vec::new(),
            },
            counts: Counts::default(),
            at: window.from,
            before: None,
            costs: overhead::Costs::new(&found.profile, found.prices.pace),
            gaps: Vec::new(),
            own_memsets: FxHashSet::default(),
            first_event: None,
        };
        builder.own_memsets = builder.memsets_of_products();
        builder.number_events();
        builder
    }

    /// Gives each op that another one or an event wait refers to an event of its own.
    fn number_events(&mut self) {
        let mut after: Vec<u32> = self.order.followed().collect();
        for call in &self.recording.calls {
            if let Some(wait) = self.wait_of(call.call)
                && wait.blocking == Blocking::Event
            {
                after.extend(wait.reaches.or(wait.awaited));
            }
        }
        after.sort_unstable();
        after.dedup();
        let here: FxHashSet<u32> = ops_of(self.recording).into_iter().collect();
        for op in after.into_iter().filter(|op| here.contains(op)) {
            self.event_after.insert(op, self.out.events);
            self.out.events += 1;
        }
    }

    fn wait_of(&self, call: u32) -> Option<&'a Wait> {
        let waits = &self.found.waits;
        let i = waits.binary_search_by_key(&call, |w| w.call).ok()?;
        self.site_of.contains_key(&(i as u32)).then(|| &waits[i])
    }

    /// The site of a wait by its number in the plan.
    fn site(&mut self, wait: u32) -> Option<usize> {
        let site = *self.site_of.get(&wait)?;
        let known = self.out.sites.iter().position(|&s| s == site);
        Some(known.unwrap_or_else(|| {
            self.out.sites.push(site);
            self.out.waits.push(0);
            self.out.sites.len() - 1
        }))
    }

    fn stream(&mut self, stream: u32) -> usize {
        let next = self.streams.len();
        *self.streams.entry(stream).or_insert(next)
    }

    fn push(&mut self, act: Act) {
        let (site, role) = (None, Role::Other);
        self.out.placed.push(Placed { act, site, role, last: false, goes: Goes::default(), stream: 0 });
    }

    /// Host time up to `until`.
    fn gap(&mut self, until: i64) {
        let ns = until - self.at;
        if ns > 0 {
            let calls = &self.found.profile.calls;
            let own = self.before.map_or(0, |call| {
                let of_call = self.costs.of_call(classify(calls.base_name(call)));
                self.costs.in_gap(calls.thread[call as usize] as usize, of_call, ns)
            });
            self.gaps.push((self.out.placed.len(), ns, own));
            self.push(Act::Host { ns });
        }
    }

    /// Sets the host segments to the length asked for. Returns what they were and how much of it the profiler's.
    fn set_host(&mut self) -> (i64, i64) {
        let sum =
            |part: fn(&(usize, i64, i64)) -> i64| self.gaps.iter().map(part).fold(0, i64::saturating_add);
        for &(act, ns, own) in &self.gaps {
            let ns = match self.host {
                HostTime::Recorded => ns,
                HostTime::Unprofiled => ns - own,
                HostTime::Scaled(by) => (ns as f64 * by) as i64,
            };
            self.out.placed[act].act = Act::Host { ns };
        }
        (sum(|g| g.1), sum(|g| g.2))
    }

    /// cuBLAS clears a few bytes right before some products, and will do so here.
    fn memsets_of_products(&self) -> FxHashSet<u32> {
        let ops = &self.found.profile.ops;
        let calls = &self.found.profile.calls;
        let near = if calls.twins.is_empty() { RIGHT_BEFORE_NS } else { RIGHT_BEFORE_TRACED_NS };
        let mut own = FxHashSet::default();
        for pair in self.recording.calls.windows(2) {
            let (&[memset], Some(&product)) = (&pair[0].ops[..], pair[1].ops.first()) else { continue };
            let few = self.recording.memsets.get(&memset).is_some_and(|bytes| *bytes <= FEW_BYTES);
            let close = calls.start[pair[1].call as usize] - calls.end[pair[0].call as usize] <= near;
            let is_product = matches!(self.products.get(&product), Some(Product::Product(_)));
            if few && close && is_product && ops.stream[memset as usize] == ops.stream[product as usize] {
                own.insert(memset);
            }
        }
        own
    }

    fn call(&mut self, call: &Call) {
        let calls = &self.found.profile.calls;
        let c = call.call as usize;
        let wait = self.wait_of(call.call).filter(|w| self.chosen.is_here(self.found, w));
        if call.elsewhere || (wait.is_none() && self.wait_of(call.call).is_some()) {
            self.counts.see(OTHER_DEVICE);
        }
        if call.ops.is_empty() && wait.is_none() {
            return;
        }
        self.gap(calls.start[c]);
        let blocking = classify(calls.base_name(call.call)) == Some(Blocking::Copy);
        for &op in &call.ops {
            self.op(op, call.call, wait, blocking);
        }
        if let Some(wait) = wait {
            self.wait(wait, !call.ops.is_empty());
        }
        self.at = self.at.max(calls.end[c]);
        self.before = Some(call.call);
    }

    /// A recorded wait of a stream.
    fn stream_wait(&mut self, wait: &StreamWait) {
        let Some(&event) = self.event_after.get(&wait.after) else { return };
        self.gap(wait.start);
        let stream = self.stream(wait.stream);
        self.push(Act::StreamWait { event, stream });
        self.at = self.at.max(wait.end);
    }

    fn op(&mut self, op: u32, call: u32, wait: Option<&Wait>, blocking: bool) {
        let ops = &self.found.profile.ops;
        let stream = self.stream(ops.stream[op as usize]);
        if let Some(event) = self.order.follows.get(&op).and_then(|f| self.event_after.get(f)).copied() {
            self.push(Act::StreamWait { event, stream });
        }
        let ns = ops.end[op as usize] - ops.start[op as usize];
        match ops.kind[op as usize] {
            OpKind::Kernel => self.kernel(op, ns, stream),
            OpKind::GraphLaunch => {
                self.counts.see(GRAPHS);
                self.push(Act::Spin { ns, stream, place: None });
            }
            OpKind::Memset if self.own_memsets.contains(&op) => self.counts.see(CUBLAS),
            OpKind::Memset => {
                let bytes = self.recording.memsets.get(&op).copied().unwrap_or(0);
                self.push(Act::Memset { bytes, stream });
            }
            OpKind::Memcpy => self.copy(op, call, wait, blocking, stream),
        }
        if let Some(&event) = self.event_after.get(&op) {
            self.push(Act::Record { event, stream });
        }
    }

    fn kernel(&mut self, op: u32, ns: i64, stream: usize) {
        match self.products.get(&op) {
            Some(Product::Product(gemm)) => return self.push(Act::Gemm { gemm: *gemm, stream }),
            Some(Product::Part) => return,
            Some(Product::Unsupported(_)) => self.counts.see(UNSUPPORTED),
            _ if self.collective.get(&op) == Some(&true) => self.counts.see(COLLECTIVES),
            _ => {}
        }
        let place = self.recording.footprints.get(&op).copied();
        self.push(Act::Spin { ns, stream, place });
    }

    fn copy(&mut self, op: u32, call: u32, wait: Option<&Wait>, blocking: bool, stream: usize) {
        let Some(copy) = self.found.profile.ops.copy(op) else { return };
        if matches!(copy.direction, Direction::HostToHost | Direction::Other) {
            return;
        }
        let by_itself = wait.filter(|w| matches!(w.blocking, Blocking::Copy | Blocking::CopyAsync));
        let owner = self.copy_of.get(&call).copied().or_else(|| self.index_of(by_itself?));
        let role = match owner {
            Some(_) if by_itself.is_some() => Role::Wait,
            Some(_) => Role::Copy,
            None => Role::Other,
        };
        let site = owner.and_then(|w| self.site(w));
        let act = Act::Copy {
            direction: copy.direction,
            bytes: copy.bytes,
            memory: copy.host_memory,
            stream,
            blocking,
            site,
        };
        let goes = owner.map_or(Goes::default(), |_| self.goes(Blocking::CopyAsync));
        self.out.placed.push(Placed { act, site, role, last: false, goes, stream });
    }

    /// What goes with a call, as replayed.
    fn goes(&self, kind: Blocking) -> Goes {
        let pace = self.costs.pace();
        let around = overhead::around_call(kind, pace);
        let traced = overhead::most_around(kind, pace) - around;
        match self.host {
            HostTime::Recorded => Goes { around, traced },
            HostTime::Unprofiled => Goes { around, traced: 0 },
            HostTime::Scaled(by) => {
                let scaled = |ns: i64| (ns as f64 * by) as i64;
                Goes { around: scaled(around), traced: scaled(traced) }
            }
        }
    }

    fn index_of(&self, wait: &Wait) -> Option<u32> {
        self.found.waits.binary_search_by_key(&wait.call, |w| w.call).ok().map(|i| i as u32)
    }

    /// A wait; the copy that waits by itself is placed already.
    fn wait(&mut self, wait: &Wait, has_ops: bool) {
        let site = self.index_of(wait).and_then(|w| self.site(w));
        if let Some(site) = site {
            self.out.waits[site] += 1;
        }
        let awaited = wait.awaited.map(|op| self.found.profile.ops.stream[op as usize]);
        let stream_of = match wait.covers {
            Covers::Stream(stream) => Some(stream),
            _ => awaited,
        };
        let stream = stream_of.map_or(0, |s| self.stream(s));
        let target = match wait.blocking {
            Blocking::Copy | Blocking::CopyAsync if has_ops => return,
            Blocking::Copy | Blocking::CopyAsync | Blocking::Memset | Blocking::Stream => {
                Target::Stream(stream)
            }
            Blocking::Event => Target::Event(self.event(wait.reaches.or(wait.awaited))),
            Blocking::Context => Target::Context,
            Blocking::Free | Blocking::HostFree | Blocking::HostAlloc => {
                self.counts.see(FREES);
                Target::Context
            }
        };
        let act = Act::Sync { target, site };
        let (role, goes) = (Role::Wait, self.goes(wait.blocking));
        self.out.placed.push(Placed { act, site, role, last: false, goes, stream });
    }

    /// The event after an op; for one before the stretch an event at its very beginning.
    fn event(&mut self, after: Option<u32>) -> usize {
        if let Some(&event) = after.and_then(|op| self.event_after.get(&op)) {
            return event;
        }
        *self.first_event.get_or_insert_with(|| {
            self.out.events += 1;
            self.out.events - 1
        })
    }

    fn finish(mut self) -> Line {
        let (host, profiler) = self.set_host();
        self.out.placed.retain(|p| p.act != Act::Host { ns: 0 });
        if let Some(event) = self.first_event {
            let act = Act::Record { event, stream: 0 };
            let (site, role) = (None, Role::Other);
            let first = Placed { act, site, role, last: false, goes: Goes::default(), stream: 0 };
            self.out.placed.insert(0, first);
        }
        let mut next = None;
        for placed in self.out.placed.iter_mut().rev().filter(|p| p.role == Role::Wait) {
            placed.last = next != Some(placed.site);
            next = Some(placed.site);
        }
        self.out.streams = self.streams.len();
        self.out.notes = self.notes(host, profiler);
        self.out
    }

    fn notes(&self, host: i64, profiler: i64) -> Vec<String> {
        let mut notes: Vec<String> =
            self.counts.0.iter().map(|(what, n)| format!("{what} ({})", text::count(*n))).collect();
        let estimate = format!(
            "between calls the host works for {}, about {} of that is estimated to be the profiler's",
            text::duration(host),
            text::duration(profiler)
        );
        notes.push(match self.host {
            HostTime::Recorded => format!("{estimate}: --host unprofiled leaves it out"),
            HostTime::Unprofiled => format!("{estimate} and left out"),
            HostTime::Scaled(by) => format!("{estimate}; it is replayed times {by}"),
        });
        notes
    }
}

fn ops_of(recording: &Recording) -> Vec<u32> {
    recording.calls.iter().flat_map(|c| c.ops.iter().copied()).collect()
}
