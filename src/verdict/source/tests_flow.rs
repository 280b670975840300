//! Labelled snippets where the verdict hangs on where the value goes, and files that are hard to read.

use super::tests::Expect::{Is, Stale};
use super::tests::{
    bare_read, bulk, check, explicit, formatted, frame, item, read, reading, scalar, shape, truth, upload,
};
use super::{Finding, Observed};
use crate::vocabulary::{Class, HostMemory, Kind::*};

#[test]
fn names_bindings_and_branches() {
    check(&[
        (
            "reused for a branch",
            "
def f(a, x):
    v = a.item()  # <- here
    print(v)
    v = g(x)
    if v > 3:
        h()
",
            item(),
            Is(Logging),
        ),
        (
            "reused in both arms",
            "
def f(a, x, c):
    v = a.item()  # <- here
    print(v)
    if c:
        v = g(x)
    else:
        v = h(x)
    if v > 3:
        k()
",
            item(),
            Is(Logging),
        ),
        (
            "reused in one arm",
            "
def f(a, x, c):
    v = a.item()  # <- here
    print(v)
    if c:
        v = g(x)
    if v > 3:
        k()
",
            item(),
            Is(ControlFlow),
        ),
        (
            "other arm",
            "
def f(a, x, c):
    if c:
        v = a.item()  # <- here
        print(v)
    else:
        v = 3
        while v > 1:
            v -= 1
",
            item(),
            Is(Logging),
        ),
        (
            "read in the next iteration",
            "
def f(xs):
    last = 0.0
    for x in xs:
        if last > 3:
            break
        last = x.item()  # <- here
        print(last)
",
            item(),
            Is(ControlFlow),
        ),
        (
            "rebound at the start of the loop",
            "
def f(xs):
    for x in xs:
        v = 0
        if v > 3:
            break
        v = x.item()  # <- here
        print(v)
",
            item(),
            Is(Logging),
        ),
        (
            "leaves before the other use",
            "
def f(a, debug):
    if debug:
        v = a.item()  # <- here
        print(v)
        return
    v = 2
    if v > g():
        h()
",
            item(),
            Is(Logging),
        ),
        (
            "chain of names",
            "
def f(loss):
    a = loss.item()  # <- here
    b = a * 100
    c = f'{b:.1f}%'
    msg = 'loss ' + c
    logger.info(msg)
",
            item(),
            Is(Logging),
        ),
        (
            "tuple target",
            "
def f(a, b):
    x, y = a.item(), b  # <- here
    print(x)
    if y > 3:
        g()
",
            item(),
            Is(Logging),
        ),
        (
            "tuple target, the other one",
            "
def f(a, b):
    x, y = b, a.item()  # <- here
    print(x)
    if y > 3:
        g()
",
            item(),
            Is(ControlFlow),
        ),
        (
            "walrus",
            "
def f(loss):
    if (v := loss.item()) > 3:  # <- here
        print(v)
        g()
",
            item(),
            Is(ControlFlow),
        ),
        (
            "walrus shown",
            "
def f(loss):
    print(v := loss.item())  # <- here
    logger.info(v)
",
            item(),
            Is(Logging),
        ),
        (
            "closure",
            "
def f(loss):
    v = loss.item()  # <- here
    def show():
        print(v)
    show()
",
            item(),
            Is(Logging),
        ),
        (
            "closure that branches",
            "
def f(loss):
    v = loss.item()  # <- here
    def decide():
        if v > 3:
            g()
    decide()
",
            item(),
            Is(ControlFlow),
        ),
        (
            "inner function with its own name",
            "
def f(loss):
    v = loss.item()  # <- here
    print(v)
    def decide(v):
        if v > 3:
            g()
    return decide
",
            item(),
            Is(Logging),
        ),
        (
            "global",
            "
best = 0.0
def f(loss):
    global best
    best = loss.item()  # <- here
def g():
    if best > 3:
        h()
",
            item(),
            Is(ControlFlow),
        ),
        (
            "module level",
            "
for x in loader:
    lossf = loss_of(x).item()  # <- here
    print(lossf)
",
            item(),
            Is(Logging),
        ),
        (
            "try and except",
            "
def f(loss):
    try:
        v = loss.item()  # <- here
    except RuntimeError:
        v = float('nan')
    finally:
        done()
    logger.info('%f', v)
",
            item(),
            Is(Logging),
        ),
        (
            "with block",
            "
def f(loss):
    with torch.no_grad(), timer('x') as t:
        v = loss.item()  # <- here
    print(v)
",
            item(),
            Is(Logging),
        ),
        (
            "async",
            "
async def f(loss):
    v = loss.item()  # <- here
    await send(v)
",
            item(),
            Is(ValueRead),
        ),
        (
            "async logged",
            "
async def f(loss):
    v = loss.item()  # <- here
    await wandb.log({'loss': v})
",
            item(),
            Is(Logging),
        ),
        (
            "augmented then branch",
            "
def f(x):
    v = x.item()  # <- here
    v += 1
    if v > 3:
        g()
",
            item(),
            Is(ControlFlow),
        ),
        (
            "deleted",
            "
def f(x):
    v = x.item()  # <- here
    print(v)
    del v
",
            item(),
            Is(Logging),
        ),
        (
            "and-or value",
            "
def f(x):
    v = x.item() or 1.0  # <- here
    print(v)
",
            item(),
            Is(ControlFlow),
        ),
        (
            "not shown",
            "
def f(t):
    print(not t.any())  # <- here
",
            truth(),
            Is(Logging),
        ),
        (
            "is None is no use",
            "
def f(x):
    v = x.item()  # <- here
    if v is None:
        return
    print(v)
",
            item(),
            Is(Logging),
        ),
    ]);
}

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
            Is(Logging),
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

#[test]
fn callers() {
    check(&[
        (
            "branch in the caller",
            "
def value(loss):
    return loss.item()  # <- here
def main(x):
    if value(x) > 3:  # <- caller
        g()
",
            item(),
            Is(ControlFlow),
        ),
        (
            "log in the caller",
            "
def value(loss):
    return loss.item()  # <- here
def main(x):
    v = value(x)  # <- caller
    print(v)
",
            item(),
            Is(Logging),
        ),
        (
            "tuple to the caller",
            "
def step(loss, n):
    return loss.item(), n  # <- here
def main(x):
    v, n = step(x, 3)  # <- caller
    print(v)
    if n > 3:
        g()
",
            item(),
            Is(Logging),
        ),
        (
            "dict to the caller",
            "
def step(loss, n):
    return {'loss': loss.item(), 'n': n}  # <- here
def main(x):
    out = step(x, 3)  # <- caller
    if out['n'] > 3:
        g()
    wandb.log({'loss': out['loss']})
",
            item(),
            Is(Logging),
        ),
        (
            "two callers up",
            "
def value(loss):
    return loss.item()  # <- here
def middle(x):
    return value(x) * 2  # <- caller
def main(x):
    if middle(x) > 3:  # <- outer
        g()
",
            item(),
            Is(ControlFlow),
        ),
        (
            "method",
            "
class T:
    def value(self, loss):
        return loss.item()  # <- here
    def main(self, x):
        print(self.value(x))  # <- caller
",
            item(),
            Is(Logging),
        ),
        (
            "forward",
            "
class M:
    def forward(self, x):
        return x.max().item()  # <- here
def main(m, x):
    if m(x) > 3:  # <- caller
        g()
",
            item(),
            Is(ControlFlow),
        ),
        (
            "only call in the file",
            "
def value(loss):
    return loss.item()  # <- here
def main(x):
    print(value(x))
",
            item(),
            Is(Logging),
        ),
        (
            "calls that differ",
            "
def value(loss):
    return loss.item()  # <- here
def main(x):
    print(value(x))
    if value(x) > 3:
        g()
",
            item(),
            Is(ValueRead),
        ),
        (
            "caller's line does not call it",
            "
def value(loss):
    return loss.item()  # <- here
def main(x):
    y = 3  # <- caller
",
            item(),
            Is(ValueRead),
        ),
        (
            "handed to a local function that logs",
            "
def show(step, value):
    print(step, value)
def f(loss):
    show(1, loss.item())  # <- here
",
            item(),
            Is(Logging),
        ),
        (
            "handed to a local function that branches",
            "
def check(value, limit=3):
    if value > limit:
        stop()
def f(loss):
    check(loss.item())  # <- here
",
            item(),
            Is(ControlFlow),
        ),
        (
            "through a local function",
            "
def scale(v):
    return v * 100
def f(loss):
    print(scale(loss.item()))  # <- here
",
            item(),
            Is(Logging),
        ),
        (
            "own method",
            "
class T:
    def show(self, v):
        logger.info(v)
    def step(self, loss):
        self.show(loss.item())  # <- here
",
            item(),
            Is(Logging),
        ),
        (
            "unknown function",
            "
def f(loss):
    consume(loss.item())  # <- here
",
            item(),
            Is(ValueRead),
        ),
        (
            "yielded",
            "
def f(xs):
    for x in xs:
        yield x.item()  # <- here
",
            item(),
            Is(ValueRead),
        ),
        (
            "generation loop",
            "
def f(model, ids):
    while True:
        t = model(ids).argmax().item()  # <- here
        if t == 2:
            break
        print(t)
",
            item(),
            Is(ControlFlow),
        ),
    ]);
}

#[test]
fn lines_with_several_expressions() {
    check(&[
        (
            "agree",
            "
def f(a, b):
    print(a.item(), b.item())  # <- here
",
            item(),
            Is(Logging),
        ),
        (
            "disagree",
            "
def f(a, b):
    print(a.item() if b.item() > 0 else 0)  # <- here
",
            item(),
            Is(ValueRead),
        ),
        (
            "method tells them apart",
            "
def f(a, m):
    print(a[m > 0].sum().item())  # <- here
",
            item(),
            Is(Logging),
        ),
        (
            "method tells them apart, mask",
            "
def f(a, m):
    print(a[m > 0].sum().item())  # <- here
",
            shape("getitem", "nonzero"),
            Is(DynamicShape),
        ),
        (
            "upload next to a read",
            "
def f(x, loss):
    x, v = x.cuda(), loss.item()  # <- here
    print(v)
",
            upload("cuda"),
            Is(Upload),
        ),
        (
            "read next to an upload",
            "
def f(x, loss):
    x, v = x.cuda(), loss.item()  # <- here
    print(v)
",
            bare_read(4, HostMemory::Pinned),
            Is(Logging),
        ),
        (
            "numpy item next to a tensor's",
            "
def f(loss, xs):
    acc = np.mean(xs)
    if acc.item() > 0.5: print(loss.item())  # <- here
",
            item(),
            Is(Logging),
        ),
        (
            "int of a length",
            "
def f(loss, xs):
    n = int(len(xs)); v = float(loss)  # <- here
    if n > 3:
        print(v)
",
            bare_read(4, HostMemory::Pinned),
            Is(Logging),
        ),
        (
            "semicolons",
            "
def f(a):
    x = 1; v = a.item(); print(v)  # <- here
",
            item(),
            Is(Logging),
        ),
        (
            "not at the start of the line",
            "
def f(a, b, flag):
    result = compute(a, b)['x'] if flag else torch.stack([a, b]).mean().item()  # <- here
    print(result)
",
            item(),
            Is(Logging),
        ),
        (
            "cpu then item",
            "
def f(loss):
    print(loss.cpu().item())  # <- here
",
            bulk("cpu"),
            Is(Logging),
        ),
        (
            "cpu then numpy",
            "
def f(y):
    a = y.detach().cpu().numpy()  # <- here
    if a.max() > 3:
        g()
",
            bulk("cpu"),
            Is(ControlFlow),
        ),
        (
            "int method of a Python value",
            "
def f(step, n, loss):
    if step.count(n) == 0: print(loss.item())  # <- here
",
            item(),
            Is(Logging),
        ),
        (
            "format and item",
            "
def f(loss, acc):
    print(f'{loss:.3f} {acc.item():.3f}')  # <- here
",
            formatted(),
            Is(Logging),
        ),
        (
            "host value formatted too",
            "
def f(loss):
    for i in range(3):
        print(f'{i} {loss:.3f}')  # <- here
",
            formatted(),
            Is(Logging),
        ),
    ]);
}

#[test]
fn calls_over_several_lines() {
    let chain = "
def f(out):
    v = (out
         .argmax(1)
         .float()
         .mean()  # <- MARK
         .cpu()
         .numpy())
    print(v)
";
    for line in [".argmax", ".mean", ".cpu", "v = (out"] {
        let source = chain.replace("  # <- MARK", "");
        let at = source.split('\n').position(|text| text.contains(line)).unwrap();
        let mut here = frame(chain, "# <- MARK").unwrap();
        here.line = at as u32 + 1;
        let found = read(source.as_bytes(), &[here], &bulk("cpu"));
        assert!(
            matches!(&found, Finding::Read(r) if r.verdict.kind == Logging && r.expression.ends_with(".cpu()")),
            "{line}: {found:?}"
        );
    }
    check(&[
        (
            "argument lines",
            "
def f(logger, loss, acc):
    logger.log(
        'x',
        loss.item(),  # <- here
        acc,
    )
",
            item(),
            Is(Logging),
        ),
        (
            "start of the statement",
            "
def f(logger, loss, acc):
    logger.log(  # <- here
        'x',
        loss.item(),
        acc,
    )
",
            item(),
            Is(Logging),
        ),
        (
            "the line's own read wins",
            "
def f(loss, acc):
    record(
        a=check(loss.item()),
        b=print(acc.item()),  # <- here
    )
",
            item(),
            Is(Logging),
        ),
        (
            "triple-quoted f-string",
            "
def f(loss):
    print(f'''
    loss {loss.item()}
    ''')  # <- here
",
            item(),
            Is(Logging),
        ),
        (
            "decorator",
            "
@register(limit=X.item())  # <- here
def f():
    pass
",
            item(),
            Is(ValueRead),
        ),
        (
            "default value",
            "
def f(n=X.item()):  # <- here in <module>
    pass
",
            item(),
            Is(ValueRead),
        ),
        (
            "body below a decorator",
            "
@torch.no_grad()
@other
def f(loss):
    print(loss.item())  # <- here
",
            item(),
            Is(Logging),
        ),
        (
            "case guard",
            "
def f(x, t):
    match x:
        case 1 if t.item() > 3:  # <- here
            g()
",
            item(),
            Is(ControlFlow),
        ),
        (
            "lambda body",
            "
def f(xs):
    g = lambda t: print(t.item())  # <- here in <lambda>
    g(xs)
",
            item(),
            Is(Logging),
        ),
        (
            "class body",
            "
class C:
    limit = X.item()  # <- here in C
",
            item(),
            Is(ValueRead),
        ),
        (
            "nested function",
            "
def outer():
    def inner(loss):
        print(loss.item())  # <- here
    return inner
",
            item(),
            Is(Logging),
        ),
        (
            "qualified name",
            "
class C:
    def f(self, loss):
        print(loss.item())  # <- here in C.f
",
            item(),
            Is(Logging),
        ),
        (
            "while with else",
            "
def f(t):
    while t.sum() > 0:  # <- here
        t = g(t)
    else:
        h()
",
            truth(),
            Is(ControlFlow),
        ),
        (
            "chained comparison",
            "
def f(a, b, c):
    if a < b < c:  # <- here
        g()
",
            truth(),
            Is(ControlFlow),
        ),
        (
            "two lines below a read",
            "
def f(loss):
    print(loss.item())

    x = 3  # <- here
",
            item(),
            Stale,
        ),
    ]);
}

#[test]
fn encodings_and_broken_files() {
    let read_bytes = |bytes: &[u8], line: u32| {
        let mut here = frame("print(1)  # <- here", "# <- here").unwrap();
        (here.line, here.function) = (line, String::new());
        match read(bytes, &[here], &item()) {
            Finding::Read(reading) => Some(reading.verdict.kind),
            _ => None,
        }
    };
    let cases: &[(&str, &[u8], u32)] = &[
        ("CRLF", b"x = 1\r\nprint(loss.item())\r\n", 2),
        ("CR", b"x = 1\rprint(loss.item())\r", 2),
        ("tabs", b"def f(loss):\n\tif a:\n\t\tprint(loss.item())\n", 3),
        ("BOM", b"\xef\xbb\xbfprint(loss.item())\n", 1),
        ("latin-1", b"# -*- coding: latin-1 -*-\nname = 'Andr\xe9'\nprint(name, loss.item())\n", 3),
        ("UTF-8", "größe = 1\nprint('größe', loss.item())\n".as_bytes(), 2),
        ("no newline at the end", b"print(loss.item())", 1),
        ("form feed", b"x = 1\n\x0c\nprint(loss.item())\n", 3),
        ("error above", b"def f(:\n    pass\n\nprint(loss.item())\n", 4),
        ("error below", b"print(loss.item())\nclass (\n", 1),
        ("Python 2", b"print 'a', x\nexec 'y'\nlog.info(loss.item())\n", 3),
        ("unclosed string", b"print(loss.item())\nx = 'abc\n", 1),
        ("match statement", b"match a:\n    case 1:\n        print(loss.item())\n", 3),
        ("type syntax", b"type A[T] = list[T]\ndef f[T](x: T) -> T:\n    print(loss.item())\n", 3),
        ("except star", b"try:\n    pass\nexcept* ValueError:\n    print(loss.item())\n", 4),
    ];
    for (name, bytes, line) in cases {
        assert_eq!(read_bytes(bytes, *line), Some(Logging), "{name}");
    }
    let long = format!("x = [{}]; print(loss.item())\n", "1, ".repeat(200_000));
    assert_eq!(read_bytes(long.as_bytes(), 1), Some(Logging));
}

#[test]
fn little_evidence_is_enough_for_the_plain_cases() {
    let pinned = |bytes| bare_read(bytes, HostMemory::Pinned);
    let pageable = |bytes| bare_read(bytes, HostMemory::Pageable);
    check(&[
        ("item", "def f(loss):\n    print(loss.item())  # <- here\n", pinned(4), Is(Logging)),
        ("item, old PyTorch", "def f(loss):\n    print(loss.item())  # <- here\n", pageable(4), Is(Logging)),
        ("branch", "def f(t):\n    if t.any():  # <- here\n        g()\n", pinned(1), Is(ControlFlow)),
        (
            "cpu",
            "def f(t):\n    a = t.cpu()  # <- here\n    cv2.imwrite('a', a)\n",
            pageable(4096),
            Is(CpuCompute),
        ),
        ("mask", "def f(x, mask):\n    y = x[mask]  # <- here\n", pinned(4), Is(DynamicShape)),
        (
            "nvtx operator",
            "def f(x, mask):\n    y = x[mask].sum().item()  # <- here\n    print(y)\n",
            Observed { operator: Some("nonzero"), ..pinned(4) },
            Is(DynamicShape),
        ),
        (
            "nvtx operator, item",
            "def f(x, mask):\n    y = x[mask].sum().item()  # <- here\n    print(y)\n",
            Observed { operator: Some("_local_scalar_dense"), ..pinned(4) },
            Is(Logging),
        ),
        (
            "host branch",
            "def f(step):\n    if step % 10 == 0: print(loss.item())  # <- here\n",
            pinned(4),
            Is(Logging),
        ),
        ("dict access", "def f(cfg):\n    x = cfg['a']['b']  # <- here\n", pinned(4), Stale),
        ("no stream sync without reason", "def f(x):\n    x = x + 1  # <- here\n", pinned(4), Stale),
    ]);
}

#[test]
fn a_barrier_needs_its_buffer_read() {
    let barrier = |source: &str| reading(source, &explicit()).verdict;
    let read_later = barrier(
        "def f(x):\n    h = x.cpu_buf\n    h.buf = 1\n    out = x.to('cpu', non_blocking=True)\n    torch.cuda.synchronize()  # <- here\n    print(out[0])\n",
    );
    assert_eq!((read_later.kind, read_later.pattern), (Barrier, Some("D05")));
    let rebound = barrier(
        "def f(x):\n    out = x.to('cpu', non_blocking=True)\n    torch.cuda.synchronize()  # <- here\n    out = 3\n    print(out)\n",
    );
    assert_eq!(rebound.kind, Explicit);
    let attribute = barrier(
        "class C:\n    def f(self, x):\n        self.host_buf.copy_(x, non_blocking=True)\n        torch.cuda.synchronize()  # <- here\n        return self.host_buf.sum()\n",
    );
    assert_eq!(attribute.kind, Barrier);
}

#[test]
fn undecided_verdicts_are_unsure() {
    let found = reading("def f(x):\n    return x.item()  # <- here\n", &scalar("item", 4)).verdict;
    assert_eq!(found.class, Class::Unknown);
    assert!(found.confidence < 0.65);
    assert_eq!(found.evidence[0].text, "`x.item()` is returned (line 2)");
}
