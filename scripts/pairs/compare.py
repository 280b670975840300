#!/usr/bin/env python3
"""Compares what sync-report predicts from the captures of the bad variants with what was measured.

    compare.py DIR [--tool target/release/sync-report] [--json] [--cut DIR]

DIR holds what run.sh left there. Of each capture only the first window of the bad variant is shown to the tool; the
windows of both variants say what the change saved under the same profiler. The error is in percent of the measured
step: |predicted − measured| / bad step. The last columns compare with the run without a profiler. Below the table: in how
many rows the printed range holds the measured saving, and how wide it is.
"""
import argparse
import contextlib
import json
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path


def windows(capture):
    """Of each variant: (start, end, steps) of its windows, by NVTX."""
    with sqlite3.connect(capture) as db:
        found = {}
        for text, start, end in db.execute("SELECT text, start, end FROM NVTX_EVENTS WHERE text LIKE 'window %' ORDER BY start"):
            name = text.removeprefix("window ")
            (steps,) = db.execute(
                "SELECT count(*) FROM NVTX_EVENTS WHERE text LIKE ? AND start BETWEEN ? AND ?", (f"{name} step %", start, end)).fetchone()
            found.setdefault(name, []).append((start, end, steps))
    return found


def cut(capture, start, end, into):
    """A copy that holds one window only."""
    shutil.copy(capture, into)
    with sqlite3.connect(into) as db:
        names = [n for (n,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for name in names:
            columns = [c[1] for c in db.execute(f"PRAGMA table_info({name})")]
            if "start" in columns and "end" in columns and name.startswith(("CUPTI_", "NVTX_")):
                # Names of NVTX domains have no end.
                db.execute(f'DELETE FROM {name} WHERE "end" IS NOT NULL AND (start < ? OR start > ?)', (start, end))
        db.execute("DELETE FROM NVTX_EVENTS WHERE text LIKE 'window %'")
    return into


def report(tool, capture, *more):
    done = subprocess.run(
        [tool, "-q", "--format", "json", *more, str(capture)], capture_output=True, text=True, check=False)
    if not done.stdout:
        sys.exit(f"{capture}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def what(site):
    """What a wait is for the case's changes: explicit, upload or read."""
    copy = site["copy"]
    if copy is None:
        return "explicit"
    return {"host-to-device": "upload", "device-to-host": "read"}.get(copy["direction"], "explicit")


def fixes(plain, changes):
    """The case's changes of the waits inside its steps, and the sites that stay: the wait that ends the window is one."""
    inside = [s for s in plain["sites"] if (s["per_iteration"] or 0) >= 0.5 and what(s) in changes]
    return [f"{s['id']}={changes[what(s)]}" for s in inside], [f"{s['id']}=keep" for s in plain["sites"] if s not in inside]


def predict(tool, capture, changes):
    """Saving of all changes together, in µs a step, with its range; the same without the profiler."""
    plain = report(tool, capture)
    steps = plain["iterations"]["count"]
    inside, kept = fixes(plain, changes)
    more = [word for fix in inside + kept for word in ("--fix", fix)]
    totals = report(tool, capture, *more)["totals"]
    us = lambda ns: None if ns is None else ns / steps / 1e3
    alone = totals["without_profiler"] or {}
    return {
        "predicted_us": us((totals["captured"] or {}).get("saved_ns")),
        "bound_by": totals["bound_by"],
        "simulation_error": totals["simulation_error"],
        "alone_step_us": us(alone.get("run_ns")),
        "alone_predicted_us": us(alone.get("saved_ns")),
        "alone_range_us": [us(alone.get("low_ns")), us(alone.get("high_ns"))],
        "notes": [w["code"] for w in plain["warnings"] if w["code"] in ("profiler-overhead", "power-limited", "bandwidth-assumed")],
    }


def rows(folder, tool):
    captures = [c for c in sorted(folder.glob("*.sqlite")) if c.stem != "overhead"]
    for capture in captures:
        alone = json.loads((folder / f"{capture.stem}.json").read_text())
        found = windows(capture)
        step = {name: statistics.median((end - start) / steps / 1e3 for start, end, steps in found[name]) for name in ("bad", "fixed")}
        start, end, _ = found["bad"][0]
        with tempfile.TemporaryDirectory() as work:
            predicted = predict(tool, cut(capture, start, end, Path(work) / "bad.sqlite"), alone["changes"])
        row = {"case": capture.stem, "step_us": step["bad"], "saved_us": step["bad"] - step["fixed"], **predicted, "alone": alone}
        off = lambda a, b, whole: None if a is None else round(abs(a - b) / whole * 100, 2)
        row["error_percent"] = off(row["predicted_us"], row["saved_us"], row["step_us"])
        row["alone_error_percent"] = off(row["alone_predicted_us"], alone["saved_us"], alone["bad_us"])
        yield row


def summary(table, prefix, words):
    """How far off the values are, how many ranges hold what was measured, and how wide those are."""
    known = [row for row in table if row[f"{prefix}error_percent"] is not None]
    if not known:
        return f"{words}: nothing predicted"
    error = statistics.median(row[f"{prefix}error_percent"] for row in known)
    said = f"{words}: median error {error:.1f} % of the step"
    if not prefix:
        return said  # the captured run has no range
    ranges = [(row, *row[f"{prefix}range_us"]) for row in known]
    held = sum(low <= row["alone"]["saved_us"] <= high for row, low, high in ranges)
    width = statistics.median((high - low) / row["alone"]["bad_us"] * 100 for row, low, high in ranges)
    return f"{said}; {held} of {len(known)} ranges hold the measured saving, median width {width:.1f} % of the step"


def keep_cuts(folder, into):
    """Leaves CASE.sqlite with the first window of the bad variant only, for sync-report replay."""
    into.mkdir(parents=True, exist_ok=True)
    for capture in sorted(c for c in folder.glob("*.sqlite") if c.stem != "overhead"):
        start, end, _ = windows(capture)["bad"][0]
        with contextlib.closing(sqlite3.connect(cut(capture, start, end, into / capture.name))) as db:
            db.execute("VACUUM")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tool", default="target/release/sync-report")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--cut", type=Path, metavar="DIR", help="only write the captures that the tool is shown there: CASE.sqlite")
    arguments = parser.parse_args()
    if arguments.cut:
        keep_cuts(arguments.folder, arguments.cut)
        return
    table = list(rows(arguments.folder, arguments.tool))
    if arguments.json:
        print(json.dumps(table, indent=1))
        return
    print("| program | captured step | saved | predicted | off | alone: step (predicted) | saved | predicted (range) | off | bound by |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    number = lambda value: "–" if value is None else f"{value:.1f}"
    span = lambda pair: "–".join(number(v) for v in pair)
    for row in table:
        alone = row["alone"]
        print(f"| {row['case']} | {number(row['step_us'])} | {number(row['saved_us'])} "
              f"| {number(row['predicted_us'])} | {number(row['error_percent'])} % "
              f"| {number(alone['bad_us'])} ({number(row['alone_step_us'])}) | {number(alone['saved_us'])} "
              f"| {number(row['alone_predicted_us'])} ({span(row['alone_range_us'])}) | {number(row['alone_error_percent'])} % "
              f"| {row['bound_by']} |")
    for prefix, words in (("", "under the profiler"), ("alone_", "without it")):
        print(f"\n{summary(table, prefix, words)}")


if __name__ == "__main__":
    main()
