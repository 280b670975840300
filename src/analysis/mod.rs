//! The flow from exports to a report: profile → waits → sites → verdicts → cost → result structs.

pub mod assemble;
pub mod filter;
pub mod judge;
pub mod notes;
pub mod pricing;
pub mod results;
pub mod savings;
pub mod spread;
pub mod timing;

use crate::cost::price::Prices;
use crate::cost::simulate::{Assumed, Program};
use crate::cost::{bounds, drain, iterations};
use crate::error::InputError;
use crate::profile::Profile;
use crate::profile::database::Progress;
use crate::report::{Report, Warning};
use crate::sites::context::Context;
use crate::sites::frames::PathRules;
use crate::sites::{Site, bundle};
use crate::timeline::Budget;
use crate::verdict::source::{Refused, SourceRoot, SourceTree};
use crate::vocabulary::Class;
use crate::waits::Wait;
use crate::waits::device::Devices;
use crate::{doctor, waits};
use filter::Filter;
use pricing::{WhatIf, Wishes};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a run is asked to do, whatever the format.
#[derive(Clone, Default)]
pub struct Options {
    /// Worker threads for reading; never changes a byte of the result.
    pub threads: usize,
    pub rules: PathRules,
    /// Where the sources of recorded paths are.
    pub source_roots: Vec<SourceRoot>,
    pub filter: Filter,
    /// Only what keeps NVTX ranges of this name from being captured as a CUDA graph.
    pub capture: Option<String>,
    pub classes: Vec<Class>,
    pub sort: Sort,
    /// Sites listed; 0 for all.
    pub top: usize,
    /// Calls and GPU operations up to which savings are simulated; [`SOON_SIMULATED`] if not given.
    pub simulate_up_to: Option<usize>,
    /// What the simulation takes where a capture does not show it.
    pub assumed: Assumed,
    /// What is to be simulated other than what is advised.
    pub what_if: WhatIf,
    /// Another capture of the same program to take times from.
    pub timing: Option<PathBuf>,
    /// Leaves out how costs vary within the capture: only JSON and comparisons show it.
    pub without_spread: bool,
    /// Draw the captures, all together with this budget: for pages that show them.
    pub timelines: Option<Budget>,
    pub progress: Option<Arc<dyn Progress>>,
}

/// Calls and GPU operations up to which savings are simulated unasked: reading takes longer than that.
pub const SOON_SIMULATED: usize = 2_000_000;

/// What ranks sites. Ties go by drain, blocked, then file and line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Drain, then blocked.
    #[default]
    Drain,
    Blocked,
    Waits,
    /// Longest single wait.
    Max,
    /// File and line.
    Location,
    /// The order in which to try fixes, then drain.
    Fix,
}

/// One export, analysed.
pub struct Analysed {
    pub profile: Profile,
    pub devices: Devices,
    /// Waits that passed the filter.
    pub waits: Vec<Wait>,
    /// Waits that did not.
    pub filtered_out: u64,
    pub context: Context,
    pub sites: Vec<Site>,
    /// Drain of each wait, in ns.
    pub drains: Vec<i64>,
    pub iterations: Option<iterations::Iterations>,
    /// What fixing each site saves, in the sites' order.
    pub prices: Prices,
    /// Kernels that work together with other processes.
    pub collectives: u64,
    /// Source files that were not read, and why.
    pub refused: Vec<Refused>,
    /// What limits the report, where the sites come from another capture.
    pub warnings: Option<Vec<Warning>>,
}

/// Reads and analyses all exports into one report.
///
/// # Errors
/// [`InputError`] for an export that cannot be read or holds no CUDA calls; other errors are defects.
pub fn run(paths: &[PathBuf], options: &Options) -> anyhow::Result<Report> {
    run_keeping(paths, options, drop)
}

/// One export's report together with what it rests on.
///
/// # Errors
/// As [`run`].
pub fn run_one(path: &Path, options: &Options) -> anyhow::Result<(Report, Analysed)> {
    let wishes = pricing::resolve(&[path.to_owned()], options)?;
    let found = analyse_with(path, options, &wishes.of(0))?;
    let mut assembler = assemble::Assembler::new(options, &wishes, 1);
    assembler.add(&found)?;
    Ok((assembler.finish(), found))
}

/// [`run`], with the analysed exports themselves: for formats that show single waits. They all stay in memory.
///
/// # Errors
/// As [`run`].
pub fn run_whole(paths: &[PathBuf], options: &Options) -> anyhow::Result<(Report, Vec<Analysed>)> {
    let mut all = Vec::new();
    let report = run_keeping(paths, options, |found| all.push(found))?;
    Ok((report, all))
}

/// The report; each export goes to `keep` when the report has what it needs of it.
fn run_keeping(
    paths: &[PathBuf],
    options: &Options,
    mut keep: impl FnMut(Analysed),
) -> anyhow::Result<Report> {
    let wishes = pricing::resolve(paths, options)?;
    let mut assembler = assemble::Assembler::new(options, &wishes, paths.len());
    for (number, path) in paths.iter().enumerate() {
        let found = analyse_with(path, options, &wishes.of(number))?;
        assembler.add(&found)?;
        keep(found);
    }
    Ok(assembler.finish())
}

/// Analyses one export.
///
/// # Errors
/// As [`run`].
pub fn analyse(path: &Path, options: &Options) -> anyhow::Result<Analysed> {
    analyse_with(path, options, &Wishes::default())
}

fn analyse_with(path: &Path, options: &Options, wishes: &Wishes) -> anyhow::Result<Analysed> {
    let mut capture = Capture::read(path, options)?;
    let mut context = Context::read(&mut capture.profile, &capture.waits)?;
    let Capture { profile, devices, waits, iterations, .. } = &mut capture;
    context.part_strangers(profile, waits)?;
    let bundles = bundle::form(profile, devices, waits, &mut context, &options.rules)?;
    let judge = judge::Judge {
        sources: source_tree(options),
        rules: &options.rules,
        waits,
        devices,
        iterations: iterations.as_ref(),
    };
    let judged = judge.all(profile, bundles)?;
    let mut sites = crate::sites::join(judged);
    sites.iter_mut().for_each(|site| site.quote(&judge.sources));
    let refused = judge.sources.refused();
    let found = capture.analysed(context, sites, refused, wishes, options);
    match &options.timing {
        Some(light) => timed(found, light, options, wishes),
        None => Ok(found),
    }
}

/// The sites of `found` with the times of another capture.
fn timed(found: Analysed, light: &Path, options: &Options, wishes: &Wishes) -> anyhow::Result<Analysed> {
    let mut capture = Capture::read(light, options)?;
    let context = Context::read(&mut capture.profile, &capture.waits)?;
    let view = timing::Light {
        profile: &capture.profile,
        waits: &capture.waits,
        iterations: capture.iterations.as_ref(),
    };
    let (sites, said) = timing::match_waits(&found, &view)?;
    let mut warnings = vec![said];
    warnings.extend(doctor::warnings(&found));
    let timed = capture.analysed(context, sites, found.refused, wishes, options);
    Ok(Analysed { warnings: Some(warnings), ..timed })
}

/// Whether savings are simulated: asked for, or quickly done.
fn simulates(profile: &Profile, options: &Options) -> bool {
    let events = profile.calls.len() + profile.ops.len();
    !options.what_if.is_empty() || events <= options.simulate_up_to.unwrap_or(SOON_SIMULATED)
}

/// One export's waits and what they cost, before anything is known of where they come from.
struct Capture {
    profile: Profile,
    devices: Devices,
    /// Waits that passed the filter.
    waits: Vec<Wait>,
    /// Waits that did not.
    filtered_out: u64,
    drains: Vec<i64>,
    /// What follows each wait on its thread.
    next: Vec<bounds::Next>,
    /// Of all waits.
    program: Program,
    iterations: Option<iterations::Iterations>,
    collectives: u64,
}

impl Capture {
    fn read(path: &Path, options: &Options) -> anyhow::Result<Self> {
        let mut profile = Profile::load(path, options.threads, options.progress.clone(), |name| {
            waits::api::classify(name).is_some()
        })?;
        if profile.calls.total() == 0 {
            return Err(no_cuda(&profile).into());
        }
        let mut kernels = Vec::new();
        let (devices, found, costs, program) = profile.with_nvtx(|profile| {
            let devices = Devices::new(profile);
            let found = waits::find::find(profile, &devices);
            // Drains and simulation are of all waits: a filtered-out wait still owns its gap.
            let drains = drain::drains(profile, &devices, &found);
            let next = bounds::following(profile, &found);
            let program = if simulates(profile, options) {
                Program::new(profile, &devices, &found, &options.assumed)
            } else {
                Program::outline(profile, &found, &options.assumed)
            };
            kernels = notes::kernel_names(profile);
            let costs: Vec<(i64, bounds::Next)> = drains.into_iter().zip(next).collect();
            (devices, found, costs, program)
        })?;
        let collectives = notes::collectives(&mut profile, &kernels)?;
        let iterations = iterations::detect(&mut profile)?;
        let mut filter = options.filter.clone();
        filter.nvtx = filter.nvtx.or_else(|| options.capture.clone());
        let keep = filter.select(&mut profile, &devices, &found)?;
        let filtered_out = keep.iter().filter(|keep| !**keep).count() as u64;
        let kept = found.into_iter().zip(costs).zip(keep).filter_map(|(wait, keep)| keep.then_some(wait));
        let clipped = |(w, (drain, next)): (Wait, (i64, bounds::Next))| {
            let drain = options.filter.clip_drain(&profile, &w, drain);
            (w, (drain, next))
        };
        let (waits, costs): (Vec<Wait>, Vec<(i64, bounds::Next)>) = kept.map(clipped).unzip();
        let (drains, next) = costs.into_iter().unzip();
        Ok(Self { profile, devices, waits, filtered_out, drains, next, program, iterations, collectives })
    }

    /// With its sites, priced.
    fn analysed(
        self,
        context: Context,
        sites: Vec<Site>,
        refused: Vec<Refused>,
        wishes: &Wishes,
        options: &Options,
    ) -> Analysed {
        let Self { profile, devices, waits, filtered_out, drains, next, program, iterations, collectives } =
            self;
        let priced = bounds::Waits { profile: &profile, devices: &devices, waits: &waits, next: &next };
        let prices = pricing::prices(&priced, iterations.as_ref(), program, &sites, wishes, options.threads);
        Analysed {
            profile,
            devices,
            waits,
            filtered_out,
            context,
            sites,
            drains,
            iterations,
            prices,
            collectives,
            refused,
            warnings: None,
        }
    }
}

/// Recorded paths are tried after the roots: on the machine that ran the program they are right.
fn source_tree(options: &Options) -> SourceTree {
    SourceTree::new(options.source_roots.clone()).allow_recorded(true)
}

/// An export without CUDA calls, with what the profiler itself said about that.
pub fn no_cuda(profile: &Profile) -> InputError {
    let said = doctor::profiler_messages(&profile.target, &["CUDA"]);
    InputError::NoCuda {
        path: profile.path().to_owned(),
        why: said.first().map_or_else(String::new, |m| format!(" (nsys says: {m})")),
        command: crate::profile::commands::capture(profile.target.command.as_deref(), ""),
    }
}
