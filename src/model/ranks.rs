//! What a report says over ranks: how each site's costs spread, who comes late to collectives, and why.

use crate::vocabulary::{Class, Kind, Per, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words! {
    /// How the number of a rank is known.
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
    /// The span that amounts are of: one "iteration" of each rank on average if all have a loop, else its "run".
    pub per: Per,
    /// Ascending.
    pub list: Vec<Rank>,
    /// Numbers between the first and the last that no export has.
    pub missing: Vec<u32>,
    /// Those that block a rank longest first, what is paid once last.
    pub sites: Vec<RankSite>,
    /// Sites that are not listed.
    pub sites_omitted: usize,
    /// How the clocks of the exports were put together; `None` where one export holds all.
    pub clocks: Option<Clocks>,
    /// Collectives that were found on all ranks of their group.
    pub met: u64,
    /// Collectives of one rank or more that were not found on the others.
    pub alone: u64,
    /// Ranks that others waited for, what costs them most first.
    pub late: Vec<Late>,
}

/// The advice for a wait that is for a rank which comes late to collectives.
pub fn find_the_late(late: &str) -> String {
    format!("nothing to do here: find what makes {late} late")
}

impl Ranks {
    /// How long an iteration takes, or without a loop the run, on the rank where that is longest.
    pub fn length_ns(&self) -> i64 {
        let iterations =
            self.list.iter().filter(|_| self.per == Per::Iteration).filter_map(|rank| rank.iteration_ns);
        iterations.max().or_else(|| self.list.iter().map(|rank| rank.span_ns).max()).unwrap_or(0)
    }

    /// The rank that others wait for most, where it makes an iteration longer by a hundredth or more: the answer, before any
    /// saving.
    pub fn latest(&self) -> Option<&Late> {
        self.late.first().filter(|late| late.delay_ns().0 >= self.length_ns() / 100)
    }
}

/// A process of a program that runs in many.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rank {
    /// Its number; of all ranks each has its own.
    pub rank: u32,
    /// How that is known.
    pub named_by: NamedBy,
    /// Path of its export, as it was given.
    pub profile: String,
    /// Process id.
    pub pid: u32,
    /// The machine, where recorded.
    pub host: Option<String>,
    /// Iterations of its loop, without start-up; 0 where none is known.
    pub iterations: u64,
    /// Iterations before those, left out as start-up.
    #[serde(default)]
    pub start_up: u64,
    /// Median length of one, in ns.
    pub iteration_ns: Option<i64>,
    /// First call or op of its export to last.
    pub span_ns: i64,
    /// Waits of all sites.
    pub waits: u64,
    /// Host time inside them.
    pub blocked_ns: i64,
    /// GPU idle time after them.
    pub drain_ns: i64,
    /// What was added to the times of its export to put them on the clock of the first rank; `None` where nothing tells.
    pub clock_ns: Option<i64>,
}

/// A site on all ranks. A rank without it counts with 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankSite {
    /// Id of the report's site that blocks longest of those that share the key; of a merged report a number of its own.
    pub id: String,
    /// What its sites are known by on every rank.
    pub key: String,
    /// Verdict on the rank that it blocks longest.
    pub class: Class,
    /// Why, there.
    pub kind: Kind,
    /// How sure that is, there: 0 to 1.
    pub confidence: f64,
    /// Whether ranks have other verdicts.
    pub disputed: bool,
    /// Line and function, or the best substitute.
    pub place: String,
    /// Runtime or driver name without its version suffix.
    pub api: String,
    /// What to do.
    pub fix: Option<String>,
    /// Whether it waits once per process on every rank that has it.
    pub once: bool,
    /// The span that its times are of: one iteration of each rank if it waits in iterations, else the run.
    #[serde(default)]
    pub per: Per,
    /// Whether some rank's saving is only known to be no more than that.
    #[serde(default)]
    pub saves_at_most: bool,
    /// The rank that most of its waiting is for, which comes late to collectives: no change of this site saves that.
    #[serde(default)]
    pub late_rank: Option<u32>,
    /// Ranks that have it.
    pub ranks: u64,
    /// Waits of the run.
    pub waits: Over,
    /// Host time inside them.
    pub blocked_ns: Over,
    /// Of a hundred single waits one blocks longer, on the rank where that is longest; in ns.
    pub blocked_p99_ns: i64,
    /// GPU idle time after them.
    pub drain_ns: Over,
    /// What fixing it saves; at most, where no more is known.
    pub saves_ns: Over,
    /// Ranks on which it blocks far longer than on the others, the longest first.
    pub odd: Vec<Odd>,
    /// Blocked time on each rank, in the order of the list.
    pub blocked_by_rank_ns: Vec<i64>,
}

/// How something spreads over ranks: values that occur, by nearest rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Over {
    /// A tenth of the ranks have less.
    pub p10: i64,
    /// The median: of two ranks the larger.
    pub p50: i64,
    /// A tenth have more.
    pub p90: i64,
    /// The most.
    pub max: i64,
    /// The first rank that has so much.
    pub max_rank: u32,
}

/// A rank that stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Odd {
    /// Its number.
    pub rank: u32,
    /// Blocked time.
    pub blocked_ns: i64,
}

/// How the clocks of exports were put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Clocks {
    /// Exports whose clock was set by collectives, which end together.
    pub by_collectives: u64,
    /// Exports of which only the start of the session is known, which is as good as the machines' clocks agree.
    pub by_start: u64,
    /// Nine tenths of the collectives that set clocks end within so much of each other; of the worst export.
    pub residual_ns: Option<i64>,
}

/// A rank that comes last to a kind of collective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Late {
    /// The late one.
    pub rank: u32,
    /// Name of the kernel.
    pub collective: String,
    /// Hash of the communicator that it was called for, in hexadecimal; `None` where none is recorded.
    pub communicator: Option<String>,
    /// How many ranks meet there: those that call it for that communicator, else all.
    pub among: u64,
    /// How often it came last, and later than clocks may be off.
    pub times: u64,
    /// How often all of them met there.
    pub of: u64,
    /// By how much, after the one before it: the median.
    pub late_p50_ns: i64,
    /// Most.
    pub late_max_ns: i64,
    /// All of it.
    pub late_ns: i64,
    /// Time that the kernels of all other ranks stood until it came: a sum over them.
    pub cost_ns: i64,
    /// The time by which that makes an iteration longer: `late_ns` of one, without start-up. `None` if not all ranks have a loop.
    #[serde(default)]
    pub per_iteration_ns: Option<i64>,
    /// The part of it in the late rank's own waits.
    #[serde(default)]
    pub waiting_per_iteration_ns: Option<i64>,
    /// What it did while the others stood, of `late_ns`.
    pub spent: Spent,
    /// The wait that it came from; `None` where none ended within the time by which it was late.
    pub wait: Option<LateWait>,
}

impl Late {
    /// The time by which it makes an iteration longer, or without a loop the run, and the part of it in its own waits.
    pub fn delay_ns(&self) -> (i64, i64) {
        self.per_iteration_ns
            .zip(self.waiting_per_iteration_ns)
            .unwrap_or((self.late_ns, self.spent.waiting_ns))
    }

    /// Whether it was its GPU that came late for most of the delay, not its host.
    pub fn launched_in_time(&self) -> bool {
        self.spent.gpu_ns > self.late_ns / 2
    }
}

/// What a late rank did while the others stood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    /// Blocked in the last wait before it launched the collective.
    pub waiting_ns: i64,
    /// On the host, until the launch.
    pub host_ns: i64,
    /// From the launch on: its GPU still had other work.
    pub gpu_ns: i64,
}

/// The wait of a late rank that ended just before it launched its collective.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LateWait {
    /// Key of its site.
    pub key: String,
    /// Id of that site among the sites over ranks; `None` where it is not listed.
    pub id: Option<String>,
    /// Where it is.
    pub place: String,
    /// How often it was this one.
    pub times: u64,
}
