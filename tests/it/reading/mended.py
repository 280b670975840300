# What was read wrong on public programs, by its cause.

# --- a key is looked up, no value tested
class MetricLogger:
    def __init__(self):
        self.meters = defaultdict(SmoothedValue)
    def update(self, **kwargs):
        for k, v in kwargs.items():
            v = v.item()  #! item: logging
            self.meters[k].update(v)
    def __getattr__(self, attr):
        if attr in self.meters:
            return self.meters[attr]
        raise AttributeError(attr)

# --- a value among those of a list
def f(xs):
    seen = []
    for x in xs:
        seen.append(x.item())  #! item: control-flow
        if 3 in seen:
            break

# --- text by a template that has a name
class Meter:
    def __str__(self):
        fmtstr = '{name} {val' + self.fmt + '}'
        return fmtstr.format(**self.__dict__)  #! format: logging

# --- text that the caller prints
class Meter:
    def summary(self):
        fmtstr = '{name} {avg:.3f}'
        return fmtstr.format(**self.__dict__)  #! format: logging

def display_summary(meters):
    entries = [" *"]
    entries += [meter.summary() for meter in meters]  #< summary
    print(' '.join(entries))

# --- a log of a module of that name
from some_geometry.logging import log

def train(loss):
    return float(loss.detach())  #! float: logging

def main():
    for epoch in range(9):
        loss = train(model)  #< train
        log(Epoch=epoch, Loss=loss)

# --- no log of a module of another name
from some_geometry.curves import log

def train(loss):
    log(loss.item())  #! item: value-read

# --- results for a library of the CPU
from pycocotools.coco import COCO

def prepare(prediction):
    boxes = prediction["boxes"].tolist()  #! tolist: cpu-compute
    return [{"bbox": box} for box in boxes]

def update(gt, prediction):
    results = prepare(prediction)  #< prepare
    return COCO.loadRes(gt, results) if results else COCO()

# --- a table of functions
class Criterion:
    def loss_labels(self, outputs, n):
        return outputs.sum()
    def loss_boxes(self, outputs: torch.Tensor, n):
        return outputs.abs().sum().detach() / n
    def get_loss(self, loss, outputs, n):
        loss_map = {'labels': self.loss_labels, 'boxes': self.loss_boxes}
        return loss_map[loss](outputs, n)
    def forward(self, outputs, n):
        n = torch.clamp(n, min=1).item()  #! item: round-trip
        for loss in self.losses:
            self.get_loss(loss, outputs, n)

# --- a table one of whose functions is elsewhere
class Criterion:
    def loss_labels(self, outputs, n):
        return outputs.sum()
    def get_loss(self, loss, outputs, n):
        loss_map = {'labels': self.loss_labels, 'masks': others.loss_masks}
        return loss_map[loss](outputs, n)
    def forward(self, outputs, n):
        n = torch.clamp(n, min=1).item()  #! item: value-read
        for loss in self.losses:
            self.get_loss(loss, outputs, n)

# --- one mask, copied whole
def filter(stats, keep):
    for k, v in stats.items():
        stats[k] = v[torch.as_tensor(keep, device=v.device)]  #! copy as_tensor: cpu-compute

# --- elements read one by one
def gather(a, b, device):
    return torch.tensor([a, b], device=device)  #! read tensor 4: round-trip; pattern A13

# --- added to through a mask: read first
def embed(points: torch.Tensor, labels, weight):
    points[labels == -1] += weight  #! get-mask: dynamic-shape; pattern B31
    loss = F.cross_entropy(points[labels == 0], weight)  #! get-mask: dynamic-shape; pattern B02
    kept = points.masked_select(labels)  #! count masked_select: dynamic-shape; pattern B32
    best[labels < 3] = points[labels < 3].clone().detach()  #! get-mask: dynamic-shape; pattern B34
    best[labels < 3] = weight  #! set-mask: dynamic-shape; pattern B03
    best[labels < 3] = points[labels < 4]  #! get-mask: dynamic-shape; pattern B32

# --- a bound in a target
def suppress(logits: torch.Tensor, last):
    for k in range(4):
        logits[k, 50:last] = -1.0  #! index: dynamic-shape

# --- columns turned into rows
def rank(probs, texts):
    values = probs.tolist()  #! tolist: control-flow
    fields = (texts, values)
    kept = []
    for text, value in zip(*fields):
        if value > 0.5:
            kept.append(text)
    return kept

# --- columns turned into rows, the other one decides
def rank(probs, texts):
    values = probs.tolist()  #! tolist: logging
    fields = (texts, values)
    for text, value in zip(*fields):
        if text:
            print(value)

# --- the keys are sorted by the values
def best(xs, names):
    scores = {}
    for x, name in zip(xs, names):
        scores[name] = x.item()  #! item: control-flow
    for name in sorted(scores, key=scores.get, reverse=True):
        keep(name)

# --- a field decides, another does not
@dataclass
class Decoded:
    text: str
    silence: float
    energy: float

def decode(logits, text):
    return Decoded(text, logits.max().item(), 0.0)  #! item: control-flow

def transcribe(logits, text, limit):
    result = decode(logits, text)  #< decode
    if result.silence > limit:
        return None
    return result.text

# --- another field decides
@dataclass
class Decoded:
    text: str
    silence: float
    energy: float

def decode(logits, text, energy):
    return Decoded(text, logits.max().item(), energy)  #! item: logging

def transcribe(logits, text, limit):
    result = decode(logits, text, 3)  #< decode
    if result.energy > limit:
        return None
    print(result.silence)

# --- an object is asked
@dataclass
class Decoded:
    silence: float
    def is_empty(self):
        return self.silence > 0.6

def decode(logits):
    return Decoded(silence=logits.max().item())  #! item: value-read

def transcribe(logits):
    result = decode(logits)  #< decode
    if result.is_empty():
        return None

# --- a generator's values decide
def losses(model, loader):
    for batch in loader:
        yield model(batch).item()  #! item: control-flow

def fit(model, loader):
    for loss in losses(model, loader):  #< losses
        if loss > 100:
            break

# --- a harness drops what it is given
def read(x):
    return x.max().item()  #! item: value-read

def bench(fn, x):
    for _ in range(10):
        fn(x)  #< read

# --- drawn on the device, filled on the host
def sample(model, device):
    noise = torch.randn(64, 20).to(device)  #! to: upload; pattern C14; fix torch.randn(64, 20, device=device)
    return model(noise)

# --- the same by the type of another
def f(eigenvalues, k):
    return torch.arange(k).type_as(eigenvalues).long()  #! upload type_as 40: upload; pattern C14

# --- in another form; a window; in brackets; expanded, which moved has memory for each element
def shaped(n, device, y):
    rows = torch.arange(n).unsqueeze(0).float().to(device)  #! to: upload; pattern C14; rules S09 S22; fix torch.arange(n, device=device).unsqueeze(0).float()
    window = torch.hann_window(n).to(y.device)  #! to: upload; pattern C14; fix torch.hann_window(n, device=y.device)
    zeros = (torch.zeros(n)).view(1, n).to(device=device)  #! to: upload; pattern C14; fix (torch.zeros(n, device=device)).view(1, n)
    return rows, window, zeros, torch.arange(n).expand(9, n).to(device)  #! to: upload; pattern C15; fix torch.arange(n).expand(9, n).to(device, non_blocking=True)

# --- in the words of old programs
def old(b, n, values, device):
    cost = Variable(torch.FloatTensor(b, n // 4).zero_()).cuda()  #! cuda: upload; pattern C14; rules S09 S22; nofix
    noise = torch.FloatTensor(b).normal_().to(device)  #! to: upload; pattern C14; nofix
    rows = torch.FloatTensor(np.zeros((b, n))).to(device)  #! to: upload; pattern C14; nofix
    ranks = torch.LongTensor(range(n)).unsqueeze(0).expand_as(x).to(device)  #! to: upload; pattern C15; rules S09 S24
    steps = torch.tensor(list(range(n))).to(device)  #! to: upload; pattern C14; rules S09 S24; nofix
    data = torch.FloatTensor(values).to(device)  #! to: upload; pattern C15; rules S09
    graph = torch.sparse.FloatTensor(index, values, torch.Size((b, n))).to(device)  #! to: upload; pattern C15; rules S09
    drawn = torch.empty(n).normal_(generator=rng).to(device)  #! to: upload; pattern C15; rules S09
    fives = torch.empty(n).fill_(-5).to(device)  #! to: upload; pattern C14; rules S09 S22
    given = torch.empty(n).fill_(values[0]).to(device)  #! to: upload; pattern C15; rules S09
    return cost, noise, rows, data, torch.from_numpy(values).float().to(device)  #! to: upload; pattern C15; rules S09

# --- by a name, moved where there is a GPU; read elsewhere too, it may stay on the host
def constants(x, n):
    targets = torch.ones(x.shape) * -1
    if torch.cuda.is_available():
        targets = targets.cuda()  #! cuda: upload; pattern C14; rules S09 S22
    zeros = torch.zeros(n)
    moved = zeros.cuda()  #! cuda: upload; pattern C14; rules S09 S22
    zeros[0] = 1
    return targets, moved, zeros

# --- an object that is made anew for each step
class Batch:
    def __init__(self, words):
        self.words = words

    def on(self, device):
        return self.words.to(device)  #! to: upload; pattern C15

# --- joined on the host, then moved
def contrast(loader, device):
    for views, _ in loader:
        images = torch.cat(views, dim=0)
        images = images.to(device)  #! upload to 4194304: upload; rules S09 S22
        batch = torch.stack(views).to(device)  #! upload to 4194304: upload; rules S09 S22 | to: upload; rules S09

# --- given by a loop, in whatever form; not what a loop counts, nor what is made of it
def train(loader, draw, device):
    for i, (views, target, meta) in enumerate(loader):
        x, y = views
        x = torch.from_numpy(x.astype("float32"))
        x = x.to(device)  #! to: upload; made elsewhere
        y = y.to(device)  #! to: upload; made elsewhere
        target = meta["target"].view(-1).to(device)  #! to: upload; made elsewhere
        words = draw(i).to(device)  #! to: upload; made here
        step = torch.tensor(i).to(device)  #! to: upload; made here
    batches = iter(loader)
    for i in range(9):
        views, target = next(batches)
        views = views.to(device)  #! to: upload; made elsewhere
        both = [view.to(device) for view in draw(i)]  #! to: upload; made here

# --- a constant
def weighted(x, device):
    half = torch.FloatTensor([0.5]).to(device)  #! to: upload; pattern C02; fix torch.full((1,), 0.5, dtype=torch.float32, device=device)
    step = torch.tensor(1, device=device)  #! upload tensor: upload; pattern C02; fix torch.full((), 1, device=device)
    both = torch.tensor([1, 2], device=device)  #! upload tensor: upload; pattern C01
    return x * half, torch.FloatTensor([x.size(0)]).to(device)  #! to: upload; pattern C15

# --- drawn on the host, then moved; lists that PyTorch makes indices of, and a tensor
def sampled(x, b, order, device):
    noise = torch.randn(b, 20) * 0.1
    noise = noise.to(device)  #! to: upload; pattern C14; rules S09 S23
    flips = torch.FloatTensor(np.random.rand(b)).to(device)  #! to: upload; pattern C15; rules S09
    steps = torch.randint(0, 10, (b,)).view(-1, 1).to(device)  #! to: upload; pattern C14; rules S09 S23
    kept = [i for i in range(b) if i % 2]
    y = x[:, kept]  #! get-list: upload; pattern C07; rules S12
    z = x[[0, 2, 5]]  #! get-list: upload; pattern C07; rules S12
    return x[order]  #! get-list: upload; pattern C07; rules S12

# --- filled on the host, then moved
def targets(scores):
    targets = torch.ones(scores.shape) * -1
    if torch.cuda.is_available():
        targets = targets.cuda()  #! cuda: upload; rules S09 S22
    return targets

# --- filled, then written: not the GPU's to make
def padded(rows, device):
    mask = torch.zeros(len(rows), 64)
    for i, row in enumerate(rows):
        mask[i, : len(row)] = 1
    return mask.to(device)  #! to: upload; rules S09

# --- joined once, moved in each round; given from outside; by turns
def kept(parts, loader, device, views):
    table = torch.cat(parts)
    for x in loader:
        y = table.to(device)  #! to: upload; rules S09
    z = views.to(device)  #! to: upload; rules S09
    a = torch.cat(parts)
    if len(parts) > 2:
        a = parts[0]
    return a.to(device)  #! to: upload; rules S09

# --- moved, then cast
def window(mel, model, dtype):
    return pad(mel).to(model.device).to(dtype)  #! to: upload; fix pad(mel).to(model.device, non_blocking=True)

# --- kept for NumPy, which takes no tensors of the device
def update(batches, writer):
    fracs = []
    for b in batches:
        fracs += [ratio(b).mean().item()]  #! item: logging; nofix
    writer.add_scalar("fraction", np.mean(fracs))
