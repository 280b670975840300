//! The report as one page: no network, no other file, nothing of the capture run as code.
//!
//! Three things keep hostile names harmless. Browsers do not execute the block of data, and its `<`, `>` and
//! `&` are escaped, so that no name can end it. The program puts text into the page as text only. The page's
//! policy allows one script and one style, by their hashes, and no request at all.

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

pub fn render(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let page = page::report_page(report);
    document::write(&page.title, &page, out)
}

/// `drawings` are of BEFORE and of AFTER.
pub fn render_diff(report: &DiffReport, drawings: [&[Timeline]; 2], out: &mut dyn Write) -> io::Result<()> {
    let page = changes::diff_page(report, drawings);
    document::write(&page.title, &page, out)
}
