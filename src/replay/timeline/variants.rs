//! What a fix makes of the acts. The same changes that the simulation knows ([`Fix`]), one to one.
//!
//! ```text
//!                as recorded          Copy(pageable)  Sync
//!  delete                             Copy(pageable)
//!  non-blocking                       Copy(as it is)                 staging from pageable memory stays
//!  pinned                             Copy(pinned)
//!  drop
//!  delay, in an iteration             Copy(pinned)    Record e  …  Sync(e) at the end
//!  delay, none known                  Copy(pinned)    Sync(e) Record e       e: that of the stretch before
//!  coalesce                           Copy(pinned)    … the last of a run keeps its Sync
//! ```

use super::acts::{Line, Placed, Role};
use crate::cost::simulate::Fix;
use crate::replay::plan::{Act, Target};
use crate::vocabulary::HostMemory;

/// The acts with some sites fixed, by their number in the line.
pub fn fixed(line: &Line, fixes: &[(usize, Fix)], in_iteration: bool) -> Vec<Act> {
    let mut out = Variant { acts: Vec::new(), at_end: Vec::new(), events: line.events, in_iteration };
    for placed in &line.placed {
        let fix = fixes.iter().find(|f| Some(f.0) == placed.site).map_or(Fix::Keep, |f| f.1);
        out.place(placed, fix);
    }
    out.acts.extend(out.at_end);
    merged(out.acts)
}

struct Variant {
    acts: Vec<Act>,
    /// Delayed waits.
    at_end: Vec<Act>,
    events: usize,
    in_iteration: bool,
}

impl Variant {
    fn place(&mut self, placed: &Placed, fix: Fix) {
        match (&placed.act, fix) {
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
            Fix::Drop => return,
            Fix::Delete | Fix::NonBlocking if placed.role == Role::Copy => {
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
                self.acts.push(if is_sync { placed.act.clone() } else { own });
            }
            Fix::Delay => {
                let event = self.events;
                self.events += 1;
                let record = Act::Record { event, stream: placed.stream };
                let sync = Act::Sync { target: Target::Event(event), site: placed.site };
                if self.in_iteration {
                    self.acts.push(record);
                    self.at_end.push(sync);
                } else {
                    self.acts.extend([sync, record]);
                }
            }
            _ => {}
        }
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
