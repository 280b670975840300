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
mod encode;
pub mod labels;
mod lanes;
mod names;
mod series;
pub mod waits;
mod windows;

use crate::analysis::Analysed;
use crate::vocabulary::Class;
use serde::Serialize;

pub use encode::Packed;
pub use series::Series;

/// What a drawing may hold, all captures of a report together.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Calls and operations kept one by one. They take some 6 characters each.
    pub spans: usize,
    /// Waits kept one by one. They take some 15 characters each.
    pub waits: usize,
    /// Slices of time over all lanes: a byte each at most.
    pub bins: usize,
    /// Lanes drawn.
    pub lanes: usize,
    /// Characters that spans and waits may take, however much each of them needs.
    pub characters: usize,
}

/// The page stays under 10 MB with all of it used: 7 of spans and waits, 1 of bins, the rest for sites and the program.
pub const WHOLE: Budget =
    Budget { spans: 400_000, waits: 150_000, bins: 1 << 19, lanes: 96, characters: 7_000_000 };

impl Budget {
    /// The part of one capture of `captures`.
    pub fn share(self, captures: usize) -> Self {
        let part = |all: usize| (all / captures.max(1)).max(4);
        Self {
            spans: part(self.spans),
            waits: part(self.waits),
            bins: part(self.bins),
            lanes: part(self.lanes),
            characters: part(self.characters),
        }
    }
}

/// One capture, ready to be drawn. Times are ns from `start_ns`.
#[derive(Clone, Debug, Serialize)]
pub struct Timeline {
    /// Index of the export in the report.
    pub profile: usize,
    /// On the export's clock, as the nsys GUI shows it.
    pub start_ns: i64,
    pub span_ns: i64,
    /// Names of kernels, copies and calls; spans refer to them by index.
    pub names: Vec<String>,
    /// Slices of time per lane.
    pub bins: usize,
    pub lanes: Vec<Lane>,
    /// Streams and threads left out, those with fewest spans.
    pub lanes_left_out: usize,
    /// The sites that waits refer to.
    pub sites: Vec<SiteRef>,
    pub waits: Waits,
    pub iterations: Option<Iterations>,
    /// Where lanes hold every span.
    pub windows: Packed,
    /// Calls and operations of the lanes, and how many of them are kept.
    pub total_spans: usize,
    pub kept_spans: usize,
}

/// A stream, a thread, or the idle time of a device.
#[derive(Clone, Debug, Serialize)]
pub struct Lane {
    pub kind: LaneKind,
    /// Lanes of one group stand together: a device, or a process.
    pub group: String,
    pub label: String,
    /// Time within spans, in ns; for [`LaneKind::Idle`] the drain.
    pub busy_ns: i64,
    /// Spans there are, and how many of them are kept.
    pub total: usize,
    pub kept: usize,
    /// Start after the start before, length, name: of each span that touches a window, in start order.
    pub spans: Packed,
    /// How busy each slice was, 0 to 255.
    pub busy: Packed,
    /// For threads the time in waits, for idle lanes the drain; of false, true and unknown sites.
    pub by_class: [Packed; 3],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LaneKind {
    /// GPU operations of one stream.
    Stream,
    /// CUDA calls of one thread, and its waits.
    Thread,
    /// Idle time of a device that follows waits.
    Idle,
}

/// Waits in start order.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Waits {
    pub total: usize,
    pub kept: usize,
    /// Start after the start before, length, from its start to that of the blocking call, blocked time of the copy call
    /// before, site, lane + 1, drain, awaited stream's lane + 1, and, where there is one, the end of the awaited work after
    /// the start (zigzag) and the drain's lane + 1.
    pub packed: Packed,
}

/// A site as far as the drawing needs it.
#[derive(Clone, Debug, Serialize)]
pub struct SiteRef {
    /// Process and key find the site in the report.
    #[serde(skip)]
    pub pid: u32,
    #[serde(skip)]
    pub key: String,
    /// "S1", where the report has it.
    pub id: Option<String>,
    pub class: Class,
    pub series: Series,
}

/// Iterations of the program's loop.
#[derive(Clone, Debug, Serialize)]
pub struct Iterations {
    /// Name of the ranges, `#` for the number.
    pub name: String,
    pub count: usize,
    /// Start after the start before (the first after `start_ns`), length.
    pub packed: Packed,
}

/// What is drawn of an analysed capture: its part between two times of the export's clock, with the whole detail around
/// some waits (start and end, the most interesting first).
pub struct Wanted<'a> {
    pub profile: usize,
    pub from: i64,
    pub to: i64,
    pub examples: &'a [(i64, i64)],
    pub budget: Budget,
}

/// Draws a capture. Should the spans take more characters than allowed, as those with enormous times do, it is drawn again
/// with half as many.
pub fn draw(found: &Analysed, wanted: &Wanted) -> Timeline {
    let mut budget = wanted.budget;
    loop {
        let drawing = lanes::draw(found, &Wanted { budget, ..*wanted });
        let used = drawing.lanes.iter().map(|l| l.spans.len()).sum::<usize>() + drawing.waits.packed.len();
        if used <= wanted.budget.characters || budget.spans <= 4 {
            return drawing;
        }
        budget.spans /= 2;
        budget.waits /= 2;
    }
}
