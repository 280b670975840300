//! Two captures of one program: sites and verdicts from the one with backtraces, times from the light one.
//!
//! ```text
//!  backtraces   step 7:  .item() 4 B   sync   .item() 4 B   upload 2 KiB       each call some 10 to 100 µs slower
//!                           │           │         │             │
//!  light        step 7:  copy+sync     sync    copy+sync     copy+sync         the true times
//! ```
//! Within a thread and an iteration, the n-th wait of an API, copy direction and size is the n-th of the other
//! capture. Threads are paired by their number of waits. A capture that goes on for more iterations repeats the last
//! one they share. Loops that had to be found may begin elsewhere in the other capture: there the n-th of the thread
//! is tried first. Where batches differ in length and come in another order, sizes match nowhere: last, a copy whose size differs
//! from iteration to iteration is like any that does. Of another batch size, all sizes would differ, and none within a capture.
//! Linear in the waits.

use super::CaptureAnalysis;
use crate::error::InputError;
use crate::model::{Code, Warning};
use crate::profile::ids::ThreadIx;
use crate::text;
use crate::verdict::site::{Site, part_keys};
use crate::vocabulary::{Direction, SiteIx};
use crate::waits::{Wait, WaitId};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use typed_index_collections::TiVec;

/// Where the times of exports come from.
#[derive(Clone, Debug, Default)]
pub enum Timing {
    /// From the exports themselves.
    #[default]
    Own,
    /// From this capture, which was asked for: that it is of another program is an error.
    From(PathBuf),
    /// From light captures that lie beside exports: (export, light capture). One that does not fit is left, with a
    /// warning.
    Beside(Vec<(PathBuf, PathBuf)>),
}

impl Timing {
    /// The capture that an export's times come from, unless it is the export itself.
    pub fn of(&self, export: &Path) -> Option<&Path> {
        match self {
            Self::Own => None,
            Self::From(light) => Some(light),
            Self::Beside(pairs) => {
                pairs.iter().find(|(of, _)| of == export).map(|(_, light)| light.as_path())
            }
        }
    }
}

/// That times of `export` are its own, although a light capture lies beside it.
pub fn unused(export: &Path, reason: &str) -> Warning {
    let message =
        format!("times are from {} itself, not from the light capture beside it: {reason}", export.display());
    Warning::new(Code::TimingUnused, message, "")
}

/// Waits of both captures that must have their like in the other.
const MUST_MATCH: f64 = 0.9;

/// Where a wait stands in the program, whatever its times: thread by rank, iteration, API, copy; its size, unless that varies.
type Position = (usize, Option<usize>, Arc<str>, Option<(Direction, Option<u64>)>);

/// What a position says of a wait.
#[derive(Clone, Copy)]
struct By {
    /// The iteration, else waits are counted in the whole capture.
    iterations: bool,
    /// The size of each copy, also of one that differs from iteration to iteration.
    sizes: bool,
}

/// Sites of `found` with the waits of the light capture in place of their own, and a word on how many matched. Those that wait in
/// both captures are left to `found` too: a site has one index in both.
///
/// # Errors
/// [`InputError::OtherProgram`] where fewer than 90 % match.
pub fn match_waits(
    found: &mut CaptureAnalysis,
    light: &CaptureAnalysis,
) -> Result<(TiVec<SiteIx, Site>, Warning), InputError> {
    let marked =
        [&*found, light].iter().all(|c| c.iterations.as_ref().is_none_or(|i| i.confidence.is_none()));
    let by = |iterations, sizes| match_by(found, light, By { iterations, sizes });
    let others = || by(!marked, true).or_else(|_| by(true, false));
    let (mut sites, said) = by(marked, true).or_else(|error| others().map_err(|_| error))?;
    let mut own = std::mem::take(&mut found.sites).into_iter();
    found.sites = sites.iter().filter_map(|s| own.next().filter(|_| !s.bundle.waits.is_empty())).collect();
    sites.retain(|site| !site.bundle.waits.is_empty());
    part_keys(&mut sites);
    Ok((sites, said))
}

/// The same by positions that say so much.
fn match_by(
    found: &CaptureAnalysis,
    light: &CaptureAnalysis,
    by: By,
) -> Result<(TiVec<SiteIx, Site>, Warning), InputError> {
    let path_of = path_of_waits(found);
    let mut known: FxHashMap<Position, Vec<Option<PathIx>>> = FxHashMap::default();
    for (position, &path) in positions(found, by).into_iter().zip(&path_of) {
        known.entry(position).or_default().push(path);
    }
    let mut seen: FxHashMap<Position, usize> = FxHashMap::default();
    let like = |position: Position| {
        let nth = seen.entry(position.clone()).or_default();
        *nth += 1;
        known.get(&position).and_then(|paths| paths.get(*nth - 1)).copied()
    };
    let mut of_waits: TiVec<WaitId, Like> = positions(light, by).into_iter().map(like).collect();
    let shared = of_waits.iter().flatten().count();
    repeat(light, &mut of_waits);
    let matched = of_waits.iter().flatten().count();
    let mut waits: FxHashMap<PathIx, Vec<WaitId>> = FxHashMap::default();
    for (w, like) in of_waits.iter_enumerated() {
        if let Some(Some(path)) = like {
            waits.entry(*path).or_default().push(w);
        }
    }
    // What comes after the light capture's last iteration has no like there.
    let count = light.iterations.as_ref().map_or(usize::MAX, |i| i.spans.len());
    let expected = found.waits.iter().filter(|w| lap(found, w).is_none_or(|lap| lap < count)).count();
    let enough = |part: usize, whole: usize| part as f64 >= MUST_MATCH * whole as f64;
    let both = [(found, light, shared, expected), (light, found, matched, light.waits.len())];
    if let Some((of, other, matched, waits)) = both.into_iter().find(|&(_, _, part, all)| !enough(part, all))
    {
        let path = |capture: &CaptureAnalysis| capture.profile.path().to_owned();
        return Err(InputError::OtherProgram { of: path(of), other: path(other), matched, waits });
    }
    Ok((with_waits(found, light, waits), said(found, light, matched, by)))
}

/// The sites, in the light capture's processes; without waits where it has none of theirs.
fn with_waits(
    found: &CaptureAnalysis,
    light: &CaptureAnalysis,
    mut waits: FxHashMap<PathIx, Vec<WaitId>>,
) -> TiVec<SiteIx, Site> {
    let mut sites = found.sites.clone();
    for (at, site) in sites.iter_mut_enumerated() {
        for (n, path) in site.paths.iter_mut().enumerate() {
            path.waits = waits.remove(&(at, n)).unwrap_or_default();
        }
        site.paths.retain(|path| !path.waits.is_empty());
        site.bundle.waits = site.paths.iter().flat_map(|path| path.waits.iter().copied()).collect();
        site.bundle.waits.sort_unstable();
        site.bundle.pid = site.bundle.waits.first().map_or(site.bundle.pid, |&w| light.waits[w].pid);
    }
    sites
}

/// A path of a site, by their indices.
type PathIx = (SiteIx, usize);

/// The path that each wait came by; `None` for those of no site.
fn path_of_waits(found: &CaptureAnalysis) -> TiVec<WaitId, Option<PathIx>> {
    let mut path_of: TiVec<WaitId, Option<PathIx>> = found.waits.iter().map(|_| None).collect();
    for (at, site) in found.sites.iter_enumerated() {
        for (n, path) in site.paths.iter().enumerate() {
            path.waits.iter().for_each(|&w| path_of[w] = Some((at, n)));
        }
    }
    path_of
}

fn said(found: &CaptureAnalysis, light: &CaptureAnalysis, matched: usize, by: By) -> Warning {
    let varying = if by.sizes { "" } else { ", where it is always the same" };
    let message = format!(
        "times are from {}, sites from {}: {} of {} waits matched by order, call and copy size{varying}; ranges reach towards what the latter's own times give",
        light.profile.path().display(),
        found.profile.path().display(),
        text::count(matched as u64),
        text::count(light.waits.len() as u64),
    );
    Warning::new(Code::TimingMatched, message, "")
}

/// The like of a wait in the other capture, if it has one: the path that it came by, if it is a site's.
type Like = Option<Option<PathIx>>;

/// Waits by thread, and which of the thread's they are.
type Nth = BTreeMap<(ThreadIx, usize), WaitId>;

/// Of a capture that goes on for more iterations than the other: waits without their like are as those of the last
/// iteration of the same waits that has them all, else of the last one that has; so are those between iterations, where another
/// loop takes turns with the one that was found.
///
/// ```text
///  other   [a b c][a b d c][a b c] x x
///  light   [a b c][a b d c][a b c] x x [a b c][a b d c] x x
///                     └───────└────│──── ↑ ──────↑      │    the n-th of a thread, if it has the same API and copies in the
///                                  └─────────────────── ↑    same direction
/// ```
fn repeat(light: &CaptureAnalysis, likes: &mut TiVec<WaitId, Like>) {
    // Those of each iteration, and of what follows it.
    let mut laps: [BTreeMap<usize, Nth>; 2] = Default::default();
    let mut counts: FxHashMap<(usize, usize, ThreadIx), usize> = FxHashMap::default();
    for (w, wait) in light.waits.iter_enumerated() {
        let lap = lap(light, wait);
        let Some(at) = lap.or_else(|| lap_before(light, wait)) else { continue };
        let between = usize::from(lap.is_none());
        let nth = counts.entry((between, at, wait.thread)).or_default();
        laps[between].entry(at).or_default().insert((wait.thread, *nth), w);
        *nth += 1;
    }
    let kind = |w: WaitId| {
        let wait = &light.waits[w];
        (light.profile.calls.base_name(wait.call), wait.copy.map(|copy| copy.direction))
    };
    // After the last iteration comes what ends the program, not what goes on.
    let ending = light.iterations.as_ref().map_or(0, |i| i.spans.len().saturating_sub(1));
    let shape = |waits: &Nth| -> Vec<_> { waits.iter().map(|(&place, &w)| (place, kind(w))).collect() };
    for laps in &laps {
        let has_all = |(_, waits): &(&usize, &Nth)| waits.values().all(|&w| likes[w].is_some());
        let (mut whole, open): (Vec<_>, Vec<_>) = laps.iter().partition(has_all);
        whole.retain(|(at, _)| **at < ending);
        let Some((_, last)) = whole.last().filter(|_| !open.is_empty()) else { continue };
        let alike: FxHashMap<_, &Nth> = whole.iter().map(|(_, waits)| (shape(waits), *waits)).collect();
        for (_, waits) in open {
            let like = alike.get(&shape(waits)).unwrap_or(last);
            for (place, &w) in waits {
                let same = like.get(place).filter(|&&same| likes[w].is_none() && kind(same) == kind(w));
                if let Some(&same) = same {
                    likes[w] = likes[same];
                }
            }
        }
    }
}

/// The iteration that a wait begins in.
fn lap(capture: &CaptureAnalysis, wait: &Wait) -> Option<usize> {
    capture.iterations.as_ref()?.at(wait.start)
}

/// The iteration after which a wait begins that is in none.
fn lap_before(capture: &CaptureAnalysis, wait: &Wait) -> Option<usize> {
    let spans = &capture.iterations.as_ref()?.spans;
    spans.partition_point(|span| span.1 <= wait.start).checked_sub(1)
}

fn positions(capture: &CaptureAnalysis, by: By) -> TiVec<WaitId, Position> {
    let rank = thread_ranks(capture);
    let one = |w: &Wait| {
        let api = capture.profile.calls.base_name(w.call).clone();
        let lap = lap(capture, w).filter(|_| by.iterations);
        (rank[&w.thread], lap, api, w.copy.map(|c| (c.direction, Some(c.bytes))))
    };
    let mut all: TiVec<WaitId, Position> = capture.waits.iter().map(one).collect();
    if !by.sizes {
        forget_varying_sizes(&mut all);
    }
    all
}

/// Takes the sizes out of positions that, by their turn in their iteration, have several.
fn forget_varying_sizes(all: &mut TiVec<WaitId, Position>) {
    let mut turns: FxHashMap<Position, usize> = FxHashMap::default();
    let mut sizes: FxHashMap<(Position, usize), BTreeSet<u64>> = FxHashMap::default();
    let mut places = Vec::new();
    for (thread, lap, api, copy) in all.iter() {
        let (direction, size) =
            copy.map_or((None, None), |(direction, size)| (Some((direction, None)), size));
        let turn = turns.entry((*thread, *lap, api.clone(), direction)).or_default();
        let place = ((*thread, None, api.clone(), direction), *turn);
        *turn += 1;
        sizes.entry(place.clone()).or_default().extend(size.filter(|_| lap.is_some()));
        places.push(place);
    }
    for (position, place) in all.iter_mut().zip(&places) {
        if let Some((_, size)) = position.3.as_mut().filter(|_| sizes[place].len() > 1) {
            *size = None;
        }
    }
}

/// Threads that wait, numbered from the one with most waits down; of equals the one that waited first.
fn thread_ranks(capture: &CaptureAnalysis) -> FxHashMap<ThreadIx, usize> {
    let mut counts: FxHashMap<ThreadIx, (usize, i64)> = FxHashMap::default();
    for wait in &capture.waits {
        let (count, first) = counts.entry(wait.thread).or_insert((0, i64::MAX));
        (*count, *first) = (*count + 1, (*first).min(wait.start));
    }
    let mut order: Vec<(ThreadIx, (usize, i64))> = counts.into_iter().collect();
    order.sort_by_key(|&(thread, (count, first))| (std::cmp::Reverse(count), first, thread));
    order.into_iter().map(|(thread, _)| thread).zip(0..).collect()
}
