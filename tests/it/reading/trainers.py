# Shapes met in real trainers.

# --- metrics of an object
class T:
    def step(self, mode, x):
        self._metrics[mode]['kl'].append(x.mean().item())  #! item: logging
    def log(self, mode):
        metrics = {key: sum(val) / len(val) for key, val in self._metrics[mode].items()}
        for key in metrics:
            table[key] = 1

# --- keys are not the value
def f(x):
    out = {}
    out['a'] = x.item()  #! item: logging
    for k, v in out.items():
        if k == 'a':
            print(v)

# --- enumerate pairs it with a number
def f(x):
    for i, v in enumerate(x.tolist()):  #! tolist: logging
        if i > 3:
            break
        print(v)

# --- zip keeps places
def f(x, ys):
    for y, v in zip(ys, x.tolist()):  #! tolist: logging
        if y > 3:
            print(v)

# --- zip keeps places, the other one
def f(x, ys):
    for y, v in zip(ys, x.tolist()):  #! tolist: logging
        if v > 3:
            print(y)

# --- log_probs is no log
def f(model, xs):
    log_probs = []
    for x in xs:
        log_probs.append(model(x).item())  #! item: value-read
    return decide(log_probs)

# --- results are no figures
def f(boxes):
    results = []
    for box in boxes:
        results.append({'x': box.item()})  #! item: value-read
    return results

# --- kept in the caller's dict
def f(batch, out):
    out['boxes'] = batch.cpu()  #! cpu: value-read

# --- kept in an element of the caller's list
def f(preds):
    for p in preds:
        p['masks'] = g(p).cpu()  #! cpu: value-read

# --- filled logs of the caller
def f(loss, logs):
    logs['loss'] = loss.item()  #! item: logging

# --- both arms rebind, the first before the read
def f(x, fast):
    if fast:
        ids = g(x)
        ids = ids.tolist()  #! tolist: value-read
    else:
        ids = [1]
    return ids

# --- mean without NaN
def f(xs):
    vals = [x.item() for x in xs]  #! item: logging
    vals = [v for v in vals if not math.isnan(v)]
    print(sum(vals) / len(vals) if vals else None)

# --- length and type do not look
def f(x):
    ids = x.tolist()  #! tolist: logging
    if len(ids) > 3 and isinstance(ids, list):
        print(ids)

# --- assignment to a linear sum
def f(cost):
    i, j = linear_sum_assignment(cost.cpu())  #! cpu: cpu-compute
    return i, j

# --- text decides about text
def f(loss):
    msg = f'{loss.item():.3f}'  #! item: logging
    if len(msg) > 8 or msg.startswith('n'):
        msg = msg[:8]
    print(msg)

# --- overwritten before it is read
def f(a, b):
    v = a.item() / 3  #! item: explicit
    step()
    v = b.item()
    print(v)

# --- sizes added up and tested outside
def f(rows, grid):
    for row in rows:
        features = 0
        for g in row:
            features += grid[g].prod().item()  #! item: logging; rule S05
        if features != 3:
            fix(row)

# --- visited in an outer loop
def f(tensors):
    visited = set()
    while tensors:
        key = tuple(tensors.pop().tolist())  #! tolist: control-flow
        if key in visited:
            continue
        visited.add(key)

# --- a loop that does not read
def f(x):
    out = []
    for v in x.tolist():  #! tolist: value-read
        out.append(v)
    return out

# --- helper called inside the loop
def check(total):
    if total > 3:
        raise_alarm()
        stop()
def f(xs):
    total = 0
    for x in xs:
        total += x.item()  #! item: control-flow
        check(total)

# --- the trace wins over a guess
def f(xs):
    ids = np.asarray(xs)
    print(ids.item())  #! item: logging

# --- count kept and tested
class Sampler:
    def refill(self, taken):
        n = int(taken.sum())  #! int: control-flow
        self.refills += n
        if n == 0:
            return
        self.pool.draw(n)

# --- count kept and a size
class Packer:
    def pack(self, keep):
        total = int(keep.sum())  #! int: dynamic-shape
        self.last = total
        return torch.empty(total, 4, device=keep.device)

# --- rows shown
def show(rows):
    for row in rows.tolist():  #! tolist: logging
        print(*row, sep='\t')

# --- rows joined into words
def words(ids, vocab):
    out = []
    for row in ids.tolist():  #! tolist: cpu-compute
        out.append(' '.join(vocab[i] for i in row))
    return out

# --- lengths counted on the device
def encode(rnn, emb, mask):
    lens = mask.sum(1)
    packed = pack_padded_sequence(emb, lens.cpu(), batch_first=True)  #! cpu: cpu-compute
    return rnn(packed)

# --- lengths that came from the host
def encode(rnn, emb, batch):
    lens = torch.tensor(batch.lens).cuda(non_blocking=True)
    packed = nn.utils.rnn.pack_padded_sequence(emb, lens.cpu(), enforce_sorted=False)  #! cpu: host-known; rule S20; pattern D10
    return rnn(packed)

# --- not the lengths
def f(x, lens):
    return pack_padded_sequence(x.cpu(), lens)  #! cpu: value-read

# --- uploaded, then changed
def f(x, batch):
    lens = torch.tensor(batch.lens).cuda()
    lens.clamp_(max=9)
    return pack_padded_sequence(x, lens.cpu())  #! cpu: cpu-compute

# --- computed from an upload
def f(x, batch):
    lens = torch.tensor(batch.lens).cuda()
    return pack_padded_sequence(x, (lens + 1).cpu())  #! cpu: host-known

# --- a key that is not only uploaded
def load(batch):
    return {'len': batch.lens.cuda()}

def crop(out, mask):
    out['len'] = mask.sum(1)

def f(x, b):
    return pack_padded_sequence(x, b['len'].cpu())  #! cpu: cpu-compute

# --- a list, no set
def f(rows):
    found = []
    for row in rows.tolist():  #! tolist: value-read
        found.extend(row)
    return found

# --- a set of single values
def f(xs):
    found = set()
    for x in xs:
        found.add(x.item())  #! item: value-read
    return found

# --- how many to draw
def f(weights, clash):
    n = int(clash.sum())  #! int: dynamic-shape
    return torch.multinomial(weights, n)

# --- how to draw
def f(memory, heat):
    t = heat.item()  #! item: value-read
    return memory.sample(32, temperature=t)

# --- a setting of no simulator
class A:
    def f(self, x):
        self.cfg.set_level(x.item())  #! item: value-read

# --- a setting of a simulator
class A:
    def f(self, x):
        self.eval_env.set_level(x.item())  #! item: cpu-compute

# --- words to stop at
class A:
    def f(self, x):
        self.stop_words.update(x.tolist())  #! tolist: value-read
