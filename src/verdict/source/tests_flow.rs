//! Labelled snippets where the verdict hangs on names.

use super::tests::Expect::Is;
use super::tests::{check, item, truth};
use crate::vocabulary::Kind::*;

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
