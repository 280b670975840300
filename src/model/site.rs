//! One site of a report: all waits of one place, their verdict, their costs and what to do.

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
    /// What it is known by in this run; not of a report that was read back.
    #[serde(skip)]
    pub ix: SiteId,
    /// Number by the first wait among all sites of the capture: "S1" waits first.
    pub id: String,
    /// What it is known by across runs, unlike that of any other site of its process: file, function, line, API, kind and
    /// a hash of the user's and the library's line and the pattern. Ranks of one program share it.
    pub key: String,
    /// Runtime or driver name without its version suffix.
    pub api: String,
    /// The driver call behind it.
    pub driver_api: DriverApi,
    /// Whether the wait can go.
    pub class: Class,
    /// Why it is of that class.
    pub kind: Kind,
    /// How sure the verdict is, 0 to 1.
    #[serde(serialize_with = "finite")]
    pub confidence: f64,
    /// Catalogue entry.
    #[serde(default, deserialize_with = "known")]
    #[schemars(with = "Option<String>")]
    pub pattern: Option<PatternId>,
    /// Reasons for the verdict, the one that decided first.
    pub evidence: Vec<Evidence>,
    /// How the waits were put on their line.
    pub attribution: Attribution,
    /// How far to trust the attribution, e.g. "31 of 40 samples agree"; empty where exact.
    #[serde(default)]
    pub attribution_note: String,
    /// Innermost first.
    pub frames: Vec<Frame>,
    /// The innermost frame of the user.
    pub user_frame: Option<Frame>,
    /// The library's line that waits, where the user's line calls a library: that of the code that the catalogue knows,
    /// else the innermost outside PyTorch and helpers, else the innermost. `None` where the user's line names it.
    #[serde(default)]
    pub library_frame: Option<Frame>,
    /// The installed package of that line.
    #[serde(default)]
    pub library: Option<String>,
    /// The nearest caller that tells this site from another at the same user line; of several paths, the first one's.
    pub caller: Option<Frame>,
    /// The ways to the user's line, those that block longest first; empty where there is but one, which `frames` has.
    #[serde(default)]
    pub call_paths: Vec<CallPath>,
    /// What a wait on autograd's thread belongs to. The user's line is then the one that called `backward()`.
    #[serde(default)]
    pub backward: Option<Backward>,
    /// C++ chain, innermost first, demangled; interpreter frames left out.
    pub native: Vec<String>,
    /// Enclosing NVTX ranges of an example, outermost first.
    pub nvtx: Vec<String>,
    /// The tensor that an example copies or reads, where the capture says it.
    #[serde(default)]
    pub operand: Option<Operand>,
    /// Text of the user line, where the source was at hand.
    pub source: Option<String>,
    /// That line and those around it.
    pub snippet: Option<Snippet>,
    /// The thread that waits.
    pub thread: Thread,
    /// Its process.
    pub process: Process,
    /// Device waited for, where one is known.
    pub device: Option<u32>,
    /// CUPTI stream id, where all waits share one.
    pub stream: Option<u32>,
    /// The copy of each wait; its `bytes` are the smallest of them.
    pub copy: Option<Copy>,
    /// Largest copy in bytes, where they differ.
    pub copy_bytes_max: Option<u64>,
    /// How many waits.
    pub waits: u64,
    /// Waits inside iterations divided by iterations.
    pub per_iteration: Option<f64>,
    /// Blocked time inside iterations divided by iterations.
    pub blocked_per_iteration_ns: Option<i64>,
    /// Drain of the waits inside iterations divided by iterations.
    pub drain_per_iteration_ns: Option<i64>,
    /// Where in an iteration it waits: from the iteration's start to the wait's, the median.
    #[serde(default)]
    pub offset_ns: Option<i64>,
    /// How waits and costs vary within the capture; `None` where no reader was to need it.
    pub spread: Option<Spread>,
    /// Host time inside the waits.
    pub blocked_ns: i64,
    /// Of single waits, the median.
    pub blocked_p50_ns: i64,
    /// Of single waits, the 99th percentile.
    pub blocked_p99_ns: i64,
    /// The longest.
    pub blocked_max_ns: i64,
    /// `blocked_ns` in percent of the thread's span.
    #[serde(serialize_with = "finite")]
    pub blocked_percent: f64,
    /// Device-idle time between the end of the awaited work and the next op.
    pub drain_ns: i64,
    /// Of single waits, the median.
    pub drain_p50_ns: i64,
    /// The longest.
    pub drain_max_ns: i64,
    /// `drain_ns` in percent of the device's span (of all devices' where several).
    #[serde(serialize_with = "finite")]
    pub drain_percent: f64,
    /// Waits that found nothing pending on the GPU.
    #[serde(default)]
    pub found_idle: u64,
    /// Set where it waits only before the loop or in its first iterations. It is paid once.
    #[serde(default)]
    pub start_up: Option<StartUp>,
    /// Waits outside the program's loop or in its first tenth only, or before the first kernel or after the last: what is waited once in this capture, and no part of
    /// what fixing all false sites saves. Without a loop, copies are a program's work: they are not once.
    #[serde(default)]
    pub once: bool,
    /// Of those, waits after the loop only, where a validation or a checkpoint does: once in this capture, but a longer run may come by again.
    #[serde(default)]
    pub after_loop: bool,
    /// Whether this wait would make a CUDA graph capture fail.
    pub blocks_capture: bool,
    /// What a fix saves.
    pub recoverable: Option<Recoverable>,
    /// What fixing it saved in a replay on a GPU, where results of one were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Replayed>,
    /// The reason of the comment that allows its line to wait (`# sync-report: allow REASON`): it is no finding then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<String>,
    /// Other lines of the repository with the same pattern; `None` unless one site is shown whole.
    #[serde(skip)]
    pub elsewhere: Option<Vec<String>>,
    /// What to do.
    pub fix: Option<Fix>,
    /// What can be done to its source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<Proposal>,
    /// Blocked times in powers of two: (upper bound in ns, waits).
    pub histogram: Vec<(i64, u64)>,
    /// What its waits waited for; `None` where no reader was to need it.
    #[serde(default)]
    pub awaited: Option<Awaited>,
    /// Waits to look at in the nsys GUI: longest first, then the first of the capture.
    pub examples: Vec<Example>,
}

impl Site {
    /// Its confidence as a number that every format can hold.
    pub fn finite_confidence(&self) -> f64 {
        or_zero(self.confidence)
    }

    /// Its saving, where more is known than what it is at most.
    pub fn promise(&self) -> Option<&Recoverable> {
        self.recoverable.as_ref().filter(|saving| saving.simulated && !self.is_kept())
    }

    /// Whether its saving is known at most.
    pub fn saves_at_most(&self) -> bool {
        self.saves_ns() > 0 && self.promise().is_none()
    }

    /// Whether the wait stays: it is needed, and nobody asked what if not.
    pub fn is_kept(&self) -> bool {
        let kept = self.recoverable.as_ref().is_none_or(|saving| saving.change == Change::Keep);
        self.class == Class::True && kept
    }

    /// What fixing it saves of the run and of an iteration, in ns; at most, where no more is known.
    pub fn saves(&self) -> (i64, Option<i64>) {
        let most = |saving: &Recoverable| (saving.high_ns, saving.per_iteration_high_ns);
        let promised = self.promise().map(|saving| (saving.alone_ns, saving.per_iteration_ns));
        promised.or_else(|| self.recoverable.as_ref().map(most)).unwrap_or_default()
    }

    /// What fixing it saves of the run, in ns; at most, where no more is known.
    pub fn saves_ns(&self) -> i64 {
        self.saves().0
    }

    /// The frame that stands for the site: the user's, or the innermost where all are of libraries.
    pub fn location(&self) -> Option<&Frame> {
        self.user_frame.as_ref().or(self.frames.first())
    }

    /// The line whose operator a wait on autograd's thread undoes.
    pub fn forward(&self) -> Option<&Frame> {
        self.backward.as_ref()?.forward.as_ref()
    }

    /// The user's frames from that one outwards, of each way to it.
    pub fn paths(&self) -> Vec<Vec<&Frame>> {
        let at = self.location().and_then(|l| self.frames.iter().position(|f| f == l));
        let own = at.map_or(&[][..], |at| &self.frames[at + 1..]);
        match &self.call_paths[..] {
            [] => vec![own.iter().filter(|frame| frame.user).collect()],
            paths => paths.iter().map(|path| path.callers.iter().collect()).collect(),
        }
    }

    /// All frames that are known of it.
    pub fn all_frames(&self) -> impl Iterator<Item = &Frame> {
        let callers = self.call_paths.iter().flat_map(CallPath::frames);
        self.frames.iter().chain(&self.user_frame).chain(callers)
    }

    /// Where it is, in few words: `train.py:18 step`, else the method, range or API.
    pub fn place(&self) -> String {
        let framed = |frame: &Frame| {
            let line = if frame.line > 0 { format!(":{}", frame.line) } else { String::new() };
            format!("{}{line} {}", text::path_end(&frame.file, 1), frame.function)
        };
        let name = self.location().map(framed).or_else(|| self.unframed());
        let mark = self.attribution.mark().map(|mark| format!(" {mark}")).unwrap_or_default();
        name.map_or_else(|| self.api.clone(), |name| name + &mark)
    }

    /// Whether something can be done about it: the verdict says so, or whoever asks for a change; not where it is to be left as
    /// it is, because it happens once, or a library waits.
    pub fn is_avoidable(&self) -> bool {
        let saving = self.recoverable.as_ref();
        let (asked, change) = saving.map_or((false, Change::Delete), |saving| (saving.chosen, saving.change));
        change.avoids(self.class, asked)
    }

    /// Whether a review is to look at it: something can be done about it, or that is not decided, and no comment allows it.
    pub fn is_finding(&self) -> bool {
        let open = self.class == Class::Unknown || (self.class == Class::False && self.is_avoidable());
        open && self.allowed.is_none()
    }

    /// What it is called where no Python frame is known: the method or function of its native chain, else its range, else
    /// its API.
    pub fn name(&self) -> String {
        self.unframed().unwrap_or_else(|| self.api.clone())
    }

    fn unframed(&self) -> Option<String> {
        self.native_method().or_else(|| self.nvtx.last().cloned())
    }

    /// The Python method that its native chain names, else its innermost function that is not CUDA's own.
    pub fn native_method(&self) -> Option<String> {
        method(&self.native)
    }
}

/// A way to the line of a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallPath {
    /// The user's frames around the line's, nearest first.
    pub callers: Vec<Frame>,
    /// The library's frames between `library_frame` and `user_frame`, nearest to the wait first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub library: Vec<Frame>,
    /// Waits that came by it.
    pub waits: u64,
    /// Host time inside them.
    pub blocked_ns: i64,
    /// Device-idle time after them.
    pub drain_ns: i64,
}

impl CallPath {
    /// The frames that tell it from other ways, nearest to the wait first.
    pub fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.library.iter().chain(&self.callers)
    }
}

/// What a wait on autograd's thread belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Backward {
    /// The node of the graph, e.g. "IndexBackward0".
    pub node: Option<String>,
    /// The line whose operator it undoes, where sequence numbers tell.
    pub forward: Option<Frame>,
}

/// What is waited outside the program's loop, or before its first kernel or after its last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Once {
    /// Sites that wait nowhere else.
    pub sites: u64,
    /// Host time inside their waits, summed over threads.
    pub blocked_ns: i64,
    /// Of them, those after the loop: [`Site::after_loop`].
    pub after_loop_sites: u64,
    /// Host time inside the waits of those.
    pub after_loop_blocked_ns: i64,
}

impl Once {
    /// Sites that wait once per process, and host time inside their waits: what is not after the loop ([`Site::after_loop`]).
    pub const fn of_process(self) -> (u64, i64) {
        let sites = self.sites.saturating_sub(self.after_loop_sites);
        (sites, self.blocked_ns.saturating_sub(self.after_loop_blocked_ns))
    }
}

/// Waits only at start-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StartUp {
    /// Iterations that hold some, 0 where all come before the loop.
    pub with: usize,
    /// Iterations of the capture.
    pub iterations: usize,
}

/// Lower quartile, median and upper quartile of a site's samples. Robust against the few samples that something else
/// disturbed; what a difference between two captures has to exceed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// A sample is what the waits of one "iteration" add up to, where they lie in iterations; else one "wait".
    pub per: Sample,
    /// Iterations with a wait of this site, or its waits.
    pub samples: u64,
    /// Waits of a sample.
    pub waits: [u64; 3],
    /// Blocked time of a sample.
    pub blocked_ns: [i64; 3],
    /// Drain of a sample.
    pub drain_ns: [i64; 3],
}

/// A Python frame.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Frame {
    /// Function or method.
    pub function: String,
    /// As recorded.
    pub file: String,
    /// From 1; 0 where not known.
    pub line: u32,
    /// Outside the standard library, PyTorch and installed packages.
    pub user: bool,
}

/// Lines of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Snippet {
    /// Number of the first line, from 1.
    pub first_line: u32,
    /// Their text, without line ends.
    pub lines: Vec<String>,
}

/// The thread of a site, or one of several alike.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Thread {
    /// Thread id.
    pub tid: u32,
    /// Its name, where recorded.
    pub name: Option<String>,
    /// What it is for.
    pub role: ThreadRole,
    /// The process's first thread; where that made no call, the one with most calls.
    pub main: bool,
    /// Of how many threads the site's waits are.
    pub count: usize,
}

/// What the whole run would save.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Recoverable {
    /// With only this site fixed. 0 where its waits are needed: those have a range, no promise.
    pub alone_ns: i64,
    /// The share that is this site's with all false sites fixed.
    pub joint_ns: i64,
    /// Lower end of the simulated range of `alone_ns`; 0 where nothing was simulated.
    pub low_ns: i64,
    /// Upper end. Where nothing was simulated: what the waits block, and what goes with their calls and copies.
    pub high_ns: i64,
    /// `alone_ns` of one iteration, where iterations are known.
    pub per_iteration_ns: Option<i64>,
    /// `high_ns` by the iteration.
    #[serde(default)]
    pub per_iteration_high_ns: Option<i64>,
    /// `alone_ns` in percent of the run without the profiler.
    #[serde(serialize_with = "finite")]
    pub percent: f64,
    /// The change that was simulated: "delete", "gpu-wait", "narrow", "non-blocking", "pinned", "drop", "on-gpu", "delay", "coalesce", "keep".
    pub change: Change,
    /// From a simulation; else `alone_ns` is 0 and `high_ns` an upper bound.
    pub simulated: bool,
    /// Only `--fix` makes it count as avoidable; its verdict does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chosen: bool,
    /// The site into whose waits most of the time moves.
    pub moves_to: Option<String>,
}

/// What a replay of one stretch of the capture saved.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Replayed {
    /// Name of the GPU that it ran on.
    pub gpu: String,
    /// The stretch with nothing fixed, in ns; `saving_ns` is of it.
    pub stretch_ns: i64,
    /// What the change saved of it: the median of the rounds.
    pub saving_ns: i64,
    /// Lower end of its range.
    pub saving_low_ns: i64,
    /// Upper end.
    pub saving_high_ns: i64,
    /// `saving_ns` in percent of `stretch_ns`.
    pub percent: f64,
    /// What the simulation says of the same stretch.
    pub predicted_ns: Option<i64>,
}

/// What to do about a site.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Fix {
    /// Place of the way among all, in the order in which to try them, from 1.
    pub order: u8,
    /// Which way it is.
    pub strategy: Strategy,
    /// What to do, in few words.
    pub title: String,
    /// Whether the title says what stands against it.
    #[serde(skip)]
    pub hedged: bool,
    /// Why it helps.
    pub why: String,
    /// Code as it often is.
    pub before: String,
    /// The same without the wait.
    pub after: String,
    /// What to mind; empty where there is nothing.
    pub caveat: String,
    /// Other ways, one each, for where the first does not fit.
    #[serde(default)]
    pub alternatives: Vec<String>,
    /// The site's own expression and its rewriting without the wait, where the source was at hand.
    pub here: Option<Rewrite>,
    /// How to confirm that the wait is gone.
    pub confirm: String,
}

/// An expression of the program and what to write instead.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Rewrite {
    /// As it stands.
    pub before: String,
    /// Without the wait.
    pub after: String,
}

/// One wait of a site.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Example {
    /// On the export's clock, as the nsys GUI shows it.
    pub start_ns: i64,
    /// Its end on the same clock.
    pub end_ns: i64,
    /// Host time inside it.
    pub blocked_ns: i64,
    /// Idle time of the GPU after it.
    pub drain_ns: i64,
    /// Which of the awaited ops ended last, e.g. "ampere_sgemm_128x64_tn on stream 7".
    pub awaited: Option<String>,
}

impl Example {
    /// From its start to its end.
    pub fn length_ns(&self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}
