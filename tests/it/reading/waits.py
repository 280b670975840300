# Waits asked for by name: their purpose, and what they make valid.

# --- bare
def f():
    torch.cuda.synchronize()  #! sync: explicit

# --- no library frame
def f():
    torch.cuda.synchronize()  #! sync: explicit; nochain

# --- stream
def f():
    torch.cuda.current_stream().synchronize()  #! stream-sync: explicit

# --- clock
def f():
    torch.cuda.synchronize()  #! sync: timing
    t0 = time.perf_counter()
    g()

# --- clock after
def f(t0):
    g()
    torch.cuda.synchronize()  #! sync: timing
    print(time.time() - t0)

# --- events
def f(start, end):
    end.record()
    torch.cuda.synchronize()  #! sync: timing
    ms = start.elapsed_time(end)

# --- wrapper
def sync():
    torch.cuda.synchronize()  #! sync: timing
def f():
    sync()  #< sync
    t0 = time.time()

# --- barrier
def f(x):
    h = x.to('cpu', non_blocking=True)
    torch.cuda.synchronize()  #! sync: barrier
    return h.numpy()

# --- pinned barrier
def f(pinned, x, ev):
    pinned.copy_(x, non_blocking=True)
    ev.record()
    ev.synchronize()  #! event-sync: barrier
    return pinned[0]

# --- copy the other way
def f(h):
    x = h.to('cuda', non_blocking=True)
    torch.cuda.synchronize()  #! sync: explicit
    return x

# --- ranks
def f():
    dist.barrier()  #! cudaStreamSynchronize in /v/torch/distributed/distributed_c10d.py:barrier: explicit

# --- not there
def f():
    g()  #! sync: value-read

# --- profiler
def f():
    with torch.autograd.profiler.emit_nvtx():  #! cudaDeviceSynchronize in /v/torch/autograd/profiler.py:__enter__: timing
        g()

# --- the buffer is read
def f(x):
    h = x.cpu_buf
    h.buf = 1
    out = x.to('cpu', non_blocking=True)
    torch.cuda.synchronize()  #! sync: barrier; pattern D05
    print(out[0])

# --- the buffer is rebound
def f(x):
    out = x.to('cpu', non_blocking=True)
    torch.cuda.synchronize()  #! sync: explicit
    out = 3
    print(out)

# --- the buffer is an attribute
class C:
    def f(self, x):
        self.host_buf.copy_(x, non_blocking=True)
        torch.cuda.synchronize()  #! sync: barrier
        return self.host_buf.sum()

# --- copied after the wait, read after its own event
def pump(frames, host, ready):
    for frame in frames:
        torch.cuda.synchronize()  #! sync: explicit
        out = net(frame)
        host.copy_(out, non_blocking=True)
        ready.record()
        ready.synchronize()
        sink(host.numpy())

# --- its own event
def pump(frames, host, ready):
    for frame in frames:
        out = net(frame)
        host.copy_(out, non_blocking=True)
        ready.record()
        ready.synchronize()  #! event-sync: barrier
        sink(host.numpy())

# --- the copy of the last round
def pump(frames, host):
    for frame in frames:
        torch.cuda.synchronize()  #! sync: barrier
        sink(host.numpy())
        host.copy_(net(frame), non_blocking=True)

# --- the read comes after another wait
class Exporter:
    def push(self, x):
        torch.cuda.synchronize()  #! sync: explicit
        self.host.copy_(x, non_blocking=True)
        self.done.record()
    def pull(self):
        self.done.synchronize()
        return self.host.numpy()

# --- two copies, one wait
def both(a, b):
    ha = a.to('cpu', non_blocking=True)
    hb = b.to('cpu', non_blocking=True)
    torch.cuda.current_stream().synchronize()  #! stream-sync: barrier
    return ha.numpy() + hb.numpy()

# --- only written after it
class Pump:
    def run(self, xs):
        torch.cuda.synchronize()  #! sync: explicit
        for x in xs:
            self.host.copy_(x, non_blocking=True)

# --- a later wait is nearer
def f(x, host):
    host.copy_(x, non_blocking=True)
    torch.cuda.synchronize()  #! sync: explicit
    g(x)
    torch.cuda.synchronize()
    return host.numpy()

# --- a later wait that may not run
def f(x, host, slow):
    host.copy_(x, non_blocking=True)
    torch.cuda.synchronize()  #! sync: barrier
    if slow:
        torch.cuda.synchronize()
    return host.numpy()

# --- in a branch itself
def f(x, host, now):
    host.copy_(x, non_blocking=True)
    if now:
        torch.cuda.synchronize()  #! sync: barrier
    return host.numpy()

# --- read before the copy, waited for after it
def f(xs, host):
    for x in xs:
        g(host.numpy())
        host.copy_(x, non_blocking=True)
        torch.cuda.synchronize()  #! sync: barrier

# --- a pinned buffer is not written before its copy has ended
buffer = torch.empty(9).pin_memory()
def f(batches, sent):
    for x in batches:
        sent.synchronize()  #! event-sync: barrier
        buffer.copy_(x)
        y = buffer.to('cuda', non_blocking=True)
        sent.record()

# --- two of them, in turn
class F:
    def __init__(self):
        self.pair = [torch.empty(9, pin_memory=True) for _ in range(2)]
        self.sent = [torch.cuda.Event() for _ in range(2)]
    def f(self, batches, y):
        for i, x in enumerate(batches):
            self.sent[i % 2].synchronize()  #! event-sync: barrier
            self.pair[i % 2][:4] = x
            self.pair[i % 2].fill_(0)
            y.copy_(self.pair[i % 2], non_blocking=True)
            self.sent[i % 2].record()

# --- a buffer that another file pins
from memory import Staging, buffers
pair = buffers(2)
own = Staging(9)
def f(batches, sent):
    for i, x in enumerate(batches):
        sent.synchronize()  #! event-sync: barrier
        own.buffer.copy_(x)
        y = own.buffer.to('cuda', non_blocking=True)
        sent.record()
def g(batches, sent):
    for i, x in enumerate(batches):
        sent.synchronize()  #! event-sync: explicit
        pair[i % 2].copy_(x)
        y = pair[i % 2].to('cuda', non_blocking=True)
        sent.record()
# file: memory.py
import torch
class Staging:
    def __init__(self, n):
        self.buffer = torch.empty(n).pin_memory()
def buffers(n):
    return [torch.empty(9) for _ in range(n)]

# --- the buffer is pageable: the driver has taken it
buffer = torch.empty(9)
def f(batches, sent):
    for x in batches:
        sent.synchronize()  #! event-sync: explicit
        buffer.copy_(x)
        y = buffer.to('cuda', non_blocking=True)
        sent.record()

# --- nothing is written after the wait
buffer = torch.empty(9).pin_memory()
def f(x, sent):
    buffer.copy_(x)
    y = buffer.to('cuda', non_blocking=True)
    sent.record()
    sent.synchronize()  #! event-sync: explicit
    return y

# --- a size that was read before
def f(ids, lengths, n):
    longest = lengths.max()
    mask = ids.new_zeros((n, longest + 1))
    mask[:, :longest] = 1  #! read setitem 8: host-known; rules S20; pattern A39

# --- a number that was read before
def f(loss):
    history.append(loss.item())
    return run(loss.item())  #! item: host-known; says line 2 has read

# --- a number that was read before, in a branch
def f(loss, verbose):
    if verbose:
        print(loss.item())
    return run(loss.item())  #! item: value-read

# --- a number that has changed since
def f(loss):
    print(loss.item())
    loss.add_(1)
    return run(loss.item())  #! item: value-read

# --- offloaded
def f(q, keys):
    q = q.float().cpu()  #! cpu: cpu-compute
    return torch.bmm(q, keys).cuda()

# --- only there and back
def f(q):
    q = q.float().cpu()  #! cpu: round-trip
    return q.flip(0).cuda()

# --- a pinned field is not written before the copy of the last call has ended
class Staging:
    def __init__(self, n):
        self.host = torch.empty(n, pin_memory=True)
        self.sent = torch.cuda.Event()
    def upload(self, n):
        if self.used:
            self.sent.synchronize()  #! event-sync: barrier
        self.host.fill_(-1)
        out = self.host[:n].to('cuda', non_blocking=True)
        self.sent.record()
        return out

# --- a number that has changed since, under another name
def f(loss):
    seen = loss.view(-1)
    print(seen.item())
    loss.add_(1)
    return run(seen.item())  #! item: value-read
