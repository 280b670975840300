"""Every test and doctest runs in the repository's root, with a torch that records what it is told."""
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


class Cuda(types.SimpleNamespace):
    """What of torch.cuda a capture uses."""

    def __init__(self) -> None:
        super().__init__()
        say = lambda word: lambda: self.said.append(word)  # noqa: E731
        self.said: list = []
        self.available = True
        self.is_available = lambda: self.available
        self.synchronize = say("synchronize")
        self.profiler = types.SimpleNamespace(start=say("start"), stop=say("stop"))
        push = lambda name: self.said.append(f"push {name}")  # noqa: E731
        self.nvtx = types.SimpleNamespace(range_push=push, range_pop=say("pop"))


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    cuda = Cuda()
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda))
    return cuda
