# --- history_on_self (hard)
class Stopper:
    def __init__(self):
        self.history = []

    def add(self, loss):
        self.history.append(loss.item())  #! item: true control-flow

    def diverging(self):
        if len(self.history) < 2:
            return False
        if self.history[-1] > 2 * self.history[-2]:
            self.abort()

# --- tuple_half_decides (hard)
def evaluate(model, batch):
    out = model(batch)
    return out.loss.item(), out.acc.item()  #! item: true control-flow


def fit(model, batches):
    for batch in batches:
        loss, acc = evaluate(model, batch)  #< evaluate
        print("loss", loss)
        if acc > 0.99:
            break

# --- metrics_items_branch (hard)
def better(out, best):
    metrics = {k: v.item() for k, v in out.items()}  #! item: true control-flow; x 2
    for name, value in metrics.items():
        if value > best[name]:
            best[name] = value
    return best

# --- values_any (hard)
def overflowed(grads):
    norms = {n: g.norm().item() for n, g in grads.items()}  #! item: true control-flow; x 2
    if any(v > 1e4 for v in norms.values()):
        return sorted(norms)
    return []

# --- max_is_printed (hard)
def worst(losses):
    values = [l.item() for l in losses]  #! item: false logging; x 3
    print("worst", max(values), "mean", sum(values) / len(values))

# --- argmin_selects (hard)
def select(models, x, y):
    errors = [F.mse_loss(m(x), y).item() for m in models]  #! item: true cpu-compute; x 3
    best = int(np.argmin(errors))
    return models[best]

# --- status_word (hard)
def verdict(err, tol):
    status = "ok" if err.item() < tol else "bad"  #! item: false logging
    print(f"check: {status}")

# --- status_decides (hard)
def verdict(err, tol):
    status = "ok" if err.item() < tol else "bad"  #! item: true control-flow
    print(status)
    if status == "bad":
        sys.exit(1)

# --- plateau_item
def epoch_end(scheduler, total, n):
    scheduler.step((total / n).item())  #! item: true cpu-compute

# --- range_int_max (hard)
def unroll(cell, h, lengths):
    for t in range(int(lengths.max())):  #! int: true control-flow
        h = cell(h, t)
    return h

# --- int_in_text (hard)
def count(mask):
    logger.info(f"{int(mask.sum())} tokens kept")  #! int: false logging

# --- min_then_compare (hard)
def track(loss, best):
    now = min(best, float(loss))  #! float: true control-flow
    if now < best:
        save_best()
    return None

# --- cpu_then_item (hard)
def show(loss, step):
    value = loss.detach().cpu().item()  #! cpu: false logging
    print(step, value)

# --- numpy_save
def keep(path, features):
    np.save(path, features.cpu().numpy())  #! cpu: true cpu-compute

# --- json_predictions (hard)
def dump(path, logits, ids):
    pred = logits.argmax(-1).tolist()  #! tolist: true cpu-compute
    with open(path, "w") as f:
        json.dump(dict(zip(ids, pred)), f)

# --- reduce_by_hand (hard)
def mean_over_ranks(loss, world):
    total = torch.tensor([loss.item()]).cuda()  #! item: false round-trip | cuda: false upload
    dist.all_reduce(total)
    return (total / world)

# --- warn_guard (hard)
def check(mask, step):
    if step % 100 == 0 and mask.any().item():  #! item1: false logging
        warnings.warn("mask is not empty")

# --- branch_around_log (hard)
def report(loss):
    if loss.item() > 10:  #! item: false logging
        logger.warning("large loss")

# --- context_manager_timer (hard)
@contextmanager
def timer(name):
    torch.cuda.synchronize()  #! sync: false timing
    start = time.perf_counter()
    yield
    torch.cuda.synchronize()  #! sync: false timing
    print(name, time.perf_counter() - start)

# --- event_elapsed_device_sync (hard)
def measure(fn, n):
    start.record()
    for _ in range(n):
        fn()
    end.record()
    torch.cuda.synchronize()  #! sync: false timing; nosrc: false timing
    return start.elapsed_time(end) / n

# --- nvtx_sync (hard)
def step(model, batch):
    torch.cuda.nvtx.range_push("forward")
    model(batch)
    torch.cuda.synchronize()  #! sync: false explicit
    torch.cuda.nvtx.range_pop()

# --- sync_far_from_clock (hard)
def epoch(model, loader):
    begin = time.time()
    for batch in loader:
        model(batch).backward()
        torch.cuda.synchronize()  #! sync: false explicit
        optimizer.step()
        optimizer.zero_grad()
    print("epoch took", time.time() - begin)

# --- kwargs_log (hard)
def log_all(run, step, loss):
    run.log(step=step, **{"train/loss": loss.item()})  #! item: false logging

# --- heap_of_scores (hard)
def push(heap, score, node):
    heapq.heappush(heap, (score.item(), node))  #! item: true control-flow

# --- weighted_choice (hard)
def pick(population, weights):
    return random.choices(population, weights=weights.tolist())[0]  #! tolist: true cpu-compute

# --- rebinding_itself (hard)
def step(model, batch, losses):
    loss = model(batch)
    loss.backward()
    loss = loss.item()  #! item: false logging
    losses.update(loss, 16)

# --- shadowed_by_loop (hard)
def run(model, batches):
    loss = 0.0
    for batch in batches:
        out = model(batch)
        loss = out.item()  #! item: false logging
    print("last", loss)

# --- read_then_overwritten_on_path (hard)
def step(model, batch, debug):
    v = model(batch).item()  #! item: true control-flow
    if debug:
        v = 0.0
    if v > 1:
        return None
    return batch

# --- unrelated_same_attribute (hard)
class A:
    def note(self, loss):
        self.value = loss.item()  #! item: false logging

    def show(self):
        print(self.value)


class B:
    def check(self):
        self.value = 3
        if self.value > 2:
            return None

# --- conditional_expression_value (hard)
def step(loss, verbose):
    shown = loss.item() if verbose else None  #! item: false logging
    if verbose:
        print(shown)

# --- none_check_only (hard)
def step(loss, verbose):
    shown = loss.item() if verbose else None  #! item: false logging
    if shown is not None:
        logger.info("loss %.3f", shown)

# --- decorated_no_grad (hard)
@torch.no_grad()
def reset(codebook, usage, x):
    dead = (usage < 1).sum().item()  #! item8: true dynamic-shape
    codebook[usage < 1] = x[:dead]  #! set-mask: true dynamic-shape; nosrc: true dynamic-shape

# --- string_building (hard)
def line(parts):
    text = ""
    for name, t in parts.items():
        text += f" {name}={t.item():.3f}"  #! item: false logging; x 2
    print(text)

# --- join_log (hard)
def line(parts):
    logger.info(", ".join("%s: %.3f" % (k, v.item()) for k, v in parts.items()))  #! item: false logging; in <genexpr>; x 2

# --- exception_text (hard)
def guard(x, limit):
    top = x.max().item()  #! item: true control-flow
    if top > limit:
        raise ValueError(f"{top} is too large")
    return x

# --- gpu_cpu_embedding (hard)
def lookup(table, ids):
    rows = ids.cpu()  #! cpu: true cpu-compute
    return table[rows].pin_memory()
