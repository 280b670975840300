#!/usr/bin/env python3
"""Times both variants of a program in one process, in alternating windows: bad, fixed, fixed, bad.

    measure.py gemm512               without a profiler: JSON on stdout
    measure.py gemm512 --capture     the same windows between cudaProfilerStart and Stop, each in an NVTX range that
                                     says which it is, each step in one of its own: the capture holds both variants
                                     and how long each window took (nsys profile --capture-range=cudaProfilerApi)

Clock and power drift more between two runs than many a wait costs: hence one process and alternating windows.
"""
import argparse
import contextlib
import json
import statistics
import time

import holdout
import programs
import torch

CASES = programs.CASES | holdout.CASES

ORDER = ("bad", "fixed", "fixed", "bad")
# A captured window: long enough to settle, small enough for an export of a few MB.
CAPTURED_SECONDS = 0.06
FEWEST, MOST = 40, 600
CAPTURED_ROUNDS = 2


def window(step, steps, name=None):
    """Wall time of one step in µs, the GPU drained before and after. With a name, all is marked by NVTX ranges."""
    mark = torch.cuda.nvtx.range if name else lambda _: contextlib.nullcontext()
    torch.cuda.synchronize()
    with mark(f"window {name}"):
        start = time.perf_counter()
        for i in range(steps):
            if name:
                torch.cuda.nvtx.range_push(f"{name} step {i}")
            step(i)
            if name:
                torch.cuda.nvtx.range_pop()
        torch.cuda.synchronize()
        took = time.perf_counter() - start
    return took / steps * 1e6


def steps_for(step, seconds, most):
    """As many steps as take about that long."""
    took = min(window(step, 20) for _ in range(2))
    return max(FEWEST, min(most, int(seconds * 1e6 / took)))


def capture(variants, steps):
    """All windows, recorded. The profiler's first milliseconds are slow, so a first window of each is thrown away."""
    torch.cuda.profiler.start()
    for name in ("bad", "fixed"):
        window(variants[name], steps // 2, f"settling {name}")
    times = {name: [] for name in variants}
    for name in ORDER * CAPTURED_ROUNDS:
        times[name].append(window(variants[name], steps, name))
    torch.cuda.profiler.stop()
    return times


def alone(variants, steps, rounds):
    times = {name: [] for name in variants}
    for _ in range(rounds):
        for name in ORDER:
            times[name].append(window(variants[name], steps))
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--rounds", type=int, default=8, help="rounds of four windows, without a profiler")
    parser.add_argument("--seconds", type=float, default=0.2, help="length of a window")
    parser.add_argument("--capture", action="store_true")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    bad, fixed, changes = CASES[arguments.case]()
    variants = {"bad": bad, "fixed": fixed}
    for _ in range(3):
        window(fixed, 20)
        window(bad, 20)
    if arguments.capture:
        steps = steps_for(bad, CAPTURED_SECONDS, MOST)
        times = capture(variants, steps)
    else:
        steps = steps_for(bad, arguments.seconds, 20_000)
        times = alone(variants, steps, arguments.rounds)
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
