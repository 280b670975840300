//! The capture as a Chrome JSON trace, for ui.perfetto.dev and chrome://tracing.
//!
//! ```text
//!  python3 435
//!    waits · main thread         [train.py:18 step (avoidable, …)    ]╮
//!                                [                ╭─▸[awaited work is…]│
//!    stream 7 · GPU 0         [gemm    ][copy     ]                    │   [gemm]
//!    main thread        [launch] [cudaStreamSynchronize              ]╰▸[launch]
//! ```
//! Arrows go from the awaited operation to the wait and on to the next call that issues GPU work. Above
//! [`MOST`] slices, on which a viewer chokes, only slices around waits are written, longest waits first.

mod select;
mod tracks;
mod write;

use crate::analysis::Priced;
use crate::model::Report;
use crate::text;
use rustc_hash::FxHashSet;
use select::Selection;
use std::io::{self, Write};
use tracks::Tracks;

/// Slices that ui.perfetto.dev opens without a long wait: about 60 MB.
pub const MOST: usize = 250_000;

/// Streams the trace. Returns a sentence on the slices left out beyond `most`.
pub fn render(
    report: &Report,
    captures: &[Priced],
    most: usize,
    out: &mut dyn Write,
) -> io::Result<Option<String>> {
    let mut writer = write::Writer::begin(out)?;
    let mut left = [(0, "GPU operation"), (0, "call"), (0, "wait")];
    let mut taken = FxHashSet::default();
    for (number, found) in captures.iter().enumerate() {
        let selection = Selection::new(found, most / captures.len().max(1));
        let kept = [&selection.ops.raw, &selection.calls.raw, &selection.waits.raw];
        for ((left, _), kept) in left.iter_mut().zip(kept) {
            *left += kept.iter().filter(|keep| !**keep).count() as u64;
        }
        let suffix = if captures.len() > 1 { format!(" ({})", file_name(found)) } else { String::new() };
        let tracks = Tracks::new(found, &suffix, &mut taken);
        write::Capture::new(report, found, number, tracks).write(&selection, &mut writer)?;
    }
    let left = left.iter().filter(|(n, _)| *n > 0).map(|(n, what)| text::counted(*n, what));
    let left = left.collect::<Vec<_>>().join(", ");
    let said = (!left.is_empty())
        .then(|| format!("the trace leaves out {left} that lie farther from waits: a viewer holds no more"));
    writer.end(said.as_deref())?;
    Ok(said)
}

fn file_name(found: &Priced) -> String {
    let name = found.profile.path().file_name();
    name.map_or_else(String::new, |n| text::escape_terminal(&n.to_string_lossy()).into_owned())
}
