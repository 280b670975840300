# Values gathered batch by batch, and put into what the caller gave.

# --- arrays gathered, and joined under the same name
def main(model, loader, io):
    pred, true = [], []
    for x, y in loader:
        pred.append(model(x).argmax(1).cpu().numpy())  #! cpu: logging; rule S05
        true.append(y.cpu().numpy())  #! cpu: logging; rule S05
    pred = np.concatenate(pred)
    true = np.concatenate(true)
    print('acc: %.4f' % metrics.accuracy_score(true, pred))

# --- an array that NumPy makes longer
def evaluate(model, loader):
    preds = None
    for batch in loader:
        logits = model(batch)
        if preds is None:
            preds = logits.detach().cpu().numpy()
        else:
            preds = np.append(preds, logits.detach().cpu().numpy(), axis=0)  #! cpu: logging; rule S05
    print(compute_metrics('mrpc', np.argmax(preds, axis=1)))

# --- put into the caller's dict, which shows it
def learn(model, batch, filled):
    filled['loss'] = model(batch).item()  #! item: logging
def main(model, loader):
    filled = {}
    for b in loader:
        learn(model, b, filled)  #< learn
        print(filled)

# --- put into the caller's dict, which decides by it
class T:
    def fill(self, losses, out):
        out['total'] = losses.sum().item()  #! item: control-flow
    def main(self, loader):
        out = {}
        for x in loader:
            self.fill(x, out=out)  #< fill
            if out['total'] > 3:
                break

# --- put into the caller's dict, which goes back in
def fill(x, out):
    if out.get('last', 0) > 3:
        stop()
    out['last'] = x.sum().item()  #! item: value-read
def main(loader):
    out = {}
    for x in loader:
        fill(x, out)  #< fill

# --- a helper that fills what it is given
def told(losses, out):
    for k, v in losses.items():
        out[k] = v.item()  #! item: logging
def main(model, loader):
    for x in loader:
        out = {}
        told(model(x), out)
        print(out)

# --- results of the caller, written as a file
def collect(pred, results, ids):
    for i, b in zip(ids, pred.tolist()):  #! tolist: cpu-compute
        results.append({'id': i, 'box': b})
def main(model, loader, path):
    results = []
    for x, ids in loader:
        collect(model(x), results, ids)  #< collect
    with open(path, 'w') as f:
        json.dump(results, f)

# --- a count to which tensors are added
def train(model, loader, best):
    right = 0
    for x, y in loader:
        right += torch.sum(model(x).argmax(1) == y)
    rate = right.double() / 8
    if best is None or rate > best:  #! truth: control-flow
        save(model)

# --- a mean of a loop, kept as the best
class Trainer:
    def fit(self):
        for e in range(10):
            loss = self.run_epoch()  #< run_epoch
            if loss < self.best:
                self.best = loss
                self.save()
    def run_epoch(self):
        total = 0.0
        for b in self.loader:
            total += self.model(b).item()  #! item: logging; rule S05
        return total / len(self.loader)

# --- two reads of a line, one of which decides
def draw(d, boxes, scores, limit):
    for box, score in zip(boxes.tolist(), scores.tolist()):  #! tolist: control-flow
        if score > limit:
            d.rectangle(box)

# --- a table of figures
def main(model, loader):
    rows = []
    for epoch in range(3):
        rows.append({'epoch': epoch, 'loss': model(loader).item()})  #! item: logging
    frame = pd.DataFrame(rows)
    frame.to_csv('log.csv', index=False)

# --- a table of results
def main(model, loader, ids):
    preds = []
    for x in loader:
        preds.append(model(x).sigmoid().cpu().numpy())  #! cpu: cpu-compute
    frame = pd.DataFrame({'id': ids, 'target': np.concatenate(preds)})
    frame.to_csv('submission.csv', index=False)

# --- written by another thread
def save(pool, model, path):
    state = {k: v.detach().cpu() for k, v in model.state_dict().items()}  #! cpu: cpu-compute
    pool.submit(torch.save, state, path)

# --- arrays in an index, which is no set
def index(model, loader):
    found = faiss.IndexFlatL2(512)
    for x in loader:
        found.add(model(x).cpu().numpy())  #! cpu: cpu-compute

# --- written by a library
def synthesise(model, x, path):
    wave = model(x)
    torchaudio.save(path, wave.cpu(), 22050)  #! cpu: cpu-compute

# --- a scheduler of noise sets no learning rate
def sample(model, scheduler, x):
    for t in scheduler.timesteps:
        x = scheduler.step(model(x, t), int(t), x)  #! int: value-read

# --- pictures for those who watch
def watch(writer, x, step):
    wandb.log({'x': wandb.Image(x.cpu().numpy())})  #! cpu: logging
    grid = make_grid(x).cpu().numpy()  #! cpu: logging
    writer.add_image('x', grid, step)

# --- figures under a name that tells of a log
class Head:
    def forward(self, x):
        log_dict = {}
        log_dict['x'] = x.mean().item()  #! item: logging
        self.log_vars = log_dict
        return x

# --- lists put one behind the other are no sum, and a file is made of them
def predict(model, loader, path):
    out = []
    for x in loader:
        out += model(x).argmax(1).tolist()  #! tolist: cpu-compute
    np.savetxt(path, out)

# --- arrays gathered for the text that the program makes
def transcribe(model, chunks, decoder):
    outs = []
    for x in chunks:
        outs.append(model(x).cpu())  #! cpu: cpu-compute
    outs = torch.cat(outs, axis=1)
    return decoder.decode(outs)

# --- what is added to a tensor leaves it one
def train(model, x, terms):
    loss = torch.nn.functional.mse_loss(model(x), x)
    for term in terms:
        loss += term(x)
    if loss > 3:  #! truth: control-flow
        stop()

# --- text into a file that `with` opens anew
def predict(model, loader, path):
    with open(path, 'w') as f:
        for x in loader:
            f.write(str(model(x).argmax().item()))  #! item: cpu-compute

# --- text at the end of a file
def train(model, loader, path):
    for x in loader:
        with open(path, 'a') as f:
            f.write(str(model(x).mean().item()))  #! item: logging

# --- told with its weight to a class of the file that keeps no mean
class Controller:
    def __init__(self, target):
        self.target, self.coef = target, 0.1
    def update(self, current, n):
        if current > self.target:
            self.coef *= 1.1
def train(model, loader, n):
    ctl = Controller(6)
    for x in loader:
        ctl.update(model(x).mean().item(), n)  #! item: control-flow

# --- told with its weight to one that does
class Average:
    def __init__(self):
        self.sum, self.count = 0, 0
    def update(self, value, n):
        self.sum += value * n
        self.count += n
def train(model, loader, n):
    top1 = Average()
    for x in loader:
        top1.update(model(x).mean().item(), n)  #! item: logging
    print(top1.sum / top1.count)

# --- a list of what was a tensor
def voices(model, mels, lengths, peak):
    wavs = model(mels).squeeze(1)
    wavs = (wavs.cpu().numpy() * peak).astype('int16')  #! cpu: value-read
    wavs = [wav for wav in wavs]
    for i in range(len(mels)):
        wavs[i] = wavs[i][:lengths[i]]
    return wavs

# --- a history of one's own
def fit(self, loader):
    for x in loader:
        self.history.record_batch('loss', self.step(x).item())  #! item: logging

# --- series of a run
def main(run, model, loader):
    for x in loader:
        run['train/loss'].append(model(x).item())  #! item: logging

# --- boxes for COCO
def evaluate(model, loader, coco_evaluator):
    for x, ids in loader:
        outputs = [{k: v.cpu() for k, v in t.items()} for t in model(x)]  #! cpu: cpu-compute
        coco_evaluator.update({i: o for i, o in zip(ids, outputs)})

# --- a warning with the line of the caller
def warn_if_nan(value):
    if torch.isnan(value):  #! truth: logging; pattern A35
        warnings.warn_explicit('NaN', UserWarning, filename, lineno)

# --- filled part by part, and sent back
def embed(model, x, n):
    device = x.device
    if model.numbers:
        out = torch.empty(n, 9)
        for i in range(n):
            out[i, :] = model(x[i])  #! copy setitem: round-trip
    else:
        raise ValueError
    out = out.to(device)
    return norm(out)
