"""The program's other commands: what they print as JSON, as dictionaries."""
from __future__ import annotations

import json
from typing import Any, Dict, Sequence

from ._binary import PathLike, SyncReportError, run, sentence


def _tree(arguments: Sequence[PathLike]) -> Dict[str, Any]:
    ran = run([*arguments[:1], "--format", "json", *arguments[1:]])
    try:
        tree: Dict[str, Any] = json.loads(ran.stdout)
    except json.JSONDecodeError:
        raise SyncReportError(sentence(ran), ran.returncode) from None
    return tree


def diff(before: PathLike, after: PathLike, *, options: Sequence[str] = ()) -> Dict[str, Any]:
    """Compares two captures, site by site.

    >>> import sync_report
    >>> sample = "sample-profiles/train_mlp.sqlite"
    >>> {site["status"] for site in sync_report.diff(sample, sample)["sites"]}
    {'unchanged'}
    """
    return _tree(["diff", *options, "-q", "--", before, after])


def check(profile: PathLike, *more: PathLike, options: Sequence[str] = ()) -> Dict[str, Any]:
    """Checks captures against the rules in `options`: `passed` is the outcome.

    >>> import sync_report
    >>> sync_report.check("sample-profiles/train_mlp.sqlite", options=["--fail-on", "any-false"])["passed"]
    False
    """
    return _tree(["check", *options, "-q", "--", profile, *more])


def doctor(profile: PathLike, *more: PathLike) -> Dict[str, Any]:
    """Says whether captures are good enough, and which command makes better ones.

    >>> import sync_report
    >>> len(sync_report.doctor("sample-profiles/train_mlp.sqlite")["captures"])
    1
    """
    return _tree(["doctor", "-q", "--", profile, *more])


def explain(name: str) -> Dict[str, Any]:
    """A pattern, a rule of evidence or a warning: why it waits, what to write instead.

    >>> import sync_report
    >>> sync_report.explain("A03")["patterns"][0]["id"]
    'A03'
    """
    return _tree(["explain", name])


def fix(profile: PathLike, *more: PathLike, options: Sequence[str] = ()) -> str:
    """The advised edits as a patch. Nothing is written unless `options` hold ``--apply``.

    >>> import sync_report
    >>> sync_report.fix("sample-profiles/train_mlp.sqlite", options=["--source-root", "sample-profiles/programs"])[:4]
    '--- '
    """
    ran = run(["fix", *options, "-q", "--", profile, *more])
    if ran.returncode:
        raise SyncReportError(sentence(ran), ran.returncode)
    return ran.stdout
