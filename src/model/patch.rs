//! A report's edits as changed files, and the outcome of each site.

use super::edit::{EditKind, Refusal};
use std::path::PathBuf;

/// The files to change, and the sites that get no edit.
#[derive(Debug, Default)]
pub struct Patch {
    /// Files to change, by path.
    pub files: Vec<PatchedFile>,
    /// Outcome of each requested site that is not needed, in the report's order.
    pub sites: Vec<Answer>,
    /// Ids of requested sites without a known line of the user.
    pub placeless: Vec<String>,
}

/// A file with all its edits made.
#[derive(Debug)]
pub struct PatchedFile {
    /// Path on this machine.
    pub path: PathBuf,
    /// Path in the capture.
    pub recorded: String,
    /// Text before the edits.
    pub before: String,
    /// Text after the edits.
    pub after: String,
    /// Number of edits; several sites may share one.
    pub edits: usize,
}

/// Outcome of one site.
#[derive(Debug)]
pub struct Answer {
    /// Id of the site.
    pub site: String,
    /// Path of the file in the capture.
    pub file: String,
    /// Line number, from 1.
    pub line: u32,
    /// Kind of the edit, made or considered; `None` where none was considered.
    pub kind: Option<EditKind>,
    /// Reason for having no edit or an unsafe one; `None` for a safe edit.
    pub reason: Option<Refusal>,
    /// Whether the patch holds the edit.
    pub made: bool,
    /// Whether an edit was left out because it is unsafe.
    pub is_unsafe: bool,
}
