"""Reports as Python objects and data frames."""
from __future__ import annotations

import dataclasses
import functools
import json
import os
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple, Union

from . import model
from ._binary import PathLike, SyncReportError, run, sentence

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class DamagedExportWarning(UserWarning):
    """An export is damaged; the report is of what could be read.

    >>> issubclass(DamagedExportWarning, UserWarning)
    True
    """


class Tables:
    """The waits and the sites of a report as two tables.

    They lie as parquet files in a folder, which goes when this object goes.

    >>> import sync_report
    >>> tables = sync_report.report("sample-profiles/train_mlp.sqlite").tables
    >>> tables.waits.name, tables.sites.name
    ('waits.parquet', 'sites.parquet')
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="sync-report-")
        ran = run(["--format", "parquet", "-o", self._folder.name, *arguments])
        if not self.waits.exists():
            self._folder.cleanup()
            raise SyncReportError(sentence(ran), ran.returncode)

    @property
    def waits(self) -> Path:
        """A row per wait.

        >>> import sync_report
        >>> sync_report.report("sample-profiles/train_mlp.sqlite").tables.waits.suffix
        '.parquet'
        """
        return Path(self._folder.name, "waits.parquet")

    @property
    def sites(self) -> Path:
        """A row per site.

        >>> import sync_report
        >>> sync_report.report("sample-profiles/train_mlp.sqlite").tables.sites.suffix
        '.parquet'
        """
        return Path(self._folder.name, "sites.parquet")

    def polars(self, table: str = "waits") -> "polars.DataFrame":
        """One of the tables as a data frame of polars.

        >>> import sync_report
        >>> report = sync_report.report("sample-profiles/train_mlp.sqlite")
        >>> waits = report.tables.polars("waits")
        >>> waits["blocked_ns"].sum() == report.totals.blocked_ns
        True
        """
        import polars

        return polars.read_parquet(self._path(table))

    def arrow(self, table: str = "waits") -> "pyarrow.Table":
        """One of the tables as Arrow has it.

        >>> import sync_report
        >>> sync_report.report("sample-profiles/train_mlp.sqlite").tables.arrow("sites").num_rows
        5
        """
        from pyarrow import parquet

        return parquet.read_table(self._path(table))

    def pandas(self, table: str = "waits") -> "pandas.DataFrame":
        """One of the tables as a data frame of pandas.

        >>> import sync_report
        >>> len(sync_report.report("sample-profiles/train_mlp.sqlite").tables.pandas("waits"))
        210
        """
        return self.arrow(table).to_pandas()

    def _path(self, table: str) -> str:
        if table not in ("waits", "sites"):
            raise ValueError(f"there is no table {table!r}; there are 'waits' and 'sites'")
        return str(Path(self._folder.name, table + ".parquet"))


@dataclass(frozen=True)
class Report(model.Report):
    """A report: the fields of `sync_report.model.Report`, and its tables.

    >>> import sync_report
    >>> report = sync_report.report("sample-profiles/train_mlp.sqlite")
    >>> report.totals.waits, [site.id for site in report.sites if site.class_ == "false"][:2]
    (210, ['S1', 'S2'])
    """

    json: Dict[str, Any] = field(repr=False, compare=False)
    """The report as the program printed it: with fields that a newer program has."""
    arguments: Tuple[str, ...] = field(repr=False, compare=False)
    """What the program was called with."""

    def site(self, id: str) -> Optional[model.Site]:
        """The site of that id.

        >>> import sync_report
        >>> sync_report.report("sample-profiles/train_mlp.sqlite").site("S2").user_frame.line
        19
        """
        return next((site for site in self.sites if site.id == id), None)

    @functools.cached_property
    def tables(self) -> Tables:
        """The waits and sites as tables; made when first asked for, by running the program again.

        >>> import sync_report
        >>> report = sync_report.report("sample-profiles/train_mlp.sqlite")
        >>> report.tables is report.tables
        True
        """
        return Tables(self.arguments)


def report(
    profile: PathLike,
    *more: PathLike,
    source_root: Union[PathLike, Sequence[PathLike]] = (),
    options: Sequence[str] = (),
) -> Report:
    """Reads captures and says what waits in them.

    ``profile`` and ``more``: exports (``.sqlite``, ``_pqtdir``) or reports of nsys (``.nsys-rep``), one per rank.
    ``source_root``: where the Python sources are, as ``NEW`` or ``OLD=NEW``. ``options``: further options as typed on
    the command line, e.g. ``["--nvtx", "step", "--top", "5"]``.

    Raises `SyncReportError` where there is no report. Of a damaged export there is one, and a `DamagedExportWarning`.

    >>> import sync_report
    >>> found = sync_report.report("sample-profiles/train_mlp.sqlite", source_root="sample-profiles/programs")
    >>> for site in found.sites[:2]:
    ...     print(site.class_, site.kind, site.user_frame.line, site.source.strip()[:20])
    false upload 19 t = t.cuda()
    false upload 18 x = x.to("cuda")
    """
    arguments = command_line((profile, *more), source_root, options)
    ran = run(["--format", "json", *arguments])
    try:
        data = json.loads(ran.stdout)
    except json.JSONDecodeError:
        raise SyncReportError(sentence(ran), ran.returncode) from None
    if ran.returncode:
        warnings.warn(sentence(ran), DamagedExportWarning, stacklevel=2)
    fields = _fields(model.Report, data)
    return Report(**fields, json=data, arguments=arguments)


def command_line(
    profiles: Sequence[PathLike], source_root: Union[PathLike, Sequence[PathLike]], options: Sequence[str]
) -> Tuple[str, ...]:
    """The arguments that select and judge: those of every format.

    >>> command_line(["a.sqlite"], "src", ["--top", "5"])
    ('--source-root', 'src', '--top', '5', '-q', '--', 'a.sqlite')
    """
    roots = [source_root] if isinstance(source_root, (str, os.PathLike)) else source_root
    words: List[str] = []
    for root in roots:
        words += ["--source-root", os.fspath(root)]
    return (*words, *options, "-q", "--", *(os.fspath(profile) for profile in profiles))


def _fields(of: type, data: Dict[str, Any]) -> Dict[str, Any]:
    """Values for the fields of a class: classes made from objects, `None` for what an older program does not know."""
    shape = model.SHAPES.get(of, {})
    values = {}
    for one in dataclasses.fields(of):
        name = one.name.rstrip("_")
        value, inner = data.get(name), shape.get(name)
        if inner is not None and isinstance(value, list):
            value = [inner(**_fields(inner, item)) for item in value]
        elif inner is not None and value is not None:
            value = inner(**_fields(inner, value))
        values[one.name] = value
    return values
