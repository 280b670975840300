"""Traces by PyTorch's profiler: which steps, which files, which lines."""
import gzip
import importlib.util
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import fake_torch
import pytest
import sync_report
from sync_report import _profile


def train(said, steps, count):
    for _ in steps(range(count)):
        said.append("work")


def step(number):
    return [f"push step {number}", "work", "pop"]


STACKS, LIGHT, STOP = ["synchronize", "start with stacks"], ["synchronize", "start"], ["synchronize", "stop"]


def test_steps_are_recorded_with_stacks_then_light_then_not_at_all(surroundings, torch, tmp_path):
    with sync_report.profile(skip=1, steps=2, path=tmp_path / "a" / "trace.json.gz") as steps:
        train(surroundings.said, steps, 6)
    expected = ["work", *STACKS, *step(1), *step(2), *STOP, *LIGHT, *step(3), *step(4), *STOP, "work"]
    assert surroundings.said == expected
    assert (steps.trace, steps.light) == (tmp_path / "a" / "trace.json.gz", tmp_path / "a" / "trace.light.json.gz")
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["trace.json.gz", "trace.light.json.gz"]
    assert json.loads(gzip.decompress(steps.light.read_bytes())) == json.loads(fake_torch.text("pairs"))


def test_a_light_trace_is_made_only_where_it_is_wanted_and_steps_are_left(surroundings, torch, tmp_path):
    for count, light in ((9, False), (3, True)):
        surroundings.said.clear()
        with sync_report.profile(skip=1, steps=2, path=tmp_path / "trace.json", light=light) as steps:
            train(surroundings.said, steps, count)
        assert surroundings.said == ["work", *STACKS, *step(1), *step(2), *STOP, *["work"] * (count - 3)]
        assert steps.light is None and list(tmp_path.iterdir()) == [tmp_path / "trace.json"]


def test_a_loop_that_breaks_ends_the_recording_for_good(surroundings, torch, tmp_path):
    with sync_report.profile(skip=0, steps=3, path=tmp_path / "trace.json.gz") as steps:
        for _ in steps(range(9)):
            break
        steps.close()
        surroundings.said.append("later")
        train(surroundings.said, steps, 5)
    assert surroundings.said == [*STACKS, "push step 0", "pop", *STOP, "later", *["work"] * 5]
    assert steps.trace and steps.light is None


def test_the_report_is_that_of_the_trace_with_its_lines(surroundings, torch, tmp_path):
    with sync_report.profile(skip=0, steps=1, path=tmp_path / "trace.json.gz", light=False) as steps:
        with steps.step(), pytest.raises(RuntimeError, match="there is no trace: it is still being recorded"):
            steps.report()
        report = steps.report(options=["--top", "1"])
    assert report.totals.waits == 5
    assert [(site.waits, site.user_frame.file, site.user_frame.line) for site in report.sites] == [(4, "pairs.py", 122)]


def test_a_broken_gpu_does_not_hide_the_exception(surroundings, torch, tmp_path):
    steps = None

    def broken():
        raise RuntimeError("CUDA error: device-side assert triggered")

    with pytest.raises(KeyError) as error, sync_report.profile(skip=0, path=tmp_path / "trace.json") as steps, steps.step():
        surroundings.synchronize = broken
        raise KeyError
    assert error.value.__context__ is None
    with pytest.raises(RuntimeError, match="there is no trace: the profiler failed") as error:
        steps.report()
    assert "device-side assert" in str(error.value.__cause__)


def test_without_a_gpu_nothing_happens(surroundings, tmp_path):
    surroundings.available = False
    with sync_report.profile(skip=0, path=tmp_path / "trace.json") as steps:
        train(surroundings.said, steps, 2)
    assert surroundings.said == ["work", "work"] and list(tmp_path.iterdir()) == []
    with pytest.raises(RuntimeError, match="there is no trace: torch finds no CUDA GPU"):
        steps.report()


def test_each_rank_has_a_file_of_its_own(surroundings, torch, tmp_path):
    torch.distributed = types.SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: True, get_world_size=lambda: 2, get_rank=lambda: 1
    )
    with sync_report.profile(skip=0, steps=1, path=tmp_path / "trace.json.gz") as steps:
        train(surroundings.said, steps, 2)
    assert (steps.trace.name, steps.light.name) == ("trace.rank1.json.gz", "trace.rank1.light.json.gz")
    torch.distributed.get_world_size = lambda: 1
    with sync_report.profile(skip=0, steps=1, path=tmp_path / "trace.json.gz") as steps:
        train(surroundings.said, steps, 1)
    assert steps.trace.name == "trace.json.gz"


def test_a_second_profiler_and_one_in_a_graphs_capture_are_refused(surroundings, torch, tmp_path):
    first = _profile.start(stacks=False)
    with pytest.raises(RuntimeError, match="PyTorch's profiler already runs"):
        _profile.start(stacks=True)
    first.stop()
    surroundings.is_current_stream_capturing = lambda: True
    surroundings.said.clear()
    with pytest.raises(RuntimeError, match="captures a CUDA graph"):
        _profile.start(stacks=True)
    assert surroundings.said == []


def test_an_old_pytorch_has_no_events_of_synchronisations(surroundings, torch, monkeypatch):
    """The constructor of an `_ExperimentalConfig` then knows no such argument, or there is none."""
    given = []
    for config in (types.SimpleNamespace(_ExperimentalConfig=lambda: None), types.SimpleNamespace()):
        torch._C._profiler = config
        monkeypatch.setattr(torch.profiler, "profile", lambda **named: given.append(named) or types.SimpleNamespace(start=lambda: None))
        _profile.start(stacks=True)
    assert [sorted(named) for named in given] == [["activities", "record_shapes", "with_stack"]] * 2


def test_a_trace_that_cannot_be_written_leaves_the_old_one(surroundings, torch, tmp_path, monkeypatch):
    path = tmp_path / "trace.json.gz"
    path.write_text("of yesterday")

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(_profile, "_add_lines", full)
    with pytest.raises(OSError, match="no space"), sync_report.profile(skip=0, path=path) as steps:
        train(surroundings.said, steps, 1)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("trace.json.gz", "of yesterday")]


def test_a_trace_without_lines_names_functions():
    report = sync_report.report(fake_torch.DATA / "pairs.json.gz")
    assert report.site("pairs.py bad").waits == 4
    assert "<td>pairs.py bad</td>" in report._repr_html_()


# The lines of calls, in a trace of the program `data/calls.py`.

#: Calls of the program, and the text of the line that each is made from.
CALLS = {
    "nn.Module: Model_": "    value = model(x).item()",
    "calls.py(13): forward": None,  # PyTorch calls it.
    "<built-in method sum of Tensor": "        return (x * 2).sum(",
    "<built-in method item of Tensor": "    value = model(x).item()",
    "<built-in method ones": "    step(model, torch.ones(3))",
    "<built-in function sorted>": "    return sorted([value, 0.0],",
    "calls.py(21): <lambda>": "    return sorted([value, 0.0],",
    "<built-in function abs>": "                  key=lambda number: abs(number))",
}


def check_lines(events, called_by):
    source = Path(fake_torch.DATA, "calls.py").read_text().splitlines()
    calls = [event for event in events if event.get("cat") == "python_function"]
    assert len(calls) > 40 and all("CallFrom" in call["args"] for call in calls)
    assert {call["args"]["CallFrom"] for call in calls if call["name"] == "calls.py(24): main"} == {called_by}
    for name, text in CALLS.items():
        found = {call["args"]["CallFrom"] for call in calls if call["name"].startswith(name)}
        if text is None:
            assert len(found) == 1 and "torch/nn/modules/module.py:" in found.pop()
        else:
            assert found == {f"calls.py:{source.index(text) + 1}"}, name


@pytest.fixture
def written(surroundings, monkeypatch, tmp_path):
    """Writes the stored trace, as a version of PyTorch."""

    def written(version, name="trace.json.gz"):
        torch = fake_torch.module(surroundings, "calls", version)
        monkeypatch.setitem(sys.modules, "torch", torch)
        profiler = torch.profiler.profile(
            activities=["CPU", "CUDA"], with_stack=True, record_shapes=True, experimental_config={"enable_cuda_sync_events": True}
        )
        path = _profile.write(profiler, tmp_path / name)
        data = path.read_bytes()
        return (gzip.decompress(data) if name.endswith("gz") else data).decode()

    return written


@pytest.mark.parametrize("version", ["2.4.1", "2.11.0+cu130", "2.13.0a0+git1234"])
def test_calls_get_the_lines_that_make_them(written, version):
    text = written(version)
    check_lines(json.loads(text)["traceEvents"], called_by="calls.py:32")
    assert re.sub(r'"CallFrom": "[^"]+", ', "", text) == fake_torch.text("calls")
    assert written(version, "trace.json") == text


@pytest.mark.parametrize("version", ["2.14.0", "2.15.0+cu132", "3.0.0"])
def test_a_pytorch_that_records_lines_is_left_alone(written, version):
    assert written(version) == fake_torch.text("calls")


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_lines_are_those_of_the_installed_pytorch(tmp_path):
    """PyTorch's own profiler, with a GPU that is made up."""
    program = f"""
import sys, warnings
sys.path[:0] = [{str(Path("python").resolve())!r}, {str(fake_torch.DATA)!r}]
import calls, sync_report, torch
from sync_report import _capture
_capture._gpu = lambda: torch.cuda
torch.cuda.synchronize = torch.cuda.is_current_stream_capturing = lambda *_: False
calls.main()
warnings.simplefilter("error")
with sync_report.profile(skip=1, steps=1, path="trace.json.gz") as steps:
    for _ in steps(range(4)):
        calls.main()
first = sync_report._profile.start(stacks=True)
try:
    sync_report._profile.start(stacks=True)
except RuntimeError as error:
    print(error)
first.stop()
"""
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, env=os.environ)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("PyTorch's profiler already runs")
    events = json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes()))["traceEvents"]
    assert {event["name"] for event in events if event.get("cat") == "user_annotation"} == {"step 1"}
    check_lines(events, called_by="<string>:12")
    light = json.loads(gzip.decompress((tmp_path / "trace.light.json.gz").read_bytes()))["traceEvents"]
    assert "step 2" in {event["name"] for event in light}
    assert "python_function" not in {event.get("cat") for event in light}
