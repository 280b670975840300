# What the host had before it was uploaded.

# --- longest of a list
def pad(batch, device):
    lens = torch.tensor([len(x) for x in batch], device=device)
    longest = lens.max().item()  #! item: host-known; pattern A36
    return torch.zeros(len(batch), longest, device=device)

# --- longest, moved first
def pad(batch, device):
    lens = torch.tensor([len(x) for x in batch])
    lens = lens.to(device)
    longest = int(lens.max())  #! int: host-known; pattern A36
    return torch.zeros(len(batch), longest, device=device)

# --- reduced over the ranks
def pad(batch, device):
    lens = torch.tensor([len(x) for x in batch], device=device)
    dist.all_reduce(lens)
    longest = lens.max().item()  #! item: dynamic-shape
    return torch.zeros(len(batch), longest, device=device)

# --- changed in place
def pad(batch, device):
    lens = torch.tensor([len(x) for x in batch], device=device)
    lens.clamp_(max=512)
    longest = lens.max().item()  #! item: dynamic-shape
    return torch.zeros(len(batch), longest, device=device)

# --- combined with what the model says
def pad(batch, model, device):
    lens = torch.tensor([len(x) for x in batch], device=device)
    longest = (lens * model(batch)).max().item()  #! item: dynamic-shape
    return torch.zeros(len(batch), longest, device=device)

# --- repeated by counts of the host
def spread(x, counts):
    rep = torch.tensor([c + 1 for c in range(9)], device='cuda')
    return torch.repeat_interleave(x, rep, dim=0)  #! repeat-interleave: host-known; pattern B30

# --- repeated by counts of the device
def spread(x, router):
    rep = router(x).round().long()
    return torch.repeat_interleave(x, rep, dim=0)  #! repeat-interleave: dynamic-shape

# --- steps of a schedule
def denoise(model, x, n):
    timesteps = torch.linspace(999, 0, 50, device='cuda')
    for i in range(n):
        t = timesteps[i]
        if t.item() < 100:  #! item: host-known
            x = refine(x)
        x = model(x, t)
    return x

# --- a schedule of the device
def denoise(model, x, timesteps):
    for t in timesteps:
        if t.item() < 100:  #! item: control-flow
            x = refine(x)
        x = model(x, t)
    return x

# --- a mask made on the host
def pick(x, n):
    keep = torch.tensor([i % 2 == 0 for i in range(n)], device='cuda')
    return x[keep]  #! get-mask: host-known; pattern B30

# --- shown as well as known: shown
def show(sizes):
    t = torch.tensor([1, 2, 3], device='cuda')
    print(t.sum().item())  #! item: logging

# --- a batch of a loader may be on the device already
def count(loader, device):
    for x, mask in loader:
        mask = mask.to(device)
        if mask.sum().item() == 0:  #! item: control-flow
            continue
        train(x, mask)

# --- pairs of a batch: all but the diagonal
def pairs(features, device):
    n = features.shape[0]
    same = torch.cat([torch.arange(n) for _ in range(2)], dim=0)
    same = (same[None] == same[:, None]).float().to(device)
    diagonal = torch.eye(len(same), dtype=torch.bool, device=device)
    same = same[~diagonal]  #! get-mask: host-known; pattern B30
    scores = (features @ features.T)[~diagonal]  #! get-mask: host-known; pattern B30
    return scores[same.bool()], scores[~same.bool()]  #! get-mask: host-known; pattern B30

# --- the upper half of a matrix
class Upper:
    def __init__(self, n, device):
        self.upper = torch.triu(torch.ones(n, n), 1).bool().to(device)
    def forward(self, x):
        return x[self.upper > 0]  #! get-mask: host-known; pattern B30

# --- the diagonal, but for what a batch leaves out
def pairs(scores, loader, device):
    for kept in DataLoader(loader):
        diagonal = torch.eye(scores.shape[0], dtype=torch.bool, device=device)
        scores = scores[~diagonal & kept.to(device)]  #! get-mask: dynamic-shape

# --- a mask that is changed in place
def pairs(scores, rows, device):
    diagonal = torch.eye(scores.shape[0], dtype=torch.bool, device=device)
    diagonal[rows] = True
    return scores[~diagonal]  #! get-mask: dynamic-shape

# --- labels of any caller
def embed(points, labels):
    return points[labels == -1]  #! get-mask: dynamic-shape; pattern B32

def everywhere(points, device):
    labels = torch.ones(points.shape[0], dtype=torch.int, device=device)
    return embed(points, labels)  #< embed

# --- buffers that only the host writes to
class Schedule(nn.Module):
    def __init__(self, until):
        super().__init__()
        self.register_buffer("steps", torch.tensor(0))
        self.register_buffer("ready", torch.tensor(False))
        self.register_buffer("limits", torch.tensor([until, -1]))

    def forward(self, x):
        step = self.steps.item()  #! item: host-known; pattern A36
        self.steps += 1
        if not self.ready.item():  #! item: host-known
            self.ready.data.copy_(torch.tensor(True))
        if self.limits[0].item() > step:  #! item: host-known
            return x
        self.limits[1] = x.argmax()
        return x[: int(self.limits[1].item())]  #! item: dynamic-shape

# --- buffers that the GPU writes to
class Running(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.tensor(0.0))
        self.register_buffer("seen", torch.zeros(1))
        self.register_buffer("decayed", torch.tensor(1.0))
        self.register_buffer("noise", torch.tensor(0.0))
        self.register_buffer("gain", torch.tensor(0.0))

    def forward(self, x):
        self.total += x.sum()
        nn.functional.batch_norm(x, self.seen, self.seen)
        self.decayed.data.mul_(0.9).add_(x.mean())
        self.noise.normal_()
        self.gain.add_(1, alpha=x.mean())
        if self.total.item() > 1e6:  #! item: control-flow
            raise OverflowError
        if self.noise.item() > 3:  #! item: control-flow
            raise OverflowError
        if self.gain.item() > 3:  #! item: control-flow
            raise OverflowError
        if self.seen.item() > 1e6:  #! item: control-flow
            raise OverflowError
        if self.decayed.item() > 1e6:  #! item: control-flow
            raise OverflowError

# --- one of two tuples that a helper uploads
def shown(targets, i):
    n = model_says(targets[0]).item()
    pitch = targets[2][i, :n].detach().cpu().numpy()  #! cpu: host-known
    plot(pitch)
def to_device(data, device):
    if len(data) == 3:
        ids, lens, pitches = data
        pitches = torch.from_numpy(pitches).float().to(device)
        return ids, lens, pitches
    ids, lens = data
    return ids, torch.from_numpy(lens).to(device)
def main(loader, device):
    for batch in loader:
        batch = to_device(batch, device)
        shown(batch, 0)  #< shown

# --- one of two tuples, into which the model put its own
def shown(targets, i):
    pitch = targets[2][i].cpu().numpy()  #! cpu: value-read
    plot(pitch)
def to_device(data, model, device):
    if len(data) == 3:
        ids, lens, pitches = data
        pitches = model(torch.from_numpy(pitches).float().to(device))
        return ids, lens, pitches
    ids, lens = data
    return ids, torch.from_numpy(lens).to(device)
def main(loader, model, device):
    for batch in loader:
        batch = to_device(batch, model, device)
        shown(batch, 0)  #< shown

# --- a counter held against a setting that may be missing
class Running(nn.Module):
    def __init__(self, until=None):
        super().__init__()
        self.until = until
        self.register_buffer("count", torch.tensor(0))
    def update(self, x):
        if self.until is not None and self.count >= self.until:  #! truth: host-known; rules S20; pattern A36
            return
        n = x.shape[0]
        self.count += n

# --- a counter of Python held against a setting that went to the device
class Solver:
    def __init__(self, y0, most=2 ** 31 - 1):
        self.most = torch.tensor(most, device=y0.device)
    def advance(self, t):
        steps = 0
        while t > self.ends[-1].item():
            assert steps < self.most, "too many steps"  #! truth: host-known; rules S20; pattern A36
            steps += 1

# --- means along a dimension are of the CPU's arrays
def loss_of(input, groups):
    cpu = input.to('cpu')  #! read to 153600: cpu-compute
    prototypes = torch.stack([cpu[own].mean(0) for own in groups])
    centre = torch.mean(prototypes, dim=0)
    return scipy.linalg.solve(prototypes, centre)
