//! What is priced, and what comes of it.

use super::overhead::Clock;
use crate::vocabulary::{BoundBy, Change, SiteIx};
use crate::waits::WaitId;
use typed_index_collections::TiVec;

pub use crate::model::limits::TOLERANCE;

/// A site to be priced.
#[derive(Clone, Debug)]
pub struct PricedSite {
    /// Settles ties, whatever the order of sites.
    pub key: String,
    /// The waits that the fix removes.
    pub waits: Vec<WaitId>,
    /// What the fix does to them.
    pub fix: Change,
    /// Counts towards the total: its verdict is false, and it waits after start-up too.
    pub counted: bool,
    /// Would count if it were avoidable, which is not decided, or rewritten.
    pub open: bool,
    /// Its verdict is true; if it is also open, it can be rewritten.
    pub needed: bool,
    /// Fixed already in what everything is compared with.
    pub assumed: bool,
    /// Whoever asks wants it to stay as it is: it saves nothing.
    pub kept: bool,
    /// Whether host work may go with its waits: before uploads, unless a loop gives what they send, which whoever goes through it
    /// makes all the same; behind reads where whoever asks for the fix says that the CPU can do without a value with which,
    /// by all that is known, it computes.
    pub works: bool,
}

/// What fixing one site saves without the profiler, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// Saved where only this site is fixed.
    pub alone: i64,
    /// Its share where all false sites are fixed: lost if only it is not.
    pub joint: i64,
    /// Lower end of the range of the saving.
    pub low: i64,
    /// Upper end of the range of the saving.
    pub high: i64,
    /// What `alone` is of one iteration; `None` where no loop is known, or nothing was simulated.
    pub iteration: Option<i64>,
    /// What was taken to change.
    pub fix: Change,
    /// Part of the saving of the whole.
    pub counted: bool,
    /// Part of what may add to that.
    pub open: bool,
    /// From a simulation; else `high` is all that is known.
    pub simulated: bool,
    /// The site whose waits take most of the time that this one gives up.
    pub moves_to: Option<SiteIx>,
    /// By how much the simulated saving lay above what its waits can give: it was cut.
    pub cut: i64,
}

/// The prices of one capture.
#[derive(Clone, Debug, Default)]
pub struct Prices {
    /// |simulated − recorded| / recorded span, nothing fixed; `None` until priced.
    pub error: Option<f64>,
    /// The same with usual latencies in place of the recorded distances.
    pub usual_error: Option<f64>,
    /// Recorded span, from the first event to the last end, in ns.
    pub recorded: i64,
    /// The same span as simulated with nothing fixed, in ns.
    pub simulated: i64,
    /// One price a subject.
    pub sites: TiVec<SiteIx, Price>,
    /// The run without the profiler, all false sites fixed; of the captured run, and an upper bound, where nothing was simulated.
    pub run: Saving,
    /// The same of an iteration; `None` where no loop is known, or nothing was simulated.
    pub iteration: Option<Saving>,
    /// The captured run, and its saving by simulation.
    pub captured: Saving,
    /// An iteration of the captured run.
    pub captured_iteration: Option<Saving>,
    /// What limits the run once all false sites are fixed; `None` until priced.
    pub bound_by: Option<BoundBy>,
    /// Sites with upper bounds only: simulating each would take too long, or no simulated iteration comes by.
    pub unsimulated: usize,
    /// Whether the GPU's power limit takes part of the savings.
    pub clock: Clock,
    /// Speed of pinned uploads in GB/s where the capture shows none.
    pub assumed_bandwidth: Option<f64>,
    /// How long launches take here, beside the host that the profiler's known figures are from.
    pub pace: f64,
    /// Whether what an iteration takes without a profiler could be used; `None` where it was not given.
    pub step_known: Option<bool>,
    /// Whether part of that is of backtraces.
    pub backtraces: bool,
    /// Iterations that were simulated, where not each was.
    pub sampled: Option<u64>,
    /// By how much iterations scatter, all of them together: part of the range of the run.
    pub scatter: i64,
    /// Sites that save something only together.
    pub together: Vec<Together>,
    /// The most by which a simulated value lay above what its waits can give or above the whole, in ns: it was cut.
    pub cut: i64,
}

/// How long a run or an iteration takes, and what fixing all false sites saves of it, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saving {
    /// With nothing fixed.
    pub length: i64,
    /// Saved.
    pub saved: i64,
    /// Lower end of the range of the saving.
    pub low: i64,
    /// Upper end of the range of the saving.
    pub high: i64,
    /// Saved on top of that if all that can be rewritten is.
    pub rewritten: i64,
    /// Saved on top of both if all that is undecided can go too.
    pub open: i64,
}

/// Sites that save something only together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Together {
    /// Ascending.
    pub sites: Vec<SiteIx>,
    /// What fixing all of them saves, of an iteration where the loop is known, else of the run.
    pub saving: Saving,
    /// What each saves alone of the same.
    pub alone: Vec<i64>,
}

/// How a capture is to be priced.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// Worker threads, whose number changes nothing of the result.
    pub threads: usize,
    /// Prices the run as captured, the profiler's time in it.
    pub as_captured: bool,
    /// What an iteration takes without a profiler, in ns, where that is known.
    pub step: Option<i64>,
}

impl Prices {
    /// Lets all ranges begin at nothing: at the power limit kernels may slow down by all that idle time was given up.
    pub fn promise_nothing(&mut self) {
        self.iteration.iter_mut().chain([&mut self.run]).for_each(|saving| saving.low = 0);
        self.sites.iter_mut().for_each(|price| price.low = 0);
    }

    /// Whether nothing was priced.
    pub fn is_empty(&self) -> bool {
        self.recorded == 0
    }

    /// Whether the simulated run is close enough to the recorded one ([`TOLERANCE`]) to price with.
    pub fn usable(&self) -> bool {
        self.error.is_some_and(|error| error <= TOLERANCE)
    }
}
