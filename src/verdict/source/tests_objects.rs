//! Where the rules about objects, tensors made of tensors, lengths, sets and draws must stay silent.

use super::tests::Expect::{Is, Stale};
use super::tests::*;
use crate::vocabulary::Kind::*;

#[test]
fn attributes_of_others_say_nothing() {
    check(&[
        (
            "an object of another class",
            "
class Probe:
    def see(self, x):
        self.level = x.mean().item()  # <- here

class Tank:
    def __init__(self):
        self.level = 0

def watch(name):
    tank = Tank()
    if tank.level > 3:
        tank.drain()
",
            item(),
            Is(ValueRead),
        ),
        (
            "an object of no known class",
            "
class Probe:
    def see(self, x):
        self.level = x.mean().item()  # <- here

def watch(thing):
    if thing.level > 3:
        thing.drain()
",
            item(),
            Is(ValueRead),
        ),
        (
            "shown, but perhaps not this one",
            "
class Probe:
    def see(self, x):
        self.level = x.mean().item()  # <- here

def watch(thing):
    print(thing.level)
",
            item(),
            Is(ValueRead),
        ),
        (
            "a method that nobody calls",
            "
class Probe:
    def see(self, x):
        self.level = x.mean().item()  # <- here
    def high(self):
        return self.level > 3
",
            item(),
            Is(ValueRead),
        ),
        (
            "a method of another class",
            "
class Probe:
    def see(self, x):
        self.level = x.mean().item()  # <- here
    def high(self):
        return self.level > 3

class Tank:
    def high(self):
        return False

def watch():
    tank = Tank()
    if tank.high():
        tank.drain()
",
            item(),
            Is(ValueRead),
        ),
        (
            "of a derived class",
            "
class Probe:
    def see(self, x):
        self.level = x.mean().item()  # <- here

class Fine(Probe):
    def after(self):
        if self.level > 3:
            self.reset()
",
            item(),
            Is(ControlFlow),
        ),
        (
            "kept by what is no recorder",
            "
class Probe:
    def see(self, x):
        self.seen.append((1, x.mean().item()))  # <- here
",
            item(),
            Is(ValueRead),
        ),
        (
            "kept by a recorder, and asked",
            "
class Book:
    def add_scalar(self, tag, value):
        self.last = float(value)  # <- here
    def done(self):
        if self.last < 0.1:
            raise StopIteration
",
            scalar("float_scalar", 4),
            Is(ControlFlow),
        ),
        (
            "kept by a recorder",
            "
class Book:
    def add_scalar(self, tag, value, step):
        self.table[tag, step] = float(value)  # <- here
",
            scalar("float_scalar", 4),
            Is(Logging),
        ),
    ]);
}

#[test]
fn numbers_stay_numbers() {
    check(&[
        (
            "a number of NumPy",
            "
def f(xs):
    vals = []
    for x in xs:
        vals.append(x.item())  # <- here
    print(np.mean(vals).item())
",
            item(),
            Is(Logging),
        ),
        (
            "a method of numbers",
            "
def f(x):
    v = x.item()  # <- here
    if v.is_integer():
        g()
",
            item(),
            Is(ControlFlow),
        ),
        (
            "combined with a tensor",
            "
def f(x, err):
    v = x.std().item()  # <- here
    out = model(err) / v
    return out.detach()
",
            item(),
            Is(RoundTrip),
        ),
        (
            "combined with what may be an array",
            "
def f(x, err):
    v = x.std().item()  # <- here
    out = model(err) / v
    return out.mean()
",
            item(),
            Is(RoundTrip),
        ),
    ]);
}

#[test]
fn tensors_of_numbers_read_nothing() {
    check(&[
        (
            "numbers",
            "def f(d):\n    return torch.tensor([1.0, 2.0], device=d)  # <- here\n",
            scalar("float_scalar", 4),
            Stale,
        ),
        (
            "sizes",
            "def f(x):\n    return torch.tensor([x.shape[0], len(x)], device=x.device)  # <- here\n",
            scalar("integral_scalar", 8),
            Stale,
        ),
        (
            "the read is the other one",
            "def f(x, d):\n    if float(x) > torch.tensor([1.0, 2.0], device=d).shape[0]:  # <- here\n        g()\n",
            scalar("float_scalar", 4),
            Is(ControlFlow),
        ),
        (
            "decides on the host",
            "
def f(a, b):
    pair = torch.tensor([a.detach().norm(), b.detach().norm()])  # <- here
    if pair[0] > pair[1]:
        swap()
",
            scalar("float_scalar", 4),
            Is(ControlFlow),
        ),
    ]);
}

#[test]
fn lengths_sets_and_draws() {
    check(&[
        (
            "not the lengths",
            "def f(x, lens):\n    return pack_padded_sequence(x.cpu(), lens)  # <- here\n",
            bulk("cpu"),
            Is(ValueRead),
        ),
        (
            "uploaded, then changed",
            "
def f(x, batch):
    lens = torch.tensor(batch.lens).cuda()
    lens.clamp_(max=9)
    return pack_padded_sequence(x, lens.cpu())  # <- here
",
            bulk("cpu"),
            Is(CpuCompute),
        ),
        (
            "computed from an upload",
            "
def f(x, batch):
    lens = torch.tensor(batch.lens).cuda()
    return pack_padded_sequence(x, (lens + 1).cpu())  # <- here
",
            bulk("cpu"),
            Is(CpuCompute),
        ),
        (
            "a key that is not only uploaded",
            "
def load(batch):
    return {'len': batch.lens.cuda()}

def crop(out, mask):
    out['len'] = mask.sum(1)

def f(x, b):
    return pack_padded_sequence(x, b['len'].cpu())  # <- here
",
            bulk("cpu"),
            Is(CpuCompute),
        ),
        (
            "a list, no set",
            "
def f(rows):
    found = []
    for row in rows.tolist():  # <- here
        found.extend(row)
    return found
",
            bulk("tolist"),
            Is(ValueRead),
        ),
        (
            "a set of single values",
            "
def f(xs):
    found = set()
    for x in xs:
        found.add(x.item())  # <- here
    return found
",
            item(),
            Is(ValueRead),
        ),
        (
            "how many to draw",
            "
def f(weights, clash):
    n = int(clash.sum())  # <- here
    return torch.multinomial(weights, n)
",
            scalar("integral_scalar", 8),
            Is(DynamicShape),
        ),
        (
            "how to draw",
            "
def f(memory, heat):
    t = heat.item()  # <- here
    return memory.sample(32, temperature=t)
",
            item(),
            Is(ValueRead),
        ),
        (
            "a setting of no simulator",
            "class A:\n    def f(self, x):\n        self.cfg.set_level(x.item())  # <- here\n",
            item(),
            Is(ValueRead),
        ),
        (
            "a setting of a simulator",
            "class A:\n    def f(self, x):\n        self.eval_env.set_level(x.item())  # <- here\n",
            item(),
            Is(CpuCompute),
        ),
        (
            "words to stop at",
            "class A:\n    def f(self, x):\n        self.stop_words.update(x.tolist())  # <- here\n",
            bulk("tolist"),
            Is(ValueRead),
        ),
    ]);
}

#[test]
fn operators_that_check() {
    let check_of = |method| scalar(method, 1);
    check(&[
        (
            "normal",
            "def f(m, s):\n    return torch.normal(m, s.exp())  # <- here\n",
            check_of("normal"),
            Is(ErrorCheck),
        ),
        ("cov", "def f(x):\n    return torch.cov(x.T)  # <- here\n", check_of("cov"), Is(ErrorCheck)),
        (
            "a number is checked on the host",
            "def f(m, x):\n    return torch.normal(m, 0.1) * float(x)  # <- here\n",
            scalar("float_scalar", 4),
            Is(RoundTrip),
        ),
        ("cov of NumPy", "def f(x):\n    return np.cov(x.cpu())  # <- here\n", bulk("cpu"), Is(ValueRead)),
    ]);
}

#[test]
fn waits_that_make_nothing_valid() {
    check(&[
        (
            "only written after it",
            "
class Pump:
    def run(self, xs):
        torch.cuda.synchronize()  # <- here
        for x in xs:
            self.host.copy_(x, non_blocking=True)
",
            explicit(),
            Is(Explicit),
        ),
        (
            "a later wait is nearer",
            "
def f(x, host):
    host.copy_(x, non_blocking=True)
    torch.cuda.synchronize()  # <- here
    g(x)
    torch.cuda.synchronize()
    return host.numpy()
",
            explicit(),
            Is(Explicit),
        ),
        (
            "a later wait that may not run",
            "
def f(x, host, slow):
    host.copy_(x, non_blocking=True)
    torch.cuda.synchronize()  # <- here
    if slow:
        torch.cuda.synchronize()
    return host.numpy()
",
            explicit(),
            Is(Barrier),
        ),
        (
            "in a branch itself",
            "
def f(x, host, now):
    host.copy_(x, non_blocking=True)
    if now:
        torch.cuda.synchronize()  # <- here
    return host.numpy()
",
            explicit(),
            Is(Barrier),
        ),
        (
            "read before the copy, waited for after it",
            "
def f(xs, host):
    for x in xs:
        g(host.numpy())
        host.copy_(x, non_blocking=True)
        torch.cuda.synchronize()  # <- here
",
            explicit(),
            Is(Barrier),
        ),
    ]);
}
