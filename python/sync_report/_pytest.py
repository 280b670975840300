"""The fixture that this package gives to pytest."""
from __future__ import annotations

from typing import Callable, ContextManager

import pytest

from . import _capture
from ._budget import budget


@pytest.fixture
def sync_budget() -> Callable[..., ContextManager[None]]:
    """`sync_report.budget` for a test. The test is skipped where there is no GPU.

    >>> def test_a_step_does_not_wait(sync_budget):
    ...     with sync_budget(avoidable=0):
    ...         pass  # train(batch)
    """
    try:
        gpu = _capture._gpu()
    except ImportError:
        pytest.skip("sync_budget needs torch")
    if gpu is None:
        pytest.skip("sync_budget needs a CUDA GPU")
    return budget
