"""Which lines of Python make the CPU wait for the GPU, which of those waits are avoidable, and what each costs.

>>> import sync_report
>>> report = sync_report.report("sample-profiles/train_mlp.sqlite", source_root="sample-profiles/programs")
>>> worst = next(site for site in report.sites if site.class_ == "false")
>>> worst.class_, worst.kind, worst.user_frame.line, worst.fix.title
('false', 'upload', 19, 'copy without blocking: t.cuda(non_blocking=True)')

The program itself is the command ``sync-report``, also as ``python -m sync_report``.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from . import model
from ._binary import SyncReportError, binary, run, version
from ._budget import BudgetExceeded, budget
from ._capture import Steps, capture
from ._commands import check, diff, doctor, explain, fix
from ._page import Page, open_html
from ._profile import ProfiledSteps, profile
from ._report import DamagedExportWarning, Report, Tables, report


__version__: str

if not TYPE_CHECKING:  # A checker would take every name for an attribute.

    def __getattr__(name: str) -> str:
        """`__version__`, looked up at its first use."""
        if name == "__version__":
            return version()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "BudgetExceeded",
    "DamagedExportWarning",
    "Page",
    "ProfiledSteps",
    "Report",
    "Steps",
    "SyncReportError",
    "Tables",
    "__version__",
    "binary",
    "budget",
    "capture",
    "check",
    "diff",
    "doctor",
    "explain",
    "fix",
    "model",
    "open_html",
    "profile",
    "report",
    "run",
]
