//! Effects of fixes on the ops: the simulation's changes ([`Change`]), one to one.
//!
//! ```text
//!                as recorded          Copy(pageable)  Sync
//!  delete                             Copy(pageable)
//!  narrow                             Copy(pageable)  Sync(e)        e: recorded after the op that is needed
//!  gpu-wait                           Copy(pageable)  Record e  StreamWait e on each other stream
//!  non-blocking                       Copy(as it is)  likewise       staging from pageable memory stays
//!  pinned                             Copy(pinned)    likewise
//!  drop
//!  delay, in an iteration             Copy(pinned)    Record e  …  Sync(e) at the end
//!  delay, none known                  Copy(pinned)    Sync(e) Record e       e: that of the stretch before
//!  coalesce                           Copy(pinned)    … the last of a run keeps its Sync
//! ```
//! The host time around a removed call goes too. A host wait orders all streams; changes that keep this order
//! replace the wait by an event for which every other stream waits.

use super::ops::{Placed, Trace};
use crate::cost::overhead;
use crate::cost::simulate::run::most_of;
use crate::cost::simulate::step::Role;
use crate::replay::plan::{PlanEvent, PlanStream, PlannedSiteIx, ReplayOp, Target};
use crate::vocabulary::{Change, HostMemory};
use std::collections::BTreeSet;

/// The ops with some sites fixed, and the number of events used.
pub fn fixed(trace: &Trace, fixes: &[(PlannedSiteIx, Change)], in_iteration: bool) -> (Vec<ReplayOp>, usize) {
    let (ops, at_end) = (Vec::with_capacity(trace.placed.len()), Vec::new());
    let streams = trace.placed.iter().filter_map(|p| p.op.works_on()).collect();
    let mut out = Variant { ops, at_end, events: trace.events, streams, traced: 0, in_iteration };
    for placed in &trace.placed {
        let fix = fixes.iter().find(|f| Some(f.0) == placed.site).map_or(Change::Keep, |f| f.1);
        out.place(placed, fix);
    }
    out.ops.extend(out.at_end);
    (merged(out.ops), out.events)
}

struct Variant {
    ops: Vec<ReplayOp>,
    /// Delayed waits.
    at_end: Vec<ReplayOp>,
    events: usize,
    streams: BTreeSet<PlanStream>,
    /// The profiler's part of the next host segment that goes with a removed call before it.
    traced: i64,
    in_iteration: bool,
}

impl Variant {
    fn place(&mut self, placed: &Placed, fix: Change) {
        match (&placed.op, fix) {
            (&ReplayOp::Host { ns }, _) => {
                let less = std::mem::take(&mut self.traced).min(most_of(ns));
                self.ops.push(ReplayOp::Host { ns: ns - less });
            }
            (&ReplayOp::Sync { site, target }, Change::Narrow) => {
                let target = placed.narrower.map_or(target, Target::Event);
                self.ops.push(ReplayOp::Sync { target, site });
            }
            (ReplayOp::Copy { .. }, fix) if fix != Change::Keep && fix != Change::Narrow => {
                self.copy(placed, fix);
            }
            (ReplayOp::Sync { .. }, fix) if fix != Change::Keep => self.wait(placed, fix, true),
            (op, _) => self.ops.push(op.clone()),
        }
    }

    fn copy(&mut self, placed: &Placed, fix: Change) {
        let mut op = placed.op.clone();
        let ReplayOp::Copy { memory, blocking, .. } = &mut op else { return };
        // Staging blocks the host in any case.
        let staged = fix == Change::NonBlocking && *memory != HostMemory::Pinned;
        match fix {
            Change::Drop => return self.without(placed),
            Change::Delete | Change::GpuWait | Change::NonBlocking if placed.role == Role::Copy => {}
            _ if staged => return self.ops.push(op),
            _ => (*memory, *blocking) = (HostMemory::Pinned, false),
        }
        self.ops.push(op);
        if placed.role == Role::Wait {
            self.wait(placed, fix, false);
        }
    }

    /// `is_sync`: the wait is an op of its own, not part of a copy.
    fn wait(&mut self, placed: &Placed, fix: Change, is_sync: bool) {
        match fix {
            Change::Coalesce if placed.last => {
                let target = Target::Stream(placed.stream);
                let own = ReplayOp::Sync { target, site: placed.site };
                return self.ops.push(if is_sync { placed.op.clone() } else { own });
            }
            Change::Delay => {
                let event = self.event();
                let record = ReplayOp::Record { event, stream: placed.stream };
                let sync = ReplayOp::Sync { target: Target::Event(event), site: placed.site };
                if self.in_iteration {
                    self.ops.push(record);
                    self.at_end.push(sync);
                } else {
                    self.ops.extend([sync, record]);
                }
                return;
            }
            _ => {}
        }
        if is_sync {
            self.without(placed);
        }
        if fix.keeps_order() {
            self.order(placed.stream);
        }
    }

    fn event(&mut self) -> PlanEvent {
        self.events += 1;
        PlanEvent::from(self.events - 1)
    }

    fn without(&mut self, placed: &Placed) {
        if let Some(ReplayOp::Host { ns }) = self.ops.last_mut() {
            *ns -= placed.removed.around.min(*ns / overhead::AROUND_OF_GAPS);
        }
        self.traced = placed.removed.traced;
    }

    /// Later work on other streams stays behind `stream`.
    fn order(&mut self, stream: PlanStream) {
        let others: Vec<PlanStream> = self.streams.iter().copied().filter(|&s| s != stream).collect();
        if others.is_empty() {
            return;
        }
        let event = self.event();
        self.ops.push(ReplayOp::Record { event, stream });
        self.ops.extend(others.into_iter().map(|stream| ReplayOp::StreamWait { event, stream }));
    }
}

fn merged(ops: Vec<ReplayOp>) -> Vec<ReplayOp> {
    let mut out: Vec<ReplayOp> = Vec::with_capacity(ops.len());
    for op in ops {
        match (out.last_mut(), &op) {
            (Some(ReplayOp::Host { ns }), ReplayOp::Host { ns: more }) => *ns = ns.saturating_add(*more),
            _ => out.push(op),
        }
    }
    out
}
