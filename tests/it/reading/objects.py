# State kept in objects, and values that change hands between them.

# --- running figure of a dataclass, shown by a function
@dataclass
class State:
    loss_ema: float = 0.0
    step: int = 0

def train_one(state, model, batch):
    loss = model(batch)
    state.loss_ema = 0.98 * state.loss_ema + 0.02 * loss.item()  #! item: logging
    state.step += 1

def heartbeat(state):
    logging.getLogger(__name__).info('step %d loss %.3f', state.step, state.loss_ema)

# --- peak, shown by a method
class Watch:
    def __init__(self):
        self.peak = 0.0
    def see(self, grad):
        self.peak = max(self.peak, grad.abs().max().item())  #! item: logging
    def close(self):
        print('largest gradient', self.peak)

# --- trend, asked by a method that a branch asks
class Curriculum:
    def __init__(self):
        self.trend = 1.0
    def feed(self, loss):
        self.trend = 0.9 * self.trend + 0.1 * loss.item()  #! item: control-flow
    def ready(self):
        return self.trend < 0.2
    def advance(self, data):
        if self.ready():
            data.harder()

# --- another object shows it
class Codec:
    def __init__(self):
        self.used = 0.0
    def encode(self, x):
        codes = self.book(x)
        self.used = codes.unique_share().item()  #! item: logging
        return codes

class Runner:
    def __init__(self):
        self.codec = Codec()
    def status(self):
        print(f'codes in use {self.codec.used:.1%}')

# --- another object branches on it
class Codec:
    def __init__(self):
        self.used = 0.0
    def encode(self, x):
        codes = self.book(x)
        self.used = codes.unique_share().item()  #! item: control-flow
        return codes

class Runner:
    def __init__(self):
        self.codec = Codec()
    def after_epoch(self):
        if self.codec.used < 0.1:
            self.codec.restart()

# --- rows written by another method
class Table:
    def __init__(self, path):
        self.rows, self.path = [], path
    def put(self, step, value):
        self.rows.append((step, float(value)))  #! float: logging
    def flush(self):
        with open(self.path, 'a') as out:
            for step, value in self.rows:
                out.write(f'{step},{value:.6f}\n')
        self.rows.clear()

# --- window that a branch asks
class Plateau:
    def __init__(self):
        self.window = deque(maxlen=5)
    def add(self, loss):
        self.window.append(loss.item())  #! item: control-flow
    def flat(self):
        return max(self.window) - min(self.window) < 1e-3
    def __call__(self, loss):
        self.add(loss)
        if self.flat():
            raise StopIteration

# --- scale for tensors of another method
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = 1.0
    def calibrate(self, feats: torch.Tensor):
        self.norm = feats.norm(dim=1).mean().item()  #! item: round-trip
    def forward(self, feats: torch.Tensor):
        return F.linear(feats.detach() / self.norm, self.weight)

# --- counter shown at the end
class Loop:
    def __init__(self):
        self.bad = 0
    def step(self, loss):
        self.bad += int(torch.isnan(loss).any())  #! read integral_scalar 1: logging
    def summary(self):
        return print('skipped', self.bad)

# --- an object of another class
class Probe:
    def see(self, x):
        self.level = x.mean().item()  #! item: value-read

class Tank:
    def __init__(self):
        self.level = 0

def watch(name):
    tank = Tank()
    if tank.level > 3:
        tank.drain()

# --- an object of no known class
class Probe:
    def see(self, x):
        self.level = x.mean().item()  #! item: value-read

def watch(thing):
    if thing.level > 3:
        thing.drain()

# --- shown, but perhaps not this one
class Probe:
    def see(self, x):
        self.level = x.mean().item()  #! item: value-read

def watch(thing):
    print(thing.level)

# --- a method that nobody calls
class Probe:
    def see(self, x):
        self.level = x.mean().item()  #! item: value-read
    def high(self):
        return self.level > 3

# --- a method of another class
class Probe:
    def see(self, x):
        self.level = x.mean().item()  #! item: value-read
    def high(self):
        return self.level > 3

class Tank:
    def high(self):
        return False

def watch():
    tank = Tank()
    if tank.high():
        tank.drain()

# --- of a derived class
class Probe:
    def see(self, x):
        self.level = x.mean().item()  #! item: control-flow

class Fine(Probe):
    def after(self):
        if self.level > 3:
            self.reset()

# --- kept by what is no recorder
class Probe:
    def see(self, x):
        self.seen.append((1, x.mean().item()))  #! item: value-read

# --- kept by a recorder, and asked
class Book:
    def add_scalar(self, tag, value):
        self.last = float(value)  #! float: control-flow
    def done(self):
        if self.last < 0.1:
            raise StopIteration

# --- kept by a recorder
class Book:
    def add_scalar(self, tag, value, step):
        self.table[tag, step] = float(value)  #! float: logging

# --- an object that may be of two classes
class Loud:
    def push(self, v):
        print(v)

class Strict:
    def push(self, v):
        if v > 3:
            raise ValueError

def run(strict, loss):
    sink = Strict() if strict else Loud()
    sink.push(loss.item())  #! item: value-read

# --- assigned two classes
class Loud:
    def push(self, v):
        print(v)

class Strict:
    def push(self, v):
        if v > 3:
            raise ValueError

class Run:
    def __init__(self, strict):
        self.sink = Loud()
        if strict:
            self.sink = Strict()
    def step(self, loss):
        self.sink.push(loss.item())  #! item: value-read

# --- called, but of no class here
class Patience:
    def __call__(self, v):
        return v < 3

def run(patience, loss):
    patience(loss.item())  #! item: value-read

# --- without self
class Run:
    @staticmethod
    def shown(value, limit):
        print(value)
    def step(self, loss):
        self.shown(loss.item(), 3)  #! item: logging

# --- a function in a method
class Run:
    def step(self, loss):
        def shown(value, limit):
            if limit > 3:
                print(value)
        shown(loss.item(), 3)  #! item: logging

# --- wrapped environments act on the CPU
class Wrapper:
    def step_async(self, actions):
        actions = actions.cpu().numpy()  #! cpu: cpu-compute
        self.venv.step_async(actions)
