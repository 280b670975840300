# Waits of the host for a stream that the GPU can do itself.

# --- a tensor of the other stream
import torch
side = torch.cuda.Stream()
def step(a, b):
    with torch.cuda.stream(side):
        y = a.cuda() @ b
    side.synchronize()  #! stream-sync; streams 2
    return y + 1
# file: after
import torch
side = torch.cuda.Stream()
def step(a, b):
    with torch.cuda.stream(side):
        y = a.cuda() @ b
    torch.cuda.current_stream().wait_stream(side)
    y.record_stream(torch.cuda.current_stream())
    return y + 1

# --- two, of which one stays there
import torch
def step(a, b):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    for part in b:
        with torch.cuda.stream(side):
            x = a.cuda() @ part
            y = x * 2
        z = torch.relu(a)
        side.synchronize()  #! stream-sync; streams 2
        a = z + y
    return a
# file: after
import torch
def step(a, b):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    for part in b:
        with torch.cuda.stream(side):
            x = a.cuda() @ part
            y = x * 2
        z = torch.relu(a)
        torch.cuda.current_stream().wait_stream(side)
        y.record_stream(torch.cuda.current_stream())
        a = z + y
    return a

# --- a third stream
import torch
side = torch.cuda.Stream()
def step(a, b):
    with torch.cuda.stream(side):
        y = a.cuda() @ b
    side.synchronize()  #! stream-sync; streams 3; refused third-stream
    return y + 1

# --- a second one of the file
import torch
side, other = torch.cuda.Stream(), torch.cuda.Stream()
def step(a, b):
    with torch.cuda.stream(side):
        y = a.cuda() @ b
    side.synchronize()  #! stream-sync; streams 2; refused streams
    return y + 1

# --- perhaps no tensor
import torch
side = torch.cuda.Stream()
def step(x):
    with torch.cuda.stream(side):
        y = model(x)
    side.synchronize()  #! stream-sync; streams 2; refused crossing
    return y

# --- kept elsewhere
import torch
side = torch.cuda.Stream()
def step(self, x):
    with torch.cuda.stream(side):
        self.next = x.cuda() * 2
    side.synchronize()  #! stream-sync; streams 2; refused crossing
    return self.next

# --- written in place
import torch
side = torch.cuda.Stream()
def step(x, y):
    with torch.cuda.stream(side):
        z = x.cuda().add_(y)
    side.synchronize()  #! stream-sync; streams 2; refused crossing
    return z

# --- work of another function
import torch
side = torch.cuda.Stream()
def start(x):
    with torch.cuda.stream(side):
        return model(x)
def step(x):
    y = start(x)
    side.synchronize()  #! stream-sync; streams 2; refused crossing
    return y

# --- the wait stands on the stream itself
import torch
side = torch.cuda.Stream()
def step(x):
    with torch.cuda.stream(side):
        y = x.cuda() * 2
        side.synchronize()  #! stream-sync; streams 2; refused crossing
    return y

# --- events of the stream
import torch
side = torch.cuda.Stream()
def step(x):
    with torch.cuda.stream(side):
        y = x.cuda() * 2
    done = side.record_event()
    side.synchronize()  #! stream-sync; streams 2; refused crossing
    return y, done

# --- what it copies to the host is read next
import torch
side = torch.cuda.Stream()
def step(x, host):
    with torch.cuda.stream(side):
        host.copy_(x, non_blocking=True)
    side.synchronize()  #! stream-sync; streams 2; refused barrier
    return host.sum()

# --- pinned copies under way
import torch
side = torch.cuda.Stream()
def step(a, b):
    with torch.cuda.stream(side):
        y = a.cuda() @ b
    side.synchronize()  #! stream-sync; streams 2; in-flight; refused in-flight
    return y + 1

# --- beside a clock
import time
import torch
side = torch.cuda.Stream()
def step(a, b):
    began = time.time()
    with torch.cuda.stream(side):
        y = a.cuda() @ b
    side.synchronize()  #! stream-sync; streams 2; refused measured
    return y + 1, time.time() - began

# --- two tensors in one
import torch
side = torch.cuda.Stream()
def step(x):
    with torch.cuda.stream(side):
        y = torch.max(x.cuda(), dim=1)
    side.synchronize()  #! stream-sync; streams 2; refused crossing
    return y.values

# --- a batch that is no tensor, perhaps
import torch
side = torch.cuda.Stream()
def step(batch):
    with torch.cuda.stream(side):
        y = batch.to("cuda")
    side.synchronize()  #! stream-sync; streams 2; refused crossing
    return model(y)

# --- the name is for something else too
import torch
side = torch.cuda.Stream()
def step(a, b):
    y = None
    with torch.cuda.stream(side):
        y = a.cuda() @ b
    side.synchronize()  #! stream-sync; streams 2; refused crossing
    return y
