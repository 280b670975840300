//! The flow from exports to a report: profile → waits → sites → verdicts → cost → result structs.

pub mod assemble;
pub mod filter;
pub mod judge;

use crate::cost::{drain, iterations};
use crate::error::InputError;
use crate::profile::Profile;
use crate::profile::database::Progress;
use crate::report::Report;
use crate::sites::context::Context;
use crate::sites::frames::PathRules;
use crate::sites::{Site, bundle};
use crate::verdict::source::{Refused, SourceRoot, SourceTree};
use crate::vocabulary::Class;
use crate::waits::Wait;
use crate::waits::device::Devices;
use crate::{doctor, waits};
use filter::Filter;
use std::path::PathBuf;
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
    pub progress: Option<Arc<dyn Progress>>,
}

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
    /// Source files that were not read, and why.
    pub refused: Vec<Refused>,
}

/// Reads and analyses all exports into one report.
///
/// # Errors
/// [`InputError`] for an export that cannot be read or holds no CUDA calls; other errors are defects.
pub fn run(paths: &[PathBuf], options: &Options) -> anyhow::Result<Report> {
    let mut assembler = assemble::Assembler::new(options);
    for path in paths {
        assembler.add(&analyse(path, options)?)?;
    }
    Ok(assembler.finish())
}

/// Analyses one export.
///
/// # Errors
/// As [`run`].
pub fn analyse(path: &std::path::Path, options: &Options) -> anyhow::Result<Analysed> {
    let mut profile = Profile::load(path, options.threads, options.progress.clone(), |name| {
        waits::api::classify(name).is_some()
    })?;
    if profile.calls.total() == 0 {
        return Err(no_cuda(&profile).into());
    }
    let (devices, found, drains) = profile.with_nvtx(|profile| {
        let devices = Devices::new(profile);
        let found = waits::find::find(profile, &devices);
        // Drains are decided over all waits: a filtered-out wait still owns its gap.
        let drains = drain::drains(profile, &devices, &found);
        (devices, found, drains)
    })?;
    let iterations = iterations::detect(&mut profile)?;
    let mut filter = options.filter.clone();
    filter.nvtx = filter.nvtx.or_else(|| options.capture.clone());
    let keep = filter.select(&mut profile, &devices, &found)?;
    let filtered_out = keep.iter().filter(|keep| !**keep).count() as u64;
    let (mut waits, drains): (Vec<Wait>, Vec<i64>) = found
        .into_iter()
        .zip(drains)
        .zip(keep)
        .filter_map(|(w, keep)| keep.then_some(w))
        .map(|(w, drain)| {
            let drain = options.filter.clip_drain(&profile, &w, drain);
            (w, drain)
        })
        .unzip();
    let mut context = Context::read(&mut profile, &waits)?;
    context.part_strangers(&mut profile, &mut waits)?;
    let bundles = bundle::form(&mut profile, &devices, &waits, &mut context, &options.rules)?;
    let judge = judge::Judge {
        sources: source_tree(options),
        rules: &options.rules,
        waits: &waits,
        devices: &devices,
        iterations: iterations.as_ref(),
    };
    let judged = judge.all(&mut profile, bundles)?;
    let refused = judge.sources.refused();
    let sites = crate::sites::join(judged);
    Ok(Analysed { profile, devices, waits, filtered_out, context, sites, drains, iterations, refused })
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
