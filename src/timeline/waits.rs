//! Waits and idle times of the drawing.

use super::Drawn;
use super::bins::Bins;
use super::windows::Touching;
use super::{Places, Source};
use crate::analysis::Priced;
use crate::model::timeline::{Packed, Waits};
use crate::profile::ids::StreamIx;
use crate::vocabulary::SiteIx;
use crate::waits::device::DeviceIx;
use crate::waits::held::Held;
use crate::waits::{Wait, WaitId};
use typed_index_collections::TiSlice;

/// Most stretches of other streams kept per wait.
const MOST_PARTS: usize = 16;

/// Device, start and end (ns) of the idle time after a wait.
pub(super) fn drain(found: &Priced, w: WaitId) -> Option<(DeviceIx, i64, i64)> {
    let length = found.drains[w];
    let op = found.waits[w].awaited?;
    let device = found.devices.of_op(&found.profile.ops, op);
    let ended = found.profile.ops.end(op);
    (length > 0).then(|| (device, ended, ended.saturating_add(length)))
}

/// Times in which a wait blocked: in its copy call, if that one blocked, then in its call.
pub fn blocked(found: &Priced, wait: &Wait) -> impl Iterator<Item = (i64, i64)> {
    let copy = (wait.start, wait.start.saturating_add(wait.copy_blocked));
    let call = (found.profile.calls.start(wait.call), wait.end);
    [(wait.copy_blocked > 0).then_some(copy), Some(call)].into_iter().flatten()
}

/// Waits in start order: all, or if over budget the waits that touch a window.
pub(super) fn pack(
    found: &Priced,
    wanted: &Drawn,
    places: &Places,
    windows: &[(i64, i64)],
    site_of: &TiSlice<WaitId, Option<SiteIx>>,
) -> Waits {
    let inside = |&w: &WaitId| found.waits[w].start <= wanted.to && found.waits[w].end >= wanted.from;
    let mut order: Vec<(WaitId, SiteIx)> =
        found.waits.keys().filter(inside).filter_map(|w| Some((w, site_of[w]?))).collect();
    order.sort_by_key(|&(w, _)| (found.waits[w].start, w));
    let total = order.len();
    if total > wanted.budget.waits {
        let mut touching = Touching::new(windows);
        order.retain(|&(w, _)| touching.touches(found.waits[w].start, found.waits[w].end));
        order.truncate(wanted.budget.waits);
    }
    let held = Held::new(&found.profile, &found.devices);
    let ops = &found.profile.ops;
    let mut packed = Packed::default();
    let mut previous = wanted.from;
    let lane = |source| places.get(&source).map_or(0, |&lane| lane as i64 + 1);
    for &(w, site) in &order {
        let wait = &found.waits[w];
        let start = wait.start.max(wanted.from);
        packed.push(start - previous);
        previous = start;
        packed.push(wait.end.saturating_sub(start));
        packed.push(found.profile.calls.start(wait.call).saturating_sub(start));
        packed.push(wait.copy_blocked);
        packed.push(site.index() as i64);
        packed.push(lane(Source::Thread(wait.thread)));
        packed.push(drain(found, w).map_or(0, |d| d.2 - d.1));
        let awaited = wait.awaited.map(|op| (op, ops.stream(op)));
        let drawn = awaited.filter(|&(_, own)| lane(Source::Stream(own)) > 0);
        let Some((op, own)) = drawn else {
            packed.push(0);
            continue;
        };
        packed.push(lane(Source::Stream(own)));
        packed.push_signed(ops.end(op).saturating_sub(start));
        packed.push(lane(Source::Idle(found.devices.of_stream[own])));
        let parts = elsewhere(found, places, &held, wait, (own, start));
        packed.push(parts.len() as i64);
        for (lane, from, to) in parts {
            packed.push(lane as i64 + 1);
            packed.push(from.saturating_sub(start));
            packed.push(to.saturating_sub(from));
        }
    }
    Waits { total, kept: order.len(), packed }
}

/// Lane, start and end of work on other streams than `own` that held a wait, late ranks' kernels included.
fn elsewhere(
    found: &Priced,
    places: &Places,
    held: &Held,
    wait: &Wait,
    (own, start): (StreamIx, i64),
) -> Vec<(usize, i64, i64)> {
    let ops = &found.profile.ops;
    let pending = held.pending(wait).into_iter().map(|(stream, op)| (stream, start, ops.end(op)));
    let path = held.path(wait);
    let late = path.iter().filter_map(|part| found.collectives.late(part.op));
    let late = late.map(|op| (ops.stream(op), ops.start(op).max(start), ops.end(op)));
    let path = path.iter().map(|part| (ops.stream(part.op), part.from, part.to));
    let others = pending.chain(path).chain(late).filter(|part| part.0 != own);
    let drawn = |(stream, from, to)| Some((*places.get(&Source::Stream(stream))?, from, to));
    let mut parts: Vec<_> = others.filter_map(drawn).collect();
    parts.sort_unstable();
    // Parts of one stream that touch or overlap are one.
    parts.dedup_by(|next, last| {
        let meets = next.0 == last.0 && next.1 <= last.2;
        last.2 = if meets { last.2.max(next.2) } else { last.2 };
        meets
    });
    parts.truncate(MOST_PARTS);
    parts
}

/// Time by class of one lane, in the order of [`crate::vocabulary::Class::ALL`].
pub(super) type ByClass = [Bins; 3];

/// Adds waits to their threads' bins, and idle times after them to their devices' bins.
pub(super) fn add_bins(
    found: &Priced,
    places: &Places,
    site_of: &TiSlice<WaitId, Option<SiteIx>>,
    bins: &mut [Option<ByClass>],
) {
    for (w, wait) in found.waits.iter_enumerated() {
        let Some(site) = site_of[w] else { continue };
        let class = found.sites[site].verdict.class as usize;
        let mut add = |source, start: i64, end: i64| {
            if let Some(bins) = places.get(&source).and_then(|&lane| bins[lane].as_mut()) {
                bins[class].add(start, end);
            }
        };
        for (start, end) in blocked(found, wait) {
            add(Source::Thread(wait.thread), start, end);
        }
        if let Some((device, start, end)) = drain(found, w) {
            add(Source::Idle(device), start, end);
        }
    }
}
