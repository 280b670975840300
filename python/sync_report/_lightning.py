"""The hooks that both packages of Lightning call."""
from __future__ import annotations

from typing import Any

from ._capture import Bracket


class Hooks(Bracket):
    """A step is an optimizer step: it holds several batches where gradients accumulate.

    >>> Hooks(skip=5, steps=20).on_train_end()
    """

    def on_train_batch_start(self, trainer: Any, *rest: Any, **named: Any) -> None:
        self._before = trainer.global_step
        self._steps.begin()

    def on_train_batch_end(self, trainer: Any, *rest: Any, **named: Any) -> None:
        # Manual optimization may bypass the count of steps. Lightning allows it no accumulation.
        if trainer.accumulate_grad_batches == 1 or trainer.global_step > self._before:
            self._steps.end()

    def on_train_end(self, *rest: Any, **named: Any) -> None:
        self._steps.close()

    def on_exception(self, *rest: Any, **named: Any) -> None:
        self._steps.close()
