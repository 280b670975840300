# Further shapes of public repositories, labelled before they were first read. Where the answer is value-read, what decides
# stands in a file or a caller that the case leaves out.

# --- diffusion trainer: accumulated loss in the bar
class Trainer:
    def train(self):
        with tqdm(initial=self.step, total=self.train_num_steps, disable=not accelerator.is_main_process) as pbar:
            while self.step < self.train_num_steps:
                total_loss = 0.
                for _ in range(self.gradient_accumulate_every):
                    data = next(self.dl).to(device)
                    with self.accelerator.autocast():
                        loss = self.model(data)
                        loss = loss / self.gradient_accumulate_every
                        total_loss += loss.item()  #! item: logging
                    self.accelerator.backward(loss)
                pbar.set_description(f'loss: {total_loss:.4f}')
                self.step += 1
                pbar.update(1)

# --- codebook: dead entries
class Codebook(nn.Module):
    def expire_codes_(self, batch_samples):
        expired_codes = self.cluster_size < self.threshold
        if not torch.any(expired_codes):  #! truth: control-flow
            return
        num = expired_codes.sum().item()  #! item: dynamic-shape
        sampled = batch_samples[torch.randint(0, batch_samples.shape[0], (num,))]
        self.embed.data[expired_codes] = sampled

# --- glue without a trainer
def main(args, accelerator, model, train_dataloader, eval_dataloader, metric):
    for epoch in range(args.num_train_epochs):
        total_loss = 0
        for step, batch in enumerate(train_dataloader):
            outputs = model(**batch)
            loss = outputs.loss
            if args.with_tracking:
                total_loss += loss.detach().float()
            accelerator.backward(loss)
        eval_metric = metric.compute()
        if args.with_tracking:
            accelerator.log(
                {
                    "accuracy": eval_metric,
                    "train_loss": total_loss.item() / len(train_dataloader),  #! item: logging
                    "epoch": epoch,
                },
                step=completed_steps,
            )

# --- language model evaluation: perplexity of gathered losses
def evaluate(accelerator, model, loader):
    losses = []
    for step, batch in enumerate(loader):
        outputs = model(**batch)
        losses.append(accelerator.gather_for_metrics(outputs.loss.repeat(8)))
    losses = torch.cat(losses)
    try:
        eval_loss = torch.mean(losses)
        perplexity = math.exp(eval_loss)  #! float: logging
    except OverflowError:
        perplexity = float("inf")
    logger.info(f"epoch {epoch}: perplexity: {perplexity} eval_loss: {eval_loss}")

# --- segmentation: a histogram of classes
class Evaluator:
    def __init__(self, num_class):
        self.num_class = num_class
        self.confusion_matrix = np.zeros((num_class,) * 2)
    def add_batch(self, gt_image, pre_image):
        mask = (gt_image >= 0) & (gt_image < self.num_class)
        label = self.num_class * gt_image[mask].astype('int') + pre_image[mask]
        count = np.bincount(label, minlength=self.num_class**2)
        self.confusion_matrix += count.reshape(self.num_class, self.num_class)

class Runner:
    def __init__(self, nclass):
        self.evaluator = Evaluator(nclass)
    def validation(self, loader):
        for image, target in loader:
            output = self.model(image.cuda())
            pred = output.data.cpu().numpy()  #! cpu: value-read
            pred = np.argmax(pred, axis=1)
            self.evaluator.add_batch(target.numpy(), pred)

# --- contrastive learning: meters in a loop
class AverageMeter:
    def __init__(self, name):
        self.name = name
        self.reset()
    def reset(self):
        self.val = self.avg = self.sum = self.count = 0
    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count
    def __str__(self):
        return '{name} {val:.3f} ({avg:.3f})'.format(**self.__dict__)

def train(loader, model):
    losses = AverageMeter('Loss')
    top1 = AverageMeter('Acc@1')
    for i, (images, _) in enumerate(loader):
        output, target = model(images[0], images[1])
        loss = criterion(output, target)
        acc1, acc5 = accuracy(output, target, topk=(1, 5))
        losses.update(loss.item(), images[0].size(0))  #! item: logging
        top1.update(acc1[0].item(), images[0].size(0))  #! item: logging
        if i % args.print_freq == 0:
            print(losses, top1)
    return top1.avg

# --- point clouds: correct answers over all
def test(model, loader, num_class):
    mean_correct = []
    class_acc = np.zeros((num_class, 3))
    for points, target in loader:
        pred, _ = model(points)
        pred_choice = pred.data.max(1)[1]
        for cat in np.unique(target.cpu()):
            classacc = pred_choice[target == cat].eq(target[target == cat].long().data).cpu().sum()  #! cpu: logging
            class_acc[cat, 0] += classacc.item() / float(points[target == cat].size()[0])
            class_acc[cat, 1] += 1
        correct = pred_choice.eq(target.long().data).cpu().sum()  #! cpu: logging
        mean_correct.append(correct.item() / float(points.size()[0]))
    class_acc[:, 2] = class_acc[:, 0] / class_acc[:, 1]
    instance_acc = np.mean(mean_correct)
    return instance_acc, np.mean(class_acc[:, 2])

# --- text recognition: labels to words
class StrLabelConverter:
    def decode(self, t, length):
        if length.numel() == 1:
            length = length[0]
            char_list = []
            for i in range(length):
                if t[i] != 0 and (not (i > 0 and t[i - 1] == t[i])):  #! truth: control-flow
                    char_list.append(self.alphabet[t[i] - 1])
            return ''.join(char_list)

# --- super resolution: an image on the disk
def run(model, paths):
    for path in paths:
        img = cv2.imread(path, cv2.IMREAD_COLOR) * 1.0 / 255
        img = torch.from_numpy(np.transpose(img[:, :, [2, 1, 0]], (2, 0, 1))).float()
        output = model(img.unsqueeze(0).to(device)).data.squeeze().float().cpu().clamp_(0, 1).numpy()  #! cpu: cpu-compute
        output = (np.transpose(output[[2, 1, 0], :, :], (1, 2, 0)) * 255.0).round()
        cv2.imwrite('results/{:s}_rlt.png'.format(path), output)

# --- open graph benchmark: predictions for an evaluator
@torch.no_grad()
def test(model, data, split_idx, evaluator):
    out = model(data.x, data.adj_t)
    y_pred = out.argmax(dim=-1, keepdim=True)
    train_acc = evaluator.eval({'y_true': data.y[split_idx['train']], 'y_pred': y_pred[split_idx['train']]})['acc']
    return train_acc

def train(model, data, train_idx, optimizer):
    out = model(data.x, data.adj_t)[train_idx]
    loss = F.nll_loss(out, data.y.squeeze(1)[train_idx])
    loss.backward()
    optimizer.step()
    return loss.item()  #! item: logging

def main(args, model, data, optimizer, evaluator):
    for run in range(args.runs):
        for epoch in range(1, 1 + args.epochs):
            loss = train(model, data, train_idx, optimizer)  #< train
            result = test(model, data, split_idx, evaluator)
            if epoch % args.log_steps == 0:
                print(f'Run: {run + 1:02d}, Epoch: {epoch:02d}, Loss: {loss:.4f}')

# --- agent of a library: the policy's statistics
class PPO:
    def train(self):
        entropy_losses, pg_losses, clip_fractions = [], [], []
        continue_training = True
        for epoch in range(self.n_epochs):
            approx_kl_divs = []
            for rollout_data in self.rollout_buffer.get(self.batch_size):
                log_ratio = self.log_prob(rollout_data)
                pg_losses.append(policy_loss.item())  #! item: logging
                clip_fraction = torch.mean((torch.abs(ratio - 1) > clip_range).float()).item()  #! item: logging
                clip_fractions.append(clip_fraction)
                with torch.no_grad():
                    approx_kl_div = torch.mean((torch.exp(log_ratio) - 1) - log_ratio).cpu().numpy()  #! cpu: control-flow
                    approx_kl_divs.append(approx_kl_div)
                if self.target_kl is not None and approx_kl_div > 1.5 * self.target_kl:
                    continue_training = False
                    break
                loss.backward()
            if not continue_training:
                break
        self.logger.record("train/policy_gradient_loss", np.mean(pg_losses))
        self.logger.record("train/clip_fraction", np.mean(clip_fractions))

# --- agent of a library: what the policy does next
class Policy:
    def predict(self, observation, deterministic=False):
        with torch.no_grad():
            actions = self._predict(observation, deterministic=deterministic)
        actions = actions.cpu().numpy().reshape((-1, *self.action_space.shape))  #! cpu: cpu-compute
        return actions

def evaluate_policy(model, env, n):
    observations = env.reset()
    for _ in range(n):
        actions = model.predict(observations)  #< predict
        observations, rewards, dones, infos = env.step(actions)

# --- speculative decoding: how many drafts are accepted
def speculative_step(model, draft_tokens, p, q, cur):
    accept_draft_prob = torch.minimum(torch.ones(()), q / p)
    rejected_locations = (torch.rand_like(accept_draft_prob) > accept_draft_prob).nonzero()
    if rejected_locations.shape[0] == 0:
        return draft_tokens
    accept_length = rejected_locations[0].item()  #! item: dynamic-shape
    return draft_tokens[:accept_length]

# --- probabilistic programming: the loss of a step
class SVI:
    def step(self, *args):
        loss = self.loss_and_grads(self.model, self.guide, *args)
        self.optim(self.params)
        return torch_item(loss)

def torch_item(x):
    return x if isinstance(x, numbers.Number) else x.item()  #! item: value-read

def main(svi, data):
    for step in range(2000):
        loss = svi_step(svi, data)
        if step % 100 == 0:
            logging.info("step {} loss = {:0.4g}".format(step, loss))

def svi_step(svi, data):
    loss = svi.loss_and_grads(data)
    return torch_item(loss)  #< torch_item

# --- music separation: best over epochs
class Solver:
    def train(self):
        for epoch in range(self.args.epochs):
            metrics = {}
            metrics['train'] = self._run_one_epoch(epoch)
            losses = {}
            main = losses
            for estimates in self.loader:
                losses['loss'] = self.loss_fn(estimates).item()  #! item: control-flow
            if main['loss'] < self.best:
                self.best = main['loss']
                self.serialize()

# --- tabular: predictions of all batches
@torch.no_grad()
def evaluate(model, loader, y_true):
    y_pred = (
        torch.cat([apply_model(model, batch) for batch in loader])
        .cpu()  #! cpu: cpu-compute
        .numpy()
    )
    y_pred = scipy.special.expit(y_pred)
    y_pred = np.round(y_pred)
    return sklearn.metrics.accuracy_score(y_true, y_pred)

# --- hooks of a framework: what is not finite stops the run
class CheckInvalidLossHook(Hook):
    def after_train_iter(self, runner, batch_idx, outputs):
        if self.every_n_train_iters(runner, self.interval):
            assert torch.isfinite(outputs['loss']), runner.logger.info('loss become infinite or NaN!')  #! truth: control-flow

# --- hooks of a framework: losses into the log buffer
def parse_losses(losses):
    log_vars = OrderedDict()
    for loss_name, loss_value in losses.items():
        log_vars[loss_name] = loss_value.mean()
    loss = sum(_value for _key, _value in log_vars.items() if 'loss' in _key)
    log_vars['loss'] = loss
    for loss_name, loss_value in log_vars.items():
        log_vars[loss_name] = loss_value.item()  #! item: value-read
    return loss, log_vars

def train_step(model, data, optimizer):
    losses = model(**data)
    loss, log_vars = parse_losses(losses)  #< parse_losses
    return dict(loss=loss, log_vars=log_vars, num_samples=len(data['img_metas']))

# --- object tracking: boxes for the matching
def update(self, outputs):
    dets = outputs.cpu().numpy()  #! cpu: cpu-compute
    scores = dets[:, 4]
    remain_inds = scores > self.track_thresh
    dists = matching.iou_distance(self.tracked, dets[remain_inds])
    matches, u_track, u_detection = matching.linear_assignment(dists, thresh=0.8)
    for itracked, idet in matches:
        self.tracked[itracked].update(dets[idet], self.frame_id)

# --- neural radiance fields: a number for the console and a file
def train(i_print, i_img):
    for i in trange(start, N_iters):
        loss, psnr = step()
        if i % i_print == 0:
            tqdm.write(f"[TRAIN] Iter: {i} Loss: {loss.item()}  PSNR: {psnr.item()}")  #! item: logging

# --- a schedule by what was seen
class ReduceOnPlateauLoop:
    def run(self, scheduler, loader):
        running = []
        for batch in loader:
            running.append(self.step(batch).detach())
        val = torch.stack(running).mean().item()  #! item: cpu-compute
        scheduler.step(val)
        return val

# --- a helper that moves everything to the host
def to_numpy(t):
    if isinstance(t, dict):
        return {k: to_numpy(v) for k, v in t.items()}
    return t.detach().cpu().numpy()  #! cpu: cpu-compute

def write_video(frames, path):
    array = to_numpy(frames)  #< to_numpy
    imageio.mimwrite(path, array, fps=30)

# --- token counts for a throughput line
def log_throughput(batch, t0):
    ntok = (batch['labels'] != -100).sum().item()  #! item: logging
    rate = ntok / (time.perf_counter() - t0)
    rank_zero_info(f"{rate:.0f} tokens/s")

# --- gradient norm for the clip and the log
def clip(parameters, max_norm):
    total = 0.0
    for p in parameters:
        total += p.grad.data.norm(2).item() ** 2  #! item: logging
    total = total ** 0.5
    coef = max_norm / (total + 1e-6)
    if coef < 1:
        for p in parameters:
            p.grad.data.mul_(coef)
    return total

# --- replay: an array of NumPy for an object that is not at hand
class Learner:
    def learn(self, store):
        places, batch = store.draw(32)
        errors = self.errors(batch)
        store.set_priorities(places, errors.detach().cpu().numpy())  #! cpu: cpu-compute

# --- the same for what shows it
class Learner:
    def learn(self, viz, dashboard):
        errors = self.errors()
        viz.bars(errors.detach().cpu().numpy())  #! cpu: value-read
        dashboard.image_grid(errors.detach().cpu().numpy())  #! cpu: value-read

# --- the same tensor, which may go back to the GPU
class Learner:
    def learn(self, store):
        places, batch = store.draw(32)
        store.set_priorities(places, self.errors(batch).detach().cpu())  #! cpu: value-read

# --- one number in an array
class Learner:
    def learn(self, store):
        store.set_scale(self.errors().mean().cpu().numpy())  #! read cpu 4: value-read

# --- the time that is left
class Meter:
    def gather(self):
        both = torch.tensor([self.n, self.sum], device='cuda')
        dist.all_reduce(both)
        self.n, self.sum = both.tolist()  #! tolist: round-trip

    def __str__(self):
        left = datetime.timedelta(seconds=int(self.sum / self.n))
        return f"{left}"

# --- ranked on the host
def rank(model, names, k):
    hits = []
    scores = model().cpu().tolist()  #! cpu: control-flow
    for score, name in zip(scores, names):
        hits.append((score, name))
    hits.sort(key=lambda hit: -hit[0])
    return hits[:k]

# --- an old program's wrapper
def targets(out, labels):
    share = 1 / (labels > 0).sum().item()  #! item: round-trip
    weights = torch.zeros(9)
    weights[0] = share
    return (Variable(weights) * out).sum()
