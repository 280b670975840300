//! The result tree of analysed exports: sites in plain structs, ranked, numbered, summed.

mod assemble;
mod awaited;
mod edits;
mod gpu_time;
mod host_calls;
mod launches;
mod notes;
mod over_ranks;
mod reading;
mod results;
mod savings;
pub mod scenario;

use crate::analysis::pricing::ResolvedScenario;
use crate::analysis::{Options, Priced, Read};
use crate::cost::simulate::Program;
use crate::error::InputError;
use crate::frame::WaitTable;
use crate::model::Report;
use crate::profile::parallel::divided;
use crate::vocabulary::ProfileIx;
use assemble::Assembler;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::{Mutex, PoisonError};

/// Reads and analyses all exports into one report. Unreadable exports are left out, with a warning.
///
/// # Errors
/// [`InputError`] of the first export if none can be read; other errors are defects.
pub fn run(paths: &[PathBuf], options: &Options) -> anyhow::Result<Report> {
    run_keeping(paths, options, |_, _| ())
}

/// [`run`], with the analysed exports, which all stay in memory.
pub fn run_whole(paths: &[PathBuf], options: &Options) -> anyhow::Result<(Report, Vec<Priced>)> {
    let mut all = Vec::new();
    let report = run_keeping(paths, options, |found, _| all.push(found))?;
    Ok((report, all))
}

/// [`run`], and a report without prices of the waits inside each NVTX range. Exports are read once.
pub fn run_parts(
    paths: &[PathBuf],
    options: &Options,
    ranges: &[String],
) -> anyhow::Result<(Report, Vec<Report>)> {
    let options = &Options { ranges: ranges.to_vec(), ..options.clone() };
    let inside = |range: &String| {
        let mut options = options.clone();
        options.filter.nvtx = Some(range.clone());
        options
    };
    let parts: Vec<Options> = std::iter::once(options.clone()).chain(ranges.iter().map(inside)).collect();
    let mut reports = as_advised(paths, &parts, false, &mut Vec::new(), |_, _, _| ())?;
    let whole = reports.remove(0);
    Ok((whole, reports))
}

/// [`run`]; `keep` gets each export and its waits after the report, for formats that show single waits.
///
/// The sites that `--fix` and `--assume-fixed` name are known only after judging. Until then exports wait in
/// memory for other prices: none is read twice.
pub fn run_keeping(
    paths: &[PathBuf],
    options: &Options,
    mut keep: impl FnMut(Priced, WaitTable),
) -> anyhow::Result<Report> {
    let mut left_out = Vec::new();
    if options.scenario.is_empty() {
        let keep = |found, _, waits| keep(found, waits);
        return Ok(as_advised(paths, slice::from_ref(options), false, &mut left_out, keep)?.remove(0));
    }
    let mut exports = Vec::new();
    let plain = Options { top: 0, ..options.clone() };
    // Numbered as in the report, which leaves out unreadable exports.
    let number = |found, program, _| exports.push((ProfileIx::from(exports.len()), found, program));
    let ranked = as_advised(paths, &[plain], true, &mut left_out, number)?.remove(0);
    let scenario = scenario::resolve(&ranked, &options.scenario)?;
    let (workers, each) = share(options, paths.len());
    let priced: Vec<Mutex<_>> = exports.iter_mut().map(Mutex::new).collect();
    divided(priced.len(), workers, |at| {
        let mut export = priced[at].lock().unwrap_or_else(PoisonError::into_inner);
        let (number, found, program) = &mut **export;
        found.prices = found.price(program.take().as_mut(), *number, &scenario, &each);
    });
    drop(priced);
    let mut assembler = Assembler::new(options, &scenario, paths.len());
    left_out.iter().for_each(|(path, error)| assembler.leave_out(path, error));
    for (_, found, _) in exports {
        let waits = assembler.add(&found)?;
        keep(found, waits);
    }
    assembler.finish()
}

/// Reads all exports and prices them as advised. Returns a report of each part; only the first, the whole,
/// has prices. `again`: `keep` gets the programs, for other prices. `left_out` gets the unreadable exports.
///
/// # Errors
/// The first export's if none can be read, and any that is no [`InputError`].
fn as_advised(
    paths: &[PathBuf],
    parts: &[Options],
    again: bool,
    left_out: &mut Vec<(PathBuf, anyhow::Error)>,
    mut keep: impl FnMut(Priced, Option<Program>, WaitTable),
) -> anyhow::Result<Vec<Report>> {
    let scenario = ResolvedScenario::default();
    let (workers, each) = share(&parts[0], paths.len());
    let new = |part| Assembler::new(part, &scenario, paths.len());
    let mut assemblers: Vec<Assembler> = parts.iter().map(new).collect();
    let read = |number: usize, path: &Path| -> anyhow::Result<_> {
        let (read, mut program) = Read::new(path, &each)?;
        let mut found = read.judge(&each)?;
        if parts.len() == 1 {
            found.forget_texts();
        }
        let prices = found.price(program.as_mut(), number.into(), &scenario, &each);
        Ok((found.with(prices), program.filter(|_| again)))
    };
    reading::side_by_side(paths, workers, parts[0].memory, read, |number, read| {
        let (mut found, program) = match read {
            Err(error) if error.is::<InputError>() => {
                assemblers.iter_mut().for_each(|assembler| assembler.leave_out(&paths[number], &error));
                left_out.push((paths[number].clone(), error));
                return Ok(());
            }
            read => read?,
        };
        let waits = assemblers[0].add(&found)?;
        for (part, assembler) in parts.iter().zip(&mut assemblers).skip(1) {
            found = found.again(part)?;
            assembler.add(&found)?;
        }
        keep(found, program, waits);
        anyhow::Ok(())
    })?;
    if left_out.len() == paths.len() && !paths.is_empty() {
        return Err(left_out.swap_remove(0).1);
    }
    assemblers.into_iter().map(Assembler::finish).collect()
}

/// The number of exports read at once, and the options with each one's share of threads.
fn share(options: &Options, exports: usize) -> (usize, Options) {
    let workers = options.threads.clamp(1, exports.max(1));
    (workers, Options { threads: (options.threads / workers).max(1), ..options.clone() })
}
