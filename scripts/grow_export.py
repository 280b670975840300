#!/usr/bin/env python3
"""Write an Nsight Systems export of a program that has very many of one thing, to see how a reader grows with it.

The program is a loop that launches a kernel and waits for it, N times:

  threads   each turn by the next of N threads, twice
  streams   each turn on a stream of its own, then a synchronisation of the whole device
  devices   each turn on a device of its own, then a device synchronisation that does not record its device
  open      each turn in an NVTX range `step 7` that is pushed and never popped
  unlike    the same, each range under a name of its own
  nested    each turn in an NVTX range inside the range before it; all are popped at the end
  sites     each turn at a Python line of its own
  turns     nothing but the loop: what the size alone costs

The same arguments give the same file, row for row.
"""
from __future__ import annotations

import argparse
import json
import os
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

PID = 4242
PROCESS = 1 << 48 | PID << 24
MAIN = PROCESS | PID
TURN_NS = 100_000
RUNTIME, BACKTRACE = 0, 67  # eventClass
MARK, PUSH_POP, DOMAIN = 34, 59, 75  # eventType
NOT_APPLICABLE = 0xFFFFFFFF
FIRST_STREAM = 7

TABLES = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,"
    " globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,"
    " contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,"
    " demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL,"
    " gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,"
    " contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,"
    " syncType INTEGER NOT NULL, eventId INTEGER NOT NULL, eventSyncId INTEGER",
    "NVTX_EVENTS": "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER,"
    " textId INTEGER, domainId INTEGER, jsonText TEXT",
    "TARGET_INFO_CUDA_CONTEXT_INFO": "nullStreamId INTEGER NOT NULL, processId INTEGER NOT NULL,"
    " deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL",
    "PROCESSES": "globalPid INTEGER, pid INTEGER, name TEXT",
    "META_DATA_EXPORT": "name TEXT NOT NULL, value TEXT",
}


class Writer:
    """Rows of the export, in the order of time."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.rows: dict[str, list[tuple]] = {name: [] for name in TABLES}
        self.strings: dict[str, int] = {}
        self.correlation = 0

    def string(self, text: str) -> int:
        known = self.strings.get(text)
        if known is None:
            known = self.strings[text] = len(self.strings) + 1
            self.add("StringIds", known, text)
        return known

    def add(self, table: str, *row: object) -> None:
        rows = self.rows[table]
        rows.append(row)
        if len(rows) >= 50_000:
            self.flush(table)

    def flush(self, table: str) -> None:
        rows = self.rows[table]
        if rows:
            self.db.executemany(f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(rows[0]))})', rows)
            rows.clear()

    def call(self, tid: int, name: str, start: int, end: int) -> int:
        self.correlation += 1
        self.add("CUPTI_ACTIVITY_KIND_RUNTIME", start, end, RUNTIME, tid, self.correlation,
                 self.string(name + "_v3020"), 0, None)
        return self.correlation

    def turn(self, at: int, tid: int, device: int = 0, context: int = 1, stream: int = FIRST_STREAM) -> None:
        """A launch, its kernel, and the wait for it."""
        launch = self.call(tid, "cudaLaunchKernel", at, at + 5_000)
        kernel = self.string("kernel")
        self.add("CUPTI_ACTIVITY_KIND_KERNEL", at + 7_000, at + 60_000, device, context, stream, launch, PROCESS,
                 kernel, kernel, 64, 1, 1, 256, 1, 1)
        wait = self.call(tid, "cudaStreamSynchronize", at + 10_000, at + 62_000)
        self.add("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", at + 10_500, at + 61_500, device, context, stream, wait, PROCESS,
                 3, NOT_APPLICABLE, 0)

    def range(self, start: int, end: int | None, name: str) -> None:
        self.add("NVTX_EVENTS", start, end, PUSH_POP, name, MAIN, None, 0, None)

    def line(self, at: int, line: int) -> None:
        """The backtrace of the wait of the turn that begins at `at`."""
        wait = self.string("cudaStreamSynchronize")
        self.add("CUPTI_ACTIVITY_KIND_RUNTIME", at + 9_900, at + 62_100, BACKTRACE, MAIN, self.correlation, wait, 0, None)
        frame = {"Function": self.string("train"), "File": self.string("/w/train.py"), "Line": line}
        frames = {"Thread state ID": 1, "Thread state": "Running", "Frames count": 1, "Frames": [frame]}
        self.add("NVTX_EVENTS", at + 9_900, None, MARK, None, MAIN, None, 1,
                 json.dumps({"Python Backtrace on CUDA": frames}))


def word(number: int) -> str:
    """A name without digits, so that no reader takes it for a counted one."""
    letters = ""
    while True:
        number, rest = divmod(number, 26)
        letters = chr(ord("a") + rest) + letters
        if number == 0:
            return letters


def times(count: int) -> Iterator[tuple[int, int]]:
    return ((i, TURN_NS * (i + 1)) for i in range(count))


def threads(out: Writer, count: int) -> None:
    for i, at in times(2 * count):
        out.turn(at, MAIN + i % count)


def streams(out: Writer, count: int) -> None:
    for i, at in times(count):
        out.turn(at, MAIN, stream=FIRST_STREAM + i)
        out.call(MAIN, "cudaDeviceSynchronize", at + 70_000, at + 73_000)


def devices(out: Writer, count: int) -> None:
    for i, at in times(count):
        out.add("TARGET_INFO_CUDA_CONTEXT_INFO", FIRST_STREAM, PID, i, i + 1)
        out.turn(at, MAIN, device=i, context=i + 1)
        out.call(MAIN, "cudaDeviceSynchronize", at + 70_000, at + 73_000)


def open_ranges(out: Writer, count: int) -> None:
    for i, at in times(count):
        out.range(at - 1_000, None, f"step {i}")
        out.turn(at, MAIN)


def unlike(out: Writer, count: int) -> None:
    for i, at in times(count):
        out.range(at - 1_000, None, f"part {word(i)}")
        out.turn(at, MAIN)


def nested(out: Writer, count: int) -> None:
    end = TURN_NS * (count + 1)
    for i, at in times(count):
        out.range(at - 1_000, end + count - i, "visit")
        out.turn(at, MAIN)


def sites(out: Writer, count: int) -> None:
    out.add("NVTX_EVENTS", 0, None, DOMAIN, "Python Backtrace on CUDA", MAIN, None, 1, None)
    for i, at in times(count):
        out.turn(at, MAIN)
        out.line(at, i + 1)


def turns(out: Writer, count: int) -> None:
    for _, at in times(count):
        out.turn(at, MAIN)


KINDS = {"threads": threads, "streams": streams, "devices": devices, "open": open_ranges, "unlike": unlike,
         "nested": nested, "sites": sites, "turns": turns}


def write(path: Path, kind: str, count: int) -> None:
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.unlink(missing_ok=True)
    try:
        db = sqlite3.connect(unfinished)
        # Nothing to protect: an interrupted run is thrown away.
        db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")
        for table, columns in TABLES.items():
            db.execute(f'CREATE TABLE "{table}" ({columns})')
        out = Writer(db)
        out.add("PROCESSES", PROCESS, PID, "python3")
        out.add("META_DATA_EXPORT", "EXPORT_PRODUCT_VERSION", "2025.3.2.0")
        out.add("META_DATA_EXPORT", "EXPORT_SCHEMA_VERSION", "3.20.3")
        KINDS[kind](out, count)
        for table in TABLES:
            out.flush(table)
        db.commit()
        db.close()
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("count", type=int, metavar="N", help="how many, 1 or more")
    parser.add_argument("output", type=Path, help="the file to write")
    parser.add_argument("--force", action="store_true", help="overwrite the output")
    arguments = parser.parse_args()
    if arguments.count < 1:
        parser.error("N must be 1 or more")
    if arguments.output.exists() and not arguments.force:
        raise SystemExit(f"grow_export.py: {arguments.output} exists (--force overwrites it)")
    write(arguments.output, arguments.kind, arguments.count)
    print(f"{arguments.output}: {arguments.output.stat().st_size / 1e6:.1f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
