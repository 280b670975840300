# Reads that decide what runs, guards that only stop or complain, and asserts.

# --- decides
def f(loss, a, t, b, x, opt, v):
    if loss.item() > 3:  #! item: control-flow
        step()
    if a and t.any():  #! truth: control-flow
        g()
    if torch.isnan(loss):  #! truth: control-flow
        return
    g()
    assert torch.allclose(a, b)  #! allclose: control-flow
    scheduler.step(loss.item())  #! item: cpu-compute
    early_stopping(loss.item(), model)  #! item: control-flow
    if x in t:  #! contains: control-flow
        g()
    scaler.step(opt)  #! scaler-step: control-flow
    scheduler.step(v)  #! plateau: cpu-compute

# --- elif
def f(a, loss):
    if a:
        pass
    elif loss.item() > 3:  #! item: control-flow
        step()

# --- while
def f(e):
    while e.item() > 1e-3:  #! item: control-flow
        e = step(e)

# --- ternary
def f(x):
    y = 1 if x.item() > 0 else 2  #! item: control-flow
    return y

# --- comprehension if
def f(xs):
    ys = [x for x in xs if x.item() > 0]  #! item: control-flow
    return ys

# --- any
def f(y):
    if (y > 1e30).any():  #! truth: control-flow
        return y * 2
    return y

# --- not
def f(done):
    while not done.all():  #! truth: control-flow
        done = step()

# --- max
def f(a, b):
    return max(a[0], b[0])  #! truth: control-flow

# --- raise guard
def f(loss):
    if loss.item() > 1e4:  #! item: control-flow
        raise RuntimeError('diverged')

# --- named branch
def f(loss):
    v = loss.item()  #! item: control-flow
    print(v)
    if v < 1:
        save()

# --- best
def f(val, best):
    v = val.item()  #! item: control-flow
    if v < best:
        best = v
    return best

# --- loop bound
def f(n):
    for i in range(n.item()):  #! item: control-flow
        g(i)

# --- size
def f(n):
    k = int(n)  #! int: dynamic-shape
    return torch.zeros(k, 4, device='cuda')

# --- view
def f(x, n):
    return x.view(n.item(), -1)  #! item: dynamic-shape

# --- split
def f(x, ls):
    return x.split(ls.tolist())  #! tolist: dynamic-shape

# --- slice
def f(x, n):
    k = n.item()  #! item: dynamic-shape
    return x[:k]

# --- index
def f(names, i):
    return names[i.item()]  #! item: cpu-compute

# --- dict key
def f(t):
    d = {}
    d[t.item()] = 1  #! item: cpu-compute
    return d

# --- lr
def f(opt, loss):
    lr = 0.1 * loss.item()  #! item: cpu-compute
    for g in opt.param_groups:
        g['lr'] = lr

# --- imwrite
def f(img):
    a = img.cpu().numpy()  #! cpu: cpu-compute
    cv2.imwrite('a.png', a)

# --- match
def f(t):
    match t.item():  #! item: control-flow
        case 1:
            a()
        case _:
            b()

# --- a guard
if loss.item() > 9:  #! item: control-flow; pattern A35
    raise ValueError

# --- a guard by its name
v = loss.item()  #! item: control-flow; pattern A35
if math.isnan(v):
    sys.exit(1)

# --- a guard with another reason
if a.item() > 9 or b:  #! item: control-flow; pattern A35
    raise ValueError

# --- a guard on a tensor
if torch.isnan(loss):  #! truth: control-flow; pattern A35
    raise ValueError

# --- what ends the loop is a guard, what skips a step needs its answer before the step
for x in batches:
    loss = model(x)
    if torch.isnan(loss):  #! truth: control-flow; pattern A35
        print("diverged")
        break
    if torch.isinf(loss):  #! truth: control-flow; pattern A42
        continue
    loss.backward()

def step(x):
    loss = model(x)
    if not torch.isfinite(loss):  #! truth: control-flow; pattern A42
        return None
    loss.backward()

# --- no guard
if loss.item() > 9:  #! item: control-flow; pattern A01
    step()

# --- no guard with another reason
if a.item() > 9 or b:  #! item: control-flow; pattern A01
    step()

# --- no guard on a tensor
if (x > 0).all():  #! truth: control-flow; pattern A42
    step()

# --- asserts are validations that can go
assert (x > 0).all()  #! truth: control-flow; pattern A35; rule S03; says python -O; says torch._assert_async
assert not torch.isnan(x).any()  #! truth: control-flow; pattern A35; rule S03; says python -O; says torch._assert_async
assert ok and (x > 0).all(), 'negative'  #! truth: control-flow; pattern A35; rule S03; says python -O; says torch._assert_async
assert x.item() > 0  #! item: control-flow; pattern A35; rule S03; says python -O; says torch._assert_async
assert x.item() > 0 and ok  #! item: control-flow; pattern A35; rule S03; says python -O; says torch._assert_async
assert ok or x.item() > 0  #! item: control-flow; pattern A35; rule S03; says python -O; says torch._assert_async
assert torch.allclose(a, b)  #! allclose: control-flow; pattern A35; rule S03; says python -O; says torch._assert_async

# --- an assert below
v = x.item()  #! item: control-flow; pattern A35; rule S03; says python -O; says torch._assert_async
print(v)
assert math.isfinite(v)

# --- a branch outweighs an assert
v = x.item()  #! item: control-flow; pattern A01; rule S06
assert v > 0
if v > 3:
    step()

# --- the form is asked, not the values
def show(n):
    rows = n.cpu()  #! cpu: logging
    if rows.dim() == 1 and rows.is_contiguous() and rows.type() == "torch.FloatTensor":
        rows = rows[None]
    print(rows)

# --- a default for zero
def f(a):
    n = a.item()  #! item: logging
    print(3 / (n or 1.0))

# --- tests of what it is
def to_number(v, digits):
    if hasattr(v, '__round__'):
        return round(v, digits)
    elif torch.is_tensor(v) and v.numel() == 1:
        return to_number(v.item(), digits)  #! item: logging
    elif np.ndim(v) == 0 and hasattr(v, 'item'):
        return v.item()
    return v

def show(v):
    print(to_number(v, 3))  #< to_number

# --- a branch that computes in place
def f(x, y, i, flag):
    if flag.any():  #! truth: control-flow
        z = x * 2
        z.scatter_(1, i, y)
    else:
        z = x

# --- one after the other
def f(tokens, end):
    for token in tokens:
        if token == end:  #! truth: control-flow; rules S01 S17
            stop()

# --- one after the other, in a caller
def name(i, unknown):
    if i == unknown:  #! truth: control-flow; rules S01 S17
        return '?'

def text(tokens, unknown):
    return ' '.join(name(i, unknown) for i in tokens)  #< name

# --- the larger of two tensors goes on to the device
def first_step(d0, d1, d2, order):
    h0 = 0.01 * d0 / d1
    h1 = (0.01 / max(d1, d2)) ** (1. / float(order + 1))  #! bool: round-trip; pattern A05
    return torch.min(100 * h0, h1.abs()).to(d0)

# --- the larger of two tensors is told
def best(acc, best_acc):
    best_acc = max(acc, best_acc)  #! bool: control-flow; rules S14; pattern A05
    if best_acc > 0.5:
        save()

# --- a value that the function was given
def stop(scores, limit):
    if scores[0] > limit:  #! truth: control-flow
        raise_limit()

# --- a value that the function computes
def stop(model, x):
    scores = model(x)
    if scores.max() > 3:  #! truth: control-flow
        raise_limit()

# --- a branch that ends the loop may be asked late
def train(model, batches, limit):
    for batch in batches:
        loss = model(batch)
        if loss.item() < limit:  #! item: control-flow; pattern A38
            break
        if (loss < limit).all() and model.ready:  #! truth: control-flow; pattern A38
            self.should_stop = True
    while loss.item() > limit:  #! item: control-flow; pattern A38
        loss = model.step()
    while not loss.all():  #! truth: control-flow; pattern A38
        loss = model.step()

# --- one that acts may not
def validate(model, batches, best):
    for batch in batches:
        acc = model(batch)
        if acc.item() > best:  #! item: control-flow; pattern A01
            copyfile('last.pt', 'best.pt')
        if acc > best:  #! truth: control-flow; pattern A42
            copyfile('last.pt', 'best.pt')
        if not acc.all():  #! truth: control-flow; pattern A42
            model.reset()

# --- a search among what the loop goes through
def search(boxes, model):
    for box in boxes:
        if box.sum().item() > 3:  #! item: control-flow; pattern A01
            break
    for box in boxes:
        score = model(box)
        if score.item() > 3:  #! item: control-flow; pattern A01
            return box
    for box in boxes:
        if model.score(box).item() > 3:  #! item: control-flow; pattern A01
            return True
    return False

# --- how often a loop runs
def sub(model, n):
    for i in range(n.item()):  #! item: control-flow; pattern A07
        model.sub(i)

# --- a branch that only fills a part of a tensor
def rule(logits, k, stamp, text, begin):
    if stamp.logsumexp(0) > text.max():  #! truth: control-flow; pattern A03
        logits[k, :begin] = -np.inf

# --- decided once, after the loop that collects it
def test(model, masks):
    accs = []
    for mask in masks:
        accs.append(int(model(mask).sum()))  #! int: control-flow; pattern A14; says needed only once
    if accs[0] > 3:
        save(model)

# --- an assertion on what Python's abs gives
def f(self, a):
    q = self.model.get(a, device=self.device)
    assert (abs(q.sum(dim=2) - 1.) < 1e-4).all()  #! truth: control-flow; pattern A35

# --- an assertion on a field of what a call gives
def f(self, a):
    q = self.model.get(a, device=self.device)
    assert (abs(q.E.sum(dim=2) - 1.) < 1e-4).all()  #! truth: control-flow; pattern A35
