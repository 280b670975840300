//! A capture as a drawing for an HTML page.

use crate::vocabulary::{Class, ProfileIx, SiteId, words};
use serde::Serialize;

pub use super::packed::Packed;

/// Limits of a drawing, over all captures of a report.
#[derive(Clone, Copy, Debug)]
pub struct DrawingLimit {
    /// Calls and operations kept one by one, some 6 characters each.
    pub spans: usize,
    /// Waits kept one by one, some 15 characters each.
    pub waits: usize,
    /// Slices of time over all lanes, a byte each at most.
    pub bins: usize,
    /// Lanes drawn.
    pub lanes: usize,
    /// Characters for spans and waits together.
    pub characters: usize,
}

/// The page stays under 10 MB: 7 of spans and waits, 1 of bins, the rest for sites and the program.
pub const WHOLE: DrawingLimit =
    DrawingLimit { spans: 400_000, waits: 150_000, bins: 1 << 19, lanes: 96, characters: 7_000_000 };

impl DrawingLimit {
    /// The share of one capture of `captures`.
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
    /// Start on the export's clock, as the nsys GUI shows it.
    pub start_ns: i64,
    /// Time from the first call or operation to the last.
    pub span_ns: i64,
    /// Names of kernels, copies and calls; spans refer to them by index.
    pub names: Vec<String>,
    /// Slices of time per lane.
    pub bins: usize,
    /// Streams, threads and idle times, in the order drawn.
    pub lanes: Vec<Lane>,
    /// Number of streams and threads left out, those with fewest spans.
    pub lanes_left_out: usize,
    /// The sites that waits refer to.
    pub sites: Vec<SiteRef>,
    /// The waits.
    pub waits: Waits,
    /// The loop, where one is known.
    pub iterations: Option<Iterations>,
    /// Windows of time in which lanes hold every span.
    pub windows: Packed,
}

/// A stream, a thread, or the idle time of a device.
#[derive(Clone, Debug, Serialize)]
pub struct Lane {
    /// Kind of the lane.
    pub kind: LaneKind,
    /// Lanes of one group are drawn together: a device, or a process.
    pub group: String,
    /// Name of the lane.
    pub label: String,
    /// Number of spans kept.
    pub kept: usize,
    /// Each span that touches a window, in start order: start after the start before, length, name.
    pub spans: Packed,
    /// How busy each slice was, 0 to 255.
    pub busy: Packed,
    /// Waits (threads) or idle after waits (idle lanes) in each slice, as `busy`, by class: false, true,
    /// unknown.
    pub by_class: [Packed; 3],
}

words! {
    /// Kind of a lane.
    LaneKind {
        Stream = "stream": "GPU operations of one stream.",
        Thread = "thread": "CUDA calls of one thread, and its waits.",
        Idle = "idle": "Idle time of a device that follows waits.",
    }
}

/// Waits in start order.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Waits {
    /// Number of all waits.
    pub total: usize,
    /// Number of waits kept one by one.
    pub kept: usize,
    /// Of each wait: start after the start before, length, start of the blocking call after the wait's,
    /// blocked time of the copy call before, site, lane + 1, drain, lane + 1 of the awaited stream (0: no
    /// more follows). Then the end of the awaited work after the wait's start (zigzag), lane + 1 of the
    /// drain, number of stretches of other streams, and of each stretch: lane + 1, start after the wait's,
    /// length.
    pub packed: Packed,
}

/// A site as far as the drawing needs it.
#[derive(Clone, Debug, Serialize)]
pub struct SiteRef {
    /// The site in the report.
    #[serde(skip)]
    pub ix: SiteId,
    /// Id such as "S1"; `None` where the report does not list the site.
    pub id: Option<String>,
    /// Class of the site.
    pub class: Class,
    /// Blocked time of the site over the run.
    pub series: Series,
}

/// Iterations of the program's loop.
#[derive(Clone, Debug, Serialize)]
pub struct Iterations {
    /// Name of the ranges, `#` for the number.
    pub name: String,
    /// Number of iterations.
    pub count: usize,
    /// Of each: start after the start before (the first after `start_ns`), length.
    pub packed: Packed,
}

/// Blocked time of a site over the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Series {
    /// Iterations of each point (fewer in the last); 0: points are equal slices of the capture.
    pub iterations_each: usize,
    /// Number of iterations.
    pub iterations: usize,
    /// Mean blocked time of an iteration, or blocked time within a slice, in ns.
    pub blocked_ns: Vec<i64>,
}
