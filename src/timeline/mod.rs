//! A capture as a drawing: lanes of GPU streams and host threads, waits, idle times and iterations.
//!
//! ```text
//!  whole capture   ▓▓░▓▓▓░░▓▓▓▓░▓▓▓░░▓▓▓▓▓░▓▓▓▓     bins: how much of each slice was busy, everywhere
//!  windows             ├────────┤      ├───┤          where every span is kept, around the waits to look at first
//!  spans               ▐█▌ ▐██▌ █      ▐██ █
//! ```
//! A capture of some hundred thousand operations is kept whole. In a larger one, windows grow around the
//! example waits until the budget is used. So the drawing of a million calls takes a few megabytes. Nothing
//! in it is made up: outside the windows it shows how busy a slice was, not spans that never ran. Linear in
//! calls and operations.

mod bins;
pub(crate) mod labels;
mod lanes;
mod names;
mod series;
pub(crate) mod waits;
mod windows;

use crate::analysis::Priced;
use crate::model::timeline::{DrawingLimit, Timeline};
use crate::profile::ids::{StreamIx, ThreadIx};
use crate::vocabulary::ProfileIx;
use crate::waits::device::DeviceIx;
use rustc_hash::FxHashMap;

/// The drawn part of a capture, between two times (ns) of its clock, with full detail around some waits.
pub struct Drawn<'a> {
    pub profile: ProfileIx,
    pub from: i64,
    pub to: i64,
    /// Waits to show in detail, most interesting first: start and end in ns.
    pub examples: &'a [(i64, i64)],
    pub budget: DrawingLimit,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Source {
    Idle(DeviceIx),
    Stream(StreamIx),
    Thread(ThreadIx),
}

/// Index of each lane, without lanes left out.
type Places = FxHashMap<Source, usize>;

/// Draws a capture. If the spans take too many characters (enormous times), draws again with half as many.
pub fn draw(found: &Priced, wanted: &Drawn) -> Timeline {
    let mut budget = wanted.budget;
    loop {
        let drawing = lanes::draw(found, &Drawn { budget, ..*wanted });
        let used = drawing.lanes.iter().map(|l| l.spans.len()).sum::<usize>() + drawing.waits.packed.len();
        if used <= wanted.budget.characters || budget.spans <= 4 {
            return drawing;
        }
        budget.spans /= 2;
        budget.waits /= 2;
    }
}
