//! The outcome as JSON.

use super::CheckReport;
use std::io::{self, Write};

/// Prints the tree as indented JSON and a newline.
pub fn render(report: &CheckReport, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, report)?;
    writeln!(out)
}
