//! A capture as a drawing: lanes of GPU streams and host threads, waits, drains and iterations, in as much detail as fits.
//!
//! ```text
//!  whole capture   ▓▓░▓▓▓░░▓▓▓▓░▓▓▓░░▓▓▓▓▓░▓▓▓▓     bins: how much of each slice was busy, everywhere
//!  windows             ├────────┤      ├───┤          where every span is kept, around the waits to look at first
//!  spans               ▐█▌ ▐██▌ █      ▐██ █
//! ```
//! A capture of some hundred thousand operations is kept whole; of a larger one the windows grow around the example
//! waits until the budget is used. So the drawing of a million calls is a few megabytes and nothing in it is made up:
//! outside the windows the reader sees how busy a slice was, not spans that never ran. Linear in calls and
//! operations, and only done where a drawing is asked for.

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

/// What is drawn of an analysed capture: its part between two times of the export's clock, with the whole detail around
/// some waits (start and end, the most interesting first).
pub struct Drawn<'a> {
    /// Index of the export in the report.
    pub profile: ProfileIx,
    /// Where the drawing begins, in ns.
    pub from: i64,
    /// Where it ends, in ns.
    pub to: i64,
    /// Start and end of the waits to show in detail, in ns.
    pub examples: &'a [(i64, i64)],
    /// How many spans and characters the drawing may take.
    pub budget: DrawingLimit,
}

/// What a lane is of.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Source {
    Idle(DeviceIx),
    Stream(StreamIx),
    Thread(ThreadIx),
}

/// Lanes by what they are of, but for those left out.
type Places = FxHashMap<Source, usize>;

/// Draws a capture. Should the spans take more characters than allowed, as those with enormous times do, it is drawn again
/// with half as many.
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
