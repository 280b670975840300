//! Limits of a report, with stable codes.

use crate::vocabulary::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A limit of the result, and its remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stable code of the warning. A kept report may hold codes of another version of the program.
    pub code: Cow<'static, str>,
    /// The limit, as a sentence.
    pub message: String,
    /// Command or advice that mends the limit; empty where nothing does.
    pub fix: String,
}

impl Warning {
    /// A warning.
    pub fn new(code: Code, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { code: Cow::Borrowed(code.as_str()), message: message.into(), fix: fix.into() }
    }

    /// Whether the code says that an export is damaged, or no rank of the others' run.
    pub fn is_damage(&self) -> bool {
        self.known().is_some_and(Code::is_damage)
    }

    /// The code; `None` for a code of another version of the program.
    pub fn known(&self) -> Option<Code> {
        Code::parse(&self.code)
    }
}

/// Declares the codes: word, meaning, advice.
macro_rules! codes {
    ($($code:ident = $word:literal: $means:literal => $advice:expr,)+) => {
        words! {
            /// Codes of warnings. A word keeps its meaning; a retired word is never used for another.
            Code { $($code = $word: $means,)+ }
        }

        impl Code {
            /// Advice for the code.
            pub const fn advice(self) -> &'static str {
                match self { $(Self::$code => $advice,)+ }
            }
        }
    };
}

// Advice of several codes.
const COPY_AGAIN: &str =
    "Copy the export again, or make it anew from its .nsys-rep with the command of the warning.";
const EXPORT_AGAIN: &str = "Export the .nsys-rep again, with all its tables.";
const WITH_LINES: &str =
    "Capture with `sync-report run`, which takes a backtrace of each synchronising call.";
const BASIS: &str = "Nothing: it says on what the figures rest.";
const ONE_RUN: &str = "Give the exports of one run, exported by one nsys.";
const CHOOSE: &str = "Choose one of those that the warning lists.";
const ALIKE: &str =
    "Capture both alike, with `sync-report run` or the command that `sync-report doctor` prints.";
const SAME_RANGES: &str = "Capture both with the same NVTX ranges.";
const AS_MEANT: &str = "Nothing, where that is what you meant to compare.";

codes! {
    // the export
    DamagedTimes = "damaged-times": "Rows have times that no capture can hold; they were left out"
        => COPY_AGAIN,
    DamagedNames = "damaged-names": "Calls have a name id that stands for no string; waits among them are missing"
        => COPY_AGAIN,
    DamagedPayloads = "damaged-payloads": "Python marks have a payload that cannot be understood; their waits have no Python line"
        => COPY_AGAIN,
    DamagedChains = "damaged-chains": "Call chains have two frames at one depth"
        => COPY_AGAIN,
    MissingColumn = "missing-column": "The export lacks a column; results that need it are missing"
        => EXPORT_AGAIN,
    UnreadableTable = "unreadable-table": "A table is missing whose rows calls speak of, or is no table of rows with ids, and was not read"
        => EXPORT_AGAIN,
    CallsFailed = "calls-failed": "Calls that may wait returned an error: the program did not run as it does where all goes well"
        => "Capture a run that succeeds. Errors of the GPU's own (700, 710, 719) show at a later wait: `compute-sanitizer` names the kernel.",
    RangesNeverPopped = "ranges-never-popped": "NVTX ranges were pushed and never popped; each counts as ended where the next of its name begins"
        => "Pop each range, also where the code between raises: `with torch.cuda.nvtx.range(…)`.",
    RangesLeftOut = "ranges-left-out": "NVTX ranges were left out that nest deeper than a program's parts do"
        => "Look for ranges that are pushed in a loop and never popped.",
    NoGpuWork = "no-gpu-work": "No kernel or copy is recorded: copies, GPU idle time and idle waits are unknown"
        => "Capture with `sync-report run`; where nsys names a reason (driver, CUPTI, permissions), mend that first.",
    SamplingOnly = "sampling-only": "Python was sampled, not asked at each CUDA call: a short wait shows its function, not its line"
        => WITH_LINES,
    SyncBacktracesOff = "sync-backtraces-off": "Python backtraces were asked for, those of synchronisations were not"
        => WITH_LINES,
    PythonWithoutCudabacktrace = "python-without-cudabacktrace": "Python backtraces were asked for without backtraces of CUDA calls: nsys then records no Python frame"
        => WITH_LINES,
    NoPythonBacktraces = "no-python-backtraces": "The capture holds no Python backtraces: waits are placed by native chains and NVTX ranges"
        => WITH_LINES,
    FunctionsOnly = "functions-only": "A trace of torch.profiler names functions, not the lines that call: PyTorch before 2.14 records no more"
        => "Record with `sync_report.profile`, which adds the lines, or give the sources with `--source-root`.",
    PythonPayloadMissing = "python-payload-missing": "Python marks were exported without their frames"
        => "Export the .nsys-rep again with `--include-json=true`, by nsys 2024.5 or later.",
    ChainsUnresolved = "chains-unresolved": "Native call chains hold addresses, not symbols"
        => "Capture with `sync-report run --nsys=--resolve-symbols=true`, where the program's libraries are.",
    NoChains = "no-chains": "CUDA calls carry no native call chains"
        => WITH_LINES,
    BacktraceThreshold = "backtrace-threshold": "Waits shorter than the capture's threshold got no backtrace"
        => "Capture with `sync-report run`, or by hand with `--cudabacktrace=sync:0`.",
    EventsLost = "events-lost": "nsys says that it missed events: counts and times may be low"
        => "Capture a shorter stretch (`--capture-range`), or flush more often (`sync-report run --nsys=--cuda-flush-interval=1000`).",
    GraphLevelTrace = "graph-level-trace": "CUDA graphs were traced as a whole: their kernels are hidden"
        => "Capture with `sync-report run --nsys=--cuda-graph-trace=node`.",
    LaunchBlocking = "launch-blocking": "CUDA_LAUNCH_BLOCKING=1 was set: this is not how the program runs"
        => "Capture without CUDA_LAUNCH_BLOCKING.",
    WaitAfterEveryLaunch = "wait-after-every-launch": "A wait follows nearly every kernel launch: a debug mode, or a loop that synchronises after each step"
        => "Switch the debug mode off and capture again; a loop that waits so is itself the finding.",
    SyncDeviceUnknown = "sync-device-unknown": "Waits do not record which device they were for; it is inferred"
        => "Nothing: the capture cannot tell. Check sites of programs that use several GPUs.",
    StaleSource = "stale-source": "The Python source at hand is not what ran; it was not used"
        => "Check out the revision that was profiled, or point `--source-root` at it.",
    SourceRefused = "source-refused": "A Python source was not read: its size, kind or place forbids it"
        => "Point `--source-root` at plain source files.",
    TinyCapture = "tiny-capture": "Too few GPU operations to tell start-up from steady state"
        => "Capture some ten iterations after warm-up.",
    OpenEvents = "open-events": "Calls or operations have no end: the capture stopped inside them"
        => "Let the capture end between iterations, where the open ones matter.",
    NotPython = "not-python": "A process is no program of PyTorch: places are native functions, fixes are in CUDA's terms"
        => "Nothing. For places, capture a build with symbols with `sync-report run`.",
    // the program
    HostAllocation = "host-allocation": "A tenth of the run or more goes into allocating pinned memory of the host"
        => "Allocate pinned buffers once and reuse them.",
    DeviceAllocation = "device-allocation": "A tenth of the run or more goes into allocating memory of the device"
        => "Keep memory in a pool: PyTorch's caching allocator without `empty_cache()`, `cudaMallocAsync` elsewhere.",
    ModuleLoading = "module-loading": "A tenth of the run or more goes into loading code of kernels"
        => "Run each kernel once before the part that counts; `CUDA_MODULE_LOADING=LAZY` loads only kernels that run.",
    // prices
    SimulationOff = "simulation-off": "The simulation does not reproduce the capture: savings are bounds only"
        => "Read savings as bounds; `sync-report replay` measures them.",
    ProfilerOverhead = "profiler-overhead": "Much of the recorded time is the profiler's own"
        => "Capture with backtraces at waits alone (the command of the warning), or give `--step-time` what an iteration takes.",
    StepTimeUnused = "step-time-unused": "The length given for an iteration could not be used"
        => "Time some iterations together and divide: from the start of one to the start of the next.",
    PowerLimited = "power-limited": "The GPU is at its power limit: time won by fixes is partly lost to a lower clock"
        => "Measure the fix on the program itself, or with `sync-report replay`.",
    PricesPartlyBounds = "prices-partly-bounds": "Only the largest sites were simulated; the others have bounds"
        => "`--fix SITE=CHANGE` simulates a site of your choice.",
    BandwidthAssumed = "bandwidth-assumed": "The speed of pinned copies is not in the capture and was assumed"
        => "Measure it: `sync-report bench --save FILE`, then `--constants FILE`.",
    CollectivesAsRecorded = "collectives-as-recorded": "Collective kernels keep their recorded length, though they wait for other ranks"
        => "Fix all ranks alike, and measure all together.",
    AssumedFixed = "assumed-fixed": "Sites were taken as fixed on request: savings come on top of that"
        => BASIS,
    ReplayNotShown = "replay-not-shown": "None of the sites that were replayed is in this report"
        => "Give the replay of this capture, or leave `--top` and filters out.",
    // ranks
    RankUnreadable = "rank-unreadable": "An export or folder of several could not be read, and the report is of the others"
        => "Copy or export that one again, or leave it out.",
    RanksMissing = "ranks-missing": "Numbers of ranks are missing between the first and the last"
        => "Copy the files of those ranks too, where they are wanted.",
    RankTwice = "rank-twice": "Two exports name the same rank"
        => "Leave one of the two out, where they are of one rank.",
    RanksOfPrograms = "ranks-of-programs": "Not all exports are of the same script"
        => ONE_RUN,
    RanksOfVersions = "ranks-of-versions": "Not all exports were made by the same version of nsys"
        => ONE_RUN,
    CollectivesNotMatched = "collectives-not-matched": "Ranks run collectives that do not fit together, so who came late there is not told"
        => "Capture the same iterations on all ranks (`--capture-range=cudaProfilerApi`).",
    // what was asked for
    NoSuchDevice = "no-such-device": "No GPU has the number that was asked for"
        => CHOOSE,
    NoSuchProcess = "no-such-process": "No process has the id that was asked for"
        => CHOOSE,
    NoSuchThread = "no-such-thread": "No thread has the id or name that was asked for"
        => CHOOSE,
    // comparisons and gates
    OtherGpu = "other-gpu": "The two captures are of different GPUs: times are not judged"
        => "Capture both on the same kind of GPU.",
    OtherFlags = "other-flags": "The two captures were made with other flags: times are not judged"
        => ALIKE,
    OtherHost = "other-host": "One host was slower at calls than the other: times are not judged"
        => "Capture both on one machine, one after the other.",
    SampledLines = "sampled-lines": "A capture was sampled: sites are compared by function"
        => ALIKE,
    NoLines = "no-lines": "Only one capture has Python frames: waits are compared by call and copy"
        => ALIKE,
    OtherIterations = "other-iterations": "The captures have iterations of other names: amounts are not judged"
        => SAME_RANGES,
    NoIterations = "no-iterations": "Neither capture has iterations: amounts are per run"
        => "Wrap the loop's body in NVTX ranges `step N`.",
    NoCommonIterations = "no-common-iterations": "Only one capture has iterations: amounts are per run and not judged"
        => SAME_RANGES,
    OtherRanks = "other-ranks": "The captures have other numbers of ranks: amounts are means over ranks"
        => AS_MEANT,
    OtherCommand = "other-command": "The captures are of other command lines"
        => AS_MEANT,
    OtherRoot = "other-root": "Files under one directory before are taken for those under another after"
        => AS_MEANT,
    OtherFilters = "other-filters": "Only one side leaves waits out by filters"
        => "Use the same filters for both.",
    UnusedAllowance = "unused-allowance": "The budget allows a wait that is no longer there"
        => "Take the entry out of the budget.",
}

impl Code {
    /// Whether an export is damaged, or several are no ranks of one run: the program reports the rest and
    /// exits with 2.
    pub const fn is_damage(self) -> bool {
        matches!(
            self,
            Self::DamagedTimes
                | Self::DamagedNames
                | Self::DamagedPayloads
                | Self::DamagedChains
                | Self::RankUnreadable
                | Self::RankTwice
                | Self::RanksOfPrograms
                | Self::RanksOfVersions
        )
    }

    /// Whether the code says why waits have no exact Python line.
    pub const fn is_of_lines(self) -> bool {
        use Code::*;
        matches!(self, SamplingOnly | PythonWithoutCudabacktrace | NoPythonBacktraces | PythonPayloadMissing)
    }

    /// Whether the code concerns only savings, or host time besides waits: no gate asks for these.
    pub const fn is_of_savings(self) -> bool {
        matches!(
            self,
            Self::SimulationOff
                | Self::ProfilerOverhead
                | Self::StepTimeUnused
                | Self::PricesPartlyBounds
                | Self::BandwidthAssumed
                | Self::CollectivesAsRecorded
                | Self::HostAllocation
                | Self::DeviceAllocation
                | Self::ModuleLoading
        )
    }
}
