//! What was typed as the files that it stands for: folders of exports, patterns, `runs/:64`.

use super::args::Cli;
use super::input::with_suffix;
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
use sync_report::text;

/// The exports and reports that the arguments name, in the order typed; those of a folder or pattern in the order of
/// their names, `rank_10` after `rank_9`.
///
/// # Errors
/// [`InputError::NotFound`] where one of several is not there: a slip of the pen, no damaged rank.
pub fn exports(arguments: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let found = each(arguments, &in_folder, once_each)?;
    let missing = |path: &&PathBuf| !there(path);
    if let Some(command) = found.first().filter(missing).and_then(|word| meant(word)) {
        bail!("{}: no such file, and no command; did you mean `sync-report {command}`?", found[0].display());
    }
    let missing = found.iter().find(|path| found.len() > 1 && missing(path));
    missing.map_or(Ok(found.clone()), |path| Err(InputError::NotFound(path.clone()).into()))
}

/// The command that a mistyped word is nearest to.
fn meant(word: &Path) -> Option<String> {
    let word = word.to_str().filter(|word| word.chars().all(|c| c.is_ascii_alphabetic()))?;
    let cli = Cli::command();
    text::nearest(word, cli.get_subcommands().map(clap::Command::get_name)).map(str::to_owned)
}

/// The folders that hold results of `--format parquet`, likewise.
pub fn results(arguments: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let has_ranks = |path: &Path| path.join(RANKS).is_file();
    let inside = |folder: &Path| entries(folder, |path| !has_ranks(folder) && has_ranks(path));
    each(arguments, &inside, |found| found)
}

fn there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// What each argument stands for; itself, where it is a file or a folder that `inside` finds nothing in. `wanted`: which of
/// those that a pattern matches.
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

/// The exports and reports of a folder; none of one that is an export itself.
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

/// Whether a file has the name of a trace and begins like one: folders hold other JSON too.
fn is_trace(path: &Path) -> bool {
    is_trace_name(path) && begins_like_trace(path)
}

/// Without what stands for a capture that is there in a better form: one report in several forms is one rank, and a capture
/// without backtraces beside one with them (NAME.light.sqlite) is of the same rank.
fn once_each(all: Vec<PathBuf>) -> Vec<PathBuf> {
    let names: FxHashSet<&OsStr> = all.iter().map(|path| path.as_os_str()).collect();
    let has = |stem: &Path, suffix: &str| names.contains(with_suffix(stem, suffix).as_os_str());
    let again = |path: &Path| {
        let own = stem(path);
        let light = own.to_str().and_then(|name| name.strip_suffix(".light")).map(PathBuf::from);
        let forms = [".sqlite", ".nsys-rep", FOLDER].iter().chain(TRACES);
        let full = light.is_some_and(|full| forms.clone().any(|form| has(&full, form)));
        let better = if is_report_name(path) { &[".sqlite", FOLDER][..] } else { &[".sqlite"] };
        // A trace and the same packed.
        let unpacked = path.extension().is_some_and(|e| e == "gz").then(|| path.with_extension(""));
        let twice = unpacked.is_some_and(|unpacked| names.contains(unpacked.as_os_str()));
        full || twice
            || !is_trace_name(path)
                && path.extension().is_none_or(|e| e != "sqlite")
                && better.iter().any(|suffix| has(&own, suffix))
    };
    all.iter().filter(|path| !again(path)).cloned().collect()
}

/// Those entries of a folder, hidden ones left out, in the order of their names.
fn entries(folder: &Path, wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let hidden = |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    let all = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = all.filter(|path| !hidden(path) && wanted(path)).collect();
    found.sort_by_cached_key(|path| natural(&path.to_string_lossy()));
    found
}

/// The paths that a pattern matches, for shells that hand it on; none where it is no pattern.
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
