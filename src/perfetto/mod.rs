//! The capture as a Chrome JSON trace, for ui.perfetto.dev and chrome://tracing.
//!
//! ```text
//!  python3 435
//!    waits · main thread         [train.py:18 step (false upload)    ]╮
//!                                [                ╭─▸[awaited work is…]│
//!    stream 7 · GPU 0         [gemm    ][copy     ]                    │   [gemm]
//!    main thread        [launch] [cudaStreamSynchronize              ]╰▸[launch]
//! ```
//! Arrows go from the awaited operation to the wait and on to the next call that gives the GPU work. A viewer chokes on
//! millions of slices: above [`MOST`] only what lies around waits is written, the longest wait of each site first.

mod select;
mod tracks;
mod write;

use crate::analysis::Analysed;
use crate::report::Report;
use rustc_hash::FxHashSet;
use select::Selection;
use std::io::{self, Write};
use tracks::Tracks;

/// Slices that ui.perfetto.dev opens without a long wait: about 60 MB.
pub const MOST: usize = 250_000;

/// What had to be left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    pub ops: usize,
    pub calls: usize,
    pub waits: usize,
}

impl LeftOut {
    /// As a sentence; nothing where nothing is left out.
    pub fn sentence(&self) -> Option<String> {
        let part = |n: usize, what: &str| (n > 0).then(|| crate::text::counted(n as u64, what));
        let parts = [part(self.ops, "GPU operation"), part(self.calls, "call"), part(self.waits, "wait")];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| {
            format!(
                "the trace leaves out {} that lie farther from waits: a viewer holds no more",
                parts.join(", ")
            )
        })
    }
}

/// Streams the trace of analysed exports; `report` is the one made from them. At most `most` slices.
pub fn render(
    report: &Report,
    captures: &[Analysed],
    most: usize,
    out: &mut dyn Write,
) -> io::Result<LeftOut> {
    let mut writer = write::Writer::begin(out)?;
    let mut left = LeftOut::default();
    let mut taken = FxHashSet::default();
    for (number, found) in captures.iter().enumerate() {
        let selection = Selection::new(found, most / captures.len().max(1));
        left.ops += selection.ops.iter().filter(|keep| !**keep).count();
        left.calls += selection.calls.iter().filter(|keep| !**keep).count();
        left.waits += selection.waits.iter().filter(|keep| !**keep).count();
        let suffix = if captures.len() > 1 { format!(" ({})", file_name(found)) } else { String::new() };
        let tracks = Tracks::new(found, &suffix, &mut taken);
        write::Capture::new(report, found, number, tracks).write(&selection, &mut writer)?;
    }
    writer.end(left.sentence().as_deref())?;
    Ok(left)
}

/// Name of the export, without its folder.
fn file_name(found: &Analysed) -> String {
    let name = found.profile.path().file_name();
    name.map_or_else(String::new, |n| crate::text::escape_terminal(&n.to_string_lossy()).into_owned())
}
