//! One site of a report: all waits of one place, with verdict, costs and advice.

use super::edit::Proposal;
use super::native::method;
use super::{Awaited, Process, finite, known, or_zero};
use crate::text;
use crate::vocabulary::{
    Attribution, Change, Class, Copy, DriverApi, Evidence, Kind, Operand, PatternId, Sample, SiteId,
    Strategy, ThreadRole,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All waits that share API, Python stack (or the best substitute) and process role.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Site {
    /// Identity within this run; meaningless in a report that was read back.
    #[serde(skip)]
    pub ix: SiteId,
    /// Id by the first wait among all sites of the capture: "S1" waits first.
    pub id: String,
    /// Stable key across runs, unique within a process: file, function, line, API, kind, and a hash of the
    /// user's line, the library's line and the pattern. Ranks of one program share keys.
    pub key: String,
    /// Runtime or driver name without its version suffix.
    pub api: String,
    /// The driver call behind the wait.
    pub driver_api: DriverApi,
    /// Whether the wait can go.
    pub class: Class,
    /// Reason for the class, as a word.
    pub kind: Kind,
    /// Confidence in the class, 0 to 1.
    #[serde(serialize_with = "finite")]
    pub confidence: f64,
    /// Id of the catalogue entry; null where none fits.
    #[serde(default, deserialize_with = "known")]
    #[schemars(with = "Option<String>")]
    pub pattern: Option<PatternId>,
    /// Reasons for the verdict, the deciding one first.
    pub evidence: Vec<Evidence>,
    /// Method that attributed the waits to their line.
    pub attribution: Attribution,
    /// Reliability of the attribution, e.g. "31 of 40 samples agree"; empty where exact.
    #[serde(default)]
    pub attribution_note: String,
    /// Python frames, innermost first.
    pub frames: Vec<Frame>,
    /// Innermost frame of the user's code; null where none is known.
    pub user_frame: Option<Frame>,
    /// The waiting line of a library that the user's line calls: one that the catalogue knows, else the
    /// innermost outside PyTorch and helpers, else the innermost. Null where the user's line names the call.
    #[serde(default)]
    pub library_frame: Option<Frame>,
    /// Installed package of `library_frame`.
    #[serde(default)]
    pub library: Option<String>,
    /// Nearest caller that distinguishes this site from another at the same user line; of the first path.
    pub caller: Option<Frame>,
    /// Call paths to the user's line, the longest blocking first; empty for a single path (see `frames`).
    #[serde(default)]
    pub call_paths: Vec<CallPath>,
    /// Origin of a wait on autograd's thread, whose user line calls `backward()`; null for other waits.
    #[serde(default)]
    pub backward: Option<Backward>,
    /// C++ call chain, demangled, innermost first, without interpreter frames.
    pub native: Vec<String>,
    /// NVTX ranges around one of the waits, outermost first.
    pub nvtx: Vec<String>,
    /// Tensor that one of the waits copies or reads; null where not recorded.
    #[serde(default)]
    pub operand: Option<Operand>,
    /// Text of the user's line; null where the source was not at hand.
    pub source: Option<String>,
    /// The user's line with the lines around it; null where the source was not at hand.
    pub snippet: Option<Snippet>,
    /// The thread that waits.
    pub thread: Thread,
    /// Process of the thread.
    pub process: Process,
    /// Number of the GPU waited for; null where unknown, or several.
    pub device: Option<u32>,
    /// CUPTI stream id, where all waits share one; else null.
    pub stream: Option<u32>,
    /// Copy that the waits complete, with the smallest size; null without copies.
    pub copy: Option<Copy>,
    /// Size of the largest copy in bytes; null where all sizes are equal.
    pub copy_bytes_max: Option<u64>,
    /// Number of waits.
    pub waits: u64,
    /// Waits inside iterations, divided by iterations; null without a loop.
    pub per_iteration: Option<f64>,
    /// Blocked time inside iterations, divided by iterations; null without a loop.
    pub blocked_per_iteration_ns: Option<i64>,
    /// GPU idle time after waits inside iterations, divided by iterations; null without a loop.
    pub drain_per_iteration_ns: Option<i64>,
    /// Median time from an iteration's start to the wait's; null without waits inside iterations.
    #[serde(default)]
    pub offset_ns: Option<i64>,
    /// Variation of waits and costs within the capture; null where not asked for.
    pub spread: Option<Spread>,
    /// Host time inside the waits.
    pub blocked_ns: i64,
    /// Median blocked time of a wait.
    pub blocked_p50_ns: i64,
    /// 99th percentile of the blocked time of a wait.
    pub blocked_p99_ns: i64,
    /// Longest blocked time of a wait.
    pub blocked_max_ns: i64,
    /// `blocked_ns` in percent of the span of the waiting threads.
    #[serde(serialize_with = "finite")]
    pub blocked_percent: f64,
    /// GPU idle time from the end of the awaited work to the next operation.
    pub drain_ns: i64,
    /// Median GPU idle time after a wait.
    pub drain_p50_ns: i64,
    /// Longest GPU idle time after a wait.
    pub drain_max_ns: i64,
    /// `drain_ns` in percent of the span of the GPUs waited for, or of all GPUs where unknown.
    #[serde(serialize_with = "finite")]
    pub drain_percent: f64,
    /// Waits that found no pending work on the GPU.
    #[serde(default)]
    pub found_idle: u64,
    /// Set where the site waits only before the loop or in its first iterations, a cost paid once.
    #[serde(default)]
    pub start_up: Option<StartUp>,
    /// Whether the waits are paid once, and no part of the total saving: outside the loop, in its first tenth
    /// only, or a single wait of the allocator. Without a loop: before the first kernel or after the last,
    /// copies excepted.
    #[serde(default)]
    pub once: bool,
    /// Whether all waits come after the loop, as in a validation or a checkpoint: a longer run may repeat
    /// them.
    #[serde(default)]
    pub after_loop: bool,
    /// Whether the wait would make a CUDA graph capture fail.
    pub blocks_capture: bool,
    /// Saving of a fix; null where no savings were computed.
    pub recoverable: Option<Recoverable>,
    /// Measured saving in a replay on a GPU; absent without replay results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Replayed>,
    /// Reason of the comment that allows the line to wait (`# sync-report: allow REASON`); absent without
    /// one. An allowed site is no finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<String>,
    /// Other lines of the repository with the same pattern; `None` unless one site is shown whole.
    #[serde(skip)]
    pub elsewhere: Option<Vec<String>>,
    /// Advice; null where there is none.
    pub fix: Option<Fix>,
    /// Proposed source edit, or the reason for having none; absent without a user frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<Proposal>,
    /// Blocked times in powers of two: (exclusive upper bound in ns, number of waits).
    pub histogram: Vec<(i64, u64)>,
    /// Work that the waits waited for; null where not asked for.
    #[serde(default)]
    pub awaited: Option<Awaited>,
    /// Waits to look at in the nsys GUI: the longest first, then the capture's first.
    pub examples: Vec<Example>,
}

impl Site {
    /// Confidence as a finite number.
    pub fn finite_confidence(&self) -> f64 {
        or_zero(self.confidence)
    }

    /// The simulated saving; `None` for an upper bound or a kept wait.
    pub fn promise(&self) -> Option<&Recoverable> {
        self.recoverable.as_ref().filter(|saving| saving.simulated && !self.is_kept())
    }

    /// Whether the saving is only an upper bound.
    pub fn saves_at_most(&self) -> bool {
        self.saves_ns() > 0 && self.promise().is_none()
    }

    /// Whether the wait stays: it is needed, and no change of it is priced.
    pub fn is_kept(&self) -> bool {
        let kept = self.recoverable.as_ref().is_none_or(|saving| saving.change == Change::Keep);
        self.class == Class::True && kept
    }

    /// Saving of the run and of an iteration, in ns; an upper bound where no more is known.
    pub fn saves(&self) -> (i64, Option<i64>) {
        let most = |saving: &Recoverable| (saving.high_ns, saving.per_iteration_high_ns);
        let promised = self.promise().map(|saving| (saving.alone_ns, saving.per_iteration_ns));
        promised.or_else(|| self.recoverable.as_ref().map(most)).unwrap_or_default()
    }

    /// Saving of the run, in ns; an upper bound where no more is known.
    pub fn saves_ns(&self) -> i64 {
        self.saves().0
    }

    /// The frame to show: the user's, or the innermost where all are of libraries.
    pub fn location(&self) -> Option<&Frame> {
        self.user_frame.as_ref().or(self.frames.first())
    }

    /// The forward line of a wait on autograd's thread.
    pub fn forward(&self) -> Option<&Frame> {
        self.backward.as_ref()?.forward.as_ref()
    }

    /// The user's frames outside [`Self::location`], nearest first, for each call path.
    pub fn paths(&self) -> Vec<Vec<&Frame>> {
        let at = self.location().and_then(|l| self.frames.iter().position(|f| f == l));
        let own = at.map_or(&[][..], |at| &self.frames[at + 1..]);
        match &self.call_paths[..] {
            [] => vec![own.iter().filter(|frame| frame.user).collect()],
            paths => paths.iter().map(|path| path.callers.iter().collect()).collect(),
        }
    }

    /// All known frames.
    pub fn all_frames(&self) -> impl Iterator<Item = &Frame> {
        let callers = self.call_paths.iter().flat_map(CallPath::frames);
        self.frames.iter().chain(&self.user_frame).chain(callers)
    }

    /// Short place: `train.py:18 step`, else the method, range or API.
    pub fn place(&self) -> String {
        let framed = |frame: &Frame| {
            let line = if frame.line > 0 { format!(":{}", frame.line) } else { String::new() };
            format!("{}{line} {}", text::path_end(&frame.file, 1), frame.function)
        };
        let name = self.location().map(framed).or_else(|| self.unframed());
        let mark = self.attribution.mark().map(|mark| format!(" {mark}")).unwrap_or_default();
        name.map_or_else(|| self.api.clone(), |name| name + &mark)
    }

    /// Whether a fix avoids the wait, by verdict or by a change that `--fix` requests; false for advice to
    /// leave it.
    pub fn is_avoidable(&self) -> bool {
        let saving = self.recoverable.as_ref();
        let (asked, change) = saving.map_or((false, Change::Delete), |saving| (saving.chosen, saving.change));
        change.avoids(self.class, asked)
    }

    /// Whether a review should show the site: avoidable or undecided, and not allowed by a comment.
    pub fn is_finding(&self) -> bool {
        let open = self.class == Class::Unknown || (self.class == Class::False && self.is_avoidable());
        open && self.allowed.is_none()
    }

    /// Name without a Python frame: method or function of the native chain, else NVTX range, else API.
    pub fn name(&self) -> String {
        self.unframed().unwrap_or_else(|| self.api.clone())
    }

    fn unframed(&self) -> Option<String> {
        self.native_method().or_else(|| self.nvtx.last().cloned())
    }

    /// The Python method that the native chain names, else its innermost function that is not CUDA's own.
    pub fn native_method(&self) -> Option<String> {
        method(&self.native)
    }
}

/// A call path to a site's line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallPath {
    /// The user's frames outside the site's line, nearest first.
    pub callers: Vec<Frame>,
    /// The library's frames between `library_frame` and `user_frame`, nearest to the wait first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub library: Vec<Frame>,
    /// Waits on this path.
    pub waits: u64,
    /// Host time inside the waits.
    pub blocked_ns: i64,
    /// GPU idle time after the waits.
    pub drain_ns: i64,
}

impl CallPath {
    /// The frames that distinguish call paths, nearest to the wait first.
    pub fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.library.iter().chain(&self.callers)
    }
}

/// Origin of a wait on autograd's thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Backward {
    /// Node of the autograd graph, e.g. "IndexBackward0"; null where unknown.
    pub node: Option<String>,
    /// Forward line whose operator the node differentiates; null without sequence numbers.
    pub forward: Option<Frame>,
}

/// Waits paid once: outside the program's loop, or before the first kernel or after the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Once {
    /// Number of sites that wait only once.
    pub sites: u64,
    /// Host time inside the waits, summed over threads.
    pub blocked_ns: i64,
    /// Part of `sites` after the loop: [`Site::after_loop`].
    pub after_loop_sites: u64,
    /// Part of `blocked_ns` after the loop.
    pub after_loop_blocked_ns: i64,
}

impl Once {
    /// Sites and blocked time paid once per process: all but those after the loop ([`Site::after_loop`]).
    pub const fn of_process(self) -> (u64, i64) {
        let sites = self.sites.saturating_sub(self.after_loop_sites);
        (sites, self.blocked_ns.saturating_sub(self.after_loop_blocked_ns))
    }
}

/// Waits that happen only at start-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StartUp {
    /// Iterations with such waits; 0 where all come before the loop.
    pub with: usize,
    /// Number of iterations in the capture.
    pub iterations: usize,
}

/// Lower quartile, median and upper quartile of a site's samples, from which comparisons derive jitter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Kind of sample: the sum over an "iteration" where the waits lie in iterations, else one "wait".
    pub per: Sample,
    /// Number of samples: iterations with a wait of this site, or its waits.
    pub samples: u64,
    /// Waits of a sample.
    pub waits: [u64; 3],
    /// Blocked time of a sample.
    pub blocked_ns: [i64; 3],
    /// GPU idle time after the waits of a sample.
    pub drain_ns: [i64; 3],
}

/// A Python frame.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Frame {
    /// Function or method.
    pub function: String,
    /// Path of the file, as recorded.
    pub file: String,
    /// Line number, from 1; 0 where not known.
    pub line: u32,
    /// Whether the code lies outside the standard library, PyTorch and installed packages.
    pub user: bool,
}

/// Lines of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Snippet {
    /// Number of the first line, from 1.
    pub first_line: u32,
    /// Text of the lines, without line ends.
    pub lines: Vec<String>,
}

/// The thread of a site, or one of several alike.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Thread {
    /// Thread id.
    pub tid: u32,
    /// Name of the thread; null where not recorded.
    pub name: Option<String>,
    /// Role of the thread.
    pub role: ThreadRole,
    /// Whether the thread is the process's first; if that one made no call, the one with most calls.
    pub main: bool,
    /// Number of threads with waits of the site.
    pub count: usize,
}

/// Saving of fixing a site, in the whole run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Recoverable {
    /// Saving with only this site fixed; 0 where nothing was simulated.
    pub alone_ns: i64,
    /// The site's share of the saving with every avoidable site fixed.
    pub joint_ns: i64,
    /// Lower end of the range of `alone_ns`; 0 where nothing was simulated.
    pub low_ns: i64,
    /// Upper end of the range of `alone_ns`. Without a simulation: blocked time, and what goes with the calls
    /// and copies.
    pub high_ns: i64,
    /// Saving per iteration with only this site fixed; null outside iterations or without a simulation.
    pub per_iteration_ns: Option<i64>,
    /// `high_ns` divided by iterations; null outside iterations.
    #[serde(default)]
    pub per_iteration_high_ns: Option<i64>,
    /// `alone_ns` in percent of the run without the profiler.
    #[serde(serialize_with = "finite")]
    pub percent: f64,
    /// Change that was simulated: "delete", "gpu-wait", "narrow", "non-blocking", "pinned", "drop", "on-gpu",
    /// "delay", "coalesce", "keep".
    pub change: Change,
    /// Whether the saving is simulated; else `alone_ns` is 0 and `high_ns` an upper bound.
    pub simulated: bool,
    /// Whether only `--fix` makes the site count as avoidable, not its verdict.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chosen: bool,
    /// Id of the site that takes over most of the waiting; null where none does.
    pub moves_to: Option<String>,
}

/// Saving measured in a replay of one stretch of the capture.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Replayed {
    /// Name of the replay's GPU.
    pub gpu: String,
    /// Length of the stretch with nothing fixed: the base of `saving_ns`.
    pub stretch_ns: i64,
    /// Saving of the stretch, the median of the rounds.
    pub saving_ns: i64,
    /// Lower end of the range of `saving_ns`.
    pub saving_low_ns: i64,
    /// Upper end of the range of `saving_ns`.
    pub saving_high_ns: i64,
    /// `saving_ns` in percent of `stretch_ns`.
    pub percent: f64,
    /// Simulated saving of the stretch; null where not simulated.
    pub predicted_ns: Option<i64>,
}

/// Advice for a site.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Fix {
    /// Place of the strategy in the order in which to try them, from 1.
    pub order: u8,
    /// Strategy of the fix.
    pub strategy: Strategy,
    /// The advice in a few words.
    pub title: String,
    /// Whether the title names the condition that stands against the advice.
    #[serde(skip)]
    pub hedged: bool,
    /// Why the CPU waits.
    pub why: String,
    /// Typical code with the wait; may be empty.
    pub before: String,
    /// The same code without the wait.
    pub after: String,
    /// Risks of the change; empty where there are none.
    pub caveat: String,
    /// Other ways, for where the first does not fit.
    #[serde(default)]
    pub alternatives: Vec<String>,
    /// The site's own expression rewritten without the wait; null where not proven right.
    pub here: Option<Rewrite>,
    /// Commands that show whether the wait is gone; empty where the advice is to leave it.
    pub confirm: String,
}

/// An expression of the program and what to write instead.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Rewrite {
    /// The expression as written.
    pub before: String,
    /// The expression without the wait.
    pub after: String,
}

/// One wait of a site.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Example {
    /// Start on the export's clock, as the nsys GUI shows it.
    pub start_ns: i64,
    /// End on the same clock.
    pub end_ns: i64,
    /// Host time inside the wait.
    pub blocked_ns: i64,
    /// GPU idle time after the wait.
    pub drain_ns: i64,
    /// The awaited operation that ended last, e.g. "ampere_sgemm_128x64_tn on stream 7"; null where unknown.
    pub awaited: Option<String>,
}

impl Example {
    /// Time from start to end.
    pub fn length_ns(&self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}
