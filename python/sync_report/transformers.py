"""A callback for the trainer of ``transformers``. The module imports that package: `sync_report` alone does not."""
from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from ._capture import Bracket


class Capture(Bracket, TrainerCallback):
    """Records steps of a training. The arguments are those of `sync_report.capture`.

    ``profiler="torch"`` records with PyTorch's profiler instead, 20 steps unless ``steps`` says another number. ``path`` and ``light``
    are those of `sync_report.profile`.

    A step is an optimizer step: it holds several batches where gradients accumulate. The recording ends after ``steps`` steps,
    or with the training. A callback records once; later trainings only count on. It does nothing without a GPU.

    The trainer calls no hook at an exception. The recording then ends when training begins again, when the callback is freed,
    or with the program.

    >>> from sync_report.transformers import Capture
    >>> callbacks = [Capture(skip=5, steps=20)]  # Trainer(callbacks=callbacks)
    """

    def on_train_begin(self, *rest: Any, **named: Any) -> None:
        self._steps.close()

    def on_step_begin(self, *rest: Any, **named: Any) -> None:
        self._steps.begin()

    def on_step_end(self, *rest: Any, **named: Any) -> None:
        self._steps.end()

    def on_train_end(self, *rest: Any, **named: Any) -> None:
        self._steps.close()
