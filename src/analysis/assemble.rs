//! One report from analysed exports: collected, ranked, numbered, summed.

use super::filter::Known;
use super::pricing::Wishes;
use super::results::Sites;
use super::{Analysed, Options, Sort, notes, savings};
use crate::doctor;
use crate::report::*;
use crate::timeline::{self, Budget, Timeline};
use crate::vocabulary::Class;
use rustc_hash::FxHashMap;

/// Collects exports into one report.
pub struct Assembler<'a> {
    options: &'a Options,
    wishes: &'a Wishes,
    report: Report,
    known: Known,
    /// Exports that the report will have.
    exports: usize,
}

impl<'a> Assembler<'a> {
    pub fn new(options: &'a Options, wishes: &'a Wishes, exports: usize) -> Self {
        let report = Report {
            schema_version: 1,
            tool: Tool { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION") },
            profiles: Vec::new(),
            totals: Totals::default(),
            iterations: None,
            sites: Vec::new(),
            sites_omitted: 0,
            waits_filtered_out: 0,
            warnings: Vec::new(),
            timelines: Vec::new(),
        };
        Self { options, wishes, report, known: Known::default(), exports }
    }

    /// Adds one export's sites, devices and warnings.
    pub fn add(&mut self, found: &Analysed) -> anyhow::Result<()> {
        let number = self.report.profiles.len();
        let sites = Sites::new(found, self.options, number);
        let summaries = sites.summaries()?;
        let listed: Vec<Site> =
            found.sites.iter().zip(&summaries).map(|(site, summary)| sites.site(site, summary)).collect();
        let listed = savings::of_sites(found, listed);
        savings::of_run(found, &mut self.report.totals);
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
        self.report.waits_filtered_out += found.filtered_out + dropped.iter().map(|s| s.waits).sum::<u64>();
        self.known.add(&found.profile, &found.devices);
        self.report.profiles.push(sites.profile());
        if self.report.iterations.is_none() {
            self.report.iterations = sites.iterations();
        }
        let limits = found.warnings.clone().unwrap_or_else(|| doctor::warnings(found));
        for warning in limits.into_iter().chain(notes::of(found)) {
            if !self.report.warnings.contains(&warning) {
                self.report.warnings.push(warning);
            }
        }
        Ok(())
    }

    /// The capture drawn, in detail around the examples of the sites with most drain.
    fn timeline(&self, found: &Analysed, profile: usize, listed: &[Site], budget: Budget) -> Timeline {
        let mut ranked: Vec<&Site> = listed.iter().collect();
        ranked.sort_by(|a, b| rank(self.options.sort, a, b));
        let examples: Vec<(i64, i64)> =
            ranked.iter().flat_map(|s| &s.examples).map(|e| (e.start_ns, e.end_ns)).collect();
        let (from, to) = found.profile.bounds().unwrap_or((0, 0));
        let (from, to) = self.options.filter.clip(from, to);
        timeline::draw(found, &timeline::Wanted { profile, from, to, examples: &examples, budget })
    }

    /// Ranks, numbers, totals and cuts.
    pub fn finish(mut self) -> Report {
        let sort = self.options.sort;
        self.report.sites.sort_by(|a, b| rank(sort, a, b));
        for (i, site) in self.report.sites.iter_mut().enumerate() {
            site.id = format!("S{}", i + 1);
        }
        name_in_timelines(&mut self.report);
        savings::name_next(&mut self.report.sites);
        savings::leave_out_assumed(&mut self.report, self.wishes);
        self.report.totals = totals(&self.report);
        self.report.warnings.extend(self.known.missing(&self.options.filter));
        name_callers(&mut self.report.sites);
        self.report.cut(self.options.top);
        self.report
    }
}

/// Gives the sites that timelines refer to their ids.
fn name_in_timelines(report: &mut Report) {
    if report.timelines.is_empty() {
        return;
    }
    let place = |s: &Site| (s.process.profile, s.process.pid, s.key.clone());
    let ids: FxHashMap<_, String> = report.sites.iter().map(|s| (place(s), s.id.clone())).collect();
    for timeline in &mut report.timelines {
        for site in &mut timeline.sites {
            site.id = ids.get(&(timeline.profile, site.pid, std::mem::take(&mut site.key))).cloned();
        }
    }
}

/// Gives sites that share user line, API and kind the nearest caller that tells them apart.
///
/// Linear in the frames: a recursive program has thousands of stacks on one line.
fn name_callers(sites: &mut [Site]) {
    let outwards = |s: &Site| -> usize {
        let at = s.frames.iter().position(|f| Some(f) == s.user_frame.as_ref());
        at.map_or(s.frames.len(), |at| at + 1)
    };
    let mut alike: FxHashMap<_, Vec<usize>> = FxHashMap::default();
    for (i, s) in sites.iter().enumerate().filter(|(_, s)| s.user_frame.is_some()) {
        let key = (&s.user_frame, &s.api, s.kind, s.process.pid, s.process.profile, &s.pattern);
        alike.entry(key).or_default().push(i);
    }
    let mut callers: Vec<(usize, Frame)> = Vec::new();
    for group in alike.values() {
        let caller = |site: usize, depth: usize| sites[site].frames.get(outwards(&sites[site]) + depth);
        let deepest = group.iter().map(|&s| sites[s].frames.len() - outwards(&sites[s])).max().unwrap_or(0);
        let differ: Vec<bool> = (0..deepest)
            .map(|depth| group.iter().any(|&s| caller(s, depth) != caller(group[0], depth)))
            .collect();
        for &site in group {
            let told = (0..deepest)
                .filter(|&depth| differ[depth])
                .find_map(|depth| caller(site, depth).filter(|f| f.user));
            callers.extend(told.map(|f| (site, f.clone())));
        }
    }
    for (site, caller) in callers {
        sites[site].caller = Some(caller);
    }
}

fn rank(sort: Sort, a: &Site, b: &Site) -> std::cmp::Ordering {
    let order = |s: &Site| s.fix.as_ref().map_or(u8::MAX, |f| f.order);
    let line = |s: &Site| s.user_frame.as_ref().map(|f| (f.file.clone(), f.line));
    let first = match sort {
        // What is paid once comes after what every iteration pays.
        Sort::Drain => a.start_up.is_some().cmp(&b.start_up.is_some()),
        Sort::Blocked => b.blocked_ns.cmp(&a.blocked_ns),
        Sort::Waits => b.waits.cmp(&a.waits),
        Sort::Max => b.blocked_max_ns.cmp(&a.blocked_max_ns),
        Sort::Fix => order(a).cmp(&order(b)),
        // Sites without a line come last.
        Sort::Location => (line(a).is_none(), line(a)).cmp(&(line(b).is_none(), line(b))),
    };
    first
        .then(b.drain_ns.cmp(&a.drain_ns))
        .then(b.blocked_ns.cmp(&a.blocked_ns))
        .then_with(|| line(a).cmp(&line(b)))
        .then_with(|| {
            (a.process.profile, a.process.pid, &a.key).cmp(&(b.process.profile, b.process.pid, &b.key))
        })
}

fn totals(report: &Report) -> Totals {
    let mut totals = Totals { sites: report.sites.len() as u64, ..report.totals.clone() };
    for gpu in report.profiles.iter().flat_map(|p| &p.gpus) {
        add(&mut totals.gpu_busy_ns, gpu.busy_ns);
        add(&mut totals.gpu_idle_ns, gpu.idle_ns);
    }
    for site in &report.sites {
        let class = match site.class {
            Class::False => &mut totals.by_class.false_,
            Class::True => &mut totals.by_class.true_,
            Class::Unknown => &mut totals.by_class.unknown,
        };
        class.sites += 1;
        class.waits += site.waits;
        add(&mut class.blocked_ns, site.blocked_ns);
        add(&mut class.drain_ns, site.drain_ns);
        totals.waits += site.waits;
        add(&mut totals.blocked_ns, site.blocked_ns);
        add(&mut totals.drain_ns, site.drain_ns);
    }
    totals
}

/// Adds a time. Times of several threads and devices lie side by side, and damaged ones may be enormous.
fn add(sum: &mut i64, time: i64) {
    *sum = sum.saturating_add(time);
}
