//! The recorded calls, lined up as the ops of one host thread.
//!
//! ```text
//!  calls      [launch k1]····[memcpyAsync][streamSync------]··[launch k2]
//!  ops        Gemm   Host(gap) Copy        Sync             Host(gap) Spin
//! ```
//! Threads are merged by time. Time between calls is the host's own, as are calls without an op (event
//! records, allocations). An op that follows one of another stream ([`super::order`]) waits for an event that
//! is recorded right after the other op.

use super::Scene;
use super::order::Order;
use super::record::Call;
use crate::analysis::Priced;
use crate::cost::overhead;
use crate::cost::simulate::follow::StreamWait;
use crate::cost::simulate::step::Role;
use crate::profile::ids::{CallId, OpId, StreamIx};
use crate::profile::ops::{OpKind, is_collective};
use crate::replay::gemm::Recognised as Product;
use crate::replay::plan::{HostTime, PlanEvent, PlanStream, PlannedSiteIx, ReplayOp, Target};
use crate::text;
use crate::vocabulary::{Change, Direction, SiteIx};
use crate::waits::api::{Blocking, classify};
use crate::waits::held::Held;
use crate::waits::{Covers, Wait, WaitId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use typed_index_collections::TiVec;

/// Host time that goes with a call, in ns: the library's own before it, the profiler's after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedHostTime {
    pub around: i64,
    pub traced: i64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    pub op: ReplayOp,
    pub site: Option<PlannedSiteIx>,
    pub role: Role,
    /// The next wait is of another site.
    pub last: bool,
    pub removed: RemovedHostTime,
    pub stream: PlanStream,
    /// The event after the needed op, if the wait is to wait for less.
    pub narrower: Option<PlanEvent>,
}

impl Placed {
    fn plain(op: ReplayOp) -> Self {
        let (site, role, removed) = (None, Role::None, RemovedHostTime::default());
        Self { op, site, role, last: false, removed, stream: 0.into(), narrower: None }
    }
}

#[derive(Default)]
pub struct Trace {
    /// In host order.
    pub placed: Vec<Placed>,
    /// Sites that wait in the stretch, by first wait.
    pub sites: TiVec<PlannedSiteIx, SiteIx>,
    pub waits: TiVec<PlannedSiteIx, u64>,
    pub streams: usize,
    pub events: usize,
    pub notes: Vec<String>,
}

impl Trace {
    pub fn new(scene: &Scene) -> Self {
        let mut builder = Builder::new(scene);
        let mut waits = std::mem::take(&mut builder.order.waits).into_iter().peekable();
        for call in &scene.recording.calls {
            let start = scene.found.profile.calls.start(call.call);
            while let Some(wait) = waits.next_if(|w| w.start < start) {
                builder.stream_wait(&wait);
            }
            builder.call(call);
        }
        waits.for_each(|wait| builder.stream_wait(&wait));
        builder.gap(scene.stretch.to_ns);
        builder.finish()
    }

    pub fn share_of(&self, found: &Priced, site: SiteIx) -> f64 {
        let all = found.sites[site].bundle.waits.len().max(1) as f64;
        self.number_of(site).map_or(0.0, |i| self.waits[i] as f64 / all)
    }

    pub fn number_of(&self, site: SiteIx) -> Option<PlannedSiteIx> {
        self.sites.position(|&own| own == site)
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
    scene: &'a Scene<'a>,
    /// Only of waits in the stretch.
    site_of: TiVec<WaitId, Option<SiteIx>>,
    copy_of: FxHashMap<CallId, WaitId>,
    launch_of: FxHashMap<OpId, usize>,
    order: Order,
    event_after: FxHashMap<OpId, PlanEvent>,
    streams: FxHashMap<StreamIx, PlanStream>,
    out: Trace,
    /// Parts that the plan leaves out or replaces, counted by reason.
    counts: BTreeMap<&'static str, u64>,
    /// End of the last call that has an op.
    at: i64,
    before: Option<CallId>,
    costs: overhead::Costs,
    /// Recorded length of all host segments, and the profiler's part of it.
    host: (i64, i64),
    own_memsets: FxHashSet<OpId>,
    /// Event recorded before the first op.
    first_event: Option<PlanEvent>,
    held: Held<'a>,
}

impl<'a> Builder<'a> {
    fn new(scene: &'a Scene<'a>) -> Self {
        let Scene { found, stretch, recording, .. } = scene;
        let mut site_of = found.site_of_waits();
        let mut copy_of = FxHashMap::default();
        for (w, wait) in found.waits.iter_enumerated() {
            if !stretch.holds(wait) {
                site_of[w] = None;
            } else if site_of[w].is_some() {
                copy_of.extend(wait.copy_call.map(|copy| (copy, w)));
            }
        }
        let mut builder = Self {
            scene,
            site_of,
            copy_of,
            launch_of: recording.launches.iter().map(|launch| launch.op).zip(0..).collect(),
            order: Order::new(scene),
            event_after: FxHashMap::default(),
            streams: FxHashMap::default(),
            out: Trace::default(),
            counts: BTreeMap::new(),
            at: stretch.from_ns,
            before: None,
            costs: overhead::Costs::new(&found.profile, found.prices.pace),
            host: (0, 0),
            own_memsets: FxHashSet::default(),
            first_event: None,
            held: Held::new(&found.profile, &found.devices),
        };
        builder.own_memsets = builder.memsets_of_products();
        builder.number_events();
        builder
    }

    fn see(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Numbers the events of all ops that another op or an event wait refers to.
    fn number_events(&mut self) {
        let mut after: BTreeSet<OpId> = self.order.followed().collect();
        for call in &self.scene.recording.calls {
            let Some((w, wait)) = self.wait_of(call.call) else { continue };
            if wait.blocking == Blocking::Event {
                after.extend(wait.reaches.or(wait.awaited));
            }
            after.extend(self.narrower(w, wait));
        }
        let here: FxHashSet<OpId> = self.scene.recording.ops().collect();
        self.event_after =
            after.into_iter().filter(|op| here.contains(op)).zip((0..).map(PlanEvent::from)).collect();
        self.out.events = self.event_after.len();
    }

    /// `None` unless the call is a wait of a site in the stretch.
    fn wait_of(&self, call: CallId) -> Option<(WaitId, &'a Wait)> {
        let waits = &self.scene.found.waits;
        let w = WaitId::from(waits.raw.binary_search_by_key(&call, |w| w.call).ok()?);
        self.site_of[w].map(|_| (w, &waits[w]))
    }

    /// Numbers the wait's site on first use.
    fn site(&mut self, wait: WaitId) -> Option<PlannedSiteIx> {
        let site = self.site_of[wait]?;
        Some(self.out.number_of(site).unwrap_or_else(|| {
            self.out.waits.push(0);
            self.out.sites.push_and_get_key(site)
        }))
    }

    fn stream(&mut self, stream: StreamIx) -> PlanStream {
        let next = PlanStream::from(self.streams.len());
        *self.streams.entry(stream).or_insert(next)
    }

    fn push(&mut self, op: ReplayOp) {
        self.out.placed.push(Placed::plain(op));
    }

    fn gap(&mut self, until: i64) {
        let ns = until - self.at;
        if ns > 0 {
            let profile = &self.scene.found.profile;
            let own = self.before.map_or(0, |call| self.costs.after(profile, call, false, ns, 0));
            self.host = (self.host.0.saturating_add(ns), self.host.1.saturating_add(own));
            self.push(ReplayOp::Host { ns: self.scene.host.replayed(ns, own) });
        }
    }

    /// cuBLAS clears a few bytes right before some products, and does so again in the replay.
    fn memsets_of_products(&self) -> FxHashSet<OpId> {
        let (ops, calls) = (&self.scene.found.profile.ops, &self.scene.found.profile.calls);
        let near = if calls.twins.is_empty() { RIGHT_BEFORE_NS } else { RIGHT_BEFORE_TRACED_NS };
        let mut own = FxHashSet::default();
        for [one, next] in self.scene.recording.calls.array_windows() {
            let (&[memset], Some(&product)) = (&one.ops[..], next.ops.first()) else { continue };
            let few = self.bytes_set(memset).is_some_and(|bytes| bytes <= FEW_BYTES);
            let close = calls.start(next.call) - calls.end(one.call) <= near;
            let found = self.launch_of.get(&product).map(|&i| self.scene.products.found[i]);
            let is_product = matches!(found, Some(Product::Product(_)));
            if few && close && is_product && ops.stream(memset) == ops.stream(product) {
                own.insert(memset);
            }
        }
        own
    }

    fn bytes_set(&self, memset: OpId) -> Option<u64> {
        self.scene.recording.details.memsets.get(&memset).copied()
    }

    fn call(&mut self, call: &Call) {
        let found = self.scene.found;
        let calls = &found.profile.calls;
        let own = self.wait_of(call.call);
        let wait = own.filter(|(_, wait)| self.scene.chosen.is_here(found, wait));
        if call.elsewhere || (wait.is_none() && own.is_some()) {
            self.see(OTHER_DEVICE);
        }
        if call.ops.is_empty() && wait.is_none() {
            return;
        }
        self.gap(calls.start(call.call));
        for &op in &call.ops {
            self.op(op, call.call, wait);
        }
        if let Some((w, wait)) = wait {
            self.wait(w, wait, !call.ops.is_empty());
        }
        self.at = self.at.max(calls.end(call.call));
        self.before = Some(call.call);
    }

    fn stream_wait(&mut self, wait: &StreamWait) {
        let Some(&event) = wait.after.and_then(|op| self.event_after.get(&op)) else { return };
        self.gap(wait.start);
        let stream = self.stream(wait.stream);
        self.push(ReplayOp::StreamWait { event, stream });
        self.at = self.at.max(wait.end);
    }

    fn op(&mut self, op: OpId, call: CallId, wait: Option<(WaitId, &Wait)>) {
        let ops = &self.scene.found.profile.ops;
        let stream = self.stream(ops.stream(op));
        if let Some(event) = self.order.follows.get(&op).and_then(|f| self.event_after.get(f)).copied() {
            self.push(ReplayOp::StreamWait { event, stream });
        }
        let ns = ops.length(op);
        match ops.kind(op) {
            OpKind::Kernel => self.kernel(op, ns, stream),
            OpKind::GraphLaunch => {
                self.see(GRAPHS);
                self.push(ReplayOp::Spin { ns, stream });
            }
            OpKind::Memset if self.own_memsets.contains(&op) => self.see(CUBLAS),
            OpKind::Memset => self.push(ReplayOp::Memset { bytes: self.bytes_set(op).unwrap_or(0), stream }),
            OpKind::Memcpy => self.copy(op, call, wait, stream),
        }
        if let Some(&event) = self.event_after.get(&op) {
            self.push(ReplayOp::Record { event, stream });
        }
    }

    fn kernel(&mut self, op: OpId, ns: i64, stream: PlanStream) {
        let Scene { recording, products, .. } = self.scene;
        if let Some(&i) = self.launch_of.get(&op) {
            match products.found[i] {
                Product::Product(gemm) => return self.push(ReplayOp::Gemm { gemm, stream }),
                Product::Part => return,
                Product::Unsupported(_) => self.see(UNSUPPORTED),
                Product::Other if is_collective(&recording.launches[i].name) => self.see(COLLECTIVES),
                Product::Other => {}
            }
        }
        self.push(ReplayOp::Spin { ns, stream });
    }

    fn copy(&mut self, op: OpId, call: CallId, wait: Option<(WaitId, &Wait)>, stream: PlanStream) {
        let profile = &self.scene.found.profile;
        let Some(copy) = profile.ops.copy(op) else { return };
        if matches!(copy.direction, Direction::HostToHost | Direction::Other) {
            return;
        }
        let by_itself =
            wait.filter(|(_, wait)| matches!(wait.blocking, Blocking::Copy | Blocking::CopyAsync));
        let owner = self.copy_of.get(&call).copied().or(by_itself.map(|(w, _)| w));
        let copies = owner.map_or(Role::None, |_| Role::Copy);
        let role = by_itself.map_or(copies, |_| Role::Wait);
        let site = owner.and_then(|w| self.site(w));
        let op = ReplayOp::Copy {
            direction: copy.direction,
            bytes: copy.bytes,
            memory: copy.host_memory,
            stream,
            blocking: classify(profile.calls.base_name(call)) == Some(Blocking::Copy),
            site,
        };
        let removed = owner.map_or(RemovedHostTime::default(), |_| self.removed(Blocking::CopyAsync));
        self.out.placed.push(Placed { site, role, removed, stream, ..Placed::plain(op) });
    }

    fn removed(&self, kind: Blocking) -> RemovedHostTime {
        let pace = self.costs.pace();
        let around = overhead::around_call(kind, pace);
        let traced = overhead::most_around(kind, pace) - around;
        let host = self.scene.host;
        RemovedHostTime { around: host.replayed(around, 0), traced: host.replayed(traced, traced) }
    }

    /// A copy that waits by itself is placed already.
    fn wait(&mut self, w: WaitId, wait: &Wait, has_ops: bool) {
        let site = self.site(w);
        if let Some(site) = site {
            self.out.waits[site] += 1;
        }
        let stream_of = match wait.covers {
            Covers::Stream(stream) => Some(stream),
            _ => wait.awaited.map(|op| self.scene.found.profile.ops.stream(op)),
        };
        let stream = stream_of.map_or(0.into(), |s| self.stream(s));
        let target = match wait.blocking {
            Blocking::Copy | Blocking::CopyAsync if has_ops => return,
            Blocking::Copy | Blocking::CopyAsync | Blocking::Memset | Blocking::Stream => {
                Target::Stream(stream)
            }
            Blocking::Event => Target::Event(self.event(wait.reaches.or(wait.awaited))),
            Blocking::Context => Target::Context,
            Blocking::Free | Blocking::HostFree | Blocking::HostAlloc => {
                self.see(FREES);
                Target::Context
            }
        };
        let op = ReplayOp::Sync { target, site };
        let (role, removed) = (Role::Wait, self.removed(wait.blocking));
        let narrower = self.narrower(w, wait).map(|op| self.event(Some(op)));
        self.out.placed.push(Placed { site, role, removed, stream, narrower, ..Placed::plain(op) });
    }

    /// The op that a wait needs, if its site is to wait for less.
    fn narrower(&self, w: WaitId, wait: &Wait) -> Option<OpId> {
        let (found, site) = (self.scene.found, self.site_of[w]?);
        let asked = self.scene.chosen.fix(found, site) == Change::Narrow;
        asked.then(|| self.held.narrower(wait))?.map(|less| less.op)
    }

    /// The event after an op; for an op before the stretch, an event at the very beginning.
    fn event(&mut self, after: Option<OpId>) -> PlanEvent {
        if let Some(&event) = after.and_then(|op| self.event_after.get(&op)) {
            return event;
        }
        *self.first_event.get_or_insert_with(|| {
            self.out.events += 1;
            PlanEvent::from(self.out.events - 1)
        })
    }

    fn finish(mut self) -> Trace {
        self.out.placed.retain(|p| p.op != ReplayOp::Host { ns: 0 });
        if let Some(event) = self.first_event {
            self.out.placed.insert(0, Placed::plain(ReplayOp::Record { event, stream: 0.into() }));
        }
        let mut next = None;
        for placed in self.out.placed.iter_mut().rev().filter(|p| p.role == Role::Wait) {
            placed.last = next != Some(placed.site);
            next = Some(placed.site);
        }
        self.out.streams = self.streams.len();
        self.out.notes = self.notes();
        self.out
    }

    fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> =
            self.counts.iter().map(|(what, n)| format!("{what} ({})", text::count(*n))).collect();
        let estimate = format!(
            "between calls the host works for {}, about {} of that is estimated to be the profiler's",
            text::duration(self.host.0),
            text::duration(self.host.1)
        );
        notes.push(match self.scene.host {
            HostTime::Recorded => format!("{estimate}: --host unprofiled leaves it out"),
            HostTime::Unprofiled => format!("{estimate} and left out"),
            HostTime::Scaled(by) => format!("{estimate}; it is replayed times {by}"),
        });
        notes
    }
}
