"""A callback for the trainer of ``lightning``. The module imports that package: `sync_report` alone does not."""
from __future__ import annotations

from lightning.pytorch import Callback

from ._lightning import Hooks


class Capture(Hooks, Callback):
    """Records steps of a fit. The arguments are those of `sync_report.capture`.

    ``profiler="torch"`` records with PyTorch's profiler instead, 20 steps unless ``steps`` says another number. ``path`` and ``light``
    are those of `sync_report.profile`.

    A step is an optimizer step: it holds several batches where gradients accumulate. The recording ends after ``steps`` steps,
    with the fit, or with an exception. A callback records once; later fits only count on. It does nothing without a GPU.

    >>> from sync_report.lightning import Capture
    >>> callbacks = [Capture(skip=5, steps=20)]  # Trainer(callbacks=callbacks)
    """
