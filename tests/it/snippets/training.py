# --- plain_logging
import logging
import torch

logger = logging.getLogger(__name__)


def step(model, batch, optimizer, it):
    loss = model(batch).mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    logger.info("iter %d loss %.4f", it, loss.item())  #! item: false logging; nosrc: unknown value-read

# --- batch_upload
def train_epoch(model, loader, optimizer, device):
    for images, labels in loader:
        images = images.to(device)  #! to: false upload; nosrc: false upload
        labels = labels.cuda()  #! cuda: false upload; nosrc: false upload
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()

# --- running_average
def train_epoch(model, loader, optimizer, writer, epoch):
    running = 0.0
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item()  #! item: false logging
        if i % 100 == 99:
            writer.add_scalar("train/loss", running / 100, epoch * len(loader) + i)
            running = 0.0

# --- nan_guard
import math


def train_step(model, batch):
    loss = model(batch)
    value = loss.item()  #! item: true control-flow
    if not math.isfinite(value):
        print(f"Loss is {value}, stopping training")
        sys.exit(1)
    loss.backward()

# --- tensor_nan_guard
def train_step(model, batch, optimizer):
    loss = model(batch)
    if torch.isnan(loss).any():  #! truth: true control-flow; nosrc: unknown value-read
        optimizer.zero_grad()
        return None
    loss.backward()
    return loss

# --- grad_scaler
scaler = torch.amp.GradScaler()


def train_step(model, batch, optimizer):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(batch)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)  #! clip-check: true control-flow
    scaler.step(optimizer)  #! scaler-step: true control-flow; nosrc: true control-flow
    scaler.update()

# --- scale_watch (hard)
def train_step(model, batch, optimizer, scaler, scheduler):
    scaler.scale(model(batch)).backward()
    before = scaler.get_scale()  #! get-scale: true control-flow
    scaler.step(optimizer)
    scaler.update()
    if before <= scaler.get_scale():  #! get-scale: true control-flow
        scheduler.step()

# --- plateau
def fit(model, loader, optimizer, scheduler, epochs):
    for epoch in range(epochs):
        loss = run_epoch(model, loader, optimizer)
        scheduler.step(loss)  #! plateau: true cpu-compute

# --- best_checkpoint
def fit(model, train, valid, epochs):
    best = float("inf")
    for epoch in range(epochs):
        train_epoch(model, train)
        val_loss = validate(model, valid).item()  #! item: true control-flow
        logger.info("epoch %d: %.4f", epoch, val_loss)
        if val_loss < best:
            best = val_loss
            torch.save(model.state_dict(), "best.pt")  #! save: true cpu-compute

# --- learning_rate_from_norm
def adapt(optimizer, params, base):
    norm = torch.linalg.vector_norm(torch.stack([p.grad.norm() for p in params]))
    scale = 1.0 / max(1.0, norm.item())  #! item: true cpu-compute
    for group in optimizer.param_groups:
        group["lr"] = base * scale

# --- conjugate_gradient
def solve(A, b, x, tol):
    r = b - A @ x
    p = r
    while r.norm().item() > tol:  #! item: true control-flow
        Ap = A @ p
        alpha = (r @ r) / (p @ Ap)
        x = x + alpha * p
        r = r - alpha * Ap
        p = r + (r @ r) * p
    return x

# --- wandb_dict
def log(step, loss, grad_norm, lr):
    if step % 10 == 0:
        wandb.log({"loss": loss.item(), "grad_norm": grad_norm.item(), "lr": lr}, step=step)  #! item: false logging; x 2

# --- logger_percent (hard)
def clip_and_report(model, step):
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    logger.info("step %d grad norm %.3f", step, norm)  #! log-float: false logging

# --- progress_bar (hard)
def train_epoch(model, loader, optimizer):
    bar = tqdm(loader)
    for batch in bar:
        loss = train_step(model, batch, optimizer)
        bar.set_postfix(loss=loss)  #! tqdm-format: false logging

# --- early_stopping (hard)
def fit(model, loader, patience):
    best, bad = None, 0
    for epoch in range(1000):
        score = evaluate(model, loader)  #< evaluate
        if best is None or score > best + 1e-4:
            best, bad = score, 0
        else:
            bad += 1
        if bad > patience:
            break


def evaluate(model, loader):
    hits = torch.zeros((), device="cuda")
    for x, y in loader:
        hits += (model(x).argmax(1) == y).sum()
    return hits.item() / len(loader.dataset)  #! item: true control-flow

# --- gradient_accumulation (hard)
def train(model, batches, optimizer, accumulate=4):
    total_loss = 0
    for i, batch in enumerate(batches):
        loss = model(batch) / accumulate
        loss.backward()
        total_loss += loss.detach().item()  #! item: false logging
        if (i + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
            print(f"{i}: {total_loss:.4f}")
            total_loss = 0

# --- zero_loss_skip
def step(model, batch, optimizer):
    loss = model(batch)
    if loss.item() == 0:  #! item: true control-flow
        return
    loss.backward()
    optimizer.step()

# --- throughput (hard)
def train_epoch(model, loader):
    tokens = 0
    start = time.perf_counter()
    for batch in loader:
        model(batch).mean().backward()
        tokens += (batch != PAD).sum().item()  #! item8: false logging
    elapsed = time.perf_counter() - start
    print(f"{tokens / elapsed:.0f} tokens/s")

# --- loss_spike (hard)
class Spikes:
    def __init__(self):
        self.ema = None

    def skip(self, loss):
        value = loss.detach().float().item()  #! item: true control-flow
        if self.ema is not None and value > 3 * self.ema:
            return True
        self.ema = value if self.ema is None else 0.99 * self.ema + 0.01 * value
        return False


def train_step(model, batch, spikes):
    loss = model(batch)
    if spikes.skip(loss):  #< skip
        return
    loss.backward()

# --- ema_display (hard)
class Meter:
    def __init__(self):
        self.ema_loss = 0.0

    def update(self, loss):
        self.ema_loss = 0.98 * self.ema_loss + 0.02 * loss.item()  #! item: false logging

    def __str__(self):
        return f"loss {self.ema_loss:.4f}"

    def show(self):
        print(f"smoothed {self.ema_loss:.4f}")

# --- adaptive_weight (hard)
def losses(rec, adv, last_layer):
    g_rec = torch.autograd.grad(rec, last_layer, retain_graph=True)[0]
    g_adv = torch.autograd.grad(adv, last_layer, retain_graph=True)[0]
    weight = (g_rec.norm() / (g_adv.norm() + 1e-4)).item()  #! item: false round-trip
    return rec + weight * adv.mean()

# --- running_sum_in_a_loaded_dict
def main(model, loader, optimizer, path, every):
    state = {"step": 0, "running_loss": 0}
    if path.exists():
        with open(path) as fp:
            state = json.load(fp)
    for batch in loader:
        loss = model(batch)
        loss.backward()
        optimizer.step()
        state["step"] += 1
        state["running_loss"] += loss.item()  #! item: false logging
        if state["step"] % every == 0:
            wandb.log({"loss": state["running_loss"] / every}, step=state["step"])
            state["running_loss"] = 0

# --- kept_for_a_checkpoint
class TrainState:
    current_loss: float = -1

    def state_dict(self):
        return {"current_loss": torch.tensor(self.current_loss)}


def train(model, batches):
    train_state = TrainState()
    for batch in batches:
        loss = model(batch)
        loss.backward()
        train_state.current_loss = loss.item()  #! item: false logging
        logger.info(f"loss {train_state.current_loss}")

# --- told_to_a_store_of_figures
def write_metrics(storage, monitor, loss, step):
    storage.put_scalar("loss", loss.item())  #! item: false logging
    monitor.write_events([("loss", loss.mean().item(), step)])  #! item: false logging

# --- rows_of_a_table
def show(parts):
    rows = AsciiTable([["Type", "Value"], ["IoU", float(parts[0])]])  #! float: false logging
    print(rows.table)
