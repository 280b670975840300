#!/usr/bin/env python3
"""Replays the captures of the bad variants on this machine's GPU and puts what fixing the waits saves there beside what
was measured of the programs themselves.

    replay.py DIR OUT [CASE...] [--tool target/release/sync-report] [--host recorded --host unprofiled]

DIR holds what run.sh left there, OUT gets CASE.HOST.json of each replay. Savings are in percent of the step they are
taken from. Of each capture the tool is shown the first window of the bad variant, as in compare.py.
"""
import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

from compare import cut, fixes, report, windows


def replayed(tool, capture, words, host, into):
    """The results of one replay, or the sentence that says why there are none."""
    done = subprocess.run(
        [tool, "replay", "-q", str(capture), *words, "--host", host, "--format", "json", "-o", str(into)],
        capture_output=True, text=True, check=False)
    return json.loads(into.read_text()) if done.returncode == 0 else done.stderr.strip()


def row(case, host, results, alone, captured):
    recorded, fixed = results["variants"][0], results["variants"][-1]
    share = lambda ns: None if ns is None else 100 * ns / recorded["wall"]["median_ns"]
    truth = alone["saved_percent"]
    return {
        "case": case,
        "host": host,
        "recorded_us": results["recorded_ns"] / 1e3,
        "replayed_us": recorded["wall"]["median_ns"] / 1e3,
        "saved_percent": share(fixed["saving"]["median_ns"]),
        "from_percent": share(fixed["saving"]["low_ns"]),
        "to_percent": share(fixed["saving"]["high_ns"]),
        "predicted_percent": share(fixed["predicted_saving_ns"]),
        "truth_percent": truth,
        "captured_percent": captured,
        "rounds": fixed["saving"]["runs"],
    }


def rows(arguments):
    names = arguments.cases or sorted(c.stem for c in arguments.folder.glob("*.sqlite") if c.stem != "overhead")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for case in names:
        capture = arguments.folder / f"{case}.sqlite"
        alone = json.loads((arguments.folder / f"{case}.json").read_text())
        found = windows(capture)
        step = {name: statistics.median((end - start) / steps for start, end, steps in found[name]) for name in ("bad", "fixed")}
        with tempfile.TemporaryDirectory() as work:
            start, end, _ = found["bad"][0]
            shown = cut(capture, start, end, Path(work) / f"{case}.sqlite")
            inside, _ = fixes(report(arguments.tool, shown), alone["changes"])
            words = [word for fix in inside for word in ("--fix", fix)]
            words += ["--site", ",".join(fix.split("=")[0] for fix in inside), "--seconds", arguments.seconds]
            for host in arguments.host:
                results = replayed(arguments.tool, shown, words, host, arguments.out / f"{case}.{host}.json")
                if isinstance(results, str):
                    print(f"| {case} | {host} | {results} |", flush=True)
                else:
                    yield row(case, host, results, alone, 100 * (1 - step["fixed"] / step["bad"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--tool", default="target/release/sync-report")
    parser.add_argument("--seconds", default="20", help="how long each replay measures at most")
    parser.add_argument("--host", action="append", help="what the host does between calls; recorded and unprofiled by default")
    arguments = parser.parse_args()
    arguments.host = arguments.host or ["recorded", "unprofiled"]
    print("| program | host | recorded, µs | replayed, µs | saved (range) | predicted | truth | truth under the profiler | rounds |")
    print("|:--|:--|--:|--:|--:|--:|--:|--:|--:|")
    percent = lambda value: "–" if value is None else f"{value:.1f} %"
    for r in rows(arguments):
        print(f"| {r['case']} | {r['host']} | {r['recorded_us']:.1f} | {r['replayed_us']:.1f} "
              f"| {percent(r['saved_percent'])} ({r['from_percent']:.1f} to {r['to_percent']:.1f}) | {percent(r['predicted_percent'])} "
              f"| {percent(r['truth_percent'])} | {percent(r['captured_percent'])} | {r['rounds']} |", flush=True)


if __name__ == "__main__":
    main()
