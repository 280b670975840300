#!/usr/bin/env python3
"""Repeat a real Nsight Systems export N times along the time axis, to see how a reader copes with size.

Copy i of an event starts i periods later and has correlation, call chain, NVTX range and event synchronisation ids of
its own; strings, threads, devices and metadata stay single. Rows from before the capture (domain creation, loading)
are not repeated. The same input gives the same output, row for row.
"""
from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
import sys
from dataclasses import dataclass
from pathlib import Path

NOT_APPLICABLE = 0xFFFFFFFF  # in eventSyncId
GAP_NS = 1_000_000  # idle time between two copies
CPU_TABLES = {"SCHED_EVENTS", "COMPOSITE_EVENTS", "SAMPLING_CALLCHAINS", "OSRT_API", "OSRT_CALLCHAINS"}
SINGLE_TABLES = {"DIAGNOSTIC_EVENT"}  # remarks on the capture, not events of the program
CHAINS_OF = {"CUPTI_ACTIVITY_KIND_RUNTIME": "CUDA_CALLCHAINS", "OSRT_API": "OSRT_CALLCHAINS"}
OWN_IDS = {"CUDA_CALLCHAINS": "CUDA_CALLCHAINS", "OSRT_CALLCHAINS": "OSRT_CALLCHAINS",
           "COMPOSITE_EVENTS": "COMPOSITE_EVENTS", "SAMPLING_CALLCHAINS": "COMPOSITE_EVENTS"}
NUMBERED = ("iteration ", "iter ", "step ", "batch ", "epoch ")


@dataclass(frozen=True)
class Span:
    """A range of numbers in use; copy i uses the range i widths higher."""

    low: int
    width: int


class Source:
    """The export to repeat, attached as `src`: what its tables, times and ids are."""

    def __init__(self, db: sqlite3.Connection, lean: bool) -> None:
        self.db = db
        names = [name for (name,) in db.execute("SELECT name FROM src.sqlite_master WHERE type = 'table' ORDER BY rowid")]
        self.columns = {name: [row[1] for row in db.execute(f'PRAGMA src.table_info("{name}")')] for name in names}
        skipped = SINGLE_TABLES | (CPU_TABLES if lean else set())
        self.tables = [name for name in names if name not in skipped and self.is_event_table(name)]
        self.dropped = [name for name in names if lean and name in CPU_TABLES]
        self.time = self.window()
        self.ids = {name: self.id_span(name, "id") for name in set(OWN_IDS.values()) if name in self.columns}
        self.correlations = self.widest("correlationId")
        self.event_syncs = self.widest("eventSyncId")
        self.ranges = self.widest("rangeId")

    def is_event_table(self, name: str) -> bool:
        """Whether the rows belong to a moment, or to a row that does."""
        columns = self.columns[name]
        return name in OWN_IDS or "start" in columns or "correlationId" in columns

    def one(self, query: str) -> tuple:
        return self.db.execute(query).fetchone()

    def window(self) -> Span:
        """From the first to the last event of the capture itself."""
        low = high = None
        for name in self.columns:
            if not name.startswith(("CUPTI_ACTIVITY_KIND_", "NVTX_EVENTS")) or "start" not in self.columns[name]:
                continue
            kind = "AND eventType IN (34, 59, 60)" if name == "NVTX_EVENTS" else ""
            first, last = self.one(f'SELECT min(start), max(coalesce(end, start)) FROM src."{name}" WHERE start >= 0 {kind}')
            if first is not None:
                low = first if low is None else min(low, first)
                high = last if high is None else max(high, last)
        if low is None:
            raise SystemExit("repeat_export.py: no CUDA or NVTX events to repeat")
        return Span(low, high - low + GAP_NS)

    def id_span(self, name: str, column: str) -> Span:
        low, high = self.one(f'SELECT min("{column}"), max("{column}") FROM src."{name}" WHERE "{column}" <> {NOT_APPLICABLE}')
        return Span(low or 0, (high or 0) - (low or 0) + 1)

    def widest(self, column: str) -> Span:
        """One span for a kind of id that several tables share."""
        spans = [self.id_span(name, column) for name in self.tables if column in self.columns[name]]
        high = max((span.low + span.width for span in spans), default=1)
        return Span(1, high)

    def condition(self, name: str) -> str:
        """Which rows belong to the capture itself."""
        columns = self.columns[name]
        if name == "NVTX_EVENTS":
            return f"start >= {self.time.low} AND eventType IN (34, 59, 60)"
        return f"start >= {self.time.low}" if "start" in columns else "1"


def shifted(source: Source, table: str, column: str) -> str:
    """The SQL for a column of copy ?1."""
    name = f'"{column}"'
    if column in ("start", "end"):
        return f"{name} + ?1 * {source.time.width}"
    if column == "timestamp":
        return f"CASE WHEN {name} > 0 THEN {name} + ?1 * {source.time.width} ELSE {name} END"
    if column == "correlationId":
        return f"{name} + ?1 * {source.correlations.width}"
    if column == "rangeId":
        return f"{name} + ?1 * {source.ranges.width}"
    if column == "eventSyncId":
        moved = f"{name} + ?1 * {source.event_syncs.width}"
        return f"CASE WHEN {name} IN (0, {NOT_APPLICABLE}) THEN {name} ELSE {moved} END"
    if column == "id" and table in OWN_IDS:
        return f"{name} + ?1 * {source.ids[OWN_IDS[table]].width}"
    if column == "callchainId" and CHAINS_OF.get(table) in source.ids:
        span = source.ids[CHAINS_OF[table]]
        # An id below the first chain means "none"; so does NULL, which stays NULL.
        return f"CASE WHEN {name} >= {span.low} THEN {name} + ?1 * {span.width} ELSE {name} END"
    return name


def renumbered(source: Source) -> str | None:
    """The SQL for NVTX texts like `iteration 7`: copy i goes on counting where copy i - 1 ended."""
    is_numbered = " OR ".join(
        f"(text LIKE '{prefix}%' AND substr(text, {len(prefix) + 1}) GLOB '[0-9]*'"
        f" AND NOT substr(text, {len(prefix) + 1}) GLOB '*[^0-9]*')" for prefix in NUMBERED)
    number = "CAST(substr(text, instr(text, ' ') + 1) AS INTEGER)"
    low, high = source.one(f"SELECT min({number}), max({number}) FROM src.NVTX_EVENTS WHERE {is_numbered}")
    if low is None:
        return None
    return (f"CASE WHEN {is_numbered} THEN substr(text, 1, instr(text, ' ')) || ({number} + ?1 * {high - low + 1})"
            " ELSE text END")


def repeat(db: sqlite3.Connection, source: Source, copies: int, renumber: bool) -> None:
    """Append copies 1 to N-1 behind the original rows."""
    text = renumbered(source) if renumber and "NVTX_EVENTS" in source.tables else None
    for position, table in enumerate(source.tables, 1):
        columns = source.columns[table]
        values = [text if text and column == "text" and table == "NVTX_EVENTS" else shifted(source, table, column)
                  for column in columns]
        listed = ", ".join(f'"{column}"' for column in columns)
        statement = (f'INSERT INTO main."{table}" ({listed}) SELECT {", ".join(values)} FROM src."{table}"'
                     f" WHERE {source.condition(table)}")
        for i in range(1, copies):
            db.execute(statement, (i,))
            progress(f"table {position} of {len(source.tables)}: {table}, copy {i + 1} of {copies}")
        db.commit()
    progress("")
    extend_details(db, source, copies)


def extend_details(db: sqlite3.Connection, source: Source, copies: int) -> None:
    if "ANALYSIS_DETAILS" in source.columns:
        more = (copies - 1) * source.time.width
        db.execute("UPDATE main.ANALYSIS_DETAILS SET duration = duration + ?1, stopTime = stopTime + ?1", (more,))
        db.commit()


def progress(line: str) -> None:
    """One line that overwrites itself, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)


def check(source: Path, target: Path, copies: int, force: bool) -> None:
    """Everything that can be refused before work begins."""
    if not source.is_file():
        raise SystemExit(f"repeat_export.py: {source} is no file")
    if target.exists() and not force:
        raise SystemExit(f"repeat_export.py: {target} exists (--force overwrites it)")
    if target.exists() and target.samefile(source):
        raise SystemExit("repeat_export.py: input and output are the same file")
    # An index that grows in order packs its pages less tightly than the original's: measured 8 % more.
    need = source.stat().st_size * copies * 11 // 10
    free = shutil.disk_usage(target.resolve().parent).free
    if need > free:
        raise SystemExit(f"repeat_export.py: needs {need / 1e9:.1f} GB, {target.resolve().parent} has {free / 1e9:.1f} GB")


def run(source: Path, target: Path, copies: int, renumber: bool, lean: bool) -> None:
    unfinished = target.with_name(target.name + ".unfinished")
    shutil.copyfile(source, unfinished)
    try:
        db = sqlite3.connect(unfinished)
        # Nothing to protect: an interrupted run is thrown away.
        db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -262144;")
        db.execute("ATTACH ? AS src", (f"{source}",))
        repeated = Source(db, lean)
        for table in repeated.dropped:
            db.execute(f'DROP TABLE main."{table}"')
        repeat(db, repeated, copies, renumber)
        db.close()
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)


def copies_argument(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", type=Path, help="an export (.sqlite)")
    parser.add_argument("output", type=Path, help="the file to write")
    parser.add_argument("copies", type=copies_argument, help="how often the capture shall happen, 1 or more")
    parser.add_argument("--renumber", action="store_true", help="count NVTX ranges like 'iteration 7' on through the copies")
    parser.add_argument("--lean", action="store_true", help="drop CPU samples, scheduling and operating system calls")
    parser.add_argument("--force", action="store_true", help="overwrite the output")
    arguments = parser.parse_args()
    check(arguments.input, arguments.output, arguments.copies, arguments.force)
    try:
        run(arguments.input, arguments.output, arguments.copies, arguments.renumber, arguments.lean)
    except sqlite3.Error as error:
        raise SystemExit(f"repeat_export.py: {arguments.input}: {error}") from error
    print(f"{arguments.output}: {arguments.output.stat().st_size / 1e6:.1f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
