//! What limits a report, and the words by which programs know it.

use crate::vocabulary::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Something that limits what this report can say, with the command that mends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stable word of [`Code`]; text, because a report that was kept may be of another version of the program.
    pub code: Cow<'static, str>,
    /// What is missing, as a sentence.
    pub message: String,
    /// The exact command, or an empty string where nothing can be done.
    pub fix: String,
}

impl Warning {
    /// A warning.
    pub fn new(code: Code, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { code: Cow::Borrowed(code.as_str()), message: message.into(), fix: fix.into() }
    }

    /// Whether it says that an export is damaged, or no rank of the others' run.
    pub fn is_damage(&self) -> bool {
        self.known().is_some_and(Code::is_damage)
    }

    /// Its code; `None` for one of another version of the program.
    pub fn known(&self) -> Option<Code> {
        Code::parse(&self.code)
    }
}

words! {
    /// Codes of warnings. A word stays what it means; what is no longer said is left out, never used for something else.
    Code {
        // the export
        DamagedTimes = "damaged-times": "Rows have times that no capture can hold; they were left out",
        DamagedNames = "damaged-names": "Calls have a name id that stands for no string; waits among them are missing",
        DamagedPayloads = "damaged-payloads": "Python marks have a payload that cannot be understood; their waits have no Python line",
        DamagedChains = "damaged-chains": "Call chains have two frames at one depth",
        MissingColumn = "missing-column": "A table lacks a column, and the report what rests on it",
        UnreadableTable = "unreadable-table": "A table is no table of rows with ids, and was not read",
        RangesNeverPopped = "ranges-never-popped": "NVTX ranges were pushed and never popped; each counts as ended where the next of its name begins",
        RangesLeftOut = "ranges-left-out": "NVTX ranges were left out that nest deeper than a program's parts do",
        NoGpuWork = "no-gpu-work": "No kernel or copy is recorded: copies, drain and idle waits cannot be told",
        SamplingOnly = "sampling-only": "Python was sampled, not asked at each CUDA call: a short wait shows its function, not its line",
        SyncBacktracesOff = "sync-backtraces-off": "Python backtraces were asked for, those of synchronisations were not",
        PythonWithoutCudabacktrace = "python-without-cudabacktrace": "Python backtraces were asked for without backtraces of CUDA calls: nsys then records no Python frame",
        NoPythonBacktraces = "no-python-backtraces": "The capture holds no Python backtraces: waits are placed by native chains and NVTX ranges",
        PythonPayloadMissing = "python-payload-missing": "Python marks were exported without their frames",
        ChainsUnresolved = "chains-unresolved": "Native call chains hold addresses, not symbols",
        NoChains = "no-chains": "CUDA calls carry no native call chains",
        BacktraceThreshold = "backtrace-threshold": "Waits shorter than the capture's threshold got no backtrace",
        EventsLost = "events-lost": "nsys says that it missed events: counts and times may be low",
        GraphLevelTrace = "graph-level-trace": "CUDA graphs were traced as a whole: their kernels are hidden",
        LaunchBlocking = "launch-blocking": "CUDA_LAUNCH_BLOCKING=1 was set: this is not how the program runs",
        WaitAfterEveryLaunch = "wait-after-every-launch": "A wait follows nearly every kernel launch: a debug mode, or a loop that synchronises after each step",
        SyncDeviceUnknown = "sync-device-unknown": "Waits do not record which device they were for; it is inferred",
        StaleSource = "stale-source": "The Python source at hand is not what ran; it was not used",
        SourceRefused = "source-refused": "A Python source was not read: its size, kind or place forbids it",
        TinyCapture = "tiny-capture": "Too few GPU operations to tell start-up from steady state",
        OpenEvents = "open-events": "Calls or operations have no end: the capture stopped inside them",
        NotPython = "not-python": "A process is no program of PyTorch: places are native functions, fixes are in CUDA's terms",
        // prices
        SimulationOff = "simulation-off": "The simulation does not reproduce the capture: savings are bounds only",
        ProfilerOverhead = "profiler-overhead": "Much of the recorded time is the profiler's own",
        LightCaptureNeeded = "light-capture-needed": "Backtraces slow the program so much that savings have no figure, only a wide range",
        StepTimeUnused = "step-time-unused": "The length given for an iteration could not be used",
        PowerLimited = "power-limited": "The GPU is at its power limit: time won by fixes is partly lost to a lower clock",
        PricesPartlyBounds = "prices-partly-bounds": "Only the largest sites were simulated; the others have bounds",
        BandwidthAssumed = "bandwidth-assumed": "The speed of pinned copies is not in the capture and was assumed",
        CollectivesAsRecorded = "collectives-as-recorded": "Collective kernels keep their recorded length, though they wait for other ranks",
        AssumedFixed = "assumed-fixed": "Sites were taken as fixed on request: savings come on top of that",
        TimingMatched = "timing-matched": "Times are from another capture than the sites",
        TimingUnused = "timing-unused": "A light capture lies beside the profile and gives no times",
        ReplayNotShown = "replay-not-shown": "None of the sites that were replayed is in this report",
        // ranks
        RankUnreadable = "rank-unreadable": "An export or folder of several could not be read, and the report is of the others",
        RanksMissing = "ranks-missing": "Numbers of ranks are missing between the first and the last",
        RankTwice = "rank-twice": "Two exports name the same rank",
        RanksOfPrograms = "ranks-of-programs": "Not all exports are of the same script",
        RanksOfVersions = "ranks-of-versions": "Not all exports were made by the same version of nsys",
        CollectivesNotMatched = "collectives-not-matched": "Ranks run collectives that do not fit together, so who came late there is not told",
        // what was asked for
        NoSuchDevice = "no-such-device": "No GPU has the number that was asked for",
        NoSuchProcess = "no-such-process": "No process has the id that was asked for",
        NoSuchThread = "no-such-thread": "No thread has the id or name that was asked for",
        // comparisons and gates
        OtherGpu = "other-gpu": "The two captures are of different GPUs: times are not judged",
        OtherFlags = "other-flags": "The two captures were made with other flags: times are not judged",
        OtherHost = "other-host": "One host was slower at calls than the other: times are not judged",
        SampledLines = "sampled-lines": "A capture was sampled: sites are compared by function",
        NoLines = "no-lines": "Only one capture has Python frames: waits are compared by call and copy",
        OtherIterations = "other-iterations": "The captures have iterations of other names: amounts are not judged",
        NoIterations = "no-iterations": "Neither capture has iterations: amounts are per run",
        NoCommonIterations = "no-common-iterations": "Only one capture has iterations: amounts are per run and not judged",
        OtherRanks = "other-ranks": "The captures have other numbers of ranks: amounts are means over ranks",
        OtherCommand = "other-command": "The captures are of other command lines",
        OtherRoot = "other-root": "Files under one directory before are taken for those under another after",
        OtherFilters = "other-filters": "Only one side leaves waits out by filters",
        UnusedAllowance = "unused-allowance": "The budget allows a wait that is no longer there",
    }
}

impl Code {
    /// Whether it says that an export is damaged, or that several are no ranks of one run: what could be read is reported,
    /// but the program exits with 2.
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

    /// Whether it says where times come from: whoever makes something else of a report passes it on.
    pub const fn is_of_timing(self) -> bool {
        matches!(self, Self::TimingMatched | Self::TimingUnused)
    }

    /// Whether it says why waits have no exact Python line.
    pub const fn is_of_lines(self) -> bool {
        matches!(
            self,
            Self::SamplingOnly
                | Self::PythonWithoutCudabacktrace
                | Self::NoPythonBacktraces
                | Self::PythonPayloadMissing
        )
    }

    /// Whether it limits only what fixes would save, which no gate asks for.
    pub const fn is_of_savings(self) -> bool {
        matches!(
            self,
            Self::SimulationOff
                | Self::ProfilerOverhead
                | Self::LightCaptureNeeded
                | Self::StepTimeUnused
                | Self::PricesPartlyBounds
                | Self::BandwidthAssumed
                | Self::CollectivesAsRecorded
        )
    }

    /// What to do about it.
    pub const fn advice(self) -> &'static str {
        use Code::*;
        match self {
            DamagedTimes | DamagedNames | DamagedPayloads | DamagedChains => {
                "Copy the export again, or make it anew from its .nsys-rep with the command of the warning."
            }
            MissingColumn | UnreadableTable => "Export the .nsys-rep again, with all its tables.",
            RangesNeverPopped => {
                "Pop each range, also where the code between raises: `with torch.cuda.nvtx.range(…)`."
            }
            RangesLeftOut => "Look for ranges that are pushed in a loop and never popped.",
            NoGpuWork => {
                "Capture with `-t cuda`; where nsys names a reason (driver, CUPTI, permissions), mend that first."
            }
            SamplingOnly | SyncBacktracesOff | PythonWithoutCudabacktrace | NoPythonBacktraces => {
                "Capture with `--cudabacktrace=all:0 --python-backtrace=cuda --sample=process-tree`."
            }
            PythonPayloadMissing => {
                "Export the .nsys-rep again with `--include-json=true`, by nsys 2024.5 or later."
            }
            ChainsUnresolved => "Capture with `--resolve-symbols=true`, where the program's libraries are.",
            NoChains => "Capture with `--cudabacktrace=all:0 --sample=process-tree`.",
            BacktraceThreshold => "Give a threshold of 0: `--cudabacktrace=all:0`.",
            EventsLost => {
                "Capture a shorter stretch (`--capture-range`), or flush more often (`--cuda-flush-interval=1000`)."
            }
            GraphLevelTrace => "Capture with `--cuda-graph-trace=node`.",
            LaunchBlocking => "Capture without CUDA_LAUNCH_BLOCKING.",
            WaitAfterEveryLaunch => {
                "Switch the debug mode off and capture again; a loop that waits so is itself the finding."
            }
            SyncDeviceUnknown => {
                "Nothing: the capture cannot tell. Check sites of programs that use several GPUs."
            }
            StaleSource => "Check out the revision that was profiled, or point `--source-root` at it.",
            SourceRefused => "Point `--source-root` at plain source files.",
            TinyCapture => "Capture some ten iterations after warm-up.",
            OpenEvents => "Let the capture end between iterations, where the open ones matter.",
            SimulationOff => "Read savings as bounds; `sync-report replay` measures them.",
            StepTimeUnused => {
                "Time some iterations together and divide: from the start of one to the start of the next."
            }
            LightCaptureNeeded => {
                "Capture without backtraces too (scripts/capture.sh --both), or give `--step-time` what an iteration takes."
            }
            ProfilerOverhead => {
                "Take times from a capture without backtraces (`--timing`), or measure with `sync-report replay`."
            }
            PowerLimited => "Measure the fix on the program itself, or with `sync-report replay`.",
            PricesPartlyBounds => "`--fix SITE=CHANGE` simulates a site of your choice.",
            BandwidthAssumed => "Measure it: `sync-report bench --save FILE`, then `--constants FILE`.",
            NotPython => {
                "Nothing. For places, capture with `--cudabacktrace=all:0 --sample=process-tree`, of a build with symbols."
            }
            CollectivesAsRecorded => "Fix all ranks alike, and measure all together.",
            AssumedFixed | TimingMatched => "Nothing: it says on what the figures rest.",
            TimingUnused => {
                "Capture both with the same arguments (scripts/capture.sh --both), or say `--timing none`."
            }
            ReplayNotShown => "Give the replay of this capture, or leave `--top` and filters out.",
            RankUnreadable => "Copy or export that one again, or leave it out.",
            RanksMissing => "Copy the files of those ranks too, where they are wanted.",
            RankTwice => "Leave one of the two out, where they are of one rank.",
            RanksOfPrograms | RanksOfVersions => "Give the exports of one run, exported by one nsys.",
            CollectivesNotMatched => {
                "Capture the same iterations on all ranks (`--capture-range=cudaProfilerApi`)."
            }
            NoSuchDevice | NoSuchProcess | NoSuchThread => "Choose one of those that the warning lists.",
            OtherGpu => "Capture both on the same kind of GPU.",
            OtherFlags | SampledLines | NoLines => {
                "Capture both alike, with scripts/capture.sh or the command that `sync-report doctor` prints."
            }
            OtherHost => "Capture both on one machine, one after the other.",
            OtherIterations | NoCommonIterations => "Capture both with the same NVTX ranges.",
            NoIterations => "Wrap the loop's body in NVTX ranges `step N`.",
            OtherRanks | OtherCommand | OtherRoot => "Nothing, where that is what you meant to compare.",
            OtherFilters => "Use the same filters for both.",
            UnusedAllowance => "Take the entry out of the budget.",
        }
    }
}
