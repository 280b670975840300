//! `sync-report diff`: what changed between two captures.

use super::args::DiffArgs;
use super::{folders, input, options, output};
use anyhow::{Context, Result, anyhow, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use sync_report::analysis::Options;
use sync_report::diff::{self, Snapshot};
use sync_report::formats::{Compared, Setting};
use sync_report::model::timeline::WHOLE;
use sync_report::report as reports;

pub fn run(args: DiffArgs) -> Result<ExitCode> {
    let (before, after) = (ranks(&args.before)?, ranks(&args.after)?);
    output::refuse_input(&args.output, &[&before[..], &after].concat())?;
    let mut options = options::selected(&args.select, &args.shared);
    options.timelines = args.format.timelines.then(|| WHOLE.share(2));
    // Without roots of its own, BEFORE reads the files of today, whose lines may have moved since.
    let own_sources = !args.before_source_root.is_empty();
    let mut old = options.clone();
    if own_sources {
        old.source_roots = args.before_source_root;
    }
    let (before, old_damage) = side(&before, &old, &args.shared, own_sources)?;
    let (after, damage) = side(&after, &options, &args.shared, true)?;
    drop((old, options)); // the progress bar goes before the report comes
    let report = diff::compare(&before, &after);
    let drawings = [before, after].map(|side| side.report.timelines);
    let setting = Setting { all: args.all, ..Setting::default() };
    output::print(args.format, &Compared { report, drawings }, setting, &args.output, &args.shared)?;
    Ok(if damage == ExitCode::SUCCESS { old_damage } else { damage })
}

/// One file per rank, separated by commas or in a folder. A name that exists is not split at commas.
pub fn ranks(path: &Path) -> Result<Vec<PathBuf>> {
    match path.to_str() {
        Some(text) if !path.exists() => {
            folders::exports(&text.split(',').map(PathBuf::from).collect::<Vec<_>>())
        }
        _ => folders::exports(&[path.to_owned()]),
    }
}

/// Exports analysed now, or a report kept as JSON. The exit code is 2 if rows of an export were damaged.
pub fn side(
    paths: &[PathBuf],
    options: &Options,
    shared: &super::args::SharedArgs,
    own_sources: bool,
) -> Result<(Snapshot, ExitCode)> {
    if let Some(path) = paths.iter().find(|p| is_json(p)) {
        if paths.len() > 1 {
            bail!("{}: a report in JSON stands for a whole side; give it alone", path.display());
        }
        let bytes = std::fs::read(path).with_context(|| format!("{}: cannot be read", path.display()))?;
        let side = Snapshot::from_json(&bytes).map_err(|e| anyhow!("{}: {e}", path.display()))?;
        return Ok((side, ExitCode::SUCCESS));
    }
    let exports = input::exports(paths, shared)?;
    let options = exports.named(options.clone());
    let found = reports::run(&exports.paths, &options)?;
    let damage = output::exit_code(&found);
    Ok((Snapshot::of(found, own_sources), damage))
}

/// By name, else by content: an export never begins with a brace.
fn is_json(path: &Path) -> bool {
    let named = path.extension().is_some_and(|e| e == "json") && path.is_file();
    named || input::head(path, 64).is_some_and(|head| head.trim_ascii_start().first() == Some(&b'{'))
}
