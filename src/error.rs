//! What can be wrong with the input, told apart because each needs other advice.

use std::path::PathBuf;
use thiserror::Error;

/// An input that cannot be read. Each prints as one sentence: what is wrong, and what to do. Of two unnamed fields the first
/// is the file, the second a command that mends it.
#[derive(Debug, Error)]
pub enum InputError {
    /// No file at this path.
    #[error("{}: no such file; give the path of an Nsight Systems export (.sqlite, _pqtdir), a report (.nsys-rep) or a trace of torch.profiler (.json, .json.gz)", .0.display())]
    NotFound(PathBuf),
    /// A folder that holds no exports and that `nsys export --type parquetdir` did not write, or not all of it.
    #[error("{}: is a folder without exports (.sqlite, _pqtdir), reports (.nsys-rep) or traces (.json, .json.gz), and without StringIds.parquet, so no parquetdir export either; make an export with: {}", .0.display(), .1)]
    Directory(PathBuf, String),
    /// The user may not read it.
    #[error("{}: permission denied; make the file readable for this user (chmod u+r)", .0.display())]
    Permission(PathBuf),
    /// The operating system could not read it.
    #[error("{path}: cannot be read ({reason}); check the file and the disk under it", path = .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What SQLite or the system said.
        reason: String,
    },
    /// A file of no bytes.
    #[error("{}: is empty; export the report again with: {}", .0.display(), .1)]
    Empty(PathBuf, String),
    /// A `.nsys-rep` report under another name.
    #[error("{}: is an nsys report, not an SQLite export; name it .nsys-rep, and give that, or export it with: {}", .0.display(), .1)]
    ReportNotExport(PathBuf, String),
    /// What Git has in place of a large file that was not fetched; its name, quoted for a shell.
    #[error("{}: is a pointer of Git LFS, not the file itself; fetch it with: git lfs pull --include={}", .0.display(), .1)]
    LfsPointer(PathBuf, String),
    /// Another kind of file.
    #[error("{}: is no SQLite database; make an export with: {}", .0.display(), .1)]
    NotSqlite(PathBuf, String),
    /// A file of another tool, or packed.
    #[error("{}: is {}", .0.display(), .1)]
    Foreign(PathBuf, &'static str),
    /// A file with the name of a report that is neither that nor an export.
    #[error("{}: is no report of nsys, nor an SQLite export: damaged, perhaps; copy it again, or capture anew", .0.display())]
    NotReport(PathBuf),
    /// Shorter than its SQLite header says.
    #[error(
        "{path}: the file is cut short ({have} of {want} bytes, as its header says); copy it again, or export it again with: {command}",
        path = .path.display()
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Bytes of the file.
        have: u64,
        /// Bytes by its header.
        want: u64,
        /// A command that mends it.
        command: String,
    },
    /// What is inside is inconsistent.
    #[error("{path}: the file is damaged ({reason}); copy it again, or export it again with: {command}", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite or the system said.
        reason: String,
        /// A command that mends it.
        command: String,
    },
    /// nsys is still writing it, or was stopped: a journal lies beside it.
    #[error("{}: an unfinished export (its journal lies beside it); wait for nsys to end, or export it again with: {}", .0.display(), .1)]
    Unfinished(PathBuf, String),
    /// A write-ahead log that cannot be merged in a read-only directory.
    #[error(
        "{}: its newest rows are in the -wal file beside it, which cannot be read in a directory that cannot be written; copy both files elsewhere",
        .0.display()
    )]
    WalUnreadable(PathBuf),
    /// Another program's tables.
    #[error("{}: readable, but not an Nsight Systems export (no table of strings or events); it stays as it is: make an export elsewhere with: {}", .0.display(), .1)]
    NotNsys(PathBuf, String),
    /// A trace that is no JSON.
    #[error("{path}: the trace is damaged ({reason}); write it again with prof.export_chrome_trace()", path = .path.display())]
    BadTrace {
        /// The file.
        path: PathBuf,
        /// The parser's message.
        reason: String,
    },
    /// JSON without events of torch.profiler.
    #[error("{}: is JSON, but no trace of torch.profiler (no operator, function, CUDA call or kernel in traceEvents); write one with prof.export_chrome_trace()", .0.display())]
    NotTrace(PathBuf),
    /// An export without CUDA API calls.
    #[error("{path}: holds no CUDA API calls{why}; {remedy}", path = .path.display())]
    NoCuda {
        /// The export.
        path: PathBuf,
        /// What the capture tells about the reason; may be empty.
        why: String,
        /// A sentence that says how to mend it.
        remedy: String,
    },
    /// An export whose CUDA API calls cannot be read: a column is missing, or the table is none.
    #[error("{path}: its CUDA API calls cannot be read: {what}, so {loss}; export the report again with: {command}", path = .path.display())]
    CallsUnreadable {
        /// The export.
        path: PathBuf,
        /// What cannot be read.
        what: String,
        /// What that costs.
        loss: &'static str,
        /// A command that mends it.
        command: String,
    },
    /// No NVTX range has the name that was asked for.
    #[error(
        "{path}: no NVTX range around CUDA calls is named `{range}`; there are: {names}",
        path = .path.display(),
        names = if .names.is_empty() { "none" } else { .names.as_str() }
    )]
    NoRange {
        /// The export.
        path: PathBuf,
        /// The name asked for.
        range: String,
        /// Names of the ranges that there are.
        names: String,
    },
    /// No site has the id that was asked for.
    #[error("no site {site} in this report; it has {sites}")]
    NoSite {
        /// The site asked for.
        site: String,
        /// The sites that there are.
        sites: String,
    },
    /// A report, which only nsys can export.
    #[error("{}: exporting this report needs nsys, and none is on PATH; run this where nsys is installed: {}", .0.display(), .1)]
    NsysMissing(PathBuf, String),
    /// nsys ended with an error.
    #[error("{path}: nsys could not export this report ({reason}); try it by hand: {command}", path = .path.display())]
    ExportFailed {
        /// The report.
        path: PathBuf,
        /// The end of what nsys printed.
        reason: String,
        /// A command that mends it.
        command: String,
    },
}
