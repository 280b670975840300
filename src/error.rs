//! What can be wrong with the input, told apart because each needs other advice.

use std::path::PathBuf;
use thiserror::Error;

/// An input that cannot be read. Each prints as one sentence: what is wrong, and what to do.
#[derive(Debug, Error)]
pub enum InputError {
    #[error("{}: no such file; give the path of an Nsight Systems export (.sqlite) or report (.nsys-rep)", .0.display())]
    NotFound(PathBuf),
    #[error("{}: is a directory; give the .sqlite export inside it", .0.display())]
    Directory(PathBuf),
    #[error("{}: permission denied; make the file readable for this user (chmod u+r)", .0.display())]
    Permission(PathBuf),
    #[error("{path}: cannot be read ({reason}); check the file and the disk under it", path = .path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("{path}: is empty; export the report again with: {command}", path = .path.display())]
    Empty { path: PathBuf, command: String },
    #[error("{path}: is an nsys report, not an SQLite export; name it .nsys-rep, or export it with: {command}", path = .path.display())]
    ReportNotExport { path: PathBuf, command: String },
    #[error("{path}: is no SQLite database; make an export with: {command}", path = .path.display())]
    NotSqlite { path: PathBuf, command: String },
    #[error(
        "{path}: the file is cut short ({have} of {want} bytes, as its header says); copy it again, or export it again with: {command}",
        path = .path.display()
    )]
    Truncated { path: PathBuf, have: u64, want: u64, command: String },
    #[error("{path}: the database is damaged ({reason}); copy it again, or export it again with: {command}", path = .path.display())]
    Damaged { path: PathBuf, reason: String, command: String },
    #[error(
        "{path}: an unfinished export (its journal lies beside it); wait for nsys to end, or export it again with: {command}",
        path = .path.display()
    )]
    Unfinished { path: PathBuf, command: String },
    #[error(
        "{}: its newest rows are in the -wal file beside it, which cannot be read in a directory that cannot be written; copy both files elsewhere",
        .0.display()
    )]
    WalUnreadable(PathBuf),
    #[error(
        "{path}: an SQLite database, but not an Nsight Systems export (no table of strings or events); make one with: {command}",
        path = .path.display()
    )]
    NotNsys { path: PathBuf, command: String },
    #[error("{path}: holds no CUDA API calls{why}; capture again with: {command}", path = .path.display())]
    NoCuda { path: PathBuf, why: String, command: String },
    #[error(
        "{path}: no NVTX range around CUDA calls is named `{range}`; there are: {names}",
        path = .path.display(),
        names = if .names.is_empty() { "none" } else { .names.as_str() }
    )]
    NoRange { path: PathBuf, range: String, names: String },
    #[error("no site {site} in this report; it has {sites}")]
    NoSite { site: String, sites: String },
    #[error(
        "{timing}: only {matched} of {waits} waits of {path} have their like here: this is not the same program; capture both with the same arguments",
        path = .path.display(),
        timing = .timing.display()
    )]
    OtherProgram { path: PathBuf, timing: PathBuf, matched: usize, waits: usize },
    #[error("{path}: exporting this report needs nsys, and none is on PATH; run this where nsys is installed: {command}", path = .path.display())]
    NsysMissing { path: PathBuf, command: String },
    #[error("{path}: nsys could not export this report ({reason}); try it by hand: {command}", path = .path.display())]
    ExportFailed { path: PathBuf, reason: String, command: String },
}
