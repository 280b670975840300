//! Waits and drains of the drawing.

use super::bins::Bins;
use super::encode::Packed;
use super::windows::Touching;
use super::{Waits, Wanted};
use crate::analysis::Analysed;
use crate::vocabulary::Class;
use crate::waits::Wait;

/// Lanes by what they are of; `None` for those left out.
pub(super) struct Places {
    pub of_stream: Vec<Option<u32>>,
    pub of_thread: Vec<Option<u32>>,
    pub idle_of_device: Vec<Option<u32>>,
}

/// The drain of wait `w`: the device and the stretch of time, where there is one.
pub(super) fn drain(found: &Analysed, w: usize) -> Option<(u32, i64, i64)> {
    let wait = &found.waits[w];
    let length = found.drains[w];
    let op = wait.awaited? as usize;
    let device = found.devices.of_stream[found.profile.ops.stream[op] as usize];
    let ended = found.profile.ops.end[op];
    (length > 0).then(|| (device, ended, ended.saturating_add(length)))
}

/// When a wait blocked: in its call, and in the call of its copy before, if that one did.
pub fn blocked(found: &Analysed, wait: &Wait) -> impl Iterator<Item = (i64, i64)> {
    let copy = (wait.start, wait.start.saturating_add(wait.copy_blocked));
    let call = (found.profile.calls.start[wait.call as usize], wait.end);
    [(wait.copy_blocked > 0).then_some(copy), Some(call)].into_iter().flatten()
}

/// Index of the site of each wait; `None` for those of no site.
pub(super) fn site_of(found: &Analysed) -> Vec<Option<u32>> {
    let mut site_of = vec![None; found.waits.len()];
    for (i, site) in (0u32..).zip(&found.sites) {
        site.bundle.waits.iter().for_each(|&w| site_of[w as usize] = Some(i));
    }
    site_of
}

/// Waits in start order: all, or those that touch a window where there are more than the budget has.
pub(super) fn pack(
    found: &Analysed,
    wanted: &Wanted,
    places: &Places,
    windows: &[(i64, i64)],
    site_of: &[Option<u32>],
) -> Waits {
    let (from, to) = (wanted.from, wanted.to);
    let mut order: Vec<usize> = (0..found.waits.len())
        .filter(|&w| found.waits[w].start <= to && found.waits[w].end >= from && site_of[w].is_some())
        .collect();
    order.sort_by_key(|&w| (found.waits[w].start, w));
    let total = order.len();
    if total > wanted.budget.waits {
        let mut touching = Touching::new(windows);
        order.retain(|&w| touching.touches(found.waits[w].start, found.waits[w].end));
        order.truncate(wanted.budget.waits);
    }
    let mut packed = Packed::default();
    let mut previous = from;
    for &w in &order {
        let start = found.waits[w].start.max(from);
        packed.push(start - previous);
        previous = start;
        one(&mut packed, found, places, w, start, site_of[w].unwrap_or(0));
    }
    Waits { total, kept: order.len(), packed }
}

fn one(packed: &mut Packed, found: &Analysed, places: &Places, w: usize, start: i64, site: u32) {
    let wait: &Wait = &found.waits[w];
    packed.push(wait.end.saturating_sub(start));
    packed.push(found.profile.calls.start[wait.call as usize].saturating_sub(start));
    packed.push(wait.copy_blocked);
    packed.push(i64::from(site));
    let lane = |lane: Option<u32>| lane.map_or(0, |l| i64::from(l) + 1);
    packed.push(lane(places.of_thread[wait.thread as usize]));
    packed.push(drain(found, w).map_or(0, |d| d.2 - d.1));
    let Some(op) = wait.awaited.map(|op| op as usize) else { return packed.push(0) };
    let stream = found.profile.ops.stream[op] as usize;
    let awaited = places.of_stream[stream];
    packed.push(lane(awaited));
    if awaited.is_some() {
        packed.push_signed(found.profile.ops.end[op].saturating_sub(start));
        packed.push(lane(places.idle_of_device[found.devices.of_stream[stream] as usize]));
    }
}

/// Place of a class in [`super::Lane::by_class`].
fn class_index(class: Class) -> usize {
    match class {
        Class::False => 0,
        Class::True => 1,
        Class::Unknown => 2,
    }
}

/// Time by class of one lane.
pub(super) type ByClass = [Bins; 3];

/// Adds waits to the bins of their threads and drains to those of their devices. `bins`: by lane.
pub(super) fn add_bins(
    found: &Analysed,
    places: &Places,
    site_of: &[Option<u32>],
    bins: &mut [Option<ByClass>],
) -> Vec<i64> {
    let mut drained = vec![0i64; bins.len()];
    for (w, wait) in found.waits.iter().enumerate() {
        let Some(site) = site_of[w] else { continue };
        let class = class_index(found.sites[site as usize].verdict.class);
        let mut add = |lane: Option<u32>, start: i64, end: i64| {
            if let Some(bins) = lane.and_then(|l| bins[l as usize].as_mut()) {
                bins[class].add(start, end);
            }
        };
        for (start, end) in blocked(found, wait) {
            add(places.of_thread[wait.thread as usize], start, end);
        }
        if let Some((device, start, end)) = drain(found, w) {
            let lane = places.idle_of_device[device as usize];
            add(lane, start, end);
            if let Some(lane) = lane {
                drained[lane as usize] = drained[lane as usize].saturating_add(end - start);
            }
        }
    }
    drained
}
