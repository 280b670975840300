//! Collects analysed exports into one report: sites ranked, numbered and summed.

use super::results::Sites;
use super::{edits, host_calls, notes, over_ranks, savings};
use crate::analysis::filter::Filterable;
use crate::analysis::pricing::ResolvedScenario;
use crate::analysis::{Options, Priced, Sort};
use crate::doctor;
use crate::frame::WaitTable;
use crate::frame::sites::{SiteSums, sums};
use crate::model::timeline::{DrawingLimit, Timeline};
use crate::model::*;
use crate::profile::parallel::both;
use crate::ranks::{self, tables::Tables};
use crate::timeline;
use crate::vocabulary::{Class, ProfileIx, SiteId};
use polars::prelude::DataFrame;
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::Path;

pub struct Assembler<'a> {
    options: &'a Options,
    scenario: &'a ResolvedScenario,
    report: Report,
    known: Filterable,
    keys: savings::Keys,
    collectives: Vec<DataFrame>,
    moves: FxHashMap<SiteId, SiteId>,
    /// Sets that save only together. `finish` fills in their ids.
    together: Vec<(Vec<SiteId>, Together)>,
    /// Exports given, readable or not.
    exports: usize,
    /// Site numbers taken by the exports so far.
    numbers: usize,
}

impl<'a> Assembler<'a> {
    pub fn new(options: &'a Options, scenario: &'a ResolvedScenario, exports: usize) -> Self {
        let report = Report { schema_version: SCHEMA_VERSION, ..Report::default() };
        let (known, keys, collectives, moves, together) = Default::default();
        Self { options, scenario, report, known, keys, collectives, moves, together, exports, numbers: 0 }
    }

    /// Adds one export's sites, devices and warnings. Returns the waits behind the sums.
    pub fn add(&mut self, found: &Priced) -> anyhow::Result<WaitTable> {
        let number = ProfileIx::from(self.report.profiles.len());
        let waits = WaitTable::of(found)?;
        let sites = Sites::new(found, &waits, self.options, number);
        // Each of the three passes over all calls and waits.
        let (limits, (profile, listed)) =
            both(|| doctor::warnings(found), || both(|| sites.profile(), || sites.all()));
        let mut listed = savings::of_sites(found, listed);
        for site in &mut listed {
            site.id = format!("S{}", self.numbers + found.number(site.ix.site) + 1);
        }
        self.numbers += found.highest_number();
        // Unlisted sites take part: they may need what another site's edit removes.
        edits::settle(&mut listed);
        let looped = sites.iterations();
        let busiest_ns = looped.as_ref().map_or(0, |looped| looped.busiest_stream_ns);
        savings::of_run(found, &listed, busiest_ns, &mut self.keys, &mut self.report);
        self.moves.extend(savings::moves(found, number));
        self.together.extend(savings::together(found, number));
        let wanted = |s: &Site| {
            (self.options.classes.is_empty() || self.options.classes.contains(&s.class))
                && (self.options.capture.is_none() || s.blocks_capture)
        };
        let (listed, dropped): (Vec<Site>, Vec<Site>) = listed.into_iter().partition(wanted);
        if let Some(budget) = self.options.timelines {
            let drawing = self.timeline(found, number, &listed, budget.share(self.exports));
            self.report.timelines.push(drawing);
        }
        self.report.sites.extend(listed);
        self.report.graph_breaks.extend_from_slice(&found.graph_breaks);
        self.report.waits_filtered_out += found.filtered_out + dropped.iter().map(|s| s.waits).sum::<u64>();
        self.known.add(&found.profile, &found.devices);
        self.collectives.push(waits.collectives.clone());
        let host = host_calls::warnings(&profile);
        self.report.profiles.push(profile);
        let length = |found: &Iterations| found.start_to_start_ns;
        if let Some(looped) = looped
            && self.report.iterations.as_ref().is_none_or(|known| length(known) < length(&looped))
        {
            let lengths = savings::iteration(found, busiest_ns).map(|one| (one.captured_ns, one.ns));
            self.report.totals.gpu_time = looped.gpu_time.clone().without_profiler(lengths);
            self.report.iterations = Some(looped);
        }
        for warning in limits.into_iter().chain(notes::warnings(found)).chain(host) {
            if !self.report.warnings.contains(&warning) {
                self.report.warnings.push(warning);
            }
        }
        Ok(waits)
    }

    /// Draws the capture, in detail around the examples of the first-ranked sites.
    fn timeline(
        &self,
        found: &Priced,
        profile: ProfileIx,
        listed: &[Site],
        budget: DrawingLimit,
    ) -> Timeline {
        let mut ranked: Vec<&Site> = listed.iter().collect();
        ranked.sort_by(|a, b| self.rank(a, b));
        let examples: Vec<(i64, i64)> =
            ranked.iter().flat_map(|s| &s.examples).map(|e| (e.start_ns, e.end_ns)).collect();
        let (from, to) = found.profile.bounds().unwrap_or((0, 0));
        let (from, to) = self.options.filter.clip(from, to);
        timeline::draw(found, &timeline::Drawn { profile, from, to, examples: &examples, budget })
    }

    pub fn leave_out(&mut self, path: &Path, error: &anyhow::Error) {
        self.report.warnings.push(ranks::numbers::unread(path, error));
    }

    pub fn finish(mut self) -> anyhow::Result<Report> {
        let mut sites = std::mem::take(&mut self.report.sites);
        sites.sort_by(|a, b| self.rank(a, b));
        self.report.sites = sites;
        edits::settle(&mut self.report.sites);
        let ids: FxHashMap<SiteId, String> = self.report.sites.iter().map(|s| (s.ix, s.id.clone())).collect();
        for site in self.report.timelines.iter_mut().flat_map(|t| &mut t.sites) {
            site.id = ids.get(&site.ix).cloned();
        }
        for site in &mut self.report.sites {
            if let Some(saving) = &mut site.recoverable {
                saving.moves_to = self.moves.get(&site.ix).and_then(|next| ids.get(next)).cloned();
            }
        }
        self.report.together = named(self.together, &self.report.sites);
        savings::leave_out_assumed(&mut self.report, self.scenario);
        self.report.totals = totals(&self.report);
        self.report.totals.gpu_time = self.report.gpu_time();
        self.report.warnings.extend(self.known.missing(&self.options.filter));
        name_callers(&mut self.report.sites);
        let processes = self.report.profiles.iter().map(|profile| profile.processes.len()).sum::<usize>();
        // A filter by pid or time fits one capture.
        if processes > 1 && !self.options.filter.is_of_one_capture() {
            let (over, doubts) = ranks::over_ranks(&Tables::of(&self.report, &self.collectives)?)?;
            if let Some(over) = &over {
                self.report.warnings = ranks::numbers::once(std::mem::take(&mut self.report.warnings));
                over_ranks::tell(&mut self.report, over);
            }
            self.report.ranks = over;
            self.report.warnings.extend(doubts);
        }
        self.report.warnings.extend(self.options.left_out.iter().cloned());
        self.report.cut(self.options.top);
        Ok(self.report)
    }

    fn rank(&self, a: &Site, b: &Site) -> std::cmp::Ordering {
        // As in the table: one iteration's saving times the iterations.
        let turns = self.report.iterations.as_ref().map_or(1, |i| i.count.cast_signed());
        let saves = |s: &Site| match s.saves() {
            (_, Some(each)) => each.saturating_mul(turns),
            (whole, None) => whole,
        };
        // Waits of every iteration come before waits paid once, avoidable before needed, estimates before
        // bounds. Avoidable sites with nothing to do come last.
        let idle = |s: &Site| s.class == Class::False && !s.is_avoidable();
        let kind = |s: &Site| (s.once, idle(s), s.class.place(), s.saves_at_most());
        let order = |s: &Site| s.fix.as_ref().map_or(u8::MAX, |f| f.order);
        let line = |s: &Site| s.user_frame.as_ref().map(|f| (f.file.clone(), f.line));
        let first = match self.options.sort {
            Sort::Saves => kind(a).cmp(&kind(b)).then(saves(b).cmp(&saves(a))),
            Sort::Drain => a.once.cmp(&b.once),
            Sort::Blocked => b.blocked_ns.cmp(&a.blocked_ns),
            Sort::Waits => b.waits.cmp(&a.waits),
            Sort::Max => b.blocked_max_ns.cmp(&a.blocked_max_ns),
            Sort::Fix => order(a).cmp(&order(b)),
            Sort::Location => (line(a).is_none(), line(a)).cmp(&(line(b).is_none(), line(b))),
        };
        // Ties keep the order of export and first wait: calls that begin at once may swap names and lines.
        first.then(b.drain_ns.cmp(&a.drain_ns)).then(b.blocked_ns.cmp(&a.blocked_ns))
    }
}

/// Sets with ids, largest saving first. Sets with a filtered-out site are dropped.
fn named(sets: Vec<(Vec<SiteId>, Together)>, sites: &[Site]) -> Vec<Together> {
    let places: FxHashMap<SiteId, usize> = sites.iter().enumerate().map(|(at, site)| (site.ix, at)).collect();
    let named = |(members, set): (Vec<SiteId>, Together)| {
        let place = |(site, &alone): (&SiteId, &i64)| Some((*places.get(site)?, alone));
        let mut pairs: Vec<(usize, i64)> =
            members.iter().zip(&set.alone_ns).map(place).collect::<Option<_>>()?;
        pairs.sort_unstable();
        let first = pairs.first()?.0;
        let (ids, alone_ns) = pairs.into_iter().map(|(at, alone)| (sites[at].id.clone(), alone)).unzip();
        Some((first, Together { sites: ids, alone_ns, ..set }))
    };
    let mut all: Vec<(usize, Together)> = sets.into_iter().filter_map(named).collect();
    all.sort_by_key(|(first, set)| (std::cmp::Reverse(set.saved_ns), *first));
    all.into_iter().map(|(_, set)| set).collect()
}

/// Names the nearest caller that tells sites of one line, or paths of one site, apart.
/// Linear in the frames: a recursive program has thousands of stacks on one line.
fn name_callers(sites: &mut [Site]) {
    let mut alike: FxHashMap<_, Vec<usize>> = FxHashMap::default();
    for (i, s) in sites.iter().enumerate().filter(|(_, s)| s.user_frame.is_some()) {
        alike.entry((&s.user_frame, s.process.pid, s.process.profile)).or_default().push(i);
    }
    let mut callers: Vec<(usize, Frame)> = Vec::new();
    for group in alike.values() {
        let paths_of = |&i: &usize| sites[i].paths().into_iter().map(move |path| (i, path));
        let paths: Vec<(usize, Vec<&Frame>)> = group.iter().flat_map(paths_of).collect();
        let deepest = paths.iter().map(|(_, path)| path.len()).max().unwrap_or(0);
        let differs = |&depth: &usize| paths.iter().any(|(_, path)| path.get(depth) != paths[0].1.get(depth));
        let differ: Vec<usize> = (0..deepest).filter(differs).collect();
        let mut named = FxHashSet::default();
        for (site, path) in paths.iter().filter(|(site, _)| named.insert(*site)) {
            let told = differ.iter().find_map(|&depth| path.get(depth));
            callers.extend(told.map(|&frame| (*site, frame.clone())));
        }
    }
    for (site, caller) in callers {
        sites[site].caller = Some(caller);
    }
}

fn totals(report: &Report) -> Totals {
    let avoidable = report.sites.iter().filter(|site| site.is_avoidable());
    let avoidable: FxHashSet<&str> = avoidable.map(|site| &*site.key).collect();
    let avoidable_sites = avoidable.len() as u64;
    let sites = sums(&report.sites).sites;
    let mut totals = Totals { sites, avoidable_sites, ..report.totals.clone() };
    totals.add_gpus(&report.profiles);
    for &class in Class::ALL {
        let SiteSums { sites, waits, blocked_ns, drain_ns, unread } =
            sums(report.sites.iter().filter(|site| site.class == class));
        let of_class = match class {
            Class::False => &mut totals.by_class.false_,
            Class::True => &mut totals.by_class.true_,
            Class::Unknown => &mut totals.by_class.unknown,
        };
        *of_class = ClassTotals { sites, waits, blocked_ns, drain_ns, ..of_class.clone() };
        totals.unread_sites += unread;
        totals.add_waits(waits, blocked_ns, drain_ns);
    }
    totals
}
