"""The callbacks in their trainers. A stand-in makes the calls of a trainer that is not installed.

The trainers of lightning 2.6.6, pytorch-lightning 2.6.6 and transformers 5.24.0 have passed, with torch 2.11.0 and accelerate 1.15.0.
"""
import gc
import importlib.util
import pickle
import sys
import types

import fake_torch
import pytest


def fit_lightning(package, callback, work, batches, accumulate, folder):
    try:
        import torch

        lightning = importlib.import_module(package)
        lightning.Trainer  # noqa: B018
    except (ImportError, AttributeError):
        trainer = types.SimpleNamespace(global_step=0, accumulate_grad_batches=accumulate)
        try:
            for index in range(batches):
                callback.on_train_batch_start(trainer, None, "batch", index)
                work()
                trainer.global_step += (index + 1) % accumulate == 0 or index + 1 == batches
                callback.on_train_batch_end(trainer, None, "outputs", "batch", index)
            return callback.on_train_end(trainer, None)
        except Exception as error:
            callback.on_exception(trainer, None, error)
            raise

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def training_step(self, batch, index):
            work()
            return self.layer(batch).sum()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    trainer = lightning.Trainer(
        accelerator="cpu", max_epochs=1, accumulate_grad_batches=accumulate, callbacks=[callback], default_root_dir=folder, **quiet
    )
    trainer.fit(Model(), torch.utils.data.DataLoader(torch.ones(batches, 2)))


def fit_transformers(callback, work, batches, accumulate, folder):
    try:
        import torch
        from transformers import Trainer, TrainingArguments
    except ImportError:
        hook = (None, types.SimpleNamespace(global_step=0), None)
        callback.on_train_begin(*hook, model=None)
        for index in range(batches):
            if index % accumulate == 0:
                callback.on_step_begin(*hook, model=None)
            work()
            if (index + 1) % accumulate == 0 or index + 1 == batches:
                callback.on_step_end(*hook, model=None)
        return callback.on_train_end(*hook, model=None)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def forward(self, x):
            work()
            return {"loss": self.layer(x).sum()}

    arguments = TrainingArguments(
        str(folder), use_cpu=True, per_device_train_batch_size=1, num_train_epochs=1, gradient_accumulation_steps=accumulate,
        report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    Trainer(Model(), arguments, train_dataset=[{"x": torch.ones(2)}] * batches, callbacks=[callback]).train()


@pytest.fixture(params=["lightning", "pytorch_lightning", "transformers"])
def package(request):
    return request.param


@pytest.fixture
def capture(package):
    return importlib.import_module(f"sync_report.{package}").Capture


@pytest.fixture
def fit(package, surroundings, tmp_path):
    def fit(callback, batches, accumulate=1, fails_at=None):
        done = 0

        def work():
            nonlocal done
            if done == fails_at:
                raise KeyError("work")
            done += 1
            surroundings.said.append("work")

        if package == "transformers":
            fit_transformers(callback, work, batches, accumulate, tmp_path)
        else:
            fit_lightning({"lightning": "lightning.pytorch"}.get(package, package), callback, work, batches, accumulate, tmp_path)

    return fit


def step(number, works=1):
    return [f"push step {number}", *["work"] * works, "pop"]


END = ["synchronize", "stop"]


def test_a_fit_is_recorded_after_its_warm_up(capture, fit, surroundings):
    fit(capture(skip=1, steps=2), batches=4)
    assert surroundings.said == [*step(0), "start", *step(1), *step(2), *END, *step(3)]


def test_the_recording_ends_with_the_fit(capture, fit, surroundings):
    fit(capture(skip=1, steps=20), batches=2)
    assert surroundings.said == [*step(0), "start", *step(1), *END]


def test_a_step_is_one_of_the_optimizer(capture, fit, surroundings):
    fit(capture(), batches=5, accumulate=2)
    assert surroundings.said == ["start", *step(0, 2), *step(1, 2), *step(2), *END]


def test_later_fits_count_on(capture, fit, surroundings):
    callback = capture(skip=3, steps=20)
    for _ in range(3):
        fit(callback, batches=2)
    assert surroundings.said == [*step(0), *step(1), *step(2), "start", *step(3), *END, *step(4), *step(5)]


def test_an_exception_ends_step_and_recording(package, capture, fit, surroundings):
    """Lightning has a hook for exceptions. The other trainer first calls a hook when training begins again."""
    callback = capture(steps=20)
    with pytest.raises(KeyError, match="work"):
        fit(callback, batches=4, fails_at=1)
    ended = ["start", *step(0), "push step 1", "pop", *END]
    assert surroundings.said == (ended[:-3] if package == "transformers" else ended)
    fit(callback, batches=1)
    assert surroundings.said == [*ended, *step(2)]


def test_the_recording_ends_with_the_callback(capture, surroundings):
    callback = capture()
    callback._steps.begin()
    del callback
    gc.collect()
    assert surroundings.said == ["start", "push step 0", "pop", *END]


def test_without_a_gpu_a_callback_does_nothing(capture, fit, surroundings):
    surroundings.available = False
    fit(capture(), batches=2)
    assert surroundings.said == ["work", "work"]


def test_a_callback_goes_to_another_process_before_the_fit(capture, fit, surroundings):
    fit(pickle.loads(pickle.dumps(capture(skip=1, name="batch"))), batches=2)
    assert surroundings.said == ["push batch 0", "work", "pop", "start", "push batch 1", "work", "pop", *END]


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="the stand-in for torch would hide the one that is installed")
def test_a_fit_is_recorded_by_pytorchs_profiler_where_asked(capture, fit, surroundings, monkeypatch, tmp_path):
    surroundings.is_current_stream_capturing = lambda: False
    monkeypatch.setitem(sys.modules, "torch", fake_torch.module(surroundings))
    callback = capture(skip=1, steps=2, profiler="torch", path=str(tmp_path / "a.json.gz"))
    fit(pickle.loads(pickle.dumps(callback)), batches=6)
    stacks = ["synchronize", "start with stacks", *step(1), *step(2), *END]
    assert surroundings.said == ["work", *stacks, "synchronize", "start", *step(3), *step(4), *END, "work"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json.gz", "a.light.json.gz"]


def test_pytorchs_profiler_records_few_steps_where_no_number_is_given(capture):
    assert capture(profiler="torch")._steps._last == 20
    with pytest.raises(ValueError, match="there is no profiler 'nsight'"):
        capture(profiler="nsight")


@pytest.mark.parametrize("package", ["lightning", "pytorch_lightning"], indirect=True)
def test_a_batch_of_manual_optimization_is_a_step(capture, surroundings):
    callback, trainer = capture(), types.SimpleNamespace(global_step=0, accumulate_grad_batches=1)
    for index in range(2):
        callback.on_train_batch_start(trainer, None, None, index)
        callback.on_train_batch_end(trainer, None, None, None, index)
    callback.on_train_end(trainer, None)
    assert surroundings.said == ["start", *step(0, 0), *step(1, 0), *END]


def test_the_package_imports_no_trainer():
    import subprocess
    import sys

    code = "import sys, sync_report; print(sorted({'lightning', 'pytorch_lightning', 'transformers', 'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd="python", capture_output=True, text=True).stdout == "[]\n"
