# What was read wrongly in programs as strangers write them.

# --- a function of that name beside a method of it
class Stopper:
    def save_checkpoint(self, loss, model):
        torch.save(model, self.path)

def save_checkpoint(state, is_best):
    torch.save(state, 'last.pt')
    if is_best:
        shutil.copyfile('last.pt', 'best.pt')

def fit(model, loader, best):
    loss = validate(model, loader)
    is_best = loss.item() < best  #! item: control-flow
    save_checkpoint(model.state_dict(), is_best)

# --- a mean by its sum and count, whatever it is called
class Keeper(object):
    def __init__(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

def train(loader, model):
    top5 = Keeper()
    for x, lens in loader:
        part = model(x).eq(1).sum().item()  #! item: logging
        top5.update(part, sum(lens))

# --- a pointer that the host counts along
class Queue(nn.Module):
    def __init__(self, dim=128, size=4096):
        self.size = size
        self.register_buffer('queue', torch.randn(dim, size))
        self.register_buffer('queue_ptr', torch.zeros(1, dtype=torch.long))

    def put(self, keys):
        n = keys.shape[0]
        ptr = int(self.queue_ptr)  #! int: host-known; pattern A36
        self.queue[:, ptr:ptr + n] = keys.T
        ptr = (ptr + n) % self.size
        self.queue_ptr[0] = ptr

# --- a mean that is told arrays of one number
class Means:
    def __init__(self):
        self.n, self.sum, self.mean = 0, 0.0, float('nan')

    def add(self, value):
        self.n += 1
        self.sum += value
        self.mean = self.sum / self.n

def epoch(loader, model, loss_of, bar):
    means = Means()
    for x, y in loader:
        loss = loss_of(model(x), y)
        value = loss.cpu().detach().numpy()  #! cpu: logging
        means.add(value)
        bar.set_postfix_str(f'{means.mean:.3f}')

# --- filled on the host before it is sent
def batch(rows, gpu):
    mask = torch.zeros((len(rows), 50)).bool()
    for i, row in enumerate(rows):
        mask[i, :len(row)] = torch.Tensor([1] * len(row))
    if gpu:
        mask = mask.cuda()
    return mask

def recover(rows, gpu):
    mask = batch(rows, gpu)
    mask = mask.cpu().data.numpy()  #! cpu: host-known; pattern D10
    return [row for row, on in zip(rows, mask) if on[0]]

# --- sound written by a function of scipy
from scipy.io.wavfile import write as write_wav

def speak(model, path):
    sound = model().detach().cpu().numpy()  #! cpu: cpu-compute
    write_wav(path, 24000, sound)

# --- an array that is made when the first batch comes
def embed(model, loader, n):
    found = None
    for at, x in enumerate(loader):
        part = model(x).cpu().numpy()  #! cpu: cpu-compute
        if found is None:
            found = np.zeros((n, part.shape[1]))
        found[at:at + len(part)] = part
    return sklearn.preprocessing.normalize(found)
