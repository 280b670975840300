# Copies to the GPU.

# --- small and pageable
x = x.cuda()  #! upload cuda 512
# file: after
x = x.cuda(non_blocking=True)

# --- a copy that the profiler has lost may be one to the host
x = x.to("cuda")  #! lost to; refused direction

# --- large and pageable
x = x.cuda()  #! upload cuda 524288; refused pageable

# --- pinned, from a loader in sight
from torch.utils.data import DataLoader
loader = DataLoader(data, batch_size=64, pin_memory=True)
for i, (x, y) in enumerate(loader):
    x, y = x.to("cuda"), y.to("cuda")  #! pinned to 524288
# file: after
from torch.utils.data import DataLoader
loader = DataLoader(data, batch_size=64, pin_memory=True)
for i, (x, y) in enumerate(loader):
    x, y = x.to("cuda", non_blocking=True), y.to("cuda", non_blocking=True)

# --- the loader can pin
import torch
loader = torch.utils.data.DataLoader(
    data,
    batch_size=64,  # as in the paper
    shuffle=True,
)
for x in loader:
    x = x.to("cuda")  #! upload to 524288
# file: after
import torch
loader = torch.utils.data.DataLoader(
    data,
    batch_size=64,  # as in the paper
    shuffle=True, pin_memory=True,
)
for x in loader:
    x = x.to("cuda", non_blocking=True)

# --- the loader is told not to
from torch.utils.data import DataLoader
def train(batches):
    for x in batches:
        x = x.cuda()  #! upload cuda 524288
train(DataLoader(data, pin_memory=False))
# file: after
from torch.utils.data import DataLoader
def train(batches):
    for x in batches:
        x = x.cuda(non_blocking=True)
train(DataLoader(data, pin_memory=True))

# --- arguments of the loader are not told
from torch.utils.data import DataLoader
loader = DataLoader(data, **options)
for x in loader:
    x = x.cuda()  #! upload cuda 524288; refused pageable

# --- another loader
loader = Batches(data)
for x in loader:
    x = x.cuda()  #! upload cuda 524288; refused pageable

# --- a function that others may call
from torch.utils.data import DataLoader
class Task:
    def train(self, batches):
        for x in batches:
            x = x.cuda()  #! upload cuda 524288; refused pageable
Task().train(DataLoader(data))

# --- one of its loaders is not in sight
from torch.utils.data import DataLoader
def train(batches):
    for x in batches:
        x = x.cuda()  #! upload cuda 524288; refused pageable
train(DataLoader(data))
train(others)

# --- the batch is made anew on the way
from torch.utils.data import DataLoader
for x in DataLoader(data):
    x = x.float() / 255
    x = x.cuda()  #! upload cuda 524288; refused pageable

# --- a pinned buffer that is filled again
buffer = torch.empty(4096).pin_memory()
for x in xs:
    buffer.copy_(x)
    y = buffer.to("cuda")  #! pinned to 16384; refused reused

# --- a batch that is written to behind the copy
from torch.utils.data import DataLoader
for x in DataLoader(data, pin_memory=True):
    y = x.to("cuda")  #! pinned to 16384; refused reused
    x.zero_()

# --- a batch that is an array too
from torch.utils.data import DataLoader
for x in DataLoader(data, pin_memory=True):
    y = x.to("cuda")  #! pinned to 16384; refused reused
    x.numpy()[:] = 0

# --- a pinned parameter
def step(x):
    return x.to("cuda")  #! pinned to 16384; refused reused

# --- sent in another branch too
from torch.utils.data import DataLoader
import torch
def validate(loader, args):
    def run(batches, first=0):
        device = torch.device("cuda")
        for i, (x, y) in enumerate(batches):
            i = first + i
            if args.gpu is not None:
                x = x.cuda(args.gpu, non_blocking=True)
            else:
                x = x.to(device)  #! pinned to 16384
    run(loader)
    if args.more:
        rest = DataLoader(data, pin_memory=True)
        run(rest, len(loader))
def main():
    loader = DataLoader(data, pin_memory=True)
    if args.evaluate:
        validate(loader, args)
        return
    best = validate(loader, args)
# file: after
from torch.utils.data import DataLoader
import torch
def validate(loader, args):
    def run(batches, first=0):
        device = torch.device("cuda")
        for i, (x, y) in enumerate(batches):
            i = first + i
            if args.gpu is not None:
                x = x.cuda(args.gpu, non_blocking=True)
            else:
                x = x.to(device, non_blocking=True)
    run(loader)
    if args.more:
        rest = DataLoader(data, pin_memory=True)
        run(rest, len(loader))
def main():
    loader = DataLoader(data, pin_memory=True)
    if args.evaluate:
        validate(loader, args)
        return
    best = validate(loader, args)

# --- several streams
x = x.cuda()  #! upload cuda 512; streams 2; refused streams

# --- on a stream of its own
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    x = x.cuda()  #! upload cuda 512; refused streams
y = model(x)

# --- the way of the copy is not told
x = x.to(device)  #! cudaStreamSynchronize; refused stale

# --- a device told by constants
import torch
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
def step(x):
    return x.to(device)  #! upload to 512
# file: after
import torch
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
def step(x):
    return x.to(device, non_blocking=True)

# --- a device that is passed
import torch
def step(x, device):
    return x.to(device)  #! upload to 512
def main():
    step(x, torch.device("cuda"))
    step(y, device="cuda:1")
# file: after
import torch
def step(x, device):
    return x.to(device, non_blocking=True)
def main():
    step(x, torch.device("cuda"))
    step(y, device="cuda:1")

# --- a device from outside
def step(x, device):
    return x.to(device)  #! upload to 512; unsafe destination
# file: after
def step(x, device):
    return x.to(device, non_blocking=True)

# --- a device that is sometimes the caller's
import torch
def step(x, device):
    return x.to(device)  #! upload to 512; unsafe destination
step(x, torch.device("cuda"))
step(y, y.device)
# file: after
import torch
def step(x, device):
    return x.to(device, non_blocking=True)
step(x, torch.device("cuda"))
step(y, y.device)

# --- to where a tensor is, from the host
y = torch.from_numpy(a).to(x.device)  #! upload to 512
# file: after
y = torch.from_numpy(a).to(x.device, non_blocking=True)

# --- over lines, with comments
x = x.to(
    "cuda",  # the first
    torch.float16,
)  #! upload to 512; at -3
# file: after
x = x.to(
    "cuda",  # the first
    torch.float16, non_blocking=True,
)

# --- a comment behind the last argument
x = x.to(  #! upload to 512; refused form
    "cuda"  # the first
)

# --- told to block
x = x.to("cuda", non_blocking=False)  #! upload to 512
# file: after
x = x.to("cuda", non_blocking=True)

# --- told by position
x = x.cuda(0, False)  #! upload cuda 512; refused form

# --- arguments that are not told
x = x.to("cuda", **options)  #! upload to 512; refused form

# --- into a buffer on the GPU
static.copy_(torch.from_numpy(a))  #! upload copy_ 512
# file: after
static.copy_(torch.from_numpy(a), non_blocking=True)

# --- made of a list
index = torch.tensor([a, b], device=x.device, dtype=torch.long)  #! upload tensor 16
# file: after
index = torch.tensor([a, b], dtype=torch.long).to(x.device, non_blocking=True)

# --- made of a list, the device first
index = torch.as_tensor(device="cuda", data=[a, b])  #! upload as_tensor 16
# file: after
index = torch.as_tensor(data=[a, b]).to("cuda", non_blocking=True)

# --- made of something, somewhere
index = torch.as_tensor(data, device=x.device)  #! upload as_tensor 16; unsafe destination
# file: after
index = torch.as_tensor(data).to(x.device, non_blocking=True)

# --- a leaf of the graph
w = torch.tensor([a, b], device="cuda", requires_grad=True)  #! upload tensor 16; refused form

# --- joined on the host, which loses the pin
import torch
def step(parts):
    x = torch.stack(parts).cuda()  #! upload cuda 524288; refused joined
    y = torch.cat(parts, dim=1)
    return x, y.to("cuda")  #! upload to 524288; refused joined

# --- joined, and small
import torch
def step(parts):
    return torch.cat(parts).cuda()  #! upload cuda 512
# file: after
import torch
def step(parts):
    return torch.cat(parts).cuda(non_blocking=True)
