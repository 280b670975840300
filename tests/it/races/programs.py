# Copies whose memory the host uses before they have ended, and their likes of which nothing is to be said. The marker says which
# way the line copies and what the warning is, if there is one; options: `says …` words of it; `lag …` µs after which a copy ends;
# `waits`, where the thread waits for an event before each further copy; `pageable` memory. memory.py is their other file.

# --- written under its copy
import torch
buffer = torch.empty(1024).pin_memory()
def run(batches):
    for x in batches:
        buffer.copy_(x)
        y = buffer.to("cuda", non_blocking=True)  #! up: buffer-race; says train.py:6: 5 H2D copies of the pinned `buffer` had not ended when this line ran again, and line 5 writes to it | up; lag 900 | up; lag 1015 | up; pageable
run(load())

# --- of an object
import torch
class Feeder:
    def __init__(self, n):
        self.buffer = torch.empty(n, pin_memory=True)
    def run(self, x, n):
        for i, value in enumerate(x):
            self.buffer[i] = value
        self.gpu.copy_(self.buffer, non_blocking=True)  #! up: buffer-race; says train.py:8: ; says line 7 writes
feeder = Feeder(1024)

# --- read
import torch
def run(batches):
    total = 0
    for x in batches:
        host = model(x).to("cpu", non_blocking=True)  #! down: early-read; says train.py:5: `host` is copied to the host; says read on line 6, with no wait between (5 times) | down: early-read; lag 50; says train.py:5: `host` is copied to the host; says read on line 6, with no wait between (5 times) | down; waits
        total += host.sum().item()

# --- of a function of another file
import torch
from memory import pinned
buffer = pinned(64)
def run(batches):
    for x in batches:
        buffer.copy_(x)
        y = buffer.to("cuda", non_blocking=True)  #! up: buffer-race
run(load())

# --- of a module
import torch
import memory
buffer = memory.pinned(64)
def run(batches):
    for x in batches:
        buffer.copy_(x)
        y = buffer.to("cuda", non_blocking=True)  #! up: buffer-race
run(load())

# --- of another file
import torch
from memory import shared
def run(batches):
    for x in batches:
        shared.copy_(x)
        y = shared.to("cuda", non_blocking=True)  #! up: buffer-race
run(load())

# --- of an object of another file
import torch
from memory import Staging
staging = Staging(64)
def run(batches):
    for x in batches:
        staging.buffer.copy_(x)
        y = staging.buffer.to("cuda", non_blocking=True)  #! up: buffer-race
run(load())

# --- not pinned there
import torch
from memory import plain
buffer = plain(64)
def run(batches):
    for x in batches:
        buffer.copy_(x)
        y = buffer.to("cuda", non_blocking=True)  #! up
run(load())

# --- pinned or not
import torch
from memory import either
buffer = either(64)
def run(batches):
    for x in batches:
        buffer.copy_(x)
        y = buffer.to("cuda", non_blocking=True)  #! up
run(load())

# --- given twice there
import torch
from memory import given
def run(batches):
    for x in batches:
        given.copy_(x)
        y = given.to("cuda", non_blocking=True)  #! up
run(load())

# --- of a file that is not at hand
import torch
from elsewhere import pinned
buffer = pinned(64)
def run(batches):
    for x in batches:
        buffer.copy_(x)
        y = buffer.to("cuda", non_blocking=True)  #! up
run(load())

# --- another field
import torch
from memory import Staging
staging = Staging(64)
def run(batches):
    for x in batches:
        staging.other.copy_(x)
        y = staging.other.to("cuda", non_blocking=True)  #! up
run(load())

# --- of two objects
import torch
from memory import Staging
staging = Staging(64)
staging = Staging(32)
def run(batches):
    for x in batches:
        staging.buffer.copy_(x)
        y = staging.buffer.to("cuda", non_blocking=True)  #! up
run(load())

# --- its field is given anew
import torch
from memory import Staging
staging = Staging(64)
staging.buffer = None
def run(batches):
    for x in batches:
        staging.buffer.copy_(x)
        y = staging.buffer.to("cuda", non_blocking=True)  #! up
run(load())

# --- one of several
import torch
from memory import Staging
all = [Staging(n) for n in sizes]
for staging in all: run(staging)
def run(batches):
    for x in batches:
        staging.buffer.copy_(x)
        y = staging.buffer.to("cuda", non_blocking=True)  #! up
run(load())

# --- made anew
import torch
buffer = torch.empty(1024).pin_memory()
def run(batches):
    for x in batches:
        buffer = torch.empty(1024).pin_memory()
        buffer.copy_(x)
        y = buffer.to("cuda", non_blocking=True)  #! up
run(load())

# --- not pinned
import torch
buffer = torch.empty(1024)
def run(batches):
    for x in batches:
        buffer.copy_(x)
        y = buffer.to("cuda", non_blocking=True)  #! up
run(load())

# --- not written
import torch
buffer = torch.empty(1024).pin_memory()
def run(batches):
    for x in batches:
        print(x)
        y = buffer.to("cuda", non_blocking=True)  #! up
run(load())

# --- written by a copy that does not block
import torch
buffer = torch.empty(1024).pin_memory()
def run(batches):
    for x in batches:
        buffer.copy_(x, non_blocking=True)
        y = buffer.to("cuda", non_blocking=True)  #! up
run(load())

# --- written now and then
import torch
buffer = torch.empty(1024).pin_memory()
def run(batches):
    for x in batches:
        if x is not None: buffer.copy_(x)
        y = buffer.to("cuda", non_blocking=True)  #! up
run(load())

# --- one of a pair
import torch
buffer, other = pair()
def run(batches):
    for x in batches:
        buffer.copy_(x)
        y = buffer.to("cuda", non_blocking=True)  #! up
run(load())

# --- another element
import torch
buffer = torch.empty(1024).pin_memory()
def run(batches):
    for x in batches:
        buffer[i].copy_(x)
        y = buffer[i].to("cuda", non_blocking=True)  #! up
run(load())

# --- another part
import torch
buffer = torch.empty(1024).pin_memory()
def run(batches):
    for x in batches:
        buffer[3] = x
        y = buffer[:2].to("cuda", non_blocking=True)  #! up
run(load())

# --- copied twice
import torch
buffer = torch.empty(1024).pin_memory()
def run(batches):
    for x in batches:
        buffer.copy_(x)
        y = buffer.to("cuda", non_blocking=True); z = buffer.to("cuda", non_blocking=True)  #! up
run(load())

# --- copied several times
import torch
buffer = torch.empty(1024).pin_memory()
def run(batches):
    for x in batches:
        buffer.copy_(x)
        for part in x: y = buffer.to("cuda", non_blocking=True)  #! up
run(load())

# --- two objects
import torch
class Feeder:
    def __init__(self, n):
        self.buffer = torch.empty(n, pin_memory=True)
    def run(self, x, n):
        for i, value in enumerate(x):
            self.buffer[i] = value
        self.gpu.copy_(self.buffer[:n], non_blocking=True)  #! up
feeders = [Feeder(1024), Feeder(1024)]

# --- as many objects as sizes
import torch
class Feeder:
    def __init__(self, n):
        self.buffer = torch.empty(n, pin_memory=True)
    def run(self, x, n):
        for i, value in enumerate(x):
            self.buffer[i] = value
        self.gpu.copy_(self.buffer[:n], non_blocking=True)  #! up
feeders = [Feeder(n) for n in sizes]

# --- given another buffer
import torch
class Feeder:
    def __init__(self, n):
        self.buffer = torch.empty(n, pin_memory=True)
    def run(self, x, n):
        for i, value in enumerate(x):
            self.buffer[i] = value
        self.gpu.copy_(self.buffer[:n], non_blocking=True)  #! up
feeder = Feeder(1024)
feeder.buffer = other

# --- a part
import torch
class Feeder:
    def __init__(self, n):
        self.buffer = torch.empty(n, pin_memory=True)
    def run(self, x, n):
        for i, value in enumerate(x):
            self.buffer[i] = value
        self.gpu.copy_(self.buffer[:n], non_blocking=True)  #! up
feeder = Feeder(1024)

# --- kept
import torch
def run(batches):
    total = 0
    for x in batches:
        host = model(x).to("cpu", non_blocking=True)  #! down
        total += 1; keep.append(host)

# --- kept as an array
import torch
def run(batches):
    total = 0
    for x in batches:
        host = model(x).to("cpu", non_blocking=True)  #! down
        total += 1; keep.append(host.numpy())

# --- waits by itself
import torch
def run(batches):
    total = 0
    for x in batches:
        host = model(x).to("cpu", non_blocking=True)  #! down
        done.synchronize() if done.query() else 0
        total += host.sum().item()

# --- skips
import torch
def run(batches):
    total = 0
    for x in batches:
        host = model(x).to("cpu", non_blocking=True)  #! down
        if len(x) > 3: continue
        total += host.sum().item()

# --- read now and then
import torch
def run(batches):
    total = 0
    for x in batches:
        host = model(x).to("cpu", non_blocking=True)  #! down
        if len(x) > 3: total += host.sum().item()

# --- to a place that is not known
import torch
def run(batches):
    total = 0
    for x in batches:
        host = model(x).to(place, non_blocking=True)  #! down
        total += host.sum().item()
