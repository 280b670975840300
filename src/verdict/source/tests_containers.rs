//! Labelled snippets where the verdict hangs on containers and attributes.

use super::tests::Expect::Is;
use super::tests::{bulk, check, item};
use crate::vocabulary::Kind::*;

#[test]
fn containers_and_attributes() {
    check(&[
        (
            "dict literal",
            "
def f(a, b):
    d = {'loss': a.item(), 'n': 3}  # <- here
    if d['n'] > 2:
        g()
    wandb.log(d)
",
            item(),
            Is(Logging),
        ),
        (
            "dict literal, key read",
            "
def f(a, b):
    d = {'loss': a.item(), 'n': 3}  # <- here
    if d['loss'] > 2:
        g()
",
            item(),
            Is(ControlFlow),
        ),
        (
            "dict store",
            "
def f(a):
    logs = {}
    logs['loss'] = a.item()  # <- here
    for k, v in logs.items():
        print(k, v)
",
            item(),
            Is(Logging),
        ),
        (
            "nested dict",
            "
def f(a):
    d = {'train': {'loss': a.item()}, 'x': g()}  # <- here
    if d['x']:
        h()
    logger.info(d['train']['loss'])
",
            item(),
            Is(Logging),
        ),
        (
            "list appended",
            "
def f(xs):
    out = []
    for x in xs:
        out.append(x.item())  # <- here
    print(sum(out) / len(out))
",
            item(),
            Is(Logging),
        ),
        (
            "list decides inside the loop",
            "
def f(xs):
    out = []
    for x in xs:
        out.append(x.item())  # <- here
        if out[-1] > 3:
            break
",
            item(),
            Is(ControlFlow),
        ),
        (
            "losses returned",
            "
def f(xs):
    losses = []
    for x in xs:
        losses.append(x.item())  # <- here
    return losses
",
            item(),
            Is(Logging),
        ),
        (
            "predictions gathered",
            "
def f(loader):
    preds = []
    for x in loader:
        preds.append(model(x).cpu())  # <- here
    return torch.cat(preds)
",
            bulk("cpu"),
            Is(Logging),
        ),
        (
            "sum over a loop",
            "
def f(loader):
    total = 0.0
    for x in loader:
        total += loss_of(x).item()  # <- here
    return total / len(loader)
",
            item(),
            Is(Logging),
        ),
        (
            "sum spelled out",
            "
def f(loader):
    total = 0.0
    for x in loader:
        total = total + loss_of(x).item()  # <- here
    print(total)
",
            item(),
            Is(Logging),
        ),
        (
            "sum that stops the loop",
            "
def f(loader):
    total = 0.0
    for x in loader:
        total += loss_of(x).item()  # <- here
        if total > 100:
            break
",
            item(),
            Is(ControlFlow),
        ),
        (
            "sum tested after the loop",
            "
def f(loader, best):
    total = 0.0
    for x in loader:
        total += loss_of(x).item()  # <- here
    if total < best:
        save()
",
            item(),
            Is(ControlFlow),
        ),
        (
            "running mean",
            "
def f(loader):
    avg = 0.0
    for x in loader:
        avg = 0.9 * avg + 0.1 * loss_of(x).item()  # <- here
        pbar.set_description(f'{avg:.3f}')
",
            item(),
            Is(Logging),
        ),
        (
            "attribute shown",
            "
class T:
    def step(self, loss):
        self.last = loss.item()  # <- here
    def report(self):
        print(self.last)
",
            item(),
            Is(Logging),
        ),
        (
            "attribute decides",
            "
class T:
    def step(self, loss):
        self.last = loss.item()  # <- here
        print(self.last)
    def improve(self):
        if self.last < self.best:
            self.save()
",
            item(),
            Is(ControlFlow),
        ),
        (
            "attribute nobody reads here",
            "
class T:
    def step(self, loss):
        self.last = loss.item()  # <- here
",
            item(),
            Is(ValueRead),
        ),
        (
            "attribute of the same name elsewhere",
            "
class T:
    def step(self, loss):
        self.last = loss.item()  # <- here
        print(self.last)
def g(t):
    if t.last > 3:
        h()
",
            item(),
            Is(ValueRead),
        ),
        (
            "attribute sum",
            "
class T:
    def step(self, loss):
        self.total += loss.item()  # <- here
    def report(self):
        logger.info('%f', self.total)
",
            item(),
            Is(Logging),
        ),
        (
            "attribute list",
            "
class T:
    def step(self, loss):
        self.losses.append(loss.item())  # <- here
",
            item(),
            Is(Logging),
        ),
        (
            "learning rate attribute",
            "
def f(opt, loss):
    opt.lr = 0.1 / loss.item()  # <- here
",
            item(),
            Is(CpuCompute),
        ),
        (
            "iterated",
            "
def f(x):
    for v in x.tolist():  # <- here
        print(v)
",
            bulk("tolist"),
            Is(Logging),
        ),
        (
            "iterated and tested",
            "
def f(x):
    for v in x.tolist():  # <- here
        if v > 3:
            g()
",
            bulk("tolist"),
            Is(ControlFlow),
        ),
        (
            "comprehension over it",
            "
def f(x):
    names = [table[i] for i in x.tolist()]  # <- here
    return names
",
            bulk("tolist"),
            Is(CpuCompute),
        ),
        (
            "comprehension variable shadows",
            "
def f(x, i):
    i = x.item()  # <- here
    print(i)
    return [i for i in range(3) if i > 1]
",
            item(),
            Is(Logging),
        ),
        (
            "sort key",
            "
def f(xs):
    return sorted(xs, key=lambda t: t.item())  # <- here in <lambda>
",
            item(),
            Is(ControlFlow),
        ),
        (
            "generator",
            "
def f(xs):
    print(sum(x.item() for x in xs))  # <- here in <genexpr>
",
            item(),
            Is(Logging),
        ),
        (
            "list comprehension frame",
            "
def f(xs):
    print([x.item() for x in xs])  # <- here in <listcomp>
",
            item(),
            Is(Logging),
        ),
        (
            "stored in a tensor",
            "
def f(x):
    out = torch.zeros(4, device='cuda')
    out[0] = x.item()  # <- here
    return out
",
            item(),
            Is(RoundTrip),
        ),
        (
            "new tensor",
            "
def f(x):
    s = x.item()  # <- here
    return torch.tensor([s, 1.0], device='cuda')
",
            item(),
            Is(RoundTrip),
        ),
        (
            "full",
            "
def f(x):
    return torch.full((3,), x.item(), device='cuda')  # <- here
",
            item(),
            Is(RoundTrip),
        ),
        (
            "backward",
            "
def f(loss, t):
    w = 1 / t.item()  # <- here
    loss = loss * w
    loss.backward()
",
            item(),
            Is(RoundTrip),
        ),
    ]);
}
