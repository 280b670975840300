//! Differences between two captures.

use super::{Frame, Tool, Warning};
use crate::vocabulary::{Class, Kind, PatternId, Per, words};
use schemars::JsonSchema;
use serde::Serialize;

/// Result of one comparison.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DiffReport {
    /// Version of this tree's layout: fields may be added, never renamed.
    pub schema_version: u32,
    /// The program that wrote the result.
    pub tool: Tool,
    /// The earlier capture.
    pub before: CaptureInfo,
    /// The later capture.
    pub after: CaptureInfo,
    /// Granularity of the comparison: line, function or call.
    pub grain: Granularity,
    /// Whether times were judged. If not, times are only shown, and a warning says why.
    pub costs_compared: bool,
    /// The whole program on both sides.
    pub run: RunChange,
    /// Outcome of BEFORE's avoidable sites; null where BEFORE has none.
    pub fates: Option<Fates>,
    /// Number of sites by status.
    pub counts: Counts,
    /// Sites by status: new, gone, changed, moved, unchanged. Within a status, by change in cost, largest
    /// first.
    pub sites: Vec<SiteChange>,
    /// Limits of the comparison.
    pub warnings: Vec<Warning>,
}

/// One side of the comparison.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CaptureInfo {
    /// Paths of the exports.
    pub profiles: Vec<String>,
    /// The profiled command line; null where not recorded.
    pub command: Option<String>,
    /// Names of the GPUs.
    pub gpus: Vec<String>,
    /// Number of processes that waited.
    pub ranks: usize,
    /// Iterations of the loop; null where no loop is known.
    pub iterations: Option<u64>,
}

/// The whole program on both sides.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunChange {
    /// Base of the amounts: an iteration or the run.
    pub per: Per,
    /// The earlier run.
    pub before: WholeRun,
    /// The later run.
    pub after: WholeRun,
    /// Jitter of `span_ns`: smaller differences do not count. Null where unknown.
    pub span_noise_ns: Option<i64>,
    /// Whether `span_ns` differs by more than jitter.
    pub span_changed: bool,
}

/// Amounts per iteration or per run. Waits and costs are means over ranks.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WholeRun {
    /// Median length of an iteration, or length of the run.
    pub span_ns: i64,
    /// Percent of the time in which GPUs work; null where unknown.
    pub gpu_busy_percent: Option<f64>,
    /// Number of waits.
    pub waits: f64,
    /// Number of avoidable waits.
    pub false_waits: f64,
    /// Host time inside waits.
    pub blocked_ns: i64,
    /// GPU idle time after waits.
    pub drain_ns: i64,
    /// Simulated saving of fixing every avoidable site, in the whole run; null where nothing was simulated.
    pub recoverable_ns: Option<i64>,
    /// Base of `recoverable_ns`: length of the run without the profiler where estimated, else as captured.
    pub run_ns: i64,
}

/// Number of BEFORE's avoidable sites by outcome, without sites paid once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fates {
    /// Sites that are gone.
    pub gone: usize,
    /// Sites that are gone or wait less often, while another wait grew by most of their blocked time.
    pub moved: usize,
    /// Sites that wait less often.
    pub fewer: usize,
    /// Sites that wait as before.
    pub still: usize,
    /// Predicted saving of the gone and moved sites; null without such sites or without a prediction.
    pub prediction: Option<Prediction>,
}

/// Predicted and measured saving of fixing sites, per iteration or per run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Prediction {
    /// Predicted saving of all fixed sites together, without the profiler; null where only a range is known.
    pub saved_ns: Option<i64>,
    /// Lower end of the predicted range.
    pub low_ns: i64,
    /// Upper end of the predicted range.
    pub high_ns: i64,
    /// Reduction of an iteration without the profiler's estimated time, else of the captured span. Null where
    /// times of the captures cannot be compared.
    pub measured_ns: Option<i64>,
    /// Whether a capture has backtraces of every call, which slow the program too much for a judgement.
    pub slowed: bool,
    /// Whether `measured_ns` lies in the predicted range; null where unknown, or outside by less than jitter.
    pub held: Option<bool>,
}

/// Outcome of an avoidable site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fate {
    /// The outcome as a word.
    pub became: Became,
    /// The wait of AFTER that grew instead; null where none did.
    pub moved_to: Option<MovedTo>,
}

words! {
    /// Outcome of an avoidable site, as a word.
    Became {
        Gone = "gone": "It is gone.",
        Moved = "moved": "Another wait of its thread has grown by most of what it blocked.",
        Fewer = "fewer": "It waits less often.",
        Still = "still": "It is still there.",
    }
}

/// The wait of AFTER that took over a fixed site's time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MovedTo {
    /// Ids in the report of AFTER.
    pub ids: Vec<String>,
    /// Key in the report of AFTER.
    pub key: String,
    /// The user's line, else the innermost; null where none is known.
    pub location: Option<Location>,
    /// Name to show without a location.
    pub name: String,
    /// Growth of the blocked time, per iteration or per run.
    pub grown_ns: i64,
}

/// Number of sites by status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counts {
    /// Sites that only AFTER has.
    pub new: usize,
    /// Sites that only BEFORE has.
    pub gone: usize,
    /// Sites of both sides with other waits, costs or verdict.
    pub changed: usize,
    /// Sites of both sides at another place.
    pub moved: usize,
    /// Sites alike on both sides.
    pub unchanged: usize,
}

words! {
    /// Status of a site in the comparison.
    Status {
        New = "new": "Only AFTER has it.",
        Gone = "gone": "Only BEFORE has it.",
        Changed = "changed": "In waits, costs or verdict.",
        Moved = "moved": "In its place alone.",
        Unchanged = "unchanged": "Both have it alike.",
    }
}

words! {
    /// Aspect in which a site differs.
    Aspect {
        Waits = "waits": "Number of waits.",
        Blocked = "blocked": "Host time inside the waits.",
        Drain = "drain": "GPU idle time after the waits.",
        Verdict = "verdict": "Class, or kind as far as that does not stray from run to run.",
    }
}

/// A site of one side or of both.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SiteChange {
    /// Status of the site.
    pub status: Status,
    /// Sign by which the two sides were matched; null where only one side has the site.
    pub matched: Option<MatchedBy>,
    /// Base of the amounts: an iteration or the run.
    pub per: Per,
    /// Aspects that differ by more than jitter.
    pub changed: Vec<Aspect>,
    /// The site in BEFORE; null where only AFTER has it.
    pub before: Option<SiteState>,
    /// The site in AFTER; null where only BEFORE has it.
    pub after: Option<SiteState>,
    /// Jitter of the costs.
    pub noise: Noise,
    /// Outcome of the site, where BEFORE has it as avoidable; else null.
    pub fate: Option<Fate>,
}

/// Jitter: smaller differences do not count. Null for too few samples, or captures that cannot be compared.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Noise {
    /// Jitter of the blocked time.
    pub blocked_ns: Option<i64>,
    /// Jitter of the GPU idle time after waits.
    pub drain_ns: Option<i64>,
}

/// A site on one side.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SiteState {
    /// Ids in this side's report; several where the comparison joins sites.
    pub ids: Vec<String>,
    /// Key in this side's report.
    pub key: String,
    /// The user's line, else the innermost; null where none is known.
    pub location: Option<Location>,
    /// The waiting line of a library that the user's line calls; null where the user's line itself waits.
    pub library: Option<Location>,
    /// The nearest caller, where another site of this side has the same location; else null.
    pub caller: Option<Location>,
    /// Name to show without a location: PyTorch method, NVTX range or API.
    pub name: String,
    /// Text of the user's line; null where the source was not at hand.
    pub source: Option<String>,
    /// The CUDA call that blocks.
    pub api: String,
    /// Whether the wait can go.
    pub class: Class,
    /// Reason for the class, as a word.
    pub kind: Kind,
    /// Id of the catalogue entry; null where none fits.
    #[schemars(with = "Option<String>")]
    pub pattern: Option<PatternId>,
    /// Waits per iteration or per run.
    pub waits: f64,
    /// Blocked time of the run or a typical iteration (median of iterations with waits, times their share).
    pub blocked_ns: i64,
    /// GPU idle time after the waits, of the run or a typical iteration as `blocked_ns`.
    pub drain_ns: i64,
    /// Simulated saving of fixing the site alone, per iteration or per run; null where unknown.
    pub recoverable_ns: Option<i64>,
    /// Title of the advice; null where there is none.
    pub fix: Option<String>,
}

/// A line of a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
pub struct Location {
    /// Path of the file, as recorded.
    pub file: String,
    /// Function or method.
    pub function: String,
    /// Line number, from 1; 0 where not known.
    pub line: u32,
}

impl Location {
    /// The place of a frame.
    pub fn of(frame: &Frame) -> Self {
        Self { file: frame.file.clone(), function: frame.function.clone(), line: frame.line }
    }
}

impl SiteChange {
    /// The side to show: AFTER, else BEFORE.
    pub fn shown(&self) -> Option<&SiteState> {
        self.after.as_ref().or(self.before.as_ref())
    }
}

words! {
    /// Granularity at which both captures place waits; the coarser of the two counts.
    Granularity {
        Line = "line": "Backtraces on both sides, or on neither.",
        Function = "function": "One side was sampled: lines are only probable, functions are not.",
        Call = "call": "One side has Python frames and the other has none.",
    }
}

words! {
    /// Sign by which a pair of sites was matched.
    MatchedBy {
        Text = "text": "File, function, call and the text of the line.",
        Line = "line": "File, function, call and line, moved with its neighbours if at all.",
        FunctionRenamed = "function-renamed": "File, call and text or line: the function has another name.",
        FileMoved = "file-moved": "Function, call and text or line: the file has another path.",
        Name = "name": "The C++ chain or the NVTX range around it: there are no Python frames.",
    }
}
