"""What a report holds, as classes. Made by scripts/generate.py from the JSON Schema of the report: change the Rust
structs in src/model instead.

Times are integer nanoseconds of the capture's clock, and their names end in ``_ns``.
"""
# fmt: off
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Literal, Optional, Sequence

ApiFamily = Literal["host-allocation", "device-allocation", "module-loading"]
"""Work of an API call that takes host time without waiting."""


Attribution = Literal["python-backtrace", "python-found", "python-function", "python-sample", "backward",
    "native", "nvtx", "none"]
"""Method that attributed a wait to its line, best first."""


Backtraces = Literal["python", "native", "sampled", "none"]
"""Recorded origin of waits, which also determines how much the profiler slowed the host."""


BoundBy = Literal["host", "gpu"]
"""Bottleneck of a run."""


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
"""Effect of an edit."""


GraphBreak = Literal["allocation", "pageable-copy", "cpu-tensor", "query", "other-stream", "callback"]
"""Cause, other than a wait, that keeps work from being captured as a CUDA graph. Tried on an H200 with CUDA 13 and
PyTorch 2.11 in all capture modes: only the relaxed one permits allocations and event queries.
"""


HostMemory = Literal["pageable", "pinned", "managed", "unknown"]
"""Kind of host memory that a copy reads or writes."""


Kind = Literal["explicit", "redundant", "idle", "upload", "debug-print", "logging", "error-check", "allocator",
    "round-trip", "host-known", "timing", "control-flow", "dynamic-shape", "cpu-compute", "barrier",
    "value-read", "unattributed"]
"""Reason for a wait's class."""


NamedBy = Literal["name", "environment", "communicator", "order"]
"""Source of a rank's number."""


Per = Literal["iteration", "run"]
"""Base of amounts: an iteration or the whole run."""


Recorder = Literal["nsys", "torch.profiler"]
"""The profiler that made a capture."""


Refusal = Literal["no-source", "stale", "library", "inexact", "needed", "open", "no-edit", "form", "several",
    "disputed", "overlap", "syntax", "outside", "encoding", "direction", "pageable", "joined", "reused",
    "streams", "devices", "in-flight", "barrier", "tried", "wrapper", "foreign", "measured", "alike",
    "advanced", "numbers", "reads", "on-cpu", "clock", "destination", "float64", "random"]
"""Reason why a wait gets no edit, or an unsafe one."""


RuleId = Literal["R01", "R02", "R03", "R04", "R05", "R06", "R08", "R09", "R10", "R11", "R12", "R13", "R14",
    "R15", "R16", "R17", "R18", "R19", "R20", "R21", "R22", "R23", "R24", "R25", "R26", "S01", "S02", "S03",
    "S04", "S05", "S06", "S07", "S08", "S09", "S10", "S11", "S12", "S14", "S15", "S16", "S17", "S18", "S19",
    "S20", "S21", "S22", "S23", "S24", "X4", "X5", "X6", "X11", "X12", "undecided", "unsure", "source",
    "sampled", "thread", "device", "collective", "other"]
"""A rule of evidence: `R` reads the trace, `S` the Python source, `X` only leans. Words are remarks."""


Safety = Literal["safe", "unsafe"]
"""Whether an edit may change what the program computes or shows."""


Sample = Literal["iteration", "wait"]
"""Kind of sample of a site's costs."""


Strategy = Literal["remove it", "make the copy asynchronous", "use a form that does not wait",
    "fill it on the GPU", "wait later or less often", "join several waits into one", "move the work elsewhere",
    "keep it out of the measured region", "leave it"]
"""Ways to get rid of a wait, in the order in which to try them."""


ThreadRole = Literal["python", "autograd", "library", "unknown"]
"""Role of the thread that waited."""


@dataclass(frozen=True)
class Report:
    """Findings of one run of the program, over all exports given."""

    schema_version: int
    """Version of this tree's layout: fields may be added, never renamed."""
    tool: Tool
    """The program that wrote the report."""
    profiles: List[ProfileInfo]
    """The exports, in the order given."""
    totals: Totals
    """Sums over all sites, listed or not."""
    iterations: Optional[Iterations]
    """The program's loop; null where none is known."""
    sites: List[Site]
    """Sites, ranked as `--sort` says. `--top` may cut the list; `sites_omitted` counts the rest."""
    together: List[Together]
    """Sets of sites that save more together than alone."""
    sites_omitted: int
    """Number of sites that `--top` cut from `sites`."""
    waits_filtered_out: int
    """Waits that the filters left out of `sites` and `totals`."""
    warnings: List[Warning]
    """Limits of the report."""
    graph_breaks: Optional[List[Breaks]]
    """Causes besides waits that keep the range of `--graph-ready` from being captured as a CUDA graph."""
    ranks: Optional[Ranks]
    """The report over ranks; absent for fewer than two. `sites` lists each rank's own sites."""


@dataclass(frozen=True)
class Awaited:
    """Work that a site's waits waited for, summed over the waits. Times are host time."""

    streams: List[AwaitedStream]
    """Streams with pending work, the longest first; eight at most."""
    streams_left_out: int
    """Number of further streams."""
    operations: List[AwaitedOperation]
    """Operations that held the host, each queued behind the one before; the longest first, eight at most."""
    operations_left_out: int
    """Number of further kinds of operation."""
    idle_ns: int
    """Blocked time in which no awaited operation ran: empty waits, gaps, the return to the host."""
    narrow: Optional[Narrow]
    """A smaller wait that would suffice; null where the trace shows none."""
    idle_gpu: Optional[IdleGpu]
    """Waits for a GPU without work while another GPU worked; null where there are none."""
    collectives: Optional[BehindCollectives]
    """Blocked time behind collectives; null where there is none."""


@dataclass(frozen=True)
class AwaitedOperation:
    """An operation that ran while waits blocked."""

    name: str
    """Name of the kernel, or `[memcpy]`, `[memset]`, `[graph]`."""
    device: int
    """Number of the operation's GPU."""
    stream: int
    """CUPTI stream id."""
    count: int
    """Number of such operations."""
    blocked_ns: int
    """Blocked time while these operations ran."""


@dataclass(frozen=True)
class AwaitedStream:
    """A stream that waits waited for."""

    device: int
    """Number of the stream's GPU."""
    stream: int
    """CUPTI stream id."""
    waits: int
    """Waits that found pending work on the stream."""
    pending_ns: int
    """Blocked time until the stream's work was done."""
    only_ns: int
    """Part of `pending_ns` after all other streams were done: a wait without this stream is so much shorter."""
    read: int
    """Waits that complete a D2H copy on the stream. At 0, these waits read nothing from the stream."""


@dataclass(frozen=True)
class Backward:
    """Origin of a wait on autograd's thread."""

    node: Optional[str]
    """Node of the autograd graph, e.g. "IndexBackward0"; null where unknown."""
    forward: Optional[Frame]
    """Forward line whose operator the node differentiates; null without sequence numbers."""


@dataclass(frozen=True)
class BehindCollectives:
    """Blocked time behind collectives (NCCL kernels)."""

    name: str
    """Name of the collective kernel that held the waits longest."""
    blocked_ns: int
    """Blocked time during which collectives ran."""
    met_ns: int
    """Part of `blocked_ns` in collectives whose other ranks the capture holds too."""
    late_ns: int
    """Part of `met_ns` until the last rank arrived. No fix of this site saves that time."""
    late: List[LateRank]
    """Ranks that arrived last, the longest awaited first; eight at most."""


@dataclass(frozen=True)
class Block:
    """Whole lines that replace others."""

    first: int
    """First replaced line, from 1."""
    last: int
    """Last replaced line."""
    text: str
    """The new lines, each with its line end; empty for a deletion."""


@dataclass(frozen=True)
class BlockedTime:
    """GPU idle time in which one function blocked the CPU."""

    call: Optional[str]
    """Function of the system's library; null where only scheduler events show the thread off its CPU."""
    at: Optional[str]
    """Place of most of this time: the Python line ("train.py:12"), else the NVTX range ("range load"), else null."""
    ns: int
    """GPU idle time."""


@dataclass(frozen=True)
class Breaks:
    """Calls of one line, other than waits, that keep a range from being captured as a CUDA graph."""

    kind: GraphBreak
    """The cause."""
    api: str
    """Name of the CUDA function."""
    calls: int
    """Number of calls."""
    user_frame: Optional[Frame]
    """The user's line; null without a backtrace."""
    fix: str
    """The advice."""


@dataclass(frozen=True)
class ByClass:
    """Totals of each class."""

    false: ClassTotals
    """Avoidable waits."""
    true: ClassTotals
    """Needed waits."""
    unknown: ClassTotals
    """Undecided waits."""


@dataclass(frozen=True)
class CallPath:
    """A call path to a site's line."""

    callers: List[Frame]
    """The user's frames outside the site's line, nearest first."""
    waits: int
    """Waits on this path."""
    blocked_ns: int
    """Host time inside the waits."""
    drain_ns: int
    """GPU idle time after the waits."""
    library: Optional[List[Frame]]
    """The library's frames between `library_frame` and `user_frame`, nearest to the wait first."""


@dataclass(frozen=True)
class CapturedRun:
    """The captured run as simulated, and the saving of fixing every avoidable site."""

    run_ns: int
    """Length of the run."""
    saved_ns: int
    """Saving of fixing every avoidable site."""


@dataclass(frozen=True)
class ClassTotals:
    """Totals of one class."""

    waits: int
    """Number of waits."""
    sites: int
    """Number of sites."""
    blocked_ns: int
    """Host time inside the waits."""
    drain_ns: int
    """GPU idle time after the waits."""
    recoverable_ns: Optional[int]
    """Simulated saving of fixing every avoidable site; null in other classes, with `--fix`, or without a
    simulation.
    """


@dataclass(frozen=True)
class Clocks:
    """Alignment of the exports' clocks."""

    by_collectives: int
    """Exports aligned by collectives, which end on all ranks at once."""
    by_start: int
    """Exports aligned only by the start of their session, as exactly as the machines' clocks agree."""
    residual_ns: Optional[int]
    """90th percentile of the distance between ends of aligned collectives, on the worst export."""


@dataclass(frozen=True)
class Copy:
    """The copy that a wait completes."""

    direction: Direction
    """Direction of the copy."""
    bytes: int
    """Size in bytes."""
    host_memory: HostMemory
    """Kind of host memory."""


@dataclass(frozen=True)
class CopyTime:
    """GPU time in copies of one kind."""

    direction: Direction
    """Direction of the copies."""
    host_memory: HostMemory
    """Kind of host memory."""
    ns: int
    """GPU time of the copies."""


@dataclass(frozen=True)
class Edit:
    """An edit of one file that removes a wait."""

    kind: EditKind
    """Effect of the edit."""
    safety: Safety
    """Whether the edit may change what the program computes or shows."""
    mind: Optional[Refusal]
    """Reason why the edit is unsafe; null where it is safe."""
    replacements: List[Replacement]
    """Replaced parts, ascending and disjoint."""
    blocks: List[Block]
    """The edit as whole lines, for reviews: ascending, none adjacent to another."""
    lines: Optional[List[int]]
    """Lines whose waits the edit joins; absent for an edit of one line. The edit is made only if each line has a
    site with this edit.
    """


@dataclass(frozen=True)
class Evidence:
    """One reason for a verdict, in words."""

    rule: RuleId
    """The rule that gives the reason."""
    text: str
    """The reason as a sentence, with the site's own numbers."""
    case: Optional[str]
    """Case of the rule, as `explain RULE` lists it; absent from remarks."""


@dataclass(frozen=True)
class Example:
    """One wait of a site."""

    start_ns: int
    """Start on the export's clock, as the nsys GUI shows it."""
    end_ns: int
    """End on the same clock."""
    blocked_ns: int
    """Host time inside the wait."""
    drain_ns: int
    """GPU idle time after the wait."""
    awaited: Optional[str]
    """The awaited operation that ended last, e.g. "ampere_sgemm_128x64_tn on stream 7"; null where unknown."""


@dataclass(frozen=True)
class Fix:
    """Advice for a site."""

    order: int
    """Place of the strategy in the order in which to try them, from 1."""
    strategy: Strategy
    """Strategy of the fix."""
    title: str
    """The advice in a few words."""
    why: str
    """Why the CPU waits."""
    before: str
    """Typical code with the wait; may be empty."""
    after: str
    """The same code without the wait."""
    caveat: str
    """Risks of the change; empty where there are none."""
    alternatives: List[str]
    """Other ways, for where the first does not fit."""
    here: Optional[Rewrite]
    """The site's own expression rewritten without the wait; null where not proven right."""
    confirm: str
    """Commands that show whether the wait is gone; empty where the advice is to leave it."""


@dataclass(frozen=True)
class Frame:
    """A Python frame."""

    function: str
    """Function or method."""
    file: str
    """Path of the file, as recorded."""
    line: int
    """Line number, from 1; 0 where not known."""
    user: bool
    """Whether the code lies outside the standard library, PyTorch and installed packages."""


@dataclass(frozen=True)
class Gpu:
    """A GPU of an export."""

    id: int
    """Number of the GPU, as `device` fields use it."""
    name: Optional[str]
    """Product name; null where not recorded."""
    span_ns: int
    """Time from the GPU's first operation to its last."""
    busy_ns: int
    """Time in which at least one operation ran, graph launches included."""
    idle_ns: int
    """`span_ns` less `busy_ns`."""
    drain_ns: int
    """Part of `idle_ns` that follows a wait."""
    time: GpuTime
    """`span_ns` by kind of work."""


@dataclass(frozen=True)
class GpuTime:
    """GPU time in parts that do not overlap and that add up to the whole. A moment with several kinds of work
    counts for the first of them in this order. `idle_blocked_ns` and `blocked_in` divide `idle_otherwise_ns`.
    """

    kernels_ns: int
    """Kernels and graph launches, without collectives."""
    collectives_ns: int
    """NCCL kernels."""
    copies: List[CopyTime]
    """Copies, by direction and host memory."""
    memsets_ns: int
    """Memsets."""
    idle_after_waits_ns: int
    """Idle time after the waits of this report."""
    idle_otherwise_ns: int
    """Other idle time: the CPU had launched nothing."""
    idle_blocked_ns: Optional[int]
    """Part of `idle_otherwise_ns` in which no thread could launch: each was blocked outside CUDA, in locks, files,
    sleeps or off its CPU. Null where the capture holds neither operating-system calls nor scheduler events.
    """
    blocked_in: List[BlockedTime]
    """`idle_blocked_ns` by the function that blocked the thread which continued first, the longest first."""


@dataclass(frozen=True)
class HostCalls:
    """Calls of one family on the thread where they take longest. Times of several threads may overlap."""

    family: ApiFamily
    """Kind of work of the calls."""
    api: str
    """Name of the function that takes most of the time."""
    pid: int
    """Id of the calling process."""
    tid: int
    """Id of the calling thread."""
    calls: int
    """Number of calls, without nested ones."""
    ns: int
    """Host time inside the calls, without waits."""
    start_up_ns: int
    """Part of `ns` before the loop or in its first iterations; without a loop, before the first kernel."""
    first_call_ns: int
    """Part of `ns` in the process's first CUDA call, which also creates the context."""


@dataclass(frozen=True)
class IdleGpu:
    """Waits for a GPU without work while another GPU worked."""

    waits: int
    """Number of these waits."""
    gpus: List[int]
    """Numbers of the GPUs waited for, as far as recorded."""
    busy: List[int]
    """Numbers of the process's GPUs that worked meanwhile."""


@dataclass(frozen=True)
class IterationSaving:
    """One iteration, from start to start, and the saving of fixing every avoidable site."""

    ns: int
    """Estimated length without the profiler."""
    saved_ns: int
    """Part of `ns` saved."""
    low_ns: int
    """Lower end of the range of `saved_ns`."""
    high_ns: int
    """Upper end of the range of `saved_ns`."""
    rewritable_ns: int
    """Further saving by rewriting needed sites, as `Totals::rewritable_ns`."""
    undecided_ns: int
    """Further saving by undecided sites, as `Totals::undecided_ns`."""
    captured_ns: int
    """Length as captured."""
    captured_saved_ns: int
    """Part of `captured_ns` saved."""


@dataclass(frozen=True)
class Iterations:
    """Iterations of the program's loop."""

    profile: int
    """Index in `profiles` of the export with this loop. Of several exports, the one with the longest iterations
    counts: the others wait for it.
    """
    source: str
    """Sign by which iterations were recognised, e.g. "NVTX ranges `iteration #`" or "repeating launches"."""
    confidence: Optional[float]
    """Share of the loop's launches, copies and waits that every iteration has, 0 to 1; null where NVTX ranges mark
    the iterations.
    """
    count: int
    """Number of iterations, without start-up."""
    start_up: int
    """Leading iterations left out as start-up."""
    median_ns: int
    """Median length of an iteration."""
    mean_ns: int
    """Mean length of an iteration."""
    start_to_start_ns: int
    """Mean time from the start of one iteration to the start of the next; 0 for a single iteration. Longer than
    the median where some iterations are longer or other work lies between them.
    """
    quartiles_ns: List[int]
    """Lower quartile, median and upper quartile of the iterations' lengths."""
    gpu_busy_ns: int
    """Mean GPU busy time of an iteration, summed over the export's GPUs."""
    gpu_time: GpuTime
    """GPU time of the whole loop by kind of work, as captured."""
    busiest_stream_ns: int
    """Mean kernel time of an iteration on the busiest stream. No fix makes an iteration shorter."""
    waits_per_iteration: float
    """Waits inside iterations, divided by the iterations of all processes that share the loop."""


@dataclass(frozen=True)
class Late:
    """A rank that comes late to a kind of collective."""

    rank: int
    """Number of the late rank."""
    collective: str
    """Name of the collective kernel."""
    communicator: Optional[str]
    """Hash of the communicator in hexadecimal; null where not recorded."""
    among: int
    """Number of ranks that meet: the communicator's members, else all."""
    times: int
    """Number of times the rank came last by more than the clocks' error."""
    of: int
    """Number of times all these ranks met."""
    late_p50_ns: int
    """Median delay after the rank before."""
    late_max_ns: int
    """Longest delay."""
    late_ns: int
    """Sum of the delays."""
    cost_ns: int
    """Time that the other ranks' kernels waited for the late rank, summed over these ranks."""
    per_iteration_ns: Optional[int]
    """Mean delay per iteration, without start-up; null unless all ranks have a loop."""
    waiting_per_iteration_ns: Optional[int]
    """Part of `per_iteration_ns` in the late rank's own waits."""
    spent: Spent
    """`late_ns` by the late rank's activity."""
    wait: Optional[LateWait]
    """The wait that most often made the rank late; null where none ended within a delay."""


@dataclass(frozen=True)
class LateRank:
    """A rank that others waited for."""

    process: Process
    """Process of the rank."""
    device: int
    """Number of the GPU that ran the rank's collectives."""
    late_ns: int
    """Blocked time until the rank arrived."""


@dataclass(frozen=True)
class LateWait:
    """A wait that ended just before a late rank launched its collective."""

    key: str
    """Key of the wait's site."""
    id: Optional[str]
    """Id of the site over ranks; null where that site is not listed."""
    place: str
    """Place of the wait, else its key."""
    times: int
    """Number of delays with this wait."""


@dataclass(frozen=True)
class Member:
    """Rank of a process in its largest NCCL communicator."""

    pid: int
    """Process id."""
    communicator: str
    """Hash of the communicator in hexadecimal, the same on all its ranks."""
    ranks: int
    """Number of ranks in the communicator."""
    rank: int
    """Rank of the process, from 0."""


@dataclass(frozen=True)
class Narrow:
    """A smaller wait that would suffice."""

    waits: int
    """Waits for which a smaller one is known."""
    copies: int
    """Part of `waits` that needs only its D2H copy. Others need only the stream last launched to by their thread."""
    streams: List[int]
    """CUPTI ids of the streams that suffice; eight at most."""
    shorter_ns: int
    """Blocked time that the smaller waits would save in all."""


@dataclass(frozen=True)
class Odd:
    """A rank that a site blocks far longer than the others."""

    rank: int
    """Number of the rank."""
    blocked_ns: int
    """Blocked time on the rank."""


@dataclass(frozen=True)
class Once:
    """Waits paid once: outside the program's loop, or before the first kernel or after the last."""

    sites: int
    """Number of sites that wait only once."""
    blocked_ns: int
    """Host time inside the waits, summed over threads."""
    after_loop_sites: int
    """Part of `sites` after the loop: `Site::after_loop`."""
    after_loop_blocked_ns: int
    """Part of `blocked_ns` after the loop."""


@dataclass(frozen=True)
class Operand:
    """The tensor that is copied or read."""

    dtype: Optional[str]
    """`torch.dtype` of the tensor, without "torch."; null where unknown."""
    sizes: List[int]
    """Sizes of the tensor; empty for a single number."""
    non_blocking: Optional[bool]
    """`non_blocking` of the copy; null where unknown."""


@dataclass(frozen=True)
class Over:
    """Distribution of a value over ranks. Quantiles are values that occur, by nearest rank."""

    p10: int
    """10th percentile."""
    p50: int
    """Median; of two ranks the larger."""
    p90: int
    """90th percentile."""
    max: int
    """Largest value."""
    max_rank: int
    """First rank with the largest value."""


@dataclass(frozen=True)
class Process:
    """A process of an export."""

    pid: int
    """Process id."""
    name: Optional[str]
    """Name of the program; null where not recorded."""
    profile: int
    """Index in `profiles` of the process's export."""


@dataclass(frozen=True)
class ProfileInfo:
    """One export."""

    path: str
    """Path of the export, as given."""
    recorder: Recorder
    """The profiler that made the capture."""
    export_version: Optional[str]
    """Version of the nsys that wrote the export, e.g. "2025.3.2.0"; null before 2022."""
    schema: Optional[str]
    """Version of the export's own schema, e.g. "3.20.3"."""
    started_utc_ns: Optional[int]
    """Time 0 of the export's clock, in ns since 1970 (UTC), to align several machines; null before 2022."""
    host: Optional[str]
    """Name of the machine; null where not recorded."""
    iterations: int
    """Iterations of the loop, without start-up; 0 where no loop is known."""
    start_up: int
    """Leading iterations left out as start-up."""
    iteration_ns: Optional[int]
    """Median length of an iteration."""
    rank: Optional[int]
    """Rank that the program's environment names; null where not recorded."""
    members: List[Member]
    """Ranks of the processes, where NCCL recorded them."""
    span_ns: int
    """Time from the first CUDA call or GPU operation to the last."""
    gpus: List[Gpu]
    """GPUs with operations in the capture."""
    processes: List[Process]
    """Processes that called CUDA."""
    command: Optional[str]
    """The profiled command line, as far as the export holds it."""
    backtraces: Backtraces
    """Recorded origin of waits, which also determines how much the profiler slowed the host: "python" (backtraces
    with Python frames), "native" (without), "sampled" (Python samples), "none".
    """
    slowed: bool
    """Whether launches carry backtraces too, which slows the captured host several times."""
    launch_ns: Optional[int]
    """Host time of a kernel launch under this profiler, lower quartile; null for few launches."""
    host_calls: List[HostCalls]
    """Host time of allocations and module loading, which are no waits: one row for each family of calls."""


@dataclass(frozen=True)
class Proposal:
    """Proposed change of a site's source, in the file of the site's user frame."""

    expression: str
    """The expression that waits; empty where none was found."""


@dataclass(frozen=True)
class Rank:
    """One process of a program that runs in many."""

    rank: int
    """Number of the rank, unique in the report."""
    named_by: NamedBy
    """Source of the number."""
    profile: str
    """Path of the rank's export, as given."""
    pid: int
    """Process id."""
    host: Optional[str]
    """Name of the machine; null where not recorded."""
    iterations: int
    """Iterations of the loop, without start-up; 0 where no loop is known."""
    start_up: int
    """Leading iterations left out as start-up."""
    iteration_ns: Optional[int]
    """Median length of an iteration."""
    span_ns: int
    """Time from the export's first CUDA call or GPU operation to the last."""
    waits: int
    """Number of waits."""
    blocked_ns: int
    """Host time inside the waits."""
    drain_ns: int
    """GPU idle time after the waits."""
    clock_ns: Optional[int]
    """Offset added to the export's times to put them on the first rank's clock; null where unknown."""


@dataclass(frozen=True)
class RankSite:
    """A site over all ranks. A rank without the site counts as 0."""

    id: str
    """Id of the rank's site that blocks longest; a number of its own in a merged report."""
    key: str
    """Key of the site, the same on every rank."""
    class_: Class
    """Class on the rank that the site blocks longest."""
    kind: Kind
    """Reason for the class, as a word."""
    confidence: float
    """Confidence in the class, 0 to 1."""
    disputed: bool
    """Whether other ranks have another class."""
    place: str
    """Line and function, or the best substitute."""
    api: str
    """Runtime or driver name without its version suffix."""
    fix: Optional[str]
    """Title of the advice; null where there is none."""
    once: bool
    """Whether every rank with the site pays it once per process."""
    per: Per
    """Base of the times: an iteration of each rank if the site waits in iterations, else the run."""
    saves_at_most: bool
    """Whether some rank's saving is only an upper bound."""
    late_rank: Optional[int]
    """The late rank that most of this waiting is for, which no change of this site saves; else null."""
    ranks: int
    """Number of ranks with the site."""
    waits: Over
    """Waits per run."""
    blocked_ns: Over
    """Host time inside the waits."""
    blocked_p99_ns: int
    """99th percentile of the blocked time of single waits, on the rank where it is longest."""
    drain_ns: Over
    """GPU idle time after the waits."""
    saves_ns: Over
    """Saving of fixing the site; an upper bound where no more is known."""
    odd: List[Odd]
    """Ranks that the site blocks far longer than the others, the longest first."""
    blocked_by_rank_ns: List[int]
    """Blocked time on each rank, in the order of `list`."""


@dataclass(frozen=True)
class Ranks:
    """The ranks of a program, over all exports given."""

    per: Per
    """Base of amounts: an average "iteration" of each rank if all have a loop, else the "run"."""
    list: List[Rank]
    """The ranks, ascending."""
    missing: List[int]
    """Rank numbers between the first and the last that no export has."""
    sites: List[RankSite]
    """Sites over ranks: recurring before paid once, then avoidable, undecided, needed, then by saving."""
    sites_omitted: int
    """Number of sites that `--top` cut from `sites`."""
    clocks: Optional[Clocks]
    """Alignment of the exports' clocks; null where one export holds all ranks."""
    met: int
    """Number of collectives found on all ranks of their group."""
    alone: int
    """Number of collectives not found on all ranks of their group."""
    late: List[Late]
    """Late ranks by collective, the costliest for other ranks first."""


@dataclass(frozen=True)
class Recoverable:
    """Saving of fixing a site, in the whole run."""

    alone_ns: int
    """Saving with only this site fixed; 0 where nothing was simulated."""
    joint_ns: int
    """The site's share of the saving with every avoidable site fixed."""
    low_ns: int
    """Lower end of the range of `alone_ns`; 0 where nothing was simulated."""
    high_ns: int
    """Upper end of the range of `alone_ns`. Without a simulation: blocked time, and what goes with the calls and
    copies.
    """
    per_iteration_ns: Optional[int]
    """Saving per iteration with only this site fixed; null outside iterations or without a simulation."""
    per_iteration_high_ns: Optional[int]
    """`high_ns` divided by iterations; null outside iterations."""
    percent: float
    """`alone_ns` in percent of the run without the profiler."""
    change: Change
    """Change that was simulated: "delete", "gpu-wait", "narrow", "non-blocking", "pinned", "drop", "on-gpu",
    "delay", "coalesce", "keep".
    """
    simulated: bool
    """Whether the saving is simulated; else `alone_ns` is 0 and `high_ns` an upper bound."""
    moves_to: Optional[str]
    """Id of the site that takes over most of the waiting; null where none does."""
    chosen: Optional[bool]
    """Whether only `--fix` makes the site count as avoidable, not its verdict."""


@dataclass(frozen=True)
class Replacement:
    """Replacement of a part of a file."""

    start: int
    """Offset of the first replaced byte."""
    end: int
    """Offset after the last replaced byte; equals `start` for an insertion."""
    text: str
    """The new text."""


@dataclass(frozen=True)
class Replayed:
    """Saving measured in a replay of one stretch of the capture."""

    gpu: str
    """Name of the replay's GPU."""
    stretch_ns: int
    """Length of the stretch with nothing fixed: the base of `saving_ns`."""
    saving_ns: int
    """Saving of the stretch, the median of the rounds."""
    saving_low_ns: int
    """Lower end of the range of `saving_ns`."""
    saving_high_ns: int
    """Upper end of the range of `saving_ns`."""
    percent: float
    """`saving_ns` in percent of `stretch_ns`."""
    predicted_ns: Optional[int]
    """Simulated saving of the stretch; null where not simulated."""


@dataclass(frozen=True)
class Rewrite:
    """An expression of the program and what to write instead."""

    before: str
    """The expression as written."""
    after: str
    """The expression without the wait."""


@dataclass(frozen=True)
class Site:
    """All waits that share API, Python stack (or the best substitute) and process role."""

    id: str
    """Id by the first wait among all sites of the capture: "S1" waits first."""
    key: str
    """Stable key across runs, unique within a process: file, function, line, API, kind, and a hash of the user's
    line, the library's line and the pattern. Ranks of one program share keys.
    """
    api: str
    """Runtime or driver name without its version suffix."""
    driver_api: DriverApi
    """The driver call behind the wait."""
    class_: Class
    """Whether the wait can go."""
    kind: Kind
    """Reason for the class, as a word."""
    confidence: float
    """Confidence in the class, 0 to 1."""
    pattern: Optional[str]
    """Id of the catalogue entry; null where none fits."""
    evidence: List[Evidence]
    """Reasons for the verdict, the deciding one first."""
    attribution: Attribution
    """Method that attributed the waits to their line."""
    attribution_note: str
    """Reliability of the attribution, e.g. "31 of 40 samples agree"; empty where exact."""
    frames: List[Frame]
    """Python frames, innermost first."""
    user_frame: Optional[Frame]
    """Innermost frame of the user's code; null where none is known."""
    library_frame: Optional[Frame]
    """The waiting line of a library that the user's line calls: one that the catalogue knows, else the innermost
    outside PyTorch and helpers, else the innermost. Null where the user's line names the call.
    """
    library: Optional[str]
    """Installed package of `library_frame`."""
    caller: Optional[Frame]
    """Nearest caller that distinguishes this site from another at the same user line; of the first path."""
    call_paths: List[CallPath]
    """Call paths to the user's line, the longest blocking first; empty for a single path (see `frames`)."""
    backward: Optional[Backward]
    """Origin of a wait on autograd's thread, whose user line calls `backward()`; null for other waits."""
    native: List[str]
    """C++ call chain, demangled, innermost first, without interpreter frames."""
    nvtx: List[str]
    """NVTX ranges around one of the waits, outermost first."""
    operand: Optional[Operand]
    """Tensor that one of the waits copies or reads; null where not recorded."""
    source: Optional[str]
    """Text of the user's line; null where the source was not at hand."""
    snippet: Optional[Snippet]
    """The user's line with the lines around it; null where the source was not at hand."""
    thread: Thread
    """The thread that waits."""
    process: Process
    """Process of the thread."""
    device: Optional[int]
    """Number of the GPU waited for; null where unknown, or several."""
    stream: Optional[int]
    """CUPTI stream id, where all waits share one; else null."""
    copy: Optional[Copy]
    """Copy that the waits complete, with the smallest size; null without copies."""
    copy_bytes_max: Optional[int]
    """Size of the largest copy in bytes; null where all sizes are equal."""
    waits: int
    """Number of waits."""
    per_iteration: Optional[float]
    """Waits inside iterations, divided by iterations; null without a loop."""
    blocked_per_iteration_ns: Optional[int]
    """Blocked time inside iterations, divided by iterations; null without a loop."""
    drain_per_iteration_ns: Optional[int]
    """GPU idle time after waits inside iterations, divided by iterations; null without a loop."""
    offset_ns: Optional[int]
    """Median time from an iteration's start to the wait's; null without waits inside iterations."""
    spread: Optional[Spread]
    """Variation of waits and costs within the capture; null where not asked for."""
    blocked_ns: int
    """Host time inside the waits."""
    blocked_p50_ns: int
    """Median blocked time of a wait."""
    blocked_p99_ns: int
    """99th percentile of the blocked time of a wait."""
    blocked_max_ns: int
    """Longest blocked time of a wait."""
    blocked_percent: float
    """`blocked_ns` in percent of the span of the waiting threads."""
    drain_ns: int
    """GPU idle time from the end of the awaited work to the next operation."""
    drain_p50_ns: int
    """Median GPU idle time after a wait."""
    drain_max_ns: int
    """Longest GPU idle time after a wait."""
    drain_percent: float
    """`drain_ns` in percent of the span of the GPUs waited for, or of all GPUs where unknown."""
    found_idle: int
    """Waits that found no pending work on the GPU."""
    start_up: Optional[StartUp]
    """Set where the site waits only before the loop or in its first iterations, a cost paid once."""
    once: bool
    """Whether the waits are paid once, and no part of the total saving: outside the loop, in its first tenth only,
    or a single wait of the allocator. Without a loop: before the first kernel or after the last, copies
    excepted.
    """
    after_loop: bool
    """Whether all waits come after the loop, as in a validation or a checkpoint: a longer run may repeat them."""
    blocks_capture: bool
    """Whether the wait would make a CUDA graph capture fail."""
    recoverable: Optional[Recoverable]
    """Saving of a fix; null where no savings were computed."""
    fix: Optional[Fix]
    """Advice; null where there is none."""
    histogram: List[Sequence[int]]
    """Blocked times in powers of two: (exclusive upper bound in ns, number of waits)."""
    awaited: Optional[Awaited]
    """Work that the waits waited for; null where not asked for."""
    examples: List[Example]
    """Waits to look at in the nsys GUI: the longest first, then the capture's first."""
    allowed: Optional[str]
    """Reason of the comment that allows the line to wait (`# sync-report: allow REASON`); absent without one. An
    allowed site is no finding.
    """
    proposal: Optional[Proposal]
    """Proposed source edit, or the reason for having none; absent without a user frame."""
    replayed: Optional[Replayed]
    """Measured saving in a replay on a GPU; absent without replay results."""


@dataclass(frozen=True)
class Snippet:
    """Lines of a source file."""

    first_line: int
    """Number of the first line, from 1."""
    lines: List[str]
    """Text of the lines, without line ends."""


@dataclass(frozen=True)
class Spent:
    """Delay of a late rank by its activity."""

    waiting_ns: int
    """Time blocked in the last wait before the collective's launch."""
    host_ns: int
    """Other host time before the launch."""
    gpu_ns: int
    """Time after the launch, while the GPU had other work."""


@dataclass(frozen=True)
class Spread:
    """Lower quartile, median and upper quartile of a site's samples, from which comparisons derive jitter."""

    per: Sample
    """Kind of sample: the sum over an "iteration" where the waits lie in iterations, else one "wait"."""
    samples: int
    """Number of samples: iterations with a wait of this site, or its waits."""
    waits: List[int]
    """Waits of a sample."""
    blocked_ns: List[int]
    """Blocked time of a sample."""
    drain_ns: List[int]
    """GPU idle time after the waits of a sample."""


@dataclass(frozen=True)
class StartUp:
    """Waits that happen only at start-up."""

    with_: int
    """Iterations with such waits; 0 where all come before the loop."""
    iterations: int
    """Number of iterations in the capture."""


@dataclass(frozen=True)
class Thread:
    """The thread of a site, or one of several alike."""

    tid: int
    """Thread id."""
    name: Optional[str]
    """Name of the thread; null where not recorded."""
    role: ThreadRole
    """Role of the thread."""
    main: bool
    """Whether the thread is the process's first; if that one made no call, the one with most calls."""
    count: int
    """Number of threads with waits of the site."""


@dataclass(frozen=True)
class Together:
    """Sites that save more together than alone: where one is fixed, another takes over its wait."""

    sites: List[str]
    """Ids of the sites, in the order of the report."""
    per_iteration: bool
    """Whether the times are per iteration; else per run."""
    saved_ns: int
    """Estimated saving of fixing all these sites, without the profiler."""
    low_ns: int
    """Lower end of the range of `saved_ns`."""
    high_ns: int
    """Upper end of the range of `saved_ns`."""
    alone_ns: List[int]
    """Saving of fixing each of `sites` alone."""


@dataclass(frozen=True)
class Tool:
    """The program that wrote a result."""

    name: str
    """Name of the program."""
    version: str
    """Version of the program."""


@dataclass(frozen=True)
class Totals:
    """Totals over all sites of the report."""

    waits: int
    """Waits that passed the filters."""
    sites: int
    """Number of sites. Sites of several ranks that share a key count once."""
    blocked_ns: int
    """Host time inside waits, summed over threads: not a saving."""
    gpu_busy_ns: int
    """GPU busy time, summed over the GPUs of all exports."""
    gpu_idle_ns: int
    """GPU idle time, summed over the GPUs of all exports."""
    drain_ns: int
    """GPU idle time after waits, summed over GPUs."""
    by_class: ByClass
    """Totals of each class."""
    recoverable_false_joint_ns: Optional[int]
    """Simulated saving of fixing every repeating avoidable site, in the run. Of several exports, the largest
    counts. Null where nothing was simulated.
    """
    recoverable_low_ns: Optional[int]
    """Lower end of the range of `recoverable_false_joint_ns`."""
    recoverable_high_ns: Optional[int]
    """Upper end of the range of `recoverable_false_joint_ns`."""
    recoverable_percent: Optional[float]
    """`recoverable_false_joint_ns` in percent of the run without the profiler."""
    bound_by: Optional[BoundBy]
    """Bottleneck once every avoidable site is fixed: "host" or "gpu"."""
    simulation_error: Optional[float]
    """Error of simulating the capture unchanged: |simulated − recorded| / recorded span. Above 0.1, there are
    bounds only.
    """
    usual_latency_error: Optional[float]
    """`simulation_error` with usual latencies between dependent events: a harder test of the dependencies."""
    sampled_iterations: Optional[int]
    """Number of evenly spread iterations simulated in place of all; null where all were."""
    range_scatter_ns: Optional[int]
    """Scatter of the capture's iterations, which widens the ranges at both ends; null without iterations."""
    collectives: int
    """Number of NCCL kernels, which wait for other processes. In simulations a kernel keeps its recorded length
    where the capture lacks those processes.
    """
    without_profiler: Optional[WithoutProfiler]
    """The run without the profiler, estimated: the base of the savings."""
    captured: Optional[CapturedRun]
    """The captured run, which the profiler slows."""
    iteration: Optional[IterationSaving]
    """Saving per iteration; null where no loop is known or nothing was simulated."""
    rewritable_ns: Optional[int]
    """Further saving of the run by rewriting needed sites that have a form without the wait."""
    undecided_ns: Optional[int]
    """Further saving of the run if all undecided sites are avoidable, after all other fixes."""
    rewritable_sites: int
    """Repeating needed sites with a form that does not wait, e.g. `torch.where` for an assignment by mask."""
    unread_sites: int
    """Repeating undecided sites whose Python line was not at hand."""
    avoidable_sites: int
    """Sites that a fix avoids, by verdict or `--fix`. Sites of several ranks that share a key count once."""
    repeating_false_sites: int
    """Sites of `recoverable_false_joint_ns`: avoidable or chosen by `--fix`, and not in `once`. Sites that share a
    key count once.
    """
    chosen_sites: int
    """Part of `repeating_false_sites` that only `--fix` makes count as avoidable."""
    savings_unknown: bool
    """Whether savings were not computed, because the export lacks data for them."""
    once: Once
    """Waits paid once in this capture: context creation, loading, tear-down, work after the loop."""
    gpu_time: GpuTime
    """GPU time by kind of work, without the profiler's estimated time. `iterations.gpu_time` and `gpus[].time` are
    as captured.
    """
    replayed: Optional[Replayed]
    """Measured saving of fixing every avoidable site in a replay on a GPU; absent without replay results."""


@dataclass(frozen=True)
class Warning:
    """A limit of the result, and its remedy."""

    code: str
    """Stable code of the warning. A kept report may hold codes of another version of the program."""
    message: str
    """The limit, as a sentence."""
    fix: str
    """Command or advice that mends the limit; empty where nothing does."""


@dataclass(frozen=True)
class WithoutProfiler:
    """The estimated run without the profiler, and the saving of fixing every avoidable site."""

    run_ns: int
    """Length of the run."""
    saved_ns: int
    """Saving of fixing every avoidable site."""
    low_ns: int
    """Lower end of the range of `saved_ns`."""
    high_ns: int
    """Upper end of the range of `saved_ns`."""


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
