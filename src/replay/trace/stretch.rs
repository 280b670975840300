//! The sites that are replayed, and the part of the capture.
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

use super::ReplayRequest;
use super::repetitions;
use crate::analysis::Priced;
use crate::error::InputError;
use crate::iterations::Iterations;
use crate::iterations::marked::with_rest;
use crate::model::Report;
use crate::profile::ids::{GlobalPid, ThreadIx};
use crate::replay::plan::Stretch;
use crate::report::scenario;
use crate::vocabulary::{Change, SiteId, SiteIx};
use crate::waits::Wait;
use crate::waits::device::DeviceIx;
use anyhow::{anyhow, bail};
use rustc_hash::{FxHashMap, FxHashSet};

const DEFAULT_SITES: usize = 3;
/// More calls make a plan that nobody reads, and a run of minutes.
const MOST_CALLS: usize = 20_000;

/// A stretch that is longer, or holds more waits of the first site, says no more and takes its time.
const LONG_NS: i64 = 50_000_000;
const MOST_WAITS: usize = 64;

pub struct Chosen {
    /// Decides on the stretch.
    first: SiteIx,
    /// The first in front.
    pub sites: Vec<SiteIx>,
    pub pid: GlobalPid,
    pub device: DeviceIx,
    pub by_name: bool,
    fixes: FxHashMap<SiteIx, Change>,
}

impl Chosen {
    pub fn new(report: &Report, found: &Priced, request: &ReplayRequest) -> anyhow::Result<Self> {
        let profile = found.profile.path().display();
        if found.sites.is_empty() {
            bail!(
                "{profile}: no host thread waits for the GPU in this capture, so there is nothing to replay"
            );
        }
        // A replay is of one export: a name is one site.
        let named = |name: &str| {
            let found = scenario::named(report, name).next().map(|found| found.site);
            found.ok_or_else(|| InputError::NoSite {
                site: name.trim().to_owned(),
                sites: scenario::listed(report),
            })
        };
        let fixes = request.fixes.iter().map(|(name, fix)| Ok((named(name)?, *fix)));
        let fixes: FxHashMap<SiteIx, Change> = fixes.collect::<Result<_, InputError>>()?;
        let mut sites = request.sites.iter().map(|name| named(name)).collect::<Result<Vec<_>, _>>()?;
        if sites.is_empty() {
            sites = most_costly(report, found, &fixes);
        }
        let Some(&first) = sites.first() else {
            let sites = scenario::listed(report);
            bail!("no avoidable wait that repeats in this report; name a site with --site; it has {sites}");
        };
        let pid = found.sites[first].bundle.pid;
        let mut seen = FxHashSet::default();
        sites.retain(|&s| found.sites[s].bundle.pid == pid && seen.insert(s));
        let device = device_of(found, first, pid).ok_or_else(|| {
            let advice = if found.profile.ops.is_empty() {
                "capture with -t cuda where the driver lets nsys record kernels"
            } else {
                "name a site of another process with --site"
            };
            anyhow!("{profile}: holds no GPU operations of the process that waits, so there is no work to replay; {advice}")
        })?;
        Ok(Self { first, sites, pid, device, by_name: !request.sites.is_empty(), fixes })
    }

    /// Change of a site: as asked, else as advised. A needed wait that was named is moved behind other work.
    pub fn fix(&self, found: &Priced, site: SiteIx) -> Change {
        let asked = self.fixes.get(&site).copied();
        match found.change_of(&found.sites[site], asked).0 {
            Change::Keep if asked.is_none() && self.sites.contains(&site) => Change::Delay,
            change => change,
        }
    }

    /// Whether a wait is for the replayed device; true if unknown.
    pub fn is_here(&self, found: &Priced, wait: &Wait) -> bool {
        found.devices.of_wait(&found.profile.ops, wait).is_none_or(|device| device == self.device)
    }

    /// Whether a site's change avoids waits.
    pub fn counts(&self, found: &Priced, site: SiteIx) -> bool {
        found.change_of(&found.sites[site], self.fixes.get(&site).copied()).1
    }
}

/// Avoidable sites that save most, by bound if not simulated. If some wait in iterations, only they stay:
/// work that happens once can be measured, but not repeated.
fn most_costly(report: &Report, found: &Priced, fixes: &FxHashMap<SiteIx, Change>) -> Vec<SiteIx> {
    let worth = |s: SiteIx| {
        let price = found.prices.sites.get(s).copied().unwrap_or_default();
        if price.simulated { (price.alone, price.joint) } else { (price.high, 0) }
    };
    let avoidable = |s: &SiteIx| found.change_of(&found.sites[*s], fixes.get(s).copied()).1;
    let mut sites: Vec<SiteIx> = found.sites.keys().filter(avoidable).collect();
    let rank = |site: SiteIx| {
        let ix = SiteId { profile: 0.into(), site };
        report.sites.iter().position(|shown| shown.ix == ix).unwrap_or(usize::MAX)
    };
    sites.sort_by_key(|&s| (std::cmp::Reverse(worth(s)), rank(s)));
    let repeats = |s: SiteIx| found.waits_in_loop(&found.sites[s]);
    if sites.iter().any(|&s| repeats(s)) {
        sites.retain(|&s| repeats(s));
    }
    // A single wait, as at the end of a loop, is not worth a replay unasked.
    sites.retain(|&s| waits(found, s).nth(1).is_some() || fixes.contains_key(&s));
    sites.truncate(DEFAULT_SITES);
    sites
}

/// The device of most waits of the site, else of most ops of its process.
fn device_of(found: &Priced, site: SiteIx, pid: GlobalPid) -> Option<DeviceIx> {
    let mut votes: FxHashMap<DeviceIx, usize> = FxHashMap::default();
    for device in waits(found, site).filter_map(|wait| found.devices.of_wait(&found.profile.ops, wait)) {
        *votes.entry(device).or_default() += 1;
    }
    let worked = |device: DeviceIx| -> usize {
        let streams = found.profile.ops.streams.iter_enumerated();
        let mine = streams.filter(|(s, key)| key.pid == pid && found.devices.of_stream[*s] == device);
        mine.map(|(s, _)| found.devices.stream_ops[s].len()).sum()
    };
    if votes.is_empty() {
        votes.extend(found.devices.list.keys().map(|device| (device, worked(device))));
    }
    let most = votes.into_iter().filter(|(d, _)| worked(*d) > 0);
    most.max_by_key(|(device, n)| (*n, std::cmp::Reverse(*device))).map(|(device, _)| device)
}

impl Stretch {
    /// The replayed part of the capture; what is left out of it goes to `notes`.
    ///
    /// # Errors
    /// As reading an export.
    pub(super) fn choose(
        found: &mut Priced,
        chosen: &Chosen,
        notes: &mut Vec<String>,
    ) -> Result<Self, InputError> {
        let mut stretch = Self::repetition(found, chosen)?;
        stretch.cut(found, chosen, notes);
        if stretch.iteration.is_none() {
            stretch.iterations = found.iterations.as_ref().map_or(0, |i| i.spans.len());
        }
        let busy = &found.devices.list[chosen.device].timeline;
        Ok(Self { gpu_busy_ns: busy.busy_within(stretch.from_ns, stretch.to_ns), ..stretch })
    }

    fn repetition(found: &mut Priced, chosen: &Chosen) -> Result<Self, InputError> {
        let own = found.iterations.as_ref().and_then(|i| i.of(chosen.pid));
        let iteration = own.and_then(|own| Self::of_median(found, chosen, own, "iteration"));
        if let Some(own) = iteration.as_ref().filter(|w| w.is_short(found, chosen)) {
            return Ok(own.clone());
        }
        let inside = waits(found, chosen.first).filter(|w| iteration.as_ref().is_none_or(|i| i.holds(w)));
        let inside: Vec<&Wait> = inside.collect();
        if let Some(wait) = inside.get(inside.len() / 2).copied().cloned() {
            for nested in repetitions::around(found, &wait)? {
                let nested = Self::of_median(found, chosen, &nested, "repetition");
                if let Some(own) = nested.filter(|w| w.is_short(found, chosen)) {
                    return Ok(own);
                }
            }
        }
        let around = Self::around_wait(found, chosen);
        // A long iteration stays if its site cuts it into nothing smaller: the user knows it.
        Ok(iteration.filter(|own| around.length() > own.length() / 2).unwrap_or(around))
    }

    fn is_short(&self, found: &Priced, chosen: &Chosen) -> bool {
        let held = waits(found, chosen.first).filter(|w| self.holds(w)).count();
        self.length() <= LONG_NS && held <= MOST_WAITS
    }

    /// The repetition of median length among those with most chosen sites.
    fn of_median(found: &Priced, chosen: &Chosen, repeated: &Iterations, what: &str) -> Option<Self> {
        let mut held = vec![0usize; repeated.spans.len()];
        for (number, &site) in chosen.sites.iter().enumerate() {
            let mut seen: Vec<usize> = waits(found, site)
                .filter_map(|w| repeated.at(w.start).filter(|&i| w.end <= repeated.spans[i].1))
                .collect();
            seen.dedup();
            // The first site decides; each other counts one.
            let weight = if number == 0 { chosen.sites.len() } else { 1 };
            seen.into_iter().for_each(|i| held[i] += weight);
        }
        let most = held.iter().copied().max().filter(|m| *m >= chosen.sites.len())?;
        let mut best: Vec<usize> = (0..held.len()).filter(|&i| held[i] == most).collect();
        let whole = with_rest(&repeated.spans);
        best.sort_by_key(|&i| (whole[i].1 - whole[i].0, i));
        let index = best[best.len() / 2];
        let (from, to) = whole[index];
        let is_cut = repeated.spans.get(index + 1).is_none_or(|next| to < next.0);
        let until = if is_cut { "" } else { " up to the next" };
        let chosen = format!(
            "{what} {index} (`{}`){until}, of median length among the {} that hold these waits",
            repeated.name,
            best.len()
        );
        let iterations = repeated.spans.len();
        Some(Self { iteration: Some(index), iterations, ..Self::of(from, to, chosen) })
    }

    fn around_wait(found: &Priced, chosen: &Chosen) -> Self {
        let mut by_thread: FxHashMap<ThreadIx, Vec<&Wait>> = FxHashMap::default();
        let here = waits(found, chosen.first).filter(|w| chosen.is_here(found, w));
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
            return Self::of(from, to, chosen);
        }
        let (wait, span) = (own[0], found.profile.calls.spans[thread]);
        let others = || found.waits.iter().filter(|w| w.thread == thread);
        let from = others().map(|w| w.end).filter(|e| *e <= wait.start).max().unwrap_or(span.start);
        let to = others().map(|w| w.start).filter(|s| *s >= wait.end).min().unwrap_or(span.end);
        let chosen = "from the wait before to the wait after: the site waits once".to_owned();
        Self::of(from.min(wait.start), to.max(wait.end), chosen)
    }

    /// Cuts a stretch with too many calls to those around the first site's first wait.
    fn cut(&mut self, found: &Priced, chosen: &Chosen, notes: &mut Vec<String>) {
        let calls = &found.profile.calls;
        let all = calls.starting(self.from_ns, self.to_ns);
        let count = all.len();
        if count <= MOST_CALLS {
            return;
        }
        let wait = waits(found, chosen.first).find(|w| self.holds(w));
        notes.push(format!("the stretch has {count} calls: only {MOST_CALLS} around the wait are replayed"));
        let before = wait.map_or(0, |w| all.clone().take_while(|&call| call < w.call).count());
        let mut kept = all.skip(before.saturating_sub(MOST_CALLS / 2)).take(MOST_CALLS);
        let until = wait.map_or(i64::MIN, |w| w.end);
        if let Some((first, last)) = kept.next().map(|first| (first, kept.last().unwrap_or(first))) {
            self.from_ns = calls.start(first).max(self.from_ns);
            self.to_ns = calls.end(last).max(until).min(self.to_ns);
        }
        self.iteration = None;
    }

    fn of(from_ns: i64, to_ns: i64, chosen: String) -> Self {
        Self { from_ns, to_ns, chosen, ..Self::default() }
    }

    pub(super) fn length(&self) -> i64 {
        self.to_ns - self.from_ns
    }

    pub(super) fn holds(&self, wait: &Wait) -> bool {
        wait.start >= self.from_ns && wait.end <= self.to_ns
    }
}

fn waits(found: &Priced, site: SiteIx) -> impl Iterator<Item = &Wait> {
    found.waits_of(&found.sites[site])
}
