//! Where waits are placed, and which of them are one site.

use crate::export::{
    Call, Copy, Export, GPU0, Memory, Payload, PythonFrame, Schema, Thread, empty, empty_of,
};
use crate::look::{self, only, options};
use sync_report::analysis::Options;
use sync_report::model::{Report, Site};
use sync_report::sites::frames::PathRules;
use sync_report::vocabulary::Attribution;

mod backward;
mod grouping;
mod library;
mod python;
mod substitutes;

const TORCH: &str = "/venv/lib/python3.12/site-packages/torch/";

/// An `.item()` of one gemm, from `at` on, with these frames on both of its calls.
///
/// ```text
///  host      [launch][copy][sync=======]
///            at      +200              +1000
///  stream 7     [gemm~~~~~~~~~~~][copy]
///               +120         +900  +901..905
/// ```
fn item(e: &mut Export, t: Thread, at: i64, frames: &[PythonFrame<'_>]) -> (Call, Call) {
    e.launch(t, at + 100..at + 110, GPU0, at + 120..at + 900, "gemm");
    let (copy, wait) = e.item(t, at + 200..at + 1000, GPU0, at + 901..at + 905);
    if !frames.is_empty() {
        e.python(copy, frames);
        e.python(wait, frames);
    }
    (copy, wait)
}

fn user(site: &Site) -> String {
    let f = site.user_frame.as_ref().expect("a user frame");
    format!("{}:{} {}", f.file, f.line, f.function)
}
