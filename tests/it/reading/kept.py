# Values kept in containers and objects that other functions make, hand on, and read.

# --- figures in a named tuple, unpacked by the caller
def make_step():
    Step = namedtuple('Step', ['loss', 'figures', 'n'])

    def run(model, batch):
        loss, figures = model(batch)
        return Step(loss, {'ce': loss.item()}, 3)  #! item: logging; silent loss

    return run

def train(run, model, batches, board):
    for batch in batches:
        loss, figures, n = run(model, batch)  #< run
        if loss is None or n > 2:
            break
        for key, value in figures.items():
            board.add_scalar(key, value, n)

# --- the field that decides
def run(model, batch):
    return Step(model(batch), model.norm().item())  #! item: control-flow

def train(model, batches):
    for batch in batches:
        loss, norm = run(model, batch)  #< run
        if norm > 4:
            break

Step = namedtuple('Step', 'loss norm')

# --- a dict that another function made, which is shown
def train(model, batches, bar):
    for batch in batches:
        loss, shown = model(batch)
        shown.update({'loss': loss.item()})  #! item: logging
        bar.set_postfix(shown)

# --- a dict that another function made, and nothing shows
def train(model, batches):
    for batch in batches:
        loss, kept = model(batch)
        kept['loss'] = loss.item()  #! item: value-read

# --- arrays in what another function made
def train(model, batches, out):
    rows = model.rows()
    rows['boxes'] = model(out).cpu()  #! cpu: value-read
    return rows

# --- part of something that others hold
def train(self, name, loss):
    kept = self.table.get(name)
    kept['loss'] = loss.item()  #! item: value-read
    print(kept)

# --- something else is put under the key before it is read
def backward(info):
    info['losses'] = {'ce': info['losses']['ce'].item()}  #! item: logging
    return info

def forward(model, batch, info):
    info['losses'] = model(batch)
    return info

def train(model, batches):
    info = {}
    for batch in batches:
        info = forward(model, batch, info)
        model.update(info['losses']['ce'])
        info = backward(info)  #< backward
        print(info['losses'])

# --- nothing else is put there
def backward(info):
    info['losses'] = {'ce': info['losses']['ce'].item()}  #! item: control-flow
    return info

def train(model, batches):
    info = {}
    for batch in batches:
        if 'losses' in info and info['losses']['ce'] > 3:
            break
        info = backward(info)  #< backward

# --- what a loop goes over is asked for once
def show(table):
    for name, value in table.items():
        table[name] = value.item()  #! item: logging
    return table

def train(model, optimizer):
    table = show({'a': model.a()})  #< show
    print(table)

# --- what came along with the names, and nobody reads
def means(losses):
    found = {}
    for name, value in losses.items():
        figure = value.item()  #! item: logging
        found[name] = found.get(name, 0) + figure
    return found

def train(model, batches):
    found = means(model(batches))  #< means
    for name, value in found.items():
        found[name] = found[name] / 3
    print(found)

# --- the rest of what is unpacked
def losses(out):
    return out.loss, out.ce.item(), out.kl.item()  #! item: logging; x 2

def train(model, batches, names):
    for batch in batches:
        loss, *parts = losses(model(batch))  #< losses
        if loss is not None:
            loss.backward()
        for name, part in zip(names, parts):
            print(name, part)

# --- a method of an object whose class is in another file
from engine import Scheduler

class Engine:
    def __init__(self, config):
        self.scheduler = Scheduler(config)

    def step(self, seqs, logits):
        tokens = logits.argmax(-1).tolist()  #! tolist: control-flow; says engine.py
        self.scheduler.take(seqs, tokens)
# file: engine.py
class Scheduler:
    def __init__(self, config):
        self.eos = config.eos

    def take(self, seqs, tokens):
        for seq, token in zip(seqs, tokens):
            if token == self.eos:
                seq.finish()

# --- of one that is given in another way too
from engine import Scheduler

class Engine:
    def __init__(self, config, scheduler):
        self.scheduler = Scheduler(config)
        if scheduler:
            self.scheduler = scheduler

    def step(self, seqs, logits):
        token = logits.argmax().item()  #! item: value-read
        self.scheduler.take(seqs, token)
# file: engine.py
class Scheduler:
    def take(self, seqs, token):
        if token == self.eos:
            seqs.finish()

# --- an object holds what its constructor keeps
class Result:
    def __init__(self, tokens, score):
        self.tokens = tokens
        self.score = score

def search(model, batch):
    tokens, score = model(batch)
    return [Result(tokens.tolist(), score.item())]  #! item: logging | tolist: cpu-compute

def recognise(model, batches, tokenizer):
    for batch in batches:
        found = search(model, batch)  #< search
        print(tokenizer.detokenize(found[0].tokens))
        print(found[0].score)

# --- a container that is missing
def show(logs):
    logs = logs or {}
    for name, value in logs.items():
        print(name, value)

def train(loss):
    show({'loss': loss.item()})  #! item: logging

# --- how many figures there are tells nothing of them
def train(losses, shown):
    figures = {}
    figures['loss'] = losses.sum().item()  #! item: logging
    if figures.__len__() == 3:
        return None
    print(figures)

# --- a video and an image for those who watch
class Agent:
    def train(self, frames):
        self._logger.video('open_loop', frames.cpu().numpy())  #! cpu: logging
        self.visualizer.display_current_results(frames.cpu().numpy(), 3)  #! cpu: logging

# --- a figure for what saves the run, and for a logger that is not at hand
class Trainer:
    def finish(self, loss, model, score):
        self.engine.save_checkpoint(model, loss.item())  #! item: logging
        self.run_logger.on_train_end(loss.item())  #! item: logging
        self.engine.judge(score.item())  #! item: value-read

# --- a number that scales a tensor again
def backward(ctx, grad):
    logits, label = ctx.saved_tensors
    logits.div_(label.size(0))
    return logits * grad.item(), None  #! item: round-trip

# --- the object called, not what its arguments call
class Model:
    def train(self, loss):
        figures = self.opt(loss.mean(), self.parameters())  #< __call__
        print(figures)

class Optimizer:
    def __call__(self, loss, parameters):
        return loss.item()  #! item: logging

# --- the scale of a gradient scaler as part of its state
class Scaler:
    def state_dict(self):
        return self._scaler.state_dict()  #! read item 4 in /v/torch/amp/grad_scaler.py:state_dict: logging

# --- an image made on the CPU
def to_image(x):
    return TF.to_pil_image((x + 1) / 2)  #! copy _to_copy in /v/torchvision/transforms/functional.py:to_pil_image: cpu-compute

# --- the last hundred of them
class Runner:
    def step(self, reward):
        self.returns.append(reward.item())  #! item: logging
    def close(self):
        print(sum(self.returns) / len(self.returns))
        self.returns = self.returns[-100:]

# --- of episodes, handed out with what else is logged
class Collector:
    def collect(self, rewards):
        for i, done in enumerate(self.done):
            if done:
                self.log_return.append(self.episode_return[i].item())  #! item: logging
        logs = {"return": self.log_return[-8:], "frames": self.frames}
        self.log_return = self.log_return[-4:]
        return logs
