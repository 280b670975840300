//! `sync-report fix`: the advised edits as a patch.

use super::args::FixArgs;
use super::{folders, input, options, output};
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use sync_report::analysis::Options;
use sync_report::model::edit::Refusal;
use sync_report::patch::{self, EditChoice, PatchedFile};
use sync_report::render::patch as render;
use sync_report::report as reports;
use sync_report::report::scenario::no_site;
use sync_report::repository::Repository;
use sync_report::verdict::source::SourceRoot;
use sync_report::whole::{self, Whole};

pub fn run(args: FixArgs) -> Result<ExitCode> {
    let exports = input::exports(&folders::exports(&args.profiles)?, &args.shared)?;
    let checkout = args.repository.repository.clone();
    let roots = args.code.sources.roots();
    let repository = Repository::new(checkout.clone(), roots.clone());
    let editable = roots.iter().map(|root| root.new.clone()).chain([checkout.clone()]).collect();
    let source_roots = roots.into_iter().chain([SourceRoot { old: None, new: checkout }]);
    let options = Options {
        without_spread: true,
        source_roots: source_roots.filter(|_| !args.code.sources.no_source).collect(),
        recorded: args.code.sources.recorded(),
        rules: args.code.rules(),
        iteration_marker: args.iteration_marker.clone(),
        ..options::plain(&args.shared)
    };
    let mut options = exports.named(options);
    let report = reports::run(&exports.paths, &options)?;
    options.progress = None; // the bar goes before the diff comes
    // A mistyped site must not pass as nothing to edit.
    if let Some(id) = args.site.iter().find(|id| report.site(id).is_none()) {
        return Err(no_site(&report, id).into());
    }
    let wanted = EditChoice { sites: args.site.clone(), with_unsafe: args.unsafe_fixes, roots: editable };
    let patch = patch::plan(&report, &options.sources(), &wanted);
    let unread = |answer: &patch::Answer| answer.reason == Some(Refusal::NoSource);
    if !patch.sites.is_empty() && patch.sites.iter().all(unread) {
        output::exit_code(&report);
        bail!(
            "no source of this program is at hand: run it in the program's checkout, or say where that is with --source-root DIR"
        );
    }
    if args.apply {
        apply(&patch.files)?;
    } else {
        output::write(Path::new("-"), &args.shared, |_, out| {
            Ok(render::render(&patch, &|file| repository.path(file), out)?)
        })?;
    }
    if !args.shared.quiet {
        render::summary(&patch, args.apply).iter().for_each(|sentence| output::say(sentence));
    }
    Ok(output::exit_code(&report))
}

/// Writes all files or none: each is complete beside its target before the first replaces one. If a
/// replacement fails, the files before it get their old content back.
pub fn apply(files: &[PatchedFile]) -> Result<()> {
    let ready: Vec<Whole> = files.iter().map(prepared).collect::<Result<_>>()?;
    for (n, file) in ready.into_iter().enumerate() {
        let Err(error) = file.finish() else { continue };
        let stuck: Vec<String> = files[..n]
            .iter()
            .filter(|file| whole::write(&file.path, file.before.as_bytes()).is_err())
            .map(|file| file.path.display().to_string())
            .collect();
        return Err(match stuck.is_empty() {
            true => error.context("no file was changed"),
            false => error.context(format!("{} stay edited; take that back by hand", stuck.join(", "))),
        });
    }
    Ok(())
}

/// The edited file beside the old one, if the old one is still as read.
fn prepared(file: &PatchedFile) -> Result<Whole> {
    let name = || file.path.display().to_string();
    let now = fs::read(&file.path).with_context(|| format!("{}: cannot be read", name()))?;
    if now != file.before.as_bytes() {
        bail!("{}: changed while it was read; run it again", name());
    }
    let mut whole = Whole::begin(&file.path)?;
    whole.write_all(file.after.as_bytes()).with_context(|| format!("{}: cannot be written", name()))?;
    Ok(whole)
}
