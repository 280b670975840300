"""Starts and stops CUDA's profiler at steps of the first optimizer that steps: SYNC_REPORT_STEPS=A:B."""
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MODULE = "torch.optim.optimizer"


def leave(name):
    """Says how far the program came."""
    try:
        open(os.path.join(HERE, name), "w").close()
    except OSError:
        pass


def count(module):
    first, last = map(int, os.environ["SYNC_REPORT_STEPS"].split(":"))
    counted = []  # the optimizer, and its steps

    def after(optimizer, *_):
        if not counted:
            counted.extend((id(optimizer), 0))
        if counted[0] != id(optimizer):
            return
        counted[1] += 1
        if counted[1] not in (first, last):
            return
        try:
            import torch

            if counted[1] == first:
                if not torch.cuda.is_current_stream_capturing():
                    torch.cuda.synchronize()
                torch.cuda.profiler.start()
            else:
                torch.cuda.profiler.stop()  # no synchronisation before: it would be a wait of the capture
        except Exception as error:  # the program's own steps go on
            print(f"sync-report: the profiler cannot be switched at step {counted[1]}: {error}", file=sys.stderr)

    module.register_optimizer_step_post_hook(after)
    leave("counts")


class Finder:
    """Adds the hook once the module is there: the program need not import torch, nor now."""

    def find_spec(self, name, path=None, target=None):
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def executed(module):
            execute(module)
            try:
                count(module)
            except Exception as error:
                print(f"sync-report: steps are not counted: {error}", file=sys.stderr)

        spec.loader.exec_module = executed
        return spec


leave("loaded")
sys.meta_path.insert(0, Finder())
# The program's own sitecustomize, which this one hides.
sys.path[:] = [path for path in sys.path if os.path.abspath(path) != HERE]
own = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize  # noqa: F401
except ImportError as error:
    if error.name != "sitecustomize":
        raise
    sys.modules["sitecustomize"] = own  # Python looks for it there
