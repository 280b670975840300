#!/usr/bin/env python3
"""Check that a report costs no more than in proportion to its export: CI measures growth, not seconds.

The sample capture, repeated 10 and 100 times along the time axis (scripts/repeat_export.py), is reported by the program
given, and so are exports with 2,000 and 20,000 of one thing (scripts/grow_export.py), those with many rows as traces too; the sample with
a source of so many statements more; lists of so many files. Ten times the rows, statements or files may take ten
times the work that the program counts (rows, bytes, look-ups, simulated steps: the
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
KINDS = ("threads", "streams", "devices", "open", "unlike", "nested", "sites", "turns")
COUNTS = (2_000, 20_000)
# What a trace has rows of: what is counted once a row and once a slice shows late.
ROWS = ("streams", "devices")
TRACED = (4_000, 40_000)
# Statements that a body of the sample's program has many of: of one name, of reads that wait, in a loop.
STATEMENTS = {"bindings": "    x = 1", "reads": "    print(acc.item())", "loop": "        x = x + 1"}
# Small exports on the command line, and names of files that are not there.
LISTED = (30, 300)
ABSENT = (1_000, 10_000)
MOST = 2 * TIMES[1] / TIMES[0]
# Numbers of rows grow longer with the rows: some bytes more.
MOST_WORK = 1.05 * TIMES[1] / TIMES[0]
COMMANDS = {
    "report": ["--format", "json"],
    "page": ["--format", "html"],
}


def made(name: str, script: str, *arguments: object) -> Path:
    """What a script writes, in the place of the argument None; kept for the next run."""
    path = ROOT / "target/bench" / name
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        given = [str(path if argument is None else argument) for argument in arguments]
        subprocess.run([sys.executable, ROOT / "scripts" / script, *given], check=True, stdout=subprocess.DEVNULL)
    return path


def export(times: int) -> Path:
    """The sample, repeated."""
    sample = ROOT / "sample-profiles/train_mlp.sqlite"
    return made(f"train_mlp_x{times}.sqlite", "repeat_export.py", sample, None, times)


def many_of(kind: str, count: int) -> Path:
    """A loop with so many of one thing."""
    return made(f"{kind}_{count}.sqlite", "grow_export.py", kind, count, None)


def source(kind: str, count: int) -> Path:
    """A folder with the sample's program, whose function that waits ends in so many statements."""
    folder = ROOT / "target/bench" / f"{kind}_{count}"
    folder.mkdir(parents=True, exist_ok=True)
    last = "    torch.cuda.synchronize()\n"
    more = last + "    for _ in range(3):\n" * (kind == "loop") + f"{STATEMENTS[kind]}\n" * count
    text = (ROOT / "sample-profiles/programs/train_mlp.py").read_text()
    (folder / "train_mlp.py").write_text(text.replace(last, more, 1))
    return folder


def listed(count: int) -> list[Path]:
    """So many names of one small export."""
    small = many_of("turns", 5)
    paths = [small.with_name(f"listed_{number}.sqlite") for number in range(count)]
    for path in paths:
        if not path.exists():
            os.link(small, path)
    return paths


def cost(command: list[str]) -> tuple[float, int]:
    """Processor seconds and peak memory (bytes) of a command."""
    child = os.posix_spawnp(command[0], command, os.environ, file_actions=[
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, usage = os.wait4(child, 0)
    # Names of files that are not there are refused (2).
    if os.waitstatus_to_exitcode(status) != (2 if "absent_0" in command else 0):
        sys.exit(f"growth: {' '.join(command)[:300]} failed")
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
    runs = {name: [[export(times), *options] for times in TIMES] for name, options in COMMANDS.items()}
    runs |= {f"report of {kind}": [[many_of(kind, count)] for count in COUNTS] for kind in KINDS}
    runs |= {f"trace of {kind}": [[many_of(kind, count), "--format", "perfetto"] for count in TRACED] for kind in ROWS}
    sample = ROOT / "sample-profiles/train_mlp.sqlite"
    runs |= {f"source of {kind}": [[sample, "--source-root", source(kind, count)] for count in COUNTS] for kind in STATEMENTS}
    runs["list of exports"] = [listed(count) for count in LISTED]
    runs["list of no files"] = [[f"absent_{number}" for number in range(count)] for count in ABSENT]
    for name, commands in runs.items():
        # The least of some runs: whatever else the machine does only adds to it.
        (few, few_bytes), (many, many_bytes) = (
            min(cost([program, "-q", *map(str, command)]) for _ in range(3)) for command in commands)
        ratio = many / few
        print(f"{name}: {few:.2f} s {few_bytes >> 20} MB, of ten times as many {many:.2f} s {many_bytes >> 20} MB: "
              f"{ratio:.1f} times the processor time, {many_bytes / few_bytes:.1f} times the memory")
        if ratio > MOST:
            grew.append(f"{name}: more than {MOST:.1f} times the processor time")
    if grew:
        sys.exit(f"growth: for {TIMES[1] // TIMES[0]} times as many {'; '.join(grew)}")


if __name__ == "__main__":
    main()
