//! The summary of a GitHub step: Markdown that is appended to a file which the runner names.

use anyhow::{Context, Result};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use sync_report::report::github::SUMMARY;

/// Appends Markdown of at most the size that is left, or says on `out` how much was not annotated where there is no
/// summary. `text` gets a number of characters.
pub fn append(text: impl Fn(usize) -> String, left: usize, out: &mut dyn Write) -> Result<()> {
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|p| !p.is_empty()).map(PathBuf::from)
    else {
        if left > 0 {
            writeln!(
                out,
                "{left} more without an annotation: GITHUB_STEP_SUMMARY names no file to list them in"
            )?;
        }
        return Ok(());
    };
    let there = fs::metadata(&path).map_or(0, |m| m.len());
    // A line break follows.
    let room = usize::try_from(SUMMARY.saturating_sub(there.saturating_add(1))).unwrap_or(0);
    // The limit is in bytes: the text is made shorter until its bytes fit.
    let mut limit = room;
    let mut markdown = text(limit);
    while markdown.len() > room && limit > 0 {
        limit = limit.saturating_sub((markdown.len() - room).max(1_024));
        markdown = text(limit);
    }
    if markdown.len() > room {
        writeln!(out, "the summary of this step is full: nothing was added to it")?;
        return Ok(());
    }
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .with_context(|| format!("{}: cannot be written", path.display()))?;
    writeln!(file, "{markdown}").with_context(|| format!("{}: cannot be written", path.display()))
}
