"""A small program, and what PyTorch 2.11 recorded of it.

`python calls.py` writes the trace (calls.json.gz) and the tree of events, whose nodes know the calling lines (calls.tree.json.gz).
"""
import gzip
import json
import os

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return (x * 2).sum(
            dim=0)


def step(model, x):
    value = model(x).item()
    return sorted([value, 0.0],
                  key=lambda number: abs(number))


def main():
    model = Model()
    step(model, torch.ones(3))


def record():
    main()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True, record_shapes=True) as profiler:
        main()
    profiler.export_chrome_trace("calls.json")
    with open("calls.json", "rb") as trace, gzip.open("calls.json.gz", "wb") as packed:
        packed.write(trace.read())
    os.remove("calls.json")
    tree = [node(event) for event in profiler.profiler.kineto_results.experimental_event_tree()]
    with gzip.open("calls.tree.json.gz", "wb") as packed:
        packed.write(json.dumps(tree).encode())


def node(event):
    caller = getattr(event.extra_fields, "caller", None)
    return {
        "name": event.name,
        "start_time_ns": event.start_time_ns,
        "caller": caller and [caller.file_name, caller.line_number, caller.function_name],
        "children": [node(child) for child in event.children],
    }


if __name__ == "__main__":
    record()
