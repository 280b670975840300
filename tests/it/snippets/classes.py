# --- stored_then_branched (hard)
class Trainer:
    def train_step(self, batch):
        loss = self.model(batch)
        self.last_loss = loss.item()  #! item: true control-flow
        return loss

    def should_stop(self):
        return self.last_loss < self.target

    def fit(self, loader):
        for batch in loader:
            self.train_step(batch).backward()  #< train_step
            if self.last_loss > 1e4:
                break

# --- stored_then_logged (hard)
class Trainer:
    def train_step(self, batch):
        loss = self.model(batch)
        self.shown_loss = loss.item()  #! item: false logging
        return loss

    def log(self, step):
        self.logger.info("%d %.3f", step, self.shown_loss)

# --- best_metric (hard)
class Checkpointer:
    best = float("inf")

    def maybe_save(self, loss):
        if loss.item() < self.best:  #! item: true control-flow
            self.best = loss.item()  #! item: true control-flow; nosrc: unknown value-read
            torch.save(self.model.state_dict(), self.path)  #! save: true cpu-compute

# --- early_stopper_call (hard)
class EarlyStopping:
    def __call__(self, loss):
        if self.best is None or loss < self.best - self.delta:  #! truth: true control-flow
            self.best, self.count = loss, 0
        else:
            self.count += 1
        return self.count >= self.patience

# --- average_meter (hard)
class AverageMeter:
    def __init__(self):
        self.sum = self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def avg(self):
        return self.sum / self.count


def train_epoch(model, loader):
    meter = AverageMeter()
    for batch in loader:
        loss = model(batch)
        meter.update(loss.item(), len(batch))  #! item: false logging
    print(f"loss {meter.avg:.4f}")

# --- lightning_step
class Module(pl.LightningModule):
    def training_step(self, batch, batch_idx):
        loss = self.model(batch)
        self.log("train/loss", loss.item(), prog_bar=True)  #! item: false logging
        return loss

# --- base_class_hook (hard)
class Base:
    def on_loss(self, value):
        raise NotImplementedError

    def step(self, batch):
        self.on_loss(self.model(batch).item())  #! item: unknown value-read


class Printing(Base):
    def on_loss(self, value):
        print(value)


class Stopping(Base):
    def on_loss(self, value):
        if value > 10:
            self.stop = True

# --- forward_guard (hard)
class Router(nn.Module):
    def forward(self, x):
        load = self.gate(x).softmax(-1).amax()
        if load.item() > self.capacity:  #! item: true control-flow
            return self.fallback(x)
        return self.experts(x)

# --- forward_returns_item (hard)
class Loss(nn.Module):
    def forward(self, x, y):
        ce = F.cross_entropy(x, y)
        return ce, {"ce": ce.item()}  #! item: false logging


def train_step(criterion, model, x, y, optimizer):
    loss, parts = criterion(model(x), y)  #< forward
    loss.backward()
    optimizer.step()
    logger.info("ce %.3f", parts["ce"])

# --- decorated_step (hard)
def logged(fn):
    def wrapper(*args):
        value = fn(*args)  #< step
        logger.info("%s -> %.3f", fn.__name__, value)
        return None
    return wrapper


@logged
def step(model, batch):
    loss = model(batch)
    loss.backward()
    return loss.item()  #! item: false logging

# --- property_value (hard)
class Stats:
    @property
    def mean(self):
        return self.total.item() / self.n  #! item: true control-flow


def prune(stats, model):
    if stats.mean < 0.01:  #< mean
        model.drop()

# --- dataclass_result (hard)
@dataclass
class Result:
    loss: float
    n: int


def evaluate(model, batch):
    return Result(loss=model(batch).item(), n=len(batch))  #! item: false logging


def main_eval(model, batch):
    result = evaluate(model, batch)  #< evaluate
    print(result.loss)

# --- running_stats_mixin (hard)
class Tracked:
    def track(self, name, value):
        self.metrics[name].append(value.detach().item())  #! item: false logging

    def flush(self):
        for name, values in self.metrics.items():
            self.writer.add_scalar(name, sum(values) / len(values), self.step)
        self.metrics.clear()

# --- scheduler_kl (hard)
class PPO:
    def update(self, batch):
        kl = self.policy_kl(batch).item()  #! item: true control-flow
        if self.adaptive:
            self.lr = self.lr / 1.5 if kl > 2 * self.target else self.lr * 1.5
            for group in self.optimizer.param_groups:
                group["lr"] = self.lr

# --- super_call (hard)
class Sub(Base):
    def step(self, batch):
        loss = super().step(batch)
        if self.global_step % self.every == 0:
            self.print(f"{self.global_step}: {loss.item():.3f}")  #! item: false logging
        return loss

# --- class_counter (hard)
class Sampler:
    def next(self, logits):
        token = torch.multinomial(logits.softmax(-1), 1)
        self.generated.append(token.item())  #! item8: true control-flow
        return token

    def done(self):
        return self.generated[-1] == self.eos

    def run(self, model, x):
        while True:
            x = self.next(model(x))  #< next
            if self.generated[-1] == self.eos:
                return self.generated

# --- meter_decides_later (hard)
def train_epoch(model, loader):
    meter = AverageMeter()
    for batch in loader:
        loss = model(batch)
        loss.backward()
        meter.update(loss.item(), len(batch))  #! item: false logging
    if meter.avg > 3:
        raise RuntimeError("diverged")

# --- other_meter_decides (hard)
def train_epoch(model, loader, target):
    losses, accs = AverageMeter(), AverageMeter()
    for batch in loader:
        loss, acc = model(batch)
        losses.update(loss.item(), len(batch))  #! item: false logging
        accs.update(acc.item(), len(batch))  #! item: false logging
    print(losses.avg)
    return accs.avg > target


def fit(model, loader, target):
    while True:
        if train_epoch(model, loader, target):  #< train_epoch
            break
