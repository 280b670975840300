"""The program that everything here runs."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Iterable, Union

PathLike = Union[str, "os.PathLike[str]"]


class SyncReportError(Exception):
    """The program refused its input. The text is the sentence that it printed.

    >>> import sync_report
    >>> try:
    ...     sync_report.report("no-such-file.sqlite")
    ... except sync_report.SyncReportError as error:
    ...     print(error.code, str(error).split(";")[0])
    2 no-such-file.sqlite: no such file
    """

    #: Exit code of the program: 2 for wrong usage or bad input.
    code: int

    def __init__(self, sentence: str, code: int = 2) -> None:
        super().__init__(sentence)
        self.code = code


def binary() -> str:
    """Path of the program: ``$SYNC_REPORT_BIN``, else what was installed with this package, else of the ``PATH``.

    >>> import subprocess
    >>> subprocess.run([binary(), "--version"], capture_output=True, text=True).stdout.split()[0]
    'sync-report'
    """
    named = os.environ.get("SYNC_REPORT_BIN")
    if named:
        return named
    name = "sync-report.exe" if sys.platform == "win32" else "sync-report"
    user = "posix_user" if os.name == "posix" else "nt_user"
    for scripts in (sysconfig.get_path("scripts"), sysconfig.get_path("scripts", user)):
        path = Path(scripts, name)
        if path.is_file():
            return str(path)
    found = shutil.which(name)
    if found is None:
        raise SyncReportError(f"{name} is not on the PATH; `pip install .` in a checkout of sync-report puts it there")
    return found


def run(arguments: Iterable[PathLike]) -> subprocess.CompletedProcess[str]:
    """Runs the program and returns what it printed, whatever its exit code.

    >>> run(["explain", "A03"]).stdout.splitlines()[0]
    'A03  truth value of a tensor (if, while, not, and, assert)'
    """
    command = [binary(), *(os.fspath(argument) for argument in arguments)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", errors="replace")


def version() -> str:
    """The version of the package; of a checkout, that in Cargo.toml.

    >>> version().count(".")
    2
    """
    from importlib import metadata

    try:
        return metadata.version("sync-report")
    except metadata.PackageNotFoundError:
        manifest = Path(__file__).parents[2] / "Cargo.toml"
        lines = manifest.read_text(encoding="utf-8").splitlines() if manifest.exists() else []
        named = (line.split('"')[1] for line in lines if line.startswith("version = "))
        return next(named, "0")


def sentence(ran: subprocess.CompletedProcess[str]) -> str:
    """The text that a run printed on stderr, without the program's name.

    >>> sentence(run(["explain", "Z99"])).split(";")[0]
    'no pattern, rule or warning fits `Z99`'
    """
    lines = [line.replace("sync-report: ", "", 1) for line in ran.stderr.strip().splitlines()]
    return "\n".join(lines) or f"sync-report ended with {ran.returncode}"
