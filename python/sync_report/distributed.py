"""One report of many ranks, read by a Dask cluster.

``python -m sync_report.distributed --scheduler ADDRESS DIR`` lets the workers read the exports in DIR, each where it runs,
and merges what they found here. Dask starts again what a lost worker was at; what cannot be read is named, the rest reported.
Workers need Python, Dask and the program; this package only here.
"""
from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from . import _ranks
from ._binary import SyncReportError, binary
from ._ranks import Part

#: Times that Dask starts a task again whose worker was lost.
RETRIES = 3


def parser() -> argparse.ArgumentParser:
    """The options of the command line.

    >>> parser().parse_args(["--scheduler", "tcp://host:8786", "runs/", "--format", "json"]).inputs
    ['runs/']
    """
    parser = argparse.ArgumentParser(
        prog="python -m sync_report.distributed",
        description="One report of many ranks, read by a Dask cluster.",
        epilog="Exit codes: 0 done; 2 an export could not be read, or there is no scheduler.",
    )
    parser.add_argument("inputs", nargs="+", metavar="DIR", help="folders with exports, or exports; as workers see them")
    parser.add_argument("--scheduler", metavar="ADDRESS", default=os.environ.get("DASK_SCHEDULER_ADDRESS"),
                        help="of Dask; $DASK_SCHEDULER_ADDRESS by default; `local` starts workers on this machine")
    parser.add_argument("--each-host", action="store_true",
                        help="DIR is on each worker's own disk: each machine lists and reads its own")
    parser.add_argument("--binary", metavar="PATH", help="the program on the workers; by default the one here, by its path")
    parser.add_argument("--source-root", metavar="[OLD=]NEW", action="append", default=[],
                        help="where the Python sources are, as workers see them")
    parser.add_argument("--timeout", type=float, default=30.0, metavar="SECONDS", help="to wait for the scheduler, and for workers where none is left")
    parser.add_argument("--format", default="table", help="of the report, as in `sync-report merge`")
    parser.add_argument("-o", "--output", default="-", metavar="FILE", help="where to write it")
    return parser


def say(sentence: str) -> None:
    """A sentence on stderr.

    >>> say("no exports there")
    """
    print(f"sync-report: {sentence}", file=sys.stderr)


def connect(address: Optional[str], timeout: float) -> Any:
    """A client of the cluster.

    >>> try:
    ...     connect(None, 1)
    ... except SyncReportError as error:
    ...     print(str(error)[:21])
    no scheduler is named
    """
    try:
        import distributed
    except ImportError:
        raise SyncReportError("Dask is missing; `pip install distributed` brings it") from None
    if not address:
        raise SyncReportError("no scheduler is named; give --scheduler ADDRESS, or `--scheduler local`")
    try:
        if address == "local":
            import dask

            # Dask gives up a worker that happens to be down this long after any of its deaths, and an export may kill it often.
            dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"})
            return distributed.Client(processes=True, dashboard_address=None, silence_logs=logging.CRITICAL)
        return distributed.Client(address, timeout=timeout)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SyncReportError(f"{address}: no scheduler answers there: {reason}") from None


def tasks(client: Any, inputs: Sequence[str], each_host: bool) -> List[Tuple[str, Optional[List[str]]]]:
    """The exports, each with the workers that can read it; ``None``: all.

    >>> tasks(None, ["sample-profiles/fixed"], False)[0][1] is None
    True
    """
    if not each_host:
        return [(path, None) for path in _ranks.find(inputs)]
    hosts: Dict[str, List[str]] = {}
    for worker, of in client.run(lambda: __import__("socket").gethostname()).items():
        hosts.setdefault(of, []).append(worker)
    first = [workers[0] for workers in hosts.values()]
    found = client.run(_ranks.find, list(inputs), workers=first)
    return [(path, workers) for workers in hosts.values() for path in found[workers[0]]]


def _read(
    client: Any, found: Sequence[Tuple[str, Optional[List[str]]]], options: List[str], program: str, patience: float
) -> Iterator[Part]:
    """Parts as workers finish them.

    Dask charges a lost worker to every task that was there, so an export that kills workers takes neighbours along.
    Lost exports are read once more at the end, one at a time. Unread exports are named once no worker is left for
    ``patience`` seconds.

    ::

        worker 1   [rank0][rank7, killed][rank21, waiting]      [rank7, killed]
        worker 2   [rank14][rank7, killed]                                      [rank21]
    """
    from distributed import KilledWorker

    def submit(path: str, workers: Optional[List[str]]) -> Any:
        # Reading is no pure function of the name: the file may have changed since the cluster last saw it.
        return client.submit(_ranks.read, path, options, program, pure=False, retries=RETRIES, workers=workers)

    def part(path: str, future: Any) -> Part:
        if future.status == "finished":
            result: Part = future.result()
            return result
        error = future.exception() if future.status == "error" else None
        reason = f"{type(error).__name__}: {error}" if error else "none is left"
        return Part(path, said=f"its workers were lost: {reason}".splitlines()[0])

    # Asked before work may kill them. A cluster without workers may start some once there is work.
    seen = time.monotonic() if client.nthreads() else float("inf")
    futures = {submit(*task): task for task in found}
    lost = []
    for future in _ended(client, list(futures), patience, seen):
        task = futures.pop(future)
        if future.status == "error" and isinstance(future.exception(), KilledWorker):
            lost.append(task)
        else:
            yield part(task[0], future)
    for task in lost:
        for future in _ended(client, [submit(*task)], patience, time.monotonic()):
            # The next export does not wait as long again if no worker is left.
            patience = patience if future.done() else 0
            yield part(task[0], future)


def _ended(client: Any, futures: List[Any], patience: float, seen: float) -> Iterator[Any]:
    """Futures in the order in which they end; once all workers were gone for ``patience`` seconds, what is left as it is.

    ``seen``: when there was a worker last.
    """
    from distributed import as_completed

    ready = as_completed(futures)
    left = dict.fromkeys(futures)
    while left:
        for future in ready.next_batch(block=False):
            del left[future]
            yield future
        if ready.has_ready():
            continue
        time.sleep(0.1)
        if client.nthreads():
            seen = time.monotonic()
        elif time.monotonic() - seen > patience:
            yield from left
            return


def _run(args: argparse.Namespace) -> int:
    """Reads, merges and prints; the exit code."""
    program = args.binary or os.path.abspath(binary())
    options = [word for root in args.source_root for word in ("--source-root", root)]
    client = connect(args.scheduler, args.timeout)
    import cloudpickle  # comes with Dask

    # Workers get the code with the task: another version of it there, or none, makes no difference.
    cloudpickle.register_pickle_by_value(_ranks)
    try:
        found = tasks(client, args.inputs, args.each_host)
        if not found:
            raise SyncReportError(f"{', '.join(args.inputs)}: no exports there (.sqlite, _pqtdir, .nsys-rep)")
        parts = list(_read(client, found, options, program, args.timeout))
    finally:
        client.close()
    parts.sort(key=lambda part: _ranks.natural(part.path))
    for part in parts:
        for line in part.said.splitlines():
            line = line.replace("sync-report: ", "", 1)
            say(line if line.startswith(part.path) else f"{part.path}: {line}")
    failed = sum(part.failed for part in parts)
    if failed == len(parts):
        raise SyncReportError("none of the exports could be read")
    merged = _ranks.merge(parts, ["--format", args.format, "-o", args.output], os.path.abspath(binary()))
    sys.stdout.flush()
    sys.stdout.buffer.write(merged.stdout)
    sys.stdout.buffer.flush()
    sys.stderr.write(merged.stderr.decode(errors="replace"))
    if failed:
        say(f"{failed} of {len(parts)} exports could not be read; the report is of the others")
    return 2 if any(part.said for part in parts) else merged.returncode


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """The command.

    >>> main(["--scheduler", "tcp://127.0.0.1:9", "--timeout", "0.2", "sample-profiles"])
    2
    """
    try:
        return _run(parser().parse_args(arguments))
    except SyncReportError as error:
        say(str(error))
        return error.code


if __name__ == "__main__":
    sys.exit(main())
