# --- detr_engine (hard)
import utils


def train_one_epoch(model, criterion, loader, optimizer, metric_logger):
    for samples, targets in loader:
        samples = samples.to("cuda")  #! to: false upload; nosrc: false upload
        targets = [{k: v.to("cuda") for k, v in t.items()} for t in targets]  #! to: false upload; in <dictcomp>; x 3; nosrc: false upload
        loss_dict = criterion(model(samples), targets)
        losses = sum(loss_dict.values())
        loss_value = losses.detach().item()  #! item: true control-flow
        if not math.isfinite(loss_value):
            print("Loss is {}, stopping training".format(loss_value))
            print(loss_dict)
            sys.exit(1)
        losses.backward()
        metric_logger.update(loss=loss_value)

# --- nanogpt_estimate (hard)
@torch.no_grad()
def estimate_loss(model, eval_iters):
    out = {}
    for split in ["train", "val"]:
        losses = torch.zeros(eval_iters)
        for k in range(eval_iters):
            logits, loss = model(*get_batch(split))
            losses[k] = loss.item()  #! item: false logging
        out[split] = losses.mean()
    return out


def loop(model, iters):
    for it in range(iters):
        losses = estimate_loss(model, 20)  #< estimate_loss
        print(f"step {it}: train {losses['train']:.4f} val {losses['val']:.4f}")

# --- dcgan_print (hard)
def report(epoch, i, errD, errG, D_x, D_G_z1):
    if i % 50 == 0:
        print('[%d][%d]\tLoss_D: %.4f\tLoss_G: %.4f\tD(x): %.4f / %.4f'
              % (epoch, i,
                 errD.item(), errG.item(), D_x, D_G_z1))  #! item: false logging; x 2

# --- ppo_clipfracs (hard)
def update(agent, batches, args):
    clipfracs = []
    for mb in batches:
        ratio = agent.ratio(mb)
        approx_kl = (ratio - 1 - ratio.log()).mean()
        clipfracs += [((ratio - 1.0).abs() > args.clip).float().mean().item()]  #! item: false logging
        agent.loss(mb).backward()
        if args.target_kl is not None and approx_kl > args.target_kl:  #! truth: true control-flow
            break
    writer.add_scalar("losses/clipfrac", np.mean(clipfracs), agent.steps)
    writer.add_scalar("losses/approx_kl", approx_kl.item(), agent.steps)  #! item: false logging

# --- dqn_action (hard)
class Agent:
    def act(self, state, eps):
        if random.random() < eps:
            return random.randrange(self.n)
        with torch.no_grad():
            return self.net(state).argmax(1).item()  #! item8: true cpu-compute

    def play(self, env, state):
        while True:
            action = self.act(state, 0.1)  #< act
            state, reward, done, info = env.step(action)
            if done:
                return reward

# --- kmeans (hard)
def kmeans(x, centers, iters, tol):
    for i in range(iters):
        labels = torch.cdist(x, centers).argmin(1)
        new = torch.stack([x[labels == k].mean(0) for k in range(len(centers))])  #! get-mask: true dynamic-shape; in <listcomp>; x 4; nosrc: true dynamic-shape
        shift = (new - centers).norm()
        centers = new
        if shift < tol:  #! truth: true control-flow
            break
    return centers

# --- greedy_decode (hard)
@torch.inference_mode()
def generate(model, ids, max_new, eos_id):
    for _ in range(max_new):
        logits = model(ids)[:, -1]
        next_id = logits.argmax(-1, keepdim=True)
        ids = torch.cat((ids, next_id), dim=1)
        if (next_id == eos_id).all():  #! truth: true control-flow
            break
    return ids

# --- unfinished_sequences (hard)
def sample(model, ids, eos):
    unfinished = ids.new_ones(ids.size(0))
    while True:
        token = model(ids)[:, -1].argmax(-1)
        unfinished = unfinished.mul((token != eos).long())
        ids = torch.cat([ids, token[:, None]], 1)
        if unfinished.max() == 0 or ids.size(1) > 512:  #! truth: true control-flow; nosrc: unknown value-read
            return ids

# --- optuna_trial (hard)
def objective(trial, model, loader):
    for epoch in range(10):
        loss = train_epoch(model, loader)
        trial.report(loss.item(), epoch)  #! item: true control-flow; src: unknown value-read
        if trial.should_prune():
            raise optuna.TrialPruned()

# --- curriculum (hard)
class Curriculum:
    level = 0

    def task(self):
        return self.tasks[self.level]

    def update(self, success):
        rate = success.float().mean().item()  #! item: true cpu-compute
        self.logger.info("success %.2f at level %d", rate, self.level)
        self.level += rate > 0.8

# --- curriculum_branch (hard)
def advance(success, level, threshold=0.8):
    rate = success.float().mean().item()  #! item: true control-flow
    if rate > threshold:
        level += 1
    return level

# --- accelerate_gather (hard)
def evaluate(accelerator, model, loader):
    losses = []
    for batch in loader:
        losses.append(accelerator.gather(model(batch).loss.repeat(8)))
    loss = torch.cat(losses).mean().item()  #! item: false logging
    accelerator.print(f"eval loss {loss:.3f}")
    accelerator.log({"eval_loss": loss})

# --- hf_compute_metrics (hard)
def compute(preds, labels):
    hits = (preds == labels).sum().item()  #! item8: false logging
    metrics = {"accuracy": hits / len(labels), "n": len(labels)}
    logger.info("eval %s", metrics)

# --- timm_meter (hard)
def validate(model, loader, losses_m, top1_m):
    for x, target in loader:
        output = model(x)
        loss = loss_fn(output, target)
        acc1, acc5 = accuracy(output, target, topk=(1, 5))
        torch.cuda.synchronize()  #! sync: false explicit
        losses_m.update(loss.item(), x.size(0))  #! item: false logging
        top1_m.update(acc1.item(), output.size(0))  #! item: false logging

# --- async_readback_class (hard)
class Readback:
    def start(self, x):
        self.host_buf.copy_(x, non_blocking=True)  #! async-cpu
        self.event.record()

    def result(self):
        self.event.synchronize()  #! event-sync: true barrier
        return self.host_buf.clone()

# --- readback_elsewhere (hard)
def wait_all(events):
    for event in events:
        event.synchronize()  #! event-sync: true barrier; src: unknown value-read


def run(model, batches, slots, events):
    for slot, event, batch in zip(slots, events, batches):
        slot.copy_(model(batch), non_blocking=True)  #! async-cpu
        event.record()
    wait_all(events)  #< wait_all
    return torch.stack(slots)

# --- prefetch_same_function (hard)
def evaluate(model, batches):
    out_cpu = torch.empty(1024, pin_memory=True)
    for batch in batches:
        y = model(batch)
        out_cpu.copy_(y, non_blocking=True)  #! async-cpu
        torch.cuda.current_stream().synchronize()  #! stream-sync: true barrier
        write(out_cpu.numpy())

# --- mask_rcnn_loop (hard)
def postprocess(masks, boxes, image):
    for mask, box in zip(masks, boxes):
        x0, y0, x1, y1 = box.int().tolist()  #! tolist: true cpu-compute
        cv2.rectangle(image, (x0, y0), (x1, y1), (0, 255, 0))
    return image

# --- crop_box (hard)
def crop(image, box):
    x0, y0, x1, y1 = box.int().tolist()  #! tolist: true dynamic-shape
    return image[:, y0:y1, x0:x1]

# --- grad_norm_list (hard)
def grad_norms(model):
    norms = {}
    for name, p in model.named_parameters():
        if p.grad is not None:
            norms[name] = p.grad.norm().item()  #! item: false logging
    wandb.log(norms)

# --- per_param_skip (hard)
def clip_each(model, limit):
    for p in model.parameters():
        if p.grad.norm() > limit:  #! truth: true control-flow
            p.grad.mul_(limit / p.grad.norm())

# --- moe_loop (hard)
def forward(x, gates, experts):
    out = torch.zeros_like(x)
    for e, expert in enumerate(experts):
        idx = (gates == e).nonzero(as_tuple=True)[0]  #! nonzero: true dynamic-shape; nosrc: true dynamic-shape
        if idx.numel() == 0:
            continue
        out[idx] = expert(x[idx])
    return out

# --- dynamic_loss_scale (hard)
class DynamicScaler:
    def update(self, overflow):
        if overflow.item():  #! item1: true control-flow
            self.scale = max(self.scale / 2, 1)
            self.good = 0
        else:
            self.good += 1

# --- alias_imports (hard)
import numpy as onp
from time import perf_counter as clock


def bench(fn, x, n):
    torch.cuda.synchronize()  #! sync: false timing
    t0 = clock()
    for _ in range(n):
        fn(x)
    torch.cuda.synchronize()  #! sync: false timing
    return (clock() - t0) / n

# --- time_time_split (hard)
def run(model, batch, times):
    t = time.time()
    y = model(batch)
    torch.cuda.synchronize()  #! sync: false timing
    times.append(time.time() - t)
    return y

# --- sync_before_barrier (hard)
def save(model, path, rank):
    torch.cuda.synchronize()  #! sync: false explicit
    if rank == 0:
        torch.save(model.state_dict(), path)
    dist.barrier()

# --- sync_in_profile_loop (hard)
def profile(model, batches):
    torch.cuda.cudart().cudaProfilerStart()
    for b in batches:
        model(b)
    torch.cuda.synchronize()  #! sync: false explicit
    torch.cuda.cudart().cudaProfilerStop()

# --- host_mask_from_list (hard)
def ban(logits, words):
    banned = torch.tensor(words, device=logits.device)  #! tensor: false upload; nosrc: false upload
    logits[:, banned] = -torch.inf
    return logits

# --- lr_warm_restart (hard)
def adjust_learning_rate(optimizer, loss_history, loss):
    loss_history.append(loss.item())  #! item: true control-flow
    if len(loss_history) > 10 and loss_history[-1] > loss_history[-10]:
        for g in optimizer.param_groups:
            g["lr"] *= 0.5

# --- logging_method_chain (hard)
class Runner:
    def _log(self, tag, value):
        self.tb.add_scalar(tag, value, self.it)

    def step(self, batch):
        loss = self.net(batch)
        loss.backward()
        self._log("loss", loss.item())  #! item: false logging
        self._log("lr", self.lr)

# --- logged_and_returned_unused (hard)
def step(model, batch):
    loss = model(batch)
    loss.backward()
    return loss.item()  #! item: false explicit


def warmup(model, batches):
    for b in batches:
        step(model, b)  #< step

# --- returned_through_two (hard)
def loss_of(model, batch):
    return model(batch).loss.item()  #! item: false logging


def evaluate(model, batches):
    return sum(loss_of(model, b) for b in batches) / len(batches)  #< loss_of


def epoch(model, batches):
    print("eval", evaluate(model, batches))  #< evaluate

# --- deque_window (hard)
class Window:
    def __init__(self):
        self.values = deque(maxlen=100)

    def push(self, loss):
        self.values.append(loss.item())  #! item: false logging

    def log(self):
        logger.info("mean %.4f", sum(self.values) / len(self.values))

# --- annotation_and_default (hard)
def penalty(loss: torch.Tensor, weight: float = 0.1) -> torch.Tensor:
    coefficient: float = loss.detach().mean().item()  #! item: false round-trip
    return loss * (weight * coefficient)

# --- global_metrics (hard)
METRICS = {}


def note(name, t):
    METRICS[name] = t.item()  #! item: false logging

# --- python_bool_of_tensor (hard)
def converged(delta, eps):
    done = bool((delta < eps).all())  #! truth: true control-flow
    return done


def iterate(f, x, eps):
    while True:
        y = f(x)
        if converged((y - x).abs(), eps):  #< converged
            return y
        x = y
