//! What a fix makes of the acts. The same changes that the simulation knows ([`Fix`]), one to one.
//!
//! ```text
//!                as recorded          Copy(pageable)  Sync
//!  delete                             Copy(pageable)
//!  gpu-wait                           Copy(pageable)  Record e  StreamWait e on each other stream
//!  non-blocking                       Copy(as it is)  likewise       staging from pageable memory stays
//!  pinned                             Copy(pinned)    likewise
//!  drop
//!  delay, in an iteration             Copy(pinned)    Record e  …  Sync(e) at the end
//!  delay, none known                  Copy(pinned)    Sync(e) Record e       e: that of the stretch before
//!  coalesce                           Copy(pinned)    … the last of a run keeps its Sync
//! ```
//! With a call goes host time around it. A host wait orders all streams; the changes that keep order replace it by an
//! event for which every other stream waits.

use super::acts::{Line, Placed, Role};
use crate::cost::overhead;
use crate::cost::simulate::Fix;
use crate::replay::plan::{Act, Target};
use crate::vocabulary::HostMemory;

/// The acts with some sites fixed, by their number in the line.
pub fn fixed(line: &Line, fixes: &[(usize, Fix)], in_iteration: bool) -> Vec<Act> {
    let (acts, at_end) = (Vec::with_capacity(line.placed.len()), Vec::new());
    let mut out =
        Variant { acts, at_end, events: line.events, streams: worked_on(line), traced: 0, in_iteration };
    for placed in &line.placed {
        let fix = fixes.iter().find(|f| Some(f.0) == placed.site).map_or(Fix::Keep, |f| f.1);
        out.place(placed, fix);
    }
    out.acts.extend(out.at_end);
    merged(out.acts)
}

/// Streams that something runs on.
fn worked_on(line: &Line) -> Vec<usize> {
    let mut streams: Vec<usize> = line.placed.iter().filter_map(|p| p.act.works_on()).collect();
    streams.sort_unstable();
    streams.dedup();
    streams
}

struct Variant {
    acts: Vec<Act>,
    /// Delayed waits.
    at_end: Vec<Act>,
    events: usize,
    streams: Vec<usize>,
    /// The profiler's part of the next host segment that goes with the call before it, which is gone.
    traced: i64,
    in_iteration: bool,
}

impl Variant {
    fn place(&mut self, placed: &Placed, fix: Fix) {
        match (&placed.act, fix) {
            (&Act::Host { ns }, _) => {
                let less = std::mem::take(&mut self.traced).min(overhead::most_of(ns));
                self.acts.push(Act::Host { ns: ns - less });
            }
            (act, Fix::Keep) => self.acts.push(act.clone()),
            (Act::Copy { .. }, _) => self.copy(placed, fix),
            (Act::Sync { .. }, _) => self.wait(placed, fix, true),
            (act, _) => self.acts.push(act.clone()),
        }
    }

    fn copy(&mut self, placed: &Placed, fix: Fix) {
        let Act::Copy { direction, bytes, memory, stream, blocking, site } = placed.act.clone() else {
            return;
        };
        let pinned = |memory| Act::Copy { direction, bytes, memory, stream, blocking: false, site };
        match fix {
            Fix::Drop => return self.without(placed),
            Fix::Delete | Fix::GpuWait | Fix::NonBlocking if placed.role == Role::Copy => {
                self.acts.push(Act::Copy { direction, bytes, memory, stream, blocking, site });
            }
            // Staging keeps the host, whatever is asked of the call.
            Fix::NonBlocking if memory != HostMemory::Pinned => {
                self.acts.push(Act::Copy { direction, bytes, memory, stream, blocking, site });
                return;
            }
            _ => self.acts.push(pinned(HostMemory::Pinned)),
        }
        if placed.role == Role::Wait {
            self.wait(placed, fix, false);
        }
    }

    /// The wait itself. `is_sync`: it is an act of its own, not part of a copy.
    fn wait(&mut self, placed: &Placed, fix: Fix, is_sync: bool) {
        match fix {
            Fix::Coalesce if placed.last => {
                let target = Target::Stream(placed.stream);
                let own = Act::Sync { target, site: placed.site };
                return self.acts.push(if is_sync { placed.act.clone() } else { own });
            }
            Fix::Delay => {
                let event = self.event();
                let record = Act::Record { event, stream: placed.stream };
                let sync = Act::Sync { target: Target::Event(event), site: placed.site };
                if self.in_iteration {
                    self.acts.push(record);
                    self.at_end.push(sync);
                } else {
                    self.acts.extend([sync, record]);
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

    fn event(&mut self) -> usize {
        self.events += 1;
        self.events - 1
    }

    /// A call that is gone, with the host time around it.
    fn without(&mut self, placed: &Placed) {
        if let Some(Act::Host { ns }) = self.acts.last_mut() {
            *ns -= placed.goes.around.min(*ns / overhead::AROUND_OF_GAPS);
        }
        self.traced = placed.goes.traced;
    }

    /// What comes next on other streams stays behind what `stream` holds.
    fn order(&mut self, stream: usize) {
        let others: Vec<usize> = self.streams.iter().copied().filter(|&s| s != stream).collect();
        if others.is_empty() {
            return;
        }
        let event = self.event();
        self.acts.push(Act::Record { event, stream });
        self.acts.extend(others.into_iter().map(|stream| Act::StreamWait { event, stream }));
    }
}

/// Host segments next to one another become one.
pub fn merged(acts: Vec<Act>) -> Vec<Act> {
    let mut out: Vec<Act> = Vec::with_capacity(acts.len());
    for act in acts {
        match (out.last_mut(), &act) {
            (Some(Act::Host { ns }), Act::Host { ns: more }) => *ns = ns.saturating_add(*more),
            _ => out.push(act),
        }
    }
    out
}
