//! One export, analysed: profile → waits → sites → verdicts → cost.

pub mod advice;
mod blocked;
pub mod collectives;
pub mod filter;
mod graph_breaks;
mod judge;
pub mod pricing;

use crate::cost::blocked::IdleBlocked;
use crate::cost::drain;
use crate::cost::prices::Prices;
use crate::cost::simulate::sample::{self, Loop};
use crate::cost::simulate::{Assumed, Draft, Program};
use crate::error::InputError;
use crate::iterations::{self, Iterations};
use crate::model::timeline::DrawingLimit;
use crate::model::{Breaks, Warning};
use crate::profile::Profile;
use crate::profile::database::{Progress, Reader, Reading};
use crate::profile::ids::{CallId, GlobalPid};
use crate::profile::parallel::both;
use crate::profile::wanted::Wanted;
use crate::profile::{commands, recapture};
use crate::sites::bundle;
use crate::sites::context::Context;
use crate::sites::frames::PathRules;
use crate::sites::ranges;
use crate::verdict::site::{self, Site};
use crate::verdict::source::{Recorded, Refused, SourceFiles, SourceRoot, SourceTree};
use crate::verdict::weak::observe::Observer;
use crate::vocabulary::{Class, Recorder, SiteIx, words};
use crate::waits;
use crate::waits::collectives::Collectives;
use crate::waits::device::Devices;
use crate::waits::{Wait, WaitId};
use filter::Filter;
use pricing::Scenario;
use rustc_hash::FxHashMap;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use typed_index_collections::TiVec;

#[derive(Clone, Default)]
pub struct Options {
    /// Worker threads; never changes a byte of the result.
    pub threads: usize,
    /// Bytes in which exports are read side by side, 0: one by one. Never changes a byte of the result.
    pub memory: u64,
    /// Reads large tables; never changes a byte of the result.
    pub reader: Reader,
    pub rules: PathRules,
    pub source_roots: Vec<SourceRoot>,
    /// Sources that may be read at their recorded paths.
    pub recorded: Recorded,
    /// Sources read so far.
    pub source_files: SourceFiles,
    pub filter: Filter,
    /// Ranges that later filters ask for: an export is read once.
    pub ranges: Vec<String>,
    /// Name of the NVTX ranges that are the iterations; `None`: detected.
    pub iteration_marker: Option<String>,
    /// Reports only obstacles to capturing NVTX ranges of this name as a CUDA graph.
    pub capture: Option<String>,
    /// Classes listed; empty: all.
    pub classes: Vec<Class>,
    pub sort: Sort,
    /// Sites listed; 0 for all.
    pub top: usize,
    /// Figures for the simulation that a capture does not show.
    pub assumed: Assumed,
    /// Changes to simulate instead of the advised ones.
    pub scenario: Scenario,
    /// Length of an iteration without a profiler, in ns.
    pub step: Option<i64>,
    /// Prices the run as captured, with the profiler's time in it.
    pub as_captured: bool,
    /// Reports what each site's waits waited for: for views of single sites.
    pub awaited: bool,
    /// Leaves out how costs vary within the capture: only JSON and comparisons show it.
    pub without_spread: bool,
    /// Budget for drawings of all captures together; `None`: no drawings.
    pub timelines: Option<DrawingLimit>,
    /// Exports made for this run, and their source reports, which messages name.
    pub reports: Vec<(PathBuf, PathBuf)>,
    /// About inputs that no export could be made from.
    pub left_out: Vec<Warning>,
    /// `None` if nobody looks.
    pub progress: Option<Arc<dyn Progress>>,
}

impl Options {
    fn reading(&self) -> Reading {
        Reading { threads: self.threads, reader: self.reader, progress: self.progress.clone() }
    }

    /// Files are read once, however often this is called. Recorded paths are tried after the roots.
    pub fn sources(&self) -> SourceTree {
        SourceTree::new(self.source_roots.clone()).and_recorded(self.recorded).of(&self.source_files)
    }

    pub fn report_of(&self, export: &Path) -> Option<&Path> {
        self.reports.iter().find(|(made, _)| made == export).map(|(_, report)| report.as_path())
    }
}

words! {
    /// What ranks sites. Ties go by drain, blocked, then first wait.
    #[derive(Default)]
    Sort {
        #[default]
        Saves = "saves": "What fixing saves, at most where no more is known",
        Drain = "drain": "Device-idle time that follows the waits, then blocked time",
        Blocked = "blocked": "Host time inside the waits",
        Waits = "waits": "Number of waits",
        Max = "max": "Longest single wait",
        Location = "location": "File and line",
        Fix = "fix": "The order in which to try fixes: remove, non_blocking, sync-free form, delay, coalesce, offload",
    }
}

/// An export as read, with the costs of all waits; none is selected yet.
pub struct Read {
    pub profile: Profile,
    pub devices: Devices,
    /// `None` if nothing repeats for sure.
    pub iterations: Option<Iterations>,
    pub collectives: Collectives,
    /// GPU idle time in which no thread could launch; `None` where the export does not tell.
    pub blocked: Option<IdleBlocked>,
    all: WaitCosts,
}

/// Selections share the columns that their filter leaves unchanged.
struct WaitCosts {
    waits: Arc<TiVec<WaitId, Wait>>,
    drains: Arc<TiVec<WaitId, i64>>,
}

/// An export whose selected waits have places and verdicts.
pub struct Judged {
    read: Read,
    /// Waits that passed the filter.
    pub waits: Arc<TiVec<WaitId, Wait>>,
    /// Drain of each, in ns.
    pub drains: Arc<TiVec<WaitId, i64>>,
    pub filtered_out: u64,
    once: TiVec<WaitId, bool>,
    pub context: Context,
    /// Waits by place and verdict, in order of their first wait.
    pub sites: TiVec<SiteIx, Site>,
    pub refused: Vec<Refused>,
    pub graph_breaks: Vec<Breaks>,
    /// Numbers of all sites by process and key; empty if no site was left out.
    numbers: Numbers,
}

type Numbers = FxHashMap<GlobalPid, FxHashMap<String, usize>>;

pub struct Priced {
    judged: Judged,
    pub prices: Prices,
}

impl Deref for Judged {
    type Target = Read;

    fn deref(&self) -> &Read {
        &self.read
    }
}

impl DerefMut for Judged {
    fn deref_mut(&mut self) -> &mut Read {
        &mut self.read
    }
}

impl Deref for Priced {
    type Target = Judged;

    fn deref(&self) -> &Judged {
        &self.judged
    }
}

impl DerefMut for Priced {
    fn deref_mut(&mut self) -> &mut Judged {
        &mut self.judged
    }
}

/// Reads and judges one export.
///
/// # Errors
/// [`InputError`] for an export that cannot be read or holds no CUDA calls; other errors are defects.
pub fn analyse(path: &Path, options: &Options) -> anyhow::Result<Judged> {
    Read::new(path, options)?.0.judge(options)
}

impl Read {
    /// Reads an export, its waits' costs, and the program for simulations; `None` if it cannot be simulated.
    pub fn new(path: &Path, options: &Options) -> anyhow::Result<(Self, Option<Program>)> {
        let asked = options.filter.nvtx.as_ref().or(options.capture.as_ref());
        let wanted = Wanted {
            may_wait: waits::api::may_wait,
            family: waits::api::family,
            name: ranges::stable_name,
            ranges: &asked.into_iter().chain(&options.ranges).cloned().collect::<Vec<_>>(),
            is_named: filter::is_of,
        };
        let mut profile = Profile::load(path, options.reading(), &wanted)?;
        profile.report = options.report_of(path).map(Path::to_owned);
        if let Some(error) = no_calls(&profile) {
            return Err(error.into());
        }
        let mut kernels = Vec::new();
        let (devices, all, mut draft) = profile.with_nvtx(&wanted, |profile| {
            let devices = Devices::new(profile);
            let found = waits::find::find(profile, &devices);
            // Drains and simulation are of all waits: a filtered-out wait still owns its gap.
            let draft = || Draft::new(profile, &devices, &found, &options.assumed);
            let (draft, drains) = both(draft, || {
                kernels = collectives::kernel_names(profile);
                drain::drains(profile, &devices, &found)
            });
            (devices, (found, drains), draft)
        })?;
        profile.syncs.forget_host_waits();
        let collectives = collectives::find(&mut profile, &devices, &kernels)?;
        draft.meet(&profile, &collectives);
        let waiting: Vec<CallId> = all.0.iter().map(|wait| wait.call).collect();
        let iterations = iterations::detect(&mut profile, &waiting, options.iteration_marker.as_deref())?;
        let iterations = iterations.and_then(|found| options.filter.whole(found));
        let blocked = blocked::find(&mut profile, &devices, &options.rules)?;
        let program = profile.can_price().then(|| {
            let repeats = iterations.as_ref().map(|found| Loop::new(&profile.calls, found, sample::STEPS));
            let mut program = draft.place(&profile, &devices, &all.0, repeats.as_ref());
            program.progress = options.progress.clone();
            program
        });
        let all = WaitCosts { waits: all.0.into(), drains: all.1.into() };
        Ok((Self { profile, devices, iterations, collectives, blocked, all }, program))
    }

    /// Finds the sites of the waits that pass the filter, and their verdicts.
    ///
    /// # Errors
    /// [`InputError`] where more of the export is needed and cannot be read.
    pub fn judge(self, options: &Options) -> anyhow::Result<Judged> {
        if !options.filter.selects() && options.capture.is_none() {
            return self.judge_selected(options, Numbers::default());
        }
        let all = Options { filter: Filter::default(), capture: None, ..options.clone() };
        self.judge_selected(&all, Numbers::default())?.again(options)
    }

    fn judge_selected(mut self, options: &Options, numbers: Numbers) -> anyhow::Result<Judged> {
        let (WaitCosts { waits: mut selected, drains }, filtered_out) = self.select(options)?;
        let (profile, devices, iterations) = (&mut self.profile, &self.devices, told(&self.iterations));
        let mut context = Context::read(profile, &selected)?;
        for wait in context.copied_elsewhere(profile, &selected)? {
            Arc::make_mut(&mut selected)[wait].split_copy(&profile.calls, &profile.ops);
        }
        let waits = &*selected;
        let bundles = bundle::form(profile, devices, waits, &mut context, &options.rules)?;
        let judge = judge::Judge {
            sources: options.sources(),
            rules: &options.rules,
            waits,
            programs: &context.programs,
            devices,
            copies: std::cell::OnceCell::new(),
        };
        let mut observer = Observer::new(waits, devices, iterations);
        let judged = judge.all(profile, bundles, &mut observer)?;
        let sources = judge.sources;
        let graph_breaks = match &options.capture {
            Some(range) => graph_breaks::find(profile, &mut context, &options.rules, waits, range)?,
            None => Vec::new(),
        };
        let once = self.once(&judged, waits);
        let mut sites = site::join(judged, |site| once[site.bundle.waits[0]]);
        judge::lean(&mut self.profile, observer, &context.programs, &mut sites)?;
        site::doubt(&mut sites, &sources);
        sites.iter_mut().for_each(|site| site.quote(&sources));
        let (refused, sites) = (sources.refused(), sites.into());
        let waits = selected;
        Ok(Judged {
            read: self,
            waits,
            drains,
            filtered_out,
            once,
            context,
            sites,
            refused,
            graph_breaks,
            numbers,
        })
    }

    /// The waits that pass the filter, and how many do not.
    fn select(&mut self, options: &Options) -> anyhow::Result<(WaitCosts, u64)> {
        let mut filter = options.filter.clone();
        filter.nvtx = filter.nvtx.or_else(|| options.capture.clone());
        let keep = filter.select(&mut self.profile, &self.devices, self.all.waits.iter())?;
        let left_out = keep.iter().filter(|keep| !**keep).count() as u64;
        fn kept<T: Clone>(column: &Arc<TiVec<WaitId, T>>, keep: &[bool]) -> Arc<TiVec<WaitId, T>> {
            match keep.iter().all(|keep| *keep) {
                true => column.clone(),
                false => column
                    .iter()
                    .zip(keep)
                    .filter(|(_, keep)| **keep)
                    .map(|(one, _)| one.clone())
                    .collect::<TiVec<_, _>>()
                    .into(),
            }
        }
        let WaitCosts { waits, drains } = &self.all;
        let waits = kept(waits, &keep);
        let drains = kept(drains, &keep);
        let clipped = waits
            .iter()
            .zip(drains.iter())
            .map(|(wait, &drain)| filter.clip_drain(&self.profile, wait, drain));
        let clipped: TiVec<WaitId, i64> = clipped.collect();
        let drains = if clipped == *drains { drains } else { clipped.into() };
        Ok((WaitCosts { waits, drains }, left_out))
    }
}

impl Judged {
    /// Judges the waits of the export that pass another filter.
    pub fn again(self, options: &Options) -> anyhow::Result<Self> {
        let numbers = if self.numbers.is_empty() { self.numbered() } else { self.numbers };
        self.read.judge_selected(options, numbers)
    }

    /// Frees texts that only judging needs.
    pub fn forget_texts(&mut self) {
        let nvtx = &mut self.read.profile.nvtx;
        (nvtx.payloads, nvtx.texts, nvtx.call_marks) = Default::default();
    }

    fn numbered(&self) -> Numbers {
        let mut numbers = Numbers::default();
        for (ix, site) in self.sites.iter_enumerated() {
            numbers.entry(site.bundle.pid).or_default().insert(site.key.clone(), ix.into());
        }
        numbers
    }

    /// Index of a site among all sites of the export, in order of first waits, whatever is selected. Sites
    /// that only the selection makes come last.
    pub fn number(&self, ix: SiteIx) -> usize {
        let site = &self.sites[ix];
        let known = self.numbers.get(&site.bundle.pid).and_then(|keys| keys.get(&site.key));
        known.copied().unwrap_or_else(|| self.known_numbers() + usize::from(ix))
    }

    /// Above every [`Self::number`].
    pub fn highest_number(&self) -> usize {
        let own = (0..self.sites.len()).map(|ix| self.number(ix.into()) + 1).max();
        own.unwrap_or(0).max(self.known_numbers())
    }

    fn known_numbers(&self) -> usize {
        self.numbers.values().map(FxHashMap::len).sum()
    }

    pub fn waits_of(&self, site: &Site) -> impl DoubleEndedIterator<Item = &Wait> {
        site.bundle.waits.iter().map(|&w| &self.waits[w])
    }

    /// `None` for waits of no site.
    pub fn site_of_waits(&self) -> TiVec<WaitId, Option<SiteIx>> {
        let mut site_of: TiVec<WaitId, Option<SiteIx>> = self.waits.iter().map(|_| None).collect();
        for (i, site) in self.sites.iter_enumerated() {
            site.bundle.waits.iter().for_each(|&w| site_of[w] = Some(i));
        }
        site_of
    }
}

/// Iterations marked by ranges: a detected loop may begin in the middle of a step.
fn told(iterations: &Option<Iterations>) -> Option<&Iterations> {
    iterations.as_ref().filter(|i| i.confidence.is_none())
}

/// The error of an export without CUDA calls (with the profiler's own message), or with unreadable ones.
pub fn no_calls(profile: &Profile) -> Option<InputError> {
    let path = profile.path().to_owned();
    if let Some(lack) = profile.lacks.iter().find(|lack| lack.fatal) {
        let command = commands::export(&path);
        return Some(InputError::CallsUnreadable { path, what: lack.what.clone(), loss: lack.loss, command });
    }
    if profile.calls.total() > 0 {
        return None;
    }
    let said = profile.target.profiler_messages(&["CUDA"]);
    let cut = profile.db.is_cut_trace() == Some(true);
    Some(InputError::NoCuda {
        path,
        why: match said.first() {
            Some(message) => format!(" (nsys says: {message})"),
            None if cut => " before the place where it is cut off".to_owned(),
            None => String::new(),
        },
        remedy: recapture::cuda_failed(&profile.target).map_or_else(
            || {
                let trace = profile.target.recorder == Recorder::TorchProfiler;
                let again = if trace { "record again" } else { "capture again with" };
                format!("{again}: {}", recapture::capture(&profile.target, ""))
            },
            str::to_owned,
        ),
    })
}
