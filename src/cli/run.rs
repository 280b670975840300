//! `sync-report run`: captures a program, exports and reports in one go; ranks each into a file of their own.

use super::args::{Cli, RunArgs};
use super::report;
use anyhow::{Context, Result, bail};
use clap::Parser;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};
use sync_report::capture::launcher::{self, Launch};
use sync_report::capture::{self, Failed};
use sync_report::text::escape_terminal;

/// How long the first rank waits for the files of the others: nsys copies libraries into each, for up to a minute.
const OTHERS: Duration = Duration::from_secs(300);

/// File systems keep times in steps of up to this.
const COARSE: Duration = Duration::from_secs(2);

/// Captures and reports.
///
/// # Errors
/// [`Failed`] where a step of the capture fails; else one sentence.
pub fn run(mut args: RunArgs) -> Result<ExitCode> {
    if let Some(option) = args.program.first().filter(|word| word.as_encoded_bytes().starts_with(b"-")) {
        bail!("unexpected argument '{}' before the program (see --help)", option.to_string_lossy());
    }
    if let Some(launch) = launcher::part(&args.program)? {
        return launched(&args, &launch);
    }
    let ranks = launcher::rank().filter(|(_, ranks)| *ranks > 1);
    let own = !args.output.to_string_lossy().contains('%');
    let Some((rank, ranks)) = ranks.filter(|_| own) else { return alone(&args) };
    let folder = folder(&args.output, args.print)?;
    let began = SystemTime::now();
    args.output = folder.join("rank_%r").into();
    let reports = !args.no_report && !args.print && rank == "0";
    args.no_report = true;
    let code = alone(&args)?;
    if !reports {
        return Ok(code);
    }
    let start = Instant::now();
    let mut files = since(&folder, began);
    while files.len() < ranks as usize && start.elapsed() < OTHERS {
        std::thread::sleep(Duration::from_millis(500));
        files = since(&folder, began);
    }
    if files.len() < ranks as usize {
        say(&args, &format!("{} of {ranks} ranks have written their files", files.len()));
    }
    Ok(worse(code, of_files(&args, &files)?))
}

/// One program, as it is.
fn alone(args: &RunArgs) -> Result<ExitCode> {
    let request = args.request();
    if args.print {
        capture::printed(&request)?.lines().for_each(|line| println!("{}", escape_terminal(line)));
        return Ok(ExitCode::SUCCESS);
    }
    let captured = capture::capture(&request, &|text| say(args, text))?;
    if captured.interrupted {
        say(args, &format!("interrupted: {} holds what was recorded", captured.export.display()));
        return Ok(ExitCode::from(130));
    }
    let code = ExitCode::from(captured.exit);
    if args.no_report {
        return Ok(code);
    }
    Ok(worse(code, of_files(args, &[captured.export])?))
}

/// The ranks of a launcher: each captured by a run of its own, then one report.
fn launched(args: &RunArgs, launch: &Launch) -> Result<ExitCode> {
    let own = std::env::current_exe().context("this program's own file is not known")?;
    let folder = folder(&args.output, args.print)?;
    let name = folder.join("rank_%r");
    let mut words = launch.launcher.clone();
    words.push(own.into());
    words.extend(args.words());
    words.extend(["--output".into(), name.into(), "--".into()]);
    words.extend(launch.program.iter().cloned());
    if args.print {
        let words: Vec<String> =
            words.iter().map(|word| sync_report::text::shell_quote(&word.to_string_lossy())).collect();
        println!("{}", escape_terminal(&words.join(" ")));
        return Ok(ExitCode::SUCCESS);
    }
    if !args.force && !since(&folder, SystemTime::UNIX_EPOCH + COARSE).is_empty() {
        bail!("{} holds ranks of an earlier capture (--force replaces them)", folder.display());
    }
    let began = SystemTime::now();
    let (exit, interrupted) = capture::launch(&words)?;
    let files = since(&folder, began);
    if files.is_empty() {
        let message = format!("no rank has written a file into {}", folder.display());
        return Err(Failed { message, exit: if exit == 0 { 2 } else { exit } }.into());
    }
    if args.no_report || interrupted {
        return Ok(ExitCode::from(if interrupted { 130 } else { exit }));
    }
    Ok(worse(ExitCode::from(exit), of_files(args, &files)?))
}

/// The folder of the ranks' files, made where it is not there.
fn folder(name: &OsStr, print: bool) -> Result<PathBuf> {
    let folder = PathBuf::from(name);
    if folder.is_file() {
        bail!("{} is a file; -o names the folder of the ranks' files here", folder.display());
    }
    if !print {
        fs::create_dir_all(&folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
    }
    Ok(folder)
}

/// Exports of ranks in a folder that were written since a time.
fn since(folder: &Path, began: SystemTime) -> Vec<PathBuf> {
    let began = began - COARSE;
    let is_new = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let rank = name.strip_prefix("rank_").and_then(|name| name.strip_suffix(".sqlite"));
        rank.is_some_and(|rank| rank.bytes().all(|byte| byte.is_ascii_digit()))
            && path.metadata().and_then(|meta| meta.modified()).is_ok_and(|time| time >= began)
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(is_new).collect();
    files.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    files
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

fn say(args: &RunArgs, text: &str) {
    if !args.shared.quiet {
        let _ = writeln!(std::io::stderr(), "sync-report: {}", escape_terminal(text));
    }
}
