# What the name of a call says of it, and what the function behind it does.

# --- a probability that is asked for
def f(loader, model, dist):
    for x in loader:
        a = model(x).item()  #! item: value-read
        lp = dist.log_prob(a)
        if lp > -1:
            break

# --- a likelihood of a class at hand
class Kalman:
    def log_likelihood(self, z):
        return -0.5 * (z - self.m) ** 2
def f(loader, model):
    best, kalman = -1e9, Kalman()
    for x in loader:
        ll = kalman.log_likelihood(model(x).item())  #! item: control-flow
        if ll > best:
            best = ll
            model.keep()

# --- a sum of logarithms
def log_sum(v, w):
    return v + w
def f(loader, model):
    for x in loader:
        v = model(x).item()  #! item: control-flow
        if log_sum(v, 3) > 1:
            break

# --- a mean that an average gives back
def f(loader, model, running_loss):
    for x in loader:
        if running_loss.update(model(x).item()) < 1:  #! item: value-read
            break

# --- a logger that is asked
def f(loader, model, logger):
    for x in loader:
        if logger.should_stop(model(x).item()):  #! item: value-read
            break

# --- loggers as they are called
def f(self, loss, logger, experiment, step):
    log_loss(loss.item())  #! item: logging
    experiment.log_metric('loss', loss.item())  #! item: logging
    step > 0 and logger.info(loss.item())  #! item: logging
    logger.info(loss.item()) if step else None  #! item: logging
    _ = experiment.log(loss.item())  #! item: logging
    [self.log_scalar(x.item()) for x in loss]  #! item: logging
    return self.log('loss', loss.item())  #! item: logging

# --- a logger awaited
async def f(self, loss):
    await self.log_loss(loss.item())  #! item: logging

# --- a logger of one's own that stops
class Trainer:
    def log(self, name, v):
        self.hist[name].append(v)
        if v > self.limit:
            self.stop = True
    def fit(self, loader, model):
        for x in loader:
            self.log('loss', model(x).item())  #! item: control-flow
            if self.stop:
                break

# --- a logger of one's own that is asked whether to stop
class TrainLogger:
    def log(self, v):
        self.h.append(v)
    def should_stop(self):
        return len(self.h) > 10 and min(self.h[-10:]) > min(self.h)
def main(loader, model):
    logger = TrainLogger()
    for x in loader:
        logger.log(model(x).item())  #! item: control-flow
        if logger.should_stop():
            break

# --- a logger of one's own that only keeps and shows
class Logger:
    def log(self, name, v, step):
        if isinstance(v, torch.Tensor):
            v = v.item()
        self.values[name].append(v)
        if step % 100 == 0:
            print(name, np.mean(self.values[name]))
    def flush(self):
        for name, values in self.values.items():
            self.writer.add_scalar(name, np.mean(values))
def main(loader, model):
    logger = Logger()
    for step, x in enumerate(loader):
        logger.log('loss', model(x).item(), step)  #! item: logging
    logger.flush()

# --- a meter of one's own that decides by what it is told
class LossMeter:
    def update(self, v):
        self.values.append(v)
        if v > self.limit:
            self.optimizer.reset()
def main(loader, model):
    loss_meter = LossMeter()
    for x in loader:
        loss_meter.update(model(x).item())  #! item: control-flow

# --- a meter of one's own beside another that decides
class AverageMeter:
    def update(self, val, n=1):
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count
def main(loader, model):
    losses, rates = AverageMeter(), AverageMeter()
    for x in loader:
        losses.update(model(x).item(), len(x))  #! item: logging
        rates.update(x.rate, len(x))
        if rates.avg > 3:
            break
    print(losses.avg)

# --- a logger of one's own that keeps the largest
class Logger:
    def log(self, v):
        text = f'{v:.3f}' if v < 1000 else f'{v:.1e}'
        if v > self.most:
            self.most = v
        print(text, self.most)
def main(loader, model):
    logger = Logger()
    for x in loader:
        logger.log(model(x).item())  #! item: logging

# --- a logger of one's own that answers
class Trainer:
    def log(self, name, v):
        self.writer.add_scalar(name, v)
        return v
    def fit(self, loader, model):
        for x in loader:
            if self.log('loss', model(x).item()) < 1:  #! item: control-flow
                break

# --- a logger of one's own that complains
class Logger:
    def log(self, name, v):
        if math.isnan(v):
            raise ValueError(name)
        self.values[name].append(v)
def main(loader, model):
    logger = Logger()
    for x in loader:
        logger.log('loss', model(x).item())  #! item: logging

# --- a logger of one's own that gives it to the GPU
class Norms:
    def log_norm(self, norm):
        self.norms.append(norm)
    def clip(self, model):
        torch.clamp_(model.weight, max=np.percentile(self.norms, 10))
def main(loader, model):
    norms = Norms()
    for x in loader:
        norms.log_norm(model(x).item())  #! item: round-trip
        norms.clip(model)

# --- a logger of one's own, looked at when the loop is done
class Logger:
    def log(self, v):
        self.last = v
def main(loader, model):
    logger = Logger()
    for x in loader:
        logger.log(model(x).item())  #! item: control-flow
    if logger.last < 0.1:
        save(model)

# --- a logger of another file
from tools import Logger
def main(loader, model):
    logger = Logger()
    for x in loader:
        logger.log(model(x).item())  #! item: control-flow; says in tools.py (line 3)
# file: tools.py
class Logger:
    def log(self, v):
        if v > self.limit:
            self.optimizer.reset()

# --- a density keeps what it was asked about
class Density:
    def log_density(self, loss):
        self.asked = loss.item()  #! item: value-read
        return self.net(loss)

# --- rows of results
def main(loader, model):
    with open('out.csv', 'w') as f:
        w = csv.writer(f)
        for x in loader:
            w.writerow([x.id, model(x).argmax().item()])  #! item: cpu-compute; pattern D08

# --- rows of results, written after the loop
def main(loader, model):
    rows = []
    for x in loader:
        rows.append([x.id, model(x).argmax().item()])  #! item: cpu-compute; says needed only once
    with open('submission.csv', 'w') as f:
        csv.writer(f).writerows(rows)

# --- results as json
def main(loader, model):
    out = {}
    for x in loader:
        out[x.id] = model(x).argmax().item()  #! item: cpu-compute
    with open('submission.json', 'w') as f:
        json.dump(out, f)

# --- a table of labels
def main(loader, model):
    rows = []
    for x in loader:
        rows.append({'id': x.id, 'label': model(x).argmax().item()})  #! item: cpu-compute
    pd.DataFrame(rows).to_csv('submission.csv')

# --- rows of figures
def main(loader, model):
    with open('out.csv', 'w') as f:
        w = csv.writer(f)
        for x in loader:
            loss = model(x)
            w.writerow([loss.item(), (loss > 3).sum().item()])  #! item: logging

# --- rows of a run
def main(model, epochs):
    with open('out.csv', 'w') as f:
        w = csv.writer(f)
        for epoch in range(epochs):
            w.writerow([epoch, model.fit().item()])  #! item: logging

# --- records of a run, whose table has no other name
def main(model, epochs):
    rows = []
    for epoch in range(epochs):
        rows.append({'epoch': epoch, 'psnr': model.fit().item()})  #! item: logging
    pd.DataFrame(rows).to_csv('out.csv')

# --- found things with their scores
def main(loader, model):
    found = []
    for x in loader:
        found.append({'image_id': x.id, 'score': model(x).item()})  #! item: cpu-compute
    json.dump(found, open('found.json', 'w'))

# --- rows of logits
def main(loader, model, f):
    w = csv.writer(f)
    for x in loader:
        w.writerow([x.id, model.logits(x).argmax().item()])  #! item: cpu-compute

# --- figures as json
def main(loader, model):
    history = []
    for x in loader:
        history.append(model(x).item())  #! item: logging
    json.dump(history, open('out.json', 'w'))

# --- a number of a checkpoint
def main(loader, model):
    for x in loader:
        torch.save({'best': model(x).item()}, 'last.pt')  #! item: logging

# --- a record that is unpacked
class Out(NamedTuple):
    loss: float
    n: int
def step(model, x):
    return Out(model(x).item(), 3)  #! item: control-flow
def main(loader, model):
    for x in loader:
        loss, n = step(model, x)  #< step
        if loss < 1:
            break

# --- a curve
def main(loader, model):
    for x in loader:
        plt.plot(x.id, model(x).item())  #! item: logging

# --- a copy and its list are one read
def main(spans, out):
    for span in spans:
        out.extend(span.detach().cpu().tolist())  #! cpu: value-read; rules S06

# --- dicts are no tensors
class Cache:
    def __init__(self):
        self.kept = {}
    def rank(self, found, model, key):
        scores, sources = {}, {}
        for k in found:
            scores[k], sources[k] = model(self.kept[key]), self.kept[k].to('cuda')  #! to: upload; says to('cuda'); silent scores
        return scores

# --- a function inside another that is called with a call
def work(x):
    return x
def one(f, *a):
    def inner(y):
        return f(y, *a)  #< read
    return inner
def read(y):
    return y.item()  #! item: value-read; says thrown away
def main(x):
    for f in [one(read)]:
        f(work(x))  #< inner

# --- the same, where what it is called with may be it
@one
def work(x):
    return x
def one(f):
    def inner(y):
        return f(y).item()  #! item: value-read; says returned
    return inner
def main(fs, x):
    for f in fs:
        f(work(x))  #< inner

# --- a function with one argument given
from functools import partial
def scaled(scale, t):
    return scale * t.item()  #! item: control-flow
def main(loader, model):
    g = partial(scaled, 2)
    for x in loader:
        if g(model(x)) > 3:  #< scaled
            break

# --- the same, kept by an object
def scaled(scale, t):
    return scale * t.item()  #! item: control-flow
class Task:
    def __init__(self):
        self.g = functools.partial(scaled, 2)
    def run(self, loader, model):
        for x in loader:
            if self.g(model(x)) > 3:  #< scaled
                break

# --- records with a name of one letter
@dataclass
class R:
    loss: float
P = namedtuple('P', 'loss n')
def main(loader, model):
    for x in loader:
        r = R(loss=model(x).item())  #! item: logging
        print(r.loss)
        p = P(model(x).item(), 0)  #! item: control-flow
        if p.loss < 1:
            break

# --- a container of the program that keeps lists and arrays, and hands them out
class Results:
    def __init__(self):
        self._stats = {}
    def __setitem__(self, key, item):
        self._stats[key] = item
    def __getitem__(self, key):
        return self._stats[key]
    def to_numpy(self):
        for k, v in self._stats.items():
            self._stats[k] = v.detach().cpu().numpy()  #! read cpu 4096: cpu-compute; says `__getitem__` hands out

# --- the same of tensors, which may go back
class Features:
    def __init__(self):
        self.kept = {}
    def __getitem__(self, key):
        return self.kept[key]
    def keep(self, k, v):
        self.kept[k] = v.detach().cpu()  #! read cpu 4096: value-read
