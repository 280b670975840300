"""A budget of waits for a block of a program: a gate for tests."""
from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any, ContextManager, List, Optional, Sequence

from . import _capture, model
from ._profile import start, write
from ._report import VERDICTS, place, report


class BudgetExceeded(AssertionError):
    """A block waited for the GPU more often than its budget allows. The text lists the lines.

    >>> import sync_report
    >>> issubclass(sync_report.BudgetExceeded, AssertionError)
    True
    """


class _Budget(ContextManager[None]):
    def __init__(self, avoidable: Optional[int], waits: Optional[int], allow: Sequence[str]) -> None:
        self._limits = avoidable, waits
        self._allow = [allow] if isinstance(allow, str) else allow
        self._profiler: Any = None

    def __enter__(self) -> None:
        __tracebackhide__ = True
        if _capture._gpu() is not None:
            self._profiler = start(stacks=True)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        __tracebackhide__ = True
        profiler, self._profiler = self._profiler, None
        if profiler is None:
            return
        # An error of the GPU would hide the exception that ended the block.
        with contextlib.suppress(*[RuntimeError] if kind else []):
            profiler.stop()
        if kind:
            return
        with tempfile.TemporaryDirectory(prefix="sync-report-") as folder:
            sites = report(write(profiler, Path(folder, "trace.json"))).sites
        text = excess([site for site in sites if not self._allows(site)], *self._limits)
        if text:
            raise BudgetExceeded(text)

    def _allows(self, site: model.Site) -> bool:
        frame = site.user_frame
        names = [] if frame is None else [f"/{frame.file}", f"/{frame.file}:{frame.line}"]
        return any(name.endswith(f"/{allowed}") for allowed in self._allow for name in names)


def _place(site: model.Site) -> str:
    frame = site.library_frame
    inside = "" if frame is None else f" in {frame.file.rsplit('/', 1)[-1]}:{frame.line} {frame.function}".replace(":0 ", " ")
    return place(site) + inside


def excess(sites: Sequence[model.Site], avoidable: Optional[int], waits: Optional[int]) -> str:
    """The lines that wait more often than allowed, as a table; empty where none does.

    >>> import sync_report
    >>> sites = sync_report.report("sample-profiles/train_mlp.sqlite").sites
    >>> excess(sites, avoidable=200, waits=None)
    ''
    >>> print(excess(sites, avoidable=0, waits=200).splitlines()[0])
    90 avoidable waits; the budget allows 0
    """
    heads: List[str] = []
    offending: Sequence[model.Site] = []
    for of, limit, word in (
        ([site for site in sites if site.class_ == "false"], avoidable, "avoidable wait"),
        (sites, waits, "wait"),
    ):
        count = sum(site.waits for site in of)
        if limit is not None and count > limit:
            heads.append(f"{count} {word}{'s' * (count > 1)}; the budget allows {limit}")
            offending = of
    rows = [(_place(site), VERDICTS[site.class_], f"{site.waits}x", site.fix.title if site.fix else site.api) for site in offending]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    lines = ["  ".join([*map(str.ljust, row, widths), row[3]]) for row in rows]
    return "\n".join([*heads, *(f"  {line}" for line in lines)])


def budget(avoidable: Optional[int] = 0, waits: Optional[int] = None, allow: Sequence[str] = ()) -> ContextManager[None]:
    """Fails where a block waits for the GPU more often than allowed.

    ``avoidable``: the most waits at avoidable sites. ``waits``: the most waits in all. None is no limit. ``allow``: lines that do not
    count, as ``train.py:30`` or ``train.py``.

    PyTorch's profiler records the block, so it must not run already. Too many waits raise `BudgetExceeded`, which lists their lines.
    The block runs unchecked where there is no GPU; the fixture ``sync_budget`` for pytest skips the test there.

    >>> import sync_report
    >>> no_waits = sync_report.budget(avoidable=0, allow=["train.py:30"])  # with no_waits: train(batch)
    """
    return _Budget(avoidable, waits, allow)
