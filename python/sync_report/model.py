"""What a report holds, as classes. Made by scripts/generate.py from the JSON Schema of the report: change the Rust
structs in src/model instead.

Times are integer nanoseconds of the capture's clock, and their names end in ``_ns``.
"""
# fmt: off
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Literal, Optional, Sequence

ApiFamily = Literal["host-allocation", "device-allocation", "module-loading"]
"""The work of an API call that takes host time without any wait."""


Attribution = Literal["python-backtrace", "python-found", "python-function", "python-sample", "backward",
    "native", "nvtx", "none"]
"""How a wait was put on its line, best first."""


Backtraces = Literal["python", "native", "sampled", "none"]
"""What a capture recorded of where waits come from, and so how much it slowed the host."""


BoundBy = Literal["host", "gpu"]
"""What limits a run."""


Change = Literal["keep", "delete", "gpu-wait", "narrow", "non-blocking", "pinned", "drop", "on-gpu", "delay",
    "coalesce"]
"""A change that can be simulated."""


Class = Literal["false", "true", "unknown"]
"""Whether the CPU needed the GPU's result."""


Direction = Literal["host-to-device", "device-to-host", "device-to-device", "host-to-host", "other"]
"""Direction of a copy."""


DriverApi = Literal["cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize", "cuMemcpy",
    "cuMemcpyAsync", "cuMemset", "cuMemFree", "cuMemHostAlloc", "cuMemFreeHost"]
"""The driver call behind a wait."""


EditKind = Literal["delete", "non-blocking", "on-device", "keep-tensor", "read-together"]
"""What an edit does."""


GraphBreak = Literal["allocation", "pageable-copy", "cpu-tensor", "query", "other-stream", "callback"]
"""Causes besides waits that keep work from being captured as a CUDA graph. Each was tried on an H200 with CUDA 13
and PyTorch 2.11, in all modes of a capture: only the relaxed one permits an allocation or a question about an
event.
"""


HostMemory = Literal["pageable", "pinned", "managed", "unknown"]
"""What kind of host memory a copy reads or writes."""


Kind = Literal["explicit", "redundant", "idle", "upload", "debug-print", "logging", "error-check", "allocator",
    "round-trip", "host-known", "timing", "control-flow", "dynamic-shape", "cpu-compute", "barrier",
    "value-read", "unattributed"]
"""Why a wait is of its class."""


NamedBy = Literal["name", "environment", "communicator", "order"]
"""How the number of a rank is known."""


Per = Literal["iteration", "run"]
"""What amounts are of: each iteration, or the whole run."""


Recorder = Literal["nsys", "torch.profiler"]
"""The profiler that made a capture."""


Refusal = Literal["no-source", "stale", "library", "inexact", "needed", "open", "no-edit", "form", "several",
    "disputed", "overlap", "syntax", "outside", "encoding", "direction", "pageable", "joined", "reused",
    "streams", "devices", "in-flight", "barrier", "tried", "wrapper", "foreign", "measured", "alike",
    "advanced", "numbers", "reads", "on-cpu", "clock", "destination", "float64", "random"]
"""Why a wait gets no edit, or one that is not safe: what is not proven, or what stands in the way."""


RuleId = Literal["R01", "R02", "R03", "R04", "R05", "R06", "R08", "R09", "R10", "R11", "R12", "R13", "R14",
    "R15", "R16", "R17", "R18", "R19", "R20", "R21", "R22", "R23", "R24", "R25", "R26", "S01", "S02", "S03",
    "S04", "S05", "S06", "S07", "S08", "S09", "S10", "S11", "S12", "S14", "S15", "S16", "S17", "S18", "S19",
    "S20", "S21", "S22", "S23", "S24", "X4", "X5", "X6", "X11", "X12", "undecided", "unsure", "source",
    "sampled", "thread", "device", "collective", "other"]
"""Which rule of evidence speaks: `R` reads the trace, `S` the Python source, `X` only leans; words are remarks."""


Safety = Literal["safe", "unsafe"]
"""Whether an edit may change what the program computes or shows."""


Sample = Literal["iteration", "wait"]
"""What a sample of a site's costs is."""


Strategy = Literal["remove it", "make the copy asynchronous", "use a form that does not wait",
    "fill it on the GPU", "wait later or less often", "join several waits into one", "move the work elsewhere",
    "keep it out of the measured region", "leave it"]
"""Ways to get rid of a wait, in the order in which to try them."""


ThreadRole = Literal["python", "autograd", "library", "unknown"]
"""What the thread that waited is for."""


@dataclass(frozen=True)
class Report:
    """What one run of the tool found, over all exports given."""

    schema_version: int
    """Version of this tree's layout: fields may be added, never renamed."""
    tool: Tool
    """What wrote it."""
    profiles: List[ProfileInfo]
    """The exports, in the order given."""
    totals: Totals
    """All sites together, listed or not."""
    iterations: Optional[Iterations]
    """The loop of the program, where one is known."""
    sites: List[Site]
    """Ranked as `--sort` says; with `--top` cut, `sites_omitted` counts the rest."""
    together: List[Together]
    """Sites that save something only together."""
    sites_omitted: int
    """Sites that are not listed."""
    waits_filtered_out: int
    """Waits of the exports that the filters leave out of `sites` and `totals`: none shown is not none there."""
    warnings: List[Warning]
    """What limits the report."""
    graph_breaks: Optional[List[Breaks]]
    """Causes besides waits that keep the range of `--graph-ready` from being captured as a CUDA graph."""
    ranks: Optional[Ranks]
    """The same over ranks, where the exports hold several; `sites` has each rank's own."""


@dataclass(frozen=True)
class Awaited:
    """What the waits of a site waited for, added up over them; times in ns of host time."""

    streams: List[AwaitedStream]
    """Streams that had work pending, the longest first; a few of them."""
    streams_left_out: int
    """How many more there are."""
    operations: List[AwaitedOperation]
    """What ran meanwhile, each op behind the one before, the longest first; a few of them."""
    operations_left_out: int
    """How many more there are."""
    idle_ns: int
    """Blocked time in which nothing of it ran: calls that found nothing, gaps, the way back to the host."""
    narrow: Optional[Narrow]
    """Less that would do, where the trace knows of something."""
    idle_gpu: Optional[IdleGpu]
    """Waits for a GPU that had nothing to do, while another worked."""
    collectives: Optional[BehindCollectives]
    """Time behind collectives."""


@dataclass(frozen=True)
class AwaitedOperation:
    """An operation that ran while waits blocked."""

    name: str
    """Kernel, or `[memcpy]`, `[memset]`, `[graph]`."""
    device: int
    """GPU that it ran on."""
    stream: int
    """CUPTI stream id."""
    count: int
    """How many."""
    blocked_ns: int
    """Blocked time during which they ran."""


@dataclass(frozen=True)
class AwaitedStream:
    """A stream that waits waited for."""

    device: int
    """GPU that it is on."""
    stream: int
    """CUPTI stream id."""
    waits: int
    """Waits that found work on it."""
    pending_ns: int
    """Blocked time until its work was done."""
    only_ns: int
    """Of that, after the work of all other streams was done: a wait without this stream is so much shorter."""
    read: int
    """Waits that complete a copy to the host on it. With none, nothing of it is read there at these waits."""


@dataclass(frozen=True)
class Backward:
    """What a wait on autograd's thread belongs to."""

    node: Optional[str]
    """The node of the graph, e.g. "IndexBackward0"."""
    forward: Optional[Frame]
    """The line whose operator it undoes, where sequence numbers tell."""


@dataclass(frozen=True)
class BehindCollectives:
    """Time of waits that passed behind collectives (kernels of NCCL)."""

    name: str
    """The kernel that most of it passed behind."""
    blocked_ns: int
    """Blocked time during which collectives ran."""
    met_ns: int
    """Of that, in collectives whose other ranks are in the capture too."""
    late_ns: int
    """Of that, until the last rank had arrived: no saving here, whatever is done about the wait."""
    late: List[LateRank]
    """The ranks that came last, the latest first."""


@dataclass(frozen=True)
class Block:
    """Whole lines in place of others."""

    first: int
    """First line that goes, from 1."""
    last: int
    """Last line that goes."""
    text: str
    """What comes instead, each line with its end; empty where they only go."""


@dataclass(frozen=True)
class BlockedTime:
    """GPU idle time in which one function blocked the CPU."""

    call: Optional[str]
    """The function of the operating system's library; null where only the scheduler tells that the thread was off
    its CPU.
    """
    at: Optional[str]
    """Where most of this time lies: the Python line ("train.py:12"), else the NVTX range ("range load"); null
    where neither is known.
    """
    ns: int
    """In ns."""


@dataclass(frozen=True)
class Breaks:
    """Calls of one line that keep a range from being captured as a CUDA graph, and are no waits."""

    kind: GraphBreak
    """The cause."""
    api: str
    """Name of the function of CUDA."""
    calls: int
    """The number of calls."""
    user_frame: Optional[Frame]
    """The user's line, where a backtrace tells."""
    fix: str
    """The advice."""


@dataclass(frozen=True)
class ByClass:
    """Totals of each class."""

    false: ClassTotals
    """Waits that can go."""
    true: ClassTotals
    """Waits that are needed."""
    unknown: ClassTotals
    """Waits that the evidence leaves open."""


@dataclass(frozen=True)
class CallPath:
    """A way to the line of a site."""

    callers: List[Frame]
    """The user's frames around the line's, nearest first."""
    waits: int
    """Waits that came by it."""
    blocked_ns: int
    """Host time inside them."""
    drain_ns: int
    """Device-idle time after them."""
    library: Optional[List[Frame]]
    """The library's frames between `library_frame` and `user_frame`, nearest to the wait first."""


@dataclass(frozen=True)
class CapturedRun:
    """The captured run as simulated, and what fixing every false site saves of it."""

    run_ns: int
    """Length of the run."""
    saved_ns: int
    """Saving of fixing every false site."""


@dataclass(frozen=True)
class ClassTotals:
    """Totals of one class."""

    waits: int
    """Waits."""
    sites: int
    """Sites."""
    blocked_ns: int
    """Host time inside the waits."""
    drain_ns: int
    """Idle time of GPUs after them."""
    recoverable_ns: Optional[int]
    """Saving with all false sites fixed; `None` until simulated."""


@dataclass(frozen=True)
class Clocks:
    """How the clocks of exports were put together."""

    by_collectives: int
    """Exports whose clock was set by collectives, which end together."""
    by_start: int
    """Exports of which only the start of the session is known, which is as good as the machines' clocks agree."""
    residual_ns: Optional[int]
    """Nine tenths of the collectives that set clocks end within so much of each other; of the worst export."""


@dataclass(frozen=True)
class Copy:
    """The copy that a wait completes."""

    direction: Direction
    """From where to where."""
    bytes: int
    """Size in bytes."""
    host_memory: HostMemory
    """How the host side of it is allocated."""


@dataclass(frozen=True)
class CopyTime:
    """GPU time in copies of one kind."""

    direction: Direction
    """From where to where."""
    host_memory: HostMemory
    """How the host side is allocated."""
    ns: int
    """In ns."""


@dataclass(frozen=True)
class Edit:
    """An edit of one file that removes a wait."""

    kind: EditKind
    """What it does."""
    safety: Safety
    """Whether it may change what the program computes or shows."""
    mind: Optional[Refusal]
    """What it may change; `None` where it is safe."""
    replacements: List[Replacement]
    """Ascending, none overlapping another."""
    blocks: List[Block]
    """The same as whole lines, for reviews: ascending, none beside another."""
    lines: Optional[List[int]]
    """Lines whose waits it takes together: it is made only where each has a site with this edit. Empty where it is
    about its own.
    """


@dataclass(frozen=True)
class Evidence:
    """One reason for a verdict, in words."""

    rule: RuleId
    """The rule that gives the reason."""
    text: str
    """The reason as a sentence, with the site's own numbers."""
    case: Optional[str]
    """Which case of its rule it is, as `explain RULE` lists them; absent from remarks."""


@dataclass(frozen=True)
class Example:
    """One wait of a site."""

    start_ns: int
    """On the export's clock, as the nsys GUI shows it."""
    end_ns: int
    """Its end on the same clock."""
    blocked_ns: int
    """Host time inside it."""
    drain_ns: int
    """Idle time of the GPU after it."""
    awaited: Optional[str]
    """Which of the awaited ops ended last, e.g. "ampere_sgemm_128x64_tn on stream 7"."""


@dataclass(frozen=True)
class Fix:
    """What to do about a site."""

    order: int
    """Place of the way among all, in the order in which to try them, from 1."""
    strategy: Strategy
    """Which way it is."""
    title: str
    """What to do, in few words."""
    why: str
    """Why it helps."""
    before: str
    """Code as it often is."""
    after: str
    """The same without the wait."""
    caveat: str
    """What to mind; empty where there is nothing."""
    alternatives: List[str]
    """Other ways, one each, for where the first does not fit."""
    here: Optional[Rewrite]
    """The site's own expression and its rewriting without the wait, where the source was at hand."""
    confirm: str
    """How to confirm that the wait is gone."""


@dataclass(frozen=True)
class Frame:
    """A Python frame."""

    function: str
    """Function or method."""
    file: str
    """As recorded."""
    line: int
    """From 1; 0 where not known."""
    user: bool
    """Outside the standard library, PyTorch and installed packages."""


@dataclass(frozen=True)
class Gpu:
    """A GPU of an export."""

    id: int
    """Number that the report's `device` columns use."""
    name: Optional[str]
    """Product name, where recorded."""
    span_ns: int
    """First to last op of this device and the waits on it."""
    busy_ns: int
    """Union of all ops, graph launches included."""
    idle_ns: int
    """The rest of `span_ns`."""
    drain_ns: int
    """The part of `idle_ns` that is drain: it follows a wait."""
    time: GpuTime
    """The whole span in parts."""


@dataclass(frozen=True)
class GpuTime:
    """A stretch of GPU time in parts that do not overlap, in ns: a moment in which several kinds of work run
    counts for the first of them in this order. The parts add up to the stretch; `idle_blocked_ns` and
    `blocked_in` divide the last of them.
    """

    kernels_ns: int
    """Kernels, graph launches included, but for collectives."""
    collectives_ns: int
    """NCCL's kernels."""
    copies: List[CopyTime]
    """Copies, by direction and host memory."""
    memsets_ns: int
    """Memsets."""
    idle_after_waits_ns: int
    """Idle after the waits of this report."""
    idle_otherwise_ns: int
    """Idle for any other reason: the CPU had launched nothing."""
    idle_blocked_ns: Optional[int]
    """Of `idle_otherwise_ns`, and so no part of its own: no thread could launch, since each was blocked outside
    CUDA, in locks, files, sleeps or off its CPU. Null where the capture has neither operating-system calls nor
    events of the scheduler.
    """
    blocked_in: List[BlockedTime]
    """`idle_blocked_ns` by what blocked the thread that went on first, most first."""


@dataclass(frozen=True)
class HostCalls:
    """Calls of one family on the thread where they take longest: of several threads times may overlap."""

    family: ApiFamily
    """The sort of work that they do."""
    api: str
    """The function that takes most of the time."""
    pid: int
    """The process that calls."""
    tid: int
    """The thread."""
    calls: int
    """How many calls, without those inside another of them."""
    ns: int
    """Host time inside them, without waits."""
    start_up_ns: int
    """The part of it at start-up: before the loop or in its first iterations; without a loop, before the process'
    first kernel.
    """
    first_call_ns: int
    """The part of it in the process' first CUDA call, which creates the context too."""


@dataclass(frozen=True)
class IdleGpu:
    """Waits for a GPU that had nothing to do."""

    waits: int
    """How many waits."""
    gpus: List[int]
    """The GPUs that they were for, as far as that is recorded."""
    busy: List[int]
    """GPUs of the process that worked on meanwhile."""


@dataclass(frozen=True)
class IterationSaving:
    """One iteration, from start to start, and what fixing every false site saves of it."""

    ns: int
    """Its length without the profiler, estimated."""
    saved_ns: int
    """Saved of that."""
    low_ns: int
    """Lower end of the range of the saving."""
    high_ns: int
    """Upper end."""
    rewritable_ns: int
    """Saved on top of that by rewriting needed sites, as `Totals::rewritable_ns`."""
    undecided_ns: int
    """Saved on top of both by what is undecided, as `Totals::undecided_ns`."""
    captured_ns: int
    """Its length as captured."""
    captured_saved_ns: int
    """Saved of that."""


@dataclass(frozen=True)
class Iterations:
    """Turns of the program's loop."""

    profile: int
    """Index in `profiles` of the export that they are of: of several with a loop the one whose iterations take
    longest, since the others wait for it.
    """
    source: str
    """What they were recognised by, e.g. "NVTX ranges `iteration N`" or "repeating launches"."""
    confidence: Optional[float]
    """Where no ranges mark them: of the launches, copies and waits between first and last, the share that each
    has.
    """
    count: int
    """How many."""
    start_up: int
    """How many before the first of them are left out as start-up."""
    median_ns: int
    """Their median length."""
    mean_ns: int
    """Their mean length."""
    start_to_start_ns: int
    """Mean time from the start of one to the start of the next, which savings of an average iteration are of.
    Above the median where some are longer, as the first, or where something else comes between them.
    """
    quartiles_ns: List[int]
    """Lower quartile, median, upper quartile of their lengths."""
    gpu_busy_ns: int
    """Time inside iterations in which GPUs worked, divided by iterations; summed over the export's GPUs."""
    gpu_time: GpuTime
    """Time of the GPUs from the start of the first iteration to the end of the last."""
    busiest_stream_ns: int
    """Kernels of the stream that has most of them, of one: no iteration can be shorter, whatever is fixed."""
    waits_per_iteration: float
    """Waits inside iterations divided by iterations, of all processes that share the loop."""


@dataclass(frozen=True)
class Late:
    """A rank that comes last to a kind of collective."""

    rank: int
    """The late one."""
    collective: str
    """Name of the kernel."""
    communicator: Optional[str]
    """Hash of the communicator that it was called for, in hexadecimal; `None` where none is recorded."""
    among: int
    """How many ranks meet there: those that call it for that communicator, else all."""
    times: int
    """How often it came last, and later than clocks may be off."""
    of: int
    """How often all of them met there."""
    late_p50_ns: int
    """By how much, after the one before it: the median."""
    late_max_ns: int
    """Most."""
    late_ns: int
    """All of it."""
    cost_ns: int
    """Time that the kernels of all other ranks stood until it came: a sum over them."""
    per_iteration_ns: Optional[int]
    """The time by which that makes an iteration longer: `late_ns` of one, without start-up. `None` if not all
    ranks have a loop.
    """
    waiting_per_iteration_ns: Optional[int]
    """The part of it in the late rank's own waits."""
    spent: Spent
    """What it did while the others stood, of `late_ns`."""
    wait: Optional[LateWait]
    """The wait that it came from; `None` where none ended within the time by which it was late."""


@dataclass(frozen=True)
class LateRank:
    """A rank that others waited for."""

    process: Process
    """Its process."""
    device: int
    """GPU of its collectives."""
    late_ns: int
    """Blocked time until it arrived."""


@dataclass(frozen=True)
class LateWait:
    """The wait of a late rank that ended just before it launched its collective."""

    key: str
    """Key of its site."""
    id: Optional[str]
    """Id of that site among the sites over ranks; `None` where it is not listed."""
    place: str
    """Where it is."""
    times: int
    """How often it was this one."""


@dataclass(frozen=True)
class Member:
    """A process as a rank of NCCL's largest communicator in it."""

    pid: int
    """Process id."""
    communicator: str
    """Hash of the communicator, in hexadecimal: all its ranks have the same."""
    ranks: int
    """How many ranks it has."""
    rank: int
    """Which one the process is, from 0."""


@dataclass(frozen=True)
class Narrow:
    """Less that waits could be for."""

    waits: int
    """Waits of which that is known."""
    copies: int
    """Of these, waits that complete a copy to the host; the others would be for the stream that their thread
    launched to last.
    """
    streams: List[int]
    """The streams with what would do; a few of them."""
    shorter_ns: int
    """How much shorter all of them would have been."""


@dataclass(frozen=True)
class Odd:
    """A rank that stands out."""

    rank: int
    """Its number."""
    blocked_ns: int
    """Blocked time."""


@dataclass(frozen=True)
class Once:
    """What is waited outside the program's loop, or before its first kernel or after its last."""

    sites: int
    """Sites that wait nowhere else."""
    blocked_ns: int
    """Host time inside their waits, summed over threads."""
    after_loop_sites: int
    """Of them, those after the loop: `Site::after_loop`."""
    after_loop_blocked_ns: int
    """Host time inside the waits of those."""


@dataclass(frozen=True)
class Operand:
    """The tensor that is copied or read."""

    dtype: Optional[str]
    """Its `torch.dtype`, without "torch."."""
    sizes: List[int]
    """Its sizes; none for a single number."""
    non_blocking: Optional[bool]
    """The flag that a copy was called with."""


@dataclass(frozen=True)
class Over:
    """How something spreads over ranks: values that occur, by nearest rank."""

    p10: int
    """A tenth of the ranks have less."""
    p50: int
    """The median: of two ranks the larger."""
    p90: int
    """A tenth have more."""
    max: int
    """The most."""
    max_rank: int
    """The first rank that has so much."""


@dataclass(frozen=True)
class Process:
    """A process of an export."""

    pid: int
    """Process id."""
    name: Optional[str]
    """Name of the program, where recorded."""
    profile: int
    """Index of its export in `profiles`."""


@dataclass(frozen=True)
class ProfileInfo:
    """One export."""

    path: str
    """As it was given."""
    recorder: Recorder
    """The profiler that made the capture."""
    export_version: Optional[str]
    """Version of the nsys that wrote the export, e.g. "2025.3.2.0"; `None` before 2022."""
    schema: Optional[str]
    """Schema version, e.g. "3.20.3"."""
    started_utc_ns: Optional[int]
    """When the clock of the export's times stood at 0, in ns since 1970 (UTC): what puts captures of several
    machines on one clock. `None` before 2022.
    """
    host: Optional[str]
    """The machine, where recorded."""
    iterations: int
    """Iterations of its loop, without start-up; 0 where none is known."""
    start_up: int
    """Iterations before those, left out as start-up."""
    iteration_ns: Optional[int]
    """Median length of one, in ns."""
    rank: Optional[int]
    """Rank that the environment of its program names, where that was recorded."""
    members: List[Member]
    """Which ranks its processes are, where NCCL says so."""
    span_ns: int
    """First call or op to last."""
    gpus: List[Gpu]
    """GPUs that worked."""
    processes: List[Process]
    """Processes that called CUDA."""
    command: Optional[str]
    """The command line that was profiled, as far as the export holds it."""
    backtraces: Backtraces
    """What the capture recorded of where waits come from, and so how much it slowed the host: "python" (backtraces
    of calls with Python frames), "native" (backtraces without), "sampled" (Python samples), "none".
    """
    slowed: bool
    """Whether launches carry backtraces too, not waits alone: the captured host is several times slower then."""
    launch_ns: Optional[int]
    """How long the host takes to launch a kernel, traced as here: the lower quartile. `None` where it launches
    few.
    """
    host_calls: List[HostCalls]
    """Host time that goes into memory and code, neither of which is a wait: a row each family of calls."""


@dataclass(frozen=True)
class Proposal:
    """What can be done to the source of a site. The file is that of the site's user frame."""

    expression: str
    """The expression that waits; empty where none was found."""


@dataclass(frozen=True)
class Rank:
    """A process of a program that runs in many."""

    rank: int
    """Its number; of all ranks each has its own."""
    named_by: NamedBy
    """How that is known."""
    profile: str
    """Path of its export, as it was given."""
    pid: int
    """Process id."""
    host: Optional[str]
    """The machine, where recorded."""
    iterations: int
    """Iterations of its loop, without start-up; 0 where none is known."""
    start_up: int
    """Iterations before those, left out as start-up."""
    iteration_ns: Optional[int]
    """Median length of one, in ns."""
    span_ns: int
    """First call or op of its export to last."""
    waits: int
    """Waits of all sites."""
    blocked_ns: int
    """Host time inside them."""
    drain_ns: int
    """GPU idle time after them."""
    clock_ns: Optional[int]
    """What was added to the times of its export to put them on the clock of the first rank; `None` where nothing
    tells.
    """


@dataclass(frozen=True)
class RankSite:
    """A site on all ranks. A rank without it counts with 0."""

    id: str
    """Id of the report's site that blocks longest of those that share the key; of a merged report a number of its
    own.
    """
    key: str
    """What its sites are known by on every rank."""
    class_: Class
    """Verdict on the rank that it blocks longest."""
    kind: Kind
    """Why, there."""
    confidence: float
    """How sure that is, there: 0 to 1."""
    disputed: bool
    """Whether ranks have other verdicts."""
    place: str
    """Line and function, or the best substitute."""
    api: str
    """Runtime or driver name without its version suffix."""
    fix: Optional[str]
    """What to do."""
    once: bool
    """Whether it waits once per process on every rank that has it."""
    per: Per
    """The span that its times are of: one iteration of each rank if it waits in iterations, else the run."""
    saves_at_most: bool
    """Whether some rank's saving is only known to be no more than that."""
    late_rank: Optional[int]
    """The rank that most of its waiting is for, which comes late to collectives: no change of this site saves
    that.
    """
    ranks: int
    """Ranks that have it."""
    waits: Over
    """Waits of the run."""
    blocked_ns: Over
    """Host time inside them."""
    blocked_p99_ns: int
    """Of a hundred single waits one blocks longer, on the rank where that is longest; in ns."""
    drain_ns: Over
    """GPU idle time after them."""
    saves_ns: Over
    """What fixing it saves; at most, where no more is known."""
    odd: List[Odd]
    """Ranks on which it blocks far longer than on the others, the longest first."""
    blocked_by_rank_ns: List[int]
    """Blocked time on each rank, in the order of the list."""


@dataclass(frozen=True)
class Ranks:
    """The ranks of a program, over all exports given."""

    per: Per
    """The span that amounts are of: one "iteration" of each rank on average if all have a loop, else its "run"."""
    list: List[Rank]
    """Ascending."""
    missing: List[int]
    """Numbers between the first and the last that no export has."""
    sites: List[RankSite]
    """Those that block a rank longest first, what is paid once last."""
    sites_omitted: int
    """Sites that are not listed."""
    clocks: Optional[Clocks]
    """How the clocks of the exports were put together; `None` where one export holds all."""
    met: int
    """Collectives that were found on all ranks of their group."""
    alone: int
    """Collectives of one rank or more that were not found on the others."""
    late: List[Late]
    """Ranks that others waited for, what costs them most first."""


@dataclass(frozen=True)
class Recoverable:
    """What the whole run would save."""

    alone_ns: int
    """With only this site fixed. 0 where its waits are needed: those have a range, no promise."""
    joint_ns: int
    """The share that is this site's with all false sites fixed."""
    low_ns: int
    """Lower end of the simulated range of `alone_ns`; 0 where nothing was simulated."""
    high_ns: int
    """Upper end. Where nothing was simulated: what the waits block, and what goes with their calls and copies."""
    per_iteration_ns: Optional[int]
    """`alone_ns` of one iteration, where iterations are known."""
    per_iteration_high_ns: Optional[int]
    """`high_ns` by the iteration."""
    percent: float
    """`alone_ns` in percent of the run without the profiler."""
    change: Change
    """The change that was simulated: "delete", "gpu-wait", "narrow", "non-blocking", "pinned", "drop", "on-gpu",
    "delay", "coalesce", "keep".
    """
    simulated: bool
    """From a simulation; else `alone_ns` is 0 and `high_ns` an upper bound."""
    moves_to: Optional[str]
    """The site into whose waits most of the time moves."""
    chosen: Optional[bool]
    """Only `--fix` makes it count as avoidable; its verdict does not."""


@dataclass(frozen=True)
class Replacement:
    """Text in place of a part of a file."""

    start: int
    """First byte that goes."""
    end: int
    """First byte that stays; `start` for an insertion."""
    text: str
    """What comes instead."""


@dataclass(frozen=True)
class Replayed:
    """What a replay of one stretch of the capture saved."""

    gpu: str
    """Name of the GPU that it ran on."""
    stretch_ns: int
    """The stretch with nothing fixed, in ns; `saving_ns` is of it."""
    saving_ns: int
    """What the change saved of it: the median of the rounds."""
    saving_low_ns: int
    """Lower end of its range."""
    saving_high_ns: int
    """Upper end."""
    percent: float
    """`saving_ns` in percent of `stretch_ns`."""
    predicted_ns: Optional[int]
    """What the simulation says of the same stretch."""


@dataclass(frozen=True)
class Rewrite:
    """An expression of the program and what to write instead."""

    before: str
    """As it stands."""
    after: str
    """Without the wait."""


@dataclass(frozen=True)
class Site:
    """All waits that share API, Python stack (or the best substitute) and process role."""

    id: str
    """Number by the first wait among all sites of the capture: "S1" waits first."""
    key: str
    """What it is known by across runs, unlike that of any other site of its process: file, function, line, API,
    kind and a hash of the user's and the library's line and the pattern. Ranks of one program share it.
    """
    api: str
    """Runtime or driver name without its version suffix."""
    driver_api: DriverApi
    """The driver call behind it."""
    class_: Class
    """Whether the wait can go."""
    kind: Kind
    """Why it is of that class."""
    confidence: float
    """How sure the verdict is, 0 to 1."""
    pattern: Optional[str]
    """Catalogue entry."""
    evidence: List[Evidence]
    """Reasons for the verdict, the one that decided first."""
    attribution: Attribution
    """How the waits were put on their line."""
    attribution_note: str
    """How far to trust the attribution, e.g. "31 of 40 samples agree"; empty where exact."""
    frames: List[Frame]
    """Innermost first."""
    user_frame: Optional[Frame]
    """The innermost frame of the user."""
    library_frame: Optional[Frame]
    """The library's line that waits, where the user's line calls a library: that of the code that the catalogue
    knows, else the innermost outside PyTorch and helpers, else the innermost. `None` where the user's line
    names it.
    """
    library: Optional[str]
    """The installed package of that line."""
    caller: Optional[Frame]
    """The nearest caller that tells this site from another at the same user line; of several paths, the first
    one's.
    """
    call_paths: List[CallPath]
    """The ways to the user's line, those that block longest first; empty where there is but one, which `frames`
    has.
    """
    backward: Optional[Backward]
    """What a wait on autograd's thread belongs to. The user's line is then the one that called `backward()`."""
    native: List[str]
    """C++ chain, innermost first, demangled; interpreter frames left out."""
    nvtx: List[str]
    """Enclosing NVTX ranges of an example, outermost first."""
    operand: Optional[Operand]
    """The tensor that an example copies or reads, where the capture says it."""
    source: Optional[str]
    """Text of the user line, where the source was at hand."""
    snippet: Optional[Snippet]
    """That line and those around it."""
    thread: Thread
    """The thread that waits."""
    process: Process
    """Its process."""
    device: Optional[int]
    """Device waited for, where one is known."""
    stream: Optional[int]
    """CUPTI stream id, where all waits share one."""
    copy: Optional[Copy]
    """The copy of each wait; its `bytes` are the smallest of them."""
    copy_bytes_max: Optional[int]
    """Largest copy in bytes, where they differ."""
    waits: int
    """How many waits."""
    per_iteration: Optional[float]
    """Waits inside iterations divided by iterations."""
    blocked_per_iteration_ns: Optional[int]
    """Blocked time inside iterations divided by iterations."""
    drain_per_iteration_ns: Optional[int]
    """Drain of the waits inside iterations divided by iterations."""
    offset_ns: Optional[int]
    """Where in an iteration it waits: from the iteration's start to the wait's, the median."""
    spread: Optional[Spread]
    """How waits and costs vary within the capture; `None` where no reader was to need it."""
    blocked_ns: int
    """Host time inside the waits."""
    blocked_p50_ns: int
    """Of single waits, the median."""
    blocked_p99_ns: int
    """Of single waits, the 99th percentile."""
    blocked_max_ns: int
    """The longest."""
    blocked_percent: float
    """`blocked_ns` in percent of the thread's span."""
    drain_ns: int
    """Device-idle time between the end of the awaited work and the next op."""
    drain_p50_ns: int
    """Of single waits, the median."""
    drain_max_ns: int
    """The longest."""
    drain_percent: float
    """`drain_ns` in percent of the device's span (of all devices' where several)."""
    found_idle: int
    """Waits that found nothing pending on the GPU."""
    start_up: Optional[StartUp]
    """Set where it waits only before the loop or in its first iterations. It is paid once."""
    once: bool
    """Waits outside the program's loop or in its first tenth only, or before the first kernel or after the last:
    what is waited once in this capture, and no part of what fixing all false sites saves. Without a loop,
    copies are a program's work: they are not once.
    """
    after_loop: bool
    """Of those, waits after the loop only, where a validation or a checkpoint does: once in this capture, but a
    longer run may come by again.
    """
    blocks_capture: bool
    """Whether this wait would make a CUDA graph capture fail."""
    recoverable: Optional[Recoverable]
    """What a fix saves."""
    fix: Optional[Fix]
    """What to do."""
    histogram: List[Sequence[int]]
    """Blocked times in powers of two: (upper bound in ns, waits)."""
    awaited: Optional[Awaited]
    """What its waits waited for; `None` where no reader was to need it."""
    examples: List[Example]
    """Waits to look at in the nsys GUI: longest first, then the first of the capture."""
    allowed: Optional[str]
    """The reason of the comment that allows its line to wait (`# sync-report: allow REASON`): it is no finding
    then.
    """
    proposal: Optional[Proposal]
    """What can be done to its source."""
    replayed: Optional[Replayed]
    """What fixing it saved in a replay on a GPU, where results of one were given."""


@dataclass(frozen=True)
class Snippet:
    """Lines of a source file."""

    first_line: int
    """Number of the first line, from 1."""
    lines: List[str]
    """Their text, without line ends."""


@dataclass(frozen=True)
class Spent:
    """What a late rank did while the others stood."""

    waiting_ns: int
    """Blocked in the last wait before it launched the collective."""
    host_ns: int
    """On the host, until the launch."""
    gpu_ns: int
    """From the launch on: its GPU still had other work."""


@dataclass(frozen=True)
class Spread:
    """Lower quartile, median and upper quartile of a site's samples. Robust against the few samples that something
    else disturbed; what a difference between two captures has to exceed.
    """

    per: Sample
    """A sample is what the waits of one "iteration" add up to, where they lie in iterations; else one "wait"."""
    samples: int
    """Iterations with a wait of this site, or its waits."""
    waits: List[int]
    """Waits of a sample."""
    blocked_ns: List[int]
    """Blocked time of a sample."""
    drain_ns: List[int]
    """Drain of a sample."""


@dataclass(frozen=True)
class StartUp:
    """Waits only at start-up."""

    with_: int
    """Iterations that hold some, 0 where all come before the loop."""
    iterations: int
    """Iterations of the capture."""


@dataclass(frozen=True)
class Thread:
    """The thread of a site, or one of several alike."""

    tid: int
    """Thread id."""
    name: Optional[str]
    """Its name, where recorded."""
    role: ThreadRole
    """What it is for."""
    main: bool
    """The process's first thread; where that made no call, the one with most calls."""
    count: int
    """Of how many threads the site's waits are."""


@dataclass(frozen=True)
class Together:
    """Sites whose saving exists only jointly: fixing one of them moves its waiting into another."""

    sites: List[str]
    """Ids, in the order of the report."""
    per_iteration: bool
    """Whether the figures are of an iteration; else of the run."""
    saved_ns: int
    """What fixing all of them saves without the profiler, estimated."""
    low_ns: int
    """Lower end of its range."""
    high_ns: int
    """Upper end."""
    alone_ns: List[int]
    """What each of `sites` saves alone."""


@dataclass(frozen=True)
class Tool:
    """The tool itself."""

    name: str
    """Its name."""
    version: str
    """Its version."""


@dataclass(frozen=True)
class Totals:
    """All sites of the report together."""

    waits: int
    """Waits that passed the filters."""
    sites: int
    """Sites that they form; one for those of several ranks that share a key."""
    blocked_ns: int
    """Host time inside waits, summed over threads: not a saving."""
    gpu_busy_ns: int
    """Summed over the GPUs of all exports."""
    gpu_idle_ns: int
    """Likewise."""
    drain_ns: int
    """Idle time of all devices that follows waits."""
    by_class: ByClass
    """The same by class."""
    recoverable_false_joint_ns: Optional[int]
    """Simulated saving of fixing every false site; `None` until simulated."""
    recoverable_low_ns: Optional[int]
    """Lower end of its range."""
    recoverable_high_ns: Optional[int]
    """Upper end."""
    recoverable_percent: Optional[float]
    """`recoverable_false_joint_ns` in percent of the run without the profiler."""
    bound_by: Optional[BoundBy]
    """What limits the run once all false sites are fixed: "host" or "gpu"."""
    simulation_error: Optional[float]
    """|simulated − recorded| / recorded span with nothing fixed. Over 0.1 there are bounds only."""
    usual_latency_error: Optional[float]
    """The same with usual latencies in place of the recorded distances between dependent events: a harder test of
    which event depends on which.
    """
    sampled_iterations: Optional[int]
    """Iterations that were simulated, evenly spread, for all that there are; `None` where each was."""
    range_scatter_ns: Optional[int]
    """What the scatter of the capture's iterations adds to either end of the ranges; `None` without iterations."""
    collectives: int
    """GPU work that waits for other processes (NCCL kernels). Where the capture does not hold those, it keeps its
    recorded length in every simulation.
    """
    without_profiler: Optional[WithoutProfiler]
    """The run without the profiler, estimated: what the savings here are of."""
    captured: Optional[CapturedRun]
    """The captured run, which the profiler slows."""
    iteration: Optional[IterationSaving]
    """One iteration; `None` where no loop is known or nothing was simulated."""
    rewritable_ns: Optional[int]
    """Rewriting the needed sites that have a form without the wait saves so much of the run, on top of
    `recoverable_false_joint_ns`.
    """
    undecided_ns: Optional[int]
    """The undecided sites save so much of the run on top of both, if all are avoidable."""
    rewritable_sites: int
    """Needed sites of the repeating work that another form does without waiting: `torch.where` in place of an
    assignment through a mask, a guard that looks every N steps.
    """
    unread_sites: int
    """Undecided sites of the repeating work whose line of Python was not at hand."""
    avoidable_sites: int
    """Sites about which something can be done; one for those of several ranks that share a key."""
    repeating_false_sites: int
    """Sites that the saving is of: false ones, or with a change that was asked for, that are no part of `once`;
    counted as `avoidable_sites`.
    """
    chosen_sites: int
    """How many of them are not false: a change of theirs was asked for."""
    savings_unknown: bool
    """The export lacks what savings rest on: none is computed."""
    once: Once
    """Sites that wait once in this capture: context creation, loading, tear-down; and after the loop."""
    gpu_time: GpuTime
    """Where GPU time goes, without the profiler: what the first lines of a report say. `iterations.gpu_time` and
    `gpus[].time` are as captured.
    """
    replayed: Optional[Replayed]
    """What fixing all false sites saved in a replay on a GPU, where results of one were given."""


@dataclass(frozen=True)
class Warning:
    """Something that limits what this report can say, with the command that mends it."""

    code: str
    """Stable word of `Code`; text, because a report that was kept may be of another version of the program."""
    message: str
    """What is missing, as a sentence."""
    fix: str
    """The exact command, or an empty string where nothing can be done."""


@dataclass(frozen=True)
class WithoutProfiler:
    """The program without the profiler, and what fixing every false site saves of that: an estimate with its
    range.
    """

    run_ns: int
    """Length of the run."""
    saved_ns: int
    """Saving of fixing every false site."""
    low_ns: int
    """Lower end of its range."""
    high_ns: int
    """Upper end."""


#: The fields that hold classes, by class.
SHAPES: Dict[Any, Dict[str, Any]] = {
    Report: {'tool': Tool, 'profiles': ProfileInfo, 'totals': Totals, 'iterations': Iterations, 'sites': Site, 'together': Together, 'warnings': Warning, 'graph_breaks': Breaks, 'ranks': Ranks},
    Awaited: {'streams': AwaitedStream, 'operations': AwaitedOperation, 'narrow': Narrow, 'idle_gpu': IdleGpu, 'collectives': BehindCollectives},
    Backward: {'forward': Frame},
    BehindCollectives: {'late': LateRank},
    Breaks: {'user_frame': Frame},
    ByClass: {'false': ClassTotals, 'true': ClassTotals, 'unknown': ClassTotals},
    CallPath: {'callers': Frame, 'library': Frame},
    Edit: {'replacements': Replacement, 'blocks': Block},
    Fix: {'here': Rewrite},
    Gpu: {'time': GpuTime},
    GpuTime: {'copies': CopyTime, 'blocked_in': BlockedTime},
    Iterations: {'gpu_time': GpuTime},
    Late: {'spent': Spent, 'wait': LateWait},
    LateRank: {'process': Process},
    ProfileInfo: {'members': Member, 'gpus': Gpu, 'processes': Process, 'host_calls': HostCalls},
    RankSite: {'waits': Over, 'blocked_ns': Over, 'drain_ns': Over, 'saves_ns': Over, 'odd': Odd},
    Ranks: {'list': Rank, 'sites': RankSite, 'clocks': Clocks, 'late': Late},
    Site: {'evidence': Evidence, 'frames': Frame, 'user_frame': Frame, 'library_frame': Frame, 'caller': Frame, 'call_paths': CallPath, 'backward': Backward, 'operand': Operand, 'snippet': Snippet, 'thread': Thread, 'process': Process, 'copy': Copy, 'spread': Spread, 'start_up': StartUp, 'recoverable': Recoverable, 'fix': Fix, 'awaited': Awaited, 'examples': Example, 'proposal': Proposal, 'replayed': Replayed},
    Totals: {'by_class': ByClass, 'without_profiler': WithoutProfiler, 'captured': CapturedRun, 'iteration': IterationSaving, 'once': Once, 'gpu_time': GpuTime, 'replayed': Replayed},
}
