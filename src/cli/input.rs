//! The files given: exports as they are, reports exported through nsys first.

use super::args::SharedArgs;
use super::export::export;
use anyhow::{Result, bail};
use rustc_hash::FxHashSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use sync_report::analysis::Options;
use sync_report::error::InputError;
use sync_report::model::Warning;
use sync_report::profile::commands::is_report_name;
use sync_report::profile::header::is_nsys_report;
use sync_report::ranks::numbers::unread;
use tempfile::TempDir;

/// Temporary exports live as long as this value.
#[derive(Default)]
pub struct Exports {
    /// In the order typed.
    pub paths: Vec<PathBuf>,
    /// Exports made from a report, and the report.
    pub reports: Vec<(PathBuf, PathBuf)>,
    /// About reports that nsys could not export.
    pub left_out: Vec<Warning>,
    _temporary: Vec<TempDir>,
}

impl Exports {
    /// The path typed for an export: its report, or itself.
    pub fn typed<'a>(&'a self, export: &'a Path) -> &'a Path {
        let report = self.reports.iter().find(|(made, _)| made == export);
        report.map_or(export, |(_, report)| report)
    }

    /// Options that call reports by their own names, and warn of reports left out.
    pub fn named(&self, mut options: Options) -> Options {
        options.reports.extend_from_slice(&self.reports);
        Options { left_out: self.left_out.clone(), ..options }
    }
}

/// [`InputError`] if a report cannot be exported. Other files are checked when they are opened.
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
    // The waits of a file given twice would count twice.
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

/// The first bytes of a regular file: opening a pipe would wait for its writer.
pub fn head(path: &Path, most: u64) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    let file = path.is_file().then(|| fs::File::open(path).ok())??;
    file.take(most).read_to_end(&mut head).ok().map(|_| head)
}

/// By name and content: a report renamed .sqlite is refused later, with the right words.
fn is_report(path: &Path) -> bool {
    is_report_name(path) && head(path, 80).is_some_and(|head| is_nsys_report(&head))
}
