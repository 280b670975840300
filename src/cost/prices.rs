//! What is priced, and what comes of it.

use super::overhead::Clock;
use crate::model::Bounds;
use crate::vocabulary::{BoundBy, Change, SiteIx};
use crate::waits::WaitId;
use typed_index_collections::TiVec;

/// Share of the span by which the simulated run may miss the recorded one.
pub const TOLERANCE: f64 = 0.1;

/// A site to be priced.
#[derive(Clone, Debug)]
pub struct Subject {
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
    /// What removing the waits of the captured run saves at least and at most.
    pub bounds: Bounds,
    /// What was taken to change.
    pub fix: Change,
    /// Part of the saving of the whole.
    pub counted: bool,
    /// Part of what may add to that.
    pub open: bool,
    /// From a simulation; else the lower bound stands for the value.
    pub simulated: bool,
    /// The site whose waits take most of the time that this one gives up.
    pub moves_to: Option<SiteIx>,
    /// By how much the simulated saving lay outside its bounds: it was cut.
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
    /// The run without the profiler, all false sites fixed; of the captured run, and bounds, where nothing was simulated.
    pub run: Saving,
    /// The same of an iteration; `None` where no loop is known, or nothing was simulated.
    pub iteration: Option<Saving>,
    /// The captured run, and its saving by simulation.
    pub captured: Saving,
    /// An iteration of the captured run.
    pub captured_iteration: Option<Saving>,
    /// What limits the run once all false sites are fixed; `None` until priced.
    pub bound_by: Option<BoundBy>,
    /// Sites with bounds only: simulating each would take too long, or no simulated iteration comes by.
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
    /// The most by which a simulated value lay outside its bounds or above the whole, in ns: it was cut.
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
    /// Saved on top of that if all that is undecided can go too, and what can be rewritten is.
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
    /// Lets ranges reach towards what another capture of the program gives, of the same sites: its own figure and, unless that is
    /// `slanted` by its backtraces, halfway from there to the ends of its range.
    ///
    /// ```text
    ///  this    |····low––––saved––––high···············|
    ///  other   |··low–saved–––––––––––––––––––high·····|
    ///  range   |····low–––––––––––––––––high···········|
    /// ```
    /// Two runs differ by more than iterations of one scatter. Of 112 programs of docs/savings.md 102 ranges meet the measured saving
    /// so (99 without) at a median width of 7.0 % of an iteration (6.7); of thirty on a noisy host 25 (22).
    pub fn reach(&mut self, other: &Self, slanted: bool) {
        if !self.usable() || !other.usable() {
            return;
        }
        let reach = |(low, high): (&mut i64, &mut i64), whole: i64, [saved, least, most, of]: [i64; 4]| {
            let here = |ns: i64| (i128::from(ns) * i128::from(whole) / i128::from(of.max(1))) as i64;
            let towards = |end: i64| here(if slanted { saved } else { saved.midpoint(end) });
            (*low, *high) = ((*low).min(towards(least)), (*high).max(towards(most)));
        };
        let whole = |own: &mut Saving, s: &Saving| {
            reach((&mut own.low, &mut own.high), own.length, [s.saved, s.low, s.high, s.length]);
        };
        let run = self.run.length;
        for (own, p) in self.sites.iter_mut().zip(&other.sites) {
            reach((&mut own.low, &mut own.high), run, [p.alone, p.low, p.high, other.run.length]);
        }
        whole(&mut self.run, &other.run);
        if let (Some(own), Some(other)) = (&mut self.iteration, &other.iteration) {
            whole(own, other);
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    fn prices(length: i64, [saved, low, high]: [i64; 3]) -> Prices {
        let run = Saving { length, saved, low, high, open: 0 };
        let site = Price { alone: saved, low, high, ..Price::default() };
        Prices { error: Some(0.0), run, iteration: Some(run), sites: vec![site].into(), ..Prices::default() }
    }

    /// A run twice as long, of which 400 are saved, or 300 to 1,000: 200 here, halfway to its ends 175 and 350.
    #[test]
    fn ranges_reach_towards_what_the_other_capture_gives() {
        let reached = |own, slanted| {
            let mut here = prices(1_000, own);
            here.reach(&prices(2_000, [400, 300, 1_000]), slanted);
            let (run, site) = (here.run, here.sites.raw[0]);
            assert_eq!(here.iteration, Some(run));
            assert_eq!((site.alone, site.low, site.high), (run.saved, run.low, run.high));
            (run.saved, run.low, run.high)
        };
        assert_eq!(reached([100, 80, 120], false), (100, 80, 350));
        assert_eq!(reached([100, 80, 120], true), (100, 80, 200));
        assert_eq!(reached([300, 280, 500], false), (300, 175, 500));
    }

    #[test]
    fn what_does_not_reproduce_its_run_widens_nothing() {
        let mut here = prices(1_000, [100, 80, 120]);
        here.reach(&Prices { error: Some(0.2), ..prices(1_000, [400, 300, 1_000]) }, false);
        assert_eq!(here.run.high, 120);
    }
}
