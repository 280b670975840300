"""Two ranks, one all-reduce an iteration. Rank 1 makes itself late to each by a wait of its own.

    RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29511 python3 two_ranks.py   (and RANK=1)
    python3 two_ranks.py --spawn                                                       both as children of this process

LATE_MS (3): length of the extra GPU work of rank 1, which is on a stream of its own: nothing but the wait keeps the
all-reduce. FIXED=1: without the wait (the work is done, nobody reads it).
TRUTH=DIR: rank<N>.json there gets, per iteration, how long the all-reduce took from when this rank's GPU was ready for it.
Both end together, so the difference between the ranks is by how much rank 1 came late, with no clock compared.
"""
import json
import os
import subprocess
import sys
import time

STEPS, WARMUP = 30, 8


def spawn():
    env = dict(os.environ, WORLD_SIZE="2", MASTER_ADDR="127.0.0.1")
    env.setdefault("MASTER_PORT", "29512")
    children = [subprocess.Popen([sys.executable, __file__], env=dict(env, RANK=str(r))) for r in range(2)]
    sys.exit(max(child.wait() for child in children))


if "--spawn" in sys.argv:
    spawn()

import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
fixed = os.environ.get("FIXED") == "1"
torch.cuda.set_device(rank)
device = torch.device("cuda", rank)
side = torch.cuda.Stream()


def cycles_per_ms():
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(1_000_000)
    torch.cuda.synchronize()
    start.record()
    torch.cuda._sleep(20_000_000)
    end.record()
    torch.cuda.synchronize()
    return 20_000_000 / start.elapsed_time(end)


def host_work(seconds):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def extra_metric(x, cycles):
    """What only rank 1 does: GPU work of known length beside the rest, whose result it reads before it goes on."""
    with torch.cuda.stream(side):
        torch.cuda._sleep(cycles)
        score = x.sum()
        value = 0.0 if fixed else score.item()  # THE WAIT
    host_work(0.0003)
    return value


def step(i, weight, x, grad, cycles, ready, done):
    torch.cuda.nvtx.range_push(f"iteration {i}")
    y = x @ weight
    grad.copy_(y)
    if rank == 1:
        extra_metric(x, cycles)
    ready.record()
    dist.all_reduce(grad)
    done.record()
    weight.add_(grad, alpha=1e-6)
    torch.cuda.nvtx.range_pop()


def main():
    dist.init_process_group("nccl", device_id=device)
    torch.manual_seed(0)
    weight = torch.randn(2048, 2048, device=device) * 0.01
    x = torch.randn(2048, 2048, device=device)
    grad = torch.empty(2048, 2048, device=device)
    cycles = int(cycles_per_ms() * float(os.environ.get("LATE_MS", "3")))
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(WARMUP + STEPS)]
    for i in range(WARMUP):
        step(i, weight, x, grad, cycles, *events[i])
    dist.barrier()
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    began = time.perf_counter()
    for i in range(STEPS):
        step(i, weight, x, grad, cycles, *events[WARMUP + i])
    torch.cuda.synchronize()
    took = (time.perf_counter() - began) * 1e3 / STEPS
    own = [a.elapsed_time(b) for a, b in events[WARMUP:]]
    if os.environ.get("TRUTH"):
        with open(os.path.join(os.environ["TRUTH"], f"rank{rank}.json"), "w") as out:
            json.dump({"rank": rank, "all_reduce_ms": own, "iteration_ms": took}, out)
    print(f"rank {rank} pid {os.getpid()}: {took:.3f} ms an iteration", flush=True)
    dist.barrier()
    torch.cuda.synchronize()
    time.sleep(0.5)  # nsys shuts the program down when the first rank stops
    torch.cuda.profiler.stop()
    time.sleep(1)
    dist.destroy_process_group()


main()
