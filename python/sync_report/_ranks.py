"""Many ranks: each read where its file lies, then merged. Dask and the recipe for nsys share this file.

It travels to workers as it is, so that they need the program and Python's own library only.
"""
from __future__ import annotations

import os
import re
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, Iterable, List, Optional, Sequence, Tuple


@dataclass
class Part:
    """The result of reading one export.

    >>> Part("run.sqlite", said="not a database").failed
    True
    """

    #: The export.
    path: str
    #: The files of its result, by name; none where it could not be read.
    files: Dict[str, bytes] = field(default_factory=dict, repr=False)
    #: What the program said: why there is no result, or what of the export is damaged.
    said: str = ""

    @property
    def failed(self) -> bool:
        """True where there is no result.

        >>> Part("run.sqlite", {"waits.parquet": b""}).failed
        False
        """
        return not self.files


def find(inputs: Iterable[str]) -> List[str]:
    """The exports in folders, and what else was named, in the order of the numbers in their names.

    A report of nsys counts where no export of it lies beside it, a light capture (``NAME.light.sqlite``) where its own is not there.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ["rank10.sqlite", "rank2.nsys-rep", "rank2.sqlite", "rank2.light.sqlite", "rank3.nsys-rep", "log.txt"]:
    ...     _ = folder.joinpath(name).write_text("")
    >>> [pathlib.Path(path).name for path in find([str(folder)])]
    ['rank2.sqlite', 'rank3.nsys-rep', 'rank10.sqlite']
    """
    found: List[str] = []
    for given in inputs:
        path = Path(given)
        if not path.is_dir() or path.name.endswith("_pqtdir"):
            found.append(os.path.abspath(path))
            continue
        exports = [*path.glob("*.sqlite"), *path.glob("*_pqtdir")]
        exports = [export for export in exports if not export.name.startswith(".")]
        reports = [report for report in path.glob("*.nsys-rep") if export_of(report) == report]
        found += [os.path.abspath(one) for one in without_light([*exports, *reports])]
    return sorted(set(found), key=natural)


def without_light(captures: Sequence[Path]) -> List[Path]:
    """All but the light captures whose own capture is among them: they are of the same rank.

    >>> [path.name for path in without_light([Path("a.sqlite"), Path("a.light.nsys-rep"), Path("b.light.sqlite")])]
    ['a.sqlite', 'b.light.sqlite']
    """
    stems = {path: re.sub(r"(\.sqlite|_pqtdir|\.nsys-rep|\.qdrep)$", "", str(path)) for path in captures}
    known = set(stems.values())
    return [path for path, stem in stems.items() if not (stem.endswith(".light") and stem[: -len(".light")] in known)]


def natural(name: str) -> List[Tuple[int, str]]:
    """A key that sorts names by the numbers in them.

    >>> sorted(["rank10", "rank9"], key=natural)
    ['rank9', 'rank10']
    """
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def export_of(report: Path) -> Path:
    """The export that lies beside a report of nsys and is no older, else the report.

    >>> export_of(Path("no-such.nsys-rep"))
    PosixPath('no-such.nsys-rep')
    """
    for export in (report.with_suffix(".sqlite"), report.with_name(report.stem + "_pqtdir")):
        if export.exists() and export.stat().st_mtime >= report.stat().st_mtime:
            return export
    return report


def read(path: str, options: Sequence[str] = (), program: str = "sync-report") -> Part:
    """Reads one export on the machine that this runs on.

    >>> import sync_report
    >>> part = read("sample-profiles/train_mlp.sqlite", program=sync_report.binary())
    >>> {"sites.parquet", "waits.parquet"} <= set(part.files)
    True
    """
    with tempfile.TemporaryDirectory(prefix="sync-report-") as folder:
        command = [program, *options, "-q", "--format", "parquet", "-o", folder, "--", path]
        try:
            ran = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
        except OSError as error:
            return Part(path, said=f"{program}: {error.strerror}")
        files = {file.name: file.read_bytes() for file in sorted(Path(folder).iterdir())}
    said = ran.stderr.strip() if ran.returncode else ""
    if ran.returncode < 0:  # a file that was half written is none
        return Part(path, said=f"the program was ended by signal {-ran.returncode}")
    return Part(path, files, said)


def merge(
    parts: Iterable[Part], arguments: Sequence[str] = (), program: str = "sync-report", folder: Optional[str] = None
) -> subprocess.CompletedProcess[bytes]:
    """Merges what was read into one report, in the order of the names, whatever order it came in.

    ``arguments`` go to ``sync-report merge``. ``folder`` keeps what was read.

    >>> import json, sync_report
    >>> pair = [f"sample-profiles/ranks/rank_{rank}.sqlite" for rank in (1, 0)]
    >>> parts = [read(path, program=sync_report.binary()) for path in pair]
    >>> merged = json.loads(merge(parts, ["--format", "json"], sync_report.binary()).stdout)
    >>> [rank["rank"] for rank in merged["ranks"]["list"]], merged["ranks"]["late"][0]["rank"]
    ([0, 1], 1)
    """
    with tempfile.TemporaryDirectory(prefix="sync-report-") as temporary:
        root = Path(folder or temporary)
        folders = []
        good = sorted((part for part in parts if not part.failed), key=lambda part: natural(part.path))
        for number, part in enumerate(good):
            stem = re.sub(r"[^\w.-]", "_", Path(part.path).stem)
            folders.append(root / f"{number:05}-{stem}")
            folders[-1].mkdir(parents=True)
            for name, data in part.files.items():
                (folders[-1] / name).write_bytes(data)
        command = [program, "merge", *arguments, "--", *map(str, folders)]
        return subprocess.run(command, capture_output=True)
