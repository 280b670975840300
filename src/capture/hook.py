"""sync-report adds this sitecustomize to a program that it captures or times. The program sees nothing of it.

SYNC_REPORT_STEPS=A:B             starts and stops CUDA's profiler behind steps of an optimizer or of sync_report.capture, whichever comes first
SYNC_REPORT_TIMES=FILE            writes how long SYNC_REPORT_MEASURE=WARM:COUNT steps took, and ends the program then
SYNC_REPORT_TURNS=FILE            runs up to the step that FILE allows, and waits there; writes to TIMES how long that took
SYNC_REPORT_CALLS=MODULE:FUNCTION counts calls of a function, and not steps
"""
import atexit
import functools
import importlib
import importlib.util
import inspect
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
OPTIMIZER = "torch.optim.optimizer"
BRACKET = "sync_report._capture"
PROFILER = "torch.cuda.profiler"
PROCESS = os.getpid()
RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")


def leave(name):
    """Says how far the program came."""
    try:
        open(os.path.join(HERE, name), "w").close()
    except OSError:
        pass


def synchronize():
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and not torch.cuda.is_current_stream_capturing():
        torch.cuda.synchronize()


class Steps:
    """Starts the profiler behind one step and stops it behind another."""

    def __init__(self, words):
        self.first, self.last = map(int, words.split(":"))
        sys.meta_path.insert(0, Finder(PROFILER, self.take))

    def take(self, profiler):
        """The program's own bracket would begin elsewhere."""
        self.switch = profiler.start, profiler.stop
        profiler.start = profiler.stop = lambda: None

    def after(self, count):
        if count not in (self.first, self.last):
            return
        try:
            importlib.import_module(PROFILER)
            if count == self.first:
                synchronize()
                self.switch[0]()
            else:
                self.switch[1]()  # no synchronisation before: it would be a wait of the capture
        except Exception as error:  # the program's own steps go on
            print(f"sync-report: the profiler cannot be switched at step {count}: {error}", file=sys.stderr)


class Times:
    """Times COUNT steps behind WARM ones. Every rank ends behind the same step, and the first one writes."""

    def __init__(self, path, words):
        self.path = path
        self.warm, self.units = map(int, words.split(":"))
        self.start = self.last = self.count = 0
        atexit.register(self.write)

    def after(self, count):
        self.count = count
        ends = count == self.warm + self.units
        if ends or count == self.warm:
            synchronize()
        self.last = time.perf_counter_ns()
        if count == self.warm:
            self.start = self.last
        if ends:
            self.write()
            leave_now()

    def write(self):
        path, self.path = self.path, None
        if not path or not is_first():
            return
        units = self.count - self.warm if self.start else 0
        if units <= 0 and os.path.exists(path):
            return  # a launcher or wrapper, of which another process has written
        say(path, units=max(units, 0), ns=self.last - self.start if units > 0 else 0, files=files())


class Turns:
    """Runs up to a step and waits there for its next turn. FILE has that step, and the one at which the clock starts; 0 ends the program."""

    def __init__(self, turns, times):
        self.turns, self.times, self.start, self.queue = turns, times, 0, 0
        self.tool = f"/proc/{os.environ['SYNC_REPORT_TOOL']}"
        sys.meta_path.insert(0, Finder("torch.utils.data.dataloader", self.watch))
        self.read()

    def watch(self, module):
        """Counts the batches that workers may have ready when a turn begins."""
        iterator = module._MultiProcessingDataLoaderIter
        begin = iterator.__init__

        def began(own, loader, *arguments, **named):
            self.queue = max(self.queue, loader.num_workers * ((loader.prefetch_factor or 2) + 1))
            begin(own, loader, *arguments, **named)

        iterator.__init__ = began

    def read(self):
        with open(self.turns) as file:
            self.until, self.mark = map(int, file.read().split())

    def after(self, count):
        if count == self.mark:
            synchronize()
            self.start = time.perf_counter_ns()
        if count != self.until:
            return
        synchronize()
        if is_first():
            say(self.times, units=count - self.mark, ns=time.perf_counter_ns() - self.start, queue=self.queue)
        while self.until == count:
            time.sleep(0.001)
            if not os.path.exists(self.tool):
                leave_now()  # sync-report was killed
            self.read()
        if self.until == 0:
            if is_first():
                say(self.times, files=files())
            leave_now()


def is_first():
    ranks = [os.environ[name] for name in RANKS if name in os.environ]
    return os.getpid() == PROCESS and ranks[:1] in ([], ["0"])


def say(path, **what):
    with open(path, "a") as file:
        file.write(json.dumps(what) + "\n")


def files():
    names = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return sorted({os.path.realpath(str(name)) for name in names if name})


def leave_now():
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # not SystemExit, which the program may catch, or a thread of it


def watchers():
    if "SYNC_REPORT_STEPS" in os.environ:
        yield Steps(os.environ["SYNC_REPORT_STEPS"])
    if "SYNC_REPORT_MEASURE" in os.environ:
        yield Times(os.environ["SYNC_REPORT_TIMES"], os.environ["SYNC_REPORT_MEASURE"])
    if "SYNC_REPORT_TURNS" in os.environ:
        yield Turns(os.environ["SYNC_REPORT_TURNS"], os.environ["SYNC_REPORT_TIMES"])


def passed(count):
    for watcher in WATCHERS:
        watcher.after(count)


COUNTED = []  # whose steps are counted, and how many have ended


def stepped(owner):
    if not COUNTED:
        COUNTED.extend((owner, 0))
    if COUNTED[0] == owner:
        COUNTED[1] += 1
        passed(COUNTED[1])


def on_steps(module):
    module.register_optimizer_step_post_hook(lambda optimizer, *_: stepped(id(optimizer)))
    leave("counts")


def on_bracket(module):
    end = module.Steps.end

    def ended(bracket):
        before = bracket.count
        end(bracket)
        if bracket.count > before:
            stepped("bracket")

    module.Steps.end = ended
    leave("counts")


def on_calls(module):
    owner, names, counted = module, os.environ["SYNC_REPORT_CALLS"].split(":")[1].split("."), [0]
    for name in names[:-1]:
        owner = getattr(owner, name)
    function = getattr(owner, names[-1])

    @functools.wraps(function)
    def called(*arguments, **named):
        result = function(*arguments, **named)
        counted[0] += 1
        passed(counted[0])
        return result

    static = isinstance(inspect.getattr_static(owner, names[-1]), (staticmethod, classmethod))
    setattr(owner, names[-1], staticmethod(called) if static else called)
    leave("counts")


class Finder:
    """Adds the hook once the module is there: the program need not import it, nor now."""

    def __init__(self, module, hook):
        self.module, self.hook = module, hook

    def find_spec(self, name, path=None, target=None):
        if name != self.module:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def executed(module):
            execute(module)
            try:
                self.hook(module)
            except Exception as error:
                print(f"sync-report: {self.module} cannot be watched: {error}", file=sys.stderr)

        spec.loader.exec_module = executed
        return spec


leave("loaded")
WATCHERS = list(watchers())
if WATCHERS:
    calls = os.environ.get("SYNC_REPORT_CALLS")
    watched = [(calls.split(":")[0], on_calls)] if calls else [(OPTIMIZER, on_steps), (BRACKET, on_bracket)]
    sys.meta_path[:0] = [Finder(*each) for each in watched]
# The program's own sitecustomize, which this one hides.
sys.path[:] = [path for path in sys.path if os.path.abspath(path) != HERE]
own = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize  # noqa: F401
except ImportError as error:
    if error.name != "sitecustomize":
        raise
    sys.modules["sitecustomize"] = own  # Python looks for it there
