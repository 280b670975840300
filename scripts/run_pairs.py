#!/usr/bin/env python3
"""Runs the before/after pairs of the catalogue and says of each whether it keeps its promise.

    sync-report explain --format json > listing.json
    python3 scripts/run_pairs.py listing.json -o src/catalogue/pairs.json     on a GPU: waits and values
    python3 scripts/run_pairs.py listing.json --cpu                          values and syntax, where torch is
    python3 scripts/run_pairs.py listing.json --syntax                       syntax alone, without torch

A pair is promised to wait less, or later, and to compute the same. Its snippets stand in a training loop, so each is
run in one: what `pair_setups.py` prepares, then the snippet for some steps, then what it does after the loop.

    # before the loop      statements up to the next such line run once, uncounted
    # in the loop          from here on they run in every step
    # after the loop       from here on they run once, counted
    idx = ...  # once      a statement marked so runs before the loop

Waits are counted where PyTorch's profiler saw a CUDA call that blocks; PyTorch's own `set_sync_debug_mode` is asked too.
Each snippet runs twice, the second time measured: what happens once per process is no promise of the fix. Results are
compared with torch.testing.assert_close: its tolerance for the dtype unless the entry gives one. Exit code 1: a pair
that ran broke its promise.
"""

import argparse
import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from pair_setups import NOT_RUN, PRELUDE, SETUPS  # noqa: E402

STEPS = 4
# Of one pair, with the loading of what it needs: on a busy machine PyTorch alone takes a minute.
TIMEOUT_S = 120
# Calls of the CUDA runtime that return only when the GPU has got somewhere.
BLOCKING = r"^cu(da)?(StreamSynchronize|DeviceSynchronize|EventSynchronize|CtxSynchronize|Memcpy(DtoH|HtoD)?(_v2)?)$"
# Where a blocking copy hides: it returns late.
COPY = r"^cudaMemcpyAsync$"


# -- snippets -----------------------------------------------------------------------------------------------------------


def parts(snippet: str) -> dict[str, str]:
    """A snippet cut into what runs before the loop, in it and after it."""
    cut = {"before": [], "in": [], "after": []}
    place = "before" if re.search(r"^# in the loop", snippet, re.M) else "in"
    lines = snippet.splitlines()
    once = set()
    for node in ast.parse(snippet).body:
        if lines[node.end_lineno - 1].endswith("# once"):
            once.update(range(node.lineno, node.end_lineno + 1))
    for number, line in enumerate(lines, 1):
        if found := re.match(r"# (before|in|after) the loop", line):
            place = found[1]
        cut["before" if number in once else place].append(line)
    return {name: "\n".join(lines) + "\n" for name, lines in cut.items()}


def program(snippet: str, setup: dict) -> tuple[str, str]:
    """What runs uncounted before the loop, and the loop with what follows it."""
    if "around" in setup:
        snippet = re.sub(r"^( *)SNIPPET", lambda m: textwrap.indent(snippet, m[1]), setup["around"], flags=re.M)
    cut = parts(snippet)
    body = setup.get("first", "") + "\n"
    before, after = cut["before"], cut["after"]
    if setup.get("once"):
        before += cut["in"]
    else:
        body += cut["in"]
    body += setup.get("then", "") + "\n"
    indented = "".join(f"    {line}\n" for line in body.splitlines())
    return before, f"for step in range(1, {setup.get('steps', STEPS)} + 1):\n    pass\n{indented}{after}"


def stored(code: str) -> set[str]:
    """Names that code assigns, also by item or in place."""
    names = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            for target in ast.walk(node):
                if isinstance(target, (ast.Name, ast.Subscript)) and isinstance(target.ctx, ast.Store):
                    root = target
                    while isinstance(root, ast.Subscript):
                        root = root.value
                    if isinstance(root, ast.Name):
                        names.add(root.id)
    return names


def compared(entry: dict, setup: dict) -> tuple[list[str], list[str]]:
    """Expressions whose values must agree: those that the set-up names, else what both snippets assign."""
    if "same" in setup:
        same = setup["same"] or []
        pairs = [(one, one) if isinstance(one, str) else one for one in ([same] if isinstance(same, (str, tuple)) else same)]
        return [b for b, _ in pairs], [a for _, a in pairs]
    both = sorted(stored(entry["before"]) & stored(entry["after"]))
    return both, both


def syntax(entry: dict, setup: dict) -> str | None:
    """What is wrong with a pair as Python, names that nothing gives included."""
    import builtins

    for which in ("before", "after"):
        try:
            before, loop = program(entry[which], setup)
            tree = ast.parse("\n".join([PRELUDE, setup.get("setup", ""), before, loop]))
        except SyntaxError as error:
            return f"{which}: {error}"
        given = set(dir(builtins)) | {"device", "which", "step"}
        for node in ast.walk(tree):
            match node:
                case ast.Name(id=name, ctx=ast.Store()) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    given.add(name)
                case ast.arg(arg=name):
                    given.add(name)
                case ast.alias(name=name, asname=other):
                    given.add(other or name.split(".")[0])
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        if used - given:
            return f"{which}: nothing gives {', '.join(sorted(used - given))}"
    return None


# -- running ------------------------------------------------------------------------------------------------------------


def run_one(entry: dict, which: str, setup: dict, cpu: bool, measured: bool) -> tuple[dict, list]:
    """Runs one snippet; what was counted, and the values of the compared expressions."""
    import torch

    before, loop = program(entry[which], setup)
    names = {"device": "cpu" if cpu else "cuda", "which": which}
    warned = []

    def run(code: str, what: str) -> None:
        code = on_cpu(code) if cpu else code
        exec(compile(code, f"{entry['id']} {what}", "exec"), names)

    run(PRELUDE, "prelude")
    run(setup.get("setup", ""), "set-up")
    run(before, f"{which}, before the loop")
    seen = {}
    if cpu or not measured:
        run(loop, which)
    else:
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("warn")
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        try:
            with warnings.catch_warnings(record=True) as warned, torch.profiler.profile(activities=activities) as profile:
                warnings.simplefilter("always")
                with torch.profiler.record_function("pair"):
                    run(loop, which)
        finally:
            torch.cuda.set_sync_debug_mode("default")
        seen = count(profile, setup.get("count", BLOCKING))
        seen["warned"] = sum("synchronizing" in str(w.message) for w in warned)
    if not cpu:
        torch.cuda.synchronize()
    expressions = compared(entry, setup)[which == "after"]
    return seen, [eval(on_cpu(e) if cpu else e, names) for e in expressions]


def count(profile, pattern: str) -> dict:
    """Blocking calls between the begin and the end of the snippet, and how long they and the copies took."""
    events = list(profile.profiler.kineto_results.events())
    pair = next(e for e in events if e.name() == "pair")
    start, end = pair.start_ns(), pair.start_ns() + pair.duration_ns()
    inside = [e for e in events if start <= e.start_ns() < end]
    blocked = [e.duration_ns() for e in inside if re.search(f"{BLOCKING}|{COPY}", e.name())]
    return {
        "waits": sum(bool(re.search(pattern, e.name())) for e in inside),
        "blocked_us": round(sum(blocked) / 1e3),
        "calls": sorted({e.name() for e in inside if e.name().startswith("cu")}),
    }


def on_cpu(code: str) -> str:
    return re.sub(r"(['\"])cuda\1", "'cpu'", code)


def without_gpu() -> None:
    """Stands in for what a machine without a GPU refuses: pinned memory, streams, events, `.cuda()`."""
    import torch

    # Small tensors, and as many processes as cores.
    torch.set_num_threads(1)

    class Nothing:
        def __init__(self, *args, **options): ...
        def __enter__(self): return self
        def __exit__(self, *args): ...
        def query(self): return True
        def elapsed_time(self, other): return 1.0
        def __getattr__(self, name): return lambda *args, **options: None

    def same(value, *args, **options):
        return value

    def unpinned(function):
        return lambda *args, pin_memory=False, **options: function(*args, **options)

    for kind in (torch.Tensor, torch.nn.Module):
        kind.cuda = same
    torch.Tensor.pin_memory = same
    torch.Tensor.record_stream = same
    for name in ("tensor", "empty", "zeros"):
        setattr(torch, name, unpinned(getattr(torch, name)))
    for name in ("Event", "Stream", "current_stream", "stream"):
        setattr(torch.cuda, name, Nothing)
    for name in ("synchronize", "empty_cache", "_sleep"):
        setattr(torch.cuda, name, lambda *args: None)


def plain(value):
    """A value as a tensor or a list of such, on the host."""
    import torch

    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        return value.to(torch.complex128 if value.is_complex() else torch.float64), value.dtype
    if isinstance(value, (bool, int, float)):
        return torch.tensor(value, dtype=torch.float64), torch.float64
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value], None
    return value, None


def differ(one, other, tolerance: float | None) -> str | None:
    """How two values differ; None where they agree."""
    import torch

    (a, a_type), (b, b_type) = plain(one), plain(other)
    if isinstance(a, list) and isinstance(b, torch.Tensor):
        return differ(one, list(other), tolerance)
    if isinstance(b, list) and isinstance(a, torch.Tensor):
        return differ(list(one), other, tolerance)
    if isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            return f"{len(a)} values, {len(b)} values"
        return next((d for pair in zip(one, other) if (d := differ(*pair, tolerance))), None)
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return None if a == b else f"{a!r}, {b!r}"
    # Python's numbers are as exact as the tensor that they were read from.
    floating = [t for t in (a_type, b_type) if t.is_floating_point and t != torch.float64] or [torch.float64]
    default = torch.testing._comparison.default_tolerances(*floating)
    rtol, atol = (tolerance, tolerance) if tolerance else default
    try:
        torch.testing.assert_close(a, b, rtol=rtol, atol=atol, equal_nan=True, check_dtype=False)
    except AssertionError as error:
        return " ".join(str(error).split())[:200]
    return None


def run_pair(entry: dict, setup: dict, cpu: bool) -> dict:
    """Runs a pair; its row of the table."""
    import torch

    gpu = "cpu" if cpu else torch.cuda.get_device_name()
    row = {"id": entry["id"], "torch": torch.__version__, "gpu": gpu, "steps": setup.get("steps", STEPS)}
    values = {}
    for which in ("before", "after"):
        try:
            for measured in [True] if cpu or setup.get("cold") else [False, True]:
                seen, values[which] = run_one(entry, which, setup, cpu, measured)
        except BaseException as error:  # a snippet may do anything
            message = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            return row | {"outcome": "failed", "why": f"{which}: {message}"}
        if seen:
            row |= {f"waits_{which}": seen["waits"], f"blocked_{which}_us": seen["blocked_us"]}
            row |= {f"warned_{which}": seen["warned"], f"calls_{which}": seen["calls"]}
    names = [b if a == b else f"{b} / {a}" for b, a in zip(*compared(entry, setup))]
    row["compared"] = "; ".join(names)
    different = [d for one, other in zip(values["before"], values["after"]) if (d := differ(one, other, setup.get("tolerance")))]
    row["values"] = "differ" if different else "equal" if names else "not compared"
    row["why"] = "; ".join(different) or setup.get("why", "")
    row["outcome"] = "ran" if cpu else judge(row, setup)
    return row


def judge(row: dict, setup: dict) -> str:
    """What the measured waits say of the promise."""
    if setup.get("later"):
        return "later" if 2 * row["blocked_after_us"] < row["blocked_before_us"] else "not later"
    if row["waits_before"] == 0:
        return "no wait before"
    return "fewer" if row["waits_after"] < row["waits_before"] else "not fewer"


def kept(row: dict) -> bool:
    """Whether a pair that was to be run kept its promise; a version that no longer waits breaks none."""
    fine = ("ran", "later", "fewer", "not run", "parsed")
    return row.get("values") != "differ" and (row["outcome"] in fine or row.get("known") is True)


# -- many ---------------------------------------------------------------------------------------------------------------


def worker(listing: str, ids: list[str], cpu: bool) -> None:
    """Runs pairs one after the other, one line of JSON each."""
    entries = {e["id"]: e for e in read(listing)}
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if cpu:
        without_gpu()
    for name in ids:
        row = run_pair(entries[name], SETUPS[name], cpu)
        print(json.dumps(row), file=out, flush=True)


def missing(libraries: str) -> str:
    """The first of these that is not installed."""
    return next((name for name in libraries.split() if importlib.util.find_spec(name) is None), "")


def run_all(args, ids: list[str]) -> dict[str, dict]:
    """Pairs in processes of their own: one that hangs or takes its process with it loses itself only."""
    alone = [i for i in ids if SETUPS[i].get("alone")]
    shared = [i for i in ids if i not in alone]
    queues = [q for n in range(args.jobs) if (q := shared[n :: args.jobs])] + [[i] for i in alone]
    rows, running = {}, []
    while queues or running:
        while queues and len(running) < args.jobs:
            queue = queues.pop(0)
            command = [sys.executable, __file__, args.listing, "--worker", ",".join(queue)] + ["--cpu"] * args.cpu
            errors = open(os.devnull, "w") if not args.verbose else None
            out = tempfile.TemporaryFile("w+")
            process = subprocess.Popen(command, stdout=out, stderr=errors)
            running.append((process, queue, [time.monotonic()], out))
        for process, queue, since, out in list(running):
            ended = process.poll() is not None
            # Read by place: the file's own position is where the worker writes.
            written = os.pread(out.fileno(), 1 << 24, 0).decode()
            for line in written.split("\n")[len(since) - 1 : -1]:
                row = json.loads(line)
                since.append(0.0)
                rows[row["id"]] = row
                queue.remove(row["id"])
                since[0] = time.monotonic()
            late = time.monotonic() - since[0] > TIMEOUT_S
            if ended or late:
                running.remove((process, queue, since, out))
                process.kill()
                process.wait()
                if queue:
                    why = f"no result after {TIMEOUT_S} s" if late else f"its process ended with {process.returncode}"
                    # A slow processor says nothing of a pair.
                    outcome = "not run" if late and args.cpu else "failed"
                    rows[queue[0]] = {"id": queue[0], "outcome": outcome, "why": why}
                    queues += [queue[1:]] if queue[1:] else []
        time.sleep(0.02)
    return rows


def read(listing: str) -> list[dict]:
    """Entries that have a pair."""
    text = sys.stdin.read() if listing == "-" else Path(listing).read_text()
    found = [{"id": e["id"], **e["fix"]} for e in json.loads(text)["patterns"]]
    return [e for e in found if e["before"]]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("listing", help="what `sync-report explain --format json` prints")
    options.add_argument("-o", "--output", help="where to write the table (JSON, a row a line)")
    options.add_argument("--raw", help="where to write every figure (JSON)")
    options.add_argument("--cpu", action="store_true", help="values alone, without a GPU")
    options.add_argument("--syntax", action="store_true", help="parse alone, without torch")
    options.add_argument("--only", default="", help="ids, with commas")
    options.add_argument("--jobs", type=int, default=min(8, os.cpu_count() or 1))
    options.add_argument("--verbose", action="store_true", help="show what the snippets write to stderr")
    options.add_argument("--worker", help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.worker:
        worker(args.listing, args.worker.split(","), args.cpu)
        return 0
    entries = read(args.listing)
    unknown = [e["id"] for e in entries if e["id"] not in SETUPS and e["id"] not in NOT_RUN]
    if unknown:
        sys.exit(f"neither a set-up nor a reason for {', '.join(unknown)}: pair_setups.py")
    left = (set(SETUPS) | set(NOT_RUN)) - {e["id"] for e in entries}
    if left:
        sys.exit(f"pair_setups.py names entries that have no pair: {', '.join(sorted(left))}")
    everything = entries
    if args.only:
        entries = [e for e in entries if e["id"] in args.only.split(",")]
    rows = {}
    for name in (e["id"] for e in entries if e["id"] in NOT_RUN):
        reason, why = NOT_RUN[name]
        rows[name] = {"id": name, "outcome": "not run", "reason": reason, "why": why}
    todo = []
    for entry in entries:
        name = entry["id"]
        if name in NOT_RUN:
            continue
        wrong = syntax(entry, SETUPS[name])
        if wrong:
            rows[name] = {"id": name, "outcome": "failed", "why": wrong}
        elif args.syntax:
            rows[name] = {"id": name, "outcome": "parsed"}
        elif library := missing(SETUPS[name].get("needs", "")):
            rows[name] = {"id": name, "outcome": "not run", "reason": "library", "why": f"needs {library}"}
        elif args.cpu and SETUPS[name].get("gpu"):
            rows[name] = {"id": name, "outcome": "not run", "why": "needs a GPU"}
        else:
            todo.append(name)
    rows |= run_all(args, todo)
    rows = [rows[e["id"]] for e in entries]
    for row in rows:
        row["known"] = SETUPS.get(row["id"], {}).get("outcome") == row["outcome"]
    report(rows)
    if args.raw:
        Path(args.raw).write_text(json.dumps(rows, indent=1))
    if args.output:
        save(Path(args.output), everything, entries, rows)
    return 0 if all(kept(row) for row in rows) else 1


def save(output: Path, everything: list[dict], entries: list[dict], rows: list[dict]) -> None:
    """Writes the table; rows of entries that were left out stay as they were."""
    table = {row["id"]: row for row in json.loads(output.read_text())} if output.exists() else {}
    table |= {row["id"]: committed(row, entry) for row, entry in zip(rows, entries)}
    lines = ",\n".join(json.dumps(table[e["id"]], ensure_ascii=False) for e in everything if e["id"] in table)
    output.write_text(f"[\n{lines}\n]\n")


def committed(row: dict, entry: dict) -> dict:
    """A row as `explain` reads it; with it the checksum (FNV-1a) of the snippets that it holds for."""
    checksum = 0xCBF29CE484222325
    for byte in f"{entry['before']}\0{entry['after']}".encode():
        checksum = (checksum ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    kept = {"id": row["id"], "snippets": f"{checksum:016x}", "outcome": row["outcome"].replace(" ", "-")}
    kept |= {"reason": row["reason"]} if "reason" in row else {}
    kept |= {"why": row.get("why") or ""}
    if "waits_before" in row:
        kept["steps"] = row["steps"]
        kept["waits"] = [row["waits_before"], row["waits_after"]]
        kept["blocked_us"] = [row["blocked_before_us"], row["blocked_after_us"]]
        kept |= {"values": row["values"].replace(" ", "-"), "compared": row["compared"]}
        kept |= {"torch": row["torch"].split("+")[0], "gpu": row["gpu"]}
    return kept


def report(rows: list[dict]) -> None:
    for row in rows:
        if row["outcome"] == "not run":
            continue
        waits = f"{row['waits_before']} → {row['waits_after']}" if "waits_before" in row else ""
        blocked = f"{row['blocked_before_us']} → {row['blocked_after_us']} µs" if "waits_before" in row else ""
        mark = " " if kept(row) else "!"
        print(f"{mark} {row['id']}  {row['outcome']:<15}{waits:<12}{blocked:<22}{row.get('values', ''):<14}{row.get('why') or ''}")
    tally = {}
    for row in rows:
        tally[row["outcome"]] = tally.get(row["outcome"], 0) + 1
    equal = sum(row.get("values") == "equal" for row in rows)
    broken = sum(not kept(row) for row in rows)
    outcomes = ", ".join(f"{n} {o}" for o, n in sorted(tally.items()))
    print(f"{len(rows)} pairs: {outcomes}; {equal} with equal values; {broken} broken")


if __name__ == "__main__":
    sys.exit(main())
