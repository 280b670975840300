//! Files that the arguments stand for: folders of exports, patterns, `runs/:64`.

use super::args::Cli;
use anyhow::{Result, bail};
use clap::CommandFactory;
use globset::GlobBuilder;
use rustc_hash::FxHashSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};
use sync_report::error::InputError;
use sync_report::profile::commands::{FOLDER, TRACES, is_folder_name, is_report_name, is_trace_name, stem};
use sync_report::profile::database::begins_like_trace;
use sync_report::ranks::numbers::natural;
use sync_report::ranks::tables::RANKS;
use sync_report::text::{self, with_suffix};

/// Exports and reports in the order typed; within a folder or pattern by name, `rank_10` after `rank_9`.
///
/// # Errors
/// [`InputError::NotFound`] where one of several is missing: a typo, no damaged rank.
pub fn exports(arguments: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let found = each(arguments, &in_folder, once_each)?;
    let missing = |path: &&PathBuf| !there(path);
    if let Some(command) = found.first().filter(missing).and_then(|word| meant(word)) {
        bail!("{}: no such file, and no command; did you mean `sync-report {command}`?", found[0].display());
    }
    let missing = found.iter().find(|path| found.len() > 1 && missing(path));
    missing.map_or(Ok(found.clone()), |path| Err(InputError::NotFound(path.clone()).into()))
}

fn meant(word: &Path) -> Option<String> {
    let word = word.to_str().filter(|word| word.chars().all(|c| c.is_ascii_alphabetic()))?;
    let cli = Cli::command();
    text::nearest(word, cli.get_subcommands().map(clap::Command::get_name)).map(str::to_owned)
}

/// Folders with results of `--format parquet`, likewise.
pub fn results(arguments: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let has_ranks = |path: &Path| path.join(RANKS).is_file();
    let inside = |folder: &Path| entries(folder, |path| !has_ranks(folder) && has_ranks(path));
    each(arguments, &inside, |found| found)
}

fn there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// An argument that is a file, or a folder in which `inside` finds nothing, stands for itself. `wanted`
/// selects among a pattern's matches.
fn each(
    arguments: &[PathBuf],
    inside: &dyn Fn(&Path) -> Vec<PathBuf>,
    wanted: fn(Vec<PathBuf>) -> Vec<PathBuf>,
) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for argument in arguments {
        let typed = argument.to_str().filter(|_| !there(argument));
        let first = typed.and_then(|text| text.rsplit_once(':'));
        let first = first.and_then(|(path, most)| Some((PathBuf::from(path), most.parse::<usize>().ok()?)));
        let (path, most) = first.unwrap_or_else(|| (argument.clone(), usize::MAX));
        let mut found = if there(&path) { vec![path.clone()] } else { wanted(matching(&path)?) };
        if let [only] = &found[..]
            && only.is_dir()
        {
            let within = inside(only);
            found = if within.is_empty() { found } else { within };
        }
        found.truncate(most);
        all.extend(if found.is_empty() { vec![argument.clone()] } else { found });
    }
    Ok(all)
}

/// Exports and reports of a folder; none if the folder is an export itself.
fn in_folder(folder: &Path) -> Vec<PathBuf> {
    let is_export = |path: &Path| path.join("StringIds.parquet").is_file();
    if is_export(folder) || is_folder_name(folder) {
        return Vec::new();
    }
    let wanted = |path: &Path| {
        let is_file =
            path.extension().is_some_and(|e| e == "sqlite") || is_report_name(path) || is_trace(path);
        is_file || is_export(path)
    };
    once_each(entries(folder, wanted))
}

/// Folders hold other JSON too.
fn is_trace(path: &Path) -> bool {
    is_trace_name(path) && begins_like_trace(path)
}

/// Drops captures that are there in a better form: a report in several forms is one rank, and so is a capture
/// without backtraces (NAME.light.sqlite) beside one with them.
fn once_each(all: Vec<PathBuf>) -> Vec<PathBuf> {
    let names: FxHashSet<&OsStr> = all.iter().map(|path| path.as_os_str()).collect();
    let has = |stem: &Path, suffix: &str| names.contains(with_suffix(stem, suffix).as_os_str());
    let again = |path: &Path| {
        let own = stem(path);
        let light = own.to_str().and_then(|name| name.strip_suffix(".light")).map(PathBuf::from);
        let forms = [".sqlite", ".nsys-rep", FOLDER].iter().chain(TRACES);
        let full = light.is_some_and(|full| forms.clone().any(|form| has(&full, form)));
        let better = if is_report_name(path) { &[".sqlite", FOLDER][..] } else { &[".sqlite"] };
        // A packed trace beside the plain one.
        let unpacked = path.extension().is_some_and(|e| e == "gz").then(|| path.with_extension(""));
        let twice = unpacked.is_some_and(|unpacked| names.contains(unpacked.as_os_str()));
        full || twice
            || !is_trace_name(path)
                && path.extension().is_none_or(|e| e != "sqlite")
                && better.iter().any(|suffix| has(&own, suffix))
    };
    all.iter().filter(|path| !again(path)).cloned().collect()
}

/// Hidden entries are left out; the order is that of names.
fn entries(folder: &Path, wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let hidden = |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    let all = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = all.filter(|path| !hidden(path) && wanted(path)).collect();
    found.sort_by_cached_key(|path| natural(&path.to_string_lossy()));
    found
}

/// Paths that a pattern matches, for shells that do not expand it.
fn matching(pattern: &Path) -> Result<Vec<PathBuf>> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let text = part.as_os_str().to_string_lossy();
        let is_pattern = matches!(part, Component::Normal(_)) && text.contains(['*', '?', '[']);
        if !is_pattern {
            found.iter_mut().for_each(|path| path.push(part));
            continue;
        }
        let Ok(glob) = GlobBuilder::new(&text).literal_separator(true).build() else { return Ok(Vec::new()) };
        let glob = glob.compile_matcher();
        let named = |path: &Path| path.file_name().is_some_and(|name| glob.is_match(name));
        let within = |folder: &PathBuf| {
            let shown = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            let bare = |path: PathBuf| path.strip_prefix(".").map_or(path.clone(), Path::to_owned);
            entries(shown, named).into_iter().map(bare)
        };
        found = found.iter().flat_map(within).collect();
    }
    found.retain(|path| there(path));
    Ok(found)
}
