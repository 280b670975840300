//! Labelled snippets: values that change hands between objects, and what they come to there.

use super::Observed;
use super::tests::Expect::Is;
use super::tests::*;
use crate::vocabulary::Kind::*;

#[test]
fn values_change_hands() {
    check(&[
        (
            "two trainers share a figure's name",
            "
class Gen:
    def step(self, out):
        self.loss = out.mean().item()  # <- here

class Disc:
    def step(self, out):
        self.loss = out.mean()
    def far(self):
        if self.loss > 3:
            return True

def run(gen, disc):
    print(gen.loss)
",
            item(),
            Is(Logging),
        ),
        (
            "decides in the owner's loop",
            "
class Opt:
    def __init__(self, net):
        self.net, self.scale = net, 1.0
    def measure(self, g):
        self.scale = g.norm().item()  # <- here
    def run(self, data):
        for x in data:
            self.measure(self.net(x))
            if self.scale > 10:
                self.net.reset()
",
            item(),
            Is(ControlFlow),
        ),
        (
            "patience object",
            "
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
        v = loss.item()  # <- here
        return self.patience(v)
",
            item(),
            Is(ControlFlow),
        ),
        (
            "method of an owned object branches",
            "
class Guard:
    def check(self, value):
        if value > 100:
            self.rollback()

class Fit:
    def __init__(self):
        self.guard = Guard()
    def epoch(self, loss):
        self.guard.check(loss.item())  # <- here
",
            item(),
            Is(ControlFlow),
        ),
        (
            "method of an owned object shows",
            "
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
        self.board.cell('loss', loss.item())  # <- here
",
            item(),
            Is(Logging),
        ),
        (
            "cells also steer",
            "
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
        self.board.cell('loss', loss.item())  # <- here
        self.train_on(self.board.worst())
",
            item(),
            Is(ValueRead),
        ),
        (
            "ema into a loss",
            "
class Weight(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = 1.0
    def forward(self, a, b):
        self.w = 0.99 * self.w + 0.01 * (a.detach().norm() / b.detach().norm()).item()  # <- here
        return F.mse_loss(a, b) * self.w
",
            item(),
            Is(RoundTrip),
        ),
        (
            "ratio of numbers returned to a log",
            "
def ratio(a, b):
    x = a.norm().item()  # <- here
    y = b.norm().item()
    return x / max(y, 1e-9)

def step(a, b):
    logging.debug('ratio %.2f', ratio(a, b))  # <- caller
",
            item(),
            Is(Logging),
        ),
        (
            "clock next to a copy",
            "
def f(x, host):
    torch.cuda.synchronize()  # <- here
    t0 = time.perf_counter()
    host.copy_(x, non_blocking=True)
    torch.cuda.synchronize()
    print(time.perf_counter() - t0, host.sum())
",
            explicit(),
            Is(Timing),
        ),
        (
            "ring of buffers",
            "
class Ring:
    def push(self, x):
        slot = self.slots[self.i % 2]
        slot.event.synchronize()  # <- here
        self.consume(slot.host)
        slot.host.copy_(x, non_blocking=True)
        slot.event.record()
        self.i += 1
",
            Observed { api: "cudaEventSynchronize", ..explicit() },
            Is(Barrier),
        ),
        (
            "returned after the wait",
            "
def fetch(x):
    host = torch.empty_like(x, device='cpu').pin_memory()
    host.copy_(x, non_blocking=True)
    torch.cuda.current_stream().synchronize()  # <- here
    return host
",
            Observed { api: "cudaStreamSynchronize", ..explicit() },
            Is(Barrier),
        ),
        (
            "number of boxes",
            "
def collate(scores, thr):
    n = (scores > thr).sum().item()  # <- here
    stats['kept'] = stats.get('kept', 0) + n
    return scores.topk(n).values
",
            item(),
            Is(DynamicShape),
        ),
        (
            "offsets through the host",
            "
def starts(lens: torch.Tensor):
    offs = torch.tensor([0] + lens.cumsum(0).tolist(), device=lens.device)  # <- here
    return offs
",
            bulk("tolist"),
            Is(RoundTrip),
        ),
        (
            "rows become strings that are shown",
            "
def show(rows, out):
    text = []
    for row in rows.tolist():  # <- here
        text.append(','.join(map(str, row)))
    print('\\n'.join(text))
",
            bulk("tolist"),
            Is(Logging),
        ),
        (
            "values in a namedtuple",
            "
def measure(x):
    return Stats(mean=x.mean().item(), n=len(x))  # <- here

def f(x):
    s = measure(x)  # <- caller
    print(s.mean)
",
            item(),
            Is(ValueRead),
        ),
        (
            "threshold for the next mask",
            "
class Prune:
    def fit(self, w):
        self.cut = w.abs().median().item()  # <- here
    def mask(self, w: torch.Tensor):
        return (w.detach().abs() > self.cut).float()
",
            item(),
            Is(RoundTrip),
        ),
        (
            "list of an object, sorted for a choice",
            "
class Pool:
    def __init__(self):
        self.scores = []
    def rate(self, x):
        self.scores.append(x.mean().item())  # <- here
    def pick(self):
        return int(np.argmax(self.scores))

class Run:
    def __init__(self):
        self.pool = Pool()
    def next(self, data):
        return data[self.pool.pick()]
",
            item(),
            Is(CpuCompute),
        ),
        (
            "set to a sampler",
            "
class Sampler:
    def set_temperature(self, t):
        self.t = t
    def draw(self, logits: torch.Tensor):
        return torch.softmax(logits.detach() / self.t, -1)

class Run:
    def __init__(self):
        self.sampler = Sampler()
    def tune(self, entropy):
        self.sampler.set_temperature(entropy.exp().item())  # <- here
",
            item(),
            Is(RoundTrip),
        ),
        (
            "log and a stop in another class's method",
            "
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
        self.m.push(loss.item())  # <- here
        if self.m.diverged:
            raise RuntimeError('diverged')
",
            item(),
            Is(ControlFlow),
        ),
        (
            "tensor list reduced on the host",
            "
def spread(parts):
    t = torch.tensor([p.std() for p in parts])  # <- here
    writer.add_scalar('spread', t.mean(), 0)
",
            scalar("float_scalar", 4),
            Is(Logging),
        ),
    ]);
}

#[test]
fn unknown_objects_say_nothing() {
    let two = "
class Loud:
    def push(self, v):
        print(v)

class Strict:
    def push(self, v):
        if v > 3:
            raise ValueError
";
    let either = format!(
        "{two}
def run(strict, loss):
    sink = Strict() if strict else Loud()
    sink.push(loss.item())  # <- here
"
    );
    let both = format!(
        "{two}
class Run:
    def __init__(self, strict):
        self.sink = Loud()
        if strict:
            self.sink = Strict()
    def step(self, loss):
        self.sink.push(loss.item())  # <- here
"
    );
    check(&[
        ("an object that may be of two classes", &either, item(), Is(ValueRead)),
        ("assigned two classes", &both, item(), Is(ValueRead)),
        (
            "called, but of no class here",
            "
class Patience:
    def __call__(self, v):
        return v < 3

def run(patience, loss):
    patience(loss.item())  # <- here
",
            item(),
            Is(ValueRead),
        ),
        (
            "without self",
            "
class Run:
    @staticmethod
    def shown(value, limit):
        print(value)
    def step(self, loss):
        self.shown(loss.item(), 3)  # <- here
",
            item(),
            Is(Logging),
        ),
        (
            "a function in a method",
            "
class Run:
    def step(self, loss):
        def shown(value, limit):
            if limit > 3:
                print(value)
        shown(loss.item(), 3)  # <- here
",
            item(),
            Is(Logging),
        ),
    ]);
}
