//! The report as one page: no network, no other file, nothing of the capture run as code.
//!
//! Three things keep hostile names harmless. All data stands in a block that browsers do not execute, with `<`, `>` and
//! `&` written as escapes, so that no name can end it. The program puts text into the page as text only. And the policy
//! of the page allows one script and one style, by their hashes, and no request at all.

mod changes;
mod document;
mod page;
mod ranks;
mod site;

#[cfg(test)]
mod tests;

use crate::model::Report;
use crate::model::diff::DiffReport;
use crate::model::timeline::Timeline;
use std::io::{self, Write};

/// Prints the report as an HTML page.
pub fn render(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let page = page::report_page(report);
    document::write(&page.title, &page, out)
}

/// Prints a comparison as an HTML page, with the drawings of BEFORE and of AFTER.
pub fn render_diff(report: &DiffReport, drawings: [&[Timeline]; 2], out: &mut dyn Write) -> io::Result<()> {
    let page = changes::diff_page(report, drawings);
    document::write(&page.title, &page, out)
}
