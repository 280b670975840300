"""Brackets for the profiler: they choose the steps to record and mark where each begins."""
from __future__ import annotations

import contextlib
import functools
import weakref
from typing import Any, Iterable, Iterator, Literal, Optional, TypeVar

Item = TypeVar("Item")


class Steps:
    """The steps of a loop, as `capture` gives them. nsys records them; a subclass turns another profiler on and off.

    >>> from sync_report import capture
    >>> with capture() as steps:
    ...     for batch in steps(["a", "b"]):
    ...         pass
    >>> steps.count
    2
    """

    def __init__(self, cuda: Any, skip: int, steps: Optional[int], name: str) -> None:
        self._cuda = cuda
        self._first, self._last = skip, None if steps is None else skip + steps
        self._name = name
        self._inside = self._recording = False
        #: Steps that have ended.
        self.count = 0

    def __call__(self, loader: Iterable[Item]) -> Iterator[Item]:
        """Each item of a loader, with what the loop does to it as one step.

        >>> with capture(skip=1) as steps:
        ...     list(steps([1, 2, 3]))
        [1, 2, 3]
        """
        for item in loader:
            with self.step():
                yield item

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """One step, for loops that have no loader.

        >>> with capture() as steps:
        ...     with steps.step():
        ...         pass
        """
        self.begin()
        try:
            yield
        finally:
            self.end()

    def begin(self) -> None:
        """Begins a step, for loops that belong to a library. It does nothing inside a step.

        >>> with capture() as steps:
        ...     steps.begin()
        ...     steps.end()
        """
        if self._inside:
            return
        self._inside = True
        if self._cuda is None:
            return
        if self.count == self._first:
            self._start()
            self._recording = True
        self._push(f"{self._name} {self.count}")

    def end(self) -> None:
        """Ends the step. It does nothing outside of a step.

        >>> with capture() as steps:
        ...     steps.end()
        >>> steps.count
        0
        """
        if not self._inside:
            return
        self._inside = False
        if self._cuda is not None:
            self._pop()
        self.count += 1
        if self.count == self._last:
            self._stop()

    def close(self) -> None:
        """Ends the step and the recording. No later step begins a second recording.

        >>> with capture() as steps:
        ...     steps.begin()
        ...     steps.close()
        >>> steps.count
        1
        """
        self.end()
        self._stop()

    def _stop(self) -> None:
        if self._recording:
            self._recording = False
            self._finish()

    def _start(self) -> None:
        self._cuda.profiler.start()

    def _push(self, text: str) -> None:
        self._cuda.nvtx.range_push(text)

    def _pop(self) -> None:
        self._cuda.nvtx.range_pop()

    def _finish(self) -> None:
        # The capture includes the work that the last steps launched. The report knows this wait as the end of a capture.
        # An error of the GPU surfaces again at the next call. Here it would hide the exception that ended the loop.
        with contextlib.suppress(RuntimeError):
            self._cuda.synchronize()
        with contextlib.suppress(RuntimeError):
            self._cuda.profiler.stop()


@contextlib.contextmanager
def capture(skip: int = 0, steps: Optional[int] = None, name: str = "step") -> Iterator[Steps]:
    """Brackets what nsys is to record (``--capture-range=cudaProfilerApi``), and marks each step by an NVTX range.

    The first ``skip`` steps (warm-up) are left out, ``steps`` of them recorded; without ``steps``, all until the end of
    the block. The bracket does nothing without a GPU, so it can stay in the program.

    >>> from sync_report import capture
    >>> with capture(skip=3, steps=20) as steps:
    ...     for batch in steps(range(30)):
    ...         pass  # the training step
    >>> steps.count
    30
    """
    found = Steps(_gpu(), skip, steps, name)
    try:
        yield found
    finally:
        found.close()


def _gpu() -> Any:
    import torch

    return torch.cuda if torch.cuda.is_available() else None


class Bracket:
    """A bracket around the steps of a library's trainer, for nsys or for PyTorch's profiler.

    The arguments are those of `capture`. ``profiler="torch"`` also takes ``path`` and ``light`` of `sync_report.profile`, and records
    20 steps unless ``steps`` says another number.

    >>> bracket = Bracket(skip=5, steps=20)
    >>> bracket._steps.begin()
    >>> bracket._steps.close()
    """

    def __init__(
        self,
        skip: int = 0,
        steps: Optional[int] = None,
        name: str = "step",
        profiler: Literal["nsys", "torch"] = "nsys",
        path: str = "trace.json.gz",
        light: bool = True,
    ) -> None:
        super().__init__()
        if profiler not in ("nsys", "torch"):
            raise ValueError(f"there is no profiler {profiler!r}; there are 'nsys' and 'torch'")
        self._asked = skip, steps, name
        self._trace = (path, light) if profiler == "torch" else None

    @functools.cached_property
    def _steps(self) -> Steps:
        """The steps, made in the process that trains: a trainer may fork or spawn it after it got its callbacks."""
        skip, steps, name = self._asked
        if self._trace is None:
            found = Steps(_gpu(), skip, steps, name)
        else:
            from ._profile import ProfiledSteps

            found = ProfiledSteps(_gpu(), skip, 20 if steps is None else steps, name, *self._trace)
        # A trainer that ends by an exception may call no hook.
        weakref.finalize(self, found.close)
        return found
