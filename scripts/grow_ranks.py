#!/usr/bin/env python3
"""Write Nsight Systems exports of one program on N ranks, to try reports over ranks and to see how they grow.

Each rank is a file, rank_0.sqlite to rank_N-1.sqlite, on a clock of its own. In each of its steps it launches a kernel, reads a
value back (train.py:24) and meets the others in an all-reduce, which it waits for (train.py:30). Rank N//3 does
3 ms more before it meets them: it waits for a metric of its own (train.py:41), and the others for it.

The same arguments give the same files, row for row.
"""
from __future__ import annotations

import argparse
import json
import sqlite3
import sys
from pathlib import Path

from grow_export import BACKTRACE, DOMAIN, FIRST_STREAM, MAIN, MARK, NOT_APPLICABLE, PROCESS, PID, TABLES, Writer

STEPS = 30
LATE_NS = 3_000_000
BEGAN_UTC_NS = 1_795_162_930_709_004_235
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
STARTED = "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER)"


def varied(number: int, most: int) -> int:
    """A number below `most` that looks drawn, and is the same each time."""
    return (number * 2_654_435_761 >> 7) % most


class Rank(Writer):
    """Rows of a rank, whose clock is `back` ns behind."""

    def __init__(self, db: sqlite3.Connection, back: int) -> None:
        super().__init__(db)
        self.back = back

    def kernel(self, call: tuple[int, int], span: tuple[int, int], name: str, stream: int = FIRST_STREAM) -> None:
        start, end = span
        launch = self.call(MAIN, "cudaLaunchKernel", call[0] - self.back, call[1] - self.back)
        text = self.string(name)
        self.add("CUPTI_ACTIVITY_KIND_KERNEL", start - self.back, end - self.back, 0, 1, stream, launch, PROCESS, text, text,
                 64, 1, 1, 256, 1, 1)

    def wait(self, start: int, end: int, line: int, stream: int = FIRST_STREAM) -> None:
        """A wait with its line of Python."""
        start, end = start - self.back, end - self.back
        call = self.call(MAIN, "cudaStreamSynchronize", start, end)
        self.add("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", start + 500, end - 500, 0, 1, stream, call, PROCESS, 3, NOT_APPLICABLE, 0)
        self.add("CUPTI_ACTIVITY_KIND_RUNTIME", start - 100, end + 100, BACKTRACE, MAIN, call,
                 self.string("cudaStreamSynchronize"), 0, None)
        frame = {"Function": self.string("train"), "File": self.string("/w/train.py"), "Line": line}
        frames = {"Thread state ID": 1, "Thread state": "Running", "Frames count": 1, "Frames": [frame]}
        self.add("NVTX_EVENTS", start - 100, None, MARK, None, MAIN, None, 1, json.dumps({"Python Backtrace on CUDA": frames}))

    def steps(self, rank: int, late: bool) -> None:
        self.add("NVTX_EVENTS", -self.back, None, DOMAIN, "Python Backtrace on CUDA", MAIN, None, 1, None)
        at = 1_000_000
        for step in range(STEPS):
            read = at + 300_000 + varied(rank * 977 + step, 60_000)
            self.kernel((at, at + 5_000), (at + 10_000, read), "gemm")
            self.wait(at + 12_000, read + 3_000, 24)
            ready = read
            if late:
                ready = read + LATE_NS
                self.kernel((read + 5_000, read + 9_000), (read + 12_000, ready), "metric", FIRST_STREAM + 1)
                self.wait(read + 10_000, ready + 3_000, 41, FIRST_STREAM + 1)
            met = at + 300_000 + 60_000 + LATE_NS + 100_000 + varied(step, 200_000)
            self.kernel((ready + 20_000, ready + 25_000), (ready + 30_000, met), ALL_REDUCE, FIRST_STREAM + 13)
            self.wait(ready + 26_000, met + 3_000, 30, FIRST_STREAM + 13)
            self.range(at - 1_000 - self.back, met + 10_000 - self.back, f"step {step}")
            at = met + 40_000


def write(path: Path, rank: int, late: bool) -> None:
    path.unlink(missing_ok=True)
    back = varied(rank, 50_000_000)
    db = sqlite3.connect(path)
    db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")
    for table, columns in TABLES.items():
        db.execute(f'CREATE TABLE "{table}" ({columns})')
    db.execute(STARTED)
    # Machines agree on the time to some milliseconds.
    db.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?)", (BEGAN_UTC_NS + back + varied(rank + 1, 4_000_000),))
    out = Rank(db, back)
    out.add("PROCESSES", PROCESS, PID, "python3")
    out.add("META_DATA_EXPORT", "EXPORT_PRODUCT_VERSION", "2025.3.2.0")
    out.add("META_DATA_EXPORT", "EXPORT_SCHEMA_VERSION", "3.20.3")
    out.steps(rank, late)
    for table in TABLES:
        out.flush(table)
    db.commit()
    db.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ranks", type=int, metavar="N", help="how many, 1 or more")
    parser.add_argument("output", type=Path, help="the folder to write, which is not there yet")
    arguments = parser.parse_args()
    if arguments.ranks < 1:
        parser.error("N must be 1 or more")
    if arguments.output.exists():
        raise SystemExit(f"grow_ranks.py: {arguments.output} exists")
    arguments.output.mkdir(parents=True)
    for rank in range(arguments.ranks):
        write(arguments.output / f"rank_{rank}.sqlite", rank, rank == arguments.ranks // 3)
    print(f"{arguments.output}: {arguments.ranks} exports", file=sys.stderr)


if __name__ == "__main__":
    main()
