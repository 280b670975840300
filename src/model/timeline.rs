//! A capture as a drawing: what a page needs to show it.

use crate::vocabulary::{Class, ProfileIx, SiteId, words};
use serde::Serialize;

pub use super::packed::Packed;

/// What a drawing may hold, all captures of a report together.
#[derive(Clone, Copy, Debug)]
pub struct DrawingLimit {
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
pub const WHOLE: DrawingLimit =
    DrawingLimit { spans: 400_000, waits: 150_000, bins: 1 << 19, lanes: 96, characters: 7_000_000 };

impl DrawingLimit {
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
    pub profile: ProfileIx,
    /// On the export's clock, as the nsys GUI shows it.
    pub start_ns: i64,
    /// First call or operation to last.
    pub span_ns: i64,
    /// Names of kernels, copies and calls; spans refer to them by index.
    pub names: Vec<String>,
    /// Slices of time per lane.
    pub bins: usize,
    /// Streams, threads and idle times, in the order drawn.
    pub lanes: Vec<Lane>,
    /// Streams and threads left out, those with fewest spans.
    pub lanes_left_out: usize,
    /// The sites that waits refer to.
    pub sites: Vec<SiteRef>,
    /// The waits.
    pub waits: Waits,
    /// The loop, where one is known.
    pub iterations: Option<Iterations>,
    /// Where lanes hold every span.
    pub windows: Packed,
}

/// A stream, a thread, or the idle time of a device.
#[derive(Clone, Debug, Serialize)]
pub struct Lane {
    /// What it shows.
    pub kind: LaneKind,
    /// Lanes of one group stand together: a device, or a process.
    pub group: String,
    /// Its name.
    pub label: String,
    /// Spans that are kept.
    pub kept: usize,
    /// Start after the start before, length, name: of each span that touches a window, in start order.
    pub spans: Packed,
    /// How busy each slice was, 0 to 255.
    pub busy: Packed,
    /// For threads the time in waits, for idle lanes the drain; of false, true and unknown sites.
    pub by_class: [Packed; 3],
}

words! {
    /// What a lane shows.
    LaneKind {
        Stream = "stream": "GPU operations of one stream.",
        Thread = "thread": "CUDA calls of one thread, and its waits.",
        Idle = "idle": "Idle time of a device that follows waits.",
    }
}

/// Waits in start order.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Waits {
    /// Waits there are.
    pub total: usize,
    /// Those that are kept one by one.
    pub kept: usize,
    /// Start after the start before, length, from its start to that of the blocking call, blocked time of the copy call
    /// before, site, lane + 1, drain, awaited stream's lane + 1, and, where there is one, the end of the awaited work after
    /// the start (zigzag), the drain's lane + 1, how many more stretches of other streams it waited for, and of each the
    /// lane + 1, its start after the wait's and its length.
    pub packed: Packed,
}

/// A site as far as the drawing needs it.
#[derive(Clone, Debug, Serialize)]
pub struct SiteRef {
    /// Which site of the report it is.
    #[serde(skip)]
    pub ix: SiteId,
    /// "S1", where the report has it.
    pub id: Option<String>,
    /// Its class.
    pub class: Class,
    /// Its blocked time over the run.
    pub series: Series,
}

/// Iterations of the program's loop.
#[derive(Clone, Debug, Serialize)]
pub struct Iterations {
    /// Name of the ranges, `#` for the number.
    pub name: String,
    /// How many.
    pub count: usize,
    /// Start after the start before (the first after `start_ns`), length.
    pub packed: Packed,
}

/// Blocked time of a site over the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Series {
    /// Points are of this many iterations each (the last may be of fewer); 0: they are equal slices of the capture.
    pub iterations_each: usize,
    /// Iterations there are.
    pub iterations: usize,
    /// Mean blocked time of an iteration, or blocked time within a slice, in ns.
    pub blocked_ns: Vec<i64>,
}
