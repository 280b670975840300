//! The comparison as JSON.

use super::DiffReport;
use std::io::{self, Write};

/// Prints the tree as indented JSON and a newline.
pub fn render(report: &DiffReport, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, report)?;
    writeln!(out)
}
