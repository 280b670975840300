# Shapes of public repositories, labelled before they were first read. Where the answer is value-read, a reviewer says that the
# CPU computes with it.

# --- splatting: a running figure for the bar
def training(opt, gaussians):
    ema_loss_for_log = 0.0
    progress_bar = tqdm(range(opt.iterations), desc="Training progress")
    for iteration in range(1, opt.iterations + 1):
        loss = render_loss(gaussians)
        loss.backward()
        with torch.no_grad():
            ema_loss_for_log = 0.4 * loss.item() + 0.6 * ema_loss_for_log  #! item: logging
            if iteration % 10 == 0:
                progress_bar.set_postfix({"Loss": f"{ema_loss_for_log:.7f}"})
                progress_bar.update(10)

# --- image classifier: test with a bar of its own
from utils import progress_bar

def test(epoch):
    global best_acc
    net.eval()
    test_loss = 0
    correct = 0
    total = 0
    with torch.no_grad():
        for batch_idx, (inputs, targets) in enumerate(testloader):
            outputs = net(inputs)
            loss = criterion(outputs, targets)
            test_loss += loss.item()  #! item: logging
            _, predicted = outputs.max(1)
            total += targets.size(0)
            correct += predicted.eq(targets).sum().item()  #! item: logging
            progress_bar(batch_idx, len(testloader), 'Loss: %.3f | Acc: %.3f%% (%d/%d)'
                         % (test_loss/(batch_idx+1), 100.*correct/total, correct, total))
    acc = 100.*correct/total
    if acc > best_acc:
        torch.save({'net': net.state_dict(), 'acc': acc}, './checkpoint/ckpt.pth')
        best_acc = acc
# file: utils.py
import sys
import time

def progress_bar(current, total, msg=None):
    L = ['  Step: %s' % format_time(time.time())]
    if msg:
        L.append(' | ' + msg)
    msg = ''.join(L)
    sys.stdout.write(msg)
    for i in range(80 - len(msg)):
        sys.stdout.write(' ')
    sys.stdout.flush()

# --- trainer with callbacks
class Trainer:
    def run(self):
        self.iter_num = 0
        for batch in self.loader:
            logits, self.loss = self.model(*batch)
            self.loss.backward()
            self.trigger_callbacks('on_batch_end')
            self.iter_num += 1

def batch_end_callback(trainer):
    if trainer.iter_num % 100 == 0:
        print(f"iter {trainer.iter_num}: train loss {trainer.loss.item():.5f}")  #! item: logging

# --- image translation: losses by name
class BaseModel:
    def get_current_losses(self):
        errors_ret = OrderedDict()
        for name in self.loss_names:
            if isinstance(name, str):
                errors_ret[name] = float(getattr(self, 'loss_' + name))  #! float: logging
        return errors_ret

def main(model, visualizer, dataset, opt):
    for i, data in enumerate(dataset):
        model.optimize_parameters()
        if i % opt.print_freq == 0:
            losses = model.get_current_losses()  #< get_current_losses
            t_comp = (time.time() - start) / opt.batch_size
            visualizer.print_current_losses(i, losses, t_comp)
            if opt.display_id > 0:
                visualizer.plot_current_losses(i, losses)

# --- detector: matches are sorted by NumPy
def process_batch(detections, labels, iouv):
    correct = np.zeros((detections.shape[0], iouv.shape[0])).astype(bool)
    iou = box_iou(labels[:, 1:], detections[:, :4])
    for i in range(len(iouv)):
        x = torch.where(iou >= iouv[i])
        if x[0].shape[0]:
            matches = torch.cat((torch.stack(x, 1), iou[x[0], x[1]][:, None]), 1).cpu().numpy()  #! cpu: cpu-compute
            if x[0].shape[0] > 1:
                matches = matches[matches[:, 2].argsort()[::-1]]
                matches = matches[np.unique(matches[:, 1], return_index=True)[1]]
            correct[matches[:, 1].astype(int), i] = True
    return torch.tensor(correct, dtype=torch.bool, device=iouv.device)

# --- detector: statistics batch by batch
from utils.metrics import ap_per_class

def run(model, dataloader, iouv):
    stats = []
    for im, targets in dataloader:
        preds = non_max_suppression(model(im))
        for pred in preds:
            correct = process_batch(pred, targets, iouv)
            stats.append((correct, pred[:, 4], pred[:, 5], targets[:, 0]))
    stats = [torch.cat(x, 0).cpu().numpy() for x in zip(*stats)]  #! cpu: control-flow
    if len(stats) and stats[0].any():
        tp, fp, p, r, f1, ap, ap_class = ap_per_class(*stats, plot=False)
        print(p.mean(), r.mean())

# --- contrastive model: accuracy as a helper
def accuracy(output, target, topk=(1,)):
    pred = output.topk(max(topk), 1, True, True)[1].t()
    correct = pred.eq(target.view(1, -1).expand_as(pred))
    return [float(correct[:k].reshape(-1).float().sum(0, keepdim=True).cpu().numpy()) for k in topk]  #! cpu: logging

def zero_shot_eval(model, classifier, dataloader, args):
    top1, top5, n = 0., 0., 0.
    for images, target in tqdm(dataloader, unit_scale=args.batch_size):
        logits = 100. * model(images) @ classifier
        acc1, acc5 = accuracy(logits, target, topk=(1, 5))  #< accuracy
        top1 += acc1
        top5 += acc5
        n += images.size(0)
    top1 = (top1 / n)
    top5 = (top5 / n)
    return top1, top5

# --- masked autoencoder: reduced for the log in another file
import util.misc as misc

def train_one_epoch(model, data_loader, log_writer, args):
    for data_iter_step, (samples, _) in enumerate(data_loader):
        loss, _, _ = model(samples, mask_ratio=args.mask_ratio)
        loss_value = loss.item()  #! item: round-trip
        loss_value_reduce = misc.all_reduce_mean(loss_value)
        if log_writer is not None and (data_iter_step + 1) % args.accum_iter == 0:
            log_writer.add_scalar('train_loss', loss_value_reduce, data_iter_step)
# file: util/misc.py
def all_reduce_mean(x):
    world_size = get_world_size()
    if world_size > 1:
        x_reduce = torch.tensor(x).cuda()
        dist.all_reduce(x_reduce)
        x_reduce /= world_size
        return x_reduce.item()
    else:
        return x

# --- masked autoencoder: stopped by what is not finite
import util.misc as misc

def train_one_epoch(model, data_loader, metric_logger):
    for samples, _ in data_loader:
        loss, _, _ = model(samples)
        loss_value = loss.item()  #! item: control-flow
        if not math.isfinite(loss_value):
            print("Loss is {}, stopping training".format(loss_value))
            sys.exit(1)
        metric_logger.update(loss=loss_value)

# --- vocoder: an error on the screen
def train(a, generator, train_loader):
    for i, batch in enumerate(train_loader):
        y_g_hat = generator(batch)
        loss_gen_all = adversarial(y_g_hat)
        if steps % a.stdout_interval == 0:
            with torch.no_grad():
                mel_error = F.l1_loss(y_mel, y_g_hat_mel).item()  #! item: logging
            print('Steps : {:d}, Gen Loss Total : {:4.3f}, Mel-Spec. Error : {:4.3f}'.format(steps, loss_gen_all, mel_error))

# --- tree search: a network values a position
class PolicyValueNet:
    def policy_value_fn(self, board):
        legal_positions = board.availables
        log_act_probs, value = self.policy_value_net(board.current_state())
        act_probs = np.exp(log_act_probs.data.cpu().numpy().flatten())  #! cpu: value-read
        act_probs = zip(legal_positions, act_probs[legal_positions])
        value = value.data[0][0].item()
        return act_probs, value

# --- tree search: the value of a leaf
class PolicyValueNet:
    def policy_value_fn(self, board):
        log_act_probs, value = self.policy_value_net(board.current_state())
        value = value.data[0][0].item()  #! item: value-read
        return log_act_probs, value

class TreeNode:
    def __init__(self, parent):
        self._Q = 0
        self._n_visits = 0
    def update(self, leaf_value):
        self._n_visits += 1
        self._Q += 1.0 * (leaf_value - self._Q) / self._n_visits
    def get_value(self, c_puct):
        return self._Q + c_puct
    def select(self, c_puct):
        return max(self._children.items(), key=lambda act_node: act_node[1].get_value(c_puct))

class MCTS:
    def __init__(self, policy_value_fn):
        self._root = TreeNode(None)
        self._policy = policy_value_fn
    def _playout(self, state):
        node = self._root
        action_probs, leaf_value = self._policy(state)  #< policy_value_fn
        node.update(-leaf_value)

# --- policy optimisation: a dict of statistics with one that stops
def step(self, queries, responses):
    stats = {}
    for epoch in range(self.config.ppo_epochs):
        train_stats = self.train_minibatch(queries, responses)
        for name, tensor in train_stats.items():
            stats[f"ppo/{name}"] = tensor.mean().item()  #! item: control-flow
        if self.config.early_stopping and stats["ppo/policykl"] > 1.5 * self.config.target_kl:
            break
    return stats

# --- speech synthesis: reduced or not
def train(hparams, rank, n_gpus, logger):
    for i, batch in enumerate(train_loader):
        loss = criterion(model(batch), batch)
        if hparams.distributed_run:
            reduced_loss = reduce_tensor(loss.data, n_gpus).item()  #! item: logging
        else:
            reduced_loss = loss.item()  #! item: logging
        optimizer.step()
        if rank == 0:
            print("Train loss {} {:.6f}".format(iteration, reduced_loss))
            logger.log_training(reduced_loss, learning_rate, iteration)

# --- early stopping by an object of another file
from pytorchtools import EarlyStopping

def train_model(model, valid_loader, patience, n_epochs):
    avg_valid_losses = []
    early_stopping = EarlyStopping(patience=patience, verbose=True)
    for epoch in range(1, n_epochs + 1):
        valid_losses = []
        for data, target in valid_loader:
            loss = criterion(model(data), target)
            valid_losses.append(loss.item())  #! item: logging
        valid_loss = np.average(valid_losses)
        avg_valid_losses.append(valid_loss)
        early_stopping(valid_loss, model)
        if early_stopping.early_stop:
            break

# --- speech recognition: greedy labels become text
class GreedyDecoder(torch.nn.Module):
    def forward(self, emission):
        indices = torch.argmax(emission, dim=-1)
        indices = torch.unique_consecutive(indices, dim=-1)
        joined = "".join([self.labels[i] for i in indices.tolist()])  #! tolist: cpu-compute
        return joined.replace("|", " ").strip().split()

# --- actor and critic: the temperature
class SAC:
    def learn(self, batch):
        alpha = self.log_alpha.exp().item()  #! item: round-trip
        with torch.no_grad():
            next_action, next_logp = self.actor(batch.next_obs)
            q_next = torch.min(self.q1(batch.next_obs, next_action), self.q2(batch.next_obs, next_action))
            target = batch.reward + self.gamma * (q_next - alpha * next_logp)
        loss = F.mse_loss(self.q1(batch.obs, batch.act), target)
        loss.backward()

# --- nearest neighbours: hits of each batch
def knn_classifier(train_features, test_features, test_labels, k):
    top1, top5, total = 0.0, 0.0, 0
    for idx in range(0, num_test_images, imgs_per_chunk):
        correct = predictions.eq(targets.data.view(-1, 1))
        top1 = top1 + correct.narrow(1, 0, 1).sum().item()  #! item: logging
        top5 = top5 + correct.narrow(1, 0, min(5, k)).sum().item()  #! item: logging
        total += targets.size(0)
    top1 = top1 * 100.0 / total
    top5 = top5 * 100.0 / total
    return top1, top5

def main(args):
    for k in args.nb_knn:
        top1, top5 = knn_classifier(train, test, labels, k)  #< knn_classifier
        print(f"{k}-NN classifier result: Top1: {top1}, Top5: {top5}")

# --- style transfer: a closure that prints
def run_style_transfer(optimizer, num_steps):
    run = [0]
    while run[0] <= num_steps:
        def closure():
            loss = style_score * style_weight + content_score * content_weight
            loss.backward()
            run[0] += 1
            if run[0] % 50 == 0:
                print('Style Loss : {:4f} Content Loss: {:4f}'.format(style_score.item(), content_score.item()))  #! item: logging
            return style_score + content_score
        optimizer.step(closure)

# --- graphs: how many there are
def global_mean_pool(x, batch):
    size = int(batch.max().item() + 1)  #! item: dynamic-shape
    out = x.new_zeros(size, x.size(1))
    return out.index_add_(0, batch, x)

# --- actor: actions for the simulator
def collect(agent, envs, obs, num_steps):
    for step in range(num_steps):
        action, logprob = agent.get_action(obs)
        next_obs, reward, done, infos = envs.step(action.cpu().numpy())  #! cpu: cpu-compute
        obs = torch.Tensor(next_obs).to(device)

# --- replay: priorities of a sum tree
class SumTree:
    def __init__(self, n):
        self.tree = np.zeros(2 * n - 1)
    def update(self, idx, p):
        self.tree[idx] = p

class Agent:
    def __init__(self, n):
        self.memory = SumTree(n)
    def learn(self, batch):
        errors = (self.q(batch.s) - batch.target).abs().detach().cpu().numpy()  #! cpu: value-read
        for i, error in zip(batch.idx, errors):
            self.memory.update(i, (error + 0.01) ** 0.6)

# --- metrics as a table of lambdas
METRICS = {
    'acc': lambda out, y: (out.argmax(1) == y).float().mean().item(),  #! item: logging; in <lambda>
}

def evaluate(model, loader):
    scores = {}
    for x, y in loader:
        out = model(x)
        for name, fn in METRICS.items():
            scores.setdefault(name, []).append(fn(out, y))  #< <module>
    for name, values in scores.items():
        print(name, sum(values) / len(values))

# --- a lambda that a branch asks
is_done = lambda t: (t > 0).all().item()  #! item: control-flow; in <lambda>

def solve(t):
    while True:
        t = relax(t)
        if is_done(t):  #< <module>
            return t

# --- hyperparameter search: two helpers away
def loss_on(model, batch):
    return F.mse_loss(model(batch.x), batch.y).item()  #! item: logging

def score(model, batches):
    total = sum(loss_on(model, b) for b in batches)  #< loss_on
    return total / len(batches)

class Result:
    def __init__(self, name, score):
        self.name = name
        self.score = score
    def __str__(self):
        return f"{self.name}: {self.score:.4f}"

def report(models, batches):
    rows = [Result(name, score(model, batches)) for name, model in models.items()]  #< score
    for row in rows:
        print(row)

# --- quantisation: the scale of a layer
class FakeQuant(nn.Module):
    def calibrate(self, x):
        self.amax = max(self.amax, x.abs().max().item())  #! item: round-trip
    def forward(self, x: torch.Tensor):
        scale = 127 / self.amax
        return torch.clamp(x.detach() * scale, -128, 127).round() / scale

# --- pose tracking: key points for OpenCV
def draw(frame, heatmaps):
    points = []
    for heat in heatmaps:
        y, x = divmod(heat.argmax().item(), heat.shape[1])  #! item: cpu-compute
        points.append((int(x), int(y)))
    for p in points:
        cv2.circle(frame, p, 3, (0, 255, 0), -1)
    return frame

# --- text: stop at the end token
@torch.inference_mode()
def complete(model, tokenizer, prompt, max_new):
    ids = tokenizer.encode(prompt)
    for _ in range(max_new):
        logits = model(torch.tensor([ids]).cuda())
        next_id = logits[0, -1].argmax().item()  #! item: control-flow
        if next_id == tokenizer.eos_token_id:
            break
        ids.append(next_id)
    return tokenizer.decode(ids)

# --- federated: a client's figures go into a table
def client_update(model, loader, epochs):
    epoch_loss = []
    for epoch in range(epochs):
        batch_loss = []
        for images, labels in loader:
            loss = criterion(model(images), labels)
            loss.backward()
            batch_loss.append(loss.item())  #! item: logging
        epoch_loss.append(sum(batch_loss) / len(batch_loss))
    return model.state_dict(), sum(epoch_loss) / len(epoch_loss)

def server(clients, model):
    local_losses = []
    for client in clients:
        w, loss = client_update(model, client.loader, 3)  #< client_update
        local_losses.append(copy.deepcopy(loss))
    loss_avg = sum(local_losses) / len(local_losses)
    print(f'Training Loss : {np.mean(np.array(local_losses))}', loss_avg)

# --- simulation: the step size follows the field
def advance(u, cfl, dx, t_end):
    t = 0.0
    while t < t_end:
        dt = cfl * dx / u.abs().max().item()  #! item: control-flow
        u = u + dt * rhs(u)
        t += dt
    return u

# --- physics: residual shown every so often
def solve(u, tol, every):
    for k in range(10000):
        u, residual = sweep(u)
        if k % every == 0:
            r = residual.norm().item()  #! item: control-flow
            history.append(r)
            if r < tol:
                return u, k

# --- recommender: ranks of each user
def evaluate(model, users, test_items):
    hits, ndcgs = [], []
    for u in users:
        scores = model(u)
        _, indices = torch.topk(scores, 10)
        recommends = torch.take(items, indices).cpu().numpy().tolist()  #! cpu: control-flow
        gt_item = test_items[u]
        hits.append(1 if gt_item in recommends else 0)
        ndcgs.append(np.reciprocal(np.log2(recommends.index(gt_item) + 2)) if gt_item in recommends else 0)
    return np.mean(hits), np.mean(ndcgs)
