# --- tensor_from_list
def weights():
    return torch.tensor([0.2, 0.3, 0.5], device="cuda")  #! tensor: false upload; nosrc: false upload

# --- pinned_non_blocking (hard)
def prefetch(batch):
    x = batch["x"].to("cuda", non_blocking=True)  #! async-up
    y = batch["y"].to("cuda")  #! to: false upload; nosrc: false upload
    return x, y

# --- scalar_into_tensor
def mask_first(scores):
    scores[0, 0] = float("-inf")  #! set-scalar: false upload; nosrc: false upload
    return scores

# --- list_index
def pick(x):
    return x[[0, 3, 5]]  #! get-list: false upload; nosrc: false upload

# --- round_trip_mean
def normalize(x):
    mean = x.mean().item()  #! item: false round-trip
    return x - mean

# --- fill_from_item
def temperature(logits, t):
    scale = t.item()  #! item: false round-trip
    out = torch.full_like(logits, scale)
    return logits / out

# --- cpu_and_back (hard)
def sort_on_cpu(x):
    host = x.cpu()  #! cpu: false round-trip
    order = host.argsort(stable=True)
    return order.to("cuda")  #! to: false upload; nosrc: false upload

# --- item_to_tensor (hard)
def reduce(loss, world):
    value = torch.tensor(loss.item(), device="cuda")  #! item: false round-trip | tensor: false upload
    dist.all_reduce(value)
    return value / world

# --- tensor_of_tensors (hard)
def stack(losses):
    return torch.tensor([l for l in losses], device="cuda")  #! tensor-read: false round-trip; x 4

# --- clamp_with_item
def clip(x, limit):
    bound = limit.abs().max().item()  #! item: false round-trip
    return x.clamp(-bound, bound)

# --- positions (hard)
class Rotary(nn.Module):
    def forward(self, x, offset):
        pos = torch.arange(x.size(1)).to(x.device)  #! to: false upload; nosrc: false upload
        return x * self.table[pos + offset]

# --- device_from_config (hard)
def collate(samples, cfg):
    batch = {k: torch.stack([s[k] for s in samples]) for k in samples[0]}
    return {k: v.to(cfg.device) for k, v in batch.items()}  #! to: false upload; in <dictcomp>; nosrc: false upload

# --- move_any (hard)
def to_device(obj, device):
    if isinstance(obj, dict):
        return {k: to_device(v, device) for k, v in obj.items()}  #< to_device_leaf
    return obj.to(device)  #! to: false upload; nosrc: false upload

# --- offload_state
def checkpoint(model, path):
    state = {k: v.cpu() for k, v in model.state_dict().items()}  #! cpu: true cpu-compute
    torch.save(state, path)

# --- to_numpy_reward
def rewards(tokens, scorer):
    texts = tokenizer.batch_decode(tokens.tolist())  #! tolist: true cpu-compute
    return scorer(texts)

# --- tensor_as_length (hard)
def positions(lengths):
    longest = lengths.max()
    return torch.arange(longest, device=lengths.device)  #! range-arg: true dynamic-shape

# --- tensor_as_number (hard)
def ceiling_like(x, limits):
    return torch.full_like(x, limits.max())  #! number-arg: false round-trip; nosrc: false round-trip

# --- noise_scale (hard)
def add_noise(x, sigmas, t):
    sigma = float(sigmas[t])  #! float: false round-trip
    noise = torch.randn_like(x)
    return x + sigma * noise

# --- numpy_mix (hard)
def mixup(x, y, alpha):
    lam = np.random.beta(alpha, alpha, size=1).item()
    perm = torch.randperm(x.size(0)).to("cuda")  #! to: false upload; nosrc: false upload
    return lam * x + (1 - lam) * x[perm]

# --- field_of_an_uploaded_batch
def evaluate(model, device, loader):
    for batch in loader:
        batch = batch.to(device)
        pred = model(batch)
        kept = cv2.resize(batch.y.view(pred.shape).detach().cpu(), (8, 8))  #! cpu: false host-known
        cv2.imshow("labels", kept)

# --- parameter_of_an_uploaded_model (hard)
def weights(model, device, batches):
    model = model.to(device)
    for batch in batches:
        model(batch).backward()
    return scipy.stats.kurtosis(model.weight.cpu())  #! cpu: true cpu-compute
