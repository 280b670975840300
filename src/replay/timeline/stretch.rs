//! Which sites are replayed, and which part of the capture.
//!
//! ```text
//!  iterations   [ 0 ]·[ 1 ]·[  2  ]·[ 3 ]·[ 4 ]   the one of median length among those that hold most chosen sites,
//!                                                  with what comes before the next one
//!
//!  too long     [ 0                        ]·[…   likewise of the ranges inside that repeat around the wait
//!               [0][1][2][3][4]…
//!
//!  none known   ··[wait]····[wait]····[wait]··    from the end of one wait of the site to the end of its next,
//!                        [---------]              of median length
//! ```

use super::turns;
use super::{PlanError, Wish, reported};
use crate::analysis::Analysed;
use crate::cost::iterations::Iterations;
use crate::cost::simulate::Fix;
use crate::error::InputError;
use crate::profile::nvtx::process;
use crate::report::Report;
use crate::vocabulary::Class;
use crate::waits::Wait;
use rustc_hash::FxHashMap;

/// Sites replayed where none is named.
const DEFAULT_SITES: usize = 3;
/// Calls of a stretch: more make a plan that nobody reads, and a run of minutes.
const MOST_CALLS: usize = 20_000;

/// A stretch that is longer, or holds more waits of the first site, says no more of one of them, and takes its time.
const LONG_NS: i64 = 50_000_000;
const MOST_WAITS: usize = 64;

/// The sites that are replayed.
pub struct Chosen {
    /// Indices into [`Analysed::sites`], the first one decides on the stretch.
    pub sites: Vec<usize>,
    /// `globalPid`.
    pub pid: i64,
    /// Index into the devices, where one is known.
    pub device: Option<u32>,
    /// They were asked for.
    pub by_name: bool,
    /// Changes other than what is advised.
    fixes: Vec<(usize, Fix)>,
}

impl Chosen {
    pub fn new(report: &Report, found: &Analysed, wish: &Wish) -> Result<Self, PlanError> {
        let profile = || found.profile.path().display().to_string();
        if found.sites.is_empty() {
            return Err(PlanError::NoWaits { profile: profile() });
        }
        let named = |name: &str| named(report, found, name);
        let fixes = wish.fixes.iter().map(|(name, fix)| Ok((named(name)?, *fix)));
        let fixes: Vec<(usize, Fix)> = fixes.collect::<Result<_, PlanError>>()?;
        let mut sites = Vec::new();
        for name in &wish.sites {
            let site = named(name)?;
            if !sites.contains(&site) {
                sites.push(site);
            }
        }
        if sites.is_empty() {
            sites = most_costly(report, found, &fixes)?;
        }
        let Some(&first) = sites.first() else {
            return Err(PlanError::NoneFalse { sites: listed(report) });
        };
        let pid = found.sites[first].bundle.pid;
        let sites: Vec<usize> = sites.into_iter().filter(|&s| found.sites[s].bundle.pid == pid).collect();
        let device = device_of(found, first, pid);
        if device.is_none() {
            let advice = if found.profile.ops.is_empty() {
                "capture with -t cuda where the driver lets nsys record kernels".to_owned()
            } else {
                "name a site of another process with --site".to_owned()
            };
            return Err(PlanError::NoWork { profile: profile(), advice });
        }
        Ok(Self { sites, pid, device, by_name: !wish.sites.is_empty(), fixes })
    }

    /// What is changed about a site: as asked, else as advised; a needed wait that was asked for by name is moved behind
    /// other work.
    pub fn fix(&self, found: &Analysed, site: usize) -> Fix {
        match change(found, &self.fixes, site) {
            (Fix::Keep, false) if self.sites.contains(&site) => Fix::Delay,
            (fix, _) => fix,
        }
    }

    /// Whether a wait is for the replayed device, as far as is known.
    pub fn is_here(&self, found: &Analysed, wait: &Wait) -> bool {
        let of_op = |op: u32| found.devices.of_stream[found.profile.ops.stream[op as usize] as usize];
        let device = wait.awaited.map(of_op).or(wait.device);
        device.is_none() || device == self.device
    }

    /// Whether a site is one of "all false sites".
    pub fn counts(&self, found: &Analysed, site: usize) -> bool {
        counts(found, &self.fixes, site)
    }
}

/// The change of a site, and whether it was asked for.
fn change(found: &Analysed, fixes: &[(usize, Fix)], site: usize) -> (Fix, bool) {
    let own = &found.sites[site];
    match fixes.iter().rev().find(|(s, _)| *s == site) {
        Some(&(_, fix)) => (fix, true),
        None => (Fix::advised(&own.verdict, own.bundle.copy), false),
    }
}

/// Whether a site can be avoided: by its verdict, or since somebody asked for a change of it.
fn counts(found: &Analysed, fixes: &[(usize, Fix)], site: usize) -> bool {
    let (fix, asked) = change(found, fixes, site);
    (asked || found.sites[site].verdict.class == Class::False) && fix != Fix::Keep
}

/// False sites that give most when fixed; of those with nothing simulated, what they may give. Sites that wait in
/// iterations go before those that wait outside them only: what happens once can be measured, but not repeated.
fn most_costly(report: &Report, found: &Analysed, fixes: &[(usize, Fix)]) -> Result<Vec<usize>, PlanError> {
    let worth = |s: usize| {
        let price = &found.prices.sites[s];
        if price.simulated { (price.alone, price.joint) } else { (price.high, 0) }
    };
    let mut sites: Vec<usize> = (0..found.sites.len()).filter(|&s| counts(found, fixes, s)).collect();
    let rank = |s: usize| {
        let shown = reported(report, found, s);
        report.sites.iter().position(|r| shown.is_some_and(|s| std::ptr::eq(s, r))).unwrap_or(usize::MAX)
    };
    sites.sort_by_key(|&s| (std::cmp::Reverse(worth(s)), rank(s)));
    let repeats = |s: usize| {
        found.iterations.as_ref().is_some_and(|i| waits(found, s).any(|w| i.at(w.start).is_some()))
    };
    if sites.iter().any(|&s| repeats(s)) {
        sites.retain(|&s| repeats(s));
    }
    // What waits once, as at the end of a loop, is not worth a replay that nobody asked for.
    sites.retain(|&s| waits(found, s).nth(1).is_some() || fixes.iter().any(|f| f.0 == s));
    sites.truncate(DEFAULT_SITES);
    if sites.is_empty() {
        return Err(PlanError::NoneFalse { sites: listed(report) });
    }
    Ok(sites)
}

fn named(report: &Report, found: &Analysed, name: &str) -> Result<usize, PlanError> {
    let name = name.trim();
    let is_it = |s: &usize| {
        let shown = reported(report, found, *s);
        found.sites[*s].key == name || shown.is_some_and(|r| r.id.eq_ignore_ascii_case(name))
    };
    let site = (0..found.sites.len()).find(is_it);
    site.ok_or_else(|| PlanError::NoSite { site: name.to_owned(), sites: listed(report) })
}

/// The sites of a report, as far as a line holds them: `S1 (false), S2 (true)`.
fn listed(report: &Report) -> String {
    const MOST: usize = 12;
    let mut words: Vec<String> =
        report.sites.iter().take(MOST).map(|s| format!("{} ({})", s.id, s.class)).collect();
    match report.sites.len() {
        0 => words.push("none".to_owned()),
        n if n > MOST => words.push(format!("and {} more", n - MOST)),
        _ => {}
    }
    words.join(", ")
}

/// The device that most waits of the site are for, else the one on which its process did most.
fn device_of(found: &Analysed, site: usize, pid: i64) -> Option<u32> {
    let of_op = |op: u32| found.devices.of_stream[found.profile.ops.stream[op as usize] as usize];
    let mut votes: FxHashMap<u32, usize> = FxHashMap::default();
    for &w in &found.sites[site].bundle.waits {
        let wait = &found.waits[w as usize];
        if let Some(device) = wait.awaited.map(of_op).or(wait.device) {
            *votes.entry(device).or_default() += 1;
        }
    }
    let worked = |device: u32| -> usize {
        let streams = found.profile.ops.streams.iter().zip(&found.devices.of_stream).enumerate();
        let mine = streams.filter(|(_, (key, d))| key.pid == pid && **d == device);
        mine.map(|(s, _)| found.devices.stream_ops[s].len()).sum()
    };
    if votes.is_empty() {
        for device in 0..found.devices.list.len() as u32 {
            votes.insert(device, worked(device));
        }
    }
    let most = votes.into_iter().filter(|(d, _)| worked(*d) > 0);
    most.max_by_key(|(device, n)| (*n, std::cmp::Reverse(*device))).map(|(device, _)| device)
}

/// The part of the capture that is replayed.
#[derive(Clone, Debug, Default)]
pub struct Window {
    pub from: i64,
    pub to: i64,
    /// `globalPid`.
    pub pid: i64,
    /// Where it is a repetition: which one, of how many.
    pub iteration: Option<usize>,
    pub iterations: usize,
    pub chosen: String,
    pub notes: Vec<String>,
}

impl Window {
    /// # Errors
    /// As reading an export.
    pub fn choose(found: &mut Analysed, chosen: &Chosen) -> Result<Self, InputError> {
        let mut window = Self::repetition(found, chosen)?;
        window.cut(found, chosen);
        window.pid = chosen.pid;
        if window.iteration.is_none() {
            window.iterations = found.iterations.as_ref().map_or(0, |i| i.spans.len());
        }
        Ok(window)
    }

    /// The smallest recorded repetition around a wait that is worth its time.
    fn repetition(found: &mut Analysed, chosen: &Chosen) -> Result<Self, InputError> {
        let own = found.iterations.as_ref().filter(|i| process(i.tid) == chosen.pid);
        let iteration = own.and_then(|turns| Self::turn(found, chosen, turns, "iteration"));
        if let Some(own) = iteration.as_ref().filter(|w| w.is_short(found, chosen)) {
            return Ok(own.clone());
        }
        let first = chosen.sites.first().copied();
        let example = first.and_then(|s| {
            let inside: Vec<&Wait> =
                waits(found, s).filter(|w| iteration.as_ref().is_none_or(|i| i.holds(w))).collect();
            inside.get(inside.len() / 2).copied().cloned()
        });
        if let Some(wait) = example {
            for turns in turns::around(found, &wait)? {
                let nested = Self::turn(found, chosen, &turns, "repetition");
                if let Some(own) = nested.filter(|w| w.is_short(found, chosen)) {
                    return Ok(own);
                }
            }
        }
        let around = Self::around_wait(found, chosen);
        // A long iteration that its site cuts into nothing smaller stays what the user knows.
        Ok(iteration.filter(|own| around.to - around.from > (own.to - own.from) / 2).unwrap_or(around))
    }

    fn is_short(&self, found: &Analysed, chosen: &Chosen) -> bool {
        let held = chosen.sites.first().map_or(0, |&s| waits(found, s).filter(|w| self.holds(w)).count());
        self.to - self.from <= LONG_NS && held <= MOST_WAITS
    }

    /// The repetition of median length among those that hold most of the chosen sites.
    fn turn(found: &Analysed, chosen: &Chosen, turns: &Iterations, what: &str) -> Option<Self> {
        let mut held = vec![0usize; turns.spans.len()];
        for (number, &site) in chosen.sites.iter().enumerate() {
            let mut seen: Vec<usize> = waits(found, site)
                .filter_map(|w| turns.at(w.start).filter(|&i| w.end <= turns.spans[i].1))
                .collect();
            seen.dedup();
            // The first site decides; each other counts one.
            let weight = if number == 0 { chosen.sites.len() } else { 1 };
            seen.into_iter().for_each(|i| held[i] += weight);
        }
        let most = held.iter().copied().max().filter(|m| *m >= chosen.sites.len())?;
        let mut best: Vec<usize> = (0..held.len()).filter(|&i| held[i] == most).collect();
        let turn = |i: usize| turns::turn(&turns.spans, i);
        best.sort_by_key(|&i| (turn(i).1 - turn(i).0, i));
        let index = best[best.len() / 2];
        let (from, to) = turn(index);
        let until = if to > turns.spans[index].1 { " up to the next" } else { "" };
        let chosen = format!(
            "{what} {index} (`{}`){until}, of median length among the {} that hold these waits",
            turns.name,
            best.len()
        );
        let iterations = turns.spans.len();
        Some(Self { from, to, iteration: Some(index), iterations, chosen, ..Self::default() })
    }

    fn around_wait(found: &Analysed, chosen: &Chosen) -> Self {
        let Some(&site) = chosen.sites.first() else { return Self::default() };
        let mut by_thread: FxHashMap<u32, Vec<&Wait>> = FxHashMap::default();
        let here = waits(found, site).filter(|w| chosen.is_here(found, w));
        here.for_each(|w| by_thread.entry(w.thread).or_default().push(w));
        let own = by_thread.into_iter().max_by_key(|(t, list)| (list.len(), std::cmp::Reverse(*t)));
        let Some((thread, own)) = own else { return Self::default() };
        let mut periods: Vec<(i64, i64)> =
            own.windows(2).map(|w| (w[0].end, w[1].end)).filter(|p| p.1 > p.0).collect();
        periods.sort_by_key(|p| (p.1 - p.0, p.0));
        if let Some(&(from, to)) = periods.get(periods.len() / 2) {
            let chosen = format!(
                "from one wait of the first site to its next, of median length among {}; no iterations are marked",
                periods.len()
            );
            return Self { from, to, chosen, ..Self::default() };
        }
        let (wait, span) = (own[0], found.profile.calls.spans[thread as usize]);
        let others = || found.waits.iter().filter(|w| w.thread == thread);
        let from = others().map(|w| w.end).filter(|e| *e <= wait.start).max().unwrap_or(span.start);
        let to = others().map(|w| w.start).filter(|s| *s >= wait.end).min().unwrap_or(span.end);
        let chosen = "from the wait before to the wait after: the site waits once".to_owned();
        Self { from: from.min(wait.start), to: to.max(wait.end), chosen, ..Self::default() }
    }

    /// Leaves of a stretch with too many calls those around the first site's first wait in it.
    fn cut(&mut self, found: &Analysed, chosen: &Chosen) {
        let starts = &found.profile.calls.start;
        let first = starts.partition_point(|&s| s < self.from);
        let end = starts.partition_point(|&s| s < self.to);
        if end - first <= MOST_CALLS {
            return;
        }
        let inside = |w: &&Wait| w.start >= self.from && w.end <= self.to;
        let wait = chosen.sites.first().and_then(|&s| waits(found, s).find(inside));
        let middle = wait.map_or(first, |w| w.call as usize);
        let from = middle.saturating_sub(MOST_CALLS / 2).max(first);
        let last = (from + MOST_CALLS).min(end) - 1;
        self.notes.push(format!(
            "the stretch has {} calls: only {MOST_CALLS} around the wait are replayed",
            end - first
        ));
        let until = wait.map_or(i64::MIN, |w| w.end);
        (self.from, self.to) =
            (starts[from].max(self.from), found.profile.calls.end[last].max(until).min(self.to));
        self.iteration = None;
    }

    pub fn holds(&self, wait: &Wait) -> bool {
        wait.start >= self.from && wait.end <= self.to
    }
}

fn waits(found: &Analysed, site: usize) -> impl Iterator<Item = &Wait> {
    found.sites[site].bundle.waits.iter().map(|&w| &found.waits[w as usize])
}
