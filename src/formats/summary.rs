//! The summary of a GitHub step: Markdown appended to a file that the runner names.

use super::Setting;
use crate::render::document::{Block, markdown};
use crate::render::github;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};

/// Appends Markdown within the size left. Without a summary, `out` gets the number of findings without an annotation.
pub(super) fn append(with: &Setting, document: &[Block], left: usize, out: &mut dyn Write) -> io::Result<()> {
    const NO_FILE: &str = "GITHUB_STEP_SUMMARY names no file to list them in";
    let path = match &with.step_summary {
        Some(path) => path,
        None if left == 0 => return Ok(()),
        None => return writeln!(out, "{left} more without an annotation: {NO_FILE}"),
    };
    let there = fs::metadata(path).map_or(0, |m| m.len());
    // Less the line break after the text.
    let room = usize::try_from(github::SUMMARY.saturating_sub(there.saturating_add(1))).unwrap_or(0);
    // GitHub counts bytes, `markdown::text` characters.
    let mut limit = room;
    let mut text = markdown::text(document, limit);
    while text.len() > room && limit > 0 {
        limit = limit.saturating_sub((text.len() - room).max(1_024));
        text = markdown::text(document, limit);
    }
    if text.len() > room {
        return writeln!(out, "the summary of this step is full: nothing was added to it");
    }
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| writeln!(file, "{text}"))
        .map_err(|e| io::Error::new(e.kind(), format!("{}: cannot be written: {e}", path.display())))
}
