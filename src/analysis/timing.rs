//! Two captures of one program: sites and verdicts from the one with backtraces, times from the light one.
//!
//! ```text
//!  backtraces   step 7:  .item() 4 B   sync   .item() 4 B   upload 2 KiB       each call some 10 to 100 µs slower
//!                           │           │         │             │
//!  light        step 7:  copy+sync     sync    copy+sync     copy+sync         the true times
//! ```
//! Within a thread and an iteration, the n-th wait of an API, copy direction and size is the n-th of the other
//! capture. Threads are paired by their number of waits. A capture that goes on for more iterations repeats the last
//! one they share. Linear in the waits.

use super::Analysed;
use crate::cost::iterations::Iterations;
use crate::error::InputError;
use crate::profile::Profile;
use crate::report::Warning;
use crate::sites::Site;
use crate::text;
use crate::vocabulary::Direction;
use crate::waits::Wait;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Waits of both captures that must have their like in the other.
const MUST_MATCH: f64 = 0.9;

/// Where a wait stands in the program, whatever its times: thread by rank, iteration, API, copy.
type Position = (u32, usize, Arc<str>, Option<(Direction, u64)>);

/// The light capture as far as matching needs it.
pub struct Light<'a> {
    pub profile: &'a Profile,
    pub waits: &'a [Wait],
    pub iterations: Option<&'a Iterations>,
}

/// Sites of `found` with the waits of the light capture in place of their own, and a word on how many matched.
///
/// # Errors
/// [`InputError::OtherProgram`] where fewer than 90 % match.
pub fn match_waits(found: &Analysed, light: &Light) -> Result<(Vec<Site>, Warning), InputError> {
    let mut site_of = vec![usize::MAX; found.waits.len()];
    for (i, site) in found.sites.iter().enumerate() {
        site.bundle.waits.iter().for_each(|&w| site_of[w as usize] = i);
    }
    let from = Light { profile: &found.profile, waits: &found.waits, iterations: found.iterations.as_ref() };
    let common = iterations(&from).min(iterations(light));
    let mut known: FxHashMap<Position, Vec<usize>> = FxHashMap::default();
    for (position, &site) in positions(&from).into_iter().zip(&site_of) {
        known.entry(position).or_default().push(site);
    }
    let mut seen: FxHashMap<Position, usize> = FxHashMap::default();
    let mut waits: Vec<Vec<u32>> = vec![Vec::new(); found.sites.len()];
    let (mut matched, mut shared) = (0, 0);
    for (w, position) in (0u32..).zip(positions(light)) {
        let nth = seen.entry(position.clone()).or_default();
        let (thread, iteration, api, copy) = position;
        let beyond = iteration != OUTSIDE && common > 0 && iteration >= common;
        let like = (thread, if beyond { common - 1 } else { iteration }, api, copy);
        if let Some(&site) = known.get(&like).and_then(|sites| sites.get(*nth)) {
            matched += 1;
            shared += usize::from(!beyond);
            if let Some(list) = waits.get_mut(site) {
                list.push(w);
            }
        }
        *nth += 1;
    }
    let expected = positions(&from).iter().filter(|p| p.1 == OUTSIDE || common == 0 || p.1 < common).count();
    let enough = |part: usize, whole: usize| part as f64 >= MUST_MATCH * whole as f64;
    if !enough(matched, light.waits.len()) || !enough(shared, expected) {
        return Err(InputError::OtherProgram {
            path: found.profile.path().to_owned(),
            timing: light.profile.path().to_owned(),
            matched: if enough(shared, expected) { matched } else { shared },
            waits: if enough(shared, expected) { light.waits.len() } else { expected },
        });
    }
    Ok((with_waits(found, light, waits), said(found, light, matched)))
}

/// The sites, in the light capture's processes.
fn with_waits(found: &Analysed, light: &Light, waits: Vec<Vec<u32>>) -> Vec<Site> {
    let sites = found.sites.iter().zip(waits).filter(|(_, w)| !w.is_empty());
    sites
        .map(|(site, waits)| {
            let mut site = site.clone();
            site.bundle.pid = light.waits[waits[0] as usize].pid;
            site.bundle.waits = waits;
            site
        })
        .collect()
}

fn said(found: &Analysed, light: &Light, matched: usize) -> Warning {
    let message = format!(
        "times are from {}, sites from {}: {} of {} waits matched by order, call and copy size",
        light.profile.path().display(),
        found.profile.path().display(),
        text::count(matched as u64),
        text::count(light.waits.len() as u64),
    );
    Warning { code: "timing-matched", message, fix: String::new() }
}

/// Iteration of a wait that is in none.
const OUTSIDE: usize = usize::MAX;

fn iterations(capture: &Light) -> usize {
    capture.iterations.map_or(0, |i| i.spans.len())
}

fn positions(capture: &Light) -> Vec<Position> {
    let rank = thread_ranks(capture);
    let one = |w: &Wait| {
        let iteration = capture.iterations.and_then(|i| i.at(w.start)).unwrap_or(OUTSIDE);
        let api = capture.profile.calls.base_name(w.call).clone();
        (rank[w.thread as usize], iteration, api, w.copy.map(|c| (c.direction, c.bytes)))
    };
    capture.waits.iter().map(one).collect()
}

/// Threads numbered from the one with most waits down; of equals the one that waited first.
fn thread_ranks(capture: &Light) -> Vec<u32> {
    let threads = capture.profile.calls.threads.len();
    let mut counts = vec![(0usize, i64::MAX); threads];
    for wait in capture.waits {
        let (count, first) = &mut counts[wait.thread as usize];
        *count += 1;
        *first = (*first).min(wait.start);
    }
    let mut order: Vec<usize> = (0..threads).collect();
    order.sort_by_key(|&t| (std::cmp::Reverse(counts[t].0), counts[t].1, t));
    let mut ranks = vec![0; threads];
    for (rank, thread) in (0u32..).zip(order) {
        ranks[thread] = rank;
    }
    ranks
}
