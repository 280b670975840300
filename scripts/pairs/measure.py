#!/usr/bin/env python3
"""Times both variants of a program in one process, in alternating windows: bad, fixed, fixed, bad.

    measure.py gemm512                       times without a profiler: JSON on stdout
    measure.py gemm512 --capture             each window between cudaProfilerStart and Stop, every step in an NVTX
                                             range: what nsys records with --capture-range=cudaProfilerApi is the
                                             first window, which waits

Clock and power drift more between two runs than many a wait costs: hence one process and alternating windows.
"""
import argparse
import json
import statistics
import time

import torch
from programs import CASES

ORDER = ("bad", "fixed", "fixed", "bad")


def window(step, steps, marked):
    """Wall time of one step in µs, the GPU drained before and after."""
    torch.cuda.synchronize()
    if marked:
        torch.cuda.profiler.start()
    start = time.perf_counter()
    for i in range(steps):
        if marked:
            torch.cuda.nvtx.range_push(f"step {i}")
        step(i)
        if marked:
            torch.cuda.nvtx.range_pop()
    torch.cuda.synchronize()
    took = time.perf_counter() - start
    if marked:
        torch.cuda.profiler.stop()
    return took / steps * 1e6


def steps_for(step, seconds):
    """As many steps as take about that long."""
    took = min(window(step, 20, False) for _ in range(2))
    return max(20, min(20_000, int(seconds * 1e6 / took)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of four windows (1 with --capture)")
    parser.add_argument("--seconds", type=float, default=0.25, help="length of a window")
    parser.add_argument("--capture", action="store_true")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    bad, fixed, changes = CASES[arguments.case]()
    variants = {"bad": bad, "fixed": fixed}
    for _ in range(3):
        window(fixed, 20, False)
        window(bad, 20, False)
    steps = 100 if arguments.capture else steps_for(bad, arguments.seconds)
    times = {"bad": [], "fixed": []}
    for _ in range(1 if arguments.capture else arguments.rounds):
        for name in ORDER:
            times[name].append(window(variants[name], steps, arguments.capture))
    middle = {name: statistics.median(list_) for name, list_ in times.items()}
    print(json.dumps({
        "case": arguments.case,
        "captured": arguments.capture,
        "steps": steps,
        "changes": changes,
        "bad_us": round(middle["bad"], 2),
        "fixed_us": round(middle["fixed"], 2),
        "saved_us": round(middle["bad"] - middle["fixed"], 2),
        "saved_percent": round(100 * (1 - middle["fixed"] / middle["bad"]), 2),
        "windows_us": {name: [round(t, 2) for t in list_] for name, list_ in times.items()},
    }))


if __name__ == "__main__":
    main()
