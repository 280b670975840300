//! Labelled snippets in many hands' styles, labelled before the tool saw them: where values go once they leave a name.

use super::Observed;
use super::tests::Expect::Is;
use super::tests::*;
use crate::vocabulary::Kind::*;

fn event() -> Observed<'static> {
    Observed {
        api: "cudaEventSynchronize",
        through: Some(("/v/torch/cuda/streams.py", "synchronize")),
        ..Observed::default()
    }
}

#[test]
fn state_kept_in_objects() {
    check(&[
        (
            "running figure of a dataclass, shown by a function",
            "
@dataclass
class State:
    loss_ema: float = 0.0
    step: int = 0

def train_one(state, model, batch):
    loss = model(batch)
    state.loss_ema = 0.98 * state.loss_ema + 0.02 * loss.item()  # <- here
    state.step += 1

def heartbeat(state):
    logging.getLogger(__name__).info('step %d loss %.3f', state.step, state.loss_ema)
",
            item(),
            Is(Logging),
        ),
        (
            "peak, shown by a method",
            "
class Watch:
    def __init__(self):
        self.peak = 0.0
    def see(self, grad):
        self.peak = max(self.peak, grad.abs().max().item())  # <- here
    def close(self):
        print('largest gradient', self.peak)
",
            item(),
            Is(Logging),
        ),
        (
            "trend, asked by a method that a branch asks",
            "
class Curriculum:
    def __init__(self):
        self.trend = 1.0
    def feed(self, loss):
        self.trend = 0.9 * self.trend + 0.1 * loss.item()  # <- here
    def ready(self):
        return self.trend < 0.2
    def advance(self, data):
        if self.ready():
            data.harder()
",
            item(),
            Is(ControlFlow),
        ),
        (
            "another object shows it",
            "
class Codec:
    def __init__(self):
        self.used = 0.0
    def encode(self, x):
        codes = self.book(x)
        self.used = codes.unique_share().item()  # <- here
        return codes

class Runner:
    def __init__(self):
        self.codec = Codec()
    def status(self):
        print(f'codes in use {self.codec.used:.1%}')
",
            item(),
            Is(Logging),
        ),
        (
            "another object branches on it",
            "
class Codec:
    def __init__(self):
        self.used = 0.0
    def encode(self, x):
        codes = self.book(x)
        self.used = codes.unique_share().item()  # <- here
        return codes

class Runner:
    def __init__(self):
        self.codec = Codec()
    def after_epoch(self):
        if self.codec.used < 0.1:
            self.codec.restart()
",
            item(),
            Is(ControlFlow),
        ),
        (
            "rows written by another method",
            "
class Table:
    def __init__(self, path):
        self.rows, self.path = [], path
    def put(self, step, value):
        self.rows.append((step, float(value)))  # <- here
    def flush(self):
        with open(self.path, 'w') as out:
            for step, value in self.rows:
                out.write(f'{step},{value:.6f}\\n')
        self.rows.clear()
",
            scalar("float_scalar", 4),
            Is(Logging),
        ),
        (
            "window that a branch asks",
            "
class Plateau:
    def __init__(self):
        self.window = deque(maxlen=5)
    def add(self, loss):
        self.window.append(loss.item())  # <- here
    def flat(self):
        return max(self.window) - min(self.window) < 1e-3
    def __call__(self, loss):
        self.add(loss)
        if self.flat():
            raise StopIteration
",
            item(),
            Is(ControlFlow),
        ),
        (
            "scale for tensors of another method",
            "
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = 1.0
    def calibrate(self, feats: torch.Tensor):
        self.norm = feats.norm(dim=1).mean().item()  # <- here
    def forward(self, feats: torch.Tensor):
        return F.linear(feats.detach() / self.norm, self.weight)
",
            item(),
            Is(RoundTrip),
        ),
        (
            "counter shown at the end",
            "
class Loop:
    def __init__(self):
        self.bad = 0
    def step(self, loss):
        self.bad += int(torch.isnan(loss).any())  # <- here
    def summary(self):
        return print('skipped', self.bad)
",
            scalar("integral_scalar", 1),
            Is(Logging),
        ),
    ]);
}

#[test]
fn values_that_come_back() {
    check(&[
        (
            "property that is shown",
            "
class Temperature(nn.Module):
    @property
    def degrees(self):
        return self.log_t.exp().item()  # <- here

def report(t):
    tqdm.write(f't={t.degrees:.2f}')  # <- caller
",
            item(),
            Is(Logging),
        ),
        (
            "dict, and its figure decides",
            "
def one(model, batch):
    loss = model(batch)
    return {'loss': loss.item(), 'n': len(batch)}  # <- here

def run(model, loader):
    for batch in loader:
        m = one(model, batch)  # <- caller
        if m['loss'] > 50:
            break
",
            item(),
            Is(ControlFlow),
        ),
        (
            "dict, and another figure decides",
            "
def one(model, batch):
    loss = model(batch)
    return {'loss': loss.item(), 'n': len(batch)}  # <- here

def run(model, loader):
    for batch in loader:
        m = one(model, batch)  # <- caller
        if m['n'] < 8:
            break
        print(m['loss'])
",
            item(),
            Is(Logging),
        ),
        (
            "walrus",
            "
def sinkhorn(a, b, tol):
    while (gap := (a - b).norm().item()) > tol:  # <- here
        a, b = update(a, b)
    return a
",
            item(),
            Is(ControlFlow),
        ),
        (
            "mean of a list decides in the caller",
            "
def evaluate(model, loader):
    scores = []
    for x, y in loader:
        scores.append((model(x) == y).float().mean().item())  # <- here
    return float(np.mean(scores))

def fit(model, loader, best):
    score = evaluate(model, loader)  # <- caller
    if score > best:
        save(model)
",
            item(),
            Is(ControlFlow),
        ),
        (
            "list added to, then only shown",
            "
def sweep(model, loader):
    seen = []
    for x in loader:
        seen += [model(x).std().item()]  # <- here
    print('spread', sum(seen) / max(len(seen), 1))
",
            item(),
            Is(Logging),
        ),
        (
            "list indexed for a tensor, otherwise shown",
            "
def sweep(model, loader):
    vals = []
    for x in loader:
        vals.append(model(x).std().item())  # <- here
    logging.info('spread %.3f', np.mean(vals))
",
            item(),
            Is(Logging),
        ),
    ]);
}

#[test]
fn tensors_made_of_tensors() {
    check(&[
        (
            "limits",
            "
def limits(x: torch.Tensor):
    return torch.tensor([x.min(), x.max()], device=x.device)  # <- here
",
            scalar("float_scalar", 4),
            Is(RoundTrip),
        ),
        (
            "shown on the host",
            "
def limits(x):
    pair = torch.tensor([x.detach().min(), x.detach().max()])  # <- here
    print('range', pair)
",
            scalar("float_scalar", 4),
            Is(Logging),
        ),
        (
            "weights from counts",
            "
def weights(counts, device):
    return torch.as_tensor([1.0 / c for c in counts.tolist()], device=device)  # <- here
",
            bulk("tolist"),
            Is(RoundTrip),
        ),
    ]);
}

#[test]
fn counts_and_rows() {
    check(&[
        (
            "count kept and tested",
            "
class Sampler:
    def refill(self, taken):
        n = int(taken.sum())  # <- here
        self.refills += n
        if n == 0:
            return
        self.pool.draw(n)
",
            scalar("integral_scalar", 8),
            Is(ControlFlow),
        ),
        (
            "count kept and a size",
            "
class Packer:
    def pack(self, keep):
        total = int(keep.sum())  # <- here
        self.last = total
        return torch.empty(total, 4, device=keep.device)
",
            scalar("integral_scalar", 8),
            Is(DynamicShape),
        ),
        (
            "rows collected in a set",
            "
def distinct(rows):
    found = set()
    for row in rows.tolist():  # <- here
        found.update(row)
    return len(found)
",
            bulk("tolist"),
            Is(CpuCompute),
        ),
        (
            "rows shown",
            "
def show(rows):
    for row in rows.tolist():  # <- here
        print(*row, sep='\\t')
",
            bulk("tolist"),
            Is(Logging),
        ),
        (
            "rows joined into words",
            "
def words(ids, vocab):
    out = []
    for row in ids.tolist():  # <- here
        out.append(' '.join(vocab[i] for i in row))
    return out
",
            bulk("tolist"),
            Is(CpuCompute),
        ),
        (
            "lengths counted on the device",
            "
def encode(rnn, emb, mask):
    lens = mask.sum(1)
    packed = pack_padded_sequence(emb, lens.cpu(), batch_first=True)  # <- here
    return rnn(packed)
",
            bulk("cpu"),
            Is(CpuCompute),
        ),
        (
            "lengths that came from the host",
            "
def encode(rnn, emb, batch):
    lens = torch.tensor(batch.lens).cuda(non_blocking=True)
    packed = nn.utils.rnn.pack_padded_sequence(emb, lens.cpu(), enforce_sorted=False)  # <- here
    return rnn(packed)
",
            bulk("cpu"),
            Is(RoundTrip),
        ),
    ]);
}

#[test]
fn waits_and_their_buffers() {
    check(&[
        (
            "copied after the wait, read after its own event",
            "
def pump(frames, host, ready):
    for frame in frames:
        torch.cuda.synchronize()  # <- here
        out = net(frame)
        host.copy_(out, non_blocking=True)
        ready.record()
        ready.synchronize()
        sink(host.numpy())
",
            explicit(),
            Is(Explicit),
        ),
        (
            "its own event",
            "
def pump(frames, host, ready):
    for frame in frames:
        out = net(frame)
        host.copy_(out, non_blocking=True)
        ready.record()
        ready.synchronize()  # <- here
        sink(host.numpy())
",
            event(),
            Is(Barrier),
        ),
        (
            "the copy of the last round",
            "
def pump(frames, host):
    for frame in frames:
        torch.cuda.synchronize()  # <- here
        sink(host.numpy())
        host.copy_(net(frame), non_blocking=True)
",
            explicit(),
            Is(Barrier),
        ),
        (
            "the read comes after another wait",
            "
class Exporter:
    def push(self, x):
        torch.cuda.synchronize()  # <- here
        self.host.copy_(x, non_blocking=True)
        self.done.record()
    def pull(self):
        self.done.synchronize()
        return self.host.numpy()
",
            explicit(),
            Is(Explicit),
        ),
        (
            "two copies, one wait",
            "
def both(a, b):
    ha = a.to('cpu', non_blocking=True)
    hb = b.to('cpu', non_blocking=True)
    torch.cuda.current_stream().synchronize()  # <- here
    return ha.numpy() + hb.numpy()
",
            Observed { api: "cudaStreamSynchronize", ..explicit() },
            Is(Barrier),
        ),
    ]);
}
