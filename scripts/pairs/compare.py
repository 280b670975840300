#!/usr/bin/env python3
"""Compares what sync-report predicts from the captures of the bad variants with what was measured.

    compare.py DIR [--tool target/release/sync-report] [--json]

DIR holds what run.sh left there. The error is in percent of the measured step: |predicted − measured| / bad step.
"""
import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path


def report(tool, capture, *more):
    done = subprocess.run(
        [tool, "-q", "--top", "0", "--format", "json", *more, str(capture)], capture_output=True, text=True, check=False)
    if not done.stdout:
        sys.exit(f"{capture}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def what(site):
    """What a wait is for the case's changes: explicit, upload or read."""
    copy = site["copy"]
    if copy is None:
        return "explicit"
    return {"host-to-device": "upload", "device-to-host": "read"}.get(copy["direction"], "explicit")


def predict(tool, capture, changes):
    """Saving of all changes together, in µs a step, with range and error of the simulation."""
    plain = report(tool, capture)
    iterations = plain["iterations"]
    steps = iterations["count"] if iterations else 100
    # The waits of the harness itself, before and after all steps, stay.
    inside = [s for s in plain["sites"] if iterations is None or (s["per_iteration"] or 0) >= 0.5]
    fixes = [f"{s['id']}={changes[what(s)]}" for s in inside if what(s) in changes]
    kept = [f"{s['id']}=keep" for s in plain["sites"] if s not in inside or what(s) not in changes]
    more = [word for fix in fixes + kept for word in ("--fix", fix)]
    totals = report(tool, capture, *more)["totals"]
    us = lambda ns: None if ns is None else ns / steps / 1e3
    return {
        "predicted_us": us(totals["recoverable_false_joint_ns"]),
        "low_us": us(totals["recoverable_low_ns"]),
        "high_us": us(totals["recoverable_high_ns"]),
        "bound_by": totals["bound_by"],
        "simulation_error": totals["simulation_error"],
        "captured_step_us": plain["profiles"][0]["span_ns"] / steps / 1e3,
        "notes": [w["code"] for w in plain["warnings"] if w["code"] in ("profiler-overhead", "power-limited", "bandwidth-assumed")],
    }


def rows(folder, tool):
    for capture in sorted(folder.glob("*.bad.sqlite")):
        case = capture.name.removesuffix(".bad.sqlite")
        alone = json.loads((folder / f"{case}.json").read_text())
        row = {"case": case, **predict(tool, capture, alone["changes"]), "alone": alone}
        if row["predicted_us"] is not None:
            off = abs(row["predicted_us"] - alone["saved_us"]) / alone["bad_us"] * 100
            row["error_percent"] = round(off, 2)
        yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tool", default="target/release/sync-report")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    table = list(rows(arguments.folder, arguments.tool))
    if arguments.json:
        print(json.dumps(table, indent=1))
        return
    print("| case | step µs | saved | predicted (range) | off | bound by | notes |")
    print("|---|---|---|---|---|---|---|")
    number = lambda value: "–" if value is None else f"{value:.1f}"
    for row in table:
        alone = row["alone"]
        print(f"| {row['case']} | {number(alone['bad_us'])} | {number(alone['saved_us'])} ({alone['saved_percent']} %) "
              f"| {number(row['predicted_us'])} ({number(row['low_us'])}–{number(row['high_us'])}) "
              f"| {number(row.get('error_percent'))} % | {row['bound_by']} | {' '.join(row['notes'])} |")
    errors = [row["error_percent"] for row in table if "error_percent" in row]
    if errors:
        print(f"\nmedian error: {statistics.median(errors):.1f} % of the step")


if __name__ == "__main__":
    main()
