"""What a program says to the profiler: which steps to record, and where each begins."""
from __future__ import annotations

import contextlib
from typing import Any, Iterable, Iterator, Optional, TypeVar

Item = TypeVar("Item")


class Steps:
    """The steps of a loop, as `capture` gives them.

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
        self._recording = False
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
        if self.count == self._first:
            self._start()
        if self._cuda is not None:
            self._cuda.nvtx.range_push(f"{self._name} {self.count}")
        try:
            yield
        finally:
            if self._cuda is not None:
                self._cuda.nvtx.range_pop()
            self.count += 1
            if self.count == self._last:
                self._stop()

    def _start(self) -> None:
        if self._cuda is not None and not self._recording:
            self._cuda.profiler.start()
            self._recording = True

    def _stop(self) -> None:
        if self._recording:
            # What the last steps launched belongs to the capture. The report knows this wait as one of its end.
            self._cuda.synchronize()
            self._cuda.profiler.stop()
            self._recording = False


@contextlib.contextmanager
def capture(skip: int = 0, steps: Optional[int] = None, name: str = "step") -> Iterator[Steps]:
    """Brackets what nsys is to record (``--capture-range=cudaProfilerApi``), and marks each step by an NVTX range.

    The first ``skip`` steps (warm-up) are left out, ``steps`` of them recorded; without ``steps``, all until the end of
    the block. Without a GPU it does nothing, so it can stay in the program.

    >>> from sync_report import capture
    >>> with capture(skip=3, steps=20) as steps:
    ...     for batch in steps(range(30)):
    ...         pass  # the training step
    >>> steps.count
    30
    """
    import torch

    cuda = torch.cuda if torch.cuda.is_available() else None
    found = Steps(cuda, skip, steps, name)
    try:
        yield found
    finally:
        found._stop()
