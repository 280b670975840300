//! `sync-report run`: captures a program, exports and reports in one go; ranks each into a file of their own.

use super::args::{Cli, RunArgs};
use super::output::tell;
use super::report;
use anyhow::{Context, Result, bail};
use clap::Parser;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};
use sync_report::capture::launcher::{self, Launch};
use sync_report::capture::{self, Failed, Heard, INTERRUPTED, Session};
use sync_report::text::{self, escape_terminal};

/// How long the first rank waits for the files of the others: nsys copies libraries into each, for up to a minute.
const OTHERS: Duration = Duration::from_secs(300);
/// When it says that it waits.
const SOON: Duration = Duration::from_secs(5);
/// The file in which ranks say how many they are.
const COUNT: &str = ".ranks";
/// A rank whose capture failed leaves a file that begins so.
const FAILED: &str = ".failed_";

/// Captures and reports.
///
/// # Errors
/// [`Failed`] where a step of the capture fails; else one sentence.
pub fn run(mut args: RunArgs) -> Result<ExitCode> {
    if let Some(option) = args.program.first().filter(|word| word.as_encoded_bytes().starts_with(b"-")) {
        bail!("unexpected argument '{}' before the program (see --help)", option.to_string_lossy());
    }
    if let Some(session) = &args.session {
        return served(&args, session);
    }
    if args.attach.is_some() {
        return alone(&args);
    }
    if let Some(folder) = args.rank_folder.take() {
        return one_of(args, &folder, true);
    }
    if let Some(launch) = launcher::part(&args.program)? {
        return launched(&args, &launch);
    }
    let Some(ranks) = launcher::ranks() else { return alone(&args) };
    let first = is_first();
    if launcher::is_of_rank(&args.output) {
        args.no_report |= !first;
        return alone(&args);
    }
    let folder = folder(&args.output, args.print)?;
    let mut before = files_in(&folder);
    // Without --force no rank replaces a file: one that is there may be of a rank that was quicker.
    before.retain(|path, _| args.force || rank_of(path).is_none_or(|rank| rank >= ranks as usize));
    let reports = !args.no_report && !args.print && first;
    // A launcher ends its ranks once one has failed: the report is made all the same.
    let heard = Heard::listen()?;
    let done = one_of(args.clone(), &folder, !args.no_report);
    if !reports {
        return done;
    }
    wait(&args, &folder, &before, ranks as usize, &heard);
    let report = of_ranks(&args, &folder, &before);
    Ok(worse(done?, report?))
}

/// Waits until each rank has left a file, or has failed.
fn wait(args: &RunArgs, folder: &Path, before: &Files, ranks: usize, heard: &Heard) {
    let (start, mut said) = (Instant::now(), false);
    let missing = || {
        let gone = failed(folder).into_iter().filter(|(rank, _)| *rank < ranks);
        ranks.saturating_sub(since(folder, before).len() + gone.count())
    };
    while missing() > 0 && start.elapsed() < OTHERS && !heard.any() {
        if !said && start.elapsed() > SOON {
            let ranks = text::counted(missing() as u64, "more rank");
            tell(&args.shared, &format!("waiting for the files of {ranks}"));
            said = true;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// One program, as it is.
fn alone(args: &RunArgs) -> Result<ExitCode> {
    let request = args.request();
    if args.print {
        capture::printed(&request)?.lines().for_each(|line| println!("{}", escape_terminal(line)));
        return Ok(ExitCode::SUCCESS);
    }
    let captured = capture::capture(&request, &|text| tell(&args.shared, text))?;
    if captured.interrupted {
        tell(&args.shared, &format!("interrupted: {} holds what was recorded", captured.export.display()));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let code = ExitCode::from(captured.exit);
    if args.no_report {
        return Ok(code);
    }
    Ok(worse(code, of_files(args, &[captured.export])?))
}

/// A program that another command records.
fn served(args: &RunArgs, session: &Session) -> Result<ExitCode> {
    if args.print {
        return alone(args);
    }
    let (exit, interrupted) = capture::serve(&args.request(), session, &|text| tell(&args.shared, text))?;
    Ok(ExitCode::from(if interrupted { INTERRUPTED } else { exit }))
}

/// A rank, without a report; `told`: it tells the one that reports of itself.
fn one_of(mut args: RunArgs, folder: &Path, told: bool) -> Result<ExitCode> {
    let rank = launcher::rank().unwrap_or_else(|| "0".to_owned());
    let count = launcher::ranks().unwrap_or(1);
    let failed = folder.join(format!("{FAILED}{rank}"));
    if told {
        let _ = fs::remove_file(&failed);
        fs::write(folder.join(COUNT), count.to_string())
            .with_context(|| format!("cannot write to the folder {}", folder.display()))?;
    }
    // nsys' words for names are of no use here.
    args.output = folder.join(format!("rank_{rank}")).to_string_lossy().replace('%', "%%").into();
    args.no_report = true;
    if args.local_rank {
        let local = std::env::var("LOCAL_RANK").unwrap_or(rank);
        // Behind `python -u SCRIPT`, or `python -u -m MODULE`.
        let at = if args.program.get(2).is_some_and(|word| word == "-m") { 4 } else { 3 };
        args.program.insert(at.min(args.program.len()), format!("--local_rank={local}").into());
    }
    alone(&args).inspect_err(|_| {
        if told {
            let _ = fs::write(failed, "");
        }
    })
}

fn is_first() -> bool {
    launcher::rank().is_some_and(|rank| rank == "0")
}

/// Ranks whose capture failed, and the files that say so.
fn failed(folder: &Path) -> Vec<(usize, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let of_rank = |entry: fs::DirEntry| {
        let rank = entry.file_name().to_str()?.strip_prefix(FAILED)?.parse().ok()?;
        Some((rank, entry.path()))
    };
    entries.filter_map(of_rank).collect()
}

/// Removes what ranks leave for one another.
fn clear(folder: &Path) {
    for file in failed(folder).into_iter().map(|(_, file)| file).chain([folder.join(COUNT)]) {
        let _ = fs::remove_file(file);
    }
}

/// The ranks of a launcher: each captured by a run of its own, then one report.
fn launched(args: &RunArgs, launch: &Launch) -> Result<ExitCode> {
    let own = std::env::current_exe().context("this program's own file is not known")?;
    let folder = folder(&args.output, args.print)?;
    // A launcher may start its ranks elsewhere.
    let absolute = std::path::absolute(&folder)?;
    let mut words = launch.launcher.clone();
    words.push(own.into());
    words.extend(args.words());
    words.extend(launch.local_rank.then(|| "--local-rank".into()));
    words.extend(["--rank-folder".into(), absolute.into(), "--".into()]);
    words.extend(launch.program.iter().cloned());
    if args.print {
        print!("{}", escape_terminal(capture::typed(&words, &args.withhold).trim_end()));
        println!("\n# Each rank then runs:");
        return one_of(RunArgs { program: launch.program.clone(), ..args.clone() }, &folder, false);
    }
    let before = files_in(&folder);
    if let Some(file) = before.keys().next().filter(|_| !args.force) {
        bail!("{} exists (--force replaces the ranks' files)", file.display());
    }
    let (exit, interrupted) = capture::launch(&words, &[])?;
    let files = since(&folder, &before);
    // srun takes Ctrl-C for a question, and goes on.
    if interrupted && exit != 0 && !files.is_empty() {
        let message = format!(
            "interrupted: {} hold{} what was recorded",
            named(&files, &folder),
            if files.len() == 1 { "s" } else { "" }
        );
        tell(&args.shared, &message);
        clear(&folder);
        return Ok(ExitCode::from(INTERRUPTED));
    }
    if files.is_empty() {
        clear(&folder);
        if interrupted {
            return Err(Failed::interrupted().into());
        }
        let message = format!("no rank has written a file into {}", folder.display());
        return Err(Failed { message, exit: if exit == 0 { 2 } else { exit } }.into());
    }
    // Several launchers of one job report once.
    if launcher::ranks().is_some() && !is_first() {
        return Ok(ExitCode::from(exit));
    }
    if args.no_report {
        clear(&folder);
        return Ok(ExitCode::from(exit));
    }
    Ok(worse(ExitCode::from(exit), of_ranks(args, &folder, &before)?))
}

fn named(files: &[PathBuf], folder: &Path) -> String {
    match files {
        [one] => one.display().to_string(),
        files => format!("{} files in {}", files.len(), folder.display()),
    }
}

/// The folder of the ranks' files, made where it is not there.
fn folder(name: &OsStr, print: bool) -> Result<PathBuf> {
    let folder = capture::named(name)?;
    if folder.is_file() {
        bail!("{} is a file; -o names the folder of the ranks' files here", folder.display());
    }
    if !print {
        fs::create_dir_all(&folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
    }
    Ok(folder)
}

/// Exports, with the times at which they were written.
type Files = BTreeMap<PathBuf, Option<SystemTime>>;

/// Exports of ranks in a folder, with the times at which they were written.
fn files_in(folder: &Path) -> Files {
    let is_rank = |path: &PathBuf| rank_of(path).is_some();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let written = |path: &PathBuf| path.metadata().and_then(|meta| meta.modified()).ok();
    entries.filter(is_rank).map(|path| (path.clone(), written(&path))).collect()
}

/// The rank of an export, by its name.
fn rank_of(path: &Path) -> Option<usize> {
    let rank = path.file_name()?.to_str()?.strip_prefix("rank_")?.strip_suffix(".sqlite")?;
    rank.parse().ok().filter(|_| !rank.starts_with('+'))
}

/// The ranks' exports that are new, or written anew, and not of a rank whose capture failed.
fn since(folder: &Path, before: &Files) -> Vec<PathBuf> {
    let failed = failed(folder);
    let now = files_in(folder).into_iter().filter(|(path, written)| before.get(path) != Some(written));
    let good = now.filter(|(path, _)| !failed.iter().any(|(rank, _)| rank_of(path) == Some(*rank)));
    let mut files: Vec<PathBuf> = good.map(|(path, _)| path).collect();
    files.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    files
}

/// The report of the ranks that have written their files; says which have not, and which are of an earlier capture.
fn of_ranks(args: &RunArgs, folder: &Path, before: &Files) -> Result<ExitCode> {
    let files = since(folder, before);
    let count = fs::read_to_string(folder.join(COUNT)).ok().and_then(|count| count.parse::<usize>().ok());
    clear(folder);
    if let Some(count) = count.filter(|count| files.len() < *count) {
        tell(&args.shared, &format!("{} of {count} ranks have written their files", files.len()));
    }
    let old: Vec<String> =
        before.keys().filter(|path| !files.contains(path)).map(|path| path.display().to_string()).collect();
    if !old.is_empty() {
        tell(&args.shared, &format!("{} of an earlier capture: not in this report", old.join(", ")));
    }
    if files.is_empty() {
        bail!("no rank has written a file into {}", folder.display());
    }
    of_files(args, &files)
}

/// The report that `sync-report FILE…` prints.
fn of_files(args: &RunArgs, files: &[PathBuf]) -> Result<ExitCode> {
    let shared = &args.shared;
    let mut words: Vec<OsString> = vec!["sync-report".into()];
    words.extend(shared.width.map(|width| format!("--width={width}").into()));
    words.extend(shared.quiet.then(|| "--quiet".into()));
    words.push("--".into());
    words.extend(files.iter().map(|file| file.clone().into()));
    super::threads::reserve()?;
    super::own::read()?;
    report::run(Cli::try_parse_from(words)?.report)
}

/// The program's exit code; the report's where the program ended well.
fn worse(program: ExitCode, report: ExitCode) -> ExitCode {
    if program == ExitCode::SUCCESS { report } else { program }
}
