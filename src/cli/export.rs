//! Exports reports through nsys, once, into files beside them. An interrupted run ends nsys, leaving nothing.

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};
use sync_report::error::InputError;
use sync_report::replay::error::ReplayError;
use sync_report::text::shell_quote;
use tempfile::TempDir;

/// Prefix of the folder for an export under way; the process id follows.
const WORK: &str = ".sync-report-";
/// Interval of looks at a running nsys: too short to notice, at no cost.
const LOOK: Duration = Duration::from_millis(20);

/// Exports a report into `.NAME.SIZE-TIME.sqlite` beside it, for the next run too; in a directory that cannot
/// be written, into a temporary one.
///
/// # Errors
/// [`InputError`] where nsys is missing or fails, [`ReplayError::Interrupted`] after Ctrl-C.
pub fn export(report: &Path, quiet: bool) -> Result<(PathBuf, Option<TempDir>)> {
    let cached = cache_path(report)?;
    if is_own_file(&cached) {
        return Ok((cached, None));
    }
    let dir = cached.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sweep(dir, is_abandoned);
    let prefix = format!("{WORK}{}-", std::process::id());
    let (work, beside) = match tempfile::Builder::new().prefix(&prefix).tempdir_in(dir) {
        Ok(work) => (work, true),
        Err(_) => (tempfile::tempdir().context("no temporary directory to export into")?, false),
    };
    // Written under another name and moved when complete: an interrupted run leaves no half export.
    let fresh = work.path().join("export.sqlite");
    run_nsys(report, &fresh, quiet)?;
    if !beside {
        return Ok((fresh, Some(work)));
    }
    fs::rename(&fresh, &cached).with_context(|| format!("{}: cannot be written", cached.display()))?;
    sweep(dir, |name| is_export_of(name, report) && cached.file_name() != Some(OsStr::new(name)));
    Ok((cached, None))
}

/// Size and time of the report are in the name: a new capture under the same name is exported anew.
fn cache_path(report: &Path) -> Result<PathBuf> {
    let meta = fs::metadata(report).with_context(|| format!("{}: cannot be read", report.display()))?;
    let changed =
        meta.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok()).map_or(0, |d| d.as_millis());
    Ok(report.with_file_name(format!("{}{}-{changed}.sqlite", hidden(report), meta.len())))
}

fn hidden(report: &Path) -> String {
    format!(".{}.", report.file_stem().unwrap_or_default().to_string_lossy())
}

/// Whether a name is of an export of this report, in any state of the report.
fn is_export_of(name: &str, report: &Path) -> bool {
    let rest = name.strip_prefix(&hidden(report)).and_then(|rest| rest.strip_suffix(".sqlite"));
    let numbers = rest.and_then(|rest| rest.split_once('-'));
    numbers.is_some_and(|(size, time)| size.parse::<u64>().is_ok() && time.parse::<u128>().is_ok())
}

/// Whether a folder's process was killed while it exported.
fn is_abandoned(name: &str) -> bool {
    let pid = name.strip_prefix(WORK).and_then(|rest| rest.split_once('-')).map(|(pid, _)| pid);
    // Only where processes can be looked up.
    let is_gone = |pid: &str| Path::new("/proc/self").exists() && !Path::new("/proc").join(pid).exists();
    pid.is_some_and(|pid| pid.parse::<u32>().is_ok() && is_gone(pid))
}

/// Removes this user's leftovers in a folder, as far as possible.
fn sweep(dir: &Path, is_left: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_name().to_str().is_some_and(&is_left) && is_own(&path) {
            let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        }
    }
}

/// In a shared folder somebody else may have planted the file.
fn is_own_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file()) && is_own(path)
}

#[cfg(unix)]
fn is_own(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    // A new file tells who this user is.
    static USER: LazyLock<Option<u32>> =
        LazyLock::new(|| Some(tempfile::tempfile().ok()?.metadata().ok()?.uid()));
    let owner = fs::symlink_metadata(path).map(|meta| meta.uid());
    owner.is_ok_and(|owner| *USER == Some(owner))
}

#[cfg(not(unix))]
fn is_own(_: &Path) -> bool {
    true
}

/// Into SQLite, which a report reads sooner. nsys 2025.3.1 writes a parquetdir of two million calls and
/// ranges in 9.0 s (SQLite 8.9 s), of 12,000 in 0.46 s (0.57 s). Both hold the payloads of Python marks.
fn run_nsys(report: &Path, export: &Path, quiet: bool) -> Result<()> {
    if !quiet {
        let _ = writeln!(std::io::stderr(), "exporting {} through nsys", report.display());
    }
    let base = ["export", "--type", "sqlite", "--force-overwrite=true"];
    let (words, named) = (base.join(" "), shell_quote(&report.display().to_string()));
    let by_hand = format!("nsys {words} --include-json=true -o export.sqlite {named}");
    let missing = |reason: String| InputError::NsysMissing {
        path: report.to_owned(),
        reason,
        command: by_hand.clone(),
    };
    let nsys = nsys().map_err(|error| missing(error.to_string()))?;
    let attempt = |payloads: bool| {
        let mut command = Command::new(&nsys);
        command.args(base).args(payloads.then_some("--include-json=true"));
        command.arg("-o").arg(export).arg(report);
        let done = ended(&mut command).map_err(|error| missing(format!("{}: {error}", nsys.display())))?;
        done.ok_or_else(|| anyhow::Error::from(ReplayError::Interrupted))
    };
    let (mut done, mut said) = attempt(true)?;
    if !done && said.contains("include-json") {
        // nsys up to 2024.2 knows no payloads.
        (done, said) = attempt(false)?;
    }
    if done && export.is_file() {
        return Ok(());
    }
    let reason = said.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or("it wrote no file").to_owned();
    Err(InputError::ExportFailed { path: report.to_owned(), reason, command: by_hand }.into())
}

#[cfg(unix)]
fn nsys() -> Result<PathBuf> {
    sync_report::capture::found()
}

#[cfg(not(unix))]
fn nsys() -> Result<PathBuf> {
    Ok("nsys".into())
}

/// Success and stderr of a program; `None` after a signal to this process, which ends the program too.
fn ended(command: &mut Command) -> std::io::Result<Option<(bool, String)>> {
    let told = Arc::new(AtomicBool::new(false));
    let signals: Vec<_> = [SIGINT, SIGTERM, SIGHUP]
        .iter()
        .filter_map(|&signal| signal_hook::flag::register(signal, Arc::clone(&told)).ok())
        .collect();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let mut stderr = child.stderr.take();
    let listening = thread::spawn(move || {
        let mut said = Vec::new();
        stderr.iter_mut().for_each(|pipe| _ = pipe.read_to_end(&mut said));
        said
    });
    let status = loop {
        if told.load(Ordering::Relaxed) {
            let _ = child.kill();
            let _ = child.wait();
            break None;
        }
        match child.try_wait()? {
            Some(status) => break Some(status.success()),
            None => thread::sleep(LOOK),
        }
    };
    signals.into_iter().for_each(|id| _ = signal_hook::low_level::unregister(id));
    // A child of nsys may hold the pipe: after a signal the listening thread is not joined.
    let said =
        |_| listening.join().map(|said| String::from_utf8_lossy(&said).into_owned()).unwrap_or_default();
    Ok(status.map(|done| (done, said(()))))
}
