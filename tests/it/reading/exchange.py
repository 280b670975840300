# Values that change hands between objects, and what they come to there.

# --- two trainers share a figure's name
class Gen:
    def step(self, out):
        self.loss = out.mean().item()  #! item: logging

class Disc:
    def step(self, out):
        self.loss = out.mean()
    def far(self):
        if self.loss > 3:
            return True

def run(gen, disc):
    print(gen.loss)

# --- decides in the owner's loop
class Opt:
    def __init__(self, net):
        self.net, self.scale = net, 1.0
    def measure(self, g):
        self.scale = g.norm().item()  #! item: control-flow
    def run(self, data):
        for x in data:
            self.measure(self.net(x))
            if self.scale > 10:
                self.net.reset()

# --- patience object
class Patience:
    def __init__(self):
        self.best, self.bad = float('inf'), 0
    def __call__(self, value):
        if value < self.best:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad > 3

class Fit:
    def __init__(self):
        self.patience = Patience()
    def epoch(self, loss):
        v = loss.item()  #! item: control-flow
        return self.patience(v)

# --- method of an owned object branches
class Guard:
    def check(self, value):
        if value > 100:
            self.rollback()

class Fit:
    def __init__(self):
        self.guard = Guard()
    def epoch(self, loss):
        self.guard.check(loss.item())  #! item: control-flow

# --- method of an owned object shows
class Board:
    def __init__(self, out):
        self.out, self.cells = out, {}
    def cell(self, key, value):
        self.cells[key] = value
    def draw(self):
        self.out.write(' '.join(f'{k}={v:.2f}' for k, v in self.cells.items()))

class Fit:
    def __init__(self, out):
        self.board = Board(out)
    def epoch(self, loss):
        self.board.cell('loss', loss.item())  #! item: logging

# --- cells also steer
class Board:
    def __init__(self, out):
        self.out, self.cells = out, {}
    def cell(self, key, value):
        self.cells[key] = value
    def worst(self):
        return max(self.cells, key=self.cells.get)

class Fit:
    def __init__(self, out):
        self.board = Board(out)
    def epoch(self, loss):
        self.board.cell('loss', loss.item())  #! item: control-flow
        self.train_on(self.board.worst())

# --- ema into a loss
class Weight(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = 1.0
    def forward(self, a, b):
        self.w = 0.99 * self.w + 0.01 * (a.detach().norm() / b.detach().norm()).item()  #! item: round-trip
        return F.mse_loss(a, b) * self.w

# --- ratio of numbers returned to a log
def ratio(a, b):
    x = a.norm().item()  #! item: logging
    y = b.norm().item()
    return x / max(y, 1e-9)

def step(a, b):
    logging.debug('ratio %.2f', ratio(a, b))  #< ratio

# --- clock next to a copy
def f(x, host):
    torch.cuda.synchronize()  #! sync: timing
    t0 = time.perf_counter()
    host.copy_(x, non_blocking=True)
    torch.cuda.synchronize()
    print(time.perf_counter() - t0, host.sum())

# --- ring of buffers
class Ring:
    def push(self, x):
        slot = self.slots[self.i % 2]
        slot.event.synchronize()  #! event-sync: barrier
        self.consume(slot.host)
        slot.host.copy_(x, non_blocking=True)
        slot.event.record()
        self.i += 1

# --- returned after the wait
def fetch(x):
    host = torch.empty_like(x, device='cpu').pin_memory()
    host.copy_(x, non_blocking=True)
    torch.cuda.current_stream().synchronize()  #! stream-sync: barrier
    return host

# --- number of boxes
def collate(scores, thr):
    n = (scores > thr).sum().item()  #! item: dynamic-shape
    stats['kept'] = stats.get('kept', 0) + n
    return scores.topk(n).values

# --- offsets through the host
def starts(lens: torch.Tensor):
    offs = torch.tensor([0] + lens.cumsum(0).tolist(), device=lens.device)  #! tolist: round-trip
    return offs

# --- rows become strings that are shown
def show(rows, out):
    text = []
    for row in rows.tolist():  #! tolist: logging
        text.append(','.join(map(str, row)))
    print('\n'.join(text))

# --- values in a namedtuple
def measure(x):
    return Stats(mean=x.mean().item(), n=len(x))  #! item: logging

def f(x):
    s = measure(x)  #< measure
    print(s.mean)

# --- threshold for the next mask
class Prune:
    def fit(self, w):
        self.cut = w.abs().median().item()  #! item: round-trip
    def mask(self, w: torch.Tensor):
        return (w.detach().abs() > self.cut).float()

# --- list of an object, sorted for a choice
class Pool:
    def __init__(self):
        self.scores = []
    def rate(self, x):
        self.scores.append(x.mean().item())  #! item: cpu-compute
    def pick(self):
        return int(np.argmax(self.scores))

class Run:
    def __init__(self):
        self.pool = Pool()
    def next(self, data):
        return data[self.pool.pick()]

# --- set to a sampler
class Sampler:
    def set_temperature(self, t):
        self.t = t
    def draw(self, logits: torch.Tensor):
        return torch.softmax(logits.detach() / self.t, -1)

class Run:
    def __init__(self):
        self.sampler = Sampler()
    def tune(self, entropy):
        self.sampler.set_temperature(entropy.exp().item())  #! item: round-trip

# --- log and a stop in another class's method
class Meter2:
    def __init__(self):
        self.last = None
    def push(self, v):
        self.last = v
    @property
    def diverged(self):
        return self.last is not None and self.last > 1e4

class Run:
    def __init__(self):
        self.m = Meter2()
    def step(self, loss):
        self.m.push(loss.item())  #! item: control-flow
        if self.m.diverged:
            raise RuntimeError('diverged')

# --- tensor list reduced on the host
def spread(parts):
    t = torch.tensor([p.std() for p in parts])  #! float: logging
    writer.add_scalar('spread', t.mean(), 0)
