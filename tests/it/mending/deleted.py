# Synchronisations that go.

# --- alone on its line
def step(x):
    y = model(x)
    torch.cuda.synchronize()  #! sync
    return y
# file: after
def step(x):
    y = model(x)
    return y

# --- with a comment, between others
def step(x):
    # forward
    y = model(x)
    torch.cuda.synchronize()  # wait for it  #! sync
    # backward
    y.backward()
# file: after
def step(x):
    # forward
    y = model(x)
    # backward
    y.backward()

# --- the whole of a block
def step(x):
    y = model(x)
    if debug:
        torch.cuda.synchronize()  #! sync
    return y
# file: after
def step(x):
    y = model(x)
    if debug:
        pass
    return y

# --- behind a condition
def step(x):
    y = model(x)
    if debug: torch.cuda.synchronize()  #! sync
    return y
# file: after
def step(x):
    y = model(x)
    if debug: pass
    return y

# --- the last of several on a line
def step(x):
    y = model(x); torch.cuda.synchronize()  #! sync
    return y
# file: after
def step(x):
    y = model(x)
    return y

# --- the first of several on a line
def step(x):
    y = model(x)
    torch.cuda.synchronize(); y.backward()  #! sync
# file: after
def step(x):
    y = model(x)
    y.backward()

# --- between others on a line
def step(x):
    y = model(x); torch.cuda.synchronize(); y.backward()  #! sync
# file: after
def step(x):
    y = model(x); y.backward()

# --- over lines
def step(x):
    y = model(x)
    torch.cuda.synchronize(
        device,
    )  #! sync; at -2
    return y
# file: after
def step(x):
    y = model(x)
    return y

# --- a part of something else
def step(x):
    return model(x), torch.cuda.synchronize()  #! sync; refused form

# --- with a call in its arguments
def step(x):
    y = model(x)
    torch.cuda.synchronize(next(devices))  #! sync; refused form
    return y

# --- beside a clock
def step(x):
    y = model(x)
    torch.cuda.synchronize()  #! sync; refused measured
    end = time.perf_counter()

# --- in a file with a clock
def epoch(xs):
    begin = time.time()
    for x in xs:
        model(x).backward()
        torch.cuda.synchronize()  #! sync; unsafe clock
        opt.step()
    print(time.time() - begin)
# file: after
def epoch(xs):
    begin = time.time()
    for x in xs:
        model(x).backward()
        opt.step()
    print(time.time() - begin)

# --- in front of the time between events
def step(x):
    y = model(x)
    end.record()
    torch.cuda.synchronize()  #! sync; refused measured
    print(start.elapsed_time(end))

# --- in front of the end of a recording
def main():
    train()
    torch.cuda.synchronize()  #! sync; refused measured
    torch.cuda.profiler.stop()

# --- the read of a copied buffer
def step(x):
    host.copy_(model(x), non_blocking=True)
    torch.cuda.synchronize()  #! sync; refused barrier
    return host.sum()

# --- several streams
def step(x):
    y = model(x)
    torch.cuda.synchronize()  #! sync; streams 2; refused streams
    return y

# --- a stream of its own, whatever the trace saw
side = torch.cuda.Stream()
def step(x):
    with torch.cuda.stream(side):
        y = model(x)
    side.synchronize()  #! stream-sync; refused streams
    return y.sum()

# --- the current stream is the one that all is on
def step(x):
    y = model(x)
    torch.cuda.current_stream().synchronize()  #! stream-sync
    return y
# file: after
def step(x):
    y = model(x)
    return y

# --- pinned copies under way
def step(x):
    y = model(x)
    torch.cuda.synchronize()  #! sync; in-flight; refused in-flight
    return y

# --- for errors
def step(x):
    try:
        y = model(x)
        torch.cuda.synchronize()  #! sync; refused tried
    except RuntimeError:
        raise SystemExit("the kernel failed")

# --- in the cleaning up of a try
def step(x):
    try:
        y = model(x)
    finally:
        torch.cuda.synchronize()  #! sync
# file: after
def step(x):
    try:
        y = model(x)
    finally:
        pass

# --- what others call to synchronise
def sync():
    """Waits for the GPU."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()  #! sync; refused wrapper

# --- beside another library
import cupy
def step(x):
    y = model(x)
    torch.cuda.synchronize()  #! sync; refused foreign
    return y

# --- by its address
def step(x):
    y = model(x)
    torch.cuda.synchronize()  #! sync; refused foreign
    return library.run(y.data_ptr())

# --- two alike
def step(x):
    y = model(x)
    torch.cuda.synchronize()  #! sync; refused alike
    torch.cuda.synchronize()
    return y

# --- a time that somebody looks at
import time
def step(x):
    began = time.time()
    y = model(x)
    torch.cuda.synchronize()  #! sync; unsafe clock
    y.backward()
    return y, began
# file: after
import time
def step(x):
    began = time.time()
    y = model(x)
    y.backward()
    return y, began

# --- a time that a function inside looks at
import time
def step(x):
    began = time.time()
    y = model(x)
    torch.cuda.synchronize()  #! sync; unsafe clock
    y.backward()
    return lambda: began
# file: after
import time
def step(x):
    began = time.time()
    y = model(x)
    y.backward()
    return lambda: began

# --- a time that is deleted
import time
def step(x):
    began = time.time()
    y = model(x)
    torch.cuda.synchronize()  #! sync; unsafe clock
    del began
    return y
# file: after
import time
def step(x):
    began = time.time()
    y = model(x)
    del began
    return y

# --- a time of the module, which others may look at
import time
began = time.time()
def step(x):
    global ended
    y = model(x)
    torch.cuda.synchronize()  #! sync; unsafe clock
    y.backward()
    ended = time.time()
# file: after
import time
began = time.time()
def step(x):
    global ended
    y = model(x)
    y.backward()
    ended = time.time()

# --- a time alone in its block
import time
def step(x):
    y = model(x)
    if verbose:
        began = time.time()
    torch.cuda.synchronize()  #! sync; unsafe clock
    return y
# file: after
import time
def step(x):
    y = model(x)
    if verbose:
        began = time.time()
    return y

# --- an event that is handed on
def step(x):
    done = torch.cuda.Event()
    y = model(x)
    done.record()
    done.synchronize()  #! event-sync
    return y.relu(), done
# file: after
def step(x):
    done = torch.cuda.Event()
    y = model(x)
    done.record()
    return y.relu(), done

# --- a clock that is shown
import time
def rate(xs):
    torch.cuda.synchronize()  #! sync; refused measured
    began = time.time()
    for x in xs:
        model(x)
    torch.cuda.synchronize()  #! sync; refused measured
    print(len(xs) / (time.time() - began))

# --- a clock behind the branch
import time
def now(use_gpu):
    if use_gpu:
        torch.cuda.synchronize()  #! sync; refused measured
    return time.time()
