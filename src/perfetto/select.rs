//! Selects the slices to write.

use crate::analysis::Priced;
use crate::profile::ids::{CallId, OpId};
use crate::vocabulary::SiteIx;
use crate::waits::WaitId;
use std::cmp::Reverse;
use typed_index_collections::TiVec;

/// Time shown before and after a selected wait: enough for the launches around it.
const AROUND_NS: i64 = 200_000;

/// Most slices of a wait: its copy, the waiting call, and the part after the work is done.
const OF_WAIT: usize = 3;

pub struct Selection {
    pub ops: TiVec<OpId, bool>,
    pub calls: TiVec<CallId, bool>,
    pub waits: TiVec<WaitId, bool>,
}

impl Selection {
    /// All slices, if at most `most` and without filters. Else the stretches around waits: the longest of
    /// each site, then the second longest of each, and so on until `most` is reached.
    pub fn new(found: &Priced, most: usize) -> Self {
        let (ops, calls, waits) = (found.profile.ops.len(), found.profile.calls.len(), found.waits.len());
        let everything = ops + calls + OF_WAIT * waits <= most && found.filtered_out == 0;
        let mut selection = Self {
            ops: TiVec::from(vec![everything; ops]),
            calls: TiVec::from(vec![everything; calls]),
            waits: TiVec::from(vec![everything; waits]),
        };
        if !everything {
            let mut left = most;
            for wait in in_turn(found) {
                if !selection.add(found, wait, &mut left) {
                    break;
                }
            }
        }
        selection
    }

    /// Adds a wait and its surroundings, or the wait alone if these are too much; `false` where nothing fits.
    fn add(&mut self, found: &Priced, wait: WaitId, left: &mut usize) -> bool {
        let profile = &found.profile;
        let w = &found.waits[wait];
        let until = w.end.saturating_add(found.drains[wait]).saturating_add(AROUND_NS);
        let from = w.start.saturating_sub(AROUND_NS);
        // Both tables are sorted by start.
        let (all, past) = ((&profile.ops.times, &profile.calls.times), until.saturating_add(1));
        let mut ops = all.0.first_from(from)..all.0.first_from(past);
        let mut calls = all.1.first_from(from)..all.1.first_from(past);
        let unseen = |marks: &[bool]| marks.iter().filter(|keep| !**keep).count();
        let mut more =
            unseen(&self.ops.raw[ops.clone()]) + unseen(&self.calls.raw[calls.clone()]) + OF_WAIT + 1;
        if more > *left {
            let call = w.call.index();
            (ops, calls, more) = (0..0, call..call + 1, OF_WAIT + 2);
        }
        if more > *left {
            return false;
        }
        *left -= more;
        self.ops.raw[ops].fill(true);
        self.calls.raw[calls].fill(true);
        self.waits[wait] = true;
        // `op` may begin long before.
        if let Some(op) = w.awaited {
            self.ops[op] = true;
        }
        true
    }
}

/// The waits of all sites: the longest of each, then the second longest of each, …
fn in_turn(found: &Priced) -> Vec<WaitId> {
    let mut turns: Vec<(usize, SiteIx, WaitId)> = Vec::new();
    for (site, s) in found.sites.iter_enumerated() {
        let mut waits = s.bundle.waits.clone();
        waits.sort_by_key(|&w| (Reverse(found.waits[w].blocked), w));
        turns.extend(waits.into_iter().enumerate().map(|(turn, w)| (turn, site, w)));
    }
    turns.sort_unstable();
    turns.into_iter().map(|t| t.2).collect()
}
