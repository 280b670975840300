# --- bare_synchronize
def step(model, batch):
    loss = model(batch)
    loss.backward()
    torch.cuda.synchronize()  #! sync: false explicit; nosrc: false explicit

# --- timed_step
def step(model, batch):
    start = time.perf_counter()
    loss = model(batch)
    loss.backward()
    torch.cuda.synchronize()  #! sync: false timing; nosrc: false explicit
    elapsed = time.perf_counter() - start
    return elapsed

# --- event_timer
def measure(fn):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    fn()
    end.record()
    end.synchronize()  #! event-sync: false timing; nosrc: false timing
    return start.elapsed_time(end)

# --- needed_barrier (hard)
def logits_to_host(logits, pinned):
    pinned.copy_(logits, non_blocking=True)  #! async-cpu
    done = torch.cuda.Event()
    done.record()
    prepare_next()
    done.synchronize()  #! event-sync: true barrier
    return pinned.numpy().argmax(-1)

# --- needed_stream_barrier (hard)
def fetch(x, stream):
    with torch.cuda.stream(stream):
        host = x.to("cpu", non_blocking=True)  #! async-cpu
    stream.synchronize()  #! stream-sync: true barrier
    return host.sum()

# --- upload_then_sync (hard)
def stage(host_batch, gpu_buf, stream):
    gpu_buf.copy_(host_batch, non_blocking=True)  #! async-up
    stream.synchronize()  #! stream-sync: unknown value-read; nosrc: unknown value-read
    return gpu_buf * 2

# --- wrapper_timer (hard)
def now():
    torch.cuda.synchronize()  #! sync: false timing
    return time.time()


def bench(model, x):
    t0 = now()  #< now
    model(x)
    return now() - t0  #< now

# --- synced_helper (hard)
def sync():
    torch.cuda.synchronize()  #! sync via bench: false timing | sync via step: false explicit


def bench(model, x):
    sync()  #< sync
    t0 = time.perf_counter()
    model(x)
    sync()  #< sync
    return time.perf_counter() - t0


def step(model, batch, optimizer):
    model(batch).backward()
    sync()  #< sync
    optimizer.step()

# --- stream_handoff
def run(a, b, side):
    with torch.cuda.stream(side):
        a = a @ b
    side.synchronize()  #! stream-sync: false explicit; nosrc: false explicit
    return a + 1

# --- timer_context (hard)
class Timer:
    def __enter__(self):
        torch.cuda.synchronize()  #! sync: false timing
        self.start = time.perf_counter()
        return self

    def __exit__(self, *exc):
        torch.cuda.synchronize()  #! sync: false timing
        self.elapsed = time.perf_counter() - self.start


def step(model, batch):
    with Timer() as t:  #< __enter__ __exit__
        model(batch)
    print(f"{t.elapsed * 1e3:.1f} ms")

# --- timing_decorator (hard)
def timed(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        begin = time.monotonic()
        result = fn(*args, **kwargs)
        torch.cuda.synchronize(device=0)  #! sync: false timing
        print(fn.__name__, time.monotonic() - begin)
        return result
    return wrapper

# --- empty_cache
def cleanup():
    gc.collect()
    torch.cuda.empty_cache()  #! empty-cache: false allocator; nosrc: false allocator

# --- fragmentation
def forward(x, w):
    return torch.matmul(x, w)  #! realloc: false allocator; nosrc: false allocator

# --- debug_sync (hard)
def debug_step(model, batch):
    try:
        out = model(batch)
        torch.cuda.synchronize()  #! sync: false explicit
    except RuntimeError as error:
        logger.error("kernel failed: %s", error)
        raise
    return out

# --- watchdog_name (hard)
def finish(self, batch):
    out = self.model(batch)
    torch.cuda.current_stream().synchronize()  #! stream-sync: false explicit; nosrc: false explicit
    self.queue.put(out)

# --- inverse
def whiten(cov):
    return torch.linalg.inv(cov)  #! inv: false error-check; nosrc: false error-check

# --- print_tensor
def debug(x):
    print("activations:", x)  #! print: false debug-print; nosrc: false debug-print
    return x * 2

# --- format_tensor
def status(loss):
    print(f"loss {loss:.3f}")  #! format: false logging
