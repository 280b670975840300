# Values that hang on containers and attributes.

# --- dict literal
def f(a, b):
    d = {'loss': a.item(), 'n': 3}  #! item: logging
    if d['n'] > 2:
        g()
    wandb.log(d)

# --- dict literal, key read
def f(a, b):
    d = {'loss': a.item(), 'n': 3}  #! item: control-flow
    if d['loss'] > 2:
        g()

# --- dict store
def f(a):
    logs = {}
    logs['loss'] = a.item()  #! item: logging
    for k, v in logs.items():
        print(k, v)

# --- nested dict
def f(a):
    d = {'train': {'loss': a.item()}, 'x': g()}  #! item: logging
    if d['x']:
        h()
    logger.info(d['train']['loss'])

# --- list appended
def f(xs):
    out = []
    for x in xs:
        out.append(x.item())  #! item: logging
    print(sum(out) / len(out))

# --- list decides inside the loop
def f(xs):
    out = []
    for x in xs:
        out.append(x.item())  #! item: control-flow
        if out[-1] > 3:
            break

# --- losses returned
def f(xs):
    losses = []
    for x in xs:
        losses.append(x.item())  #! item: logging
    return losses

# --- predictions gathered
def f(loader):
    preds = []
    for x in loader:
        preds.append(model(x).cpu())  #! cpu: logging
    return torch.cat(preds)

# --- sum over a loop
def f(loader):
    total = 0.0
    for x in loader:
        total += loss_of(x).item()  #! item: logging
    return total / len(loader)

# --- sum spelled out
def f(loader):
    total = 0.0
    for x in loader:
        total = total + loss_of(x).item()  #! item: logging
    print(total)

# --- sum that stops the loop
def f(loader):
    total = 0.0
    for x in loader:
        total += loss_of(x).item()  #! item: control-flow
        if total > 100:
            break

# --- sum tested after the loop
def f(loader, best):
    total = 0.0
    for x in loader:
        total += loss_of(x).item()  #! item: logging; rule S05
    if total < best:
        save()

# --- running mean
def f(loader):
    avg = 0.0
    for x in loader:
        avg = 0.9 * avg + 0.1 * loss_of(x).item()  #! item: logging
        pbar.set_description(f'{avg:.3f}')

# --- attribute shown
class T:
    def step(self, loss):
        self.last = loss.item()  #! item: logging
    def report(self):
        print(self.last)

# --- attribute decides
class T:
    def step(self, loss):
        self.last = loss.item()  #! item: control-flow
        print(self.last)
    def improve(self):
        if self.last < self.best:
            self.save()

# --- attribute nobody reads here
class T:
    def step(self, loss):
        self.last = loss.item()  #! item: value-read

# --- attribute of the same name elsewhere
class T:
    def step(self, loss):
        self.last = loss.item()  #! item: value-read
        print(self.last)
def g(t):
    if t.last > 3:
        h()

# --- attribute sum
class T:
    def step(self, loss):
        self.total += loss.item()  #! item: logging
    def report(self):
        logger.info('%f', self.total)

# --- attribute list
class T:
    def step(self, loss):
        self.losses.append(loss.item())  #! item: logging

# --- learning rate attribute
def f(opt, loss):
    opt.lr = 0.1 / loss.item()  #! item: cpu-compute

# --- iterated
def f(x):
    for v in x.tolist():  #! tolist: logging
        print(v)

# --- iterated and tested
def f(x):
    for v in x.tolist():  #! tolist: control-flow
        if v > 3:
            g()

# --- comprehension over it
def f(x):
    names = [table[i] for i in x.tolist()]  #! tolist: cpu-compute
    return names

# --- comprehension variable shadows
def f(x, i):
    i = x.item()  #! item: logging
    print(i)
    return [i for i in range(3) if i > 1]

# --- sort key
def f(xs):
    return sorted(xs, key=lambda t: t.item())  #! item: control-flow; in <lambda>

# --- generator
def f(xs):
    print(sum(x.item() for x in xs))  #! item: logging; in <genexpr>

# --- list comprehension frame
def f(xs):
    print([x.item() for x in xs])  #! item: logging; in <listcomp>

# --- stored in a tensor
def f(x):
    out = torch.zeros(4, device='cuda')
    out[0] = x.item()  #! item: round-trip
    return out

# --- new tensor
def f(x):
    s = x.item()  #! item: round-trip
    return torch.tensor([s, 1.0], device='cuda')

# --- full
def f(x):
    return torch.full((3,), x.item(), device='cuda')  #! item: round-trip

# --- backward
def f(loss, t):
    w = 1 / t.item()  #! item: round-trip
    loss = loss * w
    loss.backward()

# --- text that a tokenizer makes is what the program is for
def answer(tokenizer, y):
    print(tokenizer.decode(y[0].tolist()))  #! tolist: cpu-compute

# --- text that a tokenizer makes, buffered
def feed(x, tokenizer):
    parts = []
    for one in x:
        parts.append(tokenizer.decode([7] + one.tolist())[1:])  #! tolist: cpu-compute
    print("".join(parts))

# --- arrays written after the loop
def sample(model, n):
    images = []
    while len(images) < n:
        images.extend([image.cpu().numpy() for image in model()])  #! cpu: cpu-compute; in <listcomp>
    images = np.concatenate(images, axis=0)
    np.savez("samples.npz", images)

# --- entries of pairs
def f(a, key):
    errors = OrderedDict([('loss', a.item()), ('rate', 3)])  #! item: logging
    for key in errors.keys():
        table[key] = 1
    print(errors)

# --- a dict by keywords
def f(a):
    d = dict(loss=a.item(), n=3)  #! item: logging
    if d['n'] > 2:
        g()
    print(d['loss'])

# --- a dict whose keys are attributes
def f(a, b):
    d = Munch(real=a.item(), fake=g())  #! item: logging
    if d.fake > 2:
        g()
    print(d.real)

# --- dicts of attributes, shown as pairs in the caller
class Solver:
    def train(self, n):
        for i in range(n):
            loss, first = compute(self.nets)
            loss.backward()
            loss, second = compute(self.nets)
            if i % 10 == 0:
                everything = dict()
                for losses, prefix in zip([first, second], ['D/first_', 'D/second_']):
                    for key, value in losses.items():
                        everything[prefix + key] = value
                log = "iteration %i, " % i
                log += ' '.join(['%s: [%.4f]' % (key, value) for key, value in everything.items()])
                print(log)

def compute(nets):
    loss = nets.discriminator()
    return loss, munch.Munch(real=loss.item(), n=3)  #! item: logging

# --- a lambda that others call
def f(a, boxes):
    cache = a.cpu()  #! cpu: value-read; says returned by a function inside
    kinds = [('box', lambda i, j: cache[i, j].item())]
    match(boxes, kinds)

def run(a, boxes):
    f(a, boxes)  #< f

# --- a function inside that is called
def f(a):
    v = a.item()  #! item: control-flow
    def late():
        return v > 3
    if late():
        g()

# --- a list is asked for its elements
class Seen:
    def __init__(self):
        self.all = []
    def update(self, value):
        value = value.item()  #! item: control-flow
        if value in self.all:
            return
        self.all.append(value)

# --- what a framework asks a metric for is shown
class IoU(BaseMetric):
    def process(self, batch, samples):
        iou = (samples[0] / samples[1]).cpu()  #! cpu: logging
        self.results.append(dict(n=len(batch), iou=iou * len(batch)))
    def compute_metrics(self, results):
        total = sum(result['iou'] for result in self.results)
        return dict(iou=total / sum(result['n'] for result in self.results))

# --- of another method it is not told
class IoU(BaseMetric):
    def process(self, batch, samples):
        iou = (samples[0] / samples[1]).cpu()  #! cpu: value-read
        self.results.append(dict(n=len(batch), iou=iou * len(batch)))
    def threshold(self, results):
        total = sum(result['iou'] for result in self.results)
        return dict(iou=total / sum(result['n'] for result in self.results))
