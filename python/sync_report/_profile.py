"""Traces of PyTorch's profiler, which needs no nsys."""
from __future__ import annotations

import contextlib
import gzip
import json
import mmap
import os
import re
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any, BinaryIO, Dict, Iterator, Optional, Sequence, Tuple, Union

from . import _capture
from ._binary import PathLike
from ._report import Report, report

#: The call of a Python function, up to the first of its arguments, as Kineto writes it.
CALL = re.compile(
    rb'"cat":\s*"python_function",\s*"name":\s*("(?:[^"\\]|\\.)*"),\s*"pid":[^{]*?"ts":\s*(\d+)\.(\d{3}),[^{]*?"args":\s*\{\s*(?=")'
)
BASE = re.compile(rb'"baseTimeNanoseconds":\s*(\d+)')


class ProfiledSteps(_capture.Steps):
    """The steps of a loop, as `profile` gives them.

    >>> import sync_report
    >>> with sync_report.profile(skip=1) as steps:
    ...     with steps.step():
    ...         pass
    >>> steps.count, steps.trace, steps.light
    (1, None, None)
    """

    def __init__(self, cuda: Any, skip: int, steps: int, name: str, path: PathLike, light: bool) -> None:
        super().__init__(cuda, skip, steps, name)
        self._path, self._wants_light = Path(path), light
        self._range = contextlib.ExitStack()
        self._profiler: Any = None
        self._error: Optional[RuntimeError] = None
        #: The trace with stacks, once it is written.
        self.trace: Optional[Path] = None
        #: The trace without stacks, once it is written.
        self.light: Optional[Path] = None

    def report(self, source_root: Union[PathLike, Sequence[PathLike]] = (), options: Sequence[str] = ()) -> Report:
        """The report of the trace with stacks. The arguments are those of `sync_report.report`.

        >>> import sync_report
        >>> with sync_report.profile(skip=5) as steps:
        ...     for batch in steps(range(3)):
        ...         pass
        >>> try:
        ...     steps.report()
        ... except RuntimeError as error:
        ...     print(error)
        there is no trace: the loop ended after 3 steps, and 5 are skipped
        """
        if self.trace is not None:
            return report(self.trace, source_root=source_root, options=[*self._step_time(), *options])
        if self._cuda is None:
            why = "torch finds no CUDA GPU"
        elif self._error is not None:
            why = "the profiler failed"
        elif self._recording:
            why = "it is still being recorded"
        else:
            why = f"the loop ended after {self.count} steps, and {self._first} are skipped"
        raise RuntimeError(f"there is no trace: {why}") from self._error

    def _step_time(self) -> Sequence[str]:
        """The length of a step by the trace without stacks, which slow a program more than can be told."""
        length = report(self.light).totals.iteration if self.light is not None else None
        return () if length is None else ("--step-time", f"{length.ns}ns")

    def _start(self) -> None:
        self._profiler = start(stacks=self.trace is None)

    def _push(self, text: str) -> None:
        if self._recording:
            import torch

            self._range.enter_context(torch.profiler.record_function(text))

    def _pop(self) -> None:
        self._range.close()

    def _finish(self) -> None:
        profiler, self._profiler = self._profiler, None
        try:
            profiler.stop()
        except RuntimeError as error:
            # An error of the GPU surfaces again at the next call. Raised here, it would hide the exception that ended the loop.
            self._error = error
            return
        path = _of_rank(self._path)
        if self.trace is not None:
            self.light = write(profiler, _with(path, "light"))
            return
        self.trace = write(profiler, path)
        if self._wants_light and self.count == self._last:
            self._first, self._last = self.count, 2 * self.count - self._first


@contextlib.contextmanager
def profile(
    skip: int = 5, steps: int = 20, path: PathLike = "trace.json.gz", light: bool = True, name: str = "step"
) -> Iterator[ProfiledSteps]:
    """Records steps with PyTorch's profiler, and writes a trace that `sync_report.report` reads. Nothing of it needs nsys.

    The first ``skip`` steps (warm-up) are left out. The next ``steps`` steps are recorded with stacks and shapes, which slow the program.
    ``light`` records as many steps more without stacks and shapes, as a second trace beside the first: ``trace.light.json.gz``. Later
    steps run without the profiler. Each of several ranks writes its own files: ``trace.rank3.json.gz``.

    The bracket does nothing without a GPU, so it can stay in the program.

    >>> import sync_report
    >>> with sync_report.profile(skip=5, steps=20) as steps:
    ...     for batch in steps(range(3)):
    ...         pass  # the training step; then steps.report()
    >>> steps.count
    3
    """
    found = ProfiledSteps(_capture._gpu(), skip, steps, name, path, light)
    try:
        yield found
    finally:
        found.close()


def start(stacks: bool) -> Any:
    """PyTorch's profiler of CPU and GPU, running.

    >>> start.__name__
    'start'
    """
    import torch

    if torch.autograd._profiler_enabled():
        raise RuntimeError("PyTorch's profiler already runs, and cannot record twice at a time: end it first")
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError("the current stream captures a CUDA graph, and a capture permits no synchronisation: start before or after it")
    more: Dict[str, Any] = {}
    if stacks:
        more = {"with_stack": True, "record_shapes": True}
        with contextlib.suppress(AttributeError, TypeError):  # An old PyTorch has no such events.
            more["experimental_config"] = torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)
    activities = torch.profiler.ProfilerActivity
    torch.cuda.synchronize()  # The trace lacks earlier work, so no recorded line may wait for it.
    found = torch.profiler.profile(activities=[activities.CPU, activities.CUDA], **more)
    with warnings.catch_warnings():  # PyTorch warns that a second recording would clear the first.
        warnings.simplefilter("ignore")
        found.start()
    return found


def write(profiler: Any, path: Path) -> Path:
    """Writes the trace of a stopped profiler, packed where the name ends in ``.gz``. A reader never sees half a file.

    >>> write.__name__
    'write'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".sync-report-", dir=path.parent) as folder:
        raw, whole = Path(folder, "raw.json"), Path(folder, path.name)
        profiler.export_chrome_trace(str(raw))
        packed = gzip.open(whole, "wb", compresslevel=6) if path.suffix == ".gz" else open(whole, "wb")
        with raw.open("rb") as trace, packed as out:
            _add_lines(trace, _callers(profiler), out)
        os.replace(whole, path)
    return path


def _callers(profiler: Any) -> Dict[Tuple[int, str], str]:
    """The line that made a Python call, by the start and name of that call; none where the trace itself has the lines."""
    import torch

    found: Dict[Tuple[int, str], str] = {}
    if not profiler.with_stack or tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 14):
        return found
    events = list(profiler.profiler.kineto_results.experimental_event_tree())
    while events:
        event = events.pop()
        events.extend(event.children)
        caller = getattr(event.extra_fields, "caller", None)
        if caller is not None:
            found[event.start_time_ns, _portable(event.name)] = _portable(f"{caller.file_name}:{caller.line_number}")
    return found


def _portable(name: str) -> str:
    return name.replace("\\", "/")  # Kineto writes the paths of Windows so.


def _add_lines(trace: BinaryIO, callers: Dict[Tuple[int, str], str], out: Any) -> None:
    """Copies a trace and gives each Python call a ``CallFrom``, as PyTorch 2.14 does."""
    if callers:
        with mmap.mmap(trace.fileno(), 0, access=mmap.ACCESS_READ) as text:
            base = BASE.search(text)
            zero = int(base[1]) if base else 0
            for call in CALL.finditer(text):
                line = callers.get((zero + int(call[2]) * 1000 + int(call[3]), json.loads(call[1])))
                if line is not None:
                    out.write(trace.read(call.end() - trace.tell()))
                    out.write(f'"CallFrom": {json.dumps(line)}, '.encode())
    shutil.copyfileobj(trace, out)


def _with(path: Path, word: str) -> Path:
    """The name of a file with a word more.

    >>> _with(Path("runs/my.trace.json.gz"), "light").as_posix()
    'runs/my.trace.light.json.gz'
    """
    end = re.search(r"(\.json)?(\.gz)?$", path.name)
    assert end is not None
    return path.with_name(f"{path.name[: end.start()]}.{word}{end[0]}")


def _of_rank(path: Path) -> Path:
    from torch import distributed

    if distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1:
        return _with(path, f"rank{distributed.get_rank()}")
    return path
