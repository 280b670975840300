"""Starts and stops CUDA's profiler at steps of the first optimizer that steps: SYNC_REPORT_STEPS=A:B."""
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MODULE = "torch.optim.optimizer"


def count(module):
    first, last = map(int, os.environ["SYNC_REPORT_STEPS"].split(":"))
    counted = []  # the optimizer, and its steps

    def after(optimizer, *_):
        import torch

        if not counted:
            counted.extend((id(optimizer), 0))
        if counted[0] != id(optimizer):
            return
        counted[1] += 1
        if counted[1] == first:
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
        elif counted[1] == last:
            torch.cuda.profiler.stop()  # no synchronisation before: it would be a wait of the capture

    module.register_optimizer_step_post_hook(after)


class Finder:
    """Adds the hook once the module is there: the program need not import torch, nor now."""

    def find_spec(self, name, path=None, target=None):
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def executed(module):
            execute(module)
            try:
                count(module)
            except Exception as error:
                print(f"sync-report: steps are not counted: {error}", file=sys.stderr)

        spec.loader.exec_module = executed
        return spec


sys.meta_path.insert(0, Finder())
# The program's own sitecustomize, which this one hides.
sys.path[:] = [path for path in sys.path if os.path.abspath(path) != HERE]
sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize  # noqa: F401
except ImportError as error:
    if error.name != "sitecustomize":
        raise
