"""Many ranks on Dask and in nsys' recipes: nothing is lost, whoever dies."""
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import sync_report
from sync_report import _ranks, distributed

def script(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.fixture()
def program() -> str:
    return sync_report.binary()


@pytest.fixture()
def runs(tmp_path: Path) -> Path:
    """Four ranks."""
    folder = tmp_path / "runs"
    folder.mkdir()
    for rank, name in enumerate(["train_mlp_shapes", "train_mlp_shapes", "fixed/before", "train_mlp_shapes"]):
        shutil.copy(f"sample-profiles/{name}.sqlite", folder / f"rank{rank * 7}.sqlite")
    return folder


@pytest.fixture(scope="module")
def cluster():
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        yield cluster.scheduler_address


def merged(scheduler: str, runs: Path, output: Path, *options: str) -> int:
    return distributed.main(["--scheduler", scheduler, str(runs), "--format", "json", "-o", str(output), *options])


def in_one_process(runs: Path, program: str, output: Path) -> bytes:
    parts = [_ranks.read(path, program=program) for path in _ranks.find([str(runs)])]
    ran = _ranks.merge(parts, ["--format", "json", "-o", str(output)], program)
    assert ran.returncode == 0, ran.stderr
    return output.read_bytes()


def test_two_workers_give_the_same_bytes_as_one_process(program, runs, cluster, tmp_path):
    alone = in_one_process(runs, program, tmp_path / "alone.json")
    assert merged(cluster, runs, tmp_path / "dask.json") == 0
    assert (tmp_path / "dask.json").read_bytes() == alone
    assert merged(cluster, runs, tmp_path / "hosts.json", "--each-host") == 0
    assert (tmp_path / "hosts.json").read_bytes() == alone


def test_what_a_lost_worker_was_at_is_done_again(program, runs, cluster, tmp_path):
    """
    worker 1   [rank0][rank7, killed]      [rank…]     started again by its nanny
    worker 2   [rank14]      [rank21][rank7]
    """
    alone = in_one_process(runs, program, tmp_path / "alone.json")
    died = tmp_path / "died"
    text = f'#!/bin/sh\ncase "$*" in *rank7.sqlite*) mkdir {died} 2>/dev/null && kill -9 $PPID ;; esac\nexec {program} "$@"\n'
    deadly = script(tmp_path / "deadly", text)
    assert merged(cluster, runs, tmp_path / "dask.json", "--binary", deadly) == 0
    assert died.is_dir(), "no worker died"
    assert (tmp_path / "dask.json").read_bytes() == alone


def test_a_task_that_kills_every_worker_is_named_and_its_neighbours_are_read(program, runs, tmp_path, capfd):
    """
    one worker, four threads   [rank0   [rank0   [rank0   [rank0             [rank0] [rank7, killed] [rank14] [rank21]
                               [rank7, killed four times, its neighbours too
    """
    import dask
    from distributed import LocalCluster

    # A worker killed before its nanny knows that it runs is not started again: Dask takes it for one that cannot start.
    text = f'#!/bin/sh\ncase "$*" in *rank7.sqlite*) sleep 0.5; kill -9 $PPID ;; *) sleep 1 ;; esac\nexec {program} "$@"\n'
    deadly = script(tmp_path / "deadly", text)
    # Nor is one that is down when the cluster looks, so long after an earlier death.
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"})
    with patient, LocalCluster(n_workers=1, threads_per_worker=4, processes=True, dashboard_address=":0") as cluster:
        assert merged(cluster.scheduler_address, runs, tmp_path / "dask.json", "--binary", deadly) == 2
    said = capfd.readouterr().err
    assert "rank7.sqlite: its workers were lost" in said and "1 of 4 exports could not be read" in said
    (runs / "rank7.sqlite").unlink()
    assert (tmp_path / "dask.json").read_bytes() == in_one_process(runs, program, tmp_path / "alone.json")


def test_where_no_worker_is_left_what_was_not_read_is_named(program, runs, tmp_path, capfd):
    """
    one worker that nobody starts again   [rank0, killed]  … 1 s …  rank7, rank14, rank21 are not read
    """
    from distributed import Client, LocalCluster

    deadly = script(tmp_path / "deadly", f'#!/bin/sh\nkill -9 $PPID\nexec {program} "$@"\n')
    with LocalCluster(n_workers=0, processes=True, dashboard_address=":0") as cluster:
        address = cluster.scheduler_address
        command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--nthreads", "1", "--no-dashboard"]
        worker = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
        with Client(address) as client:
            client.wait_for_workers(1)
        assert merged(address, runs, tmp_path / "dask.json", "--binary", deadly, "--timeout", "1") == 2
        worker.wait()
    said = capfd.readouterr().err
    assert said.count("its workers were lost") == 4 and "none of the exports could be read" in said, said


def test_a_file_that_cannot_be_read_is_reported_and_the_rest_merged(program, runs, cluster, tmp_path, capfd):
    good = in_one_process(runs, program, tmp_path / "alone.json")
    (runs / "rank28.sqlite").write_bytes((runs / "rank0.sqlite").read_bytes()[:5000])
    (runs / "rank35.sqlite").write_text("no database")
    assert merged(cluster, runs, tmp_path / "dask.json") == 2
    said = capfd.readouterr().err
    for words in ["rank28.sqlite: ", "rank35.sqlite: ", "2 of 6 exports could not be read; the report is of the others"]:
        assert words in said
    assert (tmp_path / "dask.json").read_bytes() == good


def test_bad_input_is_a_sentence(program, runs, cluster, tmp_path, capfd):
    empty = tmp_path / "empty"
    empty.mkdir()
    for arguments, words in [
        (["--scheduler", cluster, str(empty)], "no exports there"),
        (["--scheduler", cluster, str(empty / "none.sqlite")], "none of the exports could be read"),
        (["--scheduler", "tcp://127.0.0.1:9", "--timeout", "0.5", str(runs)], "no scheduler answers there"),
        (["--scheduler", "nonsense://", str(runs)], "no scheduler answers there"),
        (["--scheduler", cluster, "--binary", "/no/such/program", str(runs)], "/no/such/program"),
        ([str(runs)], "no scheduler is named"),
    ]:
        assert distributed.main(arguments) == 2, arguments
        said = capfd.readouterr()
        assert words in said.err and "Traceback" not in said.err and not said.out, said.err


@pytest.mark.parametrize("mode", ["none", "concurrent", "dask-futures"])
def test_the_recipe(program, runs, tmp_path, mode):
    """The recipe framework of nsys is NVIDIA's: the test runs where `.ci/run` has unpacked it."""
    nsys = os.environ.get("SYNC_REPORT_NSYS")
    if not nsys:
        pytest.skip("not run: SYNC_REPORT_NSYS names no installation of nsys")
    (framework,) = Path(nsys).glob("target-*/python/packages")
    shutil.copy(runs / "rank7.sqlite", runs / "rank7.light.sqlite")
    for export in runs.iterdir():
        export.with_suffix(".nsys-rep").write_text("older than its export")
        os.utime(export.with_suffix(".nsys-rep"), (1, 1))
    (runs / "rank28.nsys-rep").write_text("no report")
    package = str(Path(sync_report.__file__).parents[1])
    environment = {**os.environ, "NSYS_DIR": nsys, "NSYS_RECIPE_PATH": package, "PYTHONPATH": f"{framework}:{package}"}
    output = tmp_path / "out"
    command = [sys.executable, "-m", "nsys_recipe", "sync_report", "--mode", mode, "--input", str(runs)]
    command += ["--output", str(output), "--binary", program]
    ran = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode, "Traceback" in ran.stderr) == (2, False), ran.stderr
    assert "rank28.nsys-rep" in ran.stderr
    names = {path.name for path in output.iterdir()}
    assert {"report.html", "report.json", "ranks", "out.nsys-analysis"} <= names, names
    assert len(list((output / "ranks").iterdir())) == 4
    assert (output / "report.json").read_bytes() == in_one_process(runs, program, tmp_path / "alone.json")


def test_without_dask_a_sentence_says_so(monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert distributed.main(["--scheduler", "local", "sample-profiles"]) == 2
    assert "pip install distributed" in capfd.readouterr().err
