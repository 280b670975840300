# Values that hang on names.

# --- reused for a branch
def f(a, x):
    v = a.item()  #! item: logging
    print(v)
    v = g(x)
    if v > 3:
        h()

# --- reused in both arms
def f(a, x, c):
    v = a.item()  #! item: logging
    print(v)
    if c:
        v = g(x)
    else:
        v = h(x)
    if v > 3:
        k()

# --- reused in one arm
def f(a, x, c):
    v = a.item()  #! item: control-flow
    print(v)
    if c:
        v = g(x)
    if v > 3:
        k()

# --- other arm
def f(a, x, c):
    if c:
        v = a.item()  #! item: logging
        print(v)
    else:
        v = 3
        while v > 1:
            v -= 1

# --- read in the next iteration
def f(xs):
    last = 0.0
    for x in xs:
        if last > 3:
            break
        last = x.item()  #! item: control-flow
        print(last)

# --- rebound at the start of the loop
def f(xs):
    for x in xs:
        v = 0
        if v > 3:
            break
        v = x.item()  #! item: logging
        print(v)

# --- leaves before the other use
def f(a, debug):
    if debug:
        v = a.item()  #! item: logging
        print(v)
        return
    v = 2
    if v > g():
        h()

# --- chain of names
def f(loss):
    a = loss.item()  #! item: logging
    b = a * 100
    c = f'{b:.1f}%'
    msg = 'loss ' + c
    logger.info(msg)

# --- tuple target
def f(a, b):
    x, y = a.item(), b  #! item: logging
    print(x)
    if y > 3:
        g()

# --- tuple target, the other one
def f(a, b):
    x, y = b, a.item()  #! item: control-flow
    print(x)
    if y > 3:
        g()

# --- walrus
def f(loss):
    if (v := loss.item()) > 3:  #! item: control-flow
        print(v)
        g()

# --- walrus shown
def f(loss):
    print(v := loss.item())  #! item: logging
    logger.info(v)

# --- closure
def f(loss):
    v = loss.item()  #! item: logging
    def show():
        print(v)
    show()

# --- closure that branches
def f(loss):
    v = loss.item()  #! item: control-flow
    def decide():
        if v > 3:
            g()
    decide()

# --- inner function with its own name
def f(loss):
    v = loss.item()  #! item: logging
    print(v)
    def decide(v):
        if v > 3:
            g()
    return decide

# --- global
best = 0.0
def f(loss):
    global best
    best = loss.item()  #! item: control-flow
def g():
    if best > 3:
        h()

# --- module level
for x in loader:
    lossf = loss_of(x).item()  #! item: logging
    print(lossf)

# --- try and except
def f(loss):
    try:
        v = loss.item()  #! item: logging
    except RuntimeError:
        v = float('nan')
    finally:
        done()
    logger.info('%f', v)

# --- set in a try, asked for in its handler
def f(loss):
    v = 0.0
    try:
        v = loss.item()  #! item: control-flow
        print(v)
        done()
    except RuntimeError:
        if v > 3:
            raise

# --- set in a try, asked for in its else
def f(loss):
    try:
        v = loss.item()  #! item: control-flow
        print(v)
    except RuntimeError:
        v = 0.0
    else:
        if v > 3:
            stop()

# --- set in a handler, asked for in another
def f(loss):
    v = 0.0
    try:
        done()
    except ValueError:
        v = loss.item()  #! item: logging
        print(v)
    except RuntimeError:
        if v > 3:
            raise

# --- set in a loop, asked for in its else
def f(xs):
    for x in xs:
        v = x.item()  #! item: control-flow
        print(v)
    else:
        if v > 3:
            stop()

# --- with block
def f(loss):
    with torch.no_grad(), timer('x') as t:
        v = loss.item()  #! item: logging
    print(v)

# --- async
async def f(loss):
    v = loss.item()  #! item: value-read
    await send(v)

# --- async logged
async def f(loss):
    v = loss.item()  #! item: logging
    await wandb.log({'loss': v})

# --- augmented then branch
def f(x):
    v = x.item()  #! item: control-flow
    v += 1
    if v > 3:
        g()

# --- deleted
def f(x):
    v = x.item()  #! item: logging
    print(v)
    del v

# --- and-or value
def f(x):
    v = x.item() or g()  #! item: control-flow
    print(v)

# --- not shown
def f(t):
    print(not t.any())  #! truth: logging

# --- is None is no use
def f(x):
    v = x.item()  #! item: logging
    if v is None:
        return
    print(v)

# --- a number of NumPy
def f(xs):
    vals = []
    for x in xs:
        vals.append(x.item())  #! item: logging
    print(np.mean(vals).item())

# --- a method of numbers
def f(x):
    v = x.item()  #! item: control-flow
    if v.is_integer():
        g()

# --- combined with a tensor
def f(x, err):
    v = x.std().item()  #! item: round-trip
    out = model(err) / v
    return out.detach()

# --- combined with what may be an array
def f(x, err):
    v = x.std().item()  #! item: round-trip
    out = model(err) / v
    return out.mean()
