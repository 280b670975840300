//! The files given: exports as they are, reports exported through nsys first.

use super::args::SharedArgs;
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;
use sync_report::error::InputError;
use sync_report::profile::commands::shell_quote;
use sync_report::profile::database::is_nsys_report;
use tempfile::TempDir;

/// Paths of SQLite exports. Exports made for this run only live as long as this value.
pub struct Exports {
    pub paths: Vec<PathBuf>,
    _temporary: Vec<TempDir>,
}

/// Turns each argument into an export.
///
/// # Errors
/// [`InputError`] where a report cannot be exported. Whether an export is one shows when it is opened.
pub fn exports(arguments: &[PathBuf], shared: &SharedArgs) -> Result<Exports> {
    let mut out = Exports { paths: Vec::new(), _temporary: Vec::new() };
    for path in arguments {
        if is_report(path) {
            let (export, temporary) = export(path, shared.quiet)?;
            out.paths.push(export);
            out._temporary.extend(temporary);
        } else {
            out.paths.push(path.clone());
        }
    }
    // Given twice, its waits would count twice.
    let mut seen: Vec<PathBuf> = Vec::new();
    for path in &out.paths {
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        if seen.contains(&real) {
            bail!("{}: given twice; name each export once", path.display());
        }
        seen.push(real);
    }
    Ok(out)
}

/// A report by name and content: one renamed .sqlite is left to be refused with the right words.
fn is_report(path: &Path) -> bool {
    if path.extension().is_none_or(|e| e != "nsys-rep") {
        return false;
    }
    // Opening a pipe would wait for its writer.
    if !fs::metadata(path).is_ok_and(|m| m.is_file()) {
        return false;
    }
    let mut head = Vec::new();
    let read = fs::File::open(path).and_then(|f| f.take(80).read_to_end(&mut head));
    read.is_ok() && is_nsys_report(&head)
}

/// Exports a report into `.NAME.SIZE-TIME.sqlite` beside it, where it is found again next time; in a directory that
/// cannot be written, into a temporary one.
fn export(report: &Path, quiet: bool) -> Result<(PathBuf, Option<TempDir>)> {
    let cached = cache_path(report)?;
    if cached.is_file() {
        return Ok((cached, None));
    }
    let dir = cached.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Written under another name and moved when complete, so that a run that was cut short leaves no half export.
    match tempfile::Builder::new().prefix(".sync-report-").tempdir_in(dir) {
        Ok(work) => {
            let fresh = work.path().join("export.sqlite");
            run_nsys(report, &fresh, quiet)?;
            fs::rename(&fresh, &cached)
                .with_context(|| format!("{}: cannot be written", cached.display()))?;
            Ok((cached, None))
        }
        Err(_) => {
            let work = tempfile::tempdir().context("no temporary directory to export into")?;
            let fresh = work.path().join("export.sqlite");
            run_nsys(report, &fresh, quiet)?;
            Ok((fresh, Some(work)))
        }
    }
}

/// Size and time of the report are in the name: a new capture under the same name is exported anew.
fn cache_path(report: &Path) -> Result<PathBuf> {
    let meta = fs::metadata(report).with_context(|| format!("{}: cannot be read", report.display()))?;
    let changed =
        meta.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok()).map_or(0, |d| d.as_millis());
    let stem = report.file_stem().unwrap_or_default().to_string_lossy();
    Ok(report.with_file_name(format!(".{stem}.{}-{changed}.sqlite", meta.len())))
}

fn run_nsys(report: &Path, export: &Path, quiet: bool) -> Result<(), InputError> {
    if !quiet {
        let _ = writeln!(std::io::stderr(), "exporting {} through nsys", report.display());
    }
    let base = ["export", "--type", "sqlite", "--force-overwrite=true"];
    let attempt = |payloads: bool| {
        let mut command = Command::new("nsys");
        command.args(base).args(payloads.then_some("--include-json=true"));
        command.arg("-o").arg(export).arg(report);
        command.stdin(Stdio::null()).output()
    };
    let by_hand = format!(
        "nsys {} --include-json=true -o export.sqlite {}",
        base.join(" "),
        shell_quote(&report.display().to_string())
    );
    let missing = |_| InputError::NsysMissing { path: report.to_owned(), command: by_hand.clone() };
    let mut result = attempt(true).map_err(missing)?;
    let complains = String::from_utf8_lossy(&result.stderr).contains("include-json");
    if !result.status.success() && complains {
        // nsys up to 2024.2 knows no payloads.
        result = attempt(false).map_err(missing)?;
    }
    if result.status.success() && export.is_file() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&result.stderr);
    let reason = said.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or("it wrote no file").to_owned();
    Err(InputError::ExportFailed { path: report.to_owned(), reason, command: by_hand })
}
