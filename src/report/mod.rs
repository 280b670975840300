//! The result tree of analysed exports: sites in plain structs, ranked, numbered, summed.

mod assemble;
mod awaited;
mod edits;
mod launches;
mod light;
mod notes;
mod results;
mod savings;
mod scenario;

use crate::analysis::pricing::ResolvedScenario;
use crate::analysis::{CaptureAnalysis, Options, analyse};
use crate::frame::Waits;
use crate::model::Report;
use assemble::Assembler;
use light::Light;
use std::path::PathBuf;

/// Reads and analyses all exports into one report.
///
/// # Errors
/// [`crate::error::InputError`] for an export that cannot be read or holds no CUDA calls; other errors are defects.
pub fn run(paths: &[PathBuf], options: &Options) -> anyhow::Result<Report> {
    run_keeping(paths, options, |_, _| ())
}

/// [`run`], with the analysed exports themselves. They all stay in memory.
///
/// # Errors
/// As [`run`].
pub fn run_whole(paths: &[PathBuf], options: &Options) -> anyhow::Result<(Report, Vec<CaptureAnalysis>)> {
    let mut all = Vec::new();
    let report = run_keeping(paths, options, |found, _| all.push(found))?;
    Ok((report, all))
}

/// [`run`] of the whole and of the waits inside each of some NVTX ranges, these without prices. Exports are read once.
///
/// # Errors
/// As [`run`].
pub fn run_parts(
    paths: &[PathBuf],
    options: &Options,
    ranges: &[String],
) -> anyhow::Result<(Report, Vec<Report>)> {
    let inside = |range: &String| {
        let mut options = options.clone();
        options.filter.nvtx = Some(range.clone());
        options
    };
    let parts: Vec<Options> = std::iter::once(options.clone()).chain(ranges.iter().map(inside)).collect();
    let as_advised = ResolvedScenario::default();
    let mut assemblers: Vec<Assembler> =
        parts.iter().map(|part| Assembler::new(part, &as_advised, paths.len())).collect();
    for (number, path) in paths.iter().enumerate() {
        let mut found = CaptureAnalysis::read(path, options)?;
        let mut light = Light::read(path, options)?;
        for (n, (part, assembler)) in (1..).zip(parts.iter().zip(&mut assemblers)) {
            let again = n < parts.len();
            found.judge(part, again)?;
            let timed = light.stands_for(&mut found, part, again)?;
            let shown = light.capture.as_mut().filter(|_| timed).unwrap_or(&mut found);
            if n == 1 {
                shown.price(number, &as_advised, options, false);
            }
            assembler.add(shown)?;
        }
    }
    let mut reports = assemblers.into_iter().map(Assembler::finish);
    let whole = reports.next().unwrap_or_else(|| Assembler::new(options, &as_advised, 0).finish());
    Ok((whole, reports.collect()))
}

/// [`run`]; each export and its waits go to `keep` when the report has what it needs of them, for formats that show
/// single waits.
///
/// Which sites `--fix` and `--assume-fixed` name is known once all are priced as advised and ranked: then the exports wait in
/// memory for other prices, and none is read twice. Prices of the captured run do not rank either: a site has one id.
///
/// # Errors
/// As [`run`].
pub fn run_keeping(
    paths: &[PathBuf],
    options: &Options,
    mut keep: impl FnMut(CaptureAnalysis, Waits),
) -> anyhow::Result<Report> {
    let exports = paths.iter().map(|path| timed(analyse(path, options)?, options));
    if options.scenario.is_empty() && !options.as_captured {
        return assemble(exports, paths.len(), options, &ResolvedScenario::default(), keep);
    }
    let mut exports: Vec<CaptureAnalysis> = exports.collect::<anyhow::Result<_>>()?;
    let plain = Options { top: 0, as_captured: false, ..options.clone() };
    let as_advised = ResolvedScenario::default();
    let mut ranked = Assembler::new(&plain, &as_advised, paths.len());
    for (number, found) in exports.iter_mut().enumerate() {
        found.price(number, &as_advised, &plain, true);
        ranked.add(found)?;
    }
    let scenario = scenario::resolve(&ranked.finish(), &options.scenario)?;
    assemble(exports.into_iter().map(Ok), paths.len(), options, &scenario, &mut keep)
}

fn assemble(
    exports: impl Iterator<Item = anyhow::Result<CaptureAnalysis>>,
    count: usize,
    options: &Options,
    scenario: &ResolvedScenario,
    mut keep: impl FnMut(CaptureAnalysis, Waits),
) -> anyhow::Result<Report> {
    let mut assembler = Assembler::new(options, scenario, count);
    for (number, found) in exports.enumerate() {
        let mut found = found?;
        found.price(number, scenario, options, false);
        let waits = assembler.add(&found)?;
        keep(found, waits);
    }
    Ok(assembler.finish())
}

/// With the times of its light capture, if it has one.
fn timed(mut found: CaptureAnalysis, options: &Options) -> anyhow::Result<CaptureAnalysis> {
    let mut light = Light::read(found.profile.path(), options)?;
    let timed = light.stands_for(&mut found, options, false)?;
    Ok(light.capture.filter(|_| timed).unwrap_or(found))
}
