//! Texts of files for reports and edits: lines to show, and whole files to change.

use crate::model::Snippet;
use crate::model::edit::Refusal;
use crate::python::parse::SourceTree;
use std::path::PathBuf;

/// A line of a recorded file with its neighbours; `None` where the line is missing or blank.
pub fn snippet(tree: &SourceTree, recorded: &str, line: u32) -> Option<Snippet> {
    const AROUND: u32 = 3;
    /// Characters of a line: minified code is not for reading.
    const LONGEST: usize = 400;
    let file = tree.open(recorded)?;
    let text = |line| file.line_range(line).map(|range| file.slice(range).trim_end());
    let blank = |line: &u32| text(*line).is_none_or(str::is_empty);
    let first_line = (line.saturating_sub(AROUND).max(1)..=line).find(|line| !blank(line))?;
    let last_line = (line..=line.saturating_add(AROUND)).rev().find(|line| !blank(line))?;
    let lines = (first_line..=last_line).filter_map(text);
    let lines = lines.map(|text| text.chars().take(LONGEST).collect()).collect();
    (!blank(&line)).then_some(Snippet { first_line, lines })
}

/// Where the file behind a recorded path is, and its text, for an edit.
///
/// # Errors
/// Why it cannot be edited.
pub fn editable(tree: &SourceTree, recorded: &str) -> Result<(PathBuf, String), Refusal> {
    let source = tree.open(recorded).ok_or(Refusal::NoSource)?;
    if !source.is_valid() {
        return Err(Refusal::Syntax);
    }
    let text = source.exact().ok_or(Refusal::Encoding)?;
    Ok((tree.place(recorded, &source).ok_or(Refusal::NoSource)?, text.to_owned()))
}
