"""Every test and doctest runs in the repository's root, with a torch.cuda that records its calls."""
import importlib.util
import sys
import types
from pathlib import Path

import pytest
from sync_report import _capture

collect_ignore = ["tests/data"]  # programs that were recorded, no tests
ROOT = Path(__file__).resolve().parent.parent

# Base classes of callbacks stand in where their packages are not installed.
for module, base in (("lightning.pytorch", "Callback"), ("pytorch_lightning", "Callback"), ("transformers", "TrainerCallback")):
    package = module.partition(".")[0]
    if importlib.util.find_spec(package) is None:
        sys.modules[package] = sys.modules[module] = types.SimpleNamespace(**{base: type(base, (), {})})


class Cuda(types.SimpleNamespace):
    """The functions of torch.cuda that a capture calls."""

    def __init__(self) -> None:
        super().__init__()
        say = lambda word: lambda: self.said.append(word)  # noqa: E731
        self.said: list = []
        self.available = True
        self.synchronize = say("synchronize")
        self.profiler = types.SimpleNamespace(start=say("start"), stop=say("stop"))
        push = lambda name: self.said.append(f"push {name}")  # noqa: E731
        self.nvtx = types.SimpleNamespace(range_push=push, range_pop=say("pop"))


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    cuda = Cuda()
    monkeypatch.setattr(_capture, "_gpu", lambda: cuda if cuda.available else None)
    return cuda


@pytest.fixture
def torch(surroundings: Cuda, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A torch whose profiler writes a trace: four uploads in a function that begins on line 121, a synchronisation in one from 158 on."""
    import fake_torch  # beside the tests, which only they can import

    surroundings.is_current_stream_capturing = lambda: False
    found: types.ModuleType = fake_torch.module(surroundings)
    monkeypatch.setitem(sys.modules, "torch", found)
    return found
