//! Which sites are replayed, and which part of the capture.
//!
//! ```text
//!  iterations   [ 0 ]·[ 1 ]·[  2  ]·[ 3 ]·[ 4 ]   the one of median length among those that hold most chosen sites,
//!                                                  with what comes before the next one
//!
//!  none known   ··[wait]····[wait]····[wait]··    from the end of one wait of the site to the end of its next,
//!                        [---------]              of median length
//! ```

use super::{PlanError, reported};
use crate::analysis::Analysed;
use crate::cost::simulate::Fix;
use crate::report::Report;
use crate::vocabulary::Class;
use crate::waits::Wait;
use rustc_hash::FxHashMap;

/// Sites replayed where none is named.
const DEFAULT_SITES: usize = 3;
/// Calls of a stretch: more make a plan that nobody reads, and a run of minutes.
const MOST_CALLS: usize = 20_000;

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
}

impl Chosen {
    pub fn new(report: &Report, found: &Analysed, names: &[String]) -> Result<Self, PlanError> {
        let profile = || found.profile.path().display().to_string();
        if found.sites.is_empty() {
            return Err(PlanError::NoWaits { profile: profile() });
        }
        let sites = if names.is_empty() { most_costly(report, found)? } else { named(report, found, names)? };
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
        Ok(Self { sites, pid, device, by_name: !names.is_empty() })
    }

    /// What is changed about a site: as advised; a needed wait that was asked for by name is moved behind other work.
    pub fn fix(&self, found: &Analysed, site: usize) -> Fix {
        let own = &found.sites[site];
        match Fix::advised(&own.verdict, own.bundle.copy) {
            Fix::Keep if self.sites.contains(&site) => Fix::Delay,
            fix => fix,
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
        found.sites[site].verdict.class == Class::False && self.fix(found, site) != Fix::Keep
    }
}

/// False sites that give most when fixed; of those with nothing simulated, what they may give. Sites that wait in
/// iterations go before those that wait outside them only: what happens once can be measured, but not repeated.
fn most_costly(report: &Report, found: &Analysed) -> Result<Vec<usize>, PlanError> {
    let worth = |s: usize| {
        let price = &found.prices.sites[s];
        if price.simulated { (price.alone, price.joint) } else { (price.high, 0) }
    };
    let mut sites: Vec<usize> = (0..found.sites.len())
        .filter(|&s| {
            let own = &found.sites[s];
            own.verdict.class == Class::False && Fix::advised(&own.verdict, own.bundle.copy) != Fix::Keep
        })
        .collect();
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
    sites.truncate(DEFAULT_SITES);
    if sites.is_empty() {
        return Err(PlanError::NoneFalse { sites: listed(report) });
    }
    Ok(sites)
}

fn named(report: &Report, found: &Analysed, names: &[String]) -> Result<Vec<usize>, PlanError> {
    let mut sites = Vec::new();
    for name in names {
        let name = name.trim();
        let is_it = |s: &usize| {
            let shown = reported(report, found, *s);
            found.sites[*s].key == name || shown.is_some_and(|r| r.id.eq_ignore_ascii_case(name))
        };
        let Some(site) = (0..found.sites.len()).find(is_it) else {
            return Err(PlanError::NoSite { site: name.to_owned(), sites: listed(report) });
        };
        if !sites.contains(&site) {
            sites.push(site);
        }
    }
    Ok(sites)
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
    pub iteration: Option<usize>,
    pub chosen: String,
    pub notes: Vec<String>,
}

impl Window {
    pub fn choose(found: &Analysed, chosen: &Chosen) -> Self {
        let mut window = Self::iteration(found, chosen).unwrap_or_else(|| Self::around_wait(found, chosen));
        window.cut(found, chosen);
        window.pid = chosen.pid;
        window
    }

    fn iteration(found: &Analysed, chosen: &Chosen) -> Option<Self> {
        let iterations = found.iterations.as_ref()?;
        if crate::profile::nvtx::process(iterations.tid) != chosen.pid {
            return None;
        }
        let mut held = vec![0usize; iterations.spans.len()];
        for (number, &site) in chosen.sites.iter().enumerate() {
            let mut seen: Vec<usize> = waits(found, site)
                .filter_map(|w| iterations.at(w.start).filter(|&i| w.end <= iterations.spans[i].1))
                .collect();
            seen.dedup();
            // The first site decides; each other counts one.
            let weight = if number == 0 { chosen.sites.len() } else { 1 };
            seen.into_iter().for_each(|i| held[i] += weight);
        }
        let most = held.iter().copied().max().filter(|m| *m >= chosen.sites.len())?;
        let turn = |i: usize| turn(&iterations.spans, i);
        let mut best: Vec<usize> = (0..held.len()).filter(|&i| held[i] == most).collect();
        best.sort_by_key(|&i| (turn(i).1 - turn(i).0, i));
        let index = best[best.len() / 2];
        let (from, to) = turn(index);
        let until = if to > iterations.spans[index].1 { " up to the next" } else { "" };
        let chosen = format!(
            "iteration {index} (`{}`){until}, of median length among the {} that hold these waits",
            iterations.name,
            best.len()
        );
        Some(Self { from, to, iteration: Some(index), chosen, ..Self::default() })
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

/// An iteration with what the loop does before the next one, unless that is something else of its own.
///
/// ```text
///  ranges     [step 3    ]··[step 4    ]··[step 5    ]················[step 6    ]
///  turns      [3           ][4           ][5         ]                [6         ]
/// ```
fn turn(spans: &[(i64, i64)], i: usize) -> (i64, i64) {
    let (from, to) = spans[i];
    match spans.get(i + 1) {
        Some(next) if next.0 - to <= (to - from) / 2 => (from, next.0),
        _ => (from, to),
    }
}

fn waits(found: &Analysed, site: usize) -> impl Iterator<Item = &Wait> {
    found.sites[site].bundle.waits.iter().map(|&w| &found.waits[w as usize])
}

#[cfg(test)]
mod tests {
    use super::turn;

    #[test]
    fn a_turn_goes_up_to_the_next_unless_that_is_far() {
        let spans = [(0, 100), (110, 210), (300, 400), (450, 460)];
        let turns: Vec<_> = (0..spans.len()).map(|i| turn(&spans, i)).collect();
        assert_eq!(turns, [(0, 110), (110, 210), (300, 450), (450, 460)]);
    }
}
