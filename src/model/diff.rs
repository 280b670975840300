//! What changed between two captures.

use super::{Frame, Tool, Warning};
use crate::vocabulary::{Class, Kind, PatternId, Per, words};
use schemars::JsonSchema;
use serde::Serialize;

/// What one comparison found.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DiffReport {
    /// Version of this tree's layout: fields may be added, never renamed.
    pub schema_version: u32,
    /// What wrote it.
    pub tool: Tool,
    /// The earlier capture.
    pub before: CaptureInfo,
    /// The later one.
    pub after: CaptureInfo,
    /// What sites are compared by: line, function or call.
    pub grain: Granularity,
    /// Whether times were judged; else they are only shown, and a warning says why.
    pub costs_compared: bool,
    /// The whole program.
    pub run: RunChange,
    /// What became of the avoidable waits; `None` where BEFORE has none.
    pub fates: Option<Fates>,
    /// Sites by what became of them.
    pub counts: Counts,
    /// New, gone, changed, moved, unchanged; within each, those first whose cost differs most.
    pub sites: Vec<SiteChange>,
    /// What limits the comparison.
    pub warnings: Vec<Warning>,
}

/// One side.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CaptureInfo {
    /// Paths of its exports.
    pub profiles: Vec<String>,
    /// The command line that was profiled.
    pub command: Option<String>,
    /// Names of its GPUs.
    pub gpus: Vec<String>,
    /// Processes that waited.
    pub ranks: usize,
    /// Iterations of the loop, where one is known.
    pub iterations: Option<u64>,
}

/// The whole program on both sides.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunChange {
    /// What the amounts refer to.
    pub per: Per,
    /// The earlier run.
    pub before: WholeRun,
    /// The later one.
    pub after: WholeRun,
    /// Below this, a difference of `span_ns` is jitter; `None` where that cannot be told.
    pub span_noise_ns: Option<i64>,
    /// Whether the span differs by more than jitter.
    pub span_changed: bool,
}

/// Amounts per iteration (of the median one for the span, else means) or per run; waits and costs are means over ranks.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WholeRun {
    /// How long it takes.
    pub span_ns: i64,
    /// Share of the time in which GPUs work.
    pub gpu_busy_percent: Option<f64>,
    /// Waits.
    pub waits: f64,
    /// Those that can go.
    pub false_waits: f64,
    /// Host time inside waits.
    pub blocked_ns: i64,
    /// Idle time of GPUs after waits.
    pub drain_ns: i64,
    /// Simulated saving of fixing every false site, of the whole run.
    pub recoverable_ns: Option<i64>,
    /// Length of the run that it is of: without the profiler where that is estimated, else as captured.
    pub run_ns: i64,
}

/// The avoidable waits of BEFORE that every iteration pays, by what became of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fates {
    /// No longer there.
    pub gone: usize,
    /// No longer there, or fewer, and another wait has grown instead.
    pub moved: usize,
    /// Fewer of them.
    pub fewer: usize,
    /// As before.
    pub still: usize,
    /// What was predicted for those that are gone or moved; `None` where none are, or nothing was.
    pub prediction: Option<Prediction>,
}

/// What fixing sites was to save of an iteration, or of the run, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Prediction {
    /// The estimate without the profiler, for all fixed sites together; `None` where only a range is known.
    pub saved_ns: Option<i64>,
    /// Lower end of its range.
    pub low_ns: i64,
    /// Upper end.
    pub high_ns: i64,
    /// By how much shorter an iteration is without the profiler's estimated time, or else the captured run; `None` where times of
    /// the two captures cannot be compared.
    pub measured_ns: Option<i64>,
    /// Whether a capture has backtraces of every call: they slow the program too much to judge the prediction.
    pub slowed: bool,
    /// Whether what was measured lies in the range; `None` where that cannot be told, as where it lies outside by less than jitter.
    pub held: Option<bool>,
}

/// What became of an avoidable wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fate {
    /// In a word.
    pub became: Became,
    /// The wait of AFTER that grew instead.
    pub moved_to: Option<MovedTo>,
}

words! {
    /// What became of an avoidable wait, in a word.
    Became {
        Gone = "gone": "It is gone.",
        Moved = "moved": "Another wait of its thread has grown by most of what it blocked.",
        Fewer = "fewer": "It waits less often.",
        Still = "still": "It is still there.",
    }
}

/// The wait that took over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MovedTo {
    /// Ids in the report of AFTER.
    pub ids: Vec<String>,
    /// As in the report of AFTER.
    pub key: String,
    /// The user's line, else the innermost.
    pub location: Option<Location>,
    /// What it is called without a location.
    pub name: String,
    /// By how much longer it blocks.
    pub grown_ns: i64,
}

/// Sites by what became of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counts {
    /// Only AFTER has them.
    pub new: usize,
    /// Only BEFORE has them.
    pub gone: usize,
    /// Both have them, with other waits, costs or verdict.
    pub changed: usize,
    /// Both have them, at another place.
    pub moved: usize,
    /// Both have them alike.
    pub unchanged: usize,
}

words! {
    /// What became of a site.
    Status {
        New = "new": "Only AFTER has it.",
        Gone = "gone": "Only BEFORE has it.",
        Changed = "changed": "In waits, costs or verdict.",
        Moved = "moved": "In its place alone.",
        Unchanged = "unchanged": "Both have it alike.",
    }
}

words! {
    /// In what a site differs.
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
    /// What became of it.
    pub status: Status,
    /// By what the two sides were recognised as one.
    pub matched: Option<MatchedBy>,
    /// What the amounts refer to.
    pub per: Per,
    /// In what the sides differ by more than jitter.
    pub changed: Vec<Aspect>,
    /// As BEFORE has it.
    pub before: Option<SiteState>,
    /// As AFTER has it.
    pub after: Option<SiteState>,
    /// What a difference has to exceed.
    pub noise: Noise,
    /// What became of it, where BEFORE has it as avoidable.
    pub fate: Option<Fate>,
}

/// Differences below these are jitter; `None` where that cannot be told (too few samples, captures that differ).
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Noise {
    /// Of the blocked time.
    pub blocked_ns: Option<i64>,
    /// Of the drain.
    pub drain_ns: Option<i64>,
}

/// A site as one side has it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SiteState {
    /// Ids in the report of that side; several where the comparison takes sites together.
    pub ids: Vec<String>,
    /// As in the report of that side.
    pub key: String,
    /// The user's line, else the innermost.
    pub location: Option<Location>,
    /// The library's line that waits, where the user's line calls a library.
    pub library: Option<Location>,
    /// The nearest caller of the user's, where another site of that side has the same location.
    pub caller: Option<Location>,
    /// What it is called without a location: PyTorch method, NVTX range or API.
    pub name: String,
    /// Text of the line.
    pub source: Option<String>,
    /// The call that blocks.
    pub api: String,
    /// Whether it can go.
    pub class: Class,
    /// Why it is of that class.
    pub kind: Kind,
    /// Catalogue entry.
    #[schemars(with = "Option<String>")]
    pub pattern: Option<PatternId>,
    /// Waits of an iteration or of the run.
    pub waits: f64,
    /// Of a typical iteration: the median of those that wait, times their share; or of the run.
    pub blocked_ns: i64,
    /// Idle time of GPUs after them, likewise.
    pub drain_ns: i64,
    /// Simulated saving of the whole run.
    pub recoverable_ns: Option<i64>,
    /// Title of the fix.
    pub fix: Option<String>,
}

/// A line of a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
pub struct Location {
    /// As recorded.
    pub file: String,
    /// Function or method.
    pub function: String,
    /// From 1; 0 where not known.
    pub line: u32,
}

impl Location {
    /// The place of a frame.
    pub fn of(frame: &Frame) -> Self {
        Self { file: frame.file.clone(), function: frame.function.clone(), line: frame.line }
    }
}

impl SiteChange {
    /// The side that shows it: AFTER, as long as there is one.
    pub fn shown(&self) -> Option<&SiteState> {
        self.after.as_ref().or(self.before.as_ref())
    }
}

words! {
    /// What both captures can tell of where their waits come from; the coarser of the two counts.
    Granularity {
        Line = "line": "Backtraces on both sides, or on neither.",
        Function = "function": "One side was sampled: lines are only probable, functions are not.",
        Call = "call": "One side has Python frames and the other has none.",
    }
}

words! {
    /// By what a pair was recognised.
    MatchedBy {
        Text = "text": "File, function, call and the text of the line.",
        Line = "line": "File, function, call and line, moved with its neighbours if at all.",
        FunctionRenamed = "function-renamed": "File, call and text or line: the function has another name.",
        FileMoved = "file-moved": "Function, call and text or line: the file has another path.",
        Name = "name": "The C++ chain or the NVTX range around it: there are no Python frames.",
    }
}
