//! The change simulated for each site: the verdict's advice, or the change asked for.

use super::{Judged, Options, Priced, Read};
use crate::cost::most::Capture;
use crate::cost::overhead::Costs;
use crate::cost::price;
use crate::cost::prices::{PricedSite, Prices, Terms};
use crate::cost::simulate::{Program, beside};
use crate::iterations::Iterations;
use crate::profile::ids::{CallId, GlobalPid};
use crate::profile::parallel::both;
use crate::profile::payload::PyFrame;
use crate::sites::{Freed, native, ranges};
use crate::verdict::site::Site;
use crate::vocabulary::{
    Attribution, Change, Class, Direction, HostMemory, Kind, Made, ProfileIx, SiteId, SiteIx,
};
use crate::waits::held::Held;
use crate::waits::{Wait, WaitId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use typed_index_collections::TiVec;

/// Changes other than the advised ones, by site id ("S3"), key or line.
#[derive(Clone, Debug, Default)]
pub struct Scenario {
    /// Sites taken as fixed: everything else is priced on top.
    pub assume_fixed: Vec<String>,
    /// Changes to make instead of the advised ones; the last one of a site holds.
    pub fixes: Vec<(String, Change)>,
}

impl Scenario {
    pub fn is_empty(&self) -> bool {
        self.assume_fixed.is_empty() && self.fixes.is_empty()
    }
}

/// [`Scenario`], with the sites found.
#[derive(Clone, Debug, Default)]
pub struct ResolvedScenario {
    pub assumed: FxHashSet<SiteId>,
    pub fixes: FxHashMap<SiteId, Change>,
}

/// Time at which a site is paid once, however long the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaidOnce {
    /// Before its process' first kernel or after its last.
    OutsideWork,
    /// In the loop's first iterations, or before.
    AtLoopStart,
    /// Before or after the loop, and in its first iterations at most.
    OutsideLoop,
}

impl Priced {
    /// The waits that pass another filter, without prices.
    pub fn again(self, options: &Options) -> anyhow::Result<Self> {
        Ok(self.judged.again(options)?.with(Prices::default()))
    }
}

/// A place is paid once or repeatedly as a whole: the calls of one stack that copy alike, whatever their
/// verdicts. CPU samples fall by chance: NVTX ranges place calls without frames of their own.
#[derive(PartialEq, Eq, Hash)]
struct PaidPlace {
    pid: GlobalPid,
    api: Arc<str>,
    copies: Option<(Direction, HostMemory)>,
    freed: Freed,
    around: Vec<String>,
}

impl PaidPlace {
    fn of(site: &Site) -> Self {
        let bundle = &site.bundle;
        let line = |f: &PyFrame| format!("{}:{}:{}", f.file, f.function, f.line);
        let ranges = || bundle.ranges.iter().map(|range| ranges::stable_name(range));
        let around = match bundle.attribution {
            Attribution::PythonBacktrace
            | Attribution::PythonFound
            | Attribution::PythonFunction
            | Attribution::Backward => bundle.user_stack().iter().map(line).collect(),
            Attribution::Native if bundle.note.is_empty() => {
                ranges().chain(native::readable(&bundle.chain)).collect()
            }
            _ => ranges().collect(),
        };
        let copies = bundle.copy.map(|copy| (copy.direction, copy.host_memory));
        Self { pid: bundle.pid, api: bundle.api.clone(), copies, freed: bundle.freed, around }
    }
}

impl Judged {
    pub fn with(self, prices: Prices) -> Priced {
        Priced { judged: self, prices }
    }

    /// Prices every site's change, as advised or as asked for.
    ///
    /// `program`: from [`Read::new`]; no prices without one. `number`: the export's, as in `scenario`.
    pub fn price(
        &mut self,
        program: Option<&mut Program>,
        number: ProfileIx,
        scenario: &ResolvedScenario,
        options: &Options,
    ) -> Prices {
        let Some(program) = program else { return Prices::default() };
        // Dropping these reads drops launches too: counts, and checks that nobody needs.
        let takes = |s: &Site| match s.verdict.kind {
            Kind::DynamicShape => s.bundle.copy.is_some(),
            Kind::ErrorCheck => s.bundle.copy.is_some() && s.verdict.class != Class::True,
            _ => false,
        };
        // Without names nothing is recognised, and less is saved.
        let recognised = self.sites.iter().any(takes);
        let names = recognised.then(|| self.read.profile.kernel_names().unwrap_or_default());
        let kernels = beside::kernels(&names.unwrap_or_default());
        let Self { waits, sites, .. } = &*self;
        let Read { profile, devices, .. } = &self.read;
        let calls = |site: &Site| -> Vec<(CallId, Option<CallId>)> {
            self.waits_of(site).map(|wait| (wait.call, wait.copy_call)).collect()
        };
        let iterations = self.iterations.as_ref();
        let pace = program.learned.pace;
        let mark = || {
            program.mark(&sites.iter().map(calls).collect::<TiVec<_, _>>());
            let taking = sites.iter_enumerated().filter(|(_, site)| takes(site));
            program.mark_beside(profile, &kernels, taking.map(|(site, found)| (site, calls(found))));
            self.narrow(program, number, scenario);
        };
        let (costs, ()) = both(|| Costs::new(profile, pace), mark);
        costs.mark(profile, program);
        // A value made just before its upload is made on the GPU, or once. Other uploads are pinned first.
        for found in sites {
            match found.verdict.made.and_then(beside::making) {
                Some(rate) => program.mark_made(profile, &calls(found), rate),
                None if self.advice(found).is_some_and(|advice| advice.entry.fix.pins) => {
                    program.mark_pinned(profile, &calls(found));
                }
                None => {}
            }
        }
        let subjects: TiVec<SiteIx, PricedSite> = sites
            .iter_enumerated()
            .map(|(site, found)| {
                let subject = self.subject(found, SiteId { profile: number, site }, scenario);
                let once = self.is_once(found);
                PricedSite { counted: subject.counted && !once, open: subject.open && !once, ..subject }
            })
            .collect();
        let capture = Capture { profile, devices, waits, program };
        let terms = Terms { threads: options.threads, as_captured: options.as_captured, step: options.step };
        price::price(&capture, &subjects, iterations, terms)
    }

    /// Gives the program the narrower ops for sites with [`Change::Narrow`].
    fn narrow(&self, program: &mut Program, number: ProfileIx, scenario: &ResolvedScenario) {
        let asked = |site| scenario.fixes.get(&SiteId { profile: number, site }) == Some(&Change::Narrow);
        if !self.sites.keys().any(asked) {
            return;
        }
        let held = Held::new(&self.profile, &self.devices);
        let sites = self.sites.iter_enumerated().filter(|(site, _)| asked(*site));
        let waits = sites.flat_map(|(_, site)| self.waits_of(site));
        let less = waits.filter_map(|wait| Some((wait.call, held.narrower(wait)?.op)));
        program.narrow(&less.collect::<Vec<_>>());
    }

    /// Whether a site's waits are paid once, however long the program runs: outside its loop or in its first
    /// iterations only; without a loop, before the first kernel or after the last and not for a copy. A
    /// single wait of the allocator counts, wherever its library happened to be called first.
    ///
    /// ```text
    ///  host   [cudaFree][load: upload, upload]  [step 0][step 1] … [step n]  [synchronize][tear-down]
    ///  GPU                                       [k][k]  [k][k]     [k][k]
    /// ```
    pub fn is_once(&self, site: &Site) -> bool {
        let single = site.verdict.kind == Kind::Allocator && site.bundle.waits.len() == 1;
        single || self.paid_once(site).is_some()
    }

    pub fn paid_once(&self, site: &Site) -> Option<PaidOnce> {
        let waits = &site.bundle.waits;
        let ways = || self.waits_of(site).map(|wait| self.happens(wait));
        let first = ways().next()?.filter(|_| waits.iter().all(|&wait| self.once[wait]))?;
        Some(if ways().all(|way| way == Some(first)) { first } else { PaidOnce::OutsideLoop })
    }

    /// Whether a site is paid once, before the loop or, without one, before the process's work.
    pub fn is_before_loop(&self, site: &Site) -> bool {
        let last = self.waits_of(site).next_back().map(|wait| wait.end);
        let from = match self.paid_once(site) {
            Some(PaidOnce::OutsideWork) => self.devices.work.get(&site.bundle.pid).map(|work| work.0),
            Some(PaidOnce::AtLoopStart) => return true,
            Some(PaidOnce::OutsideLoop) => self.loop_of(site).and_then(|i| i.whole()).map(|whole| whole.0),
            None => None,
        };
        last.zip(from).is_some_and(|(end, from)| end <= from)
    }

    /// Whether all of a site's waits come after the loop, and are not the allocator's teardown.
    pub fn is_after_loop(&self, site: &Site) -> bool {
        let whole = self.loop_of(site).and_then(|i| i.whole());
        let first = self.waits_of(site).next().map(|wait| wait.start);
        site.verdict.kind != Kind::Allocator
            && self.paid_once(site).is_some()
            && first.zip(whole).is_some_and(|(first, (_, end))| first >= end)
    }

    pub fn loop_of(&self, site: &Site) -> Option<&Iterations> {
        self.iterations.as_ref().and_then(|i| i.of(site.bundle.pid))
    }

    /// Whether a site waits in any iteration of its process' loop.
    pub fn waits_in_loop(&self, site: &Site) -> bool {
        let held = |i: &Iterations| self.waits_of(site).any(|wait| i.at(wait.start).is_some());
        self.loop_of(site).is_some_and(held)
    }

    fn subject(&self, site: &Site, ix: SiteId, scenario: &ResolvedScenario) -> PricedSite {
        let assumed = scenario.assumed.contains(&ix);
        let asked = scenario.fixes.get(&ix).copied();
        let (change, avoidable) = self.change_of(site, asked);
        let fix = match change {
            // A needed wait that is taken as fixed was moved behind other work.
            Change::Keep if assumed => Change::Delay,
            fix => fix,
        };
        let (key, waits) = (site.key.clone(), site.bundle.waits.clone());
        // A needed wait has a change only if another form avoids it: `torch.where` instead of assigning
        // through a mask, a guard that looks every N steps.
        let open = fix != Change::Keep && !avoidable && !assumed;
        let works = match site.bundle.uploads() {
            true => site.verdict.made != Some(Made::Elsewhere),
            false => asked.is_some() && site.verdict.class != Class::False,
        };
        // A needed wait may still be moved or merged.
        let kept =
            change == Change::Keep && (asked.is_some() || site.verdict.class == Class::False) && !assumed;
        let needed = site.verdict.class == Class::True;
        PricedSite { key, waits, fix, counted: avoidable && !assumed, open, needed, assumed, kept, works }
    }

    /// The change of a site, as asked or else as advised, and whether it [avoids](Change::avoids) waits.
    pub fn change_of(&self, site: &Site, asked: Option<Change>) -> (Change, bool) {
        let change = asked.unwrap_or_else(|| self.advised(site));
        (change, change.avoids(site.verdict.class, asked.is_some()))
    }
}

impl Read {
    /// A wait is paid once if all waits of its [`PaidPlace`] are, whichever sites share the place.
    pub(super) fn once(&self, judged: &[Site], all: &TiVec<WaitId, Wait>) -> TiVec<WaitId, bool> {
        let mut places: FxHashMap<PaidPlace, Vec<&Site>> = FxHashMap::default();
        for site in judged {
            places.entry(PaidPlace::of(site)).or_default().push(site);
        }
        let mut once: TiVec<WaitId, bool> = vec![false; all.len()].into();
        for sites in places.into_values() {
            let waits = || sites.iter().flat_map(|site| &site.bundle.waits);
            let paid_once = waits().all(|&wait| self.happens(&all[wait]).is_some());
            waits().for_each(|&wait| once[wait] = paid_once);
        }
        once
    }

    /// When a wait happens, if outside the repeating work. A program without a loop does everything once:
    /// copies are then its work, and only set-up and teardown lie outside.
    fn happens(&self, wait: &Wait) -> Option<PaidOnce> {
        let &work = self.devices.work.get(&wait.pid)?;
        let iterations = self.iterations.as_ref().and_then(|i| i.of(wait.pid));
        let outside = |(from, to): (i64, i64)| wait.end <= from || wait.start >= to;
        match iterations {
            None => (outside(work) && wait.copy.is_none()).then_some(PaidOnce::OutsideWork),
            Some(_) if outside(work) => Some(PaidOnce::OutsideWork),
            Some(i) if i.only_at_start(wait.start) => Some(PaidOnce::AtLoopStart),
            Some(i) => i.whole().is_some_and(outside).then_some(PaidOnce::OutsideLoop),
        }
    }
}
