//! Sites that are priced, and their prices.

use super::overhead::Clock;
use crate::vocabulary::{BoundBy, Change, SiteIx};
use crate::waits::WaitId;
use typed_index_collections::TiVec;

pub use crate::model::limits::TOLERANCE;

#[derive(Clone, Debug)]
pub struct PricedSite {
    /// Breaks ties.
    pub key: String,
    pub waits: Vec<WaitId>,
    pub fix: Change,
    /// Counts towards the total: it is avoidable, and it waits after start-up too.
    pub counted: bool,
    /// Would count if it were avoidable, which is undecided, or rewritten.
    pub open: bool,
    /// If also open, it can be rewritten.
    pub needed: bool,
    /// Already fixed in the baseline.
    pub assumed: bool,
    /// The user wants it to stay: it saves nothing.
    pub kept: bool,
    /// Host work may go with its waits. Before uploads: unless a loop yields their data, which iterating
    /// makes all the same. Behind reads: if the user's `--fix` says that the CPU can do without the value.
    pub works: bool,
}

/// What fixing one site saves without the profiler, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    pub alone: i64,
    /// Share where all avoidable sites are fixed: lost if only it is not.
    pub joint: i64,
    pub low: i64,
    pub high: i64,
    /// `alone` in one iteration; `None` where no loop is known, or nothing was simulated.
    pub iteration: Option<i64>,
    pub fix: Change,
    pub counted: bool,
    pub open: bool,
    /// False: `high` is all that is known.
    pub simulated: bool,
    /// The site whose waits take most of the time that this one gives up.
    pub moves_to: Option<SiteIx>,
    /// How far the simulated saving lay above its bound, to which it was cut.
    pub cut: i64,
}

#[derive(Clone, Debug, Default)]
pub struct Prices {
    /// |simulated − recorded| / recorded span, nothing fixed; `None` until priced.
    pub error: Option<f64>,
    /// The same with usual latencies in place of the recorded distances.
    pub usual_error: Option<f64>,
    /// From the first event to the last end, in ns.
    pub recorded: i64,
    pub simulated: i64,
    pub sites: TiVec<SiteIx, Price>,
    /// The run without the profiler. If nothing was simulated: the captured run, with an upper bound.
    pub run: Saving,
    /// The same of an iteration; `None` where no loop is known, or nothing was simulated.
    pub iteration: Option<Saving>,
    pub captured: Saving,
    pub captured_iteration: Option<Saving>,
    /// With all avoidable sites fixed; `None` until priced.
    pub bound_by: Option<BoundBy>,
    /// Sites with upper bounds only: they exceed the budget, or no simulated iteration reaches them.
    pub unsimulated: usize,
    /// Whether the GPU's power limit takes part of the savings.
    pub clock: Clock,
    /// GB/s of pinned uploads; `None` where the capture shows it.
    pub assumed_bandwidth: Option<f64>,
    /// Length of launches relative to the host of the profiler's known figures.
    pub pace: f64,
    /// Whether the given length of an iteration without a profiler was used; `None` if none was given.
    pub step_known: Option<bool>,
    pub backtraces: bool,
    /// Number of simulated iterations; `None` if all were.
    pub sampled: Option<u64>,
    pub scatter: i64,
    pub together: Vec<Together>,
    /// Largest excess of a simulated value over its bound, or lack of the whole below its best part, in ns.
    pub cut: i64,
}

/// Length of a run or an iteration, and its saving with all avoidable sites fixed, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saving {
    /// With nothing fixed.
    pub length: i64,
    pub saved: i64,
    pub low: i64,
    pub high: i64,
    /// Saved on top if all that can be rewritten is.
    pub rewritten: i64,
    /// Saved on top of both if all that is undecided can go too.
    pub open: i64,
}

/// Sites that save something only together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Together {
    /// Ascending.
    pub sites: Vec<SiteIx>,
    /// Saving of an iteration where the loop is known, else of the run.
    pub saving: Saving,
    pub alone: Vec<i64>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// Worker threads; their number does not change the result.
    pub threads: usize,
    /// Prices the run as captured, with the profiler's time.
    pub as_captured: bool,
    /// Length of an iteration without a profiler, in ns, if known.
    pub step: Option<i64>,
}

impl Prices {
    /// Lets all ranges begin at 0: at the power limit kernels may slow down by all the idle time that goes.
    pub fn promise_nothing(&mut self) {
        self.iteration.iter_mut().chain([&mut self.run]).for_each(|saving| saving.low = 0);
        self.sites.iter_mut().for_each(|price| price.low = 0);
    }

    pub fn is_empty(&self) -> bool {
        self.recorded == 0
    }

    /// Whether the simulated run is close enough to the recorded one ([`TOLERANCE`]) to price with.
    pub fn usable(&self) -> bool {
        self.error.is_some_and(|error| error <= TOLERANCE)
    }
}
