# What the host had before it was uploaded, through functions, files and callers.

# --- the longest of what a helper sent
from torch.utils.data import DataLoader
from helpers import to_gpu

def parse(batch):
    text, lens = batch
    lens = to_gpu(lens).long()
    return text, torch.zeros(lens.max().item())  #! item: host-known; pattern A36; says line 4 of helpers.py

def train(data):
    for i, batch in enumerate(DataLoader(data)):
        parse(batch)  #< parse
# file: helpers.py
def to_gpu(x):
    x = x.contiguous()
    if torch.cuda.is_available():
        x = x.cuda(non_blocking=True)
    return torch.autograd.Variable(x)

# --- a size of what a helper sent
from torch.utils.data import DataLoader

def mask(lens, width):
    size = lens.max()
    return torch.arange(size, device=lens.device) < lens[:, None]  #! read arange 8: host-known; pattern A36; says line 9

def train(model, data):
    for x, lens in DataLoader(data):
        mask(lens.cuda(), 4)  #< mask

# --- two sizes, and which one waits is not plain
from torch.utils.data import DataLoader

def mask(x, lens):
    return x.expand(lens.max(), model(x))  #! read expand 8: dynamic-shape

def train(model, data):
    for x, lens in DataLoader(data):
        mask(x.cuda(), lens.cuda())  #< mask

# --- the helper gives something else now and then
from torch.utils.data import DataLoader
from helpers import to_gpu

def parse(batch):
    text, lens = batch
    lens = to_gpu(lens)
    return torch.zeros(lens.max().item())  #! item: dynamic-shape

def train(data):
    for batch in DataLoader(data):
        parse(batch)  #< parse
# file: helpers.py
def to_gpu(x):
    if ready():
        return predict(x)
    return x.cuda()

# --- the helper changes what it sent
from torch.utils.data import DataLoader
from helpers import to_gpu

def parse(batch):
    text, lens = batch
    lens = to_gpu(lens)
    return torch.zeros(lens.max().item())  #! item: dynamic-shape

def train(data):
    for batch in DataLoader(data):
        parse(batch)  #< parse
# file: helpers.py
def to_gpu(x):
    x = x.cuda()
    x.mul_(scale(x))
    return x

# --- the helper is decorated
from torch.utils.data import DataLoader
from helpers import to_gpu

def parse(batch):
    text, lens = batch
    return torch.zeros(to_gpu(lens).max().item())  #! item: dynamic-shape

def train(data):
    for batch in DataLoader(data):
        parse(batch)  #< parse
# file: helpers.py
@learned
def to_gpu(x):
    return x.cuda()

# --- the helper is defined twice
from torch.utils.data import DataLoader
from helpers import to_gpu

def parse(batch):
    text, lens = batch
    return torch.zeros(to_gpu(lens).max().item())  #! item: dynamic-shape

def train(data):
    for batch in DataLoader(data):
        parse(batch)  #< parse
# file: helpers.py
def to_gpu(x):
    return x.cuda()
if fast:
    def to_gpu(x):
        return predict(x)

# --- the helper's name is taken
from torch.utils.data import DataLoader
from helpers import to_gpu

def parse(batch, to_gpu):
    text, lens = batch
    return torch.zeros(to_gpu(lens).max().item())  #! item: dynamic-shape

def train(data):
    for batch in DataLoader(data):
        parse(batch, net)  #< parse
# file: helpers.py
def to_gpu(x):
    return x.cuda()

# --- another name for the helper
from torch.utils.data import DataLoader
from helpers import to_gpu
to_gpu = compile(to_gpu)

def parse(batch):
    text, lens = batch
    return torch.zeros(to_gpu(lens).max().item())  #! item: dynamic-shape

def train(data):
    for batch in DataLoader(data):
        parse(batch)  #< parse
# file: helpers.py
def to_gpu(x):
    return x.cuda()

# --- the name gets another value before the read
from torch.utils.data import DataLoader

def parse(batch):
    text, lens = batch
    lens = lens.cuda()
    lens = model(text)
    return torch.zeros(lens.max().item())  #! item: dynamic-shape

def train(data):
    for batch in DataLoader(data):
        parse(batch)  #< parse

# --- the name gets another value after the read
from torch.utils.data import DataLoader

def parse(batch):
    text, lens = batch
    lens = lens.cuda()
    n = lens.max().item()  #! item: host-known
    lens = model(text)
    return torch.zeros(n), lens

def train(data):
    for batch in DataLoader(data):
        parse(batch)  #< parse

# --- another value on one way
from torch.utils.data import DataLoader

def parse(batch, fast):
    text, lens = batch
    lens = lens.cuda()
    if fast:
        lens = model(text)
    return torch.zeros(lens.max().item())  #! item: dynamic-shape

def train(data, fast):
    for batch in DataLoader(data):
        parse(batch, fast)  #< parse

# --- the caller on the stack passes what the host has
def longest(lens):
    return torch.zeros(lens.max().item())  #! item: host-known

def known(sizes):
    longest(torch.tensor([1, 2, 3]).cuda())  #< longest

def other(x):
    longest(model(x))

# --- the caller on the stack passes what the model says
def longest(lens):
    return torch.zeros(lens.max().item())  #! item: dynamic-shape

def known(sizes):
    longest(torch.tensor([1, 2, 3]).cuda())

def other(x):
    longest(model(x))  #< longest

# --- two calls on the caller's line
def longest(lens):
    return torch.zeros(lens.max().item())  #! item: dynamic-shape

def both(x):
    return longest(torch.tensor([1, 2, 3]).cuda()), longest(model(x))  #< longest

# --- a loader of one's own
from fast import DataLoader

def parse(batch):
    lens = batch.cuda()
    return torch.zeros(lens.max().item())  #! item: dynamic-shape

def train(data):
    for batch in DataLoader(data):
        parse(batch)  #< parse

# --- a loader made by a function of the program
from data import loaders

def parse(batch):
    lens = batch['lens'].to('cuda')
    return torch.zeros(lens.max().item())  #! item: host-known

def train():
    training, validation = loaders()
    for batch in training:
        parse(batch)  #< parse
# file: data.py
from torch.utils.data import DataLoader

def loaders():
    a, b = DataLoader(one), DataLoader(other)
    return a, b

# --- the object whose method the stack shows
from torch.utils.data import DataLoader
from build import make

def forward(self, inputs):
    x, lens = inputs
    return torch.zeros(lens.max().item())  #! item: dynamic-shape

def train(data):
    model = make()
    for batch in DataLoader(data):
        model(model.parse(batch))  #< forward

# --- by keyword, in a tuple, through a method
from torch.utils.data import DataLoader

class Net:
    def parse(self, batch, device):
        text, lens = batch
        return (text.to(device), {'lens': lens.to(device)}), None

    def forward(self, inputs, *, scale=1):
        text, more = inputs
        return torch.zeros(more['lens'].max().item())  #! item: host-known

    def train(self, data, device):
        for batch in DataLoader(data):
            x, _ = self.parse(batch, device=device)
            self.forward(x)  #< forward

# --- the other element of the tuple
from torch.utils.data import DataLoader

class Net:
    def parse(self, batch):
        text, lens = batch
        return lens.cuda(), self.encode(text)

    def train(self, data):
        for batch in DataLoader(data):
            a, b = self.parse(batch)
            n = torch.zeros(b.max().item())  #! item: dynamic-shape
            m = torch.zeros(a.max().item())  #! item: host-known

# --- all of a dict, moved
from torch.utils.data import DataLoader

def train(data, device):
    for batch in DataLoader(data):
        batch = {k: v.to(device) for k, v in batch.items()}
        n = torch.zeros(batch['lens'].max().item())  #! item: host-known
        out = model(**batch)
        m = torch.zeros(out['lens'].max().item())  #! item: dynamic-shape

# --- an attribute, sent in another method
class Schedule:
    def set(self, n):
        self.steps = torch.arange(n, 0, -1, device='cuda')

    def at(self, i):
        if self.steps[3].item() > 2:  #! item: host-known
            go()

# --- an attribute that another method changes
class Schedule:
    def set(self, n):
        self.steps = torch.arange(9, 0, -1, device='cuda')

    def learn(self, x):
        self.steps[3] = model(x)

    def at(self, i):
        if self.steps[3].item() > 2:  #! item: control-flow
            go()

# --- an attribute that others assign
class Schedule:
    def set(self, n):
        self.steps = torch.arange(9, 0, -1, device='cuda')

    def at(self, i):
        if self.steps[3].item() > 2:  #! item: control-flow
            go()

def learn(schedule, x):
    schedule.steps = model(x)

# --- a weight that is trained
def fit(opt):
    w = torch.zeros(3, device='cuda', requires_grad=True)
    opt.step()
    if w.max().item() > 1:  #! item: control-flow
        stop()

# --- written by out=
def fit(x):
    lens = torch.tensor([1, 2, 3], device='cuda')
    torch.add(x, 1, out=lens)
    if lens.max().item() > 1:  #! item: control-flow
        stop()

# --- a helper that calls itself
def deep(x, n):
    if n:
        return deep(x, n - 1)
    return x.cuda()

def f(x):
    if deep(torch.tensor([1, 2]), 3).max().item() > 1:  #! item: host-known
        stop()

# --- what wrappers hand on
from torch.utils.data import DataLoader

def call(*args, **kwargs):
    return net.run(*args, **kwargs)  #< run

def run(x, lens):
    return torch.zeros(lens.max().item())  #! item: host-known

def train(data):
    for x, lens in DataLoader(data):
        call(x, lens=lens.cuda())  #< call

# --- a mask computed on the GPU
from torch.utils.data import DataLoader

def train(data):
    for x, y in DataLoader(data):
        y = y.cuda()
        z = x[y == 1]  #! get-mask: dynamic-shape

# --- a value that is kept beside
DEBUG = False

def check(x):
    n = x.sum().item() and DEBUG  #! item: control-flow
    return n

# --- one total, asked for twice
def experts(x, bias, counts):
    ends = torch.cumsum(counts, dim=0, dtype=torch.int32)
    b = bias.repeat_interleave(counts.to(torch.long), dim=0)  #! repeat-interleave: host-known; pattern B10; says line 4
    rest = x.shape[0] - int(ends[-1])  #! int: control-flow
    if rest:
        b = pad(b, rest)
    c = bias.repeat_interleave(counts, dim=0)  #! repeat-interleave: host-known
    again = x.shape[0] - int(ends[-1])  #! int: host-known; pattern A39
    if again:
        c = pad(c, again)
    return b, c

# --- other totals
def experts(x, bias, counts, others, few):
    ends = torch.cumsum(others, dim=0)
    b = bias.repeat_interleave(counts, dim=0)  #! repeat-interleave: dynamic-shape
    rest = x.shape[0] - int(ends[-1])
    if few:
        n = int(counts.sum())
    m = int(counts.sum(1)[0])
    counts = counts + 1
    k = int(counts.sum())
    return b, rest

# --- the total that sizes another tensor
def permute(counts, ranks):
    total = counts.sum()
    lens = counts.view(ranks, -1).t().reshape(-1)
    ids = torch.arange(lens.shape[0]).repeat_interleave(lens)  #! repeat-interleave: host-known; pattern B10
    return ids + torch.arange(total)

# --- a guard on what nobody logs
def step(self, batches):
    for x, y in batches:
        loss = self.loss(x, y)
        if not loss.isfinite():  #! is_nonzero: control-flow; pattern A35
            raise RuntimeError(f"{loss.item()}")
        loss.backward()

# --- a guard that tells of what it found
def step(self, x):
    loss = self.loss(x)
    if torch.isnan(loss).any():  #! is_nonzero: control-flow; pattern A35
        logger.error(f"{loss.item()}")
        raise RuntimeError()

# --- a limit is no guard against NaN
def step(self, x):
    loss = self.loss(x)
    if loss > 100:  #! is_nonzero: control-flow; pattern A35
        raise RuntimeError()
    print(loss.item())

# --- a guard whose caller passes what nobody logs
class Trainer:
    def run(self):
        parts = self.model(self.data)
        total = sum(parts.values())
        self.check(total)  #< check
        total.backward()
        print(self.step, self.other.item())

    def check(self, total):
        if not torch.isfinite(total).all():  #! is_nonzero: control-flow; pattern A35
            raise FloatingPointError()

# --- filled with a value of the model's
def f(x):
    lens = torch.full((3,), model(x), device='cuda')
    return torch.zeros(lens.max().item())  #! item: dynamic-shape

# --- what a generator of the program yields
from torch.utils.data import DataLoader
from feed import logged

def train(data):
    for x, lens in logged(DataLoader(data), 10):
        lens = lens.cuda()
        y = torch.zeros(lens.max().item())  #! item: host-known
# file: feed.py
def logged(loader, n):
    for i, one in enumerate(loader):
        if i % n == 0:
            print(i)
        yield one

# --- a generator that puts something else in between
from torch.utils.data import DataLoader
from feed import logged

def train(data):
    for x, lens in logged(DataLoader(data), 10):
        lens = lens.cuda()
        y = torch.zeros(lens.max().item())  #! item: dynamic-shape
# file: feed.py
def logged(loader, n):
    for i, one in enumerate(loader):
        yield predict(one)

# --- a method of a class in another file
from torch.utils.data import DataLoader
from feed import Feed

def train(data):
    feed = Feed()
    for batch in DataLoader(data):
        x, lens = feed.send(batch)
        y = torch.zeros(lens.max().item())  #! item: host-known
        z = torch.zeros(x.max().item())  #! item: dynamic-shape
# file: feed.py
class Feed:
    def send(self, batch):
        x, lens = batch
        return self.encode(x), lens.cuda()

# --- the class is one of two
from torch.utils.data import DataLoader
from feed import Feed, Other

def train(data, fast):
    feed = Feed() if fast else Other()
    for batch in DataLoader(data):
        x, lens = feed.send(batch)
        y = torch.zeros(lens.max().item())  #! item: dynamic-shape
# file: feed.py
class Feed:
    def send(self, batch):
        x, lens = batch
        return self.encode(x), lens.cuda()

class Other:
    def send(self, batch):
        return predict(batch)

# --- a guard that skips the step
def step(self, batches):
    for x, y in batches:
        loss = self.loss(x, y)
        if not loss.isfinite():  #! is_nonzero: control-flow; pattern A42
            continue
        loss.backward()
        print(loss.item())

# --- a branch that pads
def pad(x, n):
    rest = x.shape[0] - n.item()  #! item: control-flow
    if rest:
        x = torch.cat([x, x.new_zeros(rest)])
    return x

# --- a list that the host fills
def pad(batch):
    lens = []
    for x in batch:
        lens.append(len(x))
    lens = torch.tensor(lens).cuda()
    return torch.zeros(lens.max().item())  #! item: host-known

# --- a list that the model fills
def pad(batch):
    lens = []
    for x in batch:
        lens.append(model(x))
    lens = torch.stack(lens).cuda()
    return torch.zeros(lens.max().item())  #! item: dynamic-shape

# --- a tensor of the host, whatever it was made of
def pad(batch):
    lens = {}
    for x in batch:
        lens.update(model(x))
    n = torch.tensor(sorted(lens)).cuda()
    return torch.zeros(n.max().item())  #! item: host-known

# --- a dict that the model fills
def pad(batch):
    lens = {}
    for x in batch:
        lens.update(model(x))
    n = torch.stack(list(lens.values())).cuda()
    return torch.zeros(n.max().item())  #! item: dynamic-shape

# --- an attribute of another object
class Schedule:
    def set(self, n):
        self.steps = torch.arange(9, 0, -1, device='cuda')

def at(model, i):
    if model.steps[3].item() > 2:  #! item: control-flow
        go()

# --- a batch's field that the program assigns
from torch.utils.data import DataLoader

def train(data, device):
    for batch in DataLoader(data):
        batch = batch.to(device)
        batch.y = model(batch)
        if batch.y.cpu().numpy().max() > 1:  #! cpu: control-flow
            go()

# --- what a dict collects, sorted
def decode(tokens, device):
    for i in range(9):
        scores = {}
        for one in tokens:
            scores[one] = model(one)
        tokens = torch.stack(sorted(scores)).to(device)
        if tokens.max().item() > 2:  #! item: control-flow
            go()

# --- changed under another name
def pad(x):
    lens = torch.tensor([1, 2, 3], device='cuda')
    out = lens
    out += model(x)
    return torch.zeros(lens.max().item())  #! item: dynamic-shape

# --- filled by a keyword
def f(x):
    lens = torch.full((3,), fill_value=model(x), device='cuda')
    return torch.zeros(lens.max().item())  #! item: dynamic-shape

# --- the bound of a slice that the host sent
from torch.utils.data import DataLoader

def train(data):
    for x, lens in DataLoader(data):
        lens = lens.cuda()
        longest = lens.max()
        use(x[:longest])  #! index: host-known; pattern A36

# --- a comparison that the host could make
from torch.utils.data import DataLoader

def train(data):
    for x, lens in DataLoader(data):
        lens = lens.cuda()
        if (lens != x.size(1)).any():  #! truth: host-known; pattern A36
            pad(x)
        if lens.min() == 0:  #! truth: host-known; pattern A36
            skip(x)
        if model(lens).min() == 0:  #! truth: control-flow
            skip(x)

# --- a helper that sends part after part
from torch.utils.data import DataLoader

def send(batch, device):
    if torch.is_tensor(batch):
        return batch.to(device)
    if isinstance(batch, dict):
        return {key: send(value, device) for key, value in batch.items()}
    return type(batch)(send(part, device) for part in batch)

def train(data, device):
    for batch in DataLoader(data):
        batch = send(batch, device)
        lens = batch['lens'].tolist()  #! tolist: host-known; pattern D10
        pad(lens, torch.zeros(batch['lens'].max().item()))  #! item: host-known; pattern A36

# --- one that computes on the way
from torch.utils.data import DataLoader

def send(batch, device):
    if torch.is_tensor(batch):
        return batch.to(device)
    return [send(model(part), device) for part in batch]

def train(data, device):
    for batch in DataLoader(data):
        batch = send(batch, device)
        pad(torch.zeros(batch[1].max().item()))  #! item: dynamic-shape

# --- the rest of a tuple
from torch.utils.data import DataLoader

def train(data):
    for ids, x, lens in DataLoader(data):
        rest = (ids, model(x), lens.cuda())[1:]
        pad(torch.zeros(rest[1].max().item()))  #! item: host-known; pattern A36
        pad(torch.zeros(rest[0].max().item()))  #! item: dynamic-shape

# --- not all of it is
Table = collections.namedtuple('Table', 'alpha, beta')

class Solver:
    def __init__(self, alpha, model):
        self.table = Table(alpha.cuda(), model())

    def step(self, t):
        return advance(t, table=self.table)  #< advance

def advance(t, table):
    if table.beta[0] == 1.:  #! truth: control-flow
        t = t + table.alpha
    return t

# --- tokens of each expert
def spread(offsets, w):
    return torch.repeat_interleave(w, offsets[1:] - offsets[:-1])  #! repeat-interleave: dynamic-shape

# --- tokens of the batches, counted where they are not made
from torch.utils.data import DataLoader

class Trainer:
    def train(self, data, config):
        self.tokens = 0
        for x, y in tqdm(DataLoader(data)):
            y = y.to(self.device)
            self.tokens += (y >= 0).sum()
            if self.tokens < config.warmup:  #! truth: host-known; pattern A36
                warm(x)

# --- tokens of the batches, counted where they were sent
from torch.utils.data import DataLoader
from tqdm import tqdm

class Trainer:
    def __init__(self, model, data, config):
        self.model, self.data, self.config = model, data, config
        self.device = torch.cuda.current_device()

    def train(self):
        config = self.config
        def run_epoch(loader, is_train):
            pbar = tqdm(enumerate(loader), total=len(loader)) if is_train else enumerate(loader)
            for it, (x, y) in pbar:
                x = x.to(self.device)
                y = y.to(self.device)
                logits, loss = self.model(x, y)
                self.tokens += (y >= 0).sum()
                if self.tokens < config.warmup_tokens:  #! truth: host-known; pattern A36; rules S20
                    lr_mult = float(self.tokens) / float(max(1, config.warmup_tokens))  #! float: host-known; pattern A36; rules S20
                    self.set_rate(lr_mult)
        self.tokens = 0
        for epoch in range(config.epochs):
            run_epoch(DataLoader(self.data, batch_size=8), is_train=True)
