//! Results over ranks: how each site's costs spread, which rank comes late to collectives, and why.

use crate::vocabulary::{Class, Kind, Per, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words! {
    /// Source of a rank's number.
    #[derive(Default)]
    NamedBy {
        Name = "name": "By the name of its export",
        Environment = "environment": "By the environment that the export recorded",
        Communicator = "communicator": "By the communicator of NCCL that all of them are in",
        #[default]
        Order = "order": "By the order of names, devices and process ids: no better sign is there, or two contradict",
    }
}

/// The ranks of a program, over all exports given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ranks {
    /// Base of amounts: an average "iteration" of each rank if all have a loop, else the "run".
    pub per: Per,
    /// The ranks, ascending.
    pub list: Vec<Rank>,
    /// Rank numbers between the first and the last that no export has.
    pub missing: Vec<u32>,
    /// Sites over ranks: recurring before paid once, then avoidable, undecided, needed, then by saving.
    pub sites: Vec<RankSite>,
    /// Number of sites that `--top` cut from `sites`.
    pub sites_omitted: usize,
    /// Alignment of the exports' clocks; null where one export holds all ranks.
    pub clocks: Option<Clocks>,
    /// Number of collectives found on all ranks of their group.
    pub met: u64,
    /// Number of collectives not found on all ranks of their group.
    pub alone: u64,
    /// Late ranks by collective, the costliest for other ranks first.
    pub late: Vec<Late>,
}

/// Advice for a wait for a rank that comes late to collectives.
pub fn find_the_late(late: &str) -> String {
    format!("nothing to do here: find what makes {late} late")
}

impl Ranks {
    /// Length of an iteration, or without a loop of the run, on the slowest rank.
    pub fn length_ns(&self) -> i64 {
        let iterations =
            self.list.iter().filter(|_| self.per == Per::Iteration).filter_map(|rank| rank.iteration_ns);
        iterations.max().or_else(|| self.list.iter().map(|rank| rank.span_ns).max()).unwrap_or(0)
    }

    /// The rank that others wait for most, if its delay takes 1 % of [`Self::length_ns`] or more.
    pub fn latest(&self) -> Option<&Late> {
        self.late.first().filter(|late| late.delay_ns().0 >= self.length_ns() / 100)
    }
}

/// One process of a program that runs in many.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rank {
    /// Number of the rank, unique in the report.
    pub rank: u32,
    /// Source of the number.
    pub named_by: NamedBy,
    /// Path of the rank's export, as given.
    pub profile: String,
    /// Process id.
    pub pid: u32,
    /// Name of the machine; null where not recorded.
    pub host: Option<String>,
    /// Iterations of the loop, without start-up; 0 where no loop is known.
    pub iterations: u64,
    /// Leading iterations left out as start-up.
    #[serde(default)]
    pub start_up: u64,
    /// Median length of an iteration.
    pub iteration_ns: Option<i64>,
    /// Time from the export's first CUDA call or GPU operation to the last.
    pub span_ns: i64,
    /// Number of waits.
    pub waits: u64,
    /// Host time inside the waits.
    pub blocked_ns: i64,
    /// GPU idle time after the waits.
    pub drain_ns: i64,
    /// Offset added to the export's times to put them on the first rank's clock; null where unknown.
    pub clock_ns: Option<i64>,
}

/// A site over all ranks. A rank without the site counts as 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankSite {
    /// Id of the rank's site that blocks longest; a number of its own in a merged report.
    pub id: String,
    /// Key of the site, the same on every rank.
    pub key: String,
    /// Class on the rank that the site blocks longest.
    pub class: Class,
    /// Reason for the class, as a word.
    pub kind: Kind,
    /// Confidence in the class, 0 to 1.
    pub confidence: f64,
    /// Whether other ranks have another class.
    pub disputed: bool,
    /// Line and function, or the best substitute.
    pub place: String,
    /// Runtime or driver name without its version suffix.
    pub api: String,
    /// Title of the advice; null where there is none.
    pub fix: Option<String>,
    /// Whether every rank with the site pays it once per process.
    pub once: bool,
    /// Base of the times: an iteration of each rank if the site waits in iterations, else the run.
    #[serde(default)]
    pub per: Per,
    /// Whether some rank's saving is only an upper bound.
    #[serde(default)]
    pub saves_at_most: bool,
    /// The late rank that most of this waiting is for, which no change of this site saves; else null.
    #[serde(default)]
    pub late_rank: Option<u32>,
    /// Number of ranks with the site.
    pub ranks: u64,
    /// Waits per run.
    pub waits: Over,
    /// Host time inside the waits.
    pub blocked_ns: Over,
    /// 99th percentile of the blocked time of single waits, on the rank where it is longest.
    pub blocked_p99_ns: i64,
    /// GPU idle time after the waits.
    pub drain_ns: Over,
    /// Saving of fixing the site; an upper bound where no more is known.
    pub saves_ns: Over,
    /// Ranks that the site blocks far longer than the others, the longest first.
    pub odd: Vec<Odd>,
    /// Blocked time on each rank, in the order of `list`.
    pub blocked_by_rank_ns: Vec<i64>,
}

/// Distribution of a value over ranks. Quantiles are values that occur, by nearest rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Over {
    /// 10th percentile.
    pub p10: i64,
    /// Median; of two ranks the larger.
    pub p50: i64,
    /// 90th percentile.
    pub p90: i64,
    /// Largest value.
    pub max: i64,
    /// First rank with the largest value.
    pub max_rank: u32,
}

/// A rank that a site blocks far longer than the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Odd {
    /// Number of the rank.
    pub rank: u32,
    /// Blocked time on the rank.
    pub blocked_ns: i64,
}

/// Alignment of the exports' clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Clocks {
    /// Exports aligned by collectives, which end on all ranks at once.
    pub by_collectives: u64,
    /// Exports aligned only by the start of their session, as exactly as the machines' clocks agree.
    pub by_start: u64,
    /// 90th percentile of the distance between ends of aligned collectives, on the worst export.
    pub residual_ns: Option<i64>,
}

/// A rank that comes late to a kind of collective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Late {
    /// Number of the late rank.
    pub rank: u32,
    /// Name of the collective kernel.
    pub collective: String,
    /// Hash of the communicator in hexadecimal; null where not recorded.
    pub communicator: Option<String>,
    /// Number of ranks that meet: the communicator's members, else all.
    pub among: u64,
    /// Number of times the rank came last by more than the clocks' error.
    pub times: u64,
    /// Number of times all these ranks met.
    pub of: u64,
    /// Median delay after the rank before.
    pub late_p50_ns: i64,
    /// Longest delay.
    pub late_max_ns: i64,
    /// Sum of the delays.
    pub late_ns: i64,
    /// Time that the other ranks' kernels waited for the late rank, summed over these ranks.
    pub cost_ns: i64,
    /// Mean delay per iteration, without start-up; null unless all ranks have a loop.
    #[serde(default)]
    pub per_iteration_ns: Option<i64>,
    /// Part of `per_iteration_ns` in the late rank's own waits.
    #[serde(default)]
    pub waiting_per_iteration_ns: Option<i64>,
    /// `late_ns` by the late rank's activity.
    pub spent: Spent,
    /// The wait that most often made the rank late; null where none ended within a delay.
    pub wait: Option<LateWait>,
}

impl Late {
    /// Delay per iteration, or without a loop per run, and its part in the rank's own waits.
    pub fn delay_ns(&self) -> (i64, i64) {
        self.per_iteration_ns
            .zip(self.waiting_per_iteration_ns)
            .unwrap_or((self.late_ns, self.spent.waiting_ns))
    }

    /// Whether most of the delay is due to the rank's GPU, not its host.
    pub fn launched_in_time(&self) -> bool {
        self.spent.gpu_ns > self.late_ns / 2
    }
}

/// Delay of a late rank by its activity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    /// Time blocked in the last wait before the collective's launch.
    pub waiting_ns: i64,
    /// Other host time before the launch.
    pub host_ns: i64,
    /// Time after the launch, while the GPU had other work.
    pub gpu_ns: i64,
}

/// A wait that ended just before a late rank launched its collective.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LateWait {
    /// Key of the wait's site.
    pub key: String,
    /// Id of the site over ranks; null where that site is not listed.
    pub id: Option<String>,
    /// Place of the wait, else its key.
    pub place: String,
    /// Number of delays with this wait.
    pub times: u64,
}
