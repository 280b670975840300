//! Which change is simulated for which site: what its verdict advises, or what was asked for.

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

/// What to simulate other than what is advised, by site id ("S3") or key.
#[derive(Clone, Debug, Default)]
pub struct Scenario {
    /// Taken as fixed: everything else is priced after them.
    pub assume_fixed: Vec<String>,
    /// Changes to make instead of the advised ones; the last one of a site holds.
    pub fixes: Vec<(String, Change)>,
}

impl Scenario {
    /// Nothing is asked for: everything as advised.
    pub fn is_empty(&self) -> bool {
        self.assume_fixed.is_empty() && self.fixes.is_empty()
    }
}

/// [`Scenario`], with the sites found.
#[derive(Clone, Debug, Default)]
pub struct ResolvedScenario {
    /// Taken as fixed.
    pub assumed: FxHashSet<SiteId>,
    /// Changes to make instead of the advised ones.
    pub fixes: FxHashMap<SiteId, Change>,
}

/// How a site is paid once, however long the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaidOnce {
    /// Before its process' first kernel or after its last.
    OutsideWork,
    /// In the loop's first iterations, or before.
    AtLoopStart,
    /// Before the loop or after it; of its iterations in the first at most.
    OutsideLoop,
}

impl Priced {
    /// The waits that pass another filter, without prices.
    ///
    /// # Errors
    /// [`InputError`](crate::error::InputError) where more of the export is needed and cannot be read.
    pub fn again(self, options: &Options) -> anyhow::Result<Self> {
        Ok(self.judged.again(options)?.with(Prices::default()))
    }
}

/// A place pays once, or again and again, as a whole: the calls of one stack that copy alike belong to it, whatever their verdicts.
/// CPU samples tell no place apart, since they fall by chance: a call without frames of its own is told by its NVTX ranges.
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
    /// This export with its prices.
    pub fn with(self, prices: Prices) -> Priced {
        Priced { judged: self, prices }
    }

    /// Prices every site: the change that its verdict advises, or the one that is wished for.
    ///
    /// `program`: what reading the export gave; there are no prices without one. `number` of the export, as in `scenario`.
    pub fn price(
        &mut self,
        program: Option<&mut Program>,
        number: ProfileIx,
        scenario: &ResolvedScenario,
        options: &Options,
    ) -> Prices {
        let Some(program) = program else { return Prices::default() };
        // Reads that take launches along where they are dropped: counts, and checks that nobody needs.
        let takes = |s: &Site| match s.verdict.kind {
            Kind::DynamicShape => s.bundle.copy.is_some(),
            Kind::ErrorCheck => s.bundle.copy.is_some() && s.verdict.class != Class::True,
            _ => false,
        };
        // Where names cannot be read nothing is recognised, and less is saved.
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
        // Uploads of what the program makes before them: the advice is to make it on the GPU, or once. Others are pinned first.
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

    /// Says what less the waits of sites could be for that are to wait for less.
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

    /// Whether a site's waits are paid once, however long the program runs: outside of its loop, or in the first iterations and
    /// never again, or, of what is no copy, before its process' first kernel or after its last; as is a single wait of the
    /// allocator, wherever the library that made it happened to be called first.
    ///
    /// ```text
    ///  host   [cudaFree][load: upload, upload]  [step 0][step 1] … [step n]  [synchronize][tear-down]
    ///  GPU                                       [k][k]  [k][k]     [k][k]
    /// ```
    pub fn is_once(&self, site: &Site) -> bool {
        let single = site.verdict.kind == Kind::Allocator && site.bundle.waits.len() == 1;
        single || self.paid_once(site).is_some()
    }

    /// The way in which a site is paid once, if it is.
    pub fn paid_once(&self, site: &Site) -> Option<PaidOnce> {
        let waits = &site.bundle.waits;
        let ways = || self.waits_of(site).map(|wait| self.happens(wait));
        let first = ways().next()?.filter(|_| waits.iter().all(|&wait| self.once[wait]))?;
        Some(if ways().all(|way| way == Some(first)) { first } else { PaidOnce::OutsideLoop })
    }

    /// Whether a program pays for a site once, and before its loop or, without one, its work.
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

    /// Whether all that a site waits is after the loop, and not for what a process takes down.
    pub fn is_after_loop(&self, site: &Site) -> bool {
        let whole = self.loop_of(site).and_then(|i| i.whole());
        let first = self.waits_of(site).next().map(|wait| wait.start);
        site.verdict.kind != Kind::Allocator
            && self.paid_once(site).is_some()
            && first.zip(whole).is_some_and(|(first, (_, end))| first >= end)
    }

    /// The iterations of the site's process.
    pub fn loop_of(&self, site: &Site) -> Option<&Iterations> {
        self.iterations.as_ref().and_then(|i| i.of(site.bundle.pid))
    }

    /// Whether a site waits in some iteration of its process' loop, whether or not in others too.
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
        // A needed wait has a change only where another form does without it: `torch.where` in place of an assignment through a
        // mask, a guard that looks every N steps.
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

    /// What is changed about a site, as asked, else as advised; and whether that [avoids](Change::avoids) waits.
    pub fn change_of(&self, site: &Site, asked: Option<Change>) -> (Change, bool) {
        let change = asked.unwrap_or_else(|| self.advised(site));
        (change, change.avoids(site.verdict.class, asked.is_some()))
    }
}

impl Read {
    /// The waits that are paid once: all of their [`PaidPlace`] are, whichever sites share it.
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

    /// When a wait happens, if that is outside of what the program does again and again. Without a loop it does everything once:
    /// then copies are its work, and only what sets it up or takes it down is apart.
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
