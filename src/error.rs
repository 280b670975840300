//! Errors of the input, one variant per advice.

use std::path::PathBuf;
use thiserror::Error;

/// An input that cannot be read. Each error prints as one sentence: the defect and the remedy. Two unnamed
/// fields are the file and a command that mends it.
#[derive(Debug, Error)]
pub enum InputError {
    #[error("{}: no such file; give the path of an Nsight Systems export (.sqlite, _pqtdir), a report (.nsys-rep) or a trace of torch.profiler (.json, .json.gz)", .0.display())]
    NotFound(PathBuf),
    /// A folder that holds no exports and that `nsys export --type parquetdir` did not write, or not all of it.
    #[error("{}: is a folder without exports (.sqlite, _pqtdir), reports (.nsys-rep) or traces (.json, .json.gz), and without StringIds.parquet, so no parquetdir export either; make an export with: {}", .0.display(), .1)]
    Directory(PathBuf, String),
    #[error("{}: permission denied; make the file readable for this user (chmod u+r)", .0.display())]
    Permission(PathBuf),
    #[error("{path}: cannot be read ({reason}); check the file and the disk under it", path = .path.display())]
    Unreadable {
        path: PathBuf,
        /// Message of SQLite or the system.
        reason: String,
    },
    #[error("{}: is empty; export the report again with: {}", .0.display(), .1)]
    Empty(PathBuf, String),
    /// A `.nsys-rep` report under another name.
    #[error("{}: is an nsys report, not an SQLite export; name it .nsys-rep, and give that, or export it with: {}", .0.display(), .1)]
    ReportNotExport(PathBuf, String),
    /// The second field is the file's name, quoted for a shell.
    #[error("{}: is a pointer of Git LFS, not the file itself; fetch it with: git lfs pull --include={}", .0.display(), .1)]
    LfsPointer(PathBuf, String),
    #[error("{}: is no SQLite database; make an export with: {}", .0.display(), .1)]
    NotSqlite(PathBuf, String),
    /// A file of another tool, or packed.
    #[error("{}: is {}", .0.display(), .1)]
    Foreign(PathBuf, &'static str),
    /// A file named like a report that is neither report nor export.
    #[error("{}: is no report of nsys, nor an SQLite export: damaged, perhaps; copy it again, or capture anew", .0.display())]
    NotReport(PathBuf),
    #[error(
        "{path}: the file is cut short ({have} of {want} bytes, as its header says); copy it again, or export it again with: {command}",
        path = .path.display()
    )]
    Truncated {
        path: PathBuf,
        have: u64,
        /// Bytes by its header.
        want: u64,
        command: String,
    },
    #[error("{path}: the file is damaged ({reason}); copy it again, or export it again with: {command}", path = .path.display())]
    Damaged {
        path: PathBuf,
        /// Message of SQLite or the system.
        reason: String,
        command: String,
    },
    #[error("{}: an unfinished export (its journal lies beside it); wait for nsys to end, or export it again with: {}", .0.display(), .1)]
    Unfinished(PathBuf, String),
    #[error(
        "{}: its newest rows are in the -wal file beside it, which cannot be read in a directory that cannot be written; copy both files elsewhere",
        .0.display()
    )]
    WalUnreadable(PathBuf),
    #[error("{}: readable, but not an Nsight Systems export (no table of strings or events); it stays as it is: make an export elsewhere with: {}", .0.display(), .1)]
    NotNsys(PathBuf, String),
    #[error("{path}: the trace is damaged ({reason}); write it again with prof.export_chrome_trace()", path = .path.display())]
    BadTrace {
        path: PathBuf,
        /// The parser's message.
        reason: String,
    },
    #[error("{}: is JSON, but no trace of torch.profiler (no operator, function, CUDA call or kernel in traceEvents); write one with prof.export_chrome_trace()", .0.display())]
    NotTrace(PathBuf),
    #[error("{path}: holds no CUDA API calls{why}; {remedy}", path = .path.display())]
    NoCuda {
        path: PathBuf,
        /// Reason found in the capture; may be empty.
        why: String,
        remedy: String,
    },
    /// A column is missing, or the table is none.
    #[error("{path}: its CUDA API calls cannot be read: {what}, so {loss}; export the report again with: {command}", path = .path.display())]
    CallsUnreadable {
        path: PathBuf,
        what: String,
        /// What that costs.
        loss: &'static str,
        command: String,
    },
    #[error(
        "{path}: no NVTX range around CUDA calls is named `{range}`; there are: {names}",
        path = .path.display(),
        names = if .names.is_empty() { "none" } else { .names.as_str() }
    )]
    NoRange {
        path: PathBuf,
        range: String,
        /// Names of existing ranges.
        names: String,
    },
    #[error("no site {site} in this report; it has {sites}")]
    NoSite {
        site: String,
        /// Sites of the report.
        sites: String,
    },
    #[error("{path}: exporting this report needs nsys; {reason}; or run this where it is installed: {command}", path = .path.display())]
    NsysMissing {
        path: PathBuf,
        /// Where it was looked for.
        reason: String,
        command: String,
    },
    #[error("{path}: nsys could not export this report ({reason}); try it by hand: {command}", path = .path.display())]
    ExportFailed {
        path: PathBuf,
        /// The end of nsys's output.
        reason: String,
        command: String,
    },
}
