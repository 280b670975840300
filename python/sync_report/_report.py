"""Reports as Python objects and data frames."""
from __future__ import annotations

import dataclasses
import difflib
import functools
import html
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


#: How a person reads `Site.class_`.
VERDICTS = {"false": "avoidable", "unknown": "undecided", "true": "needed"}


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
        import pandas
        import pyarrow

        # Whole numbers stay whole where some are missing.
        kinds = {
            pyarrow.int32(): pandas.Int32Dtype(),
            pyarrow.int64(): pandas.Int64Dtype(),
            pyarrow.uint32(): pandas.UInt32Dtype(),
            pyarrow.uint64(): pandas.UInt64Dtype(),
        }
        return self.arrow(table).to_pandas(types_mapper=kinds.get)

    def _path(self, table: str) -> str:
        if table not in ("waits", "sites"):
            raise ValueError(f"there is no table {table!r}; there are 'waits' and 'sites'")
        return str(Path(self._folder.name, table + ".parquet"))


@dataclass(frozen=True, repr=False)
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
    """The arguments that the program was called with."""

    def site(self, name: str) -> model.Site:
        """The site of that name: an id, a key or a line.

        >>> import sync_report
        >>> report = sync_report.report("sample-profiles/train_mlp.sqlite")
        >>> report.site("S2").id, report.site("train_mlp.py:19").id
        ('S2', 'S2')

        A name that no site has is a `KeyError`, with the nearest.
        """
        lines: Dict[str, model.Site] = {}
        for site in reversed(self.sites):
            lines.update({site.key: site, site.id: site, place(site): site})
            if site.user_frame is not None:
                lines[f"{site.user_frame.file}:{site.user_frame.line}"] = site
        if name not in lines:
            near = difflib.get_close_matches(name, lines, n=1, cutoff=0.5)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise KeyError(f"no site {name!r}{meant}")
        return lines[name]

    def __repr__(self) -> str:
        totals = self.totals
        return f"<Report: {totals.waits} waits at {totals.sites} sites, {totals.avoidable_sites} of them avoidable>"

    def _repr_html_(self) -> str:
        """The sites as a table, for notebooks."""
        rows = []
        for site in self.sites:
            saves = site.recoverable.per_iteration_ns if site.recoverable is not None else None
            cells = [site.id, VERDICTS[site.class_], place(site), "" if saves is None else f"{saves / 1e3:.3g} µs",
                     "" if site.fix is None else site.fix.title]
            rows.append("".join(f"<td>{html.escape(cell)}</td>" for cell in cells))
        head = "".join(f"<th>{title}</th>" for title in ("id", "verdict", "where", "saves an iteration", "what to do"))
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<p>{html.escape(repr(self)[1:-1])}</p><table><tr>{head}</tr>{body}</table>"

    @functools.cached_property
    def tables(self) -> Tables:
        """The waits and sites as tables; made when first asked for, by running the program again.

        >>> import sync_report
        >>> report = sync_report.report("sample-profiles/train_mlp.sqlite")
        >>> report.tables is report.tables
        True
        """
        return Tables(self.arguments)


def place(site: model.Site) -> str:
    """"train.py:30"; the function where no line is known, or the call where no function is.

    >>> import sync_report
    >>> place(sync_report.report("sample-profiles/train_mlp.sqlite").site("S2"))
    'train_mlp.py:19'
    """
    frame = site.user_frame
    if frame is None:
        return site.api
    file = frame.file.rsplit("/", 1)[-1]
    return f"{file}:{frame.line}" if frame.line else f"{file} {frame.function}"


def report(
    profile: Union[PathLike, Sequence[PathLike]],
    *more: PathLike,
    source_root: Union[PathLike, Sequence[PathLike]] = (),
    options: Sequence[str] = (),
) -> Report:
    """Reads captures and says what waits in them.

    ``profile``, which may be a list, and ``more``: exports (``.sqlite``, ``_pqtdir``) or reports of nsys (``.nsys-rep``), or traces of
    torch.profiler (``.json``, ``.json.gz``), one per rank.
    ``source_root``: where the Python sources are, as ``NEW`` or ``OLD=NEW``. ``options``: further options as typed on
    the command line, e.g. ``["--nvtx", "step", "--top", "5"]``.

    Raises `SyncReportError` where there is no report. A damaged export gives a report and a `DamagedExportWarning`.

    >>> import sync_report
    >>> found = sync_report.report("sample-profiles/train_mlp.sqlite", source_root="sample-profiles/programs")
    >>> for site in found.sites[:2]:
    ...     print(site.class_, site.kind, site.user_frame.line, site.source.strip()[:20])
    false upload 19 t = t.cuda()
    false upload 18 x = x.to("cuda")
    """
    first = [profile] if isinstance(profile, (str, os.PathLike)) else profile
    arguments = command_line((*first, *more), source_root, options)
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
