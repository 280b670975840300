#!/usr/bin/env python3
"""Check that a report costs no more than in proportion to its export: CI measures growth, not seconds.

The sample capture, repeated 10 and 100 times along the time axis (scripts/repeat_export.py), is reported by the program
given. Ten times the rows may take ten times the work that the program counts (rows, bytes, look-ups, simulated steps: the
same on any machine), and ten times the processor time and as much again for noise and caches; a stage that grows with the
square of the rows takes a hundred times as much. Exit status 1 where it is more.
"""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIMES = (10, 100)
MOST = 2 * TIMES[1] / TIMES[0]
# Numbers of rows grow longer with the rows: some bytes more.
MOST_WORK = 1.05 * TIMES[1] / TIMES[0]
COMMANDS = {
    "report": ["--format", "json"],
    "page": ["--format", "html"],
}


def export(times: int) -> Path:
    """The sample, repeated; kept for the next run."""
    path = ROOT / f"target/bench/train_mlp_x{times}.sqlite"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        script, sample = ROOT / "scripts/repeat_export.py", ROOT / "sample-profiles/train_mlp.sqlite"
        subprocess.run([sys.executable, script, sample, path, str(times)], check=True, stdout=subprocess.DEVNULL)
    return path


def cost(command: list[str]) -> tuple[float, int]:
    """Processor seconds and peak memory (bytes) of a command."""
    child = os.posix_spawnp(command[0], command, os.environ, file_actions=[
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, usage = os.wait4(child, 0)
    if status:
        sys.exit(f"growth: {' '.join(command)} failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def work(program: str, path: Path) -> dict[str, int]:
    """What a report costs, as the program counts it."""
    done = subprocess.run([program, "--progress", "work", path, "--format", "json"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stderr.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the sync-report to measure")
    program = parser.parse_args().program
    grew = []
    few, many = (work(program, export(times)) for times in TIMES)
    for what, count in many.items():
        ratio = count / few[what]
        print(f"{what}: ×{TIMES[0]} {few[what]}, ×{TIMES[1]} {count}: {ratio:.2f} times as many")
        if ratio > MOST_WORK:
            grew.append(f"more than {MOST_WORK:.1f} times the {what}")
    for name, options in COMMANDS.items():
        # The least of some runs: whatever else the machine does only adds to it.
        (few, few_bytes), (many, many_bytes) = (
            min(cost([program, "-q", str(export(times)), *options]) for _ in range(3)) for times in TIMES)
        ratio = many / few
        print(f"{name}: ×{TIMES[0]} {few:.2f} s {few_bytes >> 20} MB, ×{TIMES[1]} {many:.2f} s {many_bytes >> 20} MB: "
              f"{ratio:.1f} times the processor time, {many_bytes / few_bytes:.1f} times the memory")
        if ratio > MOST:
            grew.append(f"{name}: more than {MOST:.1f} times the processor time")
    if grew:
        sys.exit(f"growth: for {TIMES[1] // TIMES[0]} times the rows {'; '.join(grew)}")


if __name__ == "__main__":
    main()
