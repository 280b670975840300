"""A stand-in for torch that records nothing: its profiler writes a stored trace, and `cuda.said` lists the calls.

The profiler is as strict as that of PyTorch 2.11: it synchronises when it stops, and runs once at a time.
"""
import contextlib
import gzip
import json
import re
import types
from pathlib import Path

DATA = Path(__file__).parent / "data"


def text(name: str) -> str:
    return gzip.decompress((DATA / f"{name}.json.gz").read_bytes()).decode()


def tree(name: str) -> list:
    """Events as `experimental_event_tree` gives them: those of calls of Python know the caller."""
    stored = DATA / f"{name}.tree.json.gz"
    nodes = json.loads(gzip.decompress(stored.read_bytes())) if stored.exists() else made_up(json.loads(text(name)))

    def event(node: dict) -> types.SimpleNamespace:
        fields = types.SimpleNamespace()
        if node["caller"]:
            file, line, function = node["caller"]
            fields.caller = types.SimpleNamespace(file_name=file, line_number=line, function_name=function)
        children = [event(child) for child in node["children"]]
        return types.SimpleNamespace(
            name=node["name"], start_time_ns=node["start_time_ns"], extra_fields=fields, children=children
        )

    return [event(node) for node in nodes]


def made_up(trace: dict) -> list:
    """The tree of a trace whose own was not kept: each function calls from the line after its first."""
    zero, found, roots = trace["baseTimeNanoseconds"], {}, []
    for event in trace["traceEvents"]:
        if event.get("cat") != "python_function":
            continue
        at, around = round(event["ts"] % 1e9 * 1000) + int(event["ts"] // 1e9) * 10**12, event["args"]["Python parent id"]
        node = {"name": event["name"], "start_time_ns": zero + at, "children": [], "caller": ["<frozen>", 1, "<module>"]}
        found[event["args"]["Python id"]] = node, around
        while around is not None:
            outer, beyond = found[around]
            frame = re.fullmatch(r"(.*)\((\d+)\): (.*)", outer["name"])
            if frame:
                node["caller"] = [frame[1], int(frame[2]) + 1, frame[3]]
                break
            around = beyond
        parent = event["args"]["Python parent id"]
        (roots if parent is None else found[parent][0]["children"]).append(node)
    return roots


def module(cuda, trace: str = "pairs", version: str = "2.11.0+cu130") -> types.SimpleNamespace:
    """`torch`, whose profiler writes that trace."""
    said = cuda.said

    class Profile:
        running = None

        def __init__(self, *, activities, with_stack=False, record_shapes=False, experimental_config=None):
            assert set(activities) == {"CPU", "CUDA"}
            assert (experimental_config == {"enable_cuda_sync_events": True}) == with_stack == record_shapes
            self.with_stack = with_stack

        def start(self):
            assert Profile.running is None, "PyTorch ends the program here"
            Profile.running = self
            said.append("start with stacks" if self.with_stack else "start")

        def stop(self):
            assert Profile.running is self
            cuda.synchronize()
            Profile.running = None
            said.append("stop")

        def export_chrome_trace(self, path):
            assert Profile.running is None and not path.endswith(".gz")
            Path(path).write_text(text(trace))

        @property
        def profiler(self):
            results = types.SimpleNamespace(experimental_event_tree=lambda: tree(trace))
            return types.SimpleNamespace(kineto_results=results)

    @contextlib.contextmanager
    def record_function(name):
        assert Profile.running
        said.append(f"push {name}")
        yield
        said.append("pop")

    profiler = types.SimpleNamespace(
        profile=Profile, record_function=record_function, ProfilerActivity=types.SimpleNamespace(CPU="CPU", CUDA="CUDA")
    )
    config = types.SimpleNamespace(_ExperimentalConfig=lambda **given: given)
    return types.SimpleNamespace(
        __version__=version,
        cuda=cuda,
        profiler=profiler,
        autograd=types.SimpleNamespace(_profiler_enabled=lambda: Profile.running is not None),
        distributed=types.SimpleNamespace(is_available=lambda: False),
        _C=types.SimpleNamespace(_profiler=config),
    )
