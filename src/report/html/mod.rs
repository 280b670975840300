//! The report as one page: no network, no other file, nothing of the capture run as code.
//!
//! Three things keep hostile names harmless. All data stands in a block that browsers do not execute, with `<`, `>` and
//! `&` written as escapes, so that no name can end it. The program puts text into the page as text only. And the policy
//! of the page allows one script and one style, by their hashes, and no request at all.

mod document;
mod page;
mod site;

#[cfg(test)]
mod tests;

use super::Report;
use std::io::{self, Write};

pub(crate) use document::{Document, write as write_document};

/// Prints the report as an HTML page.
///
/// # Errors
/// Those of `out`.
pub fn render(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let page = page::Page::of(report);
    write_document(&Document { title: &page.title, data: &page }, out)
}
