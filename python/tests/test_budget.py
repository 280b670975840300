"""Budgets of waits: what they count, refuse and say, alone and in pytest."""
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import fake_torch
import pytest
import sync_report


def excess(**limits):
    try:
        with sync_report.budget(**limits):
            pass
    except sync_report.BudgetExceeded as error:
        return str(error)


UPLOADS = "  pairs.py:122  avoidable  4x  copy with non_blocking=True from pinned memory"
SYNC = "  pairs.py:159  avoidable  1x  delete it where no code on the CPU needs the result"


def test_the_lines_that_wait_are_listed(surroundings, torch):
    assert excess() == f"5 avoidable waits; the budget allows 0\n{UPLOADS}\n{SYNC}"
    assert surroundings.said == ["synchronize", "start with stacks", "synchronize", "stop"]


def test_each_limit_is_the_most_that_passes(torch):
    """The profiler's own wait does not count."""
    assert excess(avoidable=5) is None
    assert excess(avoidable=4).startswith("5 avoidable waits; the budget allows 4\n")
    assert excess(avoidable=None, waits=5) is None
    assert excess(avoidable=None, waits=4) == f"5 waits; the budget allows 4\n{UPLOADS}\n{SYNC}"
    assert excess(avoidable=1, waits=2).splitlines()[:2] == ["5 avoidable waits; the budget allows 1", "5 waits; the budget allows 2"]
    assert excess(avoidable=None) is None


def test_lines_and_files_that_are_allowed_do_not_count(torch):
    assert excess(allow=["pairs.py:122"]) == f"1 avoidable wait; the budget allows 0\n{SYNC}"
    assert excess(allow=["pairs.py:122", "pairs.py:159"]) is None
    assert excess(allow="pairs.py") is None
    for other in ("pairs.py:12", "airs.py", "s.py:122", "src/pairs.py", ""):
        assert excess(allow=[other]).startswith("5 avoidable"), other


def test_the_exception_of_the_block_passes(surroundings, torch):
    def broken():
        raise RuntimeError("CUDA error: device-side assert triggered")

    with pytest.raises(KeyError) as error, sync_report.budget():
        raise KeyError
    assert surroundings.said[-1] == "stop" and error.value.__context__ is None
    with pytest.raises(KeyError) as error, sync_report.budget():
        surroundings.synchronize = broken
        raise KeyError
    assert error.value.__context__ is None


def test_an_error_of_the_gpu_at_the_end_is_none_of_the_budget(surroundings, torch):
    def broken():
        raise RuntimeError("CUDA error: device-side assert triggered")

    with pytest.raises(RuntimeError, match="device-side assert"), sync_report.budget():
        surroundings.synchronize = broken


def test_a_budget_in_a_budget_is_refused(torch):
    with pytest.raises(RuntimeError, match="PyTorch's profiler already runs"), sync_report.budget(avoidable=5):
        with sync_report.budget():
            raise AssertionError("the block runs")
    assert not torch.autograd._profiler_enabled()


def test_a_trace_that_shows_no_gpu_does_not_pass(surroundings, monkeypatch):
    surroundings.is_current_stream_capturing = lambda: False
    monkeypatch.setitem(sys.modules, "torch", fake_torch.module(surroundings, "calls"))
    with pytest.raises(sync_report.SyncReportError, match="no CUDA API calls"), sync_report.budget():
        pass


def test_without_a_gpu_the_block_runs(surroundings):
    surroundings.available = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with sync_report.budget():
            surroundings.said.append("work")
    assert surroundings.said == ["work"]


TESTS = """
    def step():
        pass

    def test_too_much(sync_budget):
        with sync_budget():
            step()

    def test_enough(sync_budget):
        with sync_budget(allow=["pairs.py"]):
            step()
"""


def outcome(tmp_path, torch):
    """What pytest says of the tests above, with this file as torch."""
    (tmp_path / "test_step.py").write_text(textwrap.dedent(TESTS))
    (tmp_path / "torch.py").write_text(textwrap.dedent(torch))
    command = [sys.executable, "-m", "pytest", "-p", "sync_report._pytest", "-p", "no:cacheprovider", "-rs", "test_step.py"]
    paths = [tmp_path, Path(fake_torch.__file__).parent, Path("python").resolve()]
    environment = {
        "PYTHONPATH": ":".join(map(str, paths)), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "SYNC_REPORT_BIN": str(Path(sync_report.binary()))
    }  # fmt: skip
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment).stdout


def test_a_test_that_fails_shows_its_own_lines_and_the_message(tmp_path):
    said = outcome(
        tmp_path,
        """
        import sys, types, fake_torch
        cuda = types.SimpleNamespace(said=[], synchronize=lambda: None, is_available=lambda: True,
                                     is_current_stream_capturing=lambda: False)
        sys.modules["torch"] = fake_torch.module(cuda)
        """,
    )
    assert "1 failed, 1 passed" in said
    message = f"BudgetExceeded: 5 avoidable waits; the budget allows 0\nE       {UPLOADS}\nE       {SYNC}\n"
    assert message in said
    assert ">       with sync_budget():" in said
    assert "__exit__" not in said and "_budget.py" not in said.replace("sync_report._budget.", "") and "contextlib" not in said


@pytest.mark.parametrize(
    ("torch", "reason"),
    [
        ("import types; cuda = types.SimpleNamespace(is_available=lambda: False)", "sync_budget needs a CUDA GPU"),
        ("raise ImportError('libcudart.so')", "sync_budget needs torch"),
    ],
)
def test_without_a_gpu_a_test_is_skipped(tmp_path, torch, reason):
    said = outcome(tmp_path, torch)
    assert "2 skipped" in said and said.count(reason) == 2 and "failed" not in said
