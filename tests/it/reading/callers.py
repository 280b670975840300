# Values that other functions get.

# --- branch in the caller
def value(loss):
    return loss.item()  #! item: control-flow
def main(x):
    if value(x) > 3:  #< value
        g()

# --- log in the caller
def value(loss):
    return loss.item()  #! item: logging
def main(x):
    v = value(x)  #< value
    print(v)

# --- tuple to the caller
def step(loss, n):
    return loss.item(), n  #! item: logging
def main(x):
    v, n = step(x, 3)  #< step
    print(v)
    if n > 3:
        g()

# --- dict to the caller
def step(loss, n):
    return {'loss': loss.item(), 'n': n}  #! item: logging
def main(x):
    out = step(x, 3)  #< step
    if out['n'] > 3:
        g()
    wandb.log({'loss': out['loss']})

# --- two callers up
def value(loss):
    return loss.item()  #! item: control-flow
def middle(x):
    return value(x) * 2  #< value
def main(x):
    if middle(x) > 3:  #< middle
        g()

# --- method
class T:
    def value(self, loss):
        return loss.item()  #! item: logging
    def main(self, x):
        print(self.value(x))  #< value

# --- forward
class M:
    def forward(self, x):
        return x.max().item()  #! item: control-flow
def main(m, x):
    if m(x) > 3:  #< forward
        g()

# --- only call in the file
def value(loss):
    return loss.item()  #! item: logging
def main(x):
    print(value(x))

# --- calls that differ
def value(loss):
    return loss.item()  #! item: value-read
def main(x):
    print(value(x))
    if value(x) > 3:
        g()

# --- caller's line does not call it
def value(loss):
    return loss.item()  #! item: value-read
def main(x):
    y = 3  #< value

# --- handed to a local function that logs
def show(step, value):
    print(step, value)
def f(loss):
    show(1, loss.item())  #! item: logging

# --- handed to a local function that branches
def check(value, limit=3):
    if value > limit:
        stop()
def f(loss):
    check(loss.item())  #! item: control-flow

# --- through a local function
def scale(v):
    return v * 100
def f(loss):
    print(scale(loss.item()))  #! item: logging

# --- own method
class T:
    def show(self, v):
        logger.info(v)
    def step(self, loss):
        self.show(loss.item())  #! item: logging

# --- unknown function
def f(loss):
    consume(loss.item())  #! item: value-read

# --- yielded
def f(xs):
    for x in xs:
        yield x.item()  #! item: value-read

# --- generation loop
def f(model, ids):
    while True:
        t = model(ids).argmax().item()  #! item: control-flow
        if t == 2:
            break
        print(t)

# --- undecided verdicts are unsure
def f(x):
    return x.item()  #! item: value-read; text `x.item()` is returned (line 2)

# --- property that is shown
class Temperature(nn.Module):
    @property
    def degrees(self):
        return self.log_t.exp().item()  #! item: logging

def report(t):
    tqdm.write(f't={t.degrees:.2f}')  #< degrees

# --- dict, and its figure decides
def one(model, batch):
    loss = model(batch)
    return {'loss': loss.item(), 'n': len(batch)}  #! item: control-flow

def run(model, loader):
    for batch in loader:
        m = one(model, batch)  #< one
        if m['loss'] > 50:
            break

# --- dict, and another figure decides
def one(model, batch):
    loss = model(batch)
    return {'loss': loss.item(), 'n': len(batch)}  #! item: logging

def run(model, loader):
    for batch in loader:
        m = one(model, batch)  #< one
        if m['n'] < 8:
            break
        print(m['loss'])

# --- walrus
def sinkhorn(a, b, tol):
    while (gap := (a - b).norm().item()) > tol:  #! item: control-flow
        a, b = update(a, b)
    return a

# --- mean of a list decides in the caller
def evaluate(model, loader):
    scores = []
    for x, y in loader:
        scores.append((model(x) == y).float().mean().item())  #! item: logging; rule S05
    return float(np.mean(scores))

def fit(model, loader, best):
    score = evaluate(model, loader)  #< evaluate
    if score > best:
        save(model)

# --- list added to, then only shown
def sweep(model, loader):
    seen = []
    for x in loader:
        seen += [model(x).std().item()]  #! item: logging
    print('spread', sum(seen) / max(len(seen), 1))

# --- list indexed for a tensor, otherwise shown
def sweep(model, loader):
    vals = []
    for x in loader:
        vals.append(model(x).std().item())  #! item: logging
    logging.info('spread %.3f', np.mean(vals))

# --- a helper that a star brings
from shared.tools import *
def step(loss):
    say("loss {:.3f}".format(loss.item()))  #! item: logging; says in tools.py
# file: shared/tools.py
def say(text, colour=None):
    print(text)

# --- a helper that a star brings, from where its module has it
from shared import *
def step(loss):
    say(loss.item())  #! item: control-flow
# file: shared/__init__.py
from .tools import *
# file: shared/tools.py
def say(value):
    if value > 3:
        stop()

# --- two stars bring the name
from one import *
from two import *
def step(loss):
    say(loss.item())  #! item: value-read
# file: one.py
def say(value):
    print(value)
# file: two.py
def say(value):
    queue.hand(value)

# --- a star brings what its list names
from one import *
from two import *
def step(loss):
    say(loss.item())  #! item: logging
# file: one.py
__all__ = ["say"]
def say(value):
    print(value)
# file: two.py
__all__ = ["ask"]
def say(value):
    queue.hand(value)

# --- a star brings no name with an underscore
from one import *
def step(loss):
    _say(loss.item())  #! item: value-read
# file: one.py
def _say(value):
    print(value)

# --- a name of the function itself is not what a star brings
from one import *
def step(loss, say):
    say(loss.item())  #! item: value-read
# file: one.py
def say(value):
    print(value)

# --- two numbers of a line, of which one decides
def evaluate(model, loader):
    correct, loss = model.count(loader)
    return (correct / 9).item(), (loss / 9).item()  #! item: control-flow

def fit(model, loader):
    best = 0
    for epoch in range(9):
        acc, loss = evaluate(model, loader)  #< evaluate
        print(loss)
        if acc > best:
            best = acc
            torch.save(model, 'best.pt')

# --- put in a method's place
class Agent:
    def update(self, batch, step):
        return {'loss': self.loss(batch, step).item()}  #! item: logging
update = Agent.update
def timed(self, *a):
    t = time.time()
    return update(self, *a)  #< update
Agent.update = timed
def main(agent, batch):
    metrics = {}
    metrics.update(agent.update(batch, 3))  #< timed
    print(metrics)
