//! The edits of a report as files, and what becomes of each site.

use super::edit::{EditKind, Refusal};
use std::path::PathBuf;

/// The files to change, and the sites that get no edit.
#[derive(Debug, Default)]
pub struct Patch {
    /// Files to change, by path.
    pub files: Vec<PatchedFile>,
    /// The avoidable sites that were asked for, in the report's order, with what becomes of each.
    pub sites: Vec<Answer>,
    /// Ids of the avoidable sites of which no line of the user is known.
    pub placeless: Vec<String>,
}

/// A file with all its edits made.
#[derive(Debug)]
pub struct PatchedFile {
    /// On this machine.
    pub path: PathBuf,
    /// As the capture names it.
    pub recorded: String,
    /// As it is.
    pub before: String,
    /// As it is to be.
    pub after: String,
    /// How many edits were made; several sites may ask for one.
    pub edits: usize,
}

/// The answer to a site.
#[derive(Debug)]
pub struct Answer {
    /// Its id.
    pub site: String,
    /// Its file, as the capture names it, and line.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// The kind of the edit, where one was looked at.
    pub kind: Option<EditKind>,
    /// Why there is no edit, or what an unsafe one may change; `None`: a safe edit.
    pub reason: Option<Refusal>,
    /// Whether it is in the patch.
    pub made: bool,
    /// Whether there is an edit that was not wanted because it may change something.
    pub is_unsafe: bool,
}
