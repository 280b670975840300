#!/usr/bin/env python3
"""What one CUDA call costs the host, alone and under the profiler: where sync-report's figures for the profiler's own
time come from. No program of programs.py is in here, so those can test the figures.

    overhead.py              without a profiler: JSON on stdout, µs a call
    overhead.py --capture    the same loops between cudaProfilerStart and Stop, each in an NVTX range `loop NAME`, whose
                             length over its calls is the time under the profiler
"""
import argparse
import json
import statistics
import time

import torch

CALLS = 400
LONG_NS = (20_000, 100_000, 300_000, 1_000_000)


def loops():
    """Name, what is repeated, whether it runs less often."""
    x = torch.zeros(16, device="cuda")
    one = torch.zeros(1, device="cuda")
    small = torch.zeros(1024)
    pinned = small.pin_memory()
    on_gpu = torch.zeros(1024, device="cuda")
    stream, event = torch.cuda.current_stream(), torch.cuda.Event()
    event.record()
    nothing = lambda: None

    def marked():
        torch.cuda.nvtx.range_push("a range")
        torch.cuda.nvtx.range_pop()

    def launch_and_sync():
        x.add_(1)
        torch.cuda.synchronize()

    yield "nothing", nothing, False
    yield "range", marked, False
    yield "launch", lambda: x.add_(1), False
    yield "device-sync", torch.cuda.synchronize, False
    yield "stream-sync", stream.synchronize, False
    yield "event-record", event.record, False
    yield "event-sync", event.synchronize, False
    yield "upload-pinned", lambda: on_gpu.copy_(pinned, non_blocking=True), False
    yield "upload-pageable", lambda: on_gpu.copy_(small), False
    yield "item", one.item, False
    yield "launch-and-sync", launch_and_sync, False
    for ns in LONG_NS:
        cycles = ns * 2  # about 2 GHz

        def long(cycles=cycles):
            torch.cuda._sleep(cycles)
            torch.cuda.synchronize()

        yield f"long-{ns // 1000}us", long, True

    def queued():
        """The GPU's side: a hundred kernels wait behind a long one, so the host does not matter."""
        torch.cuda._sleep(4_000_000)
        for _ in range(100):
            x.add_(1)
        torch.cuda.synchronize()

    yield "queued-100", queued, True


def repeat(what, calls, name=None):
    torch.cuda.synchronize()
    if name:
        torch.cuda.nvtx.range_push(f"loop {name}")
    start = time.perf_counter()
    for _ in range(calls):
        what()
    torch.cuda.synchronize()
    took = time.perf_counter() - start
    if name:
        torch.cuda.nvtx.range_pop()
    return took / calls * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--capture", action="store_true")
    capture = parser.parse_args().capture
    every = list(loops())
    calls = lambda seldom: CALLS // 10 if seldom else CALLS
    for _, what, seldom in every:
        repeat(what, calls(seldom))
    if capture:
        torch.cuda.profiler.start()
    times = {name: [] for name, _, _ in every}
    for turn in range(3 if capture else 9):
        for name, what, seldom in every:
            times[name].append(repeat(what, calls(seldom), name if capture else None))
    if capture:
        torch.cuda.profiler.stop()
    print(json.dumps({name: round(statistics.median(took), 3) for name, took in times.items()}))


if __name__ == "__main__":
    main()
