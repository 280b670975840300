//! Labelled snippets where the verdict hangs on other functions, and shapes met in real trainers.

use super::tests::Expect::Is;
use super::tests::{bulk, check, explicit, item, reading, scalar};
use crate::vocabulary::{Class, Kind::*};

/// Shapes met in real trainers.
#[test]
fn trainers() {
    check(&[
        (
            "metrics of an object",
            "
class T:
    def step(self, mode, x):
        self._metrics[mode]['kl'].append(x.mean().item())  # <- here
    def log(self, mode):
        metrics = {key: sum(val) / len(val) for key, val in self._metrics[mode].items()}
        for key in metrics:
            table[key] = 1
",
            item(),
            Is(Logging),
        ),
        (
            "keys are not the value",
            "
def f(x):
    out = {}
    out['a'] = x.item()  # <- here
    for k, v in out.items():
        if k == 'a':
            print(v)
",
            item(),
            Is(Logging),
        ),
        (
            "enumerate pairs it with a number",
            "
def f(x):
    for i, v in enumerate(x.tolist()):  # <- here
        if i > 3:
            break
        print(v)
",
            bulk("tolist"),
            Is(Logging),
        ),
        (
            "zip keeps places",
            "
def f(x, ys):
    for y, v in zip(ys, x.tolist()):  # <- here
        if y > 3:
            print(v)
",
            bulk("tolist"),
            Is(Logging),
        ),
        (
            "zip keeps places, the other one",
            "
def f(x, ys):
    for y, v in zip(ys, x.tolist()):  # <- here
        if v > 3:
            print(y)
",
            bulk("tolist"),
            Is(ControlFlow),
        ),
        (
            "log_probs is no log",
            "
def f(model, xs):
    log_probs = []
    for x in xs:
        log_probs.append(model(x).item())  # <- here
    return decide(log_probs)
",
            item(),
            Is(ValueRead),
        ),
        (
            "results are no figures",
            "
def f(boxes):
    results = []
    for box in boxes:
        results.append({'x': box.item()})  # <- here
    return results
",
            item(),
            Is(ValueRead),
        ),
        (
            "kept in the caller's dict",
            "
def f(batch, out):
    out['boxes'] = batch.cpu()  # <- here
",
            bulk("cpu"),
            Is(ValueRead),
        ),
        (
            "kept in an element of the caller's list",
            "
def f(preds):
    for p in preds:
        p['masks'] = g(p).cpu()  # <- here
",
            bulk("cpu"),
            Is(ValueRead),
        ),
        (
            "filled logs of the caller",
            "
def f(loss, logs):
    logs['loss'] = loss.item()  # <- here
",
            item(),
            Is(Logging),
        ),
        (
            "both arms rebind, the first before the read",
            "
def f(x, fast):
    if fast:
        ids = g(x)
        ids = ids.tolist()  # <- here
    else:
        ids = [1]
    return ids
",
            bulk("tolist"),
            Is(ValueRead),
        ),
        (
            "mean without NaN",
            "
def f(xs):
    vals = [x.item() for x in xs]  # <- here
    vals = [v for v in vals if not math.isnan(v)]
    print(sum(vals) / len(vals) if vals else None)
",
            item(),
            Is(Logging),
        ),
        (
            "length and type do not look",
            "
def f(x):
    ids = x.tolist()  # <- here
    if len(ids) > 3 and isinstance(ids, list):
        print(ids)
",
            bulk("tolist"),
            Is(Logging),
        ),
        (
            "assignment to a linear sum",
            "
def f(cost):
    i, j = linear_sum_assignment(cost.cpu())  # <- here
    return i, j
",
            bulk("cpu"),
            Is(CpuCompute),
        ),
        (
            "text decides about text",
            "
def f(loss):
    msg = f'{loss.item():.3f}'  # <- here
    if len(msg) > 8 or msg.startswith('n'):
        msg = msg[:8]
    print(msg)
",
            item(),
            Is(Logging),
        ),
        (
            "overwritten before it is read",
            "
def f(a, b):
    v = a.item() / 3  # <- here
    step()
    v = b.item()
    print(v)
",
            item(),
            Is(Explicit),
        ),
        (
            "sizes added up and tested outside",
            "
def f(rows, grid):
    for row in rows:
        features = 0
        for g in row:
            features += grid[g].prod().item()  # <- here
        if features != 3:
            fix(row)
",
            item(),
            Is(ControlFlow),
        ),
        (
            "visited in an outer loop",
            "
def f(tensors):
    visited = set()
    while tensors:
        key = tuple(tensors.pop().tolist())  # <- here
        if key in visited:
            continue
        visited.add(key)
",
            bulk("tolist"),
            Is(ControlFlow),
        ),
        (
            "a loop that does not read",
            "
def f(x):
    out = []
    for v in x.tolist():  # <- here
        out.append(v)
    return out
",
            bulk("tolist"),
            Is(ValueRead),
        ),
        (
            "helper called inside the loop",
            "
def check(total):
    if total > 3:
        raise_alarm()
        stop()
def f(xs):
    total = 0
    for x in xs:
        total += x.item()  # <- here
        check(total)
",
            item(),
            Is(ControlFlow),
        ),
        (
            "the trace wins over a guess",
            "
def f(xs):
    ids = np.asarray(xs)
    print(ids.item())  # <- here
",
            item(),
            Is(Logging),
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
