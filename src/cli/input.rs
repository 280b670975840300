//! The files given: exports as they are, reports exported through nsys first.

use super::args::SharedArgs;
use anyhow::{Context, Result, bail};
use rustc_hash::FxHashSet;
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;
use sync_report::analysis::Options;
use sync_report::error::InputError;
use sync_report::model::Warning;
use sync_report::profile::commands::is_report_name;
use sync_report::profile::header::is_nsys_report;
use sync_report::ranks::numbers::unread;
use sync_report::text::shell_quote;
use tempfile::TempDir;

/// Paths of exports. Exports made for this run only live as long as this value.
#[derive(Default)]
pub struct Exports {
    /// In the order typed.
    pub paths: Vec<PathBuf>,
    /// Those made from a report, and the report.
    pub reports: Vec<(PathBuf, PathBuf)>,
    /// Reports of several that nsys could not export: what the report of the others says of them.
    pub left_out: Vec<Warning>,
    _temporary: Vec<TempDir>,
}

impl Exports {
    /// What was given for an export: its report, or itself.
    pub fn typed<'a>(&'a self, export: &'a Path) -> &'a Path {
        let report = self.reports.iter().find(|(made, _)| made == export);
        report.map_or(export, |(_, report)| report)
    }

    /// The options for these: reports are called by their own names, and those left out are said.
    pub fn named(&self, mut options: Options) -> Options {
        options.reports.extend_from_slice(&self.reports);
        Options { left_out: self.left_out.clone(), ..options }
    }
}

/// Turns each argument into an export.
///
/// # Errors
/// [`InputError`] where a report cannot be exported. Whether an export is one shows when it is opened.
pub fn exports(arguments: &[PathBuf], shared: &SharedArgs) -> Result<Exports> {
    let mut out = Exports::default();
    let mut first = None;
    for path in arguments {
        if !is_report(path) {
            out.paths.push(path.clone());
            continue;
        }
        match export(path, shared.quiet) {
            Ok((export, temporary)) => {
                out.reports.push((export.clone(), path.clone()));
                out.paths.push(export);
                out._temporary.extend(temporary);
            }
            Err(error) if matches!(error.downcast_ref(), Some(InputError::ExportFailed { .. })) => {
                out.left_out.push(unread(path, &error));
                first.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    if let Some(error) = first.filter(|_| out.paths.is_empty()) {
        return Err(error);
    }
    // Given twice, its waits would count twice.
    let mut seen = FxHashSet::default();
    for path in &out.paths {
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        if !seen.insert(real) {
            bail!("{}: given twice; name each export once", path.display());
        }
    }
    Ok(out)
}

/// Whether two paths name one file, through links too.
pub fn is_same(a: &Path, b: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let id = |p: &Path| std::fs::metadata(p).map(|m| (m.dev(), m.ino())).ok();
        id(a).is_some() && id(a) == id(b)
    }
    #[cfg(not(unix))]
    {
        let real = |p: &Path| std::fs::canonicalize(p).ok();
        real(a).is_some() && real(a) == real(b)
    }
}

/// A path that goes on with a suffix.
pub fn with_suffix(stem: &Path, suffix: &str) -> PathBuf {
    [stem.as_os_str(), suffix.as_ref()].into_iter().collect::<OsString>().into()
}

/// The first bytes of a file; none of what is no file: opening a pipe would wait for its writer.
pub fn head(path: &Path, most: u64) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    let file = path.is_file().then(|| fs::File::open(path).ok())??;
    file.take(most).read_to_end(&mut head).ok().map(|_| head)
}

/// A report by name and content: one renamed .sqlite is left to be refused with the right words.
fn is_report(path: &Path) -> bool {
    is_report_name(path) && head(path, 80).is_some_and(|head| is_nsys_report(&head))
}

/// Exports a report into `.NAME.SIZE-TIME.sqlite` beside it, where it is found again next time; in a directory that
/// cannot be written, into a temporary one.
fn export(report: &Path, quiet: bool) -> Result<(PathBuf, Option<TempDir>)> {
    let cached = cache_path(report)?;
    if cached.is_file() {
        return Ok((cached, None));
    }
    let dir = cached.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (work, beside) = match tempfile::Builder::new().prefix(".sync-report-").tempdir_in(dir) {
        Ok(work) => (work, true),
        Err(_) => (tempfile::tempdir().context("no temporary directory to export into")?, false),
    };
    // Written under another name and moved when complete, so that a run that was cut short leaves no half export.
    let fresh = work.path().join("export.sqlite");
    run_nsys(report, &fresh, quiet)?;
    if !beside {
        return Ok((fresh, Some(work)));
    }
    fs::rename(&fresh, &cached).with_context(|| format!("{}: cannot be written", cached.display()))?;
    Ok((cached, None))
}

/// Size and time of the report are in the name: a new capture under the same name is exported anew.
fn cache_path(report: &Path) -> Result<PathBuf> {
    let meta = fs::metadata(report).with_context(|| format!("{}: cannot be read", report.display()))?;
    let changed =
        meta.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok()).map_or(0, |d| d.as_millis());
    let stem = report.file_stem().unwrap_or_default().to_string_lossy();
    Ok(report.with_file_name(format!(".{stem}.{}-{changed}.sqlite", meta.len())))
}

/// Into SQLite: nsys 2025.3.1 writes a parquetdir of two million calls and ranges no sooner (9.0 s, and 8.9), one of 12,000 in
/// four fifths of the time (0.46 s, and 0.57), and a report reads SQLite sooner. Both hold the payloads of Python marks; up to 2024.2
/// no export does.
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
    let (base, named) = (base.join(" "), shell_quote(&report.display().to_string()));
    let by_hand = format!("nsys {base} --include-json=true -o export.sqlite {named}");
    let missing = |_| InputError::NsysMissing(report.to_owned(), by_hand.clone());
    let mut result = attempt(true).map_err(missing)?;
    if !result.status.success() && String::from_utf8_lossy(&result.stderr).contains("include-json") {
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
