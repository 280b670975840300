//! Identifies a file by its first bytes and size, before SQLite sees it.

use crate::error::InputError;
use crate::profile::commands;
use crate::text::shell_quote;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Tells the common mistakes apart. `path`: as given; `file`: with links resolved.
pub(super) fn check_header(path: &Path, file: &Path) -> Result<(), InputError> {
    let io = |e: std::io::Error| io_error(path, &e);
    let meta = std::fs::metadata(file).map_err(io)?;
    if !meta.is_file() {
        return Err(InputError::Unreadable { path: path.to_owned(), reason: "not a regular file".into() });
    }
    let mut head = Vec::with_capacity(100);
    File::open(file).map_err(io)?.take(100).read_to_end(&mut head).map_err(io)?;
    let (owned, command) = (path.to_owned(), commands::export(path));
    if head.is_empty() {
        return Err(InputError::Empty(owned, command));
    }
    if let Some(what) = foreign(path, &head) {
        return Err(InputError::Foreign(owned, what));
    }
    if is_nsys_report(&head) {
        return Err(InputError::ReportNotExport(owned, command));
    }
    if head.starts_with(LFS_POINTER) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        return Err(InputError::LfsPointer(owned, shell_quote(&name)));
    }
    if !is_sqlite(&head) {
        // Any other file is somebody's, and is not to be overwritten.
        return Err(match commands::is_report_name(path) {
            true => InputError::NotReport(owned),
            false => InputError::NotSqlite(owned, commands::some_export()),
        });
    }
    match promised_size(&head) {
        // With a -wal beside it the main file may rightly be shorter than the database.
        Some(want) if meta.len() < want && !beside(file, "-wal") => {
            Err(InputError::Truncated { path: owned, have: meta.len(), want, command })
        }
        None => Err(InputError::Truncated { path: owned, have: meta.len(), want: 100, command }),
        _ => Ok(()),
    }
}

pub(super) fn io_error(path: &Path, e: &std::io::Error) -> InputError {
    match e.kind() {
        ErrorKind::NotFound => InputError::NotFound(path.to_owned()),
        ErrorKind::PermissionDenied => InputError::Permission(path.to_owned()),
        _ => InputError::Unreadable { path: path.to_owned(), reason: e.to_string() },
    }
}

/// Whether a non-empty file of that ending lies beside. SQLite writes it beside the file, not beside a link.
pub(super) fn beside(path: &Path, suffix: &str) -> bool {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    std::fs::metadata(PathBuf::from(name)).is_ok_and(|m| m.len() > 0)
}

/// Says what another tool's or a packed file is, and what to do, by its first bytes or the end of its name.
fn foreign(path: &Path, head: &[u8]) -> Option<&'static str> {
    const PERFETTO: &str = "a trace of Perfetto, which sync-report does not read; give the JSON of torch.profiler (prof.export_chrome_trace), or an export of nsys";
    const JSON: &str = "no JSON, in spite of its name; give a trace of torch.profiler (prof.export_chrome_trace), or an export of nsys";
    const PACKED: &str = "packed; unpack it first";
    const PACKERS: [&[u8]; 5] = [b"\x1f\x8b", b"PK\x03\x04", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"BZh"];
    const NAMES: [(&str, &str); 6] = [
        (".json.gz", JSON),
        (".json", JSON),
        (".pftrace", PERFETTO),
        (".perfetto-trace", PERFETTO),
        (
            ".ncu-rep",
            "a report of Nsight Compute, which times single kernels and no waits; capture the program with nsys profile",
        ),
        (
            ".qdstrm",
            "the raw stream of a capture that was not finished; QdstrmImporter, which comes with nsys, makes a report of it",
        ),
    ];
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let by_name = || NAMES.iter().find(|(end, _)| name.ends_with(end)).map(|(_, what)| *what);
    let packed = || PACKERS.iter().any(|magic| head.starts_with(magic)).then_some(PACKED);
    let is_known = is_sqlite(head) || is_nsys_report(head) || head.starts_with(LFS_POINTER);
    if is_known { None } else { by_name().or_else(packed) }
}

/// First line of a Git LFS pointer, by its specification.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1\n";

pub fn is_sqlite(head: &[u8]) -> bool {
    head.starts_with(b"SQLite format 3\0")
}

/// "NVIDIA Tegra Profiler Report …", in older files "Report 1.…".
pub fn is_nsys_report(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&head[..head.len().min(80)]);
    text.contains("Tegra Profiler Report")
        || text.trim_start_matches(|c: char| !c.is_ascii_alphabetic()).starts_with("Report 1.")
}

/// Size in bytes that an SQLite header promises, 0 where it does not say; `None` if the header itself is cut.
///
/// Source: the SQLite file format, sections 1.3.2 (page size), 1.3.7 (size in pages), 1.3.8 (validity).
fn promised_size(head: &[u8]) -> Option<u64> {
    let be32 = |at: usize| head.get(at..at + 4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]));
    let raw = head.get(16..18).map(|b| u16::from_be_bytes([b[0], b[1]]))?;
    let page = if raw == 1 { 65536 } else { u64::from(raw) };
    let (counter, pages, valid_for) = (be32(24)?, be32(28)?, be32(92)?);
    Some(if counter == valid_for { page * u64::from(pages) } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_tools_are_named() {
        let what = |name: &str, head: &[u8]| foreign(Path::new(name), head).unwrap_or_default();
        assert!(what("runs/a.pt.trace.json.gz", b"\x1f\x8b").starts_with("no JSON"));
        assert!(what("a.pftrace", b"\x0a").starts_with("a trace of Perfetto"));
        assert!(what("a.ncu-rep", b"NVR\0").starts_with("a report of Nsight Compute"));
        assert!(what("a.sqlite.xz", b"\xfd7zXZ\0").starts_with("packed"));
        assert_eq!(what("a.json", b"SQLite format 3\0"), "");
        assert_eq!(what("a.sqlite", b"anything"), "");
    }

    #[test]
    fn reports_are_known_by_their_first_bytes() {
        assert!(is_nsys_report(b"NVIDIA Tegra Profiler Report 2024@6@2@225-246235244400v0 abc"));
        assert!(!is_nsys_report(b"SQLite format 3\0"));
        assert!(!is_nsys_report(b""));
    }
}
