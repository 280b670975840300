//! `sync-report fix`: the advised edits as a patch.

use super::args::FixArgs;
use super::{input, options, output};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use sync_report::analysis::Options;
use sync_report::model::Report;
use sync_report::patch::{self, PatchedFile, Wanted};
use sync_report::render::patch as render;
use sync_report::report as reports;
use sync_report::repository::Repository;

/// Prints the patch, or writes the files.
pub fn run(args: FixArgs) -> Result<ExitCode> {
    let exports = input::timed(&args.profiles, None, &args.shared)?;
    let options = Options {
        without_spread: true,
        source_roots: args.code.source_root.clone(),
        rules: args.code.rules(),
        iteration_marker: args.iteration_marker.clone(),
        ..options::plain(&args.shared)
    };
    let mut options = exports.named(options);
    let report = reports::run(&exports.paths, &options)?;
    options.progress = None; // the bar goes before the diff comes
    refuse_unknown(&report, &args.site)?;
    let roots = args.code.source_root.iter().map(|root| root.new.clone());
    let roots = roots.chain([args.repository.repository.clone()]).collect();
    let wanted = Wanted { sites: args.site.clone(), with_unsafe: args.unsafe_fixes, roots };
    let patch = patch::plan(&report, &options.sources(), &wanted);
    let setting = output::setting(&args.shared, None);
    let repository = Repository::new(args.repository.repository.clone(), args.code.source_root.clone());
    if args.apply {
        patch.files.iter().try_for_each(write)?;
    } else {
        output::write(Path::new("-"), &args.shared, |_, out| Ok(render::render(&patch, &repository, out)?))?;
    }
    for sentence in render::summary(&patch, args.apply) {
        (setting.say)(&sentence);
    }
    Ok(output::exit_code(&report))
}

/// A mistyped site is no reason to edit nothing in silence.
fn refuse_unknown(report: &Report, sites: &[String]) -> Result<()> {
    if let Some(id) = sites.iter().find(|id| report.site(id).is_none()) {
        bail!("no site {id} in this report; it has {}", report.sites.len());
    }
    Ok(())
}

/// Writes a file, if it is still what the edits were made for.
fn write(file: &PatchedFile) -> Result<()> {
    let name = || file.path.display().to_string();
    let now = fs::read(&file.path).with_context(|| format!("{}: cannot be read", name()))?;
    if now != file.before.as_bytes() {
        bail!("{}: changed while it was read; run it again", name());
    }
    fs::write(&file.path, &file.after).with_context(|| format!("{}: cannot be written", name()))
}
